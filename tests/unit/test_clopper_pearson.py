"""Limits of one binomial probability."""

import pytest
from scipy.stats import binom

from dpassay.bounds import clopper_pearson


@pytest.mark.parametrize(("k", "n"), [(1000, 10**9), (1000, 4 * 10**9), (999, 30_359_384_466)])
def test_limits_of_rare_counts_are_where_their_tails_are_gamma(k, n):
    """SciPy's inverse of the incomplete beta function fails here: its lower limit is above k/n."""
    for gamma in (0.05, 1e-5, 1e-9):
        low, high = clopper_pearson.lower(k, n, gamma), clopper_pearson.upper(k, n, gamma)
        assert low < k / n < high
        assert binom.sf(k - 1, n, low) == pytest.approx(gamma, rel=2e-3)
        assert binom.cdf(k, n, high) == pytest.approx(gamma, rel=2e-3)


def test_clopper_pearson_limits_are_the_binomial_quantiles():
    for k, n in ((0, 10), (3, 10), (10, 10), (500, 10**6)):
        low, high = clopper_pearson.lower(k, n, 0.03), clopper_pearson.upper(k, n, 0.03)
        assert (low == 0.0) if k == 0 else binom.sf(k - 1, n, low) == pytest.approx(0.03)
        assert (high == 1.0) if k == n else binom.cdf(k, n, high) == pytest.approx(0.03)
