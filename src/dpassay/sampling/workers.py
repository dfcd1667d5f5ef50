"""Where tasks are drawn: here, by threads, by forked processes, or by any executor.

Own processes are forked where there is fork: they inherit the job, so that lambdas, closures and objects
of C extensions need not be pickled. Elsewhere, and for process pools that somebody else made, the job
travels as bytes: by pickle, or by cloudpickle what pickle does not take. To other executors it travels by
cloudpickle always: what a script or a notebook defines has no name there.
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
from collections.abc import Callable, Iterator
from concurrent.futures import (
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from dpassay._version import __version__
from dpassay.errors import InvalidInput
from dpassay.interrupts import held_back
from dpassay.sampling.clusters import Cluster
from dpassay.sampling.draw import Sampling
from dpassay.sampling.job import Drawn, Failure, Job, draw_task
from dpassay.sampling.tasks import Task

if TYPE_CHECKING:
    pass

Result: TypeAlias = Drawn | Failure
Run: TypeAlias = Callable[[Task], Result]


class Here(Executor):
    """Draws in this process, when asked for the result."""

    def submit(self, run: Any, /, *given: Any, **options: Any) -> Any:
        """A task that is drawn when its result is asked for."""
        return _Later(partial(run, *given))


class _Later:
    def __init__(self, result: Callable[[], Result]) -> None:
        self.result = result

    def cancel(self) -> None:
        """Nothing runs yet."""


@contextlib.contextmanager
def pool(job: Job, sampling: Sampling) -> Iterator[tuple[Executor, Run]]:
    """An executor, and what runs a task of the job there."""
    if sampling.executor is None and sampling.workers == 1:
        yield Here(), partial(draw_task, job)
        return
    if sampling.executor is not None:
        given = sampling.executor
        if isinstance(given, ThreadPoolExecutor):
            yield given, partial(draw_task, job)
        elif Cluster.takes(given):
            cluster = Cluster(given)
            yield cluster, partial(_run_sent, __version__, cluster.hold(_bytes(job, by_name=False)))
        else:
            yield given, _sent(job, by_name=isinstance(given, ProcessPoolExecutor))
        return
    if getattr(job.mechanism, "pool", "threads") == "threads" and sampling.timeout is None:
        with ThreadPoolExecutor(sampling.workers) as threads:
            try:
                yield threads, partial(draw_task, job)
            except BaseException:
                _stop(job.mechanism, threads)
                raise
        return
    if multiprocessing.current_process().daemon:
        raise InvalidInput(
            f"workers={sampling.workers} needs processes of its own, which a daemonic process may not "
            "start; use workers=1, or draw in a process that is not daemonic"
        )
    if "fork" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("fork")
        alive = os.pipe()
        with warnings.catch_warnings():
            # the children only run the job: what other threads hold at the fork does not matter to them
            warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
            try:
                inherited = (job, alive)
                with _Processes(sampling.workers, context, _install, inherited) as processes:
                    yield processes, _run_installed
            finally:
                for end in alive:
                    os.close(end)
        return
    with _Processes(sampling.workers) as processes:
        yield processes, _sent(job)


def _stop(mechanism: Any, threads: ThreadPoolExecutor) -> None:
    """End what a mechanism has started in threads; what runs in Python has to end by itself."""
    stop = getattr(mechanism, "stop", None)
    threads.shutdown(wait=False, cancel_futures=True)
    while stop is not None and any(thread.is_alive() for thread in threads._threads):
        stop()
        time.sleep(0.01)


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
    """Take the job over, and end when the parent does: a fork that waits for work would wait for ever."""
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


def _sent(job: Job, by_name: bool = True) -> Run:
    """A run of a job that any worker can read."""
    return partial(_run_sent, __version__, _bytes(job, by_name))


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
