"""The options that several commands share, and groups of them: where to draw, how, what to write."""

from __future__ import annotations

import contextlib
import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from dpassay import validation as checks
from dpassay.blackbox.mechanism import with_features
from dpassay.cli import targets
from dpassay.cli.app import option
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
    raise BadParameter(f"{text!r} is no whole number; write 20000 or 2e4")


def one_of_several(text: str | int) -> int:
    """A whole number of an option that may be repeated."""
    if "," in str(text):
        raise BadParameter(f"{text!r} is not one number; repeat the option for each number")
    return whole(text)


def real(text: str | float) -> float:
    """A number with a decimal point."""
    with contextlib.suppress(ValueError):
        return float(text)
    raise BadParameter(f"{text!r} is no number; the decimal mark is a point, as in 0.95")


#: An option that takes such a number.
NUMBER: dict[str, Any] = {"parser": real, "metavar": "NUMBER"}
#: Options of several commands.
PairOption = Annotated[
    tuple[str, str] | None, Option(metavar="A B", help="Two neighbouring inputs, as JSON.")
]
PerCall = Annotated[bool, Option(help="TARGET is f(data) or f(data, rng) and returns one output.")]
Target = Annotated[
    str | None,
    Argument(help='module:name, file.py:name, or "zoo:Laplace(scale=0.5)".', show_default=False),
]
Program = Annotated[
    str | None, Option(help='A program as the mechanism, in place of TARGET: "./prog --fast".')
]
MaxBytes = Annotated[
    int | None,
    Option(
        parser=whole,
        metavar="BYTES",
        help="Read at most so many bytes of a file, after decompression. Default: 2 GiB.",
    ),
]
Decimal = Annotated[str, Option(metavar="MARK", help="The decimal mark in text files: . or ,")]
Thousands = Annotated[
    str, Option(metavar="MARK", help="What separates thousands in text files, if anything.")
]
Encoding = Annotated[str, Option(metavar="NAME", help="The encoding of text files: cp1252 …")]
Seed = Annotated[int, Option("--seed", "--rng", help="The same seed gives the same answer.")]
Confidence = Annotated[float, Option(**NUMBER, help="One minus the error probability.")]
N = Annotated[
    int | None,
    Option(
        *("--n", "-n"),
        parser=whole,
        metavar="N",
        help="Draws per side per pair, training included. Of --samples all by default.",
    ),
]
Seconds = Annotated[float | None, Option(**NUMBER, help="Time to spend, in place of --n.")]
Loss = Annotated[
    str,
    Option(
        help="The score of the outputs: auto; values (auto without the floating-point representation); "
        "bits (that alone); kde, knn, logistic …"
    ),
]


@dataclass(frozen=True)
class Out:
    """Where the result is written; places that cannot be written are refused before the first draw."""

    json: str | None = option(None, "Write the result here as JSON; - is stdout, without a panel.")
    report: Path | None = option(None, "Write a self-contained HTML report here.")
    quiet: bool = option(False, "No progress and no panel.", "--quiet", "-q")

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
    feature: list[str] | None = option(
        None,
        "A function of one output that may tell the inputs apart: module:name or file.py:name. "
        "May be given more than once.",
    )
    errors_are_outputs: bool = option(False, "An exception counts as an output.")
    seed: Seed = 0
    workers: int = option(1, "Processes that draw.")
    dask: str | None = option(
        None, "A Dask scheduler to draw on: tcp://scheduler:8786.", metavar="ADDRESS"
    )

    def mechanism(self, target: str | None, command: str | None) -> Any:
        """The mechanism that is named, without its features."""
        if command:
            return targets.program(command)
        return targets.mechanism(str(target), per_call=self.per_call)

    def featured(self, box: Any) -> Any:
        """The mechanism with the features that were asked for."""
        return with_features(
            box, [targets.from_option("--feature", one) for one in self.feature or ()]
        )

    def drawing(self, out: Out, store: Path | None = None, identity: str | None = None) -> Any:
        """The arguments of a verb that draws."""
        from dpassay.sampling.draw import Sampling
        from dpassay.sampling.executors import connected

        client = None
        if self.dask is not None:
            if self.workers != 1:
                raise InvalidInput(
                    "the cluster has its own workers: give one of --workers and --dask"
                )
            client = held.enter_context(connected(self.dask))
            if not client.nthreads():
                say(f"note: {self.dask} has no workers yet: waiting for them")
        sampling = Sampling(
            workers=self.workers,
            executor=client,
            on_error="outcome" if self.errors_are_outputs else "raise",
            progress=False if out.quiet else None,
            store=store,
            identity=identity,
        )
        return {"rng": self.seed, "sampling": sampling}


