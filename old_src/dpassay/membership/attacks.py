"""`dpassay.attack_rates`: AUC and true positive rate at a fixed false positive rate, with exact limits.

These are the numbers by which membership inference attacks are reported. They are no privacy parameters:
to test a claim, give the same scores to `dpassay.audit(dpassay.from_samples(scores_in, scores_out), …)`.

The limits (proofs in docs/theory.md): those of the AUC follow from Hoeffding's bound for U-statistics
with k = min(n, m) independent terms (1963, doi:10.1080/01621459.1963.10500830, section 5). The TPR at
FPR ≤ α is the largest P(X > τ) over thresholds τ with P(Y > τ) ≤ α, for scores X of members and Y of
others: order statistics of Y give a threshold that is admissible with probability 1 − γ/2, and the count
of X above it has a Clopper–Pearson limit at γ/2.

Both need independent scores. Scores of canaries that share one trained model are dependent: what moves
the model moves all of them, and it is their coins that are independent. The rates then describe that run
and no more, the limits are no guarantee, and `one_run`, which needs the coins alone, gives exact bounds.
The rates of several such runs with coins of their own are independent variables in [0, 1]: limits of
their mean, with k the number of runs, are exact for the expected rate of a run.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.bounds import clopper_pearson
from dpassay.bounds.ordering import kl
from dpassay.errors import InvalidInput
from dpassay.membership.runs import FEW, auc, is_several, read_scores
from dpassay.privacy.provenance import Guarantee, level
from dpassay.rootfinding import bisect
from dpassay.rounding import rounded_down, rounded_up
from dpassay.tables import Shown

_ONE_RUN = (
    "the rates describe this run. Their limits need scores that are each of a training run of its own "
    "(separate_runs=True, --separate-runs), or several runs (lists of arrays, --run). Canaries of one "
    "run share a model: to certify ε, use dp.one_run (dpassay one-run)"
)
_SEVERAL = "it assumes that every run has coins of its own, independent of those of other runs"


@dataclass(frozen=True, eq=False, kw_only=True)
class Rate(Shown):
    """A rate of an attack, and its limits; if the guarantee is exact, each holds with the confidence."""

    name: str
    value: float
    lower: float
    upper: float
    confidence: float
    guarantee: Guarantee

    def __str__(self) -> str:
        return (
            f"{self.name} ≈ {self.value:.4g}, at least {rounded_down(self.lower)} and at most "
            f"{rounded_up(self.upper)}, each with {level(self.confidence)} confidence ({self.guarantee})"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackRates(Shown):
    """What `attack_rates` returns: `auc`, and `tpr`, one rate for every false positive rate given."""

    auc: Rate
    tpr: tuple[Rate, ...]
    n: tuple[int, int]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = "\n".join(
            [*map(str, (self.auc, *self.tpr)), *(f"note: {one}" for one in self.notes)]
        )
        if self.auc.upper < 0.5:
            said += (
                "\nnote: scores are lower with the canary than without, and larger scores count as "
                "evidence for it; for losses turn the sign (−scores, or --sign lower)"
            )
        return said


def attack_rates(
    scores_in: Any,
    scores_out: Any,
    *,
    fpr: float | Sequence[float] = (0.001, 0.01, 0.1),
    confidence: float = 0.95,
    separate_runs: bool = False,
) -> AttackRates:
    """AUC of a membership inference attack, and its true positive rate at fixed false positive rates.

    The limits hold for every number of independent scores.

    scores_in      scores of runs (or records) with the canary; larger scores are evidence for it
    scores_out     scores without it. Lists of arrays, one a run, are the canaries of several runs with
                   coins of their own: the mean rates of the runs, with exact limits of what is expected
                   of a run. A dozen runs have wide limits, a hundred useful ones
    fpr            the false positive rates, fixed beforehand
    separate_runs  whether every score is of a training run of its own. Then the scores are independent
                   and each limit holds with the confidence by itself ("exact"). Scores of many records
                   under one model are not independent: the rates describe that run, the limits are
                   "heuristic", and `one_run` is exact

    >>> import dpassay as dp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(2, 1, 1000), rng.normal(0, 1, 1000)
    >>> found = dp.attack_rates(x, y, fpr=0.05, separate_runs=True)
    >>> found.auc.lower < 0.921 < found.auc.upper, found.tpr[0].lower < 0.639 < found.tpr[0].upper
    (True, True)
    """
    several = is_several(scores_in) and is_several(scores_out)
    if several and (len(scores_in) != len(scores_out) or separate_runs):
        raise InvalidInput(
            f"lists of arrays are canaries of several runs, one of each a run, got {len(scores_in)} and "
            f"{len(scores_out)}; leave separate_runs out"
        )
    pairs = list(zip(scores_in, scores_out, strict=True)) if several else [(scores_in, scores_out)]
    runs = [(_scores("scores_in", x), _scores("scores_out", y)) for x, y in pairs]
    for x, y in runs:
        _refuse_labels(x, y)
    gamma = 1 - checks.confidence(confidence)
    checks.flag("separate_runs", separate_runs)
    _refuse_copies(runs)
    guarantee = Guarantee.EXACT if separate_runs or several else Guarantee.HEURISTIC
    note = _SEVERAL if several else "" if separate_runs else _ONE_RUN
    rates = [fpr] if isinstance(fpr, numbers.Real) else checks.listed("fpr", fpr)
    for one in rates:
        checks.probability("fpr", one)

    def rate(name: str, find: Any, *fpr: float) -> Rate:
        found = np.array([find(x, y, *fpr, gamma) for x, y in runs])
        value, lower, upper = found[0].tolist()
        if several:
            name, value = f"{name}, mean of {len(runs)} runs", float(found[:, 0].mean())
            lower, upper = _mean_limits(value, len(runs), gamma)
        limits = {"value": value, "lower": lower, "upper": upper}
        return Rate(name=name, confidence=confidence, guarantee=guarantee, **limits)

    return AttackRates(
        auc=rate("AUC", _auc),
        tpr=tuple(rate(f"TPR at FPR {one:g}", _tpr, float(one)) for one in rates),
        n=(sum(x.size for x, _ in runs), sum(y.size for _, y in runs)),
        notes=(note,) if note else (),
    )


def _refuse_copies(runs: Sequence[tuple[FloatArray, FloatArray]]) -> None:
    """Refuse runs with the same scores, if these have so many values that it is no coincidence."""
    seen = [(x.tobytes(), y.tobytes()) for x, y in runs if np.unique([*x, *y]).size >= FEW]
    if len(set(seen)) < len(seen):
        raise InvalidInput(
            "leave copies out: two runs have the same scores, and every run needs a training and coins "
            "of its own"
        )


def _scores(name: str, given: Any) -> FloatArray:
    without = (
        "every run needs a score: leave those without one out of both, or give them one that does not "
        "depend on the canary"
    )
    return np.sort(read_scores(name, given, "a list of numbers, one a run", without))


def _refuse_labels(x: FloatArray, y: FloatArray) -> None:
    """Refuse scores and labels in place of scores with and without the canary."""
    sides = [set(np.unique(side).tolist()) for side in (x, y)]
    labels = [side == {0.0, 1.0} for side in sides]
    if x.size == y.size and labels[0] != labels[1] and max(map(len, sides)) > 2:
        name = "scores_in" if labels[0] else "scores_out"
        raise InvalidInput(
            f"{name} is 0 or 1, one for each score, as labels are; give the scores of one label and "
            "those of the other: attack_rates(scores[labels == 1], scores[labels == 0])"
        )


def _auc(x: FloatArray, y: FloatArray, gamma: float) -> tuple[float, float, float]:
    """P(X > Y) + ½ P(X = Y): the estimate and its limits."""
    value = auc(x, y)
    return value, *_mean_limits(value, min(x.size, y.size), gamma)


def _mean_limits(value: float, terms: int, gamma: float) -> tuple[float, float]:
    """Chernoff's limits of an expectation, from the mean of independent terms in [0, 1]."""
    most = math.log(1 / gamma) / terms
    return 1 - _kl_upper(1 - value, most), _kl_upper(value, most)


