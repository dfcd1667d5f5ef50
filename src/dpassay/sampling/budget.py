"""How n draws are split into those that learn and those that test.

The share is the caller's. With a time budget `clock` decides; `learning.rare_events` may take some of the
draws that test.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpassay import validation as checks
from dpassay.errors import InvalidInput, NotEnoughDraws, TooManyAskedFor
from dpassay.sampling.samples import Source


@dataclass(frozen=True)
class Budget:
    """Draws that learn and draws that test, on either side."""

    learn: tuple[int, int]
    test: tuple[int, int]

    @property
    def total(self) -> tuple[int, int]:
        """All of them."""
        return self.learn[0] + self.test[0], self.learn[1] + self.test[1]

    def draws(self, pairs: int) -> int:
        """Draws a side to make in all, if all pairs learn and one is tested."""
        return pairs * max(self.learn) + max(self.test)


def split(
    source: Source,
    n: int | None,
    share: float,
    *,
    least: tuple[int, int] = (2, 2),
    most: int | None = None,
    name: str = "n",
) -> Budget:
    """`n` draws a side, or all that samples hold, of which about `share` learn.

    At least `least` = (learning, testing) on either side, at most `most` learning.
    """
    total = totals(source, n, least=sum(least), name=name)
    learn = tuple(_learning(side, share, least, most) for side in total)
    return Budget((learn[0], learn[1]), (total[0] - learn[0], total[1] - learn[1]))


def _learning(total: int, share: float, least: tuple[int, int], most: int | None) -> int:
    wanted = round(share * total)
    if most is not None:
        wanted = min(wanted, most)
    return max(least[0], min(wanted, total - least[1]))


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
    if n is not None:
        asked = checks.whole(name, n, at_least=least)
        there = source.remaining
        if there is not None and 0 < min(there) < asked:
            raise TooManyAskedFor(
                f"{name} = {asked:,} draws per side were asked for, and there are {there[0]:,} and "
                f"{there[1]:,}; ask for fewer, or leave {name} out for all of them"
            )
        return asked, asked
    left = source.remaining
    if left is None:
        raise InvalidInput(f"{name} must be given: how many draws per side to make")
    if not max(left):
        source.deal((1, 1))  # says that the samples are used up
    if min(left) < least:
        raise NotEnoughDraws(
            f"at least {least} draws per side are needed, there are {left[0]:,} and {left[1]:,}"
        )
    return left
