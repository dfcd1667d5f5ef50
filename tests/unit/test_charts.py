import functools
import html
import json
import math
import re
import sys

import numpy as np
import pytest

import dpassay as dp
from dpassay import charts, theme
from dpassay.errors import InvalidInput, MissingExtra
from dpassay.privacy.curves import TradeoffBand
from dpassay.privacy.provenance import About

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
        "box": charts.tradeoff({"a": (curve.x, curve.y)}, box=(0.1, 0.2, 0.3, 0.4)),
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
    thin_x, thin_y = theme.thin(x, x**2)
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
    about = About(method="by hand", guarantee="heuristic")
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


@pytest.mark.parametrize("many", [6, 20, 36])
def test_no_two_curves_look_alike(many):
    eps = np.linspace(0, 2, 21)
    made = {f"curve {k}": dp.Spectrum(eps, 0.4 * np.exp(-(k + 1) * eps)) for k in range(many)}
    encoding = charts.compare(made).to_dict()["layer"][0]["encoding"]
    colours, dashes = (encoding[name]["scale"]["range"] for name in ("color", "strokeDash"))
    assert len(colours) == len(dashes) == many
    assert len({(c, tuple(d)) for c, d in zip(colours, dashes, strict=True)}) == many


def test_ticks_are_written_out():
    import vl_convert

    x = np.linspace(-12, 12, 301)
    p = np.exp(-np.abs(x)) / 2
    svg = vl_convert.vegalite_to_svg(dp.LossCurve(x, 0 * x, p, p).chart().to_dict())
    assert ">−10</text>" in svg or ">-10</text>" in svg
    assert "e+1<" not in svg


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


CURVES = {
    "spectrum": lambda: spectra()["A"],
    "tradeoff": MASSES.tradeoff_curve,
    "renyi": lambda: dp.RenyiCurve([2, 3], [0.5, 0.6]),
    "loss": lambda: dp.LossCurve([0, 1], [0.1, 0.2], [0.5, 0.5], [0.4, 0.6], labels=("<b>", "c")),
    "plan": lambda: dp.plan("eps=1", excess=0.5),
}


@pytest.mark.parametrize("name", CURVES)
def test_notebooks_show_curves_as_the_sentence_they_print(name):
    made = CURVES[name]()
    card = made._repr_html_()
    said, drawn, _ = card.partition('<div style="color:inherit">')
    shown = re.sub(r"<.*?>", "", said.replace("<br>", "\n"))
    assert html.unescape(shown) == str(made)
    assert bool(drawn) == hasattr(made, "chart")


def test_a_band_is_in_the_table_and_in_print():
    band = TradeoffBand([0.0, 0.5, 1.0], [0.6, 0.2, 0.0], [1.0, 0.4, 0.0], 0.9)
    curve = dp.TradeoffCurve([0, 0.25, 1], [1, 0.25, 0], band=band)
    assert curve.to_csv().splitlines() == [
        "alpha,beta,lower,upper",
        "0.0,1.0,0.6,1.0",
        "0.25,0.25,0.2,0.7",  # no less than at the next point, and below the chord
        "0.5,0.16666666666666669,0.2,0.4",
        "1.0,0.0,0.0,0.0",
    ]
    assert band.to_csv().splitlines()[:2] == ["alpha,lower,upper", "0.0,0.6,1.0"]
    assert "band at α = 0.05 from 0.2 to 0.94, at all α at once, with confidence 0.9" in str(curve)
    assert "band" not in str(MASSES.tradeoff_curve())


def test_a_profile_is_a_table_of_its_curves():
    profile = profiles()["A"]
    frame = profile.to_dataframe()
    assert list(frame) == ["curve", "x", "y"]
    for name, curve in (("tradeoff", profile.tradeoff_curve), ("renyi", profile.renyi_curve)):
        rows = frame[frame["curve"] == name]
        assert rows["x"].tolist() == curve.x.tolist()
        assert rows["y"].tolist() == curve.y.tolist()
    assert len(profile.to_csv().splitlines()) == 1 + len(frame)


