"""SmartNoise SQL: queries on a pandas frame; neighbours differ in one individual.

An execution takes a tenth of a second, so that one execution answers for many independent copies of
the data at once: a group each, with ids of their own. Noise is drawn for every group by itself.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import snsql

from dpassay.blackbox.inputs import Reals
from libraries.cases import Case, Finding, both
from libraries.spaces import with_hunts

DISTRIBUTION = "smartnoise-sql"
warnings.filterwarnings("ignore")

_GRID = "OpenDP's noise on a fine grid, calibrated by OpenDP's map"
_TABLE: dict[str, Any] = {
    "rows": 1000,
    "max_ids": 1,
    "id": {"type": "int", "private_id": True},
    "k": {"type": "string"},
    "x": {"type": "float", "lower": 0.0, "upper": 1.0},
    "far": {"type": "float", "lower": 1000.0, "upper": 1001.0},
    "w": {"type": "int", "lower": 0, "upper": 5},
}
#: Cases that are hunted too.
_SOME: dict[str, Any] = {"space": Reals(0, 1, length=(1, 5), convert="list"), "outside": True}
_HUNTED: dict[str, dict[str, Any]] = dict.fromkeys(
    ("COUNT(*)", "COUNT(DISTINCT id)", "SUM, doubles, values", "SUM, integers", "AVG"), _SOME
)


def _asked(what: str, delta: float = 0.01, censor: bool = False) -> Callable[[Any, int], Any]:
    """`size` answers to a query: a group of its own for each."""

    def answers(records: Any, size: int) -> Any:
        ids = len(records)
        frame = pd.DataFrame(
            {
                "id": range(ids * size),
                "k": [f"k{group}" for group in range(size) for _ in records],
                "x": [x for _ in range(size) for x in records],
                "far": [1000.0 + x for _ in range(size) for x in records],
                "w": [int(5 * x) if math.isfinite(x) else 0 for _ in range(size) for x in records],
            }
        )
        if not ids:
            return [None] * size
        privacy = snsql.Privacy(epsilon=1.0, delta=delta)
        meta = {"": {"d": {"t": {**_TABLE, "censor_dims": censor}}}}
        reader = snsql.from_df(frame, privacy=privacy, metadata=meta)
        found = reader.execute(f"SELECT k, {what} AS v FROM d.t GROUP BY k")
        values = {row[0]: row[1] for row in found[1:]}
        return [values.get(f"k{group}") for group in range(size)]

    return answers


def _case(name: str, what: str, pair: Any, claim: str = "eps=1", **more: Any) -> Case:
    call = _asked(what, **{key: more.pop(key) for key in ("delta", "censor") if key in more})
    said = "Privacy(epsilon, delta): spent for each column of an answer"
    more = {"relation": "add_remove", "n": 6_000, "group": "query", "sound": _GRID, **more}
    return Case(name, "snsql.from_df(…).execute", call, pair, claim, said, vectorised=True, **more)


def cases() -> Iterator[Case]:
    """All cases."""
    return with_hunts(_by_hand(), _HUNTED, n=4_000)


def _by_hand() -> Iterator[Case]:
    added = [0.5], [0.5, 1.0]
    yield _case("COUNT(*)", "COUNT(*)", added)
    yield _case("COUNT(DISTINCT id)", "COUNT(DISTINCT id)", added)
    yield from both(_case("SUM, doubles", "SUM(x)", added))
    yield _case("SUM, integers", "SUM(w)", added)
    yield replace(
        _case("SUM, bounds far from zero", "SUM(far)", added, trap="bounds far from zero"),
        look="values",
    )
    yield replace(_case("AVG", "AVG(x)", added, "eps=2"), look="values")
    key = {"delta": 0.2, "censor": True, "group": "histogram, unknown keys"}
    yield _case(
        "GROUP BY, a key of one",
        "COUNT(*)",
        ([], [1.0]),
        "eps=2, delta=0.2 in delta",
        trap="a key that one individual brings",
        **key,
    )


FINDINGS: tuple[Finding, ...] = ()
