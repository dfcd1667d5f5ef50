"""The threshold with the largest predicted power."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.learning.event_selection import _MARGIN_BOUND, _MARGIN_Z, EventCriterion, _event
from dpassay.learning.hit_rates import ThresholdEvent


def test_best_cut_finds_the_event_of_an_exact_sample():
    """Deterministic quantiles of Laplace: against ε = ½ the best event is below 0, or above 1."""
    from scipy.stats import laplace

    u = (np.arange(4001) + 0.5) / 4001
    p, q = laplace.ppf(u), 1 + laplace.ppf(u)
    power = EventCriterion(dp.PureDP(0.5), (4000, 4000), 0.05)
    threshold = power.judge((p, q), tails=True).strongest
    expected = 1.0 if threshold.swapped else 0.0
    assert threshold.threshold == pytest.approx(expected, abs=0.6)
    assert threshold.above == threshold.swapped
    assert threshold.z > 5


def test_predicted_power_depends_on_counts_alone():
    """Scores may be anything that orders the draws: a monotone change moves only the threshold."""
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=500), rng.normal(1, 1, size=500)
    look = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p, q))
    other = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p**3, q**3))
    assert (look.rank, look.event.share) == (other.rank, other.event.share)
    assert other.event.threshold == pytest.approx(look.event.threshold**3)


def eager(new, best):
    """The rule by the ranks of both, with every bound searched for."""
    (kind, value), (other, level) = new.rank, best.rank
    if kind != other:
        return kind > other
    return value > level + (_MARGIN_Z * new.rates.noise if kind == 1 else _MARGIN_BOUND * level)


@pytest.mark.parametrize("largest", [False, True])
def test_rankings_compare_as_if_every_bound_were_searched_for(largest, seed):
    rng = np.random.default_rng(seed)
    kinds, outcomes = set(), set()
    for n in (60, 300, 2000):
        for claim in (dp.PureDP(0.3), dp.GaussianDP(1.0), dp.ApproximateDP(2.0, 1e-3)):
            power = EventCriterion(claim, (3 * n, 3 * n), 0.05, largest=largest)
            shifts = rng.uniform(0, 1.6, 6)
            scores = [(rng.normal(size=n) + shift, rng.normal(size=n)) for shift in shifts]
            promised = [power.judge(one) for one in scores]
            for new in promised:
                for best in promised:
                    assert power.beats(new, best) == eager(new, best)
                    kinds.add(new.rank[0])
                    outcomes.add(eager(new, best))
    assert outcomes == {True, False}
    assert kinds == ({2} if largest else {0, 1, 2})


def events(mechanism, claim, seeds):
    """How many events each of some audits tests."""
    audits = [dp.audit(mechanism, mechanism.pair, claim, n=4000, rng=seed) for seed in seeds]
    return np.array([len(verdict.budget) for verdict in audits])


def test_an_event_that_may_refute_the_claim_keeps_the_error_probability(seeds):
    """Sharing it with rare events, which promise larger bounds by chance, cost a tenth of the power."""
    near = events(dp.zoo.DiscreteLaplace(1.0), dp.PureDP(0.9), seeds[:40])
    assert np.mean(near > 1) < 0.15  # 0.02 of audits; 0.29 if the larger bound decides
    rare = events(dp.zoo.SVT(1, 1.5), dp.PureDP(0.75), seeds[:20])
    assert np.mean(rare > 1) > 0.5  # what a rare output shows is more than all that is frequent


@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.4, 0.6])
def test_an_event_of_a_score_with_two_values_is_chosen_by_its_own_draws(swapped, above, share):
    """Scores of all training draws may have other values than those of its halves."""
    telling = -1.0 if swapped else 1.0  # a score is large on the first input
    often, never = np.repeat([telling, 0.0], [100, 900]), np.zeros(1000)
    p, q = (never, often) if swapped else (often, never)

    def event(threshold, side):
        holds = (
            (lambda scores: scores >= threshold) if side else (lambda scores: scores <= threshold)
        )
        return SimpleNamespace(holds=holds, count=lambda scores: int(holds(scores).sum()))

    loss = SimpleNamespace(score=lambda outputs: outputs, event=event)
    learner = SimpleNamespace(batch=SimpleNamespace(p=p, q=q))
    asked = ThresholdEvent(5.0 if above else -5.0, above, False, 1.0, 1.0, share / 2, share)
    criterion = EventCriterion(dp.PureDP(0.5), (3000, 3000), 0.05)
    found, threshold = _event(learner, criterion, loss, asked)
    assert not criterion.counted  # that of other scores
    assert np.array_equal(found.holds(often), often == telling)
    assert not found.holds(never).any()
    assert threshold.swapped == swapped


def test_a_few_outputs_far_out_are_tested_beside_a_calibrated_event():
    """A thousandth of the outputs on one input is 99; on a grid it is a number like the others."""

    def release(x, size, rng):
        found = np.round(x + rng.laplace(size=size), 3)
        found[(rng.random(size) < 1e-3) & (x == 1)] = 99.0
        return found

    bounds = [
        dp.audit(release, (0.0, 1.0), "eps=1", n=100_000, rng=seed, loss="values").lower_bound
        for seed in range(8)
    ]
    assert np.median(bounds) > 2.5
    assert min(bounds) > 1.2


def test_a_missing_cell_is_named_rather_than_a_score():
    """A fit predicts more for the same event: both are counted before the readable one is left."""

    def cells(share, mean, seed):
        rng = np.random.default_rng(seed)
        counts = rng.poisson(mean, 10_000).tolist()
        return [None if rng.random() < share else x for x in counts]

    verdict = dp.audit(dp.from_samples(cells(0.1, 50, 0), cells(0.3, 50, 1)), claim="eps=1")
    assert "missing" in verdict.witness.event.words or "None" in verdict.witness.event.words
    words = dp.from_samples(
        *(
            np.random.default_rng(k).choice([f"w{j}" for j in range(20)], 3000, p=p).tolist()
            for k, p in enumerate(([0.05] * 20, [0.43] + [0.03] * 19))
        )
    )
    assert dp.audit(words, claim="eps=1").witness.event.words == "output is 'w0'"


def six_tests(answers, rng):
    rho = rng.laplace(scale=2)
    return [bool(a + rng.laplace(scale=2) >= rho) for a in answers]


def test_an_event_of_a_score_is_listed_where_outputs_are_few(seed):
    """Its counts are those of the outputs that its words name."""
    mechanism, pair = dp.from_function(six_tests), ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    listed = 0
    for rng in range(seed, seed + 3):
        verdict = dp.audit(mechanism, pair, "eps=1", n=2000, rng=rng, loss="logistic")
        words = verdict.witness.event.words
        if words.startswith("output is (0, "):
            own = set(re.findall(r"\([01, ]+\)", words))
            rows = dp.draw(mechanism, pair, n=300, rng=rng + 9).p
            named = [rows.show(k) in own for k in range(300)]
            assert np.array_equal(verdict.witness.event.holds(rows), named)
            listed += 1
    assert listed > 0


def test_a_rare_key_beside_a_count_is_found(seeds):
    """The count has the claimed ε; a key that is in 0.8 % of the outputs on one input only breaks it."""

    def release(data, size, rng):
        noise = rng.geometric(1 - np.exp(-0.7), size) - rng.geometric(1 - np.exp(-0.7), size)
        rare = (rng.random(size) < 0.008) & (data == 0)
        warning = {"warning": "small cell"}
        return [
            {"count": int(k)} | (warning if w else {})
            for k, w in zip(data + noise, rare, strict=True)
        ]

    found = [dp.audit(release, (0, 1), "eps=0.7", n=3000, rng=s).violated for s in seeds[:30]]
    assert sum(found) >= binom.ppf(1e-3, 30, 0.87)  # .57 where keys are combined with values


def test_noise_that_is_left_out_at_times_is_found_among_counts(seeds):
    """A few values come too often: a line in the counts refutes less likely than their frequencies."""

    def release(x, size, rng):
        noisy = np.round(10 * x + rng.laplace(scale=10, size=size))
        return np.where(rng.random(size) < 0.03, 10 * x, noisy).astype(int)

    found = [dp.audit(release, (0, 1), "eps=1", n=20_000, rng=s).violated for s in seeds[:8]]
    assert sum(found) >= 5  # 10 of 12, where the line alone found 6
