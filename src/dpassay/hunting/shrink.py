"""The simplest pair that still breaks the mechanism about as badly.

Greedy, as property-based testing does it (MacIver & Donaldson, doi:10.4230/LIPIcs.ECOOP.2020.13): the
first simpler pair on which fresh draws predict most of the bound takes the place of the one before. What
is simpler, and in which order it is tried: `rows`, `queries` and `values`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dpassay.hunting.bench import Bench, Trial
from dpassay.hunting.search import Log

#: The share of the budget that is spent when shrinking ends.
SHRINK = 0.75
#: Draws a side of a look, tried in turn until they show what the search saw.
_SIZES = (200, 400, 1000, 3000)
#: The part of the bound that a simpler pair must keep; one that shows some of it gets another look.
_MOST, _SOME = 0.8, 0.2
#: Looks at most.
_LOOKS = 150


@dataclass
class Shrinking:
    """What shrinking starts from, and what it may not lose."""

    bench: Bench
    log: Log
    _last: int = field(default=0, init=False)

    def run(self, found: Trial) -> Trial:
        """The simplest pair that was found; the one given if none is as good."""
        seen = self._reference(found)
        if seen is None:
            return found
        chain, least = [seen], _MOST * min(seen.bound, found.bound)
        tried = {found.candidate.key}
        self._last = self.log.looks + _LOOKS
        while (better := self._step(chain[-1], least, tried)) is not None:
            chain.append(better)
        return self._confirmed(found, chain[1:])

    def _reference(self, found: Trial) -> Trial | None:
        """A look with as few draws as show that the pair breaks the claim; None if none do."""
        for n in _SIZES:
            if not self.bench.purse.holds(2 * n, SHRINK):
                return None
            seen = self.log.add(self.bench.thorough(found.candidate, n))
            if seen.sure and seen.bound >= _MOST * found.bound:
                return seen
        return None

    def _step(self, found: Trial, least: float, tried: set[str]) -> Trial | None:
        """The first simpler pair that does as well."""
        for simpler in self.bench.ground.simpler(found.candidate):
            if simpler.key in tried or (simpler.outside and not found.candidate.outside):
                continue
            tried.add(simpler.key)
            for n in (found.n, 4 * found.n):
                needed = 2 * n + 8 * found.n  # this look, and one that confirms
                if not self.bench.purse.holds(needed, SHRINK) or self.log.looks >= self._last:
                    return None
                seen = self.log.add(self.bench.thorough(simpler, n, failing=found.failed))
                if seen.sure and seen.bound >= least:
                    return replace(seen, n=found.n)
                if seen.bound < _SOME * least:
                    break
        return None

    def _confirmed(self, found: Trial, chain: list[Trial]) -> Trial:
        """The simplest of a chain that more draws confirm: each was chosen for what its draws showed."""
        while chain and self.bench.purse.holds(8 * chain[-1].n, SHRINK):
            last = chain[-1]
            again = self.log.add(self.bench.thorough(last.candidate, 4 * last.n))
            if again.sure and again.bound >= _MOST * found.bound:
                return again
            chain = chain[: len(chain) // 2]
        return found
