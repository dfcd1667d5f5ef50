"""Files of outputs: one output a row, a column a coordinate.

Text (.csv, .tsv, .txt, also compressed), JSON lines (.jsonl), .parquet, .feather, .arrow and .npy (never
pickled) hold the same table if they hold the same content:

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

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.sampling.columns import KIND_OF_TYPE, Column, Content, Table, as_objects, counted
from dpassay.sampling.dependence import may_coincide
from dpassay.sampling.file_formats import load
from dpassay.sampling.spelling import refuse_other_spelling
from dpassay.sampling.text_tables import header_names

_FEW = 20  # rows from which an order is no accident


def read_table(path: str | Path, max_bytes: int | None = None) -> Table:
    """The table in one file; see the module's docstring for what its cells mean."""
    return load(path, max_bytes).table()


def read_pair(
    p_path: str | Path,
    q_path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    max_bytes: int | None = None,
) -> tuple[Table, Table]:
    """The tables in two files, with the same columns in the same order and of the same types.

    `columns` selects and orders, `drop` leaves out; columns without names are "1", "2", …. Columns
    are matched by name if both files have names, and by position otherwise. Refused are the same
    content twice (unless its values are so few that independent draws coincide), columns of one file
    only, columns of different kinds (numbers here, words there; a kind that only one file has is an
    outcome as long as it is less than half of the column), and, unless `columns` names them, columns
    that look like a row number, a time or an identifier.
    """
    wanted, unwanted = listed(columns, drop)
    if _same_file(p_path, q_path):
        raise UnreadableFile(
            f"{str(p_path)!r} and {str(q_path)!r} are the same file; an audit compares outputs on "
            "one input with outputs on its neighbour: give a file of each"
        )
    p, q = load(p_path, max_bytes), load(q_path, max_bytes)
    if p.sha256 == q.sha256 and not may_coincide(p.texts()):
        raise UnreadableFile(
            f"{str(p_path)!r} and {str(q_path)!r} have the same content, byte for byte; an audit "
            "compares outputs on one input with outputs on its neighbour: give a file of each"
        )
    if p.label != q.label:
        p, q = (replace(side, shown=side.label) for side in (p, q))
    return alike(*_headed_alike(p, q), wanted, unwanted)


def alike(
    p: Content, q: Content, wanted: list[str] | None, unwanted: list[str] | None
) -> tuple[Table, Table]:
    """The tables of two contents, of which nothing but the outputs tells them apart; or a refusal."""
    p, q = _matched(*_selected(p, q, wanted, unwanted))
    if wanted is None:
        for side in (p, q):
            _refuse_index(side)
        _refuse_constants(p, q)
    refuse_other_spelling(p, q)
    return _alike(p, q)


def listed(
    columns: Sequence[str] | None, drop: Sequence[str] | None
) -> tuple[list[str] | None, list[str] | None]:
    """The columns that are wanted, or those that are not, as lists of names."""
    wanted, unwanted = _listed("columns", columns), _listed("drop", drop)
    if wanted is not None and unwanted is not None:
        raise InvalidInput("give columns= or drop=, not both: what is not in columns is left out")
    return wanted, unwanted


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


def _headed_alike(p: Content, q: Content) -> tuple[Content, Content]:
    """A first row that is the other file's header is a header."""
    return _headed_as(p, q), _headed_as(q, p)


def _headed_as(one: Content, other: Content) -> Content:
    if one.first and one.again and other.named and header_names(one.first) == other.called:
        return replace(one.again(), shown=one.shown)
    return one


def _selected(
    p: Content, q: Content, wanted: list[str] | None, unwanted: list[str] | None
) -> tuple[Content, Content]:
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
        if len(wanted) == 1 and all(side.called == ("1",) and not side.named for side in sides):
            wanted = ["1"]  # the only column there is, whatever it is called
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
                f"drop names {unknown[0]!r}, which neither has; {sides[0].shown} has "
                f"{_enumerated(sides[0].called)}"
            )
        sides = [side.take(n for n in side.called if n not in gone) for side in sides]
        for side in sides:
            if not side.called:
                raise InvalidInput(f"drop leaves no column of {side.shown}; drop fewer")
    return sides[0], sides[1]


