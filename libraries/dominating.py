"""Compositions that accountants account for, and exact draws from their dominating pairs.

A composition is a list of parts. What is drawn is the privacy loss log p/q of all its releases, of which
every event that tells the inputs apart is a function (Neyman and Pearson): if the claim of an accountant
fails, it fails for this number. Input 1 has the record, input 0 does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from libraries.cases import Case

SOUND = "an accountant gives an upper bound, and the draws are from the dominating pair"
_RNG = np.random.default_rng()


@dataclass(frozen=True)
class Part:
    """Noise of a scale (of a response: the probability of the truth), added to a query of sensitivity 1.

    rate   the probability with which Poisson sampling takes the record
    """

    kind: str  # "Gaussian", "Laplace" or "response"
    scale: float
    times: int = 1
    rate: float = 1.0

    @property
    def name(self) -> str:
        sampled = "" if self.rate == 1 else f" of {self.rate:g}"
        times = "" if self.times == 1 else f" × {self.times}"
        return f"{self.kind} {self.scale:g}{sampled}{times}"

    def losses(self, record: int, size: int) -> Any:
        """The privacy loss of all its releases, `size` times."""
        shape = size, self.times
        x = np.full(shape, float(record)) * (_RNG.random(shape) < self.rate)
        match self.kind:
            case "Gaussian":
                loss = (x + _RNG.normal(scale=self.scale, size=shape) - 0.5) / self.scale**2
            case "Laplace":
                x += _RNG.laplace(scale=self.scale, size=shape)
                loss = (np.abs(x) - np.abs(x - 1)) / self.scale
            case "response":
                truth = _RNG.random(shape) < self.scale
                loss = np.where(truth == (x == 1), 1, -1) * math.log(self.scale / (1 - self.scale))
            case _:
                raise ValueError(f"kind must be Gaussian, Laplace or response, got {self.kind!r}")
        return np.log1p(self.rate * np.expm1(loss)).sum(axis=1)


def gaussians() -> list[list[Part]]:
    """Gaussian noise alone."""
    table = ((1.0, 1), (2.0, 1), (2.0, 4), (4.0, 4), (4.0, 16), (10.0, 50))
    return [[Part("Gaussian", scale, times)] for scale, times in table]


def pure() -> list[list[Part]]:
    """Laplace noise, and randomised response."""
    laplace = ((1.0, 1), (1.0, 3), (4.0, 4), (4.0, 16))
    response = ((0.75, 1), (0.6, 4), (0.6, 10))
    return [
        *([Part("Laplace", scale, times)] for scale, times in laplace),
        *([Part("response", scale, times)] for scale, times in response),
    ]


def sampled() -> list[list[Part]]:
    """Gaussian noise on Poisson samples."""
    table = ((0.8, 0.1), (1.5, 0.3), (3.0, 0.5))
    return [[Part("Gaussian", s, t, rate)] for s, rate in table for t in (1, 20)]


def mixed() -> list[list[Part]]:
    """Different noise, one after the other."""
    return [
        [Part("Gaussian", 2.0, 4), Part("Laplace", 4.0, 4)],
        [Part("Gaussian", 1.5, 10, 0.2), Part("Gaussian", 4.0, 4)],
    ]


def cases(
    accountant: str,
    api: str,
    compositions: Sequence[Sequence[Part]],
    epsilon: Callable[[Sequence[Part], float], float],
    said: str,
    deltas: Sequence[float] = (1e-2, 1e-3),
    sound: str = SOUND,
) -> Iterator[Case]:
    """A case for every composition and δ, with the ε that the accountant gives."""
    for parts in compositions:
        name = " and ".join(part.name for part in parts)
        sampling = any(part.rate < 1 for part in parts)
        for delta in deltas:
            given = float(epsilon(parts, delta))
            words = f"{said}: ε = {given:.4g} at δ = {delta:g}"
            yield Case(
                f"{accountant}, {name}, δ = {delta:g}",
                api,
                _drawn(parts),
                (1, 0),
                f"eps={max(given, 0.0)!r}, delta={delta!r}",
                words,
                "add_remove" if sampling else "sensitivity_one",
                n=20_000,
                group="accountant",
                sound=sound,
                look="values",
                vectorised=True,
                shown="with the record, and without",
            )


def _drawn(parts: Sequence[Part]) -> Callable[[int, int], Any]:
    def losses(record: int, size: int) -> Any:
        return np.round(sum(part.losses(record, size) for part in parts), 9)

    return losses
