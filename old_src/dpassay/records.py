"""Frozen records that go to JSON and come back.

A record is a frozen dataclass whose fields have the declared types: the constructor converts lists,
strings and NumPy scalars to the array, tuple, enum or float that is declared (JSON has no others). So no
record converts its own fields, and a constructor only checks what a user may get wrong.

In JSON a record is an object with its class name under "type" and one
entry per field; the outermost also carries the schema version and the version of dpassay that wrote it.
The schema version increases when files of before can no longer be read; a new field with a default value
is no such change. `python -m tools.schemas` writes the JSON Schema of records from their fields; files of
the last two minor versions are read (tests/fixtures). What JSON lacks is tagged, so that
an input of a mechanism comes back unchanged: ``{"$tuple": [...]}``, ``{"$array": [...]}``,
``{"$float": "inf"}``. Objects that cannot be rebuilt safely become ``{"$repr": "..."}`` and come back
as `Opaque`. Nothing is ever unpickled or evaluated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from dpassay._typing import BoolArray, FloatArray, IntArray
from dpassay._version import __version__
from dpassay.errors import InvalidInput
from dpassay.validation import probability, read_json, shown

SCHEMA = 3


@dataclass(frozen=True)
class Opaque:
    """Stands for an input that could not be written to JSON."""

    text: str

    def __repr__(self) -> str:
        return self.text


class Record:
    """Base of everything that serialises. Equality compares contents, arrays included."""

    _types: ClassVar[dict[str, type[Record]]] = {}

    def __post_init__(self) -> None:
        for name, convert in _conversions(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, convert(value))

    def _validate(self) -> None:
        """Refuse, in records from files, what no analysis produces, such as an index out of range."""
        confidence = getattr(self, "confidence", None)
        if confidence is not None:
            probability("confidence", confidence)

    def _set(self, **values: Any) -> None:
        """For constructors alone: records are frozen afterwards."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        known = Record._types.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:
            raise TypeError(f"{known.__module__} and {cls.__module__} both have a {cls.__name__}")
        Record._types[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON-ready dictionaries, lists and scalars."""
        return {"schema": SCHEMA, "dpassay": __version__, **encode(self)}

    def to_json(self, *, indent: int | None = None) -> str:
        """The record as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Rebuild a record from `to_dict`."""
        if not isinstance(data, dict) or "type" not in data:
            raise InvalidInput(
                f"not a dpassay record: {shown(data)}; expected an object with a 'type'"
            )
        schema = data.get("schema", SCHEMA)
        if schema != SCHEMA:
            newer = not isinstance(schema, int) or schema > SCHEMA
            raise InvalidInput(
                f"schema version {schema!r} is {'newer' if newer else 'older'} than this dpassay reads "
                f"({SCHEMA}); " + ("upgrade" if newer else "run the analysis again")
            )
        writer = typed(data.get("dpassay", __version__), str, "dpassay")
        try:
            record = decode({key: data[key] for key in data if key not in ("schema", "dpassay")})
        except RecursionError:
            raise InvalidInput("not a dpassay record: it is nested too deeply") from None
        except InvalidInput as error:
            if _minor(writer) <= _minor(__version__):
                raise
            raise InvalidInput(
                f"{error}; the file was written by dpassay {shown(writer)}, which is newer than this "
                f"({__version__}): upgrade"
            ) from None
        if not isinstance(record, cls):
            raise InvalidInput(f"expected a {cls.__name__}, found a {data['type']}")
        return record

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a record from `to_json`."""
        try:
            data = read_json(text)
        except (TypeError, ValueError) as error:
            path = str(text) if str(text).endswith(".json") else ""
            hint = f"; text is read, not a path: give Path({path!r}).read_text()" if path else ""
            raise InvalidInput(f"not JSON: {error}{hint}") from None
        return cls.from_dict(data)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or bool(encode(self) == encode(other))

    def __hash__(self) -> int:
        known = self.__dict__.get("_hash")  # records are frozen; caches hash them often
        if known is None:
            known = self.__dict__["_hash"] = hash(json.dumps(encode(self)))
        return int(known)


def _minor(version: str) -> tuple[int, ...]:
    """Major and minor version; empty for text that is no version."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", version)
    return tuple(map(int, found.groups())) if found else ()


@cache
def _conversions(cls: type) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """The fields of a record class that are converted, with their converters."""
    found = []
    for field in dataclasses.fields(cls):
        kinds = [kind for kind in choices(_hints(cls)[field.name]) if kind is not type(None)]
        convert = _conversion(kinds[0]) if len(kinds) == 1 else None
        if convert is not None and not field.metadata.get("verbatim"):
            found.append((field.name, convert))
    return tuple(found)


def _conversion(hint: Any) -> Callable[[Any], Any] | None:
    for array, _, kind, _ in _ARRAYS:
        if hint == array:
            return partial(np.asarray, dtype=kind)
    if isinstance(hint, type) and (hint is float or issubclass(hint, Enum)):
        return hint
    if get_origin(hint) is not tuple:
        return None
    inner = get_args(hint)
    item = _conversion(inner[0]) if inner[0] in (FloatArray, IntArray) else None
    return _tuples if item is None else lambda value: tuple(map(item, value))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) if isinstance(one, (list, tuple)) else one for one in value)


def encode(value: Any, *, plain: bool = False) -> Any:
    """Anything as JSON-ready data; see the module docstring for the tags.

    A record's own tuples and arrays are `plain` lists: its constructor restores them. Fields marked
    verbatim hold somebody else's data and keep their tags.
    """
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case Record():
            entries = {"type": type(value).__name__}
            for field in dataclasses.fields(value):  # type: ignore[arg-type]
                if not field.metadata.get("live"):  # those belong to this process alone
                    own = not field.metadata.get("verbatim")
                    entries[field.name] = encode(getattr(value, field.name), plain=own)
            return entries
        case None | bool():
            return value
        case str() | int():  # of enums the value
            return str(value) if isinstance(value, str) else int(value)
        case float():
            return value if math.isfinite(value) else {"$float": repr(value)}
        case np.ndarray() if plain:
            return encode(value.tolist())
        case np.ndarray() if value.dtype.kind in "biufU":
            return {"$array": encode(value.tolist()), "dtype": value.dtype.str}
        case tuple() if plain and type(value) is tuple:
            return [encode(item, plain=True) for item in value]
        case tuple():
            return {"$tuple": [encode(item) for item in value]}
        case list():
            return [encode(item) for item in value]
        case dict():
            named = all(isinstance(key, str) and not key.startswith("$") for key in value)
            if named and "type" not in value:
                return {key: encode(item) for key, item in value.items()}
            return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}
    return {"$repr": shown(value, 200)}


#: Bytes of an array in a file at most: a dtype of text may declare any length.
_LARGEST = 1 << 30
#: Types that need no decoding.
_PLAIN = frozenset({float, int, str, bool, type(None)})


def decode(value: Any, where: str = "") -> Any:
    """The inverse of `encode`. A file may hold anything: an error says `where` it is wrong."""
    if isinstance(value, list):
        return [
            item if type(item) in _PLAIN else decode(item, f"{where}[{k}]")
            for k, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    if "type" in value:
        return _record(value, where)
    if len(value) <= 2 and (tag := next(iter(value), "")).startswith("$"):
        try:
            return _untag(tag, value, where)
        except InvalidInput:
            raise
        except (TypeError, ValueError, OverflowError, LookupError) as error:
            raise _wrong(where, f"{shown(value)} cannot be read: {error}") from None
    return {key: decode(item, _inside(where, key)) for key, item in value.items()}


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _wrong(where: str, text: str) -> InvalidInput:
    return InvalidInput(f"{where}: {text}" if where else text)


_hints = cache(get_type_hints)
#: Where records are that a process may be given before anything has imported them.
_HOMES = {
    "AttackRates": "dpassay.membership.attacks",
    "MonitorState": "dpassay.monitoring.monitors",
    "Plan": "dpassay.auditing.plan_result",
    "SetSpectrum": "dpassay.notions.spectrum",
    "Verification": "dpassay.results.verification",
}


def _record(value: dict[str, Any], where: str) -> Record:
    """The record that an object with a "type" describes; every field is checked against its type."""
    kind = value["type"]
    if isinstance(kind, str) and kind not in Record._types and kind in _HOMES:
        importlib.import_module(_HOMES[kind])
    cls = Record._types.get(kind) if isinstance(kind, str) else None
    if cls is None or not hasattr(cls, "__dataclass_fields__"):
        own = "if it is a class of your own, import the module that defines it first"
        raise _wrong(where, f"unknown record type {shown(kind)}; {own}")
    listed = dataclasses.fields(cls)  # type: ignore[arg-type]
    fields = {f.name: f for f in listed if not f.metadata.get("live")}
    if unknown := sorted(set(value) - {"type"} - set(fields)):
        raise _wrong(where, f"{kind} has no field {shown(unknown[0])}")
    hints = _hints(cls)  # type: ignore[arg-type]
    entries = {}
    for name, field in fields.items():
        if name in value:
            place = _inside(where, name)
            found = decode(value[name], place)
            kept = field.metadata.get("verbatim")
            entries[name] = found if kept else typed(found, hints[name], place)
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise _wrong(where, f"incomplete {kind}: {name} is missing")
    try:
        record = cls(**entries)
        record._validate()
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise _wrong(where, f"this is no valid {kind}: {error}") from None
    return record


def _untag(tag: str, value: dict[str, Any], where: str) -> Any:
    content = value[tag]
    match tag:
        case "$float":
            return float(content)
        case "$tuple":
            return tuple(decode(content, where))
        case "$array":
            dtype, items = np.dtype(str(value["dtype"])), decode(content, where)
            if dtype.kind not in "biufU" or dtype.itemsize * np.size(items) > _LARGEST:
                raise _wrong(where, f"array of dtype {shown(value['dtype'])} is not allowed")
            return np.array(items, dtype=dtype)
        case "$dict":
            return {decode(key, where): decode(item, where) for key, item in content}
        case "$repr":
            return Opaque(str(content))
        case _:
            raise _wrong(where, f"unknown tag {shown(tag)}")


# --- values from JSON against the type annotations of a record

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
    for array, words, dtype, allowed in _ARRAYS:
        if kind == array:
            with contextlib.suppress(ValueError, OverflowError):  # rows of different lengths
                found = np.asarray(value)
                fits = found.dtype.kind in allowed or not found.size
                if fits and isinstance(value, (list, tuple)):
                    return found.astype(dtype)
            raise _misfit(where, value, words)
    if get_origin(kind) is tuple and isinstance(value, (list, tuple)):
        inner = get_args(kind)
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        if len(kinds) == len(value):
            pairs = enumerate(zip(value, kinds, strict=True))
            return tuple(typed(item, one, f"{where}[{k}]") for k, (item, one) in pairs)
    if isinstance(kind, type) and _is(value, kind):
        return kind(value) if kind is float or issubclass(kind, Enum) else value
    raise _misfit(where, value, _called(kind))


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) is float or (type(value) is int and abs(value) < 2**1023)
    if kind is str:  # JSON may hold a lone surrogate, which UTF-8 does not
        return isinstance(value, str) and value.encode(errors="ignore").decode() == value
    if issubclass(kind, Enum):
        return isinstance(value, str) and value in {one.value for one in kind}
    return type(value) is kind if kind in (int, bool) else isinstance(value, kind)


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
