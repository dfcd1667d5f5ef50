"""Verdicts from the counts of one event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpassay import validation as checks
from dpassay.auditing.second_bounds import second_bound
from dpassay.bounds import joint_test as joint
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import smallest_detectable
from dpassay.errors import InvalidInput
from dpassay.outputs.events import Event
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.blindness import why_blind
from dpassay.results.verdict import SECOND, Verdict
from dpassay.results.witness import Witness


@dataclass(frozen=True)
class Statement:
    """One of the statements a claim makes about an event, as counts of a test of p ≤ g(q)."""

    words: str
    counts: Counts


def statements(c: Counts, claim: Claim, likelier: str | None) -> list[Statement]:
    """The tests that go with an event: one or two for a symmetric claim, else two or four.

    For a symmetric claim the swapped statement about an event is the original statement about its
    complement. Rényi and zCDP claims are not symmetric: both orders of the pair are tested.
    """
    not_p, not_q = c.n - c.i, c.m - c.j
    event = Statement("the event is too likely on the first input", c)
    complement = Statement(
        "the event is too unlikely on the first input", Counts(not_p, c.n, not_q, c.m)
    )
    swapped = Statement("the event is too likely on the second input", Counts(c.j, c.m, c.i, c.n))
    both = Statement(
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
    tests = statements(counts, claim, likelier)
    share = gamma / len(tests)
    second = second_bound([(test.counts, share) for test in tests], claim)
    level = share if second is None else share - SECOND * share
    found = joint.evidence_of([(test.counts, level) for test in tests], claim)
    lower = max(one.lower_bound for one in found)
    p_value = min(1.0, min(one.p_value for one in found) * gamma / level)
    key = [(one.lower_bound, -one.p_value) for one in found]
    index = key.index(max(key))
    best = tests[index]
    violated = p_value <= gamma
    detectable = smallest_detectable(best.counts, claim, level)
    blind = why_blind(claim, violated, detectable, counts.listed)
    budget = [(test.words, level) for test in tests]
    if second is not None:
        budget.append((f"the bound on {second.symbol}", gamma - len(tests) * level))
    event = Event(words="the event that was counted", live=True)
    return Verdict(
        claim=claim,
        violated=violated,
        blind=blind.words,
        blind_cause=blind.cause,
        p_value=p_value,
        lower_bound=lower,
        confidence=confidence,
        guarantee=Guarantee.EXACT,
        witness=Witness(
            event=event,
            hits_p=counts.i,
            n_p=counts.n,
            hits_q=counts.j,
            n_q=counts.m,
            level=share,
        ),
        smallest_detectable=detectable,
        second=None if second is None else second.given(violated),
        budget=tuple(budget),
        about=About(
            method="exact joint test of two binomial counts",
            guarantee=Guarantee.EXACT,
            n=(counts.n, counts.m),
            notes=() if claim.set_by_events else (_EVENTS_ONLY,),
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
