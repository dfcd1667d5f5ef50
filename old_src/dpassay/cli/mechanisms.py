"""Commands that draw from a mechanism, or read its draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from dpassay import validation as checks
from dpassay.cli import options as opt
from dpassay.cli import targets
from dpassay.cli.app import argument, command, option
from dpassay.cli.result_output import PLAN, deliver
from dpassay.cli.supervisor import say
from dpassay.errors import InvalidInput


@command(exits="1 2 3 4 130")
def audit(
    *,
    where: opt.Where,
    claim: list[str] | None = option(
        None,
        'The claim: "eps=1", "eps=1, delta=1e-5", "mu=1", "rho=0.5", "renyi(order=5)=0.2" … May be '
        "given more than once.",
    ),
    n: opt.N = None,
    seconds: opt.Seconds = None,
    confidence: opt.Confidence = 0.95,
    loss: opt.Loss = "auto",
    how: opt.How,
    out: opt.Out,
) -> None:
    """Try to refute a privacy claim.

    Of several claims a violation decides the exit status, then one that could not have been detected.

    Example: dpassay audit "zoo:Laplace(scale=0.8)" --pair 0 1 --claim "eps=1"

    Example: dpassay audit mine.py:release --pair 0 1 --claim "eps=1, delta=1e-5" --report out.html

    Example: dpassay audit --samples p.npy q.npy --claim "mu=1" --json -

    Example: dpassay audit --samples p.csv q.csv --drop id,time --relation replace --claim "eps=1"
    """
    from dpassay.auditing.audits import audit as run

    source, pairs, drawing = where.read(how, out)
    verdicts = run(
        source,
        pairs,
        [opt.claimed(source, text) for text in claim or (None,)],
        n=where.number(n, 20_000, seconds),
        seconds=seconds,
        confidence=confidence,
        loss=loss,
        details=out.report is not None,
        **drawing,
    )
    deliver(verdicts, out, f"{PLAN} or another --loss")


@command(exits="1 2 3 4")
def monitor(
    *,
    where: opt.Where,
    claim: str | None = option(None, '"eps=1", "mu=1" …, as for audit.'),
    max_n: int | None = option(
        None, "The most draws per side; 100000, or all of --samples.", parser=opt.whole, metavar="N"
    ),
    confidence: opt.Confidence = 0.95,
    loss: opt.Loss = "auto",
    how: opt.How,
    out: opt.Out,
) -> None:
    """Draw until a claim is refuted. The result is valid whenever it stops, also after Ctrl-C.

    Example: dpassay monitor "zoo:Laplace(scale=0.8)" --pair 0 1 --claim "eps=1" --max-n 100000
    """
    from dpassay.monitoring.monitors import monitor as run

    source, pairs, drawing = where.read(how, out)
    verdict = run(
        source,
        pairs,
        opt.claimed(source, claim),
        max_n=where.number(max_n, 100_000),
        confidence=confidence,
        loss=loss,
        **drawing,
    )
    deliver([verdict], out, "more draws (--max-n) or another --loss")


@command(exits="2 3 130")
def bound(
    *,
    where: opt.Where,
    of: str = option(
        "eps",
        '"eps" (at δ = 0), "eps, delta=1e-5", "delta, eps=1", "mu", "rho" or "renyi(order=2)".',
    ),
    family: str | None = option(
        None,
        "A dp.Family of which the mechanism is assumed to be one: module:name or file.py:name.",
    ),
    n: opt.N = None,
    seconds: opt.Seconds = None,
    confidence: opt.Confidence = 0.95,
    loss: opt.Loss = "auto",
    how: opt.How,
    out: opt.Out,
) -> None:
    """The largest certified lower bound on a privacy parameter, without any claim.

    An audit on the same draws chooses its event for its claim, and may certify a little more or less.

    Example: dpassay bound "zoo:Gaussian(sigma=1.0)" --pair 0 1 --of "eps, delta=1e-5"

    Example: dpassay bound train.py:train --pair 0 1 --of "eps, delta=1e-5" --family train.py:dp_sgd
    """
    from dpassay.auditing.audits import bound as run
    from dpassay.privacy.claim_parsing import parameter
    from dpassay.privacy.families import Family

    asked = parameter(of)
    source, pairs, drawing = where.read(how, out)
    assumed = None if family is None else targets.from_option("--family", family)
    if family is not None and not isinstance(assumed, Family):
        found = checks.shown(assumed)
        raise InvalidInput(f"--family must name a dp.Family, got {family!r}: {found}")
    bounded = run(
        source,
        pairs,
        asked,
        family=assumed,
        n=where.number(n, 20_000, seconds),
        seconds=seconds,
        confidence=confidence,
        loss=loss,
        **drawing,
    )
    deliver([bounded], out)


@command(exits="2 3 5 130", done="verified")
def verify(
    *,
    where: opt.Where,
    claim: str | None = option(
        None, '"eps=1, delta=1e-5"; "eps=1" and "mu=1" are verified up to a δ.'
    ),
    n: opt.N = None,
    confidence: opt.Confidence = 0.95,
    how: opt.How,
    out: opt.Out,
) -> None:
    """Show that a claim holds on these pairs, where outputs are discrete.

    Example: dpassay verify "zoo:DiscreteLaplace(scale=1.0)" --pair 0 1 --claim "eps=1.1, delta=1e-3"
    """
    from dpassay.auditing.verifications import verify as run

    source, pairs, drawing = where.read(how, out)
    found = run(
        source,
        pairs,
        opt.claimed(source, claim, "eps=1, delta=1e-5"),
        n=where.number(n, 1_000_000),
        confidence=confidence,
        **drawing,
    )
    deliver([found], out)


@command("pairs", "neighbours", "relation", exits="2 3 130")
def estimate(
    *,
    where: opt.Where,
    n: opt.N = None,
    loss: str = option("auto", "auto, kde, polynomial, knn, logistic, boosting …"),
    how: opt.How,
    out: opt.Out,
) -> None:
    """Every notion of one pair: ε, δ(ε), Rényi, trade-off, μ. Estimates, not bounds.

    Example: dpassay estimate "zoo:Gaussian(sigma=1.0)" --pair 0 1 --n 100000
    """
    from dpassay.notions.all_notions import estimate as run

    source, pair, drawing = where.read(how, out)
    deliver([run(source, pair, n=where.number(n, 100_000), loss=loss, **drawing)], out)


@command(
    *("pair", "pairs", "neighbours", "relation", "errors_are_outputs"), seed=1, exits="1 2 3 4 130"
)
def replay(
    verdict: Path = argument("A verdict, a bound, or a hunt, that was written with --json."),
    *,
    where: opt.Where,
    n: int | None = option(
        None,
        "Fresh draws per side; 20000, or all of --samples.",
        *("--n", "-n"),
        parser=opt.whole,
        metavar="N",
    ),
    confidence: opt.Confidence = 0.95,
    how: opt.How,
    out: opt.Out,
) -> None:
    """Run the event of an earlier verdict, or of a bound, again on fresh draws.

    If it no longer occurs, as after a repair, that says nothing of other events: run the audit again.

    Example: dpassay replay verdict.json "zoo:Laplace(scale=0.8)" --n 20000

    Example: dpassay replay bound.json "zoo:Laplace(scale=0.8)" --n 100000

    Example: dpassay replay verdict.json --samples fresh-p.csv fresh-q.csv
    """
    from dpassay.auditing.replays import refuse_canaries
    from dpassay.auditing.replays import replay as run

    if where.draws:  # before the verdict, whose claim may be a class of the mechanism's file
        source, _, drawing = replace(where, pair=("0", "1")).read(
            how, out
        )  # not the witness's pair
    listed = earlier(verdict)
    for one in listed:
        refuse_canaries(one)
    if not where.draws and where.samples is None and where.store is None:
        raise InvalidInput(
            f"on which draws? Give the mechanism, as in dpassay replay {verdict} TARGET, or --samples "
            "and two files of fresh draws"
        )
    live = [
        one for one in listed if (w := getattr(one, "witness", None)) and not w.event.replayable
    ]
    if len(live) < len(listed):
        for one in live:
            say(
                f"{one.claim or one.notion} is not replayed: its event needs the classifier it is of"
            )
        listed = [one for one in listed if one not in live]
    if not where.draws and not where.columns and not where.drop:
        where = replace(where, columns=_their_columns(listed))
    again, sure = [], 1 - (1 - confidence) / len(listed)
    for one in listed:
        if not where.draws:  # samples are used up
            source, _, drawing = where.read(how, out)
        again.append(run(one, source, n=where.number(n, 20_000), confidence=sure, **drawing))
    deliver(again, out, PLAN)


def earlier(path: Path) -> list[Any]:
    """What was written with --json: one result, or the verdicts of several claims."""
    from dpassay.hunting.result import Hunt
    from dpassay.records import Record

    data = targets.json_file(path)
    found = [Record.from_dict(one) for one in (data if isinstance(data, list) else [data])]
    if not found:
        raise InvalidInput("the list of verdicts is empty: there is nothing to run again")
    return [one.verdict if isinstance(one, Hunt) else one for one in found]


def _their_columns(results: list[Any]) -> list[str] | None:
    """The columns that results on files are about, as --columns writes them."""
    from dpassay.auditing.replays import named
    from dpassay.sampling.identifiers import typed_names

    origins = [one.about.files[0] for one in results if hasattr(one, "about") and one.about.files]
    return [typed_names(origins[0].columns)] if origins and named(origins[0]) else None


@command(
    *("pairs", "neighbours", "relation", "samples", "store", "columns", "drop", "max_bytes"),
    *("decimal", "thousands", "encoding", "feature", "seed", "json", "report"),
    exits="2 3 130",
)
def draw(
    *,
    where: opt.Where,
    n: int = option(1000, "Draws per side.", "--n", "-n"),
    store: Path = option(Path("runs"), "The folder that keeps every draw as it comes."),
    seed: int | None = option(
        None, "0, or that of the store, if it is left out.", "--seed", "--rng"
    ),
    how: opt.How,
    out: opt.Out,
) -> None:
    """Draw into a store; an interrupted run resumes.

    Example: dpassay draw mine.py:train --per-call --pair 0 1 --n 1000 --store runs --workers 4

    Example: dpassay audit --store runs --claim "eps=1"
    """
    from dpassay.sampling.collected import Store
    from dpassay.sampling.samples import draw as run
    from dpassay.sampling.store_files import stored_seed

    if not where.draws:
        raise InvalidInput("give exactly one of TARGET and --command")
    how = replace(how, seed=(stored_seed(store) or 0) if seed is None else seed)
    source, pair, drawing = replace(where, store=store).read(how, out)
    run(source, pair, n=n, **drawing)
    if not out.quiet:
        Console().print(repr(Store(store)), highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Search:
    """Which inputs a hunt tries."""

    relation: str = option(
        "replace", "What makes inputs neighbours: replace, add_remove, edit, user, query."
    )
    user: str | None = option(None, "With --relation user: the column that says whose a row is.")
    sensitivity: float = option(1.0, "With --relation query: how far answers may be apart.")
    norm: str = option("each", "With --relation query: each, l1 or l2.")
    outside: bool = option(False, "Also try NaN, infinities and values beyond the bounds.")
    failing: str = option(
        "leak",
        "What an exception is: leak (inside the space an outcome, outside a refusal), outcome, ignore.",
    )
    budget: int = option(
        400_000, "Draws over all pairs and both sides.", parser=opt.whole, metavar="N"
    )
    seconds: float | None = option(None, "Seconds to spend, in place of --budget.", **opt.NUMBER)
    guide: str | None = option(
        None, "calls: note what runs draw from, and try suspicious pairs first."
    )


@command("errors_are_outputs", exits="1 2 3 4 130")
def hunt(
    *,
    target: opt.Target = None,
    space: Path | None = option(
        None,
        'A JSON file that says what inputs look like: {"type": "Reals", "low": 0, "high": 1, '
        '"length": [0, 20]}; see the documentation for the others.',
    ),
    claim: str | None = option(None, 'The claim, such as "eps=1, delta=1e-5".'),
    command: opt.Program = None,
    search: Search,
    confidence: opt.Confidence = 0.95,
    loss: opt.Loss = "auto",
    how: opt.How,
    out: opt.Out,
) -> None:
    """Find the inputs on which a mechanism breaks its claim.

    Example: dpassay hunt mine.py:release --space space.json --claim "eps=1" --outside --report out.html
    """
    from dpassay.blackbox.inputs import as_space
    from dpassay.hunting.hunts import hunt as run

    if (target is None) == (command is None):
        raise InvalidInput("give exactly one of TARGET and --command")
    if space is None or claim is None:
        raise InvalidInput(
            'what do inputs look like, and what is claimed? Give --space space.json --claim "eps=1"'
        )
    box = how.featured(how.mechanism(target, command))
    content = targets.json_file(space)
    try:
        inputs = as_space(content)
    except InvalidInput as error:
        raise InvalidInput(f"{space}: {error}") from None
    options = {"confidence": confidence, "loss": loss, **vars(search), **how.drawing(out)}
    remedy = f"a larger --budget ({PLAN}) or another --loss"
    deliver([run(box, inputs, claim, **options)], out, remedy)
