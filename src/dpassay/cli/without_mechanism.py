"""Commands that need no mechanism: counts, the canaries of one run, plans, the zoo and its tour."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from dpassay.blackbox import zoo as mechanisms
from dpassay.cli import targets
from dpassay.cli.app import command
from dpassay.cli.delivery import PLAN, deliver, write_report, write_text
from dpassay.cli.options import (
    Confidence,
    Json,
    MaxBytes,
    Out,
    PairOption,
    PerCall,
    Report,
    Seed,
    Target,
    claimed,
)
from dpassay.errors import InvalidInput, NoClosedForm
from dpassay.privacy.claims import Claim, GaussianDP, RenyiDP
from dpassay.results.verdict import Verdict
from dpassay.rounding import number
from dpassay.tables import Status


@command()
def counts(
    hits_p: Annotated[int, typer.Argument(help="How often the event happened on the first input.")],
    n_p: Annotated[int, typer.Argument(help="Runs on the first input.")],
    hits_q: Annotated[int, typer.Argument(help="How often it happened on the second input.")],
    n_q: Annotated[int, typer.Argument(help="Runs on the second input.")],
    claim: Annotated[str, typer.Option(help='The claim, such as "eps=1, delta=1e-5".')],
    confidence: Confidence = 0.95,
    likelier: Annotated[
        str | None, typer.Option(help="Where it is likelier, said beforehand: first or second.")
    ] = None,
    *,
    out: Out,
) -> None:
    """Test a claim from the counts of an event that was fixed beforehand.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 internal error, 4 could not have
    detected a violation.

    Example: dpassay counts 450 1000 184 1000 --claim "eps=0.5"
    """
    from dpassay.auditing.counts import audit_counts

    side: Any = likelier
    counted = hits_p, n_p, hits_q, n_q
    verdict = audit_counts(*counted, claim, confidence=confidence, likelier=side)
    deliver([verdict], out, f"{PLAN}, another event or a lower --confidence")


@dataclass(frozen=True)
class Columns:
    """The columns of a file of scores."""

    score: Annotated[str, typer.Option(help="The column of the scores.")] = "score"
    included: Annotated[str, typer.Option(help="The column of the coins, 0 or 1.")] = "included"
    sign: Annotated[
        str, typer.Option(help="Which scores speak for included: higher, or lower (losses).")
    ] = "higher"
    group: Annotated[
        str | None, typer.Option(help="A column of groups: ε is bounded for each of them too.")
    ] = None
    run: Annotated[
        str | None, typer.Option(help="The column that says in which training run, if in several.")
    ] = None
    max_bytes: MaxBytes = None


@command()
def one_run(
    scores: Annotated[
        Path,
        typer.Argument(
            help="A file with a row a canary: its score, and whether it was included (0 or 1)."
        ),
    ],
    *,
    columns: Columns,
    claim: Annotated[
        str | None,
        typer.Option(
            help='The claim, such as "eps=1, delta=1e-5", or the JSON file of an accountant: '
            '{"epsilon": 4.0, "delta": 1e-5}, or a list of such points. Without a claim ε is bounded.'
        ),
    ] = None,
    guesses: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="How many canaries are guessed, fixed beforehand: 200 (half on either side), 100+50 (to "
            "be included, to be left out), or several, which share the error: 100,200,400. Else learned.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="The δ at which ε is bounded; 0 if neither it nor a claim is given."),
    ] = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    out: Out,
) -> None:
    """Test a claim, or bound ε, from the canaries of one training run or of several.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 internal error, 4 could not have
    detected a violation.

    Example: dpassay one-run scores.csv --claim "eps=1, delta=1e-5" --guesses 200

    Example: dpassay one-run scores.csv --score loss --sign lower --included member --claim opacus.json
    """
    from dpassay.membership.canaries import audit_file, read_guesses

    found = audit_file(
        scores,
        vars(columns),
        claim=claim,
        guesses=read_guesses(guesses),
        delta=delta,
        confidence=confidence,
        rng=seed,
    )
    deliver(
        [found], out, "another run with more canaries, --guesses fixed before looking at its scores"
    )


@command("group")
def attack_rates(
    scores: Annotated[
        Path,
        typer.Argument(help="A file with a row a record: its score, and whether it was included."),
    ],
    *,
    columns: Columns,
    fpr: Annotated[
        list[float] | None, typer.Option(help="A false positive rate; may be repeated.")
    ] = None,
    separate_runs: Annotated[
        bool, typer.Option("--separate-runs", help="Every score is of a training run of its own.")
    ] = False,
    confidence: Confidence = 0.95,
    json: Json = None,
) -> None:
    """AUC of a membership inference attack, and its true positive rate at fixed false positive rates.

    The limits are exact for scores of separate training runs, and for means over several runs (--run).
    Canaries of one run share a model: there the rates describe this run, their limits are heuristic, and
    dpassay one-run certifies ε.

    Exit status: 0 done, 2 bad input, 3 internal error.

    Example: dpassay attack-rates scores.csv --score loss --sign lower --included member --fpr 0.01
    """
    from dpassay.membership.attacks import attack_rates as rates
    from dpassay.membership.canaries import read_columns

    given, _ = read_columns(scores, **vars(columns))
    runs = list(zip(*(v if columns.run else [v] for v in given.values()), strict=True))
    if not all(np.isin(coins, (0, 1)).all() for _, coins in runs):
        which = f"column {columns.included!r} of {str(scores)!r}"
        raise InvalidInput(f"{which} must be 0 or 1 for each record")
    sides = ([values[coins == side] for values, coins in runs] for side in (1, 0))
    found = rates(
        *(side if columns.run else side[0] for side in sides),
        fpr=fpr or (0.001, 0.01, 0.1),
        confidence=confidence,
        separate_runs=separate_runs,
    )
    write_text(json, found.to_json(indent=2))
    if json != "-":
        typer.echo(str(found))


@command()
def plan(
    target: Target = None,
    pair: PairOption = None,
    per_call: PerCall = False,
    pilot: Annotated[
        int, typer.Option(help="Draws of TARGET per side that the plan is made from.")
    ] = 2000,
    claim: Annotated[
        str | None, typer.Option(help='The claim, such as "eps=1"; or an accountant\'s JSON file.')
    ] = None,
    canaries: Annotated[
        list[int] | None,
        typer.Option(help="Plan for so many canaries in a training run; may be repeated."),
    ] = None,
    runs: Annotated[
        list[int] | None, typer.Option(help="With --canaries: training runs; may be repeated.")
    ] = None,
    auc: Annotated[
        float | None,
        typer.Option(help="With --canaries: AUC of the attack; as the claim allows if left out."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="With --canaries: the δ at which ε is bounded.")
    ] = None,
    excess: Annotated[
        float | None,
        typer.Option(
            help="By how much the truth exceeds the claim: 0.1 is 10 %, the default. With TARGET and "
            "without this: as the pilot shows it."
        ),
    ] = None,
    power: Annotated[float, typer.Option(help="The probability of detecting this excess.")] = 0.9,
    confidence: Confidence = 0.95,
    shape: Annotated[
        str,
        typer.Option(help="How the excess shows: coin (the best case), laplace or gaussian noise."),
    ] = "coin",
    event: Annotated[
        float | None, typer.Option(help="Its probability on the input where it is rarer (coin).")
    ] = None,
    json: Json = None,
) -> None:
    """How many draws an audit needs; or, with --canaries, what they would certify of ε.

    Exit status: 0 done, 2 bad input, 3 internal error.

    Example: dpassay plan --claim "eps=1" --excess 0.2

    Example: dpassay plan "zoo:Laplace(scale=1)" --pair 0 1 --claim "eps=1" --excess 0.1

    Example: dpassay plan --canaries 1000 --canaries 5000 --runs 1 --runs 4 --claim "eps=4, delta=1e-5"
    """
    from dpassay.auditing.plans import plan as run
    from dpassay.membership.one_run import plan_canaries

    how: Any = {"excess": excess, "power": power, "shape": shape, "event": event}
    made: Any
    if canaries:
        if target is not None or (excess, shape, event) != (None, "coin", None):
            raise InvalidInput(
                "--canaries goes with --runs, --auc and --delta: leave the others out"
            )
        options: Any = {"auc": auc, "delta": delta, "confidence": confidence}
        made = plan_canaries(claim, canaries=canaries, runs=runs or 1, **options)
    elif target is not None:
        box = targets.mechanism(target, per_call=per_call)
        inputs = targets.pairs(pair, None, None, box)
        made = run(box, inputs, claimed(box, claim), pilot=pilot, confidence=confidence, **how)
    else:
        made = run(claimed(None, claim), confidence=confidence, **how)
    write_text(json, made.to_json(indent=2))
    if json != "-":
        typer.echo(str(made))


@command()
def zoo() -> None:
    """List the mechanisms of the zoo, with their true privacy parameters.

    Exit status: 0 done.

    Example: dpassay zoo
    """
    table = Table(title="The zoo: what each mechanism claims, and the truth on its default pair")
    console = Console()
    wide = console.width >= 110  # else the first columns alone
    headings = ["mechanism", "claims", "", "true ε", "δ(0.5)", "Rényi ε(2)", "T(0.05)", "source"]
    headings = headings if wide else headings[:4]
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for mechanism in mechanisms.members():
        pair = mechanism.pair
        cells = [
            str(mechanism),
            str(mechanism.claim or "nothing"),
            "correct" if mechanism.correct else "[red]broken[/red]",
            _known(mechanism.epsilon, pair),
            _known(mechanism.delta, 0.5, pair),
            _known(mechanism.renyi, 2.0, pair),
            _known(mechanism.tradeoff, 0.05, pair),
            mechanism.source,
        ]
        table.add_row(*cells[: len(headings)])
    console.print(table)
    if not wide:
        console.print(
            "A terminal of 110 columns also shows δ, Rényi, the trade-off and the source."
        )


@command()
def demo(
    n: Annotated[int, typer.Option("--n", "-n", help="Draws per side and mechanism.")] = 20_000,
    report: Report = Path("dpassay-demo.html"),
    seed: Seed = 0,
) -> None:
    """The tour: audits a dozen mechanisms, correct and broken, against what they claim.

    Exit status: 0 done, 2 bad input, 3 internal error, 130 interrupted.

    Example: dpassay demo
    """
    Out(report=report)  # refuses what cannot be written
    console, started = Console(), time.monotonic()
    headings = ("mechanism", "claims", "truth", "measured", "verdict", "right?")
    table = Table(title="Each mechanism against its own claim")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    rows, verdicts = [], []
    for name, truth, verdict, right in tour(n=n, seed=seed):
        tone, ended = verdict.tone, "✓" if right else "✗"
        cells = name, str(verdict.claim), truth, verdict.bound, tone.label, ended
        table.add_row(*cells, style="" if tone is Status.CLEAR else tone.terminal)
        rows.append(dict(zip(headings, cells, strict=True)))
        verdicts.append(verdict)
        console.print(f"  {name}: {tone.label}", highlight=False)
    console.print(table)
    if report is not None:
        # the one whose witness a reader can check at a glance
        most = max(
            range(len(verdicts)),
            key=lambda k: (verdicts[k].violated, -len(verdicts[k].witness.event.words)),
        )
        view = verdicts[most].view()
        title = f"{rows[most]['mechanism']}: {view.title.lower()}"
        write_report(
            report,
            [verdicts[most]],
            title="dpassay: the tour. One of its stops in full, and all of them in a table",
            command="dpassay demo",
            table=rows,
            lead=(view.status, title, view.sentence),
        )
        console.print(f"The report: {report} ({time.monotonic() - started:.0f} s in all)")


def cast() -> list[tuple[str, Any, Any]]:
    """Name, mechanism, and a claim or None for its own."""
    return [
        ("Laplace", mechanisms.Laplace(1.0), None),
        ("Laplace, sensitivity too low", mechanisms.WrongSensitivityLaplace(sensitivity=1.2), None),
        ("Gaussian", mechanisms.Gaussian(1.0), GaussianDP(1.0)),
        ("Gaussian, Rényi claim too low", mechanisms.Gaussian(1.0), RenyiDP(2, 0.7)),
        ("sparse vector 1", mechanisms.SVT(1, 1.5), None),
        ("sparse vector 3, releases numbers", mechanisms.SVT(3, 2.5), None),
        ("sparse vector 6, no cutoff", mechanisms.SVT(6, 1.5), None),
        ("numerical sparse vector", mechanisms.NumericalSVT(1.5), None),
        ("noisy max", mechanisms.ReportNoisyMax(1.5), None),
        ("noisy max, releases the value", mechanisms.ReportNoisyMax(1.5, variant=8), None),
        ("noisy histogram", mechanisms.NoisyHistogram(0.5), None),
        ("noisy histogram, ε for 1/ε", mechanisms.NoisyHistogram(0.5, broken=True), None),
        ("Laplace, truncated", mechanisms.TruncatedLaplace(), None),
    ]


def tour(*, n: int, seed: int) -> Iterator[tuple[str, str, Verdict, bool]]:
    """Audit one after the other: its name, the truth, the verdict, and whether that is right.

    Right is to refute a false claim; of a true one, not to refute it and to have been able to.
    """
    from dpassay.auditing.audits import audit
    from dpassay.sampling.draw import Sampling

    how: Any = {"n": n, "details": True, "sampling": Sampling(progress=False)}
    for index, (name, mechanism, given) in enumerate(cast()):
        claim = mechanism.claim if given is None else given
        verdict = audit(mechanism, mechanism.pair, claim, rng=seed + index, **how)
        false = not mechanism.correct
        if given is not None:
            false = _true_value(mechanism, claim) > claim.value + 1e-9
        expected = Status.VIOLATION if false else Status.CLEAR
        truth = _known(_true_value, mechanism, claim, before=f"{claim.symbol} = ")
        yield name, truth, verdict, verdict.tone is expected


def _known(notion: Callable[..., Any], *arguments: Any, before: str = "") -> str:
    """The true value of a notion, if it is known, with its symbol before it."""
    try:
        return before + number(float(notion(*arguments)))
    except NoClosedForm:
        return "not known"


def _true_value(mechanism: Any, claim: Claim) -> float:
    """The least value of the claim's parameter that is true of the pair."""
    first, second = pair = mechanism.pair
    if claim.point is not None and claim.point[1] == 0:
        return float(mechanism.epsilon(pair))
    if claim.orders:
        return max(
            float(claim.from_renyi(order, float(mechanism.renyi(order, way))))
            for order in claim.orders
            for way in ((first, second), (second, first))
        )
    alpha = np.linspace(0.0, 1.0, 1001)[1:-1]
    power = 1 - np.asarray(mechanism.tradeoff(alpha, pair))
    return float(np.max(claim.needed(power, alpha)))
