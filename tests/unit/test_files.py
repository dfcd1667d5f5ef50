import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput, MissingExtra, NotEnoughDraws, UnreadableFile

VALUES = np.array([0.5, 1.5, -2.0, np.nan])


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        if name.endswith(".npy"):
            np.save(path, content, allow_pickle=True)
        elif name.endswith(".parquet"):
            import pyarrow
            import pyarrow.parquet

            table = pyarrow.table(content)
            pyarrow.parquet.write_table(table, path)
        else:
            path.write_text(content)
        return path

    return to


def numbers(path):
    return np.sort(dp.from_samples(path, path, rng=1).p.numbers[:, 0])


def test_the_three_formats_read_the_same(write):
    files = [
        write("a.npy", VALUES),
        write("a.csv", "x\n0.5\n1.5\n-2.0\nnan\n"),
        write("b.csv", "0.5\n1.5\n-2.0\nnan\n"),
        write("a.parquet", {"x": VALUES}),
    ]
    for path in files:
        samples = dp.from_samples(path, str(path))
        assert sorted(samples.p.show(k) for k in range(4)) == ["-2", "0.5", "1.5", "nan"]


def test_several_columns_are_vectors(write):
    csv = write("a.csv", "x;y\n1.5;2\n3;4\n")
    parquet = write("a.parquet", {"x": [1.5, 3.0], "y": [2.0, 4.0]})
    for path in (csv, parquet):
        assert sorted(map(tuple, dp.from_samples(path, path).p.numbers)) == [(1.5, 2.0), (3.0, 4.0)]


def test_whole_numbers_are_integers(write):
    path = write("a.csv", "1\n0\n1\n")
    assert dp.from_samples(path, path).p.numbers.dtype.kind == "i"


def test_a_column_of_words_is_strings(write):
    path = write("a.csv", "yes\nno\nyes\n")
    assert sorted(dp.from_samples(path, path).p.show(k) for k in range(3)) == [
        "'no'",
        "'yes'",
        "'yes'",
    ]
    parquet = write("a.parquet", {"x": ["yes", None]})
    assert {dp.from_samples(parquet, parquet).p.show(k) for k in range(2)} == {"'yes'", "None"}


def test_rows_are_shuffled_by_the_seed():
    values = np.arange(1000.0)
    one, two, three = (
        dp.from_samples(values, values + 0.5, rng=r).p.numbers[:, 0] for r in (1, 1, 2)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)
    assert np.array_equal(np.sort(one), values)


def test_sides_may_differ_in_length():
    assert dp.from_samples(np.arange(3.0), np.arange(5.0)).remaining == (3, 5)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.npy", np.array([object()], dtype=object), "pickled Python objects"),
        ("a.csv", "", "is empty"),
        ("a.csv", "x\n", "holds no outputs"),
        ("a.csv", "1.5\nhello\n2\n", "line 2: 'hello' is not a number"),
        ("a.csv", "1,2\n3\n", "rows of 1 to 2 columns"),
        ("a.xlsx", "zip", "read from .npy, .csv or .parquet"),
        ("b.npy.txt.npy", np.zeros((2, 2, 2)), "shape"),
        ("a.npy", np.zeros(0), "holds no outputs"),
    ],
)
def test_bad_files_are_refused_in_words(write, name, content, words):
    path = write(name, content)
    with pytest.raises(UnreadableFile, match=words):
        dp.from_samples(path, path)


def test_files_that_are_not_what_they_say(tmp_path):
    for name in ("a.npy", "a.parquet"):
        path = tmp_path / name
        path.write_bytes(b"\x80\x04 not what it says")
        with pytest.raises(UnreadableFile):
            dp.from_samples(path, path)
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xff\xfe\x00\x01binary")
    with pytest.raises(UnreadableFile, match="not a text file"):
        dp.from_samples(path, path)
    with pytest.raises(UnreadableFile, match="there is no file"):
        dp.from_samples(tmp_path / "none.csv", path)
    with pytest.raises(UnreadableFile, match="directory"):
        dp.from_samples(tmp_path, path)


def test_a_missing_extra_is_named(write, monkeypatch):
    path = write("a.parquet", {"x": [1.0]})
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpassay\[arrow\]'"):
        dp.from_samples(path, path)


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        (np.zeros((3, 2)), np.zeros((3, 3)), "do not go together"),
        (np.zeros((3, 2, 2)), np.zeros(3), "cannot be read"),
        (3.0, np.zeros(3), "cannot be read"),
    ],
)
def test_arrays_that_are_no_outputs(p, q, words):
    with pytest.raises(InvalidInput, match=words):
        dp.from_samples(p, q)


def test_empty_arrays_are_not_enough():
    with pytest.raises(NotEnoughDraws, match="q holds no outputs"):
        dp.from_samples([1.0], [])
