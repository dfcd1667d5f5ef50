"""Signals at any moment: a verdict or a status that is none, a sentence, and no process left behind."""

import contextlib
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from tests.e2e.test_cli import here  # noqa: F401

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of Unix")

SLOW = """
import pathlib, time
import numpy as np

def one(x, rng):
    pathlib.Path("started").touch()
    time.sleep(0.002)
    return round(x + rng.laplace(), 4)

def many(x, size, rng):
    pathlib.Path("started").touch()
    time.sleep(0.05)
    return np.round(x + rng.laplace(size=size), 4)
"""
PROGRAM = """
import json, pathlib, random, sys, time
asked = json.loads(sys.stdin.readline())
pathlib.Path("started").touch()
time.sleep(100)
"""
CLAIM = ["--pair", "0", "1", "--claim", "eps=3"]
RUNS = ["--command", f"{shlex.quote(sys.executable)} program.py", *CLAIM, "--n", "2000"]
COMMANDS = {
    "audit": ["audit", "slow_dp.py:many", *CLAIM, "--n", "20000000"],
    "audit in processes": [
        "audit", "slow_dp.py:one", "--per-call", *CLAIM, "--n", "40000", "--workers", "2"
    ],
    "program": ["audit", *RUNS],
    "programs": ["audit", *RUNS, "--workers", "2"],
    "failing programs": ["audit", *RUNS, "--workers", "2", "--errors-are-outputs"],
    "monitor": ["monitor", "slow_dp.py:many", *CLAIM, "--max-n", "200000000"],
    "monitor in processes": [
        "monitor", "slow_dp.py:one", "--per-call", *CLAIM, "--max-n", "400000", "--workers", "2"
    ],
    "hunt": [
        "hunt", "slow_dp.py:many", "--space", "space.json", "--claim", "eps=3",
        "--budget", "1000000",
    ],
}  # fmt: skip
#: What Ctrl-C ends with a verdict.
WITH_VERDICT = ("monitor", "monitor in processes", "hunt")


@pytest.fixture
def slow(here):  # noqa: F811
    (here / "slow_dp.py").write_text(SLOW)
    (here / "program.py").write_text(PROGRAM)
    (here / "space.json").write_text('{"type": "Reals", "low": 0, "high": 1}')
    return here


def any_left(group):
    """Whether a process of the group still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def interrupted(folder, name, number, *, after_start=None, wait=0.0, group=False):
    """(status, stdout, stderr) of a command that got a signal `wait` seconds after its first call."""
    (folder / "started").unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "dpassay", *COMMANDS[name]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while after_start and not (folder / "started").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(wait)
    with contextlib.suppress(ProcessLookupError):  # it has ended
        (os.killpg if group else os.kill)(process.pid, number)
    try:
        out, err = process.communicate(timeout=120)
        assert not any_left(process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, out, err


def check(name, number, status, out, err):
    """A verdict has its status and is on stdout; everything else another status and a sentence."""
    assert "Traceback" not in err
    if name in WITH_VERDICT and number == signal.SIGINT and status != 130:
        assert status in (0, 1, 4), err
        assert "eps" in out.lower() or "ε" in out
        assert "interrupted" in err
        return
    assert status == 128 + number, err
    assert not out
    assert "interrupted" in err or f"signal {int(number)}" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_while_it_draws_ends_the_command_and_its_children(slow, seed, name, number):
    chance = random.Random(seed)
    wait, group = chance.uniform(0.0, 1.0), chance.random() < 0.5
    found = interrupted(slow, name, number, after_start=True, wait=wait, group=group)
    check(name, number, *found)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_programs_end_when_the_command_is_killed(slow, number):
    (slow / "started").unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "dpassay", *COMMANDS["programs"]],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (slow / "started").exists():
        time.sleep(0.01)
    process.send_signal(number)
    process.wait()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any_left(process.pid):
        time.sleep(0.02)
    assert not any_left(process.pid)
    assert "Traceback" not in process.communicate()[1]  # nobody reads the status any more
    assert process.returncode == (143 if number == signal.SIGTERM else -number)


@pytest.mark.slow
def test_sixty_signals(slow, seed):
    """At any moment from the first import on, to the command alone or to all its processes."""
    chance, seen = random.Random(seed), Counter()
    for k in range(60):
        name = [*COMMANDS][k % len(COMMANDS)]
        number = chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        started, group = chance.random() < 0.7, chance.random() < 0.5
        wait = chance.uniform(0.0, 2.0) if started else chance.uniform(0.3, 2.0)
        given = {"after_start": started, "wait": wait, "group": group}
        status, out, err = interrupted(slow, name, number, **given)
        if status != 0 or "interrupted" in err or name != "hunt":  # a hunt may have ended before
            check(name, number, status, out, err)
        seen[name, number.name, status] += 1
    print(seen)
