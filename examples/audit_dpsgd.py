"""What the models kept by `examples.run_dpsgd` show: tables of certified ε and of faults found.

    python -m examples.audit_dpsgd scores --out tables

Privacy is that of DP-SGD with Poisson batches, by dp-accounting's privacy loss distributions. Where one
canary replaces another the accountant is asked about replacement: its ε at δ is larger than the one for
adding or removing an example, which training libraries report.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dpassay as dp
from examples import cifar
from examples.cifar import Array

DELTA = 1e-3
#: How the tables call what is seen of a model.
SEEN = {
    "CE": "loss on the canaries",
    "logits": "all logits on the canaries",
    "along": "final weights, along the canary",
    "losses": "all updates, the others' batches",
}
#: Noise multipliers that are tried, as multiples of the run's, the strongest claim first.
_TIMES = (
    *(64.0, 32.0, 16.0, 12.0, 8.0, 6.0, 5.0, 4.0, 3.5, 3.0, 2.5, 2.2, 2.0, 1.8, 1.6, 1.5, 1.4),
    *(1.3, 1.25, 1.2, 1.16, 1.13, 1.1, 1.08, 1.06, 1.05, 1.04, 1.03, 1.02, 1.01, 1.0),
)
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Scores:
    """What one run kept: arrays [models, marks, …] by name, a pair of them each."""

    about: Row
    columns: dict[str, tuple[Array, Array]]

    @property
    def models(self) -> int:
        """Models a side."""
        return int(self.about["models"])

    @property
    def steps(self) -> list[int]:
        """After how many steps something was kept."""
        return list(self.about["steps"])

    def at(self, name: str, mark: int, n: int | None = None) -> tuple[Array, Array]:
        """A score of the first n models a side, at a mark: a number or a row a model.

        A kept column, a score of `cifar.scores`, or "first" and one of `cifar.first_scores`.
        """
        if name in self.columns:
            first, second = (side[:n, mark] for side in self.columns[name])
            return first, second
        logits = [side[:n, mark] for side in self.columns["logits"]]
        labels = tuple(self.about["canary_labels"])
        made = []
        for side in logits:
            alone = cifar.first_scores(side, labels[0])
            known = cifar.scores(side, labels) | {f"first {key}": v for key, v in alone.items()}
            made.append(known[name])
        return made[0], made[1]

    def samples(self, name: str, mark: int, n: int | None = None) -> dp.Samples:
        """The same for an audit."""
        first, second = (side.reshape(len(side), -1) for side in self.at(name, mark, n))
        seen = (_varying(first, second),) if name == "logits" else ()
        for columns in seen:
            first, second = first[:, columns], second[:, columns]
        if first.shape[1] == 1:
            first, second = first[:, 0], second[:, 0]
        return dp.from_samples(first.astype(float), second.astype(float), rng=0)


def _varying(first: Array, second: Array) -> Array:
    """Columns that are no copies of earlier ones: two canaries may be one image."""
    both = np.concatenate([first, second])
    _, columns = np.unique(both, axis=1, return_index=True)
    return np.sort(columns)


def load(path: str | Path) -> Scores:
    """A file of `examples.run_dpsgd`; nothing is unpickled."""
    with np.load(path, allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        names = [name[:-2] for name in file.files if name.endswith("_0")]
        return Scores(about, {name: (file[f"{name}_0"], file[f"{name}_1"]) for name in names})


def save(path: str | Path, scores: Scores) -> None:
    """Write a file that `load` reads."""
    kept: dict[str, Any] = {"about": np.array(json.dumps(scores.about))}
    for name, sides in scores.columns.items():
        kept |= {f"{name}_0": sides[0], f"{name}_1": sides[1]}
    np.savez_compressed(path, **kept)


@cache
def accountant(steps: int, rate: float, noise: float, replaced: bool) -> Any:
    """The privacy loss distribution of so many steps, rounded up."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    relations = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
    one = privacy_loss_distribution.from_gaussian_mechanism(
        noise,
        sampling_prob=rate,
        neighboring_relation=relations[replaced],
        value_discretization_interval=1e-3,
    )
    return one.self_compose(steps)


def accounted(about: Row, steps: int, *, replaced: bool | None = None) -> Any:
    """The accountant's answer for a run's settings, as they should be: without its fault."""
    how = about["training"]
    replaced = not how["removed"] if replaced is None else replaced
    return accountant(steps, how["rate"], how["noise"], replaced)


def claimed(about: Row, steps: int, times: float = 1.0) -> dp.TradeoffDP:
    """The claim an accountant makes for a run: the whole trade-off curve, with more noise or less."""
    how = about["training"]
    return _claim(steps, how["rate"], how["noise"] * times, not how["removed"])


@cache
def _claim(steps: int, rate: float, noise: float, replaced: bool) -> dp.TradeoffDP:
    found = accountant(steps, rate, noise, replaced)
    return dp.TradeoffDP.from_delta(found.get_delta_for_epsilon)


def fitted_mu(curve: dp.TradeoffCurve) -> float:
    """The Gaussian trade-off curve nearest to an estimated one in ℓ₁ distance, by its μ."""
    from scipy.optimize import minimize_scalar

    alpha = np.linspace(0.0, 1.0, 1001)
    seen = np.asarray(curve(alpha))

    def distance(mu: float) -> float:
        return float(np.abs(dp.GaussianDP(mu).tradeoff(alpha) - seen).mean())

    return float(minimize_scalar(distance, bounds=(0.0, 12.0), method="bounded").x)


