"""One training run on CIFAR-10: tables from the runs that `examples.one_run_cifar` made, in SCORES."""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks import one_run
from benchmarks.tables import markdown, table
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.membership.guessing import tests_of
from dpassay.membership.runs import ranked, read_runs

#: Audits of a cell at most: medians of these.
REPEATS = 16
#: Audits of several trainings.
FEWER = 5
SCORES = ("loss", "gradient", "centred", "decorrelated")
#: Which score is best in theory, a row of the second table each.
BEST = (("mislabelled", "loss"), ("mislabelled", "decorrelated"), ("dirac", "centred"))


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one cell with one noise multiplier: ranks of canaries by each score, and their coins."""

    about: dict[str, Any]
    noise: float
    scores: dict[str, Any]
    coins: Any
    accuracy: float

    @functools.cached_property
    def epsilon(self) -> float:
        """The accountant's ε at δ = 1e-5."""
        return accountant(self.noise, self.about["rate"], self.about["steps"])

    def audits(self, score: str, runs: int) -> list[tuple[list[Any], list[Any]]]:
        """Scores and coins of disjoint sets of that many runs."""
        ends = range(runs, len(self.coins) + 1, runs)[:REPEATS]
        return [
            (list(self.scores[score][k - runs : k]), list(self.coins[k - runs : k])) for k in ends
        ]


def accountant(noise: float, rate: float, steps: int) -> float:
    """ε at δ = 1e-5 of DP-SGD with Poisson batches, by dp-accounting's privacy loss distributions."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    step: Any = dp_accounting.GaussianDpEvent(noise)
    if rate < 1:
        step = dp_accounting.PoissonSampledDpEvent(rate, step)
    found = PLDAccountant(value_discretization_interval=1e-3).compose(step, steps)
    return float(found.get_epsilon(one_run.DELTA))


def load(path: Path) -> tuple[dict[str, Any], list[Runs]]:
    """What the file says of itself, and the runs by cell and noise multiplier."""
    with np.load(path, allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        found = []
        for name, cell in about["cells"].items():
            m, noises = cell["canaries"], file[f"{name}/noise"]
            coins = np.unpackbits(file[f"{name}/coins"], axis=1, count=m).astype(bool)
            scores = {s: file[f"{name}/{s}"] for s in SCORES if f"{name}/{s}" in file.files}
            for noise in dict.fromkeys(noises.tolist()):
                these = noises == noise
                found.append(
                    Runs(
                        {**cell, "steps": about["steps"]},
                        noise,
                        {key: values[these].astype(float) for key, values in scores.items()},
                        coins[these],
                        float(file[f"{name}/accuracy"][these].mean()),
                    )
                )
    return about, found


def _load() -> tuple[dict[str, Any], list[Runs]]:
    path = Path(os.environ.get("SCORES", "scores")) / "one_run_cifar.npz"
    if not path.exists():
        raise SystemExit(f"{path} is missing: make it with python -m examples.one_run_cifar")
    return load(path)


def _trained(about: dict[str, Any]) -> str:
    """On what, and how long it took."""
    where = "a processor" if about["device"] == "cpu" else about["device"]
    models = sum(cell["models"] for cell in about["cells"].values())
    return (
        f"\n\n{models:,} trainings of {about['parameters']:,} parameters and {about['steps']} steps on "
        f"{about['data']['images']:,} images ({about['data']['set']}) in {about['seconds']:.0f} s on "
        f"{where}."
    )


def _certified(audits: list[tuple[list[Any], list[Any]]]) -> float:
    """The median certified ε; NaN without an audit."""
    if not audits:
        return float("nan")
    found = [
        dp.one_run(scores, coins, delta=one_run.DELTA, rng=seed).value  # type: ignore[union-attr]
        for seed, (scores, coins) in enumerate(audits)
    ]
    return statistics.median(found)


def _said(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


@table("one-run-cifar")
def single() -> str:
    """The certified ε of one training by canary and score, median of 16 (about 5 minutes)."""
    about, everything = _load()
    rows: dict[tuple[Any, ...], list[str]] = {}
    most: dict[float, list[float]] = {}
    for runs in everything:
        cell = runs.about
        most.setdefault(cell["rate"], [])
        if runs.epsilon not in most[cell["rate"]]:
            most[cell["rate"]].append(runs.epsilon)
        for score in runs.scores:
            key = (cell["rate"], cell["canary"], f"{cell['canaries']:,}", score)
            rows.setdefault(key, []).append(_said(_certified(runs.audits(score, 1))))
        print(cell, runs.noise, file=sys.stderr, flush=True)
    listed: list[list[object]] = []
    for rate, epsilons in most.items():
        listed.append([f"{rate:g}", "accountant's ε", "", "", *(f"{e:.2f}" for e in epsilons)])
        listed += [[f"{rate:g}", *key[1:], *cells] for key, cells in rows.items() if key[0] == rate]
    headings = ["rate", "canaries", "m", "score", *[""] * len(next(iter(most.values())))]
    return markdown(headings, listed) + _trained(about)


@table("one-run-cifar-runs")
def combined() -> str:
    """Few trainings combined: certified ε by three ways, of the same guesses, median of 5."""
    about, everything = _load()
    rows = []
    largest = max(runs.about["canaries"] for runs in everything)
    for runs in everything:
        cell = runs.about
        for score in [s for kind, s in BEST if kind == cell["canary"]]:
            if cell["canaries"] < largest:
                continue
            for together in (1, 4, 16):
                audits = runs.audits(score, together)[:FEWER]
                if not audits:
                    continue
                tests = [_tests(*one, seed) for seed, one in enumerate(audits)]
                cells = [
                    _said(_certified(audits)),
                    *(
                        _said(statistics.median(max(way(*one) for one in each) for each in tests))
                        for way in (_steinke, _curve, _from_mu)
                    ),
                    f"{runs.epsilon:.2f}",
                ]
                cells[0] = f"**{cells[0]}**"
                where = f"{cell['canary']}, {score}, rate {cell['rate']:g}"
                rows.append([where, together, len(audits), *cells])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    headings = ["canaries, score", "trainings", "audits", "dpassay", "Steinke et al.", "curve"]
    return markdown([*headings, "ε from μ", "accountant's ε"], rows) + _trained(about)


def _tests(scores: list[Any], coins: list[Any], seed: int) -> list[tuple[Guessed, float]]:
    """What `dp.one_run` guesses on these scores, and the error probability of each test.

    The others' formulas take the number of guesses as if it had been fixed beforehand.
    """
    runs = [ranked(run, seed, k) for k, run in enumerate(read_runs(scores, coins))]
    claim = dp.ApproximateDP(0.0, one_run.DELTA)
    tests, _ = tests_of(runs, claim, None, one_run.GAMMA, seed)
    return [(replace(test.guessed, least=0), one_run.GAMMA * test.share) for test in tests]


def _steinke(guessed: Guessed, gamma: float) -> float:
    return one_run.steinke(guessed, one_run.DELTA, gamma)


def _curve(guessed: Guessed, gamma: float) -> float:
    """Mahloujifar et al. 2024 (arXiv:2410.22235), of the trade-off function of (ε, δ)."""
    return one_run.curve(guessed, one_run.DELTA, gamma)


def _from_mu(guessed: Guessed, gamma: float) -> float:
    """The same of μ-GDP: the ε of the largest μ refuted, if the mechanism is μ-GDP for some μ."""
    return one_run.of_mu(bounds.lower_bound(dp.GaussianDP(0.0), guessed, gamma))
