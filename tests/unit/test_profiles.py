"""Every notion from one sample."""

import math

import numpy as np
import pytest

import dpassay as dp

zoo = dp.zoo
PAIR = (0.0, 1.0)


@pytest.mark.parametrize(
    "mechanism",
    [zoo.Laplace(), zoo.Gaussian(), zoo.DiscreteLaplace(), zoo.TruncatedLaplace()],
    ids=str,
)
def test_every_notion_from_one_sample(mechanism, seed):
    pair = mechanism.pair
    profile = dp.estimate(mechanism, pair, n=200_000, rng=seed)
    a, b = pair
    for eps in (0.2, 0.6):
        exact = max(mechanism.delta(eps, (a, b)), mechanism.delta(eps, (b, a)))
        assert profile.delta(eps) == pytest.approx(exact, abs=0.01)
    assert profile.tradeoff(0.1) == pytest.approx(mechanism.tradeoff(0.1, (a, b)), abs=0.02)
    if not isinstance(mechanism, zoo.TruncatedLaplace):
        assert profile.renyi(2.0) == pytest.approx(mechanism.renyi(2.0, (a, b)), rel=0.06)
    again = dp.Profile.from_json(profile.to_json())
    assert again.delta(0.3) == profile.delta(0.3)
    profile.chart()


def test_profile_notions_agree_with_each_other(seed):
    """δ(ε) and the trade-off curve are two readings of one pair."""
    profile = dp.estimate(zoo.Gaussian(), PAIR, n=50_000, rng=seed)
    eps = np.linspace(0, 2, 9)
    from_curve = profile.tradeoff_curve.delta(eps)
    assert np.abs(from_curve - profile.delta(eps)).max() < 0.005
    assert profile.mu == pytest.approx(1.0, abs=0.05)


def test_profile_of_many_coordinates_says_it_is_that_of_a_score(seed):
    pair = (np.zeros(10), np.eye(10)[0])
    profile = dp.estimate(zoo.Gaussian(), pair, n=20_000, rng=seed)
    assert profile.mu == pytest.approx(1.0, abs=0.15)
    assert any("score" in note for note in profile.about.notes)


def test_profile_of_a_deterministic_mechanism():
    def constant(data, size, rng):
        return np.full(size, data)

    assert dp.estimate(constant, (1, 1), n=100, rng=0).epsilon == 0.0
    assert math.isinf(dp.estimate(constant, (1, 2), n=100, rng=0).epsilon)


@pytest.mark.parametrize("n", [8000, 20_000])
def test_any_classifier_gives_the_same_answer_through_either_door(n, seed):
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(20, min_samples_leaf=60, random_state=0)
    mechanism = zoo.Laplace(0.8)
    one = dp.estimate(mechanism, PAIR, n=n, loss=forest, rng=seed)
    other = dp.spectrum.estimate(mechanism, PAIR, n=n, classifier=forest, rng=seed)
    truth = mechanism.delta(0.0, PAIR)
    assert one.delta(0.0) == pytest.approx(truth, abs=0.03)
    assert one.delta(0.0) == pytest.approx(float(other(0.0)), abs=0.04)
    assert one.delta(1.0) == pytest.approx(mechanism.delta(1.0, PAIR), abs=0.03)


def test_delta_beyond_the_grid_is_that_of_the_trade_off_curve(seed):
    profile = dp.estimate(zoo.Gaussian(1.0), PAIR, n=50_000, rng=seed)
    last = profile.spectrum.x[-1]
    eps = np.linspace(0.0, last + 3.0, 50)
    delta = profile.delta(eps)
    assert np.all(np.diff(delta) <= 1e-3)
    assert profile.delta(last + 2.0) <= profile.delta(last) + 1e-3
    assert profile.delta(50.0) >= 0.0
    for wrong in (math.nan, -0.1):
        with pytest.raises(dp.errors.InvalidInput, match="epsilon must be at least 0"):
            profile.delta(wrong)
