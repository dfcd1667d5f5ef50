"""The named features that training draws chose: computed for each output, with their names for people.

They are data: a score of named features goes to JSON and is replayed by somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.outputs.array_features import block_rows, blocks
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.features import FAMILIES, STATISTICS
from dpassay.outputs.leaves import LeafTable
from dpassay.outputs.targets import Target
from dpassay.outputs.templates import written
from dpassay.records import Record

#: Families that are not made of triples of leaves.
_OTHERS = ("blocks", "block rows", "target")
#: How the names of counted values begin.
_TIMES = "the number of times that "


@dataclass(frozen=True, eq=False)
class Feature(Record):
    """One feature: its family, its key there, and how it reads."""

    family: str
    key: int
    name: str
    width: int = 0  # of a row, where a vector is read as rows
    target: Target | None = (
        None  # the record that rows are compared with; `key` counts its features
    )

    def event(self, at: float, above: bool) -> str:
        """{feature ≥ at}, or {feature < at}, in words."""
        if self.family != "values":
            return f"{self.name} is {'≥' if above else '<'} {written(at)}"
        how = "occurs" if above else "does not occur"
        if at != 1:
            how = f"occurs {'at least' if above else 'fewer than'} {written(at)} times"
        return f"{self.name.removeprefix(_TIMES)} {how}"


@dataclass(frozen=True, eq=False)
class NamedFeatures(Record):
    """Some features, computed for each output."""

    features: tuple[Feature, ...]
    centre: FloatArray
    scale: FloatArray

    def _validate(self) -> None:
        known = all(one.family in (*FAMILIES, *_OTHERS) for one in self.features)
        checks.require(known, f"a family of features must be one of {', '.join(FAMILIES)}")
        for one in self.features:
            there = one.target is not None
            checks.require(
                there == (one.family == "target"), "features of target, and no others, have one"
            )
            if one.target is not None:
                inside = 0 <= one.key < len(one.target.names)
                checks.require(inside, f"key must lie in 0 … {len(one.target.names) - 1}")
        same = self.centre.shape == self.scale.shape == (self.size,)
        checks.require(same, "centre and scale must have an entry for each feature")

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.features)

    @classmethod
    def of(cls, features: tuple[Feature, ...]) -> NamedFeatures:
        """As they are."""
        return cls(features, np.zeros(len(features)), np.ones(len(features)))

    def standardised(self, rows: FloatArray) -> NamedFeatures:
        """With the centre and the spread of some rows taken out."""
        spread = rows.std(axis=0)
        return NamedFeatures(self.features, rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def rows(self, outputs: Outputs) -> FloatArray:
        """One row of features an output."""
        return np.asarray((self.values(outputs) - self.centre) / self.scale)

    def values(self, outputs: Outputs) -> FloatArray:
        """The features themselves, a row an output; each family is computed once."""
        found = np.zeros((len(outputs), len(self.features)))
        if not len(outputs):
            return found
        families = {(one.family, one.width) for one in self.features}
        names = {name for name, _ in families}
        table = LeafTable.of(outputs) if names - {"blocks", "block rows"} else None
        for name, width in sorted(families):
            own = [
                k for k, one in enumerate(self.features) if (one.family, one.width) == (name, width)
            ]
            if name == "blocks":
                dense = blocks(outputs)
                for k in own:
                    if self.features[k].name in dense:
                        found[:, k] = dense[self.features[k].name]
                continue
            if name == "target":
                assert table is not None
                compared: dict[int, FloatArray] = {}  # by record
                for k in own:
                    target = self.features[k].target
                    assert target is not None
                    if id(target) not in compared:
                        compared[id(target)] = target.features(table)
                    found[:, k] = compared[id(target)][:, self.features[k].key]
                continue
            wanted = np.array([self.features[k].key for k in own], dtype=np.uint64)
            order = np.argsort(wanted)
            if name == "block rows":
                owner, key, value, _, _ = block_rows(outputs, width, wanted)
            else:
                assert table is not None
                owner, key, value, _, _ = FAMILIES[name](table, wanted)
            at = np.minimum(np.searchsorted(wanted[order], key), len(own) - 1)
            hit = wanted[order][at] == key
            found[owner[hit], np.array(own)[order][at[hit]]] = value[hit]
        return found


def words_of(table: LeafTable, family: str, first: int, second: int) -> str:
    """What a feature is called, from the leaves that it was found with."""

    column = table.column_name

    def holds(leaf: int) -> str:
        name = column(leaf)
        if name.endswith("{}"):
            return f"the key {table.text(leaf)!r}"
        return f"{name} = {table.text(leaf)}"

    match family:
        case "values":
            return f"{_TIMES}{holds(first)}"
        case "anywhere":
            return f"the number of occurrences of {table.text(first)}"
        case "rows" | "distinct":
            row = np.flatnonzero(table.rows == table.rows[first]).tolist()
            if family == "rows":
                return f"the number of rows ({', '.join(map(holds, row))})"
            return f"the number of different rows ({', '.join(map(column, row))})"
        case "pairs":
            return f"the number of rows with {holds(first)} and {holds(second)}"
        case "by_key":
            return f"the sum of {column(second)} where {holds(first)}"
        case "neighbours":
            return f"how often {table.text(second)} follows {table.text(first)} in {column(first)}"
        case "positions":
            return f"the place of {table.text(first)} in {column(first)}"
        case "summaries":
            name, statistic = column(first), STATISTICS[second]
            whole = statistic == "value" or name.startswith("the output's ")
            return name if whole else f"the {statistic} of {name}"
        case "larger":
            return f"the number of rows in which {column(first)} is larger than {column(second)}"
        case "sorted":
            return f"number {second + 1} of {column(first)} in ascending order"
        case "by_place":
            place = int(table.place[first]) + 1
            if np.count_nonzero(table.rows == table.rows[first]) == 1:
                whole = column(first) == "the items"
                return f"x{place}" if whole else f"item {place} of {column(first)}"
            alone = table.place[table.owner == table.owner[first]].max() == 0
            return "the sum of all numbers" if alone else f"the sum of the numbers in row {place}"
        case _:
            return f"the correlation of {column(first)} and {column(second)}"
