"""Outputs of other libraries are the arrays they hold."""

import numpy as np
import pytest
from tests.helpers import canonical, form

from dpassay.outputs.canonical import from_raw


def test_masked_values_are_missing():
    outputs = canonical(np.ma.array([1.0, 2.0], mask=[False, True]))
    assert [outputs.show(k) for k in range(2)] == ["1", "None"]


def test_arrow_tables_are_rows_with_names():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"b": [1, None, 3], "a": ["x", "y", "x"]})
    outputs = canonical(table)
    assert [outputs.show(k) for k in range(3)] == [
        "{'a': 'x', 'b': 1}",
        "{'a': 'y', 'b': None}",
        "{'a': 'x', 'b': 3}",
    ]
    assert form(outputs, 0) == form(canonical([{"a": "x", "b": 1}]), 0)


class FakeTensor:
    """What a tensor on another device offers."""

    dtype = "float32"

    def __init__(self, array):
        self._array = array

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self._array


class Offers:
    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


@pytest.mark.parametrize("wrap", [FakeTensor, Offers])
def test_tensors_and_array_likes_are_arrays(wrap):
    outputs = from_raw(wrap(np.array([[1.0, 2.0]], dtype=np.float32)), 1)
    assert outputs.show(0) == "(1, 2)"
    inside = canonical([wrap(np.array([1.0, 2.0])), None])
    assert inside.show(0) == "(1, 2)"
