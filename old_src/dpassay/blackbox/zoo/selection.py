"""Selection: noisy maximum (the index, correctly, or the value, incorrectly), exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import (
    Law,
    ZooMechanism,
    laplace,
    on_grid,
    panels,
    real,
    truncated,
    whole,
)
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.relations import Pair, Relation


def log_laplace_cdf(t: FloatArray) -> FloatArray:
    """log F of the standard Laplace distribution, accurate in both tails."""
    with np.errstate(over="ignore"):
        return np.where(t < 0, t - np.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(t, 0.0))))


def log_exponential_cdf(t: FloatArray) -> FloatArray:
    """log F of the standard exponential distribution, accurate in both tails."""
    t = np.maximum(t, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(t < 1, np.log(-np.expm1(-t)), np.log1p(-np.exp(-t)))


def max_law(values: FloatArray, scale: float, laplace: bool) -> Law:
    """The largest of several values with independent noise: F = Π F_i."""
    log_cdf = log_laplace_cdf if laplace else log_exponential_cdf

    def log_product(t: FloatArray) -> FloatArray:
        return np.asarray(np.sum([log_cdf((t - v) / scale) for v in values], axis=0))

    return Law(
        lambda t: np.asarray(np.exp(log_product(t))),
        lambda t: np.asarray(-np.expm1(log_product(t))),
        tuple(sorted(set(values.tolist()))),
        50 * scale,
    )


_FLAWS = {
    7: "it releases the value: kε/2 where all k answers move, so k ≥ 3 shows it",
    8: "its value is never below the largest answer: any pair that moves it shows it",
}


@dataclass(frozen=True, repr=False, init=False)
class ReportNoisyMax(ZooMechanism):
    """Noisy maximum of query answers, in the numbering of StatDP.

    variant 5   the index of the maximum, Laplace(2/ε) noise — correct
    variant 6   the index, exponential(2/ε) noise — correct
    variant 7   the *value* of the maximum, Laplace(2/ε) noise — kε/2, broken for k ≥ 3 queries
    variant 8   the value, exponential(2/ε) noise — broken

    >>> nm = ReportNoisyMax(epsilon=1.5)
    >>> round(nm.epsilon(([1, 1, 1, 1, 1, 1], [0, 2, 2, 2, 2, 2])), 4)
    1.4922
    """

    epsilon0: float
    variant: int
    source: ClassVar[str] = "Dwork & Roth 2014; Ding et al. 2018 (StatDP), algorithms 5–8"

    def __init__(self, epsilon: float = 1.5, variant: int = 5) -> None:
        eps = checks.real("epsilon", epsilon, above=0.0)
        if variant not in (5, 6, 7, 8):
            raise InvalidInput(f"variant must be 5, 6, 7 or 8, got {checks.shown(variant)}")
        self._set(epsilon0=eps, variant=variant)

    @property
    def flaw(self) -> str:  # type: ignore[override]
        return _FLAWS.get(self.variant, "")

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        answers = np.asarray(data, dtype=float)
        shape, scale = (size, answers.size), 2 / self.epsilon0
        laplace = self.variant in (5, 7)
        noise = rng.laplace(scale=scale, size=shape) if laplace else rng.exponential(scale, shape)
        noise += answers
        return noise.argmax(axis=1) if self.variant < 7 else on_grid(noise.max(axis=1), scale)

    @property
    def pair(self) -> Pair:  # type: ignore[override]
        """Six queries: all above but one; for the values, all above."""
        ones = np.ones(6, dtype=np.int64)
        other = np.array([0, 2, 2, 2, 2, 2]) if self.variant < 7 else 2 * ones
        return Pair(ones, other, Relation.SENSITIVITY_ONE)

    def law(self, data: Any) -> Law:
        return max_law(np.asarray(data, float), 2 / self.epsilon0, self.variant == 7)

    def epsilon(self, pair: Any = None) -> float:
        if self.variant != 8:
            return super().epsilon(pair)
        # the density starts at the largest answer, like Π F(top − q_j) t^{ties − 1}
        starts = []
        for data in self._inputs(pair):
            answers = np.asarray(data, dtype=float)
            below = answers[answers < answers.max()]
            log_height = log_exponential_cdf((answers.max() - below) * self.epsilon0 / 2).sum()
            starts.append((answers.max(), answers.size - below.size, float(log_height)))
        if starts[0][:2] != starts[1][:2]:
            return math.inf
        return max(super().epsilon(pair), abs(starts[0][2] - starts[1][2]))

    def probabilities(self, data: Any) -> FloatArray | None:
        """Of each index, P(i) = ∫ f(t − q_i) Π_{j≠i} F(t − q_j) dt by quadrature."""
        if self.variant >= 7:
            return None
        scaled = np.asarray(data, dtype=float) * self.epsilon0 / 2
        laplace = self.variant == 5

        # beyond 45 scales the tails hold less than 1e-19; exponential noise is never negative
        top = scaled.max()
        breaks = scaled if laplace else np.array([top, top + 45])
        nodes, weights = panels(breaks, reach=45.0 if laplace else 0.0, width=1.0)
        z = nodes[None, :] - scaled[:, None]
        log_cdf = log_laplace_cdf(z) if laplace else log_exponential_cdf(z)
        log_pdf = -np.abs(z) - (math.log(2.0) if laplace else 0.0)
        rest = [np.delete(log_cdf, i, axis=0).sum(axis=0) for i in range(scaled.size)]
        probabilities = np.exp(log_pdf + np.array(rest)) @ weights
        return np.asarray(probabilities / probabilities.sum())


@dataclass(frozen=True, repr=False)
class ContinuousNoisyMax(ZooMechanism):
    """The largest of k numbers in [0, 1] after Laplace(1/rate) noise; exactly k·rate.

    >>> round(ContinuousNoisyMax(0.5).epsilon(([0, 0, 0], [1, 1, 1])), 6)
    1.5
    """

    rate: float = real(0.5, above=0.0)
    numbers: int = whole(3)
    source: ClassVar[str] = "Ding et al. 2018; Askin, Kutta & Dette, example 1"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        values = np.asarray(data, dtype=float)
        noise = rng.laplace(scale=1 / self.rate, size=(size, values.size))
        return on_grid((values + noise).max(axis=1), 1 / self.rate)

    @property
    def claim(self) -> Claim:
        return PureDP(self.numbers * self.rate)

    @property
    def pair(self) -> Pair:  # type: ignore[override]
        return Pair(np.zeros(self.numbers), np.ones(self.numbers))

    def law(self, data: Any) -> Law:
        return max_law(np.asarray(data, float), 1 / self.rate, laplace=True)


@dataclass(frozen=True, repr=False)
class ContinuousExponential(ZooMechanism):
    """An output t ≥ 0 with density ∝ e^{−rate·|s − t|} for an input s in [1, 2].

    >>> round(ContinuousExponential(rate=1.0).epsilon((1.0, 2.0)), 4)
    1.1332
    """

    rate: float = real(1.0, above=0.0)
    source: ClassVar[str] = "McSherry & Talwar 2007; Askin, Kutta & Dette"
    pair: ClassVar[Pair] = Pair(1.0, 2.0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        s, lam = float(data), self.rate
        whole = 2 - math.exp(-lam * s)
        u = rng.random(size) * whole
        below = u < whole - 1  # left of s the mass is 1 − e^{−λs}
        left = s + np.log(np.where(below, u, 0.0) + math.exp(-lam * s)) / lam
        right = s - np.log(np.where(below, 1.0, whole - u)) / lam
        return on_grid(np.where(below, left, right), 1 / lam)

    @property
    def claim(self) -> Claim:
        """The exact ε on [1, 2]."""
        return PureDP(self.epsilon(self.pair))

    def law(self, data: Any) -> Law:
        return truncated(laplace(float(data), 1 / self.rate), 0.0)


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
    pair: ClassVar[Pair] = Pair([0, 1, 1], [0, 1], Relation.ADD_REMOVE)

    def __init__(self, epsilon: float = 2.0, most: int = 3) -> None:
        eps = checks.real("epsilon", epsilon, above=0.0)
        self._set(epsilon0=eps, most=checks.whole("most", most))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return rng.choice(self.most + 1, size=size, p=self.probabilities(data))

    def probabilities(self, data: Any) -> FloatArray:
        count = int(np.sum(data))
        weight = np.exp(-self.epsilon0 * np.abs(count - np.arange(self.most + 1)) / 2)
        return np.asarray(weight / weight.sum())
