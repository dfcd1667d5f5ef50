"""Scores by named features: the single most telling one, and a linear combination of the best.

Which features are best is found by `loss.feature_search`, once for both.

"feature" ranks outputs by the best one alone, by isotonic frequencies: its events are {feature ≥ t} or
{feature ≤ t}, which can be counted without this library. "features" is a logistic regression on the best
few. A feature that is no better than chance costs power, never validity.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from dpassay._typing import FloatArray
from dpassay.loss.feature_search import ranked
from dpassay.loss.logistic import newton
from dpassay.loss.ranking_loss import RankingLoss
from dpassay.loss.training import Training
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.named_features import Feature, NamedFeatures
from dpassay.outputs.score_models import Polynomial, Ranking, Steps, expanded
from dpassay.outputs.templates import written
from dpassay.privacy.finite_pairs import LossCurve

#: Training draws per side beyond which a feature learns nothing new that its score could use.
_ENOUGH = 20_000
#: Training draws per side from which on either half is searched by itself.
_SPLIT = 200
#: Features of either half that compete for being the best one.
_FEW = 5
#: Features that are combined.
_BEST = 40
#: Values of a feature that a chart shows one by one.
_BARS = 24


def fit_features(name: str, training: Training) -> RankingLoss:
    """ "feature" (the best one) or "features" (the best few)."""
    found, rows, n = _search(training, 1 if name == "feature" else _BEST)
    if not found:
        return RankingLoss(Ranking(name, NamedFeatures.of(()), Polynomial(0.0, np.zeros(0))), False)
    chosen = NamedFeatures.of(tuple(one for one, _ in found))
    if name == "feature":
        model: Steps | Polynomial = _steps(rows[:n, 0], rows[n:, 0])
    else:
        chosen = chosen.standardised(rows)
        model = _linear((rows - chosen.centre) / chosen.scale, n)
    return RankingLoss(Ranking(name, chosen, model), found[0][1] > 0)


def _search(training: Training, most: int) -> tuple[list[tuple[Feature, float]], FloatArray, int]:
    """The best features with their limits, their values by draw, and draws of the first side.

    Those of all training draws are among the best of its two halves, whose tables are there already.
    """
    split = training.whole is None and min(training.sizes) >= _SPLIT
    parts = training.halves if split else (training,)
    best = [one for part in parts for one in part.features[: max(most, _FEW) if split else most]]
    found = list({(x.family, x.key, x.width, x.name): (x, limit) for x, limit in best}.values())
    chosen = NamedFeatures.of(tuple(one for one, _ in found))
    used = [part.most(_ENOUGH // len(parts)) for part in parts]
    p, q = (
        np.concatenate([chosen.values(side) for side in sides])
        for sides in ([part.p.outputs for part in used], [part.q.outputs for part in used])
    )
    rows, n = np.concatenate([p, q]), len(p)
    if split:
        order = ranked(rows, n)[:most]
        found = [(chosen.features[k], limit) for k, limit in order]
        rows = rows[:, [k for k, _ in order]]
    return found, rows, n


def _steps(p: FloatArray, q: FloatArray) -> Steps:
    """Isotonic log-odds of one feature, in the direction that fits better."""
    both = np.concatenate([p, q])
    weight = np.repeat([0.5 / p.size, 0.5 / q.size], [p.size, q.size])
    hits = np.where(np.arange(both.size) < p.size, weight, 0.0)
    places, back = np.unique(both, return_inverse=True)
    total, own = np.bincount(back, weight), np.bincount(back, hits)
    best: tuple[float, FloatArray] | None = None
    for rising in (True, False):
        share = isotonic_regression(own / total, weights=total, increasing=rising).x
        fit = float(np.sum(total * (share - own / total) ** 2))
        if best is None or fit < best[0]:
            best = fit, share
    assert best is not None
    half = 0.25 / min(p.size, q.size)  # half a draw on either side of each step
    share = best[1]
    level = np.bincount(np.unique(share, return_inverse=True)[1], total)
    held = level[np.unique(share, return_inverse=True)[1]]
    odds = np.log(share * held + half) - np.log((1 - share) * held + half)
    keep = np.append(True, np.diff(odds) != 0)
    return Steps(places[keep], odds[keep])


def _linear(rows: FloatArray, n: int) -> Polynomial:
    """Logistic regression on standardised features; the first n rows are of the first side."""
    m = len(rows) - n
    weight = np.repeat([0.5 / n, 0.5 / m], [n, m])
    hits = np.where(np.arange(len(rows)) < n, weight, 0.0)
    terms = expanded(rows, np.zeros((0, 2), dtype=np.int64))
    terms = np.column_stack([np.ones(len(rows)), terms])
    beta = newton(terms, weight, hits, (1.0 + terms.shape[1] / 10) / len(rows))
    return Polynomial(float(beta[0]), beta[1:])


def feature_curve(ranking: Ranking, p: Outputs, q: Outputs) -> LossCurve:
    """How often the single feature of a ranking takes each value on the two inputs.

    Many values are gathered into intervals; `x` holds the value, or the lower end.
    """
    assert isinstance(ranking.model, Steps)
    sides = [np.asarray(ranking.features.rows(side))[:, 0] for side in (p, q)]
    both = np.concatenate(sides)
    x: FloatArray = np.unique(both)
    labels = [written(value) for value in x.tolist()]
    if (
        x.size > _BARS
    ):  # intervals that begin where a step of the score does, so that no event cuts one
        edges = np.quantile(both, np.linspace(0, 1, _BARS)[1:-1], method="inverted_cdf")
        steps = ranking.model.start
        at = np.searchsorted(steps, edges).clip(max=steps.size - 1)
        x = np.unique(np.append(steps[at], both.min()))
        ends = [*x[1:].tolist(), float(both.max())]
        labels = [f"{written(a)} to {written(b)}" for a, b in zip(x.tolist(), ends, strict=True)]
    places = [np.searchsorted(x, side, side="right") - 1 for side in sides]
    mass = [np.bincount(place, minlength=x.size) / place.size for place in places]
    with np.errstate(divide="ignore", invalid="ignore"):
        ell = np.where(mass[0] == mass[1], 0.0, np.log(mass[0]) - np.log(mass[1]))
    part = ranking.feature or "output"
    return LossCurve(x, ell, mass[0], mass[1], labels=tuple(labels), part=part)
