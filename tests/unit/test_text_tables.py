"""Text in files: cells, quotes, headers, and numbers with separators."""

import bz2
import gzip
import math
import time

import numpy as np
import pytest
from tests.helpers import listed, same

import dpassay as dp
from dpassay.errors import UnreadableFile
from dpassay.sampling.columns import Unreadable
from dpassay.sampling.files import read_pair, read_table
from dpassay.sampling.text_tables import Marks, split_text


def test_large_integers_stay_exact(write):
    column = read_table(write("a.csv", f"{2**53 + 1}\n{-(2**63)}\n")).columns[0]
    assert column.dtype == np.int64
    assert column.tolist() == [2**53 + 1, -(2**63)]
    column = read_table(write("a.csv", f"{2**70}\n5\n\n")).columns[0]
    assert column.tolist() == [2**70, 5, None]
    assert [type(v) for v in column.tolist()] == [int, int, type(None)]
    assert read_table(write("a.csv", "9" * 5000 + "\n5\n")).columns[0].tolist() == [math.inf, 5.0]


def test_nan_and_the_infinities_are_floats(write):
    for infinity in ("inf", "Infinity"):
        table = read_table(write("a.csv", f"nan\nNaN\n{infinity}\n-{infinity}\n0.5\n\n"))
        assert listed(table) == [["nan", "nan", math.inf, -math.inf, 0.5, None]]


def test_two_ways_of_writing_are_refused_also_beside_missing_cells(write):
    for one, other in (("0123", "123"), ("1.1", "1.10"), ("inf", "Infinity"), ("1e400", "1e500")):
        for empty in ("", "\n"):
            with pytest.raises(UnreadableFile, match="which are one number"):
                read_table(write("a.csv", f"x\n{one}\n{other}\n5\n{empty}"))


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
        ("b.csv", "x|y\n1|a b\n2|c\n"),
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
        ("05.01.2024\nnever\n", None),
        ("1/5/2024 10:00,yes\n1/6/2024 11:00,no\n", None),
        ("yes\nno\nyes\n", None),
        ("answer\nyes\nno\nyes\n", ("answer",)),
        ("anna\nbert\ncarl\n", ("anna",)),
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


def test_a_column_with_a_decimal_comma_is_answered_with_the_option(write):
    with pytest.raises(UnreadableFile, match=r"2 cells, .* needs --decimal , or --thousands ,\)"):
        read_table(write("a.csv", "x\n1,5\n2\n"))


def test_words_and_numbers_share_a_column(write):
    table = read_table(write("a.csv", "1.5\nhello\n2\n\ntrue\n"))
    assert listed(table) == [[1.5, "hello", 2.0, None, True]]
    assert [type(v) for v in table.columns[0]] == [float, str, float, type(None), bool]


