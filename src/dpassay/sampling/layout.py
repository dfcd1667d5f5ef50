"""Learning which keys outputs fall into, and sorting outputs into them.

Atoms are exact repeats. A column whose values are mostly repeats is discrete: every value is an
atom. A column that is not is open: its repeated values are atoms, the others are numbers. Keys that
are rare in the draws looked at are left out; their outputs, and those never seen before, are in no
key (−1). A missed atom costs power, never validity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.events import Event, Layout, Part, Score, Test
from dpassay.sampling.outputs import Outputs, Structure, align, concatenate

#: Rows per side that are searched for atoms: a quarter of them, between these limits.
_LOOK = (1 << 13, 1 << 17)
#: A value is an atom if it makes up this share of the draws looked at, and comes three times.
_SHARE = 1e-4
#: A column is discrete if at least this share of its values are atoms.
_DISCRETE = 0.9
#: A key needs this many draws, both sides together.
_RARE = 5
#: Integers of a span below this are coded by their distance from the smallest.
_SPAN = 256
#: Codes up to here are looked up in a table, beyond by binary search.
_TABLE = 1 << 22


@dataclass(frozen=True, eq=False)
class Sorted:
    """Outputs sorted into the keys of a layout."""

    layout: Layout
    outputs: Outputs
    keys: IntArray | None  # None: all of them are in key 0

    def __len__(self) -> int:
        return len(self.outputs)

    def counts(self) -> IntArray:
        """How many outputs each key has; those in no key come last."""
        if self.keys is None:
            return np.array([len(self.outputs), 0])
        return np.bincount(
            np.where(self.keys < 0, len(self.layout), self.keys), minlength=len(self.layout) + 1
        )

    def numbers(self, key: int) -> FloatArray:
        """The free numbers of the outputs in a key."""
        columns = self.layout.free(key)
        numbers = self.outputs.numbers
        if self.keys is not None:
            numbers = numbers[self.keys == key]
        return np.asarray(_columns(numbers, tuple(columns)), dtype=float)


def _columns(rows: AnyArray, columns: tuple[int, ...]) -> AnyArray:
    return rows if columns == tuple(range(rows.shape[1])) else rows[:, list(columns)]


def learn(p: Outputs, q: Outputs, *, whole: bool = False) -> tuple[Layout, Sorted, Sorted]:
    """Find the keys from draws of both sides; and those draws, sorted into them.

    Combinations of discrete values that hardly repeat are numbers, unless they are to stay `whole`.
    """
    p, q = align([p, q])
    look = min(max(min(len(p), len(q)) // 4, _LOOK[0]), _LOOK[1])
    seen = concatenate([p[:look], q[:look]])
    parts = []
    for code, structure in enumerate(seen.structures):
        rows = seen.numbers if seen.codes is None else seen.numbers[seen.codes == code]
        parts.append(_part(structure, rows, whole))
    if len(parts) == 1 and parts[0].columns and _space(parts[0]) == 1:  # numbers without atoms
        layout = Layout(tuple(parts), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        return layout, Sorted(layout, p, None), Sorted(layout, q, None)
    coded = [_code_all(parts, side) for side in (p, q)]
    owners, codes = [], []
    for index, part in enumerate(parts):
        own = np.concatenate(
            [found[of == index] if of is not None else found for of, found in coded]
        )
        found = _frequent(own[own >= 0], _space(part))
        owners.append(np.full(found.size, index))
        codes.append(found)
    layout = Layout(tuple(parts), np.concatenate(owners), np.concatenate(codes))
    sides = []
    for side, (of, found) in zip((p, q), coded, strict=True):
        keys = np.full(len(side), -1, dtype=np.int64)
        for index in range(len(parts)):
            rows = slice(None) if of is None else of == index
            keys[rows] = _look_up(layout, index, found[rows])
        sides.append(Sorted(layout, side, keys))
    return layout, sides[0], sides[1]


def _code_all(parts: list[Part], side: Outputs) -> tuple[AnyArray | None, IntArray]:
    """The structure of each output (None if there is one only) and its code within its part."""
    if side.codes is None:
        return None, _codes(parts[0], side.numbers)
    codes = np.empty(len(side), dtype=np.int64)
    for index, part in enumerate(parts):
        rows = side.codes == index
        codes[rows] = _codes(part, side.numbers[rows])
    return side.codes, codes


def _frequent(codes: IntArray, space: int) -> IntArray:
    """Codes that are not rare among those given."""
    if space <= _TABLE:
        count = np.bincount(codes, minlength=1)
        return np.flatnonzero(count >= max(1, min(_RARE, codes.size)))
    found, count = np.unique(codes, return_counts=True)
    return found[count >= min(_RARE, codes.size)]


def _part(structure: Structure, rows: AnyArray, whole: bool) -> Part:
    """Atoms and open columns of one structure."""
    numbers = _columns(rows, structure.columns)
    if numbers.dtype.kind in "iu" and numbers.size:
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < _SPAN and len(numbers) > 20 * (high - low + 1):
            # small integers throughout, one range for all: one comparison serves the whole matrix
            span = np.arange(low, high + 1)
            width = numbers.shape[1]
            return _keyed(
                Part(structure.template, structure.columns, (span,) * width, (False,) * width),
                rows,
                whole,
            )
    atoms, free = [], []
    for column in range(numbers.shape[1]):
        values, count = _repeated(numbers[:, column])
        discrete = len(numbers) > 0 and count.sum() >= _DISCRETE * len(numbers)
        if not discrete:
            values = values[count >= max(3, _SHARE * len(numbers))]
        elif numbers.dtype.kind in "iu" and int(values[-1]) - int(values[0]) < _SPAN:
            values = np.arange(values[0], values[-1] + 1, dtype=np.int64)  # without gaps
        atoms.append(values.astype(float))
        free.append(not discrete)
    found = Part(structure.template, structure.columns, tuple(atoms), tuple(free))
    return _keyed(found, rows, whole)


def _keyed(part: Part, rows: AnyArray, whole: bool) -> Part:
    """The part as it is, unless its combinations hardly repeat: then numbers serve better."""
    width = len(part.columns)
    if width > 1 and not any(part.open) and (_huge(part) or (not whole and _scattered(part, rows))):
        return Part(part.template, part.columns, (np.zeros(0),) * width, (True,) * width)
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


def _space(part: Part) -> int:
    return int(np.prod(part.radix, dtype=object)) if part.radix else 1


def _codes(part: Part, rows: AnyArray) -> IntArray:
    """The code of each row within its part; −1 if a discrete column has an unknown value."""
    if rows.dtype.kind in "iu" and part.columns and _space(part) < 1 << 52 and _gapless(part):
        return _packed(part, rows)
    total = np.zeros(len(rows), dtype=np.int64)
    unknown = None
    stride = 1
    for column, atoms, free in zip(part.columns, part.atoms, part.open, strict=True):
        if atoms.size == 0 and free:
            continue
        digit = _digits(rows[:, column], atoms, free)
        if not free:
            missing = digit < 0
            unknown = missing if unknown is None else unknown | missing
        if stride == 1:
            total += digit
        else:
            total += digit * stride
        stride *= atoms.size + int(free)
    if unknown is not None and unknown.any():
        total[unknown] = -1
    return total


def _gapless(part: Part) -> bool:
    return not any(part.open) and all(
        a.size > 0 and a[-1] - a[0] == a.size - 1 and a.size <= _SPAN for a in part.atoms
    )


def _packed(part: Part, rows: AnyArray) -> IntArray:
    """Rows of small integers as numbers in a mixed radix: one matrix product."""
    numbers = _columns(rows, part.columns)
    low = np.array([atoms[0] for atoms in part.atoms])
    high = np.array([atoms[-1] for atoms in part.atoms])
    stride = np.concatenate([[1.0], np.cumprod(part.radix[:-1], dtype=float)])
    exact = np.float32 if _space(part) < 1 << 24 else np.float64
    codes: IntArray = (numbers.astype(exact) @ stride.astype(exact)).astype(np.int64)
    codes -= int(low @ stride)
    if len(numbers) and (numbers.min() < low.max() or numbers.max() > high.min()):
        codes[((numbers < low) | (numbers > high)).any(axis=1)] = -1
    return codes


def _digits(values: AnyArray, atoms: FloatArray, free: bool) -> IntArray:
    whole = values.dtype.kind in "iu" and atoms.size > 0
    if whole and atoms[-1] - atoms[0] < 65536:  # small integers: one look-up a value
        low, width = int(atoms[0]), int(atoms[-1] - atoms[0]) + 1
        table = np.full(width + 1, 0 if free else -1, dtype=np.int64)
        table[atoms.astype(np.int64) - low] = np.arange(atoms.size) + int(free)
        place = values.astype(np.int64) - low
        place[(place < 0) | (place >= width)] = width
        return table[place]
    place = np.minimum(np.searchsorted(atoms, values), atoms.size - 1)
    known = atoms[place] == values
    return np.where(known, place + int(free), 0 if free else -1)


def sort(layout: Layout, outputs: Outputs) -> Sorted:
    """The key of each output, −1 for those in none."""
    if _trivial(layout, outputs):
        return Sorted(layout, outputs, None)
    keys = np.full(len(outputs), -1, dtype=np.int64)
    for code, structure in enumerate(outputs.structures):
        index = _part_index(layout, structure)
        if index is None:
            continue
        part = layout.parts[index]
        if part.columns != structure.columns:
            part = Part(part.template, structure.columns, part.atoms, part.open)
        mask = None if outputs.codes is None else outputs.codes == code
        rows = outputs.numbers if mask is None else outputs.numbers[mask]
        found = _look_up(layout, index, _codes(part, rows))
        if mask is None:
            keys = found
        else:
            keys[mask] = found
    return Sorted(layout, outputs, keys)


def _trivial(layout: Layout, outputs: Outputs) -> bool:
    """Every output is a free number or vector of one kind."""
    return (
        len(layout) == 1
        and outputs.is_plain
        and len(layout.parts) == 1
        and layout.parts[0].template == outputs.structures[0].template
        and all(layout.parts[0].open)
        and not any(atoms.size for atoms in layout.parts[0].atoms)
        and layout.parts[0].columns == tuple(range(outputs.numbers.shape[1]))
    )


def _part_index(layout: Layout, structure: Structure) -> int | None:
    for index, part in enumerate(layout.parts):
        if part.template == structure.template:
            return index
    return None


def _look_up(layout: Layout, index: int, codes: IntArray) -> IntArray:
    own = np.flatnonzero(layout.parts_of == index)
    if own.size == 0:
        return np.full(codes.size, -1, dtype=np.int64)
    known = layout.codes[own]
    space = _space(layout.parts[index])
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


def contains(event: Event, outputs: Outputs) -> AnyArray:
    """Which outputs belong to an event."""
    assert event.layout is not None
    found = sort(event.layout, outputs)
    keys = np.zeros(len(outputs), dtype=np.int64) if found.keys is None else found.keys
    inside = np.zeros(len(event.layout) + 1, dtype=bool)
    inside[list(event.whole)] = True
    inside[-1] = event.otherwise
    result = inside[keys]
    for key, test in event.partial:
        result[keys == key] = test.holds(found.numbers(key))
    return result


def words(layout: Layout, key: int, numbers: Sequence[float] | None = None) -> str:
    """A key as an output would look, • for its free numbers or the numbers given for them."""
    part = layout.part(key)
    given: Iterator[float] = iter(numbers or ())
    shown = [
        (next(given) if numbers is not None else _Free()) if value is None else value
        for value in part.values(int(layout.codes[key]))
    ]
    return Structure(part.template, part.columns).show(shown)


class _Free(float):
    """A number that may be anything."""

    def __format__(self, spec: str) -> str:
        return "•"

    def __repr__(self) -> str:
        return "•"

    __str__ = __repr__


#: More keys or intervals than these are counted instead of listed.
_LISTED = 4


def describe(
    layout: Layout, whole: Sequence[int], partial: Sequence[tuple[int, Test]], otherwise: bool
) -> str:
    """An event in words a person can check: "output ≥ 3.21 or output is None"."""
    parts = []
    for key, test in partial:
        name = words(layout, key)
        numbers = "output" if name == "•" else "•"
        text = _test_words(test, numbers)
        parts.append(text if numbers == "output" else f"output is {name} with {text}")
    if len(parts) > _LISTED:
        parts = [
            *parts[: _LISTED - 1],
            f"one of {len(parts) - _LISTED + 1} more such kinds of output",
        ]
    names = [words(layout, key) for key in whole]
    if 0 < len(names) <= _LISTED:
        parts.append(f"output is {_or(names)}")
    elif names:
        parts.append(
            f"output is {', '.join(names[: _LISTED - 1])} or one of {len(names) - _LISTED + 1} others"
        )
    if otherwise:
        parts.append("output is of a kind not seen in training")
    return _or(parts) if parts else "no output at all"


def _or(parts: Sequence[str]) -> str:
    return " or ".join(parts) if len(parts) < 3 else ", ".join(parts[:-1]) + f" or {parts[-1]}"


def _test_words(test: Test, name: str) -> str:
    if isinstance(test, Score):
        return f"{_polynomial(test)} ≥ 0"
    found = []
    for low, high in zip(test.lows, test.highs, strict=True):
        if np.isneginf(low) and np.isposinf(high):
            found.append(f"{name} anything")
        elif np.isneginf(low):
            found.append(f"{name} < {high:.6g}")
        elif np.isposinf(high):
            found.append(f"{name} ≥ {low:.6g}")
        else:
            found.append(f"{low:.6g} ≤ {name} < {high:.6g}")
    if len(found) > _LISTED:
        rest = len(found) - _LISTED + 1
        return _or([*found[: _LISTED - 1], f"{name} in one of {rest} more intervals"])
    return _or(found)


def _polynomial(test: Score) -> str:
    terms = [f"{test.offset:+.4g}"]
    for power, weights in (("", test.linear), ("²", test.square)):
        big = np.argsort(-np.abs(weights), kind="stable")[:_LISTED]
        terms += [f"{weights[k]:+.4g}·x{k + 1}{power}" for k in np.sort(big) if weights[k]]
    shown = " ".join(terms).removeprefix("+")
    hidden = int(np.count_nonzero(test.linear) + np.count_nonzero(test.square)) - len(terms) + 1
    return shown + (f" + {hidden} smaller terms" if hidden > 0 else "")
