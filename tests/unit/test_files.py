import bz2
import datetime
import gzip
import hashlib
import math
import os
import sys
import time

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

import dpassay as dp
from dpassay.errors import (
    DependenceWarning,
    DependentDraws,
    InvalidInput,
    MissingExtra,
    NotEnoughDraws,
    UnreadableFile,
)
from dpassay.privacy.about import Origin
from dpassay.sampling.files import read_pair, read_table

VALUES = np.array([0.5, 1.5, -2.0, np.nan])
RNG = np.random.default_rng(7)


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif name.endswith(".npy"):
            np.save(path, content, allow_pickle=True)
        elif name.endswith(".parquet"):
            pyarrow.parquet.write_table(pyarrow.table(content), path)
        elif name.endswith((".feather", ".arrow")):
            pyarrow.feather.write_feather(pyarrow.table(content), path)
        else:
            path.write_bytes(content.encode())
        return path

    return to


def listed(table):
    """Columns as lists, in which NaN equals itself."""
    return [
        ["nan" if isinstance(v, float) and math.isnan(v) else v for v in column.tolist()]
        for column in table.columns
    ]


def same(one, two):
    assert one.names == two.names
    assert [c.dtype for c in one.columns] == [c.dtype for c in two.columns]
    assert listed(one) == listed(two)
    assert [[type(v) for v in c.tolist()] for c in one.columns] == [
        [type(v) for v in c.tolist()] for c in two.columns
    ]
    assert one.origin.missing == two.origin.missing


def csv_of(columns):
    """Columns as pandas writes them, a null as nothing."""
    rows = [",".join(columns)]
    rows += [
        ",".join("" if v is None else str(v) for v in row)
        for row in zip(*columns.values(), strict=True)
    ]
    return "\n".join(rows) + "\n"


@pytest.fixture(params=["csv", "parquet"])
def twin(request, write):
    """Writes columns in either format."""

    def to(name, columns):
        if request.param == "parquet":
            return write(f"{name}.parquet", columns)
        return write(f"{name}.csv", csv_of(columns))

    return to


# One file


def test_the_three_formats_read_the_same(write):
    files = [
        write("a.npy", VALUES),
        write("a.csv", "x\n0.5\n1.5\n-2.0\nnan\n"),
        write("b.csv", "0.5\n1.5\n-2.0\nnan\n"),
        write("a.parquet", {"x": VALUES}),
        write("a.feather", {"x": VALUES}),
        write("a.arrow", {"x": VALUES}),
    ]
    for path in files:
        table = read_table(str(path))
        assert listed(table) == [[0.5, 1.5, -2.0, "nan"]]
        assert table.columns[0].dtype == np.float64


@pytest.mark.parametrize(
    "columns",
    [
        {"x": [1, 2, 3], "y": [0.5, 1.0, float("inf")]},
        {"x": [1.0, 2.0, -3.0]},
        {"x": [True, False, True], "word": ["yes", "no", "yes"]},
        {"x": [1, None, 3], "y": [None, 0.5, 1.0], "z": [True, None, False]},
        {"x": ["a", None, "b"], "y": [None, None, None]},
        {"x": [2**53 + 1, -(2**62), 0]},
        {"x": [datetime.date(2024, 1, 5), datetime.date(1999, 12, 31)]},
        {"x": [datetime.date(2024, 1, 5), None]},
        {"x": [datetime.datetime(2024, 1, 5, 10, 0, 0, 250000), datetime.datetime(2024, 1, 6)]},
        {"x": [datetime.datetime(2024, 1, 5, 10, tzinfo=datetime.UTC), None]},
        {"x": [datetime.time(10, 30), datetime.time(11, 15, 0, 500), datetime.time(10, 30)]},
        {"x": ["1.5", "error", "2"], "y": ["nan", "no", ""]},
        {"x": ["true", "error", "False"]},
    ],
)
def test_the_same_content_is_the_same_table(write, columns):
    text = read_table(write("a.csv", csv_of(columns)))
    same(text, read_table(write("a.parquet", columns)))
    same(text, read_table(write("a.tsv", csv_of(columns).replace(",", "\t"))))


def test_decimals_durations_and_categories_are_what_their_text_is(write):
    columns = {
        "a": pyarrow.array([1, None], pyarrow.decimal128(30, 0)),
        "b": pyarrow.array([10**25, 1], pyarrow.decimal128(30, 0)),
        "c": pyarrow.array(["1.25", "2"], pyarrow.string()).cast(pyarrow.decimal128(10, 2)),
        "d": pyarrow.array([1500, 250], pyarrow.duration("ms")),
        "e": pyarrow.array(["u", "v"]).dictionary_encode(),
        "f": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
    }
    text = (
        "a,b,c,d,e,f\n1,10000000000000000000000000,1.25,1.5,u,18446744073709551615\n,1,2,.25,v,0\n"
    )
    same(read_table(write("a.parquet", columns)), read_table(write("a.csv", text)))


