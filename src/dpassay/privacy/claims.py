"""Privacy claims, as constraints on events.

Every claim says, for all neighbouring inputs and every event E, P(E) ≤ g(Q(E)) with g concave and
increasing; g is `region`, and 1 − g is the claim's trade-off function. For pure DP, (ε,δ), GDP and
trade-off curves this is the whole claim; for Rényi and zCDP it is only implied by it
(`set_by_events` is False there), so events alone cannot refute every false claim of that kind.

Where a claim has to be tabulated or solved for, errors fall on its own side: `region` is never
below the true g, so a claim is never refuted for our rounding.
"""

from dpassay.privacy.claim_base import Claim
from dpassay.privacy.divergence_claims import (
    DivergenceClaim,
    RenyiCurveDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpassay.privacy.event_claims import ApproximateDP, GaussianDP, PureDP, TradeoffDP

__all__ = [
    "ApproximateDP",
    "Claim",
    "DivergenceClaim",
    "GaussianDP",
    "PureDP",
    "RenyiCurveDP",
    "RenyiDP",
    "TradeoffDP",
    "ZeroConcentratedDP",
]
