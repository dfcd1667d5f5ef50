"""The bound on the other parameter, δ beside ε or ε beside δ, and the share of γ set aside for it."""

from __future__ import annotations

from collections.abc import Sequence

from dpassay.bounds import joint_test as joint
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import smallest_detectable
from dpassay.privacy.claims import Claim
from dpassay.results.verdict import SECOND, SecondBound


def second_bound(tests: Sequence[tuple[Counts, float]], claim: Claim) -> SecondBound | None:
    """The largest bound on another parameter that the same counts give, each with a share of its γ.

    For an (ε, δ) claim that is the parameter which is not its headline. For a curve, whose gap means
    little to people, it is ε at a δ that is fixed for all audits. A tenth of γ pays for it, whatever
    comes out: both bounds hold at once.
    """
    other = claim.turned()
    if other is None or not tests:
        return None
    tests = [(counts, SECOND * gamma) for counts, gamma in tests]
    bounds = joint.lower_bounds(tests, other)
    lower = max(bounds)
    counts, level = tests[bounds.index(lower)]
    at = "" if claim.point is not None or other.point is None else f"δ = {other.point[1]:g}"
    return SecondBound(
        symbol=other.symbol,
        claimed=other.value,
        lower=lower,
        smallest_detectable=smallest_detectable(counts, other, level),
        at=at,
    )
