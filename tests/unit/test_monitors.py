"""A monitor says the same however draws are brought, goes on from JSON, and is never fooled by order."""

import json
import math
import re

import numpy as np
import pytest
from tests.helpers import laplace_mechanism, objects

import dpassay as dp
from dpassay.monitoring import e_process as evidence
from dpassay.monitoring import monitors
from dpassay.monitoring.e_process import FIRST
from dpassay.sampling.samples import sources


def laplace(seed, n, shift=1.0):
    rng = np.random.default_rng(seed)
    return np.round(rng.laplace(size=n), 6), np.round(shift + rng.laplace(size=n), 6)


def fed(claim, p, q, cuts=(), **options):
    """A monitor that was brought draws in parts."""
    found = dp.Monitor(claim, **options)
    for a, b in zip((0, *cuts), (*cuts, len(p)), strict=True):
        found.update(p[a:b], q[a:b])
    return found


def test_a_false_claim_is_refuted_and_the_bound_agrees(seed):
    found = fed("eps=0.5", *laplace(seed, 2000), range(100, 2000, 100))
    assert found.violated
    assert found.refuted_at < 2000
    assert 0.5 <= found.lower_bound <= 1.0
    draws, log = found.log_evidence
    assert draws[-1] == found.draws == 2000
    assert math.log(found.e_value) == pytest.approx(log[-1])
    verdict = found.verdict()
    assert verdict.violated
    assert verdict.draws == 2000
    assert verdict.lower_bound == found.lower_bound
    assert verdict.p_value == pytest.approx(math.exp(-log.max()))
    assert verdict.p_value <= 0.05
    assert verdict.guarantee is dp.Guarantee.EXACT
    assert any("anytime-valid" in note for note in verdict.about.notes)
    assert sum(share for _, share in verdict.budget) == pytest.approx(0.05)


def test_a_violation_stays_one(seed):
    """Later draws that speak for the claim take no refutation back, nor the bound."""
    found = fed("eps=0.5", *laplace(seed, 1500))
    assert found.violated
    bound, before = found.lower_bound, found.e_value
    found.update(*laplace(seed + 1, 1000)[::-1])
    assert found.e_value < before / 100
    assert found.violated
    assert found.lower_bound >= bound
    assert found.verdict().violated


@pytest.mark.parametrize(
    "claim",
    ["eps=0.8", "eps=0.5, delta=0.1", "renyi(order=2)=0.4"],
)
def test_it_goes_on_from_json_as_if_nothing_had_happened(claim, seed):
    p, q = laplace(seed, 500)
    whole = dp.Monitor(claim, rng=seed)
    parts = dp.Monitor(claim, rng=seed)
    rng = np.random.default_rng(seed)
    at = [0, 0]
    while min(at) < 500:
        ends = [min(500, k + int(rng.integers(0, 60))) for k in at]
        for one in (whole, parts):
            one.update(p[at[0] : ends[0]], q[at[1] : ends[1]])
        at = ends
        parts = dp.Monitor.from_json(parts.to_json())
        assert parts.waiting == whole.waiting
    assert parts.draws == whole.draws == 500
    assert parts.e_value == whole.e_value
    assert parts.violated == whole.violated
    assert parts.to_json() == whole.to_json()
    assert parts.lower_bound == whole.lower_bound


def test_json_of_outputs_of_every_kind(seed):
    rng = np.random.default_rng(seed)

    def some(n, shift):
        found = [None, "a", 2**70, (1.5, "x"), math.nan, True]
        return objects(
            *(found[k] for k in (rng.integers(0, 6, n) + shift * (rng.random(n) < 0.3)) % 6)
        )

    found = dp.Monitor("eps=1", rng=seed)
    again = dp.Monitor("eps=1", rng=seed)
    for _ in range(8):
        p, q = some(30, 0), some(25, 1)
        found.update(p, q)
        again.update(p, q)
        again = dp.Monitor.from_json(again.to_json())
    assert found.waiting == again.waiting == (40, 0)
    assert found.e_value == again.e_value
    assert found.to_json() == again.to_json()


def test_json_stays_small(seed):
    found = fed("eps=1", *laplace(seed, 60_000))
    text = found.to_json()
    assert len(text) < 200_000
    assert json.loads(text)["draws"] == 60_000


@pytest.mark.parametrize(
    "text", ["", "{}", '{"type": "Verdict"}', '{"schema": 99, "type": "MonitorState"}']
)
def test_what_is_no_monitor_is_refused(text):
    with pytest.raises(dp.errors.InvalidInput):
        dp.Monitor.from_json(text)