def test_several_columns_are_vectors(write):
    csv = write("a.csv", "x;y\n1.5;2\n3;4\n")
    parquet = write("a.parquet", {"x": [1.5, 3.0], "y": [2.0, 4.0]})
    for path in (csv, parquet, write("a.npy", np.array([[1.5, 2.0], [3.0, 4.0]]))):
        assert np.column_stack(read_table(path).columns).tolist() == [[1.5, 2.0], [3.0, 4.0]]


def test_whole_numbers_are_integers_however_written(write):
    for text in ("1\n0\n1\n", "1.0\n0.0\n1.0\n", "+1\n-0\n1e0\n"):
        assert read_table(write("a.csv", text)).columns[0].dtype == np.int64
    assert read_table(write("a.npy", np.array([1.0, 0.0]))).columns[0].dtype == np.int64
    assert read_table(write("a.npy", np.array([1.0, np.inf]))).columns[0].dtype == np.float64
    assert read_table(write("a.parquet", {"x": [1.0, 0.0]})).columns[0].dtype == np.int64


def test_large_integers_stay_exact(write):
    column = read_table(write("a.csv", f"{2**53 + 1}\n{-(2**63)}\n")).columns[0]
    assert column.dtype == np.int64
    assert column.tolist() == [2**53 + 1, -(2**63)]
    column = read_table(write("a.csv", f"{2**70}\n5\n\n")).columns[0]
    assert column.tolist() == [2**70, 5, None]
    assert [type(v) for v in column.tolist()] == [int, int, type(None)]
    assert read_table(write("a.csv", "9" * 5000 + "\n5\n")).columns[0].tolist() == [math.inf, 5.0]


def test_missing_cells_are_outcomes_and_are_counted(write):
    table = read_table(write("a.csv", "x,y\n1,a\n,NA\nNA,N/A\nnull,None\nNULL,\nNone,b\n"))
    assert listed(table) == [[1, None, None, None, None, None], ["a", None, None, None, None, "b"]]
    assert table.origin.missing == 9
    assert table.origin.rows == 6
    parquet = read_table(write("a.parquet", {"x": [1, None, None], "y": ["a", "NA", None]}))
    assert listed(parquet) == [[1, None, None], ["a", None, None]]
    assert parquet.origin.missing == 4
    dates = read_table(write("a.npy", np.array(["2024-01-05", "NaT"], dtype="M8[s]")))
    assert listed(dates) == [[datetime.datetime(2024, 1, 5), None]]


def test_nan_and_the_infinities_are_floats(write):
    table = read_table(write("a.csv", "nan\nNaN\ninf\n-inf\nInfinity\n-Infinity\n0.5\n\n"))
    assert listed(table) == [["nan", "nan", math.inf, -math.inf, math.inf, -math.inf, 0.5, None]]


def test_blank_lines_in_one_column_are_missing(write):
    for text in ("x\n1\n\n2\n", "x\r\n1\r\n\r\n2\r\n", "x\n1\n\n2", 'x\n1\n""\n2'):
        assert listed(read_table(write("a.csv", text))) == [[1, None, 2]]
    assert listed(read_table(write("a.csv", "x\n1\n\n\n"))) == [[1, None, None]]


def test_a_blank_line_among_several_columns_is_refused_but_at_the_end(write):
    assert listed(read_table(write("a.csv", "x,y\n1,2\n,\n\n\r\n"))) == [[1, None], [2, None]]
    assert listed(read_table(write("a.csv", "1,2\n\n"))) == [[1], [2]]
    with pytest.raises(UnreadableFile, match="line 3 is blank, the first row 2 cells"):
        read_table(write("a.csv", "x,y\n1,2\n\n3,4\n"))


def test_text_is_read_as_spreadsheets_write_it(write):
    plain = read_table(write("a.csv", "x,y\n1,a b\n2,c\n"))
    for name, content in [
        ("b.csv", "\ufeffx,y\r\n1,a b\r\n2,c\r\n"),
        ("b.csv", '"x","y"\n"1","a b"\n"2","c"'),
        ("b.csv", "x;y\n1;a b\n2;c\n"),
        ("b.txt", "x\ty\n1\ta b\n2\tc\n"),
        ("b.tsv", "x\ty\n1\ta b\n2\tc\n"),
        ("b.csv", "x, y\n1 , a b \n2, c\n"),
        ("b.csv", "# x,y\n1,a b\n2,c\n"),
        ("b.csv.gz", gzip.compress(b"x,y\n1,a b\n2,c\n")),
        ("b.csv.bz2", bz2.compress(b"x,y\n1,a b\n2,c\n")),
    ]:
        same(read_table(write(name, content)), plain)


