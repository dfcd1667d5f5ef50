"""DP-SGD under audit: tables from models that `examples.run_dpsgd` trained, in the folder SCORES."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from examples import audit_dpsgd
from examples.audit_dpsgd import Row, Scores
from examples.cifar import Array

import dpassay as dp
from benchmarks.tables import markdown, table

SIZES = (125, 250, 500, 1000, 2000, 5000, 10_000)
#: In the order of what the adversary knows.
ORDER = ("paper", "start", "label", "gradient", "tiny", "tiny-against")
#: The models of the f-DP paper's Figures 6–8.
AUTHORS = Path(__file__).parents[1] / "papers" / "results" / "fdp" / "cifar.npz"
#: Standardised differences of 1,920 other models a side; ε in the authors' figure, of 1,000 a side.
OTHERS = {"CE": (0.05, 0.27, 0.34, 0.47, 0.53), "logit": (0.04, 0.24, 0.33, 0.42, 0.46)}
FIGURE = (0.53, 0.82, 0.85, 1.35, 1.45)


def _runs() -> dict[str, Scores]:
    path = Path(os.environ.get("SCORES", "scores"))
    runs = audit_dpsgd.folder(path)
    if not runs:
        raise SystemExit(f"{path} holds no models: make some with python -m examples.run_dpsgd")
    return runs


def _trained(runs: dict[str, Scores]) -> str:
    """On what, and how long it took."""
    times = [f"{name} {2 * s.models:,} in {s.about['seconds']:.0f} s" for name, s in runs.items()]
    first = next(iter(runs.values())).about
    where = "a processor" if first["device"] == "cpu" else first["device"]
    return f"\n\nModels on {where}, {first['examples']:,} images: {', '.join(times)}."


def _cells(row: Row) -> list[str]:
    return [
        "" if v is None else f"{v:.3g}" if isinstance(v, float) else f"{v}" for v in row.values()
    ]


@table("dp-sgd-bounds")
def bounds() -> str:
    """Certified ε of DP-SGD by what is seen of a model, after the first and the last epoch."""
    runs = _runs()
    rows = [
        row
        for name in ORDER
        if name in runs
        for row in audit_dpsgd.bounds(runs[name], (0, len(runs[name].steps) - 1))
    ]
    return markdown(list(rows[0]), [_cells(row) for row in rows]) + _trained(runs)


@table("dp-sgd-faults")
def faults() -> str:
    """Planted faults of DP-SGD: the fewest models a side with which an audit refuted the claim."""
    lines = []
    for name, scores in _runs().items():
        if not name.startswith("tiny"):
            continue
        for mark in (0, len(scores.steps) - 1):
            rows = audit_dpsgd.faults(scores, SIZES, (mark,))
            found = [row["models a side"] for row in rows if row["violated"]]
            how = scores.about["training"]
            pair = "removed" if how["removed"] else "replaced"
            epochs = f"{scores.steps[mark] * how['rate']:g}"
            said = f"{found[0]:,}" if found else f"no, with {rows[-1]['models a side']:,}"
            needed = audit_dpsgd.models_needed(scores, mark)
            stopped = "no" if needed is None else f"{needed:,}"
            p = f"{rows[-1]['p']:.2g}"
            lines.append([how["fault"] or "none", pair, epochs, said, p, stopped])
    headings = ["fault", "canary", "epochs", "refuted with", "p with all models", "monitor"]
    return markdown(headings, lines)


def _apart(first: Array, second: Array) -> Array:
    """Standardised difference of two means, over the last axis."""
    spread = np.sqrt((first.var(-1, ddof=1) + second.var(-1, ddof=1)) / 2)
    return np.asarray((second.mean(-1) - first.mean(-1)) / spread)


def _published(first: Array, second: Array) -> float:
    """The paper's empirical ε with the bandwidth of the authors' code: times the standard deviation."""
    spread = min(side.std(ddof=1) for side in (first, second))
    width = 1.06 * spread * len(first) ** -0.2  # of a normal density; plug-in rules are near it
    samples = dp.from_samples(first, second, rng=0)
    curve = dp.tradeoff.estimate(samples, bandwidth=float(width * spread), confidence=None)
    return audit_dpsgd.epsilon_of(audit_dpsgd.fitted_mu(curve))


@table("dp-sgd-authors")
def authors() -> str:
    """The models of Figures 6–8 beside other models with the same settings, and the authors' figure."""
    scores = audit_dpsgd.load(AUTHORS)
    rng, n = np.random.default_rng(0), scores.models
    lines = []
    for mark, steps in enumerate(scores.steps):
        loss = scores.at("first CE", mark)
        logit = tuple(-side for side in scores.at("first logit", mark))
        drawn = rng.integers(n, size=(2, 1000, n))  # bootstrap; the same models for both scores
        seen = [_apart(*score) for score in (loss, logit)]
        again = [
            _apart(*(s[d] for s, d in zip(score, drawn, strict=True))) for score in (loss, logit)
        ]
        values = [*seen, seen[0] - seen[1]]
        errors = [float(np.std(v)) for v in (*again, again[0] - again[1])]
        cells = [f"{v:.3f} ± {e:.3f}" for v, e in zip(values, errors, strict=True)]
        parts = [slice(k, k + 1000) for k in range(0, n - 999, 1000)]
        small = [_published(*(side[part].astype(float) for side in loss)) for part in parts]
        lines.append(
            [
                f"{steps * scores.about['training']['rate']:g}",
                *(cells[0], OTHERS["CE"][mark], cells[1], OTHERS["logit"][mark], cells[2]),
                f"{audit_dpsgd.estimated(scores.samples('first CE', mark))[1]:.2f}",
                ", ".join(f"{value:.2f}" for value in small),
                FIGURE[mark],
            ]
        )
    headings = ["epochs", "cross-entropy", "others", "logit", "others", "difference"]
    headings += ["ε", "ε as published, 1,000 models each", "the authors' figure"]
    return markdown(headings, lines) + _trained({"authors": scores})


