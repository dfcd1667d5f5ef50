"""Files of outputs: .npy (never pickled), .csv with or without a header, .parquet."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import checks
from dpassay._typing import AnyArray
from dpassay.errors import MissingExtra, UnreadableFile


def read_outputs(path: str | Path) -> AnyArray:
    """One output a row; a single column gives numbers (n,), several give vectors (n, d)."""
    file = Path(path)
    if not file.exists():
        raise UnreadableFile(f"there is no file {str(path)!r}")
    if file.is_dir():
        raise UnreadableFile(f"{str(path)!r} is a directory, not a file of outputs")
    if file.stat().st_size == 0:
        raise UnreadableFile(f"{str(path)!r} is empty")
    match file.suffix.lower():
        case ".npy":
            return _read_npy(file)
        case ".csv" | ".txt" | ".tsv":
            return _read_csv(file)
        case ".parquet":
            return _read_parquet(file)
        case suffix:
            raise UnreadableFile(
                f"{str(path)!r} ends in {suffix!r}; outputs are read from .npy, .csv or .parquet"
            )


def _read_npy(file: Path) -> AnyArray:
    try:
        array: AnyArray = np.load(file, allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise UnreadableFile(
                f"{str(file)!r} holds pickled Python objects, which are never loaded from a file; "
                "save numbers or strings, or use .csv or .parquet"
            ) from None
        raise UnreadableFile(f"{str(file)!r} is not a .npy file: {error}") from None
    except (OSError, EOFError) as error:
        raise UnreadableFile(f"{str(file)!r} cannot be read: {error}") from None
    if isinstance(array, np.lib.npyio.NpzFile):
        raise UnreadableFile(f"{str(file)!r} holds several arrays; save one as .npy")
    return _checked(array, file)


def _read_csv(file: Path) -> AnyArray:
    try:
        with file.open(newline="", encoding="utf-8-sig") as handle:
            sample = handle.read(1 << 16)
            delimiter = next((mark for mark in "\t;," if mark in sample), ",")
            handle.seek(0)
            head = next(csv.reader(handle, delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise UnreadableFile(f"{str(file)!r} is not a text file") from None
    header = not all(_is_number(cell) for cell in head)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no data: said below in our own words
            array = np.loadtxt(
                file,
                delimiter=delimiter,
                skiprows=int(header),
                ndmin=2,
                comments=None,
                encoding="utf-8-sig",
            )
    except ValueError as error:
        text = str(error)
        return _read_words(file, delimiter, header, text)
    if array.size and np.all(np.abs(array) < 2**53) and np.all(array == np.floor(array)):
        array = array.astype(np.int64)  # text does not tell 1 from 1.0: whole numbers are integers
    return _checked(array[:, 0] if array.shape[1] == 1 else array, file)


def _read_words(file: Path, delimiter: str, header: bool, why: str) -> AnyArray:
    """A single column of words is a file of string outputs; anything else is a mistake."""
    with file.open(newline="", encoding="utf-8-sig") as handle:
        rows = list(csv.reader(handle, delimiter=delimiter))
    widths = {len(row) for row in rows if row}
    cells = [row[0] for row in rows if row]
    if widths == {1} and not any(_is_number(cell) for cell in cells):
        return _checked(np.array(cells), file)
    if len(widths) > 1:
        raise UnreadableFile(
            f"{str(file)!r} has rows of {min(widths)} to {max(widths)} columns; every output needs "
            "the same number"
        )
    line, cell = next(
        (
            (number, cell)
            for number, row in enumerate(rows, start=1)
            for cell in row
            if number > int(header) and not _is_number(cell)
        ),
        (0, why),
    )
    raise UnreadableFile(
        f"{str(file)!r}, line {line}: {checks.shown(cell)} is not a number; a file holds numbers, "
        "or one column of words alone"
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_parquet(file: Path) -> AnyArray:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("reading .parquet files", "arrow") from None
    try:
        table = parquet.read_table(file)
    except Exception as error:  # pyarrow raises many kinds
        raise UnreadableFile(f"{str(file)!r} is not a .parquet file: {error}") from None
    columns: list[Any] = [column.to_numpy() for column in table.columns]
    if not columns:
        raise UnreadableFile(f"{str(file)!r} has no columns")
    if len(columns) == 1:
        return _checked(columns[0], file)
    if any(column.dtype.kind == "O" for column in columns):
        rows = np.empty(len(columns[0]), dtype=object)
        for index, row in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            rows[index] = row
        return _checked(rows, file)
    return _checked(np.column_stack(columns), file)


def _checked(array: AnyArray, file: Path) -> AnyArray:
    if array.ndim == 0 or len(array) == 0:
        raise UnreadableFile(f"{str(file)!r} holds no outputs")
    if array.ndim > 2:
        raise UnreadableFile(f"{str(file)!r} has shape {array.shape}; outputs are rows")
    return array
