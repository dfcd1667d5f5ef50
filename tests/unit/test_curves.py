"""Curves: round trips, safe sides, and agreement with dp-accounting."""

import numpy as np
import pytest
from tests.helpers import finite_pairs

import dpassay as dp
from dpassay.errors import InvalidInput

EPS = np.linspace(0, 3, 61)
ALPHA = np.linspace(0, 1, 501)
PAIR = (0.0, 1.0)
FINITE = finite_pairs()


@pytest.mark.parametrize("masses", FINITE)
def test_trade_off_to_delta_and_back(masses):
    curve = masses.tradeoff_curve()
    assert curve.delta(EPS) == pytest.approx(masses.delta(EPS), abs=1e-12)
    grid = np.linspace(0, 20, 6001)
    spectrum = curve.spectrum(grid)
    back = spectrum.tradeoff_curve()
    symmetric = curve.symmetrise()
    # finitely many ε see less: the curve that comes back is a lower bound, and a close one
    assert np.all(back(ALPHA) <= symmetric(ALPHA) + 1e-9)
    assert back.distance(symmetric) < 2e-3


def test_symmetrising_gives_a_symmetric_convex_curve_below_both():
    curve = FINITE[2].tradeoff_curve()
    both = curve.symmetrise()
    assert both(ALPHA) == pytest.approx(both.inverse()(ALPHA), abs=1e-12)
    assert np.all(both(ALPHA) <= np.minimum(curve(ALPHA), curve.inverse()(ALPHA)) + 1e-12)
    assert np.all(np.diff(both.y) / np.diff(both.x) <= 1e-12)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_mu_of_a_gaussian_curve(mu):
    x = np.linspace(0.0005, 0.9995, 2000)
    curve = dp.TradeoffCurve(x, dp.GaussianDP(mu).tradeoff(x))
    assert curve.mu() == pytest.approx(mu, rel=1e-6)
    assert curve.fit_gdp("l1") == pytest.approx(mu, abs=2e-3)
    assert curve.fit_gdp("sup") == pytest.approx(mu, abs=2e-3)


def test_gaussian_trade_off_to_delta():
    gaussian = dp.zoo.Gaussian(0.7)
    x = np.concatenate([[0], np.geomspace(1e-12, 1e-3, 500), np.linspace(1e-3, 1, 40_000)])
    curve = dp.TradeoffCurve(x, gaussian.tradeoff(x, PAIR))
    exact = gaussian.delta(EPS, PAIR)
    # a polygon of points on a convex curve lies above it: δ from below
    assert np.all(curve.delta(EPS) <= exact + 1e-12)
    assert curve.delta(EPS) == pytest.approx(exact, abs=1e-5)


def test_spectrum_interpolates_on_the_safe_side():
    exact = dp.zoo.Gaussian(1.0)
    coarse = dp.Spectrum(EPS[::10], exact.delta(EPS[::10], PAIR))
    assert np.all(coarse(EPS) >= exact.delta(EPS, PAIR) - 1e-12)
    for delta in (0.3, 0.1, 0.02):
        eps = coarse.epsilon(delta)
        assert exact.delta(eps, PAIR) <= delta + 1e-12
    with pytest.warns(UserWarning, match="on the whole grid of this curve"):
        assert coarse.epsilon(1e-9) == np.inf


def test_certified_values_between_grid_points_come_from_the_right():
    spectrum = dp.Spectrum([0.0, 1.0], [0.5, 0.2], lower=[0.4, 0.1])
    assert spectrum.certified([0.0, 0.5, 1.0, 1.5]).tolist() == [0.4, 0.1, 0.1, 0.0]


def test_renyi_curve_interpolates_on_the_safe_side():
    laplace = dp.zoo.Laplace(0.5)
    orders = np.linspace(1.1, 20, 400)
    coarse = dp.RenyiCurve(orders[::57], laplace.renyi(orders[::57], PAIR))
    inside = orders <= coarse.x[-1]
    assert np.all(coarse(orders[inside]) >= laplace.renyi(orders[inside], PAIR) - 1e-12)


