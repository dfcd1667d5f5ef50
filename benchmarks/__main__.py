"""Run the benchmarks and print their tables."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.drawing import drawing
from benchmarks.speed import comparisons

console = Console()
for title, timings, memory in drawing():
    table = Table(title=title)
    for heading in ("candidate", "median s", "quartiles", "ratio", "peak MB"):
        table.add_column(heading, justify="left" if heading == "candidate" else "right")
    for row in timings:
        table.add_row(
            row.name,
            f"{row.median:.4f}",
            f"{row.low:.4f}–{row.high:.4f}",
            f"{row.ratio:.2f}",
            f"{memory[row.name]:.0f}",
        )
    console.print(table)
for comparison in comparisons():
    table = Table(title=f"{comparison.title}\ngoal: {comparison.goal}")
    for heading in ("candidate", "median s", "quartiles", "ratio"):
        table.add_column(heading, justify="left" if heading == "candidate" else "right")
    for row in comparison.run():
        spread = f"{row.low:.4f}–{row.high:.4f}"
        table.add_row(row.name, f"{row.median:.4f}", spread, f"{row.ratio:.3g}")
    console.print(table)
