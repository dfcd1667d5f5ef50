"""One training run: bounds from guesses, their error rates, and jax-privacy's beside them."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binom

import dpassay as dp
from benchmarks.quality import PEERS
from benchmarks.tables import markdown, table
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.rootfinding import bisect

GAMMA, DELTA = 0.05, 1e-5
PLACES = [
    (1000, 1000, 600, 0.0),
    (1000, 1000, 600, 1e-5),
    (1000, 200, 180, 1e-5),
    (5000, 1000, 900, 1e-5),
    (10_000, 100, 95, 1e-5),
    (10_000, 1000, 700, 1e-3),
    (100_000, 1000, 1000, 1e-5),
]


def last(holds: Callable[[float], bool]) -> float:
    """The last ε at which something holds; 0 if there is none."""
    return float(bisect(holds, 0.0, 64.0)[0])


def steinke_formula(guessed: Guessed, epsilon: float, delta: float) -> float:
    """P(W ≥ v) + 2mδ · max over 1 ≤ i ≤ v of P(v − i ≤ W < v)/i; no bound for few coins.

    Steinke, Nasr & Jagielski 2023 (arXiv:2305.08846), Theorem 5.2, as jax-privacy computes it.
    """
    r, v = guessed.guesses, guessed.right
    below = np.cumsum(binom.pmf(v - np.arange(1, v + 1), r, expit(epsilon)))
    extra = 2 * guessed.canaries * delta * float(np.max(below / np.arange(1, v + 1)))
    return min(1.0, bounds.tail(guessed, epsilon) + extra)


def steinke(guessed: Guessed, delta: float, gamma: float = GAMMA) -> float:
    return last(lambda e: steinke_formula(guessed, e, delta) <= gamma)


def averaged(guessed: Guessed, delta: float) -> float:
    return last(lambda e: bounds.averaged(guessed, e, delta) <= GAMMA)


def curve(guessed: Guessed, delta: float, gamma: float = GAMMA) -> float:
    level = np.array([gamma])
    return last(lambda e: not bounds.fits(dp.ApproximateDP(e, delta), guessed, level)[0])


def of_mu(mu: float, delta: float = DELTA) -> float:
    """The ε that μ-GDP allows at δ."""
    return last(lambda e: dp.GaussianDP(mu).delta_at(e) > delta) if mu else 0.0


@table("one-run")
def reference() -> str:
    """The 95 % bound on ε from v right guesses of r about m canaries, by each way (2 seconds)."""
    rows = []
    for m, r, v, delta in PLACES:
        guessed = Guessed(m, r, v)
        claim = dp.ApproximateDP(0.0, delta)
        best = bounds.lower_bound(claim, guessed, GAMMA)
        ceiling = bounds.lower_bound(claim, Guessed(m, r, r), GAMMA)
        values = [way(guessed, delta) for way in (steinke, averaged, curve)]
        cells = [f"{value:.4f}" for value in (*values, best, ceiling)]
        cells[3] = f"**{cells[3]}**"
        rows.append([f"{m:,}", f"{r:,}", f"{v:,}", f"{delta:g}", *cells])
    headings = ["m", "r", "v", "δ", "Steinke et al.", "averaged", "curve", "dpassay", "ceiling"]
    return markdown(headings, rows)


# --- validity


def response(m: int, epsilon: float, delta: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Randomized response on every coin; with probability δ each the coin itself, and seen to be it."""
    included = rng.random(m) < 0.5
    kept, told = rng.random(m) < 1 / (1 + math.exp(-epsilon)), rng.random(m) < delta
    return np.where(included == (kept | told), 1.0, -1.0) * (1 + told), included


