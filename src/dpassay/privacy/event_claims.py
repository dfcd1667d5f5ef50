"""Claims about events: pure and approximate DP, Gaussian DP, trade-off curves.

P(E) ≤ g(Q(E)) for every event is the whole claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.privacy import tabulated
from dpassay.privacy.claim_base import Claim, checked_delta, digits, shaped
from dpassay.privacy.curves import TradeoffCurve, gaussian_tradeoff
from dpassay.rootfinding import bisect

#: Points of a profile that is to be shown, up to the ε where δ is so near its least, or the largest ε.
_PROFILE, _NEGLIGIBLE, _FAR = 65, 1e-6, 50.0
#: The δ at which a curve is said in terms of ε, and the largest such ε.
SMALL, _LARGE = 1e-5, 300.0


@dataclass(frozen=True, repr=False)
class ApproximateDP(Claim):
    """(ε, δ)-DP: P(E) ≤ e^ε Q(E) + δ.

    `headline` is the parameter a lower bound is reported on, "epsilon" or "delta"; the other one is
    held fixed.

    >>> round(ApproximateDP(1.0, 0.01).region(0.1), 4)
    0.2818
    >>> round(ApproximateDP(1.0, 0.01, headline="delta").needed(0.5, 0.1), 4)
    0.2282
    """

    epsilon: float
    delta: float
    headline: str = "epsilon"

    def __post_init__(self) -> None:
        self._set(epsilon=checks.real("epsilon", self.epsilon, at_least=0.0))
        self._set(delta=checked_delta(self.delta))
        checks.one_of("headline", self.headline, ("epsilon", "delta"))

    @property
    def parameter(self) -> str:
        """The headline."""
        return self.headline

    @property
    def symbol(self) -> str:
        """ε or δ."""
        return "ε" if self.headline == "epsilon" else "δ"

    @property
    def meaning(self) -> str:
        """ε at a δ, or δ at an ε."""
        if self.headline == "epsilon":
            return f"ε at δ = {digits(self.delta)}"
        return f"δ at ε = {digits(self.epsilon)}"

    @property
    def largest(self) -> float:
        """For δ just below 1, where nothing would be claimed."""
        return math.inf if self.headline == "epsilon" else 1.0 - 1e-12

    @property
    def point(self) -> tuple[float, float]:
        """(ε, δ)."""
        return self.epsilon, self.delta

    def turned(self) -> ApproximateDP | None:
        """δ at this ε for ε at this δ, and the other way round; none where δ is 0."""
        other = "delta" if self.headline == "epsilon" else "epsilon"
        return replace(self, headline=other) if self.delta else None

    def as_epsilon(self, value: float) -> float:
        """A δ of 0.1 is much: that often an output may give everything away."""
        return value if self.headline == "epsilon" else 10 * value

    def raw_region(self, q: FloatArray) -> Any:
        """min(e^ε q + δ, 1 − e^{−ε}(1 − δ − q), 1)."""
        steep = self._ratio * q + self.delta
        flat = (math.expm1(min(self.epsilon, 700.0)) + self.delta + q) / self._ratio
        return np.where(q < 1.0 - self.delta, np.minimum(steep, flat), 1.0)

    @cached_property
    def _ratio(self) -> float:
        return math.exp(min(self.epsilon, 700.0))  # past e^700 nothing changes but the overflow

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """max(0, 1 − δ − e^ε α, e^{−ε}(1 − δ − α))."""
        rest = 1.0 - self.delta
        return shaped(
            alpha,
            lambda a: np.maximum(np.maximum(rest - self._ratio * a, (rest - a) / self._ratio), 0.0),
        )

    def needed(self, p: float, q: float) -> float:
        """ε: the larger of log (p − δ)/q and log (1 − δ − q)/(1 − p), at least 0.

        δ: the larger of p − e^ε q and 1 − q − e^ε (1 − p), at least 0.
        """
        if self.headline == "delta":
            return max(0.0, p - self._ratio * q, 1 - q - self._ratio * (1 - p))
        return max(0.0, _log_ratio(p - self.delta, q), _log_ratio(1 - self.delta - q, 1 - p))

    def slope(self, q: npt.ArrayLike) -> Any:
        """e^ε, then e^{−ε}, then 0."""
        q = np.asarray(q, dtype=float)
        kink = (1.0 - self.delta) / (self._ratio + 1.0)
        flat = np.where(q < 1.0 - self.delta, 1 / self._ratio, 0.0)
        return np.where(q < kink, self._ratio, flat)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """δ + (1 − δ) max(0, (e^ε₀ − e^ε)/(1 + e^ε₀), 1 − e^ε): the vertices of the region."""
        kink = -np.expm1(np.minimum(epsilon - self.epsilon, 0.0)) / (1 + math.exp(-self.epsilon))
        return self.delta + (1 - self.delta) * np.maximum(kink, -np.expm1(np.minimum(epsilon, 0.0)))

    def shown_by(self) -> tuple[FloatArray, FloatArray]:
        """δ at its ε."""
        return np.array([self.epsilon]), np.array([self.delta])

    def _renyi(self, order: FloatArray) -> FloatArray:
        """That of pure DP where δ = 0, else none: what happens with probability δ can be anything."""
        return super()._renyi(order) if self.delta else _randomized_response(self.epsilon, order)

    def __str__(self) -> str:
        said = f"({digits(self.epsilon)}, {digits(self.delta)})-DP"
        return said if self.headline == "epsilon" else f"{said} in δ"


def _randomized_response(epsilon: float, order: FloatArray) -> FloatArray:
    """D_λ of binary randomized response, the largest under ε-DP (it dominates every other pair).

    log[cosh((λ − ½)ε) / cosh(ε/2)]/(λ − 1), with no cancellation where ε is small.
    """
    finite = np.where(np.isinf(order), 2.0, order)
    with np.errstate(over="ignore", invalid="ignore"):
        rise = 2 * np.sinh(finite * epsilon / 2) * np.sinh((finite - 1) * epsilon / 2)
        small = np.log1p(rise / np.cosh(epsilon / 2))
    large = np.logaddexp(finite * epsilon, (1 - finite) * epsilon) - np.logaddexp(0.0, epsilon)
    value = np.where(finite * epsilon < 300, small, large) / (finite - 1)
    return np.where(np.isinf(order), epsilon, value)


@dataclass(frozen=True)
class PureDP(Claim):
    """ε-DP: P(E) ≤ e^ε Q(E).

    >>> round(PureDP(0.5).region(0.1), 4)
    0.1649
    """

    epsilon: float

    def __post_init__(self) -> None:
        self._set(epsilon=checks.real("epsilon", self.epsilon, at_least=0.0))

    @property
    def point(self) -> tuple[float, float]:
        """(ε, 0)."""
        return self.epsilon, 0.0

    @cached_property
    def _as_approximate(self) -> ApproximateDP:
        return ApproximateDP(self.epsilon, 0.0)

    def raw_region(self, q: FloatArray) -> Any:
        """min(e^ε q, 1 − e^{−ε}(1 − q))."""
        return self._as_approximate.raw_region(q)

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """max(1 − e^ε α, e^{−ε}(1 − α))."""
        return self._as_approximate.tradeoff(alpha)

    def needed(self, p: float, q: float) -> float:
        """The larger of log p/q and log (1 − q)/(1 − p), at least 0."""
        return self._as_approximate.needed(p, q)

    def slope(self, q: npt.ArrayLike) -> Any:
        """e^ε, then e^{−ε}."""
        return self._as_approximate.slope(q)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """(e^ε₀ − e^ε)/(1 + e^ε₀), at least 0."""
        return self._as_approximate._delta(epsilon)

    def shown_by(self) -> tuple[FloatArray, FloatArray]:
        """δ = 0 at its ε, which draws never show: a bound from above is positive."""
        return np.array([self.epsilon]), np.zeros(1)

    def _renyi(self, order: FloatArray) -> FloatArray:
        """That of binary randomized response."""
        return _randomized_response(self.epsilon, order)

    def __str__(self) -> str:
        return f"{digits(self.epsilon)}-DP"


@dataclass(frozen=True)
class GaussianDP(Claim):
    """μ-GDP: no easier to tell apart than N(0, 1) and N(μ, 1).

    >>> round(GaussianDP(1.0).region(0.05), 4)
    0.2595
    """

    mu: float
    parameter: ClassVar[str] = "mu"
    symbol: ClassVar[str] = "μ"

    def __post_init__(self) -> None:
        self._set(mu=checks.real("mu", self.mu, at_least=0.0))

    def raw_region(self, q: FloatArray) -> Any:
        """Φ(μ + Φ⁻¹(q)), and never rounded below q."""
        return np.maximum(ndtr(self.mu + ndtri(q)), q)

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """Φ(Φ⁻¹(1 − α) − μ)."""
        return shaped(alpha, lambda alpha: gaussian_tradeoff(alpha, self.mu))

    def needed(self, p: float, q: float) -> float:
        """Φ⁻¹(p) − Φ⁻¹(q), at least 0."""
        return max(0.0, float(ndtri(p) - ndtri(q))) if p > q else 0.0

    def slope(self, q: npt.ArrayLike) -> Any:
        """φ(μ + z)/φ(z) at z = Φ⁻¹(q)."""
        if self.mu == 0:
            return np.ones(np.shape(q))
        with np.errstate(over="ignore", invalid="ignore"):
            z = ndtri(np.asarray(q, dtype=float))
            return np.exp(-self.mu * z - self.mu**2 / 2)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), in log space (Balle & Wang 2018, arXiv:1805.06530)."""
        if self.mu == 0:
            return -np.expm1(np.minimum(epsilon, 0.0))
        with np.errstate(over="ignore", invalid="ignore"):
            top = log_ndtr(self.mu / 2 - epsilon / self.mu)
            bottom = epsilon + log_ndtr(-self.mu / 2 - epsilon / self.mu)
            value = np.exp(top) * -np.expm1(bottom - top)
        return np.where(np.isneginf(top), 0.0, np.clip(value, 0.0, 1.0))

    def shown_by(self) -> tuple[FloatArray, FloatArray]:
        """δ(ε) on a grid."""
        return _profile(self)

    def _renyi(self, order: FloatArray) -> FloatArray:
        """λμ²/2."""
        return order * (self.mu**2 / 2) if self.mu else np.zeros(order.shape)

    def __str__(self) -> str:
        return f"{digits(self.mu)}-GDP"


