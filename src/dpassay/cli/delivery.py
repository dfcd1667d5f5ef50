"""What commands hand over: panels, JSON, reports, exit statuses."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from dpassay.cli.groups import Out
from dpassay.cli.inputs import write_json, write_report
from dpassay.cli.supervisor import say
from dpassay.hunting.result import Hunt
from dpassay.panels import panel
from dpassay.results.estimates import LowerBound
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

    Files come first: a terminal that takes no more must not lose them. What cannot be written is raised
    at the end, when the result has been said; a verdict that ends with a status of its own keeps it.
    """
    json, report = out.json, out.report
    made: list[Any] = [*results] if profile is None else [profile]
    text = made[0].to_json(indent=2)
    if len(made) > 1:
        text = "[" + ",\n".join(result.to_json(indent=2) for result in made) + "]"
    failed: list[Exception] = []

    def tried(write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:
            failed.append(error)

    if json != "-":
        tried(lambda: write_json(json, text))
    if report is not None:
        more = {"profile": profile, "command": command_line()}
        tried(lambda: write_report(report, results, **more))
    if json == "-":
        write_json(json, text)
    elif not out.quiet:
        console = Console()
        for one in made:
            console.print(panel(one, remedy=remedy, kept=json or ""))
        if report is not None and not failed:
            console.print(f"The report: {report}")
    for error in failed:
        if not (verdicts := _verdicts(results)) or not status(verdicts):
            raise error
        say(str(error))


def deliver_bound(bound: LowerBound, out: Out, kept: str = "") -> None:
    """A bound as JSON and as a panel; `kept` is where an event of it can be replayed from."""
    if out.json != "-":
        write_json(out.json, bound.to_json(indent=2))
        if not out.quiet:
            Console().print(panel(bound, kept=kept))
    else:
        write_json("-", bound.to_json(indent=2))


def _verdicts(results: Sequence[Verdict | Verification | Hunt]) -> list[Verdict]:
    """The verdicts among results."""
    held = [one.verdict if isinstance(one, Hunt) else one for one in results]
    return [one for one in held if isinstance(one, Verdict)]


def command_line() -> str:
    """What was typed, with the program's name in place of its path."""
    return shlex.join(["dpassay", *(a for a in sys.argv[1:] if a != "--debug")])
