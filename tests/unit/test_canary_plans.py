"""What canaries would certify, and how to spend trainings on them."""

import numpy as np
import pytest
from scipy.stats import norm

import dpassay as dp
from dpassay.cli import run
from dpassay.errors import InvalidInput


def test_the_plan_is_what_audits_then_certify(seeds):
    plan = dp.plan_canaries(canaries=400, runs=2, auc=0.85, delta=1e-5, rng=1)
    ((canaries, runs, epsilon, ceiling),) = plan.rows
    assert (canaries, runs) == (400, 2)
    shift, found = np.sqrt(2) * norm.ppf(0.85), []
    for seed in seeds[:40]:
        rng = np.random.default_rng(seed)
        coins = rng.random((2, 400)) < 0.5
        scores = shift * coins + rng.normal(size=coins.shape)
        bound = dp.one_run(list(scores), list(coins), delta=1e-5, rng=seed).certified
        found.append(bound.epsilon)
        assert bound.ceiling == pytest.approx(ceiling, rel=0.05)  # it depends on the coins
    low, high = np.quantile(found, [0.1, 0.9])
    assert low < epsilon < high < ceiling


def test_canaries_and_runs_are_compared_and_the_claim_sets_the_attack():
    plan = dp.plan_canaries("eps=4, delta=1e-5", canaries=[50, 500], runs=(1, 4), audits=9)
    assert [row[:2] for row in plan.rows] == [(50, 1), (50, 4), (500, 1), (500, 4)]
    assert plan.rows[0][2] < plan.rows[1][2] < plan.rows[3][2] < 4.0
    assert (plan.claimed, plan.delta) == (4.0, 1e-5)
    mu = np.sqrt(2) * norm.ppf(plan.auc)
    assert dp.GaussianDP(mu).epsilon_at(1e-5) == pytest.approx(4.0, abs=1e-4)
    assert "the claimed ε is 4" in str(plan)
    assert dp.CanaryPlan.from_json(plan.to_json()) == plan
    curve = dp.plan_canaries("mu=0.9", canaries=100, delta=1e-4, audits=2)
    assert np.sqrt(2) * norm.ppf(curve.auc) == pytest.approx(0.9, abs=1e-3)
    assert curve.claimed == pytest.approx(dp.GaussianDP(0.9).epsilon_at(1e-4))


def test_a_plan_for_a_curve_says_how_often_it_is_refuted():
    """With so few canaries no audit certifies the claimed ε at δ, and all of them refute the curve."""
    plan = dp.plan_canaries("mu=1", canaries=[20, 200], auc=0.999, audits=5)
    assert max(row[3] for row in plan.rows) < plan.claimed
    assert plan.refuting == (0.0, 1.0)
    assert plan.of_curve
    assert "tested as a whole" in str(plan)
    assert [line.split()[-1] for line in str(plan).splitlines()[-3:]] == ["refutes", "0%", "100%"]
    assert dp.CanaryPlan.from_json(plan.to_json()) == plan
    point = dp.plan_canaries("eps=1, delta=1e-5", canaries=200, auc=0.999, audits=2)
    assert (point.refuting, point.of_curve) == ((1.0,), False)
    assert dp.plan_canaries(canaries=50, auc=0.9, delta=1e-5, audits=1).refuting == ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"canaries": 100}, "auc=0.76"),
        ({"canaries": 100, "claim": "eps=1"}, "auc=0.76"),
        ({"canaries": 7, "auc": 0.7}, "canaries"),
        ({"canaries": 100, "runs": 0, "auc": 0.7}, "runs"),
        ({"canaries": 100, "auc": 1.0}, "auc"),
        ({"canaries": [], "auc": 0.7}, "canaries"),
        ({"canaries": 2_000_000, "auc": 0.7}, "canaries"),
        ({"canaries": 100, "auc": 0.7, "claim": "eps=1, delta=1e-5 in delta"}, "eps and delta"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(options, said):
    with pytest.raises(InvalidInput, match=said):
        dp.plan_canaries(**options)


def test_plans_of_the_command_line(capsys, tmp_path):
    arguments = ["--canaries", "100", "--canaries", "200", "--runs", "2", "--auc", "0.8"]
    assert run(["plan", *arguments, "--delta", "1e-5", "--json", str(tmp_path / "plan.json")]) == 0
    assert "certified ε at δ = 1e-05" in capsys.readouterr().out
    kept = dp.CanaryPlan.from_json((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert [row[:2] for row in kept.rows] == [(100, 2), (200, 2)]
    assert run(["plan"]) == 2
    assert "--claim" in capsys.readouterr().err
    assert run(["plan", "--claim", "eps=1"]) == 0
    assert run(["plan", "--canaries", "100,1000", "--auc", "0.8", "--delta", "1e-5"]) == 2
    assert "repeat the option" in capsys.readouterr().err


def test_options_of_canaries_are_refused_without_them(capsys):
    assert run(["plan", "--claim", "eps=1", "--runs", "4"]) == 2
    assert "go with --canaries" in capsys.readouterr().err
