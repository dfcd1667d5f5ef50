"""The words of named features: what they say, computed by hand from the outputs."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.unit.test_features import named

import dpassay as dp
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.features import FAMILIES
from dpassay.outputs.leaves import LeafTable
from dpassay.outputs.named_features import Feature, NamedFeatures


def with_marks(rng, many, mark):
    """Rows of two numbers, lists of four: a mark in place of some of the numbers, never of all."""
    cells = rng.integers(-3, 30, (many, 4)).astype(object)
    cells[(rng.random((many, 4)) < 0.3) & (np.arange(4) > 0)] = mark
    return [dict(zip("abc", row, strict=False)) for row in cells], cells.tolist()


@pytest.mark.parametrize("mark", ["*", None])
def test_words_of_numbers_hold_where_cells_are_marked(mark, seed):
    """What a name says, computed by hand for every output; also where the first output has marks."""
    frames, lists = with_marks(np.random.default_rng(seed), 60, mark)
    found, of_lists = named(frames), named(lists)
    no = " (a missing value or a word counts as 0)"
    names = {name for _, family, name in found if family == "by_place" and name[:3] != "the"}
    assert names == {f"a + b + c{no}"}
    (name,) = names
    for k, (row, items) in enumerate(zip(frames, lists, strict=True)):
        assert found[k, "by_place", name] == sum(x for x in row.values() if isinstance(x, int))
        for place, x in enumerate(items, 1):
            words = f"x{place}{no if place > 1 else ''}"
            assert of_lists.get((k, "by_place", words), 0) == (x if isinstance(x, int) else 0)
        numbers = [x for x in items if isinstance(x, int)]
        assert of_lists[k, "summaries", "the count of the items"] == 4
        assert of_lists[k, "summaries", "the number of distinct values of the items"] == len(
            set(items)
        )
        assert of_lists[k, "summaries", "the last of the numbers in the items"] == numbers[-1]


def marked(d, rng):
    m, f = (c + rng.geometric(0.4, 6000) - rng.geometric(0.4, 6000) for c in (9 + d, 14))
    return pd.DataFrame({"m": np.where(m < 10, "*", m.astype(object)), "f": f})


def test_the_counts_of_a_witness_are_those_of_its_words():
    """{sum of the columns named ≥ threshold}, counted by hand in all rows."""
    sides = [marked(d, np.random.default_rng(300 + d)) for d in (0, 1)]
    verdict = dp.audit(dp.from_samples(*sides), claim="eps=0.3")
    said = r"(.+) \(a missing value or a word counts as 0\) ≥ (\d+)"
    names, at = re.fullmatch(said, verdict.witness.event.words).groups()
    counts = []
    for side in sides:
        total = sum(pd.to_numeric(side[name], "coerce").fillna(0) for name in names.split(" + "))
        counts += [int((total >= int(at)).sum()), len(side)]
    assert verdict.witness.in_all_rows == tuple(counts)


def test_a_missing_item_is_called_empty():
    found = named([[1, 2, None], [3, None, None]])
    assert found[1, "values", "the number of times that an empty item"] == 2


def test_a_value_in_a_row_is_compared_in_words():
    name = "big where pos = 2 (else 0)"
    one = Feature("by_key", 0, name)
    assert one.event(1.0, above=True) == f"{name} is at least 1"
    assert one.event(1.0, above=False) == f"{name} is below 1"


def test_numbers_of_vectors_by_place_are_read_directly(seed, monkeypatch):
    """The same values as from the table of leaves; digits and other families are left to that."""
    x = np.round(np.random.default_rng(seed).laplace(scale=[1, 1, 100, 1], size=(50, 4)), 2)
    x[:, 2] = np.round(x[:, 2])
    outputs = from_raw(x, 50)
    table = LeafTable.of(outputs)
    _, keys, _, _, _ = FAMILIES["by_place"](table, None)
    features = tuple(Feature("by_place", int(key), f"{k}") for k, key in enumerate(np.unique(keys)))
    direct = [NamedFeatures.of((one,)).values(outputs)[:, 0] for one in features]
    monkeypatch.setattr("dpassay.outputs.named_features.places_of_array", lambda *_: None)
    again = from_raw(x, 50)
    slow = [NamedFeatures.of((one,)).values(again)[:, 0] for one in features]
    assert np.array_equal(direct, slow)
    assert {tuple(column) for column in x.T} <= {tuple(column) for column in direct}
