"""A few cases of OpenDP, run against the release that is pinned: `make test-libraries`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from libraries import opendp, runner

FEW = 4_000
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
