"""Bounds on a Rényi divergence that hold for every sample size, by betting on both sides at once.

Let s ≥ 0 be any function of the output and C = E_Q[(p/q)^λ] = e^{(λ−1)D}. Hölder's inequality gives
E_P[s^{λ−1}] ≤ C^{1/λ} E_Q[s^λ]^{(λ−1)/λ}. For a stake h the factors

    u(x) = 1 + hλ (C^{−1/λ} s(x)^{λ−1} − 1)    and    v(y) = 1 + h(λ−1)(1 − s(y)^λ)

of a draw x of P and a draw y of Q have E[u]·E[v] ≤ 1: with β = E_Q[s^λ]^{(λ−1)/λ} the product is at most
(1 + hλ(β − 1))(1 + h(λ−1)(1 − β^{λ/(λ−1)})), whose logarithm is concave in β and has its maximum, 0, at
β = 1. So the product over pairs of draws is a capital that exceeds 1/γ with probability at most γ, if the
divergence is D or less (Markov; bets on means: Waudby-Smith & Ramdas 2024, arXiv:2010.09686). It is the
final capital that counts, not the largest on the way: it does not depend on the order of the draws, which
a mechanism may have sorted. Only u depends on C, and falls with it: what is won against C is won against
every smaller one, and the largest C so refuted is a lower bound.

Where a share δ of P and of Q may be anything, with s ≤ S, (s^{λ−1} − δS^{λ−1})/(1 − δ) takes the place of
s^{λ−1} and s^λ/(1 − δ) that of s^λ: their means are on the safe side of those of the rest. (Where the
first is negative it is not multiplied by C^{−1/λ} ≤ 1: that is safe as well, and keeps u falling.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpassay._typing import FloatArray
from dpassay.rootfinding import bisect

#: No stake exceeds this share of what could be lost at once.
_CAUTION = 0.9
#: The largest log C looked at.
_LARGEST = 700.0


@dataclass(frozen=True)
class RenyiWealth:
    """What is needed besides the values of s: the order, log S, δ, and the stake."""

    order: float
    log_top: float
    leak: float
    stake: float

    @staticmethod
    def largest_stake(order: float, log_top: float, leak: float) -> float:
        """The stake with which no factor can fall below a tenth."""
        gone = leak / (1 - leak) * math.exp((order - 1) * log_top) if leak else 0.0
        lost = max(math.exp(order * log_top) / (1 - leak) - 1, 1e-12)
        return _CAUTION / max(order * (1 + gone), (order - 1) * lost)

    def terms(self, log_x: FloatArray, log_y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What takes the places of s(x)^{λ−1} and s(y)^λ, from log s."""
        lam, kept = self.order, 1 - self.leak
        a = np.exp((lam - 1) * log_x)
        if self.leak:
            a = a - self.leak * math.exp((lam - 1) * self.log_top)
        return a / kept, np.exp(lam * log_y) / kept

    def log_wealth(self, log_x: FloatArray, log_y: FloatArray, log_c: float) -> float:
        """The log-capital won against C by as many draws of either side, in any order; at least 0."""
        return self._wealth(*self.terms(log_x, log_y), log_c)

    def _wealth(self, a: FloatArray, b: FloatArray, log_c: float) -> float:
        lam = self.order
        shrunk = math.exp(-log_c / lam) * a
        if self.leak:
            shrunk = np.where(a < 0, a, shrunk)
        u = self.stake * lam * (shrunk - 1)
        v = self.stake * (lam - 1) * (1 - b)
        return max(0.0, float(np.sum(np.log1p(u)) + np.sum(np.log1p(v))))

    def largest_log_c(self, log_x: FloatArray, log_y: FloatArray, gamma: float) -> float:
        """The largest log C that is refuted at level γ; 0 if none is.

        >>> draws = np.log(np.repeat([1.6, 0.4], [80, 20])), np.log(np.repeat([1.6, 0.4], [20, 80]))
        >>> RenyiWealth(2.0, math.log(1.6), 0.0, 0.3).largest_log_c(*draws, 0.05) > 0
        True
        """
        a, b = self.terms(log_x, log_y)
        needed = math.log(1 / gamma)

        def wins(log_c: float) -> bool:
            return self._wealth(a, b, log_c) >= needed

        if len(a) == 0 or not wins(0.0):
            return 0.0
        high = 1e-3
        while wins(high) and high < _LARGEST:
            high *= 4
        found, _ = bisect(wins, 0.0 if high == 1e-3 else high / 4, high, steps=30, close=1e-7)
        return float(found)
