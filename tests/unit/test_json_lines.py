"""JSON lines hold the same table as text with the same content."""

import gzip
import json

import numpy as np
import pytest
from tests.helpers import csv_of, listed

import dpassay as dp
from dpassay.errors import UnreadableFile
from dpassay.sampling.files import read_pair, read_table

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
def test_what_is_no_table_has_a_sentence(tmp_path, text, words):
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(UnreadableFile, match=words):
        read_table(path)
