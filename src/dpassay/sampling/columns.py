"""Columns of a file or a data frame before they become outputs: values, kinds, missing cells, pyarrow."""

from __future__ import annotations

import importlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpassay._typing import AnyArray, BoolArray
from dpassay.errors import InvalidInput, MissingExtra, UnreadableFile
from dpassay.outputs import foreign_arrays
from dpassay.privacy.provenance import Origin

#: Stands where a row of JSON has no such key.
ABSENT = object()
as_objects = foreign_arrays.objects
SNIFFED = 100  # rows that tell the delimiter of a text, and cells that tell a type
_EXACT = 2**53  # doubles hold every whole number below
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


class Unreadable(Exception):
    """Why a file cannot be read, and at which line or column; `load` adds the name of the file."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(f", {where} {why}" if where else f" {why}")
        self.why = why


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of a column that have a value, and which cells those are."""

    values: AnyArray  # boolean, int64, float, datetime64, or objects of several kinds
    present: BoolArray | None = None  # None if no value is missing
    absent: BoolArray | None = None  # rows that lack the key, all of them missing; None if none do
    problem: str = ""  # why its cells cannot be read; refused if the column is used
    slashes: str = ""  # how its dates are written: 31/12/2024, 12/31/2024, 05.03.2024 or 5.3.2024

    @property
    def rows(self) -> int:
        return len(self.values if self.present is None else self.present)

    @property
    def missing(self) -> int:
        return self.rows - len(self.values)

    def array(self, absent: Any = None) -> AnyArray:
        """The column with None for missing values, and another mark for keys that are absent."""
        if self.present is None:
            return self.values
        whole: AnyArray = np.full(len(self.present), None, dtype=object)
        whole[self.present] = self.values.astype(object)
        if self.absent is not None:
            whole[self.absent] = absent
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


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds: one row an output, a column a coordinate.

    A column is an array of numbers, booleans or datetime64 if no value is missing, and otherwise an
    object array of Python values with None for missing. `names` is None where the file has none.
    """

    names: tuple[str, ...] | None
    columns: tuple[AnyArray, ...]
    origin: Origin
    sparse: bool = False  # whether some cells are ABSENT
    notes: tuple[str, ...] = ()  # on columns that were left out


@dataclass(frozen=True, eq=False)
class Content:
    """A file or a data frame, or those of its columns that are used."""

    shown: str  # in messages
    origin: Origin  # `table` fills in its columns and missing values
    called: tuple[str, ...]  # names, or positions from "1"
    named: bool
    columns: tuple[Column, ...]
    json: bool = False  # JSON lines: rows with names may lack some

    @property
    def places(self) -> tuple[str, ...]:
        """The positions of the columns."""
        return tuple(str(k) for k in range(1, len(self.columns) + 1))

    def take(self, wanted: Iterable[str]) -> Content:
        """The columns with these names; rows lack those that are not there."""
        called, lack = tuple(wanted), np.ones(self.origin.rows, dtype=bool)
        columns = dict.fromkeys(called, Column(as_objects(()), ~lack, lack))
        columns.update(zip(self.called, self.columns, strict=True))
        left_out = (*self.origin.left_out, *(name for name in self.called if name not in called))
        return replace(
            self,
            origin=replace(self.origin, left_out=left_out),
            called=called,
            columns=tuple(columns[name] for name in called),
        )

    def checked(self) -> Content:
        """The same; refuse columns that cannot be read."""
        for column in self.columns:
            if column.problem:
                raise UnreadableFile(f"{self.shown}{column.problem}")
        return self

    def column(self, name: str) -> str:
        """A column as messages name it."""
        return f"column {name!r}" if self.named else f"column {name}"

    def table(self, arrays: Sequence[AnyArray] | None = None) -> Table:
        """The table, with these arrays in place of its columns if they are given."""
        if arrays is None:
            arrays = [column.array() for column in self.columns]
        missing = sum(column.missing for column in self.columns)
        origin = replace(self.origin, columns=self.called, missing=missing)
        sparse = any(column.absent is not None for column in self.columns)
        return Table(self.called if self.named else None, tuple(arrays), origin, sparse)


def read_columns(
    names: Sequence[str] | None, read: Callable[[Any], Column], columns: Iterable[Any]
) -> tuple[Column, ...]:
    """Columns as `read` makes them; those it refuses have a problem, which names the column."""
    found = []
    for k, cells in enumerate(columns):
        try:
            found.append(read(cells))
        except Unreadable as error:
            where = f"column {names[k]!r}" if names else f"column {k + 1}"
            none = np.zeros(len(cells), dtype=bool)
            found.append(Column(as_objects(()), none, problem=str(Unreadable(error.why, where))))
    return tuple(found)


def frame_content(name: str, given: Any) -> Content | None:
    """The columns of a data frame, an Arrow table or an array with named fields; None for other things.

    Text in them is not parsed.
    """
    if isinstance(given, np.ndarray):
        names = given.dtype.names
        arrays = [given[field] for field in names or ()]
    else:
        names, arrays = foreign_arrays.columns(given, of_draws=True) or (None, [])
    if names is None:
        return None
    if not names:
        raise InvalidInput(f"{name} has no columns; give a data frame with the outputs in it")
    if double := repeated(names):
        raise InvalidInput(
            f"{name} has more than one column {double!r}; give every column a name of its own"
        )
    columns = tuple(map(of_array, arrays))
    origin = Origin(name, 0, "", columns[0].rows, names, 0, "")
    return Content(name, origin, names, True, columns)


def constants(tables: Any) -> dict[str, str]:
    """Columns of a list of data frames with one value in all rows of all of them, and that value.

    In tables of several rows and columns such a column is a label far more often than an output; what is
    once in an output, as in a dictionary or in a table of one row, may well be an output without noise.
    """
    found: dict[str, str] | None = None
    rows = 0
    for table in tables if isinstance(tables, (list, tuple)) else ():
        names, arrays = foreign_arrays.columns(table) or (None, [])
        if names is None or len(names) < 2:
            return {}
        values = {k: set(map(repr, a.tolist())) for k, a in zip(names, arrays, strict=True)}
        single = {k: value.pop() for k, value in values.items() if len(value) == 1}
        found = single if found is None else dict(found.items() & single.items())
        if not found:
            return {}
        rows += len(arrays[0])
    return found if found and rows > len(tables) else {}


def repeated(names: Sequence[str]) -> str | None:
    """A name that occurs more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def of_array(array: AnyArray) -> Column:
    """The column of an array; None and NaT are missing, and text is not parsed."""
    if isinstance(array, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(array)
        return Column(of_array(array.data[~missing]).values, ~missing)
    kind = array.dtype.kind if array.ndim == 1 else "O"
    if kind in "iuf":
        return Column(number_array(array))
    if kind in "bM":
        present = ~np.isnat(array) if kind == "M" else np.ones(len(array), dtype=bool)
        values = np.ascontiguousarray(array[present])
    else:
        cells = [c.item() if isinstance(c, np.generic) else c for c in array.tolist()]
        present = np.array([cell is not None for cell in cells], dtype=bool)
        values = as_objects(cell for cell in cells if cell is not None)
        types = set(map(type, values))
        if types and types <= {int, float}:
            values = number_array(values.astype(float)) if float in types else integer_array(values)
        elif types == {bool}:
            values = values.astype(bool)
    return Column(values, None if present.all() else present)


def number_array(array: AnyArray) -> AnyArray:
    """Numbers as int64 where they are whole, as floats, or as Python integers beyond 64 bits."""
    if array.dtype.kind == "u" and len(array) and int(array.max()) > np.iinfo(np.int64).max:
        return array.astype(object)
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array, dtype=np.int64)
    array = array.astype(f"f{min(max(array.dtype.itemsize, 4), 8)}", copy=False)
    if len(array) and np.all(np.abs(array) < _EXACT) and np.all(array == np.floor(array)):
        return array.astype(np.int64)
    return np.ascontiguousarray(array)


