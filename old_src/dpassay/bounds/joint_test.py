"""The exact unconditional test of P(E) ≤ g(Q(E)) from two binomial counts.

i ~ Bin(n, p) and j ~ Bin(m, q) are independent, and the claim allows p ≤ g(q), g concave and
increasing. The test orders the outcomes by the likelihood-ratio distance from the claim,

    T(i, j)² = min_{p ≤ g(q)} 2 [n kl(i/n, p) + m kl(j/m, q)]      (0 where i/n ≤ g(j/m)),

which does not fall with i and does not rise with j, so {T ≥ t} is i ≥ i*(j) for a non-decreasing i*.
With C = [p₋, p₊] × [q₋, q₊] a confidence set for (p, q) of level 1 − b (Berger & Boos 1994,
doi:10.1080/01621459.1994.10476836),

    p-value = b + sup over (p, q) in C with p ≤ g(q) of  P(T ≥ t_obs)
            = b + sup over q in [q₋, q₊] with p₋ ≤ g(q) ≤ p₊ of
                  F(q) = Σ_j Bin(j; m, q) · P(Bin(n, g(q)) ≥ i*(j)),

or b + P(T ≥ t_obs) at (p₊, q₋) if g(q₋) > p₊, or b if g(q₊) < p₋. It is exact at every sample size: the
ordering only decides the power. The supremum is certified, not gridded. On the steps where it is needed g
is replaced by a few of its tangents (never below g), so that F is a polynomial in q on each of them; a
polynomial obeys

    |F(z)| ≤ (|z| + |1−z|)^m (|p(z)| + |1−p(z)|)^n    for complex z,

so Chebyshev interpolation in K points has an error known beforehand (Bernstein's ellipse), and the
maximum of the interpolant is bounded by its values on a grid (Ehlich & Zeller 1964).

No such p-value is below b. Smaller ones come from a closed form (`chernoff_p_value`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from dpassay._typing import FloatArray
from dpassay.bounds import clopper_pearson
from dpassay.bounds.ordering import (
    Counts,
    Window,
    approximate_critical_values,
    kl,
    observed_distance,
    seen_contour,
    window_of,
)
from dpassay.bounds.supremum import Lattice, LogBinomial, supremum
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import last_reaching

#: Share of γ spent on the confidence set C.
SPENT_ON_SET = 1e-3
#: A p-value up to this many times b = γ/1000 is at the floor of the test, which cannot give less than b.
_FLOOR = 1.009
#: The largest bound.
_MAX_PARAMETER = 1e6
#: How close a bound comes to what the test allows, in standard deviations.
_CLOSE = 0.004
#: The Chernoff distance: intervals of q to begin with, parts into which one is divided, and how often.
_INTERVALS, _PARTS, _ROUNDS = 16, 4, 8
#: Relative error of the Chernoff distance, for claims that are cheap to evaluate and for others.
_CLOSE_DISTANCE = {True: 0.005, False: 0.05}
#: The smallest p-value that is reported.
_LEAST = 1e-300


def p_value(counts: Counts, claim: Claim, *, gamma: float = 0.05) -> float:
    """An exact p-value for p ≤ g(q). `gamma` only sets the share b = γ/1000 spent on C.

    >>> from dpassay.privacy.claims import PureDP
    >>> round(p_value(Counts(450, 1000, 184, 1000), PureDP(0.7)), 4)
    0.0042
    """
    return _p_value(counts, claim, SPENT_ON_SET * gamma)


@lru_cache(maxsize=1 << 16)
def _p_value(counts: Counts, claim: Claim, spent: float) -> float:
    if counts.i / counts.n <= claim.region(counts.j / counts.m):
        return 1.0
    window = window_of(counts, spent)
    found = min(1.0, spent + supremum(Lattice(window, seen_contour(window, claim)), claim))
    return _reported(found, counts, claim, spent)


def _reported(found: float, counts: Counts, claim: Claim, spent: float) -> float:
    """The p-value; at the floor of the test that of `chernoff_p_value`, which can be smaller.

    Let p be the p-value of the test, p'' that of `chernoff_p_value`, and c the floor, which does not
    depend on the draws. The reported one is p' = p where p > c, else min(c, p''). For α ≥ c the event {p'
    ≤ α} is {p ≤ α}, and for α < c it is a part of {p'' ≤ α}. Both are p-values, so p' is one.
    """
    floor = _FLOOR * spent
    return found if found > floor else min(floor, chernoff_p_value(counts, claim))


def chernoff_p_value(counts: Counts, claim: Claim) -> float:
    """An exact p-value of p ≤ g(q) in closed form, for counts that are far from it.

    With x = i/n, y = j/m, kl⁺(x, p) = kl(x, p) if x > p, else 0, and kl⁻(y, q) = kl(y, q) if y < q, else
    0,

        s = min over q of  n kl⁺(x, g(q)) + m kl⁻(y, q)

    is at most n kl⁺(x, p) + m kl⁻(y, q) at the true p ≤ g(q), since g increases. By Chernoff's bound
    P(n kl⁺(i/n, p) ≥ t) ≤ e⁻ᵗ, and likewise for j. So s is no larger in distribution than the sum of two
    independent exponential variables, whatever n, m and the claim:

        P(s ≥ t) ≤ (1 + t) e⁻ᵗ,

    and (1 + s) e⁻ˢ is an exact p-value. It is too large by a factor of about (1 + s) √(4πs), which
    matters little where it is of the order of 10⁻²⁰, and costs no part of γ.

    >>> from dpassay.privacy.claims import PureDP
    >>> 1e-6 < chernoff_p_value(Counts(450, 1000, 184, 1000), PureDP(0.5)) < 1e-5
    True
    """
    s = chernoff_distance(counts, claim)
    return min(1.0, max(math.exp(math.log1p(s) - s), _LEAST))


def chernoff_distance(c: Counts, claim: Claim) -> float:
    """s, from below.

    Between two q the first term is at least that at the larger one, the second at least that at the
    smaller one; intervals where that may be too little are divided. Left of y the second term is 0 and
    the first is larger, right of x the first may be 0 and the second is larger.
    """
    x, y = c.i / c.n, c.j / c.m
    if x <= y:
        return 0.0

    def terms(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        allowed = np.minimum(np.asarray(claim.region(q)), x)  # above x the divergence is 0
        return c.n * kl(x, allowed), c.m * kl(y, np.maximum(q, y))

    q = np.sin(np.linspace(math.asin(math.sqrt(y)), math.asin(math.sqrt(x)), _INTERVALS + 1)) ** 2
    q[0], q[-1] = y, x
    first, second = terms(q)
    for turn in range(_ROUNDS + 1):
        least = first[1:] + second[:-1]
        wide = least < (1 - _CLOSE_DISTANCE[claim.quick]) * min(np.min(first + second), second[-1])
        if turn == _ROUNDS or not wide.any():
            break
        share = np.arange(1, _PARTS)[:, None] / _PARTS
        more = np.sort((q[:-1] + share * np.diff(q))[:, wide].ravel())
        old, new = np.array([q, first, second]), np.array([more, *terms(more)])
        q, first, second = np.insert(old, np.searchsorted(q, more), new, axis=1)
    # what the divergences lose by rounding, in the units of n and m
    return max(min(float(least.min()), float(second[-1])) - 1e-12 * (c.n + c.m), 0.0)


# --- the test and its inversion, by one ordering


@dataclass(frozen=True)
class Evidence:
    """The result of a test at significance level γ: the claim is refuted if and only if p_value ≤ γ.

    The lower bound is at least the claimed value if the claim is refuted, and below it if it is not.
    """

    p_value: float
    lower_bound: float


@lru_cache(maxsize=1 << 14)
def evidence(
    counts: Counts, claim: Claim, gamma: float, beyond: float = 0.0, *, bound_only: bool = False
) -> Evidence:
    """An exact p-value of the claim and a lower confidence bound on its parameter θ (Buehler 1957).

    Outcomes are ordered once for all θ, by the θ* at which their T falls to a level that does not depend
    on θ. T does not rise with θ, so that {θ* ≥ t} is {T_t ≥ level}, above one contour of one claim. Its
    largest probability under θ is a p-value for θ. It does not fall with θ, since a larger θ allows more,
    and the bound is where it passes γ. (The p-values of each claim by its own T are not monotone in θ.)
    A bound below `beyond` is not computed, none for ∞; with `bound_only` no p-value is (it is 1).
    """
    start = min(claim.needed(counts.i / counts.n, counts.j / counts.m), claim.largest)
    if start <= 0:
        return Evidence(1.0, 0.0)
    window = window_of(counts, SPENT_ON_SET * gamma)
    level = approximate_critical_values(counts.n, counts.m, gamma)
    goal = -float(ndtri(gamma))
    theta, seen, scale = _where_distance(window, claim, start, level(counts.j))
    if theta == 0 and seen < 0.4:  # a level varies by at most 3/8: shifted, it stays positive
        return Evidence(1.0, 0.0)
    # below 0 only at θ = 0: outcomes that do not reach the level are ordered by their distance to it
    lacking = min(seen - level(counts.j), 0.0)
    least = seen_contour(window, claim, lambda j: (level(j) + lacking) ** 2, theta)
    lattice = Lattice(window, least)

    def largest(value: float) -> float:
        return min(1.0, window.spent + supremum(lattice, claim, value))

    allowed = bound_only or counts.i / counts.n <= claim.region(counts.j / counts.m)
    p_value = 1.0 if allowed else largest(claim.value)
    known = (claim.value, -float(ndtri(p_value))) if p_value < 1.0 else None
    refuted = p_value <= gamma
    held = not refuted and not bound_only and claim.value <= beyond
    if beyond > 0 and (held or math.isinf(beyond) or largest(beyond) > gamma):
        reported = _reported(p_value, counts, claim, window.spent)
        return Evidence(reported, claim.value if refuted else 0.0)

    def z_score(value: float) -> float:
        return max(-float(ndtri(largest(value))), min(-3.0, goal - 1))

    bound = _last_above(z_score, goal, theta, scale, claim.largest, known)
    if refuted:
        bound = max(bound, claim.value)
    elif bound >= claim.value and not bound_only:
        bound = math.nextafter(claim.value, -math.inf) if claim.value > 0 else 0.0
    return Evidence(_reported(p_value, counts, claim, window.spent), bound)


def evidence_of(
    tests: Iterable[tuple[Counts, float]], claim: Claim, *, bound_only: bool = False
) -> list[Evidence]:
    """`evidence` of several counts, each at its level; all bounds but the largest may be too small."""
    found: list[Evidence] = []
    beyond = 0.0
    for counts, gamma in tests:
        found.append(evidence(counts, claim, gamma, beyond, bound_only=bound_only))
        beyond = max(beyond, found[-1].lower_bound)
    return found


def lower_bound(counts: Counts, claim: Claim, gamma: float) -> float:
    """The lower confidence bound on the claim's parameter."""
    return evidence(counts, claim, gamma).lower_bound


