"""How many draws it takes."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpassay as dp
from dpassay.auditing import plan_result, plans
from dpassay.auditing.audits import refutes
from dpassay.bounds import power
from dpassay.bounds.joint_test import evidence
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import exact_power
from dpassay.errors import InvalidInput


def test_a_plan_is_what_the_power_says():
    plan = dp.plan(dp.PureDP(0.5), excess=1.0, event=math.exp(-1) / 2)
    assert 165 <= plan.held_out <= 180  # Laplace, the event below 0
    assert dp.plan(dp.PureDP(0.5), excess=1.0).held_out < plan.held_out  # the best of all events
    assert plan.draws == math.ceil(plan.held_out / 0.75)
    assert "draws a side" in str(plan)
    assert dp.plan("eps=1", excess=0.1).draws > dp.plan("eps=1", excess=0.2).draws
    assert dp.Plan.from_json(plan.to_json()).draws == plan.draws
    with pytest.raises(InvalidInput, match="excess"):
        dp.plan("eps=1", excess=0.0)


@pytest.mark.parametrize(
    ("claim", "excess"), [("eps=4", 0.5), ("eps=4, delta=1e-5", 1.0), ("eps=2", 1.0)]
)
def test_audits_of_randomized_response_have_the_power_that_was_planned(claim, excess, seeds):
    """At a corner of what the claim allows; the normal limit planned draws that could not refute."""
    plan = dp.plan(claim, excess=excess)
    coin = dp.zoo.RandomizedResponse(plan.actual)
    caught = [dp.audit(coin, (0, 1), claim, n=plan.draws, rng=s).violated for s in seeds[:40]]
    assert sum(caught) >= binom.ppf(1e-4, len(caught), 0.85)


def test_the_exact_power_is_the_probability_of_the_rejected_counts():
    p, q, n, claim, gamma = 0.996, 0.016, 120, dp.GaussianDP(4.0), 0.05
    slow = 0.0
    for j in range(10):
        for i in range(n - 8, n + 1):
            if evidence(Counts(i, n, j, n), claim, gamma).p_value <= gamma:
                slow += binom.pmf(i, n, p) * binom.pmf(j, n, q)
    assert exact_power(p, q, n, claim, gamma) == pytest.approx(slow, abs=2e-3)


@pytest.mark.parametrize(("p", "q", "claim"), [(0.93, 0.25, 1.0), (0.66, 0.25, 0.5), (0.5, 0.1, 1)])
def test_the_exact_power_of_few_draws_counts_every_outcome(p, q, claim):
    n, claim, gamma = 20, dp.PureDP(claim), 0.05
    slow = sum(
        binom.pmf(i, n, p) * binom.pmf(j, n, q)
        for i in range(n + 1)
        for j in range(n + 1)
        if evidence(Counts(i, n, j, n), claim, gamma).p_value <= gamma
    )
    assert exact_power(p, q, n, claim, gamma) == pytest.approx(slow, abs=3e-4)


@pytest.mark.parametrize(("excess", "confidence"), [(0.5, 1 - 1e-6), (0.2, 0.95)])
def test_the_power_of_a_plan_at_a_corner_of_the_claim_is_what_was_asked_for(
    excess, confidence, monkeypatch
):
    """Between few exact p-values the critical counts were joined by lines, which cut the corner."""
    plan, claim, gamma = (
        dp.plan("eps=1", excess=excess, confidence=confidence),
        dp.PureDP(1),
        1 - confidence,
    )
    p = float(claim.at(plan.actual).region(plan.event))
    monkeypatch.setattr(power, "_KNOTS", 60)
    found = exact_power(p, plan.event, plan.held_out, claim, gamma)
    assert found == pytest.approx(0.9, abs=0.012)


@pytest.mark.usefixtures("few_simulations")
@pytest.mark.parametrize("claim", ["rho=.5", dp.RenyiDP(2, 0.5)])
def test_claims_that_events_do_not_exhaust_are_planned_too(claim):
    plan = dp.plan(claim, excess=2.0)
    assert 10 < plan.held_out < 1000


def test_no_plan_is_for_fewer_draws_than_an_audit_takes():
    plan = dp.plan("mu=0.5", excess=20)
    assert plan.draws == 8
    dp.audit(dp.zoo.Gaussian(0.1), (0.0, 1.0), "mu=0.5", n=plan.draws, rng=0)
    small = dp.plan("eps=0.1", excess=20)
    assert small.draws >= small.held_out + 4


def test_the_plan_of_a_curve_is_for_a_truth_that_mechanisms_have(seeds):
    """Gaussian noise that is too small by a largest gap of 0.1 is caught about as often as planned."""
    curve = dp.TradeoffDP(dp.GaussianDP(0.5).tradeoff)
    plan = dp.plan(curve, excess=0.1)
    assert plan.draws > 500
    assert plan.event > 0.05
    mu = 0.5 + 2 * norm.ppf(0.55)  # 2Φ(s/2) − 1 is the largest gap of a shift s
    alpha = np.linspace(0, 1, 1001)
    gaps = curve.tradeoff(alpha) - dp.GaussianDP(mu).tradeoff(alpha)
    assert gaps.max() == pytest.approx(0.1, abs=1e-4)
    caught = 0
    for seed in seeds[:12]:
        caught += dp.audit(
            dp.zoo.Gaussian(1 / mu), (0.0, 1.0), curve, n=plan.draws, rng=seed, loss="values"
        ).violated
    assert caught >= binom.ppf(1e-4, 12, 0.8)
    assert "Gaussian shift" in str(plan)
    assert "takes more" in str(plan)


def test_a_plan_says_which_shape_it_assumes():
    coin = dp.plan("eps=1", excess=0.2)
    assert "best case" in str(coin)
    assert coin.simulated is None
    with pytest.raises(InvalidInput, match="shape"):
        dp.plan("eps=1", shape="cauchy")
    with pytest.raises(InvalidInput, match=r"no Gaussian noise has 1\.1-DP"):
        dp.plan("eps=1", shape="gaussian")
    with pytest.raises(InvalidInput, match="give the claim too"):
        dp.plan(dp.zoo.Laplace(), (0.0, 1.0))


@cache
def laplace_plan():
    return dp.plan("eps=0.5", excess=1.0, shape="laplace")


def test_audits_of_laplace_noise_have_the_power_that_was_planned(seeds):
    """Laplace noise needs more draws than a coin."""
    plan = laplace_plan()
    assert plan.draws > 1.2 * dp.plan("eps=0.5", excess=1.0).draws
    assert plan.simulated == 1360
    caught = [
        dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=0.5", n=plan.draws, rng=seed).violated
        for seed in seeds[:60]
    ]
    low, high = binom.ppf([1e-4, 1 - 1e-4], len(caught), [0.85, 0.95])
    assert low <= sum(caught) <= high


def test_a_pilot_plans_for_the_excess_it_shows():
    found = dp.plan(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", pilot=2000)
    assert found.least < found.draws < found.most
    assert 40 < found.draws < 200
    none = dp.plan(dp.zoo.Laplace(4.0), (0.0, 1.0), "eps=1", pilot=500)
    assert none.draws is None
    assert "no excess" in str(none)
    assert dp.Plan.from_json(found.to_json()).most == found.most


def test_an_event_that_takes_draws_to_learn_is_planned_for():
    """The bits of five numbers: a pilot of 2,000 sees them at once, audits of 26 draws never."""

    def release(data, size, rng):
        return data / math.sqrt(5) + rng.normal(size=(size, 5))

    found = dp.plan(release, (0.0, 1.0), "mu=1", pilot=2000)
    audits = [dp.audit(release, (0.0, 1.0), "mu=1", n=found.draws, rng=s) for s in range(5)]
    assert sum(one.violated for one in audits) >= 4


def test_a_pilot_of_a_sound_mechanism_plans_for_an_excess():
    """About as many draws as Laplace noise takes that is too small."""
    sure = 1 - 1e-6
    found = dp.plan(
        dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", excess=0.1, pilot=4000, confidence=sure, rng=2
    )
    least = dp.plan("eps=1", excess=0.1, event=math.exp(-1) / 2, confidence=sure)
    assert least.draws < found.draws < 1.7 * least.draws
    assert "the truth is 1.1-DP and shows on an event like the best one of the pilot" in str(found)
    more = dp.plan(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", excess=0.05, pilot=4000, rng=2)
    assert (
        more.draws
        > 3 * dp.plan(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", excess=0.1, pilot=4000, rng=2).draws
    )


def test_a_pilot_plans_no_excess_of_divergences():
    with pytest.raises(InvalidInput, match="no event shows all of an excess over 0.5-zCDP"):
        dp.plan(dp.zoo.Gaussian(1.0), (0.0, 1.0), "rho=0.5", excess=0.5)


def test_a_mechanism_that_keeps_the_claim_is_no_shape():
    none = dp.plan("eps=1", pair=(0, 1), shape=dp.zoo.RandomizedResponse(0.5))
    assert none.draws is None
    assert "audits show no excess over 1-DP" in str(none)


def test_a_mechanism_is_a_shape(monkeypatch):
    monkeypatch.setattr(plans, "_ROUNDS", (60, 300))
    found = dp.plan("eps=0.5", pair=(0.0, 1.0), shape=dp.zoo.Laplace(1.0))
    assert (found.shape, found.simulated) == ("mechanism", 360)
    assert 0.7 < found.draws / laplace_plan().draws < 1.4
    assert "by 360 audits of the mechanism" in str(found)


@pytest.mark.parametrize("given", [{"event": 0.2}, {"shape": "laplace"}])
def test_a_pilot_takes_no_assumption_that_it_would_ignore(given):
    with pytest.raises(InvalidInput, match="a pilot shows the event and the shape"):
        dp.plan(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", pilot=200, **given)


@pytest.fixture
def few_simulations(monkeypatch):
    monkeypatch.setattr(plans, "_ROUNDS", (20, 40))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "shape", "mechanism", "low", "high"),
    [
        # by events there was no such number for the first two, and 128 draws for the third
        ("rho=1", "gaussian", dp.zoo.Gaussian(1 / math.sqrt(3)), 1700, 4500),
        ("renyi(order=2)=1", "gaussian", dp.zoo.Gaussian(1 / math.sqrt(1.5)), 3300, 8500),
        ("renyi(order=2)=1", "coin", dp.zoo.RandomizedResponse(1.65415), 160, 420),
    ],
)
@pytest.mark.usefixtures("few_simulations")
def test_divergences_are_planned_by_simulated_audits(claim, shape, mechanism, low, high):
    """High and low are about ×1.6 of draws at which 150 audits had a power of 0.84 to 0.9."""
    plan = dp.plan(claim, excess=0.5, shape=shape)
    assert low < plan.draws < high
    assert plan.simulated > 60
    assert "a bound on the divergence" in str(plan)
    pair = (0, 1) if shape == "coin" else (0.0, 1.0)
    found = [refutes_as_audited(mechanism, pair, claim, plan.draws, seed) for seed in range(8)]
    assert sum(found) >= binom.ppf(1e-4, 8, 0.8)


def refutes_as_audited(mechanism, pair, claim, n, seed):
    """What the simulation computes is what the audit says."""
    options = {"n": n, "confidence": 0.95, "train": None, "loss": "auto", "rng": seed}
    quick = refutes(mechanism, pair, dp.claim(claim), sampling=None, **options)
    assert quick == dp.audit(mechanism, pair, claim, **options).violated
    return quick


@pytest.mark.usefixtures("few_simulations")
def test_audits_that_show_nothing_are_said_to_show_nothing(monkeypatch):
    for module in (plans, plan_result):
        monkeypatch.setattr(module, "SIMULATED", 200)
    none = dp.plan("rho=0.5", excess=0.01, shape="gaussian")
    assert none.draws is None
    assert "simulated audits of up to 200 draws a side do not tell 0.5-zCDP from 0.505" in str(none)


def test_a_plan_doubts_percentages():
    """Before the number, which is then of no use."""
    assert "20 % is 0.2. As given: about" in str(dp.plan("eps=1", excess=20))
    assert "%" not in str(dp.plan("eps=1", excess=2))


def test_a_coin_names_the_shapes_of_noise_that_there_are():
    said = [str(dp.plan(claim, excess=0.5)) for claim in ("eps=1", "mu=1", "eps=1, delta=0.01")]
    shapes = ("(shape laplace)", "(shape gaussian)", "(shape laplace or gaussian)")
    assert all(shape in text for text, shape in zip(said, shapes, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "excess", "shape", "mechanism"),
    [
        ("eps=1", 0.2, "laplace", dp.zoo.Laplace(1 / 1.2)),
        ("mu=1", 0.2, "gaussian", dp.zoo.Gaussian(1 / 1.2)),
        ("rho=0.5", 0.5, "gaussian", dp.zoo.Gaussian(1 / math.sqrt(1.5))),
        ("renyi(order=2)=0.5", 0.5, "gaussian", dp.zoo.Gaussian(1 / math.sqrt(0.75))),
    ],
)
def test_planned_audits_have_the_planned_power(seeds, claim, excess, shape, mechanism):
    plan = dp.plan(claim, excess=excess, shape=shape)
    caught = [
        dp.audit(mechanism, (0.0, 1.0), claim, n=plan.draws, rng=seed).violated
        for seed in range(seeds[0], seeds[0] + 200)
    ]
    low, high = binom.ppf([1e-4, 1 - 1e-4], len(caught), [0.85, 0.95])
    assert low <= sum(caught) <= high


@pytest.mark.parametrize("delta", [1e-3, 1e-4, 1e-5])
def test_the_best_event_of_a_claim_in_delta_is_as_rare_as_can_be(delta):
    """The normal limit of an event with Q(E) = 0 and P(E) = 1.3 δ, and the cost of the exact test."""
    best = dp.plan(f"eps=1, delta={delta} in delta", excess=0.3)
    assert best.held_out < 1.5 * (1.2816 * 1.3**0.5 + 1.6449) ** 2 / (0.3**2 * delta)
    assert best.draws < 1.01 * dp.plan(best.claim, excess=0.3, event=1e-6).draws


def test_a_pilot_plans_for_gaussian_noise_where_that_takes_more_draws():
    options = {"excess": 1.0, "pilot": 500}
    plan = dp.plan(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1, delta=1e-5", **options)
    assert plan.shape == "gaussian"
    assert plan.draws > 20_000
    assert dp.plan(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1", **options).draws < 100


def test_the_plan_of_a_pilot_pays_for_learning(seeds):
    """Some 700 draws are needed; the best event of the pilot itself suggests 200 to 300."""
    staircase = dp.zoo.Staircase(epsilon=1.3)
    found = [
        dp.plan(staircase, (0.0, 1.0), "eps=1", pilot=2000, rng=seed).draws for seed in seeds[:5]
    ]
    assert 450 < np.median(found) < 1500


def test_the_rarest_event_of_a_plan_has_probability_zero():
    """A claim in δ is refuted best by an event that never happens on the other input."""
    found = str(dp.plan(dp.ApproximateDP(0.0, 0.3, "delta"), excess=0.3))
    assert "an event of probability 0 on the rarer side" in found


def test_the_excess_of_a_curve_is_a_gap_and_is_said_to_be():
    claim = dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff)
    assert "type II errors are up to 0.2 below the claimed curve" in str(dp.plan(claim, excess=0.2))
    with pytest.raises(InvalidInput, match="below 1, got 1"):
        dp.plan(claim, excess=1.0)
