"""How often guesses can be right, against slow oracles and against every mechanism there is."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, norm

import dpassay as dp
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed

GAMMA = 0.05


def largest(holds, high=12.0):
    """The last ε at which something holds, by halving."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@pytest.mark.parametrize(
    ("m", "r", "v", "delta", "epsilon"),
    [
        (1000, 1000, 600, 0.0, 0.2975),
        (1000, 1000, 600, 1e-5, 0.2972),
        (1000, 200, 180, 1e-5, 1.7963),
        (5000, 1000, 900, 1e-5, 2.0183),
        (100_000, 1000, 1000, 1e-5, 3.489),
    ],
)
def test_bounds_are_never_below_published_ones(m, r, v, delta, epsilon):
    """Values of Theorem 5.2 of Steinke, Nasr & Jagielski (2023), computed elsewhere."""
    claim = dp.ApproximateDP(0.0, delta) if delta else dp.PureDP(0.0)
    assert bounds.lower_bound(claim, Guessed(m, r, v), GAMMA) >= epsilon - 5e-4


def slow_averaged(m, r, v, epsilon, delta):
    p = 1 / (1 + math.exp(-epsilon))
    most = [
        max(binom.pmf(x, k, p) for x in range(max(0, k - (r - v)), min(k, v - 1) + 1))
        for k in range(r)
    ]
    return binom.sf(v - 1, r, p) + m * delta / (1 + math.exp(epsilon)) * np.mean(most)


@pytest.mark.parametrize(("m", "r", "v"), [(10, 5, 3), (40, 40, 29), (100, 30, 30), (9, 1, 1)])
def test_the_averaged_price_of_delta_is_that_of_slow_sums(m, r, v):
    got = bounds.averaged(Guessed(m, r, v), 0.7, 1e-3)
    assert got == pytest.approx(slow_averaged(m, r, v, 0.7, 1e-3), rel=1e-7)
    learned = bounds.averaged(Guessed(m, r, v, least=r), 0.7, 1e-3)
    assert learned >= got  # what may depend on the output costs more


def slow_curve(mu, m, r, v):
    """The recursion of Mahloujifar et al. for one τ after the other, in plain Python."""

    def possible(tau):
        hits, misses = tau * v / m, tau * (r - v) / m
        for i in range(v - 1, -1, -1):
            new = max(misses, float(norm.cdf(norm.ppf(hits) - mu)))
            hits, misses = hits + i / (r - i) * (new - misses), new
        return hits + misses <= r / m

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return high


@pytest.mark.parametrize(
    ("mu", "m", "r", "v"), [(0.5, 60, 20, 18), (1.0, 100, 10, 10), (0.3, 40, 40, 30)]
)
def test_gaussian_claims_by_an_independent_recursion(mu, m, r, v):
    got = bounds.p_value(dp.GaussianDP(mu), Guessed(m, r, v))
    assert got == pytest.approx(slow_curve(mu, m, r, v), rel=1e-3)
    assert got >= slow_curve(mu, m, r, v) * (1 - 1e-9)
    lower = bounds.lower_bound(dp.GaussianDP(0.0), Guessed(m, r, v), GAMMA)
    assert slow_curve(lower, m, r, v) <= GAMMA * (1 + 1e-5)
    assert slow_curve(lower + 1e-3, m, r, v) > GAMMA


# --- against every mechanism: a linear programme over the channels from m coins to guesses


def worst(m, outputs, limits, wins):
    """The largest P(win) over mechanisms of m coins that are (ε, δ)-DP for all the limits."""
    inputs = list(itertools.product((0, 1), repeat=m))
    many, out = len(inputs), len(outputs)
    at = {s: k for k, s in enumerate(inputs)}
    pairs = [
        (at[s], at[(*s[:j], 1 - s[j], *s[j + 1 :])]) for s in inputs for j in range(m)
    ]  # both orders
    slacks = [(pair, limit) for pair in pairs for limit in limits]
    size = many * out + len(slacks) * out
    goal = np.zeros(size)
    for s, k in at.items():
        for y, guess in enumerate(outputs):
            goal[k * out + y] = -wins(s, guess) / many
    equal = np.zeros((many, size))
    for k in range(many):
        equal[k, k * out : (k + 1) * out] = 1.0
    rows, limit_of = [], []
    for n, ((a, b), (epsilon, delta)) in enumerate(slacks):
        z = many * out + n * out
        for y in range(out):  # p(y|s) − e^ε p(y|s') ≤ z
            row = np.zeros(size)
            row[a * out + y], row[b * out + y], row[z + y] = 1.0, -math.exp(epsilon), -1.0
            rows.append(row)
            limit_of.append(0.0)
        row = np.zeros(size)
        row[z : z + out] = 1.0
        rows.append(row)
        limit_of.append(delta)
    found = linprog(goal, np.array(rows), np.array(limit_of), equal, np.ones(many), bounds=(0, 1))
    return -found.fun


