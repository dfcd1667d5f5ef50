"""One training run: guesses about canaries, however their number is chosen."""

import math
import re

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.errors import InvalidInput
from dpassay.membership import guessing
from dpassay.report.issue import issue
from dpassay.rounding import rounded_down


def gaussian(m, mu, seed):
    """Coins, and scores that are N(1, 1/μ²) for what was included."""
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return mu * included + rng.normal(size=m), included


def response(m, epsilon, delta, seed):
    """Randomized response on each coin; with probability δ each, the coin itself, and seen to be it."""
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    kept = rng.random(m) < 1 / (1 + math.exp(-epsilon))
    told = rng.random(m) < delta
    return np.where(included == (kept | told), 1.0, -1.0) * (1 + told), included


def burst(m, epsilon, delta, seed, share=0.1):
    """Randomized response that sometimes tells many coins at once, each with probability δ."""
    rng = np.random.default_rng([seed, 1])
    scores, included = response(m, epsilon, 0.0, seed)
    if rng.random() < delta / share:
        some = rng.permutation(m)[: int(share * m)]
        scores[some] = np.where(included[some], 2.0, -2.0)
    return scores, included


def right_of(result):
    """How many guesses were right, by its words."""
    return int(re.search(r"([\d,]+) of [\d,]+ guesses are right", str(result))[1].replace(",", ""))


# --- validity


@pytest.mark.parametrize("guesses", [200, 40, (30, 0), (10, 25), [100, 40, 20], None], ids=str)
@pytest.mark.parametrize(
    ("make", "epsilon", "delta"),
    [(response, 1.0, 0.0), (response, 0.0, 0.0), (response, 1.0, 1e-3), (burst, 1.0, 2e-3)],
)
def test_true_claims_are_rarely_refuted(make, epsilon, delta, guesses, seeds):
    claim = dp.ApproximateDP(epsilon, delta) if delta else dp.PureDP(epsilon)
    runs = 80
    wrong = sum(
        dp.one_run(*make(200, epsilon, delta, s), claim=claim, guesses=guesses, rng=s).violated
        for s in seeds[:runs]
    )
    assert wrong <= binom.ppf(1 - 0.01 / 72, runs, 0.05)


@pytest.mark.parametrize("guesses", [200, 30, [100, 30], None], ids=str)
def test_true_gaussian_claims_are_rarely_refuted(guesses, seeds):
    runs = 60
    wrong = sum(
        dp.one_run(*gaussian(200, 0.7, s), claim="mu=0.7", guesses=guesses, rng=s).violated
        for s in seeds[:runs]
    )
    assert wrong <= binom.ppf(1 - 0.01 / 12, runs, 0.05)


def test_equal_scores_say_nothing_however_the_rows_are_sorted(seeds):
    included = np.arange(400) < 200  # the file was sorted by what is to be guessed
    scores = np.zeros(400)
    wrong = sum(
        dp.one_run(scores, included, claim="eps=0", guesses=200, rng=s).violated
        for s in seeds[:200]
    )
    assert wrong <= binom.ppf(1 - 0.01 / 3, 200, 0.05)


# --- what is guessed


def test_the_highest_are_guessed_in_and_the_lowest_out():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    included = [True, False, True, True, False, True]
    bound = dp.one_run(scores, included, guesses=(3, 2))
    assert bound.witness.hits_p == 2
    assert (bound.witness.n_p, bound.witness.hits_q, bound.witness.n_q) == (4, 1, 2)
    assert "3 of 5 guesses are right" in str(bound)
    want = bounds.lower_bound(dp.PureDP(0.0), Guessed(6, 5, 3), 0.05)
    assert bound.value == pytest.approx(want)


def test_swapped_labels_and_negated_scores_say_the_same():
    scores, included = gaussian(400, 1.5, 3)
    one = dp.one_run(scores, included, guesses=100, delta=1e-5)
    other = dp.one_run(-scores, ~included, guesses=100, delta=1e-5)
    assert one.value == other.value > 0.5
    assert dp.one_run(scores, ~included, guesses=100, delta=1e-5).value == 0.0
    same = dp.one_run(10 * scores - 3, included.astype(int), guesses=100, delta=1e-5)
    assert same.value == one.value  # only the order counts


def test_several_numbers_are_paid_for_and_the_budget_says_so():
    scores, included = gaussian(1000, 2.0, 1)
    one = dp.one_run(scores, included, claim="eps=1", guesses=200)
    more = dp.one_run(scores, included, claim="eps=1", guesses=[200, 100, (20, 0)])
    assert len(more.budget) == 3
    assert sum(level for _, level in more.budget) == pytest.approx(0.05)
    assert more.budget[0] == ("200 guesses about 1,000 canaries", pytest.approx(0.05 / 3))
    want = bounds.lower_bound(dp.PureDP(0.0), Guessed(1000, 200, right_of(one)), 0.05 / 3)
    assert more.lower_bound >= want


def test_learned_numbers_certify_the_rest_alone():
    scores, included = gaussian(1000, 2.0, 2)
    verdict = dp.one_run(scores, included, claim="eps=1, delta=1e-5", rng=0)
    assert verdict.violated
    assert verdict.about.n == (750, 750)
    assert "learned on a random quarter, 250 canaries" in verdict.about.notes[0]
    again = dp.one_run(scores, included, claim="eps=1, delta=1e-5", rng=0)
    assert again == verdict
    # where mδ is large the price of learning is too high: five numbers on all canaries
    paid = dp.one_run(scores, included, claim="eps=1, delta=0.01", rng=0)
    assert paid.about.n == (1000, 1000)
    assert len(paid.budget) == 5
    assert sum(level for _, level in paid.budget) == pytest.approx(0.05)


# --- verdicts


