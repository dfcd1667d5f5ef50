import re
import sys

import numpy as np
import pytest

import dpassay as dp
from dpassay import charts
from dpassay.errors import InvalidInput, MissingExtra

MASSES = dp.Masses([0.75, 0.25], [0.25, 0.75])
X = np.linspace(-3, 4, 3001)


def all_charts():
    laplace = dp.zoo.Laplace()
    p, q = 0.5 * np.exp(-np.abs(X)), 0.5 * np.exp(-np.abs(X - 1))
    continuous = dp.LossCurve(X, np.log(p / q), p, q)
    discrete = dp.LossCurve(
        [0, 1, 2], [0.4, -0.2, np.inf], [0.5, 0.3, 0.2], [0.4, 0.6, 0.0], labels=("a", "b", "c")
    )
    curve = MASSES.tradeoff_curve()
    return {
        "tradeoff": curve.chart(exact=lambda a: laplace.tradeoff(a, (0.0, 1.0))),
        "box": charts.tradeoff({"a": (curve.x, curve.y)}, box=(0.1, 0.2, 0.3, 0.4), at=0.15),
        "spectrum": curve.spectrum(np.linspace(0, 2, 41)).chart(),
        "renyi": dp.RenyiCurve([2, 3, 4], [0.5, 0.6, 0.7], lower=[0.4, 0.5, 0.6]).chart(),
        "loss": continuous.chart(0.5),
        "discrete loss": discrete.chart(),
    }


@pytest.mark.parametrize("name", all_charts())
def test_charts_draw_without_a_browser(name):
    import vl_convert

    svg = vl_convert.vegalite_to_svg(all_charts()[name].to_dict())
    assert svg.startswith("<svg")
    assert "NaN" not in svg


def test_long_lines_are_thinned_but_keep_their_ends():
    x = np.linspace(0, 1, 100_000)
    thin_x, thin_y = charts._thin(x, x**2)
    assert len(thin_x) < 2000
    assert (thin_x[0], thin_x[-1], thin_y[-1]) == (0.0, 1.0, 1.0)


def test_a_missing_altair_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpassay\[report\]'"):
        MASSES.tradeoff_curve().chart()


def spectra():
    eps = np.linspace(0, 2, 21)
    return {
        name: dp.Spectrum(eps, scale * np.exp(-eps)) for name, scale in (("A", 0.4), ("B", 0.3))
    }


def profiles():
    curve = MASSES.tradeoff_curve()
    parts = {
        "spectrum": spectra()["A"],
        "renyi_curve": dp.RenyiCurve([2, 3], [0.5, 0.6]),
        "tradeoff_curve": curve,
    }
    about = dp.About(method="by hand", guarantee="heuristic")
    return {name: dp.Profile(epsilon=1.0, mu=1.0, about=about, **parts) for name in "AB"}


COMPARED = {
    "spectra": spectra,
    "curves": lambda: {"A": MASSES.tradeoff_curve(), "B": dp.TradeoffCurve([0, 1], [1, 0])},
    "renyi": lambda: {name: dp.RenyiCurve([2, 3], [0.5, 0.6]) for name in "AB"},
    "profiles": profiles,
}


@pytest.mark.parametrize("kind", COMPARED)
def test_results_of_a_kind_are_compared(kind):
    import vl_convert

    svg = vl_convert.vegalite_to_svg(charts.compare(COMPARED[kind]()).to_dict())
    for name in "AB":
        assert f">{name}</text>" in svg


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "names and results"),
        ([1], "names and results"),
        ({"A": 3}, "'A' is a int"),
        ({"A": spectra()["A"], "B": MASSES.tradeoff_curve()}, "of one kind"),
    ],
)
def test_what_cannot_be_compared_is_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        charts.compare(given)


def test_charts_go_together_by_operators():
    import altair as alt
    import vl_convert

    one, two = (s.chart() for s in spectra().values())
    rule = alt.Chart({"values": [{"epsilon": 1.0}]}).mark_rule().encode(x="epsilon:Q")
    made = {
        "layer": one + two,
        "rule": one + rule,
        "under": rule + one,
        "row": one | two,
        "column": one & two,
        "mixed": (one | two) & MASSES.tradeoff_curve().chart(),
        "configured": one.configure_axis(labelFontSize=20).properties(width=200),
    }
    for name, chart in made.items():
        spec = chart.to_dict()
        assert vl_convert.vegalite_to_svg(spec).startswith("<svg"), name
        if name != "under":  # a chart of somebody else's has its own theme
            assert spec["config"]["font"] == charts.CONFIG["font"], name
    axis = made["configured"].to_dict()["config"]["axis"]
    assert axis == charts.CONFIG["axis"] | {"labelFontSize": 20}
    assert "config" not in one.to_dict()["layer"][0]


def test_notebooks_show_a_drawing_that_needs_no_network():
    shown = MASSES.tradeoff_curve().chart()._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg")
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", shown["text/html"])


def test_curves_are_tables(tmp_path):
    pandas = pytest.importorskip("pandas")
    found = dp.Spectrum([0.0, 1.0], [0.4, 0.1], lower=[0.3, 0.0])
    assert found.to_csv() == "epsilon,delta,lower\n0.0,0.4,0.3\n1.0,0.1,0.0\n"
    found.to_csv(tmp_path / "curve.csv")
    pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / "curve.csv"), found.to_dataframe())
    assert list(MASSES.tradeoff_curve().to_dataframe()) == ["alpha", "beta"]
    assert list(dp.RenyiCurve([2, 3], [0.5, 0.6]).to_dataframe()) == ["order", "epsilon"]
    named = dp.LossCurve([0, 1], [0.1, 0.2], [0.5, 0.5], [0.4, 0.6], labels=('a, "b"', "c"))
    assert named.to_csv().splitlines()[1] == '"a, ""b""",0.1,0.5,0.4'
