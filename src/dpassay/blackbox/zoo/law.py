"""Distributions on the real line, and the exact masses of a pair of them on fine cells.

A pair of densities cut into cells is a finite pair; its notions are those of the densities up to
the square of how much the privacy loss varies within a cell, about 1e-8 with the cells used here.
Outside the cells nothing is cut off: the two tails are cells of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr

from dpassay._typing import FloatArray
from dpassay.privacy.masses import Masses

#: Cells between the first and the last break point, and in each tail.
_CELLS = 1 << 16


@dataclass(frozen=True)
class Law:
    """A distribution function from both ends, where it is not smooth, and how far it reaches."""

    cdf: Callable[[FloatArray], FloatArray]
    sf: Callable[[FloatArray], FloatArray]
    breaks: tuple[float, ...]
    reach: float
    detail: int = _CELLS  # how many cells to cut the core and each tail into

    def cells(self, edges: FloatArray) -> FloatArray:
        """The probability of each cell, accurate in both tails."""
        below, above = self.cdf(edges), self.sf(edges)
        left = below[1:] < 0.5
        return np.maximum(np.where(left, np.diff(below), -np.diff(above)), 0.0)


def mixture(parts: Sequence[tuple[float, Law]]) -> Law:
    """A weighted mixture."""
    return Law(
        partial(_weighted, [(w, law.cdf) for w, law in parts]),
        partial(_weighted, [(w, law.sf) for w, law in parts]),
        tuple(sorted({b for _, law in parts for b in law.breaks})),
        max(law.reach for _, law in parts),
        _CELLS if len(parts) < 32 else _CELLS // 8,
    )


def _weighted(
    parts: list[tuple[float, Callable[[FloatArray], FloatArray]]], t: FloatArray
) -> FloatArray:
    total = np.zeros_like(t)
    for w, f in parts:
        total += w * f(t)
    return total


def laplace(centre: float, scale: float) -> Law:
    """Laplace distribution. Outside all centres two of them have a constant ratio: no reach."""

    def cdf(t: FloatArray) -> FloatArray:
        z = (t - centre) / scale
        with np.errstate(over="ignore"):
            return np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.abs(z)))

    def sf(t: FloatArray) -> FloatArray:
        return cdf(2 * centre - t)

    return Law(cdf, sf, (centre,), 0.0)


def gaussian(centre: float, sigma: float) -> Law:
    """Normal distribution, out to 30 σ: high Rényi orders live in the tails."""
    return Law(
        lambda t: np.asarray(ndtr((t - centre) / sigma)),
        lambda t: np.asarray(ndtr((centre - t) / sigma)),
        (centre,),
        30 * sigma,
    )


def masses(first: Law, second: Law) -> Masses:
    """The pair on fine cells that end at every break point, the two tails included."""
    breaks = np.unique(np.array(first.breaks + second.breaks))
    reach, detail = max(first.reach, second.reach), min(first.detail, second.detail)
    core = np.linspace(breaks[0], breaks[-1], detail + 1)
    low = breaks[0] - np.linspace(reach, 0, detail, endpoint=False)
    high = breaks[-1] + np.linspace(0, reach, detail + 1)[1:]
    edges = np.unique(np.concatenate([[-math.inf], low, core, breaks, high, [math.inf]]))
    p, q = first.cells(edges), second.cells(edges)
    # a cell that only rounding made empty on one side would count as an infinite ratio
    negligible = (np.minimum(p, q) == 0) & (np.maximum(p, q) < 1e-150)
    return Masses(np.where(negligible, 0.0, p), np.where(negligible, 0.0, q))
