"""Run what was typed as a command, and turn how it ended into an exit status."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from itertools import pairwise, takewhile
from typing import Any

import typer

from dpassay.cli import mechanisms, without_mechanism, tour  # noqa: F401  # isort: skip
from dpassay.cli.app import Stopped, app
from dpassay.cli.options import held
from dpassay.cli.supervisor import say
from dpassay.errors import DpassayError, InvalidInput, NotEnoughDraws, Terminated, TooManyAskedFor

#: What the parser raises for a wrong option; typer does not export the class.
_USAGE: Any = typer.BadParameter.__mro__[2]
#: Endings of files of outputs.
_DATA = re.compile(
    r"\.(npy|npz|csv|tsv|txt|parquet|jsonl|ndjson|feather|arrow|xlsx)$", re.IGNORECASE
)


def _require_two(arguments: list[str], at: int, option: str, example: str) -> None:
    """Refuse an option with one value where two are needed."""
    given = [*takewhile(lambda a: not a.startswith("--"), arguments[at + 1 : at + 3])]
    if option != arguments[at]:
        given = [arguments[at].partition("=")[2]]
    if len(given) >= 2:
        return
    got = given[0] if given else "nothing"
    if _DATA.search(got):
        got += (
            ". If it holds outputs on both inputs, split it by the column that names the input; with "
            "pandas, of the table t: for k, g in t.groupby('input'): "
            "g.drop(columns='input').to_csv(f'{k}.csv', index=False)"
        )
    raise InvalidInput(f"{option} takes two values, as in {example}; got {got}")


def _explain_slips(arguments: list[str]) -> None:
    """Explain common mistakes that the parser would only report as wrong usage."""
    verb, options = arguments[0] if arguments else "", [a.partition("=")[0] for a in arguments]
    for option, example in (("--pair", "--pair 0 1"), ("--samples", "--samples p.npy q.npy")):
        if option in options:
            _require_two(arguments, options.index(option), option, example)
    if marks := {"--delimiter", "--separator", "--sep"}.intersection(options):
        raise InvalidInput(
            f"there is no {marks.pop()}: comma, semicolon, tab and | between cells are recognised; "
            "--decimal and --thousands say how numbers are written"
        )
    pages = [a for a in arguments[2:] if a.endswith((".html", ".md")) and "--out" not in options]
    if verb == "report" and pages:
        raise InvalidInput(f"the file to write is given as --out {pages[0]}")
    for option, value in pairwise(arguments):
        if option in ("--excess", "--confidence", "--power", "--train") and value.endswith("%"):
            share = value[:-1] if re.fullmatch(r"\d+(\.\d+)?%", value) else "20"
            raise InvalidInput(f"{option} is a share: {share} % is {float(share) / 100:g}")
        if option in ("--json", "--out") and value != "-" and arguments.count(value) > 1:
            raise InvalidInput(f"{option} would overwrite {value}, which this command reads")
    claims = options.count("--claim")
    if claims and verb == "estimate":
        raise InvalidInput("estimate takes no --claim: it estimates; audit tests a claim")
    if claims > 1 and verb != "audit":
        raise InvalidInput(
            f"{verb} takes one --claim, got {claims}; run it once for each, with a --confidence that "
            f"pays for all ({1 - 0.05 / claims:.4g} each is 0.95 together)"
        )
    start = options.index("--samples") + 3 if "--samples" in options else 1
    alone = [  # not the value of an option
        value
        for before, value in zip(arguments[start - 1 :], arguments[start:], strict=False)
        if _DATA.search(value) and not before.startswith("-")
    ]
    if verb in ("one-run", "attack-rates") and len(alone) > 1:
        raise InvalidInput(
            f"{verb} takes one file, with a column that is 1 for what was included in training and 0 for "
            f"the rest; got {' and '.join(alone)}. Join two files, of which the first was included, with "
            "pandas: pd.concat([a.assign(included=1), b.assign(included=0)]).to_csv('s.csv', index=False)"
        )
    if verb not in ("audit", "bound", "verify", "estimate") or "--sample" in options:
        return  # the parser says which option is meant
    if alone and start > 1:
        raise InvalidInput(f"--samples takes two files, one for each input; {alone[0]} is a third")
    if alone:
        two = " ".join(alone) if len(alone) == 2 else "p.npy q.npy"
        raise InvalidInput(f"files of outputs are given as --samples {two}; got {' '.join(alone)}")


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit status (`app.STATUSES`)."""
    debug = "--debug" in arguments
    # one line for a warning, without the line of source; the verdict holds it too
    warnings.showwarning = lambda text, *rest, **more: say(f"note: {text}")
    try:
        _explain_slips(arguments)
        with held:
            status = app(args=[a for a in arguments if a != "--debug"], standalone_mode=False)
        sys.stdout.flush()
        if status == 130:  # Ctrl-C while arguments are parsed, in some versions of typer
            say("interrupted")
        return status if isinstance(status, int) else 0
    except (SystemExit, BrokenPipeError) as stop:
        if isinstance(stop, SystemExit) and not isinstance(stop.__context__, BrokenPipeError):
            return 2 if stop.code else 0  # shell completion
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
        if not arguments or "--help" in arguments:  # head has read enough
            return 0
        # nobody read the verdict, so that its own status would be wrong
        say("the output was closed before the result was written; --json FILE keeps it")
        return 2
    except (KeyboardInterrupt, Stopped, typer.Abort) as stop:
        say(str(stop) or "interrupted")
        return 130
    except Terminated:
        raise
    except BaseException as error:
        if isinstance(error, _USAGE):
            error.show()
            return 2
        status = 3
        if isinstance(error, DpassayError):
            blind = isinstance(error, NotEnoughDraws) and not isinstance(error, TooManyAskedFor)
            status = 4 if blind else 2
        if debug:
            traceback.print_exc()
        elif status == 3:
            say(f"internal error, {type(error).__name__}: {error}; add --debug to see where")
        else:
            said, more, _ = str(error).partition("\nTraceback (most recent call last)")
            say(said + ("\n  (add --debug to see where)" if more else ""))
        return status
