"""`python -m papers [what]`: list the figures and tables, or regenerate some of them.

`what` is an item (pure/fig4), a paper (pure, renyi, eureka, fdp) or all. RUNS= in the environment sets
the number of simulation runs (1000 in the papers), SEED= other draws (any number but 0), WORKERS= the
processes. What comes out goes to papers/mine, beside the results of the repository, which WRITE=1
replaces.
"""

from __future__ import annotations

import os
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from papers import core, page
from papers.core import ITEMS, Item


def chosen(what: str) -> list[Item]:
    """The items a word stands for."""
    if what == "all":
        return list(ITEMS.values())
    return [i for i in ITEMS.values() if what in (i.key, i.paper)]


def main() -> int:
    """List or run."""
    console = Console(stderr=True)
    words = sys.argv[1:]
    if not words:
        for i in ITEMS.values():
            mark = "" if i.make else "  (not yet)"
            print(f"{i.key:<14} {i.title}{mark}")
        return 0
    number, seed = (os.environ.get(name, "").strip() for name in ("RUNS", "SEED"))
    workers = int(os.environ.get("WORKERS") or os.cpu_count() or 1)
    for name, text in (("RUNS", number), ("SEED", seed)):
        if text and (not text.isdigit() or int(text) < 1):
            console.print(f"{name} must be a number of at least 1, got {text}", markup=False)
            return 2
    items: list[Item] = []
    for word in words:
        found = chosen(word)
        if not found:
            console.print(f"there is no {word}: run without a word for the list", markup=False)
            return 2
        items += [i for i in found if i not in items]
    write = os.environ.get("WRITE", "").strip() not in ("", "0")
    home = core.HOME if write else core.HOME / "mine"
    home.mkdir(exist_ok=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    try:
        for count, i in enumerate(items, 1):
            console.print(
                f"{count} of {len(items)}: {i.key}, {i.title}", markup=False, highlight=False
            )
            if i.make is None:
                console.print(f"{i.key}: not yet ({i.setting})", markup=False)
                continue
            start = time.perf_counter()
            with Progress(*columns, console=console, transient=True) as bar:
                try:
                    path = core.run(
                        i.key,
                        runs=int(number) if number else None,
                        seed=int(seed or 0),
                        workers=workers,
                        results=home / "results",
                        bar=bar,
                    )
                except FileNotFoundError as missing:  # trained models: the others need none
                    console.print(f"{i.key}: {missing}", markup=False)
                    continue
            seconds = time.perf_counter() - start
            console.print(f"{i.key}: {seconds:.0f} s, {path}", markup=False, highlight=False)
            page.write(home / "RESULTS.md", home / "results")
    except KeyboardInterrupt:
        console.print("interrupted: run it again to go on from here")
        return 130
    console.print(f"{home / 'RESULTS.md'} has them all", markup=False, highlight=False)
    if not write:
        console.print("(WRITE=1 replaces the results of the repository)", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
