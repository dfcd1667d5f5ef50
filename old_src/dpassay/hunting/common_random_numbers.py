"""Common random numbers: a mechanism run on both inputs with generators in the same state.

The two outputs of such a run differ by what the inputs change: noise that is added cancels,
and the difference over the spread of the outputs predicts ε or μ from a handful of calls. If the share of
runs that differ is small, so is the total variation, which it bounds from above. If the generators end in
different states, the control flow depends on the data.

This ranks the pairs of one mechanism and says nothing about its claim: a mechanism that keeps it has a
sensitivity too. Certificates come from fresh, independent draws.

Which distributions a run draws from, and with which scale, is a hint where to look and no proof: a
mechanism may multiply standard noise by a scale that no call shows, and a scale that depends on data may
be accounted for.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpassay._typing import FloatArray
from dpassay.blackbox.mechanism import Mechanism, Outcome, on_pair
from dpassay.errors import BadOutput, MechanismRaised, MechanismTimedOut
from dpassay.outputs.canonical import Outputs, align, concatenate, from_raw
from dpassay.sampling.job import call, stream
from dpassay.sampling.samples import Batch
from dpassay.validation import shown

#: Calls on either input where one call makes many outputs: each starts from a state of its own.
_CALLS = 4
#: What a change of the control flow is worth, the largest score, and the columns that are compared.
_FLOW, MOST, _WIDE = 2.0, 20.0, 100
#: What a ratio of scales is worth: scales show in the tails, about four of them out.
_TAIL = 4.0
#: The address of coupled randomness: apart from the streams of trials and of the verdict.
ADDRESS = 1 << 23


#: The distribution, and the parameter that sets its scale, if it has one.
Call: TypeAlias = tuple[str, Any]

#: The position and the name of the parameter that sets the scale.
_SCALES = {
    "exponential": (0, "scale"),
    "gamma": (1, "scale"),
    "geometric": (0, "p"),
    "gumbel": (1, "scale"),
    "laplace": (1, "scale"),
    "logistic": (1, "scale"),
    "normal": (1, "scale"),
    "rayleigh": (0, "scale"),
}
_OTHERS = ("binomial", "choice", "integers", "permutation", "permuted", "poisson", "random", "shuffle",
           "standard_exponential", "standard_gamma", "standard_normal", "uniform")  # fmt: skip


class RecordingGenerator(np.random.Generator):
    """A generator that notes the calls of its distributions."""

    def __init__(self, bit_generator: np.random.BitGenerator) -> None:
        super().__init__(bit_generator)
        self.calls: list[Call] = []


def _recorded(name: str) -> Callable[..., Any]:
    plain = getattr(np.random.Generator, name)
    place, key = _SCALES.get(name, (0, ""))

    @functools.wraps(plain)
    def run(self: RecordingGenerator, *args: Any, **options: Any) -> Any:
        given = options.get(key, args[place] if key and len(args) > place else None)
        self.calls.append((name, given))
        return plain(self, *args, **options)

    return run


for _name in (*_SCALES, *_OTHERS):
    setattr(RecordingGenerator, _name, _recorded(_name))


def suspicion(first: list[Call], second: list[Call]) -> str:
    """The first call that differs between the two inputs; empty if none does."""
    missing: Call = ("", None)
    calls = itertools.zip_longest(first, second, fillvalue=missing)
    for k, ((name, scale), (other, another)) in enumerate(calls, start=1):
        if not name or not other:
            where = "first" if name else "second"
            return f"call {k}: {name or other} on the {where} input, no such call on the other"
        if name != other:
            return f"call {k}: {name} on the first input, {other} on the second"
        if not np.array_equal(scale, another):
            what, one, two = _SCALES[name][1], shown(scale, 30), shown(another, 30)
            return f"call {k}: {name} with {what}={one} on the first input, {two} on the second"
    return ""


@dataclass(frozen=True)
class Coupled:
    """Outputs on two inputs with the same randomness."""

    batch: Batch
    apart: float  # the share of calls that end with generators in different states
    suspicion: str = ""  # a call of the generator that depends on the data


@dataclass(frozen=True)
class _Run:
    """The outputs of one call, the states in which the generators end, and what was drawn from."""

    outputs: Outputs
    state: Any
    calls: list[Call]


def _seeded_alike(runs: Sequence[_Run]) -> bool:
    """Whether calls with different generators, none of which is used, return equal outputs."""
    if len(runs) < 2 or any(run.calls for run in runs):
        return False
    return all(_equal(*align([runs[0].outputs, run.outputs])) for run in runs[1:])


@dataclass(frozen=True)
class Coupling:
    """Runs a mechanism on two inputs with the same randomness."""

    mechanism: Mechanism
    seed: int
    timeout: float | None = None
    shared: bool = False  # also seeds np.random, random and PyTorch, and restores their states
    recording: bool = False  # notes the calls of the generator

    def draw(self, pair: Any, n: int, key: int, *, failing: bool) -> Coupled:
        """`n` coupled outputs on either input.

        With `failing`, an exception or a time-out is an output of its own.
        """
        mechanism = on_pair(self.mechanism, pair)
        alone = failing or getattr(mechanism, "one_by_one", False)
        calls = n if alone else min(_CALLS, n)
        sizes = [n // calls + (k < n % calls) for k in range(calls)]
        with _restored() if self.shared else contextlib.nullcontext():
            first, second = (
                [self._call(mechanism, data, n, (key, k), failing) for k, n in enumerate(sizes)]
                for data in pair
            )
        p, q = (concatenate([run.outputs for run in side]) for side in (first, second))
        apart = sum(one.state != two.state for one, two in zip(first, second, strict=True)) / calls
        if not self.recording:
            return Coupled(Batch.of(p, q), apart)
        hints = (suspicion(a.calls, b.calls) for a, b in zip(first, second, strict=True))
        hint = next(filter(None, hints), "")
        if not hint and _seeded_alike(first):
            hint = "different generators bring the same outputs: a constant seed, or no noise"
        return Coupled(Batch.of(p, q), apart, hint)

    def _call(
        self, mechanism: Mechanism, data: Any, size: int, key: tuple[int, int], failing: bool
    ) -> _Run:
        rng = stream(self.seed, ADDRESS, *key)
        if self.recording:
            rng = RecordingGenerator(rng.bit_generator)
        if self.shared:
            seed = hash((self.seed, *key)) % 2**32
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)
            if (torch := sys.modules.get("torch")) is not None:
                torch.manual_seed(seed)
        try:
            found = call(mechanism, data, size, rng, self.timeout)
        except (MechanismRaised, MechanismTimedOut) as error:
            if not failing:
                raise
            outcome = Outcome("raised", type(error.__cause__ or error).__name__)
            found = from_raw([outcome] * size, size)
        state = rng.bit_generator.state, _states() if self.shared else None
        return _Run(found, state, getattr(rng, "calls", []))

    def repeats(self, data: Any, n: int, key: int) -> bool | None:
        """Whether the same states bring the same outputs back; None if they do not vary anyway."""
        try:
            batch = self.draw((data, data), n, key, failing=True).batch
        except BadOutput:
            return None
        p, q = batch.p, batch.q
        if not _equal(p, q):
            return False
        varies = np.ptp(p.numbers, axis=0).any() or np.unique(p.all_codes).size > 1
        return True if varies else None


def _equal(p: Outputs, q: Outputs) -> bool:
    if len(p) != len(q):
        return False
    rests = [0.0 if side.rest is None else side.rest for side in (p, q)]
    return bool(
        np.array_equal(p.all_codes, q.all_codes)
        and np.array_equal(p.numbers, q.numbers)
        and np.all(rests[0] == rests[1])
    )


# --- global states; those of PyTorch if it was imported


def _states() -> Any:
    kind, words, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    torch = sys.modules.get("torch")
    own = None if torch is None else torch.get_rng_state().numpy().tobytes()
    return kind, words.tobytes(), tuple(rest), random.getstate(), own  # type: ignore[union-attr]


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Give the global states back as they were: what is drawn later is fresh."""
    with contextlib.ExitStack() as stack:
        if (torch := sys.modules.get("torch")) is not None:
            cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
            stack.enter_context(torch.random.fork_rng(devices=cuda))
        stack.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        stack.callback(random.setstate, random.getstate())
        yield


