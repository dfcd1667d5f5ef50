"""Paper 004, f-DP: Askin, Dette, Dunsche, Kutta, Lu, Wei & Zikas — curves, points, audits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import beta, norm

import dpassay as dp
from papers import plots
from papers.core import Lab, Outcome, Row, item, timings

zoo = dp.zoo
ALPHA = np.linspace(0, 1, 101)
DENSE = np.linspace(0, 1, 2001)
#: Thresholds and perturbation of the paper; dpassay's default takes all ratios.
PAPER: dict[str, Any] = {"perturbation": 0.1, "thresholds": np.linspace(0, 15, 1000)}
RULES: dict[str, dict[str, Any]] = {"the paper's thresholds": PAPER, "all ratios": {}}
#: Seconds of the paper's Tables 2 and 3.
SECONDS = {
    "Gaussian": (26.3, 62.63),
    "Laplace": (30.51, 67.04),
    "subsampled Gaussian": (27.82, 66.98),
    "DP-SGD": (61.1, 114.86),
}


def mechanism(name: str) -> tuple[Any, Any]:
    """The mechanism on D' = (1, 0, …, 0) against D = 0, the null hypothesis."""
    pair = zoo.ToyDPSGD().pair
    return {
        "Gaussian": (zoo.Gaussian(1.0), (1.0, 0.0)),
        "Laplace": (zoo.Laplace(1.0), (1.0, 0.0)),
        "subsampled Gaussian": (zoo.Subsampled(zoo.Gaussian(1.0), 5), pair),
        "DP-SGD": (zoo.ToyDPSGD(), pair),
    }[name]


def exact(name: str, alpha: Any) -> Any:
    """The exact curve, symmetrised where the paper does so."""
    box, pair = mechanism(name)
    if name != "subsampled Gaussian":
        return box.tradeoff(alpha, pair)
    return dp.TradeoffCurve(DENSE, box.tradeoff(DENSE, pair)).symmetrise()(alpha)


def estimated(seed: int, name: str, n: int, rule: str) -> Any:
    """PLRT, symmetrised where the paper does so."""
    box, pair = mechanism(name)
    curve = dp.tradeoff.estimate(box, pair, n=n, confidence=None, rng=seed, **RULES[rule])
    return curve.symmetrise() if name == "subsampled Gaussian" else curve


def errors(seed: int, name: str, n: int, rule: str) -> list[float]:
    """Sup-distance over the thresholds' own points (the paper's), and over a dense grid of α."""
    curve = estimated(seed, name, n, rule)
    inner = (curve.x > 0) & (curve.x < 1)
    at_points = np.abs(curve.y - exact(name, curve.x))[inner]
    dense = np.abs(curve(DENSE) - exact(name, DENSE)).max()
    return [float(at_points.max(initial=0.0)), float(dense)]


@item("fdp/fig1")
def fig1(lab: Lab) -> Outcome:
    rows: list[Row] = []
    for name in SECONDS:
        for rule in RULES:
            for power in range(2, 7):
                found = np.array(
                    lab.runs(
                        errors,
                        name,
                        lab.n(10**power, 100),
                        rule,
                        count=lab.count(40 if power < 6 else 8),
                    )
                )
                points, dense = (float(v) for v in (found**2).mean(axis=0))
                rows.append(
                    {
                        "mechanism": name,
                        "n₁": 10**power,
                        "rule": rule,
                        "MSE": points,
                        "MSE, all α": dense,
                    }
                )

    def pick(rule: str, column: str, power: int) -> dict[str, float]:
        return {
            str(r["mechanism"]): float(r[column])
            for r in rows
            if r["rule"] == rule and r["n₁"] == 10**power
        }

    paper, ours = RULES
    shown = [row for row in rows if row["rule"] == paper]
    small, large = pick(paper, "MSE", 2), pick(paper, "MSE", 6)
    falls = all(large[name] < small[name] / 100 for name in SECONDS)
    capped, free = pick(paper, "MSE, all α", 6), pick(ours, "MSE, all α", 6)
    said = ", ".join(f"{name} {small[name]:.1e} to {large[name]:.1e}" for name in SECONDS)
    return Outcome(
        rows,
        f"mean squared sup-error from n₁ = 10² to 10⁶: {said}. Over all α, at 10⁶, DP-SGD: "
        f"{capped['DP-SGD']:.1e} with the paper's thresholds, {free['DP-SGD']:.1e} with all ratios.",
        falls,
        plots.lines(
            shown,
            "n₁",
            "MSE",
            "mechanism",
            points=True,
            log_x=True,
            log_y=True,
            width=420,
            height=240,
        ),
    )


