"""Events as data."""

import re

import numpy as np
import pytest
from tests.helpers import learned, objects

import dpassay as dp
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.event_code import expression
from dpassay.outputs.events import Event, Intervals, abridged_keys, of_keys
from dpassay.outputs.keys import learn

RNG = np.random.default_rng(0)


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


@pytest.mark.parametrize("x", [-0.5, 0.0, 0.99, 1.0, 5.0])
def test_intervals_are_half_open(x):
    test = Intervals([0.0, 2.0], [1.0, np.inf])
    assert bool(test.holds(np.array([[x]]))[0]) == ((0 <= x < 1) or x >= 2)


def test_a_free_number_is_said_in_words():
    raw = objects(*["error"] * 9, *[None] * 9, *RNG.normal(size=30).tolist())
    layout, _, _ = learned(raw, objects(*["error"] * 9, *RNG.normal(size=30).tolist()))
    key = {layout.words(k): k for k in range(len(layout))}
    assert of_keys(layout, [key["•"]]).words == "output is a number"
    assert of_keys(layout, [key["None"], key["•"]]).words == "output is None or a number"
    half = Intervals(np.array([0.5]), np.array([np.inf]))
    numbers, _, _ = learned(RNG.normal(size=30), RNG.normal(size=30))
    others = of_keys(numbers, (), [(0, half)], True)
    assert others.words == "output ≥ 0.5 or output is no finite number"
    assert others.holds(from_raw([0.1, 0.5, None, np.nan], 4)).tolist() == [False, True, True, True]
    mixed, _, _ = learned(np.maximum(RNG.normal(size=99), 0.0), RNG.normal(size=99))
    key = {mixed.words(k): k for k in range(len(mixed))}
    assert of_keys(mixed, [key["•"]]).words == "output is a number that is not repeated"


def test_free_numbers_inside_an_output_are_explained():
    x = np.stack([np.repeat([0.0, 1.0], 30), RNG.normal(size=60)], axis=1)
    layout, _, _ = learned(x, np.stack([x[:, 0], RNG.normal(size=60)], axis=1))
    key = {layout.words(k): k for k in range(len(layout))}
    assert of_keys(layout, [key["(0, •)"]]).words == "output is (0, •) (• is any number)"
    half = Intervals([-np.inf], [0.5])
    assert of_keys(layout, (), [(key["(0, •)"], half)]).words == "output is (0, •) with • < 0.5"


def test_values_that_repeat_are_excepted_from_free_numbers():
    def rows():
        second = np.where(RNG.random(600) < 0.1, 7.0, RNG.normal(size=600))
        return np.stack([RNG.integers(0, 2, size=600), second], axis=1)

    layout, _, _ = learned(rows(), rows())
    key = {layout.words(k): k for k in range(len(layout))}
    found = of_keys(layout, [key["(0, •)"]])
    assert found.words == "output is (0, •) (• is any number, but not (0, 7))"
    assert found.holds(from_raw(np.array([[0.0, 7.0], [0.0, 0.5]]), 2)).tolist() == [False, True]
    both = of_keys(layout, [key["(0, •)"], key["(0, 7)"]])
    assert both.words == "output is (0, •) or (0, 7) (• is any number)"


def test_words_have_as_many_digits_as_tell_values_apart():
    values = 1e10 + RNG.integers(0, 2, size=600) * 1e-3
    layout, _, _ = learned(values, values.copy())
    names = of_keys(layout, range(len(layout))).words
    assert names == "output is 10000000000 or 10000000000.001"
    wide = Intervals([1e10 + 0.25], [1e10 + 0.5])
    open_, _, _ = learned(RNG.normal(size=99), RNG.normal(size=99))
    assert of_keys(open_, (), [(0, wide)]).words == "10000000000.25 ≤ output < 10000000000.5"


def test_an_edge_just_above_a_round_number_is_named_by_that_number():
    values = RNG.normal(size=50)
    layout, _, _ = learned(values, RNG.normal(size=50))
    inf = np.inf
    for low, high, words in (
        (-inf, np.nextafter(0, 1), "output ≤ 0"),
        (np.nextafter(0.043, 1), inf, "output > 0.043"),
        (np.nextafter(-0.5, 1), np.nextafter(0.25, 1), "-0.5 < output ≤ 0.25"),
        (-0.5, 0.25, "-0.5 ≤ output < 0.25"),
        (-inf, 0.043, "output < 0.043"),
    ):
        event = of_keys(layout, partial=[(0, Intervals(np.array([low]), np.array([high])))])
        assert event.words == words
        at = from_raw(np.array([0.0, 0.043, -0.5, 0.25]), 4)
        inside = (low <= at.numbers[:, 0]) & (at.numbers[:, 0] < high)
        assert event.holds(at).tolist() == inside.tolist()


def test_a_long_sequence_of_free_numbers_is_named_by_its_length():
    rows = objects(*(tuple(RNG.normal(size=n).tolist()) for n in (40, 1200) for _ in range(60)))
    layout, _, _ = learned(rows, rows)
    names = sorted(layout.words(key) for key in range(len(layout)))
    assert names == ["(•, •, …: 1,200 in all)", "(•, •, …: 40 in all)"]


