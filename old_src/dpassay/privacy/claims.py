"""All kinds of claims, in one import: a claim can be read from JSON once its class is imported."""

from dpassay.privacy.divergence_claims import (
    DivergenceClaim,
    RenyiCurveDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpassay.privacy.event_claims import ApproximateDP, Claim, GaussianDP, PureDP, gaussian_mu
from dpassay.privacy.tradeoff_claims import TradeoffDP

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
    "gaussian_mu",
]
