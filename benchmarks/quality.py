"""Quality side by side: our audit, the papers' methods and what else is used, at equal total budget."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.audits import matrix_cells
from benchmarks.harness import compare, peak_memory
from benchmarks.parallel import runs
from dpassay.bounds import clopper_pearson

zoo = dp.zoo
GAMMA = 0.05
UNIT = (0.0, 1.0)
#: The interpreter of the environment other auditors live in.
PEERS = Path(__file__).parents[1] / ".peers" / "bin" / "python"


@dataclass(frozen=True)
class Setting:
    """A truth, a claim, and a budget of draws a side."""

    name: str
    mechanism: Any
    pair: Any
    epsilon: float
    n: int
    true: bool  # whether the claim holds


def settings() -> list[Setting]:
    """Claims that hold, where a method should stay silent, and claims that do not."""
    laplace = zoo.Laplace()
    return [
        Setting("P = Q, claim ε = 0", laplace, (0.0, 0.0), 0.0, 1000, True),
        Setting("Laplace ε = 1, claim 1", laplace, UNIT, 1.0, 1000, True),
        Setting("Laplace ε = 1, claim 0.5", laplace, UNIT, 0.5, 400, False),
        Setting("Laplace ε = 1, claim 0.75", laplace, UNIT, 0.75, 1800, False),
        Setting("Laplace ε = 1, claim 0.9", laplace, UNIT, 0.9, 12_000, False),
    ]


def scores(setting: Setting, seed: int) -> tuple[Any, Any]:
    """The outputs themselves; on a line every method can rank by them."""
    samples = dp.draw(setting.mechanism, setting.pair, n=setting.n, rng=seed)
    return samples.p.numbers[:, 0], samples.q.numbers[:, 0]


def ours(setting: Setting, seed: int) -> float:
    """`dp.audit`: the certified ε."""
    claim = dp.PureDP(setting.epsilon)
    return float(
        dp.audit(setting.mechanism, setting.pair, claim, n=setting.n, rng=seed).lower_bound
    )


def mpl(setting: Setting, seed: int) -> float:
    """The MPL bound of paper 000, asymptotic."""
    return dp.pure.lower_bound(setting.mechanism, setting.pair, n=setting.n, rng=seed).value


def _split(setting: Setting, seed: int) -> tuple[int, int, int]:
    """Half finds the threshold with the largest empirical ratio, the other half counts."""
    p, q = scores(setting, seed)
    half = setting.n // 2
    cuts = np.quantile(np.concatenate([p[:half], q[:half]]), np.linspace(0.05, 0.95, 91))
    below_p = np.searchsorted(np.sort(p[:half]), cuts) / half
    below_q = np.searchsorted(np.sort(q[:half]), cuts) / half
    cut = cuts[int(np.argmax(np.log(below_p + 1e-3) - np.log(below_q + 1e-3)))]
    rest = setting.n - half
    return int(np.sum(p[half:] < cut)), int(np.sum(q[half:] < cut)), rest


def clopper(setting: Setting, seed: int) -> float:
    """Clopper–Pearson limits of both rates, half the error each."""
    i, j, n = _split(setting, seed)
    low, high = clopper_pearson.lower(i, n, GAMMA / 2), clopper_pearson.upper(j, n, GAMMA / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def hoeffding(setting: Setting, seed: int) -> float:
    """Hoeffding limits, as BayBox (paper 004) has them."""
    i, j, n = _split(setting, seed)
    width = math.sqrt(math.log(4 / GAMMA) / (2 * n))
    low, high = i / n - width, j / n + width
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def without_split(setting: Setting, seed: int) -> float:
    """Clopper–Pearson at the best of all thresholds of the same draws: the common mistake."""
    p, q = (np.sort(s) for s in scores(setting, seed))
    cuts = np.concatenate([p, q])
    best = 0.0
    for a, b in ((p, q), (-q[::-1], -p[::-1])):
        points = cuts if a is p else -cuts
        i, j = np.searchsorted(a, points, side="right"), np.searchsorted(b, points, side="right")
        low = clopper_pearson.lower(i, a.size, GAMMA / 2)
        high = clopper_pearson.upper(j, b.size, GAMMA / 2)
        with np.errstate(divide="ignore"):
            best = max(best, float(np.max(np.log(low) - np.log(high))))
    return best


METHODS: dict[str, Callable[[Setting, int], float]] = {
    "dp.audit": ours,
    "MPL (paper 000, asymptotic)": mpl,
    "Hoeffding box (paper 004)": hoeffding,
    "Clopper–Pearson box": clopper,
    "Clopper–Pearson, threshold not held out": without_split,
}


def one(seed: int, method: str, index: int) -> float:
    """The ε a method certifies."""
    return METHODS[method](settings()[index], seed)


def rates(count: int) -> list[list[str]]:
    """A row a method, a column a setting: how often the claim is refuted, and the median bound."""
    rows = []
    for method in METHODS:
        row = [method]
        for index, setting in enumerate(settings()):
            found = runs(one, range(count), method, index, label=f"{method} {index}")
            row.append(_cell(found, setting))
        rows.append(row)
    return rows + peers(count)


def _cell(bounds: list[float], setting: Setting) -> str:
    return f"{np.mean(np.array(bounds) > setting.epsilon):.3f} ({np.median(bounds):.2f})"


def peers(count: int) -> list[list[str]]:
    """The same for other auditors, where `make peers` has installed them."""
    table: dict[str, list[str]] = {}
    for setting in settings() if PEERS.exists() else ():
        drawn = [scores(setting, seed) for seed in range(count)]
        bounds = _ask_peers(drawn)["bounds"]
        for name in bounds[0]:
            table.setdefault(name, []).append(_cell([run[name] for run in bounds], setting))
    return [[name, *cells] for name, cells in table.items()]


def _ask_peers(drawn: list[tuple[Any, Any]]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npz"
        np.savez(file, p=np.array([p for p, _ in drawn]), q=np.array([q for _, q in drawn]))
        done = subprocess.run(
            [str(PEERS), str(Path(__file__).parent / "peers.py"), str(file)],
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def peer_costs(sizes: tuple[int, ...]) -> list[list[str]]:
    """Seconds a bound and peak memory, ours and others', from the same scores already drawn."""
    rows = []
    for n in sizes:
        setting = Setting("Laplace", zoo.Laplace(), UNIT, 0.9, n, False)
        drawn = scores(setting, 0)

        def ours(drawn: Any = drawn) -> Any:
            return dp.audit(dp.from_samples(*drawn), claim=dp.PureDP(0.9))

        [timing] = compare({"dp.audit": ours}, repeats=5)
        memory = f"{peak_memory(ours):.0f}"
        rows.append(["dp.audit, from samples", f"{n:,}", f"{timing.median:.3f}", memory])
        if PEERS.exists():
            found = _ask_peers([drawn] * 3)
            for name, seconds in found["seconds"].items():
                memory = f"{found['memory'][name.split(',')[0]]:.0f}"
                rows.append([name, f"{n:,}", f"{seconds:.3f}", memory])
    return rows


