"""Noise added in floating point and released as it is: correct on paper, broken where it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay.blackbox.zoo.noise import Gaussian, Laplace, shape_of
from dpassay.errors import NoClosedForm
from dpassay.privacy.masses import Masses

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
