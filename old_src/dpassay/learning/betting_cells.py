"""What to bet on: cells of a score, chosen from draws that were bet on before.

A score gets two thresholds, where the low cells end and where the high cells begin: those whose events
would have gained most. What half of the draws chose is counted on the other half, and the other way
round, so that the counts of the first guess are no better than those to come. (A score is evaluated on
draws that it was not fitted to.) The score is chosen whose bet would have gained most with those counts,
and its thresholds are chosen again with all draws. Once there are many draws, there are also thresholds
at fixed shares of them, and which two count is chosen again as draws come in (`again`). For moments of
p/q the cells are even shares of the draws instead.

A poor choice costs power, never validity: it is made before the draws that are bet on with it.

For bounds on δ from above: which outputs are cells of their own, and how often each comes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds.e_values import Bet, EventBet, MomentBet, clearance
from dpassay.learning.cross_fit import CrossFit, Scores
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, Partition, of_keys
from dpassay.outputs.keys import Layout, learn
from dpassay.privacy.claims import Claim
from dpassay.sampling.samples import Batch
from dpassay.scores.fit import Score

#: Candidate thresholds, evenly spaced and towards either end.
_EVEN, _ENDS = 31, 8
#: Cells for moments, and the share of the outermost ones.
_CELLS, _OUTER = 12, 1 / 64
#: An event holds at most this share of the draws.
_HALF = 0.45
#: What each side of an event is given when the best is sought, which looks better than it is.
_WARY = 2.0
#: A score that is tried later must exceed the best by this much log-wealth of all draws.
_MARGIN = 2.5
#: Fewer draws a side than these are ranked by the output itself, where it is a number.
_FEW = 64
#: From so many draws a side on, there are thresholds at these shares to choose from later.
_MANY = 256
_SHARES = np.append([0.01, 0.02, 0.04, 0.07, 0.1, 0.13, 0.17, 0.2], np.linspace(0.22, 0.44, 12))


@dataclass(frozen=True, eq=False)
class BettingCells:
    """Cells to bet on, how often past draws were in them, the end of the bottom, the start of the top."""

    partition: Partition
    counts: IntArray  # (2, cells)
    parts: tuple[int, int]


def choose(learner: CrossFit, bets: tuple[Bet, ...], claim: Claim) -> BettingCells:
    """The cells of the score with the largest predicted wealth."""
    best: tuple[int, Scores, IntArray] | None = None
    most: list[float] = []
    for index, scores in _candidate_scores(learner):
        counts, parts = _crossed(scores, bets, claim)
        gains = _predicted_gains(bets, claim, counts, parts)
        growth = [gain * min(learner.batch.sizes) for gain in gains]
        # the first value of the ladder at which they differ clearly decides
        apart = [a - b for a, b in zip(growth, most, strict=False) if abs(a - b) > _MARGIN]
        if best is None or (apart and apart[0] > 0):
            best, most = (index, scores, counts), growth
    if best is None:  # nothing could be fitted: one cell, on which no bet gains or loses
        layout, everything = (
            learner.training.layout,
            np.array([[0, n] for n in learner.batch.sizes]),
        )
        event = of_keys(layout, range(len(layout)), (), True)
        return BettingCells(Partition.of("nothing", [event]), everything, (1, 1))
    index, scores, counts = best
    thresholds, own, parts = _cut(scores, bets, claim)
    events = _events(learner, index, scores, thresholds)
    name = "the output itself" if index < 0 else learner.fitted(index).name
    counts = counts if counts.shape == own.shape else own
    return BettingCells(Partition.of(name, events), counts, parts)


def _ladder(claim: Claim) -> tuple[float, ...]:
    """The claim's parameter, and smaller ones: what a lower bound is made of if the claim holds."""
    shares = (0.5, 0.25, 0.0) if claim.quick else (0.25,)
    return (claim.value, *(share * claim.value for share in shares if claim.value > 0))


