"""Quality of the Rényi bounds: the softmax bound at the settings of its paper, and the exact one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

import dpassay as dp
from benchmarks.parallel import runs
from benchmarks.tables import markdown, table

zoo = dp.zoo
ORDERS = (2, 5, 7)
E1, ZERO = np.eye(10)[0], np.zeros(10)


def mechanisms() -> dict[str, tuple[Any, Any]]:
    """The paper's seven."""
    laplace, gaussian = zoo.Laplace(5.0), zoo.Gaussian(5.0)
    return {
        "Laplace": (laplace, (1.0, 0.0)),
        "Gaussian": (gaussian, (1.0, 0.0)),
        "subsampled Laplace": (zoo.PoissonSubsampled(laplace), zoo.PoissonSubsampled(laplace).pair),
        "subsampled Gaussian": (
            zoo.PoissonSubsampled(gaussian),
            zoo.PoissonSubsampled(gaussian).pair,
        ),
        "randomized response": (zoo.RandomizedResponse(1.5), zoo.RandomizedResponse(1.5).pair),
        "shuffled response": (
            zoo.ShuffledRandomizedResponse(1.5),
            zoo.ShuffledRandomizedResponse(1.5).pair,
        ),
        "noisy gradient descent": (
            zoo.NoisyGradientDescent(),
            zoo.NoisyGradientDescent().pair,
        ),
    }


def one_curve(seed: int, name: str, n: int, correct: bool) -> list[float]:
    """Bounds at the three orders from one sample, each at its own level."""
    mechanism, pair = mechanisms()[name]
    method = dp.renyi.Softmax(floor=1e-5, sharpness=1e5, correct=correct)
    curve = dp.renyi.curve(
        mechanism,
        pair,
        orders=ORDERS,
        n=n,
        method=method,
        direction="forward",
        simultaneous=False,
        rng=seed,
    )
    assert curve.lower is not None
    return [float(bound) for bound in curve.lower]


