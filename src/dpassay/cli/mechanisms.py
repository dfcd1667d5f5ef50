"""Commands that draw from a mechanism, or read its draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dpassay import validation as checks
from dpassay.cli import targets
from dpassay.cli.app import command
from dpassay.cli.delivery import PLAN, deliver
from dpassay.cli.options import (
    NUMBER,
    Confidence,
    How,
    Loss,
    N,
    Out,
    Program,
    Seconds,
    Target,
    Where,
    claimed,
    live,
    whole,
)
from dpassay.errors import InvalidInput, UnreadableFile


def _draws(source: Any, n: int | None, default: int, seconds: float | None = None) -> int | None:
    """The number of draws; None (all of them) for samples, where no number is given."""
    return default if n is None and seconds is None and live(source) else n


@command()
def audit(
    *,
    where: Where,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            help='The claim: "eps=1", "eps=1, delta=1e-5", "mu=1", "rho=0.5", "renyi(order=5)=0.2" … May '
            "be given more than once."
        ),
    ] = None,
    n: N = None,
    seconds: Seconds = None,
    confidence: Confidence = 0.95,
    loss: Loss = "auto",
    how: How,
    out: Out,
) -> None:
    """Try to refute a privacy claim.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 internal error, 4 could not have
    detected a violation, 130 interrupted. Of several claims a violation counts first, then
    status 4.

    Example: dpassay audit "zoo:Laplace(scale=0.8)" --pair 0 1 --claim "eps=1"

    Example: dpassay audit mine.py:release --pair 0 1 --claim "eps=1, delta=1e-5" --report out.html

    Example: dpassay audit --samples p.npy q.npy --claim "mu=1" --json -

    Example: dpassay audit --samples p.csv q.csv --drop id,time --relation replace --claim "eps=1"
    """
    from dpassay.auditing.audits import audit as run

    source, pairs = where.read(how)
    claims = [claimed(source, text) for text in claim or (None,)]
    verdicts = run(
        source,
        pairs,
        claims,
        n=_draws(source, n, 20_000, seconds),
        seconds=seconds,
        confidence=confidence,
        loss=loss,
        details=out.report is not None,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    deliver(verdicts, out, f"{PLAN}, another --loss or a lower --confidence")


@command()
def monitor(
    *,
    where: Where,
    claim: Annotated[str | None, typer.Option(help='"eps=1", "mu=1" …, as for audit.')] = None,
    max_n: Annotated[
        int | None,
        typer.Option(
            parser=whole, metavar="N", help="The most draws per side; 100000, or all of --samples."
        ),
    ] = None,
    confidence: Confidence = 0.95,
    loss: Loss = "auto",
    how: How,
    out: Out,
) -> None:
    """Draw until a claim is refuted. The result is valid whenever it stops, also after Ctrl-C.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 internal error, 4 could not have
    detected a violation.

    Example: dpassay monitor "zoo:Laplace(scale=0.8)" --pair 0 1 --claim "eps=1" --max-n 100000
    """
    from dpassay.monitoring.monitors import monitor as run

    source, pairs = where.read(how)
    verdict = run(
        source,
        pairs,
        claimed(source, claim),
        max_n=_draws(source, max_n, 100_000),
        confidence=confidence,
        loss=loss,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    remedy = "more draws (--max-n), another --loss or a lower --confidence"
    deliver([verdict], out, remedy)


@command()
def bound(
    *,
    where: Where,
    of: Annotated[
        str,
        typer.Option(
            help='"eps" (at δ = 0), "eps, delta=1e-5", "delta, eps=1", "mu", "rho" or "renyi(order=2)".'
        ),
    ] = "eps",
    family: Annotated[
        str | None,
        typer.Option(
            help="A dp.Family of which the mechanism is assumed to be one: module:name or file.py:name."
        ),
    ] = None,
    n: N = None,
    seconds: Seconds = None,
    confidence: Confidence = 0.95,
    loss: Loss = "auto",
    how: How,
    out: Out,
) -> None:
    """The largest certified lower bound on a privacy parameter, without any claim.

    An audit on the same draws chooses its event for its claim, and may certify a little more or less.

    Exit status: 0 done, 2 bad input, 3 internal error, 130 interrupted.

    Example: dpassay bound "zoo:Gaussian(sigma=1.0)" --pair 0 1 --of "eps, delta=1e-5"

    Example: dpassay bound train.py:train --pair 0 1 --of "eps, delta=1e-5" --family train.py:dp_sgd
    """
    from dpassay.auditing.audits import bound as run
    from dpassay.privacy.claim_parsing import parameter

    asked = parameter(of)
    source, pairs = where.read(how)
    found = run(
        source,
        pairs,
        asked,
        family=targets.family(family),
        n=_draws(source, n, 20_000, seconds),
        seconds=seconds,
        confidence=confidence,
        loss=loss,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    deliver([found], out)


@command()
def verify(
    *,
    where: Where,
    claim: Annotated[
        str | None,
        typer.Option(help='"eps=1, delta=1e-5"; "eps=1" and "mu=1" are verified up to a δ.'),
    ] = None,
    n: N = None,
    confidence: Confidence = 0.95,
    how: How,
    out: Out,
) -> None:
    """Show that a claim holds on these pairs, where outputs are discrete.

    Exit status: 0 verified, 2 bad input, 3 internal error, 5 not verified, 130 interrupted.

    Example: dpassay verify "zoo:DiscreteLaplace(scale=1.0)" --pair 0 1 --claim "eps=1.1, delta=1e-3"
    """
    from dpassay.auditing.verifications import verify as run

    source, pairs = where.read(how)
    found = run(
        source,
        pairs,
        claimed(source, claim, "eps=1, delta=1e-5"),
        n=_draws(source, n, 1_000_000),
        confidence=confidence,
        relation=where.relation,
        **how.drawing(source, out, where),
    )
    deliver([found], out)


@command("pairs", "neighbours", "relation")
def estimate(
    *,
    where: Where,
    n: N = None,
    loss: Annotated[
        str, typer.Option(help="auto, kde, polynomial, knn, logistic, boosting …")
    ] = "auto",
    how: How,
    out: Out,
) -> None:
    """Every notion of one pair: ε, δ(ε), Rényi, trade-off, μ. Estimates, not bounds.

    Exit status: 0 done, 2 bad input, 3 internal error, 130 interrupted.

    Example: dpassay estimate "zoo:Gaussian(sigma=1.0)" --pair 0 1 --n 100000
    """
    from dpassay.notions.all_notions import estimate as run

    source, pair = where.read(how)
    n = _draws(source, n, 100_000)
    deliver([run(source, pair, n=n, loss=loss, **how.drawing(source, out, where))], out)


@command("pair", "pairs", "neighbours", "relation", "errors_are_outputs", seed=1)
def replay(
    verdict: Annotated[
        Path, typer.Argument(help="A verdict, a bound, or a hunt, that was written with --json.")
    ],
    *,
    where: Where,
    n: Annotated[
        int | None,
        typer.Option(
            *("--n", "-n"),
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

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 internal error, 4 could not have
    detected a violation, 130 interrupted.

    Example: dpassay replay verdict.json "zoo:Laplace(scale=0.8)" --n 20000

    Example: dpassay replay bound.json "zoo:Laplace(scale=0.8)" --n 100000

    Example: dpassay replay verdict.json --samples fresh-p.csv fresh-q.csv
    """
    from dpassay.auditing.replays import replay as run

    drawn = where.target is not None or where.command is not None
    if not drawn and where.samples is None and where.store is None:
        raise InvalidInput(
            f"on which draws? Give the mechanism, as in dpassay replay {verdict} TARGET, or --samples "
            "and two files of fresh draws"
        )
    if drawn:  # before the verdict, whose claim may be a class of the mechanism's file
        source, _ = replace(where, pair=("0", "1")).read(how)  # the witness brings its own pair
    listed = earlier(verdict)
    if not drawn and not where.columns and not where.drop:
        where = replace(where, columns=_their_columns(listed))
    again, sure = [], 1 - (1 - confidence) / len(listed)
    for one in listed:
        draws = source if drawn else where.read(how)[0]  # samples are used up
        options = how.drawing(draws, out, where)
        again.append(run(one, draws, n=_draws(draws, n, 20_000), confidence=sure, **options))
    deliver(again, out, f"{PLAN} or a lower --confidence")


