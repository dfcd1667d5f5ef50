"""Rounding of numbers for display; bounds are rounded to the safe side."""

from __future__ import annotations

import math


def rounded_up(value: float, scale: float = 1.0) -> str:
    """An upper bound with four significant digits, never less than the value, times a scale."""
    return _rounded(scale * value, 1) if 0 < value < 1 else number(scale * value)


def rounded_down(value: float) -> str:
    """A lower bound with four significant digits, never more than the value."""
    return _rounded(value, -1) if 0 < value < math.inf else number(value)


def _rounded(value: float, side: int) -> str:
    near = float(f"{value:.4g}")
    if (near - value) * side >= 0:
        return f"{near:.4g}"
    return f"{near + side * 10.0 ** (math.floor(math.log10(value)) - 3):.4g}"


def number(value: float) -> str:
    """A number with four significant digits, or ∞."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value + 0.0:.4g}"  # −0.0 is 0
