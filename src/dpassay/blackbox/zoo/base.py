"""Base of the zoo: exact truths of a pair, and the grid that noisy outputs are rounded to.

A pair of densities cut into fine cells is a finite pair. Its ε, privacy profile, Rényi divergences and
trade-off function are those of the densities up to the square of how much the privacy loss varies within
a cell, about 1e-8 with the cells used here. Nothing is cut off: each tail is a cell as well.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput, NoClosedForm
from dpassay.privacy.claims import Claim, PureDP
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.relations import Pair

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
#: Cells between the first and the last break point, and in each tail.
_CELLS = 1 << 16
#: Bits after the noise's own size that outputs keep: far more than any sample tells apart, and far fewer
#: than a double has.
_KEPT_BITS = 36
#: Cells without probability on one side are empty on both if the other has less than the first of these;
#: what cells below the second decide is not known, since there may be more beyond them.
_EMPTY, _RAREST = 1e-100, 1e-190
#: Ends of cells are this far apart, relative to their size.
_APART = 1e-9
#: Probabilities of the quantiles at which cells of a distribution of SciPy end, in either tail.
_TAIL = expit(np.concatenate([np.linspace(-690, -40, 1 << 13), np.linspace(-40, 0, 1 << 15)[1:]]))


def panels(breaks: FloatArray, reach: float, width: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a composite Gauss–Legendre rule, for functions smooth between the breaks.

    It covers everything from `reach` below the first break to `reach` above the last, in panels no
    wider than `width` that end at every break.
    """
    breaks = np.unique(np.asarray(breaks, dtype=float))
    edges = np.concatenate([[breaks[0] - reach], breaks, [breaks[-1] + reach]])
    cuts = [
        np.linspace(a, b, max(2, int(np.ceil((b - a) / width)) + 1))
        for a, b in itertools.pairwise(edges)
    ]
    left = np.concatenate([cut[:-1] for cut in cuts])
    right = np.concatenate([cut[1:] for cut in cuts])
    half = (right - left) / 2
    nodes = ((left + right) / 2)[:, None] + half[:, None] * _NODES[None, :]
    return nodes.ravel(), (half[:, None] * _WEIGHTS[None, :]).ravel()


@dataclass(frozen=True)
class Law:
    """A distribution on the real line by its distribution function and its survival function."""

    cdf: Callable[[FloatArray], FloatArray]
    sf: Callable[[FloatArray], FloatArray]
    breaks: tuple[float, ...]  # where they are not smooth
    reach: float  # how far beyond the breaks the privacy loss varies
    detail: int = _CELLS  # cells between the breaks, and in each tail

    def cells(self, edges: FloatArray) -> FloatArray:
        """The probability of each cell, accurate in both tails."""
        below, above = self.cdf(edges), self.sf(edges)
        left = below[1:] < 0.5
        return np.maximum(np.where(left, np.diff(below), -np.diff(above)), 0.0)


def law_of(name: str, given: Any) -> Law:
    """A distribution of SciPy as a law whose cells end at its quantiles; a law as it is."""
    if isinstance(given, Law):
        return given
    if not all(callable(getattr(given, one, None)) for one in ("cdf", "sf", "ppf", "isf", "pdf")):
        raise InvalidInput(
            f"{name} must return the distribution of a real output as a frozen distribution of "
            f"scipy.stats, such as scipy.stats.laplace(data, scale), got {checks.shown(given)}"
        )
    edges = []
    for inverse, direct in ((given.ppf, given.cdf), (given.isf, given.sf)):
        x = np.asarray(inverse(_TAIL), dtype=float)
        x, tail = x[np.isfinite(x)], _TAIL[np.isfinite(x)]
        rounding = 4 * np.asarray(given.pdf(x)) * np.spacing(np.abs(x))  # of the quantile itself
        if np.any(np.abs(direct(x) - tail) > 1e-6 * tail + rounding):
            raise NoClosedForm(
                f"the tails of {name} are not computed accurately by its distribution functions, so that "
                "no truth is known (of some distributions newer versions of SciPy do)"
            )
        edges.append(x)
    return Law(given.cdf, given.sf, tuple(np.unique(np.concatenate(edges))), 0.0, detail=1)


def mixture(parts: Sequence[tuple[float, Law]]) -> Law:
    """A weighted mixture."""
    return Law(
        lambda t: np.asarray(sum(weight * law.cdf(t) for weight, law in parts)),
        lambda t: np.asarray(sum(weight * law.sf(t) for weight, law in parts)),
        tuple(sorted({b for _, law in parts for b in law.breaks})),
        max(law.reach for _, law in parts),
        _CELLS if len(parts) < 32 else _CELLS // 8,
    )