# --- scores


def difference(found: Coupled) -> float:
    """How far apart coupled outputs are, in the scale of ε.

    The log-ratio of the most different kind of output, the shift of the numbers in units of their noise
    (√2 × a Mahalanobis distance, which is Δ/b for Laplace noise), and the log-ratio of their scales.
    """
    batch = found.batch
    a, b = batch.p.all_codes, batch.q.all_codes
    moved = a != b
    score = _FLOW * found.apart
    if moved.any():
        many = len(batch.p.structures)
        p, q = (np.bincount(codes, minlength=many) + 0.5 for codes in (a, b))
        score += float(np.abs(np.log(p / q)).max() + moved.mean())
    if (~moved).sum() > 1:
        first, second = (_numbers(side[~moved], batch.p) for side in (batch.p, batch.q))
        score += _shift(first, second, found.apart == 0)
    return min(score, MOST)


def _numbers(side: Outputs, origin: Outputs) -> FloatArray:
    """The numbers, less those of one output: exact near it."""
    first = np.asarray(origin.numbers[:1], dtype=float)
    found: FloatArray = np.asarray(side.numbers, dtype=float) - first
    return found if side.rest is None else found + side.rest


def _shift(x: FloatArray, y: FloatArray, same: bool) -> float:
    """Of numbers of outputs of one kind: how far they move, and by how much their scales differ."""
    moves = y - x
    with np.errstate(all="ignore"):
        spread = np.sqrt((x.var(axis=0, ddof=1) + y.var(axis=0, ddof=1)) / 2)
        size = np.abs(moves.mean(axis=0)) / spread
    largest = np.abs(moves).max(axis=0, initial=0.0)
    noiseless = (largest > 0) & ~(spread > 1e-12 * largest)
    if not np.isfinite(spread).all() or noiseless.any():
        return MOST  # a column without noise, or at the end of the range of doubles
    columns = np.flatnonzero(largest > 0)
    if not columns.size:
        return 0.0
    columns = columns[np.argsort(-size[columns])][:_WIDE]
    x, y, moves, spread = x[:, columns], y[:, columns], moves[:, columns], spread[columns]
    n, d = moves.shape
    centred = [side - side.mean(axis=0) for side in (x, y)]
    noise = np.concatenate(centred) / spread
    share = d / (d + 2 * n)  # few draws say little about many correlations
    cov = (1 - share) * (noise.T @ noise) / (2 * n - 2) + share * np.eye(d) + 1e-9 * np.eye(d)
    white = np.linalg.solve(np.linalg.cholesky(cov), (moves / spread).T)
    squared = np.sum(white.mean(axis=1) ** 2) - np.sum(white.var(axis=1, ddof=1)) / n
    return float(np.sqrt(2 * max(squared, 0.0))) + (_scales(centred) if same else 0.0)


def _scales(centred: list[FloatArray]) -> float:
    """By how much the scales of columns that hold continuous numbers differ, at most."""
    steps = (np.diff(np.sort(side, axis=0), axis=0) for side in centred)
    distinct = np.maximum(*(np.count_nonzero(step, axis=0) for step in steps))
    columns = distinct > len(centred[0]) / 2
    first, second = (np.abs(side[:, columns]).mean(axis=0) for side in centred)
    ratios = np.log(np.maximum(first, 1e-3 * second) / np.maximum(second, 1e-3 * first))
    return _TAIL * float(np.abs(ratios).max(initial=0.0))
