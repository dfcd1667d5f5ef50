"""A bank of mechanisms with known likelihood ratios: the audit beside its candidates and an oracle.

Every row is drawn as a plain array `x`, for which the exact log-likelihood ratio is known, and then
dressed as the outputs the audit gets to see: shifted, scaled, as strings, dates, dictionaries. The oracle
knows the ratio and the best cut, and tests with all n draws: its bound is the exact one at the expected
counts.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.bank_relatives import rows
from benchmarks.bank_rows import Row
from benchmarks.tables import markdown, table
from dpassay.bounds.joint_test import lower_bound
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import draws_needed, normal_limit

#: What `loss="auto"` has to be as good as.
SINGLE = (
    *(
        "kde",
        "polynomial",
        "ranks",
        "dyadic",
        "categories",
        "knn",
        "linear",
        "logistic",
        "products",
    ),
    *("discriminant", "parity", "boosting", "characters"),
)
N = 20_000
#: Nothing was ever tuned on the seeds from here on.
SEED = 90_001
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


def measure(index: int, many: int | None = None) -> dict[str, Any]:
    """One row: the audit, its candidates, the oracle."""
    row = rows()[index]

    def bounds(loss: str, many: int) -> tuple[float, float, list[str]]:
        found, blind = [], []
        start = time.perf_counter()
        for seed in range(SEED, SEED + many):
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
    many = many or next(audits for limit, audits in MANY if seconds < limit)
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
        "held out": oracle(row, 3 * N // 4),
        "blind": len(blind),
    }


def main(only: str = "", audits: str = "") -> list[dict[str, Any]]:
    """Measure every row, or those of a name, two at a time; with so many audits each."""
    measured = partial(measure, many=int(audits) if audits else None)
    chosen = [k for k, row in enumerate(rows()) if only in f"{row.group}: {row.name}"]
    found = []
    with ProcessPoolExecutor(2) as pool:
        for r in pool.map(measured, chosen):
            found.append(r)
            print(
                f"{r['name'][:40]:40} {r['ours']:.3f} best {r['single']:.3f} ({r['best']}) oracle "
                f"{r['oracle']:.3f}, held out {r['held out']:.3f}, in {r['seconds']:.2f} s"
                f"{' BLIND' * bool(r['blind'])}",
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

#: Where an audit would need more draws a side, it is not made.
MOST = 400_000


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


def events_of(row: Row) -> list[tuple[float, float]]:
    """The probabilities of the events that an oracle may cut from the true loss, the larger one first."""
    rng = np.random.default_rng(2)
    p, q = (
        np.sort(np.round(np.asarray(row.ell(row.base(side, 2_000_000, rng)), dtype=float), 9))
        for side in (0, 1)
    )
    cuts = np.unique(np.quantile(np.concatenate([p, q]), np.linspace(0.001, 0.999, 200)))
    found = []
    for cut in cuts:
        above = [1 - np.searchsorted(s, cut, side="left") / s.size for s in (p, q)]
        below = [np.searchsorted(s, cut, side="right") / s.size for s in (q, p)]
        found += [(above[0], above[1]), (below[0], below[1])]
    return found


def events_in_zoo(mechanism: Any) -> list[tuple[float, float]]:
    """The same of a mechanism of the zoo, exact: where its trade-off curve has corners, or on a grid."""
    pair = tuple(mechanism.pair)
    found: list[tuple[float, float]] = []
    for side in (pair, pair[::-1]):
        sizes = np.concatenate([np.geomspace(1e-4, 0.01, 50), np.linspace(0.01, 0.99, 197)])
        with contextlib.suppress(AttributeError, dp.errors.NoClosedForm):
            masses = mechanism.masses(side)
            order = np.argsort(masses.q / np.maximum(masses.p, 1e-300), kind="stable")
            if order.size <= 64:  # else the curve is smooth to the grid
                sizes = np.append(sizes, np.cumsum(masses.q[order]))
        sizes = sizes[(sizes > 0) & (sizes < 1)]
        found += [(1 - float(mechanism.tradeoff(size, side)), float(size)) for size in sizes]
    return found


def oracle_draws(events: list[tuple[float, float]], claim: dp.Claim) -> float:
    """Draws a side with which the exact test of the best of some events refutes with probability .9."""
    p, q = np.array(events).T
    allowed, noise = normal_limit(q, 1, 1, claim)
    best = int(np.argmax((p - allowed) / noise))
    return draws_needed(float(p[best]), float(q[best]), claim, 0.05) or math.inf


def draws_of(
    name: str, mechanism: Any, pair: Any, of: dp.Claim, truth: float, events: Any
) -> list[str]:
    """A row: how often claims at half the truth, and a tenth below it, are refuted with few draws."""
    cells = [name, f"{truth:.3f}"]
    for part, times in ((0.5, 5.0), (0.9, 1.6)):
        claim = of.at(part * truth)
        least = oracle_draws(events, claim)
        cells.append(f"{least:,.0f}")
        if times * least > MOST:
            cells.append("–")
            continue
        n = int(times * least)
        refuted = []
        for seed in range(95_000, 95_000 + (100 if n < 20_000 else 30)):
            try:
                quiet = dp.Sampling(progress=False)
                found = dp.audit(mechanism, pair, claim, n=max(n, 16), rng=seed, sampling=quiet)
                refuted.append(found.violated)
            except dp.errors.NotEnoughDraws:
                refuted.append(False)
        cells.append(f"{np.mean(refuted):.2f}")
    print(*cells, file=sys.stderr, flush=True)
    return cells


def draws_of_row(index: int) -> list[str] | None:
    """A row of the bank."""
    row = rows()[index]
    truth = truth_of(row)
    if truth is None:
        return None
    return draws_of(row.name, row, (0, 1), row.claim, truth, events_of(row))


def draws_in_zoo(index: int) -> list[str] | None:
    """A mechanism of the zoo whose ε is finite."""
    mechanism = dp.zoo.members()[index]
    truth = float(mechanism.epsilon(mechanism.pair))
    if not 0 < truth < math.inf:
        return None  # those of a Gaussian are in the bank
    name = f"`{mechanism}`"
    events = events_in_zoo(mechanism)
    return draws_of(name, mechanism, mechanism.pair, dp.PureDP(1.0), truth, events)


def _draws(measured: Callable[[int], list[str] | None], chosen: Sequence[int]) -> str:
    with ProcessPoolExecutor(2) as pool:
        lines = [cells for cells in pool.map(measured, chosen) if cells is not None]
    headings = ["outputs", "truth"]
    for part, times in (("half the truth", "5"), ("a tenth below", "1.6")):
        headings += [f"{part}: the oracle's draws", f"refuted with {times} × as many"]
    return markdown(headings, lines)


@table("bank-draws")
def bank_draws() -> str:
    """Draws until claims at half the truth, and a tenth below it, are refuted (8 minutes)."""
    return _draws(
        draws_of_row, [k for k, row in enumerate(rows()) if row.group not in ("vectors", "types")]
    )


@table("zoo-draws")
def zoo_draws() -> str:
    """The same of every mechanism in the zoo whose ε is finite (5 minutes)."""
    return _draws(draws_in_zoo, range(len(dp.zoo.members())))


if __name__ == "__main__":
    main(*sys.argv[1:])
