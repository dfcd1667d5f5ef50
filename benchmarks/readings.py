"""Ten releases as somebody might write them, a fault in each: a diagnosis should lead to its line.

`python -m benchmarks.readings SHEET ANSWERS` writes the diagnoses with the numbered sources, to be read
without knowing the faults, and the answers apart. Lines that are marked here as the fault lose the mark
on the sheet.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpassay as dp

EPSILON, DELTA = 1.0, 1e-3
_MARK = "  # fault"


def grid(value: float) -> float:
    """Rounded to a grid of 2⁻¹⁰."""
    return round(value * 1024) / 1024


def salaries(rows: Any, rng: Any) -> Any:
    """The total salary of each department; salaries count up to 1 (in 100,000)."""
    out = {}
    for department in ("sales", "research", "support"):
        chosen = [salary for where, salary in rows if where == department]
        clipped = [min(max(salary, 0.0), 1.0) for salary in chosen]
        total = sum(clipped)
        if len(chosen) > 2:  # fault
            total += rng.laplace(scale=1 / EPSILON)
        out[department] = grid(total)
    return out


def age_groups(ages: Any, rng: Any) -> Any:
    """How many people are in each decade of age."""
    width = 10
    first = 0
    last = max(ages) // width  # fault
    counts = [0] * (last - first + 1)
    for age in ages:
        place = min(max(age, 0), 119) // width - first
        counts[place] += 1
    return tuple(grid(count + rng.laplace(scale=1 / EPSILON)) for count in counts)


def gradient(rows: Any, rng: Any) -> Any:
    """The noisy sum of gradients with norm 1 at most, for μ = 1."""
    bound, sigma = 1.0, 1.0
    total = np.zeros(3)
    for row in rows:
        g = np.asarray(row, dtype=float)
        norm = float(np.abs(g).max())  # fault
        total += g * min(1.0, bound / norm) if norm > 0 else g
    noise = rng.normal(scale=sigma * bound, size=total.size)
    return tuple(grid(x) for x in total + noise)


def best_price(bids: Any, rng: Any) -> Any:
    """The price of most revenue, by the exponential mechanism; a bid changes the revenue by 1 at most."""
    prices = [0.25, 0.5, 0.75, 1.0]
    revenue = [price * sum(bid >= price for bid in bids) for price in prices]
    sensitivity = 1 / len(bids)  # fault
    weights = [math.exp(EPSILON * r / (2 * sensitivity)) for r in revenue]
    shares = np.array(weights) / sum(weights)
    return prices[int(rng.choice(len(prices), p=shares))]


def moments(values: Any, rng: Any) -> Any:
    """Number, sum and sum of squares of values within [0, 1]."""
    clipped = [min(max(value, 0.0), 1.0) for value in values]
    budget = EPSILON  # fault
    count = len(clipped) + rng.laplace(scale=1 / budget)
    total = sum(clipped) + rng.laplace(scale=1 / budget)
    squares = sum(value**2 for value in clipped) + rng.laplace(scale=1 / budget)
    return {"count": grid(count), "sum": grid(total), "squares": grid(squares)}


def two_counts(rows: Any, rng: Any) -> Any:
    """How many women and how many men are in the data."""
    seed = int(rng.integers(2**32))
    out = {}
    for sex in ("f", "m"):
        noise = np.random.default_rng(seed)  # fault
        exact = sum(row == sex for row in rows)
        scale = 1 / EPSILON
        out[sex] = grid(exact + noise.laplace(scale=scale))
    return out


def visits(rows: Any, rng: Any) -> Any:
    """The number of visits, three for each visitor at most."""
    most = 3
    seen: dict[str, int] = {}
    total = 0
    for visitor, pages in rows:
        already = seen.get(visitor, 0)
        kept = min(pages, most)  # fault
        seen[visitor] = already + kept
        total += kept
    return grid(total + rng.laplace(scale=most / EPSILON))


def words(texts: Any, rng: Any) -> Any:
    """The words that enough people use, each with its noisy count; one word for each person."""
    counts: dict[str, int] = {}
    for text in texts:
        word = text.strip().lower()
        counts[word] = counts.get(word, 0) + 1
    least = 1 + math.log(1 / (2 * DELTA)) / EPSILON
    out = {}
    for word, count in sorted(counts.items()):
        noisy = count + rng.laplace(scale=1 / EPSILON)
        if noisy >= least / 2:  # fault
            out[word] = grid(noisy)
    return out


def rating(rows: Any, rng: Any) -> Any:
    """The mean rating (1 to 5) of those who rated, in a table of two rows."""
    rated = [row for row in rows if row is not None]
    clipped = np.clip(np.array(rated, dtype=float), 1.0, 5.0)
    noise = rng.laplace(scale=4 / EPSILON)
    with np.errstate(invalid="ignore"):
        mean = clipped.sum() / clipped.size  # fault
    noisy = np.round((mean + noise) * 1024) / 1024
    return float(np.clip(noisy, -20.0, 20.0))


def latency(values: Any, rng: Any) -> Any:
    """The mean latency in milliseconds, of values that are at most 1000."""
    limit = 1000.0
    clipped = np.clip(values, 0.0, limit)
    width = float(clipped.max() - clipped.min())  # fault
    scale = width / len(clipped) / EPSILON
    noise = rng.laplace(scale=scale)
    return grid(float(clipped.mean()) + noise)


def readings() -> list[tuple[Callable[..., Any], Any, str, str, str]]:
    """Release, pair, claim, relation and known cause."""
    people = [("sales", 0.6), ("sales", 0.9), ("sales", 0.7), ("research", 0.5), ("research", 0.8)]
    users = ["and", "and", "the", "the", "the", "the", "the", "The ", "and", "and", "and", "and"]
    far, calm = [9.0, -9.0, 9.0], [40.0, 60.0, 50.0]
    return [
        (salaries, (people[:4], people), "eps=1", "add_remove", "no noise"),
        (age_groups, ([21, 34, 38], [21, 34, 38, 77]), "eps=1", "add_remove", "order or size"),
        (gradient, ([[0.2, 0.1, 0.3]], [[0.2, 0.1, 0.3], far]), "mu=1", "add_remove", "shift"),
        (best_price, ([0.3] * 8, [*[0.3] * 7, 1.0]), "eps=1", "replace", "shift"),
        (moments, ([0.3, 0.6], [0.3, 0.6, 1.0]), "eps=1", "add_remove", "composition"),
        (two_counts, (["f", "m", "m"], ["f", "m", "m", "f"]), "eps=1", "add_remove", "dependence"),
        (visits, ([("a", 2)], [("a", 2), *[("b", 3)] * 4]), "eps=1", "user", "shift"),
        (words, (users, [*users, "xylophone"]), "eps=1, delta=1e-3", "add_remove", "larger delta"),
        (rating, ([None, None], [None, 4]), "eps=1", "replace", "failure"),
        (latency, ([*calm, 45.0], [*calm, 900.0]), "eps=1", "replace", "data-dependent scale"),
    ]  # fmt: skip


def main(sheet: Path, answers: Path) -> None:
    """Write the sheet and the answers."""
    shown, told = ["# Ten diagnoses\n\nWhich line would you look at?\n"], ["# The answers\n"]
    for k, (release, pair, claim, relation, cause) in enumerate(readings(), 1):
        verdict = dp.audit(
            dp.from_function(release),
            pair,
            claim,
            n=6000,
            relation=relation,
            rng=k,
            sampling=dp.Sampling(progress=False),
        )
        lines = inspect.getsource(release).rstrip().splitlines()
        numbered = "\n".join(
            f"{n:3}  {line.removesuffix(_MARK)}" for n, line in enumerate(lines, 1)
        )
        shown.append(f"## {k}\n\n```\n{verdict}\n```\n\n```python\n{numbered}\n```\n")
        faulty = [n for n, line in enumerate(lines, 1) if line.endswith(_MARK)]
        kinds = ", ".join(str(one.kind) for one in verdict.diagnosis)
        told.append(f"{k}. line {faulty[0]} ({cause}); explanations given: {kinds}")
    sheet.write_text("\n".join(shown), encoding="utf-8")
    answers.write_text("\n".join(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
