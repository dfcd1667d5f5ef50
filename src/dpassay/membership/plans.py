"""`dpassay.plan_canaries`: what canaries would certify, and how to spend trainings on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.membership.one_run import one_run
from dpassay.membership.runs import FEWEST
from dpassay.privacy.claims import Claim, GaussianDP
from dpassay.privacy.event_claims import SMALL_DELTA, digits
from dpassay.privacy.provenance import level
from dpassay.results.estimates import CertifiedEpsilon
from dpassay.rootfinding import bisect
from dpassay.rounding import number, rounded_down
from dpassay.sampling.draw import seed_of
from dpassay.sampling.progress import Progress, claim_with_progress
from dpassay.tables import Shown, as_text

#: The most coins of one simulated audit.
_MOST = 10**6


@dataclass(frozen=True, eq=False, kw_only=True)
class CanaryPlan(Shown):
    """The certified ε at δ to expect, for each number of canaries and runs."""

    delta: float
    claimed: float | None
    auc: float
    confidence: float
    audits: int  # simulated ones
    #: Canaries, runs, the median certified ε, and the most that all guesses being right would certify.
    rows: tuple[tuple[int, int, float, float], ...]

    def __str__(self) -> str:
        claimed = "" if self.claimed is None else f"; the accountant's ε is {number(self.claimed)}"
        at = f" at δ = {digits(self.delta)}" if self.delta else ""
        said = (
            f"certified ε{at} ({level(self.confidence, 100)} %), the median of {self.audits:,} simulated "
            f"audits, if Gaussian scores have AUC {self.auc:.3g}{claimed}\n"
        )
        cells = [
            [f"{m:,}", f"{runs:,}", *map(rounded_down, found)] for m, runs, *found in self.rows
        ]
        return said + as_text(["canaries", "runs", "certified ε", "the most possible"], cells)


def plan_canaries(
    claim: Claim | str | None = None,
    *,
    canaries: int | Sequence[int],
    runs: int | Sequence[int] = 1,
    auc: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    audits: int = 25,
    rng: Any = 0,
) -> CanaryPlan:
    """About what `one_run` would certify, by simulated audits: a guide, nothing certified.

    claim     as in `one_run`; None plans for a bound of ε at `delta`
    canaries  how many there are in a run: a number, or several to compare
    runs      in how many trainings, with coins of their own: a number, or several
    auc       how well scores tell canaries apart: N(μ, 1) if included and N(0, 1) if not, AUC = Φ(μ/√2).
              Without it μ is the largest that the claim allows at its δ
    audits    how many are simulated

    Scores of canaries are taken to be independent. Canaries that disturb each other have a lower AUC:
    take it from a run with about as many (`attack_rates`).

    >>> import dpassay as dp
    >>> plan = dp.plan_canaries("eps=4, delta=1e-5", canaries=[250, 1000], auc=0.76)
    >>> [(m, runs, round(ceiling, 1)) for m, runs, _, ceiling in plan.rows]
    [(250, 1, 4.0), (1000, 1, 5.4)]
    """
    sizes = [checks.whole("canaries", m, at_least=FEWEST) for m in np.atleast_1d(canaries)]
    pairs = [(m, checks.whole("runs", n)) for m in sizes for n in np.atleast_1d(runs)]
    if not pairs or max(m * n for m, n in pairs) > _MOST:
        raise InvalidInput(f"canaries × runs must be at least one pair, each up to {_MOST:,} coins")
    tested = None if claim is None else claim_with_progress(claim)
    shift, repeats = _shift(tested, delta, auc), checks.whole("audits", audits, at_least=1)
    options: Any = {"claim": tested, "delta": delta, "confidence": confidence}
    seed, rows = seed_of(rng), []
    with Progress(repeats * len(pairs), "simulating", unit="audits") as bar:
        for m, many in pairs:
            found: list[CertifiedEpsilon] = []
            for k in range(repeats):
                draws = np.random.default_rng([seed, m, many, k])
                coins = draws.random((many, m)) < 0.5
                scores = shift * coins + draws.normal(size=coins.shape)
                certified = one_run(list(scores), list(coins), rng=k, **options).certified
                if certified is None:
                    raise InvalidInput(
                        f"{tested} bounds no ε at a δ; give eps and delta, or a curve"
                    )
                found.append(certified)
                bar.advance(1)
            median = float(np.median([one.epsilon for one in found]))
            most = float(np.median([one.ceiling for one in found]))
            rows.append((m, many, median, most))
    return CanaryPlan(
        delta=found[0].delta,
        claimed=found[0].claimed,
        auc=float(ndtr(shift / math.sqrt(2))),
        confidence=confidence,
        audits=repeats,
        rows=tuple(rows),
    )


def _shift(claim: Claim | None, delta: float | None, auc: float | None) -> float:
    """By how many standard deviations scores of included canaries are higher."""
    if auc is not None:
        return math.sqrt(2) * float(ndtri(checks.real("auc", auc, at_least=0.5, below=1.0)))
    point = None if claim is None else claim.point
    if claim is not None and point is None:
        at = SMALL_DELTA if delta is None else delta
        point = claim.epsilon_at(at), at
    if point is None or not point[1]:
        raise InvalidInput(
            "how well do scores tell canaries apart? Give auc=0.76 (--auc 0.76), or a claim with δ > 0 "
            '(--claim "eps=4, delta=1e-5"), which sets the best attack that it allows'
        )
    epsilon, at = point
    return float(bisect(lambda mu: GaussianDP(mu).delta_at(epsilon) <= at, 0.0, 100.0)[0])
