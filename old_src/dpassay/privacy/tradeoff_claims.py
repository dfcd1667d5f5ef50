"""f-DP: the claim that a trade-off function bounds, from points, functions or privacy profiles.

The higher a trade-off curve lies, the stronger is the claim, so no curve here lies above what was given.
Points of a convex function joined by chords lie above it, so functions are replaced by lines below them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curve_arrays import lower_hull
from dpassay.privacy.curves import ROUNDING, TradeoffCurve, curve_of_pairs
from dpassay.privacy.event_claims import (
    SMALL_DELTA,
    ApproximateDP,
    Claim,
    digits,
    probabilities,
    profile_points,
)
from dpassay.validation import scalar_or_array

#: A privacy profile is evaluated until δ is this small, or ε this large: lines of a larger ε only matter
#: for α < e^−256.
_NEGLIGIBLE, _MAX_EPSILON = 1e-12, 256.0
#: f is not its own inverse where max(f, f⁻¹) exceeds it by more than tabulating lowers it.
_ASYMMETRIC = 1e-3
RAISED = (
    "f is not its own inverse: a claim about both orders of the pair is tested as max(f, f⁻¹); "
    "TradeoffDP(f, ordered=True) claims f of the first input against the second alone"
)
CHORDS = (
    "the claim is the given points joined by chords. Between the points, chords of a convex curve lie "
    "above it, so a mechanism that keeps the curve may break this claim. To claim the curve, give it "
    "as a function, or its privacy profile to TradeoffDP.from_delta"
)
RAISED_CHORDS = "the chords are tested as max(f, f⁻¹): the claim is about both orders of the pair"
#: A profile is first evaluated at this many ε. More are added where they could raise f by more than this
#: many standard deviations of one draw, up to a total number, in at most so many rounds.
_FIRST, _WORTH, _MOST, _ROUNDS = 129, 1e-4, 600, 12


@dataclass(frozen=True, eq=False)
class TradeoffDP(Claim):
    """f-DP for any trade-off function f, given as a function or as points (α, β).

    f-DP is a claim about both orders of two neighbours, T(P,Q) ≥ f and T(Q,P) ≥ f, which together
    say T ≥ max(f, f⁻¹): that is the curve kept. With `ordered` the claim is only about the first input
    against the second: events have probability α on the second input, which is the null hypothesis, and
    1 − f(α) at most on the first. A function is tabulated from below, so that the claim as stored is
    never stronger than the one made. Points are joined by chords, which lie above a convex curve: a
    mechanism that keeps the curve may be refuted. To claim a curve, give a function, or its privacy
    profile to `from_delta`; points are for claims that are linear between them. `gap` lowers the whole
    curve: it is the parameter a lower bound is reported on. `name` is printed with the claim; by default
    it is that of the function.

    `from_delta` makes the claim of a privacy profile, such as an accountant computes.

    >>> halfway = TradeoffDP([(0, 1), (0.25, 0.25), (1, 0)])
    >>> halfway.region(0.125)
    0.375
    """

    f: Any = field(repr=False)
    gap: float = 0.0
    ordered: bool = False
    name: str = ""
    parameter: ClassVar[str] = "gap"
    symbol: ClassVar[str] = "gap"
    largest: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if np.ndim(self.gap):
            raise InvalidInput(
                "gap is one number: give the points of the curve as pairs [(α, β), …], or a function"
            )
        self._set(gap=checks.real("gap", self.gap, at_least=0.0))
        self._set(directional=checks.flag("ordered", self.ordered))
        if not isinstance(self.f, TradeoffCurve):
            curve = _curve_of_function(self.f) if callable(self.f) else _curve_of_points(self.f)
            points = "" if callable(self.f) else f"{curve.x.size} points joined by chords"
            self._set(name=self.name or points or _name_of(self.f))
            both = curve if self.ordered else _both_orders(curve)
            raised = np.max(both(curve.x) - curve.y) > _ASYMMETRIC
            notes = (CHORDS, RAISED_CHORDS) if points else (RAISED,)
            self._set(f=both, notes=notes if raised else notes[:-1])

    @classmethod
    def from_delta(cls, f: Callable[[Any], Any]) -> TradeoffDP:
        """The claim that (ε, f(ε))-DP holds for every ε ≥ 0, given as a function ε ↦ δ.

        The function may take arrays or single numbers, and may be an upper bound, such as an
        accountant's (dp-accounting: `pld.get_delta_for_epsilon`). Finitely many ε are asked for and
        the curve is exact for them, so the claim is never stronger than what the function says.

        >>> from dpassay import GaussianDP
        >>> same = TradeoffDP.from_delta(GaussianDP(1.0).delta_at)
        >>> gap = GaussianDP(1.0).tradeoff(0.05) - same.tradeoff(0.05)
        >>> 0 <= gap < 1e-5
        True
        """
        return cls(_curve_of_profile(f), name=_name_of(f))

    def companion(self) -> ApproximateDP | None:
        """ε at δ = 10⁻⁵, from above, for a claim about both orders: few readers know what a gap means."""
        epsilon = math.inf if self.directional else self.epsilon_at(SMALL_DELTA)
        return ApproximateDP(epsilon, SMALL_DELTA) if math.isfinite(epsilon) else None

    def as_epsilon(self, value: float) -> float:
        """A gap of 0.5 is large: half of the largest possible one."""
        return 2 * value

    @cached_property
    def _inverse(self) -> TradeoffCurve:
        return self.f.inverse()  # type: ignore[no-any-return]

    @cached_property
    def _slopes(self) -> FloatArray:
        return np.asarray(-np.diff(self.f.y) / np.diff(self.f.x))

    def region_and_slope(self, q: FloatArray, theta: Any = None) -> tuple[FloatArray, FloatArray]:
        """1 − f(q), raised by the gap; minus the slope of f, 0 where the raised region is full."""
        region = np.minimum(1.0 - np.interp(q, self.f.x, self.f.y) + self._theta(theta), 1.0)
        piece = np.clip(np.searchsorted(self.f.x, q, side="right") - 1, 0, self._slopes.size - 1)
        return np.asarray(region), np.where(region >= 1.0, 0.0, self._slopes[piece])

    def tradeoff(self, alpha: npt.ArrayLike, theta: Any = None) -> Any:
        """f(α) less the gap, accurate where it is tiny."""
        lowered = self.f(probabilities(alpha)) - self._theta(theta)
        return scalar_or_array(np.maximum(lowered, 0.0))

    def region_inverse(self, p: npt.ArrayLike, theta: Any = None) -> Any:
        """f⁻¹(1 − p + gap)."""
        beta = np.clip(1.0 - probabilities(p) + self._theta(theta), 0.0, 1.0)
        return self._inverse(beta)

    def needed(self, p: npt.ArrayLike, q: npt.ArrayLike) -> Any:
        """How far the point lies below the curve: f(q) − (1 − p), at least 0."""
        return scalar_or_array(np.maximum(p - (1.0 - self.f(q)), 0.0))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """At a knot of the lowered curve, max(f − gap, 0); where it reaches 0 there is one."""
        if self.gap == 0:
            return np.asarray(self.f.delta(epsilon))
        x = np.union1d(self.f.x, [min(float(self._inverse(min(self.gap, 1.0))), 1.0)])
        return np.asarray(TradeoffCurve(x, self.tradeoff(x)).delta(epsilon))

    def shown_by(self) -> tuple[FloatArray, FloatArray] | None:
        """δ(ε) on a grid; None where ε below 0 would be needed.

        That is for one order of the inputs alone, and for a gap beyond the point where f crosses the
        diagonal: up to there the lowered curve asks no more of the second order than of the first.
        """
        if self.ordered or self.f(min(self.gap, 1.0)) < self.gap:
            return None
        return profile_points(self)

    def __str__(self) -> str:
        said = f"f-DP ({self.name})" if self.name else "f-DP"
        return said if self.gap == 0 else f"{said} lowered by {digits(self.gap)}"


def _name_of(f: Any) -> str:
    """The name of a function that was defined with one; what a method of a claim belongs to."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, Claim):
        return str(owner)
    return f.__name__ if isinstance(f, FunctionType) and f.__name__.isidentifier() else ""


