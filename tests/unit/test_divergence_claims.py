"""Rényi claims and zCDP: regions, δ and moments against brute force and the definitions."""

import numpy as np
import pytest

import dpassay as dp

Q = np.concatenate([[0.0], np.geomspace(1e-300, 1e-3, 60), np.linspace(0.002, 1, 500)])


@pytest.mark.parametrize(("order", "epsilon"), [(1.5, 0.2), (2, 0.5), (5, 1.0), (7, 0.05)])
def test_renyi_region_solves_the_coin_equation(order, epsilon):
    q = np.geomspace(1e-12, 0.5, 30)
    p = dp.RenyiDP(order, epsilon).region(q)
    inside = p < 1
    d = np.array(
        [dp.Masses([a, 1 - a], [b, 1 - b]).renyi(order) for a, b in zip(p, q, strict=True)]
    )
    assert d[inside] == pytest.approx(epsilon, rel=1e-6)


def test_zcdp_region_contains_that_of_the_gaussian_it_describes():
    # N(0,1) against N(μ,1) is μ²/2-zCDP, so what it reaches must be allowed
    for mu in (0.3, 1.0, 2.0):
        reached = dp.GaussianDP(mu).region(Q)
        assert np.all(dp.ZeroConcentratedDP(mu**2 / 2).region(Q) >= reached - 1e-12)


def test_zcdp_region_is_inside_each_of_its_renyi_regions():
    # the orders the region is made of; at others between it is as close as they are dense
    claim = dp.ZeroConcentratedDP(0.4)
    for order in claim._solved[::5]:
        assert np.all(claim.region(Q) <= dp.RenyiDP(order, order * 0.4).region(Q) + 1e-9)
    for order in claim.orders:
        near = dp.RenyiDP(order, claim.renyi(order)).region(Q)
        assert np.all((claim.region(Q) <= near * 1.05) | (Q < 1e-3))


MANY = [
    dp.ZeroConcentratedDP(0.4),
    dp.ZeroConcentratedDP(0.1, delta=0.02),
    dp.RenyiCurveDP([1.5, 3, 20], [0.3, 0.5, 2.0]),
]


@pytest.mark.parametrize("claim", MANY, ids=str)
def test_one_order_of_a_claim_allows_all_that_the_claim_does(claim):
    wide = np.array([claim.at_order(float(order)).region(Q) for order in claim._solved])
    assert wide.min(axis=0) == pytest.approx(claim.region(Q), rel=1e-12)
    for p, q in ((0.5, 0.1), (0.05, 0.03), (0.9, 0.7)):
        needed = [claim.at_order(float(order)).needed(p, q) for order in claim._solved]
        assert max(needed) == pytest.approx(claim.needed(p, q))
    one = claim.at_order(3.0)
    assert one.at(0.7) == claim.at(0.7).at_order(3.0)
    assert hash(one.at(0.7)) == hash(claim.at(0.7).at_order(3.0))
    assert (one.value, one.whole, one.at(0.7).value) == (claim.value, claim, 0.7)


def test_one_order_of_zcdp_is_a_renyi_claim():
    one, other = dp.ZeroConcentratedDP(0.4).at_order(3.0), dp.RenyiDP(3.0, 1.2)
    assert one.region(Q) == pytest.approx(other.region(Q))
    assert one.needed(0.5, 0.1) == pytest.approx(other.needed(0.5, 0.1) / 3)


@pytest.mark.parametrize("claim", MANY, ids=str)
def test_the_order_that_limits_an_event_most(claim):
    for q in (0.0005, 0.01, 0.2, 0.6):
        at_edge = claim.at_order(claim.order_for(claim.region(q), q))
        assert at_edge.region(q) == pytest.approx(claim.region(q))
        for p in (1.2 * q, 0.9):
            assert claim.at_order(claim.order_for(p, q)).needed(p, q) == claim.needed(p, q)
    assert dp.RenyiDP(2, 0.3).order_for(0.5, 0.1) is None
    assert dp.PureDP(1.0).order_for(0.5, 0.1) is None


