"""One self-contained HTML page: verdicts, hunts, verifications or an estimate, with all that backs them.

    from dpassay import report

    report.write("audit.html", [verdict], command="dpassay audit ...")

The page asks nothing of the network, so it can go round by mail. Its charts are interactive where
scripts may run and drawings where they may not; the JSON of every result is inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpassay.hunting.result import Hunt
from dpassay.privacy.curves import Spectrum
from dpassay.report.embed import need_extras
from dpassay.report.page import render
from dpassay.results import Profile, Verdict, Verification

__all__ = ["need_extras", "render", "write"]


def write(
    path: str | Path,
    results: Sequence[Verdict | Verification | Spectrum | Hunt],
    *,
    profile: Profile | None = None,
    title: str = "",
    command: str = "",
    table: Sequence[Mapping[str, str]] | None = None,
    lead: tuple[str, str, str] | None = None,
) -> None:
    """Write the page `render` makes to a file."""
    page = render(results, profile=profile, title=title, command=command, table=table, lead=lead)
    # the page names the hashes of its scripts: its line ends must stay as they are
    Path(path).write_bytes(page.encode("utf-8"))
