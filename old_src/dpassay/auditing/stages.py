"""The three stages of an audit: learn on a part of the draws, count and certify on the rest.

1. Learn. A part of the draws on every pair (a quarter by default) chooses the pair, what ranks the
   outputs, the event and the input on which it is too likely (`learning.event_selection`); for Rényi and
   zCDP claims a function of the score and a direction (`learning.renyi_variational`). The result is a
   frozen `Selection`.
2. Count. Fresh draws on the chosen pair are counted, or scored: a `Counter` is all that travels to
   workers.
3. Certify. Two binomial counts and the exact joint test; for Rényi and zCDP claims also a bound by
   betting (`RenyiWealth`), since no event can refute every false claim of that kind.

Whatever was chosen by looking was chosen on draws the certificate never uses.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.auditing.counts import EventTest, second_bound
from dpassay.bounds import joint_test as joint
from dpassay.bounds import power
from dpassay.bounds.ordering import Counts
from dpassay.diagnosis.parts import Keeping, Kept
from dpassay.errors import MechanismError, NotEnoughDraws
from dpassay.learning.cross_fit import CrossFit, select
from dpassay.learning.event_selection import EventCriterion, SelectedEvent, select_events
from dpassay.learning.renyi_variational import MomentCriterion, VariationalFunction
from dpassay.learning.streaming import best_event, counts_of_halves, draws_for_rare_events
from dpassay.outputs.device_arrays import AnyOutputs, on_host
from dpassay.outputs.events import Event
from dpassay.privacy.claims import Claim
from dpassay.results.blindness import Blind, Cause
from dpassay.results.estimates import SECOND, SecondBound
from dpassay.results.verdict import GAUSSIAN
from dpassay.sampling.budget import Budget, Clock
from dpassay.sampling.samples import Live, Samples, Sizes, Source
from dpassay.scores.fit import Score

#: Training draws of an event that make it frequent, and the part of its frequency that is hardly any.
_OFTEN, _HARDLY = 50, 0.1
#: An event differs between the inputs from so many standard errors on.
_CLEARLY = 4.5
#: An event this unlikely to refute a Rényi or zCDP claim gets nothing of the error probability; else it
#: and the variational bound share by the odds of their predicted power, and each gets at least a tenth.
_FAINT, _LEAST = 0.02, 0.1
#: The excess that is detected with a score, a clip and an order that training draws choose, over that
#: with the best ones, as measured: where there is one order, and where there are several.
_LEARNED = 1.2, 1.4


# --- learn


@dataclass(frozen=True, eq=False)
class Selection:
    """What the training draws chose for one claim."""

    claim: Claim
    source: Source
    learner: CrossFit
    events: tuple[SelectedEvent, ...]  # each with its share of the error probability
    divergence: Divergence | None
    pairs: tuple[tuple[str, float], ...]  # those tried, with the bound predicted for each
    spent_on_rare: Sizes = (0, 0)  # testing draws that learned rare events

    def undecided(self, largest: bool) -> bool:
        """Whether rarer events of values may show more than these are certain to."""
        bits = any(found.event.of_representation for found in self.events)
        certain = self.events[0].rank[0] == 2 and not largest
        return self.claim.set_by_events and not bits and not certain

    @property
    def spent(self) -> IntArray:
        """The draws that learned, on either side."""
        return np.add(self.learner.batch.sizes, self.spent_on_rare)

    @property
    def rank(self) -> tuple[int, float]:
        """The larger, the better the pair."""
        return self.events[0].rank if self.divergence is None else (0, self.divergence.bound)

    @property
    def predicted(self) -> float:
        """The bound that was predicted."""
        if self.divergence is not None:
            return self.divergence.bound
        return max(found.threshold.bound for found in self.events)


@dataclass(frozen=True, eq=False)
class Divergence:
    """The variational way to refute a Rényi or zCDP claim."""

    variation: VariationalFunction
    loss: Score
    share: float  # of the error probability; the event test has the rest
    bound: float  # predicted, on the claim's parameter

    @property
    def bits(self) -> Event | None:
        """The event that its score is positive, if that is one of the floating-point representation."""
        event = self.loss.event(0.0, True)
        return event if event.of_representation else None


def learn(
    found: Sequence[Source],
    claims: Sequence[Claim],
    budget: Budget,
    gamma: float,
    loss: Any,
    *,
    largest: bool = False,
    lean: bool = False,
    calibrate: bool = True,
) -> list[Selection]:
    """Choose the best pair, score and events for each claim, on training draws.

    That is the strongest test of the claim, or with `largest` the largest bound; `lean` without scores
    that are slow to fit. A search that compares pairs by what is predicted does not `calibrate`: a fit
    predicts a refutation more often than few draws warrant.
    """
    best: list[Selection | None] = [None] * len(claims)
    tried: list[list[tuple[str, float]]] = [[] for _ in claims]
    for source in found:
        batch = source.deal(budget.learn)
        learner = CrossFit(batch, loss, source.rng, lean=lean, pair=source.pair)
        for k, claim in enumerate(claims):
            criterion = EventCriterion(
                claim, budget.test, gamma, largest=largest, calibrate=calibrate
            )
            events, divergence = tuple(select_events(learner, criterion)), None
            if len(claim.orders):
                test = min(budget.test)
                divergence = _learn_divergence(learner, claim, test, gamma, events[0], largest)
            choice = Selection(claim, source, learner, events, divergence, ())
            tried[k].append((str(source.pair), choice.predicted))
            held = best[k]
            if held is None or choice.rank > held.rank:
                best[k] = choice
    return [
        replace(choice, pairs=tuple(listed))
        for choice, listed in zip(best, tried, strict=True)
        if choice is not None
    ]


def learn_rare_events(
    choices: Sequence[Selection], budget: Budget, gamma: float, *, largest: bool = False
) -> tuple[list[Selection], Budget]:
    """Spend a part of many testing draws on rarer events, where a refutation is not certain."""
    sizes = draws_for_rare_events(budget)
    if not max(sizes):
        return list(choices), budget
    rest = Budget(budget.learn, (budget.test[0] - sizes[0], budget.test[1] - sizes[1]))
    found = list(choices)
    for source in {id(choice.source): choice.source for choice in choices}.values():
        here = (k for k, choice in enumerate(choices) if choice.source is source)
        undecided = [k for k in here if choices[k].undecided(largest)]
        halves = (
            counts_of_halves(source, choices[undecided[0]].learner, sizes) if undecided else None
        )
        if halves is None:
            continue
        for k in undecided:
            choice = choices[k]
            criterion = EventCriterion(choice.claim, rest.test, gamma, largest=largest)
            event = best_event(halves, criterion)
            better = event is not None and event.rank > choice.events[0].rank
            events = (event,) if event is not None and better else choice.events
            found[k] = replace(choice, events=events, spent_on_rare=sizes)
    return found, rest if any(max(choice.spent_on_rare) for choice in found) else budget


def _learn_divergence(
    learner: CrossFit, claim: Claim, test: int, gamma: float, event: SelectedEvent, largest: bool
) -> Divergence:
    """Choose the loss, the order, the direction, the clip, and what is left to the event."""
    orders = [float(order) for order in claim.orders]
    # one score serves all orders: it is chosen at a moderate one
    criterion = MomentCriterion(orders[len(orders) // 3], (False, True), test, gamma, claim.leak)
    index, _ = select(learner, criterion)
    scores = learner.scores(index)
    assert scores is not None
    scores = np.sort(scores[0]), np.sort(scores[1])  # once for all orders

    def bound(variation: VariationalFunction) -> float:
        return float(claim.from_divergence(variation.order, variation.predicted))

    best = max((criterion.at(order, scores) for order in orders), key=bound)
    mine, other = best.power(claim.divergence_limit(best.order)), event.power(gamma)
    share = 1.0
    if largest:  # events show little of a divergence
        share = 1 - _LEAST
    elif other > _FAINT:
        odds = [power / max(1 - power, 1e-9) for power in (mine, other)]
        share = min(max(odds[0] / sum(odds), _LEAST), 1 - _LEAST)
    return Divergence(best, learner.fitted(index), share, bound(best))


# --- count


@dataclass(frozen=True, eq=False)
class Counter:
    """What the certificates need of a block: hits, and scores where a divergence is bounded."""

    events: tuple[tuple[Event, ...], ...]
    losses: tuple[Score | None, ...]

    @property
    def on_device(self) -> bool:
        """Whether draws may stay where they are: scores are computed here."""
        return not any(self.losses)

    def __call__(self, p: AnyOutputs, q: AnyOutputs) -> list[Counted]:
        """Hits and draws on both sides, for each claim."""
        out = []
        for events, loss in zip(self.events, self.losses, strict=True):
            counts = [[event.count(p), len(p), event.count(q), len(q)] for event in events]
            scored = [] if loss is None else [(loss, on_host(p), on_host(q))]
            out.append(Counted(np.array(counts), [(s.score(a), s.score(b)) for s, a, b in scored]))
        return out


@dataclass(frozen=True, eq=False)
class Counted:
    """Hits and draws of the events of a claim, a row each; and scores."""

    counts: IntArray
    scores: list[tuple[FloatArray, FloatArray]]
    kept: Kept = ()

    def __add__(self, other: Counted) -> Counted:
        both = self.counts + other.counts, self.scores + other.scores
        return Counted(*both, self.kept + other.kept)


@dataclass(frozen=True, eq=False)
class PairCounter:
    """What is counted on one pair, for which claims."""

    source: Source
    group: tuple[int, ...]
    counter: Counter


def pair_counters(choices: Sequence[Selection]) -> list[PairCounter]:
    """The chosen pairs, each with all that is counted on it."""
    found = []
    for source in {id(choice.source): choice.source for choice in choices}.values():
        group = tuple(k for k, choice in enumerate(choices) if choice.source is source)
        losses = (choices[k].divergence for k in group)
        counter = Counter(
            tuple(tuple(one.event for one in choices[k].events) for k in group),
            tuple(None if one is None else one.loss for one in losses),
        )
        found.append(PairCounter(source, group, counter))
    return found


def count(choices: Sequence[Selection], budget: Budget) -> list[Counted]:
    """Fresh draws on the chosen pairs, seen through the choices."""
    seen: list[Counted | None] = [None] * len(choices)
    for one in pair_counters(choices):
        source, group, counter = one.source, one.group, Keeping.of(one.counter, budget.test)
        try:
            for part, some in source.blocks(budget.test, counter):
                for k, counted in zip(group, part, strict=True):
                    before, counted = seen[k], replace(counted, kept=some)
                    seen[k] = counted if before is None else before + counted
        except MechanismError as error:
            # counts are all that is kept of these draws: keep the others
            learned = choices[group[0]].learner.batch
            error.samples = Samples(learned.p, learned.q, pair=source.pair, seed=source.seed)
            raise
    return [one for one in seen if one is not None]


# --- certify


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the fresh draws say about a claim's parameter."""

    lower: float
    p_value: float
    tests: list[EventTest]
    least: float  # smallest value that the bound of the divergence detects
    second: SecondBound | None
    budget: list[tuple[str, float]]

    @property
    def best(self) -> EventTest:
        """The event that shows most."""
        return max(self.tests, key=lambda test: (test.lower, -test.p_value))

    def bits(self, divergence: Divergence | None) -> Event | None:
        """The event of the floating-point representation that the bound comes from, if it does."""
        if divergence is not None and self.lower > self.best.lower:
            return divergence.bits
        event = self.best.found.event
        return event if event.of_representation and self.lower > 0 else None

    @property
    def most_significant(self) -> EventTest:
        """The event with the smallest p-value, each at its share of the error probability."""
        return min(self.tests, key=lambda test: test.adjusted)

    @cached_property
    def detectable_by_event(self) -> list[float]:
        """The smallest value that each event detects at its level, if the strongest shows it in full.

        Where an event shows a parameter that is smaller than that of another one by more than two
        standard errors of the latter, its value is raised by the rest of the difference.
        """
        least = [test.detectable for test in self.tests]
        if len(least) == 1:
            return least
        seen = [power.shown(test.counts, test.claim) for test in self.tests]
        most = max((v - 2 * error for v, error in seen if math.isfinite(error)), default=0.0)
        limit = self.tests[0].claim.largest
        return [
            min(one + max(most - value, 0.0), limit) if math.isfinite(one) else math.inf
            for one, (value, _) in zip(least, seen, strict=True)
        ]

    @property
    def detectable(self) -> float:
        """The smallest value of the parameter that one of the tests detects, at its own level.

        Of a divergence an event shows a part: the bound of the divergence alone says what is detected.
        """
        by_events = self.tests[0].claim.set_by_events
        return min(self.detectable_by_event) if by_events else self.least

    @property
    def detectable_on(self) -> str:
        """What shows that, where it is not the event that shows most."""
        if not self.tests[0].claim.set_by_events:
            return GAUSSIAN
        smallest, found = min(self.detectable_by_event), self.detectable_by_event
        able = [test for test, one in zip(self.tests, found, strict=True) if one <= smallest]
        return "" if self.best in able else str(able[0].found.event)


