"""Measure on a shared, noisy machine: interleaved runs, ratios, medians with their spread.

Candidates take turns, so that a slow minute slows all of them; what is reported is the ratio of
medians to the first candidate, which the noise mostly leaves alone. Peak memory is read from a
child process that does nothing else.
"""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of one candidate: median, quartiles, and the ratio to the first candidate."""

    name: str
    median: float
    low: float
    high: float
    ratio: float


def compare(candidates: Mapping[str, Callable[[], Any]], *, repeats: int = 5) -> list[Timing]:
    """Time the candidates in turns; the first one is the unit of the ratios."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for run in candidates.values() if repeats > 1 else ():
        run()  # warm caches and lazy imports
    for _ in range(repeats):
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    unit = statistics.median(next(iter(seconds.values())))
    rows = []
    for name, times in seconds.items():
        median = low = high = times[0]
        if repeats > 1:
            low, median, high = statistics.quantiles(times, n=4, method="inclusive")
        rows.append(Timing(name, median, low, high, median / unit))
    return rows


def peak_memory(run: Callable[[], Any]) -> float:
    """Peak resident memory of `run` in MB, above that of an idle child process."""
    context = multiprocessing.get_context("fork")
    peaks = []
    for task in (_nothing, run):
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=_report_peak, args=(task, send))
        child.start()
        peaks.append(float(receive.recv()))
        child.join()
    return peaks[1] - peaks[0]


def _nothing() -> None:
    return


def _report_peak(run: Callable[[], Any], send: Any) -> None:
    run()
    unit = 1024.0 if sys.platform != "darwin" else 1024.0**2
    send.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
