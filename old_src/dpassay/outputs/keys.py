"""Keys: which outputs are the same, which values repeat (atoms), which numbers are left to rank by.

Atoms are exact repeats. A column whose values are mostly repeats is discrete: every value is an
atom. A column that is not is open: its repeated values are atoms, the others are numbers. A key is a
structure with an atom, or a free number, in each of its columns. Keys that are rare in the draws
looked at are left out; their outputs, and those never seen before, are in no key (−1). A missed atom
costs power, never validity: whatever the layout, the key of an output is a function of that output.

The code of a combination of repeated values is a number in a mixed radix, a digit a column. Where there
are more combinations than integers of 64 bits, those of the first columns are numbered anew, the frequent
ones alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.ndimage import median_filter

from dpassay import validation as checks
from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs, align
from dpassay.outputs.device_arrays import AnyOutputs
from dpassay.outputs.templates import (
    EXACT,
    Template,
    exact,
    is_template,
    number_columns,
    show,
)
from dpassay.records import Record

#: A combination of values needs this many draws, both sides together, to be a key.
RARE = 3
#: Integers of a span below this are coded by their distance from the smallest.
SPAN = 256
#: Codes stay below this.
CODES = 1 << 62
#: Integers are looked up in a table of at most this size and so many entries for each of them.
_TABLE, _ENTRIES = 1 << 22, 16


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

    def rows(self, outputs: Outputs, rows: Any) -> AnyArray:
        """The numbers of outputs that have this structure, less the origins: exact near those.

        No copy where none is needed.
        """
        columns = list(self.columns)
        numbers = outputs.numbers if isinstance(rows, slice) else outputs.numbers[rows]
        if columns != list(range(numbers.shape[1])):
            numbers = numbers[:, columns]
        if any(self.origins):
            numbers = numbers - np.asarray(self.origins)
        if outputs.rest is not None:
            numbers = numbers + outputs.rest[rows][:, columns]
        return numbers


def codes_of(part: Part, rows: AnyArray, columns: int | None = None) -> IntArray:
    """The code of each row within its part, or of its first columns.

    −1 if a discrete column has an unknown value, or if the first columns are a rare combination.
    """
    total = np.zeros(len(rows), dtype=np.int64)
    unknown = np.zeros(len(rows), dtype=bool)
    for column, (atoms, free) in enumerate(zip(part.atoms[:columns], part.open, strict=False)):
        if column in part.known:
            total = places(total, part.known[column])
            unknown |= total < 0
        if atoms.size == 0 and free:
            continue
        digit = places(rows[:, column], atoms) + int(free)
        if not free:
            unknown |= digit < 0
        total += digit * part.strides[column]
    total[unknown] = -1
    return total


def places(values: AnyArray, known: AnyArray) -> IntArray:
    """The place of each value among sorted ones, −1 where it is none of them."""
    if known.size == 0:
        return np.full(values.size, -1, dtype=np.int64)
    span, most = known[-1] - known[0], min(_ENTRIES * values.size, _TABLE)
    if values.dtype.kind in "iu" and span < most and whole_numbers(known):
        # one look-up a value; both ends of the table are for values that are unknown
        table, before = np.full(int(span) + 3, -1, dtype=np.int64), int(known[0]) - 1
        table[known.astype(np.int64) - before] = np.arange(known.size)
        return table.take(values.astype(np.int64) - before, mode="clip")
    place = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.where(known[place] == values, place, -1)


def whole_numbers(atoms: AnyArray) -> bool:
    """Whether all atoms are integers."""
    return atoms.dtype.kind != "f" or bool(np.array_equal(atoms, np.floor(atoms)))


def _repeated(values: AnyArray) -> tuple[AnyArray, IntArray]:
    """Values that come twice or more, and how often."""
    ordered = np.sort(values)
    new = ordered[1:] != ordered[:-1]
    if new.all():
        return ordered[:0], np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.append(True, new))
    count = np.diff(np.append(starts, ordered.size))
    return ordered[starts[count > 1]], count[count > 1]


#: Rows per side that are searched for atoms: a quarter of them, between these limits.
_LOOK = (1 << 13, 1 << 17)
#: A value is an atom if it makes up this share of the draws looked at, and comes three times.
_SHARE = 1e-4
#: Values that repeat by chance and are called atoms, on average, in a column.
_CHANCE = 0.05
#: A column is discrete if at least this share of its values are atoms.
_DISCRETE = 0.9
#: Decimals of which this share repeats lie on a grid, such as cents. With fewer draws than so many for
#: each of its values they are numbers, and an atom is what comes as many times more often.
_GRID, _FEW = 0.2, 10
#: Columns of more values than this may be smoothed: their values are then numbers, but for those that
#: come `_FEW` times as often as most of so many values around them.
_MANY, _AROUND = 30, 9


@dataclass(frozen=True, eq=False)
class Layout(Record):
    """How outputs fall into keys: key k is code `codes[k]` of part `parts_of[k]`."""

    parts: tuple[Part, ...] = field(repr=False)
    parts_of: IntArray = field(repr=False)
    codes: IntArray = field(repr=False)

    def _validate(self) -> None:
        one = self.codes.ndim == 1 and self.codes.shape == self.parts_of.shape
        checks.require(one, "parts_of and codes must be lists of equal length")
        templates = {part.template for part in self.parts}
        checks.require(len(templates) == len(self.parts), "two parts have the same template")
        known = np.all((self.parts_of >= 0) & (self.parts_of < len(self.parts)))
        checks.require(known, f"parts_of must lie between 0 and {len(self.parts) - 1}")
        pairs = list(zip(self.parts_of.tolist(), self.codes.tolist(), strict=True))
        checks.require(len(set(pairs)) == len(pairs), "two keys are the same")
        inside = all(0 <= code < self.parts[part].space for part, code in pairs)
        checks.require(inside, "codes must be those of the atoms of their part")

    def __len__(self) -> int:
        return self.codes.size

    def part(self, key: int) -> Part:
        return self.parts[int(self.parts_of[key])]

    def free(self, key: int) -> list[int]:
        """Which of the number columns of its part a key leaves free; found once."""
        if key not in self._free:
            values = self.part(key).values(int(self.codes[key]))
            self._free[key] = [k for k, value in enumerate(values) if value is None]
        return self._free[key]

    def exhausted(self, index: int, keys: Sequence[int]) -> bool:
        """Whether these keys of a part hold every output of its structure: a number may be anything."""
        part = self.parts[index]
        return all(part.open) and not part.renumbered and len(keys) == part.space

    @cached_property
    def _free(self) -> dict[int, list[int]]:
        return {}

    @cached_property
    def widest(self) -> int:
        """The most free numbers a key has."""
        wide = np.array([any(part.open) for part in self.parts], dtype=bool)[self.parts_of]
        return max((len(self.free(key)) for key in np.flatnonzero(wide).tolist()), default=0)

    @property
    def many_values(self) -> bool:
        """Whether some column has so many atoms that they may be numbers on a grid."""
        return any(atoms.size > _MANY for part in self.parts for atoms in part.atoms)

    @cached_property
    def _index(self) -> dict[Template, int]:
        return {part.template: index for index, part in enumerate(self.parts)}

    @cached_property
    def _keys_of(self) -> list[IntArray]:
        """The keys of each part, in the order of their codes."""
        order = np.lexsort((self.codes, self.parts_of))
        return np.split(order, np.searchsorted(self.parts_of[order], range(1, len(self.parts))))

    @cached_property
    def _alone(self) -> IntArray:
        """The key of each part that has no numbers, −1 for the others and for those left out."""
        found = np.full(len(self.parts), -1, dtype=np.int64)
        simple = np.array([not part.atoms for part in self.parts], dtype=bool)[self.parts_of]
        found[self.parts_of[simple]] = np.flatnonzero(simple)
        return found

    def words(self, key: int, numbers: Sequence[str] = (), *, all_digits: bool = False) -> str:
        """A key as an output would look, • for its free numbers or the words given for them."""
        part, given, shown = self.part(key), iter(numbers), list[Any]()
        for value, origin in zip(part.values(int(self.codes[key])), part.origins, strict=True):
            atom = None if value is None else exact(value, origin=origin)
            shown.append(next(given, None) if atom is None else repr(atom) if all_digits else atom)
        return show(part.template, shown)

    def sort(self, outputs: Outputs) -> KeyedDraws:
        """The key of each output, −1 for those in none; found once for outputs that many scores see."""
        layout, keys = outputs.keyed
        return KeyedDraws(self, outputs, keys if layout is self else self._keys(outputs))

    def _keys(self, outputs: Outputs) -> IntArray | None:
        if self.trivial(outputs):
            return None
        indices = np.array([self._index.get(s, -1) for s in outputs.structures], dtype=np.int64)
        keys = np.append(self._alone, -1)[indices][outputs.all_codes]
        for code, index in enumerate(indices.tolist()):
            if index >= 0 and self.parts[index].atoms:
                part, rows = self.parts[index], outputs.rows_of(code)
                own = self._keys_of[index]
                found = places(codes_of(part, part.rows(outputs, rows)), self.codes[own])
                keys[rows] = np.append(own, -1)[found]
        return keys

    def trivial(self, outputs: AnyOutputs) -> bool:
        """Every output is a free number or vector of one kind."""
        (part, *more) = self.parts or (None,)
        return (
            part is not None
            and not more
            and len(self) == part.space == 1
            and outputs.structures == (part.template,)
            and len(part.open) > 0
            and all(part.open)
        )


@dataclass(frozen=True, eq=False)
class KeyedDraws:
    """Outputs sorted into the keys of a layout."""

    layout: Layout
    outputs: Outputs
    keys: IntArray | None  # None: all of them are in key 0

    def __post_init__(self) -> None:
        object.__setattr__(self.outputs, "keyed", (self.layout, self.keys))

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, rows: Any) -> KeyedDraws:
        keys = None if self.keys is None else self.keys[rows]
        return KeyedDraws(self.layout, self.outputs[rows], keys)

    def all_keys(self) -> IntArray:
        return np.zeros(len(self), dtype=np.int64) if self.keys is None else self.keys

    def counts(self) -> IntArray:
        """How many outputs each key has; those in no key come last."""
        keys, none = self.all_keys(), len(self.layout)
        return np.bincount(np.where(keys < 0, none, keys), minlength=none + 1)

    def numbers(self, key: int) -> FloatArray:
        """The free numbers of the outputs in a key."""
        part, free = self.layout.part(key), self.layout.free(key)
        rows: Any = slice(None) if self.keys is None else np.flatnonzero(self.keys == key)
        if self.keys is not None and not rows.size:
            return np.zeros((0, len(free)))  # its columns may be missing altogether
        found = part.rows(self.outputs, rows)
        return np.asarray(found if len(free) == len(part.columns) else found[:, free], dtype=float)


def learn(
    p: Outputs,
    q: Outputs,
    *,
    whole: bool = False,
    thorough: bool = False,
    smooth: bool = False,
    atoms: bool = True,
) -> tuple[Layout, KeyedDraws, KeyedDraws]:
    """Find the keys from draws of both sides; and those draws, sorted into them.

    Combinations of discrete values that hardly repeat are numbers, unless they are to stay `whole`. All
    draws are searched for atoms if that is to be `thorough`. With `smooth`, columns of many values, such
    as cents or large counts, are numbers, too.
    """
    p, q = align([p, q])
    look = min(max(min(len(p), len(q)) // 4, _LOOK[0]), _LOOK[1])
    if thorough:
        look = max(len(p), len(q))
    own = np.concatenate([p.all_codes, q.all_codes])
    counts = np.bincount(own, minlength=len(p.structures))
    enough = min(RARE, len(p) + len(q))
    parts: list[Part] = []
    keys: list[IntArray] = []
    for code in np.flatnonzero(counts >= enough).tolist():  # a rarer structure holds no key
        template = p.structures[code]
        if not number_columns(template):
            parts.append(Part(template))
            keys.append(np.zeros(1, dtype=np.int64))
            continue
        numbers, rest = _numbers_of((p[:look], q[:look]), code)
        if not len(numbers):
            numbers, rest = _numbers_of((p, q), code)
        width = numbers.shape[1]
        part = Part(template, (np.zeros(0),) * width, (True,) * width)
        if atoms:
            part = _part(template, numbers, rest, whole, smooth)
        if p.is_plain and part.space == 1 and all(part.open):  # numbers without atoms
            layout = Layout((part,), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
            return layout, KeyedDraws(layout, p, None), KeyedDraws(layout, q, None)
        parts.append(part)
        each = [codes_of(part, part.rows(side, side.rows_of(code))) for side in (p, q)]
        codes = np.concatenate(each)
        codes = codes[codes >= 0]
        if part.space <= min(_ENTRIES * codes.size, _TABLE):
            keys.append(np.flatnonzero(np.bincount(codes) >= enough))
        else:
            found, count = np.unique(codes, return_counts=True)
            keys.append(found[count >= enough])
    owners = np.repeat(np.arange(len(parts)), [found.size for found in keys])
    codes = np.concatenate([*keys, np.zeros(0, dtype=np.int64)])
    layout = Layout(tuple(parts), owners, codes)
    return layout, layout.sort(p), layout.sort(q)


def _numbers_of(sides: Sequence[Outputs], code: int) -> tuple[AnyArray, FloatArray]:
    """The numbers of one structure, and their remainders."""
    columns = list(number_columns(sides[0].structures[code]))
    some = [side[side.rows_of(code)] for side in sides]
    numbers = np.concatenate([side.numbers[:, columns] for side in some])
    return numbers, np.concatenate([side.all_rest[:, columns] for side in some])


def _part(
    template: Template, numbers: AnyArray, rest: FloatArray, whole: bool, smooth: bool = False
) -> Part:
    """Atoms and open columns of one structure."""
    width = numbers.shape[1]
    if numbers.dtype.kind in "iu" and numbers.size:
        low, high = int(numbers.min()), int(numbers.max())
        many = smooth and high - low >= _MANY
        if high - low < SPAN and len(numbers) > 20 * (high - low + 1) and not many:
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
        least: Any = max(_by_chance(len(numbers), count), _SHARE * len(numbers))
        each = len(numbers) / max(len(numbers) - count.sum() + count.size, 1)  # draws of a value
        if count.sum() > _GRID * len(numbers) and each < _FEW and not whole_numbers(values):
            discrete, least = False, _FEW * each
        if smooth and values.size > _MANY:
            discrete, least = False, np.maximum(3.0, _FEW * median_filter(count, _AROUND))
        if not discrete:
            values = values[count >= least]
        elif (
            whole_numbers(values)
            and values[-1] - values[0] < SPAN
            and -EXACT < values[0] <= values[-1] < EXACT
        ):
            values = np.arange(float(values[0]), float(values[-1]) + 1)  # without gaps
        atoms.append(values.astype(float))
        free.append(not discrete)
    return _keyed(Part(template, tuple(atoms), tuple(free), tuple(origins)), numbers, whole)


def _by_chance(n: int, count: IntArray) -> float:
    """From how many repeats on a value does not repeat by chance; at least 3.

    Of n draws on a grid with λ expected at a place, Σ λᵏ/k! places have k, if λ is small. So twice the
    values that come twice over those that come once is Σ λ²/Σ λ: for Laplace noise, whose λ falls
    exponentially, half the largest λ. Then values that come k times are λᵏ⁻¹/(k·k!) of those that come
    once, λ being the largest; for other noise they are fewer.
    """
    once = max(n - int(count.sum()), 1)
    most = 4 * np.count_nonzero(count == 2) / once
    if most > 1:  # values repeat everywhere
        return 3.0
    k = 3
    while once * most ** (k - 1) / (k * math.factorial(k)) > _CHANCE:
        k += 1
    return float(k)


def _keyed(part: Part, rows: AnyArray, whole: bool) -> Part:
    """The part as it is, unless its combinations hardly repeat: then numbers serve better."""
    for column, radix in enumerate(part.radix):
        if part.strides[column] * radix >= CODES:
            # number the first columns anew: what begins with a rare combination is rare and in no key
            codes, count = _repeated(codes_of(part, rows, column))
            frequent = codes[(codes >= 0) & (count >= RARE)]
            part = replace(
                part,
                renumbered=(*part.renumbered, column),
                frequent=(*part.frequent, frequent),
            )
    width = len(part.atoms)
    if width > 1 and not whole:
        codes = codes_of(part, rows)
        _, count = _repeated(codes[codes >= 0])
        if count[count >= RARE].sum() < 0.5 * len(rows):
            return Part(part.template, (np.zeros(0),) * width, (True,) * width, part.origins)
    return part
