"""A verdict for readers who know no statistics: what is claimed, what was counted, how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpassay.privacy.claims import Claim
from dpassay.results.view import Rows, capital, error_rate, percent
from dpassay.results.witness import Witness
from dpassay.rounding import number
from dpassay.tables import Status

if TYPE_CHECKING:
    from dpassay.results.verdict import Verdict


def plain_words(verdict: Verdict, limits: Sequence[str]) -> Rows:
    """Headings and sentences; `limits` says what the verdict does not show."""
    claim = verdict.claim
    rows = [("What is claimed", _claimed(claim))]
    if not verdict.about.units:  # canaries are guessed, not counted
        rows.append(("What was counted", _counted(verdict.witness)))
        if compared := _compared(claim, verdict.tone, verdict.witness):
            rows.append(("What the claim allows", compared))
    if verdict.tone is not Status.VIOLATION:
        return [*rows, ("What this does not show", " ".join(limits))]
    rate = error_rate(verdict.confidence, verdict.guarantee, "audits")
    rows.append(
        ("How sure this is", f"A mechanism that keeps its claim is called a violation {rate}.")
    )
    if verdict.belief is not None:
        rows.append(("What it means for a person", f"{capital(str(verdict.belief))}."))
    return rows


def _claimed(claim: Claim) -> str:
    if claim.point is None:
        how = "how well anybody can tell from one output which of the two inputs was used"
        return f"{claim.short} limits {how}."
    epsilon, delta = claim.point
    more = f", plus a probability of {number(delta)}" if delta else ""
    return (
        f"{claim.short}: one person's data may make no set of outputs more than {_factor(epsilon)} times "
        f"as likely{more}."
    )


def _counted(w: Witness) -> str:
    return (
        f"Outputs with this property: {w.event}. They came in {w.hits_p:,} of {w.n_p:,} runs "
        f"({_share(w.p)}) on the first input, and in {w.hits_q:,} of {w.n_q:,} ({_share(w.q)}) on the "
        "second."
    )


def _compared(claim: Claim, status: Status, w: Witness) -> str:
    """What the claim allows where the event is likelier, beside what was counted there."""
    rare, often = sorted((w.p, w.q))
    if claim.directional and w.p < w.q:
        return ""
    allowed = float(1 - claim.tradeoff(rare))
    said = f"With {_share(rare)} on one input, the claim allows {_share(allowed)} on the other. "
    match status:
        case Status.VIOLATION if often > allowed:
            return said + f"{_share(often)} is more, and chance does not explain the difference."
        case Status.VIOLATION:
            return ""
    if often <= allowed:
        return said + f"{_share(often)} is within that."
    return said + f"{_share(often)} is more, but chance may explain the difference."


def _factor(epsilon: float) -> str:
    """e^ε with three digits."""
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "∞"


def _share(rate: float) -> str:
    """A share of runs in percent, with three digits."""
    return percent(float(f"{rate:.3g}"))