def test_the_ceiling_is_said_and_makes_a_verdict_blind():
    scores, included = gaussian(1000, 9.0, 0)
    verdict = dp.one_run(scores, included, claim="eps=5", guesses=20, rng=0)
    assert verdict.tone == "blind"
    assert "could have shown is ε ≥ 1.822, if all guesses were right" in verdict.blind
    assert "the most that these 1,000 canaries could have shown is 1.82" in str(verdict)
    assert "could have been missed. It certifies only ε ≥ 1.8" in str(
        verdict
    )  # not what was missed
    seen = dp.one_run(scores, included, claim="eps=1", guesses=20, rng=0)
    assert seen.violated
    assert not seen.blind
    assert seen.p_value <= 0.05
    assert seen.lower_bound >= 1.0
    bound = dp.one_run(scores, included, guesses=100, delta=1e-5)
    assert "the most that these 1,000 canaries could have shown is 3.492" in str(bound)
    assert bound.value == pytest.approx(
        bounds.lower_bound(dp.ApproximateDP(0.0, 1e-5), Guessed(1000, 100, 100), 0.05)
    )


def test_the_sentence_of_an_epsilon_claim():
    scores, included = gaussian(1000, 2.0, 3)
    verdict = dp.one_run(scores, included, claim="eps=4, delta=1e-5", rng=0)
    found = verdict.certified
    assert (found.delta, found.claimed, found.canaries) == (1e-5, 4.0, 1000)
    assert found.epsilon == verdict.lower_bound < found.ceiling
    # of the 750 canaries that were not learned from, perfect scores tell .4 and .5 at least
    options = [a + b for a in guessing.SHARES for b in guessing.SHARES]
    least = min(int(750 * s) for s in options if s >= guessing.AT_LEAST)
    low, high = (
        bounds.lower_bound(dp.ApproximateDP(0.0, 1e-5), Guessed(750, n, n, least), 0.05)
        for n in (600, 750)
    )
    assert low < found.ceiling <= high
    assert re.search(
        r"certified ε ≥ [\d.]+ at δ = 1e-05 \(95 %\); the claimed ε is 4; the most that these 1,000 "
        r"canaries could have shown is [\d.]+",
        str(verdict),
    )
    assert str(found)[1:] in verdict.view().sentence
    assert str(found)[1:] in verdict.view().summary[0]
    assert dp.Verdict.from_json(verdict.to_json()).certified == found
    bound = dp.one_run(scores, included, delta=1e-5, rng=0)
    assert bound.certified.claimed is None
    assert bound.certified.epsilon == bound.value
    assert "accountant" not in str(bound)


class Accountant:
    """Answers as those of Opacus do."""

    def get_epsilon(self, delta):
        return dp.GaussianDP(1.0).epsilon_at(delta)


def test_beside_a_curve_epsilon_is_certified_at_no_price():
    scores, included = gaussian(1000, 2.0, 3)
    verdict = dp.one_run(scores, included, claim="mu=1", delta=1e-4, rng=0)
    assert verdict.violated
    claimed = verdict.second.claimed
    assert dp.GaussianDP(1.0).delta_at(claimed) == pytest.approx(1e-4, rel=1e-6)
    assert verdict.second.at == "δ = 0.0001"
    # numbers of guesses that are tested where none are learned, at the levels of the verdict
    found = [
        bounds.lower_bound(dp.ApproximateDP(0.0, 1e-4), Guessed(*row[:3]), level)
        for row, (_, level) in zip(verdict.certified.scores.guessed, verdict.budget, strict=True)
    ]
    assert verdict.second.lower == verdict.certified.epsilon == pytest.approx(max(found))
    # half of the canaries guessed, at .3 of the level, all of them right
    perfect = bounds.lower_bound(dp.ApproximateDP(0.0, 1e-4), Guessed(1000, 500, 500), 0.015)
    assert verdict.certified.ceiling == pytest.approx(perfect)
    assert sum(level for _, level in verdict.budget) == pytest.approx(0.05)
    assert "fixed before the scores were seen" in str(verdict)
    assert dp.one_run(scores, included, claim="mu=1", rng=0).second.at == "δ = 1e-05"
    with pytest.raises(InvalidInput, match="says its own δ"):
        dp.one_run(scores, included, claim="eps=1", delta=1e-5)
    opacus = dp.one_run(scores, included, claim=Accountant(), delta=3e-5, guesses=200, rng=0)
    assert opacus.certified.claimed == Accountant().get_epsilon(3e-5)


def test_beside_a_curve_scores_may_tell_on_one_side_alone(seeds):
    for seed in seeds[:10]:
        rng = np.random.default_rng(seed)
        included = rng.random(1000) < 0.5
        scores = 0.8 * included - rng.gamma(2, 0.5, size=1000)  # as losses: none is below 0
        curve, alone = (
            dp.one_run(s, c, claim="mu=1", rng=0).certified.epsilon
            for s, c in ((scores, included), (-scores, ~included))
        )
        assert curve == alone
        both = dp.one_run(scores, included, delta=1e-5, guesses=[500, 150, 50], rng=0)
        assert curve > both.value + 0.3


@pytest.mark.parametrize("guesses", [20, 40])
def test_epsilon_at_every_delta_holds_at_once(guesses):
    """Randomized response with ε = 1, of which everything is known: the chance of any error at all."""
    deltas, level = np.geomspace(1e-6, 0.4, 12), 0.3
    truth = np.log(np.maximum(math.e - deltas * (1 + math.e), 1.0))
    wrong = 0.0
    for right in range(guesses + 1):
        guessed = Guessed(40, guesses, right)
        found = [bounds.lower_bound(dp.ApproximateDP(0.0, d), guessed, level) for d in deltas]
        if np.any(np.array(found) > truth + 1e-6):
            wrong += binom.pmf(right, guesses, math.e / (1 + math.e))
    assert 0 < wrong <= level


