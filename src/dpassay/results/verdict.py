"""Whether a claim was refuted, how far, and whether it could have been; and all that is said of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import claim as parse_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.curves import TradeoffCurve
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.results import blindness
from dpassay.results.canaries import CertifiedEpsilon, canary_chart
from dpassay.results.estimates import SecondBound, TradeoffPoint
from dpassay.results.explanations import Belief, Explanation, explained
from dpassay.results.plain_words import plain_words
from dpassay.results.profile import Profile
from dpassay.results.view import (
    EXACT_FOR_CANARIES,
    GUARANTEES,
    Facts,
    PairTable,
    ResultView,
    Rows,
    about_rows,
    capital,
    error_rate,
    percent,
    replay_command,
    small,
    with_confidence,
)
from dpassay.results.witness import BITS, Witness
from dpassay.rounding import number, rounded_down, rounded_up
from dpassay.tables import Shown, Status, as_html, as_text, write_report

#: What is said where no score was learned.
UNLEARNED = (
    "no score separated the two inputs better than chance on training draws: their outputs hardly "
    "differ, or differ in a way that this audit does not look at. If you know what to look at, "
    "give it as a feature: features=[…] in Python, --feature on the command line"
)
_COLUMNS = ("claim", "result", "certified", "p-value", "witness")
TITLES = {
    Status.VIOLATION: "Violation",
    Status.CLEAR: "No violation detected",
    Status.BLIND: "Could not have seen a violation",
}


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
    #: Approximately the smallest actual parameter that would be detected with 90 % probability if an
    #: event as likely as the one tested attained it. Where several events were tested, each at its own
    #: level, the smallest that one of them would detect.
    smallest_detectable: float | None = None
    #: That event in words, where it is not the one of the witness.
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
    #: Every notion of the pair that was tested, estimated from the training draws.
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
        sign = ">" if self._strict else "≥"
        return f"{self.claim.symbol} {sign} {rounded_down(self.lower_bound)}"

    @property
    def _strict(self) -> bool:
        """Whether the bound, as printed, is not above the claim that it refutes."""
        known = self.violated and math.isfinite(self.lower_bound)
        return known and float(rounded_down(self.lower_bound)) <= self.claim.value

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        match self.tone:
            case Status.VIOLATION:
                return f"{self.guarantee.doubt}violation of {self.claim.short}"
            case Status.BLIND:
                return f"could not have seen a violation of {self.claim.short}"
        return f"no violation of {self.claim.short} detected"

    @property
    def remedy(self) -> str:
        """What helps a blind audit where more draws cannot; empty where they may."""
        return blindness.remedy(self.blind_cause)

    @property
    def unlearned(self) -> bool:
        """Whether nothing was certified and nothing learned: the event tested says little of others."""
        return not (self.violated or self.blind or self.separated or self.lower_bound > 0)

    @property
    def caught(self) -> str:
        """What would be detected with probability 0.9, in words; empty where that is not known."""
        least = self.smallest_detectable
        if least is None or not math.isfinite(least) or self.blind or self.unlearned:
            return ""
        detected = "would be detected with probability 0.9"
        if _of_canaries(self):
            told = (
                "if scores told all that it allows; after DP-SGD they tell less (plan --canaries)"
            )
            return f"{self.claim.symbol} = {number(least)} {detected} {told}"
        if self.claim.set_by_events:
            return f"{self.claim.symbol} = {number(least)} on {self.alike} {detected}"
        return f"{self.claim.symbol} ≈ {number(least)} {detected}"

    @property
    def alike(self) -> str:
        """Events like the one that `smallest_detectable` is about, in words."""
        event = f'"{self.detectable_on}"' if self.detectable_on else "this"
        return f"an event like {event}"

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
        w = self.witness
        orders = [(w.hits_p, w.n_p, w.hits_q, w.n_q)]
        if not self.claim.symmetric:
            orders.append((w.hits_q, w.n_q, w.hits_p, w.n_p))
        readings = [c for i, n, j, m in orders for c in ((i, n, j, m), (n - i, n, m - j, m))]
        return max(
            readings, key=lambda c: float(self.claim.tradeoff(c[2] / c[3])) - 1 + c[0] / c[1]
        )

    def __str__(self) -> str:
        bound = _bound(self)
        exact = f", {self.guarantee}" if self.violated else ""
        first = (
            f"{self.headline}: {bound} with {level(self.confidence)} confidence "
            f"(p ≤ {rounded_up(self.p_value, places=2)}{exact})"
        )
        rows = [] if self.certified is None else [("canaries", str(self.certified))]
        rows += [("blind", self.blind)] if self.blind else []
        rows += [] if self.second is None else [("and", f"{second_bound(self)}; both hold at once")]
        rows += [("witness", str(self.witness)), *explained(self.diagnosis, self.belief)]
        rows += self._remarks()
        return "\n".join([first, *(f"  {name}: {text}" for name, text in rows)])

    def _remarks(self) -> Rows:
        """When it stopped, what it would have detected, and the notes."""
        rows = [] if self.draws is None else [("stopped", f"after {self.draws:,} draws a side")]
        if self.unlearned:
            rows.append(("note", UNLEARNED))
        if self.caught:
            rows.append(("power", self.caught))
        if self.violated and self.witness.event.of_representation and BITS not in self.about.notes:
            rows.append(("note", BITS))
        return rows + [("note", note) for note in self.about.notes]

    def view(self, file: str = "verdict.json") -> ResultView:
        """All there is to say; `file` is the name of its JSON in the commands that read it."""
        bound = _bound(self)
        summary = [capital(str(self.certified))] if self.certified is not None else []
        summary += [capital(self.blind)] if self.blind else []
        chance = f"p ≤ {rounded_up(self.p_value, places=2)}"
        sure = f"with confidence {level(self.confidence)} ({self.guarantee}; {chance})"
        said = self.certified is not None and self.second is None  # the bound, already
        summary.append(f"{self.guarantee} guarantee; {chance}" if said else f"{bound} {sure}")
        if self.second is not None:
            summary.append(f"and {second_bound(self)}; both hold at once")
        exact = self.guarantee is Guarantee.EXACT
        meaning = _meaning(self), _scope(self)
        replay = ""
        if self.violated and not self.witness.event.live:
            replay = replay_command(self.about, file, self.confidence)
        return ResultView(
            status=self.tone,
            headline=self.headline,
            summary=summary,
            rows=[
                *self.witness.rows(),
                *explained(self.diagnosis, self.belief),
                *about_rows(self.about, ()),
                *self._remarks(),
            ],
            about=self.about,
            title=capital(f"{self.guarantee.doubt * self.violated}{TITLES[self.tone]}"),
            sentence=" ".join(
                [_sentence(self), *[f"{capital(str(self.certified))}."] * bool(self.certified)]
            ),
            plain=plain_words(self, [*[f"{capital(self.blind)}."] * bool(self.blind), *meaning]),
            facts=_facts(self),
            witness=str(self.witness.event),
            pair=self.witness.pair or self.about.pair,
            pairs=_predicted(self.pairs),
            guarantee=EXACT_FOR_CANARIES
            if exact and _of_canaries(self)
            else GUARANTEES[self.guarantee],
            budget=self.budget,
            meaning=meaning,
            diagnosis=self.diagnosis,
            file=file,
            replay=replay,
            checks=_checks(self, replay),
        )


class Verdicts(list[Verdict]):
    """The verdicts of several claims: a list that prints as a table."""

    def rows(self) -> list[tuple[str, ...]]:
        """Claim, result, certified bound and p-value of each."""
        return [
            (
                one.claim.short,
                one.tone.label,
                one.bound,
                f"p ≤ {rounded_up(one.p_value, places=2)}",
                str(one.witness),
            )
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


# --- what is said of a verdict


def _of_canaries(verdict: Verdict) -> bool:
    return verdict.about.units == "canaries"


def _bound(verdict: Verdict) -> str:
    what = " (type-II error below the claimed curve)" if verdict.claim.parameter == "gap" else ""
    return f"{verdict.bound}{what}"


def _sentence(verdict: Verdict) -> str:
    claim, bound = verdict.claim, rounded_down(verdict.lower_bound)
    confidence = with_confidence(verdict.confidence, verdict.guarantee)
    doubt = verdict.guarantee.doubt
    least = "more than" if verdict._strict else "at least"
    match claim.parameter:
        case "gap":
            found = f"the trade-off curve lies {least} {bound} below the claimed one"
        case "factor":
            found = f"at some order the divergence is {least} {bound} times what is claimed"
        case _:
            found = f"{claim.symbol} is {least} {bound}"
    if verdict.second is not None:
        found += f" and, at the same time, {second_bound(verdict)}"
    match verdict.tone:
        case Status.VIOLATION:
            false = "is false if what is assumed holds" if doubt else "is false"
            return capital(f"{doubt}the claim of {claim.short} {false}: {found}, {confidence}.")
        case Status.BLIND:
            why = f"This audit could not have refuted {claim.short}: {verdict.blind}."
            return f"{why} {capital(doubt) or 'It certifies only that '}{found}, {confidence}."
    certified = f"{capital(doubt) or 'They certify only that '}{found}, {confidence}."
    return f"The draws do not refute {claim.short}. {certified}"


def second_bound(verdict: Verdict) -> str:
    """The second bound: "δ ≥ 0.08 at ε = 0.5, claimed 0.01"; empty if there is none."""
    return "" if verdict.second is None else " ".join(_second(verdict.second, verdict.claim))


def _second(other: SecondBound, claim: Claim) -> tuple[str, str]:
    """The second bound, and where it holds."""
    claimed = number(other.claimed)
    if other.at:
        return other.bound, f"at {other.at}, where the curve claims {claimed}"
    return other.bound, f"at {claim.symbol} = {number(claim.value)}, claimed {claimed}"


def _facts(verdict: Verdict) -> Facts:
    claim, w = verdict.claim, verdict.witness
    units = verdict.about.units or ("held-out rows" if verdict.about.files else "draws")
    sides = ("included", "left out") if _of_canaries(verdict) else ("first input", "second input")
    chance = "largest probability of evidence this strong if the claim were true"
    if verdict.guarantee is not Guarantee.EXACT:
        chance += f" ({verdict.guarantee})"
    name = "Not certified" if verdict.guarantee.doubt else "Certified bound"
    sure = f"with {percent(verdict.confidence)} confidence, {verdict.guarantee}"
    facts = [("Claim", claim.short, "what was tested"), (name, _bound(verdict), sure)]
    if verdict.second is not None:
        bound, where = _second(verdict.second, claim)
        facts.append(("And at the same time", bound, f"{where}; both bounds hold at once"))
    facts.append(("Smallest detectable", *detectable(verdict)))
    facts.append(("p-value", f"p ≤ {small(verdict.p_value)}", chance))
    for side, hits, n in zip(sides, (w.hits_p, w.hits_q), (w.n_p, w.n_q), strict=True):
        facts.append((f"Witness, {side}", f"{100 * hits / n:.3g}%", f"{hits:,} of {n:,} {units}"))
    return facts


def detectable(verdict: Verdict) -> tuple[str, str]:
    """The smallest detectable parameter, and on what it would be detected."""
    least = verdict.smallest_detectable
    if least is None:
        return "not computed", "by this method"
    if not math.isfinite(least):
        return "none", "no excess is detected with probability 0.9"
    where = "" if verdict.about.units else f"on {verdict.alike}, "
    only = "; no score separated the inputs: other events may go undetected" * verdict.unlearned
    return f"{verdict.claim.symbol} = {number(least)}", f"{where}with probability 0.9{only}"


def _predicted(pairs: Sequence[tuple[str, float]]) -> PairTable | None:
    """The pairs with the bounds that training draws predicted."""
    if not pairs:
        return None
    return PairTable(
        "The pairs that were tried, with the bound that training draws predicted for each. The pair with "
        "the largest was tested on fresh draws.",
        ("pair", "predicted bound"),
        [(name, number(bound)) for name, bound in pairs],
    )


def _meaning(verdict: Verdict) -> str:
    match verdict.tone:
        case Status.VIOLATION:
            rate = error_rate(verdict.confidence, verdict.guarantee, "audits")
            return f"If the claim were true, a verdict of violation would come up {rate}."
        case Status.BLIND:
            return (
                "This is evidence neither for the claim nor against it: the audit could not have refuted "
                "a false claim."
            )
    return (
        "“No violation detected” does not mean private: other inputs, other events or more draws may "
        "still refute the claim."
    )


def _scope(verdict: Verdict) -> str:
    """What a violation is about, what helps a blind audit, and what a clear one would have detected."""
    match verdict.tone:
        case Status.VIOLATION if _of_canaries(verdict):
            about = "this training run and these canaries"
            return f"It is about {about}. The bound is a lower bound; the true value may be larger."
        case Status.VIOLATION:
            return (
                "It is about the pair of inputs that was tested, and so about the mechanism if the claim "
                "calls them neighbours. The bound is a lower bound; the true value may be larger."
            )
        case Status.BLIND if verdict.remedy:
            return f"{capital(verdict.remedy)}."
        case Status.BLIND if _of_canaries(verdict):
            return "More canaries, another number of guesses or a lower confidence may help."
        case Status.BLIND:
            return (
                "More draws (dpassay plan says how many), another score of the outputs (loss) or a "
                "lower confidence may help."
            )
    if verdict.unlearned:
        return f"{capital(UNLEARNED)}."
    if verdict.smallest_detectable is None:
        return "The smallest detectable excess was not computed."
    if not verdict.caught:
        return "With so few draws no excess, however large, would be detected with probability 0.9."
    return (
        f"An actual {verdict.caught}. A smaller excess, or one on other events, may go undetected."
    )


def _checks(verdict: Verdict, replay: str) -> Rows:
    """How somebody else checks a violation: on fresh draws, and from the counts."""
    if not verdict.violated:
        return []
    w, claim = verdict.witness, verdict.claim
    fresh = (
        "On fresh draws: save the result as JSON and count its event again. Nothing is searched for, so "
        "the whole error probability goes to one test."
    )
    steps = [(fresh, replay)] if replay else []
    try:
        same = str(parse_claim(str(claim))) == str(claim)
    except InvalidInput:
        same = False
    if same and claim.set_by_events and w.level is not None:
        total, share = 1 - verdict.confidence, ""
        if w.level <= 0.999 * total:
            share = (
                f", with the {w.level:.3g} that this event had of the error probability {total:.3g} (so "
                "that its p-value is that of the event alone)"
            )
        # as many digits as bounds show
        confidence = repr(round(1 - w.level, 7 - math.floor(math.log10(w.level))))
        steps.append(
            (
                f"From the counts alone, the same bound by the same exact test{share}:",
                f'dpassay counts {w.hits_p} {w.n_p} {w.hits_q} {w.n_q} --claim "{claim}" '
                f"--likelier {'first' if w.p >= w.q else 'second'} --confidence {confidence}",
            )
        )
    return steps
