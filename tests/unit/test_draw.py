"""Reproducible, independent, and never a silent wrong number."""

import itertools
import multiprocessing
import random
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from random import gauss

import numpy as np
import pytest
from numpy.random import laplace

import dpassay as dp
from dpassay.errors import (
    BadOutput,
    DependenceWarning,
    DependentDraws,
    InputChanged,
    Interrupted,
    InvalidInput,
    MechanismRaised,
    MechanismTimedOut,
    NotEnoughDraws,
    WorkerDied,
)
from dpassay.sampling.draw import block_sizes, seed_of

PAIR = (0.0, 1.0)


def laplace_mechanism(x, size, rng):
    return x + rng.laplace(size=size)


def one_laplace(x, rng):
    return x + rng.laplace()


def with_numpy_import(x):
    return x + laplace()


def with_random_import(x):
    return x + gauss(0, 1)


def with_global_numpy(x):
    return x + np.random.laplace()


class HoldsState:
    def __init__(self):
        self.rng = np.random.default_rng()

    def __call__(self, x):
        return x + self.rng.laplace()


def closure():
    rng = random.Random()
    return lambda x: x + rng.gauss(0, 1)


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


@pytest.mark.parametrize("n", [1, 2, 3, 100, 1 << 16, (1 << 17) + 5])
def test_blocks_cover_n_and_are_two_at_least(n):
    sizes = block_sizes(laplace_mechanism, n)
    assert sum(sizes) == n
    assert len(sizes) >= min(2, n)


# --- independence


STATEFUL = {
    "from numpy.random import laplace": with_numpy_import,
    "from random import gauss": with_random_import,
    "np.random.laplace": with_global_numpy,
    "self.rng": HoldsState(),
}


@pytest.mark.parametrize(
    "name", ["from numpy.random import laplace", "np.random.laplace", "self.rng"]
)
def test_a_state_copied_to_forked_workers_is_an_error_that_explains(name):
    # the `random` module seeds itself anew in a forked child; numpy's global state does not
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        for future in [pool.submit(time.sleep, 0.2) for _ in range(2)]:
            future.result()  # both workers exist, each with its copy of the global state
        with pytest.raises(DependentDraws, match="random state of its own"):
            dp.draw(
                dp.from_function(STATEFUL[name]),
                PAIR,
                n=8 * 256,
                sampling=dp.Sampling(executor=pool),
            )


BY_VALUE = """
import numpy as np, random
from numpy.random import laplace
from random import gauss
def from_numpy(x): return x + laplace()
def from_random(x): return x + gauss(0, 1)
class Holds:
    def __init__(self): self.rng = np.random.default_rng()
    def __call__(self, x): return x + self.rng.laplace()
holds = Holds()
def make(rng):
    return lambda x: x + rng.gauss(0, 1)
closure = make(random.Random())
"""


@pytest.mark.parametrize("name", ["from_numpy", "from_random", "holds", "closure"])
def test_a_state_pickled_with_the_function_is_noticed(name):
    """What happens to functions of a script or a notebook: they are pickled by value."""
    loky = pytest.importorskip("joblib.externals.loky")
    script: dict[str, object] = {"__name__": "__main__"}
    exec(BY_VALUE, script)
    pool = loky.get_reusable_executor(2)
    mechanism = dp.from_function(script[name])
    with pytest.raises(DependentDraws, match="random state of its own"):
        dp.draw(mechanism, PAIR, n=8 * 256, sampling=dp.Sampling(executor=pool))


@pytest.mark.parametrize("name", [*STATEFUL, "closure"])
def test_the_same_functions_are_fine_in_one_process(name):
    function = closure() if name == "closure" else STATEFUL[name]
    samples = dp.draw(dp.from_function(function), PAIR, n=2000)
    assert np.unique(samples.p.numbers).size == 2000
    assert not samples.replayable


def test_a_function_that_takes_rng_parallelises_freely(seed):
    mechanism = dp.from_function(one_laplace)
    samples = dp.draw(mechanism, PAIR, n=2000, rng=seed, sampling=dp.Sampling(workers=2))
    assert np.unique(samples.p.numbers).size == 2000


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


def test_a_random_walk_warns():
    def walk(x, size, rng):
        return x + np.cumsum(rng.normal(size=size))

    with pytest.warns(DependenceWarning, match="successive draws"):
        dp.draw(walk, PAIR, n=1000, rng=0)


