"""Draws as counts on cells: tallies add up, so that draws can be streamed.

A `Binning` says which keys and grids there are; it is learned from a first look at the draws. A `Tally`
is what any number of draws amount to under a binning.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpassay._typing import IntArray
from dpassay.errors import InvalidInput
from dpassay.loss.binned import SIZES, Axis, Binned, axes_for, bin_linear
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.layout import Layout, Sorted, learn
from dpassay.sampling.progress import Whole
from dpassay.sampling.samples import Sizes, Source

#: A key needs this many draws on the two sides together to get a density of its own.
_FEW = 40
#: The draws a binning is learned from.
FIRST_LOOK = 1 << 17


@dataclass(frozen=True, eq=False)
class Binning:
    """Which keys there are, and the grid for the numbers of each (None: the key is a cell)."""

    layout: Layout
    axes: tuple[tuple[Axis, ...] | None, ...]

    @classmethod
    def learn(cls, p: Sorted, q: Sorted) -> Binning:
        """Find grids for the free numbers of keys, from draws that may be looked at."""
        layout, sides = p.layout, [p, q]
        if layout.widest > max(
            SIZES
        ):  # too many numbers for densities: combinations serve as keys, rare as they are
            layout, *sides = learn(p.outputs, q.outputs, whole=True)
        if not any(any(part.open) for part in layout.parts):
            return cls(layout, (None,) * len(layout))
        counts = sides[0].counts() + sides[1].counts()
        axes: list[tuple[Axis, ...] | None] = []
        for key in range(len(layout)):
            free = layout.free(key)
            if not free or counts[key] < _FEW:
                axes.append(None)
                continue
            if len(free) > max(SIZES):
                raise InvalidInput(
                    f"outputs have {len(free)} coordinates; kernel densities serve up to "
                    f"{max(SIZES)}. Use a classifier or kNN loss instead"
                )
            axes.append(axes_for([side.numbers(key) for side in sides]))
        return cls(layout, tuple(axes))

    def tally(self, p: Outputs, q: Outputs) -> Tally:
        """What these draws amount to."""
        return self.of_sorted(self.layout.sort(p), self.layout.sort(q))

    def of_sorted(self, *found: Sorted) -> Tally:
        """What draws that are sorted into the keys amount to."""
        binned = [
            tuple(
                None if axes is None else bin_linear(side.numbers(key), axes)
                for key, axes in enumerate(self.axes)
            )
            for side in found
        ]
        return Tally(self, found[0].counts(), found[1].counts(), binned[0], binned[1])


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of keys and binned numbers, both sides; tallies under one binning add up."""

    binning: Binning
    counts_p: IntArray
    counts_q: IntArray
    binned_p: tuple[Binned | None, ...]
    binned_q: tuple[Binned | None, ...]

    @property
    def n(self) -> tuple[int, int]:
        """Draws on each side."""
        return int(self.counts_p.sum()), int(self.counts_q.sum())

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.binning,
            self.counts_p + other.counts_p,
            self.counts_q + other.counts_q,
            tuple(_sum(a, b) for a, b in zip(self.binned_p, other.binned_p, strict=True)),
            tuple(_sum(a, b) for a, b in zip(self.binned_q, other.binned_q, strict=True)),
        )


def _sum(a: Binned | None, b: Binned | None) -> Binned | None:
    return None if a is None or b is None else a + b


def tally_draws(source: Source, sizes: Sizes) -> Tally:
    """Tally draws: a first look makes the binning, the rest stream.

    Memory stays that of the first look whatever the sizes are.
    """
    look = min(sizes[0], FIRST_LOOK), min(sizes[1], FIRST_LOOK)
    with Whole(max(sizes)):
        first = source.deal(look)
        _, p, q = learn(first.p, first.q)
        binning = Binning.learn(p, q)
        tally = (
            binning.of_sorted(p, q)
            if binning.layout is p.layout
            else binning.tally(first.p, first.q)
        )
        rest = sizes[0] - look[0], sizes[1] - look[1]
        if max(rest):
            for part in source.blocks(rest, binning.tally):
                tally = tally + part
    return tally


def tally_of(p: Outputs, q: Outputs) -> Tally:
    """The tally of draws at hand."""
    _, first, second = learn(p, q)
    binning = Binning.learn(first, second)
    return (
        binning.of_sorted(first, second) if binning.layout is first.layout else binning.tally(p, q)
    )
