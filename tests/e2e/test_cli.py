"""The command line, in process: what it says, and how it ends."""

import json

import numpy as np
import pytest

import dpassay as dp
from dpassay.cli import run

MINE = """
import numpy as np

def release(x, size, rng):
    return x + rng.laplace(size=size)

def one(x, rng):
    return float(x + rng.laplace())

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
    for command in ("audit", "estimate", "counts", "plan", "replay", "zoo", "demo"):
        status, out, _ = said(capsys, command, "--help")
        assert status == 0
        assert "Example: dpassay" in out


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


@pytest.mark.parametrize(
    "target", ["mine_dp.py:release", "mine_dp:release", "zoo:Laplace(scale=1.0)"]
)
def test_audit_of_every_kind_of_target(capsys, here, target):
    status, out, _ = said(
        capsys, "audit", target, "--pair", "0", "1", "--claim", "eps=0.5", "--n", "4000"
    )
    assert status == 1
    assert "Violation of 0.5-DP" in out
    assert "witness   output" in out


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


def test_estimate(capsys, here):
    status, out, _ = said(capsys, "estimate", "zoo:Gaussian()", "--n", "20000")
    assert status == 0
    assert "μ      ≈" in out
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
    status, out, _ = said(capsys, "demo", "--n", "8000")
    assert status == 0
    assert "✗" not in out
    assert out.count("violation") >= 5
    assert (here / "dpassay-demo.html").stat().st_size > 100_000


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
    (here / "words.csv").write_text("a,b\n1,2\n3,oops\n")
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
    rejects(capsys, "cannot refute", *audit[:-1], "eps=3", "--n", "20")
    rejects(capsys, "exactly one of", "audit", "--claim", "eps=1")
    rejects(capsys, "bad.json", "audit", "zoo:Laplace()", "--pairs", "bad.json", "--claim", "eps=1")
    rejects(
        capsys, "--neighbours", "audit", "zoo:Laplace()", "--neighbours", "all", "--claim", "eps=1"
    )
    for files, words in [
        (("absent.npy", "one.npy"), "absent.npy"),
        (("object.npy", "one.npy"), "pickle"),
        (("words.csv", "one.npy"), "oops"),
        (("empty.csv", "one.npy"), "empty.csv"),
        (("two.npy", "one.npy"), "p and q"),
    ]:
        rejects(capsys, words, "audit", "--samples", *files, "--claim", "eps=1")
    rejects(capsys, "absent.json", "replay", "absent.json", "zoo:Laplace()")
    rejects(capsys, "no such command", "audti")


def test_interrupting_ends_cleanly(capsys, here):
    status, _, err = said(
        capsys, "audit", "mine_dp.py:stops", "--pair", "0", "1", "--claim", "eps=1", "--n", "1000"
    )
    assert status == 130
    assert "Traceback" not in err


def test_a_bug_is_an_internal_error(capsys, monkeypatch):
    monkeypatch.setattr("dpassay.verdicts.plan", lambda *a, **k: 1 / 0)
    status, _, err = said(capsys, "plan", "--claim", "eps=1")
    assert status == 3
    assert "ZeroDivisionError" in err
    with pytest.raises(ZeroDivisionError):
        run(["plan", "--claim", "eps=1", "--debug"])
