"""Kernel density estimates with a Gaussian kernel (TKDE without its floor).

On a grid: linear binning and one product in the frequency domain, O(n + G log G). At single
points: the direct sum over the draws within reach.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.fft import next_fast_len

from dpassay._typing import FloatArray
from dpassay.loss.binned import Binned

#: Bandwidths beyond which the kernel is nothing.
_REACH = 9.0


def on_grid(binned: Binned, h: tuple[float, ...]) -> FloatArray:
    """The density at the grid points; integrates to the share of draws inside the grid."""
    shape = []
    for axis, width in zip(binned.axes, h, strict=True):
        room = math.ceil(min(axis.size, _REACH * width / axis.step))
        shape.append(next_fast_len(axis.size + room, real=True))
    dimensions = tuple(range(len(shape)))
    spectrum = np.fft.rfftn(binned.weights, shape, dimensions)
    for k, (axis, width, size) in enumerate(zip(binned.axes, h, shape, strict=True)):
        whole = k < len(shape) - 1
        frequency = np.fft.fftfreq(size, axis.step) if whole else np.fft.rfftfreq(size, axis.step)
        damping = np.exp(-0.5 * (2 * math.pi * frequency * width) ** 2)
        spectrum *= damping.reshape([-1 if j == k else 1 for j in range(len(shape))])
    density = np.fft.irfftn(spectrum, shape, dimensions)[
        tuple(slice(axis.size) for axis in binned.axes)
    ]
    return np.asarray(np.maximum(density / (binned.total * binned.cell), 0.0))


def at_points(values: FloatArray, points: FloatArray, h: tuple[float, ...]) -> FloatArray:
    """The density at a few points, summed directly over the draws."""
    out = np.empty(len(points))
    norm = len(values) * math.prod(width * math.sqrt(2 * math.pi) for width in h)
    for index, point in enumerate(points):
        near = np.ones(len(values), dtype=bool)
        for k, width in enumerate(h):
            near &= np.abs(values[:, k] - point[k]) < _REACH * width
        z = (values[near] - point) / np.array(h)
        out[index] = np.exp(-0.5 * np.sum(z**2, axis=1)).sum() / norm
    return out


def kernel_norm(h: tuple[float, ...]) -> float:
    """∫K_h², the variance of the estimate at a point per draw and unit of density."""
    return math.prod(1 / (2 * math.sqrt(math.pi) * width) for width in h)
