"""Each sampler against its own truth, each truth against something independent of it."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

import dpassay as dp
from dpassay.blackbox.zoo.base import laplace, masses
from dpassay.blackbox.zoo.releases import TEN_BITS
from dpassay.blackbox.zoo.svt import first_above
from dpassay.blackbox.zoo.training import ONE_IN_TEN
from dpassay.errors import InvalidInput, NoClosedForm

zoo = dp.zoo
PAIR = (0.0, 1.0)
EPS = np.linspace(0.0, 3.0, 13)
ORDERS = np.array([1.5, 2.0, 5.0, 7.0])
ALPHA = np.linspace(0.001, 0.999, 41)
ONES = np.ones(10, dtype=np.int64)
HALF = np.array([2] * 5 + [0] * 5)
MEMBERS = pytest.mark.parametrize("mechanism", zoo.members(), ids=str)
NAIVE = zoo.NaiveLaplace, zoo.NaiveGaussian
KNOWN = pytest.mark.parametrize(
    "mechanism", [m for m in zoo.members() if not isinstance(m, NAIVE)], ids=str
)


def fine_masses(log_p, log_q, low=-30.0, high=31.0, cells=2_000_000):
    """An independent truth: the densities on a fine grid, as a finite pair."""
    x = np.linspace(low, high, cells + 1)
    mid = (x[1:] + x[:-1]) / 2
    p, q = np.exp(log_p(mid)), np.exp(log_q(mid))
    return dp.Masses(p / p.sum(), q / q.sum())


# --- every member


def truth(f, *arguments):
    try:
        return float(f(*arguments))
    except NoClosedForm:
        return None


@KNOWN
def test_notions_of_a_member_agree_with_each_other(mechanism):
    pair = mechanism.pair
    eps = truth(mechanism.epsilon, pair)
    swapped = (pair[1], pair[0])
    assert truth(mechanism.epsilon, swapped) == pytest.approx(eps)
    if math.isfinite(eps):
        assert mechanism.delta(eps * (1 + 1e-6), pair) <= 1e-6
        assert mechanism.renyi(100.0, pair) <= eps + 1e-6
    renyi = mechanism.renyi(ORDERS, pair)
    assert np.all(np.diff(renyi[np.isfinite(renyi)]) >= -1e-12)
    # the trade-off curve and δ(ε) are two readings of the same thing
    x = np.concatenate([[0], np.geomspace(1e-9, 1e-3, 400), np.linspace(1e-3, 1, 20_000)])
    curve = dp.TradeoffCurve(x, np.clip(mechanism.tradeoff(x, pair), 0, 1))
    assert curve.delta(EPS) == pytest.approx(mechanism.delta(EPS, pair), abs=2e-4)


@KNOWN
def test_equal_inputs_are_perfectly_private(mechanism):
    same = (mechanism.pair[1], mechanism.pair[1])
    assert mechanism.epsilon(same) == pytest.approx(0.0, abs=1e-9)
    assert mechanism.delta(0.0, same) == pytest.approx(0.0, abs=1e-9)
    assert mechanism.renyi(2.0, same) == pytest.approx(0.0, abs=1e-9)
    assert mechanism.tradeoff(0.3, same) == pytest.approx(0.7, abs=1e-9)


@KNOWN
def test_correct_members_keep_their_claim_and_broken_ones_break_it(mechanism):
    if mechanism.claim is None:
        return
    alpha = np.linspace(0, 1, 2001)
    reached = 1 - np.asarray(mechanism.tradeoff(alpha, mechanism.pair))
    excess = np.max(reached - mechanism.claim.region(alpha))
    if mechanism.correct:
        assert excess <= 1e-5
    else:
        assert excess > 1e-3
        assert mechanism.flaw


@pytest.mark.parametrize("naive", NAIVE)
def test_what_naive_noise_leaks_is_unbounded_and_not_in_closed_form(naive):
    assert naive().epsilon((0.0, 1.0)) == math.inf
    assert naive().epsilon((1.0, 1.0)) == 0.0
    for ask in (naive().delta, naive().renyi, naive().tradeoff):
        with pytest.raises(NoClosedForm, match="not known exactly"):
            ask(1.0, (0.0, 1.0))
    assert naive().flaw


@pytest.mark.parametrize(
    "mechanism", [m for m in zoo.members() if m.correct and m.claim is not None], ids=str
)
def test_which_doubles_correct_members_return_does_not_depend_on_the_input(mechanism):
    """At a claim far above what they have, only their representation could refute them."""
    truth = mechanism.epsilon(mechanism.pair)
    claim = dp.PureDP(truth + 0.5) if np.isfinite(truth) else dp.ApproximateDP(6.0, 1e-3)
    verdict = dp.audit(mechanism, mechanism.pair, claim, n=4000, loss="bits", rng=1)
    assert not verdict.violated


@MEMBERS
def test_draws_are_canonical_and_repr_rebuilds(mechanism):
    way = dp.Sampling(on_error="outcome") if isinstance(mechanism, zoo.RaisesOnOne) else None
    samples = dp.draw(mechanism, mechanism.pair, n=64, rng=3, sampling=way)
    assert samples.remaining == (64, 64)
    again = eval(repr(mechanism), {name: getattr(zoo, name) for name in zoo.__all__})
    assert again == mechanism


# --- samplers


def codes_of_rows(rows, pattern):
    """Which outcome a row of SVT answers is: the first above, or none."""
    return np.where((rows == pattern).any(axis=1), (rows == pattern).argmax(axis=1), rows.shape[1])


def continuous():
    yield zoo.Laplace(0.7), 1.0
    yield zoo.Gaussian(0.7), 1.0
    yield zoo.TruncatedLaplace(0.5, 1.5), 1.0
    yield zoo.ContinuousExponential(0.8), 1.5
    yield zoo.ContinuousNoisyMax(0.5), np.array([0.0, 1.0, 0.3])
    yield zoo.ReportNoisyMax(1.5, 7), np.array([0, 2, 2, 1])
    yield zoo.ReportNoisyMax(1.5, 8), np.array([0, 2, 2, 1])
    yield zoo.PoissonSubsampled(zoo.Laplace(0.5), 0.3), np.array([1.0, 2.0, 0.0])
    yield zoo.Subsampled(zoo.Gaussian(0.5), 2), np.array([1.0, 2.0, 0.0, 0.0])
    yield zoo.Subsampled(zoo.Gaussian(0.5), 5), np.eye(10)[0]
    yield zoo.NoisyGradientDescent(), np.eye(10)[0] * 20
    yield zoo.ToyDPSGD(), np.eye(10)[0]


@pytest.mark.parametrize(("mechanism", "data"), list(continuous()), ids=lambda v: str(v)[:30])
def test_continuous_samplers_follow_their_law(mechanism, data, seeds):
    draws = np.sort(mechanism(data, 20_000, np.random.default_rng(seeds[0])))
    assert stats.kstest(draws, mechanism.law(data).cdf).pvalue > 1e-5


def test_staircase_sampler_follows_its_density(seeds):
    staircase = zoo.Staircase(1.0)
    draws = staircase(0.0, 200_000, np.random.default_rng(seeds[0]))
    steps = np.arange(4) + staircase.gamma
    edges = np.sort(np.concatenate([np.arange(-4, 5), steps, -steps]))
    width = np.diff(edges)
    want = staircase._density((edges[1:] + edges[:-1]) / 2) * width
    got = np.histogram(draws, edges)[0]
    rest = [200_000 - got.sum(), 200_000 * (1 - want.sum())]
    pvalue = stats.chisquare(np.append(got, rest[0]), np.append(200_000 * want, rest[1])).pvalue
    assert pvalue > 1e-5


def discrete():
    rr = 1 / (1 + np.exp(-1.5))
    two_bits = np.outer([rr, 1 - rr], [1 - rr, rr]).ravel()
    yield zoo.RandomizedResponse(), np.array([0, 1]), lambda x: 2 * x[:, 0] + x[:, 1], two_bits
    kary = zoo.KaryRandomizedResponse(4, 1.0)
    yield kary, 2, lambda x: x, kary.masses((2, 2)).p
    shuffled = zoo.ShuffledRandomizedResponse()
    yield shuffled, TEN_BITS[0], lambda x: x, shuffled.masses(TEN_BITS).p
    counting = zoo.ExponentialCounting()
    yield counting, [0, 1, 1], lambda x: x, counting.probabilities([0, 1, 1])
    for variant in (5, 6):
        nm = zoo.ReportNoisyMax(1.5, variant)
        data = np.array([0, 2, 2, 1, 0, 2])
        yield nm, data, lambda x: x, nm.probabilities(data)
    for variant in (1, 2, 4):
        svt = zoo.SVT(variant, 0.7)
        yield svt, HALF, lambda x: codes_of_rows(x, 1), first_above(svt, HALF.astype(float))
    k = np.arange(-3, 4)
    gauss = np.exp(-(k**2) / 2) / np.exp(-(np.arange(-30, 31) ** 2) / 2).sum()
    yield (
        zoo.DiscreteGaussian(),
        0,
        lambda x: np.clip(x, -4, 4) + 4,
        np.concatenate([[(1 - gauss.sum()) / 2], gauss, [(1 - gauss.sum()) / 2]]),
    )
    lap = (1 - np.exp(-0.5)) / (1 + np.exp(-0.5)) * np.exp(-np.abs(k) / 2)
    yield (
        zoo.DiscreteLaplace(2.0),
        0,
        lambda x: np.clip(x, -4, 4) + 4,
        np.concatenate([[(1 - lap.sum()) / 2], lap, [(1 - lap.sum()) / 2]]),
    )
    histogram = zoo.NoiselessHistogram(8)
    yield histogram, 1, lambda x: x, histogram.masses((1, 1)).p


@pytest.mark.parametrize(
    ("mechanism", "data", "code", "want"), list(discrete()), ids=lambda v: str(v)[:24]
)
def test_discrete_samplers_follow_their_law(mechanism, data, code, want, seeds):
    n = 100_000
    got = code(mechanism(data, n, np.random.default_rng(seeds[0]))).astype(np.int64)
    got = got - got.min() if isinstance(mechanism, zoo.NoiselessHistogram) else got
    counts = np.bincount(got, minlength=want.size)
    keep = n * want > 5
    observed = np.append(counts[keep], n - counts[keep].sum() + 1e-9)
    expected = np.append(n * want[keep], n - n * want[keep].sum() + 1e-9)
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-5


def test_propose_test_release_follows_its_law(seeds):
    ptr = zoo.ProposeTestRelease()
    draws = ptr((3.0, 9), 100_000, np.random.default_rng(seeds[0]))
    silent = np.isnan(draws).mean()
    assert stats.binomtest(int(np.isnan(draws).sum()), 100_000, ptr._silent((3.0, 9))).pvalue > 1e-5
    assert 0.1 < silent < 0.9
    assert stats.kstest(draws[~np.isnan(draws)], stats.laplace(3.0, 2.0).cdf).pvalue > 1e-5


# --- truths


@pytest.mark.parametrize(
    ("mechanism", "family"),
    [(zoo.Laplace(0.8), stats.laplace), (zoo.Gaussian(1.3), stats.norm)],
    ids=["Laplace", "Gaussian"],
)
def test_closed_forms_agree_with_quadrature(mechanism, family):
    scale = getattr(mechanism, "scale", None) or mechanism.sigma
    grid = fine_masses(family(0, scale).logpdf, family(1, scale).logpdf)
    for reference in (grid, mechanism.masses(PAIR)):
        assert mechanism.delta(EPS, PAIR) == pytest.approx(reference.delta(EPS), abs=1e-6)
        assert mechanism.renyi(ORDERS, PAIR) == pytest.approx(reference.renyi(ORDERS), abs=1e-6)
        assert mechanism.tradeoff(ALPHA, PAIR) == pytest.approx(reference.tradeoff(ALPHA), abs=1e-6)


def test_gaussian_delta_keeps_its_digits_in_the_tail():
    import mpmath

    gaussian = zoo.Gaussian(sigma=4.0)
    for eps in (1.0606, 2.0, 3.0):
        with mpmath.workdps(60):
            e, mu = mpmath.mpf(eps), mpmath.mpf(1) / 4
            exact = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            assert gaussian.delta(eps, PAIR) == pytest.approx(float(exact), rel=1e-8)


def test_deltas_agree_with_dp_accounting():
    from dp_accounting.pld import privacy_loss_distribution as pld

    fine = {"value_discretization_interval": 1e-4}
    cases = [
        (zoo.Gaussian(), PAIR, pld.from_gaussian_mechanism(1.0, **fine)),
        (zoo.Laplace(), PAIR, pld.from_laplace_mechanism(1.0, **fine)),
        (zoo.DiscreteLaplace(2.0), (0, 1), pld.from_discrete_laplace_mechanism(0.5, **fine)),
        (zoo.DiscreteGaussian(2.0), (0, 1), pld.from_discrete_gaussian_mechanism(2.0, **fine)),
        (
            zoo.KaryRandomizedResponse(5, 1.0),
            (0, 1),
            pld.from_randomized_response(5 / (np.e + 4), 5, **fine),
        ),
        (
            zoo.PoissonSubsampled(zoo.Gaussian(1.0), 0.3),
            ONE_IN_TEN,
            pld.from_gaussian_mechanism(1.0, sampling_prob=0.3, **fine),
        ),
    ]
    for mechanism, pair, reference in cases:
        for eps in (0.0, 0.2, 0.8):
            ours = max(mechanism.delta(eps, pair), mechanism.delta(eps, (pair[1], pair[0])))
            assert ours == pytest.approx(reference.get_delta_for_epsilon(eps), abs=2e-4), mechanism


@pytest.mark.parametrize("inner", [zoo.Laplace(5.0), zoo.Gaussian(5.0)], ids=str)
def test_poisson_subsampled_renyi_is_the_formula_for_integer_orders(inner):
    rate, pair = 0.5, ONE_IN_TEN
    for lam in (2, 5, 7):
        terms = (1 - rate) ** (lam - 1) * (lam * rate - rate + 1) + sum(
            math.comb(lam, k)
            * (1 - rate) ** (lam - k)
            * rate**k
            * math.exp((k - 1) * inner.renyi(float(k), PAIR))
            for k in range(2, lam + 1)
        )
        exact = math.log(terms) / (lam - 1)
        got = zoo.PoissonSubsampled(inner, rate).renyi(float(lam), pair)
        assert got == pytest.approx(exact, rel=1e-5)


def test_subsampled_trade_off_is_the_mixture_when_all_other_records_are_zero():
    gaussian, half = zoo.Gaussian(1.0), zoo.Subsampled(zoo.Gaussian(1.0), 5)
    want = 0.5 * gaussian.tradeoff(ALPHA, PAIR) + 0.5 * (1 - ALPHA)
    assert half.tradeoff(ALPHA, ONE_IN_TEN) == pytest.approx(want, abs=1e-6)


def test_toy_dp_sgd_formula_agrees_with_its_law():
    sgd, pair = zoo.ToyDPSGD(), ONE_IN_TEN
    assert sgd.tradeoff(ALPHA, pair) == pytest.approx(sgd.masses(pair).tradeoff(ALPHA), abs=1e-5)
    with pytest.raises(NoClosedForm):
        sgd.tradeoff(0.1, (np.ones(10), np.zeros(10)))


def test_noisy_gradient_descent_renyi_is_the_formula():
    gd = zoo.NoisyGradientDescent(0.2, 1.0, 10)
    a, m = 0.8, 10
    for lam in ORDERS:
        exact = lam * 1.8 * (1 - a**10) / (4 * m**2 * (1 + a**10))
        assert gd.renyi(lam, ONE_IN_TEN) == pytest.approx(exact)


def test_exponential_mechanism_epsilon_is_the_formula():
    for lam in (0.1, 1.0, 3.0):
        exact = lam + np.log(2 - np.exp(-2 * lam)) - np.log(2 - np.exp(-lam))
        mechanism = zoo.ContinuousExponential(lam)
        assert mechanism.epsilon((1.0, 2.0)) == pytest.approx(exact)
        assert mechanism.masses((1.0, 2.0)).epsilon() == pytest.approx(exact, rel=1e-6)


def test_continuous_noisy_max_is_k_times_rate():
    for k, rate in ((1, 0.7), (3, 0.5), (6, 0.25)):
        mechanism = zoo.ContinuousNoisyMax(rate, k)
        assert mechanism.epsilon((np.zeros(k), np.ones(k))) == pytest.approx(k * rate)
    assert zoo.ReportNoisyMax(1.0, 7).epsilon((np.ones(4), 2 * np.ones(4))) == pytest.approx(2.0)


def test_the_largest_with_exponential_noise_leaks_most_where_its_density_starts():
    noisy = zoo.ReportNoisyMax(1.0, 8)
    assert noisy.epsilon(([0, 2], [0, 3])) == math.inf  # outputs between 2 and 3
    assert noisy.epsilon(([3, 2], [3, 3])) == math.inf  # two answers at the top: a density from 0
    exact = math.log(-math.expm1(-1.5)) - math.log(-math.expm1(-1.0))
    assert noisy.epsilon(([0, 3], [1, 3])) == pytest.approx(exact)
    assert noisy.renyi(50.0, ([0, 3], [1, 3])) < exact


def test_randomized_response_truth_is_the_product_measure():
    mechanism = zoo.RandomizedResponse(0.9)
    pair = (np.array([0, 1, 0]), np.array([1, 1, 1]))
    keep = 1 / (1 + np.exp(-0.9))
    cube = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
    p, q = (np.prod(np.where(cube == x, keep, 1 - keep), axis=1) for x in pair)
    full = dp.Masses(p, q)
    assert mechanism.epsilon(pair) == pytest.approx(full.epsilon())
    assert mechanism.delta(EPS, pair) == pytest.approx(full.delta(EPS))
    assert mechanism.renyi(ORDERS, pair) == pytest.approx(full.renyi(ORDERS))
    assert mechanism.tradeoff(ALPHA, pair) == pytest.approx(full.tradeoff(ALPHA))


def test_noiseless_histogram_delta_is_the_largest_binomial_mass():
    for rows in (2, 11, 100, 1000):
        exact = math.comb(rows - 1, (rows - 1) // 2) / 2 ** (rows - 1)
        assert zoo.NoiselessHistogram(rows).delta(0.0, (0, 1)) == pytest.approx(exact)


def test_noisy_max_reference_values():
    mechanism, ones = zoo.ReportNoisyMax(1.5), np.ones(6)
    loss = mechanism.masses((ones, [2, 0, 0, 0, 0, 0])).loss
    assert loss.max() == pytest.approx(0.5337, abs=5e-5)
    assert -loss.min() == pytest.approx(1.1210, abs=5e-5)
    assert mechanism.epsilon((ones, [0, 2, 2, 2, 2, 2])) == pytest.approx(1.4922, abs=5e-5)


@pytest.mark.parametrize(
    "mechanism", [zoo.SVT(3, 1.5), zoo.NumericalSVT(1.5), zoo.ProposeTestRelease()], ids=str
)
def test_mixed_truths_agree_with_simulation(mechanism, seeds):
    """δ(0) is the probability gap of {p > q}: count how often a fine discretisation sees it."""
    pair = mechanism.pair
    n = 400_000
    keys = []
    for side, data in enumerate(pair):
        out = mechanism(data, n, np.random.default_rng(seeds[side]))
        out = out.reshape(n, -1)
        finite = np.isfinite(out)
        number = np.where(finite.any(axis=1), out[np.arange(n), finite.argmax(axis=1)], 0.0)
        first = np.where(finite.any(axis=1), finite.argmax(axis=1), out.shape[1])
        keys.append(first * 1000 + np.clip(np.round(number * 2), -400, 400))
    values, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    p, q = (np.bincount(inverse[s * n : (s + 1) * n], minlength=values.size) / n for s in (0, 1))
    train = p > q  # chosen on the same draws: biased upwards by about √(cells/n)
    plug_in = np.sum((p - q)[train])
    exact = mechanism.delta(0.0, pair)
    noise = np.sqrt(values.size / n)
    assert exact - 0.02 - 4 / np.sqrt(n) <= plug_in <= exact + 1.5 * noise + 4 / np.sqrt(n)


def test_several_coordinates():
    laplace, gaussian = zoo.Laplace(2.0), zoo.Gaussian(2.0)
    pair = (np.zeros(3), np.array([1.0, -1.0, 0.0]))
    assert laplace.epsilon(pair) == 1.0
    assert laplace.renyi(2.0, pair) == pytest.approx(2 * laplace.renyi(2.0, PAIR))
    with pytest.raises(NoClosedForm):
        laplace.delta(0.1, pair)
    assert gaussian.mu(pair) == pytest.approx(np.sqrt(2) / 2)


@pytest.mark.parametrize(
    "unknown",
    [
        lambda: zoo.SVT(1, 1.0, cutoff=2).epsilon((ONES, HALF)),
        lambda: zoo.SVT(3, 1.0, threshold=0.5).epsilon((ONES, HALF)),
        lambda: zoo.NumericalSVT(1.0, cutoff=3).delta(0.1, (ONES, HALF)),
        lambda: zoo.SVT(6, 1.0).epsilon((np.arange(20), np.arange(20)[::-1])),
        lambda: zoo.Subsampled(zoo.ReportNoisyMax(), 5).epsilon(ONE_IN_TEN),
    ],
)
def test_what_is_not_known_is_not_guessed(unknown):
    with pytest.raises(NoClosedForm):
        unknown()


@pytest.mark.parametrize(
    "make",
    [
        lambda: zoo.SVT(7),
        lambda: zoo.ReportNoisyMax(1.0, 4),
        lambda: zoo.Laplace(0.0),
        lambda: zoo.KaryRandomizedResponse(1),
        lambda: zoo.PoissonSubsampled(zoo.Laplace(), 1.5),
        lambda: zoo.ProposeTestRelease(1.0, 0.0),
    ],
)
def test_parameters_are_validated(make):
    with pytest.raises(InvalidInput):
        make()


def test_zoo_truth_agrees_with_the_gaussian_formula():
    for eps, sigma in itertools.product((0.0, 0.5, 1.0), (0.5, 1.0, 4.0)):
        a, b = 1 / (2 * sigma) - eps * sigma, -1 / (2 * sigma) - eps * sigma
        exact = norm.cdf(a) - math.exp(eps) * norm.cdf(b)
        assert zoo.Gaussian(sigma).delta(eps, PAIR) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("order", [0.01, 0.3, 0.5, 0.7, 1.0, 1.5, 40.0, np.inf])
def test_rényi_divergences_of_laplace_noise_are_exact_at_every_order(order):
    fine = masses(laplace(0.0, 1.0), laplace(1.0, 1.0))
    assert dp.zoo.Laplace(1.0).renyi(order, (0.0, 1.0)) == pytest.approx(
        fine.renyi(order), abs=1e-8
    )


@pytest.mark.parametrize("name", ["Laplace", "Gaussian", "DiscreteLaplace", "RandomizedResponse"])
def test_truths_refuse_orders_of_0_and_less_and_pairs_that_are_numbers(name):
    mechanism = getattr(dp.zoo, name)()
    with pytest.raises(InvalidInput, match="order must be above 0"):
        mechanism.renyi(-1.0, mechanism.pair)
    with pytest.raises(InvalidInput, match="pair must be two inputs"):
        mechanism.delta(mechanism.pair, 0.5)


def test_a_mechanism_in_lower_case_is_a_slip():
    with pytest.raises(AttributeError, match=r"did you mean dp\.zoo\.Laplace"):
        _ = dp.zoo.laplace


def test_a_member_of_ones_own_is_told_what_is_missing():
    class Mine(zoo.ZooMechanism):
        def probabilities(self, data):
            return {0: 0.75, 1: 0.25}

    with pytest.raises(dp.errors.InvalidInput, match=r"Mine.probabilities\(data\) returns must be"):
        Mine().epsilon((0, 1))
    with pytest.raises(NotImplementedError, match=r"Mine must define __call__\(data, size, rng\)"):
        Mine()(0, 5, np.random.default_rng(0))


def test_truths_are_those_of_the_default_pair_if_none_is_given():
    for mechanism in (dp.zoo.Gaussian(), dp.zoo.Laplace(), dp.zoo.SVT(1, 0.7)):
        for name, point in (("delta", 0.5), ("renyi", 2.0), ("tradeoff", 0.1)):
            truth = getattr(mechanism, name)
            assert truth(point) == truth(point, mechanism.pair)
        assert mechanism.epsilon() == mechanism.epsilon(mechanism.pair)


@dataclass(frozen=True)
class OfScipy(dp.zoo.ZooMechanism):
    """A mechanism of one's own whose outputs have a distribution of SciPy."""

    noise: Any

    def law(self, data):
        return self.noise(data)


