"""Additive noise on a number or a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim, GaussianDP, PureDP
from dpassay.privacy.curves import gaussian_tradeoff
from dpassay.privacy.pairs import Pair, Relation


def shift(pair: Any) -> FloatArray:
    """The absolute difference of the two inputs, coordinate by coordinate."""
    first, second = pair
    return np.asarray(np.abs(np.atleast_1d(np.asarray(first, float) - np.asarray(second, float))))


def shape_of(data: Any, size: int) -> tuple[int, ...]:
    """The shape of `size` outputs with one noise a coordinate."""
    return (size, *np.shape(data))


@dataclass(frozen=True)
class Laplace(ZooMechanism):
    """data + Laplace(scale) noise; 1/scale-DP for sensitivity 1.

    >>> round(float(Laplace(scale=1.0).delta(0.5, (0.0, 1.0))), 4)
    0.2212
    """

    scale: float = 1.0
    source: ClassVar[str] = "Dwork, McSherry, Nissim & Smith 2006"

    def __post_init__(self) -> None:
        checks.real("scale", self.scale, above=0.0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add independent noise to every coordinate."""
        return data + rng.laplace(scale=self.scale, size=shape_of(data, size))

    @property
    def claim(self) -> Claim:
        """ε = 1/scale."""
        return PureDP(1.0 / self.scale)

    @property
    def pair(self) -> Pair:
        """Two numbers at distance 1."""
        return Pair(0.0, 1.0, Relation.SENSITIVITY_ONE)

    def epsilon(self, pair: Any) -> float:
        """‖Δ‖₁ / scale."""
        return float(shift(pair).sum()) / self.scale

    def delta(self, epsilon: npt.ArrayLike, pair: Any) -> Any:
        """1 − e^{(ε − Δ/scale)/2} for |ε| ≤ Δ/scale."""
        eps, total = np.asarray(epsilon, dtype=float), self._one(pair)
        value = -np.expm1(np.minimum(np.where(eps < -total, eps, (eps - total) / 2), 0.0))
        return value if eps.ndim else float(value)

    def renyi(self, order: npt.ArrayLike, pair: Any) -> Any:
        """log{λ/(2λ−1) e^{(λ−1)s} + (λ−1)/(2λ−1) e^{−λs}} / (λ−1), added over coordinates."""
        lam = np.asarray(order, dtype=float)
        total = np.zeros_like(lam)
        for s in shift(pair) / self.scale:
            total = total + np.logaddexp(
                np.log(lam / (2 * lam - 1)) + (lam - 1) * s,
                np.log((lam - 1) / (2 * lam - 1)) - lam * s,
            ) / (lam - 1)
        return total if lam.ndim else float(total)

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any) -> Any:
        """1 − e^s α; e^{−s}/(4α); e^{−s}(1 − α), on α < e^{−s}/2, ≤ 1/2, ≤ 1."""
        a, s = np.asarray(alpha, dtype=float), self._one(pair)
        middle = np.exp(-s) / (4 * np.maximum(a, np.exp(-s) / 2))
        value = np.where(
            a < np.exp(-s) / 2,
            1 - np.exp(s) * a,
            np.where(a <= 0.5, middle, np.exp(-s) * (1 - a)),
        )
        return value if a.ndim else float(value)

    def _one(self, pair: Any) -> float:
        moved = shift(pair)
        if np.count_nonzero(moved) > 1:
            raise NoClosedForm("Laplace noise on several changed coordinates has no closed form")
        return float(moved.sum()) / self.scale


@dataclass(frozen=True)
class Gaussian(ZooMechanism):
    """data + N(0, σ²) noise; 1/σ-GDP for L2-sensitivity 1.

    >>> round(float(Gaussian(sigma=1.0).delta(1.0, (0.0, 1.0))), 4)
    0.1269
    """

    sigma: float = 1.0
    source: ClassVar[str] = "Dwork et al. 2006; Dong, Roth & Su 2022"

    def __post_init__(self) -> None:
        checks.real("sigma", self.sigma, above=0.0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add independent noise to every coordinate."""
        return data + rng.normal(scale=self.sigma, size=shape_of(data, size))

    @property
    def claim(self) -> Claim:
        """μ = 1/σ."""
        return GaussianDP(1.0 / self.sigma)

    @property
    def pair(self) -> Pair:
        """Two numbers at distance 1."""
        return Pair(0.0, 1.0, Relation.SENSITIVITY_ONE)

    def mu(self, pair: Any) -> float:
        """‖Δ‖₂ / σ."""
        return float(np.linalg.norm(shift(pair))) / self.sigma

    def epsilon(self, pair: Any) -> float:
        """0 for equal inputs, else ∞: the loss is unbounded in the tails."""
        return 0.0 if self.mu(pair) == 0 else np.inf

    def delta(self, epsilon: npt.ArrayLike, pair: Any) -> Any:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), in log space."""
        eps, mu = np.asarray(epsilon, dtype=float), self.mu(pair)
        if mu == 0:
            value = -np.expm1(np.minimum(eps, 0.0))
        else:
            top, bottom = log_ndtr(mu / 2 - eps / mu), eps + log_ndtr(-mu / 2 - eps / mu)
            value = np.exp(top) * -np.expm1(bottom - top)
        return value if eps.ndim else float(value)

    def renyi(self, order: npt.ArrayLike, pair: Any) -> Any:
        """λμ²/2."""
        lam = np.asarray(order, dtype=float)
        value = lam * self.mu(pair) ** 2 / 2
        return value if lam.ndim else float(value)

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any) -> Any:
        """Φ(Φ⁻¹(1 − α) − μ)."""
        value = gaussian_tradeoff(alpha, self.mu(pair))
        return value if value.ndim else float(value)
