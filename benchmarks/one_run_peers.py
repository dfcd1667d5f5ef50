"""jax-privacy's one-run auditors; run by the interpreter of their own environment (`make peers`).

Reads a .npz file with `grid`, a row (m, r, v, δ) each, and `scores` and `included`, one row a run, and
prints ε as JSON. Imports nothing of dpassay.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

GAMMA, DELTA = 0.05, 1e-5


def main() -> None:
    """Bounds at every place of the grid, and of every run by every strategy, with seconds."""
    from jax_privacy import auditing

    data = np.load(sys.argv[1])
    grid = []
    for m, r, v, delta in data["grid"]:
        counts = int(m), int(r), int(v), GAMMA, float(delta)
        both = [
            float(f(0.0, *counts))
            for f in (auditing._epsilon_one_run, auditing._epsilon_one_run_fdp)
        ]
        grid.append(both)
    strategies: dict[str, Any] = {
        "split": lambda seed: auditing.Split(0.25, seed=seed),
        "all thresholds": lambda seed: auditing.Bonferroni(),
    }
    runs: list[dict[str, float]] = []
    seconds: dict[str, float] = {}
    for seed, (scores, included) in enumerate(zip(data["scores"], data["included"], strict=True)):
        auditor = auditing.CanaryScoreAuditor(scores[included], scores[~included])
        found: dict[str, float] = {}
        for name, strategy in strategies.items():
            for kind, method in (
                ("", auditor.epsilon_one_run),
                (", f-DP", auditor.epsilon_one_run_fdp),
            ):
                start = time.perf_counter()
                chosen = strategy(seed)
                found[name + kind] = float(method(GAMMA, DELTA, threshold_strategy=chosen))
                seconds[name + kind] = time.perf_counter() - start
        runs.append(found)
    print(json.dumps({"grid": grid, "runs": runs, "seconds": seconds}))


if __name__ == "__main__":
    main()
