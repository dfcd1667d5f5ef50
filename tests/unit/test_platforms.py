"""What is special to Unix, taken away: the path for other systems is forced and tested here.

docs/platforms.md lists what is special; this file has a test for each line of it.
"""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import numpy as np
import pytest

import dpassay as dp
from dpassay import interrupts
from dpassay.cli import supervisor, targets
from dpassay.errors import InvalidInput
from dpassay.sampling import store_files
from dpassay.scores.classifier import free_cores

SPAWNED = """
import multiprocessing

import dpassay as dp


def mechanism(x, size, rng):
    return x + rng.laplace(size=size)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    multiprocessing.get_all_start_methods = lambda: ["spawn"]

    def audited(mechanism, claim, workers):
        sampling = dp.Sampling(workers=workers, progress=False)
        given = {"n": 4000, "rng": 0, "loss": "values", "sampling": sampling}
        return dp.audit(mechanism, (0.0, 1.0), claim, **given)

    alone, several = (audited(mechanism, "eps=0.5", workers) for workers in (1, 2))
    assert alone == several
    scale = 2.0
    closure = lambda x, size, rng: x + rng.laplace(scale=scale, size=size)
    found = audited(closure, "eps=1", 2)
    print(alone.violated, found.violated, multiprocessing.get_start_method())
"""


def test_workers_that_are_spawned_draw_what_one_process_draws(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SPAWNED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split() == ["True", "False", "spawn"], done.stderr


def test_a_job_goes_to_spawned_workers_as_bytes(monkeypatch):
    from dpassay.sampling import executors

    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with executors._own_processes(object(), 2) as (_, run):
        assert run.func is executors._run_sent


def test_a_timeout_without_timers_is_refused_in_words(monkeypatch):
    monkeypatch.delattr(signal, "setitimer")
    monkeypatch.delattr(signal, "SIGALRM")
    once = dp.from_function(lambda x: x)
    with pytest.raises(InvalidInput, match="a time-out needs .* Unix system: .*from_command"):
        dp.draw(once, (0, 1), n=10, sampling=dp.Sampling(timeout=1.0, on_error="outcome"))


def test_a_program_has_its_timeout_without_timers(monkeypatch):
    monkeypatch.delattr(signal, "setitimer")
    monkeypatch.delattr(signal, "SIGALRM")
    sleeper = dp.from_command([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
    with pytest.raises(dp.errors.MechanismTimedOut, match="took longer than"):
        dp.draw(sleeper, (0, 1), n=10, sampling=dp.Sampling(progress=False))


def test_without_fork_a_command_runs_in_the_process_itself(monkeypatch):
    monkeypatch.delattr(os, "fork")
    monkeypatch.delattr(signal, "SIGHUP")
    seen = []
    assert supervisor.supervised(lambda: lambda: seen.append(os.getpid()) or 4) == 4
    assert seen == [os.getpid()]


def test_signals_that_a_system_lacks_are_not_held_back(monkeypatch):
    monkeypatch.setattr(interrupts, "_SIGNALS", [signal.SIGINT])
    before = signal.getsignal(signal.SIGTERM)
    with interrupts.held_back():
        assert signal.getsignal(signal.SIGTERM) is before
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def test_boosting_without_a_load_average(monkeypatch):
    monkeypatch.delattr(os, "getloadavg")
    with free_cores(10**6):
        pass


def test_folders_are_not_opened_where_they_cannot_be(monkeypatch, tmp_path):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(store_files.os, "open", refused)
    with pytest.raises(PermissionError):
        store_files.sync_folder(tmp_path)
    monkeypatch.setattr(store_files.os, "name", "nt")
    store_files.sync_folder(tmp_path)
    monkeypatch.undo()


def test_a_store_on_windows_has_names_that_windows_allows(tmp_path):
    sampling = dp.Sampling(store=tmp_path / "runs", progress=False)
    dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=400, rng=0, sampling=sampling)
    names = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    assert len(names) > 3
    for name in names:
        for part in name.parts:
            assert not re.search(r'[<>:"|?*\\\\]|[. ]$', part)
            assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", part)


@pytest.mark.parametrize(
    ("target", "place", "name"),
    [
        (r"C:\lib\release.py:audit", r"C:\lib\release.py", "audit"),
        (r"\\server\lib\release.py:audit", r"\\server\lib\release.py", "audit"),
        (r"release.py:audit", "release.py", "audit"),
    ],
)
def test_the_drive_of_a_windows_path_is_no_separator(target, place, name, monkeypatch):
    asked = []
    monkeypatch.setattr(
        targets, "_named", lambda *given: asked.append(given) or dp.zoo.Laplace(1.0)
    )
    targets.from_option("--feature", target)
    targets.mechanism(target)
    assert asked == [(place, name)] * 2
    assert PureWindowsPath(place).name == "release.py"


def test_a_command_on_windows_keeps_its_backslashes(monkeypatch):
    monkeypatch.setattr(targets, "from_command", lambda parts: parts)
    line = r'"C:\Program Files\noise.exe" --scale 2 C:\data\in.csv'
    monkeypatch.setattr(targets.os, "name", "nt")
    found = targets.program(line)
    monkeypatch.undo()
    assert found == [r"C:\Program Files\noise.exe", "--scale", "2", r"C:\data\in.csv"]
    assert PureWindowsPath(found[0]).parts == ("C:\\", "Program Files", "noise.exe")


def test_files_are_named_in_results_without_their_folders(tmp_path, seed):
    paths = [tmp_path / f"{side}.csv" for side in "pq"]
    rng = np.random.default_rng(seed)
    for path in paths:
        path.write_text("x\n" + "".join(f"{x}\n" for x in rng.integers(9, size=100)), "utf-8")
    verdict = dp.audit(dp.from_samples(*paths), claim="eps=1", rng=0)
    assert [one.file for one in verdict.about.files] == ["p.csv", "q.csv"]
    assert str(tmp_path) not in verdict.to_json()


def test_the_page_lists_every_module_that_asks_for_the_system():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "platforms.md").read_text(encoding="utf-8")
    source = root / "src" / "dpassay"
    special = re.compile(
        r"os\.fork|\bfcntl\b|signal\.(SIG|setitimer|pthread)|getloadavg|os\.name\b|sys\.platform"
        r"|get_context\(|S_ISFIFO|\"SIGHUP\""
    )
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if special.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(re.findall(r"\| `((?:\w+/)*\w+\.py)` \|", page))