@pytest.mark.parametrize("alpha", [2, -0.1, float("nan"), [0.1, 1.5]])
def test_a_level_that_is_none_is_refused(alpha):
    with pytest.raises(InvalidInput, match=r"alpha must (lie in \[0, 1\]|be a number)"):
        profiles()["A"].tradeoff(alpha)


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


def test_rare_outputs_have_a_grey_bar_without_a_number():
    p, q = np.array([0.5, 0.499, 0.001]), np.array([0.3, 0.7, 0.0])
    ell = np.array([0.5, -0.3, np.inf])
    rows = dp.charts.mass_loss(["a", "b", "c"], p, q, ell, rare=[False, False, True]).to_dict()
    text = str(rows)
    assert "∞" not in text
    assert "'shown': 'rare'" in text
    assert "∞" in str(dp.charts.mass_loss(["a", "b", "c"], p, q, ell).to_dict())


def test_saved_charts_have_a_background_and_html_needs_no_network(tmp_path):
    chart = charts.spectrum({"a": (np.array([0.0, 1.0]), np.array([0.5, 0.1]))})
    chart.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["config"]["background"] == "white"
    chart.save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert len(page) > 500_000
    assert not re.search(r"""(src|href)=["']?http""", page)
    assert chart.to_dict()["config"]["background"] == "transparent"  # as pages embed it


def results():
    gaussian, draws = (dp.zoo.Gaussian(1.0), (0.0, 1.0)), {"n": 2000, "rng": 0}
    return {
        "estimate": dp.estimate(*gaussian, **draws),
        "categories": dp.estimate(dp.zoo.DiscreteLaplace(1.0), (0, 1), **draws),
        "audit": dp.audit(*gaussian, "eps=0.5", details=True, **draws),
        "spectrum": dp.spectrum.estimate(*gaussian, **draws),
        "renyi": dp.renyi.curve(*gaussian, orders=[2, 4], **draws),
        "pure": dp.pure.estimate(*gaussian, **draws),
        "tradeoff": dp.tradeoff.estimate(*gaussian, **draws),
    }


def test_every_chart_can_be_saved_for_print(tmp_path):
    """Charts in charts have many levels, of which a PDF allows about twenty."""
    made = {name: result.chart() for name, result in results().items()}
    made["together"] = (made["estimate"] | made["pure"]) & (made["categories"] | made["audit"])
    for name, chart in made.items():
        chart.save(tmp_path / f"{name}.pdf")
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    with (tmp_path / "open.pdf").open("wb") as file:
        made["pure"].save(file, "pdf")
    assert (tmp_path / "open.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", all_charts())
def test_a_drawing_with_fewer_groups_looks_the_same(name):
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(all_charts()[name].to_dict())
    fewer = theme.flat(drawn)
    assert fewer.count("<ns0:g") + fewer.count("<g") < drawn.count("<g")
    assert vl_convert.svg_to_png(fewer) == vl_convert.svg_to_png(drawn)


def test_results_have_a_chart_or_say_that_they_have_none(seed):
    gaussian, draws = (dp.zoo.Gaussian(1.0), (0.0, 1.0)), {"n": 1000, "rng": seed}
    assert dp.pure.lower_bound(*gaussian, **draws).chart().to_dict()["vconcat"]
    assert dp.tradeoff.point(*gaussian, **draws).chart().to_dict()["layer"]
    bare = [
        dp.bound(*gaussian, "eps", **draws),
        dp.renyi.lower_bound(*gaussian, order=2, **draws),
        dp.renyi.estimate(*gaussian, order=2, **draws),
        dp.verify(dp.zoo.DiscreteLaplace(1.0), (0, 1), "eps=1, delta=0.1", **draws),
    ]
    for result in bare:
        with pytest.raises(ValueError, match=f"{type(result).__name__} has no curve to draw"):
            result.chart()
        assert result._repr_html_()


