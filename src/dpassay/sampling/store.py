"""Stores: draws on the disk as they come, so that nothing is lost when a run is killed.

    runs/
      store.json     what is in it: seed, versions, and for every pair the mechanism and the inputs
      parts/         the draws, a file for each task; see `store_files`
      damaged/       parts that did not hold what was saved
      lock           held by the process that draws, as long as it lives
      work-…/        of the run that draws: files that are not yet complete

A store belongs to a seed and, pair by pair, to a mechanism and its inputs. Draws have addresses: pair,
stage and cell. A cell that is there is read, one that is not is drawn, whichever run asks for it.
Interrupted runs resume, and no run gets a draw twice. One process at a time draws into a store.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import shutil
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import BoolArray
from dpassay._version import __version__
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
from dpassay.sampling.store_files import (
    DAMAGED,
    GONE,
    LOCK,
    MANIFEST,
    PARTS,
    WORK,
    Damaged,
    Entry,
    Manifest,
    Part,
    PartWriter,
    arrow,
    disk_errors,
    list_parts,
    manifest_of,
    sync_folder,
    write_atomically,
)

try:
    import fcntl as _fcntl
except ImportError:  # Windows: the last run takes a store over, and the one before stops
    _fcntl = None  # type: ignore[assignment]

fcntl: Any = _fcntl
#: Seconds to wait for a lock.
_PATIENCE = 5.0


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

    def samples(self, pair: int | None = None) -> Any:
        """The draws on a pair (its number; needed if there are several) as a pool.

        Of a mechanism that draws from the seed every cell counts once, however often it was drawn; of one
        with a randomness of its own all draws do.
        """
        from dpassay.sampling.samples import Samples

        index, entry = self._entry(pair)
        arrow()
        owner, blocks = self._manifest.owner(index), []
        for part, cells in self._counted(index):
            try:
                sides = part.read(owner)
            except Damaged as why:
                warnings.warn(
                    f"a part of the store {self.path} cannot be used and is left out: {why} "
                    f"({part.path.name}, {int(cells.sum()) * part.size:,} draws a side); drawing again "
                    "replaces it",
                    StoreWarning,
                    stacklevel=2,
                )
                continue
            rows = np.repeat(cells, part.size)
            blocks.append(sides if rows.all() else (sides[0][rows], sides[1][rows]))
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


# --- drawing into a store


@contextlib.contextmanager
def open_stage(
    store: str | Path, here: Entry, *, seed: int, key: tuple[int, int]
) -> Iterator[Stage]:
    """A stage of a store, for this process alone; refuses draws that do not belong into the store."""
    arrow()
    root = Path(store).absolute()
    index, stage = key
    manifest_of(root)  # refuses another folder before anything is written
    with disk_errors(root, "nothing was drawn"):
        (root / PARTS).mkdir(parents=True, exist_ok=True)
    with _locked(root):
        before = manifest_of(root) or Manifest(seed, {})
        if before.seed != seed:
            raise StoreError(
                f"the store {root} holds draws from seed {before.seed}, and these would be from seed "
                f"{seed}: give rng={before.seed} to go on, or another folder"
            )
        if before.version != __version__:
            raise StoreError(
                f"the store {root} was made with dpassay {before.version}, and this is {__version__}: "
                "draws of two versions are not mixed. Go on with that version, or give another folder; "
                "dp.Store reads what is there"
            )
        if index in before.entries:
            before.entries[index].check(here, root)
        work = f"{WORK}{uuid.uuid4().hex}"
        with disk_errors(root, "nothing was drawn"):
            _take_over(root)
            made = Manifest(seed, {**before.entries, index: here})
            if index not in before.entries:
                write_atomically(root / f".{MANIFEST}.tmp", root / MANIFEST, made.to_bytes())
            (root / work).mkdir()
        try:
            yield Stage(root, PartWriter(root, work, index, stage, made.owner(index)))
        finally:
            shutil.rmtree(root / work, ignore_errors=True)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Hold the store; the lock ends with the process, however that ends."""
    if fcntl is None:
        yield
        return
    with disk_errors(root, "nothing was drawn"):
        handle = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    _handles.add(handle)
    try:
        _lock(root, handle)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        with disk_errors(root, "nothing was drawn"):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()}, since {since}\n".encode(), 0)
        yield
        fcntl.flock(handle, fcntl.LOCK_UN)  # also where a process forked meanwhile has it
    finally:
        _handles.discard(handle)
        os.close(handle)


def _lock(root: Path, handle: int) -> None:
    """Take the lock; a worker that was being forked when its run was killed releases it in a moment."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                said = os.pread(handle, 200, 0).decode(errors="replace").strip()
                raise StoreError(
                    f"the store {root} is in use by {said or 'another process'}: one process draws into "
                    "a store at a time. Wait for it, end it, or give another folder"
                ) from None
            time.sleep(0.05)
        except OSError as error:
            raise StoreError(
                f"the folder {root} cannot be locked ({error.strerror}): give one on a local disk"
            ) from None


_handles: set[int] = set()


def _release() -> None:
    """A forked process does not hold the locks of its parent: they end with the parent."""
    for handle in _handles:
        with contextlib.suppress(OSError):
            os.close(handle)
    _handles.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release)


def _take_over(root: Path) -> None:
    """Remove the folders of earlier runs, so that workers left behind can save nothing more."""
    for name in os.listdir(root):
        if name.startswith(WORK):  # renamed first: no path leads there from one moment to the next
            os.replace(root / name, root / f"{GONE}{uuid.uuid4().hex}")
    for name in os.listdir(root):
        if name.startswith(GONE):
            shutil.rmtree(root / name, ignore_errors=True)
    sync_folder(root)


class Stage:
    """The parts that a store holds of a stage, and the writer of new ones."""

    def __init__(self, root: Path, writer: PartWriter) -> None:
        self.root, self.writer = root, writer
        self.refresh()

    def refresh(self) -> None:
        """List the parts again: workers that died may have saved some that nobody has seen."""
        self._parts: dict[int, list[Part]] = {}  # by the size of their cells, in order
        for part in list_parts(self.root, self.writer.index, self.writer.stage):
            self._parts.setdefault(part.size, []).append(part)

    def at(self, cell: int, size: int) -> Part | None:
        """A part that holds a cell of a size."""
        parts = self._parts.get(size, [])
        place = bisect.bisect_right(parts, cell, key=lambda part: part.first) - 1
        return parts[place] if place >= 0 and cell < parts[place].last else None

    def after(self, cell: int, size: int, limit: int) -> int:
        """The next stored cell of a size, or `limit`."""
        parts = self._parts.get(size, [])
        place = bisect.bisect_right(parts, cell, key=lambda part: part.first)
        return min(parts[place].first, limit) if place < len(parts) else limit

    def read(self, part: Part) -> tuple[Outputs, Outputs] | None:
        """The draws of a part; None, with a warning, if it is damaged and was moved to damaged/."""
        try:
            return part.read(self.writer.owner)
        except Damaged as why:
            self._parts[part.size].remove(part)
            aside = self.root / DAMAGED
            with disk_errors(self.root, "nothing else was touched"):
                aside.mkdir(exist_ok=True)
                os.replace(part.path, aside / part.path.name)
                sync_folder(part.path.parent)
            warnings.warn(
                f"a part of the store {self.root} cannot be used: {why}. It was set aside "
                f"({aside / part.path.name}), and its {part.draws:,} draws a side are drawn again",
                StoreWarning,
                stacklevel=2,
            )
            return None
