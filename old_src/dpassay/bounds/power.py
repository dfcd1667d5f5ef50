"""The power of the joint test, the smallest detectable parameter, and the draws that a power needs.

The critical region is T ≥ its critical value, about (`ordering.approximate_critical_values`),
and the power is a binomial sum over it. These numbers serve for planning; they are not certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds.joint_test import SPENT_ON_SET, evidence
from dpassay.bounds.ordering import Contour, Counts, approximate_critical_values, contour, window_of
from dpassay.bounds.supremum import Lattice
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import last_reaching

#: How close the power at the smallest detectable value is to the power asked for, as a normal quantile.
_CLOSE = 0.05
#: More draws on one side than this many times those on the other add nothing.
_MORE = 10_000
#: Probabilities of events among which the best is sought, on the input on which they are less likely.
_LIKELY = (0.2, 0.1, 0.3, 0.05, 0.02, 0.5, 0.01, 1e-3, 1e-4)
#: Up to so many draws are few, and so many times as likely is much likelier: there a power of .9 by
#: approximate critical values is .78 to .87 in truth, and sometimes 0.
_FEW, _MANY_TIMES = 20, 5
#: Up to so many counts the exact power computes the p-value at each, of more at these quantiles; what is
#: detectable at fewer, which takes a third of the time.
_ALL, _KNOTS, _FEW_KNOTS = 24, np.linspace(0.02, 0.98, 7), (0.1, 0.5, 0.9)
#: How often a plan is raised with it, and by how much the power may then be too large.
_TURNS, _TOO_MUCH = 8, 0.015


def _few_counts(q: float, n: int, m: int, claim: Claim) -> bool:
    """Whether approximate critical values of an event of probability q are too optimistic.

    They are where the claim nearly allows that the event always happens on the first input (if even n
    hits of n are not rejected, nothing is), and where few hits on the second input may be many on the
    first.
    """
    p = float(claim.region(q))
    return n * (1 - p) <= _FEW or (m * q <= _FEW and p >= _MANY_TIMES * q)


@lru_cache(maxsize=256)
def _rejected(q: float, n: int, m: int, claim: Claim, gamma: float) -> Contour:
    """About the smallest i at which the test at level γ rejects, for every j that q makes likely."""
    window = window_of(_rounded(float(claim.region(q)), q, n, m), SPENT_ON_SET * gamma)
    level = approximate_critical_values(n, m, gamma)
    return contour(window, claim, lambda j: level(j) ** 2)


@dataclass(frozen=True, eq=False)
class _ExactContour:
    """The smallest i that the exact test rejects: at the knots; in between, about."""

    about: Contour
    knots: IntArray
    off: IntArray  # by how much `about` is too small there

    def __call__(self, j: IntArray) -> IntArray:
        found = self.about(j) + np.round(np.interp(j, self.knots, self.off)).astype(np.int64)
        return np.asarray(np.maximum.accumulate(found))


@lru_cache(maxsize=256)
def _rejected_exactly(
    q: float, n: int, m: int, claim: Claim, gamma: float, most: int = 0
) -> _ExactContour:
    """The same by exact p-values: at each likely count j if there are at `most` so many, else at some."""
    first, last = (int(binom.ppf(tail, m, q)) for tail in (1e-4, 1 - 1e-4))
    counts = np.arange(first, last + 1)
    every = counts.size <= most
    some = binom.ppf(_KNOTS if most else _FEW_KNOTS, m, q).astype(np.int64)
    knots = counts if every else np.unique(some)
    about = _rejected(q, n, m, claim, gamma)
    off = [
        _least_rejected(Counts(i, n, j, m), claim, gamma, every) - i
        for j, i in zip(knots.tolist(), about(knots).tolist(), strict=True)
    ]
    return _ExactContour(about, knots, np.array(off))


def _rounded(p: float, q: float, n: int, m: int) -> Counts:
    return Counts(round(n * p), n, round(m * q), m)


def power(p: float, q: float, n: int, m: int, claim: Claim, gamma: float) -> float:
    """About the probability that the test at level γ rejects the claim when the truth is (p, q)."""
    return _power(p, q, n, m, claim, gamma, _rejected)


def exact_power(p: float, q: float, n: int, claim: Claim, gamma: float) -> float:
    """The probability that the test at level γ rejects the claim with n draws a side.

    By exact p-values, with an error of 2e-4 where few counts j are likely. `power` is too large at a
    corner of what the claim allows, and where counts are few.
    """
    return _power(p, q, n, n, claim, gamma, partial(_rejected_exactly, most=_ALL))


def _power(
    p: float,
    q: float,
    n: int,
    m: int,
    claim: Claim,
    gamma: float,
    rejected: Callable[..., Callable[[IntArray], IntArray]],
) -> float:
    if p <= claim.region(q):
        return 0.0
    n, m = min(n, _MORE * m), min(m, _MORE * n)
    window = window_of(_rounded(p, q, n, m), SPENT_ON_SET * gamma)
    lattice = Lattice(window, rejected(q, n, m, claim, gamma))
    return float(lattice.tail(np.array([q]), np.array([p]))[0])


def _least_rejected(c: Counts, claim: Claim, gamma: float, exactly: bool) -> int:
    """The smallest i that the exact test rejects beside j, near a first guess; n + 1 if none is.

    The p-value is nearly normal in i: two of them give i, or one where the normal distribution begins a
    search for it `exactly`.
    """
    n = c.n

    def missing(i: int) -> float:
        """By how much the normal quantile of the p-value is too small to reject; limited."""
        if not 0 <= i <= n:
            return -1.0 if i > n else 1.0
        p_value = evidence(c._replace(i=i), claim, gamma, math.inf).p_value
        return float(ndtri(min(max(p_value, gamma / 10), 0.5)) - ndtri(gamma))

    first = min(max(c.i, 0), n)
    noise = n * float(normal_limit(np.array([max(c.j, 0.5) / c.m]), n, c.m, claim)[1][0])
    short = missing(first)
    low = high = min(max(first + math.ceil(short * noise), 0), n + 1)  # to where it rejects
    if not exactly and high not in (first, n + 1):
        rest = missing(high)
        rate = (short - rest) / (high - first)  # of a unit of i
        return min(high + math.ceil(rest / rate), n + 1) if rate > 0 else high
    step = 1
    while missing(low) <= 0 and low >= 0:  # low is not rejected, high is
        low, high, step = low - step, low, 2 * step
    while high == low or missing(high) > 0:
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missing(middle) <= 0 else (middle, high)
    return high


def smallest_detectable(c: Counts, claim: Claim, gamma: float) -> float:
    """`detectable` for an event about as likely as the one that was counted."""
    found = detectable(_kept(c.j, c.m), c.n, c.m, claim, gamma)
    if math.isinf(found) and claim.symmetric:
        # p ≤ 1 limits θ at a likely event; the complement, with the sides swapped, is an unlikely one
        found = detectable(_kept(c.n - c.i, c.n), c.m, c.n, claim, gamma)
    return found


def best_detectable(
    n: int, m: int, claim: Claim, gamma: float, enough: Callable[[float], bool]
) -> float:
    """The smallest value detectable by the best of some events; stops at the first that is `enough`."""
    best = math.inf
    for q in _LIKELY:
        best = min(best, detectable(q, n, m, claim, gamma))
        if enough(best):
            break
    return best


def shown(c: Counts, claim: Claim) -> tuple[float, float]:
    """The value of the claim's parameter at the observed frequencies, and about its standard error."""
    p, q = (min(max(hits / n, 0.5 / n), 1 - 0.5 / n) for hits, n in ((c.i, c.n), (c.j, c.m)))
    less, more = p - math.sqrt(p * (1 - p) / c.n), q + math.sqrt(q * (1 - q) / c.m)
    at = np.array([[p, max(less, 0.0), p], [q, q, min(more, 1.0)]])
    value, with_less, with_more = claim.needed(*at).tolist()
    return value, math.hypot(value - with_less, value - with_more)


