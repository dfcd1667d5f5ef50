"""Privacy claims, as constraints on events.

Every claim says, for all neighbouring inputs and every event E, P(E) ≤ g(Q(E)) with g concave and
increasing; g is `region`, and 1 − g is the claim's trade-off function. For pure DP, (ε,δ), GDP and
trade-off curves this is the whole claim; for Rényi and zCDP it is only implied by it
(`event_complete` is False there), so events alone cannot refute every false claim of that kind.

Where a claim has to be tabulated or solved for, errors fall on its own side: `region` is never
below the true g, so a claim is never refuted for our rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import TradeoffCurve, gaussian_tradeoff, lower_hull
from dpassay.records import Record


@dataclass(frozen=True, eq=False)
class Claim(Record):
    """Base of all claims."""

    #: The parameter a lower bound is reported on, with its symbol for people.
    parameter: ClassVar[str] = "epsilon"
    symbol: ClassVar[str] = "ε"
    #: Whether P(E) ≤ g(Q(E)) for every E says the same as Q(E) ≤ g(P(E)) for every E.
    symmetric: ClassVar[bool] = True
    #: Whether P(E) ≤ g(Q(E)) for every event is equivalent to the claim.
    event_complete: ClassVar[bool] = True
    #: Whether `region` and `slope` are closed forms, cheap to evaluate.
    quick: ClassVar[bool] = True

    def region(self, q: npt.ArrayLike) -> Any:
        """The largest P(E) the claim allows when Q(E) = q."""
        return _shaped(q, self.raw_region)

    def raw_region(self, q: FloatArray) -> Any:
        """`region` of an array known to lie in [0, 1], not clipped."""
        raise NotImplementedError

    def slope(self, q: npt.ArrayLike) -> Any:
        """The derivative of `region` (from the right at a kink)."""
        raise NotImplementedError

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """The claimed trade-off function f(α) = 1 − region(α)."""
        return _shaped(alpha, lambda a: 1.0 - self.region(a))

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """The smallest Q(E) the claim allows when P(E) = p."""
        # a symmetric claim has f⁻¹ = f, and q ≥ f⁻¹(1 − p)
        return _shaped(p, lambda value: np.asarray(self.tradeoff(1.0 - value)))

    def needed(self, p: float, q: float) -> float:
        """The smallest value of the claim's parameter that allows P(E) = p at Q(E) = q."""
        raise NotImplementedError

    @property
    def value(self) -> float:
        """The value of the claim's parameter."""
        return float(getattr(self, self.parameter))

    def at(self, value: float) -> Claim:
        """The same claim with another value of its parameter."""
        return replace(self, **{self.parameter: value})


def _shaped(values: npt.ArrayLike, f: Callable[[FloatArray], Any]) -> Any:
    """Apply `f` to values in [0, 1]; a scalar in gives a float out."""
    array = np.asarray(values, dtype=float)
    if np.any(~((array >= 0) & (array <= 1))):
        raise InvalidInput(f"a probability must lie in [0, 1], got {checks.shown(values)}")
    result = np.clip(f(array.ravel()), 0.0, 1.0)
    return result.reshape(array.shape) if array.ndim else float(result[0])


@dataclass(frozen=True)
class ApproximateDP(Claim):
    """(ε, δ)-DP: P(E) ≤ e^ε Q(E) + δ.

    >>> round(ApproximateDP(1.0, 0.01).region(0.1), 4)
    0.2818
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.real("epsilon", self.epsilon, at_least=0.0))
        object.__setattr__(
            self,
            "delta",
            checks.real(
                "delta",
                self.delta,
                at_least=0.0,
                below=1.0,
                remedy="with delta = 1 nothing is claimed",
            ),
        )

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
        return _shaped(
            alpha,
            lambda a: np.maximum(np.maximum(rest - self._ratio * a, (rest - a) / self._ratio), 0.0),
        )

    def needed(self, p: float, q: float) -> float:
        """The larger of log (p − δ)/q and log (1 − δ − q)/(1 − p), at least 0."""
        return max(0.0, _log_ratio(p - self.delta, q), _log_ratio(1 - self.delta - q, 1 - p))

    def slope(self, q: npt.ArrayLike) -> Any:
        """e^ε, then e^{−ε}, then 0."""
        q = np.asarray(q, dtype=float)
        kink = (1.0 - self.delta) / (self._ratio + 1.0)
        flat = np.where(q < 1.0 - self.delta, 1 / self._ratio, 0.0)
        return np.where(q < kink, self._ratio, flat)

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"


@dataclass(frozen=True)
class PureDP(Claim):
    """ε-DP: P(E) ≤ e^ε Q(E).

    >>> round(PureDP(0.5).region(0.1), 4)
    0.1649
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.real("epsilon", self.epsilon, at_least=0.0))

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

    def __str__(self) -> str:
        return f"{self.epsilon:g}-DP"


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
        object.__setattr__(self, "mu", checks.real("mu", self.mu, at_least=0.0))

    def raw_region(self, q: FloatArray) -> Any:
        """Φ(μ + Φ⁻¹(q))."""
        return ndtr(self.mu + ndtri(q))

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """Φ(Φ⁻¹(1 − α) − μ)."""
        return _shaped(alpha, lambda alpha: gaussian_tradeoff(alpha, self.mu))

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

    def __str__(self) -> str:
        return f"{self.mu:g}-GDP"