def certify(
    choice: Selection,
    counted: Counted,
    gamma: float,
    *,
    second: bool = True,
    beyond: float = 0.0,
) -> Certificate:
    """Test the events, and bound the divergence; with `second` also the other parameter of (ε, δ).

    Events seek no bound up to `beyond`; with ∞ the p-value alone is of use.

    A divergence says nothing of ε at a δ, since it may be that of outputs less likely than δ. So of a
    curve of divergences the first event bounds that ε, paid for before anything else.
    """
    claim, divergence = choice.claim, choice.divergence
    share, rest, other = 0.0, gamma, None
    lower, p_value, least = 0.0, 1.0, math.inf
    budget: list[tuple[str, float]] = []
    if divergence is not None:
        if second:
            first = _tested(claim, choice.events[0], counted.counts[0])
            other = second_bound([(first, gamma)], claim)
        rest, share = gamma if other is None else gamma - SECOND * gamma, divergence.share
        level = rest * share
        score_p, score_q = (
            np.concatenate([part[side] for part in counted.scores]) for side in (0, 1)
        )
        lower, chance, least = _bound_divergence(claim, divergence, score_p, score_q, level)
        p_value = min(chance * gamma / level, 1.0)
        budget.append((f"variational bound at order {divergence.variation.order:g}", level))
        if other is not None:
            budget.append((f"the bound on {other.symbol} at {other.at}", SECOND * gamma))
    both = second and divergence is None
    tests, own = _test_events(choice, counted.counts, rest * (1 - share), both, max(lower, beyond))
    if share < 1.0:
        lower = max(lower, *(test.lower for test in tests))
        p_value = min(p_value, *(test.p_value * gamma / test.level for test in tests))
        budget = [line for test in tests for line in test.budget(own)] + budget
    return Certificate(lower, p_value, tests, least, own if other is None else other, budget)


