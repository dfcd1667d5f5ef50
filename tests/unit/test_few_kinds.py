"""Which events among few kinds are tested, and with what share of the error probability."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.learning.event_selection import EventCriterion, split_error


def scores_of(p, q):
    """Scores of so many draws of each kind, the kinds ordered by their frequencies."""
    p, q = np.array(p), np.array(q)
    values = np.log((p + 0.5) / (q + 0.5))
    return np.repeat(values, p), np.repeat(values, q)


def divided(p, q, claim, test=15_000):
    scores = scores_of(p, q)
    rates = EventCriterion(claim, (test, test), 0.05).rates(scores)
    return rates, split_error(scores, rates, claim, 0.05, np.random.default_rng(0))


@pytest.mark.parametrize("claim", [dp.PureDP(0.5), dp.ApproximateDP(0.5, 1e-3), dp.GaussianDP(0.4)])
def test_shares_make_up_the_error_probability(claim):
    rates, shares = divided([3000, 1500, 493, 7], [2500, 1700, 770, 30], claim)
    assert sum(share for _, share, _ in shares) == pytest.approx(1.0)
    assert all(0 <= k < rates.high.size for k, _, _ in shares)


def test_a_coin_has_one_event():
    _, shares = divided([3650, 1350], [1350, 3650], dp.PureDP(0.5))
    assert len(shares) == 1
    assert shares[0][2] == pytest.approx(0.95, abs=0.05)


def test_a_rare_kind_that_tells_more_gets_the_larger_share():
    rates, shares = divided([3000, 1500, 490, 10], [2500, 1700, 720, 80], dp.PureDP(0.5))
    k, share, bound = max(shares, key=lambda one: one[1])
    assert rates.cut(k, rates.high, bound).share == pytest.approx(90 / 10_000, rel=0.01)
    assert share >= 0.75
    assert bound > 1.2


def test_a_cut_is_found_again_by_its_number():
    rates, _ = divided([3000, 1500, 490, 10], [2500, 1700, 720, 80], dp.PureDP(0.5))
    for k in range(rates.high.size):
        assert rates.index(rates.cut(k, rates.high, 0.0)) == k


def test_the_simulated_bound_is_near_the_exact_one():
    """The mean over simulated tests, beside the exact bound at the expected counts."""
    from dpassay.bounds.joint_test import lower_bound
    from dpassay.bounds.ordering import Counts

    _, ((_, _, bound),) = divided([365_000, 135_000], [135_000, 365_000], dp.PureDP(0.5))
    exact = lower_bound(Counts(10_950, 15_000, 4_050, 15_000), dp.PureDP(0.5), 0.05)
    assert bound == pytest.approx(exact, abs=0.01)
