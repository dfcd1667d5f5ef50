"""Draws as counts on cells, which add up: draws can be streamed, and memory need not grow with n.

`Binned` has the weights of draws on a grid (linear binning). A `Binning` says which keys and grids there
are; it is learned from a first look at the draws. A `CellCounts` is what any number of draws amount to
under a binning.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.errors import InvalidInput, NotApplicable
from dpassay.outputs import device_arrays
from dpassay.outputs.canonical import Outputs, from_array
from dpassay.outputs.device_arrays import AnyOutputs, DeviceOutputs, on_device, on_host
from dpassay.outputs.keys import KeyedDraws, Layout, Part, learn
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Sizes, Source


@dataclass(frozen=True)
class Axis:
    """`size` evenly spaced points from low to high."""

    low: float
    high: float
    size: int

    @property
    def step(self) -> float:
        return (self.high - self.low) / (self.size - 1)

    @property
    def points(self) -> FloatArray:
        return np.linspace(self.low, self.high, self.size)


@dataclass(frozen=True, eq=False)
class Binned:
    """Weights of draws on a grid. What falls outside is counted in `outside`.

    On one axis `counts` holds how many draws lie in [x_k, x_{k+1}): integers, for certificates.
    """

    axes: tuple[Axis, ...]
    weights: FloatArray
    outside: float = 0.0
    counts: IntArray | None = None

    @property
    def total(self) -> float:
        """How many draws there are, those outside the grid included."""
        return float(self.weights.sum()) + self.outside

    @property
    def cell(self) -> float:
        return math.prod(axis.step for axis in self.axes)

    def __add__(self, other: Binned) -> Binned:
        if self.axes != other.axes:
            raise InvalidInput("binned draws on different grids cannot be merged")
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = self.counts + other.counts
        weights = self.weights + other.weights
        return Binned(self.axes, weights, self.outside + other.outside, counts)

    @property
    def marginals(self) -> list[Binned]:
        """The draws along each coordinate."""
        if len(self.axes) == 1:
            return [self]
        others = [tuple(j for j in range(len(self.axes)) if j != k) for k in range(len(self.axes))]
        return [
            Binned((axis,), self.weights.sum(axis=rest), self.outside)
            for axis, rest in zip(self.axes, others, strict=True)
        ]


def bin_linear(values: FloatArray, axes: tuple[Axis, ...]) -> Binned:
    """Each draw shares its weight among the corners of its cell, in proportion to nearness.

    Merging is exact, and so is refining: the hat functions of a coarse grid are sums of those of a
    fine one.
    """
    x = values if values.ndim == 2 else values[:, None]
    if len(axes) == 1:
        found = bin_numbers(x[:, 0], axes[0])
        assert found is not None
        return found
    inside = np.ones(len(x), dtype=bool)
    place, share = [], []
    for column, axis in zip(x.T, axes, strict=True):
        position = (column - axis.low) / axis.step
        inside &= (position >= 0) & (position <= axis.size - 1)
        whole = np.clip(position, 0, axis.size - 2).astype(np.int64)
        place.append(whole)
        share.append(position - whole)
    shape = tuple(axis.size for axis in axes)
    weights = np.zeros(math.prod(shape))
    for corner in itertools.product((0, 1), repeat=len(axes)):
        index = np.zeros(len(x), dtype=np.int64)
        weight = np.ones(len(x))
        for up, whole, part, axis in zip(corner, place, share, axes, strict=True):
            index = index * axis.size + whole + up
            weight = weight * (part if up else 1 - part)
        weights += np.bincount(index[inside], weights=weight[inside], minlength=weights.size)
    return Binned(axes, weights.reshape(shape), float(len(x) - inside.sum()))


def bin_numbers(x: Any, axis: Axis) -> Binned | None:
    """`bin_linear` of numbers, wherever they are; None where their library does not count."""
    xp = device_arrays.namespace(x)
    position = (x - axis.low) * (1.0 / axis.step)
    inside = (position >= 0) & (position <= axis.size - 1)
    within = int(np.count_nonzero(inside)) if xp is None else device_arrays.count(inside)
    outside = int(x.shape[0]) - within
    if outside:
        position = position[inside]
    count: Any
    right: Any
    if xp is None:
        whole = position.astype(np.int64)
        count = np.bincount(whole, minlength=axis.size + 1)
        right = np.bincount(whole, weights=position - whole, minlength=axis.size + 1)
    else:
        whole = xp.floor(position)
        place = xp.astype(whole, xp.int64)
        count = device_arrays.bincount(place, axis.size + 1)
        right = device_arrays.bincount(place, axis.size + 1, position - whole)
        if count is None or right is None:
            return None
    weights: FloatArray = np.asarray(count - right, dtype=float)  # what goes to the left ends
    weights[1:] += right[:-1]
    return Binned((axis,), weights[: axis.size], float(outside), count[: axis.size])


#: Points per axis by dimension.
SIZES = {1: 4096, 2: 512, 3: 96}
#: The most points of one axis: heavy tails make it long, and a narrow bandwidth makes its steps short.
_MOST_POINTS = 1 << 16


@dataclass(frozen=True)
class Smoothing:
    """What a grid on one axis is made fine enough for: densities of `n` draws a side."""

    n: int
    bandwidth: float | None  # None: a rule will choose it

    def step(self, columns: list[FloatArray]) -> float:
        """A quarter of the bandwidth. A rule sets it to about 0.9 s n^(−1/5), s the scale of the peak.

        A normal density with the standard deviation s is 1/(s√(2π)) at its peak. The peak is that of
        the shortest interval with a twentieth of the draws: heavy tails do not change it.
        """
        if self.bandwidth is not None:
            return self.bandwidth / 4
        shortest = min(float(np.diff(np.quantile(c, np.linspace(0, 1, 21))).min()) for c in columns)
        scale = shortest / (0.05 * math.sqrt(2 * math.pi))
        return 0.9 * scale * float(self.n**-0.2) / 4


def axes_for(
    samples: list[FloatArray], *, size: int | None = None, smoothing: Smoothing | None = None
) -> tuple[Axis, ...]:
    """A grid that holds the draws with room for a kernel at both ends.

    Draws far out are left outside rather than allowed to stretch the grid: past six times the
    distance between the 1 % and 99 % quantiles from the middle there is next to nothing to see.
    With a `smoothing`, one axis has more points where its bandwidth needs them.
    """
    dimension = samples[0].shape[1]
    points = size or SIZES[dimension]
    if size is None and dimension == 1 and sum(map(len, samples)) < 100_000:
        points //= 4  # few draws: a wide bandwidth, and drawing them costs next to nothing
    axes = []
    for k in range(dimension):
        columns = [sample[:, k] for sample in samples if len(sample)]
        low, high = min(float(c.min()) for c in columns), max(float(c.max()) for c in columns)
        some = [c[:: max(1, c.size // 2048)] for c in columns]
        q1, q99 = np.quantile(np.concatenate(some), [0.01, 0.99])
        middle, reach = (q1 + q99) / 2, 6 * (q99 - q1)
        if reach > 0:
            low, high = max(low, middle - reach), min(high, middle + reach)
        wide = high - low > 1e-290  # else its cells have no width a number could hold
        room = 0.1 * (high - low) if wide else max(abs(high), 1.0) * 1e-6
        low, high = float(low - room), float(high + room)
        if smoothing and dimension == 1 and (step := smoothing.step(some)) > 0:
            while points < _MOST_POINTS and high - low > step * (points - 1):
                points *= 2
        axes.append(Axis(low, high, points))
    return tuple(axes)


#: A key needs this many draws on the two sides together to get a density of its own.
_FEW = 40
#: The draws a binning is learned from.
FIRST_LOOK = 1 << 17
#: Combinations of discrete values are all keys, seen or not, up to this many.
_COMBINATIONS = 1 << 12
#: A note says so if this share of the draws is in no key.
_MOST = 0.5
#: Keys that only later draws may show need as many draws as any key.
_RARE = 3


@dataclass(frozen=True, eq=False)
class Binning:
    """Which keys there are, and the grid for the numbers of each (None: the key is a cell)."""

    layout: Layout
    axes: tuple[tuple[Axis, ...] | None, ...]

    @classmethod
    def learn(cls, p: KeyedDraws, q: KeyedDraws, smoothing: Smoothing | None = None) -> Binning:
        """Find grids for the free numbers of keys, from draws that may be looked at."""
        layout, sides = p.layout, [p, q]
        if layout.widest > max(
            SIZES
        ):  # too many for densities: combinations are keys, however rare
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
                raise NotApplicable(
                    f"outputs have {len(free)} coordinates; kernel densities serve up to {max(SIZES)}. "
                    'dp.estimate, dp.audit, dp.tradeoff.estimate(…, loss="knn") and '
                    "dp.renyi.lower_bound(…, method=dp.renyi.Variational()) learn a score"
                )
            axes.append(axes_for([side.numbers(key) for side in sides], smoothing=smoothing))
        return cls(layout, tuple(axes))

    def widened(self) -> Binning:
        """With all combinations of discrete values as keys, where they are few: more draws show more.

        Still a function of the first look, whatever the draws that follow are.
        """
        layout = self.layout
        owners, codes = [layout.parts_of], [layout.codes]
        for index, part in enumerate(layout.parts):
            known = layout.codes[layout.parts_of == index]
            if part.atoms and not any(part.open) and known.size < part.space <= _COMBINATIONS:
                codes.append(np.setdiff1d(np.arange(part.space), known))
                owners.append(np.full(codes[-1].size, index))
        if len(codes) == 1:
            return self
        wide = Layout(layout.parts, np.concatenate(owners), np.concatenate(codes))
        return Binning(wide, self.axes + (None,) * (len(wide) - len(layout)))

    @on_device
    def count(self, p: AnyOutputs, q: AnyOutputs) -> CellCounts:
        if isinstance(p, DeviceOutputs) and isinstance(q, DeviceOutputs):
            found = self._count_on_device(p, q)
            if found is not None:
                return found
        return self.of_sorted(*(self.layout.sort(on_host(side)) for side in (p, q)))

    def _count_on_device(self, *sides: DeviceOutputs) -> CellCounts | None:
        """The same of one free number, counted where it is; None where it must be copied."""
        axes = self.axes[0] if len(self.axes) == 1 else None
        if axes is None or len(axes) > 1 or not all(map(self.layout.trivial, sides)):
            return None
        origin = self.layout.parts[0].origins[0]
        columns = (side.numbers[:, 0] for side in sides)
        first, second = (bin_numbers(x - origin if origin else x, axes[0]) for x in columns)
        if first is None or second is None:
            return None
        return CellCounts(self, np.array([[len(side), 0] for side in sides]), {0: (first, second)})

    def of_sorted(self, *found: KeyedDraws) -> CellCounts:
        """What draws that are sorted into the keys amount to."""
        p, q = found
        binned = {
            key: (bin_linear(p.numbers(key), axes), bin_linear(q.numbers(key), axes))
            for key, axes in enumerate(self.axes)
            if axes is not None
        }
        return CellCounts(self, np.array([p.counts(), q.counts()]), binned)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Counts of keys and binned numbers, both sides; counts under one binning add up."""

    binning: Binning
    counts: IntArray  # (2, keys + 1), a row a side; those in no key come last
    binned: dict[int, tuple[Binned, Binned]]  # those of either side, by keys with free numbers

    @property
    def n(self) -> tuple[int, int]:
        n_p, n_q = self.counts.sum(axis=1).tolist()
        return n_p, n_q

    @property
    def notes(self) -> tuple[str, ...]:
        """That most outputs are in no key, where they are: what is estimated then says little of them."""
        share = float(np.max(self.counts[:, -1] / np.maximum(self.n, 1)))
        if share < _MOST:
            return ()
        return (
            f"{share:.0%} of the outputs hardly repeat and are counted together: how they differ between "
            "the two inputs is left out; dp.estimate and dp.audit learn a score of them",
        )

    def everywhere(self) -> tuple[FloatArray, FloatArray]:
        """Draws of either side in every key, far outside, in no key, and at the points of every grid."""
        grids, keys = list(self.binned.values()), self.counts[:, :-1].copy()
        keys[:, list(self.binned)] = 0
        p, q = (
            np.concatenate(
                [
                    keys[side],
                    [sum(own[side].outside for own in grids), self.counts[side, -1]],
                    *(own[side].weights.ravel() for own in grids),
                ]
            )
            for side in (0, 1)
        )
        return p, q

    def without_rare(self) -> CellCounts:
        """The same draws, those of keys that hardly came being in no key."""
        known = self.counts[:, :-1]
        keep = known.sum(axis=0) >= _RARE
        if keep.all():
            return self
        old = self.binning
        layout = Layout(old.layout.parts, old.layout.parts_of[keep], old.layout.codes[keep])
        kept = np.flatnonzero(keep).tolist()
        rest = self.counts[:, -1] + known[:, ~keep].sum(axis=1)
        return CellCounts(
            Binning(layout, tuple(old.axes[k] for k in kept)),
            np.column_stack([known[:, keep], rest]),
            {new: self.binned[k] for new, k in enumerate(kept) if k in self.binned},
        )

    def __add__(self, other: CellCounts) -> CellCounts:
        binned = {
            key: (p + other.binned[key][0], q + other.binned[key][1])
            for key, (p, q) in self.binned.items()
        }
        return CellCounts(self.binning, self.counts + other.counts, binned)


