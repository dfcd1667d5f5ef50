"""A progress bar that appears only when there is something to wait for."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

#: Nothing is shown before this many seconds.
PATIENCE = 2.0


class Progress:
    """A rich bar with rate and time left, on a terminal and past two seconds.

    `enabled` None decides by whether stderr is a terminal; True or False overrides.
    """

    def __init__(
        self, total: int, label: str, enabled: bool | None = None, unit: str = "draws"
    ) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.done = 0
        self._enabled = sys.stderr.isatty() if enabled is None else enabled
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def advance(self, amount: int) -> None:
        """Count `amount` more as done."""
        self.done += amount
        if not self._enabled:
            return
        if self._bar is None and time.monotonic() - self._start > PATIENCE:
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, rate=self._rate())

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self.unit),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(
            self.label, total=self.total, completed=self.done, rate=self._rate()
        )

    def _rate(self) -> str:
        return f"{self.done / max(time.monotonic() - self._start, 1e-9):,.0f}/s"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
