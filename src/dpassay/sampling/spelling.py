"""What differs in writing alone between two files, and would pass for a violation.

Each rule asks for a pattern that ways of writing leave behind and mechanisms hardly do, and is silent
where the outputs themselves may differ: a few fine numbers beside rounded ones, a word that one file
alone has. What is refused can still be given as arrays, if the outputs do differ so.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from dpassay._typing import AnyArray, BoolArray, FloatArray
from dpassay.errors import UnreadableFile
from dpassay.sampling.columns import Column, Content

#: Numbers that are looked at, and how many of them are needed; how many must differ.
_ROWS, _FEW, _DISTINCT = 5000, 100, 20
#: Whole numbers below are doubles, rounded.
_LARGEST = 2**1023
#: The most decimals and significant digits that tell of rounding, of doubles and of narrower floats.
_DECIMALS, _DIGITS = (12, 4), (13, 5)
#: The share of the other file's numbers that must have more.
_FINER = 0.5
#: What the last row of a spreadsheet is called.
_SUMMARIES = ("total", "totals", "sum", "mean", "average", "count", "all")
#: The share of either file that must be words which differ in case alone.
_SPELLED = 0.05


def refuse_other_spelling(p: Content, q: Content) -> None:
    """Refuse columns that two programs seem to have written in different ways, and rows of no run."""
    for side in (p, q):
        for name, column in zip(side.called, side.columns, strict=True):
            _refuse_rows(column, name, side)
    for name, a, b in zip(p.called, p.columns, q.columns, strict=True):
        where = p.column(name), p.shown, q.shown
        _refuse_rounding(a, b, where)
        _refuse_blanks(a, b, where)
        _refuse_spelling(a, b, where)


def _refuse_rows(column: Column, name: str, side: Content) -> None:
    """Rows that are no outputs: the header once more, or what a spreadsheet adds at the end."""
    values = column.values
    if values.dtype.kind != "O" or 2 * column.kinds["numbers"] < len(values):
        return
    words = [value for value in values.tolist() if isinstance(value, str)]
    odd = next((word for word in words if word == name and side.named), "")
    if len(words) == 1 and values[-1] == words[0] and words[0].casefold() in _SUMMARIES:
        odd = words[0]
    if odd:
        what = "the header once more" if odd == name else "the row of a summary"
        raise UnreadableFile(
            f"{side.column(name)} of {side.shown} has {odd!r} among its numbers, which looks like "
            f"{what}: it would count as an output. Remove that row; if it is an output, give arrays "
            "instead of files"
        )


_Where = tuple[str, str, str]


def _refuse_rounding(a: Column, b: Column, where: _Where) -> None:
    """Numbers rounded to fewer digits in one file than in the other."""
    name, first, second = where
    values = [_numbers(one) for one in (a, b)]
    if min(map(len, values)) < _FEW or all(one.dtype.kind == "i" for one in values):
        return
    narrow = any(one.dtype == np.float32 for one in values)  # both are compared as such
    values = [one.astype(np.float32 if narrow else np.float64) for one in values]
    for way, most in ((_decimals, _DECIMALS[narrow]), (_digits, _DIGITS[narrow])):
        found = [way(one, most) for one in values]
        low, high = (0, 1) if found[0] < found[1] else (1, 0)
        if found[0] == found[1]:
            continue
        more = _more_decimals if way is _decimals else _more_digits
        if not _rounded(values[low], more(values[high], int(found[low]))):
            continue
        what = "decimals" if way is _decimals else "significant digits"
        said = [f"up to {n:g} {what}" if n < math.inf else "full precision" for n in found]
        raise UnreadableFile(
            f"{name} has numbers of {said[0]} in {first} and of {said[1]} in {second}: how they are "
            "written would tell them apart. Write both with the same digits; if the mechanism itself "
            "rounds so, give arrays instead of files"
        )


def _numbers(column: Column) -> AnyArray:
    """The finite numbers of a column that doubles hold, as far as they are looked at."""
    values = column.values[:_ROWS]
    if values.dtype.kind == "O":
        kept = [v for v in values if type(v) in (int, float) and abs(v) < _LARGEST]
        values = np.array(kept, dtype=float)
    if values.dtype.kind not in "if":
        return np.zeros(0)
    return values if values.dtype.kind == "i" else values[np.isfinite(values)]


def _decimals(values: FloatArray, most: int) -> float:
    """After how many decimals all numbers end; ∞ if after more than `most`, or than floats can tell."""
    size = float(np.median(np.abs(values))) or 1.0
    most = min(most, math.floor(-math.log10(size * np.finfo(values.dtype).eps)) - 2)
    return next((d for d in range(most + 1) if not _more_decimals(values, d).any()), math.inf)


def _digits(values: FloatArray, most: int) -> float:
    """How many significant digits the numbers have at most; ∞ if more than `most`."""
    return next((k for k in range(1, most + 1) if not _more_digits(values, k).any()), math.inf)


def _more_decimals(values: FloatArray, decimals: int) -> BoolArray:
    """Which numbers have more decimals."""
    return np.asarray(np.round(values, decimals) != values)


def _more_digits(values: FloatArray, digits: int) -> BoolArray:
    """Which numbers have more significant digits, to within the last bits."""
    exact = values.astype(float)
    size = np.abs(np.where(exact == 0, 1.0, exact))
    unit = 10.0 ** (np.floor(np.log10(size)) - digits + 1)
    return np.asarray(
        np.abs(np.round(exact / unit) * unit - exact) > 4 * np.finfo(values.dtype).eps * size
    )


def _rounded(coarse: FloatArray, finer: BoolArray) -> bool:
    """Whether one file is rounded and the other is not, but for what is rare in it."""
    return float(np.mean(finer)) >= _FINER and np.unique(coarse).size >= _DISTINCT


def _refuse_blanks(a: Column, b: Column, where: _Where) -> None:
    """Cells without a number that are called one thing in one file and another in the other."""
    name, first, second = where
    marks = [_marks(one) for one in (a, b)]
    if all(len(one) == 1 for one in marks) and marks[0] != marks[1]:
        said = [next(iter(one)) for one in marks]
        raise UnreadableFile(
            f"{name} has {said[0]} where there is no number in {first}, and {said[1]} in {second}: two "
            "ways of writing the same would pass for a violation. Write both alike; if the outputs do "
            "differ so, give arrays instead of files"
        )


def _marks(column: Column) -> set[str]:
    """What stands in a column of numbers where there is none, in words."""
    values = column.values
    found = {"an empty cell"} if column.missing else set()
    if column.kinds["numbers"] * 2 < len(values):
        return set()
    if values.dtype.kind == "f":
        return found | ({"NaN"} if np.isnan(values).any() else set())
    if values.dtype.kind != "O":
        return found
    for value in values.tolist():
        if isinstance(value, str):
            found.add(repr(value))
        elif isinstance(value, float) and math.isnan(value):
            found.add("NaN")
    return found


def _refuse_spelling(a: Column, b: Column, where: _Where) -> None:
    """Words that are the same in both files but for capitals."""
    if a.values.dtype.kind != "O" or b.values.dtype.kind != "O":
        return
    counts = [Counter(v for v in one.values.tolist() if isinstance(v, str)) for one in (a, b)]
    own = [
        {w.casefold(): w for w in one if w not in other} for one, other in (counts, counts[::-1])
    ]
    both = own[0].keys() & own[1].keys()
    rows = [
        sum(n for w, n in one.items() if w.casefold() in both and w in mine.values())
        for one, mine in zip(counts, own, strict=True)
    ]
    if both and all(n >= _SPELLED * c.rows for n, c in zip(rows, (a, b), strict=True)):
        name, first, second = where
        word = min(both)
        raise UnreadableFile(
            f"{name} has {own[0][word]!r} in {first} and {own[1][word]!r} in {second}: how words are "
            "written would tell them apart. Write both alike; if the outputs do differ so, give arrays "
            "instead of files"
        )