def test_verdict_and_epsilon_beside_a_true_curve_are_rarely_wrong(seeds):
    """Randomized response with ε = 1 is 1.3-GDP, and keeps ε = 1 at every δ."""
    wrong, some = 0, seeds[:100]
    for seed in some:
        scores, included = response(60, 1.0, 0.0, seed)
        verdict = dp.one_run(scores, included, claim="mu=1.3", guesses=30, confidence=0.5, rng=0)
        wrong += verdict.violated or verdict.second.lower > 1.0
    assert wrong <= binom.ppf(1 - 1e-3, len(some), 0.5)


@pytest.mark.parametrize("claim", [None, "eps=0.5, delta=1e-5", "eps=4, delta=1e-5"])
def test_the_certified_epsilon_does_not_depend_on_the_claim(claim, seeds):
    for seed in seeds[:10]:
        scores, included = gaussian(600, 2.0, seed)
        alone = dp.one_run(scores, included, delta=1e-5, rng=seed).certified
        delta = 1e-5 if claim is None else None
        found = dp.one_run(scores, included, claim=claim, delta=delta, rng=seed).certified
        assert found.epsilon == pytest.approx(alone.epsilon)
        assert found.ceiling == pytest.approx(alone.ceiling)


@pytest.mark.parametrize("many", [400, 600, 1000])
def test_perfect_scores_certify_nearly_the_most_possible(many, seeds):
    for seed in seeds[:20]:
        scores, included = gaussian(many, 100.0, seed)
        found = dp.one_run(scores, included, delta=1e-5, rng=0).certified
        assert found.epsilon > found.ceiling - 0.25  # log(0.8): .4 are guessed on either side


@pytest.mark.parametrize(("many", "claimed"), [(600, 1.0), (600, 3.5), (1000, 4.0)])
def test_what_is_said_to_be_detectable_is_with_learned_guesses(many, claimed):
    claim, found = dp.ApproximateDP(claimed, 1e-5), 0
    scores, included = gaussian(many, 1.0, 0)
    epsilon = dp.one_run(scores, included, claim=claim, rng=0).smallest_detectable
    for seed in range(60):
        rng = np.random.default_rng(seed)
        coins = rng.random(many) < 0.5
        told = coins ^ (rng.random(many) > 1 / (1 + math.exp(-epsilon)))
        found += dp.one_run(told, coins, claim=claim, rng=0).violated
    assert found >= 0.85 * 60


def test_what_is_detectable_is_said_of_all_guesses_that_could_be_made():
    scores, included = gaussian(1000, 2.0, 0)
    verdict = dp.one_run(scores, included, claim="eps=4, delta=1e-5", rng=0)
    assert 4 < verdict.smallest_detectable < verdict.certified.ceiling + 0.2
    assert "with probability 0.9 if the scores told as much as this ε allows" in str(verdict)
    blind = dp.one_run(scores, included, claim="eps=6, delta=1e-5", rng=0)
    assert blind.tone == "blind"
    assert f"ε ≥ {rounded_down(blind.certified.ceiling)}" in blind.blind


# --- groups


def grouped(m, epsilons, seed):
    """Randomized response with an ε of its own for every group; scores, coins and groups."""
    rng = np.random.default_rng([seed, 7])
    groups = rng.integers(len(epsilons), size=m)
    included = rng.random(m) < 0.5
    kept = rng.random(m) < 1 / (1 + np.exp(-np.array(epsilons)[groups]))
    return np.where(included == kept, 1.0, -1.0) + 0.1 * rng.random(m), included, groups


@pytest.mark.parametrize("guesses", [100, (20, 10), None], ids=str)
def test_bounds_of_groups_and_of_all_hold_at_once(guesses, seeds):
    truth, runs, wrong = [0.0, 0.5, 2.0], 80, 0
    for seed in seeds[:runs]:
        scores, included, groups = grouped(300, truth, seed)
        found = dp.one_run(
            scores, included, groups=groups, guesses=guesses, confidence=0.7, rng=seed
        ).certified
        bounded = [one.epsilon for one in found.groups]
        wrong += found.epsilon > 2.0 or any(np.array(bounded) > truth)
    assert wrong <= binom.ppf(1 - 0.01 / 9, runs, 0.3)


def test_a_group_that_leaks_is_named_and_refutes_the_claim():
    scores, included, groups = grouped(1200, [0.0, 0.0, 0.0, 5.0], 3)
    names = np.array(["ant", "bee", "cat", "dog"])[groups]
    verdict = dp.one_run(scores, included, groups=names, claim="eps=2", rng=0)
    assert verdict.violated
    found = verdict.certified
    assert [one.group for one in found.groups] == ["ant", "bee", "cat", "dog"]
    assert found.groups[3].epsilon == found.epsilon == verdict.lower_bound > 2
    assert all(one.epsilon < 0.5 for one in found.groups[:3])
    assert sum(one.canaries for one in found.groups) == found.canaries == 1200
    assert "group dog" in str(verdict.witness)
    assert "group dog: ε ≥" in str(verdict)
    # a quarter of the canaries is in the group: all of them together do not show it
    assert not dp.one_run(scores, included, claim="eps=2", rng=0).violated
    shares = dict(verdict.budget)
    assert sum(shares.values()) == pytest.approx(0.05)
    assert sum(v for k, v in shares.items() if "group" in k) == pytest.approx(0.025)
    assert dp.Verdict.from_json(verdict.to_json()) == verdict
    # several runs, a curve, and a bound without a claim
    more = grouped(1200, [0.0, 0.0, 0.0, 5.0], 4)
    both = [[one, other] for one, other in zip((scores, included, groups), more, strict=True)]
    two = dp.one_run(*both[:2], groups=both[2], claim="mu=1", rng=0)
    assert two.certified.groups[3].epsilon > found.groups[3].epsilon
    bound = dp.one_run(scores, included, groups=groups, rng=0)
    assert bound.certified.groups[3].epsilon == bound.value
    assert "group 3: ε ≥" in str(bound)


