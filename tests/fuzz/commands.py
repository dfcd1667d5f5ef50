"""Command lines with wrong files, claims and numbers: the exit status is that of what was printed."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz import claims, files, results
from tests.fuzz.running import Case

import dpassay as dp
from dpassay.cli import run

#: How a command ends that was given something wrong: bad input, or an audit that could see nothing.
_REFUSED = (2, 4)


def _arguments(folder: Path, rng: np.random.Generator) -> list[str]:
    claim = claims.text_of(rng) if rng.random() < 0.3 else "eps=1"
    match int(rng.integers(4)):
        case 0:
            bases = [one for one in results.written() if one[0] in ("verdict", "bound", "hunt")]
            _, name, text = bases[int(rng.integers(len(bases)))]
            place = folder / "v.json"
            text = results.mutated(text, rng) if rng.random() < 0.9 else text
            place.write_bytes(text.encode("utf-8", "surrogatepass"))
            target = {"classes": "zoo:KaryRandomizedResponse(4, 2.0)"}.get(name, "zoo:Laplace(0.5)")
            return ["replay", str(place), target, "--n", "50"]
        case 1:
            kind, paths = str(rng.choice([*files.written()])), []
            for name in "pq":
                paths.append(folder / f"{name}.{kind}")
                good = rng.random() < 0.3
                paths[-1].write_bytes(files.written()[kind] if good else files.mutated(kind, rng))
            return ["audit", "--samples", *map(str, paths), "--claim", claim]
        case 2:
            four = rng.choice(["0", "10", "100", "-1", "1e3", "x", "", "nan", "9" * 400], size=4)
            return ["counts", "--claim", claim, "--confidence", _number(rng), "--", *map(str, four)]
    n = str(rng.choice(["100", "0", "-5", "9" * 30, "x", "1e2", "nan"]))
    target = str(
        rng.choice(["zoo:Laplace(1.0)", "zoo:Laplace(-1)", "zoo:", "none:f", "zoo:Laplace((("])
    )
    given = ["--claim", claim, "--n", n, "--confidence", _number(rng)]
    return [
        "audit",
        target,
        "--pair",
        "0",
        str(rng.choice(["1", "[", "[" * 5000, "9" * 400])),
        *given,
    ]


def _number(rng: np.random.Generator) -> str:
    return str(rng.choice(["0.9", "0.95", "0", "1", "95", "-1", "nan", "inf", "1e-999", "x"]))


def case(seed: int) -> Case:
    """One command line, its exit status held against what it printed."""
    rng = np.random.default_rng([seed, 6])
    folder = Path(tempfile.mkdtemp())
    arguments = [*_arguments(folder, rng)]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    arguments[at:at] = ["--json", "-"]

    def ran() -> Any:
        said, shown = io.StringIO(), warnings.showwarning
        try:
            with contextlib.redirect_stdout(said):
                status = run(arguments)
        finally:
            warnings.showwarning = shown
            shutil.rmtree(folder)
        return status if _right(status, said.getvalue()) else f"status {status}"

    return Case(f"dpassay {' '.join(arguments)[:300]!a}", ran, (int,))


def _right(status: int, said: str) -> bool:
    if status not in (0, 1):
        return status in _REFUSED
    data = json.loads(said)
    found = [dp.Verdict.from_dict(one) for one in (data if isinstance(data, list) else [data])]
    return status == int(any(verdict.violated for verdict in found))
