"""Outputs in canonical form: what kind of thing came out, and its numbers.

The form of an output depends on that output alone: not on the array, block, worker, adapter or file
it came in. Otherwise an event would be no function of the output, and its counts not binomial.
One rule decides: what compares equal in Python is one output (1, 1.0 and True; 2**60 and 2.0**60), and
sequences are equal if their items are (a row of a matrix, a tuple, a list, a 1-D array).

An output is split into a *structure*, which holds everything that is not an ordinary number (its
type and length, None, strings, NaN, ±∞, a raised exception), and its finite numbers. The structure's
template is a nested tuple of leaves such as ("none",) or ("str", "a") and containers such as
("seq", (…)); ("number",) marks the place of a number. The k-th leaf of an output has its number in
column k, so that coordinates stay in their columns whatever happens to their neighbours.

A number that one double does not hold (an integer beyond 2**53, a Decimal) is a double and a
remainder: together 106 bits. Nothing is rounded beyond that, and nothing is jittered.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpassay import checks
from dpassay._typing import AnyArray, FloatArray
from dpassay.errors import BadOutput
from dpassay.outputs import foreign_arrays

Template: TypeAlias = tuple[Any, ...]
Codes: TypeAlias = npt.NDArray[np.int32]

NUMBER: Template = ("number",)
#: Integers up to here are doubles.
_EXACT = 1 << 53
_SPECIAL: tuple[Template, ...] = (NUMBER, ("nan",), ("inf",), ("-inf",))
_EPOCH = datetime.datetime(1970, 1, 1)


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


@lru_cache(maxsize=1 << 14)
def number_columns(template: Template) -> tuple[int, ...]:
    """The columns of a template's numbers: the places of its number leaves among all leaves."""
    return tuple(k for k, leaf in enumerate(_leaves(template)) if leaf == NUMBER)


@dataclass(frozen=True, eq=False)
class Outputs:
    """`len(outputs)` outputs in canonical form."""

    numbers: AnyArray  # (n, d): doubles, or integers that are doubles
    structures: tuple[Template, ...]
    codes: Codes | None = None  # index into structures; None if there is only one
    rest: FloatArray | None = None  # what `numbers` lack of the exact values; None if nothing
    #: Which kinds of array the outputs came in: some change what they hold; see `check_containers`.
    containers: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def is_plain(self) -> bool:
        """Whether every output is the same kind of number or vector."""
        return len(self.structures) == 1

    def __getitem__(self, rows: Any) -> Outputs:
        return dataclasses.replace(
            self,
            numbers=self.numbers[rows],
            codes=None if self.codes is None else self.codes[rows],
            rest=None if self.rest is None else self.rest[rows],
        )

    def structure_of(self, row: int) -> Template:
        """The structure of one output."""
        return self.structures[0 if self.codes is None else int(self.codes[row])]

    def show(self, row: int) -> str:
        """One output in words."""
        template = self.structure_of(row)
        columns = list(number_columns(template))
        rest = [0.0] * len(columns) if self.rest is None else self.rest[row, columns].tolist()
        given = zip(self.numbers[row, columns].tolist(), rest, strict=True)
        return show(template, [exact(number, left) for number, left in given])

    def value_of(self, column: int, origin: float = 0.0) -> FloatArray:
        """The numbers of a column, less an origin: exact near it."""
        found = np.asarray(self.numbers[:, column], dtype=float)
        if origin:
            found = found - origin
        return found if self.rest is None else found + self.rest[:, column]


