"""Other auditors on the same scores; run by the interpreter of their own environment (`make peers`).

Reads a .npz file with `p` and `q`, one row a run, and prints the ε bounds of each method as JSON, with
seconds and memory. Imports nothing of dpassay.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

GAMMA = 0.05


def jax_methods(p: Any, q: Any, seed: int) -> dict[str, Any]:
    """jax-privacy's auditor; the second input scores higher."""
    from jax_privacy import auditing

    def bound(**options: Any) -> Any:
        return lambda: auditing.CanaryScoreAuditor(q, p).epsilon_clopper_pearson(GAMMA, **options)

    split = auditing.Split(0.25, seed=seed)
    several = auditing.MultiSplit(20, 0.25, seed=seed)
    return {
        "jax-privacy, Clopper–Pearson, all thresholds": bound(),
        "jax-privacy, Clopper–Pearson, split": bound(threshold_strategy=split),
        "jax-privacy, Clopper–Pearson, 20 splits": bound(threshold_strategy=several),
        "jax-privacy, ε from GDP at δ = 10⁻⁵": lambda: auditing.CanaryScoreAuditor(
            q, p
        ).epsilon_from_gdp(GAMMA, 1e-5),
    }


def estimates_methods(p: Any, q: Any) -> dict[str, Any]:
    """privacy-estimates on the counts of a threshold found with a quarter of the draws."""
    from privacy_estimates import AttackResults, compute_eps_lo

    def bound(method: str) -> Any:
        k = len(p) // 4
        cuts = np.quantile(np.concatenate([p[:k], q[:k]]), np.linspace(0.05, 0.95, 91))
        above_q = 1 - np.searchsorted(np.sort(q[:k]), cuts) / k + 1e-3
        above_p = 1 - np.searchsorted(np.sort(p[:k]), cuts) / k + 1e-3
        cut = cuts[int(np.argmax(np.log(above_q) - np.log(above_p)))]
        tp, fp = int(np.sum(q[k:] >= cut)), int(np.sum(p[k:] >= cut))
        rest = len(p) - k
        count = AttackResults(FN=rest - tp, FP=fp, TN=rest - fp, TP=tp)
        return compute_eps_lo(count, 0.0, GAMMA, method)

    return {
        f"privacy-estimates, {method}": partial(bound, method) for method in ("beta", "jeffreys")
    }


def peak() -> float:
    """Peak resident memory of this process so far, in MB; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def main() -> None:
    """Bounds of every run; of the last, seconds of each method and memory above the idle process."""
    data = np.load(sys.argv[1])
    bounds: list[dict[str, float]] = []
    seconds: dict[str, float] = {}
    memory: dict[str, float] = {}
    idle = peak()
    for seed, (p, q) in enumerate(zip(data["p"], data["q"], strict=True)):
        found = {}
        for methods in (estimates_methods(p, q), jax_methods(p, q, seed)):
            for name, method in methods.items():
                start = time.perf_counter()
                found[name] = float(method())
                seconds[name] = time.perf_counter() - start
            memory.setdefault(name.split(",")[0], peak() - idle)
        bounds.append(found)
    print(json.dumps({"bounds": bounds, "seconds": seconds, "memory": memory}))


if __name__ == "__main__":
    main()
