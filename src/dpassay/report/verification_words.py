"""What a page says of a verification: what holds on the pairs given, and never more than that."""

from __future__ import annotations

from dpassay.privacy.provenance import Guarantee
from dpassay.report.words import percent
from dpassay.results.rounding import rounded_up
from dpassay.results.verification import Verification

PAIRS = (
    "The pairs that were looked at, the worst first. The bound of each holds with the stated confidence, "
    "and so does the largest of them for all."
)


def headline(found: Verification) -> str:
    """The result in a few words."""
    said = "Holds" if found.confirmed else "Not shown to hold"
    return f"{said} on {found.where}"


def sentence(found: Verification) -> str:
    """The result in a sentence or two."""
    level = f"{percent(found.confidence)} confidence"
    if found.guarantee is not Guarantee.EXACT:
        level += f" ({found.guarantee})"
    if found.confirmed:
        said = f"{found.holds}: {found.bound}, with {level}."
    elif found.holds:
        said = f"{found.claim} was not shown in full. What the draws show, with {level}: {found.holds}."
    else:
        said = f"The draws show nothing of {found.claim} on {found.where}."
    return f"{said} Of other inputs nothing is said."


def facts(found: Verification) -> list[tuple[str, str, str]]:
    """The key numbers: name, number, what it is."""
    worst = found.worst
    over = "the worse direction" if len(found.pairs) == 1 else "the worst pair and direction"
    shown = "nothing" if found.upper >= 1 else f"{found.symbol} ≤ {rounded_up(found.upper)}"
    return [
        ("Claim", str(found.claim), f"on {found.where}"),
        ("Shown", shown, f"with {percent(found.confidence)} confidence, {found.guarantee}; {over}"),
        ("Outputs", f"{worst.cells:,}", "counted one by one"),
        ("Other outputs", rounded_up(worst.unseen), "of the draws; all of them count against it"),
    ]


def meaning(found: Verification) -> tuple[str, str]:
    """What a verification means, and what it does not."""
    rate = percent(1 - found.confidence)
    scope = (
        f"It speaks of {found.where} and of no other inputs: a claim about a mechanism is about all "
        "neighbouring inputs, and those that nobody tried may break it."
    )
    if not found.holds:
        return (
            "That a claim was not shown does not speak against it; dpassay audit tries to refute it.",
            scope,
        )
    error = {
        Guarantee.EXACT: f"in at most {rate} of verifications",
        Guarantee.ASYMPTOTIC: f"in about {rate} of verifications with this many draws",
        Guarantee.HEURISTIC: "at a rate nobody has bounded",
    }[found.guarantee]
    return (
        f"If δ were larger than the bound on one of the pairs, a bound like this would come up {error}.",
        scope,
    )
