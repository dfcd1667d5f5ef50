"""The leaves of many outputs as one long table: which output, row and column, and which value.

Collections have no fixed columns: a set, a dictionary, a list of records, a data frame or a tree differs
in shape from one output to the next. Here every leaf (a number, a text, None) is one row of a table with

    owner   the output it belongs to
    table   the collection in which rows are counted (the outermost list, or the frame), by its path
    place   its row in that collection
    column  its path without row numbers: "b" of a frame, "[].age" of a list of dictionaries
    code    a 64-bit hash of its value
    number  the value of a number, NaN otherwise

A frame (a dictionary of lists of one length) and a list of dictionaries have the same tables. Hashes are
functions of the single output, so that any feature computed from the table is one too.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import NUMBER, Template, children, show

Hashes = npt.NDArray[np.uint64]

#: Items of a list inside a row are columns of their own up to this many.
_WIDE = 16
#: Text is split into characters and words in tables of at most this many leaves an output.
_SPELLED = 12
#: Calendar parts of dates, and digits of numbers, are columns of their own in tables up to this size.
_DERIVED = 200
#: Leaves of a row are paired with so many next ones.
_LAGS = 4
#: Prefix of the columns that hold a property of the whole output.
_WHOLE = "the output's "


def mix(*parts: Any) -> Hashes:
    """One hash of several (splitmix64, Steele, Lea & Flood 2014); the order of the parts counts."""
    total = np.zeros(1, dtype=np.uint64)
    for part in parts:
        x = (
            total * np.uint64(3)
            + np.asarray(part).astype(np.uint64)
            + np.uint64(0x9E3779B97F4A7C15)
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total = x ^ (x >> np.uint64(31))
    return total


def grouped(key: Hashes) -> tuple[IntArray, IntArray]:
    """An order in which equal keys are neighbours, as they came, and where each group begins in it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: key.size])


@lru_cache(maxsize=1 << 16)
def text_hash(text: str) -> int:
    """A 64-bit hash of a text that is the same in every process."""
    data = text.encode("utf-8", "surrogatepass")
    return zlib.crc32(data) << 32 | zlib.crc32(data, 0x5DEECE66)


def number_hash(values: FloatArray) -> Hashes:
    """Hashes of numbers: of their bits, with −0.0 as 0.0."""
    return mix((np.asarray(values, dtype=float) + 0.0).view(np.uint64))


@dataclass(frozen=True, eq=False)
class LeafTable:
    """The leaves of `size` outputs, in the order of owner, table and place."""

    size: int
    owner: IntArray
    table: Hashes
    place: IntArray
    column: Hashes
    code: Hashes
    number: FloatArray
    texts: dict[int, str] = field(repr=False)  # of columns, tables and values that are text

    @classmethod
    def of(cls, outputs: Outputs) -> LeafTable:
        """Each structure is read once; a table is kept for as long as its outputs are."""
        if outputs not in _TABLES:
            _TABLES[outputs] = cls._read(outputs)
        return _TABLES[outputs]

    @classmethod
    def records(cls, outputs: Outputs) -> LeafTable:
        """The leaves alone, without what is derived from them."""
        return cls._read(outputs, derived=False)

    @classmethod
    def _read(cls, outputs: Outputs, *, derived: bool = True) -> LeafTable:
        shapes = _Walk()
        n = len(outputs)
        codes = np.zeros(n, dtype=np.int64) if outputs.codes is None else outputs.codes
        seen, codes = np.unique(codes, return_inverse=True)
        for k in seen.tolist():
            shapes.read(outputs.structures[k], derived)
        start = np.array(shapes.starts)
        many = np.diff(start)[codes]
        owner = np.repeat(np.arange(n), many)
        leaf = np.arange(owner.size) + np.repeat(start[codes] - (np.cumsum(many) - many), many)
        table, column, code = (
            np.array(x, dtype=np.uint64)[leaf]
            for x in (shapes.tables, shapes.columns, shapes.codes)
        )
        place, source = (np.array(x, dtype=np.int64)[leaf] for x in (shapes.places, shapes.sources))
        number = np.array(shapes.values, dtype=float)[leaf]
        own = np.flatnonzero(source >= 0)
        number[own] = outputs.numbers[owner[own], source[own]]
        if outputs.rest is not None:
            number[own] += outputs.rest[owner[own], source[own]]
        known = np.flatnonzero(np.isfinite(number))
        code[known] = number_hash(number[known])
        origin = (source >= 0) + np.array(shapes.dates, dtype=np.int64)[leaf]
        origin[np.repeat((many > _DERIVED) | (not derived), many)] = 0
        found = cls(n, owner, table, place, column, code, number, shapes.texts)
        return found.with_more(_derived(found, origin))

    def with_more(self, extra: tuple[AnyArray, ...]) -> LeafTable:
        """Further leaves, each among those of its output."""
        if not extra[0].size:
            return self
        own = (self.owner, self.table, self.place, self.column, self.code, self.number)
        joined = [np.concatenate(pair) for pair in zip(own, extra, strict=True)]
        by = np.argsort(joined[0], kind="stable")
        owner, table, place, column, code, number = (x[by] for x in joined)
        return LeafTable(self.size, owner, table, place, column, code, number, self.texts)

    def __len__(self) -> int:
        return self.owner.size

    def column_name(self, leaf: int) -> str:
        """The column of a leaf, for people."""
        known = self.texts[int(self.column[leaf])]
        return known.removeprefix("[].").removesuffix("[]").strip(".") or "the items"

    def text(self, leaf: int) -> str:
        """The value of a leaf, for people."""
        known = self.texts.get(int(self.code[leaf]))
        return known if known is not None else f"{self.number[leaf]:.10g}"

    def repeated(self, least: int) -> LeafTable:
        """Only leaves whose value occurs in its column so many times or more: others have no counts."""
        _, back, count = np.unique(
            mix(self.column, self.code), return_inverse=True, return_counts=True
        )
        u = count[back] >= least
        head = self.size, self.owner[u], self.table[u], self.place[u]
        return LeafTable(*head, self.column[u], self.code[u], self.number[u], self.texts)

    @cached_property
    def rows(self) -> Hashes:
        """A hash of owner, table and place: leaves of one row share it."""
        return mix(self.owner, self.table, self.place)

    @cached_property
    def paired(self) -> tuple[IntArray, IntArray]:
        """Leaves of one row, each with the next few: two arrays of places in the table."""
        order, _ = grouped(self.rows)
        row = self.rows[order]
        first, second = [], []
        for lag in range(1, _LAGS + 1):
            same = row[lag:] == row[:-lag]
            a, b = order[:-lag][same], order[lag:][same]
            by = np.argsort(a)  # as they are read: sums must not depend on other outputs
            first.append(a[by])
            second.append(b[by])
        return np.concatenate(first), np.concatenate(second)

    @cached_property
    def groups(self) -> Hashes:
        """A hash of owner and column."""
        return mix(self.owner, self.column)


