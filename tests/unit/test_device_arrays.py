"""Arrays that stay where they are give the verdicts of NumPy's bit for bit; only counts come back."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import dpassay as dp
from dpassay.outputs import device_arrays
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.device_arrays import DeviceOutputs, kept_on_device, on_host
from dpassay.outputs.events import Intervals, of_keys
from dpassay.outputs.keys import learn

PAIR = (0.0, 1.0)
#: CuPy and JAX are tested by hand, where they are; the others by `make test-torch` and `make test`.
LIBRARIES = [
    name
    for name in ("array_api_strict", "torch", "cupy", "jax.numpy")
    if find_spec(name.partition(".")[0])
]


@pytest.fixture(params=LIBRARIES)
def library(request):
    if request.param == "jax.numpy":
        import_module("jax").config.update("jax_enable_x64", True)
    return import_module(request.param)


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def stuck(monkeypatch):
    """Copies of more than a head are refused."""
    first = DeviceOutputs.first

    def few(self, rows):
        assert rows < len(self), "a block was copied"
        return first(self, rows)

    monkeypatch.setattr(DeviceOutputs, "first", few)


def there(library, mechanism):
    return lambda x, size, rng: library.asarray(np.asarray(mechanism(x, size, rng)))


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3), (5, 2, 2)])
@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "uint8", "bool"])
def test_outputs_are_read_as_numpys(library, shape, kind):
    given = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    found, expected = kept_on_device(library.asarray(given), 5), from_raw(given, 5)
    assert isinstance(found, DeviceOutputs)
    np.testing.assert_array_equal(on_host(found).numbers, expected.numbers)
    assert found.structures == expected.structures
    assert found.containers == expected.containers


@pytest.mark.parametrize(
    "given",
    [[0.0, np.nan], [np.inf, 0.0], [2**53, 0], [-(2**53) - 1, 0], [1j, 0], 0.5, [1.0], [[], []]],
)
def test_what_is_not_finite_numbers_is_copied(library, given):
    assert kept_on_device(library.asarray(np.array(given)), 2) is None


def test_arrays_of_numpy_and_lists_are_read_as_ever():
    for given in (np.zeros(2), [0.0, 1.0], np.float64(1.0), "ab", None):
        assert kept_on_device(given, 2) is None


def test_arrays_that_are_computed_when_asked_for_are_copied_once(seed):
    """Else every comparison would see draws of its own, and counts were not binomial."""
    delayed, lazy = import_module("dask").delayed, import_module("dask.array")
    rng = np.random.default_rng(seed)
    drawn = delayed(rng.normal, pure=False)(size=2000)
    array = lazy.from_delayed(drawn, shape=(2000,), dtype=float)
    assert kept_on_device(array, 2000) is None
    assert len(from_raw(array, 2000)) == 2000


def test_sums_beyond_all_doubles_are_no_infinity(library):
    assert isinstance(kept_on_device(library.asarray(np.full(4, 1e308)), 4), DeviceOutputs)


@pytest.mark.usefixtures("stuck")
def test_intervals_are_counted_there(library, rng):
    x = np.round(rng.normal(size=500), 2)
    layout, *_ = learn(from_raw(rng.normal(size=500), 500), from_raw(rng.normal(size=500), 500))
    many = np.linspace(-2, 2, 9), np.linspace(-1.75, 2.25, 9)
    open_ = np.array([-np.inf, -0.5, 0.25, 1.0]), np.array([-1.0, 0.0, 0.75, np.inf])
    some = [many, open_, ([-0.5, 0.5], [0.0, 1.0]), ([0.0], [np.inf]), ([-np.inf], [0.0])]
    some += [([-np.inf], [np.inf]), (open_[0][:2], open_[1][:2])]
    for lows, highs in some:
        test = Intervals(np.asarray(lows, dtype=float), np.asarray(highs, dtype=float))
        event = of_keys(layout, (), [(0, test)])
        found = kept_on_device(library.asarray(x), 500)
        assert event.count(found) == event.count(from_raw(x, 500))


@pytest.mark.usefixtures("stuck")
@pytest.mark.parametrize("otherwise", [False, True])
def test_atoms_are_counted_there(library, rng, otherwise):
    seen = from_raw(rng.integers(0, 6, size=600), 600)
    layout, *_ = learn(seen, seen)
    new = rng.integers(-2, 9, size=400)
    event = of_keys(layout, (0, 3), (), otherwise)
    assert event.count(kept_on_device(library.asarray(new), 400)) == event.count(from_raw(new, 400))


@pytest.mark.usefixtures("stuck")
@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (dp.zoo.Laplace(1.0), "eps=0.5"),
        (dp.zoo.Gaussian(1.0), "eps=0.5, delta=0.01"),
        (dp.zoo.Gaussian(1.0), "mu=0.8"),
    ],
)
def test_verdicts_on_numbers_are_numpys_and_no_block_is_copied(library, mechanism, claim):
    ours = dp.audit(there(library, mechanism), PAIR, claim, n=60_000, loss="values", rng=1)
    theirs = dp.audit(mechanism, PAIR, claim, n=60_000, loss="values", rng=1)
    assert ours.to_json() == theirs.to_json()


@pytest.mark.parametrize(
    ("mechanism", "pair", "claim"),
    [
        (dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=0.5"),
        (dp.zoo.Laplace(1.0), (np.zeros(3), np.ones(3)), "eps=1"),
        (dp.zoo.Gaussian(1.0), PAIR, "rho=0.2"),
        (dp.zoo.NaiveLaplace(1.0), PAIR, "eps=1"),
        (lambda x, size, rng: np.where(rng.random(size) < 0.1, np.nan, x), PAIR, "eps=1"),
    ],
)
def test_verdicts_on_anything_are_numpys(library, mechanism, pair, claim):
    ours = dp.audit(there(library, mechanism), pair, claim, n=2000, rng=1)
    assert ours.to_json() == dp.audit(mechanism, pair, claim, n=2000, rng=1).to_json()


def test_spectra_are_numpys(library, monkeypatch):
    monkeypatch.setattr("dpassay.scores.cell_counts.FIRST_LOOK", 2000)  # the rest is streamed
    mechanism = dp.zoo.Gaussian(1.0)
    ours, theirs = (
        dp.spectrum.estimate(one, PAIR, n=20_000, rng=1)
        for one in (there(library, mechanism), mechanism)
    )
    np.testing.assert_array_equal(ours.lower, theirs.lower)
    np.testing.assert_array_equal(ours.y, theirs.y)


def test_changed_inputs_are_noticed_there_too(library):
    def spoils(x, size, rng):
        x += 1.0
        return library.asarray(x + rng.laplace(size=size))

    with pytest.raises(dp.errors.InputChanged):
        dp.audit(spoils, (np.zeros(1), np.ones(1)), "eps=1", n=400, rng=0)


def test_draws_from_a_fixed_seed_are_noticed_there_too(library):
    def seeded(x, size, rng):
        return library.asarray(x + np.random.default_rng(0).laplace(size=size))

    with pytest.raises(dp.errors.DependentDraws):
        dp.audit(seeded, PAIR, "eps=1", n=400, rng=0)


if not find_spec("torch"):

    def test_noise_of_torch_says_what_is_missing():
        with pytest.raises(dp.errors.MechanismRaised, match=r"dpassay\[torch\]"):
            dp.audit(dp.zoo.TorchLaplace(), PAIR, "eps=1", n=400, rng=0)

else:

    @pytest.mark.usefixtures("stuck")
    @pytest.mark.parametrize(
        ("mechanism", "pair"),
        [
            (dp.zoo.TorchLaplace(1.0), PAIR),
            (dp.zoo.TorchGaussian(1.0), PAIR),
            (dp.zoo.TorchNoisyGradientDescent(sigma=0.1), dp.zoo.NoisyGradientDescent().pair),
        ],
    )
    def test_noise_of_torch_has_its_law(mechanism, pair):
        found = dp.spectrum.estimate(mechanism, pair, n=200_000, rng=3)
        truth = mechanism.delta(found.x, pair)
        assert truth[0] > 0.2
        assert np.abs(found.y - truth).max() < 0.01
        again = dp.spectrum.estimate(mechanism, pair, n=200_000, rng=3)
        np.testing.assert_array_equal(found.y, again.y)

    @pytest.mark.parametrize("size", [1, 2039, 2040, 2041, 100_003])
    @pytest.mark.parametrize("share", [0.0, 0.01, 0.6, 1.0])
    def test_torch_counts_what_is_true(rng, size, share):
        import torch

        given = rng.random(size) < share
        assert device_arrays.count(torch.asarray(given)) == np.count_nonzero(given)

    @pytest.mark.usefixtures("stuck")
    def test_torch_counts_cells_there(rng):
        from dpassay.scores.cell_counts import Binning

        torch = import_module("torch")
        _, p, q = learn(*(from_raw(rng.normal(size=3000), 3000) for _ in range(2)))
        binning = Binning.learn(p, q)
        far = np.concatenate([rng.normal(size=4000), [1e9, -1e9]])
        ours = binning.count(*(kept_on_device(torch.asarray(far), 4002) for _ in range(2)))
        theirs = binning.count(*(from_raw(far, 4002) for _ in range(2)))
        np.testing.assert_array_equal(ours.binned[0][0].weights, theirs.binned[0][0].weights)
        np.testing.assert_array_equal(ours.binned[0][0].counts, theirs.binned[0][0].counts)
        assert ours.binned[0][0].outside == theirs.binned[0][0].outside == 2.0
