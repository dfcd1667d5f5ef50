"""Budgets of draws: how n draws, or a time, are divided into training and testing draws.

With a time budget, `Clock` decides. A pilot measures what a draw costs, with streams of its own and
outside any store, and decides how many draws train. How many test is decided when learning is done, by
the time that is left. Both are functions of the clock and of draws that the test never sees, so the test
is as exact as with a number that was given.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

from dpassay import validation as checks
from dpassay.errors import InvalidInput, NotEnoughDraws, TooManyAskedFor
from dpassay.sampling.samples import Batch, Live, Source

#: The share of the draws that learn, and the most per side that do: more improve no choice.
TRAIN, ENOUGH = 0.25, 50_000
#: The stage at which the streams of pilots begin, past all that audits and replays use.
_STAGE = 1 << 18
#: A pilot grows until it takes this share of the time, or is this large.
_SHARE, _LARGE = 0.02, 1 << 15
#: Draws of a pilot that learning is tried on, with a second or more and with less; the part of the time
#: from which on a trial is slow.
_TRIAL, _FEW, _SLOW = 4096, 512, 0.1
#: The most of the time that learning may take, as far as a pilot tells; what is kept back for the rest.
_LEARN, _BACK = 0.4, 0.03
#: The least that learn and test; the most that test, whatever the time.
_LEAST, _MOST = 4, 10**9


@dataclass(frozen=True)
class Budget:
    """Training and testing draws, on either side."""

    learn: tuple[int, int]
    test: tuple[int, int]

    @property
    def total(self) -> tuple[int, int]:
        return self.learn[0] + self.test[0], self.learn[1] + self.test[1]

    def draws(self, pairs: int) -> int:
        """Draws a side in all, if there are training draws on all pairs and testing draws on one."""
        return pairs * max(self.learn) + max(self.test)


def training(draws: int, train: float | None) -> int:
    """How many of so many draws of an audit learn; `train` is the share that was asked for."""
    return min(round(TRAIN * draws), ENOUGH) if train is None else round(train * draws)


def split(
    source: Source,
    n: int | None,
    share: float,
    *,
    least: tuple[int, int] = (2, 2),
    most: int | None = None,
) -> Budget:
    """`n` draws a side, or all that samples hold, of which about `share` train.

    At least `least` = (training, testing) on either side, at most `most` training.
    """
    total = totals(source, n, least=sum(least))
    a, b = (
        max(least[0], min(round(share * side), most or side, side - least[1])) for side in total
    )
    return Budget((a, b), (total[0] - a, total[1] - b))


def three_stages(
    source: Source, n: int | None, first: int | None, later: int | None
) -> tuple[int, int]:
    """Draws a side of a first stage, and of each of two later ones: thirds of n, or as said."""
    if first is None or later is None:
        total = min(totals(source, n, least=30))
        if first is None:
            first = total - 2 * (total // 3 if later is None else later)
        later = (total - first) // 2 if later is None else later
    if first < 10 or later < 2:
        raise InvalidInput(f"{n} draws a side leave {first} and {later} for the stages: give more")
    return first, later


def totals(source: Source, n: int | None, *, least: int = 2, name: str = "n") -> tuple[int, int]:
    """`n` on both sides, or all draws of samples; a mechanism needs a number."""
    left = source.remaining
    if n is not None:
        asked = checks.whole(name, n, at_least=least)
        if left is not None and 0 < min(left) < asked:
            raise TooManyAskedFor(
                f"{name} = {asked:,} draws per side were asked for, and there are {left[0]:,} and "
                f"{left[1]:,}; ask for fewer, or leave {name} out for all of them"
            )
        return asked, asked
    if left is None:
        raise InvalidInput(f"{name} must be given: how many draws per side to make")
    if not max(left):
        source.deal((1, 1))  # says that the samples are used up
    if min(left) < least:
        raise NotEnoughDraws(
            f"at least {least} draws per side are needed, there are {left[0]:,} and {left[1]:,}"
        )
    return left


class Clock:
    """Divides a time budget, from now on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        return self.seconds - self.elapsed

    def learning(
        self,
        source: Live,
        pairs: int,
        share: float,
        most: int | None,
        trial: Callable[[Batch], None],
    ) -> Budget:
        """How many draws a side train on each pair, and how many are likely to test.

        `trial` learns from the draws of a pilot: what is imported then is not imported later.
        """
        batch, self._cost = self.pilot(source)
        k = batch.sizes[0]
        fit = 0.0  # seconds that learning from a draw on either side takes
        if k >= 32:
            k = min(_TRIAL if self.left >= 1.0 else _FEW, k)
            for _ in range(2):
                start = time.perf_counter()
                trial(Batch(batch.p[:k], batch.q[:k]))
                took = time.perf_counter() - start
                fit = took / k
                # a trial that takes long may have imported what it needs: then it is made again
                if took < _SLOW * self.seconds or self.left < took:
                    break
        left = max(self.left, 0.0)
        n = left / (self._cost * (share * pairs + 1 - share))
        learn = min(share * n, _LEARN * left / (pairs * (self._cost + fit)), most or _MOST)
        test = (left - learn * pairs * (self._cost + fit)) / self._cost
        if n < 2 * _LEAST:
            needed = self.seconds - left + 2 * _LEAST * self._cost * pairs
            raise NotEnoughDraws(
                f"a draw on either input takes {self._cost:.3g} s, so that {self.seconds:g} s are enough "
                f"for {int(n)} a side: give at least {needed:.3g} s, and much more to conclude something"
            )
        sizes = [min(max(int(size), _LEAST), _MOST) for size in (learn, test)]
        return Budget((sizes[0], sizes[0]), (sizes[1], sizes[1]))

    def pilot(self, source: Live) -> tuple[Batch, float]:
        """Draws that no test uses, and the seconds that one on either side takes.

        A first call may load a model or compile code: one that takes long is no measurement.
        """
        how = dataclasses.replace(source.sampling, store=None, progress=False)
        box, pair, seed, index = source.mechanism, source.pair, source.seed, source.index
        probe = Live(box, pair, seed=seed, index=index, stage=_STAGE, sampling=how)
        probe.deal((1, 1))
        k = 1
        while True:
            start = time.perf_counter()
            batch = probe.deal((k, k))
            took = max(time.perf_counter() - start, 1e-9)
            if took >= _SHARE * self.seconds or k >= _LARGE:
                return batch, took / k
            k = min(_LARGE, int(k * min(max(1.5 * _SHARE * self.seconds / took, 2), 16)))

    def testing(self, budget: Budget, sources: list[Live], use: float) -> Budget:
        """How many draws a side test: what fits in the time, if using one takes `use` seconds."""
        cost = self._cost
        if all(source.sampling.store is None for source in sources):  # else some were only read
            drawn = sum(source.drawn for source in sources)
            if drawn:
                cost = sum(source.spent for source in sources) / drawn
        room = (1 - _BACK) * self.left / (len(sources) * (cost + use))
        size = min(max(int(room), _LEAST), _MOST)
        return Budget(budget.learn, (size, size))
