"""The application that commands register with."""

from __future__ import annotations

from typing import Annotated

import typer

from dpassay._version import __version__

app = typer.Typer(
    name="dpassay",
    help="How private is this mechanism really? Measured from its outputs alone.",
    no_args_is_help=True,
    add_completion=False,
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
