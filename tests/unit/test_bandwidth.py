"""Bandwidths from binned draws, against slow versions."""

import math

import numpy as np
import pytest
from scipy import stats
from tests.helpers import binned_of, three_samples

from dpassay.scores.cell_counts import Binned
from dpassay.scores.kernel_density import (
    GAUSSIAN,
    KERNELS,
    RULES,
    KernelDensity,
    bandwidth,
    bandwidths,
    scale,
    undersmooth,
)

SAMPLES = three_samples()
NORMAL = SAMPLES["normal"]


def slow_sheather_jones(values):
    """The two-stage plug-in with all n² differences."""
    n = values.size
    q75, q25 = np.quantile(values, [0.75, 0.25])
    s = min(values.std(), (q75 - q25) / 1.349)
    z = (values[:, None] - values[None, :]) / s

    def psi(order, g):
        u = z / g
        hermite = {4: u**4 - 6 * u**2 + 3, 6: u**6 - 15 * u**4 + 45 * u**2 - 15}[order]
        return np.sum(hermite * stats.norm.pdf(u)) / (n**2 * g ** (order + 1))

    a = (2 * 2**4.5 / (7 * n)) ** (1 / 9)
    b = (-3 * math.sqrt(2 / math.pi) / (psi(6, a) * n)) ** (1 / 7)
    return s * (1 / (2 * math.sqrt(math.pi) * psi(4, b) * n)) ** 0.2


@pytest.mark.parametrize("name", SAMPLES)
def test_sheather_jones_from_binned_draws_is_that_from_all_differences(name):
    values = SAMPLES[name][::2]
    assert bandwidth(binned_of(values), "sj")[0] == pytest.approx(
        slow_sheather_jones(values), rel=2e-3
    )


def test_sheather_jones_is_near_the_optimum_for_a_normal_density():
    values = np.random.default_rng(0).normal(size=100_000)
    optimum = (4 / 3) ** 0.2 * 100_000**-0.2
    for rule in ("sj", "isj", "scott"):
        assert bandwidth(binned_of(values), rule)[0] == pytest.approx(optimum, rel=0.07)


def test_plug_in_rules_see_that_two_narrow_modes_need_a_small_bandwidth():
    narrow = binned_of(SAMPLES["bimodal"])
    assert bandwidth(narrow, "sj")[0] < 0.6 * bandwidth(narrow, "silverman")[0]
    assert bandwidth(narrow, "isj")[0] < 0.5 * bandwidth(narrow, "silverman")[0]


def test_improved_sheather_jones_solves_its_fixed_point_equation():
    """ξ γ^{[5]}(t) = t, evaluated from the definition with slow sums."""
    values = SAMPLES["bimodal"]
    binned = binned_of(values, size=1024)
    axis = binned.axes[0]
    width = axis.high - axis.low + axis.step
    t = (bandwidth(binned, "isj")[0] / width) ** 2
    n, k = binned.total, np.arange(1, 1024)
    places = (np.arange(1024) + 0.5) / 1024
    a = np.array([np.sum(binned.weights / n * np.cos(np.pi * j * places)) for j in k])

    def norm(time, s):
        return (
            2
            * np.pi ** (2 * s)
            * np.sum(k ** (2.0 * s) * a**2 * np.exp(-((k * np.pi) ** 2) * time))
        )

    f = norm(t, 7)
    for s in range(6, 1, -1):
        odd = math.prod(range(1, 2 * s, 2)) / math.sqrt(2 * math.pi)
        f = norm((2 * (1 + 0.5 ** (s + 0.5)) / 3 * odd / (n * f)) ** (2 / (3 + 2 * s)), s)
    assert (2 * n * math.sqrt(math.pi) * f) ** -0.4 == pytest.approx(t, rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_bandwidths_scale_with_the_data_and_ignore_its_place(rule):
    one = bandwidth(binned_of(NORMAL), rule)[0]
    other = bandwidth(binned_of(100.0 + 7.0 * NORMAL), rule)[0]
    assert other == pytest.approx(7 * one, rel=1e-3)


def test_silverman_is_the_rule_of_thumb():
    s = min(NORMAL.std(), stats.iqr(NORMAL) / 1.34)
    assert bandwidth(binned_of(NORMAL), "silverman")[0] == pytest.approx(
        0.9 * s * 3000**-0.2, rel=2e-3
    )


def test_a_number_is_taken_as_it_is():
    assert bandwidth(binned_of(NORMAL), 0.25) == (0.25,)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
def test_likelihood_cross_validation_is_the_slow_one(name, kernel):
    """The leave-one-out likelihood with all n² differences is that of the best bandwidth."""
    values, shape = SAMPLES[name][:400], KERNELS[kernel]
    apart = values[:, None] - values

    def likelihood(h):
        others = (shape.density(apart / h) / h).sum(axis=1) - shape.peak / h
        return np.log(np.maximum(others / (values.size - 1), 1e-12)).sum()

    found = bandwidth(binned_of(values), "likelihood", shape)[0]
    best = max(likelihood(h) for h in np.geomspace(0.02, 3.0, 200))
    assert likelihood(found) > best - 0.5  # of about 600: what binning and the tolerance cost


def test_rules_are_rescaled_for_other_kernels():
    plain = bandwidth(binned_of(NORMAL), "sj")[0]
    flat = bandwidth(binned_of(NORMAL), "sj", KERNELS["epanechnikov"])[0]
    # the optimum is ∝ (∫K²)^{1/5} for kernels of variance 1
    assert flat / plain == pytest.approx((0.6 / math.sqrt(5) / GAUSSIAN.square) ** 0.2)


def test_two_bandwidths_or_the_smaller_one():
    p, q = binned_of(NORMAL, size=4096), binned_of(NORMAL, size=4096)
    one, two = bandwidths(p, q, KernelDensity(bandwidth=(0.2, 0.5)), False)
    assert (one, two) == ((0.2,), (0.5,))
    assert bandwidths(p, q, KernelDensity(bandwidth=("silverman", 0.5)), False)[1] == (0.5,)
    narrow = Binned(p.axes, p.weights**2)  # another side on the same grid
    own = [bandwidth(side, "silverman")[0] for side in (p, narrow)]
    common = bandwidths(p, narrow, KernelDensity(bandwidth="silverman"), False)
    assert common == ((min(own),), (min(own),))


def test_an_exponent_replaces_undersmoothing_in_the_scale_of_the_data():
    binned = binned_of(10 * NORMAL)
    h = bandwidth(binned, "sj")[0]
    raised, _ = bandwidths(binned, binned, KernelDensity(exponent=1.1), True)
    plain, _ = bandwidths(binned, binned, KernelDensity(), True)
    assert raised[0] == pytest.approx(h**1.1)
    assert plain[0] == pytest.approx(undersmooth(h, scale(binned)))


@pytest.mark.parametrize("rule", RULES)
def test_degenerate_draws_have_a_positive_bandwidth(rule):
    for values in (np.full(100, 2.0), np.array([0.0, 1.0] * 50)):
        assert bandwidth(binned_of(values), rule)[0] > 0


def test_undersmoothing_shrinks_whatever_the_unit():
    for unit in (1e-3, 1.0, 1e3):
        h, s = 0.1 * unit, unit
        assert undersmooth(h, s) == pytest.approx(h * 0.1**0.1)


def test_scale_of_binned_draws():
    assert scale(binned_of(NORMAL)) == pytest.approx(
        min(NORMAL.std(), stats.iqr(NORMAL) / 1.349), rel=1e-3
    )
    assert isinstance(binned_of(NORMAL), Binned)
