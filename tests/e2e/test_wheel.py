"""The wheel, installed where nothing else is, runs the command line."""

import subprocess
import sys
from pathlib import Path

import pytest
from tools.release import LARGEST, weights
from tools.schemas import schemas

ROOT = Path(__file__).parents[2]


def run(*argv, cwd):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.wheel
def test_the_wheel_works_in_a_fresh_environment(tmp_path):
    run(
        sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT), cwd=tmp_path
    )
    wheel = next(tmp_path.glob("dpassay-*.whl"))
    run(sys.executable, "-m", "venv", "fresh", cwd=tmp_path)
    python = tmp_path / "fresh" / "bin" / "python"
    run(str(python), "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    command = str(tmp_path / "fresh" / "bin" / "dpassay")
    assert run(command, "--version", cwd=tmp_path).startswith("dpassay 0.")
    assert "Laplace" in run(command, "zoo", cwd=tmp_path)
    shipped = "import dpassay, os; print(*os.listdir(dpassay.__path__[0] + '/schemas'))"
    assert len(run(str(python), "-c", shipped, cwd=tmp_path).split()) == len(schemas())
    assert sum(weights(python).values()) < LARGEST  # MB
