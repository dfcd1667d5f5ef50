"""Drawing into a store: one process at a time, what is there is read, and what is damaged set aside."""

from __future__ import annotations

import bisect
import contextlib
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpassay._version import __version__
from dpassay.errors import StoreError, StoreWarning
from dpassay.outputs.canonical import Outputs
from dpassay.sampling.manifest import (
    DAMAGED,
    GONE,
    LOCK,
    MANIFEST,
    WORK,
    Entry,
    Manifest,
    manifest_of,
)
from dpassay.sampling.parts import (
    PARTS,
    Damaged,
    Part,
    Shelf,
    arrow,
    explained,
    listed,
    sync_folder,
    write_whole,
)

try:
    import fcntl as _fcntl
except ImportError:  # Windows: the last to come takes a store over, and who drew before stops
    _fcntl = None  # type: ignore[assignment]

fcntl: Any = _fcntl
#: Seconds to wait for a lock.
_PATIENCE = 5.0


@contextlib.contextmanager
def opened(store: str | Path, here: Entry, *, seed: int, key: tuple[int, int]) -> Iterator[Stage]:
    """A stage of a store, for this process alone; refuses what does not belong into it."""
    arrow()
    root = Path(store).absolute()
    index, stage = key
    manifest_of(root)  # refuses what is no store before anything is written
    with explained(root, "nothing was drawn"):
        (root / PARTS).mkdir(parents=True, exist_ok=True)
    with _locked(root):
        before = manifest_of(root)
        if before is not None and before.seed != seed:
            raise StoreError(
                f"the store {root} holds draws from seed {before.seed}, and these would be from seed "
                f"{seed}: give rng={before.seed} to go on, or another folder"
            )
        if before is not None and before.version != __version__:
            raise StoreError(
                f"the store {root} was made with dpassay {before.version}, and this is {__version__}: "
                "draws of two versions are not mixed. Go on with that version, or give another folder; "
                "dp.Store reads what is there"
            )
        entries = {} if before is None else before.entries
        if index in entries:
            entries[index].check(here, root)
        work = f"{WORK}{uuid.uuid4().hex}"
        with explained(root, "nothing was drawn"):
            _take_over(root)
            made = Manifest(seed, {**entries, index: here})
            if index not in entries:
                write_whole(root, MANIFEST, made.to_bytes())
            (root / work).mkdir()
        try:
            yield Stage(root, Shelf(root, work, index, stage, made.owner(index)))
        finally:
            shutil.rmtree(root / work, ignore_errors=True)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Hold the store; the lock goes with the process, however it ends."""
    if fcntl is None:
        yield
        return
    with explained(root, "nothing was drawn"):
        handle = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    _handles.add(handle)
    try:
        try:
            _wait_for(handle)
        except BlockingIOError:
            said = os.pread(handle, 200, 0).decode(errors="replace").strip()
            raise StoreError(
                f"the store {root} is in use by {said or 'another process'}: one process draws into a "
                "store at a time. Wait for it, end it, or give another folder"
            ) from None
        except OSError as error:
            raise StoreError(
                f"the folder {root} cannot be locked ({error.strerror}): give one on a local disk"
            ) from None
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        with explained(root, "nothing was drawn"):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()}, since {since}\n".encode(), 0)
        yield
        fcntl.flock(handle, fcntl.LOCK_UN)  # also where a process forked meanwhile has it
    finally:
        _handles.discard(handle)
        os.close(handle)


def _wait_for(handle: int) -> None:
    """Take the lock; a worker that was being forked when its run was killed lets go in a moment."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


_handles: set[int] = set()


def _let_go() -> None:
    """A forked process does not hold the locks of its parent: they end with the parent."""
    for handle in _handles:
        with contextlib.suppress(OSError):
            os.close(handle)
    _handles.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _take_over(root: Path) -> None:
    """Remove the folders of runs before: whoever still works for them can save nothing more."""
    for entry in list(os.scandir(root)):
        if entry.name.startswith(WORK):
            os.replace(
                entry.path, root / f"{GONE}{uuid.uuid4().hex}"
            )  # at once: no path leads there
    for entry in list(os.scandir(root)):
        if entry.name.startswith(GONE):
            shutil.rmtree(entry.path, ignore_errors=True)
    sync_folder(root)


class Stage:
    """What a store holds of a stage, and where its tasks are saved."""

    def __init__(self, root: Path, shelf: Shelf) -> None:
        self.root, self.shelf = root, shelf
        self.refresh()

    def refresh(self) -> None:
        """Look what is there; workers that died may have saved what nobody has seen."""
        here = (self.shelf.index, self.shelf.stage)
        self._parts: dict[int, list[Part]] = {}  # by the size of their cells, in order
        for part in listed(self.root):
            if (part.index, part.stage) == here:
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
        """The draws of a part; None if it is damaged: then it is set aside, and that is said."""
        try:
            return part.read(self.shelf.owner)
        except Damaged as why:
            self._parts[part.size].remove(part)
            aside = self.root / DAMAGED
            with explained(self.root, "nothing else was touched"):
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
