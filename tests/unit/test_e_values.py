"""E[factor] ≤ 1 for every pair that a claim allows, by enumeration of the cells."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import dpassay as dp
from dpassay.bounds import e_values as ev
from dpassay.bounds import projections as pr

CLAIMS = [
    dp.PureDP(0.0),
    dp.PureDP(0.3),
    dp.PureDP(2.0),
    dp.ApproximateDP(0.7, 0.0),
    dp.ApproximateDP(0.5, 1e-3),
    dp.ApproximateDP(0.5, 0.1, headline="delta"),
    dp.GaussianDP(0.0),
    dp.GaussianDP(1.0),
    dp.TradeoffDP([(0, 1), (0.1, 0.5), (0.25, 0.25), (0.5, 0.1), (1, 0)]),
    dp.TradeoffDP([(0, 0.9), (0.3, 0.2), (1, 0)], ordered=True),
    dp.RenyiDP(order=2, epsilon=0.3),
    dp.RenyiDP(order=8, epsilon=1.0),
    dp.RenyiCurveDP([2, 4], [0.1, 0.3]),
    dp.ZeroConcentratedDP(0.2),
    dp.ZeroConcentratedDP(0.2, delta=0.02),
]
#: What is taken off a pair.
SAFE = math.exp(-ev.SAFETY)


def random_counts(rng, rows, cells):
    """Past counts of all sizes and shapes, empty cells among them."""
    n = rng.integers(1, 10 ** rng.uniform(0.5, 5, rows).astype(int) + 2)
    sides = []
    for _ in range(2):
        p = rng.dirichlet(np.full(cells, 0.4), rows)
        sides.append(
            np.array([rng.multinomial(k, row) for k, row in zip(n, p, strict=True)], float)
        )
    return tuple(sides)


def picks_for(bet, rng, rows, cells, claim):
    if isinstance(bet, ev.MomentBet):
        return np.repeat(rng.integers(0, len(claim.orders), rows)[:, None], 2, axis=1)
    if isinstance(bet, ev.EventBet):
        return np.repeat(rng.integers(1, cells, rows)[:, None], 2, axis=1)
    return np.sort(rng.integers(0, cells + 1, (rows, 2)), axis=1)


def log_factors(bet, claim, past, picks):
    """What a draw of P, and one of Q, in each cell adds to the log-wealth: what one hit there gains."""
    rows, cells = past[0].shape
    factors = np.zeros((2, rows, cells))
    for side in (0, 1):
        for cell in range(cells):
            hits = np.zeros((2, rows, cells))
            hits[side, :, cell] = 1
            found = bet.gained(claim, np.array([claim.value]), past, picks, tuple(hits))
            factors[side, :, cell] = found[0]
    return factors


def nearest(claim, a, b):
    """The nearest probabilities of an event that a claim allows."""
    return pr.regions_of(claim, (claim.value,)).nearest(np.zeros(a.shape, dtype=np.int64), a, b)


def members(claim, rng, many, cells):
    """Pairs on the edge of a claim: random ones, moved to their mean until they are allowed."""
    p, q = rng.dirichlet(np.full(cells, 0.5), (2, many))
    mean, half = (p + q) / 2, (p - q) / 2
    low, high = np.zeros(many), np.ones(many)  # the share of the difference that is left
    for _ in range(40):
        share = 0.5 * (low + high)
        step = share[:, None] * half
        good = allowed(claim, mean + step, mean - step)
        low, high = np.where(good, share, low), np.where(good, high, share)
    return mean + low[:, None] * half, mean - low[:, None] * half


def allowed(claim, p, q):
    """Whether finite pairs, a row each, keep the claim, by its definition on every event and moment."""
    good = np.ones(len(p), dtype=bool)
    for a, b in [(p, q)] if claim.directional else [(p, q), (q, p)]:
        ratio = a / b
        for order in claim.orders:
            moment = np.log(np.sum(b * ratio**order, axis=1)) / (order - 1)
            good &= moment <= claim.divergence_limit(order)
        by = np.argsort(-ratio, axis=1, kind="stable")
        tops = (np.minimum(np.cumsum(np.take_along_axis(x, by, 1), axis=1), 1) for x in (a, b))
        top, other = tops
        if claim.set_by_events:
            good &= np.all(top <= np.asarray(claim.region(other)) + 1e-15, axis=1)
    return good


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_factor_has_a_mean_above_one(claim, seed):
    rng = np.random.default_rng(seed)
    cells, rows = 5, 400
    p, q = members(claim, rng, 400, cells)
    if claim.leak:  # a share of either side may be anything, also on one cell alone
        p, q = (
            (1 - claim.leak) * side + claim.leak * np.eye(cells)[rng.integers(0, cells, 400)]
            for side in (p, q)
        )
    for bet in ev.bets_against(claim):
        past = random_counts(rng, rows, cells)
        picks = picks_for(bet, rng, rows, cells, claim)
        log_x, log_y = log_factors(bet, claim, past, picks)
        mean = (np.exp(log_x) @ p.T) * (np.exp(log_y) @ q.T) * SAFE
        assert mean.max() <= 1 + 1e-9
        assert np.exp(np.maximum(log_x.max(), log_y.max())) < 1e9


@pytest.mark.parametrize("claim", [c for c in CLAIMS if not c.orders], ids=str)
def test_nor_at_the_member_that_is_worst_for_an_event(claim, seed):
    """The best (p, q) on the edge p = g(q), sought along all of it, is no better than 1."""
    rng = np.random.default_rng(seed)
    q = np.concatenate([np.geomspace(1e-9, 0.5, 400), 1 - np.geomspace(1e-9, 0.5, 400), [0.0, 1.0]])
    past = random_counts(rng, 200, 2)
    picks = np.ones((200, 2), dtype=np.int64)
    bet = ev.EventBet(True, False)
    log_x, log_y = log_factors(bet, claim, past, picks)
    p = np.asarray(claim.region(q))
    u = np.exp(log_x[:, 1:]) * p + np.exp(log_x[:, :1]) * (1 - p)
    v = np.exp(log_y[:, 1:]) * q + np.exp(log_y[:, :1]) * (1 - q)
    assert (u * v).max() * SAFE <= 1 + 1e-9
    assert (u * v).max() > 1 - 1e-6  # and there is nothing to be gained by more caution


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_nor_at_the_member_that_is_worst_for_both_tails(epsilon, seed):
    """u + v is linear in the pair: its largest value over the claim's polytope is a linear program."""
    rng = np.random.default_rng(seed)
    past = random_counts(rng, 40, 3)
    picks = np.tile([1, 2], (40, 1))
    log_x, log_y = log_factors(ev.TailsBet(), dp.PureDP(epsilon), past, picks)
    edge, one = math.exp(epsilon), np.eye(3)
    below = np.block([[one, -edge * one], [-edge * one, one]])
    sums = np.repeat(np.eye(2), 3, axis=1)
    for x, y in zip(np.exp(log_x), np.exp(log_y), strict=True):
        found = linprog(-np.concatenate([x, y]), below, np.zeros(6), sums, np.ones(2))
        assert (-found.fun / 2) ** 2 * SAFE <= 1 + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_the_projection_on_cells_is_the_nearest_pair(epsilon, seed):
    """Against a general optimiser."""
    rng, edge = np.random.default_rng(seed), math.exp(epsilon)
    for _ in range(5):
        a, b = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
        p, q = pr.project_cells(epsilon, a[None], b[None])
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert q.sum() == pytest.approx(1, abs=1e-12)

        def far(z, a=a, b=b):
            return -(a @ np.log(z[:3]) + b @ np.log(z[3:]))

        rules = [
            {"type": "eq", "fun": lambda z: z[:3].sum() - 1},
            {"type": "eq", "fun": lambda z: z[3:].sum() - 1},
            {"type": "ineq", "fun": lambda z: edge * z[3:] - z[:3]},
            {"type": "ineq", "fun": lambda z: edge * z[:3] - z[3:]},
        ]
        start = np.concatenate([(a + b) / 2] * 2)
        found = minimize(far, start, bounds=[(1e-9, 1)] * 6, constraints=rules, tol=1e-12)
        assert far(np.concatenate([p[0], q[0]])) <= found.fun + 1e-7
        assert np.all(p <= edge * q * (1 + 1e-9))
        assert np.all(q <= edge * p * (1 + 1e-9))


