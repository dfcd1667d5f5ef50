"""The exact unconditional test of P(E) ≤ g(Q(E)) from two binomial counts.

i ~ Bin(n, p) and j ~ Bin(m, q) are independent, and the claim allows p ≤ g(q), g concave and
increasing. The test orders the outcomes by the likelihood-ratio distance from the claim,

    T(i, j)² = min_{p ≤ g(q)} 2 [n kl(i/n, p) + m kl(j/m, q)]      (0 where i/n ≤ g(j/m)),

which grows with i and falls with j, so {T ≥ t} is i ≥ i*(j) for a non-decreasing i*. With C a
confidence set for (p, q) of level 1 − b (Berger & Boos 1994),

    p-value = b + sup over (p, q) in C with p ≤ g(q) of  P(T ≥ t_obs)
            = b + sup over q in C of  F(q) = Σ_j Bin(j; m, q) · P(Bin(n, g(q)) ≥ i*(j)),

exact at every sample size: the ordering only decides the power. The supremum is certified, not
gridded. On the steps where it is needed g is replaced by a few of its tangents (never below g), so
that F is a polynomial in q on each of them; a polynomial obeys

    |F(z)| ≤ (|z| + |1−z|)^m (|p(z)| + |1−p(z)|)^n    for complex z,

so Chebyshev interpolation in K points has an error known beforehand (Bernstein's ellipse), and the
maximum of the interpolant is bounded by its values on a grid (Ehlich & Zeller 1964).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from dpassay._typing import IntArray
from dpassay.bounds.ordering import Counts, contour, observed_distance, window_of
from dpassay.bounds.supremum import supremum
from dpassay.privacy.claims import ApproximateDP, Claim

#: Share of γ spent on the confidence set C.
SPENT_ON_SET = 1e-3
#: Bounds end here.
_FAR = 1e6


def p_value(counts: Counts, claim: Claim, *, gamma: float = 0.05) -> float:
    """An exact p-value for p ≤ g(q). `gamma` only sets the share b = γ/1000 spent on C.

    >>> from dpassay.privacy.claims import PureDP
    >>> round(p_value(Counts(450, 1000, 184, 1000), PureDP(0.7)), 4)
    0.0042
    """
    return _p_value(counts, claim, SPENT_ON_SET * gamma)


@lru_cache(maxsize=1 << 16)
def _p_value(counts: Counts, claim: Claim, spent: float) -> float:
    if counts.i / counts.n <= claim.region(counts.j / counts.m):
        return 1.0
    window = window_of(counts, spent)
    return min(1.0, spent + supremum(window, contour(window, claim), claim))


# --- bounds: the test turned around


@dataclass(frozen=True)
class Family:
    """Claims with one parameter θ: the larger, the weaker."""

    at: Callable[[float], Claim]
    needed: Callable[[float, float], float]
    largest: float = math.inf


def family(claim: Claim) -> Family:
    """The claims that differ from this one in its parameter."""
    return Family(claim.at, claim.needed, 1.0 if claim.parameter == "gap" else math.inf)


def delta_family(epsilon: float) -> Family:
    """(ε, δ)-DP at a fixed ε, with δ as the parameter."""

    ratio = math.exp(min(epsilon, 700.0))

    def needed(p: float, q: float) -> float:
        return max(0.0, p - ratio * q, 1 - q - ratio * (1 - p))

    return Family(lambda delta: ApproximateDP(epsilon, delta), needed, 1 - 1e-12)


@lru_cache(maxsize=1 << 14)
def claim_bound(counts: Counts, claim: Claim, gamma: float) -> float:
    """`lower_bound` on the parameter of a claim, remembered."""
    return lower_bound(counts, family(claim), gamma)


def lower_bound(counts: Counts, claims: Family, gamma: float) -> float:
    """inf{θ ≥ 0 : the claim with θ is not rejected}, from below.

    The p-value is not monotone in θ, since the ordering of the outcomes changes with it, so a root
    of p(θ) = γ need not be the lowest. Whole intervals [a, b] of θ are rejected at once: the union
    of their rejection regions is tested under the weakest claim b. That union is taken to be
    i ≥ min(i*_a(j), i*_m(j), i*_b(j)), m the middle. For smooth g the contours turn one way with θ
    and the ends are all there is; at a kink one inside may dip below both, which the middle shows.
    """
    search = _Search(counts, claims, gamma)
    start = claims.needed(counts.i / counts.n, counts.j / counts.m)
    if start <= 0 or not search.rejected(0.0, 0.0):
        return 0.0
    guess, scale = _normal_guess(counts, claims, gamma, start)
    return search.certified_up_to(guess, scale)


class _Search:
    def __init__(self, counts: Counts, claims: Family, gamma: float) -> None:
        self.claims, self.gamma = claims, gamma
        self.spent = SPENT_ON_SET * gamma
        self.window = window_of(counts, self.spent)
        self._contours: dict[float, IntArray] = {}

    def contour(self, theta: float) -> IntArray:
        if theta not in self._contours:
            self._contours[theta] = contour(self.window, self.claims.at(theta))
        return self._contours[theta]

    def rejected(self, a: float, b: float) -> bool:
        """Whether every θ in [a, b] is rejected."""
        c, weakest = self.window.counts, self.claims.at(b)
        if c.i / c.n <= weakest.region(c.j / c.m):
            return False
        least = self.contour(b)
        if a < b:
            inside = np.minimum(self.contour(a), self.contour((a + b) / 2))
            least = np.minimum(least, inside)
        return self.spent + supremum(self.window, least, weakest) <= self.gamma

    def p_value(self, theta: float) -> float:
        """The p-value of one θ."""
        c, claim = self.window.counts, self.claims.at(theta)
        if c.i / c.n <= claim.region(c.j / c.m):
            return 1.0
        return min(1.0, self.spent + supremum(self.window, self.contour(theta), claim))

    def certified_up_to(self, guess: float, scale: float) -> float:
        """The largest θ found such that all of [0, θ] is rejected.

        Intervals grow geometrically away from the crossing: what is far below goes with ease.
        """
        goal = float(ndtri(1 - self.gamma))
        for _ in range(2):  # on the scale of z-scores the p-value is nearly linear in θ
            z = float(ndtri(1 - self.p_value(guess)))
            guess = min(max(guess + (max(z, -2.0) - goal) * scale, 0.0), self.claims.largest)
            if abs(z - goal) < 0.1:
                break
        finest = 0.004 * scale
        c = self.window.counts
        many = min(c.i, c.n - c.i, c.j, c.m - c.j) > 3000  # then the contours hardly turn with θ
        edges, reach = [guess - finest], (0.1 if many else 0.04) * scale
        while edges[-1] > reach:
            edges.append(edges[-1] - reach)
            reach *= 25 if many else 5
        done = 0.0
        for edge in edges[::-1]:
            done = self._certify(done, edge, finest)
            if done < edge:
                break
        return max(done, 0.0)

    def _certify(self, a: float, b: float, finest: float) -> float:
        """The end of the rejected part of [a, b] that begins at a."""
        if b <= a or self.rejected(a, b):
            return b
        if b - a <= finest:
            return a
        middle = (a + b) / 2
        done = self._certify(a, middle, finest)
        return done if done < middle else self._certify(middle, b, finest)


def _normal_guess(
    counts: Counts, claims: Family, gamma: float, start: float
) -> tuple[float, float]:
    """Where T is the normal quantile, and how fast it falls there: a starting point."""
    goal = max(float(ndtri(1 - gamma)), 0.1)
    window = window_of(counts, SPENT_ON_SET * gamma)

    def distance(theta: float) -> float:
        claim = claims.at(theta)
        if counts.i / counts.n <= claim.region(counts.j / counts.m):
            return 0.0
        return math.sqrt(observed_distance(window, claim))

    low, at_low, high, at_high = 0.0, distance(0.0), min(start, claims.largest), 0.0
    if not math.isfinite(high):
        high = 1.0
        while (at_high := distance(high)) > goal and high < _FAR:
            low, at_low, high = high, at_high, 2 * high
    for _ in range(4):  # T is nearly linear in θ
        share = (at_low - goal) / max(at_low - at_high, 1e-12)
        middle = low + min(max(share, 0.02), 0.98) * (high - low)
        found = distance(middle)
        if found > goal:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
        if abs(found - goal) < 1e-2:
            break
    top = min(start, 2 * high + 1)
    return middle, max(top - middle, 1e-9) / max(goal, 0.5)
