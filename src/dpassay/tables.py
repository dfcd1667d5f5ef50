"""Results as cards in notebooks, and as tables: data frames and CSV."""

from __future__ import annotations

import csv
import html
import importlib
import io
from enum import StrEnum
from pathlib import Path
from typing import Any

from dpassay.records import Record


class Status(StrEnum):
    """How a result came out, most urgent first: a label, colours for notebooks and for terminals."""

    VIOLATION = "violation", "violation", "#b3261e", "red"
    BLIND = "blind", "could not see", "#7a5200", "yellow"
    UNSHOWN = "unshown", "not shown", "#57606c", "yellow"
    CLEAR = "clear", "none detected", "#1d5fa8", "green"
    CONFIRMED = "confirmed", "shown to hold", "#1b6e3c", "green"
    ESTIMATE = "estimate", "estimate", "#2f7ed8", "blue"

    label: str
    colour: str
    terminal: str

    def __new__(cls, value: str, label: str, colour: str, terminal: str) -> Status:
        """A member that equals its value."""
        made = str.__new__(cls, value)
        made._value_, made.label, made.colour, made.terminal = value, label, colour, terminal
        return made


class Shown(Record):
    """A record that prints as a sentence and shows as a card in notebooks."""

    @property
    def tone(self) -> Status:
        return Status.ESTIMATE

    @property
    def _colour(self) -> str:
        return self.tone.colour

    def _repr_html_(self) -> str:
        first, *rest = html.escape(str(self)).split("\n")
        head, colon, tail = first.partition(": ")
        more = "".join(f"<br>{line}" for line in rest)
        return (
            f'<div style="border-left:4px solid {self._colour};padding:.4em .8em;margin:.4em 0">'
            f'<b style="border-bottom:2px solid {self._colour}">{head}</b>{colon}{tail}{more}</div>'
        )


class Tabular(Record):
    """A record with columns of equal length."""

    def columns(self) -> dict[str, Any]:
        """The columns by name."""
        raise NotImplementedError

    def to_dataframe(self) -> Any:
        """The columns as a pandas data frame."""
        try:
            frames = importlib.import_module("pandas")
        except ImportError:
            raise ImportError(
                "to_dataframe needs pandas: pip install pandas; to_csv does not"
            ) from None
        return frames.DataFrame(self.columns())

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """The columns as CSV, numbers in full: into a file, or as text if no path is given."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = self.columns()
        writer.writerow(columns)
        listed = [c.tolist() if hasattr(c, "tolist") else list(c) for c in columns.values()]
        writer.writerows(zip(*listed, strict=True))
        if path is None:
            return text.getvalue()
        Path(path).write_text(text.getvalue(), encoding="utf-8")
        return None


def present(**columns: Any) -> dict[str, Any]:
    """The columns that are not None."""
    return {name: column for name, column in columns.items() if column is not None}