@dataclass(frozen=True)
class Where:
    """A mechanism and its inputs, or files of draws."""

    target: Target = None
    pair: PairOption = None
    pairs: Path | None = option(None, "A JSON file with a list of pairs: [[0, 1], [0, 2]].")
    neighbours: str | None = option(None, "Pairs to try: patterns:6, or remove-one:data.csv.")
    relation: str | None = option(
        None,
        "What makes the inputs neighbours, for the record: add_remove, replace or sensitivity_one.",
    )
    samples: tuple[Path, Path] | None = option(
        None, "Two files of outputs (.npy, .csv, .jsonl, .parquet …).", metavar="P Q"
    )
    store: Path | None = option(
        None,
        "A folder that keeps every draw; interrupted runs resume. Without a TARGET: the draws to audit.",
    )
    identity: str | None = option(
        None,
        "A name for the mechanism and its inputs in --store, where they cannot be described.",
    )
    columns: list[str] | None = option(
        None, "The columns of --samples that are outputs.", metavar="A,B"
    )
    drop: list[str] | None = option(
        None, "Columns of --samples that are not outputs.", metavar="ID,TIME"
    )
    decimal: Decimal = "."
    thousands: Thousands = ""
    encoding: Encoding = "utf-8"
    max_bytes: MaxBytes = None
    command: Program = None

    @property
    def draws(self) -> bool:
        """Whether there is a mechanism to draw from."""
        return self.target is not None or self.command is not None

    def number(self, n: int | None, default: int, seconds: float | None = None) -> int | None:
        """The number of draws; None (all of them) for samples where no number is given."""
        return default if n is None and seconds is None and self.draws else n

    def read(self, how: How, out: Out) -> tuple[Any, Any, dict[str, Any]]:
        """What a verb is given: a mechanism or samples, pairs or None, and further arguments."""
        from dpassay.sampling.collected import Store, from_samples

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
        relation = {} if self.relation is None else {"relation": self.relation}
        if self.draws:
            if self.columns or self.drop:
                raise InvalidInput("--columns and --drop choose among the columns of --samples")
            box = how.mechanism(self.target, self.command)
            pairs = targets.pairs(self.pair, self.pairs, self.neighbours, box)
            return how.featured(box), pairs, relation | how.drawing(out, self.store, self.identity)
        if self.pair or self.pairs or self.neighbours:
            raise InvalidInput("samples already belong to a pair: leave --pair out")
        if how.feature:
            raise InvalidInput("--feature needs a mechanism: samples hold outputs in another form")
        if self.samples is None:
            assert self.store is not None
            return Store(self.store).samples(), None, relation
        samples = from_samples(
            *self.samples,
            columns=_names(self.columns),
            drop=_names(self.drop),
            max_bytes=self.max_bytes,
            decimal=self.decimal,
            thousands=self.thousands,
            encoding=self.encoding,
            rng=how.seed,
        )
        return samples, None, relation


def _names(typed: list[str] | None) -> list[str] | None:
    """Names between commas, of every time that an option is given; one that holds a comma is quoted."""
    rows = csv.reader(typed or (), skipinitialspace=True)
    return list(dict.fromkeys(name.strip() for row in rows for name in row)) if typed else None


def claimed(box: Any, given: str | None, example: str = "eps=1") -> Any:
    """The claim that was given, or that of a mechanism of the zoo."""
    own = getattr(box, "claim", None)
    if given is None and own is None:
        raise InvalidInput(f'what does it claim? Give --claim "{example}"')
    return own if given is None else as_claim(given)