def _curve_of_points(points: Any) -> TradeoffCurve:
    """The curve through points (α, β)."""
    try:
        array = np.array(list(points), dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) < 1:
        raise InvalidInput(
            f"f must be a function of alpha or a list of (alpha, beta) points, got "
            f"{checks.shown(points)}"
        )
    over = array[array.sum(axis=1) > 1 + 1e-9]
    if len(over):
        a, b = over[0].tolist()
        raise InvalidInput(
            f"no trade-off function has beta > 1 − alpha, got the point ({a:g}, {b:g})"
        )
    order = np.argsort(array[:, 0], kind="stable")
    return TradeoffCurve(array[order, 0], array[order, 1])


def _curve_of_function(f: Callable[[Any], Any]) -> TradeoffCurve:
    """A piecewise linear curve nowhere above the convex f.

    Between two knots a convex function lies above the extensions of the chords on either side;
    the points where those extensions meet, joined up, are below it.
    """
    tail = expit(np.linspace(-27.0, 0.0, 1501))
    x = np.concatenate([[0.0], tail, 1.0 - tail[-2::-1], [1.0]])
    y = _evaluate(f, x)
    wrong = np.flatnonzero(~((y >= -1e-9) & (y <= 1 - x + 1e-9)))  # NaN too
    if wrong.size:
        raise InvalidInput(
            "f must be a trade-off function: 0 ≤ f(alpha) ≤ 1 − alpha on [0, 1]; "
            f"f({x[wrong[0]]:.4g}) = {float(y[wrong[0]])!r}"
        )
    y = np.clip(y, 0.0, 1.0)
    hull = lower_hull(x, y)
    if (above := y - np.interp(x, *hull)).max() > 1e-7:  # more than rounding
        k = int(above.argmax())
        raise InvalidInput(
            f"f must be convex and decrease to 0; at alpha = {x[k]:.4g}, f = {y[k]:.4g} lies "
            f"{above[k]:.2g} above a chord. TradeoffDP(points) claims the largest such one below them"
        )
    x, y = hull
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


