"""The draws a loss is fitted to, with their keys found once for all losses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.loss.cell_counts import Binning, CellCounts
from dpassay.loss.feature_search import best_features
from dpassay.outputs.keys import KeyedDraws, Layout, learn
from dpassay.outputs.named_features import Feature, Target, targets_of
from dpassay.sampling.samples import Batch, Sizes

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
    def of(cls, batch: Batch, *, thorough: bool = False, pair: Any = None) -> Training:
        """Find the keys of a batch; `thorough`: values that repeat are looked for in all of it."""
        _, p, q = learn(batch.p, batch.q, thorough=thorough)
        return cls(p, q, pair=pair)

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
    def tally(self) -> CellCounts:
        """The draws as counts on the cells of the binning."""
        if self.binning.layout is self.layout:
            return self.binning.of_sorted(self.p, self.q)
        return self.binning.tally(self.p.outputs, self.q.outputs)

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
