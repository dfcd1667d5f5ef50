"""A file of outputs as columns, whatever its format; everything wrong with it has a sentence."""

from __future__ import annotations

import datetime
import hashlib
import io
import stat
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray
from dpassay.errors import UnreadableFile
from dpassay.sampling.columns import (
    Column,
    Content,
    arrow_source,
    as_objects,
    integer_array,
    microseconds,
    number_array,
    pyarrow_module,
)
from dpassay.sampling.json_lines import read_json_lines
from dpassay.sampling.text_tables import of_text, read_text

_TEXT = (".csv", ".tsv", ".txt")
_IPC = (".feather", ".arrow")
_LINES = (".jsonl", ".ndjson")
#: The most bytes that are read of a file unless more are asked for, and read at a time.
MAX_BYTES, _PART = 1 << 31, 1 << 24
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@dataclass(frozen=True)
class Limit:
    """The most bytes that are read of a file, as it is and decompressed."""

    most: int

    def read(self, stream: Any, shown: str) -> bytes:
        """All that a stream holds; refused as soon as that is too much."""
        parts, size = [], 0
        while part := stream.read(_PART):
            size += len(part)
            self.check(size, shown)
            parts.append(part)
        return b"".join(parts)

    def check(self, size: int, shown: str) -> None:
        """Refuse more than that."""
        if size > self.most:
            raise UnreadableFile(
                f"{shown} holds more than {self.most:,} bytes, decompressed if it is compressed, and no "
                f"more are read: give a smaller file, or max_bytes={2 * size} (--max-bytes) if there is "
                "memory for several times that"
            )


def load(path: str | Path, max_bytes: int | None = None) -> Content:
    """Read a file once: what is hashed is what is read."""
    limit = Limit(MAX_BYTES if max_bytes is None else checks.whole("max_bytes", max_bytes))
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
    written = suffix in (*_TEXT, *_LINES)
    if not (written or suffix in (*_IPC, ".npy", ".parquet")) or (compression and not written):
        raise UnreadableFile(
            f"{shown} ends in {file.suffix!r}; outputs are read from .npy, .csv or .parquet "
            "(also from .tsv, .txt, .jsonl, .csv.gz, .feather and .arrow)"
        )
    try:
        about = file.stat()
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISFIFO(about.st_mode)):
            raise UnreadableFile(
                f"{shown} is neither a file nor a pipe but a device: give a file of outputs"
            )
        with file.open("rb") as stream:
            data = limit.read(stream, shown)
    except OSError as error:
        raise UnreadableFile(f"{shown} cannot be read: {error.strerror or error}") from None
    if not data:
        raise UnreadableFile(f"{shown} is empty")
    text = _decompressed(data, compression, shown, limit) if compression else data
    modified = datetime.datetime.fromtimestamp(about.st_mtime, datetime.UTC)
    return _content(file.name, shown, suffix, data, text, limit, modified)


def _content(
    label: str,
    shown: str,
    suffix: str,
    data: bytes,
    text: bytes,
    limit: Limit,
    modified: datetime.datetime,
    header: bool | None = None,
) -> Content:
    """What the bytes of a file hold."""
    try:
        names, columns, first = _parsed(data, text, suffix, header, shown, limit)
    except UnreadableFile:
        raise
    except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as error:
        raise UnreadableFile(f"{shown} cannot be read: {error}") from error
    rows = columns[0].rows if columns else 0
    if rows == 0:
        but = ": a header alone" if suffix in _TEXT else ""
        raise UnreadableFile(f"{shown} holds no outputs{but}")
    if names is not None and (double := [n for n, count in Counter(names).items() if count > 1]):
        raise UnreadableFile(
            f"{shown} has more than one column {double[0]!r}; give every column a name of its own"
        )
    again = partial(_content, label, shown, suffix, data, text, limit, modified, header=True)
    return Content(
        label=label,
        shown=shown,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        modified=modified.isoformat(timespec="seconds"),
        rows=rows,
        called=names or tuple(str(k + 1) for k in range(len(columns))),
        named=names is not None,
        columns=columns,
        first=first,
        again=again if first is not None else None,
    )


_Read = tuple[tuple[str, ...] | None, tuple[Column, ...]]


def _parsed(
    data: bytes, text: bytes, suffix: str, header: bool | None, shown: str, limit: Limit
) -> tuple[tuple[str, ...] | None, tuple[Column, ...], tuple[str, ...] | None]:
    """Names, columns, and the first row of text where it may be a header."""
    if suffix in _TEXT:
        return read_text(text, suffix, header, shown)
    if suffix in _LINES:
        return *read_json_lines(text, shown), None
    if suffix == ".npy":
        return *_read_npy(data, shown), None
    return *_read_arrow(data, suffix, shown, limit), None


