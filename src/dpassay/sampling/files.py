"""Files of outputs: one output a row, a column a coordinate.

All formats hold the same table if they hold the same content (docs/outputs.md says how cells are read):

- Numbers that are whole are integers, written 1, 1.0 or 1e0; beyond 64 bits they are Python's.
- A cell without a value is an outcome, None. A row of JSON may also lack a key, as dictionaries do.
- Dates are such if every cell of their column is: in ISO 8601, as 05.03.2024 or all as 5.3.2024, as
  31/12/2024 or 12/31/2024 where one of these two fits all cells. Times are in UTC, to the microsecond.
  Words and numbers may share a column. Strings in binary formats are read as cells of text are.
- Text has a header if no cell of its first row is a number, a date, a boolean or missing, and if some
  column below holds no words, or else no cell of the first row occurs again in its column. Two files
  may also have a header of years or codes (`text_tables.header_of_values`).

Row numbers, time stamps and identifiers, numbers rounded in one file only, several ways to write a
missing value, capitals: such differences would look like a violation, and are refused. Each rule
looks for a pattern that software leaves behind and mechanisms hardly do, and allows what outputs may do:
a few fine numbers beside rounded ones, a word in one file only. Data frames, Arrow tables and arrays with
named fields are matched as files are (`frame_pair`); other arrays are not held to these rules.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.sampling.columns import (
    ABSENT,
    Column,
    Content,
    Table,
    constants,
    dates,
    frame_content,
    pyarrow_for,
    repeated,
)
from dpassay.sampling.dependence import may_coincide
from dpassay.sampling.file_formats import load
from dpassay.sampling.identifiers import (
    FEW,
    ROWS,
    as_option,
    blocks_left_out,
    enumerated,
    one_value_each,
    refuse_frequencies,
    refuse_identifiers,
    refuse_long,
    refuse_periodic,
)
from dpassay.sampling.text_tables import PLAIN, WRITTEN_DATE, Marks

#: Of the first ROWS numbers digits are counted: how many are needed, and how many must differ.
_NUMBERS, _DISTINCT = 100, 20
#: Significant digits of rounded numbers, at most: doubles, and narrower floats.
_DOUBLE, _FLOAT = 15, 6
_FINER = 0.5  # the share of the other file's numbers that must have more digits
#: Rows of a title, at most, and how rarely words of independent rows may be at the top alone.
_TITLE, _AT_THE_TOP = 10, 1e-3
#: The share of texts that must be numbers with a decimal comma, or whole.
_COMMAS = 0.95
#: The share of either file that must be words which differ in case alone.
_CAPITALS = 0.05


def _refuse_writing(p: Content, q: Content) -> None:
    """Refuse columns that were written in two ways."""
    for name, a, b in zip(p.called, p.columns, q.columns, strict=True):
        for rule in (_kinds, _slashes, _digits, _no_number, _capitals):
            if found := rule(a, b):
                raise UnreadableFile(
                    f"{p.column(name)} holds {found[0]} in {p.shown} and {found[1]} in {q.shown}: a "
                    "formatting difference would look like a violation. Format both files in the same "
                    "way; if the outputs do differ so, pass arrays to from_samples"
                )


def column_notes(p: Table, q: Table) -> Iterator[str]:
    """Columns that may tell two tables apart for reasons that are no matter of the mechanism."""
    several = len(p.columns) > 1
    yield from p.notes
    for name, *columns in zip(p.origin.columns, p.columns, q.columns, strict=True):
        if several and all(c.dtype.kind == "O" and all(v is None for v in c) for c in columns):
            without = as_option("drop", [*p.origin.left_out, name])
            yield f"column {name!r} is empty in both tables: leave it out with {without}"
        numbers = [_finite_numbers(column) for column in columns]
        whole = [bool(np.all(one == np.floor(one))) for one in numbers]
        if min(map(len, numbers)) >= FEW and whole[0] != whole[1]:
            coarse, fine = (p, q) if whole[0] else (q, p)
            column = f"column {name!r}" if several else "the only column"
            yield (
                f"{column} has no decimals in {coarse.origin.file}, but has some in {fine.origin.file}. "
                "If the two were rounded differently after the release, that alone tells them apart, and "
                "a violation says nothing about the mechanism: round both in the same way"
            )
        if all(map(_unread_dates, columns)):
            yield (
                f"column {name!r} holds dates such as {columns[0][0]!r} that are read as text, since the "
                "day or the month may come first, or they are written in several ways: write them as "
                "2024-12-31 in both files"
            )
        apart = min(map(len, numbers)) >= FEW and _apart(*numbers)
        if several and (apart or (_disjoint([c[:ROWS] for c in columns]) and _disjoint(columns))):
            yield (
                f"no value of column {name!r} occurs in both tables. If it is no output of the "
                "mechanism (a batch, a machine), a violation says nothing about the mechanism: leave it "
                f"out with {as_option('drop', [*p.origin.left_out, name])}"
            )


def _unread_dates(column: AnyArray) -> bool:
    """Whether the cells at the top of a column are dates that were read as text."""
    return all(isinstance(v, str) and re.fullmatch(WRITTEN_DATE, v) for v in column[:FEW])


def _apart(a: AnyArray, b: AnyArray) -> bool:
    """Whether all numbers of one column are above all of the other, which has several."""
    return bool(
        (a.min() > b.max() or b.min() > a.max()) and min(np.unique(a).size, np.unique(b).size) > 1
    )


def _disjoint(columns: Sequence[AnyArray]) -> bool:
    """Whether the values of either column repeat, and none of them occurs in both."""
    values = [set(map(repr, column.tolist())) for column in columns]  # some cannot be hashed
    repeat = all(4 * len(v) < len(column) for v, column in zip(values, columns, strict=True))
    return repeat and values[0].isdisjoint(values[1])


_Written = tuple[str, str] | None  # what either file holds, if that is a difference in writing


def _kinds(a: Column, b: Column) -> _Written:
    """Kinds of values: one that only one file has is an outcome if it is rare."""
    kinds = (a.kinds, b.kinds)
    odd = any(
        one and other and any(2 * one[kind] >= one.total() for kind in one if kind not in other)
        for one, other in (kinds, kinds[::-1])
    )
    if a.absent is None and b.absent is None:
        odd |= (not kinds[0] and not b.missing) or (not kinds[1] and not a.missing)
    if not odd:
        return None
    here, there = (
        " and ".join(kind for kind, _ in found.most_common()) or "nothing" for found in kinds
    )
    return here, there


def _slashes(a: Column, b: Column) -> _Written:
    """Dates whose day comes first in one file, and whose month does in the other; leading zeros."""
    both = a.slashes and b.slashes and a.slashes != b.slashes
    return (f"dates such as {a.slashes}", f"such as {b.slashes}") if both else None


def _digits(a: Column, b: Column) -> _Written:
    """Numbers rounded to fewer decimals, or to fewer significant digits, in one file."""
    values = [_finite_numbers(column.values) for column in (a, b)]
    if min(map(len, values)) < _NUMBERS or all(one.dtype.kind == "i" for one in values):
        return None
    narrow = any(one.dtype == np.float32 for one in values)  # both are compared as such
    values = [one.astype(np.float32 if narrow else np.float64) for one in values]
    counts = [np.array([_decimals_and_digits(str(x)) for x in one]) for one in values]
    full = [np.any(one[:, 1] > (_FLOAT if narrow else _DOUBLE)) for one in counts]
    for k, what in enumerate(("decimals", "significant digits")):
        most = [math.inf if full[side] else counts[side][:, k].max() for side in (0, 1)]
        low, high = np.argsort(most, kind="stable").tolist()
        finer = np.mean(counts[high][:, k] > most[low])
        if most[0] != most[1] and finer >= _FINER and np.unique(values[low]).size >= _DISTINCT:
            here, there = (
                "numbers of full precision" if n == math.inf else f"numbers of up to {n} {what}"
                for n in most
            )
            return here, there
    return None


def _decimals_and_digits(shortest: str) -> tuple[int, int]:
    """Decimals and significant digits of a number in its shortest decimal representation."""
    number = Decimal(shortest).normalize().as_tuple()
    return max(0, -int(number.exponent)), len(number.digits)


def _finite_numbers(values: AnyArray) -> AnyArray:
    """The finite numbers among the first rows of a column, without those that no double holds."""
    values = values[:ROWS]
    if values.dtype.kind == "O":
        kept = [v for v in values if type(v) in (int, float) and abs(v) < 2**1023]
        values = np.array(kept, dtype=float)
    if values.dtype.kind == "i":
        return values
    return values[np.isfinite(values)] if values.dtype.kind == "f" else np.zeros(0)


def _no_number(a: Column, b: Column) -> _Written:
    """What stands in a column of numbers where there is none: an empty cell, NaN, a word."""
    marks = [_marks(column) for column in (a, b)]
    if all(len(one) == 1 for one in marks) and marks[0] != marks[1]:
        return f"{marks[0].pop()} where there is no number", marks[1].pop()
    return None


def _marks(column: Column) -> set[str]:
    values = column.values
    if column.kinds["numbers"] * 2 < len(values):
        return set()
    found = {"an empty cell"} if column.missing else set()
    cells = values.tolist() if values.dtype.kind == "O" else ()
    floats = values if values.dtype.kind == "f" else [v for v in cells if isinstance(v, float)]
    if np.isnan(floats).any():
        found.add("NaN")
    return found | {repr(value) for value in cells if isinstance(value, str)}


def _capitals(a: Column, b: Column) -> _Written:
    """Words that are the same in both files but for capitals."""
    if a.values.dtype.kind != "O" or b.values.dtype.kind != "O":
        return None
    counts = [Counter(v for v in one.values.tolist() if isinstance(v, str)) for one in (a, b)]
    own = [
        {w.casefold(): w for w in one if w not in other} for one, other in (counts, counts[::-1])
    ]
    both = own[0].keys() & own[1].keys()
    for column, count, mine in zip((a, b), counts, own, strict=True):
        rows = sum(n for w, n in count.items() if w.casefold() in both and w in mine.values())
        if rows < _CAPITALS * column.rows:
            return None
    word = min(both, default="")
    return (repr(own[0][word]), repr(own[1][word])) if both else None


def read_table(path: str | Path, max_bytes: int | None = None, marks: Marks = PLAIN) -> Table:
    """The table in one file; see the module's docstring for what its cells mean."""
    [content] = load(path, max_bytes=max_bytes, marks=marks)
    return content.checked().table()


