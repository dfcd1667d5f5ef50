"""What one value may be: at random, hostile, simpler."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.hunting import values

inputs = dp.inputs
CELLS = [
    inputs.Real(0, 1),
    inputs.Real(-5, 1e9),
    inputs.Real(),
    inputs.Integer(0, 7),
    inputs.Integer(0, 2**60),
    inputs.Integer(),
    inputs.Category(["f", "m", None]),
    inputs.Text(longest=12),
    inputs.Text(longest=3, alphabet="ab"),
]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_values_are_inside_unless_they_say_so(cell, seed):
    rng = np.random.default_rng(seed)
    for one in values.hostile(cell):
        assert values.holds(cell, one.value) is not one.outside
    for _ in range(200):
        value = values.typical(cell, rng)
        assert values.holds(cell, value)
        assert values.holds(cell, values.changed(cell, value, rng))
        assert values.holds(cell, values.opposite(cell, value))


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_simpler_values_are_inside_and_simplification_ends(cell, seed):
    rng = np.random.default_rng(seed)
    for value in [values.typical(cell, rng) for _ in range(30)]:
        for _ in range(100):
            options = values.simpler(cell, value)
            assert all(values.holds(cell, one) for one in options)
            if not options:
                break
            value = options[-1]
        else:
            raise AssertionError("it does not end")
