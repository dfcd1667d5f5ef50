"""The hunt for the inputs on which a mechanism breaks its claim.

The simplest pair that still breaks the mechanism about as badly.

Greedy, as property-based testing does it (MacIver & Donaldson, doi:10.4230/LIPIcs.ECOOP.2020.13): the
first simpler pair on which fresh draws predict most of the bound takes the place of the one before. What
is simpler, and in which order it is tried: `rows`, `queries` and `values`.
"""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dpassay import validation as checks
from dpassay.auditing.audits import audit, check_conclusive
from dpassay.blackbox.inputs import Space, as_space
from dpassay.blackbox.mechanism import Mechanism, check_mechanism, with_features
from dpassay.errors import InvalidInput, MechanismError, NotEnoughDraws
from dpassay.hunting.queries import NORMS, Queries
from dpassay.hunting.result import Hunt, Tried
from dpassay.hunting.rows import Records
from dpassay.hunting.schema import CandidateSpace, Shape, shape_of
from dpassay.hunting.screening import DrawBudget, Screening, Trial
from dpassay.hunting.search import Log, Search
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.pairs import Relation, as_relation
from dpassay.results.rounding import number
from dpassay.results.verdict import Verdict
from dpassay.sampling.budget import Clock
from dpassay.sampling.draw import Sampling, Seed, as_sampling, seed_of, stream
from dpassay.sampling.progress import Whole
from dpassay.sampling.samples import Live

__all__ = ["Hunt", "Tried", "hunt"]


#: Draws a side of the first step, as a part of the budget and at least and at most.
_STEP, _STEPS = 1 / 4000, (30, 100)
#: The part of the draws of a verdict that test, as `audit` shares them out.
_TEST = 0.75
#: The purpose of the randomness that makes inputs; the draws on pairs have other addresses.
_INPUTS = 1 << 22
#: The fewest draws of a hunt; with a time budget the most, and the part of it that drawing may take.
LEAST, _MOST, _DRAWING = 5000, 20_000_000, 0.8
#: Pairs on which a time budget is measured out.
_PILOTS = 2
#: The part of a time budget that the verdict has at least.
_VERDICT = 0.1
#: Draws a side of the verdict at least.
_SMALL = 1000
_RELATIONS = {
    Relation.ADD_REMOVE,
    Relation.REPLACE_ONE,
    Relation.EDIT_CELL,
    Relation.ONE_USER,
    Relation.SENSITIVITY,
}


