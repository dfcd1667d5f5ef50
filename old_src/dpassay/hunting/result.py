"""What `dpassay.hunt` returns, and how two inputs are shown side by side."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpassay._typing import FloatArray
from dpassay.privacy.relations import Pair, Relation
from dpassay.records import Record
from dpassay.results.verdict import Verdict
from dpassay.tables import Shown
from dpassay.validation import shown

#: Equal rows shown around one that differs, rows shown at most, and characters of each that are shown
#: and compared.
_CONTEXT, _ROWS, _CHARACTERS, _LONGEST = 2, 24, 100, 10_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Tried(Record):
    """A pair that was tried: what it is, the draws spent on it, and what they predicted."""

    name: str  # in the catalogue
    pair: str
    draws: int  # on both sides
    bound: float | None = None  # predicted by the last trial; None if that was of coupled draws
    outcome: str
    at: int = 0  # draws of the hunt until then


@dataclass(frozen=True, eq=False, kw_only=True)
class Family(Record):
    """Candidates of one kind: how many were tried, the largest predictions, and the seconds they took."""

    name: str
    tried: int = 0
    difference: float = 0.0  # of outputs with common random numbers, in the scale of ε
    bound: float = 0.0  # predicted
    #: Not in files: results are the same wherever they are computed.
    seconds: float = field(default=0.0, metadata={"live": True})


@dataclass(frozen=True, eq=False, kw_only=True)
class Hunt(Shown):
    """The pair with the largest predicted violation, shrunk, and a verdict on it.

    The verdict is an audit of that one pair on draws that the search never saw: it needs no correction
    for the pairs that were tried. Its `about.seed` and the pair repeat it: `dp.audit(…, hunt.pair, …)`.
    """

    verdict: Verdict
    pair: Pair
    name: str  # what is special about the pair
    outside: bool  # whether it holds values outside the space
    log: tuple[Tried, ...] = field(repr=False)
    tried: int  # pairs
    draws: int  # all of them, the verdict's included
    notes: tuple[str, ...] = ()
    families: tuple[Family, ...] = field(default=(), repr=False)  # those that predict most first
    suspicions: tuple[str, ...] = ()  # calls of the generator that depend on the data, and where

    @property
    def violated(self) -> bool:
        return self.verdict.violated

    @property
    def _colour(self) -> str:
        return self.verdict._colour

    def __str__(self) -> str:
        lines = [
            str(self.verdict),
            f"  hunted: {self.tried:,} pair{'s' * (self.tried != 1)}, {self.draws:,} draws; this one: "
            f"{self.pair.name}",
            f"  inputs ({self.pair.relation}):",
            *(f"    {mark} {text}" for mark, text in compared(self.pair)),
            *(f"  suspicion: {text}" for text in self.suspicions),
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def table(self) -> list[dict[str, Any]]:
        """The log as rows, for pandas.DataFrame and the like."""
        columns = ("name", "draws", "bound", "outcome", "pair")
        return [{column: getattr(one, column) for column in columns} for one in self.log]

    def path(self) -> tuple[FloatArray, FloatArray]:
        """Draws of the hunt at which a pair was tried last, and the bound that it predicted."""
        seen = sorted((one.at, one.bound) for one in self.log if one.bound is not None)
        at, bounds = zip(*seen, strict=True) if seen else ((), ())
        return np.array(at, dtype=float), np.array(bounds, dtype=float)

    def chart(self) -> Any:
        """The predicted bound of every pair, over the draws of the hunt, and the claim."""
        from dpassay import charts

        return charts.search(*self.path(), claimed=float(self.verdict.claim.value))


def compared(pair: Pair) -> list[tuple[str, str]]:
    """The rows of two inputs: − only in the first, + only in the second, others as far as they fit."""
    lines: list[tuple[str, str]] = []
    for differs, *sides in beside(pair):
        marks = zip("−+" if differs else " ", sides, strict=False)
        lines += [(mark, text) for mark, text in marks if text is not None]
    return lines or [(" ", "no rows on either side")]


def beside(pair: Pair) -> list[tuple[bool, str | None, str | None]]:
    """The rows of two inputs next to each other: whether they differ, and None where there is none."""
    sides = [[shown(row, _LONGEST) for row in _rows(side)] for side in pair]
    placed = pair.relation is Relation.SENSITIVITY  # equal answers in other places are not the same
    one, other = ([*enumerate(side)] if placed else side for side in sides)
    match = difflib.SequenceMatcher(None, one, other, autojunk=False)
    lines: list[tuple[bool, str | None, str | None]] = []
    for tag, a, b, c, d in match.get_opcodes():
        first, second = sides[0][a:b], sides[1][c:d]
        if tag == "equal" and len(first) > 2 * _CONTEXT + 1:
            gap = f"… {len(first) - 2 * _CONTEXT:,} more that are equal"
            first = second = [*first[:_CONTEXT], gap, *first[-_CONTEXT:]]
        rows = itertools.zip_longest(first, second)
        lines += [(tag != "equal", _cut(x, y), _cut(y, x)) for x, y in rows]
    if len(lines) <= _ROWS:
        return lines
    more = f"… {len(lines) - _ROWS} more"
    return [*lines[:_ROWS], (False, more, more)]


def _cut(text: str | None, other: str | None) -> str | None:
    """A text; of a long one what is around the place where it differs from another."""
    if text is None:
        return None
    at = next((k for k, (x, y) in enumerate(zip(text, other or "", strict=False)) if x != y), 0)
    start = max(at - _CHARACTERS // 3, 0) if len(text) > _CHARACTERS else 0
    part = "…" * (start > 0) + text[start:]
    return part if len(part) <= _CHARACTERS else f"{part[: _CHARACTERS - 1]}…"


def _rows(data: Any) -> list[Any]:
    """An input as rows, as far as it has any."""
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        return list(data.to_dict("records"))
    if isinstance(data, Mapping):
        return [{key: value} for key, value in data.items()]
    if isinstance(data, np.ndarray) and data.ndim:
        return list(data.tolist())
    if isinstance(data, (list, tuple)):
        return list(data)
    return [data]
