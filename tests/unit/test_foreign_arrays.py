"""Outputs of other libraries are the arrays they hold."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.helpers import canonical, form

from dpassay.errors import BadOutput
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.targets import closeness, targets_of


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
    counts = pd.Series([40, 41, 41]).value_counts().sort_index()
    assert from_raw([counts], 1).show(0) == "{'label': (40, 41), 'value': (1, 2)}"
    assert from_raw([frame.iloc[::-1]], 1).show(0) == "{'a': (2, 1), 'index': (1, 0)}"
    assert from_raw([frame.set_index("a", drop=False)], 1).show(0) == (
        "{'a': (1, 2), 'index': (1, 2)}"
    )
    for draws in (plain.iloc[::-1], frame.iloc[::-1]):  # rows are draws, which pandas numbers
        read = from_raw(draws, 2)
        assert len(read.structures) == 1
        assert read.numbers.shape == (2, 1)
    near = closeness(frame.iloc[[1]], frame.drop(0))
    assert near.tolist() == [1.0]
    assert [one.words for one in targets_of((frame, frame.drop(0)))] == ["a = 1"]


def test_labels_of_several_levels_intervals_and_periods_are_read():
    levels = pd.Series([5, 6], index=pd.MultiIndex.from_tuples([("a", 1), ("b", None)]))
    shown = "{'label 1': ('a', 'b'), 'label 2': (1, None), 'value': (5, 6)}"
    assert from_raw([levels], 1).show(0) == shown
    assert "'level_1': (1, None)" in from_raw([levels.to_frame()], 1).show(0)
    bins = pd.cut(pd.Series([1.0, 5.0, 9.0]), [0, 4, 10]).value_counts()
    assert from_raw([bins], 1).show(0) == "{'label': ((4, 10], (0, 4]), 'value': (2, 1)}"
    assert from_raw([[pd.Period("2024-01", "M")]], 1).show(0) == "(2024-01)"


FRAMES = {
    "numbers": {"a": [1, 2], "b": [0.5, -0.0]},
    "other numbers": {"a": [7, 2**60], "b": [np.nan, 1e300]},
    "no rows": {"a": np.zeros(0, dtype=int), "b": np.zeros(0)},
    "large objects": {"a": np.array([2**63, -1], dtype=object), "b": [1.0, 2.0]},
    "small objects": {"a": np.array([3, None], dtype=object), "b": [1.0, np.inf]},
    "text": {"a": ["x", None], "b": ["y", "z"]},
    "more text": {"a": ["x", "x"], "b": ["", "z"]},
    "categories": {"a": pd.Categorical(["u", "v"]), "b": [True, False]},
    "other categories": {"a": pd.Categorical(["w", None]), "b": [True, True]},
    "dates": {"a": pd.to_datetime(["2024-01-01", None]), "b": pd.array([1, None], dtype="Int64")},
    "more dates": {"a": pd.to_datetime(["2024-01-01", "1960-05-05"]), "b": pd.array([5, 6])},
    "zones": {
        "a": pd.to_datetime(["2024-01-01", "2024-07-01"]).tz_localize("Europe/Oslo"),
        "b": [1, 2],
    },
    "order": {"b": [0.5, 0.25], "a": [1, 2]},
    "lists": {"a": [[1], [2, 3]], "b": [{"k": 1}, None]},
}


def test_frames_read_together_have_the_forms_they_have_alone(seed):
    frames = [pd.DataFrame(columns) for columns in FRAMES.values()]
    frames.append(frames[0].set_axis(["p", "q"]))
    frames += [frames[0].iloc[::-1], frames[1].set_axis([5, 7]), frames[0].iloc[1:]]
    rng = np.random.default_rng(seed)
    mixed = [frames[k] for k in rng.integers(0, len(frames), 60)] + [None, 3, {"a": [1, 2]}]
    together = from_raw(mixed, len(mixed))
    for k, output in enumerate(mixed):
        assert form(together, k) == form(from_raw([output], 1), 0)


def test_polars_frames_read_together_have_the_forms_they_have_alone():
    polars = pytest.importorskip("polars")
    columns = [
        {"a": [1, 2]},
        {"a": [1.5, None]},
        {"a": ["x", "y"]},
        {"a": [3, 4]},
        {"a": [[1], []]},
    ]
    frames = [polars.DataFrame(one) for one in columns * 2]
    together = from_raw(frames, len(frames))
    for k, frame in enumerate(frames):
        assert form(together, k) == form(from_raw([frame], 1), 0)