def test_quotes_hold_delimiters_and_line_breaks(write):
    table = read_table(write("a.csv", 'x,y\n1,"a;b,\nc"\n2,"say ""a"""\n'))
    assert listed(table) == [[1, 2], ["a;b,\nc", 'say "a"']]
    assert (
        listed(read_table(write("a.tsv", "said\nno, thanks\nyes; well\n1\n")))[0][0] == "no, thanks"
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x\n1\n2\n", ("x",)),
        ("1\n2\n", None),
        ("nan\n2\n", None),
        ("true\nfalse\ntrue\n", None),
        ("2024-01-05\n2024-01-06\n", None),
        ("yes\nno\nyes\n", None),
        ("answer\nyes\nno\nyes\n", ("answer",)),
        ("anna\nbert\ncarl\n", None),
        ("error\n1.5\nerror\n2\n", None),
        ("x\n1.5\nerror\n2\n", ("x",)),
        ("x,1\n2,3\n", None),
        ("x,word\n1,word\n", ("x", "word")),
        ("who,where\nanna,rome\nbert,oslo\n", ("who", "where")),
        ("anna,rome\nbert,oslo\nanna,rome\n", None),
        (",x\n0,0.5\n1,0.25\n", ("1", "x")),
        ("x,\n1,2\n", None),
        ("x,y,\n1,2,\n", ("x", "y")),
        ("NA\n1\n", None),
        ("x,y\n,\n", ("x", "y")),
    ],
)
def test_the_first_row_is_a_header_by_a_rule(write, text, names):
    table = read_table(write("a.csv", text))
    assert table.names == names
    assert table.origin.rows == text.count("\n") - (names is not None)


def test_one_row_alone_is_read(write):
    for text in ("5", "5\n", "\ufeff5\r\n"):
        assert listed(read_table(write("a.csv", text))) == [[5]]


def test_words_and_numbers_share_a_column(write):
    table = read_table(write("a.csv", "1.5\nhello\n2\n\ntrue\n"))
    assert listed(table) == [[1.5, "hello", 2.0, None, True]]
    assert [type(v) for v in table.columns[0]] == [float, str, float, type(None), bool]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,5", "2", "-0,25", "nan", ""], [1.5, 2.0, -0.25, "nan", None]),
        (["0,125", "0,250"], [0.125, 0.25]),
        (["1,5e3", "2,0"], [1500, 2]),
        (["1,234,567.8", "1,234", "5"], [1234567.8, 1234.0, 5.0]),
        (["1,234.5", "999.25"], [1234.5, 999.25]),
        (["1.234,5", "999,25", "1.234"], [1234.5, 999.25, 1234.0]),
        (["1.234.567", "5"], [1234567, 5]),
        (["10.0.100.200", "192.168.100.100"], ["10.0.100.200", "192.168.100.100"]),
    ],
)
def test_marks_in_numbers_are_understood_where_they_can_mean_one_thing(write, cells, values):
    rows = "".join(f"{cell};1\n" for cell in cells)
    assert listed(read_table(write("a.csv", "x;y\n" + rows)))[0] == values
    strings = [cell or None for cell in cells]
    assert listed(read_table(write("a.parquet", {"x": strings})))[0] == values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x;y\n1,234;1\n2,345;2\n", r"column 'x': '1,234' can be read as a decimal comma, as a th"),
        ("x;y\n1,5;1\n2.5;2\n", "'1,5' can be read"),
        ("x;y\n1,5;1\nerror;2\n", "'1,5' can be read"),
        ('x,y\n"1,5",1\n"2,5",2\n', "'1,5' can be read"),
        ("1,234;1\n2,345;2\n", "column 1: '1,234' can be read"),
        ("x;y\n1.234,5;1\n0.5;2\n", r"'1.234,5' can be read"),
        ("x\n1 234\n5\n", "'1 234' is numbers with spaces or marks between them; write"),
        ("1.0e+00 2.0e+00\n3.0e+00 4.0e+00\n", r"np.savetxt\(…, delimiter=','\)"),
        ("x\n1'234\n5\n", "1'234. is numbers with spaces or marks"),
    ],
)
def test_marks_in_numbers_are_refused_where_they_can_mean_two(write, text, words):
    with pytest.raises(UnreadableFile, match=words):
        read_table(write("a.csv", text))


def test_arrays_in_npy_may_have_names_words_and_dates(write):
    fields = np.array([(1, 0.5), (2, 1.5)], dtype=[("n", "u1"), ("x", ">f4")])
    table = read_table(write("a.npy", fields))
    assert table.names == ("n", "x")
    assert [c.dtype for c in table.columns] == [np.int64, np.float32]
    assert listed(read_table(write("a.npy", np.array(["yes", "", "1"])))) == [["yes", None, 1]]
    assert listed(read_table(write("a.npy", np.array([b"a", b"b"])))) == [[b"a", b"b"]]
    days = np.array(["2024-01-05", "2024-01-06"], dtype="M8[D]")
    same(read_table(write("a.npy", days)), read_table(write("a.csv", "2024-01-05\n2024-01-06\n")))
    half = read_table(write("a.npy", np.array([0.5, 60000.0], dtype=np.float16))).columns[0]
    assert half.dtype == np.float32
    assert half.tolist() == [0.5, 60000.0]
    spans = np.array([1500, 2000], dtype="m8[ms]")
    assert listed(read_table(write("a.npy", spans))) == [[1.5, 2.0]]
    with pytest.raises(UnreadableFile, match="complex one as two columns"):
        read_table(write("a.npy", np.array([1j])))


def test_nested_columns_are_lists_and_dictionaries(write):
    path = write("a.parquet", {"x": [[1, 2], [], None], "y": [{"a": 1}, {"a": 2}, {"a": None}]})
    assert listed(read_table(path)) == [[[1, 2], [], None], [{"a": 1}, {"a": 2}, {"a": None}]]


