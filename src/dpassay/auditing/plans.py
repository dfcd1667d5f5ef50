"""How many draws an audit needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpassay import validation as checks
from dpassay.bounds.power import draws_needed, normal_limit
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import level
from dpassay.tables import Shown

#: An audit makes no fewer draws a side, and learns from no fewer.
_LEAST, _LEARN = 8, 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(Shown):
    """How many draws an audit needs."""

    claim: Claim
    actual: float
    power: float
    confidence: float
    event: float
    held_out: int | None
    draws: int | None

    def __str__(self) -> str:
        c = self.claim
        if self.draws is None:
            return f"no number of draws up to 10⁹ tells {c} from {c.at(self.actual)}"
        truth, less = f"is {c.at(self.actual)}", ""
        if c.parameter == "gap":
            truth = f"falls short of it by up to {self.actual:g}, as a Gaussian shift would"
            less = ". A truth that shows less on that event takes more"
        return (
            f"about {self.draws:,} draws a side refute {c} with probability {self.power:g} when the "
            f"truth {truth}, at confidence {level(self.confidence)}: {self.held_out:,} of them test an "
            f"event of probability {self.event:.3g} on the rarer side, the rest find it{less}"
        )


def plan(
    claim: Claim | str,
    *,
    excess: float = 0.1,
    power: float = 0.9,
    confidence: float = 0.95,
    event: float | None = None,
    train: float = 0.25,
) -> Plan:
    """About how many draws a side refute a claim with a given probability: a guide, nothing certified.

    The truth is taken to exceed the claim's parameter by `excess`, relatively (absolutely where the
    parameter is 0), on an event of probability `event` on the rarer side; by default on the one that
    shows most, which only some mechanisms have (randomized response does, the Laplace mechanism needs
    half as many again): a lower bound for an unknown one. Of a curve, such as an accountant's, the truth
    is the curve moved by a Gaussian shift, Φ(Φ⁻¹(f(α)) − s), which falls short of it by `excess` at most;
    more noise than is claimed looks so. Rényi and zCDP claims are planned by their events, which is more
    than their audit needs.

    >>> import dpassay as dp
    >>> dp.plan(dp.PureDP(0.5), excess=1.0).held_out
    98
    >>> dp.plan(dp.PureDP(0.5), excess=1.0, event=0.184).held_out  # Laplace: below 0, e⁻¹/2
    169
    """
    read = as_claim(claim)
    checks.real("excess", excess, above=0.0)
    checks.probability("power", power)
    checks.probability("train", train)
    gamma = 1 - checks.probability("confidence", confidence)
    actual = read.value * (1 + excess) if read.value > 0 else excess
    truth = _shifted(read, actual) if read.parameter == "gap" else read.at(actual).region
    if event is not None:
        rarer = checks.probability("event", event)
    else:
        q = 1 / (1 + np.exp(np.linspace(-0.5, 8, 60)))
        allowed, noise = normal_limit(q, 1, 1, read)
        # the fewest draws go with the largest distance per draw
        rarer = float(q[int(np.argmax((truth(q) - allowed) / noise))])
    held = draws_needed(float(truth(rarer)), rarer, read, gamma, power)
    return Plan(
        claim=read,
        actual=actual,
        power=power,
        confidence=confidence,
        event=rarer,
        held_out=held,
        draws=None if held is None else max(math.ceil(held / (1 - train)), held + _LEARN, _LEAST),
    )


def _shifted(claim: Claim, gap: float) -> Callable[[Any], Any]:
    """P(event) on the likelier side, of P(event) on the other, if the curve is moved by a Gaussian shift.

    Φ(z + s) − Φ(z) is largest at z = −s/2, where it is 2Φ(s/2) − 1: that is the gap.
    """
    shift = 2 * ndtri((1 + min(gap, 1 - 1e-12)) / 2)

    def likelier(q: Any) -> Any:
        return ndtr(ndtri(claim.region(q)) + shift)

    return likelier
