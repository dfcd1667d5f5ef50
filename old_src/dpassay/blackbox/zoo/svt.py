"""The sparse vector technique, its broken variants, and the numerical one.

Numbered as in Lyu, Su & Li (2017). Queries have sensitivity 1 each; a query is "above" if its noisy
answer reaches the noisy threshold.

    variant   threshold noise            query noise       after "above"
    1         Lap(2/ε)                   Lap(4c/ε)         stop after c                     correct
    2         Lap(2c/ε), redrawn         Lap(4c/ε)         stop after c                     correct
    3         Lap(2/ε)                   Lap(2c/ε)         gives the noisy number           broken
    4         Lap(4/ε)                   Lap(4/(3ε))       stop after c                     broken
    5         Lap(2/ε)                   none              no cutoff                        broken
    6         Lap(2/ε)                   Lap(2/ε)          no cutoff                        broken
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.blackbox.zoo.base import ZooMechanism, laplace, on_grid, panels
from dpassay.blackbox.zoo.base import masses as masses_of_laws
from dpassay.blackbox.zoo.releases import binomial_masses
from dpassay.blackbox.zoo.selection import log_laplace_cdf
from dpassay.errors import InvalidInput, NoClosedForm
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.relations import Pair, Relation

#: What an answer that was not given looks like, in a matrix of answers 1 (above) and 0 (below).
STOPPED = -1
_ONES = np.ones(10, dtype=np.int64)
#: Ten queries, all up but the last.
_LAST_BELOW = Pair(np.array([2] * 9 + [0]), _ONES, Relation.SENSITIVITY_ONE)
_FLAWS = {
    3: "it releases the noisy number it compared with: pairs whose early answers move show it",
    4: "its noise does not grow as it should: pairs that move both ways show it",
    5: "the answers have no noise of their own: pairs that change their order show it",
    6: "it never stops: pairs that move many answers show it",
}


@dataclass(frozen=True, repr=False, init=False)
class SVT(ZooMechanism):
    """Sparse vector technique, variants 1 to 6 of Lyu, Su & Li.

    The input is a vector of query answers. The output is a row of 1 (above), 0 (below) and −1 (not
    answered any more); for variant 3, of the noisy number, −∞ (below) and NaN (not answered).

    >>> ones, half = [1] * 10, [2] * 5 + [0] * 5
    >>> round(SVT(variant=4, epsilon=0.7).epsilon((ones, half)), 4)
    1.2173
    """

    variant: int
    epsilon0: float
    cutoff: int
    threshold: float
    source: ClassVar[str] = "Dwork & Roth 2014; Lyu, Su & Li 2017"

    def __init__(
        self, variant: int = 1, epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0
    ) -> None:
        if variant not in range(1, 7):
            raise InvalidInput(f"variant must be 1 to 6, got {checks.shown(variant)}")
        eps, line = checks.real("epsilon", epsilon, above=0.0), checks.real("threshold", threshold)
        cutoff = checks.whole("cutoff", cutoff)
        self._set(variant=variant, epsilon0=eps, cutoff=cutoff, threshold=line)

    @property
    def flaw(self) -> str:  # type: ignore[override]
        return _FLAWS.get(self.variant, "")

    @property
    def threshold_scale(self) -> float:
        eps, c = self.epsilon0, self.cutoff
        return {1: 2, 2: 2 * c, 3: 2, 4: 4, 5: 2, 6: 2}[self.variant] / eps

    @property
    def query_scale(self) -> float:
        eps, c = self.epsilon0, self.cutoff
        return {1: 4 * c, 2: 4 * c, 3: 2 * c, 4: 4 / 3, 5: 0, 6: 2}[self.variant] / eps

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """All queries of all outputs at once; what comes after the cutoff is blanked out."""
        answers = np.asarray(data, dtype=float)
        noisy = np.broadcast_to(answers, (size, answers.size))
        if self.query_scale:
            noisy = answers + rng.laplace(scale=self.query_scale, size=noisy.shape)
        if self.variant == 2 and self.cutoff > 1:
            return self._redrawn(noisy, rng)
        line = self.threshold + rng.laplace(scale=self.threshold_scale, size=(size, 1))
        above = noisy >= line
        if self.variant >= 5:
            return above.view(np.int8)
        seen = np.cumsum(above, axis=1, dtype=np.int16)
        stopped = (seen - above) >= self.cutoff
        if self.variant == 3:
            return np.where(
                stopped, np.nan, np.where(above, on_grid(noisy, self.query_scale), -np.inf)
            )
        out = above.view(np.int8).copy()
        out[stopped] = STOPPED
        return out

    def _redrawn(self, noisy: FloatArray, rng: np.random.Generator) -> Any:
        """Variant 2: a fresh threshold after every "above"."""
        size, queries = noisy.shape
        lines = self.threshold + rng.laplace(scale=self.threshold_scale, size=(size, self.cutoff))
        out = np.full(noisy.shape, STOPPED, dtype=np.int8)
        used = np.zeros(size, dtype=np.int64)
        for k in range(queries):
            live = used < self.cutoff
            line = lines[np.arange(size), np.minimum(used, self.cutoff - 1)]
            above = noisy[:, k] >= line
            out[live, k] = above[live]
            used += above & live
        return out

    @property
    def pair(self) -> Pair:  # type: ignore[override]
        """Ten queries; for each variant a pair on which it is at its worst, or nearly."""
        half = np.array([1] * 5 + [0] * 5)
        match self.variant:
            case 1 | 2:
                return _LAST_BELOW
            case 3:
                return Pair(0 * _ONES, _ONES, Relation.SENSITIVITY_ONE)
            case 4:
                return Pair(_ONES, 2 * half, Relation.SENSITIVITY_ONE)
        return Pair(half, 1 - half, Relation.SENSITIVITY_ONE)

    def _masses(self, first: Any, second: Any) -> Masses:
        """By quadrature over the threshold noise, which all answers share."""
        if first.shape != second.shape:
            raise InvalidInput("both inputs must answer the same number of queries")
        pair = np.array([first, second])
        if self.variant == 5:
            return Masses(*_without_query_noise(self, pair))
        if self.variant == 6:
            return Masses(*_without_cutoff(self, pair))
        if self.cutoff > 1:
            raise NoClosedForm(f"{self} is known exactly for cutoff 1 only")
        if self.variant == 3:
            return Masses(*(_with_numbers(self, data, pair) for data in pair))
        return Masses(*(first_above(self, data) for data in pair))


def _nodes(svt: SVT | NumericalSVT, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes z of the threshold noise, with weights that include its density."""
    scale = svt.threshold_scale
    breaks = np.concatenate([[0.0], np.unique(answers) - svt.threshold])
    width = min(scale, svt.query_scale or scale)
    z, weight = panels(breaks, reach=45 * scale, width=width)
    return z, weight * np.exp(-np.abs(z) / scale) / (2 * scale)