def test_the_origin_says_what_was_read(write):
    path = write("a.csv", "x,y\n1,2\n3,\n")
    os.utime(path, (0, 86400.0))
    origin = read_table(path).origin
    assert origin == Origin(
        file="a.csv",
        bytes=11,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        rows=2,
        columns=("x", "y"),
        missing=1,
        modified="1970-01-02T00:00:00+00:00",
    )
    assert Origin.from_json(origin.to_json()) == origin
    assert isinstance(Origin.from_json(origin.to_json()).columns, tuple)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.npy", np.array([object()], dtype=object), "pickled Python objects"),
        ("a.csv", "", "is empty"),
        ("a.csv", "\n\r\n", "is empty"),
        ("a.csv", "\ufeff", "is empty"),
        ("a.csv", "x", "holds no outputs: a header alone"),
        ("a.csv", "x\n", "holds no outputs: a header alone"),
        ("a.csv", "x,y\n", "holds no outputs: a header alone"),
        ("a.parquet", {"x": []}, "holds no outputs"),
        ("a.parquet", {}, "holds no outputs"),
        ("a.csv", "1,2\n3\n", "line 2 has 1 cell, the first row 2 cells"),
        ("a.csv", "x\n1,5\n", "line 2 has 2 cells, the first row 1 cell"),
        ("a.csv", 'x,y\n1,"a\nb"\n1,2,3\n', "line 4 has 3 cells"),
        ("a.csv", "x,x\n1,2\n", "more than one column 'x'"),
        ("a.csv", b"x\n1\n\xff\n", "not a text file; save it as text in UTF-8"),
        ("a.csv", b"x\n" + b"1\n" * 5000 + b"\xff\n", "not a text file"),
        ("a.csv", "x\n1\n".encode("utf-16"), "not a text file"),
        ("a.csv.gz", "x\n1\n", "not compressed as its name says"),
        ("a.xlsx", "zip", "read from .npy, .csv or .parquet"),
        ("a.parquet.gz", "zip", "read from .npy, .csv or .parquet"),
        ("a", "1\n", "ends in ''"),
        ("a.npz", b"PK", "several arrays"),
        ("a.npy", b"PK\x03\x04", "several arrays"),
        ("b.npy.txt.npy", np.zeros((2, 2, 2)), "shape"),
        ("a.npy", np.array(1.0), "shape"),
        ("a.npy", np.zeros(0), "holds no outputs"),
        ("a.npy", np.zeros((3, 0)), "holds no outputs"),
        ("a.npy", b"\x93NUMPY\x01\x00broken", "not a .npy file"),
        ("a.arrow", b"ARROW1\x00\x00broken", "not a .arrow file"),
        ("a.feather", b"broken", "not a .feather file"),
        ("a.csv", "x\n" + '"' + "a" * 200_000 + "\n", "line"),
    ],
)
def test_bad_files_are_refused_in_words(write, name, content, words):
    with pytest.raises(UnreadableFile, match=words):
        read_table(write(name, content))


def test_duplicate_names_in_parquet_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    table = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["x", "x"])
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(UnreadableFile, match="more than one column 'x'"):
        read_table(path)


def test_files_that_are_not_what_they_say(tmp_path):
    for name in ("a.npy", "a.parquet"):
        path = tmp_path / name
        path.write_bytes(b"\x80\x04 not what it says")
        with pytest.raises(UnreadableFile, match=f"is not a {path.suffix} file"):
            read_table(path)
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xff\xfe\x00\x01binary")
    with pytest.raises(UnreadableFile, match="not a text file"):
        read_table(path)
    with pytest.raises(UnreadableFile, match="there is no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(UnreadableFile, match="directory"):
        read_table(tmp_path)


def test_a_file_without_permission_is_refused(write, monkeypatch):
    path = write("a.csv", "1\n2\n")

    def read_bytes(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "read_bytes", read_bytes)
    with pytest.raises(UnreadableFile, match="cannot be read: Permission denied"):
        read_table(path)


def test_a_missing_extra_is_named(write, monkeypatch):
    for module, name, content in [
        ("pyarrow.parquet", "a.parquet", {"x": [1.0]}),
        ("pyarrow.ipc", "a.arrow", {"x": [1.0]}),
        ("pyarrow.csv", "a.csv", "1\n2\n"),
    ]:
        path = write(name, content)
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtra, match=rf"{path.suffix} files .*'dpassay\[arrow\]'"):
            read_table(path)


def test_numbers_in_npy_need_no_extra(write, monkeypatch):
    path = write("a.npy", VALUES)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert len(read_table(path).columns[0]) == 4


def test_a_million_rows_are_read_without_a_loop(tmp_path):
    path = tmp_path / "a.csv"
    row = "0.123456789,12,-3.5\n-1.5,7,2.25\n"
    path.write_text("x,y,z\n" + row * 500_000)
    start = time.process_time()
    table = read_table(path)
    assert time.process_time() - start < 5  # about 0.5 s; a loop takes longer
    assert [c.dtype.kind for c in table.columns] == ["f", "i", "f"]
    assert table.origin.rows == 10**6


