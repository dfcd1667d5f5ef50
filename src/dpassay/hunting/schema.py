"""Two neighbouring inputs as what they share and what they do not.

The inputs are `common` with `first` or `second` put in at a place: nothing and a row if one is added, a
row and another if one is replaced, nothing and several if they are a user's. Whatever is done to a
candidate, the two stay neighbours.

Every space as rows of cells, and what packs rows into an input.

One value is a single row; counts by key are rows of a key and how many there are of it; examples of a
Hypothesis strategy are rows that nothing is known of but that they were drawn.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from dpassay import validation as checks
from dpassay.blackbox.inputs import (
    Category,
    Cell,
    Convert,
    Counts,
    Example,
    Integer,
    Integers,
    Real,
    Reals,
    Space,
    Strings,
    Table,
    Text,
    is_strategy,
)
from dpassay.errors import InvalidInput
from dpassay.privacy.pairs import Pair

#: What became of an entry of the catalogue.
MUTATED, SIMPLER = "changed from: ", "simplified from: "


def renamed(name: str, how: str) -> str:
    """The name of a pair that was made of another: what was done last, and what it began with."""
    return how + name.removeprefix(SIMPLER).removeprefix(MUTATED)


@dataclass(frozen=True)
class Candidate:
    """A pair of neighbouring inputs that may break the mechanism."""

    common: tuple[Row, ...]
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    at: int
    name: str  # what is special about it
    outside: bool = False  # whether a value lies outside the space

    def rows(self, side: int) -> tuple[Row, ...]:
        """The rows of one of the inputs."""
        own = self.second if side else self.first
        return (*self.common[: self.at], *own, *self.common[self.at :])

    def sharing(self, common: tuple[Row, ...]) -> Candidate:
        """With other common rows; what differs keeps its place, as far as there is one."""
        end = self.at >= len(self.common)
        return replace(self, common=common, at=len(common) if end else min(self.at, len(common)))

    @property
    def key(self) -> str:
        """What tells candidates apart."""
        return repr((self.rows(0), self.rows(1)))

    @property
    def kin(self) -> tuple[int, ...]:
        """None: what a row does to the output depends on which it is."""
        return ()


class CandidateSpace(Protocol):
    """A space under a relation: where pairs come from."""

    def catalogue(self, rng: np.random.Generator, *, outside: bool) -> list[Any]:
        """The pairs worth trying first, the most special first."""

    def random(self, rng: np.random.Generator) -> Any:
        """A pair at random."""

    def mutated(self, found: Any, rng: np.random.Generator) -> Any:
        """A pair like this one."""

    def simpler(self, found: Any) -> list[Any]:
        """Pairs that are easier to read, the easiest first."""

    def pair(self, found: Any) -> Pair:
        """The inputs themselves."""


# --- every space as rows of cells, and what packs rows into an input


Row: TypeAlias = tuple[Any, ...]
Pack: TypeAlias = Callable[[Sequence[Row]], Any]

#: Examples drawn of a strategy.
_EXAMPLES = 200
#: A column of an example that holds no more different integers than these is a category.
_FEW = 6


@dataclass(frozen=True)
class Shape:
    """A space as rows: names and cells of the columns, how many rows, and how they are packed."""

    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    length: tuple[int, int]
    pack: Pack
    scalar: bool = False  # the input is one value
    multiplicity: int | None = None  # the column that says how many there are of a row
    seeds: tuple[tuple[Row, ...], ...] = ()  # inputs that are known


def shape_of(space: Space, seed: int) -> Shape:
    """The rows of a space; `seed` decides what a strategy draws."""
    match space:
        case Cell():
            return Shape(("value",), (space,), (1, 1), lambda rows: rows[0][0], scalar=True)
        case Reals():
            return _column(Real(space.low, space.high), space.length, space.convert)
        case Integers():
            return _column(Integer(space.low, space.high), space.length, space.convert)
        case Strings():
            return _column(Text(space.longest, space.alphabet), space.length, space.convert)
        case Table():
            names, cells = tuple(space.columns), tuple(space.columns.values())
            return Shape(names, cells, _pair(space.rows), _table(names, space.convert))
        case Counts():
            keys = space.keys if isinstance(space.keys, Text) else Category(space.keys)
            most = Integer(1, max(space.most - 1, 2))
            length = _pair(space.keys_at_once)
            return Shape(("key", "count"), (keys, most), length, _counts(space), multiplicity=1)
        case Example():
            return _example(space)
    if is_strategy(space):
        return _strategy(space, seed)
    raise AssertionError


def _pair(length: Any) -> tuple[int, int]:
    return length if isinstance(length, tuple) else (length, length)


def _column(cell: Cell, length: Any, convert: Convert) -> Shape:
    kinds = {Real: np.float64, Integer: np.int64}

    def pack(rows: Sequence[Row]) -> Any:
        values = [row[0] for row in rows]
        if callable(convert):
            return convert(values)
        if convert == "numpy":
            return np.array(values, dtype=kinds.get(type(cell), object))
        return _pandas().Series(values) if convert == "pandas" else values

    return Shape(("value",), (cell,), _pair(length), pack)


def _table(names: tuple[str, ...], convert: Convert) -> Pack:
    def pack(rows: Sequence[Row]) -> Any:
        if convert == "numpy":
            array = np.array(rows) if rows else np.empty((0, len(names)))
            return array if array.dtype.kind in "biuf" else np.array(rows, dtype=object)
        if convert == "pandas":
            return _pandas().DataFrame([list(row) for row in rows], columns=list(names))
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


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InvalidInput('convert="pandas" needs pandas: pip install pandas') from None


# --- data at hand


def _example(space: Example) -> Shape:
    """The columns of an example, what their values may be, and what puts rows together again."""
    data = space.data
    names: tuple[Any, ...]
    pack: Pack
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        names, kinds = tuple(data.columns), data.dtypes
        rows = list(data.itertuples(index=False, name=None))

        def as_frame(found: Sequence[Row]) -> Any:
            frame = _pandas().DataFrame([list(row) for row in found], columns=list(names))
            return frame.astype(dict(kinds)) if len(found) else frame

        pack = as_frame

    elif isinstance(data, np.ndarray):
        rows = [tuple(np.atleast_1d(row).tolist()) for row in data]
        names = tuple(range(len(rows[0])))

        def as_array(found: Sequence[Row]) -> Any:
            return np.array(list(found), dtype=data.dtype).reshape(len(found), *data.shape[1:])

        pack = as_array

    elif isinstance(data[0], Mapping):
        names = tuple(data[0])
        if any(tuple(row) != names for row in data):
            raise InvalidInput("every row of an example must have the same keys, in the same order")
        rows = [tuple(row.values()) for row in data]
        pack = _table(names, "list")
    else:
        names, rows = ("value",), [(value,) for value in data]

        def as_sequence(found: Sequence[Row]) -> Any:
            return type(data)(row[0] for row in found)

        pack = as_sequence

    said = dict(space.columns or {})
    for name in said:
        if name not in names:
            raise InvalidInput(f"the example has no column {name!r}: {checks.shown(list(names))}")
    rows = [tuple(_plain(value) for value in row) for row in rows]
    cells = tuple(
        said.get(name) or _cell_of([row[k] for row in rows]) for k, name in enumerate(names)
    )
    return Shape(tuple(map(str, names)), cells, (0, len(rows) + 1), pack, seeds=(tuple(rows),))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _cell_of(values: list[Any]) -> Cell:
    """What a column may hold, from what it holds."""
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    kinds = list({repr(v): v for v in values}.values())
    if len(numbers) == len(values) and all(map(math.isfinite, numbers)):
        whole = all(isinstance(v, int) for v in numbers)
        if not (whole and len(kinds) <= _FEW) and min(numbers) < max(numbers):
            low, high = min(numbers), max(numbers)
            return Integer(int(low), int(high)) if whole else Real(low, high)
    return Category(kinds if len(kinds) > 1 else [*kinds, None])


# --- strategies of Hypothesis


def _strategy(strategy: Any, seed: int) -> Shape:
    """Examples of a strategy; rows are exchanged between those that are sequences."""
    drawn = _drawn(strategy, seed)
    sequences = [one for one in drawn if isinstance(one, (list, tuple, np.ndarray))]
    if len(sequences) < len(drawn):
        return Shape(("value",), (_pool(drawn),), (1, 1), lambda rows: rows[0][0], scalar=True)
    seeds = tuple(tuple((item,) for item in one) for one in sequences)
    items = [row[0] for rows in seeds for row in rows]
    lengths = [len(rows) for rows in seeds]
    kind = type(sequences[0])
    dtype = getattr(sequences[0], "dtype", None)

    def pack(rows: Sequence[Row]) -> Any:
        values = [row[0] for row in rows]
        return np.array(values, dtype=dtype) if kind is np.ndarray else kind(values)

    length = (min(lengths), max(*lengths, 1))
    return Shape(("row",), (_pool(items),), length, pack, seeds=seeds)


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
