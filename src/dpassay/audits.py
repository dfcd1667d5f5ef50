"""The audit: learn on a part of the draws, certify on the rest.

1. Learn. A part of the draws on every pair (a quarter by default) chooses the pair, what ranks the
   outputs, the event and the input on which it is too likely (`learning.cuts`); for Rényi and zCDP claims
   a function of the ranking and a direction (`learning.variation`). The result is a frozen `Choice`.
2. Count. Fresh draws on the chosen pair are counted, or scored: a `Counter` is all that travels to
   workers.
3. Certify. Two binomial counts and the exact joint test; for Rényi and zCDP claims a betting bound,
   since no event can refute every false claim of that kind.

Whatever was chosen by looking was chosen on draws the certificate never uses.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray, IntArray
from dpassay.bounds import joint, power
from dpassay.bounds.ordering import Counts
from dpassay.counts import audit_counts, second_bound
from dpassay.errors import InvalidInput, MechanismError, NotEnoughDraws
from dpassay.learning.cuts import ChosenEvent, EventCriterion, search
from dpassay.learning.learner import Learner, select
from dpassay.learning.variation import MomentCriterion, Variation
from dpassay.loss.fit import Loss
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event
from dpassay.privacy.about import About, Guarantee
from dpassay.privacy.claims import Claim
from dpassay.privacy.pairs import Pair, Relation
from dpassay.privacy.text import as_claim
from dpassay.profiles import profile_of
from dpassay.results import Profile, SecondBound, Verdict, Witness, why_blind
from dpassay.sampling.budget import Budget, split, totals
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.fingerprint import same_inputs
from dpassay.sampling.samples import Samples, Source, one_source, sources

#: Fewer draws than this behind a variational bound, and the event test is paid for as well.
_EFFECTIVE = 100.0
#: The share of the draws that learn, and the most per side that do: more improve no choice.
_TRAIN, _ENOUGH = 0.25, 50_000
#: The stage at which the streams of a replay begin, past all that an audit uses.
_REPLAY = 1 << 16
#: Draws per side with which a time budget is measured out.
_PILOT = 256


class Options(TypedDict, total=False):
    """The options of an audit; see `audit`."""

    n: int | None
    confidence: float
    loss: Any
    train: float | None
    time_budget: float | None
    details: bool
    relation: Relation | str | None
    rng: Seed
    sampling: Sampling | None


@overload
def audit(
    mechanism: Any, pairs: Any = ..., claim: Claim | str | None = ..., **options: Unpack[Options]
) -> Verdict: ...


@overload
def audit(
    mechanism: Any,
    pairs: Any = ...,
    claim: Sequence[Claim | str] = ...,
    **options: Unpack[Options],
) -> list[Verdict]: ...


def audit(
    mechanism: Any,
    pairs: Any = None,
    claim: Any = None,
    *,
    n: int | None = None,
    confidence: float = 0.95,
    loss: Any = "auto",
    train: float | None = None,
    time_budget: float | None = None,
    details: bool = False,
    relation: Relation | str | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Verdict | list[Verdict]:
    """Try to refute a privacy claim, with a probability of at most 1 − confidence of doing so wrongly.

    mechanism    a mechanism, or samples (then leave `pairs` out: all draws are used, each once)
    pairs        a pair of neighbouring inputs, or several: the most promising is tested
    claim        a claim, its text ("eps=1, delta=1e-5"), or a list of them: then a list of verdicts
                 comes back, each at confidence 1 − (1 − confidence)/how many there are
    n            draws per side per pair, training included
    loss         what ranks the outputs: "auto", a name ("kde", "knn", "logistic", …) or any
                 scikit-learn classifier
    train        the share of the draws that learn; by default a quarter, 50 000 a side at most
    time_budget  seconds to spend, in place of n: a pilot measures the mechanism before anything else
    details      also estimate every notion from the training draws, for charts and reports
    relation     what makes the inputs neighbours ("add_remove", "replace", …), for the record

    >>> import dpassay as dp
    >>> def mechanism(x, size, rng):
    ...     return x + rng.laplace(scale=1.0, size=size)
    >>> verdict = dp.audit(mechanism, (0.0, 1.0), dp.PureDP(0.5), n=10_000, rng=0)
    >>> verdict.violated, verdict.lower_bound > 0.8
    (True, True)
    """
    claims = _claims(claim)
    gamma = (1 - checks.probability("confidence", confidence)) / len(claims)
    if train is not None:
        checks.probability("train", train)
    if (n is None) == (time_budget is None) and not isinstance(mechanism, Samples):
        raise InvalidInput(
            "give n, the draws per side per pair, or time_budget, the seconds to spend"
        )
    found = list(sources(mechanism, pairs, rng=rng, sampling=sampling, relation=relation))
    if not found:
        raise InvalidInput("there is no pair to look at: the iterator is empty")
    if time_budget is not None:
        n = _draws_in(found, checks.real("time_budget", time_budget, above=0.0), train)
    share, most = (_TRAIN, _ENOUGH) if train is None else (train, None)
    budget = split(found[0], n, share, least=(4, 4), most=most)
    for one in claims:
        _conclusive(one, budget.test, gamma)
    choices = learn(found, claims, budget, gamma, loss)
    seen = count(choices, budget)
    profiles: dict[int, Profile] = {}
    if details:
        profiles = {
            id(choice.source): profile_of(choice.source, choice.learner) for choice in choices
        }
    verdicts = [
        certify(choice, counted, gamma, len(claims), profiles.get(id(choice.source)))
        for choice, counted in zip(choices, seen, strict=True)
    ]
    return verdicts if isinstance(claim, (list, tuple)) else verdicts[0]


# --- learn


@dataclass(frozen=True, eq=False)
class Choice:
    """What the training draws chose for one claim."""

    claim: Claim
    source: Source
    learner: Learner
    events: tuple[ChosenEvent, ...]  # one, or a cautious and a bold one
    divergence: Divergence | None
    pairs: tuple[tuple[str, float], ...]  # those looked at, with the bound predicted for each

    @property
    def promise(self) -> tuple[int, float]:
        """The larger, the more promising the pair."""
        return self.events[0].rank if self.divergence is None else (0, self.divergence.bound)

    @property
    def predicted(self) -> float:
        """The bound that was predicted."""
        if self.divergence is not None:
            return self.divergence.bound
        return max(found.cut.bound for found in self.events)


@dataclass(frozen=True, eq=False)
class Divergence:
    """The variational way to refute a Rényi or zCDP claim."""

    variation: Variation
    loss: Loss
    share: float  # of the error probability; the event test has the rest
    bound: float  # predicted, on the claim's parameter


def learn(
    found: Sequence[Source], claims: Sequence[Claim], budget: Budget, gamma: float, loss: Any
) -> list[Choice]:
    """Look at the training draws of every pair; keep what promises most for each claim."""
    best: list[Choice | None] = [None] * len(claims)
    tried: list[list[tuple[str, float]]] = [[] for _ in claims]
    for source in found:
        learner = Learner(source.deal(budget.learn), loss, source.rng)
        for k, claim in enumerate(claims):
            choice = _choose(source, learner, claim, budget, gamma)
            tried[k].append((str(source.pair), choice.predicted))
            held = best[k]
            if held is None or choice.promise > held.promise:
                best[k] = choice
    return [
        replace(choice, pairs=tuple(listed))
        for choice, listed in zip(best, tried, strict=True)
        if choice is not None
    ]


def _choose(source: Source, learner: Learner, claim: Claim, budget: Budget, gamma: float) -> Choice:
    # regions of divergence claims are slow: events are sought against a Gaussian claim like them
    seek = claim if claim.event_complete else claim.gaussian_like()
    events = search(learner, EventCriterion(seek, budget.test, gamma))
    divergence = None
    if len(claim.orders):
        divergence = _learn_divergence(learner, claim, min(budget.test), gamma)
        events = [replace(events[0], share=1.0)]
    return Choice(claim, source, learner, tuple(events), divergence, ())


def _learn_divergence(learner: Learner, claim: Claim, test: int, gamma: float) -> Divergence:
    """Choose the loss, the order, the direction and the clip."""
    orders = [float(order) for order in claim.orders]
    # one ranking serves all orders: it is chosen at a moderate one
    criterion = MomentCriterion(orders[len(orders) // 3], (False, True), test, gamma)
    index, _ = select(learner, criterion)
    scores = learner.scores(index)
    assert scores is not None

    def bound(variation: Variation) -> float:
        return claim.from_moment(variation.order, variation.top, variation.promised)

    best = max((criterion.at(order, scores) for order in orders), key=bound)
    share = 1.0 if best.effective >= _EFFECTIVE else 0.5
    return Divergence(best, learner.fitted(index), share, bound(best))


# --- count


@dataclass(frozen=True, eq=False)
class Counter:
    """What the certificates need of a block: hits, and scores where a divergence is bounded."""

    events: tuple[tuple[Event, ...], ...]
    losses: tuple[Loss | None, ...]

    def __call__(self, p: Outputs, q: Outputs) -> list[Counted]:
        """Hits and draws on both sides, for each claim."""
        out = []
        for events, loss in zip(self.events, self.losses, strict=True):
            counts = [[event.count(p), len(p), event.count(q), len(q)] for event in events]
            scores = None if loss is None else (loss.score(p), loss.score(q))
            out.append(Counted(np.array(counts), [] if scores is None else [scores]))
        return out


@dataclass(frozen=True, eq=False)
class Counted:
    """Hits and draws of the events of a claim, a row each; and scores."""

    counts: IntArray
    scores: list[tuple[FloatArray, FloatArray]]

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.counts + other.counts, self.scores + other.scores)


def count(choices: Sequence[Choice], budget: Budget) -> list[Counted]:
    """Fresh draws on the chosen pairs, seen through the choices."""
    seen: list[Counted | None] = [None] * len(choices)
    for source in {id(choice.source): choice.source for choice in choices}.values():
        group = [k for k, choice in enumerate(choices) if choice.source is source]
        losses = (choices[k].divergence for k in group)
        counter = Counter(
            tuple(tuple(found.event for found in choices[k].events) for k in group),
            tuple(None if found is None else found.loss for found in losses),
        )
        try:
            for part in source.blocks(budget.test, counter):
                for k, counted in zip(group, part, strict=True):
                    before = seen[k]
                    seen[k] = counted if before is None else before + counted
        except (
            MechanismError
        ) as error:  # counts are all that is kept of these draws: keep the others
            learned = choices[group[0]].learner.batch
            error.samples = Samples(learned.p, learned.q, pair=source.pair, seed=source.seed)
            raise
    return [one for one in seen if one is not None]


# --- certify


def certify(
    choice: Choice, counted: Counted, gamma: float, claims: int, profile: Profile | None
) -> Verdict:
    """What the fresh draws say about a claim."""
    claim = choice.claim
    share = 0.0 if choice.divergence is None else choice.divergence.share
    lower, p_value, budget, detectable = 0.0, 1.0, [], math.inf
    tests = [
        _test_event(claim, found, row, gamma * (1 - share) * found.share)
        for found, row in zip(choice.events, counted.counts, strict=True)
    ]
    best = max(tests, key=lambda test: (test.lower, -test.p_value))
    if share < 1.0:
        lower = best.lower
        p_value = min(1.0, *(test.p_value * gamma / test.level for test in tests))
        for test in tests:
            budget.append(
                (f"exact joint test of an event found by {test.found.ranking}", test.level)
            )
            if test.second is not None:
                budget.append((f"the bound on {test.second.symbol}", test.spent))
        detectable = min(test.detectable for test in tests)
    if choice.divergence is not None:
        level = gamma * share
        score_p, score_q = (
            np.concatenate([part[side] for part in counted.scores]) for side in (0, 1)
        )
        value, chance, least = _bound_divergence(claim, choice.divergence, score_p, score_q, level)
        lower, p_value = max(lower, value), min(p_value, chance / share, 1.0)
        detectable = min(detectable, least)
        order = choice.divergence.variation.order
        budget.append((f"variational bound at order {order:g}", level))
    if claims > 1:
        budget.append((f"the other {claims - 1} claims", gamma * (claims - 1)))
    violated = p_value <= gamma
    second = max((t.second for t in tests if t.second), key=lambda s: s.lower, default=None)
    return Verdict(
        claim=claim,
        violated=violated,
        blind=why_blind(
            claim,
            violated,
            detectable,
            tuple(best.row.tolist()),
            choice.learner.failures,
            same_inputs(choice.source.pair),
        ),
        p_value=p_value,
        lower_bound=lower,
        confidence=1 - gamma * claims,
        guarantee=Guarantee.EXACT,
        witness=best.witness(choice.source.pair),
        smallest_detectable=detectable,
        second=None if second is None else second.given(violated),
        budget=tuple(budget),
        curve=None if profile is None else profile.tradeoff_curve,
        profile=profile,
        pairs=choice.pairs,
        about=About(
            method=_method(choice),
            guarantee=Guarantee.EXACT,
            n=tuple(np.add(choice.learner.batch.sizes, counted.counts[0, [1, 3]]).tolist()),
            seed=choice.source.seed,
            pair=choice.source.pair,
            notes=(*_notes(choice, claims), *choice.source.notes),
            files=choice.source.files,
            digest=choice.source.digest,
        ),
    )


@dataclass(frozen=True, eq=False)
class _EventTest:
    """One event, its counts, and what they say at a level."""

    found: ChosenEvent
    row: IntArray
    counts: Counts  # as a test of p ≤ g(q)
    level: float
    lower: float
    p_value: float
    detectable: float
    second: SecondBound | None
    spent: float  # on the second bound

    def witness(self, pair: Pair) -> Witness:
        """The event and its counts on either input."""
        i, n, j, m = (int(c) for c in self.row)
        return Witness(event=self.found.event, pair=pair, hits_p=i, n_p=n, hits_q=j, n_q=m)


def _test_event(claim: Claim, found: ChosenEvent, row: IntArray, gamma: float) -> _EventTest:
    i, n, j, m = (int(c) for c in row)
    counts = Counts(i, n, j, m)
    if found.cut.second:  # a symmetric claim says the same of the complement
        counts = Counts(n - i, n, m - j, m) if claim.symmetric else Counts(j, m, i, n)
    if gamma <= 0:
        return _EventTest(found, row, counts, 0.0, 0.0, 1.0, math.inf, None, 0.0)
    second, spent = second_bound(counts, claim, gamma)
    level = gamma - spent
    evidence = joint.evidence(counts, claim, level)
    detectable = power.smallest_detectable(counts, claim, level)
    return _EventTest(
        found,
        row,
        counts,
        level,
        evidence.lower_bound,
        evidence.p_value,
        detectable,
        second,
        spent,
    )


def _bound_divergence(
    claim: Claim, divergence: Divergence, score_p: FloatArray, score_q: FloatArray, gamma: float
) -> tuple[float, float, float]:
    """(lower bound, p-value, smallest detectable value) of the claim's parameter."""
    v = divergence.variation
    limit = claim.moment_limit(v.order, v.top)
    chance = v.p_value(score_p, score_q, limit, gamma)
    bound = claim.from_moment(v.order, v.top, v.lower_mean(score_p, score_q, gamma))
    least = v.detectable(limit, min(len(score_p), len(score_q)), gamma)
    if chance <= gamma:
        bound = max(bound, claim.value)
    elif bound >= claim.value:
        bound = math.nextafter(claim.value, -math.inf)
    seen = claim.from_moment(v.order, v.top, least) if math.isfinite(least) else math.inf
    return max(bound, 0.0), chance, seen


