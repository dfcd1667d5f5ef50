"""Hunts: planted bugs found, their corrected twins left alone, with the default settings.

Also what coupled draws change, queries that only structured pairs break, and budgets that are kept.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom

import dpassay as dp
from benchmarks.planted import Planted, bugs
from benchmarks.planted_more import faults, sparse_vector
from benchmarks.tables import markdown, table
from dpassay.hunting.result import compared
from dpassay.rounding import number

#: Hunts of each pipeline, with a bug and without.
RUNS, TWINS, FEWER = 10, 10, 2
#: Hunts, and audits of each pair made by hand, for queries: bounds differ by a tenth from draw to draw.
SEVERAL = 6
QUIET = dp.Sampling(progress=False)


@dataclass(frozen=True)
class Run:
    """One hunt, and the processor time it took."""

    found: dp.Hunt
    seconds: float


def run(planted: Planted, *, broken: bool, seed: int) -> Run:
    """A hunt with nothing said but the space, the claim and the relation."""
    start = time.process_time()
    found = dp.hunt(
        planted.broken if broken else planted.fixed,
        planted.space,
        planted.claim,
        relation=planted.relation,
        rng=seed,
        sampling=QUIET,
        **planted.options,
    )
    seconds = time.process_time() - start
    print(f"{planted.name}, {seed}: {found.verdict.tone}, {seconds:.1f} s", file=sys.stderr)
    return Run(found, seconds)


@table("hunt-planted")
def planted_bugs() -> str:
    """Planted bugs: how many of ten hunts find each, and what they show."""
    return _found(bugs(), RUNS)


@table("hunt-more")
def more_faults() -> str:
    """Twenty more, written before any hunt was run on them; the search was changed after some of them."""
    return _found(faults(), FEWER)


def _found(several: Iterable[Planted], many: int) -> str:
    rows = []
    for planted in several:
        runs = [run(planted, broken=True, seed=seed) for seed in range(many)]
        hits = [one.found for one in runs if one.found.violated]
        bounds = [one.verdict.lower_bound for one in hits]
        middle = sorted(hits, key=lambda one: one.verdict.lower_bound)[len(hits) // 2 :][:1]
        rows.append(
            [
                planted.name,
                f"{len(hits)} of {many}",
                number(statistics.median(bounds)) if bounds else "",
                f"{statistics.median(one.found.draws for one in runs):,.0f}",
                f"{statistics.median(one.seconds for one in runs):.1f}",
                f"{max(one.seconds for one in runs):.1f}",
                f"`{_shown(middle[0])}`" if middle else "",
            ]
        )
    headings = ["bug", "found", "ε ≥", "draws", "seconds", "at most", "an input that shows it"]
    return markdown(headings, rows)


def _shown(found: dp.Hunt) -> str:
    """What differs between the inputs, in a few words."""
    lines = compared(found.pair)
    marked = [f"{mark}{text}" for mark, text in lines if mark != " "]
    rows = len(found.pair[0]) if hasattr(found.pair[0], "__len__") else 1
    same = rows - sum(mark == "−" for mark, _ in lines)
    text = " ".join(marked)
    text = (text if len(text) <= 70 else f"{text[:69]}…") + (
        f" beside {same} equal" if same else ""
    )
    return text.replace("|", "/").replace("`", "'")


@table("hunt-twins")
def twins() -> str:
    """The same pipelines without their bugs: how many hunts call them violations."""
    return _left_alone(bugs(), TWINS)


@table("hunt-more-twins")
def more_twins() -> str:
    """The same of the twenty."""
    return _left_alone(faults(), FEWER)


def _left_alone(several: Iterable[Planted], many: int) -> str:
    rows, wrong = [], 0
    for planted in several:
        runs = [run(planted, broken=False, seed=seed) for seed in range(many)]
        hits = sum(one.found.violated for one in runs)
        wrong += hits
        bounds = [one.found.verdict.lower_bound for one in runs]
        claimed = runs[0].found.verdict.claim.value
        rows.append([planted.name, f"{hits} of {many}", number(max(bounds)), number(claimed)])
    total = len(rows) * many
    limit = int(binom.ppf(0.999, total, 0.05))
    rows.append([f"all (limit: {limit})", f"{wrong} of {total}", "", ""])
    headings = ["pipeline without", "called violations", "largest bound", "claimed"]
    return markdown(headings, rows)


@table("hunt-queries")
def queries() -> str:
    """The sparse vector technique without stopping: the hunted pair beside the best made by hand."""
    mechanism, rows = sparse_vector(True), []
    for k in (6, 12, 40):
        half = np.arange(k) < k // 2
        by_hand = [
            (half * 1.0, 1.0 - half),
            (half - 0.5, 0.5 - half),
            (np.zeros(k), np.where(half, 1.0, -1.0)),
        ]
        hand = [
            statistics.mean(
                dp.audit(mechanism, pair, "eps=1", n=50_000, rng=seed, sampling=QUIET).lower_bound
                for seed in range(SEVERAL)
            )
            for pair in by_hand
        ]
        asked = replace(faults()[0], space=dp.inputs.Reals(-5, 5, k))
        runs = [run(asked, broken=True, seed=seed) for seed in range(SEVERAL)]
        best, mean = max(hand), statistics.mean(one.found.verdict.lower_bound for one in runs)
        seconds = statistics.median(one.seconds for one in runs)
        rows.append([k, number(best), number(mean), f"{mean / best:.2f}", f"{seconds:.1f}"])
    return markdown(["queries", "best by hand", "hunted pair", "ratio", "seconds"], rows)


#: Mechanisms of the comparison with and without coupled draws.
COMPARED = (
    "an int32 sum wraps around", "float32 accumulates far from zero", "clamped after the sum",
    "duplicates are dropped", "a weight that nobody clamps", "noisy max with its value",
    "noise for a row more or less", "unary encoding flips one bit", "the first half as a sample",
    "one noise for two answers",
)  # fmt: skip


def uncoupled(mechanism: Any) -> Any:
    """The mechanism with a generator of its own, which nobody can seed."""

    def run(data: Any, size: int, rng: Any) -> Any:
        return mechanism(data, size, np.random.default_rng())

    return run


@table("hunt-coupling")
def coupling() -> str:
    """The best predicted bound after so many draws, with coupled draws and without."""
    rows = []
    for planted in [*bugs(), *faults()]:
        if planted.name not in COMPARED:
            continue
        cells: list[str] = []
        for one in (planted, replace(planted, broken=uncoupled(planted.broken))):
            at, bounds = run(one, broken=True, seed=0).found.path()
            best = [max(bounds[at <= draws], default=0.0) for draws in (20_000, 50_000, 200_000)]
            cells += [number(float(value)) for value in best]
        rows.append([planted.name, *cells])
    headings = [
        f"{how}, {n}" for how in ("coupled", "not") for n in ("20,000", "50,000", "200,000")
    ]
    return markdown(["mechanism", *headings], rows)


def slow(cost: float) -> Any:
    """A sum of which a call takes some time."""

    def run(data: Any, rng: Any) -> float:
        time.sleep(cost)
        return float(np.round(data.sum() + rng.laplace(scale=1.0), 3))

    return dp.from_function(run)


@table("hunt-budgets")
def budgets() -> str:
    """Times that were asked for and taken, over mechanisms of 1 ms to 2 s a call."""
    rows = []
    for cost, asked in (
        *((0.001, s) for s in (1, 2, 3, 5, 10, 20, 60)),
        *((0.01, s) for s in (2, 5, 10, 20, 30)),
        *((0.1, s) for s in (15, 30, 45, 60)),
        *((0.3, s) for s in (40, 60)),
        (0.5, 60),
        (2.0, 60),
    ):
        start = time.perf_counter()
        try:
            found = dp.hunt(
                slow(cost), dp.inputs.Reals(0, 1, 5), "eps=1", seconds=asked, rng=0, sampling=QUIET
            )
            said = f"{found.tried} pairs, {found.draws:,} draws"
        except dp.errors.NotEnoughDraws:
            said = "refused: too short"
        took = time.perf_counter() - start
        rows.append([f"{cost:g}", asked, f"{took:.1f}", f"{took / asked:.2f}", said])
    return markdown(["seconds a call", "asked for", "took", "ratio", ""], rows)
