"""Stores: draws on the disk as they come, so that nothing is lost when a run ends early.

    runs/
      store.json     what is in it: seed, versions, and for every pair the mechanism and the inputs
      parts/         the draws, a file for each task; see `parts`
      damaged/       parts that did not hold what was saved
      lock           held by the process that draws, as long as it lives
      work-…/        of the run that draws: what is not yet in place

A store belongs to a seed and, pair by pair, to a mechanism and its inputs. Draws have addresses: pair,
stage and cell. A cell that is there is read, one that is not is drawn, whichever run asks for it, so that
a run that was killed goes on where it was, and no run gets a draw twice.

This module reads them. A run goes on in `resuming`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import BoolArray
from dpassay.errors import (
    DependenceWarning,
    DependentDraws,
    InvalidInput,
    NotEnoughDraws,
    StoreError,
    StoreWarning,
)
from dpassay.outputs.canonical import Outputs, align, arranged, concatenate
from dpassay.privacy.pairs import Pair
from dpassay.sampling.copies import fingerprint_of
from dpassay.sampling.dependence import repeated_rows, symptoms
from dpassay.sampling.manifest import Entry, manifest_of
from dpassay.sampling.parts import Damaged, Part, arrow, listed


class Store:
    """The draws in a folder, as `Sampling(store=…)` or `dpassay draw` left them.

    >>> import dpassay as dp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> way = dp.Sampling(store=folder)
    >>> drawn = dp.draw(dp.zoo.Laplace(1.0), (0.0, 1.0), n=1000, rng=0, sampling=way)
    >>> store = dp.Store(folder)
    >>> len(store), len(store.samples())
    (1000, 1000)
    """

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, (str, Path)):
            raise InvalidInput(f"a store is a folder, got {checks.shown(path)}")
        self.path = Path(path).absolute()
        found = manifest_of(self.path)
        if found is None:
            raise StoreError(f"there is no store of draws in {self.path}")
        self._manifest = found

    @property
    def seed(self) -> int:
        """What all its draws are derived from."""
        return self._manifest.seed

    @property
    def version(self) -> str:
        """The version of dpassay that drew."""
        return self._manifest.version

    @property
    def pairs(self) -> dict[int, Pair]:
        """The pairs it holds draws on, by their numbers."""
        return {index: entry.pair for index, entry in self._manifest.entries.items()}

    def mechanism(self, pair: int | None = None) -> dict[str, str]:
        """What drew: name, version, digest of the source, parameters."""
        return dict(self._entry(pair)[1].mechanism)

    def __len__(self) -> int:
        """Draws a side, of all pairs together."""
        return sum(held.draws for index in self._manifest.entries for held in self._held(index))

    def __repr__(self) -> str:
        if not self._manifest.entries:
            return f"Store({str(self.path)!r}): empty"
        first = next(iter(self._manifest.entries.values()))
        lines = [
            f"Store({str(self.path)!r}): {first.name}, seed {self.seed}, dpassay {self.version}"
        ]
        for index, entry in self._manifest.entries.items():
            draws = sum(held.draws for held in self._held(index))
            lines.append(f"  {index}: {draws:,} draws a side on {entry.pair}")
        return "\n".join(lines)

    def samples(self, pair: int | None = None) -> Any:
        """The draws on a pair (its number; needed if there are several) as a pool.

        Of a mechanism that draws from the seed every cell counts once, however often it was drawn; of one
        with a randomness of its own all draws do.
        """
        from dpassay.sampling.samples import Samples

        index, entry = self._entry(pair)
        arrow()
        blocks = []
        for held in self._held(index):
            try:
                blocks.append(held.read())
            except Damaged as why:
                warnings.warn(
                    f"a part of the store {self.path} cannot be used and is left out: {why} "
                    f"({held.part.path.name}, {held.draws:,} draws a side); drawing again replaces it",
                    StoreWarning,
                    stacklevel=2,
                )
        if not blocks:
            raise NotEnoughDraws(f"the store {self.path} holds no draws on {entry.pair}")
        p, q = (concatenate([block[side] for block in blocks]) for side in (0, 1))
        p, q = arranged(p, q) if entry.calls else align([p, q])
        if copied := repeated_rows(p, q):
            raise DependentDraws(
                f"{copied}: the mechanism carries a random state of its own that started again with a "
                "run. Draw anew, from the `rng` it is given"
            )
        doubts = tuple(symptoms(p, q))
        for text in doubts:
            warnings.warn(text, DependenceWarning, stacklevel=2)
        found = Samples(
            p, q, pair=entry.pair, seed=self.seed, replayable=entry.replayable, doubts=doubts
        )
        found.digest = fingerprint_of(p, q)  # a replay needs others than those of the audit
        return found

    def _entry(self, pair: int | None) -> tuple[int, Entry]:
        entries = self._manifest.entries
        if pair is None and len(entries) == 1:
            return next(iter(entries.items()))
        if pair not in entries:
            known = "; ".join(f"{index}: {entry.pair}" for index, entry in entries.items())
            raise InvalidInput(
                f"pair must be the number of one of the pairs in the store ({known}), got "
                f"{checks.shown(pair)}"
            )
        return int(pair), entries[pair]

    def _held(self, index: int) -> list[_Held]:
        """What counts of the parts of a pair."""
        found = [part for part in listed(self.path) if part.index == index]
        owner = self._manifest.owner(index)
        if not self._manifest.entries[index].replayable:
            return [_Held(p, np.ones(p.last - p.first, dtype=bool), owner) for p in found]
        # cells of one address come from one stream, whatever their size: each counts once, and first in
        # the size of which there are most draws
        most = Counter[tuple[int, int]]()
        for part in found:
            most[part.stage, part.size] += part.draws
        taken: dict[int, BoolArray] = {}
        kept = []
        for part in sorted(found, key=lambda p: (p.stage, -most[p.stage, p.size], p.size, p.first)):
            cells = taken.get(part.stage, np.zeros(0, dtype=bool))
            if cells.size < part.last:
                cells = np.pad(cells, (0, 2 * part.last - cells.size))
            free = ~cells[part.first : part.last]
            cells[part.first : part.last] = True
            taken[part.stage] = cells
            if free.any():
                kept.append(_Held(part, free, owner))
        return sorted(kept, key=lambda held: (held.part.stage, held.part.first))


@dataclass(frozen=True, eq=False)
class _Held:
    """A part, and which of its cells count."""

    part: Part
    cells: BoolArray
    owner: str

    @property
    def draws(self) -> int:
        """Draws a side that count."""
        return int(self.cells.sum()) * self.part.size

    def read(self) -> tuple[Outputs, Outputs]:
        """The draws that count."""
        p, q = self.part.read(self.owner)
        if self.cells.all():
            return p, q
        rows = np.repeat(self.cells, self.part.size)
        return p[rows], q[rows]
