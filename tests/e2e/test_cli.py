"""The command line, in process."""

from typer.testing import CliRunner

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


def test_demo_draws():
    result = runner.invoke(app, ["demo"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "three draws" in result.stdout
