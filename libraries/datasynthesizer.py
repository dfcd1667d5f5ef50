"""DataSynthesizer: whole synthetic tables; neighbours differ in one row that is removed.

A call describes the input, writes the description to a file and generates a table from it, each step
with a fresh seed. The search for a Bayesian network starts a pool of processes for each attribute; here
these are threads, which changes the time and no output.

The ordinary pair of independent mode was first the one of correlated mode, with two attributes; that
audit could not see, and the pair was replaced by one that uses all of ε on one attribute.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import multiprocessing.dummy
import secrets
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
from DataSynthesizer.lib import PrivBayes

from dpassay.blackbox.inputs import Category, Real
from libraries.cases import Case
from libraries.datasynthesizer_findings import FINDINGS as FINDINGS
from libraries.spaces import columns, with_hunts

DISTRIBUTION = "DataSynthesizer"
PrivBayes.Pool = multiprocessing.dummy.Pool
warnings.filterwarnings("ignore")

_SAID = (
    "It roughly means that removing a row in the input dataset will not change the probability of "
    "getting the same output more than a multiplicative difference of exp(epsilon) "
    "(notebooks/DataSynthesizer__correlated_attribute_mode.ipynb)"
)
_INDEPENDENT = "describe_dataset_in_independent_attribute_mode"
_CORRELATED = "describe_dataset_in_correlated_attribute_mode"
#: Types and keys of the attributes, declared so that nothing but the domain can come from the data.
_DECLARED = {**dict.fromkeys("abcd", "String"), "x": "Float"}
DOMAIN = {"a": ["p", "q"], "b": ["u", "v", "w"], "c": ["k", "l", "m"], "d": ["f", "g", "h"]}
_TWO = columns({"a": Category(["p", "q"]), "b": Category(["u", "v", "w"])}, (10, 16))
#: Cases that are hunted too: the space.
_HUNTED = {
    "independent mode": {"space": columns({"a": Category(["p", "q"])}, (5, 16))},
    "independent mode, default seed": {"space": _TWO},
    "correlated mode, last category of the domain": {"space": _TWO},
    "independent mode, most values missing": {
        "space": columns(
            {"a": Category(["p", "q"]), "b": Category(["u", "v", "w", None])}, (10, 31)
        )
    },
    "independent mode, most values outside the range": {
        "space": columns({"x": Real(-10, 10)}, (10, 31))
    },
    "independent mode, categories inferred": {
        "space": columns({"a": Category(["p", "q", "r"])}, (10, 16))
    },
    "independent mode, range inferred": {"space": columns({"x": Real(0, 100)}, (10, 17))},
}


def _declared(names: Any) -> dict[str, dict[str, Any]]:
    return {
        "attribute_to_datatype": {name: _DECLARED[name] for name in names},
        "attribute_to_is_categorical": {name: name != "x" for name in names},
        "attribute_to_is_candidate_key": dict.fromkeys(names, False),
    }


def table(
    correlated: bool = False,
    declare: bool = True,
    domain: Mapping[str, Any] | None = None,
    seeded: bool = True,
    **settings: Any,
) -> Callable[[Any], pd.DataFrame]:
    """A table of 20 rows with ε = 1, from a table given as columns."""

    def generated(columns: Mapping[str, Any]) -> pd.DataFrame:
        with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
            folder = Path(name)
            pd.DataFrame(columns).to_csv(folder / "input.csv", index=False)
            given = {
                **(_declared(columns) if declare else {}),
                **copy.deepcopy(settings),
            }  # mutated
            if domain is not None:
                chosen = {key: value for key, value in domain.items() if key in columns}
                (folder / "domain.json").write_text(json.dumps(chosen), encoding="utf-8")
                given["categorical_attribute_domain_file"] = folder / "domain.json"
            describer, generator = DataDescriber(histogram_bins=4), DataGenerator()
            describe = getattr(describer, _CORRELATED if correlated else _INDEPENDENT)
            more = {"k": 1} if correlated else {}
            describe(folder / "input.csv", epsilon=1.0, **given, **more, **_seed(seeded))
            describer.save_dataset_description_to_file(folder / "description.json")
            generate = (
                generator.generate_dataset_in_correlated_attribute_mode
                if correlated
                else generator.generate_dataset_in_independent_mode
            )
            generate(20, folder / "description.json", **_seed(seeded))
        return generator.synthetic_dataset

    return generated


def _seed(seeded: bool) -> dict[str, int]:
    return {"seed": secrets.randbits(32)} if seeded else {}


def _case(name: str, call: Callable[..., Any], pair: Any, shown: str, **more: Any) -> Case:
    mode = _CORRELATED if "correlated" in name else _INDEPENDENT
    more = {"relation": "add_remove", "n": 500, "group": "synthetic table", **more}
    return Case(name, f"DataDescriber.{mode}", call, pair, "eps=1", _SAID, shown=shown, **more)


def cases() -> Iterator[Case]:
    """All cases: what the user can declare is declared, unless the name says otherwise."""
    return with_hunts(_by_hand(), _HUNTED, n=1_000)


def _by_hand() -> Iterator[Case]:
    rows = {"a": ["p", "q"] * 7 + ["p"], "b": ["u", "v", "w"] * 5}
    more = {"a": [*rows["a"], "q"], "b": [*rows["b"], "w"]}
    ordinary = (rows, more), "15 rows of two attributes, and one row (q, w) more"
    yield _case(
        "independent mode",
        table(domain=DOMAIN),
        ({"a": ["p"] * 15}, {"a": ["p"] * 15 + ["q"]}),
        "15 rows p, and one row q more; the domain is p, q",
        trap="a category of the given domain that one row holds",
        n=1_000,
    )
    yield _case("correlated mode", table(correlated=True, domain=DOMAIN), *ordinary, n=1_000)
    yield _case(
        "independent mode, default seed",
        table(domain=DOMAIN, seeded=False),
        *ordinary,
        trap="no argument for the randomness",
        n=1_000,
    )
    yield _case(
        "correlated mode, last category of the domain",
        table(correlated=True, domain=DOMAIN),
        (
            {"a": ["p", "q"] * 7, "b": ["u", "v"] * 7},
            {"a": ["p", "q"] * 7 + ["p"], "b": ["u", "v"] * 7 + ["w"]},
        ),
        "14 rows of (p, u) and (q, v), and one row (p, w) more; w is in the domain file",
        trap="a category of the given domain that one row holds",
    )
    yield from _missing()
    yield from _inferred()


def _missing() -> Iterator[Case]:
    empty: list[Any] = [None] * 28
    yield _case(
        "independent mode, most values missing",
        table(domain=DOMAIN),
        (
            {"a": ["p"] * 30, "b": [*empty, "u", "u"]},
            {"a": ["p"] * 31, "b": [*empty, "u", "u", "w"]},
        ),
        "30 rows of which 28 have no b and two have b = u, and one row with b = w more",
        trap="nearly all values of an attribute missing",
    )
    yield _case(
        "independent mode, most values outside the range",
        table(numerical_attribute_ranges={"x": [0.0, 1.0]}),
        ({"x": [5.0] * 28 + [0.1] * 2}, {"x": [5.0] * 28 + [0.1] * 2 + [0.9]}),
        "30 rows of which 28 lie outside the range [0, 1] and two at 0.1, and one row at 0.9 more",
        trap="nearly all values outside the given range",
    )


def _inferred() -> Iterator[Case]:
    rows = list(range(100, 115))
    yield _case(
        "independent mode, keys inferred",
        table(
            declare=False,
            domain=DOMAIN,
            attribute_to_is_categorical={"id": False},
            attribute_to_is_candidate_key={"a": False},
        ),
        (
            {"id": rows, "a": ["p"] * 15},
            {"id": [*rows, 107], "a": ["p"] * 16},
        ),
        "15 rows with different integers, and one row with one of these integers more",
        trap="an attribute without duplicates but for one row",
    )
    yield _case(
        "independent mode, categories inferred",
        table(),
        ({"a": ["p", "q"] * 7}, {"a": ["p", "q"] * 7 + ["r"]}),
        "14 rows of p and q, and one row r more",
        trap="a category that one row holds",
    )
    yield _case(
        "independent mode, range inferred",
        table(),
        ({"x": [0.1, 0.4, 0.6, 0.9] * 4}, {"x": [0.1, 0.4, 0.6, 0.9] * 4 + [50.0]}),
        "16 rows within [0, 1], and one row at 50 more",
        trap="an outlier",
    )
