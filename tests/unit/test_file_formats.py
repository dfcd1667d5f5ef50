"""One file of draws: the same content is the same table in every format, or it is refused."""

import bz2
import datetime
import gzip
import hashlib
import json
import os
import sys
import threading

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from tests.helpers import csv_of, listed, same

import dpassay as dp
from dpassay.errors import InvalidInput, MissingExtra, UnreadableFile
from dpassay.privacy.provenance import Origin
from dpassay.sampling import file_formats
from dpassay.sampling.columns import Unreadable, arrow_source
from dpassay.sampling.files import read_pair, read_table
from dpassay.sampling.text_tables import Marks

VALUES = np.array([0.5, 1.5, -2.0, np.nan])


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
        {"x": ["1.5", "error", "2"], "y": ["nan", "no", ""]},
        {"x": ["true", "error", "False"]},
    ],
)
def test_the_same_content_is_the_same_table(write, columns):
    text = read_table(write("a.csv", csv_of(columns)))
    same(text, read_table(write("a.parquet", columns)))
    same(text, read_table(write("a.tsv", csv_of(columns).replace(",", "\t"))))


def test_decimals_and_categories_are_what_their_text_is(write):
    columns = {
        "a": pyarrow.array([1, None], pyarrow.decimal128(30, 0)),
        "b": pyarrow.array([10**25, 1], pyarrow.decimal128(30, 0)),
        "c": pyarrow.array(["1.25", "2"], pyarrow.string()).cast(pyarrow.decimal128(10, 2)),
        "d": pyarrow.array(["u", "v"]).dictionary_encode(),
        "e": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
    }
    text = "a,b,c,d,e\n1,10000000000000000000000000,1.25,u,18446744073709551615\n,1,2,v,0\n"
    same(read_table(write("a.parquet", columns)), read_table(write("a.csv", text)))


def test_several_columns_are_vectors(write):
    csv = write("a.csv", "x;y\n1.5;2\n3;4\n")
    parquet = write("a.parquet", {"x": [1.5, 3.0], "y": [2.0, 4.0]})
    for path in (csv, parquet, write("a.npy", np.array([[1.5, 2.0], [3.0, 4.0]]))):
        assert np.column_stack(read_table(path).columns).tolist() == [[1.5, 2.0], [3.0, 4.0]]


def test_whole_numbers_are_integers_however_written(write):
    for text in ("1\n0\n1\n", "1.0\n0.0\n1.0\n", "1e0\n-0\n1e0\n"):
        assert read_table(write("a.csv", text)).columns[0].dtype == np.int64
    assert read_table(write("a.npy", np.array([1.0, 0.0]))).columns[0].dtype == np.int64
    assert read_table(write("a.npy", np.array([1.0, np.inf]))).columns[0].dtype == np.float64
    assert read_table(write("a.parquet", {"x": [1.0, 0.0]})).columns[0].dtype == np.int64


def test_missing_cells_are_outcomes_and_are_counted(write):
    for mark in ("", "NA", "N/A", "null", "NULL", "None"):
        table = read_table(write("a.csv", f"x,y\n1,a\n{mark},{mark}\n2,{mark}\n"))
        assert listed(table) == [[1, None, 2], ["a", None, None]]
        assert (table.origin.missing, table.origin.rows) == (3, 3)
    parquet = read_table(write("a.parquet", {"x": [1, None, None], "y": ["a", None, None]}))
    assert listed(parquet) == [[1, None, None], ["a", None, None]]
    assert parquet.origin.missing == 4
    dates = read_table(write("a.npy", np.array(["2024-01-05", "NaT"], dtype="M8[s]")))
    assert listed(dates) == [[datetime.datetime(2024, 1, 5), None]]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["a", "NA", ""], "'' and 'NA', which are all read as a missing value"),
        (["01234", "1234", "5"], "'01234' and '1234', which are one number"),
        (["x", "1.1", "1.10"], "'1.1' and '1.10', which are one number"),
        (["1e3", "2", "1000"], "'1e3' and '1000', which are one number"),
    ],
)
def test_cells_that_would_become_one_output_are_refused(cells, said, write):
    for file in (write("a.csv", "\n".join(["x", *cells]) + "\n"), write("a.parquet", {"x": cells})):
        with pytest.raises(UnreadableFile, match=said):
            read_table(file)
    null = [cell or None for cell in cells]
    with pytest.raises(UnreadableFile, match=said):
        read_table(write("a.parquet", {"x": null}))


