"""Guesses come from the past alone, and the capital from counts alone."""

from itertools import pairwise

import numpy as np
import pytest
from tests.helpers import canonical

import dpassay as dp
from dpassay.monitoring import e_process as evidence
from dpassay.monitoring.e_process import EProcess


def laplace(seed, n):
    rng = np.random.default_rng(seed)
    return canonical(rng.laplace(size=n)), canonical(1 + rng.laplace(size=n))


@pytest.mark.parametrize("claim", ["eps=0.8", "mu=1", "renyi(order=2)=0.2"])
def test_a_track_is_the_same_in_parts(claim, seed):
    """Rows are at places that depend on the number of draws alone."""
    claim = dp.claim(claim)
    p, q = laplace(seed, 900)
    whole, parts = EProcess(claim, "values", seed), EProcess(claim, "values", seed)
    whole.bring(p, q)
    ends = [0, 3, 8, 9, 100, 101, 128, 500, 900]
    for a, b in pairwise(ends):
        parts.bring(p[a:b], q[a:b])
    assert whole.draws == parts.draws == 900
    assert np.array_equal(whole.ends, parts.ends)
    assert np.allclose(whole.path(), parts.path(), rtol=0, atol=1e-12)
    for one, two in zip(whole.epochs, parts.epochs, strict=True):
        assert np.array_equal(one.hits, two.hits)
        assert np.array_equal(one.picks, two.picks)


def test_later_draws_change_no_earlier_capital(seed):
    """The first rows are the same whatever follows."""
    p, q = laplace(seed, 400)
    other = laplace(seed + 1, 400)
    claim = dp.PureDP(0.5)
    one, two = EProcess(claim, "values", seed), EProcess(claim, "values", seed)
    one.bring(p, q)
    for mine, side in zip((p, q), other, strict=True):
        mine.numbers[200:] = side.numbers[200:]
    two.bring(p, q)
    same = one.ends <= 200
    assert np.array_equal(one.path()[same], two.path()[same])
    assert not np.array_equal(one.path(), two.path())


def test_the_capital_against_another_value_is_that_of_another_bet(seed):
    """What is found afterwards for the claim itself is what was gained on the way."""
    for claim in (dp.PureDP(0.4), dp.GaussianDP(0.4), dp.ZeroConcentratedDP(0.1)):
        track = EProcess(claim, "values", seed)
        track.bring(*laplace(seed, 1200))
        assert np.allclose(track.path(claim.value), track.path(), atol=1e-10)
        assert track.path(2 * claim.value)[-1] < track.path()[-1]


def test_draws_that_are_kept_have_an_end(seed, monkeypatch):
    monkeypatch.setattr(evidence, "KEPT", 64)
    evidence._schedule.cache_clear()
    track = EProcess(dp.PureDP(0.5), "values", seed)
    track.bring(*laplace(seed, 1000))
    evidence._schedule.cache_clear()
    assert [epoch.start for epoch in track.epochs] == [8, 16, 32, 64]
    assert track.kept == ([], [])
    assert track.epochs[-1].end == track.draws == 1000


def test_rows_grow_with_the_draws():
    ends, picked = evidence._schedule(1 << 14)
    assert np.all(np.diff(ends) > 0)
    assert ends[0] - (1 << 14) == 1 << 10
    assert ends[-1] > 1e15
    assert ends.size < 500
    assert picked[-1]
    assert evidence._schedule(8)[0].tolist() == list(range(9, 17))


def test_of_one_number_half_of_many_draws_teach_and_all_are_counted(seed, monkeypatch):
    monkeypatch.setattr(evidence, "_TAUGHT", 100)
    track = EProcess(dp.PureDP(0.9), "values", seed)
    track.bring(*laplace(seed, 300))
    assert track.epochs[-1].start == 256
    assert track.epochs[-1].past_counts.sum(axis=1).tolist() == [256, 256]


def test_several_values_at_once_are_each_by_itself(seed):
    for claim in (dp.PureDP(0.6), dp.ApproximateDP(0.4, 0.05), dp.ZeroConcentratedDP(0.1)):
        track = EProcess(claim, "values", seed)
        assert track.paths([claim.value]).shape == (1, 0)
        track.bring(*laplace(seed, 700))
        thetas = [share * claim.value for share in (0.1, 0.5, 1.5)]
        for one, path in zip(thetas, track.paths(thetas), strict=True):
            assert np.allclose(track.path(one), path, rtol=0, atol=1e-10)