def _log_below(svt: SVT | NumericalSVT, answers: FloatArray, z: FloatArray) -> FloatArray:
    """log P(answer + noise < threshold + z), by answer and node."""
    return log_laplace_cdf((svt.threshold + z[None, :] - answers[:, None]) / svt.query_scale)


def first_above(svt: SVT | NumericalSVT, answers: FloatArray) -> FloatArray:
    """P(the first "above" is query k), and last P(there is none)."""
    z, weight = _nodes(svt, answers)
    log_below = _log_below(svt, answers, z)
    before = np.concatenate([np.zeros((1, z.size)), np.cumsum(log_below, axis=0)])
    above = np.concatenate([-np.expm1(log_below), np.ones((1, z.size))])
    return np.asarray((np.exp(before) * above) @ weight)


def _without_cutoff(svt: SVT, pair: FloatArray) -> list[FloatArray]:
    """Answers to queries that are alike on both inputs matter only by how many are above."""
    kinds, count = np.unique(pair, axis=1, return_counts=True)
    cells = int(np.prod(count + 1))
    if cells > 50_000:
        raise NoClosedForm(f"{svt} has {cells:,} different outputs on these inputs")
    rows = []
    for answers in kinds:
        z, weight = _nodes(svt, pair.ravel())
        below = np.exp(_log_below(svt, answers, z))
        table = weight[None, :]
        for low, n in zip(below, count, strict=True):
            ways = binomial_masses(int(n), np.clip(1 - low, 0, 1)).T
            table = (table[:, None, :] * ways[None, :, :]).reshape(-1, z.size)
        rows.append(table.sum(axis=1))
    return rows


def _without_query_noise(svt: SVT, pair: FloatArray) -> list[FloatArray]:
    """The threshold noise alone decides: one output per gap between the answers of an input."""
    outputs: dict[bytes, list[float]] = {}
    law = laplace(0.0, svt.threshold_scale)
    for side, answers in enumerate(pair):
        cuts = np.concatenate([[-np.inf], np.unique(answers) - svt.threshold, [np.inf]])
        finite = np.clip(cuts, -1e9, 1e9)
        for mass, inside in zip(law.cells(cuts), (finite[1:] + finite[:-1]) / 2, strict=True):
            pattern = (answers >= svt.threshold + inside).tobytes()
            outputs.setdefault(pattern, [0.0, 0.0])[side] += float(mass)
    return [np.array([masses[side] for masses in outputs.values()]) for side in (0, 1)]


