"""The options that several commands share, and groups of them: where to draw, how, what to write."""

from __future__ import annotations

import contextlib
import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dpassay import validation as checks
from dpassay.blackbox.mechanism import with_features
from dpassay.cli import targets
from dpassay.cli.supervisor import say
from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import as_claim

#: Closed when a command ends.
held = contextlib.ExitStack()


def whole(text: str | int) -> int:
    """A whole number: 20000, 20_000 or 2e4."""
    with contextlib.suppress(ValueError):
        if (value := float(str(text).replace("_", ""))).is_integer():
            return int(value)
    raise typer.BadParameter(f"{text!r} is no whole number; write 20000 or 2e4")


def real(text: str | float) -> float:
    """A number with a decimal point."""
    with contextlib.suppress(ValueError):
        return float(text)
    raise typer.BadParameter(f"{text!r} is no number; the decimal mark is a point, as in 0.95")


#: An option that takes such a number.
NUMBER: dict[str, Any] = {"parser": real, "metavar": "NUMBER"}


PairOption = Annotated[
    tuple[str, str] | None, typer.Option(metavar="A B", help="Two neighbouring inputs, as JSON.")
]
PerCall = Annotated[
    bool,
    typer.Option("--per-call", help="TARGET is f(data) or f(data, rng) and returns one output."),
]
Target = Annotated[
    str | None,
    typer.Argument(
        help='module:name, file.py:name, or "zoo:Laplace(scale=0.5)".', show_default=False
    ),
]
Program = Annotated[
    str | None,
    typer.Option(help='A program as the mechanism, in place of TARGET: "./prog --fast".'),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        parser=whole,
        metavar="BYTES",
        help="Read at most so many bytes of a file, after decompression. Default: 2 GiB.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", "--rng", help="The same seed gives the same answer.")]
Confidence = Annotated[float, typer.Option(**NUMBER, help="One minus the error probability.")]
Json = Annotated[
    str | None,
    typer.Option(help="Write the result here as JSON; - is stdout, without a panel."),
]
Report = Annotated[Path | None, typer.Option(help="Write a self-contained HTML report here.")]
N = Annotated[
    int | None,
    typer.Option(
        *("--n", "-n"),
        parser=whole,
        metavar="N",
        help="Draws per side per pair, training included. Of --samples all by default.",
    ),
]
Seconds = Annotated[float | None, typer.Option(**NUMBER, help="Time to spend, in place of --n.")]
Loss = Annotated[
    str,
    typer.Option(
        help="The score of the outputs: auto; values (auto without the floating-point representation); "
        "bits (that alone); kde, knn, logistic …"
    ),
]


@dataclass(frozen=True)
class Out:
    """Where the result is written; places that cannot be written are refused before the first draw."""

    json: Json = None
    report: Report = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no panel.")] = False

    def __post_init__(self) -> None:
        if self.report is not None:
            from dpassay.report import check_possible

            check_possible(self.report)
        if self.json is not None and self.json != "-":
            checks.writable("JSON", Path(self.json))


@dataclass(frozen=True)
class How:
    """How to draw."""

    per_call: PerCall = False
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="A function of one output that may tell the inputs apart: module:name or file.py:name. "
            "May be given more than once."
        ),
    ] = None
    errors_are_outputs: Annotated[
        bool, typer.Option("--errors-are-outputs", help="An exception counts as an output.")
    ] = False
    seed: Seed = 0
    workers: Annotated[int, typer.Option(help="Processes that draw.")] = 1
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler to draw on: tcp://scheduler:8786."),
    ] = None

    def mechanism(self, target: str | None, command: str | None) -> Any:
        """The mechanism that is named, without its features."""
        return (
            targets.program(command)
            if command
            else targets.mechanism(str(target), per_call=self.per_call)
        )

    def featured(self, box: Any) -> Any:
        """The mechanism with the features that were asked for."""
        if self.feature and not live(box):
            raise InvalidInput("--feature needs a mechanism: samples hold outputs in another form")
        return with_features(box, targets.features(self.feature))

    def drawing(self, box: Any, out: Out, where: Where | None = None) -> dict[str, Any]:
        """The options of a verb; where there are samples nothing is drawn."""
        from dpassay.sampling.draw import Sampling

        if not live(box):
            return {"rng": None, "sampling": None}
        sampling = Sampling(
            workers=self.workers,
            executor=None if self.dask is None else self._cluster(self.dask),
            on_error="outcome" if self.errors_are_outputs else "raise",
            progress=False if out.quiet else None,
            store=None if where is None else where.store,
            identity=None if where is None else where.identity,
        )
        return {"rng": self.seed, "sampling": sampling}

    def _cluster(self, address: str) -> Any:
        """A client of a Dask scheduler, until the command ends."""
        from dpassay.sampling.executors import connected

        if self.workers != 1:
            raise InvalidInput("the cluster has its own workers: give one of --workers and --dask")
        client = held.enter_context(connected(address))
        if not client.nthreads():
            say(f"note: {address} has no workers yet: waiting for them")
        return client


