"""Spaces: what they hold, how they reach a mechanism, and what JSON says of them."""

import json
import math

import numpy as np
import pytest

import dpassay as dp
from dpassay.blackbox.inputs import Space, as_space
from dpassay.errors import InvalidInput
from dpassay.hunting import values
from dpassay.hunting.queries import Queries
from dpassay.hunting.records import Records
from dpassay.hunting.shapes import shape_of
from dpassay.privacy.pairs import Relation, as_relation

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
        ([0, 1], "a space must be one of"),
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
        (lambda: inputs.Counts(inputs.Text(), zeros=True), "no end of texts"),
        (lambda: inputs.Example([1]), "two rows or more"),
    ],
)
def test_wrong_spaces_are_answered(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


def packed(space, rows, seed=0):
    return shape_of(space, seed).pack(rows)


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
    shape = shape_of(inputs.Example(data), 0)
    assert shape.cells == (inputs.Real(20.5, 80.0), inputs.Category(["f", "m"]))
    assert shape.pack(shape.seeds[0]).equals(data)
    for plain in (np.array([[1.5, 2.0], [3.0, 4.0]]), np.arange(9), [1, 2, 9], ["a", "b", "a"]):
        shape = shape_of(inputs.Example(plain), 0)
        back = shape.pack(shape.seeds[0])
        assert np.array_equal(back, plain)
        assert type(back) is type(plain)
    said = inputs.Example([{"x": 1, "y": 2}, {"x": 3, "y": 4}], {"x": inputs.Integer(0, 99)})
    assert shape_of(said, 0).cells[0] == inputs.Integer(0, 99)
    with pytest.raises(InvalidInput, match="no column 'z'"):
        shape_of(inputs.Example([{"x": 1}, {"x": 3}], {"z": inputs.Real(0, 1)}), 0)


def apart(one, other):
    """How many rows must be removed from each of two inputs to make them equal, as multisets."""
    left, right = list(map(repr, one)), list(map(repr, other))
    for row in list(left):
        if row in right:
            left.remove(row)
            right.remove(row)
    return sorted((len(left), len(right)))


@pytest.mark.parametrize("relation", ["add_remove", "replace", "edit"])
@pytest.mark.parametrize(
    "space",
    [inputs.Reals(0, 1, (0, 6)), TABLE, inputs.Strings(length=(1, 4))],
    ids=lambda space: type(space).__name__,
)
def test_whatever_is_done_to_neighbours_they_stay_neighbours(space, relation, seed):
    """The catalogue, mutations of it and simplifications: always one row apart, and of allowed length."""
    rng = np.random.default_rng(seed)
    shape = shape_of(space, seed)
    ground = Records(shape, as_relation(relation))
    found = ground.catalogue(rng, outside=True)
    found = found[:: max(len(found) // 40, 1)] + [ground.random(rng) for _ in range(20)]
    found += [ground.mutated(one, rng) for one in found for _ in range(3)]
    found += [simpler for one in found[::5] for simpler in ground.simpler(one)]
    for one in found:
        sides = [one.rows(0), one.rows(1)]
        expected = [0, 1] if relation == "add_remove" else [1, 1]
        assert apart(*sides) in ([0, 0], expected)
        for rows in sides:
            assert shape.length[0] <= len(rows) <= shape.length[1]
        inside = all(all(map(values.holds, shape.cells, row)) for rows in sides for row in rows)
        assert one.outside is not inside
        if relation == "edit":
            differ = [a != b for a, b in zip(one.first[0], one.second[0], strict=True)]
            same = repr(one.first) == repr(one.second)
            assert sum(differ) <= 1 or same


def test_the_catalogue_names_what_is_hostile(seed):
    rng = np.random.default_rng(seed)
    ground = Records(shape_of(TABLE, seed), Relation.REPLACE_ONE)
    names = " / ".join(one.name for one in ground.catalogue(rng, outside=True))
    for word in ("NaN", "only member of a class", "composed or decomposed", "largest sum", "missing",
                 "beyond the upper bound", "minus zero", "tiny", "all rows equal", "no other row",
                 "nobody declared", "few rows", "next to"):  # fmt: skip
        assert word in names
    assert not any(one.outside for one in ground.catalogue(rng, outside=False))


def test_counts_change_by_one(seed):
    rng = np.random.default_rng(seed)
    shape = shape_of(inputs.Counts(["a", "b", "c"], most=9), seed)
    ground = Records(shape, Relation.ADD_REMOVE)
    for one in ground.catalogue(rng, outside=False):
        first, second = ground.pair(one)
        keys = {*first, *second}
        assert sum(abs(first.get(k, 0) - second.get(k, 0)) for k in keys) == 1
        assert max([*first.values(), *second.values()]) <= 9


@pytest.mark.parametrize("norm", ["each", "l1", "l2"])
@pytest.mark.parametrize("cell", [inputs.Reals(-3, 1e17, 3), inputs.Integers(0, 2**60, (1, 4))])
def test_answers_stay_within_the_sensitivity(cell, norm, seed):
    rng = np.random.default_rng(seed)
    ground = Queries(shape_of(cell, seed), 2.0, norm)
    found = ground.catalogue(rng, outside=False) + [ground.random(rng) for _ in range(20)]
    found += [ground.mutated(one, rng) for one in found]
    found += [simpler for one in found[::3] for simpler in ground.simpler(one)]
    for one in found:
        pair = ground.pair(one)
        gaps = [abs(int(b) - int(a)) if isinstance(a, int) else abs(b - a)
                for a, b in zip(pair[0].tolist(), pair[1].tolist(), strict=True)]  # fmt: skip
        size = {"each": max(gaps), "l1": sum(gaps), "l2": math.sqrt(sum(g * g for g in gaps))}[norm]
        assert 0 < size <= 2 * (1 + 1e-12)


def test_spaces_say_which_type_they_are():
    assert isinstance(inputs.Real(0, 1), Space)
