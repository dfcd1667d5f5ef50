"""Screening of candidate pairs: the lower bound that a few draws on a pair predict.

A prediction is made on draws of its own and used for nothing but choosing: no stream of randomness is
used in two trials, and none of them in the verdict.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import numpy as np

from dpassay.auditing.stages import learn
from dpassay.blackbox.mechanism import Mechanism
from dpassay.errors import (
    BadOutput,
    DpassayError,
    MechanismError,
    MechanismRaised,
    MechanismTimedOut,
)
from dpassay.hunting.coupling import Coupling, codes_of, difference
from dpassay.hunting.queries import Queries
from dpassay.hunting.rows import Records
from dpassay.learning.hit_rates import HitRates
from dpassay.privacy.claims import Claim
from dpassay.privacy.pairs import Pair
from dpassay.sampling.budget import Budget, Clock
from dpassay.sampling.draw import Sampling
from dpassay.sampling.samples import Batch, Live

#: Columns that a quick trial scores, of how many at most.
_COLUMNS, _WIDE = 8, 200
#: Categories of output are scored by all draws up to this many, else each draw by the others.
_FEW = 12
#: Fewer draws a side are not worth starting workers for.
_ALONE = 1000
#: With more draws a side no trial fits what is slow to fit. The verdict tries everything.
_LEAN = 10_000


#: Candidates on which it is found out whether randomness can be repeated.
_TRIES = 8
#: A budget of fewer draws is for one screening and the verdict.
FEWEST = 5000
#: How much longer a complete trial takes than one without what is slow to fit, before one was made.
_SLOWER = 4.0


class Effort(Enum):
    """What is computed from the draws of a trial."""

    PILOT = auto()  # nothing: a time budget is measured out
    COUPLED = auto()  # how far apart outputs with the same randomness are
    QUICK = auto()  # the test statistic that simple scores predict
    THOROUGH = auto()  # the bound that an audit would learn without what is slow to fit
    COMPLETE = auto()  # the bound that an audit would learn


class DrawBudget:
    """What a hunt may spend, in draws or in seconds, and what it has spent.

    With a clock, `total` is what a pilot expects, and what is left follows from the time that is left and
    from what draws took so far, with what is computed from them.
    """

    def __init__(self, total: int, clock: Clock | None = None, cost: float = 0.0) -> None:
        self.total, self.clock = total, clock
        self.spent = 0
        self._began = clock.elapsed if clock is not None else 0.0
        # draws of the pilot and of the largest trial of every effort, and seconds a draw
        self._costs: dict[Effort, tuple[int, float]] = {Effort.PILOT: (0, cost)}

    def affords(self, draws: int, share: float, effort: Effort = Effort.THOROUGH) -> bool:
        """Whether a trial with so many draws stays within this share of the budget."""
        if self.clock is not None:
            cost = self._costs[Effort.PILOT][1]
            if effort in self._costs:
                cost = max(cost, self._costs[effort][1])
            elif effort is Effort.COMPLETE and Effort.THOROUGH in self._costs:
                cost = max(cost, _SLOWER * self._costs[Effort.THOROUGH][1])
            if self.clock.elapsed + draws * cost > share * self.clock.seconds:
                return False
        return draws <= self.left(share)

    def left(self, share: float) -> float:
        """The draws that are left of this share; none when this share of the time is over."""
        if self.clock is None:
            return share * self.total - self.spent
        time_left = share * self.clock.seconds - self.clock.elapsed
        cost = self._costs[Effort.PILOT][1]
        if self.spent:
            cost = max(cost, (self.clock.elapsed - self._began) / self.spent)
        return max(time_left, 0.0) / cost if cost else 0.0

    def record(self, effort: Effort, draws: int, seconds: float) -> None:
        """Note what a trial took: large ones tell best what others of their effort will take."""
        if draws >= self._costs.get(effort, (0, 0.0))[0]:
            self._costs[effort] = draws, seconds / draws


@dataclass(frozen=True)
class Trial:
    """What draws on a candidate predict."""

    candidate: Any
    pair: Pair
    n: int  # draws a side
    rank: tuple[int, float] = (0, -math.inf)  # by which trials of one effort are ordered
    bound: float = 0.0  # the predicted lower bound
    conclusive: bool = False  # a violation is predicted beyond the noise of these draws
    failed: bool = False  # draws may fail, which is an output
    rejected: str = ""  # why the pair was refused; empty if it was not
    effort: Effort = Effort.PILOT
    seconds: float = 0.0  # that it took
    at: int = 0  # the draws of the hunt when it was made
    suspicion: str = ""  # a call of the generator that depends on the data

    @property
    def order(self) -> tuple[int, float]:
        """The larger, the better."""
        return (-1, 0.0) if self.rejected else self.rank


@dataclass(eq=False, kw_only=True)
class Screening:
    """What trials of candidates have in common."""

    mechanism: Mechanism
    space: Records | Queries
    claim: Claim
    test: int  # draws a side that will test
    gamma: float
    loss: Any
    failing: str
    seed: int
    sampling: Sampling
    budget: DrawBudget
    recording: bool = False  # whether the calls of the generator are noted
    coupling: Coupling | None = None
    _streams: Iterator[int] = field(default_factory=lambda: itertools.count(1))  # 0: the verdict
    _failing: set[str] = field(default_factory=set)  # candidates whose failures count as outputs

    def couple(self, candidates: Sequence[Any]) -> None:
        """Find out what repeats the mechanism's randomness; nothing does for a system source."""
        n = 2 if self.budget.total < FEWEST else 8
        for shared in (False, True):
            found = Coupling(
                self.mechanism, self.seed, self.sampling.timeout, shared, self.recording
            )
            self.coupling = found
            for key, candidate in enumerate(candidates[:_TRIES]):
                if not self.budget.affords(2 * n, 1.0, Effort.COUPLED):
                    return
                self.budget.spent += 2 * n
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    data = self.space.pair(candidate)[1]
                    repeats = found.repeats(data, n, (1 << 20) + key)
                if repeats is not None:
                    break
            if repeats is not False:
                return
        self.coupling = None

    def trial(self, effort: Effort, candidate: Any, n: int, *, failing: bool = False) -> Trial:
        """Draw on a pair. If the mechanism fails on it, that is an output, or the pair is refused.

        `failing` says that failures of this candidate are known to be outputs. A pair whose outputs
        cannot be handled is refused as well: the hunt goes on.
        """
        if failing:
            self._failing.add(candidate.key)
        start = time.perf_counter()
        trial = Trial(candidate, self.space.pair(candidate), n, effort=effort)
        for mode in self._error_modes(candidate):
            try:
                trial = self._attempt(effort, trial, mode)
                break
            except (MechanismRaised, MechanismTimedOut) as error:
                trial = replace(trial, rejected=_reason(error))
        seconds = time.perf_counter() - start
        self.budget.record(effort, 2 * n, seconds)
        return replace(trial, seconds=seconds, at=self.budget.spent)

    def _error_modes(self, candidate: Any) -> list[str]:
        """How failures are handled, in turn: first as errors, then as outputs where they count."""
        counts = self.failing == "outcome" or (self.failing == "leak" and not candidate.outside)
        if self.sampling.on_error == "outcome" or (counts and candidate.key in self._failing):
            return ["outcome"]
        return ["raise", "outcome"] if counts else ["raise"]

    def _attempt(self, effort: Effort, trial: Trial, mode: str) -> Trial:
        how = replace(self.sampling, progress=False, on_error=mode)
        if trial.n < _ALONE:
            how = replace(how, workers=1, executor=None)
        self.budget.spent += 2 * trial.n
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                batch, seen = self._predicted(effort, trial, how)
        except BadOutput as error:
            return replace(trial, rejected=_reason(error))
        except DpassayError:
            raise
        except Exception as error:
            why = f"could not be evaluated ({type(error).__name__}: {error})"
            return replace(trial, rejected=why)
        if _always_fails(batch):  # there is nothing to tell apart
            return replace(trial, rejected=trial.rejected or "it always fails")
        if mode == "outcome":
            self._failing.add(trial.candidate.key)
        level, score = seen.rank
        rank = level, -math.inf if math.isnan(score) else score
        return replace(seen, rank=rank, failed=mode == "outcome", rejected="")

    def _predicted(self, effort: Effort, trial: Trial, how: Sampling) -> tuple[Batch, Trial]:
        """The draws, and what they predict."""
        if effort is Effort.COUPLED and self.coupling is not None:
            # the same randomness for all candidates: their scores differ by the inputs alone
            failing = how.on_error == "outcome"
            found = self.coupling.draw(trial.pair, trial.n, trial.n, failing=failing)
            rank = int(bool(found.suspicion)), difference(found)
            return found.batch, replace(trial, rank=rank, suspicion=found.suspicion)
        index = next(self._streams)
        source = Live(self.mechanism, trial.pair, seed=self.seed, index=index, sampling=how)
        n, test = (trial.n, trial.n), (self.test, self.test)
        if effort in (Effort.THOROUGH, Effort.COMPLETE):
            lean = effort is Effort.THOROUGH or trial.n > _LEAN
            (choice,) = learn(
                [source], [self.claim], Budget(n, test), self.gamma, self.loss, lean=lean
            )
            rank, bound = choice.events[0].rank, choice.events[0].threshold.bound
            conclusive = rank[0] == 2
            if choice.divergence is not None:
                rank, bound = choice.rank, choice.divergence.bound
                conclusive = bound > self.claim.value
            seen = replace(trial, rank=rank, bound=bound, conclusive=conclusive)
            return choice.learner.batch, seen
        batch = source.deal(n)
        claim = self.claim if self.claim.set_by_events else self.claim.gaussian_proxy()
        score = quick_score(batch, claim, self.test)
        return batch, replace(trial, rank=(0, score))


