"""Rounding of numbers for display; bounds are rounded to the safe side."""

from __future__ import annotations

import math


def rounded_up(value: float, scale: float = 1.0, places: int = 4) -> str:
    """An upper bound with so many significant digits, never less than the value, times a scale."""
    return _rounded(scale * value, 1, places) if 0 < value < math.inf else number(scale * value)


def rounded_down(value: float) -> str:
    """A lower bound with four significant digits, never more than the value."""
    return _rounded(value, -1, 4) if 0 < value < math.inf else number(value)


def _rounded(value: float, side: int, places: int) -> str:
    near = float(f"{value:.{places}g}")
    if (near - value) * side < 0:
        near += side * 10.0 ** (math.floor(math.log10(value)) + 1 - places)
    return f"{near:.{places}g}"


def number(value: float) -> str:
    """A number with four significant digits, or ∞."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value + 0.0:.4g}"  # −0.0 is 0


def decimals(resolution: float) -> int:
    """How many decimals tell numbers apart that differ by so much."""
    if not 0 < resolution < math.inf:
        return 17
    return min(max(0, -math.floor(math.log10(resolution))), 300)


def shortest_above(low: float, high: float) -> float:
    """The number with the fewest digits in (low, high]."""
    for digits in range(1, 17):
        unit = 10.0 ** (math.floor(math.log10(abs(high) or 1.0)) + 1 - digits)
        if not 0 < unit < math.inf:
            break
        found = float(f"{math.floor(high / unit) * unit:.{digits}g}")
        if low < found <= high:
            return found
    return high
