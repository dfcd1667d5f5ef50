"""Draws that were used are known again, and fresh ones are not taken for them."""

import numpy as np
import pytest
from tests.helpers import canonical, objects

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.sampling.fingerprints import drawn_before, fingerprint_of


def _draws(kind, n, rng):
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
        before, now = ([canonical(_draws(kind, n, rng)) for _ in range(2)] for n in sizes)
        assert not drawn_before(fingerprint_of(*before), *now)


@pytest.mark.parametrize(("kind", "kept"), [("15", 0.3), ("5", 0.3), ("5", 0.9), ("rows", 0.9)])
def test_a_part_of_the_draws_is_known_again(kind, kept, seeds):
    for seed in seeds[:10]:
        rng = np.random.default_rng(seed)
        raw = [_draws(kind, 2000, rng) for _ in range(2)]
        mark = fingerprint_of(*map(canonical, raw))
        some = [side[rng.permutation(2000)[: int(kept * 2000)]] for side in raw]
        assert drawn_before(mark, *map(canonical, some))
        assert drawn_before(mark, *map(canonical, raw[::-1]))


def test_a_replay_refuses_what_is_left_of_the_draws():
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
