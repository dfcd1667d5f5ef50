"""The ordering of the joint test: which pairs of counts are as far from the claim as those seen.

See `joint_test`. With the test statistic T² = min over p ≤ g(q) of 2 [n kl(i/n, p) + m kl(j/m, q)], a
likelihood ratio, the set {T ≥ t} is i ≥ i*(j), and i* is what this module finds.

A p-value needs an i* that leaves out no outcome with a larger T, for one T that does not depend on the
draws. kl is jointly convex and {p ≤ g(q)} is convex, so T² is a convex function of (i, j): i* is
concave in j for a fixed t, a chord between two solutions lies below it, and more outcomes than needed
belong to the set. Where g is slow to evaluate, T is that of a function g̃ with corners on the graph of g,
linear between them, at probabilities p fixed by n and m alone: on the window concave as g is, and growing
with the claim's parameter as g does. Left of its first corner, at q < 10⁻³/(n + m) if the window begins
at j = 0, g̃ is constant. That can only make T of observed counts with j = 0 smaller, and the set larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, logit, ndtri, rel_entr

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds import clopper_pearson
from dpassay.privacy.claims import Claim

#: The number of counts j at which a contour is solved for first. It is interpolated between them, and
#: solved for at more of them where the error may exceed _BEND standard deviations of i.
_KNOTS, _BEND = 128, 2e-3
#: Points of a search for the projection, and the largest error of half of T².
_ALONG, _DISTANCE = np.linspace(0.0, 1.0, 34), 5e-6
#: Probabilities are kept off 0 and 1 by this much, so that logarithms exist.
_INSIDE = 1e-300, 1 - 1e-16


class Counts(NamedTuple):
    """Hits of an event: i of n on the first side, j of m on the second."""

    i: int
    n: int
    j: int
    m: int


@dataclass(frozen=True)
class Window:
    """The counts that matter, and confidence limits of p and q of level 1 − b."""

    counts: Counts
    spent: float
    cut_off: float  # more than the probability of all counts outside, wherever p and q are
    p_low: float
    p_high: float
    q_low: float
    q_high: float
    first_i: int
    last_i: int
    first_j: int
    last_j: int


def window_of(c: Counts, spent: float) -> Window:
    """Confidence limits of level 1 − spent, and the counts that matter inside them."""
    hits, sizes = np.array([c.i, c.j]), np.array([c.n, c.m])
    side = spent / 4  # two limits for p, two for q
    cut_off = 1e-4 * spent
    low, high = clopper_pearson.lower(hits, sizes, side), clopper_pearson.upper(hits, sizes, side)
    first, last = count_range(sizes, low, cut_off)[0], count_range(sizes, high, cut_off)[1]
    limits, counts = (np.ravel(pair, "F").tolist() for pair in ([low, high], [first, last]))
    return Window(c, spent, cut_off, *limits, *counts)


def count_range(
    n: int | IntArray, p: FloatArray | float, cut_off: float
) -> tuple[IntArray, IntArray]:
    """Counts outside have probability below a quarter of `cut_off` on either side (Bernstein)."""
    reach = math.sqrt(2 * math.log(4 / cut_off))
    # the linear term takes over where counts are few
    spread = reach * np.sqrt(n * p * (1 - p)) + reach**2 / 2 + 1
    first = np.maximum(np.floor(n * p - spread), 0).astype(np.int64)
    return first, np.minimum(np.ceil(n * p + spread), n).astype(np.int64)


def approximate_critical_values(n: int, m: int, gamma: float) -> Callable[[Any], Any]:
    """About the critical value of T at level γ, by j: the normal quantile, and more for few counts.

    It need only be about right: the supremum is the exact probability of the region.
    """
    least = max(-float(ndtri(gamma)), 0.1) + 0.8 / math.sqrt(min(n, m))
    return lambda j: least + 1.5 / (j + 4)


#: T², or T² by j.
Target = float | Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Contour:
    """i*(j), the smallest i with T² ≥ target, or a little less: a line on each piece between knots."""

    knots: FloatArray  # counts j at which pieces begin
    starts: FloatArray  # of each piece
    rises: FloatArray
    n: int
    seen: Counts | None = None  # the observed counts belong to the region, whatever the rounding

    def __call__(self, j: IntArray) -> IntArray:
        """At counts j in ascending order: non-decreasing."""
        piece = np.maximum(np.searchsorted(self.knots, j, side="right") - 1, 0)
        real = self.starts[piece] + self.rises[piece] * (j - self.knots[piece])
        later = np.append(np.minimum.accumulate(self.starts[::-1])[::-1][1:], np.inf)
        least = np.ceil(np.minimum(real, later[piece]) - 1e-6).astype(np.int64)
        if self.seen is not None:
            least = np.where(j <= self.seen.j, np.minimum(least, self.seen.i), least)
        return np.asarray(least)


def seen_contour(
    window: Window, claim: Claim, target: Target | None = None, theta: float | None = None
) -> Contour:
    """The contour of outcomes as far from the claim as the observed counts, or of a smaller T²."""
    if target is None:
        target = observed_distance(window, claim, theta)
    return replace(contour(window, claim, target, theta), seen=window.counts)


def contour(window: Window, claim: Claim, target: Target, theta: float | None = None) -> Contour:
    """i* on the window, for a T² that does not rise with j.

    On a piece the target is at least that at its end, t. The contour of t is concave and does not fall
    with j, so that its chord is a lower bound of i* which does not fall either.
    """
    c, boundary = window.counts, _boundary(window, claim, theta)
    first, last = window.first_j, window.last_j
    knots = np.unique(np.linspace(first, last, min(_KNOTS, last - first + 1)).round())
    limit = _BEND * math.sqrt(max(c.i * (1 - c.i / c.n), 1.0))
    for turn in range(5):
        # at each knot with its own target, and where chords begin, with that of their ends
        wide = np.append(np.diff(knots) > 1, False) if callable(target) else np.zeros(0, np.int64)
        ends = np.append(knots[1:], knots[-1])[wide]
        wanted = target(np.append(knots, ends)) if callable(target) else np.array(target)
        at = np.append(knots, knots[wide])
        found = c.n * _contour_p(at / c.m, np.broadcast_to(wanted, at.shape), c, boundary)
        values, starts = found[: knots.size], found[: knots.size].copy()
        starts[wide] = np.minimum(found[knots.size :], starts[wide])
        # nearly all that counts lies in the middle
        middle = (knots[1:] > (3 * first + last) / 4) & (knots[:-1] < (first + 3 * last) / 4)
        gap = np.where(middle, _chord_gap(knots, values), 0.0)
        excess = np.maximum(gap, (values - starts)[:-1]) / limit
        if turn == 4 or excess.max(initial=0.0) <= 1:
            break
        # each piece is divided into so many parts, at most 8
        share = np.arange(1, 8)[:, None] / np.clip(np.ceil(np.sqrt(excess)), 1, 8)
        new = np.where(share < 1, knots[:-1] + share * np.diff(knots), knots[:-1])
        knots = np.union1d(knots, new.round())
    # a piece at whose end no count is left ends with the last count
    ends = np.where(starts[:-1] <= c.n, np.minimum(values[1:], c.n), values[1:])
    rises = np.maximum(ends - starts[:-1], 0.0) / np.diff(knots)
    return Contour(knots, starts, np.append(rises, 0.0), c.n)


def _chord_gap(knots: FloatArray, values: FloatArray) -> FloatArray:
    """About how far a contour lies above its chords.

    A chord of length h is off by at most hs/4 if the contour bends by s at one place inside, by half of
    that if it bends evenly; the bends seen at its two ends add up to s at least.
    """
    step = np.diff(knots)
    bend = np.abs(np.diff(np.diff(values) / step))
    bend = np.pad(bend, 1, mode="edge") if bend.size else np.zeros(step.size + 1)
    return np.where(step > 1, (bend[:-1] + bend[1:]) * step / 4, 0.0)


#: g and its slope, fast enough to be called thousands of times.
Boundary: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@lru_cache(maxsize=16)
def _boundary(window: Window, claim: Claim, theta: float | None = None) -> Boundary:
    theta = claim.value if theta is None else theta
    if claim.quick:
        return partial(claim.region_and_slope, theta=theta)
    # corners at logits of p that depend on n and m alone; only those that the window needs are solved for
    c = window.counts
    ends = math.log(1e3 * (c.n + c.m))
    step = min(1.6 * c.n**-0.25, 0.15)  # chords are off by less than .1 standard deviations
    lowest = claim.region(max(window.first_j / c.m, 1e-3 / (c.n + c.m)), theta)
    first = math.floor(np.clip(logit(lowest), -ends, ends) / step) - 1
    p = np.append(expit(step * np.arange(first, math.ceil(ends / step))), 1.0)
    q = np.asarray(claim.region_inverse(p, theta))
    with np.errstate(divide="ignore", over="ignore"):
        rates = np.append(np.diff(p) / np.diff(q), 0.0)

    def chords(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        piece = np.maximum(np.searchsorted(q, x, side="right") - 1, 0)
        return np.asarray(np.interp(x, q, p)), np.asarray(rates[piece])

    return chords


def kl(x: FloatArray | float, p: FloatArray) -> FloatArray:
    """Binary Kullback–Leibler divergence, with 0 log 0 = 0."""
    found: FloatArray = np.maximum(rel_entr(x, p) + rel_entr(1 - x, 1 - p), 0.0)
    return found


def observed_distance(window: Window, claim: Claim, theta: float | None = None) -> float:
    """T² of the observed counts, from below, by a search for their projection along p = g(q).

    From q = j/m on, the derivative of the distance changes its sign once, from − to +, and does so
    before q reaches i/n, since g(q) ≥ q.
    """
    c, boundary = window.counts, _boundary(window, claim, theta)
    x, y = c.i / c.n, c.j / c.m
    low = float(logit(max(y, 1e-300)))
    high = min(max(float(logit(min(x, 1 - 1e-16))), low + 1e-9), 40.0)
    for _ in range(12):  # each is 33 times finer; past that neighbouring numbers are met
        u = low + (high - low) * _ALONG
        u[-1] = high  # to the last digit: where g comes up to 1 it matters
        q = expit(u)
        p, slope = boundary(q)
        p = p.clip(*_INSIDE)
        # the derivative of the distance by u
        with np.errstate(over="ignore"):
            pull = c.n * (x - p) / (p * (1 - p)) * slope
            rate = c.m * (q - y) - np.minimum(pull, 1e300) * q * (1 - q)
        ahead = rate >= 0
        past = int(np.argmax(ahead)) if ahead.any() else u.size - 1
        ends = [max(past - 1, 0), past]
        low, high = u[ends]
        # no more than this can it fall in between, at a kink or elsewhere
        if np.max(np.abs(rate[ends])) * (high - low) <= _DISTANCE:
            break
    q = expit(np.array([low, high]))
    # the claim also allows p below g(q)
    p = np.minimum(boundary(q)[0].clip(*_INSIDE), max(x, 1e-300))
    first, second = kl(np.array([[x], [y]]), np.array([p, q]))
    found = 2 * float(np.min(c.n * first + c.m * second))
    return max(found - 4 * _DISTANCE, 1e-12)  # from below: outcomes with the same T count as well


def _contour_p(y: FloatArray, target: FloatArray, c: Counts, boundary: Boundary) -> FloatArray:
    """For each y = j/m the x = i/n with T² = target; above 1 where there is none.

    x is the largest over q of the solutions of 2n kl(x, g(q)) = target − 2m kl(y, q): whatever q with
    2m kl(y, q) ≤ target is used, the x found is nowhere above the contour, and off by the square of the
    error in q. The best q has x = g + s·g(1−g)/n, y = q − s·g'·q(1−q)/m, s ≥ 0 (stationarity), where the
    distance grows with q − y, and nearly like a power of it: a secant in logarithms, and bisection where
    it strays.
    """
    low = np.maximum(y, 1e-3 / (c.n + c.m))
    high = np.minimum(y + _kl_reach(y, target / (2 * c.m)), 1.0)
    q = (low + high) / 2
    last = np.array([0.0]), np.array([0.0])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # where g is flat
        width: FloatArray = np.array(np.inf)
        for turn in range(20):
            p, slope = boundary(q)
            p = p.clip(*_INSIDE)
            multiplier = c.m * np.maximum(q - y, 0.0) / (slope * q * (1 - q))
            x = np.minimum(p + multiplier * p * (1 - p) / c.n, 1.0)
            first, second = kl(np.array([x, y]), np.array([p, q]))
            distance = c.n * first + c.m * second
            reached = (x >= 1) | (distance >= target / 2)
            low, high = np.where(reached, low, q), np.where(reached, q, high)
            here = np.log(q - y), np.log(distance / (target / 2))
            power = (here[1] - last[1]) / (here[0] - last[0]) if turn else 2.0
            power = np.minimum(np.maximum(power, 0.5), 8.0)
            power = np.where(np.abs(here[0] - last[0]) > 1e-9, power, 2.0)
            step = y + (q - y) * np.exp(-here[1] / power)
            near = 1e-3 * (q - y)  # a step that has arrived may miss the bracket by rounding
            inside = (x < 1) & (low - near <= step) & (step <= high + near)
            if turn % 3 == 2:  # secants that leave the bracket as it was give way to bisection
                inside &= high - low < 0.5 * width
                width = high - low
            step = np.where(inside, np.minimum(np.maximum(step, low), high), (low + high) / 2)
            moved = (np.abs(step - q) > near) & (high - low > near)
            q, last = step, here
            if not moved.any():
                break
    q = np.where(c.m * kl(y, q) > target / 2, low, q)
    rest = np.maximum(target / 2 - c.m * kl(y, q), 0.0) / c.n
    return _kl_inverse(boundary(q)[0].clip(*_INSIDE), rest, beyond=1.0 + 2.0 / c.n)


def _kl_reach(p: FloatArray, divergence: FloatArray | float) -> FloatArray:
    """An upper bound of x − p for kl(x, p) or kl(p, x) = divergence.

    From kl ≥ 2d² (Pinsker) and kl ≥ d²/(2 max(x, p)), d the distance.
    """
    d = np.asarray(divergence, dtype=float)
    return np.asarray(np.minimum(np.sqrt(d / 2), d + np.sqrt(d * (d + 2 * p))))


def _kl_inverse(p: FloatArray, divergence: FloatArray, beyond: float) -> FloatArray:
    """The x ≥ p with kl(x, p) = divergence, by Newton's method from above; `beyond` if none."""
    none = -np.log(p) <= divergence
    x = np.minimum(p + _kl_reach(p, divergence), 1 - 1e-16)
    odds = logit(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(12):
            step = (kl(x, p) - divergence) / (logit(x) - odds)
            step = np.where(np.isfinite(step), step, 0.0)
            x = np.minimum(np.maximum(x - step, p), 1 - 1e-16)
            if not (np.abs(step) >= 1e-12).any():  # the remaining error is its square
                break
    return np.where(none, beyond, x)