def epsilon_of(mu: float, delta: float = DELTA) -> float:
    """The ε at which μ-GDP has this δ."""
    from scipy.optimize import brentq

    claim = dp.GaussianDP(mu)
    if claim.delta_at(0.0) <= delta:
        return 0.0
    return float(brentq(lambda e: float(claim.delta_at(e)) - delta, 0.0, mu * (mu + 20)))


def estimated(samples: dp.Samples) -> tuple[dp.TradeoffCurve, float]:
    """The paper's empirical ε: estimated curve, nearest Gaussian one, its ε. No bound."""
    curve = dp.tradeoff.estimate(samples, confidence=None)
    return curve, epsilon_of(fitted_mu(curve))


def certified(samples: dp.Samples) -> float:
    """ε at δ that 95 of 100 such audits rightly call a lower bound."""
    found = dp.bound(samples, of=f"eps, delta={DELTA:g}", loss="values", rng=0)
    return float(found.value)


def noise_limit(scores: Scores, name: str, mark: int) -> float | None:
    """The least noise multiplier whose accountant's curve is refuted at 95 %; None if none is.

    The claims are tried from the strongest on, down to the first that stands. Claims at or below the true
    noise are true, so that going too far needs a wrong refutation of the first of them: once, at 5 %.
    """
    least = None
    for times in _TIMES:
        claim = claimed(scores.about, scores.steps[mark], times)
        verdict = dp.audit(scores.samples(name, mark), claim=claim, loss="values", rng=0)
        if not verdict.violated:
            break
        least = scores.about["training"]["noise"] * times
    return least


@cache
def most(n: int) -> float:
    """What n models a side could certify if no output of one side ever came from the other."""
    test = n - round(0.25 * n)  # the rest learns
    claim = dp.ApproximateDP(0.0, DELTA)
    return float(dp.audit_counts(test, test, 0, test, claim, likelier="first").lower_bound)


def bounds(scores: Scores, marks: Iterable[int] | None = None) -> list[Row]:
    """Certified ε beside the accountant's, for everything that is seen of a model."""
    rows = []
    how = scores.about["training"]
    names = [name for name in ("CE", "logits") if "logits" in scores.columns]
    names += ["along"] * (how["canary"] == "gradient") + ["losses"]
    for mark in range(len(scores.steps)) if marks is None else marks:
        steps = scores.steps[mark]
        for name in names:
            samples = scores.samples(name, mark)
            row: Row = {
                "run": scores.about["run"],
                "seen": SEEN[name],
                "models a side": scores.models,
                "epochs": steps * how["rate"],
                "accountant's ε": accounted(scores.about, steps).get_epsilon_for_delta(DELTA),
                "paper's estimate": None,
            }
            if name != "logits":  # a curve needs one number a model
                row["paper's estimate"] = estimated(scores.samples(name, mark))[1]
            row |= {"certified": certified(samples), "n can show": most(scores.models)}
            rows.append(row | {"noise ≤": noise_limit(scores, name, mark)})
    return rows


def faults(scores: Scores, sizes: Sequence[int], marks: Iterable[int] | None = None) -> list[Row]:
    """Verdicts on the accountant's curve with more and more models, at 95 % all together."""
    rows = []
    confidence = 1 - 0.05 / len(sizes)
    how = scores.about["training"]
    for mark in range(len(scores.steps)) if marks is None else marks:
        claim = claimed(scores.about, scores.steps[mark])
        for n in [n for n in sizes if n <= scores.models]:
            samples = scores.samples("losses", mark, n)
            try:
                verdict = dp.audit(
                    samples, claim=claim, confidence=confidence, loss="values", rng=0
                )
            except dp.errors.NotEnoughDraws:
                continue  # so few models cannot refute this claim, whatever they are
            rows.append(
                {
                    "run": scores.about["run"],
                    "fault": how["fault"] or "none",
                    "epochs": scores.steps[mark] * how["rate"],
                    "models a side": n,
                    "violated": bool(verdict.violated),
                    "p": float(verdict.p_value),
                }
            )
    return rows


def models_needed(scores: Scores, mark: int) -> int | None:
    """Models a side until a monitor, at 95 %, refuted the accountant's curve; None if it did not."""
    claim = claimed(scores.about, scores.steps[mark])
    verdict = dp.monitor(scores.samples("losses", mark), claim=claim, rng=0)
    return verdict.draws if verdict.violated else None


def table(rows: Sequence[Row]) -> str:
    """Rows as Markdown."""
    names = list(rows[0])
    text = "| " + " | ".join(names) + " |\n" + "| --- " * len(names) + "|\n"
    for row in rows:
        cells = [
            "" if v is None else f"{v:.3g}" if isinstance(v, float) else str(v)
            for v in row.values()
        ]
        text += "| " + " | ".join(cells) + " |\n"
    return text


def folder(path: Path) -> dict[str, Scores]:
    """Every run that was kept in a folder, by name."""
    return {file.stem: load(file) for file in sorted(path.glob("*.npz"))}


def main() -> None:
    """Read every file of a folder, and write both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scores", type=Path, help="the folder of examples.run_dpsgd")
    parser.add_argument("--out", type=Path, help="a folder; without it the tables are printed")
    parser.add_argument("--sizes", default="125,250,500,1000,2000,5000,10000")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    runs = folder(given.scores)
    if not runs:
        parser.error(f"{given.scores} has no .npz file: make some with examples.run_dpsgd")
    whole = [r for s in runs.values() if not s.about["training"]["fault"] for r in bounds(s)]
    found = [r for name, s in runs.items() if name.startswith("tiny") for r in faults(s, sizes)]
    for name, rows in (("bounds", whole), ("faults", found)):
        if not rows:
            continue
        print(table(rows))
        if given.out:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / f"dpsgd-{name}.md").write_text(table(rows))
            (given.out / f"dpsgd-{name}.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
