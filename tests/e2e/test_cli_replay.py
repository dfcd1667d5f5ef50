"""Verdicts on files, replayed on other files by somebody else."""

import json

import numpy as np
import pytest
from tests.helpers import csv_of

import dpassay as dp
from dpassay.cli import run
from dpassay.errors import InvalidInput


def _table(seed, shift, n=3000, **names):
    rng = np.random.default_rng(seed)
    columns = {
        "id": [f"{seed}-{k}" for k in range(n)],
        names.get("value", "value"): np.round(shift + rng.normal(size=n), 4).tolist(),
        "count": rng.poisson(10 + shift, n).tolist(),
    }
    return csv_of(columns)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Draws of a violation in p and q, fresh ones in fp and fq, the verdict in v.json."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    for name, seed, shift in (("p", 1, 1.0), ("q", 2, 0.0), ("fp", 3, 1.0), ("fq", 4, 0.0)):
        (tmp_path / f"{name}.csv").write_text(_table(seed, shift))
    (tmp_path / "rp.csv").write_text(_table(3, 1.0, value="Value"))
    (tmp_path / "rq.csv").write_text(_table(4, 0.0, value="Value"))
    return tmp_path


def _said(capsys, *arguments):
    status = run(list(arguments))
    out = capsys.readouterr()
    return status, " ".join(out.out.replace("│", " ").split()), " ".join(out.err.split())


AUDIT = ("audit", "--samples", "p.csv", "q.csv", "--drop", "id", "--json", "v.json")


def test_a_replay_uses_the_columns_of_the_verdict(files, capsys):
    status, out, _ = _said(capsys, *AUDIT, "--claim", "eps=0.5", "--confidence", "0.99")
    assert status == 1
    assert "dpassay replay v.json --samples FRESH-FIRST FRESH-SECOND --confidence 0.99" in out
    fresh = ("replay", "v.json", "--samples", "fp.csv", "fq.csv")
    status, out, _ = _said(capsys, *fresh)
    assert status == 1
    assert "rows of value, count" in out
    (files / "rq2.csv").write_text(_table(4, 0.0, value="Value"))
    for paths, words in (
        (("rp.csv", "rq.csv"), "columns names 'value', which rp.csv does not have"),
        (("p.csv", "q.csv"), "these are the draws on which the event was found"),
    ):
        status, _, err = _said(capsys, "replay", "v.json", "--samples", *paths)
        assert status == 2
        assert words in err
    status, _, err = _said(
        capsys, "replay", "v.json", "--samples", "rp.csv", "rq.csv", "--drop", "id"
    )
    assert status == 2
    assert "used 'value', 'count'; rp.csv has 'Value', 'count'" in err
    verdict = dp.Verdict.from_json((files / "v.json").read_text())
    with pytest.raises(InvalidInput, match="another kind|same columns"):
        dp.replay(verdict, dp.from_samples(np.zeros(50), np.ones(50)))


def test_a_key_on_one_input_only_is_found_and_replayed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("p", 1), ("q", 2), ("fp", 3), ("fq", 4)):
        counts = np.random.default_rng(seed).poisson((40, 2), (500, 2)).tolist()
        rows = [{"flu": a, "lupus": b} if b and "p" in name else {"flu": a} for a, b in counts]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = ("audit", "--samples", "p.jsonl", "q.jsonl", "--claim", "eps=1", "--json", "v.json")
    assert _said(capsys, *found)[0] == 1
    status, out, _ = _said(capsys, "replay", "v.json", "--samples", "fp.jsonl", "fq.jsonl")
    assert status == 1
    assert "500 rows of flu, lupus, 500 cells without a value" in out


