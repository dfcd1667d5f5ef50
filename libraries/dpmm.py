"""dpmm: whole synthetic tables of its pipelines; neighbours differ in one record that is added.

The constructors search for ρ for half a second; a pipeline is made once and copied for every fit. The
estimation is post-processing of noisy marginals: two iterations suffice to see which values can come
out at all, 50 make the table follow the counts. MST with two attributes (2,500 iterations, fixed) took
27 seconds a fit or more and is not audited. Ordinary pairs were audited for PrivBayes and AIM with two
iterations, where no verdict but "could not see" is possible; they are not kept. The case of MST is the
third that was tried: ε = 1 with two iterations, and ε = 3 with bounds on δ, could not see either.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pandas as pd

from dpassay.blackbox.inputs import Category, Integer
from libraries.cases import Case
from libraries.dpmm_findings import FINDINGS as FINDINGS
from libraries.spaces import columns, with_hunts

DISTRIBUTION = "dpmm"
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)  # among these: "PrivacyLeakage: No categorical domain provided"

_SAID = (
    "end-to-end DP pipelines including data preprocessing, generative models, and mechanisms; data "
    "domain is either provided as input or extracted with DP (README)"
)
_CALIBRATED = (
    "discrete Gaussian noise and selection, calibrated in zCDP for counts that change by one"
)
DOMAIN = {"a": {"categories": ["p", "q"]}, "b": {"categories": ["u", "v"]}}
_BINARY = Category(["u", "v"])
#: Cases that are hunted too: the space.
_HUNTED: dict[str, dict[str, Any]] = {
    "MST, one attribute": {
        "space": columns({"a": Category(["p", "q"])}, (1, 3)),
        "n": 400,
        "sound": "",  # the argument is about noise, and the space has tables that are constant
    },
    "PrivBayes, an attribute that is constant": {
        "space": columns({"a": Category(["p", "q"]), "b": _BINARY}, (15, 21))
    },
    "PrivBayes, one value missing": {
        "space": columns({"a": Category(["p", "q", None]), "b": _BINARY}, (15, 21))
    },
    "PrivBayes, selection": {"space": columns(dict.fromkeys("abc", Integer(0, 1)), (1000, 1001))},
}


@cache
def _pipeline(kind: str, **settings: Any) -> Any:
    from dpmm import pipelines

    budget = {"epsilon": 3.0, "delta": 0.01} if kind == "MST" else {"epsilon": 1.0, "delta": 1e-5}
    gen = {"n_iters": 2 if kind == "PrivBayes" else 50}
    options = {**budget, "n_jobs": 1, "proc_epsilon": None, "gen_kwargs": gen, **settings}
    return getattr(pipelines, f"{kind}Pipeline")(**options)


def _fitted(kind: str, columns: Mapping[str, Any], domain: Any, **settings: Any) -> Any:
    pipeline = copy.deepcopy(_pipeline(kind, **settings))
    pipeline.fit(pd.DataFrame(columns), copy.deepcopy(domain))
    return pipeline


def table(kind: str, domain: Any, index: bool = True) -> Callable[[Any], pd.DataFrame]:
    """A table of 20 rows, from a table given as columns; with the index that the library gives it."""

    def generated(columns: Mapping[str, Any]) -> pd.DataFrame:
        rows = _fitted(kind, columns, domain).generate(n_records=20)
        return rows if index else rows.reset_index(drop=True)

    return generated


def _selected(columns: Mapping[str, Any]) -> list[str]:
    """The pairs of attributes that PrivBayes selected; `store` writes them to disk."""
    pipeline = copy.deepcopy(_pipeline("PrivBayes", disable_processing=True))
    pipeline.fit(pd.DataFrame(columns), dict.fromkeys(columns, 2), marginals_only=True)
    return sorted("-".join(sorted(clique)) for clique in pipeline.gen.generator.cliques[1:])


def _case(
    name: str, kind: str, call: Callable[..., Any], pair: Any, shown: str, **more: Any
) -> Case:
    more = {"relation": "add_remove", "n": 500, "group": "synthetic table", **more}
    claim = "eps=3, delta=0.01" if kind == "MST" else "eps=1, delta=1e-5"
    return Case(name, f"{kind}Pipeline.fit", call, pair, claim, _SAID, shown=shown, **more)


def cases() -> Iterator[Case]:
    """All cases: the domain is given, unless the name says otherwise."""
    return with_hunts(_by_hand(), _HUNTED, n=1_000)


def _by_hand() -> Iterator[Case]:
    rows = {"a": ["p", "q"] * 10, "b": ["u", "v", "v", "u"] * 5}
    constant = {"a": ["p"] * 20, "b": rows["b"]}
    yield _case(
        "MST, one attribute",
        "MST",
        table("MST", DOMAIN),
        ({"a": ["p", "q"]}, {"a": ["p", "q", "q"]}),
        "two rows, p and q, and one row q more",
        sound=_CALIBRATED,
    )
    yield _case(
        "PrivBayes, an attribute that is constant",
        "PrivBayes",
        table("PrivBayes", DOMAIN, index=False),  # the type of the index differs too
        (constant, {"a": [*constant["a"], "q"], "b": [*constant["b"], "v"]}),
        "20 rows with a = p, and one row with a = q more; the domain of a is p, q",
        trap="a category of the given domain that one row holds, beside a constant",
    )
    yield _case(
        "PrivBayes, one value missing",
        "PrivBayes",
        table("PrivBayes", DOMAIN),
        (rows, {"a": [*rows["a"], None], "b": [*rows["b"], "v"]}),
        "20 rows of two attributes, and one row without a more",
        trap="a row with a missing value",
    )
    zeros, coin = [0] * 1000, [0, 1] * 500
    yield _case(
        "PrivBayes, selection",
        "PrivBayes",
        _selected,
        (
            {"a": zeros, "b": zeros, "c": coin},
            {"a": [*zeros, 1], "b": [*zeros, 1], "c": [*coin, 0]},
        ),
        "1,000 rows (0, 0, c) with c = 0 or 1 in turn, and one row (1, 1, 0) more",
        group="selection",
        trap="two attributes that are constant but for one row",
    )
    yield _case(
        "PrivBayes, categories inferred",
        "PrivBayes",
        table("PrivBayes", {}),
        (rows, {"a": [*rows["a"], "r"], "b": [*rows["b"], "v"]}),
        "20 rows with a = p or q, and one row with a = r more; no domain given",
        trap="a category that one row holds",
    )
