"""Rényi estimates and bounds."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpassay as dp
from dpassay.errors import InvalidInput, NotEnoughDraws
from dpassay.notions.renyi import _warnings
from dpassay.privacy.finite_pairs import Masses

zoo = dp.zoo
PAIR = (1.0, 0.0)
COUNTS_P, COUNTS_Q = np.array([500, 300, 150, 50]), np.array([200, 300, 300, 200])


def discrete():
    """A sample with known relative frequencies."""
    keys = np.array(["a", "b", "c", "d"], dtype=object)
    return dp.from_samples(np.repeat(keys, COUNTS_P), np.repeat(keys, COUNTS_Q))


def by_the_book(lam, tau, beta, p, q, n):
    """Equations 13–18 summed as they stand."""
    floored = np.log(np.exp(beta * q) + np.exp(beta * tau)) / beta
    pi = np.exp(beta * q) / (np.exp(beta * q) + np.exp(beta * tau))
    total = np.sum(p**lam * floored ** (1 - lam))
    first = lam**2 * (np.sum(p ** (2 * lam - 1) * floored ** (2 - 2 * lam)) - total**2)
    second = (1 - lam) ** 2 * (
        np.sum(pi**2 * floored ** (-2 * lam) * p ** (2 * lam) * q)
        - np.sum(pi * floored ** (-lam) * p**lam * q) ** 2
    )
    sigma = math.sqrt(first + second) / ((lam - 1) * total)
    return math.log(total) / (lam - 1), sigma / math.sqrt(n)


@pytest.mark.parametrize("lam", [1.5, 2, 5, 7])
@pytest.mark.parametrize("tau", [0.01, 0.25])
def test_estimate_and_bound_are_the_papers_formulas(lam, tau):
    method = dp.renyi.Softmax(floor=tau, sharpness=30.0, correct=False)
    p, q = COUNTS_P / 1000, COUNTS_Q / 1000
    for direction, (a, b) in {"forward": (p, q), "backward": (q, p)}.items():
        value, error = by_the_book(lam, tau, 30.0, a, b, 1000)
        options = {"order": lam, "method": method, "direction": direction}
        estimate = dp.renyi.estimate(discrete(), **options)
        bound = dp.renyi.lower_bound(discrete(), **options)
        assert estimate.value == pytest.approx(max(value, 0), rel=1e-9)
        assert bound.value == pytest.approx(max(value + norm.ppf(0.05) * error, 0), abs=1e-9)


def test_both_directions_pay_half_the_level_each_and_several_pairs_sidaks():
    method = dp.renyi.Softmax(floor=0.01, sharpness=30.0, correct=False)
    p, q = COUNTS_P / 1000, COUNTS_Q / 1000
    bound = dp.renyi.lower_bound(discrete(), order=2, method=method)
    each = [by_the_book(2, 0.01, 30.0, a, b, 1000) for a, b in ((p, q), (q, p))]
    expected = max(value + norm.ppf(0.025) * error for value, error in each)
    assert bound.value == pytest.approx(expected, rel=1e-9)

    def constant(data, size, rng):
        return rng.permutation(np.repeat(range(4), (COUNTS_P if data else COUNTS_Q) * size // 1000))

    several = dp.renyi.lower_bound(
        constant, [(1, 0)] * 4, order=2, n=1000, method=method, direction="forward", rng=0
    )
    value, error = by_the_book(2, 0.01, 30.0, p, q, 1000)
    level = 1 - 0.95 ** (1 / 4)
    assert several.value == pytest.approx(value + norm.ppf(level) * error, rel=1e-9)
    assert len(several.estimates) == 4


def test_a_floor_that_lowers_the_estimate_is_noted_at_small_orders(seed):
    def found(n, k):
        one = dp.renyi.estimate(zoo.Gaussian(1.0), PAIR, order=1.5, n=n, rng=seed + k)
        return one.value, any("too small" in note for note in one.about.notes)

    values, noted = zip(*(found(10_000, k) for k in range(10)), strict=True)
    assert np.mean(values) < 0.9 * 0.75  # 0.64 with a standard deviation of 0.019, in 40 runs
    assert sum(noted) >= 6  # 38 of 40; the floor holds less than a tenth of the integral
    value, noted = found(200_000, 0)
    assert value == pytest.approx(0.75, rel=0.1)
    assert not noted


def test_large_orders_and_tiny_floors_stay_in_log_space(seed):
    method = dp.renyi.Softmax(floor=1e-8, sharpness=1e8)
    curve = dp.renyi.curve(
        zoo.Gaussian(2.0), PAIR, orders=[1.01, 2, 16, 64], n=50_000, method=method, rng=seed
    )
    assert np.all(np.isfinite(curve.y))
    assert np.all(np.isfinite(curve.lower))
    assert any("floor" in note for note in curve.about.notes)
    # a mass of 1e-8 opposite ½ at λ = 64: log(½^64 · 1e-8^-63)/63
    method = dp.renyi.Softmax(floor=1e-8, sharpness=1e8, correct=False)
    half = dp.from_samples(np.repeat([0, 1], 50), np.repeat([1, 1], 50))
    value = dp.renyi.estimate(half, order=64, method=method, direction="forward").value
    floored = 1e-8 + math.log1p(math.exp(-1)) * 1e-8  # q = 0: softened by log(1 + e^{-βτ})/β
    assert value == pytest.approx((64 * math.log(0.5) - 63 * math.log(floored)) / 63, rel=1e-6)


def test_a_small_order_does_not_warn(seed):
    estimate = dp.renyi.estimate(zoo.Laplace(), PAIR, order=2, n=100_000, rng=seed)
    assert not estimate.about.notes


@pytest.mark.parametrize(
    "mechanism",
    [
        zoo.Laplace(5.0),
        zoo.Gaussian(5.0),
        zoo.RandomizedResponse(1.5),
        zoo.ShuffledRandomizedResponse(1.5),
    ],
    ids=str,
)
def test_estimates_approach_the_truth(mechanism, seed):
    pair = mechanism.pair
    truth = mechanism.renyi(2.0, pair)
    estimate = dp.renyi.estimate(mechanism, pair, order=2, n=400_000, direction="forward", rng=seed)
    assert estimate.value == pytest.approx(truth, rel=0.1)


def test_mixed_outputs(seed):
    """None with probability .4 or .6, else a Laplace output: the integral is a sum over both kinds."""

    def mechanism(data, size, rng):
        out = (data + rng.laplace(size=size)).astype(object)
        out[rng.random(size) < (0.4 if data else 0.6)] = None
        return out

    inner = math.exp(zoo.Laplace().renyi(2.0, PAIR))
    truth = math.log(0.6**2 / 0.4 * inner + 0.4**2 / 0.6)
    estimate = dp.renyi.estimate(mechanism, PAIR, order=2, n=200_000, direction="forward", rng=seed)
    assert estimate.value == pytest.approx(truth, rel=0.03)


def test_correction_removes_the_bias_of_plugging_in(seed):
    """Many equal cells, P = Q: the uncorrected divergence is λ/2 · (cells)·2/n too large."""
    values = []
    for correct in (False, True):
        method = dp.renyi.Softmax(floor=1e-9, correct=correct)
        values.append(
            np.mean(
                [
                    dp.renyi.estimate(
                        dp.from_samples(
                            *np.random.default_rng(seed + s).integers(50, size=(2, 5000))
                        ),
                        order=3,
                        method=method,
                        direction="forward",
                    ).value
                    for s in range(40)
                ]
            )
        )
    expected = 3 / 2 * 2 * 50 / 5000
    assert values[0] == pytest.approx(expected, rel=0.15)
    assert values[1] < 0.25 * values[0]


def test_curve_says_whether_it_holds_at_once(seed):
    options = {"orders": [2, 3, 4], "n": 20_000, "rng": seed}
    together = dp.renyi.curve(zoo.Gaussian(), PAIR, **options)
    alone = dp.renyi.curve(zoo.Gaussian(), PAIR, simultaneous=False, **options)
    assert together.simultaneous
    assert not alone.simultaneous
    assert np.all(together.lower < alone.lower)
    assert np.array_equal(together.y, alone.y)
    assert "at once" in str(together)
    assert "each order on its own" in str(alone)
    together.chart()


def test_all_orders_come_from_one_sample(seed):
    calls = []

    def mechanism(data, size, rng):
        calls.append(size)
        return rng.normal(data, size=size)

    dp.renyi.curve(mechanism, PAIR, orders=[2, 3, 4, 5], n=10_000, rng=seed)
    assert sum(calls) <= 2 * 10_000 + 100


# --- the exact bound

CELLS = {
    "Laplace": (zoo.Laplace(), PAIR),
    "Gaussian": (zoo.Gaussian(), PAIR),
    "response": (zoo.RandomizedResponse(1.5), zoo.RandomizedResponse(1.5).pair),
    "SVT3": (zoo.SVT(3, 1.5), zoo.SVT(3, 1.5).pair),
    "10-d": (zoo.Gaussian(), (np.eye(10)[0], np.zeros(10))),
}


def overshoots(name, seeds, n, loss):
    mechanism, pair = CELLS[name]
    truth, method = mechanism.renyi(2.0, pair), dp.renyi.Variational(loss=loss)
    return sum(
        dp.renyi.lower_bound(
            mechanism, pair, order=2, n=n, method=method, direction="forward", rng=s
        ).value
        > truth
        for s in seeds
    )


@pytest.mark.parametrize("name", CELLS)
def test_variational_bound_holds(name, seeds):
    count = 60
    loss = "logistic" if name in ("10-d", "response") else "kde"
    assert overshoots(name, seeds[:count], 600, loss) <= binom.ppf(0.9995, count, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_variational_bound_holds_in_a_thousand_runs(name, seeds):
    assert overshoots(name, seeds[:1000], 2000, "auto") <= binom.ppf(1 - 0.01 / 15, 1000, 0.05)


def test_variational_bound_is_tight(seeds):
    bounds = [
        dp.renyi.lower_bound(
            zoo.Gaussian(), PAIR, order=2, n=300_000, method=dp.renyi.Variational(), rng=s
        )
        for s in seeds[:9]
    ]
    assert np.median([b.value for b in bounds]) >= 0.94
    assert {str(b.guarantee) for b in bounds} == {"exact"}


def test_a_bad_score_costs_power_and_not_validity(seeds):
    """A classifier that is confidently wrong."""
    from sklearn.base import BaseEstimator

    class Wrong(BaseEstimator):
        def fit(self, rows, labels):
            return self

        def predict_proba(self, rows):
            chance = np.where(np.sin(50 * rows[:, 0]) > 0, 0.999, 0.001)
            return np.column_stack([1 - chance, chance])

    method = dp.renyi.Variational(loss=Wrong())
    positive = [
        dp.renyi.lower_bound(zoo.Laplace(), (0.0, 0.0), order=2, n=400, method=method, rng=s).value
        > 0
        for s in seeds[:60]
    ]
    assert sum(positive) <= binom.ppf(0.9995, 60, 0.05)


def test_variational_chooses_the_worst_pair_and_direction(seed):
    pairs = [(0.0, 0.1), (0.0, 2.0), (0.0, 0.5)]
    bound = dp.renyi.lower_bound(
        zoo.Gaussian(), pairs, order=2, n=20_000, method=dp.renyi.Variational(), rng=seed
    )
    assert tuple(bound.pair) == (0.0, 2.0)
    assert len(bound.estimates) == 3
    # Poisson subsampling is worse one way round
    mechanism = zoo.PoissonSubsampled(zoo.Laplace(0.5))
    there, back = (
        dp.renyi.lower_bound(
            mechanism,
            mechanism.pair,
            order=4,
            n=100_000,
            method=dp.renyi.Variational(),
            direction=direction,
            rng=seed,
        ).value
        for direction in ("forward", "backward")
    )
    truth = [mechanism.renyi(4.0, ends) for ends in (mechanism.pair, mechanism.pair[::-1])]
    assert (there > back) == (truth[0] > truth[1])


def test_an_order_beyond_the_draws_is_named(seed):
    curve = dp.renyi.curve(
        zoo.Gaussian(0.3), PAIR, orders=[2, 40], n=2000, method=dp.renyi.Variational(), rng=seed
    )
    assert any("too few" in note and "40" in note for note in curve.about.notes)
    assert np.all(np.isfinite(curve.lower))


def test_samples_serve_as_mechanism(seed):
    samples = dp.draw(zoo.Gaussian(), PAIR, n=20_000, rng=seed)
    bound = dp.renyi.lower_bound(samples, order=2, method=dp.renyi.Variational())
    assert 0.5 < bound.value < 1.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 1.0}, "above 1"),
        ({"order": math.inf}, "pure DP"),
        ({"order": 2, "n": 0}, "n"),
        ({"order": 2, "direction": "sideways"}, "direction"),
        ({"order": 2, "confidence": 95}, "confidence"),
    ],
)
def test_errors_come_before_the_first_draw(options, words):
    def mechanism(data, size, rng):
        pytest.fail("drawn")

    with pytest.raises(InvalidInput, match=words):
        dp.renyi.lower_bound(mechanism, PAIR, **({"n": 100} | options))


def test_an_estimate_by_the_bound_is_refused():
    with pytest.raises(InvalidInput, match="Softmax"):
        dp.renyi.estimate(zoo.Laplace(), PAIR, order=2, n=100, method=dp.renyi.Variational())
    with pytest.raises((InvalidInput, NotEnoughDraws)):
        dp.renyi.lower_bound(zoo.Laplace(), PAIR, order=2, n=5, method=dp.renyi.Variational())
    with pytest.raises(InvalidInput):
        dp.renyi.Softmax(floor=-1.0)
    with pytest.raises(InvalidInput):
        dp.renyi.Variational(train=1.5)


def test_a_bound_that_says_how_large_the_floor_is_says_so():
    """Cells that one side never showed, and a floor far below a draw: the value is the floor's."""
    response = zoo.RandomizedResponse(1.5)
    bound = dp.renyi.lower_bound(
        response,
        response.pair,
        order=7,
        n=5000,
        method=dp.renyi.Softmax(floor=1e-5, sharpness=1e5),
        rng=0,
    )
    assert re.search(
        r"note: the value at order 7 may be (far )?too small, or too large: up to [\d.]+%",
        str(bound),
    )
    assert "floor" in str(bound)
    many = _warnings(
        [SimpleNamespace(order=k, floored=0.8, value=2.0) for k in (4, 8, 8)],
        SimpleNamespace(
            notes=(),
            masses=lambda one_sided: Masses([0.5, 0.5], [0.5, 0.5]),
            cell_counts=SimpleNamespace(n=(100, 100)),
        ),
        (False, True),
    )
    assert many[0].startswith("the value at orders 4, 8 may be far too small, or too large")
    assert "up to 80.0% of the integral" in many[0]


