"""The records in which two inputs differ, and how near the rows of an output come to them.

The inputs are known and fixed, so that a comparison of an output with a record of theirs is a function of
the single output: post-processing. This is what attacks on synthetic data look at (Stadler, Oprisanu &
Troncoso 2022; TAPAS, Houssiau et al. 2022): rows equal to the target record, rows that agree with it in
some columns, the distance to the nearest row.

The distance of a row is Gower's (1971): the mean over the columns of the record of |x − r| / spread (1 at
most) for numbers, and of 0 or 1 for all else. A column that the row lacks counts 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.errors import BadOutput, InvalidInput
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.foreign_arrays import without_row_numbers
from dpassay.outputs.leaves import LeafTable, grouped, mix
from dpassay.records import Record

#: Inputs that differ in more records than this say nothing about a single one.
_MOST = 3
#: Rows of an input that are read.
_ROWS = 100_000
#: Rows within these distances are counted.
RADII = (0.02, 0.1, 0.3)


@dataclass(frozen=True, eq=False)
class Target(Record):
    """A record by its columns: hashes of their names and values, numbers (NaN for text), spreads."""

    words: str
    columns: tuple[int, ...]
    codes: tuple[int, ...]
    numbers: FloatArray
    spreads: FloatArray

    def _validate(self) -> None:
        many = len(self.columns)
        same = (many,) == (len(self.codes),) == self.numbers.shape == self.spreads.shape
        checks.require(
            many > 0 and same, "a record needs a code, a number and a spread for each column"
        )
        hashes = all(0 <= x < 1 << 64 for x in (*self.columns, *self.codes))
        checks.require(hashes, "columns and codes must be integers of 64 bits")
        checks.require(np.all(self.spreads > 0), "spreads must be above 0")

    @property
    def thresholds(self) -> list[int]:
        """Numbers of columns in which rows are asked to agree: all, all but one, two, one."""
        many = len(self.columns)
        return sorted({k for k in (1, 2, many - 1, many) if 1 <= k <= many}, reverse=True)

    @property
    def names(self) -> list[str]:
        equal = [
            f"the number of rows that agree with ({self.words}) in {k} columns or more"
            for k in self.thresholds[1:]
        ]
        near = [f"the number of rows within distance {r:g} of ({self.words})" for r in RADII]
        first, last = "the number of rows equal to", "1 − distance of the nearest row to"
        return [f"{first} ({self.words})", *equal, *near, f"{last} ({self.words})"]

    def features(self, t: LeafTable) -> FloatArray:
        """One row of features an output."""
        found = np.zeros((t.size, len(self.names)))
        columns = np.array(self.columns, dtype=np.uint64)
        order = np.argsort(columns)
        at = np.minimum(np.searchsorted(columns[order], t.column), columns.size - 1)
        leaf = np.flatnonzero(columns[order][at] == t.column)
        which = order[at[leaf]]  # column of the record
        number = np.isfinite(t.number[leaf]) & np.isfinite(self.numbers[which])
        with np.errstate(over="ignore"):
            gap = np.abs(t.number[leaf] - self.numbers[which]) / self.spreads[which]
        equal = t.code[leaf] == np.array(self.codes, dtype=np.uint64)[which]
        near = np.where(number, 1 - np.minimum(gap, 1.0), equal)
        order, at = grouped(t.rows[leaf])
        agree = np.add.reduceat(equal[order].astype(float), at)
        distance = 1 - np.add.reduceat(near[order], at) / len(self.columns)
        owner = t.owner[leaf[order[at]]]
        for k, least in enumerate(self.thresholds):
            found[:, k] = np.bincount(owner[agree >= least], minlength=t.size)
        for k, radius in enumerate(RADII, len(self.thresholds)):
            found[:, k] = np.bincount(owner[distance <= radius], minlength=t.size)
        np.maximum.at(found[:, -1], owner, 1 - distance)
        return found


def targets_of(pair: Any) -> list[Target]:
    """The records that one input has more often than the other; none where they are many, or no rows."""
    try:
        inputs = from_raw([without_row_numbers(pair[k]) for k in (0, 1)], 2)
    except (BadOutput, RecursionError):
        return []
    if inputs.numbers.shape[1] > _ROWS:
        return []
    t = LeafTable.records(inputs)
    order, at = grouped(t.rows)
    rows = np.split(order, at[1:])
    with np.errstate(over="ignore"):
        total = mix(t.table[order[at]], np.add.reduceat(mix(t.column, t.code)[order], at))
    owner = t.owner[order[at]]
    own = [Counter(total[owner == side].tolist()) for side in (0, 1)]
    differing = list((own[0] - own[1]) | (own[1] - own[0]))
    if not 0 < len(differing) <= _MOST:
        return []
    leaves = [rows[int(np.flatnonzero(total == row)[0])] for row in differing]
    return _targets(t, [row for row in leaves if not _of_keys(t, row)])


def _of_keys(t: LeafTable, row: IntArray) -> bool:
    """Whether a row is one of the table of keys that dictionaries have beside their values."""
    return t.texts[int(t.table[row[0]])].endswith("{}")


def closeness(records: Any, table: Any) -> FloatArray:
    """1 − distance of the nearest row of a table to each of some records."""
    records, table = without_row_numbers(records), without_row_numbers(table)
    both = LeafTable.records(from_raw([records, table], 2))
    order, at = grouped(both.rows)
    rows = [
        row
        for row in np.split(order, at[1:])
        if both.owner[row[0]] == 0 and not _of_keys(both, row)
    ]
    rows.sort(key=lambda row: int(both.place[row[0]]))
    if len(rows) != len(records):
        raise InvalidInput(
            "records must be rows: a data frame, a list of dictionaries or tuples, or an array of rows"
        )
    there = LeafTable.records(from_raw([table], 1))
    _refuse_other_columns(_kinds(both, np.concatenate(rows)), _kinds(there, np.arange(len(there))))
    return np.array([target.features(there)[0, -1] for target in _targets(both, rows)])


def _kinds(t: LeafTable, leaves: IntArray) -> dict[int, tuple[str, set[str]]]:
    """The columns of some leaves: the name of each, and whether it holds "numbers" or "text"."""
    found = {}
    order, at = grouped(t.column[leaves])
    for part in np.split(leaves[order], at[1:]):
        if part.size and not _of_keys(t, part):
            known = np.isfinite(t.number[part])
            words = (t.texts.get(code, "") for code in np.unique(t.code[part[~known]]).tolist())
            kinds = {"numbers"} if known.any() else set()
            kinds |= {"text"} if any(word.startswith(("'", '"')) for word in words) else set()
            found[int(t.column[part[0]])] = t.column_name(int(part[0])), kinds
    return found


def _refuse_other_columns(records: dict[int, Any], table: dict[int, Any]) -> None:
    """Refuse a table without rows, without a column of the records, or with another type in one."""
    if not table:
        raise InvalidInput("the table has no rows, and the records cannot be compared with it")
    names, has = (sorted(name for name, _ in one.values()) for one in (records, table))
    if missing := sorted(records[column][0] for column in records.keys() - table.keys()):
        if set(missing) <= set(has):
            raise InvalidInput(
                "the records and the table have different forms; give both as data frames, both as lists "
                "of dictionaries, or both as arrays of rows"
            )
        few = "has none of the" if missing == names else "lacks"
        raise InvalidInput(
            f"the table {few} columns of the records, {', '.join(missing)}; it has "
            f"{', '.join(has)}. Rename columns so that both have the same names, or drop from "
            "the records those that the table does not have"
        )
    for column, (name, mine) in records.items():
        theirs = table[column][1]
        if mine and theirs and not mine & theirs:
            raise InvalidInput(
                f"column {name} holds {mine.pop()} in the records and {theirs.pop()} in the table; "
                "convert it to one type in both"
            )


def _targets(t: LeafTable, rows: Sequence[IntArray]) -> list[Target]:
    """Some rows as records, with the spread of each column over all rows."""
    order, at = grouped(t.column)
    spreads = {}
    for part in np.split(order, at[1:]):
        x = t.number[part]
        x = x[np.isfinite(x)]
        spread = float(np.ptp(x)) if x.size else 0.0
        spreads[int(t.column[part[0]])] = spread if 0 < spread < np.inf else 1.0
    return [
        Target(
            ", ".join(f"{t.column_name(k)} = {t.text(k)}" for k in row.tolist()),
            tuple(t.column[row].tolist()),
            tuple(t.code[row].tolist()),
            t.number[row],
            np.array([spreads[column] for column in t.column[row].tolist()]),
        )
        for row in rows
    ]
