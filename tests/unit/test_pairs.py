"""Where two inputs differ, in words."""

import numpy as np
import pandas as pd
import pytest

import dpassay as dp
from dpassay.privacy.pairs import difference

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
            "two arrays of 200 and 199, of which only the first has [137], 1.0",
        ),
        (ZEROS[1:], ZEROS, "two arrays of 199 and 200, of which only the second has [199], 0.0"),
        (
            {"a": 0, "b": [1, 2]},
            {"a": 0, "b": [1, 3]},
            "two dicts of 2 that differ at ['b'][1]: 2 against 3",
        ),
        ({"a": 0}, {"a": 0, "b": 1}, "two dicts of 1 and 2, of which only the second has ['b']"),
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
