"""Propose-test-release: a number, or nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import checks
from dpassay.blackbox.zoo.base import ZooMechanism, on_grid
from dpassay.blackbox.zoo.law import laplace
from dpassay.blackbox.zoo.law import masses as masses_of_laws
from dpassay.privacy.claims import ApproximateDP, Claim
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair


@dataclass(frozen=True, repr=False, init=False)
class ProposeTestRelease(ZooMechanism):
    """Release a value with noise for a proposed sensitivity, if that is safe; else nothing (NaN).

    The input is (value, distance): the value of the query on the database, and how many records lie
    between the database and one where the proposed sensitivity of 1 fails. With T = log(1/δ)/ε,

        distance + Lap(1/ε) ≤ T  →  NaN,      otherwise  →  value + Lap(1/ε).

    >>> ptr = ProposeTestRelease(epsilon=0.5, delta=0.01)
    >>> ptr.claim
    ApproximateDP(epsilon=1.0, delta=0.01)
    """

    epsilon0: float
    delta0: float
    source: ClassVar[str] = "Dwork & Lei 2009"

    def __init__(self, epsilon: float = 0.5, delta: float = 0.01) -> None:
        self._set(epsilon0=checks.real("epsilon", epsilon, above=0.0))
        self._set(delta0=checks.probability("delta", delta))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Test, then release."""
        value, distance = (float(part) for part in data)
        noise = rng.laplace(scale=1 / self.epsilon0, size=(2, size))
        shown = on_grid(value + noise[1], 1 / self.epsilon0)
        return np.where(distance + noise[0] > self._line, shown, np.nan)

    @property
    def _line(self) -> float:
        return math.log(1 / self.delta0) / self.epsilon0

    @property
    def claim(self) -> Claim:
        """(2ε, δ)."""
        return ApproximateDP(2 * self.epsilon0, self.delta0)

    @property
    def pair(self) -> Pair:
        """Values and distances one apart, near the line."""
        near = round(self._line)
        return Pair((0.0, near), (1.0, near + 1))

    def _silent(self, data: Any) -> float:
        law = laplace(float(data[1]), 1 / self.epsilon0)
        return float(law.cdf(np.array([self._line]))[0])

    def masses(self, pair: Any) -> Masses:
        """Nothing is one cell; the cells of the value carry the rest."""
        first, second = pair
        by = abs(float(first[0]) - float(second[0]))
        numbers = masses_of_laws(laplace(0.0, 1 / self.epsilon0), laplace(by, 1 / self.epsilon0))
        silent = [self._silent(data) for data in pair]
        return Masses(
            np.concatenate([[silent[0]], (1 - silent[0]) * numbers.p]),
            np.concatenate([[silent[1]], (1 - silent[1]) * numbers.q]),
        )

    def epsilon(self, pair: Any) -> float:
        """The larger of silence and of speaking plus the number."""
        first, second = pair
        by = abs(float(first[0]) - float(second[0])) * self.epsilon0
        a, b = (self._silent(data) for data in pair)
        speak = abs(math.log((1 - a) / (1 - b)))
        return max(abs(math.log(a / b)), speak + by)
