"""Drawing into a store: nothing is mixed, and what goes wrong is a sentence and a safe state."""

import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.helpers import one_laplace
from tests.unit.test_store import PAIR, draws, equal

import dpassay as dp
from dpassay.errors import MechanismRaised, StoreError, StoreWarning
from dpassay.sampling import resuming, store_files
from dpassay.sampling.identity import identity
from dpassay.sampling.store_files import Entry, list_parts

pytest.importorskip("pyarrow")


# --- what is not mixed


def scaled(scale):
    def mechanism(x, rng):
        return x + scale * rng.laplace()

    return dp.from_function(mechanism)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": dp.zoo.Laplace(2.0)}, "scale is 1.0 in the store, and 2.0 here"),
        ({"mechanism": dp.zoo.Gaussian(1.0)}, "Laplace.*Gaussian"),
        ({"pair": (0.0, 2.0)}, "holds draws on 1.0.*would be on 2.0"),
        ({"rng": 1}, "seed 0.*seed 1: give rng=0"),
        ({"on_error": "outcome"}, "failures are outputs is False in the store, and True here"),
        ({"version": "99"}, "dpassay .* and this is 99"),
    ],
)
def test_draws_of_something_else_are_refused_and_both_are_named(
    change, words, tmp_path, monkeypatch
):
    given = {"mechanism": dp.zoo.Laplace(1.0), "pair": PAIR, "rng": 0, "on_error": "raise"}

    def draw(mechanism, pair, rng, on_error, version=None):
        if version is not None:
            monkeypatch.setattr(resuming, "__version__", version)
        way = dp.Sampling(store=tmp_path, on_error=on_error)
        dp.draw(mechanism, pair, n=10, rng=rng, sampling=way)

    draw(**given)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(StoreError, match=words):
        draw(**{**given, **change})
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert len(dp.Store(tmp_path)) == 10


def test_a_closure_with_another_value_is_another_mechanism(tmp_path):
    draws(tmp_path, 10, mechanism=scaled(1.0))
    draws(tmp_path, 20, mechanism=scaled(1.0))
    with pytest.raises(StoreError, match=r"scale is 1.0 in the store, and 2.0 here"):
        draws(tmp_path, 20, mechanism=scaled(2.0))


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match=r"holds 'thesis.tex' and no store"):
        draws(tmp_path, 10)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(StoreError, match="no store"):
        dp.Store(tmp_path)
    with pytest.raises(StoreError, match="no store of draws in"):
        dp.Store(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "store.json is damaged"),
        ("[]", "store.json is damaged"),
        ('{"format": 99, "dpassay": "7.1"}', "format 99.*use the version that made it, 7.1"),
        ('{"format": 1, "dpassay": "0.1.0"}', "format 1,.*draw into another folder"),
        (None, "holds draws but no store.json"),
    ],
)
def test_a_manifest_that_is_damaged_or_gone_is_said_and_nothing_drawn(content, words, tmp_path):
    draws(tmp_path, 10)
    place = tmp_path / "store.json"
    place.unlink() if content is None else place.write_text(content)
    for use in (lambda: draws(tmp_path, 20), lambda: dp.Store(tmp_path)):
        with pytest.raises(StoreError, match=words):
            use()
    assert sum(part.draws for part in list_parts(tmp_path)) == 10


# --- what goes wrong


@pytest.mark.parametrize("harm", [b"", b"PAR1", None])
def test_a_damaged_part_is_set_aside_drawn_again_and_said(harm, tmp_path, seed):
    plain = draws(tmp_path, 600, seed)
    part = list_parts(tmp_path)[1]
    data = part.path.read_bytes()
    part.path.write_bytes(data[:-5] + b"x" * 5 if harm is None else harm)
    with pytest.warns(StoreWarning, match=f"cannot be used and is left out.*{part.draws}"):
        assert len(dp.Store(tmp_path).samples()) == 600 - part.draws
    with pytest.warns(StoreWarning, match="set aside.*drawn again"):
        again = draws(tmp_path, 600, seed)
    assert equal(plain, again)
    assert equal(plain, draws(tmp_path, 600, seed))
    assert [path.name for path in (tmp_path / "damaged").iterdir()] == [part.path.name]


