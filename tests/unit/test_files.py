"""Two files of draws: columns that go together, and what is refused because it would mislead."""

import datetime
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from tests.helpers import csv_of, listed

import dpassay as dp
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.sampling.files import read_pair, read_table

RNG = np.random.default_rng(7)


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
    assert "--columns" not in said  # what both have may be identifiers
    assert "named differently" not in said
    for options in ({"drop": ["z"]}, {"columns": ["x", "y"]}):
        assert [t.names for t in read_pair(p, q, **options)] == [("x", "y")] * 2
    r = twin("r", {"x": [1, 2], "w": [3, 4]})
    with pytest.raises(
        UnreadableFile,
        match=r"'y', which r.*'w', which p.*named differently in the two: rename it.*drop=\['y', 'w'\]",
    ):
        read_pair(p, r)
    with pytest.raises(UnreadableFile, match="rename it in one of them$"):
        read_pair(twin("p", {"a": [1, 2]}), twin("q", {"b": [1, 3]}))


def test_columns_select_and_order(twin):
    p = twin("p", {"x": [1, 2], "y": [3, 4], "z": [5, None]})
    q = twin("q", {"z": [5, 6], "y": [7, 8], "x": [9, 9]})
    a, b = read_pair(p, q, columns=["y", "x"])
    assert (listed(a), listed(b)) == ([[3, 4], [1, 2]], [[7, 8], [9, 9]])
    assert a.origin.columns == ("y", "x")
    assert a.origin.missing == 0
    assert read_pair(p, q)[0].origin.missing == 1


def lines_of(header, rows):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.mark.parametrize(
    ("names", "low"), [("2019,2020,2021", 80), ("01,02,03", 0), ("0.1,0.5,0.9", 0), (",1,2", 9)]
)
def test_names_of_columns_may_be_numbers(write, names, low):
    p = RNG.integers(low, low + 20, (200, 3))
    turned = ",".join(names.split(",")[::-1]) if names[0] != "," else names
    q = p[::-1, ::-1] if turned != names else p[::-1]
    files = write("p.csv", lines_of(names, p)), write("q.csv", lines_of(turned, q))
    a, b = read_pair(*files)
    expected = tuple(name or "index" for name in names.split(","))
    assert a.names == b.names == expected
    assert listed(a) == [column[::-1] for column in listed(b)] == p.T.tolist()
    [one] = read_pair(*files, columns=[expected[2]])[0].columns
    assert one.tolist() == p[:, 2].tolist()


def test_one_column_may_be_named_by_a_number(write):
    a, b = (write(f"{k}.csv", lines_of("2019", RNG.normal(size=(50, 1)))) for k in "pq")
    assert [table.origin.rows for table in read_pair(a, b)] == [50, 50]


def test_numbers_that_may_be_names_or_outputs_are_refused(write):
    rows = RNG.integers(0, 10, (2, 200, 4))
    files = [write(f"{k}.csv", lines_of(k, rows[i])) for i, k in enumerate(("1,2,3,4", "4,2,3,1"))]
    with pytest.raises(UnreadableFile, match=r"both files begin with 1, 2, 3, 4 .*write a letter"):
        read_pair(*files)


def test_outputs_of_few_values_that_begin_alike_are_outputs(write):
    rows = RNG.integers(0, 2, (2, 200, 2))
    files = [write(f"{k[0]}.csv", lines_of(k, rows[i])) for i, k in enumerate(("0,1", "1,0"))]
    assert [table.origin.rows for table in read_pair(*files)] == [201, 201]
    few = [write(f"{k}.csv", f"3,5\n{k},7\n") for k in (1, 2)]
    assert [table.origin.rows for table in read_pair(*few)] == [2, 2]


def test_a_column_that_cannot_be_read_may_be_left_out(write):
    for ending, text in (
        ("jsonl", '{"x": %d, "y": {"z": 1}}\n{"x": 5, "y": null}\n'),
        ("csv", "x;y\n%d;3,5 \u20ac\n5;7\n"),
    ):
        p, q = (write(f"{k}.{ending}", text % k) for k in (1, 2))
        for options in ({"columns": ["x"]}, {"drop": ["y"]}):
            assert [listed(table) for table in read_pair(p, q, **options)] == [[[1, 5]], [[2, 5]]]
        for options in ({}, {"columns": ["x", "y"]}, {"drop": ["x"]}):
            with pytest.raises(UnreadableFile, match=f"1.{ending}, column 'y' holds"):
                read_pair(p, q, **options)


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
        ({"drop": ["z"]}, "drop names 'z', which neither has; p.csv has the columns 'x', 'y'"),
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


