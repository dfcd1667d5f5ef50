"""dp.bound: the largest certified value without a claim."""

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay import zoo
from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import parameter

PAIR = (0.0, 1.0)
GAUSSIAN = zoo.Gaussian(1.0)
#: What is asked for, the truth for N(0, 1) against N(1, 1), and how near a bound from 20 000 draws comes.
ASKED = {
    "eps, delta=0.01": (2.318, 0.75),
    "delta, eps=1": (0.1269, 0.7),
    "mu": (1.0, 0.9),
    "rho": (0.5, 0.85),
    "renyi(order=2)": (1.0, 0.8),
}


@pytest.mark.parametrize("of", ASKED)
def test_every_parameter_is_bounded_from_below_and_nearly_reached(of, seeds):
    truth, share = ASKED[of]
    if of == "eps, delta=0.01":
        assert GAUSSIAN.delta(truth, PAIR) == pytest.approx(0.01, rel=0.01)
    if of == "delta, eps=1":
        assert GAUSSIAN.delta(1.0, PAIR) == pytest.approx(truth, rel=0.01)
    found = [dp.bound(GAUSSIAN, PAIR, of, n=20_000, rng=seed).value for seed in seeds[:9]]
    assert np.median(found) > share * truth
    assert sum(value > truth for value in found) <= binom.ppf(1 - 0.01 / 15, 9, 0.05)


def test_a_bound_exceeds_the_truth_no_more_often_than_gamma(seeds):
    mechanism = zoo.Laplace(1.0)
    wrong = sum(
        dp.bound(mechanism, PAIR, n=300, confidence=0.9, rng=seed).value > 1.0
        for seed in seeds[:200]
    )
    assert wrong <= binom.ppf(1 - 0.01 / 3, 200, 0.1)


def test_identical_inputs_are_bounded_by_nothing(seeds):
    wrong = sum(
        dp.bound(zoo.Laplace(1.0), (0.0, 0.0), n=500, rng=seed).value > 0 for seed in seeds[:100]
    )
    assert wrong <= binom.ppf(1 - 0.01 / 3, 100, 0.05)


def test_no_claim_gives_a_clearly_larger_bound_than_none(seeds):
    """The bound without a claim is that of an audit, whatever the claim."""
    mechanism = zoo.Laplace(1.0)
    free = np.median([dp.bound(mechanism, PAIR, n=20_000, rng=s).value for s in seeds[:9]])
    for claim in (0.3, 0.8, 1.0):
        audits = [
            dp.audit(mechanism, PAIR, dp.PureDP(claim), n=20_000, rng=s).lower_bound
            for s in seeds[:9]
        ]
        assert np.median(audits) == pytest.approx(free, rel=0.03)


def test_a_bound_carries_its_witness_and_replays(seed):
    mechanism = zoo.Laplace(1.0)
    found = dp.bound(mechanism, PAIR, n=10_000, rng=seed)
    again = dp.LowerBound.from_json(found.to_json())
    assert again == found
    assert "witness: output" in str(found)
    assert sum(share for _, share in found.budget) == pytest.approx(0.05)
    assert dp.replay(again, mechanism, claim="eps=0.5", n=10_000, rng=seed + 1).violated
    assert dp.replay(again, mechanism, n=1000, rng=seed + 1).claim == dp.PureDP(found.value)
    with pytest.raises(InvalidInput, match="claim"):
        dp.replay(again.witness, mechanism, n=1000)


def test_several_pairs_and_samples(seed):
    found = dp.bound(zoo.Laplace(1.0), [(0.0, 0.1), (0.0, 1.0)], n=4000, rng=seed)
    assert found.pair.second == 1.0
    assert len(found.pairs) == 2
    rng = np.random.default_rng(seed)
    p, q = np.round(rng.laplace(size=(2, 4000)), 6)
    assert dp.bound(dp.from_samples(p, q + 1), of="mu").value > 0.5


@pytest.mark.parametrize(
    "of",
    ["", "epsilon=1", "delta", "eps, delta", "eps delta=1", "mu, eps=1", "renyi", "sigma", 3, None],
)
def test_what_cannot_be_bounded_is_named(of):
    with pytest.raises(InvalidInput):
        dp.bound(zoo.Laplace(1.0), PAIR, of, n=1000)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("eps", dp.PureDP(0.0)),
        ("ε", dp.PureDP(0.0)),
        ("epsilon; delta=1e-5", dp.ApproximateDP(0.0, 1e-5)),
        ("delta, eps=1", dp.ApproximateDP(1.0, 0.0, headline="delta")),
        ("rho, delta=1e-6", dp.ZeroConcentratedDP(0.0, 1e-6)),
        ("Renyi(alpha=2.5)", dp.RenyiDP(2.5, 0.0)),
    ],
)
def test_what_is_asked_for_is_read_from_text(text, claim):
    assert parameter(text) == claim


def test_a_claim_stands_for_its_parameter(seed):
    one = dp.bound(GAUSSIAN, PAIR, "mu", n=2000, rng=seed)
    other = dp.bound(GAUSSIAN, PAIR, dp.GaussianDP(0.7), n=2000, rng=seed)
    assert one.value == other.value


@pytest.mark.parametrize("confidence", [0.5, 0.6, 0.65])
def test_a_low_confidence_refutes_what_a_higher_one_does(confidence):
    verdict = dp.audit_counts(
        900, 1000, 100, 1000, "eps=0.5", likelier="first", confidence=confidence
    )
    assert verdict.violated
    assert verdict.lower_bound > 2.0