def burst(m: int, epsilon: float, delta: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """The same, but a tenth of the coins is told at once."""
    scores, included = response(m, epsilon, 0.0, rng)
    if rng.random() < 10 * delta:
        some = rng.permutation(m)[: m // 10]
        scores[some] = np.where(included[some], 2.0, -2.0)
    return scores, included


def gaussian(m: int, mu: float, _: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Scores N(μ, 1) of what was included, else N(0, 1)."""
    included = rng.random(m) < 0.5
    return mu * included + rng.normal(size=m), included


@table("one-run-validity")
def validity() -> str:
    """The share of audits that refute a true claim, 2 000 a cell (10 minutes)."""
    runs = 2000
    cells = [
        ("randomized response", response, 1.0, 0.0, "eps=1"),
        ("randomized response", response, 0.0, 0.0, "eps=0"),
        ("randomized response, or told", response, 1.0, 1e-3, "eps=1, delta=1e-3"),
        ("randomized response, or a tenth told", burst, 1.0, 1e-3, "eps=1, delta=1e-3"),
        ("randomized response, or a tenth told", burst, 1.0, 1e-2, "eps=1, delta=1e-2"),
        ("Gaussian scores", gaussian, 1.0, 0.0, "mu=1"),
    ]
    ways: list[Any] = [300, 60, (30, 0), [150, 60], None]
    limit = binom.ppf(1 - 0.01 / (len(cells) * len(ways)), runs, GAMMA) / runs
    rows = []
    for name, make, parameter, delta, text in cells:
        claim, found = dp.claim(text), []
        for guesses in ways:
            wrong = 0
            for run in range(runs):
                scores, included = make(300, parameter, delta, np.random.default_rng([27, run]))
                wrong += dp.one_run(
                    scores, included, claim=claim, guesses=guesses, rng=run
                ).violated  # type: ignore[union-attr]
            found.append(wrong / runs)
        rows.append([name, text, *(f"{rate:.4f}" for rate in found), f"{limit:.4f}"])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return markdown(
        ["mechanism", "claim = truth", "300", "60", "(30, 0)", "[150, 60]", "None", "limit"], rows
    )


@table("one-run-groups")
def groups() -> str:
    """The share of audits with any wrong bound, of a group or of the whole, 2 000 a cell (3 minutes)."""
    runs, ways, many = 2000, [100, (20, 10), None], (2, 5, 10)
    limit = binom.ppf(1 - 0.01 / (len(ways) * len(many)), runs, GAMMA) / runs
    rows = []
    for k in many:
        truth, cells = np.linspace(0.0, 2.0, k), []
        for guesses in ways:
            wrong = 0
            for run in range(runs):
                rng = np.random.default_rng([30, k, run])
                labels = np.arange(300) % k
                included = rng.random(300) < 0.5
                kept = rng.random(300) < expit(truth[labels])
                scores = np.where(included == kept, 1.0, -1.0)
                options: Any = {"groups": labels, "guesses": guesses, "rng": run}
                found = dp.one_run(scores, included, **options).certified
                assert found is not None
                bounded = np.array([one.epsilon for one in found.groups])
                wrong += bool(found.epsilon > truth[-1] or np.any(bounded > truth))
            cells.append(f"{wrong / runs:.4f}")
        rows.append([str(k), *cells, f"{limit:.4f}"])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return markdown(["groups", "100", "(20, 10)", "None", "limit"], rows)


@table("one-run-together")
def together() -> str:
    """The share of audits in which the verdict on a true curve, or ε at any δ, is wrong (2 minutes)."""
    runs, ways, deltas = 2000, [300, 60, None], (1e-6, 1e-5, 1e-3, 1e-2, 0.1)
    cells = [
        ("randomized response, ε = 0.5", response, 0.5, dp.PureDP(0.5)),
        ("randomized response, ε = 1", response, 1.0, dp.PureDP(1.0)),
        ("Gaussian scores, μ = 1", gaussian, 1.0, dp.GaussianDP(1.0)),
    ]
    limit = binom.ppf(1 - 0.01 / (len(ways) * len(cells)), runs, GAMMA) / runs
    rows = []
    for name, make, parameter, truth in cells:
        curve, found = dp.TradeoffDP(truth.tradeoff), []
        for guesses in ways:
            wrong = 0
            for run in range(runs):
                scores, included = make(300, parameter, 0.0, np.random.default_rng([31, run]))
                verdict: Any = dp.one_run(scores, included, claim=curve, guesses=guesses, rng=run)
                tests = verdict.certified.scores
                counts = [Guessed(*row) for row in tests.guessed]
                wrong += verdict.violated or any(
                    bounds.refutes(dp.ApproximateDP(truth.epsilon_at(d), d), one, level)
                    for d in deltas
                    for one, level in zip(counts, tests.levels, strict=True)
                )
            found.append(f"{wrong / runs:.4f}")
        rows.append([name, *found, f"{limit:.4f}"])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return markdown(["mechanism, and its curve as the claim", "300", "60", "None", "limit"], rows)


# --- jax-privacy


def ask_peers(grid: Any, scores: Any, included: Any) -> Any:
    """What jax-privacy says."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npz"
        np.savez(file, grid=grid, scores=scores, included=included)
        script = Path(__file__).with_name("one_run_peers.py")
        made = subprocess.run([PEERS, script, file], capture_output=True, text=True, check=True)
    return json.loads(made.stdout)


@table("one-run-peers")
def peers() -> str:
    """The same counts given to jax-privacy's functions, in the environment of `make peers`."""
    grid = [
        (m, r, max(1, round(r * share)), delta)
        for m in (100, 1000, 10_000)
        for r in sorted({m, m // 5, m // 20})
        for share in (0.6, 0.8, 0.95, 1.0)
        for delta in (1e-6, 1e-5, 1e-3)
    ]
    theirs = ask_peers(np.array(grid), np.zeros((0, 2)), np.zeros((0, 2), dtype=bool))["grid"]
    same, curve_same, gains = [], [], []
    for (m, r, v, delta), (plain, fdp) in zip(grid, theirs, strict=True):
        guessed = Guessed(m, r, v)
        same.append(abs(steinke(guessed, delta) - plain))
        best = bounds.lower_bound(dp.ApproximateDP(0.0, delta), guessed, GAMMA)
        gains.append(best - plain)
        mu = bounds.lower_bound(dp.GaussianDP(0.0), guessed, GAMMA)
        curve_same.append(abs(of_mu(mu, delta) - fdp))
    worse = sum(gain < -1e-5 for gain in gains)
    return (
        f"On a grid of {len(grid)} places (m = 100 … 10,000, r = m/20 … m, v = 0.6 r … r, δ = 10⁻⁶ … "
        f"10⁻³) the formula of Steinke et al. differs from jax-privacy's function "
        f"by at most {max(same):.1e} in ε, and the "
        f"curve of a μ-GDP claim, turned into ε, by at most {max(curve_same):.1e}. dpassay's own bound "
        f"is lower in {worse} places, {statistics.median(gains):.4f} higher in the median and up to "
        f"{max(gains):.2f} higher."
    )


@table("one-run-power")
def power() -> str:
    """Gaussian scores: the median certified ε at δ = 1e-5 of 20 runs (5 minutes)."""
    rows, repeats = [], 20
    for m in (1000, 10_000):
        for mu in (0.5, 1.0, 2.0, 4.0):
            rngs = [np.random.default_rng([28, m, k]) for k in range(repeats)]
            made = [gaussian(m, mu, 0.0, rng) for rng in rngs]
            scores, included = (np.array(part) for part in zip(*made, strict=True))
            theirs = ask_peers(np.zeros((0, 4)), scores, included)
            start = time.perf_counter()
            ours = [
                dp.one_run(s, c, delta=DELTA, rng=k).value  # type: ignore[union-attr]
                for k, (s, c) in enumerate(made)
            ]
            spent = (time.perf_counter() - start) / repeats
            mine = [
                of_mu(dp.one_run(s, c, claim="mu=0", rng=k).lower_bound)  # type: ignore[union-attr]
                for k, (s, c) in enumerate(made)
            ]
            median = {
                name: statistics.median(run[name] for run in theirs["runs"])
                for name in theirs["runs"][0]
            }
            plain = [v for name, v in median.items() if "f-DP" not in name]
            fdp = [v for name, v in median.items() if "f-DP" in name]
            cells = [statistics.median(ours), *plain, statistics.median(mine), *fdp, of_mu(mu)]
            said = [f"{value:.2f}" for value in cells]
            said[0], said[3] = f"**{said[0]}**", f"**{said[3]}**"
            rows.append([f"{m:,}", f"{mu:g}", *said])
            print(*rows[-1], spent, theirs["seconds"], sep=" | ", file=sys.stderr, flush=True)
    kinds = ["split", "all thresholds"]
    headings = ["m", "μ", "dpassay", *(f"jax-privacy, {kind}" for kind in kinds)]
    headings += ["dpassay, from μ", *(f"jax-privacy f-DP, {kind}" for kind in kinds), "truth"]
    return markdown(headings, rows)


# --- one task, few or many trainings

STEPS, SIGMA, RATE, FEATURES = 10, math.sqrt(10), 0.01, 50  # √STEPS/SIGMA: 1-GDP


def base() -> Any:
    """500 records of a logistic regression, the label in the sign."""
    rng = np.random.default_rng(29)
    x = rng.normal(size=(500, FEATURES)) / math.sqrt(FEATURES)
    return x * np.sign(x @ rng.normal(size=FEATURES) + rng.normal(size=500))[:, None]


def train(data: Any, rng: np.random.Generator) -> Any:
    """Logistic regression by full-batch DP-SGD: gradients clipped to 1, summed, noise, a step."""
    weights = np.zeros(data.shape[1])
    norms = np.linalg.norm(data, axis=1)
    for _ in range(STEPS):
        pull = 1 / (1 + np.exp(data @ weights))
        pull /= np.maximum(pull * norms, 1.0)
        noise = rng.normal(scale=SIGMA, size=weights.size)
        weights += RATE * (pull @ data + noise)
    return weights


def with_canaries(m: int) -> tuple[Any, Any]:
    """The base records, and m canaries with a feature of their own each."""
    data = np.hstack([base(), np.zeros((500, m))])
    return data, np.hstack([np.zeros((m, FEATURES)), 4.0 * np.eye(m)])


@table("one-run-budget")
def budget() -> str:
    """Gaussian scores: the median certified ε at δ = 1e-5 of 21, by canaries and runs (3 minutes)."""
    rows, repeats, separations = [], 21, (0.5, 1.0, 2.0, 4.0)
    for m, runs in ((100, 1), (100, 10), (1000, 1), (1000, 10), (10_000, 1), (10_000, 10)):
        found = []
        for mu in separations:
            values = []
            for k in range(repeats):
                rngs = [np.random.default_rng([31, m, k, run]) for run in range(runs)]
                made = [gaussian(m, mu, 0.0, rng) for rng in rngs]
                scores, coins = ([one[side] for one in made] for side in (0, 1))
                values.append(dp.one_run(scores, coins, delta=DELTA, rng=k).value)  # type: ignore[union-attr]
            found.append(statistics.median(values))
        rows.append([f"{m:,}", runs, *(f"{value:.2f}" for value in found)])
    rows.append(["truth", "", *(f"{of_mu(mu):.2f}" for mu in separations)])
    return markdown(["canaries", "runs", *(f"μ = {mu:g}" for mu in separations)], rows)


@table("one-run-training")
def training() -> str:
    """DP-SGD of a logistic regression that is 1-GDP: ε at δ = 1e-5, median of 5 (3 minutes)."""
    claim, repeats, m = "eps, delta=1e-5", 5, 1000
    truth = of_mu(1.0)
    data, records = with_canaries(m)
    rows = []
    for runs in (1, 5, 25):
        found, from_mu = [], []
        for seed in range(repeats):
            sets = [dp.Canaries(records, data=data, rng=1000 * seed + k) for k in range(runs)]
            models = [train(one.dataset(), np.random.default_rng([30, one.rng])) for one in sets]
            scores, coins = [model[FEATURES:] for model in models], [one.included for one in sets]
            found.append(dp.one_run(scores, coins, delta=DELTA, rng=seed).value)  # type: ignore[union-attr]
            mu = dp.one_run(scores, coins, claim="mu=0", rng=seed).lower_bound  # type: ignore[union-attr]
            from_mu.append(of_mu(mu))
        way = f"`dp.one_run`, {m:,} canaries" + (" each" if runs > 1 else "")
        cells = [statistics.median(found), statistics.median(from_mu)]
        rows.append([way, f"{runs:,}", *(f"{value:.2f}" for value in cells)])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    data, records = with_canaries(1)
    pair = (data, np.vstack([data, records]))
    score = dp.from_function(lambda x, rng: float(train(x, rng)[-1]))
    quiet = dp.Sampling(progress=False)
    for n in (250, 2500, 10_000):
        found = [
            dp.bound(score, pair, claim, n=n, rng=seed, sampling=quiet).value
            for seed in range(repeats)
        ]
        from_mu = [
            of_mu(dp.bound(score, pair, "mu", n=n, rng=seed, sampling=quiet).value)
            for seed in range(repeats)
        ]
        cells = [statistics.median(found), statistics.median(from_mu)]
        rows.append(["`dp.bound`, one canary", f"{2 * n:,}", *(f"{value:.2f}" for value in cells)])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    rows.append(["truth", "", f"{truth:.2f}", f"{truth:.2f}"])
    return markdown(["way", "trainings", "certified ε", "ε from certified μ"], rows)
