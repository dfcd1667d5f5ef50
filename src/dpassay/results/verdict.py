"""`Verdict`: whether a claim was refuted, how far, and whether it could have been.

What is said of it is in `verdict_text`.
"""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.privacy.claims import Claim
from dpassay.privacy.curves import TradeoffCurve
from dpassay.privacy.provenance import REPLAY, REPLAY_OF_BOUND, About, Guarantee
from dpassay.results import blindness, verdict_text
from dpassay.results.estimates import (
    CertifiedEpsilon,
    Profile,
    SecondBound,
    TradeoffPoint,
    canary_chart,
)
from dpassay.results.explanations import Belief, Explanation
from dpassay.results.view import ResultView
from dpassay.results.witness import Witness
from dpassay.rounding import number, rounded_down, rounded_up
from dpassay.tables import Shown, Status, as_html, as_text, write_report

_COLUMNS = ("claim", "result", "certified", "p-value", "witness")

#: Characters of an event that is named as an example.
_LONG = 80
#: What is taken to show a divergence, of which an event shows a part.
GAUSSIAN = "Gaussian noise"


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict(Shown):
    """Whether a claim was refuted, and how far.

    `tone` is "violation", "clear" (no violation detected) or "blind": the audit is too
    weak, even a large violation could have been missed, and `blind` says why.
    """

    _answer: ClassVar[str] = "violated"

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
    #: Approximately the smallest actual parameter that would be detected with 90 % probability if an
    #: event as likely as the one tested attained it. Where several events were tested, each at its own
    #: level, the smallest that one of them would detect.
    smallest_detectable: float | None = None
    #: That event in words, where it is not the one of the witness; of a divergence "Gaussian noise".
    detectable_on: str = ""
    #: For an (ε, δ) claim: the bound on δ at the claimed ε (or on ε, if δ is the claim's headline).
    second: SecondBound | None = None
    #: Of canaries: ε at a δ, the claimed one, and the most that could have been shown.
    certified: CertifiedEpsilon | None = None
    #: How the error probability 1 − confidence is spent.
    budget: tuple[tuple[str, float], ...] = ()
    #: What was learned before the test: the estimated curve, and the point that was tested.
    curve: TradeoffCurve | None = field(default=None, repr=False)
    point: TradeoffPoint | None = field(default=None, repr=False)
    #: Every notion of the pair that was tested, estimated from the draws.
    profile: Profile | None = field(default=None, repr=False)
    #: The pairs that were looked at, with the bound the training draws predicted for each.
    pairs: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    #: The causes that the draws support, the strongest first, or what was looked at; and what the
    #: witness means for a person.
    diagnosis: tuple[Explanation, ...] = field(default=(), repr=False)
    belief: Belief | None = field(default=None, repr=False)
    #: Of a monitor: draws a side when it stopped, and the log of the evidence on the way, a row
    #: (draws, log) for each time it was computed.
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
    def tone(self) -> Status:
        """VIOLATION, CLEAR or BLIND."""
        if self.violated:
            return Status.VIOLATION
        return Status.BLIND if self.blind else Status.CLEAR

    @property
    def bound(self) -> str:
        """The certified lower bound as text: strict, where it is the refuted value itself."""
        return f"{self.claim.symbol} {'>' if self.strict else '≥'} {rounded_down(self.lower_bound)}"

    @property
    def strict(self) -> bool:
        """Whether the bound, as printed, is not above the claim that it refutes."""
        known = self.violated and math.isfinite(self.lower_bound)
        return known and float(rounded_down(self.lower_bound)) <= self.claim.value

    @property
    def chance(self) -> str:
        """The p-value as text."""
        return f"p ≤ {rounded_up(self.p_value, places=2)}"

    @property
    def of_canaries(self) -> bool:
        """Whether it is about guesses of canaries, and not about draws."""
        return self.about.units == "canaries"

    @property
    def witness_text(self) -> str:
        """The witness with its counts, in words; of canaries the guesses alone."""
        return str(self.witness.event if self.of_canaries else self.witness)

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        if self.about.method == REPLAY_OF_BOUND and not self.blind:
            bound = f"{self.claim.meaning} ≥ {rounded_down(self.claim.value)}"
            if self.violated:
                return f"{self.guarantee.doubt}{bound} is confirmed"
            return f"{bound} is not confirmed"
        match self.tone:
            case Status.VIOLATION:
                return f"{self.guarantee.doubt}violation of {self.claim.short}"
            case Status.BLIND if self.event_gone:
                return "no evidence: the event no longer occurs on either input"
            case Status.BLIND:
                return f"too weak: a large violation of {self.claim.short} could have been missed"
        return f"no violation of {self.claim.short} detected"

    @property
    def event_gone(self) -> bool:
        """Whether a replay drew no output of its event, on either input."""
        replayed = self.about.method in (REPLAY, REPLAY_OF_BOUND)
        return replayed and self.witness.hits_p + self.witness.hits_q == 0

    @property
    def remedy(self) -> str:
        """What helps where more draws cannot; empty where they may."""
        if self.of_canaries and not self.violated:
            backward = any(note.startswith(blindness.REVERSED) for note in self.about.notes)
            return blindness.canary_remedy(self.claim, bool(self.blind), backward)
        return blindness.AUDIT_AGAIN if self.event_gone else blindness.remedy(self.blind_cause)

    @property
    def unlearned(self) -> bool:
        """Whether nothing was certified and nothing learned: the event tested says little of others."""
        return not (self.violated or self.blind or self.separated or self.lower_bound > 0)

    @property
    def varied(self) -> bool:
        """Whether the event that `smallest_detectable` is about did not always, and not never, happen."""
        w = self.witness
        hits, draws = w.hits_p + w.hits_q, w.n_p + w.n_q
        return self.of_canaries or bool(self.detectable_on) or 0 < hits < draws

    @property
    def power_statement(self) -> str:
        """What would be detected with probability 0.9, in words; empty where that is not known."""
        least = self.smallest_detectable
        if least is None or self.blind or self.unlearned or not self.varied:
            return ""
        detected = "would be detected with probability 0.9"
        if not math.isfinite(least):
            few = f"no excess, however large, {detected} on {self.alike}"
            return "" if self.violated else few
        value = f"= {number(least)}"
        if self.of_canaries:
            detected += (
                f" if the scores told as much as this {self.claim.symbol} allows. Scores of "
                "trained models tell less; dpassay plan --canaries simulates audits with the AUC of yours"
            )
        else:
            value = f"= {number(least)}, {self.shown_by},"
            if self.detectable_on == GAUSSIAN:
                value = f"≈ {number(least)} {self.shown_by}"
        also = self.on_other_events
        return f"{self.claim.symbol} {value} {detected}{f'; {also}' if also else ''}"

    @property
    def on_other_events(self) -> str:
        """What would be detected on rarer events: of an (ε, δ) claim for Gaussian noise, of δ at best.

        Computed when it is shown, which takes up to half a second; so the upper layer is imported here.
        """
        said: str = importlib.import_module("dpassay.auditing.detecting").on_other_events(self)
        return said

    @property
    def alike(self) -> str:
        """Events like the one that `smallest_detectable` is about, in words."""
        if (
            len(self.detectable_on) > _LONG and "·" in self.detectable_on
        ):  # a sum: a part says nothing
            return "an event of this score"
        event = (
            f'"{shorten(self.detectable_on, _LONG, placeholder=" …")}"'
            if self.detectable_on
            else "this"
        )
        return f"an event like {event}"

    @property
    def shown_by(self) -> str:
        """On or with what `smallest_detectable` would be detected."""
        gaussian = self.detectable_on == GAUSSIAN
        return f"with {GAUSSIAN}" if gaussian else f"reached by {self.alike}"

    def chart(self) -> Any:
        """The claimed curve, the measured one, and the witness as counted, with its confidence region.

        Of a monitor: the log of the evidence against draws. Of canaries: their scores, and the certified
        ε at every δ. Needs the extra "report".
        """
        from dpassay import charts

        if self.certified is not None and self.certified.scores is not None:
            return canary_chart(self)
        if self.evidence is not None:
            return charts.evidence(*self.evidence.T, limit=-math.log(1 - self.confidence))
        grid = np.linspace(0.0, 1.0, 801)
        lines = {"claimed": (grid, np.asarray(self.claim.tradeoff(grid)))}
        if self.curve is not None:
            lines["estimate"] = (self.curve.x, self.curve.y)
        band = self.curve.band if self.curve is not None else None
        tested = self.point
        i, n, j, m = self.counted
        return charts.tradeoff(
            lines,
            band=None if band is None else (band.x, band.lower, band.upper),
            box=None if tested is None else tested.box,
            outline=None if tested is None else tested.outline,
            point=(j / m, 1 - i / n) if tested is None else (tested.alpha, tested.beta),
        )

    @property
    def counted(self) -> tuple[int, int, int, int]:
        """The counts of the witness as those of a test: hits and runs under one input, then the other.

        An event and its complement are the same test. Of the possible readings this is the one that is
        most against the claim; a claim that is not symmetric is about both orders of the pair.
        """
        counts = self.witness.counts
        orders = [counts] if self.claim.symmetric else [counts, (*counts[2:], *counts[:2])]
        readings = [c for i, n, j, m in orders for c in ((i, n, j, m), (n - i, n, m - j, m))]
        return max(
            readings, key=lambda c: float(self.claim.tradeoff(c[2] / c[3])) - 1 + c[0] / c[1]
        )

    def __str__(self) -> str:
        return verdict_text.text(self)

    def view(self, file: str = "verdict.json") -> ResultView:
        """All there is to say; `file` is the name of its JSON in the commands that read it."""
        return verdict_text.view(self, file)


class Verdicts(list[Verdict]):
    """The verdicts of several claims: a list that prints as a table."""

    def rows(self) -> list[tuple[str, ...]]:
        """Claim, result, certified bound and p-value of each."""
        return [
            (one.claim.short, one.tone.label, one.bound, one.chance, str(one.witness))
            for one in self
        ]

    def to_json(self) -> str:
        """The verdicts as JSON: a list of theirs."""
        return f"[{', '.join(one.to_json() for one in self)}]"

    @classmethod
    def from_json(cls, text: str) -> Verdicts:
        """The verdicts that `to_json` wrote."""
        return cls(Verdict.from_json(json.dumps(one)) for one in json.loads(text))

    def __str__(self) -> str:
        return as_text(_COLUMNS, self.rows())

    def _repr_html_(self) -> str:
        return as_html(_COLUMNS, self.rows())

    def report(self, path: str | Path, **options: Any) -> None:
        """Write all of them as one HTML page; the options are those of `dpassay.report.write`."""
        write_report(path, self, **options)
