"""Report noisy max and its variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.blackbox.zoo.quadrature import integrate
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair, Relation


def log_laplace_cdf(t: FloatArray) -> FloatArray:
    """log F of the standard Laplace distribution, accurate in both tails."""
    with np.errstate(over="ignore"):
        return np.where(t < 0, t - np.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(t, 0.0))))


@dataclass(frozen=True)
class ReportNoisyMax(ZooMechanism):
    """The index of the largest query answer after Laplace(2/ε) noise (NM5 of StatDP).

    >>> nm = ReportNoisyMax(1.5)
    >>> round(nm.epsilon(([1, 1, 1, 1, 1, 1], [0, 2, 2, 2, 2, 2])), 4)
    1.4922
    """

    epsilon0: float = 1.5
    source: ClassVar[str] = "Dwork & Roth 2014; StatDP algorithm 5"

    def __post_init__(self) -> None:
        checks.real("epsilon0", self.epsilon0, above=0.0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add noise to every answer, return the place of the largest."""
        answers = np.asarray(data, dtype=float)
        noisy = answers + rng.laplace(scale=2 / self.epsilon0, size=(size, answers.size))
        return noisy.argmax(axis=1)

    @property
    def claim(self) -> Claim:
        """ε."""
        return PureDP(self.epsilon0)

    @property
    def pair(self) -> Pair:
        """Six queries, all above but one."""
        return Pair(
            np.ones(6, dtype=np.int64), np.array([0, 2, 2, 2, 2, 2]), Relation.SENSITIVITY_ONE
        )

    def masses(self, pair: Any) -> Masses:
        """P(i) = ∫ f(t − q_i) Π_{j≠i} F(t − q_j) dt by quadrature."""
        return Masses(*(self._probabilities(np.asarray(data, dtype=float)) for data in pair))

    def _probabilities(self, answers: FloatArray) -> FloatArray:
        scaled = answers * self.epsilon0 / 2

        def integrand(t: FloatArray) -> FloatArray:
            z = t[None, :] - scaled[:, None]
            log_cdf = log_laplace_cdf(z)
            log_pdf = -np.abs(z) - np.log(2.0)
            return np.asarray(np.exp(log_pdf - log_cdf + log_cdf.sum(axis=0)))

        # beyond 45 scales the tails hold less than 1e-19
        probabilities = integrate(integrand, scaled, reach=45.0, width=1.0)
        return np.asarray(probabilities / probabilities.sum())
