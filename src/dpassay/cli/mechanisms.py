"""Commands that draw from a mechanism, or read its draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dpassay.cli.app import app
from dpassay.cli.delivery import PLAN, deliver, deliver_bound, status
from dpassay.cli.earlier import earlier_results, their_columns
from dpassay.cli.groups import How, Out, Where, claimed, command
from dpassay.cli.inputs import Files, check_writable, live
from dpassay.cli.inputs import sampling as as_sampling
from dpassay.cli.inputs import source as read_source
from dpassay.cli.options import (
    CommandOption,
    Confidence,
    DaskOption,
    IdentityOption,
    LossOption,
    N,
    OnError,
    PairOption,
    PerCall,
    Quiet,
    SecondsOption,
    Target,
    Workers,
    whole,
)
from dpassay.errors import InvalidInput


@command()
def audit(
    *,
    where: Where,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            help='"eps=1", "eps=1, delta=1e-5", "eps=1, delta=1e-5 in delta", "mu=1", "rho=0.5", '
            '"rho=0.5, delta=1e-6", "renyi(order=5)=0.2" or "renyi(2)=0.1, renyi(4)=0.3". May be '
            "given more than once."
        ),
    ] = None,
    n: N = None,
    seconds: SecondsOption = None,
    confidence: Confidence = 0.95,
    loss: LossOption = "auto",
    how: How,
    out: Out,
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
    from dpassay.auditing.audits import audit as run

    check_writable(out.report, out.json)
    source, pairs = where.read(how)
    claims = [claimed(source, text) for text in claim or (None,)]
    if n is None and seconds is None and live(source):
        n = 20_000
    verdicts = run(
        source,
        pairs,
        claims,
        n=n,
        seconds=seconds,
        confidence=confidence,
        loss=loss,
        details=out.report is not None,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    remedy = f"{PLAN}, another --loss or a lower --confidence"
    deliver(verdicts, None, out=out, remedy=remedy)
    raise typer.Exit(status(verdicts))


@command()
def monitor(
    *,
    where: Where,
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
    how: How,
    out: Out,
) -> None:
    """Draw until a claim is refuted; valid wherever it stops, with Ctrl-C too.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything.

    Example: dpassay monitor "zoo:Laplace(scale=0.8)" --pair 0 1 --claim "eps=1" --max-n 100000
    """
    from dpassay.monitoring.monitors import monitor as run

    check_writable(out.report, out.json)
    source, pairs = where.read(how)
    verdict = run(
        source,
        pairs,
        claimed(source, claim),
        max_n=100_000 if max_n is None and live(source) else max_n,
        confidence=confidence,
        loss=loss,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    remedy = "more draws (--max-n), another --loss or a lower --confidence"
    deliver([verdict], None, out=out, remedy=remedy)
    raise typer.Exit(status([verdict]))


@command("report")
def bound(
    *,
    where: Where,
    of: Annotated[
        str,
        typer.Option(
            help='"eps", "eps, delta=1e-5", "delta, eps=1", "mu", "rho" or "renyi(order=2)".'
        ),
    ] = "eps",
    n: N = None,
    seconds: SecondsOption = None,
    confidence: Confidence = 0.95,
    loss: LossOption = "auto",
    how: How,
    out: Out,
) -> None:
    """The largest certified lower bound on a privacy parameter, without any claim.

    Exit status: 0 done, 2 bad input, 3 an internal error, 130 interrupted.

    Example: dpassay bound "zoo:Gaussian(sigma=1.0)" --pair 0 1 --of "eps, delta=1e-5"
    """
    from dpassay.auditing.audits import bound as run
    from dpassay.privacy.claim_parsing import parameter

    check_writable(None, out.json)
    asked = parameter(of)
    source, pairs = where.read(how)
    if n is None and seconds is None and live(source):
        n = 20_000
    found = run(
        source,
        pairs,
        asked,
        n=n,
        seconds=seconds,
        confidence=confidence,
        loss=loss,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    deliver_bound(found, out, out.json or "")


@command()
def verify(
    *,
    where: Where,
    claim: Annotated[
        str | None,
        typer.Option(help='"eps=1, delta=1e-5"; "eps=1" and "mu=1" are shown up to a δ.'),
    ] = None,
    n: N = None,
    confidence: Confidence = 0.95,
    how: How,
    out: Out,
) -> None:
    """Show that a claim holds on these pairs, where outputs are discrete.

    Exit status: 0 confirmed, 2 bad input, 3 an internal error, 5 not confirmed, 130 interrupted.

    Example: dpassay verify "zoo:DiscreteLaplace(scale=1.0)" --pair 0 1 --claim "eps=1.1, delta=1e-3"
    """
    from dpassay.auditing.verifications import verify as run

    check_writable(out.report, out.json)
    source, pairs = where.read(how)
    asked = claimed(source, claim, "eps=1, delta=1e-5")
    found = run(
        source,
        pairs,
        asked,
        n=1_000_000 if n is None and live(source) else n,
        confidence=confidence,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    deliver([found], None, out=out)
    raise typer.Exit(0 if found.confirmed else 5)


@command("pairs", "neighbours", "relation")
def estimate(
    *,
    where: Where,
    n: Annotated[
        int | None, typer.Option("--n", parser=whole, metavar="N", help="Draws per side.")
    ] = None,
    loss: Annotated[
        str, typer.Option(help="auto, kde, polynomial, knn, logistic, boosting …")
    ] = "auto",
    how: How,
    out: Out,
) -> None:
    """Every notion of one pair: ε, δ(ε), Rényi, trade-off, μ. Estimates, not bounds.

    Exit status: 0 done, 2 bad input, 3 an internal error, 130 interrupted.

    Example: dpassay estimate "zoo:Gaussian(sigma=1.0)" --pair 0 1 --n 100000
    """
    from dpassay.notions.all_notions import estimate as run

    check_writable(out.report, out.json)
    source, pair = where.read(how)
    if n is None and live(source):
        n = 100_000
    profile = run(
        source,
        pair,
        n=n,
        loss=loss,
        **how.drawing(source, out, where),
    )
    deliver([], profile, out=out)


@command("pair", "pairs", "neighbours", "relation", "errors_are_outputs", "report", seed=1)
def replay(
    verdict: Annotated[
        Path, typer.Argument(help="A verdict, a bound, or a hunt, that was written with --json.")
    ],
    *,
    where: Where,
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
    how: How,
    out: Out,
) -> None:
    """Run the event of an earlier verdict, or of a bound, again on fresh draws.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything, 130 interrupted.

    Example: dpassay replay verdict.json "zoo:Laplace(scale=0.8)" --n 20000

    Example: dpassay replay bound.json "zoo:Laplace(scale=0.8)" --n 100000

    Example: dpassay replay verdict.json --samples fresh-p.csv fresh-q.csv
    """
    from dpassay.auditing.replays import replay as run
    from dpassay.errors import UnreadableFile

    check_writable(None, out.json)

    try:
        text = verdict.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{verdict} cannot be read: {error}") from None
    listed = earlier_results(text)
    drawn = where.target is not None or where.command is not None
    if not drawn and where.samples is None and where.store is None:
        raise InvalidInput(
            f"on which draws? Give the mechanism, as in dpassay replay {verdict} TARGET, or --samples "
            "and two files of fresh draws"
        )
    if drawn:
        where = replace(where, pair=("0", "1"))  # the witness brings its own
    elif where.columns is None and where.drop is None:
        where = replace(where, columns=their_columns(listed))
    source, _ = where.read(how)
    again = [
        run(
            earlier,
            source if k == 0 else where.read(how)[0],  # samples are dealt out once
            n=20_000 if n is None and live(source) else n,
            confidence=1 - (1 - confidence) / len(listed),
            **how.drawing(source, out, where),
        )
        for k, earlier in enumerate(listed)
    ]
    remedy = f"{PLAN} or a lower --confidence"
    deliver(again, None, out=out, remedy=remedy)
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
    identity: IdentityOption = None,
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
    from dpassay.sampling.collected import Store
    from dpassay.sampling.samples import draw as run
    from dpassay.sampling.store_files import stored_seed

    files = Files(None, None, None)
    if seed is None:
        seed = stored_seed(store) or 0
    source, found = read_source(target, command, files, pair, None, None, per_call, seed)
    run(
        source,
        found,
        n=n,
        rng=seed,
        sampling=as_sampling(workers, dask, quiet, errors_are_outputs, store, identity),
    )
    if not quiet:
        Console().print(repr(Store(store)), highlight=False, markup=False, soft_wrap=True)
