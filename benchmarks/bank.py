"""A bank of mechanisms with known likelihood ratios: the audit beside an oracle.

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
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.bank_relatives import rows
from benchmarks.bank_rows import Row
from benchmarks.parallel import runs
from benchmarks.tables import markdown, table
from dpassay.bounds.joint_test import lower_bound
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import draws_needed, normal_limit

N = 20_000
#: Nothing was ever tuned on the seeds from here on.
SEED = 90_001
#: Seconds that a row may take, and the fewest and the most audits of one.
SECONDS, FEWEST, MOST_AUDITS = 40.0, 5, 101


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
    """One row: the median bound of some audits, and the oracle's."""
    row = rows()[index]

    def bounds(many: int) -> list[float]:
        quiet = dp.Sampling(progress=False)
        return [
            dp.audit(row, (0, 1), row.claim, n=N, rng=seed, sampling=quiet).lower_bound
            for seed in range(SEED, SEED + many)
        ]

    bounds(1)  # what is imported on the way takes no part in the next
    start = time.perf_counter()
    bounds(1)
    seconds = time.perf_counter() - start
    many = many or int(np.clip(SECONDS / seconds, FEWEST, MOST_AUDITS)) // 2 * 2 + 1
    found = bounds(many)
    return {
        "group": row.group,
        "name": row.name,
        "claim": str(row.claim),
        "ours": float(np.median(found)),
        "audits": many,
        "oracle": oracle(row),
        "same draws": oracle(row, 3 * N // 4),
    }


def main(only: str = "", audits: str = "") -> list[dict[str, Any]]:
    """Measure every row, or those of a name, on all cores; with so many audits each."""
    chosen = [k for k, row in enumerate(rows()) if only in f"{row.group}: {row.name}"]
    found = runs(measure, chosen, int(audits) if audits else None, label="bank")
    for r in found:
        print(" | ".join(_line(r)), file=sys.stderr, flush=True)
    return found


def _line(r: dict[str, Any]) -> list[str]:
    """A row of the table."""
    numbers = r["ours"], r["oracle"], r["ours"] / r["oracle"], r["ours"] / r["same draws"]
    shown = [f"{one:.{digits}f}" for one, digits in zip(numbers, (3, 3, 2, 2), strict=True)]
    return [r["group"], r["name"], r["claim"], *shown, str(r["audits"])]


@table("bank")
def bank() -> str:
    """The whole bank: the audit over the oracle (40 minutes on 2 cores)."""
    headings = ["", "outputs", "claim", "certified", "oracle", "over the oracle"]
    headings += ["with the same draws", "audits"]
    return markdown(headings, [_line(r) for r in main()])


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
    lines = [cells for cells in runs(measured, chosen, label="rows") if cells is not None]
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
