"""Which pair breaks the mechanism: successive halving over candidates, then candidates like the best.

A round is a successive halving (Jamieson & Talwalkar 2016, arXiv:1502.07943) that keeps a quarter and
gives those four times the draws. The largest of many noisy predictions is mostly noise: every step judges
by draws of its own, and earlier predictions of a pair are dropped. The best of the first step are tried
ahead of the others.

Where the mechanism's randomness can be repeated, the first step compares outputs with common random
numbers (`common_random_numbers`), which ranks hundreds of pairs for what a few cost otherwise; others are
made of the best by coordinate ascent on that difference.

Few draws do not show what happens in one output of a hundred: all steps have draws in proportion to the
budget.

The pair found is shrunk as in property-based testing (MacIver & Donaldson,
doi:10.4230/LIPIcs.ECOOP.2020.13): the first simpler pair on which fresh draws predict most of the bound
replaces the one before. What is simpler, and in which order it is tried: `rows`, `queries` and `values`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpassay.errors import MechanismRaised
from dpassay.hunting.common_random_numbers import MOST as MOST_DIFFERENT
from dpassay.hunting.screening import FEWEST, Effort, Log, Screening, Trial
from dpassay.results.blindness import far_above

#: The share of the budget that the search may spend; the rest is for shrinking and the verdict.
SEARCH = 0.65
#: Draws a side of the first step of a round (a part of the budget, at least), and others relative to it.
_FIRST, _FEWEST_DRAWS, STEPS = 1 / 4000, 30, (1, 4, 16, 64)
#: Pairs of the first round at most, the share of the budget that is for it, the part a step keeps.
MOST, FIRST, KEEP = 120, 0.35, 4
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
#: A round that raises the best bound by less than this part of it was the last, if it is conclusive.
_GAIN = 0.1
#: The share of the budget that is spent when shrinking ends.
SHRINK = 0.75
#: Draws a side of a trial, tried in turn until they show what the search saw.
_SIZES = (200, 400, 1000, 3000, 10_000)
#: The part of the bound that a simpler pair must keep; one that shows some of it gets another trial.
_KEPT, _SOME = 0.8, 0.2
#: Trials of simpler pairs at most.
_TRIALS = 150


@dataclass
class Search:
    """The state of a search; `best` holds the trials of the last step of every round, the best first."""

    screening: Screening
    log: Log
    best: list[Trial] = field(default_factory=list)
    screened: dict[str, Trial] = field(default_factory=dict)  # by coupled draws
    most: int = MOST  # pairs of a round, of which a quarter goes on

    def run(self, *, outside: bool) -> None:
        """Go on until the budget is spent, or a violation is predicted and no round improves on it."""
        space, total = self.screening.space, self.screening.budget.total
        listed = space.catalogue(outside=outside)
        inside = [one for one in listed if not one.outside]
        beyond = [one for one in listed if one.outside]
        many = int(min(max(FIRST * total / self._cost, 4), MOST))
        inside += [space.random() for _ in range(many - len(inside))]
        self.screening.couple(inside)
        if total < FEWEST:  # screen as many as it allows, and leave the rest to the verdict
            effort, n = (Effort.COUPLED, self.coupled) if self.coupled else (Effort.THOROUGH, _FEW)
            few = max(int(_SMALL * total / (2 * n)), 2)
            self._keep(self._tried(effort, [*inside, *beyond][:few], n))
            return
        self.most = many
        if self.coupled:  # as many as coupled draws can rank
            many = int(max(many, min(_COUPLING * total / (4 * self.coupled), MOST)))
        self._round([*inside[:many], *beyond[:many]])
        if not self._done:
            self._singled_out(inside)
        waiting, improving = inside[many:] + beyond[many:], True
        while improving and not self._done:
            before, spent = self._bound, self.screening.budget.spent
            if self.coupled and self._conclusive:
                self._ahead_of_best(waiting)
            elif not self._further_round(waiting, outside):
                return
            if self.screening.budget.spent == spent:  # a space of few pairs: all of them were tried
                return
            improving = not self._conclusive or self._bound >= (1 + _GAIN) * before

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

    def _ahead_of_best(self, waiting: list[Any]) -> None:
        """Try pairs whose coupled difference is larger than that of the best, if there are any."""
        self._screen([*waiting[: int(self._room)], self.best[0].candidate])
        self._screen(self._ascended())
        own = self.screened.get(self.best[0].candidate.key)
        least = (1 + _GAIN) * max(own.rank[1], 0.0) if own is not None else MOST_DIFFERENT
        known = {one.candidate.key for one in self.best}
        fresh = [one for key, one in self.screened.items() if key not in known]
        better = [one.candidate for one in _ordered(fresh) if one.rank[1] >= least][:_AHEAD]
        self._keep(self._tried(Effort.THOROUGH, better, 16 * self.first))

    def _screen(self, candidates: Iterable[Any]) -> list[Trial]:
        """Coupled draws on those that had none, and more on the best; else independent draws on all."""
        if not self.coupled:
            return self._tried(Effort.THOROUGH, candidates, self.first)
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

    def _ascended(self) -> list[Any]:
        """Candidates that raise the coupled difference, one change after another from the best."""
        found = []
        for one in _kept(list(self.screened.values()), _PARENTS):
            for _ in range(_ASCENT if one.rank[1] < MOST_DIFFERENT else 0):
                child = self.screening.space.mutated(one.candidate)
                if child.key not in self.screened and not child.outside:
                    tried = self._tried(Effort.COUPLED, [child], self.coupled)
                    one = max([one, *tried], key=lambda trial: trial.rank)
            found.append(one.candidate)
        return found

    def _further_round(self, waiting: list[Any], outside: bool) -> bool:
        """A round on others like the best and some of `waiting`; False if the budget has none left."""
        space, many = self.screening.space, max(self.most // 2, 2)
        children = self._ascended() if self.coupled else []
        children += [
            space.mutated(one.candidate) for one in self.best[:_PARENTS] for _ in range(_CHILDREN)
        ]
        if self.screening.budget.left(SEARCH) < many * self._cost:
            return False
        children = [one for one in children if outside or not one.outside][: many * 2 // 3]
        fill = many - len(children)
        if self.coupled:  # all that coupled draws can rank
            fill = max(fill, min(len(waiting), int(self._room)))
        others, waiting[:fill] = waiting[:fill], []
        others += [space.random() for _ in range(fill - len(others))]
        self._round([*children, *others])
        return True

    @property
    def top(self) -> Trial:
        """The best trial."""
        if self.best:
            return self.best[0]
        usable = [one for one in self.log.last.values() if not one.rejected]
        if not usable:
            why = "; ".join(dict.fromkeys(t.rejected for t in self.log.last.values()))
            if "list indices must be integers" in why:  # rows of a table, read as a data frame
                why = f'{why[:500]}; rows are a list of dictionaries: convert="pandas" makes frames'
            raise MechanismRaised(
                f"the mechanism failed on every input that was tried: {why[:600]}"
            )
        return max(usable, key=lambda one: (one.n, one.rank))

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
    def first(self) -> int:
        """Draws a side of the first step."""
        return max(int(_FIRST * self.screening.budget.total), _FEWEST_DRAWS)

    @property
    def _cost(self) -> float:
        """The draws of a round, for every pair in it."""
        steps = sum(step * math.pow(KEEP, -k) for k, step in enumerate(STEPS))
        return 2 * self.first * steps

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
            effort = Effort.COMPLETE if step == STEPS[-1] else Effort.THOROUGH
            found = self._tried(effort, (one.candidate for one in alive), n)
            if not found:
                break
            alive = _kept(found)
        self._keep([one for one in alive if one.n > STEPS[1] * self.first])

    def _tried(self, effort: Effort, candidates: Iterable[Any], n: int) -> list[Trial]:
        """Trials of the candidates while the budget lasts."""
        found = []
        for candidate in candidates:
            if not self.screening.budget.affords(2 * n, SEARCH):
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
                one.rank,
            ),
            reverse=True,
        )

    # --- shrinking

    def shrunk(self, found: Trial) -> Trial:
        """The simplest pair that breaks the mechanism about as badly; the one given if there is none."""
        seen = self._reference(found)
        if seen is None:
            return found
        apart = 0.0  # without coupled draws, the bound alone decides
        if self.coupled:
            alike = self.screening.space.alike
            apart = alike * self._difference(found.candidate, found.failed)
        chain, least = [seen], _KEPT * min(seen.bound, found.bound)
        tried = {found.candidate.key}
        last = self.log.trials + _TRIALS
        while (better := self._simplified(chain[-1], least, apart, tried, last)) is not None:
            chain.append(better)
        return self._confirmed(found, chain[1:])

    def _like(self, found: Trial, candidate: Any, n: int) -> Trial:
        """A trial of the effort that showed what was found."""
        trial = self.screening.trial(found.effort, candidate, n, failing=found.failed)
        return self.log.add(trial)

    def _difference(self, candidate: Any, failing: bool) -> float:
        """How far apart coupled outputs on a pair are; 0 once the budget is spent."""
        n = MORE * self.coupled
        if not self.screening.budget.affords(2 * n, SHRINK):
            return 0.0
        trial = self.screening.trial(Effort.COUPLED, candidate, n, failing=failing)
        return max(trial.rank[1], 0.0)

    def _reference(self, found: Trial) -> Trial | None:
        """A trial with as few draws as show that the pair breaks the claim; None if none do."""
        for n in _SIZES:
            if not self.screening.budget.affords(2 * n, SHRINK):
                return None
            seen = self._like(found, found.candidate, n)
            if seen.conclusive and seen.bound >= _KEPT * found.bound:
                return seen
        return None

    def _simplified(
        self, found: Trial, least: float, apart: float, tried: set[str], last: int
    ) -> Trial | None:
        """The first simpler pair with this bound and this coupled difference at least."""
        for simpler in self.screening.space.simpler(found.candidate):
            if simpler.key in tried or (simpler.outside and not found.candidate.outside):
                continue
            tried.add(simpler.key)
            if apart and self._difference(simpler, found.failed) < apart:
                continue
            for n in (found.n, 4 * found.n):
                needed = 2 * n + 8 * found.n  # this trial, and one that confirms
                affordable = self.screening.budget.affords(needed, SHRINK)
                if not affordable or self.log.trials >= last:
                    return None
                seen = self._like(found, simpler, n)
                if seen.conclusive and seen.bound >= least:
                    return replace(seen, n=found.n)
                if seen.bound < _SOME * least:
                    break
        return None

    def _confirmed(self, found: Trial, chain: list[Trial]) -> Trial:
        """The simplest of a chain that more draws confirm: each was chosen for what its draws showed."""
        while chain and self.screening.budget.affords(8 * chain[-1].n, SHRINK):
            again = self._like(found, chain[-1].candidate, 4 * chain[-1].n)
            if again.conclusive and again.bound >= _KEPT * found.bound:
                return again
            chain = chain[: len(chain) // 2]
        return found


def _ordered(trials: Iterable[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda one: one.rank, reverse=True)


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