def test_the_variational_curve_is_nowhere_below_its_own_bound(seed):
    curve = dp.renyi.curve(
        dp.zoo.Gaussian(1.0),
        (0.0, 1.0),
        orders=[1.5, 2.0, 4.0, 500.0],
        n=4000,
        rng=seed,
        method=dp.renyi.Variational(),
    )
    assert np.all(curve.y >= curve.lower)
    assert curve.y[1] == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("order", [4.0, 8.0, 16.0, 32.0])
def test_an_estimate_far_below_the_truth_is_noted(order, seed):
    """The floor decides at large orders, though little of the integral lies below it."""
    pair = (0.0, 1.0)
    found = dp.renyi.estimate(dp.zoo.Gaussian(1.0), pair, order=order, n=100_000, rng=seed)
    assert found.value < 0.85 * order / 2
    assert any("too small, or too large: up to" in note for note in found.about.notes)
    laplace = dp.renyi.estimate(dp.zoo.Laplace(1.0), pair, order=4, n=200_000, rng=seed)
    assert not any("too small" in note for note in laplace.about.notes)


def test_the_chart_of_a_curve_shows_its_notes(seed):
    gaussian, pair = dp.zoo.Gaussian(1.0), (0.0, 1.0)
    curve = dp.renyi.curve(gaussian, pair, orders=[2, 8], n=10_000, rng=seed)
    drawn = curve.chart().to_dict()["title"]["subtitle"]
    assert "too small" in " ".join(drawn)
    assert max(map(len, drawn)) <= 80


