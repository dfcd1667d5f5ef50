"""A lower bound for the mean of a bounded variable, by betting (Waudby-Smith & Ramdas 2024).

Bet against "the mean is at most m": with Z in [0, 1] and stakes λ_t ≤ c/m chosen before Z_t is
seen, the capital Π (1 + λ_t (Z_t − m)) has expectation at most 1 if the mean is at most m, so it
exceeds 1/γ with probability at most γ. The bound is the largest m against which that much was won.
It adapts to the variance and holds for every sample size.
"""

from __future__ import annotations

import math

import numpy as np

from dpassay._typing import FloatArray
from dpassay.roots import bisect

#: No stake exceeds this share of what could be lost at once.
_CAUTION = 0.75


def lower_mean(
    values: FloatArray, *, low: float, high: float, gamma: float, spread: float | None = None
) -> float:
    """A bound L with P(mean < L) ≤ γ for independent values in [low, high].

    `spread` is a guess of their standard deviation that does not come from these values; with it
    one stake serves all rounds, and the order of the values does not matter. Without it the stakes
    follow the values seen before.

    >>> rng = np.random.default_rng(0)
    >>> 0.45 < lower_mean(rng.random(2000), low=0.0, high=1.0, gamma=0.05) < 0.5
    True
    """
    n, width = len(values), high - low
    if n == 0 or not width > 0:
        return low
    z = (np.asarray(values, dtype=float) - low) / width
    stake = _stake(z, width, gamma, spread)
    wealth_needed = math.log(1 / gamma)

    def wins(mean: float) -> bool:
        return _log_wealth(z, stake, mean) >= wealth_needed

    below, above = 0.0, float(z.mean())
    if above <= 0:
        return low
    below, _ = bisect(wins, below, above, steps=40, close=1e-7)
    return low + width * float(below)


def p_value(
    values: FloatArray, mean: float, *, low: float, high: float, gamma: float, spread: float
) -> float:
    """A p-value for "the mean is at most `mean`": one over the capital won against it.

    `gamma` and `spread` only set the stake.
    """
    width = high - low
    if len(values) == 0 or not width > 0 or mean >= high:
        return 1.0
    z = (np.asarray(values, dtype=float) - low) / width
    level = max((mean - low) / width, 0.0)
    return min(1.0, math.exp(-min(_log_wealth(z, _stake(z, width, gamma, spread), level), 700.0)))


def _stake(z: FloatArray, width: float, gamma: float, spread: float | None) -> FloatArray | float:
    if spread is None:
        return _stakes(z, gamma)
    variance = max((spread / width) ** 2, 1.0 / len(z) ** 2)
    return math.sqrt(2 * math.log(1 / gamma) / (len(z) * variance))


def _log_wealth(z: FloatArray, stake: FloatArray | float, mean: float) -> float:
    bet = np.minimum(stake, _CAUTION / max(mean, 1e-300))
    return float(np.sum(np.log1p(bet * (z - mean))))


def _stakes(z: FloatArray, gamma: float) -> FloatArray:
    """√(2 log(1/γ) / (n σ̂²)), with the variance of the values before each round."""
    n = len(z)
    rounds = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(z)) / (rounds + 1)
    variance = (0.25 + np.cumsum((z - mean) ** 2)) / (rounds + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2 * math.log(1 / gamma) / (n * before)))
