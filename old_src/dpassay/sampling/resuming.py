"""Drawing into a store: one process at a time; cells that are there are read, the others are drawn.

Interrupted runs resume, and damaged parts are set aside and drawn again.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpassay._version import __version__
from dpassay.errors import StoreError, StoreWarning, warn
from dpassay.outputs.canonical import Outputs
from dpassay.sampling import store_files as files
from dpassay.sampling.job import CELLS, MOST
from dpassay.sampling.store_files import Damaged, Entry, Manifest, Part, PartWriter, disk_errors

try:
    import fcntl as _fcntl
except ImportError:  # Windows: the last run takes a store over, and the one before stops
    _fcntl = None  # type: ignore[assignment]

fcntl: Any = _fcntl
#: Seconds to wait for a lock.
_PATIENCE = 5.0


@contextlib.contextmanager
def open_stage(
    store: str | Path, here: Entry, *, seed: int, key: tuple[int, int]
) -> Iterator[Stage]:
    """A stage of a store, for this process alone; refuses draws that do not belong into the store."""
    files.arrow()
    root = Path(store).absolute()
    index, stage = key
    files.manifest_of(root)  # refuses another folder before anything is written
    with disk_errors(root, "nothing was drawn"):
        (root / files.PARTS).mkdir(parents=True, exist_ok=True)
    with _locked(root):
        before = files.manifest_of(root) or Manifest(seed, {})
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
        work = f"{files.WORK}{uuid.uuid4().hex}"
        with disk_errors(root, "nothing was drawn"):
            _take_over(root)
            made = Manifest(seed, {**before.entries, index: here})
            if index not in before.entries:
                files.write_atomically(
                    root / f".{files.MANIFEST}.tmp", root / files.MANIFEST, made.to_bytes()
                )
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
        handle = os.open(root / files.LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    _handles.add(handle)
    deadline = time.monotonic() + _PATIENCE
    try:
        while not _try_lock(root, handle):
            # a worker that was being forked when its run was killed releases it in a moment
            if time.monotonic() > deadline:
                said = os.pread(handle, 200, 0).decode(errors="replace").strip()
                raise StoreError(
                    f"the store {root} is in use by {said or 'another process'}: one process draws into "
                    "a store at a time. Wait for it, end it, or give another folder"
                )
            time.sleep(0.05)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        with disk_errors(root, "nothing was drawn"):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()}, since {since}\n".encode(), 0)
        yield
        fcntl.flock(handle, fcntl.LOCK_UN)  # also where a process forked meanwhile has it
    finally:
        _handles.discard(handle)
        os.close(handle)


def _try_lock(root: Path, handle: int) -> bool:
    """Try to take the lock."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
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
        if name.startswith(
            files.WORK
        ):  # renamed first: no path leads there from one moment to the next
            os.replace(root / name, root / f"{files.GONE}{uuid.uuid4().hex}")
    for name in os.listdir(root):
        if name.startswith(files.GONE):
            shutil.rmtree(root / name, ignore_errors=True)
    files.sync_folder(root)


class Stage:
    """The parts that a store holds of a stage, and the writer of new ones."""

    def __init__(self, root: Path, writer: PartWriter) -> None:
        self.root, self.writer = root, writer
        self.refresh()

    def refresh(self) -> None:
        """List the parts again: workers that died may have saved some that nobody has seen."""
        self._parts: dict[int, list[Part]] = {}  # by the size of their cells, in order
        for part in files.list_parts(self.root, self.writer.index, self.writer.stage):
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

    def tell_unused(self, n: int, size: int) -> None:
        """Warn of draws in cells of other sizes, before n are made in cells of this one."""
        there = {one: sum(part.draws for part in parts) for one, parts in self._parts.items()}
        left = n - there.pop(size, 0)
        sizes = [one for one, draws in there.items() if draws > MOST]  # the last cell may be short
        if left > 0 and sizes:
            one = max(sizes)
            warn(
                f"{there[one]:,} draws a side are in the store {self.root} in cells of {one}, and "
                f"n = {n:,} has cells of {size}: it uses none of those, and {left:,} draws a side are "
                f"made. Up to n = {CELLS * one:,} they are used",
                StoreWarning,
            )

    def read(self, part: Part) -> tuple[Outputs, Outputs] | None:
        """The draws of a part; None, with a warning, if it is damaged and was moved to damaged/."""
        try:
            return part.read(self.writer.owner)
        except Damaged as why:
            self._parts[part.size].remove(part)
            aside = self.root / files.DAMAGED
            with disk_errors(self.root, "nothing else was touched"):
                aside.mkdir(exist_ok=True)
                os.replace(part.path, aside / part.path.name)
                files.sync_folder(part.path.parent)
            warn(
                f"a part of the store {self.root} cannot be used: {why}. It was set aside "
                f"({aside / part.path.name}), and its {part.draws:,} draws a side are drawn again",
                StoreWarning,
            )
            return None
