"""The loss on cells that halve the draws again and again: resolution follows the data.

The free number of a key is cut into 2^L cells with equally many draws of the two sides together, so that
no scale, spike or tail is out of reach, however far apart their sizes. Within a cell at any depth the
odds of the two sides may be constant or not; all trees of halvings are averaged by how well they
predict, each weighing 2^−(its nodes), with the Krichevsky–Trofimov estimator in the leaves (context-tree
weighting: Willems, Shtarkov & Tjalkens 1995, doi:10.1109/18.382012). No tuning, one sort, and O(2^L)
after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, ndtri

from dpassay._typing import FloatArray, IntArray
from dpassay.loss.logistic import newton
from dpassay.loss.training import Line, Training
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, Intervals, of_keys
from dpassay.outputs.keys import Layout
from dpassay.outputs.score_models import LARGEST

#: Draws in a cell of the finest level, both sides together, and the most levels.
_FINEST, _DEEPEST = 4, 14
#: What parts keys that were drawn equally often.
_PARTED = 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """A piecewise constant loss: `loss[k]` from edges[k−1] up to edges[k]."""

    edges: FloatArray
    loss: FloatArray


@dataclass(frozen=True, eq=False)
class DyadicLoss:
    """log p̂/q̂, constant on cells of the free number of each key."""

    layout: Layout
    levels: FloatArray  # by key, where a key has no cells; the last is "in no key"
    cells: dict[int, Cells]
    name: str = "dyadic"

    @classmethod
    def fit(cls, training: Training, name: str) -> DyadicLoss:
        """ "dyadic", or "ranks": a polynomial in the normal scores; or "kinds": keys alone."""
        layout, n = training.layout, training.sizes
        counts = training.p.counts(), training.q.counts()
        levels = np.log((counts[0] + 0.5) / (n[0] + 1)) - np.log((counts[1] + 0.5) / (n[1] + 1))
        cells: dict[int, Cells] = {}
        if name == "kinds":
            keys = levels[:-1]
            if keys.size and np.ptp(keys) == 0.0:  # none leads: any order, or all were one event
                levels = levels + _PARTED * np.arange(levels.size)
            return cls(layout, levels, cells, name)
        loss = halve if name == "dyadic" else by_ranks
        for key in np.flatnonzero(counts[0][:-1] + counts[1][:-1] >= 4 * _FINEST):
            if len(layout.free(int(key))) == 1:
                cells[int(key)] = loss(training.line(int(key)), n)
        return cls(layout, levels, cells, name)

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output."""
        found = self.layout.sort(outputs)
        keys = found.all_keys()
        result = np.asarray(self.levels[keys])
        for key, cells in self.cells.items():
            inside: Any = slice(None) if found.keys is None else keys == key
            place = np.searchsorted(cells.edges, found.numbers(key)[:, 0], side="right")
            result[inside] = cells.loss[place]
        return result

    def event(self, cut: float, above: bool) -> Event:
        """{loss ≥ cut}, or {loss ≤ cut}, as keys and intervals."""
        sign = 1.0 if above else -1.0
        high = sign * self.levels >= sign * cut
        whole = [key for key in np.flatnonzero(high[:-1]).tolist() if key not in self.cells]
        partial = []
        for key, cells in self.cells.items():
            inside = np.concatenate([[False], sign * cells.loss >= sign * cut, [False]])
            edges = np.concatenate([[-np.inf], cells.edges, [np.inf]])
            turns = edges[np.flatnonzero(inside[1:] != inside[:-1])]
            if turns.size:
                partial.append((key, Intervals(turns[0::2], turns[1::2])))
        return of_keys(self.layout, whole, partial, bool(high[-1]))


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
    cuts = np.linspace(0, ordered.size, 2**depth + 1).round().astype(np.int64)
    # a cell begins at a value: equal values are never parted
    starts = np.searchsorted(
        ordered, ordered[np.minimum(cuts[1:-1], ordered.size - 1)], side="left"
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
