"""The loss as log-odds of a classifier."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.learning.learner import candidates
from dpassay.loss.fit import fit
from dpassay.loss.training import Training
from dpassay.outputs.ranking import Features
from dpassay.sampling.samples import Batch

zoo = dp.zoo


def gaussian(n_p, n_q, seed, d=1):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(n_p, d)), rng.normal(size=(n_q, d))
    p[:, 0] += 1
    return training(dp.from_samples(p, q))


def training(samples):
    return Training.of(Batch.of(samples.p, samples.q))


@pytest.mark.parametrize(
    ("name", "error"),
    [("logistic", 0.1), ("boosting", 0.3), ("mlp", 0.15), (GaussianNB(), 0.1)],
    ids=str,
)
def test_log_odds_are_the_loss_whatever_the_class_sizes(name, error, seed):
    loss = fit(name, gaussian(9000, 3000, seed), rng=np.random.default_rng(seed))
    x = np.linspace(-1, 2, 50)
    points = dp.from_samples(x[:, None], x[:, None] + 9.0).p
    exact = points.numbers[:, 0] - 0.5
    assert np.abs(loss.score(points) - exact).mean() < error


def test_a_decision_function_is_enough_and_orders_the_outputs(seed):
    draws = gaussian(2000, 2000, seed)
    loss = fit(LinearSVC(dual=False), draws, rng=np.random.default_rng(seed))
    p = draws.p.outputs
    x = loss.score(p)
    assert np.corrcoef(x, p.numbers[:, 0])[0, 1] > 0.99


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
    draws = training(samples)
    features = Features.learn(draws.p, draws.q)
    rows = features.rows(samples.p)
    assert rows.shape[1] == 3  # the number, "is of the second kind", "is the atom 0.0"
    assert set(np.unique(rows[:, 1])) == set(np.unique(rows[:, 2])) == {0.0, 1.0}


def test_candidates_suit_the_outputs(seed):
    def names(mechanism):
        samples = dp.draw(mechanism, mechanism.pair, n=500, rng=seed)
        return candidates(training(samples))

    assert names(zoo.Laplace()) == ["polynomial", "kde", "dyadic"]
    assert names(zoo.DiscreteLaplace()) == ["kde"]
    assert names(zoo.RandomizedResponse(1.5)) == ["logistic", "products", "kde", "boosting"]
    assert "kde" not in candidates(gaussian(500, 500, seed, d=20))
    assert candidates(gaussian(500, 500, seed, d=300)) == ["linear", "boosting"]


@pytest.mark.parametrize("wrong", ["forest", 3, object()])
def test_what_is_no_classifier_is_refused(wrong, seed):
    with pytest.raises(InvalidInput, match="boosting"):
        fit(wrong, gaussian(20, 20, seed), rng=np.random.default_rng(0))


def test_the_torch_network_fits_or_says_what_is_missing(seed):
    from importlib.util import find_spec

    from dpassay.errors import MissingExtra

    draws = gaussian(4000, 4000, seed, d=3)
    if find_spec("torch") is None:
        with pytest.raises(MissingExtra, match="torch"):
            fit("torch", draws, rng=np.random.default_rng(seed))
    else:
        loss = fit("torch", draws, rng=np.random.default_rng(seed))
        p = draws.p.outputs
        assert np.abs(loss.score(p) - (p.numbers[:, 0] - 0.5)).mean() < 0.3
