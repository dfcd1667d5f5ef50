"""What a hunt returns, and how two inputs are shown side by side."""

from __future__ import annotations

import difflib
import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpassay.checks import shown
from dpassay.privacy.pairs import Pair
from dpassay.records import Record
from dpassay.results import Shown, Verdict, number

#: Equal rows shown around one that differs, rows shown at most, and letters of each.
_CONTEXT, _ROWS, _LETTERS = 2, 24, 100
#: Lines of the log in a notebook.
_LISTED = 30


@dataclass(frozen=True, eq=False, kw_only=True)
class Tried(Record):
    """A pair that was looked at: what it is, the draws spent on it, and what they predicted."""

    name: str  # in the catalogue
    pair: str
    draws: int  # on both sides
    bound: float | None = None  # predicted by the last look; None if it was a quick one
    outcome: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Hunt(Shown):
    """The pair that breaks a claim most plainly of those tried, shrunk, and a verdict on it.

    The verdict is an audit of that one pair on draws that the search never saw: whatever was tried before
    costs it nothing. Its `about.seed` and the pair bring it back: `dp.audit(mechanism, hunt.pair, …)`.
    """

    verdict: Verdict
    pair: Pair
    name: str  # what is special about the pair
    outside: bool  # whether it holds values outside the space
    log: tuple[Tried, ...] = field(repr=False)
    tried: int  # pairs
    draws: int  # all of them, the verdict's included
    notes: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict.violated

    @property
    def _colour(self) -> str:
        return self.verdict._colour

    def __str__(self) -> str:
        lines = [
            str(self.verdict),
            f"  hunted: {self.tried:,} pairs, {self.draws:,} draws; this one: {self.pair.name}",
            f"  inputs ({self.pair.relation}):",
            *(f"    {mark} {text}" for mark, text in compared(self.pair)),
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def table(self) -> list[dict[str, Any]]:
        """The log as rows, for pandas.DataFrame and the like."""
        return [
            {
                "name": t.name,
                "draws": t.draws,
                "bound": t.bound,
                "outcome": t.outcome,
                "pair": t.pair,
            }
            for t in self.log
        ]

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """The verdict, the two inputs with what differs marked, and the log, as a piece of HTML."""
        marks = {"−": "#fbe3e1", "+": "#e0f0e3", " ": "transparent"}
        inputs = "".join(
            f'<div style="background:{marks[mark]};white-space:pre-wrap">{mark} {html.escape(text)}</div>'
            for mark, text in compared(self.pair)
        )
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(one)) + "</tr>"
            for one in self.log[:_LISTED]
        )
        more = len(self.log) - _LISTED
        left = f"<p>and {more:,} more</p>" if more > 0 else ""
        head = "".join(f"<th>{name}</th>" for name in ("pair", "draws", "predicted", "outcome"))
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return (
            f"{self.verdict._repr_html_()}<p>{html.escape(self.pair.name)} "
            f"({html.escape(str(self.pair.relation))}); − is only in the first input, + only in the "
            f'second</p><div style="font-family:monospace">{inputs}</div>{notes}<details><summary>'
            f"{self.tried:,} pairs tried, {self.draws:,} draws</summary><table><tr>{head}</tr>{rows}"
            f"</table>{left}</details>"
        )


def _cells(one: Tried) -> tuple[str, str, str, str]:
    bound = "" if one.bound is None else number(one.bound)
    return one.name, f"{one.draws:,}", bound, one.outcome


def compared(pair: Pair) -> list[tuple[str, str]]:
    """The rows of two inputs: − only in the first, + only in the second, others as far as they fit."""
    sides = [[shown(row, _LETTERS) for row in _rows(side)] for side in pair]
    lines: list[tuple[str, str]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(
        None, sides[0], sides[1], autojunk=False
    ).get_opcodes():
        if tag == "equal":
            same = sides[0][a:b]
            if len(same) > 2 * _CONTEXT + 1:
                gap = f"… {len(same) - 2 * _CONTEXT:,} more that are equal"
                same = [*same[:_CONTEXT], gap, *same[-_CONTEXT:]]
            lines += [(" ", text) for text in same]
        else:
            lines += [("−", text) for text in sides[0][a:b]] + [
                ("+", text) for text in sides[1][c:d]
            ]
    if not any(sides):
        return [(" ", "no rows on either side")]
    return lines if len(lines) <= _ROWS else [*lines[:_ROWS], (" ", f"… {len(lines) - _ROWS} more")]


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
