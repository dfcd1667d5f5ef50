"""Bounds on fresh draws; verdicts are replayed in `test_audits`."""

import contextlib
import io

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay import zoo
from dpassay.cli import run
from dpassay.errors import DependenceWarning, InvalidInput, MechanismRaised
from dpassay.outputs.event_code import exceptions
from dpassay.report.issue import issue

PAIR = (0.0, 1.0)
ASKED = ("eps", "eps, delta=0.01", "delta, eps=1", "mu")


@pytest.mark.parametrize("of", ASKED)
def test_a_bound_read_from_json_is_reached_again_on_more_draws(of, seeds):
    mechanism = zoo.Gaussian(1.0)
    for seed in seeds[:3]:
        bound = dp.bound(mechanism, PAIR, of, n=4000, confidence=0.999, rng=seed)
        again = dp.LowerBound.from_json(bound.to_json())
        assert again == bound
        verdict = dp.replay(again, mechanism, n=100_000, rng=seed + 1)
        assert verdict.violated
        assert verdict.lower_bound >= bound.value == verdict.claim.value
        assert "the claim tested is the bound itself" in verdict.about.notes[0]


@pytest.mark.parametrize("of", ASKED)
def test_a_bound_above_the_truth_is_not_reached(of, seeds):
    """The bound of one mechanism replayed on another, of which it is false."""
    leaky, tight = zoo.Gaussian(1.0), zoo.Gaussian(2.0)
    bound = dp.bound(leaky, PAIR, of, n=20_000, rng=seeds[0])
    wrong = sum(dp.replay(bound, tight, n=500, rng=seed).violated for seed in seeds[:30])
    assert wrong <= binom.ppf(1 - 0.01 / 12, 30, 0.05)


def test_a_replay_at_the_truth_errs_no_more_often_than_it_may(seeds):
    """A bound that is the truth itself: fresh draws reach it with probability 1 − confidence at most."""
    mechanism = zoo.Laplace(1.0)
    bound = dp.bound(mechanism, PAIR, "eps", n=20_000, rng=seeds[0])
    wrong = sum(
        dp.replay(bound, mechanism, n=400, claim="eps=1", confidence=0.9, rng=seed).violated
        for seed in seeds[:60]
    )
    assert wrong <= binom.ppf(1 - 0.01 / 3, 60, 0.1)


def test_as_many_draws_reach_a_bound_about_every_other_time(seeds):
    mechanism, runs = zoo.Laplace(1.0), 20
    reached = 0
    for seed in seeds[:runs]:
        bound = dp.bound(mechanism, PAIR, "eps", n=2000, rng=seed)
        reached += dp.replay(bound, mechanism, n=1500, rng=seed + 1).violated  # as many as tested
    low, high = binom.ppf([0.01 / 6, 1 - 0.01 / 6], runs, 0.5)
    assert low <= reached <= high


@pytest.mark.parametrize("of", ["rho", "renyi(order=2)"])
def test_a_bound_on_a_divergence_says_that_an_event_shows_a_part(of, seeds):
    bound = dp.bound(zoo.Gaussian(1.0), PAIR, of, n=20_000, rng=seeds[0])
    verdict = dp.replay(bound, zoo.Gaussian(1.0), n=20_000, rng=seeds[1])
    assert "does not contradict the bound" in verdict.about.notes[0]
    assert verdict.lower_bound < bound.value


def test_all_of_the_outputs_differ():
    """The largest bounds there are can be claimed."""

    def reveals(x, size, rng):
        return np.full(size, x)

    for of in ("eps", "delta, eps=1"):
        bound = dp.bound(reveals, PAIR, of, n=2000, rng=0)
        assert dp.replay(bound, reveals, n=20_000, rng=1).witness.hits_p in (0, 20_000)


def test_bounds_that_have_no_event_say_so():
    bound = dp.pure.lower_bound(zoo.Laplace(1.0), PAIR, n=2000, rng=0)
    with pytest.raises(InvalidInput, match="MPL is not of one event"):
        dp.replay(bound, zoo.Laplace(1.0), n=1000)
    with pytest.raises(InvalidInput, match="a verdict, a bound or a witness"):
        dp.replay(dp.estimate(zoo.Laplace(1.0), PAIR, n=1000, rng=0), zoo.Laplace(1.0), n=1000)