@pytest.mark.parametrize("field", ["gained", "hits", "draws"])
def test_evidence_that_does_not_follow_from_its_counts_is_refused(field, seed):
    state = json.loads(fed("eps=0.5", *laplace(seed, 200)).to_json())
    if field == "draws":
        state["draws"] += 1
    else:
        first = state["epochs"][-1][field][0]
        if field == "gained":
            first[0] = 9.0
        else:
            first[0][0] += 5
    with pytest.raises(dp.errors.InvalidInput, match="does not follow"):
        dp.Monitor.from_json(json.dumps(state))


def test_draws_wait_for_the_other_side(seed):
    p, q = laplace(seed, 50)
    found = dp.Monitor("eps=0.5")
    found.update(p)
    assert (found.draws, found.waiting, found.e_value) == (0, (50, 0), 1.0)
    found.update([], q[:30])
    assert (found.draws, found.waiting) == (30, (20, 0))
    found.update(q_outputs=q[30:])
    assert (found.draws, found.waiting) == (50, (0, 0))


def test_one_draw_at_a_time(seed):
    p, q = laplace(seed, 60)
    found = dp.Monitor("eps=0.5")
    for a, b in zip(p, q, strict=True):
        found.update([a])
        found.update([], [b])
    assert found.draws == 60
    at = found.log_evidence[0].tolist()
    assert at[: 32 - FIRST] == list(range(FIRST + 1, 33))  # at first a guess lasts for one draw
    assert at[-1] == 60
    assert found.e_value == pytest.approx(math.exp(found.log_evidence[1][-1]))


def test_sorted_draws_are_shuffled(seed):
    """Draws of equal distributions, sorted, refute nothing: in order they would part perfectly."""
    rng = np.random.default_rng(seed)
    refuted = 0
    for k in range(20):
        p, q = rng.laplace(size=(2, 200))
        refuted += fed("eps=0.1", np.sort(p), np.sort(q)[::-1], rng=seed + k).violated
    assert refuted <= 5  # P(Binomial(20, 0.05) > 5) = 0.0003


def test_few_draws_say_what_can_be_said():
    found = fed("eps=1", np.zeros(20), np.ones(20))
    assert found.violated
    assert found.lower_bound >= 1
    assert found.verdict().witness.hits_q in (0, found.verdict().witness.n_q)
    few = fed("eps=1", *laplace(0, FIRST))
    assert few.verdict().tone == "blind"
    assert "nothing was bet yet" in few.verdict().blind
    with pytest.raises(dp.errors.NotEnoughDraws, match="nothing to judge"):
        dp.Monitor("eps=1").verdict()


def test_bad_input_is_refused():
    with pytest.raises(dp.errors.InvalidInput, match="confidence"):
        dp.Monitor("eps=1", confidence=1.0)
    found = dp.Monitor("eps=1")
    with pytest.raises(dp.errors.InvalidInput, match="p_outputs"):
        found.update(3.0, [1.0])
    found.update(np.array(["a", "b"]), np.array(["a", "b"]))
    with pytest.raises(dp.errors.InvalidInput, match="earlier"):
        found.update(np.zeros(3), np.zeros(3))


def test_a_classifier_works_but_cannot_be_written_down(seed):
    from sklearn.naive_bayes import GaussianNB

    found = dp.Monitor("eps=0.2", loss=GaussianNB())
    found.update(*laplace(seed, 600))
    assert found.violated
    with pytest.raises(dp.errors.InvalidInput, match="only this process"):
        found.to_json()


def test_what_fails_brings_nothing(seed):
    """A score_function that cannot be fitted stops it; the same draws are bet on once, later."""

    p, q = laplace(seed, 300)
    found = dp.Monitor("eps=0.5", loss="knn")
    found._process.loss = "no such loss"
    with pytest.raises(dp.errors.InvalidInput, match="no such loss"):
        found.update(p, q)
    assert (found.draws, found.waiting) == (0, (300, 300))
    found._process.loss = "knn"
    found.update()
    assert (found.draws, found.waiting) == (300, (0, 0))


def test_signs_of_dependence_take_the_guarantee(seed):
    walk = np.cumsum(np.random.default_rng(seed).normal(size=(2, 300)), axis=1)
    found = dp.Monitor("eps=1")
    with pytest.warns(dp.errors.DependenceWarning):
        found.update(*walk)
    assert found.verdict().guarantee is dp.Guarantee.HEURISTIC


# --- monitor


