"""A description of any Python object by its content, which is the same in another process.

    functions    code, defaults, closure, attributes, and the globals they refer to
    methods      the function and the object it is bound to
    instances    the class, `__dict__`, `__slots__`, the content of containers and what `__reduce__` gives
    classes      methods, class attributes, bases
    modules      the attributes that the code refers to
    arrays       type, shape and a digest of the bytes

Code of an installed package or of the standard library counts by its name and version. Random generators
and locks count by their type: their state is no parameter. Nothing depends on memory addresses or on the
order of sets. What cannot be described raises `Undescribed`.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import importlib
import pickle
import random
import sys
import sysconfig
import threading
import types
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.outputs import foreign_arrays

#: Entries that are kept one by one; the others are one digest.
_ENTRIES = 500
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range)
#: Objects whose state is no parameter.
_STATEFUL = (
    random.Random,
    np.random.Generator,
    np.random.BitGenerator,
    np.random.RandomState,
    type(threading.Lock()),
    type(threading.RLock()),
)
#: Objects that wrap functions, and the attributes that hold them.
_WRAPPERS: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools._lru_cache_wrapper: ("__wrapped__", "__dict__"),
}
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


class Undescribed(Exception):
    """An object that cannot be described; the text says which, and where it was found."""


def describe(value: Any) -> dict[str, str]:
    """The description of an object: what is found at each path from it."""
    found = _Description()
    try:
        found.add(value, "")
    except RecursionError:
        raise Undescribed(f"a {type_name(value)} (nested too deeply)") from None
    return found.entries()


def digest(value: Any) -> str:
    """A digest of the description of an object."""
    return _short(repr(sorted(describe(value).items())))


def type_name(value: Any) -> str:
    """The type of a value, with its module."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


