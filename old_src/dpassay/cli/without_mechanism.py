"""Commands that need no mechanism: counts, the canaries of one run, plans, reports."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from dpassay.cli import options as opt
from dpassay.cli import targets
from dpassay.cli.app import argument, command, option
from dpassay.cli.mechanisms import earlier
from dpassay.cli.result_output import deliver, print_result, write_report, write_text
from dpassay.errors import InvalidInput
from dpassay.results.verdict import Verdict


@command(exits="1 2 3 4")
def counts(
    hits_p: int = argument("How often the event happened on the first input."),
    n_p: int = argument("Runs on the first input."),
    hits_q: int = argument("How often it happened on the second input."),
    n_q: int = argument("Runs on the second input."),
    claim: str = option(MISSING, 'The claim, such as "eps=1, delta=1e-5".'),
    confidence: opt.Confidence = 0.95,
    likelier: str | None = option(None, "Where it is likelier, said beforehand: first or second."),
    *,
    out: opt.Out,
) -> None:
    """Test a claim from the counts of an event that was fixed beforehand.

    Example: dpassay counts 450 1000 184 1000 --claim "eps=0.5"
    """
    from dpassay.auditing.counts import audit_counts

    side: Any = likelier
    counted = hits_p, n_p, hits_q, n_q
    verdict = audit_counts(*counted, claim, confidence=confidence, likelier=side)
    deliver([verdict], out, "more runs (dpassay plan says how many)")


@dataclass(frozen=True)
class Columns:
    """The columns of a file of scores."""

    score: str = option("score", "The column of the scores.")
    included: str = option("included", "The column of the coins, 0 or 1.")
    sign: str = option("higher", "Which scores speak for included: higher, or lower (losses).")
    group: str | None = option(None, "A column of groups: ε is bounded for each of them too.")
    run: str | None = option(None, "The column that says in which training run, if in several.")
    decimal: opt.Decimal = "."
    thousands: opt.Thousands = ""
    encoding: opt.Encoding = "utf-8"
    max_bytes: opt.MaxBytes = None


@command(exits="1 2 3 4")
def one_run(
    scores: Path = argument(
        "A file with a row a canary: its score, and whether it was included (0 or 1)."
    ),
    *,
    columns: Columns,
    claim: str | None = option(
        None,
        'The claim, such as "eps=1, delta=1e-5", or the JSON file of an accountant: '
        '{"epsilon": 4.0, "delta": 1e-5}, or a list of such points. Without a claim ε is bounded.',
    ),
    guesses: str | None = option(
        None,
        "How many canaries are guessed, fixed beforehand: 200 (half on either side), 100+50 (to be "
        "included, to be left out), or several, which share the error: 100,200,400. Else learned.",
        metavar="R",
    ),
    delta: float | None = option(
        None, "The δ at which ε is bounded; 0 if neither it nor a claim is given."
    ),
    confidence: opt.Confidence = 0.95,
    seed: opt.Seed = 0,
    out: opt.Out,
) -> None:
    """Test a claim, or bound ε, from the canaries of one training run or of several.

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
    deliver([found], out)


@command("group", "report", "quiet")
def attack_rates(
    scores: Path = argument("A file with a row a record: its score, and whether it was included."),
    *,
    columns: Columns,
    fpr: list[float] | None = option(None, "A false positive rate; may be repeated."),
    separate_runs: bool = option(False, "Every score is of a training run of its own."),
    confidence: opt.Confidence = 0.95,
    out: opt.Out,
) -> None:
    """AUC of a membership inference attack, and its true positive rate at fixed false positive rates.

    The limits are exact for scores of separate training runs, and for means over several runs (--run).
    Canaries of one run share a model: there the rates describe this run, their limits are heuristic, and
    dpassay one-run certifies ε.

    Example: dpassay attack-rates scores.csv --score loss --sign lower --included member --fpr 0.01
    """
    from dpassay.membership.attacks import attack_rates as rates
    from dpassay.membership.canaries import read_columns
    from dpassay.membership.runs import refuse_shared_coins

    if columns.run and separate_runs:
        raise InvalidInput(
            "--run names several runs of many canaries each, and --separate-runs says that every score "
            "has a run of its own; leave one of them out"
        )
    given, _, notes = read_columns(scores, **vars(columns))
    runs = list(zip(*(v if columns.run else [v] for v in given.values()), strict=True))
    refuse_shared_coins([coins for _, coins in runs])
    sides = ([values[coins == side] for values, coins in runs] for side in (1, 0))
    found = rates(
        *(side if columns.run else side[0] for side in sides),
        fpr=fpr or (0.001, 0.01, 0.1),
        confidence=confidence,
        separate_runs=separate_runs,
    )
    notes = [] if separate_runs else notes
    print_result(replace(found, notes=(*found.notes, *notes)), out)


