"""Sample size and power: how many draws an audit needs.

A claim alone does not tell how many: that depends on how the excess shows in the outputs. A plan assumes
a shape of the two output distributions, or takes it from a pilot sample. The closed form gives the draws
that test a known event (the power of the exact joint test); what the search for the event costs is
measured by simulated audits of a mechanism of that shape. Claims about divergences are planned by
simulated audits alone: no event shows all of a divergence, and the variational bound shows the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpassay import validation as checks
from dpassay.auditing.audits import refutes
from dpassay.auditing.pilots import best_event, pilot_of, plan_of_pilot, scaled, with_learning
from dpassay.auditing.plan_result import LEAST, SHAPES, SIMULATED, Goal, Plan, noise_of
from dpassay.blackbox.mechanism import Mechanism
from dpassay.blackbox.zoo import Gaussian, Laplace
from dpassay.bounds.power import draws_needed_exactly, normal_limit
from dpassay.errors import InvalidInput, NotEnoughDraws
from dpassay.learning.cross_fit import CrossFit
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import bisect
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import Progress

#: Simulated audits, round after round, each with the draws that the rounds before suggest, and by which
#: factor these may change: a round in which all audits refute says little on how many draws would do. The
#: power of a plan has a standard error of about 0.3/√(all audits), .008.
_ROUNDS, _STEP = (40, 120, 400, 800), 2.5
#: A search for the draws to begin with: the fewest, a factor, audits for each, and how many refute then.
_FEWEST, _FACTOR, _TRIED, _REFUTED = 32, 4, 8, 5
#: How far the search goes beyond the draws that a pilot or a formula suggests.
_FAR = 16
#: The fewest draws of a pilot.
_PILOT = 100
#: Of parameters other than δ no larger relative excess is planned for, but by a plan alone.
_LARGEST_EXCESS = 3.0
#: An audit has to find its own event: draws that are planned over those that test the event of a pilot.
_FOUND_ANEW = 1.25


def plan(
    mechanism: Any = None,
    pair: Any = None,
    claim: Claim | str | None = None,
    *,
    excess: float | None = None,
    shape: Any = "coin",
    power: float = 0.9,
    confidence: float = 0.95,
    event: float | None = None,
    train: float | None = None,
    pilot: int = 500,
    loss: Any = "auto",
    rng: Seed = 0,
    sampling: Sampling | None = None,
) -> Plan:
    """About how many draws a side refute a claim with a given probability: a guide, nothing certified.

    `dp.plan(claim, shape=…)` assumes a truth; `dp.plan(mechanism, pair, claim, pilot=…)` estimates it.
    With an `excess` it assumes that the truth exceeds the claim by that much, and that an event as likely
    as the best event of the pilot shows it.
    Gaussian noise shows an excess over (ε, δ)-DP on rarer events; the plan is for it if it takes more.

    excess  by how much the truth exceeds the claim's parameter, relatively (absolutely at 0); of a curve,
            by how much type II errors lie below it, absolutely; default 0.1
    shape   how the excess shows. "coin": in one event, as in randomized response, which is the best case.
            "laplace", "gaussian": noise of that kind which is too small; the plan is then adjusted until
            simulated audits have the power asked for, and so is every plan of a Rényi or zCDP claim. Of
            a curve, such as an accountant's, the truth is the curve moved by a Gaussian shift,
            Φ(Φ⁻¹(f(α)) − s). Or a mechanism that breaks the claim on `pair`, which is then audited until
            the audits have the power asked for
    event   the probability, on the rarer side, of the event that shows a "coin"; by default the best one
    train   the share of the draws that learn, a quarter by default
    pilot   draws a side on the pair, from which the excess is estimated; they certify nothing and are
            not part of the audit
    loss    that of the audit, where a mechanism is given

    >>> import dpassay as dp
    >>> dp.plan(dp.PureDP(0.5), excess=1.0).held_out
    88
    >>> dp.plan(dp.PureDP(0.5), excess=1.0, event=0.184).held_out  # Laplace: below 0, e⁻¹/2
    169
    >>> found = dp.plan(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=0.5", pilot=2000)
    >>> 150 < found.draws < 500
    True
    """
    checks.probability("power", power)
    checks.confidence(confidence)
    if train is not None:
        checks.probability("train", train)
    if mechanism is None:
        mechanism, claim = claim, None
    if claim is not None:
        if event is not None or shape != "coin":
            raise InvalidInput("a pilot shows the event and the shape: leave event and shape out")
        size = checks.whole("pilot", pilot, at_least=_PILOT)
        goal = Goal(as_claim(claim), power, confidence, train, loss)
        learner = pilot_of(mechanism, pair, size, loss, rng, sampling)
        if excess is None:
            found = with_learning(plan_of_pilot(learner, goal), learner, goal)
            return _confirmed(found, goal, mechanism, pair, size, rng)
        checks.real("excess", excess, above=0.0)
        if not goal.claim.set_by_events:
            raise InvalidInput(
                f"no event shows all of an excess over {goal.claim.short}: give the shape gaussian, or "
                "a mechanism that breaks the claim as shape"
            )
        return _confirmed(_beyond_pilot(learner, goal, excess), goal, mechanism, pair, size, rng)
    if isinstance(shape, str) and pair is not None:
        raise InvalidInput(
            "a plan is made of a claim alone, or of a mechanism, a pair and a claim: give the claim too"
        )
    goal = Goal(as_claim(mechanism), power, confidence, train, loss)
    if not isinstance(shape, str):
        found = plan_of_pilot(pilot_of(shape, pair, pilot, loss, rng, sampling), goal)
        start = min(found.draws or 10 * pilot, SIMULATED)
        return _simulated(replace(found, shape="mechanism"), goal, shape, pair, start, rng)
    excess = 0.1 if excess is None else checks.real("excess", excess, above=0.0)
    checks.one_of("shape", shape, SHAPES)
    actual, truth = _worse(goal.claim, excess)
    rarer = None if event is None else checks.probability("event", event)
    broken: Any = None
    if shape != "coin":
        if event is not None:
            raise InvalidInput(f"an event goes with the shape coin: {shape} noise has its own")
        broken, truth = _noise_and_region(shape, goal.claim.at(actual))
    elif not goal.claim.set_by_events:
        broken, rarer = _coin(goal.claim.at(actual), rarer)
    elif rarer is None and goal.claim.parameter == "epsilon":
        rarer = _randomized_response(truth)
    rarer = _best_rarity(truth, goal) if rarer is None else rarer
    if not goal.claim.set_by_events:
        unknown = goal.plan(None, shape=shape, actual=actual, event=rarer)
        return _simulated(unknown, goal, broken, (0.0, 1.0), None, rng)
    held = draws_needed_exactly(float(truth(rarer)), rarer, goal.claim, goal.gamma, power)
    found = goal.plan(held, shape=shape, actual=actual, event=rarer)
    if broken is None or found.draws is None or found.draws > SIMULATED:
        return found
    return _simulated(found, goal, broken, (0.0, 1.0), found.draws, rng)


def _worse(claim: Claim, excess: float) -> tuple[float, Callable[[Any], Any]]:
    """The parameter of a truth that exceeds the claim, and P(event) of P(event) on the rarer side.

    Of a curve the truth is the curve moved by a Gaussian shift s: Φ(z + s) − Φ(z) is largest at
    z = −s/2, where it is 2Φ(s/2) − 1, which is the gap.
    """
    actual = claim.value * (1 + excess) if claim.value > 0 else excess
    if claim.parameter == "gap" and actual >= 1:
        raise InvalidInput(
            "the excess of a curve is the gap between its type II errors and the true ones: it must be "
            f"below 1, got {excess:g}"
        )
    if claim.parameter != "gap":
        return actual, claim.at(actual).region
    shift = 2 * ndtri((1 + min(actual, 1 - 1e-12)) / 2)
    return actual, lambda q: ndtr(ndtri(claim.region(q)) + shift)


def _best_rarity(truth: Callable[[Any], Any], goal: Goal) -> float:
    """The probability, on the rarer side, of the event that tells a truth from a claim best.

    The largest distance per draw in the normal limit; the exact test often takes fewer draws at an event
    that is somewhat more likely. For a claim in δ the best probability is near 0.
    """
    q = 1 / (1 + np.exp(np.linspace(-0.5, 33.5, 237)))
    allowed, noise = normal_limit(q, 1, 1, goal.claim)
    best = float(q[int(np.argmax((truth(q) - allowed) / noise))])
    likelier = min(math.sqrt(2) * best, 0.5)
    return min((best, likelier), key=lambda rarer: goal.test(truth, rarer) or math.inf)


def _noise_and_region(shape: str, truth: Claim) -> tuple[Laplace | Gaussian, Callable[[Any], Any]]:
    """That noise, and P(event) of P(event) on the rarer side."""
    law = noise_of(shape, truth)
    return law, lambda q: 1 - law.tradeoff(q, (0.0, 1.0))


def _randomized_response(truth: Callable[[Any], Any]) -> float:
    """The probability q of an event whose complement has the probability q on the other input."""
    return float(bisect(lambda q: truth(q) <= 1 - q, 0.0, 0.5)[0])


def _coin(truth: Claim, rarer: float | None) -> tuple[Callable[..., Any], float]:
    """Two Bernoulli distributions for which a claim about divergences is tight, and the smaller P(1).

    By default those of randomized response. Both directions keep the claim.
    """
    if rarer is None:
        rarer = _randomized_response(truth.region)
    q = rarer
    p = min(float(truth.region(q)), 1 - float(truth.region_inverse(1 - q)))
    return lambda x, size, rng: rng.random(size) < (q if x else p), q


def _refuting(
    goal: Goal,
    mechanism: Any,
    pair: Any,
    n: int,
    audits: int,
    seeds: np.random.Generator,
    bar: Progress | None = None,
) -> int:
    """How many of some audits with n draws a side refute the claim."""
    hits, quiet = 0, Sampling(progress=False)
    how: Any = {"confidence": goal.confidence, "train": goal.train, "loss": goal.loss}
    for seed in seeds.integers(2**62, size=audits).tolist():
        with suppress(NotEnoughDraws):
            hits += refutes(mechanism, pair, goal.claim, n=n, rng=seed, sampling=quiet, **how)
        if bar is not None:
            bar.advance(1)
    return hits


def _simulated(
    found: Plan, goal: Goal, mechanism: Mechanism, pair: Any, start: int | None, rng: Seed
) -> Plan:
    """A plan with draws at which audits have the power asked for; None if they refute as by chance.

    The power of a test at level γ is about Φ(c √n − Φ⁻¹(1 − γ)). c is estimated by maximum likelihood
    from all rounds, the last of which are near the draws that are sought. From `start` on more and more
    draws are tried, until audits refute the claim: what a pilot or a formula suggests may be too few.
    """
    critical = float(ndtri(goal.confidence))
    distance = float(ndtri(goal.power)) + critical
    seeds = np.random.default_rng(rng)
    with Progress(sum(_ROUNDS), "simulating", unit="audits") as bar:

        def refuted(n: int, audits: int) -> int:
            return _refuting(goal, mechanism, pair, n, audits, seeds, bar)

        def enough(draws: int, most: int) -> int | None:
            """The first of more and more draws at which most audits refute; None above `most`."""
            while draws <= most and refuted(draws, _TRIED) < _REFUTED:
                bar.total += _TRIED
                draws *= _FACTOR
            return draws if draws <= most else None

        draws = enough(_FEWEST, SIMULATED) if start is None else start
        hits = 0 if draws is None else refuted(draws, _ROUNDS[0])
        if start is not None and 4 * hits < _ROUNDS[0]:  # a pilot may suggest too few
            draws = enough(_FACTOR * start, min(_FAR * start, SIMULATED))
            hits = 0 if draws is None else refuted(draws, _ROUNDS[0])
        if draws is None:
            return replace(found, simulated=bar.done, draws=None, held_out=None)
        rates = np.geomspace(0.2, 5.0, 400) * distance / math.sqrt(draws)  # candidates for c
        likelihood = np.zeros(rates.size)
        for runs in _ROUNDS:
            hits = refuted(draws, runs) if likelihood.any() else hits
            z = rates * math.sqrt(draws) - critical
            likelihood += hits * log_ndtr(z) + (runs - hits) * log_ndtr(-z)
            if not (k := int(np.argmax(likelihood))):  # the smallest rate of all: no excess is seen
                return replace(found, simulated=bar.done, draws=None, held_out=None)
            wanted = (distance / float(rates[k])) ** 2
            draws = max(math.ceil(min(max(wanted, draws / _STEP), draws * _STEP)), LEAST)
    return replace(found, simulated=bar.done, draws=draws, held_out=goal.testing(draws))


def _confirmed(found: Plan, goal: Goal, mechanism: Any, pair: Any, pilot: int, rng: Seed) -> Plan:
    """A plan of far fewer draws than the pilot, raised until audits refute with as many.

    An event that the pilot learned may take more draws to learn, such as one of floating-point bits.
    """
    draws, first, seeds = found.draws, found.draws, np.random.default_rng(rng)
    if draws is None or first is None or found.least is None or found.most is None:
        return found
    while _TRIED * draws <= pilot:
        if _refuting(goal, mechanism, pair, draws, _TRIED, seeds) >= int(goal.power * _TRIED):
            break
        draws = math.ceil(1.5 * draws)
        draws = draws if _TRIED * draws <= pilot else pilot
    return scaled(found, goal, draws / first)


def _beyond_pilot(learner: CrossFit, goal: Goal, excess: float) -> Plan:
    """The plan for a given excess on an event like the best of a pilot.

    A mechanism that keeps its claim still breaks half of it, on events on which it is about as bad as it
    can be: an excess is expected there. If it does not, the best of all events is assumed. For (ε, δ)-DP
    the plan is for Gaussian noise if that takes more draws.
    """
    claim, gamma, pilot = goal.claim, 1 - goal.confidence, len(learner.batch.p)
    if best_event(learner, claim, pilot, gamma).z > ndtri(goal.confidence) + 3:
        return plan_of_pilot(learner, goal)  # which is a violation by itself
    rarer = _best_rarity(_worse(claim, excess)[1], goal)
    if claim.value > 0:
        best = best_event(learner, claim.at(claim.value / 2), 10 * pilot, gamma)
        rarer = max(best.low, 0.5 / pilot) if best.z > 0 else rarer
    found = [_for_excess(goal, excess, rarer)]
    if gaussian_needs_more_draws(claim):
        found.append(_for_excess(goal, excess, None))
    return max(found, key=lambda one: one.draws or math.inf)


def gaussian_needs_more_draws(claim: Claim) -> bool:
    """Whether Gaussian noise shows an excess on rarer events only: that of ε where δ > 0."""
    return claim.parameter == "epsilon" and claim.point is not None and claim.point[1] > 0


def _for_excess(goal: Goal, excess: float, event: float | None) -> Plan:
    """The plan for an excess on an event of that probability; None: on the best one of Gaussian noise."""
    actual, truth = _worse(goal.claim, excess)
    if event is None:
        truth = _noise_and_region("gaussian", goal.claim.at(actual))[1]
    rarer = _best_rarity(truth, goal) if event is None else event
    held = goal.test(truth, rarer)
    held = None if held is None else math.ceil(_FOUND_ANEW * held)
    return goal.plan(
        held, shape="gaussian" if event is None else "pilot", actual=actual, event=rarer
    )


def gaussian_draws(claim: Claim, excess: float, confidence: float) -> float:
    """The draws that detect an excess for Gaussian noise; 0 where this needs no more than other noise."""
    if not gaussian_needs_more_draws(claim):
        return 0
    return _for_excess(Goal(claim, 0.9, confidence), excess, None).draws or math.inf


def largest_excess(claim: Claim) -> float:
    """The most that is planned for: 3, so that a percentage is refused; of δ what leaves it below 1."""
    room = 0.99 * (claim.largest - claim.value) / (claim.value or 1.0)
    return room if claim.parameter == "delta" else min(_LARGEST_EXCESS, room)


def smallest_excess(
    claim: Claim, draws: int, confidence: float, event: float | None = None
) -> float:
    """The smallest excess that so many draws detect as `_for_excess` plans; ∞ above the largest."""
    goal, most = Goal(claim, 0.9, confidence), largest_excess(claim)

    def detected(excess: float) -> bool:
        return (_for_excess(goal, excess, event).draws or math.inf) <= draws

    return float(bisect(detected, most, 0.0, close=0.01)[0]) if detected(most) else math.inf
