"""How rows reach a mechanism, and what data at hand say of themselves."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.hunting.row_spaces import row_schema

inputs = dp.inputs
TABLE = inputs.Table(
    {"age": inputs.Real(0, 100), "sex": inputs.Category(["f", "m"]), "name": inputs.Text()},
    rows=(0, 8),
)


def packed(space, rows, seed=0):
    return row_schema(space, seed).pack(rows)


def test_rows_reach_the_mechanism_as_declared():
    import pandas

    assert packed(inputs.Real(0, 1), [(0.5,)]) == 0.5
    array = packed(inputs.Reals(0, 1), [(0.5,), (1.0,)])
    assert array.dtype == np.float64
    assert array.tolist() == [0.5, 1.0]
    assert packed(inputs.Integers(0, 5), []).dtype == np.int64
    assert packed(inputs.Reals(0, 1, convert=sum), [(0.5,), (1.0,)]) == 1.5
    row = (3.0, "f", "ada")
    assert packed(TABLE, [row]) == [{"age": 3.0, "sex": "f", "name": "ada"}]
    columns = {"a": inputs.Real(0, 1), "b": inputs.Real(0, 1)}
    assert packed(inputs.Table(columns, convert="numpy"), []).shape == (0, 2)
    frame = packed(inputs.Table(columns, convert="pandas"), [(0.0, 1.0)])
    assert isinstance(frame, pandas.DataFrame)
    assert packed(inputs.Counts(["a", "b"]), [("a", 3), ("a", 1)]) == {"a": 4}
    assert packed(inputs.Counts(["a", "b"], zeros=True), [("a", 3)]) == {"a": 3, "b": 0}


def test_an_example_says_what_its_columns_may_hold():
    import pandas

    data = pandas.DataFrame({"age": [20.5, 80.0, 33.0], "sex": ["f", "m", "f"]})
    schema = row_schema(inputs.Example(data), 0)
    assert schema.cells == (inputs.Real(20.5, 80.0), inputs.Category(["f", "m"]))
    assert schema.pack(schema.known[0]).equals(data)
    for plain in (np.array([[1.5, 2.0], [3.0, 4.0]]), np.arange(9), [1, 2, 9], ["a", "b", "a"]):
        schema = row_schema(inputs.Example(plain), 0)
        back = schema.pack(schema.known[0])
        assert np.array_equal(back, plain)
        assert type(back) is type(plain)
    said = inputs.Example([{"x": 1, "y": 2}, {"x": 3, "y": 4}], {"x": inputs.Integer(0, 99)})
    assert row_schema(said, 0).cells[0] == inputs.Integer(0, 99)
    with pytest.raises(InvalidInput, match="no column 'z'"):
        row_schema(inputs.Example([{"x": 1}, {"x": 3}], {"z": inputs.Real(0, 1)}), 0)