def hunt(
    mechanism: Any,
    space: Any,
    claim: Claim | str,
    *,
    budget: int = 400_000,
    seconds: float | None = None,
    confidence: float = 0.95,
    relation: Relation | str = "replace",
    user: str | None = None,
    sensitivity: float = 1.0,
    norm: str = "each",
    outside: bool = False,
    failing: str = "leak",
    loss: Any = "auto",
    features: Any = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Hunt:
    """Find neighbouring inputs on which a mechanism breaks its claim, shrink them, and audit them.

    Many pairs are tried with few draws, few with many, and others like the best; all of them again with
    more draws, which show what is rare, if the budget is large. The one found is shrunk to the simplest
    that breaks the claim about as badly. The verdict is an audit of that pair on fresh
    draws: it calls a mechanism that keeps its claim a violation with probability 1 − confidence at most,
    however many pairs were tried.

    space        what inputs look like: one of `dpassay.inputs`, or a Hypothesis strategy
    claim        a claim or its text, such as "eps=1, delta=1e-5"
    budget       draws over all pairs and both sides
    seconds      time to spend, in place of a budget: a pilot measures the mechanism, and says before the
                 hunt if that is too little. The same seed gives the same hunt with a budget only
    relation     what makes inputs neighbours: "replace" or "add_remove" (a row), "edit" (a cell),
                 "user" (all rows of one, named by the column `user`), "query" (answers that differ by
                 `sensitivity` at most: "each", in "l1" or in "l2", which is the `norm`)
    outside      also try NaN, infinities and values beyond the bounds of the space
    failing      what an exception or a time-out is. "leak": an outcome inside the space, and outside it a
                 refusal that is no leak; "outcome": an outcome everywhere; "ignore": never one
    loss         what ranks the outputs, as for `audit`
    features     functions of one output, as for `audit`

    >>> import dpassay as dp, numpy as np
    >>> def clamped_mean(data, size, rng):  # forgets that the sum is not what is clamped
    ...     total = min(max(sum(data), 0.0), 1.0 * len(data))
    ...     return np.round(total / len(data) + rng.laplace(scale=1 / len(data), size=size), 6)
    >>> found = dp.hunt(clamped_mean, dp.inputs.Reals(-100, 100, length=5), "eps=1", budget=40_000, rng=0)
    >>> found.violated, found.verdict.lower_bound > 2
    (True, True)
    """
    asked = as_claim(claim)
    checks.whole("budget", budget, at_least=LEAST)
    gamma = 1 - checks.probability("confidence", confidence)
    checks.one_of("failing", failing, ("leak", "outcome", "ignore"))
    checks.flag("outside", outside)
    box, seed = check_mechanism(with_features(mechanism, features)), seed_of(rng)
    ground = _ground(as_space(space), relation, user, sensitivity, norm, seed)
    how = as_sampling(sampling)
    purse = DrawBudget(int(budget))
    if seconds is not None:
        clock = Clock(checks.real("seconds", seconds, above=0.0))
        purse = _purse(box, ground, clock, seed, how)
    planned = int((1 - SHRINK) * purse.budget / 2)
    test = int(_TEST * planned)
    check_conclusive(asked, (test, test), gamma)
    bench = Screening(box, ground, asked, test, gamma, loss, failing, seed, how, purse)
    with Whole(purse.budget, "hunting", how.progress, sides=2) as bar:
        search, top, notes = _searched(bench, bar, outside, seed)
        verdict = _verdict(bench, bar, top, loss, planned if top.sure else None, confidence)
    table = _table(search.log, top)
    if not verdict.violated:
        notes += _passed_over(table)
    return Hunt(
        verdict=verdict,
        pair=top.pair,
        name=top.candidate.name,
        outside=top.candidate.outside,
        log=table,
        tried=len(search.log.trials),
        draws=purse.spent,
        notes=tuple(notes),
    )


def _searched(
    bench: Screening, bar: Whole, outside: bool, seed: int
) -> tuple[Search, Trial, list[str]]:
    """The pair to test, shrunk; an interruption ends the search and not the hunt."""
    notes: list[str] = []
    best = [0.0]

    def tell(trial: Trial) -> None:
        if trial.bound > best[0]:
            best[0] = trial.bound
            bar.label = f"hunting, {bench.claim.symbol} ≥ {number(best[0])} predicted at best"
        bar.advance(bench.purse.spent - bar.done)

    first = min(max(int(_STEP * bench.purse.budget), _STEPS[0]), _STEPS[1])
    search = Search(bench, Log(tell), first)
    try:
        search.run(outside=outside, rng=stream(seed, _INPUTS))
        top = search.top
        if top.sure:
            top = Shrinking(bench, search.log).run(top)
    except KeyboardInterrupt:
        if not search.log.trials:
            raise
        notes.append("interrupted: the best pair until then was tested, and not shrunk in full")
        print(
            "dpassay: the search was interrupted; now the verdict on the best pair so far (Ctrl-C "
            "again gives up)",
            file=sys.stderr,
        )
        top = search.top
    refused = [one.rejected for one in search.log.trials.values() if one.rejected]
    if refused:
        notes.append(
            f"{len(refused)} pairs were refused, which is not held against it; the first: "
            f"{refused[0][:200]}"
        )
    return search, top, notes


def _verdict(
    bench: Screening, bar: Whole, top: Trial, loss: Any, planned: int | None, confidence: float
) -> Verdict:
    """The audit of one pair on streams that no look has: the draws kept for it, or all that is left."""
    purse = bench.purse
    left = max((purse.budget - purse.spent) // 2, _SMALL)
    n = left if planned is None else min(planned, left)
    bar.say("learning", 2 * n)
    how = bench.sampling
    audited = partial(
        audit,
        bench.mechanism,
        top.pair,
        bench.claim,
        confidence=confidence,
        loss=loss,
        rng=bench.seed,
        sampling=replace(how, on_error="outcome") if top.failed else how,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow and the like, on hostile inputs
        try:
            found = audited(n=n) if purse.clock is None else _in_time(audited, purse.clock)
        except MechanismError as error:
            error.add_note(
                "it failed in the last draws of a hunt and never before; to count that as an output, "
                'hunt again with sampling=Sampling(on_error="outcome")'
            )
            raise
    purse.spent += sum(found.about.n or ())
    return found


def _in_time(audited: Callable[..., Any], clock: Clock) -> Any:
    """The audit in the time that is left; if learning alone takes longer than that, a small one."""
    try:
        return audited(seconds=max(clock.left, _VERDICT * clock.seconds))
    except NotEnoughDraws:
        return audited(n=_SMALL)


def _table(log: Log, top: Trial) -> tuple[Tried, ...]:
    """What was tried, the most promising first."""
    rows = []
    for key, trial in log.trials.items():
        looked = trial.rank[0] > 0 or trial.bound > 0 or trial.sure
        if key == top.candidate.key:
            said = "tested"
        elif trial.rejected:
            said = f"refused: {trial.rejected}"
        else:
            said = "a violation predicted" if trial.sure else "left behind"
        if trial.failed:
            said += "; failures are outputs"
        rows.append(
            Tried(
                name=trial.pair.name,
                pair=str(replace(trial.pair, name="")),
                draws=log.spent[key],
                bound=trial.bound if looked else None,
                outcome=said,
            )
        )
    order = {"t": 0, "a": 1, "l": 2, "r": 3}
    return tuple(sorted(rows, key=lambda row: (order[row.outcome[0]], -row.draws)))


def _passed_over(table: Sequence[Tried]) -> list[str]:
    """What the looks at pairs that were left behind could hardly see; the verdict is about one pair."""
    others = sorted(row.draws // 2 for row in table if row.outcome == "left behind")
    if not others:
        return []
    middle = others[len(others) // 2]
    return [  # an event of probability 3/n is missed by n draws with probability e⁻³
        f"the verdict is about this pair; {len(others)} others had about {middle:,} draws a side each, "
        f"in which what one output in {max(middle // 3, 1):,} or fewer shows is easily missed"
    ]


# --- borders


def _ground(
    space: Space, relation: Any, user: str | None, sensitivity: float, norm: str, seed: int
) -> CandidateSpace:
    """The space under the relation."""
    kind = as_relation(relation)
    shape = shape_of(space, seed)
    if kind not in _RELATIONS:
        allowed = '"replace", "add_remove", "edit", "user" or "query"'
        raise InvalidInput(f"relation must be {allowed} for a hunt, got {checks.shown(relation)}")
    if kind is Relation.SENSITIVITY:
        checks.one_of("norm", norm, NORMS)
        return Queries(shape, checks.real("sensitivity", sensitivity, above=0.0), norm)
    if (user is not None) != (kind is Relation.ONE_USER):
        raise InvalidInput(
            'relation="user" and user="the column that says whose a row is" go together'
        )
    return Records(shape, kind, _user(shape, user))


def _user(shape: Shape, user: str | None) -> int | None:
    if user is None:
        return None
    if user not in shape.names or len(shape.names) < 2:
        raise InvalidInput(
            f"user must name a column of a table, of which there are {checks.shown(shape.names)}; got "
            f"{user!r}"
        )
    return shape.names.index(user)


def _purse(
    mechanism: Mechanism, ground: CandidateSpace, clock: Clock, seed: int, how: Sampling
) -> DrawBudget:
    """The draws that fit into a time, half of which goes into looking at them; or how much it takes."""
    random = stream(seed, _INPUTS, 1)
    cost = 1e-9  # seconds a draw
    for index in range(_PILOTS):
        pair = ground.pair(ground.random(random))
        live = Live(mechanism, pair, seed=seed, index=_INPUTS + index, sampling=how)
        with contextlib.suppress(MechanismError):
            cost = max(cost, clock.pilot(live)[1] / 2)
        if LEAST * cost > _DRAWING * clock.left:
            needed = clock.elapsed + 1.2 * LEAST * cost / _DRAWING  # with larger pilots
            raise NotEnoughDraws(
                f"a draw takes about {cost:.2g} s, so that {clock.seconds:g} s are enough for about "
                f"{int(max(clock.left, 0.0) / cost):,} draws, and a hunt needs {LEAST:,}: give at least "
                f"seconds={math.ceil(needed)}, or audit the pairs that you suspect (dp.audit)"
            )
    return DrawBudget(int(min(max(0.5 * clock.left / cost, LEAST), _MOST)), clock, cost)


# --- the simplest pair that still breaks the mechanism about as badly


#: The share of the budget that is spent when shrinking ends.
SHRINK = 0.75
#: Draws a side of a look, tried in turn until they show what the search saw.
_SIZES = (200, 400, 1000, 3000)
#: The part of the bound that a simpler pair must keep; one that shows some of it gets another look.
_MOST_TRIALS, _SOME = 0.8, 0.2
#: Looks at most.
_LOOKS = 150


@dataclass
class Shrinking:
    """What shrinking starts from, and what it may not lose."""

    bench: Screening
    log: Log
    _last: int = field(default=0, init=False)

    def run(self, found: Trial) -> Trial:
        """The simplest pair that was found; the one given if none is as good."""
        seen = self._reference(found)
        if seen is None:
            return found
        chain, least = [seen], _MOST_TRIALS * min(seen.bound, found.bound)
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
            if seen.sure and seen.bound >= _MOST_TRIALS * found.bound:
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
            if again.sure and again.bound >= _MOST_TRIALS * found.bound:
                return again
            chain = chain[: len(chain) // 2]
        return found
