"""Which keys outputs fall into."""

import numpy as np
import pytest
from tests.helpers import learned, objects

import dpassay as dp
from dpassay.outputs.canonical import all_of, from_raw
from dpassay.outputs.keys import Layout, learn

RNG = np.random.default_rng(0)


def sorted_keys(layout, raw):
    found = layout.sort(from_raw(raw, len(raw)))
    return np.zeros(len(raw), int) if found.keys is None else found.keys


def test_continuous_numbers_are_one_key_with_free_numbers():
    layout, p, q = learned(RNG.normal(size=500), RNG.normal(size=500))
    assert len(layout) == 1
    assert layout.free(0) == [0]
    assert p.keys is None
    assert q.counts().tolist() == [500, 0]


def test_integers_are_keys():
    p, q = RNG.integers(0, 4, 500), RNG.integers(2, 6, 300)
    layout, left, right = learned(p, q)
    names = [layout.words(k) for k in range(len(layout))]
    assert names == ["0", "1", "2", "3", "4", "5"]
    assert left.counts()[:6].tolist() == np.bincount(p, minlength=6).tolist()
    assert right.counts()[:6].tolist() == np.bincount(q, minlength=6).tolist()
    assert sorted_keys(layout, np.array([5, 99, -3])).tolist() == [5, -1, -1]


def test_atoms_among_continuous_numbers():
    clipped = np.clip(RNG.normal(size=4000), -1.0, 1.5)
    layout, p, _ = learned(clipped, np.clip(RNG.normal(size=4000), -1.0, 1.5))
    names = {layout.words(k) for k in range(len(layout))}
    assert names == {"-1", "1.5", "•"}
    counts = dict(zip((layout.words(k) for k in range(3)), p.counts(), strict=False))
    assert counts["-1"] == (clipped == -1).sum()
    assert counts["1.5"] == (clipped == 1.5).sum()


def test_atoms_are_found_coordinate_by_coordinate():
    x, y = RNG.normal(size=(2, 5000, 2))
    x[:, 0], y[:, 0] = np.maximum(x[:, 0], 0.0), np.maximum(y[:, 0], 0.0)
    layout, p, _ = learned(x, y)
    by_words = {layout.words(k): k for k in range(len(layout))}
    assert set(by_words) == {"(0, •)", "(•, •)"}
    assert layout.free(by_words["(0, •)"]) == [1]
    assert p.numbers(by_words["(0, •)"]).shape == ((x[:, 0] == 0).sum(), 1)


def test_structures_are_keys():
    x = objects(*["error"] * 20, *[None] * 20, *RNG.normal(size=200).tolist())
    y = objects(*RNG.normal(size=50).tolist())
    layout, p, _ = learned(x, y)
    assert {layout.words(k) for k in range(len(layout))} == {"'error'", "None", "•"}
    assert sorted(p.counts().tolist()) == [0, 20, 20, 200]


def test_rare_keys_are_in_none():
    p = np.concatenate([np.zeros(1000, int), [7], [9]])
    layout, left, _ = learned(p, np.zeros(1000, int))
    assert len(layout) == 1
    assert left.counts().tolist() == [1000, 2]


def test_rows_of_small_integers_are_packed():
    rows = RNG.integers(-1, 2, size=(3000, 6)).astype(np.int8)
    layout, p, _ = learned(rows, rows.copy())
    sums = p.counts()
    names = {layout.words(k): int(sums[k]) for k in range(len(layout))}
    unique, count = np.unique(rows, axis=0, return_counts=True)
    often = {str(tuple(int(v) for v in row)): int(c) for row, c in zip(unique, count, strict=True)}
    assert all(often[name] == total for name, total in names.items())
    assert sorted_keys(layout, np.full((1, 6), 5, dtype=np.int8)).tolist() == [-1]


def test_combinations_that_hardly_repeat_stay_numbers():
    bits = RNG.integers(0, 2, size=(2000, 40)).astype(np.int8)
    layout, _, _ = learned(bits, bits.copy())
    assert len(layout) == 1
    assert len(layout.free(0)) == 40


