"""Drawing: seeds, blocks, workers, time-outs, and mechanisms that misbehave.

Draws come in blocks of a size that depends on the mechanism and n alone. Each side of each block
has a stream of its own, found from (seed, pair, stage, block, side), so the same seed gives the
same draws bit for bit whatever the number of workers. There are at least two blocks, which is what
lets copied streams be noticed: a generator that is re-created with a fixed seed inside the
mechanism, or pickled to every worker, returns the same block twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from dpassay import checks
from dpassay.blackbox.mechanism import BLOCK, Mechanism
from dpassay.errors import (
    BadOutput,
    DependentDraws,
    InputChanged,
    Interrupted,
    InvalidInput,
    MechanismError,
    MechanismRaised,
    MechanismTimedOut,
)
from dpassay.outputs.canonical import Outputs, align, check_containers, concatenate, from_raw
from dpassay.outputs.templates import Outcome, number_columns
from dpassay.privacy.pairs import Pair
from dpassay.sampling.fingerprint import fingerprint
from dpassay.sampling.progress import Progress

T = TypeVar("T")
Seed: TypeAlias = (
    "int | np.random.Generator | np.random.SeedSequence | np.random.BitGenerator | None"
)

#: Bytes at the head of a block that are compared to find copied streams.
_HEAD = 2048


@dataclass(frozen=True)
class Sampling:
    """How to draw.

    workers    how many blocks to draw at once; array code runs in threads, one-output functions
               in processes
    executor   any concurrent.futures.Executor to use instead (a process pool, Dask's, …)
    timeout    seconds one call of the mechanism may take. Needs the main thread (or processes); a
               call stuck inside C code is stopped only when it returns to Python
    on_error   "raise", or "outcome": an exception or time-out is an output of its own. Every output
               is then a call of its own, so that one failure cannot decide the fate of a block
    progress   None: a bar on a terminal past two seconds, elsewhere a line on stderr now and then;
               True or False to override
    """

    workers: int = 1
    executor: Executor | None = None
    timeout: float | None = None
    on_error: str = "raise"
    progress: bool | None = None

    def __post_init__(self) -> None:
        checks.whole("workers", self.workers)
        checks.one_of("on_error", self.on_error, ("raise", "outcome"))
        if self.timeout is not None:
            checks.real("timeout", self.timeout, above=0.0)
        made = not isinstance(self.executor, type) and hasattr(self.executor, "submit")
        if self.executor is not None and not made:
            raise InvalidInput(
                f"executor must be a concurrent.futures.Executor, got {checks.shown(self.executor)}"
            )


def seed_of(rng: Seed) -> int:
    """The whole number everything random is derived from: passing it as `rng` repeats the run."""
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    try:
        if isinstance(rng, (bool, int, np.integer)):
            raise TypeError
        return int(np.random.default_rng(rng).integers(2**63))
    except (TypeError, ValueError):
        raise InvalidInput(
            f"rng must be a non-negative seed, a numpy Generator or None, got {checks.shown(rng)}"
        ) from None


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
    each_alone: bool
    timeout: float | None
    use: Callable[[Outputs, Outputs], Any]
    inputs: tuple[bytes | None, bytes | None]  # fingerprints, to notice inputs that change

    def stream(self, block: int, side: int) -> tuple[int, ...]:
        """The address of the randomness of one side of a block."""
        return (*self.key, block, side)


@dataclass(frozen=True)
class Failure:
    """What went wrong in a block; exceptions do not always survive the way between processes."""

    side: int
    kind: type[MechanismError]
    message: str
    trace: str = ""


@dataclass(frozen=True)
class Drawn:
    """A finished block: what was made of its outputs, and their heads for the copy check."""

    result: Any
    heads: tuple[Head, Head]


@dataclass(frozen=True)
class Head:
    """The first bytes of a block and how improbable a chance repetition of them is."""

    content: bytes
    rows: int
    log_chance: float  # log-probability that an independent block begins with the same outputs
    constant: bytes | None  # the one output of a head that has no other
    containers: frozenset[str]


def keep(p: Outputs, q: Outputs) -> tuple[Outputs, Outputs]:
    """The default use of a block: keep its outputs."""
    return p, q


def draw_block(job: Job, block: int, size: int) -> Drawn | Failure:
    """Draw `size` outputs on either input and hand them to the job's `use`. Runs in a worker."""
    sides = []
    for side, data in enumerate(job.pair):
        rng = stream(job.seed, *job.stream(block, side))
        try:
            if job.each_alone:
                sides.append(concatenate([_call_alone(job, data, rng) for _ in range(size)]))
            else:
                with _deadline(job.timeout):
                    raw = job.mechanism(data, size, rng)
                sides.append(_read(raw, size))
        except _TimeUp:
            return Failure(side, MechanismTimedOut, f"one call took longer than {job.timeout:g} s")
        except MechanismError as error:
            return Failure(side, type(error), str(error))
        except InvalidInput:
            raise
        except Exception as error:
            message = f"it raised {type(error).__name__}: {error}"
            return Failure(side, MechanismRaised, message, traceback.format_exc(limit=-8))
        if job.inputs[side] is not None and fingerprint(data) != job.inputs[side]:
            return Failure(side, InputChanged, _CHANGED)
    p, q = align(sides)
    return Drawn(job.use(p, q), (_head(p), _head(q)))


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


_CHANGED = (
    "it changed its input in place, so that later draws would be on another input; let it work on a "
    "copy: lambda data, size, rng: mechanism(copy.deepcopy(data), size, rng)"
)


def _call_alone(job: Job, data: Any, rng: np.random.Generator) -> Outputs:
    try:
        with _deadline(job.timeout):
            raw = job.mechanism(data, 1, rng)
        found = _read(raw, 1)
    except (_TimeUp, MechanismTimedOut):
        found = from_raw([Outcome("timed out")], 1)
    except (BadOutput, InvalidInput):
        raise
    except Exception as error:
        found = from_raw([Outcome("raised", type(error).__name__)], 1)
    return dataclasses.replace(found, containers=frozenset())  # an array of one changes nothing


class _TimeUp(BaseException):
    """Not an Exception, so that a mechanism's own `except Exception` cannot swallow it."""


@contextlib.contextmanager
def _deadline(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
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


def _head(outputs: Outputs) -> Head:
    row_bytes = outputs.numbers.shape[1] * outputs.numbers.itemsize
    rows = min(len(outputs), max(256, _HEAD // max(row_bytes, 1)))
    numbers = np.ascontiguousarray(outputs.numbers[:rows])
    content = numbers.tobytes()
    kept = outputs.containers
    if numbers.shape[1] == 1 and outputs.codes is None and rows > 1:
        ordered = np.sort(numbers[:, 0])
        if not np.any(ordered[1:] == ordered[:-1]):  # no repeats, as with every continuous output
            return Head(content, rows, -rows * math.log(rows), None, kept)
    labels = numbers.view(f"V{row_bytes}").ravel().tolist() if row_bytes else [b""] * rows
    if outputs.codes is not None:
        names = [repr(outputs.structures[code]) for code in outputs.codes[:rows]]
        content += "".join(names).encode()
        labels = list(zip(labels, names, strict=True))
    counts = np.array(list(Counter(labels).values()))
    log_chance = float(np.sum(counts * np.log(counts / rows)))
    only = None
    if counts.size == 1:
        # the columns of this output alone: how many there are depends on what else came out
        template = outputs.structure_of(0)
        only = numbers[:1, list(number_columns(template))].tobytes() + repr(template).encode()
    return Head(content, rows, log_chance, only, kept)


class BlockCheck:
    """Notices blocks that are copies of each other, or hold outputs in ways that do not agree."""

    #: A repetition this improbable is no accident (log-probability, all pairs of blocks counted).
    LOG_LIMIT = math.log(1e-12)

    def __init__(self, containers: frozenset[str] = frozenset()) -> None:
        self.containers = containers  # of both sides, and of earlier stages
        self._seen: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
        self._constant: list[bytes | None] = [None, None]
        self._varied = [False, False]  # whether a block held different outputs
        self._count = 0

    def add(self, heads: tuple[Head, Head], data: Pair) -> None:
        """Raise DependentDraws if a block repeats one seen before, BadOutput if it does not fit."""
        self._count += 1
        for side, head in enumerate(heads):
            self.containers |= head.containers
            check_containers(self.containers)
            self._varied[side] |= head.constant is None
            before = self._seen[side].setdefault(head.content, self._count)
            chance = head.log_chance + 2 * math.log(self._count)
            if before != self._count and chance < self.LOG_LIMIT:
                raise DependentDraws(
                    f"blocks {before} and {self._count} of the draws on {checks.shown(data[side])} "
                    "are the same outputs in the same order, so the draws are not independent. "
                    "The mechanism carries a random state of its own that starts again at every "
                    "block: a generator made inside it with a fixed seed, or a state copied to "
                    "each worker. Draw from the `rng` it is given — dp.from_function accepts "
                    "f(data, rng) — or use workers=1"
                )
            if head.constant is not None and head.rows >= 16:
                first = self._constant[side]
                if first is None:
                    self._constant[side] = head.constant
                elif first != head.constant and not self._varied[side]:
                    raise DependentDraws(
                        f"on {checks.shown(data[side])} every call returns one value repeated, and "
                        "another one at the next call: the noise is drawn once per call, not once "
                        "per output (pass size= to it, or wrap the function: dp.from_function)"
                    )


def block_sizes(mechanism: Mechanism, n: int) -> list[int]:
    """How `n` outputs are cut into blocks: by the mechanism and n alone, two blocks at least."""
    size = min(int(getattr(mechanism, "block", BLOCK)), max(1, math.ceil(n / 2)))
    return [size] * (n // size) + ([n % size] if n % size else [])


def draw_blocks(
    mechanism: Mechanism,
    pair: Pair,
    n: int,
    *,
    seed: int,
    key: tuple[int, ...],
    sampling: Sampling,
    use: Callable[[Outputs, Outputs], T],
    check: BlockCheck,
    label: str = "drawing",
) -> Iterator[T]:
    """Draw `n` outputs on each input and yield `use(p, q)` for each block, in order."""
    from dpassay.sampling.workers import run_in_order

    job = Job(
        mechanism,
        pair,
        seed,
        key,
        sampling.on_error == "outcome",
        sampling.timeout,
        use,
        (fingerprint(pair[0]), fingerprint(pair[1])),
    )
    sizes = block_sizes(mechanism, n)
    with Progress(n, label, sampling.progress) as progress:
        try:
            for block, done in enumerate(run_in_order(job, sizes, sampling)):
                if isinstance(done, Failure):
                    raise _explain(done, job, block, sizes[block])
                check.add(done.heads, pair)
                progress.advance(sizes[block])
                yield done.result
        except KeyboardInterrupt:
            raise Interrupted(progress.done, n) from None


def _explain(failure: Failure, job: Job, block: int, size: int) -> MechanismError:
    address = f"np.random.SeedSequence({job.seed}, spawn_key={job.stream(block, failure.side)})"
    calls = "1 output at a time" if job.each_alone else f"size={size}"
    text = (
        f"the mechanism failed on input {checks.shown(job.pair[failure.side])}: {failure.message}"
        f"\n  replay it alone with {calls}, rng=np.random.default_rng({address})"
    )
    if failure.kind in (MechanismRaised, MechanismTimedOut) and not job.each_alone:
        text += (
            '\n  if failing is one of its outcomes, audit it as such: Sampling(on_error="outcome")'
        )
    if failure.trace:
        text += f"\n{failure.trace.rstrip()}"
    return failure.kind(text)
