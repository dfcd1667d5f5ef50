"""The loss on cells: frequencies of keys (TDDE), kernel densities of the numbers in them (TKDE)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from dpassay._typing import FloatArray, IntArray
from dpassay.errors import InvalidInput
from dpassay.loss.cell_counts import Axis, Binned, CellCounts
from dpassay.loss.kernel_density import KernelDensity, bandwidths, density_on_grid
from dpassay.loss.ranking_losses import quadratic
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, Intervals, of_keys, of_scores
from dpassay.outputs.keys import Layout
from dpassay.outputs.templates import exact, told_apart
from dpassay.privacy.finite_pairs import LossCurve, Masses


def without_noise(
    p: FloatArray, q: FloatArray, n: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Frequencies of many rare cells, with the noise in their ratios taken out on average.

    Differences of frequencies are noise plus truth, and functionals of a pair add up the noise: two
    identical distributions on 1000 cells look far from private at 10⁴ draws. Half a draw is added to
    either count. The log-ratios of cells whose two frequencies do not differ beyond doubt
    (likelihood-ratio z < 4) are drawn towards 0 by τ²/(τ² + se²), with τ² their variance beyond that
    of the noise (empirical Bayes). The pooled mass of a cell stays what it is.
    """
    i, j = p * n[0], q * n[1]
    pooled = (i + j) / (n[0] + n[1])
    z2 = 2 * (xlogy(i, p) + xlogy(j, q) - xlogy(i + j, pooled))
    doubtful = z2 < 16.0
    ell = np.log((i + 0.5) / n[0]) - np.log((j + 0.5) / n[1])
    se2 = 1 / (i + 0.5) + 1 / (j + 0.5)
    weight = (i + j) * doubtful
    tau2 = max(0.0, float(np.sum(weight * (ell**2 - se2)) / max(np.sum(weight), 1e-300)))
    share = expit(ell * np.where(doubtful, tau2 / (tau2 + se2), 1.0))
    return (p + q) * share, (p + q) * (1 - share)


_PLAIN = KernelDensity()


@dataclass(frozen=True, eq=False)
class GridPart:
    """Cells with masses p and q, one key each; or the grid of one key, with densities."""

    keys: IntArray  # −1: outputs in no key; −2: numbers far outside their grid
    p: FloatArray
    q: FloatArray
    cell: float = 1.0
    axes: tuple[Axis, ...] | None = None
    h: tuple[float, ...] = ()  # the smaller one, where the sides have bandwidths of their own
    loss: FloatArray | None = None  # log p/q where it is a formula, known without draws
    density: KernelDensity = _PLAIN

    def key(self, cell: int) -> int:
        return int(self.keys[0 if self.axes is not None else cell])

    @property
    def kernel(self) -> Any:
        """∫K_h², 1 for a mass: the variance of p̂ is kernel·p/n, less p²/n for a mass."""
        return self.density.norm_at(self.axes[0].points if self.axes else np.zeros(1), self.h)

    @property
    def peak(self) -> float:
        """What one draw adds to n times the density at its own place."""
        return self.density.shape.top(self.h)


