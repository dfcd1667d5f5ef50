"""Samples: a pool of draws on a pair, each dealt out once.

Whatever an analysis looks at to make a choice must not be looked at again to certify it. A pool
makes that hard to get wrong: `take` hands out draws nobody took before, and says how many there
are when too many are asked for. `Live` deals from a mechanism, `Samples` from what was collected.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from dpassay import checks
from dpassay.blackbox.mechanism import Mechanism, check_mechanism
from dpassay.errors import (
    BadOutput,
    DependenceWarning,
    InvalidInput,
    MechanismError,
    NotEnoughDraws,
)
from dpassay.privacy.pairs import Pair, as_pair
from dpassay.sampling.dependence import symptoms
from dpassay.sampling.draw import Sampling, Seed, draw_blocks, keep, seed_of, stream
from dpassay.sampling.files import read_outputs
from dpassay.sampling.outputs import Outputs, align, concatenate, from_raw

T = TypeVar("T")
_OWN_RANDOMNESS = "not replayable: the mechanism draws from a randomness of its own"


class Source(Protocol):
    """Where an analysis gets its draws on one pair from."""

    pair: Pair
    seed: int

    @property
    def replayable(self) -> bool:
        """Whether the seed brings the same draws back."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a result should say about where its draws came from."""

    @property
    def remaining(self) -> tuple[int, int] | None:
        """Draws left on each side; None if there is no limit."""

    def take(self, n: int | None = None) -> Samples:
        """Deal out draws that nobody took before."""

    def blocks(self, n: int, use: Callable[[Outputs, Outputs], T]) -> Iterator[T]:
        """Deal out `n` draws per side in blocks, keeping only what `use` makes of each."""

    def rng(self, purpose: int) -> np.random.Generator:
        """Randomness for the analysis itself, apart from that of the draws."""


