"""The application that commands register with."""

from __future__ import annotations

from typing import Annotated

import typer

from dpassay._version import __version__

app = typer.Typer(
    name="dpassay",
    help="How private is this mechanism really? Measured from its outputs alone.",
    epilog="Exit status: 0 done, and no violation detected; 1 a violation; 2 bad input; 3 an internal "
    "error; 4 an audit that could not have seen anything; 5 a claim that was not confirmed (verify); "
    "130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
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
