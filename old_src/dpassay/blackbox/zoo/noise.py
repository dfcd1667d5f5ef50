"""Additive noise on a number or a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import Law, ZooMechanism, gaussian, laplace, on_grid, real, truncated
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import ApproximateDP, Claim, GaussianDP, PureDP, ZeroConcentratedDP
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.relations import Pair, Relation

#: Two numbers, or two integers, at distance 1.
NUMBERS = Pair(0.0, 1.0, Relation.SENSITIVITY_ONE)
_INTEGERS = Pair(0, 1, Relation.SENSITIVITY_ONE)


def shift(pair: Any) -> FloatArray:
    """The absolute difference of the two inputs, coordinate by coordinate."""
    first, second = (np.asarray(data, dtype=float) for data in checks.two_inputs(pair))
    return np.asarray(np.abs(np.atleast_1d(first - second)))


def single_shift(shifts: FloatArray) -> float:
    """The shift of the only coordinate that changed."""
    if np.count_nonzero(shifts) > 1:
        raise NoClosedForm("noise on several changed coordinates has no closed form here")
    return float(shifts.sum())


def shape_of(data: Any, size: int) -> tuple[int, ...]:
    """The shape of `size` outputs with one noise a coordinate."""
    return (size, *np.shape(data))


class LaplaceOutputs(ZooMechanism):
    """Laplace outputs of one scale on all inputs, `shifts` of it apart: closed forms."""

    def shifts(self, pair: Any) -> FloatArray:
        """The distances of the two centres, coordinate by coordinate, in units of the scale."""
        raise NotImplementedError

    def epsilon(self, pair: Any = None) -> float:
        """‖Δ‖₁ / scale."""
        return float(self.shifts(self._inputs(pair)).sum())

    def delta(self, epsilon: npt.ArrayLike, pair: Any = None) -> Any:
        """1 − e^{(ε − s)/2} for |ε| ≤ s."""
        eps, s = checks.doubles("epsilon", epsilon), single_shift(self.shifts(self._inputs(pair)))
        found = -np.expm1(np.minimum(np.where(eps < -s, eps, (eps - s) / 2), 0.0))
        return checks.scalar_or_array(found)

    def renyi(self, order: npt.ArrayLike, pair: Any = None) -> Any:
        """log{λ/(2λ−1) e^{(λ−1)s} + (λ−1)/(2λ−1) e^{−λs}} / (λ−1), added over coordinates.

        Its limits are s + e^{−s} − 1 at λ = 1, 2{s/2 − log(1 + s/2)} at 1/2, and s at ∞. With
        d = λ − 1 and r = 1 − e^{−(2λ−1)s}, the logarithm is ds + log1p(−dr/(2λ−1)) for all λ.
        """
        asked, s = checks.renyi_orders(order)[..., None], self.shifts(self._inputs(pair))
        lam = np.maximum(asked, 1 - asked)  # (1 − λ) D_λ = λ D_{1−λ}: the noise is symmetric
        d, twice = lam - 1, 2 * lam - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(twice == 0, s, -np.expm1(-twice * s) / twice)
            found = s + np.log1p(-d * ratio) / d
            factor = np.where(asked < 0.5, asked / lam, 1.0)
        found = factor * np.where(d == 0, s + np.expm1(-s), np.where(np.isinf(lam), s, found))
        return checks.scalar_or_array(found.sum(axis=-1))

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any = None) -> Any:
        """1 − e^s α; e^{−s}/(4α); e^{−s}(1 − α), on α < e^{−s}/2, ≤ 1/2, ≤ 1."""
        a, s = np.asarray(alpha, dtype=float), single_shift(self.shifts(self._inputs(pair)))
        middle = np.exp(-s) / (4 * np.maximum(a, np.exp(-s) / 2))
        right = np.where(a <= 0.5, middle, np.exp(-s) * (1 - a))
        return checks.scalar_or_array(np.where(a < np.exp(-s) / 2, 1 - np.exp(s) * a, right))


class GaussianOutputs(ZooMechanism):
    """Normal outputs of one spread on all inputs, `mu` of it apart: what μ-GDP allows, exactly."""

    unbounded: ClassVar[bool] = True

    def mu(self, pair: Any) -> float:
        """The distance of the two means, in standard deviations."""
        raise NotImplementedError

    def delta(self, epsilon: npt.ArrayLike, pair: Any = None) -> Any:
        return GaussianDP(self.mu(self._inputs(pair))).delta_at(epsilon)

    def renyi(self, order: npt.ArrayLike, pair: Any = None) -> Any:
        """λμ²/2."""
        orders, mu = checks.renyi_orders(order), self.mu(self._inputs(pair))
        return checks.scalar_or_array(orders * mu**2 / 2 if mu else np.zeros_like(orders))

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any = None) -> Any:
        return GaussianDP(self.mu(self._inputs(pair))).tradeoff(alpha)


@dataclass(frozen=True, repr=False)
class Laplace(LaplaceOutputs):
    """data + Laplace(scale) noise; 1/scale-DP for sensitivity 1.

    >>> round(float(Laplace(scale=1.0).delta(0.5, (0.0, 1.0))), 4)
    0.2212
    """

    scale: float = real(1.0, above=0.0)
    source: ClassVar[str] = "Dwork, McSherry, Nissim & Smith 2006"
    pair: ClassVar[Pair] = NUMBERS

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        noise = rng.laplace(scale=self.scale, size=shape_of(data, size))
        return on_grid(data + noise, self.scale)

    @property
    def claim(self) -> Claim:
        return PureDP(1.0 / self.scale)

    def law(self, data: Any) -> Law:
        return laplace(float(data), self.scale)

    def shifts(self, pair: Any) -> FloatArray:
        return shift(pair) / self.scale


@dataclass(frozen=True, repr=False)
class WrongSensitivityLaplace(Laplace):
    """Laplace noise for sensitivity 1 on a query whose sensitivity is larger.

    >>> round(WrongSensitivityLaplace().epsilon((0.0, 1.1)), 6)
    1.1
    """

    sensitivity: float = 1.1
    source: ClassVar[str] = "a common mistake"
    flaw: ClassVar[str] = "the noise is for sensitivity 1; any pair further apart shows it"

    @property
    def pair(self) -> Pair:  # type: ignore[override]
        return Pair(0.0, self.sensitivity)


@dataclass(frozen=True, repr=False)
class Gaussian(GaussianOutputs):
    """data + N(0, σ²) noise; 1/σ-GDP for L2-sensitivity 1.

    >>> round(float(Gaussian(sigma=1.0).delta(1.0, (0.0, 1.0))), 4)
    0.1269
    """

    sigma: float = real(1.0, above=0.0)
    source: ClassVar[str] = "Dwork et al. 2006; Dong, Roth & Su 2022"
    pair: ClassVar[Pair] = NUMBERS

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        noise = rng.normal(scale=self.sigma, size=shape_of(data, size))
        return on_grid(data + noise, self.sigma)

    @property
    def claim(self) -> Claim:
        return GaussianDP(1.0 / self.sigma)

    def law(self, data: Any) -> Law:
        return gaussian(float(data), self.sigma)

    def mu(self, pair: Any) -> float:
        """‖Δ‖₂ / σ."""
        return float(np.linalg.norm(shift(pair))) / self.sigma


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(ZooMechanism):
    """An integer + two-sided geometric noise, P(k) ∝ e^{−|k|/scale}.

    >>> DiscreteLaplace(scale=2.0).epsilon((0, 1))
    0.5
    """

    scale: float = real(1.0, above=0.0)
    source: ClassVar[str] = "Ghosh, Roughgarden & Sundararajan 2009"
    pair: ClassVar[Pair] = _INTEGERS

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        p = -math.expm1(-1 / self.scale)
        shape = shape_of(data, size)
        noise = rng.geometric(p, size=shape) - rng.geometric(p, size=shape)
        return np.asarray(data, dtype=np.int64) + noise

    @property
    def claim(self) -> Claim:
        return PureDP(1.0 / self.scale)

    def epsilon(self, pair: Any = None) -> float:
        """‖Δ‖₁ / scale."""
        return float(shift(self._inputs(pair)).sum()) / self.scale

    def masses(self, pair: Any) -> Masses:
        """Outside the two inputs the ratio is constant: each tail is one cell."""
        by = round(single_shift(shift(pair)))
        if by == 0:
            return Masses([1.0], [1.0])
        r = math.exp(-1 / self.scale)
        p = np.concatenate([[1.0], (1 - r) * r ** np.arange(1, by), [r**by]]) / (1 + r)
        return Masses(p, p[::-1])


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(ZooMechanism):
    """An integer + discrete Gaussian noise, P(k) ∝ e^{−k²/2σ²}; 1/2σ²-zCDP.

    >>> round(float(DiscreteGaussian(2.0).renyi(2.0, (0, 1))), 6)
    0.25
    """

    sigma: float = real(1.0, above=0.0)
    source: ClassVar[str] = "Canonne, Kamath & Steinke 2020"
    pair: ClassVar[Pair] = _INTEGERS
    unbounded: ClassVar[bool] = True

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        values, weight = _discrete_gaussian(self.sigma)
        cumulated = np.cumsum(weight) / weight.sum()
        places = np.searchsorted(cumulated, rng.random(size=shape_of(data, size)), side="right")
        return np.asarray(data, dtype=np.int64) + values[np.minimum(places, values.size - 1)]

    @property
    def claim(self) -> Claim:
        return ZeroConcentratedDP(0.5 / self.sigma**2)

    def masses(self, pair: Any) -> Masses:
        """All integers within 38 σ: beyond, a double holds nothing."""
        by = round(single_shift(shift(pair)))
        weight = _discrete_gaussian(self.sigma)[1]
        p, q = (np.pad(weight, sides) for sides in ((0, by), (by, 0)))
        keep = (p > 0) & (q > 0)
        return Masses(p[keep] / p.sum(), q[keep] / q.sum())


@lru_cache(maxsize=16)
def _discrete_gaussian(sigma: float) -> tuple[Any, FloatArray]:
    """The integers within 38 σ, and a weight for each."""
    k = np.arange(-math.ceil(38 * sigma), math.ceil(38 * sigma) + 1)
    return k, np.exp(-(k**2) / (2 * sigma**2))


@dataclass(frozen=True, repr=False, init=False)
class Staircase(ZooMechanism):
    """The noise of least expected size for pure DP: a density with steps.

    >>> round(Staircase(epsilon=1.0).epsilon((0.0, 1.0)), 6)
    1.0
    """

    epsilon0: float
    gamma: float
    source: ClassVar[str] = "Geng & Viswanath 2016"
    pair: ClassVar[Pair] = NUMBERS

    def __init__(self, epsilon: float = 1.0, gamma: float | None = None) -> None:
        eps = checks.real("epsilon", epsilon, above=0.0)
        best = 1 / (1 + math.exp(eps / 2))
        share = best if gamma is None else checks.real("gamma", gamma, at_least=0.0, at_most=1.0)
        self._set(epsilon0=eps, gamma=share)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """A sign, a step, a half of it, and a place in it."""
        shape = shape_of(data, size)
        r = math.exp(-self.epsilon0)
        step = rng.geometric(1 - r, size=shape) - 1.0
        lower = rng.random(size=shape) < (1 - self.gamma) * r / (self.gamma + (1 - self.gamma) * r)
        u = rng.random(size=shape)
        place = np.where(lower, self.gamma + (1 - self.gamma) * u, self.gamma * u)
        sign = np.where(rng.random(size=shape) < 0.5, -1.0, 1.0)
        return on_grid(data + sign * (step + place), 1.0)

    def masses(self, pair: Any) -> Masses:
        """The densities are constant between steps: one cell each, out to e^{−45}."""
        by = single_shift(shift(pair))
        reach = math.ceil(45 / self.epsilon0)
        steps = np.concatenate([np.arange(reach + 1.0), np.arange(reach) + self.gamma])
        own = np.concatenate([-steps, steps])
        edges = np.unique(np.concatenate([own, own + by]))
        # steps that coincide come out of the arithmetic a hair apart
        edges = edges[np.concatenate([[True], np.diff(edges) > 1e-9])]
        middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        p, q = (self._density(middle - centre) * width for centre in (0.0, by))
        inside = (np.abs(middle) < reach) & (np.abs(middle - by) < reach)
        return Masses(p[inside] / p[inside].sum(), q[inside] / q[inside].sum())

    def _density(self, z: FloatArray) -> FloatArray:
        r = math.exp(-self.epsilon0)
        height = (1 - r) / (2 * (self.gamma + r * (1 - self.gamma)))
        step = np.floor(np.abs(z))
        down = (np.abs(z) - step >= self.gamma).astype(float)
        return np.asarray(height * np.exp(-self.epsilon0 * (step + down)))


@dataclass(frozen=True, repr=False)
class TruncatedLaplace(ZooMechanism):
    """data + Laplace noise truncated at ±bound. It needs a δ; `honest` says whether it admits it.

    >>> broken = TruncatedLaplace()
    >>> broken.epsilon((0.0, 1.0)), round(float(broken.delta(1.0, (0.0, 1.0))), 4)
    (inf, 0.0058)
    """

    scale: float = real(1.0, above=0.0)
    bound: float = real(5.0, above=0.0)
    honest: bool = False
    source: ClassVar[str] = "Geng, Ding, Guo & Kumar 2020"
    pair: ClassVar[Pair] = NUMBERS
    unbounded: ClassVar[bool] = True

    @property
    def flaw(self) -> str:  # type: ignore[override]
        return "" if self.honest else "it claims δ = 0; every pair has outputs only one side makes"

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        u = rng.random(size=shape_of(data, size)) * 2 - 1
        full = -math.expm1(-self.bound / self.scale)
        noise = -np.sign(u) * self.scale * np.log1p(-np.abs(u) * full)
        return on_grid(data + noise, self.scale)

    @property
    def claim(self) -> Claim:
        """ε = 1/scale, with or without the δ it needs at sensitivity 1."""
        eps = 1.0 / self.scale
        if not self.honest:
            return PureDP(eps)
        return ApproximateDP(eps, float(self.delta(eps, (0.0, 1.0))))

    def law(self, data: Any) -> Law:
        centre = float(data)
        return truncated(laplace(centre, self.scale), centre - self.bound, centre + self.bound)
