"""A few cases of OpenDP, run against the release that is pinned: `make test-libraries`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from libraries import opendp, runner

FEW = 4_000
#: OpenDP draws from the system, and its noise is exactly at the claim: no seed makes these tests repeat.
SURE = 1 - 1e-9
CASES = {case.name: case for case in opendp.cases()}
SOUND = ["Laplace, integers", "Laplace, doubles, bits", "noisy max, pure", "count", "two counts"]


@pytest.mark.parametrize("name", SOUND)
def test_sound_measurements_are_not_refuted(name):
    found = runner.audited(replace(CASES[name], n=FEW), seed=1)
    assert found.verdict == "clear"
    assert 0.5 * found.claimed < found.lower_bound


def test_a_finding_is_found_again_and_replayed():
    found = runner.audited(CASES["thresholded Laplace, integers"], seed=1)
    assert found.verdict == "violation"
    assert found.replay.p_value <= runner.GAMMA


def test_names_are_unique_and_findings_name_cases_that_there_are():
    assert len(CASES) == len(list(opendp.cases()))
    assert {name for finding in opendp.FINDINGS for name in finding.cases} <= CASES.keys()


def test_measurements_state_their_own_claim():
    import opendp.prelude as odp

    import dpassay as dp

    odp.enable_features("contrib", "honest-but-curious")
    number = odp.atom_domain(T=float, nan=False)
    noise = odp.m.make_laplace(number, odp.absolute_distance(T=float), scale=0.5)
    verdict = dp.audit(noise, (0.0, 1.0), n=FEW, confidence=SURE, rng=0)
    assert (str(verdict.claim), verdict.violated) == ("2-DP", False)
    bounded = odp.vector_domain(odp.atom_domain(bounds=(0, 10)))
    total = odp.t.make_sum(bounded, odp.symmetric_distance()) >> odp.m.then_laplace(scale=10.0)
    assert str(dp.audit(total, ([1, 2], [1, 2, 10]), n=500, rng=0).claim) == "1-DP"
    vectors = odp.vector_domain(number, 2)
    gaussian = odp.m.make_gaussian(vectors, odp.l2_distance(T=float), scale=1.0)
    pair = ([0.0, 0.0], [0.0, 1.0])
    assert str(dp.audit(gaussian, pair, n=500, rng=0).claim) == "0.5-zCDP"
    profile = odp.c.make_zCDP_to_approxDP(gaussian)
    assert str(dp.audit(profile, pair, n=500, rng=0).claim) == "f-DP"
    fixed = odp.c.make_fix_delta(profile, 1e-6)
    assert dp.audit(fixed, pair, n=500, rng=0).claim.delta == 1e-6


def test_a_hunt_takes_everything_from_the_measurement():
    import opendp.prelude as odp

    import dpassay as dp

    odp.enable_features("contrib")
    bounded = odp.vector_domain(odp.atom_domain(bounds=(0, 10)))
    total = odp.t.make_sum(bounded, odp.symmetric_distance()) >> odp.m.then_laplace(scale=10.0)
    found = dp.hunt(total, budget=40_000, confidence=SURE, rng=0)
    assert (str(found.verdict.claim), found.violated) == ("1-DP", False)
    assert found.verdict.lower_bound > 0.5
    assert {len(found.pair[0]) - len(found.pair[1])} <= {1, -1}
    bits = odp.m.make_randomized_response_bool(0.75)
    assert set(dp.hunt(bits, budget=2_000, rng=0).pair) == {False, True}
