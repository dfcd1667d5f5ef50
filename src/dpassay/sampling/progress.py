"""Progress that appears only when there is something to wait for: a bar, or a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

#: Nothing is shown before this many seconds.
PATIENCE = 2.0
#: Off a terminal a line is written after so many seconds, then each time as many again have passed.
FIRST_LINE = 15.0


class Progress:
    """A rich bar with rate and time left on a terminal; elsewhere a line on stderr now and then.

    `enabled` True shows the bar, False shows nothing, None decides by whether stderr is a terminal.
    """

    def __init__(
        self, total: int, label: str, enabled: bool | None = None, unit: str = "draws"
    ) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.done = 0
        self._enabled = sys.stderr.isatty() if enabled is None else enabled
        self._lines = enabled is None and not self._enabled
        self._start = time.monotonic()
        self._next_line = FIRST_LINE
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def advance(self, amount: int) -> None:
        """Count `amount` more as done."""
        self.done += amount
        if not self._enabled:
            if self._lines:
                self._say()
            return
        if self._bar is None and time.monotonic() - self._start > PATIENCE:
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, rate=self._rate())

    def say(self, label: str) -> None:
        """Say something else from now on."""
        self.label = label
        if self._bar is not None:
            self._bar.update(self._task, description=label)

    def _say(self) -> None:
        """A line; the pauses grow, so that an hour is a dozen lines and not hundreds."""
        passed = time.monotonic() - self._start
        if passed < self._next_line or self.done >= self.total:
            return
        self._next_line = passed * 1.5
        left = passed * (self.total - self.done) / max(self.done, 1)
        print(
            f"dpassay: {self.label}, {self.done:,} of {self.total:,} {self.unit} in {passed:.0f} s "
            f"({self._rate()}), about {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )

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
