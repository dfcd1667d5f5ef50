"""The application that commands register with, alone or with groups of options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperGroup

from dpassay._version import __version__
from dpassay.errors import MechanismRaised


class Stopped(Exception):
    """Ctrl-C with its message, which some versions of typer would drop."""


class _Group(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(str(stop) or "interrupted") from stop
        except SystemExit as stop:
            if isinstance(stop.__context__, BrokenPipeError):
                raise  # rich reports a broken pipe so
            raise MechanismRaised(
                f"code of the mechanism called sys.exit({stop.code!r}): it has to return its outputs or "
                "raise an exception"
            ) from stop


app = typer.Typer(
    name="dpassay",
    cls=_Group,
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
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where an error came from; also after a command's name."),
    ] = False,
) -> None:
    pass


Body = TypeVar("Body", bound=Callable[..., None])


def command(*without: str, **defaults: Any) -> Callable[[Body], Body]:
    """Register a command, each parameter that is a dataclass of options (`options.Where` …) spread out.

    without     options of these dataclasses that the command does not take: they have their default
    defaults    other defaults for some
    """

    def register(body: Body) -> Body:
        spread: list[inspect.Parameter] = []
        groups: dict[str, tuple[Any, list[str]]] = {}
        for one in inspect.signature(body, eval_str=True).parameters.values():
            if not dataclasses.is_dataclass(one.annotation):
                spread.append(one)
                continue
            hints = get_type_hints(one.annotation, include_extras=True)
            kept = [f for f in dataclasses.fields(one.annotation) if f.name not in without]
            groups[one.name] = one.annotation, [f.name for f in kept]
            spread += [
                one.replace(
                    name=f.name, annotation=hints[f.name], default=defaults.get(f.name, f.default)
                )
                for f in kept
            ]

        def run(**given: Any) -> None:
            made = {
                name: kind(**{option: given.pop(option) for option in kept})
                for name, (kind, kept) in groups.items()
            }
            body(**made, **given)

        run.__name__, run.__doc__ = body.__name__, body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in spread}
        run.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
        app.command()(run)
        return body

    return register
