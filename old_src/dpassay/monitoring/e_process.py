"""The bets on one pair as draws come in: what is learned, what is bet on, and what was gained.

Draws are taken in pairs, one of either side, in the order they came. The first few only train. Then
outputs are parted into a few cells (`learning.betting_cells`), and every pair of draws that follows is
bet on with a guess of how likely the cells are, which earlier draws gave (`bounds.e_values`). The
guess is renewed whenever there are a sixteenth more draws, the cells whenever there are twice as many
(later four times), from draws that were bet on before.

All that the wealth depends on are counts. So it can be found for any other value of the claim's
parameter afterwards, and is small when written down.

What the bets on some pairs say together (`ConfidenceSequence`): the same bets have a wealth against every
value of the claim's parameter. A value is refuted once that has reached 1/γ. The values looked at are
fixed beforehand; the lower bound is the largest of them up to which all are refuted, 0 if there is none.
If it is above the truth, then the first value on the grid that is no less than the truth was refuted, by
one of these wealths: probability γ at most, at all times together. The claim counts as violated when all
values up to its own are refuted, so that one error probability covers both. Its p-value can be at most γ
before that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import BoolArray, FloatArray, IntArray
from dpassay.bounds.e_values import bets_against, gains, log_wealth
from dpassay.learning.betting_cells import again, choose, pick
from dpassay.learning.cross_fit import CrossFit
from dpassay.outputs.canonical import Outputs, concatenate
from dpassay.outputs.events import Partition
from dpassay.outputs.templates import is_template, leaves_of
from dpassay.privacy.claims import Claim
from dpassay.privacy.relations import Pair
from dpassay.records import Record
from dpassay.sampling.draw import stream
from dpassay.sampling.samples import Batch

#: Training draws a side, and the most that are kept to learn from.
FIRST, KEPT = 8, 1 << 14
#: Beyond these draws a side, only every second one of a single number is learned from.
_TAUGHT = 1 << 13
#: A guess lasts until there are this share more draws, thresholds until there are so many times as many.
_SHARE, _AGAIN = 1 / 16, 1.4
#: From so many draws a side on, what to bet on is learned whenever there are four times as many.
_OFTEN = 256
#: More draws than anybody brings.
_NEVER = 1 << 52
#: The values at which a lower bound is looked for: even steps up to what is claimed, then steps of this
#: share of the last, larger where regions are slow to evaluate, or this much where that is tiny.
_BELOW, _STEP, _SLOW, _TINY = 20, 0.01, 0.05, 5e-3
#: The values end here.
_FAR = 100.0
#: So many are looked at together.
_AT_ONCE = 20


@dataclass(frozen=True, eq=False)
class Drawn(Record):
    """Outputs, written down."""

    numbers: Any = field(metadata={"verbatim": True})
    structures: Any = field(metadata={"verbatim": True})
    codes: Any = field(metadata={"verbatim": True})
    rest: Any = field(metadata={"verbatim": True})
    containers: tuple[str, ...] = ()

    @classmethod
    def of(cls, outputs: Outputs) -> Drawn:
        """As they are."""
        o = outputs
        return cls(o.numbers, o.structures, o.codes, o.rest, tuple(sorted(o.containers)))

    def _validate(self) -> None:
        numbers, codes = self.numbers, self.codes
        number = isinstance(numbers, np.ndarray) and numbers.dtype.kind in "iuf"
        checks.require(number and numbers.ndim in (1, 2), "numbers must be an array of numbers")
        known = isinstance(self.structures, tuple) and len(self.structures) > 0
        known = known and all(map(is_template, self.structures))
        checks.require(known, "structures are no templates")
        if codes is not None:
            whole = isinstance(codes, np.ndarray) and codes.dtype.kind in "iu"
            inside = whole and codes.shape == (len(numbers),)
            inside = inside and np.all((codes >= 0) & (codes < len(self.structures)))
            checks.require(inside, "codes must name a structure for each of the numbers")
        array = self.rest is None or isinstance(self.rest, np.ndarray)
        checks.require(array, "rest must be an array")
        made = self.outputs()
        columns = max(len(leaves_of(template)) for template in self.structures)
        checks.require(not len(numbers) or columns <= made.numbers.shape[1], "numbers are missing")
        same = made.rest is None or made.rest.shape == made.numbers.shape
        checks.require(same, "rest must have an entry for each of the numbers")

    def outputs(self) -> Outputs:
        """As they were."""
        shape = len(self.numbers), -1 if len(self.numbers) else 0
        rest = None if self.rest is None else self.rest.reshape(shape)
        kinds = frozenset(self.containers)
        return Outputs(self.numbers.reshape(shape), self.structures, self.codes, rest, kinds)


@dataclass(frozen=True, eq=False)
class BettingEpoch(Record):
    """Bets on the cells of one partition: how often past draws were in them, then row by row."""

    partition: Partition
    start: int  # draws a side before the first row
    past_counts: IntArray  # (2, cells): past draws, in cells they had no part in
    parts: tuple[int, int]  # where the bottom ends and the top begins
    ends: IntArray  # draws a side at the end of each row
    picks: IntArray  # (rows, bets, 2)
    hits: IntArray  # (rows, 2, cells)
    gained: FloatArray  # (rows, bets): what was added to the log-wealth of each bet

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = self.ends.size  # empty arrays lose their shape in JSON
        bets = self.gained.size // max(rows, 1)
        self._set(picks=self.picks.reshape(rows, bets, 2), gained=self.gained.reshape(rows, bets))
        self._set(hits=self.hits.reshape(rows, 2, self.past_counts.shape[1]))

    def _validate(self) -> None:
        cells = len(self.partition)
        checks.require(
            self.past_counts.shape == (2, cells), "past_counts must count the cells of either side"
        )
        counts = min(self.past_counts.min(), self.hits.min(initial=0))
        checks.require(counts >= 0, "past_counts and hits must be at least 0")
        bottom, top = self.parts
        checks.require(0 <= bottom <= top <= cells, f"parts must lie between 0 and {cells}")
        rising = np.all(np.diff(self.ends, prepend=self.start) > 0)
        checks.require(rising and self.start >= 0, "ends must increase from start")
        inside = np.all((self.picks >= 0) & (self.picks <= cells))
        checks.require(inside, "picks must name cells of the partition")

    @property
    def draws(self) -> int:
        """Draws a side that were bet on."""
        return int(self.ends[-1]) - self.start if self.ends.size else 0

    @property
    def end(self) -> int:
        """Draws a side after the last row."""
        return int(self.ends[-1]) if self.ends.size else self.start

    @property
    def known(self) -> IntArray:
        """(2, cells): what is known by now."""
        return np.asarray(self.past_counts + self.hits.sum(axis=0))

    def past(self) -> IntArray:
        """(rows, 2, cells): what was known before each row."""
        return np.asarray(self.past_counts + np.cumsum(self.hits, axis=0) - self.hits)


class EProcess:
    """Draws on one pair, and the bets on them."""

    def __init__(self, claim: Claim, loss: Any, seed: int, pair: Pair | None = None) -> None:
        self.claim, self.loss, self.seed, self.pair = claim, loss, seed, pair
        self.bets = bets_against(claim)
        self.draws = 0
        self.epochs: list[BettingEpoch] = []
        self.kept: tuple[list[Outputs], list[Outputs]] = ([], [])
        self.failures: list[str] = []

    def bring(self, p: Outputs, q: Outputs) -> None:
        """Bet on as many draws of either side, in this order; the first ones are training draws."""
        while len(p):
            until = int(_schedule(self.epochs[-1].start)[0][-1]) if self.epochs else FIRST
            if self.draws >= until:
                self._learn()
                continue
            size = min(until - self.draws, len(p))
            first, p, q = (p[:size], q[:size]), p[size:], q[size:]
            if self.epochs:
                self._bet(*first)
            self.draws += size
            if self.draws <= KEPT:
                for kept, side in zip(self.kept, first, strict=True):
                    kept.append(side)

    def _learn(self) -> None:
        """Choose the cells anew, from draws that were bet on before."""
        for side in (0, 1):
            self.kept[side][:] = [concatenate(self.kept[side])]
        p, q = self.kept[0][0], self.kept[1][0]
        few = self.draws <= _TAUGHT or p.numbers.shape[1] > 1
        batch = Batch.of(p, q) if few else Batch.of(p[::2], q[::2])
        rng = partial(stream, self.seed, 1 << 22, len(self.epochs))
        learner = CrossFit(batch, self.loss, rng, pair=self.pair)
        found = choose(learner, self.bets, self.claim)
        self.failures = learner.failures
        counts, rows = found.counts, np.zeros(0, dtype=np.int64)
        if not few:  # the rest is counted, by cells they had no part in
            counts = counts + np.array([found.partition.counts(side[1::2]) for side in (p, q)])
        empty: Any = (rows, rows, rows, rows)
        epoch = BettingEpoch(found.partition, self.draws, counts, found.parts, *empty)
        self.epochs.append(epoch)
        if self.draws >= KEPT:  # nothing is learned any more
            self.kept = ([], [])

    def _bet(self, p: Outputs, q: Outputs) -> None:
        """Count draws up to the end of the epoch at most, row by row; the first may have begun."""
        epoch, bets = self.epochs[-1], len(self.bets)
        schedule, picked = _schedule(epoch.start)
        total = self.draws + len(p)
        first = int(np.searchsorted(schedule, self.draws, side="right"))
        last = int(np.searchsorted(schedule, total, side="left"))
        ends = np.append(schedule[first:last], total)
        sizes = np.diff(ends, prepend=self.draws)
        hits = np.empty((sizes.size, 2, len(epoch.partition)), dtype=np.int64)
        for index, side in enumerate((p, q)):
            parts = np.split(epoch.partition.cells(side), np.cumsum(sizes)[:-1])
            for row, part in enumerate(parts):
                hits[row, index] = np.bincount(part, minlength=len(epoch.partition))
        begun = first < epoch.ends.size
        if begun:
            hits[0] += epoch.hits[first]
        before = epoch.past_counts + epoch.hits[:first].sum(axis=0)
        past = before + np.cumsum(hits, axis=0) - hits
        picks = np.empty((ends.size, bets, 2), dtype=np.int64)
        for row, known in enumerate(past):
            place = first + row
            if row == 0 and begun:
                picks[row] = epoch.picks[place]
            elif place == 0 or picked[place - 1]:
                ends_of = again(self.bets, self.claim, known, epoch.parts)
                picks[row] = pick(self.bets, self.claim, known, ends_of)
            else:
                picks[row] = picks[row - 1] if row else epoch.picks[-1]
        gained = gains(self.bets, self.claim, [self.claim.value], past, picks, hits)[0]
        self.epochs[-1] = replace(
            epoch,
            ends=np.concatenate([epoch.ends[:first], ends]),
            hits=np.concatenate([epoch.hits[:first], hits]),
            picks=np.concatenate([epoch.picks[:first].reshape(first, bets, 2), picks]),
            gained=np.concatenate([epoch.gained[:first].reshape(first, bets), gained]),
        )

    @property
    def ends(self) -> IntArray:
        """Draws a side at the end of each row."""
        found = [epoch.ends for epoch in self.epochs]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    def path(self, theta: float | None = None) -> FloatArray:
        """The log-wealth after each row, against the claim or with another value of its parameter."""
        if theta is not None:
            return np.asarray(self.paths([theta])[0])
        found = [epoch.gained for epoch in self.epochs if epoch.ends.size]
        return log_wealth(self.bets, np.concatenate(found)) if found else np.zeros(0)

    def paths(self, thetas: Sequence[float]) -> FloatArray:
        """(θ, rows): the log-wealth with other values of the claim's parameter."""
        epochs = [epoch for epoch in self.epochs if epoch.ends.size]
        if not epochs:
            return np.zeros((len(thetas), 0))
        found: list[FloatArray] = [np.zeros(0)] * len(epochs)
        for width in {epoch.past_counts.shape[1] for epoch in epochs}:  # few calls for many rows
            own = [k for k, epoch in enumerate(epochs) if epoch.past_counts.shape[1] == width]
            past = np.concatenate([epochs[k].past() for k in own])
            hits = np.concatenate([epochs[k].hits for k in own])
            picks = np.concatenate([epochs[k].picks for k in own])
            gained = gains(self.bets, self.claim, thetas, past, picks, hits)
            sizes = np.cumsum([epochs[k].ends.size for k in own])[:-1]
            for k, part in zip(own, np.split(gained, sizes, axis=1), strict=True):
                found[k] = part
        return log_wealth(self.bets, np.concatenate(found, axis=1))

    def consistent(self) -> bool:
        """Whether what was gained follows from the counts, and those from the draws."""
        rows = True
        for epoch in self.epochs:
            sizes = np.diff(epoch.ends, prepend=epoch.start)
            rows &= bool(np.all(epoch.hits.sum(axis=2) == sizes[:, None]))
        at = self.epochs[-1].end if self.epochs else self.draws
        same = rows and at == self.draws
        return same and np.allclose(self.path(self.claim.value), self.path(), rtol=0, atol=1e-6)