def test_the_same_content_twice_is_refused(write, tmp_path):
    p, q = write("p.csv", "1\n2\n"), write("q.csv", "1\n2\n")
    link = tmp_path / "link.csv"
    link.symlink_to(p)
    for other in (p, tmp_path / "." / "p.csv", link):
        with pytest.raises(UnreadableFile, match="are the same file"):
            read_pair(p, other)
    with pytest.raises(UnreadableFile, match="have the same content, byte for byte"):
        read_pair(p, q)


SORTED = ["0"] * 240 + ["1"] * 260


@pytest.mark.parametrize("cells", [["0"] * 500, ["0.123456789"] * 500, ["yes"] * 500, SORTED])
def test_files_that_independent_draws_may_well_make_equal_are_audited(cells, write):
    text = "\n".join(["out", *cells]) + "\n"
    verdict = dp.audit(dp.from_samples(write("p.csv", text), write("q.csv", text)), claim="eps=1")
    assert not verdict.violated
    assert verdict.guarantee == "exact"


def test_equal_files_that_chance_does_not_make_are_refused(write, seed):
    rng = np.random.default_rng(seed)
    for cells in (rng.integers(2, size=100), rng.random(5), np.sort(rng.integers(50, size=1000))):
        text = "\n".join(["out", *map(str, cells.tolist())]) + "\n"
        with pytest.raises(UnreadableFile, match="same content"):
            dp.from_samples(write("p.csv", text), write("q.csv", text))


