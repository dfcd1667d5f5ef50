"""Kernels and the option that chooses them, against integrals, scikit-learn and slow sums."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from tests.helpers import binned_of, three_samples

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.scores.kernel_density import GAUSSIAN, KERNELS, density_at, density_on_grid

ORDER_TWO = ("gaussian", "epanechnikov", "laplace")
HALF_LINE = (0.0, math.inf)
#: Name and standard deviation of the same kernels in scikit-learn.
THEIRS = {
    "gaussian": ("gaussian", 1.0),
    "epanechnikov": ("epanechnikov", 1 / math.sqrt(5)),
    "laplace": ("exponential", math.sqrt(2)),
}


def moment(kernel, order, power=1):
    points = [0.0, kernel.reach] if kernel.reach < 3 else [0.0]
    value, _ = integrate.quad(
        lambda t: t**order * float(kernel.density(np.array(t))) ** power,
        -kernel.reach,
        kernel.reach,
        points=points,
        limit=400,
    )
    return value


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_the_moments_and_the_norm_it_is_said_to_have(name):
    kernel = KERNELS[name]
    assert moment(kernel, 0) == pytest.approx(1.0, abs=1e-9)
    assert moment(kernel, 2) == pytest.approx(1.0 if name in ORDER_TWO else 0.0, abs=1e-7)
    assert moment(kernel, 0, 2) == pytest.approx(kernel.square, rel=1e-9)
    assert float(kernel.density(np.array(0.0))) == pytest.approx(kernel.peak)
    assert kernel.norm((0.3, 0.2)) == pytest.approx(kernel.square**2 / 0.06)
    assert kernel.top((0.5,)) == pytest.approx(2 * kernel.peak)


@pytest.mark.parametrize("kernel", ORDER_TWO)
@pytest.mark.parametrize("sample", three_samples())
def test_density_on_a_grid_is_that_of_scikit_learn(kernel, sample):
    from sklearn.neighbors import KernelDensity

    values, h = three_samples()[sample][:500], 0.3
    name, spread = THEIRS[kernel]
    binned = binned_of(values, size=8192)
    theirs = KernelDensity(kernel=name, bandwidth=h / spread).fit(values[:, None])
    slow = np.exp(theirs.score_samples(binned.axes[0].points[::16, None]))
    fast = density_on_grid(binned, (h,), KERNELS[kernel])[::16]
    # a kink or an edge of the kernel is rounded off within a step of the grid
    assert np.abs(fast - slow).max() < 1e-3 * slow.max()


@pytest.mark.parametrize("kernel", KERNELS)
def test_density_on_a_grid_of_two_axes_is_the_direct_sum(kernel):
    from dpassay.scores.cell_counts import axes_for, bin_linear

    values = np.random.default_rng(1).normal(size=(500, 2))
    axes, h, shape = axes_for([values], size=401), (0.5, 0.4), KERNELS[kernel]
    fast = density_on_grid(bin_linear(values, axes), h, shape)
    for k in ((200, 200), (150, 250)):
        point = np.array([a.points[i] for a, i in zip(axes, k, strict=True)])
        slow = np.prod(shape.density((values - point) / h), axis=1).mean() / math.prod(h)
        assert fast[k] == pytest.approx(slow, rel=5e-3)
        assert density_at(values, point[None, :], h, shape)[0] == pytest.approx(slow)


@pytest.mark.parametrize("kernel", KERNELS)
def test_reflection_is_the_direct_sum_over_draws_and_their_mirror_images(kernel):
    values = np.random.default_rng(2).exponential(size=800)
    h, shape = 0.1, KERNELS[kernel]
    binned = binned_of(values, size=8192)
    both = np.concatenate([values, -values])
    x = binned.axes[0].points
    fast = density_on_grid(binned, (h,), shape, HALF_LINE)
    at = np.searchsorted(x, [0.0, 0.05, 0.2, 1.0])
    slow = np.maximum(shape.density((x[at, None] - both) / h).sum(axis=1) / (800 * h), 0.0)
    assert fast[at] == pytest.approx(slow, rel=0.01)
    assert np.all(fast[x < 0] == 0)


def test_variance_near_an_end_is_that_of_simulated_estimates():
    rng, h, n = np.random.default_rng(3), 0.2, 2000
    distance = np.array([0.0, 0.5, 1.0, 3.0])
    found = []
    for _ in range(1500):
        values = rng.random(n)[:, None]  # density 1 on [0, 1]
        points = h * distance[:, None]
        both = (density_at(values, side * points, (h,)) for side in (1, -1))
        found.append(sum(both))
    # a variance from 1500 runs is known to 4 %; the formula leaves out f² and edge effects of order h
    seen = n * np.var(found, axis=0) + 1.0
    assert seen == pytest.approx(GAUSSIAN.norm((h,)) * GAUSSIAN.near_end(distance), rel=0.15)
    assert KERNELS["epanechnikov"].near_end(np.array([0.0]))[0] == pytest.approx(2.0, rel=1e-3)


# --- the option


def half_normal(x, size, rng):
    return np.abs(rng.normal(x, size=size))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_estimates_and_bounds_the_level_of_laplace_noise(kernel, seed):
    option = dp.KernelDensity(kernel)
    box = dp.zoo.Laplace(1.0)
    found = dp.pure.estimate(box, (0.0, 1.0), n=100_000, bandwidth=option, rng=seed)
    assert found.value == pytest.approx(1.0, abs=0.2)
    bound = dp.pure.lower_bound(box, (0.0, 1.0), n=100_000, bandwidth=option, rng=seed)
    assert 0.7 < bound.value < 1.1
    renyi = dp.renyi.estimate(
        box, (0.0, 1.0), order=2, n=100_000, method=dp.renyi.Softmax(bandwidth=option), rng=seed
    )
    assert renyi.value == pytest.approx(float(box.renyi(2.0, (0.0, 1.0))), abs=0.05)


def test_a_support_doubles_the_density_at_its_end(seed):
    option = dp.KernelDensity(support=HALF_LINE)
    plain, ended = (
        dp.pure.estimate(half_normal, (0.0, 1.0), n=50_000, bandwidth=b, rng=seed).loss
        for b in ("sj", option)
    )
    assert np.interp(0.0, plain.x, plain.p) == pytest.approx(0.4, abs=0.03)
    assert ended.p[ended.x >= 0][0] == pytest.approx(2 * stats.norm.pdf(0), abs=0.03)


def test_bounds_at_the_end_of_a_support_stay_below_the_truth(seeds):
    """The worst output of |N(x, 1)| on 0 and 1 within [0, 0.01] is 0, where the loss is ½."""
    truth = 0.5
    option = dp.KernelDensity(support=HALF_LINE)
    wrong = sum(
        dp.pure.lower_bound(
            half_normal,
            (0.0, 1.0),
            n=4000,
            n_bound=20_000,
            region=(0.0, 0.01),
            caution=0.0,
            bandwidth=option,
            rng=seed,
        ).value
        > truth
        for seed in seeds[:100]
    )
    assert wrong <= stats.binom.ppf(0.999, 100, 0.05)


def test_a_support_holds_where_outputs_are_far_from_zero(seed):
    def far(x, size, rng):
        return 1e9 + half_normal(x, size, rng)

    option = dp.KernelDensity(support=(1e9, math.inf))
    near = dp.KernelDensity(support=HALF_LINE)
    there = dp.pure.estimate(far, (0.0, 1.0), n=20_000, bandwidth=option, rng=seed).loss
    here = dp.pure.estimate(half_normal, (0.0, 1.0), n=20_000, bandwidth=near, rng=seed).loss
    assert there.p.max() == pytest.approx(here.p.max(), rel=0.05)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dp.KernelDensity("box"), "kernel must be one of"),
        (lambda: dp.KernelDensity(bandwidth="best"), "bandwidth must be one of"),
        (lambda: dp.KernelDensity(bandwidth=-1.0), "bandwidth must be a number above 0"),
        (lambda: dp.KernelDensity(bandwidth=(0.1, 0.2, 0.3)), "a pair, one for each"),
        (lambda: dp.KernelDensity(bandwidth=("sj", 0.0)), "bandwidth must be a number above 0"),
        (lambda: dp.KernelDensity(support=(1.0, 0.0)), "low < high"),
        (lambda: dp.KernelDensity(support=3.0), "low < high"),
        (lambda: dp.KernelDensity(exponent=0.0), "exponent must be"),
        (lambda: dp.renyi.Softmax(bandwidth="x"), "bandwidth must be one of"),
        (
            lambda: dp.pure.estimate(
                lambda x, size, rng: rng.normal(x, size=(size, 2)),
                (0.0, 1.0),
                n=1000,
                bandwidth=dp.KernelDensity(support=HALF_LINE),
            ),
            "support is for outputs that are one number",
        ),
    ],
)
def test_what_an_option_cannot_be_is_refused(make, says):
    with pytest.raises(InvalidInput, match=says):
        make()