def _kept(hits: int, n: int) -> float:
    """A frequency away from 0 and 1, rounded so that results for it can be cached."""
    return float(f"{min(max(hits / n, 0.5 / n), 1 - 0.5 / n):.2g}")


@lru_cache(maxsize=4096)
def detectable(q: float, n: int, m: int, claim: Claim, gamma: float, chance: float = 0.9) -> float:
    """The smallest value of the claim's parameter that would be detected with that probability.

    For an event of probability q on the second side, whose probability on the first side is the largest
    that the true parameter allows. ∞ if no value would be detected.
    """
    limit = claim.largest
    goal = float(ndtri(chance))
    rejected = _rejected_exactly if _few_counts(q, n, m, claim) else _rejected

    def score(value: float) -> float:
        """The power as a normal quantile, in which it is nearly linear."""
        p = float(claim.whole.region(q, min(value, limit)))
        found = _power(p, q, n, m, claim, gamma, rejected)
        return float(ndtri(min(max(found, 1e-12), 1 - 1e-12)))

    low, low_score = claim.value, float(ndtri(gamma))
    allowed, noise = (float(found[0]) for found in normal_limit(np.array([q]), n, m, claim))
    # on the scale of asin √p, on which the noise is the same everywhere
    spread = 2 * math.sqrt(max(allowed * (1 - allowed), 1e-18))
    away = (approximate_critical_values(n, m, gamma)(m * q) + goal) * noise / spread
    p = math.sin(min(math.asin(math.sqrt(allowed)) + away, math.pi / 2)) ** 2
    first = claim.needed(p, q) - low
    step = first if 0 < first < 60 else max(0.25 * low, 0.05)
    high, step = low + step, 0.2 * step
    if abs((high_score := score(high)) - goal) <= _CLOSE:
        return min(high, limit)
    while high_score < goal:  # a fifth of that more, and two fifths, and so on
        low, low_score = high, high_score
        high, step = low + step, 2 * step
        if high > claim.value + 60 or low >= limit:
            return math.inf
        high_score = score(high)
    # in −x the power falls, and the last −x that reaches it is the smallest value that is detected
    (found, _), _ = last_reaching(
        lambda x: score(-x), goal, (-high, high_score), (-low, low_score), close=_CLOSE, steps=5
    )
    return min(-found, limit)