# --- the detection matrix: the papers' own methods on the mechanisms that break


def _by_audit(mechanism: Any, pair: Any, epsilon: float, n: int, seed: int) -> bool:
    return bool(dp.audit(mechanism, pair, dp.PureDP(epsilon), n=n, rng=seed).violated)


def _by_mpl(mechanism: Any, pair: Any, epsilon: float, n: int, seed: int) -> bool:
    return dp.pure.lower_bound(mechanism, pair, n=n, rng=seed).value > epsilon


def _by_baybox(mechanism: Any, pair: Any, epsilon: float, n: int, seed: int) -> bool:
    part = n // 3
    return bool(
        dp.tradeoff.audit(
            mechanism,
            pair,
            dp.PureDP(epsilon),
            n_locate=part,
            n_test=part,
            box="hoeffding",
            rng=seed,
        ).violated
    )


def _by_eureka(mechanism: Any, pair: Any, epsilon: float, n: int, seed: int) -> bool | None:
    """δ̂(ε) above 0 by more than Corollary 2 allows for, where it applies."""
    found = dp.spectrum.estimate(
        mechanism, pair, epsilons=[epsilon], loss="knn", plug_in="counts", n=n, rng=seed
    )
    return None if found.accuracy is None else bool(found.y[0] > found.accuracy[0])


PAPERS: dict[str, Callable[[Any, Any, float, int, int], bool | None]] = {
    "dp.audit": _by_audit,
    "MPL (paper 000, asymptotic)": _by_mpl,
    "BayBox, Hoeffding (paper 004)": _by_baybox,
    "Eureka, Corollary 2 (paper 003)": _by_eureka,
}


@cache
def broken_and_twins() -> list[tuple[Any, Any, float, bool]]:
    """(mechanism, pair, claimed ε, whether it is broken): ε-DP, and outputs that every method takes."""
    other = (zoo.NumericalSVT, zoo.NoisyHistogram, zoo.RaisesOnOne, zoo.StringOnOne)
    return [
        (mechanism, pairs[0], claim.epsilon, broken)
        for mechanism, pairs, claim, broken in matrix_cells()
        if isinstance(claim, dp.PureDP) and not isinstance(mechanism, other)
    ]


def one_of_matrix(seed: int, method: str, index: int, n: int) -> bool | None:
    """Whether a method refutes a claim; None where it does not take such outputs."""
    mechanism, pair, epsilon, _ = broken_and_twins()[index]
    try:
        return PAPERS[method](mechanism, pair, epsilon, n, seed)
    except dp.errors.InvalidInput:
        return None


def matrix(count: int, n: int = 20_000) -> list[list[str]]:
    """A row a mechanism, a column a method: how often its claim is refuted at `n` draws a side."""
    rows = []
    for index, (mechanism, _, epsilon, broken) in enumerate(broken_and_twins()):
        row = [f"`{mechanism}`", f"{epsilon:g}", "broken" if broken else "correct"]
        for method in PAPERS:
            found = runs(one_of_matrix, range(count), method, index, n, label=str(mechanism))
            said = [one for one in found if one is not None]
            row.append(f"{np.mean(said):.2f}" if said else "does not apply")
        rows.append(row)
    return rows
