"""What a page says of a verification: what holds on the pairs given, and never more than that."""

from __future__ import annotations

from collections.abc import Sequence

from dpassay.privacy.about import Guarantee
from dpassay.report import words
from dpassay.report.words import percent
from dpassay.results.rounding import rounded_up
from dpassay.results.verdict import Verdict
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


def _audits(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """Several verdicts in a headline and a sentence."""
    broken, blind = (sum(v.tone == tone for v in verdicts) for tone in ("violation", "blind"))
    total, clear = len(verdicts), len(verdicts) - broken - blind
    said = []
    if broken:
        head = "1 violation" if broken == 1 else f"{broken} violations"
        verb = "is" if broken == 1 else "are"
        said.append(f"{broken} of {total} claims {verb} refuted, each at its own confidence.")
    elif blind:
        many = "1 audit" if blind == 1 else f"{blind} audits"
        head = f"{many} could not have seen a violation"
    else:
        return "No violation detected", f"None of the {total} claims was refuted by the draws."
    if clear:
        said.append(f"For {clear} of {total} no violation was detected.")
    if blind:
        said.append(f"{blind} of {total} audits could not have refuted anything.")
    return head, " ".join(said)


def overview(results: Sequence[Verdict | Verification]) -> tuple[str, str]:
    """Several results in a headline and a sentence."""
    verdicts = [one for one in results if isinstance(one, Verdict)]
    shown = [one for one in results if isinstance(one, Verification)]
    if not shown:
        return _audits(verdicts)
    held, of = sum(one.confirmed for one in shown), len(shown)
    head = f"{held} of {of} claims shown to hold on their pairs"
    said = f"{held} of {of} claims {'was' if held == 1 else 'were'} shown to hold on their pairs."
    if not verdicts:
        return head, said
    if len(verdicts) == 1:
        return words.headline(verdicts[0]), f"{words.sentence(verdicts[0])} {said}"
    first, more = _audits(verdicts)
    return first, f"{more} {said}"