@pytest.mark.parametrize(
    ("noise", "epsilon", "delta"),
    [
        (stats.logistic, 1.0, 0.07740468),  # by quadrature
        (stats.laplace, 1.0, dp.zoo.Laplace().delta(0.5, (0.0, 1.0))),
        (stats.norm, None, dp.GaussianDP(1.0).delta_at(0.5)),
        (lambda shift: stats.uniform(shift, 1.5), math.inf, 2 / 3),
    ],
)
def test_truths_of_distributions_of_scipy(noise, epsilon, delta):
    mechanism = OfScipy(noise)
    if epsilon is not None:
        assert mechanism.epsilon((0.0, 1.0)) == pytest.approx(epsilon, rel=1e-6)
    assert mechanism.delta(0.5, (0.0, 1.0)) == pytest.approx(delta, abs=1e-7)


def test_a_law_that_is_no_distribution_and_a_pair_that_is_missing_are_named():
    with pytest.raises(InvalidInput, match=r"frozen distribution of scipy.stats.* got 3"):
        OfScipy(lambda data: 3).epsilon((0.0, 1.0))
    with pytest.raises(InvalidInput, match="no default pair: give pair"):
        OfScipy(stats.laplace).delta(0.5)


@pytest.mark.parametrize(
    ("mechanism", "order", "truth"),
    [
        (zoo.DiscreteGaussian(0.7), 16.0, 16 / (2 * 0.49)),
        (zoo.DiscreteGaussian(0.7), 64.0, None),
        (OfScipy(lambda data: stats.laplace(data, 1.5 - 0.5 * data)), 8.0, None),  # infinite
        (OfScipy(lambda data: stats.norm(0, 1.5 - 0.5 * data)), 1.5, 0.5753641),  # by quadrature
        (OfScipy(stats.laplace), 64.0, zoo.Laplace().renyi(64.0, PAIR)),
        (OfScipy(lambda data: stats.uniform(data, 1.5)), 2.0, math.inf),
    ],
    ids=["near", "far", "infinite", "underflow", "Laplace", "uniform"],
)
def test_orders_that_the_rarest_outputs_decide_are_refused(mechanism, order, truth):
    """Cells of probabilities near the smallest double do not say what lies beyond them."""
    if truth is None:
        with pytest.raises(NoClosedForm, match="decided by outputs of probabilities below"):
            mechanism.renyi(order, (0, 1))
    else:
        assert mechanism.renyi(order, (0, 1)) == pytest.approx(truth, rel=1e-6)


def test_an_epsilon_that_the_rarest_outputs_decide_is_refused():
    for pair in (PAIR, (0.0, 60.0)):  # in the second no output has a probability on both
        with pytest.raises(NoClosedForm, match="unbounded = True"):
            OfScipy(stats.norm).epsilon(pair)


class Cancelling:
    """A Cauchy distribution whose distribution functions lose their digits in the tails."""

    def __init__(self, centre):
        self.true = stats.cauchy(centre)
        self.ppf, self.isf, self.pdf = self.true.ppf, self.true.isf, self.true.pdf

    def cdf(self, x):
        return 1 - self.sf(x)

    def sf(self, x):
        return 0.5 - np.arctan(x) / np.pi


def test_a_distribution_without_accurate_tails_is_refused():
    """Differences of rounded probabilities would be ratios of noise."""
    with pytest.raises(NoClosedForm, match="not computed accurately"):
        OfScipy(Cancelling).epsilon(PAIR)