def from_another_seed(folder, part):
    draws(folder, 600, 99)
    return next(p for p in list_parts(folder) if p.first == part.first)


def from_another_mechanism(folder, part):
    draws(folder, 600, 0, scaled(50.0))
    return next(p for p in list_parts(folder) if p.first == part.first)


def from_another_stage(folder, part):
    way = dp.Sampling(store=folder)
    dp.audit(dp.from_function(one_laplace), PAIR, "eps=1", n=1200, rng=0, sampling=way)
    return next(p for p in list_parts(folder) if p.stage == 1 and p.size == part.size)


@pytest.mark.parametrize("foreign", [from_another_seed, from_another_mechanism, from_another_stage])
def test_a_part_of_another_store_or_stage_is_not_used(foreign, tmp_path):
    plain = draws(tmp_path / "here", 600, 0)
    part = list_parts(tmp_path / "here")[0]
    other = foreign(tmp_path / "other", part)
    part.path.unlink()
    name = f"pair0-stage0-size{part.size}-cells{part.first}-{part.first + other.last - other.first}"
    shutil.copy(other.path, part.path.with_name(f"{name}.{other.digest}.parquet"))
    with pytest.warns(StoreWarning, match="another seed, mechanism, pair or stage"):
        dp.Store(tmp_path / "here").samples()
    with pytest.warns(StoreWarning, match="another seed, mechanism, pair or stage.*drawn again"):
        again = draws(tmp_path / "here", 600, 0)
    assert equal(plain, again)


def test_a_part_moved_to_other_cells_is_not_used(tmp_path):
    plain = draws(tmp_path, 600, 0)
    first, second = list_parts(tmp_path)[:2]
    cells = f"cells{second.first}-{second.first + first.last - first.first}"
    moved = first.path.name.replace(f"cells{first.first}-{first.last}", cells)
    second.path.unlink()
    first.path.rename(first.path.with_name(moved))
    with pytest.warns(StoreWarning, match="drawn again"):
        assert equal(plain, draws(tmp_path, 600, 0))


def test_a_part_that_is_gone_is_drawn_again(tmp_path, seed):
    plain = draws(tmp_path, 600, seed)
    for part in list_parts(tmp_path)[::2]:
        part.path.unlink()
    assert equal(plain, draws(tmp_path, 600, seed, workers=2))


def test_a_failure_keeps_the_draws_and_says_where(tmp_path, seed):
    calls = iter(range(10_000))

    class Fails:
        def __call__(self, x, rng):
            if next(calls) == 900:
                raise ValueError("out of luck")
            return x + rng.random()

    named = {"mechanism": dp.from_function(Fails()), "identity": "fails"}
    with pytest.raises(MechanismRaised, match="were made; they are kept in") as caught:
        draws(tmp_path, 1000, seed, **named)
    kept = len(dp.Store(tmp_path))
    assert 100 < kept < 1000
    assert len(caught.value.samples) == kept
    fixed = draws(tmp_path, 1000, seed, **named)
    assert np.array_equal(fixed.p.numbers[:kept], caught.value.samples.p.numbers)


def test_ctrl_c_keeps_the_draws_and_says_where(tmp_path):
    calls = iter(range(10_000))

    def mechanism(x, rng):
        if next(calls) == 900:
            raise KeyboardInterrupt
        return x + rng.random()

    with pytest.raises(
        KeyboardInterrupt, match="of 1,000 draws per side; they are kept in .*go on"
    ):
        draws(tmp_path, 1000, mechanism=dp.from_function(mechanism))
    assert len(dp.Store(tmp_path)) > 100
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("work-")]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_a_sentence_and_the_rest_is_safe(workers, tmp_path, seed, monkeypatch):
    plain = draws(tmp_path / "plain", 600, seed)
    writes = iter(range(10_000))
    real = store_files.write_atomically

    def full(draft, place, data):
        if place.parent.name == "parts" and next(writes) > 2:
            raise OSError(28, "No space left on device")
        real(draft, place, data)

    monkeypatch.setattr(store_files, "write_atomically", full)
    with pytest.raises(StoreError, match="no room left .*No space left.*safe: make room"):
        draws(tmp_path / "runs", 600, seed, workers=workers)
    assert 0 < len(dp.Store(tmp_path / "runs")) < 600
    monkeypatch.setattr(store_files, "write_atomically", real)
    assert equal(plain, draws(tmp_path / "runs", 600, seed, workers=workers))


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be"):
        draws(tmp_path / "file" / "runs", 10)


