"""Verdicts from counts: never at odds with their p-value, silent where there is nothing."""

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.counts import audit_counts


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
