"""What assertions say when they fail."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binom

import dpassay as dp
from dpassay import settings, testing
from dpassay.auditing import detecting
from dpassay.errors import InvalidInput
from dpassay.panels import panel
from dpassay.privacy.claims import gaussian_mu
from dpassay.testing import AuditTooWeak, PrivacyViolation, _refuted, assert_private

NAME = "outside the space, simplified from: NaN; all others at the upper bound"


def named():
    verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    pair = dp.Pair(np.array([0.0]), np.array([np.nan]), name=NAME)
    return replace(verdict, witness=replace(verdict.witness, pair=pair))


def test_the_name_of_a_pair_is_not_run_into_its_inputs():
    first, _, third, *_ = _refuted(named(), 1e-6, "").splitlines()
    assert first == "not 0.5-DP: ε ≥ 0.7485 on [0.] and [nan]"
    assert third == f"  inputs: {NAME}"


def test_a_panel_tells_the_inputs_from_their_name():
    console = Console(width=100)
    with console.capture() as caught:
        console.print(panel(named()))
    lines = [line.strip("│ ").split(maxsplit=1) for line in caught.get().splitlines()]
    at = lines.index(["inputs", "[0.] and [nan]"])
    assert lines[at + 1] == NAME.split(maxsplit=1)


def test_an_error_of_somebody_else_keeps_its_cause(monkeypatch):
    def broken(*given, **options):
        raise RuntimeError("second") from KeyError("first")

    heard = []
    monkeypatch.setattr(testing, "audit", broken)
    monkeypatch.setattr(testing, "listeners", [heard.append])
    with pytest.raises(RuntimeError, match="second") as caught:
        testing.assert_private(dp.zoo.Laplace(), (0.0, 1.0), "eps=1")
    assert isinstance(caught.value.__cause__, KeyError)
    assert heard == [testing.NoResult("eps=1", "RuntimeError: second")]


def test_a_test_chooses_its_draws_for_the_excess_that_it_is_to_detect(capsys):
    verdict = testing.assert_private(dp.zoo.DiscreteLaplace(1.0), (0, 1), "eps=1", detects=0.1)
    assert 15_000 < min(verdict.about.n) < 40_000
    assert verdict.smallest_detectable < 1.1 + 0.006
    said = (
        "an excess of 10 %, reached by an event like this, would be detected with probability 0.9"
    )
    assert said in capsys.readouterr().out
    with pytest.raises(testing.PrivacyViolation):
        testing.assert_private(dp.zoo.DiscreteLaplace(1 / 1.2), (0, 1), "eps=1", detects=0.1)


def test_a_leak_above_the_excess_does_not_pass_where_the_pilot_found_another_event():
    """Gaussian noise with ε = 1.46 at δ = 10⁻³: the audit finds a rarer event than the pilot."""

    def release(x, size, rng):
        return np.round(x + rng.normal(0, 1.8778755609, size), 4)

    ended = []
    for seed in range(12):
        with pytest.raises((PrivacyViolation, AuditTooWeak)) as caught:
            assert_private(release, (0.0, 1.0), "eps=1, delta=1e-3", detects=0.2, seed=seed)
        ended.append(caught.type)
    assert ended.count(PrivacyViolation) >= 9


def test_the_excess_to_detect_is_a_setting_and_no_percentage(capsys):
    box, pair = dp.zoo.DiscreteLaplace(1.0), (0, 1)
    with settings.using(n=3000), settings.using(detects=0.2):
        planned = testing.assert_private(box, pair, "eps=1")
        assert "an excess of 20 %" in capsys.readouterr().out
        assert min(planned.about.n) > 4000
        assert testing.assert_private(box, pair, "eps=1", n=4000).about.n == (4000, 4000)
        with settings.using(n=3000):  # what is nearer to the test
            assert testing.assert_private(box, pair, "eps=1").about.n == (3000, 3000)
    with pytest.raises(InvalidInput, match=r"detects must be .*, got 20; 20 % is 0\.2"):
        testing.assert_private(box, pair, "eps=1", detects=20)


def test_a_claim_that_is_verified_says_so(capsys):
    found = testing.assert_holds(
        dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1.1, delta=1e-3", n=50_000
    )
    said = f"(1.1, 0.001)-DP holds on this pair: {found.bound} with confidence 0.95\n"
    assert capsys.readouterr().out == said


def test_what_no_test_can_detect_fails_before_it_draws():
    drawn = []

    def release(data, size, rng):
        drawn.append(size)
        return data + rng.geometric(0.6, size) - rng.geometric(0.6, size)

    with pytest.raises(
        testing.AuditTooWeak, match=r"excess of 0.01 % over 1-DP takes .* draws a side"
    ):
        testing.assert_private(release, (0, 1), "eps=1", detects=1e-4)
    assert sum(drawn) < 10_000
    with pytest.raises(InvalidInput, match="leave n and seconds out"):
        testing.assert_private(release, (0, 1), "eps=1", detects=0.1, n=100)


def test_a_test_that_is_too_weak_says_how_many_draws_it_takes():
    with pytest.raises(testing.AuditTooWeak) as caught:
        testing.assert_private(dp.zoo.Laplace(1 / 8), (0.0, 1.0), "eps=8", n=20_000)
    said = re.search(r"excess of 10 % takes at least about ([\d,]+) draws", str(caught.value))
    # the best event takes 276,000 testing draws by exact power, and a quarter more trains
    assert 250_000 < int(said[1].replace(",", "")) < 400_000


@pytest.mark.slow
def test_draws_that_a_pilot_chose_err_no_more_often(seeds):
    """A claim that is met with equality, at a flake that shows: the pilot chooses the draws alone."""
    failed = 0
    for seed in range(seeds[0], seeds[0] + 200):
        try:
            testing.assert_private(
                dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1", detects=0.5, flake=0.05, seed=seed
            )
        except testing.PrivacyViolation:
            failed += 1
    assert failed <= binom.ppf(1 - 1e-4, 200, 0.05)


@pytest.mark.parametrize(
    ("assertion", "option", "said"),
    [
        (testing.assert_private, "confidence", r"no option 'confidence' \(here flake\); it has "),
        (testing.assert_private, "sead", "no option 'sead'; it has claim, n, .*seed"),
        (testing.hunt_private, "n", r"no option 'n' \(here budget\); it has claim, .*outside"),
        (testing.hunt_private, "confidence", "here flake"),
        (testing.assert_holds, "flake", "here confidence"),
    ],
)
def test_an_option_that_there_is_not_is_answered_with_those_that_there_are(assertion, option, said):
    with pytest.raises(InvalidInput, match=said):
        assertion(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", **{option: 1})


def test_a_plan_that_fails_is_told_to_listeners(monkeypatch):
    told = []
    monkeypatch.setattr(testing, "listeners", [told.append])
    for options in ({"detects": 0.001}, {"detects": 0.5, "n": 100}):
        with pytest.raises((AuditTooWeak, InvalidInput)):
            assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", **options)
    assert [one.why.partition(":")[0] for one in told] == ["AuditTooWeak", "InvalidInput"]


def test_a_pilot_that_is_a_violation_needs_few_draws():
    """Nothing is spent on an excess of 50 % over a claim that ten times as much breaks."""
    calls = []

    def broken(x, size, rng):
        calls.append(size)
        return np.where(rng.random(size) < 0.999, x, 1 - x)

    with pytest.raises(PrivacyViolation, match="to repeat it on fresh draws"):
        assert_private(broken, (0, 1), "eps=1", detects=0.5)
    assert sum(calls) < 50_000


@pytest.mark.parametrize("n", [5_000, 50_000])
def test_more_draws_are_no_remedy_for_a_claim_that_looks_false(n):
    """δ(0.9) of this noise is 0.0696."""
    box, pair = dp.zoo.DiscreteLaplace(1.0), (0, 1)
    with pytest.raises(
        testing.NotShown, match=r"looks false on .*: δ is at least 0\.0\d+"
    ) as caught:
        testing.assert_holds(box, pair, "eps=0.9, delta=1e-3", n=n)
    assert "draws a side" not in str(caught.value)
    with pytest.raises(testing.NotShown, match="takes about .* draws a side"):
        testing.assert_holds(box, pair, "eps=1, delta=1e-3", n=n)


def test_the_exception_of_a_hunt_has_the_hunt():
    with pytest.raises(PrivacyViolation, match=r"add confidence=0\.999999 to test") as caught:
        testing.hunt_private(
            dp.zoo.DiscreteLaplace(0.5),
            dp.inputs.Integer(0, 9),
            "eps=1",
            relation="query",
            budget=30_000,
        )
    assert caught.value.hunt.verdict is caught.value.verdict


def test_an_excess_beside_a_delta_is_one_of_epsilon(capsys):
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1, delta=.01", detects=0.5)
    said = "an excess of 50 % in ε, reached by an event like this, or with Gaussian noise would be "
    out = capsys.readouterr().out
    assert said in out
    assert "a larger δ on rarer events may be missed" in out
    of_delta = dp.ApproximateDP(1.0, 0.01, headline="delta")
    assert_private(dp.zoo.Gaussian(2.0), (0.0, 1.0), of_delta, detects=1.0, flake=0.01)
    out = capsys.readouterr().out
    assert "an excess of 100 % in δ, reached by an event like this, would be detected" in out
    assert "ε" not in out


def _gaussian(epsilon, delta):
    """Gaussian noise that is (ε, δ)-DP, with equality, on 0 and 1."""
    sigma = 1 / gaussian_mu(epsilon, delta)
    return lambda x, size, rng: np.round(x + rng.normal(0, sigma, size), 6)


@pytest.mark.parametrize("detects", [0.5, 1.0])
def test_gaussian_noise_shows_an_excess_of_epsilon_on_rarer_events_than_the_pilots(detects):
    box, found = _gaussian(1.0 + detects, 1e-5), 0
    for seed in range(10):
        try:
            assert_private(box, (0, 1), "eps=1, delta=1e-5", detects=detects, seed=seed)
        except PrivacyViolation:
            found += 1
    assert found >= 7


def test_an_excess_that_takes_too_many_draws_is_answered_with_what_can_be_done():
    box, claim = _gaussian(1.0, 1e-5), "eps=1, delta=1e-5"
    with pytest.raises(
        AuditTooWeak, match=r"draws a side for Gaussian noise\. .* about 24\.5 %"
    ) as one:
        assert_private(box, (0, 1), claim, detects=0.2)
    assert "claim mu=0.2681 (Gaussian DP)" in str(one.value)
    assert "Give detects=0.25, n = 16," in str(one.value)
    of_delta = dp.ApproximateDP(1.0, 1e-3, headline="delta")
    with pytest.raises(AuditTooWeak, match=r"which detect about [\d,]+ %. Give detects=") as one:
        assert_private(dp.zoo.RandomizedResponse(1.0), (0, 1), of_delta, detects=0.5)
    assert str(one.value).count("in δ") == 1


def _rare(x, size, rng):
    """Reveals the second input with probability 10⁻³."""
    return x * (rng.random(size) < 1e-3)


SMALL_DELTA = dp.ApproximateDP(1.0, 1e-6, headline="delta")


def test_a_pass_of_a_claim_in_delta_says_what_is_detected_at_best(capsys):
    verdict = assert_private(_rare, (0, 1), SMALL_DELTA, n=20_000)
    said = "at best, on outputs that come on one input alone, δ = 0.003567 would be detected"
    assert said in capsys.readouterr().out
    assert said in str(verdict)
    assert said in verdict.view().plain[-1][1].replace("At best", "at best")
    plain = dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1, delta=1e-6", n=2000)
    assert "at best" not in str(plain)


def test_an_excess_of_delta_may_be_any_that_leaves_it_below_1():
    with pytest.raises(PrivacyViolation):
        assert_private(_rare, (0, 1), SMALL_DELTA, detects=999)
    with pytest.raises(InvalidInput, match="at most 989999"):
        assert_private(_rare, (0, 1), SMALL_DELTA, detects=1e6)
    assert assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", detects=3.0).tone == "clear"


def test_a_violation_that_few_draws_show_needs_no_plan(monkeypatch):
    monkeypatch.setattr(detecting, "_MOST_DRAWS", 1)
    with pytest.raises(PrivacyViolation):
        assert_private(dp.zoo.Laplace(0.3), (0.0, 1.0), "eps=1", detects=0.1)


def test_the_verdict_says_what_gaussian_noise_would_show():
    verdict = dp.audit(_gaussian(1.0, 1e-5), (0, 1), "eps=1, delta=1e-5", n=20_000, rng=0)
    assert "; for Gaussian noise ε = " in str(verdict)
    assert "claim mu=0.2681 instead, which is stronger" in verdict.view().plain[-1][1]
    few = dp.audit(_gaussian(1.0, 1e-9), (0, 1), "eps=1, delta=1e-9", n=4000, rng=0)
    assert "; for Gaussian noise no ε up to 4. " in str(few)
    assert "Gaussian" not in str(dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=2000))


def test_progress_is_shown_where_somebody_sees_it(monkeypatch):
    shown = []

    def heard(*given, sampling, **options):
        shown.append(sampling.progress)
        return dp.audit(*given, sampling=sampling, **options)

    monkeypatch.setattr(testing, "audit", heard)
    for delete in (False, True):
        if delete:
            monkeypatch.delenv("PYTEST_CURRENT_TEST")
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=2000)
    assert shown[1] is None
    assert shown[0] is (None if sys.stderr is sys.__stderr__ else False)


def test_a_pass_beside_a_delta_says_what_gaussian_noise_would_show(capsys):
    assert_private(_gaussian(1.0, 1e-5), (0, 1), "eps=1, delta=1e-5")
    assert "; for Gaussian noise ε = 1.9" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("release", "pair"),
    [(dp.zoo.Laplace(1.0), (0.0, 0.0)), (lambda x, size, rng: [None] * size, (0.0, 1.0))],
)
def test_no_number_of_draws_is_named_where_none_helps(release, pair):
    with pytest.raises(AuditTooWeak, match="no number of draws") as caught:
        assert_private(release, pair, "eps=1", n=2000)
    assert "takes at least" not in str(caught.value)
    assert "?." not in caught.value.verdict.view().sentence


def test_a_violation_says_how_to_repeat_it():
    box = dp.zoo.Laplace(0.5)
    with pytest.raises(
        PrivacyViolation, match=r"dp\.replay\(error\.verdict, mechanism\)"
    ) as caught:
        assert_private(box, (0.0, 1.0), "eps=1", n=3000)
    assert dp.replay(caught.value.verdict, box, rng=1).violated


def test_an_excess_that_is_missed_names_the_claim_on_delta(monkeypatch):
    """One output has probability δ on one input and 0 on the other: ε hardly shows."""
    monkeypatch.setattr(detecting, "_MOST_DRAWS", 20_000)
    monkeypatch.setattr(detecting, "_misses", lambda *_: True)
    with pytest.raises(AuditTooWeak) as caught:
        assert_private(
            dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1, delta=0.01", detects=0.5, flake=0.05
        )
    said = str(caught.value)
    assert "is to detect (1.5, 0.01)-DP where (1, 0.01)-DP is claimed" in said
    assert 'dp.ApproximateDP(1.0, 0.01, headline="delta")' in said


def _suppressed(x, size, rng):
    """A noisy count that is −1 below 5: δ = e⁻⁴/2 = .0092 on outputs of one input alone."""
    noisy = x + np.round(rng.laplace(size=size), 3)
    return np.where((noisy >= 5) & (x > 0), noisy, -1.0)


def test_rare_numbers_beside_one_atom_are_an_event(seeds):
    for seed in seeds[:5]:
        claim = dp.ApproximateDP(1.0, 1e-5, headline="delta")
        with pytest.raises(PrivacyViolation):
            assert_private(_suppressed, (0, 1), claim, n=20_000, rng=seed)


def test_outputs_that_differ_within_delta_are_told_apart():
    """δ = .0249 of .02 allowed: the event is clearly likelier on one input, and the power is said."""

    def leak(x, size, rng):
        return (rng.random(size) < 0.0249 * x).astype(int)

    claim, sure = "eps=1, delta=0.02", 1 - 1e-6
    verdict = dp.audit(leak, (0, 1), claim, n=20_000, confidence=sure, rng=0)
    assert not verdict.violated
    assert "no score separated" not in str(verdict)
    assert "would be detected with probability 0.9" in str(verdict)


def test_an_approximate_claim_with_few_draws_is_too_weak_whether_or_not_outputs_differ():
    for mechanism in (dp.zoo.RandomizedResponse(0.1), dp.zoo.RandomizedResponse(1.0)):
        with pytest.raises(AuditTooWeak, match="Give n="):
            assert_private(mechanism, (0, 1), "eps=1, delta=1e-5", n=20_000)
    with pytest.raises(AuditTooWeak, match="Give n="):
        assert_private(
            lambda x, size, rng: rng.normal(size=size), (0, 1), "eps=1, delta=1e-5", n=20_000
        )


def test_a_test_that_gaussian_noise_would_pass_unnoticed_has_a_blind_verdict(monkeypatch):
    told = []
    monkeypatch.setattr(testing, "listeners", [told.append])
    with pytest.raises(AuditTooWeak, match="Give n=152_111") as caught:
        assert_private(_gaussian(1.0, 1e-5), (0, 1), "eps=1, delta=1e-5", n=20_000)
    (verdict,) = told
    assert verdict is caught.value.verdict
    assert verdict.tone == "blind"
    assert "Give n=152_111" in verdict.view().sentence
    assert verdict.smallest_detectable == pytest.approx(2.711, abs=0.01)
    assert verdict.shown_by == "with Gaussian noise"


@pytest.mark.parametrize("flake", [0, 2, -1, float("nan"), "often"])
@pytest.mark.parametrize("claim", ["eps=1", "eps=1, delta=1e-5"])
def test_a_flake_that_is_no_probability_is_refused_whatever_the_claim(claim, flake):
    with pytest.raises(InvalidInput, match="flake must be"):
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), claim, flake=flake)


def test_detects_takes_pairs_as_audits_do():
    noise = dp.zoo.DiscreteLaplace(1.0)
    with pytest.raises(InvalidInput, match="the list is empty"):
        assert_private(noise, [], "eps=1", detects=0.5)
    pairs = iter([(0, 1), (1, 0)])
    assert assert_private(noise, pairs, "eps=1", detects=1.0).tone == "clear"


def test_a_large_delta_can_be_exceeded_up_to_one():
    of_delta = dp.ApproximateDP(0.0, 0.995, headline="delta")
    with pytest.raises(InvalidInput, match=r"detects must be .* at most 0\.0049.*, got 0\.5"):
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), of_delta, detects=0.5)


def test_a_repeated_audit_has_draws_of_its_own(monkeypatch):
    """How many it makes follows from what the last one counted: the same draws would decide it again."""
    seeds = []
    audit = detecting.audit

    def recorded(*arguments, **options):
        seeds.append(options["rng"])
        return audit(*arguments, **options)

    monkeypatch.setattr(detecting, "audit", recorded)
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", detects=0.05, flake=0.05, seed=7)
    assert len(seeds) > 1
    assert len(set(seeds)) == len(seeds)


def test_of_samples_all_rows_are_tested_by_default():
    rng = np.random.default_rng(0)
    samples = dp.from_samples(rng.integers(0, 9, 5000), rng.integers(0, 9, 5000))
    verdict = assert_private(samples, None, "eps=1")
    assert verdict.about.n == (5000, 5000)


@pytest.mark.parametrize("flake", [0.95, 0.999])
def test_a_confidence_given_as_flake_is_a_slip(flake):
    with pytest.raises(InvalidInput, match=rf"flake must be .*did you mean {1 - flake:.6g}\?"):
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", flake=flake)


def test_results_that_are_an_answer_are_neither_true_nor_false():
    """`assert dp.audit(…)` would pass whatever was found."""
    verdict = dp.audit_counts(450, 1000, 184, 1000, "eps=0.5")
    with pytest.raises(TypeError, match=r"Verdict is neither true nor false: ask for \.violated"):
        assert verdict
    shown = dp.verify(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1, delta=0.1", n=2000, rng=0)
    with pytest.raises(TypeError, match=r"ask for \.confirmed"):
        assert shown
    assert dp.bound(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps", n=2000, rng=0)