def _curve_of_profile(f: Any) -> TradeoffCurve:
    """The curve a privacy profile ε ↦ δ implies for both orders, from finitely many ε.

    f(α) = sup_ε max(0, 1 − δ(ε) − e^ε α, e^{−ε}(1 − δ(ε) − α)) (Dong, Roth & Su 2022,
    arXiv:1905.02383, section 2.4; negative ε add nothing to a claim about both orders). Every ε is
    a valid line by itself, so fewer of them, or too large a δ, give a weaker claim.
    """
    if not callable(f):
        raise InvalidInput(
            f"f must be a function of epsilon that returns delta, got {checks.shown(f)}; for points "
            "of a trade-off curve use TradeoffDP(points)"
        )
    x, y = _first_epsilons(f)
    fresh = np.setdiff1d(np.linspace(0.0, x[-1], _FIRST), x)
    for _ in range(_ROUNDS):
        order = np.argsort(both := np.concatenate([x, fresh]))
        x, y = both[order], np.concatenate([y, _deltas(f, fresh)])[order]
        fresh = np.setdiff1d(_most_useful(x, y, _MOST - x.size), x)
        if fresh.size == 0:
            break
    _check_decreasing(x, y)
    if y.min() >= 1.0:
        raise InvalidInput(
            f"delta(epsilon) is 1 up to epsilon = {x[-1]:g}: with delta = 1 nothing is claimed"
        )
    return curve_of_pairs(x, y)


