"""One output as an object: its template, and the numbers of its leaves."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, IntArray
from dpassay.errors import BadOutput
from dpassay.outputs import foreign_arrays
from dpassay.outputs.templates import EXACT, NUMBER, Outcome, Template, exact, number_columns, show

_EPOCH = datetime.datetime(1970, 1, 1)


def seconds_and_nanoseconds(array: AnyArray) -> tuple[str, IntArray, IntArray]:
    """ "date" or "duration", and the counts of dates or durations without NaT."""
    name, kind = ("date", "M8") if array.dtype.kind == "M" else ("duration", "m8")
    if np.datetime_data(array.dtype)[0] == "generic":
        array = array.astype(f"{kind}[s]")
    whole = array.astype(f"{kind}[s]")
    rest = array - whole.astype(array.dtype)
    nanos = rest.astype("m8[ns]").astype(np.int64)
    if np.any(nanos.astype("m8[ns]").astype(rest.dtype) != rest):
        raise BadOutput(f"outputs of dtype {array.dtype} have digits beyond nanoseconds")
    seconds = whole.astype(np.int64) + np.where(nanos < 0, -1, 0)
    nanos = np.where(nanos < 0, nanos + 1_000_000_000, nanos)
    return name, seconds, nanos


class Leaves:
    """Walks one output: its template, and the number of each of its leaves (0 where it has none)."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.rests: list[tuple[int, float]] = []

    def walk(self, value: Any) -> Template:
        """The template of a value; its leaves are appended."""
        simple = type(value)
        if simple is float:
            return self._float(value)
        if simple is int:
            return self._whole(value)
        if simple is str:
            return self._leaf(("str", value.rstrip("\0")))
        if simple is list or simple is tuple:
            return self._items(value)
        if simple is dict:
            return ("dict", self._entries(value))
        if value is None or foreign_arrays.is_missing(value):
            return self._leaf(("none",))
        if isinstance(value, (np.datetime64, np.timedelta64)):  # the latter is an integer to NumPy
            if np.isnat(value):
                return self._leaf(("none",))
            name, seconds, nanos = seconds_and_nanoseconds(np.asarray([value]))
            return (name, (self._number(float(seconds[0])), self._number(float(nanos[0]))))
        if isinstance(value, enum.Enum):
            return self._leaf(("enum", str(value)))
        if isinstance(value, (bool, np.bool_)):
            return self._number(float(value))
        if isinstance(value, (int, np.integer)):
            return self._whole(int(value))
        if isinstance(value, (float, np.floating)):
            wide = isinstance(value, np.floating) and value.dtype.itemsize > 8
            return self._wide(value) if wide else self._float(float(value))
        if isinstance(value, (Decimal, Fraction)):
            return self._fraction(value)
        if isinstance(value, (str, bytes, bytearray)):
            return self._leaf(word_leaf(value if isinstance(value, str) else bytes(value)))
        if isinstance(value, (complex, np.complexfloating)):
            return self._complex(value)
        if isinstance(value, Outcome):
            return self._leaf(("outcome", value.kind, value.detail))
        if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
            return self._time(value)
        return self._container(value)

    def _container(self, value: Any) -> Template:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return ("object", type(value).__name__, self._entries(fields))
        if isinstance(value, (tuple, list)):
            return self._items(value)
        if isinstance(value, Mapping):
            return ("dict", self._entries(value))
        if isinstance(value, AbstractSet):
            return self._set(value)
        named = foreign_arrays.parts(value)
        if named is not None:
            return ("object", type(value).__name__, self._entries(named))
        table = foreign_arrays.columns(value)
        if table is not None:
            names, columns = table
            if names is None:
                return self._walk_array(columns[0])
            return ("dict", self._entries(dict(zip(names, columns, strict=True))))
        try:
            array = foreign_arrays.array(value)
        except BadOutput:
            array = np.asarray(None)
        if array.dtype.names:  # a structured array: columns
            return ("dict", self._entries({name: array[name] for name in array.dtype.names}))
        if array.dtype.kind in "biufcmMUS":
            return self._walk_array(array)
        if array.ndim and array.dtype.kind == "O":
            return self._items(array.tolist())
        raise BadOutput(
            f"an output of type {type(value).__name__} has no canonical form: "
            f"{checks.shown(value)}; return numbers, strings, None, tuples, lists or dictionaries"
        )

    def _walk_array(self, array: AnyArray) -> Template:
        if array.ndim == 0:
            return self.walk(array[()])
        if array.ndim == 1 and array.dtype.kind in "biuf" and _exact_doubles(array):
            self.numbers.extend(array.astype(float).tolist())
            return ("seq", (NUMBER,) * array.size)
        quick = array.dtype.kind in "biuUS" or array.dtype.str[1:] in ("f8", "f4", "f2")
        return self._items(array.tolist() if quick else array)

    def _items(self, items: Any) -> Template:
        """A sequence; text alone, or numbers of one type, without a call for each."""
        kinds = set(map(type, items))
        if kinds == {str}:
            self.numbers.extend([0.0] * len(items))
            leaves = {word: ("str", word.rstrip("\0")) for word in set(items)}
            return ("seq", tuple([leaves[word] for word in items]))
        whole = kinds in ({int}, {bool}) and min(items) >= -EXACT and max(items) <= EXACT
        if whole or (kinds == {float} and all(map(math.isfinite, items))):
            self.numbers.extend(map(float, items))
            return ("seq", (NUMBER,) * len(items))
        return ("seq", tuple([self.walk(item) for item in items]))

    def _entries(self, items: Mapping[Any, Any]) -> Template:
        named = [
            (key if type(key) is str and key[:1] != "`" else key_name(key), item)
            for key, item in items.items()
        ]
        named.sort(key=itemgetter(0))
        return tuple([(key, self.walk(item)) for key, item in named])

    def _set(self, items: AbstractSet[Any]) -> Template:
        """The items in an order of their own forms: sets have none."""
        forms = []
        for item in items:
            inner = Leaves()
            forms.append((repr(inner.walk(item)), inner.numbers, inner.rests, item))
        forms.sort(key=lambda form: form[:3])
        return ("set", tuple(self.walk(item) for *_, item in forms))

    def _leaf(self, leaf: Template) -> Template:
        self.numbers.append(0.0)
        return leaf

    def _number(self, value: float, rest: float = 0.0) -> Template:
        if rest:
            self.rests.append((len(self.numbers), rest))
        self.numbers.append(value)
        return NUMBER

    def _float(self, value: float) -> Template:
        if math.isfinite(value):
            return self._number(value)
        return self._leaf(("nan",) if math.isnan(value) else ("inf",) if value > 0 else ("-inf",))

    def _complex(self, value: Any) -> Template:
        if value.imag == 0:  # equal to a number, hence one
            return self.walk(value.real)
        return ("complex", (self._float(float(value.real)), self._float(float(value.imag))))

    def _whole(self, value: int) -> Template:
        if -EXACT <= value <= EXACT:
            return self._number(float(value))
        try:
            rounded = float(value)
        except OverflowError:
            return self._leaf(("integer", str(value)))
        rest = value - int(rounded)
        if abs(rest) > EXACT and float(rest) != rest:  # more digits than two doubles hold
            return self._leaf(("integer", str(value)))
        return self._number(rounded, float(rest))

    def _fraction(self, value: Decimal | Fraction) -> Template:
        if isinstance(value, Decimal) and not value.is_finite():
            return self._float(float(value))
        ratio = Fraction(value)
        if ratio.denominator == 1:
            return self._whole(ratio.numerator)
        try:
            rounded = float(ratio)
        except OverflowError:
            return self._leaf(("fraction", str(ratio)))
        return self._number(rounded, float(ratio - Fraction(rounded)))

    def _wide(self, value: Any) -> Template:
        if not np.isfinite(value):
            return self._float(float(value))
        rounded = float(value)
        if not math.isfinite(rounded):
            return self._leaf(("wide", str(value)))
        return self._number(rounded, float(value - np.longdouble(rounded)))

    def _time(self, value: Any) -> Template:
        """Seconds and nanoseconds, as arrays of dates have them."""
        if isinstance(value, datetime.time):
            return self._leaf(("time", value.isoformat()))
        zone: tuple[str, ...] = ()
        name = "duration"
        if isinstance(value, datetime.date):
            name = "date"
            if not isinstance(value, datetime.datetime):
                value = datetime.datetime(value.year, value.month, value.day)
            elif value.tzinfo is not None:
                zone = (str(value.tzinfo),)
                value = value.astimezone(datetime.UTC).replace(tzinfo=None)
            nanos = int(getattr(value, "nanosecond", 0))
            value = value - _EPOCH
        else:
            nanos = int(getattr(value, "nanoseconds", 0))
        seconds = value.days * 86400 + value.seconds
        places = (self._number(seconds), self._number(value.microseconds * 1000 + nanos))
        return (name, places, *zone)


