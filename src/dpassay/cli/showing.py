"""Commands that show what there is: the zoo, the tour."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpassay.cli.app import app
from dpassay.cli.inputs import check_writable, write_report
from dpassay.cli.options import (
    ReportOption,
    Seed,
)
from dpassay.errors import NoClosedForm
from dpassay.results.rounding import number
from dpassay.tables import Status


@app.command()
def zoo() -> None:
    """What is in the zoo, with the truths.

    Exit status: 0 done.

    Example: dpassay zoo
    """
    from dpassay.blackbox.zoo import members

    table = Table(title="The zoo: what each mechanism claims, and the truth on its default pair")
    console = Console()
    wide = console.width >= 110  # else the first columns alone
    table.add_column("mechanism", overflow="fold")
    for heading in ("claims", "", "true ε", *(("δ(0.5)", "Rényi ε(2)", "T(0.05)") if wide else ())):
        table.add_column(heading)
    if wide:
        table.add_column("source", overflow="fold")
    for mechanism in members():
        pair = mechanism.pair
        cells = [
            str(mechanism),
            str(mechanism.claim or "nothing"),
            "correct" if mechanism.correct else "[red]broken[/red]",
            _truth(mechanism.epsilon, pair),
            _truth(mechanism.delta, 0.5, pair),
            _truth(mechanism.renyi, 2.0, pair),
            _truth(mechanism.tradeoff, 0.05, pair),
            mechanism.source,
        ]
        table.add_row(*(cells if wide else cells[:4]))
    console.print(table)
    if not wide:
        console.print(
            "A terminal of 110 columns also shows δ, Rényi, the trade-off and the source."
        )


@app.command()
def demo(
    n: Annotated[int, typer.Option("--n", help="Draws per side for each mechanism.")] = 20_000,
    report: ReportOption = Path("dpassay-demo.html"),
    seed: Seed = 0,
) -> None:
    """The tour: audits a dozen mechanisms, correct and broken, against what they claim.

    Exit status: 0 done, 2 bad input, 3 an internal error, 130 interrupted.

    Example: dpassay demo
    """
    from dpassay.cli.tour import tour

    check_writable(report, None)
    console, started = Console(), time.monotonic()
    table = Table(title="Each mechanism against its own claim")
    headings = ("mechanism", "claims", "truth", "measured", "verdict", "right?")
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading)
    rows, verdicts = [], []
    for stop in tour(n=n, seed=seed):
        verdict = stop.verdict
        measured = f"{verdict.claim.symbol} ≥ {number(verdict.lower_bound)}"
        plain, clear = verdict.tone.label, verdict.tone is Status.CLEAR
        said = plain if clear else f"[{verdict.tone.terminal}]{plain}[/]"
        right = "✓" if stop.right else "[red]✗[/red]"
        table.add_row(stop.name, str(verdict.claim), stop.truth, measured, said, right)
        cells = (
            stop.name,
            str(verdict.claim),
            stop.truth,
            measured,
            plain,
            "yes" if stop.right else "no",
        )
        rows.append(dict(zip(headings, cells, strict=True)))
        verdicts.append(verdict)
        console.print(f"  {stop.name}: {plain}", highlight=False)
    console.print(table)
    if report is not None:
        # the one whose witness a reader can check at a glance
        most = max(
            range(len(verdicts)),
            key=lambda k: (verdicts[k].violated, -len(verdicts[k].witness.event.words)),
        )
        shown, name = verdicts[most], rows[most]["mechanism"]
        view = shown.view()
        write_report(
            report,
            [shown],
            title="dpassay: the tour. One of its stops in full, and all of them in a table",
            command="dpassay demo",
            table=rows,
            lead=(view.status, f"{name}: {view.title.lower()}", view.sentence),
        )
        console.print(f"The report: {report} ({time.monotonic() - started:.0f} s in all)")


def _truth(notion: object, *arguments: object) -> str:
    try:
        return number(float(notion(*arguments)))  # type: ignore[operator]
    except NoClosedForm:
        return "not known"
