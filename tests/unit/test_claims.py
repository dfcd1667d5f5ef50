import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import norm

import dpassay as dp
from dpassay.errors import InvalidInput

CLAIMS = [
    dp.PureDP(0.0),
    dp.PureDP(1.0),
    dp.PureDP(30.0),
    dp.ApproximateDP(0.5, 1e-5),
    dp.ApproximateDP(0.0, 0.1),
    dp.GaussianDP(1.0),
    dp.RenyiDP(2, 0.1),
    dp.RenyiDP(1.2, 0.4),
    dp.RenyiDP(64, 2.0),
    dp.ZeroConcentratedDP(0.3),
    dp.TradeoffDP([(0.0, 0.9), (0.2, 0.5), (1.0, 0.0)]),
    dp.TradeoffDP(lambda a: norm.cdf(norm.ppf(1 - a) - 1.0)),
    dp.ApproximateDP(0.5, 1e-5, headline="delta"),
    dp.ZeroConcentratedDP(0.3, delta=0.01),
    dp.RenyiCurveDP((1.5, 2, 8), (0.1, 0.12, 0.6)),
    dp.TradeoffDP.from_delta(dp.ApproximateDP(1.0, 1e-3).delta_at),
    dp.TradeoffDP([(0, 1), (0.2, 0.4), (1, 0)], gap=0.1),
]
DIVERGENCES = [claim for claim in CLAIMS if not claim.event_complete]
Q = np.concatenate([[0.0], np.geomspace(1e-300, 1e-3, 60), np.linspace(0.002, 1, 500)])


@pytest.fixture(params=CLAIMS, ids=str)
def claim(request):
    return request.param


def test_region_is_concave_increasing_and_allows_equality(claim):
    g = claim.region(Q)
    assert np.all(np.diff(g) >= -1e-12)
    assert np.all(g >= Q - 1e-12)
    assert g[-1] == 1.0
    x = np.linspace(0.001, 0.999, 999)
    assert np.all(np.diff(claim.region(x), 2) <= 1e-9)


def test_region_keeps_its_tail(claim):
    tiny = claim.region(1e-300)
    assert 0 < tiny <= 1 or isinstance(claim, dp.TradeoffDP)
    assert not np.isnan(claim.region(Q)).any()


def test_trade_off_is_one_minus_region(claim):
    assert claim.tradeoff(Q) == pytest.approx(1 - claim.region(Q), abs=1e-9)


def test_region_inverse_is_the_smallest_allowed(claim):
    p = np.linspace(0.01, 0.99, 99)
    q = claim.region_inverse(p)
    assert np.all(claim.region(q) >= p - 1e-7)
    inside = q > 1e-9
    assert np.all(claim.region(q[inside] * (1 - 1e-6)) <= p[inside] + 1e-9)


def test_slope_is_a_supergradient(claim):
    q = np.array([0.003, 0.07, 0.31, 0.62, 0.93])
    value, slope = claim.region(q), np.asarray(claim.slope(q))
    x = np.linspace(0.001, 0.999, 301)
    tangent = value[:, None] + slope[:, None] * (x[None, :] - q[:, None])
    assert np.all(tangent >= claim.region(x)[None, :] - 1e-9)


@pytest.mark.parametrize("point", [(0.5, 0.2), (0.02, 0.001), (0.999, 0.9), (0.2, 0.19)])
def test_needed_is_where_the_region_reaches_the_point(claim, point):
    p, q = point
    needed = claim.needed(p, q)
    assert claim.at(needed).region(q) >= p - 1e-6
    if needed > 1e-9:
        assert claim.at(needed * (1 - 1e-3)).region(q) < p
    assert claim.needed(q, p) == 0 or claim.needed(q, p) <= needed


def test_scalars_give_floats_and_arrays_keep_their_shape(claim):
    assert isinstance(claim.region(0.2), float)
    assert claim.region(np.full((2, 3), 0.2)).shape == (2, 3)
    with pytest.raises(InvalidInput, match=r"probability must lie in \[0, 1\]"):
        claim.region(1.5)


def test_pure_is_approximate_with_delta_zero():
    assert np.array_equal(dp.PureDP(0.7).region(Q), dp.ApproximateDP(0.7, 0.0).region(Q))


