"""Paper 002, Rényi DP: Kutta, Askin & Dunsche, lower bounds in a black-box setting."""

from __future__ import annotations

import functools
from typing import Any

import altair as alt
import numpy as np

import dpassay as dp
from papers import plots
from papers.core import Lab, Outcome, Row, item, timings

zoo = dp.zoo
ORDERS = (2, 5, 7)
#: Minutes of one bound in the paper's Table I.
MINUTES = {
    "Laplace": 3.34,
    "Gaussian": 1.76,
    "subsampled Laplace": 4.74,
    "subsampled Gaussian": 3.33,
    "randomized response": 5.14,
    "shuffled response": 6.62,
    "noisy gradient descent": 11.1,
}
METHODS = {"as in the paper": False, "without the bias": True}


def mechanism(name: str) -> tuple[Any, Any]:
    """The mechanism with the paper's parameters, and its pair: x = (1, 0, …, 0), x' = 0."""
    laplace, gaussian = zoo.Laplace(5.0), zoo.Gaussian(5.0)
    boxes = {
        "Laplace": laplace,
        "Gaussian": gaussian,
        "subsampled Laplace": zoo.PoissonSubsampled(laplace),
        "subsampled Gaussian": zoo.PoissonSubsampled(gaussian),
        "randomized response": zoo.RandomizedResponse(1.5),
        "shuffled response": zoo.ShuffledRandomizedResponse(1.5),
        "noisy gradient descent": zoo.NoisyGradientDescent(),
    }
    box = boxes[name]
    return box, (1.0, 0.0) if name in ("Laplace", "Gaussian") else box.pair


@functools.cache
def truths(name: str) -> list[float]:
    """The exact divergences at the three orders."""
    box, pair = mechanism(name)
    return [float(box.renyi(float(order), pair)) for order in ORDERS]


def bounds(seed: int, name: str, correct: bool, floor: float, n: int) -> list[float]:
    """Lower bounds at the three orders from one sample, each at its own level."""
    return _softmax(*mechanism(name), correct, floor, n, seed)


def _softmax(box: Any, pair: Any, correct: bool, floor: float, n: int, seed: int) -> list[float]:
    curve = dp.renyi.curve(
        box,
        pair,
        orders=ORDERS,
        n=n,
        method=dp.renyi.Softmax(floor=floor, sharpness=1 / floor, correct=correct),
        direction="forward",
        simultaneous=False,
        rng=seed,
    )
    assert curve.lower is not None
    return [float(bound) for bound in curve.lower]


def ratios(lab: Lab, name: str, correct: bool, floor: float, count: int) -> Any:
    """Bound over truth, one row a run, one column an order."""
    found = lab.runs(bounds, name, correct, floor, lab.n(5_000_000, 5000), count=count)
    return np.array(found) / np.array(truths(name))


@item("renyi/fig1")
def fig1(lab: Lab) -> Outcome:
    rows: list[Row] = []
    charts = []
    for name in MINUTES:
        for label, correct in METHODS.items():
            found = ratios(lab, name, correct, 1e-5, lab.count(8))
            for k, order in enumerate(ORDERS):
                rows.append(
                    {
                        "mechanism": name,
                        "λ": order,
                        "method": label,
                        "truth": truths(name)[k],
                        "median ratio": float(np.median(found[:, k])),
                        "least ratio": float(found[:, k].min()),
                        "largest ratio": float(found[:, k].max()),
                        "overshoot": float(np.mean(found[:, k] > 1)),
                    }
                )
            if not correct:
                groups = {f"λ = {o}": found[:, k] for k, o in enumerate(ORDERS)}
                note = {
                    f"λ = {o}": f"α̂ = {np.mean(found[:, k] > 1):.2f}" for k, o in enumerate(ORDERS)
                }
                charts.append(plots.violins(groups, name, "bound / truth", note))
    paper = [row for row in rows if row["method"] == "as in the paper"]
    ours = [row for row in rows if row["method"] != "as in the paper"]
    low = min(paper, key=lambda row: float(row["median ratio"]))
    over = [row for row in paper if float(row["overshoot"]) > 0.05]
    above = sum(float(row["median ratio"]) > 0.95 for row in paper)
    worst = max(float(row["overshoot"]) for row in ours)
    names = ", ".join(dict.fromkeys(str(row["mechanism"]) for row in over)) or "none"
    return Outcome(
        rows,
        f"medians above 0.95 in {above} of {len(paper)} cells (smallest {low['median ratio']:.3f}, "
        f"{low['mechanism']}, λ = {low['λ']}); more than 5 % above the truth, as printed: {names}; with "
        f"the bias taken out the largest share above is {worst:.2f}.",
        above >= 0.85 * len(paper),
        alt.vconcat(*[alt.hconcat(*charts[k : k + 3]) for k in range(0, len(charts), 3)]),
    )


@item("renyi/table1")
def table1(lab: Lab) -> Outcome:
    size = lab.n(5_000_000, 5000)
    cases = [
        (name, (name, False, 1e-5, size), round(60 * minutes, 1))
        for name, minutes in MINUTES.items()
    ]
    return timings(lab, bounds, cases, 2, " for all orders")


FLOORS = {"τ = 10⁻⁵": 1e-5, "τ = 5·10⁻⁶": 5e-6, "τ = 5·10⁻⁷": 5e-7}


def shuffled(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Randomized response on every record, the answers in random order: 1024 outputs."""
    return rng.permuted(zoo.RandomizedResponse(1.5)(data, size, rng), axis=1)


def shuffled_bounds(seed: int, floor: float, n: int) -> list[float]:
    """Bounds at the three orders, the estimator as printed."""
    return _softmax(shuffled, zoo.RandomizedResponse(1.5).pair, False, floor, n, seed)


@item("renyi/appendixF")
def appendix_f(lab: Lab) -> Outcome:
    rows: list[Row] = []
    charts = []
    for label, floor in FLOORS.items():
        size = lab.n(5_000_000, 5000)
        found = np.array(lab.runs(shuffled_bounds, floor, size, count=lab.count(6)))
        found = found / np.array(truths("shuffled response"))
        rows += [
            {
                "floor": label,
                "λ": order,
                "median ratio": float(np.median(found[:, k])),
                "overshoot": float(np.mean(found[:, k] > 1)),
            }
            for k, order in enumerate(ORDERS)
        ]
        groups = {f"λ = {o}": found[:, k] for k, o in enumerate(ORDERS)}
        charts.append(plots.violins(groups, label, "bound / truth", {}))
    median = {(r["floor"], r["λ"]): float(r["median ratio"]) for r in rows}
    said = "; ".join(
        f"{label}: {', '.join(f'{median[label, order]:.3f}' for order in ORDERS)}"
        for label in FLOORS
    )
    first, second, _ = FLOORS
    return Outcome(
        rows,
        f"median bound / truth at λ = 2, 5, 7: {said}.",
        all(abs(1 - median[second, o]) < abs(1 - median[first, o]) for o in ORDERS),
        alt.hconcat(*charts),
    )
