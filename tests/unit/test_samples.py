"""Samples: outputs that were given, each dealt once."""

import numpy as np
import pytest
from tests.helpers import laplace_mechanism

import dpassay as dp
from dpassay.errors import InvalidInput, NotEnoughDraws, UnreadableFile

PAIR = (0.0, 1.0)


def shown(p, q, **options):
    samples = dp.from_samples(p, q, **options)
    return [sorted(side.show(k) for k in range(len(side))) for side in (samples.p, samples.q)]


def test_rows_become_outputs_with_names(write):
    p, q = write("p.csv", "x,y\n1,2\n3,\n"), write("q.csv", "y,x\n2.5,1\n4,3\n")
    assert shown(p, q) == [
        ["{'x': 1, 'y': 2}", "{'x': 3, 'y': None}"],
        ["{'x': 1, 'y': 2.5}", "{'x': 3, 'y': 4}"],
    ]
    assert shown(p, q, columns=["x"]) == [["1", "3"], ["1", "3"]]
    assert shown(p, q, drop=["x"]) == [["2", "None"], ["2.5", "4"]]
    q = write("q.csv", f"x,y\n{2**53 + 1},2.5\n3,4.5\n")
    p = write("p.csv", "x,y\n1,2\n3,4\n")
    assert shown(p, q)[1] == ["{'x': 3, 'y': 4.5}", f"{{'x': {2**53 + 1}, 'y': 2.5}}"]
    p, q = write("p.csv", "t\n1970-01-02\n1970-01-03\n"), write("q.csv", "t\n1970-01-02\n\n")
    assert shown(p, q)[0][0] == shown(p, q)[1][0] == "1970-01-02T00:00:00"


def test_a_column_of_words_is_strings(write):
    p, q = write("p.csv", "yes\nno\nyes\n"), write("q.csv", "no\nno\nyes\n")
    assert shown(p, q) == [["'no'", "'yes'", "'yes'"], ["'no'", "'no'", "'yes'"]]


def test_verdicts_carry_where_the_draws_came_from(write):
    rng = np.random.default_rng(0)
    columns = [{"id": list(range(2000)), "x": rng.normal(size=2000) + k} for k in (0, 1)]
    p, q = write("p.parquet", columns[0]), write("q.parquet", columns[1])
    with pytest.raises(UnreadableFile, match="drop"):
        dp.from_samples(p, q)
    verdict = dp.audit(dp.from_samples(p, q, drop=["id"]), claim="mu=0.5")
    again = dp.Verdict.from_json(verdict.to_json())
    assert [f.file for f in again.about.files] == ["p.parquet", "q.parquet"]
    assert again.about.files[0].columns == ("x",)
    assert again.about.files[0].rows == 2000


def test_rows_are_shuffled_by_the_seed():
    values = np.arange(1000.0)
    one, two, three = (
        dp.from_samples(values, values + 0.5, rng=r).p.numbers[:, 0] for r in (1, 1, 2)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)
    assert np.array_equal(np.sort(one), values)


def test_sides_may_differ_in_length():
    assert dp.from_samples(np.arange(3.0), np.arange(5.0)).remaining == (3, 5)


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        (np.zeros((3, 2)), np.zeros((3, 3)), "do not go together"),
        (np.zeros((3, 2, 2)), np.zeros(3), "do not go together"),
        (3.0, np.zeros(3), "cannot be read"),
    ],
)
def test_arrays_that_are_no_outputs(p, q, words):
    with pytest.raises(InvalidInput, match=words):
        dp.from_samples(p, q)


def test_empty_arrays_are_not_enough():
    with pytest.raises(NotEnoughDraws, match="q holds no outputs"):
        dp.from_samples([1.0], [])


def test_a_pool_deals_every_draw_once(seed):
    pool = dp.draw(laplace_mechanism, PAIR, n=100, rng=seed)
    everything = pool.p.numbers[:, 0].copy()
    parts = [pool.take(30), pool.take(50), pool.take()]
    dealt = np.concatenate([part.p.numbers[:, 0] for part in parts])
    assert np.array_equal(dealt, everything)
    assert len(pool) == 0


def test_asking_for_too_much_says_how_much_there_is():
    pool = dp.from_samples(np.arange(10.0), np.arange(20.0))
    pool.take(4)
    with pytest.raises(NotEnoughDraws, match="only 6 and 16 are left of 10 and 20"):
        pool.take(7)


def test_blocks_hold_all_draws_in_order_and_the_same_share_of_either_side():
    p, q = np.arange(200_000.0), np.arange(70_000.0) + 0.5
    samples = dp.from_samples(p, q)
    sides = samples.p.numbers, samples.q.numbers
    parts = list(samples.blocks((200_000, 70_000), lambda p, q: (p.numbers, q.numbers)))
    assert [len(part[0]) for part in parts] == [50_000] * 4
    assert [len(part[1]) for part in parts] == [17_500] * 4
    for side, pieces in zip(sides, zip(*parts, strict=True), strict=True):
        assert np.array_equal(np.concatenate(pieces), side)
    assert samples.remaining == (0, 0)


@pytest.mark.parametrize(("a", "b"), [(100_000, 1), (100_000, 0), (5, 5)])
def test_no_block_lacks_a_side_that_there_is(a, b):
    samples = dp.from_samples(np.arange(100_000.0), np.arange(10.0) + 0.5)
    assert list(samples.blocks((a, b), lambda p, q: (len(p), len(q)))) == [(a, b)]


def test_outputs_of_very_many_kinds_are_not_looked_up_again_for_every_block(monkeypatch, seed):
    monkeypatch.setattr("dpassay.sampling.samples.BLOCK", 500)
    numbers = np.random.default_rng(seed).permutation(6_000).astype(float)
    words = [f"word {k:.0f}" for k in numbers]
    for given, pieces in ((numbers, 6), (words, 1)):
        samples = dp.from_samples(given[:3_000], given[3_000:])
        assert len(list(samples.blocks((3_000, 3_000), lambda p, q: len(p)))) == pieces


def test_a_claim_in_the_place_of_the_inputs_is_told_apart(seed):
    rng = np.random.default_rng(seed)
    samples = dp.from_samples(rng.laplace(size=200), rng.laplace(size=200))
    with pytest.raises(InvalidInput, match=r"\(0.5, 1e-05\) was read as the pair of inputs"):
        dp.audit(samples, (0.5, 1e-5))
