"""How small a p-value of the joint test is beyond its end, γ/1000, which its confidence set costs.

`joint` says which of the two is told.

With x = i/n, y = j/m, kl⁺(x, p) = kl(x, p) if x > p, else 0, and kl⁻(y, q) = kl(y, q) if y < q, else 0,

    s = min over q of  n kl⁺(x, g(q)) + m kl⁻(y, q)

is at most n kl⁺(x, p) + m kl⁻(y, q) at the true p ≤ g(q), since g increases. By Chernoff's bound
P(n kl⁺(i/n, p) ≥ t) ≤ e⁻ᵗ, and likewise for j. So s is no larger in distribution than the sum of two
independent exponential variables, whatever n, m and the claim:

    P(s ≥ t) ≤ (1 + t) e⁻ᵗ,

and (1 + s) e⁻ˢ is an exact p-value. It is too large by a factor of about (1 + s) √(4πs), which matters
little where it is of the order of 10⁻²⁰, and it costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from dpassay._typing import FloatArray
from dpassay.bounds.ordering import Counts, kl
from dpassay.privacy.claims import Claim

#: Pieces of [y, x] to begin with, parts into which one is cut where more is to be known, and how often.
_PIECES, _PARTS, _TURNS = 16, 4, 8
#: How much too small s may come out, of itself: for claims that are quick to ask, and for others.
_CLOSE = {True: 0.005, False: 0.05}
#: What is said of all that is smaller.
_LEAST = 1e-300


def p_value(counts: Counts, claim: Claim) -> float:
    """An exact p-value of p ≤ g(q) for counts that are far from it, in closed form.

    >>> from dpassay.privacy.claims import PureDP
    >>> 1e-6 < p_value(Counts(450, 1000, 184, 1000), PureDP(0.5)) < 1e-5
    True
    """
    s = distance(counts, claim)
    return min(1.0, max(math.exp(math.log1p(s) - s), _LEAST))


def distance(c: Counts, claim: Claim) -> float:
    """s, from below.

    Between two places q the first term is at least that at the larger, the second at least that at the
    smaller one; pieces where that may be too little are cut. Left of y the second term is 0 and the
    first is larger, right of x the first may be 0 and the second is larger.
    """
    x, y = c.i / c.n, c.j / c.m
    if x <= y:
        return 0.0

    def terms(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        allowed = np.minimum(np.asarray(claim.region(q)), x)  # above x the divergence is 0
        return c.n * kl(x, allowed), c.m * kl(y, np.maximum(q, y))

    q = np.sin(np.linspace(math.asin(math.sqrt(y)), math.asin(math.sqrt(x)), _PIECES + 1)) ** 2
    q[0], q[-1] = y, x
    first, second = terms(q)
    for turn in range(_TURNS + 1):
        least = first[1:] + second[:-1]
        wide = least < (1 - _CLOSE[claim.quick]) * min(np.min(first + second), second[-1])
        if turn == _TURNS or not wide.any():
            break
        share = np.arange(1, _PARTS)[:, None] / _PARTS
        more = np.sort((q[:-1] + share * np.diff(q))[:, wide].ravel())
        place = np.searchsorted(q, more)
        new = terms(more)
        q, first, second = (
            np.insert(old, place, at)
            for old, at in zip((q, first, second), (more, *new), strict=True)
        )
    # what the divergences lose by rounding, in the units of n and m
    return max(min(float(least.min()), float(second[-1])) - 1e-12 * (c.n + c.m), 0.0)
