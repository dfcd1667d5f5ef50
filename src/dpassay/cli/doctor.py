"""`dpassay doctor`: versions, extras, what is missing, and a self-test."""

from __future__ import annotations

import importlib.metadata
import platform
import time

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpassay._version import __version__
from dpassay.cli.app import command

_NEEDED = ("numpy", "scipy", "scikit-learn", "rich", "typer")
#: Extras: their packages, and what they are for.
_EXTRAS = {
    "report": (("altair", "vl-convert-python", "jinja2"), "HTML reports and charts"),
    "arrow": (("pyarrow",), "CSV, JSON lines, Parquet and stores"),
    "dask": (("distributed",), "drawing on a Dask cluster"),
    "torch": (("torch",), "PyTorch arrays and the DP-SGD examples"),
}


@command()
def doctor() -> None:
    """Check the installation: versions, extras, what is missing, and a self-test of about ten seconds.

    Exit status: 0 the self-test passed, 3 it failed.

    Example: dpassay doctor
    """
    console = Console(highlight=False)
    console.print(
        f"dpassay {__version__}, Python {platform.python_version()}, {platform.platform()}"
    )
    console.print(", ".join(f"{name} {_version(name)}" for name in _NEEDED))
    table = Table("extra", "for", "state", box=None)
    for extra, (packages, use) in _EXTRAS.items():
        missing = [name for name in packages if _version(name) is None]
        state = f"missing: pip install 'dpassay[{extra}]'" if missing else "installed"
        table.add_row(extra, use, Text(state))
    console.print(table)
    console.print("Self-test: a mechanism that keeps its claim, and one that does not …")
    started = time.monotonic()
    failed = [what for what, passed in _self_test() if not passed]
    seconds = f"({time.monotonic() - started:.1f} s)"
    if failed:
        console.print(f"Self-test failed {seconds}: {'; '.join(failed)}", style="red")
        raise typer.Exit(3)
    console.print(f"Self-test passed {seconds}.")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _self_test() -> list[tuple[str, bool]]:
    """What was expected of each audit, and whether it came out so; wrong once in a million runs."""
    from dpassay.auditing.audits import audit
    from dpassay.blackbox.zoo import Gaussian, Laplace
    from dpassay.privacy.claims import ApproximateDP, GaussianDP, PureDP
    from dpassay.sampling.draw import Sampling

    cases = (
        ("Laplace noise of scale 1 keeps 1-DP", Laplace(1.0), PureDP(1.0), False),
        ("Laplace noise of scale 0.5 violates 1-DP", Laplace(0.5), PureDP(1.0), True),
        ("Gaussian noise of scale 1 keeps 1-GDP", Gaussian(1.0), GaussianDP(1.0), False),
        ("Gaussian noise violates (0.5, 1e-5)-DP", Gaussian(1.0), ApproximateDP(0.5, 1e-5), True),
    )
    quiet = Sampling(progress=False)
    return [
        (
            what,
            audit(
                box, (0.0, 1.0), claim, n=50_000, confidence=1 - 1e-6, rng=0, sampling=quiet
            ).violated
            is expected,
        )
        for what, box, claim, expected in cases
    ]
