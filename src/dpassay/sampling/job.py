"""What a worker does: draw the cells of a task, and hand on what is made of them."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from dpassay.blackbox.mechanism import Mechanism
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
from dpassay.outputs.resident import AnyOutputs, Resident, brought_here, stay
from dpassay.outputs.templates import Outcome
from dpassay.privacy.pairs import Pair
from dpassay.sampling.copies import Head, head
from dpassay.sampling.identity import why_changed
from dpassay.sampling.store_files import PartWriter
from dpassay.sampling.tasks import Chunking, Task

_PACKAGE = Path(__file__).parents[1]
#: What ends a run, and is not the mechanism failing.
_STOPS = (KeyboardInterrupt, Terminated)
_SCALARS = {float, int, bool, np.float64}
#: The draws on either input: Outputs, or Resident where the job says `anywhere`.
Sides: TypeAlias = tuple[Any, Any]


def stream(seed: int, *key: int) -> np.random.Generator:
    """The generator at an address; the same address is the same stream."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@dataclass(frozen=True)
class Job:
    """What is drawn in a stage, and what becomes of each block: all that travels to workers."""

    mechanism: Mechanism
    pair: Pair
    seed: int
    key: tuple[int, ...]
    layout: Chunking
    each_alone: bool
    timeout: float | None
    use: Callable[[Outputs, Outputs], Any]
    inputs: tuple[bytes | None, bytes | None]  # digests, to notice inputs that change
    writer: PartWriter | None = None  # saves every task, into a store

    @property
    def anywhere(self) -> bool:
        """Whether arrays may stay where they are: each is a block, and used where it is."""
        copied = self.layout.calls or self.writer is not None
        return not copied and getattr(self.use, "anywhere", False)

    def stream(self, cell: int, side: int) -> tuple[int, ...]:
        """The address of the randomness of one side of a cell."""
        return (*self.key, cell, side)


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
    sides = _draw_both(job, task)
    seconds = time.perf_counter() - start
    if isinstance(sides, Failure):
        return sides
    if job.writer is not None:
        try:
            job.writer.save(task, sides)
        except StoreError as error:
            return Failure(task.first, 0, StoreError, str(error))
    return Drawn.of(job, sides, seconds)


def _draw_both(job: Job, task: Task) -> Sides | Failure:
    """Draw a task on either input."""
    sides: list[AnyOutputs] = []
    for side, data in enumerate(job.pair):
        found = _draw_side(job, task, side)
        if isinstance(found, Failure):
            return found
        sides.append(found)
        if changed := why_changed(data, job.inputs[side], job.mechanism):
            return Failure(task.first, side, InputChanged, changed)
        if side == 0:
            before = None if job.layout.calls else head(found)
    if before is not None and head(sides[0]) != before:
        return Failure(task.first, 1, BadOutput, _OVERWRITTEN)
    if all(isinstance(side, Resident) for side in sides):
        return sides[0], sides[1]
    p, q = align([brought_here(side) for side in sides])
    return arranged(p, q) if job.layout.calls else (p, q)


def _draw_side(job: Job, task: Task, side: int) -> AnyOutputs | Failure:
    """Draw a task on one input, cell by cell."""
    data, cell, raws, sizes = job.pair[side], task.first, [], []
    try:
        for cell in range(task.first, task.last):
            size = job.layout.draws(cell, cell + 1)
            rng = stream(job.seed, *job.stream(cell, side))
            if job.each_alone:
                raws += [_call_alone(job, data, rng) for _ in range(size)]
            else:
                with _deadline(job.timeout):
                    raws.append(job.mechanism(data, size, rng))
            sizes.append(size)
        if job.each_alone:
            return concatenate(raws)
        there = stay(raws[0], sizes[0]) if job.anywhere else None
        return _read_cells(raws, sizes) if there is None else there
    except _TimeUp:
        text = f"one call took longer than {job.timeout:g} s"
        return Failure(cell, side, MechanismTimedOut, text)
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


_OVERWRITTEN = (
    "it returned an array that it had returned before, with other numbers in it: the draws on the second "
    "input took the place of those on the first. Return a copy: np.array(result)"
)


def call(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, timeout: float | None
) -> Outputs:
    """The outputs of one call outside any job; whatever goes wrong is a `MechanismError`."""
    try:
        with _deadline(timeout):
            raw = mechanism(data, size, rng)
    except _TimeUp:
        raise MechanismTimedOut(f"one call took longer than {timeout:g} s") from None
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
    except (_TimeUp, MechanismTimedOut):
        found = from_raw([Outcome("timed out")], 1)
    except (BadOutput, InvalidInput, *_STOPS):
        raise
    except BaseException as error:
        found = from_raw([Outcome("raised", type(error).__name__)], 1)
    return dataclasses.replace(found, containers=frozenset())  # an array of one changes nothing


class _TimeUp(BaseException):
    """Not an Exception, so that a mechanism's own `except Exception` cannot swallow it."""


def _deadline(seconds: float | None) -> contextlib.AbstractContextManager[None]:
    """Raise _TimeUp inside after so many seconds."""
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

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
