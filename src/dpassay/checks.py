"""Validation at the border: messages name argument, value, what is allowed, and the remedy."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

from dpassay.errors import InvalidInput


def shown(value: Any, limit: int = 80) -> str:
    """A value as text, cut to a length fit for a message; arrays without their ceremony."""
    text = str(value) if hasattr(value, "dtype") else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def whole(name: str, value: Any, *, at_least: int = 1, remedy: str = "") -> int:
    """Return `value` as an int, or explain why it is not one."""
    integral = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not integral and isinstance(value, float) and value.is_integer():
        integral = True  # 1e5 is how people write a sample size
    if not integral or int(value) < at_least:
        raise InvalidInput(_message(name, value, f"a whole number of at least {at_least}", remedy))
    return int(value)


def real(
    name: str,
    value: Any,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    at_most: float = math.inf,
    below: float = math.inf,
    finite: bool = True,
    remedy: str = "",
) -> float:
    """Return `value` as a float inside the stated range, or explain why it is not."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if (
        not number
        or math.isnan(value)
        or (finite and math.isinf(value))
        or not (at_least <= value <= at_most)
        or (above > -math.inf and value <= above)
        or (below < math.inf and value >= below)
    ):
        allowed = _interval(at_least, above, at_most, below)
        raise InvalidInput(_message(name, value, allowed, remedy))
    return float(value)


def probability(name: str, value: Any, *, remedy: str = "") -> float:
    """Return a probability strictly between 0 and 1."""
    if not remedy and isinstance(value, (int, float)) and 1 < value < 100:
        remedy = f"{value:g} % is {value / 100:g}"
    return real(name, value, above=0.0, below=1.0, remedy=remedy)


def one_of(name: str, value: Any, allowed: Iterable[str], *, remedy: str = "") -> str:
    """Return `value` if it is one of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise InvalidInput(_message(name, value, "one of " + ", ".join(map(repr, words)), remedy))
    return str(value)


def _interval(at_least: float, above: float, at_most: float, below: float) -> str:
    parts = []
    if above > -math.inf:
        parts.append(f"above {above:g}")
    elif at_least > -math.inf:
        parts.append(f"at least {at_least:g}")
    if below < math.inf:
        parts.append(f"below {below:g}")
    elif at_most < math.inf:
        parts.append(f"at most {at_most:g}")
    return "a number" + (" " + " and ".join(parts) if parts else "")


def _message(name: str, value: Any, allowed: str, remedy: str) -> str:
    text = f"{name} must be {allowed}, got {shown(value)}"
    return f"{text}; {remedy}" if remedy else text
