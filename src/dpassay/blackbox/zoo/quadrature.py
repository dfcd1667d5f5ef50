"""One-dimensional integrals of functions that are smooth between known break points."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from dpassay._typing import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def panels(breaks: FloatArray, reach: float, width: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a composite Gauss–Legendre rule.

    It covers everything from `reach` below the first break to `reach` above the last, in panels no
    wider than `width` that end at every break.
    """
    breaks = np.unique(np.asarray(breaks, dtype=float))
    edges = np.concatenate([[breaks[0] - reach], breaks, [breaks[-1] + reach]])
    cuts = [
        np.linspace(a, b, max(2, int(np.ceil((b - a) / width)) + 1))
        for a, b in itertools.pairwise(edges)
    ]
    left = np.concatenate([cut[:-1] for cut in cuts])
    right = np.concatenate([cut[1:] for cut in cuts])
    half = (right - left) / 2
    nodes = ((left + right) / 2)[:, None] + half[:, None] * _NODES[None, :]
    return nodes.ravel(), (half[:, None] * _WEIGHTS[None, :]).ravel()


def integrate(
    function: Callable[[FloatArray], FloatArray], breaks: FloatArray, reach: float, width: float
) -> FloatArray:
    """∫ f over the panels; `function` maps nodes to an array whose last axis is the nodes."""
    nodes, weights = panels(breaks, reach, width)
    return np.asarray(function(nodes) @ weights)
