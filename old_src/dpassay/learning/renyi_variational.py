"""What training draws choose for a bound on a Rényi divergence: a function of a score, and a bet size.

The function is s = κ exp(min(loss, clip)), with κ such that E_Q[s^λ] = 1; see `RenyiWealth`
for the bound. With A and B the means of what is bet on, wealth grows by about h·m₁ − h²·m₂/2 a pair,
where

    m₁ = λ(C^{−1/λ} A − 1) + (λ−1)(1 − B),    m₂ = λ² E[(a/A − 1)²] + (λ−1)² E[(1 − b)²].

So n pairs refute C if m₁ ≥ √(2 log(1/γ) m₂/n), with the bet size h = √(2 log(1/γ)/(n m₂)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from dpassay._typing import FloatArray
from dpassay.bounds.e_values import RenyiWealth
from dpassay.learning.cross_fit import Scores
from dpassay.rootfinding import bisect

#: The largest logarithm of s^λ.
_LARGEST = 300.0
#: Shares of the draws of P under which the loss may be clipped.
_CLIPS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0)

#: Φ⁻¹(.9).
_OFTEN = 1.2816
#: Quantiles that stand for draws of Gaussian noise.
_QUANTILES = 5000


@dataclass(frozen=True, eq=False)
class VariationalFunction:
    """s = κ exp(min(ŝ, high)), the bet size, and the predicted bound."""

    order: float
    swapped: bool
    high: float
    log_scale: float
    bets: RenyiWealth
    mean: float  # m₁ for C = 1, on held-back training draws
    slope: float  # λA, by which m₁ falls with C^{−1/λ}
    spread: float  # √m₂
    effective: float  # draws that carry the divergence, or may, of those that will test
    draws: int  # held-back training draws a side
    test: int
    gamma: float

    def _divergence(self, needed: float) -> float:
        """The D at which m₁ is as needed; 0 if it is too small at D = 0."""
        shrunk = 1 - (self.mean - needed) / self.slope  # C^{−1/λ}
        if shrunk >= 1:
            return 0.0
        return -self.order * math.log(max(shrunk, 1e-300)) / (self.order - 1)

    def _needed(self, n: int, gamma: float) -> float:
        """m₁ with which n pairs refute half the time."""
        wealth, bet_size = math.log(1 / gamma) / n, self.bets.bet_size
        return wealth / bet_size + bet_size * self.spread**2 / 2

    @property
    def estimate(self) -> float:
        """The divergence as the held-back training draws have it."""
        return self._divergence(0.0)

    @property
    def predicted(self) -> float:
        """The bound predicted, less a standard error: the largest of several is too large."""
        noise = self.spread / math.sqrt(self.draws)
        return self._divergence(self._needed(self.test, self.gamma) + noise)

    @property
    def noise(self) -> float:
        """The standard error of the estimate, from the training draws."""
        noise = self.spread / math.sqrt(self.draws)
        return self._divergence(-noise) - self.estimate if self.mean > 0 else noise

    def power(self, divergence: float) -> float:
        """About the probability of refuting that the divergence is at most so much."""
        shrunk = math.exp(-(self.order - 1) * divergence / self.order)
        excess = self.mean - (1 - shrunk) * self.slope - self._needed(self.test, self.gamma)
        noise = self.spread * math.sqrt(1 / self.test + 1 / self.draws)
        return float(ndtr(excess / max(noise, 1e-300)))

    def detectable(self, divergence: float, n: int, gamma: float) -> float:
        """The divergence of Gaussian noise that is told from a claimed one with probability .9.

        With the exact score and the best clip. How much of a divergence is shown depends on the outputs,
        so that one shape of them is assumed. ∞ for so few draws that nothing of the kind can be said.
        """
        if n < 30 or self.mean <= 0:
            return math.inf
        draws = min(self.draws, _QUANTILES)
        z = ndtri((np.arange(draws) + 0.5) / draws)

        def refuted(excess: float) -> bool:
            shift = math.sqrt(2 * (divergence + excess) / self.order)
            scores = shift * z + shift**2 / 2, shift * z - shift**2 / 2
            found = learn_variational(self.order, False, *scores, n, gamma, self.bets.leak)
            often = found._needed(n, gamma) + _OFTEN * found.spread / math.sqrt(n)
            return found._divergence(often) >= divergence

        excess = 0.05 * max(divergence, 0.02)
        while not refuted(excess):
            excess *= 2
            if excess > 100 * max(divergence, 1.0):
                return math.inf
        return divergence + float(bisect(refuted, excess, 0.0, close=0.01)[0])

    def _logs(self, score_p: FloatArray, score_q: FloatArray) -> tuple[FloatArray, FloatArray]:
        m = min(len(score_p), len(score_q))
        x, y = (score_q, score_p) if self.swapped else (score_p, score_q)
        sign = -1.0 if self.swapped else 1.0
        return (
            self.log_scale + np.minimum(sign * x[:m], self.high),
            self.log_scale + np.minimum(sign * y[:m], self.high),
        )

    def bound(self, score_p: FloatArray, score_q: FloatArray, gamma: float) -> float:
        """A lower bound of the divergence, from scores of fresh draws."""
        log_c = self.bets.largest_log_c(*self._logs(score_p, score_q), gamma)
        return log_c / (self.order - 1)

    def p_value(self, score_p: FloatArray, score_q: FloatArray, divergence: float) -> float:
        """For the claim that the divergence is at most so much."""
        log_c = (self.order - 1) * divergence
        return math.exp(-self.bets.log_wealth(*self._logs(score_p, score_q), log_c))


def learn_variational(
    order: float,
    swapped: bool,
    score_p: FloatArray,
    score_q: FloatArray,
    test: int,
    gamma: float,
    leak: float = 0.0,
) -> VariationalFunction:
    """Choose the clip by the bound it predicts on `test` draws, from scores of held-back draws.

    The scores are put in order, which costs little where they are: sums up to a clip are then known for
    all clips at once.
    """
    lam = order
    x, y = (np.sort(side, kind="stable") for side in (score_p, score_q))
    if swapped:
        x, y = -y[::-1], -x[::-1]
    clips = np.unique(np.clip(np.quantile(x, _CLIPS), 0.0, _LARGEST / lam))
    # scores that exceed the log-ratio of the draws above them are too large: a clip loses nothing
    m, n = (side.size - np.searchsorted(side, clips) for side in (x, y))
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.log(m / x.size) - np.log(n / y.size) + np.sqrt(1 / m + 1 / n)
    w = np.minimum(x, np.min(clips, where=most <= clips, initial=np.inf))
    w = np.exp((lam - 1) * (w - w[-1]))
    carry = test * float(w.sum()) ** 2 / (x.size * float(np.sum(w**2)))
    carry = min(carry, _carried_by_levels(lam, x, y, test))
    power_x, square_x = _clipped_means(x, clips, lam - 1)
    power_y, square_y = _clipped_means(y, clips, lam)
    found = []
    for k, high in enumerate(clips.tolist()):
        # one draw of Q more, at the top: that none was seen there does not make s^λ free
        log_b = math.log((power_y[k] * y.size + math.exp(lam * high)) / (y.size + 1))
        scale = min(-log_b / lam, _LARGEST / lam - high)
        bet_size = RenyiWealth.largest_bet_size(lam, scale + high, leak)
        # means and mean squares of what takes the places of s^{λ−1} and s^λ
        gone, kept = leak * math.exp((lam - 1) * (scale + high)), 1 - leak
        a = math.exp((lam - 1) * scale) * power_x[k]
        a2 = math.exp(2 * (lam - 1) * scale) * square_x[k]
        mean_a = max((a - gone) / kept, 1e-12)
        spread_a = max(a2 - a**2, 0.0) / kept**2 + ((a - gone) / kept - mean_a) ** 2
        b = math.exp(lam * scale) * power_y[k] / kept
        b2 = math.exp(2 * lam * scale) * square_y[k] / kept**2
        top = math.exp(lam * (scale + high)) / kept
        mean_b = (b * y.size + top) / (y.size + 1)
        square_b = (max(1 - 2 * b + b2, 0.0) * y.size + (1 - top) ** 2) / (y.size + 1)
        square = lam**2 * spread_a / mean_a**2 + (lam - 1) ** 2 * square_b
        if square > 0:
            best_bet_size = math.sqrt(2 * math.log(1 / gamma) / (test * square))
            bet_size = max(min(bet_size, best_bet_size), 1e-12 * bet_size)
        found.append(
            VariationalFunction(
                order=lam,
                swapped=swapped,
                high=high,
                log_scale=scale,
                bets=RenyiWealth(lam, scale + high, leak, bet_size),
                mean=lam * (mean_a - 1) + (lam - 1) * (1 - mean_b),
                slope=lam * mean_a,
                spread=math.sqrt(square),
                effective=min(carry, test * power_x[k] ** 2 / square_x[k]),
                draws=min(x.size, y.size),
                test=test,
                gamma=gamma,
            )
        )
    return max(found, key=lambda one: one.predicted)


def _carried_by_levels(order: float, x: FloatArray, y: FloatArray, test: int) -> float:
    """The testing draws that may carry Σ p^λ q^{1−λ}, if the scores have few levels, as categories do.

    A rare level has a score near 0, or a wrong one, so that its weight is taken from counts: of Q two
    standard errors less. Its draws are those of the side that has fewer.
    """
    levels = np.unique(np.concatenate([x, y]))
    if levels.size > x.size / 10:
        return math.inf
    ends = [np.searchsorted(side, levels, side="right") for side in (x, y)]
    m, n = (np.diff(end, prepend=0) for end in ends)
    least = np.maximum((np.sqrt(n) - 1) ** 2, 0.5)
    share = softmax(
        np.where(m > 0, order * np.log(np.maximum(m, 1)), -np.inf) - (order - 1) * np.log(least)
    )
    seen = np.maximum(test * np.minimum(m / x.size, n / y.size), 0.5)
    return float(1 / np.sum(share**2 / seen))


def _clipped_means(
    values: FloatArray, clips: FloatArray, power: float
) -> tuple[list[float], list[float]]:
    """Means of e^{power·min(v, clip)} and of its square, by clip, of sorted values."""
    below = np.searchsorted(values, clips, side="right")
    each = np.exp(power * values[: below[-1]])
    found = []
    for factor, terms in ((1, each), (2, each**2)):
        sums = np.concatenate([[0.0], np.cumsum(terms)])[below]
        above = (values.size - below) * np.exp(factor * power * clips)
        found.append(((sums + above) / values.size).tolist())
    return found[0], found[1]


@dataclass(frozen=True)
class MomentCriterion:
    """The score with the largest predicted bound on a divergence."""

    order: float
    swaps: Sequence[bool]
    test: int
    gamma: float
    leak: float = 0.0

    def judge(self, scores: Scores, parametric: bool = False) -> VariationalFunction:
        """The best function of the scores, in the better direction."""
        return self.at(self.order, scores)

    def at(self, order: float, scores: Scores) -> VariationalFunction:
        ways = (
            learn_variational(order, swapped, *scores, self.test, self.gamma, self.leak)
            for swapped in self.swaps
        )
        return max(ways, key=lambda found: found.predicted)

    def beats(self, new: VariationalFunction, best: VariationalFunction) -> bool:
        """By more than the noise of the prediction."""
        return new.predicted > best.predicted + new.noise
