"""Which keys outputs fall into."""

import numpy as np
import pytest

from dpassay.outputs.canonical import align, from_raw
from dpassay.outputs.events import Event, Intervals, of_keys, of_scores
from dpassay.outputs.layout import Layout, learn
from dpassay.outputs.ranking import Features, Polynomial, Ranking

RNG = np.random.default_rng(0)


def learned(p, q):
    return learn(*align([from_raw(p, len(p)), from_raw(q, len(q))]))


def sorted_keys(layout, raw):
    found = layout.sort(from_raw(raw, len(raw)))
    return np.zeros(len(raw), int) if found.keys is None else found.keys


def objects(*items):
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array


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


# --- events


def test_an_event_takes_keys_whole_in_part_and_otherwise():
    raw = objects(*["error"] * 9, *[None] * 9, *np.linspace(-1, 1, 9).tolist())
    layout, _, _ = learned(raw, objects(*RNG.normal(size=9).tolist()))
    key = {layout.words(k): k for k in range(len(layout))}
    event = Event(
        words="an error, or a number in [0.4, 0.6) or at least 0.9",
        layout=layout,
        whole=(key["'error'"],),
        partial=((key["•"], Intervals([0.4, 0.9], [0.6, np.inf])),),
    )
    outputs = from_raw(objects("error", None, 0.5, 0.6, 1.0, -1.0, "new"), 7)
    assert event.holds(outputs).tolist() == [True, False, True, False, True, False, False]
    turned = Event(words="", layout=layout, otherwise=True)
    assert turned.holds(outputs).tolist() == [False] * 6 + [True]
    again = Event.from_json(event.to_json())
    assert again.holds(outputs).tolist() == event.holds(outputs).tolist()


def test_a_ranking_is_linear_and_quadratic_and_comes_back_from_json():
    _, p, _ = learned(RNG.normal(size=(99, 2)), RNG.normal(size=(99, 2)))
    features = Features(p.layout.parts, 2, np.zeros(2), np.ones(2))
    model = Polynomial(-1.0, [0.0, 1.0], [[0, 0]], [1.0])
    event = of_scores(LogisticLike(Ranking("by hand", features, model)), 0.0, True)
    outputs = from_raw(np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [-2.0, -2.0]]), 4)
    assert event.holds(outputs).tolist() == [True, True, False, True]
    assert event.words == "-1 +1·x2 +1·x1² ≥ 0"
    again = Event.from_json(event.to_json())
    assert not again.live
    assert again.holds(outputs).tolist() == event.holds(outputs).tolist()


class LogisticLike:
    name = "by hand"

    def __init__(self, ranking):
        self.ranking, self.score = ranking, ranking.score


@pytest.mark.parametrize("x", [-0.5, 0.0, 0.99, 1.0, 5.0])
def test_intervals_are_half_open(x):
    test = Intervals([0.0, 2.0], [1.0, np.inf])
    assert bool(test.holds(np.array([[x]]))[0]) == ((0 <= x < 1) or x >= 2)


def test_words_have_as_many_digits_as_tell_values_apart():
    values = 1e10 + RNG.integers(0, 2, size=600) * 1e-3
    layout, _, _ = learned(values, values.copy())
    names = of_keys(layout, range(len(layout))).words
    assert names == "output is 10000000000 or 10000000000.001"
    wide = Intervals([1e10 + 0.25], [1e10 + 0.5])
    open_, _, _ = learned(RNG.normal(size=99), RNG.normal(size=99))
    assert of_keys(open_, (), [(0, wide)]).words == "10000000000.25 ≤ output < 10000000000.5"


def test_many_distinct_strings_cost_no_more_than_their_number():
    words = np.array([f"w{k}" for k in RNG.integers(0, 20_000, size=40_000)])
    _, p, _ = learned(words, words.copy())
    assert p.counts().sum() == 40_000
