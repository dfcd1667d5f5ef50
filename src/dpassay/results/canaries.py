"""What canaries of training runs certify of ε, and what charts of their scores are drawn of."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from dpassay._typing import FloatArray
from dpassay.privacy.event_claims import digits
from dpassay.privacy.provenance import Guarantee, level
from dpassay.records import Record
from dpassay.rounding import number, rounded_down


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
        claimed = "" if self.claimed is None else f"the accountant's ε is {number(self.claimed)}; "
        fair = " if each canary had a fair coin of its own" if self.guarantee.doubt else ""
        return (
            f"{self.guarantee.doubt or 'certified '}ε ≥ {rounded_down(self.epsilon)} at δ = "
            f"{digits(self.delta)} ({level(self.confidence, 100)} %){fair}; {claimed}the most that these "
            f"{self.canaries:,} canaries could have shown is {rounded_down(self.ceiling)}"
        )

    @property
    def group_notes(self) -> tuple[str, ...]:
        """What is certified of each group."""
        return tuple(
            f"group {g.group}: {g.guarantee.doubt}ε ≥ {rounded_down(g.epsilon)}; the most that its "
            f"{g.canaries:,} canaries could have shown is {rounded_down(g.ceiling)}"
            for g in self.groups
        )


def canary_chart(result: Any) -> Any:
    """Scores and certified curve. Imported when called: the figures know results and bounds."""
    return importlib.import_module("dpassay.report.canaries").chart(result)
