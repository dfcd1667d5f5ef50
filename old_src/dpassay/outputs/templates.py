"""Templates: what is left of an output without its numbers, how it reads, and how objects are walked.

A template is a nested tuple: a leaf such as ("none",) or ("str", "a"), a container such as ("seq", (…)),
or ("number",), the place of a number. The number of the k-th leaf has its place in column k.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, IntArray
from dpassay.errors import BadOutput
from dpassay.outputs import foreign_arrays

Template: TypeAlias = tuple[Any, ...]

NUMBER: Template = ("number",)
#: Templates that hold others; all others are leaves.
INNER = frozenset({"seq", "set", "dict", "object", "complex", "date", "duration"})
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


@lru_cache(maxsize=1 << 10)
def nested(leaf: Template, shape: tuple[int, ...]) -> Template:
    """Sequences of sequences of a leaf, as an array of that shape holds them; one object for all."""
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
    match template:
        case ("dict", entries) | ("object", _, entries):
            return tuple(child for _, child in entries)
        case (kind, items, *_) if kind in INNER:
            return tuple(items)
    return ()


def is_template(found: Any) -> bool:
    """Whether this is a template, whatever it was read from."""
    match found:
        case ("number" | "none" | "nan" | "inf" | "-inf",) | ("outcome", str(), str()):
            return True
        case ("str" | "integer" | "fraction" | "wide" | "time" | "enum", str()):
            return True
        case ("bytes", str(text)):
            return len(text) % 2 == 0 and all(letter in "0123456789abcdef" for letter in text)
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


def leaves_of(template: Template) -> list[Template]:
    """All leaves, in reading order."""
    if template[0] not in INNER:
        return [template]
    return [leaf for child in children(template) for leaf in leaves_of(child)]


def paths(template: Template, code: str = "output") -> Iterator[tuple[str, Template]]:
    """All leaves, each with the expression that computes it; a date is one, and its nanoseconds."""
    match template[0]:
        case "date" | "duration" as kind:
            yield code, (kind,)
            yield code, ("nanoseconds",)
            return
        case kind if kind not in INNER:
            yield code, template
            return
        case "dict":
            codes = [f"{code}[{shown_key(key)}]" for key, _ in template[1]]
        case "object":
            codes = [f"{code}.{name}" for name, _ in template[2]]
        case _:
            codes = [f"{code}[{k}]" for k in range(len(template[1]))]
    for path, child in zip(codes, children(template), strict=True):
        yield from paths(child, path)


def show(template: Template, numbers: Iterable[Any] = ()) -> str:
    """An output in words; places without a number, or whose number is None, are shown as •."""
    given = iter(numbers)
    match template:
        case ("number",):
            number = next(given, None)
            if number is None:
                return "•"
            return number if isinstance(number, str) else written(number)
        case ("str", text):
            return repr(text)
        case ("bytes", digits):
            return repr(bytes.fromhex(digits))
        case ("outcome", *parts):
            return " ".join(part for part in parts if part)
        case ("seq", children):
            items = [show(child, given) for child in children]
            if len(items) > _LONG and "•" in items[0] and len(set(items)) == 1:
                items = [items[0], items[0], f"…: {len(items):,} in all"]  # the length tells all
            return f"({', '.join(items)})"
        case ("set", children):
            items = [show(child, given) for child in children]
            return f"{{{', '.join(items)}}}" if items else "set()"
        case ("complex", (real, imaginary)):
            return f"complex({show(real, given)}, {show(imaginary, given)})"
        case ("date" | "duration" as name, _, *zone):
            return _shown_time(name, next(given, None), next(given, None), zone)
        case ("dict", entries):
            return f"{{{', '.join([f'{shown_key(k)}: {show(c, given)}' for k, c in entries])}}}"
        case ("object", name, entries):
            return f"{name}({', '.join([f'{k}={show(c, given)}' for k, c in entries])})"
        case ("none",):
            return "None"
        case _:  # a word for a special number, or the text of a leaf
            return str(template[-1])


def _shown_time(name: str, seconds: Any, nanos: Any, zone: Sequence[str]) -> str:
    if not isinstance(seconds, (int, float)) or not isinstance(nanos, (int, float)):
        return f"a {name}"
    if name == "duration":
        return f"{seconds + nanos / 1e9:g} s"
    return " ".join([_dated(seconds, nanos), *zone])


def written(number: float | int, digits: int = 6) -> str:
    """A number for people: six digits, or all of a whole number (up to forty)."""
    if abs(number) < (1e40 if isinstance(number, int) else 1e15) and number == int(number):
        return str(int(number))
    if 1e4 <= abs(number) < 1e15:  # digits after the point, where there are some
        digits = max(digits, math.ceil(math.log10(abs(number))) + 3)
    return f"{number + 0.0:.{digits}g}"


def _dated(seconds: float, nanos: float) -> str:
    at = np.datetime64(int(seconds), "s") + np.timedelta64(int(nanos), "ns")
    return str(at).rstrip("0").rstrip(".")


def written_in(unit: str, value: float) -> str:
    """A number for people: seconds since 1970 as a date, those of a duration in days, hours, minutes."""
    if unit == "date" and abs(value) < 2**33:  # within centuries
        nanos = round(value % 1 * 1e6) * 1000
        return _dated(math.floor(value), nanos).removesuffix("T00:00:00")
    return duration_words(value) if unit == "duration" else written(value)


def duration_words(seconds: float, form: Callable[[float], str] = written) -> str:
    """So many seconds in days, hours, minutes or seconds."""
    sizes = {"day": 86400, "hour": 3600, "minute": 60}
    name = next((name for name, size in sizes.items() if abs(seconds) >= size), "second")
    text = form(seconds / sizes.get(name, 1))
    return f"{text} {name}{'s' * (text != '1')}"


def told_apart(numbers: Sequence[float | int]) -> list[str]:
    """Numbers with as many digits as tell them apart, six at least."""
    distinct = len(set(numbers))
    for digits in range(6, 17):
        shown = [written(number, digits) for number in numbers]
        if len(set(shown)) == distinct:
            return shown
    return [written(number, 17) for number in numbers]


def all_digits(numbers: Sequence[float | int]) -> list[str]:
    """Numbers with all their digits: the ends of an event in words select what was counted."""
    return [
        short if float(short) == number else repr(number)
        for number, short in zip(numbers, told_apart(numbers), strict=True)
    ]


_EPOCH = datetime.datetime(1970, 1, 1)


def seconds_and_nanoseconds(array: AnyArray) -> tuple[str, IntArray, IntArray]:
    """ "date" or "duration", and the counts of dates or durations without NaT."""
    name, kind = ("date", "M8") if array.dtype.kind == "M" else ("duration", "m8")
    seconds = array.astype(f"{kind}[s]")  # rounds down
    rest = array - seconds.astype(array.dtype)
    nanos = rest.astype("m8[ns]")
    if np.any(nanos.astype(rest.dtype) != rest):
        raise BadOutput(f"outputs of dtype {array.dtype} have digits beyond nanoseconds")
    return name, seconds.astype(np.int64), nanos.astype(np.int64)


_NUMBERS = (int, float, complex, np.number, np.bool_, Decimal, Fraction)


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
        if simple is np.ndarray:
            return self._array(value)
        if value is None or foreign_arrays.is_missing(value):
            return self._leaf(("none",))
        if isinstance(value, (np.datetime64, np.timedelta64)):  # the latter is an integer to NumPy
            return self._numpy_time(value)
        if isinstance(value, enum.Enum) or foreign_arrays.is_label(value):
            return self._leaf(("enum", str(value)))
        if isinstance(value, _NUMBERS):
            return self._of_number(value)
        if isinstance(value, (str, bytes, bytearray)):
            return self._leaf(word_leaf(value if isinstance(value, str) else bytes(value)))
        if isinstance(value, Outcome):
            return self._leaf(("outcome", value.kind, value.detail))
        if isinstance(value, datetime.time):
            return self._leaf(("time", value.isoformat()))
        if isinstance(value, (datetime.date, datetime.timedelta)):
            return self._time(value)
        return self._container(value)

    def _of_number(self, value: Any) -> Template:
        """A number of any type."""
        if isinstance(value, (int, np.integer, np.bool_)):
            return self._whole(int(value))
        if isinstance(value, (float, np.floating)):
            wide = isinstance(value, np.floating) and value.dtype.itemsize > 8
            if not wide or not np.isfinite(value):
                return self._float(float(value))
            value = Fraction(*value.as_integer_ratio())
        if isinstance(value, (Decimal, Fraction)):
            return self._fraction(value)
        if value.imag == 0:  # a complex number that is equal to a real one, hence that
            return self.walk(value.real)
        return ("complex", (self._float(float(value.real)), self._float(float(value.imag))))

    def _numpy_time(self, value: np.datetime64 | np.timedelta64) -> Template:
        if np.isnat(value):
            return self._leaf(("none",))
        name, seconds, nanos = seconds_and_nanoseconds(np.asarray([value]))
        return (name, (self._number(float(seconds[0])), self._number(float(nanos[0]))))

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
                return self._array(columns[0])
            return ("dict", self._entries(dict(zip(names, columns, strict=True))))
        return self._array(value)

    def _array(self, value: Any) -> Template:
        """An array, or what offers itself as one."""
        try:
            array = foreign_arrays.array(value)
        except BadOutput:
            array = np.asarray(None)
        if array.dtype.names:  # a structured array: columns
            return ("dict", self._entries({name: array[name] for name in array.dtype.names}))
        kind = array.dtype.kind
        if kind not in "biufcmMUSO" or (kind == "O" and array.ndim == 0):
            raise BadOutput(
                f"an output of type {type(value).__name__} has no canonical form: "
                f"{checks.shown(value)}; return numbers, strings, None, tuples, lists or dictionaries"
            )
        if array.ndim == 0:
            return self.walk(array[()])
        exact = kind in "biuUSO" or array.dtype.str[1:] in ("f8", "f4", "f2")
        return self._items(array.tolist() if exact else array)

    def _items(self, items: Any) -> Template:
        """A sequence; text alone, or numbers of one type, without a call for each."""
        kinds = set(map(type, items))
        if kinds == {str}:
            self.numbers.extend([0.0] * len(items))
            leaves = {word: word_leaf(word) for word in set(items)}
            return ("seq", tuple([leaves[word] for word in items]))
        whole = kinds in ({int}, {bool}) and min(items) >= -EXACT and max(items) <= EXACT
        if whole or (kinds == {float} and all(map(math.isfinite, items))):
            self.numbers.extend(map(float, items))
            return nested(NUMBER, (len(items),))
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

    def _time(self, value: Any) -> Template:
        """Seconds and nanoseconds, as arrays of dates have them."""
        name, zone = "date", []
        if isinstance(value, datetime.timedelta):
            name = "duration"
        elif isinstance(value, datetime.datetime):
            zone = [] if value.tzinfo is None else [str(value.tzinfo)]
            value = value - _EPOCH.replace(tzinfo=datetime.UTC if zone else None)
        else:
            value = value - _EPOCH.date()
        seconds = value.days * 86400 + value.seconds
        nanos = value.microseconds * 1000 + int(getattr(value, "nanoseconds", 0))  # of pandas
        return (name, (self._number(seconds), self._number(nanos)), *zone)


def key_name(key: Any) -> str:
    """A dictionary key as text: text keys as they are, others by their form, in backticks."""
    if isinstance(key, str):
        return f"`{key}" if key.startswith("`") else str(key)
    if isinstance(key, float):
        whole = math.isfinite(key) and key.is_integer()
        return f"`{int(key) if whole else repr(float(key))}`"
    walked = Leaves()
    template = walked.walk(key)
    rests = dict(walked.rests)
    numbers = [exact(walked.numbers[k], rests.get(k, 0.0)) for k in number_columns(template)]
    return f"`{show(template, numbers)}`"


def shown_key(name: str) -> str:
    """What `key_name` made a name of, for people: text in quotes, other keys without."""
    other = name.startswith("`") and not name.startswith("``")
    return name[1:-1] if other else repr(name.removeprefix("`"))


@lru_cache(maxsize=1 << 14)
def word_leaf(word: str | bytes) -> Template:
    """Text without the zeros at its end, which arrays of text do not keep."""
    if isinstance(word, bytes):
        return ("bytes", bytes(word).rstrip(b"\0").hex())
    return ("str", str(word).rstrip("\0"))
