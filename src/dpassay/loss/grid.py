"""The loss on cells: frequencies of keys (TDDE), kernel densities of the numbers in them (TKDE).

A `Plan` says which keys and grids to use; it is learned from a first look at the draws. A `Tally`
is what any number of draws amount to under a plan: tallies add up, so draws can be streamed. A
`GridLoss` is the pair of densities a tally implies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, xlogy

from dpassay._typing import FloatArray, IntArray
from dpassay.errors import InvalidInput
from dpassay.events import Event, Intervals, Layout, Test
from dpassay.loss import kde
from dpassay.loss.bandwidth import bandwidth, scale, undersmooth
from dpassay.loss.binned import SIZES, Axis, Binned, axes_for, bin_linear
from dpassay.privacy.curves import LossCurve
from dpassay.privacy.masses import Masses
from dpassay.sampling.layout import Sorted, describe, learn, sort, words
from dpassay.sampling.outputs import Outputs
from dpassay.sampling.samples import Source

#: A key needs this many draws on the two sides together to get a density of its own.
_FEW = 40
#: The draws a plan is learned from.
PILOT = 1 << 17


@dataclass(frozen=True, eq=False)
class Plan:
    """Which keys there are, and the grid for the numbers of each (None: the key is a cell)."""

    layout: Layout
    axes: tuple[tuple[Axis, ...] | None, ...]

    @classmethod
    def learn(cls, p: Outputs, q: Outputs) -> Tally:
        """Find keys and grids from draws that may be looked at; and the tally of those draws."""
        layout, *sides = learn(p, q)
        if any(len(layout.free(key)) > max(SIZES) for key in range(len(layout))):
            layout, *sides = learn(p, q, whole=True)  # too many numbers for densities: rare keys do
        if not any(any(part.open) for part in layout.parts):
            return cls(layout, (None,) * len(layout))._tally(*sides)
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
        return cls(layout, tuple(axes))._tally(*sides)

    def tally(self, p: Outputs, q: Outputs) -> Tally:
        """What these draws amount to."""
        return self._tally(sort(self.layout, p), sort(self.layout, q))

    def _tally(self, *found: Sorted) -> Tally:
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
    """Counts of keys and binned numbers, both sides; tallies under one plan add up."""

    plan: Plan
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
            self.plan,
            self.counts_p + other.counts_p,
            self.counts_q + other.counts_q,
            tuple(_sum(a, b) for a, b in zip(self.binned_p, other.binned_p, strict=True)),
            tuple(_sum(a, b) for a, b in zip(self.binned_q, other.binned_q, strict=True)),
        )


def _sum(a: Binned | None, b: Binned | None) -> Binned | None:
    return None if a is None or b is None else a + b


def survey(source: Source, n: int | None) -> Tally:
    """Tally `n` draws a side, all there are if None: a first look makes the plan, the rest stream.

    Memory stays that of the first look whatever n is.
    """
    if n is None:
        everything = source.take(None)
        return Plan.learn(everything.p, everything.q)
    pilot = source.take(min(n, PILOT))
    tally = Plan.learn(pilot.p, pilot.q)
    if n > PILOT:
        for part in source.blocks(n - PILOT, tally.plan.tally):
            tally = tally + part
    return tally


@dataclass(frozen=True, eq=False)
class Block:
    """Cells with masses p and q, one key each; or the grid of one key, with densities."""

    keys: IntArray  # −1: outputs in no key; −2: numbers far outside their grid
    p: FloatArray
    q: FloatArray
    cell: float = 1.0
    axes: tuple[Axis, ...] | None = None
    h: tuple[float, ...] = ()
    loss: FloatArray | None = None  # log p/q where it is a formula, known without draws

    def key(self, cell: int) -> int:
        """The key a cell belongs to."""
        return int(self.keys[0 if self.axes is not None else cell])

    @property
    def kernel(self) -> float:
        """∫K_h², 1 for a mass: the variance of p̂ is kernel·p/n, less p²/n for a mass."""
        return kde.kernel_norm(self.h)

    @property
    def peak(self) -> float:
        """What one draw adds to n times the density at its own place."""
        return math.prod(1 / (math.sqrt(2 * math.pi) * h) for h in self.h)


@dataclass(frozen=True, eq=False)
class GridLoss:
    """log p̂/q̂ on cells."""

    tally: Tally
    blocks: tuple[Block, ...]

    @classmethod
    def named(cls, name: str, tally: Tally) -> GridLoss:
        """The "kde" or the "polynomial" loss of a tally."""
        return cls.polynomial(tally) if name == "polynomial" else cls.of(tally)

    @classmethod
    def of(cls, tally: Tally, rule: str | float = "sj", *, inference: bool = False) -> GridLoss:
        """Densities with one bandwidth for both sides; a smaller one for `inference`."""

        def block(key: int, p: Binned, q: Binned) -> Block:
            h = _common(p, q, rule, inference)
            densities = []
            for own, total in zip((p, q), tally.n, strict=True):
                inside = (own.total - own.outside) / total
                on_grid = kde.on_grid(own, h).ravel() if inside > 0 else own.weights.ravel()
                mass = float(on_grid.sum()) * own.cell
                densities.append(on_grid * (inside / mass if mass > 0 else 0.0))
            return Block(np.array([key]), densities[0], densities[1], p.cell, p.axes, h)

        return cls._of(tally, block)

    @classmethod
    def polynomial(cls, tally: Tally) -> GridLoss:
        """log p/q a quadratic function of the free numbers of a key, by maximum likelihood.

        Exact for Gaussian noise, stiff and so nearly without noise for the rest: the tails, where
        densities have few draws to go by, borrow from the middle.
        """

        def block(key: int, p: Binned, q: Binned) -> Block:
            loss = quadratic(p, q, tally.n)
            pooled = (p.weights / tally.n[0] + q.weights / tally.n[1]).ravel() / p.cell
            share = expit(loss)
            sides = pooled * share, pooled * (1 - share)
            return Block(np.array([key]), *sides, p.cell, p.axes, loss=loss)

        return cls._of(tally, block)

    @classmethod
    def _of(cls, tally: Tally, block: Callable[[int, Binned, Binned], Block]) -> GridLoss:
        n = tally.n
        single = [key for key, axes in enumerate(tally.plan.axes) if axes is None]
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
        cells = Block(keys[seen], masses[0, seen], masses[1, seen])
        return cls(tally, (*grids, cells) if seen.any() else tuple(grids))

    @property
    def name(self) -> str:
        """What was fitted, for people."""
        grids = [b for b in self.blocks if b.axes is not None]
        if not grids:
            return "frequency"
        return "kde" if grids[0].loss is None else "polynomial"

    @property
    def layout(self) -> Layout:
        """The keys the outputs fall into."""
        return self.tally.plan.layout

    def masses(self) -> Masses:
        """The pair as a finite one: every notion can be read off it."""
        parts = [
            (block.p * block.cell, block.q * block.cell)
            if block.axes is not None
            else calmed(block.p, block.q, self.tally.n)
            for block in self.blocks
        ]
        p, q = (np.concatenate(side) for side in zip(*parts, strict=True))
        return Masses(p / p.sum(), q / q.sum())

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output, drawn towards 0 where there is next to nothing."""
        found = sort(self.layout, outputs)
        keys = np.zeros(len(outputs), dtype=np.int64) if found.keys is None else found.keys
        levels = np.zeros(len(self.layout) + 2)  # the last two: far outside, and in no key
        for block in self.blocks:
            if block.axes is None:
                levels[block.keys] = self.shrunk(block)
        result = levels[keys]
        for block in self.blocks:
            if block.axes is not None:
                ratio = self.shrunk(block).reshape([a.size for a in block.axes])
                inside = slice(None) if found.keys is None else keys == block.keys[0]
                numbers = found.numbers(int(block.keys[0]))
                result[inside] = _interpolate(numbers, block.axes, ratio)
        return result

    def shrunk(self, block: Block) -> FloatArray:
        """log (p + half a draw)/(q + half a draw)."""
        if block.loss is not None:
            return block.loss
        n_p, n_q = self.tally.n
        half = 0.5 * block.peak
        return np.asarray(np.log(block.p + half / n_p) - np.log(block.q + half / n_q))

    def levels(self, tally: Tally) -> Levels | None:
        """How many draws of a tally under the same plan lie where on the loss, if it can say."""
        level = np.zeros(len(self.layout) + 2)
        for block in self.blocks:
            if block.axes is None:
                level[block.keys] = self.shrunk(block)
        gridded = [k for k, axes in enumerate(self.tally.plan.axes) if axes is not None]
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

    def event(self, cut: float, above: bool) -> Event | None:
        """{loss ≥ cut}, or {loss ≤ cut}, as keys and intervals; None where numbers have more axes.

        Slivers of the event, and slivers missing from it, with less than a hundredth of its draws are
        noise of the densities: they are left out and filled in.
        """
        sign = 1.0 if above else -1.0
        whole: list[int] = []
        partial: list[tuple[int, Test]] = []
        otherwise = sign * 0.0 >= sign * cut
        for block in self.blocks:
            high = sign * self.shrunk(block) >= sign * cut
            if block.axes is None:
                whole += [int(k) for k in block.keys[high & (block.keys >= 0)]]
                if np.any(block.keys == -1):
                    otherwise = bool(high[block.keys == -1][0])
                continue
            if len(block.axes) > 1:
                return None
            found = _intervals(sign * self.shrunk(block), sign * cut, block)
            if found is not None:
                partial.append((block.key(0), found))
        return Event(
            words=describe(self.layout, whole, partial, otherwise),
            layout=self.layout,
            whole=tuple(whole),
            partial=tuple(partial),
            otherwise=otherwise,
        )

    def where(self, block: Block, cell: int) -> str:
        """A cell as an output a person can read."""
        key = block.key(cell)
        if key < 0:
            return "any other output" if key == -1 else "far outside"
        return words(self.layout, key, self.point(block, cell) if block.axes else None)

    def point(self, block: Block, cell: int) -> list[float]:
        """The free numbers of a cell."""
        axes = block.axes or ()
        index = np.unravel_index(cell, [a.size for a in axes]) if axes else ()
        return [float(a.points[k]) for a, k in zip(axes, index, strict=True)]

    def curve(self) -> LossCurve:
        """The loss along the outputs: of the largest density in one dimension, else by output."""
        grids = [b for b in self.blocks if b.axes is not None and len(b.axes) == 1]
        if grids:
            block = max(grids, key=lambda b: float((b.p + b.q).sum() * b.cell))
            assert block.axes is not None
            return LossCurve(block.axes[0].points, self.shrunk(block), block.p, block.q)
        block = self.blocks[-1]
        top = np.sort(np.argsort(-(block.p + block.q), kind="stable")[:200])
        labels = tuple(self.where(block, int(k)) for k in top)
        p, q = block.p[top], block.q[top]
        with np.errstate(divide="ignore", invalid="ignore"):
            ell = np.log(p) - np.log(q)
        return LossCurve(np.arange(top.size, dtype=float), ell, p, q, labels=labels)


