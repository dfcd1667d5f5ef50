"""P-values in closed form: by full enumeration, against a grid, and beside the joint test."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.bounds import joint_test as joint
from dpassay.bounds.ordering import Counts, kl
from dpassay.errors import InvalidInput

CLAIMS = [
    dp.PureDP(0.0),
    dp.PureDP(0.7),
    dp.ApproximateDP(0.5, 0.05),
    dp.GaussianDP(0.7),
    dp.RenyiDP(3, 0.3),
    dp.TradeoffDP([(0.0, 0.9), (0.2, 0.5), (1.0, 0.0)]),
    dp.TradeoffDP([(0.0, 0.9), (0.2, 0.5), (1.0, 0.0)], ordered=True),  # g(0) > 0
]
BOUNDARY = np.concatenate(
    [np.geomspace(1e-6, 0.02, 60), np.linspace(0.02, 0.98, 200), 1 - np.geomspace(1e-6, 0.02, 60)]
)


def of_all(n, m, p_value):
    return np.array(
        [[p_value(Counts(i, n, j, m)) for j in range(m + 1)] for i in range(n + 1)], dtype=float
    )


def excess(n, m, claim, found):
    """The largest P(p ≤ α)/α along the boundary of the claim, over all α that are met."""
    p = np.asarray(claim.region(BOUNDARY))
    on_p = binom.pmf(np.arange(n + 1), n, p[:, None])
    on_q = binom.pmf(np.arange(m + 1), m, BOUNDARY[:, None])
    order = np.argsort(found, axis=None, kind="stable")
    alpha = found.ravel()[order]
    mass = np.einsum("ki,kj->kij", on_p, on_q).reshape(BOUNDARY.size, -1)[:, order]
    # those with the same p-value count as well, and all of them below 1
    last = np.append(alpha[1:] > alpha[:-1], False)
    return float(np.max((np.cumsum(mass, axis=1) / alpha)[:, last]))


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(12, 12), (7, 25), (25, 7)])
def test_it_is_a_p_value_at_every_level(n, m, claim):
    found = of_all(n, m, lambda c: joint.chernoff_p_value(c, claim))
    assert found.min() < 0.06
    assert excess(n, m, claim, found) <= 1.0


@pytest.mark.parametrize("claim", CLAIMS[1:4], ids=str)
def test_with_the_joint_test_above_it_is_one_too(claim):
    """A large γ, so that outcomes which can be enumerated are below where the joint test ends."""
    n, gamma = 24, 0.8
    spent = joint.SPENT_ON_SET * gamma
    found = of_all(n, n, lambda c: joint.p_value(c, claim, gamma=gamma))
    assert (found < spent).sum() > 3
    assert excess(n, n, claim, found) <= 1.0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(
    "counts", [(700, 1000, 150, 1000), (300, 500, 30, 2000), (40, 9000, 2, 9000)]
)
def test_the_distance_is_never_above_what_a_grid_finds_and_near_it(counts, claim):
    i, n, j, m = counts
    q = np.sin(np.linspace(0, np.pi / 2, 200_001 if claim.quick else 4001)) ** 2
    p = np.asarray(claim.region(q))
    x, y = i / n, j / m
    with np.errstate(divide="ignore"):
        values = n * kl(x, np.minimum(p, x)) + m * kl(y, np.maximum(q, y))
    least, found = float(values.min()), joint.chernoff_distance(Counts(*counts), claim)
    assert found <= least + 1e-9
    assert found >= (0.99 if claim.quick else 0.94) * least - 0.01


def test_it_is_too_large_by_the_factor_that_is_said():
    for counts, claim in [
        ((450, 1000, 184, 1000), dp.GaussianDP(0.3)),
        ((200, 75_000, 3, 75_000), dp.PureDP(1.0)),
        ((6000, 20_000, 4000, 20_000), dp.PureDP(0.2)),
    ]:
        c = Counts(*counts)
        s, said = joint.chernoff_distance(c, claim), joint.chernoff_p_value(c, claim)
        # the joint test with less spent on its confidence set
        exact = min(joint._p_value(c, claim, b) for b in (1e-12, 1e-18, 1e-24, 1e-30))
        assert 1.0 < said / exact < 3 * (1 + s) * math.sqrt(4 * math.pi * s)


def test_counts_in_another_order_are_shown_in_the_order_that_is_read():
    with pytest.raises(InvalidInput, match="hits before the draws.* 1,000 of 450 and 1,000 of 184"):
        dp.audit_counts(1000, 450, 1000, 184, "eps=0.5")


def test_verdicts_say_how_small_it_is():
    verdict = dp.audit_counts(9000, 20_000, 2000, 20_000, "eps=1", likelier="first")
    assert verdict.violated
    assert verdict.p_value == pytest.approx(1e-300, rel=1e-6)
    assert dp.audit_counts(450, 1000, 184, 1000, "eps=0.5").p_value < 2e-5
    # from the one into the other
    found = [
        dp.audit_counts(450, 1000, hits, 1000, "eps=0.5", likelier="first").p_value
        for hits in range(170, 215, 3)
    ]
    assert found == sorted(found)
    assert found[0] < 1e-7 < 1e-4 < found[-1]


def test_what_is_inside_the_claim_is_no_evidence():
    assert joint.chernoff_p_value(Counts(3, 10, 5, 10), dp.PureDP(0.0)) == 1.0
    assert joint.chernoff_p_value(Counts(12, 100, 10, 100), dp.PureDP(1.0)) == 1.0
    assert joint.chernoff_p_value(Counts(0, 10, 0, 10), dp.PureDP(1.0)) == 1.0
    assert joint.chernoff_p_value(Counts(10, 10, 10, 10), dp.PureDP(0.0)) == 1.0
