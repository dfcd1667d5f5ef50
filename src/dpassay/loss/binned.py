"""Linear binning: draws as weights on a grid, mergeable, so that memory need not grow with n."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.errors import InvalidInput
from dpassay.outputs import resident


@dataclass(frozen=True)
class Axis:
    """`size` evenly spaced points from low to high."""

    low: float
    high: float
    size: int

    @property
    def step(self) -> float:
        """The distance of neighbouring points."""
        return (self.high - self.low) / (self.size - 1)

    @property
    def points(self) -> FloatArray:
        """The grid points."""
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
        """The volume of a cell."""
        return math.prod(axis.step for axis in self.axes)

    def __add__(self, other: Binned) -> Binned:
        if self.axes != other.axes:
            raise InvalidInput("binned draws on different grids cannot be merged")
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = self.counts + other.counts
        weights = self.weights + other.weights
        return Binned(self.axes, weights, self.outside + other.outside, counts)

    def marginal(self, dimension: int) -> Binned:
        """The draws along one coordinate."""
        others = tuple(k for k in range(len(self.axes)) if k != dimension)
        return Binned((self.axes[dimension],), self.weights.sum(axis=others), self.outside)


def bin_linear(values: FloatArray, axes: tuple[Axis, ...]) -> Binned:
    """Each draw shares its weight among the corners of its cell, in proportion to nearness.

    Merging is exact, and so is refining: the hat functions of a coarse grid are sums of those of a
    fine one.
    """
    x = values if values.ndim == 2 else values[:, None]
    if len(axes) == 1:
        return _bin_one(x[:, 0], axes[0])
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


def _bin_one(x: FloatArray, axis: Axis) -> Binned:
    position = (x - axis.low) * (1.0 / axis.step)
    outside = 0
    if position.size and (position.min() < 0 or position.max() > axis.size - 1):
        inside = (position >= 0) & (position <= axis.size - 1)
        outside = int(position.size - inside.sum())
        position = position[inside]
    whole = position.astype(np.int64)
    count = np.bincount(whole, minlength=axis.size + 1)
    right = np.bincount(whole, weights=position - whole, minlength=axis.size + 1)
    return _shared_out(axis, count, np.asarray(right, dtype=float), outside)


def bin_there(x: Any, axis: Axis) -> Binned | None:
    """`bin_linear` of numbers that are not NumPy's; None where their library does not count."""
    xp = resident.namespace(x)
    position = (x - axis.low) * (1.0 / axis.step)
    outside = 0
    if float(xp.min(position)) < 0 or float(xp.max(position)) > axis.size - 1:
        inside = (position >= 0) & (position <= axis.size - 1)
        outside = int(x.shape[0]) - resident.count(inside)
        position = position[inside]
    whole = xp.floor(position)
    place = xp.astype(whole, xp.int64)
    count = resident.bincount(place, axis.size + 1)
    right = resident.bincount(place, axis.size + 1, position - whole)
    if count is None or right is None:
        return None
    return _shared_out(axis, count, right, outside)


def _shared_out(axis: Axis, count: IntArray, right: FloatArray, outside: int) -> Binned:
    """The weights of draws by cell: `right` is what goes to the right end of each, of `count` in all."""
    weights: FloatArray = np.asarray(count - right, dtype=float)
    weights[1:] += right[:-1]
    return Binned((axis,), weights[: axis.size], float(outside), count[: axis.size])


def merge(parts: list[Binned]) -> Binned:
    """All parts as one."""
    return reduce(lambda a, b: a + b, parts)


#: Points per axis by dimension.
SIZES = {1: 4096, 2: 512, 3: 96}


def axes_for(samples: list[FloatArray], *, size: int | None = None) -> tuple[Axis, ...]:
    """A grid that holds the draws with room for a kernel at both ends.

    Draws far out are left outside rather than allowed to stretch the grid: past six times the
    distance between the 1 % and 99 % quantiles from the middle there is next to nothing to see.
    """
    dimension = samples[0].shape[1]
    points = size or SIZES[dimension]
    if size is None and dimension == 1 and sum(map(len, samples)) < 100_000:
        points //= 4  # few draws: a wide bandwidth, and drawing them costs next to nothing
    axes = []
    for k in range(dimension):
        columns = [sample[:, k] for sample in samples if len(sample)]
        low, high = min(float(c.min()) for c in columns), max(float(c.max()) for c in columns)
        some = np.concatenate([c[:: max(1, c.size // 2048)] for c in columns])
        q1, q99 = np.quantile(some, [0.01, 0.99])
        middle, reach = (q1 + q99) / 2, 6 * (q99 - q1)
        if reach > 0:
            low, high = max(low, middle - reach), min(high, middle + reach)
        wide = high - low > 1e-290  # else its cells have no width a number could hold
        room = 0.1 * (high - low) if wide else max(abs(high), 1.0) * 1e-6
        axes.append(Axis(float(low - room), float(high + room), points))
    return tuple(axes)
