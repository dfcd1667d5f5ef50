import numpy as np
import pytest
from scipy.stats import binom

from dpassay.bounds.betting import lower_mean

LAWS = {
    "uniform": (lambda rng, n: rng.random(n), 0.5, 0.3),
    "rare": (lambda rng, n: (rng.random(n) < 0.01).astype(float), 0.01, 0.1),
    "beta": (lambda rng, n: rng.beta(0.5, 5, n), 0.5 / 5.5, 0.11),
    "heavy": (lambda rng, n: np.minimum(rng.pareto(1.5, n) / 50, 1.0), None, 0.1),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("known_spread", [False, True])
def test_bound_exceeds_the_mean_no_more_often_than_gamma(law, known_spread, seeds):
    draw, mean, spread = LAWS[law]
    if mean is None:
        mean = float(draw(np.random.default_rng(1), 10**7).mean())
    failures = sum(
        lower_mean(
            draw(np.random.default_rng(s), 200),
            low=0.0,
            high=1.0,
            gamma=0.05,
            spread=spread if known_spread else None,
        )
        > mean
        for s in seeds[:400]
    )
    assert failures <= binom.ppf(1 - 0.01 / 24, 400, 0.05)


def test_bound_adapts_to_a_small_variance(seed):
    values = np.random.default_rng(seed).beta(1, 99, size=20_000)
    clt = values.mean() - 1.6449 * values.std() / np.sqrt(20_000)
    bound = lower_mean(values, low=0.0, high=1.0, gamma=0.05)
    margin = values.mean() - bound
    assert bound < values.mean()
    assert margin < 1.7 * (values.mean() - clt)
    assert margin < 0.1 * np.sqrt(np.log(20) / 2 / 20_000)  # Hoeffding


def test_bound_moves_with_the_values():
    values = np.random.default_rng(0).random(500)
    one = lower_mean(values, low=0.0, high=1.0, gamma=0.05)
    other = lower_mean(3 * values - 2, low=-2.0, high=1.0, gamma=0.05)
    assert other == pytest.approx(3 * one - 2, abs=1e-5)


@pytest.mark.parametrize("values", [[], [0.0] * 50, [1.0] * 50])
def test_degenerate_samples(values):
    bound = lower_mean(np.array(values), low=0.0, high=1.0, gamma=0.05)
    assert 0.0 <= bound < 1.0
