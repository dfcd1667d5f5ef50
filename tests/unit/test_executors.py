"""Draws in other processes: the same numbers, or an error that explains."""

import multiprocessing
import random
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from random import gauss

import numpy as np
import pytest
from numpy.random import laplace
from tests.helpers import one_laplace

import dpassay as dp
from dpassay.errors import DependentDraws, InvalidInput, WorkerDied

PAIR = (0.0, 1.0)


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
        with pytest.raises(DependentDraws, match="random state was copied to every worker"):
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
    with pytest.raises(DependentDraws, match="random state was copied to every worker"):
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
    def dies_late(dies):
        def function(x, rng):
            import os

            if rng.random() < 1 / 2000 and dies:
                os.kill(os.getpid(), 9)
            return rng.random()

        return dp.from_function(function)

    way = dp.Sampling(workers=2)
    with pytest.raises(WorkerDied, match="out of memory") as caught:
        dp.draw(dies_late(True), PAIR, n=40_000, rng=3, sampling=way)
    kept = caught.value.samples
    survivors = dp.draw(dies_late(False), PAIR, n=40_000, rng=3)
    assert kept is None or np.array_equal(kept.p.numbers, survivors.p.numbers[: len(kept)])


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
        dp.spectrum.estimate(box, PAIR, n=4000, loss="knn", **way)
        dp.renyi.lower_bound(box, PAIR, order=2, n=4000, method=dp.renyi.Variational(), **way)
        dp.renyi.estimate(box, PAIR, order=2, n=4000, **way)
        dp.pure.lower_bound(box, PAIR, n=4000, **way)
        dp.tradeoff.audit(box, PAIR, "mu=.5", n=4000, **way)
        dp.tradeoff.estimate(box, PAIR, n=4000, **way)
        dp.estimate(box, PAIR, n=4000, **way)
        verdict = dp.audit(box, PAIR, "mu=.5", n=4000, rng=seed)
        assert dp.replay(verdict, box, n=4000, **way).violated


def _in_a_daemon(said):
    try:
        dp.draw(dp.from_function(one_laplace), PAIR, n=40, rng=0, sampling=dp.Sampling(workers=2))
    except InvalidInput as error:
        said.put(str(error))
    else:
        said.put("no error")


def test_a_daemonic_process_is_told_that_it_cannot_have_workers():
    fork = multiprocessing.get_context("fork")
    said = fork.Queue()
    process = fork.Process(target=_in_a_daemon, args=(said,), daemon=True)
    process.start()
    assert "workers=2 needs processes of its own" in said.get(timeout=60)
    process.join()
