"""Noisy maximum: the index, correctly, or the value, incorrectly.

The exponential mechanism, on a half-line and on counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import Law, ZooMechanism, integrate, on_grid
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.pairs import Pair, Relation


def log_laplace_cdf(t: FloatArray) -> FloatArray:
    """log F of the standard Laplace distribution, accurate in both tails."""
    with np.errstate(over="ignore"):
        return np.where(t < 0, t - np.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(t, 0.0))))


def log_exponential_cdf(t: FloatArray) -> FloatArray:
    """log F of the standard exponential distribution."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-np.maximum(t, 0.0))))


def max_law(values: FloatArray, scale: float, laplace: bool) -> Law:
    """The largest of several values with independent noise: F = Π F_i."""
    log_cdf = log_laplace_cdf if laplace else log_exponential_cdf

    def log_product(t: FloatArray) -> FloatArray:
        return np.asarray(np.sum([log_cdf((t - v) / scale) for v in values], axis=0))

    def cdf(t: FloatArray) -> FloatArray:
        return np.asarray(np.exp(log_product(t)))

    def sf(t: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(log_product(t)))

    return Law(cdf, sf, tuple(sorted(set(values.tolist()))), 50 * scale)


def max_epsilon(first: FloatArray, second: FloatArray, scale: float, laplace: bool) -> float:
    """sup |log ratio| of the densities of two noisy maxima: on a fine grid and in both tails."""
    if not laplace and first.max() != second.max():
        return math.inf  # exponential noise never lies below the largest value
    low = min(first.min(), second.min()) if laplace else first.max()
    high = max(first.max(), second.max())
    # below all values the density of Laplace noise is a product of exponentials: a constant ratio
    t = np.linspace(low, high + 40 * scale, 400_001)[0 if laplace else 1 :]
    log_ratio = _log_density(t, first, scale, laplace) - _log_density(t, second, scale, laplace)
    return float(np.max(np.abs(log_ratio)))


def _log_density(t: FloatArray, values: FloatArray, scale: float, laplace: bool) -> FloatArray:
    z = (t[None, :] - values[:, None]) / scale
    log_cdf = log_laplace_cdf(z) if laplace else log_exponential_cdf(z)
    log_pdf = -np.abs(z) - (math.log(2.0) if laplace else 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.logaddexp.reduce(log_pdf - log_cdf, axis=0) + log_cdf.sum(axis=0))


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
        self._set(epsilon0=checks.real("epsilon", epsilon, above=0.0))
        if variant not in (5, 6, 7, 8):
            raise InvalidInput(f"variant must be 5, 6, 7 or 8, got {checks.shown(variant)}")
        self._set(variant=variant)

    @property
    def flaw(self) -> str:  # type: ignore[override]
        """Releasing the value."""
        match self.variant:
            case 7:
                return "it releases the value: kε/2 where all k answers move, so k ≥ 3 shows it"
            case 8:
                return (
                    "its value is never below the largest answer: any pair that moves it shows it"
                )
            case _:
                return ""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add noise to every answer, return the place or the value of the largest."""
        answers = np.asarray(data, dtype=float)
        shape, scale = (size, answers.size), 2 / self.epsilon0
        laplace = self.variant in (5, 7)
        noise = rng.laplace(scale=scale, size=shape) if laplace else rng.exponential(scale, shape)
        noise += answers
        return noise.argmax(axis=1) if self.variant < 7 else on_grid(noise.max(axis=1), scale)

    @property
    def claim(self) -> Claim:
        """ε."""
        return PureDP(self.epsilon0)

    @property
    def pair(self) -> Pair:
        """Six queries: all above but one; for the values, all above."""
        ones = np.ones(6, dtype=np.int64)
        other = np.array([0, 2, 2, 2, 2, 2]) if self.variant < 7 else 2 * ones
        return Pair(ones, other, Relation.SENSITIVITY_ONE)

    def law(self, data: Any) -> Law:
        """The distribution of the value."""
        return max_law(np.asarray(data, float), 2 / self.epsilon0, self.variant == 7)

    def masses(self, pair: Any) -> Masses:
        """P(i) = ∫ f(t − q_i) Π_{j≠i} F(t − q_j) dt by quadrature, or the cells of the value."""
        if self.variant >= 7:
            return super().masses(pair)
        return Masses(*(self.probabilities(data) for data in pair))

    def probabilities(self, data: Any) -> FloatArray:
        """The probability of each index."""
        scaled = np.asarray(data, dtype=float) * self.epsilon0 / 2
        laplace = self.variant == 5

        def integrand(t: FloatArray) -> FloatArray:
            z = t[None, :] - scaled[:, None]
            log_cdf = log_laplace_cdf(z) if laplace else log_exponential_cdf(z)
            log_pdf = -np.abs(z) - (math.log(2.0) if laplace else 0.0)
            rest = [np.delete(log_cdf, i, axis=0).sum(axis=0) for i in range(scaled.size)]
            return np.asarray(np.exp(log_pdf + np.array(rest)))

        # beyond 45 scales the tails hold less than 1e-19; exponential noise is never negative
        top = scaled.max()
        breaks = scaled if laplace else np.array([top, top + 45])
        probabilities = integrate(integrand, breaks, reach=45.0 if laplace else 0.0, width=1.0)
        return np.asarray(probabilities / probabilities.sum())

    def epsilon(self, pair: Any) -> float:
        """The largest log-ratio of index probabilities, or of value densities."""
        if self.variant < 7:
            return self.masses(pair).epsilon()
        first, second = (np.asarray(data, dtype=float) for data in pair)
        return max_epsilon(first, second, 2 / self.epsilon0, self.variant == 7)


@dataclass(frozen=True, repr=False)
class ContinuousNoisyMax(ZooMechanism):
    """The largest of k numbers in [0, 1] after Laplace(1/rate) noise; exactly k·rate.

    >>> round(ContinuousNoisyMax(0.5).epsilon(([0, 0, 0], [1, 1, 1])), 6)
    1.5
    """

    rate: float = 0.5
    numbers: int = 3
    source: ClassVar[str] = "Ding et al. 2018; Askin, Kutta & Dette, example 1"

    def __post_init__(self) -> None:
        checks.real("rate", self.rate, above=0.0)
        checks.whole("numbers", self.numbers)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add noise to every number, return the largest."""
        values = np.asarray(data, dtype=float)
        noise = rng.laplace(scale=1 / self.rate, size=(size, values.size))
        return on_grid((values + noise).max(axis=1), 1 / self.rate)

    @property
    def claim(self) -> Claim:
        """k·rate."""
        return PureDP(self.numbers * self.rate)

    @property
    def pair(self) -> Pair:
        """All zeros against all ones."""
        return Pair(np.zeros(self.numbers), np.ones(self.numbers))

    def law(self, data: Any) -> Law:
        """The distribution of the largest."""
        return max_law(np.asarray(data, float), 1 / self.rate, laplace=True)

    def epsilon(self, pair: Any) -> float:
        """The largest log-ratio of the densities."""
        first, second = (np.asarray(data, dtype=float) for data in pair)
        return max_epsilon(first, second, 1 / self.rate, laplace=True)


# --- the exponential mechanism, on a half-line and on counts


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
