"""`dpassay report`: a page, or a draft of a bug report, from results that were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpassay.cli.app import command
from dpassay.cli.delivery import write_report, write_text
from dpassay.cli.mechanisms import earlier
from dpassay.errors import InvalidInput
from dpassay.results.verdict import Verdict


@command()
def report(
    result: Annotated[Path, typer.Argument(help="A result that was written with --json.")],
    issue: Annotated[
        bool, typer.Option("--issue", help="A bug report in Markdown instead of an HTML page.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write; a bug report goes to the terminal by default."),
    ] = None,
) -> None:
    """Write a page, or a bug report for the maintainers, from a saved result.

    Exit status: 0 done, 2 bad input, 3 an internal error.

    Example: dpassay report verdict.json --out verdict.html

    Example: dpassay report --issue verdict.json --out issue.md
    """
    found = earlier(result)
    if not issue:
        write_report(out or result.with_suffix(".html"), found)
        return
    from dpassay.report.issue import issue as draft

    verdicts = [one for one in found if isinstance(one, Verdict)]
    refuted = [one for one in verdicts if one.violated] or verdicts
    if not refuted:
        raise InvalidInput(f"{result} holds no verdict: a bug report is about a violation")
    text = "\n".join(map(draft, refuted))
    write_text("-" if out is None else str(out), text.removesuffix("\n"))
