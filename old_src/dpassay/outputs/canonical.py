"""Outputs in canonical form: what kind of thing came out, and its numbers.

The form of an output depends on that output alone: not on the array, block, worker, adapter or file
it came in. Otherwise an event would be no function of the output, and its counts not binomial.
One rule decides: what compares equal in Python is one output (1, 1.0 and True; 2**60 and 2.0**60), and
sequences are equal if their items are (a row of a matrix, a tuple, a list, a 1-D array).

An output is split into a *structure*, which holds everything that is not an ordinary number (its
type and length, None, strings, NaN, ±∞, a raised exception; `outputs.templates`), and its finite numbers.
The k-th leaf of an output has its number in column k, so that coordinates stay in their columns whatever
happens to their neighbours.

A number that one double does not hold (an integer beyond 2**53, a Decimal) is a double and a
remainder: together 106 bits. Nothing is rounded beyond that, and nothing is jittered.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import AnyArray, FloatArray
from dpassay.errors import BadOutput
from dpassay.outputs import foreign_arrays
from dpassay.outputs.templates import (
    EXACT,
    NUMBER,
    Leaves,
    Template,
    exact,
    key_name,
    leaves_of,
    nested,
    number_columns,
    seconds_and_nanoseconds,
    show,
    word_leaf,
)

Codes: TypeAlias = npt.NDArray[np.int32]

#: What an array may have done to the outputs it held; see `check_containers`.
_TEXT = frozenset({"text"})
NUMBERS = frozenset({"numbers"})
DOUBLES = frozenset({"numbers", "doubles"})
_LARGE = frozenset({"numbers", "large integers"})


@dataclass(frozen=True, eq=False)
class Outputs:
    """`len(outputs)` outputs in canonical form."""

    numbers: AnyArray  # (n, d): doubles, or integers that are doubles
    structures: tuple[Template, ...]
    codes: Codes | None = None  # index into structures; None if there is only one
    rest: FloatArray | None = None  # what `numbers` lack of the exact values; None if nothing
    #: Which kinds of array the outputs came in: some change what they hold; see `check_containers`.
    containers: frozenset[str] = frozenset()

    #: The layout that sorted them last, and their keys: all scores share them.
    keyed: tuple[Any, Any] = dataclasses.field(default=(None, None), init=False, repr=False)

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

    @property
    def all_codes(self) -> Codes:
        return np.zeros(len(self), dtype=np.int32) if self.codes is None else self.codes

    @property
    def all_rest(self) -> FloatArray:
        return np.zeros(self.numbers.shape) if self.rest is None else self.rest

    def rows_of(self, code: int) -> Any:
        """What selects the outputs of one structure."""
        return slice(None) if self.codes is None else np.flatnonzero(self.codes == code)

    def copy(self) -> Outputs:
        """The same with numbers of its own: an array that came out is the mechanism's to change."""
        return dataclasses.replace(self, numbers=self.numbers.copy())

    def structure_of(self, row: int) -> Template:
        return self.structures[0 if self.codes is None else int(self.codes[row])]

    def show(self, row: int) -> str:
        template = self.structure_of(row)
        one = self[row : row + 1]
        numbers, rest = one.numbers[0].tolist(), one.all_rest[0].tolist()
        return show(template, [exact(numbers[k], rest[k]) for k in number_columns(template)])

    def value_of(self, column: int, origin: float = 0.0) -> FloatArray:
        """The numbers of a column, less an origin: exact near it."""
        found = np.asarray(self.numbers[:, column], dtype=float)
        if origin:
            found = found - origin
        return found if self.rest is None else found + self.rest[:, column]


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """Several batches of one side as one, with one table of structures."""
    parts = align(parts)
    first = parts[0]
    containers = frozenset().union(*(part.containers for part in parts))
    check_containers(containers)
    if len(parts) == 1:
        return first
    return Outputs(
        np.concatenate([part.numbers for part in parts]),
        first.structures,
        None if first.codes is None else np.concatenate([part.all_codes for part in parts]),
        _joined_rest(parts, axis=0),
        containers,
    )


def _joined_rest(parts: Sequence[Outputs], axis: int) -> FloatArray | None:
    if all(part.rest is None for part in parts):
        return None
    return np.concatenate([part.all_rest for part in parts], axis)


def align(parts: Sequence[Outputs]) -> list[Outputs]:
    """The same batches over one common table of structures and one width of numbers."""
    width = max(part.numbers.shape[1] for part in parts)
    parts = [_widen(part, width) for part in parts]
    if all(part.structures == parts[0].structures for part in parts):
        return parts
    table: dict[Template, int] = {}
    codes = []
    for part in parts:
        number = [table.setdefault(structure, len(table)) for structure in part.structures]
        codes.append(np.array(number, dtype=np.int32)[part.all_codes])
    return [
        dataclasses.replace(part, structures=tuple(table), codes=own)
        for part, own in zip(parts, codes, strict=True)
    ]


