"""Codes: a number for every combination of repeated values in outputs of one structure.

A code is a number in a mixed radix, a digit a column. Where there are more combinations than integers of
64 bits, those of the first columns are numbered anew, the frequent ones alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import Template, exact, is_template, number_columns, show
from dpassay.records import Record

#: A combination of values needs this many draws, both sides together, to be a key.
RARE = 3
#: Integers of a span below this are coded by their distance from the smallest.
SPAN = 256
#: Codes stay below this.
CODES = 1 << 62


@dataclass(frozen=True, eq=False)
class Part(Record):
    """Outputs of one structure: the atoms of its number columns, and which may be anything.

    Atoms, and all free numbers, are distances from the origin of their column. It is 0 unless a
    column has numbers that no double holds: their distances from a number nearby are doubles.
    """

    template: Template
    atoms: tuple[FloatArray, ...] = field(default=(), repr=False)
    #: By column: whether values that are no atoms are free numbers (True) or unknown (False).
    open: tuple[bool, ...] = ()
    origins: tuple[float, ...] = ()
    #: Columns at which the combinations of all columns before are numbered anew, so that codes do not
    #: overflow, and for each of them the sorted codes of the combinations that have a number.
    renumbered: tuple[int, ...] = ()
    frequent: tuple[IntArray, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.origins) != len(self.atoms):
            self._set(origins=(0.0,) * len(self.atoms))

    def _validate(self) -> None:
        checks.require(is_template(self.template), "template is none that an output has")
        same = len(self.atoms) == len(self.open) == len(self.columns)
        checks.require(same, "atoms and open must have an entry for each number of the template")
        increasing = all(a.ndim == 1 and np.all(np.diff(a) > 0) for a in self.atoms)
        checks.require(increasing, "atoms must be numbers in increasing order")
        finite = all(np.isfinite(a).all() for a in (*self.atoms, np.asarray(self.origins)))
        checks.require(finite, "atoms and origins must be finite")

    @cached_property
    def columns(self) -> tuple[int, ...]:
        return number_columns(self.template)

    @property
    def radix(self) -> list[int]:
        """How many codes each column has: its atoms, and one for anything else if open."""
        return [a.size + int(o) for a, o in zip(self.atoms, self.open, strict=True)]

    @cached_property
    def known(self) -> dict[int, IntArray]:
        """The codes that have a number, by the column at which they get one."""
        return dict(zip(self.renumbered, self.frequent, strict=True))

    @cached_property
    def strides(self) -> list[int]:
        """What a digit of each column is worth in a code; last, how many codes there are."""
        found = [1]
        for column, radix in enumerate(self.radix):
            if column in self.known:
                found[-1] = self.known[column].size
            found.append(found[-1] * radix)
        return found

    @property
    def space(self) -> int:
        return self.strides[-1]

    def values(self, code: int) -> list[float | None]:
        """The atom in each column of a key, None where its numbers are free."""
        out: list[float | None] = []
        for column in reversed(range(len(self.atoms))):
            digit, code = divmod(code, self.strides[column])
            digit -= int(self.open[column])
            out.append(None if digit < 0 else float(self.atoms[column][digit]))
            if column in self.known:
                code = int(self.known[column][code])
        return out[::-1]

    def free(self, code: int) -> list[int]:
        """Which of its columns a key leaves free (0 is the first of its number columns)."""
        return [k for k, value in enumerate(self.values(code)) if value is None]

    def rows(self, outputs: Outputs, rows: Any = slice(None)) -> AnyArray:
        """The numbers of outputs that have this structure, less the origins."""
        return distances(outputs, rows, self.columns, self.origins)

    def words(self, code: int, numbers: Sequence[str] | None = None) -> str:
        """A key as an output would look, • for its free numbers or the words given for them."""
        given: Iterator[str | None] = iter(numbers) if numbers else iter(())
        shown: list[Any] = []
        for value, origin in zip(self.values(code), self.origins, strict=True):
            shown.append(next(given, None) if value is None else exact(value, origin=origin))
        return show(self.template, shown)


def distances(
    outputs: Outputs, rows: Any, columns: Sequence[int], origins: Sequence[float]
) -> AnyArray:
    """Numbers of some rows less an origin a column: exact near it, and no copy where none is needed."""
    numbers = outputs.numbers if isinstance(rows, slice) else outputs.numbers[rows]
    if tuple(columns) != tuple(range(numbers.shape[1])):
        numbers = numbers[:, list(columns)]
    if any(origins):
        numbers = numbers - np.asarray(origins)
    if outputs.rest is not None:
        numbers = numbers + outputs.rest[rows][:, list(columns)]
    return numbers


def codes_of(part: Part, rows: AnyArray, columns: int | None = None) -> IntArray:
    """The code of each row within its part, or of its first columns.

    −1 if a discrete column has an unknown value, or if the first columns are a rare combination.
    """
    total = np.zeros(len(rows), dtype=np.int64)
    unknown = np.zeros(len(rows), dtype=bool)
    for column, atoms in enumerate(part.atoms[:columns]):
        free = part.open[column]
        if column in part.known:
            total = places(total, part.known[column])
            unknown |= total < 0
        if atoms.size == 0 and free:
            continue
        digit = _digits(rows[:, column], atoms, free)
        if not free:
            unknown |= digit < 0
        total += digit * part.strides[column]
    total[unknown] = -1
    return total


def places(codes: IntArray, known: IntArray) -> IntArray:
    """The place of each code among sorted ones, −1 where it is none of them."""
    if known.size == 0:
        return np.full(codes.size, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, codes), known.size - 1)
    return np.where(known[place] == codes, place, -1)


def whole_numbers(atoms: FloatArray) -> bool:
    """Whether all atoms are integers."""
    return bool(np.array_equal(atoms, np.floor(atoms)))


def _digits(values: AnyArray, atoms: FloatArray, free: bool) -> IntArray:
    if atoms.size == 0:
        return np.full(len(values), 0 if free else -1, dtype=np.int64)
    if values.dtype.kind in "iu" and atoms[-1] - atoms[0] < 65536 and whole_numbers(atoms):
        # one look-up a value
        low, width = int(atoms[0]), int(atoms[-1] - atoms[0]) + 1
        table = np.full(width + 1, 0 if free else -1, dtype=np.int64)
        table[atoms.astype(np.int64) - low] = np.arange(atoms.size) + int(free)
        place = values.astype(np.int64) - low
        place[(place < 0) | (place >= width)] = width
        return table[place]
    place = np.minimum(np.searchsorted(atoms, values), atoms.size - 1)
    known = atoms[place] == values
    return np.where(known, place + int(free), 0 if free else -1)


def renumbered(part: Part, rows: AnyArray) -> Part:
    """The part with codes that do not overflow: rare combinations of its first columns have none.

    Whatever begins with a rare combination is itself rare, and would be in no key.
    """
    for column, radix in enumerate(part.radix):
        if part.strides[column] * radix >= CODES:
            codes, count = repeated(codes_of(part, rows, column))
            frequent = codes[(codes >= 0) & (count >= RARE)]
            part = replace(
                part,
                renumbered=(*part.renumbered, column),
                frequent=(*part.frequent, frequent),
            )
    return part


def repeated(values: AnyArray) -> tuple[AnyArray, IntArray]:
    """Values that come twice or more, and how often."""
    ordered = np.sort(values)
    if not np.any(ordered[1:] == ordered[:-1]):
        return ordered[:0], np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    count = np.diff(np.append(starts, ordered.size))
    return ordered[starts[count > 1]], count[count > 1]
