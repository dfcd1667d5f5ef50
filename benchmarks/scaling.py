"""Cost by n: every notion's whole call against drawing alone, with its growth and its memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import dpassay as dp
from benchmarks.harness import compare, peak_memory
from benchmarks.speed import draw_bare

zoo = dp.zoo
PAIR = (1.0, 0.0)
GAUSS = zoo.Gaussian()
CLAIM = dp.GaussianDP(1.0)
_SEEDS = itertools.count()


@dataclass(frozen=True)
class Cost:
    """One notion at one n."""

    notion: str
    n: int
    seconds: float
    low: float
    high: float
    drawing: float
    memory: float

    @property
    def ratio(self) -> float:
        """Whole call ÷ drawing alone: the limit is 1."""
        return self.seconds / self.drawing


def calls(n: int) -> dict[str, Callable[[], Any]]:
    """Every notion on the Gaussian mechanism."""
    options: dict[str, Any] = {"n": n, "rng": 0}
    return {
        "pure.lower_bound": partial(dp.pure.lower_bound, GAUSS, PAIR, **options),
        "renyi.curve, 3 orders": partial(dp.renyi.curve, GAUSS, PAIR, orders=[2, 5, 7], **options),
        "spectrum.estimate, 41 ε": partial(dp.spectrum.estimate, GAUSS, PAIR, **options),
        "tradeoff.estimate": partial(dp.tradeoff.estimate, GAUSS, PAIR, confidence=None, **options),
        "audit": lambda: dp.audit(GAUSS, PAIR, CLAIM, n=n, rng=next(_SEEDS)),  # nothing remembered
        "estimate": partial(dp.estimate, GAUSS, PAIR, **options),
    }


def costs(sizes: tuple[int, ...]) -> Iterator[Cost]:
    """Measured in turns with drawing alone; from 10⁸ on once."""
    for n in sizes:
        many = n >= 10**8
        for notion, call in calls(n).items():
            draw = partial(draw_bare, GAUSS, [PAIR], n)
            ours, bare = compare({notion: call, "drawing": draw}, repeats=1 if many else 3)
            yield Cost(notion, n, ours.median, ours.low, ours.high, bare.median, peak_memory(call))


def exponent(found: list[Cost]) -> float:
    """The power of n with which the seconds grow, between the two largest n."""
    a, b = sorted(found, key=lambda cost: cost.n)[-2:]
    return math.log(b.seconds / a.seconds) / math.log(b.n / a.n)
