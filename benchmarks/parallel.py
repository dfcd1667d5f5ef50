"""Many seeded runs of one experiment, on all cores, with a progress bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from dpassay.sampling.progress import Progress

T = TypeVar("T")


def runs(
    experiment: Callable[..., T], seeds: Sequence[int], *arguments: Any, label: str = "runs"
) -> list[T]:
    """`experiment(seed, *arguments)` for every seed, in order."""
    with (
        ProcessPoolExecutor(int(os.environ.get("DPASSAY_WORKERS", os.cpu_count() or 1))) as pool,
        Progress(len(seeds), label, None, "runs") as progress,
    ):
        results = []
        for done in pool.map(
            _Call(experiment, arguments), seeds, chunksize=max(1, len(seeds) // 64)
        ):
            results.append(done)
            progress.advance(1)
        return results


class _Call:
    def __init__(self, experiment: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.experiment, self.arguments = experiment, arguments

    def __call__(self, seed: int) -> Any:
        return self.experiment(seed, *self.arguments)
