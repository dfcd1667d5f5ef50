import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput


@pytest.mark.parametrize("length", [2, 3, 6, 10])
def test_patterns_are_ten_pairs_of_sensitivity_one(length):
    pairs = dp.neighbours.patterns(length)
    assert len(pairs) == 10
    for first, second in pairs:
        assert first.shape == second.shape == (length,)
        assert np.abs(first - second).max() == 1
    assert {pair.relation for pair in pairs} == {dp.Relation.SENSITIVITY_ONE}


@pytest.mark.parametrize("database", [[3, 5, 8], (3, 5, 8), np.array([3, 5, 8])])
def test_remove_one_keeps_the_type(database):
    pairs = dp.neighbours.remove_one(database)
    assert [len(second) for _, second in pairs] == [2, 2, 2]
    assert all(type(second) is type(database) for _, second in pairs)
    assert pairs[0].relation is dp.Relation.ADD_REMOVE


def test_edit_one_changes_one_record_and_leaves_out_what_is_equal():
    pairs = dp.neighbours.edit_one(np.array([[0, 0], [1, 1]]), [np.array([1, 1])])
    assert len(pairs) == 1
    assert pairs[0][1].tolist() == [[1, 1], [1, 1]]
    assert pairs[0][0].tolist() == [[0, 0], [1, 1]]


def test_grid_is_lazy():
    pairs = dp.neighbours.grid((0.5,) * 3, *[[0.0, 0.5, 1.0]] * 3)
    assert len(list(pairs)) == 26


@pytest.mark.parametrize(
    "make", [dp.neighbours.remove_one, lambda d: dp.neighbours.edit_one(d, [1])]
)
@pytest.mark.parametrize("database", [[], 3])
def test_databases_must_hold_records(make, database):
    with pytest.raises(InvalidInput, match="non-empty sequence"):
        make(database)
