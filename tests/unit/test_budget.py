"""A time budget is kept, whatever a draw costs; a clock that only draws and fits move says so exactly."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput, NotEnoughDraws
from dpassay.sampling import budget, samples

PAIR = (0.0, 1.0)


class FakeTime:
    """Seconds that pass when somebody says so."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def fake(monkeypatch):
    made = FakeTime()
    for module in (budget, samples):
        monkeypatch.setattr(module, "time", made)
    monkeypatch.setattr("dpassay.auditing.stages.time", made)
    monkeypatch.setattr("dpassay.hunting.screening.time", made)
    return made


def vectorised(fake, cost, call=0.0):
    def mechanism(x, size, rng):
        fake.now += call + cost * size
        return x + rng.laplace(size=size)

    return mechanism


def one_by_one(fake, cost):
    def function(x, rng):
        fake.now += cost
        return x + rng.laplace()

    return dp.from_function(function)


QUIET = dp.Sampling(progress=False)
#: Seconds a draw, and a budget that is a few hundred draws to half a million.
COSTS = [
    (1e-6, 0.5),
    (1e-5, 1.0),
    (1e-4, 2.0),
    (1e-3, 5.0),
    (0.1, 60.0),
    (1.0, 600.0),
    (10.0, 4000.0),
]


@pytest.mark.parametrize(("cost", "seconds"), COSTS)
@pytest.mark.parametrize("kind", [vectorised, one_by_one])
@pytest.mark.parametrize("pairs", [PAIR, [(0.0, 1.0), (0.0, 0.5), (0.0, 0.1)]])
def test_the_time_is_used_and_kept_within_a_fifth(cost, seconds, kind, pairs, fake, seed):
    if kind is one_by_one and cost < 1e-4:
        seconds = 20_000 * cost  # a real call takes longer than that
    verdict = dp.audit(
        kind(fake, cost), pairs, "eps=0.5", seconds=seconds, rng=seed, sampling=QUIET
    )
    assert 0.8 * seconds <= fake.now <= 1.2 * seconds
    assert verdict.about.n[0] > 8


@pytest.mark.parametrize("call", [0.0, 0.01])
def test_a_bound_keeps_it_as_well_and_calls_may_cost(call, fake, seed):
    mechanism = vectorised(fake, 1e-4, call)
    dp.bound(mechanism, PAIR, "eps", seconds=3.0, rng=seed, sampling=QUIET)
    assert 0.8 * 3.0 <= fake.now <= 1.2 * 3.0


def test_learning_that_takes_long_leaves_less_to_test(fake, seed):
    from sklearn.linear_model import LogisticRegression

    class Slow(LogisticRegression):
        def fit(self, x, y):
            fake.now += 1e-4 * len(y)
            return super().fit(x, y)

    mechanism = vectorised(fake, 1e-4)
    options = {"seconds": 4.0, "rng": seed, "sampling": QUIET}
    quick = dp.audit(mechanism, PAIR, "eps=0.5", **options)
    fake.now = 0.0
    slow = dp.audit(mechanism, PAIR, "eps=0.5", loss=Slow(), **options)
    assert fake.now <= 1.2 * 4.0
    assert slow.about.n[0] < quick.about.n[0]


def test_too_little_time_says_how_much_it_takes(fake):
    with pytest.raises(NotEnoughDraws, match="takes 20 s.*give at least"):
        dp.audit(one_by_one(fake, 10.0), PAIR, "eps=0.5", seconds=60.0, sampling=QUIET)
    assert fake.now <= 60.0


def loading(fake, mechanism, seconds):
    """A mechanism whose first call also loads a model."""
    loaded = []

    def first_slow(x, size, rng):
        if not loaded:
            fake.now += seconds
            loaded.append(True)
        return mechanism(x, size, rng)

    return first_slow


def test_a_slow_first_call_is_not_the_cost_of_a_draw(fake, seed):
    mechanism = loading(fake, vectorised(fake, 1e-4), 3.0)
    verdict = dp.audit(mechanism, PAIR, "eps=0.5", seconds=10.0, rng=seed, sampling=QUIET)
    assert 8.0 <= fake.now <= 12.0
    assert min(verdict.about.n) > 10_000  # 7 seconds at 0.1 ms a draw, on two sides


SPACE = dp.inputs.Real(0, 1)


@pytest.mark.parametrize(
    ("cost", "seconds"), [(1e-6, 1.0), (1e-5, 1.0), (1e-4, 2.0), (1e-3, 10.0), (0.1, 1000.0)]
)
@pytest.mark.parametrize("load", [0.0, 0.2])
def test_a_hunt_keeps_its_time(cost, seconds, load, fake, seed):
    mechanism = loading(fake, vectorised(fake, cost), load * seconds)
    found = dp.hunt(mechanism, SPACE, "eps=1", seconds=seconds, rng=seed, sampling=QUIET)
    assert 0.5 * seconds <= fake.now <= 1.2 * seconds
    assert found.tried >= 4
    assert min(found.verdict.about.n) >= 500


@pytest.mark.parametrize("kind", [vectorised, one_by_one])
def test_a_hunt_that_needs_more_time_says_so_before_it_begins(kind, fake, seed):
    with pytest.raises(NotEnoughDraws, match=r"takes about 0.2 s.*at least seconds=2\d,"):
        dp.hunt(kind(fake, 0.2), SPACE, "eps=1", seconds=5.0, rng=seed, sampling=QUIET)
    assert fake.now <= 2.0
    fake.now = 0.0
    dp.hunt(kind(fake, 0.2), SPACE, "eps=1", seconds=1502, rng=seed, sampling=QUIET)
    assert fake.now <= 1.2 * 1502


def test_samples_have_no_time_to_keep():
    drawn = dp.from_samples(np.arange(100.0), np.arange(100.0) + 0.5)
    with pytest.raises(InvalidInput, match="already drawn"):
        dp.audit(drawn, claim="eps=1", seconds=1.0)


def test_the_pilot_is_no_draw_of_the_audit(fake, seed):
    """The draws that learn and test are those of an audit with n: only their number is the clock's."""
    seen = []

    def mechanism(x, size, rng):
        fake.now += 1e-3 * size
        found = x + rng.laplace(size=size)
        seen.append(found)
        return found

    dp.audit(mechanism, PAIR, "eps=0.5", seconds=4.0, rng=seed, sampling=QUIET)
    drawn = np.concatenate(seen)
    assert np.unique(drawn).size == drawn.size
