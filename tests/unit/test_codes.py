"""Codes of combinations of values: as many columns as there are, and no two combinations alike."""

import numpy as np
import pytest
from tests.helpers import learned

from dpassay.outputs.canonical import from_raw
from dpassay.outputs.keys import Layout


def some_rows(columns, values, kinds, size, rng):
    """Draws from a few rows of many columns, and which row each is."""
    table = rng.integers(0, values, (kinds, columns))
    which = rng.integers(0, kinds, size)
    return table, which, table[which]


@pytest.mark.parametrize(("columns", "values"), [(61, 2), (63, 2), (40, 3), (200, 10), (1200, 2)])
@pytest.mark.parametrize("dtype", [np.int8, float])
def test_rows_of_any_number_of_discrete_columns_are_keys(columns, values, dtype, seed):
    rng = np.random.default_rng(seed)
    table, which, rows = some_rows(columns, values, 5, 600, rng)
    layout, p, q = learned(rows[:300].astype(dtype), rows[300:].astype(dtype))
    assert len(layout) == 5
    keys = np.concatenate([p.keys, q.keys])
    shown = [layout.part(key).values(int(layout.codes[key])) for key in range(5)]
    assert np.array_equal(np.array(shown)[keys], table[which])


def test_a_row_of_many_columns_that_was_not_seen_is_in_no_key(seed):
    rng = np.random.default_rng(seed)
    table, _, rows = some_rows(80, 3, 4, 400, rng)
    layout, _, _ = learned(rows[:200], rows[200:])
    for column in (0, 37, 79):
        other = table.copy()
        other[:, column] = (other[:, column] + 1) % 3
        assert np.all(layout.sort(from_raw(other, 4)).keys == -1)


def test_the_keys_of_many_columns_survive_json(seed):
    rng = np.random.default_rng(seed)
    _, _, rows = some_rows(70, 3, 4, 400, rng)
    layout, p, _ = learned(rows[:200], rows[200:])
    again = Layout.from_json(layout.to_json())
    assert np.array_equal(again.sort(from_raw(rows[:200], 200)).keys, p.keys)
    assert [again.words(k) for k in range(4)] == [layout.words(k) for k in range(4)]
