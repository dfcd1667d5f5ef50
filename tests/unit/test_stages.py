"""What the three stages say together."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.auditing.stages import Certificate, _test_events
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import detectable, shown


def measured(claim, *rows):
    """Events with their counts, and shares of γ = 0.05."""
    found = SimpleNamespace(swapped=False)
    events = [
        SimpleNamespace(threshold=found, event=name, share=share, order=None)
        for name, _, share in rows
    ]
    choice = SimpleNamespace(claim=claim, events=events)
    tests, _ = _test_events(choice, np.array([row for _, row, _ in rows]), 0.05, False, 0.0)
    return Certificate(0.0, 1.0, tests, np.inf, None, [])


def test_what_any_of_the_events_would_catch_is_detectable():
    """A rare event with nearly all of the error probability, listed first, hides nothing."""
    claim = dp.PureDP(0.5)
    rare, often = ("rare", (5, 7500, 3, 7500), 0.9), ("often", (4552, 7500, 2869, 7500), 0.1)
    for rows in ((rare, often), (often, rare)):
        found = measured(claim, *rows)
        assert found.detectable == detectable(0.38, 7500, 7500, claim, 0.005)
        assert found.detectable_on == ("" if found.best.found.event == "often" else "often")
    assert measured(claim, rare).detectable > 2


def test_an_event_that_shows_less_than_another_catches_as_much_later():
    claim = dp.PureDP(1.0)
    whole, part = (
        ("whole", (1470, 15_000, 541, 15_000), 0.5),
        ("part", (6000, 15_000, 5000, 15_000), 0.5),
    )
    assert shown(Counts(*part[1]), claim)[0] == pytest.approx(np.log(1.2))
    value, error = shown(Counts(*whole[1]), claim)
    assert value == pytest.approx(1.0, abs=1e-3)
    assert error == pytest.approx(np.sqrt((1 - 0.098) / 1470 + (1 - 0.036) / 541), rel=0.05)
    alone, together = measured(claim, part).detectable, measured(claim, part, whole)
    assert alone < together.detectable == measured(claim, whole).detectable
    assert together.detectable_on == ("" if together.best.found.event == "whole" else "whole")


def test_audits_of_whole_numbers_are_not_called_blind(seeds):
    """ε = 0.5 in full on likely events, where rarer ones got most of the error probability."""
    said = []
    for seed in seeds[:12]:
        verdict = dp.audit(dp.zoo.DiscreteLaplace(2.0), (0, 1), "eps=0.5", n=2000, rng=seed)
        assert verdict.tone != "blind"
        said.append(verdict.smallest_detectable)
    assert 0.6 < np.median(said) < 0.75
    caught = sum(
        dp.audit(dp.zoo.DiscreteLaplace(1 / least), (0, 1), "eps=0.5", n=2000, rng=seed).violated
        for seed, least in zip(seeds[12:24], said, strict=True)
    )
    assert caught >= binom.ppf(0.001, 12, 0.85)


@pytest.mark.parametrize(("claim", "half"), [("rho=0.5", 0.5), ("renyi(order=2)=0.7", 1.0)])
def test_a_divergence_that_is_said_to_be_detected_is(claim, half, seeds):
    """Gaussian noise with the stated parameter: an event, or a clipped score, shows less of it."""
    value, caught = float(claim.rpartition("=")[2]), 0
    for seed in seeds[:20]:
        sound = dp.zoo.Gaussian((half / value) ** 0.5)
        verdict = dp.audit(sound, (0.0, 1.0), claim, n=8000, rng=seed)
        least = verdict.smallest_detectable
        assert value < least < 1.6 * value
        assert "with Gaussian noise would be detected" in verdict.power_statement
        broken = dp.zoo.Gaussian((half / least) ** 0.5)
        caught += dp.audit(broken, (0.0, 1.0), claim, n=8000, rng=seed + 1).violated
    assert caught >= binom.ppf(0.001, 20, 0.85)
