"""Subsampling before any inner mechanism that takes the sum of the records."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.blackbox.zoo.law import Law, mixture
from dpassay.blackbox.zoo.noise import Gaussian, Laplace
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim, TradeoffDP
from dpassay.privacy.pairs import Pair, Relation


def one_in_ten() -> Pair:
    """(1, 0, …, 0) against ten zeros: the pair of the experiments."""
    return Pair(np.eye(10)[0], np.zeros(10), Relation.REPLACE_ONE)


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


@dataclass(frozen=True, repr=False)
class _Subsampled(ZooMechanism):
    inner: Any = field(default_factory=lambda: Gaussian(1.0))

    def _sums(self, data: Any) -> dict[float, float]:
        """The sums that can come out, with their probabilities."""
        raise NotImplementedError

    def law(self, data: Any) -> Law:
        """A mixture of the inner distributions over all subsamples."""
        return mixture([(w, self.inner.law(value)) for value, w in self._sums(data).items()])

    def epsilon(self, pair: Any) -> float:
        """Through the masses, unless the inner loss is unbounded."""
        first, second = (np.asarray(data, dtype=float) for data in pair)
        if np.array_equal(first, second):
            return 0.0
        if isinstance(self.inner, Gaussian):
            return math.inf
        if isinstance(self.inner, Laplace):
            return self._laplace_epsilon(self._sums(first), self._sums(second))
        raise NoClosedForm(f"the pure-DP level of {self} is not known in closed form")

    def _laplace_epsilon(self, p: dict[float, float], q: dict[float, float]) -> float:
        """log p/q is monotone between neighbouring centres: it peaks at a centre or in a tail."""
        centres = np.array(sorted({*p, *q}))

        def density(weights: dict[float, float], t: FloatArray) -> Any:
            return sum(w * np.exp(-np.abs(t - c) / self.inner.scale) for c, w in weights.items())

        fine = np.unique(np.concatenate([centres, np.linspace(centres[0], centres[-1], 20_001)]))
        return float(np.max(np.abs(np.log(density(p, fine)) - np.log(density(q, fine)))))


@dataclass(frozen=True, repr=False)
class PoissonSubsampled(_Subsampled):
    """Each record is kept with probability `rate`; the inner mechanism sees the sum of the kept.

    >>> half = PoissonSubsampled(Laplace(5.0), rate=0.5)
    >>> round(float(half.renyi(2, one_in_ten())), 5)
    0.00938
    """

    rate: float = 0.5
    source: ClassVar[str] = "Zhu & Wang 2019"

    def __post_init__(self) -> None:
        checks.real("rate", self.rate, above=0.0, at_most=1.0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Keep records at random, then add up."""
        records = np.asarray(data, dtype=float)
        matter = records[records != 0]  # a zero adds nothing, kept or not
        kept = rng.random(size=(size, matter.size)) < self.rate
        return on_sums(self.inner, kept @ matter, rng)

    @property
    def pair(self) -> Pair:
        """(1, 0, …, 0) against zeros."""
        return one_in_ten()

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
    >>> round(float(half.tradeoff(0.05, one_in_ten())), 4)
    0.8452
    """

    size: int = 5
    source: ClassVar[str] = "Balle, Barthe & Gaboardi 2018; Dong, Roth & Su 2022"

    def __post_init__(self) -> None:
        checks.whole("size", self.size)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Draw a subset for each output, then add up."""
        records = np.asarray(data, dtype=float)
        matter = records[records != 0]
        if matter.size == 0:
            return on_sums(self.inner, np.zeros(size), rng)
        if matter.size == 1:  # a single record matters: it is in with probability size/r
            kept = rng.random(size) < self.size / records.size
            return on_sums(self.inner, kept * matter[0], rng)
        order = rng.random(size=(size, records.size)).argpartition(self.size - 1, axis=1)
        return on_sums(self.inner, records[order[:, : self.size]].sum(axis=1).round(12), rng)

    @property
    def claim(self) -> Claim | None:
        """C((m/r) T + (1 − m/r)(1 − α)) for a Gaussian inner mechanism and ten records."""
        if not isinstance(self.inner, Gaussian):
            return None
        share, mu = self.size / 10, 1 / self.inner.sigma
        base = Gaussian(1 / mu)

        def curve(alpha: npt.ArrayLike) -> Any:
            a = np.asarray(alpha, dtype=float)
            return share * base.tradeoff(a, (0.0, 1.0)) + (1 - share) * (1 - a)

        symmetric = TradeoffDP(curve, ordered=True).f.symmetrise()
        return TradeoffDP(list(zip(symmetric.x, symmetric.y, strict=True)))

    @property
    def pair(self) -> Pair:
        """(1, 0, …, 0) against zeros."""
        return one_in_ten()

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
