"""Claims about divergences: Rényi DP at one order or several, zero-concentrated DP.

P(E) ≤ g(Q(E)) is only implied, so events alone cannot refute every false claim of this kind: the
moments of a function of the output can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy import coins
from dpassay.privacy.claim_base import Claim, checked_delta, digits, shaped
from dpassay.privacy.event_claims import SMALL, ApproximateDP, GaussianDP


@dataclass(frozen=True, eq=False, repr=False)
class DivergenceClaim(Claim):
    """Base of the claims D_λ(P‖Q) ≤ ε(λ), in both directions, at some orders λ.

    ε(λ) is the parameter times a unit. With probability `leak` anything may happen: P is a mixture
    (1 − δ)P' + δP'' and Q is (1 − δ)Q' + δQ'', and what is claimed holds for P' and Q'.
    """

    symmetric: ClassVar[bool] = False
    set_by_events: ClassVar[bool] = False
    quick: ClassVar[bool] = False

    def _unit(self, order: FloatArray) -> FloatArray:
        """ε(λ) for the parameter 1; ∞ at orders the claim says nothing of."""
        raise NotImplementedError

    @cached_property
    def _solved(self) -> FloatArray:
        """The orders the region is made of; fewer make it larger."""
        return np.array(self.orders)

    @cached_property
    def _units(self) -> FloatArray:
        return self._unit(self._solved)

    @cached_property
    def _strictest(self) -> float:
        """ρ = ε(λ)/λ for the parameter 1 at the order where that is smallest."""
        return float(np.min(self._units / self._solved))

    def _edges(self, given: FloatArray, direction: float) -> FloatArray:
        return coins.edge(coins.logit(given), direction, self._solved, self.value * self._units)

    def raw_region(self, q: FloatArray) -> Any:
        """δ + (1 − δ) g(q/(1 − δ)), where g is the smallest of the Rényi regions.

        max{p : p^λ q^{1−λ} + (1−p)^λ (1−q)^{1−λ} ≤ e^{(λ−1)ε(λ)}} is that of order λ. The most
        likely event under P'' is the least likely one under Q''.
        """
        return self.with_slope(q)[0]

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """1 − region(α), accurate where it is tiny."""
        kept = 1.0 - self.leak

        def f(a: FloatArray) -> FloatArray:
            edges = self._edges(np.minimum(a / kept, 1.0), 1.0).min(axis=0)
            return kept * np.exp(coins.log_expit(-edges))

        return shaped(alpha, f)

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """The largest, over the orders, of the smallest q that an order allows."""
        kept = 1.0 - self.leak

        def smallest(p: FloatArray) -> FloatArray:
            inner = np.clip((p - self.leak) / kept, 0.0, 1.0)
            return kept * np.exp(coins.log_expit(self._edges(inner, -1.0).max(axis=0)))

        return shaped(p, smallest)

    def slope(self, q: npt.ArrayLike) -> Any:
        """That of the binding order, by implicit differentiation; 0 where everything is allowed."""
        return self.with_slope(np.atleast_1d(np.asarray(q, dtype=float)))[1]

    def with_slope(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both from one solution."""
        kept = 1.0 - self.leak
        v = coins.logit(np.minimum(q / kept, 1.0))
        u, order = coins.binding(v, self._solved, self.value * self._units)
        region = np.where(q < kept, self.leak + kept * np.exp(coins.log_expit(u)), 1.0)
        slope = np.where((q < kept) | (self.leak == 0), coins.slope(u, v, order), 0.0)
        return region, slope

    def needed(self, p: float, q: float) -> float:
        """The largest D_λ of two coins, in units of ε(λ); the direction p > q only."""
        return float(np.max(self._ratios(p, q)))

    def _ratios(self, p: float, q: float) -> FloatArray:
        kept = 1.0 - self.leak
        inner = max((p - self.leak) / kept, 0.0), min(q / kept, 1.0)
        return _ratio(coins.divergence(*inner, self._solved), self._units)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """δ + (1 − δ) sup_q g(q) − e^ε q, by the substitution q → (1 − δ)q."""
        inner = coins.hockey_stick(epsilon, self._solved, self.value * self._units)
        return self.leak + (1.0 - self.leak) * inner

    def _renyi(self, order: FloatArray) -> FloatArray:
        """ε(λ); ∞ at any other order, and where a part of the outputs is not spoken of."""
        unit = self._unit(order)
        stated = np.isfinite(unit) & (self.leak == 0)
        return np.where(stated, self.value * np.where(stated, unit, 0.0), math.inf)

    def from_renyi(self, order: float, divergence: float) -> float:
        """The divergence in units of ε(λ); 0 where the claim sets no limit at this order."""
        return 0.0 if self.leak > 0 else self.from_divergence(order, divergence)

    def divergence_limit(self, order: float) -> float:
        """ε(λ), of P' and Q'; ∞ at orders the claim says nothing of."""
        unit = float(self._unit(np.array([float(order)]))[0])
        return math.inf if math.isinf(unit) else self.value * unit

    def from_divergence(self, order: float, divergence: float) -> float:
        """The divergence of P' and Q' in units of ε(λ)."""
        found = np.array([max(checks.real("divergence", divergence, finite=False), 0.0)])
        return float(_ratio(found, self._unit(np.array([float(order)])))[0])

    def order_for(self, p: float, q: float) -> float | None:
        """The one whose D_λ of two coins is the largest in units of ε(λ); None for a single order."""
        found = self._ratios(p, q)
        return None if found.size == 1 else float(self._solved[np.argmax(found)])

    def at_order(self, order: float) -> Claim:
        """D_λ(P‖Q) ≤ ε(λ) at this λ, with the same parameter."""
        return AtOrder(self, order)

    def gaussian_proxy(self) -> GaussianDP:
        """μ = √(2ρ) with ρ = ε(λ)/λ: of that λ-divergence, as N(0, 1) and N(μ, 1) have it."""
        return GaussianDP(math.sqrt(2 * self.value * self._strictest))

    def as_epsilon(self, value: float) -> float:
        """μ = √(2ρ), ρ = ε(λ)/λ."""
        return math.sqrt(2 * value * self._strictest)


