"""Releases: histograms (with noise, the wrong noise, none), propose-test-release, randomized response.

And broken twins of noise: mechanisms that fail on one input only, and noise as floating point makes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, xlog1py, xlogy

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism, laplace, on_grid, real, whole, with_atom
from dpassay.blackbox.zoo.base import masses as masses_of_laws
from dpassay.blackbox.zoo.noise import Gaussian, Laplace, LaplaceOutputs, shape_of
from dpassay.errors import InvalidInput, NoClosedForm
from dpassay.privacy.claims import ApproximateDP, Claim
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.relations import Pair, Relation

#: Ten bits, the first of them changed: the pair of the experiments.
TEN_BITS = Pair(np.eye(10, dtype=np.int8)[0], np.zeros(10, dtype=np.int8), Relation.REPLACE_ONE)


@dataclass(frozen=True, repr=False, init=False)
class NoisyHistogram(LaplaceOutputs):
    """Laplace noise on every count: scale 1/ε, or ε by mistake (`broken`).

    Correct for adding or removing one record; replacing one costs 2ε.

    >>> NoisyHistogram(0.5).epsilon(([1, 2], [2, 2])), NoisyHistogram(0.5, broken=True).epsilon(
    ...     ([1, 2], [2, 2]))
    (0.5, 2.0)
    """

    epsilon0: float
    broken: bool
    source: ClassVar[str] = "Dwork 2006; Ding et al. 2018 (StatDP), algorithms 9 and 10"
    pair: ClassVar[Pair] = Pair(
        np.array([2, 1, 1, 1, 1]), np.ones(5, dtype=np.int64), Relation.ADD_REMOVE
    )

    def __init__(self, epsilon: float = 0.5, broken: bool = False) -> None:
        self._set(epsilon0=checks.real("epsilon", epsilon, above=0.0), broken=bool(broken))

    @property
    def flaw(self) -> str:  # type: ignore[override]
        flaw = "the noise has scale ε instead of 1/ε: every pair shows it for ε < 1"
        return flaw if self.broken else ""

    @property
    def _noise(self) -> Laplace:
        return Laplace(self.epsilon0 if self.broken else 1 / self.epsilon0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return self._noise(np.asarray(data, dtype=float), size, rng)

    def shifts(self, pair: Any) -> FloatArray:
        return self._noise.shifts(pair)


@dataclass(frozen=True, repr=False)
class NoiselessHistogram(ZooMechanism):
    """The number of ones among `rows` random bits, one of which is the input.

    No noise at all: what hides the input is the randomness of the other records (distributional
    DP). The others are fair coins.

    >>> round(float(NoiselessHistogram(rows=11).delta(0.0, (0, 1))), 6)
    0.246094
    """

    rows: int = whole(10)
    source: ClassVar[str] = "Bassily, Groce, Katz & Smith 2013"
    pair: ClassVar[Pair] = Pair(0, 1, Relation.DISTRIBUTIONAL)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return int(data) + rng.binomial(self.rows - 1, 0.5, size=size)

    def probabilities(self, data: Any) -> FloatArray:
        found = np.zeros(self.rows + 1)
        found[int(data) : int(data) + self.rows] = binomial_masses(self.rows - 1, 0.5)
        return found


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
        value, distance = (float(part) for part in data)
        noise = rng.laplace(scale=1 / self.epsilon0, size=(2, size))
        shown = on_grid(value + noise[1], 1 / self.epsilon0)
        return np.where(distance + noise[0] > self._line, shown, np.nan)

    @property
    def _line(self) -> float:
        return math.log(1 / self.delta0) / self.epsilon0

    @property
    def claim(self) -> Claim:
        return ApproximateDP(2 * self.epsilon0, self.delta0)

    @property
    def pair(self) -> Pair:  # type: ignore[override]
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
        return with_atom([self._silent(data) for data in pair], numbers)


def binomial_masses(n: int, p: npt.ArrayLike) -> FloatArray:
    """P(Bin(n, p) = k) for k = 0…n, along the last axis."""
    k, p = np.arange(n + 1), np.asarray(p)[..., None]
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, p) + xlog1py(n - k, -p)))


@dataclass(frozen=True, repr=False, init=False)
class RandomizedResponse(ZooMechanism):
    """Each bit is kept with probability e^ε/(1 + e^ε) and flipped otherwise (local DP).

    The input is a bit or a vector of bits, the output a matrix of them.

    >>> RandomizedResponse(1.5).epsilon((0, 1))
    1.5
    """

    epsilon0: float
    source: ClassVar[str] = "Warner 1965"
    pair: ClassVar[Pair] = TEN_BITS

    def __init__(self, epsilon: float = 1.5) -> None:
        self._set(epsilon0=checks.real("epsilon", epsilon, at_least=0.0))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        bits = np.asarray(data, dtype=np.int8)
        flips = rng.random(size=(size, *bits.shape)) < expit(-self.epsilon0)
        return bits ^ flips.view(np.int8)

    def masses(self, pair: Any) -> Masses:
        """Only the k changed bits matter, and only how many of them agree with the first input."""
        k = int(np.count_nonzero(np.asarray(pair[0]) != np.asarray(pair[1])))
        lies = binomial_masses(k, float(expit(-self.epsilon0)))
        return Masses(lies, lies[::-1])


@dataclass(frozen=True, repr=False, init=False)
class KaryRandomizedResponse(ZooMechanism):
    """One of k values, kept with probability e^ε/(e^ε + k − 1), else any of the others (local DP).

    >>> round(KaryRandomizedResponse(5, 1.0).epsilon((0, 3)), 9)
    1.0
    """

    k: int
    epsilon0: float
    source: ClassVar[str] = "Kairouz, Oh & Viswanath 2014"
    pair: ClassVar[Pair] = Pair(0, 1, Relation.REPLACE_ONE)

    def __init__(self, k: int = 5, epsilon: float = 1.0) -> None:
        eps = checks.real("epsilon", epsilon, at_least=0.0)
        self._set(k=checks.whole("k", k, at_least=2), epsilon0=eps)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """With some probability, move on by 1…k−1."""
        lie = rng.random(size) >= self._kept
        return (int(data) + lie * rng.integers(1, self.k, size=size)) % self.k

    @property
    def _kept(self) -> float:
        return float(1 / (1 + (self.k - 1) * np.exp(-self.epsilon0)))

    def probabilities(self, data: Any) -> FloatArray:
        if not 0 <= int(data) < self.k:
            raise InvalidInput(f"the input must be one of 0…{self.k - 1}, got {checks.shown(data)}")
        found = np.full(self.k, (1 - self._kept) / (self.k - 1))
        found[int(data)] = self._kept
        return found


@dataclass(frozen=True, repr=False, init=False)
class ShuffledRandomizedResponse(RandomizedResponse):
    """Randomized response on every bit, then shuffled: only the number of ones is released.

    >>> round(ShuffledRandomizedResponse(1.5).epsilon(TEN_BITS), 6)
    1.5
    """

    source: ClassVar[str] = "Girgis, Data, Diggavi, Suresh & Kairouz 2021"
    masses = ZooMechanism.masses

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Flip every bit, then count: what a random order of the bits leaves to see."""
        return super().__call__(data, size, rng).sum(axis=1, dtype=np.int16)

    def probabilities(self, data: Any) -> FloatArray:
        """The sum of two binomials: ones that are kept and zeros that are flipped."""
        bits = np.asarray(data)
        ones = int(bits.sum())
        kept = binomial_masses(ones, float(expit(self.epsilon0)))
        flipped = binomial_masses(bits.size - ones, float(expit(-self.epsilon0)))
        return np.convolve(kept, flipped)


# --- broken twins of noise


@dataclass(frozen=True, repr=False)
class _FailsOnOne(Laplace):
    chance: float = real(0.25, above=0.0, at_most=1.0)
    source: ClassVar[str] = "software as it is"
    epsilon, delta = ZooMechanism.epsilon, ZooMechanism.delta
    renyi, tradeoff = ZooMechanism.renyi, ZooMechanism.tradeoff

    def masses(self, pair: Any) -> Masses:
        """The failure is a cell of its own."""
        chances = [self.chance * (float(data) == 1.0) for data in pair]
        return with_atom(chances, super().masses(pair))


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
    epsilon = ZooMechanism.epsilon

    def masses(self, pair: Any) -> NoReturn:
        """Not known: they depend on how the noise is computed."""
        raise NoClosedForm(f"which doubles {self} returns, and how often, is not known exactly")

    shifts = mu = masses


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
