"""What files refuse, data frames refuse too, in the same words."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.sampling.columns import frame_content

pandas = pytest.importorskip("pandas")


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def arrow_table(columns):
    return pytest.importorskip("pyarrow").table(columns)


def fields(columns):
    arrays = [np.asarray(values) for values in columns.values()]
    return np.rec.fromarrays(arrays, names=list(columns)).view(np.ndarray)


MAKERS = [pandas.DataFrame, polars_frame, arrow_table, fields]


def normal(seed, start, **names):
    rng = np.random.default_rng(seed)
    found = {"x": rng.normal(size=600), "id": np.arange(start, start + 600)}
    return {names.get(name, name): values for name, values in found.items()}


@pytest.mark.parametrize("make", MAKERS)
def test_identifiers_are_refused_as_in_files(make, tmp_path):
    """They tell any two frames apart: the same noise would be a violation of every claim."""
    sides = normal(0, 0), normal(1, 600)
    files = [tmp_path / "p.csv", tmp_path / "q.csv"]
    for file, side in zip(files, sides, strict=True):
        pandas.DataFrame(side).to_csv(file, index=False)
    with pytest.raises(InvalidInput) as of_files:
        dp.from_samples(*files)
    with pytest.raises(InvalidInput, match="rises from row to row") as of_frames:
        dp.from_samples(*map(make, sides))
    assert str(of_frames.value) == str(of_files.value).replace("p.csv", "p")
    kept = dp.from_samples(*map(make, sides), drop=["id"])
    assert not dp.audit(kept, claim="eps=1").violated
    assert dp.from_samples(*map(make, sides), columns=["x"]).digest == kept.digest


@pytest.mark.parametrize("make", MAKERS)
def test_columns_are_matched_by_name(make):
    with pytest.raises(InvalidInput, match="p has the column 'age', which q does not have"):
        dp.from_samples(make(normal(0, 0, id="age")), make(normal(1, 0, id="alter")), columns=None)
    one, other = make({"x": np.arange(5.0)}), make({"y": np.arange(5.0) + 0.5})
    with pytest.raises(InvalidInput, match="a column may be named differently in the two"):
        dp.from_samples(one, other)
    p, q = np.random.default_rng(0).normal(size=(2, 300, 2))
    there = dp.from_samples(make({"a": p[:, 0], "b": p[:, 1]}), make({"a": q[:, 0], "b": q[:, 1]}))
    again = dp.from_samples(make({"a": p[:, 0], "b": p[:, 1]}), make({"b": q[:, 1], "a": q[:, 0]}))
    assert there.digest == again.digest


def test_a_frame_beside_an_array_is_refused():
    frame = pandas.DataFrame({"a": np.arange(50) % 7, "b": np.arange(50) % 5})
    with pytest.raises(InvalidInput, match=r"q has columns with names and p has none.*to_numpy"):
        dp.from_samples(frame.to_numpy(), frame)
    one = pandas.DataFrame({"a": np.arange(50.0)})
    assert dp.from_samples(one, np.arange(50) + 0.5).remaining == (50, 50)
    with pytest.raises(InvalidInput, match="arrays have no names"):
        dp.from_samples(np.arange(5.0), np.arange(5.0), drop=["a"])


def test_what_is_missing_and_what_kinds_cells_are_is_kept():
    p = pandas.DataFrame({"a": [1.5, None, 2.0] * 20, "b": ["x", "y", None] * 20})
    q = pandas.DataFrame({"a": [2.5, None, 0.0] * 20, "b": ["x", None, "z"] * 20})
    samples = dp.from_samples(p, q)
    shown = {samples.p.show(k) for k in range(60)}
    assert shown == {"{'a': 1.5, 'b': 'x'}", "{'a': None, 'b': 'y'}", "{'a': 2, 'b': None}"}
    with pytest.raises(InvalidInput, match="holds words in p and numbers in q"):
        dp.from_samples(p[["b"]], q[["a"]].rename(columns={"a": "b"}))
    wide = pandas.DataFrame({"a": [2**70, 1, 5], "b": [True, False, False]})
    assert f"{{'a': {2**70}, 'b': 1}}" in {
        dp.from_samples(wide, wide[:2]).p.show(k) for k in range(3)
    }


def test_series_and_plain_arrays_have_no_columns():
    for given in (pandas.Series([1.0]), np.zeros((3, 2)), [{"a": 1}]):
        assert frame_content("p", given) is None
