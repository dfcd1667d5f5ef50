"""Workers killed while they draw: a block is drawn again, and the result is that of the undisturbed run.

The quick test disturbs two runs on either engine, the slow one fifty.
"""

import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time

import pytest
from distributed import Client, LocalCluster

import dpassay as dp

PAIR = (0.0, 1.0)
N = 500


def in_workers(x, rng):
    time.sleep(0.001)
    return x + rng.laplace()


def draw(n, seed, **how):
    return dp.draw(dp.from_function(in_workers), PAIR, n=n, rng=seed, sampling=dp.Sampling(**how))


def audit(n, seed, **how):
    return dp.audit(
        dp.from_function(in_workers), PAIR, "eps=0.5", n=n, rng=seed, sampling=dp.Sampling(**how)
    )


@contextlib.contextmanager
def killing(pids, chance, wait):
    """Kill one of the processes that `pids()` names after a while, each time that the wait is over."""
    ended, killed = threading.Event(), []

    def kill():
        while not ended.wait(chance.uniform(*wait)):
            if there := pids():
                killed.append(chance.choice(there))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", silence_logs=50
    ) as made:
        # nannies sometimes give up; what deploys workers starts others then
        made.adapt(minimum=2, maximum=2, interval="500ms")
        yield made


def of_dask(cluster, chance, seed):
    """Both workers killed in an audit on Dask, if it lasts: the scheduler gives their tasks to others.

    Only workers that are up are killed: a nanny gives up on one that dies while it starts.
    """

    def pids():
        return [pid for pid in up if pid not in killed]

    undisturbed = audit(N, seed)
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        up = list(client.run(os.getpid).values())
        draw(20, seed, executor=client)  # they have imported what they need
        with killing(pids, chance, (0.1, 0.8)) as killed:
            found = audit(N, seed, executor=client)
    assert found.to_json() == undisturbed.to_json()
    return len(killed)


def of_processes(cluster, chance, seed):
    """A kill in an audit with its own processes: the pool is made anew, from the first missing cell."""
    before = {child.pid for child in multiprocessing.active_children()}

    def pids():  # one kill a run: of those that this run has started
        started = {child.pid for child in multiprocessing.active_children()} - before
        return [] if killed else sorted(started)

    undisturbed = audit(N, seed)
    with killing(pids, chance, (0.05, 0.4)) as killed:
        found = audit(N, seed, workers=2)
    assert found.to_json() == undisturbed.to_json()
    return len(killed)


@pytest.mark.parametrize("engine", [of_processes])
def test_two_disturbed_runs_are_those_that_nobody_disturbed(engine, cluster, seed):
    chance = random.Random(seed)
    assert sum(engine(cluster, chance, seed + k) for k in range(2)) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("engine", [of_processes, of_dask])
def test_fifty_disturbed_runs_are_those_that_nobody_disturbed(engine, cluster, seed):
    chance, began = random.Random(seed), time.monotonic()
    kills = []
    for k in range(50):
        kills.append(engine(cluster, chance, seed + k))
        print(kills[-1], end=" ", flush=True)
    print(f"{sum(kills)} kills in 50 runs, {time.monotonic() - began:.0f} s")
    assert sum(kills) >= 25
