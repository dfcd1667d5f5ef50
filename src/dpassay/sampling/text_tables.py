"""Tables of text as values: delimiters, headers, numbers as people write them, dates, missing values."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, BoolArray
from dpassay.errors import UnreadableFile
from dpassay.sampling.columns import (
    Column,
    arrow_source,
    as_objects,
    counted,
    integer_array,
    microseconds,
    number_array,
    pyarrow_module,
)

_MISSING = ("", "NA", "N/A", "null", "NULL", "None")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_SPECIAL = "[+-]?(?i:nan|inf|infinity)"
_INTEGER = "[+-]?[0-9]+"
_NUMBER = rf"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|{_SPECIAL}"
_COMMA = "[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?"  # 1,5
_BY_COMMAS = r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?"  # 1,234.5
_BY_DOTS = r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]*)?"  # 1.234,5
_SPACED = "[+-]?[0-9][0-9.,eE+-]*([ \u00a0\u202f'’_]+[+-]?[0-9][0-9.,eE+-]*)+"  # 1 234
_SEPARATED = f"{_COMMA}|{_BY_COMMAS}|{_BY_DOTS}|{_SPACED}"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}.*"
_SNIFFED = 100  # rows that tell the delimiter, and cells that tell a type
_BLOCK = 1 << 24  # bytes of text parsed at a time; a row must fit


def read_text(
    data: bytes, suffix: str, header: bool | None, shown: str
) -> tuple[tuple[str, ...] | None, tuple[Column, ...], tuple[str, ...] | None]:
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
    called = header_names(first)

    def parsed(names: Sequence[str] | None, skip: int) -> tuple[Column, ...]:
        return tuple(
            of_text(
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


def header_names(first: tuple[str, ...]) -> tuple[str, ...]:
    """The names in a header; numpy puts a # before it, and pandas nothing over an index."""
    head = first[0].removeprefix("#").strip() or "1"
    return (head, *first[1:])


def _may_be_header(first: tuple[str, ...]) -> bool:
    cells = first[1:] if len(first) > 1 and not first[0] else first
    not_names = re.compile(f"{_NUMBER}|{_SEPARATED}|{_DATE}")
    return not any(
        cell in (*_MISSING, *_TRUE, *_FALSE) or not_names.fullmatch(cell) for cell in cells
    )


def _is_header(first: tuple[str, ...], body: tuple[Column, ...]) -> bool:
    """The rule in the docstring of `files`, for a first row of words."""
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
    arrow, reader = pyarrow_module("pyarrow", ".csv"), pyarrow_module("pyarrow.csv", ".csv")
    compute = pyarrow_module("pyarrow.compute", ".csv")
    if width > 1 and data.endswith((b"\n\n", b"\n\r\n", b"\r\r")):
        data = data.rstrip(b"\r\n") + b"\n"
    try:
        table = reader.read_csv(
            arrow_source(data, ".csv"),
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
            has = "is blank" if not row else f"has {counted(len(row), 'cell')}"
            raise UnreadableFile(
                f"{shown}, line {line} {has}, the first row {counted(width, 'cell')}; every output "
                "needs the same number (a cell that holds the delimiter goes into quotes)"
            )


def of_text(cells: Any, delimiter: str | None, where: str) -> Column:
    """A column of text cells, typed."""
    arrow, compute = pyarrow_module("pyarrow", ".csv"), pyarrow_module("pyarrow.compute", ".csv")
    numbers = _numbers(cells)
    if numbers is not None:
        return Column(numbers)
    cells = compute.utf8_trim_whitespace(cells)
    present = compute.invert(compute.is_in(cells, arrow.array(_MISSING, cells.type)))
    cells = cells.filter(present)
    mask = np.asarray(present, dtype=bool)
    return Column(_typed(cells, delimiter, where), None if mask.all() else mask)


def _typed(cells: Any, delimiter: str | None, where: str) -> AnyArray:
    """Cells with a value: numbers, booleans, dates, or objects if there are words among them."""
    arrow, compute = pyarrow_module("pyarrow", ".csv"), pyarrow_module("pyarrow.compute", ".csv")
    if len(cells) == 0:
        return as_objects(())
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
    compute = pyarrow_module("pyarrow.compute", ".csv")
    return np.asarray(compute.match_substring_regex(cells, f"^(?:{pattern})$"), dtype=bool)


def _cast(cells: Any, kind: Any) -> Any | None:
    """Cells of a type if all can be; failing is slow in Arrow, so that the first are tried alone."""
    try:
        cells.slice(0, _SNIFFED).cast(kind)
        return cells.cast(kind)
    except pyarrow_module("pyarrow", ".csv").ArrowInvalid:
        return None


def _numbers(cells: Any) -> AnyArray | None:
    """Cells as numbers if all are."""
    arrow = pyarrow_module("pyarrow", ".csv")
    floats = _cast(cells, arrow.float64())
    if floats is None:
        return None
    integers = _cast(cells, arrow.int64())
    if integers is not None:
        return np.asarray(integers)
    numbers = number_array(np.asarray(floats))
    if numbers.dtype.kind == "f" and _matches(cells, _INTEGER).all():
        try:
            return integer_array(map(int, cells.to_pylist()))
        except ValueError:  # thousands of digits
            return numbers
    return numbers


def _dates(cells: Any) -> AnyArray | None:
    """Cells as dates or times, if all are in ISO 8601."""
    arrow = pyarrow_module("pyarrow", ".csv")
    days = _cast(cells, arrow.date32())
    if days is not None:
        return np.asarray(days)
    for zone, unit in itertools.product((None, "UTC"), ("us", "ns")):
        times = _cast(cells, arrow.timestamp(unit, zone))
        if times is not None:
            return microseconds(times)
    return None


def _without_separators(
    cells: Any, number: BoolArray, delimiter: str | None, where: str
) -> Any | None:
    """Cells with decimal points and nothing else, None if there is nothing to rewrite.

    A reading must explain the whole column, and some cell must exclude the others.
    """
    compute = pyarrow_module("pyarrow.compute", ".csv")
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
