"""The representation of outputs: the bits of doubles, whatever their value, and the characters of text.

x + noise in floating point is not the ideal mechanism: the doubles that can occur depend on x (Mironov
2012, doi:10.1145/2382196.2382264; Haney et al. 2022, arXiv:2207.13793). A double is sign · m · 2^low with
an odd m: `low` is its lowest set bit. Its *cell* is its sign, the power of two below it, and how far the
lowest set bit lies under that. Values that were float32, or written as decimals, are doubles like others.

Strings that hardly repeat have no frequencies to go by; their characters do.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import Template, leaves_of
from dpassay.records import Record

#: Powers of two that are told apart, and bits of a double.
_TOPS, BITS = 80, 53
#: The lowest set bit of 0 and of −0, beyond those of all doubles.
ZERO, _MINUS_ZERO = 2000, 2001
#: The highest bit of any double.
_LARGEST = 1023
#: How many cells there are: one for each sign, power and lowest bit, and two for zeros.
CELLS = 2 * _TOPS * BITS + 2
#: Coordinates looked at.
COLUMNS = 512


def powers(values: FloatArray) -> tuple[IntArray, IntArray]:
    """(low, top): the exponents of the lowest and of the highest set bit of each double."""
    raw = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    exponent = (raw >> 52) & 0x7FF
    digits = raw & ((1 << 52) - 1)
    digits |= (exponent > 0).astype(np.int64) << 52
    unit = np.maximum(exponent, 1) - 1075  # what the last of the 53 bits is worth
    low, top = unit + _place(digits & -digits), unit + _place(digits)
    zero = digits == 0
    if zero.any():
        low[zero] = np.where(raw[zero] < 0, _MINUS_ZERO, ZERO)
        top[zero] = 0
    return low, top


def _place(bits: IntArray) -> IntArray:
    """The place of the highest set bit of whole numbers below 2⁵³: the exponent of the same double."""
    return (bits.astype(np.float64).view(np.int64) >> 52) - 1023


def numbers_of(outputs: Outputs, column: int) -> FloatArray:
    """The numbers of a column; 0 where there are none, as in a block of shorter outputs."""
    if column >= outputs.numbers.shape[1]:
        return np.zeros(len(outputs))
    return np.asarray(outputs.numbers[:, column], dtype=float)


@dataclass(frozen=True, eq=False)
class Bits(Record):
    """The cell of each coordinate, as a whole number."""

    columns: tuple[int, ...]
    origins: IntArray = field(repr=False)  # by column: the power of two in the middle of its cells
    mixed: bool = False  # whether some outputs lack some of the numbers

    def _validate(self) -> None:
        same = self.origins.shape == (len(self.columns),)
        checks.require(same, "origins must have an entry for each column")
        checks.require(all(c >= 0 for c in self.columns), "columns must be at least 0")
        small = np.all(np.abs(self.origins) <= 2 * _LARGEST)
        checks.require(small, "origins must be exponents of doubles")

    @property
    def size(self) -> int:
        return len(self.columns)

    @classmethod
    def learn(cls, p: Outputs, q: Outputs) -> Bits:
        """The usual size of every coordinate."""
        columns = range(min(p.numbers.shape[1], COLUMNS))
        origins = []
        for column in columns:
            some = [side.numbers[:2000, column] for side in (p, q)]
            origins.append(int(np.median(powers(np.concatenate(some))[1])))
        mixed = len(p.structures) > 1
        return cls(tuple(columns), np.array(origins, dtype=np.int64), mixed)

    def rows(self, outputs: Outputs) -> IntArray:
        found = np.empty((len(outputs), len(self.columns)), dtype=np.int64)
        for k, column in enumerate(self.columns):
            numbers = numbers_of(outputs, column)
            low, top = powers(numbers)
            place = np.clip(top - self.origins[k] + _TOPS // 2, 0, _TOPS - 1)
            cell = (np.signbit(numbers) * _TOPS + place) * BITS + np.clip(top - low, 0, BITS - 1)
            found[:, k] = np.where(low >= ZERO, low - ZERO + CELLS - 2, cell)
        return found

    def words(self, column: int, cell: int) -> str:
        """A cell as a person can check it."""
        name = "output" if len(self.columns) == 1 else f"x{self.columns[column] + 1}"
        if cell == CELLS - 1:
            return f"{name} is -0.0"
        if cell == CELLS - 2:
            return f"{name} is 0.0{' or not there' if self.mixed else ''}"
        rest, gap = divmod(cell, BITS)
        minus, place = divmod(rest, _TOPS)
        top = place - _TOPS // 2 + int(self.origins[column])
        size, bit = f"{'−' * minus}{name}", f"lowest set bit {power(top - gap)}"
        if 0 < place < _TOPS - 1:
            return f"{power(top)} ≤ {size} < {power(top + 1)} with {bit}"
        # the outermost cells hold all that is smaller or larger
        size = f"{size} ≥ {power(top)}" if place else f"0 < {size} < {power(top + 1)}"
        return f"{size} with lowest set bit {gap} places below its highest"


@dataclass(frozen=True, eq=False)
class LowestBit(Record):
    """The exponent of the lowest set bit of one coordinate, in hundreds: polynomials end at ±20."""

    column: int
    name: str = "the output"
    mixed: bool = False  # whether some outputs lack the number
    size: ClassVar[int] = 1

    def _validate(self) -> None:
        checks.require(self.column >= 0, "column must be at least 0")

    def rows(self, outputs: Outputs) -> FloatArray:
        return powers(numbers_of(outputs, self.column))[0][:, None] / 100.0

    def words(self, threshold: float, below: bool) -> str:
        """The event that it is so small, or so large."""
        exponent = round(100 * threshold, 6)
        edge = int(np.floor(exponent) if below else np.ceil(exponent))
        zero = "0 or not there" if self.mixed else "0"
        if edge > _LARGEST:  # only 0 is beyond
            every = "anything" if edge >= ZERO else f"not {zero}"
            return f"{self.name} is {every if below else zero}"
        if below:
            return f"the lowest set bit of {self.name} is {power(edge)} or smaller"
        return f"the lowest set bit of {self.name} is {power(edge)} or larger, or it is {zero}"


def power(exponent: int) -> str:
    """A power of two, written out."""
    return f"2^{exponent}" if exponent != 0 else "1"


#: Leaves of an output that are looked at; characters from the start of each, alone or among others, and
#: from its end.
_LEAVES, _ALONE, _AMONG, _END = 16, 32, 6, 4
#: Lengths and whole words are told apart up to this many; 0 stands for "not there".
_CODES = 256
#: Characters up to here are themselves, the others are told apart modulo `_GROUPS`.
_LATIN, _GROUPS = 256, 255
#: Neighbouring characters are told apart modulo this.
_BIGRAMS = 256


def text_of(leaf: Template) -> str:
    """The text of a leaf; empty for anything else."""
    if leaf[0] == "str":
        return str(leaf[1])
    return bytes.fromhex(leaf[1]).decode("latin-1") if leaf[0] == "bytes" else ""


@dataclass(frozen=True, eq=False)
class Characters(Record):
    """For each leaf: the whole word, its length, characters from either end; for one also bigrams."""

    leaves: int

    def _validate(self) -> None:
        checks.whole("leaves", self.leaves, at_most=_LEAVES)

    @property
    def size(self) -> int:
        return (2 + len(self._places)) * self.leaves + (_BIGRAMS if self.leaves == 1 else 0)

    @classmethod
    def learn(cls, structures: Sequence[Template]) -> Characters:
        """How many leaves there are to look at."""
        most = max((len(leaves_of(one)) for one in structures[:1000]), default=1)
        return cls(max(1, min(most, _LEAVES)))

    @property
    def _places(self) -> list[int]:
        start = _ALONE if self.leaves == 1 else _AMONG
        return [*range(start), *range(-_END, 0)]

    def rows(self, outputs: Outputs) -> IntArray:
        seen, back = np.unique(outputs.all_codes, return_inverse=True)
        texts = [
            [text_of(leaf) for leaf in leaves_of(outputs.structures[k])[: self.leaves]]
            for k in seen.tolist()
        ]
        columns: list[IntArray] = []
        for leaf in range(self.leaves):
            own = [text[leaf] if leaf < len(text) else "" for text in texts]
            columns += self._of_leaf(own)
        return np.asarray(np.column_stack(columns)[back])

    def _of_leaf(self, texts: list[str]) -> list[IntArray]:
        length = np.array([len(text) for text in texts], dtype=np.int64)
        whole = [zlib.crc32(text.encode("utf-8", "surrogatepass")) % (_CODES - 1) for text in texts]
        columns = [np.array(whole, dtype=np.int64) + 1, np.minimum(length, _CODES - 1)]
        width = min(int(length.max(initial=_ALONE)), 4 * _ALONE)
        ends = np.array([text[-_END:].rjust(_END) for text in texts], dtype=f"U{_END}")
        starts = np.array([text[:width] for text in texts], dtype=f"U{width}")
        from_start = starts.view(np.uint32).reshape(len(texts), width).astype(np.int64)
        from_end = ends.view(np.uint32).reshape(len(texts), _END).astype(np.int64)
        for place in self._places:
            chars = from_end if place < 0 else from_start
            there = length >= -place if place < 0 else length > place
            own = chars[:, place]
            own = np.where(own < _LATIN, own, _LATIN + own % _GROUPS)
            columns.append(np.where(there, own + 1, 0))
        if self.leaves == 1:
            there = from_start[:, 1:] > 0
            pairs = (from_start[:, :-1] * 31 + from_start[:, 1:]) % _BIGRAMS
            found = np.zeros((len(texts), _BIGRAMS), dtype=np.int64)
            row, at = np.nonzero(there)
            found[row, pairs[row, at]] = 1
            columns += list(found.T)
        return columns

    def words(self, column: int, code: int) -> str:
        """A value as a person can check it."""
        places = self._places
        own = (2 + len(places)) * self.leaves
        if column >= own:
            return f"{'a' if code else 'no'} pair of characters in group {column - own}"
        leaf, kind = divmod(column, 2 + len(places))
        of = "" if self.leaves == 1 else f" of item {leaf + 1}"
        if kind == 0:
            return f"the word{of} is in group {code}"
        if kind == 1:
            return f"the length{of} is {code}{' or more' if code == _CODES - 1 else ''}"
        place = places[kind - 2]
        which = f"character {place + 1}" if place >= 0 else f"character {-place} from the end"
        if code > _LATIN:
            return f"{which}{of} is one whose code is {code - 1 - _LATIN} modulo {_GROUPS}"
        return f"{which}{of} is {repr(chr(code - 1)) if code else 'missing'}"
