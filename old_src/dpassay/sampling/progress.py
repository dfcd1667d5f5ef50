"""Progress that appears only when there is something to wait for: a bar, or a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Self

from dpassay.privacy.claim_parsing import read_claim
from dpassay.privacy.claims import Claim

#: Nothing is shown before this many seconds.
PATIENCE = 2.0
#: Off a terminal a line is written after so many seconds, then each time as many again have passed.
FIRST_LINE = 15.0


class Progress:
    """A rich bar with rate and time left on a terminal; elsewhere a line on stderr now and then.

    `enabled` True shows the bar, False shows nothing, None decides by whether stderr is a terminal.
    Inside a `CallProgress` it has no bar of its own: it moves that one, and lends it its label.
    """

    def __init__(
        self, total: int, label: str = "", enabled: bool | None = None, unit: str = "draws"
    ) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.done = 0
        self._asked = enabled
        self._whole = _whole.get()
        self._start = time.monotonic()
        self._next: float | None = None  # seconds from the start to when it is shown again
        self._bar: Any = None
        self._task: Any = None
        self._cell: Any = None  # of a notebook

    def __enter__(self) -> Self:
        if self._whole is not None and self._asked is not False:
            self._whole.expect(self.total)
        return self

    def say(self, label: str, left: int | None = None) -> None:
        """What is going on now, and how much is left."""
        self.label = label
        if left is not None:
            self.total = self.done + left
        self.advance(0)

    def advance(self, amount: int) -> None:
        self.done += amount
        if self._asked is False:
            return
        if self._whole is not None:
            self._whole.part(amount, self.label, self._asked)
            return
        passed = time.monotonic() - self._start
        terminal = self._asked or sys.stderr.isatty()
        notebook = not terminal and "ipykernel" in sys.modules
        if passed < (self._next or (PATIENCE if terminal or notebook else FIRST_LINE)):
            return
        label, rate = self.label or "drawing", f"{self.done / max(passed, 1e-9):,.0f}/s"
        count = f"{self.done:,} of {self.total:,} {self.unit}"
        if terminal:
            if self._bar is None:
                self._start_bar()
            self._bar.update(
                self._task, description=label, completed=self.done, total=self.total, rate=rate
            )
        elif notebook:
            self._next = passed + 1
            bar = f'<progress max="{self.total}" value="{self.done}"></progress>'
            self._show_cell(f"{bar} {label}: {count} ({rate})")
        elif self.done < self.total:
            self._next = passed * 1.5  # the pauses grow: an hour is a dozen lines and not hundreds
            left = passed * (self.total - self.done) / max(self.done, 1)
            _say(f"{label}, {count} in {passed:.0f} s ({rate}), about {left:.0f} s left")

    def _start_bar(self) -> None:
        from rich import console, progress

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn(self.unit),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
            console=console.Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task("", rate="")

    def _show_cell(self, html: str) -> None:
        """A bar in a notebook; it needs no widgets."""
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        if self._cell is None:
            self._cell = display(HTML(html), display_id=True)
        else:
            self._cell.update(HTML(html))

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _say(text: str) -> None:
    print(f"dpassay: {text}", file=sys.stderr, flush=True)


def claim_with_progress(given: Any) -> Claim:
    """A claim, with a bar while an accountant takes long to answer."""
    with Progress(1, "asking the accountant for its curve", unit="points") as bar:

        def asked(points: int, total: int) -> None:
            bar.total = max(total, bar.done + points)
            bar.advance(points)

        return read_claim(given, asked)


def announced(claims: Callable[[float], Any]) -> Callable[[float], Any]:
    """The claims of a family; a line on stderr now and then where they take long."""
    start, due, count = time.monotonic(), FIRST_LINE, 0

    def ask(value: float) -> Any:
        nonlocal due, count
        passed, count = time.monotonic() - start, count + 1
        if passed > due:
            due = 1.5 * passed
            _say(f"{count} claims of the family tried in {passed:.0f} s, of 20 to 50")
        return claims(value)

    return ask


class CallProgress(Progress):
    """The one bar of a call that draws several times: draws inside the call advance it.

    `total` is what the call will draw as far as its budget tells; it grows if more is drawn. Until the
    draws inside say whether they are to be shown, `enabled` does. `sides` is 2 where draws on both inputs
    are counted. A whole inside another (the audit at the end of a hunt) is a part of it.
    """

    def __init__(
        self, total: int, label: str = "", enabled: bool | None = False, *, sides: int = 1
    ) -> None:
        super().__init__(total, label, enabled)
        self.sides = sides

    def __enter__(self) -> Self:
        self._token: Token[CallProgress | None] = _whole.set(self)
        return super().__enter__()

    def expect(self, amount: int) -> None:
        """So many draws come now."""
        self.total = max(self.total, self.done + self.sides * amount)
        if self._whole is not None:
            self._whole.expect(amount)

    def part(self, amount: int, label: str, asked: bool | None) -> None:
        """Draws that were made inside."""
        self._asked = asked
        self.label = label or self.label
        self.advance(self.sides * amount)

    def __exit__(self, *error: object) -> None:
        _whole.reset(self._token)
        super().__exit__(*error)


#: The bar of the call that is running. Only a `CallProgress` sets it, which is entered and left by plain
#: functions: set in a generator it would be seen by whoever asked for the next block.
_whole: ContextVar[CallProgress | None] = ContextVar("whole", default=None)
