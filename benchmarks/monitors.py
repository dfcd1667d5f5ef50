"""The tables of docs/methods/monitor.md: draws until a claim is refuted, true claims, what it costs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.tables import markdown, table

#: Seeds the settings were tuned on are below 10 000; these were not looked at before.
SEEDS = 1_000_000
#: A draw of `n` outputs on either input.
Drawer = Callable[[np.random.Generator, int], tuple[Any, Any]]


def laplace(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.laplace(size=n), 1 + rng.laplace(size=n)


def gaussian(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.normal(size=n), 1 + rng.normal(size=n)


def watched(claim: dp.Claim, draw: Drawer, seed: int, most: int) -> dp.Monitor:
    """A monitor that got draws a tenth more at a time until it refuted the claim, or had the most."""
    rng = np.random.default_rng([seed, 1])
    found = dp.Monitor(claim, rng=seed)
    while not found.violated and found.draws < most:
        size = min(max(8, found.draws // 10), most - found.draws)
        found.update(*draw(rng, size))
    return found


def until_refuted(
    claim: dp.Claim, draw: Drawer, runs: int, most: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Draws a side when each of some monitors refuted the claim; 0 where it did not."""
    found = [watched(claim, draw, SEEDS + k, most).refuted_at or 0 for k in range(runs)]
    return np.array(found)


@table("monitor-draws")
def draws() -> str:
    """Draws a side until a false claim about Laplace noise is refuted, everything learned on the way."""
    rows = []
    plans = ((0.5, 400, 100, 2000), (0.75, 1800, 60, 8000), (0.9, 12_000, 60, 60_000))
    for epsilon, goal, runs, most in (*plans, (0.95, 50_000, 30, 250_000)):
        at = until_refuted(dp.PureDP(epsilon), laplace, runs, most)
        late = int(np.count_nonzero(at == 0))
        mean = np.where(at == 0, most, at).mean()
        shown = f"{mean:,.0f}" + (f" ({late} stopped at {most:,})" if late else "")
        share = np.mean((at > 0) & (at <= goal))
        median = float(np.median(np.where(at == 0, most, at)))
        rows.append([f"ε = {epsilon}", runs, shown, f"{median:,.0f}", f"{share:.2f} with {goal:,}"])
    return markdown(["claim (truth: 1)", "monitors", "mean draws", "median", "refuted"], rows)


@table("monitor-kinds")
def kinds() -> str:
    """Draws a side until a false claim of each other kind is refuted."""
    cases: Sequence[tuple[str, dp.Claim, Drawer, int]] = (
        ("Laplace, (ε, δ)", dp.ApproximateDP(0.75, 0.01), laplace, 40_000),
        ("Gaussian μ = 1", dp.GaussianDP(0.9), gaussian, 40_000),
        ("Gaussian μ = 1", dp.RenyiDP(order=2, epsilon=0.85), gaussian, 200_000),
        ("Gaussian μ = 1", dp.ZeroConcentratedDP(0.42), gaussian, 200_000),
    )
    rows = []
    for name, claim, draw, most in cases:
        at = until_refuted(claim, draw, 10, most)
        late = int(np.count_nonzero(at == 0))
        full = np.where(at == 0, most, at)
        rows.append(
            [name, str(claim), 10, f"{full.mean():,.0f}", f"{np.median(full):,.0f}", 10 - late]
        )
    return markdown(["outputs", "claim", "monitors", "mean draws", "median", "refuted"], rows)


# --- true claims


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


