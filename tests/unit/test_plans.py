"""How many draws it takes."""

import math

import pytest

import dpassay as dp
from dpassay.errors import InvalidInput


def test_a_plan_is_what_the_power_says():
    plan = dp.plan(dp.PureDP(0.5), excess=1.0, event=math.exp(-1) / 2)
    assert 155 <= plan.held_out <= 170  # Laplace, the event below 0
    assert dp.plan(dp.PureDP(0.5), excess=1.0).held_out < plan.held_out  # the best of all events
    assert plan.draws == math.ceil(plan.held_out / 0.75)
    assert "draws a side" in str(plan)
    assert dp.plan("eps=1", excess=0.1).draws > dp.plan("eps=1", excess=0.2).draws
    assert dp.Plan.from_json(plan.to_json()).draws == plan.draws
    with pytest.raises(InvalidInput, match="excess"):
        dp.plan("eps=1", excess=0.0)


@pytest.mark.parametrize("claim", ["rho=.5", dp.RenyiDP(2, 0.5)])
def test_claims_that_events_do_not_exhaust_are_planned_too(claim):
    plan = dp.plan(claim, excess=2.0)
    assert 10 < plan.held_out < 1000
