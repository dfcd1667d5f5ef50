"""An additive score: boosting by stumps, beside a slow version, and as trees."""

from __future__ import annotations

import numpy as np
import pytest

from dpassay.scores.additive import AdditiveModel


def drawn(seed, n=400, d=3):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.laplace(size=(2 * n, d)), 1)  # ties
    rows[:n, 0] += 1.0
    rows[:, -1] = 5.0  # constant
    return rows, np.repeat([1, 0], n)


def first_split(rows, labels, least):
    """Of all thresholds of all coordinates the one with the largest gain, and the Newton steps."""
    gradient, curvature = labels - labels.mean(), labels.mean() * (1 - labels.mean())
    found = (0.0, 0, 0.0, 0.0, 0.0)
    for k, column in enumerate(rows.T):
        places = np.unique(column)
        for edge in (places[:-1] + places[1:]) / 2:
            left = column <= edge
            sizes = left.sum(), (~left).sum()
            if min(sizes) < least:
                continue
            low, high = gradient[left].sum(), gradient[~left].sum()
            gain = low**2 / sizes[0] + high**2 / sizes[1]
            if gain > found[0] + 1e-9:
                found = gain, k, edge, low / sizes[0] / curvature, high / sizes[1] / curvature
    return found


def test_the_first_step_is_the_best_of_all_splits(seed, monkeypatch):
    monkeypatch.setattr("dpassay.scores.additive._ROUNDS", 1)
    rows, labels = drawn(seed)
    rows = np.round(2 * rows) / 2  # fewer values than bins
    model = AdditiveModel(5).fit(rows, labels)
    _, k, edge, low, high = first_split(rows, labels, 5)
    assert [one.size for one in model.edges] == [int(j == k) for j in range(3)]
    assert model.edges[k][0] == pytest.approx(edge)
    assert model.values[k] == pytest.approx(0.3 * np.array([low, high]))


def test_log_odds_of_independent_coordinates_come_near_the_truth(seeds):
    """Laplace noise on a shift of 1: log p/q rises from −1 at 0 to 1 at 1, and is level elsewhere."""
    errors = []
    for seed in seeds[:5]:
        rng = np.random.default_rng(seed)
        rows = rng.laplace(size=(8000, 4))
        rows[:4000, 0] += 1.0
        model = AdditiveModel(50).fit(rows, np.repeat([1, 0], 4000))
        at = np.zeros((200, 4))
        at[:, 0] = np.linspace(-2, 3, 200)
        truth = np.abs(at[:, 0]) - np.abs(at[:, 0] - 1)
        errors.append(np.abs(model.decision_function(at) - truth).mean())
    assert max(errors) < 0.15


def test_trees_say_the_same_to_the_last_bit(seed):
    rows, labels = drawn(seed)
    model = AdditiveModel(10).fit(rows, labels)
    trees, fresh = model.trees(), drawn(seed + 1)[0]
    assert trees.fits(3)
    assert np.array_equal(trees.score(fresh), model.decision_function(fresh))
    edges = np.column_stack([np.resize(edge if edge.size else [5.0], 50) for edge in model.edges])
    assert np.array_equal(trees.score(edges), model.decision_function(edges))  # on the thresholds


@pytest.mark.parametrize("rows", [np.zeros((40, 2)), np.arange(40.0)[:, None] // 39])
def test_rows_without_a_split_have_the_same_score(rows):
    model = AdditiveModel(5).fit(rows, np.repeat([1, 0], 20))
    assert not model.decision_function(rows).any()
    assert not model.trees().score(rows).any()


def test_a_rising_function_of_a_coordinate_changes_nothing(seed):
    rows, labels = drawn(seed)
    rows = np.round(10 * rows)  # their cubes are exact
    scores = [AdditiveModel(10).fit(x, labels).decision_function(x) for x in (rows, rows**3)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-12)
