"""dpmm: an attribute that is constant, a missing value, and categories without a domain."""

import logging
from copy import deepcopy

import pandas as pd
from dpmm.pipelines import PrivBayesPipeline

logging.disable(logging.WARNING)
made = PrivBayesPipeline(epsilon=1.0, delta=1e-5, proc_epsilon=None, gen_kwargs={"n_iters": 2})
given = {"a": {"categories": ["p", "q"]}, "b": {"categories": ["u", "v"]}}
mixed = ["p", "q"] * 10


def tables_with(value: str | None, column: list[str | None], domain: object) -> int:
    """In how many of 200 tables the value is."""
    table = pd.DataFrame({"a": column, "b": (["u", "v", "v"] * 7)[: len(column)]})
    hits = 0
    for _ in range(200):
        pipeline = deepcopy(made)
        pipeline.fit(table, deepcopy(domain))
        found = pipeline.generate(n_records=20)["a"]
        hits += bool(found.isna().any() if value is None else (found == value).any())
    return hits


for name, value, column, domain in (
    ("q", "q", ["p"] * 20, given),
    ("a missing value", None, mixed, given),
    ("r", "r", mixed, {}),
):
    without, with_it = (tables_with(value, [*column, *more], domain) for more in ([], [value]))
    print(f"{name}: in {without} of 200 tables from 20 rows, in {with_it} if one row more holds it")
