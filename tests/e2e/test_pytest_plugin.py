"""assert_private, and the plugin in a pytest of its own."""

import re
import textwrap

import numpy as np
import pytest
from tests.helpers import pytest_in

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.testing import AuditTooWeak, PrivacyViolation, assert_private

TESTS = """
import dpassay as dp, pytest
from dpassay.testing import assert_holds, assert_private

@pytest.mark.privacy
def test_good():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000)

def test_bad():
    assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000)

def test_weak():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=100)

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000)

def test_holds():
    assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1.2, delta=0.01", n=20_000)

def test_not_shown():
    assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1", n=5000)
"""


def test_a_false_claim_fails_with_the_witness_in_the_message():
    with pytest.raises(
        PrivacyViolation,
        match=r"not 1-DP: ε ≥ [\d.]+ on 0.0 and 1.0\n  wrong with probability 1e-06",
    ) as caught:
        assert_private(dp.zoo.Laplace(0.5), (0.0, 1.0), dp.PureDP(1.0), n=4000)
    assert "output" in str(caught.value)
    assert caught.value.verdict.violated
    assert caught.value.verdict.confidence == 1 - 1e-6


def test_a_test_that_could_not_see_does_not_pass():
    with pytest.raises(
        AuditTooWeak, match=r"too weak: a large violation of 1-DP could have been missed: "
    ) as caught:
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=100)
    verdict, said = caught.value.verdict, str(caught.value)
    assert verdict.tone == "blind"
    assert verdict.blind in said
    for remedy in ("100 draws a side", "larger n", "13,211 draws", "larger flake", "flake=1e-06"):
        assert remedy in said
    assert isinstance(caught.value, AssertionError)
    assert not isinstance(caught.value, PrivacyViolation)
    assert assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000).tone == "clear"


def test_too_few_draws_to_test_are_a_test_that_is_too_weak():
    with pytest.raises(
        AuditTooWeak, match="too weak: a large violation of eps=1 could have been missed: "
    ) as caught:
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=20)
    assert caught.value.verdict is None
    assert "(dp.plan and dpassay plan say how many)" in str(caught.value)
    assert "(flake = 1 − confidence)" in str(caught.value)


@pytest.mark.parametrize(
    ("pair", "output", "said"),
    [
        ((1.0, 1.0), None, "give two inputs that differ"),
        ((0.0, 1.0), None, "look at what the mechanism returns"),
        ((0.0, 1.0), 3.0, "look at what the mechanism returns"),
    ],
)
def test_no_remedy_is_named_that_cannot_help(pair, output, said):
    with pytest.raises(AuditTooWeak) as caught:
        assert_private(dp.from_function(lambda x: output), pair, "eps=1", n=1000)
    assert said in str(caught.value)
    assert "larger n" not in str(caught.value)
    assert "larger flake" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"claim": (1e-5, 2.0)}, "delta must be a number"),
        ({"claim": ("eps=1", "mu=1")}, "takes one claim"),
        ({"claim": "eps=1", "sampling": {"workers": 2}}, r"sampling must be a dp\.Sampling, got "),
    ],
)
def test_wrong_arguments_are_named(given, said):
    with pytest.raises(InvalidInput, match=said):
        assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), n=1000, **given)


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


@pytest.mark.parametrize("more", [(), ("-n", "2"), ("-p", "no:xdist")])
def test_one_report_for_a_session(more, tmp_path):
    place = "build/reports/out.html"  # in folders that are made
    done = pytest_in(tmp_path, f"--dp-report={place}", *more, test_mine_py=TESTS)
    assert done.returncode == 1
    assert "3 failed, 2 passed, 1 xfailed" in done.stdout
    assert f"6 results in {place}" in done.stdout
    page = (tmp_path / place).read_text(encoding="utf-8")
    cells = {
        name: re.findall(rf'<td data-column="{name}">(.*?)</td>', page)
        for name in ("test", "result", "outcome", "smallest detectable")
    }
    tests = [re.sub(r"<.*?>", "", cell) for cell in cells["test"]]
    assert cells["smallest detectable"][1].startswith("ε = 1.")
    assert list(zip(tests, cells["result"], cells["outcome"], strict=True)) == [
        ("test_bad", "violation", "failed"),
        ("test_good", "none detected", "passed"),
        ("test_holds", "verified", "passed"),
        ("test_known", "violation", "failed as expected"),
        ("test_not_shown", "not verified", "failed"),
        (
            "test_weak",
            "too weak: even on the best event only ε = 2.709 or more would have been detected with "
            "probability 0.9",
            "failed",
        ),
    ]
    assert '<strong><span class="sign" aria-hidden="true">✕</span>3 tests failed' in page
    for kind, times in (("violation", 2), ("clear", 1), ("blind", 1), ("confirmed", 1)):
        assert page.count(f'<details class="verdict {kind}">') == times
    assert len(page) < 2_000_000


