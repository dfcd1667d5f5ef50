"""Paper 004, f-DP: what the auditor (Algorithm 2) sees, for correct and faulty claims."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binom

import dpassay as dp
from papers import plots
from papers.core import Lab, Outcome, Row, item

zoo = dp.zoo
ALPHA = np.linspace(0, 1, 101)


def sgd_claim(iterations: int) -> Any:
    """The exact curve of DP-SGD after some iterations, as a claim about the ordered pair."""
    box = zoo.ToyDPSGD(iterations=iterations)
    return dp.TradeoffDP(lambda a: box.tradeoff(a, box.pair), ordered=True)


def case(name: str) -> tuple[Any, Any, Any]:
    """Mechanism, pair and claim."""
    kind, _, claimed = name.partition(", claimed ")
    if kind == "Gaussian":
        return zoo.Gaussian(1.0), (1.0, 0.0), dp.GaussianDP(float(claimed))
    return zoo.ToyDPSGD(), zoo.ToyDPSGD().pair, sgd_claim(int(claimed))


def audit(seed: int, name: str, n_1: int, n_2: int, gamma: float, neighbours: str) -> Row:
    """One audit: verdict, estimated curve, critical point and box."""
    from sklearn.neighbors import KNeighborsClassifier

    box, pair, claim = case(name)
    loss: Any = KNeighborsClassifier(round(math.sqrt(n_2))) if neighbours == "√n" else "knn"
    verdict = dp.tradeoff.audit(
        box,
        pair,
        claim,
        n_locate=n_1,
        n_test=n_2,
        confidence=1 - gamma,
        box="hoeffding",
        loss=loss,
        rng=seed,
    )
    assert verdict.curve is not None
    assert verdict.point is not None
    point, curve = verdict.point, verdict.curve
    gap = np.asarray(claim.tradeoff(curve.x)) - curve.y
    return {
        "violated": bool(verdict.violated),
        "curve": [round(float(v), 5) for v in curve(ALPHA)],
        "at": float(curve.x[int(np.argmax(gap))]),
        "point": [float(point.alpha), float(point.beta)],
        "box": [float(v) for v in point.box],
    }


def panel(name: str, seen: Row, title: str) -> tuple[Any, list[Row]]:
    """Claimed and estimated curve, the critical line and the box."""
    claim = case(name)[2]
    rows: list[Row] = [
        {"panel": title, "α": float(a), "β": float(b), "which": which}
        for which, values in (("claimed", claim.tradeoff(ALPHA)), ("estimated", seen["curve"]))
        for a, b in zip(ALPHA, values, strict=True)
    ]
    corner = {"which": "box", "α low": seen["box"][0], "α high": seen["box"][1]}
    corner |= {"β low": seen["box"][2], "β high": seen["box"][3], "violated": seen["violated"]}
    chart = plots.lines(rows, "α", "β", "which", title=title, width=210, height=190)
    chart = chart + plots.rule(x=seen["at"], color="#1f9970")
    return chart + plots.box(seen["box"], seen["point"]), [*rows, {"panel": title, **corner}]


def by_size(lab: Lab, names: tuple[str, ...]) -> tuple[list[Row], list[Any], dict[Any, list[bool]]]:
    """Panels for n₂ = 10³, 10⁴, 10⁵, and how often the claim is refuted."""
    rows: list[Row] = []
    charts, shares = [], {}
    for name in names:
        for power in (3, 4, 5):
            count = lab.count(200) if power < 5 else 2
            sizes = lab.n(10_000), lab.n(10**power)
            found = lab.runs(audit, name, *sizes, 0.05, "√n", count=count)
            chart, part = panel(name, found[0], f"{name}, n₂ = 10^{power}")
            charts.append(chart)
            rows += part
            shares[name, power] = [run["violated"] for run in found]
    return rows, charts, shares


def said(shares: dict[Any, list[bool]]) -> str:
    return ", ".join(
        f"{name}, n₂ = 10^{power}: {sum(seen)} of {len(seen)}"
        for (name, power), seen in shares.items()
    )


@item("fdp/fig4")
def fig4(lab: Lab) -> Outcome:
    rows, charts, shares = by_size(lab, ("Gaussian, claimed 1", "DP-SGD, claimed 10"))
    allowed = all(sum(seen) <= binom.ppf(0.998, len(seen), 0.05) for seen in shares.values())
    return Outcome(
        rows, f"correct claims refuted: {said(shares)}.", allowed, plots.panels(charts, 3)
    )


@item("fdp/fig5")
def fig5(lab: Lab) -> Outcome:
    gaussian, sgd = "Gaussian, claimed 0.5", "DP-SGD, claimed 5"
    rows, charts, shares = by_size(lab, (gaussian, sgd))
    power = {key: float(np.mean(seen)) for key, seen in shares.items()}
    return Outcome(
        rows,
        f"faulty claims refuted: {said(shares)}.",
        min(power[name, size] for name in (gaussian, sgd) for size in (4, 5)) > 0.9,
        plots.panels(charts, 3),
    )


@item("fdp/fig12")
def fig12(lab: Lab) -> Outcome:
    name, n_2 = "Gaussian, claimed 0.2", lab.n(10_000)
    settings = {f"γ = {gamma:g}": (10_000, gamma) for gamma in (1e-4, 0.05, 0.5)}
    settings |= {f"n₁ = {size}": (size, 0.05) for size in (100, 1000, 10_000)}
    rows: list[Row] = []
    charts, shares, widths = [], {}, {}
    for label, (n_1, gamma) in settings.items():
        found = lab.runs(audit, name, lab.n(n_1, 100), n_2, gamma, "√n", count=lab.count(10))
        chart, part = panel(name, found[0], label)
        charts.append(chart)
        rows += part
        shares[label] = float(np.mean([run["violated"] for run in found]))
        widths[label] = found[0]["box"][1] - found[0]["box"][0]
    words = ", ".join(f"{label}: {shares[label]:.0%}, {widths[label]:.3f}" for label in settings)
    labels = list(settings)
    return Outcome(
        rows,
        f"share refuted and width of the box: {words}.",
        min(shares.values()) > 0.9 and widths[labels[0]] > widths[labels[1]] > widths[labels[2]],
        plots.panels(charts, 3),
    )
