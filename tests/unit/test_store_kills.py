"""Killed at any moment and started again: nothing lost, nothing twice, the same verdict.

Runs are forked from this process, each with a process group of its own, so that a run costs a fork and
not an interpreter. The quick test kills a handful of times, the slow one two hundred times.
"""

import os
import random
import signal
import time
import traceback
from dataclasses import replace

import numpy as np
import pytest

import dpassay as dp
from dpassay.sampling.store_files import list_parts

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked")

PAIR = (0.0, 1.0)


def seeded(x, rng):
    time.sleep(0.001)
    return x + rng.laplace()


def own(x):
    """A number that nobody draws twice, from the randomness of the system."""
    time.sleep(0.001)
    return int(x) * 2**52 + int.from_bytes(os.urandom(6), "big")


def way(folder):
    return dp.Sampling(workers=2, store=folder, progress=False)


def draw_seeded(folder, n, seed):
    return dp.draw(dp.from_function(seeded), PAIR, n=n, rng=seed, sampling=way(folder))


def draw_own(folder, n, seed):
    return dp.draw(dp.from_function(own), PAIR, n=n, rng=seed, sampling=way(folder))


def audit_seeded(folder, n, seed):
    return dp.audit(dp.from_function(seeded), PAIR, "eps=0.5", n=n, rng=seed, sampling=way(folder))


def start(run, *given):
    """A child with a process group of its own that runs something; its exit status is 0 if it ends."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        run(*given)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def kill_until_done(run, folder, n, seed, chance, longest=0.5):
    """How often the run was killed before it ended; every part that was saved has to stay."""
    warm = folder.with_name(f"{folder.name}-warm")
    run(warm, 40, seed)  # what is imported, children need not import
    run(warm, 40, seed)
    kills, saved = 0, set()
    while True:
        longest *= 1.02  # on a machine so busy that nothing gets done, in the end something does
        child = start(run, folder, n, seed)
        deadline = time.monotonic() + chance.uniform(0.05, longest)
        ended, status = os.waitpid(child, os.WNOHANG)
        while not ended and time.monotonic() < deadline:
            time.sleep(0.005)
            ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            if chance.random() < 0.5:
                os.killpg(child, signal.SIGKILL)
            else:  # its workers are left behind, and have to notice
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kills += 1
        else:
            assert status == 0, "the run failed: its traceback is above"
        before = {part.path.name for part in list_parts(folder)}
        assert saved <= before, "a part that was saved is gone"
        saved = before
        if ended:
            return kills


def check_draws(folder, n, seed, chance):
    """Seeded draws: the samples, and so the verdict, of the run that nobody disturbed."""
    kills = kill_until_done(draw_seeded, folder, n, seed, chance)
    undisturbed = dp.draw(dp.from_function(seeded), PAIR, n=n, rng=seed)
    stored = dp.Store(folder).samples()
    assert np.array_equal(stored.p.numbers, undisturbed.p.numbers)
    assert np.array_equal(stored.q.numbers, undisturbed.q.numbers)
    one, two = (dp.audit(samples, claim="eps=0.5") for samples in (stored, undisturbed))
    assert one.about.digest  # of draws that were collected, which those of `dp.draw` are not
    assert replace(one, about=replace(one.about, digest="")).to_json() == two.to_json()
    return kills


def check_audits(folder, n, seed, chance):
    """Whole audits, killed while they draw, learn or count."""
    undisturbed = dp.audit(dp.from_function(seeded), PAIR, "eps=0.5", n=n, rng=seed)
    began = time.monotonic()
    audit_seeded(folder.with_name(f"{folder.name}-full"), n, seed)
    longest = 0.5 * (time.monotonic() - began)
    kills = kill_until_done(audit_seeded, folder, n, seed, chance, longest)
    assert audit_seeded(folder, n, seed).to_json() == undisturbed.to_json()
    assert len(dp.Store(folder)) == n
    return kills


def check_own(folder, n, seed, chance):
    """Randomness of its own: exactly n draws a side, none twice, none drawn when all are there."""
    kills = kill_until_done(draw_own, folder, n, seed, chance)
    samples = dp.Store(folder).samples()
    assert len(samples) == len(dp.Store(folder)) == n
    both = np.concatenate([samples.p.numbers, samples.q.numbers])
    assert np.unique(both).size == 2 * n
    again = draw_own(folder, n, seed)
    assert np.array_equal(np.sort(again.p.numbers, axis=0), np.sort(samples.p.numbers, axis=0))
    return kills


@pytest.mark.parametrize("check", [check_draws, check_own])
def test_draws_that_are_killed_go_on_where_they_were(check, tmp_path, seed):
    assert check(tmp_path / "runs", 400, seed, random.Random(seed)) >= 1


@pytest.mark.slow
def test_two_hundred_kills(tmp_path, seed):
    chance, began = random.Random(seed), time.monotonic()
    kills = dict.fromkeys((check_draws, check_own, check_audits), 0)
    rounds = 0
    while sum(kills.values()) < 200 or min(kills.values()) < 40:
        check = min(kills, key=kills.get)
        kills[check] += check(tmp_path / f"runs{rounds}", 3000, seed + rounds, chance)
        rounds += 1
    print(
        f"{kills[check_draws]} kills of seeded draws, {kills[check_own]} of draws of their own "
        f"randomness, {kills[check_audits]} of audits; {rounds} runs, "
        f"{time.monotonic() - began:.0f} s"
    )
