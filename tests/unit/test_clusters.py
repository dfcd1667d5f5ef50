"""Engines past one machine: every verb on any executor, and on a real cluster of Dask, as on one core."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster
from tests.helpers import one_laplace

import dpassay as dp
from dpassay.cli import run as command
from dpassay.errors import (
    Interrupted,
    InvalidInput,
    MechanismRaised,
    MissingExtra,
    StoreError,
    WorkerDied,
)
from dpassay.sampling import executors
from dpassay.sampling.executors import Cluster, _run_sent, cluster_error, connected
from dpassay.sampling.job import Task

PAIR = (0.0, 1.0)


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    ) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster, set_as_default=False) as made:
        yield made


@pytest.fixture(params=["threads", "processes", "dask"])
def executor(request):
    if request.param == "dask":
        yield request.getfixturevalue("client").get_executor()
        return
    pool = {"threads": ThreadPoolExecutor, "processes": ProcessPoolExecutor}[request.param]
    with pool(2) as made:
        yield made


def in_workers(x, rng):
    time.sleep(0.001)
    return x + rng.laplace()


# --- the same as on one core


def test_every_verb_is_bit_for_bit_that_of_one_core(executor, seed):
    far = dp.Sampling(executor=executor)
    box, steps = dp.zoo.Laplace(1.0), dp.zoo.DiscreteLaplace(1.0)
    calls = dp.from_function(one_laplace)
    verbs = {
        "audit": lambda how: dp.audit(box, PAIR, "eps=0.5", n=8000, rng=seed, sampling=how),
        "calls": lambda how: dp.audit(calls, PAIR, "eps=0.5", n=3000, rng=seed, sampling=how),
        "bound": lambda how: dp.bound(box, PAIR, "eps", n=8000, rng=seed, sampling=how),
        "verify": lambda how: dp.verify(
            steps, (0, 1), "eps=1.1, delta=0.01", n=20_000, rng=seed, sampling=how
        ),
        "estimate": lambda how: dp.estimate(box, PAIR, n=8000, rng=seed, sampling=how),
        "monitor": lambda how: dp.monitor(box, PAIR, "eps=0.8", max_n=3000, rng=seed, sampling=how),
        "hunt": lambda how: dp.hunt(
            lambda x, size, rng: sum(x) + rng.laplace(scale=0.5, size=size),
            dp.inputs.Reals(0, 1, length=(1, 3)),
            "eps=1",
            budget=60_000,
            rng=seed,
            sampling=how,
        ),
    }
    found = {name: verb(far) for name, verb in verbs.items()}
    for name, verb in verbs.items():
        assert found[name].to_json() == verb(None).to_json(), name
    again, there = (
        dp.replay(found["audit"], box, n=8000, rng=seed + 1, sampling=how) for how in (None, far)
    )
    assert again.to_json() == there.to_json()


def test_a_client_is_taken_for_its_executor_and_large_mechanisms_travel_once(client, seed):
    weights = np.arange(1 << 16)

    def heavy(x, size, rng):
        return x + rng.laplace(size=size) + weights[0]

    assert not isinstance(Cluster(client).hold(cloudpickle.dumps(heavy)), bytes)
    one, two = (
        dp.draw(heavy, PAIR, n=5000, rng=seed, sampling=dp.Sampling(executor=how))
        for how in (None, client)
    )
    assert np.array_equal(one.p.numbers, two.p.numbers)
    assert np.array_equal(one.q.numbers, two.q.numbers)


def test_equal_tasks_are_not_one(client):
    """Dask would run them once, and draws would be copies."""
    held = [Cluster(how).submit(os.urandom, 8) for how in (client, client.get_executor()) * 2]
    assert len({future.result() for future in held}) == 4


def test_as_many_tasks_are_under_way_as_the_cluster_has_threads_for(client):
    assert Cluster(client)._max_workers == Cluster(client.get_executor())._max_workers == 2


# --- what travels


class Weighs(Executor):
    """Runs tasks here, and notes how many bytes go out and come back."""

    _max_workers = 1

    def __init__(self):
        self.sent, self.back = [], []

    def submit(self, run, /, *given):
        done = Future()
        self.sent.append(len(cloudpickle.dumps((run, given))))
        done.set_result(run(*given))
        self.back.append(len(cloudpickle.dumps(done.result())))
        return done


@pytest.mark.parametrize("loss", ["auto", "values", "knn"])
def test_only_small_things_travel(loss, seed):
    scale, box = Weighs(), dp.zoo.Laplace(1.0)
    how = dp.Sampling(executor=scale)
    verdict = dp.audit(box, PAIR, "eps=0.5", n=20_000, rng=seed, sampling=how, loss=loss)
    assert verdict.violated
    if loss == "knn":  # which keeps what it learned from
        assert max(scale.sent) < 1_000_000
    else:
        assert max(scale.sent) < 20_000
    dp.replay(verdict, box, n=400_000, rng=seed, sampling=how)
    counted = scale.back[-7:]  # blocks of 65 536 draws a side, a megabyte each
    assert max(counted) < 20_000


# --- what goes wrong


def test_what_a_mechanism_raises_is_said_as_on_one_core(client):
    def fails(x, size, rng):
        raise ZeroDivisionError("no noise left")

    said = []
    for executor in (None, client):
        with pytest.raises(MechanismRaised, match="no noise left") as caught:
            dp.draw(fails, PAIR, n=100, rng=3, sampling=dp.Sampling(executor=executor))
        said.append(str(caught.value).partition("\nTraceback")[0])
    assert said[0] == said[1]


def test_modules_that_workers_do_not_have(client, cluster, tmp_path, monkeypatch, capsys):
    (tmp_path / "only_here.py").write_text(
        "SCALE = 0.7\ndef release(x, size, rng): return x + rng.laplace(scale=SCALE, size=size)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import only_here

    with pytest.raises(InvalidInput, match="No module named 'only_here'.*by_value"):
        dp.draw(only_here.release, PAIR, n=10, sampling=dp.Sampling(executor=client))
    given = ["--pair", "0", "1", "--claim", "eps=1", "--n", "4000", "--json", "-", "-q"]
    assert command(["audit", "only_here.py:release", *given]) == 1
    here = capsys.readouterr().out
    address = ["--dask", cluster.scheduler_address]
    assert command(["audit", "only_here.py:release", *given, *address]) == 1
    assert capsys.readouterr().out == here
    monkeypatch.delitem(sys.modules, "only_here")


def test_another_version_is_refused():
    with pytest.raises(InvalidInput, match=f"dpassay {dp.__version__}, and this is 0.0"):
        _run_sent("0.0", b"", Task(0, 1))


@pytest.fixture
def keys():
    """Ctrl-C does what it does: in a shell's background it is ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("keys")
