"""Calibration: hit rates of a score's rare events from a model of its log-odds (Platt 1999).

The frequency of a rare event among training draws is noisy, and the largest of many is mostly noise.
Where the log-odds of the first input are linear in a score, up to a level, the few parameters of that
line are known from all draws, and with them the hit rates of events that hold a handful. The log-odds

    log P(first input | s) / P(second input | s) = a + b · clip(s, l, u)

are fitted to held-back draws with [l, u] the whole range of the scores or one of four central ones, by
maximum likelihood. A fit that tells nothing, or that the draws contradict, is not used, nor one of scores
that separate the sides.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from dpassay._typing import FloatArray

#: The central ranges, by the share of the draws below them.
_BELOW = np.array([0.0, 0.02, 0.1, 0.3, 0.45])
#: With fewer groups nothing is fitted: their frequencies tell as much.
_GROUPS = 5
#: A calibrated fit is contradicted by counts so many standard errors from what it predicts, in some tail.
_CONTRADICTED = 3.5
#: It must exceed the log-likelihood of a score that tells nothing by this: four standard errors of b.
_GAIN = 8.0
_STEPS = 30


def calibrated(scores: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray | None:
    """The probability that a draw in a group is of the first input, by the fit; None where none holds.

    Args:
        scores: The least score of each group, in increasing order.
        first: Held-back draws of the first input in each group.
        second: Those of the second.
    """
    drawn = first + second
    finite = scores[np.isfinite(scores)]
    if finite.size < _GROUPS or not (first.any() and second.any()):
        return None
    a, b = np.flatnonzero(first), np.flatnonzero(second)
    if (
        a[-1] <= b[0] or b[-1] <= a[0]
    ):  # one group at most mixes the sides: no slope is the steepest
        return None
    x = np.clip(scores, finite[0], finite[-1])
    below = np.cumsum(drawn) / drawn.sum()
    low, high = (
        x[np.minimum(np.searchsorted(below, share), x.size - 1)][:, None]
        for share in (_BELOW, 1 - _BELOW)
    )
    odds = _fitted(np.clip(x, low, high), first, drawn)
    likelihood = first @ np.log(odds.T) + (drawn - first) @ np.log1p(-odds.T)
    share = first.sum() / drawn.sum()
    constant = first.sum() * np.log(share) + second.sum() * np.log1p(-share)
    if likelihood.max() < constant + _GAIN:
        return None
    chance = odds[int(np.argmax(likelihood))]
    return None if contradicted(first, drawn, chance, _CONTRADICTED) else np.asarray(chance)


def contradicted(
    first: FloatArray,
    drawn: FloatArray,
    chance: FloatArray,
    errors: float,
    *,
    residual: bool = False,
) -> bool:
    """Whether draws of the first input in some tail are far from the number that a fit expects.

    Args:
        first: Draws of the first input in each group, groups in increasing order of the score.
        drawn: Those of both inputs.
        chance: The fitted probability that a draw in a group is of the first input.
        errors: The number of standard errors that are far.
        residual: Whether the standard errors are those of residuals, which are smaller: the fit takes up
            the part of the noise that is constant or linear in its log-odds.
    """
    chance = np.clip(chance, 1e-12, 1 - 1e-12)
    missed, weight, odds = first - drawn * chance, drawn * chance * (1 - chance), logit(chance)
    total = max(float(weight.sum()), 1e-300)
    odds = odds - weight @ odds / total
    odds /= max(math.sqrt(weight @ odds**2 / total), 1e-15)
    if residual:
        missed = missed - weight * (missed.sum() + odds * (missed @ odds)) / total
    for order in (slice(None), slice(None, None, -1)):
        parts = (missed, weight, weight * odds)
        far, spread, linear = (np.cumsum(part[order]) for part in parts)
        if residual:
            spread = np.maximum(spread - (spread**2 + linear**2) / total, 0.0)
        if np.any(np.abs(far) > errors * np.sqrt(spread + 0.25)):
            return True
    return False


def _fitted(x: FloatArray, first: FloatArray, drawn: FloatArray) -> FloatArray:
    """Probabilities of the first input in every group, for each row of x, by logistic regression."""
    weights = drawn / drawn.sum()
    x = x / max(float(np.abs(x).max()), 1e-300)
    x = x - (x @ weights)[:, None]
    x = x / np.maximum(np.sqrt(x**2 @ weights), 1e-15)[:, None]
    a, b = np.zeros(len(x)), np.zeros(len(x))
    for _ in range(_STEPS):  # Newton's method, with a little ridge for sides that no score mixes
        chance = np.clip(expit(a[:, None] + b[:, None] * x), 1e-9, 1 - 1e-9)
        missed, spread = first - drawn * chance, drawn * chance * (1 - chance)
        g, h = missed.sum(axis=1), np.array([(spread * x**k).sum(axis=1) for k in range(3)])
        g_x = (missed * x).sum(axis=1) - 1e-3 * b
        h[0], h[2] = h[0] + 1e-3, h[2] + 1e-3
        scale = h[0] * h[2] - h[1] ** 2
        steps = (h[2] * g - h[1] * g_x) / scale, (h[0] * g_x - h[1] * g) / scale
        a, b = a + steps[0], b + steps[1]
        if max(np.abs(steps[0]).max(), np.abs(steps[1]).max()) < 1e-6:
            break
    return np.asarray(chance)
