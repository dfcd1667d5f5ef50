"""The columns of a file before they become outputs: values, their kinds, and which cells have one."""

from __future__ import annotations

import importlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpassay._typing import AnyArray, BoolArray
from dpassay.errors import MissingExtra
from dpassay.privacy.provenance import Origin

_EXACT = 2**53  # below it every whole number is a float


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of a column that have a value, and which cells those are."""

    values: AnyArray  # boolean, int64, float, datetime64, or objects of several kinds
    present: BoolArray | None = None  # None if all are

    @property
    def rows(self) -> int:
        """How many cells there are."""
        return len(self.values if self.present is None else self.present)

    @property
    def missing(self) -> int:
        """How many of them have no value."""
        return 0 if self.present is None else int(np.count_nonzero(~self.present))

    def array(self, objects: bool = False) -> AnyArray:
        """The column with None for what is missing."""
        if self.present is None:
            return self.values.astype(object) if objects else self.values
        whole: AnyArray = np.full(len(self.present), None, dtype=object)
        whole[self.present] = self.values.astype(object)
        return whole

    @cached_property
    def kinds(self) -> Counter[str]:
        """How many cells hold numbers, words, booleans, dates, …."""
        kind = _KIND_OF_DTYPE.get(self.values.dtype.kind)
        if kind is not None:
            return Counter({kind: len(self.values)} if len(self.values) else {})
        found: Counter[str] = Counter()
        for sort, count in Counter(map(type, self.values.tolist())).items():
            found[KIND_OF_TYPE.get(sort, "objects")] += count
        return found


_KIND_OF_DTYPE = {"b": "booleans", "i": "numbers", "f": "numbers", "M": "dates"}
KIND_OF_TYPE: dict[type, str] = {
    bool: "booleans",
    int: "numbers",
    float: "numbers",
    str: "words",
    bytes: "bytes",
    list: "lists",
    dict: "dictionaries",
}


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds: one row an output, a column a coordinate.

    A column is an array of numbers, booleans or datetime64 if no value is missing, and otherwise an
    object array of Python values with None for missing. `names` is None where the file has none.
    """

    names: tuple[str, ...] | None
    columns: tuple[AnyArray, ...]
    origin: Origin


@dataclass(frozen=True, eq=False)
class Content:
    """A file that was read, or those of its columns that are used."""

    label: str  # without folders
    shown: str  # in messages
    size: int
    sha256: str
    modified: str
    rows: int
    called: tuple[str, ...]  # names, or positions from "1"
    named: bool
    columns: tuple[Column, ...]
    first: tuple[str, ...] | None = None  # the first row of a text without a header
    again: Callable[[], Content] | None = None  # reads that row as a header

    def take(self, wanted: Iterable[str]) -> Content:
        """Some of the columns, in the order given."""
        called = tuple(wanted)
        columns = dict(zip(self.called, self.columns, strict=True))
        return replace(self, called=called, columns=tuple(columns[name] for name in called))

    def column(self, name: str) -> str:
        """A column in words."""
        return f"column {name!r}" if self.named else f"column {name}"

    def texts(self) -> list[str]:
        """Every row as a text, the same for the same cells only."""
        return list(map(repr, zip(*(c.tolist() for c in self.table().columns), strict=True)))

    def table(self, objects: Sequence[bool] = ()) -> Table:
        """What was read, for others; `objects` says which columns must be of objects."""
        origin = Origin(
            file=self.label,
            bytes=self.size,
            sha256=self.sha256,
            rows=self.rows,
            columns=self.called,
            missing=sum(column.missing for column in self.columns),
            modified=self.modified,
        )
        forced = itertools.chain(objects, itertools.repeat(False))
        arrays = tuple(column.array(next(forced)) for column in self.columns)
        return Table(self.called if self.named else None, arrays, origin)


def as_objects(values: Iterable[Any]) -> AnyArray:
    """An object array of values that may be sequences themselves."""
    listed = list(values)
    array: AnyArray = np.empty(len(listed), dtype=object)
    for k, value in enumerate(listed):
        array[k] = value
    return array


def number_array(array: AnyArray) -> AnyArray:
    """Numbers as int64 where they are whole, as floats, or as Python integers beyond 64 bits."""
    if array.dtype.kind == "u" and len(array) and int(array.max()) > np.iinfo(np.int64).max:
        return array.astype(object)
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array, dtype=np.int64)
    array = array.astype(f"f{min(max(array.dtype.itemsize, 4), 8)}", copy=False)
    if (
        len(array)
        and bool(np.all(np.abs(array) < _EXACT))
        and bool(np.all(array == np.floor(array)))
    ):
        return array.astype(np.int64)
    return np.ascontiguousarray(array)


def integer_array(values: Iterable[int]) -> AnyArray:
    """Whole numbers as int64, as objects where they do not fit."""
    whole = as_objects(values)
    try:
        return whole.astype(np.int64)
    except OverflowError:
        return whole


def arrow_source(data: bytes, suffix: str) -> Any:
    """Bytes as a source for Arrow, in memory of its own.

    Threads of Arrow may outlive a read that failed. One that lets go of Python's bytes needs the
    interpreter, and ends the process with an abort if that is being shut down.
    """
    arrow = pyarrow_module("pyarrow", suffix)
    buffer = arrow.allocate_buffer(len(data))
    np.frombuffer(buffer, dtype=np.uint8)[:] = np.frombuffer(data, dtype=np.uint8)
    return arrow.BufferReader(buffer)


def pyarrow_module(module: str, suffix: str) -> Any:
    """A module of the optional pyarrow, or the sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(f"reading {suffix} files", "arrow") from None


def microseconds(column: Any) -> AnyArray:
    """Arrow's time stamps as datetime64[us] in UTC."""
    arrow = pyarrow_module("pyarrow", ".parquet")
    array: AnyArray = column.cast(arrow.timestamp("us", column.type.tz), safe=False).to_numpy()
    return array


def counted(n: int, what: str) -> str:
    """A number and what it counts."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
