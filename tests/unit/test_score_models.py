"""Score functions as data, and the features they rank by."""

import numpy as np
import pytest
from tests.helpers import learned, training, training_of

import dpassay as dp
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.events import Event, of_scores
from dpassay.outputs.score_models import Features, Polynomial, ScoreFunction
from dpassay.scores.fit import fit

RNG = np.random.default_rng(0)


def test_features_of_mixed_outputs():
    """Kinds and atoms get indicators; numbers are standardised where they are."""

    def values(n):
        rng = np.random.default_rng(n)
        raw = np.empty(n, dtype=object)
        raw[:] = [
            None if u < 0.3 else (0.0 if u < 0.5 else float(v)) for u, v in rng.random((n, 2))
        ]
        return raw

    samples = dp.from_samples(values(1000), values(1001))
    draws = training_of(samples)
    features = Features.learn(draws.p, draws.q)
    rows = features.rows(samples.p)
    assert rows.shape[1] == 3  # the number, "is of the second kind", "is the atom 0.0"
    assert set(np.unique(rows[:, 1])) == set(np.unique(rows[:, 2])) == {0.0, 1.0}


def test_a_ranking_is_linear_and_quadratic_and_comes_back_from_json():
    _, p, _ = learned(RNG.normal(size=(99, 2)), RNG.normal(size=(99, 2)))
    features = Features(p.layout.parts, 2, np.zeros(2), np.ones(2))
    model = Polynomial(-1.0, [0.0, 1.0], [[0, 0]], [1.0])
    event = of_scores(LogisticLike(ScoreFunction("by hand", features, model)), 0.0, True)
    outputs = from_raw(np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [-2.0, -2.0]]), 4)
    assert event.holds(outputs).tolist() == [True, True, False, True]
    assert event.words == "-1 +1·x2 +1·x1² ≥ 0"
    again = Event.from_json(event.to_json())
    assert not again.live
    assert again.holds(outputs).tolist() == event.holds(outputs).tolist()


class LogisticLike:
    name = "by hand"

    def __init__(self, score_function):
        self.score_function, self.score = score_function, score_function.score


@pytest.mark.parametrize("name", ["linear", "logistic", "products", "boosting", "mlp"])
def test_a_score_depends_on_its_output_alone(name, seed):
    """Not on the block it is scored in: an event that is cut at a tie would flip."""
    rng = np.random.default_rng(seed)

    def draws(shift, size):
        return np.round(rng.normal(size=(size, 4)) + np.array([shift, 0, 0, 0])).astype(int)

    loss = fit(name, training(draws(0, 800), draws(1, 800)), rng=rng)
    rows = draws(0.5, 300)
    whole = loss.score(from_raw(rows, 300))
    for size in (1, 2, 3, 5, 7, 33):
        parts = [rows[k : k + size] for k in range(0, 300, size)]
        found = np.concatenate([loss.score(from_raw(part, len(part))) for part in parts])
        assert np.array_equal(found, whole)
