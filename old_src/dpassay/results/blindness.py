"""When an audit that refutes nothing is blind (too weak: a large violation could be missed); and why.

A violation is large if the true parameter is, on the scale of ε and μ, twice what is claimed and at least
1 more. (ε is a change of a logit, μ one of a normal quantile; `Claim.as_epsilon` brings other parameters
to that scale: ρ by μ = √(2ρ), δ times 10, a gap times 2.) An audit is blind if it does not detect a large
violation with probability 0.9 on the best event, or if the outputs or the inputs have no such event.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import NamedTuple

from dpassay.privacy.claims import Claim
from dpassay.rounding import number


class Cause(enum.StrEnum):
    """Why an audit is blind."""

    NONE = "none"  # it is not
    EQUAL_INPUTS = "equal inputs"
    CONSTANT_OUTPUT = "constant output"
    NO_SCORE = "no score"  # nothing that is known of the outputs tells them apart
    CHANGED_OUTPUTS = "changed outputs"  # those that tested are not like those that chose the event
    EMPTY_EVENT = "empty event"  # the event that was tested never or always happened
    FEW_DRAWS = "few draws"
    FAILED_SEARCH = "failed search"
    EXCHANGED = "exchanged inputs"  # the event is likelier on the other input than was declared


class Blind(NamedTuple):
    """Why an audit is blind, and in words; no words if it is not."""

    cause: Cause = Cause.NONE
    words: str = ""


def why_blind(
    claim: Claim,
    violated: bool,
    detectable: float,
    counts: tuple[int, int, int, int],
    failures: Sequence[str] = (),
    same: bool = False,
) -> Blind:
    """Why the test of one event, with these counts, could not have refuted the claim.

    `detectable` is the smallest parameter that it would have detected; `same` says that the inputs are
    equal.
    """
    i, n, j, m = counts
    outputs = Blind()
    if i + j == 0 or (i == n and j == m):
        which = "none" if i == 0 else "all"
        said = f"the event that was tested happened in {which} of the draws on both inputs"
        outputs = Blind(Cause.EMPTY_EVENT, said)
    return blind_search(claim, violated, detectable, failures, same, outputs, where="")


def blind_search(
    claim: Claim,
    violated: bool,
    detectable: float,
    failures: Sequence[str],
    same: bool,
    outputs: Blind,
    where: str = "even on the best event ",
) -> Blind:
    """Why an audit that searched for an event could not have refuted the claim.

    `detectable` is what the best possible event would have detected. It does not depend on the draws, so
    that of equal audits all are blind or none. `outputs` says why no event of these outputs is good
    enough, if that is so.
    """
    if violated:
        return Blind()
    if same:
        said = "the two inputs are equal, so that there is nothing to tell apart"
        return Blind(Cause.EQUAL_INPUTS, said)
    if outputs.words:
        return outputs
    if not math.isfinite(detectable):
        said = "with so few draws no excess, however large, would be detected with probability 0.9"
        return Blind(Cause.FEW_DRAWS, said)
    if far := far_only(claim, detectable, where):
        return Blind(Cause.FEW_DRAWS, far)
    if failures:
        return Blind(Cause.FAILED_SEARCH, f"a part of the search failed: {failures[0]}")
    return Blind()


_REMEDIES = {
    Cause.EQUAL_INPUTS: "give two inputs that differ: no number of draws tells equal ones apart",
    Cause.CONSTANT_OUTPUT: "no number of draws helps: look at what the mechanism returns, or give inputs "
    "on which it varies",
    Cause.CHANGED_OUTPUTS: "make every call independent of those before: look for a budget that is "
    "spent, a cache",
    Cause.EXCHANGED: "exchange the two inputs (files, counts) if their order is wrong, and test again",
}
#: Of a replay, or of counts with `likelier`, which test one direction alone.
EXCHANGED = Blind(Cause.EXCHANGED, "the two inputs seem to be exchanged")


#: Of a replay whose event no longer occurs.
AUDIT_AGAIN = "run the audit or the assertion again: it chooses an event of this mechanism"


def remedy(cause: Cause) -> str:
    """What helps where more draws cannot; empty where they may."""
    return _REMEDIES.get(cause, "")


#: How the note begins that scores of canaries seem to have the wrong sign.
REVERSED = "scores are lower for canaries that were included"


def canary_remedy(claim: Claim, blind: bool, backward: bool) -> str:
    """What helps an audit of canaries that refutes nothing; empty where only more canaries may."""
    if backward:
        return (
            "turn the sign of the scores: --sign lower for losses (--sign higher if lower was given; "
            "−scores in Python), at the higher confidence that the note says"
        )
    more = "another run with more canaries (dpassay plan --canaries says how many)"
    if not blind:
        return ""
    if claim.point is None or not claim.point[1]:
        return more
    return (
        "an accountant's whole curve as the claim needs fewer canaries (claim=accountant; --claim with "
        f"a JSON list of its points); or {more}"
    )


def far_only(claim: Claim, detectable: float, where: str = "") -> str:
    """That only parameters far above the claim would have been detected; empty if that is not so."""
    if not far_above(claim, detectable):
        return ""
    least = f"{claim.symbol} = {number(detectable)}"
    return f"{where}only {least} or more would have been detected with probability 0.9"


def far_above(claim: Claim, value: float) -> bool:
    """Whether a parameter is far above the claimed one, by the threshold of this module.

    The largest possible value is far above it, and so are ∞ and NaN.
    """
    claimed = claim.as_epsilon(claim.value)
    near = claim.as_epsilon(value) < claimed + max(1.0, claimed)
    return not (near and value < claim.largest)