def test_zeros_of_both_signs_are_one_number(write):
    assert listed(read_table(write("a.csv", "0.0\n-0.0\n0.5\n"))) == [[0.0, 0.0, 0.5]]


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
    with pytest.raises(UnreadableFile, match="complex one as two columns"):
        read_table(write("a.npy", np.array([1j])))


def test_times_and_durations_are_objects(write):
    spans = [datetime.timedelta(seconds=1.5), None]
    assert listed(read_table(write("a.npy", np.array([1500, "NaT"], dtype="m8[ms]")))) == [spans]
    columns = {"x": spans, "y": [datetime.time(10, 30), datetime.time(11)]}
    assert listed(read_table(write("a.parquet", columns))) == list(columns.values())


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
        delimiter=",",
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
        ("a.csv", b"x\n1\n\xff\n", "not text in UTF-8; save it in UTF-8, or name .*--encoding"),
        ("a.csv", b"x\n" + b"1\n" * 5000 + b"\xff\n", "not text in UTF-8"),
        ("a.csv", "x\n1\n".encode("utf-16"), "not text in UTF-8"),
        ("a.csv.gz", "x\n1\n", "not compressed as its name says"),
        ("a.xlsx", "zip", "save the sheet with the outputs as CSV"),
        ("a.csv", b"PK\3\4\0\0", "is a spreadsheet, .* save the sheet with the outputs as CSV"),
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
    with pytest.raises(UnreadableFile, match="not text in UTF-8"):
        read_table(path)
    with pytest.raises(UnreadableFile, match="none.csv' does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(UnreadableFile, match="directory"):
        read_table(tmp_path)


def test_a_file_without_permission_is_refused(write, monkeypatch):
    path = write("a.csv", "1\n2\n")

    def denied(self, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", denied)
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


# --- how much is read


def test_of_a_file_no_more_is_read_than_the_limit(tmp_path):
    rows = b"1.5\n" * 100_000
    plain, packed = tmp_path / "plain.csv", tmp_path / "packed.csv.gz"
    plain.write_bytes(rows)
    packed.write_bytes(gzip.compress(rows))
    other = tmp_path / "packed.csv.bz2"
    other.write_bytes(bz2.compress(rows))
    table = pyarrow.table({"x": np.zeros(200_000)})
    parquet, feather = tmp_path / "x.parquet", tmp_path / "x.feather"
    pyarrow.parquet.write_table(table, parquet, compression="zstd")
    pyarrow.feather.write_feather(table, feather, compression="zstd")
    assert packed.stat().st_size < 10_000
    for path in (plain, packed, other, parquet, feather):
        with pytest.raises(UnreadableFile, match=r"more than 100,000 bytes.*max_bytes="):
            read_table(path, max_bytes=100_000)
        assert len(read_table(path, max_bytes=2_000_000).columns[0]) >= 100_000
    with pytest.raises(InvalidInput, match="max_bytes"):
        read_table(plain, max_bytes=0)


def test_little_more_than_the_limit_is_taken_of_a_stream():
    """However much it would give: a device, or a few bytes that decompress to terabytes."""
    given = []

    class Endless:
        def read(self, size):
            given.append(size)
            return bytes(size)

    with pytest.raises(Unreadable, match="more than 1,000 bytes"):
        file_formats.Limit(1000).read(Endless())
    assert len(given) == 1


def test_a_device_is_refused_and_a_pipe_read(tmp_path):
    link = tmp_path / "device.csv"
    link.symlink_to(os.devnull)
    with pytest.raises(UnreadableFile, match="neither a file nor a pipe"):
        read_table(link)
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("x\n1\n2\n",))
    writer.start()
    table = read_table(pipe)
    writer.join()
    assert (table.names, table.columns[0].tolist()) == (("x",), [1, 2])


def test_a_pipe_beside_a_file_is_read_once(tmp_path):
    pipe, other = tmp_path / "pipe.csv", tmp_path / "other.csv"
    os.mkfifo(pipe)
    other.write_text("answer\nyes\nno\nyes\n")
    writer = threading.Thread(target=pipe.write_text, args=("answer\nno\nyes\n",))
    writer.start()
    sides = read_pair(pipe, other)
    writer.join()
    assert [side.names for side in sides] == [("answer",)] * 2
    assert listed(sides[0]) == [["no", "yes"]]


def test_arrow_holds_no_bytes_of_python():
    """A thread that lets go of them when the interpreter shuts down would abort the process."""
    data = bytes(bytearray(b"1,2\n" * 100))
    before = sys.getrefcount(data)
    source = arrow_source(pyarrow, data)
    assert sys.getrefcount(data) == before
    assert source.read() == data


def test_text_of_an_array_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "p.npy"
    np.save(path, np.full(40, 0xD800, dtype=np.uint32).view("U2"))
    with pytest.raises(UnreadableFile, match="p.npy' cannot be read"):
        read_table(path)


# --- JSON lines hold the same table as text with the same content

RNG = np.random.default_rng(0)
COLUMNS = {
    "x": RNG.normal(size=50).tolist(),
    "n": RNG.poisson(5, 50).tolist(),
    "g": [str(g) for g in RNG.choice(["a", "b"], 50)],
    "m": [None if k % 7 == 0 else k % 5 / 3 for k in range(50)],
    "b": [bool(b) for b in RNG.integers(2, size=50)],
}


def _lines(columns):
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def test_objects_are_rows_of_named_columns(tmp_path):
    (tmp_path / "p.jsonl").write_text(_lines(COLUMNS))
    (tmp_path / "p.csv").write_text(csv_of(COLUMNS))
    (tmp_path / "p.ndjson.gz").write_bytes(gzip.compress(_lines(COLUMNS).encode()))
    tables = [read_table(tmp_path / name) for name in ("p.jsonl", "p.csv", "p.ndjson.gz")]
    assert tables[0].names == tuple(COLUMNS)
    for other in tables[1:]:
        assert tables[0].names == other.names
        assert listed(tables[0]) == listed(other)
        assert [c.dtype for c in tables[0].columns] == [c.dtype for c in other.columns]


def test_a_file_of_each_format_is_a_pair(tmp_path):
    other = {**COLUMNS, "x": RNG.normal(size=50).tolist()}
    (tmp_path / "p.jsonl").write_text(_lines(COLUMNS))
    (tmp_path / "q.csv").write_text(csv_of(other))
    assert read_pair(tmp_path / "p.jsonl", tmp_path / "q.csv")[0].names == tuple(COLUMNS)
    assert len(dp.from_samples(tmp_path / "p.jsonl", tmp_path / "q.csv")) == 50


def test_lists_and_cells_have_no_names(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("[1, 2.5]\n\n[3, NaN]\n")
    table = read_table(path)
    assert table.names is None
    assert table.columns[0].tolist() == [1, 3]
    assert np.isnan(table.columns[1][1])
    path.write_text('1\n"error"\nnull\n')
    assert read_table(path).columns[0].tolist() == [1, "error", None]
    path.write_text('{"x": 1}\n{"x": 2, "y": 3}\n')
    assert listed(read_table(path)) == [[1, 2], [None, 3]]


def test_a_key_that_one_file_lacks_is_part_of_the_output(tmp_path, seed):
    """Rows are the dictionaries that they are in Python: null is a value, and a missing key is none."""
    rng = np.random.default_rng(seed)
    rows = [
        [{"flu": int(k), **({"lupus": v} if v != 2 else {})} for k, v in zip(*two, strict=True)]
        for two in (rng.poisson(9, (2, 400)), [rng.poisson(9, 400), [2] * 400])
    ]
    rows[0][0]["lupus"] = None
    paths = [tmp_path / name for name in ("p.jsonl", "q.jsonl")]
    for path, side in zip(paths, rows, strict=True):
        path.write_text("".join(json.dumps(row, default=int) + "\n" for row in side))
    tables = read_pair(*paths)
    assert [table.names for table in tables] == [("flu", "lupus")] * 2
    from_files, from_lists = dp.from_samples(*paths), dp.from_samples(*rows)
    for name in "pq":
        one, other = getattr(from_files, name), getattr(from_lists, name)
        assert [one.show(k) for k in range(400)] == [other.show(k) for k in range(400)]
    verdict = dp.audit(from_files, claim="eps=1")
    assert verdict.violated
    assert not dp.audit(dp.from_samples(*paths, drop=["lupus"]), claim="eps=1").violated
    # also where all rows of one file have the key
    paths[0].write_text("".join(json.dumps({**row, "lupus": 1}) + "\n" for row in rows[0]))
    assert dp.audit(dp.from_samples(*paths), claim="eps=1").violated
    assert dp.audit(dp.from_samples(*paths, columns=["lupus"]), claim="eps=1").violated
    # a key that neither has is a slip
    with pytest.raises(InvalidInput, match="columns names 'lupos', which p.jsonl does not have"):
        read_pair(*paths, columns=["lupos"])


def test_columns_of_tables_in_one_file_only_are_refused_and_not_called_harmless(tmp_path):
    (tmp_path / "p.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "q.jsonl").write_text('{"x": 1}\n{"x": 2}\n')
    with pytest.raises(UnreadableFile, match="--drop y.*what it leaks is not found then"):
        read_pair(tmp_path / "p.csv", tmp_path / "q.jsonl")


def test_text_in_json_may_have_separators_too(tmp_path):
    for name, rows in (("p", '{"x": "1,234.5"}\n{"x": 2.5}\n'), ("q", '{"x": "1"}\n{"x": 0.5}\n')):
        (tmp_path / f"{name}.jsonl").write_text(rows)
    paths = tmp_path / "p.jsonl", tmp_path / "q.jsonl"
    with pytest.raises(UnreadableFile, match="--thousands , if it is 1234.5"):
        read_pair(*paths)
    assert listed(read_pair(*paths, marks=Marks(thousands=","))[0]) == [[1234.5, 2.5]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1\n{oops\n", "line 2 is no JSON"),
        ('{"x": 1}\n2\n', "different forms"),
        ("[1, 2]\n[3]\n", "different forms"),
        ('{"x": {"y": 1}}\n', "column 'x' holds .*; a cell is a number"),
        ("\n\n", "is empty"),
        ('[{"x": 1}]\n', "column 1 holds"),
        ("[" * 100_000, "line 1 is no JSON: it is nested too deeply"),
        ('{"x": "\\ud800"}\n', "column 'x' holds .*half of a pair of surrogates"),
    ],
)
def test_lines_that_are_no_table_are_refused(tmp_path, text, words):
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(UnreadableFile, match=words):
        read_table(path)


def test_numbers_whose_separators_are_not_told_are_refused(tmp_path):
    """984 and 1.214 are 984 and 1214 in some countries; a number with a unit is no word."""
    rng = np.random.default_rng(0)
    whole = rng.integers(600, 2500, size=200)
    german = [f"{x:,}".replace(",", ".") for x in whole]
    path = tmp_path / "p.csv"
    path.write_text("\n".join(["Wert", *german]), encoding="utf-8")
    with pytest.raises(UnreadableFile, match=r"a decimal, or a whole number with a separator"):
        read_table(path)
    path.write_text("\n".join(["Wert", *(f"{x:.3f}" for x in whole / 7)]), encoding="utf-8")
    read_table(path)
    path.write_text("\n".join(["Wert", *(f"{x} €" for x in german)]), encoding="utf-8")
    with pytest.raises(UnreadableFile, match="a number with a unit"):
        read_table(path)


@pytest.mark.parametrize("cells", ['null, ""', '1, "1"', 'true, "true"', '"2.5", 2.5'])
def test_cells_of_json_that_would_become_one_output_are_refused(cells, write):
    lines = "".join(f'{{"x": {cell}}}\n' for cell in cells.split(", "))
    one, other = write("p.jsonl", lines), write("q.jsonl", lines * 2)
    with pytest.raises(UnreadableFile, match="column 'x' holds .* read as one output"):
        dp.from_samples(one, other)


def test_null_beside_empty_text_in_parquet_is_refused(write):
    p, q = write("p.parquet", {"x": ["a", None, ""]}), write("q.parquet", {"x": ["a", None, "b"]})
    with pytest.raises(UnreadableFile, match='holds null and "", which are read as one output'):
        dp.from_samples(p, q)
    dp.from_samples(q, write("r.parquet", {"x": ["b", "a", "", "a", "b"]}))
