"""Output of commands: JSON, reports, panels, exit statuses."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from json import dumps
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from dpassay.cli.options import Out
from dpassay.cli.supervisor import say
from dpassay.errors import InvalidInput
from dpassay.hunting.result import Hunt
from dpassay.tables import Status

#: What helps an audit that could not have detected anything.
PLAN = "more draws (dpassay plan says how many)"


def exit_status(results: Sequence[Any]) -> int:
    """The exit status of a command with these results."""
    tones = {one.verdict.tone if isinstance(one, Hunt) else one.tone for one in results}
    statuses = {Status.VIOLATION: 1, Status.BLIND: 4, Status.UNSHOWN: 5}
    return next((status for tone, status in statuses.items() if tone in tones), 0)


def deliver(results: Sequence[Any], out: Out, remedy: str = "") -> None:
    """Results as JSON, as a report and as panels, as asked; then the end of the command.

    Files come first: a terminal that takes no more must not lose them. What cannot be written is raised
    at the end, when the result has been said; a verdict that ends with a status of its own keeps it.

    remedy    what helps an audit that could not have seen anything
    """
    from dpassay.panels import panel

    texts = [one.to_json(indent=2) for one in results]
    text = texts[0] if len(texts) == 1 else "[" + ",\n".join(texts) + "]"
    failed: list[Exception] = []

    def attempt(write: Callable[..., None], *arguments: Any, **options: Any) -> None:
        try:
            write(*arguments, **options)
        except Exception as error:
            failed.append(error)

    if out.json != "-":
        attempt(write_text, out.json, text)
    if out.report is not None:
        command = shlex.join(["dpassay", *(a for a in sys.argv[1:] if a != "--debug")])
        attempt(write_report, out.report, results, command=command)
    if out.json == "-":
        write_text("-", text)
    elif not out.quiet:
        console = Console()
        for one in results:
            console.print(panel(one, remedy=remedy, kept=out.json or ""))
        if out.report is not None and not failed:
            console.print(f"The report: {out.report}")
    status = exit_status(results)
    for error in failed:
        if status not in (1, 4):
            raise error
        say(str(error))
    raise typer.Exit(status)


def print_result(result: Any, out: Out) -> None:
    """A result that is no verdict: as JSON, and as text unless the JSON is on stdout."""
    write_text(out.json, result.to_json(indent=2))
    if out.json != "-":
        typer.echo(str(result))


def write_text(place: str | None, text: str) -> None:
    """Write text to a file, or to stdout if the place is "-"; JSON, or Markdown."""
    if place == "-":
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:  # characters are in strings alone, where JSON can escape them
            text = re.sub(r"[^\x00-\x7f]", lambda found: dumps(found[0])[1:-1], text)
        typer.echo(text)
    elif place is not None:
        try:
            Path(place).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"{place} cannot be written: {error}") from None


def write_report(place: Path, results: Any, **options: Any) -> None:
    """Write an HTML page, or say why that cannot be."""
    from dpassay.report import write

    try:
        write(place, results, **options)
    except OSError as error:
        raise InvalidInput(f"{place} cannot be written: {error}") from None
