"""Whether a claim was refuted, how far, and whether it could have been."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.privacy.claims import Claim
from dpassay.privacy.curves import TradeoffCurve
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.records import Record
from dpassay.results import blindness
from dpassay.results.estimates import TradeoffPoint
from dpassay.results.profile import Profile
from dpassay.results.rounding import number, rounded_down
from dpassay.results.witness import BITS, Witness
from dpassay.tables import Shown

#: What is said where no score was learned.
UNLEARNED = (
    "no score separated the two inputs better than chance on training draws: either their outputs hardly "
    "differ, or the audit does not see how such outputs differ. If you know what to look at, pass "
    "features=[…]"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class SecondBound(Record):
    """A lower bound on another parameter, paid for like the first.

    For an (ε, δ) claim that is the parameter which is not its headline; for a curve ε at a small δ.
    """

    symbol: str
    claimed: float
    lower: float
    smallest_detectable: float
    #: What is held fixed, where it is not the claim's own parameter: "δ = 1e-05".
    at: str = ""

    def given(self, violated: bool) -> SecondBound:
        """The bound, and no less than what is claimed if the claim is refuted: that is what it means.

        That a curve is refuted does not say at which ε.
        """
        told = violated and not self.at
        return replace(self, lower=max(self.lower, self.claimed)) if told else self

    def __str__(self) -> str:
        if self.at:
            return f"every {self.symbol} below {rounded_down(self.lower)} is refuted at {self.at}"
        return f"{self.symbol} {self.sign} {number(self.lower)}, claimed {number(self.claimed)}"

    @property
    def sign(self) -> str:
        """How `lower` bounds the parameter: it is more than what is claimed, if that is refuted."""
        return ">" if self.lower == self.claimed > 0 else "≥"


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict(Shown):
    """Whether a claim was refuted, and how far.

    `tone` is "violation", "clear" (no violation detected) or "blind": the audit could not have
    refuted anything, and `blind` says why.
    """

    claim: Claim
    violated: bool
    blind: str = ""
    blind_cause: blindness.Cause = blindness.Cause.NONE
    #: Whether some score separated training draws of the two inputs better than chance.
    separated: bool = True
    p_value: float
    lower_bound: float
    confidence: float
    guarantee: Guarantee
    witness: Witness
    #: About the least actual parameter that would be caught with 90 % probability if it showed in full
    #: on an event as likely as the one tested; what shows elsewhere, or less, takes more. Where several
    #: events were tested, each at its own level, it is the smallest that one of them would catch.
    smallest_detectable: float | None = None
    #: That event in words, where it is not the one of the witness.
    detectable_on: str = ""
    #: For an (ε, δ) claim: the bound on δ at the claimed ε (or on ε, if δ is the claim's headline).
    second: SecondBound | None = None
    #: How the error probability 1 − confidence is spent.
    budget: tuple[tuple[str, float], ...] = ()
    #: What was learned before the test: the estimated curve, and the point that was tested.
    curve: TradeoffCurve | None = field(default=None, repr=False)
    point: TradeoffPoint | None = field(default=None, repr=False)
    #: Every notion of the pair that was tested, estimated from the training draws.
    profile: Profile | None = field(default=None, repr=False)
    #: The pairs that were looked at, with the bound the training draws predicted for each.
    pairs: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    #: Of a monitor: draws a side when it stopped, and the log of the evidence on the way, a row
    #: (draws, log) each time there was a look.
    draws: int | None = None
    evidence: FloatArray | None = field(default=None, repr=False)
    about: About

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("p_value", self.p_value, at_least=0.0, at_most=1.0)
        checks.probability("confidence", self.confidence)
        checks.real("lower_bound", self.lower_bound, finite=False)
        if self.draws is not None:
            checks.whole("draws", self.draws, at_least=0)
        if self.evidence is not None:
            self._set(evidence=self.evidence.reshape(-1, 2))

    @property
    def tone(self) -> str:
        """ "violation", "clear" or "blind"."""
        return "violation" if self.violated else "blind" if self.blind else "clear"

    @property
    def _colour(self) -> str:
        return {"violation": "#b3261e", "clear": "#1d5fa8", "blind": "#7a5200"}[self.tone]

    @property
    def replayed(self) -> bool:
        """Whether it is that of an event found earlier, on fresh draws."""
        return self.about.method == "replay of an event"

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        match self.tone:
            case "violation":
                return f"violation of {self.claim}"
            case "blind":
                return f"could not have seen a violation of {self.claim}"
            case _:
                return f"no violation of {self.claim} detected"

    @property
    def remedy(self) -> str:
        """What helps a blind audit where more draws cannot; empty where they may."""
        return blindness.remedy(self.blind_cause)

    def chart(self) -> Any:
        """The claimed curve, the measured one, and the confidence region of the point tested.

        Of a monitor: the log of the evidence against draws.
        """
        from dpassay import charts

        if self.evidence is not None:
            return charts.evidence(*self.evidence.T, limit=-math.log(1 - self.confidence))
        grid = np.linspace(0.0, 1.0, 801)
        lines = {"claimed": (grid, np.asarray(self.claim.tradeoff(grid)))}
        if self.curve is not None:
            lines["measured"] = (self.curve.x, self.curve.y)
        band = self.curve.band if self.curve is not None else None
        point = self.point
        return charts.tradeoff(
            lines,
            band=None if band is None else (band.x, band.lower, band.upper),
            box=None if point is None else point.box,
            outline=None if point is None else point.outline,
            at=None if point is None else point.alpha,
        )

    def __str__(self) -> str:
        c = self.claim
        bound = f"{c.symbol} ≥ {number(self.lower_bound)} with {level(self.confidence)} confidence"
        exact = f", {self.guarantee}" if self.violated else ""
        lines = [f"{self.headline}: {bound} (p ≤ {self.p_value:.2g}{exact})"]
        if self.draws is not None:
            lines.append(f"  stopped after {self.draws:,} draws a side")
        if self.blind:
            lines.append(f"  blind: {self.blind}")
        if self.second is not None:
            lines.append(f"  and at the same time: {self.second}")
        lines.append(f"  witness: {self.witness}")
        if self.unlearned:
            lines.append(f"  note: {UNLEARNED}")
        elif self.has_power:
            lines.append(f"  power: {self.caught}")
        if self.guarantee is Guarantee.HEURISTIC or self.replayed or self.about.units:
            return "\n".join(lines) + self.about.noted
        if self.violated and self.witness.event.of_representation:
            lines.append(f"  note: {BITS}")
        return "\n".join(lines)

    @property
    def unlearned(self) -> bool:
        """Whether nothing was refuted and nothing learned: the event tested says little of others."""
        return not (self.violated or self.blind or self.separated)

    @property
    def has_power(self) -> bool:
        """Whether `smallest_detectable` says what the audit would have caught."""
        known = self.smallest_detectable is not None and math.isfinite(self.smallest_detectable)
        return known and not self.blind and not self.unlearned

    @property
    def caught(self) -> str:
        """What `smallest_detectable` means, in words."""
        size = number(self.smallest_detectable or 0.0)
        if self.claim.set_by_events:
            which = self.detectable_on or "this"
            return f"{self.claim.symbol} = {size} on an event like {which} would be caught 9 times in 10"
        return f"{self.claim.symbol} ≈ {size} would be caught 9 times in 10"
