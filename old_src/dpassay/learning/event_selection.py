"""Which events are tested, for the strongest test or the largest bound, at which share of the level.

Every score has two events of interest (`learning.hit_rates`): the one with the largest z at the claim,
which is the most powerful test, and the one with the largest θ that would be refuted, which gives the
largest lower bound. Where events are certain to refute the claim, the one of these with the largest bound
is taken. No training set tells how much of the privacy loss shows on rare events alone: where an
optimistic prediction for rare events is clearly above the conservative one, further events are tested and
share the error probability, if the claim is then about as likely to be refuted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtr, ndtri

from dpassay.learning.cross_fit import CrossFit, Scores, select
from dpassay.learning.hit_rates import HitRates, PredictedEvents, ThresholdEvent
from dpassay.outputs.events import Event, abridged_keys, of_keys
from dpassay.privacy.claims import Claim
from dpassay.sampling.samples import Sizes
from dpassay.scores.fit import Score

#: A score that is tried later must exceed the best one by this: in z on the scale of the training draws,
#: or relative to the predicted bound.
_MARGIN_Z, _MARGIN_BOUND = 1.0, 0.03
#: Where one feature gives an event, another score must exceed it by so many times that margin; and where
#: one feature or some categories do, its event must, counted as theirs is, by this share of the bound.
_READABLE, _AS_GOOD = 2.0, 0.02
#: Draws per output from which on an event of a score is written as a list of outputs, if that is short.
_OFTEN = 10
#: How many times the penalty for many thresholds is subtracted by default; see docs/methods/audit.md.
_CONSERVATIVE = 2.0
#: The same where hit rates come from a calibrated fit.
_CALIBRATED = 0.5
#: Optimistic events may cost this much of the probability that the claim is refuted.
_PRICE = 0.005
#: They are tested, too, if they refute the claim likelier by so much.
_CLEARLY = 0.08


@dataclass(frozen=True)
class OptimisticRule:
    """When further events are tested whose bounds are predicted with a smaller penalty."""

    caution: float  # how many times the penalty for many thresholds is subtracted
    gain: float  # how many times the conservative bound must be predicted
    share: float  # of the error probability
    events: int = 1  # that may share it


#: The most optimistic first.
_OPTIMISTIC = (OptimisticRule(0.0, 1.5, 0.75, 3), OptimisticRule(0.25, 1.15, 0.5))


@dataclass(frozen=True, eq=False)
class EventCriterion:
    """The score whose best event has the largest predicted power or bound."""

    claim: Claim
    test: Sizes
    gamma: float
    caution: float = _CONSERVATIVE
    largest: bool = False  # the largest bound is sought, not the strongest test
    calibrate: bool = True  # where scores are models with few parameters
    counted: dict[tuple[int, bool], HitRates] = field(default_factory=dict, repr=False)  # by score

    def judge(
        self, scores: Scores, parametric: bool = False, *, tails: bool = False
    ) -> PredictedEvents:
        # regions of divergence claims are slow: scores are compared by a Gaussian claim like them
        claim = self.claim if self.claim.set_by_events else self.claim.gaussian_proxy()
        rates = self.rates(scores, tails=tails, modelled=self.calibrate and (parametric or tails))
        caution = _CALIBRATED if rates.modelled else self.caution
        found = rates.predict(claim, self.gamma, caution)
        return replace(found, certain=-math.inf) if self.largest else found

    def rates(self, scores: Scores, *, tails: bool = False, modelled: bool = False) -> HitRates:
        """How often its events happen, counted or fitted once."""
        key = id(scores), modelled
        if key not in self.counted:
            directional = self.claim.directional
            self.counted[key] = HitRates.of(
                scores, directional, self.test, tails=tails, modelled=modelled
            )
        return self.counted[key]

    def counted_bound(self, scores: Scores, event: ThresholdEvent) -> float:
        """The bound that an event predicts by its counts, without a fit or a penalty."""
        plain = replace(self, calibrate=False, caution=0.0).judge(scores)
        return plain.reach(plain.rates.index(event))

    def beats(self, new: PredictedEvents, best: PredictedEvents, times: float = 1.0) -> bool:
        """Whether a score is better than the best one, by so many times the margin."""
        kind, level = best.rank
        if kind == 1:
            return new.z >= 1.0 and new.rank > (kind, level + times * _MARGIN_Z * new.rates.noise)
        if kind == 0 and new.z >= 1.0:
            return True
        level += times * _MARGIN_BOUND * level
        return new.refutes(level) and new.rank > (kind, level)  # else its bound is not sought


@dataclass(frozen=True, eq=False)
class SelectedEvent:
    """An event to test, the score it is of, and what was predicted."""

    event: Event
    threshold: ThresholdEvent
    rank: tuple[int, float]
    score: str  # its name
    share: float = 1.0  # of the error probability
    order: float | None = None  # at which a claim about many divergences is tested

    def power(self, gamma: float) -> float:
        """About the probability that it refutes the claim."""
        return float(ndtr(self.threshold.z - ndtri(1 - gamma)))


def select_events(learner: CrossFit, criterion: EventCriterion) -> list[SelectedEvent]:
    """The best event among all scores, and further ones where they predict more.

    Values, floating-point representations and structures are questions by themselves. Where a later one
    may have the larger answer, its events share the error probability, or take it all where they are
    certain to. Structures are few, so that their optimistic bound is hardly too large and is compared
    with the conservative one of the values.
    """
    values, bits, structures = learner.families
    found = [
        replace(one, event=_as_list(learner, one)) for one in _events(learner, criterion, values)
    ]
    rule, conservative = _OPTIMISTIC[-1], found[0].threshold.bound
    optimistic = replace(criterion, gamma=criterion.gamma / 2, caution=rule.caution)
    for family in (bits, structures):
        if not any(learner.scores(index) is not None for index in family):
            continue
        known, other = (
            _best(learner, optimistic, each)[1].largest.bound for each in (values, family)
        )
        if other <= rule.gain * (known if family is bits else conservative):
            continue
        own = _events(learner, criterion, family)
        alone = own[0].threshold.bound > known
        found = own if alone else [replace(one, share=one.share / 2) for one in (*found, *own)]
    return found


def _events(
    learner: CrossFit, criterion: EventCriterion, family: Sequence[int]
) -> list[SelectedEvent]:
    """The events of some scores that are worth a test."""
    index, predicted = _best(learner, criterion, family)
    if not criterion.claim.set_by_events:
        threshold = predicted.event
        if len(criterion.claim.orders) == 1:  # else the Gaussian claim is near
            rates = criterion.rates(_scores(learner, index), tails=index is None)
            threshold = rates.strongest(criterion.claim, criterion.caution)
        order = _order(criterion, threshold)
        return [replace(_selected(learner, criterion, index, predicted, threshold), order=order)]
    conservative = _selected(learner, criterion, index, predicted, predicted.event)
    if conservative.event.layout is None:  # a score above a number: nobody can count that
        simple, event = _readable(learner, criterion, family, index, predicted.event)
        conservative = _selected(learner, criterion, simple, predicted, event)
    for rule in _OPTIMISTIC:
        # a fit of all draws does not see a few outputs far out: the most optimistic rule counts them
        optimistic = replace(
            criterion,
            gamma=criterion.gamma * rule.share,
            caution=rule.caution,
            calibrate=criterion.calibrate and rule.caution > 0,
        )
        other, further = _best(learner, optimistic, family)
        both = (index, predicted.event), (other, further.largest)
        larger = further.largest.bound > rule.gain * predicted.event.bound
        if not larger and rule is not _OPTIMISTIC[-1]:
            continue
        alone, shared, own = _powers(learner, criterion, *both, rule.share)
        if alone - max(shared, own) > _PRICE or not (larger or own > alone + _CLEARLY):
            continue
        rates = optimistic.rates(_scores(learner, other), tails=other is None)
        chosen = rates.several(
            optimistic.claim, optimistic.gamma, optimistic.caution, further.largest, rule.events
        )
        found = [_selected(learner, optimistic, other, further, threshold) for threshold in chosen]
        found = [one for one in found if not _same(learner, conservative.event, one.event)]
        if not found:
            return [conservative]
        # where all that shows is rare, the larger share goes there
        rare = 2 * predicted.event.bound < further.largest.bound
        share = max(rule.share, 1 - rule.share) if rare else rule.share
        return [
            replace(conservative, share=1 - share),
            *(replace(one, share=share / len(found)) for one in found),
        ]
    return [conservative]


def _powers(
    learner: CrossFit,
    criterion: EventCriterion,
    conservative: tuple[int | None, ThresholdEvent],
    optimistic: tuple[int | None, ThresholdEvent],
    share: float,
) -> tuple[float, float, float]:
    """How likely the conservative event refutes the claim, alone and beside another, and that other one.

    A larger bound does not help where the claim is no longer refuted: an event that may or may not
    refute it keeps all of the error probability, unless the optimistic event is as likely to. The
    penalty of the conservative event is its own, that of the other is taken once; both z are as noisy as
    the training draws. All are 0 where the largest bound is sought.
    """
    if criterion.largest:
        return 0.0, 0.0, 0.0
    z = []
    for (index, event), caution in ((conservative, criterion.caution), (optimistic, 1.0)):
        rates = criterion.rates(_scores(learner, index), tails=index is None)
        statistic = rates.statistic(criterion.claim, caution)
        z.append(statistic(criterion.claim.value)[rates.index(event)])
    level = ndtri(criterion.gamma * np.array([1.0, 1 - share, share]))
    alone, shared, other = ndtr((np.array([z[0], *z]) + level) / math.hypot(1.0, rates.noise))
    return float(alone), float(shared), float(other)


def _scores(learner: CrossFit, index: int | None) -> Scores:
    """The held-back scores of a candidate; None stands for the output itself."""
    found = learner.plain_numbers[1] if index is None else learner.scores(index)  # type: ignore[index]
    assert found is not None
    return found


def _order(criterion: EventCriterion, event: ThresholdEvent) -> float | None:
    """The order at which to test a claim about many: the one at which such an event shows most.

    The frequencies are first moved towards each other by what a test at its level subtracts. A test at
    one order, chosen beforehand, is a test of the claim, and quicker.
    """
    taken = float(ndtri(1 - criterion.gamma)) / math.sqrt(8 * min(criterion.test))
    high, low = 2 * event.share - event.low, event.low
    p = math.sin(max(math.asin(math.sqrt(high)) - taken, 0.0)) ** 2
    q = math.sin(min(math.asin(math.sqrt(low)) + taken, math.pi / 2)) ** 2
    return criterion.claim.order_for(*((p, q) if p > q else (high, low)))


def _same(learner: CrossFit, one: Event, other: Event) -> bool:
    """Whether two events, or an event and a complement, agree on all training draws."""
    sides = learner.batch.p, learner.batch.q
    pairs = [(one.holds(side), other.holds(side)) for side in sides]
    return all(np.array_equal(a, b) for a, b in pairs) or all(
        np.array_equal(a, ~b) for a, b in pairs
    )


def _best(
    learner: CrossFit, criterion: EventCriterion, family: Sequence[int]
) -> tuple[int | None, PredictedEvents]:
    """The best score: the number of a candidate, or None for the output itself."""
    numbers = learner.plain_numbers if family and family[0] == 0 else None
    as_is = None if numbers is None else criterion.judge(numbers[1], tails=True)
    if as_is is not None and learner.small and len(learner.training.layout) == 1:
        return None, as_is
    index, predicted = select(learner, criterion, family)
    for simple in learner.readable:
        scores = learner.known_scores(simple) if learner.names[simple] == "feature" else None
        if simple in family and scores is not None and simple != index:
            own = criterion.judge(scores, learner.parametric(simple))
            if not criterion.beats(predicted, own, _READABLE):
                index, predicted = simple, own
    if as_is is not None and not criterion.beats(predicted, as_is):
        return None, as_is
    return index, predicted


def _readable(
    learner: CrossFit,
    criterion: EventCriterion,
    family: Sequence[int],
    index: int | None,
    event: ThresholdEvent,
) -> tuple[int | None, ThresholdEvent]:
    """An event of categories or of one feature that is about as good, if there is one; else the same.

    Both are counted: of the same event a fit predicts more.
    """
    simple = [k for k in learner.readable if k in family and learner.known_scores(k) is not None]
    if index is None or index in simple or not simple:
        return index, event
    enough = (1 - _AS_GOOD) * criterion.counted_bound(_scores(learner, index), event)
    for k in reversed(simple):
        own = criterion.judge(_scores(learner, k)).event
        if criterion.counted_bound(_scores(learner, k), own) >= enough:
            return k, replace(own, z=event.z, bound=event.bound)
    return index, event


def _as_list(learner: CrossFit, found: SelectedEvent) -> Event:
    """An event of a score as the few outputs that it or its complement holds, where all come often."""
    layout, sides = learner.training.layout, (learner.training.p, learner.training.q)
    often = len(layout) * _OFTEN <= sum(map(len, sides))
    if found.event.layout is not None or found.score == "feature" or layout.widest or not often:
        return found.event
    keys = np.concatenate([side.all_keys() for side in sides])
    held = np.concatenate([found.event.holds(side.outputs) for side in sides])
    inside = np.unique(keys[held & (keys >= 0)])
    rest = len(inside) > len(layout) / 2
    listed = of_keys(layout, inside.tolist(), otherwise=rest)
    same = np.array_equal(held, np.isin(keys, inside) | (rest & (keys < 0)))
    return listed if same and not abridged_keys(listed) else found.event


def _selected(
    learner: CrossFit,
    criterion: EventCriterion,
    index: int | None,
    predicted: PredictedEvents,
    found: ThresholdEvent,
) -> SelectedEvent:
    if index is None:
        event, name = learner.number_event(found.threshold, found.above), "the output itself"
    else:
        loss = learner.fitted(index)
        (event, found), name = _event(learner, criterion, loss, found), loss.name
    return SelectedEvent(event, found, predicted.rank, name)


def _event(
    learner: CrossFit, criterion: EventCriterion, loss: Score, found: ThresholdEvent
) -> tuple[Event, ThresholdEvent]:
    """The event by the score that is fitted to all training draws, about as likely as was predicted.

    Its values need not be on the scale of those that half of the draws gave. Where the event holds less
    than half, or more than twice, what it should, the threshold is set by rank. Where that does not help
    the score has a few values only, and the best one is chosen by the draws it was fitted to.
    """
    event = loss.event(found.threshold, found.above)
    if _as_likely(learner, event, found):
        return event, found
    scores = loss.score(learner.batch.p), loss.score(learner.batch.q)
    rank = 1 - found.share if found.above else found.share
    threshold = float(np.quantile(np.concatenate(scores), rank, method="nearest"))
    event = loss.event(threshold, found.above)
    if _as_likely(learner, event, found):
        return event, found
    best = replace(criterion, counted={}).judge(scores).event
    return loss.event(best.threshold, best.above), best


def _as_likely(learner: CrossFit, event: Event, found: ThresholdEvent) -> bool:
    """Whether an event holds between half and twice the training draws that it should, and not all."""
    sides = learner.batch.p, learner.batch.q
    held = sum(event.count(side) / len(side) for side in sides) / 2
    return 0.5 * found.share <= held <= 2 * found.share and 0.5 * (1 - found.share) <= 1 - held
