import numpy as np
import pytest
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
]
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
    claim = dp.ZeroConcentratedDP(0.4)
    for order in claim.orders[::5]:
        assert np.all(claim.region(Q) <= claim.renyi(order).region(Q) + 1e-9)


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
    ],
)
def test_text_that_is_no_claim_is_explained(text, words):
    with pytest.raises(InvalidInput, match=words):
        dp.claim(text)