def _first_epsilons(f: Callable[[Any], Any]) -> tuple[FloatArray, FloatArray]:
    """0, the ε up to which a profile is evaluated, and those tried between, with their δ."""
    seen: dict[float, float] = {}

    def delta(epsilon: float) -> float:
        if epsilon not in seen:
            seen[epsilon] = float(_deltas(f, np.array([epsilon]))[0])
        return seen[epsilon]

    def up_to(last: float) -> tuple[FloatArray, FloatArray]:
        x = sorted(e for e in seen if e <= last)
        return np.array(x), np.array([seen[e] for e in x])

    delta(0.0)
    last = 1.0
    while delta(last) > _NEGLIGIBLE and last < _MAX_EPSILON:
        last *= 2
    _check_decreasing(*up_to(last))
    floor = max(seen[last] * (1 + 1e-6), _NEGLIGIBLE)
    while last > 1e-6 and delta(last / 2) <= floor:  # a small ε is a scale of its own
        last /= 2
    return up_to(last)


def _deltas(f: Callable[[Any], Any], eps: FloatArray) -> FloatArray:
    """δ at every ε, checked."""
    values = _evaluate(f, eps)
    wrong = np.flatnonzero(~((values >= -1e-9) & (values <= 1 + 1e-9)))
    if wrong.size:
        raise InvalidInput(
            f"delta(epsilon) must lie in [0, 1], got {float(values[wrong[0]])!r} at epsilon = "
            f"{eps[wrong[0]]:g}; f must return delta for every epsilon of at least 0"
        )
    return np.clip(values, 0.0, 1.0)


def _check_decreasing(x: FloatArray, y: FloatArray) -> None:
    """A profile never rises, up to the rounding of whatever computed it."""
    least = np.minimum.accumulate(y)
    wrong = np.flatnonzero(y > least * (1 + 1e-6) + 1e-9)
    if wrong.size:
        k = int(wrong[0])
        before = int(np.flatnonzero(y[:k] == least[k])[0])
        raise InvalidInput(
            f"delta(epsilon) must not increase, got {y[before]:g} at epsilon = {x[before]:g} and "
            f"{y[k]:g} at epsilon = {x[k]:g}; is f a function of epsilon that returns delta?"
        )


def _most_useful(x: FloatArray, y: FloatArray, most: int) -> FloatArray:
    """Up to `most` further ε at which δ may lie well below the chord, the most useful ones.

    δ is convex in t = e^ε: between two knots it lies in the triangle of their chord and the
    extensions of the chords on either side. The corner of that triangle is tried: a kink is hit.
    """
    t, d = lower_hull(np.exp(x), y)
    if t.size < 2:
        return np.empty(0)
    chord = np.diff(d) / np.diff(t)
    # −dδ/dt is the α at which the line touches: at most half of 1 − δ(0), and at least 0
    left = np.concatenate([[min(-(1 - d[0]) / 2, chord[0])], chord[:-1]])
    right = np.concatenate([chord[1:], [0.0]])
    with np.errstate(invalid="ignore", divide="ignore"):
        corner = (d[1:] - d[:-1] + left * t[:-1] - right * t[1:]) / (left - right)
        below = (chord - left) * (corner - t[:-1])
        worth = below / np.sqrt(d[:-1] - t[:-1] * chord)  # 1 − f where the two lines meet
    inner = (corner > t[:-1] * (1 + 1e-9)) & (corner < t[1:] * (1 - 1e-9))
    chosen = np.flatnonzero(inner & (worth > _WORTH) & (below > ROUNDING))
    chosen = chosen[np.argsort(-worth[chosen])][: max(most, 0)]
    return np.asarray(np.log(corner[chosen]))


def _evaluate(f: Callable[[Any], Any], x: FloatArray) -> FloatArray:
    """f at every x, whether it takes arrays or one number."""
    if x.size > 1:
        with contextlib.suppress(TypeError, ValueError):
            values = np.asarray(f(x), dtype=float)
            if values.shape == x.shape:
                return values
    found = []
    for at in x.tolist():
        try:
            found.append(float(np.asarray(f(at), dtype=float).item()))
        except Exception as error:  # functions raise what they like
            raise InvalidInput(
                f"f must return a number at {at:g}, and raised {type(error).__name__}: {error}"
            ) from error
    return np.array(found)
