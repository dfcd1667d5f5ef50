"""Readers of files of outputs: text, JSON lines, Parquet, Feather and Arrow, .npy. Arrow parses them."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray
from dpassay.errors import UnreadableFile
from dpassay.privacy.provenance import Origin
from dpassay.sampling.columns import (
    ABSENT,
    Column,
    Content,
    Unreadable,
    arrow_source,
    as_objects,
    integer_array,
    microseconds,
    number_array,
    of_array,
    pyarrow_for,
    read_columns,
    repeated,
)
from dpassay.sampling.text_tables import (
    NO_TEXT,
    PLAIN,
    Marks,
    TextTable,
    header_of_values,
    of_text,
    split_text,
)

_TEXT = (".csv", ".tsv", ".txt")
_LINES = (".jsonl", ".ndjson")
_SHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
_SHEET = (
    "is a spreadsheet, which is not read: save the sheet with the outputs as CSV (in Excel: File, Save "
    "As, CSV UTF-8; in LibreOffice: File, Save As, Text CSV) and give that file"
)
#: How files are given of which each is one output.
TABLES_OF_FILES = (
    "dp.from_samples([pandas.read_csv(f) for f in first], [pandas.read_csv(f) for f in second])"
)
#: What of pyarrow reads a format.
_MODULES = {".parquet": "parquet", ".feather": "ipc", ".arrow": "ipc"}
#: The most bytes that are read of a file unless more are asked for, and read at a time.
MAX_BYTES, _PART = 1 << 31, 1 << 24
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}

_Names = tuple[str, ...] | None
_Read = tuple[_Names, tuple[Column, ...]]


@dataclass(frozen=True)
class Limit:
    """The most bytes that are read of a file, as it is and decompressed."""

    most: int

    def read(self, stream: Any) -> bytes:
        """All that a stream holds; refused as soon as that is too much."""
        parts, size = [], 0
        while part := stream.read(_PART):
            size += len(part)
            self.check(size)
            parts.append(part)
        return b"".join(parts)

    def check(self, size: int) -> None:
        if size > self.most:
            raise Unreadable(
                f"holds more than {self.most:,} bytes, decompressed if it is compressed, and no more are "
                f"read: give a smaller file, or max_bytes={2 * size} (--max-bytes) if there is memory "
                "for several times that"
            )


def load(
    *paths: str | Path, max_bytes: int | None = None, marks: Marks = PLAIN
) -> tuple[Content, ...]:
    """The columns of files, and what they are; a file that cannot be used is an UnreadableFile."""
    limit = Limit(MAX_BYTES if max_bytes is None else checks.whole("max_bytes", max_bytes))
    opened, contents = [], []
    for path in paths:
        with _refused(path):
            opened.append(_opened(Path(path), limit, marks))
    texts = [found for _, found, _ in opened if isinstance(found, TextTable)]
    header = len(texts) == 2 and header_of_values(*texts)
    for path, (origin, found, is_json) in zip(paths, opened, strict=True):
        with _refused(path):
            names, columns = found.read(header) if isinstance(found, TextTable) else found
            contents.append(_content(repr(str(path)), origin, names, columns, is_json))
    return tuple(contents)


@contextlib.contextmanager
def _refused(path: str | Path) -> Iterator[None]:
    """What makes a file unusable, as an UnreadableFile that names it."""
    shown = repr(str(path))
    try:
        yield
    except Unreadable as error:
        raise UnreadableFile(f"{shown}{error}") from None
    except OSError as error:
        raise UnreadableFile(f"{shown} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError) as error:
        raise UnreadableFile(f"{shown} cannot be read: {error}") from error


def _opened(file: Path, limit: Limit, marks: Marks) -> tuple[Origin, TextTable | _Read, bool]:
    """What a file is and holds, and whether it is JSON. Read it once: what is hashed is what is read."""
    compression = _COMPRESSED.get(file.suffix.lower())
    suffix = Path(file.stem).suffix.lower() if compression else file.suffix.lower()
    if file.is_dir():
        raise Unreadable(
            "is a directory, not a file of outputs. Where each file in it is one output, such as a "
            f"synthetic table, read them in Python: {TABLES_OF_FILES}"
        )
    if not file.exists():
        raise Unreadable("does not exist")
    if suffix == ".npz":
        raise Unreadable("may hold several arrays; save one as .npy")
    if suffix in _SHEETS:
        raise Unreadable(_SHEET)
    if suffix not in _TEXT + _LINES and (compression or suffix not in (*_MODULES, ".npy")):
        raise Unreadable(
            f"ends in {file.suffix!r}; outputs are read from .npy, .csv or .parquet (also from .tsv, "
            ".txt, .jsonl, .csv.gz, .feather and .arrow)"
        )
    about = file.stat()
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISFIFO(about.st_mode)):
        raise Unreadable("is neither a file nor a pipe but a device: give a file of outputs")
    with file.open("rb") as stream:
        data = limit.read(stream)
    if not data:
        raise Unreadable("is empty")
    found = _parsed(data, suffix, compression, limit, marks)
    modified = datetime.datetime.fromtimestamp(about.st_mtime, datetime.UTC)
    origin = Origin(
        file=file.name,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        rows=0,
        columns=(),
        missing=0,
        modified=modified.isoformat(timespec="seconds"),
        reading=marks.options,
        delimiter=found.delimiter if isinstance(found, TextTable) else "",
    )
    return origin, found, suffix in _LINES


def _content(
    shown: str, origin: Origin, names: _Names, columns: tuple[Column, ...], is_json: bool
) -> Content:
    """The columns of a file; refuse one without outputs, and names that occur twice."""
    rows = columns[0].rows if columns else 0
    if rows == 0:
        raise Unreadable("holds no outputs" + ": a header alone" * bool(origin.delimiter))
    if names is not None and (double := repeated(names)) is not None:
        raise Unreadable(
            f"has more than one column {double!r}; give every column a name of its own"
        )
    called = names or tuple(str(k + 1) for k in range(len(columns)))
    origin = replace(origin, rows=rows, columns=called)
    return Content(shown, origin, called, names is not None, columns, is_json)


def _parsed(
    data: bytes, suffix: str, compression: str | None, limit: Limit, marks: Marks
) -> TextTable | _Read:
    """Names, or None, and columns; of text, its cells."""
    if suffix == ".npy":
        return _read_npy(data, marks)
    pa = pyarrow_for(f"reading {suffix} files", _MODULES.get(suffix, "csv"))
    if suffix in _MODULES:
        return _read_arrow(pa, data, suffix, limit, marks)
    if compression:
        with _explained("is not compressed as its name says"):
            data = limit.read(pa.input_stream(arrow_source(pa, data), compression=compression))
    if suffix in _LINES:
        return _read_json_lines(pa, data, marks)
    if data.startswith((b"PK\3\4", b"\xd0\xcf\x11\xe0")):  # .xlsx or .xls under another name
        raise Unreadable(_SHEET)
    return split_text(data, suffix, marks)


@contextlib.contextmanager
def _explained(why: str) -> Iterator[None]:
    """Whatever pyarrow and NumPy raise for a broken file, which is many kinds, as Unreadable."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(f"{why}: {error}") from None