@dataclass(frozen=True)
class RenyiDP(Claim):
    """(λ, ε)-Rényi DP: D_λ(P‖Q) ≤ ε, in both directions.

    >>> round(RenyiDP(order=2, epsilon=0.1).region(0.1), 4)
    0.1973
    """

    order: float
    epsilon: float
    symmetric: ClassVar[bool] = False
    event_complete: ClassVar[bool] = False
    quick: ClassVar[bool] = False

    def __post_init__(self) -> None:
        order = checks.real(
            "order", self.order, above=1.0, remedy="order 1 is KL and ∞ is pure DP: use PureDP"
        )
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "epsilon", checks.real("epsilon", self.epsilon, at_least=0.0))

    def raw_region(self, q: FloatArray) -> Any:
        """max{p : p^λ q^{1−λ} + (1−p)^λ (1−q)^{1−λ} ≤ e^{(λ−1)ε}}."""
        return np.exp(_log_expit(self._edge(q, 1.0)))

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """1 − region(α), accurate where it is tiny."""
        return _shaped(alpha, lambda q: np.exp(_log_expit(-self._edge(q, 1.0))))

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """The smallest q with D_λ((p, 1−p)‖(q, 1−q)) ≤ ε."""
        return _shaped(p, lambda p: np.exp(_log_expit(self._edge(p, -1.0))))

    def _edge(self, given: FloatArray, direction: float) -> FloatArray:
        orders, budgets = np.array([self.order]), np.array([self.epsilon])
        return np.asarray(_renyi_edge(given, direction, orders, budgets)[0])

    def needed(self, p: float, q: float) -> float:
        """The Rényi divergence of two coins; the direction p > q only."""
        return float(_coin_renyi(p, q, np.array([self.order]))[0])

    def slope(self, q: npt.ArrayLike) -> Any:
        """By implicit differentiation of the binary divergence."""
        q = np.atleast_1d(np.asarray(q, dtype=float))
        return _renyi_slope(self._edge(q, 1.0), _logit(q), np.array([self.order]))

    def __str__(self) -> str:
        return f"({self.order:g}, {self.epsilon:g})-Rényi DP"


@dataclass(frozen=True)
class ZeroConcentratedDP(Claim):
    """ρ-zCDP: D_λ(P‖Q) ≤ λρ for every order λ > 1, in both directions.

    The region is the intersection over finitely many orders, which can only be larger than the
    true one: conservative.

    >>> round(ZeroConcentratedDP(0.5).region(0.1), 4)
    0.4838
    """

    rho: float
    parameter: ClassVar[str] = "rho"
    symbol: ClassVar[str] = "ρ"
    symmetric: ClassVar[bool] = False
    event_complete: ClassVar[bool] = False
    quick: ClassVar[bool] = False
    orders: ClassVar[FloatArray] = 1.0 + np.geomspace(0.02, 200.0, 24)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checks.real("rho", self.rho, at_least=0.0))

    def renyi(self, order: float) -> RenyiDP:
        """The Rényi claim this one makes at an order (exact: it is the definition)."""
        return RenyiDP(order, order * self.rho)

    def _edges(self, given: FloatArray, direction: float) -> FloatArray:
        return _renyi_edge(given, direction, self.orders, self.orders * self.rho)

    def raw_region(self, q: FloatArray) -> Any:
        """The smallest of the Rényi regions."""
        return np.exp(_log_expit(self._edges(q, 1.0).min(axis=0)))

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """The largest of the Rényi trade-off functions."""
        return _shaped(alpha, lambda a: np.exp(_log_expit(-self._edges(a, 1.0).min(axis=0))))

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """The largest of the Rényi inverses."""
        return _shaped(p, lambda p: np.exp(_log_expit(self._edges(p, -1.0).max(axis=0))))

    def needed(self, p: float, q: float) -> float:
        """The largest D_λ/λ of two coins over the orders looked at."""
        return float(np.max(_coin_renyi(p, q, self.orders) / self.orders))

    def slope(self, q: npt.ArrayLike) -> Any:
        """The slope of the binding Rényi region."""
        q = np.atleast_1d(np.asarray(q, dtype=float))
        edges = self._edges(q, 1.0)
        binding = edges.argmin(axis=0)
        return _renyi_slope(edges.min(axis=0), _logit(q), self.orders[binding])

    def __str__(self) -> str:
        return f"{self.rho:g}-zCDP"


