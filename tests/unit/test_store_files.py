"""Every kind of output comes back from a part bit for bit."""

import datetime
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers import objects

import dpassay as dp
from dpassay.errors import MissingExtra, StoreError
from dpassay.outputs.canonical import align, from_raw
from dpassay.sampling import store_files
from dpassay.sampling.job import Task
from dpassay.sampling.store_files import Damaged, Part, PartWriter, decode, encode, list_parts

pytest.importorskip("pyarrow")


@dataclass
class Release:
    total: float
    label: str | None


KINDS = {
    "float64": np.array([0.1, -0.0, 0.0, 5e-324, -1.7976931348623157e308]),
    "float32": np.array([0.1, -0.0, 1e-45], dtype=np.float32),
    "int8": np.array([-128, 127], dtype=np.int8),
    "int64": np.array([-(2**63), 2**63 - 1, 2**53 + 1]),
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64),
    "big-endian": np.array([1, 2, 3], dtype=">i4"),
    "bool": np.array([True, False]),
    "matrix": np.arange(12.0).reshape(3, 4),
    "integer matrix": np.arange(12, dtype=np.int16).reshape(3, 4),
    "specials": np.array([np.nan, np.inf, -np.inf, -0.0, 1.0]),
    "special matrix": np.array([[np.nan, 1.0], [np.inf, -0.0]]),
    "words": np.array(["a", "b", "a", "ü\n\u2028"]),
    "bytes": np.array([b"a", b"\xff"]),
    "lone surrogate": objects("\ud800", "x"),
    "none": objects(None, 1.0, None),
    "empty tuples": objects((), (), ()),
    "no numbers": objects("a", None),
    "tuples": objects((1, "a", None), (2, "b", 0.5)),
    "lengths": objects((1,), (1, 2, 3), ()),
    "dicts": objects({"a": 1, "b": None}, {"b": 2.5}),
    "sets": objects({1, 2}, frozenset({"a"})),
    "nested": objects({"a": [1, {"b": (None, float("nan"))}]}, [[[]]]),
    "large numbers": objects(2**70, Decimal("0.1"), Fraction(1, 3), 10**400),
    "complex": np.array([1 + 2j, 3j]),
    "dates": np.array(["2020-01-01", "2021-05-05T10:00:00.000000001"], dtype="M8[ns]"),
    "times": objects(datetime.time(10, 30), datetime.timedelta(seconds=1.5)),
    "outcomes": objects(dp.Outcome("raised", "ValueError"), dp.Outcome("timed out"), 1.0),
    "objects": objects(Release(1.0, "a"), Release(2.0, None)),
    "mixed": objects(1, "1", 1.5, None, (1,), {"a": 1}, float("inf"), True),
    "long text": objects("x" * 100_000, "y"),
}


def same(one, two):
    assert one.numbers.dtype == two.numbers.dtype.newbyteorder("=")
    assert one.numbers.tobytes() == two.numbers.astype(one.numbers.dtype).tobytes()
    assert one.numbers.shape == two.numbers.shape
    assert one.structures == two.structures
    assert one.containers == two.containers
    for a, b in ((one.codes, two.codes), (one.rest, two.rest)):
        assert (a is None) == (b is None)
        assert a is None or (a.dtype == b.dtype and a.tobytes() == b.tobytes())


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("other", ["float64", "mixed", None])
def test_a_part_comes_back_bit_for_bit(name, other):
    one, two = KINDS[name], KINDS[name if other is None else other]
    n = min(len(one), len(two))
    sides = align([from_raw(one[:n], n), from_raw(two[:n], n)])
    for before, after in zip(sides, decode(encode(*sides, ["x", 1]))[:2], strict=True):
        same(after, before)
        assert [after.show(k) for k in range(n)] == [before.show(k) for k in range(n)]


leaves = st.one_of(
    st.floats(), st.integers(-(2**80), 2**80), st.text(max_size=5), st.none(), st.booleans()
)
anything = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=8))
def test_anything_comes_back_bit_for_bit(rows):
    sides = align([from_raw(list(side), len(rows)) for side in zip(*rows, strict=True)])
    for before, after in zip(sides, decode(encode(*sides, ["x", 1]))[:2], strict=True):
        same(after, before)


def saved(tmp_path, n=5):
    (tmp_path / "parts").mkdir()
    (tmp_path / "work").mkdir()
    side = from_raw(np.arange(float(n)), n)
    PartWriter(tmp_path, "work", 3, 1, "me").save(Task(10, 10 + n), (side, side))
    (part,) = list_parts(tmp_path)
    return part


def test_the_name_of_a_part_says_which_cells_it_holds(tmp_path):
    part = saved(tmp_path)
    assert (part.index, part.stage, part.size, part.first, part.last) == (3, 1, 1, 10, 15)
    assert part.draws == len(part.read("me")[0]) == 5
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "gone", "grown"])
def test_a_part_that_was_harmed_is_noticed(harm, tmp_path):
    part = saved(tmp_path)
    data = bytearray(part.path.read_bytes())
    if harm == "flip":
        data[len(data) // 2] ^= 1
    data = {"cut": data[:-1], "empty": b"", "grown": data + b"\0"}.get(harm, data)
    part.path.unlink() if harm == "gone" else part.path.write_bytes(data)
    with pytest.raises(Damaged):
        part.read("me")


def test_a_part_that_is_something_else_is_noticed(tmp_path):
    part = saved(tmp_path)
    part.path.write_bytes(b"something else")
    renamed = Part(part.path, 0, 0, 1, 0, 1, store_files._digest(b"something else"))
    with pytest.raises(Damaged, match="no part of a store"):
        renamed.read("me")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ENOSPC", "no room left.*made before are safe.*make room and start again"),
        ("EROFS", "cannot be written.*give a folder that can be"),
        ("ENOENT", "taken over by another process"),
    ],
)
def test_what_goes_wrong_with_a_disk_is_a_sentence_and_leaves_nothing(
    code, words, tmp_path, monkeypatch
):
    import errno

    part = saved(tmp_path)

    def fails(handle):
        raise OSError(getattr(errno, code), "as the system says it")

    monkeypatch.setattr(store_files.os, "fsync", fails)
    side = from_raw([1.0], 1)
    with pytest.raises(StoreError, match=words):
        PartWriter(tmp_path, "work", 3, 1, "me").save(Task(99, 100), (side, side))
    assert list_parts(tmp_path) == [part]
    assert not list((tmp_path / "work").iterdir())


def test_a_run_that_lost_its_store_saves_nothing_more(tmp_path):
    saved(tmp_path)
    (tmp_path / "work").rmdir()
    side = from_raw([1.0], 1)
    with pytest.raises(StoreError, match="taken over"):
        PartWriter(tmp_path, "work", 3, 1, "me").save(Task(99, 100), (side, side))
    assert len(list_parts(tmp_path)) == 1


def test_without_pyarrow_the_remedy_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpassay\[arrow\]'"):
        store_files.arrow()
