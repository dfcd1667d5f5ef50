"""The command line, in process."""

from typer.testing import CliRunner

from dpassay import GaussianDP, Verdict
from dpassay.cli import app

runner = CliRunner()


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("dpassay ")


def test_zoo_lists_mechanisms_with_their_truths():
    result = runner.invoke(app, ["zoo"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for word in ("Laplace", "Gaussian", "RandomizedResponse", "ReportNoisyMax", "1.492"):
        assert word in result.stdout


def test_counts_exit_status_is_the_verdict(tmp_path):
    violated = runner.invoke(app, ["counts", "450", "1000", "184", "1000", "--claim", "eps=0.5"])
    assert violated.exit_code == 1
    assert "violation of 0.5-DP: ε ≥ 0.748" in violated.stdout
    silent = runner.invoke(app, ["counts", "450", "1000", "400", "1000", "--claim", "eps=0.5"])
    assert silent.exit_code == 0
    assert "no violation of 0.5-DP detected" in silent.stdout
    out = tmp_path / "v.json"
    for target in ("-", str(out)):
        result = runner.invoke(
            app, ["counts", "9", "10", "1", "10", "--claim", "mu=0", "--json", target]
        )
        text = result.stdout if target == "-" else out.read_text()
        assert Verdict.from_json(text).claim == GaussianDP(0.0)


def test_demo_draws():
    result = runner.invoke(app, ["demo"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "a draw on each input" in result.stdout
