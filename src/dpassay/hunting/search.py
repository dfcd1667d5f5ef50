"""Which pair breaks the mechanism: successive halving over candidates, then candidates like the best.

A round is a successive halving (Jamieson & Talwalkar 2016, arXiv:1502.07943) that keeps a quarter and
gives those four times the draws. The largest of many noisy predictions is mostly noise: every step judges
by draws of its own, and earlier predictions of a pair are dropped. The best of the first step are tried
ahead of the others.

Where the mechanism's randomness can be repeated (`coupling`), the first step compares outputs with common
random numbers, which ranks hundreds of pairs for what a few cost otherwise; others are made of the best
by coordinate ascent on that difference.

Few draws do not show what happens in one output of a hundred. While the budget allows, the next round has
four times the draws of the one before, on the catalogue, the best candidates and others like them: an
easy case costs little, and the last round about as much as all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpassay.errors import MechanismRaised
from dpassay.hunting.coupling import MOST as MOST_DIFFERENT
from dpassay.hunting.result import Family
from dpassay.hunting.screening import FEWEST, Effort, Screening, Trial
from dpassay.results.blindness import far_above

#: The share of the budget that the search may spend; the rest is for shrinking and the verdict.
SEARCH = 0.65
#: Draws a side of the steps of a round, relative to the first.
STEPS = (1, 4, 16, 64)
#: Pairs of the first round at most, the share of the budget that is for it, the part a step keeps.
MOST, FIRST, KEEP = 120, 0.35, 4
#: From this many draws a side on they are scored as an audit does.
_SCORED = 2000
#: Pairs at most that are tried first.
_AHEAD = 3
#: Coupled draws a side, at least and at most, by a share of the budget; the share of it for all of them.
_COUPLED, _COUPLED_PART, _COUPLING = (2, 32), 1 / 2500, 0.2
#: The best so many have this many times the coupled draws before they are compared with each other, as
#: far as this part of the budget allows.
_FINALISTS, MORE, _FINAL = 12, 4, 0.05
#: Changes that are tried in the ascent from a pair.
_ASCENT = 24
#: The share of a small budget that is for screening, and draws a side if they cannot be coupled.
_SMALL, _FEW = 0.45, 10
#: A claim with δ: pairs that it singles out, events that are to be expected on each, and the part of the
#: budget that each may take.
_SINGLED, _EVENTS, _SINGLED_PART = 2, 10, 1 / 20
#: An ε beyond which a claim's δ(ε) is its δ.
_LARGE_EPSILON = 300.0
#: Candidates that others are made of, and how many of each.
_PARENTS, _CHILDREN = 6, 6
#: The catalogue is tried again with so many times the draws, at least, and while that can go on.
_LEAST, _RISE = 2.5, 4.0
#: A round that raises the best bound by less than this part of it was the last, if it is conclusive.
_GAIN = 0.1


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
        if trial.effort is not Effort.COUPLED or key not in self.last:
            self.last[key] = trial
        self.draws[key] = self.draws.get(key, 0) + 2 * trial.n
        self.trials += 1
        self.tell(trial)
        return trial


@dataclass
class Search:
    """The state of a search; `best` holds the trials of the last step of every round, the best first."""

    screening: Screening
    log: Log
    first: int  # draws a side of the first step
    best: list[Trial] = field(default_factory=list)
    screened: dict[str, Trial] = field(default_factory=dict)  # by coupled draws
    most: int = MOST  # pairs of a round, of which a quarter goes on

    def run(self, *, outside: bool, rng: np.random.Generator) -> None:
        """Go on until the budget is spent, or a violation is predicted and no round improves on it."""
        space = self.screening.space
        listed = space.catalogue(rng, outside=outside)
        inside = [one for one in listed if not one.outside]
        beyond = [one for one in listed if one.outside]
        many = int(min(max(FIRST * self.screening.budget.total / self._cost, 4), MOST))
        inside += [space.random(rng) for _ in range(many - len(inside))]
        self.screening.couple(inside)
        if self.screening.budget.total < FEWEST:
            self._few_draws([*inside, *beyond])
            return
        self.most = many
        if self.coupled:  # as many as coupled draws can rank
            many = int(
                max(many, min(_COUPLING * self.screening.budget.total / (4 * self.coupled), MOST))
            )
        self._round([*inside[:many], *beyond[:many]])
        if not self._done:
            self._singled_out(inside)
        catalogue, waiting = (inside + beyond)[: 2 * self.most], inside[many:] + beyond[many:]
        improving = True
        while improving and not self._done:
            before = self._bound
            if self.coupled and self._conclusive:
                self._ahead_of_best(waiting, rng)
                improving = self._bound >= (1 + _GAIN) * before
                continue
            parents = [one.candidate for one in self.best[:_PARENTS]]
            children = self._ascended(rng) if self.coupled else []
            children += [space.mutated(one, rng) for one in parents for _ in range(_CHILDREN)]
            children = [one for one in children if outside or not one.outside]
            again = [*parents, *catalogue, *children[: self.most // 4]]
            if (rise := self._rise(len(again))) >= _LEAST:
                self._enlarged_round(again, int(rise * self.first))
            elif not self._further_round(children, waiting, max(self.most // 2, 2), rng):
                return
            improving = not self._conclusive or self._bound >= (1 + _GAIN) * before

    def _few_draws(self, candidates: Sequence[Any]) -> None:
        """Screen as many as a small budget allows, and leave the rest to the verdict on the best."""
        effort, n = (Effort.COUPLED, self.coupled) if self.coupled else (Effort.QUICK, _FEW)
        many = max(int(_SMALL * self.screening.budget.total / (2 * n)), 2)
        self._keep(self._tried(effort, candidates[:many], n))

    @property
    def coupled(self) -> int:
        """Coupled draws a side of a trial; none if randomness cannot be repeated."""
        if self.screening.coupling is None:
            return 0
        least, most = _COUPLED
        return min(max(int(_COUPLED_PART * self.screening.budget.total), least), most)

    def _singled_out(self, candidates: Sequence[Any]) -> None:
        """Give the pairs that a claim with δ singles out the draws in which δ shows."""
        delta = float(self.screening.claim.delta_at(_LARGE_EPSILON))
        if delta > 0:
            budget = self.screening.budget
            part = min(_SINGLED_PART * budget.total, budget.left(SEARCH) / (4 * _SINGLED))
            n = int(min(_EVENTS / delta, part))
            rare = [one for one in candidates if one.rare][:_SINGLED]
            self._keep(self._tried(Effort.THOROUGH, rare, max(n, self.first)))

    def _ahead_of_best(self, waiting: list[Any], rng: np.random.Generator) -> None:
        """Try pairs whose coupled difference is larger than that of the best, if there are any."""
        self._screen([*waiting[: int(self._room)], self.best[0].candidate])
        self._screen(self._ascended(rng))
        own = self.screened.get(self.best[0].candidate.key)
        least = (1 + _GAIN) * max(own.order[1], 0.0) if own is not None else MOST_DIFFERENT
        known = {one.candidate.key for one in self.best}
        better = [
            one.candidate for one in _ordered(self.screened.values()) if one.order[1] >= least
        ]
        better = [one for one in better if one.key not in known][:_AHEAD]
        self._keep(self._tried(Effort.THOROUGH, better, 16 * self.first))

    def _screen(self, candidates: Iterable[Any]) -> list[Trial]:
        """Coupled draws on those that had none, and more on the best; else independent draws on all."""
        if not self.coupled:
            return self._tried(Effort.QUICK, candidates, self.first)
        fresh = {one.key: one for one in candidates}
        new = [one for key, one in fresh.items() if key not in self.screened]
        self._tried(Effort.COUPLED, new, self.coupled)
        n = MORE * self.coupled
        places = min(int(_FINAL * self.screening.budget.total / (2 * n)), _FINALISTS)
        best = [one.candidate for one in _ordered(self.screened.values())[:places] if one.n < n]
        self._tried(Effort.COUPLED, best, n)
        return [self.screened[key] for key in fresh if key in self.screened]

    @property
    def _room(self) -> float:
        """Pairs that may still be screened with coupled draws."""
        return _COUPLING * self.screening.budget.total / (2 * self.coupled) - len(self.screened)

    def _ascended(self, rng: np.random.Generator) -> list[Any]:
        """Candidates that raise the coupled difference, one change after another from the best."""
        found = []
        for one in _kept(list(self.screened.values()), _PARENTS):
            for _ in range(_ASCENT if one.rank[1] < MOST_DIFFERENT else 0):
                child = self.screening.space.mutated(one.candidate, rng)
                if child.key not in self.screened and not child.outside:
                    tried = self._tried(Effort.COUPLED, [child], self.coupled)
                    one = max([one, *tried], key=lambda trial: trial.order)
            found.append(one.candidate)
        return found

    def _further_round(
        self, children: list[Any], waiting: list[Any], many: int, rng: np.random.Generator
    ) -> bool:
        """A round on new candidates, some taken from `waiting`; False if the budget has none left."""
        if self._affordable < many:
            return False
        children = children[: many * 2 // 3]
        fill = many - len(children)
        if self.coupled:  # all that coupled draws can rank
            fill = max(fill, min(len(waiting), int(self._room)))
        others, waiting[:fill] = waiting[:fill], []
        others += [self.screening.space.random(rng) for _ in range(fill - len(others))]
        self._round([*children, *others])
        return True

    def _rise(self, pairs: int) -> float:
        """How many times the draws the next round may have: all that are left if none could follow."""
        most = self._affordable / pairs
        return min(most, _RISE) if self._conclusive or most >= 3 * _RISE else most

    def _enlarged_round(self, candidates: Sequence[Any], first: int) -> None:
        """A round with more draws; earlier ones count no more, unless they alone are conclusive."""
        held, self.best, self.first = self.best, [], first
        try:
            self._round(candidates)
        finally:  # an interruption loses nothing
            if not self.best or (held and held[0].conclusive and not self._conclusive):
                self._keep(held)

    @property
    def top(self) -> Trial:
        """The best trial."""
        if self.best:
            return self.best[0]
        usable = [one for one in self.log.last.values() if not one.rejected]
        if not usable:
            why = "; ".join(dict.fromkeys(t.rejected for t in self.log.last.values()))
            raise MechanismRaised(
                f"the mechanism failed on every input that was tried: {why[:500]}"
            )
        return max(usable, key=lambda one: (one.n, one.order))

    @property
    def _conclusive(self) -> bool:
        return bool(self.best) and self.best[0].conclusive

    @property
    def _bound(self) -> float:
        return self.best[0].bound if self.best else 0.0

    @property
    def _done(self) -> bool:
        """Whether the predicted bound is so far above the claim that no more is worth finding."""
        return self._conclusive and far_above(self.screening.claim, self._bound)

    @property
    def _cost(self) -> float:
        """The draws of a round, for every pair in it."""
        steps = sum(step * math.pow(KEEP, -k) for k, step in enumerate(STEPS))
        return 2 * self.first * steps

    @property
    def _affordable(self) -> float:
        """Pairs that a round may have, by its cost."""
        return self.screening.budget.left(SEARCH) / self._cost

    def _round(self, candidates: Sequence[Any]) -> None:
        """Screen all with few draws; the best of those inside and outside the space come first."""
        known = {one.candidate.key for one in self.best}
        fresh = {one.key: one for one in candidates if one.key not in known}
        seen = [one for one in _ordered(self._screen(fresh.values())) if not one.rejected]
        ahead = [one for one in seen if not one.candidate.outside][:_AHEAD]
        ahead += [one for one in seen if one.candidate.outside][:_AHEAD]
        for one in ahead:
            self._keep(self._tried(Effort.THOROUGH, [one.candidate], 16 * self.first))
            if self._done:
                return
        others = [one for one in seen if one not in ahead]
        self._halve(_kept(others, min(len(others), self.most) // KEEP))

    def _halve(self, alive: list[Trial]) -> None:
        """Successive halving: keep the best quarter with four times the draws, step by step."""
        for step in STEPS[1:]:
            n = step * self.first
            effort = Effort.QUICK if step == STEPS[1] and n < _SCORED else Effort.THOROUGH
            effort = Effort.COMPLETE if step == STEPS[-1] else effort
            found = self._tried(effort, (one.candidate for one in alive), n)
            if not found:
                break
            alive = _kept(found)
        self._keep([one for one in alive if one.n > STEPS[1] * self.first])

    def _tried(self, effort: Effort, candidates: Iterable[Any], n: int) -> list[Trial]:
        """Trials of the candidates while the budget lasts."""
        found = []
        for candidate in candidates:
            if not self.screening.budget.affords(2 * n, SEARCH, effort):
                break
            trial = self.log.add(self.screening.trial(effort, candidate, n))
            found.append(trial)
            if effort is Effort.COUPLED:
                self.screened[candidate.key] = trial
        return found

    def _keep(self, found: Sequence[Trial]) -> None:
        """Add the trials at the end of a round to those of earlier rounds.

        A conclusive one within the space is preferred to any outside.
        """
        self.best = sorted(
            [*self.best, *(one for one in found if not one.rejected)],
            key=lambda one: (
                one.conclusive and not one.candidate.outside,
                one.conclusive,
                one.order,
            ),
            reverse=True,
        )


def _ordered(trials: Iterable[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda one: one.order, reverse=True)


def _kept(trials: Sequence[Trial], places: int = 0) -> list[Trial]:
    """The best quarter, or so many; a third of the places goes to entries that have none yet."""
    ranked = [one for one in _ordered(trials) if not one.rejected]
    places = max(places or len(ranked) // KEEP, min(2, len(ranked)))
    kept = ranked[: places - places // 3]
    names = {one.candidate.name for one in kept}
    for one in ranked[len(kept) :]:
        if len(kept) < places and one.candidate.name not in names:
            kept.append(one)
            names.add(one.candidate.name)
    return kept
