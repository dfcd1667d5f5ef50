"""Threads, processes and Dask: draws a second, what the whole call adds, and what a task costs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.harness import compare
from benchmarks.tables import markdown, table

PAIR = (0.0, 1.0)


class Steps:
    """A function of a hundred microseconds of Python, as a mechanism that is no array code."""

    def __call__(self, x: float, rng: np.random.Generator) -> float:
        """One output."""
        return float(x + sum(float(rng.normal()) for _ in range(50)))


class Small:
    """A mechanism of tasks that cost nothing, to see what a task costs."""

    block = 16

    def __call__(self, x: float, size: int, rng: np.random.Generator) -> Any:
        """Noise."""
        return x + rng.laplace(size=size)


def engines_of(held: contextlib.ExitStack) -> dict[tuple[str, int], Executor | None]:
    """One core, and every engine with one worker and with two, all started."""
    from distributed import LocalCluster

    found: dict[tuple[str, int], Executor | None] = {("this process", 1): None}
    for workers in (1, 2):
        found["threads", workers] = held.enter_context(ThreadPoolExecutor(workers))
        found["processes", workers] = held.enter_context(ProcessPoolExecutor(workers))
        cluster = held.enter_context(
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
        )
        client = held.enter_context(cluster.get_client())
        found["Dask", workers] = client.get_executor()
    return found


def bare(mechanism: Any, n: int) -> None:
    """The same draws in one process, a block at a time, and nothing done with them."""
    for start in range(0, n, 1 << 16):
        for side, x in enumerate(PAIR):
            mechanism(x, min(1 << 16, n - start), np.random.default_rng((start, side)))


def tasks_a_second(executor: Executor | None, verdict: dp.Verdict, tasks: int = 500) -> float:
    """How many tasks a second go out, are counted and come back, where drawing costs nothing."""
    how = dp.Sampling(executor=executor, progress=False)
    start = time.perf_counter()
    dp.replay(verdict, Small(), n=tasks * Small.block, rng=1, sampling=how)
    return tasks / (time.perf_counter() - start)


@table("engines")
def engines() -> str:
    """Draws a second and whole call ÷ drawing alone, with 1 and 2 workers; tasks a second."""
    verdict = dp.audit(dp.zoo.Laplace(1.0), PAIR, "eps=0.5", n=20_000, rng=0, loss="values")
    cases: list[tuple[str, Any, int]] = [
        ("array code", dp.zoo.Laplace(1.0), 2_000_000),
        ("0.1 ms a call", dp.from_function(Steps()), 3000),
    ]
    rows: dict[tuple[str, int], list[str]] = {}
    with contextlib.ExitStack() as held:
        found = engines_of(held)
        for _, mechanism, n in cases:
            runs: dict[str, Callable[[], Any]] = {"drawing alone": partial(bare, mechanism, n)}
            for (name, workers), executor in found.items():
                how = dp.Sampling(executor=executor, progress=False)
                given = {"claim": "eps=0.5", "n": n, "rng": 0, "loss": "values", "sampling": how}
                runs[f"{name} {workers}"] = partial(dp.audit, mechanism, PAIR, **given)
            for engine, timing in zip(found, compare(runs, repeats=3)[1:], strict=True):
                speed = f"{2 * n / timing.median:,.0f}"
                rows.setdefault(engine, []).extend([speed, f"{timing.ratio:.2f}"])
        for engine, executor in found.items():
            rows[engine].append(f"{tasks_a_second(executor, verdict):,.0f}")
    headings = ["engine", "workers"]
    for name, _, _ in cases:
        headings += [f"{name}: draws/s", "÷ drawing"]
    return markdown(
        [*headings, "tasks/s"], [[name, workers, *row] for (name, workers), row in rows.items()]
    )