def test_a_lattice_with_large_steps_is_discrete():
    values = RNG.choice([0.1, 0.2, 0.30000000000000004], size=600)
    layout, _, _ = learned(values, values.copy())
    assert [layout.words(k) for k in range(len(layout))] == ["0.1", "0.2", "0.3"]


def test_integers_that_hardly_repeat_are_numbers():
    values = RNG.integers(0, 10**9, size=1000)
    layout, _, _ = learned(values, values.copy() + 1)
    assert layout.free(0) == [0]


def test_layouts_come_back_from_json():
    layout, _, _ = learned(np.clip(RNG.normal(size=900), 0, None), RNG.normal(size=900))
    again = Layout.from_json(layout.to_json())
    raw = np.clip(RNG.normal(size=50), 0, None)
    assert np.array_equal(sorted_keys(layout, raw), sorted_keys(again, raw))


def test_many_distinct_strings_cost_no_more_than_their_number():
    words = np.array([f"w{k}" for k in RNG.integers(0, 20_000, size=40_000)])
    _, p, _ = learned(words, words.copy())
    assert p.counts().sum() == 40_000


@pytest.mark.parametrize("loss", ["values", "kde", "knn", "dyadic"])
def test_a_block_without_the_longest_outputs_is_an_ordinary_one(loss):
    def answers(x, rng):
        return [x + float(rng.normal()) for _ in range(1 + (rng.random() < 0.05))]

    for seed in range(3):
        verdict = dp.audit(
            dp.from_function(answers), (0.0, 1.0), "eps=1", n=2049, rng=seed, loss=loss
        )
        assert verdict.about.n == (2049, 2049)


def test_more_combinations_of_atoms_than_a_code_holds_are_numbers(seed):
    """Nine columns on a grid so coarse that most values repeat: 1,700 ** 9 combinations."""
    rng = np.random.default_rng(seed)
    p, q = (np.round(rng.laplace(size=(6400, 9)), 3) for _ in range(2))
    layout, _, _ = learned(p, q)
    assert len(layout) == 1
    assert len(layout.free(0)) == 9


def test_many_discrete_columns_beside_a_number_are_numbers(seed):
    """Eight ten-valued columns and a float: 10⁸ combinations, of which none repeats."""
    rng = np.random.default_rng(seed)
    p, q = (
        np.column_stack([rng.integers(0, 10, (2000, 8)), rng.normal(size=2000)]) for _ in range(2)
    )
    layout, _, _ = learned(p, q)
    assert len(layout) == 1
    assert len(layout.free(0)) == 9


@pytest.mark.parametrize("leak", ["a column", "the number"])
def test_a_leak_in_a_row_of_discrete_columns_and_a_number_is_found(leak, seeds):
    def release(x, size, rng):
        rows = rng.integers(0, 10, (size, 8)).astype(float)
        number = rng.normal(size=size)
        if leak == "a column":
            rows[:, 3] = np.where(rng.random(size) < 0.9, x, rows[:, 3])
        else:
            number += 3 * x
        return np.column_stack([rows, number])

    for seed in seeds[:3]:
        verdict = dp.audit(release, (0.0, 1.0), "eps=1", n=1000, loss="values", rng=seed)
        assert verdict.violated


def test_numbers_beside_a_single_atom_are_in_no_key():
    """A release that is −1 in nearly all runs: the other numbers are few and do not repeat."""
    rng = np.random.default_rng(0)
    p, q = np.full(5000, -1.0), np.full(5000, -1.0)
    q[:50] = 5 + rng.exponential(size=50)
    layout, first, second = learn(all_of(p), all_of(q))
    assert len(layout) == 1
    assert first.counts().tolist() == [5000, 0]
    assert second.counts().tolist() == [4950, 50]


def test_values_that_repeat_by_chance_are_no_atoms(seed):
    """Of numbers with four decimals a few come three times; they hid the other scores of vectors."""
    rng = np.random.default_rng(seed)
    sides = [all_of(np.round(rng.laplace(scale=6, size=(2500, 5)), 4)) for _ in range(2)]
    layout, *_ = learn(*sides)
    assert len(layout) == 1
    for side in sides:
        side.numbers[:20, 0] = 0.5  # a value of its own
    layout, *_ = learn(*sides)
    assert len(layout) == 2
