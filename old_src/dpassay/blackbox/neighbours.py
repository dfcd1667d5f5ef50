"""Pairs of neighbouring inputs, and the relation that makes them neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.privacy.relations import Pair, Relation

#: The most queries of a pattern.
_LONGEST = 1_000_000

__all__ = ["Pair", "Population", "Relation", "edit_one", "grid", "patterns", "remove_one"]


def patterns(length: int) -> list[Pair]:
    """Answers to `length` counting queries on two neighbouring databases, in ten patterns.

    Seven patterns of Ding et al. (2018) and the mirror images of three of them, which find the
    worst pair of one-sided mechanisms such as the sparse vector technique.

    >>> for pair in patterns(4)[:3]:
    ...     print(pair)
    one above: [2 1 1 1] and [1 1 1 1]
    one below: [0 1 1 1] and [1 1 1 1]
    one above, rest below: [2 0 0 0] and [1 1 1 1]
    """
    k = checks.whole("length", length, at_least=2, at_most=_LONGEST)
    half = (k + 1) // 2
    one = np.ones(k, dtype=np.int64)

    def first_rest(head: int, tail: int) -> Any:
        return np.array([head] + [tail] * (k - 1), dtype=np.int64)

    def halves(left: int, right: int) -> Any:
        return np.array([left] * half + [right] * (k - half), dtype=np.int64)

    rows = [
        ("one above", first_rest(2, 1), one),
        ("one below", first_rest(0, 1), one),
        ("one above, rest below", first_rest(2, 0), one),
        ("one below, rest above", first_rest(0, 2), one),
        ("half half", halves(0, 1), one),
        ("all above", 2 * one, one),
        ("X shape", halves(1, 0), halves(0, 1)),
        ("one above, mirrored", first_rest(2, 1)[::-1], one),
        ("one above, rest below, mirrored", first_rest(2, 0)[::-1], one),
        ("one below, rest above, mirrored", first_rest(0, 2)[::-1], one),
    ]
    return [Pair(a, b, Relation.SENSITIVITY_ONE, name) for name, a, b in rows]


def remove_one(database: Any) -> list[Pair]:
    """The database and each of the databases with one record removed.

    >>> [list(pair[1]) for pair in remove_one([3, 5])]
    [[5], [3]]
    """
    return [
        Pair(database, _without(database, i), Relation.ADD_REMOVE, f"without record {i}")
        for i in range(_rows(database))
    ]


def _without(database: Any, index: int) -> Any:
    """The database without one record, of the same type."""
    if isinstance(database, np.ndarray):
        return np.delete(database, index, axis=0)
    rest = [*database[:index], *database[index + 1 :]]
    return tuple(rest) if isinstance(database, tuple) else rest


def edit_one(database: Any, values: Iterable[Any]) -> list[Pair]:
    """The database and each of the databases with one record replaced by one of `values`.

    >>> [list(pair[1]) for pair in edit_one([0, 0], [1])]
    [[1, 0], [0, 1]]
    """
    rows = _rows(database)
    pairs = []
    for index, value in itertools.product(range(rows), checks.listed("values", values)):
        if _equal(database[index], value):
            continue
        if isinstance(database, np.ndarray):
            edited: Any = database.copy()
            try:
                edited[index] = value
            except (TypeError, ValueError, OverflowError) as error:
                got = f"{checks.shown(value)}, which no record can be ({error})"
                raise InvalidInput(f"values holds {got}") from None
        else:
            edited = [*database[:index], value, *database[index + 1 :]]
            edited = tuple(edited) if isinstance(database, tuple) else edited
        name = f"record {index} set to {checks.shown(value, 20)}"
        pairs.append(Pair(database, edited, Relation.REPLACE_ONE, name))
    return pairs


def _equal(first: Any, second: Any) -> bool:
    """Whether two values are equal; those that cannot be compared are not."""
    try:
        return bool(np.array_equal(first, second))
    except Exception:  # an object may raise anything
        return False


def grid(
    first: Any, *axes: Sequence[Any], relation: Relation = Relation.UNSPECIFIED
) -> Iterator[Pair]:
    """`first` against every point of a grid: one axis per coordinate, a scalar for a single axis.

    Points equal to `first` are left out. Made lazily: a grid may hold thousands of pairs.

    >>> [pair[1] for pair in grid(0.0, [0.0, 0.5, 1.0])]
    [0.5, 1.0]
    >>> len(list(grid((0, 0), [0, 1], [0, 1])))
    3
    """
    if not axes or any(len(axis) == 0 for axis in axes):
        raise InvalidInput("a grid needs at least one axis of values, none of them empty")
    for point in itertools.product(*axes):
        second: Any = point[0] if len(axes) == 1 else np.array(point)
        if not _equal(first, second):
            yield Pair(first, second, Relation(relation))


@dataclass(frozen=True)
class Population:
    """A random database for distributional DP: each call draws `rows` records.

    `draw(size, rows, rng)` returns an array of shape (size, rows) or (size, rows, columns).
    """

    draw: Any
    rows: int
    name: str = ""

    def __post_init__(self) -> None:
        checks.whole("rows", self.rows)
        if not callable(self.draw):
            raise InvalidInput(
                f"draw must be a function (size, rows, rng), got {checks.shown(self.draw)}"
            )


def _rows(database: Any) -> int:
    try:
        rows = len(database[:])
    except Exception:  # an object may raise anything
        rows = 0
    if rows == 0:
        raise InvalidInput(
            f"a database must be a non-empty sequence of records, got {checks.shown(database)}"
        )
    return rows
