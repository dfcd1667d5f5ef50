"""Histograms: with noise, with the wrong noise, and with none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay import checks
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.blackbox.zoo.noise import Laplace
from dpassay.blackbox.zoo.response import binomial_masses
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair, Relation


@dataclass(frozen=True, repr=False, init=False)
class NoisyHistogram(ZooMechanism):
    """Laplace noise on every count: scale 1/ε, or ε by mistake (`broken`).

    Correct for adding or removing one record; replacing one costs 2ε.

    >>> NoisyHistogram(0.5).epsilon(([1, 2], [2, 2])), NoisyHistogram(0.5, broken=True).epsilon(
    ...     ([1, 2], [2, 2]))
    (0.5, 2.0)
    """

    epsilon0: float
    broken: bool
    source: ClassVar[str] = "Dwork 2006; Ding et al. 2018 (StatDP), algorithms 9 and 10"

    def __init__(self, epsilon: float = 0.5, broken: bool = False) -> None:
        self._set(epsilon0=checks.real("epsilon", epsilon, above=0.0))
        self._set(broken=bool(broken))

    @property
    def flaw(self) -> str:  # type: ignore[override]
        """The scale upside down."""
        return (
            "the noise has scale ε instead of 1/ε: every pair shows it for ε < 1"
            if self.broken
            else ""
        )

    @property
    def _noise(self) -> Laplace:
        return Laplace(self.epsilon0 if self.broken else 1 / self.epsilon0)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Independent noise on every count."""
        return self._noise(np.asarray(data, dtype=float), size, rng)

    @property
    def claim(self) -> Claim:
        """ε for one record added or removed."""
        return PureDP(self.epsilon0)

    @property
    def pair(self) -> Pair:
        """Five counts, one record more."""
        return Pair(np.array([2, 1, 1, 1, 1]), np.ones(5, dtype=np.int64), Relation.ADD_REMOVE)

    def epsilon(self, pair: Any) -> float:
        """As of the noise."""
        return self._noise.epsilon(pair)

    def delta(self, epsilon: npt.ArrayLike, pair: Any) -> Any:
        """As of the noise."""
        return self._noise.delta(epsilon, pair)

    def renyi(self, order: npt.ArrayLike, pair: Any) -> Any:
        """As of the noise."""
        return self._noise.renyi(order, pair)

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any) -> Any:
        """As of the noise."""
        return self._noise.tradeoff(alpha, pair)


@dataclass(frozen=True, repr=False)
class NoiselessHistogram(ZooMechanism):
    """The number of ones among `rows` random bits, one of which is the input.

    No noise at all: what hides the input is the randomness of the other records (distributional
    DP). The others are fair coins.

    >>> round(float(NoiselessHistogram(rows=11).delta(0.0, (0, 1))), 6)
    0.246094
    """

    rows: int = 10
    source: ClassVar[str] = "Bassily, Groce, Katz & Smith 2013"

    def __post_init__(self) -> None:
        checks.whole("rows", self.rows)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """The input plus the sum of the other records."""
        return int(data) + rng.binomial(self.rows - 1, 0.5, size=size)

    @property
    def pair(self) -> Pair:
        """A zero and a one."""
        return Pair(0, 1, Relation.DISTRIBUTIONAL)

    def masses(self, pair: Any) -> Masses:
        """Two shifted binomials."""
        others = binomial_masses(self.rows - 1, 0.5)
        first, second = (int(data) for data in pair)
        p, q = np.zeros((2, self.rows + 1))
        p[first : first + self.rows] = others
        q[second : second + self.rows] = others
        return Masses(p, q)