#: Tables of outputs that are still in use: training draws are read by several scores.
_TABLES: weakref.WeakKeyDictionary[Outputs, LeafTable] = weakref.WeakKeyDictionary()


class _Walk:
    """The leaves of structures, column by column of the table; numbers are filled in for each output."""

    def __init__(self) -> None:
        self.starts = [0]  # of the leaves of each structure, and their end
        self.tables: list[int] = []
        self.places: list[int] = []
        self.columns: list[int] = []
        self.codes: list[int] = []
        self.sources: list[int] = []  # the column of `numbers` that holds the value; −1 for none
        self.values: list[float] = []  # numbers that the structure itself says; NaN for text
        self.dates: list[int] = []  # 1 for seconds since 1970
        self.texts: dict[int, str] = {}
        self.words: list[tuple[str, str]] = []  # column and text
        self.next = 0  # the column of `numbers` that comes next
        self.level = self.depth = 0  # nodes around the present one, and the most there were

    def read(self, template: Template, derived: bool) -> None:
        """All leaves of a structure; if `derived` also parts of text, and what is known of the whole."""
        self.next, self.words, self.depth = 0, [], 0
        self.walk(template, "")
        leaves = len(self.codes) - self.starts[-1]
        if derived:
            for name, value in (("depth", self.depth), ("number of leaves", leaves)):
                self.add(_WHOLE, 0, _WHOLE + name, float(value))
        if derived and leaves <= _SPELLED:
            for column, text in list(self.words):
                _spell(self, column, text)
        self.starts.append(len(self.codes))

    def named(self, text: str) -> int:
        """The hash of a text, which is kept."""
        key = text_hash(text)
        self.texts[key] = text
        return key

    def add(
        self, table: str, place: int, column: str, leaf: Template | float, date: int = 0
    ) -> None:
        """A leaf: the place of a number, a number of its own, or anything else by its text."""
        source, value, code = -1, np.nan, 0
        if isinstance(leaf, float):
            value = leaf
        elif leaf == NUMBER:
            source, value = self.next, 0.0
        else:
            text = show(leaf)
            code = self.named(text)
            self.words.append((column, text))
        self.tables.append(self.named(table))
        self.places.append(place)
        self.columns.append(self.named(column))
        self.codes.append(code)
        self.sources.append(source)
        self.values.append(value)
        self.dates.append(date)

    def add_all(self, table: str, column: str, items: Sequence[Template]) -> None:
        """A column of text, or of numbers, at once."""
        k = len(items)
        number = items[0] == NUMBER
        self.tables += [self.named(table)] * k
        self.places += range(k)
        self.columns += [self.named(column)] * k
        self.sources += range(self.next, self.next + k) if number else [-1] * k
        self.values += [0.0 if number else np.nan] * k
        self.dates += [0] * k
        self.next += k
        if number:
            self.codes += [0] * k
        else:
            texts = {item: repr(item[1]) for item in set(items)}
            known = {item: self.named(text) for item, text in texts.items()}
            self.codes += [known[item] for item in items]
            self.words += [(column, texts[item]) for item in items[: _SPELLED + 1]]

    def add_texts(self, column: str, items: list[str]) -> None:
        """Parts of a text, as rows of a table of their own."""
        k, own = len(items), self.named(column)
        codes = [text_hash(item) for item in items]
        self.texts.update(zip(codes, items, strict=True))
        self.tables += [own] * k
        self.places += range(k)
        self.columns += [own] * k
        self.codes += codes
        self.sources += [-1] * k
        self.values += [np.nan] * k
        self.dates += [0] * k

    def walk(self, node: Template, path: str, table: str | None = None, place: int = 0) -> None:
        """All leaves of a node, in reading order."""
        self.level += 1
        self.depth = max(self.depth, self.level)
        match node[0]:
            case "seq" | "set":
                self._items(node[1], path, table, place)
            case "dict" | "object":
                self._entries(node[-1], path, table, place)
            case "date" | "duration":
                self.add(table or "", place, path, NUMBER, int(node[0] == "date"))
                self.next += 2
            case "complex":
                for name, child in zip(("real", "imaginary"), children(node), strict=True):
                    self.walk(child, f"{path}.{name}", table, place)
            case _:
                self.add(table or "", place, path, node)
                self.next += 1
        self.level -= 1

    def _items(self, items: Sequence[Template], path: str, table: str | None, place: int) -> None:
        if table is not None:
            wide = len(items) > _WIDE
            for k, item in enumerate(items):
                self.walk(item, f"{path}[]" if wide else f"{path}.{k}", table, place)
            return
        self._rows(items, f"{path}[]", path or "rows")

    def _rows(self, items: Sequence[Template], column: str, table: str) -> None:
        kinds = {item[0] for item in items}
        if kinds in ({"str"}, {"number"}):
            self.add_all(table, column, items)
            self.depth = max(self.depth, self.level + 1)
        else:
            for k, item in enumerate(items):
                self.walk(item, column, table, k)

    def _entries(
        self, entries: Sequence[tuple[str, Template]], path: str, table: str | None, place: int
    ) -> None:
        lengths = {len(c[1]) if c[0] in ("seq", "set") else -1 for _, c in entries}
        if table is None and len(lengths) == 1 and min(lengths) > 0:
            for name, child in entries:  # columns of one length: rows by place
                self._rows(child[1], f"{path}.{name}" if path else str(name), path or "rows")
            return
        for name, child in entries:
            self.walk(child, f"{path}.{name}" if path else str(name), table, place)
        for name, _ in entries:
            self.add(f"{path}{{}}", place, f"{path}{{}}", ("key", str(name)))