# Two files


def test_columns_are_matched_by_name(twin):
    p = twin("p", {"x": [1, 2], "y": [0.5, 1.5]})
    q = twin("q", {"y": [2.5, 3.5], "x": [3, 4]})
    a, b = read_pair(p, q)
    assert a.names == b.names == b.origin.columns == ("x", "y")
    assert listed(b) == [[3, 4], [2.5, 3.5]]


def test_columns_in_one_file_only_are_refused_with_a_remedy(twin):
    p = twin("p", {"x": [1, 2], "y": [3, 4]})
    q = twin("q", {"x": [1, 2], "y": [3, 4], "z": [5, 6]})
    with pytest.raises(UnreadableFile) as refused:
        read_pair(p, q)
    said = str(refused.value)
    assert f"{q.name} has the column 'z', which {p.name} does not have" in said
    assert p.name + " has" not in said
    assert "drop=['z'] (--drop z)" in said
    assert "columns=['x', 'y'] (--columns x,y)" in said
    for options in ({"drop": ["z"]}, {"columns": ["x", "y"]}):
        assert [t.names for t in read_pair(p, q, **options)] == [("x", "y")] * 2
    r = twin("r", {"x": [1, 2], "w": [3, 4]})
    with pytest.raises(UnreadableFile, match=r"'y', which r.*'w', which p.*drop=\['y', 'w'\]"):
        read_pair(p, r)
    with pytest.raises(UnreadableFile, match="give the same outputs the same name"):
        read_pair(twin("p", {"a": [1, 2]}), twin("q", {"b": [1, 3]}))


def test_columns_select_and_order(twin):
    p = twin("p", {"x": [1, 2], "y": [3, 4], "z": [5, None]})
    q = twin("q", {"z": [5, 6], "y": [7, 8], "x": [9, 9]})
    a, b = read_pair(p, q, columns=["y", "x"])
    assert (listed(a), listed(b)) == ([[3, 4], [1, 2]], [[7, 8], [9, 9]])
    assert a.origin.columns == ("y", "x")
    assert a.origin.missing == 0
    assert read_pair(p, q)[0].origin.missing == 1


def test_without_names_on_both_sides_columns_are_positions(write):
    p = write("p.csv", "x,y\n1,2\n3,4\n")
    q = write("q.npy", np.array([[5, 6], [7, 8]]))
    a, b = read_pair(p, q)
    assert a.names is b.names is None
    assert a.origin.columns == b.origin.columns == ("1", "2")
    assert listed(b) == [[5, 7], [6, 8]]
    for options in ({"columns": ["2"]}, {"drop": ["1"]}, {"columns": ["y"]}, {"drop": ["x"]}):
        a, b = read_pair(p, q, **options)
        assert (listed(a), listed(b)) == ([[2, 4]], [[6, 8]])
        assert a.origin.columns == ("2",)
    wide = write("r.csv", "1,2,3\n4,5,6\n")
    with pytest.raises(UnreadableFile, match="q.npy has 2 columns and r.csv has 3"):
        read_pair(q, wide)
    assert listed(read_pair(q, wide, drop=["3"])[1]) == [[1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"columns": ["z"]},
            "columns names 'z', which p.csv does not have; it has the columns 'x', 'y'",
        ),
        ({"drop": ["z"]}, "drop names 'z', which neither file has; p.csv has the columns 'x', 'y'"),
        ({"columns": ["x"], "drop": ["y"]}, "not both"),
        ({"columns": ["x", "x"]}, "more than once"),
        ({"columns": []}, "at least one column"),
        ({"columns": "x,y"}, r"columns must be a list of columns, got 'x,y'; write .*\['x', 'y'\]"),
        ({"drop": ["x", "y"]}, "drop leaves no column of p.csv"),
    ],
)
def test_wrong_choices_of_columns_are_refused(write, options, words):
    p, q = write("p.csv", "x,y\n1,2\n3,4\n"), write("q.csv", "x,y\n5,6\n7,8\n")
    with pytest.raises(InvalidInput, match=words):
        read_pair(p, q, **options)


def test_a_first_row_that_is_the_other_header_is_a_header(write):
    p, q = write("p.csv", "answer\nyes\nno\nyes\n"), write("q.csv", "answer\nyes\nno\n")
    assert read_table(q).names is None
    for one, two in ((p, q), (q, p)):
        assert [t.names for t in read_pair(one, two)] == [("answer",)] * 2
    assert listed(read_pair(p, q)[1]) == [["yes", "no"]]


def test_the_same_content_twice_is_refused(write, tmp_path):
    p, q = write("p.csv", "1\n2\n"), write("q.csv", "1\n2\n")
    link = tmp_path / "link.csv"
    link.symlink_to(p)
    for other in (p, tmp_path / "." / "p.csv", link):
        with pytest.raises(UnreadableFile, match="are the same file"):
            read_pair(p, other)
    with pytest.raises(UnreadableFile, match="have the same content, byte for byte"):
        read_pair(p, q)


