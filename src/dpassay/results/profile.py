"""What `dp.estimate` returns: every notion of one pair."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.privacy.finite_pairs import LossCurve
from dpassay.privacy.pairs import Pair
from dpassay.privacy.provenance import About
from dpassay.results.view import NOT_A_BOUND, ResultView, guarantee_text
from dpassay.rounding import number
from dpassay.tables import Shown, Status, Tabular


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
        """T̂(α), symmetrised."""
        rates = checks.doubles("alpha", alpha)
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
            f"ε ≈ {number(self.epsilon)}, μ ≈ {number(self.mu)} (nearest Gaussian curve), "
            f"δ(0) ≈ {number(float(self.spectrum.y[0]))}, {self.renyi_said(2.0)}{draws} "
            f"({self.about.guarantee})" + self.about.noted
        )

    def renyi_said(self, order: float) -> str:
        """ε at an order, in words that do not say more than the draws do."""
        how = "≈" if order <= self.renyi_reach else "at least about"
        return f"Rényi ε({order:g}) {how} {number(float(self.renyi(order)))}"

    def view(self, file: str = "profile.json") -> ResultView:
        """All there is to say; `file` is the name of its JSON."""
        about, start = self.about, self.spectrum.x[0]
        estimated = f", estimated from {about.draws}" if about.n else ""
        least = "at least; outputs too rare to be seen decide" if self.renyi_reach < 2 else ""
        facts = (
            ("Pure DP", "ε", self.epsilon, "the largest log-ratio that these draws support"),
            ("Gaussian DP", "μ", self.mu, "of the nearest Gaussian trade-off curve"),
            (f"δ at ε = {number(start)}", "δ", self.spectrum.y[0], "the start of the spectrum"),
            ("Rényi, order 2", "ε", self.renyi(2.0), least or "the worse direction"),
        )
        return ResultView(
            status=Status.ESTIMATE,
            headline=f"Estimates on {self.pair}",
            summary=self._summary(),
            about=about,
            title="Estimate",
            sentence=f"ε is about {number(self.epsilon)} and μ about {number(self.mu)}{estimated}.",
            facts=[(name, f"{sign} ≈ {number(value)}", what) for name, sign, value, what in facts],
            pair=about.pair,
            guarantee=guarantee_text(about.guarantee, about),
            meaning=(NOT_A_BOUND,),
            file=file,
        )

    def _summary(self) -> list[str]:
        """The estimates, a line each."""
        end, last = self.spectrum.x[-1], self.renyi_curve.x[-1]
        return [
            f"ε ≈ {number(self.epsilon)}",
            f"μ ≈ {number(self.mu)}",
            *(f"δ({e:g}) ≈ {number(self.delta(e))}" for e in (0.0, 0.5, 1.0) if e <= end),
            *(self.renyi_said(order) for order in (2.0, 8.0) if order <= last),
            *(f"T({a:g}) ≈ {number(self.tradeoff(a))}" for a in (0.01, 0.05)),
            f"{self.about.method}, {self.about.draws}; heuristic estimates; an audit gives bounds",
            *(f"note: {note}" for note in self.about.notes),
            *map(str, self.about.files),
        ]
