"""Hunts: planted bugs found, their corrected twins left alone, with the default settings."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass

from scipy.stats import binom

import dpassay as dp
from benchmarks.planted import Planted, bugs
from benchmarks.tables import markdown, table
from dpassay.hunting.result import compared
from dpassay.results.rounding import number

#: Hunts of each pipeline, with a bug and without.
RUNS, TWINS = 10, 10
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
    rows = []
    for planted in bugs():
        runs = [run(planted, broken=True, seed=seed) for seed in range(RUNS)]
        hits = [one.found for one in runs if one.found.violated]
        bounds = [one.verdict.lower_bound for one in hits]
        middle = sorted(hits, key=lambda one: one.verdict.lower_bound)[len(hits) // 2 :][:1]
        rows.append(
            [
                planted.name,
                f"{len(hits)} of {RUNS}",
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
    rows, wrong = [], 0
    for planted in bugs():
        runs = [run(planted, broken=False, seed=seed) for seed in range(TWINS)]
        hits = sum(one.found.violated for one in runs)
        wrong += hits
        bounds = [one.found.verdict.lower_bound for one in runs]
        claimed = runs[0].found.verdict.claim.value
        rows.append([planted.name, f"{hits} of {TWINS}", number(max(bounds)), number(claimed)])
    total = len(rows) * TWINS
    limit = int(binom.ppf(0.999, total, 0.05))
    rows.append([f"all (limit: {limit})", f"{wrong} of {total}", "", ""])
    headings = ["pipeline without", "called violations", "largest bound", "claimed"]
    return markdown(headings, rows)
