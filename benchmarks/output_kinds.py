"""What an audit of raw outputs certifies, for every kind of output, against one hand-made feature.

    python -m benchmarks.output_kinds --n 4000
    python -m benchmarks.output_kinds --n 1000 --only set_of_keys,image_patch
    python -m benchmarks.output_kinds --n 1000 --twins --seeds 5

The ratio of the two bounds says how much of a leak is lost because nobody named the feature. With
`--twins`, the correct twins are audited at confidence .95 and their violations counted.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from scipy.stats import binom

import benchmarks.output_kinds_arrays
import benchmarks.output_kinds_objects
import benchmarks.output_kinds_relations
import benchmarks.output_kinds_tables
import benchmarks.output_kinds_values  # noqa: F401  all five register their kinds
import dpassay as dp
from benchmarks.output_kinds_base import KINDS, Kind

CLAIM = "eps=1"
QUIET = dp.Sampling(progress=False)


def certified(mechanism: Any, pair: Any, n: int, confidence: float, seed: int) -> dp.Verdict:
    """The verdict on the claim ε = 1."""
    options: dict[str, Any] = {"n": n, "confidence": confidence, "rng": seed, "sampling": QUIET}
    verdict = dp.audit(mechanism, dp.Pair(*pair), CLAIM, **options)
    assert isinstance(verdict, dp.Verdict)
    return verdict


def attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """What the work returns, or the class of the exception that it raised."""
    try:
        return work(), ""
    except Exception as error:  # an output that cannot be read is a result of the benchmark
        return None, type(error).__name__


def compare(kind: Kind, n: int, seed: int = 7) -> float:
    """Print the bound from raw outputs beside that from the feature; return their ratio."""
    start = time.perf_counter()
    raw, error = attempt(
        lambda: certified(kind.release(True), kind.pair, n, 0.999, seed).lower_bound
    )
    seconds = time.perf_counter() - start
    feature = certified(kind.reduced(True), kind.pair, n, 0.999, seed).lower_bound
    ratio = (raw or 0.0) / feature
    shown = error or f"{raw:.2f}"
    mark = " (needs knowledge)" if kind.needs_knowledge else ""
    print(
        f"{kind.name:24} {shown:>20} {feature:7.2f} {ratio:6.2f} {seconds:7.1f} s{mark}", flush=True
    )
    return ratio


def leaks(kinds: Sequence[Kind], n: int) -> None:
    """The table of all kinds, and the share of kinds of which most of the leak is found."""
    print(f"{'kind':24} {'raw outputs':>20} {'feature':>7} {'ratio':>6} {'time':>9}")
    ratios = {kind.name: compare(kind, n) for kind in kinds}
    judged = [ratios[kind.name] for kind in kinds if not kind.needs_knowledge]
    for least in (0.8, 0.7):
        enough = sum(ratio >= least for ratio in judged)
        print(f"ratio ≥ {least}: {enough} of {len(judged)} ({enough / max(len(judged), 1):.0%})")


def twins(mechanisms: Sequence[tuple[str, Any, Any]], n: int, seeds: int) -> int:
    """Count the correct twins that are called violations, against the exact binomial limits.

    Each of `mechanisms` is a name, a mechanism that keeps the claim, and a pair. The number of levels at
    which there are too many is returned.
    """
    p_values: list[float] = []
    for name, mechanism, pair in mechanisms:
        found = [
            attempt(lambda seed=seed: certified(mechanism, pair, n, 0.95, seed).p_value)  # type: ignore[misc]  # noqa: B023
            for seed in range(seeds)
        ]
        own = [p for p, error in found if not error]
        p_values += own
        errors = {error for _, error in found if error}
        text = f"{sum(p <= 0.05 for p in own)} of {len(own)} violations" if own else ""
        print(f"{name:24} {text} {' '.join(errors)}", flush=True)
    above = 0
    for gamma in (0.05, 0.001):
        wrong = sum(p <= gamma for p in p_values)
        limit = int(binom.ppf(0.999, max(len(p_values), 1), gamma))
        above += wrong > limit
        verdict = "ok" if wrong <= limit else "TOO MANY"
        print(f"γ = {gamma}: {wrong} of {len(p_values)} violations (limit {limit}): {verdict}")
    return above


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--n", type=int, default=4000, help="draws per side")
    parser.add_argument("--only", default="", help="names of kinds, separated by commas")
    parser.add_argument("--twins", action="store_true", help="audit the correct twins")
    parser.add_argument("--seeds", type=int, default=5, help="audits of each twin")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else list(KINDS)
    unknown = set(names) - set(KINDS)
    if unknown:
        parser.error(f"unknown kinds {sorted(unknown)}; there are {', '.join(KINDS)}")
    warnings.simplefilter("ignore")
    kinds = [KINDS[name] for name in names]
    if options.twins:
        cases = [(kind.name, kind.release(False), kind.pair) for kind in kinds]
        return twins(cases, options.n, options.seeds)
    leaks(kinds, options.n)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
