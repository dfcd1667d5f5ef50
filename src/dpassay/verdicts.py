"""Verdicts: composition of what the other rooms provide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpassay import checks
from dpassay.bounds import joint, power
from dpassay.bounds.ordering import Counts
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import Claim
from dpassay.results import About, Event, Guarantee, Verdict, Witness


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
    claim: Claim,
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
    (True, 0.748)
    """
    counts = _counts(hits_p, n_p, hits_q, n_q)
    if not isinstance(claim, Claim):
        raise InvalidInput(
            f"claim must be a claim such as dp.PureDP(1.0), got {checks.shown(claim)}; "
            'text is read by dp.claim("eps=1")'
        )
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
        p_value=p_value if violated else max(p_value, gamma),
        lower_bound=lower,
        confidence=confidence,
        guarantee=Guarantee.EXACT,
        witness=Witness(event=event, hits_p=counts.i, n_p=counts.n, hits_q=counts.j, n_q=counts.m),
        smallest_detectable=power.detectable(
            best.counts.j / best.counts.m, best.counts.n, best.counts.m, claim, share
        ),
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
