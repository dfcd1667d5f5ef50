"""assert_private, and the plugin in a pytest of its own."""

import re
import subprocess
import sys

import numpy as np
import pytest

import dpassay as dp
from dpassay.testing import AuditTooWeak, PrivacyViolation, assert_private

TESTS = """
import dpassay as dp, pytest
from dpassay.testing import assert_private

@pytest.mark.privacy
def test_good():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000)

def test_bad():
    assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000)

def test_weak():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=100)
"""


def test_a_false_claim_fails_with_the_witness_in_the_message():
    with pytest.raises(
        PrivacyViolation, match=r"not 1-DP: ε ≥ .* wrong with probability 1e-06"
    ) as caught:
        assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), dp.PureDP(1.0), n=4000)
    assert "output" in str(caught.value)
    assert caught.value.verdict.violated
    assert caught.value.verdict.confidence == 1 - 1e-6


def test_a_test_that_could_not_see_does_not_pass():
    with pytest.raises(AuditTooWeak, match=r"could not have seen a violation of 1-DP: ") as caught:
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=100)
    verdict, said = caught.value.verdict, str(caught.value)
    assert verdict.tone == "blind"
    assert verdict.blind in said
    for remedy in ("100 draws a side", "larger n", "dp.plan", "larger flake", "flake=1e-06"):
        assert remedy in said
    assert isinstance(caught.value, AssertionError)
    assert not isinstance(caught.value, PrivacyViolation)
    assert assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000).tone == "clear"


def test_both_bounds_are_in_the_message():
    with pytest.raises(PrivacyViolation) as caught:
        assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1, delta=0.01", n=4000)
    other = caught.value.verdict.second
    assert other.symbol == "δ"
    assert other.lower > 0.01
    assert f"and δ ≥ {other.lower:.4g} at ε = 1, claimed 0.01; both at once" in str(caught.value)


def test_the_relation_and_the_loss_are_passed_on():
    def release(x, size, rng):
        return np.round(x + rng.laplace(size=size), 6)

    verdict = assert_private(
        release, (0.0, 1.0), "eps=1", n=4000, relation="add_remove", loss="knn"
    )
    assert verdict.witness.pair.relation is dp.Relation.ADD_REMOVE
    auto = assert_private(release, (0.0, 1.0), "eps=1", n=4000)
    assert auto.witness.pair.relation is dp.Relation.UNSPECIFIED
    assert "knn" in verdict.about.method
    assert "knn" not in auto.about.method


def test_a_true_claim_passes_and_is_the_same_every_time():
    first, second = (
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), dp.PureDP(1.0), n=4000) for _ in range(2)
    )
    assert first.to_json() == second.to_json()


def test_a_loose_flake_is_passed_on():
    verdict = assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=2000, flake=0.01)
    assert verdict.confidence == 0.99


@pytest.mark.parametrize("workers", [0, 2])
def test_one_report_for_a_session(workers, tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--strict-markers",
        "--dp-report=out.html",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, *(["-n", str(workers)] if workers else [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert "3 verdicts in out.html" in done.stdout
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "test_mine.py::test_good" in page
    assert "test_mine.py::test_bad" in page
    rows = re.findall(r'<td data-column="verdict">(.*?)</td>', page)
    assert rows == ["violation", "none detected", "could not see"]
    for kind in ("violation", "clear", "blind"):
        assert page.count(f'<details class="verdict {kind}">') == 1
