"""A cheap look for draws that are not independent. It warns; it proves nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpassay._typing import FloatArray
from dpassay.sampling.outputs import Outputs

#: Rows looked at, and the z-score past which a correlation is no accident.
_ROWS, _Z = 2_000, 6.0


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
    steps = np.diff(values)
    if np.all(steps >= 0) or np.all(steps <= 0):
        return 0.0  # constant, or a sorted file: its order says nothing about the draws
    order = np.argsort(values)
    ordered = values[order]
    ranks = np.empty(values.size)  # ties share the place of the first of them
    ranks[order] = np.searchsorted(ordered, ordered)
    centred = ranks - ranks.mean()
    return float(np.dot(centred[1:], centred[:-1]) / np.dot(centred, centred))


def _shared(p: FloatArray, q: FloatArray) -> int:
    a, b = np.sort(p[:, 0]), np.sort(q[:, 0])
    if np.any(a[1:] == a[:-1]) or np.any(b[1:] == b[:-1]):
        return 0  # repeats within a side: discrete outputs or atoms, nothing to see
    place = np.minimum(np.searchsorted(a, b), a.size - 1)
    common = int(np.count_nonzero(a[place] == b))
    return common if common > 2 else 0