def _exact_doubles(array: AnyArray) -> bool:
    """Whether every item is a finite number that a double holds."""
    if isinstance(array, np.ma.MaskedArray) or array.dtype.itemsize > 8:
        return False
    if array.dtype.kind == "f":
        return bool(np.isfinite(array).all())
    return not array.size or (int(array.max()) <= EXACT and int(array.min()) >= -EXACT)


def key_name(key: Any) -> str:
    """A dictionary key as text: text keys as they are, others by their form, in backticks."""
    if isinstance(key, str):
        return f"`{key}" if key.startswith("`") else str(key)
    if isinstance(key, float):
        return f"`{_number_key(key)}`"
    walked = Leaves()
    template = walked.walk(key)
    rests = dict(walked.rests)
    numbers = [exact(walked.numbers[k], rests.get(k, 0.0)) for k in number_columns(template)]
    return f"`{show(template, numbers)}`"


def _number_key(key: float) -> str:
    return str(int(key)) if math.isfinite(key) and key.is_integer() else repr(float(key))


def word_leaf(word: str | bytes) -> Template:
    """Text without the zeros at its end, which arrays of text do not keep."""
    if isinstance(word, bytes):
        return ("bytes", bytes(word).rstrip(b"\0").hex())
    return ("str", str(word).rstrip("\0"))