def _kl_upper(value: float, most: float) -> float:
    """The largest mean with kl(value, mean) ≤ most, from above."""
    return float(bisect(lambda mean: kl(value, mean) <= most, value, 1.0)[1])


def _tpr(x: FloatArray, y: FloatArray, rate: float, gamma: float) -> tuple[float, float, float]:
    """The true positive rate at a false positive rate: the estimate and its limits."""
    from scipy.stats import binom

    n, m = x.size, y.size

    def count(k: int, side: Literal["left", "right"]) -> int:
        """Scores of members above the k-th largest score of others (at least as large, from the left)."""
        return n - int(np.searchsorted(x, y[m - k], side=side))

    # Beta(k, m + 1 − k) ≤ α if and only if at least k of m uniform variables are: a binomial count
    reached = binom.sf(np.arange(m), m, rate)
    lower, upper = 0.0, 1.0
    below = np.flatnonzero(reached >= 1 - gamma / 2)  # P(Y > τ) ≤ α with probability 1 − γ/2
    if below.size:
        lower = float(clopper_pearson.lower(count(below[-1] + 1, "right"), n, gamma / 2))
    beyond = np.flatnonzero(reached <= gamma / 2)  # P(Y ≥ τ) > α with probability 1 − γ/2
    if beyond.size:
        upper = float(clopper_pearson.upper(count(beyond[0] + 1, "left"), n, gamma / 2))
    allowed = math.floor(rate * m)
    value = (n if allowed >= m else count(allowed + 1, "right")) / n
    return value, min(lower, value), max(upper, value)
