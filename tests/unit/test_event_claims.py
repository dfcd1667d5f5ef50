"""Claims about events: pure, (ε, δ) and Gaussian, against what is known of them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import dpassay as dp

Q = np.concatenate([[0.0], np.geomspace(1e-300, 1e-3, 60), np.linspace(0.002, 1, 500)])


def test_pure_is_approximate_with_delta_zero():
    assert np.array_equal(dp.PureDP(0.7).region(Q), dp.ApproximateDP(0.7, 0.0).region(Q))


def test_gaussian_region_in_the_far_tail():
    assert dp.GaussianDP(1.0).region(1e-300) == pytest.approx(
        np.exp(norm.logcdf(1.0 + norm.ppf(1e-300))), rel=1e-9
    )


below_one = st.floats(min_value=0, max_value=1, exclude_max=True)


def test_delta_of_gaussian_dp_as_an_accountant_has_it():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    high = pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3)
    low = pld.from_gaussian_mechanism(
        1.0, value_discretization_interval=1e-3, pessimistic_estimate=False
    )
    for eps in (0.0, 0.3, 1.0, 3.0, 6.0):
        ours = dp.GaussianDP(1.0).delta_at(eps)
        assert low.get_delta_for_epsilon(eps) * (1 - 1e-6) <= ours
        assert ours <= high.get_delta_for_epsilon(eps) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 2.0, 40.0, 2000.0])
def test_pure_dp_allows_the_divergence_of_randomized_response(epsilon):
    orders = np.array([1.001, 1.5, 2.0, 10.0, 300.0])
    claim = dp.PureDP(epsilon)
    found = claim.renyi(orders)
    assert np.all((found >= 0) & (found <= epsilon))
    if 0 < epsilon < 50:
        p = 1 / (1 + math.exp(-epsilon))
        with np.errstate(over="ignore"):
            exact = dp.Masses([p, 1 / (1 + math.exp(epsilon))], [1 - p, p] if p < 1 else [0, 1])
        if epsilon in (0.3, 2.0):
            assert found == pytest.approx(exact.renyi(orders), rel=1e-9)
    if epsilon == 1e-9:
        assert found == pytest.approx(orders * epsilon**2 / 2, rel=1e-6)
    if epsilon == 2000.0:
        assert found[2] == pytest.approx(2000.0)
    assert claim.renyi(np.inf) == epsilon
    assert dp.ApproximateDP(epsilon, 0.0).renyi(2.0) == claim.renyi(2.0)
    assert dp.ApproximateDP(epsilon, 1e-9).renyi(2.0) == np.inf


def test_no_pair_under_pure_dp_has_a_larger_divergence(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        pair = dp.Masses(*rng.dirichlet(np.ones(5), 2))
        epsilon = max(pair.epsilon(), pair.swap().epsilon())
        for order in (1.2, 2.0, 7.0):
            assert pair.renyi(order) <= dp.PureDP(epsilon).renyi(order) + 1e-12


def test_a_bound_can_be_on_delta():
    claim = dp.ApproximateDP(0.5, 0.01, headline="delta")
    assert (claim.parameter, claim.symbol, claim.value) == ("delta", "δ", 0.01)
    assert claim.at(0.2) == dp.ApproximateDP(0.5, 0.2, headline="delta")
    assert claim.largest == 1 - 1e-12
    assert np.array_equal(claim.region(Q), dp.ApproximateDP(0.5, 0.01).region(Q))
    assert claim != dp.ApproximateDP(0.5, 0.01)
    claim.at(claim.largest)  # is allowed


@given(below_one, below_one, st.floats(0, 5))
@settings(max_examples=200, deadline=None)
def test_needed_delta_is_the_least_that_allows(p, q, epsilon):
    claim = dp.ApproximateDP(epsilon, 0.0, headline="delta")
    needed = claim.needed(p, q)
    assume(needed < 1 - 1e-9)
    assert claim.at(needed).region(q) >= p - 1e-9
    if needed > 1e-6:
        assert claim.at(needed * (1 - 1e-6)).region(q) < p


def test_no_gaussian_region_is_rounded_below_its_argument():
    q = np.random.default_rng(0).random(20_000)
    for mu in (0.0, 1e-17, 1e-12, 1e-3):
        assert np.all(dp.GaussianDP(mu).region(q) >= q)
