"""Scores by key, and within a key by its free numbers: on cells that halve the draws, or by neighbours.

**Cells.** The free number of a key is divided into 2^L cells with equally many draws of the two sides
together, so that no scale, spike or tail is out of reach, however far apart their sizes. Within a cell at
any depth the odds of the two sides may be constant or not; all trees of halvings are averaged by how well
they predict, each weighing 2^−(its nodes), with the Krichevsky–Trofimov estimator in the leaves
(context-tree weighting: Willems, Shtarkov & Tjalkens 1995, doi:10.1109/18.382012). No tuning, one sort,
and O(2^L) after it.

**Nearest neighbours**: the log of the votes for the two sides around an output, by all training outputs
no farther away than the k-th nearest, ties included, so that an atom votes with all of its weight. One
fit serves every threshold: a majority among *thinned* neighbours, as Eureka and BayBox take it, is a
comparison of the unthinned votes with a weight, on either side of 1. In one dimension the training
outputs are sorted once; the k nearest are a window found by binary search and its votes a difference of
prefix sums: O((n + m) log n), no tree, and never n × k numbers. Of vectors the distinct ones are in a k-d
tree, and copies vote together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, ndtri

from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, Intervals, of_keys, of_scores
from dpassay.outputs.keys import Layout
from dpassay.outputs.score_models import LARGEST
from dpassay.scores.serializable import newton
from dpassay.scores.training import Line, Training, log_ratio

#: Draws in a cell of the finest level, both sides together, and the most levels.
_FINEST, _DEEPEST = 4, 14
#: What parts keys that were drawn equally often.
_PARTED = 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """A piecewise constant loss: `loss[k]` from edges[k−1] up to edges[k]."""

    edges: FloatArray
    loss: FloatArray

    def losses(self, numbers: FloatArray) -> FloatArray:
        order = np.argsort(numbers[:, 0])  # sorted numbers are found three times as fast
        found = np.empty(order.size)
        found[order] = self.loss[np.searchsorted(self.edges, numbers[order, 0], side="right")]
        return found

    def turns(self, threshold: float, sign: float) -> FloatArray:
        inside = np.concatenate([[False], sign * self.loss >= sign * threshold, [False]])
        edges = np.concatenate([[-np.inf], self.edges, [np.inf]])
        return np.asarray(edges[np.flatnonzero(inside[1:] != inside[:-1])])


@dataclass(frozen=True, eq=False)
class KeyedScore:
    """log p̂/q̂ by key, and by the free numbers of the keys that have `pieces`.

    A piece has the `losses` of numbers, and the `turns` where a loss times a sign rises to a threshold,
    and falls below it, in turns; None where it is no function of one number.
    """

    layout: Layout
    by_key: FloatArray  # where a key has no piece; the last is "in no key"
    pieces: Mapping[int, Any]
    name: str

    def score(self, outputs: Outputs) -> FloatArray:
        found = self.layout.sort(outputs)
        keys = found.all_keys()
        result = np.asarray(self.by_key[keys])
        for key, piece in self.pieces.items():
            inside: Any = slice(None) if found.keys is None else keys == key
            numbers = found.numbers(key)
            if len(numbers):
                result[inside] = piece.losses(numbers)
        return result

    def event(self, threshold: float, above: bool) -> Event:
        """{loss ≥ threshold}, or {loss ≤ threshold}, as keys and intervals where all pieces have them."""
        sign = 1.0 if above else -1.0
        high = sign * self.by_key >= sign * threshold
        whole = np.flatnonzero(high[: len(self.layout)]).tolist()
        partial = []
        for key, piece in self.pieces.items():
            turns = piece.turns(threshold, sign)
            if turns is None:
                return of_scores(self, threshold, above)
            if turns.size:
                partial.append((key, Intervals(turns[0::2], turns[1::2])))
        whole = [key for key in whole if key not in self.pieces]
        return of_keys(self.layout, whole, partial, bool(high[-1]))


class DyadicScore(KeyedScore):
    """log p̂/q̂, constant on cells of the free number of each key."""

    @classmethod
    def fit(cls, training: Training, name: str) -> DyadicScore:
        """ "dyadic", or "ranks": a polynomial in the normal scores; or keys alone."""
        layout, n = training.layout, training.sizes
        counts = training.p.counts(), training.q.counts()
        levels = log_ratio(*counts, n)
        cells: dict[int, Cells] = {}
        if name in ("categories", "structure"):
            keys = levels[:-1]
            if keys.size and np.ptp(keys) == 0.0:  # none leads: any order, or all were one event
                levels = levels + _PARTED * np.arange(levels.size)
            return cls(layout, levels, cells, name)
        loss = halve if name == "dyadic" else by_ranks
        for key in np.flatnonzero(counts[0][:-1] + counts[1][:-1] >= 4 * _FINEST):
            if len(layout.free(int(key))) == 1:
                cells[int(key)] = loss(training.line(int(key)), n)
        return cls(layout, levels, cells, name)


def halve(line: Line, n: tuple[int, int]) -> Cells:
    """The averaged loss of one number, on the finest cells."""
    edges, hits, misses = _finest(line)
    return Cells(edges, _averaged_odds(hits, misses) - math.log(n[0] / n[1]))


def by_ranks(line: Line, n: tuple[int, int]) -> Cells:
    """A cubic in the normal scores of the pooled ranks: stiff, and the same on any scale."""
    edges, hits, misses = _finest(line)
    p, q = line.sizes
    weight = (hits + misses).astype(float)
    below = np.cumsum(weight) - weight / 2
    z = ndtri(np.clip(below / weight.sum(), 1e-12, 1 - 1e-12))
    terms = np.column_stack([np.ones(z.size), z, z**2, z**3])
    some = weight > 0
    # either side weighs the same; the ridge is worth one draw
    a, b = hits / max(p, 1), misses / max(q, 1)
    ridge = 1.0 / max(min(p, q), 1)
    beta = newton(terms[some], (a + b)[some], a[some], ridge)
    shift = math.log((p + 0.5) / (n[0] + 1)) - math.log((q + 0.5) / (n[1] + 1))
    return Cells(edges, np.clip(terms @ beta + shift, -LARGEST, LARGEST))


def _finest(line: Line) -> tuple[FloatArray, IntArray, IntArray]:
    """Edges of cells with equally many draws, and the draws of either side in each."""
    ordered, below = line.values, line.below
    depth = int(max(0, min(_DEEPEST, math.floor(math.log2(ordered.size / _FINEST)))))
    ends = np.linspace(0, ordered.size, 2**depth + 1).round().astype(np.int64)
    # a cell begins at a value: equal values are never parted
    starts = np.searchsorted(
        ordered, ordered[np.minimum(ends[1:-1], ordered.size - 1)], side="left"
    )
    edges = ordered[starts] if depth else ordered[:0]
    ends = np.concatenate([[0], starts, [ordered.size]])
    hits = np.diff(below[ends])
    return edges, hits, np.diff(ends) - hits


def _averaged_odds(hits: IntArray, misses: IntArray) -> FloatArray:
    """Log-odds of a hit in each finest cell, averaged over all trees of halvings."""
    a, b = hits.astype(float), misses.astype(float)
    levels = []
    while True:
        levels.append((a, b))
        if a.size == 1:
            break
        a, b = a[0::2] + a[1::2], b[0::2] + b[1::2]
    # bottom up: the evidence for constant odds, and for the best of all ways to go on
    log_split = [np.zeros(0)] * len(levels)
    log_all = betaln(levels[0][0] + 0.5, levels[0][1] + 0.5) - betaln(0.5, 0.5)
    for depth in range(1, len(levels)):
        a, b = levels[depth]
        constant = betaln(a + 0.5, b + 0.5) - betaln(0.5, 0.5)
        split = log_all[0::2] + log_all[1::2]
        log_split[depth] = split - constant
        log_all = np.logaddexp(constant, split) - math.log(2)
    # top down: the chance that a node ends the tree, given that the tree reaches it
    reach, chance = np.ones(1), np.zeros(1)
    for depth in range(len(levels) - 1, -1, -1):
        a, b = levels[depth]
        ends = (
            np.ones(a.size) if depth == 0 else 1 / (1 + np.exp(np.minimum(log_split[depth], 700)))
        )
        chance = chance + reach * ends * (a + 0.5) / (a + b + 1)
        reach = reach * (1 - ends)
        if depth:
            chance, reach = np.repeat(chance, 2), np.repeat(reach, 2)
    return np.asarray(np.log(chance) - np.log1p(-chance))


#: Queries handled at a time where neighbours have to be listed.
_CHUNK = 1 << 21


def default_k(n: int, dimension: int) -> int:
    """n^{4/(4+d)}, the rate that balances bias and variance; listed neighbours are capped.

    The papers' √n is far too noisy in one dimension: at 10⁶ draws a side the largest error of δ̂ for
    Laplace noise is .0047 with it and .0008 with n^0.8.
    """
    k = int(max(1, round(n ** (4 / (4 + dimension)))))
    return k if dimension == 1 else min(k, 256)


class KnnScore(KeyedScore):
    """log p̂/q̂ by nearest neighbours within each key."""

    @classmethod
    def fit(cls, training: Training) -> KnnScore:
        """Learn from draws."""
        layout, sides = training.layout, (training.p, training.q)
        counts = (training.p.counts(), training.q.counts())
        voters = {}
        for key in range(len(layout)) if layout.widest else ():
            free = len(layout.free(key))
            total = int(counts[0][key] + counts[1][key])
            if free and total >= 2:
                p, q = (side.numbers(key) for side in sides)
                k = min(default_k(total, free), total)
                voter = _Line(Line.of(p[:, 0], q[:, 0]), k) if free == 1 else _Tree.fit(p, q, k)
                voters[key] = Neighbours(voter, training.sizes)
        name = "knn" if voters else "frequency"
        return cls(layout, log_ratio(*counts, training.sizes), voters, name)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The votes of the nearest training draws, of so many in all."""

    voter: _Line | _Tree
    totals: tuple[int, int]

    def losses(self, numbers: FloatArray) -> FloatArray:
        return log_ratio(*self.voter.votes(numbers), self.totals)

    def turns(self, threshold: float, sign: float) -> None:
        return None


