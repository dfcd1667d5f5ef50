"""What bets say together: one error probability for the claim and for the bound."""

import math

import numpy as np
from tests.helpers import canonical

import dpassay as dp
from dpassay.monitoring import e_process as standings
from dpassay.monitoring.e_process import EProcess


def track(claim, seed, n, shift=1.0):
    rng = np.random.default_rng(seed)
    found = EProcess(claim, "values", seed)
    found.bring(canonical(rng.laplace(size=n)), canonical(shift + rng.laplace(size=n)))
    return found


def test_the_bound_is_on_a_grid_that_depends_on_the_claim_alone():
    values = list(standings.values(dp.PureDP(0.5)))
    assert values[0] == 0.0
    assert 0.5 in values
    assert values == sorted(set(values))
    assert list(standings.values(dp.PureDP(0.0)))[:2] == [0.0, 5e-3]
    top = list(standings.values(dp.ApproximateDP(1.0, 0.5, headline="delta")))
    assert top[-1] < 1.0


def test_a_bound_below_the_claim(seed):
    """Where the claim is not refuted the bound is below it, and above 0 if the draws show something."""
    claim = dp.PureDP(2.0)
    found = standings.ConfidenceSequence(claim, [track(claim, seed, 4000)], 0.05)
    found.decide()
    assert found.refuted is None
    assert 0.5 < found.lower_bound() < 1.0


def test_the_bound_is_the_first_value_that_is_not_refuted(seed):
    claim = dp.PureDP(0.5)
    found = standings.ConfidenceSequence(claim, [track(claim, seed, 3000)], 0.05)
    found.decide()
    bound = found.lower_bound()
    assert found.refuted is not None
    values = list(standings.values(claim))
    refuted = [found.path(v).max() >= math.log(20) for v in values[: values.index(bound) + 2]]
    assert refuted == [True] * (len(refuted) - 1) + [False]


def test_pairs_are_averaged(seed):
    claim = dp.PureDP(0.3)
    tracks = [track(claim, seed, 500), track(claim, seed + 1, 500, shift=0.0)]
    found = standings.ConfidenceSequence(claim, tracks, 0.05)
    paths = [one.path() for one in tracks]
    assert np.allclose(np.exp(found.path()), (np.exp(paths[0]) + np.exp(paths[1])) / 2)


def test_one_value_below_that_is_not_refuted_holds_the_verdict_back(seed, monkeypatch):
    """The capital against the claim alone does not do: all smaller values must be refuted as well."""
    claim = dp.PureDP(0.3)
    found = standings.ConfidenceSequence(claim, [track(claim, seed, 1000)], 0.05)
    monkeypatch.setattr(found, "_refutes", lambda value: value != 0.15)
    found.decide()
    assert found.peak > math.log(20)
    assert found.refuted is None
    assert found.lower_bound() < 0.15
