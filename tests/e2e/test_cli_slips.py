"""The command line where people slip, and what it promises about files, statuses and completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpassay.cli import run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def said(capsys, *arguments):
    """(exit status, stdout, stderr)."""
    status = run(list(arguments))
    out = capsys.readouterr()
    return status, out.out, out.err


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (("audit", "zoo:Laplace()", "--pair", "0,1", "--claim", "eps=1"), "--pair 0 1; got 0,1"),
        (
            ("audit", "--samples", "p.npy", "--claim", "eps=1"),
            "got p.npy. If it holds outputs on both",
        ),
        (
            ("audit", "--samples", "p.csv", "--claim", "eps=1"),
            "split it by the column that names the",
        ),
        (("audit", "--samples", "--claim", "eps=1"), "got nothing"),
        (("one-run", "m.csv", "n.csv", "--claim", "eps=1"), "got m.csv and n.csv. Join two files"),
        (("attack-rates", "--fpr", "0.1", "m.csv", "n.csv"), "a.assign(included=1)"),
        (("audit", "zoo:Laplace()", "--claim", "eps=1", "--pair"), "got nothing"),
        (("audit", "zoo:Laplace()", "--pair", "0", "1", "--json", "no/such/x.json"), "folder that"),
        (("bound", "zoo:Laplace()", "--pair", "0", "1", "--json", "no/such/x.json"), "folder that"),
        (("audit", "--samples=p.npy", "q.npy", "--claim", "eps=1"), "--samples takes two values"),
        (("audit", "--samples", "p.npy", "q.npy", "r.npy", "--claim", "eps=1"), "r.npy is a third"),
        (("audit", "p.npy", "q.npy", "--claim", "eps=1"), "given as --samples p.npy q.npy"),
        (
            ("audit", "--samples", "p.csv", "q.csv", "--delimiter", ";"),
            "tab and | between cells are",
        ),
        (
            ("bound", "--samples", "p.csv", "q.csv", "--separator=|"),
            "there is no --separator: comma,",
        ),
        (("verify", "--claim", "eps=1", "p.csv"), "given as --samples p.npy q.npy; got p.csv"),
        (("audit", "Laplace(scale=1)", "--claim", "eps=1"), 'did you mean "zoo:Laplace(scale=1)"?'),
        (("audit", "zoo:laplace", "--claim", "eps=1"), "did you mean zoo:Laplace?"),
        (("audit", "zoo:Gausian()", "--claim", "eps=1"), "did you mean zoo:Gaussian?"),
        (("audit", "zoo:Laplace()", "--claim", "1"), "write eps=1"),
        (("audit", "zoo:Laplace()", "--claim", "eps=1", "--confidence", "95"), "95 % is 0.95"),
        (("audit", "zoo:Laplace()", "--claim", "eps=1", "--n", "1.5"), "'1.5' is no whole number"),
        (
            ("audit", "zoo:Laplace()", "--claim", "eps=1", "--confidence", "0,99"),
            "'0,99' is no number",
        ),
        (("hunt", "zoo:Laplace()", "--claim", "eps=1", "--seconds", "0,5"), "'0,5' is no number"),
        (("plan", "--claim", "eps=1", "--excess", "20%"), "--excess is a share: 20 % is 0.2"),
        (
            ("counts", "9", "10", "1", "10", "--claim", "eps=1", "--confidence", "99%"),
            "99 % is 0.99",
        ),
        (
            ("audit", "zoo:Laplace()", "--claim", "eps=1", "--confidence", "0.05"),
            "did you mean 0.95?",
        ),
        (
            ("audit", "--samples", "p.csv", "q.csv", "--claim", "eps=1", "--json", "q.csv"),
            "--json would overwrite q.csv",
        ),
        (("estimate", "zoo:Laplace()", "--claim", "eps=1"), "audit tests a claim"),
        (("audit", "zoo:Laplace()", "--claim", "eps=1,0"), "the decimal mark is a point: 1.0"),
    ],
)
def test_likely_slips_are_answered_before_anything_is_drawn(capsys, here, typed, answer):
    status, _, err = said(capsys, *typed)
    assert status == 2
    assert answer in err


STATUSES = {
    "audit": "0 1 2 3 4 130",
    "replay": "0 1 2 3 4 130",
    "counts": "0 1 2 3 4",
    "one-run": "0 1 2 3 4",
    "attack-rates": "0 2 3",
    "verify": "0 2 3 5 130",
    "bound": "0 2 3 130",
    "estimate": "0 2 3 130",
    "plan": "0 2 3",
    "report": "0 2 3",
    "zoo": "0",
    "demo": "0 2 3 130",
}


@pytest.mark.parametrize("command", STATUSES)
def test_the_help_lists_the_exit_statuses(capsys, here, command):
    _, out, _ = said(capsys, command, "--help")
    told = " ".join(out.split()).partition("Exit status: ")[2].partition(".")[0]
    assert [word for word in told.replace(",", "").split() if word.isdigit()] == STATUSES[
        command
    ].split()


def test_every_command_and_every_status_is_in_the_help(capsys, here):
    _, out, _ = said(capsys, "--help")
    told = " ".join(out.split()).partition("Exit status: ")[2]
    for status in ("0", "1", "2", "3", "4", "5", "130"):
        assert f"{status} " in told
    for command in STATUSES:
        assert f" {command} " in out


AUDIT = ("audit", "zoo:Laplace(scale=0.5)", "--pair", "0", "1", "--claim", "eps=1", "--n", "4e3")


def test_the_verdict_is_said_even_if_a_file_cannot_be_written(capsys, here, monkeypatch):
    def full(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    status, out, err = said(capsys, *AUDIT, "--json", "verdict.json")
    assert status == 1  # what the verdict says, whatever becomes of its files
    assert "Violation of 1-DP" in out
    assert "verdict.json cannot be written: no space left" in err
    monkeypatch.setattr(Path, "write_bytes", full)
    status, out, err = said(capsys, *AUDIT, "--report", "page.html")
    assert status == 1
    assert "Violation of 1-DP" in out
    assert "page.html cannot be written: no space left" in err


def test_a_folder_that_may_not_be_written_to_is_found_before_drawing(capsys, here, monkeypatch):
    (
        here / "closed"
    ).mkdir()  # root may write anywhere: what the system answers is put in its mouth
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place).name != "closed")
    status, out, err = said(capsys, *AUDIT, "--json", "closed/verdict.json")
    assert (status, out) == (2, "")
    assert "no permission" in err


@pytest.mark.parametrize("n", ["4000", "4e3", "4_000"])
def test_draws_are_numbers_as_people_write_them(capsys, here, n):
    _, out, _ = said(capsys, *AUDIT[:-1], n, "--json", "-")
    assert json.loads(out)["about"]["n"] == [4000, 4000]


def test_the_next_step_names_the_file_that_was_written(capsys, here):
    _, out, _ = said(capsys, *AUDIT, "--json", "mine.json")
    assert "dpassay replay mine.json TARGET" in out
    assert "--json" not in out
    _, out, _ = said(capsys, *AUDIT)
    assert "next      add --json verdict.json, then dpassay replay verdict.json TARGET" in out


def test_a_replay_says_what_it_needs(capsys, here):
    said(capsys, *AUDIT, "--json", "mine.json")
    status, _, err = said(capsys, "replay", "mine.json")
    assert status == 2
    assert "on which draws? Give the mechanism, as in dpassay replay mine.json TARGET" in err


def test_the_option_that_messages_name_is_in_the_help(capsys, here):
    here_py = here / "raises.py"
    here_py.write_text("def f(x, size, rng):\n    raise RuntimeError('cheese')\n")
    _, _, err = said(capsys, "audit", f"{here_py}:f", "--pair", "0", "1", "--claim", "eps=1")
    assert "add --debug to see where" in err
    status, out, _ = said(capsys, "--help")
    assert status == 0
    assert "--debug" in out


def test_a_name_that_slipped_out_of_a_list_is_named(capsys, here):
    for file in "pq":
        (here / f"{file}.csv").write_text("id,ts,x\n" + "1,2,3\n" * 20)
    for slip in (("id,", "ts"), ("id", "ts")):
        files = ("--samples", "p.csv", "q.csv", "--drop", *slip)
        status, _, err = said(capsys, "audit", *files, "--claim", "eps=1")
        assert status == 2
        assert "'ts' stands by itself" in err
        assert "as in --drop id,time" in err
    status, _, err = said(capsys, "audit", "--sample", "p.csv", "q.csv", "--claim", "eps=1")
    assert status == 2
    assert "--sample" in err
    assert "--samples" in err
    assert "files of outputs" not in err


def test_a_report_is_an_html_page(capsys, here):
    status, _, err = said(capsys, *AUDIT, "--report", "out.pdf")
    assert status == 2
    assert "a report is an HTML page" in err
    assert not (here / "out.pdf").exists()


def test_a_remedy_helps(capsys, here):
    same = [*AUDIT[:2], "--pair", "1", "1", *AUDIT[5:]]
    status, out, _ = said(capsys, *same)
    assert status == 4
    assert "give two inputs that differ" in out
    assert "more draws" not in out


def test_shells_complete_commands_and_options():
    def completed(words, index):
        env = os.environ | {
            "_DPASSAY_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(index),
        }
        code = "import sys; sys.argv[0] = 'dpassay'; from dpassay.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        return done.stdout.split()

    assert completed("dpassay au", 1) == ["audit"]
    assert "--claim" in completed("dpassay audit --cl", 2)


@pytest.mark.parametrize("command", ["monitor", "verify"])
def test_one_claim_where_only_one_is_tested(capsys, here, command):
    status, _, err = said(
        capsys,
        command,
        "zoo:Laplace(scale=1.0)",
        "--pair",
        "0",
        "1",
        "--claim",
        "eps=9",
        "--claim=eps=1",
    )
    assert status == 2
    assert f"{command} takes one --claim, got 2" in err
    assert "0.975 each" in err


def test_a_claim_out_of_reach_could_not_have_been_seen(capsys, here):
    status, _, err = said(
        capsys,
        "audit",
        "zoo:Laplace(scale=1.0)",
        "--pair",
        "0",
        "1",
        "--claim",
        "eps=100",
        "--n",
        "1000",
    )
    assert status == 4
    assert "dpassay plan" in err


def test_of_a_file_no_more_is_read_than_is_said(capsys, tmp_path):
    for name in ("p.csv", "q.csv"):
        (tmp_path / name).write_text(
            "".join(f"{k % 7}\n" for k in range(len(name) * 100)) + name[0]
        )
    files = ["--samples", str(tmp_path / "p.csv"), str(tmp_path / "q.csv")]
    assert run(["audit", *files, "--claim", "eps=1", "--max-bytes", "500"]) == 2
    assert "more than 500 bytes" in capsys.readouterr().err
