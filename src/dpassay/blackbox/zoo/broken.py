"""Mechanisms that give themselves away by failing on one input only.

Noise added in floating point and released as it is: correct on paper, broken where it runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.blackbox.zoo.noise import Gaussian, Laplace, shape_of
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.finite_pairs import Masses
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


# --- noise added in floating point and released as it is


_FLAW = "which doubles come out depends on the input, whatever their values"


class _Naive:
    """What is known of noise in floating point: some doubles come out on one input only."""

    def epsilon(self, pair: Any) -> float:
        """∞ between different inputs."""
        first, second = pair
        return 0.0 if np.array_equal(first, second) else math.inf

    def masses(self, pair: Any) -> Masses:
        """Not known: they depend on how the noise is computed."""
        raise NoClosedForm(f"which doubles {self} returns, and how often, is not known exactly")

    def delta(self, epsilon: Any, pair: Any) -> Any:
        """Not known."""
        return self.masses(pair)

    renyi = tradeoff = delta


@dataclass(frozen=True, repr=False)
class NaiveLaplace(_Naive, Laplace):
    """data + Laplace noise in doubles. `Laplace` is its safe twin, rounded to a grid afterwards."""

    source: ClassVar[str] = "Mironov 2012"
    flaw: ClassVar[str] = _FLAW

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add independent noise to every coordinate."""
        return data + rng.laplace(scale=self.scale, size=shape_of(data, size))


@dataclass(frozen=True, repr=False)
class NaiveGaussian(_Naive, Gaussian):
    """data + Gaussian noise in doubles. `Gaussian` is its safe twin, rounded to a grid afterwards."""

    source: ClassVar[str] = "Mironov 2012; Haney et al. 2022"
    flaw: ClassVar[str] = _FLAW

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add independent noise to every coordinate."""
        return data + rng.normal(scale=self.sigma, size=shape_of(data, size))
