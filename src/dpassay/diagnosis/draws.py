"""Draws for a diagnosis: a bounded number of those that test, kept while they are counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpassay.outputs.canonical import Outputs, concatenate
from dpassay.outputs.resident import AnyOutputs, Resident
from dpassay.sampling.samples import Batch, Sizes

#: Draws a side that are looked at, training or testing, at most; and numbers in them.
_DRAWS, _NUMBERS = 8000, 1 << 20
#: With more structures than these fewer draws are looked at: each of them is read by itself.
_KINDS, _FEW = 500, 1500

Kept: TypeAlias = tuple[tuple[Outputs, Outputs], ...]


@dataclass(frozen=True)
class Keeping:
    """What is made of a block of draws, and a share of the block itself."""

    use: Callable[[Any, Any], Any]
    share: float

    @classmethod
    def of(cls, use: Callable[[Any, Any], Any], sizes: Sizes) -> Keeping:
        """Keep as many of `sizes` draws as a diagnosis looks at."""
        return cls(use, min(1.0, _DRAWS / max(sizes)))

    @property
    def anywhere(self) -> bool:
        """Whether draws may stay where they are."""
        return bool(getattr(self.use, "anywhere", False))

    def __call__(self, p: AnyOutputs, q: AnyOutputs) -> tuple[Any, Kept]:
        return self.use(p, q), ((self._first(p), self._first(q)),)

    def _first(self, outputs: AnyOutputs) -> Outputs:
        width = max(outputs.numbers.shape[1], 1)
        k = min(math.ceil(self.share * len(outputs)), max(_NUMBERS // width, 1))
        return outputs.first(k) if isinstance(outputs, Resident) else outputs[:k].copy()


def joined(kept: Kept) -> Batch | None:
    """All draws that were kept, as far as they are looked at."""
    if not kept:
        return None
    return some(*(concatenate([block[side] for block in kept]) for side in (0, 1)))


def some(p: Outputs, q: Outputs) -> Batch:
    """As many draws as are looked at, over one table of the structures that occur in them."""
    most = min(_DRAWS, max(_NUMBERS // max(p.numbers.shape[1], 1), 200))
    if len(p.structures) + len(q.structures) > _KINDS:
        most = min(most, _FEW)
    return Batch.of(_used(p[:most]), _used(q[:most]))


def _used(side: Outputs) -> Outputs:
    """Without structures that do not occur."""
    if side.codes is None:
        return side
    seen, codes = np.unique(side.codes, return_inverse=True)
    kinds = tuple(side.structures[k] for k in seen)
    return Outputs(side.numbers, kinds, codes.astype(np.int32), side.rest, side.containers)
