"""Mechanisms that give themselves away by failing on one input only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import checks
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.blackbox.zoo.noise import Laplace
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair, Relation


@dataclass(frozen=True, repr=False)
class _FailsOnOne(ZooMechanism):
    scale: float = 1.0
    chance: float = 0.25
    source: ClassVar[str] = "software as it is"

    def __post_init__(self) -> None:
        checks.real("scale", self.scale, above=0.0)
        checks.real("chance", self.chance, above=0.0, at_most=1.0)

    @property
    def claim(self) -> Claim:
        """ε = 1/scale."""
        return PureDP(1.0 / self.scale)

    @property
    def pair(self) -> Pair:
        """It fails on 1 and not on 0."""
        return Pair(0.0, 1.0, Relation.SENSITIVITY_ONE)

    def masses(self, pair: Any) -> Masses:
        """The failure is a cell of its own."""
        numbers = Laplace(self.scale).masses(pair)
        fail = [self.chance * (float(data) == 1.0) for data in pair]
        return Masses(
            np.concatenate([[fail[0]], (1 - fail[0]) * numbers.p]),
            np.concatenate([[fail[1]], (1 - fail[1]) * numbers.q]),
        )

    def epsilon(self, pair: Any) -> float:
        """∞ if the mechanism fails on one of the two inputs only."""
        first, second = (float(data) for data in pair)
        if (first == 1.0) != (second == 1.0):
            return math.inf
        return Laplace(self.scale).epsilon(pair)


@dataclass(frozen=True, repr=False)
class RaisesOnOne(_FailsOnOne):
    """Laplace noise, but on input 1 it raises now and then. Audit with on_error="outcome"."""

    flaw: ClassVar[str] = "it raises on input 1 only"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Raise if any of the outputs would."""
        if float(data) == 1.0 and np.any(rng.random(size) < self.chance):
            raise ValueError("cannot process 1")
        return Laplace(self.scale)(data, size, rng)


@dataclass(frozen=True, repr=False)
class StringOnOne(_FailsOnOne):
    """Laplace noise, but on input 1 it returns the word "error" now and then."""

    flaw: ClassVar[str] = "it returns a string on input 1 only"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Replace some outputs by a word."""
        out = Laplace(self.scale)(data, size, rng).astype(object)
        if float(data) == 1.0:
            out[rng.random(size) < self.chance] = "error"
        return out
