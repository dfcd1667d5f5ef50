"""SmartNoise Synthesizers: whole synthetic tables of MWEM; neighbours differ in one row that is added.

The categories are given: the transformer is fitted to the domain, not to the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd
from snsynth.mwem import MWEMSynthesizer
from snsynth.transform import LabelTransformer
from snsynth.transform.table import TableTransformer

from dpassay.blackbox.inputs import Category, Table
from libraries.cases import Case, Finding, hunted
from libraries.spaces import tuples

DISTRIBUTION = "smartnoise-synth"
warnings.filterwarnings("ignore")

_DOMAIN = {"a": ["p", "q", "r"], "b": ["u", "v"]}


def _transformer() -> TableTransformer:
    columns = []
    for categories in _DOMAIN.values():
        column = LabelTransformer(nullable=False)
        column.fit(categories)
        columns.append(column)
    return TableTransformer(columns)


def _table(rows: Any) -> pd.DataFrame:
    """A table of 20 rows from MWEM with two iterations."""
    synthesizer = MWEMSynthesizer(epsilon=1.0, q_count=4, iterations=2)
    synthesizer.fit(pd.DataFrame(rows, columns=list(_DOMAIN)), transformer=_transformer())
    return synthesizer.sample(20)


def _case(name: str, pair: Any, shown: str, **more: Any) -> Case:
    said = "MWEMSynthesizer: epsilon, the privacy budget (docstring); the relation is not stated"
    more = {"relation": "add_remove", "n": 500, "group": "synthetic table", "shown": shown, **more}
    return Case(name, "snsynth.MWEMSynthesizer", _table, pair, "eps=1", said, **more)


def cases() -> Iterator[Case]:
    """All cases."""
    every = [("p", "u"), ("q", "v"), ("r", "u")] * 6
    yield _case(
        "MWEM",
        (every, [*every, ("r", "v")]),
        "18 rows with all categories, and one row (r, v) more",
    )
    two = [("p", "u"), ("q", "v")] * 10
    case = _case(
        "MWEM, last category of the domain",
        (two, [*two, ("r", "u")]),
        "20 rows with a = p or q, and one row with a = r more; the categories of a are p, q, r",
        trap="a category of the given domain that one row holds",
    )
    yield case
    space = {name: Category(categories) for name, categories in _DOMAIN.items()}
    yield hunted(case, Table(space, rows=(10, 21), convert=tuples), n=1_000)


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="MWEM takes the cells of its histogram from the data, although the categories are given",
        kind="violation",
        cases=("MWEM, last category of the domain",),
        cause=(
            "snsynth/mwem.py, _histogram_from_data_attributes: the codes of a column run from "
            "min(column) to max(column) of the data, not over the cardinality that the transformer "
            "knows. A category beyond them has no cell and never comes out; one row that holds it "
            "gives it a cell. The issue is closed, and release 1.0.8 still does so."
        ),
        known="https://github.com/opendp/smartnoise-sdk/issues/473",
        script="smartnoise_synth_domain.py",
    ),
)
