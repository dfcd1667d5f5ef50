"""What the counts of an event say: its test, verdicts, and the bound on δ beside ε, or on ε beside δ."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from dpassay import validation as checks
from dpassay._typing import IntArray
from dpassay.bounds import joint_test as joint
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import smallest_detectable
from dpassay.errors import InvalidInput
from dpassay.learning.event_selection import SelectedEvent
from dpassay.outputs.events import Event
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import COUNTS, About, Guarantee, Origin
from dpassay.results.blindness import EXCHANGED, why_blind
from dpassay.results.estimates import SECOND, SecondBound
from dpassay.results.verdict import Verdict
from dpassay.results.witness import Witness
from dpassay.sampling.samples import Samples, Source

#: Standard deviations from which on the event is likelier on the other input than was declared.
_CLEARLY = 4.0


@dataclass(frozen=True, eq=False)
class EventTest:
    """One event, its counts, and what they say at a level."""

    found: SelectedEvent
    row: IntArray
    counts: Counts  # as a test of p ≤ g(q)
    claim: Claim  # of which g is the region
    level: float
    spent: float  # on the second bound
    lower: float
    p_value: float

    @property
    def adjusted(self) -> float:
        """The p-value over its share of the error probability: at most 1 if it refutes."""
        return self.p_value / self.level if self.level else math.inf

    def budget(self, other: SecondBound | None) -> list[tuple[str, float]]:
        """What the error probability is spent on, in words."""
        at = "" if self.found.order is None else f", at order {self.found.order:.3g}"
        own = f"exact joint test of an event (score: {self.found.score}){at}", self.level
        return [own] if other is None else [own, (f"the bound on {other.symbol}", self.spent)]

    @cached_property
    def detectable(self) -> float:
        """The smallest value of the parameter that is detected with probability .9."""
        if not self.level:
            return math.inf
        return smallest_detectable(self.counts, self.claim, self.level)

    def witness(self, source: Source) -> Witness:
        """The event and its counts on either input; of samples also in the rows that did not test."""
        i, n, j, m = (int(c) for c in self.row)
        level, known = self.level + self.spent or None, None
        event = replace(self.found.event, words=_of_column(self.found.event.words, source.files))
        if isinstance(source, Samples):
            rest = source.without_last((n, m))
            p, q = (sum(map(event.count, side)) for side in rest)
            known = i + p, n + sum(map(len, rest[0])), j + q, m + sum(map(len, rest[1]))
        made = Witness.of(event, (i, n, j, m), source.pair)
        return replace(made, level=level, in_all_rows=known)


def _of_column(words: str, files: Sequence[Origin]) -> str:
    """The words of an event, with the name of the column where a table has a single one."""
    names = files[0].columns if files else ()
    if len(names) != 1 or names == ("1",) or not names[0].isprintable():
        return words
    return re.sub(r"(?<!['\w])(the )?output(?!['\w])", lambda _: names[0], words)


def second_bound(tests: Sequence[tuple[Counts, float]], claim: Claim) -> SecondBound | None:
    """The largest bound on another parameter that the same counts give, each with a share of its γ.

    For an (ε, δ) claim that is the parameter which is not its headline. For a curve, whose gap means
    little to people, it is ε at a δ that is fixed for all audits. A tenth of γ pays for it, whatever
    comes out: both bounds hold at once.
    """
    other = claim.companion()
    if other is None or not tests:
        return None
    tests = [(counts, SECOND * gamma) for counts, gamma in tests]
    bounds = [one.lower_bound for one in joint.evidence_of(tests, other, bound_only=True)]
    lower = max(bounds)
    counts, level = tests[bounds.index(lower)]
    at = "" if claim.point is not None or other.point is None else f"δ = {other.point[1]:g}"
    return SecondBound(
        symbol=other.symbol,
        claimed=other.value,
        lower=lower,
        smallest_detectable=smallest_detectable(counts, other, level),
        at=at,
    )


def statements(c: Counts, claim: Claim, likelier: str | None) -> list[tuple[str, Counts]]:
    """What a claim says about an event: words, and the counts of a test of p ≤ g(q).

    One or two tests for a symmetric claim, for which the swapped statement about an event is the original
    statement about its complement. Rényi and zCDP claims are not symmetric: both orders of the pair are
    tested, with two or four tests.
    """
    not_p, not_q = c.n - c.i, c.m - c.j
    found = [  # the event, its complement swapped; the complement, the event swapped
        ("the event is too likely on the first input", c),
        ("the event is too unlikely on the second input", Counts(not_q, c.m, not_p, c.n)),
        ("the event is too unlikely on the first input", Counts(not_p, c.n, not_q, c.m)),
        ("the event is too likely on the second input", Counts(c.j, c.m, c.i, c.n)),
    ]
    found = found[::2] if claim.symmetric else found
    half = len(found) // 2
    return {"first": found[:half], "second": found[half:], None: found}[likelier]


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
    claim = as_claim(claim)
    n, m = checks.whole("n_p", n_p), checks.whole("n_q", n_q)
    i, j = checks.whole("hits_p", hits_p, at_least=0), checks.whole("hits_q", hits_q, at_least=0)
    for name, hits, total in (("hits_p", i, n), ("hits_q", j, m)):
        if hits > total:
            raise InvalidInput(
                f"{name} must be at most the {total:,} draws of its side, got {hits:,}; give the hits "
                f"before the draws of each side: got {i:,} of {n:,} and {j:,} of {m:,}"
            )
    counts = Counts(i, n, j, m)
    gamma = 1.0 - checks.confidence(confidence)
    if likelier is not None:
        checks.one_of("likelier", likelier, ("first", "second"))
    tests = statements(counts, claim, likelier)
    share = gamma / len(tests)  # Bonferroni
    second = second_bound([(test, share) for _, test in tests], claim)
    level = share if second is None else share - SECOND * share
    found = joint.evidence_of([(test, level) for _, test in tests], claim)
    lower = max(one.lower_bound for one in found)
    p_value = min(1.0, min(one.p_value for one in found) * gamma / level)
    key = [(one.lower_bound, -one.p_value) for one in found]
    best = tests[key.index(max(key))][1]
    violated = p_value <= gamma
    detectable = smallest_detectable(best, claim, level)
    exchanged = _exchanged(counts, likelier)
    blind = EXCHANGED if exchanged else why_blind(claim, violated, detectable, counts)
    budget = [(words, level) for words, _ in tests]
    if second is not None:
        budget.append((f"the bound on {second.symbol}", gamma - len(tests) * level))
    witness = Witness.of(Event(words="the event that was counted", live=True), counts)
    return Verdict(
        claim=claim,
        violated=violated,
        blind=blind.words,
        blind_cause=blind.cause,
        p_value=p_value,
        lower_bound=lower,
        confidence=confidence,
        guarantee=Guarantee.EXACT,
        witness=replace(witness, level=share),
        smallest_detectable=detectable,
        second=None if second is None else second.beside(violated),
        budget=tuple(budget),
        about=About(
            method=COUNTS,
            guarantee=Guarantee.EXACT,
            n=(counts.n, counts.m),
            notes=(*exchanged, *(() if claim.set_by_events else (_EVENTS_ONLY,))),
        ),
    )


def _exchanged(counts: Counts, likelier: str | None) -> tuple[str, ...]:
    """A note where the event is clearly likelier on the other input than was declared."""
    i, n, j, m = counts
    p, q, mean = i / n, j / m, (i + j) / (n + m)
    noise = math.sqrt(mean * (1 - mean) * (1 / n + 1 / m))
    if likelier is None or (q - p if likelier == "first" else p - q) <= _CLEARLY * noise:
        return ()
    now = "second" if likelier == "first" else "first"
    return (
        f"the event is likelier on the {now} input here ({100 * p:.3g}% against {100 * q:.3g}%), but was "
        f"to be on the {likelier}: were the two exchanged? That direction alone is tested",
    )


_EVENTS_ONLY = (
    "in general a single event does not show all of a Rényi divergence: the bound is valid, but may not "
    "reach the truth however many draws are made"
)
