"""The list of figures and tables, seeded runs that survive an interruption, and what is written.

A figure is a function of a `Lab` that returns an `Outcome`. The lab runs experiments,
`experiment(seed, *arguments)`, on all cores, and keeps every single run in `.cache`, under the settings,
the seed, and the code version (a hash of the figure's module and of dpassay's own code): what was
interrupted resumes, and what is unchanged is not run again.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
import time
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dpassay as dp
from papers import plots

HOME = Path(__file__).parent
Row = dict[str, Any]


@dataclass(frozen=True)
class Item:
    """One figure or table: what the paper shows (`words.toml`), and the function that regenerates it."""

    key: str
    title: str
    reports: str  # what the paper shows and says, in our words
    setting: str  # its settings, and what we chose where it leaves one out
    why: str  # why ours agrees, or what lies behind a difference
    paper_seconds: str
    make: Callable[[Lab], Outcome] | None = None  # None: not yet
    version: str = ""  # hash of the module the figure is in, and of dpassay's code

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.key.split("/")[0]

    @property
    def name(self) -> str:
        """The figure within the paper."""
        return self.key.split("/")[1]


@dataclass(frozen=True)
class Outcome:
    """What came of a figure: numbers, a sentence, whether it agrees with the paper, and a chart."""

    rows: list[Row]
    measured: str
    same: bool
    chart: Any = None  # None: a table
    one_run: str = ""  # seconds of one run, where they differ by row; else their median


def _words() -> dict[str, Item]:
    """The list, in the order of the papers; the modules add the functions."""
    table = tomllib.loads((HOME / "words.toml").read_text())
    found = {}
    for key, words in table.items():
        one = {name: " ".join(text.split()) for name, text in words.items()}
        found[key] = Item(
            key, one["title"], one["reports"], one["setting"], one["why"], one["seconds"]
        )
    return found


ITEMS = _words()


@cache
def _package() -> str:
    """A hash of all of dpassay's code but what writes pages and reads command lines."""
    home = Path(dp.__file__).parent
    apart = {"report", "cli"}
    files = sorted(p for p in home.rglob("*.py") if not apart & set(p.relative_to(home).parts))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def item(key: str) -> Callable[[Callable[[Lab], Outcome]], Callable[[Lab], Outcome]]:
    """Say which figure or table a function regenerates."""

    def register(make: Callable[[Lab], Outcome]) -> Callable[[Lab], Outcome]:
        source = inspect.getsource(sys.modules[make.__module__])
        version = hashlib.sha256(f"{_package()}\n{source}".encode()).hexdigest()[:12]
        ITEMS[key] = replace(ITEMS[key], make=make, version=version)
        return make

    return register


