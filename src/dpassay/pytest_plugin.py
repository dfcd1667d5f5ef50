"""The pytest plugin: settings for a suite, a marker, and one report for a whole test session.

Registered by the package and light to load: nothing but this file and `settings` is imported until a
test asserts privacy with a report asked for. Under pytest-xdist the workers send their results to the
controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpassay import settings

_KEY = "dpassay_results"
_MARKER = (
    "privacy(n=None, flake=None, seed=None): a test that asserts a privacy claim (dpassay); n, flake and "
    "seed are what its assertions take where they are given none"
)


def pytest_addoption(parser: Any) -> None:
    """`--dp-report=out.html`, and settings for the configuration file."""
    group = parser.getgroup("dpassay")
    group.addoption(
        "--dp-report",
        metavar="PATH",
        default=None,
        help="write one HTML report of all assertions of dpassay.testing",
    )
    parser.addini("dp_report", "where to write the report, as --dp-report", default="")
    parser.addini("dp_n", "draws per side per pair of assert_private where it is given none")
    parser.addini("dp_flake", "how often assert_private may fail wrongly, 1e-6 by default")
    parser.addini("dp_seed", "the seed of assertions, 0 by default; none for a fresh one each time")


def pytest_configure(config: Any) -> None:
    """Register the marker, read the settings, and collect results if a report is asked for."""
    config.addinivalue_line("markers", _MARKER)
    found = {
        name: _read(f"dp_{ini}", config.getini(f"dp_{ini}"), kind)
        for name, ini, kind in (("n", "n", int), ("flake", "flake", float), ("rng", "seed", int))
        if config.getini(f"dp_{ini}")
    }
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
    try:
        number = float(text.replace("_", ""))
        return number if kind is float else _whole(number)
    except ValueError:
        what = "a number" if kind is float else "a whole number"
        raise pytest.UsageError(f"{name} must be {what}, got {text!r}") from None


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError
    return int(number)


def _writable(place: str) -> Path:
    """The path of the report, or an error before the first test runs."""
    from dpassay.errors import InvalidInput, MissingExtra
    from dpassay.report import check_place, need_extras

    path = Path(place)
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise pytest.UsageError(
            f"--dp-report: {place!r} cannot be written; give a file in a folder that exists"
        )
    try:
        check_place(path)
        need_extras()
    except (InvalidInput, MissingExtra) as error:
        raise pytest.UsageError(f"--dp-report: {error}") from None
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Let the marker's settings hold while its test runs."""
    found: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("privacy"))):  # the nearest last
        odd = set(marker.kwargs) - {"n", "flake", "seed"}
        if odd or marker.args:
            said = f"{item.nodeid}: the marker is {_MARKER.partition(':')[0]}"
            pytest.fail(said, pytrace=False)
        found |= {"rng" if k == "seed" else k: v for k, v in marker.kwargs.items()}
    with settings.using(**found):
        return (yield)


