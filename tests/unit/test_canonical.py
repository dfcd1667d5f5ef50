"""The canonical form of an output depends on that output alone."""

import dataclasses
import datetime
import enum
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers import canonical, form, objects

from dpassay.errors import BadOutput
from dpassay.outputs.canonical import align, concatenate, from_raw
from dpassay.outputs.events import Intervals, of_keys
from dpassay.outputs.keys import learn
from dpassay.outputs.templates import NUMBER, Outcome

# --- one output, whatever it comes in


@dataclasses.dataclass
class Release:
    count: int
    mean: float


class Colour(enum.Enum):
    RED = 1


EVERY_KIND = [
    None,
    True,
    1,
    -2.5,
    2**53 + 1,
    2**64 - 1,
    10**30,
    10**400,
    "a",
    b"a",
    (1, "x"),
    [1, "x", None],
    {"b": 1.5, "a": None},
    {3: 1.0},
    {3, 1},
    float("nan"),
    float("inf"),
    Outcome("raised", "ValueError"),
    ((1.0, None), [2.0]),
    np.array([1.0, 2.0]),
    np.array([1, 2**60 + 1]),
    np.array([[1, 2], [3, 4]]),
    Decimal("0.1"),
    Fraction(1, 3),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 6),
    datetime.date(2020, 1, 2),
    datetime.timedelta(seconds=1.5),
    np.datetime64("2020-01-02"),
    1 + 2j,
    Colour.RED,
    Release(1, 2.5),
    np.float32(0.1),
    [],
]


def test_every_kind_of_output_has_a_form_and_words():
    outputs = canonical(objects(*EVERY_KIND))
    shown = [outputs.show(k) for k in range(len(EVERY_KIND))]
    assert shown[:6] == ["None", "1", "1", "-2.5", str(2**53 + 1), str(2**64 - 1)]
    assert shown[8:14] == [
        "'a'",
        "b'a'",
        "(1, 'x')",
        "(1, 'x', None)",
        "{'a': None, 'b': 1.5}",
        "{3: 1}",
    ]
    assert shown[17] == "raised ValueError"
    assert shown[24] == "2020-01-02T03:04:05.000006"
    assert shown[-4:] == ["Colour.RED", "Release(count=1, mean=2.5)", "0.1", "()"]


def test_what_compares_equal_is_one_output():
    same = [
        [1, 1.0, True, np.int8(1), np.float32(1), Decimal(1), Fraction(1), np.True_],
        [2**60, 2.0**60, np.uint64(2**60), Decimal(2**60)],
        [(1, 2), [1, 2], np.array([1, 2]), np.array([1.0, 2.0], dtype=np.float32), [True, 2.0]],
        [datetime.datetime(2020, 1, 2), datetime.date(2020, 1, 2), np.datetime64("2020-01-02")],
        [0.0, -0.0, 0, False],
    ]
    for group in same:
        outputs = canonical(objects(*group))
        forms = [form(outputs, k) for k in range(len(group))]
        assert all(f == forms[0] for f in forms), group


def test_what_differs_in_the_last_digit_is_two_outputs():
    apart = [(2**60, 2**60 + 1), (2**63 - 1, 2.0**63), (Decimal("0.1"), 0.1), (1, "1"), (None, "")]
    for a, b in apart:
        outputs = canonical(objects(a, b))
        assert form(outputs, 0) != form(outputs, 1), (a, b)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "a", "1", "nan"]),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-9, max_value=9),
)
values = st.one_of(
    leaves,
    st.lists(leaves, max_size=3),
    st.tuples(leaves, leaves),
    st.dictionaries(st.sampled_from("ab"), leaves, max_size=2),
    st.lists(st.floats(), min_size=2, max_size=2).map(np.array),
)


