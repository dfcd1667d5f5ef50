"""What to bet on: cells of a ranking, and which of them, chosen from draws that were bet on before.

Of each ranking the scores of draws it was not fitted to are cut into many cells; what a bet on the best of
them would have gained a pair of draws, with a guess that is moved towards equality, is what the ranking
promises. The cells that are kept are those of the best bets, and some between. A poor choice costs power,
never validity: it is made before the draws that are bet on with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds.evalues import Bet, EventBet
from dpassay.learning.learner import Learner, Scores
from dpassay.loss.fit import Loss
from dpassay.outputs.events import Event, Intervals, of_keys
from dpassay.outputs.partitions import Partition
from dpassay.privacy.claims import Claim

#: Places to cut that are looked at, and cells that are kept.
_PLACES, _CELLS = 48, 12
#: Shares of the draws at which the cells that are kept part.
_SHARES = np.array([1 / 32, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8, 31 / 32])
#: An event holds at most this share of the draws.
_HALF = 0.6
#: A ranking that is tried later must promise this much more, and this much over all draws.
_MARGIN, _LEAST = 1.05, 0.5
#: Fewer draws a side than these are ranked by the output itself, where it is a number.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Wager:
    """Cells to bet on, and how often past draws were in them."""

    partition: Partition
    counts: IntArray  # (2, cells)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """A ranking's cells, and what the best bet on them promises."""

    index: int  # of the candidate; −1 for the output itself, −2 for its negative
    scores: Scores
    cuts: FloatArray
    growth: float


def choose(learner: Learner, bets: tuple[Bet, ...], claim: Claim) -> Wager:
    """The cells of the ranking that promises most."""
    best: _Ranked | None = None
    draws = min(learner.batch.sizes)
    for index, scores in _rankings(learner):
        found = _ranked(index, scores, bets, claim)
        if best is None or found.growth > _MARGIN * best.growth + _LEAST / draws:
            best = found
    if best is None:  # nothing could be fitted: one cell, on which no bet gains or loses
        nothing = of_keys(learner.training.layout)
        return Wager(Partition.of("nothing", [nothing]), np.array([[n, 0] for n in learner.batch.sizes]))
    events, kept = _events(learner, best)
    counts = [_counted(side, kept) for side in best.scores]
    name = "the output itself" if best.index < 0 else learner.fitted(best.index).name
    return Wager(Partition.of(name, events), np.array(counts))


def pick(bets: tuple[Bet, ...], claim: Claim, counts: IntArray) -> IntArray:
    """For each bet the pick that would have gained most, a row each."""
    return np.array([_best(bet, claim, counts)[0] for bet in bets])


def _rankings(learner: Learner) -> Iterator[tuple[int, Scores]]:
    """What outputs may be ranked by, with scores that no draw had a part in; the stiffest first."""
    numbers = learner.plain_numbers
    if numbers is not None:
        p, q = (np.where(np.isnan(side), -np.inf, side) for side in numbers[1])
        yield -1, (p, q)
        p, q = (np.where(np.isnan(side), -np.inf, -side) for side in numbers[1])
        yield -2, (p, q)
        if min(learner.batch.sizes) < _FEW and len(learner.training.layout) == 1:
            return
    for index in range(len(learner.names)):
        scores = learner.scores(index)
        if scores is not None:
            yield index, scores


def _ranked(index: int, scores: Scores, bets: tuple[Bet, ...], claim: Claim) -> _Ranked:
    places = _places(scores)
    if not places.size:
        return _Ranked(index, scores, places, 0.0)
    fine = np.array([_counted(side, places) for side in scores])
    growth, wanted = 0.0, []
    for bet in bets:
        if not isinstance(bet, EventBet):  # they need few cells
            continue
        at, gain = _best(bet, claim, fine)
        growth = max(growth, gain)
        wanted += [k for k in at.tolist() if 0 < k <= places.size]
    cuts = _kept(places, np.array(wanted, dtype=np.int64), fine)
    counts = np.array([_counted(side, cuts) for side in scores])
    for bet in bets:
        growth = max(growth, _best(bet, claim, counts)[1])
    return _Ranked(index, scores, cuts, growth)


