"""Neighbouring inputs made of rows: the catalogue, mutations and simplifications."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from dpassay.blackbox.inputs import Category, Text
from dpassay.errors import InvalidInput
from dpassay.hunting import values
from dpassay.hunting.schema import MUTATED, SIMPLER, Candidate, Row, Shape, renamed
from dpassay.privacy.pairs import Pair, Relation

#: Rows of a small input, and pairs of hostile values and backgrounds at most.
_SMALL, _MANY = 5, 600
#: A change: what is special about it, the rows on either side, and the row that is special.
Change: TypeAlias = tuple[str, tuple[Row, ...], tuple[Row, ...], Row]


@dataclass(frozen=True)
class Records:
    """Inputs of rows, under a relation between them."""

    shape: Shape
    relation: Relation
    user: int | None = None  # the column that says whose a row is

    def __post_init__(self) -> None:
        least, most = self.shape.length
        if self.relation in (Relation.ADD_REMOVE, Relation.ONE_USER) and least == most:
            raise InvalidInput(
                f"the relation {str(self.relation)!r} changes the number of rows, but all inputs have "
                f'{most}: use relation="replace", or let the length vary'
            )

    @property
    def _room(self) -> tuple[int, int]:
        """The least and the most common rows."""
        least, most = self.shape.length
        grows = self.relation in (Relation.ADD_REMOVE, Relation.ONE_USER)
        return (least if grows else max(least - 1, 0)), most - 1

    def pair(self, found: Candidate) -> Pair:
        """The inputs themselves."""
        first, second = (self.shape.pack(found.rows(side)) for side in (0, 1))
        name = f"outside the space, {found.name}" if found.outside else found.name
        return Pair(first, second, self.relation, name)

    # --- the catalogue

    def catalogue(self, rng: np.random.Generator, *, outside: bool) -> list[Candidate]:
        """Special pairs first; then every hostile value before every background, in turns."""
        special = [self._fit(one, rng) for one in self._special(rng)]
        columns = [
            list(self._hostile(k, rng, outside))
            for k in range(len(self.shape.cells))
            if k not in (self.shape.multiplicity, self.user)
        ]
        changes = _in_turn([*columns, list(self._known(rng))])
        rest: list[Candidate] = []
        for turn, (k, change) in itertools.product(range(len(_BACKGROUNDS)), enumerate(changes)):
            if len(rest) >= _MANY:
                break
            name, first, second, row = change
            kind = _BACKGROUNDS[(turn + k) % len(_BACKGROUNDS)]
            common = self._background(kind, row, rng)
            at = (0, len(common))[int(rng.integers(2))]
            text = f"{name}; {kind}" if self._room[1] else name
            rest.append(self._fit(Candidate(common, first, second, at, text), rng))
        return _once([one for one in _in_turn([special, rest]) if outside or not one.outside])

    def _hostile(self, k: int, rng: np.random.Generator, outside: bool) -> Iterator[Change]:
        """Every hostile value of a column, in each way in which a row may change."""
        made = []
        for one in values.hostile(self.shape.cells[k]):
            if outside or not one.outside:
                row = _with(self._extreme(rng), k, one.value)
                own = self.shape.names[k]
                label = one.name if len(self.shape.cells) == 1 else f"{own}: {one.name}"
                made.append(list(self._changes(label, row, k, rng)))
        for ways in itertools.zip_longest(*made):
            yield from (way for way in ways if way is not None)

    def _known(self, rng: np.random.Generator) -> Iterator[Change]:
        """Rows of data that are at hand."""
        known = [row for rows in self.shape.seeds for row in rows]
        for index in rng.permutation(len(known))[:_SMALL]:
            yield from self._changes("a row of the example", known[int(index)], 0, rng)

    def _changes(self, name: str, row: Row, k: int, rng: np.random.Generator) -> Iterator[Change]:
        """A row under the relation; `k` is the column that is special."""
        match self.relation:
            case Relation.ADD_REMOVE:
                yield name, (), (row,), row
            case Relation.ONE_USER:
                many = [self._typical(rng) for _ in range(2)]
                yield name, (), (row,), row
                yield f"{name}, several times", (), (row,) * 3, row
                yield f"{name}, among others", (), (row, *many), row
            case _:
                far = _with(row, k, values.opposite(self.shape.cells[k], row[k]))
                yield name, (far,), (row,), row
                near = values.nearest(self.shape.cells[k], row[k])
                if near is not None:
                    yield f"{name}, by a little", (_with(row, k, near),), (row,), row
                if self.relation is Relation.REPLACE_ONE and len(row) > 1:
                    yield f"{name}, in place of another row", (self._typical(rng),), (row,), row

    def _special(self, rng: np.random.Generator) -> Iterator[Candidate]:
        """Pairs that no single value makes special."""
        most = self._room[1]
        low, high = (self._end(side) for side in (0, 1))
        for name, row, base in (
            ("the largest sum there can be", high, high),
            ("the least sum there can be", low, low),
            ("the first row against no other", high, None),
        ):
            if base is not None and not most:
                continue
            for label, first, second, _ in self._changes(name, row, 0, rng):
                common = () if base is None else (base,) * most
                yield Candidate(common, first, second, len(common), label)
        for count in range(max(self._room[0], 1), min(most, _SMALL - 1) + 1):
            row = self._typical(rng)
            for label, first, second, _ in self._changes("few rows", row, 0, rng):
                common = tuple(self._typical(rng) for _ in range(count))
                yield Candidate(common, first, second, count, label)
        for k, cell in enumerate(self.shape.cells):
            if k in (self.shape.multiplicity, self.user) or not most:
                continue
            if isinstance(cell, (Category, Text)):
                yield from self._classes(k, rng)
            for name, one, other in values.twins(cell)[: 2 * len(values.TWINS)]:
                row, others = (_with(self._typical(rng), k, word) for word in (one, other))
                count = min(most, _SMALL)
                for label, first, second, _ in self._changes(name, row, k, rng):
                    yield Candidate((others,) * count, first, second, count, label)
                if self.relation is Relation.ONE_USER:
                    yield Candidate(
                        self._background("rows at random", row, rng), (), (row, others), 0, name
                    )
        for name, tiny in (("a large number before small ones", 0.3), ("numbers that round", 0.7)):
            small = tuple(self._scaled(tiny) for _ in range(most))
            for label, first, second, _ in self._changes(name, high, 0, rng):
                yield Candidate(small, first, second, 0, label)

    def _classes(self, k: int, rng: np.random.Generator) -> Iterator[Candidate]:
        """The only member of a class, with its other cells as far out as can be."""
        inside = [one.value for one in values.hostile(self.shape.cells[k]) if not one.outside]
        for value in inside[:6]:
            others = [one for one in inside if repr(one) != repr(value)]
            crowd = _with(self._typical(rng), k, others[int(rng.integers(len(others)))])
            for end in (0, 1):
                row = _with(self._end(end), k, value)
                for name, first, second, _ in self._changes(
                    "the only member of a class", row, k, rng
                ):
                    count = min(self._room[1], _SMALL)
                    yield Candidate((crowd,) * count, first, second, count, name)

    def _background(self, kind: str, row: Row, rng: np.random.Generator) -> tuple[Row, ...]:
        """The common rows of a kind."""
        least, most = self._room
        few = max(least, min(most, _SMALL))
        match kind:
            case "no other row":
                return tuple(self._typical(rng) for _ in range(least))
            case "all rows equal":
                return (row,) * few
            case "all others at the lower bound":
                return (self._end(0),) * few
            case "all others at the upper bound":
                return (self._end(1),) * (most if rng.random() < 0.5 else min(1, most))
            case "half of the others at either bound":
                half = most // 2
                return (self._end(0),) * half + (self._end(1),) * half
            case "many rows at random":
                return tuple(self._typical(rng) for _ in range(most))
        if self.shape.seeds:
            known = self.shape.seeds[int(rng.integers(len(self.shape.seeds)))]
            return known[:most]
        return tuple(self._typical(rng) for _ in range(int(rng.integers(least, few + 1))))

    # --- rows

    def _typical(self, rng: np.random.Generator) -> Row:
        return tuple(values.typical(cell, rng) for cell in self.shape.cells)

    def _end(self, side: int) -> Row:
        return tuple(values.extremes(cell)[side] for cell in self.shape.cells)

    def _extreme(self, rng: np.random.Generator) -> Row:
        """Each cell at one of its ends."""
        picks = rng.integers(2, size=len(self.shape.cells))
        return tuple(
            values.extremes(cell)[int(side)]
            for cell, side in zip(self.shape.cells, picks, strict=True)
        )

    def _scaled(self, part: float) -> Row:
        """A row whose numbers are this part of the last digit that float32 keeps of the upper bound."""
        row = list(self._end(0))
        for k, cell in enumerate(self.shape.cells):
            high = values.extremes(cell)[1]
            if isinstance(high, float):
                tiny = part * abs(high) * 2.0**-23
                row[k] = tiny if values.holds(cell, tiny) else row[k]
        return tuple(row)

    def _fit(self, found: Candidate, rng: np.random.Generator) -> Candidate:
        """The candidate within the lengths of the space."""
        least, most = self._room
        own = [rows[: most + 1 - least] for rows in (found.first, found.second)]
        common = found.common[: max(most + 1 - max(map(len, own)), 0)]
        common += tuple(self._typical(rng) for _ in range(least - len(common)))
        return self._related(replace(found.sharing(common), first=own[0], second=own[1]))

    def _related(self, found: Candidate) -> Candidate:
        """The candidate with what columns demand that mean something, and whether it is outside.

        Rows that differ count once each, and keys occur once among the others; all rows that differ are
        one user's, and no other row is.
        """
        common, own = found.common, [found.first, found.second]
        if (column := self.shape.multiplicity) is not None:
            own = [tuple(_with(row, column, 1) for row in rows) for rows in own]
            common = tuple({repr(row[1 - column]): row for row in common}.values())
        if (who := self.user) is not None:
            one, other = values.extremes(self.shape.cells[who])
            own = [tuple(_with(row, who, one) for row in rows) for rows in own]
            common = tuple(_with(row, who, other) if row[who] == one else row for row in common)
        kept = replace(found.sharing(common), first=own[0], second=own[1])
        return replace(kept, outside=not all(map(self._holds, (*common, *own[0], *own[1]))))

    def _holds(self, row: Row) -> bool:
        return all(map(values.holds, self.shape.cells, row))

    # --- the search

    def random(self, rng: np.random.Generator) -> Candidate:
        """Rows at random, one of them changed at random."""
        kind = str(rng.choice(["rows at random", "many rows at random", "no other row"]))
        row, k = self._typical(rng), int(rng.integers(len(self.shape.cells)))
        options = list(self._changes("at random", row, k, rng))
        name, first, second, _ = options[int(rng.integers(len(options)))]
        common = self._background(kind, row, rng)
        at = int(rng.integers(len(common) + 1))
        return self._fit(Candidate(common, first, second, at, name), rng)

    def mutated(self, found: Candidate, rng: np.random.Generator) -> Candidate:
        """One or two things changed."""
        for _ in range(int(rng.integers(1, 3))):
            found = self._mutated_once(found, rng)
        return replace(self._fit(found, rng), name=renamed(found.name, MUTATED))

    def _mutated_once(self, found: Candidate, rng: np.random.Generator) -> Candidate:
        common, most = list(found.common), self._room[1]
        k = int(rng.integers(len(self.shape.cells)))
        cell = self.shape.cells[k]
        match int(rng.integers(8)):
            case 0 if common:
                return found.sharing(tuple(common[: len(common) // 2]))
            case 1 if common:
                return found.sharing(tuple((common * 2)[:most]))
            case 2 if common:
                index = int(rng.integers(len(common)))
                common[index] = _with(common[index], k, values.changed(cell, common[index][k], rng))
                return found.sharing(tuple(common))
            case 3 if most:
                row = (found.second or found.first)[0]
                return found.sharing((row,) * max(len(common), 1))
            case 4 if most:
                return found.sharing((self._end(int(rng.integers(2))),) * max(len(common), 1))
            case 5 if common:
                return replace(found, at=(0, len(common))[int(rng.integers(2))])
            case 6 if most and len(common) < most:
                return found.sharing((*common, self._typical(rng)))
        side = "second" if found.second and (not found.first or rng.random() < 0.5) else "first"
        rows = list(found.first if side == "first" else found.second)
        index = int(rng.integers(len(rows)))
        if self.relation is Relation.EDIT_CELL:
            differ = [c for c, (a, b) in enumerate(zip(*found.first, *found.second, strict=True))
                      if repr(a) != repr(b)]  # fmt: skip
            k = differ[0] if differ else k
            cell = self.shape.cells[k]
        rows[index] = _with(rows[index], k, values.changed(cell, rows[index][k], rng))
        if side == "first":
            return replace(found, first=tuple(rows))
        return replace(found, second=tuple(rows))

    # --- shrinking

    def simpler(self, found: Candidate) -> list[Candidate]:
        """Fewer rows, then rows that are alike, then simpler values."""
        options = [*self._fewer(found), *self._alike(found), *self._plainer(found)]
        name = renamed(found.name, SIMPLER)
        fit = [self._related(replace(one, name=name)) for one in options]
        return _once(
            [
                one
                for one in fit
                if one.key != found.key
                and len(one.common) >= self._room[0]
                and repr(one.first) != repr(one.second)
            ]
        )

    def _fewer(self, found: Candidate) -> Iterator[Candidate]:
        common, least = found.common, self._room[0]
        size = len(common) - least
        while size >= 1:
            for start in range(0, len(common), size)[:8]:
                yield found.sharing((*common[:start], *common[start + size :]))
            size //= 2
        if self.relation is Relation.ONE_USER and len(found.second) > 1:
            for k in range(len(found.second)):
                yield replace(found, second=(*found.second[:k], *found.second[k + 1 :]))

    def _alike(self, found: Candidate) -> Iterator[Candidate]:
        if len(set(map(repr, found.common))) > 1:
            for row in (self._end(0), found.common[0]):
                yield found.sharing((row,) * len(found.common))
        if found.at != len(found.common):
            yield replace(found, at=len(found.common))

    def _plainer(self, found: Candidate) -> Iterator[Candidate]:
        """A value that occurs anywhere, simpler everywhere it occurs in the same role."""
        own = (*found.first, *found.second)
        for k, cell in enumerate(self.shape.cells):
            if k == self.user:
                continue
            for rows in (own, found.common):
                for value in {repr(row[k]): row[k] for row in rows}.values():
                    if k == self.shape.multiplicity and rows is own:
                        continue
                    for plain in values.simpler(cell, value)[:6]:
                        yield _replaced(found, rows is own, k, value, plain)


def _replaced(found: Candidate, own: bool, k: int, value: Any, plain: Any) -> Candidate:
    """With a value of a column replaced, in the rows that differ or in those that do not."""

    def new(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple(_with(row, k, plain) if repr(row[k]) == repr(value) else row for row in rows)

    if own:
        return replace(found, first=new(found.first), second=new(found.second))
    return replace(found, common=new(found.common))


#: What surrounds the rows that differ.
_BACKGROUNDS = (
    "rows at random",
    "no other row",
    "all rows equal",
    "all others at the upper bound",
    "many rows at random",
    "all others at the lower bound",
    "half of the others at either bound",
)


def _in_turn(lists: list[list[Any]]) -> list[Any]:
    """The first of each list, then the second of each."""
    return [one for turn in itertools.zip_longest(*lists) for one in turn if one is not None]


def _with(row: Row, k: int, value: Any) -> Row:
    return (*row[:k], value, *row[k + 1 :])


def _once(found: list[Candidate]) -> list[Candidate]:
    """Each pair once."""
    return list({one.key: one for one in reversed(found)}.values())[::-1]
