"""Cells and blocks by the mechanism and n alone; tasks by the cost."""

import os
import time

import numpy as np
import pytest
from tests.helpers import laplace_mechanism, one_laplace

import dpassay as dp
from dpassay.outputs.canonical import align, arranged, concatenate, from_raw
from dpassay.sampling import job as jobs
from dpassay.sampling.job import Chunking, Pace

FUNCTION = dp.from_function(one_laplace)


@pytest.mark.parametrize(
    "n", [1, 2, 3, 100, 511, 1024, 1025, 5000, 1 << 16, (1 << 17) + 5, 10**6 + 7]
)
@pytest.mark.parametrize("mechanism", [laplace_mechanism, FUNCTION])
@pytest.mark.parametrize("alone", [False, True])
def test_cells_cover_n_in_whole_blocks(n, mechanism, alone):
    layout = Chunking.of(mechanism, n, each_alone=alone)
    assert layout.draws(0, layout.cells) == n
    assert layout.block % layout.cell == 0
    assert -(-n // layout.block) >= min(2, n)  # blocks
    if layout.calls:
        assert layout.cell <= 64
        assert layout.cell == 1 or layout.cells >= 256


def tasks_of(layout, workers, cost, start=0):
    """The tasks of a stage whose cells take `cost` seconds each, one after the other."""
    pace, cell, found = Pace(layout, workers), start, []
    while cell < layout.cells:
        task = pace.next(cell, layout.cells)
        found.append(task)
        pace.add(task.last - task.first, cost * (task.last - task.first))
        cell = task.last
    return found


@pytest.mark.parametrize("cost", [1e-7, 1e-5, 1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("n", [1, 300, 1000, 5001, 100_003])
def test_tasks_take_about_a_second(cost, workers, n):
    layout = Chunking.of(FUNCTION, n)
    found = tasks_of(layout, workers, cost)
    assert [task.first for task in found] == [0, *(task.last for task in found[:-1])]
    assert found[-1].last == layout.cells
    for task in found:
        seconds = cost * (task.last - task.first)
        assert seconds <= 1.0 or task.last == task.first + 1
        assert layout.draws(task.first, task.last) <= 1 << 16
    if cost == 1e-3 and n > 5000:  # few tasks where a draw costs little, and none that takes all
        assert max(task.last - task.first for task in found) >= layout.block // layout.cell


def test_a_vectorised_mechanism_is_asked_block_by_block():
    layout = Chunking.of(laplace_mechanism, 200_000)
    assert [task.last - task.first for task in tasks_of(layout, 4, 1e-6)] == [1] * 4


def test_the_form_of_a_block_does_not_depend_on_how_it_was_put_together(seed):
    rng = np.random.default_rng(seed)
    kinds = [1, 2.5, True, None, "a", "b", (1, 2), (), {"k": 1}, float("nan"), 2**60, -0.0, 2**70]
    for _ in range(50):
        sides = [[kinds[k] for k in rng.integers(len(kinds), size=24)] for _ in "pq"]
        forms = []
        for _ in range(3):
            cuts = np.sort(rng.integers(1, 24, size=rng.integers(0, 6)))
            pieces = np.split(np.arange(24), cuts)
            runs = []
            for piece in pieces:
                if not len(piece):
                    continue
                cells = [[from_raw([side[k]], 1) for k in piece] for side in sides]
                runs.append(arranged(*align([concatenate(side) for side in cells])))
            forms.append(arranged(*(concatenate([run[k] for run in runs]) for k in (0, 1))))
        for p, q in forms[1:]:
            for one, two in ((forms[0][0], p), (forms[0][1], q)):
                assert one.structures == two.structures
                assert one.numbers.dtype == two.numbers.dtype
                assert one.numbers.tobytes() == two.numbers.tobytes()
                assert np.array_equal(one.codes, two.codes)
                assert (one.rest is None) == (two.rest is None)
                assert one.rest is None or one.rest.tobytes() == two.rest.tobytes()


@pytest.mark.parametrize(
    "items",
    [
        [0.5, -0.0, float("nan"), 2.0],
        [1, 2**60, -5, 2**53 + 1],
        [True, False, True, True],
        [np.float64(1.0), np.float64("inf"), np.float64(2.0), np.float64(-0.0)],
        [1, 2.5, 2**62, 3],
        ["a", "b", "a", "c"],
    ],
)
def test_lists_read_at_once_are_what_their_cells_are(items):
    together = jobs._read_cells([[item] for item in items], [1] * len(items))
    cells = concatenate([from_raw([item], 1) for item in items])
    for one, two in zip(arranged(together, cells), arranged(cells, together), strict=True):
        assert one.structures == two.structures
    p, q = arranged(together, together)
    a, b = arranged(cells, cells)
    for one, two in ((p, a), (q, b)):
        assert one.numbers.dtype == two.numbers.dtype
        assert one.numbers.tobytes() == two.numbers.tobytes()
        assert one.structures == two.structures
        assert (one.rest is None) == (two.rest is None)


def test_a_slow_function_is_shared_out_over_workers():
    """8 workers and 64 draws: each gets a few of them, and none a block of 32."""

    def slow(x, rng):
        time.sleep(0.01)
        return os.getpid()

    way = dp.Sampling(workers=8)
    samples = dp.draw(dp.from_function(slow), (0.0, 1.0), n=64, rng=0, sampling=way)
    who, often = np.unique(samples.p.numbers, return_counts=True)
    assert who.size >= 4
    assert often.max() <= 24