def test_ctrl_c_leaves_the_cluster_to_others(client, seed):
    box = dp.from_function(in_workers)
    dp.draw(box, PAIR, n=10, sampling=dp.Sampling(executor=client))
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(Interrupted, match=r"of 1,000,000 draws"):
        dp.draw(box, PAIR, n=1_000_000, rng=seed, sampling=dp.Sampling(executor=client))
    assert len(dp.draw(box, PAIR, n=10, sampling=dp.Sampling(executor=client))) == 10


def test_a_mechanism_that_kills_its_workers_is_said_in_a_sentence(client, cluster, monkeypatch):
    def kills(x, size, rng):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(WorkerDied, match="after 0 of 100 draws a side.*out of memory"):
        dp.draw(kills, PAIR, n=100, sampling=dp.Sampling(executor=client))


class Late(Future):
    """A task that is done just when waiting for it has ended."""

    def result(self, timeout=None):
        if timeout is not None:
            raise TimeoutError
        return super().result()


def test_a_task_that_is_done_at_the_last_moment_is_taken():
    late, failed = Late(), Late()
    late.set_result(7)
    failed.set_exception(TimeoutError("of the task"))
    assert executors._Awaited(late, None).result() == 7
    with pytest.raises(TimeoutError, match="of the task"):
        executors._Awaited(failed, None).result()