def _always_fails(batch: Batch) -> bool:
    """Whether all draws on both inputs failed, in one way."""
    return len(batch.p.structures) == 1 and batch.p.structures[0][0] == "outcome"


def _reason(error: MechanismError) -> str:
    """The first line that says what went wrong, without the input, which the log has."""
    text = str(error).partition("\n  replay it alone")[0]
    text = text.partition(": it raised ")[2] or text.partition(": one call ")[2] or text
    first, *rest = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return f"{first} {rest[0]}" if first.endswith(":") and rest else first.rstrip(":")


# --- scores of few draws


def _category_counts(batch: Batch) -> np.ndarray[Any, Any]:
    """How many draws there are of every category of output, a row a side."""
    many = len(batch.p.structures)
    return np.array([np.bincount(codes_of(side), minlength=many) for side in (batch.p, batch.q)])


def _numbers(batch: Batch) -> list[tuple[Any, Any]]:
    """The numbers that may tell the sides apart, a column each."""
    found = []
    for column in range(min(batch.p.numbers.shape[1], _WIDE)):
        origin = float(batch.p.numbers[0, column])
        p, q = (side.value_of(column, origin) for side in (batch.p, batch.q))
        spread = float(p.std() + q.std())
        found.append((-abs(float(p.mean() - q.mean())) / (spread or 1e-300), column, (p, q)))
    found.sort(key=lambda one: one[:2])
    return [two for _, _, two in found[:_COLUMNS]]


