"""Trade-off functions and privacy profiles as claims: tabulated from below."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from tests.helpers import finite_pairs

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import curve_of_pairs


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


@pytest.mark.parametrize(
    ("f", "fault"),
    [
        (lambda a: (1 - a) * a**0.5, r"at alpha = \S+, f = 0\.384\d lies 0\.38 above a chord"),
        (
            lambda a: (1 - a) * (0.5 + (a > 0.6) * 0.4),
            r"at alpha = 0\.6\d*, f = \S+ lies \S+ above",
        ),
        (lambda a: (1 - a) * np.exp(-a * a), r"at alpha = 0\.1\d+, f = .* above a chord"),
        (
            lambda a: np.minimum(1 - a, 0.5 + 0 * a),
            r"at alpha = 0\.5, f = 0\.5 lies 0\.25 above a chord",
        ),
    ],
)
def test_a_function_that_rises_or_is_not_convex_is_refused(f, fault):
    with pytest.raises(InvalidInput, match=fault):
        dp.TradeoffDP(f)


def test_pairs_on_a_fine_grid_are_never_overstated():
    epsilons = np.linspace(0, 20, 6001)
    for pair in finite_pairs():
        deltas = np.maximum(pair.delta(epsilons), pair.swap().delta(epsilons))
        curve = curve_of_pairs(epsilons, deltas)
        excess = curve.delta(epsilons) - deltas
        assert excess.min() >= 0
        assert excess.max() < 1e-14


def test_a_function_of_one_number_will_do():
    one = dp.TradeoffDP(lambda a: max(0.0, 0.9 - a) if a < 0.9 else 0.0)
    assert one.tradeoff(0.4) == pytest.approx(0.5, abs=1e-4)


def test_an_unordered_claim_is_about_both_orders():
    points = [(0, 1), (0.1, 0.3), (1, 0)]
    f, both = dp.TradeoffDP(points, ordered=True), dp.TradeoffDP(points)
    a = np.linspace(0, 1, 1001)
    assert both.tradeoff(a) == pytest.approx(np.maximum(f.tradeoff(a), f.f.inverse()(a)), abs=1e-12)


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


def test_the_claim_of_an_accountant_with_much_noise():
    """β next to 1 is rounded: 1 − 10⁻¹⁶ may come after 1 − 2·10⁻¹⁶."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    accounting = pytest.importorskip("dp_accounting")
    one = pld.from_gaussian_mechanism(
        16.0,
        sampling_prob=0.5,
        value_discretization_interval=1e-3,
        neighboring_relation=accounting.NeighboringRelation.REPLACE_ONE,
    )
    found = one.self_compose(2)
    claim = dp.TradeoffDP.from_delta(found.get_delta_for_epsilon)
    eps = np.linspace(0, 0.5, 51)
    said = np.array([found.get_delta_for_epsilon(e) for e in eps])
    assert np.all(claim.delta_at(eps) >= said)
    assert claim.delta_at(eps) == pytest.approx(said, abs=1e-5)


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


def test_a_claim_is_printed_with_the_name_of_its_function():
    def conservative(alpha):
        return np.maximum(0.0, 1 - 1.2 * alpha)

    claim = dp.TradeoffDP(conservative)
    assert str(claim) == "f-DP (conservative)"
    assert str(claim.at(0.1)) == "f-DP (conservative) lowered by 0.1"
    assert dp.Claim.from_dict(claim.to_dict()) == claim
    assert str(dp.TradeoffDP(lambda alpha: np.maximum(0.0, 1 - 1.2 * alpha))) == "f-DP"
    assert str(dp.TradeoffDP([(0, 1), (1, 0)], name="mine")) == "f-DP (mine)"


def test_a_function_that_is_not_its_own_inverse_is_noted(seed):
    """max(f, f⁻¹) is tested, which claims more than f says of one order."""
    steep = [(0, 1), (0.2, 0.1), (1, 0)]
    mechanism, draws = (dp.zoo.Laplace(1.0), (0.0, 1.0)), {"n": 500, "rng": seed}
    said = "tested as max(f, f⁻¹)"
    assert said in str(dp.audit(*mechanism, dp.TradeoffDP(steep), **draws))
    assert said in str(dp.tradeoff.audit(*mechanism, dp.TradeoffDP(steep), **draws))
    assert said not in str(dp.TradeoffDP(steep, ordered=True).notes)
    assert not dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff).notes
    assert not dp.TradeoffDP.from_delta(dp.GaussianDP(1.0).delta_at).notes


def test_points_in_two_lists_are_refused_with_the_form_they_take():
    with pytest.raises(InvalidInput, match="as pairs"):
        dp.TradeoffDP(np.array([0.0, 0.2, 1.0]), np.array([1.0, 0.2, 0.0]))


def test_points_claim_chords_and_say_so():
    points = [(a, dp.GaussianDP(1.0).tradeoff(a)) for a in np.linspace(0, 1, 21)]
    claimed = dp.TradeoffDP(points)
    assert claimed.tradeoff(0.025) > dp.GaussianDP(1.0).tradeoff(0.025)
    assert "chords of a convex curve lie above it" in claimed.notes[0]
    assert not dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff).notes
    with pytest.raises(InvalidInput, match=r"beta > 1 − alpha, got the point \(0.5, 0.6\)"):
        dp.TradeoffDP([(0, 1), (0.5, 0.6), (1, 0)])


def test_the_null_hypothesis_of_an_ordered_claim_is_the_second_input():
    narrow, wide = norm(0, 1), norm(0, 2)

    def release(x, size, rng):
        return rng.normal(0, x, size)

    def tradeoff(alpha):  # of N(0, 4), the null hypothesis, against N(0, 1): reject near 0
        return 1 - (2 * narrow.cdf(wide.ppf(0.5 + np.asarray(alpha) / 2)) - 1)

    ordered = dp.TradeoffDP(tradeoff, ordered=True)
    assert not dp.audit(release, (1.0, 2.0), ordered, n=20_000, rng=0).violated
    assert dp.audit(release, (2.0, 1.0), ordered, n=20_000, rng=0).violated


@pytest.mark.parametrize(
    "given",
    [
        dp.GaussianDP(1.0).tradeoff,
        dp.zoo.Gaussian(1.0).tradeoff,
        lambda alpha: max(0.0, 1 - alpha) ** 2,
    ],
)
def test_a_trade_off_function_is_no_privacy_profile(given):
    with pytest.raises(InvalidInput, match=r"claim.delta_at\), and got a trade-off function"):
        dp.TradeoffDP.from_delta(given)


def test_a_profile_that_is_known_from_some_epsilon_on_is_one():
    claim = dp.TradeoffDP.from_delta(lambda epsilon: 1.0 if epsilon < 1 else 0.0)
    assert claim.tradeoff(0.1) == pytest.approx(1 - math.e * 0.1, abs=1e-6)
