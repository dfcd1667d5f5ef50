"""The outcomes that count as far from a claim as the one seen."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.bounds.joint import Counts
from dpassay.bounds.ordering import seen_contour, window_of


@pytest.mark.parametrize(
    "claim", [dp.PureDP(0.0), dp.PureDP(0.7), dp.GaussianDP(0.5), dp.ApproximateDP(0.5, 0.05)]
)
def test_outcomes_with_the_same_distance_are_in_the_region(claim):
    """With n = m the mirrored outcome (n − j, n − i) has the same T, to the last digit or not."""
    n, looked_at = 24, 0
    for i in range(n + 1):
        for j in range(n + 1):
            if i / n > claim.region(j / n):
                window = window_of(Counts(i, n, j, n), 5e-5)
                if window.first_j <= n - i <= window.last_j:
                    looked_at += 1
                    assert seen_contour(window, claim)(np.array([n - i]))[0] <= n - j
    assert looked_at > 50


def test_the_contour_leaves_out_nothing_where_it_passes_the_last_count():
    c, claim = Counts(458, 459, 2766, 3000), dp.GaussianDP(0.724345)
    window = window_of(c, 5e-5)
    assert np.all(seen_contour(window, claim)(np.array([2841, 2842])) <= 459)
