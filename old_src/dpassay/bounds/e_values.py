"""Bets against a claim: an e-process. Its wealth is a test martingale, which may be read at any time.

A claim is a closed convex set of pairs (P, Q), on any cells. For a guess (P₁, Q₁) let (P₀, Q₀) be the
pair in the set with the smallest KL(P₁‖P) + KL(Q₁‖Q). Then the factor of a draw x of P and a draw y of Q,

    e(x, y) = p₁(x)/p₀(x) · q₁(y)/q₀(y),

has a mean of at most 1 for every pair of the set: with u = E_P[p₁/p₀] − 1 and v = E_Q[q₁/q₀] − 1, that no
step from (P₀, Q₀) into the set comes nearer to the guess says u + v ≤ 0, and (1 + u)(1 + v) ≤
(1 + (u + v)/2)² ≤ 1. (The reverse information projection of Grünwald, de Heide & Koolen 2024,
arXiv:1906.07801, for two samples; Turner, Ly & Grünwald 2024, arXiv:2106.02693.) A larger convex set in
the place of the claim's does as well: that of a few of the events it speaks of.

With guesses from the past alone the product over pairs of draws is a wealth that ever reaches 1/γ with
probability at most γ (Ville), and so is the average of several.

Validity does not depend on how exactly (P₀, Q₀) is found. For any factors x(·) of a draw of P and y(·) of
a draw of Q the largest E_P[x] + E_Q[y] = 2s over the set is known in closed form (`largest_sum`: it is
linear in the pair), and E_P[x] · E_Q[y] ≤ s². So a factor is divided by s² wherever s is above 1, which
for an exact projection it is not. What is left is rounding: no x or y is larger than 2¹⁶ and
probabilities are off by some 10⁻¹⁶, so that a mean is above 1 by less than 10⁻¹⁰, if at all; more than
that (`SAFETY`) is taken off the log-wealth for each pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.bounds.projections import (
    NEAR,
    largest_sum_on_cells,
    project_cells,
    regions_of,
)
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import bisect

#: Taken off the log-wealth for each pair of draws: more than rounding can have added to its mean.
SAFETY = 1e-9
#: Counts that every cell of a guess has beforehand (Krichevsky & Trofimov).
_PRIOR = 0.5
#: Where Σp − Σq counts as 0 for a projection that only moves a guess.
_NEARLY = 1e-7
#: How much of 2n·KL counts as noise with n draws: log n less this, within limits; see `_gained`.
_NOISE, _LEAST, _MOST = 3.0, 1.0, 4.0
#: Shares of the largest bet size that are tried.
_BET_SIZES = np.geomspace(1e-3, 1.0, 25)
#: No bet size exceeds this share of what could be lost at once; and the largest log C that is tried.
_MAX_LOSS, _LARGEST_LOG_C = 0.9, 700.0
#: The probability of an empty cell.
_NOTHING = 1e-300
#: The log of the largest factor of one draw; see the end of the docstring above.
_LARGEST = 16 * math.log(2)

#: Counts of the cells on either side, a row for each guess.
Past: TypeAlias = tuple[FloatArray, FloatArray]
#: The nearest pair that is allowed, and how exactly.
Projection: TypeAlias = Callable[[FloatArray, FloatArray, float], Past]
#: The largest E_P[x] + E_Q[y] over the pairs that are allowed.
LargestSum: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


# --- Rényi divergences


@dataclass(frozen=True)
class RenyiWealth:
    """Bets against a Rényi divergence with both sides at once, which hold for every sample size.

    Let s ≥ 0 be any function of the output and C = E_Q[(p/q)^λ] = e^{(λ−1)D}. Hölder's inequality gives
    E_P[s^{λ−1}] ≤ C^{1/λ} E_Q[s^λ]^{(λ−1)/λ}. For a bet size h the factors

        u(x) = 1 + hλ (C^{−1/λ} s(x)^{λ−1} − 1)    and    v(y) = 1 + h(λ−1)(1 − s(y)^λ)

    of a draw x of P and a draw y of Q have E[u]·E[v] ≤ 1: with β = E_Q[s^λ]^{(λ−1)/λ} the product is at
    most (1 + hλ(β − 1))(1 + h(λ−1)(1 − β^{λ/(λ−1)})), whose logarithm is concave in β and has its
    maximum, 0, at β = 1. So the product over pairs of draws is a wealth that exceeds 1/γ with probability
    at most γ, if the divergence is D or less (Markov; bets on means: Waudby-Smith & Ramdas 2024,
    arXiv:2010.09686). The final wealth counts, not the largest on the way: it does not depend on the
    order of the draws, which a mechanism may have sorted. Only u depends on C, and does not
    rise with it: a wealth against C is at least that against every larger one, and the largest C that is
    refuted is a lower bound.

    Where a share δ (`leak`) of P and of Q may be anything, with s ≤ S, (s^{λ−1} − δS^{λ−1})/(1 − δ) takes
    the place of s^{λ−1} and s^λ/(1 − δ) that of s^λ: their means are on the safe side of those of the
    rest. (Where the first is negative it is not multiplied by C^{−1/λ} ≤ 1: that is safe as well, and
    keeps u falling.)
    """

    order: float
    log_top: float  # log S
    leak: float
    bet_size: float  # h

    @staticmethod
    def largest_bet_size(order: float, log_top: float, leak: float) -> float:
        """The bet size with which no factor can fall below a tenth."""
        gone = leak / (1 - leak) * math.exp((order - 1) * log_top) if leak else 0.0
        lost = max(math.exp(order * log_top) / (1 - leak) - 1, 1e-12)
        return _MAX_LOSS / max(order * (1 + gone), (order - 1) * lost)

    def terms(self, log_x: FloatArray, log_y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What takes the place of s(x)^{λ−1} and s(y)^λ, from log s."""
        return _moment_terms(self.order, self.leak, log_x, log_y, self.log_top)

    def log_wealth(self, log_x: FloatArray, log_y: FloatArray, log_c: float) -> float:
        """The log-wealth against C of equally many draws of either side, in any order; at least 0."""
        return self._wealth(*self.terms(log_x, log_y), log_c)

    def _wealth(self, a: FloatArray, b: FloatArray, log_c: float) -> float:
        u, v = _moment_bets(self.order, a, b, log_c)
        logs = np.sum(np.log1p(self.bet_size * u)) + np.sum(np.log1p(self.bet_size * v))
        return max(0.0, float(logs))

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
        while wins(high) and high < _LARGEST_LOG_C:
            high *= 4
        found, _ = bisect(wins, 0.0 if high == 1e-3 else high / 4, high, steps=30, close=1e-7)
        return float(found)