def quick_score(batch: Batch, claim: Claim, test: int) -> float:
    """The largest predicted test statistic of an event about a category of output or about one number.

    In standard errors of the draws that predict it, less what the largest over several thresholds owes to
    chance (`HitRates`). Fitting the scores of an audit to 30 draws would take 20 to 100 times as long.
    """
    scores = [(two, True) for two in _numbers(batch)]
    if len(scores) > 1:
        scores.append((_combined(batch), False))
    counts = _category_counts(batch)
    if counts.shape[1] > 1:
        scores.append((_categories(batch, counts), False))
    return _largest_z(scores, claim, test)


def _largest_z(scores: list[tuple[Any, bool]], claim: Claim, test: int) -> float:
    """The largest statistic of any threshold of any score; some have events in both tails."""
    best = -math.inf
    for one, tails in scores:
        rates = HitRates.of(one, claim.directional, (test, test), tails=tails)
        best = max(best, rates.strongest(claim, 1.0).z / rates.noise)
    return best


def _combined(batch: Batch) -> tuple[Any, Any]:
    """All numbers at once, by the linear discriminant of the other half of the draws."""
    sides = [np.asarray(side.numbers[:, :_WIDE], dtype=float) for side in (batch.p, batch.q)]
    largest = np.max([np.abs(side).max(axis=0) for side in sides], axis=0)
    sides = [side / np.maximum(largest, 1e-300) for side in sides]
    halves = [[side[k::2] for side in sides] for k in (0, 1)]
    scores = [np.zeros(len(side)) for side in sides]
    for k, other in ((0, halves[1]), (1, halves[0])):
        centred = np.concatenate([side - side.mean(axis=0) for side in other])
        scale = centred.std(axis=0) + 1e-12
        gap = (other[0].mean(axis=0) - other[1].mean(axis=0)) / scale
        spread = np.cov(centred / scale, rowvar=False) + 0.1 * np.eye(gap.size)
        weights = np.linalg.solve(spread, gap) / scale
        for side in (0, 1):
            scores[side][k::2] = halves[k][side] @ weights - other[0].mean(axis=0) @ weights
    return scores[0], scores[1]


def _categories(batch: Batch, counts: Any) -> tuple[Any, Any]:
    """log p/q of the categories of output; if there are many, each draw by the other draws."""
    own = 1.0 if counts.shape[1] > _FEW else 0.0
    p, q = (counts + 0.5).astype(float)
    return (
        np.log(np.maximum(p - own, 0.5) / q)[codes_of(batch.p)],
        np.log(p / np.maximum(q - own, 0.5))[codes_of(batch.q)],
    )
