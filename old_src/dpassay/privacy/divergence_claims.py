"""Claims about divergences: Rényi DP at one order or several, zero-concentrated DP (zCDP).

P(E) ≤ g(Q(E)) is only implied, so events alone cannot refute every false claim of this kind: the
moments of a function of the output can.

An event turns a pair of distributions into a pair of Bernoulli distributions, and no divergence of these
exceeds that of the pair (data processing). They are given by the logits of their probabilities, so that
both tails keep their digits. Root searches end on the outer side: nothing a claim allows is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import rdp_to_epsilon
from dpassay.privacy.event_claims import (
    SMALL_DELTA,
    ApproximateDP,
    Claim,
    GaussianDP,
    checked_delta,
    digits,
    probabilities,
)
from dpassay.rootfinding import bisect
from dpassay.validation import scalar_or_array

#: Logits beyond this are probabilities 0 and 1.
_LARGEST_LOGIT = 745.0
#: Rounding of a sum of logarithms, relative to the largest of them.
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False, repr=False)
class DivergenceClaim(Claim):
    """Base of the claims D_λ(P‖Q) ≤ ε(λ), in both directions, at some orders λ.

    ε(λ) is θ times a unit. With probability `leak` anything may happen: P is a mixture
    (1 − δ)P' + δP'' and Q is (1 − δ)Q' + δQ'', and what is claimed holds for P' and Q'.
    """

    symmetric: ClassVar[bool] = False
    set_by_events: ClassVar[bool] = False
    quick: ClassVar[bool] = False

    def _unit(self, order: FloatArray) -> FloatArray:
        """ε(λ) for θ = 1; ∞ at orders without a claim."""
        raise NotImplementedError

    @cached_property
    def _solved(self) -> FloatArray:
        """The orders the region is made of; fewer make it larger."""
        return np.array(self.orders)

    @cached_property
    def _units(self) -> FloatArray:
        return self._unit(self._solved)

    def _columns(self, dimensions: int) -> tuple[FloatArray, FloatArray]:
        """Orders and units along an axis before so many others."""
        shape = (-1, *(1,) * dimensions)
        return self._solved.reshape(shape), self._units.reshape(shape)

    def _edges(self, given: FloatArray, theta: Any, direction: float) -> FloatArray:
        """`_edge` for every order, along the first axis."""
        given, theta = np.broadcast_arrays(given, theta)
        orders, units = self._columns(given.ndim)
        return _edge(given, direction, orders, theta * units)

    def _binding(self, v: FloatArray, theta: Any) -> tuple[FloatArray, FloatArray]:
        """The smallest over the orders of the largest logits of p at the logits v of q; and its order."""
        edges = self._edges(v, theta, 1.0)
        return edges.min(axis=0), self._solved[edges.argmin(axis=0)]

    def region_and_slope(self, q: FloatArray, theta: Any = None) -> tuple[FloatArray, FloatArray]:
        """δ + (1 − δ) g(q/(1 − δ)), where g is the smallest of the Rényi regions.

        max{p : p^λ q^{1−λ} + (1−p)^λ (1−q)^{1−λ} ≤ e^{(λ−1)ε(λ)}} is that of order λ. The most
        likely event under P'' is the least likely one under Q''. The slope is that of the binding order,
        by implicit differentiation; 0 where everything is allowed.
        """
        kept = 1.0 - self.leak
        v = _logit(np.minimum(q / kept, 1.0))
        u, order = self._binding(v, self._theta(theta))
        region = np.where(q < kept, self.leak + kept * np.exp(log_expit(u)), 1.0)
        slope = np.where((q < kept) | (self.leak == 0), _slope(u, v, order), 0.0)
        return region, slope

    def tradeoff(self, alpha: npt.ArrayLike, theta: Any = None) -> Any:
        """1 − region(α), accurate where it is tiny."""
        kept = 1.0 - self.leak
        v = _logit(np.minimum(probabilities(alpha) / kept, 1.0))
        edges = self._edges(v, self._theta(theta), 1.0).min(axis=0)
        return scalar_or_array(kept * np.exp(log_expit(-edges)))

    def region_inverse(self, p: npt.ArrayLike, theta: Any = None) -> Any:
        """The largest, over the orders, of the smallest q that an order allows."""
        kept = 1.0 - self.leak
        u = _logit(np.clip((probabilities(p) - self.leak) / kept, 0.0, 1.0))
        edges = self._edges(u, self._theta(theta), -1.0).max(axis=0)
        return scalar_or_array(kept * np.exp(log_expit(edges)))

    def needed(self, p: npt.ArrayLike, q: npt.ArrayLike) -> Any:
        """The largest D_λ of two Bernoulli distributions, in units of ε(λ); the direction p > q only."""
        return scalar_or_array(np.max(self._ratios(p, q), axis=0))

    def _ratios(self, p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
        """D_λ/ε(λ) by order, along the first axis."""
        kept = 1.0 - self.leak
        p = np.maximum((np.asarray(p, dtype=float) - self.leak) / kept, 0.0)
        p, q = np.broadcast_arrays(p, np.minimum(np.asarray(q, dtype=float) / kept, 1.0))
        orders, units = self._columns(p.ndim)
        return _ratio(_divergence(p, q, orders), units)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """δ + (1 − δ) sup_q g(q) − e^ε q, by the substitution q → (1 − δ)q; never below it.

        The supremum over Bernoulli distributions is the supremum over all pairs (Asoodeh et al. 2021,
        arXiv:2008.06529). g is concave, so the maximum is where its slope passes e^ε. From a bracket
        [a, b] of that place g(b) − e^ε a is reported, which is above the maximum since g increases.
        """
        low = np.full(epsilon.shape, -_LARGEST_LOGIT)
        high = -low
        with np.errstate(over="ignore"):
            ratio = np.exp(epsilon)

        def steep(v: FloatArray) -> Any:
            u, order = self._binding(v, self.value)
            return _slope(u, v, order) > ratio

        low, high = bisect(steep, low, high, steps=50)
        top = np.exp(log_expit(self._binding(high, self.value)[0]))
        with np.errstate(over="ignore"):
            paid = np.exp(epsilon + log_expit(low))
        # the maximum may be at a smaller q than was searched
        paid = np.where(low > -_LARGEST_LOGIT, paid, 0.0)
        inner = np.where(np.isposinf(epsilon), 0.0, np.clip(top - paid, 0.0, 1.0))
        return np.asarray(self.leak + (1.0 - self.leak) * inner)

    def _renyi(self, order: FloatArray, theta: Any) -> FloatArray:
        """ε(λ); ∞ at any other order, and where anything may happen with a positive probability."""
        limits = self._limit(order, theta)
        return limits if self.leak == 0 else np.full(limits.shape, math.inf)

    def _limit(self, order: FloatArray, theta: Any) -> FloatArray:
        unit = self._unit(order)
        with np.errstate(invalid="ignore"):  # 0 · ∞
            return np.where(np.isinf(unit), math.inf, theta * unit)

    def divergence_limit(self, order: float, theta: float | None = None) -> float:
        """ε(λ), the largest divergence of P' and Q' that is allowed; ∞ at orders without a claim."""
        return float(self._limit(np.array(float(order)), self._theta(theta)))

    def from_divergence(self, order: float, divergence: float) -> float:
        """The smallest θ whose `divergence_limit` is that: the divergence in units of ε(λ)."""
        found = np.array(max(checks.real("divergence", divergence, finite=False), 0.0))
        return float(_ratio(found, self._unit(np.array(float(order)))))

    def from_renyi(self, order: float, divergence: float) -> float:
        """The same for the divergence of P and Q; 0 where the claim sets no limit at this order."""
        return 0.0 if self.leak > 0 else self.from_divergence(order, divergence)

    def order_for(self, p: float, q: float) -> float | None:
        found = self._ratios(p, q)
        return None if found.size == 1 else float(self._solved[np.argmax(found)])

    def at_order(self, order: float) -> Claim:
        """D_λ(P‖Q) ≤ ε(λ) at this λ, with the same θ, which the whole claim implies."""
        return AtOrder(self, order)

    def gaussian_proxy(self) -> GaussianDP:
        """The μ-GDP claim of the same strength, cheap to evaluate, to choose events by.

        μ = √(2ρ) with ρ = ε(λ)/λ: N(0, 1) and N(μ, 1) have this λ-divergence.
        """
        return GaussianDP(self.as_epsilon(self.value))

    def as_epsilon(self, value: float) -> float:
        """μ = √(2ρ), ρ = ε(λ)/λ at the order where that is smallest."""
        return math.sqrt(2 * value * float(np.min(self._units / self._solved)))


def _logit(p: FloatArray) -> FloatArray:
    """log p/(1 − p), infinite at the ends."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def _divergence(p: FloatArray, q: FloatArray, lam: FloatArray) -> FloatArray:
    """D_λ of two Bernoulli distributions for p > q, else 0.

    (λ − 1) D_λ = log(p^λ q^{1−λ} + (1−p)^λ (1−q)^{1−λ}).
    """
    u, v = _logit(p), _logit(q)
    with np.errstate(divide="ignore", invalid="ignore"):
        power_sum = np.logaddexp(
            lam * log_expit(u) + (1 - lam) * log_expit(v),
            lam * log_expit(-u) + (1 - lam) * log_expit(-v),
        )
        found = np.where(p >= 1, -np.log(q), np.maximum(power_sum / (lam - 1), 0.0))
    return np.where(p <= q, 0.0, np.where(q <= 0, math.inf, found))


