"""The public surface, pinned."""

import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dpassay
from dpassay.privacy.provenance import About

PUBLIC = [
    "ApproximateDP",
    "AttackRates",
    "Belief",
    "Canaries",
    "CanaryPlan",
    "Claim",
    "Estimate",
    "Event",
    "Explanation",
    "Family",
    "Fault",
    "GaussianDP",
    "Guarantee",
    "Hunt",
    "KernelDensity",
    "LossCurve",
    "LowerBound",
    "Masses",
    "Mechanism",
    "Monitor",
    "Outcome",
    "Pair",
    "Plan",
    "Profile",
    "PureDP",
    "Relation",
    "RenyiCurve",
    "RenyiCurveDP",
    "RenyiDP",
    "Samples",
    "Sampling",
    "Spectrum",
    "Store",
    "TradeoffCurve",
    "TradeoffDP",
    "TradeoffPoint",
    "Verdict",
    "Verification",
    "Witness",
    "ZeroConcentratedDP",
    "__version__",
    "attack_rates",
    "audit",
    "audit_counts",
    "bound",
    "charts",
    "claim",
    "draw",
    "errors",
    "estimate",
    "from_command",
    "from_function",
    "from_samples",
    "hunt",
    "inputs",
    "monitor",
    "neighbours",
    "one_run",
    "plan",
    "plan_canaries",
    "pure",
    "renyi",
    "replay",
    "spectrum",
    "testing",
    "tradeoff",
    "verify",
    "with_features",
    "zoo",
]


def test_all_is_sorted_and_pinned():
    assert dpassay.__all__ == PUBLIC == sorted(PUBLIC)


def test_every_public_name_is_there():
    for name in PUBLIC:
        assert getattr(dpassay, name) is not None


def test_every_public_name_has_a_docstring():
    for name in PUBLIC:
        value = getattr(dpassay, name)
        assert isinstance(value, str) or value.__doc__, name


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(dpassay, "no_such_thing")


def test_a_name_that_has_moved_is_found_with_a_warning_that_says_where():
    with pytest.warns(DeprecationWarning, match=r"from dpassay\.privacy\.provenance import About"):
        assert dpassay.About is About
    assert not set(dpassay._MOVED) & set(PUBLIC)


def test_every_public_name_is_listed_in_the_stability_policy():
    page = (Path(__file__).parents[2] / "docs" / "stability.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)`", page.split("## What is public")[1].split("##")[0]))
    assert set(PUBLIC) == listed & {*PUBLIC, *dpassay._MOVED}


def test_the_sample_project_runs():
    """Its types are checked by `make check`."""
    program = Path(__file__).parents[1] / "sample_project" / "release_audit.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr  # dp.audit_counts(450, 1000, 184, 1000, "eps=0.5")
    assert "violation of 0.5-DP" in done.stdout


def test_import_is_lazy():
    code = "import sys, dpassay; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_import_costs_less_than_importing_numpy():
    def seconds(module: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        return time.perf_counter() - start

    seconds("dpassay"), seconds("numpy")
    runs = [(seconds("dpassay"), seconds("numpy")) for _ in range(5)]
    ours, numpys = (statistics.median(side) for side in zip(*runs, strict=True))
    assert ours < numpys


def test_the_testing_module_needs_no_import_of_its_own():
    code = "import dpassay as dp; assert issubclass(dp.testing.PrivacyViolation, AssertionError)"
    subprocess.run([sys.executable, "-c", code], check=True)
