"""Copies are noticed, and repeats that independent draws have are none."""

import itertools

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import DependentDraws
from dpassay.outputs.canonical import from_raw
from dpassay.privacy.pairs import Pair
from dpassay.sampling.copies import _WATCHED, CopyCheck, Origin, _Watched, head
from dpassay.sampling.dependence import row_marks

#: The draws of successive tasks.
TASKS = [2, 2, 16, 16, 128, 128, 256, 512, 1024, 2048]

HONEST = {
    "uniform on 10": lambda rng, n: rng.integers(10, size=n),
    "uniform on 1000": lambda rng, n: rng.integers(1000, size=n),
    "uniform on 50 000": lambda rng, n: rng.integers(50_000, size=n),
    "rounded to 2 digits": lambda rng, n: np.round(rng.laplace(size=n), 2),
    "rounded to 4 digits": lambda rng, n: np.round(rng.laplace(size=n), 4),
    "heavy tail": lambda rng, n: rng.zipf(1.5, size=n),
    "an atom": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.random(n)),
    "continuous": lambda rng, n: rng.normal(size=n),
    "constant": lambda rng, n: np.zeros(n),
}


def marks(values):
    return row_marks(from_raw(values, len(values)))


@pytest.mark.parametrize("name", HONEST)
def test_repeats_of_independent_draws_are_no_alarm(name, seeds):
    for seed in seeds[:15]:
        rng, watched = np.random.default_rng(seed), _Watched()
        for size in TASKS:
            assert watched.add(marks(HONEST[name](rng, size))) is None


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("name", ["continuous", "rounded to 4 digits", "an atom"])
def test_states_copied_to_workers_are_noticed(copies, name, seed):
    """Workers draw the same values, in tasks of other sizes and in another order."""
    rng, watched = np.random.default_rng(seed), _Watched()
    values = HONEST[name](rng, 2000)
    workers = [np.split(values, np.sort(rng.integers(0, 2000, size=20))) for _ in range(copies)]
    found = None
    for tasks in zip(*workers, strict=True):
        for task in tasks:
            found = found or watched.add(marks(task))
    assert found


def test_memory_does_not_grow_and_copies_stay_together(seed):
    rng, watched = np.random.default_rng(seed), _Watched()
    for _ in range(20):
        values = rng.normal(size=5000)
        watched.add(marks(values))
        assert watched._marks.size <= _WATCHED
    assert watched.add(marks(values)) is None  # a twentieth: too few to be sure
    assert np.count_nonzero(watched._counts == 2) > 50  # all copies of what is watched are counted


@pytest.mark.parametrize("lengths", [(300, 300), (300, 20), (16, 5000), (100, 64)])
def test_runs_that_begin_alike_are_noticed_whatever_their_lengths(lengths, seed):
    values = np.random.default_rng(seed).normal(size=5000)
    other = np.random.default_rng(seed + 1).normal(size=5000)
    check, pair = CopyCheck(), Pair(0.0, 1.0)
    one, two = (head(from_raw(values[:length], length)) for length in lengths)
    fresh = [head(from_raw(other[k * 100 :][:100], 100)) for k in range(2)]
    check.add((one, fresh[0]), pair)
    with pytest.raises(DependentDraws, match="begin with the same outputs"):
        check.add((two, fresh[1]), pair)


def test_coins_that_begin_alike_are_no_alarm_until_it_is_no_accident(seed):
    coins = np.random.default_rng(seed).integers(2, size=64)
    check, pair = CopyCheck(), Pair(0.0, 1.0)
    for length in (1, 4, 16, 20):  # 2^-20 is no proof
        run = head(from_raw(coins[:length], length))
        check.add((run, run), pair)
    run = head(from_raw(coins, 64))
    check.add((run, run), pair)
    with pytest.raises(DependentDraws):
        check.add((run, run), pair)


def seeded_by(clock):
    """Mechanisms whose generator is seeded with a time that moves on after so many calls."""

    def many(x, size, rng):
        return x + np.random.default_rng(next(clock)).laplace(size=size)

    def one(x, rng):
        return x + np.random.default_rng(next(clock)).laplace()

    def alone(x):
        return x + np.random.default_rng(next(clock)).laplace()

    return {"many": many, "one": dp.from_function(one), "alone": dp.from_function(alone)}


def ticks(calls):
    return (k // calls for k in itertools.count())


@pytest.mark.parametrize(
    ("name", "calls", "sign"),
    [
        ("many", 10**9, "begin with the same outputs in the same order"),
        ("one", 9, "times, digit for digit"),
        ("alone", 9, "times, digit for digit"),
    ],
)
def test_seeds_that_come_again_are_named_with_the_sign_and_advice_not_yet_followed(
    name, calls, sign
):
    mechanism = seeded_by(ticks(calls))[name]
    with pytest.raises(DependentDraws) as found:
        dp.draw(mechanism, (0.0, 1.0), n=4000, rng=0)
    said = str(found.value)
    assert sign in said
    assert "The likely cause: inside the mechanism a generator is made" in said
    assert "the time" in said
    assert "worker" not in said  # there is one
    assert ("write f(data, rng)" in said) == (name == "alone")
    assert ("`rng` that it is given" in said) == (name != "alone")


def test_copied_states_are_a_cause_where_there_are_workers():
    mechanism = seeded_by(ticks(10**9))["many"]
    with pytest.raises(DependentDraws, match="copied to every worker"):
        dp.draw(mechanism, (0.0, 1.0), n=4000, rng=0, sampling=dp.Sampling(workers=2))


@pytest.mark.parametrize(
    ("calls", "advice"),
    [(True, "such as the time"), (False, "wrap the function: dp.from_function")],
)
def test_one_value_repeated_has_other_causes_where_every_output_is_a_call(calls, advice):
    check, origin = CopyCheck(), Origin(calls)
    first, later = (head(from_raw(np.full(64, value), 64)) for value in (0.123, 0.456))
    check.add((first, first), Pair(0, 1), origin)
    with pytest.raises(DependentDraws, match=advice):
        check.add((later, later), Pair(0, 1), origin)
