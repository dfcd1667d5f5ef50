"""Quality of the MPL bound at the settings of its paper: coverage and tightness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from papers.mpl import BROKEN, LEVELS, MECHANISMS, mechanism
from scipy.stats import binom

import dpassay as dp
from benchmarks.parallel import runs
from benchmarks.tables import markdown, table


@dataclass(frozen=True)
class Cell:
    """One mechanism at one target level, with its ten pairs and the settings of the paper."""

    name: str
    target: float
    mechanism: Any
    pairs: list[Any]
    settings: dict[str, Any]

    @property
    def truth(self) -> float:
        """The exact maximum over the pairs."""
        return float(max(self.mechanism.epsilon(pair) for pair in self.pairs))


def cells(level: float) -> Iterator[Cell]:
    """The eight algorithms of the paper's Figure 4 at one level."""
    for name, (_, (n, n_bound, floor), region, _) in MECHANISMS.items():
        settings = {"n": n, "n_bound": n_bound, "floor": floor, "region": region}
        yield Cell(name, level, *mechanism(name, level), settings)


def one(seed: int, cell: Cell, defaults: bool = False) -> float:
    """One bound."""
    settings = dict(cell.settings)
    if defaults:
        settings = {k: v for k, v in settings.items() if k in ("n", "n_bound")}
    return dp.pure.lower_bound(cell.mechanism, cell.pairs, rng=seed, **settings).value


def same(seed: int) -> float:
    """One bound for identical distributions."""
    return dp.pure.lower_bound(
        dp.zoo.Laplace(), (0.0, 0.0), n=20_000, n_bound=50_000, rng=seed
    ).value


@table("mpl")
def mpl(most: int = 300, svt: int = 300) -> str:
    """MPL at the paper's settings: coverage and tightness, 300 runs a cell (two hours)."""
    rows = []
    for level in LEVELS:
        for cell in cells(level):
            count = svt if cell.name.startswith("SVT") else most
            bounds = np.array(runs(one, range(count), cell, label=f"{cell.name} {level}"))
            truth = cell.truth
            covered = int(np.sum(bounds <= truth))
            limit = int(binom.ppf(0.01 / 19, count, 0.95))
            broken = cell.name in BROKEN
            rows.append(
                [
                    cell.name,
                    level,
                    count,
                    f"{truth:.4f}" if np.isfinite(truth) else "∞",
                    f"{covered / count:.3f}",
                    f"{limit / count:.3f}",
                    "" if broken else f"{np.median(bounds) / truth:.3f}",
                    f"{np.mean(bounds > level):.3f}" if broken else "",
                ]
            )
    positive = np.mean(np.array(runs(same, range(most))) > 0)
    limit = int(binom.ppf(0.01 / 19, most, 0.95))
    rows.append(
        ["P = Q (Laplace)", "", most, "0", f"{1 - positive:.3f}", f"{limit / most:.3f}", "", ""]
    )
    headings = [
        "mechanism",
        "ε₀",
        "runs",
        "exact ε of the pairs",
        "P(LB ≤ ε)",
        "its limit",
        "median LB/ε",
        "P(LB > ε₀)",
    ]
    return markdown(headings, rows)