def test_files_of_one_name_are_told_apart_by_their_folders(write, tmp_path):
    (tmp_path / "on").mkdir()
    (tmp_path / "off").mkdir()
    p, q = write("on/a.csv", "x\n1\n"), write("off/a.csv", "y\n2\n")
    with pytest.raises(UnreadableFile, match=r"on.a.csv' has .*off.a.csv' does not"):
        read_pair(p, q)


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        ([1.5, 2.5], ["a", "b"], "column 'x' holds numbers in p.* and words in q"),
        ([datetime.date(2024, 1, 5)] * 2, [20240105, 20240106], "holds dates in p.* and numbers"),
        ([datetime.date(2024, 1, 5)] * 2, ["5 Jan", "6 Jan"], "holds dates in p.* and words"),
        ([True, False], ["yes", "no"], "holds booleans in p.* and words"),
        ([True, False], [0.5, 1.0], "holds booleans in p.* and numbers"),
        ([1, 2, 3], ["1", "error", "fail"], "holds numbers in p.* and words and numbers in q"),
        ([None, None], [1, 2], "holds nothing in p.* and numbers"),
    ],
)
def test_columns_of_different_kinds_are_refused(twin, p, q, words):
    n = max(len(p), len(q))
    first = twin("p", {"x": p, "y": [0] * n})
    second = twin("q", {"x": q, "y": [1] * n})
    for one, two in ((first, second), (second, first)):
        with pytest.raises(UnreadableFile, match=words if one is first else "column 'x' holds"):
            read_pair(one, two)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (["1", "2", "3"], ["1", "error", "2"]),  # a rare kind is an outcome
        (["1", "error", "error"], ["1", "2", "error"]),  # both have both
        (["a", "b", "c"], ["1", "a", "b"]),
        (["true", "false", "true"], ["true", "error", "false"]),
        ([None, None, "1"], ["1", "2", "3"]),
        ([None, None, None], ["1", None, "3"]),
    ],
)
def test_rare_kinds_are_outcomes(twin, p, q):
    a, b = read_pair(twin("p", {"x": p, "y": [0] * 3}), twin("q", {"x": q, "y": [1] * 3}))
    assert [c.dtype for c in a.columns] == [c.dtype for c in b.columns]


@pytest.mark.parametrize(
    ("p", "q", "dtype"),
    [
        ([1, 2], [0.5, 1.0], np.float64),
        ([1.0, 2.0], [3, 4], np.int64),
        ([True, False], [0, 1], np.int64),
        ([1, None], [0.5, 1.0], object),
        ([1, 2], [0.5, None], object),
        ([1, 2], [3, None], object),
        ([2**70, 1], [3, 4], object),
        ([True, None], [True, False], object),
        (["1", "error", "2"], ["1.5", "2.5", "3"], object),
        (
            [datetime.date(2024, 1, 5)] * 2,
            [datetime.datetime(2024, 1, 5, 10), datetime.datetime(2024, 1, 5)],
            "M8[us]",
        ),
    ],
)
def test_both_files_get_the_same_types(write, p, q, dtype):
    a, b = read_pair(write("p.csv", csv_of({"x": p})), write("q.csv", csv_of({"x": q})))
    assert a.columns[0].dtype == b.columns[0].dtype == dtype
    if dtype is object:
        kinds = [{type(v) for v in t.columns[0]} & {int, float} for t in (a, b)]
        assert kinds[0] == kinds[1]
    elif dtype != "M8[us]":
        assert listed(a) == [p]
        assert listed(b) == [q]


def test_fewer_digits_are_compared_in_fewer_digits(write):
    p = write("p.parquet", {"x": pyarrow.array([0.1, 0.7], pyarrow.float32())})
    q = write("q.csv", "x\n0.1\n0.2\n")
    for a, b in (read_pair(p, q), read_pair(q, p)):
        assert a.columns[0].dtype == b.columns[0].dtype == np.float32
        assert a.columns[0][0] == b.columns[0][0]