def guesses_of(m, r):
    """All ways to guess r of m coins; None where nothing is said."""
    for chosen in itertools.combinations(range(m), r):
        for values in itertools.product((0, 1), repeat=r):
            guess = [None] * m
            for j, value in zip(chosen, values, strict=True):
                guess[j] = value
            yield tuple(guess)


def right(coins, guess):
    return sum(g is not None and g == s for s, g in zip(coins, guess, strict=True))


@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 2, 2), (2, 1, 1), (3, 3, 2), (3, 2, 2)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (0.5, 0.02), (0.0, 0.1), (2.0, 0.05)])
def test_no_mechanism_exceeds_any_bound(m, r, v, epsilon, delta):
    true = worst(m, list(guesses_of(m, r)), [(epsilon, delta)], lambda s, g: right(s, g) >= v)
    guessed, slack = Guessed(m, r, v), 1e-7
    claim = dp.ApproximateDP(epsilon, delta)
    assert bounds.averaged(guessed, epsilon, delta) >= true - slack
    assert bounds._curve_p_value(claim, guessed, 1.0) >= true - slack
    assert bounds.p_value(claim, guessed) >= true - slack
    if delta == 0:
        assert bounds.p_value(claim, guessed) == pytest.approx(true, abs=1e-6)  # and it is tight


def test_three_coins_cannot_exceed_the_p_value():
    """A (0, δ)-DP mechanism that lowers one outcome alone, where the published formula gives 0.9125."""
    delta = 0.05
    outcomes = list(itertools.product((0, 1), repeat=3))  # which of three guesses are right
    law = dict.fromkeys(outcomes, (1 + delta) / 8)
    law[0, 0, 0] = (1 - 7 * delta) / 8
    assert sum(law.values()) == pytest.approx(1)

    def given(coins):
        return np.array(
            [law[tuple(int(a == b) for a, b in zip(coins, y, strict=True))] for y in outcomes]
        )

    for coins in outcomes:
        for k in range(3):
            other = tuple(bit ^ (k == j) for j, bit in enumerate(coins))
            assert np.maximum(given(coins) - given(other), 0).sum() <= delta + 1e-12
    attained = 1 - law[0, 0, 0]
    assert bounds.p_value(dp.ApproximateDP(0.0, delta), Guessed(3, 3, 1)) >= attained


@pytest.mark.parametrize("v", [1, 2, 3])
def test_three_coins_attain_the_averaged_bound(v):
    true = worst(3, list(guesses_of(3, 3)), [(0.0, 0.05)], lambda s, g: right(s, g) >= v)
    assert bounds.averaged(Guessed(3, 3, v), 0.0, 0.05) == pytest.approx(true, abs=1e-6)


@pytest.mark.parametrize(("m", "r", "v"), [(2, 2, 2), (2, 1, 1), (3, 2, 2)])
def test_no_mechanism_under_a_curve_exceeds_its_bound(m, r, v):
    limits = [(0.3, 0.1), (1.0, 0.02)]
    curve = dp.TradeoffDP(
        lambda a: max(float(dp.ApproximateDP(*limit).tradeoff(a)) for limit in limits)
    )
    true = worst(m, list(guesses_of(m, r)), limits, lambda s, g: right(s, g) >= v)
    assert bounds.p_value(curve, Guessed(m, r, v)) >= true - 1e-7


@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (0.5, 0.02), (1.5, 0.005)])
def test_how_many_are_guessed_may_depend_on_the_output(epsilon, delta):
    """The rejection region of every number of guesses at once, at several levels."""
    m, numbers = 3, (1, 2, 3)
    outputs = [guess for r in numbers for guess in guesses_of(m, r)]
    for level in (0.2, 0.4, 0.65, 0.85):
        needed = {}
        for r in numbers:
            enough = [
                v
                for v in range(1, r + 1)
                if bounds.averaged(Guessed(m, r, v, least=1), epsilon, delta) <= level
            ]
            needed[r] = min(enough, default=math.inf)

        def wins(s, guess, needed=needed):
            return right(s, guess) >= needed[sum(g is not None for g in guess)]

        assert worst(m, outputs, [(epsilon, delta)], wins) <= level + 1e-7


