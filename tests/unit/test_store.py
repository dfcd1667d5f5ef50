"""Stores: what is there is read, what is not is drawn, and nothing is mixed."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.helpers import laplace_mechanism, one_laplace

import dpassay as dp
from dpassay.errors import (
    DependentDraws,
    InvalidInput,
    MechanismRaised,
    NotEnoughDraws,
    StoreError,
    StoreWarning,
)
from dpassay.sampling import store
from dpassay.sampling.parts import listed

pytest.importorskip("pyarrow")

PAIR = (0.0, 1.0)


class Counting:
    """A Laplace mechanism that counts its calls; the count is no parameter of it."""

    calls = 0

    def __call__(self, x, rng):
        type(self).calls += 1
        return x + rng.laplace()


@pytest.fixture
def counting():
    class Fresh(Counting):
        calls = 0

    return Fresh


def draws(folder, n, rng=0, mechanism=None, **options):
    made = dp.from_function(one_laplace) if mechanism is None else mechanism
    return dp.draw(made, PAIR, n=n, rng=rng, sampling=dp.Sampling(store=folder, **options))


def equal(one, two):
    return np.array_equal(one.p.numbers, two.p.numbers) and np.array_equal(
        one.q.numbers, two.q.numbers
    )


# --- what is there is read


@pytest.mark.parametrize("n", [1, 2, 999, 3001])
@pytest.mark.parametrize("mechanism", [laplace_mechanism, dp.from_function(one_laplace)])
def test_a_store_changes_no_draw(n, mechanism, tmp_path, seed):
    plain = dp.draw(mechanism, PAIR, n=n, rng=seed)
    kept = draws(tmp_path / "runs", n, seed, mechanism)
    read = draws(tmp_path / "runs", n, seed, mechanism)
    assert equal(plain, kept)
    assert equal(plain, read)
    assert equal(plain, dp.Store(tmp_path / "runs").samples())
    assert len(dp.Store(tmp_path / "runs")) == n


def test_what_is_there_is_not_drawn(counting, tmp_path):
    box = dp.from_function(counting())
    draws(tmp_path, 300, mechanism=box)
    assert counting.calls == 600
    draws(tmp_path, 300, mechanism=box)
    assert counting.calls == 600
    draws(tmp_path, 500, mechanism=box)  # more: only the rest is drawn
    assert counting.calls == 1000
    assert equal(draws(tmp_path, 500, mechanism=box), dp.draw(box, PAIR, n=500, rng=0))


def test_an_audit_that_is_run_again_reads_both_stages(counting, tmp_path):
    box = dp.from_function(counting())
    way = dp.Sampling(store=tmp_path)
    plain = dp.audit(box, PAIR, "eps=0.5", n=1000, rng=0)
    calls = counting.calls
    kept = dp.audit(box, PAIR, "eps=0.5", n=1000, rng=0, sampling=way)
    assert counting.calls == 2 * calls
    again = dp.audit(box, PAIR, "eps=0.5", n=1000, sampling=way)  # the seed is the store's
    assert counting.calls == 2 * calls
    assert plain.to_json() == kept.to_json() == again.to_json()


def mixed(x, rng):
    u = rng.random()
    if u < 0.3:
        return None if u < 0.1 else "word" if u < 0.2 else float("nan")
    return (int(8 * u), x + rng.laplace()) if u < 0.6 else x + rng.laplace()


def mixed_at_once(x, size, rng):
    return [mixed(x, rng) for _ in range(size)]


@pytest.mark.parametrize("mechanism", [dp.from_function(mixed), mixed_at_once])
@pytest.mark.parametrize("workers", [1, 2])
def test_samples_of_a_store_are_those_that_were_drawn(mechanism, workers, tmp_path, seed):
    plain = dp.draw(mechanism, PAIR, n=1000, rng=seed)
    draws(tmp_path, 1000, seed, mechanism, workers=workers)
    stored = dp.Store(tmp_path).samples()
    for one, two in ((plain.p, stored.p), (plain.q, stored.q)):
        assert one.structures == two.structures
        assert np.array_equal(one.codes, two.codes)
        assert one.numbers.tobytes() == two.numbers.tobytes()


def test_pieces_of_any_size_make_the_same_blocks(tmp_path, seed, monkeypatch):
    """Outputs of many kinds, drawn in tasks of other sizes: the same verdict bit for bit."""
    box = dp.from_function(mixed)
    plain = dp.audit(box, PAIR, "eps=0.5", n=160, rng=seed)
    for k, seconds in enumerate((1e-9, 1e3)):
        monkeypatch.setattr("dpassay.sampling.cells._SECONDS", seconds)
        way = dp.Sampling(store=tmp_path / str(k), workers=1 + k % 2)
        kept = dp.audit(box, PAIR, "eps=0.5", n=160, rng=seed, sampling=way)
        assert kept.to_json() == plain.to_json()
        for half in listed(tmp_path / str(k))[::2]:
            half.path.unlink()  # as if the run had been killed
        monkeypatch.setattr("dpassay.sampling.cells._SECONDS", 1.0)
        again = dp.audit(box, PAIR, "eps=0.5", n=160, rng=seed, sampling=way)
        assert again.to_json() == plain.to_json()


def test_every_verb_draws_into_a_store(tmp_path):
    box = dp.zoo.DiscreteLaplace(1.0)
    pair = (0, 1)

    def way(name):
        return {"rng": 0, "sampling": dp.Sampling(store=tmp_path / name)}

    verdict = dp.audit(box, [(0, 1), (0, 2)], "eps=0.5", n=2000, **way("audit"))
    assert dp.Store(tmp_path / "audit").pairs.keys() == {0, 1}
    assert dp.replay(verdict, box, n=2000, **way("replay")).violated
    dp.bound(box, pair, "eps", n=2000, **way("bound"))
    dp.verify(box, pair, "eps=1.2, delta=0.1", n=2000, **way("verify"))
    dp.estimate(box, pair, n=2000, **way("estimate"))
    dp.spectrum.estimate(box, pair, n=2000, **way("spectrum"))
    dp.renyi.estimate(box, pair, order=2, n=2000, **way("renyi"))
    dp.tradeoff.estimate(box, pair, n=2000, **way("tradeoff"))
    dp.pure.lower_bound(dp.zoo.Laplace(), PAIR, n=2000, **way("pure"))
    for folder in tmp_path.iterdir():
        assert len(dp.Store(folder)) >= 2000


def test_samples_take_each_address_once(tmp_path, seed):
    """Blocks of 250 and of 500 begin alike: of a cell that is there in two sizes one counts."""
    draws(tmp_path, 500, seed, laplace_mechanism)
    draws(tmp_path, 1000, seed, laplace_mechanism)
    samples = dp.Store(tmp_path).samples()
    assert len(samples) == 1000
    assert np.unique(samples.p.numbers).size == 1000


def test_draws_of_their_own_randomness_all_count(tmp_path):
    def own(x):
        return float.fromhex(f"0x1.{os.urandom(6).hex()}p0")

    for n in (500, 2000):
        draws(tmp_path, n, mechanism=dp.from_function(own))
    samples = dp.Store(tmp_path).samples()
    assert len(samples) == 500 + 2000  # in cells of 1, and then of 2
    assert not samples.replayable
    assert np.unique(samples.p.numbers).size == 2500


def test_a_state_that_starts_again_with_the_run_is_noticed(tmp_path):
    def fresh():
        rng = np.random.default_rng(7)  # as in a script that seeds itself

        def own(x):
            return x + rng.laplace()

        return dp.from_function(own)

    draws(tmp_path, 300, mechanism=fresh())
    with pytest.raises(DependentDraws, match="starts again"):
        draws(tmp_path, 500, mechanism=fresh())
    draws(tmp_path, 1000, mechanism=fresh())  # in cells of 2: none of the first is among them
    with pytest.raises(DependentDraws, match="the mechanism carries a random state"):
        dp.Store(tmp_path).samples()


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
            monkeypatch.setattr(store, "__version__", version)
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
    assert sum(part.draws for part in listed(tmp_path)) == 10


# --- what goes wrong


@pytest.mark.parametrize("harm", [b"", b"PAR1", None])
def test_a_damaged_part_is_set_aside_drawn_again_and_said(harm, tmp_path, seed):
    plain = draws(tmp_path, 600, seed)
    part = listed(tmp_path)[1]
    data = part.path.read_bytes()
    part.path.write_bytes(data[:-5] + b"x" * 5 if harm is None else harm)
    with pytest.warns(StoreWarning, match=f"damaged.*left out.*{part.draws}"):
        assert len(dp.Store(tmp_path).samples()) == 600 - part.draws
    with pytest.warns(StoreWarning, match="set aside.*drawn again"):
        again = draws(tmp_path, 600, seed)
    assert equal(plain, again)
    assert equal(plain, draws(tmp_path, 600, seed))
    assert [path.name for path in (tmp_path / "damaged").iterdir()] == [part.path.name]


def test_a_part_that_is_gone_is_drawn_again(tmp_path, seed):
    plain = draws(tmp_path, 600, seed)
    for part in listed(tmp_path)[::2]:
        part.path.unlink()
    assert equal(plain, draws(tmp_path, 600, seed, workers=2))


def test_a_failure_keeps_the_draws_and_says_where(tmp_path, seed):
    calls = iter(range(10_000))

    class Fails:
        def __call__(self, x, rng):
            if next(calls) == 900:
                raise ValueError("out of luck")
            return x + rng.random()

    with pytest.raises(MechanismRaised, match="were made; they are kept in") as caught:
        draws(tmp_path, 1000, seed, dp.from_function(Fails()))
    kept = len(dp.Store(tmp_path))
    assert 100 < kept < 1000
    assert len(caught.value.samples) == kept
    fixed = draws(tmp_path, 1000, seed, dp.from_function(Fails()))
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
    from dpassay.sampling import parts

    plain = draws(tmp_path / "plain", 600, seed)
    writes = iter(range(10_000))
    real = parts._write

    def full(draft, place, data):
        if place.parent.name == "parts" and next(writes) > 2:
            raise OSError(28, "No space left on device")
        real(draft, place, data)

    monkeypatch.setattr(parts, "_write", full)
    with pytest.raises(StoreError, match="no room left .*No space left.*safe: make room"):
        draws(tmp_path / "runs", 600, seed, workers=workers)
    assert 0 < len(dp.Store(tmp_path / "runs")) < 600
    monkeypatch.setattr(parts, "_write", real)
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


@pytest.mark.skipif(store.fcntl is None, reason="there is no lock")
def test_one_process_draws_at_a_time_and_the_lock_goes_with_it(tmp_path):
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


def test_a_worker_that_outlives_its_run_saves_nothing_more(tmp_path, seed):
    """As after a kill: the next run takes the store over, and the left-over worker then saves."""
    from dpassay.outputs.canonical import from_raw
    from dpassay.privacy.pairs import Pair
    from dpassay.sampling.cells import Task

    side = from_raw([1.0], 1)
    entry = store.Entry.of(dp.from_function(one_laplace), Pair(*PAIR), False, None)
    with store.opened(tmp_path, entry, seed=seed, key=(0, 0)) as stage:
        left = stage.shelf
        left.save(Task(0, 1), (side, side))
        os.rename(tmp_path / left.work, tmp_path / "work-left")  # it was killed: nothing tidied up
    os.rename(tmp_path / "work-left", tmp_path / left.work)
    draws(tmp_path, 10, seed)
    with pytest.raises(StoreError, match="taken over"):
        left.save(Task(1, 2), (side, side))
    assert len(dp.Store(tmp_path)) == 10


def test_without_locks_the_last_to_come_takes_over(tmp_path, seed, monkeypatch):
    from dpassay.outputs.canonical import from_raw
    from dpassay.privacy.pairs import Pair
    from dpassay.sampling.cells import Task

    monkeypatch.setattr(store, "fcntl", None)
    entry = store.Entry.of(dp.from_function(one_laplace), Pair(*PAIR), False, None)
    side = from_raw([1.0], 1)
    with store.opened(tmp_path, entry, seed=seed, key=(0, 0)) as first:
        first.shelf.save(Task(0, 1), (side, side))
        with store.opened(tmp_path, entry, seed=seed, key=(0, 0)) as second:
            assert second.at(0, 1) is not None
            with pytest.raises(StoreError, match="taken over by another process"):
                first.shelf.save(Task(1, 2), (side, side))
            second.shelf.save(Task(1, 2), (side, side))
    assert len(dp.Store(tmp_path)) == 2


# --- reading


def test_a_store_says_what_is_in_it(tmp_path):
    draws(tmp_path, 10, rng=5, mechanism=dp.zoo.Laplace(1.5))
    found = dp.Store(str(tmp_path))
    assert repr(found) == (
        f"Store({str(tmp_path)!r}): Laplace(scale=1.5), seed 5, dpassay {dp.__version__}\n"
        "  0: 10 draws a side on 0.0 and 1.0"
    )
    assert found.mechanism()["scale"] == "1.5"
    assert tuple(found.pairs[0]) == PAIR
    assert found.samples().pair == found.pairs[0]


def test_the_draws_of_an_audit_replay_nothing(tmp_path):
    draws(tmp_path / "one", 2000)
    draws(tmp_path / "two", 2000, rng=1)
    verdict = dp.audit(dp.Store(tmp_path / "one").samples(), claim="eps=0.5")
    with pytest.raises(InvalidInput, match="needs fresh ones"):
        dp.replay(verdict, dp.Store(tmp_path / "one").samples())
    assert dp.replay(verdict, dp.Store(tmp_path / "two").samples()).violated


def test_several_pairs_are_asked_for_by_number(tmp_path):
    way = dp.Sampling(store=tmp_path)
    pairs = [(0.0, 1.0), (0.0, 2.0)]
    dp.audit(dp.zoo.Laplace(), pairs, "eps=1", n=400, rng=0, sampling=way)
    found = dp.Store(tmp_path)
    with pytest.raises(InvalidInput, match=r"0: 0.0 and 1.0; 1: 0.0 and 2.0\), got None"):
        found.samples()
    assert len(found.samples(0)) + len(found.samples(1)) == len(found) == 500
    assert tuple(found.samples(1).pair) == (0.0, 2.0)


def test_a_store_without_draws_is_said(tmp_path):
    draws(tmp_path, 10)
    for part in listed(tmp_path):
        part.path.unlink()
    with pytest.raises(NotEnoughDraws, match="holds no draws"):
        dp.Store(tmp_path).samples()


@pytest.mark.parametrize("given", [3, None, b"runs"])
def test_a_store_is_a_folder(given):
    with pytest.raises(InvalidInput, match="folder"):
        dp.Store(given)
    if given is not None:
        with pytest.raises(InvalidInput, match="store must be a folder"):
            dp.Sampling(store=given)


def test_inputs_of_every_kind_come_back_or_are_shown(tmp_path):
    for k, data in enumerate([np.arange(3.0), {"a": (1, 2)}, np.zeros(200_000), "text"]):
        pair = (data, data)
        way = dp.Sampling(store=tmp_path / str(k))
        for n in (4, 8):
            dp.draw(lambda x, size, rng: rng.random(size), pair, n=n, rng=0, sampling=way)
        found = dp.Store(tmp_path / str(k)).pairs[0]
        assert len(json.loads((tmp_path / str(k) / "store.json").read_text())) == 4
        if k < 2:
            assert dp.Store(tmp_path / str(k)).samples().pair == found
            assert np.array_equal(found[0], data) if k == 0 else found[0] == data


def test_an_input_that_cannot_be_compared_is_said(tmp_path):
    pair = (object(), object())
    way = dp.Sampling(store=tmp_path)
    with pytest.warns(
        StoreWarning, match=r"builtins.object, which cannot be compared.*same inputs"
    ):
        dp.draw(lambda x, size, rng: rng.random(size), pair, n=4, rng=0, sampling=way)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.parametrize("mechanism", [laplace_mechanism, dp.from_function(one_laplace)])
def test_executors_draw_into_a_store(pool, mechanism, tmp_path, seed):
    with pool(2) as executor:
        draws(tmp_path, 600, seed, mechanism, executor=executor)
    assert equal(dp.Store(tmp_path).samples(), dp.draw(mechanism, PAIR, n=600, rng=seed))


def test_the_first_draw_is_kept_within_seconds_however_slow_the_mechanism(tmp_path):
    """Draw by draw where a draw takes long: 40 draws of 0.02 s are no block of 40."""
    seen = []

    def slow(x, rng):
        seen.append(len(listed(tmp_path)))
        time.sleep(0.02)
        return x + rng.random()

    draws(tmp_path, 40, mechanism=dp.from_function(slow))
    assert seen[2] == 1  # the first draw on either side is on the disk before the next is made
    assert max(part.draws for part in listed(tmp_path)) <= 32


def test_the_folder_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draws("runs", 10)
    assert dp.Store("runs").path == Path(tmp_path / "runs")
