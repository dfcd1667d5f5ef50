"""Hit rates by a calibrated fit of the log-odds (`learning.calibration`)."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binom, norm

import dpassay as dp
from dpassay.learning.calibration import calibrated, contradicted
from dpassay.learning.hit_rates import HitRates


def groups(p, q, size=200):
    """Scores of two sides in groups of about equally many."""
    least = np.unique(np.quantile(np.concatenate([p, q]), np.linspace(0, 1, size), method="lower"))
    edges = np.append(least, np.inf)
    return least, *(np.histogram(side, edges)[0].astype(float) for side in (p, q))


def likelihood(chance, first, second):
    return float(first @ np.log(chance) + second @ np.log1p(-chance))


def test_the_fit_has_the_largest_likelihood(seed):
    """Against a general optimiser, over the five ranges beyond which log-odds may be level."""
    rng = np.random.default_rng(seed)
    x, first, second = groups(rng.normal(0.7, 1, 3000), rng.normal(0, 1.1, 2000))
    below = np.cumsum(first + second) / 5000
    best = -np.inf
    for share in (0.0, 0.02, 0.1, 0.3, 0.45):
        ends = x[[np.argmax(below >= share), min(np.argmax(below >= 1 - share), x.size - 1)]]
        level = np.clip(x, *ends)

        def missed(beta, level=level):
            return -likelihood(expit(beta[0] + beta[1] * level), first, second)

        best = max(best, -minimize(missed, [0.0, 0.0], method="BFGS").fun)
    assert likelihood(calibrated(x, first, second), first, second) == pytest.approx(best, abs=1e-2)


def test_rare_events_are_known_better_than_by_counting(seeds):
    """P[score ≥ 2.5] of Gaussians one apart from 1,000 draws a side: half of the error."""
    truth = norm.sf(2.5 - 1) / norm.sf(2.5)
    found = []
    for seed in seeds[:40]:
        rng = np.random.default_rng(seed)
        scores = rng.normal(1, 1, 1000), rng.normal(0, 1, 1000)
        rates = [HitRates.of(scores, False, (3000, 3000), modelled=m) for m in (False, True)]
        assert rates[1].modelled
        k = int(np.searchsorted(rates[0].thresholds, 2.5))
        found.append([np.log(one.high[k] / one.low[k] / truth) for one in rates])
    counted, fitted = np.sqrt(np.mean(np.square(found), axis=0))
    assert fitted < counted / 2


def test_a_true_model_is_seldom_contradicted(seeds):
    """3.5 standard errors in some of 400 nested groups: under 3 % of 200 samples."""
    refused = 0
    for seed in seeds[:200]:
        rng = np.random.default_rng(seed)
        refused += calibrated(*groups(rng.normal(1, 1, 500), rng.normal(0, 1, 500))) is None
    assert refused <= binom.ppf(0.9999, 200, 0.03)


@pytest.mark.parametrize("swapped", [False, True])
def test_scores_that_tell_in_the_middle_are_counted(swapped, seed):
    """Log-odds that rise and fall are no line that levels off."""
    rng = np.random.default_rng(seed)
    sides = rng.normal(0, 1, 5000), rng.normal(0, 1.5, 5000)
    scores = sides[::-1] if swapped else sides
    assert calibrated(*groups(*scores)) is None
    counted, given = (HitRates.of(scores, False, (100, 100), modelled=m) for m in (False, True))
    assert not given.modelled
    assert np.array_equal(counted.high, given.high)
    assert np.array_equal(counted.low, given.low)


def test_counts_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    p, q = np.round(rng.normal(0.5, 1, 60), 1), np.round(rng.normal(0, 1, 50), 1)
    p[:5] = np.nan
    rates = HitRates.of((p, q), False, (100, 100), tails=True)
    for k, threshold in enumerate(rates.thresholds):
        for j, (above, swapped) in enumerate(rates.orientations):
            high, low = (
                np.sum(side >= threshold) if above else np.sum(side <= threshold)
                for side in ((q, p) if swapped else (p, q))
            )
            n, m = (50, 60) if swapped else (60, 50)
            at = j * rates.thresholds.size + k
            assert rates.high[at] == pytest.approx(high / (n + 1))
            assert rates.low[at] == pytest.approx((low + 0.5) / (m + 1))


def test_scores_may_be_infinite_separable_or_few(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(1, 1, 800), rng.normal(0, 1, 800)
    p[:3], q[:3] = np.inf, -np.inf
    assert calibrated(*groups(p, q)) is not None
    apart = calibrated(*groups(rng.random(500) + 2, rng.random(500)))
    assert apart is None or (apart[0] < 0.01 and apart[-1] > 0.99)
    assert calibrated(*groups(np.sign(p), np.sign(q))) is None  # too few values for a line
    assert calibrated(*groups(rng.random(800), rng.random(800))) is None  # nothing is told


def test_a_loss_that_grows_without_end_is_certified_far_out(seeds):
    """N(0, 1) against N(0, 1.5²), claim ½: 3.3 to 3.4 on average; 3.0 if frequencies are counted."""

    def scales(x, n, rng):
        return rng.normal(size=n) * (1.5 if x else 1.0)

    bounds = [
        dp.audit(scales, (0, 1), "eps=.5", n=20_000, rng=seed).lower_bound for seed in seeds[:24]
    ]
    assert np.mean(bounds) > 3.15


def test_rare_counts_are_certified_from_frequent_ones(seeds):
    """Poisson counts, mean 20 against 23, claim ½: 1.6 to 1.7 on average; 1.4 by their frequencies."""
    bounds = [
        dp.audit(lambda x, n, rng: rng.poisson(20 + 3 * x, n), (0, 1), "eps=.5", n=20_000, rng=seed)
        for seed in seeds[:24]
    ]
    assert np.mean([one.lower_bound for one in bounds]) > 1.52


def test_scores_that_separate_the_sides_are_not_calibrated_and_the_witness_can_be_counted():
    groups = np.arange(10.0)
    assert calibrated(groups, np.repeat([0.0, 9.0], 5), np.repeat([9.0, 0.0], 5)) is None
    assert calibrated(groups, np.repeat([9.0, 0.0], 5), np.repeat([0.0, 9.0], 5)) is None

    def histogram(rows, rng):  # the key of the last record is there, or not
        return {key: rows.count(key) + round(float(rng.laplace()), 3) for key in sorted(set(rows))}

    pair = ["a", "a", "b"], ["a", "a", "b", "c"]
    verdict = dp.audit(dp.from_function(histogram), pair, "eps=1", n=2000, rng=0)
    assert verdict.violated
    assert "score" not in verdict.witness.event.words


def test_residuals_of_a_fit_have_smaller_standard_errors(seeds):
    """A line fitted to log-odds ±0.04, a step, leaves residuals that only the smaller errors show."""
    x = np.linspace(-3, 3, 200)
    drawn = 400_000 * norm.pdf(x) / norm.pdf(x).sum()
    shown, refused = np.zeros(2), 0
    for seed in seeds[:40]:
        rng = np.random.default_rng(seed)
        for true in (0.04 * np.sign(x), 0.04 * x):
            first = rng.binomial(drawn.astype(int), expit(true)).astype(float)
            some = drawn.astype(int).astype(float)
            slope = ((first - some / 2) @ x) / (some / 4 @ x**2)  # a step of Newton's method
            chance = expit(slope * x)
            if true[0] == -0.04:
                shown += [contradicted(first, some, chance, 4.5, residual=r) for r in (False, True)]
            else:
                refused += contradicted(first, some, chance, 4.5, residual=True)
    assert shown[1] >= 30 > 2 * shown[0]
    assert refused == 0
