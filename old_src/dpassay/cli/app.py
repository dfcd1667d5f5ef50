"""The application that commands register with, alone or with groups of options."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from dpassay._version import __version__
from dpassay.errors import MechanismRaised


class Stopped(Exception):
    """Ctrl-C with its message, which some versions of typer would drop."""


class _Help:
    """Help that shows no value for flags, typer's own included, and no types for arguments."""

    def get_params(self, ctx: Any) -> Any:
        """All options, that of help too."""
        found = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            if one.param_type_name == "argument":
                one.metavar = one.name.upper()
                one.display_type_rich = lambda **_: ""  # versions of typer that show <path>
            elif one.is_flag:
                one.metavar = ""
        return found


class _Command(_Help, TyperCommand):
    pass


class _Group(_Help, TyperGroup):
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


#: What the exit statuses of commands mean.
STATUSES = {
    0: "done, no violation detected",
    1: "violation",
    2: "bad input",
    3: "internal error",
    4: "could not have detected a violation",
    5: "not verified",
    130: "interrupted",
}

app = typer.Typer(
    name="dpassay",
    cls=_Group,
    help="How private is this mechanism really? Measured from its outputs alone.",
    epilog=f"Exit status: {'; '.join(f'{status} {words}' for status, words in STATUSES.items())}.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
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


#: What help shows for the value of an option.
_VALUES: dict[Any, str] = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}


def option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """What stands for the default of a command's parameter: also the help and the names of its option."""
    info = typer.Option(*names, help=help, **more)
    return dataclasses.field(default=default, metadata={"typer": info})


def argument(help: str) -> Any:
    """The same for an argument that is required."""
    return dataclasses.field(metadata={"typer": typer.Argument(help=help)})


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """A parameter as typer reads it, from one of a command or a field of a group."""
    if isinstance(default, dataclasses.Field):
        if default.metadata:
            kind = Annotated[kind, default.metadata["typer"]]
        default = inspect.Parameter.empty if default.default is MISSING else default.default
    info = copy.copy(kind.__metadata__[0])
    if kind.__origin__ is bool and info.default is ...:
        info.param_decls = (f"--{name.replace('_', '-')}",)  # and no --no-name
    if isinstance(info, typer.models.OptionInfo) and info.metavar is None:
        held = get_args(kind.__origin__) or (kind.__origin__,)  # list[str], int | None
        info.metavar = next(
            (_VALUES[one] for one in (*held, *get_args(held[0])) if one in _VALUES), None
        )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind.__origin__, info],
    )


def _help(text: str, exits: str, done: str) -> str:
    """A docstring with a line for each paragraph, and the exit statuses before the examples."""
    parts = [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]
    done = done or ("no violation detected" if exits.startswith("1") else "done")
    statuses = [f"0 {done}", *(f"{status} {STATUSES[int(status)]}" for status in exits.split())]
    at = next(k for k, part in enumerate(parts) if part.startswith("Example:"))
    return "\n\n".join([*parts[:at], f"Exit status: {', '.join(statuses)}.", *parts[at:]])


Body = TypeVar("Body", bound=Callable[..., None])


def command(
    *without: str, exits: str = "2 3", done: str = "", **defaults: Any
) -> Callable[[Body], Body]:
    """Register a command, each parameter that is a dataclass of options (`options.Where` …) spread out.

    without     options of these dataclasses that the command does not take: they have their default
    exits       its exit statuses beside 0
    done        what 0 means, if neither "done" nor "no violation detected"
    defaults    other defaults for some options
    """

    def register(body: Body) -> Body:
        spread: list[inspect.Parameter] = []
        groups: dict[str, tuple[Any, list[str]]] = {}
        for one in inspect.signature(body, eval_str=True).parameters.values():
            if not dataclasses.is_dataclass(one.annotation):
                spread.append(_parameter(one.name, one.annotation, one.default))
                continue
            hints = get_type_hints(one.annotation, include_extras=True)
            kept = [f for f in dataclasses.fields(one.annotation) if f.name not in without]
            groups[one.name] = one.annotation, [f.name for f in kept]
            spread += [_parameter(f.name, hints[f.name], f) for f in kept]
        spread = [one.replace(default=defaults.get(one.name, one.default)) for one in spread]

        def run(**given: Any) -> None:
            made = {
                name: kind(**{option: given.pop(option) for option in kept})
                for name, (kind, kept) in groups.items()
            }
            body(**made, **given)

        run.__name__, run.__doc__ = body.__name__, _help(body.__doc__ or "", exits, done)
        run.__annotations__ = {one.name: one.annotation for one in spread}
        run.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
        app.command(cls=_Command)(run)
        return body

    return register
