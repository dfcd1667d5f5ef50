"""Densities from binned draws, against direct sums and scipy."""

import numpy as np
import pytest
from scipy import stats
from tests.helpers import binned_of, three_samples

import dpassay as dp
from dpassay.scores.cell_counts import Smoothing, axes_for, bin_linear
from dpassay.scores.kernel_density import density_at, density_on_grid

SAMPLES = three_samples()
RNG = np.random.default_rng(4)
NORMAL = SAMPLES["normal"]


@pytest.mark.parametrize("name", SAMPLES)
def test_density_on_a_grid_agrees_with_scipy(name):
    values = SAMPLES[name]
    h = 0.3
    binned = binned_of(values, size=16_384)
    ours = density_on_grid(binned, (h,))
    theirs = stats.gaussian_kde(values, bw_method=h / values.std(ddof=1))(binned.axes[0].points)
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_density_in_two_dimensions_is_the_direct_sum():
    values = RNG.normal(size=(800, 2))
    axes = axes_for([values], size=257)
    h = (0.5, 0.4)
    ours = density_on_grid(bin_linear(values, axes), h)
    for k in ((128, 128), (100, 170), (60, 90)):
        point = np.array([a.points[i] for a, i in zip(axes, k, strict=True)])
        z = (values - point) / np.array(h)
        slow = np.exp(-0.5 * (z**2).sum(axis=1)).mean() / (2 * np.pi * 0.5 * 0.4)
        assert density_at(values, point[None, :], h)[0] == pytest.approx(slow)
        assert ours[k] == pytest.approx(slow, abs=1e-4)


def test_density_in_three_dimensions_integrates_to_one():
    values = RNG.normal(size=(2000, 3))
    axes = axes_for([values], size=64)
    binned = bin_linear(values, axes)
    density = density_on_grid(binned, (0.4, 0.4, 0.4))
    assert density.sum() * binned.cell == pytest.approx(1.0, abs=0.01)


def test_density_at_points_is_the_direct_sum():
    points = np.array([[-3.0], [0.0], [2.5]])
    slow = stats.norm.pdf((points - NORMAL[None, :]) / 0.2).mean(axis=1) / 0.2
    assert density_at(NORMAL[:, None], points, (0.2,)) == pytest.approx(slow)


HEAVY = {
    "cauchy": (lambda x, size, rng: x + rng.standard_cauchy(size), 0.4055, 0.9624),
    "t2": (lambda x, size, rng: x + rng.standard_t(2, size), 0.4929, 1.0397),
    "lognormal": (lambda x, size, rng: np.exp(rng.normal(x, 1.5, size)), 0.4444, None),
}


@pytest.mark.parametrize("name", HEAVY)
def test_estimates_of_heavy_tails_are_near_the_truth(name, seed):
    """Tails make the grid long; its steps stay short beside the bandwidth."""
    draw, renyi, pure = HEAVY[name]

    def mechanism(x, size, rng):
        return np.round(draw(x, size, rng), 6)

    pair = (0.0, 1.0)
    found = dp.renyi.estimate(mechanism, pair, order=2, n=20_000, rng=seed)
    assert 0.8 * renyi < found.value < 1.1 * renyi
    if pure:
        found = dp.pure.estimate(mechanism, pair, n=20_000, rng=seed)
        assert found.value == pytest.approx(pure, rel=0.2)
        assert found.loss.x.size <= 4096
        narrow = dp.pure.estimate(mechanism, pair, n=20_000, bandwidth=0.05, rng=seed)
        assert narrow.value != found.value


def test_a_grid_that_is_coarser_than_the_bandwidth_is_noted(seed):
    def mechanism(x, size, rng):
        return np.round(x + rng.standard_cauchy(size), 6)

    fine = dp.pure.estimate(mechanism, (0.0, 1.0), n=20_000, bandwidth=0.1, rng=seed)
    assert "too coarse" not in str(fine)
    coarse = dp.pure.estimate(mechanism, (0.0, 1.0), n=20_000, bandwidth=1e-4, rng=seed)
    assert "too coarse" in str(coarse)


def test_the_grid_of_light_tails_has_its_usual_size():
    for values in (NORMAL, RNG.laplace(size=5000)):
        samples = [values[:, None]]
        usual = axes_for(samples)
        assert axes_for(samples, smoothing=Smoothing(values.size, None)) == usual
