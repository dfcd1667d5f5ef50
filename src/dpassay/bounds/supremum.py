"""The certified supremum of the joint test: an upper bound of sup F, not a grid's maximum.

See `joint` for the whole. F(q) = Σ_j Bin(j; m, q) · P(Bin(n, g(q)) ≥ i*(j)) is a polynomial in q
where g is a line, and a polynomial is pinned down by its values at Chebyshev points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import logit

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds.ordering import Counts, Window
from dpassay.privacy.claims import Claim

#: The interpolant is looked at in this many times its number of points.
_FINER = 32
#: Absolute error allowed to the interpolation of F, relative to the share spent on C.
_FINE = 1e-3


def supremum(window: Window, least: IntArray, claim: Claim) -> float:
    """An upper bound of sup F, within a small fraction of a per cent."""
    low = max(window.q_low, float(claim.region_inverse(window.p_low)))
    high = min(window.q_high, float(claim.region_inverse(window.p_high)))
    if low > window.q_high:
        return 0.0  # nothing in C satisfies the claim
    lattice = Lattice(window, least)
    if high <= low:  # past `high` p stays at its limit and F falls with q
        return float(lattice.tail(np.array([low]), np.array([window.p_high]))[0])
    best = 0.0
    for line in _tangents(claim, low, high, window):
        best = max(best, _sup_on_line(lattice, line, window))
    return best


class Lattice:
    """Binomial probabilities on a window, for many success probabilities at once."""

    def __init__(self, window: Window, least: IntArray) -> None:
        c = window.counts
        self.j = LogBinomial(c.m, window.first_j, window.last_j)
        self.i = LogBinomial(c.n, window.first_i, window.last_i)
        self.row = np.clip(least - window.first_i, 0, window.last_i - window.first_i + 1)

    def tail(self, q: FloatArray, p: FloatArray) -> FloatArray:
        """Σ_j Bin(j; m, q) P(Bin(n, p) ≥ i*(j)), for each q with its p."""
        out = np.empty_like(q)
        step = max(1, (1 << 22) // (self.j.size + self.i.size))
        for start in range(0, q.size, step):
            part = slice(start, start + step)
            mass_j, mass_i = self.j.mass(q[part]), self.i.mass(p[part])
            above = np.cumsum(mass_i[:, ::-1], axis=1)[:, ::-1]
            above = np.concatenate([above, np.zeros((above.shape[0], 1))], axis=1)
            out[part] = np.einsum("kj,kj->k", mass_j, above[:, self.row])
        return out


class LogBinomial:
    """Binomial masses on a window that holds all of the distribution but 1e-17."""

    def __init__(self, n: int, first: int, last: int) -> None:
        k = np.arange(first, last, dtype=float)
        middle = (last - first) // 2
        ways = np.concatenate([[0.0], np.cumsum(np.log((n - k) / (k + 1)))])
        self._ways = ways - ways[middle]
        self._offset = np.arange(last - first + 1, dtype=float) - middle
        self.size = last - first + 1

    def mass(self, p: FloatArray) -> FloatArray:
        """The masses on the window, a row for each success probability."""
        with np.errstate(divide="ignore"):
            odds = np.clip(logit(p), -745.0, 745.0)
        log_mass = self._ways[None, :] + self._offset[None, :] * odds[:, None]
        log_mass -= log_mass.max(axis=1, keepdims=True)
        mass = np.exp(log_mass)
        return np.asarray(mass / mass.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Line:
    """p = height + slope·q on [low, high]."""

    low: float
    high: float
    height: float
    slope: float

    def at(self, q: FloatArray) -> FloatArray:
        """p on the line."""
        return np.asarray(np.clip(self.height + self.slope * q, 0.0, 1.0))


def _tangents(claim: Claim, low: float, high: float, window: Window) -> list[Line]:
    """Lines whose minimum is nowhere below g on [low, high], and hardly above it."""
    c = window.counts
    for count in (2, 4, 8, 16, 32):
        # evenly spread where a binomial proportion has constant variance
        angle = np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), count)
        touch = np.sin(angle) ** 2
        value = np.asarray(claim.region(touch), dtype=float)
        slope = np.asarray(claim.slope(touch), dtype=float)
        slope, first = np.unique(slope, return_index=True)
        slope, value, touch = slope[::-1], value[first][::-1], touch[first][::-1]
        height = value - slope * touch
        cross = np.clip(np.diff(height) / -np.diff(slope), low, high)
        edges = np.concatenate([[low], cross, [high]])
        gap = height[:-1] + slope[:-1] * cross - np.asarray(claim.region(cross))
        noise = np.sqrt(np.maximum(value * (1 - value), 1 / c.n) / c.n)
        if gap.size == 0 or gap.max() <= 5e-3 * noise.min():
            break
    # rounding in value and slope must not push the envelope below g
    safety = 1e-13 + max(0.0, -float(gap.min(initial=0.0)))
    return [
        Line(float(a), float(b), float(h) + safety, float(s))
        for a, b, h, s in zip(edges[:-1], edges[1:], height, slope, strict=True)
        if b > a or edges.size == 2
    ]


def _sup_on_line(lattice: Lattice, line: Line, window: Window) -> float:
    tolerance = _FINE * window.spent
    if line.high <= line.low:
        q = np.array([line.low])
        return float(lattice.tail(q, line.at(q))[0])
    degree = _degree(line, window.counts, tolerance)
    nodes, to_grid = _chebyshev(degree)
    q = (line.low + line.high) / 2 + (line.high - line.low) / 2 * nodes
    values = lattice.tail(q, line.at(q))
    # Ehlich & Zeller: a polynomial is at most its maximum on N Chebyshev points divided by
    # cos(π·degree/2N); 1e-12 covers the rounding of the sums
    largest = float(np.max(to_grid @ values))
    return largest / math.cos(math.pi / (2 * _FINER)) + tolerance + 1e-12


@lru_cache(maxsize=256)
def _chebyshev(count: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev points, and the matrix from values there to the interpolant on a finer set."""
    nodes = (np.arange(count) + 0.5) * (np.pi / count)
    grid = (np.arange(_FINER * count) + 0.5) * (np.pi / (_FINER * count))
    k = np.arange(count)
    analyse = np.cos(k[:, None] * nodes[None, :]) * (2.0 / count)
    analyse[0] /= 2
    return np.cos(nodes), np.cos(grid[:, None] * k[None, :]) @ analyse


