"""Tables of text as values: delimiters, headers, numbers, dates, booleans, missing values."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, BoolArray
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.sampling.columns import (
    SNIFFED,
    Column,
    Unreadable,
    arrow_source,
    as_objects,
    cast,
    dates,
    integer_array,
    number_array,
    pyarrow_for,
    read_columns,
    repeated,
)

_MISSING = ("", "NA", "N/A", "null", "NULL", "None")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_INTEGER = "[+-]?[0-9]+"
_NUMBER = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))"
#: Numbers with a decimal comma or with separators: 1,5 and 1.234,5 and 1 234 and 1'234.
_DIGITS = "[+-]?[0-9][0-9.eE+-]*"
_SPACES = " \u00a0\u2009\u202f"  # no-break and thin ones too
_SEPARATED = f"[+-]?,[0-9]+|{_DIGITS}([,{_SPACES}'’_|]+{_DIGITS})+"
#: Ranges, which are labels: 1,000-1,999 and 2 000 – 2 999.
_END = f"[0-9]+(?:[.,{_SPACES}'’_][0-9]+)*"
_RANGE = f"{_END}(?:[-–]|[{_SPACES}][-–][{_SPACES}]){_END}"
_DELIMITERS, _THOUSANDS = "\t;,|", ("", ".", ",", " ", "'", "’", "_")
#: Numbers with a unit, and negative ones with another sign: 5 €, 5%, (5), 5-, −5.
_AMOUNT = rf"{_DIGITS}[0-9.,{_SPACES}]*"
_WITH_UNIT = rf"[€$£¥][{_SPACES}]?{_AMOUNT}|{_AMOUNT}[€$£¥%‰-]|\({_AMOUNT}\)" f"|\u2212{_AMOUNT}"
#: Whole numbers below 1000, and numbers that are 1.214 or, with a separator, 1214.
_SMALL, _GROUPED = "[+-]?[0-9]{1,3}", r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+"
_DAY = "[0-3]?[0-9]"
#: Dates as they are written in ISO 8601, in Europe and in the United States, and what follows them.
WRITTEN_DATE = (
    rf"(?:[0-9]{{4}}([-/.]){_DAY}\1{_DAY}|{_DAY}([-/.]){_DAY}\2[0-9]{{4}}|{_DAY}/{_DAY}/[0-9]{{2}}"
    r"|[0-3][0-9]\.[0-3][0-9]\.[0-9]{2})(?:[ T,].*)?"
)
#: What is no name of a column.
_VALUE = re.compile(f"{WRITTEN_DATE}|{_NUMBER}|{_SEPARATED}")
_NO_NAMES = (*_MISSING, *_TRUE, *_FALSE)
#: Rows from which a first row of values can be a header, and how rarely outputs may begin alike.
_HEADED, _COINCIDENCE = 20, 0.01
_GROUPS = 20  # numbers that may have a separator, from which on it is asked for
_BLOCK = 1 << 24  # bytes of text parsed at a time; a row must fit
NO_TEXT = (
    "is not text in UTF-8; save it in UTF-8, or name its encoding: cp1252 is usual in Western Europe, "
    "utf-16 for Excel's Unicode text (--encoding cp1252, encoding= in Python)"
)


def _arrow() -> Any:
    return pyarrow_for("reading text", "compute", "csv")


class Marks(NamedTuple):
    """How text is written: the decimal mark, what separates thousands, and the encoding."""

    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"

    @property
    def options(self) -> str:
        """Those that are not the usual ones, as options of the command line."""
        own = ((k, v) for k, v in self._asdict().items() if v != Marks._field_defaults[k])
        return " ".join(f"--{name} {shlex.quote(mark)}" for name, mark in own)

    def check(self) -> Marks:
        """Refuse marks that cannot be told apart from digits or from each other.

        Points that separate thousands leave the comma as the decimal mark.
        """
        checks.one_of("decimal", self.decimal, (".", ","))
        checks.one_of("thousands", self.thousands, (*_THOUSANDS, *_SPACES[1:]))
        if self.decimal == self.thousands == ",":
            raise InvalidInput(
                "decimal and thousands must differ, both are ','; is the decimal mark '.'? Then leave "
                "--decimal out (decimal= in Python)"
            )
        try:
            "".encode(self.encoding)
        except (LookupError, TypeError, ValueError):
            raise InvalidInput(
                f"encoding must be one that Python knows, such as 'cp1252', 'latin-1' or 'utf-16', got "
                f"{checks.shown(self.encoding)}"
            ) from None
        return self._replace(decimal=",") if self.thousands == "." else self

    @property
    def separator(self) -> str:
        """The pattern of what separates thousands; a space stands for all kinds of spaces."""
        return f"[{_SPACES}]" if self.thousands.isspace() else re.escape(self.thousands)

    @property
    def number(self) -> str:
        """The pattern of numbers."""
        point, group = re.escape(self.decimal), self.separator
        whole = f"([0-9]{{1,3}}({group}[0-9]{{3}})+|[0-9]*)" if group else "[0-9]*"
        return f"[+-]?{whole}({point}[0-9]*)?([eE][+-]?[0-9]+)?"

    def plain(self, cells: Any) -> Any:
        """Trimmed cells, numbers in them rewritten with a decimal point and without separators."""
        if self == PLAIN:
            return cells
        pc, found = _arrow().compute, _matches(cells, self.number)
        if self.decimal == "," and (odd := _first(cells, _matches(cells, _NUMBER) & ~found)):
            raise Unreadable(
                f"holds {checks.shown(odd)}, a number with a decimal point, but decimal=',' was given; "
                "write all numbers in the same way"
            )
        if isinstance(cells, _arrow().ChunkedArray):
            cells = cells.combine_chunks()
        plain = pc.replace_substring_regex(cells, self.separator, "") if self.thousands else cells
        plain = pc.replace_substring(plain, self.decimal, ".")
        return pc.if_else(_arrow().array(found), plain, cells)


#: 1234.5
PLAIN = Marks()


class TextTable(NamedTuple):
    """A file of text, split into cells, before it is known whether its first row is a header."""

    cells: Sequence[Any]  # columns of text
    delimiter: str
    marks: Marks

    @property
    def first(self) -> list[str]:
        """The first row."""
        return [str(column[0].as_py()).strip() for column in self.cells]

    @property
    def begins_with_words(self) -> bool:
        """Whether no cell of the first row is a value or missing."""
        first = self.first
        # pandas writes nothing over an index
        cells = first[1:] if len(first) > 1 and not first[0] else first
        return not any(cell in _NO_NAMES or _VALUE.fullmatch(cell) for cell in cells)

    def shares(self) -> list[float]:
        """How often each cell of the first row occurs again in its column."""
        below = [_arrow().compute.utf8_trim_whitespace(column.slice(1)) for column in self.cells]
        pairs = zip(below, self.first, strict=True)
        return [float(np.mean(_among(column, (cell,)))) for column, cell in pairs]

    def read(self, header: bool = False) -> tuple[tuple[str, ...] | None, tuple[Column, ...]]:
        """Names and columns; without a header, which may be known, names are None."""
        read, first = partial(of_text, marks=self.marks), self.first
        if header or self.begins_with_words:
            # numpy puts a # before a header
            nameless = "index" if "1" in first else "1"
            names = (first[0].removeprefix("#").strip() or nameless, *first[1:])
            body = read_columns(names, read, [column.slice(1) for column in self.cells])
            values = header or any(not column.kinds["words"] for column in body)
            below = zip(first, body, strict=True)
            if values or not any(cell in column.values.tolist() for cell, column in below):
                return names, body
        return None, read_columns(None, read, self.cells)


def header_of_values(p: TextTable, q: TextTable) -> bool:
    """Whether the first rows of two files are names that look like values: years, codes of regions.

    They are if both hold the same different cells, in any order, of which none occurs again in its own
    column of n rows. Independent outputs do that with a probability below 1 / (e n) for every order,
    since x (1 - x)^n < 1 / (e n). If some occur again, but outputs would rarely begin alike, refuse:
    columns in another order would look like a violation.
    """
    first = p.first
    if (
        p.begins_with_words
        or sorted(first) != sorted(q.first)
        or repeated(first)
        or any(cell in _MISSING for cell in first[len(first) > 1 and not first[0] :])
        or min(len(table.cells[0]) for table in (p, q)) <= _HEADED
    ):
        return False
    shares = [table.shares() for table in (p, q)]
    if not any(map(any, shares)):
        return True
    if len(first) > 1 and max(map(math.prod, shares)) < _COINCIDENCE:
        names = ", ".join([*first[:8], *["…"] * (len(first) > 8)])
        raise UnreadableFile(
            f"both files begin with {names} in some order: names of columns, or an output? For names, "
            "write a letter before each (y2019) in both files; for outputs, add a line of names at the "
            "top of both"
        )
    return False


def split_text(data: bytes, suffix: str, marks: Marks = PLAIN) -> TextTable:
    """The cells of a file of text."""
    if marks.encoding != PLAIN.encoding:
        try:
            data = data.decode(marks.encoding).encode()
        except UnicodeError:
            why = f"is not text in {marks.encoding}; is it in another encoding?"
            raise Unreadable(why) from None
        marks = marks._replace(encoding=PLAIN.encoding)
    if b"\0" in data[:_BLOCK]:
        raise Unreadable(NO_TEXT)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise Unreadable("is empty")
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"  # Arrow does not see a row alone without it
    delimiter, width = _sniffed(data, suffix, marks)
    columns = _cells(data, delimiter, width).columns
    last = columns[-1]
    if width == 1:
        _refuse_unsplit(data, last.slice(0, SNIFFED).to_pylist(), suffix, marks)
    elif last[0].as_py() == "" and last.unique().to_pylist() == [""]:
        columns = columns[:-1]  # rows end in a delimiter
    return TextTable(columns, delimiter, marks)


def _rows(data: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their last line."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=delimiter)
    try:
        for row in reader:
            yield reader.line_num, row
    except UnicodeDecodeError:
        raise Unreadable(NO_TEXT) from None
    except csv.Error as error:
        raise Unreadable(f"cannot be read: {error}", f"line {reader.line_num + 1}") from None


def _sniffed(data: bytes, suffix: str, marks: Marks) -> tuple[str, int]:
    """The delimiter, and how many cells the first row has.

    The delimiter is the first of _DELIMITERS that splits the rows at the top into equally many cells, or
    else splits the first row; .tsv is separated by tabs. A mark of numbers must be in quotes there.
    """
    tabs = suffix == ".tsv"
    widths = {
        mark: _widths(data, mark)
        for mark in ("\t" if tabs else _DELIMITERS)
        if mark not in marks or _quotes(data, mark, marks)
    }
    split = [mark for mark, found in widths.items() if found[0] > 1]
    evenly = [mark for mark in split if len(set(widths[mark]) - {0}) == 1]
    for mark in evenly + split:
        return mark, widths[mark][0]
    return "\t" if tabs else "|" if "," in marks else ",", 1


def _quotes(data: bytes, mark: str, marks: Marks) -> bool:
    """Whether numbers that hold a mark are in quotes, so that it can also separate cells."""
    cells = (cell.strip() for _, row in _rows(data, mark) for cell in row if mark in cell)
    return b'"' in data and any(re.fullmatch(marks.number, cell) for cell in cells)


def _widths(data: bytes, mark: str) -> list[int]:
    """How many cells the rows at the top have."""
    return [len(row) for _, row in itertools.islice(_rows(data, mark), SNIFFED)]


def _refuse_unsplit(data: bytes, cells: list[str], suffix: str, marks: Marks) -> None:
    """Refuse a single column, given the cells at its top, in which every row holds a delimiter.

    Refuse one in which all rows hold as many, below a title.
    """
    numbers = all(re.fullmatch(marks.number, cell.strip()) for cell in cells)
    for mark in "" if numbers or len(cells) < 2 else _DELIMITERS:
        widths = _widths(data, mark)
        below = list(itertools.dropwhile(lambda width: width < 2, widths))
        if mark not in marks and _HEADED <= len(below) < len(widths) and len(set(below)) == 1:
            raise Unreadable(
                f"is the first with {below[0]} cells, separated by {mark!r}; delete the lines above it, "
                "which look like a title, or put cells that hold the mark into quotes",
                f"row {len(widths) - len(below) + 1}",
            )
        if min(filter(None, widths)) > 1:
            raise Unreadable(
                f"has {mark!r} in every row, but {marks.options if mark in marks else suffix} says it "
                "separates no cells; put cells that hold it into quotes, or use semicolons in a .csv file"
            )


def _cells(data: bytes, delimiter: str, width: int) -> Any:
    """All cells as text, with the first row; blank lines at the end of several columns are left out."""
    pa = _arrow()
    if width > 1:
        if data.endswith((b"\n\n", b"\n\r\n", b"\r\r")):
            data = data.rstrip(b"\r\n") + b"\n"
        if re.search(rb"\n\r?\n|\r\r", data):  # a blank line, or a line break in quotes
            _refuse_uneven(data, delimiter, width)
    try:
        return pa.csv.read_csv(
            arrow_source(pa, data),
            read_options=pa.csv.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=b'"' in data, ignore_empty_lines=False
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={f"f{k}": pa.string() for k in range(width)}, strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        _refuse_uneven(data, delimiter, width)
        raise Unreadable(NO_TEXT if "UTF8" in str(error) else f"cannot be read: {error}") from None


def _refuse_uneven(data: bytes, delimiter: str, width: int) -> None:
    for line, row in _rows(data, delimiter):
        if len(row) != width and (row or width > 1):
            has, first = (f"{n} cell{'s' * (n != 1)}" for n in (len(row), width))
            has = f"has {has}" if row else "is blank"
            comma = ", and a comma in numbers needs --decimal , or --thousands ,"
            comma *= delimiter == "," and width == 1
            raise Unreadable(
                f"{has}, the first row {first}; every output needs the same number (a cell "
                f"that holds the delimiter goes into quotes{comma})",
                f"line {line}",
            )


def of_text(cells: Any, marks: Marks = PLAIN) -> Column:
    """A column of text cells, typed."""
    pa = _arrow()
    cells = marks.plain(pa.compute.utf8_trim_whitespace(cells))
    if marks == PLAIN:
        _refuse_grouped(cells)
    missing = _among(cells, _MISSING)
    if not missing.any():
        values, slashes = _typed(cells, marks)
        return Column(values, slashes=slashes)
    written = _where(cells, missing).unique().to_pylist()
    if len(written) > 1:
        raise Unreadable(
            f"holds {' and '.join(map(repr, sorted(written)))}, which are all read as a missing value "
            "and are different outputs; write them alike, or another word for one of them"
        )
    values, slashes = _typed(_where(cells, ~missing), marks)
    return Column(values, ~missing, slashes=slashes)


def _refuse_grouped(cells: Any) -> None:
    """Refuse columns of 984 and 1.214, in which no decimal has other than three digits."""
    either = f"{_SMALL}|{_GROUPED}"
    if not _matches(cells.slice(0, SNIFFED), either).all() or not _matches(cells, either).all():
        return
    grouped = _matches(cells, _GROUPED)
    if _GROUPS <= np.count_nonzero(grouped) < len(cells):
        raise Unreadable(
            f"holds {checks.shown(_first(cells, grouped))} beside whole numbers below 1000: a "
            "decimal, or a whole number with a separator? Say --decimal , --thousands . for the second, "
            "--thousands , for the first (decimal=, thousands= in Python)"
        )


def _typed(cells: Any, marks: Marks) -> tuple[AnyArray, str]:
    """Cells with a value: numbers, booleans, dates, or objects if there are words among them.

    With how dates are written, if not in ISO 8601.
    """
    if len(cells) == 0:
        return as_objects(()), ""
    if (found := _numbers(cells)) is not None:
        _refuse_spellings(cells)
        return found, ""
    if (dated := dates(cells)) is not None:
        return dated
    true, false = _among(cells, _TRUE), _among(cells, _FALSE)
    if (true | false).all():
        return true, ""
    separated = _matches(cells, _SEPARATED) & ~_matches(cells, _RANGE)
    if cell := _first(cells, separated):
        fitting = ", ".join(
            f"{one.options} if it is {re.sub(one.separator, '', cell).replace(one.decimal, '.')}"
            for one in _fitting(cells if marks == PLAIN else _where(cells, separated))
        )
        advice = (
            f"say how: {fitting} (decimal=, thousands= in Python)" if fitting else "write all alike"
        )
        advice += f". {marks.options} does not fit it" * (marks != PLAIN)
        raise Unreadable(
            f"holds {checks.shown(cell)}, which looks like a number with a decimal comma or separators, "
            f"or like several numbers. If it is one, {advice}. If it is several, separate cells by "
            "commas, semicolons or tabs (np.savetxt(…, delimiter=','))"
        )
    if cell := _first(cells, _matches(cells, _WITH_UNIT)):
        raise Unreadable(
            f"holds {checks.shown(cell)}, a number with a unit or another sign, which would be read as a "
            "word; write the number alone, a negative one as -1.5"
        )
    mixed = np.array(cells.to_numpy(zero_copy_only=False))
    mixed[true], mixed[false] = True, False
    number = _matches(cells, _NUMBER)
    if number.any():
        written = _where(cells, number)
        mixed[number] = _numbers(written)
        _refuse_spellings(written)
    return mixed, ""


def _refuse_spellings(cells: Any) -> None:
    """Refuse numbers that are written in two ways, such as the codes 0123 and 123.

    Read as one number, two outputs would become one, and an upper bound on δ would be wrong. Rounding
    makes zeros of both signs.
    """
    texts = cells.unique()
    numbers = np.asarray(_numbers(texts))
    told = (numbers != 0) & (numbers == numbers)  # NaN is not equal to itself
    if len(np.unique(numbers[told])) == np.count_nonzero(told):
        return
    seen: dict[Any, str] = {}
    for number, text in zip(numbers[told].tolist(), _where(texts, told).to_pylist(), strict=True):
        if number in seen:
            raise Unreadable(
                f"holds {seen[number]!r} and {text!r}, which are one number, and may be two outputs. "
                "Write every number in one way; if they are codes, write a letter before each"
            )
        seen[number] = text


def _fitting(cells: Any) -> list[Marks]:
    """The marks with which all numbers among the cells may be written."""
    numbers = _where(cells, _matches(cells, f"{_SEPARATED}|{_DIGITS}"))
    held = {"", *re.sub(f"[{_SPACES}]", " ", "".join(numbers.to_pylist()))}
    each = itertools.product(
        "." + "," * ("," in held), (mark for mark in _THOUSANDS if mark in held)
    )
    marks = (Marks(decimal, thousands) for decimal, thousands in each if decimal != thousands)
    return [one for one in marks if _matches(numbers, one.number).all()]


def _where(cells: Any, mask: BoolArray) -> Any:
    """The cells that a mask chooses."""
    return cells.filter(_arrow().array(mask))


def _matches(cells: Any, pattern: str) -> BoolArray:
    return np.asarray(_arrow().compute.match_substring_regex(cells, f"^(?:{pattern})$"), dtype=bool)


def _among(cells: Any, words: tuple[str, ...]) -> BoolArray:
    pa = _arrow()
    return np.asarray(pa.compute.is_in(cells, pa.array(words, cells.type)), dtype=bool)


def _first(cells: Any, chosen: BoolArray) -> str:
    """The first of the cells that are chosen; empty if none is."""
    return str(cells[int(np.argmax(chosen))].as_py()) if chosen.any() else ""


def _numbers(cells: Any) -> AnyArray | None:
    """Cells as numbers if all are."""
    pa = _arrow()
    floats = cast(cells, pa.float64())
    if floats is None:
        return None
    integers = cast(cells, pa.int64())
    if integers is not None:
        return np.asarray(integers)
    numbers = number_array(np.asarray(floats))
    if numbers.dtype.kind == "f" and _matches(cells, _INTEGER).all():
        try:
            return integer_array(map(int, cells.to_pylist()))
        except ValueError:  # thousands of digits
            return numbers
    return numbers
