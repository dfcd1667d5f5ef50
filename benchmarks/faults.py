"""Faulty releases with their known causes: what a diagnosis has to name. Each has a correct twin.

The causes of these, of the planted bugs (`benchmarks.planted`) and of the violations of the gallery
(`libraries.results`) were written down before any diagnosis was run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.planted import noisy, twice

Rng = np.random.Generator
EPSILON = 1.0


@dataclass(frozen=True)
class Faulty:
    """A release with a fault and without, a pair on which it shows, the claim, and the known cause."""

    name: str
    broken: Callable[[Any, int, Rng], Any]
    fixed: Callable[[Any, int, Rng], Any]
    pair: tuple[Any, Any]
    cause: str  # a value of dpassay.Fault
    relation: str = "add_remove"
    claim: str = "eps=1"


def gridded(values: Any, scale: float) -> Any:
    """Numbers rounded to a grid of about a thousandth of a scale, which hides their low-order bits."""
    grid = 2.0 ** math.floor(math.log2(scale) - 10)
    return np.round(values / grid) * grid


def halved_noise(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        return noisy(float(len(data)), 0.5 if bug else 1.0, size, rng)

    return run


def halved_sigma(bug: bool) -> Any:
    sigma = math.sqrt(2 * math.log(1.25 / 0.01)) * (0.4 if bug else 1.0)

    def run(data: Any, size: int, rng: Rng) -> Any:
        return gridded(float(np.sum(data)) + rng.normal(scale=sigma, size=size), sigma)

    return run


def twice_epsilon(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        p = 1 - math.exp(-2.0 if bug else -1.0)
        return len(data) + rng.geometric(p, size) - rng.geometric(p, size)

    return run


def randomized_response(bug: bool) -> Any:
    def run(answer: int, size: int, rng: Rng) -> Any:
        keep = 1 / (1 + math.exp(-2.0 if bug else -1.0))
        return np.where(rng.random(size) < keep, answer, 1 - answer)

    return run


def histogram(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        counts = np.bincount(data, minlength=4)
        scale = 1.0 if bug else 2.0
        return np.stack([noisy(float(c), scale, size, rng) for c in counts], axis=1)

    return run


def three_statistics(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        values = np.clip(data, 0, 1)
        parts = (len(values), values.sum(), (values**2).sum())
        scale = 1.0 if bug else 3.0
        noise = [noisy(float(part), scale, size, rng) for part in parts]
        names = ("count", "sum", "squares")
        return [dict(zip(names, row, strict=True)) for row in np.stack(noise, axis=1).tolist()]

    return run


def one_column(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        totals = np.clip(data, 0, 1).sum(axis=0)
        scales = [5.0, 5.0, 0.5 if bug else 5.0, 5.0, 5.0]
        return np.stack(
            [noisy(float(t), s, size, rng) for t, s in zip(totals, scales, strict=True)], axis=1
        )

    return run


def exact_maximum(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        count = noisy(float(len(data)), 2.0, size, rng)
        top = np.full(size, float(max(data))) if bug else noisy(float(max(data)), 20.0, size, rng)
        return [{"count": c, "max": t} for c, t in zip(count.tolist(), top.tolist(), strict=True)]

    return run


def fixed_seed(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        if bug:
            return np.repeat(noisy(float(len(data)), 1.0, 1, np.random.default_rng(7)), size)
        return noisy(float(len(data)), 1.0, size, rng)

    return run


def range_of_data(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        width = float(np.max(data) - np.min(data)) if bug else 10.0
        return noisy(float(np.mean(data)), width / len(data), size, rng)

    return run


def local_sensitivity(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        x = np.sort(data)
        k = len(x) // 2
        local = max(x[k] - x[k - 1], x[k + 1] - x[k], 0.01)
        return noisy(float(x[k]), local if bug else 1.0, size, rng)

    return run


def reused_noise(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        counts = np.sum(np.asarray(data) == 0), np.sum(np.asarray(data) == 1)
        noise = noisy(0.0, 1.0, size, rng)
        other = noise if bug else noisy(0.0, 1.0, size, rng)
        return np.stack([counts[0] + noise, counts[1] + other], axis=1)

    return run


def bounded_noise(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        noise = rng.laplace(scale=1.0, size=size)
        while bug and np.any(np.abs(noise) > 3):
            far = np.abs(noise) > 3
            noise[far] = rng.laplace(scale=1.0, size=int(far.sum()))
        return gridded(len(data) + noise, 1.0)

    return run


def clamped_to_data(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        out = noisy(float(np.mean(data)), 1 / len(data), size, rng)
        return np.clip(out, np.min(data), np.max(data)) if bug else np.clip(out, 0.0, 1.0)

    return run


def observed_categories(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        names = sorted(set(data)) if bug else ["a", "b", "c", "d"]
        weights = np.exp([0.5 * sum(one == name for one in data) for name in names])
        return np.array(names, dtype=object)[
            rng.choice(len(names), size, p=weights / weights.sum())
        ]

    return run


def one_value_a_row(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        rows = [noisy(float(x), 1.0, size, rng) for x in data]
        if not bug:
            rows = [noisy(float(np.clip(data, 0, 1).sum()), 1.0, size, rng)]
        return [tuple(row) for row in np.stack(rows, axis=1).tolist()]

    return run


def order_of_counts(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        names = ["a", "b", "c"]
        true = [sum(one == name for one in data) for name in names]
        score = np.array(true, dtype=float) + (0.0 if bug else rng.gumbel(scale=4, size=(size, 3)))
        order = np.argsort(-np.broadcast_to(score, (size, 3)), axis=1, kind="stable")
        return [tuple(names[k] for k in row) for row in order.tolist()]

    return run


def missing_group(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        kept = [x for x in data if x < 5]
        if bug:
            with np.errstate(all="ignore"):
                mean = float(np.sum(kept) / np.float64(len(kept)))
        else:
            mean = float(np.sum(kept)) / max(len(kept), 1)
        return noisy(mean, 5.0, size, rng)

    return run


def plain_laplace(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        out = float(np.sum(data)) + rng.laplace(scale=1.0, size=size)
        return out if bug else gridded(out, 1.0)

    return run


def single_precision(bug: bool) -> Any:
    sigma = math.sqrt(2 * math.log(1.25 / 0.01))

    def run(data: Any, size: int, rng: Rng) -> Any:
        noise = rng.standard_normal(size, dtype=np.float32) * np.float32(sigma)
        out = np.float32(np.sum(data)) + noise
        return out.astype(float) if bug else gridded(out.astype(float), sigma)

    return run


def gaussian_for_laplace(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        if bug:
            return gridded(len(data) + rng.normal(scale=1.0, size=size), 1.0)
        return noisy(float(len(data)), 1.0, size, rng)

    return run


def low_threshold(bug: bool) -> Any:
    least = 1 + math.log(1 / (2 * 1e-3)) * (0.4 if bug else 1.0)

    def run(data: Any, size: int, rng: Rng) -> Any:
        out: list[dict[str, float]] = [{} for _ in range(size)]
        for key in sorted(set(data)):
            for k, value in enumerate(noisy(float(data.count(key)), 1.0, size, rng).tolist()):
                if value >= least:
                    out[k][key] = value
        return out

    return run


def unbounded_user(bug: bool) -> Any:
    def run(data: Any, size: int, rng: Rng) -> Any:
        most = math.inf if bug else 1.0
        return noisy(sum(min(x, most) for x in data), 1.0, size, rng)

    return run


# --- DP-SGD: what is seen is the update of a step, or the model after several

_GRADIENTS = np.array([[0.6, -0.3, 0.2, 0.1], [-0.4, 0.5, 0.1, -0.2], [0.2, 0.2, -0.5, 0.3]])
_CANARY = np.array([3.0, 4.0, 0.0, 0.0])


def sgd_step(fault: str) -> Any:
    """The noisy sum of clipped gradients of one step, clip 1, σ = 2."""

    def run(data: Any, size: int, rng: Rng) -> Any:
        rows = np.asarray(data, dtype=float).reshape(-1, 4)
        norm = np.linalg.norm(rows, axis=1, keepdims=True)
        clipped = rows / np.maximum(norm, 1.0)
        if fault == "not clipped":
            clipped = rows
        if fault == "a layer not clipped":  # the last two coordinates; the canary's are large there
            clipped = np.hstack([clipped[:, :2], rows[:, 2:]])
        total = clipped.sum(axis=0)
        sigma = 2.0 * (0.4 if fault == "noise too small" else 1.0)
        noise = rng.normal(scale=sigma, size=(size, 4))
        if fault == "the same noise in all coordinates":
            noise = np.repeat(noise[:, :1], 4, axis=1)
        if fault == "no noise on the bias":
            noise[:, 3] = 0.0
        return gridded(total + noise, sigma)

    return run


def faults() -> list[Faulty]:
    """Twenty-two faults with their causes."""
    ten, eleven = [0.5] * 10, [0.5] * 11
    votes = ["a"] * 5 + ["b"] * 5
    return [
        Faulty("a count with half the noise", *twice(halved_noise), (ten, eleven), "scale"),
        Faulty(
            "a sum with σ too small",
            *twice(halved_sigma),
            ([1.0], [1.0, 1.0]),
            "scale",
            claim="eps=1, delta=0.01",
        ),
        Faulty("discrete noise for 2ε", *twice(twice_epsilon), (ten, eleven), "scale"),
        Faulty(
            "randomized response at 2ε", *twice(randomized_response), (0, 1), "scale", "replace"
        ),
        Faulty(
            "a histogram for one bin, a record replaced",
            *twice(histogram),
            ([0, 1, 2, 3, 0], [0, 1, 2, 3, 1]),
            "composition",
            "replace",
        ),
        Faulty(
            "three statistics, each with all of ε",
            *twice(three_statistics),
            ([0.2, 0.4], [0.2, 0.4, 1.0]),
            "composition",
        ),
        Faulty(
            "one column of five with little noise",
            *twice(one_column),
            (np.zeros((3, 5)), np.vstack([np.zeros((3, 5)), np.ones((1, 5))])),
            "unprotected part",
        ),
        Faulty(
            "the maximum beside a noisy count",
            *twice(exact_maximum),
            ([1, 2, 9], [1, 2, 9, 12]),
            "no noise",
            claim="eps=1",
        ),
        Faulty("noise from a fixed seed", *twice(fixed_seed), (ten, eleven), "no noise"),
        Faulty(
            "noise scaled by the range of the data",
            *twice(range_of_data),
            ([4.0, 5.0, 5.0, 6.0], [4.0, 5.0, 5.0, 9.0]),
            "data-dependent scale",
            "replace",
        ),
        Faulty(
            "noise scaled by the local sensitivity",
            *twice(local_sensitivity),
            ([0.0, 0.4, 0.5, 0.6, 1.0], [0.0, 0.45, 0.5, 0.52, 1.0]),
            "data-dependent scale",
            "replace",
        ),
        Faulty(
            "one noise for two counts",
            *twice(reused_noise),
            ([0, 0, 1], [0, 0, 1, 1]),
            "dependence",
        ),
        Faulty("noise cut at three scales", *twice(bounded_noise), (ten, eleven), "support"),
        Faulty(
            "the output clamped to the range of the data",
            *twice(clamped_to_data),
            ([0.2, 0.4, 0.4, 0.5], [0.2, 0.4, 0.4, 0.9]),
            "support",
            "replace",
        ),
        Faulty(
            "categories taken from the data",
            *twice(observed_categories),
            (votes, [*votes, "d"]),
            "support",
        ),
        Faulty(
            "a number for every record",
            *twice(one_value_a_row),
            ([0.1, 0.2], [0.1, 0.2, 0.3]),
            "order or size",
        ),
        Faulty(
            "names in the order of their exact counts",
            *twice(order_of_counts),
            (["a", "a", "b", "b"], ["a", "a", "b", "b", "b"]),
            "order or size",
        ),
        Faulty(
            "the mean of no values", *twice(missing_group), ([7.0, 8.0], [7.0, 8.0, 1.0]), "failure"
        ),
        Faulty(
            "Laplace noise in doubles", *twice(plain_laplace), ([0.0], [0.0, 1.0]), "representation"
        ),
        Faulty(
            "Gaussian noise in single precision",
            *twice(single_precision),
            ([1.0], [1.0, 1.0]),
            "representation",
            claim="eps=1, delta=0.01",
        ),
        Faulty(
            "Gaussian noise for a pure claim",
            *twice(gaussian_for_laplace),
            (ten, eleven),
            "larger delta",
            claim="eps=1.5",
        ),
        Faulty(
            "a threshold for a larger δ",
            *twice(low_threshold),
            (["x"] * 20, [*["x"] * 20, "y"]),
            "larger delta",
            claim="eps=1, delta=1e-3",
        ),
        Faulty(
            "contributions that nobody bounds",
            *twice(unbounded_user),
            ([1.0, 1.0], [1.0, 1.0, 6.0]),
            "shift",
        ),
    ]


def sgd_faults() -> list[Faulty]:
    """Faults of a step of DP-SGD; the claim is that of clip 1 and σ = 2: μ = ½."""
    pair = (_GRADIENTS, np.vstack([_GRADIENTS, _CANARY]))
    layer = (_GRADIENTS, np.vstack([_GRADIENTS, _CANARY[::-1]]))
    named = [
        ("noise too small", pair, "scale"),
        ("not clipped", pair, "shift"),
        ("a layer not clipped", layer, "shift"),
        ("the same noise in all coordinates", pair, "dependence"),
        ("no noise on the bias", layer, "no noise"),
    ]
    return [
        Faulty(f"DP-SGD: {name}", sgd_step(name), sgd_step(""), at, cause, claim="mu=0.5")
        for name, at, cause in named
    ]


#: The causes of the planted bugs of `benchmarks.planted`, in their order.
PLANTED_CAUSES = (
    "failure",  # NaN passes the clamp
    "failure",  # ∞ becomes NaN in clipping
    "shift",  # an int32 sum wraps around
    "shift",  # an int64 sum wraps around
    "shift",  # float32 accumulates far from zero
    "shift",  # clamped after the sum
    "shift",  # sensitivity for bounds around zero
    "larger delta",  # threshold for keys that forgets δ
    "support",  # only classes that occur are released
    "shift",  # a weight that nobody clamps
    "shift",  # keys collide after normalisation
    "no noise",  # empty data get no noise
    "failure",  # an exception below two rows
    "shift",  # duplicates are dropped
    "shift",  # integers beyond 2⁵³ pass through a double
    "shift",  # a median with the noise of a mean
    "shift",  # a slope with the noise of a mean
    "shift",  # rows are counted, not users
    "failure",  # log of zero
)

#: The causes of the violations of the gallery, by library and case; those named "…, bits" are
#: "representation".
GALLERY_CAUSES = {
    ("datasynthesizer", "independent mode, default seed"): "no noise",
    ("datasynthesizer", "correlated mode, last category of the domain"): "support",
    ("datasynthesizer", "independent mode, most values missing"): "shift",
    ("datasynthesizer", "independent mode, most values outside the range"): "shift",
    ("datasynthesizer", "independent mode, keys inferred"): "support",
    ("datasynthesizer", "independent mode, categories inferred"): "support",
    ("datasynthesizer", "independent mode, range inferred"): "support",
    ("diffprivlib", "nanmean, nine NaN rows"): "shift",
    ("diffprivlib", "nanvar, eight NaN rows"): "shift",
    ("diffprivlib", "nanstd, eight NaN rows"): "shift",
    ("diffprivlib", "nansum, bounds far from zero"): "shift",
    ("diffprivlib", "sum at 100, one record removed"): "support",
    ("diffprivlib", "count_nonzero, one record added"): "support",
    ("diffprivlib", "median, a NaN row"): "failure",
    ("diffprivlib", "mean, a NaN row"): "failure",
    ("diffprivlib", "histogram, one record replaced"): "composition",
    ("diffprivlib", "GaussianNB, bounds far from zero"): "shift",
    ("diffprivlib", "GaussianNB, a class of one"): "order or size",
    ("diffprivlib", "LogisticRegression, a class of one"): "order or size",
    ("diffprivlib", "KMeans"): "no noise",
    ("diffprivlib", "DecisionTreeClassifier, one record replaced"): "shift",
    ("diffprivlib", "RandomForestClassifier, one record replaced"): "shift",
    ("dpmm", "PrivBayes, an attribute that is constant"): "no noise",
    ("dpmm", "PrivBayes, one value missing"): "support",
    ("dpmm", "PrivBayes, selection"): "shift",
    ("dpmm", "PrivBayes, categories inferred"): "support",
    ("jax-privacy", "Gaussian noise, bfloat16, values"): "representation",
    ("opacus", "a step, a NaN example"): "failure",
    ("opacus", "a step, an infinite example"): "failure",
    ("opendp", "thresholded Laplace, integers"): "larger delta",
    ("opendp", "thresholded Gaussian, integers"): "larger delta",
    ("opendp", "count by unknown keys"): "larger delta",
    ("smartnoise-synth", "MWEM, last category of the domain"): "support",
}