@command("report", "quiet")
def plan(
    target: opt.Target = None,
    pair: opt.PairOption = None,
    per_call: opt.PerCall = False,
    *,
    pilot: int = option(2000, "Draws of TARGET per side that the plan is made from."),
    claim: str | None = option(None, 'The claim, such as "eps=1"; or an accountant\'s JSON file.'),
    canaries: list[int] | None = option(
        None,
        "Plan for so many canaries in a training run; may be repeated.",
        parser=opt.one_of_several,
        metavar="N",
    ),
    runs: list[int] | None = option(
        None,
        "With --canaries: training runs; may be repeated.",
        parser=opt.one_of_several,
        metavar="N",
    ),
    auc: float | None = option(
        None, "With --canaries: AUC of the attack; as the claim allows if left out."
    ),
    delta: float | None = option(None, "With --canaries: the δ at which ε is bounded."),
    excess: float | None = option(
        None,
        "By how much the truth exceeds the claim: 0.1 is 10 %, the default; of a curve, the gap between "
        "its type II errors and the true ones. With TARGET and without "
        "this: as the pilot shows it.",
    ),
    power: float = option(0.9, "The probability of detecting this excess."),
    confidence: opt.Confidence = 0.95,
    shape: str = option(
        "coin",
        "How the excess shows: coin (the best case), laplace or gaussian noise, which is "
        "simulated (a minute, of rare events some).",
    ),
    event: float | None = option(None, "Its probability on the input where it is rarer (coin)."),
    out: opt.Out,
) -> None:
    """How many draws an audit needs; or, with --canaries, what they would certify of ε.

    Example: dpassay plan --claim "eps=1" --excess 0.2

    Example: dpassay plan "zoo:Laplace(scale=1)" --pair 0 1 --claim "eps=1" --excess 0.1

    Example: dpassay plan --canaries 1000 --canaries 5000 --runs 1 --runs 4 --claim "eps=4, delta=1e-5"
    """
    from dpassay.auditing.plans import plan as run
    from dpassay.membership.one_run import plan_canaries

    if not canaries and (runs, auc, delta) != (None, None, None):
        raise InvalidInput("--runs, --auc and --delta go with --canaries: say how many in a run")
    how: Any = {"excess": excess, "power": power, "shape": shape, "event": event}
    how["confidence"] = confidence
    made: Any
    if canaries:
        given = {"TARGET": target, "--excess": excess, "--event": event}
        given["--shape"] = None if shape == "coin" else shape
        if others := [name for name, value in given.items() if value is not None]:
            raise InvalidInput(
                f"--canaries goes with --runs, --auc and --delta: leave {', '.join(others)} out"
            )
        options: Any = {"auc": auc, "delta": delta, "confidence": confidence}
        made = plan_canaries(claim, canaries=canaries, runs=runs or 1, **options)
    elif target is not None:
        box = targets.mechanism(target, per_call=per_call)
        inputs = targets.pairs(pair, None, None, box)
        made = run(box, inputs, opt.claimed(box, claim), pilot=pilot, **how)
    else:
        made = run(opt.claimed(None, claim), **how)
    print_result(made, out)


@command()
def report(
    result: Path = argument("A result that was written with --json."),
    issue: bool = option(False, "A bug report in Markdown instead of an HTML page."),
    out: Path | None = option(
        None, "The file to write; a bug report goes to the terminal by default."
    ),
) -> None:
    """Write a page, or a bug report for the maintainers, from a saved result.

    Example: dpassay report verdict.json --out verdict.html

    Example: dpassay report --issue verdict.json --out issue.md
    """
    found = earlier(result)
    if not issue:
        place = out or result.with_suffix(".html")
        write_report(place, found)
        Console().print(f"The report: {place}")
        return
    from dpassay.report.issue import issue as draft

    verdicts = [one for one in found if isinstance(one, Verdict)]
    refuted = [one for one in verdicts if one.violated] or verdicts
    if not refuted:
        raise InvalidInput(f"{result} holds no verdict: a bug report is about a violation")
    text = "\n".join(map(draft, refuted))
    write_text("-" if out is None else str(out), text.removesuffix("\n"))
