"""Exact confidence limits for one binomial probability (Clopper & Pearson 1934)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv


def lower(hits: npt.ArrayLike, n: npt.ArrayLike, gamma: float) -> Any:
    """The largest p excluded from below: P_p(X ≥ hits) = γ; 0 when there are no hits.

    >>> round(float(lower(50, 100, 0.05)), 4)
    0.4136
    """
    k, total = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    value = np.where(k > 0, betaincinv(np.maximum(k, 1), total - k + 1, gamma), 0.0)
    return value if value.ndim else float(value)


def upper(hits: npt.ArrayLike, n: npt.ArrayLike, gamma: float) -> Any:
    """The smallest p excluded from above: P_p(X ≤ hits) = γ; 1 when all are hits.

    >>> round(float(upper(50, 100, 0.05)), 4)
    0.5864
    """
    k, total = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    value = np.where(k < total, betainccinv(k + 1, np.maximum(total - k, 1), gamma), 1.0)
    return value if value.ndim else float(value)
