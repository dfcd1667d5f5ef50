"""Polynomials by Newton's method, beside scikit-learn."""

import numpy as np
import pytest
from tests.helpers import training

import dpassay as dp
from dpassay.outputs.canonical import from_raw
from dpassay.scores.cell_counts import counts_of
from dpassay.scores.serializable import fit_logistic, newton, quadratic


def test_newton_agrees_with_scikit_learn(seed):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 3))
    labels = rng.random(600) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.0] - 0.3))
    ones = np.column_stack([np.ones(600), x])
    ours = newton(ones, np.ones(600), labels.astype(float), 1e-9)
    model = LogisticRegression(C=1e9, tol=1e-10).fit(x, labels)
    assert ours == pytest.approx(np.r_[model.intercept_, model.coef_[0]], abs=1e-4)


def test_products_of_many_coordinates_are_thinned_to_the_telling_ones(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(2, 3000, 60))
    p[:, 7] = np.where(rng.random(3000) < 0.9, np.sign(p[:, 3]), -np.sign(p[:, 3])) * np.abs(
        p[:, 7]
    )
    loss = fit_logistic("products", training(p, q))
    pairs = {tuple(pair) for pair in loss.score_function.model.pairs.tolist()}
    assert (3, 7) in pairs
    assert len(pairs) == 560


def test_more_terms_than_draws_are_fitted_all_the_same(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(400, 1500)), rng.normal(size=(400, 1500)) + 0.2
    loss = fit_logistic("linear", training(p, q))
    fresh = (
        from_raw(rng.normal(size=(500, 1500)), 500),
        from_raw(rng.normal(size=(500, 1500)) + 0.2, 500),
    )
    assert loss.score(fresh[0]).mean() > 1 > -1 > loss.score(fresh[1]).mean()


def test_quadratic_loss_is_the_logistic_regression_of_the_draws(seed):
    """Binned, Newton, weights: the same coefficients as scikit-learn's on the raw draws."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    p, q = rng.normal(1, 1.2, 4000), rng.normal(0, 1, 6000)
    pool = dp.from_samples(p, q)
    cell_counts = counts_of(pool.p, pool.q)
    axis = cell_counts.binned[0][0].axes[0]
    loss = quadratic(*cell_counts.binned[0], cell_counts.n)
    x = np.concatenate([p, q])
    weights = np.r_[np.full(4000, 1 / 4000), np.full(6000, 1 / 6000)] * 5000
    model = LogisticRegression(C=1e9, tol=1e-10, max_iter=1000)
    model.fit(np.c_[x, x**2], np.arange(10_000) < 4000, sample_weight=weights)
    inside = np.abs(axis.points) < 2.5
    exact = model.decision_function(np.c_[axis.points, axis.points**2])
    assert np.abs(loss - exact)[inside].max() < 0.01


def test_quadratic_loss_of_separated_sides_stays_finite():
    pool = dp.from_samples(np.linspace(0, 1, 500), np.linspace(5, 6, 500))
    cell_counts = counts_of(pool.p, pool.q)
    assert np.all(np.isfinite(quadratic(*cell_counts.binned[0], cell_counts.n)))


def test_a_combination_that_hardly_varies_is_found():
    """Integers of which a subset has a sum with noise of scale 1/4: ε = 4 for neighbours."""
    chosen = np.array([3, 8, 11, 20])

    def mechanism(x, size, rng):
        out = rng.integers(-4, 5, (size, 24))
        p = 1 - np.exp(-4.0)
        total = x + rng.geometric(p, size) - rng.geometric(p, size)
        out[:, chosen[0]] += total - out[:, chosen].sum(axis=1)
        return out

    by_hand = dp.bound(
        lambda x, n, rng: mechanism(x, n, rng)[:, chosen].sum(axis=1), (0, 1), n=2000, rng=1
    )
    found = dp.bound(mechanism, (0, 1), n=2000, rng=1)
    assert found.value > 0.9 * by_hand.value > 2
