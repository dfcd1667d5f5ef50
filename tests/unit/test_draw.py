"""Reproducible, independent, and never a silent wrong number."""

import copy
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.helpers import laplace_mechanism, one_laplace

import dpassay as dp
from dpassay.errors import (
    BadOutput,
    DependentDraws,
    InputChanged,
    Interrupted,
    InvalidInput,
    MechanismRaised,
    MechanismTimedOut,
)
from dpassay.sampling.draw import seed_of

PAIR = (0.0, 1.0)


# --- the same seed, the same draws


@pytest.mark.parametrize("mechanism", [laplace_mechanism, dp.from_function(one_laplace)])
@pytest.mark.parametrize("n", [1, 2, 999, 150_000])
def test_draws_depend_on_the_seed_alone(mechanism, n, seed):
    n = min(n, 999) if mechanism is not laplace_mechanism else n
    one = dp.draw(mechanism, PAIR, n=n, rng=seed)
    ways = [dp.Sampling(workers=1), dp.Sampling(workers=2), dp.Sampling(workers=5)]
    with ThreadPoolExecutor(3) as threads:
        for way in [*ways, dp.Sampling(executor=threads)]:
            again = dp.draw(mechanism, PAIR, n=n, rng=seed, sampling=way)
            assert np.array_equal(one.p.numbers, again.p.numbers)
            assert np.array_equal(one.q.numbers, again.q.numbers)


def test_sides_and_stages_have_streams_of_their_own(seed):
    samples = dp.draw(laplace_mechanism, (0.0, 0.0), n=1000, rng=seed)
    assert np.intersect1d(samples.p.numbers, samples.q.numbers).size == 0


@pytest.mark.parametrize(
    "rng", [5, np.random.default_rng(5), np.random.SeedSequence(5), np.random.PCG64(5), None]
)
def test_the_recorded_seed_repeats_the_run(rng):
    samples = dp.draw(laplace_mechanism, PAIR, n=100, rng=rng)
    again = dp.draw(laplace_mechanism, PAIR, n=100, rng=samples.seed)
    assert np.array_equal(samples.p.numbers, again.p.numbers)


@pytest.mark.parametrize("rng", [-1, "seed", 1.5, True])
def test_bad_seeds_are_refused(rng):
    with pytest.raises(InvalidInput, match="rng must be"):
        seed_of(rng)


# --- independence


def test_a_generator_made_anew_with_a_fixed_seed_is_noticed():
    def mechanism(x, size, rng):
        return x + np.random.default_rng(42).laplace(size=size)

    with pytest.raises(DependentDraws, match="fixed seed"):
        dp.draw(mechanism, PAIR, n=100)


def test_noise_drawn_once_per_call_is_noticed():
    def mechanism(x, size, rng):
        return np.full(size, x + rng.laplace())

    with pytest.raises(DependentDraws, match="once per call"):
        dp.draw(mechanism, PAIR, n=100)


@pytest.mark.parametrize("n", [2, 10, 200])
def test_equal_blocks_of_few_discrete_outputs_are_no_alarm(n, seed):
    rare = dp.from_function(lambda x, rng: int(rng.random() < 0.02))
    for k in range(50):
        dp.draw(rare, PAIR, n=n, rng=seed + k)


def test_constant_outputs_are_no_alarm():
    dp.draw(lambda x, size, rng: np.full(size, x), PAIR, n=100_000)


def test_constant_outputs_beside_wider_ones_are_no_alarm(seed):
    """How many numbers the other side's outputs have is no part of this side's one output."""

    def mechanism(counts, rng):
        return {key: count for key, count in counts.items() if rng.random() < 0.004}

    dp.draw(dp.from_function(mechanism), ({}, {"a": 1}), n=3000, rng=seed)


# --- mechanisms that misbehave


def failing_after(good_blocks):
    calls = iter(range(10_000))

    def mechanism(x, size, rng):
        if next(calls) >= 2 * good_blocks:
            raise ValueError("no more")
        return x + rng.laplace(size=size)

    return mechanism