@given(st.lists(values, min_size=2, max_size=12), st.data())
@settings(max_examples=300, deadline=None)
def test_the_form_of_an_output_does_not_depend_on_its_companions(items, data):
    """Alone, all together, shuffled, in blocks: the same form, whatever container the blocks are."""
    alone = [form(canonical([item]), 0) for item in items]
    order = data.draw(st.permutations(range(len(items))))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(items) - 1), max_size=3)))
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, len(items)], strict=True):
        block = [items[k] for k in order[start:stop]]
        if block:
            as_list = data.draw(st.booleans())
            parts.append(canonical(block if as_list else objects(*block)))
    together = concatenate(parts)
    assert [form(together, k) for k in range(len(items))] == [alone[k] for k in order]


numbers = st.one_of(
    st.integers(-3, 3), st.integers(2**53 - 2, 2**53 + 2), st.floats(-2, 2), st.just(math.nan)
)


@given(st.lists(numbers, min_size=6, max_size=40), st.data())
@settings(max_examples=150, deadline=None)
def test_an_event_is_a_function_of_the_output(items, data):
    """Keys learned anywhere sort an output alike in every block it may come in."""
    half = len(items) // 2
    layout, _, _ = learn(canonical(items[:half]), canonical(items[half:]))
    whole = data.draw(st.sets(st.integers(0, max(len(layout) - 1, 0)), max_size=3))
    partial = [
        (k, Intervals([-1.0, 1.5], [0.5, 9e15]))
        for k in range(len(layout))
        if len(layout.free(k)) == 1
    ]
    whole = [k for k in whole if k < len(layout) and k not in dict(partial)]
    event = of_keys(layout, whole, partial, data.draw(st.booleans()))
    alone = [bool(event.holds(canonical([item]))[0]) for item in items]
    assert event.holds(canonical(items)).tolist() == alone
    assert event.holds(canonical(objects(*items))).tolist() == alone
    again = type(event).from_json(event.to_json())
    assert again.holds(canonical(items)).tolist() == alone


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.0, 2.0, 1j, 1 + 0j]),
        np.array([[1.0, 2j], [3.0, 4.0]]),
        np.array(["2024-01-01", "NaT", "1960-06-01T12:00:00.000000005"], dtype="M8[ns]"),
        np.array([5, "NaT"], dtype="m8[ns]"),
        np.array([[1, 2]], dtype=np.longdouble) / 3,
        np.array([[True, False]]),
        np.array(["3000-01-01", "0001-01-01"], dtype="M8[D]"),
        np.ma.array([1.5, 2.5], mask=[False, True]),
        np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i8"), ("b", "f8")]),
    ],
    ids=repr,
)
def test_an_array_is_the_outputs_it_holds(array):
    """Together, in slices of one, and in every order: the same form."""
    whole = canonical(array)
    for k in range(len(array)):
        assert form(canonical(array[k : k + 1]), 0) == form(whole, k)
    back = canonical(array[::-1])
    assert [form(back, k) for k in range(len(array))] == [
        form(whole, k) for k in range(len(array))
    ][::-1]


def test_tables_have_the_form_of_their_rows():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    when = [datetime.datetime(2024, 1, 1), None, datetime.datetime(2023, 5, 5, 1, 2, 3)]
    columns = {"b": [1, 2, None], "t": when, "a": ["x", None, "y"]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    wanted = [form(canonical([row]), 0) for row in rows]
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        for first in range(3):
            part = canonical(table[first:])
            assert [form(part, k) for k in range(3 - first)] == wanted[first:]


def test_sets_and_keys_that_are_equal_have_one_form():
    groups = [
        [{10**16, 12}, {1e16, 12}, {12.0, 10**16}],
        [{1: "a", 2.5: None}, {1.0: "a", 2.5: None}, {True: "a", 2.5: None}],
        [{frozenset({1, 2}), frozenset({3})}, {frozenset({3.0}), frozenset({2, 1})}],
    ]
    for group in groups:
        forms = [form(canonical([item]), 0) for item in group]
        assert all(f == forms[0] for f in forms)
    assert form(canonical([{1: 0}]), 0) != form(canonical([{"`1`": 0}]), 0)


def test_arrays_and_objects_of_the_same_outputs_have_the_same_form():
    rows = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0], [np.inf, 0.0, -1.0]])
    by_array, by_object = canonical(rows), canonical(objects(*[row.tolist() for row in rows]))
    for k in range(3):
        assert form(by_array, k) == form(by_object, k)
    big = np.array([2**63 - 1, -(2**62) - 3, 5])
    for k in range(3):
        assert form(canonical(big), k) == form(canonical(objects(*big.tolist())), k)
    unsigned = np.array([2**64 - 1, 2**53 + 1], dtype=np.uint64)
    for k in range(2):
        assert form(canonical(unsigned), k) == form(canonical(objects(*unsigned.tolist())), k)
    dates = np.array(["2020-01-01T12:30", "1969-12-31T23:59"], dtype="datetime64[m]")
    for k in range(2):
        assert form(canonical(dates), k) == form(canonical(objects(*dates.tolist())), k)


