"""Privacy claims as constraints on events: what all claims have, pure DP, (ε, δ)-DP and Gaussian DP.

Every claim says P(E) ≤ g(Q(E)) for all neighbouring inputs and every event E, with g concave and
increasing. g is `Claim.region`, and 1 − g is the claim's trade-off function. For the claims in this
module and for f-DP (`tradeoff_claims`) this is the whole claim. For Rényi DP and zCDP
(`divergence_claims`) it is only implied by the claim (`set_by_events` is False there), so events alone
cannot refute every false claim of that kind.

θ is the parameter that a lower bound is reported on: ε, δ, μ, ρ, a factor, or a gap. The functions that
searches call (`region`, `slope` and others) take arrays of probabilities and of θ, which broadcast.

Where a claim is tabulated or solved for numerically, `region` is never below the true g, so that rounding
refutes no claim.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import gaussian_tradeoff
from dpassay.records import Record
from dpassay.rootfinding import bisect
from dpassay.validation import scalar_or_array

#: A privacy profile is tabulated at this many ε, up to where δ is this close to its infimum, or this ε.
_PROFILE_POINTS, _NEGLIGIBLE, _MAX_EPSILON = 65, 1e-6, 50.0
#: The δ at which a curve is also reported as an ε.
SMALL_DELTA = 1e-5
#: The largest ε that `epsilon_at` finds.
_LARGE_EPSILON = 300.0
#: What messages say of `region_and_slope`, and where to read on.
TWO_ARRAYS = "two arrays like q: g(q), and its derivative"
SEE = (
    "see “A claim” on the page “Add a mechanism, a score, a claim, a feature” of the documentation"
)


@dataclass(frozen=True, eq=False)
class Claim(Record):
    """Base of all claims.

    Where a method takes `theta`, it answers for the claim with this θ ≥ 0 instead of the claimed one.
    A claim also answers in the terms of other notions: `delta_at` is its privacy profile, `renyi` its
    Rényi divergence. Claims about divergences (`set_by_events` is False) also have `orders`, `leak`,
    `divergence_limit` and `from_divergence`.
    """

    def _validate(self) -> None:
        checks.require(bool(dataclasses.fields(self)), "a claim is of a kind, such as PureDP")

    #: Whether P(E) ≤ g(Q(E)) for every E is equivalent to Q(E) ≤ g(P(E)) for every E, or is all that the
    #: claim says. For f-DP about both orders that is so at gap 0 only, else it is a part of the claim.
    symmetric: ClassVar[bool] = True
    #: Whether P(E) ≤ g(Q(E)) for every event is equivalent to the claim.
    set_by_events: ClassVar[bool] = True
    #: Whether `region` and `slope` are closed forms, cheap to evaluate.
    quick: ClassVar[bool] = True
    #: Whether the claim is only about the first input against the second.
    directional: ClassVar[bool] = False
    #: What readers of a verdict must know of how the claim is tested.
    notes: ClassVar[tuple[str, ...]] = ()
    #: The name of θ (the larger θ, the weaker the claim), its symbol, and its largest value.
    parameter: ClassVar[str] = "epsilon"
    symbol: ClassVar[str] = "ε"
    largest: ClassVar[float] = math.inf

    # --- the parameter θ

    @property
    def meaning(self) -> str:
        """The symbol of θ, with what is held fixed."""
        return self.symbol

    @property
    def short(self) -> str:
        """The claim for readers: where `str` has all of many decimals, four significant digits."""
        return re.sub(r"\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):.4g}", str(self))

    @cached_property
    def value(self) -> float:
        """The claimed θ."""
        return float(getattr(self, self.parameter))

    def at(self, value: float) -> Claim:
        """The same claim with another θ. Searches pass θ to the methods below instead."""
        return replace(self, **{self.parameter: value})

    def _theta(self, theta: Any) -> Any:
        return self.value if theta is None else theta

    @property
    def point(self) -> tuple[float, float] | None:
        """(ε, δ) of a pure or (ε, δ) claim; None for any other."""
        return self.point_at(self.value)

    def point_at(self, theta: Any) -> tuple[Any, Any] | None:
        """`point` with another θ."""
        return None

    def companion(self) -> Claim | None:
        """The same claim, or one that it implies, in another parameter; None if there is none."""
        return None

    def as_epsilon(self, value: float) -> float:
        """A value of θ on a scale on which a difference of 1 is a large violation, as it is in ε and μ.

        It decides whether an audit that found nothing was too weak. The ε of the claim at a δ is another
        number: `epsilon_at`.
        """
        return value

    # --- events

    def region(self, q: npt.ArrayLike, theta: Any = None) -> Any:
        """g(q): the largest P(E) that the claim allows when Q(E) = q."""
        found = self.region_and_slope(probabilities(q), theta)[0]
        return scalar_or_array(np.clip(found, 0.0, 1.0))

    def slope(self, q: npt.ArrayLike, theta: Any = None) -> FloatArray:
        """The derivative of `region` (from the right at a kink)."""
        return self.region_and_slope(np.asarray(q, dtype=float), theta)[1]

    def region_and_slope(self, q: FloatArray, theta: Any = None) -> tuple[FloatArray, FloatArray]:
        """`region`, not clipped, and `slope`, of an array that is known to lie in [0, 1]."""
        raise self._lacking("region_and_slope(q, theta)", TWO_ARRAYS)

    def tradeoff(self, alpha: npt.ArrayLike, theta: Any = None) -> Any:
        """The claimed trade-off function f(α) = 1 − g(α): the least type II error at type I error α."""
        raise self._lacking("tradeoff(alpha, theta)", "f(α) = 1 − g(α), an array like alpha")

    def region_inverse(self, p: npt.ArrayLike, theta: Any = None) -> Any:
        """The smallest Q(E) that the claim allows when P(E) = p."""
        # a symmetric claim has f⁻¹ = f, and q ≥ f⁻¹(1 − p)
        return self.tradeoff(1.0 - probabilities(p), theta)

    def needed(self, p: npt.ArrayLike, q: npt.ArrayLike) -> Any:
        """The smallest θ that allows P(E) = p at Q(E) = q."""
        raise self._lacking("needed(p, q)", "the smallest θ with p ≤ g(q), an array like p and q")

    # --- other notions

    def delta_at(self, epsilon: npt.ArrayLike) -> Any:
        """The privacy profile: the largest δ that the claim allows at ε, sup_q g(q) − e^ε q."""
        return scalar_or_array(self._delta(checks.doubles("epsilon", epsilon)))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        raise self._lacking("_delta(epsilon)", "the largest δ allowed at each ε, an array like it")

    def epsilon_at(self, delta: float) -> float:
        """About the smallest ε at which the claim allows no more than δ; ∞ if there is none.

        It converts any claim to (ε, δ)-DP, on the safe side: for zCDP, of which only some orders are
        used, it is up to 2 % larger than the best conversion.

        >>> import dpassay as dp
        >>> round(dp.GaussianDP(1.0).epsilon_at(1e-5), 3), round(dp.claim("rho=0.5").epsilon_at(1e-5), 3)
        (4.377, 4.816)
        """

        def allowed(epsilon: float) -> bool:
            return float(self.delta_at(epsilon)) <= delta * (1 + 1e-6)  # curves are rounded up

        if not allowed(_LARGE_EPSILON):
            return math.inf
        return 0.0 if allowed(0.0) else float(bisect(allowed, _LARGE_EPSILON, 0.0)[0])

    def _lacking(self, method: str, returns: str) -> InvalidInput:
        return InvalidInput(
            f"{type(self).__name__} must define {method}, which returns {returns}; {SEE}"
        )

    def shown_by(self) -> tuple[FloatArray, FloatArray] | None:
        """Points (ε, δ) of the privacy profile; upper bounds below all of them verify the claim.

        A single point is the whole claim. Several points are a decreasing curve, convex in e^ε, and the
        chords between them are needed too. None where no such bound verifies the claim.
        """
        return None

    def renyi(self, order: npt.ArrayLike, theta: Any = None) -> Any:
        """The Rényi divergence that the claim allows at an order λ > 1.

        Only what is stated or known exactly: ∞ where the claim sets no limit, or one that would have
        to be derived.
        """
        orders = checks.doubles("order", order)
        if np.any(~(orders > 1)):
            raise InvalidInput(
                f"order must be a number above 1, got {checks.shown(order)}; order 1 is KL"
            )
        return scalar_or_array(self._renyi(orders, self._theta(theta)))

    def _renyi(self, order: FloatArray, theta: Any) -> FloatArray:
        return np.full(np.broadcast_shapes(order.shape, np.shape(theta)), math.inf)

    # --- divergences

    @cached_property
    def orders(self) -> tuple[float, ...]:
        """The orders at which a claim about divergences can be tested; none for other claims."""
        return ()

    def order_for(self, p: float, q: float) -> float | None:
        """The order at which P(E) = p and Q(E) = q need the largest θ; None if there is no choice."""
        return None

    @property
    def whole(self) -> Claim:
        """The claim of which this one is an order; else the claim itself."""
        return self

    @property
    def leak(self) -> float:
        """The probability δ with which a claim about divergences allows anything to happen."""
        return 0.0

    def _no_divergence(self, *_: Any, **__: Any) -> Any:
        raise InvalidInput(
            f"{self} is a claim about events, with no order of a divergence to test it at; use "
            "`region` and `needed`"
        )

    #: Claims about divergences have these: see `DivergenceClaim`.
    at_order = divergence_limit = from_divergence = from_renyi = gaussian_proxy = _no_divergence

    def __repr__(self) -> str:
        shown = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in dataclasses.fields(self)
            if f.default is dataclasses.MISSING or getattr(self, f.name) != f.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def probabilities(values: npt.ArrayLike) -> FloatArray:
    """Numbers in [0, 1] as an array."""
    array = checks.doubles("a probability", values)
    if not ((array >= 0) & (array <= 1)).all():
        raise InvalidInput(f"a probability must lie in [0, 1], got {checks.shown(values)}")
    return array


def digits(value: float) -> str:
    """The shortest text that is read back as the same number."""
    return repr(float(value)).removesuffix(".0")


def checked_delta(delta: Any) -> float:
    """A δ in [0, 1)."""
    return checks.real(
        "delta", delta, at_least=0.0, below=1.0, remedy="with delta = 1 nothing is claimed"
    )


@dataclass(frozen=True, eq=False, repr=False)
class EpsilonDeltaClaim(Claim):
    """Base of the claims P(E) ≤ e^ε Q(E) + δ, with `epsilon` and `delta`, of which one is θ."""

    def _line(self, theta: Any) -> tuple[Any, Any, Any]:
        """e^ε, ε and δ. Past e^700 nothing changes but the overflow."""
        own: Any = self
        theta = self._theta(theta)
        epsilon, delta = (own.epsilon, theta) if self.parameter == "delta" else (theta, own.delta)
        if isinstance(epsilon, float):  # several times faster
            return math.exp(min(epsilon, 700.0)), epsilon, delta
        return np.exp(np.minimum(epsilon, 700.0)), epsilon, delta

    def point_at(self, theta: Any) -> tuple[Any, Any]:
        return self._line(theta)[1:]

    def region_and_slope(self, q: FloatArray, theta: Any = None) -> tuple[FloatArray, FloatArray]:
        """min(e^ε q + δ, 1 − e^{−ε}(1 − δ − q), 1); e^ε, then e^{−ε}, then 0."""
        ratio, epsilon, delta = self._line(theta)
        rest = 1.0 - delta
        inside = q < rest
        lines = np.minimum(ratio * q + delta, (delta + q) / ratio - np.expm1(-epsilon))
        slope = np.where(q < rest / (ratio + 1.0), ratio, np.where(inside, 1 / ratio, 0.0))
        return np.where(inside, lines, 1.0), slope

    def tradeoff(self, alpha: npt.ArrayLike, theta: Any = None) -> Any:
        """max(0, 1 − δ − e^ε α, e^{−ε}(1 − δ − α))."""
        alpha = probabilities(alpha)
        ratio, _, delta = self._line(theta)
        rest = 1.0 - delta
        lines = np.maximum(rest - ratio * alpha, (rest - alpha) / ratio)
        return scalar_or_array(np.maximum(lines, 0.0))

    def needed(self, p: npt.ArrayLike, q: npt.ArrayLike) -> Any:
        """ε: the larger of log (p − δ)/q and log (1 − δ − q)/(1 − p), at least 0.

        δ: the larger of p − e^ε q and 1 − q − e^ε (1 − p), at least 0.
        """
        p, q = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
        ratio, _, delta = self._line(None)
        if self.parameter == "delta":
            lines = np.array([p - ratio * q, 1 - q - ratio * (1 - p)])
        else:
            top, bottom = np.array([p - delta, 1 - delta - q]), np.array([q, 1 - p])
            with np.errstate(divide="ignore", invalid="ignore"):  # ∞ where only the bottom is 0
                lines = np.where(top > 0, np.log(top / bottom), -math.inf)
        return scalar_or_array(np.maximum(lines.max(axis=0), 0.0))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """δ + (1 − δ) max(0, (e^ε₀ − e^ε)/(1 + e^ε₀), 1 − e^ε): the vertices of the region."""
        own, delta = self.point_at(self.value)
        kink = -np.expm1(np.minimum(epsilon - own, 0.0)) / (1 + math.exp(-own))
        rest = np.maximum(kink, -np.expm1(np.minimum(epsilon, 0.0)))
        return np.asarray(delta + (1 - delta) * rest)

    def shown_by(self) -> tuple[FloatArray, FloatArray]:
        """δ at its ε. Sampling cannot establish δ = 0: an upper bound is positive."""
        epsilon, delta = self.point_at(self.value)
        return np.array([epsilon]), np.array([delta])

    def _renyi(self, order: FloatArray, theta: Any) -> FloatArray:
        """D_λ of binary randomized response where δ = 0 (it dominates every other pair), else ∞.

        log[cosh((λ − ½)ε) / cosh(ε/2)]/(λ − 1), with no cancellation where ε is small.
        """
        epsilon, delta = self.point_at(theta)
        finite = np.where(np.isinf(order), 2.0, order)
        with np.errstate(over="ignore", invalid="ignore"):
            rise = 2 * np.sinh(finite * epsilon / 2) * np.sinh((finite - 1) * epsilon / 2)
            small = np.log1p(rise / np.cosh(epsilon / 2))
        large = np.logaddexp(finite * epsilon, (1 - finite) * epsilon) - np.logaddexp(0.0, epsilon)
        found = np.where(finite * epsilon < 300, small, large) / (finite - 1)
        return np.where(delta > 0, math.inf, np.where(np.isinf(order), epsilon, found))


@dataclass(frozen=True)
class PureDP(EpsilonDeltaClaim):
    """ε-DP: P(E) ≤ e^ε Q(E).

    >>> round(PureDP(0.5).region(0.1), 4)
    0.1649
    """

    epsilon: float
    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        self._set(epsilon=checks.real("epsilon", self.epsilon, at_least=0.0))

    def __str__(self) -> str:
        return f"{digits(self.epsilon)}-DP"


@dataclass(frozen=True, repr=False)
class ApproximateDP(EpsilonDeltaClaim):
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
        epsilon = checks.real("epsilon", self.epsilon, at_least=0.0)
        self._set(epsilon=epsilon, delta=checked_delta(self.delta))
        checks.one_of("headline", self.headline, ("epsilon", "delta"))
        if self.headline == "delta":  # just below 1, where nothing would be claimed
            self._set(parameter="delta", symbol="δ", largest=1.0 - 1e-12)

    @property
    def meaning(self) -> str:
        if self.headline == "epsilon":
            return f"ε at δ = {digits(self.delta)}"
        return f"δ at ε = {digits(self.epsilon)}"

    def companion(self) -> ApproximateDP | None:
        """δ at this ε for ε at this δ, and the other way round; none where δ is 0."""
        other = "delta" if self.headline == "epsilon" else "epsilon"
        return replace(self, headline=other) if self.delta else None

    def as_epsilon(self, value: float) -> float:
        """A δ of 0.1 is large: an output may reveal everything that often."""
        return value if self.headline == "epsilon" else 10 * value

    def __str__(self) -> str:
        said = f"({digits(self.epsilon)}, {digits(self.delta)})-DP"
        return said if self.headline == "epsilon" else f"{said} in δ"


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

    def region_and_slope(self, q: FloatArray, theta: Any = None) -> tuple[FloatArray, FloatArray]:
        """Φ(μ + z), never rounded below q, and φ(μ + z)/φ(z), at z = Φ⁻¹(q)."""
        mu, z = self._theta(theta), ndtri(q)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.where(mu > 0, np.exp(-mu * z - mu**2 / 2), 1.0)
        return np.maximum(ndtr(mu + z), q), slope

    def tradeoff(self, alpha: npt.ArrayLike, theta: Any = None) -> Any:
        """Φ(Φ⁻¹(1 − α) − μ)."""
        return scalar_or_array(gaussian_tradeoff(probabilities(alpha), self._theta(theta)))

    def needed(self, p: npt.ArrayLike, q: npt.ArrayLike) -> Any:
        """Φ⁻¹(p) − Φ⁻¹(q), at least 0."""
        with np.errstate(invalid="ignore"):
            found = np.where(np.greater(p, q), np.subtract(ndtri(p), ndtri(q)), 0.0)
        return scalar_or_array(np.maximum(found, 0.0))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), in log space (Balle & Wang 2018, arXiv:1805.06530)."""
        if self.mu == 0:
            return np.asarray(-np.expm1(np.minimum(epsilon, 0.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            top = log_ndtr(self.mu / 2 - epsilon / self.mu)
            bottom = epsilon + log_ndtr(-self.mu / 2 - epsilon / self.mu)
            value = np.exp(top) * -np.expm1(bottom - top)
        return np.where(np.isneginf(top), 0.0, np.clip(value, 0.0, 1.0))

    def epsilon_at(self, delta: float) -> float:
        """∞ at δ = 0, where `delta_at` is rounded to 0 from some ε on."""
        return super().epsilon_at(delta) if delta > 0 or self.mu == 0 else math.inf

    def shown_by(self) -> tuple[FloatArray, FloatArray]:
        return profile_points(self)

    def _renyi(self, order: FloatArray, theta: Any) -> FloatArray:
        """λμ²/2."""
        with np.errstate(invalid="ignore"):
            return np.where(np.greater(theta, 0), order * np.square(theta) / 2, 0.0)

    def __str__(self) -> str:
        return f"{digits(self.mu)}-GDP"


def profile_points(claim: Claim) -> tuple[FloatArray, FloatArray]:
    """δ(ε) of a symmetric claim at equidistant ε, from 0 to where δ is too small to be estimated."""
    last, least = 0.25, float(claim.delta_at(300.0))
    while last < _MAX_EPSILON and float(claim.delta_at(last)) > least + _NEGLIGIBLE:
        last *= 1.25
    eps = np.linspace(0.0, last, _PROFILE_POINTS)
    return eps, np.asarray(claim.delta_at(eps))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ for which Gaussian DP implies (ε, δ)-DP."""
    return float(bisect(lambda mu: GaussianDP(mu).delta_at(epsilon) <= delta, 0.0, 100.0)[0])
