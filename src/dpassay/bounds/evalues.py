"""Bets against a claim whose capital may be looked at whenever one likes.

A claim is a convex set of pairs (P, Q), on any cells. For a guess (P₁, Q₁) let (P₀, Q₀) be the pair in
the set with the smallest KL(P₁‖P) + KL(Q₁‖Q). Then the factor of a draw x of P and a draw y of Q,

    e(x, y) = p₁(x)/p₀(x) · q₁(y)/q₀(y),

has a mean of at most 1 for every pair of the set: with u = E_P[p₁/p₀] − 1 and v = E_Q[q₁/q₀] − 1, that no
step from (P₀, Q₀) into the set comes nearer to the guess says u + v ≤ 0, and (1 + u)(1 + v) ≤
(1 + (u + v)/2)² ≤ 1. (The reverse information projection of Grünwald, de Heide & Koolen 2024,
arXiv:1906.07801, for two samples; Turner, Ly & Grünwald 2024, arXiv:2106.02693.) A larger convex set in
the place of the claim's does as well: that of a few of the events it speaks of.

With guesses from the past alone the product over pairs of draws is a capital that ever reaches 1/γ with
probability at most γ (Ville), and so is the average of several.

A projection is found up to rounding. It ends within 1e-13 of the exact one, and no factor is larger than
1e9, so that a mean is above 1 by less than 1e-9, if at all: as much is taken off the log-capital a pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from dpassay._typing import BoolArray, FloatArray, IntArray
from dpassay.bounds.renyi_bets import Bets
from dpassay.privacy.claims import Claim
from dpassay.roots import bisect

#: Taken off the log-capital for each pair of draws: more than rounding can have added to its mean.
SAFETY = 1e-9
#: What every cell of a guess is given beforehand (Krichevsky & Trofimov).
_PRIOR = 0.5
#: Steps of a projection that is to be exact, and of one that only moves a guess.
_STEPS, _ROUGH = 53, 14
#: Where Σp − Σq counts as 0, and where it does for a projection that only moves a guess.
_NEAR, _NEARLY = 1e-14, 1e-7
#: How much of 2n·KL counts as noise with n draws: log n less this, within these limits; see `_cautious`.
_NOISE, _LEAST, _MOST = 3.0, 1.0, 4.0
#: Places, by logit, at which tangents stand for a region that is slow to evaluate.
_TANGENTS = np.linspace(-16.0, 16.0, 513)
#: Shares of the largest stake that are looked at.
_STAKES = np.geomspace(1e-3, 1.0, 25)

#: Counts of the cells on either side, a row each time they are looked at.
Past: TypeAlias = tuple[FloatArray, FloatArray]


# --- projections


@dataclass(frozen=True, eq=False)
class Tangents:
    """The smallest of some tangents of a concave g: nowhere below it, and quick."""

    edges: FloatArray  # where the next tangent takes over
    value: FloatArray  # of each tangent at 0
    rise: FloatArray

    @classmethod
    def of(cls, claim: Claim) -> Tangents:
        """At places that are equally far apart in the logit of q."""
        q = 1 / (1 + np.exp(-_TANGENTS))
        top, rise = np.asarray(claim.region(q)), np.asarray(claim.slope(q))
        keep = (top < 1.0) & np.isfinite(rise)
        q, top, rise = q[keep], top[keep], rise[keep]
        rise, first = np.unique(-rise, return_index=True)  # the steepest first, each once
        value = top[first] + rise * q[first]
        value, rise = np.append(value, 1.0), np.append(-rise, 0.0)
        steeper = rise[:-1] - rise[1:]
        edges = np.maximum.accumulate((value[1:] - value[:-1]) / np.maximum(steeper, 1e-300))
        return cls(edges, value, rise)

    def place(self, q: FloatArray) -> IntArray:
        """Which tangent is the smallest."""
        return np.searchsorted(self.edges, q, side="right")

    def region(self, q: FloatArray) -> FloatArray:
        """The smallest tangent."""
        k = self.place(q)
        return np.minimum(self.value[k] + self.rise[k] * q, 1.0)


@lru_cache(maxsize=256)
def tangents_of(claim: Claim) -> Tangents:
    """What a claim says about one event, quick to evaluate, and never less than it allows."""
    return Tangents.of(claim)


def project_event(
    region: Tangents, a: FloatArray, b: FloatArray, steps: int = _STEPS
) -> tuple[FloatArray, FloatArray]:
    """The (p, q) with p ≤ g(q) that is nearest to guesses (a, b), elementwise.

    It is the guess itself if that is allowed, else on the edge p = g(q), between q = b and p = a. There

        −(a − p)/(p(1 − p)) · g′(q) + (q − b)/(q(1 − q))

    rises with q, at kinks of g too, and passes 0 at the nearest place.
    """
    p, q = a.copy(), b.copy()
    out = a > region.region(b)
    if not out.any():
        return p, q
    a, b = a[out], b[out]

    def short(at: FloatArray) -> FloatArray:
        k = region.place(at)
        rise = region.rise[k]
        top = region.value[k] + rise * at
        left = (a - top) * rise * at * (1 - at)
        return np.asarray((top < a) & (left > (at - b) * top * (1 - top)))

    near, _ = bisect(short, b, a, steps=steps)  # g(q) ≥ q, so that p = a is reached before q = a
    p[out], q[out] = region.region(near), near
    return p, q


def project_coins(epsilon: float, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The (p, q) with p ≤ e^ε q and 1 − q ≤ e^ε (1 − p) that is nearest to guesses (a, b), elementwise.

    On the line p = r q, r = e^ε, it has 2r q² − (r(1 + b) + 1 + a) q + a + b = 0, of which the smaller
    root has p < 1; on the other line the same holds with 1 − q, 1 − p for p, q. If neither keeps the
    other bound, it is where the lines meet.
    """
    ratio = math.exp(min(epsilon, 600.0))
    p, q = a.copy(), b.copy()
    out = (a > ratio * b) | (1 - b > ratio * (1 - a))
    if not out.any():
        return p, q
    a, b = a[out], b[out]
    one = _on_line(ratio, a, b)
    other = _on_line(ratio, 1 - b, 1 - a)
    first = 1 - one <= ratio * (1 - ratio * one)
    second = 1 - other <= ratio * (1 - ratio * other)
    meet = 1 / (1 + ratio)
    p[out] = np.where(first, ratio * one, np.where(second, 1 - other, ratio * meet))
    q[out] = np.where(first, one, np.where(second, 1 - ratio * other, meet))
    return p, q


