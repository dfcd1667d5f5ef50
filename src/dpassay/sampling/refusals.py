"""Refusals of two tables whose differences come from how they were written, not from the mechanism.

Such differences would look like violations: row numbers, time stamps and identifiers, numbers rounded in
one file only, several ways to write a missing value, capitals, totals. Each rule looks for a pattern that
software leaves behind and mechanisms hardly do, and allows what outputs themselves may do: a few fine
numbers beside rounded ones, a word that occurs in one file only. If the outputs do differ so, they can
still be given as arrays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from dpassay._typing import AnyArray, IntArray
from dpassay.errors import UnreadableFile
from dpassay.sampling.columns import KIND_OF_TYPE, Column, Content, as_objects

_FEW = 20  # rows from which an order is no accident
#: Numbers whose digits are counted, how many of them are needed, and how many must differ.
_ROWS, _NUMBERS, _DISTINCT = 5000, 100, 20
#: Significant digits of rounded numbers, at most: doubles, and narrower floats.
_DOUBLE, _FLOAT = 15, 6
#: The share of the other file's numbers that must have more digits.
_FINER = 0.5
#: The share of either file that must be words which differ in case alone.
_CAPITALS = 0.05
#: What the last row of a spreadsheet is called.
_SUMMARIES = (
    *("total", "totals", "grand total", "sum", "mean", "average", "count", "all"),
    *("summe", "gesamt", "insgesamt", "mittelwert", "somme", "moyenne", "suma", "totale"),
)


def refuse_repeated_header(p: Content, q: Content) -> None:
    """Refuse a file whose first row is the header of the other but, by what follows, not its own."""
    for one, other in ((p, q), (q, p)):
        if other.named and not one.named:
            first = tuple(column.array()[0] for column in one.columns)
            if first == other.called:
                raise UnreadableFile(
                    f"{one.shown} has {first[0]!r} in its first row and again below, which looks like a "
                    "repeated header: it would count as an output. Remove it from the rows below; if it "
                    "is an output, give arrays to from_samples"
                )


def refuse_identifiers(p: Content, q: Content) -> None:
    """Refuse columns that tell any two tables apart: row numbers, time stamps, identifiers, run names."""
    if len(p.called) < 2:
        return
    for name, a, b in zip(p.called, p.columns, q.columns, strict=True):
        why = ""
        if (one := _only_value(a)) and (other := _only_value(b)) and one != other:
            why = f"has one value in all of {p.shown} and another in all of {q.shown}"
        for side, column in ((q, b), (p, a)):
            if found := _index_like(column):
                why = f"of {side.shown} {found}"
        if why:
            rest = [other for other in p.called if other != name]
            raise UnreadableFile(
                f"{p.column(name)} {why}. It differs between any two tables, whatever the mechanism "
                f"does, and would look like a violation; leave it out with {option('drop', [name])}, or "
                f"name the columns that are outputs with {option('columns', rest)}"
            )


def refuse_writing(p: Content, q: Content) -> None:
    """Refuse columns that were written in two ways."""
    for name, a, b in zip(p.called, p.columns, q.columns, strict=True):
        for rule in (_kinds, _digits, _no_number, _capitals):
            if found := rule(a, b):
                raise UnreadableFile(
                    f"{p.column(name)} holds {found[0]} in {p.shown} and {found[1]} in {q.shown}: a "
                    "formatting difference would look like a violation. Format both files in the same "
                    "way; if the outputs do differ so, pass arrays to from_samples"
                )


def option(name: str, values: Sequence[str]) -> str:
    """An argument as Python and as the command line write it."""
    few = list(values[:8])
    listed = ", ".join(map(repr, few)) + (", …" if len(values) > 8 else "")
    return f"{name}=[{listed}] (--{name} {','.join(few)}{',…' if len(values) > 8 else ''})"


def _only_value(column: Column) -> tuple[object] | None:
    """The value of all cells, if there is only one and none is missing."""
    values = column.values.tolist()
    if column.missing or len(values) < _FEW or any(value != values[0] for value in values):
        return None
    return (values[0],)


def _index_like(column: Column) -> str:
    """Why a column is an index and no output; empty if it is not."""
    values = column.values
    if len(values) < _FEW:
        return ""
    kind, n = column.kinds.most_common(1)[0]
    if n < len(values):  # a total below row numbers does not hide them
        values = as_objects(v for v in values if KIND_OF_TYPE.get(type(v)) == kind)
    if n < _FEW or kind not in ("numbers", "dates", "words", "bytes"):
        return ""
    if kind in ("words", "bytes"):
        runs, distinct = 1 + np.count_nonzero(values[1:] != values[:-1]), len(set(values.tolist()))
        same = "all different" if distinct == n else "the same in a row only"
        told = 2 * distinct > n and runs == distinct
        return f"holds {kind} that are {same}, as identifiers and time stamps are" if told else ""
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
    whole = values.dtype.kind == "i" or all(type(value) is int for value in values)
    if whole and int(values.max()) - int(values.min()) < 2 * n and _different(values):
        return "holds whole numbers without repetition and nearly without gaps, as row numbers are"
    return ""


def _different(values: AnyArray) -> bool:
    return len(set(values.tolist())) == len(values)


def refuse_totals(side: Content) -> None:
    """Refuse the row of totals that a spreadsheet adds at the end, also in columns that are left out."""
    for name, column in zip(side.called, side.columns, strict=True):
        values = column.array()
        last = values[-1] if len(values) else None
        label = isinstance(last, str) and last.casefold() in _SUMMARIES
        if label and np.count_nonzero(values == last) == 1:
            raise UnreadableFile(
                f"{side.column(name)} of {side.shown} holds {last!r} in its last row only, which looks "
                "like a row of totals: it would count as an output. Remove that row; if it is an output, "
                "give arrays to from_samples"
            )


_Written = tuple[str, str] | None  # what either file holds, if that is a difference in writing


def _kinds(a: Column, b: Column) -> _Written:
    """Kinds of values: one that only one file has is an outcome if it is rare."""
    kinds = (a.kinds, b.kinds)
    odd = any(
        one and other and any(2 * one[kind] >= one.total() for kind in one if kind not in other)
        for one, other in (kinds, kinds[::-1])
    )
    odd |= (not kinds[0] and not b.missing) or (not kinds[1] and not a.missing)
    if not odd:
        return None
    here, there = (
        " and ".join(kind for kind, _ in found.most_common()) or "nothing" for found in kinds
    )
    return here, there


def _digits(a: Column, b: Column) -> _Written:
    """Numbers rounded to fewer decimals, or to fewer significant digits, in one file."""
    values = [_finite_numbers(column) for column in (a, b)]
    if min(map(len, values)) < _NUMBERS or all(one.dtype.kind == "i" for one in values):
        return None
    narrow = any(one.dtype == np.float32 for one in values)  # both are compared as such
    values = [one.astype(np.float32 if narrow else np.float64) for one in values]
    counts = [_digit_counts(one) for one in values]
    full = [bool(np.any(one[:, 1] > (_FLOAT if narrow else _DOUBLE))) for one in counts]
    for k, what in enumerate(("decimals", "significant digits")):
        most = [
            math.inf if is_full else one[:, k].max()
            for one, is_full in zip(counts, full, strict=True)
        ]
        low, high = np.argsort(most, kind="stable").tolist()
        finer = np.mean(counts[high][:, k] > most[low])
        if most[0] != most[1] and finer >= _FINER and np.unique(values[low]).size >= _DISTINCT:
            here, there = (
                "numbers of full precision" if n == math.inf else f"numbers of up to {n} {what}"
                for n in most
            )
            return here, there
    return None


def _finite_numbers(column: Column) -> AnyArray:
    """The finite numbers among the first rows of a column, without those that no double holds."""
    values = column.values[:_ROWS]
    if values.dtype.kind == "O":
        kept = [v for v in values if type(v) in (int, float) and abs(v) < 2**1023]
        values = np.array(kept, dtype=float)
    if values.dtype.kind not in "if":
        return np.zeros(0)
    return values if values.dtype.kind == "i" else values[np.isfinite(values)]


def _digit_counts(values: AnyArray) -> IntArray:
    """Decimals and significant digits of each number, in its shortest decimal representation."""
    found = [Decimal(text).normalize().as_tuple() for text in map(str, values)]
    return np.array([(max(0, -int(one.exponent)), len(one.digits)) for one in found])


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
    if values.dtype.kind == "f" and np.isnan(values).any():
        found.add("NaN")
    for value in values.tolist() if values.dtype.kind == "O" else ():
        if isinstance(value, str):
            found.add(repr(value))
        elif isinstance(value, float) and math.isnan(value):
            found.add("NaN")
    return found


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
