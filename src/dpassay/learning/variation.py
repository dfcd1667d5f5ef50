"""A bound on a Rényi divergence that holds for every sample size.

For every w ≥ 0, E_Q[(p/q)^λ] ≥ λ E_P[w^{λ−1}] − (λ−1) E_Q[w^λ], with equality at w = p/q. A loss and a
clip are learned on a part of the draws, w = κ exp(clip(loss)); on the rest the right-hand side is the
mean of a bounded variable, which betting bounds from below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpassay._typing import FloatArray
from dpassay.bounds import betting
from dpassay.learning.learner import Scores

#: The largest logarithm of w^λ.
_LARGEST = 300.0


@dataclass(frozen=True, eq=False)
class Variation:
    """w = κ exp(clip(ŝ, low, high)) and what the training draws promise for it."""

    order: float
    swapped: bool
    low: float
    high: float
    log_scale: float
    spread: float
    mean: float  # of the values, on held-back training draws
    promised: (
        float  # the bound predicted, less a standard error: the largest of several is too large
    )
    effective: float  # draws that carry the estimate, of those that will test
    draws: int  # held-back training draws a side

    def values(self, score_p: FloatArray, score_q: FloatArray) -> FloatArray:
        """λ w(x)^{λ−1} − (λ−1) w(y)^λ for pairs of draws."""
        lam = self.order
        x, y = (score_q, score_p) if self.swapped else (score_p, score_q)
        sign = -1.0 if self.swapped else 1.0
        log_w = [self.log_scale + np.clip(sign * s, self.low, self.high) for s in (x, y)]
        return np.asarray(lam * np.exp((lam - 1) * log_w[0]) - (lam - 1) * np.exp(lam * log_w[1]))

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest the values can be."""
        lam = self.order
        small, large = self.log_scale + self.low, self.log_scale + self.high
        return (
            lam * math.exp((lam - 1) * small) - (lam - 1) * math.exp(lam * large),
            lam * math.exp((lam - 1) * large) - (lam - 1) * math.exp(lam * small),
        )

    @property
    def top(self) -> float:
        """The largest value of w."""
        return math.exp(self.log_scale + self.high)

    def lower_mean(self, score_p: FloatArray, score_q: FloatArray, gamma: float) -> float:
        """A betting lower bound L of the mean."""
        m = min(len(score_p), len(score_q))
        low, high = self.range
        z = self.values(score_p[:m], score_q[:m])
        return betting.lower_mean(z, low=low, high=high, gamma=gamma, spread=self.spread)

    def bound(self, score_p: FloatArray, score_q: FloatArray, gamma: float) -> float:
        """log L/(λ−1), a lower bound of the divergence."""
        mean = self.lower_mean(score_p, score_q, gamma)
        return math.log(mean) / (self.order - 1) if mean > 1 else 0.0

    def p_value(
        self, score_p: FloatArray, score_q: FloatArray, limit: float, gamma: float
    ) -> float:
        """For the claim that the mean is at most `limit`."""
        m = min(len(score_p), len(score_q))
        low, high = self.range
        z = self.values(score_p[:m], score_q[:m])
        return betting.p_value(z, limit, low=low, high=high, gamma=gamma, spread=self.spread)

    @property
    def predicted(self) -> float:
        """The bound promised, on the divergence."""
        return math.log(self.promised) / (self.order - 1) if self.promised > 1 else 0.0

    @property
    def estimate(self) -> float:
        """The divergence as the held-back training draws have it."""
        return math.log(self.mean) / (self.order - 1) if self.mean > 1 else 0.0

    def detectable(self, limit: float, test: int, gamma: float) -> float:
        """About the smallest mean that would be told from `limit` with 90 % probability.

        ∞ where that is beyond what clipped values can have, and for so few draws that nothing of the kind
        can be said.
        """
        if test < 30:
            return math.inf
        low, high = self.range
        wealth = math.log(1 / gamma)
        # few draws show little of the spread there is
        spread = max(self.spread, (high - low) / (2 * math.sqrt(test)))
        noise = (math.sqrt(2 * wealth) + 1.2816) * spread / math.sqrt(test)
        mean = limit + noise + wealth * max(limit - low, 0.0) / test
        return mean if mean < high else math.inf


def learn_variation(
    order: float, swapped: bool, score_p: FloatArray, score_q: FloatArray, test: int, gamma: float
) -> Variation:
    """Choose clip and scale by the bound they promise on `test` draws, from scores of held-back draws."""
    lam, sign = order, (-1.0 if swapped else 1.0)
    x, y = (score_q, score_p) if swapped else (score_p, score_q)
    x, y = sign * x, sign * y
    m = min(x.size, y.size)
    best: Variation | None = None
    wealth = math.log(1 / gamma)
    tops = np.quantile(x, [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0])
    for high in np.unique(np.clip(tops, 0.0, _LARGEST / lam)):
        low = -float(high) - 5.0
        log_x, log_y = np.clip(x, low, high), np.clip(y, low, high)
        log_a = _log_sum_exp((lam - 1) * log_x) - math.log(x.size)
        # one draw of Q more, at the top: that none was seen there does not make w^λ free
        log_b = float(np.logaddexp(_log_sum_exp(lam * log_y), lam * high)) - math.log(y.size + 1)
        # the κ that maximises λκ^{λ−1}A − (λ−1)κ^λ B, as far as w^λ can be squared
        scale = min(log_a - log_b, _LARGEST / lam - float(high))
        z = lam * np.exp((lam - 1) * (scale + log_x[:m])) - (lam - 1) * np.exp(
            lam * (scale + log_y[:m])
        )
        spread = float(z.std())
        mean = lam * math.exp((lam - 1) * scale + log_a) - (lam - 1) * math.exp(lam * scale + log_b)
        reach = mean - (
            lam * math.exp((lam - 1) * (scale + low)) - (lam - 1) * math.exp(lam * (scale + high))
        )
        # betting pays √(2 log(1/γ) σ²/n), or log(1/γ)·reach/n where the largest stake binds; and the
        # mean itself is known to ±σ/√m, which a choice by the largest must not be taken in by
        paid = math.sqrt(2 * wealth * spread**2 / test) + wealth * reach / test
        promised = mean - paid - spread / math.sqrt(m)
        if best is None or promised > best.promised:
            w = np.exp((lam - 1) * (log_x - log_x.max()))
            effective = test * float(w.sum()) ** 2 / (x.size * float(np.sum(w**2)))
            best = Variation(
                lam, swapped, low, float(high), scale, spread, mean, promised, effective, m
            )
    assert best is not None
    return best


def _log_sum_exp(values: FloatArray) -> float:
    """Of finite values. (scipy's is ten times slower for a few hundred of them.)"""
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


@dataclass(frozen=True)
class MomentCriterion:
    """The ranking that promises the largest bound on a divergence."""

    order: float
    swaps: Sequence[bool]
    test: int
    gamma: float

    def judge(self, scores: Scores) -> Variation:
        """The best function of the scores, in the better direction."""
        return self.at(self.order, scores)

    def at(self, order: float, scores: Scores) -> Variation:
        """The same at another order."""
        return max(
            (learn_variation(order, s, *scores, self.test, self.gamma) for s in self.swaps),
            key=lambda found: found.promised,
        )

    def beats(self, new: Variation, best: Variation) -> bool:
        """By more than the noise of the promise."""
        return new.promised > best.promised + new.spread / math.sqrt(new.draws)
