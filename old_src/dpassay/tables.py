"""Results as cards in notebooks, and as tables: data frames and CSV."""

from __future__ import annotations

import csv
import html
import importlib
import io
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from dpassay.errors import MissingExtra
from dpassay.records import Record


class Status(StrEnum):
    """How a result came out, most urgent first: a label, colours for notebooks and for terminals."""

    VIOLATION = "violation", "violation", "#b3261e", "red"
    BLIND = "blind", "too weak", "#7a5200", "yellow"
    UNSHOWN = "unshown", "not verified", "#57606c", "yellow"
    CLEAR = "clear", "none detected", "#1d5fa8", "green"
    CONFIRMED = "confirmed", "verified", "#1b6e3c", "green"
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

    def report(self, path: str | Path, **options: Any) -> None:
        """Write it as a self-contained HTML page; the options are those of `dpassay.report.write`.

        Verdicts, verifications, hunts, spectra and profiles have pages. Trade-off and Rényi curves are
        part of that of a profile (`dp.estimate`) and have none of their own. Needs the extra "report".
        """
        write_report(path, self, **options)

    def _repr_html_(self) -> str:
        first, *rest = html.escape(str(self)).split("\n")
        head, colon, tail = first.partition(": ")
        if head.count("(") > head.count(")"):  # the colon is inside parentheses
            head, colon, tail = first, "", ""
        more = "".join(f"<br>{line}" for line in rest)
        return (
            f'<div style="border-left:4px solid {self._colour};padding:.4em .8em;margin:.4em 0">'
            f'<b style="border-bottom:2px solid {self._colour}">{head}</b>{colon}{tail}{more}'
            f"{self._drawn()}</div>"
        )

    def _drawn(self) -> str:
        """Its chart as HTML; nothing where there is none, or nothing to draw with."""
        try:
            chart = self.chart()  # type: ignore[attr-defined]
            return str(chart._repr_mimebundle_().get("text/html", ""))
        except (AttributeError, ValueError, MissingExtra):
            return ""


def write_report(path: str | Path, results: Any, **options: Any) -> None:
    """Write results as a page. Imported when called: pages know results, not the other way round."""
    importlib.import_module("dpassay.report").write(path, results, **options)


def as_text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal: the columns aligned, the last one as it is."""
    lines = [tuple(columns), *map(tuple, rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)][:-1]
    return "\n".join(
        "  ".join([*map(str.ljust, line, widths), line[-1]]).rstrip() for line in lines
    )


def as_html(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a notebook."""

    def row(tag: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    return f"<table>{row('th', columns)}{''.join(row('td', cells) for cells in rows)}</table>"


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
