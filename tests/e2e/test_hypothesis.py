"""assert_private under @given: the example that fails is kept, and tried first the next time."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.helpers import pytest_in

import dpassay as dp
from dpassay import settings as suite
from dpassay import testing

TESTS = '''
import json
from pathlib import Path

import numpy as np
from hypothesis import Phase, given, settings, strategies
from hypothesis.database import DirectoryBasedExampleDatabase

from dpassay.testing import assert_private


def anybody_old(ages, size, rng):
    """Randomised response with ε = 1; where an age is a year of birth, it comes out nearly as it is."""
    true = np.e / (1 + np.e)
    if max(ages, default=0) > 200:
        true = 0.99
    return rng.random(size) < (true if max(ages, default=0) >= 60 else 1 - true)


ages = strategies.integers(0, 1000)


@settings(
    max_examples=50,
    deadline=None,
    database=DirectoryBasedExampleDatabase("examples"),
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
)
@given(strategies.lists(ages, max_size=3), ages)
def test_anybody_old(others, age):
    with Path("tried.jsonl").open("a") as log:
        log.write(json.dumps([others, age]) + "\\n")
    assert_private(anybody_old, (others, [*others, age]), "eps=1", n=2000)
'''


def tried(folder):
    """The examples of a run, in order; the log starts anew."""
    log = folder / "tried.jsonl"
    found = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    return found


def said(run):
    """What pytest shows of the violation."""
    return [line for line in run.stdout.splitlines() if "not 1-DP" in line or "Falsifying" in line]


def test_a_failing_example_is_shrunk_kept_and_replayed_first(tmp_path):
    first = pytest_in(tmp_path, "--dp-report=out.html", test_ages_py=TESTS)
    assert first.returncode == 1, first.stdout
    assert "dpassay: 10 results in out.html" in first.stdout  # the last ones, not one an example
    assert "PrivacyViolation" in first.stdout
    assert "Flaky" not in first.stdout
    found = tried(tmp_path)[-1]
    assert found == [[], 201]
    second = pytest_in(tmp_path)
    assert tried(tmp_path)[0] == found
    assert said(second) == said(first) != []
    mended = pytest_in(tmp_path, test_ages_py=TESTS.replace("true = 0.99", "pass"))
    assert mended.returncode == 0, mended.stdout
    assert tried(tmp_path)[0] == found  # mended, and still the first to be tried


@pytest.fixture
def seeds_used(monkeypatch):
    """The seeds that assertions hand to audits, by inputs."""
    used = []

    def audit(mechanism, pairs, claim, *, rng, **_):
        used.append((pairs, rng))
        return dp.audit_counts(500, 1000, 500, 1000, dp.PureDP(1.0))

    monkeypatch.setattr(testing, "audit", audit)
    return used


def test_examples_have_draws_of_their_own_and_the_same_again(seeds_used):
    @settings(max_examples=20, database=None, derandomize=True)
    @given(strategies.integers(0, 1000))
    def run(x):
        testing.assert_private(None, (x, x + 1), "eps=1")

    run()
    once = dict(seeds_used)
    assert len(set(once.values())) == len(once) > 5
    seeds_used.clear()
    run()
    assert dict(seeds_used) == once
    seeds_used.clear()
    with suite.using(rng=7):
        run()
    assert not set(once.values()) & {seed for _, seed in seeds_used}


def test_outside_of_hypothesis_and_where_a_seed_is_given_it_is_that(seeds_used):
    testing.assert_private(None, (0, 1), "eps=1")

    @settings(max_examples=3, database=None)
    @given(strategies.integers(0, 1000))
    def run(x):
        testing.assert_private(None, (x, x + 1), "eps=1", rng=5)

    run()
    assert [seed for _, seed in seeds_used] == [0, *[5] * (len(seeds_used) - 1)]


def test_inputs_of_an_unknown_kind_have_the_seed_of_the_suite(seeds_used):
    @settings(max_examples=1, database=None)
    @given(strategies.just(None))
    def run(_):
        testing.assert_private(None, (object(), np.ones(2)), "eps=1")

    run()
    assert seeds_used[0][1] == 0
