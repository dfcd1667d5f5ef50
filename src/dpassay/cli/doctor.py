"""`dpassay doctor`: versions, extras, what is missing, and a self-test."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from typing import Any

import typer
from rich.console import Console

from dpassay._version import __version__
from dpassay.cli.app import command

#: Extras: their packages, and what they are for.
_EXTRAS = {
    "report": ("altair vl-convert-python jinja2", "HTML reports and charts"),
    "arrow": ("pyarrow", "CSV, JSON lines, Parquet and stores"),
    "dask": ("distributed", "drawing on a Dask cluster"),
    "torch": ("torch", "PyTorch arrays and the DP-SGD examples"),
}


@command()
def doctor() -> None:
    """Check the installation: versions, extras, what is missing, and a self-test of about ten seconds.

    Exit status: 0 the self-test passed, 3 it failed.

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