def integer_array(values: Iterable[int]) -> AnyArray:
    """Whole numbers as int64, as objects where they do not fit."""
    whole = as_objects(values)
    try:
        return whole.astype(np.int64)
    except OverflowError:
        return whole


def pyarrow_for(what: str, *modules: str) -> Any:
    """pyarrow with some of its modules; MissingExtra says that `what` needs it if it is not there."""
    try:
        for module in modules:
            importlib.import_module(f"pyarrow.{module}")
        return importlib.import_module("pyarrow")
    except ImportError:
        raise MissingExtra(what, "arrow") from None


def arrow_source(pa: Any, data: bytes) -> Any:
    """Bytes as a source for Arrow, in memory of its own.

    Threads of Arrow may outlive a read that failed. One that lets go of Python's bytes needs the
    interpreter, and ends the process with an abort if that is being shut down.
    """
    buffer = pa.allocate_buffer(len(data))
    np.frombuffer(buffer, dtype=np.uint8)[:] = np.frombuffer(data, dtype=np.uint8)
    return pa.BufferReader(buffer)


def microseconds(pa: Any, column: Any) -> AnyArray:
    """Arrow's time stamps as datetime64[us] in UTC."""
    array: AnyArray = column.cast(pa.timestamp("us", column.type.tz), safe=False).to_numpy()
    return array


