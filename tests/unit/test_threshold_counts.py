"""Draws beyond thresholds of the loss."""

import numpy as np


def test_hits_agree_with_counting():
    from dpassay.notions.threshold_counts import _hits

    rng = np.random.default_rng(0)
    p, q = rng.integers(-3, 4, 200) / 2, rng.integers(-3, 4, 300) / 2
    eps = np.array([0.0, 0.5, 0.7])
    found = _hits(p, q, eps)
    for k, e in enumerate(eps):
        for side, scores in enumerate((p, q)):
            assert found[0, side, k] == np.count_nonzero(scores > e)
            assert found[1, side, k] == np.count_nonzero(scores < -e)
