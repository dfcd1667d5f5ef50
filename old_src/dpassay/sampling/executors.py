"""Executors: where tasks are drawn, and their results in order. Inline, threads, processes, Dask.

Own processes are forked where there is fork: they inherit the job, so that nothing need be pickled.
Elsewhere, and for process pools of the caller, the job travels as bytes: by pickle, or by cloudpickle
what pickle does not take. To other executors it always travels by cloudpickle: what a script or a
notebook defines has no name there.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from dpassay._version import __version__
from dpassay.errors import DpassayError, InvalidInput, MissingExtra, WorkerDied, warn
from dpassay.interrupts import held_back
from dpassay.sampling.job import Drawn, Failure, Job, Pace, Task, draw_task
from dpassay.sampling.store_files import Part

if TYPE_CHECKING:
    from dpassay.sampling.draw import Sampling
    from dpassay.sampling.resuming import Stage

Result: TypeAlias = Drawn | Failure
Run: TypeAlias = Callable[[Task], Result]
#: How often a pool of processes that broke is started again at the same cell.
_RESTARTS = 1
#: Seconds to wait for Dask's scheduler, and between looks at how many workers a cluster has.
_PATIENCE, _POLL = 5.0, 5.0
#: Seconds without any worker of a cluster after which that is said, and after which it is an error.
_WARN_AFTER, _GIVE_UP_AFTER = 30.0, 600.0
#: A job of more bytes goes to a cluster once, and from worker to worker there.
_LARGE = 1 << 16


# --- tasks in order


def run_in_order(
    job: Job, sampling: Sampling, stage: Stage | None
) -> Iterator[tuple[Task, Result]]:
    """Every cell of a job, in order: what the store has is read, the rest is drawn.

    A pool of processes that breaks is started again where it broke: a worker that dies costs its task.
    """
    layout, pace, done, died = job.layout, Pace(job.layout), 0, (-1, 0)
    while done < layout.cells:
        with pool(job, sampling) as (executor, run):
            try:
                for task, found in _window(executor, run, job, pace, sampling, stage, done):
                    yield task, found
                    done = task.last
            except Exception as error:
                drawn = f"{layout.draws(0, done):,} of {layout.n:,} draws a side"
                if isinstance(executor, Cluster):
                    raise cluster_error(error, f"after {drawn} on {job.pair}") from None
                if not isinstance(error, RuntimeError):
                    raise
                if not isinstance(error, BrokenExecutor):
                    raise InvalidInput(f"the executor takes no work: {error}") from None
                died = (done, died[1] + 1 if died[0] == done else 1)
                if died[1] > _RESTARTS or sampling.executor is not None:
                    raise WorkerDied(
                        f"a worker process died while drawing on {job.pair}, after {drawn} ({error}). "
                        "It was killed (out of memory?) or crashed; run the mechanism with workers=1 to "
                        "see more"
                    ) from None
        if stage is not None:
            stage.refresh()


def _window(
    executor: Executor,
    run: Run,
    job: Job,
    pace: Pace,
    sampling: Sampling,
    stage: Stage | None,
    first: int,
) -> Iterator[tuple[Task, Result]]:
    """The cells from `first` on, in order, with a few tasks under way; ends before a damaged part."""
    layout, under_way, most = job.layout, 0, 1
    waiting: deque[tuple[Task, Future[Result] | Part]] = deque()
    try:
        while waiting or first < layout.cells:
            if not isinstance(executor, _Inline):
                pace.workers = getattr(executor, "_max_workers", None) or max(sampling.workers, 8)
                most = 2 * pace.workers
            while first < layout.cells and under_way < most:  # past parts: workers begin at once
                size = layout.draws(first, first + 1)
                part = None if stage is None else stage.at(first, size)
                if part is not None:
                    full = layout.n // layout.cell if size == layout.cell else first + 1
                    task = Task(first, min(part.last, full))
                    waiting.append((task, part))
                else:
                    limit = (
                        layout.cells if stage is None else stage.after(first, size, layout.cells)
                    )
                    task = pace.next(first, limit)
                    waiting.append((task, executor.submit(run, task)))
                    under_way += 1
                first = task.last
            task, item = waiting.popleft()
            if isinstance(item, Part):
                assert stage is not None
                sides = stage.read(item)
                if sides is None:  # damaged: the caller begins again here
                    return
                a, b = ((cell - item.first) * item.size for cell in (task.first, task.last))
                yield task, Drawn.of(job, (sides[0][a:b], sides[1][a:b]))
            else:
                done = item.result()
                under_way -= 1
                if isinstance(done, Drawn):
                    pace.add(task.last - task.first, done.seconds)
                yield task, done
    finally:
        for _, left in waiting:
            if not isinstance(left, Part):
                left.cancel()


# --- pools


@contextlib.contextmanager
def pool(job: Job, sampling: Sampling) -> Iterator[tuple[Executor, Run]]:
    """An executor, and what runs a task of the job there."""
    given = sampling.executor
    if isinstance(given, ThreadPoolExecutor):
        yield given, partial(draw_task, job)
    elif type(given).__module__.startswith("distributed."):  # of Dask, which is not imported
        cluster = Cluster(given)
        yield cluster, partial(_run_sent, __version__, cluster.hold(_bytes(job, by_name=False)))
    elif given is not None:
        by_name = isinstance(given, ProcessPoolExecutor)
        yield given, partial(_run_sent, __version__, _bytes(job, by_name))
    elif sampling.workers == 1:
        yield _Inline(), partial(draw_task, job)
    elif getattr(job.mechanism, "pool", "threads") == "threads" and sampling.timeout is None:
        with ThreadPoolExecutor(sampling.workers) as own:
            try:
                yield own, partial(draw_task, job)
            except BaseException:
                # ends what a mechanism has started; what runs in Python has to end by itself
                own.shutdown(wait=False, cancel_futures=True)
                stop = getattr(job.mechanism, "stop", None)
                while stop is not None and any(thread.is_alive() for thread in own._threads):
                    stop()
                    time.sleep(0.01)
                raise
    else:
        with _own_processes(job, sampling.workers) as found:
            yield found


class _Inline(Executor):
    """Draws in this process, when asked for the result."""

    def submit(self, run: Any, /, *given: Any, **options: Any) -> Any:
        return SimpleNamespace(result=partial(run, *given), cancel=lambda: None)


@contextlib.contextmanager
def _own_processes(job: Job, workers: int) -> Iterator[tuple[Executor, Run]]:
    if multiprocessing.current_process().daemon:
        raise InvalidInput(
            f"workers={workers} needs processes of its own, which a daemonic process may not start; use "
            "workers=1, or draw in a process that is not daemonic"
        )
    if "fork" not in multiprocessing.get_all_start_methods():
        with _Processes(workers) as processes:
            yield processes, partial(_run_sent, __version__, _bytes(job, by_name=True))
        return
    context = multiprocessing.get_context("fork")
    alive = os.pipe()
    with warnings.catch_warnings():
        # the children only run the job: what other threads hold at the fork does not matter to them
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
        try:
            with _Processes(workers, context, _install, (job, alive)) as processes:
                yield processes, _run_installed
        finally:
            for end in alive:
                os.close(end)


class _Processes(ProcessPoolExecutor):
    """Worker processes. After Ctrl-C or an error they are killed: a call may take hours."""

    def submit(self, run: Any, /, *given: Any, **options: Any) -> Any:
        """A task; the first one forks."""
        with held_back():
            return super().submit(run, *given, **options)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        if kind is not None:
            for process in [*(self._processes or {}).values()]:
                process.kill()
        return super().__exit__(kind, error, trace)


_installed: list[Job] = []


def _install(job: Job, alive: tuple[int, int]) -> None:
    """Keep the job in a forked worker, which ends when its parent does instead of waiting for ever."""
    _installed[:] = [job]
    signal.signal(signal.SIGINT, lambda number, frame: None)  # the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.close(alive[1])  # now only the parent has it, and reading ends when the parent does

    def wait() -> None:
        os.read(alive[0], 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _run_installed(task: Task) -> Result:
    return draw_task(_installed[0], task)


def _bytes(job: Job, by_name: bool) -> bytes:
    """The job as bytes; `by_name` if workers have what this process has imported, its script too."""
    import cloudpickle

    if by_name and not cloudpickle.list_registry_pickle_by_value():
        with contextlib.suppress(Exception):  # pickle raises what it likes
            return pickle.dumps(job)
    try:
        return bytes(cloudpickle.dumps(job))
    except Exception as error:
        raise InvalidInput(
            f"an executor sends this mechanism to other processes, and it cannot be pickled "
            f"({error}); make it inside the function that draws, use workers=1, or a "
            "concurrent.futures.ThreadPoolExecutor"
        ) from None


def _run_sent(version: str, job: bytes, task: Task) -> Result:
    """Run a task of a job that came as bytes."""
    if version != __version__:
        raise InvalidInput(
            f"a worker has dpassay {__version__}, and this is {version}: their draws are not mixed. "
            f"Install {version} there"
        )
    # read anew for each task: a random state that travels with the job is then noticed for sure
    try:
        found = pickle.loads(job)
    except Exception as error:  # pickle raises what it likes
        raise InvalidInput(
            f"a worker cannot read the mechanism ({type(error).__name__}: {error}): install there what "
            "it is made of, or let it travel by value, with cloudpickle.register_pickle_by_value(module)"
        ) from None
    return draw_task(found, task)


# --- Dask


class Cluster(Executor):
    """A Dask client, or its executor.

    No task is `pure`: Dask hands the result of a pure task out for its equal, and draws that are handed
    out twice are not independent. The scheduler runs a task whose worker died again, from its streams.
    """

    def __init__(self, given: Any) -> None:
        self._executor = given if hasattr(given, "_client") else given.get_executor()
        self._client = getattr(given, "_client", given)
        if self._client.status in ("closing", "closed"):
            raise InvalidInput("the executor takes no work: its client is closed")
        self._threads, self._looked = 8, float("-inf")

    @property
    def _max_workers(self) -> int:
        """How many tasks run at once, now: clusters grow and shrink."""
        if time.monotonic() - self._looked > _POLL:
            with contextlib.suppress(OSError):  # a scheduler that is gone: its futures say so
                self._threads = sum(self._client.nthreads().values()) or 8  # none yet: they come
            self._looked = time.monotonic()
        return self._threads

    def hold(self, data: bytes) -> Any:
        """What stands for these bytes in tasks."""
        if len(data) <= _LARGE:
            return data
        # the result of a task can be made again; what is scattered is lost with the worker that has it
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self._client.submit(bytes, data, pure=False)

    def submit(self, run: Any, /, *given: Any, **options: Any) -> Any:
        """A task for the cluster; what is held there is found only outside of a partial."""
        if isinstance(run, partial):
            run, given = run.func, (*run.args, *given)
        return _Awaited(self._executor.submit(run, *given, pure=False, **options), self._client)


class _Awaited:
    """A task of a cluster. Dask waits for ever where all workers are gone and none is started again."""

    def __init__(self, future: Any, client: Any) -> None:
        self._future, self._client = future, client
        self.cancel = future.cancel

    def result(self) -> Any:
        since, said = time.monotonic(), False
        while True:
            try:
                return self._future.result(timeout=_POLL)
            except TimeoutError:
                if self._future.done():  # just now; or the task itself raised it, and does so again
                    return self._future.result()
            with contextlib.suppress(OSError):  # a scheduler that is gone: its futures say so
                if self._client.nthreads():
                    since = time.monotonic()
            alone = time.monotonic() - since
            if alone > _GIVE_UP_AFTER:
                raise WorkerDied(
                    f"the cluster has had no worker for {alone:.0f} s: they died and nobody started "
                    "them again, or never came. Start some, and run again"
                )
            if alone > _WARN_AFTER and not said:
                said = True
                warn(
                    f"no worker of the cluster is up: waiting for one, {_GIVE_UP_AFTER:.0f} s at most"
                )


def cluster_error(error: Exception, progress: str) -> Exception:
    """What a cluster raised, as an error of dpassay where the cause is known."""
    if isinstance(error, DpassayError):
        return error
    if isinstance(error, RuntimeError):
        return InvalidInput(f"the executor takes no work: {error}")
    if isinstance(error, (CancelledError, OSError)):
        return WorkerDied(
            f"the cluster gave up {progress}: its scheduler ended, or somebody cancelled the tasks"
        )
    if type(error).__name__ == "KilledWorker":
        return WorkerDied(
            f"workers of the cluster died {progress}, one after the other on the same task ({error}). "
            "They were killed (out of memory?) or crashed; run the mechanism with workers=1 to see more"
        )
    if isinstance(error, ImportError):
        return InvalidInput(f"a worker cannot take tasks ({error}): install dpassay there as well")
    return error


def connected(address: str) -> Any:
    """A client of Dask's scheduler at an address, or why there is none."""
    import asyncio

    try:
        from distributed import Client, rpc
    except ImportError:
        raise MissingExtra("drawing on a cluster", "dask") from None

    async def check() -> None:
        """Ask what answers: a client that meets nothing tries for long to close what never opened."""
        async with rpc(address) as there:
            who = (await there.identity())["type"]
        if who != "Scheduler":
            raise ValueError(f"there is a {who}")

    try:
        asyncio.run(asyncio.wait_for(check(), _PATIENCE))
    except Exception as error:  # names that are no address, ports where something else answers …
        said = str(error).partition("\n")[0] or "nobody is there"
        raise InvalidInput(
            f"no Dask scheduler answers at {address!r} within {_PATIENCE:g} s ({said}): give the "
            "address that it prints when it starts, such as tcp://host:8786"
        ) from None
    return Client(address, timeout=_PATIENCE, set_as_default=False)
