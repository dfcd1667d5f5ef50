"""What backs a number: method, guarantee, sample sizes, seed, pair."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpassay.records import Record


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