def _on_line(ratio: float, a: FloatArray, b: FloatArray) -> FloatArray:
    """The nearest q of those with p = ratio · q."""
    middle = ratio * (1 + b) + 1 + a
    root = np.sqrt(np.maximum(middle**2 - 8 * ratio * (a + b), 0.0))
    return np.asarray(2 * (a + b) / (middle + root))


def project_cells(
    epsilon: float, a: FloatArray, b: FloatArray, near: float = _NEAR
) -> tuple[FloatArray, FloatArray]:
    """The nearest (P, Q) with e^−ε ≤ p/q ≤ e^ε on every cell of the last axis.

    With multipliers ν of Σp = 1 and 2 − ν of Σq = 1 a cell is p = a/ν, q = b/(2 − ν) where that is
    allowed, else p = e^ε q with q = (a + b)/(ν e^ε + 2 − ν), or its mirror image. Σp − Σq falls with ν,
    and passes 0 where both are 1: Newton's steps inside a bracket find it.
    """
    ratio = math.exp(min(epsilon, 600.0))
    both = a + b
    low, high = np.full(a.shape[:-1], 1e-9), np.full(a.shape[:-1], 2 - 1e-9)
    nu = np.ones(a.shape[:-1])
    for _ in range(100):
        one = nu[..., None]
        other = 2 - one
        p, q = a / one, b / other
        steep, flat = both / (one * ratio + other), both / (one + other * ratio)
        up, down = p > ratio * q, q > ratio * p
        turn = np.where(up, steep, np.where(down, flat, 0.0)) * (ratio - 1)
        fall = turn * turn / np.maximum(both, 1e-300)
        fall += np.where(up | down, 0.0, p / one + q / other)
        p = np.where(up, ratio * steep, np.where(down, flat, p))
        q = np.where(up, steep, np.where(down, ratio * flat, q))
        excess = (p - q).sum(axis=-1)
        low, high = np.where(excess > 0, nu, low), np.where(excess > 0, high, nu)
        done = np.abs(excess) < near
        if done.all():
            break
        step = nu + excess / (fall.sum(axis=-1) + 1e-300)
        step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        nu = np.where(done, nu, step)
    inside = np.all((a <= ratio * b) & (b <= ratio * a), axis=-1, keepdims=True)
    return np.where(inside, a, p), np.where(inside, b, q)


# --- bets


