"""Confidence regions for a point (α, β) of a trade-off curve from held-out counts.

α = Q(E) and β = 1 − P(E). Three ways: Hoeffding's box (as BayBox has it), Clopper–Pearson's, and the
exact joint region, the points (p, q) whose likelihood-ratio distance from what was seen is not among
the γ least likely. All hold for every sample size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpassay._typing import FloatArray
from dpassay.bounds import binomial_limits as clopper_pearson
from dpassay.bounds.ordering import Counts, kl, window_of
from dpassay.bounds.supremum import LogBinomial


@dataclass(frozen=True)
class Region:
    """α in [low_alpha, high_alpha], β in [low_beta, high_beta].

    `outline`, where the region is not a box, is a drawing to the resolution of its corners: what holds
    with the stated confidence is the box around it.
    """

    low_alpha: float
    high_alpha: float
    low_beta: float
    high_beta: float
    outline: FloatArray | None = None


def hoeffding(c: Counts, gamma: float) -> Region:
    """Half-widths √(ln(4/γ)/2n), each side with its own n."""
    w_p, w_q = (math.sqrt(math.log(4 / gamma) / (2 * n)) for n in (c.n, c.m))
    alpha, beta = c.j / c.m, 1 - c.i / c.n
    return _clipped(alpha - w_q, alpha + w_q, beta - w_p, beta + w_p)


def box(c: Counts, gamma: float) -> Region:
    """Clopper–Pearson intervals, γ/4 for each of the four limits."""
    side = gamma / 4
    return _clipped(
        clopper_pearson.lower(c.j, c.m, side),
        clopper_pearson.upper(c.j, c.m, side),
        1 - clopper_pearson.upper(c.i, c.n, side),
        1 - clopper_pearson.lower(c.i, c.n, side),
    )


def joint(c: Counts, gamma: float, directions: int = 48) -> Region:
    """The exact joint region; its outline is found along rays, and drawn around them."""
    angle = np.linspace(0, 2 * np.pi, directions, endpoint=False)
    centre = np.array([c.i / c.n, c.j / c.m])
    spread = np.sqrt(
        np.maximum(centre * (1 - centre), 1 / np.array([c.n, c.m])) / np.array([c.n, c.m])
    )
    turn = np.column_stack([np.cos(angle), np.sin(angle)])
    step = np.where(np.abs(turn) < 1e-12, 0.0, turn) * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        to_edge = np.where(
            step > 0, (1 - centre) / step, np.where(step < 0, -centre / step, np.inf)
        )
    far = np.minimum(to_edge.min(axis=1), 12.0 + math.sqrt(2 * math.log(1 / gamma)))
    near, aim = np.zeros(directions), math.sqrt(-2 * math.log(gamma))
    ray = np.minimum(aim, far)
    for _ in range(7):  # outwards rounded at the end: the outline lies outside the region
        seen = np.clip(point_p_values(c, centre + ray[:, None] * step), 1e-300, 1 - 1e-9)
        inside = seen > gamma
        near, far = np.where(inside, ray, near), np.where(inside, far, ray)
        # √(−2 log p) is nearly proportional to the distance; a little beyond, to end outside
        ray = 1.002 * ray * aim / np.sqrt(-2 * np.log(seen))
        ray = np.where((near < ray) & (ray < far), ray, (near + far) / 2)
    for wider in (1.35, 1.2, 1.1, 1.05, 1.02):  # p-values are not monotone along a ray
        seen = point_p_values(c, np.clip(centre + wider * far[:, None] * step, 0.0, 1.0))
        far = np.where(seen > gamma, 1.02 * wider * far, far)
    far = far / math.cos(math.pi / directions)  # nor is the region a polygon: go around it
    outline = np.clip(centre + far[:, None] * step, 0.0, 1.0)
    alpha, beta = outline[:, 1], 1 - outline[:, 0]
    # with few counts p-values jump, and rays can miss a part: the box holds Clopper–Pearson's, which
    # covers by itself and is nearly always the smaller one
    sure = box(c, gamma)
    return Region(
        min(float(alpha.min()), sure.low_alpha),
        max(float(alpha.max()), sure.high_alpha),
        min(float(beta.min()), sure.low_beta),
        max(float(beta.max()), sure.high_beta),
        np.column_stack([alpha, beta]),
    )


def point_p_values(c: Counts, points: FloatArray) -> FloatArray:
    """P_{p,q}(n kl(i/n, p) + m kl(j/m, q) ≥ what was seen), for each (p, q)."""
    window = window_of(c, 1e-9)
    j = np.arange(window.first_j, window.last_j + 1)
    i = np.arange(window.first_i, window.last_i + 1)
    in_p = LogBinomial(c.n, i[0], i[-1], window.cut_off)
    in_q = LogBinomial(c.m, j[0], j[-1], window.cut_off)
    step = max(1, (1 << 20) // (i.size + j.size))
    if len(points) > step:
        parts = [points[k : k + step] for k in range(0, len(points), step)]
        return np.concatenate([point_p_values(c, part) for part in parts])
    p, q = np.clip(points, 1e-300, 1 - 1e-16).T
    mass_i, mass_j = in_p.masses(p), in_q.masses(q)
    cost_i, cost_j = c.n * kl(i / c.n, p[:, None]), c.m * kl(j / c.m, q[:, None])
    seen = c.n * kl(c.i / c.n, p) + c.m * kl(c.j / c.m, q)
    left = (seen * (1 - 1e-9) - 1e-9)[:, None] - cost_j
    order = np.argsort(cost_i, axis=1)
    cost_i = np.take_along_axis(cost_i, order, axis=1)
    cumulated = np.cumsum(np.take_along_axis(mass_i, order, axis=1), axis=1)
    out = np.empty(len(points))
    for index in range(len(points)):
        # for each j the i that are cheaper than what was seen are a run around p
        cheaper = np.searchsorted(cost_i[index], left[index], side="left")
        below = np.concatenate([[0.0], cumulated[index]])[cheaper]
        out[index] = 1.0 - float(np.sum(mass_j[index] * below))
    return out


def _clipped(low_a: float, high_a: float, low_b: float, high_b: float) -> Region:
    return Region(max(low_a, 0.0), min(high_a, 1.0), max(low_b, 0.0), min(high_b, 1.0))
