"""The loss on cells: frequencies of keys (TDDE), kernel densities of the numbers in them (TKDE)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from dpassay._typing import FloatArray, IntArray
from dpassay.errors import InvalidInput
from dpassay.outputs.templates import exact, told_apart
from dpassay.privacy.finite_pairs import LossCurve, Masses
from dpassay.rounding import decimals
from dpassay.scores.cell_counts import SIZES, Axis, Binned, CellCounts
from dpassay.scores.cells_and_neighbours import KeyedScore
from dpassay.scores.kernel_density import KernelDensity, bandwidths, density_on_grid
from dpassay.scores.serializable import quadratic

#: The largest number of draws that a cell would have and does not by chance, beyond the log of the cells:
#: with probability e⁻⁴.
_EXPECTED = 4.0


def without_noise(
    p: FloatArray, q: FloatArray, n: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Frequencies of many rare cells, with the noise in their ratios taken out on average.

    Differences of frequencies are noise plus truth, and functionals of a pair add up the noise: two
    identical distributions on 1000 cells look far from private at 10⁴ draws. Half a draw is added to
    either count. The log-ratios of cells whose two frequencies do not differ beyond doubt
    (likelihood-ratio z < 4) are drawn towards 0 by τ²/(τ² + se²), with τ² their variance beyond that
    of the noise (empirical Bayes). The pooled mass of a cell stays what it is. A cell that differs
    beyond doubt has probability 0 on the other side if that side has no draw in it, but would have with
    the largest ratio of a cell that has draws of both.
    """
    i, j = p * n[0], q * n[1]
    other = np.where(i > 0, i * n[1] / n[0], j * n[0] / n[1])  # on the other side, were p = q
    pooled = (i + j) / (n[0] + n[1])
    z2 = 2 * (xlogy(i, p) + xlogy(j, q) - xlogy(i + j, pooled))
    doubtful = z2 < 16.0
    ell = np.log((i + 0.5) / n[0]) - np.log((j + 0.5) / n[1])
    se2 = 1 / (i + 0.5) + 1 / (j + 0.5)
    weight = (i + j) * doubtful
    tau2 = max(0.0, float(np.sum(weight * (ell**2 - se2)) / max(np.sum(weight), 1e-300)))
    share = expit(ell * np.where(doubtful, tau2 / (tau2 + se2), 1.0))
    both = (i > 0) & (j > 0)
    largest = np.exp(np.max(np.abs(ell), where=both, initial=0.0))
    alone = ~doubtful & ~both & (other / largest > _EXPECTED + math.log(i.size))
    share = np.where(alone, i > 0, share)
    return (p + q) * share, (p + q) * (1 - share)


_PLAIN = KernelDensity()


