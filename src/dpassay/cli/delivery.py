"""What commands hand over: panels, JSON, reports, exit statuses."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel

from dpassay.cli.groups import Out
from dpassay.cli.inputs import write_json, write_report
from dpassay.hunting.result import Hunt
from dpassay.panels import hunt_panel, profile_panel, verdict_panel, verification_panel
from dpassay.results.profile import Profile
from dpassay.results.verdict import Verdict
from dpassay.results.verification import Verification

#: What helps an audit that could not have seen anything.
PLAN = "more draws (dpassay plan says how many)"


def status(verdicts: Sequence[Verdict]) -> int:
    """How a command ends that delivers these."""
    tones = {verdict.tone for verdict in verdicts}
    return 1 if "violation" in tones else 4 if "blind" in tones else 0


def deliver(
    results: Sequence[Verdict | Verification | Hunt],
    profile: Profile | None,
    *,
    out: Out,
    remedy: str = "",
) -> None:
    """The result as a panel, as JSON and as a report, as asked; `remedy` is for a blind verdict.

    The panel comes first: whatever becomes of the files, the result has been said.
    """
    json, report = out.json, out.report
    console, said = Console(), not out.quiet and json != "-"
    if said:
        for one in results:
            console.print(_panel(one, remedy, json or ""))
        if profile is not None:
            console.print(profile_panel(profile))
    made: list[Any] = [*results] if profile is None else [profile]
    if len(made) == 1:
        write_json(json, made[0].to_json(indent=2))
    else:
        inner = ",\n".join(result.to_json(indent=2) for result in made)
        write_json(json, f"[{inner}]")
    if report is not None:
        write_report(report, results, profile=profile, command=command_line())
        if said:
            console.print(f"The report: {report}")


def _panel(result: Verdict | Verification | Hunt, remedy: str, kept: str) -> Panel:
    match result:
        case Verification():
            return verification_panel(result)
        case Hunt():
            return hunt_panel(result, remedy)
    return verdict_panel(result, remedy, kept)


def command_line() -> str:
    """What was typed, with the program's name in place of its path."""
    return shlex.join(["dpassay", *(a for a in sys.argv[1:] if a != "--debug")])
