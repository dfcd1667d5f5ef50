"""Numbers read off a sample, and bounds that hold: different types on purpose."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.privacy.claims import Claim
from dpassay.privacy.event_claims import digits
from dpassay.privacy.finite_pairs import LossCurve
from dpassay.privacy.pairs import Pair
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.records import Record
from dpassay.results.explanations import Explanation
from dpassay.results.rounding import number, rounded_down
from dpassay.results.view import (
    EXACT_FOR_CANARIES,
    GUARANTEES,
    ResultView,
    about_rows,
    capital,
    percent,
    replay_command,
)
from dpassay.results.witness import Witness
from dpassay.tables import Shown, Status

#: The share of γ spent on a `SecondBound`.
SECOND = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate(Shown):
    """A number read off a sample. It is not a bound: it may lie above or below the truth."""

    value: float
    notion: str
    location: str | None = None
    pair: Pair | None = None
    loss: LossCurve | None = field(default=None, repr=False)
    about: About

    def _validate(self) -> None:
        if self.loss is not None and self.loss.labels is None and self.location is not None:
            checks.doubles("location", self.location)

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
class CertifiedEpsilon(Record):
    """What canaries certify of ε at a δ, what is claimed, and the most that they could have shown."""

    epsilon: float
    delta: float
    #: The claimed ε at this δ, such as an accountant's; None without a claim.
    claimed: float | None
    #: The ε that would have been certified if all guesses had been right.
    ceiling: float
    canaries: int
    confidence: float

    def __str__(self) -> str:
        at = f" at δ = {digits(self.delta)}" if self.delta else ""
        claimed = "" if self.claimed is None else f"the accountant's ε is {number(self.claimed)}; "
        return (
            f"certified ε ≥ {rounded_down(self.epsilon)}{at} ({level(self.confidence, 100)} %); {claimed}"
            f"the most that these {self.canaries:,} canaries could have shown is "
            f"{rounded_down(self.ceiling)}"
        )


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
    #: The event that shows it, if it is one event; the claim of this value, against which the event is
    #: replayed; and how the error probability is spent.
    witness: Witness | None = None
    claim: Claim | None = None
    budget: tuple[tuple[str, float], ...] = ()
    #: The pairs that were looked at, with the bound the training draws predicted for each.
    pairs: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    #: What explains four fifths of the bound, the strongest first, or what was looked at. It is not
    #: printed: without a claim there is no fault.
    diagnosis: tuple[Explanation, ...] = field(default=(), repr=False)
    #: Of canaries: the bound, and the most that they could have shown.
    certified: CertifiedEpsilon | None = None
    about: About

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("value", self.value, finite=False)
        checks.probability("confidence", self.confidence)

    def __str__(self) -> str:
        where = f" (at output {self.location})" if self.location is not None else ""
        shown = "" if self.certified is None else f"\n{self.certified}"
        shown += "" if self.witness is None else f"\nwitness: {self.witness}"
        return (
            f"{self.notion} ≥ {number(self.value)} with {level(self.confidence, 100)}% confidence"
            f"{where}, {self.guarantee} guarantee ({self.about.method}){shown}" + self.about.noted
        )

    def view(self, file: str = "bound.json") -> ResultView:
        """All there is to say; `file` is the name of its JSON in the commands that read it."""
        bound = f"{self.notion} ≥ {number(self.value)} with confidence {level(self.confidence)}"
        w, about = self.witness, self.about
        sure = f"with {percent(self.confidence)} confidence, {self.guarantee}"
        replayable = w is not None and self.value > 0 and not w.event.live
        return ResultView(
            status=Status.ESTIMATE,
            headline="A lower bound",
            summary=[f"{bound} ({self.guarantee})", *[str(self.certified)] * bool(self.certified)],
            rows=[
                *(w.rows() if w else []),
                *about_rows(about, about.notes, about.method),
            ],
            about=about,
            title="A lower bound",
            sentence=f"{capital(str(self.certified or bound))}.",
            facts=[("Certified bound", f"{self.notion} ≥ {number(self.value)}", sure)],
            witness="" if w is None else str(w.event),
            pair=self.pair,
            guarantee=EXACT_FOR_CANARIES
            if self.certified is not None and self.guarantee is Guarantee.EXACT
            else GUARANTEES[self.guarantee],
            budget=self.budget,
            meaning=(
                "It is a lower bound: the true value may be larger. A low bound does not mean private.",
            ),
            diagnosis=self.diagnosis,
            file=file,
            replay=replay_command(about, file) if replayable else "",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SecondBound(Record):
    """A lower bound on another parameter, which shares the error probability of the first.

    For an (ε, δ) claim that is the parameter which is not its headline; for a curve ε at a small δ.
    """

    symbol: str
    claimed: float
    lower: float
    smallest_detectable: float
    #: What is held fixed, where it is not the claim's own parameter: "δ = 1e-05".
    at: str = ""

    def given(self, violated: bool) -> SecondBound:
        """The bound; at least what is claimed if the claim is refuted, which says that it is exceeded.

        That a curve is refuted does not say at which ε.
        """
        exceeded = violated and not self.at
        return replace(self, lower=max(self.lower, self.claimed)) if exceeded else self

    def __str__(self) -> str:
        if self.at:
            return f"every {self.symbol} below {rounded_down(self.lower)} is refuted at {self.at}"
        return f"{self.symbol} {self.sign} {number(self.lower)}, claimed {number(self.claimed)}"

    @property
    def sign(self) -> str:
        """How `lower` bounds the parameter: strictly, where it is the refuted value itself."""
        return ">" if self.lower == self.claimed > 0 else "≥"


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