TRUE: Sequence[tuple[str, dp.Claim, Drawer, str]] = (
    ("Laplace", dp.PureDP(1.0), laplace, "at once"),
    ("Laplace, sorted", dp.PureDP(1.0), _sorted, "at once"),
    ("Laplace", dp.PureDP(1.0), laplace, "unequal pushes, restarts"),
    ("randomized response", dp.PureDP(1.0), _coin, "at once"),
    ("numbers and words", dp.PureDP(1.0), _mixed, "at once"),
    ("ten coordinates", dp.PureDP(1.0), _wide, "at once"),
    ("P = Q", dp.PureDP(0.0), _same, "at once"),
    ("Laplace", dp.ApproximateDP(0.5, 1 - math.exp(-0.25)), laplace, "at once"),
    ("Gaussian μ = 1", dp.GaussianDP(1.0), gaussian, "at once"),
    ("Gaussian μ = 1", dp.RenyiDP(order=2, epsilon=1.0), gaussian, "at once"),
    ("Gaussian μ = 1", dp.ZeroConcentratedDP(0.5), gaussian, "at once"),
    (
        "Gaussian μ = 1",
        dp.TradeoffDP(lambda a: dp.GaussianDP(1.0).tradeoff(a)),
        gaussian,
        "unequal pushes, restarts",
    ),
)


def ever(claim: dp.Claim, draw: Drawer, how: str, seed: int, most: int) -> bool:
    """Whether a monitor of a true claim ever refuted it within so many draws."""
    rng = np.random.default_rng([seed, 2])
    found = dp.Monitor(claim, rng=seed)
    p, q = draw(rng, most)
    if how == "at once":
        found.update(p, q)
        return found.violated
    at = [0, 0]
    while min(at) < most:
        ends = [min(most, k + int(rng.geometric(1 / (10 + k / 4)) - 1)) for k in at]
        found.update(p[at[0] : ends[0]], q[at[1] : ends[1]])
        at = ends
        if rng.random() < 0.1:
            found = dp.Monitor.from_json(found.to_json())
    return found.violated


def truth(plan: dict[int, tuple[int, int]]) -> str:
    """Rates at which true claims are ever refuted; `plan` has runs and draws by case."""
    rows = []
    for k, (name, claim, draw, how) in enumerate(TRUE):
        runs, most = plan[k]
        first = 2 * SEEDS + 10_000 * k
        wrong = sum(ever(claim, draw, how, seed, most) for seed in range(first, first + runs))
        said = "f-DP of a Gaussian" if isinstance(claim, dp.TradeoffDP) else str(claim)
        limit = _limit(runs, 0.05, 0.01 / len(TRUE))
        rows.append([name, said, how, f"{runs:,} to {most:,}", wrong, limit])
    headings = [
        "outputs",
        "claim, true",
        "pushed",
        "monitors, draws a side",
        "ever refuted",
        "limit",
    ]
    return markdown(headings, rows)


def _limit(runs: int, rate: float, level: float) -> int:
    """The most refutations that a rate explains at a level."""
    from scipy.stats import binom

    return int(binom.ppf(1 - level, runs, rate))


@table("monitor-true")
def true() -> str:
    """How often a true claim is ever refuted at 95 % confidence."""
    plan = dict.fromkeys(range(len(TRUE)), (20, 2048))
    plan[0] = (100, 30_000)
    return truth(plan)


@table("monitor-cost")
def cost() -> str:
    """What a monitor costs, beside drawing from the cheapest mechanism."""
    rows = []
    mechanism, pair = dp.zoo.Laplace(1.0), (0.0, 1.0)
    for n in (10_000, 100_000, 1_000_000):
        best = [math.inf] * 4
        for repeat in range(3):
            rng = np.random.default_rng(repeat)
            p, q = laplace(rng, n)
            steps: Sequence[Callable[[], Any]] = (
                partial(laplace, rng, n),
                partial(dp.draw, mechanism, pair, n=n, rng=repeat),
                partial(dp.Monitor("eps=1", rng=repeat).update, p, q),
                partial(dp.monitor, mechanism, pair, "eps=1", max_n=n, rng=repeat),
            )
            for place, step in enumerate(steps):
                start = time.process_time()
                step()
                best[place] = min(best[place], time.process_time() - start)
        ratio = f"{best[3] / best[1]:.1f}"
        rows.append([f"{n:,}", *(f"{seconds:.3f} s" for seconds in best), ratio])
    headings = ["draws a side", "NumPy's Laplace", "dp.draw", "Monitor.update", "dp.monitor"]
    return markdown([*headings, "dp.monitor / dp.draw"], rows)