def cast(cells: Any, kind: Any) -> Any | None:
    """Cells of a type if all can be; failing is slow in Arrow, so that the first are tried alone."""
    try:
        cells.slice(0, SNIFFED).cast(kind)
        return cells.cast(kind)
    except pyarrow_for("reading text").ArrowInvalid:
        return None


#: How dates with slashes are written, and what makes them ISO dates.
_ORDERS = {"31/12/2024": r"\3-\2-\1", "12/31/2024": r"\3-\1-\2"}


def dates(cells: Any, slashes: str = "") -> tuple[AnyArray, str] | None:
    """Cells as dates or times, if all are in ISO 8601, or all as 31.12.2024, 31/12/2024 or 12/31/2024.

    Slashes are read where one of the two readings fits all cells, or as `slashes` says; how is returned.
    So is whether dates with points have leading zeros (05.03.2024) or not (5.3.2024); not both do.
    """
    written = re.match(r"[0-9]{1,2}([./])[0-9]{1,2}\1[0-9]{4}", cells[0].as_py())
    if written is None:
        iso = _iso_dates(cells)
        return None if iso is None else (iso, "")
    pa, mark = pyarrow_for("reading text", "compute"), re.escape(written[1])
    matches, rewrite = pa.compute.match_substring_regex, pa.compute.replace_substring_regex
    ways = _ORDERS
    if written[1] == ".":
        zeros, short = (
            pa.compute.any(matches(cells, one)).as_py()
            for one in (r"^0[1-9]\.|\.0[1-9]\.", r"^[1-9]\.|\.[1-9]\.")
        )
        if zeros and short:
            return None
        ways = {"05.03.2024" * zeros + "5.3.2024" * short: _ORDERS["31/12/2024"]}
        cells = rewrite(rewrite(cells, r"^([1-9])\.", r"0\1."), r"\.([1-9])\.", r".0\1.")
    pattern = f"^([0-9]{{2}}){mark}([0-9]{{2}}){mark}([0-9]{{4}})"
    if not pa.compute.all(matches(cells, f"{pattern}([ T].*)?$")).as_py():
        return None
    readings = ((_iso_dates(rewrite(cells, pattern, order)), way) for way, order in ways.items())
    found = [(one, way) for one, way in readings if one is not None and slashes in ("", way)]
    return found[0] if len(found) == 1 else None


def _iso_dates(cells: Any) -> AnyArray | None:
    """Cells as dates or times, if all are in ISO 8601."""
    pa = pyarrow_for("reading text")
    days = cast(cells, pa.date32())
    if days is not None:
        return np.asarray(days)
    for zone, unit in itertools.product((None, "UTC"), ("us", "ns")):
        times = cast(cells, pa.timestamp(unit, zone))
        if times is not None:
            return microseconds(pa, times)
    return None
