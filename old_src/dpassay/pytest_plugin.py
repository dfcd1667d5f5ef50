"""The pytest plugin: settings for a suite, a marker, and one report for a whole test session.

Registered by the package and fast to load: only this file, `errors` and `settings` are imported until
a test asserts privacy and a report was asked for. Under pytest-xdist the workers send their results to
the controller.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import pytest

from dpassay import settings
from dpassay.errors import DpassayError, in_package

_KEY = "dpassay_results"
#: The most results of one test in the report.
_KEPT = 10
_MARKER = (
    "privacy(n, detects, flake, seed, loss, relation, holds_n, confidence): a test that asserts a "
    "privacy claim (dpassay); the options are defaults of its assertions"
)
#: Settings: their name in a configuration file and in the marker, the argument, and its type.
_OPTIONS = {
    "n": ("n", int, "draws per side per pair of assert_private, 20000 by default, for (ε, δ) more"),
    "detects": ("detects", float, "in place of n: the relative excess to be detected, such as 0.1"),
    "flake": ("flake", float, "largest probability of a wrong failure, 1e-6 by default"),
    "seed": ("rng", int, "the seed of assertions, 0 by default; none for a fresh one each time"),
    "loss": ("loss", str, 'the score of the outputs, "auto" by default; "values", "kde", …'),
    "relation": ("relation", str, "what makes inputs neighbours, for the record: replace, …"),
    "holds_n": ("holds_n", int, "draws per side per pair of assert_holds, 1000000 by default"),
    "confidence": ("confidence", float, "the confidence of assert_holds, 0.95 by default"),
}


def pytest_addoption(parser: Any) -> None:
    """`--dp-report=out.html`, and settings for the configuration file."""
    group = parser.getgroup("dpassay")
    what = "write one HTML report of all assertions of dpassay.testing"
    group.addoption("--dp-report", metavar="PATH", default=None, help=what)
    parser.addini("dp_report", "where to write the report, as --dp-report", default="")
    for name, (_, _, what) in _OPTIONS.items():
        parser.addini(f"dp_{name}", what)


def pytest_configure(config: Any) -> None:
    """Register the marker, read the settings, and collect results if a report is asked for."""
    config.addinivalue_line("markers", _MARKER)
    found = {
        argument: _read(f"dp_{name}", config.getini(f"dp_{name}"), kind)
        for name, (argument, kind, _) in _OPTIONS.items()
        if config.getini(f"dp_{name}")
    }
    if {"n", "detects"} <= found.keys():
        raise pytest.UsageError("dp_detects chooses the draws: leave dp_n or dp_detects out")
    if found:
        change = settings.using(**found)
        change.__enter__()
        config.add_cleanup(lambda: change.__exit__(None, None, None))
    place = config.getoption("--dp-report") or config.getini("dp_report")
    if place:
        config.pluginmanager.register(_Collector(config, _writable(place)), "dpassay-collector")


def _read(name: str, text: str, kind: type) -> Any:
    if name == "dp_seed" and text.strip().lower() == "none":
        return None
    if kind is str:
        return text.strip()
    most = math.inf if name == "dp_detects" else 1.0  # the claim says how much may be detected
    try:
        number = float(text.replace("_", ""))
        if not (number.is_integer() if kind is int else 0 < number < most):
            raise ValueError
        return kind(number)
    except ValueError:
        what, more = "a whole number", ""
        if kind is float:
            what = "a number"
            more = f"; it must be above 0{' and below 1' if most == 1 else ' (10 % is 0.1)'}"
        raise pytest.UsageError(f"{name} must be {what}, got {text!r}{more}") from None


def _writable(place: str) -> Path:
    """The path of the report, its folder made, or an error before the first test runs."""
    from dpassay.report import check_possible

    try:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        check_possible(Path(place))
    except OSError as error:
        raise pytest.UsageError(
            f"--dp-report: no folder for {place!r} can be made: {error}"
        ) from None
    except DpassayError as error:
        raise pytest.UsageError(f"--dp-report: {error}") from None
    return Path(place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Apply the marker's settings while its test runs."""
    found: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("privacy"))):  # the nearest last
        odd = set(marker.kwargs) - set(_OPTIONS)
        if odd or marker.args:
            given = ", ".join(sorted(odd)) or "an argument without a name"
            said = f"{item.nodeid}: the marker is {_MARKER.partition(':')[0]}, got {given}"
            pytest.fail(said, pytrace=False)
        own = {_OPTIONS[k][0]: v for k, v in marker.kwargs.items()}
        if {"n", "detects"} <= own.keys():
            pytest.fail(f"{item.nodeid}: detects chooses the draws: leave n out", pytrace=False)
        if "n" in own or "detects" in own:  # the nearer one counts
            found |= {"n": None, "detects": None}
        found |= ({"holds_n": own["n"]} if "n" in own else {}) | own  # n is that of all assertions
    with settings.using(**found):
        try:
            return (yield)
        except DpassayError as error:  # what is wrong is in the message, and not in our frames
            outside = [one for one in _frames(error) if not in_package(one.tb_frame)]
            outside[-1].tb_next = None
            raise


def _frames(error: Exception) -> Iterator[Any]:
    """The traceback of an exception, from the first frame on."""
    one = error.__traceback__
    while one is not None:
        yield one
        one = one.tb_next


class _Entry(NamedTuple):
    """An assertion: the class of its result and its JSON; or no class, the claim, and why."""

    test: str
    kind: str
    text: str
    claim: str = ""


