"""A bank of mechanisms with known likelihood ratios: the audit beside its candidates and an oracle.

Every row is drawn as a plain array `x`, for which the exact log-likelihood ratio is known, and then
dressed as the outputs the audit gets to see: shifted, scaled, as strings, dates, dictionaries. The oracle
knows the ratio and the best cut, and tests with all n draws: its bound is the exact one at the expected
counts.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.bank_rows import Row, rows
from benchmarks.tables import markdown, table
from dpassay.bounds.joint import lower_bound
from dpassay.bounds.ordering import Counts

#: What `loss="auto"` has to be as good as.
SINGLE = (
    *("kde", "polynomial", "ranks", "dyadic", "kinds", "knn", "linear", "logistic", "products"),
    *("boosting", "letters"),
)
N = 20_000
#: Medians are over seven audits where one takes less than a quarter of a second, else over three. Nothing
#: was ever tuned on these seeds.
SEEDS, FEW, QUICK = tuple(range(90_001, 90_008)), 3, 0.25


# --- measuring


def oracle(row: Row, n: int = N) -> float:
    """The bound at the expected counts of the best cut of the true loss."""
    rng = np.random.default_rng(0)
    size = 200_000 if row.slow else 400_000
    p, q = (  # to nine digits: rounding errors of the ratio are no part of what an oracle may know
        np.sort(np.round(np.asarray(row.ell(row.base(side, size, rng)), dtype=float), 9))
        for side in (0, 1)
    )
    cuts = np.unique(
        np.quantile(
            np.concatenate([p, q]),
            np.concatenate(
                [
                    np.linspace(0, 1, 60),
                    np.geomspace(1e-5, 0.1, 20),
                    1 - np.geomspace(1e-5, 0.1, 20),
                ]
            ),
        )
    )
    best = 0.0
    for cut in cuts:
        above = [1 - np.searchsorted(s, cut, side="left") / size for s in (p, q)]
        below = [np.searchsorted(s, cut, side="right") / size for s in (q, p)]
        for a, b in (above, below):
            if a > b:
                best = max(
                    best, lower_bound(Counts(round(n * a), n, round(n * b), n), row.claim, 0.05)
                )
    return best


def measure(index: int) -> dict[str, Any]:
    """One row: the audit, its candidates, the oracle."""
    row = rows()[index]

    def bounds(loss: str, many: int) -> tuple[float, float, list[str]]:
        found, blind = [], []
        start = time.perf_counter()
        for seed in SEEDS[:many]:
            verdict = dp.audit(
                row,
                (0, 1),
                row.claim,
                n=N,
                rng=seed,
                loss=loss,
                sampling=dp.Sampling(progress=False),
            )
            found.append(verdict.lower_bound)
            if verdict.blind:
                blind.append(verdict.blind)
        return float(np.median(found)), (time.perf_counter() - start) / many, blind

    many = len(SEEDS) if bounds("auto", 1)[1] < QUICK else FEW
    ours, seconds, blind = bounds("auto", many)
    single = {}
    for loss in SINGLE:
        if (row.slow or many == FEW) and loss == "knn":
            continue  # minutes, for nothing in many dimensions
        try:
            single[loss] = bounds(loss, many)[0]
        except dp.errors.DpassayError:
            continue
    best = max(single, key=lambda name: single[name])
    return {
        "group": row.group,
        "name": row.name,
        "claim": str(row.claim),
        "ours": ours,
        "seconds": seconds,
        "best": best,
        "single": single[best],
        "oracle": oracle(row),
        "blind": len(blind),
    }


def main(only: str = "") -> list[dict[str, Any]]:
    """Measure every row, two at a time."""
    chosen = [k for k, row in enumerate(rows()) if only in f"{row.group}: {row.name}"]
    found = []
    with ProcessPoolExecutor(2) as pool:
        for r in pool.map(measure, chosen):
            found.append(r)
            print(
                f"{r['name'][:40]:40} {r['ours']:.3f} best {r['single']:.3f} ({r['best']}) oracle "
                f"{r['oracle']:.3f} in {r['seconds']:.2f} s{' BLIND' * bool(r['blind'])}",
                file=sys.stderr,
                flush=True,
            )
    return found


def _ratio(a: float, b: float) -> str:
    return "–" if b <= 0 else f"{a / b:.2f}"


@table("bank")
def bank() -> str:
    """The whole bank: the audit over its best candidate, and over the oracle (15 minutes)."""
    lines = [
        [
            r["group"],
            r["name"],
            r["claim"],
            f"{r['ours']:.3f}",
            f"{r['single']:.3f} ({r['best']})",
            f"{r['oracle']:.3f}",
            _ratio(r["ours"], r["single"]),
            _ratio(r["ours"], r["oracle"]),
            f"{r['seconds']:.2f}",
        ]
        for r in main()
    ]
    headings = ["", "outputs", "claim", "certified", "best single", "oracle"]
    headings += ["over the best single", "over the oracle", "seconds"]
    return markdown(headings, lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
