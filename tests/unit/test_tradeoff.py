"""Trade-off curves, points and the auditor of the f-DP paper."""

import math

import numpy as np
import pytest
from scipy import stats

import dpassay as dp
from dpassay.blackbox.zoo.training import ONE_IN_TEN
from dpassay.errors import InvalidInput
from dpassay.notions.tradeoff import _perturbed

zoo = dp.zoo
ALPHA = np.linspace(0, 1, 1001)
PAIR = (1.0, 0.0)


def slow_perturbed(p, q, h, thresholds):
    """Equations (3) and (4) as they stand: an average over x of sums over cells."""
    ratio = p / q
    alpha, beta = [], []
    for eta in thresholds:
        xs = np.linspace(-h / 2, h / 2, 4001)
        alpha.append(np.mean([q[ratio > eta + x].sum() for x in xs]))
        beta.append(1 - np.mean([p[ratio > eta + x].sum() for x in xs]))
    order = np.argsort(alpha, kind="stable")
    return np.array(alpha)[order], np.array(beta)[order]


def test_perturbed_test_is_the_average_over_thresholds():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(60))
    thresholds = np.linspace(0.2, 3, 15)
    fast = _perturbed(p / q, p, q, 0.3, thresholds)
    slow = slow_perturbed(p, q, 0.3, thresholds)
    assert fast[0] == pytest.approx(slow[0], abs=1e-3)
    assert fast[1] == pytest.approx(slow[1], abs=1e-3)


def test_without_perturbation_all_thresholds_give_the_neyman_pearson_curve():
    rng = np.random.default_rng(1)
    masses = dp.Masses(rng.dirichlet(np.ones(40)), rng.dirichlet(np.ones(40)))
    x, y = _perturbed(masses.p / masses.q, masses.p, masses.q, 0.0, None)
    assert dp.TradeoffCurve(x, y)(ALPHA) == pytest.approx(masses.tradeoff(ALPHA), abs=1e-12)


def test_estimate_without_luck():
    u = (np.arange(20_000) + 0.5) / 20_000
    samples = dp.from_samples(stats.norm(1).ppf(u), stats.norm(0).ppf(u)[::-1])
    curve = dp.tradeoff.estimate(samples, confidence=None)
    exact = zoo.Gaussian().tradeoff(ALPHA, PAIR)
    assert np.abs(curve(ALPHA) - exact).max() < 0.006  # what the bandwidth for so many draws costs


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (zoo.Gaussian(), PAIR),
        (zoo.Laplace(), PAIR),
        (zoo.ToyDPSGD(), ONE_IN_TEN),
        (zoo.Subsampled(zoo.Gaussian(1.0), 5), ONE_IN_TEN),
        (zoo.ReportNoisyMax(), zoo.ReportNoisyMax().pair),
        (zoo.SVT(3, 1.5), zoo.SVT(3, 1.5).pair),
        (zoo.ProposeTestRelease(), zoo.ProposeTestRelease().pair),
    ],
    ids=lambda v: type(v).__name__,
)
def test_estimate_is_near_the_truth_and_is_a_curve(mechanism, pair, seeds):
    curve = dp.tradeoff.estimate(mechanism, pair, n=40_000, rng=seeds[0])
    assert np.abs(curve(ALPHA) - mechanism.tradeoff(ALPHA, pair)).max() < 0.03
    assert curve.x[0] == 0
    assert curve.x[-1] == 1
    slopes = np.diff(curve.y) / np.diff(curve.x)
    assert np.all(slopes <= 1e-12)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert curve.band.upper == pytest.approx(np.minimum(curve.band.upper, 1 - curve.band.x))
    assert np.all(curve.band.lower <= curve.band.upper + 1e-12)
    assert curve.chart(exact=lambda a: mechanism.tradeoff(a, pair)).to_dict()


def test_swapping_the_pair_inverts_the_curve(seed):
    sgd, pair = zoo.ToyDPSGD(), ONE_IN_TEN
    one = dp.tradeoff.estimate(sgd, pair, n=100_000, rng=seed, confidence=None)
    other = dp.tradeoff.estimate(sgd, (pair[1], pair[0]), n=100_000, rng=seed, confidence=None)
    assert one.distance(other.inverse()) < 0.02


def test_the_papers_cap_on_thresholds_hurts_dp_sgd(seed):
    sgd, pair = zoo.ToyDPSGD(), ONE_IN_TEN
    kwargs = {"n": 200_000, "rng": seed, "confidence": None}
    free = dp.tradeoff.estimate(sgd, pair, **kwargs)
    capped = dp.tradeoff.estimate(
        sgd, pair, perturbation=0.1, thresholds=np.linspace(0, 15, 1000), **kwargs
    )
    exact = sgd.tradeoff(ALPHA, pair)
    assert np.abs(free(ALPHA) - exact).max() < 0.01
    assert np.abs(capped(ALPHA) - exact).max() > 0.02