def read_pair(
    p_path: str | Path,
    q_path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    max_bytes: int | None = None,
    marks: Marks = PLAIN,
) -> tuple[Table, Table]:
    """The tables in two files, with the same columns in the same order and of the same types.

    `columns` selects and orders, `drop` leaves out; columns without names are "1", "2", …. Columns
    are matched by name if both files have names, and by position otherwise. Columns that look like a row
    number, a time or an identifier are refused unless `columns` names them.
    """
    same = ""
    with contextlib.suppress(OSError):  # one is missing: said when it is read
        same = "are the same file" if os.path.samefile(p_path, q_path) else ""
    if not same:
        p, q = load(p_path, q_path, max_bytes=max_bytes, marks=marks)
        if p.origin.sha256 == q.origin.sha256:
            cells = zip(*(column.tolist() for column in p.table().columns), strict=True)
            same = (
                ""
                if may_coincide(list(map(repr, cells)))
                else "have the same content, byte for byte"
            )
    if same:
        raise UnreadableFile(
            f"{str(p_path)!r} and {str(q_path)!r} {same}; an audit compares outputs on one input with "
            "outputs on its neighbour: give a file of each"
        )
    if p.origin.file != q.origin.file:
        p, q = (replace(side, shown=side.origin.file) for side in (p, q))
    return _matched(p, q, columns, drop)


