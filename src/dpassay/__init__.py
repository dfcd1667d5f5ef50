"""dpassay: how private is this mechanism really? Measured from its outputs alone.

    import dpassay as dp

    def mechanism(x, size, rng):
        return x + rng.laplace(scale=1.0, size=size)

    print(dp.audit(mechanism, (0.0, 1.0), dp.PureDP(0.5), n=10_000, rng=0))

Everything is imported on first use, so that `import dpassay` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpassay._version import __version__

if TYPE_CHECKING:
    from dpassay import charts, errors
    from dpassay.audits import audit
    from dpassay.blackbox import neighbours, zoo
    from dpassay.blackbox.mechanism import Mechanism, Outcome, from_command, from_function
    from dpassay.notions import pure, renyi, spectrum, tradeoff
    from dpassay.privacy.about import About, Guarantee
    from dpassay.privacy.claims import (
        ApproximateDP,
        Claim,
        GaussianDP,
        PureDP,
        RenyiDP,
        TradeoffDP,
        ZeroConcentratedDP,
    )
    from dpassay.privacy.curves import LossCurve, RenyiCurve, Spectrum, TradeoffCurve
    from dpassay.privacy.masses import Masses
    from dpassay.privacy.pairs import Pair, Relation
    from dpassay.privacy.text import claim
    from dpassay.results import (
        Estimate,
        Event,
        LowerBound,
        Profile,
        TradeoffPoint,
        Verdict,
        Witness,
    )
    from dpassay.sampling.draw import Sampling
    from dpassay.sampling.samples import Samples, draw, from_samples
    from dpassay.verdicts import Plan, audit_counts, estimate, plan, replay

#: Where each public name lives; a name that maps to itself as a module ends in a dot.
_HOMES = {
    "About": "privacy.about",
    "ApproximateDP": "privacy.claims",
    "Claim": "privacy.claims",
    "Estimate": "results",
    "Event": "results",
    "GaussianDP": "privacy.claims",
    "Guarantee": "privacy.about",
    "LossCurve": "privacy.curves",
    "LowerBound": "results",
    "Masses": "privacy.masses",
    "Mechanism": "blackbox.mechanism",
    "Outcome": "blackbox.mechanism",
    "Pair": "privacy.pairs",
    "Plan": "verdicts",
    "Profile": "results",
    "PureDP": "privacy.claims",
    "Relation": "privacy.pairs",
    "RenyiCurve": "privacy.curves",
    "RenyiDP": "privacy.claims",
    "Samples": "sampling.samples",
    "Sampling": "sampling.draw",
    "Spectrum": "privacy.curves",
    "TradeoffCurve": "privacy.curves",
    "TradeoffDP": "privacy.claims",
    "TradeoffPoint": "results",
    "Verdict": "results",
    "Witness": "results",
    "ZeroConcentratedDP": "privacy.claims",
    "audit": "audits",
    "audit_counts": "verdicts",
    "charts": ".",
    "claim": "privacy.text",
    "draw": "sampling.samples",
    "errors": ".",
    "estimate": "verdicts",
    "from_command": "blackbox.mechanism",
    "from_function": "blackbox.mechanism",
    "from_samples": "sampling.samples",
    "neighbours": "blackbox.",
    "plan": "verdicts",
    "pure": "notions.",
    "renyi": "notions.",
    "replay": "verdicts",
    "spectrum": "notions.",
    "tradeoff": "notions.",
    "zoo": "blackbox.",
}

__all__ = [
    "About",
    "ApproximateDP",
    "Claim",
    "Estimate",
    "Event",
    "GaussianDP",
    "Guarantee",
    "LossCurve",
    "LowerBound",
    "Masses",
    "Mechanism",
    "Outcome",
    "Pair",
    "Plan",
    "Profile",
    "PureDP",
    "Relation",
    "RenyiCurve",
    "RenyiDP",
    "Samples",
    "Sampling",
    "Spectrum",
    "TradeoffCurve",
    "TradeoffDP",
    "TradeoffPoint",
    "Verdict",
    "Witness",
    "ZeroConcentratedDP",
    "__version__",
    "audit",
    "audit_counts",
    "charts",
    "claim",
    "draw",
    "errors",
    "estimate",
    "from_command",
    "from_function",
    "from_samples",
    "neighbours",
    "plan",
    "pure",
    "renyi",
    "replay",
    "spectrum",
    "tradeoff",
    "zoo",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dpassay' has no attribute {name!r}")
    if home.endswith("."):
        value: Any = importlib.import_module(
            f"dpassay.{home.rstrip('.')}.{name}".replace("..", ".")
        )
    else:
        value = getattr(importlib.import_module(f"dpassay.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