@pytest.mark.parametrize(
    ("text", "cell", "advice"),
    [
        ("x;y\n1,5;1\n2;2\n", "column 'x' holds '1,5'", "--decimal , if it is 1.5 ("),
        (
            "x;y\n1,234;1\n2,345;2\n",
            "'1,234'",
            "--thousands , if it is 1234, --decimal , if it is 1.234 (",
        ),
        ("x;y\n1,234;1\n2,345.5;2\n", "'1,234'", "--thousands , if it is 1234 ("),
        ("x;y\n1,234;1\n2,34;2\n", "'1,234'", "--decimal , if it is 1.234 ("),
        ("x;y\n1,5;1\nerror;2\n", "'1,5'", "--decimal , if it is 1.5 ("),
        ('x,y\n"1,5",1\n",5",2\n', "'1,5'", "--decimal , if it is 1.5 ("),
        ("1,234;1\n2,34;2\n", "column 1 holds '1,234'", "--decimal , if it is 1.234 ("),
        ("x;y\n1.234,5;1\n0,5;2\n", "'1.234,5'", "--decimal , --thousands . if it is 1234.5 ("),
        ("x;y\n12,494.61;1\n0.5;2\n", "'12,494.61'", "--thousands , if it is 12494.61 ("),
        ("x;y\n1,234,567.8;1\n0.5;2\n", "'1,234,567.8'", "--thousands , if it is 1234567.8 ("),
        ("x;y\n1,5e3;1\n0.5;2\n", "'1,5e3'", "write all alike"),
        ("x\n1 234\n5\n", "'1 234'", "--thousands ' ' if it is 1234 ("),
        ("x;y\n1 234,5;1\n5;2\n", "'1 234,5'", "--decimal , --thousands ' ' if it is 1234.5 ("),
        ("x\n1'234\n5\n", "1'234", "--thousands ''\"'\"'' if it is 1234 ("),
        ("1.0e+00 2.0e+00\n3.0e+00 4.0e+00\n", "'1.0e+00 2.0e+00'", "write all alike"),
        ("1.5|2\n3,4|5\n", "column 1 holds '3,4'", "write all alike"),
    ],
)
def test_numbers_with_separators_are_refused(write, text, cell, advice):
    with pytest.raises(UnreadableFile) as refused:
        read_table(write("a.csv", text))
    said = str(refused.value)
    assert f"{cell}, which looks like a number with" in said or f'{cell}", which' in said
    assert said.count("--") == advice.count("--")
    assert advice in said
    assert "np.savetxt(…, delimiter=',')" in said


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("x;y\n13,330.68;1\n5;2\n", {"decimal": ",", "thousands": "."}),
        ("x;y\n1,5;1\n1,234;2\n", {"thousands": ","}),
        ("x;y\n1,5;1\n1_234;2\n", {"thousands": "_"}),
        ("x;y\n48 439,53;1\n1,5;2\n", {"decimal": ","}),
    ],
)
def test_options_that_were_given_are_not_advised_again(text, marks):
    with pytest.raises(Unreadable) as refused:
        numbers(text, **marks)
    given = Marks(**marks).options
    assert f". {given} does not fit it" in str(refused.value)
    assert f"{given} if it is" not in str(refused.value)
    if " " in text:
        assert "say how: --decimal , --thousands ' ' if it is 48439.53" in str(refused.value)


def test_numbers_with_several_dots_are_words(write):
    cells = ["10.0.100.200", "192.168.100.100"]
    assert listed(read_table(write("a.csv", "\n".join(["x", *cells])))) == [cells]


def test_a_million_rows_are_read_without_a_loop(tmp_path):
    path = tmp_path / "a.csv"
    row = "0.123456789,12,-3.5\n-1.5,7,2.25\n"
    path.write_text("x,y,z\n" + row * 500_000)
    start = time.process_time()
    table = read_table(path)
    assert time.process_time() - start < 5  # about 0.5 s; a loop takes longer
    assert [c.dtype.kind for c in table.columns] == ["f", "i", "f"]
    assert table.origin.rows == 10**6


def numbers(text, **marks):
    _, columns = split_text(text.encode(), ".csv", Marks(**marks).check()).read()
    if problems := [column.problem for column in columns if column.problem]:
        raise Unreadable(problems[0])
    return [column.array().tolist() for column in columns]


def test_marks_say_how_numbers_are_written():
    german = {"decimal": ",", "thousands": "."}
    assert numbers("x;y\n1.234,5;1\n-0,25;2\n", **german) == [[1234.5, -0.25], [1, 2]]
    assert numbers("x\n1,5\n2,5\n", decimal=",") == [[1.5, 2.5]]  # a comma separates no cells then
    assert numbers("x\n1 234\nerror\n5\n", thousands=" ") == [[1234, "error", 5]]
    assert numbers("x;y\n1,234;1\n2,345,678;2\n", thousands=",") == [[1234, 2345678], [1, 2]]
    assert numbers("x;y\n12,34;a\n5;b\n", decimal=",", thousands="'") == [[12.34, 5], ["a", "b"]]


def test_a_comma_may_separate_cells_and_thousands_if_numbers_are_quoted():
    text = 'run,total\n1,"13,330.68"\n2,950.5\n3,\n'
    assert numbers(text, thousands=",") == [[1, 2, 3], [13330.68, 950.5, None]]
    late = "run,total\n" + "1,950.5\n" * 200 + '2,"1,950.5"\n'
    assert numbers(late, thousands=",")[1][-1] == 1950.5
    assert numbers('x,y\n1,"2,5"\n2,"3,5"\n', decimal=",") == [[1, 2], [2.5, 3.5]]
    assert numbers('x\n"2,5"\n3,5\n', decimal=",") == [[2.5, 3.5]]
    assert numbers("1,5\n2,5\n", decimal=",") == [[1.5, 2.5]]


