"""The inside of text: characters by their place, lengths, and what occurs anywhere.

Strings that hardly repeat have no frequencies to go by; their letters do.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import Template, leaves_of
from dpassay.records import Record

#: Leaves of an output that are looked at; characters from the start of each, alone or among others, and
#: from its end.
_LEAVES, _ALONE, _AMONG, _END = 16, 32, 6, 4
#: Lengths and whole words are told apart up to this many; 0 stands for "not there".
_CODES = 256
#: Characters up to here are themselves, the others are told apart modulo `_GROUPS`.
_LATIN, _GROUPS = 256, 255
#: Neighbouring characters are told apart modulo this.
_BIGRAMS = 256


def text_of(leaf: Template) -> str:
    """The text of a leaf; empty for anything else."""
    if leaf[0] == "str":
        return str(leaf[1])
    return bytes.fromhex(leaf[1]).decode("latin-1") if leaf[0] == "bytes" else ""


@dataclass(frozen=True, eq=False)
class Letters(Record):
    """For each leaf: the whole word, its length, characters from either end; for one also bigrams."""

    leaves: int

    def _validate(self) -> None:
        checks.whole("leaves", self.leaves, at_most=_LEAVES)

    @property
    def size(self) -> int:
        """How many codes an output has."""
        return (2 + len(self._places)) * self.leaves + (_BIGRAMS if self.leaves == 1 else 0)

    @classmethod
    def learn(cls, structures: Sequence[Template]) -> Letters:
        """How many leaves there are to look at."""
        most = max(
            (len(list(islice(leaves_of(one), _LEAVES))) for one in structures[:1000]), default=1
        )
        return cls(max(1, min(most, _LEAVES)))

    @property
    def _places(self) -> list[int]:
        start = _ALONE if self.leaves == 1 else _AMONG
        return [*range(start), *range(-_END, 0)]

    def rows(self, outputs: Outputs) -> IntArray:
        """The codes of each output: worked out once for each structure."""
        seen: Any = [0]
        back: Any = np.zeros(len(outputs), dtype=np.int64)
        if outputs.codes is not None:
            seen, back = np.unique(outputs.codes, return_inverse=True)
        texts = [
            [text_of(leaf) for leaf in islice(leaves_of(outputs.structures[k]), self.leaves)]
            for k in seen
        ]
        columns: list[IntArray] = []
        for leaf in range(self.leaves):
            own = [text[leaf] if leaf < len(text) else "" for text in texts]
            columns += self._of_leaf(own)
        return np.asarray(np.column_stack(columns)[back])

    def _of_leaf(self, texts: list[str]) -> list[IntArray]:
        length = np.array([len(text) for text in texts], dtype=np.int64)
        whole = [zlib.crc32(text.encode("utf-8", "surrogatepass")) % (_CODES - 1) for text in texts]
        columns = [np.array(whole, dtype=np.int64) + 1, np.minimum(length, _CODES - 1)]
        width = min(max(int(length.max(initial=1)), 1), 4 * _ALONE)
        ends = np.array([text[-_END:].rjust(_END) for text in texts], dtype=f"U{_END}")
        starts = np.array([text[:width] for text in texts], dtype=f"U{width}")
        from_start = starts.view(np.uint32).reshape(len(texts), width).astype(np.int64)
        from_end = ends.view(np.uint32).reshape(len(texts), _END).astype(np.int64)
        for place in self._places:
            chars = from_end if place < 0 else from_start
            there = length >= -place if place < 0 else length > place
            if place >= width:
                columns.append(np.zeros(len(texts), dtype=np.int64))
                continue
            own = chars[:, place]
            own = np.where(own < _LATIN, own, _LATIN + own % _GROUPS)
            columns.append(np.where(there, own + 1, 0))
        if self.leaves == 1:
            there = from_start[:, 1:] > 0
            pairs = (from_start[:, :-1] * 31 + from_start[:, 1:]) % _BIGRAMS
            found = np.zeros((len(texts), _BIGRAMS), dtype=np.int64)
            row, at = np.nonzero(there)
            found[row, pairs[row, at]] = 1
            columns += list(found.T)
        return columns

    def words(self, column: int, code: int) -> str:
        """A value as a person can check it."""
        places = self._places
        own = (2 + len(places)) * self.leaves
        if column >= own:
            return f"{'a' if code else 'no'} pair of letters in group {column - own}"
        leaf, kind = divmod(column, 2 + len(places))
        of = "" if self.leaves == 1 else f" of item {leaf + 1}"
        if kind == 0:
            return f"the word{of} is in group {code}"
        if kind == 1:
            return f"the length{of} is {code}{' or more' if code == _CODES - 1 else ''}"
        place = places[kind - 2]
        which = f"letter {place + 1}" if place >= 0 else f"letter {-place} from the end"
        if code > _LATIN:
            return f"{which}{of} is one whose code is {code - 1 - _LATIN} modulo {_GROUPS}"
        return f"{which}{of} is {repr(chr(code - 1)) if code else 'missing'}"