def test_blocks_that_numpy_made_text_of_are_refused():
    text, plain = canonical(np.array([1.5, "none"])), canonical(np.array([1.5, 2.5]))
    with pytest.raises(BadOutput, match="turns all its numbers into text"):
        concatenate([text, plain])
    rounded, exact = canonical(np.array([2**53 + 1, np.nan])), canonical(np.array([2**53 + 1, 3]))
    with pytest.raises(BadOutput, match="do not hold them"):
        concatenate([rounded, exact])


# --- storage


def test_finite_floats_have_one_structure_and_are_not_copied():
    raw = np.array([0.5, -1.0])
    outputs = canonical(raw)
    assert outputs.is_plain
    assert outputs.structures[0] == NUMBER
    assert np.shares_memory(outputs.numbers, raw)


def test_integers_keep_their_width():
    outputs = canonical(np.array([[1, 0], [0, -1]], dtype=np.int8))
    assert outputs.numbers.dtype == np.int8
    assert outputs.structures[0] == ("seq", (NUMBER, NUMBER))


def test_special_values_are_structure_not_numbers():
    outputs = canonical(np.array([1.0, np.nan, np.inf, -np.inf, 2.0]))
    assert set(outputs.structures) == {NUMBER, ("nan",), ("inf",), ("-inf",)}
    assert [outputs.show(k) for k in range(5)] == ["1", "nan", "inf", "-inf", "2"]
    assert np.isfinite(outputs.numbers).all()


def test_coordinates_stay_in_their_columns():
    outputs = canonical(objects((1.0, None, 2.0), (3.0, 7, 4.0), 5.0))
    assert outputs.numbers[:, 0].tolist() == [1.0, 3.0, 5.0]
    assert outputs.numbers[:2, 2].tolist() == [2.0, 4.0]


def test_string_arrays_need_no_loop():
    outputs = canonical(np.array(["b", "a", "b"]))
    assert [outputs.show(k) for k in range(3)] == ["'b'", "'a'", "'b'"]


def test_more_axes_are_sequences_of_sequences():
    outputs = canonical(np.arange(8).reshape(2, 2, 2))
    assert outputs.show(1) == "((4, 5), (6, 7))"


def test_batches_share_one_table_of_structures():
    both = concatenate([canonical(objects("a", 1.0)), canonical(objects(None, 2.0))])
    assert [both.show(k) for k in range(4)] == ["'a'", "1", "None", "2"]
    assert len(both.structures) == 3


def test_a_string_on_one_side_only_is_another_structure():
    p, q = align([canonical(np.array([0.5, 1.0])), canonical(objects("oops", "oops"))])
    assert p.structures == q.structures
    assert set(p.codes) & set(q.codes) == set()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (3.0, "one value for size=2"),
        ([1.0], "1 outputs for size=2"),
        ("ab", "an array, a list or a table .a function with one output per call"),
        ({"a": 1}, "an array, a list or a table .a function with one output per call"),
        (np.array([object(), object()]), "no canonical form"),
        (np.array(1.0), "one value"),
    ],
)
def test_what_is_not_an_array_of_outputs_is_refused(raw, words):
    with pytest.raises(BadOutput, match=words):
        from_raw(raw, 2)
