"""When an audit that refutes nothing is blind: it could not have refuted what there may be. And why.

The threshold: an audit is blind if its smallest detectable parameter is, on the scale of ε and μ, twice
what is claimed and at least 1 more. (Those are changes of a logit or of a normal quantile; what other
parameters are on that scale `Claim.as_epsilon` says.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpassay.privacy.claims import Claim
from dpassay.results.rounding import number

#: Reasons that no number of draws mends, as they begin.
_EQUAL = "the two inputs are equal"
_CONSTANT = "the output is"


def why_blind(
    claim: Claim,
    violated: bool,
    detectable: float,
    counts: tuple[int, int, int, int],
    failures: Sequence[str],
    same: bool = False,
    only: str = "",
) -> str:
    """Why an audit could not have refuted the claim, in words; empty if it could have.

    `same` says that the two inputs are equal, `only` is the one output that training draws showed.
    """
    if violated:
        return ""
    if same:
        return f"{_EQUAL}, so that there is nothing to tell apart"
    if only:
        hint = "; is a `return` missing?" if only == "None" else ""
        return f"{_CONSTANT} {only} every time, on both inputs{hint}"
    i, n, j, m = counts
    if i + j == 0 or (i == n and j == m):
        which = "none" if i == 0 else "all"
        return f"the event that was tested happened in {which} of the draws on both inputs"
    if not math.isfinite(detectable):
        return "with so few draws no excess, however large, is sure to be caught"
    failed = f"a part of the search failed: {failures[0]}" if failures else ""
    return far_only(claim, detectable) or failed


def remedy(reason: str) -> str:
    """What helps where more draws cannot; empty where they may."""
    if reason.startswith(_EQUAL):
        return "give two inputs that differ: no number of draws tells equal ones apart"
    if reason.startswith(_CONSTANT):
        return (
            "no number of draws helps: look at what the mechanism returns, or give inputs on which it "
            "varies"
        )
    return ""


def far_only(claim: Claim, detectable: float) -> str:
    """That only parameters far above the claim would have been caught; empty if that is not so."""
    if not far_above(claim, detectable):
        return ""
    return (
        f"only {claim.symbol} = {number(detectable)} or more would have been caught 9 times in 10"
    )


def far_above(claim: Claim, value: float) -> bool:
    """Whether a parameter is so far above the claimed one that to see no less is to see nothing.

    The largest that there can be is far, and so are ∞ and NaN.
    """
    claimed = claim.as_epsilon(claim.value)
    near = claim.as_epsilon(value) < claimed + max(1.0, claimed)
    return not (near and value < claim.largest)
