"""`dpassay.hunt`: find the inputs on which a mechanism breaks its claim, shrink them and audit them."""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any

from dpassay import validation as checks
from dpassay.auditing.audits import audit
from dpassay.auditing.stages import check_conclusive
from dpassay.blackbox.inputs import as_space
from dpassay.blackbox.library_objects import Neighbours, neighbours_of
from dpassay.blackbox.mechanism import Mechanism, check_mechanism, with_features
from dpassay.errors import InvalidInput, MechanismError, NotEnoughDraws
from dpassay.hunting.queries import NORMS, Queries
from dpassay.hunting.result import Hunt, Tried
from dpassay.hunting.row_spaces import row_schema
from dpassay.hunting.rows import Records
from dpassay.hunting.screening import FEWEST, DrawBudget, Effort, Log, Screening, Trial
from dpassay.hunting.search import SHRINK, Search
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.relations import Relation, as_relation
from dpassay.results.verdict import Verdict
from dpassay.rounding import number
from dpassay.sampling.budget import Clock, training
from dpassay.sampling.draw import Sampling, Seed, as_sampling, seed_of, stream
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Live

__all__ = ["Hunt", "Tried", "hunt"]


#: The address of the randomness that makes inputs; the draws on pairs have other addresses.
_INPUTS = 1 << 22
#: The fewest draws of a hunt; with a time budget the most.
LEAST, _MOST = 100, 20_000_000
#: Pairs on which the cost of a draw is measured for a time budget.
_PILOTS = 2
#: Seconds of a draw from which on computing takes little of the time.
_CHEAP = 1e-3
#: The verdict has at least this part of a time budget; draws a side if that is too little, and at least.
_VERDICT, _SMALL, _LEAST_TEST = 0.1, 1000, 20
#: Suspicions that are reported at most.
_SUSPICIONS = 2
#: Relations that make no candidates of a space.
_UNFIT = {Relation.UNSPECIFIED, Relation.SENSITIVITY_ONE, Relation.DISTRIBUTIONAL}


