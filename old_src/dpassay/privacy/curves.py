"""Curves: trade-off functions, privacy profiles (spectra) δ(ε) and Rényi curves.

Directions. A pair is (P, Q); an event E has α = Q(E), 1 − β = P(E). `TradeoffCurve` is T with the
second distribution as the null hypothesis; `Spectrum` is δ(ε) = sup_E P(E) − e^ε Q(E), the hockey-stick
divergence. Each conversion says whether it is exact or a bound, and in which direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput, warn
from dpassay.privacy.curve_arrays import freeze, inside, lower_hull, numbers
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.rounding import rounded_down, rounded_up
from dpassay.tables import Shown, Tabular, present

#: Added to every δ of a profile: more than rounding takes from the lines and where they meet.
ROUNDING = 2e-15


def gaussian_tradeoff(alpha: npt.ArrayLike, mu: float) -> FloatArray:
    """The trade-off function G_μ of Gaussian DP: Φ(Φ⁻¹(1−α) − μ), accurate in both tails."""
    return np.asarray(np.exp(log_ndtr(-ndtri(np.asarray(alpha, dtype=float)) - mu)))


@dataclass(frozen=True, eq=False)
class TradeoffCurve(Shown, Tabular):
    """A trade-off curve β = T(α), linear between its points; convex and non-increasing.

    >>> rr = TradeoffCurve([0, 0.25, 1], [1, 0.25, 0])
    >>> float(rr(0.125)), round(rr.delta(0.0), 3)
    (0.625, 0.5)
    """

    x: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    band: TradeoffBand | None = field(default=None, repr=False)
    about: About | None = None
    drawn_as: ClassVar[str] = "tradeoff"

    def columns(self) -> dict[str, Any]:
        """alpha and beta; with a band its edges lower and upper, a row for every α of either."""
        if self.band is None:
            return {"alpha": self.x, "beta": self.y}
        alpha = np.union1d(self.x, self.band.x)
        lower, upper = self.band.at(alpha)
        return {"alpha": alpha, "beta": self(alpha), "lower": lower, "upper": upper}

    def __post_init__(self) -> None:
        x, y = numbers("alpha", self.x, increasing=True), numbers("beta", self.y)
        if x.shape != y.shape or x[0] < 0 or x[-1] > 1 or y.min() < 0 or y.max() > 1:
            raise InvalidInput("a trade-off curve needs equally many alpha and beta, all in [0, 1]")
        x, y = lower_hull(np.concatenate([[0.0], x, [1.0]]), np.concatenate([[1.0], y, [0.0]]))
        self._set(x=x, y=y)

    def __call__(self, alpha: npt.ArrayLike) -> Any:
        """T(α) for α in [0, 1], exact for the piecewise linear curve."""
        rates = checks.doubles("alpha", alpha)
        if not np.all((rates >= 0) & (rates <= 1)):
            raise InvalidInput(f"alpha must lie in [0, 1], got {checks.shown(alpha)}")
        return checks.scalar_or_array(np.interp(rates, self.x, self.y))

    def inverse(self) -> TradeoffCurve:
        """T⁻¹: the same pair with the roles of the two distributions exchanged (exact)."""
        return TradeoffCurve(self.y[::-1], self.x[::-1])

    def symmetrise(self) -> TradeoffCurve:
        """min(T, T⁻¹)**, what the mechanism offers whichever of the two inputs is the truth."""
        other = self.inverse()
        x, y = np.concatenate([self.x, other.x]), np.concatenate([self.y, other.y])
        order = np.argsort(x, kind="stable")
        return TradeoffCurve(x[order], y[order], about=self.about)

    def delta(self, epsilon: npt.ArrayLike) -> Any:
        """δ(ε) of P against Q: max_k (1 − β_k) − e^ε α_k. Exact for the piecewise linear curve."""
        eps = checks.doubles("epsilon", epsilon)
        # the maximum is at the last knot left of which the curve falls faster than −e^ε
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slopes = np.concatenate([np.diff(self.y) / np.diff(self.x), [0.0]])
            factor = np.exp(eps)
            knot = np.searchsorted(slopes, -factor, side="left")
            gain = (1 - self.y[knot]) - np.where(self.x[knot] > 0, factor * self.x[knot], 0.0)
        return checks.scalar_or_array(np.clip(gain, 0.0, 1.0))

    def spectrum(self, epsilons: npt.ArrayLike) -> Spectrum:
        """δ(ε) in the worse of the two directions (exact for the piecewise linear curve)."""
        both = np.maximum(self.delta(epsilons), self.inverse().delta(epsilons))
        return Spectrum(checks.doubles("epsilons", epsilons), both, about=self.about)

    def mu(self) -> float:
        """The smallest μ with T ≥ G_μ everywhere; ∞ if T(0) < 1, since G_μ(0) is 1 for every μ.

        A maximum: of estimates it is biased upwards, and mostly ∞, as T(0) < 1. `Profile.mu` leaves
        out what is noise; `fit_gdp` gives the nearest Gaussian curve. Between knots T is a chord and
        G_μ is convex, so what holds at the knots holds between.
        """
        inner = (self.x > 0) & (self.x < 1)
        if np.any(self.y[self.x == 0.0] < 1.0) or np.any(self.y[inner] == 0.0):
            return math.inf
        if not inner.any():
            return 0.0
        return max(0.0, float(np.max(-ndtri(self.x[inner]) - ndtri(self.y[inner]))))

    def fit_gdp(self, norm: Literal["l1", "sup"] = "l1") -> float:
        """The μ whose Gaussian curve is nearest, in L1 (as the papers do) or in sup distance.

        No bound: a curve that is not Gaussian falls below it somewhere, and needs a larger μ (`mu`).
        """
        from scipy.optimize import minimize_scalar

        def distance(mu: float) -> float:
            return self.distance(lambda alpha: gaussian_tradeoff(alpha, mu), norm, points=2001)

        return float(minimize_scalar(distance, bounds=(0.0, 20.0), method="bounded").x)

    def distance(
        self,
        other: TradeoffCurve | Any,
        norm: Literal["l1", "sup"] = "sup",
        *,
        points: int = 10_001,
    ) -> float:
        """Sup or L1 distance to a curve, a claim, or any function of α, on a fine grid of α."""
        checks.one_of("norm", norm, ("l1", "sup"))
        other = getattr(other, "tradeoff", other)  # of a claim
        if not callable(other):
            raise InvalidInput(f"other must be a curve, a claim or a function of α, got {other!r}")
        grid = np.linspace(0.0, 1.0, points)
        gap = np.abs(self(grid) - np.asarray(other(grid), dtype=float))
        if norm == "sup":
            return float(gap.max())
        return float(np.sum((gap[1:] + gap[:-1]) / 2 * np.diff(grid)))  # the trapezoid rule

    def chart(self, **others: Any) -> Any:
        """An Altair chart of the curve, with its band, and other curves, claims or functions by name."""
        from dpassay import charts

        grid = np.linspace(0.0, 1.0, 401)
        lines = {"estimate": (self.x, self.y)} | {
            name: (grid, _on_grid(name, other, "tradeoff", grid)) for name, other in others.items()
        }
        band = None if self.band is None else (self.band.x, self.band.lower, self.band.upper)
        return charts.tradeoff(lines, band=band)

    def __str__(self) -> str:
        said = f"trade-off curve with {self.x.size} points, T(0.05) = {self(0.05):.4g}"
        said += _estimated_by(self.about)
        if self.band is not None:
            said += f"\n  {self.band}"
        return said + _noted(self.about)


@dataclass(frozen=True, eq=False)
class TradeoffBand(Shown, Tabular):
    """A simultaneous confidence band for the curve of the tests that were made, at every α at once.

    T(α) ≤ upper(α) for every α, with the confidence. T itself may lie below `lower`: the tests need not
    be the best ones there are.
    """

    x: FloatArray = field(repr=False)
    lower: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)
    confidence: float = 0.95

    def columns(self) -> dict[str, Any]:
        """alpha, lower and upper."""
        return {"alpha": self.x, "lower": self.lower, "upper": self.upper}

    def at(self, alpha: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The two edges at α, which hold between grid points as well.

        A curve that is convex lies below the chords of its upper edge; one that falls, above what the
        next grid point has for a lower edge.
        """
        at = np.clip(checks.doubles("alpha", alpha), self.x[0], self.x[-1])
        lower = self.lower[np.searchsorted(self.x, at, side="left")]
        return lower, np.asarray(np.interp(at, self.x, self.upper))

    def __str__(self) -> str:
        low, high = (float(edge) for edge in self.at(0.05))
        return (
            f"band at α = 0.05 from {rounded_down(low)} to {rounded_up(high)}, at all α at once, with "
            f"confidence {level(self.confidence)} ({Guarantee.EXACT}). T is at most the upper edge. The "
            "lower edge is that of the fitted score; a better score may go below it, and so may T"
        )

    def __post_init__(self) -> None:
        freeze(self, x="alpha", lower="lower", upper="upper")


