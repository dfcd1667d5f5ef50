"""Neighbouring inputs made of rows: the catalogue, mutations and simplifications.

The two inputs are `common` rows with `first` or `second` inserted: nothing and a row if one is added, a
row and another if one is replaced, nothing and several if they are one user's. Whatever is done to a
candidate, the two inputs stay neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from dpassay.blackbox.inputs import Category, Integer, Text
from dpassay.errors import InvalidInput
from dpassay.hunting import values
from dpassay.hunting.row_spaces import Candidate, Candidates, Origin, Row, Rows, RowSchema
from dpassay.privacy.relations import Relation

#: Rows of a small input, and pairs of hostile values and backgrounds at most.
_SMALL, _MANY = 5, 600
#: Rows that are alike at most: a threshold on a count shows between two of these numbers.
_ALIKE = 12
#: Rows that are drawn in search of one more key, for each that there must be.
_TRIES = 50
#: Powers of two beyond which int32, uint32 and int64 overflow.
_WIDTHS = (31, 32, 63)


class Background(StrEnum):
    """The common rows around the rows that differ."""

    RANDOM = "rows at random"
    NONE = "no other row"
    EQUAL = "all rows equal"
    UPPER = "all others at the upper bound"
    MANY = "many rows at random"
    LOWER = "all others at the lower bound"
    HALVES = "half of the others at either bound"


@dataclass(frozen=True)
class RowCandidate(Candidate):
    """Two inputs as the rows that they share and those that they do not."""

    first: Rows
    second: Rows
    common: Rows = ()
    at: int = 0  # where in the common rows the others are inserted

    def sides(self) -> tuple[Rows, Rows]:
        before, after = self.common[: self.at], self.common[self.at :]
        return (*before, *self.first, *after), (*before, *self.second, *after)

    def sharing(self, common: Rows) -> RowCandidate:
        """With other common rows; the rows that differ keep their place, as far as there is one."""
        end = self.at >= len(self.common)
        return replace(self, common=common, at=len(common) if end else min(self.at, len(common)))


class Records(Candidates):
    """Inputs of rows under a relation; `user` is the column that says whose a row is."""

    alike: ClassVar[float] = 0.8  # the part of a coupled difference that a simpler pair must have

    def __init__(
        self,
        schema: RowSchema,
        relation: Relation,
        rng: np.random.Generator,
        user: int | None = None,
    ) -> None:
        super().__init__(schema, relation, rng)
        self.user = user
        least, most = schema.length
        grows = relation in (Relation.ADD_REMOVE, Relation.ONE_USER)
        counted = schema.multiplicity is not None  # a row more may raise the count of a key
        if grows and least == most and not counted:
            raise InvalidInput(
                f"the relation {str(relation)!r} changes the number of rows, but all inputs have "
                f'{most}: use relation="replace", or let the length vary'
            )
        self.least: int = least if grows or counted else max(least - 1, 0)  # common rows
        self.most: int = max(most - 1, self.least)
        self.ends = [tuple(values.extremes(cell)[k] for cell in schema.cells) for k in (0, 1)]
        # the columns whose values are neither counts of a row nor names of users
        reserved = (schema.multiplicity, user)
        self.value_columns = [k for k in range(len(schema.cells)) if k not in reserved]

    # --- the catalogue

    def catalogue(self, *, outside: bool) -> list[RowCandidate]:
        """Special pairs first; then every hostile value before every background, in turns."""
        special = [self._fit(one) for one in self._special()]
        columns = [self._hostile(k, outside) for k in self.value_columns]
        known = [row for rows in self.schema.known for row in rows]
        examples = [
            change
            for index in self.rng.permutation(len(known))[:_SMALL]
            for change in self._changes("a row of the example", known[int(index)], 0)
        ]
        changes = _in_turn([*columns, examples])
        kinds, rest = list(Background), list[RowCandidate]()
        for turn, (k, change) in itertools.product(range(len(kinds)), enumerate(changes)):
            if len(rest) >= _MANY:
                break
            kind = kinds[(turn + k) % len(kinds)]
            common = self._background(kind, change.second[0])
            entry = f"{change.entry}; {kind}" if self.most else change.entry
            at = self._pick((0, len(common)))
            kept = replace(change, common=common, at=at, entry=entry, kind=change.entry)
            rest.append(self._fit(kept))
        listed = [one for one in _in_turn([special, rest]) if outside or not one.outside]
        return _once(
            sorted(listed, key=lambda one: not one.rare)
        )  # of equal pairs the first is kept

    def _hostile(self, k: int, outside: bool) -> list[RowCandidate]:
        """Every hostile value of a column, in each way in which a row may change."""
        made = []
        column = f"{self.schema.names[k]}: " if len(self.schema.cells) > 1 else ""
        for one in values.hostile(self.schema.cells[k]):
            if outside or not one.outside:
                ends = self.rng.integers(2, size=len(self.schema.cells)).tolist()
                row = tuple(self.ends[end][c] for c, end in enumerate(ends))
                row = _with(row, k, one.value)
                made.append(list(self._changes(f"{column}{one.name}", row, k)))
        return _in_turn(made)

    def _changes(self, name: str, row: Row, k: int, common: Rows = ()) -> Iterator[RowCandidate]:
        """A row under the relation, after the common rows; `k` is the column that is special."""

        def candidate(label: str, first: Rows, second: Rows) -> RowCandidate:
            return RowCandidate(first, second, common, len(common), entry=label)

        match self.relation:
            case Relation.ADD_REMOVE:
                yield candidate(name, (), (row,))
            case Relation.ONE_USER:
                many = [self._typical() for _ in range(2)]
                yield candidate(name, (), (row,))
                yield candidate(f"{name}, several times", (), (row,) * 3)
                yield candidate(f"{name}, among others", (), (row, *many))
            case _:
                far = _with(row, k, values.opposite(self.schema.cells[k], row[k]))
                yield candidate(name, (far,), (row,))
                near = values.nearest(self.schema.cells[k], row[k])
                if near is not None:
                    yield candidate(f"{name}, by a little", (_with(row, k, near),), (row,))
                if self.relation is Relation.REPLACE_ONE and len(row) > 1:
                    other = self._typical()
                    yield candidate(f"{name}, in place of another row", (other,), (row,))

    def _special(self) -> Iterator[RowCandidate]:
        """Pairs that no single value makes special."""
        least, most, (low, high) = self.least, self.most, self.ends
        if most:
            yield from self._changes("the largest sum there can be", high, 0, (high,) * most)
            yield from self._changes("the least sum there can be", low, 0, (low,) * most)
            yield from self._overflows()
        if self.relation is Relation.ONE_USER:
            for row in self.ends:
                yield RowCandidate((), (row,) * (most + 1 - least), entry="a user of all rows")
        for one in self._changes("the first row against no other", high, 0):
            yield replace(one, rare=True)
        if self.relation is Relation.REPLACE_ONE and len(low) > 1:
            entry = "every attribute changed"
            yield RowCandidate((low,), (high,), entry=entry)
            yield RowCandidate((low,), (high,), (low,) * most, most, entry=entry)
        for count in range(1, min(most, _ALIKE) + 1):
            yield from self._changes("rows that are alike", high, 0, (high,) * count)
        for count in range(max(least, 1), min(most, _SMALL - 1) + 1):
            for one in self._changes("few rows", self._typical(), 0):
                yield one.sharing(tuple(self._typical() for _ in range(count)))
        if most:
            for k in self.value_columns:
                yield from self._classes(k)
                yield from self._twins(k)
        for name, part in (("a large number before small ones", 0.3), ("numbers that round", 0.7)):
            for one in self._changes(name, high, 0):
                yield replace(one, common=(self._scaled(part),) * most)

    def _overflows(self) -> Iterator[RowCandidate]:
        """Sums of a column on either side of the least and the largest integer of 32 and 64 bits."""
        for k, power, end in itertools.product(self.value_columns, _WIDTHS, (1, 0)):
            row = self.ends[end]
            if isinstance(self.schema.cells[k], Integer):
                size = row[k] if end else -row[k]
                count = (2**power - end) // size if size > 0 else 0  # −2^31 fits into 32 bits
                if 0 < count <= self.most:
                    name = f"a sum around {'' if end else '−'}2^{power}"
                    yield from self._changes(name, row, k, (row,) * count)

    def _classes(self, k: int) -> Iterator[RowCandidate]:
        """The only member of a class, with its other cells as far out as can be."""
        cell = self.schema.cells[k]
        if not isinstance(cell, (Category, Text)):
            return
        inside = [one.value for one in values.hostile(cell) if not one.outside]
        for value in inside[:6]:
            others = [one for one in inside if repr(one) != repr(value)]
            crowd = _with(self._typical(), k, self._pick(others))
            common = (crowd,) * min(self.most, _SMALL)
            for end in self.ends:
                row = _with(end, k, value)
                yield from self._changes("the only member of a class", row, k, common)

    def _twins(self, k: int) -> Iterator[RowCandidate]:
        """Two words that a normalisation makes one."""
        for name, one, other in values.twins(self.schema.cells[k])[: 2 * len(values.TWINS)]:
            row, twin = (_with(self._typical(), k, word) for word in (one, other))
            common = (twin,) * min(self.most, _SMALL)
            yield from self._changes(name, row, k, common)
            if self.relation is Relation.ONE_USER:
                around = self._background(Background.RANDOM, row)
                yield RowCandidate((), (row, twin), around, entry=name)

    def _background(self, kind: Background, row: Row) -> Rows:
        """The common rows of a kind."""
        least, most, (low, high) = self.least, self.most, self.ends
        few = max(least, min(most, _SMALL))
        match kind:
            case Background.NONE:
                return tuple(self._typical() for _ in range(least))
            case Background.EQUAL:
                return (row,) * few
            case Background.LOWER:
                return (low,) * few
            case Background.UPPER:
                return (high,) * (most if self.rng.random() < 0.5 else min(1, most))
            case Background.HALVES:
                return (low,) * (most // 2) + (high,) * (most // 2)
            case Background.MANY:
                return tuple(self._typical() for _ in range(most))
        if self.schema.known:
            return self._pick(self.schema.known)[:most]
        return tuple(self._typical() for _ in range(int(self.rng.integers(least, few + 1))))

    # --- rows

    def _typical(self) -> Row:
        return tuple(values.typical(cell, self.rng) for cell in self.schema.cells)

    def _scaled(self, part: float) -> Row:
        """A row whose numbers are this part of the last digit that float32 keeps of the upper bound."""
        row = list(self.ends[0])
        for k, high in enumerate(self.ends[1]):
            tiny = part * abs(high) * 2.0**-23 if isinstance(high, float) else None
            if tiny is not None and values.holds(self.schema.cells[k], tiny):
                row[k] = tiny
        return tuple(row)

    def _fit(self, found: RowCandidate) -> RowCandidate:
        """The candidate within the lengths of the space."""
        least, most = self.least, self.most
        own = [rows[: most + 1 - least] for rows in (found.first, found.second)]
        common = found.common[: max(most + 1 - max(map(len, own)), least)]
        common += tuple(self._typical() for _ in range(least - len(common)))
        fitted = self._related(replace(found.sharing(common), first=own[0], second=own[1]))
        for _ in range(_TRIES * least):  # keys that came twice count once
            if len(fitted.common) >= least:
                break
            fitted = self._related(fitted.sharing((*fitted.common, self._typical())))
        return fitted

    def _related(self, found: RowCandidate) -> RowCandidate:
        """The candidate with what counts and users demand, and whether it lies outside the space.

        Rows that differ count once each, and keys occur once among the others; all rows that differ are
        one user's, and no other row is.
        """
        common, own = found.common, [found.first, found.second]
        if (column := self.schema.multiplicity) is not None:
            keys = {repr(row[1 - column]): row for row in common}
            common = tuple(keys.values())
            if len(keys) == self.schema.length[1]:
                own = _of_keys(keys, own, 1 - column)
            own = [tuple(_with(row, column, 1) for row in rows) for rows in own]
        if (who := self.user) is not None:
            one, other = values.extremes(self.schema.cells[who])
            own = [tuple(_with(row, who, one) for row in rows) for rows in own]
            common = tuple(_with(row, who, other) if row[who] == one else row for row in common)
        rows = (*common, *own[0], *own[1])
        inside = all(all(map(values.holds, self.schema.cells, row)) for row in rows)
        inside = inside and len(common) >= self.least
        kept = found.sharing(common)
        return replace(kept, first=own[0], second=own[1], outside=not inside)

    # --- the search

    def random(self) -> RowCandidate:
        """Rows at random, one of them changed at random."""
        kind = self._pick((Background.RANDOM, Background.MANY, Background.NONE))
        row, k = self._typical(), int(self.rng.integers(len(self.schema.cells)))
        found = self._pick(list(self._changes("at random", row, k)))
        common = self._background(kind, row)
        return self._fit(replace(found, common=common, at=int(self.rng.integers(len(common) + 1))))

    def mutated(self, found: RowCandidate) -> RowCandidate:
        """One or two things changed."""
        for _ in range(int(self.rng.integers(1, 3))):
            found = self._mutated_once(found)
        return replace(self._fit(found), origin=Origin.MUTATED)

    def _mutated_once(self, found: RowCandidate) -> RowCandidate:
        """With fewer, more or other common rows, or a value changed in a row that differs."""
        k = int(self.rng.integers(len(self.schema.cells)))
        common, most = found.common, self.most
        match int(self.rng.integers(8)):
            case 0 if common:
                return found.sharing(common[: len(common) // 2])
            case 1 if common:
                return found.sharing((common * 2)[:most])
            case 2 if common:
                return found.sharing(self._one_changed(common, k))
            case 3 if most:
                row = (found.second or found.first)[0]
                return found.sharing((row,) * max(len(common), 1))
            case 4 if most:
                return found.sharing((self._pick(self.ends),) * max(len(common), 1))
            case 5 if common:
                return replace(found, at=self._pick((0, len(common))))
            case 6 if most and len(common) < most:
                return found.sharing((*common, self._typical()))
            case 7 if self.relation is Relation.ONE_USER:
                return replace(found, second=found.second * 2)
        if self.relation is Relation.EDIT_CELL:
            (first,), (second,) = found.first, found.second
            k = next((c for c, x in enumerate(first) if repr(x) != repr(second[c])), k)
        if found.second and (not found.first or self.rng.random() < 0.5):
            return replace(found, second=self._one_changed(found.second, k))
        return replace(found, first=self._one_changed(found.first, k))

    def _one_changed(self, rows: Rows, k: int) -> Rows:
        """The rows with another value in a column of one of them."""
        at = int(self.rng.integers(len(rows)))
        value = values.changed(self.schema.cells[k], rows[at][k], self.rng)
        return (*rows[:at], _with(rows[at], k, value), *rows[at + 1 :])

    # --- shrinking

    def simpler(self, found: RowCandidate) -> list[RowCandidate]:
        """Fewer rows, then rows that are alike, then simpler values."""
        options = [*self._fewer(found), *self._alike(found), *self._plainer(found)]
        related = [self._related(replace(one, origin=Origin.SIMPLIFIED)) for one in options]
        enough = [one for one in related if len(one.common) >= self.least]
        differ = [one for one in enough if repr(one.first) != repr(one.second)]
        return _once([one for one in differ if one.key != found.key])

    def _fewer(self, found: RowCandidate) -> Iterator[RowCandidate]:
        for rows in _shorter(found.common, self.least):
            yield found.sharing(rows)
        if self.relation is Relation.ONE_USER:
            for rows in _shorter(found.second, 1):
                yield replace(found, second=rows)

    def _alike(self, found: RowCandidate) -> Iterator[RowCandidate]:
        if len(set(map(repr, found.common))) > 1:
            for row in (self.ends[0], found.common[0]):
                yield found.sharing((row,) * len(found.common))
        if found.at != len(found.common):
            yield replace(found, at=len(found.common))

    def _plainer(self, found: RowCandidate) -> Iterator[RowCandidate]:
        """A value that occurs anywhere, simpler everywhere it occurs in the same role."""
        for k in range(len(self.schema.cells)):
            if k == self.user:
                continue
            if k != self.schema.multiplicity:
                for new in self._simpler_column(k, (*found.first, *found.second)):
                    size = len(found.first)
                    yield replace(found, first=new[:size], second=new[size:])
            for new in self._simpler_column(k, found.common):
                yield replace(found, common=new)

    def _simpler_column(self, k: int, rows: Rows) -> Iterator[Rows]:
        for column in values.simpler_column(self.schema.cells[k], [row[k] for row in rows]):
            yield tuple(_with(row, k, value) for row, value in zip(rows, column, strict=True))


def _of_keys(keys: dict[str, Row], own: list[Rows], column: int) -> list[Rows]:
    """Rows that differ, where there can be no other keys than these; those of the sides differ."""
    every = list(keys.values())
    first = [row if repr(row[column]) in keys else every[0] for row in own[0]]
    taken = {repr(row[column]) for row in first}
    free = {key: row for key, row in keys.items() if key not in taken} or keys
    other = next(iter(free.values()))
    return [tuple(first), tuple(row if repr(row[column]) in free else other for row in own[1])]


def _shorter(rows: Rows, least: int) -> Iterator[Rows]:
    """Without all but the least number of rows, then without half as many, and so on."""
    size = len(rows) - least
    while size >= 1:
        for start in range(0, len(rows), size)[:8]:
            yield (*rows[:start], *rows[start + size :])
        size //= 2


def _in_turn(lists: list[list[Any]]) -> list[Any]:
    """The first of each list, then the second of each."""
    return [one for turn in itertools.zip_longest(*lists) for one in turn if one is not None]


def _with(row: Row, k: int, value: Any) -> Row:
    return (*row[:k], value, *row[k + 1 :])


def _once(found: list[RowCandidate]) -> list[RowCandidate]:
    """Each pair once."""
    return list({one.key: one for one in reversed(found)}.values())[::-1]
