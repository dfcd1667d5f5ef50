"""A score that is fitted to the first draws, over all draws that follow: block by block, none is kept.

Tallies under one binning add up, so that a loss on cells is fitted to all draws, and which kind of it
predicts best is asked of all of them. A score of any other kind is fitted to the first look alone; the
draws that follow are counted by where their scores lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.learning.cross_fit import CrossFit, Scores, log_loss
from dpassay.loss.cell_counts import CellCounts, tallies
from dpassay.loss.fit import Loss
from dpassay.loss.grid import GridLoss
from dpassay.outputs.canonical import Outputs
from dpassay.sampling.samples import Sizes, Source


def grid_loss(learner: CrossFit) -> GridLoss:
    """The loss on cells, of those tried, that predicts best, fitted to all training draws."""
    name = best_kind(learner.on_cells, *(half.tally for half in learner.training.halves))
    found = learner.fitted(learner.names.index(name))
    assert isinstance(found, GridLoss)
    return found


def grid_over(source: Source, learner: CrossFit, rest: Sizes) -> GridLoss:
    """The loss on cells, of those tried, that predicts best, fitted to the first look and the rest."""
    training = learner.training
    binning = training.binning.widened()
    halves = [
        half.tally if binning is training.binning else binning.tally(half.p.outputs, half.q.outputs)
        for half in training.halves
    ]
    for index, part in enumerate(tallies(source, rest, binning)):
        halves[index % 2] = halves[index % 2] + part
    name = best_kind(learner.on_cells, halves[0], halves[1])
    return GridLoss.named(name, (halves[0] + halves[1]).without_rare())


def best_kind(names: list[str], a: CellCounts, b: CellCounts) -> str:
    """The score that predicts either half best, fitted to the other, by more than a standard error."""
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


def _log_losses(name: str, a: CellCounts, b: CellCounts) -> FloatArray:
    """That of a draw wherever there may be one, side by side, of `b` fitted to `a` and back."""
    found = []
    for fitted_to, judged_on in ((a, b), (b, a)):
        loss = GridLoss.named(name, fitted_to).everywhere()
        n = judged_on.n
        found += [log_loss(-loss), log_loss(loss) * (n[0] / n[1])]
    return np.concatenate(found)


def score_edges(scores: Scores, cells: int) -> FloatArray:
    """Where to cut scores into cells of about equally many draws."""
    both = np.sort(np.concatenate(scores))
    places = np.linspace(0, both.size - 1, cells + 1).round().astype(np.int64)[1:-1]
    return np.unique(both[places])


def scores_over(source: Source, loss: Loss, edges: FloatArray, rest: Sizes) -> IntArray:
    """How many of the draws that follow have their score in each cell, a row a side."""
    total = np.zeros((2, edges.size + 1), dtype=np.int64)
    for part in source.blocks(rest, _ScoreCells(loss, edges)):
        total += part
    return total


@dataclass(frozen=True, eq=False)
class _ScoreCells:
    loss: Loss
    edges: FloatArray

    def __call__(self, p: Outputs, q: Outputs) -> IntArray:
        return np.array(
            [
                np.bincount(
                    np.searchsorted(self.edges, self.loss.score(side), side="right"),
                    minlength=self.edges.size + 1,
                )
                for side in (p, q)
            ]
        )
