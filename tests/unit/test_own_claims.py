"""Claims of a class of one's own: what contradicts itself is refused, what is consistent is not."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.unit.test_claims import CLAIMS

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.own_claims import check_own

RATIO = np.exp(0.5)


@dataclass(frozen=True, eq=False, repr=False)
class Distance(dp.Claim):
    """P(E) ≤ Q(E) + tv; with the mistakes that are asked for."""

    tv: float
    mistake: str = ""

    parameter, symbol, largest = "tv", "TV", 1.0

    def region_and_slope(self, q, theta=None):
        tv = self._theta(theta)
        allowed = np.minimum(q + tv, 1.0) if self.mistake != "region" else q - tv
        slope = np.where(q + tv < 1, 1.0, 0.0) * np.ones_like(tv)
        return allowed if self.mistake == "slope" else (allowed, slope)

    def tradeoff(self, alpha, theta=None):
        falls = 2 if self.mistake == "tradeoff" else 1
        return np.maximum(1 - falls * np.asarray(alpha) - self._theta(theta), 0.0)

    def needed(self, p, q):
        if self.mistake == "swapped":
            p, q = q, p
        return np.maximum(np.asarray(p) - np.asarray(q), 0.0) * (
            2 if self.mistake == "twice" else 1
        )

    def _delta(self, epsilon):
        return np.full(np.shape(epsilon), self.tv)

    def __str__(self):
        return f"total variation {self.tv:g}"


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("slope", "must return two arrays like q"),
        ("region", "Distance: .* must be"),
        ("tradeoff", r"tradeoff\(q\) must be 1 − g"),
        ("swapped", r"needed\(.*\) must"),
        ("twice", "must be θ or less"),
    ],
)
def test_a_claim_of_ones_own_that_contradicts_itself_is_refused(mistake, said):
    assert as_claim(Distance(0.1)).tv == 0.1
    with pytest.raises(InvalidInput, match=said):
        as_claim(Distance(0.1, mistake))


def test_a_claim_of_ones_own_without_its_parameter_is_refused():
    class Nameless(Distance):
        parameter = "total"

    with pytest.raises(InvalidInput, match="has no total: `parameter` must name the field"):
        as_claim(Nameless(0.1))

    class Unsaid(Distance):
        parameter = dp.Claim.parameter

    with pytest.raises(InvalidInput, match="'epsilon' unless the class says parameter"):
        as_claim(Unsaid(0.1))


@pytest.mark.parametrize(
    "claim", [*CLAIMS, dp.TradeoffDP([(0, 1), (0.2, 0.3), (1, 0)], ordered=True)], ids=str
)
def test_no_claim_of_the_package_contradicts_itself(claim):
    check_own(claim)


@dataclass(frozen=True, eq=False, repr=False)
class Hockey(dp.Claim):
    """P(E) ≤ e^½ Q(E) + d, as the definition reads: nothing of the complements of events."""

    d: float

    parameter, symbol, largest = "d", "HS", 1.0

    def region_and_slope(self, q, theta=None):
        line = RATIO * q + self._theta(theta)
        return np.minimum(line, 1.0), np.where(line < 1, RATIO, 0.0)

    def tradeoff(self, alpha, theta=None):
        return 1 - self.region_and_slope(np.asarray(alpha, dtype=float), theta)[0]

    def needed(self, p, q):
        return np.maximum(np.asarray(p) - RATIO * np.asarray(q), 0.0)

    def _delta(self, epsilon):
        return dp.ApproximateDP(0.5, self.d).delta_at(epsilon)

    def __str__(self):
        return f"HS {self.d:g}"


class Whole(Hockey):
    """The same, with the complements."""

    def region_and_slope(self, q, theta=None):
        return dp.ApproximateDP(0.5, 0.0, headline="delta").region_and_slope(q, self._theta(theta))

    def needed(self, p, q):
        return np.maximum(super().needed(p, q), super().needed(1 - q, 1 - p))


class Ordered(Hockey):
    """The same, of the first input against the second alone."""

    directional = True

    def region_inverse(self, p, theta=None):
        return np.maximum(np.asarray(p) - self._theta(theta), 0.0) / RATIO


def test_a_region_that_leaves_out_complements_is_refused():
    """It would be tested as a weaker claim, with a power line and a plan that are wrong."""
    said = r"at θ = 0.2, q = 0.305 and g\(q\) = 0.7029 it is 0.3101"
    with pytest.raises(InvalidInput, match=f"take the smaller of g.*directional = True.*{said}"):
        dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), Hockey(0.2), n=2000, rng=0)
    with pytest.raises(InvalidInput, match="take the smaller of g"):
        dp.plan(Hockey(0.2), excess=0.1)


def test_a_region_with_the_complements_does_as_the_claim_of_the_package(seed):
    own, known = Whole(0.2), dp.ApproximateDP(0.5, 0.2, headline="delta")
    draws = dp.plan(own, excess=0.1).draws, dp.plan(known, excess=0.1).draws
    assert draws[0] == pytest.approx(draws[1], rel=0.05)  # that of the package also bounds ε
    bounds = [
        dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), claim, n=20_000, rng=seed).lower_bound
        for claim in (own, known)
    ]
    assert bounds[0] == pytest.approx(bounds[1], abs=0.005)
    assert as_claim(Ordered(0.2)).directional


class Falling(Hockey):
    def region_and_slope(self, q, theta=None):
        allowed, slope = super().region_and_slope(q, theta)
        return np.where(q > 0.9, q, allowed), slope


class Convex(Hockey):
    def region_and_slope(self, q, theta=None):
        allowed, slope = super().region_and_slope(q, theta)
        return np.where(q > 0.5, 1.0, np.minimum(allowed, np.maximum(q, 0.6))), slope


class One(Hockey):
    def region_and_slope(self, q, theta=None):
        return super().region_and_slope(q, self._theta(None))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Falling, r"g\(q \+ 0.005\) must be g\(q\) or more; at .* it is 0.905"),
        (Convex, r"since g is concave; at θ = 0.2, q = 0.495"),
        (One, r"region_and_slope\(q, theta\) must return two arrays.*; theta may be an array"),
    ],
)
def test_a_region_of_the_wrong_shape_is_refused(kind, said):
    with pytest.raises(InvalidInput, match=said):
        as_claim(kind(0.2))
