"""Keys: which outputs are the same, which values repeat (atoms), which numbers are left to rank by.

Atoms are exact repeats. A column whose values are mostly repeats is discrete: every value is an
atom. A column that is not is open: its repeated values are atoms, the others are numbers. A key is a
structure with an atom, or a free number, in each of its columns. Keys that are rare in the draws
looked at are left out; their outputs, and those never seen before, are in no key (−1). A missed atom
costs power, never validity: whatever the layout, the key of an output is a function of that output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs, align
from dpassay.outputs.resident import AnyOutputs
from dpassay.outputs.templates import Template, exact, number_columns, show
from dpassay.records import Record

#: Rows per side that are searched for atoms: a quarter of them, between these limits.
_LOOK = (1 << 13, 1 << 17)
#: A value is an atom if it makes up this share of the draws looked at, and comes three times.
_SHARE = 1e-4
#: A column is discrete if at least this share of its values are atoms.
_DISCRETE = 0.9
#: A key needs this many draws, both sides together.
_RARE = 3
#: Integers of a span below this are coded by their distance from the smallest.
_SPAN = 256
#: Codes up to here are looked up in a table, beyond by binary search.
_TABLE = 1 << 22


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

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.origins) != len(self.atoms):
            self._set(origins=(0.0,) * len(self.atoms))

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns of its numbers."""
        return number_columns(self.template)

    @property
    def radix(self) -> list[int]:
        """How many codes each column has: its atoms, and one for anything else if open."""
        return [a.size + int(o) for a, o in zip(self.atoms, self.open, strict=True)]

    @cached_property
    def space(self) -> int:
        """How many codes there are."""
        return int(np.prod(self.radix, dtype=object)) if self.radix else 1

    def values(self, code: int) -> list[float | None]:
        """The atom in each column of a key, None where its numbers are free."""
        out: list[float | None] = []
        for radix, atoms, free in zip(self.radix, self.atoms, self.open, strict=True):
            code, digit = divmod(code, radix)
            out.append(None if free and digit == 0 else float(atoms[digit - int(free)]))
        return out

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


@dataclass(frozen=True, eq=False)
class Layout(Record):
    """How outputs fall into keys: key k is code `codes[k]` of part `parts_of[k]`."""

    parts: tuple[Part, ...] = field(repr=False)
    parts_of: IntArray = field(repr=False)
    codes: IntArray = field(repr=False)

    def __len__(self) -> int:
        return self.codes.size

    def part(self, key: int) -> Part:
        """The part a key belongs to."""
        return self.parts[int(self.parts_of[key])]

    def free(self, key: int) -> list[int]:
        """Which of the number columns of its part a key leaves free."""
        return self.part(key).free(int(self.codes[key]))

    @cached_property
    def widest(self) -> int:
        """The most free numbers a key has."""
        wide = [k for k, part in enumerate(self.parts) if any(part.open)]
        keys = np.flatnonzero(np.isin(self.parts_of, wide))
        return max((len(self.free(int(key))) for key in keys), default=0)

    @cached_property
    def _index(self) -> dict[Template, int]:
        return {part.template: index for index, part in enumerate(self.parts)}

    @cached_property
    def _alone(self) -> IntArray:
        """The key of each part that has no numbers, −1 for the others and for those left out."""
        found = np.full(len(self.parts), -1, dtype=np.int64)
        simple = np.array([not part.atoms for part in self.parts])[self.parts_of]
        found[self.parts_of[simple]] = np.flatnonzero(simple)
        return found

    def words(self, key: int, numbers: Sequence[str] | None = None) -> str:
        """A key as an output would look, • for its free numbers or the words given for them."""
        return self.part(key).words(int(self.codes[key]), numbers)

    def sort(self, outputs: Outputs) -> Sorted:
        """The key of each output, −1 for those in none."""
        if self.trivial(outputs):
            return Sorted(self, outputs, None)
        places = np.array([self._index.get(s, -1) for s in outputs.structures], dtype=np.int64)
        if outputs.codes is None:
            part = int(places[0])
            if part < 0 or not self.parts[part].atoms:
                only = -1 if part < 0 else int(self._alone[part])
                return Sorted(self, outputs, np.full(len(outputs), only, dtype=np.int64))
            rows = self.parts[part].rows(outputs)
            return Sorted(self, outputs, _look_up(self, part, _codes(self.parts[part], rows)))
        alone = np.append(self._alone, -1)
        keys = alone[places][outputs.codes]
        for code, part in enumerate(places.tolist()):
            if part >= 0 and self.parts[part].atoms:
                mask = np.flatnonzero(outputs.codes == code)
                rows = self.parts[part].rows(outputs, mask)
                keys[mask] = _look_up(self, part, _codes(self.parts[part], rows))
        return Sorted(self, outputs, keys)

    def trivial(self, outputs: AnyOutputs) -> bool:
        """Every output is a free number or vector of one kind."""
        return (
            len(self) == 1
            and outputs.is_plain
            and len(self.parts) == 1
            and self.parts[0].template == outputs.structures[0]
            and len(self.parts[0].open) > 0
            and all(self.parts[0].open)
            and self.parts[0].space == 1
        )