def _test_events(
    choice: Selection, rows: IntArray, gamma: float, both: bool, beyond: float
) -> tuple[list[EventTest], SecondBound | None]:
    """Each event at its share of γ; with `both` also the largest bound on the other parameter.

    Of a bound on the parameter nothing is sought up to `beyond`.
    """
    claim = choice.claim
    tests, second = [], None
    counts = [_tested(claim, found, row) for found, row in zip(choice.events, rows, strict=True)]
    levels = [gamma * found.share for found in choice.events]
    if both and gamma > 0:
        second = second_bound(list(zip(counts, levels, strict=True)), claim)
    for found, row, count, share in zip(choice.events, rows, counts, levels, strict=True):
        tested = claim if found.order is None else claim.at_order(found.order)
        spent = 0.0 if second is None else SECOND * share
        level, seen = share - spent, joint.Evidence(1.0, 0.0)
        if level > 0:
            seen = joint.evidence(count, tested, level, beyond)
            beyond = max(beyond, seen.lower_bound)
        tests.append(
            EventTest(found, row, count, tested, level, spent, seen.lower_bound, seen.p_value)
        )
    return tests, second


def _tested(claim: Claim, found: SelectedEvent, row: IntArray) -> Counts:
    """The counts of an event as a test of p ≤ g(q)."""
    i, n, j, m = (int(c) for c in row)
    if not found.threshold.swapped:
        return Counts(i, n, j, m)
    # a symmetric claim says the same of the complement
    return Counts(n - i, n, m - j, m) if claim.symmetric else Counts(j, m, i, n)


