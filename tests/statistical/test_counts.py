"""Verdicts from counts: never at odds with their p-value, silent where there is nothing."""

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.auditing.counts import audit_counts


def test_a_verdict_and_its_p_value_never_contradict(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(20, 400))
        i, j = rng.binomial(n, [0.5, 0.25])
        for claim in (dp.PureDP(0.3), dp.GaussianDP(0.3)):
            verdict = audit_counts(int(i), n, int(j), n, claim)
            assert verdict.violated == (verdict.p_value <= 0.05) == (verdict.lower_bound > 0.3)


@pytest.mark.parametrize(
    "claim", [dp.PureDP(1), dp.GaussianDP(1), dp.ApproximateDP(0, 0.01)], ids=str
)
def test_audits_of_identical_distributions_stay_silent(claim, seeds):
    rng = np.random.default_rng(seeds[0])
    positive = 0
    for _ in range(150):
        n = int(rng.integers(5, 40))
        i, j = rng.binomial(n, rng.random(), size=2)
        verdict = audit_counts(int(i), n, int(j), n, claim)
        positive += verdict.lower_bound > 0
    assert positive <= binom.ppf(1 - 0.01 / 9, 150, 0.05)


def test_the_gap_of_a_curve_and_the_epsilon_beside_it_hold_at_once():
    """Every outcome of 10 and 10 draws, by its exact probability: either bound fails in γ at most."""
    n, gamma = 10, 0.2
    curve, point = dp.TradeoffDP(dp.GaussianDP(0.5).tradeoff), dp.ApproximateDP(0.0, 1e-5)
    found = [
        audit_counts(i, n, j, n, curve, confidence=1 - gamma, likelier="first")
        for i in range(n + 1)
        for j in range(n + 1)
    ]
    gap = np.array([v.lower_bound for v in found]).reshape(n + 1, n + 1)
    epsilon = np.array([v.second.lower for v in found]).reshape(n + 1, n + 1)
    assert epsilon.max() > 1.0
    failing, hits = 0.0, np.arange(n + 1)
    for q in np.linspace(0.02, 0.95, 25):
        for p in np.linspace(q, 0.99, 25):
            chance = np.outer(binom.pmf(hits, n, p), binom.pmf(hits, n, q))
            wrong = (gap > curve.needed(p, q) + 1e-9) | (epsilon > point.needed(p, q) + 1e-9)
            failing = max(failing, float(chance[wrong].sum()))
    assert 0.1 < failing <= gamma
