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
from dpassay.sampling.files import read_pair

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
