"""What a diagnosis says of known faults, and how often its exact statements are wrong."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.faults import faults, sgd_faults
from scipy.stats import binom

import dpassay as dp
from dpassay.auditing import audits
from dpassay.diagnosis.diagnoses import _edges, belief, diagnose
from dpassay.diagnosis.noise_fit import Noise, median_shift
from dpassay.diagnosis.parts import Keeping, coordinates, joined
from dpassay.outputs.canonical import all_of, from_raw
from dpassay.outputs.features import OF_ORDER
from dpassay.outputs.templates import NUMBER
from dpassay.privacy.provenance import Guarantee
from dpassay.results.explanations import ALONE, SHARES, Fault
from dpassay.rounding import rounded_down
from dpassay.sampling.samples import Batch
from dpassay.testing import PrivacyViolation, assert_private

QUIET = dp.Sampling(progress=False)
KNOWN = {one.name: one for one in (*faults(), *sgd_faults())}


def test_an_exact_value_among_continuous_ones_is_drawn_as_a_share_of_the_outputs(seed):
    """As a bar: a density between its neighbours would be one of numbers that never come."""
    rng = np.random.default_rng(seed)
    p, q = (rng.laplace(size=(4000, 2)) for _ in "pq")
    q[:, 1] = 0.0
    found = dp.audit(dp.from_samples(p, q), claim="eps=1", loss="kde").diagnosis
    [picture] = [one.picture for one in found if one.kind is Fault.NO_NOISE]
    assert picture.labels == ("any other output", "0")
    assert picture.inside == (False, True)
    assert picture.p.tolist() == [1, 0]
    assert picture.q.tolist() == [0, 1]


def audited(name, seed, **options):
    one = KNOWN[name]
    settings = {"n": 8000, "confidence": 0.99, "rng": seed, "sampling": QUIET} | options
    with warnings.catch_warnings():  # of a fixed seed
        warnings.simplefilter("ignore", dp.errors.DependenceWarning)
        return dp.audit(one.broken, one.pair, one.claim, relation=one.relation, **settings)


@pytest.mark.parametrize("name", KNOWN)
def test_the_first_explanation_is_the_known_cause(name, seed):
    verdict = audited(name, seed + 5)
    assert verdict.violated
    assert verdict.diagnosis[0].kind == KNOWN[name].cause
    assert all(one.hint and one.sentence for one in verdict.diagnosis)


def test_exact_statements_hold_as_often_as_they_say(seeds):
    """Laplace noise of scale ½: ε = 2, the median moves by 1, and all event probabilities are known."""
    gamma, wrong, runs = 0.2, 0, 120
    for seed in seeds[:runs]:
        scale = dp.zoo.Laplace(0.5)
        found = dp.audit(
            scale, (0.0, 1.0), "eps=1", n=1000, confidence=1 - gamma, loss="values", rng=seed,
            sampling=QUIET,
        )  # fmt: skip
        exact = [one for one in found.diagnosis if one.guarantee is dp.Guarantee.EXACT]
        numbers = [dict(one.numbers) for one in exact]
        bad = [n for n in numbers if n[ALONE] > 2 or n.get("shift of the median, at least", 0) > 1]
        wrong += bool(bad)
    assert wrong <= binom.ppf(1 - 1e-3, runs, gamma)


def test_the_median_shift_is_below_the_truth(seeds):
    rng = np.random.default_rng(seeds[0])
    found = [
        median_shift(rng.normal(size=60), rng.normal(1.0, 2.0, size=80), 0.2) for _ in range(400)
    ]
    assert sum(one > 1.0 for one in found) <= binom.ppf(1 - 1e-3, 400, 0.2)
    assert np.mean([one > 0 for one in found]) > 0.2
    assert median_shift(np.zeros(0), np.ones(5), 0.05) == 0
    assert median_shift(np.full(9, np.nan), np.ones(50), 0.05) == 0


def test_verdicts_do_not_depend_on_the_diagnosis(seed, monkeypatch):
    one = audited("a count with half the noise", seed)
    monkeypatch.setattr("dpassay.auditing.audits.diagnose", lambda *_, **__: ())
    other = audited("a count with half the noise", seed)
    assert other.diagnosis == ()
    assert (one.p_value, one.lower_bound, one.witness) == (
        other.p_value,
        other.lower_bound,
        other.witness,
    )


def test_no_draws_are_added(seed):
    drawn = 0

    def counted(data, size, rng):
        nonlocal drawn
        drawn += size
        return np.round(data + rng.laplace(scale=0.5, size=size), 6)

    verdict = dp.audit(counted, (0.0, 1.0), "eps=1", n=4000, rng=seed, sampling=QUIET)
    assert verdict.diagnosis
    assert drawn == 8000


def test_samples_are_diagnosed_by_the_draws_that_test(seed):
    rng = np.random.default_rng(seed)
    samples = dp.from_samples(
        rng.laplace(scale=0.5, size=6000), 1 + rng.laplace(scale=0.5, size=6000)
    )
    verdict = dp.audit(samples, claim="eps=1", loss="values")
    assert {one.kind for one in verdict.diagnosis} == {Fault.SCALE, Fault.SHIFT}
    assert any(one.guarantee is dp.Guarantee.EXACT for one in verdict.diagnosis)


def test_without_testing_draws_nothing_is_exact(seed):
    rng = np.random.default_rng(seed)
    batch = Batch.of(all_of(rng.laplace(size=2000)), all_of(4 + rng.laplace(size=2000)))
    found = diagnose(batch, (), dp.PureDP(1.0), None, None, 0.05, dp.Guarantee.EXACT)
    assert found
    assert all(one.guarantee is dp.Guarantee.HEURISTIC for one in found)
    assert all(one.confidence is None for one in found)


def test_kept_draws_are_a_bounded_share_of_each_block():
    blocks = [np.arange(20_000.0) + 20_000 * k for k in range(3)]
    keeping = Keeping.of(lambda p, q: len(p), (60_000, 60_000))
    parts = [keeping(all_of(x), all_of(-x)) for x in blocks]
    assert [used for used, _ in parts] == [20_000] * 3
    batch = joined(sum((kept for _, kept in parts), ()))
    assert batch.sizes == (20_000, 20_000)
    assert {int(x // 20_000) for x in batch.p.numbers[:, 0]} == {0, 1, 2}


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [
        ((["a"] * 300, ["b"] * 300), Fault.NO_NOISE),
        (([None] * 300, [1.0] * 300), Fault.SUPPORT),
        (([1.0] * 300, [float("nan")] * 300), Fault.FAILURE),
        (([(1, 2)] * 299 + [(1,)], [(1, 2, 3)] * 299 + [(1,)]), Fault.ORDER_OR_SIZE),
        (([2**60 + 1] * 300, [2**60] * 300), Fault.NO_NOISE),
        (([1e307] * 300, [5e-324] * 300), Fault.NO_NOISE),
        ((["x" * 5000] * 300, ["y" * 5000] * 300), Fault.NO_NOISE),
        (([{"a": None}] * 300, [{"`": None}] * 300), Fault.NO_NOISE),
    ],
)
def test_outputs_of_any_kind_are_diagnosed(outputs, kind):
    verdict = dp.audit(dp.from_samples(*outputs), claim="eps=1")
    assert verdict.violated
    assert verdict.diagnosis[0].kind is kind
    assert max(len(one.sentence) for one in verdict.diagnosis) < 700
    assert dp.Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize("large", [1e300, 1e307, 1e-310])
def test_numbers_near_the_ends_of_doubles_are_diagnosed(seed, large):
    rng = np.random.default_rng(seed)
    sides = (large * np.clip(rng.laplace(size=3000) + shift, -1, 1) for shift in (0.0, 3.0))
    verdict = dp.audit(dp.from_samples(*sides), claim="eps=1", loss="values")
    assert verdict.violated
    assert dp.Verdict.from_json(verdict.to_json()) == verdict


def test_a_belief_follows_from_the_limits_of_the_witness():
    verdict = audited("randomized response at 2ε", 1)
    found = belief(verdict.witness, verdict.claim, 0.05, dp.Guarantee.EXACT)
    truth = 1 / (1 + math.exp(-2))
    assert 0.85 < found.posterior < truth
    assert 0.85 < found.frequency < truth

    assert f"{100 * truth:.0f}" not in str(found)


def a_shift_and_a_rare_output(x, size, rng):
    out = 0.3 * x + rng.laplace(size=size)
    rare = rng.random(size) < 0.004 * (x > 0)
    return np.where(rare, 100 + rng.random(size), out)


def test_an_event_that_testing_draws_chose_is_paid_for(seed):
    made = (
        dp.audit(
            a_shift_and_a_rare_output, (0.0, 1.0), "eps=0.2", n=20_000, loss="values", rng=one,
            sampling=QUIET,
        )
        for one in range(seed, seed + 5)
    )  # fmt: skip
    counted = ((v, sum("test of an event" in words for words, _ in v.budget)) for v in made)
    verdict, events = next((v, many) for v, many in counted if many > 1 and v.violated)
    alone = belief(verdict.witness, verdict.claim, 0.05, dp.Guarantee.EXACT)
    found = belief(verdict.witness, verdict.claim, 0.05, dp.Guarantee.EXACT, events)
    assert verdict.belief.frequency == pytest.approx(found.frequency, rel=1e-9)
    assert verdict.belief.posterior == pytest.approx(found.posterior, rel=1e-9)
    assert found.frequency < alone.frequency
    assert found.confidence == alone.confidence == 0.95


def test_explanations_of_something_that_was_chosen_have_a_part_of_the_error(seed):
    rng = np.random.default_rng(seed)
    train, test = (
        Batch.of(all_of(rng.laplace(size=2000)), all_of(4 + rng.laplace(size=2000)))
        for _ in range(2)
    )
    claim, sure = dp.PureDP(1.0), dp.Guarantee.EXACT
    one, four, quarter = (
        diagnose(train, ((test.p, test.q),), claim, None, None, gamma, sure, chosen=chosen)
        for gamma, chosen in ((0.05, 1), (0.05, 4), (0.0125, 1))
    )
    assert [x.numbers for x in four] == [x.numbers for x in quarter]
    assert [x.confidence for x in four] == [x.confidence for x in one]
    assert all(a.alone < b.alone for a, b in zip(four, one, strict=True) if b.alone)
    assert any(x.alone for x in four)


def test_the_bound_of_the_testing_draws_does_not_choose_its_causes(seed, monkeypatch):
    asked, exact = [], audits.certify

    def lower(*given, **options):
        found = exact(*given, **options)
        return replace(found, lower=0.5 * found.lower)

    def listen(train, test, claim, *rest, **named):
        asked.append(claim)
        return diagnose(train, test, claim, *rest, **named)

    monkeypatch.setattr(audits, "diagnose", listen)
    for way in (exact, lower):
        monkeypatch.setattr(audits, "certify", way)
        dp.bound(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps", n=4000, rng=seed, sampling=QUIET)
    assert len(asked) == 2
    assert asked[0] == asked[1]


def test_the_claim_allows_what_it_says_of_beliefs():
    """For pure DP and a rare event the odds may become e^ε and no more."""
    verdict = dp.audit_counts(300, 10_000, 3, 10_000, "eps=1")
    found = belief(verdict.witness, verdict.claim, 0.05, dp.Guarantee.EXACT)
    assert found.allowed == pytest.approx(math.e / (1 + math.e))
    believed, frequency = (rounded_down(100 * x) for x in (found.posterior, found.frequency))
    assert (
        f"the first input is at least {believed}%; the claim allows at most 73.11% for this event"
        in str(found)
    )
    assert f"it happens in at least {frequency}% of the releases" in str(found)
    assert (found.first, found.happens) == (True, True)
    assert 0.96 < found.posterior < 300 / 303


def test_what_was_looked_at_is_said_where_nothing_is_refuted(seed):
    (one,) = dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000, rng=seed).diagnosis
    assert one.kind is Fault.NONE
    assert "scores" in one.sentence
    assert dict(one.numbers)["scores"] >= 2
    assert dict(one.numbers)["coordinates"] == 1


def test_failed_verifications_name_causes_only_if_the_claim_is_broken(seed):
    one = KNOWN["discrete noise for 2ε"]
    broken = dp.verify(
        one.broken, one.pair, "eps=1, delta=1e-3", n=20_000, rng=seed, sampling=QUIET
    )
    assert not broken.confirmed
    assert broken.diagnosis[0].kind is Fault.SCALE
    assert "cause: scale" in str(broken)
    weak = dp.verify(one.fixed, one.pair, "eps=1, delta=1e-4", n=4000, rng=seed, sampling=QUIET)
    assert not weak.confirmed
    assert weak.diagnosis == ()


def test_bounds_and_assertions_carry_a_diagnosis(seed):
    one = KNOWN["one column of five with little noise"]
    # a score that is the same for all versions of scikit-learn: the event decides which cause is first
    options = {"n": 8000, "loss": "feature", "rng": seed, "sampling": QUIET}
    assert dp.bound(one.broken, one.pair, "eps", **options).diagnosis[0].kind is Fault.UNPROTECTED
    with pytest.raises(PrivacyViolation, match="unprotected part: output\\[2\\]"):
        assert_private(one.broken, one.pair, one.claim, n=8000)


def test_a_diagnosis_goes_to_json_and_back(seed):
    for name in ("a threshold for a larger δ", "a count with half the noise"):
        verdict = audited(name, seed)
        again = dp.Verdict.from_json(verdict.to_json())
        assert again == verdict
        assert again.diagnosis[0].picture is not None
        assert str(again.belief) == str(verdict.belief)


@pytest.mark.parametrize("step", [1.0, 0.01, 250.0])
def test_bins_of_a_chart_hold_equally_many_points_of_a_grid(step):
    values = step * np.arange(-170.0, 130.0)
    edges = _edges(values, (values[-1] - values[0]) / 48)
    often = np.histogram(values, edges)[0]
    assert often.sum() == values.size
    assert set(often[:-1].tolist()) == {7}
    free = np.sort(np.random.default_rng(0).normal(size=500))
    assert len(_edges(free, (free[-1] - free[0]) / 48)) in (49, 50)


def histogram(data, size, rng):
    """Noisy counts of keys, of which those below a threshold are left out; its δ is 0.013."""
    noise = rng.geometric(1 - np.exp(-1), (2, len(data), size))
    counts = np.array(list(data.values()))[:, None] + noise[0] - noise[1]
    return [
        {key: int(x) for key, x in zip(data, column, strict=True) if x >= 5} for column in counts.T
    ]


def test_keys_that_delta_does_not_pay_for(seed):
    """Whole numbers have no bits that tell, and a number is read in all outputs that have its key."""
    pair = {"a": 9}, {"a": 9, "b": 1}
    verdict = dp.audit(histogram, pair, "eps=1, delta=1e-4", n=20_000, rng=seed)
    assert verdict.violated
    assert not verdict.witness.event.of_representation
    assert verdict.diagnosis[0].kind.name == "DELTA"
    p, q = (from_raw(histogram(data, 4000, np.random.default_rng(seed)), 4000) for data in pair)
    both = Batch.of(p, q)
    (part,) = coordinates(("dict", (("a", NUMBER),)), both.p)
    for side in (both.p, both.q):
        held = np.mean(part.read(side) >= 5)
        assert held == pytest.approx(1 - np.exp(-4) / (1 + np.exp(-1)), abs=0.01)


def test_no_belief_is_given_that_the_claim_allows():
    verdict = dp.audit_counts(60, 4000, 1, 4000, dp.ApproximateDP(1.0, 1e-4))
    assert verdict.violated
    assert verdict.belief is None or verdict.belief.posterior > verdict.belief.allowed
    witness = dp.audit_counts(30, 40_000, 0, 40_000, dp.ApproximateDP(3.0, 1e-4)).witness
    found = belief(witness, dp.ApproximateDP(3.0, 1e-4), 0.05, Guarantee.EXACT)
    assert found is None or found.posterior > found.allowed


def subsampled(mean, size, rng):
    """A Gaussian whose mean shows in three outputs of ten: δ(0.5) is .0304."""
    return np.where(rng.random(size) < 0.3, mean, 0.0) + rng.normal(size=size)


def test_the_delta_of_a_cause_is_no_less_than_the_witness_needs(seed):
    """Gaussian noise fits a subsampled Gaussian, and its δ is far too small."""
    found = []
    for k in range(6):
        verdict = dp.audit(subsampled, (0.0, 1.0), "eps=0.5", n=20_000, rng=seed + k)
        cause = next((one for one in verdict.diagnosis if one.kind is Fault.DELTA), None)
        if cause is None:
            continue
        w = verdict.witness
        delta = dict(cause.numbers)["delta"]
        assert delta >= w.q - math.exp(0.5) * w.p
        assert delta >= w.p - math.exp(0.5) * w.q
        assert f"δ ≈ {delta:.4g} or more" in cause.sentence
        found.append(delta)
    assert len(found) >= 3
    assert 0.75 * 0.0304 < min(found) <= max(found) < 1.4 * 0.0304


def test_the_delta_of_gaussian_noise_is_near_the_truth(seed):
    verdict = dp.audit(dp.zoo.Gaussian(1.0), (0.0, 1.0), "eps=0.5", n=20_000, rng=seed)
    delta = dict(verdict.diagnosis[0].numbers)["delta"]
    assert delta == pytest.approx(dp.GaussianDP(1.0).delta_at(0.5), rel=0.08)


@pytest.mark.parametrize("order", [2.0, 4.0, 16.0])
def test_the_shift_that_noise_covers_under_a_divergence_is_exact(order):
    gaussian, laplace = Noise("Gaussian", 1.0), Noise("Laplace", 1.0)
    assert gaussian.allowed(dp.ZeroConcentratedDP(0.3)) == pytest.approx(0.6**0.5, rel=1e-5)
    assert gaussian.allowed(dp.RenyiDP(order, 0.8)) == pytest.approx((1.6 / order) ** 0.5, rel=1e-5)
    truth = dp.zoo.Laplace(1.0).renyi(order, (0.0, 0.7))
    assert laplace.divergence(0.7, order) == pytest.approx(truth, rel=1e-6)
    assert laplace.allowed(dp.RenyiDP(order, truth)) == pytest.approx(0.7, rel=1e-5)


def test_parts_that_show_more_than_composition_allows_say_so():
    def above(answers, size, rng):  # the threshold has noise, the answers have none
        return np.array(answers) >= 5 + rng.laplace(0, 2, (size, 1))

    verdict = dp.audit(above, ([4, 5], [5, 4]), "eps=1", n=4000, rng=0)
    (said,) = (one.sentence for one in verdict.diagnosis if one.kind == "composition")
    assert "With independent noise 2 parts that each use all of ε would show less" in said


def test_an_empty_list_before_a_number_does_not_move_the_number():
    def release(x, size, rng):
        outputs = np.empty(size, dtype=object)
        for k, value in enumerate((rng.laplace(size=size) + x).round(3)):
            outputs[k] = {"a": [], "b": float(value), "c": 7.5}
        return outputs

    verdict = dp.audit(release, (0, 1), "eps=0.5", n=4000, rng=1)
    assert verdict.violated
    assert {one.part for one in verdict.diagnosis} == {"output['b']"}


def test_missing_value_codes_do_not_look_like_another_spread():
    for seed in range(4):
        rng = np.random.default_rng(500 + seed)
        sides = [np.round(x + rng.laplace(size=6000), 2) for x in (0, 1)]
        for side in sides:
            side[rng.random(6000) < 0.02] = -999
        verdict = dp.audit(dp.from_samples(*sides), claim="eps=0.8", rng=seed)
        assert verdict.diagnosis[0].kind is Fault.SCALE
        assert "Laplace noise of scale" in verdict.diagnosis[0].sentence


@pytest.mark.parametrize("seed", range(3))
def test_a_rare_raw_release_is_a_matter_of_the_support(seed):
    def leak(data, size, rng):
        noise = rng.geometric(0.632, size) - rng.geometric(0.632, size)
        return np.where(rng.random(size) < 2e-3, len(data) * 1000, len(data) + noise)

    verdict = dp.audit(leak, ([1, 2], [1, 2, 3]), "eps=1", n=40_000, rng=seed)
    assert verdict.diagnosis[0].kind is Fault.SUPPORT
    assert all(one.kind is not Fault.DATA_DEPENDENT_SCALE for one in verdict.diagnosis)


def test_a_bound_has_no_claim_to_speak_of():
    for of in ("eps", "mu"):
        for one in dp.bound(
            dp.zoo.Laplace(0.8), (0.0, 1.0), of, n=20_000, loss="values", rng=0
        ).diagnosis:
            assert not re.search(r"-G?DP|claim|needs|covers", one.sentence)
            assert not {"needed scale", "protected shift"} & dict(one.numbers).keys()
            assert one.picture is None or one.picture.needed is None


def test_one_event_is_told_once():
    mechanism = lambda x, size, rng: (rng.random(size) < 0.3 + 0.4 * x).astype(int)  # noqa: E731
    first, second = dp.audit(mechanism, (0, 1), "eps=0.5", n=8000, rng=0).diagnosis[:2]
    assert {first.kind, second.kind} == {Fault.SCALE, Fault.SHIFT}
    assert "% of the outputs" in first.sentence
    assert "%" not in second.sentence


def test_noise_that_is_cut_off_is_a_support_that_differs_before_it_is_too_small(seeds):
    """Truncated noise fits Laplace noise but for the ends, where the witness is."""
    mechanism, first = dp.zoo.TruncatedLaplace(1.0, 5.0, False), []
    for seed in seeds[:6]:
        verdict = dp.audit(mechanism, (0.0, 1.0), "eps=1", n=20_000, rng=seed)
        first.append(verdict.diagnosis[0].kind)
    assert first.count(Fault.SUPPORT) >= 5


def test_a_median_whose_limits_show_no_shift_is_no_cause(seeds):
    """Weekends are more frequent on one input; the dates as such do not move."""
    for seed in seeds[:2]:
        rng = np.random.default_rng(seed)
        days = np.arange(np.datetime64("2023-01-01"), np.datetime64("2024-01-01"))
        weekend = np.is_busday(days, weekmask="0000011")
        sides = [
            rng.choice(days, 4000, p=np.where(weekend, w, 1) / np.where(weekend, w, 1).sum())
            for w in (1, 3)
        ]
        verdict = dp.audit(dp.from_samples(*sides), claim="eps=.5", rng=seed)
        assert verdict.violated
        for one in verdict.diagnosis:
            assert dict(one.numbers).get("shift of the median, at least", 1) > 0


@pytest.mark.parametrize(("scale", "adds_up"), [(1.0, True), (2.0, False)])
def test_beside_a_floating_point_leak_values_are_blamed_if_together_they_break_the_claim(
    scale, adds_up
):
    """Two numbers with Laplace noise keep 2/scale-DP in their values."""

    def release(x, size, rng):
        return x + rng.laplace(0.0, scale, (size, 2))

    verdict = dp.audit(release, (0.0, 1.0), "eps=1.2", n=20_000, rng=0)
    found = [one.kind for one in verdict.diagnosis]
    assert found[0] is Fault.REPRESENTATION
    assert (Fault.COMPOSITION in found) == adds_up


def test_a_key_that_shows_in_bits_is_no_floating_point_leak():
    """A number that is there on one input only has a key that tells, and no bits."""

    def histogram(data, rng):
        counts = {key: round(n + rng.laplace(), 3) for key, n in data.items()}
        return {key: count for key, count in counts.items() if count > 3}

    mechanism, pair = dp.from_function(histogram), ({"a": 10}, {"a": 10, "c": 1})
    for seed in range(3):
        found = dp.audit(mechanism, pair, "eps=1, delta=1e-3", n=4000, rng=seed)
        assert found.violated
        assert Fault.REPRESENTATION not in [one.kind for one in found.diagnosis]
        bits = dp.audit(mechanism, pair, "eps=1, delta=1e-3", n=4000, rng=seed, loss="bits")
        assert not bits.violated  # whether a number is there is no bit of it


def _noisy_parts(*epsilons):
    def release(x, size, rng):
        noise = [rng.laplace(scale=1 / one, size=size) for one in epsilons]
        return np.round(x + np.column_stack(noise), 6)

    return release


@pytest.mark.parametrize(
    ("epsilons", "claim", "whole"),
    [((0.6, 0.7), "eps=1", False), ((0.447,) * 5, "eps=0.7", False), ((1.0, 1.0), "eps=1", True)],
)
def test_parts_use_all_of_the_claim_only_where_each_shows_about_all_of_it(epsilons, claim, whole):
    causes = dp.audit(_noisy_parts(*epsilons), (0.0, 1.0), claim, n=20_000, rng=0).diagnosis
    (found,) = (one for one in causes[:2] if one.kind is Fault.COMPOSITION)
    assert ("each use all of" in found.sentence) == whole
    assert ("the parts together use more than the claim" in found.sentence) != whole


def test_a_key_without_noise_on_one_input_is_no_ratio_of_scales():
    def histogram(rows, rng):
        noise = {k: int(rng.geometric(0.632) - rng.geometric(0.632)) for k in "abc"}
        return {k: rows.count(k) + noise[k] if k in rows else 0 for k in "abc"}

    release = dp.from_function(histogram)
    found = dp.audit(release, ([], ["a"]), "eps=1", n=4000, rng=0).diagnosis
    assert found[0].kind is Fault.NO_NOISE
    assert Fault.DATA_DEPENDENT_SCALE not in [one.kind for one in found]


@pytest.mark.parametrize(("bad", "kind"), [(np.nan, Fault.FAILURE), (None, Fault.SUPPRESSION)])
def test_outputs_that_fail_more_often_on_one_input_are_a_failure_or_suppression(bad, kind):
    def release(x, rng):
        fails = rng.random() < (0.05 if x else 0.01)
        return bad if fails else round(x + rng.laplace(), 6)

    verdict = dp.audit(dp.from_function(release), (0.0, 1.0), "eps=1.2", n=8000, rng=0)
    assert verdict.violated
    assert verdict.diagnosis[0].kind is kind


@pytest.mark.parametrize("rows", [1, 30])
def test_values_that_are_missing_more_often_on_one_input_are_suppression(rows):
    """In the same words for all that stands for a missing value, and for frames and lists of records."""

    pd = pytest.importorskip("pandas")

    def frame(column):
        return lambda age, income, gone: pd.DataFrame({"age": age, "income": column(income, gone)})

    def with_none(values, gone):
        return [None if lost else float(value) for value, lost in zip(values, gone, strict=True)]

    def records(age, income, gone):
        cells = zip(age.tolist(), np.where(gone, np.nan, income).tolist(), strict=True)
        return [dict(zip(("age", "income"), row, strict=True)) for row in cells]

    def release(made):
        def one(x, rng):
            age, income = np.round(rng.laplace([[40], [10]], 2.0, (2, rows)), 2)
            return made(age, income, rng.random(rows) < (0.6 if x else 0.05))

        return dp.from_function(one)

    said = set()
    for made in (
        frame(lambda values, gone: np.where(gone, np.nan, values)),
        frame(lambda values, gone: pd.Series(with_none(values, gone), dtype=object)),
        frame(lambda values, gone: pd.array(with_none(values, gone), dtype="Float64")),
        records,
    ):
        (one,) = dp.audit(release(made), (0, 1), "eps=1", n=800, rng=0).diagnosis
        assert one.kind is Fault.SUPPRESSION
        assert one.part == "the share of missing values of 'income'"
        assert str(one).endswith("; the cause is a guess)")
        shares = re.findall(r"([\d.]+)% on the (?:first|second)", one.sentence)[:2]
        assert [float(share) / 100 for share in shares] == pytest.approx([0.05, 0.6], abs=0.03)
        said.add(one.sentence)
    assert len(said) == 1


def test_a_value_that_shows_more_than_missing_values_is_named_first():
    pd = pytest.importorskip("pandas")

    def release(x, rng):
        city = np.array(["Oslo", "Lima"] + ["Suva"] * x)[rng.integers(2 + x, size=20)]
        age = np.where(rng.random(20) < (0.2 if x else 0.1), None, 50)
        return pd.DataFrame({"city": city, "age": age})

    found = dp.audit(dp.from_function(release), (0, 1), "eps=0.2", n=4000, rng=0).diagnosis
    assert [one.kind for one in found[:2]] == [Fault.SUPPORT, Fault.SUPPRESSION]
    assert "'Suva'" in found[0].sentence


def test_a_category_of_a_table_is_found_however_many_tables_there_are():
    pd = pytest.importorskip("pandas")

    def release(x, rng):  # each table is a structure of its own
        city = np.array(["Oslo", "Lima"] + ["Suva"] * x)[rng.integers(2 + x, size=20)]
        return pd.DataFrame({"city": city})

    for n in (400, 4000):
        found = dp.audit(dp.from_function(release), (0, 1), "eps=1", n=n, rng=0).diagnosis
        assert found[0].kind is Fault.SUPPORT


@pytest.mark.parametrize(("noise", "claim"), [("normal", dp.GaussianDP(1.0)), ("laplace", "eps=1")])
@pytest.mark.parametrize("others", [0.5, 2.0])
def test_a_shift_and_its_noise_are_both_given(noise, claim, others):
    """One coordinate of four moves; its noise is half of what is needed. The bits of doubles tell too."""

    def release(x, size, rng):
        scales = [others, others, 0.5, others]
        return np.array([0, 0, x, 0]) + getattr(rng, noise)(scale=scales, size=(size, 4))

    verdict = dp.audit(release, (0, 1), claim, n=8000, rng=0)
    assert {Fault.SCALE, Fault.SHIFT} < {one.kind for one in verdict.diagnosis}
    assert Fault.SUPPORT not in [one.kind for one in verdict.diagnosis]
    said = str(verdict)  # a few of them
    assert ("shift: the median of output[2] moves" in said) == ("scale: consistent with" in said)


def rare_output(output):
    return lambda x, rng: output if rng.random() < (0.1 if x else 0.6) else "abc"


def raising(x, rng):
    if rng.random() < (0.1 if x else 0.6):
        raise ValueError
    return "abc"


@pytest.mark.parametrize(
    ("release", "said"),
    [
        (raising, "the mechanism raised ValueError in"),
        (rare_output(""), "the output is the empty text in"),
        (rare_output({"a": ""}), "output['a'] is the empty text in"),
        (rare_output(None), "the output is None in"),
    ],
)
def test_special_outputs_are_named_as_what_they_are(release, said):
    sampling = dp.Sampling(on_error="outcome", progress=False)
    verdict = dp.audit(dp.from_function(release), (0, 1), "eps=1", n=2000, rng=0, sampling=sampling)
    assert said in verdict.diagnosis[0].sentence
    assert "is raised" not in str(verdict)


def test_a_value_that_comes_back_in_half_of_the_draws_has_noise():
    def release(x, size, rng):
        share = rng.random(size)
        outputs = np.empty(size, dtype=object)
        for k, (u, noise) in enumerate(zip(share, rng.laplace(size=size), strict=True)):
            known = u < (0.18 if x else 0.5)
            outputs[k] = [7.0] if known else [round(5 + noise, 3)] if x and u < 0.9 else []
        return outputs

    found = dp.audit(release, (0, 1), "eps=0.5", n=6000, rng=0).diagnosis
    assert Fault.NO_NOISE not in [one.kind for one in found]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_factor_of_two_between_replaced_records_names_the_sensitivity(relation):
    def count(data, size, rng):
        return np.round(2 * sum(data) + rng.laplace(scale=1, size=size), 6)

    found = dp.audit(count, ([0], [1]), "eps=1", n=8000, rng=0, relation=relation).diagnosis
    pair = [one for one in found if one.kind in (Fault.SCALE, Fault.SHIFT)]
    assert len(pair) == 2
    assert {"2Δ" in one.hint for one in pair} == {relation == "replace"}


def test_a_spread_that_differs_is_no_proof_of_a_scale():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=3000), 1 + 2 * rng.normal(size=3000)
    verdict = dp.audit(dp.from_samples(*scores), claim="eps=1", loss="values")
    found = verdict.diagnosis[0]
    assert found.kind is Fault.DATA_DEPENDENT_SCALE
    assert found.backed.endswith("the cause is a guess")
    assert "Scores of an attack" in found.hint


def test_a_claim_of_chords_says_so_below_its_headline_and_suggests_no_scale():
    points = [(a, dp.GaussianDP(1.0).tradeoff(a)) for a in np.linspace(0, 1, 21)]
    gaussian = (lambda x, size, rng: np.round(x + rng.normal(size=size), 6)), (0.0, 1.0)
    verdict = dp.audit(*gaussian, dp.TradeoffDP(points), n=20_000, rng=0)
    assert verdict.headline == "violation of f-DP (21 points joined by chords)"
    for again in (verdict, dp.Verdict.from_json(verdict.to_json())):
        assert str(again).splitlines()[1].startswith("  claim: the claim is the given points")
        assert again.view().summary[0].startswith("The claim is the given points")
    assert not {Fault.SCALE, Fault.SHIFT} & {one.kind for one in verdict.diagnosis}


def test_answers_without_noise_of_their_own_suggest_no_composition_and_no_scale():
    def release(x, rng):  # variant 5 of the sparse vector technique
        threshold = rng.laplace(scale=2)
        return [bool(answer >= threshold) for answer in (1 - x, 1 - x, 1 - x, x, x, x)]

    verdict = dp.audit(dp.from_function(release), (0.0, 1.0), "eps=1", n=8000, rng=0)
    assert verdict.violated
    assert [one.kind for one in verdict.diagnosis] == [Fault.NONE]


def test_a_fixed_seed_is_not_said_to_give_the_exact_value(seed):
    """The value that comes back has noise, which is always the same."""
    first = audited("noise from a fixed seed", seed).diagnosis[0]
    assert first.kind is Fault.NO_NOISE
    assert first.sentence.startswith("the same value comes back: the output = ")


def test_noise_that_a_huge_output_swallows_is_not_missing():
    def unclipped(data, size, rng):
        return np.round(np.sum(data) + rng.laplace(scale=10, size=size), 6)

    verdict = dp.audit(unclipped, ([1e300], [0.0]), "eps=1", n=2000, rng=0)
    assert verdict.diagnosis[0].kind == "shift"


@pytest.mark.parametrize("seed", range(3))
def test_truncated_noise_is_too_small_and_follows_no_data(seed):
    """Truncation makes 0 twice as wide as other numbers: no spread of 0 and 1 can be compared."""

    def release(x, size, rng):
        return np.trunc(x + rng.laplace(scale=0.6, size=size))

    verdict = dp.audit(release, (0.0, 1.0), "eps=1", n=20_000, rng=seed)
    assert Fault.DATA_DEPENDENT_SCALE not in [one.kind for one in verdict.diagnosis]


CITIES = ("Oslo", "Lima", "Suva")


def synthetic(rows, rng):
    """40 records from a histogram of three times five cells, with noise five times too small."""
    counts = np.zeros((3, 5))
    for row in rows:
        counts[row] += 1
    noisy = np.maximum(counts + rng.laplace(scale=0.2, size=(3, 5)), 0).ravel() + 1e-3
    drawn = rng.choice(15, size=40, p=noisy / noisy.sum())
    return [{"city": CITIES[k // 5], "age": int(k % 5)} for k in drawn]


@pytest.mark.parametrize("mark", [".", "*", "x", "-", None])
@pytest.mark.parametrize("claim", ["eps=1", (1.0, 1e-5)])
def test_a_mark_for_a_number_is_suppression_in_single_outputs(mark, claim, seed):
    def release(x, rng):
        noise = int(rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1)))
        return mark if x and rng.random() < 0.2 else 20 + noise

    found = dp.audit(dp.from_function(release), (0, 1), claim, n=2000, rng=seed).diagnosis
    assert found[0].kind is Fault.SUPPRESSION
    assert {one.kind for one in found[1:]} <= {Fault.DELTA}


def test_a_category_that_comes_on_one_input_is_no_suppression(seed):
    def release(x, rng):
        return (None, "a", "b")[int(rng.integers(1 - x, 3))]

    found = dp.audit(dp.from_function(release), (0, 1), "eps=1", n=2000, rng=seed).diagnosis
    assert found[0].kind is Fault.SUPPORT


def copied(x, rng):
    """Rows at random, one of which is the private record in a third of the outputs."""
    rows = [{"age": int(rng.integers(100)), "code": int(rng.integers(100_000))} for _ in range(5)]
    if x and rng.random() < 1 / 3:
        rows[3] = {"age": 99, "code": 77_777}
    return rows


def test_a_single_value_of_a_part_is_weighed_as_thresholds_are(seeds):
    for seed in seeds[:2]:
        found = dp.audit(dp.from_function(copied), (0, 1), "eps=1", n=1500, rng=seed).diagnosis
        first, second = found
        assert (first.kind, first.part) == (Fault.UNPROTECTED, "output[3]['code']")
        by_part = [value for name, value in first.numbers if name.startswith("certified by output")]
        assert rounded_down(sorted(by_part)[-2]) in first.sentence
        assert "by one threshold or value" in first.sentence
        assert "a record that is copied" in first.hint
        assert (second.kind, second.condition) == (Fault.SUPPORT, "output[3]['code'] == 77777.0")


def rates(population, whole, decimals, seed):
    rng, q = np.random.default_rng(seed), 1 - np.exp(-1)
    counts = int(0.2958 * population) + rng.geometric(q, (2, 4000)) - rng.geometric(q, (2, 4000))
    record = np.array([[0], [1]])
    return np.round((counts + record) / (population + record) * whole, decimals)


@pytest.mark.parametrize(
    ("population", "whole", "decimals"),
    [(1000, 100, 2), (1000, 1, 4), (1000, 1, 17), (8453, 100, 2), (8453, 100, 3), (8453, 1, 6)],
)
def test_values_on_two_grids_are_no_matter_of_low_order_bits(population, whole, decimals, seeds):
    """Noise on integers, divided by a total that is released exactly."""
    for seed in seeds[:3]:
        samples = dp.from_samples(*rates(population, whole, decimals, seed))
        found = dp.audit(samples, claim="eps=1", rng=seed).diagnosis
        assert [one.kind for one in found] == [Fault.SUPPORT]
        assert "take different values in one range" in found[0].sentence
        assert found[0].hint.startswith("a denominator")
        assert found[0].backed.startswith("exact bounds")
        assert found[0].backed.endswith("the cause is a guess")


def test_a_rate_beside_another_column_is_the_part_that_is_named(seed):
    rng = np.random.default_rng(seed)
    beside = rng.integers(1000, size=(2, 4000))
    sides = np.stack([rates(1000, 100, 2, seed), beside], axis=2)
    (found,) = dp.audit(dp.from_samples(*sides), claim="eps=1", rng=seed).diagnosis
    assert (found.kind, found.part) == (Fault.SUPPORT, "output[0]")


@pytest.mark.parametrize("short", [np.float16, np.float32])
def test_a_grid_of_short_floats_is_no_denominator(short, seeds):
    """Few bits have a grid that follows the size; rounding in single precision shows in the last."""
    for seed in seeds[:5]:
        noise = np.random.default_rng(seed).integers(-12, 13, (2, 4000))
        if short is np.float16:
            sides = (noise + np.array([[0.0], [2.0**-8]])).astype(short)
        else:
            sides = noise * short(0.1) + np.array([[0.3], [100.0]], dtype=short) - [[0], [99.7]]
        samples = dp.from_samples(*sides.astype(float))
        found = dp.audit(samples, claim="eps=1", rng=seed, loss="bits").diagnosis
        assert not any("different values" in one.sentence for one in found)


def test_an_event_that_comes_on_both_inputs_is_no_support():
    rng = np.random.default_rng(3)
    people = [(int(rng.integers(2)), int(rng.integers(5))) for _ in range(60)]
    pair = people, [*people, (2, 2)]
    for seed in (5,):
        verdict = dp.audit(dp.from_function(synthetic), pair, "eps=1", n=1000, rng=seed)
        assert verdict.violated
        for one in verdict.diagnosis:
            shares = sorted(dict(one.numbers).get(name, 0.0) for name in SHARES)
            assert one.kind is not Fault.SUPPORT or shares[0] <= 0.01 * shares[1]
        if min(verdict.witness.p, verdict.witness.q) > 0.01 * max(
            verdict.witness.p, verdict.witness.q
        ):
            assert [one.kind for one in verdict.diagnosis] == [Fault.SCALE, Fault.SHIFT]


@pytest.mark.parametrize("text", ["*", ".", "k.A.", None])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_text_for_a_number_is_a_suppressed_value(text, rows):
    def value(rng):
        return round(20 + rng.laplace(), 2)

    def row(x, rng):
        men = text if rng.random() < (0.5 if x else 0.02) else value(rng)
        return {"Region": "Nord", "Männer": men, "Frauen": value(rng)}

    def release(x, rng):
        return [row(x, rng) for _ in range(rows)] if rows else row(x, rng)["Männer"]

    found = dp.audit(dp.from_function(release), (0, 1), "eps=1", n=1000, rng=0).diagnosis
    assert found[0].kind is Fault.SUPPRESSION


def test_a_scale_that_the_data_decide_is_named_beside_the_shift_that_comes_with_it(seeds):
    def mean(values, size, rng):
        n = len(values)
        return np.round(np.clip(values, 0, 1).sum() / n + rng.laplace(scale=1 / n, size=size), 6)

    for pair in (([0, 0], [0, 0, 1]), ([0, 0], [0, 0, 0])):
        for seed in seeds[:3]:
            found = dp.audit(mean, pair, "eps=1", n=20_000, rng=seed).diagnosis
            assert Fault.DATA_DEPENDENT_SCALE in [one.kind for one in found[:2]]


def test_an_event_is_cited_only_where_it_shows_that_the_claim_is_broken(seeds):
    """Also where a violation is an accident: many texts, of which each shows little."""

    def text(count, size, rng):
        noise = rng.geometric(1 - np.exp(-0.9), (2, size))
        return [f"There are {max(0, i)} patients." for i in count + noise[0] - noise[1]]

    cited = 0
    for seed in seeds[:6]:
        verdict = dp.audit(text, (10, 11), "eps=0.5", n=3000, rng=seed)
        for one in verdict.diagnosis:
            if "% of the outputs" in one.sentence:
                assert dict(one.numbers)[ALONE] > 0.5
                cited += 1
            elif verdict.violated:
                assert one.sentence.endswith(("the witness event shows it", "the same event"))
    assert cited


def moved(shifts, scale, noise):
    return lambda x, size, rng: np.round(
        np.array(shifts) * x + getattr(rng, noise)(scale=scale, size=(size, len(shifts))), 5
    )


@pytest.mark.parametrize(
    ("release", "claim", "first"),
    [
        (moved([0.6, 0.8], 1, "normal"), "mu=0.85", Fault.SCALE),
        (moved([0.5, 0.3], 0.5, "laplace"), "eps=1.1", Fault.SCALE),
        (moved([1, 1], 1, "laplace"), "eps=1", Fault.COMPOSITION),
        (moved([1, 1, 1], 1, "normal"), "mu=1", Fault.COMPOSITION),
    ],
)
def test_a_vector_with_too_little_noise_is_no_composition_of_releases(release, claim, first, seed):
    found = [one.kind for one in dp.audit(release, (0, 1), claim, n=20_000, rng=seed).diagnosis]
    assert found[0] is first
    assert {Fault.SCALE, Fault.COMPOSITION} == set(found[:2])


def days(x, size, rng):
    noise = np.round(rng.laplace(scale=0.5, size=size)).astype("timedelta64[D]")
    return np.datetime64("2024-03-01") + x + noise


def count(value, scale):
    return lambda rows, size, rng: np.round(
        sum(rows) * value + rng.laplace(scale=scale, size=size), 3
    )


@pytest.mark.parametrize(
    ("release", "pair", "first"),
    [
        (days, (0, 1), Fault.SCALE),
        (count(1, 0.5), ([1, 1], [1, 1, 1]), Fault.SCALE),
        (count(10, 5), ([1, 1], [1, 1, 1]), Fault.SCALE),
        (count(1, 1), ([1, 1], [1, 1, 5]), Fault.SHIFT),
    ],
)
def test_too_little_noise_is_named_before_a_shift_of_a_usual_size(release, pair, first, seeds):
    for seed in seeds[:5]:
        found = dp.audit(release, pair, "eps=1", n=4000, rng=seed).diagnosis
        assert found[0].kind is first
        assert {one.kind for one in found[:2]} == {Fault.SCALE, Fault.SHIFT}


def test_an_event_that_shows_more_by_not_happening_is_said_not_to_happen():
    def word(x, rng):
        return "high" if rng.random() < (0.995 if x else 0.9) else "low"

    for claim in ("eps=1", "eps=1, delta=1e-3"):
        found = dp.audit(dp.from_function(word), (0, 1), claim, n=4000, rng=0).diagnosis
        for one in found:
            shares = [dict(one.numbers)[name] for name in SHARES]
            assert max(shares) < 0.2
            assert re.search(
                "'low' in|not: the output is 'high' in|same event|not happen in", str(one)
            )


def _sorted_by_count(data, size, rng):
    """Noisy counts of groups, in the order of the true ones."""
    groups = sorted(set(data), key=lambda group: -data.count(group))
    return [
        [{"group": group, "n": data.count(group) + rng.laplace()} for group in groups]
        for _ in range(size)
    ]


def test_rows_in_the_order_of_exact_counts_are_a_matter_of_order(seed):
    pair = ["x", "x", "y"], ["x", "y", "y"]
    found = dp.audit(_sorted_by_count, pair, "eps=1", n=1500, loss="feature", rng=seed)
    assert found.witness.event.score_function.features.features[0].family in OF_ORDER
    assert [one.kind for one in found.diagnosis] == [Fault.ORDER_OR_SIZE]


def _unknown_keys(data, size, rng):
    """A noisy histogram; a key of one record hardly ever passes the threshold."""
    keys = sorted(set(data))
    noisy = rng.laplace(size=(size, len(keys))) + [data.count(key) for key in keys]
    return [{k: x for k, x in zip(keys, row, strict=True) if x >= 8} for row in noisy.tolist()]


def test_a_key_that_hardly_ever_comes_is_a_cause(seed):
    """The draws that a diagnosis keeps hold about nine such outputs; the witness counts all."""
    claim = dp.ApproximateDP(1.0, 9.02e-5, headline="delta")
    pair = ["a"] * 20, ["a"] * 20 + ["b"]
    found = dp.audit(_unknown_keys, pair, claim, n=150_000, loss="categories", rng=seed)
    assert found.witness.p == 0
    assert [one.kind for one in found.diagnosis] == [Fault.DELTA, Fault.SUPPORT]


def test_failures_that_the_witness_event_leaves_out_are_the_cause(seed):
    """The event of the witness was "output ≥ -8", and NaN was not named."""

    def release(data, size, rng):
        out = np.round(data + 2 * rng.normal(size=size), 2)
        out[rng.random(size) < 0.02 * data] = np.nan
        return out

    verdict = dp.audit(release, (0, 1), (1.993, 1e-5), n=6000, rng=seed)
    assert verdict.violated
    assert verdict.diagnosis[0].kind == "failure"
    assert "NaN" in str(verdict.witness.event) or "nan" in str(verdict.witness.event)


def test_a_key_that_comes_more_often_on_one_input_is_suppression_before_noise(seed):
    """Whether a key is there is decided by a rule, with or without noise."""

    def release(data, rng):
        row = {"total": round(rng.laplace(scale=2), 3)}
        return row | {"warning": "low"} if rng.random() < (0.002, 0.02)[data] else row

    verdict = dp.audit(dp.from_function(release), (0, 1), "eps=1", n=8000, rng=seed)
    assert [one.kind for one in verdict.diagnosis] == [Fault.SUPPRESSION, Fault.SCALE]
    assert "keys" in verdict.diagnosis[0].hint
    assert str(verdict.diagnosis[0]).count("the witness event") <= 1


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_a_value_that_passes_through_now_and_then_is_no_wrong_scale(rate, seed):
    """The noise is right; a branch returns the value itself."""

    def release(data, size, rng):
        return np.where(rng.random(size) < rate, data, np.round(data + rng.laplace(size=size), 3))

    verdict = dp.audit(release, (0.25, 1.25), "eps=1", n=20_000, rng=seed)
    assert verdict.diagnosis[0].kind is Fault.NO_NOISE


def test_clipped_numbers_repeat_at_their_ends_and_have_noise(seed):
    def release(data, size, rng):
        return np.round(np.clip(data + rng.laplace(scale=0.5, size=size), 0, 1), 6)

    verdict = dp.audit(release, (0.25, 1.25), "eps=1", n=10_000, rng=seed)
    assert Fault.NO_NOISE not in [one.kind for one in verdict.diagnosis]
