"""Screening of candidate pairs: the lower bound that a few draws on a pair predict.

A prediction is made on draws of its own and used for nothing but choosing: no stream of randomness is
used in two trials, and none of them in the verdict.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import numpy as np

from dpassay.auditing.stages import learn
from dpassay.blackbox.mechanism import Mechanism
from dpassay.errors import BadOutput, DpassayError, MechanismRaised, MechanismTimedOut
from dpassay.hunting.common_random_numbers import Coupling, difference
from dpassay.hunting.queries import Queries
from dpassay.hunting.result import Family
from dpassay.hunting.rows import Records
from dpassay.privacy.claims import Claim
from dpassay.privacy.relations import Pair
from dpassay.sampling.budget import Budget, Clock
from dpassay.sampling.draw import AGAIN, Sampling
from dpassay.sampling.samples import Batch, Live

#: Fewer draws a side are not worth starting workers for.
_ALONE = 1000
#: With more draws a side no trial fits what is slow to fit. The verdict tries everything.
_LEAN = 10_000
#: Candidates on which it is found out whether randomness can be repeated.
_TRIES = 8
#: A budget of fewer draws is for one screening and the verdict.
FEWEST = 5000


class Effort(Enum):
    """What is computed from the draws of a trial."""

    COUPLED = auto()  # how far apart outputs with the same randomness are
    THOROUGH = auto()  # the bound that an audit would learn without what is slow to fit
    COMPLETE = auto()  # the bound that an audit would learn


class DrawBudget:
    """What a hunt may spend, in draws or in seconds, and what it has spent.

    With a clock, `total` is what a pilot expects at `cost` seconds a draw, and what is left follows from
    the time that is left and from what draws took so far, with what is computed from them.
    """

    def __init__(self, total: int, clock: Clock | None = None, cost: float = 0.0) -> None:
        self.total, self.clock, self.cost = total, clock, cost
        self.spent = 0
        self._began = clock.elapsed if clock is not None else 0.0

    def affords(self, draws: int, share: float) -> bool:
        """Whether a trial with so many draws stays within this share of the budget."""
        return draws <= self.left(share)

    def left(self, share: float) -> float:
        """The draws that are left of this share; none when this share of the time is over."""
        if self.clock is None:
            return share * self.total - self.spent
        took = (self.clock.elapsed - self._began) / max(self.spent, 1)
        time_left = share * self.clock.seconds - self.clock.elapsed
        return max(time_left, 0.0) / max(self.cost, took, 1e-12)


@dataclass(frozen=True)
class Trial:
    """What draws on a candidate predict."""

    candidate: Any
    pair: Pair
    n: int  # draws a side
    rank: tuple[int, float] = (-1, 0.0)  # of trials of one effort: the larger, the better
    bound: float = 0.0  # the predicted lower bound
    conclusive: bool = False  # a violation is predicted beyond the noise of these draws
    failed: bool = False  # draws may fail, which is an output
    rejected: str = ""  # why the pair was refused; empty if it was not
    effort: Effort = Effort.COUPLED
    seconds: float = 0.0  # that it took
    at: int = 0  # the draws of the hunt when it was made
    suspicion: str = ""  # a call of the generator that depends on the data


@dataclass
class Log:
    """Every candidate that was tried, with its last trial; `tell` hears of each."""

    tell: Callable[[Trial], None]
    last: dict[str, Trial] = field(default_factory=dict)
    draws: dict[str, int] = field(default_factory=dict)  # on both sides
    trials: int = 0
    families: dict[str, Family] = field(default_factory=dict)
    suspicions: dict[str, tuple[float, str]] = field(default_factory=dict)  # with the difference

    def add(self, trial: Trial) -> Trial:
        key = trial.candidate.key
        name = trial.candidate.family
        family = self.families.get(name, Family(name=name))
        coupled = trial.effort is Effort.COUPLED
        self.families[name] = replace(
            family,
            tried=family.tried + (key not in self.last),
            difference=max(family.difference, trial.rank[1] if coupled else 0.0),
            bound=max(family.bound, trial.bound),
            seconds=family.seconds + trial.seconds,
        )
        if trial.suspicion:
            self.suspicions[key] = trial.rank[1], f"{trial.suspicion} ({trial.pair})"
        if not coupled or key not in self.last:
            self.last[key] = trial
        self.draws[key] = self.draws.get(key, 0) + 2 * trial.n
        self.trials += 1
        self.tell(trial)
        return trial


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
            timeout = self.sampling.timeout
            found = Coupling(self.mechanism, self.seed, timeout, shared, self.recording)
            self.coupling = found
            for key, candidate in enumerate(candidates[:_TRIES]):
                if not self.budget.affords(2 * n, 1.0):
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
        # failures are errors first, then outputs where they count
        counts = self.failing == "outcome" or (self.failing == "leak" and not candidate.outside)
        modes = ["raise", "outcome"] if counts else ["raise"]
        if self.sampling.on_error == "outcome" or (counts and candidate.key in self._failing):
            modes = ["outcome"]
        for mode in modes:
            try:
                trial = self._attempt(effort, trial, mode)
                break
            except (MechanismRaised, MechanismTimedOut) as error:
                trial = replace(trial, rejected=_reason(error))
        return replace(trial, seconds=time.perf_counter() - start, at=self.budget.spent)

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
        structures = batch.p.structures
        if len(structures) == 1 and structures[0][0] == "outcome":  # nothing to tell apart
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
        budget = Budget((trial.n, trial.n), (self.test, self.test))
        lean = effort is Effort.THOROUGH or trial.n > _LEAN
        (choice,) = learn(
            [source], [self.claim], budget, self.gamma, self.loss, lean=lean, calibrate=False
        )
        rank, bound = choice.events[0].rank, choice.events[0].threshold.bound
        conclusive = rank[0] == 2
        if choice.divergence is not None:
            rank, bound = choice.rank, choice.divergence.bound
            conclusive = bound > self.claim.value
        seen = replace(trial, rank=rank, bound=bound, conclusive=conclusive)
        return choice.learner.batch, seen


def _reason(error: DpassayError) -> str:
    """The first line that says what went wrong, without the input, which the log has."""
    text = str(error).partition(AGAIN)[0]
    text = text.partition(": it raised ")[2] or text.partition(": one call ")[2] or text
    first, *rest = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return f"{first} {rest[0]}" if first.endswith(":") and rest else first.rstrip(":")
