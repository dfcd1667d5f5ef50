"""Repeated draws: copied random streams, batches that a monitor gets twice, draws that were used before.

A generator that is made anew with a fixed seed inside the mechanism, or a random state that is copied to
every worker or starts again with a run, returns the same outputs twice. `CopyCheck` looks for three
signs: runs that begin with the same outputs, outputs that are repeated too regularly, and calls that
return one value. `SeenBatches` recognises batches, `drawn_before` the draws of an earlier analysis.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dpassay import validation as checks
from dpassay._typing import IntArray
from dpassay.errors import DependentDraws
from dpassay.outputs.canonical import Outputs, check_containers
from dpassay.outputs.device_arrays import AnyOutputs, DeviceOutputs
from dpassay.outputs.templates import Template, number_columns
from dpassay.privacy.relations import Pair

#: Distinct repeated values from which on repeats are looked into.
MANY = 20
#: Rows at the beginning of a run that are compared to find copied streams, and the lengths at which two
#: runs are compared that are not equally long.
_HEAD, _LENGTHS = 256, (16, 64)
#: A repetition this improbable is no accident (log-probability, all pairs of runs counted).
_LOG_LIMIT = math.log(1e-12)
#: The most different outputs a side that are watched for coming again.
_WATCHED = 4096
#: Rows of a batch that are looked at, and how improbable they must be, in bits.
_BATCH_ROWS, _BITS = 64, 30.0
#: Rows of either side that a fingerprint keeps.
_KEPT = 64


def row_hashes(side: Outputs) -> IntArray:
    """A hash of each output, in any order of the draws and any process."""
    parts = [np.ascontiguousarray(side.numbers, dtype=float) + 0.0]
    if side.rest is not None:
        parts.append(side.rest)
    if side.codes is not None:
        seen, place = np.unique(side.codes, return_inverse=True)
        hashes = np.array([_structure_hash(side.structures[code]) for code in seen.tolist()])
        parts.append(hashes[place][:, None])
    matrix = parts[0] if len(parts) == 1 else np.ascontiguousarray(np.hstack(parts))
    if not matrix.shape[1]:
        return np.zeros(len(side), dtype=np.int64)
    mixed = np.zeros(len(matrix), dtype=np.uint64)
    for column in matrix.view(np.uint64).T:
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)  # modulo 2⁶⁴
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


@lru_cache(maxsize=1 << 14)
def _structure_hash(template: Template) -> float:
    digest = hashlib.blake2b(repr(template).encode(), digest_size=6).digest()
    return float(int.from_bytes(digest, "big"))


def distinct(side: Outputs) -> tuple[IntArray, IntArray]:
    """The hashes of the different outputs, and how often each of them comes."""
    return np.unique(row_hashes(side), return_counts=True)


def copied(counts: IntArray) -> int | None:
    """How often copied outputs come, from how often each different output does; None if none are.

    That is the k at which log-convexity fails by five standard errors; see `repeated_rows`.
    """
    if np.count_nonzero(counts > 1) < MANY:
        return None
    often = np.bincount(counts[counts < 1000], minlength=3).astype(float)
    often = np.append(often, [0.0, 0.0])
    low, high = often - 5 * np.sqrt(often), often + 5 * np.sqrt(often) + 12
    for k in range(2, often.size - 1):
        # (k!)² / ((k−1)!(k+1)!) = k/(k+1)
        if low[k] > 0 and low[k] ** 2 * k / (k + 1) > high[k - 1] * high[k + 1]:
            return k
    return None


# --- while draws are made


@dataclass(frozen=True)
class Head:
    """How a run of draws begins."""

    #: At a few lengths: the rows, a digest of them, and the log-probability that an independent run
    #: begins with the same outputs.
    starts: tuple[tuple[int, bytes, float], ...]
    constant: bytes | None  # the one output of a head that has no other
    containers: frozenset[str]
    hashes: IntArray | None = field(default=None, compare=False)  # of all outputs, if asked for


def head(outputs: AnyOutputs, with_hashes: bool = False) -> Head:
    """How a run of draws begins; `with_hashes` of all outputs, to count their repeats."""
    if isinstance(outputs, DeviceOutputs):
        outputs = outputs.first(_HEAD)
    small = outputs.numbers.shape[1] * outputs.numbers.itemsize < 8  # few bits a row: more rows
    most = 8 * _HEAD if small else _HEAD
    whole = row_hashes(outputs) if with_hashes else None
    hashes = row_hashes(outputs[:most]) if whole is None else whole[:most]
    rows = len(hashes)
    ordered = np.sort(hashes)
    different = 1 + np.count_nonzero(ordered[1:] != ordered[:-1])
    starts = []
    for length in (*(one for one in _LENGTHS if one < rows), rows):
        if different == rows:  # as with every continuous output
            log_chance = -length * math.log(max(length, 1))
        else:
            log_chance = _log_chance(hashes[:length])
        digest = hashlib.blake2b(hashes[:length].tobytes(), digest_size=16).digest()
        starts.append((length, digest, log_chance))
    constant = None
    if different == 1:
        # the columns of this output alone: how many there are depends on what else came out
        template = outputs.structure_of(0)
        held = (
            outputs.numbers[:1, list(number_columns(template))] + 0.0
        )  # of −0.0 too, as `row_hashes`
        constant = held.tobytes() + repr(template).encode()
    return Head(tuple(starts), constant, outputs.containers, whole)


def _log_chance(hashes: IntArray) -> float:
    """The largest log-probability that any distribution gives to these draws: its values' frequencies."""
    _, counts = np.unique(hashes, return_counts=True)
    return float(np.sum(counts * np.log(counts / hashes.size)))


