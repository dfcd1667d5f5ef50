"""Neighbouring inputs: the two things a mechanism must not tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from dpassay.checks import shown
from dpassay.errors import InvalidInput
from dpassay.privacy.differences import difference
from dpassay.records import Record

#: Which way a divergence is taken: of the first input from the second, the other way, or the worse.
Direction: TypeAlias = Literal["both", "forward", "backward"]
#: Whether the two are swapped, for each way to look.
SWAPS = {"forward": (False,), "backward": (True,), "both": (False, True)}


#: The longest text of an input; of longer ones what differs is said.
_SHOWN = 40


class Relation(StrEnum):
    """What makes two inputs neighbours. A verdict speaks about this relation and no other."""

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
    if given in _SHORT:
        return _SHORT[given]
    try:
        return Relation(given)
    except ValueError:
        names = ", ".join(repr(name) for name in (*_SHORT, *map(str, Relation)))
        raise InvalidInput(f"relation must be one of {names}, got {shown(given)}") from None


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
        return replace(self, relation=as_relation(relation))

    @property
    def inputs(self) -> str:
        """The two inputs in words, without the name."""
        one, other = shown(self.first, _SHOWN), shown(self.second, _SHOWN)
        cut = len(one) == _SHOWN or len(other) == _SHOWN
        return (difference(self.first, self.second) if cut else "") or f"{one} and {other}"

    def __str__(self) -> str:
        return f"{self.name}: {self.inputs}" if self.name else self.inputs


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
