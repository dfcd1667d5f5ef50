"""What a mechanism is, in words that can be compared: a store holds the draws of one, and of no other.

Its name, module and version, the source of its functions and of those of the same module that they call,
and the values they refer to: parameters, closures, defaults, globals. What cannot be compared (a
connection, a random generator) counts by its type alone.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
import textwrap
import types
from typing import Any

import numpy as np

from dpassay import checks
from dpassay.sampling.input_digests import digest_of

Identity = dict[str, str]


def identity(mechanism: Any) -> Identity:
    """What a mechanism is, aspect by aspect."""
    found: Identity = {}
    _describe(mechanism, "", found, set())
    return found


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


def input_identity(data: Any) -> Identity:
    """An input, shown and by what it holds."""
    held = _value(data)
    return {
        "shown": checks.shown(data),
        "holds": held or f"a {_type(data)}",
        "compared": "yes" if held else "",
    }


def _describe(value: Any, path: str, found: Identity, seen: set[int]) -> None:
    """Add what can be said about a value under a path."""
    if (shown := _value(value)) is not None:
        found[path or "value"] = shown
        return
    if id(value) in seen or len(found) > 500:
        return
    seen.add(id(value))
    dot = f"{path}." if path else ""
    if isinstance(value, types.FunctionType):
        _describe_function(value, dot, found, seen)
    elif isinstance(value, types.MethodType):
        _describe(value.__func__, path, found, seen)
        _describe(value.__self__, f"{dot}self", found, seen)
    elif isinstance(value, functools.partial):
        _describe(value.func, path, found, seen)
        for name, one in (*enumerate(value.args), *value.keywords.items()):
            _describe(one, f"{dot}{name}", found, seen)
    elif isinstance(value, types.ModuleType):
        found[f"{dot}module"] = _versioned(value.__name__)
    elif isinstance(value, type):
        found[f"{dot}class"] = _named(value)
        _source(value, f"{dot}source", found)
    elif callable(value) or dataclasses.is_dataclass(value):
        _describe_object(value, path, dot, found, seen)
    else:
        found[path or "value"] = f"a {_type(value)}"


def _describe_function(function: Any, dot: str, found: Identity, seen: set[int]) -> None:
    found[f"{dot}function"] = _named(function)
    _source(function, f"{dot}source", found)
    for k, default in enumerate(function.__defaults__ or ()):
        _describe(default, f"{dot}default {k}", found, seen)
    names = _names(function.__code__)
    here = function.__globals__
    used = {name: here[name] for name in sorted(names) if name in here}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            used[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for name, one in used.items():
        module = getattr(one, "__module__", None)
        code = isinstance(one, (types.FunctionType, type)) and module != function.__module__
        if code:  # of another module: by its name and version
            found[f"{dot}{name}"] = _named(one)
        else:
            _describe(one, f"{dot}{name}", found, seen)


def _describe_object(value: Any, path: str, dot: str, found: Identity, seen: set[int]) -> None:
    found[path or "class"] = _named(type(value))
    _source(type(value), f"{dot}source", found)
    if dataclasses.is_dataclass(value):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        held = getattr(value, "__dict__", {})
    for name, one in held.items():
        _describe(one, f"{dot}{name}", found, seen)


def _names(code: types.CodeType) -> set[str]:
    """The global names a function refers to, those of functions inside it as well."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _source(thing: Any, path: str, found: Identity) -> None:
    if _package(thing) == "dpassay":  # its version says it
        return
    try:
        text = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        if code is None:
            return
        constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
        text = f"{code.co_code.hex()} {constants!r}"
    found[path] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _value(value: Any) -> str | None:
    """A value that can be compared, in words; None for any other."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        text = repr(value)
        return text if len(text) <= 80 else f"{text[:40]}… {_short(text.encode())}"
    digest = None if callable(value) else digest_of(value)
    return None if digest is None else f"{checks.shown(value, 60)} ({digest.hex()[:16]})"


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _type(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", "") or "").partition(".")[0]


def _named(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    module = str(getattr(named, "__module__", "") or "")
    return f"{_versioned(module)}:{named.__qualname__}"


@functools.cache
def _versioned(module: str) -> str:
    """A module with the version of what it belongs to, where that is known."""
    try:
        return f"{module} {importlib.metadata.version(module.partition('.')[0])}"
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return module