def laplace(centre: float, scale: float) -> Law:
    """Laplace distribution. Outside all centres two of them have a constant ratio: no reach."""

    def cdf(t: FloatArray) -> FloatArray:
        z = (t - centre) / scale
        with np.errstate(over="ignore"):
            return np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.abs(z)))

    return Law(cdf, lambda t: cdf(2 * centre - t), (centre,), 0.0)


def truncated(whole: Law, low: float, high: float = math.inf) -> Law:
    """A distribution, given that it falls between two bounds."""
    edges = np.array([low, high])
    below, above, inside = whole.cdf(edges)[0], whole.sf(edges)[1], whole.cells(edges)[0]
    return Law(
        lambda t: (whole.cdf(np.clip(t, low, high)) - below) / inside,
        lambda t: (whole.sf(np.clip(t, low, high)) - above) / inside,
        tuple(b for b in (low, *whole.breaks, high) if math.isfinite(b)),
        whole.reach,
    )


def gaussian(centre: float, sigma: float) -> Law:
    """Normal distribution, out to 30 σ: high Rényi orders are decided in the tails."""
    return Law(
        lambda t: np.asarray(ndtr((t - centre) / sigma)),
        lambda t: np.asarray(ndtr((centre - t) / sigma)),
        (centre,),
        30 * sigma,
    )


def masses(first: Law, second: Law) -> Masses:
    """The pair on fine cells that end at every break point, the two tails included."""
    breaks = np.unique(np.array(first.breaks + second.breaks))
    apart = np.diff(breaks) > _APART * np.abs(breaks[1:])  # else rounding decides what lies between
    breaks = breaks[np.append(True, apart)]
    reach, detail = max(first.reach, second.reach), min(first.detail, second.detail)
    core = np.linspace(breaks[0], breaks[-1], detail + 1)
    low = breaks[0] - np.linspace(reach, 0, detail, endpoint=False)
    high = breaks[-1] + np.linspace(0, reach, detail + 1)[1:]
    edges = np.unique(np.concatenate([[-math.inf], low, core, breaks, high, [math.inf]]))
    p, q = first.cells(edges), second.cells(edges)
    # a cell that only rounding or underflow made empty on one side would count as an infinite ratio
    negligible = (np.minimum(p, q) == 0) & (np.maximum(p, q) < _EMPTY)
    return Masses(np.where(negligible, 0.0, p), np.where(negligible, 0.0, q))


def refuse_rarest(pair: Masses, orders: FloatArray) -> None:
    """Refuse Rényi orders that cells decide which are too rare: what lies beyond them is not known."""
    rare = np.minimum(pair.p, pair.q) < _RAREST
    inside = (pair.p > 0) & np.isfinite(pair.loss)
    if not np.any(rare & inside):
        return
    for order in orders.ravel().tolist():
        if order <= 1:
            continue
        if math.isinf(order):
            known = np.max(pair.loss, where=inside & ~rare, initial=-math.inf)
            decided = pair.loss[inside].max() > known + 1e-6
        else:
            terms = np.log(pair.p[inside]) + (order - 1) * pair.loss[inside]
            shares = np.exp(terms - terms.max())
            decided = shares[rare[inside]].sum() > 1e-8 * shares.sum()
        if decided:
            raise NoClosedForm(
                f"the Rényi divergence of order {order:g} is decided by outputs of probabilities below "
                f"{_RAREST:g}, which are not computed: it is larger than the others, or infinite. If the "
                "privacy loss has no bound, set unbounded = True in the class"
            )


def with_atom(chances: Sequence[float], rest: Masses) -> Masses:
    """The finite pair of a mechanism that returns one extra output with these chances, else `rest`."""
    a, b = chances
    return Masses(np.concatenate([[a], (1 - a) * rest.p]), np.concatenate([[b], (1 - b) * rest.q]))


def on_grid(values: Any, scale: float) -> Any:
    """The outputs, rounded to a grid that depends on the size of the noise alone.

    Which doubles x + noise can be depends on x (see `NaiveLaplace`); which points of a grid does not.
    """
    step = grid_step(scale)
    return np.rint(np.asarray(values) / step) * step


def grid_step(scale: float) -> float:
    """The step of that grid: a power of two."""
    return float(2.0 ** (math.floor(math.log2(scale)) - _KEPT_BITS))


def real(default: float, **limits: Any) -> Any:
    """A parameter that is a number within limits (`validation.real`)."""
    return field(default=default, metadata={"check": partial(checks.real, **limits)})


def whole(default: int) -> Any:
    """A parameter that is a whole number, at least 1."""
    return field(default=default, metadata={"check": checks.whole})