@dataclass(frozen=True, eq=False)
class Spectrum(Shown, Tabular):
    """δ as a function of ε.

    δ is convex in e^ε, not in ε, so values between grid points are interpolated linearly in e^ε:
    never below the truth when the grid values are not.

    >>> s = Spectrum([0.0, 0.5, 1.0], [0.4, 0.2, 0.0])
    >>> s.epsilon(0.2), round(s(0.25), 4)
    (0.5, 0.3124)
    """

    x: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    lower: FloatArray | None = field(default=None, repr=False)
    confidence: float | None = None
    about: About | None = None
    #: Certified from above at all ε at once, where outputs are discrete; each side has the confidence.
    upper: FloatArray | None = field(default=None, repr=False)
    #: |δ̂ − δ| by the asymptotic statement of Eureka's Corollary 2, where it applies.
    accuracy: FloatArray | None = field(default=None, repr=False)
    drawn_as: ClassVar[str] = "spectrum"

    def columns(self) -> dict[str, Any]:
        """epsilon and delta, and the certified curves where there are any."""
        return present(epsilon=self.x, delta=self.y, lower=self.lower, upper=self.upper)

    def __post_init__(self) -> None:
        freeze(self, x="epsilon", y="delta", lower="lower", upper="upper")

    def __call__(self, epsilon: npt.ArrayLike) -> Any:
        """δ(ε) inside the grid, interpolated on the safe (upper) side."""
        eps = inside("epsilon", epsilon, self.x, "dp.spectrum.estimate(…, epsilons=[…])")
        return checks.scalar_or_array(np.interp(np.exp(eps), np.exp(self.x), self.y))

    def certified(self, epsilon: npt.ArrayLike) -> Any:
        """The certified lower bound at ε: δ falls with ε, so the next grid point's bound holds."""
        if self.lower is None:
            raise InvalidInput("this spectrum carries no certified lower curve")
        at = np.searchsorted(self.x, checks.doubles("epsilon", epsilon), side="left")
        return checks.scalar_or_array(np.append(self.lower, 0.0)[at])

    def certified_upper(self, epsilon: npt.ArrayLike) -> Any:
        """The certified upper bound at ε: δ is convex in t = e^ε, and falls no faster than t rises.

        So chords hold between grid points, the last bound beyond the grid, and below it the first one
        raised by the distance in t.
        """
        if self.upper is None:
            raise InvalidInput(
                "this spectrum carries no certified upper curve: for outputs that are not discrete there "
                "is none"
            )
        eps, first = checks.doubles("epsilon", epsilon), math.exp(self.x[0])
        t = np.exp(np.minimum(eps, self.x[-1]))
        chords = np.interp(t, np.exp(self.x), self.upper)
        return checks.scalar_or_array(np.minimum(chords + np.maximum(first - t, 0.0), 1.0))

    def epsilon(self, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ delta by this curve (∞ if its grid ends before).

        Of an estimated curve it is an estimate and no bound.
        """
        checks.real("delta", delta, at_least=0.0, at_most=1.0)
        inside = np.flatnonzero(self.y <= delta)
        if inside.size == 0:
            warn(
                f"δ(ε) is above {delta:g} on the whole grid of this curve, which ends at ε = "
                f"{self.x[-1]:g}: ∞ is returned. Give a grid that ends later (epsilons=)"
            )
            return math.inf
        k = int(inside[0])
        if k == 0:
            return float(self.x[0])
        t0, t1 = math.exp(self.x[k - 1]), math.exp(self.x[k])
        weight = (self.y[k - 1] - delta) / (self.y[k - 1] - self.y[k])
        return float(math.log(t0 + weight * (t1 - t0)))

    def tradeoff_curve(self) -> TradeoffCurve:
        """sup_ε max(0, 1 − δ − e^ε α, e^{−ε}(1 − δ − α)).

        The curve this spectrum implies when it bounds both directions. With finitely many ε it is
        a lower bound on T (the safe side for a claim), exact as the grid becomes fine.
        """
        return curve_of_pairs(self.x, self.y, self.about)

    def chart(self, *, log: bool = False, **others: Any) -> Any:
        """An Altair chart of δ(ε), with the certified curve, and other spectra or claims by name.

        With `log` the axis of δ is logarithmic, from 10⁻⁸ or the smallest δ of these curves on.
        """
        from dpassay import charts

        lines = {"estimate": (self.x, self.y)}
        if self.lower is not None:
            lines["certified from below"] = self.x, self.lower
        if self.upper is not None:
            lines["certified from above"] = self.x, self.upper
        for name, other in others.items():
            own = isinstance(other, Spectrum)
            drawn = (
                (other.x, other.y) if own else (self.x, _on_grid(name, other, "delta_at", self.x))
            )
            lines[name] = drawn
        band = None
        if self.upper is not None and self.lower is not None:
            band = self.x, self.lower, self.upper
        shown = np.array([self.y] if self.lower is None else [self.y, self.lower])
        least = max(float(np.min(shown, where=shown > 0, initial=1.0)), 1e-8) if log else None
        return charts.spectrum(lines, band=band, log_from=least)

    def __str__(self) -> str:
        said = f"δ(ε) on [{self.x[0]:g}, {self.x[-1]:g}]: " if self.x.size > 1 else ""
        said += f"{_ends('δ', self)}{_estimated_by(self.about)}"
        if self.confidence is not None:
            once = "at all ε at once, " * (self.x.size > 1)
            sure = f"{once}with confidence {level(self.confidence)} ({Guarantee.EXACT})"
            if self.lower is not None:
                said += f"\n  at least {_bounds(self.lower, rounded_down)}, {sure}"
            if self.upper is not None:
                said += f"\n  at most {_bounds(self.upper, rounded_up)}, {sure}, on these inputs"
        return said + _noted(self.about)


@dataclass(frozen=True, eq=False)
class RenyiCurve(Shown, Tabular):
    """ε(λ), the Rényi divergence as a function of its order.

    (λ − 1)·ε(λ) is convex in λ; between grid points that product is interpolated linearly: never
    below the truth when the grid values are not.
    """

    x: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    lower: FloatArray | None = field(default=None, repr=False)
    confidence: float | None = None
    simultaneous: bool | None = None
    about: About | None = None
    drawn_as: ClassVar[str] = "renyi"

    def columns(self) -> dict[str, Any]:
        """order and epsilon, and the lower bound where there is one."""
        return present(order=self.x, epsilon=self.y, lower=self.lower)

    def __post_init__(self) -> None:
        freeze(self, x="order", y="epsilon", lower="lower")
        checks.require(bool(self.x[0] > 1), "a Rényi curve needs orders above 1")

    def __call__(self, order: npt.ArrayLike) -> Any:
        """ε(λ) inside the grid, interpolated on the safe (upper) side."""
        lam = inside("order", order, self.x, "dp.renyi.curve(…, orders=[…])")
        return checks.scalar_or_array(np.interp(lam, self.x, (self.x - 1) * self.y) / (lam - 1))

    def approximate_dp(self, delta: float) -> float:
        """The ε for which this curve implies (ε, δ)-DP.

        A bound from above if the curve is one (Canonne, Kamath & Steinke 2020, Prop. 12); for an
        estimated curve a warning says that it is none. A lower bound on the Rényi curve gives nothing
        here: small Rényi divergence implies (ε, δ), large Rényi divergence does not refute it.
        """
        checks.probability("delta", delta)
        if self.about is not None:
            warn(
                "this Rényi curve is an estimate, which is mostly too small at large orders: the ε that "
                "follows is an estimate too and may be far below the true ε. It is no bound"
            )
        return rdp_to_epsilon(self.x, self.y, delta)

    def chart(self, **others: Any) -> Any:
        """An Altair chart of ε(λ), with the lower bounds, and other curves or claims by name."""
        from dpassay import charts

        lines = {"estimate": (self.x, self.y)}
        if self.lower is not None:
            lines["lower bound"] = (self.x, self.lower)
        for name, other in others.items():
            lines[name] = (self.x, _on_grid(name, other, "renyi", self.x))
        noted = self.about if self.lower is not None else None
        return charts.renyi(lines, notes=noted.notes if noted else ())

    def __str__(self) -> str:
        said = f"Rényi curve on orders [{self.x[0]:g}, {self.x[-1]:g}]: {_ends('ε', self)}"
        said += _estimated_by(self.about)
        if self.lower is not None and self.confidence is not None:
            scope = "at all orders at once" if self.simultaneous else "at each order on its own"
            backing = "" if self.about is None else f" ({self.about.guarantee})"
            said += (
                f"\n  at least {_bounds(self.lower, rounded_down)} with confidence "
                f"{level(self.confidence)} {scope}{backing}"
            )
        return said + _noted(self.about)


def _on_grid(name: str, other: Any, method: str, grid: FloatArray) -> FloatArray:
    """Another curve, a claim (by its method) or a function, on a grid."""
    try:
        found = np.asarray(getattr(other, method, other)(grid), dtype=float)
        found = np.broadcast_to(found, grid.shape)
    except InvalidInput:
        raise
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{name} must be a curve, a claim such as dp.claim('rho=0.5') or dp.claim(accountant), or a "
            f"function of an array, got {checks.shown(other)}"
        ) from None
    if method == "renyi" and not np.isfinite(found).any():
        raise InvalidInput(
            f"{name}={checks.shown(other)} has no finite value at these orders. Pure, Gaussian, zCDP and "
            "Rényi claims can be drawn (the last at their own orders); claims with a δ set no limit to "
            "Rényi divergences"
        )
    return found


# --- conversions


def rdp_to_epsilon(order: FloatArray, divergence: FloatArray, delta: float) -> float:
    """RDP to (ε, δ)-DP: the ε for which D_λ ≤ ε(λ) at these orders implies it.

    ε(λ) + log((λ − 1)/λ) − (log δ + log λ)/(λ − 1), the smallest over the orders (Canonne, Kamath &
    Steinke 2020, arXiv:2004.00010, Proposition 12).
    """
    spent = (math.log(delta) + np.log(order)) / (order - 1)
    return max(float(np.min(divergence + np.log1p(-1 / order) - spent)), 0.0)


def curve_of_pairs(
    epsilons: FloatArray, deltas: FloatArray, about: About | None = None
) -> TradeoffCurve:
    """The curve that (ε, δ)-DP at each of these pairs, ε increasing, implies for both orders.

    It is exactly the largest of the lines 1 − δ − e^ε α and their mirror images.

    A line is part of it if its (e^ε, δ) is on the lower hull, and neighbours meet at minus the slope
    between them. The lines fall at least as fast as 1 − α, their mirror images no faster: the former
    are the larger up to the diagonal, which they pass at the largest (1 − δ)/(1 + e^ε).
    """
    t, d = lower_hull(np.exp(epsilons), np.minimum(deltas + ROUNDING, 1.0))
    top = 1.0 - d
    meet = -np.diff(d) / np.diff(t)
    height = top[:-1] - t[:-1] * meet
    turn = float(np.max(top / (1 + t)))
    steep = (meet > 0) & (meet < turn) & (height > turn)
    alpha = np.concatenate([[0.0], meet[steep][::-1], [turn]])
    # rounding can change the order, and make it rise next to 1: lowered, the claim is no stronger
    order = np.argsort(alpha, kind="stable")
    beta = np.concatenate([[top.max()], height[steep][::-1], [turn]])
    alpha, beta = alpha[order], np.minimum.accumulate(beta[order])
    x, y = np.append(alpha, beta[-2::-1]), np.append(beta, alpha[-2::-1])
    return TradeoffCurve(x, y, about=about)


# --- words of curves


def _ends(symbol: str, curve: Spectrum | RenyiCurve) -> str:
    """The values at the ends of a curve; one value if it has one point."""
    ends = {float(x): float(y) for x, y in zip(curve.x[[0, -1]], curve.y[[0, -1]], strict=True)}
    return ", ".join(f"{symbol}({x:g}) = {y:.4g}" for x, y in ends.items())


def _bounds(values: FloatArray, rounded: Callable[[float], str]) -> str:
    """The bounds at the ends of a curve; one bound if it has one point."""
    return " and ".join(rounded(float(v)) for v in values[[0, -1][: values.size]])


def _estimated_by(about: About | None) -> str:
    """Which method estimated a curve."""
    return "" if about is None else f", estimated by {about.method} ({Guarantee.HEURISTIC})"


def _noted(about: About | None) -> str:
    return "" if about is None else about.noted