N = 40
NOISE = RNG.normal(size=N).tolist()
MORE = RNG.normal(size=N).tolist()
SHUFFLED = (100 + RNG.permutation(N)).tolist()
START = datetime.datetime(2024, 1, 5)
HOURS = [START + datetime.timedelta(hours=int(k) + 0.5) for k in range(N)]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (list(range(N)), "rises from row to row"),
        (list(range(N, 0, -1)), "falls from row to row"),
        ([k + 0.25 for k in range(N)], "rises from row to row"),
        (SHUFFLED, "whole numbers without repetition and nearly without gaps"),
        (HOURS, "rises from row to row"),
        ([HOURS[k // 10] for k in range(N)], "dates in order"),
        ([HOURS[k - 100] for k in SHUFFLED], "dates that are all different"),
        ([f"run{k}" for k in SHUFFLED], "words that are all different"),
        ([2**70 + k for k in range(N)], "rises from row to row"),
        ([k if k != 3 else None for k in range(N)], "rises from row to row"),
        ([str(k) if k != 3 else "total" for k in range(N)], "rises from row to row"),
        ([str(k) if k != 120 else "total" for k in SHUFFLED], "nearly without gaps"),
    ],
)
def test_columns_that_look_like_an_index_are_refused(write, column, why):
    if column[0] == 2**70:  # beyond what Parquet's integers hold
        column = [str(v) for v in column]
    harmless = sorted(column, key=str)[:1] * N
    for suffix in ("csv", "parquet"):
        for k, (one, two) in enumerate([(column, harmless), (harmless, column)]):
            p, q = (
                write(
                    f"{name}.{suffix}",
                    csv_of({"id": ids, "x": values})
                    if suffix == "csv"
                    else {"id": ids, "x": values},
                )
                for name, ids, values in (("p", one, NOISE), ("q", two, MORE))
            )
            with pytest.raises(UnreadableFile) as refused:
                read_pair(p, q)
            said = str(refused.value)
            assert said.startswith(f"column 'id' of {'pq'[k]}.{suffix} ")
            assert why in said
            assert "would look like a violation" in said
            assert "drop=['id'] (--drop id)" in said
            assert "columns=['x'] (--columns x)" in said
            assert read_pair(p, q, drop=["id"])[0].names == ("x",)
            assert read_pair(p, q, columns=["id", "x"])[0].names == ("id", "x")


@pytest.mark.parametrize(
    "column",
    [
        [k // 2 for k in range(N)],
        [1] * N,
        [START] * N,
        NOISE,
        [k * 1000 for k in SHUFFLED],
        [f"run{k % 5}" for k in range(N)],
        [k % 2 == 0 for k in range(N)],
    ],
)
def test_columns_that_look_like_outputs_are_kept(twin, column):
    p, q = twin("p", {"x": column, "y": NOISE}), twin("q", {"x": column, "y": MORE})
    assert read_pair(p, q)[0].names == ("x", "y")


def test_one_column_may_be_sorted_and_few_rows_in_any_order(twin):
    read_pair(twin("p", {"x": sorted(NOISE)}), twin("q", {"x": sorted(MORE)}))
    read_pair(
        twin("p", {"x": list(range(19)), "y": NOISE[:19]}),
        twin("q", {"x": list(range(19)), "y": MORE[:19]}),
    )


def test_identifiers_in_bytes_are_refused(write):
    keys = [k.to_bytes(16, "big") for k in SHUFFLED]
    p = write("p.parquet", {"id": keys, "x": NOISE})
    q = write("q.parquet", {"id": keys[:1] * N, "x": MORE})
    with pytest.raises(UnreadableFile, match="holds bytes that are all different"):
        read_pair(p, q)


def test_an_index_written_by_pandas_is_refused(write):
    def indexed(values):
        return ",x\n" + "".join(f"{k},{v}\n" for k, v in enumerate(values))

    p, q = write("p.csv", indexed(NOISE)), write("q.csv", indexed(MORE))
    with pytest.raises(UnreadableFile, match="column '1' of p.csv rises"):
        read_pair(p, q)
    assert read_pair(p, q, drop=["1"])[0].names == ("x",)


# Through from_samples


def shown(p, q, **options):
    samples = dp.from_samples(p, q, **options)
    return [sorted(side.show(k) for k in range(len(side))) for side in (samples.p, samples.q)]


def test_rows_become_outputs_with_names(write):
    p, q = write("p.csv", "x,y\n1,2\n3,\n"), write("q.csv", "y,x\n2.5,1\n4,3\n")
    assert shown(p, q) == [
        ["{'x': 1, 'y': 2}", "{'x': 3, 'y': None}"],
        ["{'x': 1, 'y': 2.5}", "{'x': 3, 'y': 4}"],
    ]
    assert shown(p, q, columns=["x"]) == [["1", "3"], ["1", "3"]]
    assert shown(p, q, drop=["x"]) == [["2", "None"], ["2.5", "4"]]
    q = write("q.csv", f"x,y\n{2**53 + 1},2.5\n3,4.5\n")
    p = write("p.csv", "x,y\n1,2\n3,4\n")
    assert shown(p, q)[1] == ["{'x': 3, 'y': 4.5}", f"{{'x': {2**53 + 1}, 'y': 2.5}}"]
    p, q = write("p.csv", "t\n1970-01-02\n1970-01-03\n"), write("q.csv", "t\n1970-01-02\n\n")
    assert shown(p, q)[0][0] == shown(p, q)[1][0] == "1970-01-02T00:00:00"


def test_a_column_of_words_is_strings(write):
    p, q = write("p.csv", "yes\nno\nyes\n"), write("q.csv", "no\nno\nyes\n")
    assert shown(p, q) == [["'no'", "'yes'", "'yes'"], ["'no'", "'no'", "'yes'"]]


def test_verdicts_carry_where_the_draws_came_from(write):
    rng = np.random.default_rng(0)
    columns = [{"id": list(range(2000)), "x": rng.normal(size=2000) + k} for k in (0, 1)]
    p, q = write("p.parquet", columns[0]), write("q.parquet", columns[1])
    with pytest.raises(UnreadableFile, match="drop"):
        dp.from_samples(p, q)
    verdict = dp.audit(dp.from_samples(p, q, drop=["id"]), claim="mu=0.5")
    again = dp.Verdict.from_json(verdict.to_json())
    assert [f.file for f in again.about.files] == ["p.parquet", "q.parquet"]
    assert again.about.files[0].columns == ("x",)
    assert again.about.files[0].rows == 2000


def test_a_column_that_names_the_file_is_refused(twin):
    p = twin("p", {"run": ["A"] * N, "x": NOISE})
    q = twin("q", {"run": ["B"] * N, "x": MORE})
    with pytest.raises(UnreadableFile, match="has one value in all of"):
        read_pair(p, q)
    assert read_pair(p, q, drop=["run"])[0].names == ("x",)
    assert read_pair(p, q, columns=["run", "x"])[0].names == ("run", "x")


def test_numbers_rounded_differently_are_refused(write):
    rng = np.random.default_rng(0)
    p, q = (rng.normal(size=400) for _ in range(2))
    rounded = [write(f"{k}.parquet", {"x": np.round(v, k)}) for k, v in ((2, p), (3, q))]
    with pytest.raises(UnreadableFile, match="2 decimals in 2.parquet and of 3"):
        read_pair(*rounded)
    read_pair(rounded[0], write("same.parquet", {"x": np.round(q, 2)}))
    read_pair(rounded[0], write("full.parquet", {"x": q}))


def test_the_same_rows_in_another_order_or_format_are_refused(write):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=500), "g": rng.choice(["a", "b"], size=500)}
    order = rng.permutation(500)
    p, q = (
        write("p.parquet", columns),
        write("q.parquet", {k: v[order] for k, v in columns.items()}),
    )
    with pytest.raises(DependentDraws, match="hold the same draws"):
        dp.from_samples(p, q)


