"""Subsampling (Poisson or of fixed size) before an inner mechanism; private learning in one dimension.

The mechanisms named Torch… draw their noise with PyTorch, on any of its devices: how a mechanism with a
generator of its own uses `rng`. The generator is seeded anew in every call, from the `rng` of that call:
streams stay independent, and a seed gives the same draws on the same device. Outputs stay on the device.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay._typing import FloatArray
from dpassay.blackbox.zoo import base
from dpassay.blackbox.zoo.base import Law, ZooMechanism, gaussian, on_grid, real, whole
from dpassay.blackbox.zoo.noise import Gaussian, GaussianOutputs, Laplace, shape_of
from dpassay.errors import MissingExtra, NoClosedForm
from dpassay.privacy.claims import Claim, GaussianDP, TradeoffDP
from dpassay.privacy.relations import Pair, Relation

#: (1, 0, …, 0) against ten zeros: the pair of the experiments.
ONE_IN_TEN = Pair(np.eye(10)[0], np.zeros(10), Relation.REPLACE_ONE)


def on_sums(inner: Any, sums: FloatArray, rng: np.random.Generator) -> Any:
    """One output of `inner` on each of the sums, drawn in groups of equal sums."""
    values, group = np.unique(sums, return_inverse=True)
    out: Any = None
    for index, value in enumerate(values):
        places = np.flatnonzero(group == index)
        drawn = np.asarray(inner(value, places.size, rng))
        if out is None:
            out = np.empty((sums.size, *drawn.shape[1:]), dtype=drawn.dtype)
        out[places] = drawn
    return out


def subset_sums(records: FloatArray, m: int, size: int, rng: np.random.Generator) -> FloatArray:
    """The sums of `m` records drawn without replacement, `size` times."""
    matter = records[records != 0]
    if matter.size == 0:
        return np.zeros(size)
    if matter.size == 1:  # a single record matters: it is in with probability m/r
        return np.asarray((rng.random(size) < m / records.size) * matter[0])
    order = rng.random(size=(size, records.size)).argpartition(m - 1, axis=1)
    return np.asarray(records[order[:, :m]].sum(axis=1))


@dataclass(frozen=True, repr=False)
class _Subsampled(ZooMechanism):
    inner: Any = field(default_factory=lambda: Gaussian(1.0))
    pair: ClassVar[Pair] = ONE_IN_TEN

    def _sums(self, data: Any) -> dict[float, float]:
        """The sums that can come out, with their probabilities."""
        raise NotImplementedError

    def law(self, data: Any) -> Law:
        """A mixture of the inner distributions over all subsamples."""
        return base.mixture([(w, self.inner.law(value)) for value, w in self._sums(data).items()])

    def epsilon(self, pair: Any = None) -> float:
        """∞ if the inner loss is unbounded; the ratio of Laplace mixtures is constant in the tails."""
        pair = self._inputs(pair)
        if np.array_equal(*pair):
            return 0.0
        if isinstance(self.inner, Gaussian):
            return math.inf
        if isinstance(self.inner, Laplace):
            return self.masses(pair).epsilon()
        raise NoClosedForm(f"the pure-DP level of {self} is not known in closed form")


@dataclass(frozen=True, repr=False)
class PoissonSubsampled(_Subsampled):
    """Each record is kept with probability `rate`; the inner mechanism sees the sum of the kept.

    >>> half = PoissonSubsampled(Laplace(5.0), rate=0.5)
    >>> round(float(half.renyi(2, ONE_IN_TEN)), 5)
    0.00938
    """

    rate: float = real(0.5, above=0.0, at_most=1.0)
    source: ClassVar[str] = "Zhu & Wang 2019"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        records = np.asarray(data, dtype=float)
        matter = records[records != 0]  # a zero adds nothing, kept or not
        kept = rng.random(size=(size, matter.size)) < self.rate
        return on_sums(self.inner, kept @ matter, rng)

    def _sums(self, data: Any) -> dict[float, float]:
        records = np.asarray(data, dtype=float)
        sums = {0.0: 1.0}
        for value in records[records != 0]:
            following: dict[float, float] = defaultdict(float)
            for total, w in sums.items():
                following[total] += w * (1 - self.rate)
                following[round(total + float(value), 12)] += w * self.rate
            sums = following
            if len(sums) > 200:
                raise NoClosedForm(f"{self} has too many different subsamples of these records")
        return sums


@dataclass(frozen=True, repr=False)
class Subsampled(_Subsampled):
    """`size` of the records, drawn without replacement; the inner mechanism sees their sum.

    >>> half = Subsampled(Gaussian(1.0), size=5)
    >>> round(float(half.tradeoff(0.05, ONE_IN_TEN)), 4)
    0.8452
    """

    size: int = whole(5)
    source: ClassVar[str] = "Balle, Barthe & Gaboardi 2018; Dong, Roth & Su 2022"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        records = np.asarray(data, dtype=float)
        return on_sums(self.inner, subset_sums(records, self.size, size, rng).round(12), rng)

    @property
    def claim(self) -> Claim | None:
        """C((m/r) T + (1 − m/r)(1 − α)) for a Gaussian inner mechanism and ten records."""
        if not isinstance(self.inner, Gaussian):
            return None
        share, base = self.size / 10, GaussianDP(1 / self.inner.sigma)

        def curve(alpha: npt.ArrayLike) -> Any:
            a = np.asarray(alpha, dtype=float)
            return share * base.tradeoff(a) + (1 - share) * (1 - a)

        symmetric = TradeoffDP(curve, ordered=True).f.symmetrise()
        return TradeoffDP(list(zip(symmetric.x, symmetric.y, strict=True)))

    def _sums(self, data: Any) -> dict[float, float]:
        records = np.asarray(data, dtype=float)
        matter = records[records != 0]
        zeros = records.size - matter.size
        if self.size > records.size or matter.size > 12:
            raise NoClosedForm(f"{self} has too many different subsamples of these records")
        total = math.comb(records.size, self.size)
        sums: dict[float, float] = defaultdict(float)
        for k in range(min(self.size, matter.size) + 1):
            rest = math.comb(zeros, self.size - k)
            for chosen in itertools.combinations(matter.tolist(), k):
                if rest:
                    sums[round(sum(chosen), 12)] += rest / total
        return sums


@dataclass(frozen=True, repr=False)
class NoisyGradientDescent(GaussianOutputs):
    """Gradient descent on ½(θ − x)² with N(0, 2·step·sigma²) noise in every step.

    θ_{k+1} = (1 − η) θ_k + η x̄ + √(2η) N(0, σ²): the last iterate is Gaussian.

    >>> round(float(NoisyGradientDescent().renyi(2, ONE_IN_TEN)), 6)
    0.007255
    """

    step: float = real(0.2, above=0.0, below=2.0)
    sigma: float = real(1.0, above=0.0)
    iterations: int = whole(10)
    source: ClassVar[str] = "Chourasia, Ye & Shokri 2021"
    pair: ClassVar[Pair] = ONE_IN_TEN

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
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

    @property
    def claim(self) -> Claim:
        """μ for ten records in [0, 1]."""
        return GaussianDP(self.mu(self.pair))

    def mu(self, pair: Any) -> float:
        """D_λ = λ(2 − η)(1 − a^K) / (4σ²m²(1 + a^K)), a = 1 − η, for one of m records changed by 1."""
        factor, spread = self._last()
        first, second = (factor * float(np.mean(data)) for data in pair)
        return abs(first - second) / spread

    def law(self, data: Any) -> Law:
        factor, spread = self._last()
        return gaussian(factor * float(np.mean(data)), spread)


@dataclass(frozen=True, repr=False)
class ToyDPSGD(ZooMechanism):
    """DP-SGD on ½(θ − x)²: a fresh batch and N(0, sigma²) on the mean gradient in every step.

    The truth is known for (v, 0, …, 0) and zeros: one record is in or out of every batch.

    >>> round(float(ToyDPSGD().tradeoff(0.05, ONE_IN_TEN)), 4)
    0.6049
    """

    sigma: float = real(0.2, above=0.0)
    rate: float = real(0.2, above=0.0, at_most=1.0)
    iterations: int = whole(10)
    batch: int = whole(5)
    source: ClassVar[str] = "Abadi et al. 2016; the toy setting of Askin et al. 2025"
    pair: ClassVar[Pair] = ONE_IN_TEN
    unbounded: ClassVar[bool] = True

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        records = np.asarray(data, dtype=float)
        theta = np.zeros(size)
        for _ in range(self.iterations):
            gradient = theta - subset_sums(records, self.batch, size, rng) / self.batch
            theta -= self.rate * (gradient + rng.normal(scale=self.sigma, size=size))
        return on_grid(theta, self.rate * self.sigma)

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
        means, weights = (part.tolist() for part in self._shifts(data))
        parts = [(w, gaussian(m, self._spread)) for m, w in zip(means, weights, strict=True)]
        return replace(base.mixture(parts), breaks=(0.0, max(means)), reach=12 * self._spread)


@dataclass(frozen=True, repr=False)
class _OnDevice:
    """Where noise is drawn, and how much of it in one call."""

    device: str = "cpu"
    block: int = whole(1 << 20)

    def _seeded(self, rng: np.random.Generator) -> dict[str, Any]:
        """What torch.rand is told: doubles, where, and a generator that this call seeds."""
        try:
            import torch
        except ImportError:
            raise MissingExtra("noise drawn by PyTorch", "torch") from None
        generator = torch.Generator(device=self.device).manual_seed(int(rng.integers(2**63)))
        return {"generator": generator, "dtype": torch.float64, "device": self.device}

    def _drawn(self, kind: str, data: Any, size: int, rng: np.random.Generator) -> Any:
        how = self._seeded(rng)
        import torch

        return getattr(torch, kind)(shape_of(data, size), **how)


@dataclass(frozen=True, repr=False)
class TorchGaussian(_OnDevice, Gaussian):
    """`Gaussian` with its noise drawn by PyTorch, in doubles.

    block  how many outputs are drawn in one call: a GPU wants tens of millions, and memory for five times
           as many doubles
    """

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        noise = self._drawn("randn", data, size, rng)
        return _released(noise.mul_(self.sigma), data, self.sigma)


@dataclass(frozen=True, repr=False)
class TorchLaplace(_OnDevice, Laplace):
    """`Laplace` with its noise drawn by PyTorch, in doubles; `block` as for `TorchGaussian`."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        centred = self._drawn("rand", data, size, rng).sub_(0.5)
        noise = centred.abs().mul_(-2.0).log1p_().mul_(-self.scale)
        return _released(noise.copysign_(centred), data, self.scale)


@dataclass(frozen=True, repr=False)
class TorchNoisyGradientDescent(_OnDevice, NoisyGradientDescent):
    """`NoisyGradientDescent` by PyTorch: a draw is a model, and a block of them is trained at once."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        how = self._seeded(rng)
        import torch

        pull, spread = self.step * float(np.mean(data)), math.sqrt(2 * self.step) * self.sigma
        theta, noise = (torch.zeros(size, dtype=how["dtype"], device=self.device) for _ in range(2))
        for _ in range(self.iterations):
            noise.normal_(pull, spread, generator=how["generator"])
            theta.mul_(1 - self.step).add_(noise)
        return _released(theta, 0.0, self.sigma)


def _released(noise: Any, data: Any, scale: float) -> Any:
    """data + noise on the grid of `on_grid`."""
    import torch

    step = base.grid_step(scale)
    # a plain number travels with the call: nothing waits for it
    by = torch.as_tensor(data, dtype=torch.float64, device=noise.device) if np.ndim(data) else data
    return noise.add_(by).div_(step).round_().mul_(step)