def arranged(p: Outputs, q: Outputs) -> tuple[Outputs, Outputs]:
    """Both sides in an arrangement that their outputs decide, however they were put together.

    Structures are numbered as they first come, those of the first side before those of the second, and
    remainders are there only where one is not 0.
    """
    sides = align([p, q])
    table = sides[0].structures
    order = np.zeros(1, dtype=np.int64)
    if len(table) > 1:
        codes = np.concatenate([side.all_codes for side in sides])
        first = np.full(len(table), codes.size)
        np.minimum.at(first, codes, np.arange(codes.size))
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < codes.size)]
    number = np.zeros(len(table), dtype=np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    p, q = (
        dataclasses.replace(
            side,
            structures=tuple(table[k] for k in order),
            codes=number[side.all_codes] if order.size > 1 else None,
            rest=None if side.rest is None or not side.rest.any() else side.rest,
        )
        for side in sides
    )
    return p, q


def check_containers(found: frozenset[str]) -> None:
    """Refuse blocks of one side whose arrays hold the same output as different things.

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


def _widen(part: Outputs, width: int) -> Outputs:
    missing = ((0, 0), (0, width - part.numbers.shape[1]))
    if missing[1] == (0, 0):
        return part
    rest = None if part.rest is None else np.pad(part.rest, missing)
    return dataclasses.replace(part, numbers=np.pad(part.numbers, missing), rest=rest)


# --- arrays


def all_of(given: Any) -> Outputs:
    """All outputs that a container holds, in canonical form."""
    if isinstance(given, (str, bytes, Mapping)):
        raise BadOutput(f"{checks.shown(given)} is no array or list of outputs")
    try:
        return from_raw(given, len(given))
    except BadOutput:
        raise
    except Exception as error:  # objects raise what they like
        raise BadOutput(
            f"{checks.shown(given)} is no array or list of outputs ({type(error).__name__}: {error})"
        ) from None


def from_raw(raw: Any, size: int) -> Outputs:
    """What a mechanism returned for `size` outputs, checked and in canonical form."""
    if isinstance(raw, (str, bytes, Mapping)):
        raise _miscounted(checks.shown(raw), size)
    table = foreign_arrays.columns(raw, of_draws=True)
    outputs = None
    if table is not None:
        outputs = from_columns(*table)
    elif isinstance(raw, (list, tuple)):
        outputs = _from_list(raw)
    elif (array := foreign_arrays.array(raw)).ndim:
        outputs = from_array(array)
    if outputs is None or len(outputs) != size:
        raise _miscounted("one value" if outputs is None else f"{len(outputs)} outputs", size)
    return outputs


def _miscounted(got: str, size: int) -> BadOutput:
    return BadOutput(
        f"the mechanism returned {got} for size={size}; it must return `size` independent outputs: an "
        "array, a list or a table (a function with one output per call is wrapped by dp.from_function; "
        "on the command line: --per-call)"
    )


def _from_list(items: Sequence[Any]) -> Outputs:
    """A list of outputs: an array only where that changes none of them."""
    kinds = {type(item) for item in items}
    array, leaves = None, items
    if items and kinds <= {float, int, bool, np.float64, np.float32, np.int64, np.bool_}:
        array = np.asarray(items)
    elif kinds <= {list, tuple} and len({len(item) for item in items}) == 1 and len(items[0]):
        leaves = [leaf for item in items for leaf in item]
        if {type(leaf) for leaf in leaves} <= {float, int, bool}:
            array = np.asarray(items)
    elif kinds == {np.ndarray} and len({(item.shape, item.dtype) for item in items}) == 1:
        array = np.stack(items)
    if array is None or array.dtype.kind == "O":
        return _from_objects(items)
    large = array.dtype.kind == "f" and bool(np.any(np.abs(array) >= EXACT))
    if large and any(isinstance(leaf, (int, np.integer)) for leaf in leaves):
        return _from_objects(items)  # doubles may not hold such integers
    return dataclasses.replace(from_array(array), containers=NUMBERS)  # no array changed an item


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
        return _numeric(array, parts, ("complex", (NUMBER, NUMBER)))
    if kind in "biuf":
        return _numeric(array, array, NUMBER)
    if kind == "O":
        return _from_objects(array)
    raise BadOutput(f"outputs of dtype {array.dtype} have no canonical form; return numbers")


def _numeric(array: AnyArray, parts: AnyArray, leaf: Template) -> Outputs:
    """An array of numbers, or of what consists of some `parts`, which fill a leaf."""
    template = nested(leaf, array.shape[1:])
    numbers: AnyArray = parts.reshape(len(array), math.prod(parts.shape[1:]))
    kind = numbers.dtype.kind
    if kind == "b":
        return Outputs(numbers.view(np.uint8), (template,), containers=NUMBERS)
    if kind in "iu":
        return _integers(numbers, template)
    if numbers.dtype.itemsize > 8:  # more digits than a double has
        return _from_objects(_scalars(array))
    numbers = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum()  # one pass decides nearly always
    if np.isfinite(total) or np.isfinite(numbers).all():
        return Outputs(numbers, (template,), containers=DOUBLES)
    # NaN and ±∞ are part of an output's structure, not numbers
    special = [np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers)]
    kinds = np.ascontiguousarray(np.select(special, np.arange(1, 4, dtype=np.uint8)))
    packed = kinds.view(f"V{kinds.shape[1]}").ravel()
    _, first, codes = np.unique(packed, return_index=True, return_inverse=True)
    structures = tuple(Leaves().walk(array[k]) for k in first)
    numbers = np.where(kinds == 0, numbers, 0.0)
    return Outputs(numbers, structures, _codes(codes, structures), containers=DOUBLES)


def _codes(codes: AnyArray, structures: Sequence[Template]) -> Codes | None:
    return codes.ravel().astype(np.int32) if len(structures) > 1 else None


def _integers(numbers: AnyArray, template: Template) -> Outputs:
    if numbers.dtype.itemsize < 8 or not numbers.size:
        return Outputs(numbers, (template,), containers=NUMBERS)
    if int(numbers.min()) >= -EXACT and int(numbers.max()) <= EXACT:
        return Outputs(numbers, (template,), containers=NUMBERS)
    rounded = numbers.astype(np.float64)
    # v = 2³²·high + low; the differences below are exact, each a whole number under 2³⁴
    high, low = numbers >> 32, numbers & 0xFFFFFFFF
    rest = (high.astype(np.float64) * 4294967296.0 - rounded) + low.astype(np.float64)
    return Outputs(rounded, (template,), rest=rest, containers=_LARGE)


def _from_words(array: AnyArray) -> Outputs:
    if array.ndim > 1:
        return dataclasses.replace(_from_objects(array.astype(object)), containers=_TEXT)
    words, codes = np.unique(array, return_inverse=True)
    table = tuple(map(word_leaf, words))
    return Outputs(np.zeros((len(array), 1)), table, _codes(codes, table), containers=_TEXT)


def _from_times(array: AnyArray) -> Outputs:
    """Dates and durations as seconds; NaT is None."""
    if np.isnat(array).any():
        return _from_objects(_scalars(array))
    name, seconds, nanos = seconds_and_nanoseconds(array)
    return _numeric(array, np.stack([seconds, nanos], axis=-1), (name, (NUMBER, NUMBER)))


def _scalars(array: AnyArray) -> AnyArray:
    """The items of an array as objects, as they are (`astype(object)` makes integers of some dates)."""
    return foreign_arrays.objects(array.reshape(-1)).reshape(array.shape)


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
        combined = combined * len(part.structures) + part.all_codes
        _, first, combined = np.unique(combined, return_index=True, return_inverse=True)
        combined = combined.ravel()
    rows = [[part.structure_of(k) for part in parts] for k in first.tolist()]
    structures: tuple[Template, ...] = tuple(("seq", tuple(row)) for row in rows)
    if names is not None:
        keys = [key_name(name) for name in names]
        structures = tuple(("dict", tuple(zip(keys, row, strict=True))) for row in rows)
    containers = frozenset(
        f"column {k}: {kind}" for k, part in enumerate(parts) for kind in part.containers
    )
    numbers, rest = np.hstack([part.numbers for part in parts]), _joined_rest(parts, axis=1)
    if any(part.numbers.shape[1] != 1 for part in parts):  # leaves move up where there are fewer
        widths = [part.numbers.shape[1] for part in parts]
        starts = np.cumsum([0, *widths[:-1]])
        take = np.full((len(rows), numbers.shape[1]), numbers.shape[1])  # a column of zeros
        for own, row in zip(take, rows, strict=True):
            leaves = [len(leaves_of(structure)) for structure in row]
            found = [np.arange(many) + at for many, at in zip(leaves, starts, strict=True)]
            own[: sum(leaves)] = np.concatenate(found)

        def moved(x: AnyArray) -> FloatArray:
            padded = np.pad(x.astype(float), ((0, 0), (0, 1)))
            return np.take_along_axis(padded, take[combined], axis=1)

        numbers, rest = moved(numbers), None if rest is None else moved(rest)
    return Outputs(numbers, structures, _codes(combined, structures), rest, containers)


# --- objects


def _from_objects(items: Sequence[Any] | AnyArray) -> Outputs:
    many = isinstance(items, np.ndarray) and items.ndim > 1
    rows = foreign_arrays.frames_as_columns([x.tolist() for x in items] if many else items)
    index: dict[Template, int] = {}
    codes = np.empty(len(rows), dtype=np.int32)
    walked = Leaves()  # of all rows: their leaves follow each other
    ends = np.empty(len(rows), dtype=np.int64)
    for position, row in enumerate(rows):
        codes[position] = index.setdefault(walked.walk(row), len(index))
        ends[position] = len(walked.numbers)
    sizes = np.diff(ends, prepend=0)
    there = np.arange(sizes.max(initial=0)) < sizes[:, None]
    matrix, rest = np.zeros(there.shape), None
    matrix[there] = walked.numbers
    if walked.rests:
        each = np.zeros(len(walked.numbers))
        for place, left in walked.rests:
            each[place] = left
        rest = np.zeros(there.shape)
        rest[there] = each
    structures = tuple(index)
    containers = NUMBERS if any(map(number_columns, structures)) else frozenset()
    return Outputs(matrix, structures, _codes(codes, structures), rest, containers)
