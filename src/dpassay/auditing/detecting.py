"""Audits that detect a given excess over a claim: `detects=` of test suites."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dpassay import validation as checks
from dpassay.auditing.audits import audit
from dpassay.auditing.plans import (
    Plan,
    gaussian_needs_more_draws,
    plan,
    smallest_excess,
)
from dpassay.blackbox.library_objects import claim_on
from dpassay.errors import AuditTooWeak, InvalidInput
from dpassay.privacy.claims import ApproximateDP, Claim, gaussian_mu
from dpassay.results.verdict import Verdict
from dpassay.sampling.draw import Sampling, Seed

#: Draws a side of the pilot that `detects` plans with, and the most of the test.
_PILOT, _MOST_DRAWS = 2000, 10_000_000

#: The shares of flake of up to three audits of `detects`, and how near to its excess they come.
_TRIES, _CLOSE = (0.5, 0.25, 0.25), 1.05

#: `detects` is below this.
_LARGEST_EXCESS = 3.0


def audit_detecting(
    detects: float,
    mechanism: Any,
    pairs: Any,
    claim: Any,
    *,
    n: int | None,
    seconds: float | None,
    confidence: float,
    rng: Seed,
    sampling: Sampling,
    **options: Any,
) -> Verdict:
    """An audit that detects a relative excess: a pilot plans the draws of the pair that takes most.

    It is repeated with more draws where its event would not show the excess. Every audit has its share
    of the error probability.
    """
    if n is not None or seconds is not None:
        raise InvalidInput("detects chooses the draws: leave n and seconds out")
    checks.real("detects", detects, above=0.0, below=_LARGEST_EXCESS, remedy="20 % is 0.2")
    shares = [share * (1 - confidence) for share in _TRIES]
    made = max(
        (
            plan(
                mechanism,
                pair,
                claim_on(claim, mechanism, pair),
                excess=detects,
                confidence=1 - shares[0],
                pilot=_PILOT,
                rng=rng,
                sampling=replace(sampling, progress=False),
            )
            for pair in (pairs if isinstance(pairs, list) else [pairs])
        ),
        key=lambda one: one.draws or math.inf,
    )
    if made.draws is None or made.draws > _MOST_DRAWS:
        raise AuditTooWeak(_unreachable(made, detects), None)
    n = max(made.draws, _PILOT)
    options |= {"rng": rng, "sampling": sampling}
    for share in shares:
        found: Verdict = audit(mechanism, pairs, claim, n=n, confidence=1 - share, **options)
        if n == _MOST_DRAWS or not _misses(found, detects):
            break
        times = 4.0
        if math.isfinite(found.smallest_detectable or math.inf):
            times = _excess(found, detects) ** 2
        n = min(math.ceil(1.2 * n * min(max(times, 1.0), 16.0)), _MOST_DRAWS)
    return found


def _excess(verdict: Verdict, detects: float) -> float:
    """The smallest excess that an audit detects, over the one that it is to detect; 0 if not known."""
    least, value = verdict.smallest_detectable, verdict.claim.value
    return 0.0 if least is None else (least - value) / (detects * (value or 1.0))


def _misses(verdict: Verdict, detects: float) -> bool:
    """Whether an audit that refuted nothing would not have shown the excess, up to a few percent."""
    return not verdict.violated and _excess(verdict, detects) > _CLOSE


def _missed(verdict: Verdict, detects: float, draws: int) -> str:
    """That an audit would have missed the excess which it was to detect, and what helps."""
    claim = verdict.claim
    wanted = claim.at(claim.value + detects * (claim.value or 1.0)).short
    said = (
        f"detects = {detects:g} is to detect {wanted} where {claim.short} is claimed; with {draws:,} "
        f"draws a side {verdict.caught or 'no excess would be detected with probability 0.9'}. "
        f"{_remedies(detects * _excess(verdict, detects), f'above {draws:,}')}"
    )
    if isinstance(claim, ApproximateDP) and claim.delta and claim.headline == "epsilon":
        said += (
            ". Events about as likely as δ show little of an excess of ε. To detect an excess of δ claim "
            f'dp.ApproximateDP({claim.epsilon}, {claim.delta}, headline="delta")'
        )
    return said


def _unreachable(made: Plan, detects: float) -> str:
    """That a test cannot make as many draws as an excess takes, and what helps."""
    claim, gaussian = made.claim, made.shape == "gaussian"
    takes = "more than 10⁹" if made.draws is None else f"about {made.draws:,}"
    event: float | None = made.event
    shows = "on an event like the best of a pilot"
    if gaussian:
        shows, event = "for Gaussian noise", None
    possible = smallest_excess(claim, _MOST_DRAWS, made.confidence, event, _LARGEST_EXCESS)
    detected = f"about {100 * possible:.3g} %"
    if math.isinf(possible):
        detected = f"none below {100 * _LARGEST_EXCESS:.3g} %"
    said = (
        f"to detect an excess of {100 * detects:.3g} %{_in_parameter(claim)} over {claim.short} takes "
        f"{takes} draws a side {shows}. A test makes {_MOST_DRAWS:,} at most, which detect {detected}. "
        f"{_remedies(possible, f'= {made.draws:,}' if made.draws else '')}"
    )
    if gaussian and claim.point is not None:
        mu = gaussian_mu(*claim.point)
        said += (
            f". If the noise is Gaussian, claim mu={mu:.4g} (Gaussian DP), the μ of Gaussian noise that "
            f"has {claim.short}: it takes far fewer draws"
        )
    return said


def _remedies(possible: float, n: str) -> str:
    """What to give in place of `detects`: the excess that is possible, if one is, or n."""
    given = [f"detects={math.ceil(100 * possible) / 100:g}"] if possible < _LARGEST_EXCESS else []
    given += [f"n {n} in place of detects"] if n else []
    return f"Give {', '.join(given)} or a larger flake" if given else "Give a larger flake"


def _in_parameter(claim: Claim) -> str:
    """Which of ε and δ an excess is one of, where both are claimed."""
    return f" in {claim.symbol}" if claim.point is not None and claim.point[1] else ""


def detected(verdict: Verdict, detects: float | None, flake: float) -> str:
    """Which excess an audit that refuted nothing would have detected; AuditTooWeak if not `detects`."""
    claim, draws = verdict.claim, min(verdict.about.n or (0,))
    if detects is None:
        said = verdict.caught or "no score told the outputs on the two inputs apart"
        if not gaussian_needs_more_draws(claim) or not verdict.caught:
            return said
        least = smallest_excess(claim, draws, 1 - flake, None, _LARGEST_EXCESS)
        least = claim.value + least * (claim.value or 1.0)
        return f"{said}; for Gaussian noise {'no ε' if math.isinf(least) else f'ε = {least:.4g}'}"
    if _misses(verdict, detects):
        raise AuditTooWeak(_missed(verdict, detects, draws), verdict)
    shown, rest = "on an event like this", ""
    if gaussian_needs_more_draws(claim):
        shown += " and for Gaussian noise"
        rest = "; a larger δ on rarer events may be missed"
    return (
        f"an excess of {100 * detects:.3g} %{_in_parameter(claim)} {shown} would be detected with "
        f"probability 0.9{rest}"
    )
