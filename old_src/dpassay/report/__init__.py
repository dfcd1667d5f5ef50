"""One self-contained HTML page: verdicts, hunts, verifications or an estimate, with all that backs them.

    from dpassay import report

    report.write("audit.html", [verdict], command="dpassay audit ...")

The page loads nothing, so it can be sent by mail. Its charts are interactive where scripts may run and
drawings where they may not; it contains the JSON of every result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpassay import validation as checks
from dpassay.errors import InvalidInput
from dpassay.report.embed import need_extras
from dpassay.report.page import render
from dpassay.results.estimates import Profile

__all__ = ["check_possible", "render", "write"]

#: Endings of files that are no pages.
_OTHERS = (".pdf", ".json", ".csv", ".parquet", ".npy", ".png", ".svg", ".txt", ".md", ".docx")


def write(
    path: str | Path,
    results: Any,
    *,
    profile: Profile | None = None,
    title: str = "",
    command: str = "",
    table: Sequence[Mapping[str, str]] | None = None,
    more: Sequence[Mapping[str, str]] = (),
    lead: tuple[str, str, str] | None = None,
) -> None:
    """Write verdicts, verifications, spectra or a profile, one or several, as a page.

    results    what the page shows: a result, or a list of them
    profile    the estimates of a single verdict which has none; otherwise a section of its own
    title      the title of the page
    command    what reproduces it, for the record
    table      rows to stand at the top, the columns in the order of the first; one with a row for each
               of several results names them by its first column
    more       rows below those, which belong to no result
    lead       (tone, headline, sentence) in place of what the results say together

    >>> import tempfile
    >>> import dpassay as dp
    >>> verdict = dp.audit_counts(450, 1000, 184, 1000, "eps=0.5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "audit.html"
    ...     write(place, verdict, command="dpassay counts 450 1000 184 1000 --claim eps=0.5")
    ...     "Violation" in place.read_text(encoding="utf-8")
    True
    """
    check_place(path)
    top: dict[str, Any] = {"title": title, "command": command, "table": table, "lead": lead}
    page = render(results, profile=profile, more=more, **top)
    # the page contains hashes of its scripts: line ends must not be translated
    Path(path).write_bytes(page.encode("utf-8"))


def check_place(path: Any) -> None:
    """Refuse the name of a file that is no page."""
    if not isinstance(path, (str, Path)):
        raise InvalidInput(
            f"path must be the name of a file, got {checks.shown(path)}; write "
            'report.write("audit.html", [verdict])'
        )
    if Path(path).suffix.lower() in _OTHERS:
        raise InvalidInput(
            f"a report is an HTML page, and {str(path)!r} names another kind of file; write "
            f"{Path(path).with_suffix('.html').name}"
        )


def check_possible(path: Path) -> None:
    """Refuse, before anything is computed, a page that could not be written."""
    check_place(path)
    need_extras()
    checks.writable("report", path)
