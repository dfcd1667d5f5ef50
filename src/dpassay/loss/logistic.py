"""Logistic regression by Newton's method: log p/q a polynomial, either side weighing the same.

Written out here rather than taken from scikit-learn, whose import alone takes a second: a fit of a few
terms to the weights of a grid takes less than a millisecond, whatever the number of draws.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dpassay._typing import FloatArray, IntArray
from dpassay.loss.binned import Binned
from dpassay.loss.ranking_loss import RankingLoss
from dpassay.loss.training import Training
from dpassay.outputs.score_models import LARGEST, Features, Polynomial, Ranking, expanded

#: Training draws per side beyond which a polynomial learns nothing new that its order could use.
_ENOUGH = 100_000
#: More terms than these are solved for by conjugate gradients, without the matrix.
_MATRIX = 1_000
#: More pairs of coordinates than these are thinned out to the most telling.
_PAIRS = 500


def newton(
    terms: FloatArray, weight: FloatArray, hits: FloatArray, ridge: float, *, steps: int = 50
) -> FloatArray:
    """The β that maximises Σ hits·log s + (weight − hits)·log(1 − s) − ridge·|β|²/2, s = expit(Xβ)."""
    beta = np.zeros(terms.shape[1])
    for _ in range(steps):
        share = expit(terms @ beta)
        gradient = terms.T @ (hits - weight * share) - ridge * beta
        curvature = (terms * (weight * share * (1 - share))[:, None]).T @ terms
        step = np.linalg.solve(curvature + ridge * np.eye(beta.size), gradient)
        longest = float(np.abs(terms @ step).max(initial=0.0))
        beta += step * min(1.0, 5.0 / max(longest, 1e-300))
        if longest < 1e-6:
            break
    return beta


def quadratic(p: Binned, q: Binned, n: tuple[int, int]) -> FloatArray:
    """The maximum-likelihood log p/q of the form a + b·x + c·x² (all products) on a grid.

    Fitted to the weights of the cells: its cost does not depend on n. The ridge is worth one draw.
    """
    # the grid as a unit cube: standardised it is the same, and its squares exist
    mesh = np.meshgrid(*(np.linspace(0.0, 1.0, axis.size) for axis in p.axes), indexing="ij")
    x = np.stack([m.ravel() for m in mesh], axis=1)
    weight_p, weight_q = p.weights.ravel() / n[0], q.weights.ravel() / n[1]
    both = weight_p + weight_q
    mass = max(float(both.sum()), 1e-300)
    centre = both @ x / mass
    spread = np.sqrt(both @ (x - centre) ** 2 / mass)
    z = (x - centre) / np.where(spread > 0, spread, 1.0)
    d = z.shape[1]
    products = [z[:, i] * z[:, j] for i in range(d) for j in range(i, d)]
    terms = np.column_stack([np.ones(len(z)), z, *products])
    some = both > 0
    beta = newton(terms[some], both[some], weight_p[some], 1.0 / min(n))
    return np.asarray(np.clip(terms @ beta, -LARGEST, LARGEST))


def platt(p: FloatArray, q: FloatArray) -> tuple[float, float]:
    """(a, b) with a + b·score the likeliest log-odds of p against q, either side weighing the same."""
    centre, spread = float(np.mean([p.mean(), q.mean()])), float(np.concatenate([p, q]).std())
    if spread == 0:
        return 0.0, 0.0
    terms = np.column_stack([np.ones(p.size + q.size), (np.concatenate([p, q]) - centre) / spread])
    weight, hits = _sides(p.size, q.size)
    beta = newton(terms, weight, hits, 1.0 / min(p.size, q.size))
    return float(beta[0] - beta[1] * centre / spread), float(beta[1] / spread)


def _sides(n: int, m: int) -> tuple[FloatArray, FloatArray]:
    """Weights of n and m draws, each side half in all; and those of the first side alone."""
    weight = np.repeat([0.5 / n, 0.5 / m], [n, m])
    return weight, np.where(np.arange(n + m) < n, weight, 0.0)


def fit_logistic(name: str, training: Training) -> RankingLoss:
    """ "linear", "logistic" (with squares) or "products" (with all, or the most telling, pairs)."""
    training = training.most(_ENOUGH)
    features = Features.learn(training.p, training.q)
    sides = [features.rows(side.outputs) for side in (training.p, training.q)]
    rows = np.concatenate(sides)
    weight, hits = _sides(len(sides[0]), len(sides[1]))
    pairs = _pairs(name, features.width, rows, weight, hits)
    terms = expanded(rows, pairs)
    k = terms.shape[1]
    scale = terms.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    centre = terms.mean(axis=0)
    z = np.column_stack([np.ones(len(terms)), (terms - centre) / scale])
    ridge = (1.0 + k / 10) / len(terms)
    beta = _gradients(z, weight, hits, ridge) if k > _MATRIX else newton(z, weight, hits, ridge)
    weights = beta[1:] / scale
    offset = float(beta[0] - weights @ centre)
    width = rows.shape[1]
    model = Polynomial(offset, weights[:width], pairs, weights[width:])
    return RankingLoss(Ranking(name, features, model))


def _pairs(
    name: str, width: int, rows: FloatArray, weight: FloatArray, hits: FloatArray
) -> IntArray:
    """Which products of coordinates are terms."""
    if name == "linear":
        return np.zeros((0, 2), dtype=np.int64)
    squares = np.column_stack([np.arange(width)] * 2)
    if name == "logistic":
        return squares
    i, j = np.triu_indices(width, 1)
    if i.size > _PAIRS:
        # those whose mean differs most between the sides, by its standard error
        held = np.clip(rows[:, :width], -5.0, 5.0)
        other = weight - hits
        first = (held * hits[:, None]).T @ held / hits.sum()
        second = (held * other[:, None]).T @ held / other.sum()
        square = held**2
        spread = np.sqrt(np.maximum((square * weight[:, None]).T @ square / weight.sum(), 1e-12))
        telling = np.abs(first - second) / spread
        best = np.argsort(-telling[i, j], kind="stable")[:_PAIRS]
        i, j = i[best], j[best]
    return np.concatenate([squares, np.column_stack([i, j])])


def _gradients(z: FloatArray, weight: FloatArray, hits: FloatArray, ridge: float) -> FloatArray:
    """One Newton step from 0 (a ridge discriminant), by conjugate gradients: any number of terms."""
    from scipy.sparse.linalg import LinearOperator, cg

    def curvature(v: FloatArray) -> FloatArray:
        return np.asarray(z.T @ (0.25 * weight * (z @ v)) + ridge * v)

    size = z.shape[1]
    step, _ = cg(
        LinearOperator((size, size), matvec=curvature),
        z.T @ (hits - 0.5 * weight),
        rtol=1e-3,
        maxiter=50,
    )
    return np.asarray(step)
