"""Kernel density estimates (TKDE without its floor).

On a grid: linear binning and one product in the frequency domain, O(n + G log G). At single
points: the direct sum over the draws within reach.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.fft import next_fast_len

from dpassay._typing import FloatArray
from dpassay.loss.binned import Axis, Binned
from dpassay.loss.kernels import GAUSSIAN, Kernel


def on_grid(
    binned: Binned,
    h: tuple[float, ...],
    kernel: Kernel = GAUSSIAN,
    support: tuple[float, float] | None = None,
) -> FloatArray:
    """The density at the grid points; integrates to the share of draws inside the grid.

    With a support of the one coordinate, what lies beyond its ends is folded back.
    """
    shape = []
    for axis, width in zip(binned.axes, h, strict=True):
        room = math.ceil(min(axis.size, kernel.reach * width / axis.step))
        shape.append(next_fast_len(axis.size + room, real=True))
    dimensions = tuple(range(len(shape)))
    spectrum = np.fft.rfftn(binned.weights, shape, dimensions)
    for k, (axis, width, size) in enumerate(zip(binned.axes, h, shape, strict=True)):
        damping = _transform(kernel, width / axis.step, size, k == len(shape) - 1)
        spectrum *= damping.reshape([-1 if j == k else 1 for j in range(len(shape))])
    density = np.fft.irfftn(spectrum, shape, dimensions)[
        tuple(slice(axis.size) for axis in binned.axes)
    ]
    if support is not None:
        density = _reflected(density, binned.axes[0], support)
    return np.asarray(np.maximum(density / (binned.total * binned.cell), 0.0))


def _transform(kernel: Kernel, width: float, size: int, half: bool) -> FloatArray:
    """The Fourier transform of a kernel of this width, in steps of the grid, at `size` frequencies."""
    if kernel is GAUSSIAN:
        frequency = np.fft.rfftfreq(size) if half else np.fft.fftfreq(size)
        return np.asarray(np.exp(-0.5 * (2 * math.pi * frequency * width) ** 2))
    lags = np.arange(size, dtype=float)
    sampled = kernel.density(np.minimum(lags, size - lags) / width) / width
    found = np.fft.rfft(sampled) if half else np.fft.fft(sampled)
    return np.asarray(found.real / sampled.sum())


def _reflected(density: FloatArray, axis: Axis, support: tuple[float, float]) -> FloatArray:
    """A density on one axis with what lies beyond an end of its support folded back."""
    x, (low, high) = axis.points, support
    folded = density.copy()
    for end in (low, high):
        if math.isfinite(end):
            folded += np.interp(2 * end - x, x, density, left=0.0, right=0.0)
    return np.where((x >= low) & (x <= high), folded, 0.0)


def at_points(
    values: FloatArray, points: FloatArray, h: tuple[float, ...], kernel: Kernel = GAUSSIAN
) -> FloatArray:
    """The density at a few points, summed directly over the draws."""
    out = np.empty(len(points))
    for index, point in enumerate(points):
        near = np.ones(len(values), dtype=bool)
        for k, width in enumerate(h):
            near &= np.abs(values[:, k] - point[k]) < kernel.reach * width
        z = (values[near] - point) / np.array(h)
        out[index] = kernel.density(z).prod(axis=1).sum() / (len(values) * math.prod(h))
    return out