def _decompressed(data: bytes, compression: str, shown: str, limit: Limit) -> bytes:
    arrow = pyarrow_module("pyarrow", ".csv")
    try:
        stream = arrow.input_stream(arrow_source(data, ".csv"), compression=compression)
        return limit.read(stream, shown)
    except UnreadableFile:
        raise
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
    if array.ndim == 2 and array.shape[0] == 1 < array.shape[1]:
        raise UnreadableFile(
            f"{shown} holds an array of shape {array.shape}, one output of {array.shape[1]:,} numbers; a "
            "row is an output: if each number is one, save array.ravel()"
        )
    if array.ndim == 2:
        fields = [array[:, k] for k in range(array.shape[1])]
    columns = tuple(_of_numpy(field, f"{shown}, column {k + 1}") for k, field in enumerate(fields))
    return names, columns


def _of_numpy(array: AnyArray, where: str) -> Column:
    match array.dtype.kind:
        case "b":
            return Column(np.ascontiguousarray(array))
        case "i" | "u" | "f":
            return Column(number_array(array))
        case "m" | "M":
            missing = np.isnat(array)
            values = array[~missing]
            if array.dtype.kind == "m":
                values = number_array(values / np.timedelta64(1, "s"))
            else:
                day = np.datetime_data(values.dtype)[0] in "YMWD"
                values = values.astype("datetime64[D]" if day else "datetime64[us]")
            return Column(values, ~missing if missing.any() else None)
        case "U":
            return of_text(pyarrow_module("pyarrow", ".npy").array(array.tolist()), None, where)
        case "S":
            return Column(array.astype(object))
        case _:
            raise UnreadableFile(
                f"{where} is of dtype {array.dtype}; save real numbers (a complex one as two "
                "columns), strings or dates"
            )


def _read_arrow(data: bytes, suffix: str, shown: str, limit: Limit) -> _Read:
    arrow = pyarrow_module("pyarrow", suffix)
    module = pyarrow_module("pyarrow.parquet" if suffix == ".parquet" else "pyarrow.ipc", suffix)
    source = arrow_source(data, suffix)
    try:
        if suffix == ".parquet":
            file = module.ParquetFile(source)
            limit.check(_parquet_bytes(file.metadata), shown)
            table = file.read()
        else:
            batches = (module.open_file if data.startswith(b"ARROW1") else module.open_stream)(
                source
            )
            table = _all_batches(arrow, batches, shown, limit)
            table.validate(full=True)
    except UnreadableFile:
        raise
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


def _parquet_bytes(metadata: Any) -> int:
    """The least that the content of a Parquet file takes in memory."""
    groups = range(metadata.num_row_groups)
    stored = sum(metadata.row_group(k).total_byte_size for k in groups)
    return max(int(stored), int(metadata.num_rows * metadata.num_columns))


def _all_batches(arrow: Any, source: Any, shown: str, limit: Limit) -> Any:
    """The table of an Arrow file or stream, as long as it stays within the limit."""
    indexed = hasattr(source, "num_record_batches")
    each = map(source.get_batch, range(source.num_record_batches)) if indexed else source
    found, size = [], 0
    for batch in each:
        size += batch.nbytes
        limit.check(size, shown)
        found.append(batch)
    return arrow.Table.from_batches(found, source.schema)


def _of_arrow(column: Any, where: str) -> Column:
    arrow = pyarrow_module("pyarrow", ".parquet")
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
            compute = pyarrow_module("pyarrow.compute", ".parquet")
            text = compute.replace_substring_regex(text, r"\.0+$", "")
        return of_text(text, None, where)
    present = column.is_valid().to_numpy() if column.null_count else None
    column = column.drop_null()
    if types.is_boolean(kind):
        return Column(column.to_numpy(), present)
    if types.is_integer(kind) or types.is_floating(kind):
        return Column(number_array(column.to_numpy()), present)
    if types.is_decimal(kind):
        if kind.scale <= 0:
            return Column(integer_array(map(int, column.to_pylist())), present)
        return Column(number_array(column.cast(arrow.float64()).to_numpy()), present)
    if types.is_date(kind):
        return Column(column.cast(arrow.date32()).to_numpy(), present)
    if types.is_timestamp(kind):
        return Column(microseconds(column), present)
    if types.is_duration(kind):
        seconds = column.to_numpy() / np.timedelta64(1, "s")
        return Column(number_array(seconds), present)
    return Column(as_objects(column.to_pylist()), present)
