"""What a command leaves behind: files whatever becomes of the terminal, and the status of its verdict."""

import io
import json
import os
import sys

import numpy as np
import pytest
from tests.e2e.test_cli import here, said  # noqa: F401
from tests.e2e.test_cli_exits import typed

import dpassay as dp

VIOLATION = ["audit", "zoo:Laplace(scale=0.5)", "--pair", "0", "1", "--claim", "eps=1"]
CLEAR = [*VIOLATION[:-1], "eps=3"]


def test_an_extra_that_is_missing_is_said_before_the_first_draw(capsys, here, monkeypatch):  # noqa: F811
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.setattr("dpassay.auditing.audits.audit", lambda *a, **k: pytest.fail("it drew"))
    status, out, err = said(capsys, *VIOLATION, "--report", "page.html")
    assert (status, out) == (2, "")
    assert "dpassay[report]" in err


@pytest.mark.parametrize(("audit", "status"), [(VIOLATION, 1), (CLEAR, 2)])
def test_a_violation_keeps_its_status_though_its_report_fails(
    capsys,
    here,  # noqa: F811
    monkeypatch,
    audit,
    status,
):
    def full(*given, **options):
        raise OSError("the disk is full")

    monkeypatch.setattr("dpassay.report.write", full)
    asked = ["--report", "page.html", "--json", "verdict.json"]
    found, out, err = said(capsys, *audit, *asked)
    assert found == status
    assert "the disk is full" in err
    assert ("no violation" in out.lower()) == (audit is CLEAR)
    assert dp.Verdict.from_json((here / "verdict.json").read_text()).violated == (status == 1)


@pytest.mark.parametrize(
    "verb", [["audit", "--claim", "eps=1"], ["verify", "--claim", "eps=1"], ["estimate"], ["bound"]]
)
def test_more_draws_than_a_file_has_rows_are_bad_input(capsys, here, verb):  # noqa: F811
    for seed, name in enumerate(("p", "q")):
        np.save(f"{name}.npy", np.random.default_rng(seed).integers(0, 9, 500))
    samples = ["--samples", "p.npy", "q.npy", "--n", "501"]
    status, out, err = said(capsys, verb[0], *samples, *verb[1:])
    assert (status, out) == (2, "")
    assert "there are 500 and 500" in err


def test_a_terminal_that_lacks_a_character_loses_nothing(here):  # noqa: F811
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    asked = [*VIOLATION, "--json", "verdict.json", "--report", "page.html"]
    done = typed(*asked, env=ascii_only)
    assert done.returncode == 1, done.stderr
    assert "violation" in done.stdout.lower()
    assert "\\u03b5" in done.stdout
    assert (here / "page.html").exists()
    written = dp.Verdict.from_json((here / "verdict.json").read_text(encoding="utf-8"))
    on_stdout = typed(*VIOLATION, "--json", "-", "--report", "page.html", env=ascii_only)
    assert on_stdout.returncode == 1
    assert dp.Verdict.from_json(on_stdout.stdout).to_json() == written.to_json()


def test_json_in_ascii_escapes_every_character(monkeypatch):
    from dpassay.cli.result_output import write_text

    text = json.dumps({"é ε 🎲": 'a "quoted" ÿ'}, ensure_ascii=False)
    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding="ascii"))
    write_text("-", text)
    sys.stdout.flush()
    assert json.loads(held.getvalue().decode("ascii")) == json.loads(text)
