"""The pair of distributions that a claim allows and that is nearest to a guess, for several θ at once.

"Nearest" is by KL(a‖p) + KL(b‖q) (the reverse information projection). What a claim says about one event
is p ≤ g(q). g is replaced by the minimum of some of its tangents, which is nowhere below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.privacy.claims import Claim

#: Where Σp − Σq counts as 0.
NEAR = 1e-14
#: Logits of q at which tangents are taken, besides q = 0.
_TANGENTS = np.linspace(-16.0, 16.0, 513)
#: A Newton step this much smaller than its end point is the last: it squares the error.
_LAST = 1e-8
#: Past the end of all events.
_PAST = 2.0


# --- one event


@dataclass(frozen=True, eq=False)
class Regions:
    """The tangents of g at several θ in a row, so that one search serves guesses about all of them."""

    first: IntArray  # by θ, the index of its first tangent
    last: IntArray
    steps: int  # bisection steps that find one tangent among those of a θ
    value: FloatArray  # of each tangent at q = 0
    rise: FloatArray
    start: FloatArray  # where each tangent begins to be the smallest
    end: FloatArray
    top: FloatArray  # p at the end, p (1 − p), and the rise times q (1 − q)
    room: FloatArray
    lean: FloatArray

    def at(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest tangent and its slope, of a single θ."""
        k = np.searchsorted(self.end, q, side="right")
        return np.minimum(self.value[k] + self.rise[k] * q, 1.0), self.rise[k]

    def nearest(
        self, which: IntArray, a: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The (p, q) with p ≤ g(q) that is nearest to guesses (a, b), elementwise; g of the θ `which`.

        It is the guess itself if that is allowed, else on the boundary p = g(q), between q = b and p = a.
        There

            (a − p)/(p(1 − p)) · g′(q) − (q − b)/(q(1 − q))

        falls with q, at kinks of g too, and passes 0 at the nearest point: first its tangent is found.
        """
        low, high = self.first[which], self.last[which]
        for _ in range(self.steps):
            k = (low + high) >> 1
            end, top = self.end[k], self.top[k]
            short = (a - top) * self.lean[k] > (end - b) * self.room[k]
            beyond = (end < b) | ((top < a) & short)  # before q = b it is positive
            low, high = np.where(beyond, k + 1, low), np.where(beyond, high, k)
        value, rise = self.value[high], self.rise[high]
        bottom = np.maximum(self.start[high], b)
        out = (bottom > b) | (a > value + rise * bottom)
        p, q = a.copy(), b.copy()
        if out.any():
            a, b, value, rise = a[out], b[out], value[out], rise[out]
            near = _on_tangent(a, b, value, rise, bottom[out], np.minimum(self.end[high[out]], a))
            p[out], q[out] = np.minimum(value + rise * near, 1.0), near
        return p, q

    def largest_sum(self, which: IntArray, x: FloatArray, y: FloatArray) -> FloatArray:
        """The largest E_P[x] + E_Q[y] over the pairs with p ≤ g(q); the event comes first in both.

        A linear function of (p, q): largest where a tangent with too small a slope takes over, or at a
        corner.
        """
        more, less = x[..., 0] - x[..., 1], y[..., 0] - y[..., 1]
        low, high = self.first[which], self.last[which]
        for _ in range(self.steps):
            k = (low + high) >> 1
            steep = more * self.rise[k] + less > 0
            low, high = np.where(steep, k + 1, low), np.where(steep, high, k)
        q = np.clip(self.start[high], 0.0, 1.0)
        p = np.clip(self.value[high] + self.rise[high] * q, 0.0, 1.0)
        edge = p * x[..., 0] + (1 - p) * x[..., 1] + q * y[..., 0] + (1 - q) * y[..., 1]
        corners = np.maximum(x[..., 1] + y.max(axis=-1), x[..., 0] + y[..., 0])
        return np.asarray(np.maximum(edge, corners))


def largest_sum_on_cells(epsilon: float | FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """The largest Σ p x + Σ q y over distributions on cells with e^−ε ≤ p/q ≤ e^ε.

    By duality it is the least ν + η with (x − ν) p + (y − η) q ≤ 0 for p/q = r and 1/r, r = e^ε, on
    every cell, so that ν r + η ≥ max (r x + y) and ν + r η ≥ max (x + r y).
    """
    ratio = np.asarray(np.exp(np.minimum(epsilon, 600.0)))[..., None]
    both = (x * ratio + y).max(axis=-1) + (x + y * ratio).max(axis=-1)
    return np.asarray(both / (1 + ratio[..., 0]))


def _on_tangent(
    a: FloatArray,
    b: FloatArray,
    value: FloatArray,
    rise: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """The nearest q in [low, high] with p = value + rise · q, by Newton steps in a bracket.

    The root of (a − p) p′ q(1 − q) − (q − b) p(1 − p), or the end towards which it points.
    """
    high = np.maximum(low, high)

    def excess(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = value + rise * q
        room, other = p * (1 - p), rise * q * (1 - q)
        turn = rise * ((a - p) * (1 - 2 * q) - other) - room - (q - b) * rise * (1 - 2 * p)
        return (a - p) * other - (q - b) * room, turn

    begin, finish = excess(low)[0], excess(high)[0]
    outside = [begin <= 0, finish >= 0]
    ends = [low, high]
    with np.errstate(divide="ignore", invalid="ignore"):
        q = low + (high - low) * (begin / (begin - finish))
        q = np.where((q > low) & (q < high), q, 0.5 * (low + high))
        done = outside[0] | outside[1]
        for _ in range(100):
            more, turn = excess(q)
            low, high = np.where(more > 0, q, low), np.where(more > 0, high, q)
            step = q - more / turn
            # near q = 1 the excess has a second root, where it rises: no step there is the last
            converged = (turn < 0) & (np.abs(step - q) <= _LAST * np.minimum(q, 1 - q))
            step = np.where((step > low) & (step < high) | converged, step, 0.5 * (low + high))
            q = np.where(done, q, np.clip(step, low, high))
            done = done | converged | (high <= low)
            if done.all():
                break
    return np.where(outside[0], ends[0], np.where(outside[1], ends[1], q))


@lru_cache(maxsize=128)
def regions_of(claim: Claim, thetas: tuple[float, ...]) -> Regions:
    """The tangents of a claim at several θ. The last one of each θ is level: no guess is above it."""
    q = np.append(0.0, 1 / (1 + np.exp(-_TANGENTS)))
    found = []
    for theta in thetas:
        g, rise = claim.region_and_slope(q, theta)
        keep = (g < 1.0) & np.isfinite(rise)
        rise, steepest = np.unique(-rise[keep], return_index=True)  # the steepest first, each once
        value = g[keep][steepest] + rise * q[keep][steepest]
        value, rise = np.append(value, 1.0), np.append(-rise, 0.0)
        steeper = rise[:-1] - rise[1:]
        edges = np.maximum.accumulate(np.diff(value) / np.maximum(steeper, 1e-300))
        found.append((value, rise, np.append(-np.inf, edges), np.append(edges, _PAST)))
    sizes = np.array([len(one[0]) for one in found])
    value, rise, start, end = (np.concatenate(column) for column in zip(*found, strict=True))
    last = np.cumsum(sizes) - 1
    top = value + rise * end
    steps = int(sizes.max() - 1).bit_length()
    rooms = top * (1 - top), rise * end * (1 - end)
    return Regions(last + 1 - sizes, last, steps, value, rise, start, end, top, *rooms)


# --- cells


def project_cells(
    epsilon: float | FloatArray, a: FloatArray, b: FloatArray, near: float = NEAR
) -> tuple[FloatArray, FloatArray]:
    """The nearest (P, Q) with e^−ε ≤ p/q ≤ e^ε on every cell of the last axis.

    With multipliers ν of Σp = 1 and 2 − ν of Σq = 1 a cell is p = a/ν, q = b/(2 − ν) where that is
    allowed, else p = e^ε q with q = (a + b)/(ν e^ε + 2 − ν), or its mirror image. Σp − Σq falls with ν,
    and passes 0 where both are 1: Newton's steps inside a bracket find it.
    """
    ratio = np.asarray(np.exp(np.minimum(epsilon, 600.0)))[..., None]
    inside = np.all((a <= ratio * b) & (b <= ratio * a), axis=-1)
    if inside.all():
        return a, b
    both = a + b
    floor = np.maximum(both, 1e-300)
    shape = np.broadcast_shapes(ratio.shape[:-1], a.shape[:-1])
    low, high, nu = np.full(shape, 1e-9), np.full(shape, 2 - 1e-9), np.ones(shape)
    done = np.broadcast_to(inside, shape)
    for _ in range(100):
        one = nu[..., None]
        other = 2 - one
        p, q = a / one, b / other
        up, down = p > ratio * q, q > ratio * p
        held = up | down
        # the smaller of p and q
        edge = both / np.where(up, one * ratio + other, one + other * ratio)
        turn = (ratio - 1) * edge
        more = np.where(held, np.where(up, turn, -turn), p - q).sum(axis=-1)
        done = done | (np.abs(more) < near)
        if done.all():
            break
        fall = np.where(held, turn * turn / floor, p / one + q / other).sum(axis=-1)
        low, high = np.where(more > 0, nu, low), np.where(more > 0, high, nu)
        step = nu + more / (fall + 1e-300)
        step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        nu = np.where(done, nu, step)
    p = np.where(up, ratio * edge, np.where(down, edge, p))
    q = np.where(up, edge, np.where(down, ratio * edge, q))
    free = inside[..., None]
    return np.where(free, a, p), np.where(free, b, q)
