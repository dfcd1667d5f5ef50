"""Commands that show what is installed: the zoo, its tour (`demo`), and `doctor` with a self-test."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from dpassay._version import __version__
from dpassay.blackbox import zoo as mechanisms
from dpassay.cli.app import command, option
from dpassay.cli.options import Out, Seed
from dpassay.cli.result_output import write_report
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim, GaussianDP, RenyiDP
from dpassay.results.verdict import Verdict
from dpassay.rounding import number
from dpassay.tables import Status

#: Extras: their packages, and what they are for.
_EXTRAS = {
    "report": ("altair vl-convert-python jinja2", "HTML reports and charts"),
    "arrow": ("pyarrow", "CSV, JSON lines, Parquet and stores"),
    "dask": ("distributed", "drawing on a Dask cluster"),
    "torch": ("torch", "PyTorch arrays and the DP-SGD examples"),
}


@command(exits="")
def zoo() -> None:
    """List the mechanisms of the zoo, with their true privacy parameters.

    Example: dpassay zoo
    """
    console = Console()
    wide = console.width >= 110  # else the first columns alone
    headings = ["mechanism", "claims", "", "true ε", "δ(0.5)", "Rényi ε(2)", "T(0.05)", "source"]
    headings = headings if wide else headings[:4]
    table = _table(
        "The zoo: what each mechanism claims, and the truth on its default pair", headings
    )
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


@command("json", "quiet", report=Path("dpassay-demo.html"), exits="2 3 130")
def demo(
    n: int = option(20_000, "Draws per side and mechanism.", "--n", "-n"),
    *,
    out: Out,
    seed: Seed = 0,
) -> None:
    """The tour: audits a dozen mechanisms, correct and broken, against what they claim.

    Example: dpassay demo
    """
    assert out.report is not None
    console, started = Console(), time.monotonic()
    headings = ("mechanism", "claims", "truth", "measured", "verdict", "right?")
    table = _table("Each mechanism against its own claim", headings)
    rows, verdicts = [], []
    for name, truth, verdict, right in _tour(n=n, seed=seed):
        tone, ended = verdict.tone, "✓" if right else "✗"
        cells = name, str(verdict.claim), truth, verdict.bound, tone.label, ended
        table.add_row(*cells, style="" if tone is Status.CLEAR else tone.terminal)
        rows.append(dict(zip(headings, cells, strict=True)))
        verdicts.append(verdict)
        console.print(f"  {name}: {tone.label}", highlight=False)
    console.print(table)
    # the one whose witness a reader can check at a glance
    most = max(
        range(len(verdicts)),
        key=lambda k: (verdicts[k].violated, -len(verdicts[k].witness.event.words)),
    )
    view = verdicts[most].view()
    write_report(
        out.report,
        [verdicts[most]],
        title="dpassay: the tour. One of its stops in full, and all of them in a table",
        command="dpassay demo",
        table=rows,
        lead=(view.status, f"{rows[most]['mechanism']}: {view.title.lower()}", view.sentence),
    )
    console.print(f"The report: {out.report} ({time.monotonic() - started:.0f} s in all)")


def _table(title: str, headings: Iterable[str]) -> Table:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _tour(*, n: int, seed: int) -> Iterator[tuple[str, str, Verdict, bool]]:
    """Audit one after the other: its name, the truth, the verdict, and whether that is right.

    Right is to refute a false claim; of a true one, not to refute it and to have been able to.
    """
    from dpassay.auditing.audits import audit
    from dpassay.sampling.draw import Sampling

    stops: list[tuple[str, Any, Any]] = [  # a claim, or None for that of the mechanism
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
    how: Any = {"n": n, "details": True, "sampling": Sampling(progress=False)}
    for index, (name, mechanism, given) in enumerate(stops):
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


@command(exits="", done="the self-test passed, 3 it failed")
def doctor() -> None:
    """Check the installation: versions, extras, what is missing, and a self-test of a few seconds.

    Example: dpassay doctor
    """
    console = Console(highlight=False, markup=False, soft_wrap=True)
    python = f"Python {platform.python_version()}, {platform.platform()}"
    console.print(f"dpassay {__version__}, {python}")
    needed = ("numpy", "scipy", "scikit-learn", "rich", "typer")
    console.print(", ".join(f"{name} {_version(name)}" for name in needed))
    for extra, (packages, use) in _EXTRAS.items():
        missing = None in map(_version, packages.split())
        state = f"missing: pip install 'dpassay[{extra}]'" if missing else "installed"
        console.print(f"  {extra:<8}{use:<40}{state}")
    started = time.monotonic()
    failed = [what for what, passed in _self_test() if not passed]
    ended = f"failed: {'; '.join(failed)}" if failed else "passed"
    console.print(f"Self-test {ended} ({time.monotonic() - started:.1f} s)")
    raise typer.Exit(3 if failed else 0)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _self_test() -> list[tuple[str, bool]]:
    """What was expected of each audit, and whether it came out so; wrong once in a million runs."""
    from dpassay.auditing.audits import audit
    from dpassay.blackbox.zoo import Laplace
    from dpassay.sampling.draw import Sampling

    how: Any = {"n": 50_000, "confidence": 1 - 1e-6, "rng": 0, "sampling": Sampling(progress=False)}

    def violated(scale: float) -> bool:
        return bool(audit(Laplace(scale), (0.0, 1.0), "eps=1", **how).violated)

    return [
        ("Laplace noise of scale 1 keeps 1-DP", not violated(1.0)),
        ("Laplace noise of scale 0.5 violates 1-DP", violated(0.5)),
    ]
