"""What an analysis returns: frozen records that say what backs them.

An `Estimate` is not a `LowerBound`: they are different types on purpose. A `Verdict` is
"violation", "no violation detected" or "could not have seen a violation", never "private"; a
`Verification` says what holds on the pairs that were looked at, and of no others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.outputs.events import Event
from dpassay.privacy.about import About, Guarantee, level
from dpassay.privacy.claims import Claim
from dpassay.privacy.curves import LossCurve, RenyiCurve, Spectrum, TradeoffCurve
from dpassay.privacy.pairs import Pair
from dpassay.records import Record
from dpassay.tables import Shown, Tabular

__all__ = [
    "About",
    "Estimate",
    "Event",
    "Guarantee",
    "LowerBound",
    "PairUpper",
    "Profile",
    "SecondBound",
    "Shown",
    "TradeoffPoint",
    "Verdict",
    "Verification",
    "Witness",
]

#: What a witness about the bits of numbers means.
BITS = (
    "what shows here is the representation, which doubles come out, not their values: the mechanism that "
    "runs leaks, though the ideal one may not"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate(Shown):
    """A number read off a sample. It is not a bound: it may lie above or below the truth."""

    value: float
    notion: str
    location: str | None = None
    pair: Pair | None = None
    loss: LossCurve | None = field(default=None, repr=False)
    about: About

    def chart(self) -> Any:
        """The loss this estimate was read off."""
        if self.loss is None:
            raise ValueError("this estimate carries no loss curve to draw")
        at = None
        if self.loss.labels is None and self.location is not None:
            at = float(self.location)
        return self.loss.chart(at)

    def __str__(self) -> str:
        where = f" at output {self.location}" if self.location is not None else ""
        draws = f" from {self.about.draws}" if self.about.n else ""
        said = f"{self.notion} ≈ {number(self.value)}{where}{draws} ({self.about.method})"
        return said + self.about.noted


@dataclass(frozen=True, eq=False, kw_only=True)
class LowerBound(Shown):
    """The mechanism is at most this private: the truth is at least `value`, with `confidence`."""

    value: float
    confidence: float
    notion: str
    guarantee: Guarantee
    location: str | None = None
    pair: Pair | None = None
    estimates: tuple[float, ...] = ()  # one per pair looked at, from the selecting stage
    loss: LossCurve | None = field(default=None, repr=False)
    #: The event that shows it, where it is one event; the claim of just this value, which the event is
    #: replayed against; and how the error probability is spent.
    witness: Witness | None = None
    claim: Claim | None = None
    budget: tuple[tuple[str, float], ...] = ()
    #: The pairs that were looked at, with the bound the training draws predicted for each.
    pairs: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    about: About

    def __str__(self) -> str:
        where = f" (at output {self.location})" if self.location is not None else ""
        shown = "" if self.witness is None else f"\nwitness: {self.witness}"
        return (
            f"{self.notion} ≥ {number(self.value)} with {level(self.confidence, 100)}% confidence"
            f"{where}, {self.guarantee} guarantee ({self.about.method}){shown}" + self.about.noted
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Witness(Record):
    """The pair, the event and the counts that show what a verdict says."""

    event: Event
    pair: Pair | None = None
    hits_p: int
    n_p: int
    hits_q: int
    n_q: int
    #: The error probability it was tested with, where two counts are all that was tested.
    level: float | None = None

    @property
    def p(self) -> float:
        """How often the event happened on the first input."""
        return self.hits_p / self.n_p

    @property
    def q(self) -> float:
        """How often the event happened on the second input."""
        return self.hits_q / self.n_q

    def __str__(self) -> str:
        return (
            f"{self.event}: {self.hits_p:,} of {self.n_p:,} against {self.hits_q:,} of {self.n_q:,}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class TradeoffPoint(Shown):
    """A point (α, β) of the curve of a test, with a confidence region around it.

    The test need not be the best one, so the true trade-off curve lies on or below the point. `box`
    is (low α, high α, low β, high β); `outline` the exact region, where that is not a box.
    """

    threshold: float
    alpha: float
    beta: float
    box: tuple[float, float, float, float]
    kind: str
    confidence: float
    outline: FloatArray | None = field(default=None, repr=False)
    about: About

    def __str__(self) -> str:
        a0, a1, b0, b1 = self.box
        return (
            f"(α, β) = ({self.alpha:.4g}, {self.beta:.4g}) at threshold {self.threshold:.4g}; "
            f"α in [{a0:.4g}, {a1:.4g}] and β in [{b0:.4g}, {b1:.4g}] "
            f"with {level(self.confidence)} confidence ({self.kind})"
        )


#: Reasons that no number of draws mends.
_EQUAL = "the two inputs are equal, so that there is nothing to tell apart"
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
        return _EQUAL
    if only:
        hint = "; is a `return` missing?" if only == "None" else ""
        return f"{_CONSTANT} {only} every time, on both inputs{hint}"
    i, n, j, m = counts
    if i + j == 0 or (i == n and j == m):
        which = "none" if i == 0 else "all"
        return f"the event that was tested happened in {which} of the draws on both inputs"
    if not math.isfinite(detectable):
        return "with so few draws no excess, however large, is sure to be caught"
    if claim.far_above(detectable):
        return f"only {claim.symbol} = {number(detectable)} or more would have been caught 9 times in 10"
    if failures:
        return f"a part of the search failed: {failures[0]}"
    return ""


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
        if self.blind == _EQUAL:
            return "give two inputs that differ: no number of draws tells equal ones apart"
        if self.blind.startswith(_CONSTANT):
            return (
                "no number of draws helps: look at what the mechanism returns, or give inputs on which "
                "it varies"
            )
        return ""

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
        known = self.smallest_detectable is not None and math.isfinite(self.smallest_detectable)
        if known and not self.blind:
            lines.append(f"  power: {self.caught}")
        if self.guarantee is Guarantee.HEURISTIC or self.replayed or self.about.units:
            return "\n".join(lines) + self.about.noted
        if self.violated and self.witness.event.of_representation:
            lines.append(f"  note: {BITS}")
        return "\n".join(lines)

    @property
    def caught(self) -> str:
        """What `smallest_detectable` means, in words."""
        size = number(self.smallest_detectable or 0.0)
        if self.claim.event_complete:
            which = self.detectable_on or "this"
            return f"{self.claim.symbol} = {size} on an event like {which} would be caught 9 times in 10"
        return f"{self.claim.symbol} ≈ {size} would be caught 9 times in 10"


@dataclass(frozen=True, eq=False, kw_only=True)
class PairUpper(Record):
    """The bound of one pair, which holds with the confidence on its own."""

    pair: Pair
    upper: float
    cells: int  # outputs that were counted one by one
    unseen: float  # the share of draws of anything else, the larger of the two sides


@dataclass(frozen=True, eq=False, kw_only=True)
class Verification(Shown, Tabular):
    """Whether a claim was shown to hold on the pairs given, and up to which δ.

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
    about: About

    def columns(self) -> dict[str, Any]:
        """pair, upper, cells and unseen: a row for every pair."""
        names = ("upper", "cells", "unseen")
        return {"pair": [str(one.pair) for one in self.pairs]} | {
            name: [getattr(one, name) for one in self.pairs] for name in names
        }

    @property
    def tone(self) -> str:
        """ "confirmed" or "unshown"."""
        return "confirmed" if self.confirmed else "unshown"

    @property
    def _colour(self) -> str:
        return "#1b6e3c" if self.confirmed else "#57606c"

    @property
    def worst(self) -> PairUpper:
        """The pair with the largest bound."""
        return max(self.pairs, key=lambda one: one.upper)

    @property
    def where(self) -> str:
        """The pairs it speaks of."""
        return "this pair" if len(self.pairs) == 1 else f"these {len(self.pairs)} pairs"

    @property
    def holds(self) -> str:
        """What was shown, in a few words; empty if nothing was."""
        if self.upper >= 1.0:
            return ""
        if self.confirmed:
            said = str(self.claim)
        elif self.epsilon is not None:
            said = f"({number(self.epsilon)}, {rounded_up(self.upper)})-DP"
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
    def headline(self) -> str:
        """The result in a few words."""
        if self.confirmed:
            return self.holds
        return f"{self.claim} was not shown to hold on {self.where}"

    def __str__(self) -> str:
        lines = [self.headline]
        if self.holds:
            shown = "" if self.confirmed else f"{self.holds}: "
            lines.append(
                f"  {shown}{self.bound} with {level(self.confidence)} confidence ({self.guarantee}), and "
                "of other inputs nothing is said"
            )
        if self.reason:
            lines.append(f"  why: {self.reason}")
        return "\n".join(lines) + self.about.noted


