"""Commands that draw from a mechanism, or read its draws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dpassay.cli.app import app
from dpassay.cli.delivery import PLAN, deliver, status
from dpassay.cli.earlier import earlier_results, their_columns
from dpassay.cli.inputs import Files, check_writable, live, write_json
from dpassay.cli.inputs import sampling as as_sampling
from dpassay.cli.inputs import source as read_source
from dpassay.cli.options import (
    ColumnsOption,
    CommandOption,
    Confidence,
    DaskOption,
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
    StoreOption,
    Target,
    TimeBudget,
    Workers,
    whole,
)
from dpassay.errors import InvalidInput
from dpassay.panels import bound_panel


@app.command()
def audit(
    target: Target = None,
    pair: PairOption = None,
    pairs: PairsOption = None,
    neighbours: NeighboursOption = None,
    relation: RelationOption = None,
    samples: SamplesOption = None,
    store: StoreOption = None,
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
    dask: DaskOption = None,
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
    from dpassay.privacy.claim_text import claim as read_claim

    check_writable(report, json)
    files = Files(samples, columns, drop, store)
    source, found_pairs = read_source(
        target, command, files, pair, pairs, neighbours, per_call, seed
    )
    own = getattr(source, "claim", None)
    if not claim and own is None:
        raise InvalidInput('what does it claim? Give --claim "eps=1"')
    claims: list[Any] = [read_claim(text) for text in claim] if claim else [own]
    if n is None and time_budget is None and live(source):
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
        rng=seed if live(source) else None,
        sampling=as_sampling(workers, dask, quiet, errors_are_outputs, store)
        if live(source)
        else None,
    )
    remedy = f"{PLAN}, another --loss or a lower --confidence"
    deliver(verdicts, None, json=json, report=report, quiet=quiet, remedy=remedy)
    raise typer.Exit(status(verdicts))


@app.command()
def monitor(
    target: Target = None,
    pair: PairOption = None,
    pairs: PairsOption = None,
    neighbours: NeighboursOption = None,
    relation: RelationOption = None,
    samples: SamplesOption = None,
    store: StoreOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    claim: Annotated[str | None, typer.Option(help='"eps=1", "mu=1" …, as for audit.')] = None,
    max_n: Annotated[
        int | None,
        typer.Option(
            "--max-n",
            parser=whole,
            metavar="N",
            help="The most draws per side per pair; 100000, or all of --samples.",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    loss: LossOption = "values",
    per_call: PerCall = False,
    errors_are_outputs: OnError = False,
    seed: Seed = 0,
    workers: Workers = 1,
    dask: DaskOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    quiet: Quiet = False,
) -> None:
    """Draw until a claim is refuted; valid wherever it stops, with Ctrl-C too.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything.

    Example: dpassay monitor "zoo:Laplace(scale=0.8)" --pair 0 1 --claim "eps=1" --max-n 100000
    """
    from dpassay.monitors import monitor as run
    from dpassay.privacy.claim_text import claim as read_claim

    check_writable(report, json)
    files = Files(samples, columns, drop, store)
    source, found_pairs = read_source(
        target, command, files, pair, pairs, neighbours, per_call, seed
    )
    own = getattr(source, "claim", None)
    if claim is None and own is None:
        raise InvalidInput('what does it claim? Give --claim "eps=1"')
    verdict = run(
        source,
        found_pairs,
        own if claim is None else read_claim(claim),
        max_n=100_000 if max_n is None and live(source) else max_n,
        confidence=confidence,
        loss=loss,
        relation=relation,
        rng=seed if live(source) else None,
        sampling=as_sampling(workers, dask, quiet, errors_are_outputs, store)
        if live(source)
        else None,
    )
    remedy = "more draws (--max-n), another --loss or a lower --confidence"
    deliver([verdict], None, json=json, report=report, quiet=quiet, remedy=remedy)
    raise typer.Exit(status([verdict]))


@app.command()
def bound(
    target: Target = None,
    pair: PairOption = None,
    pairs: PairsOption = None,
    neighbours: NeighboursOption = None,
    relation: RelationOption = None,
    samples: SamplesOption = None,
    store: StoreOption = None,
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
    dask: DaskOption = None,
    json: JsonOption = None,
    quiet: Quiet = False,
) -> None:
    """The largest certified lower bound on a privacy parameter, without any claim.

    Exit status: 0 done, 2 bad input, 3 an internal error, 130 interrupted.

    Example: dpassay bound "zoo:Gaussian(sigma=1.0)" --pair 0 1 --of "eps, delta=1e-5"
    """
    from dpassay.audits import bound as run
    from dpassay.privacy.claim_text import parameter

    check_writable(None, json)
    asked = parameter(of)
    files = Files(samples, columns, drop, store)
    source, found_pairs = read_source(
        target, command, files, pair, pairs, neighbours, per_call, seed
    )
    if n is None and time_budget is None and live(source):
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
        rng=seed if live(source) else None,
        sampling=as_sampling(workers, dask, quiet, errors_are_outputs, store)
        if live(source)
        else None,
    )
    if not quiet and json != "-":
        Console().print(bound_panel(found))
    write_json(json, found.to_json(indent=2))


@app.command()
def verify(
    target: Target = None,
    pair: PairOption = None,
    pairs: PairsOption = None,
    neighbours: NeighboursOption = None,
    relation: RelationOption = None,
    samples: SamplesOption = None,
    store: StoreOption = None,
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
    dask: DaskOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    quiet: Quiet = False,
) -> None:
    """Show that a claim holds on these pairs, where outputs are discrete.

    Exit status: 0 confirmed, 2 bad input, 3 an internal error, 5 not confirmed, 130 interrupted.

    Example: dpassay verify "zoo:DiscreteLaplace(scale=1.0)" --pair 0 1 --claim "eps=1.1, delta=1e-3"
    """
    from dpassay.privacy.claim_text import claim as read_claim
    from dpassay.verifications import verify as run

    check_writable(report, json)
    files = Files(samples, columns, drop, store)
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
        n=1_000_000 if n is None and live(source) else n,
        confidence=confidence,
        relation=relation,
        rng=seed if live(source) else None,
        sampling=as_sampling(workers, dask, quiet, errors_are_outputs, store)
        if live(source)
        else None,
    )
    deliver([found], None, json=json, report=report, quiet=quiet)
    raise typer.Exit(0 if found.confirmed else 5)


@app.command()
def estimate(
    target: Target = None,
    pair: PairOption = None,
    samples: SamplesOption = None,
    store: StoreOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    n: Annotated[
        int | None, typer.Option("--n", parser=whole, metavar="N", help="Draws per side.")
    ] = None,
    loss: Annotated[
        str, typer.Option(help="auto, kde, polynomial, knn, logistic, boosting …")
    ] = "auto",
    per_call: PerCall = False,
    errors_are_outputs: OnError = False,
    seed: Seed = 0,
    workers: Workers = 1,
    dask: DaskOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    quiet: Quiet = False,
) -> None:
    """Every notion of one pair: ε, δ(ε), Rényi, trade-off, μ. Estimates, not bounds.

    Exit status: 0 done, 2 bad input, 3 an internal error, 130 interrupted.

    Example: dpassay estimate "zoo:Gaussian(sigma=1.0)" --pair 0 1 --n 100000
    """
    from dpassay.profiles import estimate as run

    check_writable(report, json)
    files = Files(samples, columns, drop, store)
    source, found = read_source(target, command, files, pair, None, None, per_call, seed)
    if n is None and live(source):
        n = 100_000
    profile = run(
        source,
        found,
        n=n,
        loss=loss,
        rng=seed if live(source) else None,
        sampling=as_sampling(workers, dask, quiet, errors_are_outputs, store)
        if live(source)
        else None,
    )
    deliver([], profile, json=json, report=report, quiet=quiet)


@app.command()
def replay(
    verdict: Annotated[
        Path, typer.Argument(help="A verdict, or a hunt, that was written with --json.")
    ],
    target: Target = None,
    samples: SamplesOption = None,
    store: StoreOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    command: CommandOption = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--n",
            parser=whole,
            metavar="N",
            help="Fresh draws per side; 20000, or all of --samples.",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    per_call: PerCall = False,
    seed: Seed = 1,
    workers: Workers = 1,
    dask: DaskOption = None,
    json: JsonOption = None,
    quiet: Quiet = False,
) -> None:
    """Run the event of an earlier verdict again on fresh draws.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything, 130 interrupted.

    Example: dpassay replay verdict.json "zoo:Laplace(scale=0.8)" --n 20000

    Example: dpassay replay verdict.json --samples fresh-p.csv fresh-q.csv
    """
    from dpassay.errors import UnreadableFile
    from dpassay.replays import replay as run

    check_writable(None, json)

    try:
        text = verdict.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{verdict} cannot be read: {error}") from None
    listed = earlier_results(text)
    if columns is None and drop is None:
        columns = their_columns(listed)
    files = Files(samples, columns, drop, store)
    drawn = target is not None or command is not None
    pair = ("0", "1") if drawn else None  # the witness brings its own
    given = target, command, files, pair, None, None, per_call, seed
    source, _ = read_source(*given)
    again = [
        run(
            earlier,
            source if k == 0 else read_source(*given)[0],  # samples are dealt out once
            n=20_000 if n is None and live(source) else n,
            confidence=1 - (1 - confidence) / len(listed),
            rng=seed,
            sampling=as_sampling(workers, dask, quiet, False, store),
        )
        for k, earlier in enumerate(listed)
    ]
    remedy = f"{PLAN} or a lower --confidence"
    deliver(again, None, json=json, report=None, quiet=quiet, remedy=remedy)
    raise typer.Exit(status(again))


@app.command()
def draw(
    target: Target = None,
    pair: PairOption = None,
    command: CommandOption = None,
    n: Annotated[int, typer.Option("--n", help="Draws per side.")] = 1000,
    store: Annotated[
        Path, typer.Option("--store", help="The folder that keeps every draw as it comes.")
    ] = Path("runs"),
    per_call: PerCall = False,
    errors_are_outputs: OnError = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", "--rng", help="0, or that of the store, if it is left out."),
    ] = None,
    workers: Workers = 1,
    dask: DaskOption = None,
    quiet: Quiet = False,
) -> None:
    """Draw into a store, and go on where an earlier run was ended.

    Example: dpassay draw mine.py:train --per-call --pair 0 1 --n 1000 --store runs --workers 4

    Example: dpassay audit --store runs --claim "eps=1"
    """
    from dpassay.sampling.manifest import stored_seed
    from dpassay.sampling.samples import draw as run
    from dpassay.sampling.store import Store

    files = Files(None, None, None)
    if seed is None:
        seed = stored_seed(store) or 0
    source, found = read_source(target, command, files, pair, None, None, per_call, seed)
    run(
        source,
        found,
        n=n,
        rng=seed,
        sampling=as_sampling(workers, dask, quiet, errors_are_outputs, store),
    )
    if not quiet:
        Console().print(repr(Store(store)), highlight=False, markup=False, soft_wrap=True)