ERRORS = """
import dpassay as dp, pytest
from dpassay.testing import assert_holds, assert_private, hunt_private

def fails(x, size, rng):
    raise RuntimeError("out of cheese")

@pytest.fixture
def broken():
    raise OSError("no model")

def test_good():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000)

def test_raises():
    assert_private(fails, (0.0, 1.0), "eps=1", n=4000)

def test_few():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=20)

def test_claim():
    assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "epsilon one", n=4000)

def test_hunt():
    hunt_private(fails, dp.inputs.Integer(0, 9), "eps=1", relation="nothing", budget=30_000)

@pytest.mark.privacy
def test_fixture(broken):
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=4000)

def test_other(broken):
    pass
"""


def test_tests_that_end_with_an_error_are_in_the_report(tmp_path):
    done = pytest_in(tmp_path, "--dp-report=out.html", "-n", "2", test_mine_py=ERRORS)
    assert "4 failed, 1 passed, 2 errors" in done.stdout
    assert "1 result, 5 without a result in out.html" in done.stdout
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    cells = {
        name: re.findall(rf'<td data-column="{name}">(.*?)</td>', page)
        for name in ("test", "result", "outcome")
    }
    tests = [re.sub(r"<.*?>", "", cell) for cell in cells["test"]]
    wanted = {
        "test_good": ("none detected", "passed"),
        "test_claim": ("no result: InvalidInput: cannot read", "failed"),
        "test_few": (
            "no result: AuditTooWeak: too weak: a large violation of eps=1 could have been missed: "
            "15 draws",
            "failed",
        ),
        "test_fixture": ("no result: ended before it asserted anything", "failed"),
        "test_hunt": ("no result: InvalidInput: ", "failed"),
        "test_raises": ("no result: MechanismRaised: ", "failed"),
    }
    assert tests == list(wanted)
    for verdict, ended, (said, how) in zip(
        cells["result"], cells["outcome"], wanted.values(), strict=True
    ):
        assert verdict.startswith(said)
        assert ended == how
    assert "5 tests failed" in page
    assert "Of 6 privacy tests, 5 failed, 1 passed." in page


WEAK = """
import dpassay as dp
from dpassay.testing import assert_private

def test_weak():
    claim = "eps=1, delta=1e-5"
    assert_private(dp.zoo.RandomizedResponse(0.1), (0, 1), claim, n=20_000)
"""


def test_a_test_that_is_too_weak_says_why_in_the_report(tmp_path):
    pytest_in(tmp_path, "--dp-report=out.html", test_mine_py=WEAK)
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    (cell,) = re.findall(r'<td data-column="result">(.*?)</td>', page)
    assert cell.startswith("too weak: with 20,000 draws a side only ε = 2.711 or more")
    assert "Give n=152_111" in cell
    assert "No violation detected." not in page


def test_a_failure_shows_the_line_of_the_test_and_no_frame_of_the_package(tmp_path):
    test = textwrap.dedent("""
        import dpassay as dp

        def broken(x, size, rng):
            return {}["missing"]

        def test_it():
            dp.audit(broken, (0, 1), "eps=1", n=2000)
    """)
    done = pytest_in(tmp_path, test_mine_py=test)
    assert "it raised KeyError: 'missing'" in done.stdout
    assert "audits.py" not in done.stdout