@dataclass(frozen=True, eq=False, kw_only=True)
class Profile(Shown, Tabular):
    """Every notion of one pair, estimated from one sample and one loss."""

    drawn_as: ClassVar[str] = "profile"

    epsilon: float
    mu: float
    spectrum: Spectrum = field(repr=False)
    renyi_curve: RenyiCurve = field(repr=False)
    tradeoff_curve: TradeoffCurve = field(repr=False)
    loss: LossCurve | None = field(default=None, repr=False)
    pair: Pair | None = None
    #: The largest order of the Rényi curve that the draws support: beyond it the divergence may be much
    #: larger than the curve, since outputs that are too rare to be seen decide.
    renyi_reach: float = math.inf
    about: About

    def columns(self) -> dict[str, Any]:
        """curve ("tradeoff", "spectrum" or "renyi"), x and y: a row for each of their points."""
        curves = (self.tradeoff_curve, self.spectrum, self.renyi_curve)
        names = [curve.drawn_as for curve in curves for _ in range(curve.x.size)]
        x, y = (np.concatenate([getattr(curve, axis) for curve in curves]) for axis in "xy")
        return {"curve": names, "x": x, "y": y}

    def delta(self, epsilon: Any) -> Any:
        """δ̂(ε), the worse of the two directions.

        Beyond the grid of `spectrum` by the trade-off curve, but no less than a draw can show: what is
        smaller than one in n, or 0, the draws do not tell apart.
        """
        eps = np.asarray(epsilon, dtype=float)
        if not np.all(eps >= 0):
            raise InvalidInput(f"epsilon must be at least 0, got {epsilon!r}")
        last, end = self.spectrum.x[-1], self.spectrum.y[-1]
        inside = self.spectrum(np.minimum(eps, last))
        least = 1 / min(self.about.n) if self.about.n else 0.0
        further = np.maximum(np.asarray(self.tradeoff_curve.delta(eps)), least)
        found = np.where(eps <= last, inside, np.minimum(further, end))
        return found if eps.ndim else float(found)

    def renyi(self, order: Any) -> Any:
        """The Rényi divergence at an order, the worse of the two directions; see `renyi_reach`."""
        return self.renyi_curve(order)

    def tradeoff(self, alpha: Any) -> Any:
        """T̂(α), symmetrised."""
        rates = np.asarray(alpha, dtype=float)
        if not np.all((rates >= 0) & (rates <= 1)):
            raise InvalidInput(f"alpha must lie in [0, 1], got {alpha!r}")
        return self.tradeoff_curve(alpha)

    def chart(self) -> Any:
        """Four panels: trade-off curve, δ(ε), Rényi curve, and the loss with its densities."""
        from dpassay import charts

        panels = [self.tradeoff_curve.chart(), self.spectrum.chart(), self.renyi_curve.chart()]
        if self.loss is not None:
            panels.append(self.loss.chart())
        return charts.panels(panels)

    def __str__(self) -> str:
        draws = f", from {self.about.draws}" if self.about.n else ""
        return (
            f"ε ≈ {number(self.epsilon)}, μ ≈ {number(self.mu)}, "
            f"δ(0) ≈ {number(float(self.spectrum.y[0]))}, {self.renyi_said(2.0)}{draws}"
            + self.about.noted
        )

    def renyi_said(self, order: float) -> str:
        """ε at an order, in words that do not say more than the draws do."""
        how = "≈" if order <= self.renyi_reach else "at least about"
        return f"Rényi ε({order:g}) {how} {number(float(self.renyi(order)))}"


def rounded_up(value: float) -> str:
    """A bound from above for people: four significant digits, never less than the value."""
    return _rounded(value, 1) if 0 < value < 1 else number(value)


def rounded_down(value: float) -> str:
    """A bound from below for people: four significant digits, never more than the value."""
    return _rounded(value, -1) if 0 < value < math.inf else number(value)


def _rounded(value: float, side: int) -> str:
    near = float(f"{value:.4g}")
    if (near - value) * side >= 0:
        return f"{near:.4g}"
    return f"{near + side * 10.0 ** (math.floor(math.log10(value)) - 3):.4g}"


def number(value: float) -> str:
    """A number for people: four significant digits, ∞ as a sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value + 0.0:.4g}"  # −0.0 is 0
