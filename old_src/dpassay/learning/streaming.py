"""A score that is fitted to the first draws, over all draws that follow: block by block, none is kept.

Cell counts under one binning add up, so that a loss on cells is fitted to all draws, and which kind of it
predicts best is asked of all of them. A score of any other kind is fitted to the first look alone; the
draws that follow are counted by where their scores lie.

**Rare events.** Some ten thousand draws fit a score, and say nothing about events of probability 10⁻⁶.
Where many millions test, a part of them is tallied first, on the grid of the loss: in constant memory,
and on the device where the draws are. One half of that part fits a quadratic loss and densities; the
other half judges them. A quadratic that predicts no worse gives the rates of its events as a model would,

    p̂(E) = Σ_E s σ(ℓ),    q̂(E) = Σ_E s σ(−ℓ),        s the share of both sides in a cell,

so that its three parameters, and not the few draws far out, say where p exceeds what a claim allows.
Densities are judged by how often their events happen. As in all learning, a poor model costs power and
never validity: the draws that test are others.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial, reduce
from operator import add

import numpy as np
from scipy.special import expit

from dpassay._typing import FloatArray, IntArray
from dpassay.learning.calibration import contradicted
from dpassay.learning.cross_fit import CrossFit, Scores, cells_suffice, log_loss
from dpassay.learning.event_selection import EventCriterion, SelectedEvent
from dpassay.learning.hit_rates import HitRates
from dpassay.outputs.canonical import Outputs
from dpassay.sampling.budget import Budget
from dpassay.sampling.samples import Sizes, Source
from dpassay.scores.cell_counts import CellCounts, count_blocks
from dpassay.scores.fit import Score
from dpassay.scores.grid import GridScore, Levels

#: A quadratic loss is contradicted by residuals so many standard errors from 0, in some tail (of Gaussian
#: noise in 2 of 1,400 samples; of Laplace noise with ε = 1/20 in nearly all at 10⁵ draws).
_MISFIT = 4.5


def cells_serve(learner: CrossFit) -> bool:
    """Whether no score predicts clearly better than losses on cells, and those may be read off.

    Densities of several numbers follow the very draws that they are fitted to: the pair that they make is
    too far apart (μ by a fifth at 20,000 draws). As a score they are counted on other draws.
    """
    if not learner.on_cells or not cells_suffice(learner):
        return False
    return learner.training.layout.widest < 2 or grid_loss(learner).name == "polynomial"


def grid_loss(learner: CrossFit) -> GridScore:
    """The loss on cells, of those tried, that predicts best, fitted to all training draws."""
    name = best_kind(learner.on_cells, *(half.cell_counts for half in learner.training.halves))
    found = learner.fitted(learner.names.index(name))
    assert isinstance(found, GridScore)
    return found


def grid_over(source: Source, learner: CrossFit, rest: Sizes) -> GridScore:
    """The same, fitted to the first look and the rest."""
    training = learner.training
    binning = training.binning.widened()
    halves = [
        half.cell_counts
        if binning is training.binning
        else binning.count(half.p.outputs, half.q.outputs)
        for half in training.halves
    ]
    for index, part in enumerate(count_blocks(source, rest, binning)):
        halves[index % 2] = halves[index % 2] + part
    name = best_kind(learner.on_cells, halves[0], halves[1])
    return GridScore.named(name, (halves[0] + halves[1]).without_rare())


def best_kind(names: list[str], a: CellCounts, b: CellCounts) -> str:
    """The score that predicts either half best, fitted to the other, by more than a standard error."""
    if len(names) > 1 and _misfits(GridScore.named(names[0], a + b)):  # a quadratic
        names = names[1:]
    best = names[0]
    if len(names) == 1:
        return best
    draws = np.concatenate([*b.everywhere(), *a.everywhere()])
    known = _log_losses(best, a, b)
    for name in names[1:]:
        new = _log_losses(name, a, b)
        gain = known - new
        mean = float(np.average(gain, weights=draws))
        error = math.sqrt(float(np.average((gain - mean) ** 2, weights=draws)) / draws.sum())
        if mean > error:
            best, known = name, new
    return best


def _misfits(loss: GridScore) -> bool:
    """Whether the draws that a loss was fitted to contradict it in some tail."""
    ell, (first, second), (n, m) = (
        loss.everywhere(),
        loss.cell_counts.everywhere(),
        loss.cell_counts.n,
    )
    order = np.argsort(ell, kind="stable")
    chance = expit(ell[order] + math.log(n / m))
    return contradicted(first[order], (first + second)[order], chance, _MISFIT, residual=True)


def _log_losses(name: str, a: CellCounts, b: CellCounts) -> FloatArray:
    """That of a draw wherever there may be one, side by side, of `b` fitted to `a` and back."""
    found = []
    for fitted_to, judged_on in ((a, b), (b, a)):
        loss = GridScore.named(name, fitted_to).everywhere()
        n = judged_on.n
        found += [log_loss(-loss), log_loss(loss) * (n[0] / n[1])]
    return np.concatenate(found)


#: Draws of both sides in the smallest cells of a score.
_IN_TAILS = 20


def score_edges(scores: Scores, cells: int) -> FloatArray:
    """Thresholds that divide scores into cells of about equally many draws."""
    both = np.sort(np.concatenate(scores))
    places = np.linspace(0, both.size - 1, cells + 1).round().astype(np.int64)[1:-1]
    return np.unique(both[places])


def tail_edges(scores: Scores, largest: float) -> FloatArray:
    """Thresholds in the tails of scores: cells of `_IN_TAILS` draws, and twice as many inwards from each.

    Rare outputs may tell most, which cells of equally many draws would hide.
    """
    both = np.sort(np.concatenate(scores))
    count = _IN_TAILS * 2 ** np.arange(max(0, math.ceil(math.log2(max(largest / _IN_TAILS, 1.0)))))
    return np.unique(both[[*count, *(both.size - 1 - count)]])


def scores_over(source: Source, loss: Score, edges: FloatArray, rest: Sizes) -> IntArray:
    """How many of the draws that follow have their score in each cell, a row a side."""
    total = np.zeros((2, edges.size + 1), dtype=np.int64)
    for part in source.blocks(rest, partial(_score_cells, loss, edges)):
        total += part
    return total


def _score_cells(loss: Score, edges: FloatArray, p: Outputs, q: Outputs) -> IntArray:
    return counts_between(edges, (loss.score(p), loss.score(q)))


def counts_between(edges: FloatArray, scores: Scores) -> IntArray:
    """How many scores lie in each cell between edges, a row a side."""
    cells = [np.searchsorted(edges, side, side="right") for side in scores]
    return np.array([np.bincount(cell, minlength=edges.size + 1) for cell in cells])


#: One in so many of the testing draws is looked at.
_ONE_IN = 16
#: Only if they are so many times those that have learned.
_TIMES = 4
#: And no more than these: beyond, the counts say where to divide as well as it ever will.
_MOST = 1 << 28


def draws_for_rare_events(budget: Budget) -> Sizes:
    """How many of the testing draws learn rare events: none unless far more test than have learned."""
    sizes = min(budget.test[0] // _ONE_IN, _MOST), min(budget.test[1] // _ONE_IN, _MOST)
    return sizes if min(sizes) >= _TIMES * max(budget.learn) else (0, 0)


def counts_of_halves(
    source: Source, learner: CrossFit, sizes: Sizes
) -> tuple[CellCounts, CellCounts] | None:
    """Two halves of further draws; None where outputs have no grid on one axis."""
    if "kde" not in learner.names or learner.small_support or learner.training.layout.widest > 1:
        return None
    binning = learner.training.binning
    half = sizes[0] // 2, sizes[1] // 2
    other = sizes[0] - half[0], sizes[1] - half[1]
    first, second = (reduce(add, count_blocks(source, part, binning)) for part in (half, other))
    return first, second


def best_event(
    halves: tuple[CellCounts, CellCounts], criterion: EventCriterion
) -> SelectedEvent | None:
    """The best event of the loss that predicts the second half best."""
    first, second = halves
    names = ["kde"] if all(axes is None for axes in first.binning.axes) else ["polynomial", "kde"]
    loss = GridScore.named(best_kind(names, first, second), first)
    levels = loss.levels(second)
    if levels is None:
        return None
    modelled = loss.name == "polynomial"
    rates = _rates(levels, criterion, modelled)
    caution = 0.0 if modelled else criterion.caution
    predicted = rates.predict(criterion.claim, criterion.gamma, caution)
    if criterion.largest:
        predicted = replace(predicted, certain=-math.inf)
    best = predicted.event
    event = loss.event(best.threshold, best.above)
    return SelectedEvent(event, best, predicted.rank, f"{loss.name} on more draws")


def _rates(levels: Levels, criterion: EventCriterion, modelled: bool) -> HitRates:
    """How often the events of a loss happen: by its model, or as counted."""
    thresholds, cell = np.unique(levels.loss, return_inverse=True)
    n = int(levels.p.sum()), int(levels.q.sum())
    share = levels.p / n[0], levels.q / n[1]
    if modelled:
        pooled = share[0] + share[1]
        share = pooled * expit(levels.loss), pooled * expit(-levels.loss)
    sides = [
        np.asarray(np.bincount(cell.ravel(), weights=side, minlength=thresholds.size), dtype=float)
        for side in share
    ]
    up, down = ([_beyond(side, above) for side in sides] for above in (True, False))
    orientations = (
        [(True, False)] if criterion.claim.directional else [(True, False), (False, True)]
    )
    if len(orientations) > 1:  # of an event and its complement, which say the same, the rarer one
        for both in (up, down):
            small = both[0] + both[1] <= 1.0
            leads = 0 if both is up else 1
            both[leads] = np.where(small, both[leads], 0.0)
            both[1 - leads] = np.where(small, both[1 - leads], 1.0)
    return HitRates.of_shares(thresholds, orientations, up, down, n, criterion.test)


def _beyond(masses: FloatArray, above: bool) -> FloatArray:
    """The mass of a level and all beyond it, at most 1."""
    found = np.cumsum(masses[::-1])[::-1] if above else np.cumsum(masses)
    return np.minimum(found, 1.0)
