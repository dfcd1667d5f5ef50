"""The draws a loss is fitted to, with their keys found once for all losses, and their best features.

Every feature (`outputs.features`) is compared on the two inputs at all its thresholds. What counts is a
lower limit of the log-ratio of two frequencies,

    log (p̂ − z √(p̂(1−p̂)/n)) − log (q̂ + z √(q̂(1−q̂)/m) + z²/2m),        z² = 2 log(number of features),

in both orientations and for the complements: about what a certificate of that event would show, less the
price of choosing among many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs, concatenate
from dpassay.outputs.features import FAMILIES, OF_REPEATED, VALUE, block_rows, blocks, widths
from dpassay.outputs.keys import KeyedDraws, Layout, learn
from dpassay.outputs.leaves import OF_DIGITS, Hashes, LeafTable, changes
from dpassay.outputs.named_features import (
    Feature,
    is_single,
    single_in_column,
    subject_of,
    unit_of,
    without_numbers,
    words_of,
)
from dpassay.outputs.structure_leaves import TEXT_PARTS, WHOLE
from dpassay.outputs.targets import Target, targets_of
from dpassay.outputs.templates import written
from dpassay.sampling.samples import Batch, Sizes
from dpassay.scores.cell_counts import Binning, CellCounts

#: Training draws per side that are searched, of vectors (which other scores serve too) and of all else;
#: and leaves of them.
_ENOUGH, _LEAVES = (800, 2500), 400_000
#: Features among which those that are ranked again were chosen, about.
_SEARCHED = 10_000
#: Families of numbers and not of counts, of which outputs without any are 0.
_OF_THEIR_NUMBERS = ("summaries", "sorted")
#: A feature must differ from its most frequent value in this many draws.
_LEAST = 4
#: Thresholds that are compared as the share of draws beyond them doubles, about.
_THRESHOLDS = 12


def _plainness(tables: dict[str, LeafTable], family: str, first: int, second: int) -> int:
    """How plain a feature is, 0 the plainest.

    One number; a value, a key, or the number at a place of a list; others, such as a number anywhere in
    a list; parts of texts, and digits of numbers.
    """
    if family not in tables:
        return 2
    table = tables[family]
    column = table.column_name(first)
    if column.startswith((WHOLE, *OF_DIGITS)) or column.endswith(TEXT_PARTS):
        return 3
    if (family, second) == ("summaries", VALUE):
        return 0 if single_in_column(table, first) else 1
    if family == "by_place":
        return 1 if is_single(table, first) else 2
    if family == "values":
        other = tables["summaries"].column == table.column[first]  # of all values, also rare ones
        several = np.bincount(tables["summaries"].owner[other]).max() > 1
        return 2 if several and not np.isnan(table.number[first]) else 1
    return 2


def best_features(
    p: Outputs, q: Outputs, most: int, targets: Sequence[Target] = ()
) -> list[tuple[Feature, float]]:
    """The features with the largest limits, the largest first; no two of the same values.

    `targets` are records that rows may be compared with.
    """
    width = max(p.numbers.shape[1], 1)
    plain = p.is_plain and p.structures == q.structures
    enough = max(min(_ENOUGH[0] if plain else _ENOUGH[1], _LEAVES // width), 200)
    both = concatenate([_at_most(p, enough), _at_most(q, enough)])
    n, m = min(len(p), enough), min(len(q), enough)
    table = LeafTable.of(p).first(enough).joined(LeafTable.of(q).first(enough))
    repeated = table.repeated(_LEAST)
    tables = {family: repeated if family in OF_REPEATED else table for family in FAMILIES}
    extracted = {(family, 0): FAMILIES[family](tables[family], None) for family in FAMILIES}
    if len(repeated) > len(table) / 2:  # else rows do not repeat
        extracted |= {("block rows", width): block_rows(both, width) for width in widths(both)}
    dense = [(Feature("blocks", 0, name), column) for name, column in blocks(both).items()]
    for target in targets:
        columns = target.features(table).T
        dense += [
            (Feature("target", k, name, target=target), column)
            for k, (name, column) in enumerate(zip(target.names, columns, strict=True))
        ]
    every = np.arange(n + m)
    for k, (_, column) in enumerate(dense):
        extracted["dense", k] = every, np.full(n + m, k, np.uint64), column, every, every
    many = sum(changes(triples[1]).size for triples in extracted.values())
    z2 = 2 * math.log(many + 1)
    found = [
        (limit, family, key, width, int(first[at]), int(second[at]))
        for (family, width), (owner, keys, value, first, second) in extracted.items()
        for limit, key, at in _limits(owner, keys, value, n, m, z2, most)
    ]
    # of features with the same values the plainest is taken
    found.sort(key=lambda one: (-one[0], _plainness(tables, one[1], *one[4:])))
    chosen: dict[float, Feature] = {}  # features of the same limit have the same values, mostly
    for limit, family, key, width, one, two in found:
        if limit in chosen:
            continue
        if len(chosen) == most:
            break
        unit = subject = ""
        match family:
            case "dense":
                chosen[limit] = dense[width][0]
                continue
            case "block rows":
                row = both.numbers.reshape(-1)[one : one + width]
                listed = ", ".join(written(float(x)) for x in row)
                name = f"the number of rows ({listed}), {width} numbers a row"
            case _:
                name = words_of(tables[family], family, one, two)
                keys = extracted[family, width][1]
                if family in _OF_THEIR_NUMBERS and np.count_nonzero(keys == key) < n + m:
                    name += without_numbers(tables[family], one)
                unit = unit_of(tables[family], family, one, two)
                subject = subject_of(tables[family], family, one)
        chosen[limit] = Feature(family, key, name, width, unit=unit, subject=subject)
    return [(feature, limit) for limit, feature in chosen.items()]


def ranked(values: FloatArray, n: int) -> list[tuple[int, float]]:
    """Columns by their limits, the largest first, no two of one limit; n rows are of the first side."""
    every, key = np.arange(len(values)), np.zeros(len(values), dtype=np.uint64)
    z2 = 2 * math.log(_SEARCHED)
    found: dict[float, int] = {}
    for k, column in enumerate(values.T):
        for limit, _, _ in _limits(every, key, column, n, len(values) - n, z2, 1):
            found.setdefault(limit, k)
    return [(found[limit], limit) for limit in sorted(found, reverse=True)]


def _at_most(outputs: Outputs, most: int) -> Outputs:
    """At most so many outputs; the same object where these are all."""
    return outputs if len(outputs) <= most else outputs[:most]


def _limits(
    owner: IntArray, key: Hashes, value: FloatArray, n: int, m: int, z2: float, most: int
) -> list[tuple[float, int, int]]:
    """The largest limit of each of the best features: (limit, key, a triple of it)."""
    if not owner.size:
        return []
    starts = changes(key)
    sizes = np.diff(np.append(starts, key.size))
    varied = np.minimum.reduceat(value, starts) < np.maximum.reduceat(value, starts)
    keep = (sizes >= _LEAST) & (varied | (sizes < n + m))
    rows = np.flatnonzero(np.repeat(keep, sizes))
    if not rows.size:
        return []
    sizes = sizes[keep]
    starts, ends = np.cumsum(sizes) - sizes, np.cumsum(sizes)
    value, order = value[rows], np.arange(rows.size)
    whole = np.repeat(sizes == n + m, sizes)
    one, other = np.flatnonzero(whole).reshape(-1, n + m), np.flatnonzero(~whole)
    # rows of a matrix are sorted faster
    order[one.ravel()] = np.take_along_axis(one, np.argsort(value[one], axis=1), axis=1).ravel()
    group = np.repeat(np.arange(sizes.size), sizes)
    order[other] = other[np.lexsort((value[other], group[other]))]
    value = value[order]
    new = np.append(True, value[1:] != value[:-1])
    new[starts] = True
    of_p = np.append(0, np.cumsum(owner[rows[order]] < n))  # among the first i
    best = np.full(starts.size, -np.inf)
    # {value ≥ this one}, for positive values; {value ≤ this one}, for negative ones
    for above, at in (
        (True, np.flatnonzero(new & (value > 0))),
        (False, np.flatnonzero(np.append(new[1:], True) & (value < 0))),
    ):
        group = np.searchsorted(starts, at, side="right") - 1
        first, last = (at, ends[group]) if above else (starts[group], at + 1)
        held = last - first
        step = np.floor(_THRESHOLDS * np.log2(np.minimum(held, sizes[group] - held + 1)))
        change = (np.diff(step) != 0) | (np.diff(group) != 0)
        use = np.flatnonzero(np.append(True, change) | np.append(change, True)) if at.size else at
        group, held, a = group[use], held[use], of_p[last[use]] - of_p[first[use]]
        b = held - a
        x, y = a / n, b / m
        swap = x < y
        high, low = np.where(swap, y, x), np.where(swap, x, y)
        of_high, of_low = np.where(swap, m, n), np.where(swap, n, m)
        limit = np.maximum(
            _limit(high, of_high, low, of_low, z2), _limit(1 - low, of_low, 1 - high, of_high, z2)
        )
        limit[np.minimum(held, n + m - held) < _LEAST] = -np.inf
        np.maximum.at(best, group, limit)
    top = np.argsort(-best, kind="stable")[:most]
    return [  # rounded, so that the same event and its complement have the same
        (float(np.round(best[k], 9)), int(key[rows[starts[k]]]), int(rows[starts[k]]))
        for k in top
        if np.isfinite(best[k])
    ]


def _limit(p: FloatArray, n: IntArray, q: FloatArray, m: IntArray, z2: float) -> FloatArray:
    """A lower limit of log p/q, p ≥ q; where there is none, near 0: above it for z-scores above z."""
    z = math.sqrt(z2)
    top = p - z * np.sqrt(np.maximum(p * (1 - p), 1e-12) / n)
    bottom = q + z * np.sqrt(np.maximum(q * (1 - q), 0.0) / m) + z2 / (2 * m)
    spread = np.sqrt(p * (1 - p) / n + q * (1 - q) / m)
    score = np.where(spread > 0, (p - q) / np.maximum(spread, 1e-12), 0.0)
    found = np.asarray((np.minimum(score, 50.0) - z) / 1000)
    strong = np.flatnonzero(top > bottom)  # elsewhere there is no limit, and no use for a logarithm
    found[strong] = np.log(top[strong]) - np.log(bottom[strong])
    return found


#: How many named features are kept.
FEATURES = 40


def log_ratio(p: IntArray, q: IntArray, n: Sizes) -> FloatArray:
    """log p̂/q̂ of counts among n draws of either side, half a draw added to each count."""
    return np.asarray(np.log((p + 0.5) / (n[0] + 1)) - np.log((q + 0.5) / (n[1] + 1)))


@dataclass(frozen=True, eq=False)
class Line:
    """Numbers of both sides in order."""

    values: FloatArray  # sorted
    below: IntArray  # how many of the first i are of the first side

    @classmethod
    def of(cls, p: FloatArray, q: FloatArray) -> Line:
        values = np.concatenate([p, q])
        order = np.argsort(values, kind="stable")  # quick where each side is in order already
        return cls(values[order], np.concatenate([[0], np.cumsum(order < p.size)]))

    @property
    def sizes(self) -> Sizes:
        return int(self.below[-1]), self.values.size - int(self.below[-1])


@dataclass(frozen=True, eq=False)
class Training:
    """Draws of both sides, sorted into the keys of one layout; parts of them share its binning."""

    p: KeyedDraws
    q: KeyedDraws
    whole: Training | None = None  # what this is a part of
    pair: Any = None  # the two inputs, where they are known

    @classmethod
    def of(
        cls, batch: Batch, *, thorough: bool = False, smooth: bool = False, pair: Any = None
    ) -> Training:
        """Find the keys of a batch; `thorough` and `smooth` as in `learn`."""
        _, p, q = learn(batch.p, batch.q, thorough=thorough, smooth=smooth)
        return cls(p, q, pair=pair)

    def of_structures(self) -> Training:
        """The same draws, sorted by their structure alone: all numbers are free."""
        _, p, q = learn(self.p.outputs, self.q.outputs, atoms=False)
        return Training(p, q)

    @property
    def layout(self) -> Layout:
        return self.p.layout

    @property
    def sizes(self) -> Sizes:
        return len(self.p), len(self.q)

    @cached_property
    def binning(self) -> Binning:
        return Binning.learn(self.p, self.q) if self.whole is None else self.whole.binning

    @cached_property
    def cell_counts(self) -> CellCounts:
        """The draws as counts on the cells of the binning."""
        if self.binning.layout is self.layout:
            return self.binning.of_sorted(self.p, self.q)
        return self.binning.count(self.p.outputs, self.q.outputs)

    @cached_property
    def features(self) -> list[tuple[Feature, float]]:
        """The most telling named features, the best first, with their limits of log p/q."""
        return best_features(self.p.outputs, self.q.outputs, FEATURES, self.targets)

    @cached_property
    def targets(self) -> list[Target]:
        """The records in which the two inputs differ."""
        if self.whole is not None:
            return self.whole.targets
        return [] if self.pair is None else targets_of(self.pair)

    @cached_property
    def _lines(self) -> dict[int, Line]:
        return {}

    def line(self, key: int) -> Line:
        """The only free number of a key, sorted once for all losses."""
        if key not in self._lines:
            p, q = (side.numbers(key)[:, 0] for side in (self.p, self.q))
            self._lines[key] = Line.of(p, q)
        return self._lines[key]

    @cached_property
    def halves(self) -> tuple[Training, Training]:
        a, b = (n // 2 for n in self.sizes)
        return (
            Training(self.p[:a], self.q[:b], self),
            Training(self.p[a:], self.q[b:], self),
        )

    def most(self, n: int) -> Training:
        """The first `n` draws of either side."""
        return self if max(self.sizes) <= n else Training(self.p[:n], self.q[:n], self)
