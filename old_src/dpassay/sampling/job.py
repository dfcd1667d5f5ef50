"""The draws of a stage in cells, blocks and tasks, and what a worker does with a task.

A *cell* is drawn from a stream of its own, found from (seed, pair, stage, cell, side). A *block* is a
whole number of cells, and what an analysis is handed at once. Both depend on the mechanism and n alone:
the same seed gives the same result bit for bit, whatever the workers, the store and the clock do. A
*task* is what a worker is asked for: a run of cells, as many as take about a second. The draws of tasks
are put together to blocks afterwards.

A vectorised mechanism is asked for a block in one call: its cell is its block. Where every output is a
call, a cell is 1 to 64 outputs, so that a mechanism of seconds a draw is saved and shared out draw by
draw.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from dpassay.blackbox.mechanism import BLOCK, CALLS, Mechanism
from dpassay.errors import (
    BadOutput,
    DpassayError,
    InputChanged,
    InvalidInput,
    MechanismError,
    MechanismRaised,
    MechanismTimedOut,
    StoreError,
    Terminated,
)
from dpassay.outputs.canonical import Outputs, align, arranged, concatenate, from_raw
from dpassay.outputs.device_arrays import AnyOutputs, DeviceOutputs, kept_on_device, on_host
from dpassay.outputs.templates import Outcome
from dpassay.privacy.relations import Pair
from dpassay.sampling.identity import why_changed
from dpassay.sampling.repeated_draws import Head, head

if TYPE_CHECKING:
    from dpassay.sampling.store_files import PartWriter

_PACKAGE = Path(__file__).parents[1]
#: What ends a run, and is not the mechanism failing.
_STOPS = (KeyboardInterrupt, Terminated)
_SCALARS = {float, int, bool, np.float64}
#: The draws on either input: Outputs, or DeviceOutputs where the job says `on_device`.
Sides: TypeAlias = tuple[Any, Any]
#: Up to so many cells a stage before cells grow, and the most outputs of a cell of calls. A stream costs
#: some 20 µs: little for a few draws, and at most a third of a microsecond a draw for many.
CELLS, MOST = 512, 64
#: Seconds a task should take, how much longer the next may be than the longest one measured, and the most
#: outputs of a task: they are in memory.
_SECONDS, _GROWTH, _HELD = 1.0, 8, 1 << 16


def stream(seed: int, *key: int) -> np.random.Generator:
    """The generator at an address; the same address is the same stream."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def by_calls(mechanism: Any, each_alone: bool) -> bool:
    """Whether every output is a call."""
    return each_alone or bool(getattr(mechanism, "one_by_one", False))


