"""Run what was typed as a command, and turn how it ended into an exit status."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from typing import Any

import typer

from dpassay.cli import mechanisms, without_mechanism, reports, doctor  # noqa: F401  # isort: skip
from dpassay.cli.app import Stopped, app
from dpassay.cli.options import held
from dpassay.cli.supervisor import say
from dpassay.errors import DpassayError, InvalidInput, NotEnoughDraws, Terminated, TooManyAskedFor

#: What the parser raises for a wrong option; typer does not export the class.
_USAGE: Any = typer.BadParameter.__mro__[2]


#: Endings of files of outputs.
_DATA = (
    *(".npy", ".npz", ".csv", ".tsv", ".txt", ".parquet", ".jsonl"),
    *(".ndjson", ".feather", ".arrow", ".xlsx"),
)


def _slips(arguments: list[str]) -> None:
    """Explain common mistakes that the parser would only report as wrong usage."""
    for option, example in (("--pair", "--pair 0 1"), ("--samples", "--samples p.npy q.npy")):
        given = [a.partition("=")[2] for a in arguments if a.startswith(f"{option}=")]
        if not given and option in arguments:
            given = arguments[arguments.index(option) + 1 :][:2]
            if len(given) == 2 and not any(value.startswith("--") for value in given):
                continue
        if given or option in arguments:
            got = next((value for value in given if not value.startswith("--")), "nothing")
            raise InvalidInput(f"{option} takes two values, as in {example}; got {got}")
    if marks := {a.partition("=")[0] for a in arguments} & {"--delimiter", "--separator", "--sep"}:
        raise InvalidInput(
            f"there is no {marks.pop()}: comma, semicolon, tab and | between cells are recognised; "
            "--decimal and --thousands say how numbers are written"
        )
    claims = [a for a in arguments if a == "--claim" or a.startswith("--claim=")]
    if len(claims) > 1 and arguments[0] != "audit":
        raise InvalidInput(
            f"{arguments[0]} takes one --claim, got {len(claims)}; run it once for each, with a "
            f"--confidence that pays for all ({1 - 0.05 / len(claims):.4g} each is 0.95 together)"
        )
    if arguments[:1] and arguments[0] in ("audit", "bound", "verify", "estimate"):
        _files(arguments[1:])


def _files(arguments: list[str]) -> None:
    """Refuse files of outputs without --samples, or more than two."""
    if "--sample" in arguments:
        return  # the parser says which option is meant
    start = arguments.index("--samples") + 3 if "--samples" in arguments else 0
    rest = arguments[start:] if start else arguments
    alone = []
    for before, value in zip(["", *rest], rest, strict=False):
        if before.startswith("-"):
            continue  # the value of an option
        if value.lower().endswith(_DATA):
            alone.append(value)
    if alone and start:
        raise InvalidInput(f"--samples takes two files, one for each input; {alone[0]} is a third")
    if alone:
        two = " ".join(alone) if len(alone) == 2 else "p.npy q.npy"
        raise InvalidInput(f"files of outputs are given as --samples {two}; got {' '.join(alone)}")


def run(arguments: list[str]) -> int:
    """Run the command line and say how it ended.

    0, 1 (violation), 2 (bad input), 3 (a bug), 4 (could not have seen anything), 5 (not confirmed),
    130 (interrupted).
    """
    debug = "--debug" in arguments
    # one line for a warning, without the line of source; the verdict holds it too
    warnings.showwarning = lambda text, *rest, **more: say(f"note: {text}")
    try:
        _slips(arguments)
        with held:
            status = app(args=[a for a in arguments if a != "--debug"], standalone_mode=False)
        sys.stdout.flush()
        if status == 130:  # Ctrl-C while arguments are parsed, in some versions of typer
            say("interrupted")
        return status if isinstance(status, int) else 0
    except (SystemExit, BrokenPipeError) as stop:
        if isinstance(stop, SystemExit) and not isinstance(stop.__context__, BrokenPipeError):
            return 2 if stop.code else 0  # shell completion
        return _closed()
    except DpassayError as error:
        blind = isinstance(error, NotEnoughDraws) and not isinstance(error, TooManyAskedFor)
        status = 4 if blind else 2
        if debug:
            traceback.print_exc()
            return status
        said, more, _ = str(error).partition("\nTraceback (most recent call last)")
        say(said + ("\n  (add --debug to see where)" if more else ""))
        return status
    except (KeyboardInterrupt, Stopped, typer.Abort) as stop:
        say(str(stop) or "interrupted")
        return 130
    except Terminated:
        raise
    except BaseException as error:
        if isinstance(error, _USAGE):
            error.show()
            return 2
        if debug:
            traceback.print_exc()
            return 3
        say(f"internal error, {type(error).__name__}: {error}; add --debug to see where")
        return 3


def _closed() -> int:
    """The status where the output was closed: nobody read the verdict, so its own would be wrong."""
    say("the output was closed before the result was written; --json FILE keeps it")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # for what is still buffered
    return 2