def pick(
    bets: tuple[Bet, ...],
    claim: Claim,
    counts: IntArray,
    parts: tuple[int, int],
    theta: float | None = None,
) -> IntArray:
    """The choice for each bet: the thresholds, or the order, that would have gained most."""
    bottom, top = parts
    found = []
    for bet in bets:
        if isinstance(bet, MomentBet):
            orders = np.column_stack([np.arange(len(claim.orders))] * 2)
            found.append(orders[int(np.argmax(_gains(bet, claim, counts, orders, theta)))])
        elif isinstance(bet, EventBet):
            found.append(np.array([top, top] if bet.top else [bottom, bottom]))
        else:
            found.append(np.array([bottom, top]))
    return np.array(found)


def again(
    bets: tuple[Bet, ...], claim: Claim, counts: IntArray, parts: tuple[int, int]
) -> tuple[int, int]:
    """Where the bottom ends and the top begins by what is known by now, where there is a choice."""
    if counts.shape[1] <= 3 or any(isinstance(bet, MomentBet) for bet in bets):
        return parts
    at = [1 + _best_event(bet, claim, counts) for bet in bets if isinstance(bet, EventBet)]
    return min(at), max(at)


def _candidate_scores(learner: CrossFit) -> Iterator[tuple[int, Scores]]:
    """What outputs may be ranked by, the stiffest first; −1 is the output itself, −2 its negative."""
    numbers = learner.plain_numbers
    if numbers is not None:
        p, q = numbers[1]
        seen = [side[~np.isnan(side)] for side in (p, q)]
        swapped = min(map(len, seen)) > 0 and np.median(seen[0]) < np.median(seen[1])
        sign = -1.0 if swapped else 1.0
        p, q = (np.where(np.isnan(side), -np.inf, sign * side) for side in (p, q))
        yield (-1 if sign > 0 else -2), (p, q)
        if min(learner.batch.sizes) < _FEW and len(learner.training.layout) == 1:
            return
    for index in range(len(learner.names)):
        scores = learner.scores(index)
        if scores is not None:
            yield index, scores


