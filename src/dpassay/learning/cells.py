"""For bounds on δ from above: which outputs are cells of their own, and how often each comes later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpassay._typing import IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.layout import Layout, learn
from dpassay.sampling.samples import Batch


@dataclass(frozen=True, eq=False)
class Cells:
    """The keys of a layout that leave no number free. All other outputs are everything else."""

    layout: Layout
    closed: npt.NDArray[np.bool_]

    @classmethod
    def learn(cls, batch: Batch) -> Cells:
        """Outputs that repeat in draws that may be looked at; combinations stay whole."""
        return cls.of(learn(batch.p, batch.q, whole=True, thorough=True)[0])

    @classmethod
    def of(cls, layout: Layout) -> Cells:
        """The cells of a layout."""
        plain = np.array([not any(part.open) for part in layout.parts], dtype=bool)
        closed = plain[layout.parts_of]
        for key in np.flatnonzero(~closed):
            closed[key] = not layout.free(int(key))
        return cls(layout, closed)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.closed))

    def __call__(self, p: Outputs, q: Outputs) -> IntArray:
        """Hits of every cell on both sides, a row each; everything else comes last."""
        return np.array([self.fold(self.layout.sort(side).counts()) for side in (p, q)])

    def fold(self, counts: IntArray) -> IntArray:
        """Counts of keys, and of outputs in none, as counts of cells and of everything else."""
        own = counts[:-1][self.closed]
        return np.append(own, counts.sum() - own.sum())


def outside(counts: IntArray) -> float:
    """The larger share of draws in no cell, of the two sides."""
    return float(np.max(counts[:, -1] / np.maximum(counts.sum(axis=1), 1)))


def why_trivial(share: float) -> str:
    """Why a bound from above is near 1, given the share of outputs in no cell; empty if it is not."""
    if share < 0.5:
        return ""
    said = "the outputs" if share > 0.999 else f"{share:.0%} of the outputs"
    return (
        f"{said} are no values that repeat, and no number of draws bounds δ from above for those; round "
        "in the release itself, which can only lower δ, to show more"
    )
