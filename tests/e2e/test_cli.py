"""The command line, in process: what it says, and how it ends."""

import hashlib
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import dpassay as dp
from dpassay.cli import run
from dpassay.cli.result_output import exit_status

MINE = """
import numpy as np

def release(x, size, rng):
    return np.round(x + rng.laplace(size=size), 6)

def one(x, rng):
    return round(float(x + rng.laplace()), 6)

def wrong(x):
    return x

def fails(x, size, rng):
    raise RuntimeError("out of cheese")

def stops(x, size, rng):
    raise KeyboardInterrupt

number = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "mine_dp.py").write_text(MINE)
    return tmp_path


def said(capsys, *arguments):
    """(exit status, stdout, stderr)."""
    status = run(list(arguments))
    out = capsys.readouterr()
    return status, out.out, out.err


def test_version_and_help(capsys):
    assert said(capsys, "--version")[:2] == (0, f"dpassay {dp.__version__}\n")
    for command in (
        "audit",
        "bound",
        "monitor",
        "estimate",
        "counts",
        "one-run",
        "attack-rates",
        "plan",
        "replay",
        "report",
        "zoo",
        "demo",
    ):
        status, out, _ = said(capsys, command, "--help")
        assert status == 0
        assert "Example: dpassay" in out


def test_monitor(here, capsys):
    mine, pair = "mine_dp.py:release", ("--pair", "0", "1", "--max-n", "3000")
    status, out, _ = said(capsys, "monitor", mine, *pair, "--claim", "eps=0.4", "--json", "v.json")
    assert status == 1
    assert "Violation of 0.4-DP" in out
    assert "it holds wherever the draws stop" in out
    found = dp.Verdict.from_json((here / "v.json").read_text())
    assert found.draws < 3000
    assert said(capsys, "monitor", mine, *pair, "--claim", "eps=2", "-q")[0] == 0
    assert said(capsys, "monitor", mine, *pair)[0] == 2


def test_zoo_lists_mechanisms_with_their_truths(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = said(capsys, "zoo")
    assert status == 0
    for word in ("Laplace", "Gaussian", "RandomizedResponse", "ReportNoisyMax", "1.492"):
        assert word in out


def test_counts_exit_status_is_the_verdict(capsys, here):
    status, out, _ = said(capsys, "counts", "450", "1000", "184", "1000", "--claim", "eps=0.5")
    assert status == 1
    assert "Violation of 0.5-DP" in out
    assert "ε ≥ 0.748" in out
    status, out, _ = said(capsys, "counts", "450", "1000", "400", "1000", "--claim", "eps=0.5")
    assert status == 0
    assert "No violation of 0.5-DP detected" in out
    status, out, _ = said(capsys, "counts", "0", "1000", "0", "1000", "--claim", "eps=0.5")
    assert status == 4
    assert "Too weak: a large violation of 0.5-DP" in out
    assert "No violation" not in out


# --- an audit that could not have seen anything


BLIND = ("audit", "zoo:NoisyHistogram(0.5)", "--claim", "eps=0.5", "--n", "30")


def test_a_blind_audit_says_so_first_and_what_to_do(capsys, here):
    status, out, _ = said(capsys, *BLIND)
    assert status == 4
    title, reason = out.splitlines()[:2]
    assert "Too weak: a large violation of 0.5-DP" in title
    assert reason.startswith("│ Even on the best event only ε = ")
    assert "would have been detected with probability 0.9" in reason
    (following,) = [line for line in out.splitlines() if line.startswith("│ next")]
    for remedy in ("more draws", "dpassay plan", "--loss"):
        assert remedy in following
    assert "power" not in out  # the reason says it
    assert "No violation" not in out


def test_a_blind_verdict_stays_blind_as_json_and_in_a_report(capsys, here):
    status, out, _ = said(capsys, *BLIND, "--json", "-", "--report", "out.html")
    assert status == 4
    verdict = dp.Verdict.from_json(out)
    assert verdict.tone == "blind"
    assert verdict.blind == json.loads(out)["blind"]
    page = (here / "out.html").read_text(encoding="utf-8")
    assert '<div class="banner blind">' in page
    assert verdict.blind in page


@pytest.mark.parametrize(
    ("tones", "status"),
    [
        (["clear"], 0),
        (["clear", "blind"], 4),
        (["blind", "violation"], 1),
        (["violation", "clear", "blind"], 1),
        (["clear", "clear"], 0),
    ],
)
def test_the_exit_status_of_several_claims(tones, status):
    hits = {"violation": (450, 184), "clear": (250, 184), "blind": (0, 0)}
    verdicts = [dp.audit_counts(p, 1000, q, 1000, "eps=0.5") for p, q in map(hits.get, tones)]
    assert [verdict.tone for verdict in verdicts] == tones
    assert exit_status(verdicts) == status


def test_a_replay_of_too_few_draws_is_blind(capsys, here):
    target = "zoo:Laplace(scale=0.8)"
    said(capsys, "audit", target, "--claim", "eps=1", "--n", "8000", "--json", "verdict.json")
    status, out, _ = said(capsys, "replay", "verdict.json", target, "--n", "25", "--seed", "3")
    assert status == 4
    assert "Too weak: a large violation of 1-DP" in out
    assert "--loss" not in out  # a replay has none


def test_both_bounds_of_an_approximate_claim(capsys, here):
    counted = ("counts", "450", "1000", "184", "1000", "--claim")
    status, out, _ = said(capsys, *counted, "eps=0.5, delta=0.01")
    assert status == 1
    assert "ε ≥ 0.722 with confidence 0.95" in out
    assert "and δ ≥ 0.07283 at ε = 0.5, claimed 0.01; both hold at once" in out
    status, out, _ = said(capsys, *counted, "eps=0.5, delta=0.01 in delta")
    assert status == 1
    assert "Violation of (0.5, 0.01)-DP in δ" in out
    assert "and ε ≥ 0.6638 at δ = 0.01, claimed 0.5; both hold at once" in out
    assert "both hold" not in said(capsys, *counted, "eps=0.5")[1]


@pytest.mark.parametrize(
    "target", ["mine_dp.py:release", "mine_dp:release", "zoo:Laplace(scale=1.0)"]
)
def test_audit_of_every_kind_of_target(capsys, here, target):
    status, out, _ = said(
        capsys, "audit", target, "--pair", "0", "1", "--claim", "eps=0.5", "--n", "4000"
    )
    assert status == 1
    assert "Violation of 0.5-DP" in out
    assert re.search(r"witness +.*output", out)


def test_audit_of_a_function_that_is_called_once_per_output(capsys, here):
    status, _, err = said(
        capsys, "audit", "mine_dp.py:one", "--pair", "0", "1", "--claim", "eps=2", "--n", "400"
    )
    assert status == 2
    assert "from_function" in err or "--per-call" in err
    status, _, _ = said(
        capsys,
        "audit",
        "mine_dp.py:one",
        "--per-call",
        "--pair",
        "0",
        "1",
        "--claim",
        "eps=2",
        "--n",
        "400",
    )
    assert status == 0


def test_json_on_stdout_is_all_that_stdout_holds_and_can_be_replayed(capsys, here):
    arguments = ["audit", "zoo:Laplace(scale=0.8)", "--claim", "eps=1", "--n", "20000"]
    status, out, _ = said(capsys, *arguments, "--json", "-")
    assert status == 1
    verdict = dp.Verdict.from_json(out)
    assert verdict.violated
    (here / "verdict.json").write_text(out)
    status, out, _ = said(
        capsys, "replay", "verdict.json", "zoo:Laplace(scale=0.8)", "--n", "20000"
    )
    assert status == 1
    assert "Violation" in out


@pytest.mark.parametrize("loss", ["boosting", "logistic"])
def test_an_event_of_a_learned_ranking_is_replayed(capsys, here, loss):
    target = "zoo:NoisyHistogram(0.5, broken=True)"
    arguments = ("audit", target, "--claim", "eps=0.5", "--n", "4000", "--loss", loss)
    status, out, _ = said(capsys, *arguments, "--json", "verdict.json")
    assert status == 1
    assert "dpassay replay verdict.json" in out
    event = dp.Verdict.from_json((here / "verdict.json").read_text(encoding="utf-8")).witness.event
    assert event.score_function is not None
    status, out, _ = said(capsys, "replay", "verdict.json", target, "--n", "4000")
    assert status == 1
    assert "Violation of 0.5-DP" in out


def test_an_event_that_is_not_data_offers_no_replay(capsys, here):
    arguments = ("audit", "zoo:NoisyHistogram(0.5, broken=True)", "--claim", "eps=0.5")
    status, out, _ = said(
        capsys, *arguments, "--n", "4000", "--loss", "knn", "--json", "verdict.json"
    )
    assert status == 1
    assert "dpassay replay" not in out
    rejects(capsys, "cannot be replayed", "replay", "verdict.json", arguments[1])


def test_several_claims_make_a_list(capsys, here):
    status, out, _ = said(
        capsys,
        "audit",
        "zoo:Laplace()",
        "--claim",
        "eps=0.5",
        "--claim",
        "mu=2",
        "--n",
        "4000",
        "--json",
        "-",
    )
    assert status == 1
    assert [v["violated"] for v in json.loads(out)] == [True, False]


def test_samples_from_files(capsys, here):
    rng = np.random.default_rng(0)
    np.save("p.npy", rng.laplace(size=4000))
    np.savetxt("q.csv", 1 + rng.laplace(size=3000))
    status, out, _ = said(capsys, "audit", "--samples", "p.npy", "q.csv", "--claim", "eps=0.5")
    assert status == 1
    assert "p.npy" in out


@pytest.fixture
def tables(here):
    """p.csv and q.csv hold a row number, a number and words; so do fresh-p.csv and fresh-q.csv."""
    rng = np.random.default_rng(0)
    for name in ("p.csv", "q.csv", "fresh-p.csv", "fresh-q.csv"):
        numbers = rng.laplace(size=1000) + name.endswith("q.csv")
        words = rng.choice(["x", "y", ""], size=1000)
        rows = [f"{k},{a},{b}" for k, (a, b) in enumerate(zip(numbers, words, strict=True))]
        (here / name).write_text("\n".join(["id,a,b", *rows]) + "\n")
    return here


@pytest.mark.parametrize(
    "chosen", [("--drop", "id"), ("--columns", "a,b"), ("--columns", 'a, "b"')], ids=" ".join
)
def test_columns_of_files_are_chosen(capsys, tables, chosen):
    audit = ("audit", "--samples", "p.csv", "q.csv", "--claim", "eps=0.5")
    status, out, err = said(capsys, *audit)
    assert status == 2
    assert "--drop id" in err
    status, out, _ = said(capsys, *audit, *chosen, "--relation", "replace")
    assert status == 1
    assert "'p.csv' and 'q.csv' (replace one record)" in out
    lines = [line for line in out.splitlines() if line.startswith("│ file")]
    assert [line.split()[2] for line in lines] == ["p.csv:", "q.csv:"]
    assert "1,000 rows of a, b, " in lines[0]
    assert "cells without a value" in lines[0]
    assert "SHA-256" in lines[0]


def test_where_the_draws_came_from_is_in_the_json_and_the_report(capsys, tables):
    arguments = ("audit", "--samples", "p.csv", "q.csv", "--columns", "a", "--claim", "eps=0.5")
    status, out, _ = said(capsys, *arguments, "--json", "-", "--report", "out.html")
    assert status == 1
    files = dp.Verdict.from_json(out).about.files
    assert [(one.file, one.rows, one.columns) for one in files] == [
        ("p.csv", 1000, ("a",)),
        ("q.csv", 1000, ("a",)),
    ]
    page = (tables / "out.html").read_text(encoding="utf-8")
    for one in files:
        assert one.sha256 == hashlib.sha256((tables / one.file).read_bytes()).hexdigest()
        assert f"<td>{one.sha256}</td>" in page
    assert str(tables) not in page


def test_an_estimate_from_chosen_columns(capsys, tables):
    arguments = ("estimate", "--samples", "p.csv", "q.csv", "--json", "-")
    status, out, _ = said(capsys, *arguments, "--drop", "id,b")
    assert status == 0
    assert dp.Profile.from_json(out).epsilon == pytest.approx(1.0, abs=0.5)
    assert said(capsys, *arguments)[0] == 2
    again = said(capsys, *arguments, "--drop", "id", "--drop", "b", "--drop", "b,id")
    assert again[:2] == (0, out)
    assert said(capsys, *arguments, "--columns", "a", "--columns", "b")[0] == 0


def test_a_replay_on_samples_needs_fresh_ones(capsys, tables):
    arguments = ("--samples", "p.csv", "q.csv", "--drop", "id")
    said(capsys, "audit", *arguments, "--claim", "eps=0.5", "--json", "verdict.json")
    swapped = ("--samples", "q.csv", "p.csv", "--drop", "id")
    for known in (arguments, swapped):
        status, _, err = said(capsys, "replay", "verdict.json", *known)
        assert status == 2
        assert "the draws on which the event was found" in err
    fresh = ("--samples", "fresh-p.csv", "fresh-q.csv", "--columns", "a,b")
    for draws, counted in (((), "1,000"), (("--n", "900"), "900")):
        status, out, _ = said(capsys, "replay", "verdict.json", *fresh, *draws)
        assert status == 1
        assert f"of {counted} on the first input" in out


def test_mixed_columns_are_outcomes(capsys, here):
    rng = np.random.default_rng(0)
    for name, share in (("p.csv", 0.3), ("q.csv", 0.1)):
        failed = rng.random(2000) < share
        rows = [
            f"{x}" if not f else "oops" for f, x in zip(failed, rng.normal(size=2000), strict=True)
        ]
        (here / name).write_text("\n".join(["a", *rows]) + "\n")
    status, out, _ = said(capsys, "audit", "--samples", "p.csv", "q.csv", "--claim", "eps=0.5")
    assert status == 1
    assert "oops" in out


def test_the_relation_is_recorded(capsys, here):
    audit = ("audit", "mine_dp.py:release", "--pair", "0", "1", "--claim", "eps=0.5", "--n", "4000")
    status, out, _ = said(capsys, *audit, "--relation", "add_remove")
    assert status == 1
    assert "0 and 1 (add or remove one record)" in out
    assert "unspecified" not in said(capsys, *audit)[1]


def test_the_claims_of_the_help_are_read(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    _, out, _ = said(capsys, "audit", "--help")
    (line,) = [line for line in out.splitlines() if "--claim" in line and "May be given" in line]
    texts = re.findall(r'"(.*?)"', line)
    assert "eps=1, delta=1e-5" in texts
    assert len({str(dp.claim(text)) for text in texts}) == len(texts) == 5


def test_help_has_a_short_option_and_no_value_for_flags(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    status, out, _ = said(capsys, "audit", "-h")
    assert status == 0
    assert "<bool>" not in out
    assert "<" not in out.replace("<str>", "")  # the argument TARGET
    assert "3 internal error, 4 could not have detected" in " ".join(out.split())


def test_doctor_names_versions_and_what_is_missing(capsys, monkeypatch):
    from dpassay.cli import tour

    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(tour, "_version", lambda name: None if name == "distributed" else "1.2.3")
    status, out, _ = said(capsys, "doctor")
    assert status == 0
    assert "numpy 1.2.3" in out
    assert "missing: pip install 'dpassay[dask]'" in out
    assert "Self-test passed" in out
    monkeypatch.setattr(tour, "_self_test", lambda: [("two and two is four", False)])
    status, out, _ = said(capsys, "doctor")
    assert status == 3
    assert "two and two is four" in out


def test_pairs_and_neighbours(capsys, here):
    (here / "pairs.json").write_text("[[0, 0.1], [0, 1]]")
    np.savetxt("data.csv", np.array([3.0, 1.0, 2.0]), header="age", comments="")
    (here / "total.py").write_text(
        "import numpy as np\ndef total(x, size, rng):\n    return np.sum(x) + rng.laplace(size=size)\n"
    )
    for arguments in (
        ["audit", "zoo:Laplace()", "--pairs", "pairs.json"],
        ["audit", "total.py:total", "--neighbours", "remove-one:data.csv"],
        ["audit", "zoo:ReportNoisyMax(1.5)", "--neighbours", "patterns:4"],
    ):
        status, _, err = said(capsys, *arguments, "--claim", "eps=0.5", "--n", "4000")
        assert (status, err) == (1, "")


def test_bound(capsys, here):
    status, out, _ = said(capsys, "bound", "zoo:Laplace()", "--pair", "0", "1", "--n", "4000")
    assert status == 0
    assert "ε ≥ 0." in out
    assert "output" in out
    asked = ("--of", "delta, eps=0.1", "--json", "-")
    status, out, _ = said(capsys, "bound", "zoo:Laplace()", "--pair", "0", "1", *asked)
    assert status == 0
    assert dp.LowerBound.from_json(out).notion == "δ at ε = 0.1"
    status, _, err = said(capsys, "bound", "zoo:Laplace()", "--pair", "0", "1", "--of", "eps delta")
    assert status == 2
    assert "cannot tell what to bound" in err


def test_estimate(capsys, here):
    status, out, _ = said(capsys, "estimate", "zoo:Gaussian()", "--n", "20000")
    assert status == 0
    assert "μ ≈" in out
    status, out, _ = said(capsys, "estimate", "zoo:Gaussian()", "--n", "2000", "--json", "-")
    assert dp.Profile.from_json(out).mu > 0.5


def test_plan(capsys):
    status, out, _ = said(capsys, "plan", "--claim", "eps=0.5", "--excess", "1.0")
    assert status == 0
    assert "draws a side refute 0.5-DP" in out


def test_a_report_is_written_and_holds_the_verdict(capsys, here):
    status, out, _ = said(
        capsys,
        "audit",
        "zoo:Laplace()",
        "--claim",
        "eps=0.5",
        "--n",
        "4000",
        "--report",
        "out.html",
    )
    assert status == 1
    assert "out.html" in out
    page = (here / "out.html").read_text(encoding="utf-8")
    assert "Violation" in page or "violation" in page
    assert str(here) not in page


def test_demo_is_right_about_every_mechanism(capsys, here):
    status, out, _ = said(capsys, "demo")
    assert status == 0
    assert "✗" not in out
    assert out.count("violation") >= 5
    page = (here / "dpassay-demo.html").read_text(encoding="utf-8")
    assert len(page) > 100_000
    lead = re.search(r"<strong>.*?</span>(.*?)</strong>", page)[1]
    assert re.fullmatch(r".+: violation", lead)  # which mechanism it is about
    assert lead.partition(": violation")[0] in out.replace("\n", " ")


def test_a_demo_of_too_few_draws_says_that_it_could_not_see(capsys, here):
    status, out, _ = said(capsys, "demo", "--n", "40", "--report", "few.html")
    assert status == 0
    rows = [line for line in out.splitlines() if line.startswith("│")]
    blind = [row for row in rows if "too weak" in row]
    assert blind
    assert all("✗" in row for row in blind)  # it is not right to see nothing
    assert (here / "few.html").read_text(encoding="utf-8").count(">too weak</td>") == len(blind)


# --- the most likely mistakes


def rejects(capsys, words, *arguments):
    status, out, err = said(capsys, *arguments)
    assert status == 2, (out, err)
    assert words.lower() in (out + err).lower()
    assert "Traceback" not in err


def test_errors_say_what_and_what_to_do(capsys, here):
    audit = ("audit", "zoo:Laplace()", "--pair", "0", "1", "--claim", "eps=1")
    np.save("object.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save("two.npy", np.zeros((50, 2)))
    np.save("one.npy", np.arange(50.0))
    (here / "empty.csv").write_text("")
    (here / "broken.py").write_text("import nothing_of_the_kind\n")
    (here / "bad.json").write_text("{")
    rejects(capsys, "cannot be imported", "audit", "no_such_module:f", *audit[2:])
    rejects(capsys, "nothing_of_the_kind", "audit", "broken.py:f", *audit[2:])
    rejects(capsys, "no file", "audit", "absent.py:f", *audit[2:])
    rejects(capsys, "has no 'nope'", "audit", "mine_dp.py:nope", *audit[2:])
    rejects(capsys, "callable", "audit", "mine_dp.py:number", *audit[2:])
    rejects(capsys, "--per-call", "audit", "mine_dp.py:wrong", *audit[2:])
    rejects(capsys, "out of cheese", "audit", "mine_dp.py:fails", *audit[2:])
    rejects(capsys, "a target must be", "audit", "mine_dp.py", *audit[2:])
    rejects(capsys, "names no mechanism", "audit", "zoo:Laplac()", *audit[2:])
    rejects(
        capsys,
        "names no mechanism",
        "audit",
        "zoo:Laplace(scale=__import__('os').getpid())",
        *audit[2:],
    )
    rejects(capsys, "epsilom", *audit[:-1], "epsilom=1")
    rejects(capsys, "what does it claim", "audit", "mine_dp.py:release", "--pair", "0", "1")
    rejects(capsys, "must be JSON", "audit", "zoo:Laplace()", "--pair", "zero", "1")
    rejects(capsys, "neighbouring inputs", "audit", "mine_dp.py:release", "--claim", "eps=1")
    rejects(capsys, "exactly one of", "audit", "--claim", "eps=1")
    rejects(capsys, "bad.json", "audit", "zoo:Laplace()", "--pairs", "bad.json", "--claim", "eps=1")
    rejects(
        capsys, "--neighbours", "audit", "zoo:Laplace()", "--neighbours", "all", "--claim", "eps=1"
    )
    for files, words in [
        (("absent.npy", "one.npy"), "absent.npy"),
        (("object.npy", "one.npy"), "pickle"),
        (("empty.csv", "one.npy"), "empty.csv"),
        (("two.npy", "one.npy"), "two.npy has 2 columns"),
    ]:
        rejects(capsys, words, "audit", "--samples", *files, "--claim", "eps=1")
    rejects(capsys, "columns of --samples", *audit, "--columns", "a")
    rejects(capsys, "columns of --samples", *audit, "--drop", "a")
    rejects(capsys, "relation must be one of", *audit, "--relation", "friends")
    rejects(capsys, "absent.json", "replay", "absent.json", "zoo:Laplace()")
    rejects(capsys, "no such command", "audti")


def test_interrupting_ends_cleanly(capsys, here):
    status, _, err = said(
        capsys, "audit", "mine_dp.py:stops", "--pair", "0", "1", "--claim", "eps=1", "--n", "1000"
    )
    assert status == 130
    assert "Traceback" not in err


def test_a_bug_is_an_internal_error(capsys, monkeypatch):
    monkeypatch.setattr("dpassay.auditing.plans.plan", lambda *a, **k: 1 / 0)
    status, _, err = said(capsys, "plan", "--claim", "eps=1")
    assert status == 3
    assert "ZeroDivisionError" in err
    status, _, err = said(capsys, "plan", "--claim", "eps=1", "--debug")
    assert status == 3  # 1 would be a violation
    assert "Traceback" in err


def test_the_package_runs_as_a_module():
    found = subprocess.run(
        [sys.executable, "-m", "dpassay", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout == f"dpassay {dp.__version__}\n"


def test_the_zoo_fits_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = said(capsys, "zoo")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "Laplace(scale=1.0)" in out


def test_a_plan_from_a_pilot(capsys):
    zoo = ("plan", "zoo:Laplace(scale=1)", "--pair", "0", "1", "--claim", "eps=1")
    status, out, _ = said(capsys, *zoo, "--excess", "0.2")
    assert status == 0
    assert "and shows on an event like the best one of the pilot" in out
    status, out, _ = said(capsys, *zoo)
    assert (status, "the pilot shows no excess over 1-DP" in out) == (0, True)
    status, _, err = said(capsys, "plan", "--canaries", "1000", "--excess", "0.2")
    assert (status, "--canaries goes with --runs" in err) == (2, True)
    assert "leave --excess out" in err