def _edge(fixed: FloatArray, direction: float, lam: FloatArray, budget: FloatArray) -> FloatArray:
    """The logit of the other probability at D_λ = budget, rounded away from the logit `fixed`.

    Direction +1 finds the largest p at a given q, −1 the smallest q at a given p.
    """
    fixed = np.broadcast_to(fixed, budget.shape)
    limit = (lam - 1) * budget
    # at the root no logarithm that counts is larger than λ times those of `fixed`, and the limit
    inner = np.where(np.isinf(fixed), 0.0, fixed)
    limit = limit + _ROUNDING * (1 + limit + lam * (2 * np.log(2) + np.abs(inner)))

    # λ log p + (1 − λ) log q, and the same of 1 − p and 1 − q: the terms of `fixed` are computed once
    moves, stays = (lam, 1 - lam) if direction > 0 else (1 - lam, lam)
    one, two = stays * log_expit(fixed), stays * log_expit(-fixed)

    def excess(other: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            heads, tails = moves * log_expit(other), moves * log_expit(-other)
            return np.asarray(np.logaddexp(heads + one, tails + two) - limit)

    near, far = fixed, np.full(fixed.shape, direction * 800.0)
    near, far = bisect(lambda other: excess(other) <= 0, near, far, steps=24)
    at_near, at_far = excess(near), excess(far)
    for step in range(6):  # the bracket is small: secants aim a little to either side of the root
        with np.errstate(divide="ignore", invalid="ignore"):
            share = -at_near / (at_far - at_near) + (1e-3 if step % 2 else -1e-3)
            secant = near + share * (far - near)
        middle = np.where((share > 0) & (share < 1), secant, 0.5 * (near + far))
        at_middle = excess(middle)
        inside = at_middle <= 0
        near, at_near = np.where(inside, middle, near), np.where(inside, at_middle, at_near)
        far, at_far = np.where(inside, far, middle), np.where(inside, at_far, at_middle)
    # q = 0 allows only p = 0, p = 1 needs log q ≥ −ε, and the other two ends allow everything
    far = np.where(np.isinf(fixed), fixed, far)
    if direction < 0:
        far = np.where(np.isposinf(fixed), _logit(np.exp(-budget)), far)
    return far


def _slope(u: FloatArray, v: FloatArray, lam: FloatArray) -> FloatArray:
    """dp/dq along D_λ = constant, at logits u of p and v of q."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        up, down = log_expit(u) - log_expit(v), log_expit(-u) - log_expit(-v)
        # (λ−1)/λ · (e^{λ·up} − e^{λ·down}) / (e^{(λ−1)up} − e^{(λ−1)down}), where neither power exists
        turn = down - up
        rate = (lam - 1) / lam * np.exp(up) * np.expm1(lam * turn) / np.expm1((lam - 1) * turn)
    rate = np.where(np.isnan(rate), 1.0, rate)  # p = q
    return np.where(u > 700, 0.0, np.where(np.isneginf(v), np.inf, rate))  # p = 1; q = 0


def _ratio(found: FloatArray, unit: FloatArray) -> FloatArray:
    """found/unit; 0 where nothing was found or no limit is set, ∞ where nothing is allowed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((found <= 0) | np.isinf(unit), 0.0, found / unit)


@dataclass(frozen=True, repr=False)
class AtOrder(DivergenceClaim):
    """One order of a claim about divergences, which the claim implies."""

    claim: DivergenceClaim
    order: float

    @property
    def whole(self) -> Claim:
        return self.claim

    @property
    def value(self) -> float:
        return self.claim.value

    def at(self, value: float) -> Claim:
        return AtOrder(cast(DivergenceClaim, self.claim.at(value)), self.order)

    @cached_property
    def orders(self) -> tuple[float, ...]:
        return (self.order,)

    @property
    def leak(self) -> float:
        return self.claim.leak

    def _unit(self, order: FloatArray) -> FloatArray:
        return self.claim._unit(order)

    def __str__(self) -> str:
        return f"{self.claim} at order {digits(self.order)}"


@dataclass(frozen=True)
class RenyiDP(DivergenceClaim):
    """(λ, ε)-Rényi DP: D_λ(P‖Q) ≤ ε, in both directions (Mironov 2017, arXiv:1702.07476).

    >>> round(RenyiDP(order=2, epsilon=0.1).region(0.1), 4)
    0.1973
    """

    order: float
    epsilon: float

    def __post_init__(self) -> None:
        epsilon = checks.real("epsilon", self.epsilon, at_least=0.0)
        self._set(order=_checked_order(self.order), epsilon=epsilon)

    @cached_property
    def orders(self) -> tuple[float, ...]:
        """Its own."""
        return (self.order,)

    @property
    def meaning(self) -> str:
        """ε at its order."""
        return f"Rényi ε({digits(self.order)})"

    def _unit(self, order: FloatArray) -> FloatArray:
        return np.where(order == self.order, 1.0, math.inf)

    def __str__(self) -> str:
        return f"({digits(self.order)}, {digits(self.epsilon)})-Rényi DP"


@dataclass(frozen=True, repr=False)
class RenyiCurveDP(DivergenceClaim):
    """D_λ(P‖Q) ≤ ε(λ), in both directions, at every order listed: what a Rényi accountant holds.

    `factor` multiplies all ε(λ). It is the parameter a lower bound is reported on: a bound above 1
    refutes the curve. An order with ε(λ) = ∞ says nothing and is left out.

    >>> curve = RenyiCurveDP([2, 4, 8], [0.1, 0.2, 0.4])
    >>> print(curve, curve.renyi(4.0), round(curve.from_renyi(4.0, 0.3), 6))
    Rényi DP at 3 orders (2 to 8) 0.2 1.5
    """

    orders: tuple[float, ...] = field()
    epsilons: tuple[float, ...]
    factor: float = 1.0
    parameter: ClassVar[str] = "factor"
    symbol: ClassVar[str] = "factor"

    def __post_init__(self) -> None:
        orders, epsilons = (checks.listed(n, getattr(self, n)) for n in ("orders", "epsilons"))
        if len(orders) != len(epsilons):
            raise InvalidInput(
                f"orders and epsilons must be equally many, got {len(orders)} and {len(epsilons)}"
            )
        pairs = sorted(
            (_checked_order(order), checks.real("epsilon", epsilon, at_least=0.0, finite=False))
            for order, epsilon in zip(orders, epsilons, strict=True)
        )
        pairs = [pair for pair in pairs if pair[1] < math.inf]
        if not pairs:
            raise InvalidInput(
                f"a Rényi curve needs an order with a finite epsilon, got orders "
                f"{checks.shown(orders)} and epsilons {checks.shown(epsilons)}"
            )
        found = [order for order, _ in pairs]
        if twice := [a for a, b in pairwise(found) if a == b]:
            raise InvalidInput(f"order {twice[0]:g} is given twice; give each order one epsilon")
        factor = checks.real("factor", self.factor, at_least=0.0)
        self._set(orders=tuple(found), epsilons=tuple(e for _, e in pairs), factor=factor)

    def _unit(self, order: FloatArray) -> FloatArray:
        orders, epsilons = np.array(self.orders), np.array(self.epsilons)
        at = np.minimum(np.searchsorted(orders, order), orders.size - 1)
        return np.where(orders[at] == order, epsilons[at], math.inf)

    def companion(self) -> ApproximateDP:
        """ε at δ = 10⁻⁵, from above, as accountants convert it: a factor means little to people."""
        stated = self.factor * np.array(self.epsilons)
        epsilon = rdp_to_epsilon(np.array(self.orders), stated, SMALL_DELTA)
        return ApproximateDP(epsilon, SMALL_DELTA)

    def __str__(self) -> str:
        first, last, many = digits(self.orders[0]), digits(self.orders[-1]), len(self.orders)
        orders = f"{many} orders ({first} to {last})" if many > 1 else f"order {first}"
        times = "" if self.factor == 1 else f"{digits(self.factor)} × "
        return f"{times}Rényi DP at {orders}"


@dataclass(frozen=True, repr=False)
class ZeroConcentratedDP(DivergenceClaim):
    """ρ-zCDP: D_λ(P‖Q) ≤ λρ for every order λ > 1, in both directions (arXiv:1605.02065).

    With `delta` the δ-approximate claim of Bun & Steinke 2016, section 8: P = (1 − δ)P' + δP'' and
    Q = (1 − δ)Q' + δQ'', where P' and Q' are ρ-zCDP. The region is the intersection over finitely
    many orders, which can only be larger than the true one: conservative.

    >>> round(ZeroConcentratedDP(0.5).region(0.1), 4)
    0.4838
    >>> round(ZeroConcentratedDP(0.5, delta=0.01).region(0.0), 4)
    0.01
    """

    rho: float
    delta: float = 0.0
    parameter: ClassVar[str] = "rho"
    symbol: ClassVar[str] = "ρ"
    orders: ClassVar[tuple[float, ...]] = (
        *(1.1, 1.25, 1.5, 1.75, 2.0, 2.5),
        *(3.0, 4.0, 6.0, 8.0, 12.0, 16.0),
    )
    _solved: ClassVar[FloatArray] = 1.0 + np.geomspace(0.02, 200.0, 24)

    def __post_init__(self) -> None:
        rho = checks.real("rho", self.rho, at_least=0.0)
        self._set(rho=rho, delta=checked_delta(self.delta))

    @property
    def meaning(self) -> str:
        """ρ, at a δ if there is one."""
        return f"ρ at δ = {digits(self.delta)}" if self.delta else "ρ"

    @property
    def leak(self) -> float:
        """δ."""
        return self.delta

    def shown_by(self) -> tuple[FloatArray, FloatArray] | None:
        """(√(2ρ), δ)-DP, which implies it (Bun & Steinke 2016, Lemma 8.8); without a δ nothing does.

        What is never seen, however unlikely, can make a divergence infinite.
        """
        if self.delta == 0:
            return None
        return np.array([math.sqrt(2 * self.rho)]), np.array([self.delta])

    def _unit(self, order: FloatArray) -> FloatArray:
        return order

    def __str__(self) -> str:
        if self.delta:
            return f"({digits(self.rho)}, {digits(self.delta)})-zCDP"
        return f"{digits(self.rho)}-zCDP"


def _checked_order(order: Any) -> float:
    remedy = (
        "use PureDP for order ∞" if order == math.inf else "orders of 1 and below are not supported"
    )
    return checks.real("order", order, above=1.0, remedy=remedy)