@pytest.mark.parametrize("call", [dp.renyi.estimate, dp.renyi.lower_bound])
def test_several_orders_are_a_curve(call):
    with pytest.raises(dp.errors.InvalidInput, match=r"got \[2, 4\]; dp\.renyi\.curve"):
        call(dp.zoo.Gaussian(1.0), (0.0, 1.0), order=[2, 4], n=100)


def test_a_variational_bound_from_bits_says_so():
    def release(x, size, rng):
        return x + rng.normal(size=size)

    found = [
        dp.renyi.lower_bound(
            release, (0.0, 1.0), order=2, n=20_000, rng=0, method=dp.renyi.Variational(loss=loss)
        )
        for loss in ("auto", "values")
    ]
    told = [
        any("floating-point representation" in note for note in one.about.notes) for one in found
    ]
    assert told == [True, False]
    assert found[1].value <= 1.0 < found[0].value


def test_mass_that_the_other_input_lacks_is_noted(seeds):
    """Laplace noise cut at 5: 0.6 % of the draws lie where the other input has none, D = ∞."""
    cut = dp.zoo.TruncatedLaplace(honest=True)
    for seed in seeds[:3]:
        for found in (
            dp.renyi.estimate(cut, PAIR, order=2, n=50_000, rng=seed),
            dp.renyi.curve(cut, PAIR, orders=[1.5, 2], n=50_000, rng=seed),
            dp.renyi.lower_bound(cut, PAIR, order=2, n=50_000, rng=seed),
        ):
            assert "∞ at every order" in str(found)
    for mechanism in (dp.zoo.Laplace(1.0), dp.zoo.Gaussian(1.0), _cauchy):
        for seed in seeds[:5]:
            found = dp.renyi.estimate(mechanism, PAIR, order=2, n=20_000, rng=seed)
            assert "∞ at every order" not in str(found)


