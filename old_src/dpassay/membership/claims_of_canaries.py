"""Claims that canaries test: about events, for both orders of the inputs; and the ε beside a curve."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import ApproximateDP, Claim, GaussianDP, PureDP, gaussian_mu
from dpassay.privacy.event_claims import SMALL_DELTA, digits
from dpassay.sampling.progress import claim_with_progress


def tested_claim(given: Any, delta: float | None) -> Claim:
    """The claim to test: the one given, or ε = 0 at δ for a lower bound."""
    if given is None:
        at = checks.real("delta", 0.0 if delta is None else delta, at_least=0.0, below=1.0)
        return ApproximateDP(0.0, at) if at else PureDP(0.0)
    if delta is not None and isinstance(given, Real):
        given = PureDP(float(given))  # of which the message below says how to write it with δ
    claim = claim_with_progress(given)
    if delta is not None and claim.point is not None and delta != claim.point[1]:
        got = checks.shown(delta)
        both = f'write claim="eps={digits(claim.point[0])}, delta={got}"'
        remedy = "leave delta out" if claim.point[1] else both
        raise InvalidInput(f"{claim} says its own δ, got delta = {got}; {remedy}")
    if not claim.set_by_events:
        raise InvalidInput(
            f"{claim} is a claim about divergences, which guesses do not test in full; give what it "
            "implies: eps and delta, mu, or a trade-off function"
        )
    if claim.directional:
        raise InvalidInput(
            "a coin takes a canary out as well as in, and this trade-off function is claimed for one "
            "order of the inputs; make the claim without ordered=True"
        )
    return claim


def epsilon_beside(claim: Claim, given: Any, delta: float | None) -> ApproximateDP | None:
    """The ε that a curve claims at δ, which is bounded beside it; None for a claim of one ε."""
    if claim.point is not None:
        return None
    at = SMALL_DELTA if delta is None else checks.real("delta", delta, above=0.0, below=1.0)
    try:  # an accountant's own answer, which the curve made of its answers may exceed a little
        epsilon = max(float(given.get_epsilon(at)), 0.0)
    except Exception:  # objects raise what they like
        epsilon = claim.epsilon_at(at)
    return ApproximateDP(epsilon, at) if math.isfinite(epsilon) else None


def gaussian_allowed(claim: Claim, beside: ApproximateDP | None) -> tuple[GaussianDP, str]:
    """The μ-GDP with the ε and δ of a curve at one point, and where that is."""
    if beside is not None:
        return GaussianDP(gaussian_mu(beside.epsilon, beside.delta)), at_delta(beside)
    # the ε at which it allows least
    points = [(e, float(claim.delta_at(e))) for e in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)]
    mu, epsilon = min((gaussian_mu(*point), point[0]) for point in points)
    return GaussianDP(mu), f"ε = {epsilon:g}"


def at_delta(claim: ApproximateDP) -> str:
    """The δ of a claim, in words."""
    return f"δ = {digits(claim.delta)}"
