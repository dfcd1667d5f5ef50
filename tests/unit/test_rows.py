"""Whatever is done to neighbouring inputs, they stay neighbours."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.hunting import values
from dpassay.hunting.row_spaces import row_schema
from dpassay.hunting.rows import Records
from dpassay.privacy.relations import Relation, as_relation

inputs = dp.inputs
TABLE = inputs.Table(
    {"age": inputs.Real(0, 100), "sex": inputs.Category(["f", "m"]), "name": inputs.Text()},
    rows=(0, 8),
)


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
    schema = row_schema(space, seed)
    pairs = Records(schema, as_relation(relation), rng)
    found = pairs.catalogue(outside=True)
    found = found[:: max(len(found) // 40, 1)] + [pairs.random() for _ in range(20)]
    found += [pairs.mutated(one) for one in found for _ in range(3)]
    found += [simpler for one in found[::5] for simpler in pairs.simpler(one)]
    for one in found:
        sides = one.sides()
        expected = [0, 1] if relation == "add_remove" else [1, 1]
        assert apart(*sides) in ([0, 0], expected)
        for rows in sides:
            assert schema.length[0] <= len(rows) <= schema.length[1]
        inside = all(all(map(values.holds, schema.cells, row)) for rows in sides for row in rows)
        assert one.outside is not inside
        if relation == "edit":
            differ = [a != b for a, b in zip(one.first[0], one.second[0], strict=True)]
            same = repr(one.first) == repr(one.second)
            assert sum(differ) <= 1 or same


def test_the_catalogue_names_what_is_hostile(seed):
    rng = np.random.default_rng(seed)
    pairs = Records(row_schema(TABLE, seed), Relation.REPLACE_ONE, rng)
    names = " / ".join(one.name for one in pairs.catalogue(outside=True))
    for word in ("NaN", "only member of a class", "composed or decomposed", "largest sum", "missing",
                 "beyond the upper bound", "minus zero", "tiny", "all rows equal", "no other row",
                 "nobody declared", "few rows", "next to"):  # fmt: skip
        assert word in names
    assert not any(one.outside for one in pairs.catalogue(outside=False))


@pytest.mark.parametrize(
    "space",
    [
        inputs.Table({"key": inputs.Category(["a", "b"])}, rows=(0, 12)),
        inputs.Table({"key": inputs.Text(), "value": inputs.Real(0, 1)}, rows=(0, 1)),
        inputs.Integers(0, 1, length=(0, 12)),
        inputs.Reals(0, 1, length=(0, 3)),
        inputs.Strings(1, "ab", length=(0, 12)),
        inputs.Counts(["a", "b"]),
        inputs.Example([{"key": "a"}, {"key": "b"}]),
    ],
    ids=lambda space: type(space).__name__,
)
def test_the_first_row_of_every_space_is_singled_out_for_claims_with_delta(space, seed):
    rng = np.random.default_rng(seed)
    pairs = Records(row_schema(space, seed), Relation.ADD_REMOVE, rng)
    rare = [one for one in pairs.catalogue(outside=False) if one.rare]
    assert [sorted(map(len, one.sides())) for one in rare] == [[0, 1]]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_sums_on_either_side_of_an_overflow_are_tried(relation, seed):
    rng = np.random.default_rng(seed)
    space = inputs.Integers(-(2**53), 2**20, length=(0, 2**13))
    pairs = Records(row_schema(space, seed), as_relation(relation), rng)
    sums = {
        one.name: [sum(row[0] for row in rows) for rows in one.sides()]
        for one in pairs.catalogue(outside=False)
    }
    least = [("2^31", 2**31), ("2^32", 2**32), ("−2^63", -(2**63))]
    for name, edge in least:  # of 64 bits −2^63 is the least that fits
        before, after = sorted(sums[f"a sum around {name}"])
        assert before < edge <= after


def test_a_user_has_all_rows_that_differ_and_no_other(seed):
    rng = np.random.default_rng(seed)
    space = inputs.Table(
        {"who": inputs.Integer(0, 3), "what": inputs.Category(["a", "b"])}, rows=(0, 3)
    )
    pairs = Records(row_schema(space, seed), Relation.ONE_USER, rng, user=0)
    found = pairs.catalogue(outside=False)
    found += [pairs.mutated(one) for one in found]
    found += [simpler for one in found[::7] for simpler in pairs.simpler(one)]
    for one in found:
        assert one.first == ()
        assert len({row[0] for row in one.second}) == 1
        assert not {row[0] for row in one.second} & {row[0] for row in one.common}
        assert 1 <= len(one.sides()[1]) <= 3


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("keys_at_once", [(2, 3), (3, 3)], ids=str)
def test_inputs_of_counts_have_as_many_keys_as_the_space_allows(relation, keys_at_once, seed):
    """An input with fewer keys made a mechanism that refuses it a violation."""
    space = inputs.Counts(list("abcd"), most=9, keys_at_once=keys_at_once)
    pairs = Records(row_schema(space, seed), as_relation(relation), np.random.default_rng(seed))
    made = pairs.catalogue(outside=False) + [pairs.random() for _ in range(20)]
    made += [pairs.mutated(one) for one in made]
    made += [simpler for one in made[::7] for simpler in pairs.simpler(one)]
    for one in made:
        for side in pairs.pair(one):
            assert keys_at_once[0] <= len(side) <= keys_at_once[1] or one.outside


def test_a_user_may_have_every_row_there_can_be(seed):
    space = inputs.Table(
        {"who": inputs.Integer(0, 3), "what": inputs.Category(["a", "b"])}, rows=(0, 20)
    )
    rng = np.random.default_rng(seed)
    pairs = Records(row_schema(space, seed), Relation.ONE_USER, rng, user=0)
    assert max(len(one.second) for one in pairs.catalogue(outside=False)) == 20


def test_counts_change_by_one(seed):
    rng = np.random.default_rng(seed)
    schema = row_schema(inputs.Counts(["a", "b", "c"], most=9), seed)
    pairs = Records(schema, Relation.ADD_REMOVE, rng)
    made = pairs.catalogue(outside=False)
    made += [pairs.mutated(one) for one in made]
    made += [simpler for one in made[::7] for simpler in pairs.simpler(one)]
    for one in made:
        first, second = pairs.pair(one)
        keys = {*first, *second}
        assert sum(abs(first.get(k, 0) - second.get(k, 0)) for k in keys) == 1
        assert max([*first.values(), *second.values()]) <= 9
