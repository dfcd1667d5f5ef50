"""The command line."""

from __future__ import annotations

import shlex
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dpassay._version import __version__
from dpassay.cli_inputs import Files, check_writable, write_json
from dpassay.cli_inputs import sampling as as_sampling
from dpassay.cli_inputs import source as read_source
from dpassay.cli_options import (
    ColumnsOption,
    CommandOption,
    Confidence,
    DeltaOption,
    DropOption,
    GuessesOption,
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
    ScoresFile,
    Seed,
    Target,
    TimeBudget,
    Workers,
)
from dpassay.errors import DpassayError, InvalidInput, NoClosedForm
from dpassay.panels import (
    COLOURS,
    bound_panel,
    profile_panel,
    verdict_panel,
    verification_panel,
)
from dpassay.results import Profile, Verdict, number

app = typer.Typer(
    name="dpassay",
    help="How private is this mechanism really? Measured from its outputs alone.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

#: The verdict in two words, by its tone.
_SAID = {"violation": "violation", "clear": "none detected", "blind": "could not see"}
_PLAN = "more draws (dpassay plan says how many)"

#: What the parser raises for a wrong option; typer brings the class along without naming it.
_USAGE: Any = typer.BadParameter.__mro__[2]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpassay {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


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
    remedy = f"{_PLAN}, another --loss or a lower --confidence"
    _deliver(verdicts, None, json=json, report=report, quiet=quiet, remedy=remedy)
    raise typer.Exit(_status(verdicts))


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
    _deliver([], profile, json=json, report=report, quiet=quiet)


@app.command()
def counts(
    hits_p: Annotated[int, typer.Argument(help="How often the event happened on the first input.")],
    n_p: Annotated[int, typer.Argument(help="Runs on the first input.")],
    hits_q: Annotated[int, typer.Argument(help="How often it happened on the second input.")],
    n_q: Annotated[int, typer.Argument(help="Runs on the second input.")],
    claim: Annotated[str, typer.Option(help='The claim, such as "eps=1, delta=1e-5".')],
    confidence: Confidence = 0.95,
    likelier: Annotated[
        str | None, typer.Option(help="Declared beforehand: 'first' or 'second'.")
    ] = None,
    json: JsonOption = None,
    quiet: Quiet = False,
) -> None:
    """Test a claim from the counts of an event that was fixed beforehand.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 4 could not have seen anything.

    Example: dpassay counts 450 1000 184 1000 --claim "eps=0.5"
    """
    from dpassay.counts import audit_counts
    from dpassay.privacy.text import claim as read_claim

    verdict = audit_counts(
        hits_p,
        n_p,
        hits_q,
        n_q,
        read_claim(claim),
        confidence=confidence,
        likelier=likelier,  # type: ignore[arg-type]
    )
    remedy = f"{_PLAN}, another event or a lower --confidence"
    _deliver([verdict], None, json=json, report=None, quiet=quiet, remedy=remedy)
    raise typer.Exit(_status([verdict]))


@app.command("one-run")
def one_run(
    scores: ScoresFile,
    claim: Annotated[
        str | None, typer.Option(help='The claim, such as "eps=1, delta=1e-5"; without: a bound.')
    ] = None,
    guesses: GuessesOption = None,
    delta: DeltaOption = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    json: JsonOption = None,
    quiet: Quiet = False,
) -> None:
    """Test a claim, or bound ε, from the canaries of one training run.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 4 could not have seen anything.

    Example: dpassay one-run scores.csv --claim "eps=1, delta=1e-5" --guesses 200
    """
    from dpassay.canaries import audit_file, read_guesses

    asked = read_guesses(guesses)
    found = audit_file(
        scores, claim=claim, guesses=asked, delta=delta, confidence=confidence, rng=seed
    )
    if isinstance(found, Verdict):
        remedy = "more canaries, other --guesses or a lower --confidence"
        _deliver([found], None, json=json, report=None, quiet=quiet, remedy=remedy)
        raise typer.Exit(_status([found]))
    write_json(json, found.to_json(indent=2))
    if not quiet and json != "-":
        Console().print(bound_panel(found))


@app.command()
def plan(
    claim: Annotated[str, typer.Option(help='The claim, such as "eps=1".')],
    excess: Annotated[
        float, typer.Option(help="By how much the truth exceeds it, relatively.")
    ] = 0.1,
    power: Annotated[float, typer.Option(help="The probability of catching that.")] = 0.9,
    confidence: Confidence = 0.95,
    event: Annotated[
        float | None, typer.Option(help="Probability of the telling event on the rarer side.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """How many draws an audit needs.

    Example: dpassay plan --claim "eps=1" --excess 0.2
    """
    from dpassay.plans import plan as run

    made = run(claim, excess=excess, power=power, confidence=confidence, event=event)
    write_json(json, made.to_json(indent=2))
    if json != "-":
        typer.echo(str(made))


@app.command()
def replay(
    verdict: Annotated[Path, typer.Argument(help="A verdict that was written with --json.")],
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
    earlier = Verdict.from_json(text)
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
    remedy = f"{_PLAN} or a lower --confidence"
    _deliver([again], None, json=json, report=None, quiet=quiet, remedy=remedy)
    raise typer.Exit(_status([again]))


@app.command()
def zoo() -> None:
    """What is in the zoo, with the truths.

    Example: dpassay zoo
    """
    from dpassay.blackbox.zoo import members

    table = Table(title="The zoo: what each mechanism claims, and the truth on its default pair")
    console = Console()
    wide = console.width >= 110  # else the first columns alone
    table.add_column("mechanism", overflow="fold")
    for heading in ("claims", "", "true ε", *(("δ(0.5)", "Rényi ε(2)", "T(0.05)") if wide else ())):
        table.add_column(heading)
    if wide:
        table.add_column("source", overflow="fold")
    for mechanism in members():
        pair = mechanism.pair
        cells = [
            str(mechanism),
            str(mechanism.claim or "nothing"),
            "correct" if mechanism.correct else "[red]broken[/red]",
            _truth(mechanism.epsilon, pair),
            _truth(mechanism.delta, 0.5, pair),
            _truth(mechanism.renyi, 2.0, pair),
            _truth(mechanism.tradeoff, 0.05, pair),
            mechanism.source,
        ]
        table.add_row(*(cells if wide else cells[:4]))
    console.print(table)
    if not wide:
        console.print(
            "A terminal of 110 columns also shows δ, Rényi, the trade-off and the source."
        )


@app.command()
def demo(
    n: Annotated[int, typer.Option("--n", help="Draws per side for each mechanism.")] = 20_000,
    report: ReportOption = Path("dpassay-demo.html"),
    seed: Seed = 0,
) -> None:
    """The tour: audits a dozen mechanisms, correct and broken, against what they claim.

    Example: dpassay demo
    """
    from dpassay.tour import tour

    console, started = Console(), time.monotonic()
    table = Table(title="Each mechanism against its own claim")
    headings = ("mechanism", "claims", "truth", "measured", "verdict", "right?")
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading)
    rows, verdicts = [], []
    for stop in tour(n=n, seed=seed):
        verdict = stop.verdict
        measured = f"{verdict.claim.symbol} ≥ {number(verdict.lower_bound)}"
        plain = _SAID[verdict.tone]
        said = f"[{COLOURS[verdict.tone]}]{plain}[/]" if verdict.tone != "clear" else plain
        right = "✓" if stop.right else "[red]✗[/red]"
        table.add_row(stop.name, str(verdict.claim), stop.truth, measured, said, right)
        cells = (
            stop.name,
            str(verdict.claim),
            stop.truth,
            measured,
            plain,
            "yes" if stop.right else "no",
        )
        rows.append(dict(zip(headings, cells, strict=True)))
        verdicts.append(verdict)
        console.print(f"  {stop.name}: {plain}", highlight=False)
    console.print(table)
    if report is not None:
        from dpassay.report import write

        # the one whose witness a reader can check at a glance
        most = max(verdicts, key=lambda v: (v.violated, -len(v.witness.event.words)))
        write(report, [most], title="dpassay: the tour", command="dpassay demo", table=rows)
        console.print(f"The report: {report} ({time.monotonic() - started:.0f} s in all)")


# --- shared


def _status(verdicts: Sequence[Verdict]) -> int:
    """How a command ends that delivers these."""
    tones = {verdict.tone for verdict in verdicts}
    return 1 if "violation" in tones else 4 if "blind" in tones else 0


def _deliver(
    verdicts: list[Verdict],
    profile: Profile | None,
    *,
    json: str | None,
    report: Path | None,
    quiet: bool,
    remedy: str = "",
) -> None:
    """The result as a panel, as JSON and as a report, as asked; `remedy` is for a blind verdict."""
    results: list[Any] = [*verdicts] if profile is None else [profile]
    if len(results) == 1:
        write_json(json, results[0].to_json(indent=2))
    else:
        inner = ",\n".join(result.to_json(indent=2) for result in results)
        write_json(json, f"[{inner}]")
    if report is not None:
        from dpassay.report import write

        write(report, verdicts, profile=profile, command=_command_line())
    if quiet or json == "-":
        return
    console = Console()
    for verdict in verdicts:
        console.print(verdict_panel(verdict, remedy))
    if profile is not None:
        console.print(profile_panel(profile))
    if report is not None:
        console.print(f"The report: {report}")


def _command_line() -> str:
    """What was typed, with the program's name in place of its path."""
    return shlex.join(["dpassay", *(a for a in sys.argv[1:] if a != "--debug")])


def _truth(notion: object, *arguments: object) -> str:
    try:
        return number(float(notion(*arguments)))  # type: ignore[operator]
    except NoClosedForm:
        return "not known"


def _slips(arguments: list[str]) -> None:
    """Say what is wrong with an option of two values that got one."""
    for option, example in (("--pair", "--pair 0 1"), ("--samples", "--samples p.npy q.npy")):
        if option in arguments:
            given = arguments[arguments.index(option) + 1 :][:2]
            if len(given) < 2 or any(value.startswith("--") for value in given):
                got = next((value for value in given if not value.startswith("--")), "nothing")
                raise InvalidInput(f"{option} takes two values, as in {example}; got {got}")


def run(arguments: list[str]) -> int:
    """Run the command line and say how it ended.

    0, 1 (violation), 2 (bad input), 3 (a bug), 4 (could not have seen anything), 5 (not confirmed),
    130 (interrupted).
    """
    debug = "--debug" in arguments
    # what looks dependent is in the verdict as well: one line here, not a line of source
    warnings.showwarning = lambda text, *rest, **more: print(
        f"dpassay: note: {text}", file=sys.stderr
    )
    try:
        _slips(arguments)
        status = app(args=[a for a in arguments if a != "--debug"], standalone_mode=False)
        return status if isinstance(status, int) else 0
    except DpassayError as error:
        if debug:
            traceback.print_exc()
            return 2
        said, more, _ = str(error).partition("\nTraceback (most recent call last)")
        hint = "\n  (--debug shows where)" if more else ""
        print(f"dpassay: {said}{hint}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, typer.Abort) as stop:
        cause = stop if isinstance(stop, KeyboardInterrupt) else stop.__cause__ or stop.__context__
        print(f"dpassay: {cause or 'interrupted'}", file=sys.stderr)
        return 130
    except Exception as error:
        if isinstance(error, _USAGE):
            error.show()
            return 2
        if debug:
            traceback.print_exc()
            return 3
        print(
            f"dpassay: internal error, {type(error).__name__}: {error}; --debug shows where",
            file=sys.stderr,
        )
        return 3


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))
