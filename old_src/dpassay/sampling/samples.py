"""Draws on a pair: batches to learn from, and sources that deal each draw out once.

Draws that an analysis used to make a choice must not be used again to certify it. `Live` deals from a
mechanism, `Samples` from draws that are there; learners get a `Batch`, which has no cursor.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dpassay import validation as checks
from dpassay.blackbox.mechanism import BLOCK, Mechanism, check_mechanism, on_pair, with_features
from dpassay.errors import (
    DependenceWarning,
    InvalidInput,
    MechanismError,
    NotEnoughDraws,
    TooManyAskedFor,
    warn,
)
from dpassay.outputs.canonical import Outputs, align, concatenate
from dpassay.privacy.provenance import Origin
from dpassay.privacy.relations import Pair, Relation, as_pair
from dpassay.sampling.dependence import symptoms
from dpassay.sampling.draw import Sampling, Seed, as_sampling, draw_blocks, joined, keep, seed_for
from dpassay.sampling.identity import identity
from dpassay.sampling.job import by_calls, stream
from dpassay.sampling.repeated_draws import CopyCheck
from dpassay.sampling.store_files import Entry

T = TypeVar("T")
Sizes = tuple[int, int]
_OWN_RANDOMNESS = "the mechanism takes no rng: the same seed need not give the same draws again"


@dataclass(frozen=True, eq=False)
class Batch:
    """Draws of both sides, to learn from."""

    p: Outputs
    q: Outputs

    @classmethod
    def of(cls, p: Outputs, q: Outputs) -> Batch:
        """Draws over one table of structures."""
        return cls(*align([p, q]))

    @property
    def sizes(self) -> Sizes:
        return len(self.p), len(self.q)

    def with_more(self, other: Batch) -> Batch:
        return Batch.of(concatenate([self.p, other.p]), concatenate([self.q, other.q]))

    def split(self, share: float) -> tuple[Batch, Batch]:
        """The first `share` of either side, and the rest."""
        a, b = (round(share * n) for n in self.sizes)
        return Batch(self.p[:a], self.q[:b]), Batch(self.p[a:], self.q[b:])


class Source:
    """Where an analysis gets its draws on one pair from."""

    pair: Pair
    seed: int
    index = 0  # of the pair
    replayable = True  # whether the seed brings the same draws back
    doubts: tuple[str, ...] = ()  # signs that draws are not independent: then no guarantee is exact
    remarks: tuple[str, ...] = ()  # notes that are no doubts
    files: tuple[Origin, ...] = ()  # that the draws came from
    digest = ""  # of draws that were collected elsewhere

    @property
    def notes(self) -> tuple[str, ...]:
        """What a result should say about where its draws came from."""
        own = () if self.replayable else (_OWN_RANDOMNESS,)
        return (*self.doubts, *filter(None, [self.pair.doubt]), *self.remarks, *own)

    @property
    def remaining(self) -> Sizes | None:
        """Draws left on each side; None if there is no limit."""
        return None

    def deal(self, sizes: Sizes) -> Batch:
        """Deal out draws that were not dealt before."""
        raise NotImplementedError

    def blocks(self, sizes: Sizes, use: Callable[[Outputs, Outputs], T]) -> Iterator[T]:
        """Deal out draws in blocks, keeping only what `use` makes of each."""
        raise NotImplementedError

    def rng(self, purpose: int) -> np.random.Generator:
        """Randomness for the analysis itself, apart from that of the draws."""
        return stream(self.seed, self.index, 1 << 20, purpose)


class Samples(Source):
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
        doubts: tuple[str, ...] = (),
        files: tuple[Origin, ...] = (),
        remarks: tuple[str, ...] = (),
        digest: str = "",
    ) -> None:
        self._p, self._q = align([p, q])
        self._dealt = [0, 0]
        self.pair, self.seed, self.replayable = pair, seed, replayable
        self.doubts, self.files, self.remarks, self.digest = doubts, files, remarks, digest

    @property
    def p(self) -> Outputs:
        """The draws on the first input that are left."""
        return self._p[self._dealt[0] :]

    @property
    def q(self) -> Outputs:
        """The draws on the second input that are left."""
        return self._q[self._dealt[1] :]

    @property
    def remaining(self) -> Sizes:
        return len(self._p) - self._dealt[0], len(self._q) - self._dealt[1]

    def __len__(self) -> int:
        return min(self.remaining)

    def __repr__(self) -> str:
        left = self.remaining
        return f"Samples({left[0]:,} and {left[1]:,} draws left, on {self.pair})"

    def take(self, n: int | None = None) -> Samples:
        """The next `n` draws of each side as a pool of their own; all that are left by default."""
        batch = self.deal(self.remaining if n is None else (checks.whole("n", n),) * 2)
        found = copy.copy(self)
        found._p, found._q, found._dealt, found.digest = batch.p, batch.q, [0, 0], ""
        return found

    def deal(self, sizes: Sizes) -> Batch:
        left = self.remaining
        if sizes[0] > left[0] or sizes[1] > left[1]:
            if not max(left):
                raise NotEnoughDraws(
                    "these samples are used up: every draw is dealt out once. For another question make "
                    "them anew (dp.from_samples), or give all claims to one audit"
                )
            raise TooManyAskedFor(
                f"{max(sizes):,} draws per side were asked for, but only {left[0]:,} and {left[1]:,} "
                f"are left of {len(self._p):,} and {len(self._q):,}; bring more draws or ask for fewer"
            )
        a, b = self._dealt
        self._dealt = [a + sizes[0], b + sizes[1]]
        return Batch(self._p[a : a + sizes[0]], self._q[b : b + sizes[1]])

    def without_last(self, sizes: Sizes) -> list[list[Outputs]]:
        """Of either side the draws before the last `sizes` that were dealt, and those that are left."""
        sides = zip((self._p, self._q), self._dealt, sizes, strict=True)
        return [[side[: dealt - n], side[dealt:]] for side, dealt, n in sides]

    def blocks(self, sizes: Sizes, use: Callable[[Outputs, Outputs], T]) -> Iterator[T]:
        """`use` of the next draws of each side, in blocks that hold the same share of either."""
        part = self.deal(sizes)
        kinds = max(len(part.p.structures), 1)  # every piece looks all of them up
        pieces = max(1, min(-(-max(sizes) // BLOCK), max(sizes) // kinds, *sizes))
        for k in range(pieces):
            p, q = (slice(k * n // pieces, (k + 1) * n // pieces) for n in sizes)
            yield use(part.p[p], part.q[q])


class Live(Source):
    """Deals draws from a mechanism on one pair; every deal is a stage with its own streams."""

    def __init__(
        self,
        mechanism: Mechanism,
        pair: Pair,
        *,
        seed: int,
        index: int = 0,
        stage: int = 0,
        sampling: Sampling | None = None,
        described: dict[str, str] | None = None,
    ) -> None:
        self.mechanism, self.pair, self.seed = on_pair(mechanism, pair), pair, seed
        self.index, self._stage = index, stage
        self.sampling = sampling or Sampling()
        self._calls = by_calls(self.mechanism, self.sampling.on_error == "outcome")
        self.replayable = bool(getattr(self.mechanism, "replayable", True))
        self.entry = None
        if self.sampling.store is not None:
            described = described or identity(self.mechanism, self.sampling.identity)
            self.entry = Entry.of(self.mechanism, pair, self.sampling, described)
        self._check = CopyCheck()
        self.drawn, self.spent = 0, 0.0  # draws a side that were dealt, and the seconds they took

    def blocks(self, sizes: Sizes, use: Callable[[Outputs, Outputs], T]) -> Iterator[T]:
        """Draw outputs, as many on either side, keeping only what `use` makes of each block."""
        stage, self._stage = self._stage, self._stage + 1
        self._check = CopyCheck(self._check.containers)
        return draw_blocks(self, max(sizes), (self.index, stage), use, self._check)

    def deal(self, sizes: Sizes) -> Batch:
        """Draw outputs. If the mechanism fails, the error carries what was drawn."""
        # checked once: draws that depend on each other do so on every pair
        first = self.index == 0 and self._stage == 0
        parts: list[tuple[Outputs, Outputs]] = []
        start = time.perf_counter()
        try:
            parts.extend(self.blocks(sizes, keep))
            batch = Batch(*joined(parts, self._calls))
        except MechanismError as error:
            error.samples = self._pool(Batch(*joined(parts, self._calls))) if parts else None
            raise
        self.drawn, self.spent = self.drawn + max(sizes), self.spent + time.perf_counter() - start
        if first:
            self.doubts = warned(batch)
        return batch

    def _pool(self, batch: Batch) -> Samples:
        p, q = batch.p, batch.q
        found = Samples(p, q, pair=self.pair, seed=self.seed, replayable=self.replayable)
        found.doubts = self.doubts
        return found

    def take(self, n: int) -> Samples:
        """Draw `n` outputs per side as a pool."""
        return self._pool(self.deal((n, n)))


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
    seed = seed_for(rng, sampling)
    live = Live(check_mechanism(mechanism), as_pair(pair), seed=seed, sampling=sampling)
    return live.take(checks.whole("n", n))


def sources(
    target: Any,
    pairs: Any = None,
    *,
    rng: Seed = None,
    sampling: Sampling | None = None,
    relation: Relation | str | None = None,
    stage: int = 0,
    features: Any = None,
) -> Iterator[Source]:
    """One source per pair, from a mechanism and pairs or from samples already drawn.

    A tuple of two inputs is a pair; a list or iterator of tuples is several. Pairs are looked at
    one by one, so that an iterator of thousands costs no memory. A `relation` that is given is the one
    of all pairs that name none.
    """
    if isinstance(target, Samples):
        if pairs is not None:
            raise InvalidInput("samples already belong to a pair: leave `pair` out")
        if features:
            raise InvalidInput(
                "features are functions of what a mechanism returns, and samples hold their outputs in "
                "another form; compute them before dp.from_samples"
            )
        if relation is not None:
            target.pair = target.pair.related(relation)
        return iter((target,))
    mechanism = check_mechanism(with_features(target, features))
    if pairs is None:
        raise InvalidInput("a mechanism needs a pair of neighbouring inputs such as (0.0, 1.0)")
    given, how = listed_pairs(pairs), as_sampling(sampling)
    seed = seed_for(rng, how)
    # described before it is called: its state may change
    described = None if how.store is None else identity(mechanism, how.identity)
    options: dict[str, Any] = {"stage": stage, "sampling": how, "described": described}
    return (
        Live(mechanism, pair.related(relation), seed=seed, index=index, **options)
        for index, pair in enumerate(given)
    )


def listed_pairs(pairs: Any) -> Iterable[Pair]:
    """One pair, or several; those of a list are all checked before the first draw."""
    single = (tuple, Pair, str, bytes, dict, np.ndarray)
    if isinstance(pairs, single) or not isinstance(pairs, Iterable):
        return (as_pair(pairs),)
    if not isinstance(pairs, Sequence):
        return map(as_pair, pairs)
    found = [as_pair(pair) for pair in pairs]
    if not found:
        raise InvalidInput("there is no pair to look at: the list is empty")
    return found


def one_source(
    target: Any, pair: Any, *, rng: Seed, sampling: Sampling | None, stage: int = 0
) -> Source:
    """The source of a method that looks at one pair only; `stage` is where its streams begin."""
    found = list(sources(target, pair, rng=rng, sampling=sampling, stage=stage))
    if len(found) != 1:
        raise InvalidInput(f"this method looks at one pair, got {len(found)}")
    return found[0]


def warned(batch: Batch) -> tuple[str, ...]:
    """Warn of signs of dependence, and return the sentences for results."""
    found = tuple(symptoms(batch.p, batch.q))
    for text in found:
        warn(text, DependenceWarning)
    return found
