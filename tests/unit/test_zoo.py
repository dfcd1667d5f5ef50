"""Each sampler against its own truth, each truth against something independent of it."""

import numpy as np
import pytest
from scipy import stats

import dpassay as dp
from dpassay.errors import NoClosedForm

PAIR = (0.0, 1.0)
EPS = np.linspace(0.0, 3.0, 13)
ORDERS = np.array([1.5, 2.0, 5.0, 7.0])
ALPHA = np.linspace(0.001, 0.999, 41)


def fine_masses(log_p, log_q, low=-30.0, high=31.0, cells=2_000_000):
    """An independent truth: the densities on a fine grid, as a finite pair."""
    x = np.linspace(low, high, cells + 1)
    mid = (x[1:] + x[:-1]) / 2
    p, q = np.exp(log_p(mid)), np.exp(log_q(mid))
    return dp.Masses(p / p.sum(), q / q.sum())


@pytest.mark.parametrize(
    ("mechanism", "family"),
    [(dp.zoo.Laplace(0.8), stats.laplace), (dp.zoo.Gaussian(1.3), stats.norm)],
    ids=["Laplace", "Gaussian"],
)
def test_closed_forms_agree_with_quadrature(mechanism, family):
    scale = getattr(mechanism, "scale", None) or mechanism.sigma
    grid = fine_masses(family(0, scale).logpdf, family(1, scale).logpdf)
    assert mechanism.delta(EPS, PAIR) == pytest.approx(grid.delta(EPS), abs=1e-6)
    assert mechanism.renyi(ORDERS, PAIR) == pytest.approx(grid.renyi(ORDERS), abs=1e-6)
    assert mechanism.tradeoff(ALPHA, PAIR) == pytest.approx(grid.tradeoff(ALPHA), abs=1e-6)


def test_laplace_trade_off_is_the_formula_of_the_paper():
    a = np.array([0.0, 0.1, np.exp(-1) / 2, 0.3, 0.5, 0.8, 1.0])
    want = np.where(
        a < np.exp(-1) / 2,
        1 - np.e * a,
        np.where(a <= 0.5, np.exp(-1) / 4 / np.maximum(a, 0.1), np.exp(-1) * (1 - a)),
    )
    assert dp.zoo.Laplace().tradeoff(a, PAIR) == pytest.approx(want)


def test_gaussian_delta_keeps_its_digits_in_the_tail():
    import mpmath

    gaussian = dp.zoo.Gaussian(sigma=4.0)
    for eps in (1.0606, 2.0, 3.0):
        with mpmath.workdps(60):
            e, mu = mpmath.mpf(eps), mpmath.mpf(1) / 4
            exact = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            assert gaussian.delta(eps, PAIR) == pytest.approx(float(exact), rel=1e-8)


def test_gaussian_delta_agrees_with_dp_accounting():
    from dp_accounting.pld import privacy_loss_distribution as pld

    reference = pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-4)
    for eps in (0.0, 0.5, 1.0, 2.0):
        ours = dp.zoo.Gaussian().delta(eps, PAIR)
        assert ours == pytest.approx(reference.get_delta_for_epsilon(eps), rel=1e-3)


def test_laplace_delta_agrees_with_dp_accounting():
    from dp_accounting.pld import privacy_loss_distribution as pld

    reference = pld.from_laplace_mechanism(1.0, value_discretization_interval=1e-4)
    for eps in (0.0, 0.5, 0.9):
        ours = dp.zoo.Laplace().delta(eps, PAIR)
        assert ours == pytest.approx(reference.get_delta_for_epsilon(eps), abs=2e-4)


def test_randomized_response_truth_is_the_product_measure():
    mechanism = dp.zoo.RandomizedResponse(0.9)
    pair = (np.array([0, 1, 0]), np.array([1, 1, 1]))
    keep = 1 / (1 + np.exp(-0.9))
    cube = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
    p, q = (np.prod(np.where(cube == x, keep, 1 - keep), axis=1) for x in pair)
    full = dp.Masses(p, q)
    assert mechanism.epsilon(pair) == pytest.approx(full.epsilon())
    assert mechanism.delta(EPS, pair) == pytest.approx(full.delta(EPS))
    assert mechanism.renyi(ORDERS, pair) == pytest.approx(full.renyi(ORDERS))
    assert mechanism.tradeoff(ALPHA, pair) == pytest.approx(full.tradeoff(ALPHA))


def test_noisy_max_meets_the_reference_values():
    mechanism, ones = dp.zoo.ReportNoisyMax(1.5), np.ones(6)
    loss = mechanism.masses((ones, [2, 0, 0, 0, 0, 0])).loss
    assert loss.max() == pytest.approx(0.5337, abs=5e-5)
    assert -loss.min() == pytest.approx(1.1210, abs=5e-5)
    assert mechanism.epsilon((ones, [0, 2, 2, 2, 2, 2])) == pytest.approx(1.4922, abs=5e-5)


def test_equal_inputs_are_perfectly_private():
    for mechanism in dp.zoo.members():
        same = (mechanism.pair[0], mechanism.pair[0])
        assert mechanism.epsilon(same) == pytest.approx(0.0, abs=1e-12)
        assert mechanism.delta(0.0, same) == pytest.approx(0.0, abs=1e-12)
        assert mechanism.renyi(2.0, same) == pytest.approx(0.0, abs=1e-12)
        assert mechanism.tradeoff(0.3, same) == pytest.approx(0.7, abs=1e-12)


def test_several_coordinates():
    laplace, gaussian = dp.zoo.Laplace(2.0), dp.zoo.Gaussian(2.0)
    pair = (np.zeros(3), np.array([1.0, -1.0, 0.0]))
    assert laplace.epsilon(pair) == 1.0
    assert laplace.renyi(2.0, pair) == pytest.approx(2 * laplace.renyi(2.0, PAIR))
    with pytest.raises(NoClosedForm):
        laplace.delta(0.1, pair)
    assert gaussian.mu(pair) == pytest.approx(np.sqrt(2) / 2)


# --- samplers


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (dp.zoo.Laplace(0.7), stats.laplace(1.0, 0.7)),
        (dp.zoo.Gaussian(0.7), stats.norm(1.0, 0.7)),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_continuous_samplers_follow_their_law(mechanism, law, seeds):
    draws = mechanism(1.0, 100_000, np.random.default_rng(seeds[0]))
    assert stats.kstest(draws, law.cdf).pvalue > 1e-4


def test_randomized_response_sampler_follows_its_law(seeds):
    bits = dp.zoo.RandomizedResponse(1.5)(
        np.array([0, 1]), 100_000, np.random.default_rng(seeds[0])
    )
    keep = 1 / (1 + np.exp(-1.5))
    want = 100_000 * np.outer([keep, 1 - keep], [1 - keep, keep]).ravel()
    assert stats.chisquare(np.bincount(2 * bits[:, 0] + bits[:, 1]), want).pvalue > 1e-4


def test_noisy_max_sampler_follows_its_law(seeds):
    mechanism, data = dp.zoo.ReportNoisyMax(1.5), np.array([0, 2, 2, 1, 0, 2])
    draws = mechanism(data, 100_000, np.random.default_rng(seeds[0]))
    want = 100_000 * mechanism._probabilities(data.astype(float))
    assert stats.chisquare(np.bincount(draws, minlength=6), want).pvalue > 1e-4
