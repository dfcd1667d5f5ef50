"""Drawing: seeds, blocks, workers, time-outs, stores, and mechanisms that misbehave.

The same seed gives the same draws bit for bit, whatever the number of workers (`job`). There are at least
two blocks, so that copied streams can be noticed (`repeated_draws`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from dpassay import validation as checks
from dpassay.errors import (
    BadOutput,
    DpassayError,
    Interrupted,
    InvalidInput,
    MechanismError,
    MechanismRaised,
    MechanismTimedOut,
    StoreError,
)
from dpassay.outputs.canonical import Outputs, align, arranged, concatenate
from dpassay.sampling.executors import run_in_order
from dpassay.sampling.identity import short_digest
from dpassay.sampling.job import Chunking, Failure, Job, Sides
from dpassay.sampling.job import stream as stream
from dpassay.sampling.progress import Progress
from dpassay.sampling.repeated_draws import CopyCheck, DrawMethod
from dpassay.sampling.resuming import open_stage
from dpassay.sampling.store_files import stored_seed

if TYPE_CHECKING:
    from dpassay.sampling.samples import Live

T = TypeVar("T")
Seed: TypeAlias = (
    "int | np.random.Generator | np.random.SeedSequence | np.random.BitGenerator | None"
)


@dataclass(frozen=True)
class Sampling:
    """How to draw.

    workers    how many tasks to draw at once; array code runs in threads, one-output functions
               in processes
    executor   any concurrent.futures.Executor to use instead: a process pool, that of a Dask client (or
               the client) …
    timeout    seconds one call of the mechanism may take. Needs the main thread (or processes); a
               call stuck inside C code is stopped only when it returns to Python
    on_error   "raise", or "outcome": an exception or time-out is an output of its own. Every output
               is then a call of its own, so that one failure cannot decide the fate of a block
    store      a folder in which every draw is kept as it comes (see `Store`): interrupted runs
               resume. Needs dpassay[arrow]
    identity   a name for the mechanism and its inputs in a store, in place of a description of what they
               hold: for mechanisms that cannot be described, or whose state changes as they run. Give
               another one whenever the mechanism changes
    progress   None: one bar for the whole call on a terminal past two seconds, elsewhere a line on
               stderr now and then; True or False to override
    """

    workers: int = 1
    executor: Executor | None = None
    timeout: float | None = None
    on_error: str = "raise"
    progress: bool | None = None
    store: str | Path | None = None
    identity: str | None = None

    def __post_init__(self) -> None:
        checks.whole("workers", self.workers)
        checks.one_of("on_error", self.on_error, ("raise", "outcome"))
        if self.timeout is not None:
            checks.real("timeout", self.timeout, above=0.0)
        if self.store is not None and not isinstance(self.store, (str, Path)):
            raise InvalidInput(f"store must be a folder, got {checks.shown(self.store)}")
        if self.identity is not None and not (isinstance(self.identity, str) and self.identity):
            raise InvalidInput(f"identity must be a text, got {checks.shown(self.identity)}")
        if self.identity is not None and self.store is None:
            raise InvalidInput("identity names the mechanism of a store: give store=… as well")
        made = not isinstance(self.executor, type) and checks.has(self.executor, "submit")
        if self.executor is not None and not made:
            raise InvalidInput(
                f"executor must be a concurrent.futures.Executor, got {checks.shown(self.executor)}"
            )


def seed_of(rng: Seed) -> int:
    """The whole number everything random is derived from: passing it as `rng` repeats the run."""
    try:
        if isinstance(rng, (int, np.integer)):
            return checks.whole("rng", rng, at_least=0, at_most=math.inf)
        return int(np.random.default_rng(rng).integers(2**63))
    except Exception:  # objects raise what they like
        raise InvalidInput(
            f"rng must be a non-negative seed, a numpy Generator or None, got {checks.shown(rng)}"
        ) from None


def as_sampling(given: Sampling | None) -> Sampling:
    """How to draw, or what is wrong with what was given for it."""
    if given is None:
        return Sampling()
    if not isinstance(given, Sampling):
        raise InvalidInput(
            f"sampling must be a dp.Sampling, got {checks.shown(given)}; write "
            "sampling=dp.Sampling(workers=2)"
        )
    return given


def seed_for(rng: Seed, sampling: Sampling | None) -> int:
    """The seed of a run; without one, that of the store it draws into."""
    store = as_sampling(sampling).store
    found = stored_seed(store) if rng is None else None
    return seed_of(rng) if found is None else found


def keep(p: Outputs, q: Outputs) -> tuple[Outputs, Outputs]:
    """The default use of a block: keep its outputs, whatever the mechanism does to its arrays later."""
    return p.copy(), q.copy()


def draw_blocks(
    source: Live,
    n: int,
    key: tuple[int, int],
    use: Callable[[Outputs, Outputs], T],
    check: CopyCheck,
) -> Iterator[T]:
    """Draw `n` outputs on each input and yield `use(p, q)` for each block, in order."""
    mechanism, pair, seed, sampling = source.mechanism, source.pair, source.seed, source.sampling
    alone = sampling.on_error == "outcome"
    layout = Chunking.of(mechanism, n, each_alone=alone)
    inputs = short_digest(pair[0]), short_digest(pair[1])
    # as they are now, where a change would be noticed
    given = [checks.shown(x) if seen else "" for x, seen in zip(pair, inputs, strict=True)]
    job = Job(mechanism, pair, seed, key, layout, alone, sampling.timeout, use, inputs)
    pieces: list[Sides] = []  # of the block that is not full
    with contextlib.ExitStack() as held, Progress(n, enabled=sampling.progress) as progress:
        stage, kept = None, ""
        if sampling.store is not None and source.entry is not None:
            stage = held.enter_context(open_stage(sampling.store, source.entry, seed=seed, key=key))
            job = dataclasses.replace(job, writer=stage.writer)
            if layout.calls:
                stage.tell_unused(n, layout.cell)
            kept = f"; they are kept in {stage.root}: start again to go on"
        takes_rng = getattr(mechanism, "replayable", True)
        workers = sampling.workers > 1 or sampling.executor is not None
        method = DrawMethod(layout.calls, workers, stage is not None, takes_rng)
        try:
            for task, done in run_in_order(job, sampling, stage):
                if isinstance(done, Failure):
                    raise _explain(
                        done, job, given, f"{progress.done:,} draws a side were made{kept}"
                    )
                check.add(done.heads, pair, method)
                progress.advance(layout.draws(task.first, task.last))
                if done.sides is None:
                    yield done.result
                else:
                    before = layout.draws(0, task.first)
                    for p, q in _full_blocks(layout, before, pieces, done.sides):
                        yield use(p, q)
        except MechanismError:
            if pieces:
                yield use(*joined(pieces, calls=True))
            raise
        except KeyboardInterrupt:
            raise Interrupted(progress.done, n, kept) from None


def _full_blocks(
    layout: Chunking, before: int, pieces: list[Sides], sides: Sides
) -> Iterator[tuple[Outputs, Outputs]]:
    """The blocks that are full with these draws, of which `before` came before; `pieces` are the rest."""
    p, q = sides
    while len(p):
        need = min(layout.block - before % layout.block, layout.n - before)
        pieces.append((p[:need], q[:need]))
        before += len(pieces[-1][0])
        p, q = p[need:], q[need:]
        if before % layout.block == 0 or before == layout.n:
            yield joined(pieces, calls=True)
            pieces.clear()


def joined(parts: Sequence[Sides], calls: bool) -> tuple[Outputs, Outputs]:
    """Draws on either input over one table; `calls` if every output is a call: then in one order."""
    p, q = (concatenate([part[side] for part in parts]) for side in (0, 1))
    if calls:
        return arranged(p, q)
    p, q = align([p, q])
    return p, q


#: How the line of a message begins that says how to repeat a failure.
AGAIN = "\n  to see it again"


def _explain(failure: Failure, job: Job, given: Sequence[str], kept: str) -> DpassayError:
    """The error of a failure; `given` are inputs as they were before any draw, or empty."""
    if failure.kind is StoreError:
        return StoreError(failure.message)
    cell = failure.cell
    address = f"np.random.SeedSequence({job.seed}, spawn_key={(*job.key, cell, failure.side)})"
    size = job.layout.draws(cell, cell + 1)
    calls = "1 output at a time" if job.each_alone else f"size={size}"
    if getattr(job.mechanism, "one_by_one", False):
        calls = "1 call" if size == 1 else f"{size} calls in a row"
    data = given[failure.side] or checks.shown(job.pair[failure.side])
    text = f"the mechanism failed on input {data}: {failure.message}"
    if failure.kind is BadOutput:
        text = f"the outputs on input {data} cannot be used: {failure.message}"
    if getattr(job.mechanism, "replayable", True):
        text += f"{AGAIN}: {calls}, rng=np.random.default_rng({address})"
    if failure.misused and not getattr(job.mechanism, "one_by_one", False):
        text += (
            "\n  it is called as mechanism(data, size, rng), for `size` outputs; if it returns one "
            "output a call, wrap it: dp.from_function(…) (--per-call)"
        )
    elif failure.kind in (MechanismRaised, MechanismTimedOut) and not job.each_alone:
        text += (
            '\n  if failing is one of its outcomes, audit it as such: Sampling(on_error="outcome")'
        )
    if job.writer is not None:
        text += f"\n  {kept}"
    if failure.trace:
        text += f"\n{failure.trace.rstrip()}"
    return failure.kind(text)
