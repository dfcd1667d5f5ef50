"""Common random numbers: what repeats, what differs, and how pairs are ranked by it."""

import math
import random
import secrets

import numpy as np
import pytest

import dpassay as dp
from dpassay.hunting.common_random_numbers import (
    MOST,
    Coupled,
    Coupling,
    RecordingGenerator,
    difference,
    suspicion,
)
from dpassay.outputs.canonical import from_raw
from dpassay.sampling.samples import Batch

QUIET = dp.Sampling(progress=False)


def laplace(data, size, rng):
    return data + rng.laplace(size=size)


def coupled(mechanism, pair, n=32, **options):
    return Coupling(mechanism, 0, **options).draw(pair, n, 1, failing=False)


def test_noise_that_is_added_cancels():
    found = coupled(laplace, (0.0, 2.5))
    moves = found.batch.q.numbers - found.batch.p.numbers
    assert moves == pytest.approx(2.5)
    assert found.apart == 0


@pytest.mark.parametrize("shift", [0.3, 1.0, 4.0])
def test_the_difference_of_laplace_noise_is_its_epsilon(shift):
    found = [
        difference(Coupling(laplace, seed).draw((0.0, shift), 200, 1, failing=False))
        for seed in range(20)
    ]
    assert np.mean(found) == pytest.approx(shift, rel=0.1)


def test_the_mahalanobis_distance_sees_what_columns_do_not():
    """Noise that two answers share hides neither of them from the other."""

    def shared(data, size, rng):
        return np.asarray(data) + rng.laplace(size=(size, 1)) + 0.1 * rng.normal(size=(size, 2))

    together = difference(coupled(shared, ([0.0, 0.0], [1.0, 1.0]), 100))
    apart = difference(coupled(shared, ([0.0, 0.0], [1.0, -1.0]), 100))
    assert apart > 4 * together


def test_equal_outputs_differ_by_nothing_and_a_column_without_noise_by_the_most():
    assert difference(coupled(laplace, (1.0, 1.0))) == 0
    exact = np.zeros(8)
    batch = Batch.of(from_raw(exact, 8), from_raw(exact + 1, 8))
    assert difference(Coupled(batch, 0.0)) == MOST


def test_outputs_at_the_end_of_the_range_are_compared():
    def huge(data, size, rng):
        return data * rng.choice([-1.7e308, 1.7e308], size=size)

    with np.errstate(all="ignore"):
        assert difference(coupled(huge, (1.0, -1.0))) == MOST


def test_a_scale_that_depends_on_the_data_shows_without_a_shift():
    def scaled(data, size, rng):
        return data * rng.laplace(size=size)

    assert difference(coupled(scaled, (1.0, 2.0))) == pytest.approx(4 * math.log(2), rel=0.01)


def test_kinds_of_output_are_compared_by_their_log_ratio():
    same = from_raw(["a"] * 32, 32)
    other = from_raw(["a"] * 16 + ["b"] * 16, 32)
    found = difference(Coupled(Batch.of(same, other), 0.0))
    assert found == pytest.approx(math.log(16.5 / 0.5) + 0.5)


def test_control_flow_that_depends_on_the_data_shows_in_the_generators():
    def redrawn(data, rng):
        value = -1.0
        while value < data:
            value = rng.random()
        return 0.0

    assert coupled(dp.from_function(redrawn), (0.0, 0.9)).apart > 0.5


SYSTEM = secrets.SystemRandom()


def test_global_states_are_repeated_and_given_back():
    def globals_(data):
        return data + np.random.laplace() + random.random()

    mechanism = dp.from_function(globals_)
    assert Coupling(mechanism, 0).repeats(0.0, 8, 1) is False
    shared = Coupling(mechanism, 0, shared=True)
    state = random.getstate()
    assert shared.repeats(0.0, 8, 1) is True
    assert random.getstate() == state
    found = shared.draw((0.0, 1.0), 8, 1, failing=False)
    assert found.batch.q.numbers - found.batch.p.numbers == pytest.approx(1.0)


def test_a_system_source_is_noticed_and_the_hunt_goes_on(seed):
    def system(data):
        return round(3 * float(data) + SYSTEM.expovariate(1.0) - SYSTEM.expovariate(1.0), 3)

    mechanism = dp.from_function(system)
    assert Coupling(mechanism, 0, shared=True).repeats(0.0, 8, 1) is False
    found = dp.hunt(
        mechanism, dp.inputs.Real(0, 1), "eps=1", budget=20_000, rng=seed, sampling=QUIET
    )
    assert found.violated
    assert all(one.difference == 0 for one in found.families)


def test_outputs_that_never_vary_say_nothing_about_repeating():
    assert Coupling(lambda data, size, rng: np.zeros(size), 0).repeats(0.0, 8, 1) is None


def test_calls_with_another_scale_or_none_are_suspicious():
    rng = RecordingGenerator(np.random.PCG64(0))
    rng.laplace(5.0, 2.0, size=3)
    rng.normal(loc=1.0, scale=3.0)
    rng.random(4)
    assert rng.calls == [("laplace", 2.0), ("normal", 3.0), ("random", None)]
    assert suspicion(rng.calls, list(rng.calls)) == ""
    assert "laplace with scale=2.0 on the first input, 1.0 on" in suspicion(
        rng.calls, [("laplace", 1.0)]
    )
    assert suspicion(rng.calls[:1], rng.calls[:2]) == (
        "call 2: normal on the second input, no such call on the other"
    )
    assert suspicion(rng.calls[:1], rng.calls[1:2]).startswith("call 1: laplace on the first")


def test_a_recording_generator_draws_the_same_numbers():
    plain, noted = np.random.default_rng(3), RecordingGenerator(np.random.PCG64(3))
    assert plain.laplace(size=3).tolist() == noted.laplace(size=3).tolist()


def test_suspicions_are_reported_and_their_inputs_tried(seed):
    def local(data, size, rng):
        scale = max(np.ptp(data), 0.01)
        return np.round(data.mean() + rng.laplace(scale=scale, size=size), 4)

    space, options = dp.inputs.Reals(0, 1, 4), {"budget": 20_000, "rng": seed, "sampling": QUIET}
    found = dp.hunt(local, space, "eps=1", guide="calls", **options)
    assert found.violated
    assert "laplace with scale=" in found.suspicions[0]
    assert "suspicion: call 1" in str(found)

    def plain(data, size, rng):
        return np.round(data.mean() + rng.laplace(scale=0.25, size=size), 4)

    assert not dp.hunt(plain, space, "eps=1", guide="calls", **options).suspicions
    with pytest.raises(dp.errors.InvalidInput, match="guide must be"):
        dp.hunt(plain, space, "eps=1", guide="code")
