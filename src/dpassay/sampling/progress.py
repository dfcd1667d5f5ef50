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
    Inside a `Whole` it has no bar of its own: it moves that one, and lends it its label if it has one.
    """

    def __init__(
        self, total: int, label: str = "", enabled: bool | None = None, unit: str = "draws"
    ) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.done = 0
        self._asked = enabled
        self._whole = _whole.get()
        self._start = time.monotonic()
        self._next_line = FIRST_LINE
        self._bar: Any = None
        self._cell: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._whole is not None and self._asked is not False:
            self._whole.expect(self.total)
        return self

    def advance(self, amount: int) -> None:
        self.done += amount
        if self._asked is False:
            return
        if self._whole is not None:
            self._whole.part(amount, self.label, self._asked)
            return
        if self._asked is None and not sys.stderr.isatty():
            if "ipykernel" in sys.modules:
                self._draw()
            else:
                self._say()
            return
        if self._bar is None and time.monotonic() - self._start > PATIENCE:
            self._show()
        if self._bar is not None:
            self._bar.update(
                self._task,
                description=self.label or "drawing",
                completed=self.done,
                total=self.total,
                rate=self._rate(),
            )

    def say(self, label: str, left: int | None = None) -> None:
        """What is going on now, and how much is left."""
        self.label = label
        if left is not None:
            self.total = self.done + left
        self.advance(0)

    def _say(self) -> None:
        """A line; the pauses grow, so that an hour is a dozen lines and not hundreds."""
        passed = time.monotonic() - self._start
        if passed < self._next_line or self.done >= self.total:
            return
        self._next_line = passed * 1.5
        left = passed * (self.total - self.done) / max(self.done, 1)
        print(
            f"dpassay: {self.label or 'drawing'}, {self.done:,} of {self.total:,} {self.unit} in "
            f"{passed:.0f} s ({self._rate()}), about {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )

    def _draw(self) -> None:
        """A bar in a notebook, redrawn once a second; it needs no widgets."""
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        passed = time.monotonic() - self._start
        if passed < max(PATIENCE, self._next_line - FIRST_LINE):
            return
        self._next_line = passed + 1 + FIRST_LINE
        bar = HTML(
            f'<progress max="{self.total}" value="{self.done}"></progress> {self.label or "drawing"}: '
            f"{self.done:,} of {self.total:,} {self.unit} ({self._rate()})"
        )
        if self._cell is None:
            self._cell = display(bar, display_id=True)
        else:
            self._cell.update(bar)

    def _show(self) -> None:
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

    def _rate(self) -> str:
        return f"{self.done / max(time.monotonic() - self._start, 1e-9):,.0f}/s"

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def claim_with_progress(given: Any) -> Claim:
    """A claim, with a bar while an accountant takes long to answer."""
    with Progress(1, "asking the accountant for its curve", unit="points") as bar:

        def asked(points: int, total: int) -> None:
            bar.total = max(total, bar.done + points)
            bar.advance(points)

        return read_claim(given, asked)


def announced(claims: Callable[[float], Any]) -> Callable[[float], Any]:
    """The claims of a family; a line on stderr now and then where they take long."""
    bar = Progress(0, enabled=False)

    def ask(value: float) -> Any:
        passed, bar.done = time.monotonic() - bar._start, bar.done + 1
        if passed > bar._next_line:
            bar._next_line = 1.5 * passed
            said = f"{bar.done} claims of the family in {passed:.0f} s; some tens are needed"
            print(f"dpassay: {said}", file=sys.stderr, flush=True)
        return claims(value)

    return ask


class Whole(Progress):
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
        self._token: Token[Whole | None] = _whole.set(self)
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


#: The bar of the call that is running. Only a `Whole` sets it, which is entered and left by plain
#: functions: set in a generator it would be seen by whoever asked for the next block.
_whole: ContextVar[Whole | None] = ContextVar("whole", default=None)