def test_guesses_of_a_group_are_its_share_of_those_of_the_run():
    scores, included, _ = grouped(100, [1.0], 0)
    names = np.repeat(["a", "b"], [75, 25])
    found = dp.one_run(scores, included, groups=names, guesses=(100, 0))
    assert [text for text, _ in found.budget] == [
        "100 guesses about 100 canaries",
        "75 guesses about 75 canaries of group a",
        "25 guesses about 25 canaries of group b",
    ]


def test_many_groups_make_one_note_that_names_the_largest_bounds():
    scores, included, groups = grouped(3000, [0.0] * 29 + [5.0], 0)
    found = dp.one_run(scores, included, groups=groups, claim="eps=9", guesses=1500, rng=0)
    (note,) = [one for one in found.about.notes if "group 29" in one]
    assert note.startswith("group 29: ε ≥ ")
    assert "the bounds of 20 more are " in note
    assert len(found.certified.groups) == 30


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"] * 39, "groups has 39"),
        (["a"] * 33 + ["b"] * 7, "group 'b' has 7 canaries"),
        ([None] * 40, "one label a canary"),
        (np.zeros((40, 2)), "one label a canary"),
        ([["a"] * 40], "all be arrays"),
    ],
)
def test_groups_that_do_not_fit_are_refused(groups, message):
    scores, included, _ = grouped(40, [1.0], 0)
    with pytest.raises(InvalidInput, match=message):
        dp.one_run(scores, included, groups=groups, guesses=20)


def test_a_verdict_is_clear_where_it_could_have_seen_more():
    scores, included = gaussian(2000, 0.1, 0)
    verdict = dp.one_run(scores, included, claim="eps=1", guesses=1000, rng=0)
    assert verdict.tone == "clear"
    assert verdict.lower_bound < 1.0
    assert verdict.p_value > 0.05
    assert 1.0 < verdict.smallest_detectable < 1.5
    assert dp.Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize(
    "claim",
    [
        "mu=0.3",
        dp.TradeoffDP(dp.GaussianDP(0.3).tradeoff),
        "eps=0.3, delta=1e-6 in delta",
        dp.TradeoffDP.from_delta(dp.GaussianDP(0.3).delta_at),
    ],
    ids=str,
)
def test_every_kind_of_claim_about_events_is_refuted(claim):
    scores, included = gaussian(1000, 2.0, 4)
    verdict = dp.one_run(scores, included, claim=claim, guesses=200)
    assert verdict.violated
    assert verdict.lower_bound >= verdict.claim.value


def test_five_runs_are_better_than_one_and_count_as_one_mechanism():
    runs = [gaussian(300, 1.0, seed) for seed in range(5)]
    scores, included = [s for s, _ in runs], [c for _, c in runs]
    five = dp.one_run(scores, included, guesses=60, delta=1e-5)
    alone = [dp.one_run(s, c, guesses=60, delta=1e-5).value for s, c in runs]
    assert five.about.n == (1500, 1500)
    assert five.value > np.mean(alone)
    assert five.value == pytest.approx(
        bounds.lower_bound(dp.ApproximateDP(0.0, 1e-5), Guessed(1500, 300, right_of(five)), 0.05)
    )
    assert dp.one_run(scores, included, delta=1e-5, rng=0).about.n == (1125, 1125)


# --- the border


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [1.0, 2.0]}, "2 canaries and included has 4"),
        ({"scores": [1.0, math.nan, 2.0, 3.0]}, r"scores\[1\] is NaN"),
        ({"scores": ["a", "b", "c", "d"]}, "scores must be numbers"),
        ({"scores": np.zeros((4, 2))}, r"shape \(4, 2\)"),
        ({"included": [0, 1, 2, 1]}, "True or False"),
        ({"included": ["yes", "no", "no", "yes"]}, "True or False"),
        ({"guesses": 3}, r"even.*\(2, 1\)"),
        ({"guesses": 5}, "at most the 4 canaries"),
        ({"guesses": 6}, "at most the 4 canaries"),
        ({"guesses": (3, 2)}, "at most the 4 canaries"),
        ({"guesses": (0, 0)}, "at least 1"),
        ({"guesses": (1, 1, 1)}, "several numbers of guesses are a list"),
        ({"guesses": []}, "empty list"),
        ({"guesses": 2.5}, "whole number"),
        ({"guesses": None}, "too few to learn"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 1e-5, "claim": "eps=1"}, 'write claim="eps=1, delta=1e-05"'),
        ({"delta": 1e-5, "claim": "eps=1, delta=1e-6"}, "leave delta out"),
        ({"claim": "rho=1"}, "eps and delta"),
        ({"claim": dp.TradeoffDP([(0, 1), (0.3, 0.3), (1, 0)], ordered=True)}, "ordered"),
        ({"confidence": 1.0}, "confidence"),
        ({"rng": -1}, "rng"),
        ({"scores": [[1.0, 2.0], [1.0, 2.0]]}, "all be arrays"),
    ],
)
def test_what_is_wrong_is_said_with_a_remedy(change, message):
    given = {"scores": [1.0, 2.0, 3.0, 4.0], "included": [True, False, True, False], "guesses": 2}
    given |= change
    with pytest.raises(InvalidInput, match=message):
        dp.one_run(given.pop("scores"), given.pop("included"), **given)


def test_coins_that_are_not_fair_are_refused():
    with pytest.raises(InvalidInput, match="True for 95 of 100 canaries"):
        dp.one_run(np.arange(100.0), np.arange(100) < 95, guesses=20)
    with pytest.raises(InvalidInput, match="fair coin"):
        dp.one_run(np.arange(100.0), np.ones(100, dtype=bool), guesses=20)


