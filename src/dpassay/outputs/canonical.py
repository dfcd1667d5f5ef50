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
import math
from collections.abc import Iterator, Mapping, Sequence
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

_SPECIAL: tuple[Template, ...] = (NUMBER, ("nan",), ("inf",), ("-inf",))


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
    codes = None if first.codes is None else np.concatenate([part.all_codes for part in parts])
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
        aligned.append((part, lookup[part.all_codes]))
    structures = tuple(table)
    return [
        dataclasses.replace(part, structures=structures, codes=codes) for part, codes in aligned
    ]


def arranged(p: Outputs, q: Outputs) -> tuple[Outputs, Outputs]:
    """Both sides in an arrangement that their outputs decide, however they were put together.

    Structures are numbered as they first come, those of the first side before those of the second, and
    remainders are there only where one is not 0.
    """
    sides = [
        dataclasses.replace(side, rest=None)
        if side.rest is not None and not side.rest.any()
        else side
        for side in align([p, q])
    ]
    table = sides[0].structures
    if len(table) == 1:
        first, second = (dataclasses.replace(side, codes=None) for side in sides)
        return first, second
    codes = np.concatenate([side.all_codes for side in sides])
    come = np.full(len(table), codes.size)
    come[codes[::-1]] = np.arange(codes.size)[
        ::-1
    ]  # the last that is written is the first that came
    order = np.argsort(come, kind="stable")[: np.count_nonzero(come < codes.size)]
    number = np.zeros(len(table), dtype=np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    structures = tuple(table[k] for k in order)
    first, second = (
        dataclasses.replace(
            side,
            structures=structures,
            codes=number[side.all_codes] if len(structures) > 1 else None,
        )
        for side in sides
    )
    return first, second


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


def _widen(part: Outputs, width: int) -> Outputs:
    missing = width - part.numbers.shape[1]
    if missing == 0:
        return part
    padding = np.zeros((len(part), missing), dtype=part.numbers.dtype)
    rest = None if part.rest is None else np.hstack([part.rest, padding.astype(float)])
    return dataclasses.replace(part, numbers=np.hstack([part.numbers, padding]), rest=rest)


# --- arrays


def all_of(given: Any) -> Outputs:
    """All outputs that a container holds, in canonical form."""
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
        return _numeric(parts, ("complex", (NUMBER, NUMBER)), array.shape[1:])
    if kind in "biuf":
        return _numeric(array[..., None], NUMBER, array.shape[1:])
    if kind == "O":
        return _from_objects(array)
    raise BadOutput(f"outputs of dtype {array.dtype} have no canonical form; return numbers")


def _numeric(array: AnyArray, leaf: Template, shape: tuple[int, ...]) -> Outputs:
    """Numbers with their last axis filling `leaf`, and `shape` axes of sequences around it."""
    template = nested(leaf, shape)
    numbers: AnyArray = array.reshape(len(array), math.prod(shape) * array.shape[-1])
    kind = numbers.dtype.kind
    if kind == "b":
        return Outputs(numbers.view(np.uint8), (template,), containers=NUMBERS)
    if kind in "iu":
        return _integers(numbers, template)
    if numbers.dtype.itemsize > 8:  # only plain numbers come here with more digits than a double
        return _from_objects(_scalars(array[..., 0]))
    numbers = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum()  # one pass decides nearly always
    if np.isfinite(total) or np.isfinite(numbers).all():
        return Outputs(numbers, (template,), containers=DOUBLES)
    return _with_specials(numbers, template)


_TEXT = frozenset({"text"})
NUMBERS = frozenset({"numbers"})
DOUBLES = frozenset({"numbers", "doubles"})
_LARGE = frozenset({"numbers", "large integers"})


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
    return Outputs(clean, structures, found, containers=DOUBLES)


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
    table = tuple(map(word_leaf, words))
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
    name, seconds, nanos = seconds_and_nanoseconds(array)
    leaf = (name, (NUMBER, NUMBER))
    return _numeric(np.stack([seconds, nanos], axis=-1), leaf, array.shape[1:])


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
    structures = []
    for row in first:
        children = tuple(part.structure_of(int(row)) for part in parts)
        if names is None:
            structures.append(("seq", children))
        else:
            structures.append(("dict", tuple(zip(map(key_name, names), children, strict=True))))
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
                leaves = len(leaves_of(part.structure_of(int(row))))
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


def _from_objects(items: Sequence[Any] | AnyArray) -> Outputs:
    many = isinstance(items, np.ndarray) and items.ndim > 1
    rows = foreign_arrays.frames_as_columns([x.tolist() for x in items] if many else items)
    index: dict[Template, int] = {}
    codes = np.empty(len(rows), dtype=np.int32)
    numbers: list[list[float]] = []
    rests: list[tuple[int, int, float]] = []
    for position, row in enumerate(rows):
        found = Leaves()
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
    containers = NUMBERS if any(map(number_columns, structures)) else frozenset()
    return Outputs(matrix, structures, codes if len(structures) > 1 else None, rest, containers)
