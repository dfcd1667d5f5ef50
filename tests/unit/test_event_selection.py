"""The cut of a ranking that promises most."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.learning.event_selection import _MARGIN_BOUND, _MARGIN_Z, EventCriterion


def test_best_cut_finds_the_event_of_an_exact_sample():
    """Deterministic quantiles of Laplace: against ε = ½ the best event is below 0, or above 1."""
    from scipy.stats import laplace

    u = (np.arange(4001) + 0.5) / 4001
    p, q = laplace.ppf(u), 1 + laplace.ppf(u)
    power = EventCriterion(dp.PureDP(0.5), (4000, 4000), 0.05)
    cut = power.judge((p, q), tails=True).strongest
    expected = 1.0 if cut.swapped else 0.0
    assert cut.threshold == pytest.approx(expected, abs=0.6)
    assert cut.above == cut.swapped
    assert cut.z > 5


def test_a_promise_is_made_of_counts_alone():
    """Scores may be anything that orders the draws: a monotone change moves the cut and nothing else."""
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=500), rng.normal(1, 1, size=500)
    look = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p, q))
    other = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p**3, q**3))
    assert (look.rank, look.event.share) == (other.rank, other.event.share)
    assert other.event.threshold == pytest.approx(look.event.threshold**3)


def eager(new, best):
    """The rule by the ranks of both, with every bound searched for."""
    (kind, value), (other, level) = new.rank, best.rank
    if kind != other:
        return kind > other
    return value > level + (_MARGIN_Z * new.rates.noise if kind == 1 else _MARGIN_BOUND * level)


@pytest.mark.parametrize("largest", [False, True])
def test_rankings_compare_as_if_every_bound_were_searched_for(largest, seed):
    rng = np.random.default_rng(seed)
    kinds, outcomes = set(), set()
    for n in (60, 300, 2000):
        for claim in (dp.PureDP(0.3), dp.GaussianDP(1.0), dp.ApproximateDP(2.0, 1e-3)):
            power = EventCriterion(claim, (3 * n, 3 * n), 0.05, largest=largest)
            shifts = rng.uniform(0, 1.6, 6)
            scores = [(rng.normal(size=n) + shift, rng.normal(size=n)) for shift in shifts]
            promised = [power.judge(one) for one in scores]
            for new in promised:
                for best in promised:
                    assert power.beats(new, best) == eager(new, best)
                    kinds.add(new.rank[0])
                    outcomes.add(eager(new, best))
    assert outcomes == {True, False}
    assert kinds == ({2} if largest else {0, 1, 2})


def events(claim, seeds):
    """How many events each of some audits of discrete Laplace noise with ε = 1 tests."""
    mechanism = dp.zoo.DiscreteLaplace(1.0)
    audits = [dp.audit(mechanism, mechanism.pair, claim, n=4000, rng=seed) for seed in seeds]
    return np.array([len(verdict.budget) for verdict in audits])


def test_an_event_that_may_refute_the_claim_keeps_the_error_probability(seeds):
    """Sharing it with rare events, which promise larger bounds by chance, cost a tenth of the power."""
    near, below = (events(dp.PureDP(value), seeds[:40]) for value in (0.9, 0.3))
    assert np.mean(near > 1) < 0.15  # 0.07 of audits; 0.29 if the larger bound decides
    assert np.mean(below > 1) > 0.15  # the claim is refuted for sure, and a larger bound is welcome
