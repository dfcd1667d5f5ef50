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


def test_the_functions_of_a_module_itself_are_named_first(capsys, here):  # noqa: F811
    imports = "from math import sin, cos, tan, exp, log, sqrt, floor, ceil\n"
    (here / "with_imports.py").write_text(f"{imports}{RELEASE}")
    status, _, err = said(capsys, "audit", "with_imports.py:nothing", *AUDIT)
    assert status == 2
    assert "with_imports.py has no 'nothing'; it has release, " in err
    assert ", …" in err


def test_one_output_for_many_is_answered_with_the_option(capsys, here):  # noqa: F811
    (here / "single.py").write_text("def release(x, size, rng):\n    return x + rng.laplace()\n")
    status, _, err = said(capsys, "audit", "single.py:release", *AUDIT)
    assert status == 2
    assert "on the command line: --per-call" in err
