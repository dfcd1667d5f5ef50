"""Draws counted in blocks are the draws counted at once."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.loss.tally import tally_of

zoo = dp.zoo
PAIR = (0.0, 1.0)


def test_a_tally_streamed_in_blocks_is_the_tally_of_all_draws(seed):
    mechanism = zoo.TruncatedLaplace()
    samples = dp.draw(mechanism, PAIR, n=30_000, rng=seed)
    whole = tally_of(samples.p, samples.q)
    parts = [
        whole.binning.tally(part.p, part.q) for part in (samples.take(10_000) for _ in range(3))
    ]
    added = parts[0] + parts[1] + parts[2]
    assert np.array_equal(added.counts_p, whole.counts_p)
    for a, b in zip(added.binned_q, whole.binned_q, strict=True):
        assert a is None or a.weights == pytest.approx(b.weights)