@dataclass(frozen=True)
class DrawMethod:
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


_ANY = DrawMethod()
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

    def __init__(self, containers: frozenset[str] = frozenset()) -> None:
        self.containers = containers  # of both sides, and of earlier stages
        self._seen: tuple[dict[tuple[int, bytes], int], ...] = ({}, {})
        self._constant: list[bytes | None] = [None, None]
        self._varied = [False, False]  # whether a run held different outputs
        self._count = 0
        self._repeats = (_RepeatCounts(), _RepeatCounts())

    def add(self, heads: tuple[Head, Head], data: Pair, method: DrawMethod = _ANY) -> None:
        """Raise DependentDraws if a run repeats one before it, BadOutput if it does not fit."""
        self._count += 1
        for side, found in enumerate(heads):
            self.containers |= found.containers
            check_containers(self.containers)
            if sign := self._sign(found, side, method):
                raise DependentDraws(sign.format(input=checks.shown(data[side])))

    def _sign(self, found: Head, side: int, method: DrawMethod) -> str | None:
        """A sentence on what a run repeats, to be filled in with the input; None if there is nothing."""
        for rows, content, log_chance in found.starts:
            before = self._seen[side].setdefault((rows, content), self._count)
            if before != self._count and log_chance + 2 * math.log(self._count) < _LOG_LIMIT:
                return (
                    f"runs {before} and {self._count} of the draws on {{input}} begin with the same "
                    f"outputs in the same order: {method.explained(_STARTS_AGAIN)}"
                )
        self._varied[side] |= found.constant is None
        if not self._varied[side] and found.starts[-1][0] >= 16:
            first = self._constant[side] = self._constant[side] or found.constant
            if first != found.constant and method.calls:
                return (
                    "many calls in a row on {input} return one and the same output, and later ones "
                    f"another: {method.explained(_SAME_SEEDS)}"
                )
            if first != found.constant:
                return (
                    "on {input} every call returns one value repeated, and another one at the next call: "
                    "the noise is drawn once per call, not once per output (pass size= to it, or wrap "
                    "the function: dp.from_function, --per-call on the command line)"
                )
        if found.hashes is not None and (times := self._repeats[side].add(found.hashes)):
            return (
                f"too many different outputs on {{input}} come exactly {times} times, digit for digit: "
                f"{method.explained(_SAME_SEEDS)}"
            )
        return None


class _RepeatCounts:
    """How often outputs are repeated, of those whose hashes are small: all copies of an output or none.

    The bound on the hashes halves whenever there are too many, so that memory stays constant and what is
    left is a sample of the distinct outputs, each with all its copies.
    """

    def __init__(self) -> None:
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._counts = np.zeros(0, dtype=np.int64)
        self._bound = np.uint64(2**64 - 1)
        self._rows, self._looked = 0, 32

    def add(self, hashes: IntArray) -> int | None:
        """How often copied outputs come, if there are any."""
        new, often = np.unique(hashes.view(np.uint64), return_counts=True)
        small = new <= self._bound
        both, place = np.unique(np.concatenate([self._hashes, new[small]]), return_inverse=True)
        often = np.concatenate([self._counts, often[small]])
        counts = np.bincount(place, often).astype(np.int64)
        while both.size > _WATCHED:
            self._bound = self._bound >> np.uint64(1)
            kept = both <= self._bound
            both, counts = both[kept], counts[kept]
        self._hashes, self._counts = both, counts
        self._rows += len(hashes)
        if self._rows < 2 * self._looked:
            return None
        self._looked = self._rows
        return copied(counts)


