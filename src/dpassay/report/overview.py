"""Several results in a headline and a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from dpassay.report import words
from dpassay.results.verdict import Verdict
from dpassay.results.verification import Verification


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
