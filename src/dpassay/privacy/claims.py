"""Privacy claims, as constraints on events.

Every claim says, for all neighbouring inputs and every event E, P(E) ≤ g(Q(E)) with g concave and
increasing; g is `region`, and 1 − g is the claim's trade-off function. For pure DP, (ε,δ), GDP and
trade-off curves this is the whole claim; for Rényi and zCDP it is only implied by it
(`event_complete` is False there), so events alone cannot refute every false claim of that kind.

Where a claim has to be tabulated or solved for, errors fall on its own side: `region` is never
below the true g, so a claim is never refuted for our rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
    #: Whether the claim about (P, Q) is the same as the one about (Q, P).
    symmetric: ClassVar[bool] = True
    #: Whether P(E) ≤ g(Q(E)) for every event is equivalent to the claim.
    event_complete: ClassVar[bool] = True

    def region(self, q: npt.ArrayLike) -> Any:
        """The largest P(E) the claim allows when Q(E) = q."""
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
    result = np.clip(f(np.atleast_1d(array)), 0.0, 1.0)
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

    def region(self, q: npt.ArrayLike) -> Any:
        """min(e^ε q + δ, 1 − e^{−ε}(1 − δ − q), 1)."""
        return _shaped(q, lambda q: 1.0 - self._beta(q) if self.epsilon > 500 else self._alpha(q))

    def _alpha(self, q: FloatArray) -> Any:
        steep = np.exp(self.epsilon) * q + self.delta
        flat = 1.0 - np.exp(-self.epsilon) * (1.0 - self.delta - q)
        return np.minimum(np.minimum(steep, flat), 1.0)

    def _beta(self, alpha: FloatArray) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            steep = np.where(
                alpha > 0, 1.0 - self.delta - np.exp(self.epsilon) * alpha, 1 - self.delta
            )
        flat = np.exp(-self.epsilon) * (1.0 - self.delta - alpha)
        return np.maximum(np.maximum(steep, flat), 0.0)

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """max(0, 1 − δ − e^ε α, e^{−ε}(1 − δ − α))."""
        return _shaped(alpha, self._beta)

    def slope(self, q: npt.ArrayLike) -> Any:
        """e^ε, then e^{−ε}, then 0."""
        q = np.asarray(q, dtype=float)
        kink = (1.0 - self.delta) / (np.exp(self.epsilon) + 1.0)
        flat = np.where(q < 1.0 - self.delta, np.exp(-self.epsilon), 0.0)
        return np.where(q < kink, np.exp(self.epsilon), flat)

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

    @property
    def _as_approximate(self) -> ApproximateDP:
        return ApproximateDP(self.epsilon, 0.0)

    def region(self, q: npt.ArrayLike) -> Any:
        """min(e^ε q, 1 − e^{−ε}(1 − q))."""
        return self._as_approximate.region(q)

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """max(1 − e^ε α, e^{−ε}(1 − α))."""
        return self._as_approximate.tradeoff(alpha)

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

    def region(self, q: npt.ArrayLike) -> Any:
        """Φ(μ + Φ⁻¹(q))."""
        return _shaped(q, lambda q: ndtr(self.mu + ndtri(q)))

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """Φ(Φ⁻¹(1 − α) − μ)."""
        return _shaped(alpha, lambda alpha: gaussian_tradeoff(alpha, self.mu))

    def slope(self, q: npt.ArrayLike) -> Any:
        """φ(μ + z)/φ(z) at z = Φ⁻¹(q)."""
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

    def __post_init__(self) -> None:
        order = checks.real(
            "order", self.order, above=1.0, remedy="order 1 is KL and ∞ is pure DP: use PureDP"
        )
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "epsilon", checks.real("epsilon", self.epsilon, at_least=0.0))

    def region(self, q: npt.ArrayLike) -> Any:
        """max{p : p^λ q^{1−λ} + (1−p)^λ (1−q)^{1−λ} ≤ e^{(λ−1)ε}}."""
        return _shaped(q, lambda q: np.exp(_log_expit(self._solve(q, 1.0))))

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """1 − region(α), accurate where it is tiny."""
        return _shaped(alpha, lambda q: np.exp(_log_expit(-self._solve(q, 1.0))))

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """The smallest q with D_λ((p, 1−p)‖(q, 1−q)) ≤ ε."""
        return _shaped(p, lambda p: np.exp(_log_expit(self._solve(p, -1.0))))

    def slope(self, q: npt.ArrayLike) -> Any:
        """By implicit differentiation of the binary divergence."""
        q = np.atleast_1d(np.asarray(q, dtype=float))
        u, v = self._solve(q, 1.0), _logit(q)
        lam = self.order
        lp, l1p, lq, l1q = _log_expit(u), _log_expit(-u), _log_expit(v), _log_expit(-v)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            top = np.exp(lam * (lp - lq)) - np.exp(lam * (l1p - l1q))
            bottom = np.exp((lam - 1) * (lp - lq)) - np.exp((lam - 1) * (l1p - l1q))
            rate = (lam - 1) / lam * top / bottom
        return np.where(u > 700, 0.0, np.where(np.isfinite(rate), rate, 1.0))  # p = 1; p = q

    def _solve(self, given: FloatArray, direction: float) -> FloatArray:
        """Logit of the other probability at the edge of the claim, rounded outwards."""
        fixed = _logit(given)
        near, far = fixed.copy(), np.full_like(fixed, direction * 800.0)
        budget = (self.order - 1) * self.epsilon
        for _ in range(64):
            middle = 0.5 * (near + far)
            pair = (middle, fixed) if direction > 0 else (fixed, middle)
            inside = _binary_renyi(*pair, self.order) <= budget
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        edge = np.isinf(fixed)
        whole = edge & ((fixed > 0) == (direction > 0))
        return np.where(whole, fixed, np.where(edge, self._at_edge(fixed, direction), far))

    def _at_edge(self, fixed: FloatArray, direction: float) -> FloatArray:
        """q = 0 allows only p = 0; p = 1 needs log q ≥ −ε; and mirrored."""
        if direction > 0:
            return np.where(fixed < 0, -np.inf, np.inf)
        return np.where(fixed > 0, _logit(np.full_like(fixed, np.exp(-self.epsilon))), -np.inf)

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
    orders: ClassVar[tuple[float, ...]] = tuple(float(1 + x) for x in np.geomspace(0.02, 200.0, 48))

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checks.real("rho", self.rho, at_least=0.0))

    def renyi(self, order: float) -> RenyiDP:
        """The Rényi claim this one makes at an order (exact: it is the definition)."""
        return RenyiDP(order, order * self.rho)

    def region(self, q: npt.ArrayLike) -> Any:
        """The smallest of the Rényi regions."""
        return _shaped(q, lambda q: np.min([c.region(q) for c in self._claims], axis=0))

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """The largest of the Rényi trade-off functions."""
        return _shaped(alpha, lambda a: np.max([c.tradeoff(a) for c in self._claims], axis=0))

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """The largest of the Rényi inverses."""
        return _shaped(p, lambda p: np.max([c.region_inverse(p) for c in self._claims], axis=0))

    def slope(self, q: npt.ArrayLike) -> Any:
        """The slope of the binding Rényi region."""
        q = np.atleast_1d(np.asarray(q, dtype=float))
        binding = np.argmin([c.region(q) for c in self._claims], axis=0)
        slopes = np.array([c.slope(q) for c in self._claims])
        return slopes[binding, np.arange(q.size)]

    @property
    def _claims(self) -> list[RenyiDP]:
        return [self.renyi(order) for order in self.orders]

    def __str__(self) -> str:
        return f"{self.rho:g}-zCDP"


@dataclass(frozen=True, eq=False)
class TradeoffDP(Claim):
    """f-DP for any trade-off function f, given as a function or as points (α, β).

    A function is tabulated from below, so that the claim as stored is never stronger than the one
    made. `gap` lowers the whole curve: it is the parameter a lower bound is reported on.

    >>> halfway = TradeoffDP([(0, 1), (0.25, 0.25), (1, 0)])
    >>> halfway.region(0.125)
    0.375
    """

    f: Any = field(repr=False)
    gap: float = 0.0
    parameter: ClassVar[str] = "gap"
    symbol: ClassVar[str] = "gap"
    symmetric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", checks.real("gap", self.gap, at_least=0.0))
        if not isinstance(self.f, TradeoffCurve):
            curve = _tabulate(self.f) if callable(self.f) else _from_points(self.f)
            object.__setattr__(self, "f", curve)

    def region(self, q: npt.ArrayLike) -> Any:
        """1 − f(q), raised by the gap."""
        return _shaped(q, lambda q: 1.0 - self.f(q) + self.gap)

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """f⁻¹(1 − p + gap)."""
        inverse = self.f.inverse()
        return _shaped(p, lambda p: inverse(np.clip(1.0 - p + self.gap, 0.0, 1.0)))

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


def _evaluate(f: Callable[[Any], Any], x: FloatArray) -> Any:
    try:
        return np.asarray(f(x), dtype=float)
    except (TypeError, ValueError):
        return np.array([f(float(alpha)) for alpha in x], dtype=float)  # f takes one number


def _logit(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def _log_expit(u: FloatArray) -> FloatArray:
    return -np.logaddexp(0.0, -u)


def _binary_renyi(u: FloatArray, v: FloatArray, lam: float) -> FloatArray:
    """(λ − 1) D_λ of two coins given by their logits."""
    with np.errstate(invalid="ignore"):
        return np.logaddexp(
            lam * _log_expit(u) + (1 - lam) * _log_expit(v),
            lam * _log_expit(-u) + (1 - lam) * _log_expit(-v),
        )