@dataclass(frozen=True, repr=False)
class ZooMechanism:
    """Base of the zoo.

    A mechanism gives the `probabilities` of a finite output, or the distribution of a real output
    (`law`), or those of a pair (`masses`), or overrides the divergences with closed forms. δ, Rényi and
    the trade-off function are those of the first input against the second; `epsilon` is the larger of
    both directions. Without a pair they are those of the default pair.

    A parameter stored as `epsilon0` is called `epsilon` in the constructor: `epsilon` itself is the
    truth for a pair.
    """

    #: Where the mechanism comes from.
    source: ClassVar[str] = ""
    #: What a broken mechanism does wrong, and on which pairs it shows; empty if it is correct.
    flaw: ClassVar[str] = ""
    #: The default pair: where a correct mechanism is near its limit and a broken one breaks.
    pair: ClassVar[Pair]
    #: Whether the privacy loss has no bound on any two different inputs: ε = ∞.
    unbounded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for one in fields(self):
            if check := one.metadata.get("check"):
                check(one.name, getattr(self, one.name))

    def _set(self, **values: Any) -> None:
        """For constructors alone: mechanisms are frozen afterwards."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Return `size` independent outputs on `data`."""
        raise NotImplementedError(
            f"{type(self).__name__} must define __call__(data, size, rng), which returns `size` outputs"
        )

    @property
    def correct(self) -> bool:
        """Whether it keeps what it claims on every pair of neighbours."""
        return not self.flaw

    @property
    def claim(self) -> Claim | None:
        """What the mechanism claims: its parameter `epsilon` if it has one; None if it claims nothing."""
        epsilon = getattr(self, "epsilon0", None)
        return None if epsilon is None else PureDP(epsilon)

    def probabilities(self, data: Any) -> FloatArray | None:
        """The probability of every output, an array; None if the outputs are not a finite set.

        The order of the outputs is the same for all inputs.
        """
        return None

    def law(self, data: Any) -> Any:
        """The distribution of a continuous output, a frozen one of scipy.stats, or a `Law`."""
        raise NoClosedForm(f"the output distribution of {self} is not known in closed form")

    def masses(self, pair: Any) -> Masses:
        """The exact output probabilities on both inputs (of fine cells, if continuous)."""
        p, q = (self.probabilities(data) for data in pair)
        if p is not None and q is not None:
            name = f"what {type(self).__name__}.probabilities(data) returns"
            return Masses(checks.doubles(name, p), checks.doubles(name, q))
        arrays = (np.asarray(data, dtype=float) for data in pair)
        return _cached_masses(self, *((one.shape, one.tobytes()) for one in arrays))

    def _masses(self, first: Any, second: Any) -> Masses:
        """The masses of two inputs as arrays; they are computed once."""
        name = f"what {type(self).__name__}.law(data) returns"
        return masses(*(law_of(name, self.law(data)) for data in (first, second)))

    def _inputs(self, pair: Any) -> tuple[Any, Any]:
        """The two inputs of a pair, of the default pair if none is given."""
        if pair is None and not hasattr(self, "pair"):
            raise InvalidInput(f"{type(self).__name__} has no default pair: give pair=(x, y)")
        return checks.two_inputs(self.pair if pair is None else pair)

    def epsilon(self, pair: Any = None) -> float:
        """The exact pure-DP level of a pair, the worse of both directions."""
        if self.unbounded:
            return 0.0 if np.array_equal(*self._inputs(pair)) else math.inf
        found = self.masses(self._inputs(pair))
        if self.probabilities(self._inputs(pair)[0]) is None:
            for one in (found, found.swap()):
                refuse_rarest(one, np.array([math.inf]))
        return found.epsilon()

    def delta(self, epsilon: npt.ArrayLike, pair: Any = None) -> Any:
        """The exact δ(ε) of the first input against the second."""
        return checks.scalar_or_array(self.masses(self._inputs(pair)).delta(epsilon))

    def renyi(self, order: npt.ArrayLike, pair: Any = None) -> Any:
        """The exact Rényi divergence of the first input from the second."""
        found = self.masses(self._inputs(pair))
        if self.probabilities(self._inputs(pair)[0]) is None:
            refuse_rarest(found, checks.renyi_orders(order))
        return checks.scalar_or_array(found.renyi(order))

    def tradeoff(self, alpha: npt.ArrayLike, pair: Any = None) -> Any:
        """The exact trade-off function, with the second input as null hypothesis."""
        return checks.scalar_or_array(self.masses(self._inputs(pair)).tradeoff(alpha))

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{f.name.removesuffix('0')}={getattr(self, f.name)!r}" for f in fields(self)
        )
        return f"{type(self).__name__}({inner})"


@lru_cache(maxsize=128)
def _cached_masses(mechanism: ZooMechanism, *keys: tuple[tuple[int, ...], bytes]) -> Masses:
    first, second = (np.frombuffer(raw).reshape(shape)[()] for shape, raw in keys)
    return mechanism._masses(first, second)
