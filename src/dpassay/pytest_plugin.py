"""The pytest plugin: a marker, and one report for a whole test session.

Registered by the package and light to load: nothing but this file is imported until a test asserts
privacy with `--dp-report` given. Under pytest-xdist the workers send their verdicts to the controller.
"""

from __future__ import annotations

from typing import Any

_KEY = "dpassay_verdicts"
_SAID = {"violation": "violation", "clear": "none detected", "blind": "could not see"}


def pytest_addoption(parser: Any) -> None:
    """`--dp-report=out.html`."""
    group = parser.getgroup("dpassay")
    group.addoption(
        "--dp-report",
        metavar="PATH",
        default=None,
        help="write one HTML report of all dpassay.testing.assert_private calls",
    )


def pytest_configure(config: Any) -> None:
    """Register the marker, and collect verdicts if a report is asked for."""
    config.addinivalue_line("markers", "privacy: a test that asserts a privacy claim (dpassay)")
    if config.getoption("--dp-report"):
        config.pluginmanager.register(_Collector(config), "dpassay-collector")


class _Collector:
    """Keeps the verdicts of the session, in the order of the tests."""

    def __init__(self, config: Any) -> None:
        from dpassay import testing

        self.config = config
        self.verdicts: list[tuple[str, str]] = []
        self._test = ""
        testing.listeners.append(self._add)

    def _add(self, verdict: Any) -> None:
        self.verdicts.append((self._test, verdict.to_json()))

    def pytest_runtest_setup(self, item: Any) -> None:
        """Remember which test runs."""
        self._test = item.nodeid

    def pytest_sessionfinish(self, session: Any) -> None:
        """Hand the verdicts to the controller, or write the report."""
        from dpassay import testing

        testing.listeners[:] = [one for one in testing.listeners if one != self._add]
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[_KEY] = self.verdicts
            return
        if self.verdicts:
            self._write()

    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of pytest-xdist is done."""
        found = getattr(node, "workeroutput", {}).get(_KEY, ())
        self.verdicts += [(test, text) for test, text in found]

    def _write(self) -> None:
        from dpassay.report import write
        from dpassay.results import Verdict, number

        rows, verdicts = [], []
        for test, text in sorted(self.verdicts):
            verdict = Verdict.from_json(text)
            verdicts.append(verdict)
            rows.append(
                {
                    "test": test,
                    "claim": str(verdict.claim),
                    "measured": f"{verdict.claim.symbol} ≥ {number(verdict.lower_bound)}",
                    "verdict": _SAID[verdict.tone],
                }
            )
        path = self.config.getoption("--dp-report")
        write(
            path, verdicts, title="Privacy tests", command=f"pytest --dp-report={path}", table=rows
        )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the report is."""
        if self.verdicts:
            path = self.config.getoption("--dp-report")
            terminalreporter.write_line(f"dpassay: {len(self.verdicts)} verdicts in {path}")