def test_exchanged_files_are_pointed_out(files, capsys):
    assert _said(capsys, *AUDIT, "--claim", "eps=0.5")[0] == 1
    status, out, _ = _said(capsys, "replay", "v.json", "--samples", "fq.csv", "fp.csv")
    assert status != 1
    assert "were the two exchanged?" in out
    assert "exchanged" not in _said(capsys, "replay", "v.json", "--samples", "fp.csv", "fq.csv")[1]
    verdict = dp.Verdict.from_json((files / "v.json").read_text())
    again = dp.replay(verdict, dp.from_samples("fq.csv", "fp.csv", columns=["value", "count"]))
    assert "exchanged" in str(again)
    assert "likelier on the" in again.about.notes[0]


def test_a_single_column_keeps_its_name(files, capsys):
    one = ("audit", "--samples", "p.csv", "q.csv", "--columns", "value", "--claim", "eps=0.5")
    assert _said(capsys, *one, "--json", "v.json")[0] == 1
    fresh = ("replay", "v.json", "--samples", "fp.csv", "fq.csv")
    assert _said(capsys, *fresh)[0] == 1
    status, _, err = _said(capsys, *fresh, "--columns", "count")
    assert status == 2
    assert "used 'value'; fp.csv has 'count'" in err
    for name, seed, shift in (("np", 5, 1.0), ("nq", 6, 0.0)):  # without a name there is no other
        values = shift + np.random.default_rng(seed).normal(size=3000)
        np.save(files / f"{name}.npy", np.round(values, 4))
    assert _said(capsys, "replay", "v.json", "--samples", "np.npy", "nq.npy")[0] == 1


def test_several_claims_are_replayed_together(files, capsys):
    status, out, _ = _said(capsys, *AUDIT, "--claim", "eps=0.5", "--claim", "mu=0.5")
    assert status == 1
    assert out.count("dpassay replay v.json --samples") == 2
    assert "--json verdict.json" not in out
    status, _, _ = _said(
        capsys, "replay", "v.json", "--samples", "fp.csv", "fq.csv", "--json", "again.json", "-q"
    )
    found = [dp.Verdict.from_dict(one) for one in json.loads((files / "again.json").read_text())]
    assert status == 1
    assert [str(one.claim) for one in found] == ["0.5-DP", "0.5-GDP"]
    assert [one.confidence for one in found] == pytest.approx([0.975, 0.975])
    assert all(one.violated and one.witness.n_p == 3000 for one in found)


def test_guesses_of_one_run_say_what_to_do_instead(tmp_path, capsys):
    rng = np.random.default_rng(0)
    coins = rng.integers(2, size=400)
    found = dp.one_run(3 * coins + rng.normal(size=400), coins, claim="eps=1", guesses=100, rng=0)
    (tmp_path / "v.json").write_text(found.to_json())
    status, _, err = _said(capsys, "replay", str(tmp_path / "v.json"), "zoo:Laplace(scale=1.0)")
    assert status == 2
    assert "fresh coins" in err
    assert "classifier" not in err


def test_the_command_of_a_replay_reads_files_as_the_audit_did(files, capsys):
    for name in ("p", "q"):
        lines = (files / f"{name}.csv").read_text().replace(",", ";").replace(".", ",")
        (files / f"{name}.csv").write_text(lines.replace("value", "größe"), encoding="cp1252")
    typed = ("--decimal", ",", "--encoding", "cp1252")
    _, out, _ = _said(capsys, *AUDIT, *typed, "--claim", "eps=0.5")
    command = "FRESH-FIRST FRESH-SECOND --decimal , --encoding cp1252"
    assert command in out
    _said(capsys, *AUDIT, *typed, "--claim", "eps=0.5", "--json", "v.json", "-q")
    assert run(["report", "v.json", "--out", "v.html"]) == 0
    assert command in (files / "v.html").read_text(encoding="utf-8")


def test_bounds_and_replays_write_reports(files, capsys):
    draws, page = ("zoo:Laplace(scale=0.5)", "-n", "800"), files / "page.html"
    asked = ("--pair", "0", "1", "--json", "b.json", "--report", str(page))
    assert _said(capsys, "bound", *draws, *asked)[0] == 0
    assert "may certify a little more or less" in page.read_text(encoding="utf-8")
    _said(capsys, "replay", "b.json", *draws, "--report", str(page))
    assert "Audit of a claim" in page.read_text(encoding="utf-8")