def frame_pair(
    p: Any, q: Any, *, columns: Sequence[str] | None = None, drop: Sequence[str] | None = None
) -> tuple[Table, Table] | None:
    """Two data frames with the same columns in the same order and of the same types.

    None if they are no data frames. One of several columns beside an array is refused: the names alone
    would tell them apart.
    """
    one, other = frame_content("p", p), frame_content("q", q)
    if one and other:
        for side in (one, other):
            _refuse_commas(side)
        return _matched(one, other, columns, drop)
    others = constants(q)
    if names := [k for k, value in constants(p).items() if others.get(k, value) != value]:
        raise InvalidInput(
            f"{enumerated(names)} has one value in all rows of all tables of p, and another in those of "
            "q, as a name of the input has, which would look like a violation: leave it out, "
            f"[g.drop(columns={names}) for g in p]. If it is an output without noise, which is a "
            "violation, give dictionaries, [g.to_dict('list') for g in p]"
        )
    if columns is not None or drop is not None:
        raise InvalidInput(
            "columns and drop choose among the columns of files and data frames; arrays have no names: "
            "choose with p[:, [0, 2]]"
        )
    frame = one or other
    if frame and len(frame.called) > 1:
        raise InvalidInput(
            f"{'p' if one else 'q'} has columns with names and {'q' if one else 'p'} has none: give both "
            "as data frames, or both as arrays (frame.to_numpy())"
        )
    return None


