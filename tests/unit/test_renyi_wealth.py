import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds.e_values import RenyiWealth
from dpassay.learning.renyi_variational import learn_variational


@pytest.mark.parametrize("order", [1.1, 2.0, 5.0, 16.0])
@pytest.mark.parametrize("leak", [0.0, 0.01])
def test_a_pair_of_bets_wins_nothing_on_average_whatever_is_bet_on(order, leak):
    """E[u]·E[v] ≤ 1 by enumeration, for random pairs of laws, mixtures and functions s."""
    rng = np.random.default_rng(int(10 * order))
    for _ in range(200):
        cells = rng.integers(2, 6)
        p, q = rng.dirichlet(np.ones(cells)), rng.dirichlet(np.ones(cells))
        log_c = float(np.log(np.sum(p**order * q ** (1 - order))))
        log_s = rng.normal(0, 1.0, cells)
        if rng.random() < 0.5:  # near the best function there is
            log_s = (np.log(p / q) - log_c / order) * rng.uniform(0.8, 1.2)
        top = float(log_s.max())
        bet_size = RenyiWealth.largest_bet_size(order, top, leak) * rng.random()
        bets = RenyiWealth(order, top, leak, bet_size)
        # the shares the claim does not speak of may be anything
        seen_p = (1 - leak) * p + leak * np.eye(cells)[rng.integers(cells)]
        seen_q = (1 - leak) * q + leak * np.eye(cells)[rng.integers(cells)]
        a, b = bets.terms(log_s, log_s)
        u = 1 + bet_size * order * (math.exp(-log_c / order) * a - 1)
        v = 1 + bet_size * (order - 1) * (1 - b)
        assert u.min() > 0
        assert v.min() > 0
        assert (seen_p @ u) * (seen_q @ v) <= 1 + 1e-12


@pytest.mark.parametrize("order", [2.0, 5.0])
@pytest.mark.parametrize("true", [0.0, 0.5, 1.0])
def test_the_bound_exceeds_the_truth_no_more_often_than_gamma(order, true, seeds):
    """N(0, 1) against N(μ, 1) has D = λμ²/2."""
    truth, wrong = order * true**2 / 2, 0
    for s in seeds[:200]:
        rng = np.random.default_rng(s)
        draws = rng.normal(size=(4, 500)) + np.array([[0], [true], [0], [true]])
        scores = true**2 / 2 - true * draws if true else rng.normal(size=(4, 500))
        found = learn_variational(order, False, scores[0], scores[1], 500, 0.1)
        wrong += found.bound(scores[2], scores[3], 0.1) > truth
    assert wrong <= binom.ppf(1 - 0.01 / 18, 200, 0.1)


def test_the_bound_is_near_the_truth_and_the_promise(seed):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(4, 50_000)) + np.array([[0], [1], [0], [1]])
    scores = 0.5 - draws
    found = learn_variational(2.0, False, scores[0], scores[1], 50_000, 0.05)
    bound = found.bound(scores[2], scores[3], 0.05)
    assert 0.88 < bound < 1.0
    assert found.predicted == pytest.approx(bound, abs=0.06)
    assert found.estimate == pytest.approx(1.0, abs=0.08)


def test_p_value_and_bound_agree_and_fall_with_the_claim(seed):
    rng = np.random.default_rng(seed)
    scores = 0.5 - (rng.normal(size=(4, 4000)) + np.array([[0], [1], [0], [1]]))
    found = learn_variational(2.0, False, scores[0], scores[1], 4000, 0.05)
    bound = found.bound(scores[2], scores[3], 0.05)
    assert found.p_value(scores[2], scores[3], bound - 1e-4) <= 0.05
    assert found.p_value(scores[2], scores[3], bound + 1e-4) > 0.05
    chances = [found.p_value(scores[2], scores[3], d) for d in np.linspace(0, 3, 30)]
    assert np.all(np.diff(chances) >= 0)


