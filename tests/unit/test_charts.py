import sys

import numpy as np
import pytest

import dpassay as dp
from dpassay import charts
from dpassay.errors import MissingExtra

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