def _where_distance(
    window: Window, claim: Claim, start: float, level: float
) -> tuple[float, float, float]:
    """The θ, from below, at which T of the counts falls to the level; T there; and dθ/dT.

    θ = 0 where T is below the level even there. From `start` on the claim allows what was observed.
    """

    def distance(theta: float) -> float:
        return 0.0 if theta >= start else math.sqrt(observed_distance(window, claim, theta))

    low, at_low, high, at_high = 0.0, distance(0.0), start, 0.0
    if not math.isfinite(start):
        high = 1.0
        while (at_high := distance(high)) > level and high < _MAX_PARAMETER:
            low, at_low, high = high, at_high, 2 * high
    if at_low >= level:  # T is nearly linear in θ
        (low, at_low), (high, _) = last_reaching(
            distance, level, (low, at_low), (high, at_high), close=_CLOSE / 4
        )
    top = min(start, 2 * high + 1)
    scale = max(top - low, 1e-9) / max(min(at_low, level), 0.5)
    return low, at_low, scale


def _last_above(
    z_score: Callable[[float], float],
    goal: float,
    guess: float,
    scale: float,
    largest: float,
    known: tuple[float, float] | None,
) -> float:
    """The largest θ found at which a falling z-score still reaches the goal; 0 if none does.

    `known` is a θ and its z-score.
    """
    low = known if known is not None and known[1] >= goal else None
    high = known if known is not None and known[1] < goal else None
    if low is not None and guess <= low[0]:
        guess = min(low[0] + scale * (low[1] - goal) / 2 + 1e-9, largest)
    if high is not None and guess >= high[0]:
        guess = max(0.0, high[0] + scale * (high[1] - goal - _CLOSE))
    turn = 0
    while low is None or high is None:  # steps along the slope until two θ bracket the goal
        z = z_score(guess)
        if z >= goal:
            low = guess, z
            if z - goal <= _CLOSE or guess >= largest:
                return guess
        else:
            high = guess, z
            if guess <= 0:
                return 0.0
        if turn >= 60:
            return 0.0 if low is None else low[0]
        guess = min(max(guess + (1 + turn) * scale * (z - goal - _CLOSE / 2), 0.0), largest)
        turn += 1
    found, _ = last_reaching(z_score, goal, low, high, close=_CLOSE, apart=_CLOSE * scale)
    return found[0]


