"""Keys: which outputs are the same, which values repeat (atoms), which numbers are left to rank by.

Atoms are exact repeats. A column whose values are mostly repeats is discrete: every value is an
atom. A column that is not is open: its repeated values are atoms, the others are numbers. A key is a
structure with an atom, or a free number, in each of its columns. Keys that are rare in the draws
looked at are left out; their outputs, and those never seen before, are in no key (−1). A missed atom
costs power, never validity: whatever the layout, the key of an output is a function of that output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs, align
from dpassay.outputs.codes import (
    CODES,
    RARE,
    SPAN,
    Part,
    codes_of,
    distances,
    places,
    renumbered,
    repeated,
    whole_numbers,
)
from dpassay.outputs.resident import AnyOutputs
from dpassay.outputs.templates import Template, number_columns
from dpassay.records import Record

#: Rows per side that are searched for atoms: a quarter of them, between these limits.
_LOOK = (1 << 13, 1 << 17)
#: A value is an atom if it makes up this share of the draws looked at, and comes three times.
_SHARE = 1e-4
#: A column is discrete if at least this share of its values are atoms.
_DISCRETE = 0.9
#: Codes up to here are looked up in a table, beyond by binary search.
_TABLE = 1 << 22


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
        simple = np.array([not part.atoms for part in self.parts], dtype=bool)[self.parts_of]
        found[self.parts_of[simple]] = np.flatnonzero(simple)
        return found

    def words(self, key: int, numbers: Sequence[str] | None = None) -> str:
        """A key as an output would look, • for its free numbers or the words given for them."""
        return self.part(key).words(int(self.codes[key]), numbers)

    def sort(self, outputs: Outputs) -> KeyedDraws:
        """The key of each output, −1 for those in none; found once for outputs that many scores see."""
        layout, keys = outputs.keyed
        return KeyedDraws(self, outputs, keys if layout is self else self._keys(outputs))

    def _keys(self, outputs: Outputs) -> IntArray | None:
        if self.trivial(outputs):
            return None
        places = np.array([self._index.get(s, -1) for s in outputs.structures], dtype=np.int64)
        if outputs.codes is None:
            part = int(places[0])
            if part < 0 or not self.parts[part].atoms:
                only = -1 if part < 0 else int(self._alone[part])
                return np.full(len(outputs), only, dtype=np.int64)
            rows = self.parts[part].rows(outputs)
            return _look_up(self, part, codes_of(self.parts[part], rows))
        alone = np.append(self._alone, -1)
        keys = alone[places][outputs.codes]
        for code, part in enumerate(places.tolist()):
            if part >= 0 and self.parts[part].atoms:
                mask = np.flatnonzero(outputs.codes == code)
                rows = self.parts[part].rows(outputs, mask)
                keys[mask] = _look_up(self, part, codes_of(self.parts[part], rows))
        return keys

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
) -> tuple[Layout, KeyedDraws, KeyedDraws]:
    """Find the keys from draws of both sides; and those draws, sorted into them.

    Combinations of discrete values that hardly repeat are numbers, unless they are to stay `whole`. All
    draws are searched for atoms if that is to be `thorough`.
    """
    p, q = align([p, q])
    look = min(max(min(len(p), len(q)) // 4, _LOOK[0]), _LOOK[1])
    if thorough:
        look = max(len(p), len(q))
    own = [
        np.zeros(len(side), dtype=np.int64) if side.codes is None else side.codes for side in (p, q)
    ]
    counts = np.bincount(np.concatenate(own), minlength=len(p.structures))
    enough = min(RARE, len(p) + len(q))
    parts: list[Part] = []
    keys: list[IntArray] = []
    for code in np.flatnonzero(counts >= enough).tolist():  # a rarer structure holds no key
        template = p.structures[code]
        if not number_columns(template):
            parts.append(Part(template))
            keys.append(np.zeros(1, dtype=np.int64))
            continue
        seen = [_rows_of(side[:look], code, template) for side in (p, q)]
        if not any(len(numbers) for numbers, _ in seen):
            seen = [_rows_of(side, code, template) for side in (p, q)]
        numbers = np.concatenate([numbers for numbers, _ in seen])
        rest = np.concatenate([rest for _, rest in seen])
        part = _part(template, numbers, rest, whole)
        if p.is_plain and part.space == 1:  # numbers without atoms
            layout = Layout((part,), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
            return layout, KeyedDraws(layout, p, None), KeyedDraws(layout, q, None)
        parts.append(part)
        keys.append(_frequent(part, code, p, q, enough))
    owners = np.repeat(np.arange(len(parts)), [found.size for found in keys])
    codes = np.concatenate([*keys, np.zeros(0, dtype=np.int64)])
    layout = Layout(tuple(parts), owners, codes)
    return layout, layout.sort(p), layout.sort(q)


def _rows_of(side: Outputs, code: int, template: Template) -> tuple[AnyArray, FloatArray]:
    """The numbers of one structure, and their remainders."""
    rows = slice(None) if side.codes is None else np.flatnonzero(side.codes == code)
    columns = list(number_columns(template))
    numbers = side.numbers[rows][:, columns]
    rest = np.zeros(numbers.shape) if side.rest is None else side.rest[rows][:, columns]
    return numbers, rest


def _frequent(part: Part, structure: int, p: Outputs, q: Outputs, enough: int) -> IntArray:
    """The codes of a part that are not rare."""
    own = []
    for side in (p, q):
        rows = slice(None) if side.codes is None else np.flatnonzero(side.codes == structure)
        own.append(codes_of(part, part.rows(side, rows)))
    codes = np.concatenate(own)
    codes = codes[codes >= 0]
    if part.space <= _TABLE:
        return np.flatnonzero(np.bincount(codes, minlength=1) >= max(enough, 1))
    found, count = np.unique(codes, return_counts=True)
    return found[count >= enough]


def _part(template: Template, numbers: AnyArray, rest: FloatArray, whole: bool) -> Part:
    """Atoms and open columns of one structure."""
    width = numbers.shape[1]
    if numbers.dtype.kind in "iu" and numbers.size:
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < SPAN and len(numbers) > 20 * (high - low + 1):
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
        values, count = repeated(numbers[:, column])
        discrete = len(numbers) > 0 and count.sum() >= _DISCRETE * len(numbers)
        if not discrete:
            values = values[count >= max(3, _SHARE * len(numbers))]
        elif whole_numbers(values) and values[-1] - values[0] < SPAN:
            values = np.arange(float(values[0]), float(values[-1]) + 1)  # without gaps
        atoms.append(values.astype(float))
        free.append(not discrete)
    return _keyed(Part(template, tuple(atoms), tuple(free), tuple(origins)), numbers, whole)


def _keyed(part: Part, rows: AnyArray, whole: bool) -> Part:
    """The part as it is, unless its combinations hardly repeat: then numbers serve better."""
    width = len(part.atoms)
    if part.space >= CODES:
        part = renumbered(part, rows)
    if width > 1 and not whole:
        codes = codes_of(part, rows)
        _, count = repeated(codes[codes >= 0])
        if count[count >= RARE].sum() < 0.5 * len(rows):
            return Part(part.template, (np.zeros(0),) * width, (True,) * width, part.origins)
    return part


def _look_up(layout: Layout, index: int, codes: IntArray) -> IntArray:
    own = np.flatnonzero(layout.parts_of == index)
    if own.size == 0:
        return np.full(codes.size, -1, dtype=np.int64)
    known = layout.codes[own]
    space = layout.parts[index].space
    if space <= _TABLE:
        table = np.full(space + 1, -1, dtype=np.int64)
        table[known] = own
        return table[codes]  # −1 reads the last entry, which is −1
    order = np.argsort(known)
    place = places(codes, known[order])
    return np.where(place < 0, -1, own[order][place])
