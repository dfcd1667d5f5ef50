"""The leaves of a structure: read once, however many outputs share it.

Numbers are filled in for each output (`outputs.leaves`); text, keys and what is derived from them are
those of the structure.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from dpassay._typing import AnyArray
from dpassay.outputs.templates import NUMBER, Template, children, show

#: Items of a list inside a row are columns of their own up to this many.
_WIDE = 16
#: What text is split into, as columns of their own.
TEXT_PARTS = ("classes of characters", "characters", "substrings", "words")
#: Text is split into characters and words in tables of at most this many leaves an output.
_SPELLED = 12
#: Calendar parts of dates, and digits of numbers, are columns of their own in tables up to this size.
DERIVED = 200
#: Prefix of the columns that hold a property of the whole output.
WHOLE = "the output's "
#: Suffix of the texts by which the units of columns are kept.
UNIT = "\0unit"


@lru_cache(maxsize=1 << 16)
def text_hash(text: str) -> int:
    """A 64-bit hash of a text that is the same in every process."""
    data = text.encode("utf-8", "surrogatepass")
    return zlib.crc32(data) << 32 | zlib.crc32(data, 0x5DEECE66)


class StructureLeaves:
    """The leaves of structures as runs of leaves in one column; numbers are filled in for each output.

    If `derived`, also parts of text, and what is known of the whole.
    """

    def __init__(self, structures: Sequence[Template], derived: bool) -> None:
        self.starts = [0]  # of the leaves of each structure, and their end
        self.names: list[tuple[int, int]] = []  # table and column of each run
        #: Of each run: leaves, first place, first column of `numbers` (−1 for none) and step to the next,
        #: first of `codes` (−1 for numbers), 1 for dates
        self.runs: list[tuple[int, int, int, int, int, int]] = []
        self.values: list[float] = []  # of each run: a number that the structure itself says
        self.codes: list[int] = []  # of text
        self.texts: dict[int, str] = {}
        for template in structures:
            self._read(template, derived)

    @cached_property
    def leaves(self) -> tuple[AnyArray, ...]:
        """Table, place, column, code, number, source of the number and kind of each leaf."""
        runs = np.array(self.runs, dtype=np.int64).reshape(-1, 6)
        many, place, source, stride, code, date = runs.T
        run = np.repeat(np.arange(many.size), many)
        step = np.arange(run.size) - np.repeat(np.cumsum(many) - many, many)
        table, column = np.array(self.names, dtype=np.uint64).reshape(-1, 2).T
        known = np.array([0, *self.codes], dtype=np.uint64)
        codes = known[np.where(code[run] < 0, 0, code[run] + 1 + step)]
        sources = source[run] + stride[run] * step
        kinds = ((source >= 0) + date)[run]
        values = np.array(self.values)[run]
        return table[run], place[run] + step, column[run], codes, values, sources, kinds

    def _read(self, template: Template, derived: bool) -> None:
        self.next = 0  # the column of `numbers` that comes next
        self.words: list[tuple[str, str]] = []  # column and text
        self.single: list[tuple[str, int, bool]] = []  # path and source of numbers, if in a row
        self.count = self.keys = 0  # leaves, and how many of them are keys
        self.level = self.depth = 0  # nodes around the present one, and the most
        self.known: list[tuple[str, int]] = []  # properties of the whole
        self.walk(template, "")
        leaves = self.count
        if derived:
            for name, value in (
                ("depth", self.depth),
                ("number of keys and values", leaves),
                *self.known,
            ):
                self.add(WHOLE, WHOLE + name, value=float(value))
            if leaves <= DERIVED:
                self._together()
        if derived and leaves - self.keys <= _SPELLED:
            for column, text in self.words:
                self._spell(column, text)
        self.starts.append(self.starts[-1] + self.count)

    def named(self, text: str) -> int:
        """The hash of a text, which is kept."""
        key = text_hash(text)
        self.texts[key] = text
        return key

    def add(
        self,
        table: str,
        column: str,
        many: int = 1,
        place: int = 0,
        source: int = -1,
        *,
        stride: int = 1,
        value: float = np.nan,
        date: int = 0,
        code: int = -1,
    ) -> None:
        """A run of leaves: numbers that come from `source` on, or a number, or text from `code` on."""
        self.names.append((self.named(table), self.named(column)))
        self.runs.append((many, place, source, stride if source >= 0 else 0, code, date))
        self.values.append(0.0 if source >= 0 else value)
        self.count += many

    def add_texts(self, table: str, column: str, items: Sequence[str], place: int = 0) -> None:
        known = {item: self.named(item) for item in set(items)}
        self.add(table, column, len(items), place, code=len(self.codes))
        self.codes += [known[item] for item in items]

    def add_keys(self, path: str, names: Sequence[str], place: int = 0) -> None:
        """The names of entries, in a table of their own."""
        self.add_texts(f"{path}{{}}", f"{path}{{}}", names, place)
        self.keys += len(names)

    def add_cells(self, table: str, column: str, cells: Sequence[Template], stride: int) -> None:
        """A column of numbers, or of text, whose cells stand so far apart."""
        if cells[0] == NUMBER:
            self.add(table, column, len(cells), source=self.next, stride=stride)
            return
        shown = {cell: repr(cell[1]) for cell in set(cells)}
        self.add_texts(table, column, [shown[cell] for cell in cells])
        self.words += [(column, shown[cell]) for cell in cells[: _SPELLED + 1]]
        if len(shown) > len(cells) / 2:  # no categories
            total = sum(len(cell[1]) for cell in cells)
            self.known.append((f"number of characters in {column}", total))

    def _together(self) -> None:
        """Numbers at several paths as one column: by the last name of a path, and all outside rows."""
        paths: dict[str, list[tuple[str, int]]] = {}
        for path, source, inside in self.single:
            names = [name for name in re.split(r"[.\[\]]+", path) if name and not name.isdigit()]
            columns = [f"any {name}" for name in names[-1:]] + ["all numbers"] * (not inside)
            for column in columns:
                paths.setdefault(column, []).append((path, source))
        for column, found in paths.items():
            if len({path for path, _ in found}) > 1:
                for place, (_, source) in enumerate(found):
                    self.add(column, column, place=place, source=source, date=-1)

    def walk(self, node: Template, path: str, table: str | None = None, place: int = 0) -> None:
        """All leaves of a node, in reading order."""
        self.level += 1
        self.depth = max(self.depth, self.level)
        match node[0]:
            case "seq" | "set" if table is None:
                self._rows(node[1], f"{path}[]", path or "rows")
            case "seq" | "set":
                wide = len(node[1]) > _WIDE
                for k, item in enumerate(node[1]):
                    self.walk(item, f"{path}[]" if wide else f"{path}.{k}", table, place)
            case "dict" | "object":
                self._entries(node[-1], path, table, place)
            case "date" | "duration":
                date = int(node[0] == "date")
                self.add(table or "", path, place=place, source=self.next, date=date)
                self.texts[text_hash(path + UNIT)] = node[0]
                self.next += 2
            case "complex":
                for name, child in zip(("real", "imaginary"), children(node), strict=True):
                    self.walk(child, f"{path}.{name}", table, place)
            case "number":
                self.add(table or "", path, place=place, source=self.next)
                self.single.append((path, self.next, table is not None))
                self.next += 1
            case _:
                text = show(node)
                self.add_texts(table or "", path, [text], place)
                if node[0] != "none":
                    self.words.append((path, text))
                self.next += 1
        self.level -= 1

    def _rows(self, items: Sequence[Template], column: str, table: str) -> None:
        kinds = {item[0] for item in items}
        if kinds in ({"str"}, {"number"}):
            self.add_cells(table, column, items, 1)
            self.next += len(items)
            self.depth = max(self.depth, self.level + 1)
        elif (columns := _columns(items, kinds)) is not None:
            for name, cells in columns.items():
                self.add_cells(table, f"{column}.{name}", cells, len(columns))
                self.next += 1
            self.next += (len(items) - 1) * len(columns)
            self.depth = max(self.depth, self.level + 2)
            for name in columns if kinds == {"dict"} else ():
                self.add_keys(column, [name] * len(items))
        else:
            for k, item in enumerate(items):
                self.walk(item, column, table, k)

    def _entries(
        self, entries: Sequence[tuple[str, Template]], path: str, table: str | None, place: int
    ) -> None:
        lengths = {len(c[1]) if c[0] in ("seq", "set") else -1 for _, c in entries}
        as_rows = table is None and len(lengths) == 1 and min(lengths) >= 0  # columns of one length
        for name, child in entries:
            column = f"{path}.{name}" if path else name
            if as_rows and child[1]:
                self._rows(child[1], column, path or "rows")
            elif not as_rows:
                self.walk(child, column, table, place)
        for name, _ in () if as_rows else entries:
            self.add_keys(path, [name], place)

    def _spell(self, column: str, text: str) -> None:
        """Characters, their classes, three in a row, and words, as rows of tables of their own."""
        plain = text[1:-1] if text[:1] in "'\"" else text
        parts = (
            [_class(letter) for letter in plain[:256]],
            list(plain[:256]),
            [plain[k : k + 3] for k in range(min(len(plain), 256) - 2)],
            plain.split()[:64],
        )
        for name, items in zip(TEXT_PARTS, parts, strict=True):
            own = f"{column or 'the text'} {name}"
            self.add_texts(own, own, items)


def _columns(items: Sequence[Template], kinds: set[str]) -> dict[str, tuple[Template, ...]] | None:
    """Rows with the same cells, each column all numbers or all text, as columns; None for other rows."""
    if kinds == {"dict"}:
        names: tuple[str, ...] = tuple([name for name, _ in items[0][1]])
        if any(tuple([name for name, _ in item[1]]) != names for item in items):
            return None
        rows = [[child for _, child in item[1]] for item in items]
    elif kinds == {"seq"} and {len(item[1]) for item in items} == {len(items[0][1])}:
        rows = [item[1] for item in items]
        names = tuple(map(str, range(len(rows[0]))))
    else:
        return None
    columns = list(zip(*rows, strict=True))
    plain = all({cell[0] for cell in column} in ({"str"}, {"number"}) for column in columns)
    return dict(zip(names, columns, strict=True)) if plain and len(names) <= _WIDE else None


def _class(letter: str) -> str:
    if letter.isdigit() or letter.isspace():
        return "a digit" if letter.isdigit() else "a space"
    case = "an upper-case letter" if letter.isupper() else "a lower-case letter"
    return case if letter.isalpha() else "another character"
