"""The Rényi divergence of two coins, solved for one of them, and what it implies.

An event turns a pair of distributions into a pair of coins, and no divergence of the coins exceeds
that of the pair. Coins are given by their logits, so that both tails keep their digits. Whatever is
solved for ends on the outer side, so that nothing a claim allows is left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay._typing import FloatArray
from dpassay.rootfinding import bisect

#: Logits beyond this are probabilities 0 and 1.
_FAR = 745.0
#: Rounding of a sum of logarithms, relative to the largest of them.
_ROUNDING = 1e-15


def logit(p: FloatArray) -> FloatArray:
    """log p/(1 − p), infinite at the ends."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def log_expit(u: FloatArray) -> FloatArray:
    """The logarithm of the probability with logit u."""
    return -np.logaddexp(0.0, -u)


def divergence(p: float, q: float, orders: FloatArray) -> FloatArray:
    """D_λ of two coins for p > q, else 0."""
    if p <= q:
        return np.zeros_like(orders)
    if q <= 0:
        return np.full_like(orders, math.inf)
    if p >= 1:
        return np.full_like(orders, -math.log(q))
    u, v = logit(np.array([p])), logit(np.array([q]))
    return np.maximum(_power_sum(u, v, orders) / (orders - 1), 0.0)


def _power_sum(u: FloatArray, v: FloatArray, lam: FloatArray) -> FloatArray:
    """(λ − 1) D_λ = log(p^λ q^{1−λ} + (1−p)^λ (1−q)^{1−λ}) at logits u of p and v of q."""
    with np.errstate(invalid="ignore"):
        return np.logaddexp(
            lam * log_expit(u) + (1 - lam) * log_expit(v),
            lam * log_expit(-u) + (1 - lam) * log_expit(-v),
        )


def edge(
    fixed: FloatArray, direction: float, orders: FloatArray, budgets: FloatArray
) -> FloatArray:
    """Logit of the other coin at D_λ = budget, by order and coin, rounded away from `fixed`.

    Direction +1 looks for the largest p at a given q, −1 for the smallest q at a given p.
    """
    fixed = np.broadcast_to(fixed, (orders.size, fixed.size))
    lam, limit = orders[:, None], ((orders - 1) * budgets)[:, None]
    # at the root no logarithm that counts is larger than λ times those of `fixed`, and the limit
    inner = np.where(np.isinf(fixed), 0.0, fixed)
    limit = limit + _ROUNDING * (1 + limit + lam * (2 * np.log(2) + np.abs(inner)))

    # λ log p + (1 − λ) log q, and the same of 1 − p and 1 − q: what does not change is found once
    moves, stays = (lam, 1 - lam) if direction > 0 else (1 - lam, lam)
    one, two = stays * log_expit(fixed), stays * log_expit(-fixed)

    def excess(other: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            heads, tails = moves * log_expit(other), moves * log_expit(-other)
            return np.asarray(np.logaddexp(heads + one, tails + two) - limit)

    near, far = fixed, np.full(fixed.shape, direction * 800.0)
    near, far = bisect(lambda other: excess(other) <= 0, near, far, steps=24)
    at_near, at_far = excess(near), excess(far)
    for step in range(
        6
    ):  # the bracket is small: secants a little to either side of the root close it
        with np.errstate(divide="ignore", invalid="ignore"):
            share = -at_near / (at_far - at_near) + (1e-3 if step % 2 else -1e-3)
            secant = near + share * (far - near)
        middle = np.where((share > 0) & (share < 1), secant, 0.5 * (near + far))
        at_middle = excess(middle)
        inside = at_middle <= 0
        near, at_near = np.where(inside, middle, near), np.where(inside, at_middle, at_near)
        far, at_far = np.where(inside, far, middle), np.where(inside, at_far, at_middle)
    # q = 0 allows only p = 0, p = 1 needs log q ≥ −ε, and the other two ends allow everything
    far = np.where(np.isinf(fixed), fixed, far)
    if direction < 0:
        full = logit(np.exp(-budgets))[:, None]
        far = np.where(np.isposinf(fixed), full, far)
    return far


def slope(u: FloatArray, v: FloatArray, lam: FloatArray) -> FloatArray:
    """dp/dq along D_λ = constant, at logits u of p and v of q."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        up, down = log_expit(u) - log_expit(v), log_expit(-u) - log_expit(-v)
        # (λ−1)/λ · (e^{λ·up} − e^{λ·down}) / (e^{(λ−1)up} − e^{(λ−1)down}), where neither power exists
        turn = down - up
        rate = (lam - 1) / lam * np.exp(up) * np.expm1(lam * turn) / np.expm1((lam - 1) * turn)
    rate = np.where(np.isnan(rate), 1.0, rate)  # p = q
    return np.where(u > 700, 0.0, np.where(np.isneginf(v), np.inf, rate))  # p = 1; q = 0


def binding(
    fixed: FloatArray, orders: FloatArray, budgets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The smallest of the edges towards p, and the order it belongs to."""
    edges = edge(fixed, 1.0, orders, budgets)
    return edges.min(axis=0), orders[edges.argmin(axis=0)]


def hockey_stick(epsilon: FloatArray, orders: FloatArray, budgets: FloatArray) -> FloatArray:
    """sup_q g(q) − e^ε q for the smallest g of the orders, never below it.

    The supremum over coins is the supremum over all pairs (Asoodeh et al. 2021, arXiv:2008.06529).
    g is concave, so the maximum is where its slope passes e^ε; from a bracket [a, b] of that place
    g(b) − e^ε a is reported, which is above the maximum since g increases.
    """
    low, high = np.full(epsilon.shape, -_FAR), np.full(epsilon.shape, _FAR)
    with np.errstate(over="ignore"):
        ratio = np.exp(epsilon)

    def steep(v: FloatArray) -> Any:
        u, order = binding(v, orders, budgets)
        return slope(u, v, order) > ratio

    low, high = bisect(steep, low, high, steps=50)
    top = np.exp(log_expit(binding(high, orders, budgets)[0]))
    with np.errstate(over="ignore"):
        paid = np.exp(epsilon + log_expit(low))
    paid = np.where(low > -_FAR, paid, 0.0)  # the maximum may be at a smaller q than was looked at
    return np.where(np.isposinf(epsilon), 0.0, np.clip(top - paid, 0.0, 1.0))
