"""Quality of the (ε, δ) spectra: error, certified coverage, small δ."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

import dpassay as dp
from benchmarks.parallel import runs
from benchmarks.tables import markdown, table

zoo = dp.zoo
EPS = np.linspace(0, 2, 41)
UNIT = (0.0, 1.0)


def exact(mechanism: Any, pair: Any) -> Any:
    """The worse direction."""
    a, b = pair
    return np.maximum(mechanism.delta(EPS, (a, b)), mechanism.delta(EPS, (b, a)))


class TwoLaplace:
    """Two releases with Laplace noise of scale 2, composed: ε = 1."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return data + 2 * rng.laplace(size=(size, 2))

    def delta(self, epsilon: Any, pair: Any) -> Any:
        """By the midpoint rule between the two inputs; beyond them the loss is ±½."""
        x = (np.arange(400) + 0.5) / 400
        p = np.concatenate([[0.5, math.exp(-0.5) / 2], np.exp(-x / 2) / 1600])
        q = np.concatenate([[math.exp(-0.5) / 2, 0.5], np.exp((x - 1) / 2) / 1600])
        both = dp.Masses(*(np.outer(side, side).ravel() / side.sum() ** 2 for side in (p, q)))
        return both.delta(epsilon)


def cells() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Mechanism, pair, options."""
    gaussian = zoo.Gaussian(math.sqrt(2 * math.log(1.25e5)))
    fifty = (np.zeros(50), np.eye(50)[0])
    counting, million = zoo.ExponentialCounting(2.0), {"n": 1_000_000}
    out: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "Laplace ε = 1": (zoo.Laplace(), UNIT, million),
        "two Laplace ε = ½, 2 dimensions": (TwoLaplace(), UNIT, {"n": 100_000}),
        "Gaussian (1, 10⁻⁵)": (gaussian, UNIT, million),
        "exponential, counting on {0,1,1}, ε = 2": (counting, counting.pair, million),
    }
    for rows in (10, 100, 1000):
        histogram = zoo.NoiselessHistogram(rows)
        out[f"noiseless histogram, {rows} rows"] = (histogram, histogram.pair, million)
    net = {"n": 400_000, "loss": "mlp"}
    out["Laplace, 50 dimensions, neural net"] = (zoo.Laplace(), fifty, net)
    out["Gaussian σ = 1, 50 dimensions, neural net"] = (zoo.Gaussian(), fifty, net)
    out["Laplace, 50 dimensions, auto"] = (zoo.Laplace(), fifty, {"n": 400_000})
    return out


def one_error(seed: int, name: str) -> tuple[float, float, str]:
    """Largest error on the grid, relative error at ε = 0, and the loss used."""
    mechanism, pair, options = cells()[name]
    spectrum = dp.spectrum.estimate(mechanism, pair, rng=seed, **options)
    truth = exact(mechanism, UNIT if "50" in name else pair)
    method = spectrum.about.method if spectrum.about else ""
    return (
        float(np.abs(spectrum.y - truth).max()),
        float(spectrum.y[0] / truth[0] - 1),
        method.removeprefix("Eureka with "),
    )


@table("spectrum-errors")
def errors(count: int = 20) -> str:
    """Largest error of δ̂ over 41 ε, median of 20 runs (of 3 in 50 dimensions; 10 minutes)."""
    rows = []
    for name, (_, _, options) in cells().items():
        found = runs(one_error, range(3 if "50" in name else count), name, label=name)
        largest, relative = (np.median([f[k] for f in found]) for k in (0, 1))
        rows.append([name, f"{options['n']:,}", found[0][2], f"{largest:.4f}", f"{relative:+.1%}"])
    return markdown(["mechanism", "n", "loss", "max error", "relative error at ε = 0"], rows)


def certified() -> dict[str, Any]:
    """One mechanism of each kind."""
    return {
        "Laplace": zoo.Laplace(),
        "Gaussian": zoo.Gaussian(),
        "discrete Laplace": zoo.DiscreteLaplace(),
        "SVT3 (mixed)": zoo.SVT(3, 1.5),
    }


def one_crossing(seed: int, name: str) -> tuple[bool, float]:
    """Whether the certified curve lies above the truth anywhere, and its mean distance below."""
    mechanism = certified()[name]
    spectrum = dp.spectrum.estimate(mechanism, mechanism.pair, n=10_000, rng=seed)
    truth = exact(mechanism, mechanism.pair)
    assert spectrum.lower is not None
    return bool(np.any(spectrum.lower > truth + 1e-12)), float(np.mean(truth - spectrum.lower))


@table("spectrum-certified")
def coverage(count: int = 500) -> str:
    """How often the certified curve lies above the truth anywhere, n = 10⁴, 500 runs (3 minutes)."""
    limit = binom.ppf(1 - 0.01 / 4, count, 0.05) / count
    rows = []
    for name in certified():
        found = np.array(runs(one_crossing, range(count), name, label=name), dtype=float)
        rows.append(
            [name, f"{found[:, 0].mean():.3f}", f"{limit:.3f}", f"{found[:, 1].mean():.4f}"]
        )
    return markdown(["mechanism", "above the truth", "limit", "mean distance"], rows)


@table("spectrum-small")
def small() -> str:
    """δ = 10⁻⁶: Gaussian σ = 4 at the ε where it is reached, up to 10⁹ draws a side (3 minutes)."""
    import resource

    mechanism = zoo.Gaussian(4.0)
    eps = float(brentq(lambda e: mechanism.delta(e, UNIT) - 1e-6, 0.9, 1.3))
    rows = []
    for n in (10**7, 10**8, 10**9):
        start = time.perf_counter()
        spectrum = dp.spectrum.estimate(mechanism, UNIT, epsilons=[eps], n=n, train=0.1, rng=0)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        assert spectrum.lower is not None
        rows.append(
            [
                f"{n:.0e}",
                f"{spectrum.y[0]:.3e}",
                f"{spectrum.lower[0]:.3e}",
                f"{seconds:.0f}",
                f"{peak:.0f}",
            ]
        )
    headings = ["draws a side", f"estimate at ε = {eps:.4f}", "certified", "seconds", "peak MB"]
    return markdown(headings, rows)


@table("spectrum-large")
def large() -> str:
    """2²⁶ draws in all, the whole spectrum of Laplace (1 minute)."""
    import resource

    start = time.perf_counter()
    spectrum = dp.spectrum.estimate(zoo.Laplace(), UNIT, n=1 << 25, rng=0)
    seconds = time.perf_counter() - start
    error = float(np.abs(spectrum.y - exact(zoo.Laplace(), UNIT)).max())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return markdown(
        ["draws in all", "ε on the grid", "seconds", "peak MB", "max error"],
        [["2²⁶", 41, f"{seconds:.1f}", f"{peak:.0f}", f"{error:.5f}"]],
    )
