"""Answers on neighbouring data stay within the sensitivity."""

import math

import numpy as np
import pytest

import dpassay as dp
from dpassay.hunting.queries import Queries
from dpassay.hunting.row_spaces import row_schema

inputs = dp.inputs


@pytest.mark.parametrize("norm", ["each", "l1", "l2"])
@pytest.mark.parametrize("cell", [inputs.Reals(-3, 1e17, 3), inputs.Integers(0, 2**60, (1, 4))])
def test_answers_stay_within_the_sensitivity(cell, norm, seed):
    rng = np.random.default_rng(seed)
    space = Queries(row_schema(cell, seed), rng, 2.0, norm)
    found = space.catalogue(outside=False) + [space.random() for _ in range(20)]
    found += [space.mutated(one) for one in found]
    found += [simpler for one in found[::3] for simpler in space.simpler(one)]
    for one in found:
        pair = space.pair(one)
        gaps = [abs(int(b) - int(a)) if isinstance(a, int) else abs(b - a)
                for a, b in zip(pair[0].tolist(), pair[1].tolist(), strict=True)]  # fmt: skip
        size = {"each": max(gaps), "l1": sum(gaps), "l2": math.sqrt(sum(g * g for g in gaps))}[norm]
        assert size <= 2 * (1 + 1e-12)
        assert repr(pair[0].tolist()) != repr(pair[1].tolist())