HOLDER = """
import os, sys, time
import dpassay as dp
def slow(x, rng):
    print("drawing", flush=True)
    time.sleep(60)
    return x
dp.draw(dp.from_function(slow), (0.0, 1.0), n=10, rng=0, sampling=dp.Sampling(store=sys.argv[1]))
"""


@pytest.mark.skipif(resuming.fcntl is None, reason="there is no lock")
def test_one_process_draws_at_a_time_and_the_lock_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(resuming, "_PATIENCE", 0.2)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "drawing\n"
        with pytest.raises(StoreError, match=rf"in use by process {holder.pid}, since"):
            draws(tmp_path, 10)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    with pytest.raises(StoreError, match="holds draws of __main__.slow"):  # no longer in use
        draws(tmp_path, 10)


@pytest.mark.skipif(resuming.fcntl is None, reason="there is no lock")
def test_a_lock_that_is_let_go_in_a_moment_is_waited_for(tmp_path):
    """A worker that is just being forked has its parent's lock until it gets to run."""
    draws(tmp_path, 10)
    handle = os.open(tmp_path / "lock", os.O_RDWR)
    resuming.fcntl.flock(handle, resuming.fcntl.LOCK_EX)
    later = threading.Timer(0.5, os.close, (handle,))
    later.start()
    assert len(draws(tmp_path, 20)) == 20
    later.join()


def test_a_worker_that_outlives_its_run_saves_nothing_more(tmp_path, seed):
    """As after a kill: the next run takes the store over, and the left-over worker then saves."""
    from dpassay.outputs.canonical import from_raw
    from dpassay.privacy.relations import Pair
    from dpassay.sampling.job import Task

    side = from_raw([1.0], 1)
    function = dp.from_function(one_laplace)
    way = dp.Sampling(store=tmp_path)
    entry = Entry.of(function, Pair(*PAIR), way, identity(function))
    with resuming.open_stage(tmp_path, entry, seed=seed, key=(0, 0)) as stage:
        left = stage.writer
        left.save(Task(0, 1), (side, side))
        os.rename(tmp_path / left.work, tmp_path / "work-left")  # it was killed: nothing tidied up
    os.rename(tmp_path / "work-left", tmp_path / left.work)
    draws(tmp_path, 10, seed)
    with pytest.raises(StoreError, match="taken over"):
        left.save(Task(1, 2), (side, side))
    assert len(dp.Store(tmp_path)) == 10


def test_without_locks_the_last_to_come_takes_over(tmp_path, seed, monkeypatch):
    from dpassay.outputs.canonical import from_raw
    from dpassay.privacy.relations import Pair
    from dpassay.sampling.job import Task

    monkeypatch.setattr(resuming, "fcntl", None)
    function = dp.from_function(one_laplace)
    way = dp.Sampling(store=tmp_path)
    entry = Entry.of(function, Pair(*PAIR), way, identity(function))
    side = from_raw([1.0], 1)
    with resuming.open_stage(tmp_path, entry, seed=seed, key=(0, 0)) as first:
        first.writer.save(Task(0, 1), (side, side))
        with resuming.open_stage(tmp_path, entry, seed=seed, key=(0, 0)) as second:
            assert second.at(0, 1) is not None
            with pytest.raises(StoreError, match="taken over by another process"):
                first.writer.save(Task(1, 2), (side, side))
            second.writer.save(Task(1, 2), (side, side))
    assert len(dp.Store(tmp_path)) == 2
