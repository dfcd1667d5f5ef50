"""An additive score: log-odds that are a sum of step functions, one of each coordinate.

Boosting by stumps (Friedman 2001) with Newton steps: of all splits of all coordinates, at most 64 bins
of equal shares each, the one that lowers the log loss most adds a part of its two steps. The sums of
gradients by bin are products with a sparse matrix of indicators, so that a round costs one pass over
rows × coordinates: scikit-learn's boosting, of which this is a special case, takes twice as long for
2,500 rows of five, for the same log loss.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.score_models import Trees

_BINS = 64
_ROUNDS = 30
_RATE = 0.3
#: Rounds that share the second derivatives of the loss.
_SHARED = 5


class AdditiveModel:
    """Step functions of the coordinates: `values[k]` between the sorted thresholds `edges[k]`."""

    def __init__(self, least: int) -> None:
        self.least = least  # rows on either side of a split
        self.edges: list[FloatArray] = []
        self.values: list[FloatArray] = []
        self.baseline = 0.0

    def fit(self, rows: FloatArray, labels: IntArray) -> AdditiveModel:
        """Learn which rows have the label 1."""
        self.edges = [_edges(column) for column in rows.T]
        places = zip(self.edges, rows.T, strict=True)
        codes = np.array([np.searchsorted(e, x, side="left") for e, x in places], dtype=np.uint8)
        d, n = codes.shape
        order = np.argsort(codes, axis=1, kind="stable")
        sizes = np.array([np.bincount(one, minlength=_BINS) for one in codes])
        starts = np.append(0, np.cumsum(sizes))
        inside = np.ones(d * n), order.ravel().astype(np.int32), starts.astype(np.int32)
        bins = csr_array(inside, shape=(d * _BINS, n))
        left = np.cumsum(sizes, axis=1)
        barred = (left < self.least) | (n - left < self.least)
        share = float(np.mean(labels))
        self.baseline = math.log(share) - math.log1p(-share)
        odds, steps = np.full(n, self.baseline), np.zeros((d, _BINS))
        for turn in range(_ROUNDS):
            chance = expit(odds)
            g = np.cumsum((bins @ (labels - chance)).reshape(d, _BINS), axis=1)
            if turn % _SHARED == 0:
                h = np.cumsum((bins @ (chance * (1 - chance))).reshape(d, _BINS), axis=1)
                h_right = h[:, -1:] - h
            g_right = g[:, -1:] - g
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = np.where(barred, 0.0, g**2 / h + g_right**2 / h_right)
            k, at = divmod(int(np.argmax(gain)), _BINS)
            if gain[k, at] <= 0.0:
                break
            low, high = (_RATE * x[k, at] / y[k, at] for x, y in ((g, h), (g_right, h_right)))
            steps[k, : at + 1] += low
            steps[k, at + 1 :] += high
            odds += np.where(codes[k] <= at, low, high)
        for k, (edge, own) in enumerate(zip(self.edges, steps, strict=True)):
            turns = np.flatnonzero(np.diff(own[: edge.size + 1]))
            self.edges[k] = edge[turns]
            self.values.append(own[np.append(turns, edge.size)])
        return self

    def decision_function(self, rows: FloatArray) -> FloatArray:
        """The log-odds of the label 1."""
        total = np.full(len(rows), self.baseline)
        for column, edges, values in zip(rows.T, self.edges, self.values, strict=True):
            if edges.size:
                total += values[np.searchsorted(edges, column, side="left")]
        return total

    def trees(self) -> Trees:
        """The same sum, a balanced tree of each coordinate that has steps."""
        nodes: list[tuple[int, float, int, int, float]] = []
        roots = []

        def grow(k: int, low: int, high: int) -> int:
            """A tree of the steps low … high of a coordinate; where its root is."""
            here = len(nodes)
            nodes.append((k, 0.0, -1, -1, float(self.values[k][low])))
            if low < high:
                middle = (low + high) // 2
                left, right = grow(k, low, middle), grow(k, middle + 1, high)
                nodes[here] = k, float(self.edges[k][middle]), left, right, 0.0
            return here

        for k, edges in enumerate(self.edges):
            if edges.size:
                roots.append(grow(k, 0, edges.size))
        if not roots:
            roots.append(grow(0, 0, 0))
        feature, threshold, left, right, value = (np.array(x) for x in zip(*nodes, strict=True))
        return Trees(self.baseline, np.array(roots), feature, threshold, left, right, value)


def _edges(column: FloatArray) -> FloatArray:
    """Thresholds between bins of about equal shares, midway between neighbouring values."""
    places = np.unique(column)
    if places.size > _BINS:
        inner = np.linspace(0, 1, _BINS + 1)[1:-1]
        below = np.unique(np.quantile(column, inner, method="inverted_cdf"))
        at = np.searchsorted(places, below)
        at = at[at < places.size - 1]
    else:
        at = np.arange(places.size - 1)
    return np.asarray(places[at] / 2 + places[at + 1] / 2)