@pytest.mark.parametrize("claim", [c for c in CLAIMS if not c.orders], ids=str)
def test_the_projection_of_an_event_is_the_nearest_pair(claim, seed):
    """Against all places on a fine grid of the edge."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.01, 0.99, (2, 50))
    p, q = nearest(claim, a, b)

    def region(q):
        return pr.regions_of(claim, (claim.value,)).at(q)[0]

    assert np.all(p <= np.asarray(claim.region(q)) + 1e-3)

    def far(p, q):
        with np.errstate(divide="ignore", invalid="ignore"):
            return -(
                a * np.log(p) + (1 - a) * np.log1p(-p) + b * np.log(q) + (1 - b) * np.log1p(-q)
            )

    grid = np.linspace(1e-4, 1 - 1e-4, 4001)[:, None]
    edge = np.clip(region(grid), 1e-12, 1 - 1e-12)
    best = np.where(a <= region(b), far(a, b), far(edge, grid).min(axis=0))
    assert np.all(far(p, q) <= best + 1e-9)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_tangents_are_nowhere_below_the_region(claim):
    q = np.concatenate([np.linspace(0, 1, 1001), np.geomspace(1e-12, 1e-3, 50)])
    found, _ = pr.regions_of(claim, (claim.value,)).at(q)
    exact = np.asarray(claim.region(q))
    assert np.all(found >= exact - 1e-12)
    middle = (q > 1e-3) & (q < 1 - 1e-3)
    assert np.max((found - exact)[middle]) < 1e-3


def test_a_guess_that_the_claim_allows_bets_nothing():
    past = (np.array([[50.0, 50.0]]), np.array([[45.0, 55.0]]))
    for claim in CLAIMS[1:3]:
        for bet in ev.bets_against(claim):
            for log in log_factors(bet, claim, past, np.array([[1, 1]])):
                assert np.allclose(log, 0.0, atol=1e-12)


def test_the_capital_is_an_average():
    bets = ev.bets_against(dp.PureDP(1.0))
    gains = np.zeros((2, len(bets)))
    gains[0, 0] = gains[1, 1:] = math.log(3)
    first, last = np.exp(ev.log_wealth(bets, gains))
    assert 1 < first < 3
    assert last == pytest.approx(3)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_what_was_gained_is_the_sum_over_draws(claim, seed):
    """Of several θ at once, from counts of the parts alone: as from the factor of every draw."""
    rng = np.random.default_rng(seed)
    cells, rows = 6, 30
    thetas = [claim.value, 0.5 * claim.value, 0.9 * claim.value + 0.01]
    bets = ev.bets_against(claim)
    past = np.stack(random_counts(rng, rows, cells), axis=1)
    hits = rng.integers(0, 9, (rows, 2, cells))
    hits[:, 1, 0] += hits[:, 0].sum(axis=1) - hits[:, 1].sum(axis=1)
    picks = np.stack([picks_for(bet, rng, rows, cells, claim) for bet in bets], axis=1)
    found = ev.gains(bets, claim, thetas, past, picks, hits)
    for k, theta in enumerate(thetas):
        for j, bet in enumerate(bets):
            before = past[:, 0], past[:, 1]
            log_x, log_y = log_factors(bet, claim.at(theta), before, picks[:, j])
            slow = (hits[:, 0] * log_x + hits[:, 1] * log_y).sum(axis=1)
            slow -= ev.SAFETY * hits[:, 0].sum(axis=1)
            assert np.allclose(found[k, :, j], slow, rtol=1e-9, atol=1e-9)


def test_a_guess_that_may_be_noise_bets_nothing():
    """As far beyond the claim as chance would have it: moved all the way, the factors are 1."""
    past = (np.array([[105.0, 95.0, 100.0]]), np.array([[95.0, 105.0, 100.0]]))
    for claim in (dp.PureDP(0.0), dp.GaussianDP(0.0)):
        for bet in ev.bets_against(claim):
            for log in log_factors(bet, claim, past, np.array([[1, 2]])):
                assert np.all(log == 0)