def divergence(p, q, order):
    """D_λ of two coins, from the definition."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [order * np.log(a) + (1 - order) * np.log(b) for a, b in ((p, q), (1 - p, 1 - q))]
        return np.logaddexp(*terms) / (order - 1)


@pytest.mark.parametrize(
    ("order", "epsilon"),
    [(1.02, 0.3), (2, 1e-15), (2, 1e-9), (2, 0.5), (5, 3.0), (64, 2.0), (201, 40.0)],
)
def test_renyi_region_and_inverse_end_on_the_claims_side(order, epsilon):
    mp = pytest.importorskip("mpmath")
    claim = dp.RenyiDP(order, epsilon)
    loose = 2e-6 if epsilon > 1e-6 else 0.3  # a budget of the size of rounding errors
    with mp.workdps(60):
        limit = mp.exp((mp.mpf(order) - 1) * mp.mpf(epsilon))

        def allowed(p, q):
            power = p**order * q ** (1 - mp.mpf(order))
            return power + (1 - p) ** order * (1 - q) ** (1 - mp.mpf(order)) <= limit

        def last(inside, outside, test):
            for _ in range(220):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if test(middle) else (inside, middle)
            return float(inside)

        for x in (1e-12, 1e-3, 0.2, 0.7, 0.999):
            given = mp.mpf(x)
            if allowed(mp.mpf(1), given):
                largest = 1.0
            else:
                largest = last(given, mp.mpf(1), lambda p, q=given: allowed(p, q))
            assert largest * (1 - 1e-12) <= claim.region(x) <= largest * (1 + loose)
            if x > 1e-3:
                smallest = last(given, mp.mpf(0), lambda q, p=given: allowed(p, q))
                assert smallest * (1 - loose) <= claim.region_inverse(x) <= smallest * (1 + 1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
def test_approximate_zcdp_region_is_the_best_of_all_mixtures(delta):
    rho = 0.2
    claim = dp.ZeroConcentratedDP(rho, delta)
    p_inner = np.linspace(0, 1, 4001)
    orders = claim._solved
    for q in (0.0, 0.003, 0.1, 0.4, 0.93, 0.97):
        best = 0.0
        for under_q in np.linspace(0, 1, 11):  # Q''(E); P''(E) is 1 at best
            q_inner = (q - delta * under_q) / (1 - delta)
            if not 0 <= q_inner <= 1:
                continue
            fine = np.array([divergence(p_inner, q_inner, o) <= o * rho + 1e-12 for o in orders])
            fine |= p_inner <= q_inner
            best = max(best, delta + (1 - delta) * p_inner[fine.all(axis=0)].max())
        assert best - 1e-12 <= claim.region(q) <= best + 3e-4


def test_no_pair_that_is_approximately_zcdp_leaves_the_region(seed):
    # explicit pairs: P' and Q' on four outputs, ρ as small as they allow, P'' and Q'' anything
    rng = np.random.default_rng(seed)
    subsets = np.array([[(k >> i) & 1 for i in range(4)] for k in range(16)])
    orders = np.concatenate([1 + np.geomspace(1e-3, 1e3, 200)])
    for _ in range(20):
        inner = rng.dirichlet(np.full(4, 2.0), 2)
        masses = dp.Masses(*inner)
        both = np.maximum(masses.renyi(orders), masses.swap().renyi(orders))
        rho = float(np.max(both / orders)) * 1.001
        delta = float(rng.choice([0.0, 1e-3, 0.1]))
        outer = rng.dirichlet(np.full(4, 0.3), 2)
        p, q = np.clip(((1 - delta) * inner + delta * outer) @ subsets.T, 0, 1)
        claim = dp.ZeroConcentratedDP(rho, delta)
        assert np.all(p <= claim.region(q) + 1e-12)
        assert np.all(q >= claim.region_inverse(p) - 1e-12)
        assert max(map(claim.needed, p, q)) <= rho * (1 + 1e-9)


def test_a_renyi_curve_is_the_smallest_of_its_renyi_regions():
    curve = dp.RenyiCurveDP((1.5, 2, 8), (0.1, 0.12, 0.6))
    singles = [dp.RenyiDP(o, e) for o, e in zip(curve.orders, curve.epsilons, strict=True)]
    assert curve.region(Q) == pytest.approx(np.min([one.region(Q) for one in singles], axis=0))
    half = [dp.RenyiDP(o, e / 2) for o, e in zip(curve.orders, curve.epsilons, strict=True)]
    assert curve.at(0.5).region(Q) == pytest.approx(np.min([one.region(Q) for one in half], axis=0))
    assert dp.RenyiCurveDP((2,), (0.1,)).region(Q) == pytest.approx(dp.RenyiDP(2, 0.1).region(Q))


def test_a_renyi_curve_without_a_limit_at_an_order_says_nothing_there():
    curve = dp.RenyiCurveDP((2, 4), (0.1, np.inf))
    assert curve == dp.RenyiCurveDP((2,), (0.1,))
    assert dp.RenyiCurveDP((2, 4), (0.0, 0.3)).needed(0.5, 0.4) == np.inf


def test_an_rdp_accountant_gives_a_claim():
    rdp = pytest.importorskip("dp_accounting.rdp")
    import dp_accounting

    accountant = rdp.RdpAccountant(orders=[1.5, 2, 3, 5, 8, 16, 32])
    accountant.compose(dp_accounting.GaussianDpEvent(2.0), 4)  # μ = 1
    curve = dp.RenyiCurveDP(accountant._orders, accountant._rdp)
    assert curve.renyi(3.0) == pytest.approx(1.5)
    assert np.all(curve.region(Q) >= dp.GaussianDP(1.0).region(Q) - 1e-12)


@pytest.mark.parametrize("eps", [0.2, 1.0, 3.0, 8.0])
def test_delta_of_divergences_lies_between_a_mechanism_and_the_known_conversion(eps):
    # a Gaussian attains every Rényi limit it is given; Canonne, Kamath & Steinke bound from above
    orders = np.array([1.5, 2.0, 3.0, 5.0, 9.0, 30.0])
    for mu in (0.3, 1.0):
        rho, true = mu**2 / 2, dp.GaussianDP(mu).delta_at(eps)
        curve = dp.RenyiCurveDP(orders, orders * rho)
        claims = [dp.ZeroConcentratedDP(rho), curve, *(dp.RenyiDP(o, o * rho) for o in orders)]
        for one in claims:
            found = one.delta_at(eps)
            assert true <= found
            listed = one._solved
            log_known = (listed - 1) * (one.renyi(listed) - eps + np.log1p(-1 / listed)) - np.log(
                listed
            )
            assert found <= np.exp(log_known.min()) * (1 + 1e-9)


def test_delta_of_approximate_zcdp_is_that_of_the_mixture():
    exact = dp.ZeroConcentratedDP(0.3).delta_at([0.0, 1.0, 4.0])
    mixed = dp.ZeroConcentratedDP(0.3, 0.01).delta_at([0.0, 1.0, 4.0])
    assert mixed == pytest.approx(0.01 + 0.99 * exact)


def test_the_parameter_a_divergence_needs():
    assert dp.RenyiDP(2, 0.1).from_renyi(2.0, 0.7) == 0.7
    assert dp.RenyiDP(2, 0.1).from_renyi(3.0, 0.7) == 0.0  # it says nothing of order 3
    assert dp.ZeroConcentratedDP(0.5).from_renyi(4.0, 1.0) == 0.25
    assert dp.ZeroConcentratedDP(0.5, 0.1).from_renyi(4.0, 1.0) == 0.0  # any divergence is allowed
    curve = dp.RenyiCurveDP((2, 4), (0.1, 0.0))
    assert curve.from_renyi(2.0, 0.15) == pytest.approx(1.5)
    assert curve.from_renyi(4.0, 0.15) == np.inf
    assert curve.from_renyi(4.0, 0.0) == 0.0


def test_the_gaussian_of_the_same_strength():
    for mu in (0.1, 1.0, 3.0):
        rho = mu**2 / 2
        for one in (
            dp.ZeroConcentratedDP(rho),
            dp.ZeroConcentratedDP(rho, 0.1),
            dp.RenyiDP(5, 5 * rho),
            dp.RenyiCurveDP((2, 5), (2 * rho, 5 * rho)),
            dp.RenyiCurveDP((2, 5), (9.0 + 2 * rho, 5 * rho)),  # the strictest order decides
        ):
            assert one.gaussian_proxy().mu == pytest.approx(mu)


def moment(order, w, p, q):
    return order * p @ w ** (order - 1) - (order - 1) * q @ w**order


def test_orders_that_are_not_claimed_have_no_limit():
    assert dp.RenyiDP(2, 0.1).divergence_limit(3.0) == np.inf
    assert dp.RenyiDP(2, 0.1).from_divergence(3.0, 50.0) == 0.0
    leaky = dp.ZeroConcentratedDP(0.1, 1e-6)
    assert leaky.divergence_limit(3.0) == pytest.approx(0.3)
    assert leaky.from_divergence(3.0, 0.6) == pytest.approx(0.2)
    assert leaky.leak == 1e-6


def test_slopes_of_renyi_claims_are_derivatives():
    q = np.array([1e-6, 1e-4, 0.01, 0.2])
    for claim in (dp.RenyiDP(100, 8.0), dp.RenyiDP(2, 0.5), dp.RenyiDP(30, 0.1)):
        step = 1e-4 * q
        rise = np.asarray(claim.region(q + step)) - np.asarray(claim.region(q - step))
        below = np.asarray(claim.region(q)) < 0.999
        assert np.asarray(claim.slope(q))[below] == pytest.approx(
            (rise / (2 * step))[below], rel=0.01
        )