def test_a_session_of_errors_alone_has_a_report(tmp_path):
    done = pytest_in(tmp_path, "--dp-report=out.html", "-k", "raises", test_mine_py=ERRORS)
    assert "0 results, 1 without a result in out.html" in done.stdout
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "1 test failed" in page
    assert "out of cheese" in page


def test_an_expected_failure_is_no_alarm(tmp_path):
    mine = TESTS.partition("@pytest.mark.xfail")
    done = pytest_in(
        tmp_path,
        "--dp-report=out.html",
        test_mine_py=TESTS.partition("@")[0] + "".join(mine[1:]).partition("def test_holds")[0],
    )
    assert "1 xfailed" in done.stdout
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert '<div class="banner clear">' in page
    assert "Of 1 privacy test, 1 failed as expected." in page


LONG = """
import numpy as np
from dpassay.testing import assert_private

def release(x, size, rng):
    return x.sum() + rng.laplace(scale=0.5, size=size)

def fails(x, size, rng):
    raise RuntimeError("out of cheese")

def test_long():
    one = np.zeros(500)
    assert_private(release, (one, np.where(np.arange(500) == 137, 1.0, one)), "eps=1", n=4000)

def test_fails():
    assert_private(fails, (0.0, 1.0), "eps=1", n=4000)

def test_nothing():
    assert_private(lambda x, size, rng: None, (0.0, 1.0), "eps=1", n=4000)

def test_claim():
    assert_private(release, (0.0, 1.0), "epsilon one", n=4000)
"""


def test_tracebacks_end_at_the_assertion(tmp_path):
    done = pytest_in(tmp_path, test_long_py=LONG)
    said = done.stdout
    assert "4 failed" in said
    assert "two arrays of 500 that differ at [137]: 0.0 against 1.0" in said
    assert "RuntimeError: out of cheese" in said
    assert "is a `return` missing?" in said
    assert "cannot read 'epsilon one'" in said
    for ours in ("audits.py", "stages.py", "samples.py", "text.py", "testing.py:"):
        assert ours not in said


def test_a_mechanism_without_a_result_is_told_apart():
    with pytest.raises(AuditTooWeak, match="the output is None every time.*`return` missing"):
        assert_private(dp.from_function(lambda x: None), (0.0, 1.0), "eps=1", n=1000)


SETTINGS = """
import dpassay as dp, pytest
from dpassay.testing import assert_private

def audited(**given):
    verdict = assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", **given)
    return verdict.about.n[0], round(1 - verdict.confidence, 9), verdict.about.seed

def test_file():
    assert audited() == (3000, 0.001, 7)

@pytest.mark.privacy(n=4000, seed=8)
def test_marker():
    assert audited() == (4000, 0.001, 8)

@pytest.mark.privacy(n=4000)
def test_argument():
    assert audited(n=5000, flake=0.01, rng=9) == (5000, 0.01, 9)

@pytest.mark.privacy(draws=4000)
def test_wrong():
    audited()
"""


def test_settings_come_from_the_file_the_marker_and_the_call(tmp_path):
    ini = "[pytest]\ndp_n = 3e3\ndp_flake = 1e-3\ndp_seed = 7\ndp_report = out.html\n"
    done = pytest_in(tmp_path, test_mine_py=SETTINGS, pytest_ini=ini)
    assert "3 passed" in done.stdout
    assert "test_wrong: the marker is privacy(n, detects, flake, seed, loss" in done.stdout
    assert "pytest_runtest_call" not in done.stdout  # the message, not our code
    assert "3 results, 1 without a result in out.html" in done.stdout
    assert "privacy(n, detects, flake" in pytest_in(tmp_path, "--markers").stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--dp-report=test_mine.py/out.html", "no folder for 'test_mine.py/out.html' can be made"),
        ("--dp-report=.", "cannot be written"),
        ("-odp_n=many", "dp_n must be a whole number, got 'many'"),
        ("-odp_flake=0", "got '0'; it must be above 0 and below 1"),
        ("-odp_detects=10%", "got '10%'; it must be above 0 (10 % is 0.1)"),
        ("-odp_confidence=95", "got '95'; it must be above 0 and below 1"),
        ("-odp_n=100 -odp_detects=0.1", "leave dp_n or dp_detects out"),
        ("-odp_n=2.5", "dp_n must be a whole number, got '2.5'"),
        ("-odp_flake=often", "dp_flake must be a number, got 'often'"),
        ("--dp-report=out.pdf", "a report is an HTML page"),
    ],
)
def test_what_cannot_be_is_said_before_the_first_test(given, said, tmp_path):
    done = pytest_in(tmp_path, *given.split(), test_mine_py="def test_one():\n    print('ran')\n")
    assert done.returncode == 4
    assert said in done.stderr
    assert "passed" not in done.stdout


