"""Evidence against a claim that may be looked at whenever one likes: draws come, and bets go on.

Draws are taken in pairs, one of either side, in the order they came. The first few only teach. Then outputs
are parted into a few cells (`learning.wagers`), and every pair of draws that follows is bet on with a guess
of how likely the cells are that earlier draws gave (`bounds.evalues`). The guess is renewed whenever there
are a sixteenth more draws, the cells whenever there are twice as many, from draws that were bet on before.
A mechanism may hand out its draws sorted: what is brought at once is shuffled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray, IntArray
from dpassay.bounds.evalues import EventBet, TailsBet, bets_against, gains, log_capital
from dpassay.errors import BadOutput, DependenceWarning, InvalidInput, NotEnoughDraws
from dpassay.learning.learner import Learner
from dpassay.learning.wagers import choose, pick
from dpassay.outputs.canonical import Outputs, check_containers, concatenate, from_raw
from dpassay.outputs.events import Event
from dpassay.outputs.partitions import Partition
from dpassay.privacy.about import About, Guarantee
from dpassay.privacy.claims import Claim
from dpassay.privacy.pairs import Pair, as_pair
from dpassay.privacy.text import as_claim
from dpassay.records import Record
from dpassay.results import Verdict, Witness, number, why_blind
from dpassay.sampling.dependence import symptoms
from dpassay.sampling.draw import Seed, seed_of, stream
from dpassay.sampling.fingerprint import same_inputs
from dpassay.sampling.samples import Batch

#: Draws a side that only teach, and the most that are kept to learn from.
_FIRST, _KEPT = 8, 1 << 14
#: A guess lasts until there are this share more draws; a pick of cells until there are √2 times as many.
_SHARE = 1 / 16
#: Values of the parameter at which the lower bound is looked for: even steps up to what is claimed, then
#: each larger than the last by this factor, or by this much where nothing is claimed.
_BELOW, _STEP, _TINY = 20, 1.01, 1e-3
#: Updates with fewer draws than these are not looked at for signs of dependence.
_LOOK = 100


@dataclass(frozen=True, eq=False)
class Drawn(Record):
    """Outputs, written down."""

    numbers: Any = field(metadata={"verbatim": True})
    structures: Any = field(metadata={"verbatim": True})
    codes: Any = field(metadata={"verbatim": True})
    rest: Any = field(metadata={"verbatim": True})
    containers: tuple[str, ...] = ()

    @classmethod
    def of(cls, outputs: Outputs) -> Drawn:
        """As they are."""
        o = outputs
        return cls(o.numbers, o.structures, o.codes, o.rest, tuple(sorted(o.containers)))

    def outputs(self) -> Outputs:
        """As they were."""
        shape = -1, max(self.numbers.shape[1:], default=0)
        numbers = self.numbers.reshape(shape)
        return Outputs(numbers, self.structures, self.codes, self.rest, frozenset(self.containers))


@dataclass(frozen=True, eq=False)
class Chapter(Record):
    """Bets on the cells of one partition: how often past draws were in them, then row by row."""

    partition: Partition
    start: int  # draws a side before the first row
    taught: IntArray  # (2, cells): past draws, by scores they had no part in
    ends: IntArray  # draws a side at the end of each row
    picks: IntArray  # (rows, bets, 2)
    hits: IntArray  # (rows, 2, cells)

    @classmethod
    def new(cls, partition: Partition, start: int, taught: IntArray, bets: int) -> Chapter:
        """Before the first row."""
        cells = taught.shape[1]
        none = np.zeros((0, bets, 2)), np.zeros((0, 2, cells))
        return cls(partition, start, taught, np.zeros(0), *none)

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = self.ends.size
        self._set(picks=self.picks.reshape(rows, -1, 2) if rows else self.picks.reshape(0, 1, 2))
        self._set(hits=self.hits.reshape(rows, 2, self.taught.shape[1]))

    @property
    def draws(self) -> int:
        """Draws a side that were bet on."""
        return int(self.ends[-1]) - self.start if self.ends.size else 0

    @property
    def past(self) -> IntArray:
        """(rows, 2, cells): what was known before each row."""
        return self.taught + np.cumsum(self.hits, axis=0) - self.hits

    @property
    def known(self) -> IntArray:
        """(2, cells): what is known now."""
        return np.asarray(self.taught + self.hits.sum(axis=0))
