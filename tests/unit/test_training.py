"""Draws that losses are fitted to."""

import numpy as np
import pytest

from dpassay.outputs.canonical import from_raw
from dpassay.sampling.samples import Batch
from dpassay.scores.training import Training


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def given(rng):
    sides = rng.laplace(size=1001), rng.laplace(1.0, size=800)
    return Training.of(Batch(*(from_raw(side, side.size) for side in sides)))


def test_the_first_draws_of_either_side_are_kept(given):
    few = given.most(900)
    assert few.sizes == (900, 800)
    np.testing.assert_array_equal(few.p.numbers(0), given.p.numbers(0)[:900])
    assert given.most(1001) is given