def _best(bet: Bet, claim: Claim, counts: IntArray) -> tuple[IntArray, float]:
    """The pick that would have gained most a pair, and that gain."""
    options = bet.options(counts.shape[1], len(claim.orders))
    past = counts[0][None].astype(float), counts[1][None].astype(float)
    rows = np.broadcast_to(past[0], (len(options), past[0].size)), np.broadcast_to(
        past[1], (len(options), past[1].size)
    )
    log_x, log_y = bet.log_factors(claim, rows, options, rough=True)
    gain = (log_x @ past[0][0]) / past[0].sum() + (log_y @ past[1][0]) / past[1].sum()
    if isinstance(bet, EventBet):  # one that holds the smaller part of the draws; its mirror image the other
        held = bet.inside(options, past[0].size) @ (past[0] / past[0].sum() + past[1] / past[1].sum())[0] / 2
        gain = np.where(held <= _HALF, gain, -1.0)
    best = int(np.argmax(gain))
    return options[best], float(gain[best])


def _places(scores: Scores) -> FloatArray:
    """Where to cut: cells {score ≥ place} of evenly spaced shares, each different from the next."""
    both = np.sort(np.concatenate(scores))
    values = np.unique(both)[1:]
    if values.size > _PLACES:
        ranks = np.linspace(0, 1, _PLACES + 2)[1:-1] * (both.size - 1)
        values = np.unique(both[ranks.round().astype(np.int64)])
    return np.asarray(values[np.isfinite(values)])


def _kept(places: FloatArray, wanted: IntArray, fine: IntArray) -> FloatArray:
    """The places that are wanted, and others between, as many as there are cells."""
    below = np.cumsum(fine.sum(axis=0))[:-1] / fine.sum()
    others = np.abs(below[:, None] - _SHARES).argmin(axis=0)
    kept = list(dict.fromkeys([*(wanted - 1).tolist(), *others.tolist()]))[: _CELLS - 1]
    return np.asarray(places[np.sort(kept)])


def _counted(scores: FloatArray, cuts: FloatArray) -> IntArray:
    return np.bincount(np.searchsorted(cuts, scores, side="right"), minlength=cuts.size + 1)


def _events(learner: Learner, best: _Ranked) -> tuple[list[Event], FloatArray]:
    """{score ≥ cut} for each cut, by what all draws taught; the largest event first."""
    if best.index < 0:
        assert learner.plain_numbers is not None
        key = learner.plain_numbers[0]
        events = []
        for cut in best.cuts:
            low, high = (cut, np.inf) if best.index == -1 else (-np.inf, np.nextafter(-cut, np.inf))
            inside = Intervals(np.array([low]), np.array([high]))
            events.append(of_keys(learner.training.layout, (), [(key, inside)]))
        return events, best.cuts
    loss = learner.fitted(best.index)
    own = np.sort(np.concatenate([loss.score(side) for side in (learner.batch.p, learner.batch.q)]))
    held = np.concatenate(best.scores)
    events = [_event(loss, float(cut), float(np.mean(held >= cut)), own) for cut in best.cuts]
    return events, best.cuts


def _event(loss: Loss, cut: float, share: float, own: FloatArray) -> Event:
    """Cut at the score, or at the rank where that would hold clearly more or fewer draws.

    What half of the draws taught need not be on the scale of what all of them did.
    """
    there = 1 - np.searchsorted(own, cut, side="left") / own.size
    if abs(there - share) > 0.1 * min(share, 1 - share) + 1 / own.size:
        cut = float(own[min(round((1 - share) * own.size), own.size - 1)])
    return loss.event(cut, True)