@dataclass(frozen=True, eq=False)
class GridPart:
    """Cells with masses p and q, one key each; or the grid of one key, with densities."""

    n: tuple[int, int]  # draws of either side
    keys: IntArray  # −1: outputs in no key; −2: numbers far outside their grid
    p: FloatArray
    q: FloatArray
    cell: float = 1.0
    axes: tuple[Axis, ...] | None = None
    h: tuple[float, ...] = ()  # the smaller one, where the sides have bandwidths of their own
    formula: FloatArray | None = None  # of log p/q, known without draws
    density: KernelDensity = _PLAIN

    @cached_property
    def loss(self) -> FloatArray:
        """log (p + half a draw)/(q + half a draw), drawn towards 0 where there is next to nothing."""
        if self.formula is not None:
            return self.formula
        half = 0.5 * self.peak
        return np.asarray(np.log(self.p + half / self.n[0]) - np.log(self.q + half / self.n[1]))

    def one_sided(self) -> tuple[FloatArray, FloatArray]:
        """The densities, and 0 where the draws of the other side leave no doubt that one is (almost) 0.

        As in `without_noise`: it would have draws with the largest ratio of places that have both.
        Twenty of either tell a ratio; fewer may be what a kernel spreads beyond the end of a support.
        """
        worth = [side * n / self.peak for side, n in zip((self.p, self.q), self.n, strict=True)]
        both = np.minimum(*worth) >= 20
        largest = np.exp(np.max(np.abs(self.loss), where=both, initial=0.0))
        places = max(self.p.size * self.cell / math.prod(self.h), 1.0)
        least = largest * (_EXPECTED + math.log(places))
        p, q = (
            np.where((own < 0.5) & (other > least), 0.0, side)
            for side, own, other in zip((self.p, self.q), worth, worth[::-1], strict=True)
        )
        return p, q

    def losses(self, numbers: FloatArray) -> FloatArray:
        axes = self.axes or ()
        return _interpolate(numbers, axes, self.loss.reshape([a.size for a in axes]))

    def turns(self, threshold: float, sign: float) -> FloatArray | None:
        """Where the interpolated loss passes the threshold, on one axis.

        Slivers of the event, and slivers missing from it, with less than a hundredth of its draws are
        noise of the densities: they are left out and filled in.
        """
        if len(self.axes or ()) != 1:
            return None
        assert self.axes is not None
        x, level, threshold = self.axes[0].points, sign * self.loss, sign * threshold
        inside = level >= threshold
        turns = np.flatnonzero(inside[1:] != inside[:-1])
        if turns.size > 1:  # one piece inside and one outside are no slivers
            mass = (self.p + self.q) * self.cell
            sliver = 0.01 * min(float(mass[inside].sum()), float(mass[~inside].sum()))
            for fill in (True, False):  # first close small gaps, then drop small pieces
                edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
                for piece in np.split(np.arange(x.size), edges):
                    if inside[piece[0]] != fill and float(mass[piece].sum()) < sliver:
                        inside[piece] = fill
            turns = np.flatnonzero(inside[1:] != inside[:-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (threshold - level[turns]) / (level[turns + 1] - level[turns])
        share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.5)
        places = x[turns] + share * (x[turns + 1] - x[turns])
        places = np.round(places, decimals(self.axes[0].step / 100))
        return np.concatenate(
            [[-np.inf] if inside[0] else [], places, [np.inf] if inside[-1] else []]
        )

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
class GridScore(KeyedScore):
    """log p̂/q̂ on cells; `by_key` ends with that of numbers far outside, and of outputs in no key."""

    cell_counts: CellCounts
    blocks: tuple[GridPart, ...]

    @classmethod
    def named(cls, name: str, cell_counts: CellCounts) -> GridScore:
        """The "kde" or the "polynomial" loss of cell counts."""
        return cls.polynomial(cell_counts) if name == "polynomial" else cls.of(cell_counts)

    @classmethod
    def of(
        cls, cell_counts: CellCounts, rule: Any = _PLAIN, *, inference: bool = False
    ) -> GridScore:
        """Densities with a bandwidth or a `KernelDensity`; a smaller bandwidth for `inference`."""
        wanted = KernelDensity.of(rule)

        def block(key: int, p: Binned, q: Binned) -> GridPart:
            density = wanted if wanted.support is None else wanted.moved(_origin(cell_counts, key))
            hs = bandwidths(p, q, density, inference)
            sides = []
            for own, total, h in zip((p, q), cell_counts.n, hs, strict=True):
                inside = (own.total - own.outside) / total
                on_grid = own.weights.ravel()
                if inside > 0:
                    on_grid = density_on_grid(own, h, density.shape, density.support).ravel()
                mass = float(on_grid.sum()) * own.cell
                sides.append(on_grid * (inside / mass if mass > 0 else 0.0))
            least = tuple(map(min, *hs))
            keys, (on_p, on_q) = np.array([key]), sides
            return GridPart(cell_counts.n, keys, on_p, on_q, p.cell, p.axes, least, density=density)

        return cls._of("kde", cell_counts, block)

    @classmethod
    def polynomial(cls, cell_counts: CellCounts) -> GridScore:
        """log p/q a quadratic function of the free numbers of a key, by maximum likelihood.

        Exact for Gaussian noise, stiff and so nearly without noise for the rest: the tails, where
        densities have few draws to go by, borrow from the middle.
        """

        def block(key: int, p: Binned, q: Binned) -> GridPart:
            loss = quadratic(p, q, cell_counts.n)
            pooled = (p.weights / cell_counts.n[0] + q.weights / cell_counts.n[1]).ravel() / p.cell
            share = expit(loss)
            sides = pooled * share, pooled * (1 - share)
            return GridPart(cell_counts.n, np.array([key]), *sides, p.cell, p.axes, formula=loss)

        return cls._of("polynomial", cell_counts, block)

    @classmethod
    def _of(
        cls, name: str, cell_counts: CellCounts, block: Callable[[int, Binned, Binned], GridPart]
    ) -> GridScore:
        n, layout = cell_counts.n, cell_counts.binning.layout
        # a key that has draws of one side alone is a cell, whatever its numbers
        both = {key: (p, q) for key, (p, q) in cell_counts.binned.items() if p.total and q.total}
        single = [key for key in range(len(layout)) if key not in both]
        keys = np.array([*single, -1, -2], dtype=np.int64)
        masses = np.zeros((2, keys.size))
        masses[:, :-1] = cell_counts.counts[:, keys[:-1]] / np.array(n)[:, None]
        grids: dict[int, GridPart] = {}
        for key, (p, q) in both.items():
            masses[:, -1] += p.outside / n[0], q.outside / n[1]
            grids[key] = block(key, p, q)
        seen = masses.any(axis=0)
        cells = GridPart(n, keys[seen], masses[0, seen], masses[1, seen])
        by_key = np.zeros(len(layout) + 2)
        by_key[cells.keys] = cells.loss
        blocks = (*grids.values(), cells) if seen.any() else tuple(grids.values())
        return cls(layout, by_key, grids, name if grids else "frequency", cell_counts, blocks)

    def masses(self, *, one_sided: bool = False) -> Masses:
        """The pair as a finite one: every notion can be read off it.

        With `one_sided` densities are 0 where that input has hardly any draws beyond doubt.
        """
        parts = [
            tuple(
                side * block.cell
                for side in (block.one_sided() if one_sided else (block.p, block.q))
            )
            if block.axes is not None
            else without_noise(block.p, block.q, self.cell_counts.n)
            for block in self.blocks
        ]
        p, q = (np.concatenate(side) for side in zip(*parts, strict=True))
        return Masses(p / p.sum(), q / q.sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the counts and of the grid."""
        return (*self.cell_counts.notes, *self.coarse)

    @property
    def coarse(self) -> tuple[str, ...]:
        """That the grid and not the bandwidth sets how smooth densities are, where it does."""
        for block in self.pieces.values():
            for h, axis in zip(block.h, block.axes, strict=False):
                if h == 2 * axis.step:  # `bandwidths` raised it
                    return (
                        "the grid of the densities is too coarse for the bandwidth: two steps of the "
                        f"grid, {h:.3g}, are used instead. Clip outputs far out, or transform them",
                    )
        return ()

    def everywhere(self) -> FloatArray:
        """The loss wherever `CellCounts.everywhere` counts draws."""
        grids = [
            self.pieces[key].loss
            if key in self.pieces
            else np.full(p.weights.size, self.by_key[key])
            for key, (p, _) in self.cell_counts.binned.items()
        ]
        return np.concatenate([self.by_key, *grids])

    def levels(self, cell_counts: CellCounts) -> Levels | None:
        """How many draws, counted under the same binning, lie where on the loss, if it can say."""
        level = self.by_key
        keep = np.setdiff1d(
            np.arange(level.size - 1), [*self.pieces]
        )  # far outside is counted apart
        found = [level[np.where(keep == level.size - 2, -1, keep)]]
        counts: list[list[Any]] = [[side[keep]] for side in cell_counts.counts]
        for key, block in self.pieces.items():
            loss = block.loss
            found += [(loss + np.append(loss[1:], loss[-1])) / 2, level[-2:-1]]
            for own, side in zip(cell_counts.binned[key], counts, strict=True):
                if own.counts is None:
                    return None
                side += [own.counts, np.array([round(own.outside)])]
        return Levels(np.concatenate(found), *(np.concatenate(side) for side in counts))

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
        grids = list(self.pieces.values())
        lines = [b for b in grids if len(b.axes) == 1]
        if lines:
            block = max(lines, key=lambda b: float((b.p + b.q).sum() * b.cell))
            assert block.axes is not None
            part, x = self._part(block, 0), block.axes[0].points
            shown = slice(None, None, -(-x.size // SIZES[1]))
            return LossCurve(x[shown], block.loss[shown], block.p[shown], block.q[shown], part=part)
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
        # as `GridPart.loss`: half a draw, spread over the bandwidth
        width = math.sqrt(2 * math.pi) * block.h[k] if block.h else axes[k].step
        n_p, n_q = self.cell_counts.n
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


def _origin(cell_counts: CellCounts, key: int) -> float:
    """What was subtracted from the one number of a key before it was binned."""
    layout = cell_counts.binning.layout
    free = layout.free(key)
    if len(free) > 1:
        raise InvalidInput(
            f"support is for outputs that are one number; these have {len(free)}: leave it out"
        )
    return float(layout.part(key).origins[free[0]])


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


def coarse_grid(loss: object) -> tuple[str, ...]:
    """A note where a score is one of densities on a grid that is too coarse."""
    return loss.coarse if isinstance(loss, GridScore) else ()
