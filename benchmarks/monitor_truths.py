"""How often monitors ever refute true claims: many of each kind, on many cores, within a time.

    python -m benchmarks.monitor_truths --jobs 16 --seconds 500 --out counts.json
    python -m benchmarks.monitor_truths --after counts.json --out more.json
    python -m benchmarks.monitor_truths --merge counts.json more.json --write

Monitor number k of a kind has seeds of its own, whatever the number of processes. The next one is of the
kind that took the least time so far. Every monitor that was begun is finished and counted, and goes on
to the end when it has refuted the claim: when the time is up says nothing about who refuted.
`--write` puts the table into docs/methods/monitor.md.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.tables import fill, markdown

#: Seeds of other tables of monitors are below.
SEEDS = 2_000_000
#: Outputs on either input.
Drawer = Callable[[np.random.Generator, int], tuple[Any, Any]]
#: Draws a side that are brought one by one.
_SINGLE = 500


# --- true claims


def laplace(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.laplace(size=n), 1 + rng.laplace(size=n)


def gaussian(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.normal(size=n), 1 + rng.normal(size=n)


def _mixed(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Half a number, half a word: Laplace noise with ε = 1 on either."""
    sides = []
    for data in (0.0, 1.0):
        noise = data + rng.laplace(size=n)
        word = rng.random(n) < 0.5
        out = np.empty(n, dtype=object)
        out[:] = noise.tolist()
        high = (rng.random(n) < 1 / (1 + math.e)) ^ bool(data)
        out[word] = np.where(high, "high", "low")[word]
        sides.append(out)
    return sides[0], sides[1]


