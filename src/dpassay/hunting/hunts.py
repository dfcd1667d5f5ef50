"""The hunt for the inputs on which a mechanism breaks its claim."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpassay import checks
from dpassay.auditing.audits import audit, check_conclusive
from dpassay.blackbox.inputs import Space, as_space
from dpassay.blackbox.mechanism import Mechanism, check_mechanism
from dpassay.errors import InvalidInput, MechanismError
from dpassay.hunting.bench import Bench, Purse, Trial
from dpassay.hunting.candidates import Ground
from dpassay.hunting.queries import NORMS, Queries
from dpassay.hunting.result import Hunt, Tried
from dpassay.hunting.rows import Records
from dpassay.hunting.search import Log, Search
from dpassay.hunting.shapes import Shape, shape_of
from dpassay.hunting.shrink import SHRINK, Shrinking
from dpassay.privacy.claim_text import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.pairs import Relation, as_relation
from dpassay.results.rounding import number
from dpassay.results.verdict import Verdict
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
#: Draws a side with which a time budget is measured out, and the draws it may stand for.
_PILOT, _FROM, _TO = 50, 20_000, 20_000_000
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
    budget       draws over all pairs and both sides; or `seconds`, which then decide (the same seed
                 gives the same hunt with a budget only)
    relation     what makes inputs neighbours: "replace" or "add_remove" (a row), "edit" (a cell),
                 "user" (all rows of one, named by the column `user`), "query" (answers that differ by
                 `sensitivity` at most: "each", in "l1" or in "l2", which is the `norm`)
    outside      also try NaN, infinities and values beyond the bounds of the space
    failing      what an exception or a time-out is. "leak": an outcome inside the space, and outside it a
                 refusal that is no leak; "outcome": an outcome everywhere; "ignore": never one
    loss         what ranks the outputs, as for `audit`

    >>> import dpassay as dp, numpy as np
    >>> def clamped_mean(data, size, rng):  # forgets that the sum is not what is clamped
    ...     total = min(max(sum(data), 0.0), 1.0 * len(data))
    ...     return np.round(total / len(data) + rng.laplace(scale=1 / len(data), size=size), 6)
    >>> found = dp.hunt(clamped_mean, dp.inputs.Reals(-100, 100, length=5), "eps=1", budget=40_000, rng=0)
    >>> found.violated, found.verdict.lower_bound > 2
    (True, True)
    """
    asked = as_claim(claim)
    checks.whole("budget", budget, at_least=5000)
    gamma = 1 - checks.probability("confidence", confidence)
    checks.one_of("failing", failing, ("leak", "outcome", "ignore"))
    box, seed = check_mechanism(mechanism), seed_of(rng)
    ground = _ground(as_space(space), relation, user, sensitivity, norm, seed)
    how = as_sampling(sampling)
    if seconds is not None:
        checks.real("seconds", seconds, above=0.0)
        budget = _draws_in(box, ground, seconds, seed, how)
    planned = int((1 - SHRINK) * budget / 2)
    test = int(_TEST * planned)
    check_conclusive(asked, (test, test), gamma)
    purse = Purse(int(budget), seconds)
    bench = Bench(box, ground, asked, test, gamma, loss, failing, seed, how, purse)
    with Whole(int(budget), "hunting", how.progress, sides=2) as bar:
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
    bench: Bench, bar: Whole, outside: bool, seed: int
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
    bench: Bench, bar: Whole, top: Trial, loss: Any, planned: int | None, confidence: float
) -> Verdict:
    """The audit of one pair on streams that no look has: the draws kept for it, or all that is left."""
    purse = bench.purse
    left = max((purse.budget - purse.spent) // 2, 1000)
    n = left if planned is None else min(planned, left)
    if purse.seconds is not None:
        rate = purse.spent / max(purse.elapsed, 1e-3)
        time_left = max(purse.seconds - purse.elapsed, 0.05 * purse.seconds)
        n = max(min(n, int(time_left * rate / 2)), 1000)
    purse.spent += 2 * n
    bar.say("learning", 2 * n)
    how = bench.sampling
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow and the like, on hostile inputs
        try:
            return audit(
                bench.mechanism,
                top.pair,
                bench.claim,
                n=n,
                confidence=confidence,
                loss=loss,
                rng=bench.seed,
                sampling=replace(how, on_error="outcome") if top.failed else how,
            )
        except MechanismError as error:
            error.add_note(
                "it failed in the last draws of a hunt and never before; to count that as an output, "
                'hunt again with sampling=Sampling(on_error="outcome")'
            )
            raise


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
) -> Ground:
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


def _draws_in(
    mechanism: Mechanism, ground: Ground, seconds: float, seed: int, how: Sampling
) -> int:
    """About the draws that fit into the time, half of which goes into looking at them."""
    random = stream(seed, _INPUTS, 1)
    spent = [1e-3]
    for index in range(3):
        pair = ground.pair(ground.random(random))
        quiet = replace(how, progress=False)
        live = Live(mechanism, pair, seed=seed, index=_INPUTS + index, sampling=quiet)
        start = time.perf_counter()
        with contextlib.suppress(MechanismError):
            live.deal((_PILOT, _PILOT))
        spent.append(time.perf_counter() - start)
    per_draw = max(spent) / (2 * _PILOT)
    return int(min(max(0.5 * seconds / per_draw, _FROM), _TO))
