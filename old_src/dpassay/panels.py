"""Results as panels for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dpassay.hunting.result import Hunt, compared
from dpassay.results.estimates import LowerBound, Profile
from dpassay.results.verdict import Verdict
from dpassay.results.verification import Verification
from dpassay.results.view import capital
from dpassay.rounding import number
from dpassay.tables import Status

#: Lines of the log of a hunt.
_LISTED = 12


def panel(
    result: Verdict | Verification | LowerBound | Profile | Hunt,
    *,
    remedy: str = "",
    kept: str = "",
) -> Panel:
    """A result; `remedy` helps a blind audit, `kept` is its file."""
    if isinstance(result, Hunt):
        return _hunt(result, remedy, kept)
    view = result.view(kept) if kept else result.view()
    rows = Table.grid(padding=(0, 2))
    rows.add_column(width=8)
    rows.add_column(overflow="fold")
    for name, text in view.rows:
        rows.add_row(Text(name), Text(text))
    if isinstance(result, Verdict) and view.status is Status.BLIND:
        rows.add_row("next", Text(result.remedy or remedy))
    elif view.status is Status.CLEAR:
        helps = result.remedy if isinstance(result, Verdict) else ""
        more = helps or f"more {view.about.units or 'draws'} detect smaller violations"
        rows.add_row("next", f"this does not show that the claim holds; {more}")
    elif view.replay:
        first = "" if kept else f"add --json {view.file}, then "
        rows.add_row("next", Text(first + view.replay))
    return Panel(
        Group(Text("\n".join(view.summary)), rows),
        title=Text(capital(view.headline)),
        border_style=view.status.terminal,
    )


def _hunt(hunt: Hunt, remedy: str, kept: str) -> Panel:
    """The verdict on the pair that was found, the two inputs, and the pairs that were looked at."""
    styles = {"−": "red", "+": "green", " ": ""}
    inputs = [Text(f"{mark} {text}", style=styles[mark]) for mark, text in compared(hunt.pair)]
    listed = Table(title="kinds of pairs", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("kind", "tried", "coupled difference", "predicted", "seconds"):
        listed.add_column(heading)
    for one in hunt.families[:_LISTED]:
        values = (number(value) if value else "" for value in (one.difference, one.bound))
        listed.add_row(*map(Text, (one.name, str(one.tried), *values, f"{one.seconds:.1f}")))
    more = len(hunt.families) - _LISTED
    parts: list[Any] = [
        panel(hunt.verdict, remedy=remedy, kept=kept),
        Text(f"inputs ({hunt.pair.relation}); − only in the first, + only in the second"),
        *inputs,
        listed,
        *([Text(f"and {more:,} more")] if more > 0 else []),
        *(Text(f"suspicion: {text}") for text in hunt.suspicions),
        *(Text(f"note: {note}") for note in hunt.notes),
    ]
    title = f"{hunt.tried:,} pair{'s' * (hunt.tried != 1)}, {hunt.draws:,} draws"
    return Panel(Group(*parts), title=title, border_style=hunt.verdict.tone.terminal)