@dataclass(frozen=True, repr=False)
class AtOrder(DivergenceClaim):
    """One order of a claim about divergences: whoever makes the claim makes this one too."""

    claim: DivergenceClaim
    order: float

    @property
    def whole(self) -> Claim:
        """The claim."""
        return self.claim

    @property
    def value(self) -> float:
        """That of the claim."""
        return self.claim.value

    def at(self, value: float) -> Claim:
        """The same order of the claim with another value of its parameter."""
        return AtOrder(cast(DivergenceClaim, self.claim.at(value)), self.order)

    @cached_property
    def orders(self) -> tuple[float, ...]:
        """The one."""
        return (self.order,)

    @property
    def leak(self) -> float:
        """That of the claim."""
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
        self._set(order=_checked_order(self.order))
        self._set(epsilon=checks.real("epsilon", self.epsilon, at_least=0.0))

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
        orders, epsilons = (_listed(n, getattr(self, n)) for n in ("orders", "epsilons"))
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
        self._set(orders=tuple(found))
        self._set(epsilons=tuple(epsilon for _, epsilon in pairs))
        self._set(factor=checks.real("factor", self.factor, at_least=0.0))

    def _unit(self, order: FloatArray) -> FloatArray:
        orders, epsilons = np.array(self.orders), np.array(self.epsilons)
        at = np.minimum(np.searchsorted(orders, order), orders.size - 1)
        return np.where(orders[at] == order, epsilons[at], math.inf)

    def turned(self) -> ApproximateDP:
        """ε at δ = 10⁻⁵, from above, as accountants convert it: a factor means little to people.

        ε(λ) + log((λ − 1)/λ) − (log δ + log λ)/(λ − 1), the smallest over the orders (Canonne, Kamath &
        Steinke 2020, arXiv:2004.00010, Proposition 12).
        """
        lam, stated = np.array(self.orders), self.factor * np.array(self.epsilons)
        spent = (math.log(SMALL) + np.log(lam)) / (lam - 1)
        return ApproximateDP(max(float(np.min(stated + np.log1p(-1 / lam) - spent)), 0.0), SMALL)

    def __str__(self) -> str:
        first, last, many = self.orders[0], self.orders[-1], len(self.orders)
        said = f"{many} orders ({digits(first)} to {digits(last)})"
        said = f"Rényi DP at {said if many > 1 else f'order {digits(first)}'}"
        return said if self.factor == 1 else f"{digits(self.factor)} × {said}"


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
        self._set(rho=checks.real("rho", self.rho, at_least=0.0))
        self._set(delta=checked_delta(self.delta))

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
    remedy = "order 1 is KL and ∞ is pure DP: use PureDP"
    return checks.real("order", order, above=1.0, remedy=remedy)


def _listed(name: str, values: Any) -> Sequence[Any]:
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise InvalidInput(f"{name} must be a list of numbers, got {checks.shown(values)}")
    return list(values)


def _ratio(found: FloatArray, unit: FloatArray) -> FloatArray:
    """found/unit; 0 where nothing was found or no limit is set, ∞ where nothing is allowed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((found <= 0) | np.isinf(unit), 0.0, found / unit)