def _with_numbers(svt: SVT, answers: FloatArray, pair: FloatArray) -> FloatArray:
    """Variant 3: cells of (k, y), density f(y − q_k) ∫_{z ≤ y − T} f(z) Π_{i<k} P(below) dz."""
    from scipy.integrate import cumulative_simpson

    scale, width = svt.threshold_scale, svt.query_scale
    if np.any(pair - svt.threshold != np.round(pair - svt.threshold)):
        raise NoClosedForm(f"{svt} is known exactly for whole answers and thresholds only")
    reach = 40 * max(scale, width)
    low = math.floor(pair.min() - svt.threshold - reach)
    high = math.ceil(pair.max() - svt.threshold + reach)
    per_unit = max(16, 2 * math.ceil(32 / min(scale, width)))
    u = np.linspace(low, high, (high - low) * per_unit + 1)  # u = y − T, kinks at integers
    step = 1 / per_unit
    density = np.exp(-np.abs(u) / scale) / (2 * scale)
    log_below = _log_below(svt, answers, u)
    rows = []
    before = np.zeros_like(u)
    simpson = np.full(u.size, 2 / 3)
    simpson[1::2] = 4 / 3
    simpson[[0, -1]] = 1 / 3
    for k, answer in enumerate(answers):
        left = cumulative_simpson(density * np.exp(before), dx=step, initial=0.0)
        y_density = np.exp(-np.abs(u + svt.threshold - answer) / width) / (2 * width)
        rows.append(left * y_density * simpson * step)
        before = before + log_below[k]
    none = np.sum(density * np.exp(before) * simpson) * step
    masses = np.concatenate([*rows, [none]])
    return np.asarray(masses / masses.sum())


@dataclass(frozen=True, repr=False, init=False)
class NumericalSVT(ZooMechanism):
    """The sound twin of variant 3: the number it releases has fresh noise.

    Threshold Lap(3/ε), queries Lap(6c/ε), and for what is above a number with Lap(3c/ε). The output
    is a row of numbers, −∞ (below) and NaN (not answered any more).

    >>> svt = NumericalSVT(epsilon=0.7)
    >>> svt.epsilon(svt.pair) <= 0.7
    True
    """

    epsilon0: float
    cutoff: int
    threshold: float
    source: ClassVar[str] = "Dwork & Roth 2014; Wang et al. 2019"
    pair: ClassVar[Pair] = _LAST_BELOW

    def __init__(self, epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> None:
        eps, line = checks.real("epsilon", epsilon, above=0.0), checks.real("threshold", threshold)
        self._set(epsilon0=eps, cutoff=checks.whole("cutoff", cutoff), threshold=line)

    @property
    def threshold_scale(self) -> float:
        return 3 / self.epsilon0

    @property
    def query_scale(self) -> float:
        return 6 * self.cutoff / self.epsilon0

    @property
    def number_scale(self) -> float:
        return 3 * self.cutoff / self.epsilon0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        answers = np.asarray(data, dtype=float)
        shape = (size, answers.size)
        line = self.threshold + rng.laplace(scale=self.threshold_scale, size=(size, 1))
        above = answers + rng.laplace(scale=self.query_scale, size=shape) >= line
        stopped = (np.cumsum(above, axis=1, dtype=np.int16) - above) >= self.cutoff
        out = np.where(stopped, np.nan, -np.inf)
        rows, columns = np.nonzero(above & ~stopped)
        noise = rng.laplace(scale=self.number_scale, size=rows.size)
        out[rows, columns] = on_grid(answers[columns] + noise, self.number_scale)
        return out

    def masses(self, pair: Any) -> Masses:
        """Which query is first above, times the cells of its released number."""
        if self.cutoff > 1:
            raise NoClosedForm(f"{self} is known exactly for cutoff 1 only")
        first, second = (np.asarray(data, dtype=float) for data in pair)
        noise = laplace(0.0, self.number_scale)
        # up or down, the pairs (p, q) of a number are the same
        moved = (laplace(float(by), self.number_scale) for by in np.abs(first - second))
        numbers = [masses_of_laws(noise, other) for other in moved]
        parts = []
        for answers, side in ((first, "p"), (second, "q")):
            *chosen, none = first_above(self, answers)
            cells = [w * getattr(one, side) for w, one in zip(chosen, numbers, strict=True)]
            parts.append(np.concatenate([*cells, [none]]))
        return Masses(*parts)
