"""The leaves of many outputs as one long table: which output, row and column, and which value.

Collections have no fixed columns: a set, a dictionary, a list of records, a data frame or a tree differs
in shape from one output to the next. Here every leaf (a number, a text, None) is one row of a table with

    owner   the output it belongs to
    table   the collection in which rows are counted (the outermost list, or the frame), by its path
    place   its row in that collection
    column  its path without row numbers: "b" of a frame, "[].age" of a list of dictionaries
    code    a 64-bit hash of its value
    number  the value of a number, NaN otherwise

A frame (a dictionary of lists of one length) and a list of dictionaries have the same tables. Hashes are
functions of the single output, so that any feature computed from the table is one too. Structures are
read once, however many outputs share them (`outputs.structure_leaves`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.structure_leaves import DERIVED, UNIT, StructureLeaves, text_hash

#: The calendar part of dates that is numbered as Python does it.
WEEKDAY = "weekday (Monday = 0)"

Hashes = npt.NDArray[np.uint64]

#: Leaves of a row are paired with so many next ones.
_LAGS = 4


def mix(*parts: Any) -> Hashes:
    """One hash of several (splitmix64, Steele, Lea & Flood 2014); the order of the parts counts."""
    total = np.zeros(1, dtype=np.uint64)
    for part in parts:
        x = (
            total * np.uint64(3)
            + np.asarray(part).astype(np.uint64)
            + np.uint64(0x9E3779B97F4A7C15)
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total = x ^ (x >> np.uint64(31))
    return total


def changes(*columns: AnyArray) -> IntArray:
    """Where one of some columns differs from the item before."""
    new = np.ones(columns[0].size, dtype=bool)
    new[1:] = np.logical_or.reduce([x[1:] != x[:-1] for x in columns])
    return np.flatnonzero(new)


def grouped(key: AnyArray) -> tuple[IntArray, IntArray]:
    """An order in which equal keys are neighbours, as they came, and where each group begins in it."""
    order = np.argsort(key, kind="stable")
    return order, changes(key[order])


def number_hash(values: FloatArray) -> Hashes:
    """Hashes of numbers: of their bits, with −0.0 as 0.0."""
    return mix((np.asarray(values, dtype=float) + 0.0).view(np.uint64))


@dataclass(frozen=True, eq=False)
class LeafTable:
    """The leaves of `size` outputs, in the order of owner, table and place."""

    size: int
    texts: dict[int, str] = field(repr=False)  # columns, their units, tables, values that are text
    owner: IntArray
    table: Hashes
    place: IntArray
    column: Hashes
    code: Hashes
    number: FloatArray

    @classmethod
    def of(cls, outputs: Outputs) -> LeafTable:
        """Each structure is read once; a table is kept for as long as its outputs are."""
        if outputs not in _TABLES:
            _TABLES[outputs] = cls.records(outputs, derived=True)
        return _TABLES[outputs]

    @classmethod
    def records(cls, outputs: Outputs, *, derived: bool = False) -> LeafTable:
        """The leaves; with what is derived from them if asked for."""
        n = len(outputs)
        seen, back = np.unique(outputs.all_codes, return_inverse=True)
        shapes = StructureLeaves([outputs.structures[k] for k in seen.tolist()], derived)
        start = np.array(shapes.starts)
        many = np.diff(start)[back]
        owner = np.repeat(np.arange(n), many)
        leaf = np.arange(owner.size) + np.repeat(start[back] - (np.cumsum(many) - many), many)
        table, place, column, code, number, source, origin = (x[leaf] for x in shapes.leaves)
        own = np.flatnonzero(source >= 0)
        number[own] = outputs.numbers[owner[own], source[own]]
        if outputs.rest is not None:
            number[own] += outputs.rest[owner[own], source[own]]
        known = np.flatnonzero(np.isfinite(number))
        code[known] = number_hash(number[known])
        origin[np.repeat((many > DERIVED) | (not derived), many)] = 0
        found = cls(n, shapes.texts, owner, table, place, column, code, number)
        more = _derived(found, origin)
        if not more[0].size:
            return found
        at = np.searchsorted(owner, more[0], side="right")  # after the other leaves of its output
        joined = (np.insert(*pair) for pair in zip(found.arrays, [at] * 6, more, strict=True))
        return cls(n, shapes.texts, *joined)

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        return self.owner, self.table, self.place, self.column, self.code, self.number

    def joined(self, other: LeafTable) -> LeafTable:
        """These outputs, and others after them."""
        moved = (other.owner + self.size, *other.arrays[1:])
        both = (np.concatenate(pair) for pair in zip(self.arrays, moved, strict=True))
        return LeafTable(self.size + other.size, {**self.texts, **other.texts}, *both)

    def __len__(self) -> int:
        return self.owner.size

    def column_name(self, leaf: int) -> str:
        """The column of a leaf, for people."""
        known = self.texts[int(self.column[leaf])]
        found = known.removeprefix("[].").removesuffix("[]").strip(".")
        return found or ("the items" if known else "the output")

    def unit(self, leaf: int) -> str:
        """ "date" or "duration" where its column holds such values, in seconds; else empty."""
        return self.texts.get(text_hash(self.texts[int(self.column[leaf])] + UNIT), "")

    def text(self, leaf: int) -> str:
        """The value of a leaf, for people."""
        known = self.texts.get(int(self.code[leaf]))
        return known if known is not None else f"{self.number[leaf]:.10g}"

    def repeated(self, least: int) -> LeafTable:
        """Only leaves whose value occurs in its column so many times or more: others have no counts."""
        order, at = self.by_entry
        size = np.diff(np.append(at, len(self)))
        use = np.zeros(len(self), dtype=bool)
        use[order] = np.repeat(size >= least, size)
        found = self.where(use)
        number, keep = np.cumsum(use) - 1, size >= least
        starts = np.cumsum(np.append(0, size[keep]))[:-1]
        found.__dict__["by_entry"] = number[order[use[order]]], starts  # no need to sort again
        return found

    def where(self, use: AnyArray) -> LeafTable:
        return LeafTable(self.size, self.texts, *(x[use] for x in self.arrays))

    def first(self, most: int) -> LeafTable:
        """At most so many outputs."""
        end = int(np.searchsorted(self.owner, most))
        return LeafTable(min(self.size, most), self.texts, *(x[:end] for x in self.arrays))

    @cached_property
    def by_entry(self) -> tuple[IntArray, IntArray]:
        """The leaves by column and value, as `grouped` has them."""
        return grouped(mix(self.column, self.code))

    @cached_property
    def rows(self) -> IntArray:
        """A number made of owner, table and place: leaves of one row share it."""
        table = (self.table >> np.uint64(44)).astype(np.int64)
        return (self.owner << 40) + (table << 20) + self.place % (1 << 20)

    @cached_property
    def paired(self) -> tuple[IntArray, IntArray]:
        """Leaves of one row, each with the next few: two arrays of places in the table."""
        order = np.argsort(self.rows, kind="stable")
        row = self.rows[order]
        first, second = [], []
        for lag in range(1, _LAGS + 1):
            same = row[lag:] == row[:-lag]
            first.append(order[:-lag][same])
            second.append(order[lag:][same])
        a, b = np.concatenate(first), np.concatenate(second)
        by = np.argsort(a, kind="stable")  # as they are read: sums must not depend on other outputs
        return a[by], b[by]

    @cached_property
    def groups(self) -> IntArray:
        """A number made of owner and column."""
        return (self.owner << 40) + (self.column >> np.uint64(24)).astype(np.int64)

    @cached_property
    def by_group(self) -> IntArray:
        """The leaves by owner and column; within those as they are read, which is by place."""
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def by_value(self) -> tuple[IntArray, IntArray, IntArray]:
        """The numbers by owner, column and value; where each group begins, and how many it has."""
        known = self.by_group[np.isfinite(self.number[self.by_group])]
        own = self.groups[known]
        at = changes(own)
        count = np.diff(np.append(at, own.size))
        if at.size < own.size and np.ptp(count) == 0:  # as in vectors, which are sorted at once
            rows = known.reshape(at.size, -1)
            known = np.take_along_axis(rows, np.argsort(self.number[rows], axis=1), axis=1).ravel()
        elif at.size < own.size:
            known = known[np.lexsort((self.number[known], own))]
        return known, at, count


#: Tables of outputs that are still in use: training draws are read by several scores.
_TABLES: weakref.WeakKeyDictionary[Outputs, LeafTable] = weakref.WeakKeyDictionary()


def _month(seconds: FloatArray) -> AnyArray:
    return np.floor(seconds).astype(np.int64).astype("M8[s]").astype("M8[M]")


def _last_digit(x: FloatArray) -> FloatArray:
    found, whole = np.full(x.size, np.nan), np.flatnonzero((x == np.floor(x)) & (np.abs(x) >= 10))
    found[whole] = np.abs(x[whole]) % 10
    return found


def _cents(x: FloatArray) -> FloatArray:
    hundred = np.abs(x) * 100
    cents = np.rint(hundred)
    near = np.abs(hundred - cents) < 1e-12 * np.maximum(cents, 1)
    found, exact = np.full(x.size, np.nan), np.flatnonzero(near & (x != np.floor(x)))
    found[exact] = cents[exact] % 100
    return found


#: What further columns are made of dates (seconds since 1970) and of other numbers, by name.
_OF_DATES: dict[str, Callable[[FloatArray], AnyArray]] = {
    "second": lambda x: np.floor(x) % 60,
    "minute": lambda x: np.floor(x / 60) % 60,
    "hour": lambda x: np.floor(x / 3600) % 24,
    WEEKDAY: lambda x: (np.floor(x / 86400) + 3) % 7,  # 1970 began on a Thursday
    "day": lambda x: np.floor(x / 86400) - _month(x).astype("M8[D]").astype(np.int64) + 1,
    "month": lambda x: _month(x).astype(np.int64) % 12 + 1.0,
}
_OF_NUMBERS: dict[str, Callable[[FloatArray], AnyArray]] = {
    "last digit": _last_digit,
    "cents": _cents,
}
#: How the names of columns of digits begin.
OF_DIGITS = tuple(f"the {name} of " for name in _OF_NUMBERS)


def _derived(t: LeafTable, origin: IntArray) -> tuple[AnyArray, ...]:
    """Calendar parts of dates (origin 2), the last digit and cents of numbers (1): as further leaves."""
    parts = [tuple(x[:0] for x in t.arrays)]
    for kind, columns in ((2, _OF_DATES), (1, _OF_NUMBERS)):
        rows = np.flatnonzero((origin == kind) & (np.abs(t.number) < 2.0**53))
        for name, of in columns.items() if rows.size else ():
            value = of(t.number[rows])
            keep = np.isfinite(value)
            own, value = rows[keep], value[keep]
            column = mix(t.column[own], text_hash(name))
            at = changes(column)
            for new, old in set(zip(column[at].tolist(), t.column[own[at]].tolist(), strict=True)):
                t.texts[new] = f"the {name} of {t.texts[old].removesuffix('[]') or 'the output'}"
            apart = mix(t.table[own], text_hash("derived"))  # no columns of the row itself
            parts.append((t.owner[own], apart, t.place[own], column, number_hash(value), value))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
