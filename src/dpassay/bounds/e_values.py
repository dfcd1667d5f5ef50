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

Validity does not rest on how exactly (P₀, Q₀) is found. For any factors x(·) of a draw of P and y(·) of
a draw of Q the largest E_P[x] + E_Q[y] = 2s over the set is known in closed form (`largest_sum`: it is
linear in the pair), and E_P[x] · E_Q[y] ≤ s². So a factor is divided by s² wherever s is above 1, which
for an exact projection it is not. What is left is rounding: no x or y is larger than 2¹⁶ and
probabilities are off by some 10⁻¹⁶, so that a mean is above 1 by less than 10⁻¹⁰, if at all; more than
that (`SAFETY`) is taken off the log-capital a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray
from dpassay.bounds.projections import (
    NEAR,
    Regions,
    largest_sum_on_cells,
    project_cells,
    project_coins,
    tangents_of,
)
from dpassay.bounds.renyi_wealth import RenyiWealth
from dpassay.privacy.claims import Claim

__all__ = [
    "SAFETY",
    "Bet",
    "EventBet",
    "MomentBet",
    "Past",
    "TailsBet",
    "bets_against",
    "clearance",
    "gains",
    "log_wealth",
]


#: Taken off the log-capital for each pair of draws: more than rounding can have added to its mean.
SAFETY = 1e-9
#: What every cell of a guess is given beforehand (Krichevsky & Trofimov).
_PRIOR = 0.5
#: Where Σp − Σq counts as 0 for a projection that only moves a guess.
_NEARLY = 1e-7
#: How much of 2n·KL counts as noise with n draws: log n less this, within these limits; see `_logs`.
_NOISE, _LEAST, _MOST = 3.0, 1.0, 4.0
#: Shares of the largest stake that are looked at.
_STAKES = np.geomspace(1e-3, 1.0, 25)
#: A cell that holds nothing is as likely as this.
_NOTHING = 1e-300
#: The log of the largest factor of one draw; see the end of the docstring above.
_LARGEST = 16 * math.log(2)

#: Counts of the cells on either side, a row each time they are looked at.
Past: TypeAlias = tuple[FloatArray, FloatArray]
#: The nearest pair that is allowed, and how exactly.
Projection: TypeAlias = Callable[[FloatArray, FloatArray, float], Past]
#: The largest E_P[x] + E_Q[y] over the pairs that are allowed.
LargestSum: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


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

    def gained(
        self, claims: Sequence[Claim], past: Past, picks: IntArray, hits: Past
    ) -> FloatArray:
        """What later draws with these `hits` in the cells added, by claim and row."""


def _logs(
    project: Projection, largest: LargestSum, a: FloatArray, b: FloatArray, draws: FloatArray
) -> Past:
    """What a draw of P, and one of Q, in each cell (the last axis) adds to the log-capital, by guess.

    The guess is moved towards the nearest pair that is allowed, by as much of the way as may be noise.
    2n·KL of n draws is about the square of a normal deviate for a bound that is overstepped by chance, so
    that 1 − 1/(2n·KL) of it is left by the rule of James and Stein. The more draws did not refute the
    claim, the smaller what they may have found: more of it counts as noise then. A guess that is moved
    all the way, or is allowed, is one that the claim allows: nothing is bet.
    """
    p, q = project(a, b, _NEARLY)
    far = (a * _log_ratio(a, p) + b * _log_ratio(b, q)).sum(axis=-1)
    noise = np.clip(np.log(np.maximum(draws, 1.0)) - _NOISE, _LEAST, _MOST)
    lost = (noise / np.maximum(2 * draws * far, 1e-12))[..., None]
    bold = lost < 1
    if not bold.any():
        nothing = np.zeros(p.shape)
        return nothing, nothing
    lost = np.minimum(lost, 1.0)
    a, b = a + lost * (p - a), b + lost * (q - b)
    # the nearest pair is a rough one
    a, b = a / a.sum(axis=-1, keepdims=True), b / b.sum(axis=-1, keepdims=True)
    p, q = project(a, b, NEAR)
    x, y = (np.minimum(_log_ratio(*pair), _LARGEST) for pair in ((a, p), (b, q)))
    above = np.log(np.maximum(largest(np.exp(x), np.exp(y)) / 2, 1.0))[..., None]
    return np.where(bold, x - above, 0.0), np.where(bold, y - above, 0.0)


def _log_ratio(one: FloatArray, two: FloatArray) -> FloatArray:
    """The log of one/two; 0 for a cell that holds nothing."""
    return np.log(np.maximum(one, _NOTHING) / np.maximum(two, _NOTHING))


