"""Outputs of other libraries are the arrays they hold."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.helpers import canonical, form

from dpassay.errors import BadOutput
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


@pytest.mark.parametrize("kind", ["csr_matrix", "coo_array"])
def test_a_sparse_output_is_its_entries(kind):
    output = getattr(sparse, kind)(np.diag([1.0, 0.0, 2.0]))
    for raw in ([output], [(1, output)]):
        shown = from_raw(raw, 1).show(0)
        assert "'index 0': (0, 2), 'index 1': (0, 2), 'value': (1, 2)" in shown
        assert "(3, 3)" in shown
    with pytest.raises(BadOutput, match=rf"rows of one {kind} are sparse.*\.toarray\(\)"):
        from_raw(output, 3)


def test_labels_are_values_and_row_numbers_are_not():
    plain = pd.Series([1.5, 2.5])
    assert from_raw([plain], 1).show(0) == from_raw([plain.set_axis([0, 1])], 1).show(0)
    assert "'Oslo'" in from_raw([plain.set_axis(["Oslo", "Rome"])], 1).show(0)
    frame = pd.DataFrame({"a": [1, 2]})
    assert from_raw([frame], 1).show(0) == from_raw([frame.set_axis(pd.Index([0, 1]))], 1).show(0)
    assert "index" in from_raw([frame.set_axis(["p", "q"])], 1).show(0)