def test_fit_of_gdp_and_conversion_to_delta(seed):
    curve = dp.tradeoff.estimate(zoo.Gaussian(0.8), PAIR, n=200_000, rng=seed, confidence=None)
    assert curve.fit_gdp("l1") == pytest.approx(1.25, abs=0.02)
    assert curve.fit_gdp("sup") == pytest.approx(1.25, abs=0.03)
    assert curve.delta(1.0) == pytest.approx(zoo.Gaussian(0.8).delta(1.0, PAIR), abs=0.01)


# --- the band


@pytest.mark.parametrize("mechanism", [zoo.Gaussian(), zoo.DiscreteLaplace()], ids=str)
def test_upper_edge_of_the_band_bounds_the_truth(mechanism, seeds):
    pair = (mechanism.pair[1], mechanism.pair[0])
    failures = 0
    for s in seeds[:100]:
        band = dp.tradeoff.estimate(mechanism, pair, n=400, rng=s).band
        failures += np.any(mechanism.tradeoff(band.x, pair) > band.upper + 1e-12)
    assert failures <= stats.binom.ppf(1 - 0.01 / 6, 100, 0.05)


def test_band_narrows_with_n(seed):
    widths = []
    for n in (1000, 100_000):
        band = dp.tradeoff.estimate(zoo.Gaussian(), PAIR, n=n, rng=seed).band
        widths.append(np.mean(band.upper - band.lower))
    assert widths[1] < 0.2 * widths[0]


# --- points


@pytest.mark.parametrize("box", ["joint", "clopper-pearson", "hoeffding"])
@pytest.mark.parametrize("eta", [0.3, 1.0, 3.0])
def test_point_lies_near_the_curve_on_both_sides_of_one(box, eta, seed):
    point = dp.tradeoff.point(zoo.Gaussian(), PAIR, eta, n=40_000, box=box, rng=seed)
    cut = 0.5 + np.log(eta)  # p/q > η where x > ½ + log η
    assert point.alpha == pytest.approx(stats.norm.sf(cut), abs=0.03)
    assert point.beta == pytest.approx(stats.norm.cdf(cut - 1), abs=0.03)
    a0, a1, b0, b1 = point.box
    assert a0 <= point.alpha <= a1
    assert b0 <= point.beta <= b1
    assert dp.TradeoffPoint.from_json(point.to_json()) == point


# --- the auditor


@pytest.mark.parametrize("box", ["joint", "clopper-pearson", "hoeffding"])
def test_auditor_refutes_the_false_claims_of_the_paper(box, seeds):
    pair = ONE_IN_TEN
    faster = dp.TradeoffDP(lambda a: zoo.ToyDPSGD(iterations=5).tradeoff(a, pair), ordered=True)
    for mechanism, on, claim in (
        (zoo.Gaussian(), PAIR, dp.GaussianDP(0.5)),
        (zoo.ToyDPSGD(), pair, faster),
    ):
        verdict = dp.tradeoff.audit(
            mechanism, on, claim, n_locate=10_000, n_test=10_000, box=box, rng=seeds[0]
        )
        assert verdict.violated
        assert verdict.p_value <= 0.05
        assert verdict.lower_bound > claim.value


@pytest.mark.parametrize("box", ["joint", "clopper-pearson", "hoeffding"])
def test_auditor_rarely_refutes_true_claims(box, seeds):
    false_alarms = sum(
        dp.tradeoff.audit(
            zoo.Gaussian(), PAIR, dp.GaussianDP(1.0), n_locate=500, n_test=300, box=box, rng=s
        ).violated
        for s in seeds[:25]
    )
    assert false_alarms <= stats.binom.ppf(1 - 0.01 / 9, 25, 0.05)


