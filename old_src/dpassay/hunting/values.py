"""What one value may be: at random, hostile, changed a little, simpler.

Hostile values are those at which programs that handle numbers and text go wrong: at, next to and beyond
the bounds; where integers are no longer exact doubles, or no longer fit their type; NaN, infinities, −0.0
and denormals; words that are one word after normalisation.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpassay.blackbox.inputs import INT64, Category, Cell, Integer, Real, Text

#: The ends of the integers that float32, int32, uint32, double and int64 hold exactly.
_EDGES = (2**24, 2**31, 2**32, 2**53, 2**63)
#: Values that are hostile if they are inside a space. Beyond an edge: a double that is not the edge.
_REALS = (
    ("zero", 0.0),
    ("minus zero", -0.0),
    ("the smallest denormal", 5e-324),
    ("one", 1.0),
    ("minus one", -1.0),
    ("not exact in float32", 0.1),
    ("tiny", 1e-300),
    ("huge", 1e300),
    *(
        (
            f"an integer beyond 2^{edge.bit_length() - 1}",
            max(edge + 2.0, math.nextafter(edge, 1e99)),
        )
        for edge in _EDGES
    ),
)
_INTEGERS = (
    ("zero", 0),
    ("one", 1),
    ("minus one", -1),
    *(
        (f"an integer around {'−' if value < 0 else ''}2^{edge.bit_length() - 1}", value)
        for edge in _EDGES
        for value in (edge - 1, edge, edge + 1, -edge, -edge - 1)
    ),
)
#: Hostile categories at most; others are drawn at random.
_MANY = 12
#: Pairs of words that some normalisation makes one: composition, case, blanks, width, invisible signs.
TWINS = (
    ("one letter composed or decomposed", "caf\u00e9", "cafe\u0301"),
    ("upper and lower case", "Ada", "ada"),
    ("a blank at the end", "ada", "ada "),
    ("full-width letters", "ada", "\uff41\uff44\uff41"),
    ("an invisible sign", "ada", "a\u200bda"),
    ("sharp s", "stra\u00dfe", "STRASSE"),
)
_WORDS = (
    ("empty text", ""),
    ("a blank", " "),
    ("text that reads as a number", "1e5"),
    ("text that reads as missing", "nan"),
    ("a control sign", "\x00"),
    ("beyond 16 bits", "\U0001f600"),
    ("a comma and quotes", 'a,"b"'),
)


@dataclass(frozen=True)
class Named:
    """A value, what is special about it, and whether it lies outside the space."""

    name: str
    value: Any
    outside: bool = False


def holds(cell: Cell, value: Any) -> bool:
    """Whether a value is in the space of a cell."""
    match cell:
        case Real() | Integer():
            number = isinstance(value, int if isinstance(cell, Integer) else (int, float))
            return number and not isinstance(value, bool) and cell.low <= value <= cell.high
        case Category():
            return repr(value) in _places(cell)
        case Text():
            return (
                isinstance(value, str)
                and len(value) <= cell.longest
                and (cell.alphabet is None or set(value) <= set(cell.alphabet))
            )
    raise AssertionError


@lru_cache(maxsize=64)
def _places(cell: Category) -> dict[str, int]:
    """The index of each value of a category, by its text: arrays and NaN have no usable equality."""
    return {repr(value): k for k, value in enumerate(cell.values)}


@lru_cache(maxsize=64)
def hostile(cell: Cell) -> tuple[Named, ...]:
    """The values of the catalogue for a cell, inside first, then outside; each value once."""
    listed: Any = {Real: _numbers, Integer: _numbers, Category: _categories, Text: _texts}[
        type(cell)
    ]
    found: dict[str, Named] = {}
    for name, value in listed(cell):
        found.setdefault(repr(value), Named(name, value, not holds(cell, value)))
    return tuple(sorted(found.values(), key=lambda one: one.outside))


def _numbers(cell: Real | Integer) -> Iterator[tuple[str, Any]]:
    low, high = extremes(cell)
    real = isinstance(cell, Real)
    yield "the lower bound", low
    yield "the upper bound", high
    yield "next to the upper bound", math.nextafter(high, low) if real else high - 1
    yield "next to the lower bound", math.nextafter(low, high) if real else low + 1
    yield "in the middle", low / 2 + high / 2 if real else (low + high) // 2
    inside = _REALS if real else _INTEGERS
    yield from ((name, value) for name, value in inside if holds(cell, value))
    if real:
        width = high - low if math.isfinite(high - low) else high
        yield "NaN", math.nan
        yield "infinity", math.inf
        yield "minus infinity", -math.inf
        yield "a little beyond the upper bound", high + 0.5 * width
        yield "below the lower bound", low - width
        yield "far beyond the upper bound", min(1e6 * max(abs(high), width), 1e300)
        yield "huge", 1e300
        return
    for name, value in (
        ("beyond the upper bound", high + 1),
        ("below the lower bound", low - 1),
        ("an integer beyond 2^31", 2**31),
        ("the largest of 64 bits", INT64[1]),
        ("the least of 64 bits", INT64[0]),
    ):
        if INT64[0] <= value <= INT64[1] or high > INT64[1]:
            yield name, value


def _categories(cell: Category) -> Iterator[tuple[str, Any]]:
    step = max(1, len(cell.values) // _MANY)
    for value in cell.values[::step]:
        yield f"{value!r}", value
    yield "a value nobody declared", "undeclared"
    yield "missing", None


def _texts(cell: Text) -> Iterator[tuple[str, Any]]:
    yield "a plain word", "ada" if cell.alphabet is None else cell.alphabet[:1]
    for name, value in _WORDS:
        yield name, value
    for name, one, other in TWINS:
        yield name, one
        yield name, other
    yield "as long as can be", (cell.alphabet or "x")[:1] * cell.longest
    yield "too long", (cell.alphabet or "x")[:1] * (cell.longest + 1000)
    yield "missing", None


def twins(cell: Cell) -> list[tuple[str, Any, Any]]:
    """Pairs of values of a cell that a normalisation makes one."""
    if isinstance(cell, Category):
        words = [value for value in cell.values if isinstance(value, str)]
        plain = {w: unicodedata.normalize("NFKC", w).casefold().strip() for w in words}
        return [
            ("one word after normalisation", one, other)
            for one, other in itertools.permutations(words, 2)
            if one != other and plain[one] == plain[other]
        ]
    if not isinstance(cell, Text):
        return []
    found = [(name, *two) for name, one, other in TWINS for two in ((one, other), (other, one))]
    return [(name, a, b) for name, a, b in found if holds(cell, a) and holds(cell, b)]


def extremes(cell: Cell) -> tuple[Any, Any]:
    """Two values that are far apart."""
    match cell:
        case Real(low=low, high=high):  # large numbers in place of infinite bounds
            finite = low if math.isfinite(low) else -1e6 if high > -1e6 else 2 * high
            return finite, high if math.isfinite(high) else 1e6 if low < 1e6 else 2 * low
        case Integer():
            return cell.low, cell.high
        case Category():
            return cell.values[0], cell.values[-1]
        case Text():
            letters = cell.alphabet or "ab"
            return letters[0], letters[-1]
    raise AssertionError


def opposite(cell: Cell, value: Any) -> Any:
    """A value of the space that is far from this one."""
    low, high = extremes(cell)
    if isinstance(cell, (Real, Integer)) and isinstance(value, (int, float)):
        return low if value > low / 2 + high / 2 else high
    return low if repr(value) != repr(low) else high


def nearest(cell: Cell, value: Any) -> Any:
    """A value of the space next to this one, where a jump shows: an integer, or 10⁻⁶ of the range."""
    if not isinstance(cell, (Real, Integer)) or not isinstance(value, (int, float)):
        return None
    low, high = extremes(cell)
    step = 1 if isinstance(cell, Integer) else 1e-6 * (high - low)
    near = [value + sign * step for sign in (-1, 1)]
    return next((one for one in near if holds(cell, one) and one != value), None)


def typical(cell: Cell, rng: np.random.Generator) -> Any:
    """A value at random: mostly anywhere, now and then at an end or a hostile one inside."""
    kind = rng.random()
    if kind < 0.1:
        return extremes(cell)[int(rng.integers(2))]
    if kind < 0.2:
        inside = [one.value for one in hostile(cell) if not one.outside]
        return inside[int(rng.integers(len(inside)))]
    match cell:
        case Real():
            low, high = extremes(cell)
            return float(low + (high - low) * rng.random())
        case Integer():
            return cell.low + int((cell.high - cell.low) * float(rng.random()))
        case Category():
            return cell.values[int(rng.integers(len(cell.values)))]
        case Text():
            letters = cell.alphabet or "abcdefgh"
            size = int(rng.integers(1, min(cell.longest, 6) + 1))
            return "".join(letters[int(k)] for k in rng.integers(len(letters), size=size))
    raise AssertionError


def changed(cell: Cell, value: Any, rng: np.random.Generator) -> Any:
    """A value like this one, or another."""
    if not isinstance(value, (int, float)) or isinstance(cell, Category) or rng.random() < 0.4:
        return typical(cell, rng)
    if not math.isfinite(value):
        return value
    if isinstance(cell, Integer):
        near = value + int(rng.integers(-2, 3)) if rng.random() < 0.5 else int(value * 2)
    else:
        near = value * float(rng.choice([0.5, 0.9, 1.1, 2.0, -1.0]))
    return near if holds(cell, near) else typical(cell, rng)


def simpler(cell: Cell, value: Any) -> list[Any]:
    """Values of the space that are simpler than this one, the simplest first."""
    least = complexity(cell, value)
    found = [one for one in _plain_values(cell, value) if holds(cell, one)]
    once = {repr(one): one for one in found if complexity(cell, one) < least}.values()
    return sorted(once, key=lambda one: complexity(cell, one))


def simpler_column(cell: Cell, column: Sequence[Any]) -> Iterator[list[Any]]:
    """A column with one of its values replaced by a simpler one, wherever it occurs."""
    for text, value in {repr(one): one for one in column}.items():
        for plain in simpler(cell, value)[:6]:
            yield [plain if repr(one) == text else one for one in column]


def _plain_values(cell: Cell, value: Any) -> list[Any]:
    """Round values, and this one rounded or shortened."""
    found: list[Any] = []
    match cell:
        case Real():
            low, high = extremes(cell)
            found = [0.0, 1.0, -1.0, low, high]
            if isinstance(value, float) and math.isfinite(value):
                found += [float(f"{value:.{digits}g}") for digits in (1, 2, 3, 6)]
        case Integer():
            found = [0, 1, -1, 2, cell.low, cell.high]
            if isinstance(value, int):
                found += [int(float(f"{value:.{digits}g}")) for digits in (1, 2, 3)]
                found += [sign * edge for edge in _EDGES for sign in (1, -1)]
        case Category():
            found = list(cell.values[:_MANY])
        case Text() if isinstance(value, str):
            first = (cell.alphabet or "a")[:1]
            found = ["", first, value[: len(value) // 2], value[:-1]]
    return found


def complexity(cell: Cell, value: Any) -> tuple[float, ...]:
    """How hard a value is to read, as a sort key."""
    if isinstance(cell, Category):
        place = _places(cell).get(repr(value))
        return (1, 0) if place is None else (0, place)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            return (2, 0.0, 0.0)
        special = [0, 1, -1, *(extremes(cell) if isinstance(cell, (Real, Integer)) else ())]
        if value in special:
            return (0, special.index(value), math.copysign(1.0, value) < 0)
        return (1, len(f"{value:d}" if isinstance(value, int) else f"{value!r}"), abs(value))
    return (1, len(value)) if isinstance(value, str) else (2, 0)
