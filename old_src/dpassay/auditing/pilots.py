"""Plans from a pilot sample: the excess that it shows, and what learning the event will cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpassay.auditing.plan_result import FEWEST_LEARN, Goal, Plan
from dpassay.blackbox.mechanism import check_mechanism
from dpassay.bounds.power import exact_power
from dpassay.bounds.power import power as power_of
from dpassay.learning.cross_fit import CrossFit
from dpassay.learning.event_selection import EventCriterion, select_events
from dpassay.learning.hit_rates import ThresholdEvent
from dpassay.privacy.claims import Claim
from dpassay.sampling.budget import training
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.samples import Batch, sources

#: How many times the penalty for many thresholds is subtracted in a pilot.
_CAUTION = 1.5
#: Parts of a pilot that learn, and by how much a plan may be raised for them.
_PARTS, _RAISED = 8, 4
#: Below so many expected counts the power is computed exactly.
_FEW = 100
#: The most draws that are planned.
_MOST = 10**9


def pilot_of(
    mechanism: Any, pair: Any, n: int, loss: Any, rng: Seed, sampling: Sampling | None
) -> CrossFit:
    """Draws of a mechanism to learn from."""
    (source,) = sources(check_mechanism(mechanism), pair, rng=rng, sampling=sampling)
    return CrossFit(source.deal((n, n)), loss, source.rng, pair=source.pair)


def plan_of_pilot(learner: CrossFit, goal: Goal) -> Plan:
    """The plan for an excess as large as a pilot shows on the best event that it finds."""
    distance, pilot = float(ndtri(goal.power) + ndtri(goal.confidence)), len(learner.batch.p)
    test = 10 * pilot
    for _ in range(4):  # the best event depends on how many draws will test it
        best = best_event(learner, goal.claim, test, 1 - goal.confidence)
        if best.z <= 0:
            break
        test = int(min(max(test * (distance / best.z) ** 2, FEWEST_LEARN), _MOST))
    error = math.sqrt(test / pilot)  # the standard error of z at as many draws as test
    if best.z <= 0 or distance <= error:
        return goal.plan(None, shape="pilot", actual=None, event=best.low)
    least, most = (
        goal.draws(math.ceil(test * (distance / z) ** 2))
        for z in (distance + error, distance - error)
    )
    return goal.plan(test, shape="pilot", actual=None, event=best.low, least=least, most=most)


def with_learning(found: Plan, learner: CrossFit, goal: Goal) -> Plan:
    """The plan, raised until events that are learned on parts of the pilot have the power asked for.

    The best event of a whole pilot is better than one that fewer training draws find. Parts are as large
    as the training draws of the plan, and each event is counted on the rest of the pilot.
    """
    draws, pilot = found.draws, len(learner.batch.p)
    if draws is None or found.least is None or found.most is None or not goal.claim.set_by_events:
        return found
    raised = draws
    while 2 * training(raised, goal.train) <= pilot and raised < _RAISED * draws:
        if _learned_power(raised, learner, goal) >= goal.power:
            break
        raised = math.ceil(1.15 * raised)
    return scaled(found, goal, raised / draws)


def _learned_power(draws: int, learner: CrossFit, goal: Goal) -> float:
    """The mean power of audits that learn on parts of a pilot; the rates of the rest are the truth."""
    claim, (p, q) = goal.claim, (learner.batch.p, learner.batch.q)
    train = max(training(draws, goal.train), FEWEST_LEARN)
    test, size = draws - train, min(learner.batch.sizes)
    powers = []
    for start in range(0, min(size - train, _PARTS * train) + 1, train):
        inside = np.zeros(size, dtype=bool)
        inside[start : start + train] = True
        part = learner.on(Batch.of(p[:size][inside], q[:size][inside]))
        best = (0.0, 0.0, 0.0, 0.0)
        for one in select_events(part, EventCriterion(claim, (test, test), goal.gamma)):
            i, j = (float(one.event.holds(side[:size][~inside]).mean()) for side in (p, q))
            ways = [(i, j), (1 - i, 1 - j)]
            ways += [] if claim.directional else [(j, i), (1 - j, 1 - i)]
            gamma = goal.gamma * one.share
            found = [(power_of(a, b, test, test, claim, gamma), a, b, gamma) for a, b in ways]
            best = max([best, *found])
        chance, a, b, gamma = best
        few = chance and test * min(b, 1 - b) <= _FEW
        powers.append(exact_power(a, b, test, claim, gamma) if few else chance)
    return float(np.mean(powers))


def scaled(found: Plan, goal: Goal, factor: float) -> Plan:
    """The plan with so many times as many draws."""
    draws, least, most = (
        math.ceil(factor * (n or 0) - 1e-9) for n in (found.draws, found.least, found.most)
    )
    return replace(found, draws=draws, held_out=goal.testing(draws), least=least, most=most)


def best_event(learner: CrossFit, claim: Claim, test: int, gamma: float) -> ThresholdEvent:
    """The event of a pilot that is most likely to refute the claim with so many draws, as counted."""
    criterion = EventCriterion(claim, (test, test), gamma, caution=_CAUTION, calibrate=False)
    return select_events(learner, criterion)[0].threshold
