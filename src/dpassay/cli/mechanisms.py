"""Commands that draw from a mechanism, or read its draws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dpassay.cli.app import app
from dpassay.cli.delivery import PLAN, deliver, status
from dpassay.cli.inputs import Files, check_writable, write_json
from dpassay.cli.inputs import sampling as as_sampling
from dpassay.cli.inputs import source as read_source
from dpassay.cli.options import (
    ColumnsOption,
    CommandOption,
    Confidence,
    DropOption,
    JsonOption,
    LossOption,
    N,
    NeighboursOption,
    OnError,
    PairOption,
    PairsOption,
    PerCall,
    Quiet,
    RelationOption,
    ReportOption,
    SamplesOption,
    Seed,
    Target,
    TimeBudget,
    Workers,
)
from dpassay.errors import InvalidInput
from dpassay.hunting.result import Hunt
from dpassay.panels import bound_panel, verification_panel
from dpassay.records import Record
from dpassay.results import Verdict


@app.command()
def audit(
    target: Target = None,
    pair: PairOption = None,
    pairs: PairsOption = None,
    neighbours: NeighboursOption = None,
    relation: RelationOption = None,
    samples: SamplesOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            help='"eps=1", "eps=1, delta=1e-5", "eps=1, delta=1e-5 in delta", "mu=1", "rho=0.5", '
            '"rho=0.5, delta=1e-6", "renyi(order=5)=0.2" or "renyi(2)=0.1, renyi(4)=0.3". May be '
            "given more than once."
        ),
    ] = None,
    n: N = None,
    time_budget: TimeBudget = None,
    confidence: Confidence = 0.95,
    loss: LossOption = "auto",
    per_call: PerCall = False,
    errors_are_outputs: OnError = False,
    seed: Seed = 0,
    workers: Workers = 1,
    json: JsonOption = None,
    report: ReportOption = None,
    quiet: Quiet = False,
) -> None:
    """Try to refute a privacy claim.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything, 130 interrupted. Of several claims a violation counts first, then one that could not be
    seen.

    Example: dpassay audit "zoo:Laplace(scale=0.8)" --pair 0 1 --claim "eps=1"

    Example: dpassay audit mine.py:release --pair 0 1 --claim "eps=1, delta=1e-5" --report out.html

    Example: dpassay audit --samples p.npy q.npy --claim "mu=1" --json -

    Example: dpassay audit --samples p.csv q.csv --drop id,time --relation replace --claim "eps=1"
    """
    from dpassay.audits import audit as run
    from dpassay.privacy.text import claim as read_claim

    check_writable(report, json)
    files = Files(samples, columns, drop)
    source, found_pairs = read_source(
        target, command, files, pair, pairs, neighbours, per_call, seed
    )
    own = getattr(source, "claim", None)
    if not claim and own is None:
        raise InvalidInput('what does it claim? Give --claim "eps=1"')
    claims: list[Any] = [read_claim(text) for text in claim] if claim else [own]
    if n is None and time_budget is None and samples is None:
        n = 20_000
    verdicts = run(
        source,
        found_pairs,
        claims,
        n=n,
        time_budget=time_budget,
        confidence=confidence,
        loss=loss,
        details=report is not None,
        relation=relation,
        rng=None if samples else seed,
        sampling=None if samples else as_sampling(workers, quiet, errors_are_outputs),
    )
    remedy = f"{PLAN}, another --loss or a lower --confidence"
    deliver(verdicts, None, json=json, report=report, quiet=quiet, remedy=remedy)
    raise typer.Exit(status(verdicts))


@app.command()
def bound(
    target: Target = None,
    pair: PairOption = None,
    pairs: PairsOption = None,
    neighbours: NeighboursOption = None,
    relation: RelationOption = None,
    samples: SamplesOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    of: Annotated[
        str,
        typer.Option(
            help='"eps", "eps, delta=1e-5", "delta, eps=1", "mu", "rho" or "renyi(order=2)".'
        ),
    ] = "eps",
    n: N = None,
    time_budget: TimeBudget = None,
    confidence: Confidence = 0.95,
    loss: LossOption = "auto",
    per_call: PerCall = False,
    errors_are_outputs: OnError = False,
    seed: Seed = 0,
    workers: Workers = 1,
    json: JsonOption = None,
    quiet: Quiet = False,
) -> None:
    """The largest certified lower bound on a privacy parameter, without any claim.

    Example: dpassay bound "zoo:Gaussian(sigma=1.0)" --pair 0 1 --of "eps, delta=1e-5"
    """
    from dpassay.audits import bound as run
    from dpassay.privacy.text import parameter

    check_writable(None, json)
    asked = parameter(of)
    files = Files(samples, columns, drop)
    source, found_pairs = read_source(
        target, command, files, pair, pairs, neighbours, per_call, seed
    )
    if n is None and time_budget is None and samples is None:
        n = 20_000
    found = run(
        source,
        found_pairs,
        asked,
        n=n,
        time_budget=time_budget,
        confidence=confidence,
        loss=loss,
        relation=relation,
        rng=None if samples else seed,
        sampling=None if samples else as_sampling(workers, quiet, errors_are_outputs),
    )
    write_json(json, found.to_json(indent=2))
    if not quiet and json != "-":
        Console().print(bound_panel(found))


@app.command()
def verify(
    target: Target = None,
    pair: PairOption = None,
    pairs: PairsOption = None,
    neighbours: NeighboursOption = None,
    relation: RelationOption = None,
    samples: SamplesOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    claim: Annotated[
        str | None,
        typer.Option(help='"eps=1, delta=1e-5"; "eps=1" and "mu=1" are shown up to a δ.'),
    ] = None,
    n: N = None,
    confidence: Confidence = 0.95,
    per_call: PerCall = False,
    errors_are_outputs: OnError = False,
    seed: Seed = 0,
    workers: Workers = 1,
    json: JsonOption = None,
    quiet: Quiet = False,
) -> None:
    """Show that a claim holds on these pairs, where outputs are discrete.

    Exit status: 0 confirmed, 2 bad input, 5 not confirmed.

    Example: dpassay verify "zoo:DiscreteLaplace(scale=1.0)" --pair 0 1 --claim "eps=1.1, delta=1e-3"
    """
    from dpassay.privacy.text import claim as read_claim
    from dpassay.verifications import verify as run

    check_writable(None, json)
    files = Files(samples, columns, drop)
    source, found_pairs = read_source(
        target, command, files, pair, pairs, neighbours, per_call, seed
    )
    own = getattr(source, "claim", None)
    if claim is None and own is None:
        raise InvalidInput('what does it claim? Give --claim "eps=1, delta=1e-5"')
    found = run(
        source,
        found_pairs,
        own if claim is None else read_claim(claim),
        n=1_000_000 if n is None and samples is None else n,
        confidence=confidence,
        relation=relation,
        rng=None if samples else seed,
        sampling=None if samples else as_sampling(workers, quiet, errors_are_outputs),
    )
    write_json(json, found.to_json(indent=2))
    if not quiet and json != "-":
        Console().print(verification_panel(found))
    raise typer.Exit(0 if found.confirmed else 5)


@app.command()
def estimate(
    target: Target = None,
    pair: PairOption = None,
    samples: SamplesOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    n: Annotated[int | None, typer.Option("--n", help="Draws per side.")] = None,
    loss: Annotated[
        str, typer.Option(help="auto, kde, polynomial, knn, logistic, boosting …")
    ] = "auto",
    per_call: PerCall = False,
    errors_are_outputs: OnError = False,
    seed: Seed = 0,
    workers: Workers = 1,
    json: JsonOption = None,
    report: ReportOption = None,
    quiet: Quiet = False,
) -> None:
    """Every notion of one pair: ε, δ(ε), Rényi, trade-off, μ. Estimates, not bounds.

    Example: dpassay estimate "zoo:Gaussian(sigma=1.0)" --pair 0 1 --n 100000
    """
    from dpassay.profiles import estimate as run

    check_writable(report, json)
    files = Files(samples, columns, drop)
    source, found = read_source(target, command, files, pair, None, None, per_call, seed)
    if n is None and samples is None:
        n = 100_000
    profile = run(
        source,
        found,
        n=n,
        loss=loss,
        rng=None if samples else seed,
        sampling=None if samples else as_sampling(workers, quiet, errors_are_outputs),
    )
    deliver([], profile, json=json, report=report, quiet=quiet)


@app.command()
def replay(
    verdict: Annotated[
        Path, typer.Argument(help="A verdict, or a hunt, that was written with --json.")
    ],
    target: Target = None,
    samples: SamplesOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    n: Annotated[
        int | None, typer.Option("--n", help="Fresh draws per side; 20000, or all of --samples.")
    ] = None,
    confidence: Confidence = 0.95,
    per_call: PerCall = False,
    seed: Seed = 1,
    workers: Workers = 1,
    json: JsonOption = None,
    quiet: Quiet = False,
) -> None:
    """Run the event of an earlier verdict again on fresh draws.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 4 could not have seen anything.

    Example: dpassay replay verdict.json "zoo:Laplace(scale=0.8)" --n 20000

    Example: dpassay replay verdict.json --samples fresh-p.csv fresh-q.csv
    """
    from dpassay.errors import UnreadableFile
    from dpassay.replays import replay as run

    try:
        text = verdict.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{verdict} cannot be read: {error}") from None
    found = Record.from_json(text)
    earlier = found.verdict if isinstance(found, Hunt) else Verdict.from_json(text)
    files = Files(samples, columns, drop)
    pair = None if samples else ("0", "1")  # the witness brings its own
    source, _ = read_source(target, command, files, pair, None, None, per_call, seed)
    again = run(
        earlier,
        source,
        n=20_000 if n is None and samples is None else n,
        confidence=confidence,
        rng=seed,
        sampling=as_sampling(workers, quiet, False),
    )
    remedy = f"{PLAN} or a lower --confidence"
    deliver([again], None, json=json, report=None, quiet=quiet, remedy=remedy)
    raise typer.Exit(status([again]))