@dataclass(frozen=True, eq=False)
class _Line:
    """Numbers: a window of the sorted training draws."""

    line: Line
    k: int

    def votes(self, numbers: FloatArray) -> tuple[IntArray, IntArray]:
        order = np.argsort(numbers[:, 0])  # neighbouring queries look at neighbouring memory
        x = numbers[order, 0]
        s, below, k = self.line.values, self.line.below, self.k
        n = s.size
        # the window starts where the value k further on is no nearer than the one at its start
        low = np.maximum(np.searchsorted(s, x) - k, 0)
        high = np.minimum(np.searchsorted(s, x), n - k)
        low = np.minimum(low, high)
        while True:
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) // 2
            nearer = s[np.minimum(middle + k, n - 1)] - x < x - s[middle]
            nearer &= middle + k < n
            low = np.where(open_ & nearer, middle + 1, low)
            high = np.where(open_ & ~nearer, middle, high)
        radius = np.maximum(x - s[low], s[low + k - 1] - x)
        start = np.minimum(np.searchsorted(s, x - radius, side="left"), low)
        stop = np.maximum(np.searchsorted(s, x + radius, side="right"), low + k)
        for_p = below[stop] - below[start]
        votes = np.empty((2, x.size), dtype=np.int64)
        votes[0, order], votes[1, order] = for_p, stop - start - for_p
        return votes[0], votes[1]


