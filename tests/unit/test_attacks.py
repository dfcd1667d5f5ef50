"""AUC and TPR at a fixed FPR: limits that hold as often as they say."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpassay as dp
from dpassay.bounds.ordering import kl
from dpassay.cli import run
from dpassay.errors import InvalidInput
from dpassay.membership.attacks import _kl_upper

RUNS, GAMMA, FPR = 400, 0.1, (0.01, 0.1)


def rounded(scores):
    return np.round(scores, 0)


CASES = {
    "normal": (lambda x: x, norm.cdf(1 / np.sqrt(2)), [norm.sf(norm.isf(a) - 1) for a in FPR]),
    "equal": (lambda x: 0 * x, 0.5, [0.0, 0.0]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [(60, 60), (40, 400)])
def test_limits_fail_no_oftener_than_they_say(name, sizes, seeds):
    made, auc, tpr = CASES[name]
    wrong = np.zeros(6)
    for seed in seeds[:RUNS]:
        rng = np.random.default_rng(seed)
        x, y = made(rng.normal(1, 1, sizes[0])), made(rng.normal(0, 1, sizes[1]))
        found = dp.attack_rates(x, y, fpr=FPR, confidence=1 - GAMMA)
        rates = [(found.auc, auc), *zip(found.tpr, tpr, strict=True)]
        wrong += [w for r, true in rates for w in (r.lower > true + 1e-12, r.upper < true - 1e-12)]
        assert all(r.lower <= r.value <= r.upper for r, _ in rates)
    assert wrong.max() <= binom.ppf(1 - 0.01 / 24, RUNS, GAMMA)


def test_ties_count_half_and_admit_no_threshold_between_them(seeds):
    rng = np.random.default_rng(seeds[0])
    x, y = rounded(rng.normal(1, 1, 300)), rounded(rng.normal(0, 1, 300))
    by_hand = np.mean((x[:, None] > y) + 0.5 * (x[:, None] == y))
    assert dp.attack_rates(x, y).auc.value == pytest.approx(by_hand)


def test_limits_are_near_where_there_are_many_scores(seed):
    rng = np.random.default_rng(seed)
    found = dp.attack_rates(rng.normal(1, 1, 50_000), rng.normal(0, 1, 50_000), fpr=FPR)
    for rate, true in [
        (found.auc, CASES["normal"][1]),
        *zip(found.tpr, CASES["normal"][2], strict=True),
    ]:
        assert rate.lower <= true <= rate.upper
        assert rate.upper - rate.lower < 0.03


def test_too_few_scores_bound_nothing_at_a_small_rate():
    found = dp.attack_rates(np.arange(50) + 100, np.arange(50), fpr=0.001)
    assert (found.tpr[0].lower, found.tpr[0].value) == (0.0, 1.0)
    assert found.auc.value == 1.0
    assert found.auc.lower == pytest.approx(0.05 ** (1 / 50))


def test_scores_the_wrong_way_round_are_noticed():
    rng = np.random.default_rng(0)
    x, y = rng.normal(1, 1, 200), rng.normal(0, 1, 200)
    assert "note: scores are lower with the canary" in str(dp.attack_rates(-x, -y))
    assert "note" not in str(dp.attack_rates(x, y, separate_runs=True))
    assert "note" not in str(dp.attack_rates(y[:100], y[100:], separate_runs=True))


def test_limits_are_exact_only_for_scores_of_separate_runs(seeds):
    """Canaries of one run share what moves the model: the limits miss far oftener than they say."""
    wrong = 0
    for seed in seeds[:100]:
        rng = np.random.default_rng(seed)
        shift = rng.normal()  # how far this model tells members from others
        x, y = rng.normal(1 + shift, 1, 100), rng.normal(0, 1, 100)
        wrong += dp.attack_rates(x, y).auc.lower > norm.cdf(1 / np.sqrt(3))
    assert wrong > binom.ppf(1 - 1e-6, 100, 0.05)
    one, separate = dp.attack_rates(x, y), dp.attack_rates(x, y, separate_runs=True)
    assert {rate.guarantee for rate in (one.auc, *one.tpr)} == {"heuristic"}
    assert {rate.guarantee for rate in (separate.auc, *separate.tpr)} == {"exact"}
    assert "use dp.one_run" in str(one)
    assert "exact" not in str(one)
    with pytest.raises(InvalidInput, match="separate_runs must be True or False"):
        dp.attack_rates(x, y, separate_runs=5)


def test_means_over_several_runs_have_exact_limits(seeds):
    """Scores of a run share its model; coins of its own and independent runs are all that is needed."""
    wrong, runs, many = 0, 150, 20
    # expected AUC and TPR for a shift that is N(1, 1) in every run, by 20,000 runs
    rng = np.random.default_rng(0)

    def run(rng):
        shift = rng.normal(1.0, 1.0)
        return rng.normal(shift, 1, 30), rng.normal(0, 1, 30)

    def alone(x, y):
        top = np.sort(y)[-4]  # 3 of 30 are above it
        return np.mean(x[:, None] > y), np.mean(x > top)

    truth = np.mean([alone(*run(rng)) for _ in range(20_000)], axis=0)
    for seed in seeds[:runs]:
        rng = np.random.default_rng(seed)
        x, y = zip(*(run(rng) for _ in range(many)), strict=True)
        found = dp.attack_rates(list(x), list(y), fpr=0.1, confidence=0.8)
        wrong += found.auc.lower > truth[0] + 0.005 or found.tpr[0].lower > truth[1] + 0.005
        assert found.auc.value == pytest.approx(
            np.mean([alone(a, b)[0] for a, b in zip(x, y, strict=True)])
        )
    assert wrong <= binom.ppf(1 - 1e-3, runs, 0.4)
    assert found.auc.guarantee == "exact"
    assert found.n == (600, 600)
    assert str(found).startswith("AUC, mean of 20 runs ≈")
    with pytest.raises(InvalidInput, match="got 20 and 19"):
        dp.attack_rates(list(x), list(y)[:-1])


def test_the_inversion_of_kl():
    for value in (0.0, 0.2, 0.5, 0.99):
        top = _kl_upper(value, 0.01)
        assert kl(value, top) == pytest.approx(0.01, rel=1e-6)
    assert _kl_upper(1.0, 0.01) == 1.0


@pytest.mark.parametrize(("scores", "fpr"), [([], 0.1), ([np.nan], 0.1), ([1.0], 1.5)])
def test_what_is_no_score_is_refused(scores, fpr):
    with pytest.raises(InvalidInput):
        dp.attack_rates(scores, [1.0], fpr=fpr)


def test_a_sentence_for_people():
    said = str(dp.attack_rates([1.0, 2.0], [0.0, 1.5]))
    assert said.startswith("AUC ≈ 0.75, at least ")
    assert "TPR at FPR 0.001" in said


def test_labels_in_place_of_scores_are_refused():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    scores = labels + rng.normal(size=400)
    for given in ((scores, labels), (labels, scores)):
        with pytest.raises(InvalidInput, match=r"as labels are.*scores\[labels == 1\]"):
            dp.attack_rates(*given)
    dp.attack_rates(labels, rng.integers(2, size=400))
    dp.attack_rates(scores[labels == 1], scores[labels == 0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[1.0, 2.0]], r"an array of shape \(1, 2\)"),
        ([], r"an array of shape \(0,\)"),
        ([1.0, np.nan], r"scores_in\[1\] is NaN"),
        (["a"], "must be numbers"),
    ],
)
def test_what_are_no_scores_is_said_as_it_is(given, words):
    with pytest.raises(InvalidInput, match=words):
        dp.attack_rates(given, [1.0])


def test_copies_and_runs_that_share_their_coins_are_refused(tmp_path, capsys):
    rng = np.random.default_rng(0)
    coins, runs = rng.random(60) < 0.5, [rng.normal(size=60) for _ in range(20)]
    with pytest.raises(InvalidInput, match="two runs have the same scores"):
        dp.attack_rates([runs[0][coins]] * 5, [runs[0][~coins]] * 5)
    path = tmp_path / "runs.csv"
    rows = [(k, x, int(c)) for k, run in enumerate(runs) for x, c in zip(run, coins, strict=True)]
    path.write_text("seed,score,included\n" + "".join(f"{k},{x},{c}\n" for k, x, c in rows))
    assert run(["attack-rates", str(path), "--run", "seed"]) == 2
    assert "has the coins of a run before it" in capsys.readouterr().err
    own = [(run, rng.random(60) < 0.5) for run in runs]
    found = dp.attack_rates([x[c] for x, c in own], [x[~c] for x, c in own])
    assert found.auc.guarantee == "exact"
    assert "coins of its own" in str(found)