def test_whole_numbers_are_named_as_ranges():
    rng = np.random.default_rng(0)
    outputs = dp.from_samples(rng.integers(0, 20, 4000), rng.integers(0, 20, 4000)).p
    layout, _, _ = learn(outputs, outputs)
    key = {layout.words(k): k for k in range(len(layout))}
    upper = [key[str(v)] for v in (19, *range(6, 12), 13)]
    assert of_keys(layout, upper).words == "output is a whole number from 6 to 11, 13 or 19"
    lower = [key[str(v)] for v in range(6)]
    rest = of_keys(layout, [k for k in range(len(layout)) if k not in lower], otherwise=True)
    assert rest.words == "output is anything but a whole number from 0 to 5"
    assert abridged_keys(rest) == []


def test_outputs_that_words_count_can_be_listed():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (4000, 2))
    outputs = dp.from_samples(rows[:2000], rows[2000:]).p
    layout, _, _ = learn(outputs, outputs)
    assert " others" not in of_keys(layout, range(12)).words
    assert abridged_keys(of_keys(layout, range(12))) == []
    event = of_keys(layout, range(13))
    assert event.words.endswith("or one of 10 others")
    assert abridged_keys(event) == list(range(13))


@pytest.mark.parametrize("value", [np.nan, np.inf, 3.5])
def test_outputs_that_are_always_the_same_have_a_report(value, tmp_path):
    verdict = dp.audit(lambda x, n, rng: np.full(n, value), (0.0, 1.0), "eps=1", n=500, rng=0)
    verdict.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_numbers_against_none_are_an_event_of_numbers(seed):
    def fails(x, n, rng):
        return np.full(n, np.nan) if x else rng.normal(size=n)

    verdict = dp.audit(fails, (0, 1), "eps=1", n=2000, rng=seed)
    assert verdict.witness.event.words in ("output is a number", "output is nan")


def test_counts_far_out_are_an_interval(seed):
    verdict = dp.audit(
        lambda x, n, rng: rng.poisson(20 + 3 * x, n), (0, 1), "eps=.5", n=20_000, rng=seed
    )
    assert re.fullmatch(r"output (≥|≤) [\d.]+", verdict.witness.event.words)


@pytest.mark.parametrize(
    ("unit", "scale", "loss"), [("D", 7, "logistic"), ("s", 500, "auto"), ("s", 3600, "auto")]
)
def test_thresholds_of_dates_are_dates_that_can_be_counted(unit, scale, loss, seed):
    rng = np.random.default_rng(seed)
    p, q = (
        np.datetime64("2023-03-15", unit)
        + np.round(rng.laplace(centre, scale, 2000)).astype(int).astype(f"m8[{unit}]")
        for centre in (0, scale)
    )
    verdict = dp.audit(dp.from_samples(p, q), claim="eps=0.1", loss=loss)
    event, said = verdict.witness.event, str(verdict.witness.event)
    code = re.sub(r"(20[\dT:-]+)", r"np.datetime64('\1')", said.replace("the output", "output"))
    code = code.replace("≥", ">=").replace("≤", "<=").replace(" is ", " == ")
    for side in (p, q):  # the words, as a person would count them
        count = sum(bool(eval(code, {"np": np, "output": output})) for output in side)
        assert event.count(from_raw(side, len(side))) == count


@pytest.mark.parametrize("centre", [0.0, 13330.0, 1234567.0, 1e9])
@pytest.mark.parametrize("places", [2, 6, 15])
def test_the_words_of_a_threshold_select_the_outputs_that_were_counted(centre, places, seed):
    rng = np.random.default_rng(seed)
    p, q = (np.round(centre + x + rng.laplace(scale=0.75, size=8000), places) for x in (0, 1))
    verdict = dp.audit(dp.from_samples(p, q), claim="eps=1", loss="values", rng=seed)
    words = verdict.witness.event.words
    sign, threshold = re.fullmatch(r"output ([≥≤<>]) (\S+)", words).groups()
    holds = {"≥": np.greater_equal, "≤": np.less_equal, "<": np.less, ">": np.greater}[sign]
    i, _, j, _ = verdict.witness.in_all_rows
    assert [holds(x, float(threshold)).sum() for x in (p, q)] == [i, j]


def test_repeated_values_are_not_listed_beside_any_number():
    """All of a structure is in the event: "•" says it; without one repeated value it is excepted."""

    def rows(size):
        first = np.where(RNG.random(size) < 0.3, 20.0, RNG.normal(size=size))
        second = np.where(RNG.random(size) < 0.3, 8.0, RNG.normal(size=size))
        return [{"a": a, "b": b} for a, b in zip(first.tolist(), second.tolist(), strict=True)]

    layout, _, _ = learned(
        objects(*rows(300), {"a": 1.0}, {"a": 1.0}), objects(*rows(300), {"a": 1.0})
    )
    keys = [
        k
        for k in range(len(layout))
        if layout.words(k).startswith("{'a': ") and layout.parts_of[k] == layout.parts_of[0]
    ]
    assert len(keys) == 4
    every = of_keys(layout, keys)
    assert every.words == "output is {'a': •, 'b': •} (• is any number)"
    assert expression(every) == "set(output) == {'a', 'b'}"
    assert every.holds(from_raw(objects({"a": 20.0, "b": 8.0}, {"a": 1.0}), 2)).tolist() == [
        True,
        False,
    ]
    fewer = of_keys(layout, keys[:-1])
    assert "{'a': 20, 'b': •}" in fewer.words
    assert "but not {'a': 20, 'b': 8}" in fewer.words
    assert expression(fewer) != expression(every)
