"""The cells of a job one after the other, read from a store or drawn; a worker that dies costs its task.

What a store holds is read; the rest is drawn, a few tasks under way at any time, and handed on in order,
whoever is done first. A pool of processes that breaks is started again where it broke.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import TYPE_CHECKING, TypeAlias

from dpassay.errors import InvalidInput, WorkerDied
from dpassay.outputs.canonical import Outputs
from dpassay.sampling.clusters import Cluster, explained
from dpassay.sampling.draw import Sampling
from dpassay.sampling.job import Drawn, Job
from dpassay.sampling.store_files import Part
from dpassay.sampling.tasks import Pace, Task
from dpassay.sampling.workers import Here, Result, Run, pool

if TYPE_CHECKING:
    from dpassay.sampling.store import Stage

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
        with pool(job, sampling) as (executor, run):
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
        if isinstance(executor, Here):
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