def _matched(p: Content, q: Content) -> tuple[Content, Content]:
    """Both files with the columns of the first, in its order."""
    if not p.named:
        if len(p.called) != len(q.called):
            raise UnreadableFile(
                f"{p.shown} has {counted(len(p.called), 'column')} and {q.shown} has "
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
            else "give the same outputs the same name in both"
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


def _refuse_index(side: Content) -> None:
    """Row numbers, times and identifiers tell any two tables apart."""
    if len(side.called) < 2 or side.rows < _FEW:
        return
    for name, column in zip(side.called, side.columns, strict=True):
        if why := _index_like(column):
            rest = [other for other in side.called if other != name]
            raise UnreadableFile(
                f"{side.column(name)} of {side.shown} {why}. It tells any two tables apart, whatever "
                "the mechanism does, and would look like a violation; leave it out with "
                f"{_option('drop', [name])}, or name the columns that are outputs with "
                f"{_option('columns', rest)}"
            )


def _refuse_constants(p: Content, q: Content) -> None:
    """A column with one value in each file, and another in either, names the file: a date, a run."""
    if len(p.called) < 2 or min(p.rows, q.rows) < _FEW:
        return
    for name, a, b in zip(p.called, p.columns, q.columns, strict=True):
        if a.missing or b.missing:
            continue
        one, other = ({repr(v) for v in c.values[:1].tolist()} for c in (a, b))
        if one != other and _single(a) and _single(b):
            raise UnreadableFile(
                f"{p.column(name)} has one value in all of {p.shown} and another in all of {q.shown}. It "
                "tells the two apart, whatever the mechanism does, and would look like a violation; "
                f"leave it out with {_option('drop', [name])}, or, if it is an output, name the columns "
                f"that are with {_option('columns', list(p.called))}"
            )


def _single(column: Column) -> bool:
    return bool(np.all(column.values == column.values[0]))


def _index_like(column: Column) -> str:
    """Why a column is no output, if so."""
    values = column.values
    if len(values) < _FEW:
        return ""
    kind, n = column.kinds.most_common(1)[0]
    if n < len(values):  # what else there is does not hide it
        values = as_objects(v for v in values if KIND_OF_TYPE.get(type(v)) == kind)
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
    whole = values.dtype.kind != "f" and not _has_floats(Column(values))
    if whole and int(values.max()) - int(values.min()) < 2 * n and _different(values):
        return "holds whole numbers without repetition and nearly without gaps, as row numbers are"
    return ""


def _different(values: AnyArray) -> bool:
    if values.dtype.kind == "O":
        return len(set(values.tolist())) == len(values)
    return len(np.unique(values)) == len(values)


def _alike(p: Content, q: Content) -> tuple[Table, Table]:
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


def _aligned(a: Column, b: Column, name: str, p_shown: str, q_shown: str) -> tuple[Column, Column]:
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


def _zero_one(one: Column, other: Column) -> Column:
    """Booleans as 0 and 1 where the other file writes them so."""
    numbers = other.values.dtype.kind in "if" and bool(np.all(np.isin(other.values, (0, 1))))
    boolean = one.values.dtype.kind == "b"
    return replace(one, values=one.values.astype(np.int64)) if boolean and numbers else one


def _refuse_kinds(a: Column, b: Column, name: str, p_shown: str, q_shown: str) -> None:
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
            "would pass for a violation; write both alike, or, if the outputs do differ so, "
            "give them to from_samples as arrays"
        )


def _of_type(column: Column, dtype: Any) -> Column:
    with np.errstate(over="ignore"):  # beyond what fewer digits hold is infinite
        return replace(column, values=column.values.astype(dtype, copy=False))


def _has_floats(column: Column) -> bool:
    if column.values.dtype.kind == "O":
        return any(type(value) is float for value in column.values.tolist())
    return column.values.dtype.kind == "f"


def _as_floats(column: Column) -> Column:
    """A column whose numbers are all floats."""
    if column.values.dtype.kind == "i":
        return _of_type(column, np.float64)
    if column.values.dtype.kind != "O":
        return column
    return replace(
        column, values=as_objects(_as_float(v) if type(v) is int else v for v in column.values)
    )


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