@pytest.mark.filterwarnings("error")
def test_disjoint_discrete_values_are_a_violation_with_a_note(write, seed):
    rng = np.random.default_rng(seed)
    values = rng.random(60)
    files = []
    for name, own in (("p.csv", values[:30]), ("q.csv", values[30:])):
        cells = rng.choice(own, 2000).tolist()
        files.append(write(name, "\n".join(["out", *map(repr, cells)]) + "\n"))
    verdict = dp.audit(dp.from_samples(*files), claim="eps=1")
    assert verdict.violated
    assert verdict.guarantee == "exact"
    assert any("were rows copied?" in note for note in verdict.about.notes)


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
    if dtype != "M8[us]" and not isinstance(p[0], str):
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
        (HOURS, "holds different dates"),
        ([HOURS[k // 10] for k in range(N)], "holds different dates"),
        ([HOURS[k - 100] for k in SHUFFLED], "holds different dates"),
        ([f"{1 + k % 2:02}.03.2024" for k in range(N)], "holds different dates"),
        ([f"{28 + k // 20}/3/2024" for k in range(N)], "holds different dates"),
        ([f"3/{28 + k % 2}/24" for k in range(N)], "holds different dates"),
        ([f"3-{1 + k % 2}-2024 9:30:00 PM" for k in range(N)], "holds different dates"),
        ([f"{1 + k % 2:02}.03.24 09:30 Uhr" for k in range(N)], "holds different dates"),
        ([f"2024/3/{1 + k % 2}" for k in range(N)], "holds different dates"),
        ([f"run{k}" for k in SHUFFLED], "words that are all different"),
        ([f"1.5.24 {4 * k // 5:03}s" for k in range(N)], "words that are the same in a row only"),
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
        [1] * N,
        [START] * N,
        ["01.03.2024"] * N,
        [f"1.2.{k % 5}" for k in SHUFFLED],
        [f"{k % 5}/12" for k in SHUFFLED],
        NOISE,
        [k * 1000 for k in SHUFFLED],
        [f"run{k % 5}" for k in SHUFFLED],
        [k % 2 == 0 for k in SHUFFLED],
    ],
)
def test_columns_that_look_like_outputs_are_kept(twin, column):
    p, q = twin("p", {"x": column, "y": NOISE}), twin("q", {"x": column, "y": MORE})
    assert read_pair(p, q)[0].names == ("x", "y")


@pytest.mark.parametrize("by", ["run", "region"])
@pytest.mark.parametrize(
    "labels",
    [
        {"region": "abc"},
        {"region": "aabbcc", "sex": "fmfmfm"},
        {"region": "aaab", "sex": "ffmf", "old": [True, False, True, True], "year": [1] * 4},
        {"region": "aab", "quantile": [0.25, 0.5, 0.5]},
    ],
)
def test_long_tables_are_refused_whatever_is_left_out(twin, by, labels):
    each = len(labels["region"])

    def long(name, shift):
        rows = [
            {"run": k, **{label: values[j] for label, values in labels.items()}}
            for k in range(100)
            for j in range(each)
        ]
        table = pd.DataFrame(rows).assign(count=RNG.poisson(50, len(rows)) + shift)
        return twin(name, table.sort_values(by, kind="stable").to_dict("list"))

    p, q = long("p", 0), long("q", 1)
    said = f"'run' of p.* has {each} rows of each value.*pivot.*'region'.*groupby"
    for options in (
        {},
        {"drop": ["run"]},
        {"drop": ["run", *labels]},
        {"columns": ["count"]},
        {"columns": ["region", "count"]},
    ):
        with pytest.raises(UnreadableFile, match=said):
            read_pair(p, q, **options)
    if by == "region" and each == 4:  # the rows are in no fixed order
        assert read_pair(p, q, columns=["run", *labels, "count"])[0].origin.rows == 400


@pytest.mark.parametrize("by_sex", [False, True])
@pytest.mark.parametrize("only", ["p", "q"])
def test_long_tables_without_a_number_of_the_release_are_refused(twin, by_sex, only, seed):
    """Where their rows are in the same order in each release, also if the last one is cut off."""
    rng, labels = np.random.default_rng(seed), {"region": list("NNSSWWEEMMCC") * 100}
    labels |= {"sex": list("fm") * 600} if by_sex else {}
    mixed = rng.permutation(1200)
    frames = [
        pd.DataFrame(labels).iloc[slice(None) if name == only else mixed][:1195] for name in "pq"
    ]
    frames = [t.assign(count=rng.poisson(20, len(t))).reset_index(drop=True) for t in frames]
    p, q = (twin(name, t.to_dict("list")) for name, t in zip("pq", frames, strict=True))
    said = f"'region'.* of {only}.* in the same order every 12 rows.* below 1e-09"
    for options in ({}, {"drop": ["region"]}, {"columns": [*labels, "count"]}):
        with pytest.raises(UnreadableFile, match=said) as refused:
            read_pair(p, q, **options)
    advice = re.search(r"from_samples\((\[.*?), …\)", str(refused.value)).group(1)
    tables = eval(advice, {"p": frames["pq".index(only)], "np": np})
    assert [len(one) for one in tables] == [12] * 99 + [7]
    if by_sex:
        pivot = re.search(r"assign\(.*?\)\.pivot\(.*?\)", str(refused.value)).group()
        wide = eval(f"p.{pivot}", {"p": frames["pq".index(only)], "np": np})
        assert wide.shape == (100, 12)


def test_labels_of_independent_rows_are_not_taken_for_those_of_a_long_table(twin, seed):
    """Also a rare value that stands twice, half of the rows apart, and the same in all rows."""
    rng = np.random.default_rng(seed)
    rare = ["ab"[k % 300 == 7] for k in range(600)]
    for label in (rng.choice(list("fm"), 600).tolist(), rare, ["a"] * 600):
        p, q = (twin(k, {"x": label, "count": rng.poisson(20, 600).tolist()}) for k in "pq")
        assert read_pair(p, q)[0].origin.rows == 600


def test_labels_that_come_equally_often_are_refused(twin):
    """The rows of each are one release, in any order, also where nothing else labels them."""
    shuffled = [int(k) // 4 for k in RNG.permutation(200)]
    rows = {"x": shuffled, "sex": ["fm"[k % 2] for k in RNG.permutation(200)]}
    for other in (["abcd"[k] for k in RNG.integers(4, size=200)], ["a"] * 200, rows["sex"]):
        p, q = (
            twin(name, rows | {"region": other, "count": RNG.poisson(50, 200).tolist()})
            for name in "pq"
        )
        for options in ({}, {"drop": ["x"]}, {"columns": ["sex", "count"]}):
            with pytest.raises(UnreadableFile, match=r"'x' of .* has 4 rows of each value"):
                read_pair(p, q, **options)
        assert read_pair(p, q, columns=["x", "sex", "region", "count"])[0].origin.rows == 200


def test_one_column_may_be_sorted_and_few_rows_in_any_order(twin):
    read_pair(twin("p", {"x": sorted(NOISE)}), twin("q", {"x": sorted(MORE)}))
    read_pair(
        twin("p", {"x": list(range(19)), "y": NOISE[:19]}),
        twin("q", {"x": list(range(19)), "y": MORE[:19]}),
    )


def test_all_columns_that_look_like_an_index_are_named_at_once(twin):
    times = [START + datetime.timedelta(seconds=k) for k in range(N)]
    own = {"run id": list(range(N)), "at": times, "x": NOISE}
    p, q = twin("p", own | {"z": NOISE}), twin("q", own | {"x": MORE})
    with pytest.raises(UnreadableFile, match=r"drop=\['z'\] \(--drop z\)"):
        read_pair(p, q)
    with pytest.raises(UnreadableFile) as refused:
        read_pair(p, q, drop=["z"])
    said = str(refused.value)
    assert "column 'run id' of p" in said
    assert "column 'at' of p" in said
    assert "drop=['z', 'run id', 'at'] (--drop 'z,run id,at')" in said
    assert "columns=['x'] (--columns x)" in said
    assert read_pair(p, q, drop=["z", "run id", "at"])[0].names == ("x",)
    with pytest.raises(
        UnreadableFile, match=r"name the columns that are outputs with columns=\[…\]"
    ):
        read_pair(p, q, drop=["z", "x"])


def test_a_column_of_dates_is_not_among_those_to_keep(write):
    def rows(month, values):
        days = (f"{1 + k // 20:02}.{month}.2024" for k in range(N))
        return "Lauf;Datum;Betrag\n" + "".join(
            f"{k};{day};{value}\n" for k, (day, value) in enumerate(zip(days, values, strict=True))
        )

    p, q = write("p.csv", rows("03", NOISE)), write("q.csv", rows("04", MORE))
    with pytest.raises(UnreadableFile) as refused:
        read_pair(p, q)
    assert "(--drop Lauf,Datum)" in str(refused.value)
    assert "(--columns Betrag)" in str(refused.value)


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


def test_a_column_that_names_the_file_is_refused(twin):
    p = twin("p", {"run": ["A"] * N, "x": NOISE})
    q = twin("q", {"run": ["B"] * N, "x": MORE})
    with pytest.raises(UnreadableFile, match="has one value in all of"):
        read_pair(p, q)
    assert read_pair(p, q, drop=["run"])[0].names == ("x",)
    assert read_pair(p, q, columns=["run", "x"])[0].names == ("run", "x")


def test_decimals_in_one_file_alone_are_noted_where_too_few_to_be_refused(write, seed):
    rng = np.random.default_rng(seed)
    draws = 50 + rng.laplace(scale=9, size=(3, 80))
    p, q, r = (
        write(f"{name}.csv", csv_of({"amount": np.round(x, digits).tolist()}))
        for name, x, digits in zip(("euros", "cents", "more"), draws, (0, 2, 2), strict=True)
    )
    verdict = dp.audit(dp.from_samples(p, q), claim="eps=1")
    assert verdict.violated
    assert "has no decimals in euros.csv, but has some in cents.csv" in str(verdict)
    assert not dp.from_samples(q, r).remarks


def test_a_column_without_a_common_value_is_noted():
    """Batches and machines tell two tables apart, whatever the mechanism does."""
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"out": rng.laplace(size=400), "batch": rng.integers(k, k + 9, size=400)})
        for k in (0, 10)
    ]
    verdict = dp.audit(dp.from_samples(*frames), claim="eps=1")
    assert any("no value of column 'batch' occurs in both" in note for note in verdict.about.notes)
    frames[1]["batch"] -= 8
    verdict = dp.audit(dp.from_samples(*frames), claim="eps=1")
    assert not any("occurs in both" in note for note in verdict.about.notes)