class _Collector:
    """Keeps the results of the session, in the order of the tests."""

    def __init__(self, config: Any, path: Path) -> None:
        from dpassay import testing

        self.config = config
        self.path = path
        #: (test, class of the result, its JSON); where there is none the claim, and why
        self.results: list[tuple[str, str, str]] = []
        self.without: list[tuple[str, str, str]] = []
        #: tests that are marked as tests of privacy
        self.marked: list[str] = []
        self.outcomes: dict[str, str] = {}
        self._test = ""
        testing.listeners.append(self._add)

    def _add(self, result: Any) -> None:
        if hasattr(result, "why"):
            self.without.append((self._test, result.claim, result.why))
        else:
            self.results.append((self._test, type(result).__name__, result.to_json()))

    @pytest.hookimpl(tryfirst=True)  # before fixtures, which may fail
    def pytest_runtest_setup(self, item: Any) -> None:
        """Remember which test runs."""
        self._test = item.nodeid
        if item.get_closest_marker("privacy") is not None:
            self.marked.append(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember how a test ended."""
        if report.when == "call" or report.failed:
            expected = hasattr(report, "wasxfail")
            word = {
                ("passed", False): "passed",
                ("failed", False): "failed",
                ("skipped", True): "failed as expected",
                ("passed", True): "passed unexpectedly",
            }
            self.outcomes[report.nodeid] = word.get((report.outcome, expected), report.outcome)

    def pytest_sessionfinish(self, session: Any) -> None:
        """Hand the results to the controller, or write the report."""
        from dpassay import testing

        testing.listeners[:] = [one for one in testing.listeners if one != self._add]
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[_KEY] = [self.results, self.without, self.marked]
            return
        if self.results or self._unsaid():
            self._write()

    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of pytest-xdist is done."""
        found = getattr(node, "workeroutput", {}).get(_KEY, ((), (), ()))
        self.results += [(test, kind, text) for test, kind, text in found[0]]
        self.without += [(test, claim, why) for test, claim, why in found[1]]
        self.marked += found[2]

    def _unsaid(self) -> list[tuple[str, str, str]]:
        """Assertions without a result, and marked tests that came to none and did not end well."""
        heard = {test for test, _, _ in (*self.results, *self.without)}
        silent = [
            (test, "", "ended before it asserted anything")
            for test in dict.fromkeys(self.marked)
            if test not in heard and self.outcomes.get(test) == "failed"
        ]
        return sorted([*self.without, *silent], key=lambda found: found[0])

    def _write(self) -> None:
        from dpassay.report import write
        from dpassay.results.rounding import number
        from dpassay.results.verdict import Verdict
        from dpassay.results.verification import Verification

        rows, results = [], []
        # a stable sort: the assertions of a test stay in their order
        for test, kind, text in sorted(self.results, key=lambda found: found[0]):
            result = (Verdict if kind == "Verdict" else Verification).from_json(text)
            results.append(result)
            if isinstance(result, Verdict):
                measured = f"{result.claim.symbol} ≥ {number(result.lower_bound)}"
            else:
                measured = result.bound if result.holds else "nothing"
            rows.append(
                {
                    "test": test,
                    "claim": str(result.claim),
                    "measured": measured,
                    "verdict": result.tone.label,
                    "test ended": self.outcomes.get(test, "not known"),
                }
            )
        unsaid = [
            {
                "test": test,
                "claim": claim,
                "measured": "nothing",
                "verdict": f"no result: {why}",
                "test ended": self.outcomes.get(test, "not known"),
            }
            for test, claim, why in self._unsaid()
        ]
        write(
            self.path,
            results,
            title="Privacy tests",
            command=f"pytest --dp-report={self.path}",
            table=rows,
            more=unsaid,
            lead=self._lead(),
        )

    def _lead(self) -> tuple[str, str, str]:
        """The tone, headline and sentence of the page: about tests, not about claims."""
        found = (*self.results, *self._unsaid())
        tests = list(dict.fromkeys(test for test, _, _ in found))
        ended = Counter(self.outcomes.get(test, "not known") for test in tests)
        bad = sum(k for word, k in ended.items() if word not in ("passed", "failed as expected"))
        total = f"{len(tests)} privacy test" + ("s" if len(tests) > 1 else "")
        said = f"Of {total}, " + ", ".join(f"{k} {word}" for word, k in sorted(ended.items())) + "."
        if not bad:
            note = "A test that passes found no violation; it shows no more than its result says."
            return "clear", "No test failed", f"{said} {note}"
        failed = "1 test failed" if bad == 1 else f"{bad} tests failed"
        if bad != ended["failed"]:
            failed = f"{bad} of {total} did not end as they should"
        return "violation", failed, said

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the report is, or that there is none."""
        if hasattr(self.config, "workeroutput"):
            return
        unsaid = len(self._unsaid())
        if self.results or unsaid:
            many = "1 result" if len(self.results) == 1 else f"{len(self.results)} results"
            more = f", {unsaid} without a result" if unsaid else ""
            terminalreporter.write_line(f"dpassay: {many}{more} in {self.path}")
        else:
            terminalreporter.write_line(
                f"dpassay: no test asserted privacy, {self.path} was not written"
            )
