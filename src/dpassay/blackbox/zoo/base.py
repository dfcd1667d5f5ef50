"""What every zoo mechanism knows about itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay.blackbox.zoo.law import Law
from dpassay.blackbox.zoo.law import masses as masses_of_laws
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair


@dataclass(frozen=True, repr=False)
class ZooMechanism:
    """Base of the zoo.

    A mechanism gives the exact output probabilities of a pair (`masses`), or the distribution of a
    real output (`law`), or overrides the notions it has in closed form. δ, Rényi and the trade-off
    curve are those of the first input against the second, in that order; `epsilon` is the larger
    of both directions.

    A parameter stored as `epsilon0` is called `epsilon` in the constructor: `epsilon` itself is the
    truth for a pair.
    """

    #: Where the mechanism comes from.
    source: ClassVar[str] = ""
    #: What a broken mechanism does wrong, and on which pairs it shows; empty if it is correct.
    flaw: ClassVar[str] = ""

    def _set(self, **values: Any) -> None:
        """For constructors alone: mechanisms are frozen afterwards."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Return `size` independent outputs on `data`."""
        raise NotImplementedError

    @property
    def correct(self) -> bool:
        """Whether it keeps what it claims on every pair of neighbours."""
        return not self.flaw

    @property
    def claim(self) -> Claim | None:
        """What the mechanism claims; None if it makes no promise."""
        return None

    @property
    def pair(self) -> Pair:
        """The default pair: where a correct mechanism is near its limit and a broken one breaks."""
        raise NotImplementedError

    def law(self, data: Any) -> Law:
        """The distribution of a real output."""
        raise NoClosedForm(f"the output distribution of {self} is not known in closed form")

    def masses(self, pair: Any) -> Masses:
        """The exact output probabilities on both inputs (of fine cells, if continuous)."""
        return _masses_of_laws(self, *(_key(data) for data in pair))

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

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{f.name.removesuffix('0')}={getattr(self, f.name)!r}" for f in fields(self)
        )
        return f"{type(self).__name__}({inner})"


#: Bits after the noise's own size that are kept: far more than any sample tells apart, and far fewer
#: than a double has.
_KEPT = 36


def on_grid(values: Any, scale: float) -> Any:
    """The outputs, rounded to a grid that depends on the size of the noise alone.

    Which doubles x + noise can be depends on x (see `NaiveLaplace`); which points of a grid does not.
    """
    step = grid_step(scale)
    return np.rint(np.asarray(values) / step) * step


def grid_step(scale: float) -> float:
    """The step of that grid: a power of two."""
    return float(2.0 ** (math.floor(math.log2(scale)) - _KEPT))


def _key(data: Any) -> tuple[Any, ...]:
    array = np.asarray(data, dtype=float)
    return (array.shape, array.tobytes())


@lru_cache(maxsize=64)
def _masses_of_laws(
    mechanism: ZooMechanism, first: tuple[Any, ...], second: tuple[Any, ...]
) -> Masses:
    laws = (mechanism.law(np.frombuffer(raw).reshape(shape)[()]) for shape, raw in (first, second))
    return masses_of_laws(*laws)
