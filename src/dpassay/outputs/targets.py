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
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.errors import BadOutput
from dpassay.outputs.canonical import from_raw
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

    @property
    def thresholds(self) -> list[int]:
        """Numbers of columns in which rows are asked to agree: all, all but one, two, one."""
        many = len(self.columns)
        return sorted({k for k in (1, 2, many - 1, many) if 1 <= k <= many}, reverse=True)

    @property
    def names(self) -> list[str]:
        """What each of `features` is called."""
        many = len(self.columns)
        equal = [
            f"the number of rows equal to ({self.words})"
            if k == many
            else f"the number of rows that agree with ({self.words}) in {k} columns or more"
            for k in self.thresholds
        ]
        near = [f"the number of rows within distance {r:g} of ({self.words})" for r in RADII]
        return [*equal, *near, f"1 − distance of the nearest row to ({self.words})"]

    def features(self, t: LeafTable) -> FloatArray:
        """One row of features an output."""
        found = np.zeros((t.size, len(self.names)))
        leaf, which = self._leaves(t)
        if not leaf.size:
            return found
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

    def _leaves(self, t: LeafTable) -> tuple[IntArray, IntArray]:
        """The leaves in columns of the record, and which column each is in."""
        columns = np.array(self.columns, dtype=np.uint64)
        order = np.argsort(columns)
        at = np.minimum(np.searchsorted(columns[order], t.column), columns.size - 1)
        leaf = np.flatnonzero(columns[order][at] == t.column)
        return leaf, order[at[leaf]]


def targets_of(pair: Any) -> list[Target]:
    """The records that one input has more often than the other; none where they are many, or no rows."""
    try:
        inputs = from_raw([pair[0], pair[1]], 2)
    except (BadOutput, RecursionError):
        return []
    if inputs.numbers.shape[1] > _ROWS:
        return []
    t = LeafTable.records(inputs)
    order, at = grouped(t.rows)
    sizes = np.diff(np.append(at, order.size))
    with np.errstate(over="ignore"):
        total = mix(t.table[order[at]], np.add.reduceat(mix(t.column, t.code)[order], at))
    own = [Counter(total[t.owner[order[at]] == side].tolist()) for side in (0, 1)]
    differing = list((own[0] - own[1]) | (own[1] - own[0]))
    if not 0 < len(differing) <= _MOST:
        return []
    found = []
    for row in differing:
        k = int(np.flatnonzero(total == row)[0])
        leaves = order[at[k] : at[k] + sizes[k]]
        if not t.texts[int(t.table[leaves[0]])].endswith("{}"):  # the table of keys
            found.append(_target(t, leaves))
    return found


def _target(t: LeafTable, leaves: IntArray) -> Target:
    spreads = []
    for leaf in leaves:
        x = t.number[(t.column == t.column[leaf]) & np.isfinite(t.number)]
        spread = float(np.ptp(x)) if x.size else 0.0
        spreads.append(spread if 0 < spread < np.inf else 1.0)
    shown = [f"{t.column_name(k)} = {t.text(k)}" for k in leaves.tolist()]
    return Target(
        ", ".join(shown),
        tuple(int(x) for x in t.column[leaves]),
        tuple(int(x) for x in t.code[leaves]),
        t.number[leaves],
        np.array(spreads),
    )