@dataclass(frozen=True, eq=False)
class TradeoffDP(Claim):
    """f-DP for any trade-off function f, given as a function or as points (α, β).

    f-DP is a claim about both orders of two neighbours, T(P,Q) ≥ f and T(Q,P) ≥ f, which together
    say T ≥ max(f, f⁻¹): that is the curve kept. With `ordered` the claim is about the first input
    against the second alone. A function is tabulated from below, so that the claim as stored is
    never stronger than the one made. `gap` lowers the whole curve: it is the parameter a lower
    bound is reported on.

    >>> halfway = TradeoffDP([(0, 1), (0.25, 0.25), (1, 0)])
    >>> halfway.region(0.125)
    0.375
    """

    f: Any = field(repr=False)
    gap: float = 0.0
    ordered: bool = False
    parameter: ClassVar[str] = "gap"
    symbol: ClassVar[str] = "gap"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", checks.real("gap", self.gap, at_least=0.0))
        if not isinstance(self.f, TradeoffCurve):
            curve = _tabulate(self.f) if callable(self.f) else _from_points(self.f)
            object.__setattr__(self, "f", curve if self.ordered else _both_orders(curve))

    def raw_region(self, q: FloatArray) -> Any:
        """1 − f(q), raised by the gap."""
        return np.minimum(1.0 - self.f(q) + self.gap, 1.0)

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """f⁻¹(1 − p + gap)."""
        inverse = self.f.inverse()
        return _shaped(p, lambda p: inverse(np.clip(1.0 - p + self.gap, 0.0, 1.0)))

    def needed(self, p: float, q: float) -> float:
        """How far the point lies below the curve: f(q) − (1 − p), at least 0."""
        return max(0.0, p - (1.0 - float(self.f(q))))

    def slope(self, q: npt.ArrayLike) -> Any:
        """Minus the slope of the tabulated curve, 0 where the raised region is full."""
        q = np.asarray(q, dtype=float)
        pieces = -np.diff(self.f.y) / np.diff(self.f.x)
        at = np.clip(np.searchsorted(self.f.x, q, side="right") - 1, 0, pieces.size - 1)
        return np.where(np.asarray(self.region(q)) >= 1.0, 0.0, pieces[at])

    def __str__(self) -> str:
        return "f-DP" if self.gap == 0 else f"f-DP lowered by {self.gap:g}"


def _from_points(points: Any) -> TradeoffCurve:
    try:
        array = np.array(list(points), dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) < 1:
        raise InvalidInput(
            f"f must be a function of alpha or a list of (alpha, beta) points, got "
            f"{checks.shown(points)}"
        )
    order = np.argsort(array[:, 0], kind="stable")
    return TradeoffCurve(array[order, 0], array[order, 1])


def _tabulate(f: Callable[[Any], Any]) -> TradeoffCurve:
    """A piecewise linear curve nowhere above the convex f.

    Between two knots a convex function lies above the extensions of the chords on either side;
    the points where those extensions meet, joined up, are below it.
    """
    tail = expit(np.linspace(-27.0, 0.0, 1501))
    x = np.concatenate([[0.0], tail, 1.0 - tail[-2::-1], [1.0]])
    y = np.array([float(value) for value in np.broadcast_to(_evaluate(f, x), x.shape)])
    if np.isnan(y).any() or y.min() < 0 or np.any(y > 1 - x + 1e-9):
        raise InvalidInput(
            "f must be a trade-off function: 0 ≤ f(alpha) ≤ 1 − alpha on [0, 1]; "
            f"f(0.5) = {float(y[x.size // 2])!r}"
        )
    x, y = lower_hull(x, np.minimum(y, 1.0))
    if x.size < 4:
        return TradeoffCurve(x, y)
    slope = np.diff(y) / np.diff(x)
    left = np.concatenate([[np.nan], slope[:-1]])  # the chord before each interval
    right = np.concatenate([slope[1:], [np.nan]])  # the chord after it
    with np.errstate(invalid="ignore", divide="ignore"):
        meet = (y[1:] - y[:-1] + left * x[:-1] - right * x[1:]) / (left - right)
    straight = ~(right - left > 1e-12)  # NaN at the two ends included
    meet = np.where(straight, x[:-1], np.clip(meet, x[:-1], x[1:]))
    low = np.where(straight, y[:-1], y[:-1] + left * (meet - x[:-1]))
    low[0] = y[1] - slope[1] * (x[1] - x[0])  # the first interval has only a chord after it
    last = max(0.0, y[-2] + slope[-2] * (x[-1] - x[-2]))
    meet, low = np.append(meet, 1.0), np.append(low, last)
    return TradeoffCurve(meet, np.clip(low, 0.0, 1.0))