class _Description:
    """Entries by path, and the objects that they describe."""

    def __init__(self, around: _Description | None = None) -> None:
        self._found: dict[str, str] = {}
        self._rest: Any = None  # a digest of all entries past the first ones
        # objects by id: this also keeps them alive, so that no id comes twice
        self._seen: ChainMap[int, tuple[Any, str]] = (
            ChainMap() if around is None else around._seen.new_child()
        )

    def entries(self) -> dict[str, str]:
        rest = {} if self._rest is None else {"everything else": self._rest.hexdigest()[:16]}
        return {**self._found, **rest}

    def say(self, path: str, text: str) -> None:
        path = path or "value"
        if path in self._found and self._found[path] != text:
            self._found[path] += f"; {text}"
        elif path in self._found or len(self._found) < _ENTRIES:
            self._found[path] = text
        else:
            self._rest = self._rest or hashlib.sha256()
            self._rest.update(_encoded(repr((path, text))))

    def add(self, value: Any, path: str) -> None:
        """Describe a value and all that it holds."""
        if type(value) in _ATOMS or (isinstance(value, np.generic) and _is_installed(type(value))):
            self.say(path, _shortened(value))
            return
        if id(value) in self._seen:
            self.say(path, f"the same as {self._seen[id(value)][1] or 'the whole'}")
            return
        self._seen[id(value)] = value, path
        try:
            self._add_content(value, path, f"{path}." if path else "")
        except (Undescribed, RecursionError):
            raise
        except Exception as error:  # of the class, when it is copied or pickled
            where = f"{path} is " if path else ""
            why = f"{type(error).__name__}: {error}"
            raise Undescribed(f"{where}a {type_name(value)} ({why})") from None

    def _add_content(self, value: Any, path: str, dot: str) -> None:
        kind = type(value)
        installed = _is_installed(kind)
        if kind is types.FunctionType:
            self._add_function(value, dot)
        elif kind is types.CodeType:
            self.say(f"{dot}code", _code(value))
        elif isinstance(value, types.ModuleType):
            self._add_module(value, path, None, frozenset())
        elif isinstance(value, type):
            self._add_class(value, path, dot)
        elif kind is types.MethodType:
            self.add(value.__func__, path)
            self.add(value.__self__, f"{dot}self")
        elif kind is functools.partial:
            self.add(value.func, path)
            held = {**dict(enumerate(value.args)), **value.keywords, **vars(value)}
            self._add_items(held.items(), dot)
        elif kind.__name__ == "cython_function_or_method":
            self._add_compiled(value, path, dot)
        elif (wrapped := _wrapped(value)) is not None:
            self.say(f"{dot}type", _named(kind))
            self._add_items(wrapped.items(), dot)
        elif kind in (list, tuple):
            self.say(path, f"{kind.__name__} of {len(value)}")
            self._add_items(enumerate(value), dot)
        elif kind in (dict, types.MappingProxyType):
            self._add_dict(value, path, dot)
        elif kind in (set, frozenset):
            self._add_set(value, path)
        elif installed and isinstance(value, _STATEFUL):
            self.say(path, f"a {type_name(value)}")
        elif kind is np.ndarray or (installed and hasattr(kind, "__dlpack__")):
            self._add_array(value, path, dot)
        else:
            self._add_instance(value, path, dot)

    def _add_compiled(self, function: Any, path: str, dot: str) -> None:
        if "<locals>" in function.__qualname__:  # what it refers to is hidden
            raise Undescribed(f"{path or 'it'} is an inner function of compiled code")
        self.say(f"{dot}function", _named(function))
        self._add_items(enumerate(function.__defaults__ or ()), dot)

    def _add_instance(self, value: Any, path: str, dot: str) -> None:
        kind = type(value)
        self.add(kind, f"{dot}class")
        if not _is_installed(kind):
            self._add_state(object.__getstate__(value), dot)
        if any(_is_installed(base) and base is not object for base in kind.__mro__):
            self._add_reduced(value, path, dot)

    def _add_items(self, items: Iterable[tuple[Any, Any]], prefix: str) -> None:
        for key, one in items:
            self.add(one, f"{prefix}{key}")

    def _add_function(self, function: Any, dot: str) -> None:
        self.say(f"{dot}function", _named(function))
        self.say(f"{dot}code", _code(function.__code__))
        self._add_items(enumerate(function.__defaults__ or ()), f"{dot}default ")
        self._add_items((function.__kwdefaults__ or {}).items(), dot)
        self._add_items(vars(function).items(), dot)
        codes = list(_codes(function.__code__))
        used = tuple(dict.fromkeys(name for code in codes for name in code.co_names))
        referred: dict[str, Any] = {}
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                referred[name] = cell.cell_contents
            except ValueError:  # not filled yet
                referred[name] = None
        if not _is_installed(function):
            referred |= _referred(codes, function.__globals__)
        for name, one in referred.items():
            if isinstance(one, types.ModuleType):
                self._add_module(one, f"{dot}{name}", used, frozenset())
            else:
                self.add(one, f"{dot}{name}")

    def _add_module(
        self, module: Any, path: str, used: tuple[str, ...] | None, above: frozenset[str]
    ) -> None:
        """A module: by its version, or by those of its attributes that are used (None: all)."""
        self.say(path or "module", _versioned(module.__name__))
        if _is_installed(module) or module.__name__ in above:
            return
        held = {name: one for name, one in vars(module).items() if not _is_special(name)}
        for name in held if used is None else used:
            if isinstance(one := held.get(name), types.ModuleType):
                self._add_module(one, f"{path}.{name}", used, above | {module.__name__})
            elif name in held:
                self.add(one, f"{path}.{name}")

    def _add_class(self, cls: type, path: str, dot: str) -> None:
        self.say(path or "class", _named(cls))
        if _is_installed(cls):
            return
        self._add_items(enumerate(cls.__bases__), f"{dot}base ")
        for name, one in [*vars(cls).items()]:  # pickling adds `__slotnames__` to it
            if name == "_abc_impl" or isinstance(one, _DESCRIPTORS):
                continue
            function = isinstance(one, types.FunctionType) or _wrapped(one) is not None
            if function or not _is_special(name):  # the others are of the interpreter
                self.add(one, f"{dot}{name}")

    def _add_array(self, value: Any, path: str, dot: str) -> None:
        if type(value) is not np.ndarray:
            self.say(f"{dot}type", _named(type(value)))
        array = foreign_arrays.array(value)
        if array.dtype.hasobject:
            self.say(path, f"array {array.dtype} {array.shape}")
            self.add(array.tolist(), f"{dot}items")
        else:
            content = _short(np.ascontiguousarray(array).tobytes())
            self.say(path, f"array {array.dtype} {array.shape} ({content})")

    def _add_dict(self, value: Mapping[Any, Any], path: str, dot: str) -> None:
        keys = [_shortened(key) if type(key) in _ATOMS else "…" for key in value]
        self.say(path, f"dict of {len(value)} ({_short(repr(keys))})")
        for k, (key, one) in enumerate(value.items()):
            if type(key) in _ATOMS:
                self.add(one, f"{dot}{key}" if type(key) is str else f"{dot}{key!r}")
            else:
                self.add(key, f"{dot}key {k}")
                self.add(one, f"{dot}value {k}")

    def _add_set(self, value: Any, path: str) -> None:
        """The elements in the order of their descriptions: that of a set depends on the process."""
        each = []
        for one in value:
            inner = _Description(self)
            inner.add(one, "")
            each.append(repr(inner.entries()))
        content = _short("\n".join(sorted(each)))
        self.say(path, f"{type(value).__name__} of {len(value)} ({content})")

    def _add_state(self, state: Any, dot: str) -> None:
        """What an instance holds: `__dict__`, slots, or what it says itself."""
        for held in state if isinstance(state, tuple) and len(state) == 2 else (state,):
            if type(held) is dict:
                self._add_items(held.items(), dot)
            elif held is not None:
                self.add(held, f"{dot}state")

    def _add_reduced(self, value: Any, path: str, dot: str) -> None:
        """What pickling would save: how classes that are not written in Python tell what they hold."""
        reducer = copyreg.dispatch_table.get(type(value))
        made = reducer(value) if reducer is not None else value.__reduce_ex__(4)
        if isinstance(made, str):
            self.say(path, _global(value, made))
            return
        function, arguments, state, items, pairs = (*made, None, None, None)[:5]
        plain = function is copyreg.__newobj__  # type: ignore[attr-defined]
        if not plain:
            self.add(function, f"{dot}made by")
        self._add_items(enumerate(arguments[plain:]), f"{dot}argument ")
        self._add_state(state, dot)
        self._add_items(enumerate(items or ()), dot)
        if keyed := dict(pairs or ()):
            self._add_dict(keyed, path, dot)


