"""A pair under test: draws on it, and the bound that they predict.

A prediction is made on draws of its own and used for nothing but choosing; the streams of a look never
come again, neither in another look nor in the verdict.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
from dpassay.hunting.schema import CandidateSpace
from dpassay.learning.cross_fit import CrossFit
from dpassay.learning.hit_rates import HitRates
from dpassay.outputs.canonical import Outputs
from dpassay.privacy.claims import Claim
from dpassay.privacy.pairs import Pair
from dpassay.sampling.budget import Budget, Clock
from dpassay.sampling.draw import Sampling
from dpassay.sampling.samples import Batch, Live

#: Columns that a quick look goes through, of how many at most.
_COLUMNS, _WIDE = 8, 200
#: Kinds of output are ranked by all draws up to this many, else each draw by the others.
_FEW = 12
#: Fewer draws a side are not worth starting workers for.
_ALONE = 1000
#: A quick look at this many draws a side ranks them as an audit does; with more than that of the second,
#: no look fits what is slow to fit. The verdict tries everything.
_RANKED, _LEAN = 2000, 10_000
#: A look finds two inputs apart if nine tenths of the draws are of a kind that a tenth are on the other.
_APART = 0.9


class DrawBudget:
    """What a hunt may spend, in draws or in seconds, and what it has spent."""

    def __init__(self, budget: int, clock: Clock | None = None, cost: float = 0.0) -> None:
        self.budget, self.clock = budget, clock
        self.spent = 0
        # seconds a draw, as the pilot and the largest look of every kind took them
        self._costs: dict[str, tuple[int, float]] = {"pilot": (0, cost)}

    def holds(self, draws: int, share: float, kind: str = "thorough") -> bool:
        """Whether a look with so many draws leaves what lies beyond this share untouched."""
        if self.clock is None:
            return draws <= self.left(share)
        cost = max(self._costs["pilot"][1], self._costs.get(kind, (0, 0.0))[1])
        in_time = self.clock.elapsed + draws * cost <= share * self.clock.seconds
        return in_time and draws <= self.left(share)

    def left(self, share: float) -> float:
        """The draws that are left of this share; none when this share of the time is over."""
        if self.clock is not None and self.clock.elapsed > share * self.clock.seconds:
            return 0.0
        return share * self.budget - self.spent

    def took(self, kind: str, draws: int, seconds: float) -> None:
        """Note what a look took: the more draws, the better it tells what others of its kind take."""
        if draws >= self._costs.get(kind, (0, 0.0))[0]:
            self._costs[kind] = draws, seconds / draws


@dataclass(frozen=True)
class Trial:
    """What a look at a candidate showed."""

    candidate: Any
    pair: Pair
    n: int  # draws a side
    rank: tuple[int, float] = (0, -math.inf)  # the larger, the more promising
    bound: float = 0.0  # predicted
    sure: bool = False  # a refutation is predicted beyond the noise of these draws
    failed: bool = False  # draws may fail, which is an output
    rejected: str = ""  # why the pair is none, in words

    @property
    def order(self) -> tuple[int, float]:
        """Those to be preferred are the larger ones."""
        return (-1, 0.0) if self.rejected else self.rank


@dataclass(eq=False)
class Screening:
    """Where candidates are looked at."""

    mechanism: Mechanism
    ground: CandidateSpace
    claim: Claim
    test: int  # draws a side that will test
    gamma: float
    loss: Any
    failing: str
    seed: int
    sampling: Sampling
    purse: DrawBudget
    _streams: Any = field(default_factory=lambda: itertools.count(1))  # 0 is the verdict's
    _failing: set[str] = field(default_factory=set)  # candidates whose failures count as outputs

    def apart(self, candidate: Any, n: int) -> Trial:
        """A first look: how well a kind of output, or a cut of a number, tells the inputs apart."""

        def look(source: Live) -> Seen:
            batch = source.deal((n, n))
            return Seen(batch, (0, separation(batch)))

        return self._watched("apart", candidate, n, look)

    def quick(self, candidate: Any, n: int) -> Trial:
        """A look at kinds of output and at single numbers; if draws are many, at rankings."""
        claim = self.claim if self.claim.set_by_events else self.claim.gaussian_proxy()

        def look(source: Live) -> Seen:
            batch = source.deal((n, n))
            if n < _RANKED:
                return Seen(batch, (0, quick_score(batch, claim, self.test)))
            learner = CrossFit(batch, self.loss, source.rng, lean=True)
            return Seen(batch, (0, ranked_score(learner, claim, self.test)))

        return self._watched("quick", candidate, n, look)

    def thorough(self, candidate: Any, n: int, *, failing: bool = False) -> Trial:
        """What an audit would learn from these draws; `failing` if it is known that some may fail."""
        if failing:
            self._failing.add(candidate.key)
        budget = Budget((n, n), (self.test, self.test))

        def look(source: Live) -> Seen:
            (choice,) = learn([source], [self.claim], budget, self.gamma, self.loss, lean=n > _LEAN)
            batch, event = choice.learner.batch, choice.events[0]
            if choice.divergence is None:
                return Seen(batch, event.rank, event.cut.bound, event.rank[0] == 2)
            bound = choice.divergence.bound
            return Seen(batch, choice.promise, bound, bound > self.claim.value)

        return self._watched("thorough", candidate, n, look)

    def _watched(self, kind: str, candidate: Any, n: int, look: Callable[[Live], Seen]) -> Trial:
        """Look at a pair. If the mechanism fails on it, that is an outcome, or the pair is none.

        What goes wrong in looking at strange outputs makes the pair none as well: the hunt goes on.
        """
        start = time.perf_counter()
        try:
            return self._looked(candidate, n, look)
        finally:
            self.purse.took(kind, 2 * n, time.perf_counter() - start)

    def _looked(self, candidate: Any, n: int, look: Callable[[Live], Seen]) -> Trial:
        trial = Trial(candidate, self.ground.pair(candidate), n)
        counts = self.failing == "outcome" or (self.failing == "leak" and not candidate.outside)
        modes = ["raise", "outcome"] if counts else ["raise"]
        if self.sampling.on_error == "outcome" or (counts and candidate.key in self._failing):
            modes = ["outcome"]
        how = replace(self.sampling, progress=False)
        if n < _ALONE:
            how = replace(how, workers=1, executor=None)
        for mode in modes:
            source = Live(
                self.mechanism,
                trial.pair,
                seed=self.seed,
                index=next(self._streams),
                sampling=replace(how, on_error=mode),
            )
            self.purse.spent += 2 * n
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    seen = look(source)
            except (MechanismRaised, MechanismTimedOut) as error:
                trial = replace(trial, rejected=_said(error))
                continue
            except BadOutput as error:
                return replace(trial, rejected=_said(error))
            except DpassayError:
                raise
            except Exception as error:
                why = f"could not be looked at ({type(error).__name__}: {error})"
                return replace(trial, rejected=why)
            if _always_fails(seen.batch):  # there is nothing to tell apart
                return replace(trial, rejected=trial.rejected or "it always fails")
            if mode == "outcome":
                self._failing.add(candidate.key)
            rank = (seen.rank[0], seen.rank[1] if seen.rank[1] == seen.rank[1] else -math.inf)
            return replace(
                trial,
                rank=rank,
                bound=seen.bound,
                sure=seen.sure,
                failed=mode == "outcome",
                rejected="",
            )
        return trial


@dataclass(frozen=True, eq=False)
class Seen:
    """What a look saw: the draws, the rank they give a pair, and the bound they predict."""

    batch: Batch
    rank: tuple[int, float]
    bound: float = 0.0
    sure: bool = False


def _always_fails(batch: Batch) -> bool:
    """Whether all draws on both inputs failed, in one way."""
    return len(batch.p.structures) == 1 and batch.p.structures[0][0] == "outcome"


def _said(error: MechanismError) -> str:
    """The first line of what went wrong, without the input, which the log has."""
    text = str(error).partition("\n")[0]
    return text.partition(": it raised ")[2] or text.partition(": one call ")[2] or text


def kind_counts(batch: Batch) -> np.ndarray[Any, Any]:
    """How many draws there are of every kind of output, a row a side."""
    kinds = len(batch.p.structures)
    sides = (batch.p, batch.q)
    return np.array([np.bincount(_codes(side), minlength=kinds) for side in sides])


def _codes(side: Outputs) -> Any:
    return np.zeros(len(side), dtype=np.int64) if side.codes is None else side.codes


def separation(batch: Batch) -> float:
    """The share of the draws that one kind of output, or one cut of a number, tells apart at most."""
    counts = kind_counts(batch) / np.array(batch.sizes)[:, None]
    best = float(np.abs(counts[0] - counts[1]).max()) if counts.shape[1] <= _FEW else 0.0
    for p, q in _numbers(batch):
        cuts = np.concatenate([p, q])
        low = (
            np.searchsorted(np.sort(p), cuts) / p.size - np.searchsorted(np.sort(q), cuts) / q.size
        )
        best = max(best, float(np.abs(low).max()))
    return best


def far_apart(score: float) -> bool:
    """Whether a first look told the inputs apart."""
    return score >= 2 * _APART - 1


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
    """The largest predicted test statistic of an event about a kind of output or about one number.

    In standard errors of the draws that predict it, less what the largest of several cuts owes to chance.
    """
    rankings = [(two, True) for two in _numbers(batch)]
    if len(rankings) > 1:
        rankings.append((_combined(batch), False))
    counts = kind_counts(batch)
    if counts.shape[1] > 1:
        rankings.append((_kinds(batch, counts), False))
    return _strongest(rankings, claim, test)


def ranked_score(learner: CrossFit, claim: Claim, test: int) -> float:
    """The same of an event of one of the rankings that an audit would try, but for the slow ones."""
    numbers = learner.plain_numbers
    rankings = [] if numbers is None else [(numbers[1], True)]
    for index in range(len(learner.names)):
        scores = learner.scores(index)
        if scores is not None:
            rankings.append((scores, False))
    return _strongest(rankings, claim, test)


def _strongest(rankings: list[tuple[Any, bool]], claim: Claim, test: int) -> float:
    best = -math.inf
    for scores, tails in rankings:
        rates = HitRates.of(scores, claim.directional, (test, test), tails=tails)
        best = max(best, rates.strongest(claim, 1.0).z / rates.noise)
    return best


def _combined(batch: Batch) -> tuple[Any, Any]:
    """All numbers at once, by the linear combination that tells the other half of the draws apart."""
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


def _kinds(batch: Batch, counts: Any) -> tuple[Any, Any]:
    """Kinds of output by how much likelier they are on one side; each draw by the others if many."""
    own = 1.0 if counts.shape[1] > _FEW else 0.0
    p, q = (counts + 0.5).astype(float)
    return (
        np.log(np.maximum(p - own, 0.5) / q)[_codes(batch.p)],
        np.log(p / np.maximum(q - own, 0.5))[_codes(batch.q)],
    )
