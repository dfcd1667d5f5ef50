"""Where numbers fall among sorted edges, by a table: `np.searchsorted` at a fraction of its cost.

A number's bucket is found by arithmetic that never falls where the number rises, rounding included. So of
the edges only those in its own bucket are in doubt: mostly one or none. Numbers in the few buckets with
more are searched for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray

#: Buckets of a table: a few thousand stay in the processor's cache.
_BUCKETS = 4096
#: A table is of no use if more than this share of the edges are in buckets with several.
_CROWD = 0.25
#: Numbers that are looked up at a time, and fewer than which a table is not worth it.
_CHUNK, _FEW = 1 << 15, 1 << 10


@dataclass(frozen=True, eq=False)
class Table:
    """By bucket: an edge, what belongs to numbers below it and above; and whether it has more."""

    low: float
    scale: float  # buckets in a unit
    edge: FloatArray
    found: IntArray  # two for each bucket
    crowded: BoolArray | None  # None where no bucket is

    @classmethod
    def of(cls, edges: FloatArray, levels: IntArray) -> Table | None:
        """None where too many buckets would hold several edges."""
        with np.errstate(over="ignore", divide="ignore"):
            span = edges[-1] - edges[0] if edges.size else np.inf
            scale = _BUCKETS / span
        if not np.isfinite(span) or not np.isfinite(scale):
            return None
        low = float(edges[0])
        at = _buckets(edges, low, scale)
        many = np.bincount(at, minlength=_BUCKETS + 1)
        crowded = many > 1
        if many[crowded].sum() > _CROWD * edges.size:
            return None
        edge = np.full(_BUCKETS + 1, np.inf)
        edge[at] = edges
        before = np.cumsum(many) - many
        found = levels[np.column_stack([before, before + many])].ravel()
        return cls(low, float(scale), edge, found, crowded if crowded.any() else None)


@dataclass(frozen=True, eq=False)
class Lookup:
    """What belongs to the places among sorted edges: `levels[k]` to numbers with k edges at or below."""

    edges: FloatArray
    levels: IntArray

    def __call__(self, numbers: AnyArray) -> IntArray:
        """The level of each of some numbers, none of them NaN."""
        table = self._table if numbers.size >= _FEW else None
        if table is None:
            return self._search(numbers)
        result = np.empty(numbers.size, dtype=np.int64)
        for start in range(0, numbers.size, _CHUNK):
            some, out = numbers[start : start + _CHUNK], result[start : start + _CHUNK]
            at = _buckets(some, table.low, table.scale)
            table.found.take(2 * at + (some >= table.edge.take(at)), out=out, mode="clip")
            if table.crowded is not None:
                doubtful = np.flatnonzero(table.crowded.take(at))
                if doubtful.size:
                    out[doubtful] = self._search(some[doubtful])
        return result

    def _search(self, numbers: AnyArray) -> IntArray:
        return np.asarray(self.levels[np.searchsorted(self.edges, numbers, side="right")])

    @cached_property
    def _table(self) -> Table | None:
        return Table.of(self.edges, self.levels)


def _buckets(numbers: AnyArray, low: float, scale: float) -> IntArray:
    """The bucket of each number: 0 up to the first edge, the last from the last edge on."""
    with np.errstate(over="ignore"):
        place = numbers - low
        place *= scale
    return np.asarray(np.clip(place, 0.0, _BUCKETS, out=place).astype(np.int64))