class _Collector:
    """Keeps the results of the session, in the order of the tests."""

    def __init__(self, config: Any, path: Path) -> None:
        from dpassay import testing

        self.config = config
        self.path = path
        self.entries: list[_Entry] = []
        #: tests that are marked as tests of privacy
        self.marked: list[str] = []
        self.outcomes: dict[str, str] = {}
        self._test = ""
        testing.listeners.append(self._add)

    def _add(self, result: Any) -> None:
        from dpassay.testing import NoResult

        own = [k for k, one in enumerate(self.entries) if one.test == self._test]
        if len(own) == _KEPT:  # as under Hypothesis, whose last example is the one that it reports
            del self.entries[own[0]]
        if isinstance(result, NoResult):
            self.entries.append(_Entry(self._test, "", result.why, result.claim))
        else:
            self.entries.append(_Entry(self._test, type(result).__name__, result.to_json()))

    @pytest.hookimpl(tryfirst=True)  # before fixtures, which may fail
    def pytest_runtest_setup(self, item: Any) -> None:
        """Remember which test runs."""
        self._test = item.nodeid
        if item.get_closest_marker("privacy") is not None:
            self.marked.append(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember how a test ended."""
        if report.when == "call" or report.failed:
            outcome = report.outcome
            if hasattr(report, "wasxfail"):
                expected = {"skipped": "failed as expected", "passed": "passed unexpectedly"}
                outcome = expected.get(outcome, outcome)
            self.outcomes[report.nodeid] = outcome

    def pytest_sessionfinish(self, session: Any) -> None:
        """Hand the results to the controller, or write the report."""
        from dpassay import testing

        testing.listeners[:] = [one for one in testing.listeners if one != self._add]
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[_KEY] = [[*map(tuple, self.entries)], self.marked]
            return
        heard = {one.test for one in self.entries}
        self.entries += [
            _Entry(test, "", "ended before it asserted anything")
            for test in dict.fromkeys(self.marked)
            if test not in heard and self.outcomes.get(test) == "failed"
        ]
        self.entries.sort(key=lambda one: one.test)  # those of a test stay in their order
        if self.entries:
            self._write()

    @pytest.hookimpl(optionalhook=True)  # a hook of pytest-xdist, which need not be installed
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of pytest-xdist is done."""
        entries, marked = getattr(node, "workeroutput", {}).get(_KEY, ((), ()))
        self.entries += [_Entry(*one) for one in entries]
        self.marked += marked

    def _write(self) -> None:
        from dpassay.report import write
        from dpassay.results.verdict import Verdict
        from dpassay.results.verdict_text import detectable
        from dpassay.results.verification import Verification

        results, rows, more = [], [], []
        for one in self.entries:
            file, _, name = one.test.partition("::")
            row = {
                "test": name or file,
                "claim": _short(one.claim),
                "certified": "nothing",
                "result": "",
            }
            row |= {"smallest detectable": "", "outcome": self._ended(one.test), "file": file}
            if not one.kind:
                more.append(row | {"result": shorten(f"no result: {one.text}", 120)})
                continue
            result = (Verdict if one.kind == "Verdict" else Verification).from_json(one.text)
            row |= {"claim": result.claim.short, "result": result.tone.label}
            if isinstance(result, Verdict):
                why = f"{result.tone.label}: {result.blind}"
                row["result"] = shorten(why, 200) if result.blind else result.tone.label
                row["smallest detectable"] = detectable(result)[0]
            if isinstance(result, Verdict) or result.statement:
                row["certified"] = result.bound
            results.append(result)
            rows.append(row)
        command = shlex.join(["pytest", *map(str, self.config.invocation_params.args)])
        top: dict[str, Any] = {"title": "Privacy tests", "command": command, "lead": self._lead()}
        write(self.path, results, table=rows, more=more, **top)

    def _ended(self, test: str) -> str:
        return self.outcomes.get(test, "not known")

    def _lead(self) -> tuple[str, str, str]:
        """The status, title and sentence of the page: about tests, not about claims."""
        tests = {one.test for one in self.entries}
        ended = Counter(map(self._ended, tests))
        bad = sum(k for word, k in ended.items() if word not in ("passed", "failed as expected"))
        total = f"{len(tests)} privacy test" + ("s" if len(tests) > 1 else "")
        said = f"Of {total}, " + ", ".join(f"{k} {word}" for word, k in sorted(ended.items())) + "."
        if _KEPT in Counter(one.test for one in self.entries).values():
            said += f" Of each test the last {_KEPT} results are shown."
        if not bad:
            said += (
                " A test that passes detected no violation. That does not show that a claim holds."
            )
            return "clear", "No test failed", said
        failed = "1 test failed" if bad == 1 else f"{bad} tests failed"
        if bad != ended["failed"]:
            failed = f"{bad} of {total} failed or passed unexpectedly"
        return "violation", failed, said

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the report is, or that there is none."""
        if hasattr(self.config, "workeroutput"):
            return
        said = f"no test asserted privacy, {self.path} was not written"
        if self.entries:
            found = sum(bool(one.kind) for one in self.entries)
            without = len(self.entries) - found
            said = "1 result" if found == 1 else f"{found} results"
            said += f", {without} without a result" if without else ""
            said += f" in {self.path}"
        terminalreporter.write_line(f"dpassay: {said}")


def _short(claim: str) -> str:
    """A claim as results print it."""
    from dpassay.privacy.claim_parsing import claim as parsed

    try:
        return parsed(claim).short
    except ValueError:
        return claim
