"""A bank of mechanisms with known likelihood ratios: the audit beside its candidates and an oracle.

Every row is drawn as a plain array `x`, for which the exact log-likelihood ratio is known, and then
dressed as the outputs the audit gets to see: shifted, scaled, as strings, dates, dictionaries. The oracle
knows the ratio and the best cut, and tests with all n draws: its bound is the exact one at the expected
counts.
"""

from __future__ import annotations

import math
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.bank_relatives import rows
from benchmarks.bank_rows import Row
from benchmarks.tables import markdown, table
from dpassay.bounds.joint import lower_bound, p_value
from dpassay.bounds.ordering import Counts

#: What `loss="auto"` has to be as good as.
SINGLE = (
    *("kde", "polynomial", "ranks", "dyadic", "kinds", "knn", "linear", "logistic", "products"),
    *("boosting", "letters"),
)
N = 20_000
#: Nothing was ever tuned on these seeds.
SEEDS = tuple(range(90_001, 90_022))
#: How many of them are used, by the seconds an audit takes.
MANY = ((0.15, 21), (0.4, 7), (math.inf, 3))


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

    bounds("auto", 1)  # what is imported on the way takes no part in the next
    seconds = bounds("auto", 1)[1]
    many = next(audits for limit, audits in MANY if seconds < limit)
    ours, seconds, blind = bounds("auto", many)
    single = {}
    for loss in SINGLE:
        if (row.slow or many == 3) and loss == "knn":
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


# --- how many draws


def truth_of(row: Row) -> float | None:
    """The largest loss there is, where it is bounded; μ of a shifted Gaussian; None for the rest."""
    rng = np.random.default_rng(1)
    loss = np.concatenate([np.asarray(row.ell(row.base(side, 20_000, rng))) for side in (0, 1)])
    if isinstance(row.claim, dp.GaussianDP):
        return 1.0 if "Gaussian" in row.name or "scales" in row.name else None
    if not isinstance(row.claim, dp.PureDP):
        return None
    high, rare = np.max(np.abs(loss)), np.quantile(np.abs(loss), 0.999)
    return float(high) if 0 < high < 3 and rare > 0.98 * high else None


def oracle_draws(row: Row, claim: dp.Claim) -> int:
    """Draws a side with which a test of the best cut of the true loss refutes in 90 % of runs."""
    rng = np.random.default_rng(2)
    p, q = (
        np.sort(np.round(np.asarray(row.ell(row.base(side, 100_000, rng)), dtype=float), 9))
        for side in (0, 1)
    )
    best, events = math.inf, (0.0, 0.0)
    for cut in np.unique(np.quantile(np.concatenate([p, q]), np.linspace(0.001, 0.999, 200))):
        above = [1 - np.searchsorted(s, cut, side="left") / s.size for s in (p, q)]
        below = [np.searchsorted(s, cut, side="right") / s.size for s in (q, p)]
        for a, b in (above, below):
            allowed = float(claim.region(b))
            if a > allowed:
                slope = float(np.atleast_1d(claim.slope(b))[0])
                spread = math.sqrt(a * (1 - a) + slope**2 * b * (1 - b))
                needed = (2.93 * max(spread, 1e-3) / (a - allowed)) ** 2
                if needed < best:
                    best, events = needed, (a, b)
    n = max(int(best), 10)
    while True:
        hits = rng.binomial(n, events[0], 200), rng.binomial(n, events[1], 200)
        won = [
            p_value(Counts(int(i), n, int(j), n), claim) <= 0.05 for i, j in zip(*hits, strict=True)
        ]
        if np.mean(won) >= 0.9:
            return n
        n = int(1.1 * n) + 1


def draws_of(index: int) -> dict[str, Any] | None:
    """How often claims at half the truth, and a tenth below it, are refuted with few draws."""
    row = rows()[index]
    truth = truth_of(row)
    if truth is None:
        return None
    found: dict[str, Any] = {"name": row.name, "truth": truth}
    for part, times, audits in ((0.5, 5.0, 30), (0.9, 1.6, 30)):
        claim = row.claim.at(part * truth)
        least = oracle_draws(row, claim)
        n = int(times * least)
        found[f"oracle {part}"] = least
        if n > 60_000:
            audits = 10
        if n > 200_000:
            found[f"rate {part}"] = None
            continue
        refuted = []
        for seed in range(95_000, 95_000 + audits):
            try:
                refuted.append(dp.audit(row, (0, 1), claim, n=max(n, 16), rng=seed).violated)
            except dp.errors.NotEnoughDraws:
                refuted.append(False)
        found[f"rate {part}"] = float(np.mean(refuted))
    return found


@table("bank-draws")
def bank_draws() -> str:
    """Draws until claims at half the truth, and a tenth below it, are refuted (8 minutes)."""
    lines = []
    chosen = [k for k, row in enumerate(rows()) if row.group not in ("vectors", "types")]
    with ProcessPoolExecutor(2) as pool:
        for r in pool.map(draws_of, chosen):
            if r is not None:
                cells = [r["name"], f"{r['truth']:.3f}"]
                for part in (0.5, 0.9):
                    rate = r[f"rate {part}"]
                    cells += [f"{r[f'oracle {part}']:,}", "–" if rate is None else f"{rate:.2f}"]
                lines.append(cells)
                print(*cells, file=sys.stderr, flush=True)
    return markdown(
        [
            "outputs",
            "truth",
            "half the truth: the oracle's draws",
            "refuted with 5 × as many",
            "a tenth below: the oracle's draws",
            "refuted with 1.6 × as many",
        ],
        lines,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