def earlier(path: Path) -> list[Any]:
    """What was written with --json: one result, or the verdicts of several claims."""
    from dpassay.hunting.result import Hunt
    from dpassay.records import Record

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{path} cannot be read: {error}") from None
    try:
        data = checks.read_json(text)
    except ValueError:
        data = None  # the record says what is wrong
    found = [*map(Record.from_dict, data)] if isinstance(data, list) else [Record.from_json(text)]
    if not found:
        raise InvalidInput("the list of verdicts is empty: there is nothing to run again")
    return [one.verdict if isinstance(one, Hunt) else one for one in found]


def _their_columns(results: list[Any]) -> list[str] | None:
    """The columns that results on files are about, as --columns writes them."""
    from dpassay.auditing.replays import named
    from dpassay.sampling.files import typed_names

    origins = [one.about.files[0] for one in results if hasattr(one, "about") and one.about.files]
    if not origins or not named(origins[0]):
        return None
    return [typed_names(origins[0].columns)]


@command(
    *("pairs", "neighbours", "relation", "samples", "store", "columns", "drop", "max_bytes"),
    *("decimal", "thousands", "encoding", "feature", "seed", "json", "report"),
)
def draw(
    *,
    where: Where,
    n: Annotated[int, typer.Option("--n", "-n", help="Draws per side.")] = 1000,
    store: Annotated[
        Path, typer.Option(help="The folder that keeps every draw as it comes.")
    ] = Path("runs"),
    seed: Annotated[
        int | None,
        typer.Option("--seed", "--rng", help="0, or that of the store, if it is left out."),
    ] = None,
    how: How,
    out: Out,
) -> None:
    """Draw into a store; an interrupted run resumes.

    Example: dpassay draw mine.py:train --per-call --pair 0 1 --n 1000 --store runs --workers 4

    Example: dpassay audit --store runs --claim "eps=1"
    """
    from dpassay.sampling.collected import Store
    from dpassay.sampling.samples import draw as run
    from dpassay.sampling.store_files import stored_seed

    how = replace(how, seed=(stored_seed(store) or 0) if seed is None else seed)
    source, pair = where.read(how)
    run(source, pair, n=n, **how.drawing(source, out, replace(where, store=store)))
    if not out.quiet:
        Console().print(repr(Store(store)), highlight=False, markup=False, soft_wrap=True)


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
    command: Program = None,
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
        float | None, typer.Option(**NUMBER, help="Seconds to spend, in place of --budget.")
    ] = None,
    guide: Annotated[
        str | None,
        typer.Option(help="calls: note what runs draw from, and try suspicious pairs first."),
    ] = None,
    confidence: Confidence = 0.95,
    loss: Loss = "auto",
    *,
    how: How,
    out: Out,
) -> None:
    """Find the inputs on which a mechanism breaks its claim.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 internal error, 4 could not have
    detected a violation, 130 interrupted.

    Example: dpassay hunt mine.py:release --space space.json --claim "eps=1" --outside --report out.html
    """
    from dpassay.hunting.hunts import hunt as run

    if (target is None) == (command is None):
        raise InvalidInput("give exactly one of TARGET and --command")
    if space is None or claim is None:
        raise InvalidInput(
            'what do inputs look like, and what is claimed? Give --space space.json --claim "eps=1"'
        )
    box = how.featured(how.mechanism(target, command))
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
        guide=guide,
        loss=loss,
        **how.drawing(box, out),
    )
    deliver([found], out, f"a larger --budget ({PLAN}), another --loss or a lower --confidence")


def _space(path: Path) -> Any:
    """A space of inputs from a file; errors name the file."""
    from dpassay.blackbox.inputs import as_space

    content = targets.json_file(path)
    try:
        return as_space(content)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