def test_renyi_to_approximate_dp_agrees_with_dp_accounting():
    from dp_accounting.rdp import rdp_privacy_accountant

    orders = np.linspace(1.5, 60, 500)
    for sigma in (0.8, 2.0):
        curve = dp.RenyiCurve(orders, dp.zoo.Gaussian(sigma).renyi(orders, PAIR))
        for delta in (1e-3, 1e-6):
            theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, curve.y, delta)
            assert curve.approximate_dp(delta) == pytest.approx(theirs, rel=1e-6)
            assert dp.zoo.Gaussian(sigma).delta(curve.approximate_dp(delta), PAIR) <= delta


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dp.Masses([0.5, 0.6], [0.5, 0.5]), "sum to 1"),
        (lambda: dp.Masses([1.5, -0.5], [0.5, 0.5]), "non-negative"),
        (lambda: dp.Masses([1.0], [0.5, 0.5]), "equally long"),
        (lambda: dp.TradeoffCurve([0, 0.5], [1]), "equally many"),
        (lambda: dp.TradeoffCurve([0.5, 0.2], [0.1, 0.2]), "increasing"),
        (lambda: dp.Spectrum([0, 1], [0.1, np.nan]), "without NaN"),
        (lambda: dp.Spectrum([0, 1], [0.5, 0.1])(2.0), "grid of this curve"),
        (lambda: dp.RenyiCurve([0.5, 2], [1, 1]), "orders above 1"),
    ],
)
def test_bad_curves_are_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


def test_a_curve_prints_what_backs_it_and_its_notes():
    def apart(x, size, rng):
        return 10 * x + rng.random(size)

    said = str(dp.renyi.curve(apart, (0, 1), orders=[2, 64], n=500, rng=0))
    assert "at all orders at once (asymptotic)" in said
    assert "softmax (heuristic)" in said
    assert "note:" in said
    spectrum = str(dp.spectrum.estimate(dp.zoo.Laplace(), (0.0, 1.0), n=500, rng=0))
    assert "with confidence 0.95 (exact)" in spectrum
    assert "(heuristic)" in spectrum


@pytest.mark.parametrize("curve", [dp.RenyiCurve, dp.Spectrum, dp.TradeoffCurve])
@pytest.mark.parametrize("points", [(None, [1, 2]), ([2, 3], None), (0, 0)])
def test_curves_without_points_are_refused(curve, points):
    with pytest.raises(InvalidInput):
        curve(*points)


def test_a_distance_takes_a_claim_as_well_as_a_curve():
    alpha = np.linspace(0, 1, 101)
    claim = dp.GaussianDP(1.0)
    curve = dp.TradeoffCurve(alpha, claim.tradeoff(alpha))
    assert curve.distance(claim) == curve.distance(claim.tradeoff) < 0.02
    with pytest.raises(InvalidInput, match="a curve, a claim or a function"):
        curve.distance("mu=1")


def test_a_spectrum_of_one_point_is_printed_once():
    one = dp.Spectrum([1.0], [0.1365], lower=[0.06928], confidence=0.95)
    assert str(one) == "δ(1) = 0.1365\n  at least 0.06928, with confidence 0.95 (exact)"


def test_charts_take_claims_and_functions_and_name_what_they_cannot_draw():
    curve = dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff).f
    spectrum = dp.Spectrum([0.0, 1.0], [0.3, 0.1])
    orders = dp.RenyiCurve([2.0, 3.0], [1.0, 1.5])
    zcdp = dp.ZeroConcentratedDP(0.5)
    for drawn, claim in (
        (curve, dp.GaussianDP(1.0)),
        (spectrum, dp.GaussianDP(1.0)),
        (orders, zcdp),
        (orders, dp.PureDP(1.0)),
        (orders, dp.GaussianDP(1.0)),
    ):
        drawn.chart(truth=claim, same=drawn, flat=lambda x: 0 * x)
        for wrong in (3, "eps=1", lambda x: [1.0, 2.0, 3.0]):
            with pytest.raises(InvalidInput, match="truth must be a curve, a claim such as"):
                drawn.chart(truth=wrong)
    orders.chart(truth=dp.zoo.Gaussian(1.0))  # its truth on its own pair
    for claim in (dp.ApproximateDP(1.0, 1e-5), dp.ZeroConcentratedDP(0.5, delta=1e-5)):
        with pytest.raises(
            InvalidInput, match="Pure, Gaussian, zCDP and Rényi claims can be drawn"
        ):
            orders.chart(claim=claim)


def test_a_conversion_of_an_estimated_curve_warns(seed):
    """4.38 is the true ε at δ = 10⁻⁵."""
    found = dp.estimate(dp.zoo.Gaussian(1.0), PAIR, n=20_000, rng=seed).renyi_curve
    with pytest.warns(UserWarning, match="estimate too and may be far below the true ε"):
        assert found.approximate_dp(1e-5) < 4.0


@pytest.mark.parametrize("alpha", [-0.1, 1.2, float("nan"), [0.5, 1.2]])
def test_a_trade_off_curve_refuses_what_is_no_error_rate(alpha):
    with pytest.raises(InvalidInput, match="alpha must"):
        dp.TradeoffCurve([0, 0.25, 1], [1, 0.25, 0])(alpha)
