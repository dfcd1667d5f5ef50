"""Which distributions a run draws from, and with which scale: a hint where to look, never a proof.

A mechanism may multiply standard noise by a scale that no call shows, and a scale that depends on data
may be accounted for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dpassay.validation import shown

#: The distribution, and the parameter that sets its scale, if it has one.
Call: TypeAlias = tuple[str, Any]

#: The position and the name of the parameter that sets the scale.
_SCALES = {
    "exponential": (0, "scale"),
    "gamma": (1, "scale"),
    "geometric": (0, "p"),
    "gumbel": (1, "scale"),
    "laplace": (1, "scale"),
    "logistic": (1, "scale"),
    "normal": (1, "scale"),
    "rayleigh": (0, "scale"),
}
_OTHERS = ("binomial", "choice", "integers", "permutation", "permuted", "poisson", "random", "shuffle",
           "standard_exponential", "standard_gamma", "standard_normal", "uniform")  # fmt: skip


class RecordingGenerator(np.random.Generator):
    """A generator that notes the calls of its distributions."""

    def __init__(self, bit_generator: np.random.BitGenerator) -> None:
        super().__init__(bit_generator)
        self.calls: list[Call] = []


def _recorded(name: str) -> Callable[..., Any]:
    plain = getattr(np.random.Generator, name)
    place, key = _SCALES.get(name, (0, ""))

    @functools.wraps(plain)
    def run(self: RecordingGenerator, *args: Any, **options: Any) -> Any:
        given = options.get(key, args[place] if key and len(args) > place else None)
        self.calls.append((name, given))
        return plain(self, *args, **options)

    return run


for _name in (*_SCALES, *_OTHERS):
    setattr(RecordingGenerator, _name, _recorded(_name))


def suspicion(first: list[Call], second: list[Call]) -> str:
    """The first call that differs between the two inputs; empty if none does."""
    for k, ((name, scale), (other, another)) in enumerate(
        zip(first, second, strict=False), start=1
    ):
        if name != other:
            return f"call {k}: {name} on the first input, {other} on the second"
        if not np.array_equal(scale, another):
            what, one, two = _SCALES[name][1], shown(scale, 30), shown(another, 30)
            return f"call {k}: {name} with {what}={one} on the first input, {two} on the second"
    if len(first) != len(second):
        k, longer = min(len(first), len(second)), max(first, second, key=len)
        where = "first" if longer is first else "second"
        return f"call {k + 1}: {longer[k][0]} on the {where} input, no such call on the other"
    return ""
