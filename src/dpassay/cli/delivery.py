"""What commands hand over: panels, JSON, reports, exit statuses."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from dpassay.cli.inputs import write_json
from dpassay.panels import profile_panel, verdict_panel
from dpassay.results import Profile, Verdict

#: What helps an audit that could not have seen anything.
PLAN = "more draws (dpassay plan says how many)"


def status(verdicts: Sequence[Verdict]) -> int:
    """How a command ends that delivers these."""
    tones = {verdict.tone for verdict in verdicts}
    return 1 if "violation" in tones else 4 if "blind" in tones else 0


def deliver(
    verdicts: list[Verdict],
    profile: Profile | None,
    *,
    json: str | None,
    report: Path | None,
    quiet: bool,
    remedy: str = "",
) -> None:
    """The result as a panel, as JSON and as a report, as asked; `remedy` is for a blind verdict."""
    results: list[Any] = [*verdicts] if profile is None else [profile]
    if len(results) == 1:
        write_json(json, results[0].to_json(indent=2))
    else:
        inner = ",\n".join(result.to_json(indent=2) for result in results)
        write_json(json, f"[{inner}]")
    if report is not None:
        from dpassay.report import write

        write(report, verdicts, profile=profile, command=command_line())
    if quiet or json == "-":
        return
    console = Console()
    for verdict in verdicts:
        console.print(verdict_panel(verdict, remedy))
    if profile is not None:
        console.print(profile_panel(profile))
    if report is not None:
        console.print(f"The report: {report}")


def command_line() -> str:
    """What was typed, with the program's name in place of its path."""
    return shlex.join(["dpassay", *(a for a in sys.argv[1:] if a != "--debug")])
