"""A table finds what a search finds."""

import numpy as np
import pytest

from dpassay.outputs import lookup
from dpassay.outputs.lookup import Lookup


def edges_of(kind, rng):
    return {
        "even": lambda: np.sort(rng.normal(size=40)),
        "one": lambda: rng.normal(size=1),
        "none": lambda: np.zeros(0),
        "close": lambda: np.sort(
            np.append(np.linspace(-2, 2, 30), np.linspace(-2, 2, 30)[:3] + 1e-12)
        ),
        "far": lambda: np.sort(np.append(rng.normal(size=40), [-1e300, 1e308])),
        "tiny": lambda: np.arange(5) * 5e-324,
        "heavy": lambda: np.sort(rng.standard_cauchy(size=40) ** 3),
        "whole": lambda: np.arange(-3.0, 4.0),
    }[kind]()


@pytest.mark.parametrize("kind", ["even", "one", "none", "close", "far", "tiny", "heavy", "whole"])
def test_a_table_is_a_search(kind, seed):
    """At the edges, next to them, between and beyond; with integers too."""
    rng = np.random.default_rng(seed)
    edges = edges_of(kind, rng)
    levels = rng.integers(0, 50, edges.size + 1)
    numbers = np.concatenate(
        [
            edges,
            np.nextafter(edges, -np.inf),
            np.nextafter(edges, np.inf),
            rng.normal(size=3 * lookup._CHUNK // 2),
            10.0 ** rng.uniform(-320, 308, 500) * rng.choice([-1, 1], 500),
            [0.0, -0.0, np.inf, -np.inf, 1.7e308, -1.7e308],
        ]
    )
    for given in (numbers, rng.integers(-5, 6, 4000), rng.integers(0, 2, 3000).astype(np.uint8)):
        expected = levels[np.searchsorted(edges, given, side="right")]
        assert np.array_equal(Lookup(edges, levels)(given), expected)


def test_a_table_is_used_where_it_helps(seed):
    rng = np.random.default_rng(seed)
    levels = np.arange(42)
    spread = np.sort(rng.normal(size=41))
    table = Lookup(spread, levels)._table
    assert table is not None
    crowd = np.append(spread[:-1] * 1e-9, 1.0)
    assert Lookup(crowd, levels)._table is None
