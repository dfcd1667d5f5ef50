"""Which pair breaks the mechanism: many with few draws, few with many, then others like the best.

A round is a successive halving (Jamieson & Talwalkar 2016, arXiv:1502.07943) that keeps a quarter and
gives those four times the draws. The largest of many noisy predictions is mostly noise: every step
judges by draws of its own, and what a pair promised before counts no more. Pairs whose outputs a first
look tells apart go to the head of the queue.

What one output in a hundred shows, few draws do not. While the budget allows, the next round has four
times the draws of the one before, on the catalogue, the best and others like them: an easy case costs
little, and the last round about as much as all others.

Where pairs are alike in how their inputs differ, what few draws say of one says something of the others
too: its score is drawn towards the mean of its kin, the more the less they differ beyond noise (James &
Stein 1961), but not by much (Efron & Morris, Limiting the risk of Bayes and empirical Bayes estimators,
JASA 1971 and 1972).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpassay.errors import MechanismRaised
from dpassay.hunting.screening import Screening, Trial, far_apart
from dpassay.results.blindness import far_above

#: The share of the budget that the search may spend; the rest is for shrinking and the verdict.
SEARCH = 0.65
#: Draws a side of a first look, and of the steps of a round relative to the first.
GLANCE, STEPS = 20, (1, 4, 16, 64)
#: Pairs of the first round at most, the share of the budget that is for it, the part a step keeps.
MOST, FIRST, KEEP = 120, 0.35, 4
#: Pairs at most that go to the head of the queue.
_JUMP = 3
#: Those that others are made of, and how many of each.
_PARENTS, _CHILDREN = 6, 6
#: A catalogue is gone through again with so many times the draws, at least, and while that can go on.
_LEAST, _RISE = 2.5, 4.0
#: A round that raises the best bound by less than this part of it was the last, if it is sure to refute.
_GAIN = 0.1
#: The kin of a pair move its score by so much at most: a leak on one input alone is not to drown in them.
_PULL = 1.5


@dataclass
class Log:
    """Every pair that was looked at, with the last look at it; and who listens."""

    tell: Callable[[Trial], None]
    trials: dict[str, Trial] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    def add(self, trial: Trial) -> Trial:
        """Note a look."""
        key = trial.candidate.key
        self.trials[key] = trial
        self.spent[key] = self.spent.get(key, 0) + 2 * trial.n
        self.looks += 1
        self.tell(trial)
        return trial


@dataclass
class Search:
    """The state of a hunt; `best` holds the pairs that came to the last step, the best first."""

    bench: Screening
    log: Log
    first: int  # draws a side of the first step
    best: list[Trial] = field(default_factory=list)

    def run(self, *, outside: bool, rng: np.random.Generator) -> None:
        """Go on until the budget is spent, or a refutation is sure and no round improves on it."""
        ground = self.bench.ground
        listed = ground.catalogue(rng, outside=outside)
        inside = [one for one in listed if not one.outside]
        beyond = [one for one in listed if one.outside]
        many = int(min(max(FIRST * self.bench.purse.budget / self._cost, 4), MOST))
        inside += [ground.random(rng) for _ in range(many - len(inside))]
        self._round(inside[:many])
        if beyond and not self._sure:
            self._round(beyond[:many])
        waiting, later = inside[many:] + beyond[many:], max(many // 2, 2)
        while not self._done:
            before = self._bound
            parents = [one.candidate for one in self.best[:_PARENTS]]
            children = [ground.mutated(one, rng) for one in parents for _ in range(_CHILDREN)]
            if not outside:
                children = [one for one in children if not one.outside]
            again = [*parents, *(inside + beyond)[: 2 * many], *children[: many // 4]]
            if (rise := self._rise(len(again))) >= _LEAST:
                self._climb(again, int(rise * self.first))
            elif self._affordable >= later:
                children = children[: later * 2 // 3]
                fill = later - len(children)
                others, waiting = waiting[:fill], waiting[fill:]
                others += [ground.random(rng) for _ in range(fill - len(others))]
                self._round([*children, *others])
            else:
                return
            if self._sure and self._bound < (1 + _GAIN) * before:
                return

    def _rise(self, pairs: int) -> float:
        """How many times the draws the next round may have: all that are left if none could follow."""
        most = self._affordable / pairs
        return min(most, _RISE) if self._sure or most >= 3 * _RISE else most

    def _climb(self, candidates: Sequence[Any], first: int) -> None:
        """A round with more draws than those before, which count no more unless they alone are sure."""
        held, self.best, self.first = self.best, [], first
        try:
            self._round(candidates)
        finally:  # an interruption loses nothing
            if not self.best or (held and held[0].sure and not self._sure):
                self._keep(held)

    @property
    def top(self) -> Trial:
        """The most promising pair."""
        if self.best:
            return self.best[0]
        usable = [one for one in self.log.trials.values() if not one.rejected]
        if not usable:
            why = "; ".join(dict.fromkeys(t.rejected for t in self.log.trials.values()))
            raise MechanismRaised(
                f"the mechanism failed on every input that was tried: {why[:500]}"
            )
        return max(usable, key=lambda one: (one.n, one.order))

    @property
    def _sure(self) -> bool:
        return bool(self.best) and self.best[0].sure

    @property
    def _bound(self) -> float:
        return self.best[0].bound if self.best else 0.0

    @property
    def _done(self) -> bool:
        """Whether there is nothing left to find out."""
        return self._sure and far_above(self.bench.claim, self._bound)

    @property
    def _cost(self) -> float:
        """The draws of a round, for every pair in it."""
        steps = sum(step * math.pow(KEEP, -k) for k, step in enumerate(STEPS))
        return 2 * (GLANCE + self.first * steps)

    @property
    def _affordable(self) -> float:
        """Pairs that a round may have, by its cost."""
        return self.bench.purse.left(SEARCH) / self._cost

    def _round(self, candidates: Sequence[Any]) -> None:
        """Glance at all; those told apart first, and if they suffice, nothing else."""
        known = {one.candidate.key for one in self.best}
        fresh = {one.key: one for one in candidates if one.key not in known}
        glanced = self._looks(self.bench.apart, fresh.values(), GLANCE)
        jumping = [one for one in _ordered(glanced) if far_apart(one.rank[1])][:_JUMP]
        self._keep(
            self._looks(self.bench.thorough, (one.candidate for one in jumping), 16 * self.first)
        )
        if self._done:
            return
        alive = [one for one in glanced if not one.rejected and one not in jumping]
        for step in STEPS:
            quick = step in STEPS[:2]
            look = self.bench.quick if quick else self.bench.thorough
            found = self._looks(look, (one.candidate for one in alive), step * self.first)
            if not found:
                break
            alive = _kept(pooled(found) if quick else found)
        self._keep([one for one in alive if one.n > STEPS[1] * self.first])

    def _looks(
        self, look: Callable[[Any, int], Trial], candidates: Iterable[Any], n: int
    ) -> list[Trial]:
        """Look at candidates while the budget lasts."""
        found = []
        for candidate in candidates:
            if not self.bench.purse.holds(2 * n, SEARCH, look.__name__):
                break
            found.append(self.log.add(look(candidate, n)))
        return found

    def _keep(self, found: Sequence[Trial]) -> None:
        """Those that came to the end of a round, among those that did before.

        One within the space that is sure to refute the claim is preferred to any outside.
        """
        self.best = sorted(
            [*self.best, *(one for one in found if not one.rejected)],
            key=lambda one: (one.sure and not one.candidate.outside, one.sure, one.order),
            reverse=True,
        )


def _ordered(trials: Iterable[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda one: one.order, reverse=True)


def pooled(trials: Sequence[Trial]) -> list[Trial]:
    """The trials with scores drawn towards the mean of their kin; those of a kind of its own keep theirs.

    A score is a test statistic, whose noise has a variance of one at most: if scores vary by v around the
    means of their kin, 1/v of that is noise.
    """
    kin: dict[Any, list[float]] = defaultdict(list)
    for one in trials:
        if not one.rejected and math.isfinite(one.rank[1]):
            kin[one.candidate.kin].append(one.rank[1])
    several = {key: np.array(scores) for key, scores in kin.items() if key and len(scores) > 1}
    freedom = sum(scores.size - 1 for scores in several.values())
    spread = sum(float(np.sum((scores - scores.mean()) ** 2)) for scores in several.values())
    own = max(0.0, 1 - freedom / spread) if spread > 0 else 0.0
    found = []
    for one in trials:
        scores = several.get(one.candidate.kin)
        if scores is not None and not one.rejected and math.isfinite(one.rank[1]):
            pull = (1 - own) * (float(scores.mean()) - one.rank[1])
            pull = min(max(pull, -_PULL), _PULL)
            one = replace(one, rank=(one.rank[0], one.rank[1] + pull))
        found.append(one)
    return found


def _kept(trials: Sequence[Trial]) -> list[Trial]:
    """The best quarter; a third of the places goes to kinds of pairs that have none yet."""
    ranked = [one for one in _ordered(trials) if not one.rejected]
    places = max(len(ranked) // KEEP, min(2, len(ranked)))
    kept = ranked[: places - places // 3]
    kinds = {one.candidate.name for one in kept}
    for one in ranked[len(kept) :]:
        if len(kept) < places and one.candidate.name not in kinds:
            kept.append(one)
            kinds.add(one.candidate.name)
    return kept