@pytest.mark.parametrize("copies", [2, 5])
def test_copied_rows_are_refused(copies, seeds):
    for seed in seeds[:20]:
        rng = np.random.default_rng(seed)
        p, q = (rng.permutation(np.repeat(rng.normal(size=300), copies)) for _ in range(2))
        with pytest.raises(DependentDraws, match="copied"):
            dp.from_samples(p, q)
        rows = np.column_stack([p, p**2])
        with pytest.raises(DependentDraws, match="copied"):
            dp.from_samples(rows, np.column_stack([q, q**2]))


def test_a_few_copied_rows_are_noticed_and_said_in_the_verdict(seeds):
    rng = np.random.default_rng(seeds[0])
    p, q = rng.normal(size=1000), rng.normal(size=1000)
    p[-100:] = p[:100]
    with pytest.warns(DependenceWarning, match="were rows copied"):
        samples = dp.from_samples(rng.permutation(p), q)
    assert any("copied" in note for note in dp.audit(samples, claim="eps=1").about.notes)


def test_outputs_that_repeat_by_themselves_are_not_taken_for_copies(seeds):
    """Lattices, atoms, categories, a choice among many reals, few large counts."""
    for seed in seeds[:30]:
        rng = np.random.default_rng(seed)
        reals = rng.normal(size=700)
        laws = [
            lambda rng=rng: np.round(rng.normal(size=3000), 2),
            lambda rng=rng: 0.1 * np.round(rng.normal(size=3000) * 1000),
            lambda rng=rng: rng.geometric(0.01, size=3000),
            lambda rng=rng: rng.zipf(1.5, size=3000).clip(0, 10**9),
            lambda rng=rng: np.clip(rng.normal(size=3000), -1, 1),
            lambda rng=rng, reals=reals: rng.choice(reals, size=3000),
            lambda rng=rng, reals=reals: rng.choice(reals, size=3000, p=(w := reals**2) / w.sum()),
            lambda rng=rng: rng.integers(0, 2, size=(3000, 9)),
        ]
        for law in laws:
            dp.from_samples(law(), law())
        dp.from_samples(0.3 + rng.geometric(0.01, 3000), 0.7 + rng.geometric(0.01, 3000))


def test_rows_that_follow_each_other_are_noticed_in_one_column_of_many_and_among_mixed_outputs():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(2, 1500)), axis=1)
    wide = rng.normal(size=(2, 1500, 30))
    wide[0, :, 17] = walk[0]
    with pytest.warns(DependenceWarning, match="column 18"):
        samples = dp.from_samples(*wide)
    assert "correlated" in samples.notes[0]
    mixed = [
        [None if u < 0.3 else float(v) for u, v in zip(rng.random(1500), w, strict=True)]
        for w in walk
    ]
    with pytest.warns(DependenceWarning, match="correlated"):
        dp.from_samples(*mixed)
    kinds = [["a" if v > 0 else None for v in w] for w in walk]
    with pytest.warns(DependenceWarning, match="kinds of output"):
        dp.from_samples(*kinds)


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
    ("p", "q", "words"),
    [
        (np.zeros((3, 2)), np.zeros((3, 3)), "do not go together"),
        (np.zeros((3, 2, 2)), np.zeros(3), "do not go together"),
        (3.0, np.zeros(3), "cannot be read"),
    ],
)
def test_arrays_that_are_no_outputs(p, q, words):
    with pytest.raises(InvalidInput, match=words):
        dp.from_samples(p, q)


def test_empty_arrays_are_not_enough():
    with pytest.raises(NotEnoughDraws, match="q holds no outputs"):
        dp.from_samples([1.0], [])