def differs(found: Certificate) -> bool:
    """Whether an event that was tested is clearly more frequent on one input."""
    i, n, j, m = np.array([one.row for one in found.tests], dtype=float).T
    both = (i + j) / (n + m)
    error = np.sqrt(both * (1 - both) * (1 / n + 1 / m))
    return bool(np.any(np.abs(i / n - j / m) > _CLEARLY * error))


def changed(choice: Selection, found: Certificate) -> Blind:
    """That an event held often among held-back training draws, and hardly ever among testing draws."""
    (i, n, j, m), predicted = found.best.row.tolist(), found.best.found.threshold.share
    now, enough = (i / n + j / m) / 2, _OFTEN / min(choice.learner.batch.sizes)
    for before, after in ((predicted, now), (1 - predicted, 1 - now)):
        if before >= enough and after < _HARDLY * before:
            said = f"the outputs changed: an event in {before:.0%} of the training draws is in"
            return Blind(Cause.CHANGED_OUTPUTS, f"{said} {after:.1%} of the testing draws")
    return Blind()


def _bound_divergence(
    claim: Claim, divergence: Divergence, score_p: FloatArray, score_q: FloatArray, gamma: float
) -> tuple[float, float, float]:
    """(lower bound, p-value, smallest detectable value) of the claim's parameter."""
    v = divergence.variation
    limit = claim.divergence_limit(v.order)
    chance = v.p_value(score_p, score_q, limit)
    bound = claim.from_divergence(v.order, v.bound(score_p, score_q, gamma))
    if chance <= gamma:
        bound = max(bound, claim.value)
    elif bound >= claim.value:
        bound = math.nextafter(claim.value, -math.inf)
    n, times = min(len(score_p), len(score_q)), _LEARNED[len(claim.orders) > 1]
    least = math.inf
    for order in {v.order, float(min(claim.orders))}:  # other draws may choose another order
        limit = claim.divergence_limit(order)
        excess = replace(v, order=order).detectable(limit, n, gamma) - limit
        if math.isfinite(excess):
            least = min(least, float(claim.from_divergence(order, limit + times * excess)))
    return max(bound, 0.0), chance, least


def check_conclusive(claim: Claim, test: tuple[int, int], gamma: float) -> None:
    """Whether these draws could refute the claim at all, were the event as telling as can be."""
    n, m = test
    if claim.set_by_events and joint.p_value(Counts(n, n, 0, m), claim, gamma=gamma) > gamma:
        raise NotEnoughDraws(
            f"{n} draws a side to test with cannot refute {claim}, not even if an event happened in "
            "all of them on one input and in none on the other; give more draws (dp.plan and dpassay "
            "plan say how many) or a lower confidence"
        )


def testing_draws_in_time(clock: Clock, budget: Budget, choices: Sequence[Selection]) -> Budget:
    """The draws that test in the time that is left."""
    found, size = pair_counters(choices), 0
    start = time.perf_counter()
    for look in found:  # on training draws, to see how long it takes
        batch = choices[look.group[0]].learner.batch
        look.counter(batch.p, batch.q)
        size += min(batch.sizes)
    use = (time.perf_counter() - start) / size
    return clock.testing(
        budget, [look.source for look in found if isinstance(look.source, Live)], use
    )
