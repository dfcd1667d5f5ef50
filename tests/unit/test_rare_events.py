"""A further look finds rare events that the first one cannot, and costs no validity."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

import dpassay as dp
from dpassay.learning.streaming import draws_for_rare_events
from dpassay.sampling.budget import Budget

PAIR = (0.0, 1.0)
#: A hundred and fifty times as many draws test as learn.
MANY = {"n": 300_000, "train": 0.005, "loss": "values"}


def gaussian(delta, sigma=1.0):
    """The mechanism, and the ε at which its δ is this."""
    mechanism = dp.zoo.Gaussian(sigma)
    return mechanism, float(brentq(lambda eps: mechanism.delta(eps, PAIR) - delta, 0.0, 9.0))


@pytest.mark.parametrize(
    ("learn", "test", "looked"),
    [(50_000, 3_199_999, 0), (50_000, 3_200_000, 200_000), (1000, 1000, 0), (100, 10**6, 62_500)],
)
def test_only_where_far_more_draws_test(learn, test, looked):
    assert draws_for_rare_events(Budget((learn, learn), (test, test))) == (looked, looked)


def test_few_draws_on_one_side_are_no_further_look():
    assert draws_for_rare_events(Budget((1000, 1000), (10**6, 10_000))) == (0, 0)


def test_the_draws_add_up(seed):
    mechanism, eps = gaussian(1e-2)
    verdict = dp.audit(mechanism, PAIR, dp.ApproximateDP(eps, 5e-3), rng=seed, **MANY)
    assert verdict.about.n == (300_000, 300_000)
    assert "polynomial on more draws" in verdict.about.method
    assert verdict.witness.n_p == 300_000 - 1500 - (300_000 - 1500) // 16


def test_densities_where_no_quadratic_fits(seed):
    verdict = dp.audit(dp.zoo.Laplace(1.0), PAIR, "eps=0.99", rng=seed, **MANY)
    assert "polynomial" not in verdict.about.method


def test_a_claim_that_is_sure_to_be_refuted_needs_none(seed):
    verdict = dp.audit(dp.zoo.Laplace(1.0), PAIR, "eps=0.3", rng=seed, **MANY)
    assert verdict.violated
    assert "more draws" not in verdict.about.method
    assert verdict.witness.n_p == 300_000 - 1500


@pytest.mark.parametrize(
    ("mechanism", "pair", "claim"),
    [
        (dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1"),
        (dp.zoo.Gaussian(1.0), (np.zeros(4), np.full(4, 0.5)), "mu=1"),
        (dp.zoo.Gaussian(1.0), PAIR, "rho=0.5"),
    ],
)
def test_not_of_few_kinds_of_vectors_or_of_divergences(mechanism, pair, claim, seed):
    verdict = dp.audit(mechanism, pair, claim, rng=seed, **MANY)
    assert "more draws" not in verdict.about.method
    assert verdict.about.n == (300_000, 300_000)


def test_rare_events_are_found(seeds):
    mechanism, eps = gaussian(3e-3)
    claim = dp.ApproximateDP(eps, 5e-4)  # an oracle's z is 4.1; without the look .8 are found
    caught = sum(dp.audit(mechanism, PAIR, claim, rng=s, **MANY).violated for s in seeds[:30])
    assert caught >= 27


def test_true_claims_are_refuted_no_more_often_than_said(seeds):
    mechanism, eps = gaussian(1e-3)
    claim = dp.ApproximateDP(eps, 1e-3)
    wrong = sum(dp.audit(mechanism, PAIR, claim, rng=s, **MANY).violated for s in seeds[:30])
    assert wrong <= binom.ppf(0.999, 30, 0.05)


def test_bounds_look_further_too(seed):
    mechanism, eps = gaussian(1e-3)
    bound = dp.bound(mechanism, PAIR, "eps, delta=1e-3", rng=seed, **MANY)
    assert "more draws" in bound.about.method
    assert 0.85 * eps < bound.value <= eps