def _listed(name: str, given: Sequence[str] | None) -> list[str]:
    """The names that were given; none if the argument was left out."""
    if given is None:
        return []
    if isinstance(given, str):
        raise InvalidInput(
            f"{name} must be a list of columns, got {checks.shown(given)}; write "
            f"{name}={[part.strip() for part in given.split(',')]}"
        )
    listed = [str(entry) for entry in checks.listed(name, given)]
    if not listed:
        raise InvalidInput(f"{name} must name at least one column, got an empty list; leave it out")
    if (double := repeated(listed)) is not None:
        raise InvalidInput(f"{name} names {double!r} more than once; name every column once")
    return listed


def _matched(
    p: Content, q: Content, columns: Sequence[str] | None, drop: Sequence[str] | None
) -> tuple[Table, Table]:
    """Both tables with the same columns, of which nothing but the outputs tells them apart."""
    wanted, unwanted = _listed("columns", columns), _listed("drop", drop)
    if wanted and unwanted:
        raise InvalidInput("give columns= or drop=, not both: what is not in columns is left out")
    if p.json and q.json and p.named and q.named:
        p, q = (side.take(dict.fromkeys(p.called + q.called)) for side in (p, q))
    if len(wanted) < len(p.called):
        names = one_value_each(p, q)
        for side in (p, q):
            refuse_long(side, names, unwanted)
        refuse_frequencies(p, q)
    for side in (p, q):
        refuse_periodic(side)
    whole = p
    p, q = _chosen(p, q, wanted, unwanted)
    notes = tuple(blocks_left_out(whole, p.called if whole.named == p.named else whole.called))
    p, q = _same_columns(p.checked(), q.checked(), unwanted)
    for side in (p, q):
        _refuse_title(side)
    if not wanted and len(p.called) > 1:
        refuse_identifiers(p, q, unwanted)
    pairs = list(zip(p.columns, q.columns, strict=True))
    p = replace(p, columns=tuple(_as_dates(_zero_one(a, b), b) for a, b in pairs))
    q = replace(q, columns=tuple(_as_dates(_zero_one(b, a), a) for a, b in pairs))
    _refuse_writing(p, q)
    both = zip(p.columns, q.columns, strict=True)
    arrays = [_same_type(a.array(ABSENT), b.array(ABSENT)) for a, b in both]
    table = replace(p.table([a for a, _ in arrays]), notes=notes)
    return table, q.table([b for _, b in arrays])


def _refuse_title(side: Content) -> None:
    """Refuse a column of numbers with words in its first rows only: a title, or a header below one."""
    for name, column in zip(side.called, side.columns, strict=True):
        n, words = len(column.values), column.kinds["words"]
        cells = column.values[:_TITLE].tolist()
        top = [k for k, cell in enumerate(cells) if isinstance(cell, str)]
        if not words or len(top) < words or column.kinds["numbers"] < n - words:
            continue
        if ((top[-1] + 1) / n) ** words > _AT_THE_TOP:
            continue
        rows = np.arange(n) if column.present is None else np.flatnonzero(column.present)
        last = int(rows[top[-1]]) + 1 + side.named
        raise UnreadableFile(
            f"{side.column(name)} of {side.shown} holds words in its first rows, up to row {last} "
            f"({cells[top[-1]]!r}), and {n - words:,} numbers below: they look like a title, and row "
            f"{last} like the header. Delete the rows above it in both files; if the words are outputs, "
            "pass arrays to from_samples"
        )


def _refuse_commas(side: Content) -> None:
    """Refuse text that is numbers with a decimal comma, in a data frame that was read without it."""
    for name, column in zip(side.called, side.columns, strict=True):
        cells = column.values[:ROWS].tolist() if set(column.kinds) == {"words"} else []
        found = [cell for cell in cells if re.fullmatch(Marks(",", ".").number, cell.strip())]
        commas = [cell for cell in found if "," in cell]
        if len(found) > _COMMAS * len(cells) and 2 * len(commas) > len(cells):
            raise InvalidInput(
                f"{side.column(name)} of {side.shown} holds text such as {commas[0]!r}, numbers with a "
                "decimal comma: read it with pandas.read_csv(…, decimal=','), or give the files to "
                "from_samples(…, decimal=','). If the text is the output, give lists of it"
            )


