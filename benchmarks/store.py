"""Draws that take long: shared out over workers, and kept in a store as they come."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import dpassay as dp
from benchmarks.tables import markdown, table

PAIR = (0.0, 1.0)


class Slow:
    """A function that takes its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, x: float, rng: np.random.Generator) -> float:
        """One output."""
        time.sleep(self.seconds)
        return float(x + rng.laplace())


def seconds_of(cost: float, n: int, workers: int, store: Path | None = None) -> float:
    way = dp.Sampling(workers=workers, store=store, progress=False)
    start = time.perf_counter()
    dp.draw(dp.from_function(Slow(cost)), PAIR, n=n, rng=0, sampling=way)
    return time.perf_counter() - start


@table("store")
def store() -> str:
    """Seconds to draw with 1 and 8 workers, into a store, and to read it all back."""
    rows = []
    for cost, n in ((0.002, 1000), (0.02, 200), (0.2, 24)):
        one, eight = (seconds_of(cost, n, workers) for workers in (1, 8))
        with tempfile.TemporaryDirectory() as folder:
            kept = seconds_of(cost, n, 8, Path(folder))
            parts = len(list((Path(folder) / "parts").iterdir()))
            read = seconds_of(cost, n, 8, Path(folder))
        rows.append(
            [
                f"{1000 * cost:g} ms",
                n,
                f"{one:.2f}",
                f"{eight:.2f}",
                f"{one / eight:.1f}",
                f"{kept:.2f}",
                parts,
                f"{read:.2f}",
            ]
        )
    headings = [
        "a draw takes",
        "n",
        "1 worker",
        "8 workers",
        "times as fast",
        "8, into a store",
        "parts",
        "read back",
    ]
    return markdown(headings, rows)