def _wide(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Ten coordinates with Laplace noise, of which one differs."""
    shift = np.eye(10)[0]
    return rng.laplace(size=(n, 10)), shift + rng.laplace(size=(n, 10))


def _same(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.normal(size=n), rng.normal(size=n)


def _coin(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Randomized response with ε = 1."""
    heads = math.e / (1 + math.e)
    return (rng.random(n) < heads).astype(int), (rng.random(n) >= heads).astype(int)


def _sorted(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    p, q = laplace(rng, n)
    return np.sort(p), np.sort(q)


ONCE, PUSHES, SINGLE = "at once", "unequal pushes, restarts", f"one by one to {_SINGLE}, a tenth"


@dataclass(frozen=True)
class Kind:
    """A true claim, at its truth, and how draws are brought."""

    outputs: str
    claim: dp.Claim
    draw: Drawer
    pushed: str = ONCE

    @property
    def said(self) -> str:
        """The claim in words."""
        return "f-DP of a Gaussian" if isinstance(self.claim, dp.TradeoffDP) else str(self.claim)

    @property
    def name(self) -> str:
        """What counts go by."""
        return f"{self.outputs}: {self.said}, {self.pushed}"


_CURVE = dp.TradeoffDP(lambda a: dp.GaussianDP(1.0).tradeoff(a))
_LEAK = dp.ApproximateDP(0.5, -math.expm1(-0.25))
KINDS: Sequence[Kind] = (
    Kind("Laplace", dp.PureDP(1.0), laplace),
    Kind("Laplace, sorted", dp.PureDP(1.0), _sorted),
    Kind("Laplace", dp.PureDP(1.0), laplace, PUSHES),
    Kind("Laplace", dp.PureDP(1.0), laplace, SINGLE),
    Kind("randomized response", dp.PureDP(1.0), _coin),
    Kind("numbers and words", dp.PureDP(1.0), _mixed),
    Kind("ten coordinates", dp.PureDP(1.0), _wide),
    Kind("P = Q", dp.PureDP(0.0), _same),
    Kind("Laplace", _LEAK, laplace),
    Kind("Laplace", _LEAK, laplace, PUSHES),
    Kind("Gaussian μ = 1", dp.GaussianDP(1.0), gaussian),
    Kind("Gaussian μ = 1", dp.GaussianDP(1.0), gaussian, SINGLE),
    Kind("Gaussian μ = 1", _CURVE, gaussian, PUSHES),
    Kind("Gaussian μ = 1", dp.RenyiDP(order=2, epsilon=1.0), gaussian),
    Kind("Gaussian μ = 1", dp.ZeroConcentratedDP(0.5), gaussian),
)


def ever(kind: int, run: int, most: int) -> tuple[bool, float]:
    """Whether a monitor ever refuted a true claim within so many draws; and the processor's seconds."""
    start = time.process_time()
    one, seed = KINDS[kind], SEEDS + 10_000 * kind + run
    rng = np.random.default_rng([seed, 2])
    found = dp.Monitor(one.claim, rng=seed)
    p, q = one.draw(rng, most)
    at = [0, 0]
    while min(at) < most:
        if one.pushed == ONCE:
            sizes = [most, most]
        elif one.pushed == SINGLE:
            sizes = [1 if at[0] < _SINGLE else at[0] // 10] * 2
        else:
            sizes = [int(rng.geometric(1 / (10 + k / 4)) - 1) for k in at]
        ends = [min(most, k + size) for k, size in zip(at, sizes, strict=True)]
        found.update(p[at[0] : ends[0]], q[at[1] : ends[1]])
        at = ends
        if one.pushed == PUSHES and rng.random() < 0.1:
            found = dp.Monitor.from_json(found.to_json())
    return found.violated, time.process_time() - start


# --- counts


@dataclass
class Count:
    """Monitors of a kind from number `first` on: how many, and which of them refuted the claim."""

    name: str
    draws: int
    first: int = 0
    monitors: int = 0
    refuted: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def numbers(self) -> range:
        """Of the monitors."""
        return range(self.first, self.first + self.monitors)


def count(
    runs: int,
    most: int,
    *,
    jobs: int,
    seconds: float = math.inf,
    after: Sequence[Count] = (),
    only: str = "",
) -> list[Count]:
    """Run monitors of every kind up to number `runs`, as many as begin within some seconds."""
    kinds = [k for k, kind in enumerate(KINDS) if only in kind.name]
    found = {k: Count(KINDS[k].name, most) for k in kinds}
    for known in after:
        for one in found.values():
            if one.name == known.name:
                one.first = max(one.first, known.numbers.stop)
    begun, spent = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0.0)
    end = time.monotonic() + seconds
    under_way: dict[Future[tuple[bool, float]], tuple[int, int]] = {}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # a process is a core
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        while True:
            left = [k for k in kinds if found[k].first + begun[k] < runs]
            if left and len(under_way) < 2 * jobs and time.monotonic() < end:
                # those under way take as long as those before them, or a second
                busy = [kind for kind, _ in under_way.values()]
                cost = {k: spent[k] / max(begun[k] - busy.count(k), 1) or 1.0 for k in left}
                kind = min(left, key=lambda k: (spent[k] + busy.count(k) * cost[k], k))
                run = found[kind].first + begun[kind]
                under_way[pool.submit(ever, kind, run, most)] = (kind, run)
                begun[kind] += 1
                continue
            if not under_way:
                break
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                kind, run = under_way.pop(future)
                refuted, took = future.result()
                spent[kind] += took
                found[kind].monitors += 1
                found[kind].refuted += [run] if refuted else []
    for k, one in found.items():
        one.seconds = round(spent[k], 2)
        one.refuted.sort()
    return list(found.values())


def merged(parts: Sequence[Sequence[Count]]) -> list[Count]:
    """Counts of several runs together; no monitor may be in two of them."""
    found: dict[tuple[str, int], list[Count]] = {}
    for one in (one for part in parts for one in part if one.monitors):
        found.setdefault((one.name, one.draws), []).append(one)
    result = []
    for (name, draws), some in found.items():
        some.sort(key=lambda one: one.first)
        for before, one in pairwise(some):
            if before.numbers.stop > one.first:
                raise ValueError(f"{name}: monitor {one.first} is in two of the files")
        result.append(
            Count(
                name,
                draws,
                some[0].first,
                sum(one.monitors for one in some),
                [run for one in some for run in one.refuted],
                round(sum(one.seconds for one in some), 2),
            )
        )
    return result


def shown(counts: Sequence[Count]) -> str:
    """The table; "limit" is the binomial one at .05, above which any row is once in a hundred times."""
    from scipy.stats import binom

    rows = []
    kinds = {kind.name: kind for kind in KINDS}
    for one in counts:
        kind = kinds[one.name]
        limit = int(binom.ppf(1 - 0.01 / len(counts), one.monitors, 0.05))
        many = f"{one.monitors:,} to {one.draws:,}"
        refuted = len(one.refuted)
        rows.append([kind.outputs, kind.said, kind.pushed, many, refuted, limit])
    headings = [
        "outputs",
        "claim, true",
        "pushed",
        "monitors, draws a side",
        "ever refuted",
        "limit",
    ]
    return markdown(headings, rows)


def read(path: str) -> list[Count]:
    return [Count(**one) for one in json.loads(Path(path).read_text(encoding="utf-8"))]


def main() -> None:
    """Count, or put counts together."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=2000, help="monitors of each kind")
    parser.add_argument("--draws", type=int, default=100_000, help="draws a side")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=math.inf, help="none begins later")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--after", nargs="*", default=[], help="go on behind these counts")
    parser.add_argument("--merge", nargs="*", help="run nothing, put these counts together")
    parser.add_argument("--out", help="where counts go, as JSON")
    parser.add_argument("--write", action="store_true", help="put the table into its page")
    given = parser.parse_args()
    if given.merge is not None:
        found = merged([read(path) for path in given.merge])
    else:
        after = [one for path in given.after for one in read(path)]
        found = count(
            given.runs,
            given.draws,
            jobs=given.jobs,
            seconds=given.seconds,
            after=after,
            only=given.only,
        )
    if given.out:
        text = json.dumps([asdict(one) for one in found], indent=1, ensure_ascii=False)
        Path(given.out).write_text(text + "\n", encoding="utf-8")
    print(shown([one for one in found if one.monitors]))
    for one in found:
        each = one.seconds / max(one.monitors, 1)
        print(f"{one.name}: {one.monitors:,} monitors, {each:.3f} s each")
    if given.write:
        fill("monitor-true", shown(found))


if __name__ == "__main__":
    from benchmarks.monitor_truths import main as imported  # what processes import

    imported()