def test_a_session_without_privacy_tests_writes_no_report(tmp_path):
    done = pytest_in(tmp_path, "--dp-report=out.html", test_mine_py="def test_one(): pass")
    assert done.returncode == 0
    assert "no test asserted privacy, out.html was not written" in done.stdout
    assert not (tmp_path / "out.html").exists()


def test_results_are_in_no_report_unless_asked_for(tmp_path):
    done = pytest_in(tmp_path, "-k", "good", test_mine_py=TESTS)
    assert "1 passed" in done.stdout
    assert "dpassay" not in done.stdout


LOSS = """
import pytest, dpassay as dp
from dpassay.testing import assert_private

def naive(x, size, rng):
    return x + rng.laplace(size=size)

def test_values():
    verdict = assert_private(naive, (0.0, 1.0), "eps=1", n=4000)
    assert not verdict.witness.event.of_representation
    assert verdict.witness.pair.relation is dp.Relation.REPLACE_ONE

@pytest.mark.privacy(loss="bits")
def test_bits():
    with pytest.raises(AssertionError, match="floating-point representation"):
        assert_private(naive, (0.0, 1.0), "eps=1", n=4000)

def test_excess():
    assert min(assert_private(dp.zoo.DiscreteLaplace(1.0), (0, 1), "eps=1").about.n) == 20_000

@pytest.mark.privacy(detects=0.04)
def test_smaller_excess():
    assert min(assert_private(dp.zoo.DiscreteLaplace(1.0), (0, 1), "eps=1").about.n) > 25_000
"""


def test_the_loss_and_the_relation_are_settings_too(tmp_path):
    ini = "[pytest]\ndp_loss = values\ndp_relation = replace\ndp_detects = 0.2\n"
    assert "4 passed" in pytest_in(tmp_path, test_mine_py=LOSS, pytest_ini=ini).stdout


def test_a_seed_has_two_names():
    box, pair = dp.zoo.Laplace(1.0), (0.0, 1.0)
    one, other = (assert_private(box, pair, "eps=1", n=2000, **{k: 5}) for k in ("seed", "rng"))
    assert one.to_json() == other.to_json()
    with pytest.raises(dp.errors.InvalidInput, match="the same option"):
        assert_private(box, pair, "eps=1", n=2000, seed=1, rng=1)


def test_n_of_the_marker_is_that_of_every_assertion(tmp_path):
    code = """
import pytest
import dpassay as dp
from dpassay.testing import assert_holds

@pytest.mark.privacy(n=3000)
class TestHolds:
    def test_n(self):
        found = assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1.3, delta=0.01")
        assert found.about.n == (3000, 3000)

    @pytest.mark.privacy(holds_n=4000)
    def test_holds_n(self):
        found = assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1.3, delta=0.01")
        assert found.about.n == (4000, 4000)
"""
    assert "2 passed" in pytest_in(tmp_path, test_mine_py=code).stdout


def test_an_excess_out_of_reach_shows_nothing_of_the_code_of_dpassay(tmp_path):
    test = """
import dpassay as dp
from dpassay.testing import assert_private

def test_planned():
    assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", detects=1e-4)
"""
    done = pytest_in(tmp_path, test_mine_py=test)
    assert "AuditTooWeak: to detect an excess of 0.01 % over 1-DP takes" in done.stdout
    assert "detecting.py" not in done.stdout
    assert "def audit_detecting" not in done.stdout
