"""Broken twins: mechanisms that fail on one input only, and noise released as floating point makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay.blackbox.zoo.base import Truth, real, with_atom
from dpassay.blackbox.zoo.noise import Gaussian, Laplace, shape_of
from dpassay.errors import NoClosedForm
from dpassay.privacy.finite_pairs import Masses


@dataclass(frozen=True, repr=False)
class _FailsOnOne(Laplace):
    chance: float = real(0.25, above=0.0, at_most=1.0)
    source: ClassVar[str] = "software as it is"

    def masses(self, pair: Any) -> Masses:
        """The failure is a cell of its own."""
        chances = [self.chance * (float(data) == 1.0) for data in pair]
        return with_atom(chances, super().masses(pair))

    def truth(self, pair: Any) -> Truth:
        return self.masses(pair)


@dataclass(frozen=True, repr=False)
class RaisesOnOne(_FailsOnOne):
    """Laplace noise, but on input 1 it raises now and then. Audit with on_error="outcome"."""

    flaw: ClassVar[str] = "it raises on input 1 only"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        if float(data) == 1.0 and np.any(rng.random(size) < self.chance):
            raise ValueError("cannot process 1")
        return super().__call__(data, size, rng)


@dataclass(frozen=True, repr=False)
class StringOnOne(_FailsOnOne):
    """Laplace noise, but on input 1 it returns the word "error" now and then."""

    flaw: ClassVar[str] = "it returns a string on input 1 only"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        out = super().__call__(data, size, rng).astype(object)
        if float(data) == 1.0:
            out[rng.random(size) < self.chance] = "error"
        return out


class _Naive:
    """Noise added in floating point: some doubles come out on one input only, so that ε = ∞."""

    flaw: ClassVar[str] = "which doubles come out depends on the input, whatever their values"
    unbounded: ClassVar[bool] = True

    def masses(self, pair: Any) -> Masses:
        """Not known: they depend on how the noise is computed."""
        raise NoClosedForm(f"which doubles {self} returns, and how often, is not known exactly")

    truth = masses


@dataclass(frozen=True, repr=False)
class NaiveLaplace(_Naive, Laplace):
    """data + Laplace noise in doubles. `Laplace` is its safe twin, rounded to a grid afterwards."""

    source: ClassVar[str] = "Mironov 2012"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return data + rng.laplace(scale=self.scale, size=shape_of(data, size))


@dataclass(frozen=True, repr=False)
class NaiveGaussian(_Naive, Gaussian):
    """data + Gaussian noise in doubles. `Gaussian` is its safe twin, rounded to a grid afterwards."""

    source: ClassVar[str] = "Mironov 2012; Haney et al. 2022"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return data + rng.normal(scale=self.sigma, size=shape_of(data, size))