@dataclass(frozen=True, eq=False)
class _Tree:
    """Vectors: a k-d tree of the distinct ones, after scaling each coordinate by its spread."""

    tree: Any
    counts: IntArray  # (2, distinct): the training draws of either side
    scale: FloatArray
    k: int

    @classmethod
    def fit(cls, p: FloatArray, q: FloatArray, k: int) -> _Tree:
        from scipy.spatial import cKDTree

        both = np.concatenate([p, q])
        scale = both.std(axis=0)
        scale[scale == 0] = 1.0
        rows, index = np.unique(both / scale, axis=0, return_inverse=True)
        sides = np.split(index.ravel(), [len(p)])
        counts = np.array([np.bincount(side, minlength=len(rows)) for side in sides])
        return cls(cKDTree(rows), counts, scale, k)

    def votes(self, numbers: FloatArray) -> tuple[IntArray, IntArray]:
        found = np.empty((2, len(numbers)), dtype=np.int64)
        listed = min(self.k, self.tree.n)
        step = max(1, _CHUNK // listed)
        for start in range(0, len(numbers), step):
            x = numbers[start : start + step] / self.scale
            distance, index = self.tree.query(x, k=np.arange(1, listed + 1))
            votes = self.counts[:, index]
            kth = (votes.sum(axis=0).cumsum(axis=1) >= self.k).argmax(axis=1)
            radius = distance[np.arange(len(x)), kth] * (1 + 1e-12)
            found[:, start : start + step] = (votes * (distance <= radius[:, None])).sum(axis=2)
        return found[0], found[1]
