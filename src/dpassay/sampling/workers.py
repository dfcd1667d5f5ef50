"""Blocks drawn at once: threads, forked processes, or any executor; a worker that dies costs its block.

Own processes are forked where there is fork: they inherit the job, so that lambdas, closures and objects
of C extensions need not be pickled. Elsewhere, and for executors that somebody else made, the job travels
as bytes: by pickle, or by cloudpickle what pickle does not take.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from dpassay.errors import InvalidInput, WorkerDied
from dpassay.sampling.draw import Drawn, Failure, Job, Sampling, draw_block

Run: TypeAlias = Callable[[int, int], Drawn | Failure]
#: How often a pool of processes that broke is started again at the same block.
_AGAIN = 1


def run_in_order(job: Job, sizes: Sequence[int], sampling: Sampling) -> Iterator[Drawn | Failure]:
    """Every block of a job, in order, however they are drawn."""
    if sampling.executor is None and sampling.workers == 1:
        for block, size in enumerate(sizes):
            yield draw_block(job, block, size)
        return
    done, died = 0, (-1, 0)
    while done < len(sizes):
        with _pool(job, sampling) as (executor, run):
            try:
                for drawn in _window(executor, run, sizes, done, sampling.workers):
                    yield drawn
                    done += 1
            except RuntimeError as error:
                if not isinstance(error, BrokenExecutor):
                    raise InvalidInput(f"the executor takes no work: {error}") from None
                died = (done, died[1] + 1 if died[0] == done else 1)
                if died[1] > _AGAIN or sampling.executor is not None:
                    raise WorkerDied(
                        f"a worker process died while drawing on {job.pair}, after "
                        f"{sum(sizes[:done]):,} of {sum(sizes):,} draws a side ({error}). It was killed "
                        "(out of memory?) or crashed; run the mechanism with workers=1 to see more"
                    ) from None


def _window(
    executor: Executor, run: Run, sizes: Sequence[int], first: int, workers: int
) -> Iterator[Drawn | Failure]:
    """The blocks from `first` on, a few of them under way at any time."""
    wide = 2 * (getattr(executor, "_max_workers", None) or max(workers, 8))
    waiting = deque(executor.submit(run, k, sizes[k]) for k in range(len(sizes))[first:][:wide])
    following = first + len(waiting)
    try:
        while waiting:
            yield waiting.popleft().result()
            if following < len(sizes):
                waiting.append(executor.submit(run, following, sizes[following]))
                following += 1
    finally:
        for future in waiting:
            future.cancel()


@contextlib.contextmanager
def _pool(job: Job, sampling: Sampling) -> Iterator[tuple[Executor, Run]]:
    if sampling.executor is not None:
        threads = isinstance(sampling.executor, ThreadPoolExecutor)
        yield sampling.executor, partial(draw_block, job) if threads else _sent(job)
        return
    if getattr(job.mechanism, "pool", "threads") == "threads" and sampling.timeout is None:
        with ThreadPoolExecutor(sampling.workers) as pool:
            yield pool, partial(draw_block, job)
        return
    if "fork" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("fork")
        with warnings.catch_warnings():
            # the children only run the job: what other threads hold at the fork does not matter to them
            warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
            with ProcessPoolExecutor(sampling.workers, context, _install, (job,)) as processes:
                yield processes, _run_installed
        return
    with ProcessPoolExecutor(sampling.workers) as processes:
        yield processes, _sent(job)


_installed: list[Job] = []


def _install(job: Job) -> None:
    _installed[:] = [job]


def _run_installed(block: int, size: int) -> Drawn | Failure:
    return draw_block(_installed[0], block, size)


def _sent(job: Job) -> Run:
    """The job as bytes that any worker can read."""
    try:
        return partial(_run_sent, pickle.dumps(job))
    except Exception:  # pickle raises what it likes
        import cloudpickle

        try:
            return partial(_run_sent, cloudpickle.dumps(job))
        except Exception as error:
            raise InvalidInput(
                f"an executor sends this mechanism to other processes, and it cannot be pickled "
                f"({error}); make it inside the function that draws, use workers=1, or a "
                "concurrent.futures.ThreadPoolExecutor"
            ) from None


def _run_sent(job: bytes, block: int, size: int) -> Drawn | Failure:
    # read anew for each block: a random state that travels with the job is then noticed for sure
    return draw_block(pickle.loads(job), block, size)
