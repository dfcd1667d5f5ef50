"""Where two inputs differ, in words."""

import numpy as np
import pandas as pd
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.privacy.relations import difference
from dpassay.results.view import related

ZEROS = np.zeros(200)
ONE = np.where(np.arange(200) == 137, 1.0, 0.0)
ROWS = np.arange(60.0).reshape(20, 3)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (ZEROS, ONE, "two arrays of 200 that differ at [137]: 0.0 against 1.0"),
        (list(ZEROS), list(ONE), "two lists of 200 that differ at [137]: 0.0 against 1.0"),
        (ZEROS, 1 - ZEROS, "two arrays of 200 that differ at [0] and 199 more: 0.0 against 1.0"),
        (
            ONE,
            np.delete(ONE, 137),
            "two arrays of 200 and 199, of which the first has one more: 1.0 at [137]",
        ),
        (
            ZEROS[1:],
            ZEROS,
            "two arrays of 199 and 200, of which the second has one more: 0.0 at [199]",
        ),
        (
            {"a": 0, "b": [1, 2]},
            {"a": 0, "b": [1, 3]},
            "two dicts of 2 that differ at ['b'][1]: 2 against 3",
        ),
        (
            {"a": 0},
            {"a": 0, "b": 1},
            "two dicts of 1 and 2, of which only the second has the key 'b'",
        ),
        (
            ROWS,
            np.where(ROWS == 10, np.nan, ROWS),
            "two arrays of 20 that differ at [3][1]: 10.0 against nan",
        ),
        (
            pd.DataFrame(ROWS),
            pd.DataFrame(np.where(ROWS == 10, 7, ROWS)),
            "two DataFrames of 20 that differ at [3][1]: 10.0 against 7.0",
        ),
        (
            [["bob", 3]] * 2,
            [["bob", 3], ["al", 3]],
            "two lists of 2 that differ at [1][0]: 'bob' against 'al'",
        ),
    ],
)
def test_the_difference_is_named(first, second, said):
    assert difference(first, second) == said


class Odd:
    def __eq__(self, other):
        raise RuntimeError

    __hash__ = None


@pytest.mark.parametrize(
    ("first", "second"),
    [(ZEROS, ZEROS), ("a" * 99, "b" * 99), ([Odd()], [Odd()]), (1, 2), ({"a": 1}, [1])],
)
def test_what_cannot_be_told_is_left_out(first, second):
    assert difference(first, second) == ""


def test_long_inputs_are_shown_by_their_difference_and_short_ones_in_full():
    assert str(dp.Pair(ZEROS, ONE, name="x")).startswith(
        "x: two arrays of 200 that differ at [137]"
    )
    assert str(dp.Pair([0, 0], [0, 1])) == "[0, 0] and [0, 1]"


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_replacing_a_record_keeps_the_number_of_records(make):
    short, long = make([1.0, 2.0]), make([1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="have 2 and 3 records: the relation is add_remove"):
        dp.audit(dp.zoo.Laplace(1.0), (short, long), "eps=1", n=100, relation="replace")
    for relation in ("add_remove", None):
        assert dp.Pair(short, long).related(relation).second is long
    for pair in (dp.Pair(0.0, 1.0), dp.Pair("p.csv", "other.csv"), dp.Pair((1, 2), (1, 2, 3))):
        assert pair.related("replace").relation is dp.Relation.REPLACE_ONE


@pytest.mark.parametrize("make", [list, pd.Series])
def test_adding_a_record_makes_one_more(make):
    for other, remedy in (([1.0, 9.0], "replace"), ([1.0, 2.0, 3.0, 4.0], "user")):
        with pytest.raises(InvalidInput, match=f"have 2 and .*or relation='{remedy}'"):
            dp.Pair(make([1.0, 2.0]), make(other)).related("add_remove")
    for counts in (
        dp.Pair(np.array([2, 1]), np.array([1, 1])),  # a histogram of one record less
        dp.Pair([[1.0, 2.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]),  # zeros in place of a record
        dp.Pair([1.0, 0.0], [1.0, float("nan")]),
    ):
        assert counts.related("add_remove").relation is dp.Relation.ADD_REMOVE


@pytest.mark.parametrize(
    ("pair", "relation", "apart"),
    [
        (([0] * 12, [1, 1] + [0] * 10), "replace", "2 of 12"),
        ((np.zeros(3), np.ones(3)), "replace", "3 of 3"),
        ((["x", "y"], ["x", "z", "z"]), "add_remove", "2 of 3"),
        (([0] * 12, [1] + [0] * 11), "replace", ""),
        (([3, 4, 5], [4, 3, 5]), "replace", ""),  # counts, or the same records in another order
        (([3, 4, 5], [4, 4, 4]), "replace", ""),
        ((["x", "y", "y"], ["y", "x"]), "add_remove", ""),
        ((np.eye(2), np.array([[1.0, 0.0], [0.0, np.nan]])), "replace", ""),
    ],
)
def test_entries_that_are_no_neighbours_are_named_and_not_refused(pair, relation, apart):
    found = dp.Pair(*pair).related(relation)
    said = f"the inputs differ in {apart} entries: if an entry is a record, they are no neighbours"
    assert found.doubt == (f"{said} under {relation}" if apart else "")
    assert ("stated: " in related(found, "")) == bool(apart)


def test_a_verdict_notes_inputs_that_may_be_no_neighbours():
    verdict = dp.audit(
        dp.from_function(lambda x, rng: sum(x) + rng.geometric(0.6)),
        ([0] * 12, [1, 1] + [0] * 10),
        "eps=1",
        n=500,
        relation="replace",
        rng=0,
    )
    assert verdict.witness.pair.doubt in verdict.about.notes
    assert "(replace one record)" not in str(verdict.view())


@pytest.mark.parametrize("lengths", [(3, 1), (1, 3), (4, 2), (3, 0)])
def test_two_records_less_are_no_neighbours_by_add_remove(lengths):
    pair = dp.Pair(*(list(range(n)) for n in lengths))
    with pytest.raises(InvalidInput, match=r"3|4.*records.*relation='user'"):
        pair.related("add_remove")


def test_missing_values_that_both_inputs_have_do_not_differ():
    one, other = [float("nan")] * 9 + [0.0], [float("nan")] * 9 + [1.0]
    assert dp.Pair(one, other).related("add-remove").relation is dp.Relation.ADD_REMOVE