# --- batches that a monitor gets twice

#: What is said of a batch that is given again.
AGAIN = (
    "draws were given that had been given before, digit for digit and in the same order: each must be a "
    "run of its own, or the evidence counts what it has counted already. Likely causes: a batch was "
    "passed twice, or a generator is made anew with the same seed for every batch"
)


class SeenBatches:
    """Digests of the batches that were given, by their first rows in order.

    Independent draws from any distribution come out as x₁, …, x_k with probability at most Π c(x_i)/k,
    where c counts how often a value is among them: the likelihood is largest at the frequencies
    themselves. A batch is remembered if that is below 2⁻³⁰/(1 + N)², with N remembered before, so that no
    batch equals one before by chance, except with a probability of about 2⁻³⁰ log N.
    """

    def __init__(self, digests: Iterable[int] = ()) -> None:
        self.digests = set(digests)

    def again(self, sides: Sequence[Outputs | None]) -> bool:
        """Whether one of the sides, or both together, was given before. Remembers them."""
        given = [(name, s[:_BATCH_ROWS]) for name, s in zip((b"p", b"q"), sides, strict=True) if s]
        if sum(len(side) * math.log2(len(side)) for _, side in given) < _BITS:
            return False  # too few to tell
        heads = [(name, row_hashes(side)) for name, side in given]
        bits = [-_log_chance(head) / math.log(2) for _, head in heads]
        needed = _BITS + 2 * math.log2(1 + len(self.digests))
        found = {_digest(*one) for one, size in zip(heads, bits, strict=True) if size >= needed}
        if not found and sum(bits) >= needed:
            found = {_digest(b"both", *(head for _, head in heads))}
        repeated = not found.isdisjoint(self.digests)
        self.digests |= found
        return repeated


def _digest(name: bytes, *heads: IntArray) -> int:
    content = name + b"".join(head.tobytes() for head in heads)
    return int.from_bytes(hashlib.blake2b(content, digest_size=6).digest(), "big")


# --- draws of an earlier analysis


def fingerprint_of(p: Outputs, q: Outputs) -> str:
    """A digest of all rows in any order; and of either side n, f₁, f₂ and a few rows that came once.

    Those are the rows with the smallest hashes. Fresh draws from the same distribution hit a row that
    came once in n draws with a probability of about 2 f₂ / (n f₁) each, with f_k the number of different
    rows that came k times (Good 1953, doi:10.1093/biomet/40.3-4.237). If many more of the rows kept are
    there, draws came before. Of outputs that repeat often that cannot be told.
    """
    digest = hashlib.sha256()
    kept = []
    for side in (p, q):
        values, counts = distinct(side)
        digest.update(np.repeat(values, counts).tobytes())
        alone = np.sort(_upper_half(values[counts == 1]))
        few = base64.b64encode(alone[:_KEPT].astype("<u4").tobytes()).decode()
        kept.append(f"{len(side)},{alone.size},{np.count_nonzero(counts == 2)},{few}")
    return "|".join([digest.hexdigest(), *kept])


def drawn_before(fingerprint: str, p: Outputs, q: Outputs) -> bool:
    """Whether many of these draws are among those of the fingerprint."""
    now = np.unique(_upper_half(np.concatenate([row_hashes(p), row_hashes(q)])))
    chance, found = 0.0, 0
    for line in fingerprint.split("|")[1:]:
        try:
            n, once, twice = (int(part) for part in line.split(",")[:3])
            hashes = np.frombuffer(base64.b64decode(line.split(",")[3]), dtype="<u4")
        except (ValueError, IndexError):
            return False  # not one of ours
        if n > 0 and once > 0:
            rate = 2 * (twice + 5 * math.sqrt(max(twice, 0)) + 12) / (n * once)
            chance += hashes.size * min(1.0, (len(p) + len(q)) * rate)
            found += int(np.count_nonzero(np.isin(hashes, now)))
    return found > chance + 6 * math.sqrt(chance) + 4


def _upper_half(hashes: IntArray) -> IntArray:
    """The upper half of a hash, which is mixed well."""
    return np.asarray(hashes.view(np.uint64) >> np.uint64(32), dtype=np.int64)
