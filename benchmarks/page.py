"""Results as JSON, against a stored baseline, and as docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn

import dpassay
from benchmarks.quality import PAPERS, matrix, peer_costs, rates, settings
from benchmarks.scaling import Cost, costs, exponent
from benchmarks.speed import comparisons
from benchmarks.tables import kept, markdown

HERE = Path(__file__).parent
LATEST, BASELINE = HERE / "latest" / "results.json", HERE / "baseline.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
#: A ratio this much larger than the baseline's, beyond both spreads, is a regression.
_SLOWER = 1.5


def measure(*, full: bool) -> dict[str, Any]:
    """Everything, with where it was measured."""
    sizes = (10_000, 100_000, 1_000_000) + ((10**7, 10**8) if full else ())
    return {
        "versions": {
            "dpassay": dpassay.__version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "machine": {"cpu": _cpu(), "cores": os.cpu_count()},
        "scaling": [asdict(cost) for cost in costs(sizes)],
        "comparisons": [
            {
                "title": comparison.title,
                "goal": comparison.goal,
                "rows": [asdict(row) for row in comparison.run()],
            }
            for comparison in comparisons()
        ],
        "quality": rates(1000 if full else 200),
        "quality_runs": 1000 if full else 200,
        "matrix": matrix(20 if full else 5),
        "matrix_runs": 20 if full else 5,
        "peers": peer_costs((10_000, 100_000)),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


def regressions(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What became slower relative to drawing, beyond what noise explains.

    Seconds differ between machines and minutes; whole call ÷ drawing in the same run does so far less. A
    regression is a ratio half as large again, with quartiles that do not overlap.
    """
    found = []
    old = {(c["notion"], c["n"]): c for c in before["scaling"]}
    for cost in now["scaling"]:
        was = old.get((cost["notion"], cost["n"]))
        if was is None:
            continue
        ratio, earlier = (c["seconds"] / c["drawing"] for c in (cost, was))
        apart = cost["low"] / cost["drawing"] > was["high"] / was["drawing"]
        if ratio > _SLOWER * earlier and apart:
            found.append(
                f"{cost['notion']} at n = {cost['n']:,}: {earlier:.2f} → {ratio:.2f} × drawing"
            )
    return found


def published() -> str:
    """Our seconds beside those the papers report, as the reproduction has them."""
    text = (HERE.parent / "papers" / "RESULTS.md").read_text(encoding="utf-8")
    rows = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line.startswith("| [") and line.count(" | ") == 5
    ]
    kept = [
        (row[0].split("]")[0].strip("["), row[3], row[5]) for row in rows if row[5] != "not given"
    ]
    return markdown(["item", "ours", "the paper's (other hardware)"], kept)


def write_page(results: dict[str, Any], top: str) -> None:
    """docs/benchmarks.md."""
    machine, versions = results["machine"], results["versions"]
    found = [Cost(**cost) for cost in results["scaling"]]
    rows = []
    for notion in dict.fromkeys(cost.notion for cost in found):
        own = [cost for cost in found if cost.notion == notion]
        rows += [
            [
                notion,
                f"{cost.n:,}",
                f"{cost.seconds:.4f}",
                f"{cost.drawing:.4f}",
                f"{cost.ratio:.2f}",
                f"{cost.memory:.0f}",
                f"{exponent(own):.2f}" if cost is own[-1] else "",
            ]
            for cost in own
        ]
    speed = markdown(
        ["call", "n", "seconds", "drawing alone", "ratio", "peak MB", "growth exponent"], rows
    )
    sides = []
    for comparison in results["comparisons"]:
        sides.append(f"**{comparison['title']}** (goal: {comparison['goal']})\n")
        lines = [
            [
                r["name"],
                f"{r['median']:.4f}",
                f"{r['low']:.4f}–{r['high']:.4f}",
                f"{r['ratio']:.3g}",
            ]
            for r in comparison["rows"]
        ]
        sides.append(markdown(["candidate", "median s", "quartiles", "ratio"], lines) + "\n")
    quality = markdown(
        ["method", *(f"{s.name}, n = {s.n:,}" for s in settings())], results["quality"]
    )
    headings = ["mechanism", "claimed ε", "it is", *PAPERS]
    caught = markdown(headings, results["matrix"])
    peers = markdown(["method", "scores a side", "seconds", "peak MB"], results["peers"])
    where = f"{machine['cpu']}, {machine['cores']} cores; "
    where += ", ".join(f"{name} {version}" for name, version in versions.items())
    text = f"""# Benchmarks

{top.strip()}

Measured on {where}.
`make bench` measures all of this again up to n = 10⁶ in under ten minutes (`make bench-full` also 10⁷
and 10⁸, with 1000 and 20 runs), writes it as JSON beside the code, compares it with the stored baseline
and rewrites this page. The machine is shared: candidates take turns, and ratios in one run are what to
read.

## Cost by n

Gaussian mechanism, one pair. "Ratio" is whole call over drawing alone in the same run; the limit is 1.

{speed}

## Against plain scipy and scikit-learn

{chr(10).join(sides)}
## Quality at equal budget

How often each method refutes the claim, {results["quality_runs"]} runs, error probability .05, and in
brackets the median of the ε it certifies. In the first two columns the claim is true and the rate must
not exceed .05; in the others it is false. Other auditors are installed into an environment of their
own by `make peers`.

{quality}

Broken mechanisms and their correct twins, 20 000 draws a side on one pair each,
{results["matrix_runs"]} audits a cell, error probability .05; the claims of most correct ones are tight,
and refuted as often as that allows (`python -m benchmarks.tables audit-matrix` has 10⁵ draws at .001).
BayBox has a third of the draws for each of its stages. The constant of Eureka's Corollary 2 makes its
error bound exceed 1 at this size, so that it refutes nothing; it does not cover outputs without a
dimension.

{caught}

The cost of one bound from scores that are already drawn; memory above that of the process before it, for
the peers with the libraries they load:

{peers}

## Installed size and import time

`pip install dpassay` in an empty environment, and processor time of new processes less that of an empty
one (`python -m benchmarks.tables footprint`). `make release` refuses an environment above the limit, and
a test refuses an import that takes longer than numpy's. Why scikit-learn, typer and rich are not extras
is [decided here](dependencies.md).

{kept(PAGE, "footprint")}

## The papers' seconds

Seconds of one run at the papers' own settings, from `papers/RESULTS.md` (`make reproduce`).

{published()}
"""
    PAGE.write_text(text, encoding="utf-8")
