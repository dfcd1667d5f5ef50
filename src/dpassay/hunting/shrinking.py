"""Shrinking: a pair is replaced by simpler ones that break the mechanism about as badly.

Greedy, as in property-based testing (MacIver & Donaldson, doi:10.4230/LIPIcs.ECOOP.2020.13): the first
simpler pair on which fresh draws predict most of the bound replaces the one before. What is simpler, and
in which order it is tried: `rows`, `queries` and `values`. Coupled draws say which are worth drawing on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpassay.hunting.screening import Effort, Screening, Trial
from dpassay.hunting.search import Log

#: The share of the budget that is spent when shrinking ends.
SHRINK = 0.75
#: Draws a side of a trial, tried in turn until they show what the search saw.
_SIZES = (200, 400, 1000, 3000, 10_000)
#: The part of the bound that a simpler pair must keep; one that shows some of it gets another trial.
_KEPT, _SOME = 0.8, 0.2
#: Trials at most.
_TRIALS = 150


@dataclass
class Shrinking:
    """Replaces a pair by simpler ones that break the mechanism about as badly."""

    screening: Screening
    log: Log
    coupled: int = 0  # coupled draws a side that say which pairs to draw on; 0: there are none
    _least: float = 0.0  # the coupled difference that simpler pairs must have

    def run(self, found: Trial) -> Trial:
        """The simplest pair that was found; the one given if none is as good."""
        seen = self._reference(found)
        if seen is None:
            return found
        if self.coupled:
            own = self._difference(found.candidate, found.failed)
            self._least = self.screening.space.alike * own
        chain, least = [seen], _KEPT * min(seen.bound, found.bound)
        tried = {found.candidate.key}
        last = self.log.trials + _TRIALS
        while (better := self._step(chain[-1], least, tried, last)) is not None:
            chain.append(better)
        return self._confirmed(found, chain[1:])

    def _trial(self, found: Trial, candidate: Any, n: int) -> Trial:
        """A trial of the effort that showed what was found."""
        failing = found.failed
        return self.log.add(self.screening.trial(found.effort, candidate, n, failing=failing))

    def _difference(self, candidate: Any, failing: bool) -> float:
        """How far apart coupled outputs on a pair are; 0 once the budget is spent."""
        if not self.screening.budget.affords(2 * self.coupled, SHRINK, Effort.COUPLED):
            return 0.0
        trial = self.screening.trial(Effort.COUPLED, candidate, self.coupled, failing=failing)
        return 0.0 if trial.rejected else max(trial.rank[1], 0.0)

    def _reference(self, found: Trial) -> Trial | None:
        """A trial with as few draws as show that the pair breaks the claim; None if none do."""
        for n in _SIZES:
            if not self.screening.budget.affords(2 * n, SHRINK):
                return None
            seen = self._trial(found, found.candidate, n)
            if seen.conclusive and seen.bound >= _KEPT * found.bound:
                return seen
        return None

    def _step(self, found: Trial, least: float, tried: set[str], last: int) -> Trial | None:
        """The first simpler pair that does as well."""
        for simpler in self.screening.space.simpler(found.candidate):
            if simpler.key in tried or (simpler.outside and not found.candidate.outside):
                continue
            tried.add(simpler.key)
            if self._least and self._difference(simpler, found.failed) < self._least:
                continue
            for n in (found.n, 4 * found.n):
                needed = 2 * n + 8 * found.n  # this trial, and one that confirms
                if not self.screening.budget.affords(needed, SHRINK) or self.log.trials >= last:
                    return None
                seen = self._trial(found, simpler, n)
                if seen.conclusive and seen.bound >= least:
                    return replace(seen, n=found.n)
                if seen.bound < _SOME * least:
                    break
        return None

    def _confirmed(self, found: Trial, chain: list[Trial]) -> Trial:
        """The simplest of a chain that more draws confirm: each was chosen for what its draws showed."""
        while chain and self.screening.budget.affords(8 * chain[-1].n, SHRINK):
            again = self._trial(found, chain[-1].candidate, 4 * chain[-1].n)
            if again.conclusive and again.bound >= _KEPT * found.bound:
                return again
            chain = chain[: len(chain) // 2]
        return found