def _crossed(
    scores: Scores, bets: tuple[Bet, ...], claim: Claim
) -> tuple[IntArray, tuple[int, int]]:
    """Counts of cells that either half of the draws chose on the other half, and their parts."""
    if any(isinstance(bet, MomentBet) for bet in bets):
        return _cut(scores, bets, claim)[1:]
    parts = [np.split(side, [side.size // 2]) for side in scores]
    halves = [_sorted((p, q)) for p, q in zip(*parts, strict=True)]
    total = np.zeros((2, 3), dtype=np.int64)
    for own, other in (halves, halves[::-1]):
        total += _counted(other, np.array(_ends(own, bets, claim)))
    return total, (1, 2)


def _cut(
    scores: Scores, bets: tuple[Bet, ...], claim: Claim
) -> tuple[FloatArray, IntArray, tuple[int, int]]:
    """The thresholds of a score, how many draws are in each cell, and its two parts.

    For moments, cells of even shares with two smaller ones at the ends, and the best to begin at. Else
    the two best thresholds; where there are many draws, also thresholds at fixed shares from either end.
    """
    scores = _sorted(scores)
    both = _merged(scores)
    if any(isinstance(bet, MomentBet) for bet in bets):
        shares = np.concatenate([[_OUTER], np.linspace(0, 1, _CELLS - 1)[1:-1], [1 - _OUTER]])
        thresholds = np.unique(_at_shares(both, shares))
        thresholds = (
            thresholds[thresholds > both[0]]
            if thresholds.size and thresholds[-1] > both[0]
            else both[-1:]
        )
        counts = _counted(scores, thresholds)
        at = [1 + _best_event(bet, claim, counts) for bet in bets if isinstance(bet, EventBet)]
        return thresholds, counts, (min(at), max(at))
    thresholds = np.array(_ends(scores, bets, claim))
    if min(side.size for side in scores) >= _MANY:
        thresholds = np.unique(
            np.append(_at_shares(both, np.append(_SHARES, 1 - _SHARES)), thresholds)
        )
        thresholds = (
            thresholds[thresholds > both[0]] if thresholds[-1] > both[0] else thresholds[-1:]
        )
    counts = _counted(scores, thresholds)
    return thresholds, counts, again(bets, claim, counts, (1, len(thresholds)))


def _at_shares(both: FloatArray, shares: FloatArray) -> FloatArray:
    """The sorted scores below which there are these shares."""
    return both[(shares * (both.size - 1)).round().astype(np.int64)]


def _ends(scores: Scores, bets: tuple[Bet, ...], claim: Claim) -> tuple[float, float]:
    """Where the bottom ends and the top begins: {score < first} and {score ≥ second}; both sorted."""
    places = _places(_merged(scores))
    counts = _counted(scores, places)
    at = [places[_best_event(bet, claim, counts)] for bet in bets if isinstance(bet, EventBet)]
    return float(min(at)), float(max(at))


def _best_event(bet: EventBet, claim: Claim, counts: IntArray) -> int:
    """The place at which the event is farthest beyond what is allowed, by the first claim it breaks."""
    chances = _chances(bet, counts, np.arange(1, counts.shape[1]))
    large = chances.mean(axis=0) > _HALF
    best = 0
    for theta in _ladder(claim):
        far = clearance(claim, chances, theta)
        far = far if large.all() else np.where(large, -np.inf, far)
        best = int(np.argmax(far))
        if far[best] > 0:
            break
    return best


def _chances(bet: EventBet, counts: IntArray, at: IntArray) -> FloatArray:
    """How likely events are by wary counts, the side on which they are too likely first."""
    below = np.cumsum(counts, axis=1)[:, at - 1]
    total = counts.sum(axis=1, keepdims=True)
    hits = total - below if bet.top else below
    found = (hits + _WARY) / (total + 2 * _WARY)
    return np.asarray(found[::-1] if bet.second else found)


def _predicted_gains(
    bets: tuple[Bet, ...], claim: Claim, counts: IntArray, parts: tuple[int, int]
) -> list[float]:
    """About what the bets would have gained a pair, against the claims of the ladder."""
    ends = [
        _chances(bet, counts, np.array([parts[int(bet.top)]]))
        for bet in bets
        if isinstance(bet, EventBet)
    ]
    chances = np.hstack(ends)
    found = []
    for theta in _ladder(claim):
        gains = [float(np.sum(np.maximum(clearance(claim, chances, theta), 0.0) ** 2 / 2))]
        for bet in bets:
            if isinstance(bet, MomentBet):
                picks = pick((bet,), claim, counts, parts, theta)
                gains.append(float(_gains(bet, claim, counts, picks, theta)[0]))
        found.append(max(gains))
    return found


def _gains(
    bet: MomentBet, claim: Claim, counts: IntArray, options: IntArray, theta: float | None
) -> FloatArray:
    """What each pick would have gained a pair."""
    a, b = (np.broadcast_to(side.astype(float), (len(options), side.size)) for side in counts)
    log_x, log_y = bet.log_factors(claim, (a, b), options, theta)
    n = np.maximum(counts.sum(axis=1), 1)
    return np.asarray((log_x @ counts[0]) / n[0] + (log_y @ counts[1]) / n[1])


def _places(both: FloatArray) -> FloatArray:
    """Candidate thresholds at evenly spaced shares, and at ever smaller ones at either end."""
    new = np.append(True, both[1:] != both[:-1])
    if np.count_nonzero(new) > _EVEN + 2 * _ENDS:
        shares = np.linspace(0, 1, _EVEN + 2)[1:-1]
        few = np.geomspace(2 / both.size, shares[0], _ENDS + 1)[:-1]
        return np.unique(_at_shares(both, np.concatenate([few, shares, 1 - few])))
    values = both[new]
    return np.asarray(values[1:] if values.size > 1 else values)


def _sorted(scores: Scores) -> Scores:
    return np.sort(scores[0]), np.sort(scores[1])


def _merged(scores: Scores) -> FloatArray:
    """Both sides as one, where each is sorted."""
    return np.asarray(np.sort(np.concatenate(scores), kind="stable"))


def _counted(scores: Scores, thresholds: FloatArray) -> IntArray:
    """(2, cells): how many of sorted scores are between thresholds."""
    below = [np.searchsorted(side, thresholds, side="left") for side in scores]
    sizes = [[side.size] for side in scores]
    return np.diff(np.hstack([below, sizes]), axis=1, prepend=0)


def _events(
    learner: CrossFit, index: int, scores: Scores, thresholds: Sequence[float] | FloatArray
) -> list[Event]:
    """{score ≥ threshold} for each threshold, fitted to all draws; the largest event first."""
    if index < 0:
        sign = 1.0 if index == -1 else -1.0
        return [learner.number_event(sign * threshold, sign > 0) for threshold in thresholds]
    loss = learner.fitted(index)
    own = np.sort(np.concatenate([loss.score(side) for side in (learner.batch.p, learner.batch.q)]))
    held = np.sort(np.concatenate(scores))
    shares = 1 - np.searchsorted(held, thresholds, side="left") / held.size
    return [
        _event(loss, float(threshold), float(at), own)
        for threshold, at in zip(thresholds, shares, strict=True)
    ]


def _event(loss: Score, threshold: float, share: float, own: FloatArray) -> Event:
    """Cut at the score, or at the rank where that would hold clearly more or fewer draws.

    A score fitted to half of the draws need not be on the scale of one fitted to all.
    """
    there = 1 - np.searchsorted(own, threshold, side="left") / own.size
    if abs(there - share) > 0.1 * min(share, 1 - share) + 1 / own.size:
        threshold = float(own[min(round((1 - share) * own.size), own.size - 1)])
    return loss.event(threshold, True)


# --- for bounds on δ from above


@dataclass(frozen=True, eq=False)
class Cells:
    """The keys of a layout that leave no number free. All other outputs are everything else."""

    layout: Layout
    closed: npt.NDArray[np.bool_]

    @classmethod
    def learn(cls, batch: Batch) -> Cells:
        """Outputs that repeat in draws that may be looked at; combinations stay whole."""
        return cls.of(learn(batch.p, batch.q, whole=True, thorough=True)[0])

    @classmethod
    def of(cls, layout: Layout) -> Cells:
        plain = np.array([not any(part.open) for part in layout.parts], dtype=bool)
        closed = plain[layout.parts_of]
        for key in np.flatnonzero(~closed):
            closed[key] = not layout.free(int(key))
        return cls(layout, closed)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.closed))

    def __call__(self, p: Outputs, q: Outputs) -> IntArray:
        """Hits of every cell on both sides, a row each; everything else comes last."""
        return np.array([self.fold(self.layout.sort(side).counts()) for side in (p, q)])

    def fold(self, counts: IntArray) -> IntArray:
        """Counts of keys, and of outputs in none, as counts of cells and of everything else."""
        own = counts[:-1][self.closed]
        return np.append(own, counts.sum() - own.sum())


def outside(counts: IntArray) -> float:
    """The larger share of draws in no cell, of the two sides."""
    return float(np.max(counts[:, -1] / np.maximum(counts.sum(axis=1), 1)))


def why_trivial(share: float) -> str:
    """Why a bound from above is near 1, given the share of outputs in no cell; empty if it is not."""
    if share < 0.5:
        return ""
    said = "the outputs" if share > 0.999 else f"{share:.0%} of the outputs"
    return (
        f"{said} are values that hardly repeat, and no number of draws bounds δ from above for those; "
        "round in the release itself, which can only lower δ, and verify that"
    )
