"""The sparse vector technique: samplers and truths against the textbook and quadrature."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import dpassay as dp
from dpassay.blackbox.zoo.svt import first_above

zoo = dp.zoo
EPS = np.linspace(0.0, 3.0, 13)
ORDERS = np.array([1.5, 2.0, 5.0, 7.0])
ONES = np.ones(10, dtype=np.int64)
HALF = np.array([2] * 5 + [0] * 5)
SHAPE_X = (np.array([1] * 5 + [0] * 5), np.array([0] * 5 + [1] * 5))


def test_svt_without_cutoff_follows_its_law(seeds):
    """Patterns of SVT5 and SVT6 on answers that differ, by the number above in each group."""
    n = 100_000
    for variant in (5, 6):
        svt = zoo.SVT(variant, 1.5)
        rows = svt(np.array([0, 0, 2, 2]), n, np.random.default_rng(seeds[0]))
        counts = np.bincount(3 * rows[:, :2].sum(axis=1) + rows[:, 2:].sum(axis=1), minlength=9)
        z = np.linspace(-60, 60, 400_001)
        w = np.exp(-np.abs(z) / svt.threshold_scale)
        w /= w.sum()
        want = np.zeros((3, 3))
        chance = [
            (a >= 1 + z) if variant == 5 else stats.laplace(a, svt.query_scale).sf(1 + z)
            for a in (0, 2)
        ]
        for i, j in itertools.product(range(3), repeat=2):
            want[i, j] = np.sum(
                w * stats.binom.pmf(i, 2, chance[0]) * stats.binom.pmf(j, 2, chance[1])
            )
        keep = n * want.ravel() > 5
        assert counts[~keep].sum() <= 30
        scaled = n * want.ravel()[keep]
        observed = counts[keep]
        assert stats.chisquare(observed, scaled * observed.sum() / scaled.sum()).pvalue > 1e-5


@pytest.mark.parametrize("svt", [zoo.SVT(3, 0.7), zoo.NumericalSVT(0.7)], ids=str)
def test_numerical_svt_releases_the_right_numbers(svt, seeds):
    data = np.array([0, 1, 2])
    rows = svt(data, 100_000, np.random.default_rng(seeds[0]))
    first = np.where(np.isfinite(rows).any(axis=1), np.isfinite(rows).argmax(axis=1), 3)
    # simulate the textbook one output at a time
    rng = np.random.default_rng(seeds[1])
    slow = []
    for _ in range(20_000):
        line = 1 + rng.laplace(scale=svt.threshold_scale)
        for k, answer in enumerate(data):
            noisy = answer + rng.laplace(scale=svt.query_scale)
            if noisy >= line:
                if isinstance(svt, zoo.NumericalSVT):
                    noisy = answer + rng.laplace(scale=svt.number_scale)
                slow.append((k, noisy))
                break
        else:
            slow.append((3, 0.0))
    slow_first = np.array([k for k, _ in slow])
    table = [np.bincount(side, minlength=4) for side in (first, slow_first)]
    assert stats.chi2_contingency(table).pvalue > 1e-5
    for k in range(3):
        numbers = [y for i, y in slow if i == k]
        assert stats.ks_2samp(rows[first == k, k], numbers).pvalue > 1e-5
        assert np.all(np.isneginf(rows[first == k, :k]))
        assert np.all(np.isnan(rows[first == k, k + 1 :]))


@pytest.mark.parametrize("variant", [1, 2, 3, 4])
def test_cutoff_stops_after_so_many(variant, seed):
    rows = zoo.SVT(variant, 2.0, cutoff=2)(3 * ONES, 5000, np.random.default_rng(seed))
    above = np.isfinite(rows) if variant == 3 else rows == 1
    stopped = np.isnan(rows) if variant == 3 else rows == -1
    assert above.sum(axis=1).max() == 2
    for row_above, row_stopped in zip(above, stopped, strict=True):
        if row_above.sum() == 2:
            last = np.flatnonzero(row_above)[-1]
            assert row_stopped[last + 1 :].all()
            assert not row_stopped[: last + 1].any()


def test_svt_reference_values():
    cases = [
        (2, (ONES, HALF), 0.6321),
        (4, (ONES, HALF), 1.2173),
        (2, SHAPE_X, 0.5964),
        (4, SHAPE_X, 1.1790),
        (6, SHAPE_X, 2.8572),
    ]
    for variant, pair, value in cases:
        assert zoo.SVT(variant, 0.7).epsilon(pair) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("variant", [1, 4])
def test_svt_probabilities_agree_with_scipy_quadrature(variant):
    svt = zoo.SVT(variant, 0.7)
    answers = HALF.astype(float)
    got = first_above(svt, answers)
    assert got.sum() == pytest.approx(1.0, abs=1e-10)
    noise, line = stats.laplace(0, svt.query_scale), stats.laplace(0, svt.threshold_scale)
    for k in (0, 4, 7):

        def integrand(z, k=k):
            below = np.prod(noise.cdf(1 + z - answers[:k]))
            return line.pdf(z) * below * noise.sf(1 + z - answers[k])

        exact, _ = integrate.quad(integrand, -200, 200, points=[-1, 0, 1], limit=400, epsabs=1e-12)
        assert got[k] == pytest.approx(exact, abs=1e-9)


def test_svt_groups_of_like_answers_agree_with_single_patterns():
    """The count-per-group truth of SVT6 against all 2⁶ patterns."""
    svt, pair = zoo.SVT(6, 1.0), (np.array([1, 1, 1, 0, 0, 0]), np.array([0, 0, 0, 1, 1, 1]))
    z = np.linspace(-80, 80, 160_001)
    w = np.exp(-np.abs(z) / svt.threshold_scale)
    w /= w.sum()
    rows = []
    for answers in pair:
        above = stats.laplace(0, svt.query_scale).sf(1 + z[None, :] - answers[:, None])
        rows.append(
            [
                np.sum(w * np.prod(np.where(np.array(bits)[:, None], above, 1 - above), axis=0))
                for bits in itertools.product([False, True], repeat=6)
            ]
        )
    full = dp.Masses(*rows)
    assert svt.epsilon(pair) == pytest.approx(full.epsilon(), rel=1e-6)
    assert svt.delta(EPS, pair) == pytest.approx(full.delta(EPS), abs=1e-8)
    assert svt.renyi(ORDERS, pair) == pytest.approx(full.renyi(ORDERS), rel=1e-6)
