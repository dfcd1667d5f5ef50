"""Claims that one parameter orders, such as the accountant's curve for every noise multiplier.

Under the assumption that a mechanism is one of a family, a test of one event bounds the parameter, and
with it the ε at any δ. That ε may lie far above what the draws certify without the assumption: it
follows the curve to outputs that were never seen.

Curves are computed for finitely many values of the parameter, t = 0 (the most private) to t = K, and g_t
is interpolated linearly between them: concave in q, continuous and growing with t, as Theorem 3 of
docs/theory.md needs for one ordering of the outcomes. A mechanism whose parameter lies between the
values k − 1 and k keeps g_k, so that a bound on t exceeds k with probability at most γ. The value
reported is the last one strictly below the bound on t, which is then at most k − 1: on the private side
of the truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.event_claims import Claim
from dpassay.rootfinding import bisect

#: The number of values of the parameter, from one end of the range to the other.
_VALUES = 1025
#: Probabilities at which claims are compared; what an accountant's discretisation may change there.
_PROBES, _ROUNDING = np.linspace(0.0, 1.0, 101), 1e-3


@dataclass(frozen=True)
class Family:
    """Claims that one parameter orders, such as the accountant's curve for every noise multiplier.

    claims     a function of the parameter that returns a claim or an accountant; it is asked for at some
               tens of the 1,025 values between the ends
    low, high  the range of the parameter, above 0; the mechanism is assumed to be one of these
    name       what the parameter is called

    Privacy must rise or fall with the parameter all along the range; claims that are computed and are not
    nested are refused.

    >>> import dpassay as dp
    >>> gaussian = dp.Family(lambda noise: dp.GaussianDP(1 / noise), 0.5, 2.0, name="noise")
    >>> found = dp.bound(
    ...     dp.zoo.Gaussian(1.0), (0.0, 1.0), "eps, delta=1e-5", family=gaussian, n=20_000, rng=0
    ... )
    >>> 4.0 < found.value < 4.38  # the truth is 4.377
    True
    """

    claims: Callable[[float], Any] = field(repr=False)
    low: float
    high: float
    name: str = "parameter"
    _made: dict[float, Claim] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.claims):
            raise InvalidInput(
                "claims must be a function of the parameter that returns a claim or an accountant, got "
                f"{checks.shown(self.claims)}"
            )
        low = checks.real("low", self.low, above=0.0)
        if not low < checks.real("high", self.high, above=0.0):
            raise InvalidInput(f"low must be below high, got {self.low:g} and {self.high:g}")

    def ordered(self, delta: float) -> OrderedClaims:
        """The claims from the most private one on, by their ε at δ."""
        values = np.geomspace(self.low, self.high, _VALUES)
        at_low, at_high = (self._at(float(v)).epsilon_at(delta) for v in values[[0, -1]])
        if at_low == at_high:
            raise InvalidInput(
                f"ε is {at_low:g} at δ = {delta:g} for {self.name} = {self.low:g} and for {self.high:g}; "
                "the claims must differ: is the parameter used, and is δ above 0?"
            )
        return OrderedClaims(self._at, values if at_low < at_high else values[::-1])

    def check_nested(self, falling: bool) -> None:
        """Refuse claims that were not ordered by the parameter, as far as they were computed."""
        made = sorted(self._made.items(), reverse=falling)
        for (one, first), (other, second) in itertools.pairwise(made):
            if np.any(first.region(_PROBES) > second.region(_PROBES) + _ROUNDING):
                raise InvalidInput(
                    f"the claims for {self.name} = {one:g} and {other:g} are not nested: the first "
                    "should be the stronger claim, and at some event it is the weaker one. Give a range "
                    "in which claims only get stronger, or only weaker"
                )

    def _at(self, value: float) -> Claim:
        if value in self._made:
            return self._made[value]
        try:
            given = self.claims(value)
        except Exception as error:
            raise InvalidInput(
                f"claims({value:g}) raised {type(error).__name__}: {error}; it must return a claim or an "
                f"accountant for every {self.name} from {self.low:g} to {self.high:g}"
            ) from error
        claim = self._made[value] = as_claim(given)
        if not claim.set_by_events or claim.directional:
            raise InvalidInput(
                "give (ε, δ), μ, trade-off functions, or accountants that say ε at a δ: a family needs "
                f"claims about events, in both orders of the inputs, and {self.name} = {value:g} gives "
                f"{claim}"
            )
        return claim


class OrderedClaims(Claim):
    """A family as one claim with the parameter t, for a search and no file: see the module."""

    #: Between two values the mixture of two symmetric curves is not symmetric.
    symmetric: ClassVar[bool] = False
    parameter: ClassVar[str] = "t"
    t = 0.0

    def __init__(self, make: Callable[[float], Claim], values: FloatArray) -> None:
        self.make: Callable[[float], Claim]
        self.values: FloatArray
        self._set(make=make, values=values, largest=float(len(values) - 1))

    __eq__, __hash__ = object.__eq__, object.__hash__  # results of searches are kept by claim

    def region_and_slope(self, q: FloatArray, theta: Any = None) -> tuple[FloatArray, FloatArray]:
        t = min(float(self._theta(theta)), self.largest)
        k, share = int(t), t % 1
        region, slope = self.make(float(self.values[k])).region_and_slope(q)
        if share:
            above = self.make(float(self.values[k + 1])).region_and_slope(q)
            region = (1 - share) * np.minimum(region, 1.0) + share * np.minimum(above[0], 1.0)
            slope = (1 - share) * slope + share * above[1]
        return region, slope

    def region_inverse(self, p: npt.ArrayLike, theta: Any = None) -> Any:
        """From below: `region` there is at most p."""
        p = np.asarray(p, dtype=float)
        zero = np.zeros(p.shape)
        low, _ = bisect(lambda q: self.region_and_slope(q, theta)[0] <= p, zero, zero + 1)
        at_zero, _ = self.region_and_slope(zero, theta)
        return checks.scalar_or_array(np.where(at_zero >= p, 0.0, low))

    def needed(self, p: npt.ArrayLike, q: npt.ArrayLike) -> Any:
        """From above, up to a quarter of a step: every t costs a curve."""

        def least(x: float, y: float) -> float:
            def allows(t: float) -> bool:
                return bool(self.region(y, t) >= x)

            if allows(0.0):
                return 0.0
            return (
                bisect(allows, self.largest, 0.0, steps=12)[0] if allows(self.largest) else math.inf
            )

        return checks.scalar_or_array(np.vectorize(least, otypes=[float])(p, q))

    def last_refuted(self, t: float) -> float | None:
        """The last value of the parameter strictly below a bound on t; None if there is none."""
        return float(self.values[math.ceil(t) - 1]) if t > 0 else None

    def __str__(self) -> str:
        return f"one of {len(self.values)} claims"


def delta_of(wanted: Claim) -> float:
    """The δ at which a family's ε is bounded."""
    if wanted.point is None or wanted.symbol != "ε" or not wanted.point[1]:
        raise InvalidInput(
            'with family=, of must be ε at a δ above 0, such as of="eps, delta=1e-5", got '
            f"{wanted.meaning}"
        )
    return wanted.point[1]


