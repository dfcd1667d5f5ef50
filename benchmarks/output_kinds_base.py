"""A kind of output that systems with differential privacy release, with a planted leak and without.

Every kind starts from a noisy number: the answer to a query of sensitivity 1, released by randomized
response, by the geometric mechanism, or by the geometric mechanism on a fine grid. The output is made of
that number and of randomness that does not depend on the data. By post-processing, the ε of the output
is at most that of the noisy number, floating-point arithmetic included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator
#: ε of the planted leak, and of its correct twin under the claim ε = 1.
LEAK, TWIN = 4.0, 0.9
#: Steps of the grid in a unit.
GRID = 64


def coin(x: int, epsilon: float, size: int, rng: Rng) -> Any:
    """Randomized response on a bit: ε-DP."""
    return x ^ (rng.random(size) < 1 / (1 + math.exp(epsilon))).astype(int)


def count(x: int, epsilon: float, size: int, rng: Rng) -> Any:
    """An integer with two-sided geometric noise: ε-DP for queries of sensitivity 1."""
    p = -math.expm1(-epsilon)
    return x + rng.geometric(p, size) - rng.geometric(p, size)


def value(x: int, epsilon: float, size: int, rng: Rng) -> Any:
    """Laplace noise on a grid, as integers over a power of two: ε-DP for queries of sensitivity 1."""
    return count(GRID * x, epsilon / GRID, size, rng) / GRID


@dataclass(frozen=True)
class Kind:
    """How an output is made from a noisy number, and the one feature of an output that shows the number.

    `make(number, rng)` gives one output; with `batch`, `make(numbers, rng)` gives an array of outputs.
    `needs_knowledge` marks a leak that is visible only to those who know how the output was made.
    """

    name: str
    about: str
    make: Callable[[Any, Rng], Any]
    feature: Callable[[Any], Any]
    noise: Callable[[int, float, int, Rng], Any] = coin
    batch: bool = False
    pair: tuple[Any, Any] = (0, 1)
    query: Callable[[Any], int] = int
    needs_knowledge: bool = False

    def release(self, leak: bool) -> Callable[[Any, int, Rng], Any]:
        """The mechanism with ε = 4, or its correct twin."""
        epsilon = LEAK if leak else TWIN

        def mechanism(data: Any, size: int, rng: Rng) -> Any:
            numbers = self.noise(self.query(data), epsilon, size, rng)
            if self.batch:
                return self.make(numbers, rng)
            return [self.make(number, rng) for number in numbers.tolist()]

        return mechanism

    def reduced(self, leak: bool) -> Callable[[Any, int, Rng], Any]:
        """The same mechanism, of which only the feature is released."""
        mechanism = self.release(leak)

        def features(data: Any, size: int, rng: Rng) -> Any:
            return [self.feature(output) for output in mechanism(data, size, rng)]

        return features


KINDS: dict[str, Kind] = {}


def kind(feature: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    """Register the function that makes an output under its name; its docstring says what leaks."""

    def register(make: Callable[[Any, Rng], Any]) -> Callable[[Any, Rng], Any]:
        name = make.__name__
        KINDS[name] = Kind(name, (make.__doc__ or "").rstrip("."), make, feature, **options)
        return make

    return register


def sample(pool: Any, size: int, rng: Rng) -> list[Any]:
    """Distinct items of a pool in random order."""
    return [pool[k] for k in rng.permutation(len(pool))[:size].tolist()]


def shuffled(items: list[Any], rng: Rng) -> list[Any]:
    """The same items in random order."""
    return sample(items, len(items), rng)


def letters(size: int, rng: Rng) -> str:
    """Random lower-case letters."""
    return bytes((97 + rng.integers(0, 26, size)).tolist()).decode()


def between(low: int, number: int, high: int) -> int:
    """The number, moved into the range."""
    return max(low, min(number, high))
