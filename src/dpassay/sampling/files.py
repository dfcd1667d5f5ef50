"""Files of outputs: one output a row, a column a coordinate.

Text (.csv, .tsv, .txt, also compressed), .parquet, .feather, .arrow and .npy (never pickled) hold
the same table if they hold the same content:

- Numbers that are whole are integers, written 1, 1.0 or 1e0; beyond 64 bits they are Python's.
- A cell without a value is an outcome: blank, NA, N/A, null, NULL, None and Parquet's null are None,
  and so is a blank line in a file of one column. "nan" and "inf" are the floats.
- ISO 8601 dates are such if every cell of their column is; times are in UTC, to the microsecond.
  All other cells but true and false are words, without spaces at their ends. Words and numbers may
  share a column. Strings in binary formats are read as cells of text are.
- A decimal comma, or a thousands separator, is understood if a whole column can be read in one way
  only: "1,5" (where commas do not separate cells), "1,234,567" or "1.234,5". "1,234" is refused.

Text has a header if no cell of its first row is a number, a date, a boolean or missing (but the
first of several may be blank, as over an index, and is called "1"), and if some column below holds
no words, or else no cell of the first row occurs again in its column; a single column of words has
one only if other words do occur again. A delimiter at the end of every row makes no column.

What differs in writing alone must not pass for a violation: `read_pair` matches columns by name,
gives both files the same types, and refuses what it cannot match.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import importlib
import io
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import checks
from dpassay._typing import AnyArray, BoolArray
from dpassay.errors import InvalidInput, MissingExtra, UnreadableFile
from dpassay.privacy.about import Origin

_TEXT = (".csv", ".tsv", ".txt")
_IPC = (".feather", ".arrow")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}

_MISSING = ("", "NA", "N/A", "null", "NULL", "None")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")

# Patterns of whole cells, for RE2 and for re.
_SPECIAL = "[+-]?(?i:nan|inf|infinity)"
_INTEGER = "[+-]?[0-9]+"
_NUMBER = rf"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|{_SPECIAL}"
_COMMA = "[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?"  # 1,5
_BY_COMMAS = r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?"  # 1,234.5
_BY_DOTS = r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]*)?"  # 1.234,5
_SPACED = "[+-]?[0-9][0-9.,eE+-]*([ \u00a0\u202f'’_]+[+-]?[0-9][0-9.,eE+-]*)+"  # 1 234
_SEPARATED = f"{_COMMA}|{_BY_COMMAS}|{_BY_DOTS}|{_SPACED}"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}.*"

_EXACT = 2**53  # below it every whole number is a float
_FEW = 20  # rows from which an order is no accident
_SNIFFED = 100  # rows that tell the delimiter, and cells that tell a type
_BLOCK = 1 << 24  # bytes of text parsed at a time; a row must fit


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds: one row an output, a column a coordinate.

    A column is an array of numbers, booleans or datetime64 if no value is missing, and otherwise an
    object array of Python values with None for missing. `names` is None where the file has none.
    """

    names: tuple[str, ...] | None
    columns: tuple[AnyArray, ...]
    origin: Origin


def read_table(path: str | Path) -> Table:
    """The table in one file; see the module's docstring for what its cells mean."""
    return _load(path).table()


def read_pair(
    p_path: str | Path,
    q_path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
) -> tuple[Table, Table]:
    """The tables in two files, with the same columns in the same order and of the same types.

    `columns` selects and orders, `drop` leaves out; columns without names are "1", "2", …. Columns
    are matched by name if both files have names, and by position otherwise. Refused are the same
    content twice, columns of one file only, columns of different kinds (numbers here, words there;
    a kind that only one file has is an outcome as long as it is less than half of the column), and,
    unless `columns` names them, columns that look like a row number, a time or an identifier.
    """
    wanted, unwanted = _listed("columns", columns), _listed("drop", drop)
    if wanted is not None and unwanted is not None:
        raise InvalidInput("give columns= or drop=, not both: what is not in columns is left out")
    if _same_file(p_path, q_path):
        raise UnreadableFile(
            f"{str(p_path)!r} and {str(q_path)!r} are the same file; an audit compares outputs on "
            "one input with outputs on its neighbour: give a file of each"
        )
    p, q = _load(p_path), _load(q_path)
    if p.sha256 == q.sha256:
        raise UnreadableFile(
            f"{str(p_path)!r} and {str(q_path)!r} have the same content, byte for byte; an audit "
            "compares outputs on one input with outputs on its neighbour: give a file of each"
        )
    if p.label != q.label:
        p, q = (replace(side, shown=side.label) for side in (p, q))
    p, q = _matched(*_selected(*_headed_alike(p, q), wanted, unwanted))
    if wanted is None:
        for side in (p, q):
            _refuse_index(side)
    return _alike(p, q)


