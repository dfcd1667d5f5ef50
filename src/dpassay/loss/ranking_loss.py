"""A score that is data: features of an output and a model of them, which go to JSON with their events."""

from __future__ import annotations

from dataclasses import dataclass

from dpassay._typing import FloatArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, of_scores
from dpassay.outputs.score_models import Ranking


@dataclass(frozen=True, eq=False)
class RankingLoss:
    """An estimate of log p/q; of the lowest set bit only an order."""

    ranking: Ranking
    telling: bool = True  # whether the two sides differ beyond chance, as far as its features show

    @property
    def name(self) -> str:
        return self.ranking.name

    def score(self, outputs: Outputs) -> FloatArray:
        return self.ranking.score(outputs)

    def event(self, cut: float, above: bool) -> Event:
        """{score ≥ cut} or {score ≤ cut}."""
        return of_scores(self, cut, above)
