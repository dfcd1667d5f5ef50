"""How often an estimated privacy loss exceeds the thresholds of a grid of ε.

The loss is learned on a part of the draws and counted on the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.bounds import binomial_limits as clopper_pearson
from dpassay.bounds import joint_test as joint
from dpassay.bounds.ordering import Counts
from dpassay.bounds.upper_delta import upper_curve
from dpassay.learning.betting_cells import Cells, outside, why_trivial
from dpassay.learning.cross_fit import CrossFit, LogLoss, cells_suffice, select
from dpassay.learning.streaming import grid_loss
from dpassay.loss.cell_counts import Binning, CellCounts, first_look, tallies
from dpassay.loss.fit import NAMES, Loss
from dpassay.loss.grid import GridLoss
from dpassay.loss.keyed_losses import KnnLoss
from dpassay.outputs.canonical import Outputs
from dpassay.privacy.claims import ApproximateDP
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.pairs import SWAPS
from dpassay.sampling.budget import split
from dpassay.sampling.progress import Whole
from dpassay.sampling.samples import Sizes, Source

#: As many declared ε are bounded by the exact joint test, more by Clopper–Pearson limits.
_DECLARED = 4
#: The constant of Stone's lemma in Corollary 2, to the power of the dimension.
_CONES = 1 + 2 / math.sqrt(2 - math.sqrt(3))


@dataclass(frozen=True)
class Options:
    """Where and how δ(ε) of a pair is estimated."""

    eps: FloatArray
    loss: Any
    plug_in: str
    train: float
    swaps: tuple[bool, ...]  # the directions asked for: whether the inputs are swapped
    #: Whether a classifier trains on all training draws, or on the first ones alone.
    keep: bool = False

    @classmethod
    def of(
        cls, eps: FloatArray, loss: Any, plug_in: str, train: float | None, direction: str
    ) -> Options:
        """Options from what a caller gave."""
        checks.one_of("plug_in", plug_in, ("auto", "smooth", "counts"))
        checks.one_of("direction", direction, tuple(SWAPS))
        if isinstance(loss, str):
            checks.one_of("loss", loss, ("auto", "values", *NAMES))
        neighbours = isinstance(loss, str) and loss == "knn"
        share = train if train is not None else 0.5 if neighbours else 0.25
        checks.probability("train", share)
        keep = train is not None or neighbours
        return cls(eps, loss, plug_in, share, SWAPS[direction], keep)


@dataclass(frozen=True, eq=False)
class ThresholdCounts:
    """Counts and estimates of one pair at the thresholds ε of a grid.

    Row k of an event array belongs to {ℓ̂ > ε_k} (forward) or {ℓ̂ < −ε_k} (backward).
    """

    name: str
    n: tuple[int, int]
    backward: npt.NDArray[np.bool_]  # the direction chosen for the event of each ε
    hits: IntArray  # of the leading side of that direction
    misses: IntArray  # hits of the other side
    totals: tuple[IntArray, IntArray]
    delta: FloatArray  # the estimate
    #: Held-out draws of outputs that repeat, a row a side; everything else comes last.
    cells: IntArray
    #: (draws in all, dimension), for nearest neighbours that were counted.
    neighbours: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        options: Options,
        above: IntArray,
        backward: npt.NDArray[np.bool_],
        cells: IntArray,
        smooth: FloatArray | None,
        **others: Any,
    ) -> ThresholdCounts:
        """From the counts of `_hits`, with the direction chosen at each ε.

        `smooth` is the estimate by direction that averages a formula; None if it counts instead.
        """
        held = cells.sum(axis=1)
        index, flip = np.arange(options.eps.size), backward.astype(int)
        leading, other = above[flip, flip, index], above[flip, 1 - flip, index]
        totals = np.where(backward, held[1], held[0]), np.where(backward, held[0], held[1])
        if smooth is None:
            rates = []
            for side in map(int, options.swaps):
                high, low = above[side, side] / held[side], above[side, 1 - side] / held[1 - side]
                rates.append(np.max(high[:, None] - low[:, None] * _ratio(options.eps), axis=0))
            smooth = np.array(rates)
        delta = np.maximum(np.max(smooth, axis=0), 0.0)
        counts = {"backward": backward, "hits": leading, "misses": other, "totals": totals}
        return cls(delta=delta, cells=cells, **counts, **others)

    def accuracy(self, eps: FloatArray, beta: float) -> FloatArray | None:
        """Corollary 2: 24 e^ε c_d √(ln(4/β)/n) + 2 e^ε √(ln(4/β)/n)."""
        if self.neighbours is None:
            return None
        n, d = self.neighbours
        width = math.sqrt(math.log(4 / beta) / n)
        return np.asarray(_ratio(eps) * width * (24 * (_CONES**d - 1) + 2))


def certified(
    found: Any, eps: FloatArray, gamma: float, swaps: tuple[bool, ...] = (False, True)
) -> FloatArray:
    """Lower bounds on δ at all ε at once, from the hits, misses and totals of the event of each.

    The joint test is about the larger of the two directions: its region follows from the event and from
    its complement with the inputs swapped. Of a single direction the event alone speaks.
    """
    if eps.size <= _DECLARED and len(swaps) > 1:
        rows = zip(eps, found.hits, found.totals[0], found.misses, found.totals[1], strict=True)
        each = gamma / eps.size
        lines = [
            joint.lower_bound(Counts(*map(int, row)), ApproximateDP(float(e), 0.0, "delta"), each)
            for e, *row in rows
        ]
    else:
        each = gamma / (2 * eps.size)
        high = clopper_pearson.lower(found.hits, found.totals[0], each)
        low = clopper_pearson.upper(found.misses, found.totals[1], each)
        lines = np.max(high[:, None] - low[:, None] * _ratio(eps), axis=0, initial=0.0)
    return np.maximum.accumulate(lines[::-1])[::-1]  # δ does not rise with ε


def bounded_above(
    cells: list[IntArray], eps: FloatArray, gamma: float, swaps: tuple[bool, ...] = (False, True)
) -> FloatArray | None:
    """Bounds on the δ of the worst pair at all ε at once; None if most draws of a pair are in no cell."""
    if any(why_trivial(outside(pair)) for pair in cells):
        return None
    return upper_curve([(pair[0], pair[1]) for pair in cells], eps, gamma, swaps)


def _ratio(eps: FloatArray) -> FloatArray:
    """e^ε up to e^700: beyond, no counted rate makes up for the factor, so the cap changes nothing."""
    return np.exp(np.minimum(eps, 700.0))


def count_thresholds(source: Source, n: int | None, options: Options) -> ThresholdCounts:
    """Learn a loss on a part of the draws; count how often it passes each ε on the rest."""
    budget = split(source, n, options.train, least=(20, 10))
    look, more = first_look(budget.learn)
    with Whole(budget.draws(1)):
        batch = source.deal(look)
        learner = CrossFit(batch, options.loss, source.rng)
        if learner.on_cells and cells_suffice(learner):
            return _on_grid(source, learner, more, budget.test, options)
        test = budget.test
        if max(more) and options.keep:
            learner = CrossFit(batch.with_more(source.deal(more)), options.loss, source.rng)
        elif max(more):  # the first draws have trained the score: the others count
            test = test[0] + more[0], test[1] + more[1]
        return _by_scores(source, learner, test, options)


# --- losses on a grid: counts of draws, which add up


def _on_grid(
    source: Source, learner: CrossFit, more: Sizes, test: Sizes, options: Options
) -> ThresholdCounts:
    found = grid_loss(learner)
    binning, trained = found.tally.binning, found.tally
    trained = reduce(add, tallies(source, more, binning), trained)
    loss = found if not max(more) else GridLoss.named(found.name, trained)
    backward = _directions(_deltas(loss.masses(), options), options)
    if loss.levels(trained) is not None:
        held = reduce(add, tallies(source, test, binning))
        levels = loss.levels(held)
        assert levels is not None
        above = _hits(levels.loss, levels.loss, options.eps, levels.p, levels.q)
    else:  # more than one free coordinate: cells are no sets of draws, so every draw is scored
        parts = source.blocks(test, partial(_tally_and_hits, binning, loss, options.eps))
        held, above = reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), parts)
    cells = Cells.of(binning.layout)
    counts = np.array([cells.fold(side) for side in held.counts])
    everything = trained + held
    smooth = None
    if options.plug_in != "counts":
        smooth = _deltas(GridLoss.named(found.name, everything).masses(), options)
    named = {"name": loss.name, "n": everything.n}
    return ThresholdCounts.of(options, above, backward, counts, smooth, **named)


def _deltas(masses: Masses, options: Options) -> FloatArray:
    """δ(ε) of each direction."""
    return np.array([(masses.swap() if s else masses).delta(options.eps) for s in options.swaps])


def _tally_and_hits(
    binning: Binning, loss: Loss, eps: FloatArray, p: Outputs, q: Outputs
) -> tuple[CellCounts, IntArray]:
    return binning.tally(p, q), _hits(loss.score(p), loss.score(q), eps)


def _hits(
    score_p: FloatArray,
    score_q: FloatArray,
    eps: FloatArray,
    weight_p: IntArray | None = None,
    weight_q: IntArray | None = None,
) -> IntArray:
    """[direction, side, ε]: draws with ℓ̂ > ε (forward) and ℓ̂ < −ε (backward), both sides."""
    out = np.zeros((2, 2, eps.size), dtype=np.int64)
    for side, (scores, weights) in enumerate(((score_p, weight_p), (score_q, weight_q))):
        order = np.argsort(scores)
        ranked = scores[order]
        counts = np.ones(ranked.size, dtype=np.int64) if weights is None else weights[order]
        total = np.concatenate([[0], np.cumsum(counts)])
        out[0, side] = total[-1] - total[np.searchsorted(ranked, eps, side="right")]
        out[1, side] = total[np.searchsorted(ranked, -eps, side="left")]
    return out


def _directions(expected: FloatArray, options: Options) -> npt.NDArray[np.bool_]:
    """Which direction to certify at each ε: the one with the larger δ in training."""
    if len(options.swaps) == 1:
        return np.full(options.eps.size, options.swaps[0])
    return np.asarray(expected[1] > expected[0])


# --- any other loss: scores of held-out draws


def _by_scores(source: Source, learner: CrossFit, test: Sizes, options: Options) -> ThresholdCounts:
    index = 0 if len(learner.names) == 1 else select(learner, LogLoss(), learner.families[0])[0]
    loss = learner.fitted(index)
    train = learner.batch
    averages = partial(_averages, loss, options, Cells.learn(train))
    expected = averages(train.p[:20_000], train.q[:20_000])[0] / min(*train.sizes, 20_000)
    backward = _directions(expected, options)
    parts = zip(*source.blocks(test, averages), strict=True)
    sums, above, counts = (np.sum(part, axis=0) for part in parts)
    held = counts.sum(axis=1)
    per = np.array([held[int(side)] for side in options.swaps])
    sizes = int(held[0]) + train.sizes[0], int(held[1]) + train.sizes[1]
    smooth = sums / per[:, None] if options.plug_in == "smooth" else None
    neighbours = None
    if isinstance(loss, KnnLoss) and smooth is None:  # Corollary 2 is a statement about counts
        neighbours = min(sizes), train.p.numbers.shape[1]
    named = {"name": loss.name, "n": sizes, "neighbours": neighbours}
    return ThresholdCounts.of(options, above, backward, counts, smooth, **named)


def _averages(
    loss: Loss, options: Options, cells: Cells, p: Outputs, q: Outputs
) -> tuple[FloatArray, IntArray, IntArray]:
    """Σ (1 − e^{ε−ℓ̂})₊ over the leading side of each direction, the hits, and the counts of cells."""
    score_p, score_q = loss.score(p), loss.score(q)
    eps, sums = options.eps, []
    for side in options.swaps:
        ranked = np.sort(-score_q if side else score_p)
        tail = np.concatenate([np.cumsum(np.exp(-ranked)[::-1])[::-1], [0.0]])
        at = np.searchsorted(ranked, eps, side="right")
        sums.append(ranked.size - at - _ratio(eps) * tail[at])
    return np.array(sums), _hits(score_p, score_q, eps), cells(p, q)
