"""Speed of the notions against the same procedure written plainly with scipy and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.harness import Timing, compare

zoo = dp.zoo
TENTHS = [(0.0, b / 10) for b in range(1, 11)]


@dataclass(frozen=True)
class Comparison:
    """Candidates for the same job; the first is ours and the unit of the ratios."""

    title: str
    candidates: dict[str, Callable[[], Any]] = field(repr=False)
    repeats: int = 3
    goal: str = ""

    def run(self) -> list[Timing]:
        """Time them in turns."""
        return compare(self.candidates, repeats=self.repeats)


def draw_bare(mechanism: Any, pairs: list[Any], n: int, n_bound: int = 0) -> None:
    """The draws alone, in the same blocks."""
    rng = np.random.default_rng(0)
    for pair in pairs:
        for data in pair:
            _in_blocks(mechanism, data, n, rng)
    for data in pairs[-1]:
        _in_blocks(mechanism, data, n_bound, rng)


def _in_blocks(mechanism: Any, data: Any, n: int, rng: np.random.Generator) -> None:
    from dpassay.sampling.job import Chunking

    layout = Chunking.of(mechanism, n)
    for block in range(layout.cells):
        mechanism(data, layout.draws(block, block + 1), rng)


def plain_mpl(mechanism: Any, pairs: list[Any], n: int, n_bound: int) -> float:
    """MPL with scipy's gaussian_kde on a grid of 1000 points."""
    from scipy.stats import gaussian_kde, norm

    rng, grid, best = np.random.default_rng(0), np.linspace(-1, 1, 1000), (-1.0, 0.0, pairs[0])
    for pair in pairs:
        p, q = (np.maximum(gaussian_kde(mechanism(x, n, rng))(grid), 1e-3) for x in pair)
        loss = np.abs(np.log(p / q))
        best = max(best, (float(loss.max()), float(grid[loss.argmax()]), pair), key=lambda b: b[0])
    kdes = [gaussian_kde(mechanism(x, n_bound, rng)) for x in best[2]]
    p, q = (float(k(best[1])[0]) for k in kdes)
    h = float(np.sqrt(kdes[0].covariance[0, 0]))
    se = np.sqrt((1 / p + 1 / q) / (2 * np.sqrt(np.pi) * n_bound * h))
    return float(abs(np.log(p / q)) + norm.ppf(0.05) * se)


def plain_plrt(mechanism: Any, pair: Any, n: int) -> Any:
    """PLRT with gaussian_kde on 1000 points and 1000 thresholds."""
    from scipy.stats import gaussian_kde

    rng = np.random.default_rng(0)
    p, q = (gaussian_kde(mechanism(x, n, rng)) for x in pair)
    grid = np.linspace(-6, 7, 1000)
    fp, fq, step = p(grid), q(grid), grid[1] - grid[0]
    points = []
    for eta in np.linspace(0, 15, 1000):
        shifted = [eta + x for x in np.linspace(-0.05, 0.05, 10)]
        alpha = np.mean([fq[fp > s * fq].sum() for s in shifted]) * step
        points.append((alpha, 1 - np.mean([fp[fp > s * fq].sum() for s in shifted]) * step))
    return points


def plain_knn(mechanism: Any, pair: Any, n: int) -> float:
    """One threshold with scikit-learn's KNeighborsClassifier, k = √n."""
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(0)
    train = np.concatenate([mechanism(x, n, rng) for x in pair])[:, None]
    labels = np.arange(2 * n) < n
    model = KNeighborsClassifier(round(np.sqrt(2 * n))).fit(train, labels)
    test = np.concatenate([mechanism(x, n, rng) for x in pair])[:, None]
    return float(np.mean(model.predict(test) == labels))


def ours_knn(mechanism: Any, pair: Any, n: int) -> Any:
    """The whole curve by counts of the kNN loss on held-out draws."""
    from dpassay.scores.cells_and_neighbours import KnnScore
    from dpassay.scores.training import Training

    samples = dp.draw(mechanism, pair, n=2 * n, rng=0)
    train, test = samples.deal((n, n)), samples.deal((n, n))
    loss = KnnScore.fit(Training.of(train))
    return np.sort(loss.score(test.p)), np.sort(loss.score(test.q))


def comparisons() -> Iterator[Comparison]:
    """Everything that is timed."""
    mpl: dict[str, Any] = {
        "n": 20_000,
        "n_bound": 50_000,
        "region": (-1, 1),
        "floor": 1e-3,
        "rng": 0,
    }
    yield Comparison(
        "MPL, Laplace, 10 pairs (n = 20 000, N = 50 000)",
        {
            "dp.pure.lower_bound": lambda: dp.pure.lower_bound(zoo.Laplace(), TENTHS, **mpl),
            "drawing alone": lambda: draw_bare(zoo.Laplace(), TENTHS, 20_000, 50_000),
            "with scipy's gaussian_kde": lambda: plain_mpl(zoo.Laplace(), TENTHS, 20_000, 50_000),
        },
        goal="≥ 50× gaussian_kde; ≤ 4× drawing",
    )
    patterns = dp.neighbours.patterns(10)
    large: dict[str, Any] = {"n": 100_000, "n_bound": 500_000, "floor": 1e-4, "rng": 0}
    for variant in (2, 5):
        yield Comparison(
            f"MPL, SVT{variant}, 10 pairs (n = 10⁵, N = 5·10⁵)",
            {
                "dp.pure.lower_bound": partial(
                    dp.pure.lower_bound, zoo.SVT(variant, 0.7), patterns, **large
                ),
                "drawing alone": partial(
                    draw_bare, zoo.SVT(variant, 0.7), patterns, 100_000, 500_000
                ),
            },
            goal="≤ 2× drawing",
        )
    gauss = (1.0, 0.0)
    yield Comparison(
        "PLRT, Gaussian, n = 10⁵, 1000 thresholds",
        {
            "dp.tradeoff.estimate": lambda: dp.tradeoff.estimate(
                zoo.Gaussian(),
                gauss,
                n=100_000,
                perturbation=0.1,
                thresholds=np.linspace(0, 15, 1000),
                confidence=None,
                rng=0,
            ),
            "drawing alone": lambda: draw_bare(zoo.Gaussian(), [gauss], 100_000),
            "with scipy's gaussian_kde": lambda: plain_plrt(zoo.Gaussian(), gauss, 100_000),
        },
        goal="≥ 100× gaussian_kde",
    )
    yield Comparison(
        "kNN, Gaussian, n = 10⁵ to train and to test",
        {
            "dpassay, the whole curve": lambda: ours_knn(zoo.Gaussian(), gauss, 100_000),
            "drawing alone": lambda: draw_bare(zoo.Gaussian(), [gauss], 200_000),
            "KNeighborsClassifier, one threshold": lambda: plain_knn(
                zoo.Gaussian(), gauss, 100_000
            ),
        },
        repeats=2,
        goal="≥ 50× scikit-learn",
    )
    orders: dict[str, Any] = {"orders": [2, 5, 7], "n": 5_000_000, "rng": 0}
    yield Comparison(
        "Rényi, Gaussian, n = 5·10⁶, three orders",
        {
            "dp.renyi.curve": lambda: dp.renyi.curve(zoo.Gaussian(5.0), gauss, **orders),
            "drawing alone": lambda: draw_bare(zoo.Gaussian(5.0), [gauss], 5_000_000),
        },
        repeats=2,
        goal="≤ 2.5× drawing",
    )