_RHO = np.array([1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 200.0, 1000.0])


def _polygons() -> Any:
    """24-gons around the ellipses with foci ±1, their upper halves (the rest is conjugate)."""
    angle = np.arange(13) * (np.pi / 12)
    wide, tall = (_RHO + 1 / _RHO) / 2, (_RHO - 1 / _RHO) / 2
    ellipse = wide[:, None] * np.cos(angle) + 1j * tall[:, None] * np.sin(angle)
    return ellipse / math.cos(np.pi / 24)


_POLYGONS = _polygons()


def _degree(line: Line, c: Counts, tolerance: float) -> int:
    """How many Chebyshev points keep the interpolation error of F below the tolerance.

    If |F| ≤ B on the ellipse with foci `low`, `high` and parameter ρ, the error in K points is at
    most 4 B ρ^{1−K} / (ρ − 1). B is convex in z, so its maximum over the ellipse is at most that
    over the corners of a polygon around it.
    """
    centre, half = (line.low + line.high) / 2, (line.high - line.low) / 2
    z = centre + half * _POLYGONS
    p = line.height + line.slope * z
    log_bound = c.m * np.log(np.max(np.abs(z) + np.abs(1 - z), axis=1))
    log_bound += c.n * np.log(np.max(np.abs(p) + np.abs(1 - p), axis=1))
    need = 1 + (np.log(4 / (_RHO - 1)) + log_bound - math.log(tolerance)) / np.log(_RHO)
    return min(400, max(2, math.ceil(float(need.min()))))