def test_the_capital_is_what_the_loop_says(seed):
    rng = np.random.default_rng(seed)
    log_x, log_y = rng.normal(-0.5, 0.5, size=(2, 300))
    top = max(log_x.max(), log_y.max())
    bets = RenyiWealth(3.0, top, 0.0, 0.5 * RenyiWealth.largest_bet_size(3.0, top, 0.0))
    wealth = 0.0
    for x, y in zip(log_x, log_y, strict=True):
        u = 1 + bets.bet_size * 3 * (math.exp(-0.2 / 3) * math.exp(2 * x) - 1)
        v = 1 + bets.bet_size * 2 * (1 - math.exp(3 * y))
        wealth += math.log(u * v)
    assert bets.log_wealth(log_x, log_y, 0.2) == pytest.approx(max(wealth, 0.0), abs=1e-9)
    shuffled = rng.permutation(log_x), np.sort(log_y)
    assert bets.log_wealth(*shuffled, 0.2) == pytest.approx(max(wealth, 0.0), abs=1e-9)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_next_to_no_draws_give_no_bound(size):
    assert (
        RenyiWealth(2.0, 1.0, 0.0, 0.1).largest_log_c(np.zeros(size), np.zeros(size), 0.05) == 0.0
    )


def test_constant_scores_promise_nothing():
    found = learn_variational(2.0, False, np.zeros(100), np.zeros(100), 300, 0.05)
    assert found.predicted == 0.0
    assert found.bound(np.zeros(300), np.zeros(300), 0.05) == 0.0
    assert found.detectable(0.5, 300, 0.05) == math.inf


def test_the_predicted_power_is_about_the_rate_of_refutations(seeds):
    claim, hits, said = 0.8, 0, []
    for s in seeds[:100]:
        rng = np.random.default_rng(s)
        scores = 0.5 - (rng.normal(size=(2, 6000)) + np.array([[0], [1]]))
        fresh = 0.5 - (rng.normal(size=(2, 6000)) + np.array([[0], [1]]))
        found = learn_variational(2.0, False, scores[0], scores[1], 6000, 0.05)
        said.append(found.power(claim))
        hits += found.p_value(fresh[0], fresh[1], claim) <= 0.05
    assert abs(hits / 100 - np.mean(said)) < 0.2


def test_a_mechanism_may_sort_its_draws(seeds):
    """The counts of sorted draws are binomial all the same: no order of them may decide."""

    def grouped(x, size, rng):
        return np.sort(np.round(x + rng.normal(size=size), 5))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sorted draws are noticed, where they show
        wrong = sum(
            dp.audit(grouped, (0.0, 1.0), "rho=0.5", n=3000, rng=s).violated for s in seeds[:10]
        )
    assert wrong <= binom.ppf(1 - 0.01 / 3, 10, 0.05)


@pytest.mark.parametrize("leak", [0.0, 0.05, 0.4])
def test_capital_falls_with_the_divergence_that_is_bet_against(leak):
    rng = np.random.default_rng(3)
    for _ in range(200):
        log_x, log_y = rng.normal(0, 1, size=(2, 8))
        top = float(max(log_x.max(), log_y.max()))
        bets = RenyiWealth(2.5, top, leak, RenyiWealth.largest_bet_size(2.5, top, leak))
        wealth = [bets.log_wealth(log_x, log_y, c) for c in np.linspace(0, 3, 20)]
        assert np.all(np.diff(wealth) <= 1e-12)


@pytest.mark.parametrize("order", [1.1, 2.0, 5.0, 64.0])
@pytest.mark.parametrize("leak", [0.0, 0.02])
@pytest.mark.parametrize("swapped", [False, True])
def test_moments_from_sorted_sums_are_those_of_the_clipped_draws(order, leak, swapped, seed):
    rng = np.random.default_rng(seed)
    for spread in (0.1, 1.0, 12.0):
        p, q = spread * rng.normal(size=300) + spread, spread * rng.normal(size=280) - spread
        found = learn_variational(order, swapped, p, q, 900, 0.05, leak)
        x, y = (-q, -p) if swapped else (p, q)
        logs = (found.log_scale + np.minimum(side, found.high) for side in (x, y))
        a, b = found.bets.terms(*logs)
        b = np.append(b, math.exp(order * (found.log_scale + found.high)) / (1 - leak))
        mean, lam = max(a.mean(), 1e-12), order
        assert found.slope == pytest.approx(lam * mean)
        assert found.mean == pytest.approx(lam * (mean - 1) + (lam - 1) * (1 - b.mean()), abs=1e-9)
        square = lam**2 * np.mean((a / mean - 1) ** 2) + (lam - 1) ** 2 * np.mean((1 - b) ** 2)
        assert found.spread == pytest.approx(math.sqrt(square))