@dataclass(frozen=True, eq=False)
class GridLoss:
    """log p̂/q̂ on cells."""

    tally: CellCounts
    blocks: tuple[GridPart, ...]

    @classmethod
    def named(cls, name: str, tally: CellCounts) -> GridLoss:
        """The "kde" or the "polynomial" loss of a tally."""
        return cls.polynomial(tally) if name == "polynomial" else cls.of(tally)

    @classmethod
    def of(cls, tally: CellCounts, rule: Any = _PLAIN, *, inference: bool = False) -> GridLoss:
        """Densities with a bandwidth or a `KernelDensity`; a smaller bandwidth for `inference`."""
        wanted = KernelDensity.of(rule)

        def block(key: int, p: Binned, q: Binned) -> GridPart:
            density = wanted if wanted.support is None else wanted.moved(_origin(tally, key))
            hs = bandwidths(p, q, density, inference)
            sides = []
            for own, total, h in zip((p, q), tally.n, hs, strict=True):
                inside = (own.total - own.outside) / total
                on_grid = own.weights.ravel()
                if inside > 0:
                    on_grid = density_on_grid(own, h, density.shape, density.support).ravel()
                mass = float(on_grid.sum()) * own.cell
                sides.append(on_grid * (inside / mass if mass > 0 else 0.0))
            least = tuple(map(min, *hs))
            return GridPart(
                np.array([key]), sides[0], sides[1], p.cell, p.axes, least, density=density
            )

        return cls._of(tally, block)

    @classmethod
    def polynomial(cls, tally: CellCounts) -> GridLoss:
        """log p/q a quadratic function of the free numbers of a key, by maximum likelihood.

        Exact for Gaussian noise, stiff and so nearly without noise for the rest: the tails, where
        densities have few draws to go by, borrow from the middle.
        """

        def block(key: int, p: Binned, q: Binned) -> GridPart:
            loss = quadratic(p, q, tally.n)
            pooled = (p.weights / tally.n[0] + q.weights / tally.n[1]).ravel() / p.cell
            share = expit(loss)
            sides = pooled * share, pooled * (1 - share)
            return GridPart(np.array([key]), *sides, p.cell, p.axes, loss=loss)

        return cls._of(tally, block)

    @classmethod
    def _of(cls, tally: CellCounts, block: Callable[[int, Binned, Binned], GridPart]) -> GridLoss:
        n = tally.n
        single = [key for key, axes in enumerate(tally.binning.axes) if axes is None]
        keys = np.array([*single, -1, -2], dtype=np.int64)
        masses = np.zeros((2, keys.size))
        for side, counts in enumerate((tally.counts_p, tally.counts_q)):
            masses[side, :-1] = counts[keys[:-1]] / n[side]
        grids = []
        for key, (p, q) in enumerate(zip(tally.binned_p, tally.binned_q, strict=True)):
            if p is None or q is None:
                continue
            masses[:, -1] += p.outside / n[0], q.outside / n[1]
            grids.append(block(key, p, q))
        seen = masses.any(axis=0)
        cells = GridPart(keys[seen], masses[0, seen], masses[1, seen])
        return cls(tally, (*grids, cells) if seen.any() else tuple(grids))

    @property
    def name(self) -> str:
        grids = [b for b in self.blocks if b.axes is not None]
        if not grids:
            return "frequency"
        return "kde" if grids[0].loss is None else "polynomial"

    @property
    def layout(self) -> Layout:
        return self.tally.binning.layout

    def masses(self) -> Masses:
        """The pair as a finite one: every notion can be read off it."""
        parts = [
            (block.p * block.cell, block.q * block.cell)
            if block.axes is not None
            else without_noise(block.p, block.q, self.tally.n)
            for block in self.blocks
        ]
        p, q = (np.concatenate(side) for side in zip(*parts, strict=True))
        return Masses(p / p.sum(), q / q.sum())

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output, drawn towards 0 where there is next to nothing."""
        found = self.layout.sort(outputs)
        keys = found.all_keys()
        result = self._by_key()[keys]
        for block in self.blocks:
            if block.axes is not None:
                ratio = self.shrunk(block).reshape([a.size for a in block.axes])
                inside = slice(None) if found.keys is None else keys == block.keys[0]
                numbers = found.numbers(int(block.keys[0]))
                result[inside] = _interpolate(numbers, block.axes, ratio)
        return result

    def shrunk(self, block: GridPart) -> FloatArray:
        """log (p + half a draw)/(q + half a draw)."""
        if block.loss is not None:
            return block.loss
        n_p, n_q = self.tally.n
        half = 0.5 * block.peak
        return np.asarray(np.log(block.p + half / n_p) - np.log(block.q + half / n_q))

    def _by_key(self) -> FloatArray:
        """The loss of every key that is a cell, then far outside, and in no key."""
        levels = np.zeros(len(self.layout) + 2)
        for block in self.blocks:
            if block.axes is None:
                levels[block.keys] = self.shrunk(block)
        return levels

    def everywhere(self) -> FloatArray:
        """The loss wherever `CellCounts.everywhere` counts draws."""
        grids = [self.shrunk(block) for block in self.blocks if block.axes is not None]
        return np.concatenate([self._by_key(), *grids])

    def levels(self, tally: CellCounts) -> Levels | None:
        """How many draws of a tally under the same binning lie where on the loss, if it can say."""
        level = self._by_key()
        gridded = [k for k, axes in enumerate(self.tally.binning.axes) if axes is not None]
        keep = np.setdiff1d(np.arange(level.size - 1), gridded)  # far outside is counted apart
        found = [level[np.where(keep == level.size - 2, -1, keep)]]
        counts: list[list[Any]] = [[tally.counts_p[keep]], [tally.counts_q[keep]]]
        for block in self.blocks:
            if block.axes is None:
                continue
            sides = tally.binned_p[block.key(0)], tally.binned_q[block.key(0)]
            loss = self.shrunk(block)
            found += [(loss + np.append(loss[1:], loss[-1])) / 2, level[-2:-1]]
            for own, side in zip(sides, counts, strict=True):
                if own is None or own.counts is None:
                    return None
                side += [own.counts, np.array([round(own.outside)])]
        return Levels(np.concatenate(found), *(np.concatenate(side) for side in counts))

    def event(self, cut: float, above: bool) -> Event:
        """{loss ≥ cut}, or {loss ≤ cut}, as keys and intervals where numbers have one axis.

        Slivers of the event, and slivers missing from it, with less than a hundredth of its draws are
        noise of the densities: they are left out and filled in.
        """
        sign = 1.0 if above else -1.0
        whole: list[int] = []
        partial: list[tuple[int, Intervals]] = []
        otherwise = sign * 0.0 >= sign * cut
        for block in self.blocks:
            level = sign * self.shrunk(block)
            if block.axes is None:
                high = level >= sign * cut
                whole += [int(k) for k in block.keys[high & (block.keys >= 0)]]
                if np.any(block.keys == -1):
                    otherwise = bool(high[block.keys == -1][0])
                continue
            if len(block.axes) > 1:
                return of_scores(self, cut, above)
            found = _intervals(level, sign * cut, block)
            if found is not None:
                partial.append((block.key(0), found))
        return of_keys(self.layout, whole, partial, otherwise)

    def where(self, block: GridPart, cell: int) -> str:
        """A cell as an output a person can read."""
        key = block.key(cell)
        if key < 0:
            return "any other output" if key == -1 else "far outside"
        if not block.axes:
            return self.layout.words(key)
        part, free = self.layout.part(key), self.layout.free(key)
        origins = [part.origins[k] for k in free]
        numbers = [
            exact(x, origin=o) for x, o in zip(self.point(block, cell), origins, strict=True)
        ]
        return self.layout.words(key, [told_apart([number])[0] for number in numbers])

    def point(self, block: GridPart, cell: int) -> list[float]:
        axes = block.axes or ()
        index = np.unravel_index(cell, [a.size for a in axes]) if axes else ()
        return [float(a.points[k]) for a, k in zip(axes, index, strict=True)]

    def curve(self) -> LossCurve:
        """The loss along the outputs: of the likeliest density, one number of it; else by output."""
        grids = [b for b in self.blocks if b.axes is not None]
        lines = [b for b in grids if len(b.axes or ()) == 1]
        if lines:
            block = max(lines, key=lambda b: float((b.p + b.q).sum() * b.cell))
            assert block.axes is not None
            part = self._part(block, 0)
            return LossCurve(block.axes[0].points, self.shrunk(block), block.p, block.q, part=part)
        if grids:
            return self._marginal(max(grids, key=lambda b: float((b.p + b.q).sum() * b.cell)))
        block = self.blocks[-1]
        top = np.sort(np.argsort(-(block.p + block.q), kind="stable")[:200])
        labels = tuple(self.where(block, int(k)) for k in top)
        p, q = block.p[top], block.q[top]
        with np.errstate(divide="ignore", invalid="ignore"):
            ell = np.log(p) - np.log(q)
        return LossCurve(np.arange(top.size, dtype=float), ell, p, q, labels=labels)

    def _marginal(self, block: GridPart) -> LossCurve:
        """Of several numbers the one whose two densities differ most, whatever the others are."""
        axes = block.axes or ()
        shape = [a.size for a in axes]

        def density(side: FloatArray, k: int) -> FloatArray:
            others = tuple(j for j in range(len(axes)) if j != k)
            return np.asarray(side.reshape(shape).sum(axis=others) * block.cell / axes[k].step)

        sides = [(density(block.p, k), density(block.q, k)) for k in range(len(axes))]
        apart = [np.abs(p - q).sum() * a.step for (p, q), a in zip(sides, axes, strict=True)]
        k = int(np.argmax(apart))
        p, q = sides[k]
        # as `shrunk`: half a draw, spread over the bandwidth
        width = math.sqrt(2 * math.pi) * block.h[k] if block.h else axes[k].step
        n_p, n_q = self.tally.n
        ell = np.log(p + 0.5 / (width * n_p)) - np.log(q + 0.5 / (width * n_q))
        return LossCurve(axes[k].points, ell, p, q, part=self._part(block, k))

    def _part(self, block: GridPart, k: int) -> str:
        """What the k-th free number of a block is: "output", or "x in (x, •)"."""
        key = block.key(0)
        free = self.layout.free(key)
        origin = self.layout.part(key).origins[free[k]]
        said = self.layout.words(key, ["x" if j == k else "•" for j in range(len(free))])
        name = "output" if said == "x" else f"x in {said}"
        return f"{name}, less {exact(origin)}" if origin else name


def _origin(tally: CellCounts, key: int) -> float:
    """What was subtracted from the one number of a key before it was binned."""
    layout = tally.binning.layout
    free = layout.free(key)
    if len(free) > 1:
        raise InvalidInput(
            f"support is for outputs that are one number; these have {len(free)}: leave it out"
        )
    return float(layout.part(key).origins[free[0]])


def _intervals(level: FloatArray, cut: float, block: GridPart) -> Intervals | None:
    """Where the interpolated level is at least `cut`, without slivers."""
    assert block.axes is not None
    x, inside = block.axes[0].points, level >= cut
    if not inside.any():
        return None
    turns = np.flatnonzero(inside[1:] != inside[:-1])
    if turns.size > 1:  # one piece inside and one outside are no slivers
        mass = (block.p + block.q) * block.cell
        sliver = 0.01 * min(float(mass[inside].sum()), float(mass[~inside].sum()))
        for fill in (True, False):  # first close small gaps, then drop small pieces
            edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
            for piece in np.split(np.arange(x.size), edges):
                if inside[piece[0]] != fill and float(mass[piece].sum()) < sliver:
                    inside[piece] = fill
        if not inside.any():
            return None
        turns = np.flatnonzero(inside[1:] != inside[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (cut - level[turns]) / (level[turns + 1] - level[turns])
    share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.5)
    places = x[turns] + share * (x[turns + 1] - x[turns])
    bounds = np.concatenate(
        [[-np.inf] if inside[0] else [], places, [np.inf] if inside[-1] else []]
    )
    return Intervals(bounds[0::2], bounds[1::2])


@dataclass(frozen=True, eq=False)
class Levels:
    """Draws by the value of a loss: `p` and `q` of them have the loss `loss`."""

    loss: FloatArray
    p: IntArray
    q: IntArray


def _interpolate(numbers: FloatArray, axes: tuple[Axis, ...], values: FloatArray) -> FloatArray:
    places = [
        np.clip((column - a.low) / a.step, 0, a.size - 1)
        for column, a in zip(numbers.T, axes, strict=True)
    ]
    if len(axes) == 1:  # no search, as np.interp has to
        k = np.minimum(places[0].astype(np.int64), values.size - 2)
        return np.asarray(values[k] + (places[0] - k) * np.diff(values)[k])
    from scipy.ndimage import map_coordinates

    return np.asarray(map_coordinates(values, places, order=1, mode="nearest"))
