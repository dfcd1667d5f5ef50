"""Stores on the command line: drawn into, gone on with, looked at."""

import json
from pathlib import Path

import pytest
from tests.e2e.test_cli import here, said  # noqa: F401

import dpassay as dp
from dpassay.cli import run

pytest.importorskip("pyarrow")

DRAW = ["draw", "mine_dp.py:one", "--per-call", "--pair", "0", "1", "--store", "runs"]


@pytest.mark.filterwarnings("ignore::dpassay.errors.StoreWarning")  # cells of another size
def test_draws_go_on_and_are_audited(capsys, here):  # noqa: F811
    status, out, err = said(capsys, *DRAW, "--n", "500", "--rng", "7")
    assert status == 0, err
    assert "mine_dp.one, seed 7" in out
    assert "500 draws a side on 0 and 1" in out
    status, out, _ = said(capsys, *DRAW, "--n", "2000", "--workers", "2")  # the seed is the store's
    assert status == 0
    for verb in (["audit", "--claim", "eps=0.5"], ["bound", "--of", "eps"], ["estimate"]):
        status, out, err = said(capsys, verb[0], "--store", "runs", *verb[1:], "--json", "-")
        assert status in (0, 1), err
        assert json.loads(out)["about"]["n"] == [2000 + 500 - 500, 2000]


def test_an_audit_keeps_its_draws(capsys, here):  # noqa: F811
    audit = ["audit", *DRAW[1:], "--claim", "eps=0.5", "--n", "1000", "--json", "-"]
    first, again = (said(capsys, *audit) for _ in range(2))
    assert first == again
    assert first[0] == 1
    assert len(dp.Store("runs")) == 1000
    plain = said(capsys, *[word for word in audit if word not in ("--store", "runs")])
    assert plain == first


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ([*DRAW, "--n", "600", "--seed", "1"], "seed 0, and these would be from seed 1"),
        ([*DRAW[:5], "2", *DRAW[6:], "--n", "600"], "would be on 2"),
        (["draw", "zoo:Laplace(scale=1.0)", *DRAW[3:]], "these would be of Laplace(scale=1.0)"),
        (["audit", "--store", "nowhere", "--claim", "eps=1"], "no store of draws in"),
        (["audit", "--store", "runs", "--pair", "0", "1", "--claim", "eps=1"], "leave --pair out"),
        (
            ["audit", "--samples", "p.npy", "q.npy", "--store", "runs", "--claim", "eps=1"],
            "leave --store out",
        ),
        (["audit", "--claim", "eps=1"], "--samples and --store"),
    ],
)
def test_what_does_not_fit_is_said(typed, answer, capsys, here):  # noqa: F811
    assert run([*DRAW, "--n", "20", "-q"]) == 0
    status, out, err = said(capsys, *typed)
    assert status == 2
    assert answer in err
    assert not out


def test_interrupting_says_where_the_draws_are(capsys, here):  # noqa: F811
    (here / "stops_dp.py").write_text(
        "calls = iter(range(10_000))\n"
        "def one(x, rng):\n"
        "    if next(calls) == 500:\n"
        "        raise KeyboardInterrupt\n"
        "    return x + rng.random()\n"
    )
    typed = [word.replace("mine_dp", "stops_dp") for word in DRAW]
    status, _, err = said(capsys, *typed, "--n", "500")
    assert status == 130
    assert "kept in" in err
    assert len(dp.Store("runs")) > 50


def test_a_monitor_keeps_its_draws_and_goes_on(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    watch = [
        "monitor",
        "zoo:Laplace(scale=1.0)",
        "--pair",
        "0",
        "1",
        "--claim",
        "eps=1.5",
        "--quiet",
    ]
    one = [*watch, "--max-n", "300", "--store", "runs", "--json"]
    assert run([*one, "first.json"]) in (0, 4)
    assert len(dp.Store("runs")) == 300
    assert run([*one, "again.json"]) in (0, 4)
    first, again = (
        dp.Verdict.from_json(Path(f"{name}.json").read_text()) for name in ("first", "again")
    )
    assert first.evidence.tolist() == again.evidence.tolist()
    stored = [
        "monitor",
        "--store",
        "runs",
        "--claim",
        "eps=1.5",
        "--quiet",
        "--json",
        "stored.json",
    ]
    assert run(stored) in (0, 4)
    assert dp.Verdict.from_json(Path("stored.json").read_text()).draws == 300


def test_a_mechanism_may_be_named(capsys, here):  # noqa: F811
    assert run([*DRAW, "--n", "20", "-q", "--identity", "mine, scale 1"]) == 0
    assert run([*DRAW, "--n", "40", "-q", "--identity", "mine, scale 1"]) == 0
    status, _, err = said(capsys, *DRAW, "--n", "40", "--identity", "mine, scale 2")
    assert status == 2
    assert "identity is mine, scale 1 in the store, and mine, scale 2 here" in err
