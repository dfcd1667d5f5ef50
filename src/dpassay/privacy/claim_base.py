"""What every claim can be asked: what it allows of events, curves and divergences, and its parameter."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.records import Record

if TYPE_CHECKING:
    from dpassay.privacy.event_claims import GaussianDP


@dataclass(frozen=True, eq=False)
class Claim(Record):
    """Base of all claims.

    Beside events a claim knows what it says in the terms of others: `delta_at` and `renyi`. Claims
    about divergences (`set_by_events` is False) also know how they can be tested: `orders`,
    `leak`, `from_renyi`, `divergence_limit` and `from_divergence`.
    """

    def _validate(self) -> None:
        checks.require(type(self) is not Claim, "a claim is of a kind, such as PureDP")

    #: Whether P(E) ≤ g(Q(E)) for every E says the same as Q(E) ≤ g(P(E)) for every E.
    symmetric: ClassVar[bool] = True
    #: Whether P(E) ≤ g(Q(E)) for every event is equivalent to the claim.
    set_by_events: ClassVar[bool] = True
    #: Whether `region` and `slope` are closed forms, cheap to evaluate.
    quick: ClassVar[bool] = True

    @property
    def directional(self) -> bool:
        """Whether the claim is about the first input against the second alone."""
        return False

    # --- the parameter

    @property
    def parameter(self) -> str:
        """The parameter a lower bound is reported on: the larger, the weaker the claim."""
        return "epsilon"

    @property
    def symbol(self) -> str:
        """The parameter's symbol, for people."""
        return "ε"

    @property
    def meaning(self) -> str:
        """The symbol, with what is held fixed."""
        return self.symbol

    @property
    def largest(self) -> float:
        """The largest value the parameter can have."""
        return math.inf

    @property
    def value(self) -> float:
        """The value of the claim's parameter."""
        return float(getattr(self, self.parameter))

    def at(self, value: float) -> Claim:
        """The same claim with another value of its parameter."""
        return replace(self, **{self.parameter: value})

    @property
    def point(self) -> tuple[float, float] | None:
        """(ε, δ) of a claim that is made of these two; None for any other."""
        return None

    def turned(self) -> Claim | None:
        """The same claim with its other parameter as the headline; None where there is no other."""
        return None

    def as_epsilon(self, value: float) -> float:
        """A value of the parameter on the scale of ε and μ, on which 1 is much."""
        return value

    # --- events

    def region(self, q: npt.ArrayLike) -> Any:
        """The largest P(E) the claim allows when Q(E) = q."""
        return shaped(q, self.raw_region)

    def raw_region(self, q: FloatArray) -> Any:
        """`region` of an array known to lie in [0, 1], not clipped."""
        raise NotImplementedError

    def slope(self, q: npt.ArrayLike) -> Any:
        """The derivative of `region` (from the right at a kink)."""
        raise NotImplementedError

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """The claimed trade-off function f(α) = 1 − region(α)."""
        return shaped(alpha, lambda a: 1.0 - self.region(a))

    def region_inverse(self, p: npt.ArrayLike) -> Any:
        """The smallest Q(E) the claim allows when P(E) = p."""
        # a symmetric claim has f⁻¹ = f, and q ≥ f⁻¹(1 − p)
        return shaped(p, lambda value: np.asarray(self.tradeoff(1.0 - value)))

    def with_slope(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`raw_region` and `slope` of an array."""
        return np.asarray(self.raw_region(q)), np.asarray(self.slope(q))

    def needed(self, p: float, q: float) -> float:
        """The smallest value of the claim's parameter that allows P(E) = p at Q(E) = q."""
        raise NotImplementedError

    # --- the same in other terms

    def delta_at(self, epsilon: npt.ArrayLike) -> Any:
        """The largest δ the claim allows at ε: sup over q of region(q) − e^ε q, never below it."""
        return mapped("epsilon", epsilon, self._delta)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        raise NotImplementedError

    def shown_by(self) -> tuple[FloatArray, FloatArray] | None:
        """Points (ε, δ) of a spectrum that bounds from above must keep below to show the claim.

        One point is all there is to show. Several are points of a curve that is convex in e^ε and falls,
        of which all must be shown, those between included. None where no such bound shows the claim.
        """
        return None

    def renyi(self, order: npt.ArrayLike) -> Any:
        """The Rényi divergence the claim allows at an order λ > 1.

        Only what is stated or known exactly: ∞ where the claim sets no limit, or one that would have
        to be derived.
        """
        if np.any(~(checks.doubles("order", order) > 1)):
            raise InvalidInput(
                f"order must be a number above 1, got {checks.shown(order)}; order 1 is KL"
            )
        return mapped("order", order, self._renyi)

    def _renyi(self, order: FloatArray) -> FloatArray:
        return np.full(order.shape, math.inf)

    # --- divergences

    @cached_property
    def orders(self) -> tuple[float, ...]:
        """The orders at which a claim about divergences can be tested; none for other claims."""
        return ()

    def from_renyi(self, order: float, divergence: float) -> float:
        """The smallest value of the parameter that allows this divergence at this order."""
        raise self._no_divergence()

    def order_for(self, p: float, q: float) -> float | None:
        """The order at which P(E) = p and Q(E) = q need the largest value of the parameter.

        None where there are no orders to choose from.
        """
        return None

    def at_order(self, order: float) -> Claim:
        """What the claim says at one of its orders, which is implied by the whole."""
        raise self._no_divergence()

    @property
    def whole(self) -> Claim:
        """The claim of which this one is an order; else the claim itself."""
        return self

    @property
    def leak(self) -> float:
        """The share of outputs that a claim about divergences does not speak of."""
        return 0.0

    def divergence_limit(self, order: float) -> float:
        """The largest divergence of this order that is allowed where the claim speaks."""
        raise self._no_divergence()

    def from_divergence(self, order: float, divergence: float) -> float:
        """The smallest value of the parameter whose `divergence_limit` is that; 0 if all are larger."""
        raise self._no_divergence()

    def gaussian_proxy(self) -> GaussianDP:
        """The μ-GDP claim of the same strength, to seek events with: quick to evaluate."""
        raise self._no_divergence()

    def _no_divergence(self) -> InvalidInput:
        return InvalidInput(
            f"{self} is a claim about events, with no order of a divergence to test it at; use "
            "`region` and `needed`"
        )

    def __repr__(self) -> str:
        shown = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in dataclasses.fields(self)
            if f.default is dataclasses.MISSING or getattr(self, f.name) != f.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def shaped(values: npt.ArrayLike, f: Callable[[FloatArray], Any]) -> Any:
    """Apply `f` to values in [0, 1]; a scalar in gives a float out."""
    array = checks.doubles("a probability", values)
    if not ((array >= 0) & (array <= 1)).all():
        raise InvalidInput(f"a probability must lie in [0, 1], got {checks.shown(values)}")
    result = np.clip(f(array.ravel()), 0.0, 1.0)
    return result.reshape(array.shape) if array.ndim else float(result[0])


def mapped(name: str, values: npt.ArrayLike, f: Callable[[FloatArray], FloatArray]) -> Any:
    """Apply `f` to numbers; a scalar in gives a float out."""
    array = checks.doubles(name, values)
    result = np.asarray(f(array.ravel()))
    return result.reshape(array.shape) if array.ndim else float(result[0])


def digits(value: float) -> str:
    """The shortest text that is read back as the same number."""
    return repr(float(value)).removesuffix(".0")


def checked_delta(delta: Any) -> float:
    """A δ in [0, 1)."""
    return checks.real(
        "delta", delta, at_least=0.0, below=1.0, remedy="with delta = 1 nothing is claimed"
    )
