"""Frequencies of cells, for functionals that would add up their noise."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, xlogy

from dpassay._typing import FloatArray


def without_noise(
    p: FloatArray, q: FloatArray, n: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Frequencies of many rare cells, with the noise in their ratios taken out on average.

    Differences of frequencies are noise plus truth, and functionals of a pair add up the noise: two
    identical distributions on 1000 cells look far from private at 10⁴ draws. Half a draw is added to
    either count. The log-ratios of cells whose two frequencies do not differ beyond doubt
    (likelihood-ratio z < 4) are drawn towards 0 by τ²/(τ² + se²), with τ² their variance beyond that
    of the noise (empirical Bayes). The pooled mass of a cell stays what it is.
    """
    i, j = p * n[0], q * n[1]
    pooled = (i + j) / (n[0] + n[1])
    z2 = 2 * (xlogy(i, p) + xlogy(j, q) - xlogy(i + j, pooled))
    doubtful = z2 < 16.0
    ell = np.log((i + 0.5) / n[0]) - np.log((j + 0.5) / n[1])
    se2 = 1 / (i + 0.5) + 1 / (j + 0.5)
    weight = (i + j) * doubtful
    tau2 = max(0.0, float(np.sum(weight * (ell**2 - se2)) / max(np.sum(weight), 1e-300)))
    share = expit(ell * np.where(doubtful, tau2 / (tau2 + se2), 1.0))
    return (p + q) * share, (p + q) * (1 - share)
