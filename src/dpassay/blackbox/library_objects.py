"""Mechanisms of other libraries, recognised by their attributes; none of them is imported.

    OpenDP          a Measurement: map, invoke, input_metric, output_measure
    Tumult Core     a Measurement: privacy_function, input_domain, input_metric, output_measure
    diffprivlib     a mechanism: randomise, epsilon, delta, sensitivity
    diffprivlib     a model: fit, epsilon, accountant; its output is the fitted model

Such an object says itself what it claims. For a pair of inputs that is the value of its privacy map at
the distance of the two, in the object's own metric; so `dp.audit(measurement, pair)` needs no claim. For
`dp.hunt(measurement)` its input domain is the space of inputs, and its metric says what neighbours are.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpassay import validation as checks
from dpassay.blackbox.inputs import Category, Integer, Integers, Real, Reals, Space, Strings, Text
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import (
    ApproximateDP,
    Claim,
    PureDP,
    RenyiCurveDP,
    TradeoffDP,
    ZeroConcentratedDP,
)
from dpassay.privacy.relations import Pair, Relation, as_pair

#: Orders at which a measurement that states Rényi divergences is asked.
_ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)


@dataclass(frozen=True)
class Neighbours:
    """The inputs of a mechanism, which of them are neighbours, and what it claims about those."""

    space: Space
    relation: Relation
    claim: Claim
    sensitivity: float = 1.0
    norm: str = "each"


class Library(NamedTuple):
    """How the mechanisms of a library are recognised and called, and what they claim."""

    attributes: tuple[str, ...]
    output: Callable[[Any, Any], Any]  # of a mechanism on data
    claim: Callable[[Any, Pair], Claim]  # about a pair
    neighbours: Callable[[Any], Neighbours]  # the claim about all neighbours


@dataclass(frozen=True)
class LibraryMechanism:
    """An object of another library as a mechanism of one output per call, with its own claim."""

    given: Any
    library: Library
    block = 256
    one_by_one = True
    replayable = False  # these libraries have random sources of their own

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        return [self.library.output(self.given, data) for _ in range(size)]

    def __str__(self) -> str:
        return type(self.given).__name__


def adapted(given: Any) -> Any:
    """A mechanism of another library in dpassay's form; anything else as it is."""
    for library in _LIBRARIES:
        if not isinstance(given, type) and checks.has(given, *library.attributes):
            return LibraryMechanism(given, library)
    return given


def neighbours_of(mechanism: Any, given: dict[str, Any]) -> Neighbours:
    """What is given, by the names of `Neighbours`; the rest as a mechanism of another library has it."""
    found = adapted(mechanism)
    if given["claim"] is None and isinstance(given["space"], (str, Claim)):
        raise InvalidInput(
            f"space is {checks.shown(given['space'])}, which is a claim: give what the inputs may be "
            "before it, such as dp.inputs.Reals(0, 1, length=(1, 9))"
        )
    named = {name: value for name, value in given.items() if value is not None}
    if isinstance(found, LibraryMechanism) and not {"space", "claim"} <= named.keys():
        return replace(found.library.neighbours(found.given), **named)
    for name in ("space", "claim"):
        if name not in named:
            raise InvalidInput(
                f"give {name}: only measurements of OpenDP and Tumult Core and mechanisms of diffprivlib "
                "bring theirs"
            )
    return Neighbours(**{"relation": Relation.REPLACE_ONE, **named})


def claim_on(given: Any, mechanism: Any, pairs: Any) -> Any:
    """The claim that is given; else the one that a mechanism of another library makes about the pairs."""
    found = adapted(mechanism)
    if isinstance(pairs, (str, Claim)) and not isinstance(mechanism, str):  # two names of files
        raise InvalidInput(
            f"pairs is {checks.shown(pairs)}, which is a claim: the inputs come before it, and samples "
            "have none: audit(mechanism, (0.0, 1.0), claim), audit(samples, claim=…)"
        )
    if (
        given is None
        and isinstance(pairs, tuple)
        and not callable(mechanism)
        and found is mechanism
    ):
        raise InvalidInput(
            f"no claim was given: {checks.shown(pairs)} was read as the pair of inputs, and samples have "
            "none: audit(samples, claim=…)"
        )
    if given is not None or pairs is None or not isinstance(found, LibraryMechanism):
        return given
    listed = pairs if isinstance(pairs, list) else [pairs]
    claims = [found.library.claim(found.given, as_pair(pair)) for pair in listed]
    if len({str(claim) for claim in claims}) > 1:
        some = ", ".join(map(str, claims[:3]))
        raise InvalidInput(
            f"{found} claims different things about these pairs ({some}): audit one pair at a time, or "
            "give claim="
        )
    return claims[0]


def _bounds(mechanism: Any) -> tuple[Any, ...]:
    """The bounds of the inputs that a mechanism states; empty if it states none."""
    ends = getattr(mechanism, "lower", None), getattr(mechanism, "upper", None)
    return () if None in ends else ends


