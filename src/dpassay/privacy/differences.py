"""Where two inputs differ, in a few words: neighbours are long and differ in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpassay.checks import shown

#: The longest text of an entry.
_ENTRY = 30


def difference(first: Any, second: Any) -> str:
    """ "two lists of 200 that differ at [137]: 0.0 against 1.0"; empty if that cannot be told."""
    try:
        found = _first(first, second)
        return "" if found is None else f"{_kinds(first, second)}{found}"
    except Exception:  # inputs are objects of other people; a message must not fail for them
        return ""


def _first(a: Any, b: Any) -> str | None:
    """The words for the differences; None if there are none, or no way to look."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for one, other, which in ((a, b, "first"), (b, a, "second")):
            alone = [key for key in one if key not in other]
            if alone:
                return f", of which only the {which} has [{shown(alone[0], _ENTRY)}]"
        return _differing([k for k in a if not _same(a[k], b[k])], a, b)
    if _many(a) and _many(b):
        one, other = _listed(a), _listed(b)
        if len(one) == len(other):
            return _differing(_unequal(one, other), one, other)
        return _lacking(one, other)
    return None


def _differing(where: Sequence[Any], a: Any, b: Any) -> str | None:
    if not where:
        return None
    key, path = where[0], f"[{shown(where[0], _ENTRY)}]"
    x, y = a[key], b[key]
    while _many(x) and _many(y) and len(_listed(x)) == len(_listed(y)):  # the entry in the row
        x, y = _listed(x), _listed(y)
        inner = _unequal(x, y)
        path, x, y = f"{path}[{inner[0]}]", x[inner[0]], y[inner[0]]
    more = f" and {len(where) - 1} more" if len(where) > 1 else ""
    return f" that differ at {path}{more}: {_entry(x)} against {_entry(y)}"


def _lacking(a: Any, b: Any) -> str:
    """One of the two is longer; if by one entry, which one that is."""
    (long, short), which = ((a, b), "first") if len(a) > len(b) else ((b, a), "second")
    if len(long) == len(short) + 1:
        early = _unequal(long[: len(short)], short)
        at = early[0] if early else len(short)
        if not _unequal(long[at + 1 :], short[at:]):
            return f", of which only the {which} has [{at}], {_entry(long[at])}"
    return ""


def _unequal(a: Any, b: Any) -> list[int]:
    """The places at which two equally long sequences differ."""
    if len(a) == 0:
        return []
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape:
        with np.errstate(invalid="ignore"):
            apart = a != b
            if a.dtype.kind == b.dtype.kind == "f":
                apart &= ~(np.isnan(a) & np.isnan(b))
        return [int(k) for k in np.flatnonzero(apart.reshape(len(a), -1).any(axis=1))]
    return [k for k, (x, y) in enumerate(zip(a, b, strict=True)) if not _same(x, y)]


def _same(x: Any, y: Any) -> bool:
    equal = x is y or x == y
    return bool(np.all(equal)) and np.shape(x) == np.shape(y)


def _many(value: Any) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    sequence = isinstance(value, (list, tuple)) or hasattr(value, "to_numpy")
    return sequence or (isinstance(value, np.ndarray) and value.ndim > 0)


def _listed(value: Any) -> Any:
    """A table of another library as an array of its rows."""
    return np.asarray(value.to_numpy()) if hasattr(value, "to_numpy") else value


def _kinds(a: Any, b: Any) -> str:
    names = {type(x).__name__ for x in (a, b)}
    kind = {"ndarray": "array"}.get(name := names.pop(), name) if len(names) == 1 else "input"
    sizes = dict.fromkeys((len(a), len(b)))
    return f"two {kind}s of {' and '.join(f'{size:,}' for size in sizes)}"


def _entry(value: Any) -> str:
    return shown(value.item() if isinstance(value, np.generic) else value, _ENTRY)
