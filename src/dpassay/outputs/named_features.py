"""The named features that training draws chose: computed for each output, with their names for people.

They are data: a score of named features goes to JSON and is replayed by somebody else.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.features import (
    FAMILIES,
    OF_DATES,
    OF_DURATIONS,
    OF_VALUES,
    STATISTICS,
    block_rows,
    blocks,
    places_of_array,
)
from dpassay.outputs.leaves import (
    WEEKDAY,
    LeafTable,
    changes,
)
from dpassay.outputs.structure_leaves import TEXT_PARTS, WHOLE
from dpassay.outputs.targets import Target
from dpassay.outputs.templates import shown_key, written, written_in
from dpassay.records import Record

#: Families that are not made of triples of leaves.
_OTHERS = ("blocks", "block rows", "target")
#: How the names of counted values begin, unless outputs have one value each.
_TIMES = "the number of times that "
#: How a name says that outputs without such a number are not left out.
_NOT_NUMBERS = " (a missing value or a word counts as 0)"
#: Columns of a row whose sum names them, at most.
_ADDED = 4
#: And how those of values in any column do.
_OCCURRENCES = "the number of occurrences of "
#: What a text contains, by the part that it is split into.
_WORDS = {
    "classes of characters": "",
    "characters": "the character ",
    "substrings": "",
    "words": "the word ",
}
#: The verbs of statements, and how they are denied.
_DENIED = {"contains": "does not contain", "is": "is not"}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, eq=False)
class Feature(Record):
    """One feature: its family, its key there, and how it reads."""

    family: str
    key: int
    name: str
    width: int = 0  # of a row, where a vector is read as rows
    target: Target | None = None  # rows are compared with it; `key` counts its features
    unit: str = ""  # "date" (seconds since 1970) or "duration" (seconds)
    subject: str = ""  # of a statement: "the text" in "the text contains the word 'x'"

    def event(self, at: float, above: bool) -> str:
        """{feature ≥ at}, or {feature < at}, in words."""
        if self.family == "by_key":
            return f"{self.name} is {'at least' if above else 'below'} {written_in(self.unit, at)}"
        if self.family not in ("values", "anywhere"):
            return f"{self.name} {'≥' if above else '<'} {written_in(self.unit, at)}"
        said = self.name.removeprefix(_TIMES).removeprefix(_OCCURRENCES)
        often = f"{'at least' if above else 'fewer than'} {written(at)} times"
        if self.subject:
            verb = said.removeprefix(self.subject).split(maxsplit=1)[0]
            denied = f"{self.subject} {_DENIED[verb]}{said.removeprefix(f'{self.subject} {verb}')}"
            return (said if above else denied) if at == 1 else f"{said} {often}"
        if at != 1:
            return f"the output contains {said} {often}"
        return f"the output {'contains' if above else _DENIED['contains']} {said}"


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
                last = len(one.target.names) - 1
                checks.require(0 <= one.key <= last, f"key must lie in 0 … {last}")
        same = self.centre.shape == self.scale.shape == (self.size,)
        checks.require(same, "centre and scale must have an entry for each feature")

    @property
    def size(self) -> int:
        return len(self.features)

    @classmethod
    def of(cls, features: tuple[Feature, ...]) -> NamedFeatures:
        return cls(features, np.zeros(len(features)), np.ones(len(features)))

    def standardised(self, rows: FloatArray) -> NamedFeatures:
        """With the centre and the spread of some rows taken out."""
        spread = rows.std(axis=0)
        return NamedFeatures(self.features, rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def rows(self, outputs: Outputs) -> FloatArray:
        return np.asarray((self.values(outputs) - self.centre) / self.scale)

    def values(self, outputs: Outputs) -> FloatArray:
        """The features themselves, a row an output; they are kept for as long as the outputs are."""
        known = _VALUES.setdefault(outputs, {})
        keys = [(one.family, one.key, one.width, one.name, id(one.target)) for one in self.features]
        fresh = {key: one for key, one in zip(keys, self.features, strict=True) if key not in known}
        if fresh and len(outputs):
            columns = _computed(list(fresh.values()), outputs).T
            for (key, one), column in zip(fresh.items(), columns, strict=True):
                known[key] = one.target, column  # the target is kept: its id is in the key
        found = np.zeros((len(outputs), len(self.features)))
        for k, key in enumerate(keys if len(outputs) else ()):
            found[:, k] = known[key][1]
        return found


#: Values of features of outputs that are still in use: several scores and events ask for the same.
_VALUES: weakref.WeakKeyDictionary[Outputs, dict[tuple[Any, ...], tuple[Any, FloatArray]]] = (
    weakref.WeakKeyDictionary()
)


def _computed(features: Sequence[Feature], outputs: Outputs) -> FloatArray:
    """A row an output; each family is computed once."""
    found = np.zeros((len(outputs), len(features)))
    families: dict[tuple[str, int], list[int]] = {}
    for k, one in enumerate(features):
        families.setdefault((one.family, one.width), []).append(k)
    for (family, width), own in families.items():
        if family == "blocks":
            dense = blocks(outputs)
            for k in own:
                found[:, k] = dense.get(features[k].name, 0.0)
            continue
        if family == "target":
            targets = {id(features[k].target): features[k].target for k in own}
            near = {k: one.features(LeafTable.of(outputs)) for k, one in targets.items() if one}
            for k in own:
                found[:, k] = near[id(features[k].target)][:, features[k].key]
            continue
        wanted = np.array([features[k].key for k in own], dtype=np.uint64)
        if family == "by_place" and (places := places_of_array(outputs, wanted)) is not None:
            found[:, own] = outputs.numbers[:, places]
            continue
        order = np.argsort(wanted)
        if family == "block rows":
            owner, key, value, _, _ = block_rows(outputs, width, wanted)
        else:
            owner, key, value, _, _ = FAMILIES[family](LeafTable.of(outputs), wanted)
        at = np.minimum(np.searchsorted(wanted[order], key), len(own) - 1)
        hit = wanted[order][at] == key
        found[owner[hit], np.array(own)[order][at[hit]]] = value[hit]
    return found


def unit_of(table: LeafTable, family: str, first: int, second: int) -> str:
    """The unit of a feature, from the leaves that it was found with."""
    statistic = STATISTICS[second] if family == "summaries" else ""
    if table.unit(first) and statistic in OF_DURATIONS:
        return "duration"
    alone = family == "by_place" and is_single(table, first)
    return table.unit(first) if statistic in OF_DATES or family == "sorted" or alone else ""


def _added(table: LeafTable, leaf: int) -> IntArray:
    """The numbers that stand at the place of a leaf, of all outputs."""
    here = (table.table == table.table[leaf]) & (table.place == table.place[leaf])
    return np.flatnonzero(here & np.isfinite(table.number))


def is_single(table: LeafTable, leaf: int) -> bool:
    """Whether at the place of a leaf no output has more than one number, always in its column."""
    added = _added(table, leaf)
    one = np.bincount(table.owner[added]).max() == 1
    return bool(one and np.all(table.column[added] == table.column[leaf]))


def _column(table: LeafTable, leaf: int) -> str:
    """What a column is called."""
    name = table.column_name(leaf)
    for part in TEXT_PARTS:
        if name.endswith(f" {part}"):
            name = f"{part} of {name.removesuffix(f' {part}')}"
            break
    return name if name.isprintable() and not name[:1].isdigit() else repr(name)


def _value(table: LeafTable, leaf: int) -> str:
    """What the value of a leaf is called."""
    name = table.column_name(leaf)
    raw = name.endswith(TEXT_PARTS[1:]) and not name.endswith(TEXT_PARTS[0])
    return repr(table.text(leaf)) if raw else table.text(leaf)


def _is_key(table: LeafTable, leaf: int) -> bool:
    """Whether a leaf is a key of a dictionary."""
    return table.column_name(leaf).endswith("{}")


def _assigned(table: LeafTable, leaf: int) -> tuple[str, str]:
    """A column and what it is: ("city", "'Suva'"), ("the weekday of x", "Sunday")."""
    column = _column(table, leaf)
    if column.startswith(f"the {WEEKDAY} of "):
        return column.replace(WEEKDAY, "weekday", 1), _DAYS[int(table.number[leaf])]
    return column, "empty" if table.text(leaf) == "None" else _value(table, leaf)


def _holds(table: LeafTable, leaf: int, empty: str = "{} is empty") -> str:
    """That a column has the value of a leaf."""
    if _is_key(table, leaf):
        return f"the key {shown_key(table.text(leaf))}"
    column, value = _assigned(table, leaf)
    if table.text(leaf) == "None":
        return "an empty item" if column == "the items" else empty.format(column)
    word = "is" if column.startswith((WHOLE, "the weekday of ")) else "="
    return f"{column} {word} {value}"


def single_in_column(table: LeafTable, leaf: int) -> bool:
    """Whether no output has several values in the column of a leaf."""
    return bool(np.bincount(table.owner[table.column == table.column[leaf]]).max() == 1)


def subject_of(table: LeafTable, family: str, leaf: int) -> str:
    """What a counted value is a statement about, if it is one; else nothing."""
    if family != "values":
        return ""
    for part in _WORDS:
        if _column(table, leaf).startswith(f"{part} of "):
            return _column(table, leaf).removeprefix(f"{part} of ")
    statement = single_in_column(table, leaf) and not _is_key(table, leaf)
    return _assigned(table, leaf)[0] if statement else ""


def _words_of_value(table: LeafTable, first: int) -> str:
    subject, column = subject_of(table, "values", first), _column(table, first)
    for part, word in _WORDS.items():
        if column.startswith(f"{part} of "):
            return f"{_TIMES}{subject} contains {word}{_value(table, first)}"
    if not subject:
        return f"{_TIMES}{_holds(table, first, 'an empty {}')}"
    return " is ".join(_assigned(table, first))


def _words_of_place(table: LeafTable, first: int) -> str:
    place, added = int(table.place[first]) + 1, _added(table, first)
    several = table.place[table.table == table.table[first]].max() > 0
    columns, at = np.unique(table.column[added], return_index=True)
    names = [_column(table, k) for k in np.sort(added[at]).tolist()]
    if not is_single(table, first) and (several or len(names) > _ADDED):
        return f"the sum of the numbers in row {place}" if several else "the sum of all numbers"
    words = " + ".join(names)
    if several or names[0] == "the items":
        words = f"x{place}" if names[0] == "the items" else f"item {place} of {names[0]}"
    return words + _NOT_NUMBERS * (added.size < columns.size * table.size)


def _words_of_statistic(table: LeafTable, first: int, statistic: str) -> str:
    name = _column(table, first)
    if statistic == "value":  # of several numbers the least
        return name if single_in_column(table, first) else f"the minimum of {name}"
    known = np.isfinite(table.number[table.column == table.column[first]])
    if statistic not in OF_VALUES and known.any() and not known.all():
        name = f"the numbers in {name}"
    return name if name.startswith("the output's ") else f"the {statistic} of {name}"


def without_numbers(table: LeafTable, leaf: int) -> str:
    """What a statistic of the column of a leaf is for outputs that have none."""
    several = table.table[leaf] == table.column[leaf] and _column(table, leaf) != "the output"
    return " (0 unless there are several)" if several else _NOT_NUMBERS


def words_of(table: LeafTable, family: str, first: int, second: int) -> str:
    """What a feature is called, from the leaves that it was found with."""
    column, value, holds = (partial(name, table) for name in (_column, _value, _holds))
    match family:
        case "values":
            return _words_of_value(table, first)
        case "anywhere":
            return f"{_OCCURRENCES}{value(first)}"
        case "rows" | "distinct":
            if family == "rows":
                own = np.flatnonzero(table.rows == table.rows[first])
                return f"the number of rows ({', '.join(map(holds, own.tolist()))})"
            _, row, size = np.unique(table.rows, return_inverse=True, return_counts=True)
            own = np.flatnonzero((table.table == table.table[first]) & (size[row] > 1))
            names = dict.fromkeys(map(column, own[changes(table.column[own])].tolist()))
            return f"the number of different rows ({', '.join(names)})"
        case "pairs":
            alone = table.table[first] == table.column[first]  # characters or words of texts
            counted = "places" if alone and not _is_key(table, first) else "rows"
            return f"the number of {counted} with {holds(first)} and {holds(second)}"
        case "by_key":
            if single_in_column(table, second):
                return f"{column(second)} where {holds(first)} (else 0)"
            return f"the sum of {column(second)} where {holds(first)}"
        case "neighbours":
            where = column(first).removeprefix(f"{TEXT_PARTS[0]} of ")
            return f"how often {value(second)} follows {value(first)} in {where}"
        case "positions":
            return f"the place of {value(first)} in {column(first)}"
        case "summaries":
            return _words_of_statistic(table, first, STATISTICS[second])
        case "larger":
            return f"the number of rows in which {column(first)} is larger than {column(second)}"
        case "sorted":
            return f"number {second + 1} of {column(first)} in ascending order"
        case "by_place":
            return _words_of_place(table, first)
        case _:
            return f"the correlation of {column(first)} and {column(second)}"