def _spell(found: _Walk, column: str, text: str) -> None:
    """Characters, three in a row, and words of text, as rows of tables of their own."""
    if column.endswith("{}"):
        return
    plain = text[1:-1] if text[:1] in "'\"" else text
    parts = {
        "characters": list(plain[:256]),
        "substrings": [plain[k : k + 3] for k in range(min(len(plain), 256) - 2)],
        "words": plain.split()[:64],
    }
    for name, items in parts.items():
        found.add_texts(f"{column or 'the text'} {name}", items)


#: Calendar parts of seconds since 1970, by name: how many seconds, and how many there are.
_CALENDAR = {"second": (1, 60), "minute": (60, 60), "hour": (3600, 24), "weekday": (86400, 7)}


def _derived(t: LeafTable, origin: IntArray) -> tuple[AnyArray, ...]:
    """Calendar parts of dates (origin 2), the last digit and cents of numbers (1): as further leaves."""
    parts = [tuple(x[:0] for x in (t.owner, t.table, t.place, t.column, t.code, t.number))]
    for kind, names in ((2, [*_CALENDAR, "day", "month"]), (1, ["last digit", "cents"])):
        rows = np.flatnonzero((origin == kind) & (np.abs(t.number) < 2.0**53))
        x = t.number[rows]
        for name in names if rows.size else ():
            value = _part(x, name)
            keep = np.isfinite(value)
            own, value = rows[keep], value[keep]
            column = mix(t.column[own], text_hash(name))
            for new, old in set(zip(column.tolist(), t.column[own].tolist(), strict=True)):
                t.texts[new] = f"the {name} of {t.texts[old].removesuffix('[]') or 'the output'}"
            apart = mix(t.table[own], text_hash("derived"))  # no columns of the row itself
            parts.append((t.owner[own], apart, t.place[own], column, number_hash(value), value))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _part(x: FloatArray, name: str) -> FloatArray:
    if name in _CALENDAR:
        unit, many = _CALENDAR[name]
        return np.asarray(np.floor(x / unit) % many)
    if name in ("day", "month"):
        at = np.floor(x).astype(np.int64).astype("M8[s]")
        month = at.astype("M8[M]")
        if name == "month":
            return np.asarray(month.astype(np.int64) % 12 + 1.0)
        return np.asarray((at.astype("M8[D]") - month.astype("M8[D]")).astype(np.int64) + 1.0)
    if name == "last digit":
        return np.where((x == np.round(x)) & (np.abs(x) >= 10), np.abs(x) % 10, np.nan)
    cents = np.round(np.abs(x) * 100)
    exact = (np.abs(np.abs(x) * 100 - cents) < 1e-6 * np.maximum(cents, 1)) & (x != np.round(x))
    return np.where(exact, cents % 100, np.nan)
