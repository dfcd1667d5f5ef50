"""Exit statuses 0 and 1 are verdicts: whatever else ends a command has another status and a sentence."""

import json
import os
import subprocess
import sys

import pytest
from tests.e2e.test_cli import here, said  # noqa: F401

EXITS = """
import ctypes, os, sys
import numpy as np

class Own(BaseException):
    pass

def fine(x, size, rng): return np.round(x + rng.laplace(size=size), 4)
def sys_exit_0(x, size, rng): sys.exit(0)
def sys_exit_1(x, size, rng): sys.exit(1)
def sys_exit_in_some_calls(x, rng): return sys.exit(1) if rng.random() < 0.01 else x + rng.laplace()
def base_exception(x, size, rng): raise Own("of its own")
def generator_exit(x, size, rng): raise GeneratorExit
def os_exit_0(x, size, rng): os._exit(0)
def os_exit_1(x, size, rng): os._exit(1)
def os_exit_0_in_one_call(x, rng): os._exit(0)
def segmentation_fault(x, size, rng): ctypes.string_at(0)

def forks_and_raises(x, size, rng):
    child = os.fork()
    if not child:
        raise ValueError("in a copy of the process")
    os.waitpid(child, 0)
    os._exit(0)

class Hides:
    def __call__(self, x, size, rng): return fine(x, size, rng)
    block = property(lambda self: sys.exit(0))

hides = Hides()
"""

AUDIT = ["--pair", "0", "1", "--claim", "eps=2", "--n", "2000"]


@pytest.fixture
def exits(here):  # noqa: F811
    (here / "exits_dp.py").write_text(EXITS)
    return here


def typed(*arguments, **options):
    """What a shell gets to see of a command; -P, since the console script has no folder of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "dpassay", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sys_exit_0", "it raised SystemExit: 0"),
        ("sys_exit_1", "it raised SystemExit: 1"),
        ("base_exception", "it raised Own: of its own"),
        ("generator_exit", "it raised GeneratorExit"),
    ],
)
@pytest.mark.parametrize("verb", ["audit", "monitor"])
def test_an_exception_of_any_kind_in_a_mechanism_is_an_error(capsys, exits, name, words, verb):
    given = AUDIT if verb == "audit" else AUDIT[:-2]
    status, out, err = said(capsys, verb, f"exits_dp.py:{name}", *given)
    assert (status, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sys_exit_in_some_calls_is_an_error_wherever_it_draws(capsys, exits, workers):
    target = ["exits_dp.py:sys_exit_in_some_calls", "--per-call", "--workers", workers]
    status, out, err = said(capsys, "audit", *target, *AUDIT)
    assert (status, out) == (2, "")
    assert "it raised SystemExit: 1" in err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("os_exit_0", "ended with exit status 0 before there was a result"),
        ("os_exit_1", "ended with exit status 1 before there was a result"),
        ("segmentation_fault", "by signal 11"),
        ("forks_and_raises", "ended with exit status 0 before there was a result"),
    ],
)
def test_a_mechanism_that_ends_the_process_is_an_error(exits, name, words):
    done = typed("audit", f"exits_dp.py:{name}", *AUDIT)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert words in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_call_that_ends_its_process_is_an_error_wherever_it_draws(exits, workers):
    target = ["exits_dp.py:os_exit_0_in_one_call", "--per-call", "--workers", workers]
    done = typed("audit", *target, *AUDIT)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "ended" in done.stderr or "worker process died" in done.stderr


def test_sys_exit_outside_of_a_call_is_an_error(capsys, exits):
    status, out, err = said(capsys, "audit", "exits_dp.py:hides", *AUDIT)
    assert (status, out) == (2, "")
    assert "sys.exit(0)" in err


@pytest.mark.parametrize("target", ["ends_dp.py:f", "ends_dp:f"])
def test_a_module_that_ends_while_it_is_imported_is_an_error(capsys, exits, target):
    (exits / "ends_dp.py").write_text("import sys\nsys.exit(0)\n")
    status, out, err = said(capsys, "audit", target, *AUDIT)
    assert (status, out) == (2, "")
    assert "SystemExit: 0" in err
    (exits / "ends_dp.py").write_text("import os\nos._exit(1)\n")
    done = typed("audit", target, *AUDIT)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "before there was a result" in done.stderr


@pytest.mark.parametrize(
    ("claim", "status", "violated"), [("eps=2", 0, False), ("eps=0.3", 1, True)]
)
def test_a_verdict_passes_its_status_through_the_child(exits, claim, status, violated):
    audit = ["audit", "exits_dp.py:fine", *AUDIT, "--claim", claim, "--json", "-"]
    del audit[5:7]
    done = typed(*audit)
    assert done.returncode == status, done
    assert json.loads(done.stdout)["violated"] is violated


def _into_a_closed_pipe(*arguments):
    """The status and stderr of a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "dpassay", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "exits_dp.py:fine", *AUDIT],
        ["audit", "exits_dp.py:fine", *AUDIT, "--json", "-"],
        ["plan", "--claim", "eps=1"],
    ],
)
def test_a_result_that_nobody_reads_has_no_status_of_a_verdict(exits, arguments):
    status, err = _into_a_closed_pipe(*arguments)
    assert status == 2
    assert "closed before the result was written" in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], []])
def test_help_may_be_read_in_part(arguments):
    assert _into_a_closed_pipe(*arguments) == (0, "")


def test_a_result_in_a_file_needs_no_reader(exits):
    audit = ["audit", "exits_dp.py:fine", *AUDIT, "--quiet", "--json", "verdict.json"]
    status, err = _into_a_closed_pipe(*audit)
    assert (status, err) == (0, "")
