"""Outputs parted into a few cells by nested events of one ranking, in a form that goes to JSON.

The cell of an output is the number of events that hold for it, hence a function of the output alone,
also where the events are not quite nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, Scorer
from dpassay.outputs.keys import Layout
from dpassay.outputs.score_models import Ranking
from dpassay.records import Record


@dataclass(frozen=True, eq=False)
class _Levels:
    """`levels[k]` for numbers with k of the sorted edges at or below them."""

    edges: FloatArray
    levels: IntArray

    def __call__(self, numbers: FloatArray) -> IntArray:
        return np.asarray(self.levels[np.searchsorted(self.edges, numbers, side="right")])


@dataclass(frozen=True, eq=False)
class Partition(Record):
    """Cells 0 to K of K nested events, which share one layout or one ranking, written down once."""

    name: str
    bare: tuple[Event, ...] = field(repr=False)
    layout: Layout | None = field(default=None, repr=False)
    ranking: Ranking | None = field(default=None, repr=False)
    scorer: Scorer | None = field(default=None, repr=False, metadata={"live": True})

    def _validate(self) -> None:
        checks.require(self.bare, "a partition needs an event")
        there = self.layout is not None or self.ranking is not None
        checks.require(there or self.live, "a partition needs a layout or a ranking")
        if self.layout is not None:
            for k in range(len(self.bare)):
                self.event(k)._validate()

    @classmethod
    def of(cls, name: str, events: Sequence[Event]) -> Partition:
        """Events of one ranking, the largest first."""
        bare = tuple(replace(event, layout=None, ranking=None, scorer=None) for event in events)
        first = events[0]
        return cls(name, bare, first.layout, first.ranking, first.scorer)

    def __len__(self) -> int:
        return len(self.bare) + 1

    @property
    def live(self) -> bool:
        """Whether only the process that made it can evaluate it."""
        return any(event.live for event in self.bare)

    def event(self, index: int) -> Event:
        """The event that holds cells above `index`."""
        there = self.bare[index]
        return replace(there, layout=self.layout, ranking=self.ranking, scorer=self.scorer)

    def cells(self, outputs: Outputs) -> IntArray:
        """The cell of each output."""
        scorer = self.scorer if self.scorer is not None else self.ranking
        if scorer is not None:
            scores = scorer.score(outputs)
            # no event holds where there is no score
            return self._scores(np.where(np.isnan(scores), -np.inf, scores))
        assert self.layout is not None
        found = self.layout.sort(outputs)
        keys = found.all_keys()
        result = self._whole[keys]
        for key, levels in self._partial.items():
            inside = slice(None) if found.keys is None else keys == key
            result[inside] += levels(found.numbers(key)[:, 0])
        return result

    def counts(self, outputs: Outputs) -> IntArray:
        """How many outputs each cell has."""
        return np.bincount(self.cells(outputs), minlength=len(self))

    @cached_property
    def _scores(self) -> _Levels:
        """The number of events by the score."""
        cuts = np.sort([event.cut for event in self.bare])
        return _Levels(cuts, np.arange(cuts.size + 1))

    @cached_property
    def _whole(self) -> IntArray:
        """By key, the number of events that hold it whole; outputs in no key come last."""
        assert self.layout is not None
        found = np.zeros(len(self.layout) + 1, dtype=np.int64)
        for event in self.bare:
            found[list(event.whole)] += 1
            found[-1] += event.otherwise
        return found

    @cached_property
    def _partial(self) -> dict[int, _Levels]:
        """By key, the number of events that hold for its number."""
        tests: dict[int, list[FloatArray]] = {}
        for event in self.bare:
            for key, test in event.partial:
                tests.setdefault(key, []).append(np.array([test.lows, test.highs]))
        found = {}
        for key, bounds in tests.items():
            lows, highs = np.concatenate(bounds, axis=1)
            edges = np.unique(np.concatenate([lows, highs]))
            steps = np.zeros(edges.size + 1, dtype=np.int64)
            np.add.at(steps, np.searchsorted(edges, lows) + 1, 1)
            np.add.at(steps, np.searchsorted(edges, highs) + 1, -1)
            inner = np.isfinite(edges)  # as all numbers are
            levels = np.cumsum(steps)[int(edges[0] == -np.inf) :][: np.count_nonzero(inner) + 1]
            found[key] = _Levels(edges[inner], levels)
        return found