def test_integers_beyond_doubles_are_compared_as_written(write):
    huge = "9" * 400
    table = read_table(write("a.csv", f"x\n{huge}\n{huge}1\n5\n"))
    assert len(set(table.columns[0].tolist())) == 3
    with pytest.raises(UnreadableFile, match="which are one number"):
        read_table(write("a.csv", f"x\n{huge}\n0{huge}\n5\n"))


def test_a_list_of_files_is_not_audited_as_text(tmp_path):
    """Names of files differ between two folders: sound generators were violations, p < 1e-59."""
    names = []
    for side in "pq":
        (tmp_path / side).mkdir()
        names.append([str(tmp_path / side / f"{k}.csv") for k in range(5)])
        for name in names[-1]:
            Path(name).write_text("sex\nf\nm\n")
    with pytest.raises(InvalidInput, match=r"names of files.*read_csv"):
        dp.from_samples(*names)
    with pytest.raises(UnreadableFile, match=r"is a directory.*read_csv"):
        dp.from_samples(tmp_path / "p", tmp_path / "q")


def test_ranges_are_labels(tmp_path):
    bands = ['"under 1,000"', '"1,000-1,999"', "2 000 – 2 999"]
    for name, cells in (("p", bands), ("q", bands[::-1])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["band", *cells * 20]))
    found = dp.from_samples(tmp_path / "p.csv", tmp_path / "q.csv")
    assert "1,000-1,999" in str(found.take(60).p.structures)
