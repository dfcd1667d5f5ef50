"""What backs a number: method, guarantee, sample sizes, seed, pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpassay.records import Record


def level(confidence: float, scale: int = 1) -> str:
    """A confidence for people: four digits, more where it is nearer to 1 than they show.

    >>> level(0.95), level(1 - 1e-6), level(1 - 1e-6, 100)
    ('0.95', '0.999999', '99.9999')
    """
    digits = 4 if confidence >= 1 else max(4, math.ceil(-math.log10(1 - confidence)))
    return f"{scale * confidence:.{digits}g}"


class Guarantee(StrEnum):
    """What stands behind a number."""

    EXACT = "exact"  # holds for every sample size
    ASYMPTOTIC = "asymptotic"  # holds in the limit of many draws
    HEURISTIC = "heuristic"  # no error statement


@dataclass(frozen=True, eq=False, kw_only=True)
class About(Record):
    """How a result was obtained."""

    method: str
    guarantee: Guarantee
    n: tuple[int, int] | None = None
    seed: int | None = None
    pair: Any = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", Guarantee(self.guarantee))
        object.__setattr__(self, "notes", tuple(self.notes))
        if self.n is not None:
            object.__setattr__(self, "n", tuple(self.n))

    @property
    def noted(self) -> str:
        """The notes, a line each."""
        return "".join(f"\n  note: {note}" for note in self.notes)
