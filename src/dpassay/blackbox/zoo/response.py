"""Randomized response: on bits, on k values, and shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, gammaln

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair, Relation


def ten_bits() -> Pair:
    """Ten bits, the first of them changed: the pair of the experiments."""
    first, second = np.zeros((2, 10), dtype=np.int8)
    first[0] = 1
    return Pair(first, second, Relation.REPLACE_ONE)


def binomial_masses(n: int, p: float) -> FloatArray:
    """P(Bin(n, p) = k) for k = 0…n."""
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = ways + np.where(k > 0, k * np.log(p), 0.0)
        log_mass = log_mass + np.where(k < n, (n - k) * np.log1p(-p), 0.0)
    return np.asarray(np.exp(log_mass))


@dataclass(frozen=True, repr=False, init=False)
class RandomizedResponse(ZooMechanism):
    """Each bit is told truly with probability e^ε/(1 + e^ε) and flipped otherwise.

    The input is a bit or a vector of bits, the output a matrix of them.

    >>> RandomizedResponse(1.5).epsilon((0, 1))
    1.5
    """

    epsilon0: float
    source: ClassVar[str] = "Warner 1965"

    def __init__(self, epsilon: float = 1.5) -> None:
        self._set(epsilon0=checks.real("epsilon", epsilon, at_least=0.0))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Flip every bit on its own."""
        bits = np.asarray(data, dtype=np.int8)
        flips = rng.random(size=(size, *bits.shape)) < expit(-self.epsilon0)
        return bits ^ flips.view(np.int8)

    @property
    def claim(self) -> Claim:
        """ε for one changed bit."""
        return PureDP(self.epsilon0)

    @property
    def pair(self) -> Pair:
        """Ten bits, one of them changed."""
        return ten_bits()

    def masses(self, pair: Any) -> Masses:
        """Only the k changed bits matter, and only how many of them agree with the first input."""
        k = self._changed(pair)
        lies = binomial_masses(k, float(expit(-self.epsilon0)))
        return Masses(lies, lies[::-1])

    def _changed(self, pair: Any) -> int:
        return int(np.count_nonzero(np.asarray(pair[0]) != np.asarray(pair[1])))

    def epsilon(self, pair: Any) -> float:
        """ε times the number of changed bits."""
        return self.epsilon0 * self._changed(pair)


@dataclass(frozen=True, repr=False, init=False)
class KaryRandomizedResponse(ZooMechanism):
    """One of k values, told truly with probability e^ε/(e^ε + k − 1), else any of the others.

    >>> round(KaryRandomizedResponse(5, 1.0).epsilon((0, 3)), 9)
    1.0
    """

    k: int
    epsilon0: float
    source: ClassVar[str] = "Kairouz, Oh & Viswanath 2014"

    def __init__(self, k: int = 5, epsilon: float = 1.0) -> None:
        self._set(k=checks.whole("k", k, at_least=2))
        self._set(epsilon0=checks.real("epsilon", epsilon, at_least=0.0))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """With some probability, move on by 1…k−1."""
        lie = rng.random(size) >= self._truth
        return (int(data) + lie * rng.integers(1, self.k, size=size)) % self.k

    @property
    def _truth(self) -> float:
        return float(1 / (1 + (self.k - 1) * np.exp(-self.epsilon0)))

    @property
    def claim(self) -> Claim:
        """ε."""
        return PureDP(self.epsilon0)

    @property
    def pair(self) -> Pair:
        """Two of the values."""
        return Pair(0, 1, Relation.REPLACE_ONE)

    def masses(self, pair: Any) -> Masses:
        """All k outputs."""
        other = (1 - self._truth) / (self.k - 1)
        rows = []
        for data in pair:
            if not 0 <= int(data) < self.k:
                raise InvalidInput(f"the input must be one of 0…{self.k - 1}, got {data!r}")
            row = np.full(self.k, other)
            row[int(data)] = self._truth
            rows.append(row)
        return Masses(*rows)


@dataclass(frozen=True, repr=False, init=False)
class ShuffledRandomizedResponse(ZooMechanism):
    """Randomized response on every bit, then shuffled: only the number of ones is left.

    >>> round(ShuffledRandomizedResponse(1.5).epsilon(ten_bits()), 6)
    1.5
    """

    epsilon0: float
    source: ClassVar[str] = "Girgis, Data, Diggavi, Suresh & Kairouz 2021"

    def __init__(self, epsilon: float = 1.5) -> None:
        self._set(epsilon0=checks.real("epsilon", epsilon, at_least=0.0))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Flip every bit, then count: what a random order of the bits leaves to see."""
        return RandomizedResponse(self.epsilon0)(data, size, rng).sum(axis=1, dtype=np.int16)

    @property
    def claim(self) -> Claim:
        """ε for one changed bit, as before shuffling."""
        return PureDP(self.epsilon0)

    @property
    def pair(self) -> Pair:
        """Ten bits, one of them changed."""
        return ten_bits()

    def masses(self, pair: Any) -> Masses:
        """The sum of two binomials, ones told truly and zeros told wrongly."""
        rows = []
        for data in pair:
            bits = np.asarray(data)
            ones = int(bits.sum())
            true = binomial_masses(ones, float(expit(self.epsilon0)))
            rows.append(
                np.convolve(true, binomial_masses(bits.size - ones, float(expit(-self.epsilon0))))
            )
        return Masses(*rows)
