"""The largest probability along the boundary of a claim."""

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds import supremum as module
from dpassay.bounds.joint_test import Counts
from dpassay.bounds.ordering import count_range, observed_distance, seen_contour, window_of
from dpassay.bounds.supremum import Lattice, supremum


def test_a_curve_with_many_kinks_has_the_p_value_of_a_direct_sum():
    """Nearly equal slopes: where two lines meet must not be taken from their difference alone."""
    a = np.sort(np.random.default_rng(7).random(60) ** 2)
    points = [(0.0, 1.0), *((t, (1 - t**0.6) ** (1 / 0.6)) for t in a), (1.0, 0.0)]
    c, claim = Counts(351, 500, 145, 500), dp.TradeoffDP(points).at(0.01)
    window = window_of(c, 5e-5)
    assert observed_distance(window, claim) > 0
    contour = seen_contour(window, claim)
    q = np.linspace(window.q_low, window.q_high, 4001)
    p = claim.region(q)
    q, p = (
        q[(p >= window.p_low) & (p <= window.p_high)],
        p[(p >= window.p_low) & (p <= window.p_high)],
    )
    j = np.arange(window.first_j, window.last_j + 1)
    least = contour(j)
    direct = np.sum(binom.pmf(j, c.m, q[:, None]) * binom.sf(least - 1, c.n, p[:, None]), axis=1)
    assert direct.max() <= supremum(Lattice(window, contour), claim) <= 1.02 * direct.max()


@pytest.fixture
def groups(monkeypatch):
    """Counts are put into groups from so many on."""
    return lambda most: monkeypatch.setattr(module, "_COUNTED", most)


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("most", [16, 64, 300])
def test_groups_of_counts_are_bounded_from_above_and_their_total_from_below(groups, most, p):
    groups(most)
    n, cut_off = 4000, 1e-9
    first, last = (int(end) for end in count_range(n, p, cut_off))
    found = module.Grouped(n, first, last, cut_off)
    assert found.step > 1
    low, mass, total, more = found.mass_and_total(np.array([p]))
    starts = found.starts[low[0] :][: mass.shape[1]]
    true = binom.cdf(starts + found.step - 1, n, p) - binom.cdf(starts - 1, n, p)
    assert np.all(mass[0] / total[0] >= true - 1e-15)
    scale = np.exp(more) * mass.sum() / total[0]
    assert np.all(mass[0] / total[0] <= scale * true + 1e-15)
    bend = found.step**2 / (n * p * (1 - p))  # (b/σ)²
    assert 1 <= mass.sum() / total[0] <= 1 + bend
    np.testing.assert_allclose(mass[0] / mass.sum(), true, atol=bend)


@pytest.mark.parametrize(
    ("claim", "counts"),
    [
        (dp.PureDP(1.0), Counts(20_500, 40_000, 7_300, 40_000)),
        (dp.PureDP(1.0), Counts(21_000, 40_000, 3_600, 20_000)),
        (dp.ApproximateDP(0.5, 0.01), Counts(20_500, 40_000, 12_000, 40_000)),
        (dp.GaussianDP(1.0), Counts(27_850, 40_000, 12_300, 40_000)),
        (dp.PureDP(1.0), Counts(21_000, 40_000, 180, 1000)),  # only one side is in groups
        (dp.PureDP(2.0), Counts(39_500, 40_000, 35_900, 40_000)),
    ],
)
def test_the_test_by_groups_is_never_smaller_and_hardly_larger(groups, claim, counts):
    window = window_of(counts, 5e-5)
    least = seen_contour(window, claim)
    exact = supremum(Lattice(window, least), claim)
    assert 1e-6 < exact < 0.9
    for most, near in ((16, np.inf), (64, np.inf), (900, 1.2)):
        groups(most)
        assert exact * (1 - 1e-9) <= supremum(Lattice(window, least), claim) <= near * exact


@pytest.mark.parametrize("n", [10**6, 10**10, 10**12])
@pytest.mark.parametrize("share", [1e-4, 0.3, 0.999])
def test_masses_of_many_counts_are_those_of_a_sum_of_logarithms(n, share):
    """Differences of log-factorials would be off by n log n·10⁻¹⁶, which is 10⁻⁴ at 10¹²."""
    centre = round(n * share)
    by = 3 * round(np.sqrt(n * share * (1 - share)))
    step = max(1, by // 2000)  # a sum of so many terms, each of them at the middle of its stretch
    k = centre + np.arange(0, by, step)
    found = module._log_masses(k.astype(float), n, float(centre))
    middle = k[:-1] + (step - 1) / 2
    slope = np.log((n - middle) / (middle + 1)) - np.log((n - centre) / centre)
    expected = np.concatenate([[0.0], np.cumsum(step * slope)])
    np.testing.assert_allclose(found - found[0], expected, atol=2e-6)


@pytest.mark.parametrize(
    ("claim", "rates"),
    [(dp.PureDP(1.0), (0.50021, 0.18394)), (dp.GaussianDP(1.0), (0.6916, 0.3085))],
)
def test_wide_groups_of_very_many_counts_cost_next_to_nothing(groups, claim, rates):
    n = 10**8
    window = window_of(Counts(int(n * rates[0]), n, int(n * rates[1]), n), 5e-5)
    contour = seen_contour(window, claim)
    groups(1 << 17)
    fine = supremum(Lattice(window, contour), claim)
    assert 1e-4 < fine < 0.5
    groups(1 << 13)
    assert fine * (1 - 1e-9) <= supremum(Lattice(window, contour), claim) <= 1.02 * fine