# --- .npy


def _read_npy(data: bytes, marks: Marks) -> _Read:
    if data.startswith(b"PK"):
        raise Unreadable("is a .npz file, which may hold several arrays; save one as .npy")
    if not data.startswith(b"\x93NUMPY"):
        raise Unreadable("is not a .npy file")
    try:
        array: AnyArray = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # whatever a broken header brings about
        why = f"is not a .npy file: {error}"
        if "Object arrays" in str(error):
            why = (
                "holds pickled Python objects, which are never loaded from a file; save numbers or "
                "strings, or use .csv or .parquet"
            )
        raise Unreadable(why) from None
    names = array.dtype.names
    fields = [array] if names is None else [array[name] for name in names]
    if array.ndim not in (1, 2) or (names and any(field.ndim != 1 for field in fields)):
        raise Unreadable(
            f"holds an array of shape {array.shape}; outputs are numbers (n,) or rows (n, d)"
        )
    if array.ndim == 2 and array.shape[0] == 1 < array.shape[1]:
        raise Unreadable(
            f"holds an array of shape {array.shape}, one output of {array.shape[1]:,} numbers; a row is "
            "an output: if each number is one, save array.ravel()"
        )
    if array.ndim == 2:
        fields = [array[:, k] for k in range(array.shape[1])]
    return names, read_columns(names, partial(_of_numpy, marks=marks), fields)


def _of_numpy(array: AnyArray, marks: Marks) -> Column:
    match array.dtype.kind:
        case "U":
            return of_text(pyarrow_for("reading text").array(array.tolist()), marks)
        case "M":
            day = np.datetime_data(array.dtype)[0] in "YMWD"
            return of_array(array.astype("datetime64[D]" if day else "datetime64[us]"))
        case "m":
            return of_array(array.astype("timedelta64[us]"))
        case "b" | "i" | "u" | "f" | "S":
            return of_array(array)
    raise Unreadable(
        f"is of dtype {array.dtype}; save real numbers (a complex one as two columns), strings or dates"
    )


# --- Parquet, Feather and Arrow


