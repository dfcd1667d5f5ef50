"""Quality of the f-DP methods at the settings of their paper."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom

import dpassay as dp
from benchmarks.parallel import runs
from benchmarks.tables import markdown, table

zoo = dp.zoo
ALPHA = np.linspace(0, 1, 2001)


def settings() -> dict[str, tuple[Any, Any]]:
    """The four mechanisms of the paper, the null hypothesis second."""
    tens = zoo.ToyDPSGD().pair
    return {
        "Gaussian σ = 1": (zoo.Gaussian(), (1.0, 0.0)),
        "DP-SGD": (zoo.ToyDPSGD(), tens),
        "Laplace": (zoo.Laplace(), (1.0, 0.0)),
        "subsampled Gaussian": (zoo.Subsampled(zoo.Gaussian(1.0), 5), tens),
    }


def curve_errors(seed: int, name: str, n: int) -> tuple[float, float]:
    """Sup-distance and mean squared error of one estimated curve."""
    mechanism, pair = settings()[name]
    curve = dp.tradeoff.estimate(mechanism, pair, n=n, rng=seed, confidence=None)
    gap = curve(ALPHA) - mechanism.tradeoff(ALPHA, pair)
    return float(np.abs(gap).max()), float(np.mean(gap**2))


@table("fdp-curves")
def curves(count: int = 100) -> str:
    """PLRT: median sup-distance to the exact curve and MSE, 100 runs a cell (5 minutes)."""
    rows = []
    for name in settings():
        for n in (100, 1000, 10_000, 100_000, 1_000_000):
            errors = np.array(runs(curve_errors, range(count), name, n, label=f"{name} {n}"))
            sup, mse = np.median(errors[:, 0]), np.mean(errors[:, 1])
            rows.append([name, f"{n:,}", f"{sup:.4f}", f"{mse:.2e}"])
    return markdown(["mechanism", "n", "median sup-distance", "mean squared error"], rows)


@cache
def claims() -> dict[str, tuple[Any, Any, Any, bool]]:
    """Correct claims, and the faulty ones of the paper's Figure 5."""
    pair = zoo.ToyDPSGD().pair

    def sgd(iterations: int) -> dp.TradeoffDP:
        mechanism = zoo.ToyDPSGD(iterations=iterations)
        return dp.TradeoffDP(lambda a: mechanism.tradeoff(a, pair), ordered=True)

    return {
        "Gaussian μ = 1, claimed 1": (zoo.Gaussian(), (1.0, 0.0), dp.GaussianDP(1.0), True),
        "DP-SGD τ = 10, claimed 10": (zoo.ToyDPSGD(), pair, sgd(10), True),
        "Gaussian μ = 1, claimed 0.5": (zoo.Gaussian(), (1.0, 0.0), dp.GaussianDP(0.5), False),
        "DP-SGD τ = 10, claimed 5": (zoo.ToyDPSGD(), pair, sgd(5), False),
    }


def one_audit(seed: int, name: str, n: int, box: Any) -> bool:
    """One run of Algorithm 2."""
    mechanism, pair, claim, _ = claims()[name]
    verdict = dp.tradeoff.audit(
        mechanism, pair, claim, n_locate=10_000, n_test=n, box=box, rng=seed
    )
    return verdict.violated


@table("fdp-audit")
def audits(count: int = 500) -> str:
    """Algorithm 2: how often it refutes, by confidence region and n₂, 500 runs a cell (15 minutes)."""
    rows = []
    limit = binom.ppf(1 - 0.01 / 18, count, 0.05) / count
    for name, (_, _, _, correct) in claims().items():
        for n in (1000, 3000, 10_000):
            rates = [
                np.mean(runs(one_audit, range(count), name, n, box, label=f"{name} {n} {box}"))
                for box in ("hoeffding", "clopper-pearson", "joint")
            ]
            allowed = f"≤ {limit:.3f}" if correct else "detect"
            rows.append([name, f"{n:,}", *(f"{rate:.3f}" for rate in rates), allowed])
    headings = ["claim", "n₂", "Hoeffding (the paper's)", "Clopper–Pearson", "joint", "wanted"]
    return markdown(headings, rows)