@dataclass(frozen=True, eq=False)
class Sorted:
    """Outputs sorted into the keys of a layout."""

    layout: Layout
    outputs: Outputs
    keys: IntArray | None  # None: all of them are in key 0

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, rows: Any) -> Sorted:
        keys = None if self.keys is None else self.keys[rows]
        return Sorted(self.layout, self.outputs[rows], keys)

    def all_keys(self) -> IntArray:
        """The key of each output."""
        return np.zeros(len(self), dtype=np.int64) if self.keys is None else self.keys

    def counts(self) -> IntArray:
        """How many outputs each key has; those in no key come last."""
        if self.keys is None:
            return np.array([len(self.outputs), 0])
        return np.bincount(
            np.where(self.keys < 0, len(self.layout), self.keys), minlength=len(self.layout) + 1
        )

    def numbers(self, key: int) -> FloatArray:
        """The free numbers of the outputs in a key."""
        part, free = self.layout.part(key), self.layout.free(key)
        if self.keys is not None and not np.any(self.keys == key):
            return np.zeros((0, len(free)))  # its columns may be missing altogether
        rows = slice(None) if self.keys is None else np.flatnonzero(self.keys == key)
        columns = [part.columns[k] for k in free]
        found = distances(self.outputs, rows, columns, [part.origins[k] for k in free])
        return np.asarray(found, dtype=float)


