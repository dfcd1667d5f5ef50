"""Nearest neighbours: log of the votes for the two sides around an output.

The neighbours of an output are all training outputs no farther away than the k-th nearest, ties
included, so that an atom votes with all of its weight. One fit serves every threshold: a majority
among *thinned* neighbours, as Eureka and BayBox take it, is a comparison of the unthinned votes with
a weight, on either side of 1.

In one dimension the training outputs are sorted once; the k nearest are a window found by binary
search and its votes a difference of prefix sums: O((n + m) log n), no tree, and never n × k numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.loss.training import Line, Training
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, of_scores
from dpassay.outputs.keys import Layout

#: Queries handled at a time where neighbours have to be listed.
_CHUNK = 1 << 22


def default_k(n: int, dimension: int) -> int:
    """n^{4/(4+d)}, the rate that balances bias and variance; listed neighbours are capped.

    The papers' √n is far too noisy in one dimension: at 10⁶ draws a side the largest error of δ̂ for
    Laplace noise is .0047 with it and .0008 with n^0.8.
    """
    k = int(max(1, round(n ** (4 / (4 + dimension)))))
    return k if dimension == 1 else min(k, 256)


@dataclass(frozen=True, eq=False)
class KnnLoss:
    """log p̂/q̂ by nearest neighbours within each key."""

    layout: Layout
    totals: tuple[int, int]
    levels: FloatArray  # by key, for keys without free numbers; the last is "in no key"
    voters: dict[int, Any]

    @classmethod
    def fit(cls, training: Training, k: int | str | None = None) -> KnnLoss:
        """Learn from draws; `k` is a number, "sqrt" for the papers' choice, or None for n^0.8."""
        layout, first, second = training.layout, training.p, training.q
        counts = (first.counts(), second.counts())
        totals = (len(first), len(second))
        levels = np.log((counts[0] + 0.5) / (totals[0] + 1)) - np.log(
            (counts[1] + 0.5) / (totals[1] + 1)
        )
        voters = {}
        for key in range(len(layout)) if layout.widest else ():
            free = len(layout.free(key))
            total = int(counts[0][key] + counts[1][key])
            if free and total >= 2:
                a, b = first.numbers(key), second.numbers(key)
                voters[key] = _voter(a, b, _k(k, total, free))
        return cls(layout, totals, levels, voters)

    @property
    def name(self) -> str:
        """What was fitted, for people."""
        return "knn" if self.voters else "frequency"

    def score(self, outputs: Outputs) -> FloatArray:
        """log of the votes, half a vote added to each side."""
        found = self.layout.sort(outputs)
        keys = found.all_keys()
        result = np.asarray(self.levels[keys])
        for key, voter in self.voters.items():
            inside = slice(None) if found.keys is None else keys == key
            numbers = found.numbers(key)
            if len(numbers):
                for_p, for_q = voter.votes(numbers)
                result[inside] = np.log((for_p + 0.5) / (self.totals[0] + 1)) - np.log(
                    (for_q + 0.5) / (self.totals[1] + 1)
                )
        return result

    def event(self, cut: float, above: bool) -> Event:
        """{loss ≥ cut} or {loss ≤ cut}."""
        return of_scores(self, cut, above)


def _k(k: int | str | None, total: int, dimension: int) -> int:
    if k is None:
        return min(default_k(total, dimension), total)
    if isinstance(k, str):
        checks.one_of("k", k, ("sqrt",))
        return max(1, round(math.sqrt(total)))
    return min(checks.whole("k", k), total)


def _voter(p: FloatArray, q: FloatArray, k: int) -> Any:
    if p.shape[1] == 1:
        return _Line(Line.of(p[:, 0], q[:, 0]), k)
    both = np.concatenate([p, q])
    whole = both.size and np.array_equal(both, np.round(both)) and np.ptp(both) <= 1
    return _Bits.fit(p, q, k) if whole else _Tree.fit(p, q, k)


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
    """Vectors: a k-d tree, after scaling each coordinate by its spread."""

    tree: Any
    first: Any
    scale: FloatArray
    k: int

    @classmethod
    def fit(cls, p: FloatArray, q: FloatArray, k: int) -> _Tree:
        from scipy.spatial import cKDTree

        both = np.concatenate([p, q])
        scale = both.std(axis=0)
        scale[scale == 0] = 1.0
        first = np.arange(len(both)) < len(p)
        return cls(cKDTree(both / scale), first, scale, k)

    def votes(self, numbers: FloatArray) -> tuple[IntArray, IntArray]:
        for_p = np.empty(len(numbers), dtype=np.int64)
        for_q = np.empty(len(numbers), dtype=np.int64)
        step = max(1, _CHUNK // self.k)
        for start in range(0, len(numbers), step):
            part = slice(start, start + step)
            x = numbers[part] / self.scale
            distance, index = self.tree.query(x, k=self.k)
            index = index.reshape(len(x), -1)
            count = self.first[index].sum(axis=1)
            for_p[part], for_q[part] = count, self.k - count
            self._ties(x, distance.reshape(len(x), -1), for_p[part], for_q[part])
        return for_p, for_q

    def _ties(self, x: FloatArray, distance: FloatArray, for_p: IntArray, for_q: IntArray) -> None:
        """Outputs as far away as the k-th nearest vote too; only atoms make it matter."""
        for row in np.flatnonzero(distance[:, -1] == distance[:, 0]):
            if self.k > 1:
                near = self.tree.query_ball_point(x[row], distance[row, -1] * (1 + 1e-12))
                for_p[row] = self.first[near].sum()
                for_q[row] = len(near) - for_p[row]


@dataclass(frozen=True, eq=False)
class _Bits:
    """Vectors of bits: Hamming distance between distinct rows, each with the weight of its copies."""

    rows: FloatArray
    count_p: IntArray
    count_q: IntArray
    k: int

    @classmethod
    def fit(cls, p: FloatArray, q: FloatArray, k: int) -> _Bits:
        rows, index = np.unique(np.concatenate([p, q]), axis=0, return_inverse=True)
        index = index.ravel()
        count_p = np.bincount(index[: len(p)], minlength=len(rows))
        count_q = np.bincount(index[len(p) :], minlength=len(rows))
        return cls(rows, count_p, count_q, k)

    def votes(self, numbers: FloatArray) -> tuple[IntArray, IntArray]:
        distinct, index = np.unique(numbers, axis=0, return_inverse=True)
        width = self.rows.shape[1]
        # every distance from 0 to width, and how many votes lie within it
        within = np.zeros((2, len(distinct), width + 1), dtype=np.int64)
        step = max(1, _CHUNK // max(len(self.rows), 1))
        low = min(float(self.rows.min()), float(distinct.min()))
        for start in range(0, len(distinct), step):
            a, b = distinct[start : start + step] - low, self.rows - low
            distance = a @ (1 - b).T + (1 - a) @ b.T
            for d in range(width + 1):
                near = distance <= d + 0.5
                within[0, start : start + step, d] = near @ self.count_p
                within[1, start : start + step, d] = near @ self.count_q
        enough = (within.sum(axis=0) >= self.k).argmax(axis=1)
        chosen = within[:, np.arange(len(distinct)), enough]
        return chosen[0][index.ravel()], chosen[1][index.ravel()]
