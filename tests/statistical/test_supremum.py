"""The largest probability along the boundary of a claim."""

import numpy as np
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds.joint import Counts
from dpassay.bounds.ordering import observed_distance, seen_contour, window_of
from dpassay.bounds.supremum import Lattice, supremum


def test_a_curve_with_many_kinks_has_the_p_value_of_a_direct_sum():
    """Nearly equal slopes: where two lines meet must not be taken from their difference alone."""
    a = np.sort(np.random.default_rng(7).random(60) ** 2)
    points = [(0.0, 1.0), *((t, (1 - t**0.6) ** (1 / 0.6)) for t in a), (1.0, 0.0)]
    c, claim = Counts(351, 500, 145, 500), dp.TradeoffDP(points).at(0.01)
    window = window_of(c, 5e-5)
    assert observed_distance(window, claim) > 0
    least = seen_contour(window, claim)
    q = np.linspace(window.q_low, window.q_high, 4001)
    p = claim.region(q)
    q, p = (
        q[(p >= window.p_low) & (p <= window.p_high)],
        p[(p >= window.p_low) & (p <= window.p_high)],
    )
    j = np.arange(window.first_j, window.last_j + 1)
    direct = np.sum(binom.pmf(j, c.m, q[:, None]) * binom.sf(least - 1, c.n, p[:, None]), axis=1)
    assert direct.max() <= supremum(Lattice(window, least), claim) <= 1.02 * direct.max()