def test_guesses_on_one_side_have_a_witness_too():
    scores, included = gaussian(400, 3.0, 0)
    out = dp.one_run(scores, included, claim="eps=0.5", guesses=(0, 40))
    assert out.violated
    assert "guessed to be left out" in str(out)
    assert out.witness.hits_q > 30 > out.witness.hits_p
    into = dp.one_run(scores, included, claim="eps=0.5", guesses=(40, 0))
    assert into.witness.hits_p > 30 > into.witness.hits_q
    assert into.witness.n_p + into.witness.n_q == 400


def test_runs_need_coins_of_their_own():
    scores, included = gaussian(100, 1.0, 0)
    with pytest.raises(InvalidInput, match="coins of a run before it"):
        dp.one_run([scores, scores], [included, included], guesses=20)
    with pytest.raises(InvalidInput, match="all negated: it includes what that one leaves out"):
        dp.one_run([scores, -scores], [included, ~included], guesses=20)
    with pytest.raises(InvalidInput, match="begins anew after 100 .* or with all of them negated"):
        dp.one_run(np.r_[scores, -scores], np.r_[included, ~included], guesses=20)
    with pytest.raises(InvalidInput, match="scores of 2 and included of 1 runs"):
        dp.one_run([scores, scores], [included], guesses=20)


def test_scores_the_wrong_way_round_are_noticed(seeds):
    for seed in seeds[:20]:
        scores, included = gaussian(1000, 1.0, seed)
        right, wrong = (dp.one_run(sign * scores, included, guesses=200, rng=0) for sign in (1, -1))
        assert "−scores" not in str(right)
        assert "note: scores are lower for canaries that were included" in str(wrong)
        assert "confidence (--confidence) to 0.975" in str(wrong)
        nothing, coins = gaussian(1000, 0.0, seed)
        assert "−scores" not in str(dp.one_run(nothing, coins, guesses=200, rng=0))
    more, others = gaussian(1000, 1.0, seed + 10**6)
    both = dp.one_run([scores, -more], [included, others], guesses=200, rng=0)
    assert "−scores" not in str(both)


def test_results_say_what_they_assume_of_the_coins():
    rng = np.random.default_rng(0)
    coins = rng.random(500) < 0.5
    scores = coins + rng.normal(size=500)
    found = dp.one_run(scores, coins, delta=1e-5, guesses=100, rng=0)
    assert "fair coin of its own" in str(found)
    assert found.guarantee == "exact"


def test_a_half_that_was_taken_is_doubted():
    rng = np.random.default_rng(0)
    coins = np.arange(500) < 250
    scores = coins + rng.normal(size=500)
    block = dp.one_run(scores, coins, claim="eps=0.1", guesses=100, rng=0)
    assert block.guarantee == block.about.guarantee == "heuristic"
    assert "stand in one block" in str(block)
    order = rng.permutation(500)
    mixed = dp.one_run(scores[order], coins[order], claim="eps=0.1", guesses=100, rng=0)
    assert mixed.guarantee == "exact"
    assert any("exactly half of the canaries" in note for note in mixed.about.notes)
    fair = np.append(coins, True)
    more = dp.one_run(np.append(scores, 0.5), fair, claim="eps=0.1", guesses=100, rng=0)
    assert "exactly half" not in str(more.about.notes)


def test_one_of_several_runs_that_is_half_by_chance_is_not_doubted(seed):
    """Also sorted ones; all of them are, and so is one block beside runs in another order."""
    rng = np.random.default_rng(seed)

    def audit(heads, in_blocks):
        coins = [np.arange(200) < n for n in heads]
        coins = [
            c if block else rng.permutation(c) for c, block in zip(coins, in_blocks, strict=True)
        ]
        scores = [1.5 * c + rng.normal(size=200) for c in coins]
        found = dp.one_run(scores, coins, delta=1e-5, rng=0, guesses=20)
        return [n for n in found.about.notes if "exactly half" in n], found.guarantee

    some, most = [100, 95, 103, 99, 110, 93, 101, 106], [100] * 5 + [97, 103, 104]
    assert audit(some, [False] * 8) == ([], "exact")
    assert audit(some, [True] * 8) == ([], "exact")
    for heads, blocks in (
        ([100, 100], [False] * 2),
        (most, [False] * 8),
        (some, [True] + [False] * 7),
    ):
        [note], guarantee = audit(heads, blocks)
        assert f"in {heads.count(100)} of {len(heads)} runs" in note
        assert guarantee == ("heuristic" if any(blocks) else "exact")


def test_what_is_doubted_is_not_called_certified(tmp_path):
    rng = np.random.default_rng(0)
    coins = np.arange(500) < 250
    scores = 2 * coins + rng.normal(size=500)
    for claim, first in (("eps=0.1", "not certified: violation of"), (None, "not certified: ε")):
        found = dp.one_run(scores, coins, claim=claim, guesses=100, rng=0)
        assert str(found).startswith(first)
        assert str(found.certified).startswith("not certified: ε ≥")
        view = found.view()
        assert view.title.startswith("Not certified: ")
        assert view.sentence.startswith("Not certified: ")
        assert view.facts[claim is not None][0] == "Not certified"
        found.report(tmp_path / "audit.html")
        page = (tmp_path / "audit.html").read_text(encoding="utf-8")
        assert "Certified ε" not in page
        assert "Certified bound" not in page
        assert "Measured ε at every δ" in page
        assert type(found).from_json(found.to_json()).certified.guarantee == "heuristic"
    grouped = dp.one_run(scores, coins, groups=np.arange(500) % 2, guesses=100, rng=0)
    assert grouped.certified.group_note.startswith("not certified: group ")
    clear = dp.one_run(scores, coins, claim="eps=9", guesses=100, rng=0).view()
    assert "certif" not in clear.sentence.replace("Not certified", "").replace("not certified", "")