@pytest.mark.parametrize(
    ("text", "suffix", "marks", "words"),
    [
        ("run,total\n1,13,330.6\n2,950.5\n", ".csv", {"thousands": ","}, "--thousands , says it"),
        ("run,total\n1,950.5\n2,930\n\n", ".csv", {"thousands": ","}, "into quotes"),
        ("x,y\n1,5\n2,5\n", ".csv", {"decimal": ","}, "--decimal , says it"),
        ('"a, b",1,5\n"c, d",2,5\n', ".csv", {"decimal": ","}, "--decimal , says it"),
        ("a,1\nb,2\na,3\n", ".csv", {"decimal": ","}, "has ',' in every row"),
        (
            "run;total\n1;2\n2;3\n",
            ".tsv",
            {},
            "has ';' in every row.*.tsv says.* in a .csv file",
        ),
        ("run|total\n1|a\n2|b\n", ".tsv", {}, r"has '\|' in every row"),
    ],
)
def test_rows_that_were_not_split_are_refused(text, suffix, marks, words):
    with pytest.raises(Unreadable, match=words):
        split_text(text.encode(), suffix, Marks(**marks))


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u2009", "\u202f"])
def test_a_space_between_thousands_is_any_space(space):
    text = f"x\n1{space}234,5\n2{space}345,5\n"
    assert numbers(text, decimal=",", thousands=" ") == [[1234.5, 2345.5]]
    with pytest.raises(Unreadable, match="say how: --decimal , --thousands ' ' if it is 1234.5 "):
        numbers(text, decimal=",")


@pytest.mark.parametrize("cell", ["12.34%", "(500.00)", "500.00-", "\u2212500.00", "19\u00a0352 €"])
def test_numbers_with_a_unit_or_another_sign_are_refused(cell):
    with pytest.raises(Unreadable, match="a number with a unit or another sign.* as -1.5"):
        numbers(f"x\n{cell}\n5\n7.5\n")


def test_a_title_above_the_table_is_refused():
    with pytest.raises(
        Unreadable, match="row 3 is the first with 2 cells, separated by ';'.*title"
    ):
        numbers("Table 12\n\nx;n\n" + "1;2\n" * 30)
    assert len(numbers("Table 12\n" + "a; b\nc\n" * 30)[0]) == 60


def test_marks_that_do_not_fit_are_refused():
    with pytest.raises(Unreadable, match=r"holds '1\.5', a number with a decimal point"):
        numbers("x;y\n1,5;1\n1.5;2\n", decimal=",")
    with pytest.raises(dp.errors.InvalidInput, match=r"must differ.*is the decimal mark '\.'"):
        Marks(",", ",").check()
    assert Marks(thousands=".").check() == Marks(",", ".")
    with pytest.raises(dp.errors.InvalidInput, match="encoding must be .* got 'cp12520'"):
        Marks(encoding="cp12520").check()


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "latin-1", "UTF8"])
def test_text_in_other_encodings_is_read(encoding):
    german = Marks(",", ".", encoding).check()
    data = "Größe;x\ngroß;1.234,5\nklein;2\n".encode(encoding)
    table = split_text(data, ".csv", german)
    assert table.delimiter == ";"
    names, columns = table.read()
    assert names == ("Größe", "x")
    assert [column.array().tolist() for column in columns] == [["groß", "klein"], [1234.5, 2.0]]
    with pytest.raises(Unreadable, match="is not text in ascii"):
        split_text("ü\n".encode(encoding), ".csv", Marks(encoding="ascii").check())
    with pytest.raises(dp.errors.InvalidInput, match="decimal"):
        Marks(";").check()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["31.12.2024", "01.02.2024"], ["2024-12-31", "2024-02-01"]),
        (["01.02.2024", "03.02.2024"], ["2024-02-01", "2024-02-03"]),
        (["31.12.2024 09:30", "01.02.2024 10:00"], ["2024-12-31T09:30", "2024-02-01T10:00"]),
        (["31/12/2024", "01/02/2024"], ["2024-12-31", "2024-02-01"]),
        (["12/31/2024", "01/02/2024"], ["2024-12-31", "2024-01-02"]),
        (["01/02/2024", "03/02/2024"], None),  # either reading fits
        (["31/12/2024", "12/31/2024"], None),
        (["31.13.2024", "01.02.2024"], None),
        (["31.12.2024", "2024-02-01"], None),  # one date in two ways may be two outputs
        (["31.12.2024", "1.2.2024"], ["2024-12-31", "2024-02-01"]),
        (["5.3.2024 09:30", "11.12.2024 10:00"], ["2024-03-05T09:30", "2024-12-11T10:00"]),
        (["05.03.2024", "1.2.2024"], None),  # one date in two ways may be two outputs
        (["5.3.2024", "30.2.2024"], None),
        (["31.12.2024", "unknown"], None),
    ],
)
def test_european_and_american_dates_are_dates_where_only_one_reading_fits(twin, written, read):
    [column] = read_table(twin("dates", {"day": written})).columns
    if read is None:
        assert column.tolist() == written
    else:
        assert column.dtype.kind == "M"
        assert np.array_equal(column, np.array(read, dtype="M8[us]"))


