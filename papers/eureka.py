"""Paper 003, (ε, δ): Lu, Magdon-Ismail, Wei & Zikas, Eureka — spectra by classification."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import dpassay as dp
from papers import plots
from papers.core import Lab, Outcome, Row, item

zoo = dp.zoo
EPS = np.linspace(0, 2, 41)
#: The Gaussian mechanism calibrated to (1, 10⁻⁵) the classical way.
SIGMA = math.sqrt(2 * math.log(1.25e5))
SQUARE_ROOT = "nearest neighbours, k = √n"
FIFTY = (np.eye(50)[0], np.zeros(50))
#: 40 queries on which a variant of the sparse vector technique is at its worst, or nearly; threshold 1.
_ONES, _HALF = np.ones(40, dtype=int), np.repeat([1, 0], 20)
FORTY = {
    "1": (np.repeat([2, 0], [39, 1]), _ONES),
    "4": (_ONES, 2 * _HALF),
    "5": (_HALF, 1 - _HALF),
}


def mechanism(name: str) -> tuple[Any, Any]:
    """Mechanism and pair."""
    kind, _, rest = name.partition(" ")
    boxes: dict[str, Callable[[], Any]] = {
        "Laplace": lambda: zoo.Laplace(1.0),
        "Gaussian": lambda: zoo.Gaussian(SIGMA),
        "counting": lambda: zoo.ExponentialCounting(2.0),
        "SVT": lambda: zoo.SVT(int(rest.split()[0]), float(rest.split()[1])),
        "histogram": lambda: zoo.NoisyHistogram(0.1, broken=rest == "broken"),
        "NM": lambda: zoo.ReportNoisyMax(0.3, int(rest)),
    }
    box = boxes[kind]()
    if rest == "50":
        return box, FIFTY
    if rest.endswith(" 40"):
        return box, FORTY[rest[0]]
    return box, (0.0, 1.0) if kind in ("Laplace", "Gaussian") else box.pair


def exact(name: str, eps: Any = EPS) -> Any:
    """δ(ε), the worse direction."""
    box, pair = mechanism(name)
    a, b = (0.0, 1.0) if name.endswith(" 50") else pair
    return np.maximum(box.delta(eps, (a, b)), box.delta(eps, (b, a)))


def spectrum(seed: int, name: str, how: str, n: int) -> list[list[float]]:
    """δ̂ and its certified lower curve on the grid."""
    box, pair = mechanism(name)
    options: dict[str, Any] = {"loss": how}
    if how == SQUARE_ROOT:
        from sklearn.neighbors import KNeighborsClassifier

        near = KNeighborsClassifier(max(1, round(math.sqrt(n))))  # n/2 of either side train
        options = {"loss": near, "plug_in": "counts", "train": 0.5}
    elif how == "knn":
        options |= {"plug_in": "counts"}
    elif how == "mlp":
        from sklearn.neural_network import MLPClassifier

        network = MLPClassifier(
            (64, 64),
            alpha=1.0,
            early_stopping=True,
            max_iter=40,
            batch_size=1024,
            random_state=seed,
        )
        options = {"loss": network, "train": 0.5}
    found = dp.spectrum.estimate(box, pair, epsilons=EPS, n=n, rng=seed, **options)
    assert found.lower is not None
    return [[float(v) for v in found.y], [float(v) for v in found.lower]]


def compare(
    lab: Lab, name: str, ways: dict[str, tuple[str, int]], runs: int = 3
) -> tuple[list[Row], dict[str, float], Any]:
    """Exact and estimated spectra: rows, the median of the largest errors, and a chart."""
    truth = exact(name)
    rows: list[Row] = [{"ε": e, "δ": t, "which": "exact"} for e, t in zip(EPS, truth, strict=True)]
    errors = {}
    for how, (classifier, n) in ways.items():
        found = lab.runs(spectrum, name, classifier, n, count=lab.count(runs))
        errors[how] = float(np.median([np.abs(np.array(y) - truth).max() for y, _ in found]))
        rows += [{"ε": e, "δ": y, "which": how} for e, y in zip(EPS, found[0][0], strict=True)]
    chart = plots.lines(rows, "ε", "δ", "which", width=420, height=240)
    return rows, errors, chart


def near_exact(
    lab: Lab, name: str, ways: dict[str, tuple[str, int]], runs: int = 3, share: float = 0.02
) -> Outcome:
    """Estimated spectra; the first, nearest neighbours, should match to .002 and a `share` of δ(0)."""
    rows, errors, chart = compare(lab, name, ways, runs)
    said = ", ".join(f"{how} {error:.4f}" for how, error in errors.items())
    return Outcome(
        rows,
        f"largest error over 41 ε (median of the runs): {said}; δ(0) = {exact(name)[0]:.4f}.",
        errors[next(iter(ways))] < 0.002 + share * float(exact(name)[0]),
        chart,
    )


def three_ways(lab: Lab) -> dict[str, tuple[str, int]]:
    return {
        "nearest neighbours, n = 10⁶": ("knn", lab.n(1_000_000)),
        f"{SQUARE_ROOT}, n = 5·10⁴": (SQUARE_ROOT, lab.n(50_000)),
        "dpassay's choice, n = 10⁶": ("auto", lab.n(1_000_000)),
    }


@item("eureka/fig4a")
def fig4a(lab: Lab) -> Outcome:
    return near_exact(lab, "Laplace", three_ways(lab))


@item("eureka/fig4b")
def fig4b(lab: Lab) -> Outcome:
    return near_exact(lab, "Gaussian", three_ways(lab))


def accuracy(seed: int, n: int) -> list[float]:
    """Error at ε = 0 and ε = 0.5 for Laplace, and what Corollary 2 promises there (β = .05)."""
    eps = np.array([0.0, 0.5])
    found = dp.spectrum.estimate(
        zoo.Laplace(1.0),
        (0.0, 1.0),
        epsilons=eps,
        n=n,
        loss="knn",
        plug_in="counts",
        rng=seed,
    )
    assert found.accuracy is not None
    error = np.abs(found.y - exact("Laplace", eps))
    return [float(v) for v in (*error, *found.accuracy)]


POWERS = range(10, 21, 2)


@item("eureka/fig4c")
def fig4c(lab: Lab) -> Outcome:
    rows: list[Row] = []
    for power in POWERS:
        found = lab.runs(accuracy, lab.n(2**power), count=1)[0]
        rows += [
            {"samples": 2**power, "accuracy": found[2 + k], "ε": f"ε = {e}"}
            for k, e in enumerate((0, 0.5))
        ]
    first, last = rows[0]["accuracy"], rows[-2]["accuracy"]
    slope = math.log(last / first) / math.log(2 ** (POWERS[-1] - POWERS[0]))
    return Outcome(
        rows,
        f"α at ε = 0 falls from {first:.2f} at 2¹⁰ to {last:.3f} at 2²⁰ samples, a power of {slope:.3f}.",
        abs(slope + 0.5) < 0.01,
        plots.lines(
            rows, "samples", "accuracy", "ε", points=True, log_x=True, log_y=True, width=420
        ),
    )


@item("eureka/fig4d")
def fig4d(lab: Lab) -> Outcome:
    rows: list[Row] = []
    for power in POWERS:
        found = np.array(lab.runs(accuracy, lab.n(2**power), count=lab.count(30)))
        seen, promised = float(np.quantile(found[:, 1], 0.95)), float(found[0, 3])
        rows += [
            {"samples": 2**power, "accuracy": seen, "which": "measured, 95 % of the runs"},
            {"samples": 2**power, "accuracy": promised, "which": "theory (Corollary 2)"},
        ]
    measured = [row["accuracy"] for row in rows[::2]]
    ratios = [b["accuracy"] / a["accuracy"] for a, b in zip(rows[::2], rows[1::2], strict=True)]
    slope = float(np.polyfit([p * math.log(2) for p in POWERS], np.log(measured), 1)[0])
    return Outcome(
        rows,
        f"at ε = 0.5 the measured accuracy falls from {measured[0]:.3f} to {measured[-1]:.4f}, a power "
        f"of {slope:.2f}; theory is {min(ratios):.0f} to {max(ratios):.0f} times larger.",
        min(ratios) > 1 and abs(slope + 0.5) < 0.1,
        plots.lines(
            rows, "samples", "accuracy", "which", points=True, log_x=True, log_y=True, width=420
        ),
    )


@item("eureka/fig5a")
def fig5a(lab: Lab) -> Outcome:
    ways = {
        "nearest neighbours, n = 10⁶": ("knn", lab.n(1_000_000)),
        "dpassay's choice, n = 10⁶": ("auto", lab.n(1_000_000)),
    }
    return near_exact(lab, "counting", ways)


def high_ways(lab: Lab) -> dict[str, tuple[str, int]]:
    return {
        "neural network, n = 4·10⁵": ("mlp", lab.n(400_000, 2000)),
        "dpassay's choice, n = 2·10⁵": ("auto", lab.n(200_000, 2000)),
    }


@item("eureka/fig5b")
def fig5b(lab: Lab) -> Outcome:
    return near_exact(lab, "Gaussian 50", high_ways(lab), share=0.05)


@item("eureka/fig5c")
def fig5c(lab: Lab) -> Outcome:
    return near_exact(lab, "Laplace 50", high_ways(lab))


@item("eureka/fig6a")
def fig6a(lab: Lab) -> Outcome:
    ways = {"dpassay's choice, n = 10⁶": ("auto", lab.n(1_000_000))}
    rows, errors, _ = compare(lab, "Gaussian", ways)
    loose = np.minimum(1.0, 1.25 * np.exp(-((SIGMA * EPS) ** 2) / 2))
    rows += [{"ε": e, "δ": d, "which": "classical bound"} for e, d in zip(EPS, loose, strict=True)]
    at = 0.5
    bound, truth = float(np.interp(at, EPS, loose)), float(np.interp(at, EPS, exact("Gaussian")))
    return Outcome(
        rows,
        f"at ε = {at} the classical bound is {bound:.3f}, the exact δ {truth:.5f}; largest error of "
        f"the estimate {next(iter(errors.values())):.4f}.",
        bool(np.all(loose >= exact("Gaussian")))
        and bound > 5 * truth
        and next(iter(errors.values())) < 0.002,
        plots.lines(rows, "ε", "δ", "which", width=420, height=240),
    )


@item("eureka/fig6b")
def fig6b(lab: Lab) -> Outcome:
    rows: list[Row] = []
    curves = {}
    for name in ("Laplace", "Gaussian"):
        found = lab.runs(spectrum, name, "auto", lab.n(1_000_000), count=1)[0][0]
        curves[name] = np.array(found)
        rows += [{"ε": e, "δ": d, "which": name} for e, d in zip(EPS, found, strict=True)]
    clearly = curves["Laplace"] - curves["Gaussian"] > 0.002
    last = float(EPS[clearly].max(initial=0.0))
    cross = EPS[exact("Gaussian") < exact("Laplace")].max()
    return Outcome(
        rows,
        f"the Gaussian has the smaller δ, by over .002, up to ε = {last:.2f} (by the exact curves, "
        f"smaller at all up to {cross:.2f}); beyond it Laplace has δ = 0 and the Gaussian at most "
        f"{exact('Gaussian', 1.0):.1e}.",
        last >= 0.8,
        plots.lines(rows, "ε", "δ", "which", width=420, height=240),
    )


@item("eureka/fig7")
def fig7(lab: Lab) -> Outcome:
    ways = {
        "nearest neighbours, n = 2·10⁵": ("knn", lab.n(200_000)),
        "dpassay's choice, n = 10⁶": ("auto", lab.n(1_000_000)),
    }
    return near_exact(lab, "SVT 1 0.5", ways)


def histogram(seed: int, records: int, n: int) -> float:
    """δ̂(0) of the noiseless count of `records` fair coins."""
    coins = dp.neighbours.Population(
        lambda size, rows, rng: rng.integers(2, size=(size, rows), dtype=np.int8), records
    )
    found = dp.spectrum.distributional(
        lambda databases, rng: databases.sum(axis=1),
        coins,
        [0, 1],
        rows=[0],
        batched=True,
        epsilons=[0.0],
        n=n,
        rng=seed,
    )
    return float(found.y[0])


@item("eureka/fig8")
def fig8(lab: Lab) -> Outcome:
    rows: list[Row] = []
    errors = []
    for records in (10, 20, 50, 100, 200, 500):
        found = lab.runs(histogram, records, lab.n(400_000), count=lab.count(4))
        half = (records - 1) // 2
        truth = math.comb(records - 1, half) / 2 ** (records - 1)
        errors.append(float(np.median(found)) / truth - 1)
        rows += [
            {"records": records, "δ(0)": truth, "which": "exact"},
            {"records": records, "δ(0)": float(np.median(found)), "which": "estimate"},
            {"records": records, "δ(0)": math.sqrt(2 / (math.pi * records)), "which": "√(2/πm)"},
        ]
    worst = max(errors, key=abs)
    return Outcome(
        rows,
        f"largest relative error of δ̂(0) from 10 to 500 records: {worst:+.1%}.",
        abs(worst) < 0.05,
        plots.lines(
            rows, "records", "δ(0)", "which", points=True, log_x=True, log_y=True, width=420
        ),
    )


def variants(lab: Lab, names: dict[str, tuple[str, bool]], claim: float, n: int) -> Outcome:
    """Spectra of correct and broken variants: broken ones are certified above 0 at the claim."""
    rows: list[Row] = []
    said, right = [], []
    k = int(np.argmin(np.abs(EPS - claim)))
    for label, (name, correct) in names.items():
        y, lower = lab.runs(spectrum, name, "auto", lab.n(n, 2000), count=1)[0]
        rows += [
            {"ε": e, "δ": d, "which": label, "certified": c}
            for e, d, c in zip(EPS, y, lower, strict=True)
        ]
        truth = float(exact(name, float(EPS[k])))
        right.append((lower[k] == 0) if correct else lower[k] > 0)
        said.append(f"{label} {y[k]:.4f} (at least {lower[k]:.4f}; exact {truth:.4f})")
    return Outcome(
        rows,
        f"δ̂ at the claimed ε = {EPS[k]:.2g}: " + ", ".join(said) + ".",
        all(right),
        plots.lines(rows, "ε", "δ", "which", width=420, height=240) + plots.rule(x=float(EPS[k])),
    )


@item("eureka/fig9a")
def fig9a(lab: Lab) -> Outcome:
    names = {
        "SVT (Alg. 1)": ("SVT 1 1.0 40", True),
        "Alg. 4": ("SVT 4 1.0 40", False),
        "Alg. 5": ("SVT 5 1.0 40", False),
    }
    return variants(lab, names, 1.0, 1_000_000)


@item("eureka/fig9b")
def fig9b(lab: Lab) -> Outcome:
    names = {"noise 1/ε": ("histogram", True), "noise ε": ("histogram broken", False)}
    return variants(lab, names, 0.1, 200_000)


@item("eureka/fig9c")
def fig9c(lab: Lab) -> Outcome:
    names = {
        "index, Laplace": ("NM 5", True),
        "index, exponential": ("NM 6", True),
        "value, Laplace": ("NM 7", False),
        "value, exponential": ("NM 8", False),
    }
    return variants(lab, names, 0.3, 1_000_000)


def closest(lab: Lab, name: str, n: int, levels: tuple[float, ...]) -> Outcome:
    """Which analytic curve the implementation lies on."""
    eps = EPS[EPS <= 0.75 if name == "Laplace" else EPS <= 0.5]
    y = np.array(lab.runs(spectrum, name, "auto", n, count=1)[0][0])[: eps.size]
    base = exact(name, eps)
    rows: list[Row] = [
        {"ε": e, "δ − exact δ at 1": d, "which": "measured"}
        for e, d in zip(eps, y - base, strict=True)
    ]
    distance = {}
    for level in levels:
        box = zoo.Laplace(1 / level) if name == "Laplace" else zoo.Gaussian(SIGMA / level)
        curve = box.delta(eps, (0.0, 1.0))
        distance[level] = float(np.abs(y - curve).mean())
        rows += [
            {"ε": e, "δ − exact δ at 1": d, "which": f"noise for ε = {level}"}
            for e, d in zip(eps, curve - base, strict=True)
        ]
    said = ", ".join(f"{level}: {d:.1e}" for level, d in distance.items())
    nearest = min(distance, key=lambda level: distance[level])
    return Outcome(
        rows,
        f"mean distance to the analytic curve of noise for ε = {said}; the closest is {nearest:g}.",
        nearest == 1,
        plots.lines(rows, "ε", "δ − exact δ at 1", "which", width=420, height=240),
    )


@item("eureka/fig10")
def fig10(lab: Lab) -> Outcome:
    return closest(lab, "Laplace", lab.n(1 << 27), (0.999, 1, 1.001))


@item("eureka/fig11")
def fig11(lab: Lab) -> Outcome:
    return closest(lab, "Gaussian", lab.n(1 << 26), (0.99, 1, 1.01))
