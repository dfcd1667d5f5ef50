"""Membership inference with canaries: exact tests of a claim from one training run.

m canaries were included by independent fair coins. From the output of the run alone (and from what is
independent of the coins) r of the coins are guessed, and v guesses are right. If the claim holds for each
coin, v cannot be large; every bound here is an upper bound of P(V ≥ v), for every m, r and v: exact.

- ε-DP: given the output, each guess is right with probability e^ε/(1 + e^ε) at most, whatever the others
  are: V is at most W ~ Bin(r, e^ε/(1 + e^ε)) (Steinke, Nasr & Jagielski 2023, arXiv:2305.08846).
- (ε, δ)-DP: P(W ≥ v) and a term for δ, the smaller of two: `averaged` (below) and the curve. The
  formula of their Theorem 5.2 is not used: for few coins a mechanism can exceed it.
- Any trade-off curve: `fits`, the recursion of Mahloujifar, Melis & Chaudhuri 2024 (arXiv:2410.22235).

Both bound the probability of one event, so that the smaller needs no correction. `averaged` and, for
ε-DP, P(W ≥ v) also hold if the number of guesses depends on the output.

Edge cases: with r = 0 or v = 0 nothing is refuted; v = r gives the largest possible bound.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import betainc, betaincinv, expit, gammaln, log_expit, logit, ndtr

from dpassay._typing import BoolArray, FloatArray
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import bisect

#: Relative slack for rounding, always on the side of the claim.
_SLACK = 1e-9
#: The smallest p-value that is computed.
_LEAST = 1e-100
#: The power at which a leak counts as detectable.
POWER = 0.9


@dataclass(frozen=True)
class Guessed:
    """`right` of `guesses` guesses about `canaries` coins were right.

    `least` is 0 if the number of guesses was fixed beforehand. If it was chosen by looking at the
    output, `least` and `most` are the smallest and the largest number that could have been chosen.
    """

    canaries: int
    guesses: int
    right: int
    least: int = 0
    most: int = 0

    @property
    def perfect(self) -> Guessed:
        """As many guesses as possible, all right."""
        made = self.most or self.guesses
        return replace(self, guesses=made, right=made)


def tail(guessed: Guessed, epsilon: float) -> float:
    """P(W ≥ v), W ~ Bin(r, e^ε/(1 + e^ε))."""
    if guessed.right == 0:
        return 1.0
    wrong = guessed.guesses - guessed.right
    return float(betainc(guessed.right, wrong + 1.0, expit(epsilon)))


def averaged(guessed: Guessed, epsilon: float, delta: float) -> float:
    """P(W ≥ v) + mδ/(1 + e^ε) · the mean over k < r of B_k, at most 1.

    B_k is the largest P(Bin(k, e^ε/(1 + e^ε)) = x) over the x that can still matter with k guesses to
    go: max(0, k − (r − v)) ≤ x < v. If the number of guesses depends on the output, what is added must
    be the same for all of them: B_k is taken over all x, the mean over the fewest guesses possible and
    ε = 0, which is the largest of all, so that whatever is refuted is so at every smaller ε too.

    Proof. Reveal the coins in a random order. With k guesses to go and x more needed, let u be
    P(Bin(k, p) ≥ x), p = e^ε/(1 + e^ε): P(W ≥ v) before the first coin, 1{V ≥ v} after the last. A
    guess about coin j raises the expectation of u by (its chance of being right − p) · P(Bin(k', p) =
    x − 1), k' guesses being left after it. Given the output y and the coins before, with densities P
    and Q of y for either value of coin j, that chance is P/(P + Q), and P/(P + Q) − p =
    (P − e^ε Q)/((P + Q)(1 + e^ε)), where y has the density (P + Q)/2. By Jensen's inequality
    (P − e^ε Q)₊ is at most its mean with all other coins known, which does not depend on the order; so
    the order averages P(Bin(k', p) = x − 1) ≤ B_k' over k' = 0 … r − 1. What is left,
    ∫ (P − e^ε Q)₊/2 where j is guessed to be in and the mirror image where it is guessed to be out, is
    δ at most. Sum over m coins.
    """
    if delta == 0 or guessed.right == 0:
        return tail(guessed, epsilon)
    return min(1.0, tail(guessed, epsilon) + price(guessed, epsilon, delta))


def price(guessed: Guessed, epsilon: float, delta: float) -> float:
    """The term of `averaged` for δ."""
    r, v = guessed.guesses, guessed.right
    if guessed.least:
        epsilon = 0.0
    k = np.arange(guessed.least or r)
    low, high = (0, k) if guessed.least else (np.maximum(k - (r - v), 0), np.minimum(k, v - 1))
    x = np.clip(np.floor((k + 1) * expit(epsilon)), low, high)
    # P(Bin(k, e^ε/(1 + e^ε)) = x), rounded up
    choose = gammaln(k + 1.0) - gammaln(x + 1) - gammaln(k - x + 1)
    log = choose + x * log_expit(epsilon) + (k - x) * log_expit(-epsilon)
    mean = float(np.mean(np.exp(log) * (1 + _SLACK)))
    return guessed.canaries * delta * float(expit(-epsilon)) * mean


def fits(
    claim: Claim, guessed: Guessed, chances: FloatArray, theta: float | None = None
) -> BoolArray:
    """Whether the claim allows that v or more guesses are right with these probabilities.

    With a_i = P(V = i), r_i = Σ_{l ≥ i} l a_l/m and h_i = Σ_{l ≥ i} (r − l) a_l/m the claim says
    r_i ≤ g(h_{i−1}): flip the coin of a right guess, and one guess fewer is right (g is concave, so
    that the mean over coins, orders and guesses obeys it too). From r_v = τv/m and h_v = τ(r − v)/m
    down to 0 each a_{i−1} is taken as small as that allows; if more than probability 1 is needed, τ is
    impossible. (g⁻¹(x) is the least q with g(q) ≥ x; an r_i above 1 exceeds the limit r/m by itself.)
    Taking the least at each step needs the least in all: let K_i be the cone spanned by
    (1, −1) and (i, r − i). If two ways differ by an element of K_i in (r_i, h_i) they differ by one of
    K_{i−1} in (r_{i−1}, h_{i−1}), and its elements have r + h ≥ 0; right guesses beyond v, more mass
    at a level and a larger τ are all in the cone. The technical report has the proof in full.
    """
    m, n, v = guessed.canaries, guessed.guesses, guessed.right
    limit = n / m * (1 + _SLACK)
    hits, misses = chances * (v / m), chances * ((n - v) / m)
    for i in range(v - 1, -1, -1):
        needed = claim.region_inverse(np.minimum(hits, 1.0), theta) * (1 - _SLACK)
        more = np.maximum(needed - misses, 0.0)
        hits, misses = hits + more * (i / (n - i)), misses + more
        # converged entries stay fixed; entries past the limit are impossible
        if not np.any((more > 0) & (hits + misses <= limit)):
            break
    return np.asarray(hits + misses <= limit)


def p_value(claim: Claim, guessed: Guessed) -> float:
    """An upper bound of the probability of so many right guesses under the claim.

    >>> from dpassay import PureDP
    >>> round(p_value(PureDP(1.0), Guessed(100, 100, 85)), 4)
    0.0035
    """
    if guessed.right == 0:
        return 1.0
    known, found = claim.point, 1.0
    if known is not None:
        found = averaged(guessed, *known)
    exact = known is not None and known[1] == 0  # no curve does better
    return found if exact or guessed.least else _curve_p_value(claim, guessed, found)


def refutes(claim: Claim, guessed: Guessed, gamma: float, theta: float | None = None) -> bool:
    """Whether `p_value` is at most γ, without its digits."""
    if guessed.right == 0:
        return False
    known = claim.point if theta is None else claim.point_at(theta)
    if known is not None:
        if tail(guessed, known[0]) > gamma:  # no p-value below is smaller
            return False
        if averaged(guessed, *known) <= gamma:
            return True
    return not guessed.least and not bool(fits(claim, guessed, np.array([gamma]), theta)[0])


def lower_bound(claim: Claim, guessed: Guessed, gamma: float) -> float:
    """The largest value of the claim's parameter that is refuted at level γ; 0 if none is.

    It holds with probability 1 − γ: the sets that refute values above the truth are nested.

    >>> from dpassay import ApproximateDP
    >>> round(lower_bound(ApproximateDP(0.0, 1e-5), Guessed(1000, 1000, 600), 0.05), 3)
    0.297
    """

    def refuted(value: float) -> bool:
        return refutes(claim, guessed, gamma, value)

    # the term for δ falls with ε, so that 0 need not be refuted where a larger value is: try all
    values = [0.0, *(2.0**k for k in range(-2, 7) if 2.0**k < claim.largest)]
    last = max((k for k, value in enumerate(values) if refuted(value)), default=None)
    if last is None:
        return 0.0
    outside = [*values[1:], min(2.0**7, claim.largest)][last]
    return float(bisect(refuted, values[last], outside, steps=50, close=1e-7)[0])


@dataclass(frozen=True)
class Evidence:
    """The result of a test at a significance level."""

    refuted: bool
    p_value: float
    lower_bound: float
    ceiling: float  # the bound of the best attack
    detectable: float


@lru_cache(maxsize=4096)
def evidence(
    claim: Claim, guessed: Guessed, gamma: float, perfect: Guessed | None = None
) -> Evidence:
    """All results, each on its safe side and consistent with each other.

    `perfect` is what the best attack would have guessed: by default as many as possible, all rightly.
    """
    refuted = refutes(claim, guessed, gamma)
    chance, lower = p_value(claim, guessed), lower_bound(claim, guessed, gamma)
    if refuted:
        chance, lower = min(chance, gamma), max(lower, claim.value)
    else:
        chance = max(chance, math.nextafter(gamma, 1.0))
        if lower >= claim.value > 0:
            lower = math.nextafter(claim.value, 0.0)
    perfect = perfect or guessed.perfect
    ceiling = lower_bound(claim, perfect, gamma)
    return Evidence(refuted, chance, lower, ceiling, detectable(claim, perfect, gamma))


def fewest(claim: Claim, guessed: Guessed, gamma: float) -> int | None:
    """How many guesses would have to be right to refute the claim; None if all are not enough."""

    def enough(right: int) -> bool:
        return refutes(claim, replace(guessed, right=right), gamma)

    found = bisect_left(range(guessed.guesses + 1), True, key=enough)
    return found if found <= guessed.guesses else None


def detectable(claim: Claim, guessed: Guessed, gamma: float) -> float:
    """About the smallest parameter that would be detected 9 times in 10; NaN if unknown.

    For ε by a mechanism that releases each coin by randomized response, for μ by a Gaussian score: that
    is also the parameter of a curve. No more than `right` guesses can be right.
    """
    needed = fewest(claim, guessed, gamma)
    if needed is None or needed > guessed.right:
        return math.inf
    rate = float(betaincinv(needed, guessed.right - needed + 1.0, POWER))
    if claim.parameter == "epsilon" and claim.point is not None:
        return max(0.0, float(logit(rate)))
    if claim.parameter in ("mu", "gap"):
        share = guessed.guesses / (2 * guessed.canaries)
        low, high = 0.0, 1.0
        while gaussian_rate(high, share) < rate and high < 64:
            low, high = high, 2 * high
        return float(bisect(lambda mu: gaussian_rate(mu, share) < rate, low, high, steps=40)[1])
    return math.nan


def gaussian_rate(mu: float, share: float) -> float:
    """The share of included canaries among the highest scores: N(μ, 1) against N(0, 1)."""
    # ½Φ(−t) + ½Φ(μ − t) = share
    _, t = bisect(lambda t: 0.5 * (ndtr(-t) + ndtr(mu - t)) > share, -40.0, 40.0 + mu, steps=60)
    return float(0.5 * ndtr(mu - t) / max(share, 1e-300))


def _curve_p_value(claim: Claim, guessed: Guessed, most: float) -> float:
    """The smallest probability that the claim does not allow, rounded up, and at most `most`."""
    low, high = _LEAST, most
    if low >= high or fits(claim, guessed, np.array([high]))[0]:
        return most
    for _ in range(6):
        grid = np.geomspace(low, high, 24)
        possible = np.flatnonzero(fits(claim, guessed, grid))
        if not possible.size:
            return low
        low, high = float(grid[possible[-1]]), float(grid[min(possible[-1] + 1, 23)])
    return high
