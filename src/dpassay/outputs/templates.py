"""Templates: what is left of an output without its numbers, and how it reads.

A template is a nested tuple: a leaf such as ("none",) or ("str", "a"), a container such as ("seq", (…)),
or ("number",), the place of a number. The number of the k-th leaf has its place in column k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

Template: TypeAlias = tuple[Any, ...]

NUMBER: Template = ("number",)
#: Integers up to here are doubles.
EXACT = 1 << 53
#: Longer sequences of free numbers are cut short in words.
_LONG = 12


@dataclass(frozen=True)
class Outcome:
    """An output of its own: the mechanism raised, or took too long.

    Seen with `Sampling(on_error="outcome")`. Failing on one input and not on its neighbour is
    leakage like any other.
    """

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}".strip()


def nested(leaf: Template, shape: Sequence[int]) -> Template:
    """Sequences of sequences of a leaf, as an array of that shape holds them."""
    for length in reversed(shape):
        leaf = ("seq", (leaf,) * length)
    return leaf


@lru_cache(maxsize=1 << 14)
def number_columns(template: Template) -> tuple[int, ...]:
    """The columns of a template's numbers: the places of its number leaves among all leaves."""
    return tuple(k for k, leaf in enumerate(leaves_of(template)) if leaf == NUMBER)


def exact(number: float, rest: float = 0.0, origin: float = 0.0) -> float | int:
    """origin + number + rest, as a whole number where it is one beyond 2**53."""
    total = origin + (number + rest)
    if abs(total) < EXACT or not (number + rest).is_integer():
        return total
    return int(origin) + int(number) + int(rest)


def children(template: Template) -> tuple[Template, ...]:
    """What a container holds; nothing for a leaf."""
    match template[0]:
        case "seq" | "set" | "complex" | "date" | "duration":
            return tuple(template[1])
        case "dict":
            return tuple(child for _, child in template[1])
        case "object":
            return tuple(child for _, child in template[2])
        case _:
            return ()


def is_template(found: Any) -> bool:
    """Whether this is a template, whatever it was read from."""
    match found:
        case ("number" | "none" | "nan" | "inf" | "-inf",):
            return True
        case ("str" | "integer" | "fraction" | "wide" | "time" | "enum", str()):
            return True
        case ("bytes", str(text)):
            return len(text) % 2 == 0 and all(letter in "0123456789abcdef" for letter in text)
        case ("outcome", str(), str()):
            return True
        case ("seq" | "set", tuple(items)):
            return all(map(is_template, items))
        case ("complex", (first, second)):
            return is_template(first) and is_template(second)
        case ("date" | "duration", (("number",), ("number",)), *zones):
            return all(isinstance(zone, str) for zone in zones)
        case ("dict", tuple(entries)) | ("object", str(), tuple(entries)):
            return all(
                isinstance(entry, tuple)
                and len(entry) == 2
                and isinstance(entry[0], str)
                and is_template(entry[1])
                for entry in entries
            )
    return False


def leaves_of(template: Template) -> Iterator[Template]:
    """All leaves, in reading order."""
    inner = children(template)
    if inner or template[0] in ("seq", "set", "dict", "object"):
        for child in inner:
            yield from leaves_of(child)
    else:
        yield template


def show(template: Template, numbers: Sequence[Any] | None = None) -> str:
    """An output in words; places without a number, or whose number is None, are shown as •."""
    given = iter(numbers) if numbers is not None else None
    return _show(template, given)


def _show(template: Template, given: Iterator[Any] | None) -> str:
    def each(items: Sequence[Template]) -> str:
        return ", ".join(_show(child, given) for child in items)

    match template[0]:
        case "number":
            number = None if given is None else next(given)
            if number is None:
                return "•"
            return number if isinstance(number, str) else written(number)
        case "str":
            return repr(template[1])
        case "bytes":
            return repr(bytes.fromhex(template[1]))
        case "outcome":
            return " ".join(part for part in template[1:] if part)
        case "seq":
            items = [_show(child, given) for child in template[1]]
            if len(items) > _LONG and "•" in items[0] and len(set(items)) == 1:
                items = [items[0], items[0], f"…: {len(items):,} in all"]  # the length tells all
            return "(" + ", ".join(items) + ")"
        case "set":
            return "{" + each(template[1]) + "}"
        case "complex":
            return "complex(" + each(template[1]) + ")"
        case "date" | "duration":
            return _show_time(template, given)
        case "dict":
            return "{" + ", ".join(f"{k!r}: {_show(c, given)}" for k, c in template[1]) + "}"
        case "object":
            inner = ", ".join(f"{k}={_show(c, given)}" for k, c in template[2])
            return f"{template[1]}({inner})"
        case "integer" | "fraction" | "wide" | "time" | "enum" | "key" | "part":
            return str(template[1])
        case special:
            return "None" if special == "none" else str(special)


def _show_time(template: Template, given: Iterator[Any] | None) -> str:
    seconds, nanos = (None, None) if given is None else (next(given), next(given))
    if not isinstance(seconds, (int, float)) or not isinstance(nanos, (int, float)):
        return f"a {template[0]}"
    if template[0] == "duration":
        return f"{seconds + nanos / 1e9:g} s"
    at = np.datetime64(int(seconds), "s") + np.timedelta64(int(nanos), "ns")
    return str(at).rstrip("0").rstrip(".") + "".join(f" {zone}" for zone in template[2:])


def written(number: float | int, digits: int = 6) -> str:
    """A number for people: six digits, or all of a whole number (up to forty)."""
    if abs(number) < (1e40 if isinstance(number, int) else 1e15) and number == int(number):
        return str(int(number))
    if 1e4 <= abs(number) < 1e15:  # digits after the point, where there are some
        digits = max(digits, math.ceil(math.log10(abs(number))) + 3)
    return f"{number + 0.0:.{digits}g}"


def told_apart(numbers: Sequence[float | int]) -> list[str]:
    """Numbers with as many digits as tell them apart, six at least."""
    distinct = len(set(numbers))
    for digits in range(6, 17):
        shown = [written(number, digits) for number in numbers]
        if len(set(shown)) == distinct:
            return shown
    return [written(number, 17) for number in numbers]