def _numbers(whole: bool, bounds: Any, rows: Any = None) -> Space:
    """The space of a number, or of a list of numbers."""
    if rows is None:
        return Integer(*bounds) if whole else Real(*bounds)
    column: Any = Integers if whole else Reals
    return column(*bounds, length=rows, convert="list")  # type: ignore[no-any-return]


# --- OpenDP


def _multisets(a: Any, b: Any) -> tuple[int, int]:
    """How many records each of two data sets has that the other lacks."""
    first, second = Counter(a), Counter(b)
    return (first - second).total(), (second - first).total()


def _norm(order: int) -> Callable[[Any, Any], float]:
    return lambda a, b: float(np.linalg.norm(np.subtract(a, b, dtype=float).ravel(), order))


#: Metrics of OpenDP by their names: the distance of two inputs, the relation of neighbours, and the norm
#: of their difference.
_METRICS: dict[str, tuple[Callable[[Any, Any], float], Relation, str]] = {
    "AbsoluteDistance": (lambda a, b: abs(float(a) - float(b)), Relation.SENSITIVITY, "each"),
    "L1Distance": (_norm(1), Relation.SENSITIVITY, "l1"),
    "L2Distance": (_norm(2), Relation.SENSITIVITY, "l2"),
    "SymmetricDistance": (lambda a, b: sum(_multisets(a, b)), Relation.ADD_REMOVE, "each"),
    "ChangeOneDistance": (lambda a, b: max(_multisets(a, b)), Relation.REPLACE_ONE, "each"),
    "HammingDistance": (
        lambda a, b: sum(x != y for x, y in zip(a, b, strict=True)),
        Relation.REPLACE_ONE,
        "each",
    ),
    "DiscreteDistance": (lambda a, b: int(a != b), Relation.REPLACE_ONE, "each"),
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
        distance = _METRICS[name][0](*pair)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the inputs have no {metric}: {checks.shown(pair.first)} and {checks.shown(pair.second)}"
        ) from None
    return _stated(measurement, distance)


def _stated(measurement: Any, distance: float) -> Claim:
    """What the privacy map of a measurement says about a distance."""
    whole = str(measurement.input_distance_type) not in ("f64", "f32")
    value = measurement.map(int(distance) if whole else float(distance))
    return _MEASURES[str(measurement.output_measure)](value)


def _opendp_neighbours(measurement: Any) -> Neighbours:
    """The input domain of a measurement, with its privacy map at the distance of neighbours."""
    domain, metric = measurement.input_domain, str(measurement.input_metric).partition("(")[0]
    atom = getattr(domain, "element_domain", domain)
    kind = str(atom.carrier_type)
    whole = kind[0] in "iu" and kind[1:].isdigit()
    number = whole or kind in ("f32", "f64")
    cells = {"String": Text()} | ({"bool": Category([False, True])} if domain is atom else {})
    if metric not in _METRICS or not (number or kind in cells):
        raise InvalidInput(
            f"no space is made of {domain} under {measurement.input_metric}: give space= and claim="
        )
    bounds: Any = (atom.bounds if number else None) or ()
    if whole and not bounds:
        bits = int(kind[1:])
        bounds = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    (_, relation, norm), apart = _METRICS[metric], 1
    size = getattr(domain, "size", None)
    if size is not None and relation is Relation.ADD_REMOVE:  # one row in place of another
        relation, apart = Relation.REPLACE_ONE, 2
    rows: Any = (int(relation is Relation.SENSITIVITY), 20) if size is None else size
    if number:
        space = _numbers(whole, bounds, None if domain is atom else rows)
    else:
        space = cells[kind] if domain is atom else Strings(length=rows)
    return Neighbours(space, relation, _stated(measurement, apart), norm=norm)


# --- Tumult Core

#: Measures of Tumult Core by their names: the claim that a value of the privacy function makes.
_TUMULT_MEASURES: dict[str, Callable[[Any], Claim]] = {
    "PureDP": lambda v: PureDP(v.to_float(round_up=True)),
    "ApproxDP": lambda v: ApproximateDP(*(part.to_float(round_up=True) for part in v)),
    "RhoZCDP": lambda v: ZeroConcentratedDP(v.to_float(round_up=True)),
}
#: Relations of neighbours at distance 1 of a metric of Tumult Core.
_TUMULT_RELATIONS = {
    "AbsoluteDifference": Relation.SENSITIVITY,
    "SymmetricDifference": Relation.ADD_REMOVE,
    "HammingDistance": Relation.REPLACE_ONE,
}


def _in_domain(measurement: Any, data: Any) -> Any:
    """An input as the type that a measurement of Tumult Core takes: np.float64, a Series."""
    carrier = measurement.input_domain.carrier_type
    return data if isinstance(data, carrier) else carrier(data)


