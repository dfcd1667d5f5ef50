"""Draws counted in blocks are the draws counted at once."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.outputs.canonical import from_array
from dpassay.scores.cell_counts import count_draws, counts_of, counts_of_levels
from dpassay.scores.grid import GridScore

zoo = dp.zoo
PAIR = (0.0, 1.0)


def test_cell_counts_streamed_in_blocks_are_those_of_all_draws(seed):
    mechanism = zoo.TruncatedLaplace()
    samples = dp.draw(mechanism, PAIR, n=30_000, rng=seed)
    whole = counts_of(samples.p, samples.q)
    parts = [
        whole.binning.count(part.p, part.q) for part in (samples.take(10_000) for _ in range(3))
    ]
    added = parts[0] + parts[1] + parts[2]
    assert np.array_equal(added.counts, whole.counts)
    for a, b in zip(added.binned.values(), whole.binned.values(), strict=True):
        assert a[1].weights == pytest.approx(b[1].weights)


def _by_words(cell_counts):
    layout = cell_counts.binning.layout
    sides = zip(*cell_counts.counts.tolist(), strict=True)
    return dict(zip([*map(layout.words, range(len(layout))), "other"], sides, strict=True))


def test_combinations_that_a_first_look_did_not_show_are_counted(monkeypatch, seed):
    """What streamed draws of many discrete values amount to is what they do if all are looked at."""
    mechanism = zoo.RandomizedResponse(3.0)  # ten bits, of which the rarest come once in 10⁷
    samples = dp.draw(mechanism, mechanism.pair, n=100_000, rng=seed)
    whole = counts_of(samples.p, samples.q)
    shown = counts_of(samples.p[:2_000], samples.q[:2_000]).binning
    monkeypatch.setattr("dpassay.scores.cell_counts.FIRST_LOOK", 2_000)
    streamed = count_draws(samples, (100_000, 100_000))
    assert len(shown.layout) < len(whole.binning.layout)
    assert _by_words(streamed) == _by_words(whole)
    assert len(shown.widened().layout) == 2**10


def test_nothing_is_widened_where_numbers_are_free_or_combinations_many(seed):
    rng = np.random.default_rng(seed)
    free = counts_of(from_array(rng.normal(size=1000)), from_array(rng.normal(size=1000))).binning
    assert free.widened() is free
    many = [from_array(rng.choice(99, size=(9000, 2), p=_mostly_ones(99))) for _ in range(2)]
    known = counts_of(*many).binning
    assert 1 < len(known.layout) < 99**2
    assert known.widened() is known


def _mostly_ones(size):
    share = np.full(size, 0.02 / (size - 1))
    share[1] = 0.98
    return share


def test_cell_counts_say_where_all_of_its_draws_are(seed):
    mechanism = zoo.TruncatedLaplace()
    samples = dp.draw(mechanism, PAIR, n=5_000, rng=seed)
    known = counts_of(samples.p, samples.q)
    beyond = from_array(np.array([1e9, -1e9, 0.25]))
    cell_counts = known + known.binning.count(beyond, samples.q[:7])
    p, q = cell_counts.everywhere()
    assert (p.sum(), q.sum()) == pytest.approx((5_003, 5_007))
    assert p[len(known.binning.layout)] >= 2  # far outside
    loss = GridScore.of(cell_counts)
    assert loss.everywhere().shape == p.shape


def test_levels_are_counted_as_they_are():
    cell_counts = counts_of_levels(np.array([0.2, 0.5, 0.9]), np.array([[1, 2, 3], [30, 20, 10]]))
    assert cell_counts.n == (6, 60)
    masses = GridScore.of(cell_counts).masses()
    assert masses.p.sum() == pytest.approx(1.0)
    again = cell_counts.binning.count(
        from_array(np.array([0.2, 0.9])), from_array(np.array([0.5, 0.7]))
    )
    assert again.counts[0].tolist() == [1, 0, 1, 0]
    assert again.counts[1].tolist() == [0, 1, 0, 1]