def test_repeated_rows_are_doubted_and_ties_are_not(seeds):
    for seed in seeds[:20]:
        scores, coins = gaussian(200, 1.0, seed)
        once = dp.one_run(scores, coins, guesses=40, rng=0)
        assert once.guarantee == "exact"
        for k in (2, 3):
            mixed = np.random.default_rng(seed).permutation(200 * k)
            many = dp.one_run(
                np.tile(scores, k)[mixed], np.tile(coins, k)[mixed], guesses=40, rng=0
            )
            assert many.guarantee == many.certified.guarantee == "heuristic"
            assert f"occurs {k} times" in str(many)
        for scale in (1, 10):  # ties: a few values, and about as many as canaries
            tied = dp.one_run(np.round(scale * scores), coins, guesses=40, rng=0)
            assert tied.guarantee == "exact"
            twice = np.repeat(np.round(scale * scores), 2), np.repeat(coins, 2)
            assert ("copies share a coin" in str(dp.one_run(*twice, guesses=40))) == (scale == 10)


@pytest.mark.parametrize("period", [2, 50, 200])
def test_coins_that_repeat_are_refused(period):
    rng = np.random.default_rng(period)
    coins = np.tile(np.arange(2) < 1 if period == 2 else rng.random(period) < 0.5, 2000 // period)
    with pytest.raises(InvalidInput, match=f"--run.*begins anew after {period} canaries"):
        dp.one_run(rng.normal(size=2000), coins, claim="eps=0.1, delta=1e-5", guesses=400)
    coins = rng.random(2000) < 0.5
    for order in (np.sort(coins), np.sort(coins)[::-1]):  # files may be sorted by the coin
        assert dp.one_run(rng.normal(size=2000), order, guesses=400, rng=0).guarantee == "exact"


@pytest.mark.parametrize("guesses", [1000, 900, None, [1000, 200]])
def test_the_ceiling_is_what_the_best_attack_certifies(guesses):
    for seed in range(6):
        coins = np.random.default_rng(seed).random(1000) < 0.5
        best = dp.one_run(coins * 1.0, coins, claim="eps=4, delta=1e-5", guesses=guesses, rng=0)
        assert best.certified.epsilon <= best.certified.ceiling
        assert (
            best.certified.epsilon
            >= (0.85 if guesses is None else 1 - 1e-9) * best.certified.ceiling
        )
        if (
            best.smallest_detectable == math.inf
        ):  # half of 1,000 guesses are "included", and fewer were
            assert best.certified.ceiling < 4.0


@pytest.mark.parametrize("m", [30, 1000])
@pytest.mark.parametrize("guesses", [None, 20])
def test_groups_that_depend_on_the_coins_are_refused(m, guesses):
    scores, included = gaussian(m, 1.0, 0)
    message = r"groups \(--group\) that do not depend .* 0 of the \d+ canaries of group 'False'"
    with pytest.raises(InvalidInput, match=message):
        dp.one_run(scores, included, groups=included, guesses=guesses)
    if m == 1000:
        mostly = included ^ (np.arange(m) % 10 == 0)
        with pytest.raises(InvalidInput, match="depend on the coins"):
            dp.one_run(scores, included, groups=mostly, guesses=guesses)


def test_canaries_that_are_all_included_are_refused():
    with pytest.raises(InvalidInput, match="8 of the 8 canaries that are tested were included"):
        dp.one_run(np.arange(8.0), np.ones(8, dtype=bool), guesses=4)


def test_learned_guesses_say_that_they_depend_on_the_seed():
    scores, included = gaussian(400, 1.0, 0)
    said = "depends on the seed: fix the seed before looking"
    assert said in str(dp.one_run(scores, included, rng=0))
    fixed = [dp.one_run(scores, included, guesses=100, rng=k) for k in range(5)]
    assert said not in str(fixed[0])
    assert len({one.value for one in fixed}) == 1
    assert len({dp.one_run(scores, included, rng=k).value for k in range(5)}) > 1


def test_a_number_of_guesses_in_quotes_is_named_whole():
    coins = np.random.default_rng(0).random(500) < 0.5
    with pytest.raises(InvalidInput, match="'200'"):
        dp.one_run(coins + 0.0, coins, guesses="200")


def test_so_many_are_guessed_that_the_claim_can_be_refuted():
    """Few confident guesses are the most accurate, and could not refute a large ε if all were right."""
    rng = np.random.default_rng(0)
    included = rng.permutation(500) < 250
    scores = included + rng.normal(size=500)
    verdict = dp.one_run(scores, included, claim="eps=4, delta=1e-5", rng=0)
    assert not verdict.violated
    assert not verdict.blind
    few = dp.one_run(scores[:40], included[:40], claim="eps=4, delta=1e-5", rng=0)
    assert few.blind  # none of 30 guesses could


def permuted(runs, many, seed):
    """Runs without privacy loss that share their coins, each with its rows in another order."""
    rng = np.random.default_rng(seed)
    coins, base = rng.random(many) < 0.5, 3 * rng.normal(size=many)
    orders = [rng.permutation(many) for _ in range(runs)]
    return [(base + 0.3 * rng.normal(size=many))[k] for k in orders], [coins[k] for k in orders]


def test_runs_that_all_include_the_same_number_are_doubted():
    for seed in range(10):
        found = dp.one_run(*permuted(4, 250, seed), delta=1e-5, rng=0)
        assert found.guarantee == "heuristic"
        assert any("in every one of the 4 runs" in note for note in found.about.notes)
        scores, coins = permuted(5, 250, seed)
        found = dp.one_run(scores, [*coins[:2], *(~c for c in coins[2:])], delta=1e-5, rng=0)
        assert found.guarantee == "heuristic"
    two = dp.one_run(*permuted(2, 250, 0), delta=1e-5, rng=0)  # a coincidence of one in 28
    assert two.guarantee == "exact"


def test_a_delta_that_allows_to_reveal_many_coins_is_named():
    scores, included = gaussian(1000, 2.0, 0)
    assert "δ = 0.05 is too large for 1,000 canaries" in str(
        dp.one_run(scores, included, delta=0.05, rng=0)
    )
    assert "too large" not in str(dp.one_run(scores, included, delta=1e-5, rng=0))


def test_slips_in_the_arguments_are_named():
    class Tensor:
        requires_grad = True

        def __array__(self, *_, **__):
            raise RuntimeError

    scores, included = gaussian(500, 2.0, 0)
    with pytest.raises(InvalidInput, match=r"\(ε, δ\), in this order"):
        dp.one_run(scores, included, claim=(1e-5, 4.0))
    with pytest.raises(InvalidInput, match=r"\.detach\(\)"):
        dp.one_run(Tensor(), included)
    with pytest.raises(InvalidInput, match="list of arrays"):
        dp.one_run(np.array([scores, scores]), np.array([included, included]))
    Tensor.requires_grad, Tensor.dtype = False, "torch.bfloat16"
    with pytest.raises(InvalidInput, match=r"call \.float\(\) on it"):
        dp.one_run(Tensor(), included)
    with pytest.raises(InvalidInput, match=r"got included\[\d+\] = -1"):
        dp.one_run(scores, 2 * included - 1)
    with pytest.raises(InvalidInput, match=r"2 have none, the first at groups\[7\] = None"):
        dp.one_run(scores, included, groups=["a"] * 7 + [None] * 2 + ["a"] * 491)


def test_a_column_of_numbers_is_an_array_of_numbers():
    scores, included = gaussian(500, 2.0, 0)
    groups = np.repeat(["a", "b"], 250)
    flat = dp.one_run(scores, included, groups=groups, rng=0)
    column = [one[:, None] for one in (scores, included, groups)]
    assert dp.one_run(*column[:2], groups=column[2], rng=0) == flat


def test_scores_that_are_the_coins_are_doubted():
    _, included = gaussian(500, 2.0, 0)
    found = dp.one_run(included * 1.0, included, rng=0)
    assert found.guarantee == "heuristic"
    assert any("the scores are the coins themselves" in note for note in found.about.notes)
    noise = 1e-3 * np.random.default_rng(0).normal(size=500)
    assert dp.one_run(included + noise, included, rng=0).guarantee == "exact"


def test_the_verdict_on_a_curve_says_the_certified_epsilon_first():
    scores, included = gaussian(500, 2.0, 0)
    curve = dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff)
    assert ": ε ≥ " in str(dp.one_run(scores, included, claim=curve)).splitlines()[0]


