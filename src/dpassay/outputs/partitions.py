"""Outputs parted into a few cells by nested events of one ranking, in a form that goes to JSON.

The cell of an output is the number of events that hold for it, hence a function of the output alone,
also where the events are not quite nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, Scorer
from dpassay.outputs.layout import Layout
from dpassay.outputs.ranking import Ranking
from dpassay.records import Record


@dataclass(frozen=True, eq=False)
class Partition(Record):
    """Cells 0 to K of K nested events, which share one layout or one ranking, written down once."""

    name: str
    bare: tuple[Event, ...] = field(repr=False)
    layout: Layout | None = field(default=None, repr=False)
    ranking: Ranking | None = field(default=None, repr=False)
    scorer: Scorer | None = field(default=None, repr=False, metadata={"live": True})

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
            cuts = np.sort([event.cut for event in self.bare])
            return np.searchsorted(cuts, scorer.score(outputs), side="right")
        assert self.layout is not None
        found = self.layout.sort(outputs)
        if found.keys is None and list(self._partial) == [
            0
        ]:  # one kind of output, looked up at once
            edges, levels = self._partial[0]
            level = np.searchsorted(edges, found.numbers(0)[:, 0], side="right")
            return np.asarray((self._whole[0] + levels)[level])
        keys = found.all_keys()
        result = self._whole[keys]
        for key, (edges, levels) in self._partial.items():
            inside = slice(None) if found.keys is None else keys == key
            result[inside] += levels[np.searchsorted(edges, found.numbers(key)[:, 0], side="right")]
        return result

    def counts(self, outputs: Outputs) -> IntArray:
        """How many outputs each cell has."""
        return np.bincount(self.cells(outputs), minlength=len(self))

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
    def _partial(self) -> dict[int, tuple[FloatArray, IntArray]]:
        """By key, edges of its number, and the number of events that hold between them."""
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
            found[key] = edges, np.cumsum(steps)
        return found
