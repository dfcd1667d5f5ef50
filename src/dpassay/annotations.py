"""Checks of values from JSON against the type annotations of a record."""

from __future__ import annotations

import contextlib
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray
from dpassay.errors import InvalidInput
from dpassay.validation import shown

#: Arrays: what they are called, their dtype, and the kinds that a list of JSON may become.
_ARRAYS: tuple[tuple[Any, str, Any, str], ...] = (
    (FloatArray, "a list of numbers", np.float64, "iuf"),
    (IntArray, "a list of whole numbers of 64 bits", np.int64, "iu"),
    (BoolArray, "a list of true and false", np.bool_, "b"),
)
_CALLED = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}


def choices(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union; of another annotation the annotation itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def typed(value: Any, hint: Any, where: str) -> Any:
    """The value as an annotation declares it; else an error that names the place."""
    kinds = [kind for kind in choices(hint) if kind is not type(None)]
    if hint is Any or (value is None and len(kinds) < len(choices(hint))):
        return value
    if len(kinds) == 1:
        return _one(value, kinds[0], where)
    for kind in kinds:
        with contextlib.suppress(InvalidInput):
            return _one(value, kind, where)
    raise _misfit(where, value, " or ".join(map(_called, kinds)))


def _one(value: Any, kind: Any, where: str) -> Any:
    for array, _, dtype, allowed in _ARRAYS:
        if kind == array:
            found = _array(value, allowed)
            if found is None:
                raise _misfit(where, value, _called(kind))
            return found.astype(dtype)
    if get_origin(kind) is tuple:
        return _tuple(value, kind, where)
    if isinstance(kind, type) and _is(value, kind):
        return kind(value) if kind is float or issubclass(kind, Enum) else value
    raise _misfit(where, value, _called(kind))


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) is float or (type(value) is int and abs(value) < 2**1023)
    if kind is str:
        return isinstance(value, str) and _encodable(value)
    if issubclass(kind, Enum):
        return isinstance(value, str) and value in {one.value for one in kind}
    return type(value) is kind if kind in (int, bool) else isinstance(value, kind)


def _encodable(text: str) -> bool:
    """Whether it can be written as UTF-8: JSON may hold a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _array(value: Any, allowed: str) -> AnyArray | None:
    """A list as an array of one of these kinds; None where it cannot be one."""
    if not isinstance(value, (list, tuple)):
        return None
    try:
        found = np.asarray(value)
    except (ValueError, OverflowError):  # rows of different lengths
        return None
    return found if found.dtype.kind in allowed or not found.size else None


def _tuple(value: Any, hint: Any, where: str) -> tuple[Any, ...]:
    inner = get_args(hint)
    fixed = len(inner) if inner[-1] is not Ellipsis else None
    if not isinstance(value, (list, tuple)) or (fixed is not None and len(value) != fixed):
        raise _misfit(where, value, _called(hint))
    kinds = inner if fixed is not None else [inner[0]] * len(value)
    return tuple(
        typed(item, kind, f"{where}[{k}]")
        for k, (item, kind) in enumerate(zip(value, kinds, strict=True))
    )


def _called(kind: Any) -> str:
    """The name of a type in an error message."""
    for array, words, *_ in _ARRAYS:
        if kind == array:
            return words
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        return "a list" if inner[-1] is Ellipsis else f"a list of {len(inner)}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(repr(str(one)) for one in kind)
    name = getattr(kind, "__name__", str(kind))
    return _CALLED.get(kind, f"a {name}")


def _misfit(where: str, value: Any, allowed: str) -> InvalidInput:
    return InvalidInput(f"{where} must be {allowed}, got {shown(value)}")