def hunt(
    mechanism: Any,
    space: Any = None,
    claim: Claim | str | None = None,
    *,
    budget: int = 400_000,
    seconds: float | None = None,
    confidence: float = 0.95,
    relation: Relation | str | None = None,
    user: str | None = None,
    sensitivity: float | None = None,
    norm: str | None = None,
    outside: bool = False,
    failing: str = "leak",
    loss: Any = "auto",
    features: Any = None,
    guide: str | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Hunt:
    """Find neighbouring inputs on which a mechanism breaks its claim, shrink them, and audit them.

    Many pairs are tried with few draws, few with many, and others like the best. If the budget is large,
    all of them are tried again with more draws, which show what is rare. The pair found is shrunk to the
    simplest that breaks the claim about as badly. The verdict is an audit of that pair on fresh draws: a
    mechanism that keeps its claim is called a violation with probability 1 − confidence at most, however
    many pairs were tried.

    space        what inputs look like: one of `dpassay.inputs`, or a Hypothesis strategy. Measurements of
                 OpenDP and mechanisms of diffprivlib bring their own, with relation and claim
    claim        a claim or its text, such as "eps=1, delta=1e-5"
    budget       draws over all pairs and both sides
    seconds      time to spend, in place of a budget: a pilot measures the mechanism, and says before the
                 hunt if that is too little. The same seed gives the same hunt with a budget only
    relation     what makes inputs neighbours: "replace" (the default) or "add_remove" (a row), "edit" (a
                 cell), "user" (all rows of one, named by the column `user`), "query" (answers that differ
                 by `sensitivity` at most, 1 by default: "each", in "l1" or in "l2", which is the `norm`)
    outside      also try NaN, infinities and values beyond the bounds of the space
    failing      what an exception or a time-out is. "leak": an output inside the space, and outside it a
                 refusal, which is no leak; "outcome": an output everywhere; "ignore": never one
    loss         what scores the outputs, as for `audit`
    features     functions of one output, as for `audit`
    guide        "calls": note which distributions of `rng` a run draws from. A scale that depends on the
                 data, a missing call or a constant seed is a suspicion: such pairs are tried first

    >>> import dpassay as dp, numpy as np
    >>> def clamped_mean(data, size, rng):  # forgets that the sum is not what is clamped
    ...     total = min(max(sum(data), 0.0), 1.0 * len(data))
    ...     return np.round(total / len(data) + rng.laplace(scale=1 / len(data), size=size), 6)
    >>> found = dp.hunt(clamped_mean, dp.inputs.Reals(-100, 100, length=5), "eps=1", budget=40_000, rng=0)
    >>> found.violated, found.verdict.lower_bound > 2
    (True, True)
    """
    given = {"space": space, "claim": claim, "relation": relation}
    stated = neighbours_of(mechanism, given | {"sensitivity": sensitivity, "norm": norm})
    claimed = as_claim(stated.claim)
    checks.whole("budget", budget, at_least=LEAST)
    gamma = 1 - checks.confidence(confidence)
    checks.one_of("failing", failing, ("leak", "outcome", "ignore"))
    checks.flag("outside", outside)
    if guide is not None:
        checks.one_of("guide", guide, ("calls",))
    box, seed = check_mechanism(with_features(mechanism, features)), seed_of(rng)
    pairs = _candidates(stated, user, seed)
    how = as_sampling(sampling)
    draws = DrawBudget(int(budget))
    if seconds is not None:
        clock = Clock(checks.real("seconds", seconds, above=0.0))
        draws = _timed_budget(box, pairs, clock, seed, how)
    planned = int((1 - SHRINK if draws.total >= FEWEST else 0.5) * draws.total / 2)
    test = planned - training(planned, None)
    check_conclusive(claimed, (test, test), gamma)
    screening = Screening(
        mechanism=box,
        space=pairs,
        claim=claimed,
        test=test,
        gamma=gamma,
        loss=loss,
        failing=failing,
        seed=seed,
        sampling=how,
        budget=draws,
        recording=guide is not None,
    )
    with CallProgress(draws.total, "hunting", how.progress, sides=2) as bar:
        log, top, notes = _searched(screening, bar, outside)
        verdict = _verdict(screening, bar, top, planned if top.conclusive else None, confidence)
    listed = _listed(log, top)
    passed = [row.draws // 2 for status, row in listed if status is _Status.PASSED_OVER]
    if passed and not verdict.violated:  # an event of probability 3/n is missed by n draws with e⁻³
        middle = sorted(passed)[len(passed) // 2]
        notes.append(
            f"the verdict is about this pair. On each of {len(passed)} others the search made about "
            f"{middle:,} draws a side, with which a leak is easily missed that shows in "
            + (f"fewer than 1 of {middle // 3:,} outputs" if middle > 5 else "some outputs only")
        )
    suspicions = sorted(log.suspicions.values(), reverse=True)[:_SUSPICIONS]
    return Hunt(
        verdict=verdict,
        pair=top.pair,
        name=top.candidate.name,
        outside=top.candidate.outside,
        log=tuple(row for _, row in listed),
        tried=len(log.last),
        draws=draws.spent,
        notes=tuple(notes),
        families=tuple(
            sorted(log.families.values(), key=lambda one: (-one.bound, -one.difference))
        ),
        suspicions=tuple(text for _, text in suspicions),
    )


def _searched(
    screening: Screening, bar: CallProgress, outside: bool
) -> tuple[Log, Trial, list[str]]:
    """The trials, that of the pair to test, shrunk, and notes; an interruption ends the search alone."""
    notes: list[str] = []
    best = 0.0

    def tell(trial: Trial) -> None:
        nonlocal best
        if trial.bound > best:
            best = trial.bound
            bar.label = f"hunting, predicted {screening.claim.symbol} {number(best)}"
        bar.advance(screening.budget.spent - bar.done)

    log = Log(tell)
    search = Search(screening, log)
    try:
        search.run(outside=outside)
        top = search.top
        if top.conclusive:
            top = search.shrunk(top)
    except KeyboardInterrupt:
        if not log.last:
            raise
        notes.append("interrupted: the best pair until then was tested, and not shrunk in full")
        print(
            "dpassay: the search was interrupted; now the verdict on the best pair so far (Ctrl-C "
            "again gives up)",
            file=sys.stderr,
        )
        top = search.top
    refused = [one.rejected for one in log.last.values() if one.rejected]
    if refused:
        notes.append(
            f"{len(refused)} pair{'s were' if len(refused) > 1 else ' was'} refused, which does not "
            f"count as a leak; the first: {refused[0][:200]}"
        )
    return log, top, notes


def _verdict(
    screening: Screening, bar: CallProgress, top: Trial, planned: int | None, confidence: float
) -> Verdict:
    """The audit of one pair on streams that no trial has: the draws kept for it, or all that is left."""
    budget, how = screening.budget, screening.sampling
    n = max((budget.total - budget.spent) // 2, _LEAST_TEST)
    n = min(planned or n, n)
    bar.say("learning", 2 * n)
    audited = partial(
        audit,
        screening.mechanism,
        top.pair,
        screening.claim,
        confidence=confidence,
        loss=screening.loss,
        rng=screening.seed,
        sampling=replace(how, on_error="outcome") if top.failed else how,
    )
    clock = budget.clock
    if clock is not None and budget.total < FEWEST:  # every call counts: none is for a pilot
        n, clock = max(int(budget.left(0.95) / 2), _LEAST_TEST), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow and the like, on hostile inputs
        try:
            if clock is None:
                found = audited(n=n)
            else:
                found = audited(seconds=max(clock.left, _VERDICT * clock.seconds))
        except NotEnoughDraws:
            if clock is None:
                raise
            found = audited(n=_SMALL)
        except MechanismError as error:
            error.add_note(
                "it failed in the last draws of a hunt and never before; to count that as an output, "
                'hunt again with sampling=Sampling(on_error="outcome")'
            )
            raise
    budget.spent += sum(found.about.n or ())
    return found


class _Status(StrEnum):
    """What became of a pair, in the order of the log."""

    TESTED = "tested"
    PREDICTED = "a violation predicted"
    PASSED_OVER = "left behind"
    REFUSED = "refused"


def _listed(log: Log, top: Trial) -> list[tuple[_Status, Tried]]:
    """Every pair that was tried, and what became of it, in the order of the log."""
    listed = []
    for key, trial in log.last.items():
        status = _Status.PREDICTED if trial.conclusive else _Status.PASSED_OVER
        if key == top.candidate.key:
            status = _Status.TESTED
        elif trial.rejected:
            status = _Status.REFUSED
        reason = f": {trial.rejected}" if status is _Status.REFUSED else ""
        row = Tried(
            name=trial.pair.name,
            pair=str(replace(trial.pair, name="")),
            draws=log.draws[key],
            bound=None if trial.effort is Effort.COUPLED else trial.bound,
            outcome=f"{status}{reason}{'; failures are outputs' if trial.failed else ''}",
            at=trial.at,
        )
        listed.append((status, row))
    order = list(_Status)
    return sorted(listed, key=lambda one: (order.index(one[0]), -one[1].draws))


# --- arguments


def _candidates(stated: Neighbours, user: str | None, seed: int) -> Records | Queries:
    """The candidates of a space under a relation."""
    kind = as_relation(stated.relation)
    schema, rng = row_schema(as_space(stated.space), seed), stream(seed, _INPUTS)
    if kind in _UNFIT:
        allowed = '"replace", "add_remove", "edit", "user" or "query"'
        raise InvalidInput(
            f"relation must be {allowed} for a hunt, got {checks.shown(stated.relation)}"
        )
    if kind is Relation.SENSITIVITY:
        checks.one_of("norm", stated.norm, NORMS)
        sensitivity = checks.real("sensitivity", stated.sensitivity, above=0.0)
        return Queries(schema, rng, sensitivity, stated.norm)
    checks.require(
        (user is not None) == (kind is Relation.ONE_USER),
        'relation="user" and user="the column that says whose a row is" go together',
    )
    checks.require(
        schema.names != (user,),
        f"rows must have another column beside {user!r}: give the table one, such as a Category",
    )
    checks.require(
        user is None or user in schema.names,
        f"user must name a column of a table, of which there are {checks.shown(schema.names)}; got "
        f"{user!r}",
    )
    return Records(schema, kind, rng, None if user is None else schema.names.index(user))


def _timed_budget(
    mechanism: Mechanism, pairs: Records | Queries, clock: Clock, seed: int, how: Sampling
) -> DrawBudget:
    """The draws that fit into a time, in half of it if they are cheap: then computing takes the rest."""
    cost = 1e-9  # seconds a draw
    for index in range(_PILOTS):
        pair = pairs.pair(pairs.random())
        live = Live(mechanism, pair, seed=seed, index=_INPUTS + index, sampling=how)
        with contextlib.suppress(MechanismError):
            cost = max(cost, clock.pilot(live)[1] / 2)
        if cost > _CHEAP:
            break
    part = 0.95 if cost > _CHEAP else 0.5
    total = part * max(clock.left, 0.0) / cost
    if total < LEAST:
        needed = clock.elapsed + 1.2 * LEAST * cost / part
        raise NotEnoughDraws(
            f"a draw takes about {cost:.2g} s, so that {clock.seconds:g} s are enough for about "
            f"{int(total):,} draws, and a hunt needs {LEAST:,}: give at least "
            f"seconds={math.ceil(needed)}, or audit the pairs that you suspect (dp.audit)"
        )
    return DrawBudget(int(min(total, _MOST)), clock, cost)
