"""An upper bound on δ(ε), the hockey-stick divergence of two distributions on cells, from counts.

The only assumption is that draws are independent.

Estimand. P and Q on the cells of a finite set S and on "everything else", t = e^ε, one direction:

    δ(ε) = sup_E P(E) − t Q(E) ≤ P(C* ∪ rest) − t Q(C*),   C* = {k in S : p_k > t q_k},

where outputs outside of S count for P alone. S is fixed before the draws that are counted here.

Every set C of cells has its own upper limit U(C) of P(C ∪ rest) − t Q(C), and the bound is the largest
of them. All 2^|S| of them need no correction: C* is one of them and does not depend on the draws, so if
the largest limit is too small then so is U(C*), which happens with probability γ (an intersection–union
argument; Berger 1982). The same holds for directions and for pairs: the largest of
their bounds is, with the same γ, a bound on the largest of their δ.

The limit of one set. X of n draws of P fall into C ∪ rest, Y of m draws of Q into C. For every p and q

    P(X ≤ x) ≤ Φ(−√(2n kl((x+1)/n, p)))   for p ≥ (x+1)/n,
    P(Y ≥ y) ≤ Φ(−√(2m kl((y−1)/m, q)))   for q ≤ (y−1)/m

(Zubkov & Serov 2013, arXiv:1207.3838). The two roots, 0 on the other side, are therefore at most the
positive parts of two independent standard normals, in the stochastic order, and their squares sum to more
than R² with probability at most γ = ¼ e^{−R²/2} + Φ(−R): both positive, or one of them. So

    U(C) = max p − t q  over  n kl⁺(a, p) + m kl⁻(b, q) ≤ R²/2,   a = (X+1)/n, b = (Y−1)/m,

holds with probability 1 − γ for every n and m. At 95 % R is 2.06, where two Clopper–Pearson limits at γ/2
come to 2.8 deviations of the difference, Chernoff's bound to 2.45, and one known deviation would be 1.64.

The largest limit. kl is convex in both arguments together, so U is concave in (a, b); it rises with a and
falls with b. Sets of cells are corners of a polygon of points (X, Y), whose far edge goes through the
cells by falling X_k/Y_k: along it U is concave, and nowhere in the polygon larger. The largest cells
are in or out, all combinations. Of the others the first along the edge that is in is in as a whole, for
one of the first few, and those after it may be in part: that can only raise the bound.

Guarantee: exact. Edge cases: no cell, then the limit of P(rest) alone, which is 1 where all of P is
there; the empty set has Q(C) = 0, with nothing to learn, and the Clopper–Pearson limit of P(rest) at γ; a
set of cells that P does not show has the limit of two counts, which is largest where Q shows least; δ
falls with ε, so that beyond 300 the bound of 300 serves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds import clopper_pearson
from dpassay.privacy.curve_arrays import lower_hull
from dpassay.rootfinding import bisect

#: Up to this many cells are in or out, all combinations; of more, the `_LARGEST` largest are.
_FEW, _LARGEST = 8, 5
#: The number of other cells that may be the first one in, as a whole; only for up to `_DECLARED` ε.
_FIRSTS, _DECLARED = 24, 4
#: Points at a time in the search along the edge, and the relative error at which it ends.
_POINTS, _CLOSE = 9, 1e-4
#: Steps towards the best multiplier; every one of them gives a bound.
_HALVINGS = 12


def upper_delta(
    hits_p: IntArray, hits_q: IntArray, epsilons: npt.ArrayLike, gamma: float
) -> FloatArray:
    """Upper bounds on δ(ε) of P against Q at every ε, each at error γ. The last cell is everything else.

    >>> import numpy as np
    >>> p, q = np.array([731_000, 269_000, 0]), np.array([269_000, 731_000, 0])
    >>> found = upper_delta(p, q, [0.5, 1.1], 0.05)
    >>> round(float(found[0]), 3), bool(found[1] < 1e-5)
    (0.289, True)
    """
    eps = np.atleast_1d(np.asarray(epsilons, dtype=float))
    n, m, rest = int(hits_p.sum()), int(hits_q.sum()), int(hits_p[-1])
    if n == 0 or m == 0:
        return np.ones(eps.size)
    known = np.full(eps.size, float(clopper_pearson.upper(rest, n, gamma)))  # the empty set
    x, y = hits_p[:-1], hits_q[:-1]
    cells = np.flatnonzero(x > 0)  # without a draw of P a cell only takes away
    cells = cells[np.argsort(-(x[cells] + y[cells]), kind="stable")]
    whole = cells.size if cells.size <= _FEW else _LARGEST
    sets = np.array(
        [[rest], [0.0]]
    )  # draws of P and of Q in every set of cells; the empty one first
    for cell in cells[:whole]:
        sets = np.concatenate([sets, sets + np.array([[x[cell]], [y[cell]]])], axis=1)
    limit = _Limit(n, m, radius(gamma))
    ratio = np.exp(np.minimum(eps, 300.0))
    none = x == 0
    if none.any():  # a set of cells of which P shows none has the draws of the rest, and some of Q
        least = np.array([float(y[none].min())])
        known = np.maximum(known, limit(np.array([float(rest)]), least, ratio))
    if cells.size > 0:
        found = limit(sets[0, 1:, None], sets[1, 1:, None], ratio)
        known = np.maximum(known, found.max(axis=0))
    if cells.size > whole:
        others = cells[whole:]
        with np.errstate(divide="ignore"):
            others = others[np.argsort(-(x[others] / y[others]), kind="stable")]
        edge = [np.concatenate([[0.0], np.cumsum(side[others])]) for side in (x, y)]
        known = _largest_along(limit, ratio, sets, np.array(edge), known)
    return np.asarray(np.minimum(known, 1.0))


def radius(gamma: float) -> float:
    """R with ¼ e^{−R²/2} + Φ(−R) = γ, from above; about 0 for γ ≥ ¾.

    >>> round(radius(0.05), 3)
    2.057
    """

    def holds(r: float) -> bool:
        return bool(0.25 * math.exp(-r * r / 2) + ndtr(-r) <= gamma)

    return float(bisect(holds, 38.0, 0.0)[0])


def _largest_along(
    limit: _Limit, ratios: FloatArray, sets: FloatArray, edge: FloatArray, known: FloatArray
) -> FloatArray:
    """For each e^ε the largest limit of a set joined with a part of the edge; at least the known one.

    Where that is well above those of whole sets, and for few ε, the search is repeated with a first cell
    that is in as a whole.
    """
    last = edge.shape[1] - 1
    corners = np.unique(np.linspace(0, last, _POINTS).astype(int))
    joined = sets[:, :, None] + edge[:, None, corners]
    whole = joined.reshape(2, -1, 1)[:, 1:]  # without the empty set
    known = np.maximum(known, limit(whole[0], whole[1], ratios).max(axis=0))
    found = _search(limit, ratios, sets, np.zeros(sets.shape[1]), edge, known)
    if ratios.size > _DECLARED or np.all(found <= 1.1 * known):
        return found
    start = np.arange(min(_FIRSTS, last))  # what comes before a start is out
    begin = start + 1.0
    if last > _FIRSTS:
        start, begin = np.append(start, _FIRSTS), np.append(begin, _FIRSTS)
    joined = np.concatenate([sets - edge[:, k : k + 1] for k in start], axis=1)
    again = _search(limit, ratios, joined, np.repeat(begin, sets.shape[1]), edge, known)
    return np.minimum(found, again)


def _search(
    limit: _Limit,
    ratios: FloatArray,
    sets: FloatArray,
    begin: FloatArray,
    edge: FloatArray,
    known: FloatArray,
) -> FloatArray:
    """The largest limit of each set when it is joined with the edge from one point to any later one.

    Along the edge the limit rises to its maximum and falls, so that the best of equidistant points has it
    between its neighbours, where it is below that of the larger x with the smaller y.
    """
    which = np.repeat(np.arange(ratios.size), sets.shape[1])  # a column is a set at an ε
    low, sets = np.tile(begin, ratios.size), np.tile(sets, ratios.size)
    high = np.full(which.size, edge.shape[1] - 1.0)
    places, steps = np.arange(edge.shape[1]), np.linspace(0.0, 1.0, _POINTS)[:, None]
    known = known.copy()
    while which.size:
        at, own = low + (high - low) * steps, np.arange(which.size)
        x, y = (side + np.interp(at, places, e) for side, e in zip(sets, edge, strict=True))
        found = limit(x, y, ratios[which])
        best = np.argmax(found, axis=0)
        left, right = np.maximum(best - 1, 0), np.minimum(best + 1, _POINTS - 1)
        top = limit(x[right, own], y[left, own], ratios[which])
        np.maximum.at(known, which, found.max(axis=0))
        if np.max(high - low) < 1e-9:
            np.maximum.at(known, which, top)
            break
        worth = top > known[which] * (1 + _CLOSE)
        low, high = at[left, own][worth], at[right, own][worth]
        which, sets = which[worth], sets[:, worth]
    return known * (1 + _CLOSE)


@dataclass(frozen=True)
class _Limit:
    """U for sets with x draws of P and y of Q: the largest p − t q with n kl + m kl ≤ R²/2."""

    n: int
    m: int
    radius: float

    def __call__(self, x: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
        """The maximum by Lagrange's method, from above.

        For w > 0 it is at most the largest p − t q + (R²/2 − n kl(a, p) − m kl(b, q))/w, which is where
        n(p − a) = w p(1 − p) and m(b − q) = w t q(1 − q), and for the best w it is that.
        """
        n, m, goal = self.n, self.m, self.radius**2 / 2
        a, b = np.minimum((x + 1) / n, 1.0), np.maximum((y - 1) / m, 0.0)
        # the best w is about R over the deviation of p − t q: between that of p alone, as small as it can
        # be, and that of both, as large as they can be
        far = self.radius
        top = np.minimum(a + far * np.sqrt(a * (1 - a) / n) + far**2 / n, 1.0)
        bottom = np.maximum(b - far * np.sqrt(b * (1 - b) / m) - far**2 / m, 0.0)
        least = a * (1 - a) / n
        largest = np.maximum(least, top * (1 - top) / n)
        largest = largest + t * t * np.maximum(b * (1 - b), bottom * (1 - bottom)) / m
        low = far / 2 / np.sqrt(np.maximum(largest, 0.1 / n**2))
        high = far * 2 / np.sqrt(np.maximum(least, 0.1 / n**2))
        low, high = np.broadcast_arrays(low, high)
        best = np.full(low.shape, np.inf)
        for _ in range(_HALVINGS):
            w = np.sqrt(low * high)
            p, q = _above(a, n, w), _below(b, m, w * t)
            used = n * _kl(a, p) + m * _kl(b, q)
            best = np.minimum(best, p - t * q + (goal - used) / w)
            low, high = np.where(used < goal, w, low), np.where(used < goal, high, w)
        return best


def _above(a: FloatArray, n: int, w: FloatArray) -> FloatArray:
    """p with n(p − a) = w p(1 − p), p ≥ a."""
    half = (n - w) / 2
    root = np.sqrt(half * half + w * n * a)
    return np.asarray(np.clip(np.where(half > 0, n * a / (half + root), (root - half) / w), a, 1.0))


def _below(b: FloatArray, m: int, w: FloatArray) -> FloatArray:
    """q with m(b − q) = w q(1 − q), q ≤ b."""
    half = (m + w) / 2
    root = np.sqrt(np.maximum(half * half - w * m * b, 0.0))
    return np.asarray(np.clip(m * b / (half + root), 0.0, b))


def _kl(a: FloatArray, p: FloatArray) -> FloatArray:
    """a log a/p + (1 − a) log (1 − a)/(1 − p), accurate where p is near a."""
    gap = p - a
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(a > 0, -a * np.log1p(gap / a), 0.0)
        other = np.where(a < 1, -(1 - a) * np.log1p(-gap / (1 - a)), 0.0)
    return np.asarray(np.maximum(one + other, 0.0))


def worse_direction(
    hits_p: IntArray,
    hits_q: IntArray,
    epsilons: npt.ArrayLike,
    gamma: float,
    swaps: Sequence[bool] = (False, True),
) -> FloatArray:
    """Upper bounds on the larger δ of the two directions, or of those given, each at error γ."""
    sides = [(hits_q, hits_p) if swap else (hits_p, hits_q) for swap in swaps]
    return np.asarray(np.max([upper_delta(*side, epsilons, gamma) for side in sides], axis=0))


def upper_curve(
    counts: Sequence[tuple[IntArray, IntArray]],
    epsilons: FloatArray,
    gamma: float,
    swaps: Sequence[bool] = (False, True),
) -> FloatArray:
    """The same for the worst of some pairs, at all ε of an increasing grid at once: γ is shared equally.

    δ is convex in e^ε, and so is the largest of several: it keeps below the lower hull of the largest
    bounds. (The largest of hulls of single pairs need not hold.)
    """
    level = gamma / epsilons.size
    each = np.max([worse_direction(*pair, epsilons, level, swaps) for pair in counts], axis=0)
    # where e^ε exceeds the range of doubles, only monotonicity is used
    each, t = np.minimum.accumulate(each), np.exp(np.minimum(epsilons, 300.0))
    return np.asarray(np.interp(t, *lower_hull(t, each)))
