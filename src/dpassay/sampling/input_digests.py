"""Fingerprints of inputs; `job.draw_task` compares them to notice an input that was changed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpassay.outputs import foreign_arrays
from dpassay.privacy.pairs import Pair

#: Larger inputs are not looked at: taking the fingerprint would cost more than drawing.
_BYTES, _ITEMS = 1 << 24, 20_000


class _TooLarge(Exception):
    pass


def fingerprint(value: Any) -> bytes | None:
    """A digest of what a value holds; None if it cannot change, is very large, or of an unknown kind."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return None
    return digest_of(value, _ITEMS, _BYTES)


def digest_of(value: Any, items: int = 1 << 22, most: int = 1 << 32) -> bytes | None:
    """A digest of what a value holds; None if it holds more than so much, or is of an unknown kind."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        _add(value, digest, [items, most])
    except (_TooLarge, TypeError, ValueError, AttributeError, RecursionError):
        return None
    return digest.digest()


def same_inputs(pair: Pair) -> bool:
    """Whether the two inputs of a pair are equal, as far as that can be told."""
    first, second = fingerprint(pair[0]), fingerprint(pair[1])
    if first is not None or second is not None:
        return first == second
    try:
        return type(pair[0]) is type(pair[1]) and bool(pair[0] == pair[1])
    except (TypeError, ValueError):
        return False


def _add(value: Any, digest: Any, left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise _TooLarge
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        digest.update(repr(value).encode())
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            _add(value.tolist(), digest, left)
            return
        if value.nbytes > left[1]:
            raise _TooLarge
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _add(item, digest, left)
    elif isinstance(value, Mapping):
        digest.update(f"{{{len(value)}".encode())
        for key, item in value.items():
            _add(key, digest, left)
            _add(item, digest, left)
    elif isinstance(value, (set, frozenset)):
        _add(sorted(map(repr, value)), digest, left)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            _add(getattr(value, field.name), digest, left)
    elif (table := foreign_arrays.columns(value)) is not None:
        _add([table[0], *table[1]], digest, left)
    elif hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        _add(foreign_arrays.array(value), digest, left)
    else:
        raise TypeError
