"""The command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpassay._version import __version__
from dpassay.errors import DpassayError, NoClosedForm
from dpassay.results import number

app = typer.Typer(
    name="dpassay",
    help="How private is this mechanism really? Measured from its outputs alone.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpassay {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def zoo() -> None:
    """What is in the zoo, with the truths.

    Example: dpassay zoo
    """
    Console().print(_zoo_table(draws=False))


@app.command()
def demo() -> None:
    """The tour: the zoo, its truths, and draws from it.

    Example: dpassay demo
    """
    Console().print(_zoo_table(draws=True))


@app.command()
def counts(
    hits_p: Annotated[int, typer.Argument(help="How often the event happened on the first input.")],
    n_p: Annotated[int, typer.Argument(help="Runs on the first input.")],
    hits_q: Annotated[int, typer.Argument(help="How often it happened on the second input.")],
    n_q: Annotated[int, typer.Argument(help="Runs on the second input.")],
    claim: Annotated[str, typer.Option(help='The claim, such as "eps=1, delta=1e-5".')],
    confidence: Annotated[float, typer.Option(help="One minus the error probability.")] = 0.95,
    likelier: Annotated[
        str | None, typer.Option(help="Declared beforehand: 'first' or 'second'.")
    ] = None,
    json: Annotated[str | None, typer.Option(help="Write the verdict here; - is stdout.")] = None,
) -> None:
    """Test a claim from the counts of an event that was fixed beforehand.

    Example: dpassay counts 450 1000 184 1000 --claim "eps=0.5"
    """
    from dpassay.privacy.text import claim as read_claim
    from dpassay.verdicts import audit_counts

    verdict = audit_counts(
        hits_p,
        n_p,
        hits_q,
        n_q,
        read_claim(claim),
        confidence=confidence,
        likelier=likelier,  # type: ignore[arg-type]
    )
    if json == "-":
        typer.echo(verdict.to_json(indent=2))
    else:
        typer.echo(str(verdict))
        if json is not None:
            Path(json).write_text(verdict.to_json(indent=2), encoding="utf-8")
    raise typer.Exit(int(verdict.violated))


def _zoo_table(draws: bool) -> Table:
    from dpassay.blackbox.zoo import members
    from dpassay.sampling.draw import Sampling
    from dpassay.sampling.samples import draw

    table = Table(title="The zoo: what each mechanism claims, and the truth on its default pair")
    table.add_column("mechanism", overflow="fold")
    for heading in ("claims", "", "true ε", "δ(0.5)", "Rényi ε(2)", "T(0.05)"):
        table.add_column(heading)
    table.add_column("a draw on each input" if draws else "source", overflow="fold")
    for mechanism in members():
        pair = mechanism.pair
        last = mechanism.source
        if draws:
            way = Sampling(on_error="outcome") if "raises" in mechanism.flaw else None
            one = draw(mechanism, pair, n=1, rng=0, sampling=way)
            last = f"{one.p.show(0)} | {one.q.show(0)}"
        table.add_row(
            str(mechanism),
            str(mechanism.claim or "nothing"),
            "correct" if mechanism.correct else "[red]broken[/red]",
            _truth(mechanism.epsilon, pair),
            _truth(mechanism.delta, 0.5, pair),
            _truth(mechanism.renyi, 2.0, pair),
            _truth(mechanism.tradeoff, 0.05, pair),
            last,
        )
    return table


def _truth(notion: object, *arguments: object) -> str:
    try:
        return number(float(notion(*arguments)))  # type: ignore[operator]
    except NoClosedForm:
        return "not known"


def main() -> None:
    """Run the command line; errors are a line on stderr, not a traceback."""
    debug = "--debug" in sys.argv
    try:
        app(args=[argument for argument in sys.argv[1:] if argument != "--debug"])
    except DpassayError as error:
        if debug:
            raise
        print(f"dpassay: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stop:
        print(f"dpassay: {stop or 'interrupted'}", file=sys.stderr)
        sys.exit(130)