def test_the_draws_of_a_bound_replay_nothing(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.laplace(size=2000), 1 + rng.laplace(size=2000)
    bound = dp.bound(dp.from_samples(p, q, rng=0), of="eps")
    with pytest.raises(InvalidInput, match="the draws on which the event was found"):
        dp.replay(bound, dp.from_samples(p, q, rng=0))


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    target = "zoo:Laplace(scale=0.8)"
    assert run(["bound", target, "--pair", "0", "1", "--json", "b.json"]) == 0
    assert "dpassay replay b.json TARGET" in capsys.readouterr().out
    assert run(["replay", "b.json", target, "--n", "2e5", "--json", "again.json"]) == 1
    bound = dp.LowerBound.from_json((tmp_path / "b.json").read_text())
    again = dp.Verdict.from_json((tmp_path / "again.json").read_text())
    assert again.claim == dp.PureDP(bound.value)
    # the same event on a mechanism that is more private than the bound says
    assert run(["replay", "b.json", "zoo:Laplace(scale=1.5)", "--n", "2e5", "-q"]) == 0


def test_a_replay_of_draws_that_were_doubted_is_doubted_too():
    box = dp.from_function(lambda x: x + float(np.random.default_rng(7).laplace()))
    with pytest.warns(DependenceWarning):
        verdict = dp.audit(box, (0.0, 1.0), "eps=1", n=400, rng=0)
    with pytest.warns(DependenceWarning, match="fixed seed"):
        again = dp.replay(verdict, box, n=400, rng=1)
    assert (verdict.guarantee, again.guarantee) == ("heuristic", "heuristic")


def test_a_replay_makes_as_many_draws_as_tested_the_witness():
    box = zoo.Laplace(0.5)
    found = dp.audit(box, PAIR, "eps=1", n=4000, rng=0)
    again = dp.replay(found, box, rng=1)
    assert again.about.n == (found.witness.n_p, found.witness.n_q)
    assert again.violated
    assert again.view().replay == ""  # it is one


def test_a_bound_that_is_reached_again_is_no_violation_of_a_claim():
    box = zoo.Laplace(1.0)
    found = dp.bound(box, PAIR, "eps", n=2000, rng=0)
    assert dp.replay(found, box, n=100_000, rng=1).headline.endswith("is confirmed")
    assert dp.replay(found, zoo.Laplace(3.0), n=5000).headline.endswith("is not confirmed")


def test_a_replay_on_outputs_of_another_kind_says_so():
    def two(x, size, rng):
        return x + rng.laplace(scale=0.5, size=(size, 2))

    def words(x, size, rng):
        return ["word"] * size

    scalar = dp.audit(zoo.Laplace(0.5), PAIR, "eps=1", n=2000, rng=0)
    options = {"n": 2000, "rng": 0}
    linear, bits = (dp.audit(two, PAIR, "eps=1", loss=one, **options) for one in ("linear", "bits"))
    for found, other in ((scalar, words), (linear, zoo.Laplace(0.5)), (bits, zoo.Laplace(0.5))):
        with pytest.raises(InvalidInput, match=r"of another kind than these; check .*TARGET"):
            dp.replay(found, other, rng=1)
    far = dp.replay(scalar, lambda x, size, rng: np.full(size, -9.0), rng=1)
    assert far.blind_cause == "empty event"
    assert far.headline == "no evidence: the event no longer occurs on either input"
    assert "too weak" not in str(far)
    assert "no evidence about other events" in str(far)
    assert "assertion again" in far.remedy


def test_a_replay_with_the_inputs_exchanged_is_blind():
    box = zoo.Laplace(0.5)
    found = dp.audit(box, PAIR, "eps=1", n=4000, rng=0)
    rng = np.random.default_rng(1)
    fresh = dp.from_samples(*(box(x, 3000, rng) for x in PAIR[::-1]))
    again = dp.replay(found, fresh)
    w = again.witness
    likelier = "first" if found.witness.p >= found.witness.q else "second"
    counted = dp.audit_counts(*w.counts, "eps=1", likelier=likelier)
    for one in (again, counted):
        assert one.tone == "blind"
        assert "exchange the two" in one.remedy


def test_a_mended_mechanism_with_other_texts_is_replayed():
    def bad(data, size, rng):
        return [f"n{k}" for k in 3 * data + rng.integers(0, 4, size)]

    def good(data, size, rng):
        return [f"m{k}" for k in rng.integers(0, 4, size)]

    verdict = dp.audit(bad, (0, 1), "eps=1", n=1000, rng=0)
    assert verdict.violated
    assert not dp.replay(verdict, good, n=1000, rng=1).violated


def test_a_verdict_about_exceptions_is_replayed_with_exceptions_as_outputs(seed):
    """Also from its JSON, and with the types of exceptions written out for a bug report."""

    def mean(data, rng):
        return round(sum(data) / len(data)) + int(rng.geometric(0.6) - rng.geometric(0.6))

    mechanism, pair = dp.from_function(mean), ([], [0])
    how = dp.Sampling(on_error="outcome")
    verdict = dp.audit(mechanism, pair, "eps=1", n=400, rng=seed, sampling=how)
    assert exceptions(verdict.witness.event) == ("ZeroDivisionError",)
    again = dp.replay(dp.Verdict.from_json(verdict.to_json()), mechanism, rng=seed + 1)
    assert again.violated
    assert again.witness.counts == verdict.witness.counts
    script = issue(verdict).split("```python\n")[1].split("```")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(script, {"release": lambda data: mean(data, np.random.default_rng(seed))})
    assert printed.getvalue() == "10000 of 10000\n0 of 10000\n"


def test_a_mechanism_that_fails_is_an_error_where_exceptions_were_no_outputs(seed):
    def broken(data, rng):
        raise OSError("no such host")

    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=2000, rng=seed)
    with pytest.raises(MechanismRaised, match="no such host"):
        dp.replay(verdict, dp.from_function(broken), rng=seed + 1)