def clearance(claim: Claim, p: FloatArray, q: FloatArray) -> FloatArray:
    """How far coins are beyond p = g(q), so that half its square is about what a bet gains a pair.

    On the scale of asin √ the noise of a frequency is the same everywhere.
    """
    region = tangents_of(claim)
    top, rise = region.region(q), region.rise[region.place(q)]
    room = np.maximum(top * (1 - top), 1e-12)
    far = 2 * (np.arcsin(np.sqrt(p)) - np.arcsin(np.sqrt(top)))
    return np.asarray(far / np.sqrt(1 + rise**2 * q * (1 - q) / room))


def _until(counts: FloatArray, at: IntArray) -> FloatArray:
    """How many are in the cells below some places, by row: (…, rows, cells) and (rows, places)."""
    sums = np.zeros((*counts.shape[:-1], counts.shape[-1] + 1))
    np.cumsum(counts, axis=-1, out=sums[..., 1:])
    return np.asarray(sums[..., np.arange(len(at))[:, None], at])


@dataclass(frozen=True)
class TailsBet:
    """Three cells, the bottom, the middle and the top, against pure DP; a pick says where they part."""

    weight: ClassVar[float] = 6.0

    def log_factors(
        self, claim: Claim, past: Past, picks: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """By the projection on three cells."""
        cells = past[0].shape[1]
        k = np.arange(cells)
        group = (k >= picks[:, :1]).astype(np.int64) + (k >= picks[:, 1:2])
        found = self._logs([claim], self._parts(np.array(past), picks), picks, cells)
        x, y = (np.take_along_axis(side[0], group, axis=1) for side in found)
        return x, y

    def gained(
        self, claims: Sequence[Claim], past: Past, picks: IntArray, hits: Past
    ) -> FloatArray:
        """All that counts is how many there are at the bottom, in the middle and at the top."""
        parts = self._parts(np.array([*past, *hits]), picks)
        x, y = self._logs(claims, parts[:2], picks, past[0].shape[1])
        return np.asarray((parts[2] * x + parts[3] * y).sum(axis=-1))

    def _parts(self, counts: FloatArray, picks: IntArray) -> FloatArray:
        """(…, rows, 3): the bottom, the middle, the top."""
        cells = np.full((len(picks), 1), counts.shape[-1])
        return np.diff(_until(counts, np.hstack([np.sort(picks, axis=1), cells])), prepend=0.0)

    def _logs(
        self, claims: Sequence[Claim], past: FloatArray, picks: IntArray, cells: int
    ) -> tuple[FloatArray, FloatArray]:
        """(claims, rows, 3): what a draw in each of the three adds."""
        picks = np.sort(picks, axis=1)
        ends = np.diff(picks, axis=1, prepend=0, append=cells)
        guess = past + _PRIOR * (ends > 0)  # a cell that holds nothing is none
        shape = len(claims), *past.shape[1:]
        limits = np.array([[_limit(claim)] for claim in claims])
        a, b = (np.broadcast_to(side, shape) for side in guess / guess.sum(axis=-1, keepdims=True))
        allowed = partial(project_cells, limits), partial(largest_sum_on_cells, limits)
        return _logs(*allowed, a, b, past[0].sum(axis=-1))


@lru_cache(maxsize=256)
def _limit(claim: Claim) -> float:
    """The largest log p/q that a claim allows."""
    return float(claim.renyi(math.inf))


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
        found = _coin_logs([claim], self._coins(np.array(past), picks))
        x, y = (np.where(hits, log[0, :, :1], log[0, :, 1:]) for log in found)
        return (y, x) if self.second else (x, y)

    def gained(
        self, claims: Sequence[Claim], past: Past, picks: IntArray, hits: Past
    ) -> FloatArray:
        """All that counts is how often the event held."""
        return events_gained([self], claims, past, picks[:, None], hits)[..., 0]

    def _coins(self, counts: FloatArray, picks: IntArray) -> FloatArray:
        """(2 or 4, rows, 2): how often it held and not, the side on which it is too likely first."""
        below = _until(counts, picks[:, :1])[..., 0]
        above = counts.sum(axis=-1) - below
        found = np.stack([above, below] if self.top else [below, above], axis=-1)
        return found[[1, 0, 3, 2][: len(found)]] if self.second else found


def events_gained(
    events: Sequence[EventBet], claims: Sequence[Claim], past: Past, picks: IntArray, hits: Past
) -> FloatArray:
    """(claims, rows, events): what bets on events gained; picks are (rows, events, 2)."""
    counts = np.array([*past, *hits])
    coins = [event._coins(counts, picks[:, k]) for k, event in enumerate(events)]
    held = np.concatenate(coins, axis=1)  # one event after the other
    x, y = _coin_logs(claims, held[:2])
    found = (held[2] * x + held[3] * y).sum(axis=-1)
    return np.moveaxis(found.reshape(len(claims), len(events), len(picks)), 1, 2)


def _coin_logs(claims: Sequence[Claim], past: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(claims, rows, 2): what a draw on which an event held, or not, adds on either side."""
    guess = past + _PRIOR
    shape = len(claims), *past.shape[1:]
    a, b = (np.broadcast_to(side, shape) for side in guess / guess.sum(axis=-1, keepdims=True))
    return _logs(*_coins_of(claims, shape[:-1]), a, b, past[0].sum(axis=-1))


def _coins_of(claims: Sequence[Claim], shape: tuple[int, ...]) -> tuple[Projection, LargestSum]:
    """The nearest coins that are allowed, both faces of each, and the largest sum of two means."""
    points = [claim.point for claim in claims]
    nearest: Callable[[FloatArray, FloatArray], Past]
    largest: LargestSum
    if all(point is not None and point[1] == 0 for point in points):
        epsilon = np.array([[point[0]] for point in points if point is not None])
        nearest, largest = partial(project_coins, epsilon), partial(largest_sum_on_cells, epsilon)
    else:
        found = [tangents_of(claim) for claim in claims]
        regions = found[0].alone if len(found) == 1 else Regions.of(found)
        which = np.broadcast_to(np.arange(len(claims))[:, None], shape)
        nearest, largest = partial(regions.nearest, which), partial(regions.largest_sum, which)

    def project(a: FloatArray, b: FloatArray, near: float) -> Past:
        p, q = nearest(a[..., 0], b[..., 0])
        return np.stack([p, 1 - p], axis=-1), np.stack([q, 1 - q], axis=-1)

    return project, largest


@dataclass(frozen=True)
class MomentBet:
    """A moment of p/q on all cells, against a Rényi divergence; a pick is the place of its order.

    The factors are those of `bounds.renyi_wealth`, whose mean is at most 1 for each pair of draws.
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

    def gained(
        self, claims: Sequence[Claim], past: Past, picks: IntArray, hits: Past
    ) -> FloatArray:
        """One claim after the other."""
        found = []
        for claim in claims:
            x, y = self.log_factors(claim, past, picks)
            found.append((hits[0] * x + hits[1] * y).sum(axis=1))
        return np.array(found)


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
    most = np.array([RenyiWealth.largest_stake(order, float(top), leak) for top in log_top])
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
    if claim.directional:
        ways = [EventBet(True, False), EventBet(False, False)]
    if math.isfinite(claim.renyi(math.inf)):  # p/q is bounded on every cell
        return (TailsBet(), *ways)
    if len(claim.orders):
        return (MomentBet(False), MomentBet(True), *ways)
    return tuple(ways)


def log_wealth(bets: tuple[Bet, ...], gains: FloatArray) -> FloatArray:
    """The log of the capital of all bets after each row, from what each (a column) gained in it."""
    weights = np.array([bet.weight for bet in bets])
    paths = np.cumsum(gains, axis=-2)
    top = paths.max(axis=-1, keepdims=True, initial=-np.inf)
    return np.asarray(top[..., 0] + np.log(np.exp(paths - top) @ (weights / weights.sum())))


def gains(
    bets: tuple[Bet, ...],
    claims: Sequence[Claim],
    past: AnyArray,
    picks: IntArray,
    hits: AnyArray,
) -> FloatArray:
    """(claims, rows, bets): what each bet gained by draws with `hits`, after the `past` was seen.

    Both are (rows, 2, cells), `picks` (rows, bets, 2).
    """
    before, then = (past[:, 0], past[:, 1]), (hits[:, 0], hits[:, 1])
    found = np.empty((len(claims), len(past), len(bets)))
    events = [k for k, bet in enumerate(bets) if isinstance(bet, EventBet)]
    chosen = [bet for bet in bets if isinstance(bet, EventBet)]
    found[..., events] = events_gained(chosen, claims, before, picks[:, events], then)
    for k, bet in enumerate(bets):
        if not isinstance(bet, EventBet):
            found[..., k] = bet.gained(claims, before, picks[:, k], then)
    return np.asarray(found - SAFETY * then[0].sum(axis=1)[:, None])