def test_gaussian_region_in_the_far_tail():
    assert dp.GaussianDP(1.0).region(1e-300) == pytest.approx(
        np.exp(norm.logcdf(1.0 + norm.ppf(1e-300))), rel=1e-9
    )


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


def test_a_function_is_tabulated_from_below():
    for f in (
        lambda a: norm.cdf(norm.ppf(1 - a) - 1.0),
        lambda a: np.maximum(0, np.maximum(1 - np.e * a, np.exp(-1) * (1 - a))),
        lambda a: (1 - a) ** 2,
    ):
        claim = dp.TradeoffDP(f, ordered=True)
        a = np.linspace(0, 1, 50_001)
        gap = f(a) - claim.tradeoff(a)
        assert gap.min() >= -1e-12
        assert gap.max() < 1e-4


def test_a_function_of_one_number_will_do():
    one = dp.TradeoffDP(lambda a: max(0.0, 0.9 - a) if a < 0.9 else 0.0)
    assert one.tradeoff(0.4) == pytest.approx(0.5, abs=1e-4)


def test_an_unordered_claim_is_about_both_orders():
    points = [(0, 1), (0.1, 0.3), (1, 0)]
    f, both = dp.TradeoffDP(points, ordered=True), dp.TradeoffDP(points)
    a = np.linspace(0, 1, 1001)
    assert both.tradeoff(a) == pytest.approx(np.maximum(f.tradeoff(a), f.f.inverse()(a)), abs=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dp.PureDP(-1), "epsilon must be a number at least 0, got -1"),
        (lambda: dp.PureDP(np.inf), "epsilon"),
        (lambda: dp.PureDP("1"), "epsilon"),
        (lambda: dp.ApproximateDP(1, 1.0), "delta must be a number at least 0 and below 1"),
        (lambda: dp.RenyiDP(1, 0.1), "order must be a number above 1"),
        (lambda: dp.GaussianDP(np.nan), "mu"),
        (lambda: dp.ZeroConcentratedDP(-0.1), "rho"),
        (lambda: dp.ZeroConcentratedDP(0.1, 1.0), "delta must be a number at least 0 and below 1"),
        (lambda: dp.ApproximateDP(1, 0.1, headline="mu"), "headline must be one of"),
        (lambda: dp.RenyiCurveDP((2, 4), (0.1,)), "equally many, got 2 and 1"),
        (lambda: dp.RenyiCurveDP((2, 2), (0.1, 0.2)), "order 2 is given twice"),
        (lambda: dp.RenyiCurveDP((1, 2), (0.1, 0.2)), "order must be a number above 1"),
        (lambda: dp.RenyiCurveDP((2,), (-0.1,)), "epsilon must be a number at least 0"),
        (lambda: dp.RenyiCurveDP((2,), (np.inf,)), "needs an order with a finite epsilon"),
        (lambda: dp.RenyiCurveDP((), ()), "needs an order"),
        (lambda: dp.RenyiCurveDP(2, 0.1), "orders must be a list of numbers, got 2"),
        (lambda: dp.RenyiCurveDP((2,), (0.1,), -1.0), "factor"),
        (lambda: dp.TradeoffDP(3.0), "function of alpha or a list"),
        (lambda: dp.TradeoffDP(lambda a: 1.5 - a), "trade-off function"),
    ],
)
def test_claims_are_validated(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("eps=1", dp.PureDP(1)),
        (" epsilon = .5 ", dp.PureDP(0.5)),
        ("ε<=1e-1", dp.PureDP(0.1)),
        ("eps=1, delta=1e-5", dp.ApproximateDP(1, 1e-5)),
        ("delta=1e-5; eps=1", dp.ApproximateDP(1, 1e-5)),
        ("renyi(order=5)=0.2", dp.RenyiDP(5, 0.2)),
        ("RDP(2.5) <= 1", dp.RenyiDP(2.5, 1)),
        ("rho=0.5", dp.ZeroConcentratedDP(0.5)),
        ("mu=1", dp.GaussianDP(1)),
        ("rho=0.5, delta=1e-6", dp.ZeroConcentratedDP(0.5, 1e-6)),
        ("δ=1e-6; ρ=0.5", dp.ZeroConcentratedDP(0.5, 1e-6)),
        ("renyi(2)=0.1, renyi(4)=0.3", dp.RenyiCurveDP((2, 4), (0.1, 0.3))),
        ("rdp(order=4) <= 0.3; rdp(2) ≤ 0.1", dp.RenyiCurveDP((2, 4), (0.1, 0.3))),
        ("eps=1, delta=1e-5 in delta", dp.ApproximateDP(1, 1e-5, headline="delta")),
        ("(1, 1e-5)-DP in ε", dp.ApproximateDP(1, 1e-5)),
        ("1-dp", dp.PureDP(1)),
        ("(2, 0.1)-Renyi DP", dp.RenyiDP(2, 0.1)),
        ("( .5 , 1e-6 )-ZCDP", dp.ZeroConcentratedDP(0.5, 1e-6)),
    ],
)
def test_claims_from_text(text, claim):
    assert dp.claim(text) == claim


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be text such as"),
        ("privacy", "cannot read 'privacy'"),
        ("eps=one", "cannot read 'eps=one'"),
        ("eps=1, mu=2", "epsilon and mu do not go together"),
        ("eps=1, eps=2", "given twice"),
        ("delta=0.1", "write eps=0, delta=0.1"),
        ("eps=-1", "at least 0"),
        ("__import__('os')", "cannot read"),
        ("f-DP", r"has no text.*TradeoffDP\(points\).*from_delta"),
        ("f-DP lowered by 0.1", "has no text"),
        ("Rényi DP at 3 orders (2 to 8)", r"values are missing.*RenyiCurveDP"),
        ("renyi(2)=0.1, eps=1", "'eps=1' does not go with a Rényi claim"),
        ("renyi(2)=0.1, renyi(2)=0.2", "order 2 is given twice"),
        ("eps=1 in delta", "only a claim with eps and delta"),
        ("(1, 2)-GDP", "one parameter"),
        ("2-Rényi DP", "an order and an epsilon"),
        ("rho=0.5, mu=1", "mu and rho do not go together"),
        ("(1, 1)-DP", "below 1"),
    ],
)
def test_text_that_is_no_claim_is_explained(text, words):
    with pytest.raises(InvalidInput, match=words):
        dp.claim(text)


