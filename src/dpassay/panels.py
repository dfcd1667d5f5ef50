"""Results as panels for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.panel import Panel
from rich.table import Table

from dpassay.hunting.result import Hunt, compared
from dpassay.privacy.pairs import Relation
from dpassay.privacy.provenance import Guarantee, level
from dpassay.results.estimates import LowerBound
from dpassay.results.profile import Profile
from dpassay.results.rounding import number, rounded_up
from dpassay.results.verdict import UNLEARNED, Verdict
from dpassay.results.verification import Verification
from dpassay.results.witness import Witness

#: The colour of each tone.
COLOURS = {"violation": "red", "clear": "green", "blind": "yellow"}
#: Lines of the log of a hunt.
_LISTED = 12


def bound_panel(bound: LowerBound, kept: str = "") -> Panel:
    """A lower bound with its witness; `kept` is the file it was written to."""
    from rich.console import Group
    from rich.text import Text

    said = f"{bound.notion} ≥ {number(bound.value)} with confidence {level(bound.confidence)}"
    rows = [] if bound.witness is None else _witness(bound.witness)
    rows += [("file", str(origin)) for origin in bound.about.files]
    rows.append(("how", bound.about.method))
    rows += [("note", note) for note in bound.about.notes]
    if bound.witness is not None and bound.value > 0 and not bound.witness.event.live:
        rows.append(("next", _again(kept, "bound.json", bool(bound.about.files))))
    top = Text(f"{said} ({bound.guarantee})")
    return Panel(Group(top, _grid(rows)), title="A lower bound", border_style="blue")


def _witness(witness: Witness) -> list[tuple[str, str]]:
    """The event, its counts and the inputs."""
    rows = [
        ("witness", str(witness.event)),
        (
            "",
            f"{witness.hits_p:,} of {witness.n_p:,} on the first input, "
            f"{witness.hits_q:,} of {witness.n_q:,} on the second",
        ),
    ]
    if witness.pair is not None:
        relation = witness.pair.relation
        said = "" if relation is Relation.UNSPECIFIED else f" ({relation})"
        rows.append(("inputs", f"{witness.pair.inputs}{said}"))
        rows += [("", witness.pair.name)] if witness.pair.name else []
    return rows


def verdict_panel(verdict: Verdict, remedy: str, kept: str = "") -> Panel:
    """A verdict; `remedy` is what helps a blind one, `kept` the file it was written to."""
    from rich.console import Group
    from rich.text import Text

    from dpassay.report import words

    claim, witness, tone = verdict.claim, verdict.witness, verdict.tone
    bound = f"{claim.symbol} ≥ {number(verdict.lower_bound)} with confidence {level(verdict.confidence)}"
    top = [_capital(verdict.blind)] if verdict.blind else []
    top.append(f"{bound} ({verdict.guarantee}; p ≤ {verdict.p_value:.2g})")
    if verdict.second is not None:
        top.append(f"and {words.second(verdict)}; both hold at once")
    rows = _witness(witness)
    if verdict.draws is not None:
        rows.append(
            ("stopped", f"after {verdict.draws:,} draws a side; it holds wherever it stops")
        )
    rows += [("file", str(origin)) for origin in verdict.about.files]
    if verdict.guarantee is Guarantee.HEURISTIC or verdict.replayed or verdict.about.units:
        rows += [("note", note) for note in verdict.about.notes]
    if verdict.violated and witness.event.of_representation:
        rows.append(("leak", "in the low-order bits of the numbers; loss=values leaves them out"))
    if verdict.unlearned:
        rows.append(("note", UNLEARNED))
    elif verdict.has_power:
        rows.append(("power", verdict.caught))
    match tone:
        case "violation":
            if not witness.event.live:
                sure = "" if verdict.confidence == 0.95 else level(verdict.confidence)
                again = _again(kept, "verdict.json", bool(verdict.about.files), sure)
                rows.append(("next", again))
        case "blind":
            rows.append(("next", verdict.remedy or remedy))
        case _:
            more = "this does not show that the claim holds; more draws see smaller ones"
            rows.append(("next", more))
    inside = Group(Text("\n".join(top)), _grid(rows))
    return Panel(inside, title=_capital(verdict.headline), border_style=COLOURS[tone])


def _again(kept: str, name: str, files: bool, sure: str = "") -> str:
    """How somebody else checks it: what to write first, or what to run on the file that was written."""
    fresh = "--samples FRESH-FIRST FRESH-SECOND" if files else "TARGET"
    again = f"dpassay replay {kept or name} {fresh}" + (f" --confidence {sure}" if sure else "")
    return again if kept else f"add --json {name}, then {again}"


def hunt_panel(hunt: Hunt, remedy: str) -> Panel:
    """A verdict on the pair that was found, the two inputs, and what promised most besides."""
    from rich.console import Group
    from rich.text import Text

    styles = {"−": "red", "+": "green", " ": ""}
    inputs = Text("\n").join(
        Text(f"{mark} {text}", style=styles[mark]) for mark, text in compared(hunt.pair)
    )
    listed = Table(title="looked at", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("pair", "draws", "predicted", "outcome"):
        listed.add_column(heading)
    for one in hunt.log[:_LISTED]:
        bound = "" if one.bound is None else number(one.bound)
        listed.add_row(*map(Text, (one.name, f"{one.draws:,}", bound, one.outcome)))
    more = len(hunt.log) - _LISTED
    parts: list[Any] = [
        verdict_panel(hunt.verdict, remedy),
        Text(f"the inputs ({hunt.pair.relation}); − only in the first, + only in the second"),
        inputs,
        listed,
        *([Text(f"and {more:,} more")] if more > 0 else []),
        *(Text(f"note: {note}") for note in hunt.notes),
    ]
    title = f"{hunt.tried:,} pairs, {hunt.draws:,} draws"
    return Panel(Group(*parts), title=title, border_style=COLOURS[hunt.verdict.tone])


def verification_panel(found: Verification) -> Panel:
    """What holds on the pairs given, and on which of them least."""
    from rich.console import Group
    from rich.text import Text

    top = [] if found.confirmed or not found.holds else [_capital(found.holds)]
    if found.holds:
        top.append(f"{found.bound} with confidence {level(found.confidence)} ({found.guarantee})")
    worst = found.worst
    rows = [("why", found.reason)] if found.reason else []
    many = len(found.pairs)
    rows.append(("inputs", str(worst.pair) + (f", the worst of {many} pairs" if many > 1 else "")))
    if worst.cells:
        rest = rounded_up(worst.unseen)
        rows.append(
            ("outputs", f"{worst.cells:,} counted one by one; {rest} of the draws are others")
        )
    rows += [("file", str(origin)) for origin in found.about.files]
    rows += [("note", note) for note in found.about.notes]
    rows.append(("scope", f"{found.where}, and no other inputs"))
    return Panel(
        Group(Text("\n".join(top)), _grid(rows)),
        title=_capital(found.headline),
        border_style="green" if found.confirmed else "yellow",
    )


def _grid(rows: Sequence[tuple[str, str]]) -> Table:
    """Names at the left, what they say at the right."""
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=8)
    grid.add_column(overflow="fold")
    for name, said in rows:
        grid.add_row(Text(name), Text(said))
    return grid


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def profile_panel(profile: Profile) -> Panel:
    """Estimates of every notion."""
    from rich.text import Text

    shown = [
        f"ε ≈ {number(profile.epsilon)}",
        f"μ ≈ {number(profile.mu)}",
        *(
            f"δ({e:g}) ≈ {number(float(profile.delta(e)))}"
            for e in (0.0, 0.5, 1.0)
            if e <= profile.spectrum.x[-1]
        ),
        *(profile.renyi_said(o) for o in (2.0, 8.0)),
        *(f"T({a:g}) ≈ {number(float(profile.tradeoff(a)))}" for a in (0.01, 0.05)),
        f"{profile.about.method}, {profile.about.draws}; estimates, not bounds: dpassay audit certifies",
        *(f"note: {note}" for note in profile.about.notes),
        *(str(origin) for origin in profile.about.files),
    ]
    return Panel(Text("\n".join(shown)), title=f"Estimates on {profile.pair}")
