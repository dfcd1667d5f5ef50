"""The outcomes that count as far from a claim as the one seen."""

import bisect

import numpy as np
import pytest

import dpassay as dp
from dpassay.bounds.joint_test import Counts
from dpassay.bounds.ordering import (
    _boundary,
    approximate_critical_values,
    contour,
    kl,
    observed_distance,
    seen_contour,
    window_of,
)


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


def region_of(window, claim):
    """g as the test evaluates it."""
    boundary = _boundary(window, claim)
    return lambda q: boundary(q)[0]


def slow_distance(c, i, j, region):
    """T² of outcomes by golden sections: the distance to the edge p = g(q) is convex in q."""
    x, y = np.asarray(i, dtype=float) / c.n, np.asarray(j, dtype=float) / c.m

    def far(q):
        p = np.minimum(np.clip(region(q), 1e-300, 1 - 1e-16), np.maximum(x, 1e-300))
        return 2 * (c.n * kl(x, p) + c.m * kl(y, q))

    low, high = np.maximum(y, 1e-12), np.maximum(x, y + 1e-12)
    share = (np.sqrt(5) - 1) / 2
    for _ in range(120):
        a, b = high - share * (high - low), low + share * (high - low)
        nearer = far(a) < far(b)
        low, high = np.where(nearer, low, a), np.where(nearer, b, high)
    return np.minimum(far(low), far(high))


def outcomes(rng, n, m, claim):
    """Counts of any size that the claim does not allow."""
    while True:
        j = int(rng.integers(0, m + 1) * rng.choice([0.05, 0.5, 1.0]))
        above = claim.region(j / m) + abs(rng.normal()) * 4 / np.sqrt(n)
        i = round(n * min(above, 1.0))
        if i / n > claim.region(j / m):
            return Counts(i, n, j, m)


CLAIMS = [
    dp.PureDP(0.3),
    dp.ApproximateDP(1.0, 1e-3),
    dp.GaussianDP(0.8),
    dp.TradeoffDP([(0, 1), (0.1, 0.5), (0.25, 0.25), (0.5, 0.1), (1, 0)]),
    dp.RenyiDP(order=3, epsilon=0.4),
    dp.ZeroConcentratedDP(0.020948870893589835),
    dp.ZeroConcentratedDP(0.3, delta=0.01),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(300, 300), (91_056, 4787), (3000, 400_000), (10**6, 10**6)])
def test_no_outcome_farther_from_the_claim_is_left_out(claim, n, m, seed):
    """Where the contour is interpolated (n = 300 and more) and counts are grouped (10⁶) too."""
    rng = np.random.default_rng([seed, n, m])
    for _ in range(12):
        c = outcomes(rng, n, m, claim)
        window = window_of(c, 5e-5)
        region = region_of(window, claim)
        j = np.unique(rng.integers(window.first_j, window.last_j + 1, 500))
        left_out = np.minimum(seen_contour(window, claim)(j) - 1, n)
        j, left_out = j[left_out >= 0], left_out[left_out >= 0]
        beyond = left_out / n > region(j / m)
        seen = slow_distance(c, c.i, c.j, region)
        assert np.all(slow_distance(c, left_out, j, region)[beyond] < seen)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_nor_by_the_ordering_of_bounds(claim, seed):
    """T falls with the parameter, and T ≥ a level that falls with j is the region of a bound."""
    rng = np.random.default_rng([seed, 3])
    for n, m in ((300, 300), (91_056, 4787), (10**6, 10**6)):
        c = outcomes(rng, n, m, claim)
        window, level = window_of(c, 5e-5), approximate_critical_values(n, m, 0.05)
        region = region_of(window, claim)
        j = np.unique(rng.integers(window.first_j, window.last_j + 1, 500))
        left_out = np.minimum(
            contour(window, claim, lambda j, level=level: level(j) ** 2)(j) - 1, n
        )
        j, left_out = j[left_out >= 0], left_out[left_out >= 0]
        beyond = left_out / n > region(j / m)
        found = slow_distance(c, left_out, j, region)[beyond]
        assert np.all(found < level(j[beyond]) ** 2 + 1e-9)
        larger = claim.at(claim.value * 1.001)
        assert np.all(region_of(window, larger)(j / m) >= region(j / m) - 1e-15)


@pytest.mark.parametrize("claim", CLAIMS[4:], ids=str)
def test_the_ordering_does_not_depend_on_the_draws(claim, seed):
    """The corners that stand for a slow region are the same, whatever was counted."""
    rng, (n, m) = np.random.default_rng([seed, 4]), (5000, 800)
    q = np.linspace(0.3, 1.0, 1001)
    found = []
    for _ in range(8):
        window = window_of(outcomes(rng, n, m, claim), 5e-5)
        inside = q >= window.first_j / m
        found.append(np.where(inside, region_of(window, claim)(q), np.nan))
    spread = np.nanmax(found, axis=0) - np.nanmin(found, axis=0)
    assert np.nanmax(spread) < 1e-13


def test_the_boundary_does_not_fall_where_the_critical_value_does():
    """The smallest i with T ≥ z(j) falls with j here; that of the region does not, and is no larger."""
    claim, n, m = dp.ApproximateDP(0.5, 0.1), 1000, 10**5
    level = approximate_critical_values(n, m, 0.05)

    def reached(i, j):
        inside = i / n <= claim.region(j / m)
        return not inside and observed_distance(window(i, n, j, m), claim) >= level(j) ** 2

    least = [
        bisect.bisect_left(range(n + 1), True, key=lambda i, j=j: reached(i, j)) for j in range(6)
    ]
    assert least == [120, 120, 119, 119, 119, 118]
    region = contour(window(118, n, 3, m), claim, lambda j: level(j) ** 2)(np.arange(6))
    assert np.all(np.diff(region) >= 0)
    assert np.all(region <= least)


def window(i, n, j, m):
    return window_of(Counts(i, n, j, m), 5e-5)
