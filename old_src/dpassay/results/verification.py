"""Whether a claim holds on the given pairs of inputs, and on no others: an upper bound on δ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.privacy.relations import Pair
from dpassay.records import Record
from dpassay.results.explanations import Explanation, explained
from dpassay.results.view import (
    PairTable,
    ResultView,
    capital,
    error_rate,
    file_rows,
    guarantee_text,
    note_rows,
    percent,
    with_confidence,
)
from dpassay.rounding import number, rounded_up
from dpassay.tables import Shown, Status, Tabular


@dataclass(frozen=True, eq=False, kw_only=True)
class PairUpper(Record):
    """The bound of one pair, which holds by itself with the stated confidence."""

    pair: Pair
    upper: float
    cells: int  # outputs that were counted one by one
    unseen: float  # the share of draws of anything else, the larger of the two sides


@dataclass(frozen=True, eq=False, kw_only=True)
class Verification(Shown, Tabular):
    """Whether a claim was verified on the given pairs, and up to which δ.

    `upper` is certified for all pairs at once: δ at the ε that is claimed, in the worse direction of the
    worst pair. For claims about a whole curve it is by how much δ(ε) may exceed the claimed one at any
    ε. `confirmed` says whether that is no more than what is claimed, which is 0 for pure DP: no number of
    draws shows that. `reason` says why there is no bound, or none below 1.
    """

    claim: Claim
    confirmed: bool
    upper: float
    #: The ε that was looked at; None for a curve, and where nothing could be shown.
    epsilon: float | None
    confidence: float
    guarantee: Guarantee
    reason: str = ""
    pairs: tuple[PairUpper, ...] = field(repr=False)
    #: How the error probability 1 − confidence is spent.
    budget: tuple[tuple[str, float], ...] = ()
    #: Of a claim that was not shown: the causes that break it on the worst pair, if some do.
    diagnosis: tuple[Explanation, ...] = field(default=(), repr=False)
    #: Whether a lower confidence bound on δ exceeds the claimed δ: more draws would not verify the claim.
    looks_false: bool = False
    about: About

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("upper", self.upper, at_least=0.0, at_most=1.0)
        checks.probability("confidence", self.confidence)
        checks.require(self.pairs, "pairs must hold a pair")

    def columns(self) -> dict[str, Any]:
        """pair, upper, cells and unseen: a row for every pair."""
        names = ("upper", "cells", "unseen")
        return {"pair": [str(one.pair) for one in self.pairs]} | {
            name: [getattr(one, name) for one in self.pairs] for name in names
        }

    def chart(self) -> Any:
        raise InvalidInput(
            "a Verification has no curve to draw; print it, or write its report(path)"
        )

    @property
    def tone(self) -> Status:
        """CONFIRMED or UNSHOWN."""
        return Status.CONFIRMED if self.confirmed else Status.UNSHOWN

    @property
    def worst(self) -> PairUpper:
        """The pair with the largest bound."""
        return max(self.pairs, key=lambda one: one.upper)

    @property
    def where(self) -> str:
        """The pairs it is about, in words."""
        return "this pair" if len(self.pairs) == 1 else f"these {len(self.pairs)} pairs"

    @property
    def statement(self) -> str:
        """What was shown, in a few words; empty if nothing was."""
        if self.upper >= 1.0:
            return ""
        if self.confirmed:
            said = str(self.claim)
        elif self.epsilon is not None:
            said = f"({rounded_up(self.epsilon)}, {rounded_up(self.upper)})-DP"
        else:
            said = f"{self.claim}, with {rounded_up(self.upper)} added to every δ,"
        return f"{said} holds on {self.where}"

    @property
    def symbol(self) -> str:
        """What `upper` bounds."""
        return "δ(ε) − claimed δ(ε)" if self.epsilon is None else f"δ({number(self.epsilon)})"

    @property
    def bound(self) -> str:
        """The bound in symbols."""
        everywhere = " at every ε ≥ 0" if self.epsilon is None else ""
        return f"{self.symbol} ≤ {rounded_up(self.upper)}{everywhere}"

    @property
    def why(self) -> str:
        """Why the claim is not verified; empty if it is."""
        if self.reason or self.confirmed or self.looks_false:
            return self.reason
        return "the bound is above the claim; more draws bring it nearer to the true value"

    @property
    def headline(self) -> str:
        """The result in a few words."""
        if self.confirmed:
            return f"{self.guarantee.doubt}{self.statement}"
        return f"{self.claim.short} was not verified on {self.where}"

    def __str__(self) -> str:
        lines = [self.headline]
        if self.statement:
            shown = "" if self.confirmed else f"{self.guarantee.doubt}{self.statement}: "
            lines.append(
                f"  {shown}{self.bound} with {level(self.confidence)} confidence ({self.guarantee}); it "
                "says nothing about other inputs"
            )
        if self.why:
            lines.append(f"  why: {self.why}")
        lines += [f"  {name}: {text}" for name, text in explained(self.diagnosis)]
        return "\n".join(lines) + self.about.noted

    def view(self, file: str = "verification.json") -> ResultView:
        """All there is to say; `file` is the name of its JSON."""
        worst, many, where = self.worst, len(self.pairs) > 1, self.where
        sure = with_confidence(self.confidence, self.guarantee)
        doubt = self.guarantee.doubt
        summary = (
            [] if self.confirmed or not self.statement else [capital(f"{doubt}{self.statement}")]
        )
        meaning = (
            "A claim that was not verified may still be true; dpassay audit tries to refute it."
        )
        sentence = f"The draws verify nothing about {self.claim} on {where}."
        if self.statement:
            confidence = f"confidence {level(self.confidence)} ({self.guarantee})"
            summary.append(f"{self.bound} with {confidence}")
            rate = error_rate(self.confidence, self.guarantee, "verifications")
            meaning = (
                "If δ were larger than the bound on one of the pairs, a bound like this would come up "
                f"{rate}."
            )
            sentence = f"{capital(doubt)}{self.statement}: {self.bound}, {sure}."
            if not self.confirmed:
                weaker = f"The draws verify a weaker statement, {sure}: {self.statement}."
                sentence = f"{self.claim} was not verified. {weaker}"
        rows = [("why", self.why)] if self.why else []
        rows.append(("inputs", f"{worst.pair}" + f", the worst of {len(self.pairs)} pairs" * many))
        if worst.cells:
            others = f"all others together are {rounded_up(worst.unseen, 100)}% of the draws"
            rows.append(("outputs", f"{worst.cells:,} counted one by one; {others}"))
        rows += [*explained(self.diagnosis), *file_rows(self.about), *note_rows(self.about)]
        rows.append(("scope", f"{where}, and no other inputs"))
        over = "the worst pair and direction" if many else "the worse direction"
        shown = "nothing" if self.upper >= 1 else f"{self.symbol} ≤ {rounded_up(self.upper)}"
        known = f"with {percent(self.confidence)} confidence, {self.guarantee}; {over}"
        return ResultView(
            status=self.tone,
            headline=self.headline,
            summary=summary,
            rows=rows,
            about=self.about,
            title=f"{'Verified' if self.confirmed else 'Not verified'} on {where}",
            sentence=f"{sentence} It says nothing about other inputs.",
            facts=[
                ("Claim", self.claim.short, f"on {where}"),
                ("Verified", shown, known),
                ("Outputs", f"{worst.cells:,}", "counted one by one"),
                (
                    "Other outputs",
                    rounded_up(worst.unseen),
                    "of the draws; they count against the claim",
                ),
            ],
            pair=None if many else worst.pair,
            reason=self.reason,
            pairs=PairTable(
                "The pairs that were tested, the largest bound first. Each bound holds with the stated "
                "confidence, and so does the largest of them for all pairs at once.",
                ("pair", self.symbol, "outputs counted one by one", "share of other outputs"),
                [
                    (str(one.pair), rounded_up(one.upper), f"{one.cells:,}", rounded_up(one.unseen))
                    for one in sorted(self.pairs, key=lambda one: -one.upper)
                ],
            ),
            guarantee=guarantee_text(self.guarantee, self.about),
            budget=self.budget,
            meaning=(
                meaning,
                f"It is about {where} and no other inputs. A claim about a mechanism is about all "
                "neighbouring inputs; others may violate it.",
            ),
            diagnosis=self.diagnosis,
            file=file,
        )