# What a file holds, before it becomes a table.


@dataclass(frozen=True, eq=False)
class _Column:
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
            found[_KIND_OF_TYPE.get(sort, "objects")] += count
        return found


_KIND_OF_DTYPE = {"b": "booleans", "i": "numbers", "f": "numbers", "M": "dates"}
_KIND_OF_TYPE: dict[type, str] = {
    bool: "booleans",
    int: "numbers",
    float: "numbers",
    str: "words",
    bytes: "bytes",
    list: "lists",
    dict: "dictionaries",
}


@dataclass(frozen=True, eq=False)
class _Content:
    """A file that was read, or those of its columns that are used."""

    label: str  # without folders
    shown: str  # in messages
    size: int
    sha256: str
    modified: str
    rows: int
    called: tuple[str, ...]  # names, or positions from "1"
    named: bool
    columns: tuple[_Column, ...]
    first: tuple[str, ...] | None = None  # the first row of a text without a header
    again: Callable[[], _Content] | None = None  # reads that row as a header

    def take(self, wanted: Iterable[str]) -> _Content:
        """Some of the columns, in the order given."""
        called = tuple(wanted)
        columns = dict(zip(self.called, self.columns, strict=True))
        return replace(self, called=called, columns=tuple(columns[name] for name in called))

    def column(self, name: str) -> str:
        """A column in words."""
        return f"column {name!r}" if self.named else f"column {name}"

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


def _objects(values: Iterable[Any]) -> AnyArray:
    """An object array of values that may be sequences themselves."""
    listed = list(values)
    array: AnyArray = np.empty(len(listed), dtype=object)
    for k, value in enumerate(listed):
        array[k] = value
    return array


def _load(path: str | Path, header: bool | None = None) -> _Content:
    """Read a file once: what is hashed is what is read."""
    file = Path(path)
    shown = repr(str(path))
    compression = _COMPRESSED.get(file.suffix.lower())
    suffix = Path(file.stem).suffix.lower() if compression else file.suffix.lower()
    if file.is_dir():
        raise UnreadableFile(f"{shown} is a directory, not a file of outputs")
    if not file.exists():
        raise UnreadableFile(f"there is no file {shown}")
    if suffix == ".npz":
        raise UnreadableFile(f"{shown} may hold several arrays; save one as .npy")
    if suffix not in (*_TEXT, *_IPC, ".npy", ".parquet") or (compression and suffix not in _TEXT):
        raise UnreadableFile(
            f"{shown} ends in {file.suffix!r}; outputs are read from .npy, .csv or .parquet "
            "(also from .tsv, .txt, .csv.gz, .feather and .arrow)"
        )
    try:
        data, stat = file.read_bytes(), file.stat()
    except OSError as error:
        raise UnreadableFile(f"{shown} cannot be read: {error.strerror or error}") from None
    if not data:
        raise UnreadableFile(f"{shown} is empty")
    first: tuple[str, ...] | None = None
    if suffix in _TEXT:
        text = _decompressed(data, compression, shown) if compression else data
        names, columns, first = _read_text(text, suffix, header, shown)
    elif suffix == ".npy":
        names, columns = _read_npy(data, shown)
    else:
        names, columns = _read_arrow(data, suffix, shown)
    rows = columns[0].rows if columns else 0
    if rows == 0:
        but = ": a header alone" if suffix in _TEXT else ""
        raise UnreadableFile(f"{shown} holds no outputs{but}")
    if names is not None and (double := [n for n, count in Counter(names).items() if count > 1]):
        raise UnreadableFile(
            f"{shown} has more than one column {double[0]!r}; give every column a name of its own"
        )
    modified = datetime.datetime.fromtimestamp(stat.st_mtime, datetime.UTC)
    return _Content(
        label=file.name,
        shown=shown,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        modified=modified.isoformat(timespec="seconds"),
        rows=rows,
        called=names or tuple(str(k + 1) for k in range(len(columns))),
        named=names is not None,
        columns=columns,
        first=first,
        again=(lambda: _load(path, header=True)) if first is not None else None,
    )