def test_shared_randomness_across_sides_warns():
    values = np.random.default_rng(0).normal(size=1000)
    with pytest.raises(DependentDraws, match="hold the same draws"):
        dp.from_samples(values, np.random.default_rng(1).permutation(values))
    calls = itertools.count()

    def same_noise(x, size, rng):  # anew for each block, but not for each side
        return np.random.default_rng(next(calls) // 2).normal(size=size)

    with pytest.warns(DependenceWarning, match="share their randomness"):
        dp.draw(same_noise, PAIR, n=1000)


def test_independent_draws_do_not_warn(seeds):
    for k in seeds[:20]:
        dp.draw(dp.zoo.Gaussian(), PAIR, n=2000, rng=k)
        dp.draw(dp.zoo.RandomizedResponse(), (np.zeros(3), np.ones(3)), n=2000, rng=k)


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
        (lambda size: {"a": 1}, "must return an array"),
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


def dies_once(place, rng):
    import os

    if not os.path.exists(place):
        with open(place, "w"):
            pass
        os.kill(os.getpid(), 9)
    return rng.random()


def test_a_worker_that_dies_costs_its_block_not_the_run(tmp_path):
    place = str(tmp_path / "died")
    way = dp.Sampling(workers=2)
    samples = dp.draw(dp.from_function(dies_once), (place, place), n=1024, rng=0, sampling=way)
    again = dp.draw(dp.from_function(dies_once), (place, place), n=1024, rng=0)
    assert np.array_equal(samples.p.numbers, again.p.numbers)


def test_a_worker_that_dies_again_is_said_in_a_sentence_and_the_draws_are_kept():
    def dies_late(x, rng):
        import os

        if rng.random() < 1 / 2000:
            os.kill(os.getpid(), 9)
        return rng.random()

    way = dp.Sampling(workers=2)
    with pytest.raises(WorkerDied, match="out of memory") as caught:
        dp.draw(dp.from_function(dies_late), PAIR, n=40_000, rng=3, sampling=way)
    kept = caught.value.samples
    assert kept is None or len(kept) % 256 == 0


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


def test_lambdas_closures_and_bound_methods_run_in_workers_and_executors(seed):
    shift = 0.5

    class Holder:
        def draw(self, x, rng):
            return x + shift + rng.laplace()

    for function in (lambda x, rng: x + shift + rng.laplace(), Holder().draw):
        mechanism = dp.from_function(function)
        one = dp.draw(mechanism, PAIR, n=600, rng=seed)
        two = dp.draw(mechanism, PAIR, n=600, rng=seed, sampling=dp.Sampling(workers=2))
        with ProcessPoolExecutor(2) as pool:
            three = dp.draw(mechanism, PAIR, n=600, rng=seed, sampling=dp.Sampling(executor=pool))
        assert np.array_equal(one.p.numbers, two.p.numbers)
        assert np.array_equal(one.p.numbers, three.p.numbers)


def test_what_cannot_be_sent_to_processes_is_explained():
    lock = threading.Lock()
    mechanism = dp.from_function(lambda x, rng: (lock, x)[1])
    assert len(dp.draw(mechanism, PAIR, n=10, sampling=dp.Sampling(workers=2))) == 10  # forked
    with ProcessPoolExecutor(1) as pool, pytest.raises(InvalidInput, match="cannot be pickled"):
        dp.draw(mechanism, PAIR, n=10, sampling=dp.Sampling(executor=pool))


def test_every_verb_runs_on_a_process_pool(seed):
    with ProcessPoolExecutor(2) as pool:
        way = {"rng": seed, "sampling": dp.Sampling(executor=pool)}
        box = dp.zoo.Gaussian()
        claims = [dp.PureDP(0.5), dp.RenyiDP(2, 0.3), dp.ApproximateDP(0.5, 0.01)]
        for one, two in zip(
            dp.audit(box, PAIR, claims, n=4000, **way),
            dp.audit(box, PAIR, claims, n=4000, rng=seed),
            strict=True,
        ):
            assert one.to_json() == two.to_json()
        five = (np.zeros(5), np.eye(5)[0])
        assert dp.audit(box, five, "mu=.3", n=4000, **way).violated
        dp.spectrum.estimate(box, PAIR, n=4000, **way)
        dp.spectrum.estimate(box, PAIR, n=4000, classifier="knn", **way)
        dp.renyi.lower_bound(box, PAIR, order=2, n=4000, method=dp.renyi.Variational(), **way)
        dp.renyi.estimate(box, PAIR, order=2, n=4000, **way)
        dp.pure.lower_bound(box, PAIR, n=4000, **way)
        dp.tradeoff.audit(box, PAIR, "mu=.5", n=4000, **way)
        dp.tradeoff.estimate(box, PAIR, n=4000, **way)
        dp.estimate(box, PAIR, n=4000, **way)
        verdict = dp.audit(box, PAIR, "mu=.5", n=4000, rng=seed)
        assert dp.replay(verdict, box, n=4000, **way).violated


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


# --- the pool


def test_a_pool_deals_every_draw_once(seed):
    pool = dp.draw(laplace_mechanism, PAIR, n=100, rng=seed)
    everything = pool.p.numbers[:, 0].copy()
    parts = [pool.take(30), pool.take(50), pool.take()]
    dealt = np.concatenate([part.p.numbers[:, 0] for part in parts])
    assert np.array_equal(dealt, everything)
    assert len(pool) == 0


def test_asking_for_too_much_says_how_much_there_is():
    pool = dp.from_samples(np.arange(10.0), np.arange(20.0))
    pool.take(4)
    with pytest.raises(NotEnoughDraws, match="only 6 and 16 are left of 10 and 20"):
        pool.take(7)


def test_off_a_terminal_a_line_comes_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr("dpassay.sampling.progress.FIRST_LINE", 0.0)
    dp.draw(laplace_mechanism, PAIR, n=200_000, rng=0)
    said = capsys.readouterr().err
    assert "dpassay: drawing, 65,536 of 200,000 draws" in said
    dp.draw(laplace_mechanism, PAIR, n=200_000, rng=0, sampling=dp.Sampling(progress=False))
    assert capsys.readouterr().err == ""
