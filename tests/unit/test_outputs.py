import math

import numpy as np
import pytest

from dpassay.blackbox.mechanism import Outcome
from dpassay.errors import BadOutput
from dpassay.sampling.outputs import FLOAT, INT, align, concatenate, from_raw


def objects(*items):
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return from_raw(array, len(items))


def test_finite_floats_have_one_structure():
    outputs = from_raw(np.array([0.5, -0.0]), 2)
    assert outputs.is_plain
    assert outputs.structures[0].template == FLOAT
    assert math.copysign(1, outputs.numbers[1, 0]) == 1.0  # −0.0 = 0.0


def test_integers_keep_their_width():
    outputs = from_raw(np.array([[1, 0], [0, -1]], dtype=np.int8), 2)
    assert outputs.numbers.dtype == np.int8
    assert outputs.structures[0].template == ("vector", (INT, INT))


def test_special_values_are_structure_not_numbers():
    outputs = from_raw(np.array([1.0, np.nan, np.inf, -np.inf, 2.0]), 5)
    assert {s.template for s in outputs.structures} == {FLOAT, ("nan",), ("inf",), ("-inf",)}
    assert [outputs.show(k) for k in range(5)] == ["1", "nan", "inf", "-inf", "2"]
    assert np.isfinite(outputs.numbers).all()


def test_special_values_in_vectors_make_a_pattern():
    outputs = from_raw(np.array([[1.0, np.nan], [2.0, 3.0], [-np.inf, 4.0]]), 3)
    assert [outputs.structure_of(k).columns for k in range(3)] == [(0,), (0, 1), (1,)]
    assert outputs.show(0) == "(1, nan)"


def test_every_kind_of_object_has_a_form():
    items = [
        None,
        True,
        1,
        1.0,
        "a",
        b"a",
        (1, "x"),
        [1, "x"],
        {"b": 1.5, "a": None},
        {3, 1},
        10**30,
        float("nan"),
        Outcome("raised", "ValueError"),
        ((1.0, None), [2.0]),
        np.float32(0.5),
        np.array([1.0, 2.0]),
    ]
    outputs = objects(*items)
    # 1.0 and np.float32(0.5) share a structure; everything else is of its own kind
    assert len(outputs.structures) == len(items) - 1
    shown = [outputs.show(k) for k in range(len(items))]
    assert shown[:8] == ["None", "True", "1", "1", "'a'", "b'a'", "(1, 'x')", "[1, 'x']"]
    assert shown[8] == "{'a': None, 'b': 1.5}"
    assert shown[12] == "raised ValueError"


def test_numbers_of_objects_are_aligned_by_structure():
    outputs = objects((1.0, None, 2.0), (3.0, None, 4.0), 5.0)
    assert outputs.numbers[:, 0].tolist() == [1.0, 3.0, 5.0]
    assert outputs.structure_of(0).columns == (0, 1)
    assert outputs.structure_of(2).columns == (0,)


def test_string_arrays_need_no_loop():
    outputs = from_raw(np.array(["b", "a", "b"]), 3)
    assert [outputs.show(k) for k in range(3)] == ["'b'", "'a'", "'b'"]


def test_batches_share_one_table_of_structures():
    first, second = objects("a", 1.0), objects(None, 2.0)
    both = concatenate([first, second])
    assert [both.show(k) for k in range(4)] == ["'a'", "1", "None", "2"]
    assert len(both.structures) == 3


def test_integer_and_float_arrays_are_both_numbers():
    p, q = align([from_raw(np.array([1, 2]), 2), from_raw(np.array([0.5, 1.0]), 2)])
    assert p.structures == q.structures
    assert p.numbers.dtype == np.float64


def test_a_string_on_one_side_only_is_another_structure():
    p, q = align([from_raw(np.array([0.5, 1.0]), 2), objects("oops", "oops")])
    assert p.structures == q.structures
    assert set(p.codes) & set(q.codes) == set()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (3.0, "one value for size=2"),
        ([1.0], "1 outputs for size=2"),
        (np.zeros((2, 2, 2)), "shape \\(2, 2, 2\\)"),
        ([[1.0], [1.0, 2.0]], "unequal length"),
        (np.array([1j, 2j]), "complex"),
        ("ab", "must return an array"),
        (np.array([object(), object()]), "no canonical form"),
    ],
)
def test_what_is_not_an_array_of_outputs_is_refused(raw, words):
    with pytest.raises(BadOutput, match=words):
        from_raw(raw, 2)


def test_unequal_dimensions_do_not_go_together():
    with pytest.raises(BadOutput, match="2 coordinates here and 3 there"):
        align([from_raw(np.zeros((1, 2)), 1), from_raw(np.zeros((1, 3)), 1)])


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (np.zeros((5, 0)), "hold no numbers"),
        (np.array([2**63], dtype=np.uint64), "fit into 64 bits with a sign"),
    ],
)
def test_outputs_without_a_place_are_refused_with_a_remedy(outputs, words):
    with pytest.raises(BadOutput, match=words):
        from_raw(outputs, len(outputs))