def _wrapped(value: Any) -> dict[str, Any] | None:
    """The functions inside an object that wraps some; None if it is another object."""
    names = _WRAPPERS.get(type(value))
    if type(value).__module__.startswith("numba.") and hasattr(value, "py_func"):
        names = "py_func", "targetoptions"
    return None if names is None else {name: getattr(value, name, None) for name in names}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _referred(codes: list[types.CodeType], here: dict[str, Any]) -> dict[str, Any]:
    """The globals that code loads and the modules that it imports, as far as they are here."""
    found: dict[str, Any] = {}
    for step in (step for code in codes for step in dis.get_instructions(code)):
        name = step.argval
        if step.opname in _GLOBAL and name in here:
            found[name] = here[name]
        elif step.opname == "IMPORT_NAME":
            for absolute in (name, f"{here.get('__package__') or ''}.{name}"):
                try:
                    found[f"import {name}"] = importlib.import_module(absolute)
                    break
                except Exception:  # whatever a module does when it is imported
                    continue
    return found


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _code(code: types.CodeType) -> str:
    """A digest of code: without line numbers, comments and the docstring's place in a file."""
    inner = _Description()
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    inner.say("code", repr((code.co_code, *names)))
    inner._add_items(enumerate(code.co_consts), "constant ")
    return _short(repr(inner.entries()))


def _global(value: Any, name: str) -> str:
    """The address of an object that is saved by its name, if it is found there."""
    module = pickle.whichmodule(value, name)  # type: ignore[attr-defined]
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        raise Undescribed(f"a {type_name(value)} (it is not {module}.{name})")
    return f"{_versioned(module)}:{name}"


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:40]}… {_short(text)}"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _short(data: str | bytes) -> str:
    return hashlib.sha256(_encoded(data) if isinstance(data, str) else data).hexdigest()[:16]


def _module_of(thing: Any) -> str:
    if isinstance(thing, types.ModuleType):
        return thing.__name__
    return str(getattr(thing, "__module__", None) or "")


def _named(thing: Any) -> str:
    return f"{_versioned(_module_of(thing))}:{thing.__qualname__}"


def _is_installed(thing: Any) -> bool:
    return _installed(_module_of(thing))


@functools.cache
def _installed(module: str) -> bool:
    """Whether a module is of an installed package: its version stands for its code."""
    root = module.partition(".")[0]
    if root in ("dpassay", "builtins", *sys.builtin_module_names):
        return True
    file = getattr(sys.modules.get(module) or sys.modules.get(root), "__file__", None)
    if file is None:
        return root in sys.stdlib_module_names and root != "__main__"
    place = Path(file).resolve()
    if {"site-packages", "dist-packages"} & set(place.parts):
        return True
    folders = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return any(place.is_relative_to(Path(folder).resolve()) for folder in folders)


@functools.cache
def _versioned(module: str) -> str:
    """A module with the version of its package, or with a digest of its file if that is compiled code."""
    import importlib.metadata  # slow to import, and needed for stores alone

    if _installed(module):
        try:
            return f"{module} {importlib.metadata.version(module.partition('.')[0])}"
        except (importlib.metadata.PackageNotFoundError, ValueError):
            return module
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or file.endswith(".py"):
        return module
    return f"{module} ({_short(Path(file).read_bytes())})"
