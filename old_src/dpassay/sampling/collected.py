"""Draws that are there already, as a pool: arrays, data frames and files, and stores."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import BoolArray
from dpassay.errors import (
    BadOutput,
    DependenceWarning,
    DependentDraws,
    InvalidInput,
    NotEnoughDraws,
    StoreError,
    StoreWarning,
    warn,
)
from dpassay.outputs.canonical import (
    Outputs,
    align,
    all_of,
    arranged,
    check_containers,
    concatenate,
    from_columns,
)
from dpassay.privacy.relations import Pair, as_pair
from dpassay.sampling.columns import ABSENT, Table
from dpassay.sampling.dependence import (
    labels_like,
    one_sided_repeats,
    repeated_rows,
    shared_rows,
    sorted_note,
)
from dpassay.sampling.draw import Seed, seed_of
from dpassay.sampling.file_formats import TABLES_OF_FILES
from dpassay.sampling.files import column_notes, frame_pair, read_pair
from dpassay.sampling.job import stream
from dpassay.sampling.repeated_draws import fingerprint_of
from dpassay.sampling.samples import Batch, Samples, warned
from dpassay.sampling.store_files import Damaged, Entry, Part, arrow, list_parts, manifest_of
from dpassay.sampling.text_tables import Marks

#: What stands for the inputs of samples, where nobody says what they were.
UNNAMED = "samples p", "samples q"
#: So many names of files are enough to see that a list holds no outputs.
_LOOKED_AT = 3


def from_samples(
    p: Any,
    q: Any,
    *,
    pair: tuple[Any, Any] | Pair | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    max_bytes: int | None = None,
    decimal: str = ".",
    thousands: str = "",
    encoding: str = "utf-8",
    rng: Seed = 0,
) -> Samples:
    """Outputs that were collected elsewhere, as a pool of draws.

    `p` and `q` are arrays or tables of outputs on the first and the second input, or paths of .csv,
    .jsonl, .parquet or .npy files, one output a row. Columns of files and frames are matched by name;
    `columns` says which of them are outputs, `drop` which are not (an identifier, a time stamp). Of a
    file at most `max_bytes` are read, also decompressed: 2 GiB unless more are asked for. Numbers in
    text files have a `decimal` mark ("." or ",") and may have a separator of `thousands`; `encoding` is
    that of the text ("cp1252"). Rows are shuffled by the seed, since files may be sorted. The two may
    differ in length. Every row must be an independent run of the mechanism: copied rows are refused.
    """
    seed = seed_of(rng)
    marks = Marks(decimal, thousands, encoding).check()
    are_files = [isinstance(side, (str, Path)) for side in (p, q)]
    if any(are_files) and not all(are_files):
        raise InvalidInput("p and q must both be files, or neither")
    tables = (
        read_pair(p, q, columns=columns, drop=drop, max_bytes=max_bytes, marks=marks)
        if all(are_files)
        else frame_pair(p, q, columns=columns, drop=drop)
    )
    if tables is None:
        sides = _outputs(p, q)
    else:
        sparse = any(table.sparse for table in tables)
        sides = [
            all_of(_dictionaries(t)) if sparse else from_columns(t.names, t.columns) for t in tables
        ]
    _check_alike(sides)
    batch = Batch.of(*sides)
    if shared := shared_rows(batch.p, batch.q):
        raise DependentDraws(
            f"{shared}: the two seem to hold the same draws, in part or in whole, in another order or "
            "format. Give draws of their own for each input"
        )
    copied, certain = repeated_rows(batch.p, batch.q) or (None, False)
    if copied is not None:
        copied += (
            ": rows seem to have been copied (a join gone wrong?), and every guarantee assumes that each "
            "is a run of its own. Undo the step that copied them: dropping equal rows would also drop "
            "draws that are equal by chance"
        )
    if certain:
        raise DependentDraws(copied)
    doubts = warned(batch)
    remarks = (*(() if tables is None else column_notes(*tables)), *sorted_note(batch.p, batch.q))
    repeats, copies = one_sided_repeats(batch.p, batch.q) or (None, False)
    if repeats is not None and not copies:
        remarks += (repeats,)
    for doubt in (copied, repeats if copies else None, labels_like(batch.p, batch.q)):
        if doubt is not None:
            warn(doubt, DependenceWarning)
            doubts += (doubt,)
    shuffled = (
        side[stream(seed, 0, 1 << 21, index).permutation(len(side))]
        for index, side in enumerate((batch.p, batch.q))
    )
    if pair is None:
        pair = (Path(p).name, Path(q).name) if all(are_files) else UNNAMED
    return Samples(
        *shuffled,
        pair=as_pair(pair),
        seed=seed,
        doubts=doubts,
        files=tuple(table.origin for table in tables) if tables and all(are_files) else (),
        remarks=remarks,
        digest=fingerprint_of(batch.p, batch.q),
    )


def _outputs(p: Any, q: Any) -> list[Outputs]:
    """Outputs that are in no table."""
    sides = []
    for name, given in (("p", p), ("q", q)):
        if _are_paths(given):
            raise InvalidInput(
                f"{name} holds names of files, not outputs: {checks.shown(given[0])} is a file. Where "
                f"each file is one output, such as a synthetic table, read them: {TABLES_OF_FILES}"
            )
        try:
            sides.append(all_of(given))
        except BadOutput as error:
            raise InvalidInput(f"{name} cannot be read as outputs: {error}") from None
    return sides


def _are_paths(given: Any) -> bool:
    """Whether a list holds names of files that exist, which would be audited as text."""
    if not isinstance(given, (list, tuple, np.ndarray)):
        return False
    first = list(given[:_LOOKED_AT])
    return bool(first) and all(isinstance(x, (str, Path)) and os.path.isfile(x) for x in first)


def _dictionaries(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, without the keys that are absent."""
    rows = zip(*(column.tolist() for column in table.columns), strict=True)
    named = (zip(table.names or (), row, strict=True) for row in rows)
    return [{key: cell for key, cell in row if cell is not ABSENT} for row in named]


