"""Small pipelines with a bug planted in each, and the same without it: what `dpassay.hunt` has to find.

Every pipeline adds noise that is rounded to a grid of about a thousandth of its scale, so that nothing
but the bug leaks. The bugs are of the kinds that occur in released libraries.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpassay import inputs

Rng = np.random.Generator
EPSILON, DELTA = 1.0, 1e-5


@dataclass(frozen=True)
class Planted:
    """A bug: where it shows, the pipeline with it and without it, and what is claimed of both."""

    name: str
    broken: Callable[[Any, int, Rng], Any]
    fixed: Callable[[Any, int, Rng], Any]
    space: Any
    relation: str = "replace"
    claim: str = f"eps={EPSILON:g}"
    options: dict[str, Any] = field(default_factory=dict)


def noisy(value: float, scale: float, size: int, rng: Rng) -> Any:
    """Laplace noise of a scale, rounded to a grid a thousandth as wide."""
    grid = 2.0 ** math.floor(math.log2(scale) - 10)
    return np.round((value + rng.laplace(scale=scale, size=size)) / grid) * grid


def twice(make: Callable[[bool], Callable[[Any, int, Rng], Any]]) -> tuple[Any, Any]:
    """A pipeline with its bug and without."""
    return make(True), make(False)


def nan_sum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        kept = data if bug else np.nan_to_num(data, nan=0.0)
        return noisy(float(np.clip(kept, 0.0, 1.0).sum()), 1 / EPSILON, size, rng)

    return run


def wrapping_sum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        total = data.astype(np.int32).sum(dtype=np.int32) if bug else data.sum(dtype=np.int64)
        return noisy(float(total), (2**31 - 1) / EPSILON, size, rng)

    return run


def wrapping_sum_64(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        total = data.sum() if bug else math.fsum(map(int, data))
        return noisy(float(total), 2.0**62 / EPSILON, size, rng)

    return run


def float32_sum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        kind = np.float32 if bug else np.float64
        total = np.cumsum(data.astype(kind), dtype=kind)[-1]  # one after the other
        return noisy(float(total) - 1e7 * len(data), 10 / EPSILON, size, rng)

    return run


def clamp_after_sum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        if bug:
            total = float(np.clip(data.sum(), 0.0, len(data)))
        else:
            total = float(np.clip(data, 0.0, 1.0).sum())
        return noisy(total / len(data), 1 / len(data) / EPSILON, size, rng)

    return run


def second_moment(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        change = (
            1.0 if bug else 1001.0**2 - 1000.0**2
        )  # (high − low)² is that of a variance around 0
        return noisy(float(np.mean(data**2)), change / len(data) / EPSILON, size, rng)

    return run


def threshold(bug: bool) -> Any:
    least = 2.0 if bug else 1 + math.log(1 / (2 * DELTA)) / EPSILON

    def run(data: Any, size: int, rng: Rng) -> Any:
        out: list[dict[str, float]] = [{} for _ in range(size)]
        for key, count in data.items():
            for k, value in enumerate(noisy(float(count), 1 / EPSILON, size, rng).tolist()):
                if value >= least:
                    out[k][key] = value
        return out

    return run


def class_sums(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        names = sorted({row["class"] for row in data}) if bug else ["a", "b", "c"]
        sums = {}
        for name in names:
            total = sum(row["value"] for row in data if row["class"] == name)
            sums[name] = noisy(total, 2 / EPSILON, size, rng).tolist()
        return [{name: sums[name][k] for name in names} for k in range(size)]

    return run


def weighted_sum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        most = math.inf if bug else 1.0
        total = sum(min(max(r["value"], 0.0), 1.0) * min(r["weight"], most) for r in data)
        return noisy(total, 1 / EPSILON, size, rng)

    return run


def normalised_keys(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        merged: dict[str, int] = {}
        for key, count in data.items():
            plain = unicodedata.normalize("NFC", key)
            merged[plain] = count if bug else merged.get(plain, 0) + count
        return noisy(float(sum(merged.values())), 1 / EPSILON, size, rng)

    return run


def empty_sum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        if bug and len(data) == 0:
            return np.zeros(size)
        return noisy(float(np.clip(data, 0.0, 1.0).sum()), 1 / EPSILON, size, rng)

    return run


def raising_count(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        if bug and len(data) < 2:
            raise ValueError("at least two rows are needed")
        return noisy(float(len(data)), 1 / EPSILON, size, rng)

    return run


def distinct_mean(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        kept = np.unique(data) if bug else data
        return noisy(float(kept.mean()), 1 / len(data) / EPSILON, size, rng)

    return run


def large_integer(bug: bool) -> Any:
    def run(value: int, size: int, rng: Rng) -> Any:
        p = 1 - math.exp(-EPSILON)
        noise = rng.geometric(p, size) - rng.geometric(p, size)
        return (int(float(value)) if bug else value) + noise

    return run


def median(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        scale = 1 / len(data) if bug else 1.0  # that of a mean
        return noisy(float(np.median(data)), scale / EPSILON, size, rng)

    return run


def slope(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        x, y = (np.array([row[name] for row in data]) for name in "xy")
        if bug:  # as if the spread of x were known
            spread = float(((x - x.mean()) ** 2).sum())
            found = float(((x - x.mean()) * (y - y.mean())).sum()) / (spread or 1.0)
            return noisy(found, 2 / len(data) / EPSILON, size, rng)
        return np.stack(
            [
                noisy(float(total), 2 / EPSILON, size, rng)
                for total in ((x * y).sum(), (x * x).sum())
            ],
            axis=1,
        )

    return run


def visits(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        seen = len(data) if bug else len({row["user"] for row in data})
        return noisy(float(seen), 1 / EPSILON, size, rng)

    return run


def log_sum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        least = 0.0 if bug else math.exp(-5)
        with np.errstate(divide="ignore"):
            total = float(np.log(np.clip(data, least, 1.0)).sum())
        return noisy(total, 5 / EPSILON, size, rng)

    return run


def clipped_vector(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        total = 0.0
        for value in data if bug else np.nan_to_num(data, nan=0.0):
            factor = min(1.0, 1 / abs(value)) if value else 1.0  # times ∞ is NaN
            total += value * factor if bug else float(np.clip(value, -1.0, 1.0))
        return noisy(total, 2 / EPSILON, size, rng)

    return run


def bugs() -> list[Planted]:
    """Every bug, in the order of the catalogue."""
    classes = inputs.Category(["a", "b", "c"])
    unit = inputs.Real(0, 1)
    words = inputs.Text(longest=12)
    approximate = f"eps={EPSILON:g}, delta={DELTA:g}"
    return [
        Planted(
            "NaN passes the clamp", *twice(nan_sum), inputs.Reals(0, 1, 10),
            options={"outside": True},
        ),
        Planted(
            "∞ becomes NaN in clipping", *twice(clipped_vector), inputs.Reals(-1, 1, 10),
            options={"outside": True},
        ),
        Planted(
            "an int32 sum wraps around", *twice(wrapping_sum), inputs.Integers(0, 2**31 - 1, (1, 20))
        ),
        Planted(
            "an int64 sum wraps around", *twice(wrapping_sum_64), inputs.Integers(0, 2**62, (1, 20))
        ),
        Planted(
            "float32 accumulates far from zero", *twice(float32_sum),
            inputs.Reals(1e7, 1e7 + 10, (1, 20)),
        ),
        Planted("clamped after the sum", *twice(clamp_after_sum), inputs.Reals(-100, 100, 10)),
        Planted(
            "sensitivity for bounds around zero", *twice(second_moment),
            inputs.Reals(1000, 1001, 10),
        ),
        Planted(
            "threshold for keys that forgets δ", *twice(threshold), inputs.Counts(words),
            "add_remove", approximate,
        ),
        Planted(
            "only classes that occur are released", *twice(class_sums),
            inputs.Table({"class": classes, "value": unit}, (0, 20)),
        ),
        Planted(
            "a weight that nobody clamps", *twice(weighted_sum),
            inputs.Table({"value": unit, "weight": inputs.Real(0, 10)}, (0, 20)), "add_remove",
        ),
        Planted(
            "keys collide after normalisation", *twice(normalised_keys), inputs.Counts(words),
            "add_remove",
        ),
        Planted(
            "empty data get no noise", *twice(empty_sum), inputs.Reals(0, 1, (0, 20)), "add_remove"
        ),
        Planted(
            "an exception below two rows", *twice(raising_count), inputs.Reals(0, 1, (0, 20)),
            "add_remove",
        ),
        Planted("duplicates are dropped", *twice(distinct_mean), inputs.Reals(0, 1, 10)),
        Planted(
            "integers beyond 2⁵³ pass through a double", *twice(large_integer),
            inputs.Integer(0, 2**60), "query",
        ),
        Planted("a median with the noise of a mean", *twice(median), inputs.Reals(0, 1, 9)),
        Planted(
            "a slope with the noise of a mean", *twice(slope),
            inputs.Table({"x": unit, "y": unit}, 10),
        ),
        Planted(
            "rows are counted, not users", *twice(visits),
            inputs.Table({"user": inputs.Integer(0, 9), "page": classes}, (0, 20)), "user",
            options={"user": "user"},
        ),
        Planted("log of zero", *twice(log_sum), inputs.Reals(0, 1, (1, 20))),
    ]  # fmt: skip