def test_the_witness_of_a_curve_is_what_certifies_epsilon():
    """Where the curve is not refuted, the guesses shown are those of the ε that is printed."""
    scores, included = gaussian(200, 1.5, 0)
    verdict = dp.one_run(scores, included, claim=dp.TradeoffDP(dp.GaussianDP(3.0).tradeoff), rng=0)
    assert not verdict.violated
    right, guesses = map(int, str(verdict.witness.event).split(" guesses")[0].split(" of "))
    fixed = verdict.certified.scores
    found = [
        bounds.lower_bound(dp.ApproximateDP(0.0, 1e-5), Guessed(*one), level)
        for one, level in zip(fixed.guessed, fixed.levels, strict=True)
    ]
    shown = [one[1:3] for one in fixed.guessed].index((guesses, right))
    assert found[shown] == max(found) == pytest.approx(verdict.certified.epsilon)
    said = str(verdict)
    assert said.count(f"ε ≥ {rounded_down(verdict.certified.epsilon)}") == 2  # headline, canaries
    assert "gap ≥" not in said
    assert "first input" not in "".join(text for _, text in verdict.view().rows)


def test_the_witness_counts_right_guesses_of_both_kinds():
    scores, included = gaussian(400, 3.0, 0)
    found = dp.one_run(scores, included, claim="eps=0.5", guesses=(10, 40))
    order = np.argsort(-scores)
    top, bottom = included[order[:10]].sum(), 40 - included[order[-40:]].sum()
    words = (
        f"{top + bottom} of 50 guesses are right: {top} of 10 guessed to be included, {bottom} of 40 "
        "guessed to be left out"
    )
    assert str(found.witness.event) == words
    assert f"witness: {words}\n" in str(found)
    report = issue(found)
    assert words in report
    assert "400 canaries" in report
    assert "draws" not in report
    assert "each of the two inputs" not in report


# --- what is said beside the verdict on a curve


def test_a_curve_that_is_refuted_as_a_whole_is_said_to_be_so_first():
    """ε at one δ stays below the claimed one, which must not read as a contradiction."""
    rng = np.random.default_rng(0)
    included = rng.random(300) < 0.5
    scores = 8 * included + rng.normal(size=300)
    curve = dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff)
    for claim in ("mu=1", curve):
        verdict = dp.one_run(scores, included, claim=claim, rng=0)
        assert verdict.violated
        assert verdict.certified.epsilon < verdict.certified.claimed
        assert verdict.view().summary[0].startswith("The claimed curve is refuted as a whole")
        assert "at δ = 1e-05 alone is not refuted" in verdict.view().sentence
        assert "the claimed curve is refuted as a whole" in str(verdict).splitlines()[1]
        assert str(verdict).count("refuted as a whole") == 1
    sound = dp.one_run(rng.normal(size=300), included, claim=curve, rng=0)
    assert sound.view().summary[0].startswith("The claimed curve was tested as a whole")
    far = dp.one_run(scores, included, claim="mu=0.1", rng=0)
    assert far.certified.epsilon > far.certified.claimed
    assert "as a whole" not in str(far)


def test_a_blind_audit_says_once_what_it_could_have_shown_and_what_helps():
    scores, included = gaussian(100, 2.0, 0)
    verdict = dp.one_run(scores, included, claim="mu=8", rng=0)
    assert verdict.tone == "blind"
    assert str(verdict).count(verdict.blind) == 1
    assert "more canaries" in verdict.remedy
    assert "whole curve" not in verdict.remedy
    point = dp.one_run(scores, included, claim="eps=8, delta=1e-5", rng=0)
    assert "whole curve" in point.remedy
    assert "whole curve" in point.view().meaning[1]