def learn(
    p: Outputs, q: Outputs, *, whole: bool = False, thorough: bool = False
) -> tuple[Layout, Sorted, Sorted]:
    """Find the keys from draws of both sides; and those draws, sorted into them.

    Combinations of discrete values that hardly repeat are numbers, unless they are to stay `whole`. All
    draws are searched for atoms if that is to be `thorough`.
    """
    p, q = align([p, q])
    look = min(max(min(len(p), len(q)) // 4, _LOOK[0]), _LOOK[1])
    if thorough:
        look = max(len(p), len(q))
    parts = []
    for code, template in enumerate(p.structures):
        if not number_columns(template):
            parts.append(Part(template))
            continue
        seen = [_rows_of(side[:look], code, template) for side in (p, q)]
        if not any(len(numbers) for numbers, _ in seen):
            seen = [_rows_of(side, code, template) for side in (p, q)]
        numbers = np.concatenate([numbers for numbers, _ in seen])
        rest = np.concatenate([rest for _, rest in seen])
        parts.append(_part(template, numbers, rest, whole))
    if len(parts) == 1 and parts[0].atoms and parts[0].space == 1:  # numbers without atoms
        layout = Layout(tuple(parts), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        return layout, Sorted(layout, p, None), Sorted(layout, q, None)
    owners, codes = _keys_of(parts, p, q)
    layout = Layout(tuple(parts), owners, codes)
    return layout, layout.sort(p), layout.sort(q)


def _rows_of(side: Outputs, code: int, template: Template) -> tuple[AnyArray, FloatArray]:
    """The numbers of one structure, and their remainders."""
    rows = slice(None) if side.codes is None else np.flatnonzero(side.codes == code)
    columns = list(number_columns(template))
    numbers = side.numbers[rows][:, columns]
    rest = np.zeros(numbers.shape) if side.rest is None else side.rest[rows][:, columns]
    return numbers, rest


def _keys_of(parts: list[Part], p: Outputs, q: Outputs) -> tuple[IntArray, IntArray]:
    """The keys that are not rare: the part and the code of each."""
    counts = np.zeros(len(parts), dtype=np.int64)
    for side in (p, q):
        codes = np.zeros(len(side), dtype=np.int64) if side.codes is None else side.codes
        counts += np.bincount(codes, minlength=len(parts))
    enough = min(_RARE, int(counts.sum()))
    owners, found = [], []
    simple = np.flatnonzero([not part.atoms for part in parts])
    simple = simple[counts[simple] >= enough]
    owners.append(simple)
    found.append(np.zeros(simple.size, dtype=np.int64))
    for index, part in enumerate(parts):
        if part.atoms and counts[index]:
            own = []
            for side in (p, q):
                rows = slice(None) if side.codes is None else np.flatnonzero(side.codes == index)
                own.append(_codes(part, part.rows(side, rows)))
            coded = np.concatenate(own)
            often = _frequent(coded[coded >= 0], part.space, enough)
            owners.append(np.full(often.size, index))
            found.append(often)
    return np.concatenate(owners), np.concatenate(found)


def _frequent(codes: IntArray, space: int, enough: int) -> IntArray:
    """Codes that are not rare among those given."""
    if space <= _TABLE:
        return np.flatnonzero(np.bincount(codes, minlength=1) >= max(enough, 1))
    found, count = np.unique(codes, return_counts=True)
    return found[count >= enough]


def _part(template: Template, numbers: AnyArray, rest: FloatArray, whole: bool) -> Part:
    """Atoms and open columns of one structure."""
    width = numbers.shape[1]
    if numbers.dtype.kind in "iu" and numbers.size:
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < _SPAN and len(numbers) > 20 * (high - low + 1):
            # small integers throughout, one range for all: one comparison serves the whole matrix
            span = np.arange(low, high + 1)
            return _keyed(Part(template, (span,) * width, (False,) * width), numbers, whole)
    origins = [0.0] * width
    if rest.any():  # some number takes more digits than a double has: look at distances
        used = np.asarray(rest.any(axis=0))
        middle = np.median(numbers, axis=0)
        origins = [float(m) if u else 0.0 for m, u in zip(middle, used.tolist(), strict=True)]
        numbers = (numbers - np.array(origins)) + rest
    atoms, free = [], []
    for column in range(width):
        values, count = _repeated(numbers[:, column])
        discrete = len(numbers) > 0 and count.sum() >= _DISCRETE * len(numbers)
        if not discrete:
            values = values[count >= max(3, _SHARE * len(numbers))]
        elif _whole_span(values) < _SPAN:
            values = np.arange(float(values[0]), float(values[-1]) + 1)  # without gaps
        atoms.append(values.astype(float))
        free.append(not discrete)
    return _keyed(Part(template, tuple(atoms), tuple(free), tuple(origins)), numbers, whole)


def _whole_span(values: AnyArray) -> float:
    """The span of sorted whole numbers; ∞ if they are not whole."""
    if not _whole(values):
        return np.inf
    return float(values[-1]) - float(values[0])


def _keyed(part: Part, rows: AnyArray, whole: bool) -> Part:
    """The part as it is, unless its combinations hardly repeat: then numbers serve better."""
    width = len(part.atoms)
    hardly = not whole and not any(part.open)
    if width > 1 and (_huge(part) or (hardly and _scattered(part, rows))):
        return Part(part.template, (np.zeros(0),) * width, (True,) * width, part.origins)
    return part


def _repeated(values: AnyArray) -> tuple[AnyArray, IntArray]:
    """Values that come twice or more, and how often: by counting small integers, else by sorting."""
    if values.dtype.kind in "iu" and values.size:
        low = int(values.min())
        if int(values.max()) - low < 1 << 16:
            count = np.bincount(values.astype(np.int64) - low)
            found = np.flatnonzero(count > 1)
            return found + low, count[found]
    ordered = np.sort(values)
    if not np.any(ordered[1:] == ordered[:-1]):
        return ordered[:0], np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    count = np.diff(np.append(starts, ordered.size))
    return ordered[starts[count > 1]], count[count > 1]


def _huge(part: Part) -> bool:
    """More combinations than a code can hold."""
    return bool(np.prod([float(r) for r in part.radix]) >= 2.0**62)


def _scattered(part: Part, rows: AnyArray) -> bool:
    _, count = _repeated(_codes(part, rows))
    return bool(count[count >= _RARE].sum() < 0.5 * len(rows))


def _codes(part: Part, rows: AnyArray) -> IntArray:
    """The code of each row within its part; −1 if a discrete column has an unknown value."""
    if rows.dtype.kind in "iu" and _gapless(part):
        packed = _packed(part, rows)
        if packed is not None:
            return packed
    total = np.zeros(len(rows), dtype=np.int64)
    unknown = None
    stride = 1
    for column, (atoms, free) in enumerate(zip(part.atoms, part.open, strict=True)):
        if atoms.size == 0 and free:
            continue
        digit = _digits(rows[:, column], atoms, free)
        if not free:
            missing = digit < 0
            unknown = missing if unknown is None else unknown | missing
        total += digit if stride == 1 else digit * stride
        stride *= atoms.size + int(free)
    if unknown is not None and unknown.any():
        total[unknown] = -1
    return total


def _gapless(part: Part) -> bool:
    return not any(part.open) and all(
        0 < a.size <= _SPAN and a[-1] - a[0] == a.size - 1 and _whole(a) for a in part.atoms
    )


def _whole(atoms: FloatArray) -> bool:
    """Whether all atoms are integers."""
    return bool(np.array_equal(atoms, np.floor(atoms)))


def _packed(part: Part, numbers: AnyArray) -> IntArray | None:
    """Rows of small integers as numbers in a mixed radix, by one matrix product.

    None where the product would not be exact in doubles.
    """
    low = np.array([atoms[0] for atoms in part.atoms])
    high = np.array([atoms[-1] for atoms in part.atoms])
    stride = np.concatenate([[1.0], np.cumprod(part.radix[:-1], dtype=float)])
    largest = float(np.maximum(np.abs(low), np.abs(high)) @ stride)
    if largest >= 2.0**52:
        return None
    kind = np.float32 if largest < 1 << 24 else np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # numbers out of range are sorted out below
        codes: IntArray = (numbers.astype(kind) @ stride.astype(kind)).astype(np.int64)
    codes -= int(low @ stride)
    if len(numbers) and (numbers.min() < low.max() or numbers.max() > high.min()):
        codes[((numbers < low) | (numbers > high)).any(axis=1)] = -1
    return codes


def _digits(values: AnyArray, atoms: FloatArray, free: bool) -> IntArray:
    if atoms.size == 0:
        return np.full(len(values), 0 if free else -1, dtype=np.int64)
    if values.dtype.kind in "iu" and atoms[-1] - atoms[0] < 65536 and _whole(atoms):
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


def _look_up(layout: Layout, index: int, codes: IntArray) -> IntArray:
    own = np.flatnonzero(layout.parts_of == index)
    if own.size == 0:
        return np.full(codes.size, -1, dtype=np.int64)
    known = layout.codes[own]
    space = layout.parts[index].space
    if space <= _TABLE:
        table = _table(tuple(known.tolist()), tuple(own.tolist()), space)
        return table[codes]  # −1 reads the last entry, which is −1
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known[order], codes), own.size - 1)
    return np.where(known[order][place] == codes, own[order][place], -1)


@lru_cache(maxsize=32)
def _table(known: tuple[int, ...], own: tuple[int, ...], space: int) -> IntArray:
    table = np.full(space + 1, -1, dtype=np.int64)
    table[list(known)] = own
    return table
