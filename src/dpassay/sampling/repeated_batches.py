"""Batches that are brought to a monitor twice.

Only the first rows of a batch are looked at, in their order. Independent draws from any distribution come
out as x₁, …, x_k with probability at most Π c(x_i)/k, where c counts how often a value is among them: the
likelihood is largest at the frequencies themselves. A batch is remembered if that is below 2⁻³⁰/(1 + N)²,
with N remembered before, so that no batch ever is one of those before by chance, but for a probability of
about 2⁻³⁰ log N.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

import numpy as np

from dpassay._typing import IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.sampling.dependence import row_marks

#: Rows that are looked at; and how unlikely they must be, in bits.
_HEAD, _BITS = 64, 30.0

#: What is said of a batch that comes again.
AGAIN = (
    "draws were brought that had been brought before, digit for digit and in the same order: each must "
    "be a run of its own, or the evidence counts what it has counted already. Likely causes: a batch was "
    "passed twice, or a generator is made anew with the same seed for every batch"
)


class SeenBatches:
    """Digests of the batches that were brought."""

    def __init__(self, digests: Iterable[int] = ()) -> None:
        self.digests = set(digests)

    def again(self, sides: Sequence[Outputs | None]) -> bool:
        """Whether one of the sides, or both together, was brought before; it is from now on."""
        sizes = [0 if side is None else min(len(side), _HEAD) for side in sides]
        if sum(size * math.log2(max(size, 1)) for size in sizes) < _BITS:
            return False  # too few to tell
        heads = [None if side is None else row_marks(side[:_HEAD]) for side in sides]
        bits = [0.0 if head is None else _surprise(head) for head in heads]
        sure = _BITS + 2 * math.log2(1 + len(self.digests))
        found = {
            _digest(name, head)
            for name, head, size in zip((b"p", b"q"), heads, bits, strict=True)
            if head is not None and size >= sure
        }
        if not found and sum(bits) >= sure:
            found = {_digest(b"both", *(head for head in heads if head is not None))}
        repeated = not found.isdisjoint(self.digests)
        self.digests |= found
        return repeated


def _surprise(head: IntArray) -> float:
    """−log₂ of the largest probability that any distribution gives these draws."""
    _, counts = np.unique(head, return_counts=True)
    return float(np.sum(counts * np.log2(len(head) / counts)))


def _digest(name: bytes, *heads: IntArray) -> int:
    content = name + b"".join(head.tobytes() for head in heads)
    return int.from_bytes(hashlib.blake2b(content, digest_size=6).digest(), "big")
