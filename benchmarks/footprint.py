"""What `pip install dpassay` puts on the disk, how long it takes to import, and what it is there for."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from unittest import mock

import numpy as np
from tools.release import LARGEST, ROOT, weights

import dpassay as dp
from benchmarks.tables import markdown, table
from dpassay._typing import FloatArray

#: Packages by what they are installed for.
_GROUPS = {
    "numpy, scipy": ("numpy", "scipy"),
    "scikit-learn and what it needs": ("sklearn", "scikit_learn", "joblib", "narwhals"),
    "typer, rich and what they need": (
        *(
            "typer",
            "rich",
            "pygments",
            "pydantic",
            "pydantic_core",
            "click",
            "shellingham",
            "mdurl",
        ),
        *("markdown_it", "markdown_it_py", "annotated_doc", "annotated_types"),
        *("typing_extensions", "typing_inspection"),
    ),
    "dpassay": ("dpassay",),
}
_AUDIT = """
import dpassay as dp
dp.audit(lambda x, size, rng: x + rng.laplace(size=size), (0.0, 1.0), "eps=1", n=10_000, rng=0)
"""


def _seconds(python: Path, code: str) -> float:
    """The median processor time of five processes."""
    times = []
    for _ in range(5):
        before = os.times()
        subprocess.run([python, "-I", "-c", code], check=True)
        after = os.times()
        times.append(sum(after[2:4]) - sum(before[2:4]))
    return statistics.median(times)


@table("footprint")
def footprint() -> str:
    """Installed size and import time, in an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True)
        sizes = weights(python)
        rows: list[list[str]] = []
        left = dict(sizes)
        for name, packages in _GROUPS.items():
            rows.append([name, f"{sum(left.pop(one, 0.0) for one in packages):.0f} MB", ""])
        rows.append(["others", f"{sum(left.values()):.0f} MB", ""])
        rows.append(["all", f"**{sum(sizes.values()):.0f} MB**", f"{LARGEST} MB"])
        bare = _seconds(python, "pass")
        for words, code, limit in (
            ("import dpassay", "import dpassay", "numpy's"),
            ("import numpy", "import numpy", ""),
            ("import and one audit of 10,000 draws", _AUDIT, ""),
        ):
            rows.append([words, f"{1000 * (_seconds(python, code) - bare):.0f} ms", limit])
    return markdown(["what", "measured", "limit"], rows)


def _signs(x: float, size: int, rng: np.random.Generator) -> FloatArray:
    """The fourth of four numbers has the sign of the product of the others, less often on x = 1."""
    rows = rng.normal(size=(size, 4))
    sign = np.where(rng.random(size) < 0.3 * x, 1.0, np.sign(rows[:, :3].prod(axis=1)))
    rows[:, 3] = np.abs(rows[:, 3]) * sign
    return rows


@table("without-scikit-learn")
def without_scikit_learn() -> str:
    """The same draws audited with and without scikit-learn."""
    rows = []
    for n in (20_000, 100_000):
        found = []
        for missing in ({}, {"sklearn.ensemble": None}):
            with mock.patch.dict(sys.modules, missing):  # as if it were not installed
                verdict = dp.audit(_signs, (0.0, 1.0), "eps=0.1", n=n, rng=0, loss="values")
            found.append(f"{verdict.lower_bound:.2f}")
        rows.append([f"{n:,}", *found])
    return markdown(["draws a side", "ε ≥, with scikit-learn", "ε ≥, without"], rows)
