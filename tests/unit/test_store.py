"""Stores: what is there is read, what is not is drawn, and nothing is mixed."""

import json
import os
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
    NotEnoughDraws,
    StoreError,
    StoreWarning,
)
from dpassay.sampling.store_files import list_parts

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
    named = {"mechanism": box, "identity": "counting"}  # its state changes as it runs
    draws(tmp_path, 300, **named)
    assert counting.calls == 600
    draws(tmp_path, 300, **named)
    assert counting.calls == 600
    draws(tmp_path, 500, **named)  # more: only the rest is drawn
    assert counting.calls == 1000
    assert equal(draws(tmp_path, 500, **named), dp.draw(box, PAIR, n=500, rng=0))


def test_an_audit_that_is_run_again_reads_both_stages(counting, tmp_path):
    box = dp.from_function(counting())
    way = dp.Sampling(store=tmp_path, identity="counting")
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
        monkeypatch.setattr("dpassay.sampling.job._SECONDS", seconds)
        way = dp.Sampling(store=tmp_path / str(k), workers=1 + k % 2)
        kept = dp.audit(box, PAIR, "eps=0.5", n=160, rng=seed, sampling=way)
        assert kept.to_json() == plain.to_json()
        for half in list_parts(tmp_path / str(k))[::2]:
            half.path.unlink()  # as if the run had been killed
        monkeypatch.setattr("dpassay.sampling.job._SECONDS", 1.0)
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


@pytest.mark.filterwarnings("ignore::dpassay.errors.StoreWarning")
def test_draws_of_their_own_randomness_all_count(tmp_path):
    def own(x):
        return float.fromhex(f"0x1.{os.urandom(6).hex()}p0")

    for n in (500, 2000):
        draws(tmp_path, n, mechanism=dp.from_function(own))
    samples = dp.Store(tmp_path).samples()
    assert len(samples) == 500 + 2000  # in cells of 1, and then of 2
    assert not samples.replayable
    assert np.unique(samples.p.numbers).size == 2500


@pytest.mark.filterwarnings("ignore::dpassay.errors.StoreWarning")
def test_a_state_that_starts_again_with_the_run_is_noticed(tmp_path):
    def fresh():
        rng = np.random.default_rng(7)  # as in a script that seeds itself

        def own(x):
            return x + rng.laplace()

        return dp.from_function(own)

    draws(tmp_path / "a", 300, mechanism=fresh())
    with pytest.raises(DependentDraws, match="starts again"):
        draws(tmp_path / "a", 500, mechanism=fresh())
    for n in (500, 1000):  # in cells of 1 and of 2: none of the first is among the others
        draws(tmp_path / "b", n, mechanism=fresh())
    with pytest.raises(DependentDraws, match="the mechanism carries a random state"):
        dp.Store(tmp_path / "b").samples()


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
    for part in list_parts(tmp_path):
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


def test_an_input_that_cannot_be_described_needs_a_name(tmp_path):
    pair = (iter("a"), (x for x in "b"))
    with pytest.raises(StoreError, match=r"the input <generator.*identity="):
        draws_on(pair, tmp_path)
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        draws_on(pair, tmp_path, identity="a and b")
    with pytest.raises(StoreError, match="identity is a and b in the store"):
        draws_on(pair, tmp_path, identity="others")


def draws_on(pair, folder, **options):
    way = dp.Sampling(store=folder, **options)
    return dp.draw(lambda x, size, rng: rng.random(size), pair, n=4, rng=0, sampling=way)


def test_a_mechanism_whose_state_changes_is_the_same_to_the_end_of_a_run(counting, tmp_path):
    """Two pairs and two stages: what it is, is looked up before the first call."""
    way = dp.Sampling(store=tmp_path)
    dp.audit(dp.from_function(counting()), [PAIR, (0.0, 2.0)], "eps=1", n=400, rng=0, sampling=way)
    with pytest.raises(StoreError, match=r"calls is 0 in the store, and \d+ here.*identity="):
        dp.audit(
            dp.from_function(counting()), [PAIR, (0.0, 2.0)], "eps=1", n=400, rng=0, sampling=way
        )


@pytest.mark.parametrize("given", [{"identity": 3, "store": "runs"}, {"identity": "mine"}])
def test_an_identity_is_a_text_for_a_store(given):
    with pytest.raises(InvalidInput, match="identity"):
        dp.Sampling(**given)


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
        seen.append(len(list_parts(tmp_path)))
        time.sleep(0.02)
        return x + rng.random()

    draws(tmp_path, 40, mechanism=dp.from_function(slow))
    assert seen[2] == 1  # the first draw on either side is on the disk before the next is made
    assert max(part.draws for part in list_parts(tmp_path)) <= 32


def test_the_folder_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draws("runs", 10)
    assert dp.Store("runs").path == Path(tmp_path / "runs")


def test_draws_that_another_number_cannot_use_are_announced_before_new_ones_are_made(
    tmp_path, seed
):
    """600 and 1,000 draws are in cells of 2, and 1,100 in cells of 4: other streams."""
    mechanism = dp.from_function(one_laplace)
    draws(tmp_path, 600, seed, mechanism)
    draws(tmp_path, 1000, seed, mechanism)
    with pytest.warns(
        StoreWarning, match=r"1,000 draws .* cells of 2.* 1,100 draws a side are made"
    ):
        draws(tmp_path, 1100, seed, mechanism)
    draws(tmp_path, 1100, seed, mechanism)  # all are there
