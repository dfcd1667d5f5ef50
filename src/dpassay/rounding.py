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