def _intervals(level: FloatArray, cut: float, block: Block) -> Intervals | None:
    """Where the interpolated level is at least `cut`, without slivers."""
    assert block.axes is not None
    x, inside = block.axes[0].points, level >= cut
    if not inside.any():
        return None
    mass = (block.p + block.q) * block.cell
    sliver = 0.01 * float(mass[inside].sum())
    for fill in (True, False):  # first close small gaps, then drop small pieces
        edges = np.flatnonzero(np.diff(inside.astype(int))) + 1
        for piece in np.split(np.arange(x.size), edges):
            if inside[piece[0]] != fill and float(mass[piece].sum()) < sliver:
                inside[piece] = fill
    if not inside.any():
        return None
    turns = np.flatnonzero(np.diff(inside.astype(int)))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (cut - level[turns]) / (level[turns + 1] - level[turns])
    share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.5)
    places = x[turns] + share * (x[turns + 1] - x[turns])
    bounds = np.concatenate(
        [[-np.inf] if inside[0] else [], places, [np.inf] if inside[-1] else []]
    )
    return Intervals(bounds[0::2], bounds[1::2])


def stiffest(train: Tally, held: Tally) -> str:
    """ "polynomial" unless "kde" predicts the side of held-out draws better by a standard error."""
    stiff, free = GridLoss.polynomial(train), GridLoss.of(train)
    gain, variance = 0.0, 0.0
    for a, b in zip(stiff.blocks, free.blocks, strict=True):
        if a.axes is None:
            continue
        losses = stiff.shrunk(a), free.shrunk(b)
        for sign, side in ((1.0, held.binned_p), (-1.0, held.binned_q)):
            own = side[a.key(0)]
            assert own is not None
            better = log_expit(sign * losses[0]) - log_expit(sign * losses[1])
            gain += float(own.weights.ravel() @ better)
            variance += float(own.weights.ravel() @ better**2)
    return "polynomial" if gain > -math.sqrt(variance) else "kde"


