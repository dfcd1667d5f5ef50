"""Audits that detect a given excess over a claim: `detects=` of test suites."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay.auditing.audits import audit
from dpassay.auditing.plan_result import Plan
from dpassay.auditing.plans import (
    gaussian_draws,
    gaussian_needs_more_draws,
    largest_excess,
    plan,
    smallest_excess,
)
from dpassay.blackbox.library_objects import claim_on
from dpassay.bounds.power import detectable
from dpassay.errors import AuditTooWeak, DpassayError, InvalidInput, NotEnoughDraws
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import ApproximateDP, Claim, gaussian_mu
from dpassay.privacy.provenance import REPLAY, REPLAY_OF_BOUND
from dpassay.results.blindness import Cause
from dpassay.results.verdict import GAUSSIAN, Verdict
from dpassay.rounding import number
from dpassay.sampling.draw import Sampling, Seed, seed_for
from dpassay.sampling.samples import listed_pairs
from dpassay.tables import Status

#: Draws a side of the pilot that `detects` plans with, and the most of the test.
_PILOT, _MOST_DRAWS = 2000, 10_000_000

#: The shares of flake of up to three audits of `detects`, and how near to its excess they come.
_TRIES, _CLOSE = (0.5, 0.25, 0.25), 1.05

#: The draws of a test by default, and the most of one whose (ε, δ) claim needs more.
_USUAL, _MOST_BY_DEFAULT = 20_000, 1_000_000
#: Expected count, on the rarer side, of an event that is best for a claim in δ.
_RARE = 0.1


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
    pairs, seed = list(listed_pairs(pairs)), seed_for(rng, sampling)
    claims = [as_claim(claim_on(claim, mechanism, pair)) for pair in pairs]
    most = min(map(largest_excess, claims))
    checks.real("detects", detects, above=0.0, at_most=most, remedy="20 % is 0.2")
    shares = [share * (1 - confidence) for share in _TRIES]
    made = max(
        (
            plan(
                mechanism,
                pair,
                one,
                excess=detects,
                confidence=1 - shares[0],
                pilot=_PILOT,
                loss=options.get("loss", "auto"),
                rng=seed,
                sampling=sampling,
            )
            for pair, one in zip(pairs, claims, strict=True)
        ),
        key=lambda one: one.draws or math.inf,
    )
    options |= {"sampling": sampling}
    if made.draws is None or made.draws > _MOST_DRAWS:
        with suppress(NotEnoughDraws):  # a violation that few draws show needs no plan
            how: dict[str, Any] = {"n": _PILOT, "confidence": 1 - shares[0], "rng": seed} | options
            few: Verdict = audit(mechanism, pairs, claim, **how)
            if few.violated:
                return few
        raise AuditTooWeak(_unreachable(made, detects), None)
    n = max(made.draws, _USUAL)  # no fewer than without it
    # a pilot that looks like a violation plans for fewer draws than these
    needed = max(gaussian_draws(one, detects, 1 - shares[0]) for one in claims)
    for k, share in enumerate(shares):
        # draws of its own: how many there are follows from what the last audit counted
        own = int(np.random.default_rng([seed, k]).integers(2**62)) if k else seed
        how = {"n": n, "confidence": 1 - share, "rng": own} | options
        found: Verdict = audit(mechanism, pairs, claim, **how)
        if found.violated or n == _MOST_DRAWS or (n >= needed and not _misses(found, detects)):
            break
        if needed > _MOST_DRAWS:
            takes = None if math.isinf(needed) else int(needed)
            plain = replace(made, shape="gaussian", draws=takes)
            raise AuditTooWeak(_unreachable(plain, detects), found)
        times = 4.0
        if math.isfinite(found.smallest_detectable or math.inf):
            times = _excess(found, detects) ** 2
        n = math.ceil(max(1.2 * n * min(max(times, 1.0), 16.0), needed))
        n = min(n, _MOST_DRAWS)
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
    times = _excess(verdict, detects) ** 2
    more = f"of about {math.ceil(1.2 * times * draws):,}" if times < 100 else f"above {draws:,}"
    said = (
        f"detects = {detects:g} is to detect {wanted} where {claim.short} is claimed; with {draws:,} "
        f"draws a side {verdict.power_statement or 'no excess would be detected with probability 0.9'}. "
        f"{_remedies(claim, detects * _excess(verdict, detects), more)}"
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
    possible = smallest_excess(claim, _MOST_DRAWS, made.confidence, event)
    detected = f"about {_percent(possible)}"
    if math.isinf(possible):
        detected = f"no excess up to {_percent(largest_excess(claim))}"
    which = "" if claim.parameter == "delta" else _in_parameter(claim)  # the claim says "in δ"
    said = (
        f"to detect an excess of {_percent(detects)}{which} over {claim.short} takes "
        f"{takes} draws a side {shows}. A test makes {_MOST_DRAWS:,} at most, which detect {detected}. "
        f"{_remedies(claim, possible, f'= {made.draws:,}' if made.draws else '')}"
    )
    if gaussian and claim.point is not None:
        mu = gaussian_mu(*claim.point)
        said += (
            f". If the noise is Gaussian, claim mu={mu:.4g} (Gaussian DP), the μ of Gaussian noise that "
            f"has {claim.short}: it takes far fewer draws"
        )
    return said


def _remedies(claim: Claim, possible: float, n: str) -> str:
    """What to give in place of `detects`: the excess that is possible, if one is, or n."""
    excess = math.ceil(100 * possible) / 100 if math.isfinite(possible) else math.inf
    given = [f"detects={excess:g}"] if excess <= largest_excess(claim) else []
    given += [f"n {n} in place of detects"] if n else []
    if not given:
        return "Give n in place of detects (a test that passes then says what n draws detect)"
    return f"Give {', '.join(given)} or a larger flake"


def _percent(excess: float) -> str:
    return f"{100 * excess:,.0f} %" if excess >= 10 else f"{100 * excess:.3g} %"


def _in_parameter(claim: Claim) -> str:
    """Which of ε and δ an excess is one of, where both are claimed."""
    return f" in {claim.symbol}" if claim.point is not None and claim.point[1] else ""


def detected(verdict: Verdict, detects: float | None) -> str:
    """Which excess an audit that refuted nothing would have detected."""
    claim, draws = verdict.claim, min(verdict.about.n or (0,))
    if detects is None:
        unknown = "no score told the outputs on the two inputs apart", verdict.on_other_events
        return verdict.power_statement or "; ".join(filter(None, unknown))
    shown, rest = ", reached by an event like this,", ""
    if gaussian_needs_more_draws(claim):
        shown += " or with Gaussian noise"
        rest = "; a larger δ on rarer events may be missed"
    return (
        f"an excess of {_percent(detects)}{_in_parameter(claim)}{shown} would be detected with "
        f"probability 0.9 ({draws:,} draws a side){rest}"
    )


def on_other_events(verdict: Verdict) -> str:
    """What an audit detects on rarer events: of an (ε, δ) claim for Gaussian noise, of δ at best.

    Empty where it does not matter, or where no event was searched for.
    """
    claim, about, w = verdict.claim, verdict.about, verdict.witness
    searched = about.pair is not None and about.method not in (REPLAY, REPLAY_OF_BOUND)
    if verdict.violated or not searched or verdict.draws is not None or not about.n:
        return ""
    if claim.parameter == "delta":
        level = 1 - verdict.confidence if w.level is None else w.level
        orders = [(w.n_p, w.n_q), (w.n_q, w.n_p)][: 1 if claim.directional else 2]
        best = min(detectable(_RARE / m, n, m, claim, level) for n, m in orders)
        least = "no δ" if math.isinf(best) else f"δ = {number(best)}"
        return (
            f"at best, on outputs that come on one input alone, {least} would be detected with "
            "probability 0.9"
        )
    if not gaussian_needs_more_draws(claim) or verdict.unlearned:
        return ""
    return _for_gaussian(claim, min(about.n), verdict.confidence, verdict.smallest_detectable)


def default_draws(mechanism: Any, pairs: Any, claim: Any, flake: Any) -> int:
    """The draws of a test that is told neither n nor what to detect: 20,000 unless more are needed.

    An (ε, δ) claim needs as many as detect a large violation by Gaussian noise, if up to a million do.
    """
    needed = 0.0
    with suppress(DpassayError):  # the audit says what is wrong
        confidence = 1 - checks.probability("flake", flake)
        for pair in pairs if isinstance(pairs, list) else [pairs]:
            one = as_claim(claim_on(claim, mechanism, pair))
            needed = max(needed, gaussian_draws(one, 0.95 * _large_excess(one), confidence))
    return _USUAL if needed > _MOST_BY_DEFAULT else max(_USUAL, int(needed))


def _large_excess(claim: Claim) -> float:
    """The relative excess of ε (absolute at 0) from which a violation is large (`results.blindness`)."""
    return max(1.0, 1 / claim.value) if claim.value else 1.0


def check_power(verdict: Verdict, detects: float | None) -> Verdict:
    """The verdict; or AuditTooWeak if an excess of `detects` would have been missed.

    Without `detects`, if Gaussian noise could break an (ε, δ) claim by far unnoticed: then the verdict of
    the exception is blind.
    """
    claim, draws = verdict.claim, min(verdict.about.n or (0,))
    if verdict.tone is not Status.CLEAR:
        return verdict
    if detects is not None:
        if _misses(verdict, detects):
            raise AuditTooWeak(_missed(verdict, detects, draws), verdict)
        return verdict
    if not gaussian_needs_more_draws(claim) or claim.point is None:
        return verdict
    needed = gaussian_draws(claim, 0.95 * _large_excess(claim), verdict.confidence)
    if draws >= 0.99 * needed:
        return verdict
    takes = f"n={int(needed):_}" if math.isfinite(needed) else "more than 10⁹ draws"
    least = _gaussian_value(claim, draws, verdict.confidence)
    seen = "no excess" if math.isinf(least) else f"only ε = {least:.4g} or more"
    why = (
        f"with {draws:,} draws a side {seen} would be detected for Gaussian noise with probability 0.9. "
        f"Give {takes}; or, where the noise is Gaussian, claim mu={gaussian_mu(*claim.point):.4g}, which "
        "needs far fewer draws"
    )
    weak = replace(verdict, blind=why, blind_cause=Cause.FEW_DRAWS)
    weak = replace(weak, smallest_detectable=least, detectable_on=GAUSSIAN)
    raise AuditTooWeak(f"{weak.headline}: {why}", weak)


def _gaussian_value(claim: Claim, draws: int, confidence: float) -> float:
    """The smallest ε that so many draws detect for Gaussian noise; ∞ if none up to the largest excess."""
    return claim.value + smallest_excess(claim, draws, confidence) * (claim.value or 1.0)


@lru_cache(maxsize=256)
def _for_gaussian(claim: Claim, draws: int, confidence: float, on_event: float | None) -> str:
    """The ε that is detected for Gaussian noise, and the claim on μ where that is much larger."""
    least = _gaussian_value(claim, draws, confidence)
    seen = f"ε = {least:.4g}"
    if math.isinf(least):
        seen = f"no ε up to {number(claim.value + largest_excess(claim) * (claim.value or 1.0))}"
    said = f"for Gaussian noise {seen}"
    if on_event is None or claim.point is None:
        return said
    return (
        f"{said}. If the claim is to hold by plain Gaussian noise, without subsampling, claim "
        f"mu={gaussian_mu(*claim.point):.4g} instead, which is stronger: its audit detects a far smaller "
        "excess"
    )
