"""Draws that losses are fitted to."""

import numpy as np
import pytest

from dpassay.loss.training import Training
from dpassay.outputs.canonical import from_raw
from dpassay.sampling.samples import Batch


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def given(rng):
    sides = rng.laplace(size=1001), rng.laplace(1.0, size=800)
    return Training.of(Batch(*(from_raw(side, side.size) for side in sides)))


def columns(training):
    return [side.numbers(0)[:, 0] for side in (training.p, training.q)]


def test_numbers_in_order_are_the_same_draws_in_each_half(given):
    ordered = given.in_order()
    for before, after in zip(given.halves, ordered.halves, strict=True):
        for raw, ascending in zip(columns(before), columns(after), strict=True):
            np.testing.assert_array_equal(ascending, np.sort(raw))


def test_some_of_ordered_numbers_are_no_tail(given):
    few = given.in_order().most(100)
    for some, every in zip(columns(few), columns(given), strict=True):
        assert some.size <= 100
        np.testing.assert_allclose(
            np.quantile(some, [0.1, 0.5, 0.9]), np.quantile(every, [0.1, 0.5, 0.9]), atol=0.25
        )
    np.testing.assert_array_equal(columns(given.most(100))[0], columns(given)[0][:100])


def test_the_smaller_side_is_kept_whole(rng):
    sides = rng.normal(size=5000), rng.normal(size=300)
    given = Training.of(Batch(*(from_raw(side, side.size) for side in sides))).in_order()
    assert given.most(1000).sizes == (1000, 300)


def test_outputs_of_several_kinds_stay_as_they_are(rng):
    raw = np.where(rng.random(400) < 0.3, 0.0, rng.normal(size=400))
    given = Training.of(Batch(from_raw(raw, 400), from_raw(raw + 1, 400)))
    assert given.in_order() is given