def _both_orders(curve: TradeoffCurve) -> TradeoffCurve:
    """max(f, f⁻¹), with the points where the two cross among its own."""
    other = curve.inverse()
    x = np.union1d(curve.x, other.x)
    gap = curve(x) - other(x)
    k = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    cross = x[k] + (x[k + 1] - x[k]) * gap[k] / (gap[k] - gap[k + 1])
    x = np.union1d(x, cross)
    return TradeoffCurve(x, np.maximum(curve(x), other(x)))


def _evaluate(f: Callable[[Any], Any], x: FloatArray) -> Any:
    try:
        return np.asarray(f(x), dtype=float)
    except (TypeError, ValueError):
        return np.array([f(float(alpha)) for alpha in x], dtype=float)  # f takes one number


def _log_ratio(top: float, bottom: float) -> float:
    """log top/bottom; −∞ when there is nothing on top, ∞ over nothing."""
    if top <= 0:
        return -math.inf
    return math.inf if bottom <= 0 else math.log(top / bottom)


def _logit(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def _log_expit(u: FloatArray) -> FloatArray:
    return -np.logaddexp(0.0, -u)


def _binary_renyi(u: FloatArray, v: FloatArray, lam: FloatArray) -> FloatArray:
    """(λ − 1) D_λ of two coins given by their logits."""
    with np.errstate(invalid="ignore"):
        return np.logaddexp(
            lam * _log_expit(u) + (1 - lam) * _log_expit(v),
            lam * _log_expit(-u) + (1 - lam) * _log_expit(-v),
        )


def _coin_renyi(p: float, q: float, orders: FloatArray) -> FloatArray:
    """D_λ of two coins for p > q, else 0."""
    if p <= q:
        return np.zeros_like(orders)
    if q <= 0:
        return np.full_like(orders, math.inf)
    if p >= 1:
        return np.full_like(orders, -math.log(q))
    u, v = _logit(np.array([p])), _logit(np.array([q]))
    return np.maximum(_binary_renyi(u, v, orders) / (orders - 1), 0.0)


def _renyi_edge(
    given: FloatArray, direction: float, orders: FloatArray, budgets: FloatArray
) -> FloatArray:
    """Logit of the other coin at D_λ = budget, by order and coin, rounded away from `given`.

    Direction +1 looks for the largest p at a given q, −1 for the smallest q at a given p.
    """
    fixed = np.broadcast_to(_logit(given), (orders.size, given.size))
    lam, limit = orders[:, None], ((orders - 1) * budgets)[:, None]

    def excess(other: FloatArray) -> FloatArray:
        coins = (other, fixed) if direction > 0 else (fixed, other)
        return _binary_renyi(*coins, lam) - limit

    near, far = fixed, np.full(fixed.shape, direction * 800.0)
    at_near, at_far = -np.broadcast_to(limit, fixed.shape), excess(far)
    for step in range(30):
        middle = 0.5 * (near + far)
        if step >= 24:  # the bracket is small: secants a little to either side of the root close it
            with np.errstate(divide="ignore", invalid="ignore"):
                share = -at_near / (at_far - at_near) + (1e-3 if step % 2 else -1e-3)
                secant = near + share * (far - near)
            middle = np.where((share > 0) & (share < 1), secant, middle)
        at_middle = excess(middle)
        inside = at_middle <= 0
        near, at_near = np.where(inside, middle, near), np.where(inside, at_middle, at_near)
        far, at_far = np.where(inside, far, middle), np.where(inside, at_far, at_middle)
    # q = 0 allows only p = 0, p = 1 needs log q ≥ −ε, and the other two ends allow everything
    far = np.where(np.isinf(fixed), fixed, far)
    if direction < 0:
        full = _logit(np.exp(-budgets))[:, None]
        far = np.where(np.isposinf(fixed), full, far)
    return far


def _renyi_slope(u: FloatArray, v: FloatArray, lam: FloatArray) -> FloatArray:
    """dp/dq along D_λ = constant, at logits u of p and v of q."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        up, down = _log_expit(u) - _log_expit(v), _log_expit(-u) - _log_expit(-v)
        # (λ−1)/λ · (e^{λ·up} − e^{λ·down}) / (e^{(λ−1)up} − e^{(λ−1)down}), where neither power exists
        turn = down - up
        rate = (lam - 1) / lam * np.exp(up) * np.expm1(lam * turn) / np.expm1((lam - 1) * turn)
    rate = np.where(np.isnan(rate), 1.0, rate)  # p = q
    return np.where(u > 700, 0.0, np.where(np.isneginf(v), np.inf, rate))  # p = 1; q = 0
