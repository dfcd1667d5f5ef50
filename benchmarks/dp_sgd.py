"""DP-SGD under audit: tables from models that `examples.run_dpsgd` trained, in the folder SCORES."""

from __future__ import annotations

import os
from pathlib import Path

from examples import audit_dpsgd
from examples.audit_dpsgd import Row, Scores

from benchmarks.tables import markdown, table

SIZES = (125, 250, 500, 1000, 2000, 5000, 10_000)
#: In the order of what the adversary knows.
ORDER = ("paper", "start", "label", "gradient", "tiny", "tiny-against")


def _runs() -> dict[str, Scores]:
    path = Path(os.environ.get("SCORES", "scores"))
    runs = audit_dpsgd.folder(path)
    if not runs:
        raise SystemExit(f"{path} holds no models: make some with python -m examples.run_dpsgd")
    return runs


def _trained(runs: dict[str, Scores]) -> str:
    """On what, and how long it took."""
    times = [f"{name} {2 * s.models:,} in {s.about['seconds']:.0f} s" for name, s in runs.items()]
    first = next(iter(runs.values())).about
    where = "a processor" if first["device"] == "cpu" else first["device"]
    return f"\n\nModels on {where}, {first['examples']:,} images: {', '.join(times)}."


def _cells(row: Row) -> list[str]:
    return [
        "" if v is None else f"{v:.3g}" if isinstance(v, float) else f"{v}" for v in row.values()
    ]


@table("dp-sgd-bounds")
def bounds() -> str:
    """Certified ε of DP-SGD by what is seen of a model, after the first and the last epoch."""
    runs = _runs()
    rows = [
        row
        for name in ORDER
        if name in runs
        for row in audit_dpsgd.bounds(runs[name], (0, len(runs[name].steps) - 1))
    ]
    return markdown(list(rows[0]), [_cells(row) for row in rows]) + _trained(runs)


@table("dp-sgd-faults")
def faults() -> str:
    """Planted faults of DP-SGD: the fewest models a side with which an audit refuted the claim."""
    lines = []
    for name, scores in _runs().items():
        if not name.startswith("tiny"):
            continue
        for mark in (0, len(scores.steps) - 1):
            rows = audit_dpsgd.faults(scores, SIZES, (mark,))
            found = [row["models a side"] for row in rows if row["violated"]]
            how = scores.about["training"]
            pair = "removed" if how["removed"] else "replaced"
            epochs = f"{scores.steps[mark] * how['rate']:g}"
            said = f"{found[0]:,}" if found else f"no, with {rows[-1]['models a side']:,}"
            needed = audit_dpsgd.models_needed(scores, mark)
            stopped = "no" if needed is None else f"{needed:,}"
            p = f"{rows[-1]['p']:.2g}"
            lines.append([how["fault"] or "none", pair, epochs, said, p, stopped])
    headings = ["fault", "canary", "epochs", "refuted with", "p with all models", "monitor"]
    return markdown(headings, lines)
