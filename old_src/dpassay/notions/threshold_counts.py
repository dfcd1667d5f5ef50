"""How often an estimated privacy loss exceeds the thresholds of a grid of ε.

The loss is learned on a part of the draws and counted on the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.bounds import clopper_pearson
from dpassay.bounds import joint_test as joint
from dpassay.bounds.ordering import Counts
from dpassay.bounds.upper_delta import upper_curve
from dpassay.errors import InvalidInput
from dpassay.learning.betting_cells import Cells, outside, why_trivial
from dpassay.learning.cross_fit import CrossFit, LogLoss, select
from dpassay.learning.streaming import best_kind, cells_serve, grid_loss
from dpassay.outputs.canonical import Outputs
from dpassay.privacy.claims import ApproximateDP
from dpassay.privacy.relations import SWAPS, Pair
from dpassay.records import Record
from dpassay.sampling.budget import split
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Sizes, Source
from dpassay.scores.cell_counts import Binning, CellCounts, count_blocks, first_look
from dpassay.scores.cells_and_neighbours import KnnScore
from dpassay.scores.fit import NAMES, Score
from dpassay.scores.grid import GridScore, coarse_grid

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
    keep: bool  # whether a classifier trains on all training draws, or on the first ones alone

    @classmethod
    def of(
        cls,
        epsilons: npt.ArrayLike | None,
        loss: Any,
        plug_in: str,
        train: float | None = None,
        direction: str = "both",
    ) -> Options:
        """Options from what a caller gave."""
        given = np.linspace(0, 2, 41) if epsilons is None else epsilons
        eps = np.atleast_1d(checks.doubles("epsilons", given))
        if eps.ndim != 1 or eps.size == 0 or not np.all(np.isfinite(eps)) or np.any(eps < 0):
            raise InvalidInput(
                f"epsilons must be finite numbers of at least 0, got {checks.shown(epsilons)}"
            )
        checks.one_of("plug_in", plug_in, ("auto", "smooth", "counts"))
        checks.one_of("direction", direction, tuple(SWAPS))
        if isinstance(loss, str):
            checks.one_of("loss", loss, ("auto", "values", *NAMES))
        neighbours = isinstance(loss, str) and loss == "knn"
        share = train if train is not None else 0.5 if neighbours else 0.25
        checks.probability("train", share)
        keep = train is not None or neighbours
        return cls(np.unique(eps), loss, plug_in, share, SWAPS[direction], keep)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairSpectrum(Record):
    """One pair of a set: its estimate, and the counts that its bounds are computed from.

    Entry k of the counts belongs to {ℓ̂ > ε_k}, or to {ℓ̂ < −ε_k} where `backward`.
    """

    database: str  # a fingerprint of the database it belongs to
    pair: Pair
    y: FloatArray = field(repr=False)
    backward: npt.NDArray[np.bool_] = field(repr=False)  # the direction chosen for each ε
    hits: IntArray = field(repr=False)  # of the leading side of that direction
    misses: IntArray = field(repr=False)  # hits of the other side
    totals: tuple[IntArray, IntArray] = field(repr=False)
    #: Held-out draws of outputs that repeat, a row a side; everything else comes last.
    cells: IntArray = field(repr=False)
    method: str = ""


class Counted(NamedTuple):
    """Held-out draws counted by an estimated loss."""

    method: str
    n: Sizes  # draws in all
    expected: FloatArray  # δ(ε) of each direction in training
    above: IntArray  # the counts of `_hits`
    cells: IntArray
    smooth: FloatArray | None  # δ(ε) of each direction by a formula; None if it is counted
    dimension: int | None = None  # of nearest neighbours that were counted
    notes: tuple[str, ...] = ()


def count_thresholds(
    source: Source, n: int | None, options: Options, database: str = ""
) -> tuple[PairSpectrum, Counted]:
    """Learn a loss on a part of the draws; count how often it passes each ε on the rest."""
    budget = split(source, n, options.train, least=(20, 10))
    test = budget.test
    first, more = first_look(budget.learn)
    with CallProgress(budget.draws(1)):
        batch = source.deal(first)
        learner = CrossFit(batch, options.loss, source.rng)
        if cells_serve(learner):
            counted = _on_grid(source, learner, more, test, options)
        else:
            if max(more) and options.keep:
                learner = CrossFit(batch.with_more(source.deal(more)), options.loss, source.rng)
            elif max(more):  # the first draws have trained the score: the others count
                test = test[0] + more[0], test[1] + more[1]
            counted = _by_scores(source, learner, test, options)
    eps, above, expected = options.eps, counted.above, counted.expected
    backward = np.full(eps.size, options.swaps[0])
    if len(options.swaps) > 1:  # the direction with the larger δ in training
        backward = np.asarray(expected[1] > expected[0])
    held, deltas = counted.cells.sum(axis=1), counted.smooth
    if deltas is None:
        rates = []
        for side in map(int, options.swaps):
            high, low = above[side, side] / held[side], above[side, 1 - side] / held[1 - side]
            rates.append(np.max(high[:, None] - low[:, None] * _ratio(eps), axis=0))
        deltas = np.array(rates)
    index, led_by = np.arange(eps.size), backward.astype(int)
    part = PairSpectrum(
        database=database,
        pair=source.pair,
        y=np.maximum(np.max(deltas, axis=0), 0.0),
        backward=backward,
        hits=above[led_by, led_by, index],
        misses=above[led_by, 1 - led_by, index],
        totals=(held[led_by], held[1 - led_by]),
        cells=counted.cells,
        method=counted.method,
    )
    return part, counted


def accuracy(counted: Counted, eps: FloatArray, beta: float) -> FloatArray | None:
    """Corollary 2: 24 e^ε c_d √(ln(4/β)/n) + 2 e^ε √(ln(4/β)/n)."""
    if counted.dimension is None:
        return None
    width = math.sqrt(math.log(4 / beta) / min(counted.n))
    return np.asarray(_ratio(eps) * width * (24 * (_CONES**counted.dimension - 1) + 2))


def certified(
    found: PairSpectrum, eps: FloatArray, gamma: float, swaps: tuple[bool, ...] = (False, True)
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
) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Bounds on the δ of the worst pair at all ε at once; or None, and a note that says why."""
    for pair in cells:
        if reason := why_trivial(outside(pair)):
            return None, (f"no upper curve: {reason}",)
    return upper_curve([(pair[0], pair[1]) for pair in cells], eps, gamma, swaps), ()