def _method(choice: Choice) -> str:
    names = list(dict.fromkeys(found.ranking for found in choice.events))
    events = "an event" if len(choice.events) == 1 else "two events"
    event = f"{events} found by {' and '.join(names)}"
    if choice.divergence is None:
        return f"exact joint test of {event}"
    said = f"variational bound with {choice.divergence.loss.name}"
    return said if choice.divergence.share == 1.0 else f"{said}, and {event}"


def _notes(choice: Choice, claims: int) -> list[str]:
    notes = []
    if len(choice.pairs) > 1:
        notes.append(
            f"the training draws chose {choice.source.pair} among {len(choice.pairs)} pairs"
        )
    if claims > 1:
        notes.append(f"{claims} claims share the error probability equally")
    if choice.divergence is not None:
        notes.append("the event is an illustration; the divergence is bounded as a whole")
    if any(found.event.live for found in choice.events):
        notes.append("the event needs the fitted classifier: it cannot be replayed from a file")
    notes += [f"could not be tried: {failure}" for failure in choice.learner.failures]
    return notes


# --- borders


def _claims(given: Any) -> list[Claim]:
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if not listed:
        raise InvalidInput("claim is an empty list: there is nothing to refute")
    return [as_claim(one) for one in listed]


def _conclusive(claim: Claim, test: tuple[int, int], gamma: float) -> None:
    """Whether these draws could refute the claim at all, were the event as telling as can be."""
    n, m = test
    if claim.event_complete and joint.p_value(Counts(n, n, 0, m), claim, gamma=gamma) > gamma:
        raise NotEnoughDraws(
            f"{n} draws a side to test with cannot refute {claim}, not even if an event happened in "
            "all of them on one input and in none on the other; give more draws (dp.plan says how "
            "many) or a lower confidence"
        )


