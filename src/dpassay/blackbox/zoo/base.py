"""What every zoo mechanism knows about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair


@dataclass(frozen=True)
class ZooMechanism:
    """Base of the zoo. Discrete mechanisms give `masses`; the others override the notions.

    δ, Rényi and the trade-off curve are those of the first input against the second, in that
    order; `epsilon` is the larger of both directions.
    """

    #: Where the mechanism comes from.
    source: ClassVar[str] = ""
    #: Whether it keeps what it claims, on every pair of neighbours.
    correct: ClassVar[bool] = True

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Return `size` independent outputs on `data`."""
        raise NotImplementedError

    @property
    def claim(self) -> Claim | None:
        """What the mechanism claims; None if it makes no promise."""
        return None

    @property
    def pair(self) -> Pair:
        """The default pair: where a correct mechanism is at its limit and a broken one breaks."""
        raise NotImplementedError

    def masses(self, pair: Any) -> Masses:
        """The exact output probabilities on both inputs."""
        raise NoClosedForm(f"the output distribution of {self} is not known in closed form")

    def epsilon(self, pair: Any) -> float:
        """The exact pure-DP level of a pair, the worse of both directions."""
        return self.masses(pair).epsilon()

    def delta(self, epsilon: npt.ArrayLike, pair: Any) -> Any:
        """The exact δ(ε) of the first input against the second."""
        return self.masses(pair).delta(epsilon)

    def renyi(self, order: npt.ArrayLike, pair: Any) -> Any:
        """The exact Rényi divergence of the first input from the second."""
        return self.masses(pair).renyi(order)

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any) -> Any:
        """The exact trade-off curve, with the second input as null hypothesis."""
        return self.masses(pair).tradeoff(alpha)