# --- text and JSON


@pytest.mark.parametrize("one", CLAIMS, ids=str)
def test_json_brings_the_claim_back(one):
    again = dp.Claim.from_json(one.to_json())
    assert again == one
    assert hash(again) == hash(one)
    assert again.value == one.value


def test_json_of_claims_without_the_newer_fields_is_read():
    old = dp.Claim.from_dict({"type": "ApproximateDP", "epsilon": 1.0, "delta": 1e-5})
    assert old == dp.ApproximateDP(1.0, 1e-5)
    old = dp.Claim.from_dict({"type": "ZeroConcentratedDP", "rho": 0.5})
    assert old == dp.ZeroConcentratedDP(0.5)


positive = st.floats(min_value=0, max_value=1e6, allow_subnormal=True)
below_one = st.floats(min_value=0, max_value=1, exclude_max=True)
above_one = st.floats(min_value=1, max_value=1e6, exclude_min=True)
WITH_TEXT = st.one_of(
    st.builds(dp.PureDP, positive),
    st.builds(dp.ApproximateDP, positive, below_one, st.sampled_from(["epsilon", "delta"])),
    st.builds(dp.GaussianDP, positive),
    st.builds(dp.RenyiDP, above_one, positive),
    st.builds(dp.ZeroConcentratedDP, positive, below_one),
)