def test_an_exception_names_input_seed_and_cause_and_keeps_the_draws():
    with pytest.raises(MechanismRaised) as caught:
        dp.draw(failing_after(2), PAIR, n=200_000, rng=7)
    text = str(caught.value)
    assert "on input 0.0" in text
    assert "ValueError: no more" in text
    assert "SeedSequence(7, spawn_key=(0, 0, 2, 0))" in text
    assert caught.value.samples.remaining == (2 * 65536, 2 * 65536)


def test_the_printed_seed_replays_the_block():
    seen = []

    def mechanism(x, size, rng):
        seen.append(rng.bit_generator.state)
        raise RuntimeError

    with pytest.raises(MechanismRaised):
        dp.draw(mechanism, PAIR, n=10, rng=7)
    replay = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(0, 0, 0, 0)))
    assert replay.bit_generator.state == seen[0]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda size: np.zeros(size - 1), "outputs for size=5"),
        (lambda size: 1.0, "one value"),
        (lambda size: {"a": 1}, "an array, a list or a table .a function with one output per call"),
        (lambda size: [object()] * size, "no canonical form"),
    ],
)
def test_wrong_counts_and_shapes_are_errors(returned, words):
    with pytest.raises(BadOutput, match=words):
        dp.draw(lambda x, size, rng: returned(size), PAIR, n=10)


def test_sides_of_different_dimension_are_outputs_of_different_kinds():
    samples = dp.draw(lambda x, size, rng: rng.normal(size=(size, 2 + int(x))), PAIR, n=10)
    assert not set(samples.p.codes) & set(samples.q.codes)


def test_a_mechanism_that_changes_its_input_is_refused():
    def sorts(data, size, rng):
        data.sort()
        return data.sum() + rng.laplace(size=size)

    for data in (np.array([3, 1, 2]), [3, 1, 2]):
        other = data.copy()

        def mechanism(data, size, rng):
            data.sort() if isinstance(data, list) else sorts(data, 1, rng)
            return rng.laplace(size=size)

        with pytest.raises(InputChanged, match="deepcopy"):
            dp.draw(mechanism, (data, other), n=10)
    dp.draw(lambda x, size, rng: sorts(x.copy(), size, rng), (np.ones(3), np.zeros(3)), n=10)


def test_a_mechanism_that_empties_its_input_and_then_fails_is_refused_for_that():
    def pops(rows, rng):
        rows.pop()
        return len(rows) + rng.laplace()

    with pytest.raises(InputChanged, match="in place"):
        dp.draw(dp.from_function(pops), ([1, 2, 3], [1, 2, 3, 4]), n=10)


def test_what_is_advised_where_inputs_change_shows_what_every_output_gives_away():
    """A copy a call would be changed by the first output, and later ones would look private."""

    def leaks(data, rng):
        out = sum(data) + rng.laplace()
        if len(data) > 2:
            data.pop()
        return out

    def one_call(data, size, rng):
        return [leaks(data, rng) for _ in range(size)]

    def own_randomness(data):
        return leaks(data, np.random.default_rng())

    for function, mechanism in (
        (leaks, dp.from_function(leaks)),
        (own_randomness, dp.from_function(own_randomness)),
        (None, one_call),
    ):
        pair = ([0, 0, 0], [0, 0, 100])
        with pytest.raises(InputChanged, match="its own") as refused:
            dp.draw(mechanism, pair, n=10)
        names = {"dp": dp, "copy": copy, "function": function, "mechanism": mechanism}
        advised = eval(str(refused.value).split("its own: ")[1].split("\n")[0], names)
        pair = ([0, 0, 0], [0, 0, 100])
        assert dp.bound(advised, pair, n=1000, rng=0).value > 3


def test_a_hanging_mechanism_times_out():
    def hangs(x, rng):
        while x:
            pass
        return 0.0

    start = time.monotonic()
    with pytest.raises(MechanismTimedOut, match="on input 1.0"):
        dp.draw(dp.from_function(hangs), PAIR, n=10, sampling=dp.Sampling(timeout=0.2))
    assert time.monotonic() - start < 5