def test_it_stops_when_refuted_and_repeats_by_seed():
    one, two = (
        dp.monitor(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=0.4", max_n=20_000, rng=3) for _ in "ab"
    )
    assert one.violated
    assert one.draws < 5000
    assert one == two
    assert dp.Verdict.from_json(one.to_json()) == one
    assert one.evidence[-1, 0] == one.draws


def test_it_stops_at_the_most():
    found = dp.monitor(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1.5", max_n=500, rng=0)
    assert (found.violated, found.draws) == (False, 500)
    assert found.tone == "clear"


def test_several_pairs_are_averaged():
    """The capital of one pair among four is a quarter of what it is alone, times the others'."""
    pairs = [(0.0, 0.0), (0.0, 0.1), (0.0, 1.0)]
    found = dp.monitor(dp.zoo.Laplace(1.0), pairs, "eps=0.4", max_n=20_000, rng=0)
    assert found.violated
    assert found.witness.pair == dp.Pair(0.0, 1.0)
    assert len(found.pairs) == 3
    logs = np.array([log for _, log in found.pairs])
    assert found.evidence[-1, 1] == pytest.approx(np.log(np.mean(np.exp(logs))))


def test_samples_are_used_up():
    samples = dp.draw(dp.zoo.Laplace(1.0), (0.0, 1.0), n=3000, rng=0)
    found = dp.monitor(samples, claim="eps=1.2")
    assert found.draws == 3000
    assert len(samples) == 0


def test_interrupted_it_says_where_it_stood():
    calls = []

    def mechanism(x, size, rng):
        calls.append(size)
        if len(calls) > 40:
            raise KeyboardInterrupt
        return np.round(x + rng.laplace(size=size), 6)

    found = dp.monitor(mechanism, (0.0, 1.0), "eps=1.5", max_n=100_000, rng=0)
    assert not found.violated
    assert 0 < found.draws < 1000
    assert any("interrupted" in note for note in found.about.notes)


def test_the_bits_of_numbers_are_looked_at_if_asked_for():
    found = dp.monitor(laplace_mechanism, (0.0, 1.0), "eps=1", max_n=2000, rng=0, loss="auto")
    assert found.violated
    assert found.witness.event.of_representation
    assert "representation" in found.about.notes[0]


def test_equal_inputs_are_blind():
    found = dp.monitor(laplace_mechanism, (1.0, 1.0), "eps=1", max_n=200, rng=0)
    assert found.tone == "blind"


@pytest.mark.parametrize(
    ("claim", "mechanism", "most"),
    [
        ("eps=0.5, delta=0.05", dp.zoo.Laplace(1.0), 20_000),
        ("mu=0.6", dp.zoo.Gaussian(1.0), 20_000),
        ("renyi(order=2)=0.4", dp.zoo.Gaussian(1.0), 40_000),
        pytest.param("rho=0.2", dp.zoo.Gaussian(1.0), 40_000, marks=pytest.mark.slow),
        (dp.TradeoffDP([(0, 1), (0.3, 0.55), (0.55, 0.3), (1, 0)]), dp.zoo.Laplace(1.0), 40_000),
    ],
    ids=str,
)
def test_every_kind_of_false_claim_is_refuted(claim, mechanism, most):
    found = dp.monitor(mechanism, (0.0, 1.0), claim, max_n=most, rng=0)
    assert found.violated
    assert found.lower_bound >= found.claim.value


@pytest.mark.parametrize(("runs", "most"), [(10, 4), pytest.param(200, 24, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("claim", "shift"),
    [("eps=1", 1.0), (dp.ApproximateDP(0.5, 1 - math.exp(-0.25)), 1.0), ("eps=0", 0.0)],
    ids=str,
)
def test_true_claims_are_rarely_ever_refuted(claim, shift, runs, most, seeds):
    """At every look up to 300 draws; the limit is exceeded with probability below 1e-4."""
    parts = (40, 41, 120)
    wrong = sum(fed(claim, *laplace(k, 300, shift), parts, rng=k).violated for k in seeds[:runs])
    assert wrong <= most


@pytest.mark.parametrize(
    ("claim", "draws", "tone"),
    [
        ("eps=5", 20, "blind"),
        ("eps=5", 200, "blind"),
        ("renyi(order=2)=5", 30, "blind"),
        ("eps=1", 2000, "clear"),
        ("eps=1, delta=1e-3", 2000, "clear"),
    ],
)
def test_draws_that_could_not_refute_the_claim_are_no_good_sign(claim, draws, tone):
    """Outputs that agree in nothing would not have been caught either: that is not "no violation"."""
    assert dp.monitor(dp.zoo.Laplace(1.0), (0.0, 1.0), claim, max_n=draws, rng=0).tone == tone


def test_draws_that_are_only_counted_are_in_no_order(seed, monkeypatch):
    """Past the last lesson: sorted draws refute no claim that is far from false, and all are counted."""
    monkeypatch.setattr(evidence, "KEPT", 64)
    evidence._schedule.cache_clear()
    rng = np.random.default_rng(seed)
    found = dp.Monitor("eps=2", rng=seed)
    for size in (100, 3000, 5, 800):
        p, q = np.round(rng.laplace(size=size), 6), np.round(1 + rng.laplace(size=size), 6)
        found.update(np.sort(p), np.sort(q)[::-1])
        again = dp.Monitor.from_json(found.to_json())
        assert again.e_value == found.e_value
    found.update(np.sort(rng.laplace(size=30)), np.sort(rng.laplace(size=20)))
    evidence._schedule.cache_clear()
    assert (found.draws, found.waiting) == (3925, (10, 0))
    assert found._sequence.peak < np.log(20)
    assert found._process.epochs[-1].known.sum(axis=1).tolist() == [3925, 3925]


def test_draws_that_could_not_be_counted_wait(seed, monkeypatch):
    monkeypatch.setattr(evidence, "KEPT", 64)
    evidence._schedule.cache_clear()
    found = dp.Monitor("eps=0.9", rng=seed)
    found.update(*laplace(seed, 100))
    with monkeypatch.context() as broken:
        broken.setattr(evidence, "gains", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            found.update(*laplace(seed + 1, 50))
    assert (found.draws, found.waiting) == (100, (50, 50))
    found.update()
    evidence._schedule.cache_clear()
    assert (found.draws, found.waiting) == (150, (0, 0))


@pytest.mark.parametrize(("calls", "share", "least"), [(True, 0.1, 8), (False, 0.25, 16)])
def test_more_is_drawn_at_a_time_where_one_call_makes_many(calls, share, least):
    sizes = []

    def one(x, rng):
        return x + rng.laplace()

    def many(x, size, rng):
        sizes.append(size)
        return x + rng.laplace(size=size)

    mechanism = dp.from_function(one) if calls else many
    verdict = dp.monitor(mechanism, (0.0, 0.0), "eps=2", max_n=120, rng=0)
    ends = verdict.evidence[:, 0]
    assert ends[-1] == 120
    step = monitors._pace(next(iter(sources(mechanism, (0.0, 0.0), rng=0))), dp.Sampling())
    assert step == (share, least)
    assert not sizes or max(sizes) <= 16


@pytest.mark.filterwarnings("error")
def test_a_side_without_any_number_is_no_reason_to_warn():
    watch = dp.Monitor("eps=1")
    numbers = np.random.default_rng(0).laplace(size=300).tolist()
    watch.update(["none"] * 300, [*numbers[:150], *["none"] * 150])
    assert watch.e_value >= 0


def test_a_peak_inside_a_batch_is_said_and_drawn():
    """The e-value may fall after the claim is refuted; the witness counts what its cells were bet on."""
    rng, watch = np.random.default_rng(33), dp.Monitor("eps=0.5", rng=33)
    watch.update(rng.laplace(size=700, scale=1.15), 1 + rng.laplace(size=700, scale=1.15))
    assert watch.violated
    assert watch.largest_e_value > watch.e_value
    assert f"at most {watch.largest_e_value:.3g} so far, violated after" in repr(watch)
    verdict = watch.verdict()
    assert verdict.witness.n_p < verdict.draws
    assert f"counted on {verdict.witness.n_p} of the {verdict.draws} draws a side" in str(verdict)
    drawn = watch.chart().to_dict()
    (mark,) = drawn["datasets"][drawn["layer"][-1]["data"]["name"]]
    assert mark["x"] == watch.refuted_at
    assert mark["y"] >= np.log(20)
    assert not dp.Monitor("eps=1").largest_e_value > 1


@pytest.mark.parametrize("given", ["abc", {"a": 1.0}])
def test_what_holds_no_outputs_is_not_blamed_on_a_mechanism(given):
    with pytest.raises(dp.errors.InvalidInput, match="is no array or list of outputs$"):
        dp.Monitor("eps=1").update(given, [1.0])


def test_a_monitor_that_detects_nothing_says_what_would_have_been_detected():
    found = dp.monitor(dp.zoo.Gaussian(1.0), (0.0, 1.0), "mu=1", max_n=400, rng=0)
    assert not found.violated
    assert re.search(r"would have detected μ = 1\.\d+ or more with", str(found))
