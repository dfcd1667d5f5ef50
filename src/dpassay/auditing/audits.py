"""The audit of a claim, and the largest bound without one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from dpassay import validation as checks
from dpassay.auditing.stages import (
    Certificate,
    Counted,
    Selection,
    certify,
    changed,
    check_conclusive,
    count,
    differs,
    learn,
    learn_rare_events,
    pair_counters,
    testing_draws_in_time,
)
from dpassay.blackbox.library_objects import claim_on
from dpassay.blackbox.mechanism import check_mechanism
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import best_detectable, smallest_detectable
from dpassay.diagnosis.diagnoses import belief, diagnose, looked_at
from dpassay.diagnosis.parts import joined
from dpassay.errors import InvalidInput
from dpassay.learning.separation import evenest_share, separates
from dpassay.notions.all_notions import profile_of
from dpassay.outputs.events import Event
from dpassay.privacy.claim_parsing import as_claim, parameter, several
from dpassay.privacy.claims import Claim
from dpassay.privacy.families import Family, delta_of, last_refuted
from dpassay.privacy.provenance import About, Guarantee
from dpassay.privacy.relations import Relation
from dpassay.results.blindness import Blind, Cause, blind_search, far_above
from dpassay.results.estimates import LowerBound, Profile
from dpassay.results.explanations import Explanation
from dpassay.results.verdict import Verdict, Verdicts
from dpassay.results.verdict_text import SHARED
from dpassay.results.witness import BITS
from dpassay.sampling.budget import ENOUGH, TRAIN, Budget, Clock, split
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.identity import same_inputs
from dpassay.sampling.progress import CallProgress, announced
from dpassay.sampling.samples import Batch, Live, Samples, Sizes, sources
from dpassay.scores.serializable import feature_curve

#: Where no event holds this share of the draws, the outputs themselves may make an audit blind.
_UNEVEN = 0.05
#: An event with a p-value so many times smaller than that of the witness is named.
_MORE_SIGNIFICANT = 100.0
#: The part of the predicted bound that a cause has to reach to explain it.
_MOST = 0.8


class Options(TypedDict, total=False):
    """The options of an audit; see `audit`."""

    n: int | None
    confidence: float
    loss: Any
    features: Any
    train: float | None
    seconds: float | None
    details: bool | Literal["violation"]
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
) -> Verdicts: ...


def audit(
    mechanism: Any,
    pairs: Any = None,
    claim: Any = None,
    *,
    n: int | None = None,
    confidence: float = 0.95,
    loss: Any = "auto",
    features: Any = None,
    train: float | None = None,
    seconds: float | None = None,
    details: bool | Literal["violation"] = False,
    relation: Relation | str | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Verdict | Verdicts:
    """Try to refute a privacy claim, with a probability of at most 1 − confidence of doing so wrongly.

    mechanism    a mechanism, or samples (then leave `pairs` out: all draws are used, each once)
    pairs        a pair of neighbouring inputs, or several: the one of most power is tested
    claim        a claim, its text ("eps=1, delta=1e-5"), or a list of them: then a list of verdicts
                 comes back, each at confidence 1 − (1 − confidence)/how many there are; a mechanism of
                 OpenDP or diffprivlib states its own
    n            draws per side per pair, training included
    loss         the score of the outputs: "auto", a name ("kde", "knn", "logistic", …) or any
                 scikit-learn classifier; "values" is "auto" without the floating-point
                 representation, "bits" is that alone
    features     functions of one output (and of the pair, if they take two arguments) that compete with
                 the built-in ones: what you know about such outputs
    train        the share of the draws that learn; by default a quarter, 50 000 a side at most
    seconds      time to spend, in place of n: a pilot measures the mechanism, and how many draws test
                 is fixed before the first of them
    details      also estimate every notion, for charts and reports; "violation" does so only where the
                 claim is refuted
    relation     what makes the inputs neighbours ("add_remove", "replace", …), for the record

    >>> import dpassay as dp, numpy as np
    >>> def mechanism(x, size, rng):
    ...     return np.round(x + rng.laplace(scale=1.0, size=size), 6)
    >>> verdict = dp.audit(mechanism, (0.0, 1.0), dp.PureDP(0.5), n=10_000, rng=0)
    >>> verdict.violated, verdict.lower_bound > 0.8
    (True, True)
    """
    given = claim_on(claim, mechanism, pairs)
    claims = [as_claim(one) for one in (given if several(given) else [given])]
    if not claims:
        raise InvalidInput("claim is an empty list: there is nothing to refute")
    if isinstance(details, str):
        checks.one_of("details", details, ("violation",), remedy="or True or False")
    else:
        checks.flag("details", details)
    gamma = (1 - checks.confidence(confidence)) / len(claims)  # Bonferroni
    how = {"n": n, "train": train, "seconds": seconds, "loss": loss}
    drawn = {"rng": rng, "sampling": sampling, "relation": relation, "features": features}
    choices, seen, planned = _counted(mechanism, pairs, claims, gamma, **how, **drawn)
    verdicts = [
        _verdict(choice, counted, planned, gamma, len(claims))
        for choice, counted in zip(choices, seen, strict=True)
    ]
    if details:
        verdicts = _detailed(verdicts, choices, seen, details == "violation")
    return Verdicts(verdicts) if several(claim) else verdicts[0]


def refutes(
    mechanism: Any,
    pair: Any,
    claim: Claim,
    *,
    n: int,
    confidence: float,
    train: float | None,
    loss: Any,
    rng: Seed,
    sampling: Sampling | None,
) -> bool:
    """Whether `audit` with these options refutes the claim; nothing else of its verdict is computed."""
    gamma = 1 - confidence
    how: dict[str, Any] = {"n": n, "train": train, "seconds": None, "loss": loss}
    found = _counted(mechanism, pair, [claim], gamma, rng=rng, sampling=sampling, **how)
    (choice,), (counted,), _ = found
    return certify(choice, counted, gamma, beyond=math.inf).p_value <= gamma


def _detailed(
    verdicts: Sequence[Verdict],
    choices: Sequence[Selection],
    seen: Sequence[Counted],
    refuted: bool,
) -> list[Verdict]:
    """The verdicts, or those that are violations, with every notion, by all draws that were kept."""
    profiles: dict[int, tuple[Profile, Batch]] = {}
    out = []
    for verdict, choice, counted in zip(verdicts, choices, seen, strict=True):
        if refuted and not verdict.violated:
            out.append(verdict)
            continue
        key = id(choice.source)
        if key not in profiles:
            batch = choice.learner.batch.with_more(joined(counted.kept))
            profiles[key] = profile_of(choice.source, choice.learner.on(batch)), batch
        found, batch = profiles[key]
        event = verdict.witness.event if verdict.witness is not None else None
        score = event.score_function if event is not None else None
        if event is not None and score is not None and score.feature is not None:
            shown = feature_curve(score, batch.p, batch.q, event.holds_feature)
            found = replace(found, loss=shown)
        out.append(replace(verdict, curve=found.tradeoff_curve, profile=found))
    return out


def _verdict(
    choice: Selection, counted: Counted, planned: Sizes, gamma: float, claims: int
) -> Verdict:
    """What the fresh draws say about a claim; `planned` is how many there were to be."""
    claim, found = choice.claim, certify(choice, counted, gamma)
    violated, tests = found.p_value <= gamma, len(found.tests)
    witness = found.best.witness(choice.source)
    guarantee = Guarantee.EXACT.downgraded(choice.source.doubts)
    blind = _blind(choice, found, violated, planned, gamma)
    rest = [(f"the other {claims - 1} claims", gamma * (claims - 1))] if claims > 1 else []
    return Verdict(
        claim=claim,
        violated=violated,
        blind=blind.words,
        blind_cause=blind.cause,
        separated=violated or differs(found) or separates(choice.learner),
        p_value=found.p_value,
        lower_bound=found.lower,
        confidence=1 - gamma * claims,
        guarantee=guarantee,
        witness=witness,
        smallest_detectable=found.detectable,
        detectable_on=found.detectable_on,
        second=None if found.second is None else found.second.beside(violated),
        budget=(*found.budget, *rest),
        pairs=choice.pairs,
        about=_about(choice, counted, claims, found),
        diagnosis=_diagnosis(choice, counted, found, gamma, claim if violated else None),
        belief=belief(witness, claim, gamma, guarantee, tests) if violated else None,
    )


def _diagnosis(
    choice: Selection,
    counted: Counted,
    found: Certificate,
    gamma: float,
    claim: Claim | None,
    claimed: bool = True,
) -> tuple[Explanation, ...]:
    """Why a claim was refuted, or what was looked at; one of several events is the witness."""
    learner = choice.learner
    if claim is None:
        return looked_at(learner)
    return diagnose(
        learner.batch,
        counted.kept,
        claim,
        choice.source.pair,
        found.best.witness(choice.source),
        gamma,
        Guarantee.EXACT.downgraded(choice.source.doubts),
        features=learner.known_features(),
        chosen=len(found.tests),
        claimed=claimed,
        bits=found.bits(choice.divergence),
    )


def _blind(
    choice: Selection, found: Certificate, violated: bool, planned: Sizes, gamma: float
) -> Blind:
    """Why the claim could not have been refuted; by the outputs, or by what was fixed before drawing."""
    if violated:
        return Blind()
    claim, (n, m) = choice.claim, planned
    least = best_detectable(n, m, claim, gamma, lambda value: not far_above(claim, value))
    same, failures = same_inputs(choice.source.pair), choice.learner.failures
    outputs = changed(choice, found)
    if not outputs.words:
        outputs = _blind_outputs(choice, found.best.row.tolist(), planned, gamma)
    return blind_search(claim, violated, least, failures, same, outputs)


def _blind_outputs(choice: Selection, row: list[int], planned: Sizes, gamma: float) -> Blind:
    """Why no event of these outputs could have refuted the claim: hardly any event parts them."""
    claim, share = choice.claim, evenest_share(choice.learner)
    counts = Counts(round(share * planned[0]), planned[0], round(share * planned[1]), planned[1])
    if share >= _UNEVEN or not far_above(claim, smallest_detectable(counts, claim, gamma)):
        return Blind()
    if separates(choice.learner):
        return Blind()
    training = choice.learner.training
    draws = training.p.counts() + training.q.counts()
    top, layout = int(np.argmax(draws)), training.layout
    often = draws[top] / draws.sum()
    if top == len(layout) or layout.free(top):
        if "feature" in choice.learner.names:  # those of collections were searched, and none tells
            return Blind()
        said = f"{often:.0%} of the outputs hardly repeat, and no score orders them"
        return Blind(Cause.NO_SCORE, said)
    i, n, j, m = row
    output = layout.words(top)
    if often == 1 and (i, j) in ((0, 0), (n, m)):
        hint = "; is a `return` missing?" if output == "None" else ""
        said = f"the output is {output} every time, on both inputs{hint}"
        return Blind(Cause.CONSTANT_OUTPUT, said)
    return Blind(
        Cause.NO_SCORE, f"{often:.1%} of the outputs are {output}, on both inputs together"
    )


def bound(
    mechanism: Any,
    pairs: Any = None,
    of: Claim | str = "eps",
    *,
    family: Family | None = None,
    n: int | None = None,
    confidence: float = 0.95,
    loss: Any = "auto",
    features: Any = None,
    train: float | None = None,
    seconds: float | None = None,
    relation: Relation | str | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> LowerBound:
    """The largest certified lower bound on a privacy parameter, without any claim.

    It holds with probability `confidence`, for every number of draws; an audit seeks the strongest test
    of a claim instead.

    of      "eps", "eps, delta=1e-5", "delta, eps=1", "mu", "rho" or "renyi(order=2)"; or a claim, whose
            value does not matter
    family  the mechanism is assumed to be one of these: the bound is then the ε at δ of the last claim
            of the family that is refuted, and a note says for which value of the parameter

    The other arguments are those of `audit`.

    >>> import dpassay as dp
    >>> found = dp.bound(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps", n=20_000, rng=0)
    >>> 0.9 < found.value <= 1.0
    True
    """
    wanted = parameter(of) if isinstance(of, str) else as_claim(of).at(0.0)
    gamma = 1 - checks.confidence(confidence)
    if isinstance(pairs, str) and not isinstance(mechanism, str):
        raise InvalidInput(
            f"the second argument is the pair of inputs, got {pairs!r}; write of={pairs!r}"
        )
    if family is not None and not (sampling and sampling.progress is False):
        family = replace(family, claims=announced(family.claims))
    among = None if family is None else family.ordered(delta_of(wanted))
    tested = wanted if among is None else among
    how = {"n": n, "train": train, "seconds": seconds, "loss": loss}
    drawn = {"rng": rng, "sampling": sampling, "relation": relation, "features": features}
    found = _counted(mechanism, pairs, [tested], gamma, largest=True, **how, **drawn)
    (choice,), (counted,), _ = found
    seen = certify(choice, counted, gamma, second=False)
    about = _about(choice, counted, 1, seen, tested=False)
    witness = seen.best.witness(choice.source)
    bounded: dict[str, Any]
    if family is not None and among is not None:
        bounded = last_refuted(family, among, seen.lower, delta_of(wanted))
        about = replace(about, notes=(bounded.pop("note"), *about.notes))
    else:
        hoped = _MOST * choice.predicted  # by training draws, which choose what is looked at
        known = seen.lower > 0 and 0 < hoped < np.inf
        reached = wanted.at(float(f"{hoped:.3g}")) if known else None
        bounded = {
            "value": seen.lower,
            "claim": wanted.at(seen.lower),
            "diagnosis": _diagnosis(choice, counted, seen, gamma, reached, claimed=False),
        }
    return LowerBound(
        confidence=confidence,
        notion=wanted.meaning + bounded.pop("of", ""),
        guarantee=Guarantee.EXACT.downgraded(choice.source.doubts),
        pair=choice.source.pair,
        witness=witness,
        budget=tuple(seen.budget),
        pairs=choice.pairs,
        about=about,
        **bounded,
    )


def _about(
    choice: Selection, counted: Counted, claims: int, found: Certificate, tested: bool = True
) -> About:
    bits: tuple[str, ...] = (BITS,) if found.bits(choice.divergence) is not None else ()
    most_significant = found.most_significant
    if (
        tested
        and most_significant.adjusted <= 1
        and found.best.adjusted > _MORE_SIGNIFICANT * most_significant.adjusted
    ):
        other = most_significant.witness(choice.source)
        bits += (f"the p-value comes from another event that was tested: {other}",)
    return About(
        method=_method(choice),
        guarantee=Guarantee.EXACT.downgraded(choice.source.doubts),
        n=tuple((choice.spent + counted.counts[0, [1, 3]]).tolist()),
        seed=choice.source.seed,
        pair=choice.source.pair,
        notes=(*bits, *_notes(choice, claims, found.best.found.event), *choice.source.notes),
        files=choice.source.files,
        digest=choice.source.digest,
    )


def _method(choice: Selection) -> str:
    names = list(dict.fromkeys(found.score for found in choice.events))
    events = "an event" if len(choice.events) == 1 else f"{len(choice.events)} events"
    event = f"{events} (score: {', '.join(names)})"
    if choice.divergence is None:
        return f"exact joint test of {event}"
    said = f"variational bound with {choice.divergence.loss.name}"
    return said if choice.divergence.share == 1.0 else f"{said}, and {event}"


def _notes(choice: Selection, claims: int, event: Event) -> list[str]:
    notes = list(choice.claim.notes)
    if len(choice.pairs) > 1:
        notes.append(
            f"the training draws chose {choice.source.pair} among {len(choice.pairs)} pairs"
        )
    if claims > 1:
        notes.append(f"{claims} {SHARED}")
    if choice.divergence is not None:
        share = choice.divergence.share
        notes.append(
            "the event is an illustration; the divergence is bounded as a whole"
            if share == 1.0
            else "two tests share the error probability: the bound of the divergence has "
            f"{100 * share:.3g} % of it, the test of the event has the rest"
        )
    if event.live:
        notes.append("the event needs the fitted classifier: it cannot be replayed from a file")
    left = choice.source.remaining
    if choice.source.files and left is not None and max(left):
        notes.append(
            f"n left {left[0]:,} and {left[1]:,} rows of the two files unused: without n (-n) all rows "
            "are used"
        )
    notes += [f"could not be tried: {failure}" for failure in choice.learner.failures]
    return notes


def _counted(
    mechanism: Any,
    pairs: Any,
    claims: Sequence[Claim],
    gamma: float,
    *,
    n: int | None,
    train: float | None,
    seconds: float | None,
    loss: Any,
    largest: bool = False,
    **options: Any,
) -> tuple[list[Selection], list[Counted], Sizes]:
    """What training draws chose for each claim, its counts on fresh draws, and how many were planned."""
    if train is not None:
        checks.probability("train", train)
    if not isinstance(mechanism, Samples):
        check_mechanism(mechanism)
        if (n is None) == (seconds is None):
            raise InvalidInput("give n, the draws per side per pair, or seconds, the time to spend")
    clock = None if seconds is None else Clock(checks.real("seconds", seconds, above=0.0))
    found = list(sources(mechanism, pairs, **options))
    if not found:
        raise InvalidInput("there is no pair to look at: the iterator is empty")
    first, (share, most) = found[0], (TRAIN, ENOUGH) if train is None else (train, None)
    if clock is None:
        budget = split(first, n, share, least=(4, 4), most=most)
    elif not isinstance(first, Live):
        raise InvalidInput("seconds is for mechanisms: samples are already drawn")
    else:
        live = first

        def learn_pilot(batch: Batch) -> None:
            """To see how long it takes."""
            pilot = Samples(batch.p, batch.q, pair=live.pair, seed=live.seed)
            size = Budget(batch.sizes, batch.sizes)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learn([pilot], claims, size, gamma, loss, largest=largest)

        budget = clock.learning(live, len(found), share, most, learn_pilot)
    planned = budget.test
    if not largest:
        for one in claims:
            check_conclusive(one, planned, gamma)
    with CallProgress(budget.draws(len(found)), "learning") as bar:
        choices = learn(found, claims, budget, gamma, loss, largest=largest)
        if clock is None:  # rare events are for draws that are counted, not for seconds
            choices, budget = learn_rare_events(choices, budget, gamma, largest=largest)
        else:
            budget = testing_draws_in_time(clock, budget, choices)
            planned = budget.test
        draws = len(pair_counters(choices)) * max(budget.test)
        bar.say("bounding" if largest else "testing", draws)
        return choices, count(choices, budget), planned
