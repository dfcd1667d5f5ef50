"""Verdicts that were written with --json, to be run again."""

from __future__ import annotations

from collections.abc import Sequence
from json import loads

from dpassay.errors import InvalidInput
from dpassay.hunting.result import Hunt
from dpassay.records import Record
from dpassay.replays import named
from dpassay.results import Verdict


def earlier_verdicts(text: str) -> list[Verdict]:
    """The verdicts that were written with --json: one, or those of several claims."""
    try:
        data = loads(text)
    except ValueError:
        data = None  # said by the record
    if not isinstance(data, list):
        found = Record.from_json(text)
        return [found.verdict if isinstance(found, Hunt) else Verdict.from_json(text)]
    if not data:
        raise InvalidInput("the list of verdicts is empty: there is nothing to run again")
    return [Verdict.from_dict(one) for one in data]


def their_columns(listed: Sequence[Verdict]) -> str | None:
    """The columns that verdicts on files are about, as --columns writes them."""
    origins = [origin for one in listed for origin in one.about.files[:1]]
    if not origins or not named(origins[0]):
        return None
    return ",".join(f'"{name}"' if "," in name else name for name in origins[0].columns)
