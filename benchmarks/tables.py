"""Tables in the documentation, written by the code that measures them.

A page holds ``<!-- table: NAME -->`` … ``<!-- end: NAME -->``; `python -m benchmarks.tables NAME`
measures and rewrites what is between. `python -m benchmarks.tables` lists the names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def markdown(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as a Markdown table."""
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {}


def table(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register a function that measures a table."""

    def register(function: Callable[[], str]) -> Callable[[], str]:
        TABLES[name] = function
        return function

    return register


@table("joint")
def joint() -> str:
    """Lower bounds on ε from an event at ε = 1: three ways, at equal counts."""
    import math

    from dpassay.bounds import clopper_pearson
    from dpassay.bounds.joint_test import lower_bound
    from dpassay.bounds.ordering import Counts
    from dpassay.privacy.claims import PureDP

    claims, gamma, rows = PureDP(1.0), 0.05, []
    for n in (100, 1000, 10_000, 100_000):
        for q in (math.exp(-1) / 2, 0.01):
            c = Counts(round(n * math.e * q), n, round(n * q), n)
            half = math.sqrt(math.log(2 / gamma) / (2 * n))
            hoeffding = claims.needed(max(c.i / n - half, 0.0), min(c.j / n + half, 1.0))
            box = claims.needed(
                clopper_pearson.lower(c.i, n, gamma / 2), clopper_pearson.upper(c.j, n, gamma / 2)
            )
            bounds = hoeffding, box, lower_bound(c, claims, gamma)
            shown = [f"{math.floor(1000 * bound) / 1000:.3f}" for bound in bounds]
            rows.append([f"{n:,}", f"{q:.3f}", *shown[:2], f"**{shown[2]}**"])
    headings = ["draws a side", "Q(E)", "Hoeffding box", "Clopper–Pearson box", "exact joint test"]
    return markdown(headings, rows)


@table("zoo")
def zoo() -> str:
    """Every mechanism of the zoo: its claim, the truth on its default pair, its flaw."""
    import dpassay as dp
    from dpassay.rounding import number

    def truth(notion: Callable[..., object], *arguments: object) -> str:
        try:
            return number(float(notion(*arguments)))  # type: ignore[arg-type]
        except dp.errors.NoClosedForm:
            return "not known"

    rows = []
    for mechanism in dp.zoo.members():
        pair = mechanism.pair
        rows.append(
            [
                f"`{mechanism}`",
                str(mechanism.claim or "nothing"),
                truth(mechanism.epsilon, pair),
                truth(mechanism.delta, 0.5, pair),
                truth(mechanism.renyi, 2.0, pair),
                truth(mechanism.tradeoff, 0.05, pair),
                mechanism.flaw or "correct",
                mechanism.source,
            ]
        )
    headings = ["mechanism", "claims", "ε", "δ(0.5)", "Rényi ε(2)", "T(0.05)", "flaw", "source"]
    return markdown(headings, rows)


def write(name: str) -> None:
    """Measure a table and put it where its page wants it."""
    fill(name, TABLES[name]())


def fill(name: str, text: str) -> None:
    """Put a table where its page wants it."""
    mark = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
    pages = [page for page in DOCS.rglob("*.md") if mark.search(page.read_text(encoding="utf-8"))]
    for page in pages:
        content = page.read_text(encoding="utf-8")
        page.write_text(mark.sub(lambda m: m[1] + text + "\n" + m[2], content), encoding="utf-8")
    print(text if not pages else f"{name}: {', '.join(p.name for p in pages)}")


def kept(page: Path, name: str) -> str:
    """A table of a page as it stands, with its marks, for code that writes the page anew."""
    mark = rf"<!-- table: {name} -->.*?<!-- end: {name} -->"
    found = re.search(mark, page.read_text(encoding="utf-8"), re.DOTALL)
    return found[0] if found else f"<!-- table: {name} -->\n<!-- end: {name} -->"


def main() -> None:
    """List the tables, or write those asked for."""
    # they register their tables
    from benchmarks import (  # noqa: F401
        audits,
        bank,
        bits,
        diagnoses,
        dp_sgd,
        engines,
        fdp,
        footprint,
        hunt_peers,
        hunts,
        monitors,
        mpl,
        one_run,
        one_run_cifar,
        plans,
        renyi,
        spectra,
        store,
        verify,
    )

    for asked in sys.argv[1:]:
        write(asked)
    if not sys.argv[1:]:
        print("\n".join(f"{name}: {measure.__doc__}" for name, measure in TABLES.items()))


if __name__ == "__main__":
    from benchmarks.tables import main as imported  # the module the others registered with

    imported()
