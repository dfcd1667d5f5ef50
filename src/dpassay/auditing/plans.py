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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpassay import validation as checks
from dpassay.auditing.audits import refutes
from dpassay.blackbox.mechanism import Mechanism, check_mechanism
from dpassay.blackbox.zoo import Gaussian, Laplace
from dpassay.bounds.power import draws_needed, draws_needed_exactly, normal_limit
from dpassay.errors import InvalidInput, NotEnoughDraws
from dpassay.learning.cross_fit import CrossFit
from dpassay.learning.event_selection import EventCriterion, select_events
from dpassay.learning.hit_rates import ThresholdEvent
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim, GaussianDP, gaussian_mu
from dpassay.privacy.provenance import level
from dpassay.results.estimates import SECOND
from dpassay.rootfinding import bisect
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import Progress
from dpassay.sampling.samples import sources
from dpassay.tables import Shown

#: An audit makes no fewer draws a side, and learns from no fewer.
_LEAST, _LEARN = 8, 4
#: Shapes that can be assumed.
SHAPES = ("coin", "laplace", "gaussian")
#: Simulated audits, round after round, each with the draws that the rounds before suggest, and by which
#: factor these may change: a round in which all audits refute says little on how many draws would do.
_ROUNDS, _STEP = (40, 80, 160, 320), 2.5
#: Plans of more draws than these are not simulated.
_SIMULATED = 1_000_000
#: A search for the draws to begin with: the fewest, a factor, audits for each, and how many refute then.
_FEWEST, _FACTOR, _TRIED, _REFUTED = 32, 4, 8, 5
#: How far the search goes beyond the draws that a pilot or a formula suggests.
_FAR = 16
#: An excess above this may be a percentage.
_PERCENT = 5.0
#: The fewest draws of a pilot, and how many times the penalty for many thresholds is subtracted there.
_PILOT, _CAUTION = 100, 1.5
#: An audit has to find its own event: draws that are planned over those that test the event of a pilot.
_FOUND_ANEW = 1.25
#: The most draws that are planned.
_MOST = 10**9


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(Shown):
    """How many draws an audit needs, under a stated assumption."""

    claim: Claim
    shape: str  # "coin", "laplace", "gaussian", "mechanism", or "pilot"
    actual: float | None  # the parameter of the assumed truth; None where draws show it
    power: float
    confidence: float
    event: float
    held_out: int | None
    draws: int | None
    simulated: int | None = None  # audits that were simulated to find the draws
    least: int | None = None  # by a pilot: draws if the excess is a standard error larger
    most: int | None = None  # and smaller

    def __str__(self) -> str:
        c, draws, simulated = self.claim, self.draws, self.simulated
        if draws is None and self.actual is not None:
            two = f"{c.short} from {c.at(self.actual).short}"
            if simulated:
                return f"simulated audits of up to {_SIMULATED:,} draws a side do not tell {two}"
            return f"no number of draws up to 10⁹ tells {two}"
        if draws is None:
            seen = "audits show" if simulated else "the pilot shows"
            return (
                f"{seen} no excess over {c.short} beyond the standard error: either the claim holds on "
                "this pair, or the pilot is too small (give a larger pilot=)"
            )
        refute = f"about {draws:,} draws a side refute {c.short} with probability {self.power:g}"
        at = f"at confidence {level(self.confidence)}"
        if self.actual is None and simulated:
            return f"{refute} {at} (by {simulated:,} audits of the mechanism)"
        if self.actual is None:
            return (
                f"{refute} {at} if the excess is as in the pilot; {self.least:,} if it is one standard "
                f"error larger, {self.most:,} if it is one smaller"
            )
        truth, least = f"the truth is {c.at(self.actual).short}", ""
        if c.parameter == "gap":
            truth = (
                f"the truth falls short of it by up to {self.actual:g}, as a Gaussian shift would"
            )
            least = ". A truth that shows less on that event takes more"
        elif self.shape == "pilot":
            truth += " and shows on an event like the best one of the pilot"
        elif self.shape == "coin":
            truth += " and one event shows all of it, as in randomized response"
            least = f". This is the best case{_more_draws(c.at(self.actual))}"
        else:
            truth += f" with {self.shape.capitalize()} noise"
        seen = f" (by {simulated:,} simulated audits)" if simulated else ""
        test = f"an event of probability {self.event:.3g} on the rarer side; the rest find it"
        if not c.set_by_events:
            test = "events and a bound on the divergence; the rest learn them"
        made = f"{self.held_out:,} of them test {test}"
        return f"{self._doubts()}{refute}{seen} when {truth}, {at}. {made}{least}"

    def _doubts(self) -> str:
        """Arguments that may have been meant otherwise."""
        said, value = "", self.claim.value
        excess = 0.0 if self.actual is None or value <= 0 else self.actual / value - 1
        if excess > _PERCENT:
            said += f"an excess of {excess:g} is {100 * excess:,.0f} %; {excess:g} % is "
            said += f"{excess / 100:g}. "
        if self.confidence < 0.5:
            wrong = 1 - self.confidence
            said += f"with a confidence of {self.confidence:g} a true claim may be refuted with "
            said += f"probability {wrong:g}: did you mean {wrong:g}? "
        return said + "As given: " * bool(said)


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

    `dp.plan(claim, shape=…)` assumes a truth; `dp.plan(mechanism, pair, claim, pilot=…)` looks at one,
    and with an `excess` plans for a truth that is so much worse, on an event like the best of the pilot.
    Gaussian noise shows an excess over (ε, δ)-DP on rarer events; the plan is for it if it takes more.

    excess  by how much the truth exceeds the claim's parameter, relatively (absolutely at 0); default 0.1
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
    83
    >>> dp.plan(dp.PureDP(0.5), excess=1.0, event=0.184).held_out  # Laplace: below 0, e⁻¹/2
    169
    >>> found = dp.plan(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=0.5", pilot=2000)
    >>> 150 < found.draws < 500
    True
    """
    checks.probability("power", power)
    checks.probability("confidence", confidence)
    if train is not None:
        checks.probability("train", train)
    if mechanism is None and pair is None:
        mechanism, claim = claim, None
    if claim is not None:
        if event is not None or shape != "coin":
            raise InvalidInput("a pilot shows the event and the shape: leave event and shape out")
        size = checks.whole("pilot", pilot, at_least=_PILOT)
        goal = _Goal(as_claim(claim), power, confidence, train, loss)
        learner = _pilot(mechanism, pair, size, loss, rng, sampling)
        if excess is None:
            return _confirmed(_of_pilot(learner, goal), goal, mechanism, pair, size, rng)
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
    goal = _Goal(as_claim(mechanism), power, confidence, train, loss)
    if not isinstance(shape, str):
        found = _of_pilot(_pilot(shape, pair, pilot, loss, rng, sampling), goal)
        start = min(found.draws or 10 * pilot, _SIMULATED)
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
    if broken is None or found.draws is None or found.draws > _SIMULATED:
        return found
    return _simulated(found, goal, broken, (0.0, 1.0), found.draws, rng)


@dataclass(frozen=True)
class _Goal:
    """What an audit should achieve: refute a claim with a probability, at a confidence."""

    claim: Claim
    power: float
    confidence: float
    train: float | None = None  # the share of training draws that was asked for
    loss: Any = "auto"

    @property
    def share(self) -> float:
        return 0.25 if self.train is None else self.train

    @property
    def gamma(self) -> float:
        """The significance level of the test: a part of it may pay for a second bound."""
        return (1 - self.confidence) * (1 - SECOND * (self.claim.companion() is not None))

    def test(self, truth: Callable[[Any], Any], rarer: float) -> int | None:
        """The draws that test an event of this probability on the rarer side."""
        p = float(truth(rarer))
        return draws_needed(p, rarer, self.claim, self.gamma, self.power)

    def draws(self, held: int | None) -> int | None:
        """The draws of an audit of which so many test."""
        if held is None:
            return None
        return max(math.ceil(held / (1 - self.share)), held + _LEARN, _LEAST)

    def plan(self, held: int | None, **found: Any) -> Plan:
        """The plan of which so many draws test."""
        return Plan(
            claim=self.claim,
            power=self.power,
            confidence=self.confidence,
            held_out=held,
            draws=self.draws(held),
            **found,
        )


def _pilot(
    mechanism: Any, pair: Any, n: int, loss: Any, rng: Seed, sampling: Sampling | None
) -> CrossFit:
    """Draws of a mechanism to learn from."""
    (source,) = sources(check_mechanism(mechanism), pair, rng=rng, sampling=sampling)
    return CrossFit(source.deal((n, n)), loss, source.rng, pair=source.pair)


def _worse(claim: Claim, excess: float) -> tuple[float, Callable[[Any], Any]]:
    """The parameter of a truth that exceeds the claim, and P(event) of P(event) on the rarer side.

    Of a curve the truth is the curve moved by a Gaussian shift s: Φ(z + s) − Φ(z) is largest at
    z = −s/2, where it is 2Φ(s/2) − 1, which is the gap.
    """
    actual = claim.value * (1 + excess) if claim.value > 0 else excess
    if claim.parameter != "gap":
        return actual, claim.at(actual).region
    shift = 2 * ndtri((1 + min(actual, 1 - 1e-12)) / 2)
    return actual, lambda q: ndtr(ndtri(claim.region(q)) + shift)


def _best_rarity(truth: Callable[[Any], Any], goal: _Goal) -> float:
    """The probability, on the rarer side, of the event that tells a truth from a claim best.

    The largest distance per draw in the normal limit; the exact test often takes fewer draws at an event
    that is somewhat more likely. For a claim in δ the best probability is near 0.
    """
    q = 1 / (1 + np.exp(np.linspace(-0.5, 33.5, 237)))
    allowed, noise = normal_limit(q, 1, 1, goal.claim)
    best = float(q[int(np.argmax((truth(q) - allowed) / noise))])
    likelier = min(math.sqrt(2) * best, 0.5)
    return min((best, likelier), key=lambda rarer: goal.test(truth, rarer) or math.inf)


def _noise(shape: str, truth: Claim) -> Laplace | Gaussian:
    """Noise on the pair (0, 1) for which a claim is tight."""
    point, orders = truth.point, truth.orders
    if shape == "laplace" and point is not None:
        # δ(ε) = 1 − e^{(ε − s)/2} for Laplace noise of scale 1/s
        return Laplace(1 / (point[0] - 2 * math.log1p(-point[1])))
    if shape == "gaussian" and point is not None and point[1] > 0:
        return Gaussian(1 / gaussian_mu(*point))
    if shape == "gaussian" and isinstance(truth, GaussianDP):
        return Gaussian(1 / truth.mu)
    if shape == "gaussian" and orders:
        return Gaussian(math.sqrt(orders[0] / (2 * truth.divergence_limit(orders[0]))))
    raise InvalidInput(
        f"no {shape.capitalize()} noise has {truth} as its privacy; the shape laplace goes with ε-DP "
        "and (ε, δ)-DP, the shape gaussian with (ε, δ)-DP for δ > 0, Gaussian DP, Rényi DP and zCDP"
    )


def _noise_and_region(shape: str, truth: Claim) -> tuple[Laplace | Gaussian, Callable[[Any], Any]]:
    """That noise, and P(event) of P(event) on the rarer side."""
    law = _noise(shape, truth)
    return law, lambda q: 1 - law.tradeoff(q, (0.0, 1.0))


def _more_draws(truth: Claim) -> str:
    """That noise takes more draws than a coin, with the shapes that have this privacy."""
    fitting = []
    for shape in SHAPES[1:]:
        with suppress(InvalidInput):
            _noise(shape, truth)
            fitting.append(shape)
    return f": noise takes more (shape {' or '.join(fitting)})" if fitting else ""


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
    goal: _Goal,
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
    found: Plan, goal: _Goal, mechanism: Mechanism, pair: Any, start: int | None, rng: Seed
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

        draws = enough(_FEWEST, _SIMULATED) if start is None else start
        hits = 0 if draws is None else refuted(draws, _ROUNDS[0])
        if start is not None and 4 * hits < _ROUNDS[0]:  # a pilot may suggest too few
            draws = enough(_FACTOR * start, min(_FAR * start, _SIMULATED))
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
            draws = max(math.ceil(min(max(wanted, draws / _STEP), draws * _STEP)), _LEAST)
    held = round(draws * (1 - goal.share))
    return replace(found, simulated=bar.done, draws=draws, held_out=held)


def _confirmed(found: Plan, goal: _Goal, mechanism: Any, pair: Any, pilot: int, rng: Seed) -> Plan:
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
    least, most = (math.ceil(end * draws / first) for end in (found.least, found.most))
    held = math.floor(draws * (1 - goal.share))
    return replace(found, draws=draws, held_out=held, least=least, most=most)


def _of_pilot(learner: CrossFit, goal: _Goal) -> Plan:
    """The plan for an excess as large as a pilot shows on the best event that it finds."""
    distance, pilot = float(ndtri(goal.power) + ndtri(goal.confidence)), len(learner.batch.p)
    test = 10 * pilot
    for _ in range(4):  # the best event depends on how many draws will test it
        best = _best_event(learner, goal.claim, test, 1 - goal.confidence)
        if best.z <= 0:
            break
        test = int(min(max(test * (distance / best.z) ** 2, _LEARN), _MOST))
    error = math.sqrt(test / pilot)  # the standard error of z at as many draws as test
    if best.z <= 0 or distance <= error:
        return goal.plan(None, shape="pilot", actual=None, event=best.low)
    least, most = (
        goal.draws(math.ceil(test * (distance / z) ** 2))
        for z in (distance + error, distance - error)
    )
    return goal.plan(test, shape="pilot", actual=None, event=best.low, least=least, most=most)


def _beyond_pilot(learner: CrossFit, goal: _Goal, excess: float) -> Plan:
    """The plan for a given excess on an event like the best of a pilot.

    A mechanism that keeps its claim still breaks half of it, on events on which it is about as bad as it
    can be: an excess is expected there. If it does not, the best of all events is assumed. For (ε, δ)-DP
    the plan is for Gaussian noise if that takes more draws.
    """
    claim, gamma, pilot = goal.claim, 1 - goal.confidence, len(learner.batch.p)
    if _best_event(learner, claim, pilot, gamma).z > ndtri(goal.confidence) + 3:
        return _of_pilot(learner, goal)  # which is a violation by itself
    rarer = _best_rarity(_worse(claim, excess)[1], goal)
    if claim.value > 0:
        best = _best_event(learner, claim.at(claim.value / 2), 10 * pilot, gamma)
        rarer = max(best.low, 0.5 / pilot) if best.z > 0 else rarer
    found = [_for_excess(goal, excess, rarer)]
    if gaussian_needs_more_draws(claim):
        found.append(_for_excess(goal, excess, None))
    return max(found, key=lambda one: one.draws or math.inf)


def gaussian_needs_more_draws(claim: Claim) -> bool:
    """Whether Gaussian noise shows an excess on rarer events only: that of ε where δ > 0."""
    return claim.parameter == "epsilon" and claim.point is not None and claim.point[1] > 0


def _for_excess(goal: _Goal, excess: float, event: float | None) -> Plan:
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
    return _for_excess(_Goal(claim, 0.9, confidence), excess, None).draws or math.inf


def smallest_excess(
    claim: Claim, draws: int, confidence: float, event: float | None, most: float
) -> float:
    """The smallest excess that so many draws detect as `_for_excess` plans; ∞ above `most`."""
    goal = _Goal(claim, 0.9, confidence)
    value = claim.value
    most = min(most, 0.99 * claim.largest / value - 1 if value else 0.99 * claim.largest)

    def detected(excess: float) -> bool:
        return (_for_excess(goal, excess, event).draws or math.inf) <= draws

    return float(bisect(detected, most, 0.0, close=0.01)[0]) if detected(most) else math.inf


def _best_event(learner: CrossFit, claim: Claim, test: int, gamma: float) -> ThresholdEvent:
    """The event of a pilot that is most likely to refute the claim with so many draws, as counted."""
    criterion = EventCriterion(claim, (test, test), gamma, caution=_CAUTION, calibrate=False)
    return select_events(learner, criterion)[0].threshold
