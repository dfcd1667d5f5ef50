"""The exact joint test: against a slow oracle, by full enumeration, and in its corners."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds import clopper_pearson
from dpassay.bounds.joint_test import (
    Counts,
    evidence,
    evidence_of,
    lower_bound,
    p_value,
)
from dpassay.bounds.ordering import seen_contour, window_of

CLAIMS = [
    dp.PureDP(0.0),
    dp.PureDP(0.7),
    dp.PureDP(3.0),
    dp.ApproximateDP(0.5, 0.05),
    dp.GaussianDP(0.7),
    dp.RenyiDP(3, 0.3),
    dp.ZeroConcentratedDP(0.2),
    dp.TradeoffDP([(0.0, 0.9), (0.2, 0.5), (1.0, 0.0)]),
    dp.TradeoffDP([(0.0, 0.9), (0.2, 0.5), (1.0, 0.0)], ordered=True),  # g(0) > 0
    dp.ZeroConcentratedDP(0.2).at_order(4.0),
]
BOUNDARY = np.concatenate(
    [np.geomspace(1e-5, 0.02, 120), np.linspace(0.02, 0.98, 700), 1 - np.geomspace(1e-5, 0.02, 120)]
)


@cache
def table(n, m, claim, gamma):
    """The p-value of every outcome."""
    return np.array(
        [
            [p_value(Counts(i, n, j, m), claim, gamma=gamma) for j in range(m + 1)]
            for i in range(n + 1)
        ]
    )


def size(n, m, claim, rejected, q=BOUNDARY):
    """The probability of rejection along the boundary of the claim."""
    p = claim.region(q)
    on_p = binom.pmf(np.arange(n + 1)[None, :], n, p[:, None])
    on_q = binom.pmf(np.arange(m + 1)[None, :], m, q[:, None])
    return np.einsum("ki,ij,kj->k", on_p, rejected.astype(float), on_q)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(5, 5), (7, 11), (16, 16)])
def test_size_never_exceeds_gamma(n, m, claim):
    if not claim.quick:
        n, m = min(n, 8), min(m, 8)  # the rest of them in the slow runs
    for gamma in (0.05, 0.01):
        rejected = table(n, m, claim, gamma) <= gamma
        assert size(n, m, claim, rejected).max() <= gamma


@pytest.mark.parametrize("claim", CLAIMS[:5], ids=str)
def test_size_at_one_in_a_million(claim):
    rejected = table(20, 20, claim, 1e-6) <= 1e-6
    assert rejected.any() or claim == dp.PureDP(3.0)  # twenty draws cannot refute ε = 3 so surely
    assert size(20, 20, claim, rejected).max() <= 1e-6


@pytest.mark.parametrize("claim", [CLAIMS[k] for k in (1, 3, 4, 8)], ids=str)
@pytest.mark.parametrize("by_bound", [False, True])
def test_size_inside_of_the_claim_too(claim, by_bound):
    """Where regions need not be monotone the boundary alone would not do."""
    n, m, gamma = 9, 8, 0.05
    rejected = table(n, m, claim, gamma) <= gamma
    if by_bound:  # the p-value that audits report
        found = [
            [evidence(Counts(i, n, j, m), claim, gamma).p_value for j in range(m + 1)]
            for i in range(n + 1)
        ]
        rejected = np.array(found) <= gamma
    assert rejected.any()
    q = np.linspace(0.0, 1.0, 201)
    p = np.linspace(0.0, 1.0, 81)[:, None] * claim.region(q)
    on_p = binom.pmf(np.arange(n + 1), n, p[..., None])
    on_q = binom.pmf(np.arange(m + 1), m, q[:, None])
    sizes = np.einsum("lki,ij,kj->lk", on_p, rejected.astype(float), on_q)
    assert sizes.max() <= gamma


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(60, 60), (60, 37), (30, 60)])
def test_size_never_exceeds_gamma_up_to_sixty(n, m, claim):
    for gamma in (0.05, 0.01):
        rejected = table(n, m, claim, gamma) <= gamma
        assert size(n, m, claim, rejected).max() <= gamma


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS[1:8], ids=str)
@pytest.mark.parametrize(("n", "m"), [(200, 200), (500, 160)])
def test_size_where_the_contour_is_interpolated(n, m, claim):
    """More counts than the contour is solved for. Where the test begins to reject, by halving."""
    rejected = np.zeros((n + 1, m + 1), dtype=bool)
    for j in range(m + 1):
        low, high = -1, n + 1
        while high - low > 1:
            middle = (low + high) // 2
            enough = p_value(Counts(middle, n, j, m), claim) <= 0.05
            low, high = (low, middle) if enough else (middle, high)
        near = list(range(max(high - 4, 0), min(high + 2, n) + 1))
        rejected[near, j] = [p_value(Counts(i, n, j, m), claim) <= 0.05 for i in near]
        rejected[min(high + 2, n + 1) :, j] = True
    assert size(n, m, claim, rejected).max() <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("n", [20, 40])
def test_size_at_one_in_a_million_for_every_claim(n, claim):
    rejected = table(n, n, claim, 1e-6) <= 1e-6
    assert size(n, n, claim, rejected).max() <= 1e-6


@pytest.mark.parametrize("claim", [dp.PureDP(0.7), dp.GaussianDP(0.7)], ids=str)
def test_size_comes_close_to_gamma(claim):
    """A test that never rejects is valid too: this one spends most of its allowance."""
    rejected = table(16, 16, claim, 0.05) <= 0.05
    assert size(16, 16, claim, rejected).max() > 0.03


# --- p-values, against brute force


def slow_distance(n, m, claim):
    """T² of every outcome by brute force over the boundary."""
    fine = np.geomspace(1e-9, 1e-3, 2000)
    q = np.concatenate([fine, np.linspace(1e-3, 1 - 1e-3, 20_001), 1 - fine[::-1]])
    g = np.clip(claim.region(q), 1e-300, 1 - 1e-16)

    def kl(x, p):
        left = x * np.log(x / p) if x > 0 else 0.0
        right = (1 - x) * np.log((1 - x) / (1 - p)) if x < 1 else 0.0
        return left + right

    on_p = [n * kl(i / n, g) for i in range(n + 1)]
    on_q = [m * kl(j / m, q) for j in range(m + 1)]
    distance = np.zeros((n + 1, m + 1))
    for i in range(n + 1):
        for j in range(m + 1):
            if i / n > claim.region(j / m):
                distance[i, j] = 2 * np.min(on_p[i] + on_q[j])
    return distance


def slow_p_value(i, n, j, m, claim, spent, distance):
    side = spent / 4
    q = np.linspace(clopper_pearson.lower(j, m, side), clopper_pearson.upper(j, m, side), 2001)
    keep = claim.region(q) >= clopper_pearson.lower(i, n, side)
    if not keep.any():
        return spent
    q = q[keep]
    p = np.minimum(claim.region(q), clopper_pearson.upper(i, n, side))
    on_p = binom.pmf(np.arange(n + 1)[None, :], n, p[:, None])
    on_q = binom.pmf(np.arange(m + 1)[None, :], m, q[:, None])
    as_far = (distance >= distance[i, j] * (1 - 1e-5)).astype(float)
    return spent + np.einsum("ki,ij,kj->k", on_p, as_far, on_q).max()


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_p_value_agrees_with_brute_force(claim, seed):
    rng = np.random.default_rng(seed)
    n, m = 23, 17
    distance = slow_distance(n, m, claim)
    for _ in range(12):
        i, j = int(rng.integers(n + 1)), int(rng.integers(m + 1))
        if i / n <= claim.region(j / m):
            assert p_value(Counts(i, n, j, m), claim) == 1.0
            continue
        slow = slow_p_value(i, n, j, m, claim, 5e-5, distance)
        assert slow * (1 - 1e-4) <= p_value(Counts(i, n, j, m), claim) <= slow * 1.01


def test_p_value_at_a_thousand_agrees_with_a_direct_sum():
    """Windows, interpolation and tangents against the whole lattice, at a size where they act."""
    c, claim = Counts(450, 1000, 240, 1000), dp.GaussianDP(0.5)
    got = p_value(c, claim)
    window = window_of(c, 5e-5)
    j = np.arange(window.first_j, window.last_j + 1)
    least = seen_contour(window, claim)(j)
    q = np.linspace(window.q_low, window.q_high, 4001)
    p = claim.region(q)
    keep = (p >= window.p_low) & (p <= window.p_high)
    tail = binom.sf(least[None, :] - 1, c.n, p[keep, None])
    direct = np.sum(binom.pmf(j[None, :], c.m, q[keep, None]) * tail, axis=1).max()
    assert direct <= got - 5e-5 <= direct * 1.005


# --- bounds


@pytest.mark.parametrize(
    "claims", [dp.PureDP(1), dp.ApproximateDP(0.3, 0.0, "delta"), dp.GaussianDP(1)]
)
@pytest.mark.parametrize("theta", [0.05, 0.4, 0.8])
def test_bound_exceeds_the_truth_with_probability_at_most_gamma(claims, theta):
    n, m, gamma = 9, 12, 0.05
    bounds = np.array(
        [
            [lower_bound(Counts(i, n, j, m), claims, gamma) for j in range(m + 1)]
            for i in range(n + 1)
        ]
    )
    assert size(n, m, claims.at(theta), bounds > theta).max() <= gamma


@pytest.mark.parametrize(
    "claims",
    [
        dp.PureDP(1),
        dp.ApproximateDP(1, 0.1),
        dp.GaussianDP(1),
        dp.TradeoffDP([(0.0, 0.9), (0.2, 0.5), (1.0, 0.0)]),
        dp.TradeoffDP([(0.0, 0.9), (0.2, 0.5), (1.0, 0.0)], ordered=True),
    ],
)
@pytest.mark.parametrize(("n", "m"), [(12, 5), (6, 14), (40, 23)])
def test_bounds_cover_on_sides_of_different_size(claims, n, m):
    """Where the claims have kinks and the sides differ, the orderings turn most with θ."""
    bounds = np.array(
        [
            [lower_bound(Counts(i, n, j, m), claims, 0.05) for j in range(m + 1)]
            for i in range(n + 1)
        ]
    )
    for theta in (0.02, 0.1, 0.3, 0.6, 0.9):
        assert size(n, m, claims.at(theta), bounds > theta).max() <= 0.05


@pytest.mark.parametrize(
    "claims",
    [
        dp.RenyiDP(3, 0.3),
        dp.RenyiCurveDP([1.5, 4.0], [0.2, 0.6]),
        dp.ZeroConcentratedDP(0.2, delta=0.1),
        dp.ApproximateDP(0.3, 0.2, "delta"),
    ],
    ids=str,
)
def test_bounds_of_divergences_and_of_delta_cover(claims):
    """Orderings by chords of the region, and probability that anything may happen with."""
    n, m = 8, 6
    bounds = np.array(
        [
            [lower_bound(Counts(i, n, j, m), claims, 0.05) for j in range(m + 1)]
            for i in range(n + 1)
        ]
    )
    for theta in (0.0, 0.05, 0.2, 0.5):
        assert (bounds > theta).any()
        assert size(n, m, claims.at(theta), bounds > theta).max() <= 0.05


@pytest.mark.parametrize(
    "claims", [dp.PureDP(1), dp.ApproximateDP(0.3, 0.0, "delta"), dp.GaussianDP(1)]
)
def test_bound_is_that_of_a_slow_search(claims, seed):
    """θ* of every outcome by brute force, the outcomes with a larger one, and where they pass γ."""
    n, m, gamma, side = 12, 9, 0.05, 0.05e-3 / 4
    level = 1.6449 + 0.8 / np.sqrt(m) + 1.5 / (np.arange(m + 1) + 4)
    steps = np.linspace(0.0, 0.99, 100) if claims.largest <= 1 else np.linspace(0.0, 3.0, 151)
    distances = np.sqrt([slow_distance(n, m, claims.at(theta)) for theta in steps])
    beyond = (distances >= level).sum(axis=0)  # θ* to a step; T falls with θ
    assert np.all(np.diff(distances, axis=0) <= 1e-6)
    rng = np.random.default_rng(seed)
    looked_at = 0
    for i, j in zip(rng.integers(7, n + 1, 8), rng.integers(0, 3, 8), strict=True):
        if not 1 <= beyond[i, j] < steps.size:
            continue
        looked_at += 1
        low, high = (beyond >= beyond[i, j] + shift for shift in (-1, 1))  # one step either way
        q = np.linspace(clopper_pearson.lower(j, m, side), clopper_pearson.upper(j, m, side), 1501)

        def largest(theta, outcomes, q=q, i=i):
            p = np.minimum(claims.at(theta).region(q), clopper_pearson.upper(i, n, side))
            keep = p >= clopper_pearson.lower(i, n, side)
            on_p = binom.pmf(np.arange(n + 1), n, p[keep, None])
            on_q = binom.pmf(np.arange(m + 1), m, q[keep, None])
            sums = np.einsum("ki,ij,kj->k", on_p, outcomes.astype(float), on_q)
            return 0.05e-3 + sums.max(initial=0.0)

        bound = lower_bound(Counts(int(i), n, int(j), m), claims, gamma)
        if bound > 0:
            assert largest(bound, high) <= gamma
        above = min(bound + 0.02, claims.largest)
        assert largest(above, low) > gamma or above == claims.largest
    assert looked_at >= 3


def test_a_bound_refutes_as_often_as_the_test():
    """One ordering for all parameters costs no power, by exact sums over all outcomes.

    Counts are few, so that single cases differ by an outcome or two either way.
    """

    def power_of(refutes, n, p, q):
        total = 0.0
        for j in range(n + 1):
            low, high = -1, n + 1  # does not suffice, suffices
            chance = binom.pmf(j, n, q)
            while high - low > 1 and chance > 1e-5:
                middle = (low + high) // 2
                enough = refutes(Counts(middle, n, j, n))
                low, high = (low, middle) if enough else (middle, high)
            total += chance * binom.sf(high - 1, n, p)
        return total

    gains = []
    for n, p, q, claim in (
        (75, 0.5, 0.068, dp.PureDP(1.0)),
        (75, 0.69, 0.31, dp.GaussianDP(0.5)),
        (200, 0.05, 0.01, dp.PureDP(0.5)),
        (120, 0.15, 0.02, dp.PureDP(1.2)),
    ):
        by_bound = power_of(lambda c, at=claim: lower_bound(c, at, 0.05) > at.value, n, p, q)
        gains.append(by_bound - power_of(lambda c, at=claim: p_value(c, at) <= 0.05, n, p, q))
    assert min(gains) >= -0.025
    assert np.mean(gains) >= 0


@pytest.mark.parametrize("claim", CLAIMS[1:6], ids=str)
def test_a_bound_that_another_exceeds_is_not_sought_and_no_other_is_missed(claim, seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        n, m = rng.integers(20, 400, 2).tolist()
        hits = [(int(rng.binomial(n, 0.7)), int(rng.binomial(m, 0.2))) for _ in range(3)]
        tests = [(Counts(i, n, j, m), 0.05 / k) for k, (i, j) in enumerate(hits, 1)]
        alone = [evidence(counts, claim, gamma) for counts, gamma in tests]
        found = evidence_of(tests, claim)
        best = max(one.lower_bound for one in alone)
        assert max(one.lower_bound for one in found) == best
        assert [one.p_value for one in found] == [one.p_value for one in alone]
        for (_, gamma), one, full in zip(tests, found, alone, strict=True):
            assert one.lower_bound <= full.lower_bound
            assert (one.p_value <= gamma) == (one.lower_bound >= claim.value)
        # without p-values the search begins elsewhere, and ends as near to the goal: .004 of a z
        bounds = [one.lower_bound for one in evidence_of(tests, claim, bound_only=True)]
        assert max(bounds) == pytest.approx(best, rel=0.01, abs=1e-4)


def box(c, claims, gamma):
    return claims.needed(
        clopper_pearson.lower(c.i, c.n, gamma / 2), clopper_pearson.upper(c.j, c.m, gamma / 2)
    )


def test_bound_is_never_below_the_clopper_pearson_box(seed):
    rng = np.random.default_rng(seed)
    cases = [Counts(n, n, 0, n) for n in (5, 20, 300)]
    for n, m in ((5, 9), (20, 20), (100, 40), (1000, 1000), (10_000, 3000)):
        hits = zip(rng.integers(n + 1, size=4), rng.integers(m + 1, size=4), strict=True)
        cases += [Counts(int(i), n, int(j), m) for i, j in hits]
    for c in cases:
        for claims in (dp.PureDP(1), dp.ApproximateDP(0.5, 0.0, "delta"), dp.GaussianDP(1)):
            assert lower_bound(c, claims, 0.05) >= min(box(c, claims, 0.05), claims.largest) - 1e-9


def test_margin_is_a_third_shorter_than_that_of_the_box():
    c, claims = Counts(5000, 10_000, 1840, 10_000), dp.PureDP(1)
    estimate = np.log(0.5 / 0.184)
    exact = estimate - lower_bound(c, claims, 0.05)
    assert exact <= 0.7 * (estimate - box(c, claims, 0.05))


@pytest.mark.parametrize("q", [0.184, 0.01])
def test_bounds_of_the_comparison_table(q):
    n = 10_000
    c = Counts(round(n * min(np.e * q, 0.5)), n, round(n * q), n)
    claims = dp.PureDP(1)
    assert lower_bound(c, claims, 0.05) == pytest.approx({0.184: 0.961, 0.01: 0.810}[q], abs=2e-3)
    assert box(c, claims, 0.05) == pytest.approx({0.184: 0.939, 0.01: 0.685}[q], abs=2e-3)


# --- identical distributions: the case on which a published tool reports ε ≈ 3.6


@pytest.mark.parametrize("n", [5, 8, 13, 20])
def test_identical_distributions_give_a_positive_bound_with_probability_at_most_gamma(n):
    same = dp.PureDP(0.0)  # the null hypothesis p ≤ q shared by ε, μ and δ at 0
    for gamma in (0.05, 0.01):
        for orientation in (lambda t: t, lambda t: t[::-1, ::-1]):
            rejected = orientation(table(n, n, same, gamma) <= gamma)
            assert size(n, n, same, rejected).max() <= gamma


# --- corners


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(
    "counts",
    [
        (0, 5, 0, 5),
        (5, 5, 5, 5),
        (5, 5, 0, 5),
        (0, 5, 5, 5),
        (1, 1, 0, 1),
        (10**6, 10**6, 0, 7),
        (3, 7, 0, 10**6),
        (10**8, 10**8, 0, 10**8),
        (50_002_000, 10**8, 25_000_000, 10**8),
    ],
)
def test_corners_give_p_values(claim, counts):
    value = p_value(Counts(*counts), claim)
    assert 0 < value <= 1


@pytest.mark.parametrize("n", [10**6, 10**8])
def test_large_samples_agree_with_the_normal_limit(n):
    """At a z-score of 2 away from the claim the p-value is that of the normal limit."""
    from scipy.special import ndtr

    q, claim = 0.2, dp.PureDP(0.5)
    p = claim.region(q)
    variance = p * (1 - p) / n + np.exp(1.0) * q * (1 - q) / n
    i = round(n * p + 2 * n * np.sqrt(variance))
    assert p_value(Counts(i, n, round(n * q), n), claim) == pytest.approx(ndtr(-2.0), rel=0.03)


# --- where slopes, kinks and edges could mislead the certificate


@pytest.mark.parametrize(
    ("counts", "claim"),
    [
        (Counts(5, 10, 0, 10), dp.RenyiDP(256, 3.0)),
        (Counts(5, 10, 0, 10), dp.RenyiDP(64, 12.0)),
        (Counts(6, 30, 0, 1000), dp.RenyiDP(100, 8.0)),
        (Counts(14, 1000, 1, 1000), dp.RenyiDP(1000, 1.0)),
        (Counts(5, 10, 0, 10), dp.GaussianDP(40.0)),
    ],
    ids=str,
)
def test_steep_claims_have_the_p_value_of_a_direct_sum(counts, claim):
    """Slopes past what a number holds: the lines that stand for g must not lie below it."""
    window = window_of(counts, 5e-5)
    low, high = (max(x, 1e-30) for x in (window.q_low, window.q_high))
    q = np.unique(np.concatenate([np.geomspace(low, high, 3000), np.linspace(low, high, 1000)]))
    p = np.minimum(claim.region(q), window.p_high)
    q, p = q[p >= window.p_low], p[p >= window.p_low]
    j = np.arange(window.first_j, window.last_j + 1)
    least = seen_contour(window, claim)(j)
    each = binom.pmf(j, counts.m, q[:, None]) * binom.sf(least - 1, counts.n, p[:, None])
    slow = min(1.0, 5e-5 + float(each.sum(axis=1).max()))
    assert slow * (1 - 1e-3) <= p_value(counts, claim) <= slow * 1.02


@pytest.mark.parametrize("order", [32.0, 100.0, 128.0, 1000.0])
def test_a_renyi_bound_does_not_exceed_the_pure_one(order):
    """D_λ ≤ D_∞, and the regions of the claims are nested."""
    for c in (Counts(6, 30, 0, 1000), Counts(10, 1000, 1, 1000), Counts(40, 200, 0, 2000)):
        pure = lower_bound(c, dp.PureDP(1.0), 0.05)
        assert lower_bound(c, dp.RenyiDP(order, 1.0), 0.05) <= pure * 1.02


@pytest.mark.parametrize(
    ("counts", "claims", "largest"),
    [
        (Counts(8_010_000, 8_012_521, 1, 2), dp.ApproximateDP(0.5, 0.0, "delta"), 0.03),
        (Counts(97_993, 100_000, 0, 1), dp.GaussianDP(1.0), 0.429),
        (Counts(25, 25, 0, 1), dp.RenyiDP(2, 1.0), 0.05),
        (Counts(25, 25, 0, 1), dp.ZeroConcentratedDP(1.0), 0.04),
    ],
)
def test_a_few_draws_against_many_say_little(counts, claims, largest):
    """The contour of one draw against a million: errors of q there are errors of a thousand counts."""
    assert 0 <= lower_bound(counts, claims, 0.05) <= largest


@pytest.mark.parametrize(
    ("n", "m", "gamma"), [(16_560, 3, 0.01), (126_624, 9, 1e-8), (5000, 1, 0.05)]
)
@pytest.mark.parametrize("claim", [dp.PureDP(1.0), dp.GaussianDP(1.0)], ids=str)
def test_bounds_cover_where_one_side_has_few_draws(n, m, gamma, claim):
    """For each j the least i with a bound above θ, and the exact probability of all of them."""
    claims = claim

    def least(j, theta):
        low, high = 0, n + 1  # does not suffice, suffices
        while high - low > 1:
            middle = (low + high) // 2
            enough = lower_bound(Counts(middle, n, j, m), claims, gamma) > theta
            low, high = (low, middle) if enough else (middle, high)
        return high

    for theta in (0.3, 1.0):
        i = np.array([least(j, theta) for j in range(m + 1)])
        q = np.concatenate([np.geomspace(1e-9, 0.02, 300), np.linspace(0.02, 0.9999, 2000)])
        p = np.asarray(claim.at(theta).region(q))
        tail = binom.sf(i - 1, n, p[:, None])
        assert np.sum(binom.pmf(np.arange(m + 1), m, q[:, None]) * tail, axis=1).max() <= gamma


@pytest.mark.parametrize("gamma", [1e-17, 1e-6, 0.49, 0.5, 0.9, 0.9999])
def test_bounds_at_levels_nobody_needs(gamma):
    c = Counts(80, 100, 0, 100) if gamma < 0.01 else Counts(4, 5, 0, 5)
    for claim in (dp.PureDP(1.0), dp.GaussianDP(1.0)):
        assert 0 < lower_bound(c, claim, gamma) < 20


@pytest.mark.parametrize(
    ("counts", "claim", "gamma"),
    [
        (Counts(1, 1, 0, 1), dp.RenyiDP(1.0001, 1000.0), 0.05),
        (Counts(2, 3, 0, 3), dp.ZeroConcentratedDP(700.0), 1e-10),
        (Counts(10_000, 10_000, 9999, 10_000), dp.ZeroConcentratedDP(0.5), 1e-10),
        (Counts(1, 10**7, 0, 1000), dp.GaussianDP(1e-6), 1e-10),
        (Counts(2_108_432_291, 4 * 10**9, 0, 1), CLAIMS[-1], 0.5),
        (Counts(4 * 10**10, 4 * 10**10, 0, 3), dp.PureDP(0.1), 0.9),
    ],
)
def test_claims_and_counts_at_the_end_of_what_numbers_hold(counts, claim, gamma):
    """No warning (they are errors here), no failure, a bound and a p-value."""
    assert 0 <= lower_bound(counts, claim, gamma) < np.inf
    assert 0 < p_value(counts, claim, gamma=gamma) <= 1


@pytest.mark.parametrize(("i", "j"), [(30, 0), (3000, 1000), (5 * 10**8, 2 * 10**8)])
def test_billions_of_draws_are_tested_and_do_not_hang(i, j):
    """Distances are solved for to the last digit that numbers of this size have, and no further."""
    for n in (10**9, 4 * 10**9):
        assert p_value(Counts(i, n, j, n), dp.PureDP(0.5)) < 1e-4
        assert 0 < p_value(Counts(i, n, j, n), dp.GaussianDP(0.3)) <= 1