def test_a_time_out_cannot_be_swallowed_by_the_mechanism():
    def stubborn(x, size, rng):
        try:
            time.sleep(30)
        except Exception:
            pass
        return np.zeros(size)

    with pytest.raises(MechanismTimedOut):
        dp.draw(stubborn, PAIR, n=10, sampling=dp.Sampling(timeout=0.1))


def raises_on_one(x, rng):
    if x and rng.random() < 0.5:
        raise ZeroDivisionError
    return 1


def test_an_exception_can_be_an_outcome(seed):
    way = dp.Sampling(on_error="outcome")
    samples = dp.draw(dp.from_function(raises_on_one), (0, 1), n=400, rng=seed, sampling=way)
    crashes = sum("raised ZeroDivisionError" in samples.q.show(k) for k in range(400))
    assert 120 < crashes < 280
    assert all(samples.p.show(k) == "1" for k in range(400))


def test_a_time_out_can_be_an_outcome():
    def slow(x, rng):
        time.sleep(10 if x else 0)
        return 0

    way = dp.Sampling(on_error="outcome", timeout=0.05)
    samples = dp.draw(dp.from_function(slow), (0, 1), n=4, sampling=way)
    assert samples.q.show(0) == "timed out"


def test_vectorised_mechanisms_fail_output_by_output_as_outcomes(seed):
    def mechanism(x, size, rng):
        u = rng.random(size=(size, 2))
        if (u < 0.1).any():
            raise ValueError
        return u

    samples = dp.draw(mechanism, PAIR, n=300, rng=seed, sampling=dp.Sampling(on_error="outcome"))
    crashes = sum("raised" in samples.p.show(k) for k in range(300))
    assert 25 < crashes < 95  # 1 − .9² = .19 of 300


def test_ctrl_c_says_what_was_drawn():
    calls = iter(range(100))

    def mechanism(x, size, rng):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return rng.normal(size=size)

    with pytest.raises(Interrupted, match="after 131,072 of 300,000"):
        dp.draw(mechanism, PAIR, n=300_000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers must be a whole number"),
        ({"timeout": -1.0}, "timeout must be a number above 0"),
        ({"on_error": "ignore"}, "on_error must be one of"),
        ({"executor": 3}, "Executor"),
    ],
)
def test_sampling_options_are_checked(options, words):
    with pytest.raises(InvalidInput, match=words):
        dp.Sampling(**options)


@pytest.mark.parametrize("n", [0, -5, 2.5, "many", True])
def test_n_is_checked(n):
    with pytest.raises(InvalidInput, match="n must be a whole number"):
        dp.draw(laplace_mechanism, PAIR, n=n)


@pytest.mark.parametrize("pair", [0.0, [0.0, 1.0], (0.0,), (0, 1, 2), "ab"])
def test_pairs_are_checked(pair):
    with pytest.raises(InvalidInput, match="tuple of two neighbouring inputs"):
        dp.draw(laplace_mechanism, pair, n=10)


def test_a_block_in_work_is_kept_when_the_mechanism_fails(seed):
    """Draws of the block that was not finished are draws all the same."""
    calls = iter(range(10_000))

    def fails(x, rng):
        if next(calls) == 100:
            raise ValueError
        return x + rng.random()

    with pytest.raises(MechanismRaised) as caught:
        dp.draw(dp.from_function(fails), PAIR, n=500, rng=seed)
    kept = caught.value.samples
    assert len(kept) % 250
    calls = iter(range(10_000, 20_000))
    again = dp.draw(dp.from_function(fails), PAIR, n=500, rng=seed)
    assert np.array_equal(kept.p.numbers, again.p.numbers[: len(kept)])