# --- confidence regions for a point (α, β) of a trade-off curve, which hold for every sample size


@dataclass(frozen=True)
class Region:
    """α = Q(E) in [low_alpha, high_alpha], β = 1 − P(E) in [low_beta, high_beta].

    `outline`, where the region is not a box, is a drawing to the resolution of its corners: the box
    around it has the stated confidence.
    """

    low_alpha: float
    high_alpha: float
    low_beta: float
    high_beta: float
    outline: FloatArray | None = None


def hoeffding_box(c: Counts, gamma: float) -> Region:
    """Hoeffding's box (as BayBox has it): half-widths √(ln(4/γ)/2n), each side with its own n."""
    w_p, w_q = (math.sqrt(math.log(4 / gamma) / (2 * n)) for n in (c.n, c.m))
    alpha, beta = c.j / c.m, 1 - c.i / c.n
    ends = np.array([alpha - w_q, alpha + w_q, beta - w_p, beta + w_p])
    return Region(*ends.clip(0.0, 1.0).tolist())


def clopper_pearson_box(c: Counts, gamma: float) -> Region:
    """Clopper–Pearson intervals, γ/4 for each of the four limits."""
    low_p, low_q = clopper_pearson.lower([c.i, c.j], [c.n, c.m], gamma / 4).tolist()
    high_p, high_q = clopper_pearson.upper([c.i, c.j], [c.n, c.m], gamma / 4).tolist()
    return Region(low_q, high_q, 1 - high_p, 1 - low_p)