def _cauchy(x, size, rng):
    return x + rng.standard_cauchy(size)


def test_too_few_draws_are_noted_only_where_they_decide(seed):
    """Laplace noise has a level loss, which its clip keeps; at order 16 Gaussian noise is cut short."""
    for mechanism, few in ((dp.zoo.Laplace(1.0), False), (dp.zoo.Gaussian(1.0), True)):
        found = dp.renyi.lower_bound(
            mechanism, PAIR, order=16, n=200_000, method=dp.renyi.Variational(), rng=seed
        )
        assert ("too few for order" in str(found)) == few


def test_simultaneous_bounds_rise_with_the_order():
    """As the divergence does; each by itself they were .363, .610, 0 and .157."""
    found = {
        at_once: dp.renyi.curve(
            dp.zoo.DiscreteGaussian(1.5),
            (0, 1),
            orders=[2, 4, 8, 16],
            n=20_000,
            simultaneous=at_once,
            method=dp.renyi.Variational(),
            rng=1,
        )
        for at_once in (True, False)
    }
    assert (np.diff(found[True].lower) >= 0).all()
    assert (found[True].y >= found[True].lower).all()
    assert not (np.diff(found[False].lower) >= 0).all()  # they do not hold at once


def test_estimates_that_rare_categories_decide_are_noted(seeds):
    """Of discrete Gaussian noise ε(16) mostly comes out as 2 and is 3.56: it lies where no draw does."""
    mechanism = dp.zoo.DiscreteGaussian(1.5)
    for seed in seeds[:4]:
        found = dp.renyi.curve(
            mechanism, (0, 1), orders=[2, 16], n=100_000, method=dp.renyi.Variational(), rng=seed
        )
        assert "too few for order 16: outputs with fewer than 100 of them" in str(found)
    response = dp.zoo.RandomizedResponse(2.0)
    for seed in seeds[:4]:
        found = dp.renyi.curve(
            response,
            response.pair,
            orders=[2, 16],
            n=20_000,
            method=dp.renyi.Variational(),
            rng=seed,
        )
        assert "too few" not in str(found.about.notes)
