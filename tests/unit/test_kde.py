"""Densities and bandwidths from binned draws, against slow versions and scipy."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpassay.errors import InvalidInput
from dpassay.loss import kde
from dpassay.loss.bandwidth import NAMES, bandwidth, scale, undersmooth
from dpassay.loss.binned import Axis, Binned, axes_for, bin_linear, merge

RNG = np.random.default_rng(3)
NORMAL = RNG.normal(size=3000)
SAMPLES = {
    "normal": NORMAL,
    "laplace": RNG.laplace(size=3000),
    "bimodal": np.concatenate([NORMAL[:1500], 6 + 0.3 * NORMAL[1500:]]),
}


def binned_of(values, size=8192):
    return bin_linear(values[:, None], axes_for([values[:, None]], size=size))


# --- binning


def slow_bin(values, axes):
    weights = np.zeros([a.size for a in axes])
    for row in values:
        place = [(x - a.low) / a.step for x, a in zip(row, axes, strict=True)]
        if any(t < 0 or t > a.size - 1 for t, a in zip(place, axes, strict=True)):
            continue
        low = [min(int(t), a.size - 2) for t, a in zip(place, axes, strict=True)]
        for corner in np.ndindex(*(2,) * len(axes)):
            share = math.prod(
                (t - k) if up else 1 - (t - k) for t, k, up in zip(place, low, corner, strict=True)
            )
            weights[tuple(k + up for k, up in zip(low, corner, strict=True))] += share
    return weights


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_linear_binning_against_a_slow_loop(dimension):
    values = RNG.normal(size=(300, dimension))
    axes = tuple(Axis(-2.0, 2.5, 9 + k) for k in range(dimension))
    fast = bin_linear(values, axes)
    assert fast.weights == pytest.approx(slow_bin(values, axes))
    assert fast.total == pytest.approx(300)
    inside = np.all((values >= -2) & (values <= 2.5), axis=1).sum()
    assert fast.outside == 300 - inside


@pytest.mark.parametrize("dimension", [1, 2])
def test_binned_draws_merge(dimension):
    values = RNG.normal(size=(1000, dimension))
    axes = tuple(Axis(-3.0, 3.0, 65) for _ in range(dimension))
    parts = [bin_linear(values[k::3], axes) for k in range(3)]
    whole = bin_linear(values, axes)
    assert merge(parts).weights == pytest.approx(whole.weights)
    assert merge(parts).outside == whole.outside
    with pytest.raises(InvalidInput, match="different grids"):
        parts[0] + bin_linear(values, tuple(Axis(-3.0, 3.0, 33) for _ in range(dimension)))


def test_binning_twice_is_binning_once():
    """Hat functions are refinable: a fine grid loses nothing on the way to a coarse one."""
    values = RNG.normal(size=(500, 1))
    fine, coarse = Axis(-4.0, 4.0, 129), Axis(-4.0, 4.0, 33)
    once = bin_linear(values, (coarse,)).weights
    through = bin_linear(values, (fine,)).weights
    twice = np.zeros(33)
    for x, w in zip(fine.points, through, strict=True):
        twice += w * bin_linear(np.array([[x]]), (coarse,)).weights
    assert twice == pytest.approx(once)


def test_a_far_draw_does_not_stretch_the_grid():
    values = np.append(NORMAL, 1e9)[:, None]
    (axis,) = axes_for([values])
    assert axis.high < 100
    assert bin_linear(values, (axis,)).outside == 1


def test_equal_draws_have_a_grid_too():
    values = np.full((50, 1), 3.0)
    (axis,) = axes_for([values])
    assert axis.low < 3 < axis.high
    assert bin_linear(values, (axis,)).outside == 0


# --- densities


@pytest.mark.parametrize("name", SAMPLES)
def test_density_on_a_grid_agrees_with_scipy(name):
    values = SAMPLES[name]
    h = 0.3
    binned = binned_of(values, size=16_384)
    ours = kde.on_grid(binned, (h,))
    theirs = stats.gaussian_kde(values, bw_method=h / values.std(ddof=1))(binned.axes[0].points)
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_density_in_two_dimensions_is_the_direct_sum():
    values = RNG.normal(size=(800, 2))
    axes = axes_for([values], size=257)
    h = (0.5, 0.4)
    ours = kde.on_grid(bin_linear(values, axes), h)
    for k in ((128, 128), (100, 170), (60, 90)):
        point = np.array([a.points[i] for a, i in zip(axes, k, strict=True)])
        z = (values - point) / np.array(h)
        slow = np.exp(-0.5 * (z**2).sum(axis=1)).mean() / (2 * np.pi * 0.5 * 0.4)
        assert kde.at_points(values, point[None, :], h)[0] == pytest.approx(slow)
        assert ours[k] == pytest.approx(slow, abs=1e-4)


def test_density_in_three_dimensions_integrates_to_one():
    values = RNG.normal(size=(2000, 3))
    axes = axes_for([values], size=64)
    binned = bin_linear(values, axes)
    density = kde.on_grid(binned, (0.4, 0.4, 0.4))
    assert density.sum() * binned.cell == pytest.approx(1.0, abs=0.01)


def test_density_at_points_is_the_direct_sum():
    points = np.array([[-3.0], [0.0], [2.5]])
    slow = stats.norm.pdf((points - NORMAL[None, :]) / 0.2).mean(axis=1) / 0.2
    assert kde.at_points(NORMAL[:, None], points, (0.2,)) == pytest.approx(slow)


def test_kernel_norm_is_the_integral_of_the_square():
    exact, _ = integrate.quad(lambda x: stats.norm.pdf(x, scale=0.3) ** 2, -5, 5)
    assert kde.kernel_norm((0.3,)) == pytest.approx(exact)
    assert kde.kernel_norm((0.3, 0.3)) == pytest.approx(exact**2)


# --- bandwidths


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


@pytest.mark.parametrize("rule", NAMES)
def test_bandwidths_scale_with_the_data_and_ignore_its_place(rule):
    one = bandwidth(binned_of(NORMAL), rule)[0]
    other = bandwidth(binned_of(100.0 + 7.0 * NORMAL), rule)[0]
    assert other == pytest.approx(7 * one, rel=1e-3)


def test_silverman_is_the_rule_of_thumb():
    s = min(NORMAL.std(), stats.iqr(NORMAL) / 1.34)
    assert bandwidth(binned_of(NORMAL), "silverman")[0] == pytest.approx(
        0.9 * s * 3000**-0.2, rel=2e-3
    )


def test_bandwidth_is_a_name_or_a_number():
    assert bandwidth(binned_of(NORMAL), 0.25) == (0.25,)
    with pytest.raises(InvalidInput, match="bandwidth must be one of"):
        bandwidth(binned_of(NORMAL), "best")
    with pytest.raises(InvalidInput, match="bandwidth must be a number above 0"):
        bandwidth(binned_of(NORMAL), -1.0)


@pytest.mark.parametrize("rule", NAMES)
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
