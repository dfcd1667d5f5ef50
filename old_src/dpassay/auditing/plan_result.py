"""What a plan says: how many draws an audit needs, under a stated assumption."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpassay.blackbox.zoo import Gaussian, Laplace
from dpassay.bounds.power import draws_needed
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import Claim, GaussianDP, gaussian_mu
from dpassay.privacy.provenance import level
from dpassay.results.estimates import SECOND
from dpassay.sampling.budget import ENOUGH, TRAIN, training
from dpassay.tables import Shown

#: An audit makes no fewer draws a side, and learns from no fewer.
LEAST, FEWEST_LEARN = 8, 4
#: Shapes that can be assumed.
SHAPES = ("coin", "laplace", "gaussian")
#: Plans of more draws than these are not simulated.
SIMULATED = 1_000_000
#: An excess above this may be a percentage.
_PERCENT = 5.0


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
                return f"simulated audits of up to {SIMULATED:,} draws a side do not tell {two}"
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
            truth = f"type II errors are up to {self.actual:g} below the claimed curve, "
            truth += "as with a Gaussian shift"
            least = ". The excess is this gap and no share of ε. A truth that shows less takes more"
        elif self.shape == "pilot":
            truth += " and shows on an event like the best one of the pilot"
        elif self.shape == "coin":
            truth += " and one event shows all of it, as in randomized response"
            least = f". This is the best case{more_draws(c.at(self.actual))}"
        else:
            truth += f" with {self.shape.capitalize()} noise"
        seen = f" (by {simulated:,} simulated audits)" if simulated else ""
        test = f"an event of probability {round(self.event, 12):.3g} on the rarer side; the rest find it"
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
        return said + "As given: " * bool(said)


@dataclass(frozen=True)
class Goal:
    """What an audit should achieve: refute a claim with a probability, at a confidence."""

    claim: Claim
    power: float
    confidence: float
    train: float | None = None  # the share of training draws that was asked for
    loss: Any = "auto"

    def testing(self, draws: int) -> int:
        """How many of so many draws test."""
        return draws - training(draws, self.train)

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
        if self.train is None:
            found = min(math.ceil(held / (1 - TRAIN)), held + ENOUGH)
        else:
            found = math.ceil(held / (1 - self.train))
        return max(found, held + FEWEST_LEARN, LEAST)

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


def noise_of(shape: str, truth: Claim) -> Laplace | Gaussian:
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


def more_draws(truth: Claim) -> str:
    """That noise takes more draws than a coin, with the shapes that have this privacy."""
    fitting = []
    for shape in SHAPES[1:]:
        with suppress(InvalidInput):
            noise_of(shape, truth)
            fitting.append(shape)
    return f": noise takes more (shape {' or '.join(fitting)})" if fitting else ""