@pytest.mark.parametrize(
    "claim", [dp.PureDP(0.5), dp.ApproximateDP(0.5, 0.01), dp.GaussianDP(0.4)], ids=str
)
@pytest.mark.parametrize("loss", ["knn", "kde"])
def test_auditor_takes_any_claim_and_loss(claim, loss, seed):
    verdict = dp.tradeoff.audit(
        zoo.Laplace(), PAIR, claim, n_locate=5000, n_test=5000, loss=loss, rng=seed
    )
    assert verdict.violated
    assert loss in verdict.about.method
    assert verdict.chart().to_dict()
    assert dp.Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dp.tradeoff.estimate(zoo.Laplace(), PAIR), "n must be given"),
        (
            lambda: dp.tradeoff.estimate(zoo.Laplace(), PAIR, n=99, thresholds=[-1.0]),
            "thresholds must be",
        ),
        (lambda: dp.tradeoff.estimate(zoo.Laplace(), PAIR, n=99, perturbation=-1), "perturbation"),
        (lambda: dp.tradeoff.point(zoo.Laplace(), PAIR, 0.0, n=99), "threshold must be"),
        (lambda: dp.tradeoff.point(zoo.Laplace(), PAIR, 1.0, n=99, box="round"), "box must be one"),
        (lambda: dp.tradeoff.point(zoo.Laplace(), PAIR, 1.0, n=99, loss="x"), "loss must be one"),
        (
            lambda: dp.tradeoff.point(zoo.Laplace(), PAIR, 1.0, n=99, loss="auto"),
            "loss must be one of 'kde', 'polynomial'.*'knn'.*'torch', got 'auto'",
        ),
        (
            lambda: dp.tradeoff.audit(zoo.Laplace(), PAIR, 1.0, n_locate=99, n_test=99),
            "a number alone is no claim",
        ),
    ],
)
def test_wrong_input_is_explained(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


# --- outputs of many numbers


def five(x, size, rng):
    return rng.normal(x, size=(size, 5))


FIVE = (0.4, 0.0)  # μ = 0.4·√5


def density(kind):
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity

    return {"kernel": KernelDensity(bandwidth=1.0), "mixture": GaussianMixture(1)}[kind]


@pytest.mark.parametrize("kind", ["kernel", "mixture"])
def test_any_density_estimator_serves_above_three_dimensions(kind, seed):
    exact = dp.GaussianDP(0.4 * math.sqrt(5)).tradeoff(ALPHA)
    curve = dp.tradeoff.estimate(five, FIVE, n=3000, loss=density(kind), rng=seed)
    # 1500 draws a side count: within .05 of the curve of the score, which loses a little of the truth
    assert np.abs(curve(ALPHA) - exact).max() < 0.08
    assert np.all(
        curve.band.upper >= dp.GaussianDP(0.4 * math.sqrt(5)).tradeoff(curve.band.x) - 1e-9
    )


def test_thresholds_and_perturbation_average_a_plugged_in_density_too(seed):
    options = {"n": 8000, "loss": density("mixture"), "rng": seed, "confidence": None}
    free = dp.tradeoff.estimate(five, FIVE, **options)
    bound = dp.tradeoff.estimate(
        five, FIVE, thresholds=np.linspace(0, 15, 1000), perturbation=0.1, **options
    )
    assert np.abs(bound(ALPHA) - free(ALPHA)).max() < 0.02
    assert np.all(np.diff(bound.y) <= 1e-12)


def test_points_and_audits_take_a_density_estimator(seed):
    point = dp.tradeoff.point(five, FIVE, 1.0, n=8000, loss=density("mixture"), rng=seed)
    assert point.beta == pytest.approx(
        dp.GaussianDP(0.4 * math.sqrt(5)).tradeoff(point.alpha), abs=0.04
    )
    for loss in ("knn", density("mixture")):
        verdict = dp.tradeoff.audit(five, FIVE, dp.GaussianDP(0.3), n=9_000, loss=loss, rng=seed)
        assert verdict.violated


def test_too_many_numbers_without_a_loss_are_refused_with_advice_that_works(seed):
    with pytest.raises(InvalidInput, match='loss="knn"'):
        dp.tradeoff.estimate(five, FIVE, n=2000, rng=seed)
    dp.tradeoff.estimate(five, FIVE, n=2000, loss="knn", rng=seed)


def test_a_ratio_of_two_empty_densities_is_one():
    from dpassay.scores.classifier import DensityRatio

    class Uniform:
        def fit(self, rows):
            self.low, self.high = rows.min(), rows.max()

        def score_samples(self, rows):
            inside = (rows[:, 0] >= self.low) & (rows[:, 0] <= self.high)
            return np.where(inside, -math.log(self.high - self.low), -np.inf)

    rows, labels = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    ratio = (
        DensityRatio(Uniform()).fit(rows, labels).decision_function(np.array([[0.5], [1.5], [5.0]]))
    )
    assert list(ratio) == [-30.0, 30.0, 0.0]


def test_the_event_of_an_audit_happens_in_some_draws_and_not_in_all():
    for seed in range(4):  # the largest gap of the estimated curve is in the tails, often
        verdict = dp.tradeoff.audit(dp.zoo.Gaussian(1.0), (0.0, 1.0), "mu=1", n=15_000, rng=seed)
        i, n, j, m = verdict.witness.counts
        assert 0 < i + j < n + m
        assert not verdict.blind


def test_the_band_of_a_discrete_mechanism_is_narrow_between_its_steps():
    """T is convex: between two thresholds it is below their chord. The edge was 1 − α up to the first."""
    response = zoo.RandomizedResponse(1.5)
    band = dp.tradeoff.estimate(response, response.pair, n=20_000, rng=0).band
    truth = response.tradeoff(band.x, response.pair)
    assert np.all(band.upper >= truth)
    assert np.max(band.upper - truth) < 0.1  # 0.40 by steps