def exact(number: float, rest: float = 0.0, origin: float = 0.0) -> float | int:
    """origin + number + rest, as a whole number where it is one beyond 2**53."""
    total = origin + (number + rest)
    if abs(total) < _EXACT or not (number + rest).is_integer():
        return total
    return int(origin) + int(number) + int(rest)


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """Several batches of one side as one, with one table of structures."""
    parts = align(parts)
    first = parts[0]
    containers = frozenset().union(*(part.containers for part in parts))
    check_containers(containers)
    if len(parts) == 1:
        return first
    rest = None
    if any(part.rest is not None for part in parts):
        rest = np.concatenate(
            [np.zeros(p.numbers.shape) if p.rest is None else p.rest for p in parts]
        )
    codes = None if first.codes is None else np.concatenate([_codes(part) for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    return Outputs(numbers, first.structures, codes, rest, containers)


def align(parts: Sequence[Outputs]) -> list[Outputs]:
    """The same batches over one common table of structures and one width of numbers."""
    first = parts[0]
    width = max(part.numbers.shape[1] for part in parts)
    parts = [_widen(part, width) for part in parts]
    if all(part.structures == first.structures for part in parts):
        return list(parts)
    table: dict[Template, int] = {}
    aligned = []
    for part in parts:
        lookup = np.array(
            [table.setdefault(s, len(table)) for s in part.structures], dtype=np.int32
        )
        aligned.append((part, lookup[_codes(part)]))
    structures = tuple(table)
    return [
        dataclasses.replace(part, structures=structures, codes=codes) for part, codes in aligned
    ]


def check_containers(found: frozenset[str]) -> None:
    """Refuse blocks of one side whose arrays turned the same output into different things.

    NumPy turns the numbers of an array into text if one item is text, and its integers into doubles
    if one item is a double. Whether it did depends on the other items of the array.
    """
    places: dict[str, set[str]] = {}
    for mark in found:
        place, _, kind = mark.rpartition(": ")
        places.setdefault(place, set()).add(kind)
    if any({"text", "numbers"} <= kinds for kinds in places.values()):
        raise BadOutput(
            "some blocks of outputs are arrays of text and others hold numbers: an array with one "
            "text in it turns all its numbers into text. Return an object array: "
            "out = np.empty(size, dtype=object); out[:] = outputs"
        )
    if any({"large integers", "doubles"} <= kinds for kinds in places.values()):
        raise BadOutput(
            "some blocks of outputs are arrays of integers beyond 2**53 and others arrays of doubles, "
            "which do not hold them: return integers throughout, or an object array"
        )


def _codes(part: Outputs) -> Codes:
    return np.zeros(len(part), dtype=np.int32) if part.codes is None else part.codes


def _widen(part: Outputs, width: int) -> Outputs:
    missing = width - part.numbers.shape[1]
    if missing == 0:
        return part
    padding = np.zeros((len(part), missing), dtype=part.numbers.dtype)
    rest = None if part.rest is None else np.hstack([part.rest, padding.astype(float)])
    return dataclasses.replace(part, numbers=np.hstack([part.numbers, padding]), rest=rest)


# --- arrays


def from_raw(raw: Any, size: int) -> Outputs:
    """What a mechanism returned for `size` outputs, checked and in canonical form."""
    if isinstance(raw, (str, bytes, Mapping)):
        raise BadOutput(
            f"the mechanism returned {checks.shown(raw)} for size={size}; it must return an array"
        )
    table = foreign_arrays.columns(raw)
    if table is not None:
        outputs = from_columns(*table)
    elif isinstance(raw, (list, tuple)):
        outputs = _from_list(raw)
    else:
        array = foreign_arrays.array(raw)
        if array.ndim == 0:
            raise BadOutput(_count("one value", size))
        outputs = from_array(array)
    if len(outputs) != size:
        raise BadOutput(_count(f"{len(outputs)} outputs", size))
    return outputs


def _count(got: str, size: int) -> str:
    return (
        f"the mechanism returned {got} for size={size}; it must return `size` independent "
        "outputs (a function with one output per call is wrapped by dp.from_function)"
    )


def _from_list(items: Sequence[Any]) -> Outputs:
    """A list of outputs: an array only where that changes none of them."""
    kinds = {type(item) for item in items}
    if kinds <= {float, int, bool, np.float64, np.float32, np.int64, np.bool_} and items:
        array = np.asarray(items)
        if array.dtype.kind != "O" and not _inexact(array, items):
            return _as_listed(from_array(array))
    if kinds <= {list, tuple} and len({len(item) for item in items}) == 1 and len(items[0]):
        leaves = {type(leaf) for item in items for leaf in item}
        if leaves <= {float, int, bool}:
            array = np.asarray(items)
            if array.dtype.kind != "O" and not _inexact(array, [x for row in items for x in row]):
                return _as_listed(from_array(array))
    if kinds == {np.ndarray} and len({(item.shape, item.dtype) for item in items}) == 1:
        return _as_listed(from_array(np.stack(items)))
    objects = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        objects[index] = item
    return _from_objects(objects)


def _as_listed(outputs: Outputs) -> Outputs:
    """Items of a list keep what they are: no array has changed them."""
    return dataclasses.replace(outputs, containers=_NUMBERS)


def _inexact(array: AnyArray, items: Sequence[Any]) -> bool:
    """Whether making doubles of these numbers may have changed some of them."""
    if array.dtype.kind != "f" or not np.any(np.abs(array) >= _EXACT):
        return False
    return any(isinstance(item, (int, np.integer)) for item in items)


def from_array(array: AnyArray) -> Outputs:
    """An array whose first axis counts the outputs; no copy where none is needed."""
    if isinstance(array, np.ma.MaskedArray):
        plain = np.asarray(array.data)
        items = _scalars(plain)
        items[np.ma.getmaskarray(array)] = None
        kept = from_array(plain if plain.dtype.kind in "iu" else plain[:0]).containers
        return dataclasses.replace(_from_objects(items), containers=kept)
    kind = array.dtype.kind
    if array.dtype.names is not None:
        return from_columns(array.dtype.names, [array[name] for name in array.dtype.names])
    if kind in "US":
        return _from_words(array)
    if kind in "mM":
        return _from_times(array)
    if kind == "c":
        real = array.imag == 0  # equal to a number, hence one
        if real.all():
            return from_array(np.ascontiguousarray(array.real))
        if real.any() or array.dtype.itemsize > 16:
            return _from_objects(_scalars(array))
        parts = np.stack([array.real, array.imag], axis=-1).astype(float)
        return _numeric(parts, ("complex", (NUMBER, NUMBER)), array.shape[1:])
    if kind in "biuf":
        return _numeric(array[..., None], NUMBER, array.shape[1:])
    if kind == "O":
        return _from_objects(array)
    raise BadOutput(f"outputs of dtype {array.dtype} have no canonical form; return numbers")


def _numeric(array: AnyArray, leaf: Template, shape: tuple[int, ...]) -> Outputs:
    """Numbers with their last axis filling `leaf`, and `shape` axes of sequences around it."""
    template = leaf
    for length in reversed(shape):
        template = ("seq", (template,) * length)
    numbers: AnyArray = array.reshape(len(array), math.prod(shape) * array.shape[-1])
    kind = numbers.dtype.kind
    if kind == "b":
        return Outputs(numbers.view(np.uint8), (template,), containers=_NUMBERS)
    if kind in "iu":
        return _integers(numbers, template)
    if numbers.dtype.itemsize > 8:  # only plain numbers come here with more digits than a double
        return _from_objects(_scalars(array[..., 0]))
    numbers = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum()  # one pass decides nearly always
    if np.isfinite(total) or np.isfinite(numbers).all():
        return Outputs(numbers, (template,), containers=_DOUBLES)
    return _with_specials(numbers, template)


_TEXT = frozenset({"text"})
_NUMBERS = frozenset({"numbers"})
_DOUBLES = frozenset({"numbers", "doubles"})
_LARGE = frozenset({"numbers", "large integers"})


def _integers(numbers: AnyArray, template: Template) -> Outputs:
    if numbers.dtype.itemsize < 8 or not numbers.size:
        return Outputs(numbers, (template,), containers=_NUMBERS)
    if int(numbers.min()) >= -_EXACT and int(numbers.max()) <= _EXACT:
        return Outputs(numbers, (template,), containers=_NUMBERS)
    rounded = numbers.astype(np.float64)
    # v = 2³²·high + low; the differences below are exact, each a whole number under 2³⁴
    high, low = numbers >> 32, numbers & 0xFFFFFFFF
    rest = (high.astype(np.float64) * 4294967296.0 - rounded) + low.astype(np.float64)
    return Outputs(rounded, (template,), rest=rest, containers=_LARGE)


def _with_specials(numbers: FloatArray, template: Template) -> Outputs:
    """NaN and ±∞ are part of an output's structure, not numbers."""
    kinds: AnyArray = np.zeros(numbers.shape, dtype=np.uint8)
    kinds[np.isnan(numbers)] = 1
    kinds[np.isposinf(numbers)] = 2
    kinds[np.isneginf(numbers)] = 3
    packed: AnyArray = np.ascontiguousarray(kinds).view(f"V{kinds.shape[1]}").ravel()
    _, first, codes = np.unique(packed, return_index=True, return_inverse=True)
    structures = tuple(
        _filled(template, iter([_SPECIAL[kind] for kind in row])) for row in kinds[first]
    )
    clean = np.where(kinds == 0, numbers, 0.0)
    found = codes.ravel().astype(np.int32) if len(structures) > 1 else None
    return Outputs(clean, structures, found, containers=_DOUBLES)


def _filled(template: Template, leaves: Iterator[Template]) -> Template:
    """The template with its number places replaced, in reading order."""
    if template == NUMBER:
        return next(leaves)
    if template[0] in ("seq", "complex"):
        return (template[0], tuple(_filled(child, leaves) for child in template[1]))
    return template


def _from_words(array: AnyArray) -> Outputs:
    if array.ndim > 1:
        return dataclasses.replace(_from_objects(array.astype(object)), containers=_TEXT)
    words, codes = np.unique(array, return_inverse=True)
    table = tuple(map(_word, words))
    return Outputs(
        np.zeros((len(array), 1)),
        table,
        codes.astype(np.int32) if len(table) > 1 else None,
        containers=_TEXT,
    )


def _from_times(array: AnyArray) -> Outputs:
    """Dates and durations as seconds; NaT is None."""
    if np.isnat(array).any():
        return _from_objects(_scalars(array))
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
    leaf = (name, (NUMBER, NUMBER))
    return _numeric(np.stack([seconds, nanos], axis=-1), leaf, array.shape[1:])


def _scalars(array: AnyArray) -> AnyArray:
    """The items of an array as objects, as they are (`astype(object)` makes integers of some dates)."""
    items = np.empty(array.shape, dtype=object)
    flat = items.reshape(-1)
    for k, item in enumerate(array.reshape(-1)):
        flat[k] = item
    return items


def from_columns(names: Sequence[str] | None, columns: Sequence[AnyArray]) -> Outputs:
    """A table, one output a row: a number or word each for a single column, else a sequence.

    With names the rows are dictionaries, whatever the order of the columns.
    """
    if len(columns) == 1:
        return from_array(columns[0])
    if names is not None:
        order = np.argsort(np.array(names, dtype=object), kind="stable")
        names, columns = [names[k] for k in order], [columns[k] for k in order]
    return _joined(names, [from_array(column) for column in columns])


def _joined(names: Sequence[str] | None, parts: Sequence[Outputs]) -> Outputs:
    """Outputs side by side; a structure for each combination that occurs."""
    combined = np.zeros(len(parts[0]), dtype=np.int64)
    first = np.zeros(1, dtype=np.int64)
    for part in parts:  # renumbered column by column, so that codes stay small
        combined = combined * len(part.structures) + _codes(part)
        _, first, combined = np.unique(combined, return_index=True, return_inverse=True)
        combined = combined.ravel()
    structures = []
    for row in first:
        children = tuple(part.structure_of(int(row)) for part in parts)
        if names is None:
            structures.append(("seq", children))
        else:
            structures.append(("dict", tuple(zip(map(_key, names), children, strict=True))))
    codes = combined.astype(np.int32) if len(structures) > 1 else None
    containers = frozenset(
        f"column {k}: {kind}" for k, part in enumerate(parts) for kind in part.containers
    )
    numbers = np.hstack([part.numbers for part in parts])
    rest = None
    if any(part.rest is not None for part in parts):
        none = [np.zeros(part.numbers.shape) if part.rest is None else part.rest for part in parts]
        rest = np.hstack(none)
    if any(part.numbers.shape[1] != 1 for part in parts):  # leaves move up where there are fewer
        order = np.full((len(structures), numbers.shape[1]), -1)
        for code, row in enumerate(first):
            found: list[int] = []
            start = 0
            for part in parts:
                leaves = sum(1 for _ in _leaves(part.structure_of(int(row))))
                found += range(start, start + leaves)
                start += part.numbers.shape[1]
            order[code, : len(found)] = found
        take = order[combined]
        here = take >= 0
        numbers = np.where(here, np.take_along_axis(numbers, np.maximum(take, 0), axis=1), 0.0)
        if rest is not None:
            rest = np.where(here, np.take_along_axis(rest, np.maximum(take, 0), axis=1), 0.0)
    return Outputs(numbers, tuple(structures), codes, rest, containers)


# --- objects


def _from_objects(array: AnyArray) -> Outputs:
    rows: Any = array if array.ndim == 1 else [item.tolist() for item in array]
    index: dict[Template, int] = {}
    codes = np.empty(len(rows), dtype=np.int32)
    numbers: list[list[float]] = []
    rests: list[tuple[int, int, float]] = []
    for position, row in enumerate(rows):
        found = _Leaves()
        template = found.walk(row)
        codes[position] = index.setdefault(template, len(index))
        numbers.append(found.numbers)
        rests += [(position, column, left) for column, left in found.rests]
    width = max(map(len, numbers), default=0)
    if all(len(row) == width for row in numbers):
        matrix = np.array(numbers, dtype=float).reshape(len(numbers), width)
    else:
        matrix = np.zeros((len(rows), width))
        for position, row in enumerate(numbers):
            matrix[position, : len(row)] = row
    rest = None
    if rests:
        rest = np.zeros(matrix.shape)
        at = np.array([(p, c) for p, c, _ in rests])
        rest[at[:, 0], at[:, 1]] = [left for _, _, left in rests]
    structures = tuple(index)
    containers = _NUMBERS if any(map(number_columns, structures)) else frozenset()
    return Outputs(matrix, structures, codes if len(structures) > 1 else None, rest, containers)


class _Leaves:
    """Walks one output: its template, and the number of each of its leaves (0 where it has none)."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.rests: list[tuple[int, float]] = []

    def walk(self, value: Any) -> Template:
        """The template of a value; its leaves are appended."""
        simple = type(value)
        if simple is float:
            return self._float(value)
        if simple is str:
            return self._leaf(_word(value))
        if value is None or foreign_arrays.is_missing(value):
            return self._leaf(("none",))
        if isinstance(value, (np.datetime64, np.timedelta64)):  # the latter is an integer to NumPy
            if np.isnat(value):
                return self._leaf(("none",))
            one = _from_times(np.asarray([value]))
            self.numbers += one.numbers[0].tolist()
            return one.structures[0]
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
            return self._leaf(_word(value if isinstance(value, str) else bytes(value)))
        if isinstance(value, (complex, np.complexfloating)):
            if value.imag == 0:  # equal to a number, hence one
                return self.walk(value.real)
            return ("complex", (self._float(float(value.real)), self._float(float(value.imag))))
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
            return ("seq", tuple(self.walk(item) for item in value))
        if isinstance(value, Mapping):
            return ("dict", self._entries(value))
        if isinstance(value, AbstractSet):
            return self._set(value)
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
        if array.dtype.kind in "biufcmMUS":
            return self._walk_array(array)
        if array.ndim and array.dtype.kind == "O":
            return ("seq", tuple(self.walk(item) for item in array.tolist()))
        raise BadOutput(
            f"an output of type {type(value).__name__} has no canonical form: "
            f"{checks.shown(value)}; return numbers, strings, None, tuples, lists or dictionaries"
        )

    def _walk_array(self, array: AnyArray) -> Template:
        if array.ndim == 0:
            return self.walk(array[()])
        quick = array.dtype.kind in "biuUS" or array.dtype.str[1:] in ("f8", "f4", "f2")
        items: Any = array.tolist() if quick else array
        return ("seq", tuple(self.walk(item) for item in items))

    def _entries(self, items: Mapping[Any, Any]) -> Template:
        named = sorted((_key(key), item) for key, item in _sorted_items(items))
        return tuple((key, self.walk(item)) for key, item in named)

    def _set(self, items: AbstractSet[Any]) -> Template:
        """The items in an order of their own forms: sets have none."""
        forms = []
        for item in items:
            inner = _Leaves()
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
        if -_EXACT <= value <= _EXACT:
            return self._number(float(value))
        try:
            rounded = float(value)
        except OverflowError:
            return self._leaf(("integer", str(value)))
        rest = value - int(rounded)
        if abs(rest) > _EXACT and float(rest) != rest:  # more digits than two doubles hold
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


def _key(key: Any) -> str:
    """A dictionary key as text: text keys as they are, others by their form, in backticks."""
    if isinstance(key, str):
        return f"`{key}" if key.startswith("`") else str(key)
    return (
        f"`{from_raw([key], 1).show(0)}`" if not isinstance(key, float) else f"`{_number_key(key)}`"
    )


def _number_key(key: float) -> str:
    return str(int(key)) if math.isfinite(key) and key.is_integer() else repr(float(key))


def _word(word: str | bytes) -> Template:
    """Text without the zeros at its end, which arrays of text do not keep."""
    if isinstance(word, bytes):
        return ("bytes", bytes(word).rstrip(b"\0").hex())
    return ("str", str(word).rstrip("\0"))


def _sorted_items(items: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return sorted(items.items(), key=lambda entry: _key(entry[0]))


# --- templates


def children(template: Template) -> tuple[Template, ...]:
    """What a container holds; nothing for a leaf."""
    match template[0]:
        case "seq" | "set" | "complex" | "date" | "duration":
            return tuple(template[1])
        case "dict":
            return tuple(child for _, child in template[1])
        case "object":
            return tuple(child for _, child in template[2])
        case _:
            return ()


def _leaves(template: Template) -> Iterator[Template]:
    inner = children(template)
    if inner or template[0] in ("seq", "set", "dict", "object"):
        for child in inner:
            yield from _leaves(child)
    else:
        yield template


def show(template: Template, numbers: Sequence[Any] | None = None) -> str:
    """An output in words; places without a number, or whose number is None, are shown as •."""
    given = iter(numbers) if numbers is not None else None
    return _show(template, given)


def _show(template: Template, given: Iterator[Any] | None) -> str:
    def each(items: Sequence[Template]) -> str:
        return ", ".join(_show(child, given) for child in items)

    match template[0]:
        case "number":
            number = None if given is None else next(given)
            if number is None:
                return "•"
            return number if isinstance(number, str) else written(number)
        case "none":
            return "None"
        case "str":
            return repr(template[1])
        case "bytes":
            return repr(bytes.fromhex(template[1]))
        case "outcome":
            return " ".join(part for part in template[1:] if part)
        case "seq":
            return "(" + each(template[1]) + ")"
        case "set":
            return "{" + each(template[1]) + "}"
        case "complex":
            return "complex(" + each(template[1]) + ")"
        case "date" | "duration":
            return _show_time(template, given)
        case "dict":
            return "{" + ", ".join(f"{k!r}: {_show(c, given)}" for k, c in template[1]) + "}"
        case "object":
            inner = ", ".join(f"{k}={_show(c, given)}" for k, c in template[2])
            return f"{template[1]}({inner})"
        case "integer" | "fraction" | "wide" | "time" | "enum":
            return str(template[1])
        case special:
            return str(special)


def _show_time(template: Template, given: Iterator[Any] | None) -> str:
    seconds, nanos = (None, None) if given is None else (next(given), next(given))
    if not isinstance(seconds, (int, float)) or not isinstance(nanos, (int, float)):
        return f"a {template[0]}"
    if template[0] == "duration":
        return f"{seconds + nanos / 1e9:g} s"
    at = np.datetime64(int(seconds), "s") + np.timedelta64(int(nanos), "ns")
    return str(at).rstrip("0").rstrip(".") + "".join(f" {zone}" for zone in template[2:])


def written(number: float | int, digits: int = 6) -> str:
    """A number for people: six digits, or all of a whole number (up to forty)."""
    if abs(number) < (1e40 if isinstance(number, int) else 1e15) and number == int(number):
        return str(int(number))
    if 1e4 <= abs(number) < 1e15:  # digits after the point, where there are some
        digits = max(digits, math.ceil(math.log10(abs(number))) + 3)
    return f"{number + 0.0:.{digits}g}"


def told_apart(numbers: Sequence[float | int]) -> list[str]:
    """Numbers with as many digits as tell them apart, six at least."""
    distinct = len(set(numbers))
    for digits in range(6, 17):
        shown = [written(number, digits) for number in numbers]
        if len(set(shown)) == distinct:
            return shown
    return [written(number, 17) for number in numbers]
