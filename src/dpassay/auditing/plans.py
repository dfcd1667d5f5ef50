"""Sample size and power: how many draws an audit needs.

A claim alone does not tell how many: that depends on how the excess shows in the outputs. A plan assumes
a shape of the two output distributions, or takes it from a pilot sample. The closed form gives the draws
that test a known event (the power of the exact joint test); what the search for the event costs is
measured by simulated audits of a mechanism of that shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpassay import validation as checks
from dpassay.auditing.audits import Options, audit
from dpassay.blackbox.mechanism import Mechanism, check_mechanism
from dpassay.blackbox.zoo import Gaussian, Laplace
from dpassay.bounds.power import draws_needed, normal_limit
from dpassay.errors import InvalidInput
from dpassay.learning.cross_fit import CrossFit
from dpassay.learning.event_selection import EventCriterion, select_events
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim, GaussianDP
from dpassay.privacy.provenance import level
from dpassay.rootfinding import bisect
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import Progress
from dpassay.sampling.samples import Source, sources
from dpassay.tables import Shown

#: An audit makes no fewer draws a side, and learns from no fewer.
_LEAST, _LEARN = 8, 4
#: Shapes that can be assumed.
SHAPES = ("coin", "laplace", "gaussian")
#: Simulated audits, round after round, each with the draws that the rounds before suggest.
_ROUNDS = (40, 80, 200)
#: Plans of more draws than these are not simulated.
_SIMULATED = 1_000_000
#: The fewest draws of a pilot, and how many times the penalty for many thresholds is subtracted there.
_PILOT, _CAUTION = 100, 1.5
#: The most draws that are planned.
_MOST = 10**9


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(Shown):
    """How many draws an audit needs, under a stated assumption."""

    claim: Claim
    shape: str  # "coin", "laplace", "gaussian", or "pilot"
    actual: float | None  # the parameter of the assumed truth; None where a pilot shows it
    power: float
    confidence: float
    event: float
    held_out: int | None
    draws: int | None
    simulated: int | None = None  # audits that were simulated to find the draws
    least: int | None = None  # by a pilot: draws if the excess is a standard error larger
    most: int | None = None  # and smaller

    def __str__(self) -> str:
        c = self.claim
        if self.shape == "pilot":
            return self._of_pilot()
        assert self.actual is not None
        truth = f"the truth is {c.at(self.actual)}"
        if self.draws is None:
            return f"no number of draws up to 10⁹ tells {c} from {c.at(self.actual)}"
        least = ""
        if c.parameter == "gap":
            truth = (
                f"the truth falls short of it by up to {self.actual:g}, as a Gaussian shift would"
            )
            least = ". A truth that shows less on that event takes more"
        elif self.shape == "coin":
            truth += " and one event shows all of it, as in randomized response"
            least = '. This is the best case: shape="laplace" or "gaussian", or a pilot, plan for others'
        else:
            truth += f" with {self.shape.capitalize()} noise"
        seen = ""
        if self.simulated is not None:
            seen = f" (by {self.simulated:,} simulated audits)"
        return (
            f"about {self.draws:,} draws a side refute {c} with probability {self.power:g}{seen} when "
            f"{truth}, at confidence {level(self.confidence)}: {self.held_out:,} of them test an event "
            f"of probability {self.event:.3g} on the rarer side, the rest find it{least}"
        )

    def _of_pilot(self) -> str:
        if self.draws is None:
            return (
                f"the pilot shows no excess over {self.claim} beyond its standard error: either the "
                "claim holds on this pair, or the pilot is too small (give a larger pilot=)"
            )
        return (
            f"about {self.draws:,} draws a side refute {self.claim} with probability {self.power:g} if "
            f"the excess is what the pilot shows, at confidence {level(self.confidence)}; "
            f"{self.least:,} if it is one standard error larger, {self.most:,} if it is one smaller"
        )


def plan(
    mechanism: Any = None,
    pair: Any = None,
    claim: Claim | str | None = None,
    *,
    excess: float = 0.1,
    shape: str = "coin",
    power: float = 0.9,
    confidence: float = 0.95,
    event: float | None = None,
    train: float | None = None,
    pilot: int = 500,
    rng: Seed = 0,
    sampling: Sampling | None = None,
) -> Plan:
    """About how many draws a side refute a claim with a given probability: a guide, nothing certified.

    `dp.plan(claim, shape=…)` assumes a truth, `dp.plan(mechanism, pair, claim, pilot=…)` looks at one.

    excess  by how much the truth exceeds the claim's parameter, relatively (absolutely where it is 0)
    shape   how the excess shows. "coin": in one event, as in randomized response, which is the best case.
            "laplace", "gaussian": noise of that kind which is too small; the plan is then adjusted until
            simulated audits have the power asked for. Of a curve, such as an accountant's, the truth is
            the curve moved by a Gaussian shift, Φ(Φ⁻¹(f(α)) − s)
    event   the probability, on the rarer side, of the event that shows a "coin"; by default the best one
    train   the share of the draws that learn, a quarter by default
    pilot   draws a side on the pair, from which the excess is estimated; they certify nothing and are
            not part of the audit

    Rényi and zCDP claims are planned by their events, which is more than their audit needs, unless they
    are simulated.

    >>> import dpassay as dp
    >>> dp.plan(dp.PureDP(0.5), excess=1.0).held_out
    98
    >>> dp.plan(dp.PureDP(0.5), excess=1.0, event=0.184).held_out  # Laplace: below 0, e⁻¹/2
    169
    >>> found = dp.plan(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=0.5", pilot=2000)
    >>> 150 < found.draws < 500
    True
    """
    checks.probability("power", power)
    share = 0.25 if train is None else checks.probability("train", train)
    gamma = 1 - checks.probability("confidence", confidence)
    if mechanism is None and pair is None:
        mechanism, claim = claim, None
    if claim is not None:
        check_mechanism(mechanism)
        (source,) = sources(mechanism, pair, rng=rng, sampling=sampling)
        size = checks.whole("pilot", pilot, at_least=_PILOT)
        return _of_pilot(source, size, as_claim(claim), power, confidence, share)
    if pair is not None:
        raise InvalidInput(
            "a plan is made of a claim alone, or of a mechanism, a pair and a claim: give the claim too"
        )
    read = as_claim(mechanism)
    checks.real("excess", excess, above=0.0)
    checks.one_of("shape", shape, SHAPES)
    actual = read.value * (1 + excess) if read.value > 0 else excess
    tested = read
    truth = _shifted(read, actual) if read.parameter == "gap" else read.at(actual).region
    assumed = None
    if shape != "coin":
        if event is not None:
            raise InvalidInput(f"event={event!r} is for shape='coin': {shape} noise has its own")
        assumed = law = _noise(shape, read.at(actual))
        if not read.set_by_events:  # simulated audits say what their divergences show beyond events
            tested = read.gaussian_proxy()

        def truth(q: Any) -> Any:
            return 1 - law.tradeoff(q, (0.0, 1.0))

    if event is not None:
        rarer = checks.probability("event", event)
    else:
        q = 1 / (1 + np.exp(np.linspace(-0.5, 8, 60)))
        allowed, noise = normal_limit(q, 1, 1, tested)
        # the fewest draws go with the largest distance per draw
        rarer = float(q[int(np.argmax((truth(q) - allowed) / noise))])
    held = draws_needed(float(truth(rarer)), rarer, tested, gamma, power)
    draws, simulated = _with_training(held, share), None
    if assumed is not None and draws is not None and draws <= _SIMULATED:
        draws = _simulated(assumed, read, draws, power, confidence, train, rng)
        simulated = sum(_ROUNDS)
        held = round(draws * (1 - share))
    return Plan(
        claim=read,
        shape=shape,
        actual=actual,
        power=power,
        confidence=confidence,
        event=rarer,
        held_out=held,
        draws=draws,
        simulated=simulated,
    )


def _with_training(held: int | None, train: float) -> int | None:
    """The draws of an audit of which so many test."""
    return None if held is None else max(math.ceil(held / (1 - train)), held + _LEARN, _LEAST)


def _shifted(claim: Claim, gap: float) -> Callable[[Any], Any]:
    """P(event) on the likelier side, of P(event) on the other, if the curve is moved by a Gaussian shift.

    Φ(z + s) − Φ(z) is largest at z = −s/2, where it is 2Φ(s/2) − 1: that is the gap.
    """
    shift = 2 * ndtri((1 + min(gap, 1 - 1e-12)) / 2)

    def likelier(q: Any) -> Any:
        return ndtr(ndtri(claim.region(q)) + shift)

    return likelier


def _noise(shape: str, truth: Claim) -> Laplace | Gaussian:
    """Noise on the pair (0, 1) for which a claim is tight."""
    point, orders = truth.point, truth.orders
    if shape == "laplace" and point is not None:
        # δ(ε) = 1 − e^{(ε − s)/2} for Laplace noise of scale 1/s
        return Laplace(1 / (point[0] - 2 * math.log1p(-point[1])))
    if shape == "gaussian" and point is not None and point[1] > 0:
        keeps = bisect(lambda mu: GaussianDP(mu).delta_at(point[0]) <= point[1], 0.0, 100.0)[0]
        return Gaussian(1 / keeps)
    if shape == "gaussian" and isinstance(truth, GaussianDP):
        return Gaussian(1 / truth.mu)
    if shape == "gaussian" and orders:
        return Gaussian(math.sqrt(orders[0] / (2 * truth.divergence_limit(orders[0]))))
    raise InvalidInput(
        f"no {shape.capitalize()} noise has {truth} as its privacy; shape='laplace' goes with ε-DP and "
        "(ε, δ)-DP, shape='gaussian' with (ε, δ)-DP for δ > 0, Gaussian DP, Rényi DP and zCDP"
    )


def _simulated(
    mechanism: Mechanism,
    claim: Claim,
    draws: int,
    power: float,
    confidence: float,
    train: float | None,
    rng: Seed,
) -> int:
    """Draws at which audits have the power asked for.

    The power of a test at level γ is about Φ(c √n − Φ⁻¹(1 − γ)). c is estimated by maximum likelihood
    from all rounds, the last of which are near the draws that are sought.
    """
    goal, critical = float(ndtri(power)), float(ndtri(confidence))
    seeds = iter(np.random.default_rng(rng).integers(2**62, size=sum(_ROUNDS)).tolist())
    silent = Sampling(progress=False)
    rates = np.geomspace(0.2, 5.0, 400) * (goal + critical) / math.sqrt(draws)  # candidates for c
    likelihood = np.zeros(rates.size)
    with Progress(sum(_ROUNDS), "simulating", unit="audits") as bar:
        for runs in _ROUNDS:
            hits = 0
            for _ in range(runs):
                options: Options = {"n": draws, "confidence": confidence, "train": train}
                options |= {"rng": next(seeds), "sampling": silent}
                hits += audit(mechanism, (0.0, 1.0), claim, **options).violated
                bar.advance(1)
            z = rates * math.sqrt(draws) - critical
            likelihood += hits * log_ndtr(z) + (runs - hits) * log_ndtr(-z)
            best = float(rates[int(np.argmax(likelihood))])
            draws = max(math.ceil(((goal + critical) / best) ** 2), _LEAST)
    return draws


def _of_pilot(
    source: Source, pilot: int, claim: Claim, power: float, confidence: float, train: float
) -> Plan:
    """The plan for an excess as large as a pilot shows on the best event that it finds."""
    learner = CrossFit(source.deal((pilot, pilot)), "auto", source.rng, pair=source.pair)
    goal, gamma = float(ndtri(power) + ndtri(confidence)), 1 - confidence
    test = 10 * pilot
    for _ in range(4):  # the best event depends on how many draws will test it
        criterion = EventCriterion(claim, (test, test), gamma, caution=_CAUTION)
        best = select_events(learner, criterion)[0].threshold
        if best.z <= 0:
            break
        test = int(min(max(test * (goal / best.z) ** 2, _LEARN), _MOST))
    error = math.sqrt(test / pilot)  # the standard error of z at as many draws as test
    draws = least = most = None
    if best.z > 0 and goal > error:
        draws, least, most = (
            _with_training(math.ceil(test * (goal / z) ** 2), train)
            for z in (goal, goal + error, goal - error)
        )
    return Plan(
        claim=claim,
        shape="pilot",
        actual=None,
        power=power,
        confidence=confidence,
        event=best.low,
        held_out=None if draws is None else test,
        draws=draws,
        least=least,
        most=most,
    )
