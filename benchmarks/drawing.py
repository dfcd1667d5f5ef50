"""The cost of drawing, against the bare random generator: the floor under everything else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import dpassay as dp
from benchmarks.harness import Timing, compare, peak_memory


def drawing(n: int = 2_000_000) -> Iterator[tuple[str, list[Timing], dict[str, float]]]:
    """`dp.draw` on zoo mechanisms against calling the mechanism bare."""
    for mechanism in (dp.zoo.Laplace(), dp.zoo.Gaussian(), dp.zoo.RandomizedResponse()):
        pair = mechanism.pair
        candidates = {
            "bare": lambda m=mechanism, pair=pair: [
                m(x, n, np.random.default_rng(k)) for k, x in enumerate(pair)
            ],
            "dp.draw": lambda m=mechanism, pair=pair: dp.draw(m, pair, n=n, rng=0),
            "dp.draw, 2 workers": lambda m=mechanism, pair=pair: dp.draw(
                m, pair, n=n, rng=0, sampling=dp.Sampling(workers=2)
            ),
        }
        memory = {name: peak_memory(run) for name, run in candidates.items()}
        yield f"{n:,} draws a side of {mechanism}", compare(candidates), memory