@table("renyi")
def softmax(count: int = 100, n: int = 5_000_000) -> str:
    """Softmax bound at the paper's settings: tightness and overshoot, 100 runs (30 minutes)."""
    rows = []
    for name, (mechanism, pair) in mechanisms().items():
        truth = np.array([mechanism.renyi(float(order), pair) for order in ORDERS])
        ours, paper = (
            np.array(runs(one_curve, range(used), name, n, correct, label=f"{name} {correct}"))
            for correct, used in ((True, count), (False, count // 4))
        )
        for k, order in enumerate(ORDERS):
            rows.append(
                [
                    name,
                    order,
                    f"{truth[k]:.5f}",
                    f"{np.median(ours[:, k]) / truth[k]:.3f}",
                    f"{np.mean(ours[:, k] > truth[k]):.2f}",
                    f"{np.mean(paper[:, k] > truth[k]):.2f}",
                ]
            )
    headings = ["mechanism", "λ", "truth", "median bound/truth", "overshoot", "without `correct`"]
    return markdown(headings, rows)


def variational_cells() -> dict[str, tuple[Any, Any]]:
    """What the exact bound is tried on."""
    svt, response = zoo.SVT(3, 1.5), zoo.RandomizedResponse(1.5)
    return {
        "Laplace": (zoo.Laplace(), (1.0, 0.0)),
        "Gaussian μ = 1": (zoo.Gaussian(), (1.0, 0.0)),
        "randomized response": (response, response.pair),
        "SVT3": (svt, svt.pair),
        "Gaussian, 10 dimensions": (zoo.Gaussian(), (E1, ZERO)),
    }


def one_variational(seed: int, name: str, n: int) -> float:
    """One exact bound at λ = 2."""
    mechanism, pair = variational_cells()[name]
    return dp.renyi.lower_bound(
        mechanism, pair, order=2, n=n, method=dp.renyi.Variational(), direction="forward", rng=seed
    ).value


@table("renyi-variational")
def variational(count: int = 1000) -> str:
    """Variational bound at λ = 2: overshoot in 1000 runs, tightness by n (10 minutes)."""
    limit = binom.ppf(1 - 0.01 / 5, count, 0.05) / count
    rows = []
    for name, (mechanism, pair) in variational_cells().items():
        truth = mechanism.renyi(2.0, pair)
        over = np.mean(
            np.array(runs(one_variational, range(count), name, 2000, label=name)) > truth
        )
        ratios = [
            np.median(runs(one_variational, range(25), name, n, label=f"{name} {n}")) / truth
            for n in (3000, 30_000, 300_000)
        ]
        rows.append(
            [name, f"{truth:.4f}", f"{over:.3f}", f"{limit:.3f}", *(f"{r:.3f}" for r in ratios)]
        )
    headings = ["mechanism", "ε(2)", "overshoot, n = 2000", "limit"]
    return markdown(
        headings + [f"median ratio, n = {n}" for n in ("3·10³", "3·10⁴", "3·10⁵")], rows
    )


def reach_cells() -> dict[str, tuple[Any, Any]]:
    """What `dp.estimate` is tried on: light and heavy tails, atoms, several numbers, small ε."""
    five = (np.zeros(5), np.full(5, 0.3))
    members = {
        "Laplace": zoo.Laplace(),
        "Gaussian μ = 1": zoo.Gaussian(),
        "Gaussian, 5 dimensions": zoo.Gaussian(),
        "subsampled Gaussian, σ = 1": zoo.Subsampled(zoo.Gaussian(1.0)),
        "Poisson-subsampled Gaussian, σ = 5": zoo.PoissonSubsampled(zoo.Gaussian(5.0)),
        "Poisson-subsampled Gaussian, σ = 0.8, rate 0.2": zoo.PoissonSubsampled(
            zoo.Gaussian(0.8), 0.2
        ),
        "Poisson-subsampled Gaussian, σ = 0.6, rate 0.3": zoo.PoissonSubsampled(
            zoo.Gaussian(0.6), 0.3
        ),
        "discrete Laplace": zoo.DiscreteLaplace(),
        "discrete Gaussian": zoo.DiscreteGaussian(),
        "exponential, continuous": zoo.ContinuousExponential(),
        "exponential, discrete": zoo.ExponentialCounting(),
        "randomized response": zoo.KaryRandomizedResponse(),
        "shuffled response": zoo.ShuffledRandomizedResponse(),
        "report noisy max": zoo.ReportNoisyMax(1.5, 5),
        "SVT1": zoo.SVT(1, 0.7),
    }
    return {name: (m, five if "5 dim" in name else m.pair) for name, m in members.items()}


def one_reach(seed: int, name: str, n: int) -> tuple[float, float]:
    """The order that the profile gives, and the one up to which its error is at most 15 %."""
    mechanism, pair = reach_cells()[name]
    profile = dp.estimate(mechanism, pair, n=n, rng=seed)
    curve = profile.renyi_curve
    truth = [max(mechanism.renyi(float(x), way) for way in (pair, pair[::-1])) for x in curve.x]
    far = curve.x[np.abs(curve.y / np.array(truth) - 1) > 0.15]
    return profile.renyi_reach, float(curve.x[curve.x < far.min(initial=np.inf)].max(initial=1.0))


@table("renyi-reach")
def reach(count: int = 50) -> str:
    """How often the error of `dp.estimate` is at most 15 % up to `renyi_reach` (10 minutes)."""
    rows = []
    for name in reach_cells():
        shown = []
        for n in (5000, 20_000, 100_000):
            found = np.array(
                runs(one_reach, range(1000, 1000 + count), name, n, label=f"{name} {n}")
            )
            good = np.mean(np.minimum(found[:, 0], 32.0) <= found[:, 1])
            middle = np.median(np.minimum(found, 32.0), axis=0)
            shown += [f"{good:.2f}", f"{middle[0]:g} of {middle[1]:g}"]
        rows.append([name, *shown])
    sizes = ("5·10³", "2·10⁴", "10⁵")
    headings = [one for n in sizes for one in (f"within 15 %, n = {n}", f"reach, n = {n}")]
    return markdown(["mechanism", *headings], rows)