def _moment_terms(
    order: float, leak: float, log_x: FloatArray, log_y: FloatArray, log_top: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    a = np.exp((order - 1) * log_x)
    if leak:
        a = a - leak * np.exp((order - 1) * log_top)
    return a / (1 - leak), np.exp(order * log_y) / (1 - leak)


def _moment_bets(order: float, a: FloatArray, b: FloatArray, log_c: float) -> Past:
    """u − 1 and v − 1 for a bet size of 1, from the terms of s."""
    shrunk = np.minimum(math.exp(-log_c / order) * a, a)  # C ≥ 1: a, where that is negative
    return order * (shrunk - 1), (order - 1) * (1 - b)


# --- bets


def _gained(
    project: Projection, largest: LargestSum, parts: FloatArray, prior: AnyArray | float, many: int
) -> FloatArray:
    """What hits add to the log-wealth, for so many θ, by guesses from the past, in the same cells.

    `parts` are counts of P and Q in the past, and hits of P and Q: (4, rows, cells).

    The guess is moved towards the nearest pair that is allowed, by as much of the way as may be noise.
    2n·KL of n draws is about the square of a normal deviate for a bound that is exceeded by chance, so
    that 1 − 1/(2n·KL) of it is left by the rule of James and Stein. The more draws did not refute the
    claim, the smaller is the violation that they may have found: more of it counts as noise then. A guess
    that is moved all the way, or is allowed, bets nothing.
    """
    guess = parts[:2] + prior
    guess = guess / guess.sum(axis=-1, keepdims=True)
    a, b = (np.broadcast_to(side, (many, *side.shape)) for side in guess)
    p, q = project(a, b, _NEARLY)
    far = (a * _log_ratio(a, p) + b * _log_ratio(b, q)).sum(axis=-1)
    draws = parts[0].sum(axis=-1)
    noise = np.clip(np.log(np.maximum(draws, 1.0)) - _NOISE, _LEAST, _MOST)
    lost = (noise / np.maximum(2 * draws * far, 1e-12))[..., None]
    beyond = lost < 1
    if not beyond.any():
        return np.zeros(far.shape)
    lost = np.minimum(lost, 1.0)
    a, b = a + lost * (p - a), b + lost * (q - b)
    # the nearest pair is a rough one
    a, b = a / a.sum(axis=-1, keepdims=True), b / b.sum(axis=-1, keepdims=True)
    p, q = project(a, b, NEAR)
    x, y = (np.minimum(_log_ratio(*pair), _LARGEST) for pair in ((a, p), (b, q)))
    above = np.log(np.maximum(largest(np.exp(x), np.exp(y)) / 2, 1.0))[..., None]
    added = parts[2] * (x - above) + parts[3] * (y - above)
    return np.asarray(np.where(beyond, added, 0.0).sum(axis=-1))


def _log_ratio(one: FloatArray, two: FloatArray) -> FloatArray:
    """The log of one/two; 0 where both are 0, which `largest_sum` accounts for."""
    return np.log(np.maximum(one, _NOTHING) / np.maximum(two, _NOTHING))


def clearance(claim: Claim, pair: AnyArray, theta: float | None = None) -> FloatArray:
    """How far (p, q) is beyond p = g(q), so that half its square is about what a bet gains a pair.

    On the scale of asin √ the noise of a frequency is the same everywhere.
    """
    p, q = pair
    top, rise = regions_of(claim, (claim.value if theta is None else theta,)).at(q)
    room = np.maximum(top * (1 - top), 1e-12)
    far = 2 * (np.arcsin(np.sqrt(p)) - np.arcsin(np.sqrt(top)))
    return np.asarray(far / np.sqrt(1 + rise**2 * q * (1 - q) / room))


def _below(counts: FloatArray, at: IntArray) -> FloatArray:
    """How many draws are in the cells below indices, by row: (…, rows, cells) and (rows, indices)."""
    sums = np.zeros((*counts.shape[:-1], counts.shape[-1] + 1))
    np.cumsum(counts, axis=-1, out=sums[..., 1:])
    return np.asarray(sums[..., np.arange(len(at))[:, None], at])


@dataclass(frozen=True)
class TailsBet:
    """Three cells, the bottom, the middle and the top, against pure DP; a pick says where they part."""

    weight: ClassVar[float] = 6.0

    def gained(
        self, claim: Claim, thetas: FloatArray, past: Past, picks: IntArray, hits: Past
    ) -> FloatArray:
        """By the projection on three cells, from the counts at the bottom, the middle and the top."""
        counts = np.array([*past, *hits])
        cells = np.full((len(picks), 1), counts.shape[-1])
        ends = np.hstack([np.sort(picks, axis=1), cells])
        parts = np.diff(_below(counts, ends), prepend=0.0)  # (4, rows, 3)
        limits = np.asarray(claim.renyi(math.inf, thetas))[:, None]  # of log p/q
        allowed = partial(project_cells, limits), partial(largest_sum_on_cells, limits)
        prior = _PRIOR * (np.diff(ends, axis=1, prepend=0) > 0)  # none for a part without cells
        return _gained(*allowed, parts, prior, len(thetas))


@dataclass(frozen=True)
class EventBet:
    """One event: the cells from a pick on (`top`) or below it, too likely on P or (`second`) on Q."""

    top: bool
    second: bool
    weight: ClassVar[float] = 1.0

    def gained(
        self, claim: Claim, thetas: FloatArray, past: Past, picks: IntArray, hits: Past
    ) -> FloatArray:
        """By the projection on two cells, from how often the event happened."""
        counts = np.array([*past, *hits])
        below = _below(counts, picks[:, :1])[..., 0]
        above = counts.sum(axis=-1) - below
        parts = np.stack([above, below] if self.top else [below, above], axis=-1)  # (4, rows, 2)
        if self.second:  # the side on which it is too likely comes first
            parts = parts[[1, 0, 3, 2]]
        regions = regions_of(claim, tuple(thetas.tolist()))
        which = np.broadcast_to(np.arange(len(thetas))[:, None], (len(thetas), len(below[0])))

        def project(a: FloatArray, b: FloatArray, near: float) -> Past:
            p, q = regions.nearest(which, a[..., 0], b[..., 0])
            return np.stack([p, 1 - p], axis=-1), np.stack([q, 1 - q], axis=-1)

        return _gained(project, partial(regions.largest_sum, which), parts, _PRIOR, len(thetas))


@dataclass(frozen=True)
class MomentBet:
    """A moment of p/q on all cells, against a Rényi divergence; a pick is the index of its order.

    The factors are those of `RenyiWealth`, whose mean is at most 1 for each pair of draws.
    """

    second: bool  # the divergence of Q from P
    weight: ClassVar[float] = 2.0

    def gained(
        self, claim: Claim, thetas: FloatArray, past: Past, picks: IntArray, hits: Past
    ) -> FloatArray:
        """One θ after the other."""
        each = (self.log_factors(claim, past, picks, theta) for theta in thetas.tolist())
        return np.array([(hits[0] * x + hits[1] * y).sum(axis=1) for x, y in each])

    def log_factors(
        self, claim: Claim, past: Past, picks: IntArray, theta: float | None = None
    ) -> Past:
        """What a draw of P, and one of Q, in each cell adds to the log-wealth, a row for each guess.

        s is the guess of p/q, with the bet size that grows fastest if the guess is right.
        """
        cells = past[0].shape[1]
        guess = [
            (side + _PRIOR) / (side.sum(axis=1, keepdims=True) + _PRIOR * cells) for side in past
        ]
        a, b = guess[::-1] if self.second else guess
        log_x, log_y = np.zeros_like(a), np.zeros_like(b)
        for index in np.unique(picks[:, 0]):
            rows, order = picks[:, 0] == index, float(claim.orders[index])
            limit = claim.divergence_limit(order, theta)
            log_x[rows], log_y[rows] = _moment(order, limit, claim.leak, a[rows], b[rows])
        return (log_y, log_x) if self.second else (log_x, log_y)


def _moment(order: float, limit: float, leak: float, a: FloatArray, b: FloatArray) -> Past:
    """The log-factors of cells for guesses a of P and b of Q, against D_λ ≤ limit."""
    log_s = np.log(a / b)
    log_s = log_s - np.log(np.sum(b * np.exp(order * log_s), axis=1, keepdims=True)) / order
    log_top = log_s.max(axis=1)
    terms = _moment_terms(order, leak, log_s, log_s, log_top[:, None])
    u, v = _moment_bets(order, *terms, min((order - 1) * limit, 700.0 * order))
    most = np.array([RenyiWealth.largest_bet_size(order, float(top), leak) for top in log_top])
    sizes = most[:, None] * _BET_SIZES
    rows = np.arange(len(a))
    growth = np.sum(a[:, None] * np.log1p(sizes[:, :, None] * u[:, None]), axis=2)
    growth += np.sum(b[:, None] * np.log1p(sizes[:, :, None] * v[:, None]), axis=2)
    best = growth.argmax(axis=1)
    size = np.where(growth[rows, best] > 0, sizes[rows, best], 0.0)[:, None]
    return np.log1p(size * u), np.log1p(size * v)


#: One way to bet on cells, with a guess from counts of the past; a pick says which cells. `weight` is its
#: part of the initial wealth, relative to others; `gained` is what later draws with these `hits` in the
#: cells added to the log-wealth, by θ and row.
Bet: TypeAlias = TailsBet | EventBet | MomentBet


def bets_against(claim: Claim) -> tuple[Bet, ...]:
    """The ways to bet against a claim. Their wealths are averaged."""
    ways: list[Bet] = [EventBet(True, False), EventBet(False, True)]
    if claim.directional:
        ways = [EventBet(True, False), EventBet(False, False)]
    if math.isfinite(claim.renyi(math.inf)):  # p/q is bounded on every cell
        return (TailsBet(), *ways)
    if len(claim.orders):
        return (MomentBet(False), MomentBet(True), *ways)
    return tuple(ways)


def log_wealth(bets: tuple[Bet, ...], gains: FloatArray) -> FloatArray:
    """The log of the wealth of all bets after each row, from what each (a column) gained in it."""
    weights = np.array([bet.weight for bet in bets])
    paths = np.cumsum(gains, axis=-2)
    top = paths.max(axis=-1, keepdims=True, initial=-np.inf)
    return np.asarray(top[..., 0] + np.log(np.exp(paths - top) @ (weights / weights.sum())))


def gains(
    bets: tuple[Bet, ...],
    claim: Claim,
    thetas: Sequence[float],
    past: AnyArray,
    picks: IntArray,
    hits: AnyArray,
) -> FloatArray:
    """(θ, rows, bets): what each bet gained by draws with `hits`, after the `past` was seen.

    Both are (rows, 2, cells), `picks` (rows, bets, 2). The wealth is against the claim with its parameter
    at each of `thetas`.
    """
    values = np.array(thetas, dtype=float)
    before, then = (past[:, 0], past[:, 1]), (hits[:, 0], hits[:, 1])
    found = [bet.gained(claim, values, before, picks[:, k], then) for k, bet in enumerate(bets)]
    return np.asarray(np.stack(found, axis=-1) - SAFETY * then[0].sum(axis=1)[:, None])
