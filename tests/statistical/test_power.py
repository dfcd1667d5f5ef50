"""What the joint test can see, and with how many draws."""

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds.joint_test import Counts, evidence, p_value
from dpassay.bounds.power import detectable, draws_needed, power, smallest_detectable


def test_power_is_what_a_simulation_of_the_test_shows(seeds):
    claim, p, q, n, gamma = dp.PureDP(0.5), 0.5, np.exp(-1) / 2, 120, 0.05
    rng = np.random.default_rng(seeds[0])
    i, j = rng.binomial(n, p, 400), rng.binomial(n, q, 400)
    caught = sum(
        p_value(Counts(int(a), n, int(b), n), claim, gamma=gamma) <= gamma
        for a, b in zip(i, j, strict=True)
    )
    expected = power(p, q, n, n, claim, gamma)
    low, high = binom.ppf([0.001, 0.999], 400, expected)
    assert low - 8 <= caught <= high + 8


def enumerated_power(p, q, n, claim, gamma):
    """Of the test that an audit makes, outcome by outcome."""
    found = 0.0
    for j in range(int(binom.ppf(1e-4, n, q)), int(binom.ppf(1 - 1e-4, n, q)) + 1):
        low, high = -1, n + 1  # accepted and rejected: the test is monotone in i
        while high - low > 1:
            i = (low + high) // 2
            rejected = evidence(Counts(i, n, j, n), claim, gamma).p_value <= gamma
            low, high = (low, i) if rejected else (i, high)
        found += binom.pmf(j, n, q) * binom.sf(high - 1, n, p)
    return found


def test_draws_needed_are_those_that_the_test_itself_needs():
    p, q = 0.5, np.exp(-1) / 2
    needed = [draws_needed(p, q, dp.PureDP(e), 0.05) for e in (0.5, 0.75, 0.9)]
    for got, reference in zip(needed, (146, 646, 4381), strict=True):  # of an oracle
        assert reference <= got <= 1.17 * reference
    assert abs(enumerated_power(p, q, needed[0], dp.PureDP(0.5), 0.05) - 0.9) < 0.01


@pytest.mark.parametrize("q", [0.2, 0.5])
@pytest.mark.parametrize(
    "claim", [dp.PureDP(1.0), dp.ApproximateDP(1.0, 0.1), dp.GaussianDP(1.0)], ids=str
)
def test_what_is_detectable_is_caught_about_nine_times_in_ten(claim, q):
    found = detectable(q, 150, 150, claim, 0.05)
    assert 0.85 < enumerated_power(claim.at(found).region(q), q, 150, claim, 0.05) < 0.95


@pytest.mark.parametrize(
    ("n", "epsilon", "q"), [(500, 4.377, 0.16), (200, 4.0, 0.2), (500, 4.0, 0.01), (100, 2.0, 0.05)]
)
def test_what_is_detectable_where_few_draws_meet_a_large_claim_is_caught(n, epsilon, q):
    """Approximate critical values promised .9 where the power is .6 to .83."""
    claim = dp.ApproximateDP(epsilon, 1e-5)
    found = detectable(q, n, n, claim, 0.05)
    p = float(claim.whole.region(q, found))
    assert 0.86 < enumerated_power(p, q, n, claim, 0.05) < 0.95


@pytest.mark.parametrize(("n", "epsilon", "q"), [(500, 5.0, 0.16), (200, 4.2, 0.2)])
def test_nothing_is_detectable_where_even_n_hits_of_n_are_rarely_rejected(n, epsilon, q):
    claim = dp.ApproximateDP(epsilon, 1e-5)
    assert enumerated_power(1.0, q, n, claim, 0.05) < 0.5
    assert detectable(q, n, n, claim, 0.05) == np.inf
    verdict = dp.audit_counts(n // 2, n, round(q * n), n, claim)
    assert verdict.blind
    assert verdict.smallest_detectable == np.inf


def test_plans_for_what_nobody_can_see_end():
    """An event that never happens, or all the draws there are on one side: an answer, and soon."""
    assert draws_needed(3e-300, 1e-300, dp.PureDP(1.0), 0.05) is None
    assert detectable(0.5, 10**12, 1, dp.PureDP(0.1), 0.05) == detectable(
        0.5, 10_000, 1, dp.PureDP(0.1), 0.05
    )


def test_detectable_falls_with_the_number_of_draws():
    values = [detectable(0.184, n, n, dp.PureDP(1.0), 0.05) for n in (100, 1000, 10_000)]
    assert values[0] > values[1] > values[2] > 1.0


def test_an_event_and_its_complement_on_the_other_side_are_detectable_alike():
    """Near 1 a δ has no room to show in p ≤ 1, but all of it in the complement."""
    claim = dp.ApproximateDP(1.0, 0.0134, headline="delta")
    rare, likely = Counts(210, 15_000, 7, 15_000), Counts(14_993, 15_000, 14_790, 15_000)
    found = smallest_detectable(rare, claim, 1e-3)
    assert claim.delta < found < 2 * claim.delta
    assert smallest_detectable(likely, claim, 1e-3) == found


def test_what_one_order_detects_is_said_of_the_whole_claim():
    """A mechanism that just keeps the larger claim has no likelier event: its power is what counts."""
    whole, q, n = dp.ZeroConcentratedDP(0.1), 0.05, 1500
    one = whole.at_order(whole.order_for(whole.region(q), q))
    found = detectable(q, n, n, one, 0.05)
    caught = [power(claim.at(found).region(q), q, n, n, one, 0.05) for claim in (whole, one)]
    assert 0.89 < caught[0] < 0.92
    assert caught[0] <= caught[1]
    assert detectable(q, n, n, whole, 0.05) <= 1.01 * found


def test_leaks_that_add_up_over_rounded_numbers_are_found(seeds):
    """Three of five Laplace numbers move; no audit found it when chance repeats were atoms."""

    def release(data, size, rng):
        return np.round(data * np.array([1, 1, 1, 0, 0]) + rng.laplace(scale=6, size=(size, 5)), 4)

    found = [
        dp.audit(release, (0, 1), "eps=0.25", n=20_000, rng=seed).violated for seed in seeds[:8]
    ]
    assert sum(found) >= 5  # 23 of 24 in another run