def _read_arrow(pa: Any, data: bytes, suffix: str, limit: Limit, marks: Marks) -> _Read:
    source = arrow_source(pa, data)
    with _explained(f"is not a {suffix} file"):
        if suffix == ".parquet":
            file = pa.parquet.ParquetFile(source)
            about = file.metadata
            groups = map(about.row_group, range(about.num_row_groups))
            stored = sum(group.total_byte_size for group in groups)
            limit.check(max(stored, about.num_rows * about.num_columns))  # at least so many
            table = file.read()
        else:
            is_file = data.startswith(b"ARROW1")
            reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
            each = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            batches, size = [], 0
            for batch in each:
                size += batch.nbytes
                limit.check(size)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
            table.validate(full=True)
    names = tuple(map(str, table.column_names))
    return names, read_columns(names, partial(_of_arrow, pa, marks=marks), table.columns)


def _of_arrow(pa: Any, column: Any, marks: Marks) -> Column:
    """A column of Arrow; types that NumPy lacks become Python objects."""
    types, kind = pa.types, column.type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if str(kind) in ("string", "large_string", "string_view"):
        cells = column.cast(pa.large_string())
        if cells.null_count and pa.compute.any(pa.compute.equal(cells, "")).as_py():
            raise Unreadable(_one_output(None, ""))
        return of_text(cells.fill_null(""), marks)
    present = column.is_valid().to_numpy() if column.null_count else None
    column = column.drop_null()
    if types.is_boolean(kind):
        values = column.to_numpy()
    elif types.is_integer(kind) or types.is_floating(kind):
        values = number_array(column.to_numpy())
    elif types.is_decimal(kind) and kind.scale <= 0:
        values = integer_array(map(int, column.to_pylist()))
    elif types.is_decimal(kind):
        values = number_array(column.cast(pa.float64()).to_numpy())
    elif types.is_date(kind):
        values = column.cast(pa.date32()).to_numpy()
    elif types.is_timestamp(kind):
        values = microseconds(pa, column)
    else:
        values = as_objects(column.to_pylist())
    return Column(values, present)


# --- JSON lines: an output a line, an object of named cells, a list of cells, or a cell alone


def _read_json_lines(pa: Any, data: bytes, marks: Marks) -> _Read:
    """Cells are typed as those of text are."""
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise Unreadable(NO_TEXT) from None
    rows: list[Any] = []
    for k, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = checks.read_json(line)
            except ValueError as error:
                raise Unreadable(
                    f"is no JSON: {error}; write an output a line", f"line {k}"
                ) from None
            rows.append(row if isinstance(row, (dict, list)) else [row])
    if not rows:
        raise Unreadable("is empty")
    names: tuple[str, ...] | None = None
    if {type(row) for row in rows} == {dict}:
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        rows = [[row.get(name, ABSENT) for name in names] for row in rows]
    elif any(type(row) is dict or len(row) != len(rows[0]) for row in rows):
        raise Unreadable(
            "has lines of different forms; every output needs the same: an object of the same names, a "
            "list of as many cells, or a cell"
        )

    def read(cells: tuple[Any, ...]) -> Column:
        texts = [_json_text(cell, marks) for cell in cells]
        seen: dict[str, Any] = {}
        for text, cell in zip(texts, cells, strict=True):
            other = seen.setdefault(text, cell) if cell is not ABSENT else cell
            if isinstance(other, str) != isinstance(cell, str):
                raise Unreadable(_one_output(other, cell))
        column = of_text(pa.array(texts, pa.string()), marks)
        lack = np.array([cell is ABSENT for cell in cells])
        return replace(column, absent=lack if lack.any() else None)

    return names, read_columns(names, read, zip(*rows, strict=True))


def _one_output(one: Any, other: Any) -> str:
    """Why two cells of a column are refused that would be read as one."""
    said = " and ".join(json.dumps(cell, ensure_ascii=False) for cell in (one, other))
    return (
        f"holds {said}, which are read as one output and may be two; write them alike, or another word "
        "for one of them"
    )


def _json_text(cell: Any, marks: Marks) -> str:
    """A cell of JSON as a file of text would hold it."""
    match cell:
        case _ if cell is None or cell is ABSENT:
            return ""
        case bool():
            return "true" if cell else "false"
        case int() | float():
            return repr(cell).replace(".", marks.decimal)
        case str():
            try:
                cell.encode()
            except UnicodeEncodeError:
                why = f"holds {checks.shown(cell)}, half of a pair of surrogates, which is no text"
                raise Unreadable(why) from None
            return cell
    raise Unreadable(
        f"holds {checks.shown(cell)}, a nested value; a cell is a number, a word, true, false or null. "
        'Write {"a.b": 1} in place of {"a": {"b": 1}}, or pass lists of dictionaries to from_samples'
    )
