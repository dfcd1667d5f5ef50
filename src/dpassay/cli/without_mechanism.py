"""Commands that need no mechanism: counts, the canaries of one run, plans."""

from __future__ import annotations

from typing import Annotated

import typer

from dpassay.cli.app import app
from dpassay.cli.delivery import PLAN, deliver, deliver_bound, status
from dpassay.cli.groups import Out, command
from dpassay.cli.inputs import check_writable, write_json
from dpassay.cli.options import (
    Confidence,
    DeltaOption,
    GuessesOption,
    JsonOption,
    MaxBytes,
    ScoresFile,
    Seed,
)
from dpassay.errors import InvalidInput
from dpassay.results.verdict import Verdict


@command("report")
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
    *,
    out: Out,
) -> None:
    """Test a claim from the counts of an event that was fixed beforehand.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything.

    Example: dpassay counts 450 1000 184 1000 --claim "eps=0.5"
    """
    from dpassay.auditing.counts import audit_counts
    from dpassay.privacy.claim_parsing import claim as read_claim

    verdict = audit_counts(
        hits_p,
        n_p,
        hits_q,
        n_q,
        read_claim(claim),
        confidence=confidence,
        likelier=likelier,  # type: ignore[arg-type]
    )
    remedy = f"{PLAN}, another event or a lower --confidence"
    deliver([verdict], None, out=out, remedy=remedy)
    raise typer.Exit(status([verdict]))


@command()
def one_run(
    scores: ScoresFile,
    claim: Annotated[
        str | None, typer.Option(help='The claim, such as "eps=1, delta=1e-5"; without: a bound.')
    ] = None,
    guesses: GuessesOption = None,
    delta: DeltaOption = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    max_bytes: MaxBytes = None,
    *,
    out: Out,
) -> None:
    """Test a claim, or bound ε, from the canaries of one training run.

    Exit status: 0 no violation detected, 1 violation, 2 bad input, 3 an internal error, 4 could not have
    seen anything.

    Example: dpassay one-run scores.csv --claim "eps=1, delta=1e-5" --guesses 200
    """
    from dpassay.membership.canaries import audit_file, read_guesses

    check_writable(out.report, out.json)
    if out.report is not None and claim is None:
        raise InvalidInput("a report is of a verdict: give --claim, or leave --report out")
    asked = read_guesses(guesses)
    found = audit_file(
        scores,
        max_bytes=max_bytes,
        claim=claim,
        guesses=asked,
        delta=delta,
        confidence=confidence,
        rng=seed,
    )
    if isinstance(found, Verdict):
        remedy = "more canaries, other --guesses or a lower --confidence"
        deliver([found], None, out=out, remedy=remedy)
        raise typer.Exit(status([found]))
    deliver_bound(found, out)


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

    Exit status: 0 done, 2 bad input, 3 an internal error.

    Example: dpassay plan --claim "eps=1" --excess 0.2
    """
    from dpassay.auditing.plans import plan as run

    made = run(claim, excess=excess, power=power, confidence=confidence, event=event)
    write_json(json, made.to_json(indent=2))
    if json != "-":
        typer.echo(str(made))