def test_a_curve_is_as_blind_as_the_gaussian_claim_that_it_is():
    """Canaries that could not refute 1-GDP cannot refute its profile either."""
    curve = dp.TradeoffDP.from_delta(dp.GaussianDP(1.0).delta_at)
    rng = np.random.default_rng(3)
    for m, blind in ((100, True), (300, True), (4000, False)):
        coins = rng.random(m) < 0.5
        scores = coins + rng.normal(size=m)
        found = [dp.one_run(scores, coins, claim=c, rng=0) for c in (curve, dp.GaussianDP(1.0))]
        assert [bool(one.blind) for one in found] == [blind, blind]
    assert "Gaussian scores with means μ = " in str(found[0])
    with pytest.raises(InvalidInput, match='write claim="eps=3, delta=1e-06"'):
        dp.one_run(scores, coins, claim=3.0, delta=1e-6)
    with pytest.raises(InvalidInput, match='write "eps=3.0", or "eps=3.0, delta=1e-5"'):
        dp.one_run(scores, coins, claim=3.0)
    with pytest.raises(InvalidInput, match="leave delta out"):
        dp.one_run(scores, coins, claim=(3.0, 1e-5), delta=1e-6)
    assert dp.one_run(scores, coins, claim=(3.0, 1e-5), delta=1e-5, rng=0).claim.delta == 1e-5


def test_scores_with_the_wrong_sign_are_noticed_in_either_tail(seeds):
    """Losses of few memorised members are low: all the rest are alike."""
    for seed in seeds[:4]:
        rng = np.random.default_rng(seed)
        coins = rng.random(1000) < 0.5
        losses = rng.normal(size=1000) - 8 * (coins & (rng.random(1000) < 0.1))
        wrong, right = (
            dp.one_run(s, coins, claim="eps=1, delta=1e-5", rng=0) for s in (losses, -losses)
        )
        assert right.violated
        assert any("scores are lower for canaries" in note for note in wrong.about.notes)
        assert not any("scores are lower" in note for note in right.about.notes)


def test_scores_that_tell_nothing_are_said_to_certify_nothing():
    rng = np.random.default_rng(0)
    coins = rng.random(400) < 0.5
    found = dp.one_run(rng.normal(size=400), coins, claim="eps=2, delta=1e-5", rng=0)
    assert str(found).count("no more often than chance allows") == 1
    # guesses that are right by far too often certify nothing at a large δ
    told = dp.one_run(coins + rng.normal(size=400), coins, claim="eps=2, delta=0.3", rng=0)
    assert told.certified.epsilon == 0
    assert "than chance" not in str(told)


def test_the_mu_that_would_be_detected_is_not_called_a_gap():
    """A curve without an ε at 10⁻⁵: it says nothing below δ = 10⁻³."""
    curve = dp.TradeoffDP.from_delta(
        lambda epsilon: np.maximum(dp.GaussianDP(1.0).delta_at(epsilon), 1e-3)
    )
    for m, blind in ((1000, True), (10_000, False)):
        scores, included = gaussian(m, 0.3, 1)
        verdict = dp.one_run(scores, included, claim=curve, rng=0)
        assert bool(verdict.blind) == blind
        assert verdict.smallest_detectable is None
        assert "gap = " not in str(verdict.view())
        assert "allows about μ = 1 at ε = " in str(verdict)


def test_a_curve_with_one_strict_point_is_compared_by_it():
    """1-DP but for δ = 10⁻³: at ε = 0 it allows μ = 1.2, at ε = 1 far less."""
    curve = dp.TradeoffDP.from_delta(
        lambda epsilon: np.maximum(dp.PureDP(1.0).delta_at(epsilon), 1e-3)
    )
    verdict = dp.one_run(*gaussian(4000, 0.3, 1), claim=curve, rng=0)
    allowed = float(re.search(r"allows about μ = ([\d.]+)", str(verdict))[1])
    assert 0 < allowed < 0.7


def test_plain_words_are_about_guesses_and_training_data():
    scores, included = gaussian(4000, 0.3, 0)
    found = dp.one_run(scores, included, claim="mu=1", guesses=1000, rng=0)
    plain = dict(found.view().plain)
    assert "whether a record was in the training data" in plain["What is claimed"]
    assert f"{found.witness.event}. Without the model about half" in plain["What was guessed"]
    assert "other canaries, another score" in plain["What this does not show"]
    assert "input" not in " ".join(plain.values())


def test_the_auc_of_the_scores_is_a_fact_of_the_result():
    runs = [gaussian(300, 1.0, seed) for seed in range(2)]
    scores, included = [s.round(1) for s, _ in runs], [c for _, c in runs]  # with ties
    means = [dp.attack_rates(s[c], s[~c]).auc.value for s, c in zip(scores, included, strict=True)]
    for found in (
        dp.one_run(scores, included, delta=1e-5, rng=0),
        dp.one_run(scores, included, claim="mu=1", rng=0),
    ):
        assert found.certified.scores.auc == pytest.approx(np.mean(means))
        name, value, what = found.view().facts[-1]
        assert (name, value) == ("AUC of the scores", f"{np.mean(means):.3g}")
        assert "no bound" in what


@pytest.mark.parametrize(("members", "doubted"), [(500, True), (540, False), (560, True)])
def test_a_number_of_members_that_fair_coins_hardly_give_is_doubted(members, doubted):
    """With 56 % members claims of 0.05-DP were refuted, "exactly", by scores that know nothing."""
    rng = np.random.default_rng(0)
    included = rng.permutation(1000) < members
    found = dp.one_run(rng.normal(size=1000), included, claim="eps=0.05", rng=0)
    assert any("canaries are included" in note for note in found.about.notes) == doubted
    if members == 560:
        assert found.guarantee is dp.Guarantee.HEURISTIC
