"""No factor of a bet has a mean above 1 under a pair that the claim allows, in extended precision."""

from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from tests.unit.test_e_values import log_factors

import dpassay as dp
from dpassay.bounds import e_values as ev

EPSILONS = (0.0, 1e-6, 0.1, 1.0, 3.0, 11.0, 20.0)
DELTAS = (0.0, 1e-12, 3e-8, 1e-5, 1e-2)
CURVE = [(0, 1), (1e-6, 0.5), (0.25, 0.25), (0.5, 1e-6), (1, 0)]
CLAIMS = [
    *(dp.ApproximateDP(epsilon, delta) for epsilon, delta in product(EPSILONS, DELTAS)),
    *(dp.PureDP(epsilon) for epsilon in EPSILONS),
    *(dp.GaussianDP(mu) for mu in (0.0, 1e-3, 0.5, 2.0, 6.0)),
    dp.TradeoffDP(CURVE),
    dp.RenyiDP(order=2, epsilon=0.3),
    dp.RenyiDP(order=16, epsilon=2.0),
    dp.RenyiCurveDP([2, 4], [0.1, 0.3]),
]


def edge(claim):
    """(p, 1 − p, q, 1 − q) along p = g(q), from formulas of its own, with 40 digits."""
    with mpmath.workdps(40):
        found = [(p, 1 - p, q, 1 - q) for p, q in _edge(claim)]
        text = [[mpmath.nstr(value, 25) for value in row] for row in found]
    return np.array([[np.longdouble(value) for value in row] for row in text]).T


def _places():
    small = [mpmath.mpf(10) ** (-k / mpmath.mpf(8)) for k in range(3, 8 * 14)]
    return [mpmath.mpf(0), *small, *(1 - q for q in small), mpmath.mpf(1)]


def _edge(claim):
    if claim.point is not None:
        epsilon, delta = (mpmath.mpf(value) for value in claim.point)
        ratio = mpmath.exp(epsilon)
        corner = (1 - delta) / (1 + ratio)
        places = [*_places(), corner, 1 - delta]
        return [
            (min(delta + ratio * q, 1 - (1 - delta - q) / ratio, mpmath.mpf(1)), q) for q in places
        ]
    if isinstance(claim, dp.GaussianDP):
        mu = mpmath.mpf(claim.mu)
        steps = [mpmath.mpf(k) / 64 - mu / 2 for k in range(-8 * 64, 8 * 64 + 1)]
        return [(mpmath.ncdf(t + mu), mpmath.ncdf(t)) for t in steps]
    if isinstance(claim, dp.TradeoffDP):
        corners = [(mpmath.mpf(x), 1 - mpmath.mpf(y)) for x, y in CURVE]
        found = []
        for (q0, p0), (q1, p1) in pairwise(corners):
            weights = [mpmath.mpf(k) / 64 for k in range(65)]
            found += [(p0 + w * (p1 - p0), q0 + w * (q1 - q0)) for w in weights]
        return found
    return [(min(_renyi_edge(q, *pair) for pair in _limits(claim)), q) for q in _places()[1:-1]]


def _limits(claim):
    return [
        (mpmath.mpf(order), mpmath.mpf(claim.divergence_limit(order))) for order in claim.orders
    ]


def _renyi_edge(q, order, limit):
    """The largest p for which neither D(P‖Q) nor D(Q‖P) of two coins is above the limit."""
    most = mpmath.exp((order - 1) * limit)

    def allowed(p):
        pairs = ((p, q), (q, p))
        return all(
            a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order) <= most
            for a, b in pairs
        )

    low, high = q, mpmath.mpf(1)
    for _ in range(90):
        middle = mpmath.sqrt(low * high) if high < 0.5 else 1 - mpmath.sqrt((1 - low) * (1 - high))
        if high == 1:
            middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def guesses(rng, rows):
    """Past counts of an event: never seen, always seen, rare, frequent, with up to 10¹³ draws."""
    n = np.floor(10 ** rng.uniform(0.5, 13, rows))
    rare = np.minimum(n, np.floor(10 ** rng.uniform(0, np.log10(n))))
    sides = []
    for _ in range(2):
        kind = rng.integers(0, 5, rows)
        even = np.floor(n * rng.random(rows))
        hits = np.choose(kind, [np.zeros(rows), n, rare, n - rare, even])
        sides.append(np.column_stack([n - hits, hits]))
    return tuple(sides)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_factor_has_a_mean_above_one_under_an_allowed_pair(claim, seed):
    rng = np.random.default_rng([seed, 34])
    past = guesses(rng, 600)
    p, not_p, q, not_q = edge(claim)
    for bet in ev.bets_against(claim):
        picks = np.ones((len(past[0]), 2), dtype=np.int64)
        if isinstance(bet, ev.MomentBet):
            picks[:] = rng.integers(0, len(claim.orders), len(past[0]))[:, None]
        x, y = np.exp(log_factors(bet, claim, past, picks).astype(np.longdouble))
        for swapped in (False, True):
            (a, not_a, b, not_b) = (q, not_q, p, not_p) if swapped else (p, not_p, q, not_q)
            if claim.directional and swapped:
                continue
            for flip in (False, True):  # the event and its complement
                one, other = (0, 1) if flip else (1, 0)
                u = np.outer(x[:, one], a) + np.outer(x[:, other], not_a)
                v = np.outer(y[:, one], b) + np.outer(y[:, other], not_b)
                assert float((u * v).max()) * np.exp(-ev.SAFETY) <= 1 + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.5, 5.0, 20.0])
def test_no_factor_of_three_cells_has_a_mean_above_one(epsilon, seed):
    """The polytope of pure DP has its corners at ratios e^ε and e^−ε, with at most one cell between."""
    rng = np.random.default_rng([seed, 35])
    n = np.floor(10 ** rng.uniform(0.5, 13, 400))
    past = tuple(np.floor(n[:, None] * rng.dirichlet(np.full(3, 0.1), 400)) for _ in range(2))
    picks = np.tile([1, 2], (400, 1))
    factors = log_factors(ev.TailsBet(), dp.PureDP(epsilon), past, picks)
    x, y = np.exp(factors.astype(np.longdouble))
    with mpmath.workdps(40):
        ratio = np.longdouble(mpmath.nstr(mpmath.exp(mpmath.mpf(epsilon)), 25))
    worst = np.max([x[:, k] * y[:, k] for k in range(3)])
    for up, down in product(range(3), range(3)):  # p = r q on one cell, q = r p on another
        u = (x[:, up] * ratio + x[:, down]) / (1 + ratio)
        v = (y[:, up] + y[:, down] * ratio) / (1 + ratio)
        worst = max(worst, np.max(u * v))
    assert float(worst) * np.exp(-ev.SAFETY) <= 1 + 1e-9
