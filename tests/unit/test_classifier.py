"""The loss as log-odds of a classifier."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from tests.helpers import training, training_of

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.learning.cross_fit import candidates
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.events import Event
from dpassay.scores.classifier import ClassifierScore
from dpassay.scores.fit import fit

zoo = dp.zoo


def gaussian(n_p, n_q, seed, d=1):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(n_p, d)), rng.normal(size=(n_q, d))
    p[:, 0] += 1
    return training_of(dp.from_samples(p, q))


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


def test_candidates_suit_the_outputs(seed):
    def names(mechanism):
        samples = dp.draw(mechanism, mechanism.pair, n=500, rng=seed)
        return candidates(training_of(samples))

    assert names(zoo.Laplace()) == ["polynomial", "kde", "ranks", "dyadic"]
    assert names(zoo.DiscreteLaplace()) == ["categories", "linear", "kde"]
    assert names(zoo.RandomizedResponse(1.5)) == [
        "feature",
        "logistic",
        "discriminant",
        "products",
        "parity",
        "kde",
        "additive",
        "boosting",
    ]
    assert "kde" not in candidates(gaussian(500, 500, seed, d=20))
    assert candidates(gaussian(500, 500, seed, d=300)) == ["linear", "additive", "boosting"]


@pytest.mark.parametrize("wrong", ["forest", 3, object()])
def test_what_is_no_classifier_is_refused(wrong, seed):
    with pytest.raises(InvalidInput, match="boosting"):
        fit(wrong, gaussian(20, 20, seed), rng=np.random.default_rng(0))


def test_a_class_in_place_of_an_instance_is_refused():
    with pytest.raises(InvalidInput, match=r"such as LogisticRegression\(\)"):
        dp.audit(dp.zoo.Gaussian(1.0), (0.0, 1.0), "mu=0.8", n=2000, loss=LogisticRegression)


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


def test_trees_written_down_score_like_the_classifier(seed):
    rng = np.random.default_rng(seed)
    draws = training(rng.normal(size=(800, 4)), rng.normal(0.3, 1, size=(700, 4)))
    loss = ClassifierScore.fit("boosting", draws, rng=rng)
    fresh = from_raw(rng.normal(size=(500, 4)), 500)
    event = loss.event(0.1, True)
    again = Event.from_json(event.to_json())
    assert not again.live
    assert again.scorer is None
    assert again.score_function.score(fresh) == pytest.approx(loss.score(fresh), abs=1e-9)
    assert np.array_equal(again.holds(fresh), event.holds(fresh))


def test_an_event_of_trees_replays_from_a_file(seed):
    def rings(data, size, rng):
        angle, radius = 2 * np.pi * rng.random(size), 1 + data + 0.2 * rng.normal(size=size)
        more = rng.normal(size=(size, 2))
        return np.column_stack([radius * np.cos(3 * angle), radius * np.sin(3 * angle), more])

    verdict = dp.audit(rings, (0.0, 0.3), "eps=.5", n=8000, loss="boosting", rng=seed)
    again = dp.Verdict.from_json(verdict.to_json())
    assert verdict.violated
    assert dp.replay(again, rings, n=4000, rng=seed + 1).violated


def test_neighbours_of_ties_are_not_taken_from_one_input_alone(seeds):
    """scikit-learn takes neighbours at the same distance in the order of the rows it was fitted to."""
    from sklearn.neighbors import KNeighborsClassifier

    mechanism = dp.zoo.KaryRandomizedResponse(5, 1.0)
    truth = mechanism.masses(mechanism.pair).delta(0.3)
    for seed in seeds[:10]:
        found = dp.spectrum.estimate(
            mechanism,
            mechanism.pair,
            n=4000,
            epsilons=[0.3],
            loss=KNeighborsClassifier(25),
            rng=seed,
        )
        assert truth / 2 < found.y[0] < truth + 0.06


def bimodal(
    x, size, rng
):  # a mixture that is fitted to both sides finds the first column, which tells nothing
    first = np.where(rng.random(size) < 0.5, -5, 5) + rng.normal(size=size)
    return np.round(np.c_[first, x + rng.normal(size=size)], 6)


@pytest.mark.parametrize("components", [1, 2])
def test_a_density_estimator_is_fitted_to_each_side_everywhere(components, seed):
    options = {"loss": GaussianMixture(components, random_state=0), "n": 4000, "rng": seed}
    pair = (0.0, 1.0)
    assert dp.spectrum.estimate(bimodal, pair, **options)(0.0) == pytest.approx(0.383, abs=0.06)
    assert dp.estimate(bimodal, pair, **options).delta(0.0) == pytest.approx(0.383, abs=0.06)
    assert dp.bound(bimodal, pair, "mu", **options).value > 0.7
    verdict = dp.audit(bimodal, pair, "mu=0.5", **options)
    assert verdict.violated
    assert "GaussianMixture" in str(verdict.witness)


class Columns:
    """A classifier that returns so many columns, or has learnt these labels."""

    def __init__(self, columns, classes=None):
        self.columns = columns
        if classes is not None:
            self.classes_ = classes

    def fit(self, rows, labels):
        self.mean = rows.mean()

    def predict_proba(self, rows):
        return np.full((len(rows), self.columns), 1 / self.columns)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Columns(1), r"predict_proba of Columns .* two labels, got the shape \(\d+, 1\)"),
        (Columns(3), r"got the shape \(\d+, 3\)"),
        (Columns(2, [0, 1, 2]), r"labels 0 and 1, but has classes_ \[0, 1, 2\]"),
    ],
)
def test_a_classifier_of_other_than_two_labels_is_refused(wrong, reason, seed):
    with pytest.raises(InvalidInput, match=reason):
        dp.audit(zoo.Gaussian(1.0), (0.0, 1.0), "mu=0.8", n=400, loss=wrong, rng=seed)


def test_a_classifier_that_cannot_be_cloned_is_fitted_as_a_copy(seed):
    given = Columns(2)  # no get_params
    fits = [fit(given, gaussian(50, 50, s), rng=np.random.default_rng(0)) for s in (seed, seed + 1)]
    assert fits[0].model.mean != fits[1].model.mean
    assert not hasattr(given, "mean")


def test_a_kernel_density_as_a_loss_is_sent_to_its_place():
    with pytest.raises(InvalidInput, match="bandwidth= of dp.pure"):
        dp.audit(zoo.Gaussian(1.0), (0.0, 1.0), "mu=0.8", n=400, loss=dp.KernelDensity())


def test_an_additive_score_is_data_and_names_its_coordinates(seed):
    """Two of twelve bins move: steps of both add up, and somebody else can evaluate them."""

    def release(data, size, rng):
        moved = data * (np.eye(12)[3] - np.eye(12)[7])
        return np.round(moved + rng.laplace(scale=2, size=(size, 12)), 4)

    verdict = dp.audit(release, (0, 1), "eps=0.4", n=6000, loss="additive", rng=seed)
    assert verdict.violated
    words = str(verdict.witness.event)
    assert "a sum of steps of" in words
    assert "x4" in words
    assert "x8" in words
    again = dp.Verdict.from_json(verdict.to_json())
    assert dp.replay(again, release, rng=seed + 1).violated


def test_a_score_that_is_never_a_number_is_no_crash(seed):
    """Densities of two numbers near 1e300 overflow; the other scores find the leak."""

    def release(data, size, rng):
        return 1e300 * np.round(data + rng.laplace(size=(size, 2)), 3)

    with np.errstate(all="ignore"):
        verdict = dp.audit(release, (0, 1), "eps=0.5", n=4000, rng=seed)
        assert verdict.violated
        with pytest.raises(InvalidInput, match="rescale"):
            dp.audit(release, (0, 1), "eps=0.5", n=4000, rng=seed, loss="kde")
