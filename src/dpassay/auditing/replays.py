"""A second person's confirmation: the event of a witness on fresh draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dpassay import validation as checks
from dpassay.auditing.counts import audit_counts
from dpassay.auditing.stages import Counter
from dpassay.blackbox.mechanism import with_features
from dpassay.errors import InvalidInput
from dpassay.outputs.event_code import knows_failures
from dpassay.outputs.events import Event
from dpassay.outputs.keys import Layout
from dpassay.outputs.named_features import NamedFeatures
from dpassay.outputs.representations import Bits, LowestBit
from dpassay.outputs.score_models import Features
from dpassay.outputs.templates import NUMBER
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import REPLAY, REPLAY_OF_BOUND, About, Guarantee, Origin
from dpassay.results.blindness import Cause
from dpassay.results.estimates import LowerBound
from dpassay.results.verdict import Verdict
from dpassay.results.witness import Witness
from dpassay.rounding import rounded_down
from dpassay.sampling.budget import totals
from dpassay.sampling.collected import UNNAMED
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.repeated_draws import drawn_before
from dpassay.sampling.samples import Batch, Samples, Source, one_source, warned

#: The stage at which the streams of a replay begin, past all that an audit uses.
_REPLAY = 1 << 16
#: Draws a side that are looked at for signs of dependence, where the first result had some; or for kinds
#: of outputs that the event knows, where it always or never happened.
_LOOKED_AT = 200


def replay(
    witness: Witness | Verdict | LowerBound,
    mechanism: Any,
    *,
    n: int | None = None,
    claim: Claim | str | None = None,
    confidence: float = 0.95,
    features: Any = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Verdict:
    """Run the event of a witness again on fresh draws: a second person's confirmation.

    n    fresh draws a side; by default as many as tested the witness, or all of the samples given

    The event was fixed before these draws, and so was the input on which it should be likelier, so
    nothing has to be paid for the search. Exceptions are outputs where they were. If the event no longer
    occurs on either input, as after a repair, that is no evidence about other events: audit again. A
    verdict brings its claim along, and a bound the claim of just its value: refuted, that is reached
    again. A witness alone needs a claim. The `features`
    are those that the verdict was found with.

    >>> import dpassay as dp
    >>> verdict = dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), dp.PureDP(0.5), n=10_000, rng=0)
    >>> dp.replay(verdict, dp.zoo.Laplace(1.0), n=10_000, rng=1).violated
    True
    >>> bound = dp.bound(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps", n=10_000, rng=0)
    >>> dp.replay(bound, dp.zoo.Laplace(1.0), n=100_000, rng=1).lower_bound >= bound.value
    True
    """
    about: About | None = None
    notes: tuple[str, ...] = ()
    doubted = False
    if isinstance(witness, (Verdict, LowerBound)):
        result, about = witness, witness.about
        doubted = result.guarantee is not Guarantee.EXACT
        refuse_canaries(result)
        if result.witness is None:
            raise InvalidInput(
                f"a bound by {about.method} is not of one event, which could be run again; those of "
                "dp.bound are"
            )
        if claim is None:
            claim, notes = result.claim, _reached(result)
        witness = result.witness
    if not isinstance(witness, Witness):
        raise InvalidInput(
            f"replay takes a verdict, a bound or a witness, got {checks.shown(witness)}"
        )
    if claim is None:
        raise InvalidInput("a witness alone does not say what was claimed: give claim=…")
    event = witness.event
    if not event.replayable:
        raise InvalidInput(
            f'the event "{event}", which tests {claim}, needs the classifier it was found with and '
            "cannot be replayed from its description; audit again with the seed of the verdict"
        )
    mechanism = with_features(mechanism, features)
    if isinstance(mechanism, Samples):
        source: Source = mechanism
        sizes = totals(source, n)
        if about is not None:
            _check_fresh(about, mechanism)
        _check_kinds(event, mechanism)
    else:
        if witness.pair is None:
            raise InvalidInput("the witness carries no pair of inputs to run on")
        files = () if about is None else tuple(one.file for one in about.files)
        names = tuple(one for one in witness.pair if isinstance(one, str))
        if names in (UNNAMED, files or UNNAMED):
            raise InvalidInput(
                "the verdict is about outputs that were given without their inputs: replay it on fresh "
                "outputs, dp.draw(mechanism, pair, n=…) or dp.from_samples(…), in place of the mechanism"
            )
        if knows_failures(event):
            sampling = replace(sampling or Sampling(), on_error="outcome")
        # streams of its own: with the seed of the audit the draws that chose the event would come back
        source = one_source(mechanism, witness.pair, rng=rng, sampling=sampling, stage=_REPLAY)
        sizes = (witness.n_p, witness.n_q) if n is None else (checks.whole("n", n),) * 2
        if doubted:  # counts alone do not show whether draws depend on each other
            source.doubts = warned(source.deal((_LOOKED_AT, _LOOKED_AT)))
    parts = source.blocks(sizes, Counter(((event,),), (None,)))
    i, n_p, j, n_q = np.sum([part.counts[0] for (part,) in parts], axis=0).tolist()
    if source is not mechanism and i + j in (0, n_p + n_q):
        _check_kinds(event, source.deal((min(_LOOKED_AT, *sizes),) * 2))
    likelier: Literal["first", "second"] = "first" if witness.p >= witness.q else "second"
    verdict = audit_counts(i, n_p, j, n_q, claim, confidence=confidence, likelier=likelier)
    pair = source.pair if witness.pair is None else source.pair.related(witness.pair.relation)
    guarantee = verdict.guarantee.downgraded(source.doubts)
    if i + j == 0:
        before, once = f"{witness.hits_p:,} and {witness.hits_q:,}", f"{n_p:,} and {n_q:,}"
        gone = (
            f"the event of the verdict, which happened {before} times then, happened in none of the "
            f"{once} draws here. That is no evidence about other events"
        )
        verdict = replace(verdict, blind=gone, blind_cause=Cause.EMPTY_EVENT)
    return replace(
        verdict,
        guarantee=guarantee,
        witness=replace(verdict.witness, event=event, pair=pair),
        about=replace(
            verdict.about,
            method=REPLAY if not notes else REPLAY_OF_BOUND,
            guarantee=guarantee,
            seed=source.seed,
            pair=pair,
            notes=(*notes, *verdict.about.notes, *source.notes),
            files=source.files,
        ),
    )


def refuse_canaries(result: Any) -> None:
    """Refuse a result about guesses, which no draws repeat."""
    if getattr(result, "about", None) is not None and result.about.units == "canaries":
        raise InvalidInput(
            "guesses about the canaries of one run have no event to count again: train once more with "
            "fresh coins (dp.Canaries) and give the new scores to dp.one_run (dpassay one-run)"
        )


def _reached(result: Verdict | LowerBound) -> tuple[str, ...]:
    """What a replay of a bound says, and what it does not."""
    if isinstance(result, Verdict):
        return ()
    bound = f"{result.notion} ≥ {rounded_down(result.value)}"
    if result.claim is not None and not result.claim.set_by_events:
        return (
            f"{bound} comes from the whole outputs, and an event shows only a part of it: a replay that "
            "stays below does not contradict the bound",
        )
    return (
        f"the claim tested is the bound itself, {bound}: as many draws as before exceed it in about half "
        "of all replays, more draws more often",
    )


def _check_fresh(about: About, samples: Samples) -> None:
    """Refuse draws on which the event was found, and those of other columns."""
    seen = {about.digest, *(origin.sha256 for origin in about.files)} - {""}
    if seen & {samples.digest, *(origin.sha256 for origin in samples.files)}:
        raise InvalidInput(
            "these are the draws on which the event was found: a replay needs fresh ones"
        )
    if any(drawn_before(one, samples.p, samples.q) for one in seen):
        raise InvalidInput(
            "many of these are draws on which the event was found, though not all: a replay needs "
            "fresh ones"
        )
    if not about.files or not samples.files:
        return
    old, new = about.files[0], samples.files[0]
    names = named(old), named(new)
    alike = not any(names) or len(old.columns) == 1
    if all(names):
        alike = set(old.columns) == set(new.columns)
    if len(old.columns) == len(new.columns) and alike:
        return
    was, has = (", ".join(map(repr, one.columns)) for one in (old, new))
    raise InvalidInput(
        f"the event was found in {old.file}, of whose columns it used {was}; {new.file} has {has}. Give "
        "fresh draws with the same columns, under the same names, and choose them with columns= "
        "(--columns)"
    )


def named(origin: Origin) -> bool:
    """Whether the columns of a file have names, and not only places."""
    return origin.columns != tuple(str(k + 1) for k in range(len(origin.columns)))


def _check_kinds(event: Event, source: Samples | Batch) -> None:
    """Outputs of which the event knows no kind at all are not those of its mechanism."""
    match event.layout if event.score_function is None else event.score_function.features:
        case NamedFeatures() as features if isinstance(source, Samples):
            alien = not any(features.values(side).any() for side in (source.p, source.q))
        case Features() | Layout() as known:
            kinds = {part.template for part in known.parts}
            found = {*source.p.structures, *source.q.structures}
            alien = not kinds & found
            if isinstance(
                source, Batch
            ):  # a mechanism that was mended may release other texts or keys
                alien = alien and (kinds == {NUMBER}) != (found == {NUMBER})
        case LowestBit(column=last) | Bits(columns=(*_, last)):
            alien = last >= max(side.numbers.shape[1] for side in (source.p, source.q))
        case _:
            return
    if alien:
        remedy = (
            "give fresh draws in the form of those it was found in: numbers for numbers, rows of as many "
            "columns for rows"
            if isinstance(source, Samples)
            else "check that this is the mechanism it was found in (TARGET on the command line)"
        )
        raise InvalidInput(
            f'the event "{event}" is about outputs of another kind than these; {remedy}'
        )
