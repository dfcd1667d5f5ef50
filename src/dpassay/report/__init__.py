"""One self-contained HTML page: a verdict or an estimate, with everything that backs it.

    from dpassay import report

    report.write("audit.html", [verdict], command="dpassay audit ...")

The page asks nothing of the network, so it can go round by mail. Its charts are interactive where
scripts may run and drawings where they may not; the JSON of every result is inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpassay.report.page import render
from dpassay.results import Profile, Verdict

__all__ = ["render", "write"]


def write(
    path: str | Path,
    verdicts: Sequence[Verdict],
    *,
    profile: Profile | None = None,
    title: str = "",
    command: str = "",
    table: Sequence[Mapping[str, str]] | None = None,
) -> None:
    """Write the page `render` makes to a file."""
    page = render(verdicts, profile=profile, title=title, command=command, table=table)
    # the page names the hashes of its scripts: its line ends must stay as they are
    Path(path).write_bytes(page.encode("utf-8"))
