"""Copies are noticed, and repeats that independent draws have are none."""

import itertools
import time
import warnings

import numpy as np
import pytest
from tests.helpers import canonical, objects

import dpassay as dp
from dpassay.errors import DependenceWarning, DependentDraws, InvalidInput
from dpassay.outputs.canonical import from_raw
from dpassay.privacy.relations import Pair
from dpassay.sampling.repeated_draws import (
    _WATCHED,
    CopyCheck,
    DrawMethod,
    SeenBatches,
    _RepeatCounts,
    drawn_before,
    fingerprint_of,
    head,
    row_hashes,
)

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


def hashes(values):
    return row_hashes(from_raw(values, len(values)))


@pytest.mark.parametrize("name", HONEST)
def test_repeats_of_independent_draws_are_no_alarm(name, seeds):
    for seed in seeds[:15]:
        rng, watched = np.random.default_rng(seed), _RepeatCounts()
        for size in TASKS:
            assert watched.add(hashes(HONEST[name](rng, size))) is None


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("name", ["continuous", "rounded to 4 digits", "an atom"])
def test_states_copied_to_workers_are_noticed(copies, name, seed):
    """Workers draw the same values, in tasks of other sizes and in another order."""
    rng, watched = np.random.default_rng(seed), _RepeatCounts()
    values = HONEST[name](rng, 2000)
    workers = [np.split(values, np.sort(rng.integers(0, 2000, size=20))) for _ in range(copies)]
    found = None
    for tasks in zip(*workers, strict=True):
        for task in tasks:
            found = found or watched.add(hashes(task))
    assert found


def test_memory_does_not_grow_and_copies_stay_together(seed):
    rng, watched = np.random.default_rng(seed), _RepeatCounts()
    for _ in range(20):
        values = rng.normal(size=5000)
        watched.add(hashes(values))
        assert watched._hashes.size <= _WATCHED
    assert watched.add(hashes(values)) is None  # a twentieth: too few to be sure
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


@pytest.mark.parametrize("per_call", [False, True])
def test_outputs_that_are_zeros_of_either_sign_are_constant(per_call):
    def one(x, rng):
        return x * rng.choice([1.0, -1.0])

    def many(x, size, rng):
        return x * np.repeat(rng.choice([1.0, -1.0], -(-size // 64)), 64)[:size]

    mechanism = dp.from_function(one) if per_call else many
    drawn = dp.draw(mechanism, (0.0, 0.0), n=2000, rng=0)
    assert np.signbit(drawn.p.numbers).any()  # the representation is kept
    assert not np.signbit(drawn.p.numbers).all()


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
    check, method = CopyCheck(), DrawMethod(calls)
    first, later = (head(from_raw(np.full(64, value), 64)) for value in (0.123, 0.456))
    check.add((first, first), Pair(0, 1), method)
    with pytest.raises(DependentDraws, match=advice):
        check.add((later, later), Pair(0, 1), method)


# --- batches that are given twice


@pytest.mark.parametrize("size", [8, 20, 500])
def test_a_batch_given_again_is_doubted(size):
    rng = np.random.default_rng(0)
    watch = dp.Monitor("eps=0.5")
    p, q = rng.laplace(size=size), 1 + rng.laplace(size=size)
    watch.update(p, q)
    with pytest.warns(DependenceWarning, match="given before, digit for digit"):
        watch.update(p, q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        for _ in range(10):
            watch.update(p, q)
    found = watch.verdict()
    assert found.guarantee == "heuristic"
    assert any("given before" in note for note in found.about.notes)


def test_it_is_remembered_in_json_and_for_either_side():
    rng = np.random.default_rng(1)
    watch = dp.Monitor("eps=1")
    p = rng.normal(size=30)
    watch.update(p, rng.normal(size=30))
    again = dp.Monitor.from_json(watch.to_json())
    with pytest.warns(DependenceWarning, match="given before"):
        again.update(p, rng.normal(size=30))
    assert dp.Monitor.from_json(again.to_json()).doubts == again.doubts
    alone = dp.Monitor("eps=1")
    alone.update(p_outputs=p)
    with pytest.warns(DependenceWarning, match="given before"):
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


# --- draws of an earlier analysis


def _more_draws(kind, n, rng):
    match kind:
        case "coins":
            return rng.integers(2, size=n)
        case "integers":
            return rng.poisson(1000, size=n)
        case "words":
            return objects(*rng.choice(["a", "b", None], size=n))
        case "rows":
            return np.column_stack([np.round(rng.normal(size=n), 3), rng.poisson(10, size=n)])
        case "heavy":
            return np.minimum(rng.zipf(1.3, size=n), 10**9).astype(float)
    return np.round(rng.normal(size=n), int(kind))


@pytest.mark.parametrize(
    "kind", ["coins", "integers", "words", "rows", "heavy", "2", "3", "5", "15"]
)
@pytest.mark.parametrize("sizes", [(2000, 2000), (500, 8000), (4000, 60)])
def test_fresh_draws_are_fresh(kind, sizes, seeds):
    for seed in seeds[:15]:
        rng = np.random.default_rng(seed)
        before, now = ([canonical(_more_draws(kind, n, rng)) for _ in range(2)] for n in sizes)
        assert not drawn_before(fingerprint_of(*before), *now)


@pytest.mark.parametrize(("kind", "kept"), [("15", 0.3), ("5", 0.3), ("5", 0.9), ("rows", 0.9)])
def test_a_part_of_the_draws_is_known_again(kind, kept, seeds):
    for seed in seeds[:10]:
        rng = np.random.default_rng(seed)
        raw = [_more_draws(kind, 2000, rng) for _ in range(2)]
        mark = fingerprint_of(*map(canonical, raw))
        some = [side[rng.permutation(2000)[: int(kept * 2000)]] for side in raw]
        assert drawn_before(mark, *map(canonical, some))
        assert drawn_before(mark, *map(canonical, raw[::-1]))


def test_a_replay_refuses_what_is_left_of_the_more_draws():
    rng = np.random.default_rng(0)
    p, q = rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)
    found = dp.audit(dp.from_samples(p, q), claim="eps=0.5", loss="values")
    stored = dp.Verdict.from_json(found.to_json())
    with pytest.raises(InvalidInput, match="many of these are draws on which the event was found"):
        dp.replay(stored, dp.from_samples(p[100:], q[100:]))
    with pytest.raises(InvalidInput, match="these are the draws on which the event was found"):
        dp.replay(stored, dp.from_samples(p, q))
    fresh = dp.from_samples(rng.normal(1, 1, 2000), rng.normal(0, 1, 2000))
    assert dp.replay(stored, fresh).violated


def test_what_is_no_fingerprint_says_nothing():
    draws = canonical(np.arange(100.0)), canonical(np.arange(100.0))
    for text in ("", "abc", "abc|1,2", "abc|x,1,1,AA", "abc|1,1,1,!"):
        assert not drawn_before(text, *draws)