def joint_region(c: Counts, gamma: float, directions: int = 48) -> Region:
    """The points (p, q) whose likelihood-ratio distance from the counts is not among the γ least likely.

    Its outline is searched along rays, and drawn around them.
    """
    angle = np.linspace(0, 2 * np.pi, directions, endpoint=False)
    centre = np.array([c.i / c.n, c.j / c.m])
    sizes = np.array([c.n, c.m])
    spread = np.sqrt(np.maximum(centre * (1 - centre), 1 / sizes) / sizes)
    turn = np.column_stack([np.cos(angle), np.sin(angle)])
    step = np.where(np.abs(turn) < 1e-12, 0.0, turn) * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        to_edge = np.where(step == 0, np.inf, ((step > 0) - centre) / step)
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
    # with few counts p-values jump, and rays can miss a part: the box contains Clopper–Pearson's, which
    # covers by itself and is nearly always the smaller one
    box = clopper_pearson_box(c, gamma)
    return Region(
        min(float(alpha.min()), box.low_alpha),
        max(float(alpha.max()), box.high_alpha),
        min(float(beta.min()), box.low_beta),
        max(float(beta.max()), box.high_beta),
        np.column_stack([alpha, beta]),
    )


def point_p_values(c: Counts, points: FloatArray) -> FloatArray:
    """P_{p,q}(n kl(i/n, p) + m kl(j/m, q) ≥ its observed value), for each (p, q)."""
    window = window_of(c, 1e-9)
    j = np.arange(window.first_j, window.last_j + 1)
    i = np.arange(window.first_i, window.last_i + 1)
    in_p = LogBinomial(c.n, i[0], i[-1], window.cut_off)
    in_q = LogBinomial(c.m, j[0], j[-1], window.cut_off)
    step = max(1, (1 << 20) // (i.size + j.size))
    if len(points) > step:
        parts = np.split(points, range(step, len(points), step))
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
    for k in range(len(points)):
        # for each j the i with a smaller distance than the observed one are a run around p
        below = np.append(0.0, cumulated[k])[np.searchsorted(cost_i[k], left[k], side="left")]
        out[k] = 1.0 - float(np.sum(mass_j[k] * below))
    return out
