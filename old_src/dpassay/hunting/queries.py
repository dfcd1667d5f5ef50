"""Answers to queries on neighbouring data: vectors that differ by at most a sensitivity.

Patterns of the differences follow Ding et al., Detecting violations of differential privacy
(arXiv:1805.10277): one coordinate, all of them, half against half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dpassay.blackbox.inputs import Integer, Real
from dpassay.errors import InvalidInput
from dpassay.hunting import values
from dpassay.hunting.row_spaces import Candidate, Candidates, Origin, Rows, RowSchema
from dpassay.privacy.relations import Relation

Answers: TypeAlias = tuple[Any, ...]
NORMS = ("each", "l1", "l2")


@dataclass(frozen=True)
class QueryCandidate(Candidate):
    """Answers, and by how much those on the neighbouring data differ."""

    base: Answers
    shift: Answers

    def sides(self) -> tuple[Rows, Rows]:
        return tuple((x,) for x in self.base), tuple((x,) for x in self.shifted)

    @property
    def shifted(self) -> Answers:
        """The answers on the neighbouring data."""
        return tuple(map(_moved, self.base, self.shift))


def _moved(x: Any, d: Any) -> Any:
    """x + d, rounded towards x: the sum in doubles must not be farther from x than d."""
    y = x + d
    if isinstance(y, float) and math.isfinite(y) and abs(Fraction(y) - Fraction(x)) > abs(d):
        y = math.nextafter(y, x)
    return y


class Queries(Candidates):
    """Vectors of numbers under a bound on how far neighbours are apart."""

    alike: ClassVar[float] = 0.97  # of a coupled difference: every answer that differs adds to it

    def __init__(
        self, schema: RowSchema, rng: np.random.Generator, sensitivity: float, norm: str = "each"
    ) -> None:
        cell = schema.cells[0]
        if len(schema.cells) != 1 or not isinstance(cell, (Real, Integer)):
            raise InvalidInput(
                'relation="query" is for numbers: Real, Integer, Reals or Integers, not tables or text'
            )
        if isinstance(cell, Integer) and sensitivity != int(sensitivity):
            raise InvalidInput(
                f"answers that are integers differ by integers: sensitivity is {sensitivity:g}"
            )
        super().__init__(schema, Relation.SENSITIVITY, rng)
        self.norm, self.cell = norm, cell
        self.sensitivity: Any = (int if isinstance(cell, Integer) else float)(sensitivity)
        zero = 0 * self.sensitivity
        self.start = zero if values.holds(cell, zero) else values.extremes(cell)[0]
        least, most = schema.length  # one answer, a few, and as many as there may be
        self.lengths = sorted({max(least, 1), min(max(least, 5), most), most})

    def _fit(self, found: QueryCandidate) -> QueryCandidate | None:
        """The candidate with neighbours inside the space unless its base is not; None if none differ."""
        shift = []
        outside = not all(values.holds(self.cell, x) for x in found.base)
        for x, d in zip(found.base, found.shift, strict=True):
            signs = (sign for sign in (1, -1) if outside or values.holds(self.cell, x + sign * d))
            shift.append(next(signs, 0) * d)
        kept = replace(found, shift=tuple(shift), outside=outside)
        return None if repr(kept.shifted) == repr(kept.base) else kept

    def _shifts(self, size: int) -> Iterator[tuple[str, Answers]]:
        """Patterns of the largest differences there may be."""
        s = self.sensitivity
        zero = 0 * s
        yield "the first answer", (s, *[zero] * (size - 1))
        if size == 1:
            yield "the answer, downwards", (-s,)
            return
        yield "the last answer", (*[zero] * (size - 1), s)
        part = type(s)({"each": s, "l1": s / size, "l2": s / math.sqrt(size)}[self.norm])
        half = size // 2
        yield "all answers", (part,) * size
        yield "all answers, downwards", (-part,) * size
        yield "one against the rest", (part, *[-part] * (size - 1))
        yield "one against the rest, mirrored", (*[part] * (size - 1), -part)
        yield "half against half", (*[part] * half, *[-part] * (size - half))
        if size > 2:
            yield "every second against the others", ((part, -part) * size)[:size]
            yield "the middle answer", (*[zero] * half, s, *[zero] * (size - half - 1))
        if size > 5:
            yield "blocks against each other", ((*[part] * 2, *[-part] * 2) * size)[:size]

    def catalogue(self, *, outside: bool) -> list[QueryCandidate]:
        """Every pattern of differences on every kind of answers, in turns."""
        found = []
        for size in self.lengths:
            shifts = list(self._shifts(size))
            for turn, (name, shift) in enumerate(shifts if size > 1 else []):
                kind = "answers that change places"  # the two inputs mirror each other
                base = tuple(self.start - min(d, 0 * d) for d in shift)
                one = QueryCandidate(base, shift, entry=f"{kind}; {name} changed", kind=kind)
                found.append((turn // 2, self._fit(one)))
            for k, (kind, base) in enumerate(self._bases(size, outside)):
                for turn in range(len(shifts)):
                    name, shift = shifts[(turn + k) % len(shifts)]
                    one = QueryCandidate(base, shift, entry=f"{kind}; {name} changed", kind=kind)
                    found.append((turn, self._fit(one)))
        found.sort(key=lambda one: one[0])
        return list({one.key: one for _, one in found if one is not None}.values())

    def _bases(self, size: int, outside: bool) -> Iterator[tuple[str, Answers]]:
        for one in values.hostile(self.cell):
            if not one.outside or outside:
                yield f"answers: {one.name}", (one.value,) * size
        if size > 1:
            high, start, step = values.extremes(self.cell)[1], self.start, self.sensitivity
            ramp = tuple(min(start + k * step, high) for k in range(size))
            yield "answers a step apart", ramp
            yield "answers a step apart, falling", ramp[::-1]
            yield "one answer far above the rest", (high, *[start] * (size - 1))
            half = size // 2
            yield "half of the answers a step above", (start,) * half + ramp[1:2] * (size - half)
        for _ in range(3):
            yield "answers at random", self._typical(size)

    def _typical(self, size: int) -> Answers:
        return tuple(values.typical(self.cell, self.rng) for _ in range(size))

    def random(self) -> QueryCandidate:
        """Answers at random, differing in a pattern."""
        for _ in range(100):
            size = int(self.rng.choice(self.lengths))
            _, shift = self._pick(list(self._shifts(size)))
            found = self._fit(QueryCandidate(self._typical(size), shift, entry="at random"))
            if found is not None:
                return found
        raise InvalidInput(f"no two inputs of the space differ by {self.sensitivity:g}")

    def mutated(self, found: QueryCandidate) -> QueryCandidate:
        """An answer changed, or all of them alike, or the pattern of the differences."""
        base, shift = list(found.base), list(found.shift)
        index = int(self.rng.integers(len(base)))
        match int(self.rng.integers(6)):
            case 0:
                new = replace(found, shift=self._pick(list(self._shifts(len(base))))[1])
            case 1:
                new = replace(found, base=(base[index],) * len(base))
            case 2:
                shift[index] = -shift[index]
                new = replace(found, shift=tuple(shift))
            case 3:
                by = values.changed(self.cell, base[index], self.rng) - base[index]
                moved = tuple(x + by for x in base)
                inside = all(values.holds(self.cell, x) for x in moved)
                new = replace(found, base=moved) if inside else found
            case _:
                base[index] = values.changed(self.cell, base[index], self.rng)
                new = replace(found, base=tuple(base))
        return self._fit(replace(new, origin=Origin.MUTATED)) or found

    def simpler(self, found: QueryCandidate) -> list[QueryCandidate]:
        """Simpler answers, fewer answers, fewer that differ."""
        base, shift, size = found.base, found.shift, len(found.base)
        simpler = values.simpler_column(self.cell, base)
        options = [replace(found, base=tuple(column)) for column in simpler]
        if size > max(self.schema.length[0], 1):
            options += [
                replace(found, base=base[:k] + base[k + 1 :], shift=shift[:k] + shift[k + 1 :])
                for k in range(size)
            ]
        # one answer that differs, or one direction: a pattern with gaps is not simpler, and each gap
        # takes away a little of what many answers show together
        differ = [k for k in range(size) if shift[k]]
        rising = {k for k in differ if shift[k] > 0}
        for kept in [*({k} for k in differ), rising, {*differ} - rising]:
            if 0 < len(kept) < len(differ):
                fewer = tuple(d if k in kept else 0 * d for k, d in enumerate(shift))
                options.append(replace(found, shift=fewer))
        fit = [self._fit(replace(one, origin=Origin.SIMPLIFIED)) for one in options]
        return [one for one in fit if one is not None and one.key != found.key]
