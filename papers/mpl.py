"""Paper 000, pure DP (Askin, Kutta & Dette): the MPL bound and the estimator under simulation."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

import dpassay as dp
from papers import plots
from papers.core import Lab, Outcome, Row, item, timings

zoo = dp.zoo
LEVELS = (0.2, 0.7, 1.5)
TENTHS = [b / 10 for b in range(1, 11)]
#: Mechanism: (letter, n, N, floor, region, seconds in the paper's Table II)
SMALL, LARGE = (20_000, 50_000, 1e-3), (100_000, 500_000, 1e-4)
MECHANISMS: dict[str, tuple[str, tuple[int, int, float], Any, float]] = {
    "Laplace": ("a", SMALL, (-1, 1), 10.9),
    "noisy max": ("b", SMALL, None, 4.7),
    "continuous noisy max": ("c", SMALL, (-1, 1), 10.5),
    "exponential": ("d", SMALL, (0, 2), 11.3),
    "SVT2": ("e", LARGE, None, 23.8),
    "SVT4, rescaled": ("f", LARGE, None, 26.6),
    "SVT5": ("g", LARGE, None, 25.9),
    "SVT6": ("h", LARGE, None, 57.3),
}
BROKEN = ("SVT5", "SVT6")
#: The paper takes the largest loss in C with the floor; ours holds back what is noise.
RULES = {"the paper's rule": 0.0, "dpassay's default": None}


@functools.cache
def exponential(level: float) -> Any:
    """The exponential mechanism with exact level `level` on [1, 2]."""
    rate = brentq(
        lambda r: zoo.ContinuousExponential(r).epsilon((1.0, 2.0)) - level, 1e-3, 9.0, xtol=1e-12
    )
    return zoo.ContinuousExponential(float(rate))


def mechanism(name: str, level: float) -> tuple[Any, list[Any]]:
    """A mechanism that aims at the level, with the ten pairs it is searched on."""
    match name:
        case "Laplace":
            return zoo.Laplace(1 / level), [(0.0, b) for b in TENTHS]
        case "noisy max":
            return zoo.ReportNoisyMax(level), dp.neighbours.patterns(6)
        case "continuous noisy max":
            pairs = [(np.zeros(3), np.full(3, b)) for b in TENTHS]
            return zoo.ContinuousNoisyMax(level / 3), pairs
        case "exponential":
            return exponential(level), [(1.0, 1 + b) for b in TENTHS]
    variant = int(name[3])
    scaled = level * 4 / 7 if variant == 4 else level
    return zoo.SVT(variant, scaled), dp.neighbours.patterns(10)


def bound(seed: int, name: str, level: float, rule: str, sizes: tuple[int, int]) -> float:
    """One MPL bound."""
    box, pairs = mechanism(name, level)
    _, (_, _, floor), region, _ = MECHANISMS[name]
    found = dp.pure.lower_bound(
        box,
        pairs,
        n=sizes[0],
        n_bound=sizes[1],
        floor=floor,
        region=region,
        caution=RULES[rule],
        rng=seed,
    )
    return found.value


def sizes_of(lab: Lab, name: str) -> tuple[int, int]:
    _, (n, n_bound, _), _, _ = MECHANISMS[name]
    return lab.n(n, 2000), lab.n(n_bound, 2000)


def ecdf(values: list[float], **labels: Any) -> list[Row]:
    """At most 200 points of the empirical distribution function."""
    v = np.sort(np.minimum(values, 99.0))
    at = np.unique(np.linspace(0, v.size - 1, min(v.size, 200)).astype(int))
    return [{**labels, "LB": float(v[0]), "P(LB ≤ z)": 0.0}] + [
        {**labels, "LB": float(v[k]), "P(LB ≤ z)": float((k + 1) / v.size)} for k in at
    ]


@item("pure/fig4")
def fig4(lab: Lab) -> Outcome:
    rows: list[Row] = []
    charts = []
    summary: dict[tuple[str, float, str], tuple[float, float, float]] = {}
    for name, (letter, _, _, _) in MECHANISMS.items():
        count = lab.count(6 if name.startswith("SVT") else 60)
        part: list[Row] = []
        for level, rule in itertools.product(LEVELS, RULES):
            values = lab.runs(bound, name, level, rule, sizes_of(lab, name), count=count)
            labels = {"mechanism": name, "ε₀": level, "rule": rule}
            part += ecdf(values, **labels)
            v = np.array(values)
            summary[name, level, rule] = (
                float(np.mean(v <= level)),
                float(np.median(v) / level),
                float(binom.ppf(0.01 / 24, count, 0.95) / count),
            )
        rows += part
        chart = plots.lines(
            part,
            "LB",
            "P(LB ≤ z)",
            "ε₀",
            dash="rule",
            step=True,
            title=f"({letter}) {name}",
            width=200,
            height=130,
        )
        for level in LEVELS:
            chart = chart + plots.rule(x=level)
        charts.append(chart + plots.rule(y=0.95, color="#c0392b"))
    correct = {k: v for k, v in summary.items() if k[0] not in BROKEN}
    ours, theirs = "dpassay's default", "the paper's rule"
    low = {r: [v for k, v in correct.items() if k[2] == r] for r in RULES}
    caught = {
        k: 1 - v[0]
        for k, v in summary.items()
        if k[0] in BROKEN and not (k[0] == "SVT6" and k[1] == 0.2)
    }
    weak = {r: 1 - summary["SVT6", 0.2, r][0] for r in RULES}
    covered = {r: all(c >= limit for c, _, limit in low[r]) for r in RULES}
    tight = {r: (min(m for _, m, _ in low[r]), max(m for _, m, _ in low[r])) for r in RULES}
    said = "; ".join(
        f"{r}: smallest coverage {min(c for c, _, _ in low[r]):.2f}, median bound / ε₀ between "
        f"{tight[r][0]:.2f} and {tight[r][1]:.2f}, SVT6 at 0.2 caught in {weak[r]:.0%}"
        for r in (theirs, ours)
    )
    return Outcome(
        rows,
        f"{said}; the other broken cells are caught in at least {min(caught.values()):.0%}.",
        covered[theirs] and covered[ours] and min(caught.values()) > 0.9,
        plots.panels(charts, 4),
    )


def centric(name: str) -> tuple[Any, list[Any], Any]:
    """A mechanism, all neighbours of one database, and the region."""
    if name == "noisy max":
        others = itertools.product((0, 1), repeat=6)
        pairs = [(np.zeros(6, dtype=int), np.array(q)) for q in others if any(q)]
        return zoo.ReportNoisyMax(1.5), pairs, None
    middle = np.full(3, 0.5)
    corners = itertools.product((0.0, 0.5, 1.0), repeat=3)
    pairs = [(middle, np.array(s)) for s in corners if any(v != 0.5 for v in s)]
    return zoo.ContinuousNoisyMax(0.5), pairs, (-1, 1)


def centric_bound(seed: int, name: str, sizes: tuple[int, int]) -> float:
    """One bound on the data-centric level."""
    box, pairs, region = centric(name)
    n, n_bound = sizes
    return dp.pure.lower_bound(
        box, pairs, n=n, n_bound=n_bound, floor=1e-3, region=region, caution=0.0, rng=seed
    ).value


@item("pure/fig5")
def fig5(lab: Lab) -> Outcome:
    rows: list[Row] = []
    charts, said, agree = [], [], []
    for name in ("noisy max", "continuous noisy max"):
        sizes = (lab.n(20_000), lab.n(50_000))
        values = lab.runs(centric_bound, name, sizes, count=lab.count(40))
        box, pairs, _ = centric(name)
        if (
            name != "noisy max"
        ):  # attained where all three numbers move together (the paper's remark)
            pairs = [pair for pair in pairs if np.ptp(pair[1]) == 0]
        truth = max(float(box.epsilon(pair)) for pair in pairs)
        part = ecdf(values, mechanism=name)
        rows += part
        chart = plots.lines(part, "LB", "P(LB ≤ z)", step=True, title=name)
        charts.append(chart + plots.rule(x=1.5, color="#1f9970") + plots.rule(x=truth))
        covered, median = float(np.mean(np.array(values) <= truth)), float(np.median(values))
        said.append(
            f"{name}: exact ε_x = {truth:.3f}, median bound {median:.3f}, coverage {covered:.2f}"
        )
        agree.append(
            covered >= binom.ppf(0.005, len(values), 0.95) / len(values)
            and 0.8 < median / 0.75 < 1.1
        )
    return Outcome(
        rows,
        "; ".join(said) + ".",
        all(agree),
        plots.panels(charts),
    )


#: What the estimator of Figure 6 may vary: the rule, and the bandwidth, which the paper does not give.
WAYS: dict[str, dict[str, Any]] = {
    "the paper's rule": {"caution": 0.0},
    "the paper's rule, h = 0.3": {"caution": 0.0, "bandwidth": 0.3},
    "dpassay's default": {},
}


def squared_error(seed: int, name: str, way: str, n: int) -> float:
    """(ε̂ − ε)² of one estimate."""
    box: Any = zoo.ContinuousNoisyMax(0.5) if name == "continuous noisy max" else exponential(1.5)
    pair: Any = (np.zeros(3), np.ones(3)) if name == "continuous noisy max" else (1.0, 2.0)
    region = MECHANISMS[name][2]
    found = dp.pure.estimate(box, pair, n=n, region=region, floor=1e-3, rng=seed, **WAYS[way])
    return (found.value - 1.5) ** 2


@item("pure/fig6")
def fig6(lab: Lab) -> Outcome:
    rows: list[Row] = []
    names = ("continuous noisy max", "exponential")
    for name, way in itertools.product(names, WAYS):
        for n in (1000, 2000, 5000, 10_000, 20_000):
            errors = lab.runs(squared_error, name, way, lab.n(n), count=lab.count(100))
            rows.append({"mechanism": name, "rule": way, "n": n, "MSE": float(np.mean(errors))})
    mse = {(r["mechanism"], r["rule"], r["n"]): float(r["MSE"]) for r in rows}
    limits = {"continuous noisy max": 0.04 * 1.5, "exponential": 0.005 * 1.5}
    plain = "the paper's rule"
    meets = all(mse[name, plain, 5000] < limits[name] for name in names)
    half = all(mse[name, plain, 20_000] < mse[name, plain, 5000] / 2 for name in names)
    said = "; ".join(
        f"{name} (the paper: below {limits[name]:.4f} at 5000): "
        + ", ".join(
            f"{way} {mse[name, way, 5000]:.4f} and {mse[name, way, 20_000]:.4f}" for way in WAYS
        )
        for name in names
    )
    return Outcome(
        rows,
        f"MSE at n = 5000 and 20000, {said}.",
        meets and half,
        plots.lines(
            rows,
            "n",
            "MSE",
            "mechanism",
            dash="rule",
            points=True,
            log_x=True,
            log_y=True,
            width=420,
        ),
    )


@item("pure/table2")
def table2(lab: Lab) -> Outcome:
    rule = "the paper's rule"
    cases = [
        (f"{name} ({letter})", (name, 0.7, rule, sizes_of(lab, name)), paper)
        for name, (letter, _, _, paper) in MECHANISMS.items()
    ]
    return timings(lab, bound, cases, 3)
