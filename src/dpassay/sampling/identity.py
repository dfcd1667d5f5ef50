"""What a mechanism and its inputs are, in words that can be compared: a store holds the draws of one."""

from __future__ import annotations

import platform
from typing import Any

from dpassay import validation as checks
from dpassay.errors import StoreError
from dpassay.sampling.descriptions import Undescribed, describe, digest, type_name

Identity = dict[str, str]


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