_ASSUMED = " (assuming the family)"


def last_refuted(family: Family, among: OrderedClaims, t: float, delta: float) -> dict[str, Any]:
    """The ε of the last claim that is refuted, that claim, and a note with its parameter."""
    falling = bool(among.values[0] > among.values[-1])  # the largest parameter is the most private
    family.check_nested(falling)
    value = among.last_refuted(t)
    if value is None:
        low, high = family.low, family.high
        note = f"no claim of the family is refuted ({family.name} from {low:g} to {high:g})"
        return {"value": 0.0, "note": note, "of": _ASSUMED}
    claim = among.make(value)
    side = "above" if falling else "below"
    refuted = f"the claims for {family.name} {value:.4g} and {side} are refuted"
    note = (
        f"it assumes that one claim of the family is true: {refuted}, and the bound is the ε of that "
        f"for {family.name} {value:.4g}"
    )
    if t > among.largest - 0.5:  # a search ends a little below
        none = (
            "which is the whole range: no claim of the family is true, and no ε follows from it. A bound "
            "without family= (--family) holds for every mechanism"
        )
        return {
            "value": 0.0,
            "note": f"{refuted}, {none}",
            "of": " (all claims of the family are refuted: no bound)",
        }
    return {"value": claim.epsilon_at(delta), "claim": claim, "note": note, "of": _ASSUMED}
