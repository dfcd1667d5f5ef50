"""A cheap look for draws that are not independent. It warns; it proves nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpassay._typing import FloatArray
from dpassay.sampling.outputs import Outputs

#: Rows looked at, and the z-score past which a correlation is no accident.
_ROWS, _Z = 50_000, 6.0


def symptoms(p: Outputs, q: Outputs) -> Iterator[str]:
    """What looks dependent about the draws, in words."""
    if not (p.is_plain and q.is_plain) or min(len(p), len(q)) < 20:
        return
    first, second = (side.numbers[:_ROWS].astype(float) for side in (p, q))
    for name, side in (("first", first), ("second", second)):
        for column in range(min(side.shape[1], 8)):
            r = _lag_one(side[:, column])
            if abs(r) * math.sqrt(len(side)) > _Z:
                yield (
                    f"successive draws on the {name} input are correlated (lag-1 rank correlation "
                    f"{r:+.2f} over {len(side):,} draws). Every guarantee assumes independent draws"
                )
                break
    if shared := _shared(first, second):
        yield (
            f"{shared:,} outputs on the second input repeat, digit for digit, outputs on the first "
            "although neither side repeats itself: the two sides seem to share their randomness"
        )


def _lag_one(values: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    if values[order[0]] == values[order[-1]] or np.all(np.diff(order) == 1):
        return 0.0  # constant, or a sorted file: its order says nothing about the draws
    if np.all(np.diff(order) == -1):
        return 0.0
    _, ranks = np.unique(values, return_inverse=True)  # ties share a rank
    centred = ranks - ranks.mean()
    spread = float(np.sum(centred**2))
    return float(np.sum(centred[1:] * centred[:-1]) / spread) if spread else 0.0


def _shared(p: FloatArray, q: FloatArray) -> int:
    a, b = (np.unique(side[:, 0]) for side in (p, q))
    if len(a) < len(p) or len(b) < len(q):
        return 0  # repeats within a side: discrete outputs or atoms, nothing to see
    common = int(np.intersect1d(a, b, assume_unique=True).size)
    return common if common > 2 else 0
