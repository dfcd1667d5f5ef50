"""The exponential mechanism, on a half-line and on counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism, on_grid
from dpassay.blackbox.zoo.law import Law
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair, Relation


@dataclass(frozen=True, repr=False)
class ContinuousExponential(ZooMechanism):
    """An output t ≥ 0 with density ∝ e^{−rate·|s − t|} for an input s in [1, 2].

    >>> round(ContinuousExponential(rate=1.0).epsilon((1.0, 2.0)), 4)
    1.1332
    """

    rate: float = 1.0
    source: ClassVar[str] = "McSherry & Talwar 2007; Askin, Kutta & Dette"

    def __post_init__(self) -> None:
        checks.real("rate", self.rate, above=0.0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """By inversion."""
        s, lam = float(data), self.rate
        whole = 2 - math.exp(-lam * s)
        u = rng.random(size) * whole
        below = u < whole - 1  # left of s the mass is 1 − e^{−λs}
        left = s + np.log(np.where(below, u, 0.0) + math.exp(-lam * s)) / lam
        right = s - np.log(np.where(below, 1.0, whole - u)) / lam
        return on_grid(np.where(below, left, right), 1 / lam)

    @property
    def claim(self) -> Claim:
        """The exact ε on [1, 2]: λ + ln(2 − e^{−2λ}) − ln(2 − e^{−λ})."""
        lam = self.rate
        return PureDP(lam + math.log(2 - math.exp(-2 * lam)) - math.log(2 - math.exp(-lam)))

    @property
    def pair(self) -> Pair:
        """The ends of the input range."""
        return Pair(1.0, 2.0)

    def epsilon(self, pair: Any) -> float:
        """λ|s − s'| plus the log-ratio of the two normalising constants."""
        s, other = (float(data) for data in pair)
        lam = self.rate
        constants = math.log((2 - math.exp(-lam * other)) / (2 - math.exp(-lam * s)))
        return lam * abs(s - other) + abs(constants)

    def law(self, data: Any) -> Law:
        """Exponential on either side of s, cut at 0."""
        s, lam = float(data), self.rate
        whole = 2 - math.exp(-lam * s)

        def cdf(t: FloatArray) -> FloatArray:
            left = np.exp(lam * (np.minimum(t, s) - s)) - math.exp(-lam * s)
            right = 2 - math.exp(-lam * s) - np.exp(-lam * np.maximum(t - s, 0))
            return np.where(t <= 0, 0.0, np.where(t < s, left, right) / whole)

        def sf(t: FloatArray) -> FloatArray:
            return np.where(t < s, 1 - cdf(t), np.exp(-lam * np.maximum(t - s, 0.0)) / whole)

        return Law(cdf, sf, (0.0, s), 0.0)


@dataclass(frozen=True, repr=False, init=False)
class ExponentialCounting(ZooMechanism):
    """A noisy count of ones: r in 0…most with probability ∝ e^{−ε|count − r|/2}.

    The input is a database of zeros and ones.

    >>> round(ExponentialCounting(epsilon=2.0).epsilon(([0, 1, 1], [0, 1])), 4)
    1.0
    """

    epsilon0: float
    most: int
    source: ClassVar[str] = "McSherry & Talwar 2007; Dwork & Roth 2014"

    def __init__(self, epsilon: float = 2.0, most: int = 3) -> None:
        self._set(epsilon0=checks.real("epsilon", epsilon, above=0.0))
        self._set(most=checks.whole("most", most))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Draw from the finite distribution."""
        return rng.choice(self.most + 1, size=size, p=self._probabilities(data))

    def _probabilities(self, data: Any) -> FloatArray:
        count = int(np.sum(data))
        weight = np.exp(-self.epsilon0 * np.abs(count - np.arange(self.most + 1)) / 2)
        return np.asarray(weight / weight.sum())

    @property
    def claim(self) -> Claim:
        """ε."""
        return PureDP(self.epsilon0)

    @property
    def pair(self) -> Pair:
        """Three rows, one of them removed."""
        return Pair([0, 1, 1], [0, 1], Relation.ADD_REMOVE)

    def masses(self, pair: Any) -> Masses:
        """All outputs."""
        return Masses(*(self._probabilities(data) for data in pair))
