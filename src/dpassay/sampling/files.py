"""Files of outputs: one output a row, a column a coordinate.

Text (.csv, .tsv, .txt, also compressed), JSON lines (.jsonl), .parquet, .feather, .arrow and .npy (never
pickled) hold the same table if they hold the same content:

- Numbers that are whole are integers, written 1, 1.0 or 1e0; beyond 64 bits they are Python's. Numbers
  with a decimal comma or with separators ("1,5", "1 234") are refused unless `Marks` says so.
- A cell without a value is an outcome: blank, NA, N/A, null, NULL, None and Parquet's null are None,
  and so is a blank line in a file of one column. "nan" and "inf" are the floats.
- ISO 8601 dates are such if every cell of their column is; times are in UTC, to the microsecond.
  All other cells but true and false are words, without spaces at their ends. Words and numbers may
  share a column. Strings in binary formats are read as cells of text are.

Text has a header if no cell of its first row is a number, a date, a boolean or missing (but the first of
several may be blank, as over an index, and is called "1"), and if some column below holds no words, or
else no cell of the first row occurs again in its column. A delimiter at the end of every row makes no
column.

`read_pair` matches columns by name, gives both files the same types, and refuses what it cannot match.
Data frames, Arrow tables and arrays with named fields are matched in the same way (`frame_pair`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.sampling.columns import Column, Content, Table, frame_content, repeated
from dpassay.sampling.dependence import may_coincide
from dpassay.sampling.file_formats import load
from dpassay.sampling.refusals import (
    option,
    refuse_identifiers,
    refuse_repeated_header,
    refuse_totals,
    refuse_writing,
)
from dpassay.sampling.text_tables import PLAIN, Marks


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
    marks: Marks = PLAIN,
) -> tuple[Table, Table]:
    """The tables in two files, with the same columns in the same order and of the same types.

    `columns` selects and orders, `drop` leaves out; columns without names are "1", "2", …. Columns
    are matched by name if both files have names, and by position otherwise. Refused are the same
    content twice (unless its values are so few that independent draws coincide), columns of one file
    only, columns of different kinds (numbers here, words there; a kind that only one file has is an
    outcome as long as it is less than half of the column), and, unless `columns` names them, columns
    that look like a row number, a time or an identifier.
    """
    wanted, unwanted = _choice(columns, drop)
    same = ""
    if _same_file(p_path, q_path):
        same = "are the same file"
    else:
        p, q = load(p_path, max_bytes, marks), load(q_path, max_bytes, marks)
        if p.origin.sha256 == q.origin.sha256 and not may_coincide(_rows(p.table())):
            same = "have the same content, byte for byte"
    if same:
        raise UnreadableFile(
            f"{str(p_path)!r} and {str(q_path)!r} {same}; an audit compares outputs on one input with "
            "outputs on its neighbour: give a file of each"
        )
    if p.origin.file != q.origin.file:
        p, q = (replace(side, shown=side.origin.file) for side in (p, q))
    refuse_repeated_header(p, q)
    return _matched(p, q, wanted, unwanted)


def frame_pair(
    p: Any, q: Any, *, columns: Sequence[str] | None = None, drop: Sequence[str] | None = None
) -> tuple[Table, Table] | None:
    """Two data frames with the same columns in the same order and of the same types.

    None if they are no data frames. One of several columns beside an array is refused: the names alone
    would tell them apart.
    """
    one, other = frame_content("p", p), frame_content("q", q)
    if one and other:
        return _matched(one, other, *_choice(columns, drop))
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


def _choice(
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
    listed = [str(entry) for entry in checks.listed(name, given)]
    if not listed:
        raise InvalidInput(f"{name} must name at least one column, got an empty list; leave it out")
    if (double := repeated(listed)) is not None:
        raise InvalidInput(f"{name} names {double!r} more than once; name every column once")
    return listed


def _same_file(p_path: str | Path, q_path: str | Path) -> bool:
    try:
        return os.path.samefile(p_path, q_path)
    except OSError:  # one is missing: said when it is read
        return False


def _rows(table: Table) -> list[str]:
    """Every row as a text, the same for the same cells only."""
    return list(map(repr, zip(*(column.tolist() for column in table.columns), strict=True)))


def _matched(
    p: Content, q: Content, wanted: list[str] | None, unwanted: list[str] | None
) -> tuple[Table, Table]:
    """Both tables with the same columns, of which nothing but the outputs tells them apart."""
    for side in (p, q):
        refuse_totals(side)
    p, q = _same_columns(*_chosen(p, q, wanted, unwanted))
    if wanted is None:
        refuse_identifiers(p, q)
    pairs = list(zip(p.columns, q.columns, strict=True))
    p = replace(p, columns=tuple(_zero_one(a, b) for a, b in pairs))
    q = replace(q, columns=tuple(_zero_one(b, a) for a, b in pairs))
    refuse_writing(p, q)
    arrays = [_same_type(a.array(), b.array()) for a, b in zip(p.columns, q.columns, strict=True)]
    return p.table([a for a, _ in arrays]), q.table([b for _, b in arrays])


def _chosen(
    p: Content, q: Content, wanted: list[str] | None, unwanted: list[str] | None
) -> tuple[Content, Content]:
    """Both tables, each with the columns asked for."""
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


def _same_columns(p: Content, q: Content) -> tuple[Content, Content]:
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
        f"{one.shown} has {_enumerated(only)}, which {other.shown} does not have"
        for one, only, other in ((p, only_p, q), (q, only_q, p))
        if only
    ]
    if said:
        both = [name for name in p.called if name in q.called]
        remedy = "give the same outputs the same name in both"
        if both:
            dropped, kept = option("drop", only_p + only_q), option("columns", both)
            remedy = f"use what both have, with {dropped} or {kept}"
        raise UnreadableFile(f"{', and '.join(said)}; {remedy}")
    return p, q.take(p.called)


def _enumerated(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    noun = "the column " if len(names) == 1 else "the columns "
    return noun + ", ".join(repr(name) for name in names[:most]) + more


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
