"""The certified supremum of the joint test: an upper bound of sup F, not the maximum on a grid.

See `joint_test`. F(q) = Σ_j Bin(j; m, q) · P(Bin(n, g(q)) ≥ i*(j)) is a polynomial in q
where g is a line, and a polynomial is pinned down by its values at Chebyshev points.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import dct
from scipy.special import gammaln, logit, xlog1py, xlogy

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds.ordering import Counts, Window, count_range
from dpassay.privacy.claims import Claim

#: The interpolant is evaluated at this many times its number of points.
_FINER = 32
#: The most Chebyshev points on a line.
_MOST = 400
#: Where a line is compared with g, on its own interval.
_ALONG = np.linspace(0.0, 1.0, 9)
#: Absolute error allowed to the interpolation of F, relative to the share spent on C.
_TOLERANCE = 0.005
#: How far above g its lines may lie, in standard deviations of a frequency, and how many there may be.
_GAP, _MOST_LINES = 3e-3, 32
#: Windows of more counts than this are put into groups, about half as many: a bound lies 0.003 standard
#: deviations lower for it, and takes a third of the time.
_COUNTED = 1 << 13


def supremum(lattice: Lattice, claim: Claim, theta: float | None = None) -> float:
    """An upper bound of sup F, within a small fraction of a per cent."""
    window = lattice.window
    limits = claim.region_inverse(np.array([window.p_low, window.p_high]), theta)
    low, high = max(window.q_low, float(limits[0])), min(window.q_high, float(limits[1]))
    if low > window.q_high:
        return 0.0  # nothing in C satisfies the claim
    if high <= low:  # past `high` p stays at its limit and F does not rise with q
        return float(lattice.tail(np.array([low]), np.array([window.p_high]))[0]) + window.cut_off
    lines = _tangents(claim, theta, low, high, window.counts.n)
    tolerance = _TOLERANCE * window.spent
    counts = _degrees(lines, window.counts, tolerance)
    if counts.max() > _MOST:
        return 1.0  # no certificate at this cost
    low, high, height, slope = np.repeat(lines, counts, axis=1)
    points = [np.cos((np.arange(count) + 0.5) * (np.pi / count)) for count in counts]  # Chebyshev's
    q = low + (high - low) / 2 * (1 + np.concatenate(points))
    values = lattice.tail(q, np.clip(height + slope * q, 0.0, 1.0))
    largest = 0.0
    for part in np.split(values, np.cumsum(counts)[:-1]):
        # the interpolant on a finer set of Chebyshev points, by cosine transforms
        terms = np.zeros(_FINER * part.size)
        terms[: part.size] = dct(part) / (2 * part.size)
        largest = max(largest, float(dct(terms, type=3).max()))
    # errors of the values grow by less than 5 (Lebesgue's constant). Ehlich & Zeller: |polynomial| is at
    # most its maximum on N Chebyshev points / cos(π·degree/2N); with all errors added it is not negative
    errors = 5 * (window.cut_off + lattice.slack * float(values.max(initial=0.0)))
    return (largest + tolerance + errors) / math.cos(math.pi / (2 * _FINER))


class Lattice:
    """Binomial probabilities on a window, for many success probabilities at once.

    Many counts are put into groups (`Grouped`). The result is then never too small:

        Σ (masses of j from above) · (tail of i from above) / (totals of j and i from below),

    the tail of a group of j beginning at the group of i that holds i* of its first j: i* does not fall
    with j, so that this is too early for all others, if anything.
    """

    def __init__(self, window: Window, least: Callable[[IntArray], IntArray]) -> None:
        c, self.window = window.counts, window
        self.j, self.i = (
            (LogBinomial if last - first < _COUNTED else Grouped)(n, first, last, window.cut_off)
            for n, first, last in (
                (c.m, window.first_j, window.last_j),
                (c.n, window.first_i, window.last_i),
            )
        )
        self.row = np.clip((least(self.j.starts) - self.i.first) // self.i.step, 0, self.i.size)
        self.slack = 0.0  # the largest relative error of `tail`, which is never too small

    def tail(self, q: FloatArray, p: FloatArray) -> FloatArray:
        """Σ_j Bin(j; m, q) P(Bin(n, p) ≥ i*(j)), for each q with its p; or a little more."""
        out = np.empty_like(q)
        step = max(1, (1 << 17) // (self.j.size + self.i.size))
        for start in range(0, q.size, step):
            part = slice(start, start + step)
            first_j, mass_j, least_j, more_j = self.j.mass_and_total(q[part])
            first_i, mass_i, least_i, more_i = self.i.mass_and_total(p[part])
            above = np.zeros((mass_i.shape[0], mass_i.shape[1] + 1))
            np.cumsum(mass_i[:, ::-1], axis=1, out=above[:, -2::-1])
            row = sliding_window_view(self.row, mass_j.shape[1])[first_j] - first_i[:, None]
            np.clip(row, 0, mass_i.shape[1], out=row)
            joint = np.einsum("kj,kj->k", mass_j, np.take_along_axis(above, row, axis=1))
            # masses that are exact have the same total from above and below, to the last digit: no slack
            most = mass_j.sum(axis=1), above[:, 0]
            least = least_j if least_j is not None else most[0]
            least = least * (least_i if least_i is not None else most[1])
            out[part] = joint / least
            excess = math.log(float(np.max(most[0] * most[1] / least))) + more_j + more_i
            self.slack = max(self.slack, math.expm1(excess))
        return out


class LogBinomial:
    """Binomial masses on a window of counts."""

    step = 1  # counts in a group

    def __init__(self, n: int, first: int, last: int, cut_off: float) -> None:
        k = np.arange(first, last, dtype=float)
        self.n, self.first, self.size, self.cut_off = n, first, last - first + 1, cut_off
        self._ways = np.concatenate([[0.0], np.cumsum(np.log((n - k) / (k + 1)))])

    @property
    def starts(self) -> IntArray:
        """The first count of each group."""
        return self.first + self.step * np.arange(self.size)

    def _rows(self, p: FloatArray, odds: FloatArray) -> tuple[IntArray, FloatArray]:
        """For each success probability its first group, and in a row the log-masses from there.

        The rows hold all of each distribution but half of `cut_off`, relative to its largest mass. The
        odds are logits, for groups less that of their centre.
        """
        ends = (np.array(count_range(self.n, p, self.cut_off)) - self.first) // self.step
        low, high = np.minimum(np.maximum(ends, 0), self.size - 1)
        width = int(np.max(high - low)) + 1
        low = np.minimum(low, self.size - width)
        mode = (np.floor((self.n + 1) * p).astype(np.int64) - self.first) // self.step
        logs = sliding_window_view(self._ways, width)[low]  # a copy
        logs += odds[:, None] * (self.step * np.arange(float(width)))
        logs -= logs[np.arange(p.size), np.clip(mode - low, 0, width - 1)][:, None]
        return low, logs

    def mass_and_total(
        self, p: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray | None, float]:
        """For each success probability its first count, and in a row the masses from there; their total
        from below, None if it is their sum; and the log of the largest factor by which a mass is too
        large."""
        low, logs = self._rows(p, logit(p).clip(-745.0, 745.0))
        return low, np.exp(logs, out=logs), None, 0.0

    def masses(self, p: FloatArray) -> FloatArray:
        """The probabilities of all counts of the window, a row for each success probability."""
        first, found, *_ = self.mass_and_total(p)
        out = np.zeros((p.size, self.size))
        np.put_along_axis(out, first[:, None] + np.arange(found.shape[1]), found, axis=1)
        return np.asarray(out / found.sum(axis=1, keepdims=True))


class Grouped(LogBinomial):
    """Binomial masses of groups of counts, from above; their total from below.

    log C(n, k) is concave in k: nowhere above its tangent at the middle of a group, nowhere below the
    chord from one middle to the next. Along a line of slope u, with b counts in a group,

        b ≤ Σ_{|k| ≤ (b−1)/2} e^{uk} = sinh(bu/2) / sinh(u/2) ≤ b e^{(b²−1)u²/24}.

    Masses along tangents stay polynomials in p, with coefficients hardly above those of the binomial
    ones, so that what bounds the interpolation of those serves for these.
    """

    def __init__(self, n: int, first: int, last: int, cut_off: float) -> None:
        self.step = 2 * ((last - first) // _COUNTED) + 1  # odd, so that a group has a middle
        size = -(-(last - first + 1) // self.step)
        first = max(min(first, n + 1 - size * self.step), 0)
        self.n, self.first, self.size, self.cut_off = n, first, size, cut_off
        k = (self.starts + self.step // 2).astype(float)  # the middles
        centre = float(np.clip(k[size // 2], 1, n - 1))
        self._odds = float(logit(centre / n))
        self._ways = _log_masses(k, n, centre)  # with log C(n, k) but for the line −k·odds
        # of C(n, k + 1) / C(n, k), which is 0 at n: any slope so steep keeps a tangent above
        self._slope = np.log(np.maximum(n - k, 0.5) / (k + 1))
        self._bend = 1 / (first + 1) + 1 / max(n - first - size * self.step + 1, 1)

    def mass_and_total(self, p: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, float]:
        """Where the groups of each p begin, masses from above and their sum from below, all ÷ b; and the
        log of how many times too large a mass may be: by the bound on sinh, and by the tangent, which at
        k counts from the middle is at most k²/2 times the largest second difference of log C above."""
        b, odds = self.step, logit(p).clip(-745.0, 745.0)
        low, logs = self._rows(p, odds - self._odds)
        # Jensen: the mean of b numbers on a chord, of which the first is its lower end
        share = (b - 1) / (2 * b)
        chords = np.exp((1 - share) * logs[:, :-1] + share * logs[:, 1:])
        total = chords.sum(axis=1) + np.exp(logs[:, -1]) / b
        slopes = sliding_window_view(self._slope, logs.shape[1])[low]
        squares = (odds[:, None] + slopes) ** 2 * ((b**2 - 1) / 24)
        logs += squares
        more = float(squares.max()) + b**2 / 8 * self._bend
        return low, np.exp(logs, out=logs), total, more


def _log_masses(k: FloatArray, n: int, centre: float) -> FloatArray:
    """log Bin(k; n, centre/n), all short of the same number; −∞ past n.

    By Stirling's formula, and the divergence from the centre: to about √n·10⁻¹⁵ where k is a few standard
    deviations from it, which differences of log-factorials (n log n·10⁻¹⁶) are not.
    """
    rest, away = np.maximum(n - k, 0.0), k - centre
    divergence = xlog1py(k, away / centre) + xlog1py(rest, -away / (n - centre))
    found = -divergence - _after_stirling(k) - _after_stirling(rest)
    return np.where(k > n, -np.inf, found)


def _after_stirling(k: FloatArray) -> FloatArray:
    """log k! − k log k + k − ½ log 2π."""
    few = np.minimum(k, 64.0)
    exact = gammaln(few + 1) - xlogy(few, few) + few - 0.5 * math.log(2 * math.pi)
    many = np.maximum(k, 64.0)
    return np.where(k < 64, exact, 0.5 * np.log(many) + 1 / (12 * many) - 1 / (360 * many**3))


def _tangents(claim: Claim, theta: float | None, low: float, high: float, n: int) -> FloatArray:
    """Lines whose minimum is nowhere below g on [low, high], and little above it.

    A column is a line: p = height + slope·q on [low, high]. The rows are low, high, height and slope.

    On its own piece a line is at most 1: its slope is not negative, and it meets the next line left of
    where that one touches g ≤ 1. The last one touches g at the end, `high`.
    """
    ends = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    count = 3
    while True:
        # evenly spread where a binomial proportion has constant variance
        touch = np.sin(np.linspace(*ends, count)) ** 2
        value, slope = claim.region_and_slope(touch, theta)
        value, slope = np.clip(value, 0.0, 1.0), np.minimum(slope, 1e300)
        slope, first = np.unique(slope, return_index=True)
        slope, value, touch = slope[::-1], value[first][::-1], touch[first][::-1]
        height = value - slope * touch
        cross = np.clip(np.diff(height) / -np.diff(slope), touch[:-1], touch[1:])
        edges = np.concatenate([[low], cross, [high]])
        gap = height[:-1] + slope[:-1] * cross - claim.region_and_slope(cross, theta)[0]
        noise = math.sqrt(max(float(np.min(value * (1 - value))), 1 / n) / n)
        excess = float(np.max(gap, initial=0.0)) / (_GAP * noise)
        if excess <= 1 or count >= _MOST_LINES:
            break
        # the gap falls with the square of their number
        more = math.ceil(1.05 * (count - 1) * math.sqrt(excess)) + 1
        count = min(max(count + 1, more), _MOST_LINES)
    # a tangent is nowhere below g; each line is raised to g at some places, in case a slope is wrong
    piece = edges[:-1, None] + np.diff(edges)[:, None] * _ALONG
    g, _ = claim.region_and_slope(piece, theta)
    short = np.minimum(g, 1.0) - (height[:, None] + slope[:, None] * piece)
    height = height + 1e-13 + np.maximum(short.max(axis=1), 0.0)
    keep = (edges[1:] > edges[:-1]) | (edges.size == 2)
    return np.array([edges[:-1], edges[1:], height, slope])[:, keep]


#: Parameters ρ of ellipses with foci ±1, and the upper halves of 24-gons around them.
_RHO = np.array([1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 200.0, 1000.0])
_ANGLE = np.arange(13) * (np.pi / 12)
_POLYGONS = np.add(
    np.outer(_RHO + 1 / _RHO, np.cos(_ANGLE)), 1j * np.outer(_RHO - 1 / _RHO, np.sin(_ANGLE))
) / (2 * math.cos(np.pi / 24))


def _degrees(lines: FloatArray, c: Counts, tolerance: float) -> IntArray:
    """How many Chebyshev points keep the interpolation error of F below the tolerance, on each line.

    If |F| ≤ B on the ellipse with foci `low`, `high` and parameter ρ, the error in K points is at
    most 4 B ρ^{1−K} / (ρ − 1). B is convex in z, so its maximum over the ellipse is at most that
    over the corners of a polygon around it.
    """
    low, high, height, slope = lines[:, :, None, None]
    z = (low + high) / 2 + (high - low) / 2 * _POLYGONS
    p = height + slope * z
    log_bound = c.m * np.log(np.max(np.abs(z) + np.abs(1 - z), axis=2))
    log_bound += c.n * np.log(np.max(np.abs(p) + np.abs(1 - p), axis=2))
    need = 1 + (np.log(4 / (_RHO - 1)) + log_bound - math.log(tolerance)) / np.log(_RHO)
    return np.asarray(np.maximum(2, np.ceil(np.minimum(need.min(axis=1), 1e9))), dtype=np.int64)