@given(WITH_TEXT)
@settings(max_examples=300, deadline=None)
def test_what_is_printed_is_read_back(one):
    assert dp.claim(str(one)) == one
    assert dp.claim(f"  {one} ") == one


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (dp.PureDP(1), "1-DP"),
        (dp.PureDP(0.1), "0.1-DP"),
        (dp.PureDP(0.30000000000000004), "0.30000000000000004-DP"),
        (dp.ApproximateDP(1, 1e-5), "(1, 1e-05)-DP"),
        (dp.ApproximateDP(1, 1e-5, headline="delta"), "(1, 1e-05)-DP in δ"),
        (dp.GaussianDP(1), "1-GDP"),
        (dp.RenyiDP(2, 0.1), "(2, 0.1)-Rényi DP"),
        (dp.ZeroConcentratedDP(0.5), "0.5-zCDP"),
        (dp.ZeroConcentratedDP(0.5, 1e-6), "(0.5, 1e-06)-zCDP"),
        (dp.RenyiCurveDP((2, 4, 8), (0.1, 0.2, 0.4)), "Rényi DP at 3 orders (2 to 8)"),
        (dp.RenyiCurveDP((2,), (0.1,)), "Rényi DP at order 2"),
        (dp.RenyiCurveDP((2, 4), (0.1, 0.2), 1.5), "1.5 × Rényi DP at 2 orders (2 to 4)"),
        (dp.TradeoffDP([(0, 1), (1, 0)], gap=0.1), "f-DP lowered by 0.1"),
    ],
)
def test_how_claims_are_printed(one, text):
    assert str(one) == text


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (dp.ApproximateDP(1, 1e-5), "ApproximateDP(epsilon=1.0, delta=1e-05)"),
        (
            dp.ApproximateDP(1, 1e-5, headline="delta"),
            "ApproximateDP(epsilon=1.0, delta=1e-05, headline='delta')",
        ),
        (dp.ZeroConcentratedDP(0.5), "ZeroConcentratedDP(rho=0.5)"),
        (dp.ZeroConcentratedDP(0.5, 0.1), "ZeroConcentratedDP(rho=0.5, delta=0.1)"),
        (
            dp.RenyiCurveDP([4, 2], np.array([0.2, 0.1])),
            "RenyiCurveDP(orders=(2.0, 4.0), epsilons=(0.1, 0.2))",
        ),
    ],
)
def test_repr_leaves_defaults_out(one, text):
    assert repr(one) == text
    assert eval(text, vars(dp).copy() | {type(one).__name__: type(one)}) == one


# --- regions, against brute force


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


# --- the largest δ


@pytest.mark.parametrize("one", CLAIMS, ids=str)
def test_delta_is_the_supremum_over_events(one):
    eps = np.array([-1.0, 0.0, 0.1, 0.5, 1.0, 2.0, 5.0])
    q = np.concatenate([[0.0], 1 / (1 + np.exp(-np.linspace(-40, 10, 15_001))), [1.0]])
    gain = np.max(one.region(q)[None, :] - np.exp(eps)[:, None] * q[None, :], axis=1)
    found = one.delta_at(eps)
    assert np.all(found >= gain - 1e-12)
    assert found == pytest.approx(gain, abs=1e-3)  # kinks lie between the points
    assert isinstance(one.delta_at(0.5), float)
    assert one.delta_at(eps.reshape(1, -1)).shape == (1, 7)
    assert one.delta_at(np.inf) == pytest.approx(one.region(0.0), abs=1e-12)
    assert one.delta_at(-np.inf) == 1.0
    with pytest.raises(InvalidInput, match="epsilon must be a number"):
        one.delta_at(np.nan)


@pytest.mark.parametrize("one", [*DIVERGENCES, dp.GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("eps", [0.3, 1.5])
def test_delta_is_no_more_than_rounding_above_the_supremum(one, eps):
    def lost(v):
        q = float(expit(v))
        return math.exp(eps) * q - one.region(q)

    start = min(np.linspace(-40, 10, 201), key=lost)
    best = -minimize_scalar(lost, bounds=(start - 0.3, start + 0.3), method="bounded").fun
    assert best * (1 - 1e-9) <= one.delta_at(eps) <= best * (1 + 1e-6) + 1e-9


def test_delta_of_gaussian_dp_as_an_accountant_has_it():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    high = pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3)
    low = pld.from_gaussian_mechanism(
        1.0, value_discretization_interval=1e-3, pessimistic_estimate=False
    )
    for eps in (0.0, 0.3, 1.0, 3.0, 6.0):
        ours = dp.GaussianDP(1.0).delta_at(eps)
        assert low.get_delta_for_epsilon(eps) * (1 - 1e-6) <= ours
        assert ours <= high.get_delta_for_epsilon(eps) * (1 + 1e-6)


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


# --- Rényi divergences


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 2.0, 40.0, 2000.0])
def test_pure_dp_allows_the_divergence_of_randomized_response(epsilon):
    orders = np.array([1.001, 1.5, 2.0, 10.0, 300.0])
    claim = dp.PureDP(epsilon)
    found = claim.renyi(orders)
    assert np.all((found >= 0) & (found <= epsilon))
    if 0 < epsilon < 50:
        p = 1 / (1 + math.exp(-epsilon))
        with np.errstate(over="ignore"):
            exact = dp.Masses([p, 1 / (1 + math.exp(epsilon))], [1 - p, p] if p < 1 else [0, 1])
        if epsilon in (0.3, 2.0):
            assert found == pytest.approx(exact.renyi(orders), rel=1e-9)
    if epsilon == 1e-9:
        assert found == pytest.approx(orders * epsilon**2 / 2, rel=1e-6)
    if epsilon == 2000.0:
        assert found[2] == pytest.approx(2000.0)
    assert claim.renyi(np.inf) == epsilon
    assert dp.ApproximateDP(epsilon, 0.0).renyi(2.0) == claim.renyi(2.0)
    assert dp.ApproximateDP(epsilon, 1e-9).renyi(2.0) == np.inf