def test_a_cluster_without_workers_is_not_waited_for_in_silence(monkeypatch):
    for name, seconds in (("_POLL", 0.1), ("_WARN_AFTER", 0.2), ("_GIVE_UP_AFTER", 0.8)):
        monkeypatch.setattr(executors, name, seconds)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", host="127.0.0.1") as empty,
        Client(empty, set_as_default=False) as client,
        pytest.warns(UserWarning, match="no worker of the cluster is up"),
        pytest.raises(WorkerDied, match="has had no worker for 1 s"),
    ):
        dp.draw(dp.zoo.Laplace(), (0.0, 1.0), n=10, rng=0, sampling=dp.Sampling(executor=client))


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_closed_takes_no_work(whole, cluster):
    with Client(cluster, set_as_default=False) as gone:
        pool = gone.get_executor()
        if not whole:
            pool.shutdown()
            with pytest.raises(InvalidInput, match="takes no work"):
                dp.draw(dp.zoo.Laplace(1.0), PAIR, n=10, sampling=dp.Sampling(executor=pool))
    if whole:
        with pytest.raises(InvalidInput, match="takes no work"):
            dp.draw(dp.zoo.Laplace(1.0), PAIR, n=10, sampling=dp.Sampling(executor=gone))


def test_a_time_limit_needs_processes_that_can_be_stopped(client):
    how = dp.Sampling(executor=client, timeout=5.0)
    with pytest.raises(InvalidInput, match="needs the main thread"):
        dp.draw(dp.zoo.Laplace(1.0), PAIR, n=10, sampling=how)


def test_what_clusters_raise_is_cluster_error():
    assert "scheduler ended" in str(cluster_error(CancelledError(), "after 3 draws"))
    assert isinstance(cluster_error(ConnectionError("closed"), "after 3 draws"), WorkerDied)
    missing = ModuleNotFoundError("No module named 'dpassay'")
    assert "install dpassay there" in str(cluster_error(missing, ""))
    for error in (StoreError("full"), KeyError("what nobody thought of")):
        assert cluster_error(error, "") is error


# --- stores


def test_workers_write_into_a_store_that_they_share(client, tmp_path, seed):
    pytest.importorskip("pyarrow")
    box = dp.from_function(one_laplace)
    how = dp.Sampling(executor=client, store=tmp_path / "runs")
    one = dp.audit(box, PAIR, "eps=0.5", n=1500, rng=seed)
    assert dp.audit(box, PAIR, "eps=0.5", n=1500, rng=seed, sampling=how).to_json() == one.to_json()
    assert len(dp.Store(tmp_path / "runs")) == 1500


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/cwd"), reason="needs a folder seen by one process"
)
def test_workers_that_do_not_see_the_store_are_refused(client, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    how = dp.Sampling(executor=client, store="/proc/self/cwd/runs")
    with pytest.raises(StoreError, match="in a folder that all workers share"):
        dp.draw(dp.zoo.Laplace(1.0), PAIR, n=100, rng=0, sampling=how)
    assert not list((tmp_path / "runs" / "parts").iterdir())


# --- the command line


def test_addresses_where_no_scheduler_answers(cluster, monkeypatch, capsys):
    monkeypatch.setattr(executors, "_PATIENCE", 1.0)
    worker = next(iter(cluster.workers.values())).worker_address
    for address, why in (("nobody", "port"), ("tcp://127.0.0.1:9", ""), (worker, "is a Worker")):
        with pytest.raises(InvalidInput, match=f"no Dask scheduler answers at '{address}'.*{why}"):
            connected(address)
    mine = ["audit", "zoo:Laplace", "--dask", cluster.scheduler_address]
    assert command([*mine, "--workers", "2"]) == 2
    assert "one of --workers and --dask" in capsys.readouterr().err


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"dpassay\[dask\]"):
        connected("tcp://127.0.0.1:8786")