# --- shape


def test_more_right_guesses_and_stronger_claims_are_less_likely():
    chances = [
        bounds.p_value(dp.ApproximateDP(1.0, 1e-4), Guessed(500, 100, v)) for v in range(0, 101, 5)
    ]
    assert all(a >= b for a, b in itertools.pairwise(chances))
    by_epsilon = [
        bounds.p_value(dp.ApproximateDP(e, 1e-4), Guessed(500, 100, 85))
        for e in (0, 0.5, 1, 1.5, 2)
    ]
    assert by_epsilon == sorted(by_epsilon)
    by_delta = [
        bounds.p_value(dp.ApproximateDP(1.0, d), Guessed(500, 100, 85))
        for d in (0, 1e-6, 1e-4, 1e-2)
    ]
    assert by_delta == sorted(by_delta)
    by_mu = [bounds.p_value(dp.GaussianDP(mu), Guessed(500, 50, 45)) for mu in (0.1, 0.3, 0.5, 1)]
    assert by_mu == sorted(by_mu)


def test_edges():
    for claim in (dp.PureDP(1.0), dp.ApproximateDP(1.0, 1e-5), dp.GaussianDP(1.0)):
        for guessed in (Guessed(10, 0, 0), Guessed(10, 10, 0)):
            assert bounds.p_value(claim, guessed) == 1.0
            assert bounds.lower_bound(claim, guessed, GAMMA) == 0.0
        full = bounds.lower_bound(claim, Guessed(1000, 100, 100), GAMMA)
        assert full > bounds.lower_bound(claim, Guessed(1000, 100, 99), GAMMA) > 0
    # the ceiling of pure DP: p^r = γ
    assert bounds.lower_bound(dp.PureDP(0.0), Guessed(50, 50, 50), GAMMA) == pytest.approx(
        -math.log(GAMMA ** (-1 / 50) - 1), rel=1e-6
    )


def test_bounds_end_on_the_safe_side():
    for claim in (dp.PureDP(0.0), dp.ApproximateDP(0.0, 1e-4), dp.GaussianDP(0.0)):
        guessed = Guessed(400, 100, 80)
        lower = bounds.lower_bound(claim, guessed, GAMMA)
        assert bounds.refutes(claim.at(lower), guessed, GAMMA)
        assert not bounds.refutes(claim.at(lower * (1 + 1e-5)), guessed, GAMMA)
        assert bounds.p_value(claim.at(lower), guessed) <= GAMMA * (1 + 1e-3)


def test_pure_claims_through_the_curve_are_valid_and_a_little_looser():
    for v in (60, 75, 90):
        guessed = Guessed(100, 100, v)
        exact = bounds.p_value(dp.PureDP(1.0), guessed)
        curve = dp.TradeoffDP(dp.PureDP(1.0).tradeoff)
        assert exact <= bounds.p_value(curve, guessed) <= max(20 * exact, 1e-6)


def test_what_is_detectable_is_caught_nine_times_in_ten():
    claim, guessed = dp.ApproximateDP(1.0, 1e-5), Guessed(1000, 200, 150)
    needed = bounds.fewest(claim, guessed, GAMMA)
    caught = bounds.detectable(claim, guessed.perfect, GAMMA)
    assert binom.sf(needed - 1, 200, 1 / (1 + math.exp(-caught))) == pytest.approx(0.9, abs=1e-6)
    assert bounds.detectable(dp.PureDP(8.0), Guessed(20, 20, 20), GAMMA) == math.inf
    curve = dp.TradeoffDP.from_delta(dp.GaussianDP(0.5).delta_at)  # of a curve by Gaussian scores
    of_curve = bounds.detectable(curve, guessed.perfect, GAMMA)
    assert of_curve == bounds.detectable(dp.GaussianDP(0.5), guessed.perfect, GAMMA)
    mu = bounds.detectable(dp.GaussianDP(0.5), Guessed(1000, 100, 80).perfect, GAMMA)
    assert 0.5 < mu < 2.0
    assert bounds.gaussian_rate(0.0, 0.1) == pytest.approx(0.5)
