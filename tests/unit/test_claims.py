"""What holds of every kind of claim."""

import dataclasses
import math

import numpy as np
import pytest
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
DIVERGENCES = [claim for claim in CLAIMS if not claim.set_by_events]
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


def test_another_theta_is_another_claim(claim):
    """Probabilities and θ broadcast, and the answers are those of the claim with that θ."""
    q, thetas = np.array([0.0, 1e-9, 0.03, 0.4, 0.97, 1.0]), np.array([0.0, 0.01, 0.3, 0.9])
    for ask in ("region", "slope", "tradeoff", "region_inverse"):
        found = getattr(claim, ask)(q, thetas[:, None])
        for theta, row in zip(thetas, found, strict=True):
            assert row == pytest.approx(getattr(claim.at(theta), ask)(q), rel=1e-12, abs=1e-15)
    for theta, limit in zip(thetas, claim.renyi(3.0, thetas), strict=True):
        assert limit == pytest.approx(claim.at(theta).renyi(3.0), rel=1e-12)


def test_needed_takes_arrays(claim):
    p, q = np.array([0.0, 0.2, 0.5, 0.99, 1.0]), np.array([0.0, 0.1, 0.6, 0.2, 0.9])
    assert list(claim.needed(p, q)) == [claim.needed(*point) for point in zip(p, q, strict=True)]


def test_scalars_give_floats_and_arrays_keep_their_shape(claim):
    assert isinstance(claim.region(0.2), float)
    assert claim.region(np.full((2, 3), 0.2)).shape == (2, 3)
    with pytest.raises(InvalidInput, match=r"probability must lie in \[0, 1\]"):
        claim.region(1.5)


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
        (lambda: dp.RenyiCurveDP(2, 0.1), "orders must be a list, got 2"),
        (lambda: dp.RenyiCurveDP((2,), (0.1,), -1.0), "factor"),
        (lambda: dp.TradeoffDP(3.0), "function of alpha or a list"),
        (lambda: dp.TradeoffDP(lambda a: 1.5 - a), "trade-off function"),
    ],
)
def test_claims_are_validated(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


# --- JSON and repr


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


# --- Rényi divergences


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


def test_orders_of_a_claim():
    assert dp.RenyiDP(2, 0.1).orders == (2.0,)
    assert dp.RenyiCurveDP([4, 2], [0.3, 0.1]).orders == (2.0, 4.0)
    zcdp = (1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8, 12, 16)
    assert dp.ZeroConcentratedDP(0.5).orders == zcdp
    for one in CLAIMS:
        assert bool(one.orders) is not one.set_by_events


@pytest.mark.parametrize("one", [c for c in CLAIMS if c.set_by_events], ids=str)
def test_claims_about_events_have_no_order(one):
    for ask in (
        lambda: one.from_renyi(2.0, 0.1),
        lambda: one.divergence_limit(2.0),
        lambda: one.from_divergence(2.0, 1.5),
        lambda: one.gaussian_proxy(),
    ):
        with pytest.raises(InvalidInput, match="is a claim about events"):
            ask()


# --- divergences


@pytest.mark.parametrize("one", DIVERGENCES, ids=str)
def test_from_divergence_undoes_divergence_limit(one):
    for order in one.orders:
        limit = one.divergence_limit(order)
        assert one.from_divergence(order, limit) == pytest.approx(one.value, rel=1e-6)
        assert one.at(0.0).divergence_limit(order) <= limit
        assert one.from_divergence(order, -5.0) == 0.0
        assert one.from_divergence(order, np.inf) == np.inf
        with pytest.raises(InvalidInput, match="divergence"):
            one.from_divergence(order, np.nan)


# --- the parameter


def test_largest_value_of_the_parameter():
    assert dp.PureDP(1).largest == dp.RenyiCurveDP((2,), (0.1,)).largest == math.inf
    assert dp.TradeoffDP([(0, 1), (1, 0)]).largest == 1.0


def test_a_claim_without_a_method_is_told_which_and_what_it_returns():
    @dataclasses.dataclass(frozen=True, eq=False, repr=False)
    class Mine(dp.Claim):
        epsilon: float

    for ask, said in (
        (
            lambda c: c.region(0.5),
            r"Mine must define region_and_slope\(q, theta\), which returns two",
        ),
        (lambda c: c.tradeoff(0.5), r"tradeoff\(alpha, theta\), which returns f\(α\)"),
        (lambda c: c.needed(0.5, 0.1), r"needed\(p, q\), which returns the smallest θ"),
        (lambda c: c.delta_at(0.5), r"_delta\(epsilon\), which returns the largest δ"),
    ):
        with pytest.raises(InvalidInput, match=f"{said}.*“A claim”"):
            ask(Mine(1.0))


def test_titles_shorten_long_decimals_alone():
    one = dp.ApproximateDP(0.7374541563163668, 1e-5)
    assert (one.short, str(one)) == ("(0.7375, 1e-05)-DP", "(0.7374541563163668, 1e-05)-DP")
    assert dp.PureDP(1.0001).short == "1.0001-DP"
    assert dp.PureDP(1.2345678901e-9).short == "1.235e-09-DP"
    verdict = dp.audit_counts(450, 1000, 184, 1000, one)
    assert "0.7374" not in verdict.headline + verdict.view().sentence
    assert dp.Verdict.from_json(verdict.to_json()).claim == one


@pytest.mark.parametrize(
    ("order", "remedy"), [(0.5, "not supported"), (1, "not supported"), (math.inf, "use PureDP")]
)
def test_an_order_that_is_refused_is_sent_to_its_place(order, remedy):
    with pytest.raises(InvalidInput, match=f"above 1, got {order}; .*{remedy}"):
        dp.RenyiDP(order, 1.0)


def test_no_epsilon_has_delta_zero_for_gaussian_noise():
    """Its δ is rounded to 0 from ε = 39 on."""
    assert dp.GaussianDP(1.0).epsilon_at(0) == math.inf
    assert dp.GaussianDP(0.0).epsilon_at(0) == 0.0
    assert dp.PureDP(1.0).epsilon_at(0) == pytest.approx(1.0)
