"""Copied streams: a fixed seed in the mechanism, a state that comes again, noticed by equal outputs.

A generator that is made anew with a fixed seed inside the mechanism, or a random state that is copied to
every worker or comes back when a run is started again, returns the same outputs twice. Three things are
looked at: runs that begin alike, outputs that come again too regularly, and calls that return one value.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, IntArray
from dpassay.errors import DependentDraws
from dpassay.outputs.canonical import check_containers
from dpassay.outputs.resident import AnyOutputs, Resident
from dpassay.outputs.templates import number_columns
from dpassay.privacy.pairs import Pair
from dpassay.sampling.dependence import copied

#: Bytes at the beginning of a run that are compared to find copied streams, and the lengths at which two
#: runs are compared that are not equally long.
_HEAD = 2048
_LENGTHS = (16, 64, 256, 1024)
#: The most different outputs a side that are watched for coming again.
_WATCHED = 4096


@dataclass(frozen=True)
class Start:
    """The first rows of a run, and how improbable a chance repetition of them is."""

    rows: int
    content: bytes
    log_chance: float  # log-probability that an independent run begins with the same outputs


@dataclass(frozen=True)
class Head:
    """How a run of draws begins: at a few lengths, and as a whole."""

    starts: tuple[Start, ...]
    constant: bytes | None  # the one output of a head that has no other
    containers: frozenset[str]

    @property
    def rows(self) -> int:
        """How long it is."""
        return self.starts[-1].rows


def head(outputs: AnyOutputs) -> Head:
    """The head of a run of draws."""
    if isinstance(outputs, Resident):
        outputs = outputs.first(_HEAD // 8)  # of doubles
    row_bytes = outputs.numbers.shape[1] * outputs.numbers.itemsize
    rows = min(len(outputs), max(256, _HEAD // max(row_bytes, 1)))
    numbers = np.ascontiguousarray(outputs.numbers[:rows])
    names: list[str] = []
    if outputs.codes is not None:
        names = [repr(outputs.structures[code]) for code in outputs.codes[:rows]]
    distinct = False
    if numbers.shape[1] == 1 and not names and rows > 1:
        ordered = np.sort(numbers[:, 0])
        distinct = not np.any(ordered[1:] == ordered[:-1])  # as with every continuous output
    only, starts = None, []
    for length in (*(one for one in _LENGTHS if one < rows), rows):
        part = numbers[:length]
        content = part.tobytes() + "".join(names[:length]).encode("utf-8", "surrogatepass")
        if distinct:
            chance = -length * math.log(length)
        else:
            counts = _often(part, row_bytes, names[:length])
            chance = float(np.sum(counts * np.log(counts / length)))
            if length == rows and counts.size == 1:
                # the columns of this output alone: how many there are depends on what else came out
                template = outputs.structure_of(0)
                held = numbers[:1, list(number_columns(template))]
                only = held.tobytes() + repr(template).encode()
        digest = hashlib.blake2b(content, digest_size=16).digest()
        starts.append(Start(length, digest, chance))
    return Head(tuple(starts), only, outputs.containers)


def _often(numbers: AnyArray, row_bytes: int, names: list[str]) -> IntArray:
    """How often each different row comes."""
    labels = numbers.view(f"V{row_bytes}").ravel().tolist() if row_bytes else [b""] * len(numbers)
    if names:
        labels = list(zip(labels, names, strict=True))
    return np.array(list(Counter(labels).values()))


@dataclass(frozen=True)
class Origin:
    """How draws were made, by which causes of copies are told apart."""

    calls: bool = False  # every output is a call
    workers: bool = False  # drawn by workers
    stored: bool = False  # some perhaps in an earlier run, into a store
    takes_rng: bool = True  # the mechanism is given a generator

    def explained(self, cause: str) -> str:
        """The likely cause and its remedy."""
        if self.workers:
            cause += "; or its random state was copied to every worker"
        if self.stored:
            cause += "; or its random state starts again with every run that draws into the store"
        rng = "the `rng` that it is given, and from nothing else"
        if not self.takes_rng:
            rng = "a generator that it is given: write f(data, rng), which dp.from_function accepts"
        alone = "; what cannot take one runs with workers=1" if self.workers else ""
        return (
            f"the draws are not independent. The likely cause: {cause}. "
            f"Let the mechanism draw from {rng}{alone}"
        )


_ANY = Origin()
#: Causes of copies, by what is seen.
_STARTS_AGAIN = (
    "inside the mechanism a generator is made, or the global one is seeded, with a fixed seed (0, 42 …) "
    "or with the time, which was the same at two calls"
)
_SAME_SEEDS = (
    "inside the mechanism a generator is made with seeds that come again, such as the time, which is the "
    "same for several calls, or a number out of a small range"
)


class CopyCheck:
    """Notices runs that are copies of each other, or hold outputs in ways that do not agree."""

    #: A repetition this improbable is no accident (log-probability, all pairs of runs counted).
    LOG_LIMIT = math.log(1e-12)

    def __init__(self, containers: frozenset[str] = frozenset()) -> None:
        self.containers = containers  # of both sides, and of earlier stages
        self._seen: tuple[dict[tuple[int, bytes], int], ...] = ({}, {})
        self._constant: list[bytes | None] = [None, None]
        self._varied = [False, False]  # whether a run held different outputs
        self._count = 0
        self._watched = (_Watched(), _Watched())

    def add(
        self,
        heads: tuple[Head, Head],
        data: Pair,
        origin: Origin = _ANY,
    ) -> None:
        """Raise DependentDraws if a run begins as one before it, BadOutput if it does not fit."""
        self._count += 1
        for side, found in enumerate(heads):
            self.containers |= found.containers
            check_containers(self.containers)
            self._varied[side] |= found.constant is None
            for start in found.starts:
                before = self._seen[side].setdefault((start.rows, start.content), self._count)
                chance = start.log_chance + 2 * math.log(self._count)
                if before != self._count and chance < self.LOG_LIMIT:
                    raise DependentDraws(
                        f"runs {before} and {self._count} of the draws on {checks.shown(data[side])} "
                        "begin with the same outputs in the same order: "
                        + origin.explained(_STARTS_AGAIN)
                    )
            if found.constant is not None and found.rows >= 16:
                first = self._constant[side]
                if first is None:
                    self._constant[side] = found.constant
                elif first != found.constant and not self._varied[side]:
                    if origin.calls:
                        raise DependentDraws(
                            f"many calls in a row on {checks.shown(data[side])} return one and the same "
                            f"output, and later ones another: {origin.explained(_SAME_SEEDS)}"
                        )
                    raise DependentDraws(
                        f"on {checks.shown(data[side])} every call returns one value repeated, and "
                        "another one at the next call: the noise is drawn once per call, not once "
                        "per output (pass size= to it, or wrap the function: dp.from_function)"
                    )

    def watch(
        self,
        marks: tuple[IntArray, IntArray],
        data: Pair,
        origin: Origin = _ANY,
    ) -> None:
        """Raise DependentDraws if outputs (their marks) come again more regularly than by chance."""
        for side, found in enumerate(marks):
            times = self._watched[side].add(found)
            if times is not None:
                raise DependentDraws(
                    f"too many different outputs on {checks.shown(data[side])} come exactly {times} "
                    f"times, digit for digit: {origin.explained(_SAME_SEEDS)}"
                )


class _Watched:
    """How often outputs come, of those whose marks are small: all copies of an output or none.

    The bound on the marks halves whenever there are too many, so that memory stays constant and what is
    left is a sample of the distinct outputs, each with all its copies.
    """

    def __init__(self) -> None:
        self._marks = np.zeros(0, dtype=np.uint64)
        self._counts = np.zeros(0, dtype=np.int64)
        self._bound = np.uint64(2**64 - 1)
        self._rows, self._looked = 0, 32

    def add(self, marks: IntArray) -> int | None:
        """How often copied outputs come, if there are any."""
        new, often = np.unique(marks.view(np.uint64), return_counts=True)
        small = new <= self._bound
        both, place = np.unique(np.concatenate([self._marks, new[small]]), return_inverse=True)
        counts = np.zeros(both.size, dtype=np.int64)
        np.add.at(counts, place, np.concatenate([self._counts, often[small]]))
        while both.size > _WATCHED:
            self._bound = self._bound >> np.uint64(1)
            kept = both <= self._bound
            both, counts = both[kept], counts[kept]
        self._marks, self._counts = both, counts
        self._rows += len(marks)
        if self._rows < 2 * self._looked:
            return None
        self._looked = self._rows
        return copied(counts)
