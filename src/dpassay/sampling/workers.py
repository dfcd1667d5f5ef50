"""Tasks drawn at once: threads, forked processes, or any executor; a worker that dies costs its task.

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
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from dpassay._version import __version__
from dpassay.errors import InvalidInput, WorkerDied
from dpassay.outputs.canonical import Outputs
from dpassay.sampling.clusters import Cluster, explained
from dpassay.sampling.draw import Sampling
from dpassay.sampling.job import Drawn, Failure, Job, draw_task
from dpassay.sampling.parts import Part
from dpassay.sampling.tasks import Pace, Task

if TYPE_CHECKING:
    from dpassay.sampling.resuming import Stage

Result: TypeAlias = Drawn | Failure
Run: TypeAlias = Callable[[Task], Result]
#: What comes of a task: drawn, failed, or the draws of a store.
Done: TypeAlias = Result | tuple[Outputs, Outputs]
#: How often a pool of processes that broke is started again at the same cell.
_AGAIN = 1


def run_in_order(
    job: Job, sampling: Sampling, stage: Stage | None, pace: Pace
) -> Iterator[tuple[Task, Done]]:
    """Every cell of a job, in order, however they are drawn; what the store has is read."""
    layout, done, died = job.layout, 0, (-1, 0)
    while done < layout.cells:
        with _pool(job, sampling) as (executor, run):
            try:
                for task, found in _window(executor, run, job, sampling, stage, pace, done):
                    yield task, found
                    done = task.last
            except Exception as error:
                drawn = f"{layout.draws(0, done):,} of {layout.n:,} draws a side"
                if isinstance(executor, Cluster):
                    raise explained(error, f"after {drawn} on {job.pair}") from None
                if not isinstance(error, RuntimeError):
                    raise
                if not isinstance(error, BrokenExecutor):
                    raise InvalidInput(f"the executor takes no work: {error}") from None
                died = (done, died[1] + 1 if died[0] == done else 1)
                if died[1] > _AGAIN or sampling.executor is not None:
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
    sampling: Sampling,
    stage: Stage | None,
    pace: Pace,
    first: int,
) -> Iterator[tuple[Task, Done]]:
    """The cells from `first` on, a few tasks under way at any time."""
    layout = job.layout
    waiting: deque[tuple[Task, Future[Result] | Part]] = deque()
    under_way = 0

    def wide() -> int:
        if isinstance(executor, _Here):
            return 1
        workers = getattr(executor, "_max_workers", None) or max(sampling.workers, 8)
        pace.workers = max(pace.workers, workers)
        return 2 * workers

    def plan(cell: int, limit: int, read: bool = True) -> tuple[Task, Future[Result] | Part]:
        if stage is not None and read:
            size = layout.draws(cell, cell + 1)
            part = stage.at(cell, size)
            if part is not None:
                full = layout.n // layout.cell if size == layout.cell else cell + 1
                return Task(cell, min(part.last, full, limit)), part
            limit = stage.after(cell, size, limit)
        task = pace.next(cell, limit)
        return task, executor.submit(run, task)

    try:
        while waiting or first < layout.cells:
            most = wide()
            while first < layout.cells and under_way < most:
                # past what is read: workers begin at once
                waiting.append(plan(first, layout.cells))
                first = waiting[-1][0].last
                under_way += not isinstance(waiting[-1][1], Part)
            task, item = waiting.popleft()
            if isinstance(item, Part):
                assert stage is not None
                found = stage.read(item)
                if found is None:  # damaged
                    again, cell = [], task.first
                    while cell < task.last:
                        again.append(plan(cell, task.last))
                        cell = again[-1][0].last
                    waiting.extendleft(reversed(again))
                    under_way += len(again)
                    continue
                yield task, _cells(found, item, task)
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


def _cells(sides: tuple[Outputs, Outputs], part: Part, task: Task) -> tuple[Outputs, Outputs]:
    """The cells of a task, of a part that holds them."""
    if (task.first, task.last) == (part.first, part.last):
        return sides
    rows = slice((task.first - part.first) * part.size, (task.last - part.first) * part.size)
    return sides[0][rows], sides[1][rows]


class _Here(Executor):
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
def _pool(job: Job, sampling: Sampling) -> Iterator[tuple[Executor, Run]]:
    if sampling.executor is None and sampling.workers == 1:
        yield _Here(), partial(draw_task, job)
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
        with ThreadPoolExecutor(sampling.workers) as pool:
            yield pool, partial(draw_task, job)
        return
    if "fork" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("fork")
        alive = os.pipe()
        with warnings.catch_warnings():
            # the children only run the job: what other threads hold at the fork does not matter to them
            warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
            try:
                inherited = (job, alive)
                with ProcessPoolExecutor(
                    sampling.workers, context, _install, inherited
                ) as processes:
                    yield processes, _run_installed
            finally:
                for end in alive:
                    os.close(end)
        return
    with ProcessPoolExecutor(sampling.workers) as processes:
        yield processes, _sent(job)


_installed: list[Job] = []


def _install(job: Job, alive: tuple[int, int]) -> None:
    """Take the job over, and end when the parent does: a fork that waits for work would wait for ever."""
    _installed[:] = [job]
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
    if by_name:
        with contextlib.suppress(Exception):  # pickle raises what it likes
            return pickle.dumps(job)
    import cloudpickle

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