@dataclass(frozen=True)
class Where:
    """A mechanism and its inputs, or files of draws."""

    target: Target = None
    pair: PairOption = None
    pairs: Annotated[
        Path | None, typer.Option(help="A JSON file with a list of pairs: [[0, 1], [0, 2]].")
    ] = None
    neighbours: Annotated[
        str | None, typer.Option(help="Pairs to try: patterns:6, or remove-one:data.csv.")
    ] = None
    relation: Annotated[
        str | None,
        typer.Option(
            help="What makes the inputs neighbours, for the record: add_remove, replace or "
            "sensitivity_one."
        ),
    ] = None
    samples: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="P Q", help="Two files of outputs (.npy, .csv, .jsonl, .parquet …)."),
    ] = None
    store: Annotated[
        Path | None,
        typer.Option(
            help="A folder that keeps every draw; interrupted runs resume. Without a TARGET: the draws "
            "to audit."
        ),
    ] = None
    identity: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="A name for the mechanism and its inputs in --store, where they cannot be described.",
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="The columns of --samples that are outputs."),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="ID,TIME", help="Columns of --samples that are not outputs."),
    ] = None
    decimal: Annotated[
        str, typer.Option(metavar="MARK", help="The decimal mark in --samples: . or ,")
    ] = "."
    thousands: Annotated[
        str,
        typer.Option(metavar="MARK", help="What separates thousands in --samples, if anything."),
    ] = ""
    encoding: Annotated[
        str, typer.Option(metavar="NAME", help="The encoding of the text in --samples: cp1252 …")
    ] = "utf-8"
    max_bytes: MaxBytes = None
    command: Program = None

    def read(self, how: How) -> tuple[Any, Any]:
        """The mechanism and its pairs, or samples and None."""
        if self.target is not None and self.samples is not None:
            raise InvalidInput(
                f"{self.target!r} stands by itself and is read as a mechanism, but there are --samples; "
                "names of columns go between commas without spaces, as in --drop id,time"
            )
        given: list[Any] = [self.target, self.command, self.samples]
        if not any(given):
            given.append(self.store)  # the draws to look at; else where to keep draws
        if sum(one is not None for one in given) != 1:
            raise InvalidInput("give exactly one of TARGET, --command, --samples and --store")
        if self.samples is not None and self.store is not None:
            raise InvalidInput("samples are files already: leave --store out")
        if self.target is None and self.command is None:
            if self.pair or self.pairs or self.neighbours:
                raise InvalidInput("samples already belong to a pair: leave --pair out")
            return how.featured(self._samples(how.seed)), None
        if self.columns or self.drop:
            raise InvalidInput("--columns and --drop choose among the columns of --samples")
        box = how.mechanism(self.target, self.command)
        pairs = targets.pairs(self.pair, self.pairs, self.neighbours, box)
        return how.featured(box), pairs

    def _samples(self, seed: int) -> Any:
        """The outputs of two files, or of a store."""
        from dpassay.sampling.collected import Store, from_samples

        if self.samples is None:
            assert self.store is not None
            return Store(self.store).samples()
        columns, drop = _names(self.columns), _names(self.drop)
        return from_samples(
            *self.samples,
            columns=columns,
            drop=drop,
            max_bytes=self.max_bytes,
            decimal=self.decimal,
            thousands=self.thousands,
            encoding=self.encoding,
            rng=seed,
        )


def _names(typed: list[str] | None) -> list[str] | None:
    """Names between commas, of every time that an option is given; one that holds a comma is quoted."""
    rows = csv.reader(typed or (), skipinitialspace=True)
    return list(dict.fromkeys(name.strip() for row in rows for name in row)) if typed else None


def live(source: Any) -> bool:
    """Whether there is something to draw from."""
    from dpassay.sampling.samples import Samples

    return not isinstance(source, Samples)


def claimed(box: Any, given: str | None, example: str = "eps=1") -> Any:
    """The claim that was given, or that of a mechanism of the zoo."""
    own = getattr(box, "claim", None)
    if given is None and own is None:
        raise InvalidInput(f'what does it claim? Give --claim "{example}"')
    return own if given is None else as_claim(given)
