"""Targets that are files: any name, what lies beside them, and no module replaced."""

import sys

import pytest
from tests.e2e.test_cli import here, said  # noqa: F401
from tests.e2e.test_cli_exits import typed

RELEASE = """
import numpy as np

def release(x, size, rng):
    return np.round(x + rng.laplace(size=size), 6)
"""
AUDIT = ["--pair", "0", "1", "--claim", "eps=2", "--n", "2000"]


@pytest.mark.parametrize("name", ["rich", "typing", "dpassay"])
def test_a_file_with_the_name_of_a_module_does_not_replace_it(here, name):  # noqa: F811
    (here / f"{name}.py").write_text(RELEASE)
    done = typed("audit", f"{name}.py:release", *AUDIT, "--report", "page.html")
    assert done.returncode == 0, done.stderr
    assert "no violation" in done.stdout.lower()
    assert (here / "page.html").exists()


def test_modules_that_are_loaded_stay_what_they_are(capsys, here):  # noqa: F811
    import typing

    (here / "typing.py").write_text(RELEASE)
    assert said(capsys, "audit", "typing.py:release", *AUDIT)[0] == 0
    assert sys.modules["typing"] is typing


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_in_another_folder_imports_what_lies_beside_it(here, workers):  # noqa: F811
    folder = here / "code"
    folder.mkdir()
    (folder / "noise_beside.py").write_text("def noise(rng): return rng.laplace()\n")
    (folder / "queue.py").write_text(
        "from dataclasses import dataclass\n"
        "from noise_beside import noise\n"
        "@dataclass\n"
        "class Data:\n"
        "    x: 'float'\n"
        "def release(x, rng):\n"
        "    import noise_beside\n"
        "    return round(Data(x).x + noise(rng), 6)\n"
    )
    done = typed("audit", "code/queue.py:release", "--per-call", "--workers", workers, *AUDIT)
    assert done.returncode == 0, done.stderr


def test_a_file_whose_name_is_free_keeps_it(capsys, here):  # noqa: F811
    (here / "a_free_name.py").write_text(RELEASE)
    assert said(capsys, "audit", "a_free_name.py:release", *AUDIT)[0] == 0
    assert sys.modules["a_free_name"].release.__module__ == "a_free_name"