def _tumult(measurement: Any, pair: Pair) -> Claim:
    """The privacy function of a measurement at the distance of the pair, in its own metric."""
    sides = (_in_domain(measurement, one) for one in pair)
    distance = measurement.input_metric.distance(*sides, measurement.input_domain)
    return _tumult_stated(measurement, distance)


def _tumult_stated(measurement: Any, distance: Any) -> Claim:
    measure = type(measurement.output_measure).__name__
    if measure not in _TUMULT_MEASURES:
        raise InvalidInput(
            f"no claim is made of the measure {measure}, only of {', '.join(_TUMULT_MEASURES)}: give "
            "claim="
        )
    return _TUMULT_MEASURES[measure](measurement.privacy_function(distance))


def _tumult_neighbours(measurement: Any) -> Neighbours:
    """Numbers, or series of them, that are 1 apart in the metric of a measurement."""
    domain, metric = measurement.input_domain, type(measurement.input_metric).__name__
    atom = getattr(domain, "element_domain", domain)
    kind = np.dtype(getattr(atom, "carrier_type", object)).kind
    if metric not in _TUMULT_RELATIONS or kind not in "if":
        raise InvalidInput(f"no space is made of {domain} under {metric}: give space= and claim=")
    bounds = _bounds(measurement) or (() if kind == "f" else (-(2**62), 2**62))
    space = _numbers(kind == "i", bounds, None if domain is atom else (0, 20))
    return Neighbours(space, _TUMULT_RELATIONS[metric], _tumult_stated(measurement, 1))


# --- diffprivlib


def _diffprivlib(mechanism: Any, pair: Pair) -> Claim:
    """ε and δ of a mechanism, for inputs within its sensitivity."""
    if hasattr(mechanism, "utility"):
        raise InvalidInput(
            f"{type(mechanism).__name__} takes no input, its data are the utility that it was made with: "
            "write a function of the data that makes it and returns randomise(), and give claim="
        )
    sensitivity = getattr(mechanism, "sensitivity", None)
    if sensitivity is not None:
        apart = abs(float(pair.first) - float(pair.second))
        if apart > float(sensitivity) * (1 + 1e-12):
            raise InvalidInput(
                f"the inputs {checks.shown(pair.first)} and {checks.shown(pair.second)} are {apart:g} "
                f"apart, and the mechanism claims something up to its sensitivity {sensitivity:g}: give "
                "inputs no further apart, or claim="
            )
    return _epsilon_delta(mechanism)


def _epsilon_delta(mechanism: Any) -> Claim:
    delta = float(mechanism.delta)
    return ApproximateDP(mechanism.epsilon, delta) if delta else PureDP(mechanism.epsilon)


def _diffprivlib_neighbours(mechanism: Any) -> Neighbours:
    """Numbers within the bounds that are the sensitivity apart, or the two values of a mechanism."""
    claim = _epsilon_delta(mechanism)
    if hasattr(mechanism, "value0"):
        values = Category([mechanism.value0, mechanism.value1])
        return Neighbours(values, Relation.REPLACE_ONE, claim)
    sensitivity = getattr(mechanism, "sensitivity", None)
    if sensitivity is None or hasattr(mechanism, "utility"):
        raise InvalidInput(
            f"{type(mechanism).__name__} does not say what its inputs are: give space= and claim="
        )
    whole = type(mechanism).__name__.startswith("Geometric")
    space = _numbers(whole, _bounds(mechanism) or ((-(10**6), 10**6) if whole else ()))
    return Neighbours(space, Relation.SENSITIVITY, claim, float(sensitivity))


def _fitted(model: Any, data: Any) -> Any:
    """A copy of a model, fitted to (X, y), or to X alone.

    It shares the generator, which goes on from fit to fit, and not the accountant, which would run out.
    """
    fresh = copy.copy(model)
    fresh.accountant = copy.deepcopy(model.accountant)
    return fresh.fit(*(data if isinstance(data, tuple) else (data,)))


def _model_neighbours(model: Any) -> Neighbours:
    raise InvalidInput(
        f"{type(model).__name__} does not say what its rows are: give space= and claim= (its epsilon is "
        f"{model.epsilon:g})"
    )


_LIBRARIES = (
    Library(
        ("map", "invoke", "input_metric", "output_measure"),
        lambda measurement, data: measurement.invoke(data),
        _opendp,
        _opendp_neighbours,
    ),
    Library(
        ("privacy_function", "input_domain", "input_metric", "output_measure"),
        lambda measurement, data: measurement(_in_domain(measurement, data)),
        _tumult,
        _tumult_neighbours,
    ),
    Library(
        ("randomise", "epsilon", "delta"),
        lambda mechanism, data: mechanism.randomise(data),
        _diffprivlib,
        _diffprivlib_neighbours,
    ),
    Library(  # a model: ε holds for whichever data sets are compared, which must be neighbours
        ("fit", "epsilon", "accountant"),
        _fitted,
        lambda model, pair: PureDP(model.epsilon),
        _model_neighbours,
    ),
)