def test_no_pair_under_pure_dp_has_a_larger_divergence(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        pair = dp.Masses(*rng.dirichlet(np.ones(5), 2))
        epsilon = max(pair.epsilon(), pair.swap().epsilon())
        for order in (1.2, 2.0, 7.0):
            assert pair.renyi(order) <= dp.PureDP(epsilon).renyi(order) + 1e-12


def test_divergences_that_are_stated():
    assert dp.GaussianDP(2.0).renyi(3.0) == 6.0
    assert dp.GaussianDP(0.0).renyi(3.0) == 0.0
    assert dp.ZeroConcentratedDP(0.5).renyi([2.0, 3.5]) == pytest.approx([1.0, 1.75])
    assert dp.ZeroConcentratedDP(0.5, 1e-9).renyi(2.0) == np.inf
    assert dp.RenyiDP(2, 0.1).renyi(2.0) == 0.1
    assert dp.RenyiDP(2, 0.0).renyi(3.0) == np.inf
    assert dp.RenyiCurveDP((2, 4), (0.1, 0.3), 2.0).renyi([2.0, 3.0, 4.0, 5.0]) == pytest.approx(
        [0.2, np.inf, 0.6, np.inf]
    )
    assert dp.TradeoffDP([(0, 1), (1, 0)]).renyi(2.0) == np.inf
    for one in CLAIMS:
        with pytest.raises(InvalidInput, match="order must be a number above 1"):
            one.renyi(1.0)


def test_the_parameter_a_divergence_needs():
    assert dp.RenyiDP(2, 0.1).from_renyi(2.0, 0.7) == 0.7
    assert dp.RenyiDP(2, 0.1).from_renyi(3.0, 0.7) == 0.0  # it says nothing of order 3
    assert dp.ZeroConcentratedDP(0.5).from_renyi(4.0, 1.0) == 0.25
    assert dp.ZeroConcentratedDP(0.5, 0.1).from_renyi(4.0, 1.0) == 0.0  # any divergence is allowed
    curve = dp.RenyiCurveDP((2, 4), (0.1, 0.0))
    assert curve.from_renyi(2.0, 0.15) == pytest.approx(1.5)
    assert curve.from_renyi(4.0, 0.15) == np.inf
    assert curve.from_renyi(4.0, 0.0) == 0.0


def test_orders_of_a_claim():
    assert dp.RenyiDP(2, 0.1).orders == (2.0,)
    assert dp.RenyiCurveDP([4, 2], [0.3, 0.1]).orders == (2.0, 4.0)
    zcdp = (1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8, 12, 16)
    assert dp.ZeroConcentratedDP(0.5).orders == zcdp
    for one in CLAIMS:
        assert bool(one.orders) is not one.event_complete


@pytest.mark.parametrize("one", [c for c in CLAIMS if c.event_complete], ids=str)
def test_claims_about_events_have_no_order(one):
    for ask in (
        lambda: one.from_renyi(2.0, 0.1),
        lambda: one.moment_limit(2.0, 3.0),
        lambda: one.from_moment(2.0, 3.0, 1.5),
        lambda: one.gaussian_like(),
    ):
        with pytest.raises(InvalidInput, match="is a claim about events"):
            ask()


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
            assert one.gaussian_like().mu == pytest.approx(mu)


# --- moments


def moment(order, w, p, q):
    return order * p @ w ** (order - 1) - (order - 1) * q @ w**order


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
@pytest.mark.parametrize("order", [1.1, 2.0, 6.0])
def test_no_mixture_has_a_moment_above_its_limit(delta, order, seed):
    rng = np.random.default_rng(seed)
    largest = 0.0
    for _ in range(200):
        inner, outer = rng.dirichlet(np.full(5, 2.0), 2), rng.dirichlet(np.full(5, 0.2), 2)
        if rng.random() < 0.5:  # P'' where Q has least: the worst there is
            outer = np.eye(5)[[np.argmax(inner[0] / inner[1]), np.argmin(inner[0] / inner[1])]]
        # ρ just large enough at this order; at others it does not matter for this moment
        rho = max(0.0, float(dp.Masses(*inner).renyi(order))) / order
        p, q = (1 - delta) * inner + delta * outer
        top = float(rng.choice([0.5, 2.0, 8.0]))
        limit = dp.ZeroConcentratedDP(rho, delta).moment_limit(order, top)
        with np.errstate(divide="ignore"):
            best = np.minimum(p / q, top)  # the w that maximises, as far as it may go
        for w in (best, np.minimum(inner[0] / inner[1], top), rng.random(5) * top, np.full(5, top)):
            found = moment(order, w, p, q)
            assert found <= limit * (1 + 1e-12)
            largest = max(largest, found / limit)
        needed = dp.ZeroConcentratedDP(0.0, delta).from_moment(
            order, top, moment(order, best, p, q)
        )
        assert needed <= rho * (1 + 1e-9) + 1e-12
    assert largest > 0.9  # the limit is close to what can happen


@pytest.mark.parametrize("one", DIVERGENCES, ids=str)
def test_from_moment_undoes_moment_limit(one):
    for order in one.orders:
        for top in (0.0, 1.0, 30.0):
            limit = one.moment_limit(order, top)
            assert one.from_moment(order, top, limit) == pytest.approx(one.value, rel=1e-6)
            assert one.at(0.0).moment_limit(order, top) <= limit
        assert one.from_moment(order, 30.0, -5.0) == 0.0
        assert one.from_moment(order, 30.0, 1.0) == 0.0
        assert one.from_moment(order, 30.0, np.inf) == np.inf
        with pytest.raises(InvalidInput, match="mean"):
            one.from_moment(order, 30.0, np.nan)


def test_moments_do_not_overflow():
    assert dp.RenyiDP(64, 200.0).moment_limit(64.0, 1e3) == np.inf
    assert dp.RenyiDP(2, 0.1).moment_limit(3.0, 1e3) == np.inf  # nothing is claimed of order 3
    assert dp.RenyiDP(2, 0.1).from_moment(3.0, 1e3, 50.0) == 0.0
    leaky = dp.ZeroConcentratedDP(0.1, 1e-6)
    assert leaky.moment_limit(16.0, 1e30) == np.inf
    assert leaky.from_moment(16.0, 1e30, 1e300) == 0.0
    assert leaky.moment_limit(2.0, math.inf) == np.inf
    assert leaky.moment_limit(2.0, 0.0) == pytest.approx((1 - 1e-6) * math.exp(0.2))
    with pytest.raises(InvalidInput, match="top"):
        leaky.moment_limit(2.0, -1.0)
    with pytest.raises(InvalidInput, match="order must be a number above 1"):
        leaky.moment_limit(1.0, 2.0)


# --- the parameter


def test_a_bound_can_be_on_delta():
    claim = dp.ApproximateDP(0.5, 0.01, headline="delta")
    assert (claim.parameter, claim.symbol, claim.value) == ("delta", "δ", 0.01)
    assert claim.at(0.2) == dp.ApproximateDP(0.5, 0.2, headline="delta")
    assert claim.largest == 1 - 1e-12
    assert np.array_equal(claim.region(Q), dp.ApproximateDP(0.5, 0.01).region(Q))
    assert claim != dp.ApproximateDP(0.5, 0.01)
    claim.at(claim.largest)  # is allowed


@given(below_one, below_one, st.floats(0, 5))
@settings(max_examples=200, deadline=None)
def test_needed_delta_is_the_least_that_allows(p, q, epsilon):
    claim = dp.ApproximateDP(epsilon, 0.0, headline="delta")
    needed = claim.needed(p, q)
    assume(needed < 1 - 1e-9)
    assert claim.at(needed).region(q) >= p - 1e-9
    if needed > 1e-6:
        assert claim.at(needed * (1 - 1e-6)).region(q) < p


def test_largest_value_of_the_parameter():
    assert dp.PureDP(1).largest == dp.RenyiCurveDP((2,), (0.1,)).largest == math.inf
    assert dp.TradeoffDP([(0, 1), (1, 0)]).largest == 1.0


@pytest.mark.parametrize(
    ("one", "near", "far"),
    [
        (dp.PureDP(0.1), 1.09, 1.1),
        (dp.PureDP(3.0), 5.99, 6.0),
        (dp.ApproximateDP(2.0, 1e-5), 3.99, 4.0),
        (dp.ApproximateDP(2.0, 1e-5, headline="delta"), 0.1, 0.10001),
        (dp.ApproximateDP(2.0, 0.3, headline="delta"), 0.59, 0.6),
        (dp.ApproximateDP(2.0, 0.9, headline="delta"), 0.99, 1.0),
        (dp.GaussianDP(1.0), 1.99, 2.0),
        (dp.ZeroConcentratedDP(0.5), 1.99, 2.001),  # μ = 1 and 2
        (dp.ZeroConcentratedDP(0.5, 1e-6), 1.99, 2.001),
        (dp.RenyiDP(10, 5.0), 19.9, 20.01),
        (dp.RenyiCurveDP((2, 10), (2.0, 5.0)), 3.99, 4.001),
        (dp.TradeoffDP([(0, 1), (1, 0)]), 0.49, 0.5),
        (dp.TradeoffDP([(0, 1), (1, 0)], gap=0.8), 0.99, 1.0),
    ],
)
def test_what_is_far_above_a_claim(one, near, far):
    assert not one.far_above(one.value)
    assert not one.far_above(near)
    assert one.far_above(far)
    assert one.far_above(math.inf)
    assert one.far_above(math.nan)


# --- the claim of a privacy profile

A = np.concatenate(
    [
        np.geomspace(1e-14, 1e-2, 300),
        np.linspace(0.01, 0.99, 700),
        1 - np.geomspace(1e-2, 1e-12, 99),
    ]
)


@pytest.mark.parametrize(
    ("truth", "within"),
    [
        (dp.GaussianDP(0.01), 1e-4),
        (dp.GaussianDP(1.0), 1e-4),
        (dp.GaussianDP(8.0), 3e-4),
        (dp.PureDP(0.0), 3e-15),
        (dp.PureDP(0.013), 4e-5),
        (dp.PureDP(1.1), 3e-15),
        (dp.PureDP(30.0), 3e-15),
        (dp.ApproximateDP(1.1, 1e-5), 3e-15),
        (dp.ApproximateDP(0.0, 0.1), 3e-15),
        (dp.ApproximateDP(2.0, 0.6), 3e-15),
    ],
    ids=str,
)
def test_the_curve_of_a_profile_is_close_from_below(truth, within):
    claim = dp.TradeoffDP.from_delta(truth.delta_at)
    gap = truth.tradeoff(A) - claim.tradeoff(A)
    assert gap.min() >= -1e-18
    assert gap.max() <= within
    assert np.all(claim.region(A) >= truth.region(A) - 4.5e-16)
    eps = np.linspace(0, 12, 301)
    assert np.all(claim.delta_at(eps) >= truth.delta_at(eps) - 4.5e-16)
    assert claim.f.inverse()(A) == pytest.approx(claim.tradeoff(A), abs=1e-12)  # symmetric


def test_the_curve_is_exactly_the_largest_of_its_lines():
    asked = []

    def profile(eps):
        asked.extend(np.ravel(eps))
        return dp.GaussianDP(1.3).delta_at(eps)

    claim = dp.TradeoffDP.from_delta(profile)
    eps = np.unique(asked)[:, None]
    rest, ratio = 1 - dp.GaussianDP(1.3).delta_at(eps), np.exp(eps)
    a = np.concatenate([A, claim.f.x])
    lines = np.maximum(rest - ratio * a, (rest - a) / ratio).max(axis=0)
    gap = np.maximum(lines, 0.0) - claim.tradeoff(a)
    assert gap.min() >= 0
    assert gap.max() < 3e-15


def test_a_profile_that_takes_one_number_or_is_rounded_up():
    true = dp.GaussianDP(1.0)

    def rounded(eps):
        if eps > 100:
            return 0.0
        return math.ceil(1000 * true.delta_at(eps)) / 1000

    claim = dp.TradeoffDP.from_delta(rounded)
    gap = true.tradeoff(A) - claim.tradeoff(A)
    assert gap.min() >= 0
    assert gap.max() < 2e-3
    scalar = dp.TradeoffDP.from_delta(lambda eps: max(0.0, 1 - math.exp((eps - 1.0) / 2)))
    laplace = dp.zoo.Laplace(1.0).tradeoff(A, (0.0, 1.0))
    assert np.all(scalar.tradeoff(A) <= laplace)
    assert scalar.tradeoff(A) == pytest.approx(laplace, abs=1e-4)
    constant = dp.TradeoffDP.from_delta(lambda eps: 0.1)  # one number whatever is asked
    assert constant.tradeoff(A) == pytest.approx(dp.ApproximateDP(0.0, 0.1).tradeoff(A), abs=1e-14)


@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_the_claim_of_an_accountant(rate):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    found = pld.from_gaussian_mechanism(1.0, sampling_prob=rate, value_discretization_interval=1e-3)
    claim = dp.TradeoffDP.from_delta(found.get_delta_for_epsilon)
    eps = np.linspace(0, 4, 41)
    said = np.array([found.get_delta_for_epsilon(e) for e in eps])
    assert np.all(claim.delta_at(eps) >= said)
    assert claim.delta_at(eps) == pytest.approx(said, abs=1e-4)
    # what the mechanism does: N(0, 1) against (1 − r) N(0, 1) + r N(1, 1), in both orders
    z = np.linspace(-8, 8, 2001)
    plain, mixed = norm.sf(z), (1 - rate) * norm.sf(z) + rate * norm.sf(z - 1)
    for p, q in ((mixed, plain), (1 - plain, 1 - mixed)):
        p, q = np.clip(p, 0, 1), np.clip(q, 0, 1)
        assert np.all(p <= claim.region(q) + 1e-12)
        loose = claim.region(q) - p
        assert loose.min() < 1e-4  # and the claim is reached somewhere


def test_a_falling_step_profile_is_never_overstated(seed):
    # any non-increasing upper bound of a true profile gives a claim the truth satisfies
    rng = np.random.default_rng(seed)
    for _ in range(10):
        masses = dp.Masses(*rng.dirichlet(np.ones(4), 2))
        knots = np.sort(rng.uniform(0, 3, 6))

        def profile(eps, masses=masses, knots=knots):
            left = np.concatenate([[0.0], knots])[np.searchsorted(knots, eps, side="right")]
            return max(float(masses.delta(left)), float(masses.swap().delta(left)))

        claim = dp.TradeoffDP.from_delta(profile)
        curve = masses.tradeoff_curve()
        assert np.all(curve(A) >= claim.tradeoff(A) - 1e-15)
        assert np.all(curve.inverse()(A) >= claim.tradeoff(A) - 1e-15)


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (0.1, "f must be a function of epsilon"),
        (lambda eps: np.nan * eps, "must lie in .*got nan at epsilon = 0"),
        (lambda eps: 1.5 + 0 * eps, "got 1.5 at epsilon = 0"),
        (lambda eps: -0.1 + 0 * eps, "got -0.1 at epsilon = 0"),
        (lambda eps: np.clip(eps / 10, 0, 1), "must not increase, got 0 at epsilon = 0 and 0.1"),
        (lambda eps: 1.0 + 0 * eps, "nothing is claimed"),
        (lambda eps: np.where(eps < 3.3, 0.4, 0.5) * (eps < 200), "must not increase"),
    ],
)
def test_what_is_no_profile_is_explained(profile, words):
    with pytest.raises(InvalidInput, match=words):
        dp.TradeoffDP.from_delta(profile)