def _ratio(eps: FloatArray) -> FloatArray:
    """e^ε up to e^700: beyond, no counted rate makes up for the factor, so the cap changes nothing."""
    return np.exp(np.minimum(eps, 700.0))


def _on_grid(
    source: Source, learner: CrossFit, more: Sizes, test: Sizes, options: Options
) -> Counted:
    """By a loss on a grid: counts of draws, which add up."""
    loss = grid_loss(learner)
    name, binning, trained = loss.name, loss.cell_counts.binning, loss.cell_counts
    if max(more):
        trained = reduce(add, count_blocks(source, more, binning), trained)
        loss = GridScore.named(name, trained)
    if loss.levels(trained) is not None:
        held = reduce(add, count_blocks(source, test, binning))
        levels = loss.levels(held)
        assert levels is not None
        above = _hits(levels.loss, levels.loss, options.eps, levels.p, levels.q)
    else:  # more than one free coordinate: cells are no sets of draws, so every draw is scored
        parts = source.blocks(test, partial(_cells_and_hits, binning, loss, options.eps))
        held, above = reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), parts)
    cells, everything = Cells.of(binning.layout), trained + held
    counts = np.array([cells.fold(side) for side in held.counts])
    smooth, expected = None, _deltas(loss, options)
    if options.plug_in != "counts":
        loss = GridScore.named(best_kind(learner.on_cells, trained, held), everything)
        smooth = _deltas(loss, options)
    return Counted(loss.name, everything.n, expected, above, counts, smooth, None, loss.coarse)


def _deltas(loss: GridScore, options: Options) -> FloatArray:
    """δ(ε) of each direction."""
    masses = loss.masses()
    return np.array([(masses.swap() if s else masses).delta(options.eps) for s in options.swaps])


def _cells_and_hits(
    binning: Binning, loss: Score, eps: FloatArray, p: Outputs, q: Outputs
) -> tuple[CellCounts, IntArray]:
    return binning.count(p, q), _hits(loss.score(p), loss.score(q), eps)


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


def _by_scores(source: Source, learner: CrossFit, test: Sizes, options: Options) -> Counted:
    """By any other loss: scores of held-out draws."""
    index = 0 if len(learner.names) == 1 else select(learner, LogLoss(), learner.families[0])[0]
    loss, train = learner.fitted(index), learner.batch
    averages = partial(_averages, loss, options, Cells.learn(train))
    expected = averages(train.p[:20_000], train.q[:20_000])[0] / min(*train.sizes, 20_000)
    parts = zip(*source.blocks(test, averages), strict=True)
    sums, above, counts = (np.sum(part, axis=0) for part in parts)
    held = counts.sum(axis=1)
    sizes = int(held[0]) + train.sizes[0], int(held[1]) + train.sizes[1]
    if options.plug_in == "smooth":
        smooth = sums / held[list(map(int, options.swaps)), None]
        return Counted(loss.name, sizes, expected, above, counts, smooth)
    # Corollary 2 is a statement about counts
    dimension = train.p.numbers.shape[1] if isinstance(loss, KnnScore) else None
    return Counted(loss.name, sizes, expected, above, counts, None, dimension, coarse_grid(loss))


def _averages(
    loss: Score, options: Options, cells: Cells, p: Outputs, q: Outputs
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