def _as_dates(a: Column, b: Column) -> Column:
    """A column of dates with slashes that both orders fit: in the order of the other file."""
    if not b.slashes or a.slashes or a.kinds.keys() != {"words"}:
        return a
    found = dates(pyarrow_for("reading text").array(a.values.tolist()), b.slashes)
    return a if found is None else replace(a, values=found[0], slashes=b.slashes)


def _chosen(
    p: Content, q: Content, wanted: Sequence[str], unwanted: Sequence[str]
) -> tuple[Content, Content]:
    """Both tables, each with the columns asked for; no names stand for all columns."""
    if not (p.named and q.named):  # positions, but the names of one file are understood
        named = p if p.named else q
        places = dict(zip(named.called, named.places, strict=True)) if named.named else {}
        p, q = (replace(side, called=side.places, named=False) for side in (p, q))
        wanted, unwanted = ([places.get(n, n) for n in names] for names in (wanted, unwanted))
        if len(wanted) == 1 and p.called == q.called == ("1",):
            wanted = ["1"]  # the only column there is, whatever it is called
    for side in (p, q):
        if unknown := [name for name in wanted if name not in side.called]:
            raise InvalidInput(
                f"columns names {unknown[0]!r}, which {side.shown} does not have; it has "
                f"{enumerated(side.called)}"
            )
    if unknown := [name for name in unwanted if name not in p.called + q.called]:
        raise InvalidInput(
            f"drop names {unknown[0]!r}, which neither has; {p.shown} has {enumerated(p.called)}"
        )
    p, q = (
        side.take(wanted or [name for name in side.called if name not in unwanted])
        for side in (p, q)
    )
    for side in (p, q):
        if not side.called:
            raise InvalidInput(f"drop leaves no column of {side.shown}; drop fewer")
    return p, q


def _same_columns(p: Content, q: Content, dropped: Sequence[str]) -> tuple[Content, Content]:
    """Both tables with the columns of the first, in its order."""
    if not p.named:
        if len(p.called) != len(q.called):
            raise UnreadableFile(
                f"{p.shown} has {len(p.called)} column{'s' * (len(p.called) > 1)} and {q.shown} has "
                f"{len(q.called)}; outputs on both inputs need the same: name those in both with "
                "columns=['1', …] (--columns 1,…)"
            )
        return p, q
    only_p = [name for name in p.called if name not in q.called]
    only_q = [name for name in q.called if name not in p.called]
    said = [
        f"{one.shown} has {enumerated(only)}, which {other.shown} does not have"
        for one, only, other in ((p, only_p, q), (q, only_q, p))
        if only
    ]
    if said:
        remedies = []
        if only_p and only_q:
            remedies.append(
                "a column may be named differently in the two: rename it in one of them"
            )
        if len(only_p) < len(p.called):
            remedies.append(
                f"use what both have, with {as_option('drop', [*dropped, *only_p, *only_q])}, if the "
                "rest is no output: what it leaks is not found then"
            )
        raise UnreadableFile(f"{', and '.join(said)}; {'; or '.join(remedies)}")
    return p, q.take(p.called)


def _zero_one(one: Column, other: Column) -> Column:
    """Booleans as 0 and 1 where the other table holds these."""
    numbers = other.values.dtype.kind in "if" and bool(np.all(np.isin(other.values, (0, 1))))
    boolean = one.values.dtype.kind == "b"
    return replace(one, values=one.values.astype(np.int64)) if boolean and numbers else one


def _same_type(a: AnyArray, b: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Two arrays of one type; narrow floats stay narrow, and what is missing needs objects."""
    kinds = a.dtype.kind + b.dtype.kind
    if kinds == "ff":  # numbers that were stored in fewer digits are compared in fewer digits
        dtype: Any = min(a.dtype, b.dtype, key=lambda dtype: dtype.itemsize)
    else:
        dtype = object if "O" in kinds else np.promote_types(a.dtype, b.dtype)
    with np.errstate(over="ignore"):  # beyond what fewer digits hold is infinite
        return a.astype(dtype, copy=False), b.astype(dtype, copy=False)
