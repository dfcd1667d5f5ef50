"""Events: sets of outputs, in words and in a form that somebody else can evaluate.

Outputs fall into *keys*: what kind of thing came out, and which of its numbers are atoms (values
that come out again and again). A `Layout` says which keys there are; what is left of an output in
a key are its remaining numbers. An `Event` takes some keys whole, tests the numbers of others, and
says what becomes of outputs in no key. All of it is data: it serialises, and nothing is evaluated
but comparisons and, for `Score`, one polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.records import Record


def _nested(value: Any) -> Any:
    """Templates are nested tuples; JSON knows lists only."""
    return tuple(_nested(item) for item in value) if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, eq=False)
class Part(Record):
    """Outputs of one structure: its number columns, their atoms, and which may be anything."""

    template: tuple[Any, ...]
    columns: tuple[int, ...]
    atoms: tuple[FloatArray, ...] = field(repr=False)
    #: Columns whose other values are numbers; in the rest only the atoms are known.
    open: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "template", _nested(self.template))
        object.__setattr__(self, "columns", tuple(int(c) for c in self.columns))
        object.__setattr__(self, "atoms", tuple(np.asarray(a, dtype=float) for a in self.atoms))
        object.__setattr__(self, "open", tuple(bool(o) for o in self.open))

    @property
    def radix(self) -> list[int]:
        """How many codes each column has: its atoms, and one for anything else if open."""
        return [a.size + int(o) for a, o in zip(self.atoms, self.open, strict=True)]

    def digits(self, code: int) -> list[int]:
        """The code of each column: 0 is "anything" in an open one."""
        out = []
        for radix in self.radix:
            code, digit = divmod(code, radix)
            out.append(digit)
        return out

    def values(self, code: int) -> list[float | None]:
        """The atom in each column of a key, None where its numbers are free."""
        out: list[float | None] = []
        for digit, atoms, free in zip(self.digits(code), self.atoms, self.open, strict=True):
            out.append(None if free and digit == 0 else float(atoms[digit - int(free)]))
        return out

    def free(self, code: int) -> list[int]:
        """The number columns a key leaves free."""
        return [c for c, v in zip(self.columns, self.values(code), strict=True) if v is None]


@dataclass(frozen=True, eq=False)
class Layout(Record):
    """How outputs fall into keys: the key of row k is code `codes[k]` of part `parts_of[k]`."""

    parts: tuple[Part, ...] = field(repr=False)
    parts_of: IntArray = field(repr=False)
    codes: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        for name in ("parts_of", "codes"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))

    def __len__(self) -> int:
        return self.codes.size

    def part(self, key: int) -> Part:
        """The part a key belongs to."""
        return self.parts[int(self.parts_of[key])]

    def free(self, key: int) -> list[int]:
        """The number columns a key leaves free."""
        return self.part(key).free(int(self.codes[key]))


@dataclass(frozen=True, eq=False)
class Intervals(Record):
    """The free number of a key lies in one of the half-open intervals [low, high)."""

    lows: FloatArray
    highs: FloatArray

    def __post_init__(self) -> None:
        for name in ("lows", "highs"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))

    def holds(self, numbers: FloatArray) -> Any:
        """Which rows of the free numbers are inside."""
        x = numbers[:, 0]
        if self.lows.size == 1:
            return (self.lows[0] <= x) & (x < self.highs[0])
        place = np.searchsorted(self.lows, x, side="right") - 1
        return (place >= 0) & (x < self.highs[np.maximum(place, 0)])


@dataclass(frozen=True, eq=False)
class Score(Record):
    """offset + Σ linear·x + Σ square·x² ≥ 0 in the free numbers of a key."""

    offset: float
    linear: FloatArray
    square: FloatArray

    def __post_init__(self) -> None:
        for name in ("linear", "square"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))

    def holds(self, numbers: FloatArray) -> Any:
        """Which rows of the free numbers are inside."""
        return self.offset + numbers @ self.linear + numbers**2 @ self.square >= 0


Test: TypeAlias = Intervals | Score


@dataclass(frozen=True, eq=False, kw_only=True)
class Event(Record):
    """A set of outputs."""

    words: str
    layout: Layout | None = field(default=None, repr=False)
    whole: tuple[int, ...] = field(default=(), repr=False)
    partial: tuple[tuple[int, Test], ...] = field(default=(), repr=False)
    #: Whether outputs in no key belong to the event.
    otherwise: bool = False
    #: Only the process that made it can evaluate it; it cannot be replayed from a file.
    live: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", tuple(int(k) for k in self.whole))
        object.__setattr__(self, "partial", tuple((int(k), t) for k, t in self.partial))

    def __str__(self) -> str:
        return self.words