def on_grid(seed: int, name: str, n: int) -> list[float]:
    """One estimated curve, with the paper's settings, on a grid of α."""
    curve = estimated(seed, name, n, "the paper's thresholds")
    return [round(float(v), 5) for v in curve(ALPHA)]


def envelope(lab: Lab, name: str) -> Outcome:
    """The smallest and the largest of the estimated curves, at three sample sizes."""
    rows: list[Row] = []
    charts, widths = [], {}
    truth = exact(name, ALPHA)
    for power in (3, 4, 5):
        found = np.array(lab.runs(on_grid, name, lab.n(10**power), count=lab.count(1000)))
        low, high = found.min(axis=0), found.max(axis=0)
        widths[power] = float(np.maximum(truth - low, high - truth).max())
        part: list[Row] = [
            {"n₁": 10**power, "α": a, "β": t, "least": b, "largest": c}
            for a, t, b, c in zip(ALPHA, truth, low, high, strict=True)
        ]
        rows += part
        chart = plots.band(part, "α", "least", "largest")
        line = plots.lines(part, "α", "β", title=f"n₁ = 10^{power}", width=210, height=190)
        charts.append(chart + line)
    said = ", ".join(f"10^{power}: {width:.4f}" for power, width in widths.items())
    return Outcome(
        rows,
        f"largest deviation of any run from the exact curve, by n₁: {said}.",
        widths[5] < widths[4] < widths[3] and widths[5] < 0.04,
        plots.panels(charts, 3),
    )


@item("fdp/fig2")
def fig2(lab: Lab) -> Outcome:
    return envelope(lab, "Gaussian")


@item("fdp/fig3")
def fig3(lab: Lab) -> Outcome:
    return envelope(lab, "DP-SGD")


@item("fdp/fig9")
def fig9(lab: Lab) -> Outcome:
    return envelope(lab, "Laplace")


@item("fdp/fig10")
def fig10(lab: Lab) -> Outcome:
    return envelope(lab, "subsampled Gaussian")


@item("fdp/fig11")
def fig11(lab: Lab) -> Outcome:
    flips, trials, gamma = 500, lab.n(100_000), 0.1
    seen = np.arange(flips + 1)
    share = seen / flips
    half = norm.ppf(1 - gamma / 2) * np.sqrt(share * (1 - share) / flips)
    tails = (gamma / 2, 1 - gamma / 2)
    ways = {
        "frequentist (normal)": (share - half, share + half),
        "Bayesian, Beta(10, 10) prior": tuple(
            beta.ppf(t, 10 + seen, 10 + flips - seen) for t in tails
        ),
        "Clopper–Pearson": (
            np.nan_to_num(beta.ppf(tails[0], seen, flips - seen + 1), nan=0.0),
            np.nan_to_num(beta.ppf(tails[1], seen + 1, flips - seen), nan=1.0),
        ),
    }
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for p in np.round(np.arange(0.05, 0.951, 0.05), 2):
        heads = rng.binomial(flips, p, size=trials)
        for name, (low, high) in ways.items():
            inside = (low[heads] <= p) & (p <= high[heads])
            rows.append({"p": float(p), "coverage": float(inside.mean()), "interval": name})
    least = {name: min(r["coverage"] for r in rows if r["interval"] == name) for name in ways}
    normal, bayes, exact_one = least
    said = ", ".join(f"{name} {value:.3f}" for name, value in least.items())
    return Outcome(
        rows,
        f"smallest coverage over p in [.05, .95], nominal 0.9: {said}.",
        least[bayes] < 0.8 and least[normal] > 0.85 and least[exact_one] >= 0.897,
        plots.lines(rows, "p", "coverage", "interval", width=420) + plots.rule(y=1 - gamma),
    )


def plrt(seed: int, name: str, n: int) -> float:
    """The full curve with the paper's settings."""
    return float(estimated(seed, name, n, "the paper's thresholds")(0.05))


def baybox(seed: int, name: str, n: int) -> float:
    """One point with its box at η = 1."""
    box, pair = mechanism(name)
    return dp.tradeoff.point(box, pair, 1.0, n=2 * n, box="hoeffding", rng=seed).beta


@item("fdp/table2")
def table2(lab: Lab) -> Outcome:
    n = lab.n(100_000)
    return timings(lab, plrt, [(name, (name, n), paper[0]) for name, paper in SECONDS.items()], 10)


@item("fdp/table3")
def table3(lab: Lab) -> Outcome:
    n = lab.n(1_000_000)
    cases = [(name, (name, n), paper[1]) for name, paper in SECONDS.items()]
    return timings(lab, baybox, cases, 3)
