"""The event that refutes a claim best or shows most, and bolder ones that share the error probability.

Every ranking promises two events (`learning.hit_rates`): the one with the largest z at the claim,
which is the most powerful test, and the one with the largest θ that would be refuted, which gives the
largest lower bound. Where the second is sure to refute the claim too, it is taken. How much of the
loss shows on rare events alone no training set tells beforehand: where a bolder look at them promises
clearly more than a cautious one, further events are tested and share the error probability, if the
claim is about as likely to be refuted then. Few kinds of output have few events: for those
`learning.event_selection` weighs what may come out.

Outputs of few kinds: which of their events are tested, each with what share of the error probability.

Where outputs are of a few kinds, there are a few nested events, and how often each kind came in training
is all there is to know. What the test will bring is then simulated: probabilities of the kinds from their
posterior (Dirichlet, half a draw more of each kind), counts of the draws that will test from those, and
for every event and several shares of the error probability the bound at these counts. One event, or two
that share, are taken: among choices about as likely to refute the claim as the likeliest, that with the
largest mean bound.

Of the shares found here the cautious event of `event_search` keeps a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from dpassay._typing import FloatArray
from dpassay.learning.cross_fit import CrossFit, Scores, select
from dpassay.learning.hit_rates import HitRates, PredictedEvents, ThresholdEvent
from dpassay.loss.fit import Loss
from dpassay.outputs.events import Event, Intervals, of_keys
from dpassay.privacy.claims import Claim
from dpassay.sampling.samples import Sizes

#: A ranking that is tried later must promise this much more: in z on the scale of the training draws, or
#: relative to the bound promised already.
_MARGIN_Z, _MARGIN_BOUND = 1.0, 0.03
#: Where a witness of one feature is there, another must exceed it by so many times that margin.
_READABLE = 2.0
#: How many times the penalty is taken off in a cautious look; see docs/methods/audit.md.
_CAUTIOUS = 2.0
#: The address of the randomness with which shares are weighed.
_SHARES = 1 << 10
#: What the cautious event among few kinds keeps of the error probability.
_KEPT = 0.1
#: Bolder looks may cost this much of the probability that the claim is refuted.
_PRICE = 0.005


@dataclass(frozen=True)
class Look:
    """A bolder look at a ranking than the cautious one."""

    caution: float  # how many times the penalty for many cuts (see `rates`) is taken off
    gain: float  # how many times the bound of the cautious look it must promise
    share: float  # of the error probability
    events: int = 1  # that may share that


#: The boldest first.
_LOOKS = (Look(0.0, 1.5, 0.75, 3), Look(0.25, 1.15, 0.5))


@dataclass(frozen=True, eq=False)
class EventCriterion:
    """The ranking whose best event promises most."""

    claim: Claim
    test: Sizes
    gamma: float
    caution: float = _CAUTIOUS
    largest: bool = False  # the largest bound is sought, not the strongest test
    counted: dict[int, HitRates] = field(
        default_factory=dict, repr=False
    )  # by ranking, for other looks

    def judge(self, scores: Scores, *, tails: bool = False) -> PredictedEvents:
        """The best events of a ranking."""
        # regions of divergence claims are slow: rankings are compared by a Gaussian claim like them
        claim = self.claim if self.claim.set_by_events else self.claim.gaussian_proxy()
        found = self.rates(scores, tails=tails).promise(claim, self.gamma, self.caution)
        return replace(found, sure=-math.inf) if self.largest else found

    def rates(self, scores: Scores, *, tails: bool = False) -> HitRates:
        """How often its events happen, counted once."""
        key = id(scores)
        if key not in self.counted:
            directional = self.claim.directional
            self.counted[key] = HitRates.of(scores, directional, self.test, tails=tails)
        return self.counted[key]

    def beats(self, new: PredictedEvents, best: PredictedEvents, times: float = 1.0) -> bool:
        """Whether it promises clearly more: by so many times the margin."""
        kind, level = best.rank
        if kind == 1:
            return new.z >= 1.0 and new.rank > (kind, level + times * _MARGIN_Z * new.rates.noise)
        if kind == 0 and new.z >= 1.0:
            return True
        level += times * _MARGIN_BOUND * level
        return new.refutes(level) and new.rank > (kind, level)  # else its bound is not sought


@dataclass(frozen=True, eq=False)
class SelectedEvent:
    """The event to test, what ranked the outputs, and what was promised."""

    event: Event
    cut: ThresholdEvent
    rank: tuple[int, float]
    ranking: str
    share: float = 1.0  # of the error probability
    order: float | None = None  # at which a claim about many divergences is tested

    def power(self, gamma: float) -> float:
        """About the probability that it refutes the claim."""
        return float(ndtr(self.cut.z - ndtri(1 - gamma)))


def search(learner: CrossFit, criterion: EventCriterion) -> list[SelectedEvent]:
    """The most promising event among all candidates; and bolder ones where they promise more.

    What numbers are worth and how they are represented are two questions. Where the answer to the second
    may be the larger one, its events share the error probability, or take it all where that is sure.
    """
    values, bits = learner.families
    found = _events(learner, criterion, values)
    if not any(learner.scores(index) is not None for index in bits):
        return found
    bold = replace(criterion, gamma=criterion.gamma / 2, caution=_LOOKS[-1].caution)
    known, leak = (_best(learner, bold, family)[1].largest.bound for family in (values, bits))
    if leak <= _LOOKS[-1].gain * known:
        return found
    other = _events(learner, criterion, bits)
    if other[0].cut.bound > known:
        return other
    return [replace(one, share=one.share / 2) for one in (*found, *other)]


def _events(
    learner: CrossFit, criterion: EventCriterion, family: Sequence[int]
) -> list[SelectedEvent]:
    """The events of some rankings that are worth a test."""
    index, promise = _best(learner, criterion, family)
    if not criterion.claim.set_by_events:
        cut = _refined(learner, criterion, index, promise)
        order = _order(criterion, cut)
        return [replace(_found(learner, index, promise, cut), order=order)]
    cautious = _found(learner, index, promise, promise.cut)
    for look in _LOOKS:
        bold = replace(criterion, gamma=criterion.gamma * look.share, caution=look.caution)
        other, reach = _best(learner, bold, family)
        if reach.largest.bound <= look.gain * promise.largest.bound:
            continue
        if not _affordable(
            learner, criterion, (index, promise.cut), (other, reach.largest), look.share
        ):
            continue
        if learner.few is not None:
            return _of_few_kinds(learner, criterion, learner.few)
        rates = bold.rates(_scores(learner, other))
        cuts = rates.several(bold.claim, bold.gamma, bold.caution, reach.largest, look.events)
        found = [_found(learner, other, reach, cut) for cut in cuts]
        found = [one for one in found if not _same(learner, cautious.event, one.event)]
        if not found:
            return [cautious]
        # where all that shows is rare, the larger share goes there
        rare = 2 * promise.largest.bound < reach.largest.bound
        share = max(look.share, 1 - look.share) if rare else look.share
        return [
            replace(cautious, share=1 - share),
            *(replace(one, share=share / len(found)) for one in found),
        ]
    return [cautious]


def _affordable(
    learner: CrossFit,
    criterion: EventCriterion,
    cautious: tuple[int | None, ThresholdEvent],
    bold: tuple[int | None, ThresholdEvent],
    share: float,
) -> bool:
    """Whether the claim is about as likely to be refuted if the event of a bolder look takes a share.

    A larger bound is no use to a claim that is not refuted for it: an event that may or may not refute
    the claim keeps all of the error probability, unless the bolder one is as likely to. From the z of
    the first its own look takes off what choosing among cuts may add, from the other that is taken off
    once; both are as noisy as the training draws.
    """
    if criterion.largest:
        return True
    z = []
    for (index, cut), caution in ((cautious, criterion.caution), (bold, 1.0)):
        rates = criterion.rates(_scores(learner, index))
        z.append(rates.statistic(criterion.claim, caution)(criterion.claim.value)[rates.index(cut)])
    level = ndtri(criterion.gamma * np.array([1.0, 1 - share, share]))
    alone, shared, other = ndtr((np.array([z[0], *z]) + level) / math.hypot(1.0, rates.noise))
    return bool(alone - max(shared, other) <= _PRICE)


def _of_few_kinds(learner: CrossFit, criterion: EventCriterion, index: int) -> list[SelectedEvent]:
    """The events among few kinds of output, with their shares of the error probability.

    The event of a cautious look keeps a tenth of it: kinds are put in order by the draws that are then
    weighed, so that rare ones look better than they are.
    """
    scores = _scores(learner, index)
    promise, rates = criterion.judge(scores), criterion.rates(scores)
    own, first = rates.z(criterion.claim), rates.index(promise.cut)
    gamma = (1 - _KEPT) * criterion.gamma
    shares = split_error(scores, rates, criterion.claim, gamma, learner.rng(_SHARES))
    if all(k != first for k, _, _ in shares):
        shares = [(k, share * (1 - _KEPT), bound) for k, share, bound in shares]
        shares.append((first, _KEPT, promise.cut.bound))
    return [
        replace(_found(learner, index, promise, rates.cut(k, own, bound)), share=share)
        for k, share, bound in shares
    ]


def _scores(learner: CrossFit, index: int | None) -> Scores:
    """What a ranking was judged by."""
    found = learner.plain_numbers[1] if index is None else learner.scores(index)  # type: ignore[index]
    assert found is not None
    return found


def _refined(
    learner: CrossFit, criterion: EventCriterion, index: int | None, promise: PredictedEvents
) -> ThresholdEvent:
    """The cut of a ranking that refutes a claim about a divergence best, by the claim itself."""
    rates = criterion.rates(_scores(learner, index))
    if len(criterion.claim.orders) > 1:  # regions of many orders: the Gaussian one is near
        return promise.cut
    return rates.strongest(criterion.claim, criterion.caution)


def _order(criterion: EventCriterion, cut: ThresholdEvent) -> float | None:
    """The order at which to test a claim about many: the one that shows most of such an event.

    Of what a test at its level is about to show, that is: of frequencies moved towards each other by as
    much as it takes off. A test at one order, chosen beforehand, is a test of the claim, and quicker.
    """
    taken = float(ndtri(1 - criterion.gamma)) / math.sqrt(8 * min(criterion.test))
    high, low = 2 * cut.share - cut.low, cut.low
    p = math.sin(max(math.asin(math.sqrt(high)) - taken, 0.0)) ** 2
    q = math.sin(min(math.asin(math.sqrt(low)) + taken, math.pi / 2)) ** 2
    return criterion.claim.order_for(*((p, q) if p > q else (high, low)))


def _same(learner: CrossFit, one: Event, other: Event) -> bool:
    """Whether two events tell the training draws apart in the same way."""
    sides = learner.batch.p, learner.batch.q
    pairs = [(one.holds(side), other.holds(side)) for side in sides]
    return all(np.array_equal(a, b) for a, b in pairs) or all(
        np.array_equal(a, ~b) for a, b in pairs
    )


def _best(
    learner: CrossFit, criterion: EventCriterion, family: Sequence[int]
) -> tuple[int | None, PredictedEvents]:
    """The ranking that promises most: the number of a candidate, or None for the output itself."""
    numbers = learner.plain_numbers if family and family[0] == 0 else None
    as_is = None if numbers is None else criterion.judge(numbers[1], tails=True)
    if as_is is not None and learner.small and len(learner.training.layout) == 1:
        return None, as_is
    index, promise = select(learner, criterion, family)
    for simple in learner.readable:
        scores = learner.known_scores(simple)
        if simple in family and scores is not None and simple != index:
            own = criterion.judge(scores)
            if not criterion.beats(promise, own, _READABLE):
                index, promise = simple, own
    if as_is is not None and not criterion.beats(promise, as_is):
        return None, as_is
    return index, promise


def _found(
    learner: CrossFit, index: int | None, promise: PredictedEvents, cut: ThresholdEvent
) -> SelectedEvent:
    if index is None:
        low, high = (cut.at, np.inf) if cut.above else (-np.inf, np.nextafter(cut.at, np.inf))
        assert learner.plain_numbers is not None
        key = learner.plain_numbers[0]
        inside = [(key, Intervals(np.array([low]), np.array([high])))]
        event, name = of_keys(learner.training.layout, (), inside), "the output itself"
    else:
        loss = learner.fitted(index)
        event, name = _event(learner, loss, cut), loss.name
    return SelectedEvent(event, cut, promise.rank, name)


def _event(learner: CrossFit, loss: Loss, cut: ThresholdEvent) -> Event:
    """The event by the loss that all training draws taught, about as likely as was predicted.

    Its scores need not be on the scale of those that half of the draws taught. Where the event holds less
    than half, or more than twice, what it should, it is cut at the rank instead of the score.
    """
    event = loss.event(cut.at, cut.above)
    sides = learner.batch.p, learner.batch.q
    held = sum(event.count(side) / len(side) for side in sides) / 2
    if 0.5 * cut.share <= held <= 2 * cut.share and 0.5 * (1 - cut.share) <= 1 - held:
        return event
    scores = np.concatenate([loss.score(side) for side in sides])
    at = np.quantile(scores, 1 - cut.share if cut.above else cut.share, method="nearest")
    return loss.event(float(at), cut.above)


# --- outputs of few kinds


#: Simulated tests.
_RUNS = 200
#: Shares of the error probability that an event may get; the other one gets the rest.
_SPLITS = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0)
#: Chances of a refutation within this of the best one count as equal.
_EQUAL = 0.02
#: Values of the parameter at which z is evaluated, and the largest.
_GRID, _FAR = 40, 64.0
#: In place of the z of an event that a claim allows everything.
_NEVER = -1e3


def split_error(
    scores: Scores, rates: HitRates, claim: Claim, gamma: float, rng: np.random.Generator
) -> list[tuple[int, float, float]]:
    """The chosen cuts: their numbers among all, shares, and mean bounds."""
    bounds = _bounds(_simulated(scores, rates, rng), claim, gamma)  # share, run, cut
    many = bounds.shape[2]
    values, chosen = [], []
    for share in range(len(_SPLITS) // 2 + 1):
        for k in range(many):
            values.append(np.maximum(bounds[share][:, [k]], bounds[-1 - share]))
            chosen += [((k, share), (other, -1 - share)) for other in range(many)]
    found = np.concatenate(values, axis=1)
    refuted = (found > claim.value).mean(axis=0)
    able = refuted >= refuted.max() - _EQUAL
    best = int(np.argmax(np.where(able, found.mean(axis=0), -np.inf)))
    return [(k, _SPLITS[s], float(bounds[s][:, k].mean())) for k, s in chosen[best] if _SPLITS[s]]


def _simulated(scores: Scores, rates: HitRates, rng: np.random.Generator) -> HitRates:
    """The rates of all cuts in simulated tests, run after run."""
    kinds = np.unique(np.concatenate(scores))
    sizes = {True: (rates.n_low, rates.n_high), False: (rates.n_high, rates.n_low)}
    shares = []
    for side, given in enumerate(scores):
        seen = np.bincount(np.searchsorted(kinds, given), minlength=kinds.size)
        n = int(sizes[rates.ways[0][1]][side][0])
        chances = rng.dirichlet(seen + 0.5, size=_RUNS)
        shares.append((rng.multinomial(n, chances) / n, n))
    at = np.searchsorted(kinds, rates.cuts)
    high, low = [], []
    for above, second in rates.ways:
        sides = []
        for part, n in shares:
            upto = np.cumsum(part, axis=1)
            held = upto[:, at] if not above else 1 - upto[:, at] + part[:, at]
            sides.append((held, n))
        (a, n), (b, m) = sides[::-1] if second else sides
        high.append(a * n / (n + 1))
        low.append((b * m + 0.5) / (m + 1))
    return replace(
        rates,
        high=np.clip(np.concatenate(high, axis=1), 0.0, 1.0).ravel(),
        low=np.clip(np.concatenate(low, axis=1), 0.0, 1.0).ravel(),
        n_high=np.tile(rates.n_high, _RUNS),
        n_low=np.tile(rates.n_low, _RUNS),
        known={},
    )


def _bounds(simulated: HitRates, claim: Claim, gamma: float) -> FloatArray:
    """The bound of every cut in every simulated test, by share of γ, to within the grid."""
    goals = -ndtri(gamma * np.array(_SPLITS))[:, None]
    top = min(max(2 * claim.value, 0.5), claim.largest)
    while top < min(_FAR, claim.largest) and simulated.z(claim, top).max() >= goals[0]:
        top = min(2 * top, claim.largest)
    grid = np.linspace(0.0, top, _GRID)
    found = np.zeros((len(_SPLITS), simulated.high.size))
    before = np.maximum(simulated.z(claim, 0.0), _NEVER)
    for low, high in pairwise(grid):
        z = np.maximum(simulated.z(claim, float(high)), _NEVER)
        part = np.clip((before - goals) / np.maximum(before - z, 1e-12), 0.0, 1.0)
        found = np.where(before >= goals, low + part * (high - low), found)
        before = z
    return found.reshape(len(_SPLITS), _RUNS, -1)
