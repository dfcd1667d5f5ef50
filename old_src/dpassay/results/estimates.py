"""Estimates, read off a sample, and lower bounds, which hold: different types on purpose."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import Claim
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.privacy.event_claims import digits
from dpassay.privacy.finite_pairs import LossCurve
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.privacy.relations import Pair
from dpassay.records import Record
from dpassay.results.explanations import Explanation
from dpassay.results.view import (
    NOT_A_BOUND,
    ResultView,
    assumption_rows,
    capital,
    file_rows,
    guarantee_text,
    note_rows,
    percent,
    replay_command,
)
from dpassay.results.witness import Witness
from dpassay.rounding import number, rounded_down, rounded_up
from dpassay.tables import Shown, Status, Tabular

#: The share of γ spent on a `SecondBound`.
SECOND = 0.1
#: The most groups of canaries that a note lists.
_GROUPS = 10


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
        return _loss_chart(self)

    def __str__(self) -> str:
        where = f" at output {self.location}" if self.location is not None else ""
        draws = f" from {self.about.draws}" if self.about.n else ""
        how = f" ({self.about.method}, {self.about.guarantee}){self.about.noted}"
        return f"{self.notion} ≈ {number(self.value)}{where}{draws}{how}"


@dataclass(frozen=True, eq=False, kw_only=True)
class CanaryScores(Record):
    """How the scores of canaries are spread, and what was guessed from them."""

    edges: FloatArray  # of bins; what is beyond the ends is in the first and the last
    included: FloatArray  # canaries in every bin
    left_out: FloatArray
    #: The lowest score guessed to be included, and the highest guessed to be left out; None for none.
    high: float | None
    low: float | None
    #: Whether scores are places among those of their run, from 0 to 1.
    places: bool
    #: A row a test: canaries, guesses, right ones, and the fewest and the most that were possible (0 if
    #: their number was fixed beforehand); and the error probability of each.
    guessed: tuple[tuple[int, int, int, int, int], ...]
    levels: tuple[float, ...]
    #: The AUC of the scores, the mean of several runs: it describes the attack, and certifies nothing.
    auc: float | None = None


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
    #: The name of a group of canaries, and the same of every group; all of them hold at once.
    group: str = ""
    groups: tuple[CertifiedEpsilon, ...] = ()
    scores: CanaryScores | None = field(default=None, repr=False)
    guarantee: Guarantee = Guarantee.EXACT

    def __str__(self) -> str:
        claimed = "" if self.claimed is None else f"the claimed ε is {number(self.claimed)}; "
        fair = " if each canary had a fair coin of its own" if self.guarantee.doubt else ""
        return (
            f"{self.guarantee.doubt or 'certified '}ε ≥ {rounded_down(self.epsilon)} at δ = "
            f"{digits(self.delta)} ({level(self.confidence, 100)} %){fair}; {claimed}the most that these "
            f"{self.canaries:,} canaries could have shown is {rounded_down(self.ceiling)}"
        )

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """How good the attack was, as a key number; nothing where that is not known."""
        if self.scores is None or self.scores.auc is None:
            return []
        what = "of these canaries; 0.5 is chance. It describes the attack and is no bound"
        return [("AUC of the scores", f"{self.scores.auc:.3g}", what)]

    @property
    def group_note(self) -> str:
        """What is certified of groups, the largest bounds first; empty without groups."""
        found = sorted(self.groups, key=lambda group: -group.epsilon)
        said = [
            f"group {g.group}: ε ≥ {rounded_down(g.epsilon)} (its {g.canaries:,} canaries could have "
            f"shown {rounded_down(g.ceiling)})"
            for g in found[:_GROUPS]
        ]
        if rest := found[_GROUPS:]:
            most = rounded_up(rest[0].epsilon)
            said.append(f"the bounds of {len(rest)} more are {most} at most (certified.groups)")
        return f"{self.guarantee.doubt}{'; '.join(said)}" if said else ""


def canary_chart(result: Any) -> Any:
    """Scores and certified curve. Imported when called: the figures know results and bounds."""
    return importlib.import_module("dpassay.report.figures").canary_chart(result)


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
        if (w := self.witness) is not None:
            shown += f"\nwitness: {w.event if self.about.units == 'canaries' else w}"
        shown += "".join(f"\n{name}: {said}" for name, said in assumption_rows(self.about))
        return (
            f"{self.guarantee.doubt}{self.notion} ≥ {rounded_down(self.value)} with "
            f"{level(self.confidence, 100)}% confidence{where}, {self.guarantee} guarantee "
            f"({self.about.method}){shown}{self.about.noted}"
        )

    def chart(self) -> Any:
        """The loss; of canaries their scores and the certified ε by δ. Needs the extra "report"."""
        scored = self.certified is not None and self.certified.scores is not None
        return canary_chart(self) if scored else _loss_chart(self)

    def view(self, file: str = "bound.json") -> ResultView:
        """All there is to say; `file` is the name of its JSON in the commands that read it."""
        pure = self.claim is not None and self.claim.point is not None and self.claim.point[1] == 0
        shown = f"{self.notion} ≥ {rounded_down(self.value)}{' at δ = 0' * pure}"
        doubt, w, about = self.guarantee.doubt, self.witness, self.about
        bound = f"{doubt}{shown} with confidence {level(self.confidence)}"
        summary, attack = [f"{bound} ({self.guarantee})"], []
        if self.certified is not None:
            attack = self.certified.facts
            bound = str(self.certified)
            summary = [capital(bound), f"{self.guarantee} guarantee"]
        title = capital(f"{doubt}a lower bound")
        sure = f"with {percent(self.confidence)} confidence, {self.guarantee}"
        rows = [*(w.rows(about.units) if w else []), *file_rows(about), ("how", about.method)]
        replayable = w is not None and self.value > 0 and not w.event.live
        return ResultView(
            status=Status.ESTIMATE,
            headline=title,
            summary=summary,
            rows=rows + note_rows(about),
            about=about,
            title=title,
            sentence=f"{capital(bound)}.",
            facts=[("Not certified" if doubt else "Certified bound", shown, sure), *attack],
            witness="" if w is None else str(w.event if about.units == "canaries" else w),
            pair=self.pair,
            guarantee=guarantee_text(self.guarantee, about),
            budget=self.budget,
            meaning=(
                "It is a lower bound: the true value may be larger. A low bound does not mean private.",
                "An audit of a claim on the same draws chooses its event for that claim, and may certify "
                "a little more or less. Choose one of the two before looking at results.",
            ),
            diagnosis=self.diagnosis,
            file=file,
            replay=replay_command(about, file) if replayable else "",
        )


def _loss_chart(found: Estimate | LowerBound) -> Any:
    if found.loss is None:
        raise InvalidInput(f"this {type(found).__name__} has no curve to draw; print it")
    try:
        at = float(found.location or "nan")
    except ValueError:  # the worst output is more than the number along which the loss is drawn
        at = math.nan
    return found.loss.chart(at if math.isfinite(at) and found.loss.labels is None else None)


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

    def beside(self, violated: bool) -> SecondBound:
        """The bound; at least what is claimed if the claim is refuted, which says that it is exceeded.

        That a curve is refuted does not say at which ε.
        """
        exceeded = violated and not self.at
        return replace(self, lower=max(self.lower, self.claimed)) if exceeded else self

    def __str__(self) -> str:
        if self.at:
            return f"every {self.symbol} below {rounded_down(self.lower)} is refuted at {self.at}"
        return f"{self.bound}, claimed {number(self.claimed)}"

    @property
    def bound(self) -> str:
        """The bound as text: strict, where it is the refuted value itself."""
        if self.lower == self.claimed > 0:
            return f"{self.symbol} > {number(self.claimed)}"
        return f"{self.symbol} ≥ {rounded_down(self.lower)}"


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

    def chart(self) -> Any:
        """The point with its confidence region. Needs the extra "report"."""
        from dpassay import charts

        point = self.alpha, self.beta
        return charts.tradeoff({}, box=self.box, outline=self.outline, point=point)

    def __str__(self) -> str:
        a0, a1, b0, b1 = self.box
        return (
            f"(α, β) = ({self.alpha:.4g}, {self.beta:.4g}), the errors of the test that was fitted at "
            f"threshold {self.threshold:.4g}; α in [{rounded_down(a0)}, {rounded_up(a1)}] and "
            f"β in [{rounded_down(b0)}, {rounded_up(b1)}] with {level(self.confidence)} confidence "
            f"({self.kind}). The trade-off curve passes through or below these errors"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Profile(Shown, Tabular):
    """Every notion of one pair, estimated from one sample and one loss.

    `epsilon` is the largest log-ratio that the draws support: mostly too large where frequent outputs
    have the largest privacy loss, too small where only rare ones have it. `mu` is the smallest μ for
    which the trade-off function lies above that of μ-GDP, and the one to publish: it is read off where
    the two are furthest apart by more than four standard errors, at error rates of at least 20 draws,
    which leaves a small bias for Laplace and Gaussian noise.
    `tradeoff_curve.mu()` is the maximum over the whole curve, noise at rare events included: too large,
    often ∞. `tradeoff_curve.fit_gdp()` is the nearest Gaussian curve: as good for Gaussian noise, and
    for other noise smaller than the smallest μ.
    """

    drawn_as: ClassVar[str] = "profile"

    epsilon: float
    mu: float
    spectrum: Spectrum = field(repr=False)
    renyi_curve: RenyiCurve = field(repr=False)
    tradeoff_curve: TradeoffCurve = field(repr=False)
    loss: LossCurve | None = field(default=None, repr=False)
    pair: Pair | None = None
    #: The largest order of the Rényi curve that the draws support (a diagnostic, no guarantee): up to it
    #: the relative error is at most 15 % in most samples (in fewer for subsampled noise). Beyond it the
    #: curve is noise, or outputs that are too rare to be seen may make the divergence much larger. 1 if
    #: no order is supported.
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

        For ε beyond the grid of `spectrum` it is read off the trade-off curve. There it is at least 1/n,
        or the last δ of the grid if that is smaller: n draws do not distinguish a smaller δ from 0.
        """
        eps = checks.doubles("epsilon", epsilon)
        if not np.all(eps >= 0):
            raise InvalidInput(f"epsilon must be at least 0, got {epsilon!r}")
        last, end = self.spectrum.x[-1], self.spectrum.y[-1]
        inside = self.spectrum(np.minimum(eps, last))
        least = 1 / min(self.about.n) if self.about.n else 0.0
        further = np.maximum(np.asarray(self.tradeoff_curve.delta(eps)), least)
        return checks.scalar_or_array(np.where(eps <= last, inside, np.minimum(further, end)))

    def renyi(self, order: Any) -> Any:
        """The Rényi divergence at an order, the worse of the two directions; see `renyi_reach`."""
        return self.renyi_curve(order)

    def tradeoff(self, alpha: Any) -> Any:
        """The convex hull of the smaller of T(P, Q)(α) and T(Q, P)(α)."""
        return self.tradeoff_curve(alpha)

    def chart(self) -> Any:
        """Four panels: trade-off curve, δ(ε), Rényi curve, and the loss with its densities."""
        from dpassay import charts

        orders = charts.renyi(charts.within_reach("estimate", self.renyi_curve, self.renyi_reach))
        panels = [self.tradeoff_curve.chart(), self.spectrum.chart(), orders]
        if self.loss is not None:
            panels.append(self.loss.chart())
        return charts.panels(panels)

    def __str__(self) -> str:
        draws = f", from {self.about.draws}" if self.about.n else ""
        return (
            f"ε ≈ {number(self.epsilon)}, μ ≈ {number(self.mu)}, "
            f"δ(0) ≈ {number(float(self.spectrum.y[0]))}, {self.renyi_said(2.0)}{draws} "
            f"({self.about.guarantee})" + self.about.noted
        )

    def renyi_said(self, order: float) -> str:
        """ε at an order, in words that do not say more than the draws do."""
        doubt = "" if order <= self.renyi_reach else " (not reliable)"
        return f"Rényi ε({order:g}) ≈ {number(float(self.renyi(order)))}{doubt}"

    def view(self, file: str = "profile.json") -> ResultView:
        """All there is to say; `file` is the name of its JSON."""
        about, start, end = self.about, self.spectrum.x[0], self.spectrum.x[-1]
        last = self.renyi_curve.x[-1]
        estimated = f", estimated from {about.draws}" if about.n else ""
        doubt = "not reliable with these draws" if self.renyi_reach < 2 else ""
        facts = (
            ("Pure DP", "ε", self.epsilon, "the largest log-ratio that these draws support"),
            ("Gaussian DP", "μ", self.mu, "the smallest that the estimated trade-off curve allows"),
            (f"δ at ε = {number(start)}", "δ", self.spectrum.y[0], "the start of the spectrum"),
            ("Rényi, order 2", "ε", self.renyi(2.0), doubt or "the worse direction"),
        )
        return ResultView(
            status=Status.ESTIMATE,
            headline=f"Estimates on {self.pair}",
            summary=[
                "an estimate: nothing is guaranteed; an audit gives bounds",
                f"ε ≈ {number(self.epsilon)}",
                f"μ ≈ {number(self.mu)}",
                *(f"δ({e:g}) ≈ {number(self.delta(e))}" for e in (0.0, 0.5, 1.0) if e <= end),
                *(self.renyi_said(order) for order in (2.0, 8.0) if order <= last),
                *(f"T({a:g}) ≈ {number(self.tradeoff(a))}" for a in (0.01, 0.05)),
                f"{about.method}, {about.draws}",
                *(f"note: {note}" for note in about.notes),
                *map(str, about.files),
            ],
            about=about,
            title="Estimate",
            sentence="An estimate: nothing is guaranteed. "
            f"ε is about {number(self.epsilon)} and μ about {number(self.mu)}{estimated}.",
            facts=[(name, f"{sign} ≈ {number(value)}", what) for name, sign, value, what in facts],
            pair=about.pair,
            guarantee=guarantee_text(about.guarantee, about),
            meaning=(NOT_A_BOUND,),
            file=file,
        )