def test_the_claim_of_a_mechanism_of_ones_own_is_replayed(files, capsys):
    code = """
from dataclasses import dataclass
import dpassay as dp

@dataclass(frozen=True)
class OwnDP(dp.PureDP):
    pass

def release(x, size, rng):
    return x + rng.laplace(scale=0.5, size=size)
"""
    (files / "own_claim.py").write_text(code)
    made = {}
    exec(code, made)
    verdict = dp.audit(made["release"], (0.0, 1.0), made["OwnDP"](1.0), n=2000, rng=0)
    (files / "v.json").write_text(verdict.to_json().replace("OwnDP", "OwnDP2"))
    (files / "own_claim.py").write_text(code.replace("OwnDP", "OwnDP2"))
    status, _, err = _said(capsys, "replay", "v.json", "zoo:Laplace(scale=0.5)", "-n", "500")
    assert status == 2
    assert "unknown record type 'OwnDP2'; if it is a class of your own, import the module" in err
    assert _said(capsys, "replay", "v.json", "own_claim.py:release", "-n", "500")[0] == 1


def test_more_rows_than_there_are(files, capsys):
    status, _, err = _said(capsys, *AUDIT, "--claim", "eps=0.5", "--n", "10000")
    assert status in (2, 4)
    assert "n = 10,000 draws per side were asked for, and there are 3,000 and 3,000" in err


def test_one_run_has_a_report(tmp_path, capsys):
    rng = np.random.default_rng(0)
    coins = rng.integers(2, size=400)
    scores = 3 * coins + rng.normal(size=400)
    (tmp_path / "s.csv").write_text(csv_of({"score": scores.tolist(), "included": coins.tolist()}))
    page = tmp_path / "page.html"
    given = ("one-run", str(tmp_path / "s.csv"), "--report", str(page), "--guesses", "100")
    status, out, _ = _said(capsys, *given, "--claim", "eps=1")
    assert status == 1
    assert "fair coin" in out
    assert "fair coin" in page.read_text()
    assert _said(capsys, *given)[0] == 0  # a bound, without a claim
    assert "A lower bound" in page.read_text()
    assert "fair coin" in page.read_text()


def test_of_several_claims_those_without_a_classifier_are_replayed(files, capsys):
    """What is left out is named; where nothing is left, the message names the claim."""
    _said(capsys, *AUDIT, "--claim", "eps=0.5", "--claim", "mu=0.5")
    one, other = json.loads((files / "v.json").read_text())
    gone = {"layout": None, "score_function": None, "whole": [], "partial": []}
    other["witness"]["event"] |= gone | {"live": True}
    (files / "mixed.json").write_text(json.dumps([one, other]))
    fresh = ("--samples", "fp.csv", "fq.csv", "--json", "-")
    status, out, err = _said(capsys, "replay", "mixed.json", *fresh)
    assert status == 1
    assert json.loads(out)["claim"] == one["claim"]
    assert "0.5-GDP is not replayed: its event needs the classifier" in err
    (files / "live.json").write_text(json.dumps(other))
    status, _, err = _said(capsys, "replay", "live.json", *fresh)
    assert status == 2
    assert "which tests 0.5-GDP, needs the classifier" in err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda text: text.replace('"violated": true', '"violated": "no"'),
            "violated must be true or",
        ),
        (lambda text: text.replace('"n_p": ', '"n_p": -'), "witness"),
        (lambda text: "[" * 100_000, "nested too deeply"),
        (lambda text: text[: len(text) // 2], "not JSON"),
    ],
)
def test_a_damaged_verdict_is_bad_input(files, capsys, change, words):
    _said(capsys, *AUDIT, "--claim", "eps=0.5")
    text = (files / "v.json").read_text()
    assert change(text) != text
    (files / "v.json").write_text(change(text))
    status, _, err = _said(capsys, "replay", "v.json", "--samples", "fp.csv", "fq.csv")
    assert status == 2
    assert words in err