@lru_cache(maxsize=64)
def _schedule(start: int) -> tuple[IntArray, BoolArray]:
    """Where the rows of an epoch end, and after which of them cells are picked again.

    An epoch ends with twice the draws it began with, later with four times as many; the last one, which
    all kept draws have been learned from, never does.
    """
    until = (2 if start < _OFTEN else 4) * start if start < KEPT else _NEVER
    ends, picked, at, last = [], [], start, start
    while at < until:
        at = min(at + max(1, int(at * _SHARE)), until)
        again = at >= _AGAIN * last or at == until
        last = at if again else last
        ends.append(at)
        picked.append(again)
    return np.array(ends), np.array(picked)


class ConfidenceSequence:
    """A confidence sequence for the parameter of a claim, from the e-processes of several pairs.

    Every pair has as many draws; the evidence is the average of their e-processes.
    """

    def __init__(self, claim: Claim, processes: Sequence[EProcess], gamma: float) -> None:
        self.claim, self.processes, self.needed = claim, processes, math.log(1 / gamma)
        self.seen = 0.0  # the log-evidence at the last look
        self.peak = -math.inf  # the largest log-evidence seen
        self.bound = 0.0  # the largest lower bound found
        self.refuted: int | None = None  # draws a side when the claim was
        self._values: set[float] = set()  # those that were refuted: they stay so

    def path(self, theta: float | None = None) -> FloatArray:
        """The log of the average wealth after each row."""
        return _averaged([process.path(theta) for process in self.processes])

    def bring(self, batches: Sequence[tuple[Outputs, Outputs]]) -> None:
        """Bet on as many draws on each pair, in their order, and look.

        If that fails or is interrupted, nothing was brought: no draw is ever bet on twice.
        """
        before = [
            (process.draws, list(process.epochs), (list(process.kept[0]), list(process.kept[1])))
            for process in self.processes
        ]
        try:
            for process, (p, q) in zip(self.processes, batches, strict=True):
                process.bring(p, q)
            self.decide()
        except BaseException:
            for process, state in zip(self.processes, before, strict=True):
                process.draws, process.epochs, process.kept = state
            raise

    def decide(self) -> None:
        """The stopping rule: the claim and all smaller values of its parameter are refuted."""
        path = self.path()
        if not path.size:
            return
        self.seen, self.peak = float(path[-1]), max(self.peak, float(path.max()))
        if self.refuted is None and self.peak >= self.needed:
            below = (value for value in values(self.claim) if value < self.claim.value)
            if all(self._refutes(value) for value in below):
                self.bound = max(self.bound, self.claim.value)
                above = path >= self.needed
                first = int(np.argmax(above)) if above.any() else -1
                self.refuted = int(self.processes[0].ends[first])

    def _refutes(self, value: float) -> bool:
        """Whether a value of the grid is refuted; the next few are looked at too where that is quick."""
        if value not in self._values:
            grid = (one for one in values(self.claim) if one >= value)
            some = list(islice(grid, _AT_ONCE if self.claim.quick else 1))
            paths = _averaged([process.paths(some) for process in self.processes])
            peaks = paths.max(axis=1, initial=-math.inf)
            self._values.update(
                one for one, peak in zip(some, peaks, strict=True) if peak >= self.needed
            )
        return value in self._values

    def lower_bound(self) -> float:
        """The largest value up to which all are refuted, now or before."""
        for value in values(self.claim):
            if value < self.claim.value and self.refuted is not None:
                continue
            if value == self.claim.value and self.refuted is None:
                break
            if value != self.claim.value and not self._refutes(value):
                break
            self.bound = max(self.bound, value)
        return self.bound


def _averaged(paths: Sequence[FloatArray]) -> FloatArray:
    """The log of the average wealth of some processes."""
    if len(paths) == 1:
        return paths[0]
    top = np.max(paths, axis=0)
    return np.asarray(top + np.log(np.mean(np.exp(paths - top), axis=0)))


def values(claim: Claim) -> Iterator[float]:
    """The grid, upwards: it depends on the claim alone."""
    own = claim.value
    if own > 0:
        for k in range(_BELOW):
            yield own * k / _BELOW
    value, step = own, _STEP if claim.quick else _SLOW
    top = min(claim.largest, max(_FAR, 10 * own))
    while value < top:
        yield value
        value += max(step * value, _TINY)
