"""assert_private, and the plugin in a pytest of its own."""

import subprocess
import sys

import pytest

import dpassay as dp
from dpassay.testing import PrivacyViolation, assert_private

TESTS = """
import dpassay as dp, pytest
from dpassay.testing import assert_private

@pytest.mark.privacy
def test_good():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000)

def test_bad():
    assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000)
"""


def test_a_false_claim_fails_with_the_witness_in_the_message():
    with pytest.raises(
        PrivacyViolation, match=r"not 1-DP: ε ≥ .* wrong with probability 1e-06"
    ) as caught:
        assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), dp.PureDP(1.0), n=4000)
    assert "output" in str(caught.value)
    assert caught.value.verdict.violated
    assert caught.value.verdict.confidence == 1 - 1e-6


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
    assert "1 failed, 1 passed" in done.stdout
    assert "2 verdicts in out.html" in done.stdout
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "test_mine.py::test_good" in page
    assert "test_mine.py::test_bad" in page