def test_rare_numbers_on_one_side_do_not_make_constant_blocks_differ(seed):
    """A block of one side that is always empty is the same whatever the other side holds."""

    def rare(data, size, rng):
        return [{"a": 1.0} if data and rng.random() < 0.1 else {} for _ in range(size)]

    for index in range(20):
        dp.draw(rare, (0, 1), n=40, rng=seed + index, sampling=dp.Sampling(progress=False))


# --- arrays that a mechanism writes into again


class Buffered:
    """Writes its outputs into an array that it keeps: one for all inputs, or one for each."""

    def __init__(self, each):
        self.each, self.kept = each, {}

    def __call__(self, x, size, rng):
        room = self.kept.setdefault(x if self.each else None, np.empty(1 << 16))
        room[:size] = np.round(x + rng.laplace(size=size), 6)
        return room[:size]


def test_draws_that_take_the_place_of_others_are_refused():
    with pytest.raises(BadOutput, match="took the place of those on the first"):
        dp.draw(Buffered(each=False), (0.0, 1.0), n=100, rng=0)
    constant = np.zeros(100)  # the same array again, with the same numbers in it, is no harm
    assert len(dp.draw(lambda x, size, rng: constant[:size], (0.0, 1.0), n=100, rng=0)) == 100


def test_draws_are_kept_though_the_mechanism_writes_over_them():
    ours = dp.draw(Buffered(each=True), (0.0, 1.0), n=4000, rng=0)
    theirs = dp.draw(lambda *given: Buffered(each=True)(*given).copy(), (0.0, 1.0), n=4000, rng=0)
    np.testing.assert_array_equal(ours.p.numbers, theirs.p.numbers)
    np.testing.assert_array_equal(ours.q.numbers, theirs.q.numbers)


def test_functions_may_write_every_output_into_one_array():
    room = np.empty(1)

    def one(x, rng):
        room[0] = x + rng.laplace()
        return room

    found = dp.draw(dp.from_function(one), (0.0, 1.0), n=200, rng=0)
    assert np.unique(found.p.numbers).size == 200


class OfItsOwn(BaseException):
    pass


@pytest.mark.parametrize("raised", [SystemExit(0), OfItsOwn("stop"), GeneratorExit()])
def test_no_exception_of_a_mechanism_ends_the_session(raised):
    def ends(x, size, rng):
        raise raised

    with pytest.raises(MechanismRaised, match=f"it raised {type(raised).__name__}"):
        dp.audit(ends, (0, 1), "eps=1", n=1000, rng=0)
    samples = dp.draw(ends, (0, 1), n=20, rng=0, sampling=dp.Sampling(on_error="outcome"))
    assert samples.p.structures == (("outcome", "raised", type(raised).__name__),)


def test_failures_name_the_input_as_it_was_given_and_calls_that_can_be_made():
    def changes(x, rng):
        x.sort()
        return x[0] + rng.laplace()

    with pytest.raises(dp.errors.InputChanged, match=r"on input \[3.0, 1.0\]") as changed:
        dp.draw(dp.from_function(changes), ([3.0, 1.0], [1.0, 2.0]), n=5000, rng=0)
    assert "size=" not in str(changed.value)
    assert re.search(r"again: \d+ calls in a row, rng=", str(changed.value))

    def own(x):
        raise OSError

    with pytest.raises(dp.errors.MechanismRaised) as raised:
        dp.draw(dp.from_function(own), (0.0, 1.0), n=100, rng=0)
    assert "replay" not in str(raised.value)  # it has no seed


@pytest.mark.parametrize("on_error", ["raise", "outcome"])
def test_a_feature_that_raises_is_not_taken_for_the_mechanism(on_error):
    sampling = dp.Sampling(on_error=on_error)
    with pytest.raises(dp.errors.BadOutput, match="a feature") as raised:
        dp.audit(
            dp.zoo.Laplace(1.0),
            (0.0, 1.0),
            "eps=1",
            n=400,
            rng=0,
            sampling=sampling,
            features=[lambda output: output[3]],
        )
    assert "mechanism failed" not in str(raised.value)
    assert "outcome" not in str(raised.value)
