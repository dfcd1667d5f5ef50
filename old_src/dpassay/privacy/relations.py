"""Neighbouring inputs, which a mechanism must not distinguish; and where two of them differ, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import numpy as np

from dpassay.errors import InvalidInput
from dpassay.records import Record
from dpassay.validation import one_of, shown

#: Which way a divergence is taken: of the first input from the second, the other way, or the worse.
Direction: TypeAlias = Literal["both", "forward", "backward"]
#: Whether the two inputs are swapped, for each direction.
SWAPS = {"forward": (False,), "backward": (True,), "both": (False, True)}


#: The longest text of an input; of longer ones only the difference is printed.
_SHOWN = 40


class Relation(StrEnum):
    """What makes two inputs neighbours. A verdict is about this relation alone."""

    UNSPECIFIED = "unspecified"
    ADD_REMOVE = "add or remove one record"
    REPLACE_ONE = "replace one record"
    EDIT_CELL = "change one cell of one record"
    ONE_USER = "add or remove all records of one user"
    SENSITIVITY_ONE = "each query changes by at most 1"
    SENSITIVITY = "the answers differ by at most the sensitivity"
    DISTRIBUTIONAL = "one value within a random population"


_SHORT = {
    "add_remove": Relation.ADD_REMOVE,
    "replace": Relation.REPLACE_ONE,
    "edit": Relation.EDIT_CELL,
    "user": Relation.ONE_USER,
    "query": Relation.SENSITIVITY,
    "sensitivity_one": Relation.SENSITIVITY_ONE,
}


def as_relation(given: Relation | str) -> Relation:
    """A relation by its name or its short name."""
    if isinstance(given, str):
        if given in tuple(Relation):
            return Relation(given)
        given = given.replace("-", "_")
    return _SHORT[one_of("relation", given, tuple(_SHORT))]


@dataclass(frozen=True, eq=False)
class Pair(Record):
    """Two neighbouring inputs; unpacks like a tuple of two.

    >>> first, second = Pair(0.0, 1.0)
    >>> second
    1.0
    """

    first: Any = field(metadata={"verbatim": True})
    second: Any = field(metadata={"verbatim": True})
    relation: Relation = Relation.UNSPECIFIED
    name: str = ""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.first, self.second))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, side: int) -> Any:
        return (self.first, self.second)[side]

    def related(self, relation: Relation | str | None) -> Pair:
        """The pair with this relation, unless it names one already."""
        if relation is None or self.relation is not Relation.UNSPECIFIED:
            return self
        found, (a, b) = as_relation(relation), (_records(side) for side in self)
        if a is not None and b is not None:
            have = f"the inputs have {a:,} and {b:,} records"
            if found in (Relation.REPLACE_ONE, Relation.EDIT_CELL) and a != b:
                raise InvalidInput(f"{have}: the relation is add_remove, not “{found}”")
            if found is Relation.ADD_REMOVE and abs(a - b) != 1 and not _stands_for_fewer(*self):
                other = "'replace' (or 'query' for answers to queries)" if a == b else "'user'"
                remedy = f"give one more or less, or relation={other}"
                raise InvalidInput(f"{have}, which is not “{found}”: {remedy}")
        return replace(self, relation=found)

    @property
    def inputs(self) -> str:
        """The two inputs in words, without the name."""
        one, other = shown(self.first, _SHOWN), shown(self.second, _SHOWN)
        cut = len(one) == _SHOWN or len(other) == _SHOWN
        return (difference(self.first, self.second) if cut else "") or f"{one} and {other}"

    @property
    def doubt(self) -> str:
        """That entries differ in more than one record, if entries are records; else empty."""
        a, b = map(_records, self)
        if not a or not b or self.relation not in (Relation.REPLACE_ONE, Relation.ADD_REMOVE):
            return ""
        added = self.relation is Relation.ADD_REMOVE
        if added and a == b:  # zeros in place of a record, or counts
            return ""
        try:
            apart = _apart(self.first, self.second)
        except Exception:  # as in `difference`
            return ""
        if apart <= 1:
            return ""
        return (
            f"the inputs differ in {apart:,} of {max(a, b):,} entries: if an entry is a record, they are "
            f"no neighbours under {'add_remove' if added else 'replace'}"
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.inputs}" if self.name else self.inputs


def _records(data: Any) -> int | None:
    """The number of records of a list, an array or a table; None for other inputs."""
    table = isinstance(data, (list, np.ndarray)) or hasattr(data, "to_numpy")
    return len(data) if table and hasattr(data, "__len__") and getattr(data, "ndim", True) else None


def _apart(first: Any, second: Any) -> int:
    """In how many entries two data sets differ, in any order; 0 for counts of which one record moved."""
    a, b = (_listed(side) for side in (first, second))
    if len(a) == len(b):
        where = _unequal(a, b)
        a, b = ([side[k] for k in where] for side in (a, b))
        numbers = all(isinstance(x, (int, np.integer)) for x in (*a, *b))
        if numbers and sorted(int(y) - int(x) for x, y in zip(a, b, strict=True)) == [-1, 1]:
            return 0
    one, other = (
        Counter(repr(x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x) for x in side)
        for side in (a, b)
    )
    return max((one - other).total(), (other - one).total())


def _stands_for_fewer(first: Any, second: Any) -> bool:
    """Whether one of two equally long inputs may be of one record less: zeros in its place, or counts."""
    if len(first) != len(second):
        return False
    try:
        a, b = (np.asarray(side, dtype=float).reshape(len(side), -1) for side in (first, second))
    except (TypeError, ValueError):
        return False
    differ = ((a != b) & ~(np.isnan(a) & np.isnan(b))).any(axis=1)
    counts = all(isinstance(one, np.ndarray) and one.dtype.kind in "iu" for one in (first, second))
    zeros = not (a[differ].any() and b[differ].any())
    return differ.sum() == 1 and (zeros or (counts and np.abs(a - b).sum() == 1))


def as_pair(value: Any) -> Pair:
    """A tuple of two inputs, or a `Pair`, as a `Pair`."""
    if isinstance(value, Pair):
        return value
    if isinstance(value, tuple) and len(value) == 2:
        return Pair(*value)
    raise InvalidInput(
        f"a pair must be a tuple of two neighbouring inputs such as (0.0, 1.0), got "
        f"{shown(value)}; several pairs are a list of such tuples"
    )


# --- where two inputs differ, in a few words


#: The longest text of an entry.
_ENTRY = 30


def difference(first: Any, second: Any) -> str:
    """ "two lists of 200 that differ at [137]: 0.0 against 1.0"; empty if unknown."""
    try:
        if not _alike(first, second):
            return ""
        names = {type(x).__name__ for x in (first, second)}
        kind = {"ndarray": "array"}.get(name := names.pop(), name) if len(names) == 1 else "input"
        a, b = _listed(first), _listed(second)
        sizes = " and ".join(f"{size:,}" for size in dict.fromkeys((len(a), len(b))))
        return "" if (found := _words(a, b)) is None else f"two {kind}s of {sizes}{found}"
    except Exception:  # inputs are objects of other people; a message must not fail for them
        return ""


def _words(a: Any, b: Any) -> str | None:
    """What one input has alone, or where they differ; None if they do not."""
    mapped = isinstance(a, Mapping)
    for one, other, which in ((a, b, "first"), (b, a, "second")):
        if mapped and (alone := [key for key in one if key not in other]):
            return f", of which only the {which} has the key {shown(alone[0], _ENTRY)}"
        if not mapped and len(one) == len(other) + 1:
            at = next(iter(_unequal(one[:-1], other)), len(other))
            same = not _unequal(one[at + 1 :], other[at:])
            return f", of which the {which} has one more: {_entry(one[at])} at [{at}]" * same
    if len(a) != len(b):
        return ""
    where = _unequal(a, b)
    if not where:
        return None
    x, y, path, key = a, b, "", where[0]
    while True:  # down to the entry in the row
        path, x, y = f"{path}[{shown(key, _ENTRY)}]", x[key], y[key]
        if not _alike(x, y) or len(x) != len(y) or (isinstance(x, Mapping) and {*x} != {*y}):
            break
        x, y = _listed(x), _listed(y)
        key = _unequal(x, y)[0]
    more = f" and {len(where) - 1} more" if len(where) > 1 else ""
    return f" that differ at {path}{more}: {_entry(x)} against {_entry(y)}"


def _unequal(a: Any, b: Any) -> list[Any]:
    """The keys, or the indices, at which two equally long collections differ."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and len(a):
        with np.errstate(invalid="ignore"):
            apart = a != b
            if a.dtype.kind == b.dtype.kind == "f":
                apart &= ~(np.isnan(a) & np.isnan(b))
        return np.flatnonzero(apart.reshape(len(a), -1).any(axis=1)).tolist()

    def same(x: Any, y: Any) -> bool:
        return bool(np.all(x is y or x == y)) and np.shape(x) == np.shape(y)

    return [k for k in (a if isinstance(a, Mapping) else range(len(a))) if not same(a[k], b[k])]


def _alike(x: Any, y: Any) -> bool:
    """Whether both have entries, either by key or by index: mappings, lists, arrays, tables."""
    listed = (
        value.ndim > 0
        if isinstance(value, np.ndarray)
        else isinstance(value, (list, tuple, Mapping)) or hasattr(value, "to_numpy")
        for value in (x, y)
    )
    return all(listed) and isinstance(x, Mapping) == isinstance(y, Mapping)


def _listed(value: Any) -> Any:
    """A table of another library as an array of its rows."""
    return np.asarray(value.to_numpy()) if hasattr(value, "to_numpy") else value


def _entry(value: Any) -> str:
    return shown(value.item() if isinstance(value, np.generic) else value, _ENTRY)