@dataclass(frozen=True)
class Chunking:
    """How the draws of a stage are divided into cells and blocks; two blocks at least."""

    n: int
    cell: int
    block: int  # a whole number of cells
    calls: bool  # every output is a call

    @classmethod
    def of(cls, mechanism: Any, n: int, *, each_alone: bool = False) -> Chunking:
        """The layout of `n` draws of a mechanism; `each_alone` makes every output a call."""
        calls = by_calls(mechanism, each_alone)
        most = int(getattr(mechanism, "block", BLOCK))
        block = min(most, max(1, math.ceil(n / 2)))
        if not calls:
            return cls(n, block, block, False)
        block = min(block, CALLS)
        cell = min(MOST, 1 << (math.ceil(n / CELLS) - 1).bit_length())
        return cls(n, cell if block % cell == 0 else 1, block, True)

    @property
    def cells(self) -> int:
        """How many cells there are; the last may be short."""
        return -(-self.n // self.cell)

    def draws(self, first: int, last: int) -> int:
        """Draws a side in the cells from `first` up to `last`."""
        return min(last * self.cell, self.n) - min(first * self.cell, self.n)


@dataclass(frozen=True)
class Task:
    """The cells from `first` up to `last`."""

    first: int
    last: int


class Pace:
    """How many cells a task gets: what takes about a second, in powers of two.

    Powers of two, so that the sizes settle: workers that carry copies of one random state then draw the
    same runs, which is what shows them.
    """

    def __init__(self, layout: Chunking, workers: int = 1) -> None:
        self.layout, self.workers = layout, workers
        self._cost: float | None = None  # seconds a cell
        self._longest = 0

    def add(self, cells: int, seconds: float) -> None:
        cost = seconds / cells
        if self._cost is not None and cells <= self._longest:  # a longer task says more
            cost = (self._cost + cost) / 2
        self._cost, self._longest = cost, max(cells, self._longest)

    def next(self, first: int, limit: int) -> Task:
        """The task that begins at a cell and ends before `limit`."""
        layout = self.layout
        if self._cost is None or not layout.calls:
            return Task(first, first + 1)
        if layout.n % layout.cell and first < layout.cells - 1:
            limit = min(limit, layout.cells - 1)  # a short cell is a task of its own
        wanted = min(
            _SECONDS / max(self._cost, 1e-9),
            _GROWTH * self._longest,
            (limit - first) / (1 if self.workers == 1 else 2 * self.workers),
            _HELD / layout.cell,
        )
        return Task(first, first + (1 << max(int(wanted).bit_length() - 1, 0)))


# --- what a worker does


@dataclass(frozen=True)
class Job:
    """What is drawn in a stage, and what becomes of each block: all that travels to workers."""

    mechanism: Mechanism
    pair: Pair
    seed: int
    key: tuple[int, int]  # pair and stage: streams are found from (seed, *key, cell, side)
    layout: Chunking
    each_alone: bool
    timeout: float | None
    use: Callable[[Outputs, Outputs], Any]
    inputs: tuple[bytes | None, bytes | None]  # digests, to notice inputs that change
    writer: PartWriter | None = None  # saves every task, into a store

    @property
    def on_device(self) -> bool:
        """Whether arrays may stay where they are: each is a block, and used where it is."""
        copied = self.layout.calls or self.writer is not None
        return not copied and getattr(self.use, "on_device", False)


@dataclass(frozen=True)
class Failure:
    """What went wrong in a task; exceptions do not always survive the way between processes."""

    cell: int
    side: int
    kind: type[DpassayError]
    message: str
    trace: str = ""
    misused: bool = False  # whether it looks as if it had been called with the wrong arguments


@dataclass(frozen=True)
class Drawn:
    """A finished task: what was made of its block, or its draws, which fill blocks with others."""

    result: Any  # None where every output is a call
    sides: Sides | None  # None where every task is a block
    heads: tuple[Head, Head]  # with hashes where every output is a call
    seconds: float

    @classmethod
    def of(cls, job: Job, sides: Sides, seconds: float = 0.0) -> Drawn:
        calls = job.layout.calls
        heads = head(sides[0], calls), head(sides[1], calls)
        result = None if calls else job.use(*sides)
        return cls(result, sides if calls else None, heads, seconds)


def draw_task(job: Job, task: Task) -> Drawn | Failure:
    """Draw the cells of a task on either input, save them, and use them if they are a block."""
    start = time.perf_counter()
    drawn: list[AnyOutputs] = []
    before = None
    for side, data in enumerate(job.pair):
        found = _draw_side(job, task, side)
        if changed := why_changed(data, job.inputs[side], job.mechanism):  # which may make it fail
            return Failure(task.first, side, InputChanged, changed)
        if isinstance(found, Failure):
            return found
        drawn.append(found)
        if side == 0 and not job.layout.calls:
            before = head(found)
    if before is not None and head(drawn[0]) != before:
        overwritten = (
            "it returned an array that it had returned before, with other numbers in it: the draws on "
            "the second input took the place of those on the first. Return a copy: np.array(result)"
        )
        return Failure(task.first, 1, BadOutput, overwritten)
    sides: Sides = drawn[0], drawn[1]
    if not all(isinstance(side, DeviceOutputs) for side in drawn):
        p, q = align([on_host(side) for side in drawn])
        sides = arranged(p, q) if job.layout.calls else (p, q)
    seconds = time.perf_counter() - start
    if job.writer is not None:
        try:
            job.writer.save(task, sides)
        except StoreError as error:
            return Failure(task.first, 0, StoreError, str(error))
    return Drawn.of(job, sides, seconds)


def _draw_side(job: Job, task: Task, side: int) -> AnyOutputs | Failure:
    """Draw a task on one input, cell by cell."""
    data, cell, raws, sizes = job.pair[side], task.first, [], []
    try:
        for cell in range(task.first, task.last):
            size = job.layout.draws(cell, cell + 1)
            rng = stream(job.seed, *job.key, cell, side)
            if job.each_alone:
                raws += [_call_alone(job, data, rng) for _ in range(size)]
            else:
                with _deadline(job.timeout):
                    raws.append(job.mechanism(data, size, rng))
            sizes.append(size)
        if job.each_alone:
            return concatenate(raws)
        there = kept_on_device(raws[0], sizes[0]) if job.on_device else None
        return _read_cells(raws, sizes) if there is None else there
    except MechanismError as error:
        return Failure(cell, side, type(error), str(error))
    except (InvalidInput, *_STOPS):
        raise
    except BaseException as error:  # sys.exit in a mechanism must not end the caller
        message = f"it raised {type(error).__name__}: {error}"
        misused = isinstance(error, (TypeError, AttributeError))
        return Failure(cell, side, MechanismRaised, message, _trace(error), misused)


def _trace(error: BaseException) -> str:
    """Where a mechanism raised: its own frames, not those that called it."""
    found = traceback.TracebackException.from_exception(error)
    own = [frame for frame in found.stack if not Path(frame.filename).is_relative_to(_PACKAGE)]
    found.stack = traceback.StackSummary.from_list((own or list(found.stack))[-8:])
    return "".join(found.format())


def _read_cells(raws: list[Any], sizes: list[int]) -> Outputs:
    """The canonical form of cells, each by itself: it does not matter what they are drawn with."""
    if len(raws) > 1 and all(type(raw) is list for raw in raws):
        together = [item for raw in raws for item in raw]
        types = set(map(type, together))
        if len(types) == 1 and types <= _SCALARS:  # a list of these is its items
            return _read(together, sum(sizes))
    return concatenate([_read(raw, size) for raw, size in zip(raws, sizes, strict=True)])


def _read(raw: Any, size: int) -> Outputs:
    """The canonical form of what came out; whatever goes wrong here is not the mechanism raising."""
    try:
        return from_raw(raw, size)
    except BadOutput:
        raise
    except Exception as error:
        raise BadOutput(
            f"outputs of type {type(raw).__name__} could not be read ({type(error).__name__}: {error}); "
            "return numbers, strings, None, tuples, lists or dictionaries of them"
        ) from error


def call(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, timeout: float | None
) -> Outputs:
    """The outputs of one call outside any job; whatever goes wrong is a `MechanismError`."""
    try:
        with _deadline(timeout):
            raw = mechanism(data, size, rng)
    except (MechanismError, InvalidInput, *_STOPS):
        raise
    except BaseException as error:
        raise MechanismRaised(f"{type(error).__name__}: {error}") from error
    return _read(raw, size)


def _call_alone(job: Job, data: Any, rng: np.random.Generator) -> Outputs:
    try:
        with _deadline(job.timeout):
            raw = job.mechanism(data, 1, rng)
        found = _read(raw, 1)
    except MechanismTimedOut:
        found = from_raw([Outcome("timed out")], 1)
    except (BadOutput, InvalidInput, *_STOPS):
        raise
    except BaseException as error:
        found = from_raw([Outcome("raised", type(error).__name__)], 1)
    return dataclasses.replace(found, containers=frozenset())  # an array of one changes nothing


class _TimeUp(BaseException):
    """Not an Exception, so that a mechanism's own `except Exception` cannot swallow it."""


def _deadline(seconds: float | None) -> contextlib.AbstractContextManager[None]:
    """Raise MechanismTimedOut after so many seconds inside."""
    return contextlib.nullcontext() if seconds is None else _timer(seconds)


@contextlib.contextmanager
def _timer(seconds: float) -> Iterator[None]:
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        raise InvalidInput(
            "a time-out needs the main thread of a process on a Unix system: call from the main "
            "thread, use a process pool, or dp.from_command(…, timeout=…)"
        )

    def up(signum: int, frame: Any) -> NoReturn:
        raise _TimeUp

    try:
        before = signal.signal(signal.SIGALRM, up)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
    except _TimeUp:
        raise MechanismTimedOut(f"one call took longer than {seconds:g} s") from None
