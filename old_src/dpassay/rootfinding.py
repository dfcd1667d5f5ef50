"""Root searches that say on which side they end: a bound takes the one that is safe for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

#: A place and the value of a function there.
Point: TypeAlias = tuple[float, float]


def bisect(
    holds: Callable[[Any], Any], inside: Any, outside: Any, *, steps: int = 60, close: float = 0.0
) -> tuple[Any, Any]:
    """Halve the bracket between a place where something holds and one where it does not.

    Elementwise for arrays. Of the two places that come back it holds at the first, as far as it did to
    begin with, and not at the second. Ends early when they differ by `close` of the second.

    >>> inside, outside = bisect(lambda x: x * x <= 2, 0.0, 2.0)
    >>> inside * inside <= 2 < outside * outside
    True
    """
    for _ in range(steps):
        middle = 0.5 * (inside + outside)
        good = holds(middle)
        if isinstance(middle, float):
            inside, outside = (middle, outside) if good else (inside, middle)
        else:
            inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
        if close and np.all(np.abs(outside - inside) <= close * np.abs(outside)):
            break
    return inside, outside


def last_reaching(
    f: Callable[[float], float],
    goal: float,
    low: Point,
    high: Point,
    *,
    close: float,
    apart: float = 0.0,
    steps: int = 60,
) -> tuple[Point, Point]:
    """The last place at which a falling and nearly linear function reaches the goal, by regula falsi.

    f(low) ≥ goal > f(high) to begin with and at the end. Ends when f(low) is within `close` of the goal,
    or the two places within `apart`.

    >>> low, high = last_reaching(lambda x: 3 - x, 1.0, (0.0, 3.0), (9.0, -6.0), close=1e-9)
    >>> round(low[0], 6), low[1] >= 1.0
    (2.0, True)
    """
    for step in range(steps):
        if low[1] - goal <= close or high[0] - low[0] <= max(apart, 1e-9 * abs(high[0])):
            break
        # aim a little before the root, so that steps end on the side that reaches the goal
        share = (low[1] - goal - close / 2) / max(low[1] - high[1], 1e-12)
        # and halve the bracket at times, in case it is not linear
        share = 0.5 if step % 4 == 3 else min(max(share, 0.02), 0.98)
        x = low[0] + share * (high[0] - low[0])
        found = x, f(x)
        low, high = (found, high) if found[1] >= goal else (low, found)
    return low, high