def _draws_in(found: Sequence[Source], seconds: float, train: float | None) -> int:
    """The draws per side per pair that fit into the time, from a pilot on the first pair."""
    if found[0].remaining is not None:
        raise InvalidInput("time_budget is for mechanisms: samples are already drawn")
    start = time.perf_counter()
    found[0].deal((_PILOT, _PILOT))
    per_draw = max(time.perf_counter() - start, 1e-6) / _PILOT
    part = _TRAIN if train is None else train
    share = part * len(found) + 1 - part  # every pair learns, one is tested
    return int(min(max(0.7 * seconds / (per_draw * share), 100), 10**9))


# --- replay


def replay(
    witness: Witness | Verdict,
    mechanism: Any,
    *,
    n: int | None = None,
    claim: Claim | str | None = None,
    confidence: float = 0.95,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Verdict:
    """Run the event of a witness again on fresh draws: a second person's confirmation.

    The event was fixed before these draws, and so was the input on which it should be likelier, so
    nothing has to be paid for the search. A verdict brings its claim along; a witness alone needs one.

    >>> import dpassay as dp
    >>> verdict = dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), dp.PureDP(0.5), n=10_000, rng=0)
    >>> dp.replay(verdict, dp.zoo.Laplace(1.0), n=10_000, rng=1).violated
    True
    """
    seen = ""
    if isinstance(witness, Verdict):
        claim = witness.claim if claim is None else claim
        seen = witness.about.digest
        witness = witness.witness
    if not isinstance(witness, Witness):
        raise InvalidInput(f"replay takes a witness or a verdict, got {checks.shown(witness)}")
    if claim is None:
        raise InvalidInput("a witness alone does not say what was claimed: give claim=…")
    event = witness.event
    if not event.replayable:
        raise InvalidInput(
            f'the event "{event}" needs the classifier it was found with and cannot be replayed from '
            "its description; audit again with the seed of the verdict"
        )
    if isinstance(mechanism, Samples):
        source: Source = mechanism
        sizes = totals(source, n)
        if seen and source.digest == seen:
            raise InvalidInput(
                "these are the draws on which the event was found: a replay needs fresh ones"
            )
    else:
        if witness.pair is None:
            raise InvalidInput("the witness carries no pair of inputs to run on")
        # streams of its own: with the seed of the audit the draws that chose the event would come back
        source = one_source(mechanism, witness.pair, rng=rng, sampling=sampling, stage=_REPLAY)
        size = checks.whole("n", n)
        sizes = size, size
    total = np.zeros(4, dtype=np.int64)
    for (part,) in source.blocks(sizes, Counter(((event,),), (None,))):
        total += part.counts[0]
    i, n_p, j, n_q = (int(t) for t in total)
    verdict = audit_counts(
        i,
        n_p,
        j,
        n_q,
        claim,
        confidence=confidence,
        likelier="first" if witness.p >= witness.q else "second",
    )
    pair = source.pair if witness.pair is None else source.pair.related(witness.pair.relation)
    return replace(
        verdict,
        witness=Witness(event=event, pair=pair, hits_p=i, n_p=n_p, hits_q=j, n_q=n_q),
        about=replace(
            verdict.about,
            method="replay of an event",
            seed=source.seed,
            pair=pair,
            notes=(*verdict.about.notes, *source.notes),
            files=source.files,
        ),
    )
