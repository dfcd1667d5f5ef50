"""Columns that are no outputs: what a refusal says, and that its advice works."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpassay as dp
from dpassay.auditing.counts import _of_column
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.privacy.provenance import Origin
from dpassay.sampling.files import frame_pair, read_pair

N = 600
ORIGIN = Origin("p.csv", 1, "", N, ("x",), 0, "")


@pytest.fixture
def wide(twin, seed):
    """Two files of noisy counts, a number of the run, and one cell without noise."""
    rng = np.random.default_rng(seed)

    def side(name, start, exact):
        noisy = {f"cell{k}": rng.poisson(50, N).tolist() for k in range(9)}
        return twin(name, {"run": [start + k for k in range(N)], **noisy, "exact": [exact] * N})

    return side("p", 0, 4), side("q", N, 5)


def test_an_output_without_noise_is_told_from_row_numbers_and_stays_in_the_advice(wide):
    with pytest.raises(UnreadableFile) as refused:
        read_pair(*wide)
    said = str(refused.value)
    index, constant = said.split("would look like a violation; ")
    assert "'run'" in index
    assert "exact" not in index
    assert "an output without noise, which is a violation, or a name of the input" in constant
    assert "If it is an output, name it among them with columns=['exact', 'cell0'," in constant
    assert "if it is a name, leave it out with drop=['run', 'exact']" in constant
    outputs = ["exact", *(f"cell{k}" for k in range(9))]
    verdict = dp.audit(dp.from_samples(*wide, columns=outputs), claim="eps=1")
    assert verdict.violated
    assert "exact" in str(verdict.witness.event)


def test_the_index_that_pandas_writes_is_said_to_have_no_name(write, seed):
    rng = np.random.default_rng(seed)
    frames = [pd.DataFrame({"x": rng.laplace(size=N), "run": rng.permutation(N)}) for _ in "pq"]
    files = [write(f"{k}.csv", one.to_csv()) for k, one in zip("pq", frames, strict=True)]
    verdict = dp.audit(dp.from_samples(*files, columns=["x"]), claim="eps=1")
    assert "rows of x, without column 1 (it has no name), run;" in str(verdict.about.files[0])


def test_several_columns_of_one_value_are_all_named(twin):
    noise = np.random.default_rng(0).normal(size=(2, N)).tolist()
    p, q = (
        twin(side, {"file": [side] * N, "n": [n] * N, "x": x})
        for side, n, x in zip("pq", (7, 8), noise, strict=True)
    )
    with pytest.raises(
        UnreadableFile, match="'file' has one value in all .* and so has column 'n'"
    ):
        read_pair(p, q)
    with pytest.raises(UnreadableFile, match=r"^column 'n' .*drop=\['file', 'n'\]"):
        read_pair(p, q, drop=["file"])


def test_a_verdict_says_which_columns_were_left_out(wide):
    verdict = dp.audit(dp.from_samples(*wide, drop=["run", "exact"]), claim="eps=1")
    assert [one.left_out for one in verdict.about.files] == [("run", "exact")] * 2
    assert str(verdict.about.files[0]).count("cell5, …, without run, exact;") == 1
    many = read_pair(*wide, columns=["exact"])[0].origin
    assert "600 rows of exact, without run, cell0, cell1," in str(many)


@pytest.fixture
def long(seed):
    """A table of four rows a release, with a column that names the input."""
    rng = np.random.default_rng(seed)
    labels = pd.DataFrame({"region": list("aabb"), "sex": list("fmfm")})
    rows = pd.concat([labels] * 2 * N, ignore_index=True)
    run = np.repeat(np.arange(2 * N), 4)
    side = np.where(run < N, "A", "B")
    table = rows.assign(neighbour=side, run=run, count=rng.poisson(50, len(rows)))
    return table[["neighbour", "run", "region", "sex", "count"]]


def test_the_advice_for_long_tables_leaves_out_the_name_of_the_input(long, twin):
    frames = [table.drop(columns=[]) for _, table in long.groupby("neighbour")]
    p, q = (twin(name, t.to_dict("list")) for name, t in zip("pq", frames, strict=True))
    for options in ({}, {"drop": ["neighbour", "run"]}):
        with pytest.raises(UnreadableFile) as refused:
            read_pair(p, q, **options)
        said = str(refused.value)
        assert said.count("neighbour") == (not options)
        assert ("leave out the column 'neighbour'" in said) == (not options)
        pivot = re.search(r"pivot\(.*?\)", said).group()
        tables = re.search(r"\[g\[.*\]", said).group()
        for advice in (f"p.{pivot}", tables):
            given = [eval(advice, {"p": frame}) for frame in frames]
            assert not dp.audit(dp.from_samples(*given), claim="eps=1").violated


def test_a_label_of_all_tables_of_a_side_is_refused(long):
    p, q = (
        [g.drop(columns="run").reset_index(drop=True) for _, g in table.groupby("run")]
        for _, table in long.groupby("neighbour")
    )
    with pytest.raises(InvalidInput, match="column 'neighbour' has one value in all rows") as error:
        dp.from_samples(p, q)
    assert "g.drop(columns=['neighbour'])" in str(error.value)
    as_output = dp.from_samples(*([g.to_dict("list") for g in side] for side in (p, q)))
    assert dp.audit(as_output, claim="eps=1").violated
    mixed = [*q[:-1], q[-1].assign(neighbour="A")]  # a release that says otherwise
    assert len(dp.from_samples(p, mixed)) == N


def test_tables_of_one_row_and_columns_alone_may_be_outputs_without_noise(seed):
    rng = np.random.default_rng(seed)
    one_row = [[pd.DataFrame({"n": [n], "x": [x]}) for x in rng.normal(size=N)] for n in (100, 101)]
    alone = [[pd.DataFrame({"n": [n, n]}) for _ in range(N)] for n in (100, 101)]
    for tables in (one_row, alone):
        assert dp.audit(dp.from_samples(*tables), claim="eps=1").violated


def test_columns_to_leave_out_are_named_with_those_that_already_are():
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame(
            {
                "out": rng.laplace(size=400),
                "run": rng.integers(k, k + 9, size=400),
                "date": pd.date_range("2024-01-01", periods=400),
                "comment": [None] * 400,
            }
        )
        for k in (0, 10)
    ]
    remarks = dp.from_samples(*frames, drop=["date"]).remarks
    assert any("drop=['date', 'run'] (--drop date,run)" in one for one in remarks)
    assert any("column 'comment' is empty in both tables" in one for one in remarks)


def test_the_witness_of_a_single_column_names_it_and_unused_rows_are_noted(write):
    rng = np.random.default_rng(0)
    columns = [np.round(x + rng.laplace(size=900), 2).tolist() for x in (0, 3)]
    texts = ["\n".join(["score", *map(str, column)]) for column in columns]
    samples = dp.from_samples(write("p.csv", texts[0]), write("q.csv", texts[1]))
    verdict = dp.audit(samples, claim="eps=1", n=800, rng=0)
    assert re.match("score [<≥]", str(verdict.witness.event))
    assert any("n left 100 and 100 rows" in note for note in verdict.about.notes)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("the output ≥ 2024-03-15", "median_date ≥ 2024-03-15"),
        ("output < 3 or output is None", "median_date < 3 or median_date is None"),
        ("the output's length ≥ 3", "the output's length ≥ 3"),
    ],
)
def test_a_single_column_is_named_without_an_article(words, said):
    origin = replace(ORIGIN, columns=("median_date",))
    assert _of_column(words, [origin]) == said


def frequencies(shift, rng, decimals, n=3000):
    drawn = pd.Series(np.round(50 + shift + rng.laplace(scale=8, size=n), decimals))
    return drawn.value_counts().rename_axis("value").reset_index(name="count")


@pytest.mark.parametrize("options", [{}, {"drop": ["count"]}, {"columns": ["count"]}])
@pytest.mark.parametrize("order", ["count", "value", "none"])
@pytest.mark.parametrize("decimals", [0, 1])
def test_a_frequency_table_is_refused_and_its_rows_can_be_repeated(decimals, order, options, seeds):
    tables = [frequencies(k, np.random.default_rng(seeds[k]), decimals) for k in (0, 1)]
    if order == "value":
        tables = [t.sort_values("value") for t in tables]
    if order == "none":
        tables = [t.sample(frac=1, random_state=k) for k, t in enumerate(tables)]
    with pytest.raises(
        UnreadableFile, match=r"looks like a frequency table.*'value'.*repeat"
    ) as said:
        dp.from_samples(*tables, **options)
    assert "t.loc[t.index.repeat(t['count'])].drop(columns='count').sample(frac=1) " in str(
        said.value
    )
    assert "row number" not in str(said.value)
    rows = [t.loc[t.index.repeat(t["count"])].drop(columns="count") for t in tables]
    rows = [t.sample(frac=1, random_state=k) for k, t in enumerate(rows)]
    assert len(dp.from_samples(*rows)) == 3000


def test_the_counts_of_a_few_categories_are_a_frequency_table(seed):
    rng = np.random.default_rng(seed)
    p, q = (pd.DataFrame({"kind": list("abcd"), "n": rng.poisson(50, 4) + 1}) for _ in "pq")
    with pytest.raises(UnreadableFile, match=r"frequency table.*dp.audit_counts"):
        dp.from_samples(p, q)
    assert len(dp.from_samples(p, q, columns=["kind", "n"])) == 4


def test_a_value_and_a_count_that_may_number_rows_are_told_both_readings(seed):
    rng = np.random.default_rng(seed)
    p, q = (pd.DataFrame({"run": range(30), "n": rng.poisson(50, 30) + 1}) for _ in "pq")
    with pytest.raises(UnreadableFile, match=r"as a row number.*If column 'n' counts how often"):
        dp.from_samples(p, q)


RELEASES = {
    "a number and a count": lambda r, n: {"x": r.laplace(size=n), "n": r.poisson(50, n) + 1},
    "rounded": lambda r, n: {"x": r.laplace(size=n).round(1), "n": r.poisson(50, n) + 1},
    "the same noise": lambda r, n: (lambda z: {"x": z, "n": (1000 + 99 * z).astype(int)})(
        np.sort(r.normal(size=n))
    ),
    "two counts": lambda r, n: {"x": r.integers(1, 400, n), "n": r.poisson(5, n) + 1},
    "runs in any order": lambda r, n: {"x": 7 * r.permutation(n), "n": r.poisson(50, n) + 1},
}


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("n", [10, 60, 300, 3000])
def test_releases_of_a_number_and_a_count_are_no_frequency_table(kind, n, seeds):
    for k in range(5):
        rng = np.random.default_rng(seeds[k])
        p, q = (pd.DataFrame(RELEASES[kind](rng, n)) for _ in "pq")
        said = ""
        try:
            frame_pair(p, q)
        except UnreadableFile as error:  # of row numbers, say
            said = str(error)
        assert "frequency" not in said


@pytest.mark.parametrize(
    ("top", "row"), [("Table 3;\nas of;\n;\nrun;x\n", 4), ("run;x\nno.;value\n", 2)]
)
def test_words_above_numbers_are_a_title_or_a_header(write, top, row, seed):
    rng = np.random.default_rng(seed)
    titled, plain = (
        "".join(f"{rng.integers(99)};{x:.3f}\n" for x in rng.laplace(size=3000)) for _ in "pq"
    )
    p, q = write("p.csv", top + titled), write("q.csv", "run;x\n" * (row == 2) + plain)
    for pair in ((p, q), (q, p)):
        with pytest.raises(
            UnreadableFile, match=f"of p.csv holds words .*row {row} like the header"
        ):
            read_pair(*pair)
    one = [write(f"{k}.txt", "Table 3\nvalue\n" + f"{k}\n{k + 1}\n" * 1000) for k in (3, 4)]
    with pytest.raises(UnreadableFile, match="row 2 like the header"):
        read_pair(*one)


def test_text_with_decimal_commas_in_a_frame_is_refused(seed):
    rng = np.random.default_rng(seed)
    frames = [pd.DataFrame({"x": rng.laplace(1000, 50, 300).round(1)}) for _ in "pq"]
    text = [f.astype(str).map(lambda cell: cell.replace(".", ",")) for f in frames]
    with pytest.raises(InvalidInput, match=r"'x' of p .*decimal comma.*decimal=','"):
        dp.from_samples(*text)
    assert len(dp.from_samples(*(f["x"].tolist() for f in text))) == 300
    assert len(dp.from_samples(*frames)) == 300


def test_labels_that_repeat_have_two_readings_and_a_remedy_for_each(seed):
    rng = np.random.default_rng(seed)
    days = ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"] * 100
    p, q = (pd.DataFrame({"day": days, "x": rng.laplace(size=700)}) for _ in "pq")
    for options in ({}, {"drop": ["day"]}):
        said = r"Either a release is 7 rows.*pivot.*Or every row is a release.*drop\(columns=\['day'\]\)"
        with pytest.raises(UnreadableFile, match=said):
            dp.from_samples(p, q, **options)
    assert len(dp.from_samples(p.drop(columns=["day"]), q.drop(columns=["day"]))) == 700


def test_an_empty_column_is_not_among_those_to_name(twin):
    rng = np.random.default_rng(0)
    p, q = (
        twin(k, {"run": list(range(60)), "x": rng.laplace(size=60).tolist(), "note": [None] * 60})
        for k in "pq"
    )
    with pytest.raises(UnreadableFile, match=r"columns=\['x'\]"):
        read_pair(p, q)


@pytest.mark.parametrize(
    ("label", "many"),
    [
        (lambda rng: np.sort(rng.integers(1, 53, N)), 52),
        (lambda rng: [f"KW{k:02}" for k in np.sort(rng.integers(1, 53, N))[::-1]], 52),
        (lambda rng: np.repeat(["m2", "m1", "m3"], rng.multinomial(N, [0.3, 0.3, 0.4])), 3),
        (lambda rng: np.sort(rng.random(N) < 0.5), 2),
    ],
    ids=["sorted numbers", "falling text", "blocks", "booleans"],
)
def test_labels_of_sorted_rows_are_refused(twin, seed, label, many):
    """A sound mechanism: only the label tells the files apart."""
    rng = np.random.default_rng(seed)
    p, q = (twin(k, {"label": list(label(rng)), "x": rng.laplace(size=N).tolist()}) for k in "pq")
    with pytest.raises(UnreadableFile, match=r"column 'label' of .* below 1e-09") as refused:
        read_pair(p, q)
    assert "--drop label" in str(refused.value)
    assert ("groupby('label')" in str(refused.value)) == (many > 3)  # it may number releases
    assert read_pair(p, q, drop=["label"])[0].names == ("x",)
    assert read_pair(p, q, columns=["label", "x"])[0].names == ("label", "x")


def test_orders_that_independent_rows_may_have_are_accepted(twin, seed):
    """A rare value in one row, or in two that follow each other; few rows in the order of a coin."""
    rng = np.random.default_rng(seed)
    rare = [int(k in (N - 2, N - 1)) for k in range(N)]
    few = [k >= 12 for k in range(24)]
    for label in (rare, [int(k == 7) for k in range(N)], few):
        x = rng.laplace(size=(2, len(label))).tolist()
        p, q = (twin(k, {"label": label, "x": y}) for k, y in zip("pq", x, strict=True))
        assert read_pair(p, q)[0].origin.rows == len(label)


def test_blocks_that_were_left_out_are_noted(twin, seed):
    """Of unequal sizes, as synthetic tables have: nobody knows whether they are single releases."""
    rng = np.random.default_rng(seed)
    sides = []
    for name in "pq":
        table = np.repeat(np.arange(60), rng.integers(5, 15, 60))
        rows = {"table": table.tolist(), "x": rng.laplace(size=table.size).tolist()}
        sides.append(twin(name, rows))
    verdict = dp.audit(dp.from_samples(*sides, drop=["table"]), claim="eps=1")
    assert "each of its 60 values has one block of rows" in str(verdict)
    with pytest.raises(UnreadableFile, match=r"If the rows with one 'table' are one release"):
        read_pair(*sides)


def test_numbers_of_another_range_are_noted(twin, seed):
    """Time stamps as numbers, in any order: the second file was written a day later."""
    rng = np.random.default_rng(seed)
    p, q = (
        twin(
            name,
            {
                "ts": (1_700_000_000 + day * 86_400 + rng.permutation(86_400)[:N]).tolist(),
                "x": rng.laplace(size=N).tolist(),
            },
        )
        for day, name in enumerate("pq")
    )
    verdict = dp.audit(dp.from_samples(p, q), claim="eps=1")
    assert "no value of column 'ts' occurs in both tables" in str(verdict)
