"""Spaces: what they hold, and what JSON says of them."""

import json
import math

import pytest

import dpassay as dp
from dpassay.blackbox.inputs import as_space
from dpassay.errors import InvalidInput

inputs = dp.inputs
TABLE = inputs.Table(
    {"age": inputs.Real(0, 100), "sex": inputs.Category(["f", "m"]), "name": inputs.Text()},
    rows=(0, 8),
)
SPACES = [
    inputs.Real(0, 1),
    inputs.Category([0, 1, 2]),
    inputs.Reals(0, 1, (1, 5)),
    inputs.Integers(0, 5, 4),
    inputs.Strings(length=(0, 4)),
    TABLE,
    inputs.Counts(["a", "b"], most=9),
    inputs.Counts(inputs.Text(longest=20), most=9),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_spaces_come_back_from_json(space):
    assert as_space(json.loads(space.to_json())) == space


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "Real", "lowest": 1}, "no field 'lowest'"),
        ({"type": "Number"}, "unknown record type"),
        ({"type": "Pair", "first": 1, "second": 2}, "expected a Space"),
        ({"type": "Table"}, "incomplete Table"),
        ([0, 1], r"for listed values, the space is dp.inputs.Category\(\[0, 1\]\)"),
        ("0 to 1", "a space must be one of"),
    ],
)
def test_wrong_json_is_answered(given, said):
    with pytest.raises(InvalidInput, match=said):
        as_space(given)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: inputs.Real(1, 0), "low must be below high"),
        (lambda: inputs.Real(math.nan, 1), "low must be"),
        (lambda: inputs.Integer(0.5, 1), "low must be a whole number"),
        (lambda: inputs.Category("abc"), "must be a list"),
        (lambda: inputs.Category(["a"]), "at least two"),
        (lambda: inputs.Text(0), "longest"),
        (lambda: inputs.Reals(0, 1, (3, 2)), "length must be"),
        (lambda: inputs.Reals(0, 1, convert="torch"), "convert must be"),
        (lambda: inputs.Integers(0, 2**70), "64 bits"),
        (lambda: inputs.Table({}), "columns must be"),
        (lambda: inputs.Table({"a": 1}), "the column 'a'"),
        (lambda: inputs.Counts(inputs.Text(), zeros=True), "not all texts can be listed"),
        (lambda: inputs.Example([1]), "two rows or more"),
    ],
)
def test_wrong_spaces_are_answered(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()