def _check_alike(sides: Sequence[Outputs]) -> None:
    """Refuse sides without outputs, and outputs that NumPy has changed on one side only."""
    for name, side in zip("pq", sides, strict=True):
        if len(side) == 0:
            raise NotEnoughDraws(f"{name} holds no outputs")
    widths = [side.numbers.shape[1] for side in sides if side.is_plain]
    keyed = any(side.structures[0][0] == "dict" for side in sides)  # a key may be the leak
    why = ""
    if len(set(widths)) > 1 and not keyed:
        why = f"outputs have {widths[0]} coordinates in p and {widths[1]} in q"
    try:
        check_containers(frozenset().union(*(side.containers for side in sides)))
    except BadOutput as error:
        why = why or str(error)
    if why:
        raise InvalidInput(f"p and q do not go together: {why}")


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
        return sum(map(self._draws, self._manifest.entries))

    def __repr__(self) -> str:
        if not self._manifest.entries:
            return f"Store({str(self.path)!r}): empty"
        first = next(iter(self._manifest.entries.values()))
        lines = [
            f"Store({str(self.path)!r}): {first.name}, seed {self.seed}, dpassay {self.version}"
        ]
        for index, entry in self._manifest.entries.items():
            lines.append(f"  {index}: {self._draws(index):,} draws a side on {entry.pair}")
        return "\n".join(lines)

    def samples(self, pair: int | None = None) -> Samples:
        """The draws on a pair (its number; needed if there are several) as a pool.

        Of a mechanism that draws from the seed every cell counts once, however often it was drawn; of one
        with a randomness of its own all draws do.
        """
        index, entry = self._entry(pair)
        arrow()
        owner, blocks = self._manifest.owner(index), []
        for part, cells in self._counted(index):
            try:
                sides = part.read(owner)
            except Damaged as why:
                warn(
                    f"a part of the store {self.path} cannot be used and is left out: {why} "
                    f"({part.path.name}, {int(cells.sum()) * part.size:,} draws a side); drawing again "
                    "replaces it",
                    StoreWarning,
                )
                continue
            rows = np.repeat(cells, part.size)
            blocks.append(sides if rows.all() else (sides[0][rows], sides[1][rows]))
        if not blocks:
            raise NotEnoughDraws(f"the store {self.path} holds no draws on {entry.pair}")
        p, q = (concatenate([block[side] for block in blocks]) for side in (0, 1))
        p, q = arranged(p, q) if entry.calls else align([p, q])
        copied, certain = repeated_rows(p, q) or ("", False)
        if certain:
            raise DependentDraws(
                f"{copied}: the mechanism carries a random state of its own that started again with a "
                "run. Draw anew, from the `rng` it is given"
            )
        return Samples(
            p,
            q,
            pair=entry.pair,
            seed=self.seed,
            replayable=entry.replayable,
            doubts=warned(Batch(p, q)),
            digest=fingerprint_of(p, q),  # a replay needs others than those of the audit
        )

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

    def _draws(self, index: int) -> int:
        return sum(int(cells.sum()) * part.size for part, cells in self._counted(index))

    def _counted(self, index: int) -> list[tuple[Part, BoolArray]]:
        """The parts of a pair, and which of their cells count."""
        found = list_parts(self.path, index)
        if not self._manifest.entries[index].replayable:
            return [(part, np.ones(part.last - part.first, dtype=bool)) for part in found]
        # cells of one address come from one stream, whatever their size: each counts once, and first in
        # the size of which there are most draws
        most = Counter[tuple[int, int]]()
        for part in found:
            most[part.stage, part.size] += part.draws
        taken = {
            stage: np.zeros(max(part.last for part in found if part.stage == stage), dtype=bool)
            for stage in {part.stage for part in found}
        }
        kept = []
        for part in sorted(found, key=lambda p: (p.stage, -most[p.stage, p.size], p.size, p.first)):
            cells = taken[part.stage][part.first : part.last]
            if not cells.all():
                kept.append((part, ~cells))
                cells[:] = True
        return sorted(kept, key=lambda one: (one[0].stage, one[0].first))
