"""Validation of arguments: messages name the argument, its value, what is allowed, and the remedy."""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import numbers
import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput

#: The largest count: doubles do not hold all larger whole numbers.
MOST = 2**53


def shown(value: Any, limit: int = 80) -> str:
    """A value as text, shortened for a message; arrays without "array(…)"."""
    try:
        text = str(value) if hasattr(value, "dtype") else repr(value)
    except Exception:  # any object may raise; whole numbers of thousands of digits do
        text = f"a {type(value).__name__} that cannot be printed"
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def whole(
    name: str, value: Any, *, at_least: int = 1, at_most: float = MOST, remedy: str = ""
) -> int:
    """Return `value` as an int, or explain why it is not one."""
    number = None
    if isinstance(value, float) and value.is_integer():
        number = int(value)  # 1e5 is how people write a sample size
    elif not isinstance(value, bool) and isinstance(value, numbers.Integral):
        with contextlib.suppress(TypeError):  # a duration is an integer to NumPy
            number = operator.index(value)
    if number is None or not at_least <= number <= at_most:
        above = number is not None and number > at_most
        allowed = f"a whole number of at least {at_least}" + f" and at most {at_most:,}" * above
        raise _refused(name, value, allowed, remedy)
    return number


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
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    if (
        not at_least <= number <= at_most  # NaN too
        or (finite and math.isinf(number))
        or (above > -math.inf and number <= above)
        or (below < math.inf and number >= below)
    ):
        low = f"above {above:g}" if above > -math.inf else f"at least {at_least:g}"
        high = f"below {below:g}" if below < math.inf else f"at most {at_most:g}"
        limits = " and ".join(limit for limit in (low, high) if "inf" not in limit)
        raise _refused(name, value, f"a number {limits}".rstrip(), remedy)
    return number


def probability(name: str, value: Any, *, remedy: str = "") -> float:
    """Return a probability strictly between 0 and 1."""
    if not remedy and isinstance(value, (int, float)) and 1 < value < 100:
        remedy = f"{value:g} % is {value / 100:g}"
    return real(name, value, above=0.0, below=1.0, remedy=remedy)


def confidence(value: Any) -> float:
    """Return a confidence, 1 less the error probability; one below 0.5 is taken for that probability."""
    found = probability("confidence", value)
    if found < 0.5:
        raise _refused("confidence", value, "at least 0.5", f"did you mean {1 - found:g}?")
    return found


def read_json(text: str | bytes) -> Any:
    """Parse JSON; a ValueError if that is not possible."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidInput("it is nested too deeply") from None


def doubles(name: str, values: Any) -> FloatArray:
    """Return a number, or an array of numbers of any shape, as doubles without NaN."""
    try:
        found = np.asarray(values, dtype=float)
    except Exception:  # any object may raise
        found = np.asarray(math.nan)
    if np.isnan(found).any():
        raise _refused(name, values, "a number, or an array of numbers without NaN")
    return found


def renyi_orders(order: Any) -> FloatArray:
    """Return the orders of Rényi divergences, one or an array, all above 0; ∞ is one."""
    found = doubles("order", order)
    if not np.all(found > 0):
        raise _refused("order", order, "above 0")
    return found


def two_inputs(pair: Any) -> tuple[Any, Any]:
    """Return the two inputs of a pair."""
    try:
        first, second = pair
    except Exception:  # any object may raise
        raise _refused("pair", pair, "two inputs, such as (0.0, 1.0)") from None
    return first, second


def scalar_or_array(found: Any) -> Any:
    """A float for an array without dimensions: scalars in give a float out."""
    return found if isinstance(found, np.ndarray) and found.ndim else float(found)


def listed(name: str, values: Any) -> list[Any]:
    """Return the items of any iterable as a list."""
    try:
        return list(values)
    except Exception:  # any object may raise
        raise _refused(name, values, "a list") from None


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise _refused(name, value, "True or False")
    return bool(value)


def has(value: Any, *names: str) -> bool:
    """Whether an object has all these attributes; False if looking them up raises."""
    try:
        return all(hasattr(value, name) for name in names)
    except Exception:  # any object may raise
        return False


def writable(what: str, place: Path) -> None:
    """Refuse a file that cannot be written."""
    refused = f"the {what} cannot be written to {str(place)!r}"
    folder = place.resolve().parent
    if place.is_dir() or not folder.is_dir():
        raise InvalidInput(f"{refused}: give a file in a folder that exists")
    if not os.access(place if place.exists() else folder, os.W_OK):
        raise InvalidInput(f"{refused}: no permission; give another place")


def require(condition: Any, text: str) -> None:
    """Refuse input for which a condition does not hold."""
    if not condition:
        raise InvalidInput(text)


def one_of(name: str, value: Any, allowed: Iterable[str], *, remedy: str = "") -> str:
    """Return `value` if it is one of the allowed words."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        meant = difflib.get_close_matches(value, words, 1) if isinstance(value, str) else ()
        remedy = remedy or "".join(f"did you mean {one!r}?" for one in meant)
        raise _refused(name, value, "one of " + ", ".join(map(repr, words)), remedy)
    return str(value)


def _refused(name: str, value: Any, allowed: str, remedy: str = "") -> InvalidInput:
    text = f"{name} must be {allowed}, got {shown(value)}"
    return InvalidInput(f"{text}; {remedy}" if remedy else text)
