"""Other auditors on the same scores; run by the interpreter of their own environment (`make peers`).

Reads a .npz file with `p` and `q`, one row a run, and prints the ε bounds of each method as JSON. Imports
nothing of dpassay.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

GAMMA = 0.05


def jax_bounds(p: Any, q: Any, seed: int) -> dict[str, float]:
    """jax-privacy's auditor; the second input scores higher."""
    from jax_privacy import auditing

    auditor = auditing.CanaryScoreAuditor(q, p)
    split = auditing.Split(0.25, seed=seed)
    several = auditing.MultiSplit(20, 0.25, seed=seed)
    return {
        "jax-privacy, Clopper–Pearson, all thresholds": auditor.epsilon_clopper_pearson(GAMMA),
        "jax-privacy, Clopper–Pearson, split": auditor.epsilon_clopper_pearson(
            GAMMA, threshold_strategy=split
        ),
        "jax-privacy, Clopper–Pearson, 20 splits": auditor.epsilon_clopper_pearson(
            GAMMA, threshold_strategy=several
        ),
        "jax-privacy, ε from GDP at δ = 10⁻⁵": auditor.epsilon_from_gdp(GAMMA, 1e-5),
    }


def estimates_bounds(p: Any, q: Any) -> dict[str, float]:
    """privacy-estimates on the counts of a threshold found with a quarter of the draws."""
    from privacy_estimates import AttackResults, compute_eps_lo

    k = len(p) // 4
    cuts = np.quantile(np.concatenate([p[:k], q[:k]]), np.linspace(0.05, 0.95, 91))
    above_q = np.mean(q[:k, None] >= cuts, axis=0) + 1e-3
    above_p = np.mean(p[:k, None] >= cuts, axis=0) + 1e-3
    cut = cuts[int(np.argmax(np.log(above_q) - np.log(above_p)))]
    tp, fp = int(np.sum(q[k:] >= cut)), int(np.sum(p[k:] >= cut))
    rest = len(p) - k
    count = AttackResults(FN=rest - tp, FP=fp, TN=rest - fp, TP=tp)
    return {
        f"privacy-estimates, {method}": compute_eps_lo(count, 0.0, GAMMA, method)
        for method in ("beta", "jeffreys")
    }


def main() -> None:
    """One dictionary a run."""
    data = np.load(sys.argv[1])
    out = []
    for seed, (p, q) in enumerate(zip(data["p"], data["q"], strict=True)):
        found = jax_bounds(p, q, seed) | estimates_bounds(p, q)
        out.append({name: float(value) for name, value in found.items()})
    print(json.dumps(out))


if __name__ == "__main__":
    main()