@dataclass(frozen=True, eq=False)
class Levels:
    """Draws by the value of a loss: `p` and `q` of them have the loss `loss`."""

    loss: FloatArray
    p: IntArray
    q: IntArray


def quadratic(p: Binned, q: Binned, n: tuple[int, int]) -> FloatArray:
    """The maximum-likelihood log p/q of the form a + b·x + c·x² (all products) on a grid.

    Newton's method on the weights of the cells: its cost does not depend on n. The ridge is worth one
    draw.
    """
    # the grid as a unit cube: standardised it is the same, and its squares exist
    mesh = np.meshgrid(*(np.linspace(0.0, 1.0, axis.size) for axis in p.axes), indexing="ij")
    x = np.stack([m.ravel() for m in mesh], axis=1)
    weight_p, weight_q = p.weights.ravel() / n[0], q.weights.ravel() / n[1]
    both = weight_p + weight_q
    mass = max(float(both.sum()), 1e-300)
    centre = both @ x / mass
    spread = np.sqrt(both @ (x - centre) ** 2 / mass)
    z = (x - centre) / np.where(spread > 0, spread, 1.0)
    d = z.shape[1]
    products = [z[:, i] * z[:, j] for i in range(d) for j in range(i, d)]
    terms = np.column_stack([np.ones(len(z)), z, *products])
    some = both > 0
    inside, weight, hits = terms[some], both[some], weight_p[some]
    beta, ridge = np.zeros(terms.shape[1]), 1.0 / min(n)
    for _ in range(50):
        share = expit(inside @ beta)
        gradient = inside.T @ (hits - weight * share) - ridge * beta
        curvature = (inside * (weight * share * (1 - share))[:, None]).T @ inside
        step = np.linalg.solve(curvature + ridge * np.eye(beta.size), gradient)
        longest = float(np.abs(inside @ step).max())
        beta += step * min(1.0, 5.0 / max(longest, 1e-300))
        if longest < 1e-10:
            break
    return np.asarray(np.clip(terms @ beta, -30.0, 30.0))


def calmed(p: FloatArray, q: FloatArray, n: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
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


def _common(p: Binned, q: Binned, rule: str | float, inference: bool) -> tuple[float, ...]:
    """The smaller of the two sides' bandwidths, at least two steps of the grid."""
    pairs = []
    for side in (p, q):
        if side.total - side.outside < 10:
            continue
        h = bandwidth(side, rule)
        if inference and isinstance(rule, str):
            marginals = [side.marginal(k) if len(h) > 1 else side for k in range(len(h))]
            h = tuple(undersmooth(w, scale(m)) for w, m in zip(h, marginals, strict=True))
        pairs.append(h)
    chosen = np.min(pairs, axis=0) if pairs else np.array([10 * a.step for a in p.axes])
    return tuple(max(float(w), 2 * a.step) for w, a in zip(chosen, p.axes, strict=True))


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
