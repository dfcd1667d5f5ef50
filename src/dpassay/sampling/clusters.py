"""Dask's executor, with what drawing asks of it.

No task is `pure`: Dask knows pure tasks by what is asked for and hands the result of one out for its
equal, and draws that are handed out twice are not independent. A task whose worker died is run again by
the scheduler (`distributed.scheduler.allowed-failures`, 3 times), from the same streams: a mechanism that
draws from its `rng` then makes the same draws.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import warnings
from concurrent.futures import CancelledError, Executor
from functools import partial
from typing import Any

from dpassay.errors import DpassayError, InvalidInput, MissingExtra, WorkerDied

#: Seconds to wait for a scheduler, and between looks at how many workers there are.
_PATIENCE, _LOOK = 5.0, 5.0
#: Seconds without any worker after which it is said that there is none, and after which that is an error.
_LONELY, _FORSAKEN = 30.0, 600.0
#: A job of more bytes goes to the cluster once, and from worker to worker there.
_LARGE = 1 << 16


class Cluster(Executor):
    """A Dask client, or its executor."""

    def __init__(self, given: Any) -> None:
        self._executor = given if hasattr(given, "_client") else given.get_executor()
        self._client = getattr(given, "_client", given)
        if self._client.status in ("closing", "closed"):
            raise InvalidInput("the executor takes no work: its client is closed")
        self._threads, self._looked = 8, float("-inf")

    @staticmethod
    def takes(executor: Any) -> bool:
        """Whether an executor is one of Dask's; `distributed` is not imported to tell."""
        return type(executor).__module__.partition(".")[0] == "distributed"

    @property
    def _max_workers(self) -> int:
        """How many tasks run at once, now: clusters grow and shrink."""
        if time.monotonic() - self._looked > _LOOK:
            with contextlib.suppress(OSError):  # a scheduler that is gone: its futures say so
                self._threads = sum(self._client.nthreads().values()) or 8  # none yet: they come
            self._looked = time.monotonic()
        return self._threads

    def hold(self, data: bytes) -> Any:
        """What stands for these bytes in tasks.

        Large ones are the result of a task, which the scheduler can run again, and not scattered: those
        would be lost with the worker that has them.
        """
        if len(data) <= _LARGE:
            return data
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
        """What came of it."""
        since, said = time.monotonic(), False
        while True:
            try:
                return self._future.result(timeout=_LOOK)
            except TimeoutError:
                if (
                    self._future.done()
                ):  # just now; or it is what the task raised, which comes again
                    return self._future.result()
            with contextlib.suppress(OSError):  # a scheduler that is gone: its futures say so
                if self._client.nthreads():
                    since = time.monotonic()
            alone = time.monotonic() - since
            if alone > _FORSAKEN:
                raise WorkerDied(
                    f"the cluster has had no worker for {alone:.0f} s: they died and nobody started "
                    "them again, or never came. Start some, and run again"
                )
            if alone > _LONELY and not said:
                said = True
                warnings.warn(
                    f"no worker of the cluster is up: waiting for one, {_FORSAKEN:.0f} s at most",
                    stacklevel=2,
                )


def explained(error: Exception, progress: str) -> Exception:
    """What a cluster raises, in a sentence."""
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
    """A client of the scheduler at an address, or why there is none."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("drawing on a cluster", "dask") from None
    try:
        asyncio.run(asyncio.wait_for(_answer(address), _PATIENCE))
    except Exception as error:  # names that are no address, ports where something else answers …
        said = str(error).partition("\n")[0] or "nobody is there"
        raise InvalidInput(
            f"no Dask scheduler answers at {address!r} within {_PATIENCE:g} s ({said}): give the "
            "address that it prints when it starts, such as tcp://host:8786"
        ) from None
    return Client(address, timeout=_PATIENCE, set_as_default=False)


async def _answer(address: str) -> None:
    """Ask who is there; a client that meets nobody would try for long to close what never opened."""
    from distributed import rpc

    async with rpc(address) as there:
        who = (await there.identity())["type"]
    if who != "Scheduler":
        raise ValueError(f"there is a {who}")
