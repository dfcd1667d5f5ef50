"""The audit, from the border to the verdict."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds.power import detectable
from dpassay.errors import InvalidInput, NotEnoughDraws
from dpassay.learning.cross_fit import CrossFit
from dpassay.learning.event_selection import EventCriterion, select_events
from dpassay.results import verdict_text
from dpassay.results.estimates import SECOND
from dpassay.sampling.budget import TRAIN

zoo = dp.zoo
PAIR = (0.0, 1.0)


def test_the_promise_of_the_readme():
    def mechanism(x, size, rng):
        return np.round(x + rng.laplace(scale=1.0, size=size), 6)

    verdict = dp.audit(mechanism, PAIR, dp.PureDP(0.5), n=10_000, confidence=0.95, rng=0)
    assert verdict.violated
    assert verdict.p_value < 0.001
    assert 0.8 < verdict.lower_bound < 1.0
    assert verdict.witness.pair is not None
    assert str(verdict.guarantee) == "exact"
    assert 0.5 < verdict.smallest_detectable < 0.7
    assert sum(share for _, share in verdict.budget) == pytest.approx(0.05)
    assert verdict.about.n == (10_000, 10_000)


@pytest.mark.parametrize(
    ("mechanism", "claim", "n"),
    [
        (zoo.Laplace(), dp.PureDP(0.7), 4000),
        (zoo.Gaussian(), dp.GaussianDP(0.8), 8000),
        (zoo.Gaussian(), dp.ApproximateDP(1.0, 0.05), 8000),
        (zoo.Gaussian(), dp.RenyiDP(2, 0.7), 20_000),
        (zoo.Gaussian(), dp.ZeroConcentratedDP(0.35), 20_000),
        (zoo.Laplace(), dp.TradeoffDP(lambda a: np.maximum(1 - 1.5 * a, (1 - a) / 1.5)), 8000),
        (zoo.RandomizedResponse(1.5), dp.PureDP(1.0), 4000),
        (zoo.SVT(3, 1.5), dp.PureDP(1.0), 20_000),
        (zoo.TruncatedLaplace(), dp.PureDP(1.0), 20_000),
    ],
    ids=str,
)
def test_false_claims_of_every_notion_are_refuted_and_written_down(mechanism, claim, n, seed):
    verdict = dp.audit(mechanism, mechanism.pair, claim, n=n, rng=seed)
    assert verdict.violated
    assert verdict.lower_bound > claim.value
    again = dp.Verdict.from_json(verdict.to_json())
    assert str(again) == str(verdict)
    assert json.loads(verdict.to_json())["violated"] is True
    if not verdict.witness.event.live and claim.set_by_events:
        assert dp.replay(again, mechanism, n=n, rng=seed + 1).violated


def test_a_leak_of_one_coordinate_is_written_as_one_comparison(seed):
    pair = (np.zeros(10), np.eye(10)[0])
    verdict = dp.audit(zoo.Gaussian(), pair, dp.GaussianDP(0.7), n=10_000, rng=seed)
    assert verdict.violated
    assert re.fullmatch(r"x1 (≥|<) [\d.]+", str(verdict.witness.event))
    again = dp.Verdict.from_json(verdict.to_json())
    assert dp.replay(again, zoo.Gaussian(), n=10_000, rng=seed + 1).violated


def test_the_note_about_a_fitted_classifier_is_about_the_witness():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(6)

    def rows(x):
        a = x + rng.laplace(size=1500)
        return pd.DataFrame({"a": a, "b": a * a + rng.normal(size=1500)}).round(3)

    verdict = dp.audit(dp.from_samples(rows(0), rows(1)), claim="eps=0.3", rng=6)
    event, notes = verdict.witness.event, verdict.about.notes
    assert event.live == any("fitted classifier" in note for note in notes)
    assert not event.live


def test_ten_coordinates_by_a_learned_score_that_is_written_as_a_polynomial(seed):
    shift = np.arange(-4.0, 6.0)
    pair = (np.zeros(10), shift / np.linalg.norm(shift))
    verdict = dp.audit(zoo.Gaussian(), pair, dp.GaussianDP(0.7), n=10_000, rng=seed)
    assert verdict.violated
    assert "logistic" in verdict.about.method
    assert "x1" in verdict.witness.event.words
    again = dp.Verdict.from_json(verdict.to_json())
    assert dp.replay(again, zoo.Gaussian(), n=10_000, rng=seed + 1).violated


def test_an_event_as_written_is_the_event_that_was_counted(seed):
    for mechanism in (
        zoo.Laplace(),
        zoo.SVT(3, 1.5),
        zoo.DiscreteLaplace(),
        zoo.TruncatedLaplace(),
    ):
        samples = dp.draw(mechanism, mechanism.pair, n=6000, rng=seed)
        train, test = samples.deal((2000, 2000)), samples.deal((4000, 4000))
        found, *_ = select_events(
            CrossFit(train, "auto", samples.rng), EventCriterion(dp.PureDP(0.5), (4000, 4000), 0.05)
        )
        again = dp.Event.from_json(found.event.to_json())
        assert np.array_equal(again.holds(test.p), found.event.holds(test.p))


def test_words_are_ones_a_person_can_check(seed):
    verdict = dp.audit(zoo.Laplace(), PAIR, dp.PureDP(0.5), n=4000, rng=seed)
    assert verdict.witness.event.words.startswith(("output ≥ ", "output < ", "output ≤ "))

    def sometimes(data, size, rng):
        out = np.round(data + rng.laplace(size=size), 6).astype(object)
        out[rng.random(size) < (0.02 if data else 0.3)] = None
        return out

    words = dp.audit(sometimes, PAIR, dp.PureDP(1.0), n=4000, rng=seed).witness.event.words
    assert "None" in words


def test_outputs_that_only_one_side_produces_give_a_finite_bound(seed):
    def leaky(data, size, rng):
        return rng.integers(3, size=size) + (100 if data else 0) * (rng.random(size) < 0.3)

    verdict = dp.audit(leaky, (0, 1), dp.PureDP(1.0), n=2000, rng=seed)
    assert verdict.violated
    assert 2.0 < verdict.lower_bound < 10.0


@pytest.mark.parametrize("mechanism", [zoo.RaisesOnOne(), zoo.StringOnOne()], ids=str)
def test_failing_on_one_input_only_is_an_output_too(mechanism, seed):
    sampling = dp.Sampling(on_error="outcome")
    verdict = dp.audit(
        mechanism, mechanism.pair, mechanism.claim, n=20_000, rng=seed, sampling=sampling
    )
    assert verdict.violated


def test_the_worst_pair_is_found(seed):
    pairs = [(0.0, 0.2), (0.0, 1.0), (0.0, 0.5)]
    verdict = dp.audit(zoo.Laplace(), pairs, dp.PureDP(0.6), n=4000, rng=seed)
    assert tuple(verdict.witness.pair) == (0.0, 1.0)
    assert verdict.violated
    assert len(verdict.pairs) == 3
    assert "among 3 pairs" in " ".join(verdict.about.notes)


def test_several_claims_share_the_error_probability(seed):
    claims = [dp.PureDP(0.5), "mu=0.5", dp.RenyiDP(2, 0.2)]
    verdicts = dp.audit(zoo.Laplace(), PAIR, claims, n=10_000, rng=seed)
    assert [v.violated for v in verdicts] == [True] * 3
    for verdict in verdicts:
        assert sum(share for _, share in verdict.budget) == pytest.approx(0.05)
        own = [share for what, share in verdict.budget if "other" not in what]
        assert sum(own) == pytest.approx(0.05 / 3)
        assert "3 claims" in " ".join(verdict.about.notes)


def test_samples_are_used_up_each_once_and_may_differ_in_length(seed):
    rng = np.random.default_rng(seed)
    samples = dp.from_samples(rng.laplace(size=3000), 1 + rng.laplace(size=5000))
    verdict = dp.audit(samples, claim=dp.PureDP(0.5))
    assert verdict.violated
    assert verdict.about.n == (3000, 5000)
    assert (verdict.witness.n_p, verdict.witness.n_q) == (2250, 3750)
    assert len(samples) == 0


def test_draws_that_learn_and_draws_that_certify_are_not_the_same(seed):
    seen = []

    def spy(data, size, rng):
        out = data + rng.laplace(size=size)
        seen.append(out)
        return out

    dp.audit(spy, PAIR, dp.PureDP(0.5), n=1000, rng=seed)
    everything = np.concatenate(seen)
    assert everything.size == 2000
    assert np.unique(everything).size == 2000


def test_the_seed_decides(seed):
    options = {"n": 3000, "rng": seed}
    a, b = (dp.audit(zoo.Laplace(), PAIR, dp.PureDP(0.5), **options) for _ in range(2))
    assert a.to_json() == b.to_json()


def test_a_time_budget_is_measured_out_before_the_draws():
    verdict = dp.audit(zoo.Laplace(), PAIR, dp.PureDP(0.5), seconds=0.3, rng=0)
    assert verdict.about.n[0] >= 100
    assert verdict.violated


def test_details_bring_a_profile(seed):
    verdict = dp.audit(zoo.Laplace(), PAIR, dp.PureDP(0.5), n=8000, details=True, rng=seed)
    assert verdict.profile.epsilon == pytest.approx(1.0, abs=0.35)
    assert verdict.profile.about.n == (8000, 8000)
    verdict.chart()
    verdict.profile.chart()


def test_the_estimates_of_a_report_are_those_of_all_draws(seed):
    """With a quarter of them δ(ε) is far above the claimed curve where the claim is true."""
    draws = np.random.default_rng(seed).laplace([[0], [500]], 500, (2, 5000)).round(2)
    verdict = dp.audit(dp.from_samples(*draws), claim="eps=1", details=True, rng=seed)
    alone = dp.estimate(dp.from_samples(*draws), rng=seed)
    assert verdict.profile.spectrum.y.tolist() == alone.spectrum.y.tolist()
    assert verdict.profile.delta(1.25) < 0.02


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dp.audit(zoo.Laplace(), PAIR, dp.PureDP(1.0)), "give n"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, dp.PureDP(1.0), n=100, seconds=1.0), "give n"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, 1.0, n=100), "claim"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, [], n=100), "empty"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, "eps", n=100), "eps"),
        (lambda: dp.audit(zoo.Laplace(), None, "eps=1", n=100), "pair"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, "eps=1", n=100, confidence=95), "confidence"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, "eps=1", n=100, train=1.0), "train"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, "eps=1", n=100, loss="forest"), "forest"),
        (lambda: dp.audit(zoo.Laplace(), PAIR, "eps=1", n=3), "n"),
    ],
)
def test_errors_name_what_is_wrong(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_too_few_draws_to_conclude_anything_is_said_before_drawing():
    def mechanism(data, size, rng):
        pytest.fail("drawn")

    with pytest.raises(NotEnoughDraws, match="cannot refute"):
        dp.audit(mechanism, PAIR, dp.PureDP(3.0), n=20)


def test_what_cannot_be_replayed_says_why(seed):
    from sklearn.naive_bayes import GaussianNB

    pair = (np.zeros(3), np.eye(3)[0])
    verdict = dp.audit(zoo.Gaussian(), pair, "mu=0.5", n=4000, loss=GaussianNB(), rng=seed)
    assert verdict.witness.event.live
    assert dp.replay(verdict, zoo.Gaussian(), n=4000, rng=seed).violated  # in this process it can
    with pytest.raises(InvalidInput, match="cannot be replayed"):
        dp.replay(dp.Verdict.from_json(verdict.to_json()), zoo.Gaussian(), n=100)
    with pytest.raises(InvalidInput, match="claim"):
        dp.replay(verdict.witness, zoo.Gaussian(), n=100)


def test_a_mechanism_that_fails_late_leaves_the_draws_that_learned(seed):
    calls = iter(range(100))

    def tires(data, size, rng):
        if next(calls) >= 6:
            raise ValueError("no more")
        return data + rng.laplace(size=size)

    with pytest.raises(dp.errors.MechanismRaised) as caught:
        dp.audit(tires, PAIR, dp.PureDP(0.5), n=4000, rng=seed)
    assert caught.value.samples.remaining == (1000, 1000)


def test_a_replay_needs_draws_of_its_own(seeds):
    """With the seed of the audit as well: its streams are others."""
    from scipy.stats import binom

    def useless(data, size, rng):
        return rng.normal(size=(size, 4))

    wrong = 0
    for seed in seeds[:40]:
        verdict = dp.audit(useless, (0, 1), "eps=0", n=800, loss="logistic", rng=seed)
        wrong += dp.replay(verdict, useless, n=200, rng=seed).violated
    assert wrong <= binom.ppf(1 - 0.01 / 3, 40, 0.05)
    rng = np.random.default_rng(seeds[0])
    p, q = rng.normal(size=(2, 900))
    verdict = dp.audit(dp.from_samples(p, q), claim="eps=.1")
    with pytest.raises(InvalidInput, match="needs fresh ones"):
        dp.replay(verdict, dp.from_samples(p, q[::-1]))


@pytest.mark.parametrize(
    "claim", ["mu=50", "eps=800", dp.RenyiDP(1000, 1.0), dp.RenyiDP(64, 500.0)]
)
def test_claims_beyond_what_numbers_hold_are_not_refuted_and_warn_of_nothing(claim):
    try:
        verdict = dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), claim, n=2000, rng=0)
    except NotEnoughDraws:
        return
    assert not verdict.violated
    assert verdict.lower_bound <= 1.0


def test_outputs_smaller_than_any_normal_number_are_told_apart(seed):
    def mechanism(x, size, rng):
        return 1e-310 * (x + rng.laplace(size=size))

    assert dp.audit(mechanism, (0.0, 1.0), "eps=.5", n=4000, rng=seed).violated


def test_the_bound_predicted_for_a_pair_is_one_the_certificate_could_reach(seed):
    """Also where the claim is refuted with ease."""
    pairs = [(0.0, 0.5), (0.0, 1.0)]
    verdict = dp.audit(dp.zoo.Laplace(1.0), pairs, "eps=.1", n=40_000, rng=seed)
    (_, half), (_, whole) = verdict.pairs
    assert half == pytest.approx(0.5, abs=0.08)
    assert whole == pytest.approx(1.0, abs=0.1)
    assert verdict.lower_bound == pytest.approx(whole, abs=0.1)


def test_a_handful_of_draws_catches_no_divergence():
    for seed in range(5):
        verdict = dp.audit(dp.zoo.Gaussian(1.0), (0.0, 0.0), "rho=.3", n=8, rng=seed)
        assert not verdict.violated
        assert verdict.smallest_detectable > 3


def test_a_high_confidence_is_printed_as_what_it_is(seed):
    sure = dp.audit(
        dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=.1", n=4000, confidence=1 - 1e-9, rng=seed
    )
    assert "0.999999999 confidence" in str(sure)
    bound = dp.renyi.lower_bound(
        dp.zoo.Gaussian(1.0),
        (0.0, 1.0),
        order=2,
        n=4000,
        confidence=0.9999,
        rng=seed,
        method=dp.renyi.Variational(),
    )
    assert "with 99.99% confidence" in str(bound)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e300])
def test_outputs_of_any_size_are_audited_alike(scale, seed):
    """Rescaling the outputs changes nothing, up to where numbers end (warnings are errors here).

    Near 10⁻³⁰⁰ cells have no width that a number holds, so that one score or other may not be tried.
    """

    def laplace(data, size, rng):
        return scale * (data + rng.laplace(size=size))

    naive, way = zoo.NaiveLaplace(1.0), {"n": 2000, "rng": seed, "loss": "values"}
    plain = dp.audit(naive, PAIR, dp.PureDP(0.5), **way)
    scaled = dp.audit(laplace, PAIR, dp.PureDP(0.5), **way)
    if scale == 1e-300:
        assert scaled.lower_bound > 0.8 * plain.lower_bound
    else:
        assert scaled.witness.hits_p == plain.witness.hits_p
        assert scaled.lower_bound == plain.lower_bound


def test_both_bounds_of_an_approximate_claim_hold_at_once(seeds):
    from scipy.optimize import brentq
    from scipy.stats import binom

    gaussian, pair = dp.zoo.Gaussian(), (0.0, 1.0)
    delta = 0.05
    epsilon = brentq(lambda e: gaussian.delta(e, pair) - delta, 0, 5)
    wrong = 0
    for seed in seeds[:60]:
        verdict = dp.audit(gaussian, pair, dp.ApproximateDP(1.0, delta), n=1000, rng=seed)
        wrong += verdict.lower_bound > epsilon or verdict.second.lower > gaussian.delta(1.0, pair)
    assert wrong <= binom.ppf(1 - 0.01 / 3, 60, 0.05)


def test_delta_can_be_the_headline(seed):
    claim = dp.ApproximateDP(1.0, 0.01, headline="delta")
    verdict = dp.audit(dp.zoo.Gaussian(), (0.0, 1.0), claim, n=20_000, confidence=0.9999, rng=seed)
    assert verdict.violated
    assert 0.07 < verdict.lower_bound < 0.127  # δ(1) of the mechanism
    assert verdict.second.symbol == "ε"
    assert "δ ≥" in str(verdict)


def test_arrays_in_place_of_a_mechanism_are_told_where_they_belong():
    scores = np.random.default_rng(0).normal(size=(2, 100))
    with pytest.raises(InvalidInput, match=r"dp.from_samples\(first, second\)"):
        dp.audit(scores[0], scores[1], claim="eps=1")
    with pytest.raises(InvalidInput, match="give n"):
        dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1")


def test_outputs_that_change_after_training_leave_an_audit_blind():
    calls = iter(range(10**6))

    def spent(x, rng):
        return round(x + float(rng.laplace()), 3) if next(calls) < 2000 else "no budget is left"

    verdict = dp.audit(dp.from_function(spent), (0.0, 1.0), "eps=1", n=4000, rng=0)
    assert verdict.tone == "blind"
    assert verdict.blind.startswith("the outputs changed: an event in ")
    assert "a budget that is spent" in verdict.remedy


def test_the_event_of_the_p_value_is_named_where_it_is_not_the_witness():
    found = dp.audit(dp.zoo.Laplace(1 / 1.3), (0, 1), "eps=1", n=20_000, rng=0)
    (note,) = [one for one in found.about.notes if one.startswith("the p-value comes from another")]
    j, m, i, n = (
        int(x) for x in note.replace(",", "").rsplit(": ", 1)[1].split()[::2] if x.isdigit()
    )
    alone = dp.audit_counts(i, n, j, m, "eps=1").p_value
    assert alone <= found.p_value <= 10 * alone


def _coin(p, q):
    return lambda first, size, rng: (rng.random(size) < (p if first else q)).astype(int)


def test_the_smallest_detectable_gap_of_a_curve_is_detected_nine_times_in_ten(seeds):
    """Where training draws showed no excess an event that always happens was tested."""
    claim = dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff)
    caught = []
    for n in (2_000, 20_000):
        test = n - round(TRAIN * n)
        for q in (0.05, 0.3, 0.81):
            gap = detectable(q, test, test, claim, 0.05 * (1 - SECOND))
            coin = _coin(min(float(claim.region(q, gap)), 1.0), q)
            found = [dp.audit(coin, (1, 0), claim, n=n, rng=s) for s in seeds[:30]]
            caught.append(sum(verdict.violated for verdict in found))
            assert all(0 < verdict.witness.hits_q < test for verdict in found)
    assert min(caught) >= binom.ppf(1e-5, 30, 0.87)
    assert binom.ppf(1e-4, 180, 0.87) <= sum(caught) <= binom.isf(1e-4, 180, 0.94)


def test_of_an_event_that_always_happens_no_power_is_stated(seed):
    verdict = dp.audit(_coin(0.6, 0.4), (1, 0), "eps=1", n=400, rng=seed)
    assert "ε" in verdict.power_statement
    always = replace(verdict.witness, hits_p=300, n_p=300, hits_q=300, n_q=300)
    full = replace(verdict, witness=always)
    assert full.power_statement == ""
    assert verdict_text.detectable(full)[1].startswith("the event that was tested happened in all")
