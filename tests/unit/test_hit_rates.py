"""Which threshold event the hit rates of held-back draws predict to be best."""

import numpy as np
import pytest
from scipy.stats import norm

import dpassay as dp
from dpassay.learning.hit_rates import HitRates

GAMMA, TEST = 0.05, (15_000, 15_000)


def predicted(claim, ratio):
    """Numbers of σ 1 against `ratio`, scored by their exact loss; quantiles in place of draws."""
    at = norm.ppf((np.arange(5000) + 0.5) / 5000)
    loss = [np.log(ratio) - x**2 / 2 * (1 - 1 / ratio**2) for x in (at, ratio * at)]
    return HitRates.of(tuple(loss), False, TEST).predict(claim, GAMMA, 0.5)


@pytest.mark.parametrize("ratio", [1.18, 1.2, 1.3])
def test_of_events_that_are_certain_to_refute_the_one_with_the_largest_bound_is_taken(ratio):
    found = predicted(dp.PureDP(0.3), ratio)
    own = found.statistic(0.3)
    certain = np.flatnonzero(own >= found.certain)
    best = max(found.reach(int(index)) for index in certain)  # one by one
    assert found.event.z >= found.certain
    assert found.event.bound == pytest.approx(best, rel=2e-3)
    assert found.rank == (2, found.event.bound)
    assert found.largest.z < found.certain  # the event with the largest bound of all is not certain
    assert found.strongest.bound < found.event.bound < found.largest.bound


def test_where_no_event_is_certain_to_refute_the_strongest_is_taken():
    found = predicted(dp.PureDP(0.3), 1.13)
    assert 1.0 < found.z < found.certain
    assert found.event == found.strongest
