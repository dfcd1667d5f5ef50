"""What inputs look like, for cases that are hunted too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dpassay.blackbox.inputs import Cell, Table
from libraries.cases import Case, hunted


def with_hunts(
    cases: Iterable[Case], hunts: Mapping[str, Mapping[str, Any]], n: int
) -> Iterator[Case]:
    """All cases, and after each that is named in `hunts` a hunt; its arguments are those of `hunted`."""
    for case in cases:
        yield case
        if case.name in hunts:
            yield hunted(case, **{"n": n, **hunts[case.name]})


def tuples(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The rows of a table as tuples."""
    return [tuple(row.values()) for row in rows]


def columns(cells: Mapping[str, Cell], rows: tuple[int, int]) -> Table:
    """A space of tables that are given as columns."""

    def convert(found: list[dict[str, Any]]) -> dict[str, list[Any]]:
        return {name: [row[name] for row in found] for name in cells}

    return Table(cells, rows=rows, convert=convert)
