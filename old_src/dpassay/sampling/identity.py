"""What a mechanism and its inputs are: descriptions that stores compare, and digests of inputs.

Digests tell whether a mechanism changed its input in place, and whether two inputs are the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import platform
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay.errors import StoreError
from dpassay.outputs import foreign_arrays
from dpassay.privacy.relations import Pair
from dpassay.sampling.descriptions import Undescribed, describe, digest, type_name

Identity = dict[str, str]
#: Larger inputs are not looked at: taking the digest would cost more than drawing.
_BYTES, _ITEMS = 1 << 24, 20_000
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)


def identity(mechanism: Any, named: str | None = None) -> Identity:
    """What a mechanism is, aspect by aspect; what its caller says it is, if that is given."""
    if named is not None:
        return {"identity": named}
    python = ".".join(platform.python_version_tuple()[:2])  # code is compiled by it
    try:
        return {"Python": python, **describe(mechanism)}
    except Undescribed as why:
        raise _unnamed(f"the mechanism {name_of(mechanism)}", why) from None


def name_of(mechanism: Any) -> str:
    """What a mechanism is called."""
    inner = getattr(mechanism, "function", getattr(mechanism, "func", mechanism))
    if hasattr(inner, "__qualname__"):
        return f"{inner.__module__}.{inner.__qualname__}"
    shown = str(mechanism)
    return type(mechanism).__qualname__ if " at 0x" in shown else shown


def difference(stored: Identity, here: Identity) -> str:
    """The first aspect in which two differ, in words; empty if there is none."""
    for aspect in dict.fromkeys([*stored, *here]):
        a, b = stored.get(aspect), here.get(aspect)
        if a != b:
            return f"{aspect} is {a or 'not there'} in the store, and {b or 'not there'} here"
    return ""


def input_identity(data: Any, named: str | None = None) -> Identity:
    """An input, shown and by what it holds; by its type if it cannot be described and a name is given."""
    try:
        held = f"{type_name(data)} {digest(data)}"
    except Undescribed as why:
        if named is None:
            raise _unnamed(f"the input {checks.shown(data)}", why) from None
        held = f"a {type_name(data)}"
    return {"shown": checks.shown(data), "holds": held}


def _unnamed(what: str, why: Undescribed) -> StoreError:
    return StoreError(
        f"{what} cannot be described, so a store could not tell it from another one: {why}. Name it: "
        'dp.Sampling(store=…, identity="trainer, scale 1") (--identity), and give another name whenever '
        "the mechanism or an input changes"
    )


# --- digests of inputs


def short_digest(value: Any) -> bytes | None:
    """A digest of what a value holds; None if it cannot change, is very large, or of an unknown kind."""
    return None if isinstance(value, _PLAIN) else digest_of(value, _ITEMS, _BYTES)


def why_changed(value: Any, before: bytes | None, mechanism: Any) -> str:
    """What to do about an input that changed since its digest was taken; empty if it did not.

    A copy for every output: one a call would be changed by the first of its outputs, and hide what the
    others are drawn on.
    """
    if before is None or short_digest(value) == before:
        return ""
    call = "lambda data, rng: mechanism(copy.deepcopy(data), 1, rng)[0]"
    if getattr(mechanism, "one_by_one", False):
        rng = ", rng" if getattr(mechanism, "takes_rng", False) else ""
        call = f"lambda data{rng}: function(copy.deepcopy(data){rng})"
    return (
        "it changed its input in place, so that later draws would be on another input; give every output "
        f"a copy of its own: dp.from_function({call})"
    )


def same_inputs(pair: Pair) -> bool:
    """Whether the two inputs of a pair are equal, as far as that can be told."""
    first, second = short_digest(pair[0]), short_digest(pair[1])
    if first is not None or second is not None:
        return first == second
    try:
        return type(pair[0]) is type(pair[1]) and bool(pair[0] == pair[1])
    except (TypeError, ValueError):
        return False


def digest_of(value: Any, items: int = 1 << 22, most: int = 1 << 32) -> bytes | None:
    """A digest of what a value holds; None if it holds more than so much, or is of an unknown kind."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        _digest_items(value, digest, [items, most])
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
    return digest.digest()


def _digest_items(value: Any, digest: Any, left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise ValueError
    if isinstance(value, _PLAIN):
        text = repr(value).encode("utf-8", "surrogatepass")
        digest.update(b"%d:%s" % (len(text), text))  # so that [1, 23] is not [12, 3]
        return
    items: Iterable[Any] = ()
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        if value.nbytes > left[1]:
            raise ValueError
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray):
        items = (value.tolist(),)
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        items = value
    elif isinstance(value, Mapping):
        digest.update(f"{{{len(value)}".encode())
        items = (part for item in value.items() for part in item)
    elif isinstance(value, (set, frozenset)):
        items = (sorted(map(repr, value)),)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = (getattr(value, field.name) for field in dataclasses.fields(value))
    elif (table := foreign_arrays.columns(value)) is not None:
        items = ([table[0], *table[1]],)
    elif hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        items = (foreign_arrays.array(value),)
    else:
        raise TypeError
    for item in items:
        _digest_items(item, digest, left)