def first_look(sizes: Sizes) -> tuple[Sizes, Sizes]:
    """The draws that are looked at before the others are counted, and the others."""
    look = min(sizes[0], FIRST_LOOK), min(sizes[1], FIRST_LOOK)
    return look, (sizes[0] - look[0], sizes[1] - look[1])


def count_blocks(source: Source, sizes: Sizes, binning: Binning) -> Iterable[CellCounts]:
    """What the next draws of a source amount to, block by block."""
    return source.blocks(sizes, binning.count) if max(sizes) else ()


def count_draws(source: Source, sizes: Sizes, bandwidth: float | None = None) -> CellCounts:
    """Count draws in cells: a first look makes the binning, the rest stream.

    The grid is fine enough for the `bandwidth`, or for the one that a rule will choose. Memory stays
    that of the first look whatever the sizes are.
    """
    look, rest = first_look(sizes)
    with CallProgress(max(sizes)):
        first = source.deal(look)
        cell_counts = counts_of(first.p, first.q, Smoothing(min(sizes), bandwidth))
        if not max(rest):
            return cell_counts
        binning = cell_counts.binning.widened()
        if binning is not cell_counts.binning:
            cell_counts = binning.count(first.p, first.q)
        for part in count_blocks(source, rest, binning):
            cell_counts = cell_counts + part
    return cell_counts.without_rare()


def counts_of(p: Outputs, q: Outputs, smoothing: Smoothing | None = None) -> CellCounts:
    """The cell counts of draws at hand."""
    _, first, second = learn(p, q)
    binning = Binning.learn(first, second, smoothing)
    return (
        binning.of_sorted(first, second) if binning.layout is first.layout else binning.count(p, q)
    )


def counts_of_levels(levels: FloatArray, counts: IntArray) -> CellCounts:
    """The cell counts of draws that are one of a few numbers each, counted a row a side."""
    part = Part(from_array(levels).structures[0], (levels,), (False,))
    layout = Layout((part,), np.zeros(levels.size, dtype=np.int64), np.arange(levels.size))
    binning = Binning(layout, (None,) * levels.size)
    return CellCounts(binning, np.pad(counts, ((0, 0), (0, 1))), {})  # none is in no key
