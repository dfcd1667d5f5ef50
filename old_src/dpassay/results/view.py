"""What is said about a result: one `ResultView`, which terminals, HTML pages and commands lay out.

Every result makes its own (`Verdict.view()`, `Verification.view()` …). No sentence calls a mechanism
private.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpassay.privacy.provenance import COUNTS, About, Guarantee, level
from dpassay.privacy.relations import Relation
from dpassay.results.explanations import Explanation
from dpassay.rounding import rounded_up
from dpassay.tables import Status

NOT_A_BOUND = (
    "Estimates are computed from a sample and may lie above or below the true values. Only an audit "
    "makes a statement with an error probability."
)

Rows = list[tuple[str, str]]
#: Key numbers: name, number, what it is.
Facts = list[tuple[str, str, str]]


@dataclass(frozen=True)
class PairTable:
    """The pairs of inputs that were looked at."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class ResultView:
    """What there is to say about one result.

    A terminal shows headline, summary and rows; a page shows title, sentence, facts and the rest.
    """

    status: Status
    headline: str  # a few words that name what it is about
    summary: Sequence[str]
    rows: Sequence[tuple[str, str]] = ()
    about: About
    title: str = ""  # a few words
    sentence: str = ""
    #: For readers who know no statistics: a heading and a sentence each.
    plain: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str, str]] = ()
    witness: str = ""
    pair: Any = None
    reason: str = ""  # why no more was shown
    pairs: PairTable | None = None
    guarantee: str = ""
    budget: Sequence[tuple[str, float]] = ()
    #: The causes that the draws support, or what was looked at.
    diagnosis: Sequence[Explanation] = ()
    meaning: Sequence[str] = ()
    #: The file that keeps its JSON, and the command that checks it on fresh draws.
    file: str
    replay: str = ""
    #: All ways to check it: in words, and as a command.
    checks: Sequence[tuple[str, str]] = ()

    @property
    def spent(self) -> Rows:
        """The budget as text; entries of the same name and share make one row."""
        return [
            (what, f"{share:.3g}" if n == 1 else f"{n} × {share:.3g}")
            for (what, share), n in Counter(self.budget).items()
        ]


def assumed(about: About) -> str:
    """What a result assumes beyond independent draws; empty if nothing."""
    if about.units == "canaries":
        return (
            "a fair coin of its own decided whether each canary was included, and the guesses use "
            "nothing about the coins but the trained model"
        )
    if about.method == COUNTS:
        return (
            "the event was fixed before the runs were seen (a threshold that was chosen on them makes "
            "the result invalid), and the runs are independent"
        )
    if len(about.files) > 1 or about.digest:
        two = "files" if about.files else "sides"
        return (
            f"every row is the output of a run of its own, and the inputs of the two {two} differ in one "
            "person's data only"
        )
    return ""


def guarantee_text(guarantee: Guarantee, about: About) -> str:
    """What a guarantee means, and what it assumes."""
    units = "canaries" if about.units == "canaries" else "draws"
    provided = f"that {assumed(about)}" if assumed(about) else "they are independent"
    return {
        Guarantee.EXACT: f"exact: it holds for every number of {units}, provided {provided}",
        Guarantee.ASYMPTOTIC: "asymptotic: it holds in the limit of many independent draws",
        Guarantee.HEURISTIC: "heuristic: nothing is guaranteed",
    }[guarantee]


def percent(share: float) -> str:
    """A probability as a percentage."""
    return f"{level(share, 100)}%"


def small(value: float) -> str:
    """A probability that may be tiny, from above: two digits, and a power of ten."""
    if value == 0 or value >= 1e-3:
        return rounded_up(value, places=2)
    digits, power = f"{float(rounded_up(value, places=2)):.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{float(digits):g} × 10{raised}"


def capital(text: str) -> str:
    """The text with a capital letter at its start, unless that is a symbol such as ε."""
    return f"{text[:1].upper()}{text[1:]}" if text[:1].isascii() else text


def with_confidence(confidence: float, guarantee: Guarantee) -> str:
    """A confidence in a sentence; a guarantee that is not exact is named."""
    kind = "" if guarantee is Guarantee.EXACT else f" ({guarantee})"
    return f"with {percent(confidence)} confidence{kind}"


def error_rate(confidence: float, guarantee: Guarantee, results: str) -> str:
    """How often results that are wrong come up."""
    rate = percent(1 - confidence)
    return {
        Guarantee.EXACT: f"in at most {rate} of {results}",
        Guarantee.ASYMPTOTIC: f"in about {rate} of {results} with this many draws",
        Guarantee.HEURISTIC: "at an unknown rate",
    }[guarantee]


def related(pair: Any, text: str) -> str:
    """The inputs, as text, with what makes them neighbours."""
    relation = getattr(pair, "relation", Relation.UNSPECIFIED)
    said = f"stated: {relation}" if getattr(pair, "doubt", "") else relation
    return text if relation is Relation.UNSPECIFIED else f"{text} ({said})"


def file_rows(about: About) -> Rows:
    """The files of the draws and what is assumed of them, as rows for a terminal."""
    rows = [("file", str(origin)) for origin in about.files]
    return rows + assumption_rows(about)


def assumption_rows(about: About) -> Rows:
    """What is assumed beyond independent draws, as rows for a terminal."""
    return [("assumes", said)] if (said := assumed(about)) else []


def note_rows(about: About) -> Rows:
    """The notes, as rows for a terminal."""
    return [("note", note) for note in about.notes]


def replay_command(about: About, file: str, confidence: float = 0.95) -> str:
    """The command that counts the event of a witness on fresh draws."""
    draws = "--samples FRESH-FIRST FRESH-SECOND" if about.files else "TARGET"
    more = [f"--confidence {level(confidence)}"] * (confidence != 0.95)
    more += [one.reading for one in about.files[:1] if one.reading]
    return " ".join(["dpassay replay", file, draws, *more])