@dataclass
class Lab:
    """Runs the experiments of one figure."""

    figure: Item
    wanted: int | None = None  # RUNS; None: the default of each experiment
    shrink: float = 1.0  # sample sizes are multiplied by this (tests)
    seed: int = 0  # SEED; another number gives other draws
    workers: int = 1
    cache: Path = HOME / ".cache"
    bar: Any = None
    seconds: list[float] = field(default_factory=list)
    waited: float = 0.0
    _pool: ProcessPoolExecutor | None = None

    def n(self, size: int, least: int = 200) -> int:
        """A sample size of the paper."""
        return size if self.shrink == 1.0 else max(min(least, size), int(size * self.shrink))

    def count(self, default: int) -> int:
        """How many runs: what was asked for, else the default."""
        return default if self.wanted is None else self.wanted

    def runs(
        self, experiment: Callable[..., Any], *arguments: Any, count: int, alone: bool = False
    ) -> list[Any]:
        """`experiment(seed, *arguments)` for `count` seeds; `alone` takes turns, to time them."""
        start = time.perf_counter()
        settings = f"{experiment.__name__}{arguments!r}"
        base = zlib.crc32(settings.encode())
        other = [self.seed] if self.seed else []
        seeds = [
            int(np.random.SeedSequence([base, i, *other]).generate_state(1)[0])
            for i in range(count)
        ]
        folder = self.cache / self.figure.key.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(f"{self.figure.version}\n{settings}".encode()).hexdigest()[:16]
        kept = folder / f"{digest}.jsonl"
        known = _read(kept)
        missing = [seed for seed in seeds if seed not in known]
        task = None
        if self.bar is not None:
            task = self.bar.add_task(settings[:60], total=count, completed=count - len(missing))
        with kept.open("a") as file:
            for seed, value, seconds in self._compute(experiment, arguments, missing, alone):
                known[seed] = (value, seconds)
                file.write(json.dumps([seed, value, seconds]) + "\n")
                file.flush()
                if self.bar is not None:
                    self.bar.advance(task)
        if self.bar is not None:
            self.bar.update(task, visible=False)
        self.seconds += [known[seed][1] for seed in seeds]
        self.waited += time.perf_counter() - start
        return [known[seed][0] for seed in seeds]

    def _compute(
        self, experiment: Callable[..., Any], arguments: Any, seeds: list[int], alone: bool
    ) -> Iterator[tuple[int, Any, float]]:
        if self.workers == 1 or alone or len(seeds) < 2:
            for seed in seeds:
                yield _timed(experiment, seed, arguments, time.process_time if alone else None)
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers)
        futures = [self._pool.submit(_timed, experiment, seed, arguments) for seed in seeds]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """Let the workers go."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _timed(
    experiment: Callable[..., Any],
    seed: int,
    arguments: Any,
    clock: Callable[[], float] | None = None,
) -> tuple[int, Any, float]:
    clock = clock or time.perf_counter
    start = clock()
    value = experiment(seed, *arguments)
    return seed, value, clock() - start


def _read(path: Path) -> dict[int, tuple[Any, float]]:
    """The runs that are kept; a line cut off by an interruption is left out."""
    known = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            seed, value, seconds = json.loads(line)
        except ValueError:
            continue
        known[seed] = (value, seconds)
    return known


def run(
    key: str,
    *,
    runs: int | None = None,
    shrink: float = 1.0,
    seed: int = 0,
    workers: int | None = None,
    results: Path = HOME / "results",
    cache: Path = HOME / ".cache",
    bar: Any = None,
) -> Path:
    """Regenerate one figure and write it: numbers (.json), and the chart (.svg, .html)."""
    figure = ITEMS[key]
    assert figure.make is not None
    lab = Lab(figure, runs, shrink, seed, workers or os.cpu_count() or 1, cache, bar)
    start = time.perf_counter()
    try:
        outcome = figure.make(lab)
    finally:
        lab.close()
    rest = time.perf_counter() - start - lab.waited
    one = outcome.one_run or (f"{np.median(lab.seconds):.2g}" if lab.seconds else f"{rest:.2g}")
    record = {
        "item": key,
        "title": figure.title,
        "paper": {
            "reports": figure.reports,
            "setting": figure.setting,
            "seconds": figure.paper_seconds,
        },
        "measured": outcome.measured,
        "same": bool(outcome.same),
        "why": figure.why,
        "runs": len(lab.seconds),
        "seconds_one_run": one,
        "seconds_all_runs": round(sum(lab.seconds) + rest, 1),
        "shrink": shrink,
        "seed": seed,
        "code": figure.version,
        "dpassay": dp.__version__,
        "rows": [{name: _short(value) for name, value in row.items()} for row in outcome.rows],
    }
    folder = results / figure.paper
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{figure.name}.json"
    path.write_text(dump(record))
    if outcome.chart is not None:
        plots.write(outcome.chart, folder / figure.name, figure.title)
    return path


def timings(
    lab: Lab,
    experiment: Callable[..., Any],
    cases: Iterable[tuple[str, tuple[Any, ...], float]],
    count: int,
    what: str = "",
) -> Outcome:
    """Seconds of one run of each case (name, arguments, the paper's seconds), beside the paper's."""
    rows: list[Row] = []
    for name, arguments, paper in cases:
        start = len(lab.seconds)
        lab.runs(experiment, *arguments, count=lab.count(count), alone=True)
        seconds = float(np.median(lab.seconds[start:]))
        rows.append(
            {
                "mechanism": name,
                "seconds": seconds,
                "the paper's seconds": paper,
                "ratio": round(paper / seconds, 1),
            }
        )
    low, high = (f(float(row["seconds"]) for row in rows) for f in (min, max))
    return Outcome(
        rows,
        f"{low:.2g} to {high:.2g} seconds{what}; the smallest ratio to the paper's is "
        f"{min(float(row['ratio']) for row in rows):.0f}.",
        all(float(row["ratio"]) > 1 for row in rows),
        one_run=f"{low:.2g}–{high:.2g}",
    )


def dump(record: Row) -> str:
    """JSON with one row of numbers a line."""
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in record["rows"])
    head = json.dumps({**record, "rows": []}, ensure_ascii=False, indent=1)
    return head.removesuffix("[]\n}") + f"[\n  {rows}\n ]\n}}\n"


def _short(value: Any) -> Any:
    """Six digits are more than any run can tell."""
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.6g}") if np.isfinite(value) else str(value)
    return value.item() if isinstance(value, np.generic) else value
