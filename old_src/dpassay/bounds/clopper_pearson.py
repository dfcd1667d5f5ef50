"""Exact confidence limits for one binomial probability.

Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, betainccinv, betaincinv, expit

from dpassay._typing import FloatArray
from dpassay.rootfinding import bisect


def lower(hits: npt.ArrayLike, n: npt.ArrayLike, gamma: float) -> Any:
    """The largest p excluded from below: P_p(X ≥ hits) = γ; 0 when there are no hits.

    >>> round(float(lower(50, 100, 0.05)), 4)
    0.4136
    """
    k, total = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    a, b = np.maximum(k, 1), total - k + 1
    value = _checked_inverse(
        betaincinv(a, b, gamma), lambda p: betainc(a, b, p), gamma, rising=True
    )
    value = np.where(k > 0, value, 0.0)
    return value if value.ndim else float(value)


def upper(hits: npt.ArrayLike, n: npt.ArrayLike, gamma: float) -> Any:
    """The smallest p excluded from above: P_p(X ≤ hits) = γ; 1 when all are hits.

    >>> round(float(upper(50, 100, 0.05)), 4)
    0.5864
    """
    k, total = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    a, b = k + 1, np.maximum(total - k, 1)
    value = _checked_inverse(
        betainccinv(a, b, gamma), lambda p: betaincc(a, b, p), gamma, rising=False
    )
    value = np.where(k < total, value, 1.0)
    return value if value.ndim else float(value)


def _checked_inverse(
    found: FloatArray, tail: Callable[[FloatArray], FloatArray], gamma: float, *, rising: bool
) -> FloatArray:
    """The inverse held against its function, and solved for again where the two disagree.

    SciPy 1.17's inverse does not converge for every argument: for 1000 hits of 10⁹ it is twice too large.
    """
    found = np.asarray(found)
    wrong = ~(np.abs(tail(found) - gamma) <= 1e-3 * gamma)
    if not wrong.any():
        return found
    far = -745.0 if rising else 745.0
    ends = np.full(found.shape, far), np.full(found.shape, -far)
    safe, _ = bisect(lambda x: tail(expit(x)) <= gamma, *ends, steps=70)
    return np.where(wrong, expit(safe), found)
