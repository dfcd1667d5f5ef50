"""Input spaces as rows of cells, and candidates: pairs of neighbouring inputs made of such rows.

`row_schema` turns a space (`dpassay.inputs`, or a Hypothesis strategy) into columns of cells and a
function that packs rows into an input. One value is a single row; counts by key are rows of a key and its
count; examples of a strategy are rows of which nothing is known but that they were drawn. A schema under
a neighbouring relation makes candidates: `rows` for rows that are added, removed or changed, `queries`
for answers that differ by a sensitivity.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dpassay import validation as checks
from dpassay.blackbox.inputs import (
    Category,
    Cell,
    Column,
    Convert,
    Counts,
    Example,
    Integer,
    Real,
    Space,
    Table,
    Text,
)
from dpassay.errors import InvalidInput
from dpassay.privacy.relations import Pair, Relation

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = tuple[Row, ...]
Pack: TypeAlias = Callable[[Sequence[Row]], Any]

#: Examples drawn of a strategy.
_EXAMPLES = 200
#: A column of an example that holds no more different integers than these is a category.
_FEW = 6


class Origin(StrEnum):
    """How a candidate was made; the value starts its name."""

    CATALOGUE = ""
    MUTATED = "changed from: "
    SIMPLIFIED = "simplified from: "


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A pair of neighbouring inputs that may break the mechanism."""

    entry: str  # what is special about it: the entry of the catalogue that it comes from
    origin: Origin = Origin.CATALOGUE
    kind: str = ""  # its part that is without the background; empty if that is all of it
    outside: bool = False  # whether a value lies outside the space
    rare: bool = False  # whether a claim with δ singles it out: a key or a user that is not there

    @property
    def name(self) -> str:
        return self.origin + self.entry

    @property
    def family(self) -> str:
        """What a log counts it as."""
        if self.origin is Origin.CATALOGUE:
            return self.kind or self.entry
        return self.origin.partition(" ")[0]

    def sides(self) -> tuple[Rows, Rows]:
        """The rows of either input."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """Equal for equal pairs only."""
        return repr(self.sides())


@dataclass(frozen=True)
class RowSchema:
    """A space as rows: names and cells of the columns, how many rows, and how they are packed."""

    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    length: Any  # the least and the most rows: a tuple of two
    pack: Pack
    multiplicity: int | None = None  # the column that says how many there are of a row
    known: tuple[Rows, ...] = ()  # inputs that were given or drawn


class Candidates:
    """The candidates of a schema under a relation; they are made with `rng`."""

    def __init__(self, schema: RowSchema, relation: Relation, rng: np.random.Generator) -> None:
        self.schema, self.relation, self.rng = schema, relation, rng

    def pair(self, found: Candidate) -> Pair:
        """The inputs of a candidate."""
        first, second = map(self.schema.pack, found.sides())
        name = f"outside the space, {found.name}" if found.outside else found.name
        return Pair(first, second, self.relation, name)

    def _pick(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]


def row_schema(space: Space, seed: int) -> RowSchema:
    """The rows of a space; `seed` decides what a strategy draws."""
    match space:
        case Cell():
            return _single(space)
        case Column():
            return RowSchema(("value",), (space.cell,), space.length, _column(space))
        case Table():
            names, cells = tuple(space.columns), tuple(space.columns.values())
            return RowSchema(names, cells, space.rows, _table(names, space.convert))
        case Counts():
            keys = space.keys if isinstance(space.keys, Text) else Category(space.keys)
            cells = (keys, Integer(1, max(space.most - 1, 2)))
            names = ("key", "count")
            return RowSchema(names, cells, space.keys_at_once, _counts(space), multiplicity=1)
        case Example():
            return _example(space)
    return _strategy(space, seed)


def _single(cell: Cell) -> RowSchema:
    """Inputs that are one value."""
    return RowSchema(("value",), (cell,), (1, 1), lambda rows: rows[0][0])


def _column(space: Column) -> Pack:
    dtype = {Real: np.float64, Integer: np.int64}.get(type(space.cell), object)

    def pack(rows: Sequence[Row]) -> Any:
        values = [row[0] for row in rows]
        if callable(space.convert):
            return space.convert(values)
        if space.convert == "numpy":
            return np.array(values, dtype=dtype)
        return _pandas().Series(values) if space.convert == "pandas" else values

    return pack


def _table(names: tuple[Any, ...], convert: Convert) -> Pack:
    def pack(rows: Sequence[Row]) -> Any:
        if convert == "numpy":
            array = np.array(rows) if rows else np.empty((0, len(names)))
            return array if array.dtype.kind in "biuf" else np.array(rows, dtype=object)
        if convert == "pandas":
            return _frame(names, rows)
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        return convert(listed) if callable(convert) else listed

    return pack


def _counts(space: Counts) -> Pack:
    def pack(rows: Sequence[Row]) -> Any:
        found = dict.fromkeys(space.keys, 0) if space.zeros else {}
        for key, count in rows:
            found[key] = found.get(key, 0) + count
        return found

    return pack


def _frame(names: Sequence[Any], rows: Sequence[Row]) -> Any:
    return _pandas().DataFrame([list(row) for row in rows], columns=list(names))


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InvalidInput('convert="pandas" needs pandas: pip install pandas') from None


# --- examples


def _example(space: Example) -> RowSchema:
    """The columns of an example, what their values may be, and what puts rows together again."""
    names, rows, pack = _taken_apart(space.data)
    given = dict(space.columns or {})
    for name in given:
        if name not in names:
            raise InvalidInput(f"the example has no column {name!r}: {checks.shown(list(names))}")
    rows = [tuple(v.item() if isinstance(v, np.generic) else v for v in row) for row in rows]
    columns = zip(names, zip(*rows, strict=True), strict=True)
    cells = tuple(given.get(name) or _cell_of(column) for name, column in columns)
    return RowSchema(tuple(map(str, names)), cells, (0, len(rows) + 1), pack, known=(tuple(rows),))


def _taken_apart(data: Any) -> tuple[tuple[Any, ...], list[Row], Pack]:
    """The names of the columns of an example, its rows, and what packs rows in the same form."""
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        names, dtypes = tuple(data.columns), dict(data.dtypes)

        def as_frame(rows: Sequence[Row]) -> Any:
            frame = _frame(names, rows)
            return frame.astype(dtypes) if len(rows) else frame

        return names, list(data.itertuples(index=False, name=None)), as_frame
    if isinstance(data, np.ndarray):
        rows = [tuple(np.atleast_1d(row).tolist()) for row in data]

        def as_array(rows: Sequence[Row]) -> Any:
            return np.array(list(rows), dtype=data.dtype).reshape(len(rows), *data.shape[1:])

        return tuple(range(len(rows[0]))), rows, as_array
    if isinstance(data[0], Mapping):
        names = tuple(data[0])
        if any(tuple(row) != names for row in data):
            raise InvalidInput("every row of an example must have the same keys, in the same order")
        return names, [tuple(row.values()) for row in data], _table(names, "list")
    values = [(value,) for value in data]
    return ("value",), values, lambda rows: type(data)(row[0] for row in rows)


def _cell_of(values: Sequence[Any]) -> Cell:
    """What a column may hold, from what it holds."""
    distinct = list({repr(v): v for v in values}.values())
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        low, high, whole = min(values), max(values), all(isinstance(v, int) for v in values)
        numbers = all(map(math.isfinite, values)) and low < high
        if numbers and not (whole and len(distinct) <= _FEW):
            return Integer(low, high) if whole else Real(low, high)
    return Category(distinct if len(distinct) > 1 else [*distinct, None])


# --- strategies of Hypothesis


def _strategy(strategy: Any, seed: int) -> RowSchema:
    """Examples of a strategy; rows are exchanged between those that are sequences."""
    drawn = _drawn(strategy, seed)
    if not all(isinstance(one, (list, tuple, np.ndarray)) for one in drawn):
        return _single(_pool(drawn))
    known = tuple(tuple((item,) for item in one) for one in drawn)
    lengths = [len(rows) for rows in known]
    kind, dtype = type(drawn[0]), getattr(drawn[0], "dtype", None)

    def pack(rows: Sequence[Row]) -> Any:
        values = [row[0] for row in rows]
        return np.array(values, dtype=dtype) if kind is np.ndarray else kind(values)

    items = _pool([row[0] for rows in known for row in rows])
    return RowSchema(("row",), (items,), (min(lengths), max(*lengths, 1)), pack, known=known)


def _pool(values: list[Any]) -> Category:
    """One of the values drawn, the shortest first."""
    once = {repr(value): value for value in values}
    ordered = [once[text] for text in sorted(once, key=lambda text: (len(text), text))]
    if len(ordered) < 2:
        raise InvalidInput("the strategy draws one value only: nothing can change")
    return Category(ordered)


def _drawn(strategy: Any, seed: int) -> list[Any]:
    """Examples of a Hypothesis strategy, the same for the same seed."""
    import hypothesis

    found: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=_EXAMPLES,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found
