"""When an audit that refutes nothing is blind."""

import math

import pytest

import dpassay as dp
from dpassay.bounds.joint_test import Counts, evidence
from dpassay.bounds.power import smallest_detectable
from dpassay.results.blindness import far_above, why_blind


@pytest.mark.parametrize(
    ("one", "near", "far"),
    [
        (dp.PureDP(0.1), 1.09, 1.1),
        (dp.PureDP(3.0), 5.99, 6.0),
        (dp.ApproximateDP(2.0, 1e-5), 3.99, 4.0),
        (dp.ApproximateDP(2.0, 1e-5, headline="delta"), 0.1, 0.10001),
        (dp.ApproximateDP(2.0, 0.3, headline="delta"), 0.59, 0.6),
        (dp.ApproximateDP(2.0, 0.9, headline="delta"), 0.99, 1.0),
        (dp.GaussianDP(1.0), 1.99, 2.0),
        (dp.ZeroConcentratedDP(0.5), 1.99, 2.001),  # μ = 1 and 2
        (dp.ZeroConcentratedDP(0.5, 1e-6), 1.99, 2.001),
        (dp.RenyiDP(10, 5.0), 19.9, 20.01),
        (dp.RenyiCurveDP((2, 10), (2.0, 5.0)), 3.99, 4.001),
        (dp.TradeoffDP([(0, 1), (1, 0)]), 0.49, 0.5),
        (dp.TradeoffDP([(0, 1), (1, 0)], gap=0.8), 0.99, 1.0),
    ],
)
def test_what_is_far_above_a_claim(one, near, far):
    assert not far_above(one, one.value)
    assert not far_above(one, near)
    assert far_above(one, far)
    assert far_above(one, math.inf)
    assert far_above(one, math.nan)


@pytest.mark.parametrize(
    "claim",
    [
        dp.PureDP(0.0),
        dp.PureDP(1.0),
        dp.PureDP(3.0),
        dp.ApproximateDP(1.0, 0.3),
        dp.ApproximateDP(1.0, 0.01, headline="delta"),
        dp.GaussianDP(1.0),
        dp.ZeroConcentratedDP(0.5),
    ],
    ids=str,
)
def test_where_no_counts_could_refute_the_claim_all_of_them_are_blind(claim):
    looked_at = 0
    for n, m, gamma in [
        (2, 2, 0.05),
        (6, 6, 0.01),
        (30, 30, 0.0125),
        (8, 100, 1e-3),
        (100, 3, 0.01),
    ]:
        if evidence(Counts(n, n, 0, m), claim, gamma).p_value <= gamma:
            continue
        for i, j in [(0, 0), (0, m), (n // 2, 0), (n // 2, m // 2), (n, 0), (n, m - 1), (n, m)]:
            counts = Counts(i, n, j, m)
            looked_at += 1
            least = smallest_detectable(counts, claim, gamma)
            assert why_blind(claim, False, least, counts).words
    assert looked_at


def test_a_sound_generator_of_tables_with_text_is_not_too_weak():
    """Every table is different; its features were searched, and none tells the inputs apart."""
    import pandas as pd

    def table(data, rng):
        return pd.DataFrame({"age": rng.integers(18, 90, 20), "job": rng.choice(["a", "b"], 20)})

    found = dp.audit(dp.from_function(table), (0, 1), "eps=1", n=600, rng=0)
    assert found.unlearned
    assert "no score separated the two inputs" in str(found)
