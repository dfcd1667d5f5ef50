"""Randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, gammaln

from dpassay import checks
from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair, Relation


@dataclass(frozen=True)
class RandomizedResponse(ZooMechanism):
    """Each bit is told truly with probability e^ε/(1 + e^ε) and flipped otherwise.

    The input is a bit or a vector of bits, the output a matrix of them.

    >>> RandomizedResponse(1.5).epsilon((0, 1))
    1.5
    """

    epsilon0: float = 1.5
    source: ClassVar[str] = "Warner 1965"

    def __post_init__(self) -> None:
        checks.real("epsilon0", self.epsilon0, at_least=0.0)

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
        zeros = np.zeros(10, dtype=np.int8)
        ones = zeros.copy()
        ones[0] = 1
        return Pair(zeros, ones, Relation.REPLACE_ONE)

    def masses(self, pair: Any) -> Masses:
        """Only the k changed bits matter, and only how many of them agree with the first input."""
        k = int(np.count_nonzero(np.asarray(pair[0]) != np.asarray(pair[1])))
        j = np.arange(k + 1)
        ways = gammaln(k + 1) - gammaln(j + 1) - gammaln(k - j + 1)
        truth, lie = -np.log1p(np.exp(-self.epsilon0)), -np.log1p(np.exp(self.epsilon0))
        p = np.exp(ways + (k - j) * truth + j * lie)
        q = np.exp(ways + j * truth + (k - j) * lie)
        return Masses(p, q)

    def epsilon(self, pair: Any) -> float:
        """ε times the number of changed bits."""
        return self.epsilon0 * int(np.count_nonzero(np.asarray(pair[0]) != np.asarray(pair[1])))
