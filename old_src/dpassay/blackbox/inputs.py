"""Input spaces for `dpassay.hunt`: what one value and what a whole input of a mechanism may be.

A *cell* says what one value may be: `Real`, `Integer`, `Category`, `Text`. A *space* says what a whole
input may be: a column of cells (`Reals`, `Integers`, `Strings`), a `Table` of several, `Counts` by key,
or example data (`Example`). A cell alone is the space of inputs that are one such value. Any Hypothesis
strategy is a space as well.

Spaces are records: they go to JSON and come back, which is how `dpassay hunt --space` reads them.

    {"type": "Table", "columns": {"age": {"type": "Real", "low": 0, "high": 100}}, "rows": [0, 50]}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.records import Record

__all__ = [
    "Category",
    "Cell",
    "Counts",
    "Example",
    "Integer",
    "Integers",
    "Real",
    "Reals",
    "Space",
    "Strings",
    "Table",
    "Text",
    "as_space",
]

#: A number of rows, or the least and the most.
Length: TypeAlias = "int | tuple[int, int]"
#: How rows reach the mechanism: "list", "numpy", "pandas", or a function of the rows.
Convert: TypeAlias = "str | Callable[[Any], Any] | None"

_CONVERTERS = ("list", "numpy", "pandas")
INT64 = (-(2**63), 2**63 - 1)


class Space(Record):
    """What a whole input may be."""


class Cell(Space):
    """What one value may be."""


@dataclass(frozen=True, eq=False)
class Real(Cell):
    """A number from `low` to `high`; either may be infinite.

    >>> Real(0, 100).high
    100.0
    """

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        checks.real("low", self.low, finite=False)
        checks.real("high", self.high, finite=False)
        super().__post_init__()
        if not self.low < self.high:
            raise InvalidInput(f"low must be below high, got {self.low:g} and {self.high:g}")


@dataclass(frozen=True, eq=False)
class Integer(Cell):
    """A whole number from `low` to `high`; by default any that 64 bits hold."""

    low: int = INT64[0]
    high: int = INT64[1]

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = checks.whole(name, getattr(self, name), at_least=-(10**40), at_most=10**40)
            self._set(**{name: value})
        if not self.low < self.high:
            raise InvalidInput(f"low must be below high, got {self.low} and {self.high}")


@dataclass(frozen=True, eq=False)
class Category(Cell):
    """One of the values listed."""

    values: Sequence[Any] = field(metadata={"verbatim": True})

    def __post_init__(self) -> None:
        given: Any = self.values
        scalar = isinstance(given, str) or (isinstance(given, np.ndarray) and given.ndim == 0)
        if scalar or not isinstance(given, (Sequence, np.ndarray)):
            raise InvalidInput(
                f"values must be a list such as ['f', 'm'], got {checks.shown(self.values)}"
            )
        self._set(values=[v.item() if isinstance(v, np.generic) else v for v in self.values])
        if len(self.values) < 2:
            raise InvalidInput("a category needs at least two values: otherwise nothing can change")


@dataclass(frozen=True, eq=False)
class Text(Cell):
    """Text of at most `longest` characters, any or those of an `alphabet`."""

    longest: int = 40
    alphabet: str | None = None

    def __post_init__(self) -> None:
        remedy = "entries from a list are a Table with a column Category([…])"
        self._set(longest=checks.whole("longest", self.longest, remedy=remedy))
        text = isinstance(self.alphabet, str) and len(set(self.alphabet)) >= 2
        if self.alphabet is not None and not text:
            got = checks.shown(self.alphabet)
            raise InvalidInput(f"alphabet must be text of two characters or more, got {got}")


class Column(Space):
    """A column of cells of one kind."""

    length: Length
    convert: Convert
    _cell: ClassVar[Any]

    @property
    def cell(self) -> Cell:
        """What one value may be."""
        cell: Cell = self._cell(*(getattr(self, one.name) for one in fields(self._cell)))
        return cell

    def __post_init__(self) -> None:
        self._set(length=_length("length", self.length), convert=_convert(self.convert))
        self._set(**vars(self.cell))


@dataclass(frozen=True, eq=False)
class Reals(Column):
    """A column of numbers from `low` to `high`; a NumPy array unless converted.

    >>> Reals(0, 1, length=(0, 20)).length
    (0, 20)
    """

    low: float = -math.inf
    high: float = math.inf
    length: Length = (0, 20)
    convert: Convert = "numpy"
    _cell: ClassVar[Any] = Real


@dataclass(frozen=True, eq=False)
class Integers(Column):
    """A column of whole numbers from `low` to `high`; a NumPy array of int64 unless converted."""

    low: int = INT64[0]
    high: int = INT64[1]
    length: Length = (0, 20)
    convert: Convert = "numpy"
    _cell: ClassVar[Any] = Integer

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.convert == "numpy" and (self.low < INT64[0] or self.high > INT64[1]):
            raise InvalidInput('bounds beyond 64 bits need convert="list": arrays do not hold them')


@dataclass(frozen=True, eq=False)
class Strings(Column):
    """A list of texts."""

    longest: int = 40
    alphabet: str | None = None
    length: Length = (0, 20)
    convert: Convert = "list"
    _cell: ClassVar[Any] = Text


@dataclass(frozen=True, eq=False)
class Table(Space):
    """Rows with named columns, each a cell: a list of dictionaries unless converted.

    >>> Table({"age": Real(0, 100), "sex": Category(["f", "m"])}, rows=(0, 50)).rows
    (0, 50)
    """

    columns: Mapping[str, Cell] = field(metadata={"verbatim": True})
    rows: Length = (0, 50)
    convert: Convert = "list"

    def __post_init__(self) -> None:
        self._set(rows=_length("rows", self.rows), convert=_convert(self.convert))
        if not isinstance(self.columns, Mapping) or not list(self.columns):
            raise InvalidInput(
                "columns must be a dictionary from names to cells such as "
                f'{{"age": Real(0, 100)}}, got {checks.shown(self.columns)}'
            )
        for name, cell in self.columns.items():
            if not isinstance(cell, Cell):
                raise InvalidInput(
                    f"the column {name!r} must be Real, Integer, Category or Text, got "
                    f"{checks.shown(cell)}"
                )
        self._set(columns=dict(self.columns))


@dataclass(frozen=True, eq=False)
class Counts(Space):
    """A dictionary from keys to how many rows have each: a row more or less is 1 more or less.

    keys   the keys there may be, or Text for any
    most   the largest count of a key
    keys_at_once  how many keys one input may hold
    zeros  whether keys without rows are listed, with 0
    """

    keys: Any = field(metadata={"verbatim": True})
    most: int = 50
    keys_at_once: Length = (0, 10)
    zeros: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.keys, Text):
            self._set(keys=Category(self.keys).values)
        elif self.zeros:
            raise InvalidInput("zeros needs a list of keys: not all texts can be listed")
        self._set(most=checks.whole("most", self.most))
        self._set(keys_at_once=_length("keys_at_once", self.keys_at_once))


@dataclass(frozen=True, eq=False)
class Example(Space):
    """Example data: a list, a list of dictionaries, an array, or a pandas DataFrame.

    Inputs are made of their rows. A column may hold any number from its least to its largest, or any of
    its values, unless `columns` gives a cell for it, by its name or its position.
    """

    data: Any = field(metadata={"verbatim": True})
    columns: Mapping[Any, Cell] | None = field(default=None, metadata={"verbatim": True})

    def __post_init__(self) -> None:
        try:
            rows = len(self.data)
        except TypeError:
            rows = -1
        if rows < 2 or isinstance(self.data, (str, bytes, dict)):
            raise InvalidInput(
                "an example must be a list, a list of dictionaries, an array or a DataFrame of two rows "
                f"or more, got {checks.shown(self.data)}"
            )


_AS_JSON = '{"type": "Reals", "low": 0, "high": 1, "length": 10}'


def as_space(given: Any) -> Space:
    """A space, given as one, in JSON, or as a Hypothesis strategy, which is returned as it is."""
    if isinstance(given, Space):
        return given
    if isinstance(given, dict) and "type" in given:
        return Space.from_dict(given)
    if is_strategy(given):
        return given  # type: ignore[no-any-return]
    if isinstance(given, (list, tuple, set)) and len(given) > 1:
        listed = ", ".join(map(repr, list(given)[:2])) + ", …" * (len(given) > 2)
        raise InvalidInput(f"for listed values, the space is dp.inputs.Category([{listed}])")
    raise InvalidInput(
        "a space must be one of dp.inputs (Real, Integer, Category, Text, Reals, Integers, Strings, "
        f"Table, Counts, Example), one in JSON ({_AS_JSON}), or a Hypothesis strategy, got "
        f"{checks.shown(given)}"
    )


def is_strategy(given: Any) -> bool:
    """Whether this is a Hypothesis strategy, without importing Hypothesis."""
    names = [f"{cls.__module__}.{cls.__name__}" for cls in type(given).__mro__]
    return any(name.startswith("hypothesis.") and name.endswith("SearchStrategy") for name in names)


def _length(name: str, given: Any) -> tuple[int, int]:
    """The least and the most rows."""
    two = given if isinstance(given, (tuple, list)) else (given, given)
    if len(two) != 2:
        raise InvalidInput(f"{name} must be a number or (least, most), got {checks.shown(given)}")
    least, most = (checks.whole(name, one, at_least=0) for one in two)
    if most < max(least, 1):
        raise InvalidInput(f"{name} must be (least, most) with most ≥ 1, got {checks.shown(given)}")
    return least, most


def _convert(given: Any) -> Any:
    if given is None:
        return "list"
    if not callable(given):
        checks.one_of("convert", given, _CONVERTERS, remedy="or a function of the rows")
    return given
