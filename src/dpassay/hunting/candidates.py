"""Two neighbouring inputs as what they share and what they do not.

The inputs are `common` with `first` or `second` put in at a place: nothing and a row if one is added, a
row and another if one is replaced, nothing and several if they are a user's. Whatever is done to a
candidate, the two stay neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dpassay.hunting.shapes import Row
from dpassay.privacy.pairs import Pair

#: What became of an entry of the catalogue.
MUTATED, SIMPLER = "changed from: ", "simplified from: "


def renamed(name: str, how: str) -> str:
    """The name of a pair that was made of another: what was done last, and what it began with."""
    return how + name.removeprefix(SIMPLER).removeprefix(MUTATED)


@dataclass(frozen=True)
class Candidate:
    """A pair of neighbouring inputs that may break the mechanism."""

    common: tuple[Row, ...]
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    at: int
    name: str  # what is special about it
    outside: bool = False  # whether a value lies outside the space

    def rows(self, side: int) -> tuple[Row, ...]:
        """The rows of one of the inputs."""
        own = self.second if side else self.first
        return (*self.common[: self.at], *own, *self.common[self.at :])

    def sharing(self, common: tuple[Row, ...]) -> Candidate:
        """With other common rows; what differs keeps its place, as far as there is one."""
        end = self.at >= len(self.common)
        return replace(self, common=common, at=len(common) if end else min(self.at, len(common)))

    @property
    def key(self) -> str:
        """What tells candidates apart."""
        return repr((self.rows(0), self.rows(1)))

    @property
    def kin(self) -> tuple[int, ...]:
        """None: what a row does to the output depends on which it is."""
        return ()


class Ground(Protocol):
    """A space under a relation: where pairs come from."""

    def catalogue(self, rng: np.random.Generator, *, outside: bool) -> list[Any]:
        """The pairs worth trying first, the most special first."""

    def random(self, rng: np.random.Generator) -> Any:
        """A pair at random."""

    def mutated(self, found: Any, rng: np.random.Generator) -> Any:
        """A pair like this one."""

    def simpler(self, found: Any) -> list[Any]:
        """Pairs that are easier to read, the easiest first."""

    def pair(self, found: Any) -> Pair:
        """The inputs themselves."""
