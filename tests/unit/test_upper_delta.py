"""Upper bounds on δ(ε) from counts of cells."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, multinomial, norm

import dpassay as dp
from dpassay.bounds.upper_delta import _Limit, radius, upper_curve, upper_delta, worse_direction

GAMMA = 0.05


def delta(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def random_counts(rng, cells, n, m, spread=1.0):
    p, q = rng.dirichlet(np.full(cells + 1, spread)), rng.dirichlet(np.full(cells + 1, spread))
    return rng.multinomial(n, p), rng.multinomial(m, q)


# --- oracles


def kl(a, p):
    one = a * math.log(a / p) if a > 0 else 0.0
    return one + ((1 - a) * math.log((1 - a) / (1 - p)) if a < 1 else 0.0)


def farthest(a, n, z, edge):
    """The p on the way from a to an edge with n kl(a, p) = z²/2."""
    if n * kl(a, edge) <= z * z / 2:
        return edge
    return brentq(lambda p: n * kl(a, p) - z * z / 2, a, edge, xtol=1e-17)


def slow_limit(x, y, n, m, t, r):
    """The largest p − t q over a quarter of a circle, by looking at all of it."""
    a, b, best = min((x + 1) / n, 1.0), max((y - 1) / m, 0.0), -math.inf
    for angle in np.linspace(0, math.pi / 2, 1001):
        p = 1.0 if a >= 1 else farthest(a, n, r * math.cos(angle), 1 - 1e-16)
        q = 0.0 if b <= 0 else farthest(b, m, r * math.sin(angle), 1e-300)
        best = max(best, p - t * q)
    return best


def slow_upper(hits_p, hits_q, epsilon, gamma):
    """All sets of cells."""
    n, m, t, r = int(hits_p.sum()), int(hits_q.sum()), math.exp(epsilon), radius(gamma)
    best = binom_upper(int(hits_p[-1]), n, gamma)
    for size in range(1, hits_p.size):
        for cells in itertools.combinations(range(hits_p.size - 1), size):
            x, y = hits_p[list(cells)].sum() + hits_p[-1], hits_q[list(cells)].sum()
            best = max(best, slow_limit(int(x), int(y), n, m, t, r))
    return min(best, 1.0)


def binom_upper(x, n, gamma):
    return 1.0 if x == n else brentq(lambda p: binom.cdf(x, n, p) - gamma, 1e-12, 1 - 1e-12)


@pytest.mark.parametrize("n", [5, 40, 1000, 10**6])
def test_the_limit_of_a_set_is_that_of_a_search(n, seed):
    rng = np.random.default_rng(seed + n)
    for _ in range(12):
        m = int(rng.integers(5, 2 * n + 5))
        x = int(rng.choice([0, 1, n // 100, n // 3, n - 2, n - 1, n]))
        y = int(rng.choice([0, 1, 2, m // 100, m // 2, m - 1, m]))
        t, r = math.exp(rng.choice([0.0, 0.5, 3.0])), radius(10 ** -rng.uniform(1, 5))
        found = _Limit(n, m, r)(np.array([x]), np.array([y]), np.array([t]))
        fast, slow = float(found[0]), slow_limit(x, y, n, m, t, r)
        assert fast >= slow - 1e-6 * abs(slow)
        if slow < 0.9:  # near 1 nothing binds, and any bound will do
            assert fast <= slow + 1e-3 * max(abs(slow), 1 / n)


@pytest.mark.parametrize("cells", [1, 2, 4, pytest.param(6, marks=pytest.mark.slow)])
def test_the_bound_is_the_largest_of_all_sets(cells, seed):
    rng = np.random.default_rng(seed + cells)
    for n in (60, 3000):
        p, q = random_counts(rng, cells, n, n + 17)
        for epsilon in (0.0, 0.7):
            slow = slow_upper(p, q, epsilon, GAMMA)
            fast = float(upper_delta(p, q, [epsilon], GAMMA)[0])
            assert slow - 1e-6 <= fast <= slow * 1.001 + 1e-3 / n


@pytest.mark.parametrize("n", [1, 7, 50, 400])
def test_tails_of_binomials_are_below_those_of_their_deviances(n):
    """Zubkov & Serov, which the limit of a set rests on."""
    for p in (1e-4, 0.03, 0.3, 0.5, 0.9, 0.999):
        for x in range(n + 1):
            if p > (x + 1) / n:
                root = math.sqrt(2 * n * kl((x + 1) / n, p))
                assert binom.cdf(x, n, p) <= norm.cdf(-root) * (1 + 1e-9) + 1e-15
            if x >= 1 and p < (x - 1) / n:
                root = math.sqrt(2 * n * kl((x - 1) / n, p))
                assert binom.sf(x - 1, n, p) <= norm.cdf(-root) * (1 + 1e-9) + 1e-15


def test_the_radius_leaves_gamma():
    for gamma in (0.3, 0.05, 1e-3, 1e-9):
        r = radius(gamma)
        assert 0.25 * math.exp(-(r**2) / 2) + norm.cdf(-r) == pytest.approx(gamma, rel=1e-6)


# --- invariants


def test_order_of_cells_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    p, q = random_counts(rng, 30, 5000, 4000)
    shuffled = np.append(rng.permutation(30), 30)
    for epsilon in (0.0, 0.5, 2.0):
        one = upper_delta(p, q, [epsilon], GAMMA)
        assert one == pytest.approx(
            upper_delta(p[shuffled], q[shuffled], [epsilon], GAMMA), rel=1e-3
        )


def test_the_worse_direction_is_the_same_for_swapped_sides(seed):
    p, q = random_counts(np.random.default_rng(seed), 12, 3000, 2000)
    assert worse_direction(p, q, [0.3], GAMMA) == worse_direction(q, p, [0.3], GAMMA)


def test_merging_cells_never_raises_the_bound(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        p, q = random_counts(rng, 8, 2000, 2000)
        merged = [np.append([side[:2].sum()], side[2:]) for side in (p, q)]
        assert upper_delta(*merged, [0.4], GAMMA)[0] <= upper_delta(p, q, [0.4], GAMMA)[0] + 1e-9


def test_giving_a_cell_to_everything_else_never_lowers_the_bound(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        p, q = random_counts(rng, 8, 2000, 2000)
        given = [np.append(side[1:-1], side[0] + side[-1]) for side in (p, q)]
        assert upper_delta(*given, [0.4], GAMMA)[0] >= upper_delta(p, q, [0.4], GAMMA)[0] - 1e-6


def test_more_error_or_more_draws_give_a_smaller_bound(seed):
    p, q = random_counts(np.random.default_rng(seed), 20, 2000, 2000)
    by_gamma = [upper_delta(p, q, [0.5], gamma)[0] for gamma in (1e-6, 1e-3, 0.05, 0.3)]
    assert np.all(np.diff(by_gamma) < 0)
    by_draws = [upper_delta(k * p, k * q, [0.5], GAMMA)[0] for k in (1, 4, 16, 64)]
    assert np.all(np.diff(by_draws) < 0)


def test_the_curve_of_several_pairs_is_the_hull_of_their_largest_bounds():
    eps = np.linspace(0.0, 2.0, 5)
    # the first pair is the worse one at small ε, the second at large ε
    first = np.array([5500, 4500, 0]), np.array([2500, 7500, 0])
    second = np.array([900, 9100, 0]), np.array([10, 9990, 0])
    alone = [upper_curve([pair], eps, GAMMA) for pair in (first, second)]
    assert alone[0][0] > 1.5 * alone[1][0]
    assert alone[1][-1] > 1.5 * alone[0][-1]
    together, t = upper_curve([first, second], eps, GAMMA), np.exp(eps)
    each = [worse_direction(*pair, eps, GAMMA / eps.size) for pair in (first, second)]
    largest = np.max(each, axis=0)
    for k, at in enumerate(t):  # by every chord over it
        chords = [
            largest[a] + (largest[b] - largest[a]) * (at - t[a]) / (t[b] - t[a])
            for a in range(k)
            for b in range(k + 1, eps.size)
        ]
        assert together[k] == pytest.approx(min([largest[k], *chords]), rel=1e-12)
    assert np.all(together >= np.max(alone, axis=0) * (1 - 1e-12))


def test_the_bound_falls_with_epsilon_and_stays_above_the_frequencies(seed):
    p, q = random_counts(np.random.default_rng(seed), 40, 5000, 5000)
    eps = np.linspace(0, 4, 30)
    curve = upper_curve([(p, q)], eps, GAMMA)
    assert np.all(np.diff(curve) <= 1e-12)
    slope = np.diff(curve) / np.diff(np.exp(eps))
    assert np.all(np.diff(slope) >= -1e-12)  # convex in e^ε
    assert np.all(curve >= [delta(p / 5000, q / 5000, e) for e in eps])


# --- edge cases


def test_no_cell_is_the_trivial_bound():
    assert upper_delta(np.array([100]), np.array([100]), [1.0], GAMMA) == [1.0]
    assert upper_delta(np.zeros(3, dtype=int), np.ones(3, dtype=int), [1.0], GAMMA) == [1.0]


def test_one_outcome_is_a_few_over_n():
    found = upper_delta(np.array([10**6, 0]), np.array([10**6, 0]), [0.0, 1.0], GAMMA)
    assert found[0] < 2e-5
    assert found[1] == pytest.approx(-math.log(GAMMA) / 10**6, rel=1e-3)


def test_a_large_epsilon_leaves_what_only_one_side_has(seed):
    p, q = np.array([900, 100, 0]), np.array([1000, 0, 0])
    for epsilon in (20.0, 250.0, 1e5):
        found = float(upper_delta(p, q, [epsilon], GAMMA)[0])
        assert 0.1 < found < 0.13


def test_what_was_promised_at_a_million_draws(seed):
    rng, n = np.random.default_rng(seed), 900_000
    response = dp.zoo.RandomizedResponse(1.0).masses((0, 1))
    noise = dp.zoo.DiscreteLaplace(1.0).masses((0, 1))
    found = {}
    for name, masses in (("response", response), ("noise", noise)):
        sides = [np.append(rng.multinomial(n, side), 0) for side in (masses.p, masses.q)]
        found[name] = worse_direction(*sides, [0.5, 1.0, 1.1], GAMMA)
    assert found["response"][2] <= 1e-5
    assert 0 <= found["response"][0] - response.delta(0.5) < 0.005
    assert found["noise"][1] < 0.007
    assert found["noise"][2] <= 1e-3


# --- coverage


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("cells", [2, 5])
def test_bounds_are_below_the_truth_no_more_often_than_gamma(cells, epsilon, seeds):
    runs, n, wrong = 4000 // (20 * cells), 2000, 0
    shape = np.random.default_rng(cells)
    p = shape.dirichlet(np.ones(cells))
    q = p * np.exp(shape.choice([-0.5, 0.5], cells))
    q /= q.sum()
    truth = max(delta(p, q, epsilon), delta(q, p, epsilon))
    for seed in itertools.islice(seeds, runs):
        rng = np.random.default_rng(seed)
        sides = [np.append(rng.multinomial(n, side), 0) for side in (p, q)]
        wrong += float(worse_direction(*sides, [epsilon], GAMMA)[0]) < truth
    assert wrong <= binom.ppf(1 - 1e-4, runs, GAMMA)


@pytest.mark.parametrize("gamma", [0.05, 0.3])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_no_rare_cell_is_too_much_for_the_bound_by_enumeration(epsilon, gamma):
    """All counts of two cells and the rest, the first cell so rare that P may not show it."""
    n, t = 9, math.exp(epsilon)
    counts_p = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    counts_q = [(a, n - a, 0) for a in range(n + 1)]
    bound = {
        (x, y): float(upper_delta(np.array(x), np.array(y), [epsilon], gamma)[0])
        for x in counts_p
        for y in counts_q
    }
    for rare, rest, part in itertools.product((0.05, 0.12, 0.25), (0.0, 0.1, 0.3), (0.0, 0.8)):
        p = rare, 1 - rare - rest, rest
        q = rare * part / t, 1 - rare * part / t, 0.0
        truth = sum(max(a - t * b, 0.0) for a, b in zip(p, q, strict=True))
        chance_p = dict(zip(counts_p, multinomial.pmf(counts_p, n, p), strict=True))
        chance_q = dict(zip(counts_q, multinomial.pmf(counts_q, n, q), strict=True))
        wrong = sum(
            chance_p[x] * chance_q[y] for (x, y), value in bound.items() if value < truth - 1e-12
        )
        assert wrong <= gamma


def test_cells_that_one_side_does_not_show_count_with_the_rest():
    """A set of such cells has its own limit, which is that of two counts, not of one."""
    seen = upper_delta(np.array([0, 50, 0]), np.array([0, 50, 0]), [3.0], 0.05)[0]
    alone = upper_delta(np.array([50, 0]), np.array([50, 0]), [3.0], 0.05)[0]
    assert seen > alone
