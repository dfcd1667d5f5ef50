"""Chunking: how the draws of a stage are divided into cells, blocks and tasks.

A *cell* is drawn from a stream of its own, found from (seed, pair, stage, cell, side). A *block* is a
whole number of cells, and what an analysis is handed at once. Both depend on the mechanism and n alone:
the same seed gives the same result bit for bit, whatever the workers, the store and the clock do. A
*task* is what a worker is asked for: a run of cells, as many as take about a second. The draws of tasks
are put together to blocks afterwards.

A vectorised mechanism is asked for a block in one call: its cell is its block. Where every output is a
call, a cell is 1 to 64 outputs, so that a mechanism of seconds a draw is saved and shared out draw by
draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpassay.blackbox.mechanism import BLOCK, CALLS

#: Up to so many cells a stage before cells grow, and the most outputs of a cell of calls. A stream costs
#: some 20 µs: little for a few draws, and at most a third of a microsecond a draw for many.
_CELLS, _MOST = 512, 64
#: Seconds a task should take, how much longer the next may be than the longest one measured, and the most
#: outputs of a task: they are in memory.
_SECONDS, _GROWTH, _HELD = 1.0, 8, 1 << 16


def by_calls(mechanism: Any, each_alone: bool) -> bool:
    """Whether every output is a call."""
    return each_alone or bool(getattr(mechanism, "one_by_one", False))


@dataclass(frozen=True)
class Chunking:
    """How the draws of a stage are divided into cells and blocks; two blocks at least."""

    n: int
    cell: int
    block: int  # a whole number of cells
    calls: bool  # every output is a call

    @classmethod
    def of(cls, mechanism: Any, n: int, *, each_alone: bool = False) -> Chunking:
        """The layout of `n` draws of a mechanism; `each_alone` makes every output a call."""
        calls = by_calls(mechanism, each_alone)
        most = int(getattr(mechanism, "block", BLOCK))
        block = min(most, max(1, math.ceil(n / 2)))
        if not calls:
            return cls(n, block, block, False)
        block = min(block, CALLS)
        cell = min(_MOST, 1 << (math.ceil(n / _CELLS) - 1).bit_length())
        return cls(n, cell if block % cell == 0 else 1, block, True)

    @property
    def cells(self) -> int:
        """How many cells there are; the last may be short."""
        return -(-self.n // self.cell)

    def draws(self, first: int, last: int) -> int:
        """Draws a side in the cells from `first` up to `last`."""
        return min(last * self.cell, self.n) - min(first * self.cell, self.n)


@dataclass(frozen=True)
class Task:
    """The cells from `first` up to `last`."""

    first: int
    last: int


class Pace:
    """How many cells a task gets: what takes about a second, in powers of two.

    Powers of two, so that the sizes settle: workers that carry copies of one random state then draw the
    same runs, which is what shows them.
    """

    def __init__(self, layout: Chunking, workers: int) -> None:
        self.layout, self.workers = layout, workers
        self._cost: float | None = None  # seconds a cell
        self._longest = 0

    def add(self, cells: int, seconds: float) -> None:
        cost = seconds / cells
        if self._cost is not None and cells <= self._longest:  # a longer task says more
            cost = (self._cost + cost) / 2
        self._cost, self._longest = cost, max(cells, self._longest)

    def next(self, first: int, limit: int) -> Task:
        """The task that begins at a cell and ends before `limit`."""
        layout = self.layout
        if self._cost is None or not layout.calls:
            return Task(first, first + 1)
        if layout.n % layout.cell and first < layout.cells - 1:
            limit = min(limit, layout.cells - 1)  # a short cell is a task of its own
        wanted = min(
            _SECONDS / max(self._cost, 1e-9),
            _GROWTH * self._longest,
            (limit - first) / (1 if self.workers == 1 else 2 * self.workers),
            _HELD / layout.cell,
        )
        return Task(first, first + (1 << max(int(wanted).bit_length() - 1, 0)))