class Bet(Protocol):
    """One way to bet on cells, with a guess from counts of the past; a pick says which cells."""

    @property
    def weight(self) -> float:
        """Its part of the capital to begin with, relative to others."""

    def log_factors(
        self, claim: Claim, past: Past, picks: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """What a draw of P, and one of Q, in each cell adds to the log-capital; a row each guess."""


def _cautious(guess: Past, nearest: Past, draws: FloatArray) -> Past:
    """The guess moved towards the nearest pair that is allowed, by as much of the way as may be noise.

    2n·KL of n draws is about the square of a normal deviate for a bound that is overstepped by chance, so
    that 1 − 1/(2n·KL) of it is left by the rule of James and Stein. The more draws did not refute the
    claim, the smaller what they may have found: more of it counts as noise then.
    """
    (a, b), (p, q) = guess, nearest
    with np.errstate(divide="ignore", invalid="ignore"):
        far = sum(np.where(one > 0, one * np.log(one / two), 0.0) for one, two in ((a, p), (b, q)))
    noise = np.clip(np.log(np.maximum(draws, 1.0)) - _NOISE, _LEAST, _MOST)
    kept = np.clip(1 - noise / np.maximum(2 * draws * np.sum(far, axis=1), 1e-12), 0.0, 1.0)
    moved = [two + kept[:, None] * (one - two) for one, two in ((a, p), (b, q))]
    a, b = (
        side / side.sum(axis=1, keepdims=True) for side in moved
    )  # the nearest pair is a rough one
    return a, b


def clearance(claim: Claim, p: FloatArray, q: FloatArray) -> FloatArray:
    """How far coins are beyond p = g(q), so that half its square is about what a bet gains a pair.

    On the scale of asin √ the noise of a frequency is the same everywhere.
    """
    region = tangents_of(claim)
    top, rise = region.region(q), region.rise[region.place(q)]
    room = np.maximum(top * (1 - top), 1e-12)
    far = 2 * (np.arcsin(np.sqrt(p)) - np.arcsin(np.sqrt(top)))
    return np.asarray(far / np.sqrt(1 + rise**2 * q * (1 - q) / room))


def _project(claim: Claim, a: FloatArray, b: FloatArray, steps: int) -> Past:
    """The (p, q) with p ≤ g(q) that is nearest to guesses (a, b), elementwise."""
    point = claim.point
    if point is not None and point[1] == 0:
        return project_coins(point[0], a, b)
    return project_event(tangents_of(claim), a, b, steps)


def _coins(chances: Past) -> Past:
    p, q = (np.column_stack([side, 1 - side]) for side in chances)
    return p, q


@dataclass(frozen=True)
class TailsBet:
    """Three cells, the bottom, the middle and the top, against pure DP; a pick says where they part."""

    weight: ClassVar[float] = 6.0

    def log_factors(
        self, claim: Claim, past: Past, picks: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """By the projection on three cells."""
        k = np.arange(past[0].shape[1])
        group = (k >= picks[:, :1]).astype(np.int64) + (k >= picks[:, 1:2])
        onto = group[:, None, :] == np.arange(3)[:, None]
        held = onto.any(axis=2)  # a cell that holds nothing is none
        a, b = ((onto @ side[:, :, None])[:, :, 0] + _PRIOR * held for side in past)
        a, b = (side / side.sum(axis=1, keepdims=True) for side in (a, b))
        limit = float(claim.renyi(math.inf))
        p, q = project_cells(limit, a, b, _NEARLY)
        a, b = _cautious((a, b), (p, q), past[0].sum(axis=1))
        p, q = project_cells(limit, a, b)
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = (np.where(held, np.log(one / two), 0.0) for one, two in ((a, p), (b, q)))
        return np.take_along_axis(x, group, axis=1), np.take_along_axis(y, group, axis=1)


@dataclass(frozen=True)
class EventBet:
    """One event: the cells from a pick on (`top`) or below it, too likely on P or (`second`) on Q."""

    top: bool
    second: bool
    weight: ClassVar[float] = 1.0

    def inside(self, picks: IntArray, cells: int) -> BoolArray:
        """Which cells belong to the event."""
        k = np.arange(cells)
        return np.asarray((k >= picks[:, :1]) if self.top else (k < picks[:, :1]), dtype=bool)

    def log_factors(
        self, claim: Claim, past: Past, picks: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """By the projection of two coins."""
        hits = self.inside(picks, past[0].shape[1])
        guess = []
        for side in past[::-1] if self.second else past:
            hit = (side * hits).sum(axis=1) + _PRIOR
            miss = (side * ~hits).sum(axis=1) + _PRIOR
            guess.append(np.column_stack([hit, miss]) / (hit + miss)[:, None])
        (a, b) = guess
        p, q = _coins(_project(claim, a[:, 0], b[:, 0], _ROUGH))
        a, b = _cautious((a, b), (p, q), past[0].sum(axis=1))
        p, q = _coins(_project(claim, a[:, 0], b[:, 0], _STEPS))
        factors = []
        for one, two in ((a, p), (b, q)):
            log = np.log(one / two)
            factors.append(np.where(hits, log[:, :1], log[:, 1:]))
        return (factors[1], factors[0]) if self.second else (factors[0], factors[1])


@dataclass(frozen=True)
class MomentBet:
    """A moment of p/q on all cells, against a Rényi divergence; a pick is the place of its order.

    The factors are those of `bounds.renyi_bets`, whose mean is at most 1 for each pair of draws.
    """

    second: bool  # the divergence of Q from P
    weight: ClassVar[float] = 2.0

    def log_factors(
        self, claim: Claim, past: Past, picks: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """With s the guess of p/q and the stake that grows fastest if the guess is right."""
        cells = past[0].shape[1]
        guess = [
            (side + _PRIOR) / (side.sum(axis=1, keepdims=True) + _PRIOR * cells) for side in past
        ]
        a, b = guess[::-1] if self.second else guess
        log_x, log_y = np.zeros_like(a), np.zeros_like(b)
        for place in np.unique(picks[:, 0]):
            rows = np.flatnonzero(picks[:, 0] == place)
            order = float(claim.orders[place])
            log_x[rows], log_y[rows] = _moment(claim, order, a[rows], b[rows])
        return (log_y, log_x) if self.second else (log_x, log_y)


def _moment(
    claim: Claim, order: float, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    log_s = np.log(a / b)
    log_s = log_s - np.log(np.sum(b * np.exp(order * log_s), axis=1, keepdims=True)) / order
    leak, limit = claim.leak, claim.divergence_limit(order)
    log_top = log_s.max(axis=1)
    shrink = math.exp(-min((order - 1) * limit / order, 700.0))
    gone = leak * np.exp((order - 1) * log_top)[:, None]
    s = (np.exp((order - 1) * log_s) - gone) / (1 - leak)
    u = order * (np.where(s < 0, s, shrink * s) - 1)
    v = (order - 1) * (1 - np.exp(order * log_s) / (1 - leak))
    most = np.array([Bets.largest_stake(order, float(top), leak) for top in log_top])
    stakes = most[:, None] * _STAKES
    rows = np.arange(len(a))
    growth = np.sum(a[:, None] * np.log1p(stakes[:, :, None] * u[:, None]), axis=2)
    growth += np.sum(b[:, None] * np.log1p(stakes[:, :, None] * v[:, None]), axis=2)
    best = growth.argmax(axis=1)
    stake = np.where(growth[rows, best] > 0, stakes[rows, best], 0.0)[:, None]
    return np.log1p(stake * u), np.log1p(stake * v)


def bets_against(claim: Claim) -> tuple[Bet, ...]:
    """The ways to bet against a claim. Their capitals are averaged."""
    ways: list[Bet] = [EventBet(True, False), EventBet(False, True)]
    if claim.one_way:
        ways = [EventBet(True, False), EventBet(False, False)]
    if math.isfinite(claim.renyi(math.inf)):  # p/q is bounded on every cell
        return (TailsBet(), *ways)
    if len(claim.orders):
        return (MomentBet(False), MomentBet(True), *ways)
    return tuple(ways)


def log_capital(bets: tuple[Bet, ...], gains: FloatArray) -> FloatArray:
    """The log of the capital of all bets after each row, from what each (a column) gained in it."""
    weights = np.array([bet.weight for bet in bets])
    paths = np.cumsum(gains, axis=0)
    top = paths.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(top[:, 0] + np.log(np.exp(paths - top) @ (weights / weights.sum())))


def gains(
    bets: tuple[Bet, ...],
    claim: Claim,
    past: Past,
    picks: IntArray,
    hits: tuple[IntArray, IntArray],
) -> FloatArray:
    """What each bet gained, by row: `hits` in the cells of either side, after the `past` was seen."""
    found = []
    for index, bet in enumerate(bets):
        log_x, log_y = bet.log_factors(claim, past, picks[:, index])
        found.append(np.sum(hits[0] * log_x + hits[1] * log_y, axis=1))
    return np.asarray(np.column_stack(found) - SAFETY * hits[0].sum(axis=1)[:, None])
