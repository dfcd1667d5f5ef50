"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def whole(text: str | int) -> int:
    """A whole number as people write it: 20000, 20_000, 2e4."""
    try:
        value = float(str(text).replace("_", ""))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no whole number; write 20000 or 2e4") from None
    if not value.is_integer():
        raise typer.BadParameter(f"{text!r} is no whole number; write 20000 or 2e4")
    return int(value)


Target = Annotated[
    str | None,
    typer.Argument(
        help='module:name, file.py:name, or "zoo:Laplace(scale=0.5)".', show_default=False
    ),
]
PairOption = Annotated[
    tuple[str, str] | None,
    typer.Option("--pair", metavar="A B", help="Two neighbouring inputs, as JSON."),
]
PairsOption = Annotated[
    Path | None, typer.Option("--pairs", help="A JSON file with a list of pairs: [[0, 1], [0, 2]].")
]
NeighboursOption = Annotated[
    str | None, typer.Option("--neighbours", help="patterns:6, or remove-one:data.csv.")
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--command", help='A program as the mechanism, in place of TARGET: "./prog --fast".'
    ),
]
SamplesOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--samples", metavar="P Q", help="Two files of outputs (.npy, .csv, .jsonl, .parquet …)."
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="A folder that keeps every draw as it comes; a run that was ended goes on where it was. "
        "Without a TARGET: the draws to look at.",
    ),
]
IdentityOption = Annotated[
    str | None,
    typer.Option(
        "--identity",
        metavar="TEXT",
        help="A name for the mechanism and its inputs in --store, where they cannot be described.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B", help="The columns of --samples that are outputs."),
]
DropOption = Annotated[
    str | None,
    typer.Option("--drop", metavar="ID,TIME", help="Columns of --samples that are not outputs."),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        parser=whole,
        metavar="BYTES",
        help="The most that is read of a file, also decompressed; 2 GiB if left out.",
    ),
]
PerCall = Annotated[
    bool,
    typer.Option("--per-call", help="TARGET is f(data) or f(data, rng) and returns one output."),
]
Seed = Annotated[int, typer.Option("--seed", "--rng", help="The same seed gives the same answer.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes that draw.")]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="A Dask scheduler to draw on: tcp://scheduler:8786."
    ),
]
Confidence = Annotated[float, typer.Option("--confidence", help="One minus the error probability.")]
JsonOption = Annotated[
    str | None,
    typer.Option("--json", help="Write the result here as JSON; - is stdout, and only that."),
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="Write a self-contained HTML report here.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no panel.")]
OnError = Annotated[
    bool, typer.Option("--errors-are-outputs", help="A failing run is an output of its own.")
]
RelationOption = Annotated[
    str | None,
    typer.Option(
        help="What makes the inputs neighbours, for the record: add_remove, replace or "
        "sensitivity_one."
    ),
]
N = Annotated[
    int | None,
    typer.Option(
        "--n", parser=whole, metavar="N", help="Draws per side per pair, training included."
    ),
]
SecondsOption = Annotated[
    float | None, typer.Option("--seconds", help="Time to spend, in place of --n.")
]
ScoresFile = Annotated[
    Path,
    typer.Argument(help="A file with a row a canary and the columns score and included (0 or 1)."),
]
GuessesOption = Annotated[
    str | None,
    typer.Option(
        "--guesses",
        metavar="R",
        help="How many canaries are guessed, fixed beforehand: 200 (half on either side), 100+50 (to be "
        "included, to be left out), or several, each paid for: 100,200,400. Learned if left out.",
    ),
]
DeltaOption = Annotated[
    float | None, typer.Option("--delta", help="Without a claim: the δ at which ε is bounded.")
]
FeatureOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A function of one output that may tell the inputs apart: module:name or file.py:name. May "
        "be given more than once."
    ),
]
LossOption = Annotated[
    str,
    typer.Option(
        help="What ranks the outputs: auto, values (auto without the bits), bits, kde, knn, logistic …"
    ),
]