_Read = tuple[tuple[str, ...] | None, tuple[_Column, ...]]


def _arrow(module: str, suffix: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(f"reading {suffix} files", "arrow") from None


def _decompressed(data: bytes, compression: str, shown: str) -> bytes:
    arrow = _arrow("pyarrow", ".csv")
    try:
        stream = arrow.input_stream(arrow.BufferReader(data), compression=compression)
        return bytes(stream.read())
    except Exception as error:  # pyarrow raises many kinds
        raise UnreadableFile(f"{shown} is not compressed as its name says: {error}") from None


# Binary formats


def _read_npy(data: bytes, shown: str) -> _Read:
    if data.startswith(b"PK"):
        raise UnreadableFile(
            f"{shown} is a .npz file, which may hold several arrays; save one as .npy"
        )
    if not data.startswith(b"\x93NUMPY"):
        raise UnreadableFile(f"{shown} is not a .npy file")
    try:
        array: AnyArray = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # whatever a broken header brings about
        if "Object arrays" in str(error):
            raise UnreadableFile(
                f"{shown} holds pickled Python objects, which are never loaded from a file; "
                "save numbers or strings, or use .csv or .parquet"
            ) from None
        raise UnreadableFile(f"{shown} is not a .npy file: {error}") from None
    names = array.dtype.names
    fields = [array] if names is None else [array[name] for name in names]
    if array.ndim not in (1, 2) or (names and any(field.ndim != 1 for field in fields)):
        raise UnreadableFile(
            f"{shown} holds an array of shape {array.shape}; outputs are numbers (n,) or rows (n, d)"
        )
    if array.ndim == 2:
        fields = [array[:, k] for k in range(array.shape[1])]
    columns = tuple(_of_numpy(field, f"{shown}, column {k + 1}") for k, field in enumerate(fields))
    return names, columns


def _of_numpy(array: AnyArray, where: str) -> _Column:
    match array.dtype.kind:
        case "b":
            return _Column(np.ascontiguousarray(array))
        case "i" | "u" | "f":
            return _Column(_number_array(array))
        case "m" | "M":
            missing = np.isnat(array)
            values = array[~missing]
            if array.dtype.kind == "m":
                values = _number_array(values / np.timedelta64(1, "s"))
            else:
                day = np.datetime_data(values.dtype)[0] in "YMWD"
                values = values.astype("datetime64[D]" if day else "datetime64[us]")
            return _Column(values, ~missing if missing.any() else None)
        case "U":
            return _of_text(_arrow("pyarrow", ".npy").array(array.tolist()), None, where)
        case "S":
            return _Column(array.astype(object))
        case _:
            raise UnreadableFile(
                f"{where} is of dtype {array.dtype}; save real numbers (a complex one as two "
                "columns), strings or dates"
            )


def _read_arrow(data: bytes, suffix: str, shown: str) -> _Read:
    arrow = _arrow("pyarrow", suffix)
    module = _arrow("pyarrow.parquet" if suffix == ".parquet" else "pyarrow.ipc", suffix)
    source = arrow.BufferReader(data)
    try:
        if suffix == ".parquet":
            table = module.ParquetFile(source).read()
        else:
            table = (module.open_file if data.startswith(b"ARROW1") else module.open_stream)(source)
            table = table.read_all()
            table.validate(full=True)
    except Exception as error:  # pyarrow raises many kinds
        raise UnreadableFile(f"{shown} is not a {suffix} file: {error}") from None
    names = tuple(map(str, table.column_names))
    try:
        return names, tuple(
            _of_arrow(column, f"{shown}, column {name!r}")
            for name, column in zip(names, table.columns, strict=True)
        )
    except (ArithmeticError, arrow.ArrowException) as error:
        raise UnreadableFile(f"{shown} cannot be read: {error}") from None


def _of_arrow(column: Any, where: str) -> _Column:
    arrow = _arrow("pyarrow", ".parquet")
    types = arrow.types
    kind = column.type
    if isinstance(kind, arrow.BaseExtensionType):
        kind = kind.storage_type
        column = arrow.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if str(kind) in ("string", "large_string", "string_view") or types.is_time(kind):
        text = column.cast(arrow.large_string()).fill_null("")
        if types.is_time(kind):  # 10:30:00.000000 is 10:30:00
            compute = _arrow("pyarrow.compute", ".parquet")
            text = compute.replace_substring_regex(text, r"\.0+$", "")
        return _of_text(text, None, where)
    present = column.is_valid().to_numpy() if column.null_count else None
    column = column.drop_null()
    if types.is_boolean(kind):
        return _Column(column.to_numpy(), present)
    if types.is_integer(kind) or types.is_floating(kind):
        return _Column(_number_array(column.to_numpy()), present)
    if types.is_decimal(kind):
        if kind.scale <= 0:
            return _Column(_integers(map(int, column.to_pylist())), present)
        return _Column(_number_array(column.cast(arrow.float64()).to_numpy()), present)
    if types.is_date(kind):
        return _Column(column.cast(arrow.date32()).to_numpy(), present)
    if types.is_timestamp(kind):
        return _Column(_microseconds(column), present)
    if types.is_duration(kind):
        seconds = column.to_numpy() / np.timedelta64(1, "s")
        return _Column(_number_array(seconds), present)
    return _Column(_objects(column.to_pylist()), present)


def _microseconds(column: Any) -> AnyArray:
    """Arrow's time stamps as datetime64[us] in UTC."""
    arrow = _arrow("pyarrow", ".parquet")
    array: AnyArray = column.cast(arrow.timestamp("us", column.type.tz), safe=False).to_numpy()
    return array


def _number_array(array: AnyArray) -> AnyArray:
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


def _integers(values: Iterable[int]) -> AnyArray:
    whole = _objects(values)
    try:
        return whole.astype(np.int64)
    except OverflowError:
        return whole


# Text


def _read_text(
    data: bytes, suffix: str, header: bool | None, shown: str
) -> tuple[tuple[str, ...] | None, tuple[_Column, ...], tuple[str, ...] | None]:
    """Names, columns, and the first row if it is no header."""
    if b"\0" in data[:_BLOCK]:
        raise UnreadableFile(f"{shown} is not a text file; save it as text in UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise UnreadableFile(f"{shown} is empty")
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"  # Arrow does not see a row alone without it
    delimiter, width = _sniffed(data, suffix, shown)
    table = _cells(data, delimiter, width, shown)
    last = table.column(width - 1)
    if width > 1 and last[0].as_py() == "" and last.unique().to_pylist() == [""]:
        table = table.remove_column(width - 1)  # rows end in a delimiter
    first = tuple(str(column[0].as_py()).strip() for column in table.columns)
    called = _names(first)

    def parsed(names: Sequence[str] | None, skip: int) -> tuple[_Column, ...]:
        return tuple(
            _of_text(
                column.slice(skip),
                delimiter,
                f"{shown}, column {repr(names[k]) if names else k + 1}",
            )
            for k, column in enumerate(table.columns)
        )

    if header is None and not _may_be_header(first):
        header = False
    if header is not False:
        body = parsed(called, 1)
        if header or _is_header(first, body):
            return called, body, None
    return None, parsed(None, 0), first


def _names(first: tuple[str, ...]) -> tuple[str, ...]:
    """The names in a header; numpy puts a # before it, and pandas nothing over an index."""
    head = first[0].removeprefix("#").strip() or "1"
    return (head, *first[1:])


def _may_be_header(first: tuple[str, ...]) -> bool:
    cells = first[1:] if len(first) > 1 and not first[0] else first
    not_names = re.compile(f"{_NUMBER}|{_SEPARATED}|{_DATE}")
    return not any(
        cell in (*_MISSING, *_TRUE, *_FALSE) or not_names.fullmatch(cell) for cell in cells
    )


def _is_header(first: tuple[str, ...], body: tuple[_Column, ...]) -> bool:
    """The rule in the module's docstring, for a first row of words."""
    kinds = [column.kinds for column in body]
    if any(not kind["words"] for kind in kinds):
        return True
    words = [[v for v in column.values.tolist() if isinstance(v, str)] for column in body]
    if any(cell in below for cell, below in zip(first, words, strict=True)):
        return False
    return len(body) > 1 or len(kinds[0]) > 1 or len(set(words[0])) < len(words[0])


def _rows(data: bytes, delimiter: str, shown: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their last line."""
    reader = csv.reader(
        io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline=""), delimiter=delimiter
    )
    try:
        for row in reader:
            yield reader.line_num, row
    except UnicodeDecodeError:
        raise UnreadableFile(f"{shown} is not a text file; save it as text in UTF-8") from None
    except csv.Error as error:
        raise UnreadableFile(f"{shown}, line {reader.line_num + 1}: {error}") from None


def _sniffed(data: bytes, suffix: str, shown: str) -> tuple[str, int]:
    """The delimiter, and how many cells the first row has.

    It is the first of tab, semicolon and comma that splits the rows at the top into equally many
    cells, or else splits the first row; .tsv is separated by tabs.
    """
    firsts: list[tuple[str, int]] = []
    for mark in "\t" if suffix == ".tsv" else "\t;,":
        head = itertools.islice(_rows(data, mark, shown), _SNIFFED)
        widths = [len(row) for _, row in head]
        if widths[0] > 1 and len(set(widths) - {0}) == 1:
            return mark, widths[0]
        firsts.append((mark, max(widths[0], 1)))
    return next((found for found in firsts if found[1] > 1), firsts[-1])


def _cells(data: bytes, delimiter: str, width: int, shown: str) -> Any:
    """All cells as text, the first row among them; blank lines at the end of several columns go."""
    arrow, reader = _arrow("pyarrow", ".csv"), _arrow("pyarrow.csv", ".csv")
    compute = _arrow("pyarrow.compute", ".csv")
    if width > 1 and data.endswith((b"\n\n", b"\n\r\n", b"\r\r")):
        data = data.rstrip(b"\r\n") + b"\n"
    try:
        table = reader.read_csv(
            arrow.BufferReader(data),
            read_options=reader.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK),
            parse_options=reader.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=b'"' in data,
                ignore_empty_lines=False,
            ),
            convert_options=reader.ConvertOptions(
                column_types={f"f{k}": arrow.string() for k in range(width)},
                strings_can_be_null=False,
            ),
        )
    except arrow.ArrowException as error:
        _refuse_uneven(data, delimiter, width, shown)
        if "UTF8" in str(error):
            raise UnreadableFile(f"{shown} is not a text file; save it as text in UTF-8") from None
        raise UnreadableFile(f"{shown} cannot be read: {error}") from None
    if width > 1:
        blank = compute.equal(table.column(0), "")
        for column in table.columns[1:]:
            if not compute.any(blank).as_py():
                break
            blank = compute.and_(blank, compute.equal(column, ""))
        else:
            if compute.any(blank).as_py():  # ",," is a row, a blank line is not
                _refuse_uneven(data, delimiter, width, shown)
    return table


def _refuse_uneven(data: bytes, delimiter: str, width: int, shown: str) -> None:
    for line, row in _rows(data, delimiter, shown):
        if len(row) != width and (row or width > 1):
            has = "is blank" if not row else f"has {_counted(len(row), 'cell')}"
            raise UnreadableFile(
                f"{shown}, line {line} {has}, the first row {_counted(width, 'cell')}; every output "
                "needs the same number (a cell that holds the delimiter goes into quotes)"
            )


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _of_text(cells: Any, delimiter: str | None, where: str) -> _Column:
    """A column of text cells, typed."""
    arrow, compute = _arrow("pyarrow", ".csv"), _arrow("pyarrow.compute", ".csv")
    numbers = _numbers(cells)
    if numbers is not None:
        return _Column(numbers)
    cells = compute.utf8_trim_whitespace(cells)
    present = compute.invert(compute.is_in(cells, arrow.array(_MISSING, cells.type)))
    cells = cells.filter(present)
    mask = np.asarray(present, dtype=bool)
    return _Column(_typed(cells, delimiter, where), None if mask.all() else mask)


def _typed(cells: Any, delimiter: str | None, where: str) -> AnyArray:
    """Cells with a value: numbers, booleans, dates, or objects if there are words among them."""
    arrow, compute = _arrow("pyarrow", ".csv"), _arrow("pyarrow.compute", ".csv")
    if len(cells) == 0:
        return _objects(())
    for read in (_numbers, _dates):
        found = read(cells)
        if found is not None:
            return found
    true, false = (
        np.asarray(compute.is_in(cells, arrow.array(written, cells.type)), dtype=bool)
        for written in (_TRUE, _FALSE)
    )
    if (true | false).all():
        return true
    number = _matches(cells, _NUMBER)
    plain = _without_separators(cells, number, delimiter, where)
    if plain is not None:
        found = _numbers(plain)
        if found is not None:
            return found
    mixed = np.array(cells.to_numpy(zero_copy_only=False))
    mixed[true], mixed[false] = True, False
    if number.any():
        mixed[number] = _numbers(cells.filter(arrow.array(number)))
    return mixed


def _matches(cells: Any, pattern: str) -> BoolArray:
    compute = _arrow("pyarrow.compute", ".csv")
    return np.asarray(compute.match_substring_regex(cells, f"^(?:{pattern})$"), dtype=bool)


def _cast(cells: Any, kind: Any) -> Any | None:
    """Cells of a type if all can be; failing is slow in Arrow, so that the first are tried alone."""
    try:
        cells.slice(0, _SNIFFED).cast(kind)
        return cells.cast(kind)
    except _arrow("pyarrow", ".csv").ArrowInvalid:
        return None


def _numbers(cells: Any) -> AnyArray | None:
    """Cells as numbers if all are."""
    arrow = _arrow("pyarrow", ".csv")
    floats = _cast(cells, arrow.float64())
    if floats is None:
        return None
    integers = _cast(cells, arrow.int64())
    if integers is not None:
        return np.asarray(integers)
    numbers = _number_array(np.asarray(floats))
    if numbers.dtype.kind == "f" and _matches(cells, _INTEGER).all():
        try:
            return _integers(map(int, cells.to_pylist()))
        except ValueError:  # thousands of digits
            return numbers
    return numbers


def _dates(cells: Any) -> AnyArray | None:
    """Cells as dates or times, if all are in ISO 8601."""
    arrow = _arrow("pyarrow", ".csv")
    days = _cast(cells, arrow.date32())
    if days is not None:
        return np.asarray(days)
    for zone, unit in itertools.product((None, "UTC"), ("us", "ns")):
        times = _cast(cells, arrow.timestamp(unit, zone))
        if times is not None:
            return _microseconds(times)
    return None


def _without_separators(
    cells: Any, number: BoolArray, delimiter: str | None, where: str
) -> Any | None:
    """Cells with decimal points and nothing else, None if there is nothing to rewrite.

    A reading must explain the whole column, and some cell must exclude the others.
    """
    compute = _arrow("pyarrow.compute", ".csv")
    odd = _matches(cells, _SEPARATED) & ~number
    if not odd.any():
        return None

    def reads(*patterns: str) -> bool:
        return bool(_matches(cells, "|".join((_SPECIAL, *patterns))).all())

    def drop(mark: str) -> Any:
        return compute.replace_substring(cells, mark, "")

    decimal = _matches(cells, _COMMA) & ~_matches(cells, _BY_COMMAS)
    if reads(_INTEGER, _COMMA) and decimal.any() and delimiter != ",":
        return compute.replace_substring(cells, ",", ".")
    if reads(_NUMBER, _BY_COMMAS) and _matches(cells, ".*,.*[,.].*").any():
        return drop(",")
    if reads(_INTEGER, _BY_DOTS, _COMMA) and _matches(cells, r".*\..*[.,].*").any():
        return compute.replace_substring(drop("."), ",", ".")
    if not (odd | number).all():  # next to words, 10.0.100.200 is one
        odd &= ~_matches(cells, "[0-9.]+")
        if not odd.any():
            return None
    k = int(np.flatnonzero(odd)[0])
    cell = cells[k].as_py()
    if _matches(cells.slice(k, 1), _SPACED)[0]:
        raise UnreadableFile(
            f"{where}: {checks.shown(cell)} is numbers with spaces or marks between them; write a "
            "number without (1234.5), and separate cells by commas, semicolons or tabs "
            "(np.savetxt(…, delimiter=','))"
        )
    raise UnreadableFile(
        f"{where}: {checks.shown(cell)} can be read as a decimal comma, as a thousands separator or "
        "as a word; write numbers with a decimal point and without separators, such as 1234.5"
    )


# Two files


def _listed(name: str, given: Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise InvalidInput(
            f"{name} must be a list of columns, got {checks.shown(given)}; write "
            f"{name}={[part.strip() for part in given.split(',')]}"
        )
    listed = [str(entry) for entry in given]
    if not listed:
        raise InvalidInput(f"{name} must name at least one column, got an empty list; leave it out")
    double = [entry for entry, count in Counter(listed).items() if count > 1]
    if double:
        raise InvalidInput(f"{name} names {double[0]!r} more than once; name every column once")
    return listed


def _same_file(p_path: str | Path, q_path: str | Path) -> bool:
    try:
        return os.path.samefile(p_path, q_path)
    except OSError:  # one is missing: said when it is read
        return False


def _headed_alike(p: _Content, q: _Content) -> tuple[_Content, _Content]:
    """A first row that is the other file's header is a header."""
    return _headed_as(p, q), _headed_as(q, p)


def _headed_as(one: _Content, other: _Content) -> _Content:
    if one.first and one.again and other.named and _names(one.first) == other.called:
        return replace(one.again(), shown=one.shown)
    return one


def _selected(
    p: _Content, q: _Content, wanted: list[str] | None, unwanted: list[str] | None
) -> tuple[_Content, _Content]:
    """Both files, each with the columns asked for."""
    sides = [p, q]
    aliases: dict[str, str] = {}
    if not (p.named and q.named):  # positions, but the names of one file are understood
        for k, side in enumerate(sides):
            places = tuple(str(place + 1) for place in range(len(side.called)))
            if side.named:
                aliases = dict(zip(side.called, places, strict=True))
            sides[k] = replace(side, called=places, named=False)
    if wanted is not None:
        wanted = [aliases.get(name, name) for name in wanted]
        for side in sides:
            if unknown := [name for name in wanted if name not in side.called]:
                raise InvalidInput(
                    f"columns names {unknown[0]!r}, which {side.shown} does not have; it has "
                    f"{_enumerated(side.called)}"
                )
        sides = [side.take(wanted) for side in sides]
    if unwanted is not None:
        gone = [aliases.get(name, name) for name in unwanted]
        if unknown := [n for n in gone if not any(n in side.called for side in sides)]:
            raise InvalidInput(
                f"drop names {unknown[0]!r}, which neither file has; {sides[0].shown} has "
                f"{_enumerated(sides[0].called)}"
            )
        sides = [side.take(n for n in side.called if n not in gone) for side in sides]
        for side in sides:
            if not side.called:
                raise InvalidInput(f"drop leaves no column of {side.shown}; drop fewer")
    return sides[0], sides[1]


def _matched(p: _Content, q: _Content) -> tuple[_Content, _Content]:
    """Both files with the columns of the first, in its order."""
    if not p.named:
        if len(p.called) != len(q.called):
            raise UnreadableFile(
                f"{p.shown} has {_counted(len(p.called), 'column')} and {q.shown} has "
                f"{len(q.called)}; outputs on both inputs need the same: name those in both with "
                "columns=['1', …] (--columns 1,…)"
            )
        return p, q
    shared = set(p.called) & set(q.called)
    both = [name for name in p.called if name in shared]
    odd = [
        (one, [name for name in one.called if name not in shared], other)
        for one, other in ((p, q), (q, p))
    ]
    said = [
        f"{one.shown} has {_enumerated(only)}, which {other.shown} does not have"
        for one, only, other in odd
        if only
    ]
    if said:
        remedy = (
            f"use what both have, with {_option('drop', [n for _, only, _ in odd for n in only])} or "
            f"{_option('columns', both)}"
            if both
            else "give the same outputs the same name in both files"
        )
        raise UnreadableFile(f"{', and '.join(said)}; {remedy}")
    return p, q.take(p.called)


def _enumerated(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    noun = "the column " if len(names) == 1 else "the columns "
    return noun + ", ".join(repr(name) for name in names[:most]) + more


def _option(name: str, values: Sequence[str]) -> str:
    """An argument as Python and as the command line write it."""
    few = list(values[:8])
    listed = ", ".join(map(repr, few)) + (", …" if len(values) > 8 else "")
    return f"{name}=[{listed}] (--{name} {','.join(few)}{',…' if len(values) > 8 else ''})"


def _refuse_index(side: _Content) -> None:
    """Row numbers, times and identifiers tell any two files apart."""
    if len(side.called) < 2 or side.rows < _FEW:
        return
    for name, column in zip(side.called, side.columns, strict=True):
        if why := _index_like(column):
            rest = [other for other in side.called if other != name]
            raise UnreadableFile(
                f"{side.column(name)} of {side.shown} {why}. It tells any two files apart, whatever "
                "the mechanism does, and would look like a violation; leave it out with "
                f"{_option('drop', [name])}, or name the columns that are outputs with "
                f"{_option('columns', rest)}"
            )


def _index_like(column: _Column) -> str:
    """Why a column is no output, if so."""
    values = column.values
    if len(values) < _FEW:
        return ""
    kind, n = column.kinds.most_common(1)[0]
    if n < len(values):  # what else there is does not hide it
        values = _objects(v for v in values if _KIND_OF_TYPE.get(type(v)) == kind)
    if n < _FEW:
        return ""
    if kind in ("words", "bytes"):
        return (
            f"holds {kind} that are all different, as identifiers are" if _different(values) else ""
        )
    if kind not in ("numbers", "dates"):
        return ""
    before, after = values[:-1], values[1:]
    for way, holds in (("rises", after > before), ("falls", after < before)):
        if np.all(holds):
            return f"{way} from row to row, as a row number or a time stamp does"
    if kind == "dates":
        if np.any(after != before) and (np.all(after >= before) or np.all(after <= before)):
            return "holds dates in order, as a time stamp does"
        return (
            "holds dates that are all different, as time stamps are" if _different(values) else ""
        )
    whole = values.dtype.kind != "f" and not _has_floats(_Column(values))
    if whole and int(values.max()) - int(values.min()) < 2 * n and _different(values):
        return "holds whole numbers without repetition and nearly without gaps, as row numbers are"
    return ""


def _different(values: AnyArray) -> bool:
    if values.dtype.kind == "O":
        return len(set(values.tolist())) == len(values)
    return len(np.unique(values)) == len(values)


def _alike(p: _Content, q: _Content) -> tuple[Table, Table]:
    """Tables whose columns have the same types."""
    pairs = [
        _aligned(a, b, p.column(name), p.shown, q.shown)
        for name, a, b in zip(p.called, p.columns, q.columns, strict=True)
    ]
    objects = [
        any(c.present is not None or c.values.dtype.kind == "O" for c in pair) for pair in pairs
    ]
    return (
        replace(p, columns=tuple(a for a, _ in pairs)).table(objects),
        replace(q, columns=tuple(b for _, b in pairs)).table(objects),
    )


def _aligned(
    a: _Column, b: _Column, name: str, p_shown: str, q_shown: str
) -> tuple[_Column, _Column]:
    """A column of both files with the same types, or a refusal."""
    a, b = _zero_one(a, b), _zero_one(b, a)
    _refuse_kinds(a, b, name, p_shown, q_shown)
    kinds = a.values.dtype.kind + b.values.dtype.kind
    if kinds == "ff":  # what was stored in fewer digits is compared in fewer digits
        narrow = min(a.values.dtype, b.values.dtype, key=lambda dtype: dtype.itemsize)
        return _of_type(a, narrow), _of_type(b, narrow)
    if kinds == "MM":
        finer = np.promote_types(a.values.dtype, b.values.dtype)
        return _of_type(a, finer), _of_type(b, finer)
    if _has_floats(a) != _has_floats(b):
        return _as_floats(a), _as_floats(b)
    return a, b


def _zero_one(one: _Column, other: _Column) -> _Column:
    """Booleans as 0 and 1 where the other file writes them so."""
    numbers = other.values.dtype.kind in "if" and bool(np.all(np.isin(other.values, (0, 1))))
    boolean = one.values.dtype.kind == "b"
    return replace(one, values=one.values.astype(np.int64)) if boolean and numbers else one


def _refuse_kinds(a: _Column, b: _Column, name: str, p_shown: str, q_shown: str) -> None:
    """A kind that one file alone has is an outcome if it is rare, and else a way of writing."""
    kinds = (a.kinds, b.kinds)
    odd = any(
        one and other and any(2 * one[kind] >= one.total() for kind in one if kind not in other)
        for one, other in (kinds, kinds[::-1])
    )
    odd |= (not kinds[0] and not b.missing) or (not kinds[1] and not a.missing)
    if odd:
        here, there = (
            " and ".join(kind for kind, _ in found.most_common()) or "nothing" for found in kinds
        )
        raise UnreadableFile(
            f"{name} holds {here} in {p_shown} and {there} in {q_shown}: a difference in writing "
            "would pass for a violation; write both files alike, or, if the outputs do differ so, "
            "give them to from_samples as arrays"
        )


def _of_type(column: _Column, dtype: Any) -> _Column:
    with np.errstate(over="ignore"):  # beyond what fewer digits hold is infinite
        return replace(column, values=column.values.astype(dtype, copy=False))


def _has_floats(column: _Column) -> bool:
    if column.values.dtype.kind == "O":
        return any(type(value) is float for value in column.values.tolist())
    return column.values.dtype.kind == "f"


def _as_floats(column: _Column) -> _Column:
    """A column whose numbers are all floats."""
    if column.values.dtype.kind == "i":
        return _of_type(column, np.float64)
    if column.values.dtype.kind != "O":
        return column
    return replace(
        column, values=_objects(_as_float(v) if type(v) is int else v for v in column.values)
    )


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
