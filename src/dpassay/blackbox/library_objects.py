"""Mechanisms of other libraries, recognised by their attributes; none of them is imported.

    OpenDP          a Measurement: map, invoke, input_metric, output_measure
    diffprivlib     a mechanism: randomise, epsilon, delta, sensitivity

Such an object says itself what it claims. For a pair of inputs that is the value of its privacy map at
the distance of the two, in the object's own metric; so `dp.audit(measurement, pair)` needs no claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import (
    ApproximateDP,
    Claim,
    PureDP,
    RenyiCurveDP,
    TradeoffDP,
    ZeroConcentratedDP,
)
from dpassay.privacy.pairs import Pair, as_pair

#: Orders at which a measurement that states Rényi divergences is asked.
_ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)


@dataclass(frozen=True)
class LibraryMechanism:
    """An object of another library as a mechanism of one output per call, with its own claim."""

    given: Any
    function: Callable[[Any], Any]
    states: Callable[[Any, Pair], Claim]
    block = 256
    one_by_one = True
    replayable = False  # these libraries have random sources of their own

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        return [self.function(data) for _ in range(size)]

    def claim_on(self, pair: Pair) -> Claim:
        """What the object claims about two inputs."""
        return self.states(self.given, pair)

    def __str__(self) -> str:
        return type(self.given).__name__


def adapted(given: Any) -> Any:
    """A mechanism of another library in dpassay's form; anything else as it is."""
    for marks, call, states in _LIBRARIES:
        if not isinstance(given, type) and all(hasattr(given, name) for name in marks):
            return LibraryMechanism(given, getattr(given, call), states)
    return given


def claim_on(given: Any, mechanism: Any, pairs: Any) -> Any:
    """The claim that is given; else the one that a mechanism of another library makes about the pairs."""
    found = adapted(mechanism)
    if given is not None or pairs is None or not isinstance(found, LibraryMechanism):
        return given
    claims = [
        found.claim_on(as_pair(pair)) for pair in (pairs if isinstance(pairs, list) else [pairs])
    ]
    if len({str(claim) for claim in claims}) > 1:
        listed = ", ".join(map(str, claims[:3]))
        raise InvalidInput(
            f"{found} claims different things about these pairs ({listed}): audit one pair at a time, or "
            "give claim="
        )
    return claims[0]


# --- OpenDP


def _multisets(a: Any, b: Any) -> tuple[int, int]:
    """How many records each of two data sets has that the other lacks."""
    first, second = Counter(a), Counter(b)
    return (first - second).total(), (second - first).total()


def _norm(order: int) -> Callable[[Any, Any], float]:
    return lambda a, b: float(np.linalg.norm(np.subtract(a, b, dtype=float).ravel(), order))


#: Metrics of OpenDP by their names: the distance of two inputs.
_METRICS: dict[str, Callable[[Any, Any], float]] = {
    "AbsoluteDistance": lambda a, b: abs(float(a) - float(b)),
    "L1Distance": _norm(1),
    "L2Distance": _norm(2),
    "SymmetricDistance": lambda a, b: sum(_multisets(a, b)),
    "ChangeOneDistance": lambda a, b: max(_multisets(a, b)),
    "HammingDistance": lambda a, b: sum(x != y for x, y in zip(a, b, strict=True)),
    "DiscreteDistance": lambda a, b: int(a != b),
}
#: Measures of OpenDP by their names: the claim that a value of the privacy map makes.
_MEASURES: dict[str, Callable[[Any], Claim]] = {
    "MaxDivergence": PureDP,
    "Approximate(MaxDivergence)": lambda v: ApproximateDP(*v),
    "ZeroConcentratedDivergence": ZeroConcentratedDP,
    "Approximate(ZeroConcentratedDivergence)": lambda v: ZeroConcentratedDP(*v),
    "SmoothedMaxDivergence": lambda v: TradeoffDP.from_delta(v.delta),
    "RenyiDivergence": lambda v: RenyiCurveDP(_ORDERS, tuple(v(order) for order in _ORDERS)),
}


def _opendp(measurement: Any, pair: Pair) -> Claim:
    """The privacy map of a measurement at the distance of the pair."""
    metric, measure = str(measurement.input_metric), str(measurement.output_measure)
    name = metric.partition("(")[0]
    if name not in _METRICS or measure not in _MEASURES:
        raise InvalidInput(
            f"the measurement has the metric {metric} and the measure {measure}; no claim is made of "
            f"those, only of {', '.join(_METRICS)} and {', '.join(_MEASURES)}: give claim="
        )
    try:
        distance = _METRICS[name](*pair)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the inputs have no {metric}: {checks.shown(pair.first)} and {checks.shown(pair.second)}"
        ) from None
    whole = str(measurement.input_distance_type) not in ("f64", "f32")
    return _MEASURES[measure](measurement.map(int(distance) if whole else float(distance)))


# --- diffprivlib


def _diffprivlib(mechanism: Any, pair: Pair) -> Claim:
    """ε and δ of a mechanism, for inputs within its sensitivity."""
    sensitivity = getattr(mechanism, "sensitivity", None)
    if sensitivity is not None:
        apart = abs(float(pair.first) - float(pair.second))
        if apart > float(sensitivity) * (1 + 1e-12):
            raise InvalidInput(
                f"the inputs {checks.shown(pair.first)} and {checks.shown(pair.second)} are {apart:g} "
                f"apart, and the mechanism claims something up to its sensitivity {sensitivity:g}: give "
                "inputs no further apart, or claim="
            )
    delta = float(mechanism.delta)
    return ApproximateDP(mechanism.epsilon, delta) if delta else PureDP(mechanism.epsilon)


#: Attributes that a library's mechanisms have, the method that makes an output, and their claim.
_LIBRARIES: tuple[tuple[tuple[str, ...], str, Callable[[Any, Pair], Claim]], ...] = (
    (("map", "invoke", "input_metric", "output_measure"), "invoke", _opendp),
    (("randomise", "epsilon", "delta"), "randomise", _diffprivlib),
)