@pytest.mark.parametrize(
    "way",
    [
        "{:02}.03.24",
        "{}/3/2024",
        "{:02}/03/24",
        ("2024-03-{:02}", "{:02}.03.2024"),
        ("{}.3.2024", "{:02}.03.2024"),
    ],
)
def test_other_dates_are_text_and_noted(twin, way, seed):
    rng, ways = np.random.default_rng(seed), [way] if isinstance(way, str) else way
    p, q = (
        twin(k, {"day": [rng.choice(ways).format(day) for day in rng.integers(1, 9, 200)]})
        for k in "pq"
    )
    samples = dp.from_samples(p, q)
    assert ["are read as text" in note for note in samples.remarks] == [True]


def test_dates_with_leading_zeros_in_one_file_only_are_refused(twin):
    p, q = (
        twin(k, {"day": [way.format(1 + n % 9) for n in range(200)]})
        for k, way in (("p", "{:02}.03.2024"), ("q", "{}.3.2024"))
    )
    with pytest.raises(
        UnreadableFile, match="dates such as 05.03.2024 in p.* such as 5.3.2024 in q"
    ):
        read_pair(p, q)


def test_dates_that_may_be_read_in_two_ways_are_noted(twin, seed):
    rng = np.random.default_rng(seed)

    def draws(name, days):
        return twin(name, {"day": [f"{day:02}/03/2024" for day in rng.integers(1, days, 200)]})

    assert any(
        "day or the month" in note
        for note in dp.from_samples(draws("p", 13), draws("q", 13)).remarks
    )
    assert not dp.from_samples(draws("p", 29), draws("q", 29)).remarks
    p, q = read_pair(draws("p", 29), draws("q", 13))  # one reading fits both files
    assert {column.dtype.kind for column in (*p.columns, *q.columns)} == {"M"}
    assert {str(day)[5:7] for day in q.columns[0]} == {"03"}
    american = twin("q", {"day": [f"03/{day:02}/2024" for day in range(1, 30)] * 9})
    with pytest.raises(UnreadableFile, match=r"dates such as 31/12/2024 in p.* 12/31/2024 in q"):
        dp.from_samples(draws("p", 29), american)


def test_the_line_by_which_excel_names_the_delimiter_is_skipped(write):
    table = read_table(write("x.csv", "sep=;\r\nn;city\r\n1;Suva\r\n2;Nadi\r\n"))
    assert table.names == ("n", "city")
    assert table.columns[0].tolist() == [1, 2]


def test_codes_that_overflow_as_numbers_are_said_to_be_identifiers(write):
    with pytest.raises(UnreadableFile, match=r"one number beyond all doubles.*--drop"):
        read_table(write("x.csv", "id,n\n0252e675,1\n2463e357,2\nab,3\n"))
