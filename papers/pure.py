"""Paper 000, pure DP (Askin, Kutta & Dette): densities, losses and input patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import laplace, norm

import dpassay as dp
from papers import plots
from papers.core import Lab, Outcome, Row, item

zoo = dp.zoo


@item("pure/fig1")
def fig1(lab: Lab) -> Outcome:
    box = zoo.Laplace(1.0)
    draws = np.asarray(box(0.0, 200, np.random.default_rng(3)))
    fresh = np.asarray(box(0.0, 200, np.random.default_rng(4)))
    curve = dp.pure.estimate(dp.from_samples(draws, fresh, rng=0)).loss
    assert curve is not None
    t = np.linspace(-4, 4, 161)
    estimate = np.interp(t, curve.x, curve.p)
    exact = laplace.pdf(t)
    rows = [{"t": a, "exact": e, "estimate": k} for a, e, k in zip(t, exact, estimate, strict=True)]
    long = [
        {"t": row["t"], "density": row[kind], "which": kind}
        for row in rows
        for kind in ("exact", "estimate")
    ]
    chart = plots.lines(long, "t", "density", "which", width=420) + plots.ticks(list(draws), "t")
    error = float(np.trapezoid(np.abs(estimate - exact), t))
    peak = float(estimate.max())
    return Outcome(
        rows,
        f"total variation distance to the exact density {error / 2:.3f}; the estimate peaks at "
        f"{peak:.2f} where the exact density has 0.50.",
        error / 2 < 0.15 and peak < 0.5,
        chart,
    )


def empirical_loss(seed: int, name: str, n: int) -> list[list[float]]:
    """x, p, q and loss as estimated."""
    box, pair = illustrated()[name]
    curve = dp.pure.estimate(box, pair, n=n, rng=seed).loss
    assert curve is not None
    keep = np.unique(np.linspace(0, curve.x.size - 1, min(curve.x.size, 200)).astype(int))
    return [[float(v) for v in array[keep]] for array in (curve.x, curve.p, curve.q, curve.y)]


def illustrated() -> dict[str, tuple[Any, Any]]:
    """The three mechanisms of Figure 2."""
    one, none = np.array([1]), np.array([0])
    return {
        "randomized response": (zoo.RandomizedResponse(1.0), (one, none)),
        "Laplace": (zoo.Laplace(1.0), (1.0, 0.0)),
        "Gaussian": (zoo.Gaussian(1.0), (1.0, 0.0)),
    }


@item("pure/fig2")
def fig2(lab: Lab) -> Outcome:
    rows: list[Row] = []
    for name, law in (("Laplace", laplace), ("Gaussian", norm)):
        t = np.linspace(-3, 4, 141)
        ell = np.abs(law.logpdf(t - 1) - law.logpdf(t))
        rows += [
            {
                "mechanism": name,
                "t": a,
                "|loss|": b,
                "density x": c,
                "density x'": d,
                "which": "exact",
            }
            for a, b, c, d in zip(t, ell, law.pdf(t - 1), law.pdf(t), strict=True)
        ]
        x, p, q, y = (
            np.array(v) for v in lab.runs(empirical_loss, name, lab.n(100_000), count=1)[0]
        )
        inside = (x >= -3) & (x <= 4)
        rows += [
            {
                "mechanism": name,
                "t": a,
                "|loss|": abs(b),
                "density x": c,
                "density x'": d,
                "which": "estimate",
            }
            for a, b, c, d in zip(x[inside], y[inside], p[inside], q[inside], strict=True)
        ]
    a = float(np.e / (1 + np.e))
    rows += [
        {
            "mechanism": "randomized response",
            "t": float(t),
            "|loss|": 1.0,
            "density x": a if t else 1 - a,
            "density x'": 1 - a if t else a,
            "which": "exact",
        }
        for t in (0, 1)
    ]
    x, p, q, y = lab.runs(empirical_loss, "randomized response", lab.n(100_000), count=1)[0]
    rows += [
        {
            "mechanism": "randomized response",
            "t": t,
            "|loss|": abs(e),
            "density x": b,
            "density x'": c,
            "which": "estimate",
        }
        for t, b, c, e in zip(x, p, q, y, strict=True)
    ]
    charts = []
    for what in ("density", "loss"):
        for name in illustrated():
            part = [row for row in rows if row["mechanism"] == name]
            if what == "loss":
                chart = plots.lines(
                    part,
                    "t",
                    "|loss|",
                    "which",
                    title=name,
                    width=200,
                    height=140,
                    points=len(part) < 9,
                )
            else:
                long = [
                    {"t": r["t"], "density": r[side], "which": f"{side}, {r['which']}"}
                    for r in part
                    for side in ("density x", "density x'")
                ]
                chart = plots.lines(
                    long,
                    "t",
                    "density",
                    "which",
                    title=name,
                    width=200,
                    height=140,
                    points=len(part) < 9,
                )
            charts.append(chart)

    def largest(name: str, which: str) -> float:
        values = [r for r in rows if r["mechanism"] == name and r["which"] == which]
        return float(max(r["|loss|"] for r in values))

    estimates = {name: largest(name, "estimate") for name in illustrated()}
    tails = [r["|loss|"] for r in rows if r["mechanism"] == "Gaussian" and r["which"] == "exact"]
    said = ", ".join(f"{name} {value:.2f}" for name, value in estimates.items())
    return Outcome(
        rows,
        f"largest estimated loss on the range shown: {said}; exact: 1, 1, and {max(tails):.2f} at the "
        "edge and growing.",
        abs(estimates["randomized response"] - 1) < 0.1 and abs(max(tails) - 3.5) < 1e-6,
        plots.panels(charts, 3, shared=False),
    )


@item("pure/fig3")
def fig3(lab: Lab) -> Outcome:
    found = dp.pure.estimate(
        zoo.Laplace(1.0),
        (0.0, 1.0),
        n=lab.n(20_000),
        region=(-1, 2),
        floor=1e-3,
        caution=0.0,
        rng=1,
    )
    curve = found.loss
    assert curve is not None
    t = np.linspace(-1, 2, 121)
    exact, seen = np.abs(np.abs(t) - np.abs(t - 1)), np.abs(np.interp(t, curve.x, curve.y))
    rows = [{"t": a, "exact": e, "empirical": s} for a, e, s in zip(t, exact, seen, strict=True)]
    at = float(t[int(np.argmax(seen))])
    long = [
        {"t": r["t"], "loss": r[kind], "which": kind}
        for r in rows
        for kind in ("exact", "empirical")
    ]
    chart = plots.lines(long, "t", "loss", "which", width=420)
    chart = chart + plots.rule(x=at) + plots.rule(y=found.value)
    return Outcome(
        rows,
        f"estimate {found.value:.3f} at t = {found.location}, where the exact loss is "
        f"{abs(abs(at) - abs(at - 1)):.3f}; truth 1.",
        abs(found.value - 1) < 0.25,
        chart,
    )


PRINTED = {
    "one above": ([2, 1, 1, 1, 1, 1], [1] * 6),
    "one below": ([0, 1, 1, 1, 1, 1], [1] * 6),
    "one above, rest below": ([2, 0, 0, 0, 0, 0], [1] * 6),
    "one below, rest above": ([0, 2, 2, 2, 2, 2], [1] * 6),
    "half half": ([0, 0, 0, 1, 1, 1], [1] * 6),
    "all above": ([2] * 6, [1] * 6),
    "X shape": ([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]),
}


@item("pure/table1")
def table1(lab: Lab) -> Outcome:
    box = zoo.ReportNoisyMax(1.5)
    rows: list[Row] = []
    agree = 0
    for pair in dp.neighbours.patterns(6):
        first, second = ([int(v) for v in side] for side in pair)
        printed = PRINTED.get(pair.name)
        agree += printed == (first, second)
        rows.append(
            {
                "pattern": pair.name,
                "q": str(first),
                "q'": str(second),
                "in the paper": "yes" if printed == (first, second) else "ours",
                "ε of noisy max": float(box.epsilon(pair)),
            }
        )
    worst = max(rows, key=lambda row: float(row["ε of noisy max"]))
    return Outcome(
        rows,
        f"{agree} of the {len(PRINTED)} printed patterns are in `dp.neighbours.patterns(6)`; the worst "
        f"for noisy max is “{worst['pattern']}” with ε = {worst['ε of noisy max']:.3f} of 1.5.",
        agree == len(PRINTED),
    )