class Samples:
    """Outputs of a mechanism on two neighbouring inputs, dealt out once.

    >>> import dpassay as dp
    >>> pool = dp.from_samples([0.1, 0.4, 0.2], [0.3, 0.9, 0.5])
    >>> first = pool.take(2)
    >>> len(first), len(pool)
    (2, 1)
    """

    def __init__(
        self,
        p: Outputs,
        q: Outputs,
        *,
        pair: Pair,
        seed: int = 0,
        replayable: bool = True,
    ) -> None:
        self._p, self._q = align([p, q])
        self._dealt = [0, 0]
        self.pair, self.seed, self.replayable = pair, seed, replayable

    @property
    def p(self) -> Outputs:
        """The draws on the first input that are still in the pool."""
        return self._p[self._dealt[0] :]

    @property
    def q(self) -> Outputs:
        """The draws on the second input that are still in the pool."""
        return self._q[self._dealt[1] :]

    @property
    def remaining(self) -> tuple[int, int]:
        """Draws left on each side."""
        return len(self._p) - self._dealt[0], len(self._q) - self._dealt[1]

    def __len__(self) -> int:
        return min(self.remaining)

    def __repr__(self) -> str:
        left = self.remaining
        return f"Samples({left[0]:,} and {left[1]:,} draws left, on {self.pair})"

    def take(self, n: int | None = None) -> Samples:
        """The next `n` draws of each side as a pool of their own; all that are left by default."""
        left = self.remaining
        counts = left if n is None else (checks.whole("n", n), n)
        if counts[0] > left[0] or counts[1] > left[1]:
            raise NotEnoughDraws(
                f"{n:,} draws per side were asked for, but only {left[0]:,} and {left[1]:,} are "
                f"left of {len(self._p):,} and {len(self._q):,}; bring more draws or ask for fewer"
            )
        return self.deal(*counts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a result should say about where its draws came from."""
        return () if self.replayable else (_OWN_RANDOMNESS,)

    def rewind(self) -> None:
        """Put all draws back, for another question that may look at them on its own terms."""
        self._dealt = [0, 0]

    def share(self, fraction: float) -> Samples:
        """The next `fraction` of what is left on each side, as a pool of its own."""
        return self.deal(*(round(fraction * left) for left in self.remaining))

    def deal(self, n_p: int, n_q: int) -> Samples:
        """The next draws of either side as a pool of their own."""
        a, b = self._dealt
        self._dealt = [a + n_p, b + n_q]
        return Samples(
            self._p[a : a + n_p],
            self._q[b : b + n_q],
            pair=self.pair,
            seed=self.seed,
            replayable=self.replayable,
        )

    def blocks(self, n: int, use: Callable[[Outputs, Outputs], T]) -> Iterator[T]:
        """`use` of the next `n` draws of each side."""
        part = self.take(n)
        yield use(part.p, part.q)

    def rng(self, purpose: int) -> np.random.Generator:
        """Randomness for the analysis itself."""
        return stream(self.seed, 0, 1 << 20, purpose)


class Live:
    """Deals draws from a mechanism on one pair; every `take` is a stage with its own streams."""

    def __init__(
        self,
        mechanism: Mechanism,
        pair: Pair,
        *,
        seed: int,
        index: int = 0,
        sampling: Sampling | None = None,
    ) -> None:
        self.mechanism, self.pair, self.seed = mechanism, pair, seed
        self.index = index
        self.sampling = sampling or Sampling()
        self._stage = 0

    @property
    def replayable(self) -> bool:
        """Whether the seed brings the same draws back."""
        return bool(getattr(self.mechanism, "replayable", True))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a result should say about where its draws came from."""
        return () if self.replayable else (_OWN_RANDOMNESS,)

    @property
    def remaining(self) -> None:
        """There is no limit."""
        return

    def blocks(self, n: int, use: Callable[[Outputs, Outputs], T]) -> Iterator[T]:
        """Draw `n` outputs per side, keeping only what `use` makes of each block."""
        stage, self._stage = self._stage, self._stage + 1
        return draw_blocks(
            self.mechanism,
            self.pair,
            n,
            seed=self.seed,
            key=(self.index, stage),
            sampling=self.sampling,
            use=use,
        )

    def take(self, n: int | None = None) -> Samples:
        """Draw `n` outputs per side. If the mechanism fails, the error carries what was drawn."""
        if n is None:
            raise InvalidInput("n must be given when drawing from a mechanism")
        parts: list[tuple[Outputs, Outputs]] = []
        try:
            parts.extend(self.blocks(checks.whole("n", n), keep))
        except MechanismError as error:
            error.samples = self._pool(parts) if parts else None
            raise
        try:
            return self._pool(parts)
        except BadOutput as error:
            error.samples = self._pool(parts[:1])
            raise

    def _pool(self, parts: Sequence[tuple[Outputs, Outputs]]) -> Samples:
        p, q = (concatenate([part[side] for part in parts]) for side in (0, 1))
        pool = Samples(p, q, pair=self.pair, seed=self.seed, replayable=self.replayable)
        if self.index == 0 and self._stage == 1:  # a dependence does not choose its pair
            _warn(pool)
        return pool

    def rng(self, purpose: int) -> np.random.Generator:
        """Randomness for the analysis itself."""
        return stream(self.seed, self.index, 1 << 20, purpose)


def draw(
    mechanism: Mechanism,
    pair: tuple[Any, Any] | Pair,
    *,
    n: int,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Samples:
    """Draw `n` outputs of a mechanism on each of two neighbouring inputs.

    >>> import dpassay as dp
    >>> samples = dp.draw(dp.zoo.Laplace(scale=1.0), (0.0, 1.0), n=1000, rng=0)
    >>> samples.remaining
    (1000, 1000)
    """
    live = Live(check_mechanism(mechanism), as_pair(pair), seed=seed_of(rng), sampling=sampling)
    return live.take(checks.whole("n", n))


def from_samples(
    p: Any, q: Any, *, pair: tuple[Any, Any] | Pair | None = None, rng: Seed = 0
) -> Samples:
    """Outputs that were collected elsewhere, as a pool of draws.

    `p` and `q` are arrays of outputs on the first and the second input, or paths of .npy, .csv or
    .parquet files. Rows are shuffled by the seed, since files may be sorted. The two may differ in
    length. Every row must be an independent run of the mechanism.
    """
    seed = seed_of(rng)
    sides = []
    for name, given in (("p", p), ("q", q)):
        raw = read_outputs(given) if isinstance(given, (str, Path)) else given
        try:
            outputs = from_raw(raw, len(raw))
        except (BadOutput, TypeError) as error:
            raise InvalidInput(f"{name} cannot be read as outputs: {error}") from None
        if len(outputs) == 0:
            raise NotEnoughDraws(f"{name} holds no outputs")
        sides.append(outputs)
    try:
        ordered = align(sides)
    except BadOutput as error:
        raise InvalidInput(f"p and q do not go together: {error}") from None
    origin = as_pair(pair) if pair is not None else Pair(_origin(p, "p"), _origin(q, "q"))
    _warn(Samples(*ordered, pair=origin, seed=seed))
    shuffled = (
        side[stream(seed, 0, 1 << 21, index).permutation(len(side))]
        for index, side in enumerate(ordered)
    )
    return Samples(*shuffled, pair=origin, seed=seed)


def _origin(given: Any, name: str) -> str:
    return Path(given).name if isinstance(given, (str, Path)) else f"samples {name}"


def sources(
    target: Any,
    pairs: Any = None,
    *,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Iterator[Source]:
    """One source per pair, from a mechanism and pairs or from samples already drawn.

    A tuple of two inputs is a pair; a list or iterator of tuples is several. Pairs are looked at
    one by one, so that an iterator of thousands costs no memory.
    """
    if isinstance(target, Samples):
        if pairs is not None:
            raise InvalidInput("samples already belong to a pair: leave `pair` out")
        return iter((target,))
    mechanism = check_mechanism(target)
    if pairs is None:
        raise InvalidInput("a mechanism needs a pair of neighbouring inputs such as (0.0, 1.0)")
    if isinstance(pairs, (tuple, Pair)):
        given: Iterable[Any] = (as_pair(pairs),)
    elif isinstance(pairs, Iterable) and not isinstance(pairs, (str, bytes, dict, np.ndarray)):
        given = pairs
    else:
        as_pair(pairs)  # raises, saying what a pair is
        raise AssertionError
    if isinstance(pairs, Sequence) and not isinstance(pairs, tuple):
        given = [as_pair(pair) for pair in pairs]  # what is wrong is said before the first draw
        if not given:
            raise InvalidInput("there is no pair to look at: the list is empty")
    seed = seed_of(rng)
    return (
        Live(mechanism, as_pair(pair), seed=seed, index=index, sampling=sampling)
        for index, pair in enumerate(given)
    )


def one_source(target: Any, pair: Any, *, rng: Seed, sampling: Sampling | None) -> Source:
    """The source of a method that looks at one pair only."""
    found = list(sources(target, pair, rng=rng, sampling=sampling))
    if len(found) != 1:
        raise InvalidInput(f"this method looks at one pair, got {len(found)}")
    return found[0]


def draws_per_side(name: str, n: int | None, source: Source, *, at_least: int = 2) -> int | None:
    """`n`, or None for all draws of samples; a mechanism needs a number."""
    if n is not None:
        return checks.whole(name, n, at_least=at_least)
    if source.remaining is None:
        raise InvalidInput(f"{name} must be given: how many draws per side to make")
    return None


def _warn(pool: Samples) -> None:
    for text in symptoms(pool.p, pool.q):
        warnings.warn(text, DependenceWarning, stacklevel=4)
