"""Batches that are brought again are noticed, and draws that merely look alike are not."""

import time
import warnings

import numpy as np
import pytest
from tests.helpers import canonical, objects

import dpassay as dp
from dpassay.errors import DependenceWarning
from dpassay.sampling.repeated_batches import SeenBatches


@pytest.mark.parametrize("size", [8, 20, 500])
def test_a_batch_brought_again_is_doubted(size):
    rng = np.random.default_rng(0)
    watch = dp.Monitor("eps=0.5")
    p, q = rng.laplace(size=size), 1 + rng.laplace(size=size)
    watch.update(p, q)
    with pytest.warns(DependenceWarning, match="brought before, digit for digit"):
        watch.update(p, q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        for _ in range(10):
            watch.update(p, q)
    found = watch.verdict()
    assert found.guarantee == "heuristic"
    assert any("brought before" in note for note in found.about.notes)


def test_it_is_remembered_in_json_and_for_either_side():
    rng = np.random.default_rng(1)
    watch = dp.Monitor("eps=1")
    p = rng.normal(size=30)
    watch.update(p, rng.normal(size=30))
    again = dp.Monitor.from_json(watch.to_json())
    with pytest.warns(DependenceWarning, match="brought before"):
        again.update(p, rng.normal(size=30))
    assert dp.Monitor.from_json(again.to_json()).doubts == again.doubts
    alone = dp.Monitor("eps=1")
    alone.update(p_outputs=p)
    with pytest.warns(DependenceWarning, match="brought before"):
        alone.update(p_outputs=p)


def _draws(kind, size, rng):
    match kind:
        case "coins":
            return rng.integers(2, size=size)
        case "rare":
            return (rng.random(size) < 0.01).astype(float)
        case "dice":
            return rng.integers(6, size=size)
        case "words":
            return objects(*rng.choice(["a", "b", "c", None], size=size))
    return rng.normal(size=size)


@pytest.mark.parametrize("kind", ["coins", "rare", "dice", "words", "doubles"])
@pytest.mark.parametrize("size", [1, 8, 20, 40])
def test_independent_batches_are_never_taken_for_each_other(kind, size, seeds):
    rng, memory = np.random.default_rng(seeds[0]), SeenBatches()
    for _ in range(1500):
        sides = [canonical(_draws(kind, size, rng)) for _ in range(2)]
        assert not memory.again(sides)


def test_constants_may_come_again():
    watch = dp.Monitor("eps=1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            watch.update(np.zeros(50), np.zeros(50))


def test_a_large_batch_costs_no_more_than_a_small_one():
    rng, memory = np.random.default_rng(0), SeenBatches()
    large = [canonical(rng.normal(size=1_000_000)) for _ in range(2)]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        memory.again(large)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.005
