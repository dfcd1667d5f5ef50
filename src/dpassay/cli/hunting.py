"""The command that hunts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpassay import validation as checks
from dpassay.cli.delivery import PLAN, deliver, status
from dpassay.cli.groups import How, Out, command
from dpassay.cli.inputs import check_writable
from dpassay.cli.options import CommandOption, Confidence, LossOption, Target, whole
from dpassay.errors import InvalidInput, UnreadableFile


@command("errors_are_outputs")
def hunt(
    target: Target = None,
    space: Annotated[
        Path | None,
        typer.Option(
            help='A JSON file that says what inputs look like: {"type": "Reals", "low": 0, "high": 1, '
            '"length": [0, 20]}; see the documentation for the others.'
        ),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help='The claim, such as "eps=1, delta=1e-5".')
    ] = None,
    command: CommandOption = None,
    relation: Annotated[
        str,
        typer.Option(help="What makes inputs neighbours: replace, add_remove, edit, user, query."),
    ] = "replace",
    user: Annotated[
        str | None, typer.Option(help="With --relation user: the column that says whose a row is.")
    ] = None,
    sensitivity: Annotated[
        float, typer.Option(help="With --relation query: how far answers may be apart.")
    ] = 1.0,
    norm: Annotated[str, typer.Option(help="With --relation query: each, l1 or l2.")] = "each",
    outside: Annotated[
        bool,
        typer.Option("--outside", help="Also try NaN, infinities and values beyond the bounds."),
    ] = False,
    failing: Annotated[
        str,
        typer.Option(
            help="What an exception is: leak (inside the space an outcome, outside a refusal), outcome, "
            "ignore."
        ),
    ] = "leak",
    budget: Annotated[
        int, typer.Option(parser=whole, metavar="N", help="Draws over all pairs and both sides.")
    ] = 400_000,
    seconds: Annotated[
        float | None, typer.Option(help="Seconds to spend, in place of --budget.")
    ] = None,
    confidence: Confidence = 0.95,
    loss: LossOption = "auto",
    *,
    how: How,
    out: Out,
) -> None:
    """Find the inputs on which a mechanism breaks its claim.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything, 130 interrupted.

    Example: dpassay hunt mine.py:release --space space.json --claim "eps=1" --outside --report out.html
    """
    from dpassay.cli import targets
    from dpassay.hunting.hunts import hunt as run

    check_writable(out.report, out.json)
    if (target is None) == (command is None):
        raise InvalidInput("give exactly one of TARGET and --command")
    if space is None or claim is None:
        raise InvalidInput(
            'what do inputs look like, and what is claimed? Give --space space.json --claim "eps=1"'
        )
    box = (
        targets.program(command)
        if command
        else targets.mechanism(str(target), per_call=how.per_call)
    )
    box = how.featured(box)
    found = run(
        box,
        _space(space),
        claim,
        budget=budget,
        seconds=seconds,
        confidence=confidence,
        relation=relation,
        user=user,
        sensitivity=sensitivity,
        norm=norm,
        outside=outside,
        failing=failing,
        loss=loss,
        **how.drawing(box, out),
    )
    remedy = f"a larger --budget ({PLAN}), another --loss or a lower --confidence"
    deliver([found], None, out=out, remedy=remedy)
    raise typer.Exit(status([found.verdict]))


def _space(path: Path) -> Any:
    """A space from a file; what is wrong with it is said with the file's name."""
    from dpassay.blackbox.inputs import as_space

    try:
        content = checks.read_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path} cannot be read as JSON: {error}") from None
    try:
        return as_space(content)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
