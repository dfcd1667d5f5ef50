"""The command line.

Nothing is imported before the command runs in its child process (`supervisor`): the child reports signals
and crashes from its first moment on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial


def load() -> Callable[[list[str]], int]:
    """Import the commands with signals held back: in a C extension they would become an ImportError."""
    from dpassay.interrupts import held_back

    with held_back():
        from dpassay.cli.command_line import run as run_here
    return run_here


def run(arguments: list[str]) -> int:
    """Run the command line in this process and return its exit status; see `command_line`."""
    return load()(arguments)


def main() -> None:
    """The console script."""
    from dpassay.cli.supervisor import supervised

    if sys.stdout is None:  # closed by whoever started this
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(supervised(lambda: partial(load(), sys.argv[1:])))
