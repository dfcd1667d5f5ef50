"""Private learning in one dimension: noisy gradient descent and a toy DP-SGD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism, on_grid
from dpassay.blackbox.zoo.law import Law, gaussian, mixture
from dpassay.blackbox.zoo.noise import Gaussian
from dpassay.blackbox.zoo.subsampling import one_in_ten
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim, GaussianDP
from dpassay.privacy.pairs import Pair


@dataclass(frozen=True, repr=False)
class NoisyGradientDescent(ZooMechanism):
    """Gradient descent on ½(θ − x)² with N(0, 2·step·sigma²) noise in every step.

    θ_{k+1} = (1 − η) θ_k + η x̄ + √(2η) N(0, σ²): the last iterate is Gaussian.

    >>> round(float(NoisyGradientDescent().renyi(2, one_in_ten())), 6)
    0.007255
    """

    step: float = 0.2
    sigma: float = 1.0
    iterations: int = 10
    source: ClassVar[str] = "Chourasia, Ye & Shokri 2021"

    def __post_init__(self) -> None:
        checks.real("step", self.step, above=0.0, below=2.0)
        checks.real("sigma", self.sigma, above=0.0)
        checks.whole("iterations", self.iterations)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """All iterations, for all outputs at once."""
        mean = float(np.mean(data))
        theta = np.zeros(size)
        for _ in range(self.iterations):
            theta *= 1 - self.step
            theta += rng.normal(self.step * mean, math.sqrt(2 * self.step) * self.sigma, size=size)
        return on_grid(theta, self.sigma)

    def _last(self) -> tuple[float, float]:
        """What the mean is multiplied with, and the standard deviation, of the last iterate."""
        a = 1 - self.step
        spread = 2 * self.step * (1 - a ** (2 * self.iterations)) / (1 - a**2)
        return 1 - a**self.iterations, self.sigma * math.sqrt(spread)

    def _gaussian(self, pair: Any) -> tuple[Gaussian, tuple[float, float]]:
        factor, spread = self._last()
        first, second = (factor * float(np.mean(data)) for data in pair)
        return Gaussian(spread), (first, second)

    @property
    def claim(self) -> Claim:
        """μ for ten records in [0, 1]."""
        inner, moved = self._gaussian(self.pair)
        return GaussianDP(inner.mu(moved))

    @property
    def pair(self) -> Pair:
        """(1, 0, …, 0) against zeros."""
        return one_in_ten()

    def law(self, data: Any) -> Law:
        """Normal."""
        factor, spread = self._last()
        return gaussian(factor * float(np.mean(data)), spread)

    def epsilon(self, pair: Any) -> float:
        """As of a Gaussian."""
        inner, moved = self._gaussian(pair)
        return inner.epsilon(moved)

    def delta(self, epsilon: npt.ArrayLike, pair: Any) -> Any:
        """As of a Gaussian."""
        inner, moved = self._gaussian(pair)
        return inner.delta(epsilon, moved)

    def renyi(self, order: npt.ArrayLike, pair: Any) -> Any:
        """λ(2 − η)(1 − a^K) / (4σ²m²(1 + a^K)) for one record changed by 1."""
        inner, moved = self._gaussian(pair)
        return inner.renyi(order, moved)

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any) -> Any:
        """As of a Gaussian."""
        inner, moved = self._gaussian(pair)
        return inner.tradeoff(alpha, moved)


@dataclass(frozen=True, repr=False)
class ToyDPSGD(ZooMechanism):
    """DP-SGD on ½(θ − x)²: a fresh batch and N(0, sigma²) on the mean gradient in every step.

    The truth is known for (v, 0, …, 0) and zeros: one record is in or out of every batch.

    >>> round(float(ToyDPSGD().tradeoff(0.05, one_in_ten())), 4)
    0.6049
    """

    sigma: float = 0.2
    rate: float = 0.2
    iterations: int = 10
    batch: int = 5
    source: ClassVar[str] = "Abadi et al. 2016; the toy setting of Askin et al. 2025"

    def __post_init__(self) -> None:
        checks.real("sigma", self.sigma, above=0.0)
        checks.real("rate", self.rate, above=0.0, at_most=1.0)
        checks.whole("iterations", self.iterations)
        checks.whole("batch", self.batch)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """All iterations, for all outputs at once."""
        records = np.asarray(data, dtype=float)
        theta = np.zeros(size)
        for _ in range(self.iterations):
            gradient = theta - self._batch_means(records, size, rng)
            theta -= self.rate * (gradient + rng.normal(scale=self.sigma, size=size))
        return on_grid(theta, self.rate * self.sigma)

    def _batch_means(self, records: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        matter = records[records != 0]
        if matter.size == 0:
            return np.zeros(size)
        if matter.size == 1:
            drawn = rng.random(size) < self.batch / records.size
            return np.asarray(drawn * (matter[0] / self.batch))
        order = rng.random(size=(size, records.size)).argpartition(self.batch - 1, axis=1)
        return np.asarray(records[order[:, : self.batch]].mean(axis=1))

    @property
    def pair(self) -> Pair:
        """(1, 0, …, 0) against zeros."""
        return one_in_ten()

    @property
    def _spread(self) -> float:
        a = 1 - self.rate
        return self.rate * self.sigma * math.sqrt((1 - a ** (2 * self.iterations)) / (1 - a**2))

    def _shifts(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """The means μ_I of the mixture and their weights, I the steps that saw the record."""
        records = np.asarray(data, dtype=float)
        matter = records[records != 0]
        if matter.size == 0:
            return np.zeros(1), np.ones(1)
        if matter.size > 1 or self.iterations > 16:
            raise NoClosedForm(f"the truth of {self} is known for one record other than 0")
        share = self.batch / records.size
        means, weights = np.zeros(1), np.ones(1)
        for t in range(self.iterations):
            by = matter[0] * self.rate * (1 - self.rate) ** t / self.batch
            means = np.concatenate([means, means + by])
            weights = np.concatenate([weights * (1 - share), weights * share])
        return means, weights

    def law(self, data: Any) -> Law:
        """A mixture of normals."""
        means, weights = self._shifts(data)
        parts = [
            (float(w), gaussian(float(m), self._spread))
            for m, w in zip(means, weights, strict=True)
        ]
        whole = mixture(parts)
        return Law(whole.cdf, whole.sf, (0.0, float(means.max())), 12 * self._spread, whole.detail)

    def epsilon(self, pair: Any) -> float:
        """0 for equal inputs, else ∞."""
        first, second = (np.asarray(data, dtype=float) for data in pair)
        return 0.0 if np.array_equal(first, second) else math.inf

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any) -> Any:
        """Σ_I w_I Φ(Φ⁻¹(1 − α) − μ_I/σ̄) for zeros as the null hypothesis, which is closed."""
        first, second = (self._shifts(data) for data in pair)
        if second[0].size > 1 or np.any(first[0] < 0):
            return super().tradeoff(alpha, pair)
        a = np.asarray(alpha, dtype=float)
        z = -ndtri(np.atleast_1d(a))[:, None] - first[0][None, :] / self._spread
        value = ndtr(z) @ first[1]
        return value.reshape(a.shape) if a.ndim else float(value[0])