@dataclass(frozen=True, eq=False)
class TradeoffDP(Claim):
    """f-DP for any trade-off function f, given as a function or as points (α, β).

    f-DP is a claim about both orders of two neighbours, T(P,Q) ≥ f and T(Q,P) ≥ f, which together
    say T ≥ max(f, f⁻¹): that is the curve kept. With `ordered` the claim is about the first input
    against the second alone. A function is tabulated from below, so that the claim as stored is
    never stronger than the one made. `gap` lowers the whole curve: it is the parameter a lower
    bound is reported on.

    `from_delta` makes the claim of a privacy profile, such as an accountant computes.

    >>> halfway = TradeoffDP([(0, 1), (0.25, 0.25), (1, 0)])
    >>> halfway.region(0.125)
    0.375
    """

    f: Any = field(repr=False)
    gap: float = 0.0
    ordered: bool = False
    parameter: ClassVar[str] = "gap"
    symbol: ClassVar[str] = "gap"
    largest: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        self._set(gap=checks.real("gap", self.gap, at_least=0.0))
        checks.flag("ordered", self.ordered)
        if not isinstance(self.f, TradeoffCurve):
            make = tabulated.from_function if callable(self.f) else tabulated.from_points
            curve = make(self.f)
            self._set(f=curve if self.ordered else tabulated.both_orders(curve))

    def turned(self) -> ApproximateDP | None:
        """For a claim about both orders ε at δ = 10⁻⁵, from above: a gap means little to people."""

        def allowed(epsilon: float) -> bool:
            return float(self.delta_at(epsilon)) <= SMALL

        if self.directional or not allowed(_LARGE):
            return None
        return ApproximateDP(bisect(allowed, _LARGE, 0.0)[0], SMALL)

    @classmethod
    def from_delta(cls, f: Callable[[Any], Any]) -> TradeoffDP:
        """The claim that (ε, f(ε))-DP holds for every ε ≥ 0, given as a function ε ↦ δ.

        The function may take arrays or single numbers, and may be an upper bound, such as an
        accountant's (dp-accounting: `pld.get_delta_for_epsilon`). Finitely many ε are asked for and
        the curve is exact for them, so the claim is never stronger than what the function says.

        >>> same = TradeoffDP.from_delta(GaussianDP(1.0).delta_at)
        >>> gap = GaussianDP(1.0).tradeoff(0.05) - same.tradeoff(0.05)
        >>> 0 <= gap < 1e-5
        True
        """
        return cls(tabulated.from_delta(f))

    @property
    def directional(self) -> bool:
        """Whether the claim is about the first input against the second alone."""
        return self.ordered

    def as_epsilon(self, value: float) -> float:
        """A gap of 0.5 is much: half of the largest there is."""
        return 2 * value

    def raw_region(self, q: FloatArray) -> Any:
        """1 − f(q), raised by the gap."""
        return np.minimum(1.0 - self.f(q) + self.gap, 1.0)

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """f(α) less the gap, accurate where it is tiny."""
        return shaped(alpha, lambda a: self.f(a) - self.gap)

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """f⁻¹(1 − p + gap)."""
        inverse = self.f.inverse()
        return shaped(p, lambda p: inverse(np.clip(1.0 - p + self.gap, 0.0, 1.0)))

    def needed(self, p: float, q: float) -> float:
        """How far the point lies below the curve: f(q) − (1 − p), at least 0."""
        return max(0.0, p - (1.0 - float(self.f(q))))

    def slope(self, q: npt.ArrayLike) -> Any:
        """Minus the slope of the tabulated curve, 0 where the raised region is full."""
        q = np.asarray(q, dtype=float)
        pieces = -np.diff(self.f.y) / np.diff(self.f.x)
        at = np.clip(np.searchsorted(self.f.x, q, side="right") - 1, 0, pieces.size - 1)
        return np.where(np.asarray(self.region(q)) >= 1.0, 0.0, pieces[at])

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """At a knot of the lowered curve."""
        return np.asarray(tabulated.lowered(self.f, self.gap).delta(epsilon))

    def shown_by(self) -> tuple[FloatArray, FloatArray] | None:
        """δ(ε) on a grid; None where ε below 0 would be needed.

        That is for one order of the inputs alone, and for a gap beyond the point where f crosses the
        diagonal: up to there the lowered curve asks no more of the second order than of the first.
        """
        if self.ordered or self.f(self.gap) < self.gap:
            return None
        return _profile(self)

    def __str__(self) -> str:
        return "f-DP" if self.gap == 0 else f"f-DP lowered by {digits(self.gap)}"


def _profile(claim: Claim) -> tuple[FloatArray, FloatArray]:
    """δ(ε) of a symmetric claim, equidistant in ε from 0 to where draws cannot follow."""
    last, least = 0.25, float(claim.delta_at(300.0))
    while last < _FAR and float(claim.delta_at(last)) > least + _NEGLIGIBLE:
        last *= 1.25
    eps = np.linspace(0.0, last, _PROFILE)
    return eps, np.asarray(claim.delta_at(eps))


def _log_ratio(top: float, bottom: float) -> float:
    """log top/bottom; −∞ when there is nothing on top, ∞ over nothing."""
    if top <= 0:
        return -math.inf
    return math.inf if bottom <= 0 else math.log(top / bottom)
