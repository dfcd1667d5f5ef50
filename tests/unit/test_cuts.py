"""The cut of a ranking that promises most."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.learning.cuts import EventCriterion


def test_best_cut_finds_the_event_of_an_exact_sample():
    """Deterministic quantiles of Laplace: against ε = ½ the best event is below 0, or above 1."""
    from scipy.stats import laplace

    u = (np.arange(4001) + 0.5) / 4001
    p, q = laplace.ppf(u), 1 + laplace.ppf(u)
    power = EventCriterion(dp.PureDP(0.5), (4000, 4000), 0.05)
    cut = power.judge((p, q), tails=True).strongest
    expected = 1.0 if cut.second else 0.0
    assert cut.at == pytest.approx(expected, abs=0.6)
    assert cut.above == cut.second
    assert cut.z > 5


def test_a_promise_is_made_of_counts_alone():
    """Scores may be anything that orders the draws: a monotone change moves the cut and nothing else."""
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=500), rng.normal(1, 1, size=500)
    look = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p, q))
    other = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p**3, q**3))
    assert (look.rank, look.cut.share) == (other.rank, other.cut.share)
    assert other.cut.at == pytest.approx(look.cut.at**3)
