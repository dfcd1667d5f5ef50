"""Results that were written with --json, to be run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpassay.auditing.replays import named
from dpassay.errors import InvalidInput
from dpassay.hunting.result import Hunt
from dpassay.records import Record
from dpassay.validation import read_json


def earlier_results(text: str) -> list[Any]:
    """What was written with --json: one result, or the verdicts of several claims."""
    try:
        data = read_json(text)
    except ValueError:
        data = None  # said by the record
    several = data if isinstance(data, list) else None
    found = [Record.from_json(text)] if several is None else [*map(Record.from_dict, several)]
    if not found:
        raise InvalidInput("the list of verdicts is empty: there is nothing to run again")
    return [one.verdict if isinstance(one, Hunt) else one for one in found]


def their_columns(listed: Sequence[Any]) -> str | None:
    """The columns that results on files are about, as --columns writes them."""
    origins = [origin for one in listed if hasattr(one, "about") for origin in one.about.files[:1]]
    if not origins or not named(origins[0]):
        return None
    return ",".join(f'"{name}"' if "," in name else name for name in origins[0].columns)
