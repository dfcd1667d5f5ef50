"""Scores by the parity of bits (`loss.parity`)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.scores.parity import _any_subset, _triples


def leaking(subset, width):
    """Fair bits; the parity of a subset is the input in four draws of five: ε = log 4."""

    def mechanism(x, size, rng):
        out = rng.integers(0, 2, (size, width))
        told = (rng.random(size) < 0.2) ^ x
        out[:, subset[0]] ^= (out[:, subset].sum(axis=1) % 2) ^ told
        return out

    return mechanism


def test_the_transform_and_the_triples_agree_with_all_subsets_one_by_one():
    rng = np.random.default_rng(0)
    p, q = rng.random((300, 7)) < 0.6, rng.random((200, 7)) < 0.4
    p[:, 2] = p[:, 0] ^ p[:, 5] ^ (rng.random(300) < 0.1)

    def difference(subset):
        return sum(
            sign * np.mean(1 - 2 * (side[:, list(subset)].sum(axis=1) % 2))
            for side, sign in ((p, 1), (q, -1))
        )

    every = [s for k in range(1, 8) for s in itertools.combinations(range(7), k)]
    for search, subsets in ((_any_subset, every), (_triples, [s for s in every if len(s) == 3])):
        best = max(subsets, key=lambda s: abs(difference(s)))
        subset, value = search(p, q)
        assert sorted(subset.tolist()) == list(best)
        assert value == pytest.approx(difference(best), abs=1e-6)


@pytest.mark.parametrize(
    ("subset", "width"), [([2, 7, 13], 20), (list(range(16)), 16), ([5, 19, 33], 40)]
)
def test_a_parity_that_leaks_is_certified_and_replayed(subset, width):
    mechanism = leaking(subset, width)
    verdict = dp.audit(mechanism, (0, 1), "eps=0.7", n=2000, rng=1)
    assert verdict.violated
    assert verdict.lower_bound > 0.85 * np.log(4)
    names = ", ".join(f"x{k + 1}" for k in subset)
    assert f"number of {names} is high" in str(verdict.witness)
    again = dp.replay(dp.Verdict.from_json(verdict.to_json()), mechanism, n=1000, rng=2)
    assert again.violated


def test_fair_bits_are_not_refuted():
    def fair(x, size, rng):
        return rng.integers(0, 2, (size, 12))

    options = {"n": 400, "loss": "parity"}
    refuted = sum(dp.audit(fair, (0, 1), "eps=0", rng=s, **options).violated for s in range(40))
    assert refuted <= 7  # P(Bin(40, .05) > 7) < .001


def test_other_outputs_have_no_parity():
    with pytest.raises(InvalidInput, match="3 to 64 coordinates of two values each"):
        dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=1000, loss="parity", rng=0)
