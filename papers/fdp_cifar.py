"""Paper 004, f-DP: DP-SGD on CIFAR-10 (Figures 6–8), from what was kept of trained models.

`python -m examples.run_dpsgd --data FILE --device cuda authors` trains the models and writes authors.npz;
SCORES= in the environment names another file than the one in `results/`. Scores are taken on the first
database's canary alone, as the authors do.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import numpy as np
from examples import audit_dpsgd as models
from examples.cifar import Array

import dpassay as dp
from papers import plots
from papers.core import HOME, Lab, Outcome, Row, item

ALPHA = np.linspace(0, 1, 101)
CLAIM = dp.GaussianDP(0.15)
#: ε that Opacus reports at δ = 10⁻³ after 1, 10, 15, 20 and 25 epochs.
OPACUS = (3.17, 11.1, 14.3, 17.2, 19.9)


@cache
def _scores(path: str, digest: str) -> models.Scores:
    scores = models.load(path)
    data = scores.about.get("data", {"set": "unknown images", "file": "?"})
    if data["set"] != "CIFAR-10":
        raise ValueError(
            f"{path} has models trained on {data['set']} ({data['file']}), and these figures are of "
            "CIFAR-10: give its first 1,000 images to python -m examples.run_dpsgd --data"
        )
    return scores


def kept() -> tuple[str, str]:
    """The file of scores, and a digest of it: runs on other models are other runs."""
    path = Path(os.environ.get("SCORES") or HOME / "results" / "fdp" / "cifar.npz")
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing: train the models with python -m examples.run_dpsgd authors, and name "
            "the file it writes in SCORES"
        )
    return str(path), hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def curve(seed: int, path: str, digest: str, score: str, mark: int) -> Row:
    """The estimated curve of one score, the nearest Gaussian curve, and its ε (Algorithm 3)."""
    found, epsilon = models.estimated(_scores(path, digest).samples(score, mark))
    return {
        "curve": [round(float(v), 5) for v in found(ALPHA)],
        "μ": models.fitted_mu(found),
        "ε": epsilon,
    }


def halved(seed: int, path: str, digest: str, mark: int) -> float:
    """μ from the cross-entropy less μ from the logit, on a random half of the models of each side.

    The standard deviation over halves is the standard error with all models (delete-half jackknife,
    Shao & Wu 1989). A bootstrap would repeat models, and repeated values are atoms to an estimate.
    """
    scores = _scores(path, digest)
    rng = np.random.default_rng(seed)
    kept = [rng.permutation(scores.models)[: scores.models // 2] for _ in range(2)]
    mu = []
    for name in ("first CE", "first logit"):
        sides = (side[half] for side, half in zip(scores.at(name, mark), kept, strict=True))
        curve = dp.tradeoff.estimate(dp.from_samples(*sides, rng=0), confidence=None)
        mu.append(models.fitted_mu(curve))
    return mu[0] - mu[1]


def audits(
    sides: tuple[Array, Array], seed: int, division: int = 0
) -> tuple[dp.Verdict, dp.Verdict]:
    """The paper's auditor (Algorithm 2) with its box, and the library's audit, each on all models.

    `division` is the seed by which models are divided into those that locate, fit and test.
    """
    test = min(1000, len(sides[0]) // 3)
    first = dp.tradeoff.audit(
        dp.from_samples(*sides, rng=division),
        claim=CLAIM,
        box="hoeffding",
        n_locate=min(1000, len(sides[0]) - 2 * test),
        n_test=test,
        rng=seed,
    )
    again = dp.from_samples(*sides, rng=division)
    return first, dp.audit(again, claim=CLAIM, loss="values", rng=seed)


def audit(seed: int, path: str, digest: str, score: str, mark: int) -> Row:
    """Both audits, and one of all logits."""
    scores = _scores(path, digest)
    first, second = audits(scores.at(score, mark), seed)
    assert first.curve is not None
    assert first.point is not None
    whole = dp.audit(scores.samples("logits", mark), claim=CLAIM, loss="values", rng=seed)
    gap = np.asarray(CLAIM.tradeoff(first.curve.x)) - first.curve.y
    return {
        "violated": bool(first.violated),
        "p": float(first.p_value),
        "audit": float(second.p_value),
        "bound": float(second.lower_bound),
        "vector": float(whole.p_value),
        "curve": [round(float(v), 5) for v in first.curve(ALPHA)],
        "at": float(first.curve.x[int(np.argmax(gap))]),
        "point": [float(first.point.alpha), float(first.point.beta)],
        "box": [float(v) for v in first.point.box],
    }


def divided(seed: int, path: str, digest: str, score: str, mark: int) -> Row:
    """Both audits with the models divided otherwise."""
    first, second = audits(_scores(path, digest).at(score, mark), seed, division=seed)
    return {"violated": bool(first.violated), "bound": float(second.lower_bound)}


def certified(seed: int, path: str, digest: str, score: str, mark: int) -> float:
    """A lower bound of ε at δ = .001."""
    return models.certified(_scores(path, digest).samples(score, mark))


def _about(path: str, digest: str) -> tuple[models.Scores, str]:
    scores = _scores(path, digest)
    seconds, where = scores.about["seconds"], scores.about["device"]
    return scores, f"{scores.models} models a side, trained in {seconds:.0f} s ({where})"


@item("fdp/fig6")
def fig6(lab: Lab) -> Outcome:
    file = kept()
    scores, trained = _about(*file)
    last = len(scores.steps) - 1
    found = {
        name: lab.runs(curve, *file, f"first {name}", last, count=1)[0]
        for name in ("logit", "CE", "KL")
    }
    rows: list[Row] = [
        {"α": float(a), "β": b, "score": name}
        for name, one in found.items()
        for a, b in zip(ALPHA, one["curve"], strict=True)
    ]
    mu = {name: one["μ"] for name, one in found.items()}
    words = ", ".join(f"{name} {value:.3f}" for name, value in mu.items())
    gaps = []
    for mark, steps in enumerate(scores.steps):
        ce, logit = (
            lab.runs(curve, *file, f"first {name}", mark, count=1)[0]["μ"]
            for name in ("CE", "logit")
        )
        error = np.std(lab.runs(halved, *file, mark, count=lab.count(200)))
        epochs = f"{steps * scores.about['training']['rate']:g}"
        gaps.append(f"{ce - logit:+.3f} ± {error:.3f} after {epochs}")
    return Outcome(
        rows,
        f"μ of the nearest Gaussian curve: {words}. Cross-entropy less logit, with standard errors from "
        f"random halves of the models: {', '.join(gaps)} epochs. {trained}.",
        mu["CE"] > mu["logit"],
        plots.lines(rows, "α", "β", "score", width=300, height=260),
    )


@item("fdp/fig7")
def fig7(lab: Lab) -> Outcome:
    file = kept()
    scores, trained = _about(*file)
    last = len(scores.steps) - 1
    seen = lab.runs(audit, *file, "first KL", last, count=1)[0]
    others = lab.runs(divided, *file, "first KL", last, count=lab.count(100))
    refuted, bounds = (np.array([one[key] for one in others]) for key in ("violated", "bound"))
    rows: list[Row] = [
        {"α": float(a), "β": float(b), "which": which}
        for which, values in (("claimed", CLAIM.tradeoff(ALPHA)), ("estimated", seen["curve"]))
        for a, b in zip(ALPHA, values, strict=True)
    ]
    chart = plots.lines(rows, "α", "β", "which", width=300, height=260)
    chart = chart + plots.rule(x=seen["at"], color="#1f9970")
    box = dict(zip(("α low", "α high", "β low", "β high"), seen["box"], strict=True))
    words = "refutes" if seen["violated"] else "does not refute"
    return Outcome(
        [*rows, {"which": "box", **box, "violated": seen["violated"]}],
        f"the paper's auditor {words} the claim μ = 0.15 (p = {seen['p']:.2g}); p of dpassay's "
        f"audit: {seen['audit']:.2g} from KL alone (certified μ ≥ {seen['bound']:.3f}), "
        f"{seen['vector']:.2g} from all logits. With the models divided in {len(others)} other ways "
        f"the paper's auditor refutes in {refuted.sum()}, and the certified μ is {bounds.min():.3f} to "
        f"{bounds.max():.3f}, in the median {np.median(bounds):.3f}. {trained}.",
        seen["violated"],
        chart + plots.box(seen["box"], seen["point"]),
    )


@item("fdp/fig8")
def fig8(lab: Lab) -> Outcome:
    file = kept()
    scores, trained = _about(*file)
    rows: list[Row] = []
    for mark, steps in enumerate(scores.steps):
        values = {
            "accountant, add or remove": models.accounted(
                scores.about, steps, replaced=False
            ).get_epsilon_for_delta(models.DELTA),
            "accountant, replace": models.accounted(scores.about, steps).get_epsilon_for_delta(
                models.DELTA
            ),
            "nearest Gaussian curve": lab.runs(curve, *file, "first CE", mark, count=1)[0]["ε"],
            "certified, loss": lab.runs(certified, *file, "first CE", mark, count=1)[0],
            "certified, all logits": lab.runs(certified, *file, "logits", mark, count=1)[0],
        }
        epochs = steps * scores.about["training"]["rate"]
        rows += [{"epochs": epochs, "ε": float(v), "which": name} for name, v in values.items()]
    by = {name: [row["ε"] for row in rows if row["which"] == name] for name in values}
    theory, estimate = by["accountant, add or remove"], by["nearest Gaussian curve"]
    ends = f"{theory[0]:.3g} to {theory[-1]:.3g}"
    same = len(theory) == len(OPACUS) and np.allclose(theory, OPACUS, rtol=0.01)
    words = ", ".join(f"{name} {values[-1]:.3g}" for name, values in by.items())
    return Outcome(
        rows,
        f"the accountant's ε goes from {ends}, nearest Gaussian curve's by epochs "
        f"{', '.join(f'{e:.3g}' for e in estimate)}; at the end: {words}. {trained}.",
        same and all(e < t for e, t in zip(estimate, theory, strict=True)),
        plots.lines(rows, "epochs", "ε", "which", points=True, width=320, height=260),
    )