def test_rényi_curves_are_drawn_apart_beyond_what_the_draws_support(seed):
    profile = dp.estimate(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=20_000, rng=seed)
    assert profile.renyi_reach < 32
    lines = dp.charts.within_reach("estimate", profile.renyi_curve, profile.renyi_reach)
    assert list(lines) == ["estimate", "estimate, not reliable"]
    assert lines["estimate"][0][-1] == profile.renyi_reach
    for chart in (profile.chart(), dp.charts.compare({"one": profile})):
        assert "not reliable" in chart.to_json()
    whole = dp.charts.within_reach("estimate", profile.renyi_curve, np.inf)
    assert list(whole) == ["estimate"]


def test_compared_rényi_curves_keep_their_notes(seed):
    curve = dp.renyi.curve(dp.zoo.Gaussian(1.0), (0.0, 1.0), orders=[2, 8], n=10_000, rng=seed)
    drawn = dp.charts.compare({"one": curve}).to_dict()["title"]["subtitle"]
    assert "one: the value at orders" in " ".join(drawn)


def test_legends_say_what_the_band_and_the_circle_are(seed):
    curve = dp.tradeoff.estimate(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=2000, rng=seed)
    assert "no bound on T" in " ".join(curve.chart().to_dict()["title"]["subtitle"])
    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=2000, rng=seed)
    shapes = [layer["encoding"]["shape"] for layer in verdict.chart().to_dict()["layer"]
              if "shape" in layer["encoding"]]  # fmt: skip
    assert [one["scale"] for one in shapes] == [{"domain": ["witness"], "range": ["circle"]}]


OUTPUTS = {
    "a category and a number": lambda x, r: (int(r.integers(3)), x + r.laplace()),
    "numbers": lambda x, r: [x + r.laplace(), r.laplace()],
    "keys": lambda x, r: {"a": x + r.laplace(), "b": int(r.integers(3))},
    "text": lambda x, r: "ab"[int(r.random() < 0.3 + 0.3 * x)],
    "texts and numbers": lambda x, r: x + r.laplace() if r.random() < 0.7 else "none",
    "mostly no number": lambda x, r: x + r.laplace() if r.random() < 0.3 - 0.2 * x else math.nan,
    "dates": lambda x, r: np.datetime64("2026-01-01T00:00:00") + int(3600 * (x + r.laplace())),
    "large whole numbers": lambda x, r: 2**70 + int(1000 * (x + r.laplace())),
    "nested": lambda x, r: {"a": [x + r.laplace(), "k"], "b": None if r.random() < 0.1 else 1.5},
}
CHARTED = {
    "estimate": dp.estimate,
    "pure": dp.pure.estimate,
    "pure bound": dp.pure.lower_bound,
    "spectrum": dp.spectrum.estimate,
    "renyi": functools.partial(dp.renyi.curve, orders=[2, 4]),
    "tradeoff": dp.tradeoff.estimate,
    "point": dp.tradeoff.point,
    "audit": functools.partial(dp.audit, claim="eps=0.5", details=True),
}


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_results_on_outputs_of_every_kind_can_be_drawn_and_saved(outputs, seed):
    mechanism = dp.from_function(OUTPUTS[outputs])
    results = [make(mechanism, (0.0, 1.0), n=400, rng=seed) for make in CHARTED.values()]
    results.append(dp.monitor(mechanism, (0.0, 1.0), claim="eps=0.5", max_n=400, rng=seed))
    for result in results:
        again = type(result).from_json(result.to_json())
        assert "NaN" not in again.chart().to_json()


def test_rényi_curves_over_decades_have_a_logarithmic_axis():
    axes = [
        dp.RenyiCurve([2.0, 4.0, 8.0], values).chart().to_json()
        for values in ([0.01, 0.5, 9.0], [0.1, 0.2, 0.4])
    ]
    assert ["logarithmic" in axis for axis in axes] == [True, False]


def test_a_point_without_a_curve_can_be_saved(tmp_path):
    """The legend of no lines had an infinite size."""
    point = dp.tradeoff.point(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=400, rng=0)
    point.chart().save(tmp_path / "point.svg")
    assert "Infinity" not in (tmp_path / "point.svg").read_text(encoding="utf-8")


def test_a_renyi_curve_marks_its_orders():
    curve = dp.RenyiCurve([1.5, 2.0, 4.0], [0.5, 0.7, 1.5])
    assert '"point": true' in curve.chart().to_json()
