"""Whether any score told the two inputs apart, and what is said where none did."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.learning.cross_fit import CrossFit
from dpassay.learning.separation import evenest_share, separates
from dpassay.outputs.canonical import from_raw
from dpassay.results.blindness import Cause
from dpassay.results.verdict_text import UNLEARNED
from dpassay.sampling.samples import Batch
from dpassay.testing import AuditTooWeak, assert_private


def local_hashing(x, size, rng):
    """A public seed beside a bit: the hash of the input under the seed, flipped now and then (ε = 3)."""
    seed = rng.integers(0, 2**32, size)
    hashed = ((seed * 2654435761 + (x * 40503 + 17) * seed // 7) >> 7) & 1
    kept = rng.random(size) < 1 / (1 + np.exp(-3))
    return np.column_stack([seed, np.where(kept, hashed, 1 - hashed)])


def test_a_verdict_on_outputs_that_no_score_separates_quotes_no_power(seed):
    verdict = dp.audit(local_hashing, (0, 1), "eps=1", n=1000, rng=seed)
    assert (verdict.tone, verdict.separated) == ("clear", False)
    assert UNLEARNED in str(verdict)
    assert "power:" not in str(verdict)
    assert dp.Verdict.from_json(verdict.to_json()).separated is False
    certified = replace(verdict, lower_bound=0.5)  # a bound above 0 shows that the outputs differ
    assert UNLEARNED not in str(certified)
    assert UNLEARNED not in str(certified.view())


def test_a_verdict_on_outputs_that_differ_quotes_its_power(seed):
    verdict = dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=1000, loss="values", rng=seed)
    assert verdict.separated
    assert "power:" in str(verdict)
    assert UNLEARNED not in str(verdict)


def alike(x, size, rng):
    return np.round(rng.normal(size=size), 6)


def test_two_inputs_that_are_alike_are_seldom_separated(seeds):
    wrong = 0
    for seed in seeds[:60]:
        rng = np.random.default_rng(seed)
        draws = Batch(*(from_raw(alike(x, 300, rng), 300) for x in (0, 1)))
        learner = CrossFit(draws, "values", lambda k, seed=seed: np.random.default_rng((seed, k)))
        for index in range(len(learner.names)):
            learner.scores(index)
        wrong += separates(learner)
        assert evenest_share(learner) == 0.25
    assert wrong <= binom.ppf(1 - 1e-6, 60, 0.01)


def test_a_correct_mechanism_with_strong_noise_passes(seeds):
    for seed in seeds[:5]:
        assert_private(alike, (0, 1), "eps=0.1", n=2000, rng=seed)


@pytest.mark.parametrize(
    ("mechanism", "pair", "n", "weak"),
    [
        (dp.zoo.Laplace(1.0), (0.0, 0.0001), 1000, False),
        (dp.zoo.RandomizedResponse(1.0), (0, 1), 300, False),
        (dp.zoo.RandomizedResponse(1.0), (0, 1), 130, True),
    ],
    ids=str,
)
def test_a_test_of_a_correct_mechanism_is_always_too_weak_or_never(mechanism, pair, n, weak, seeds):
    for seed in seeds[:25]:
        if weak:
            with pytest.raises(AuditTooWeak) as caught:
                assert_private(mechanism, pair, "eps=1", n=n, rng=seed)
            assert caught.value.verdict.blind_cause is Cause.FEW_DRAWS
        else:
            assert_private(mechanism, pair, "eps=1", n=n, rng=seed)


def words(share):
    """Words of which none repeats, but for one that is a share of the outputs."""

    def release(x, size, rng):
        found = rng.integers(97, 123, size=(size, 12)).astype(np.uint8).view("S12").ravel()
        return np.where(rng.random(size) < share, "again", found.astype(str))

    return release


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_outputs_that_hardly_repeat_are_not_called_constant(share, seeds):
    for seed in seeds[:5]:
        verdict = dp.audit(words(share), (0, 1), "eps=1", n=300, loss="kde", rng=seed)
        if verdict.blind:  # now and then more than a twentieth repeats
            assert verdict.blind_cause is Cause.NO_SCORE
            assert "every time" not in verdict.blind
            assert "hardly repeat" in verdict.blind
            assert "no number of draws" not in verdict.remedy


def test_a_constant_output_is_called_constant(seed):
    verdict = dp.audit(lambda x, size, rng: np.full(size, 3), (0, 1), "eps=1", n=300, rng=seed)
    assert verdict.blind_cause is Cause.CONSTANT_OUTPUT
    assert verdict.blind == "the output is 3 every time, on both inputs"
    assert "no number of draws helps" in verdict.remedy


@pytest.mark.parametrize("columns", [12, 50])
def test_integer_vectors_of_many_coordinates_are_not_blind(columns, seed):
    def release(x, size, rng):
        return np.round(x + rng.laplace(scale=30, size=(size, columns))).astype(int)

    claim = dp.PureDP(columns / 30)
    verdict = assert_private(release, (0, 1), claim, n=4000, rng=seed)
    assert not any("could not be tried" in note for note in verdict.about.notes)