def draws_needed(
    p: float, q: float, claim: Claim, gamma: float, chance: float = 0.9, most: int = 10**9
) -> int | None:
    """How many draws a side reject the claim with that chance when the truth is (p, q)."""
    if p <= claim.region(q):
        return None
    allowed, noise = (float(found[0]) for found in normal_limit(np.array([q]), 1, 1, claim))
    # z grows by this with √n; a smaller rate would take more than `most` draws
    goal, rate = float(ndtri(chance)), max((p - allowed) / noise, 1e-3 / math.sqrt(most))
    low, high = 0, most + 1  # draws that do not suffice, and draws that do
    n = ((goal - float(ndtri(gamma))) / rate) ** 2
    for turn in range(100):
        tried = int(min(max(round(n), low + 1), high - 1))
        found = power(p, q, tried, tried, claim, gamma)
        enough = found >= chance
        low, high = (low, tried) if enough else (tried, high)
        if high - low <= max(1, high // 200) or low >= most:
            break
        # as a normal quantile the power is nearly linear in √n; and a little beyond, to close in
        z = float(ndtri(min(max(found, 1e-9), 1 - 1e-9)))
        n = (math.sqrt(tried) + (goal - z) / rate) ** 2 * (0.998 if enough else 1.002)
        if high > most:
            n = max(n, tried * (1 + 0.002 * 4**turn))
        elif turn % 3 == 2 or not low < n < high:
            n = (low + high) / 2
    return high if high <= most else None


def draws_needed_exactly(
    p: float, q: float, claim: Claim, gamma: float, chance: float
) -> int | None:
    """`draws_needed`, raised where the exact power with as many is less than the chance asked for."""
    n = draws_needed(p, q, claim, gamma, chance)
    if n is None:
        return n
    goal, low, high = float(ndtri(chance)), 0, None
    for _ in range(_TURNS):  # as a normal quantile the power is nearly linear in √n
        found = exact_power(p, q, n, claim, gamma)
        enough = found >= chance
        low, high = (low, n) if enough else (n, high)
        if enough and (found <= chance + _TOO_MUCH or not low):
            break
        short = goal - float(ndtri(min(max(found, 1e-9), 1 - 1e-9)))
        n = math.ceil((math.sqrt(n) * (1 + short / (goal - float(ndtri(gamma))))) ** 2) + 1
        if high is not None:
            if high - low <= max(2, high // 100):
                break
            n = n if low < n < high else (low + high) // 2
    return n if high is None else high


def normal_limit(
    q: FloatArray, n: FloatArray | int, m: FloatArray | int, claim: Claim
) -> tuple[FloatArray, FloatArray]:
    """g(q), and the standard error of i/n − g(j/m) where the claim just holds."""
    allowed, slope = claim.region_and_slope(q)
    allowed = allowed.clip(0.0, 1.0)
    variance = allowed * (1 - allowed) / n + slope**2 * q * (1 - q) / m
    return allowed, np.sqrt(np.maximum(variance, 1e-18))
