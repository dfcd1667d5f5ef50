"""Verdicts from counts, profiles, plans and replays: composition of what the other rooms provide."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpassay import checks
from dpassay.bounds import joint
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import draws_needed, normal_limit, smallest_detectable
from dpassay.errors import InvalidInput
from dpassay.notions.profile import profile_of
from dpassay.privacy.about import level
from dpassay.privacy.claims import Claim
from dpassay.privacy.text import as_claim
from dpassay.records import Record
from dpassay.results import About, Event, Guarantee, Profile, Verdict, Witness, settled
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.layout import contains
from dpassay.sampling.outputs import Outputs
from dpassay.sampling.samples import draws_per_side, one_source


@dataclass(frozen=True)
class Direction:
    """One of the statements a claim makes about an event, as counts of a test of p ≤ g(q)."""

    words: str
    counts: Counts


def directions(c: Counts, claim: Claim, likelier: str | None) -> list[Direction]:
    """The tests that go with an event: one or two for a symmetric claim, else two or four.

    For a symmetric claim the swapped statement about an event is the original statement about its
    complement. Rényi and zCDP claims are not symmetric: both orders of the pair are tested.
    """
    not_p, not_q = c.n - c.i, c.m - c.j
    event = Direction("the event is too likely on the first input", c)
    complement = Direction(
        "the event is too unlikely on the first input", Counts(not_p, c.n, not_q, c.m)
    )
    swapped = Direction("the event is too likely on the second input", Counts(c.j, c.m, c.i, c.n))
    both = Direction(
        "the event is too unlikely on the second input", Counts(not_q, c.m, not_p, c.n)
    )
    first = [event] if claim.symmetric else [event, both]
    second = [complement] if claim.symmetric else [complement, swapped]
    match likelier:
        case "first":
            return first
        case "second":
            return second
        case _:
            return first + second


def audit_counts(
    hits_p: int,
    n_p: int,
    hits_q: int,
    n_q: int,
    claim: Claim | str,
    *,
    confidence: float = 0.95,
    likelier: Literal["first", "second"] | None = None,
) -> Verdict:
    """Test a claim from the counts of one event that was fixed before the draws were made.

    The event happened `hits_p` times in `n_p` independent runs on the first input and `hits_q`
    times in `n_q` runs on the second. Both ways in which it could be too likely are tested and
    paid for, unless `likelier` declares beforehand on which input it should be more likely.

    >>> import dpassay as dp
    >>> verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    >>> verdict.violated, round(verdict.lower_bound, 3)
    (True, 0.749)
    """
    counts, claim = _counts(hits_p, n_p, hits_q, n_q), as_claim(claim)
    gamma = 1.0 - checks.probability("confidence", confidence)
    if likelier is not None:
        checks.one_of("likelier", likelier, ("first", "second"))
    tests = directions(counts, claim, likelier)
    share = gamma / len(tests)
    p_values = [joint.p_value(test.counts, claim, gamma=share) for test in tests]
    bounds = [joint.lower_bound(test.counts, joint.family(claim), share) for test in tests]
    lower = max(bounds)
    best = tests[bounds.index(lower)] if lower > 0 else tests[p_values.index(min(p_values))]
    p_value = min(1.0, len(tests) * min(p_values))
    violated = lower > claim.value
    event = Event(words="the event that was counted", live=True)
    return Verdict(
        claim=claim,
        violated=violated,
        p_value=settled(p_value, violated, gamma),
        lower_bound=lower,
        confidence=confidence,
        guarantee=Guarantee.EXACT,
        witness=Witness(event=event, hits_p=counts.i, n_p=counts.n, hits_q=counts.j, n_q=counts.m),
        smallest_detectable=smallest_detectable(best.counts, claim, share),
        budget=tuple((test.words, share) for test in tests),
        about=About(
            method="exact joint test of two binomial counts",
            guarantee=Guarantee.EXACT,
            n=(counts.n, counts.m),
            notes=() if claim.event_complete else (_EVENTS_ONLY,),
        ),
    )


_EVENTS_ONLY = (
    "a single event cannot show all of a Rényi divergence: the bound is valid, but does not reach "
    "the truth however many draws are made"
)


def _counts(hits_p: int, n_p: int, hits_q: int, n_q: int) -> Counts:
    n, m = checks.whole("n_p", n_p), checks.whole("n_q", n_q)
    i, j = checks.whole("hits_p", hits_p, at_least=0), checks.whole("hits_q", hits_q, at_least=0)
    for name, hits, total in (("hits_p", i, n), ("hits_q", j, m)):
        if hits > total:
            raise InvalidInput(
                f"{name} must be at most the {total:,} draws of its side, got {hits:,}"
            )
    return Counts(i, n, j, m)


def estimate(
    mechanism: Any,
    pair: Any = None,
    *,
    n: int | None = None,
    loss: Any = "auto",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Profile:
    """Every notion of one pair from one sample and one loss: ε, δ(ε), Rényi, trade-off, μ.

    Estimates, not bounds: nothing here is certified. See `audit` for that.

    >>> import dpassay as dp
    >>> profile = dp.estimate(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=50_000, rng=0)
    >>> abs(profile.mu - 1.0) < 0.03, abs(profile.delta(1.0) - 0.1269) < 0.01
    (True, True)
    """
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    return profile_of(source, source.take(draws_per_side("n", n, source, at_least=20)), loss)


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(Record):
    """How many draws an audit needs."""

    claim: Claim
    actual: float
    power: float
    confidence: float
    event: float
    held_out: int | None
    draws: int | None

    def __str__(self) -> str:
        c = self.claim
        if self.draws is None:
            return f"no number of draws up to 10⁹ tells {c} from {c.at(self.actual)}"
        return (
            f"{self.draws:,} draws a side refute {c} with probability {self.power:g} when the truth "
            f"is {c.at(self.actual)}, at confidence {level(self.confidence)}: {self.held_out:,} of them "
            f"test an event of probability {self.event:.3g} on the rarer side, the rest find it"
        )


def plan(
    claim: Claim | str,
    *,
    excess: float = 0.1,
    power: float = 0.9,
    confidence: float = 0.95,
    event: float | None = None,
    train: float = 0.25,
) -> Plan:
    """How many draws a side refute a claim with a given probability.

    The truth is taken to exceed the claim's parameter by `excess`, relatively (absolutely where the
    parameter is 0, and for the gap of a curve), on an event of probability `event` on the rarer side;
    by default on the one that shows most, which only some mechanisms have (randomized response does, the
    Laplace mechanism needs half as many again): a lower bound for an unknown one. Rényi and zCDP
    claims are planned by their events, which is more than their audit needs.

    >>> import dpassay as dp
    >>> dp.plan(dp.PureDP(0.5), excess=1.0).held_out
    102
    >>> dp.plan(dp.PureDP(0.5), excess=1.0, event=0.184).held_out  # Laplace: below 0, e⁻¹/2
    164
    """
    read = as_claim(claim)
    checks.real("excess", excess, above=0.0)
    checks.probability("power", power)
    checks.probability("train", train)
    gamma = 1 - checks.probability("confidence", confidence)
    actual = read.value * (1 + excess) if read.value > 0 else excess
    truth = read.at(actual)
    if event is not None:
        tried = [checks.probability("event", event)]
    else:
        q = 1 / (1 + np.exp(np.linspace(-0.5, 8, 60)))
        allowed, noise = normal_limit(q, 1, 1, read)
        # the fewest draws go with the largest distance per draw
        tried = [float(q[int(np.argmax((truth.region(q) - allowed) / noise))])]
    held = draws_needed(float(truth.region(tried[0])), tried[0], read, gamma, power)
    return Plan(
        claim=read,
        actual=actual,
        power=power,
        confidence=confidence,
        event=tried[0],
        held_out=held,
        draws=None if held is None else math.ceil(held / (1 - train)),
    )


def replay(
    witness: Witness | Verdict,
    mechanism: Any,
    *,
    n: int,
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
    if isinstance(witness, Verdict):
        claim = witness.claim if claim is None else claim
        witness = witness.witness
    if not isinstance(witness, Witness):
        raise InvalidInput(f"replay takes a witness or a verdict, got {checks.shown(witness)}")
    if claim is None:
        raise InvalidInput("a witness alone does not say what was claimed: give claim=…")
    event = witness.event
    if event.live or event.layout is None:
        raise InvalidInput(
            f'the event "{event}" needs the classifier it was found with and cannot be replayed from '
            "its description; audit again with the seed of the verdict"
        )
    if witness.pair is None:
        raise InvalidInput("the witness carries no pair of inputs to run on")
    source = one_source(mechanism, witness.pair, rng=rng, sampling=sampling)
    total = np.zeros(4, dtype=np.int64)
    for part in source.blocks(checks.whole("n", n), _Count(event)):
        total += part
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
    return replace(
        verdict,
        witness=Witness(event=event, pair=source.pair, hits_p=i, n_p=n_p, hits_q=j, n_q=n_q),
        about=replace(
            verdict.about, method="replay of an event", seed=source.seed, pair=source.pair
        ),
    )


@dataclass(frozen=True, eq=False)
class _Count:
    event: Event

    def __call__(self, p: Outputs, q: Outputs) -> Any:
        hits = [int(np.count_nonzero(contains(self.event, side))) for side in (p, q)]
        return np.array([hits[0], len(p), hits[1], len(q)])