@table("dp-sgd-family")
def family() -> str:
    """ε implied by draws of the white-box score of one epoch, if this is DP-SGD with some noise."""
    rate, steps, delta, bounds = 0.5, 2, audit_dpsgd.DELTA, 40

    def score(canary: int, size: int, rng: np.random.Generator) -> Array:
        """The log-likelihood ratio of two steps whose sums the canary moves by 1, noise multiplier 1."""
        sums = canary * (rng.random((size, steps)) < rate) + rng.normal(size=(size, steps))
        ratios: Array = np.log(1 - rate + rate * np.exp(sums - 0.5)).sum(axis=1)
        return ratios

    def accountant(noise: float) -> object:
        return audit_dpsgd.accountant(steps, rate, noise, False)

    among = dp.Family(accountant, 0.5, 8.0, name="noise multiplier")
    truth = audit_dpsgd.accountant(steps, rate, 1.0, False).get_epsilon_for_delta(delta)
    rows = []
    for n in (1000, 10_000, 100_000):
        found: dict[str, list[float]] = {"family": [], "": []}
        for seed in range(bounds):
            options: dict[str, Any] = {"n": n, "loss": "values", "rng": seed}
            of = f"eps, delta={delta:g}"
            found["family"].append(dp.bound(score, (0, 1), of, family=among, **options).value)
            found[""].append(dp.bound(score, (0, 1), of, **options).value)
        over = sum(value > truth for value in found["family"])
        implied, plain = np.median(found["family"]), np.median(found[""])
        rows.append(
            [
                f"{n:,}",
                f"{plain:.2f}",
                f"{implied:.2f}",
                f"{implied / truth:.3f}",
                f"{over} of {bounds}",
            ]
        )
    headings = [
        "models a side",
        "certified ε",
        "with the family",
        "of the accountant's",
        "above it",
    ]
    return markdown(headings, rows) + f"\n\nThe accountant's ε is {truth:.2f} at δ = {delta:g}."
