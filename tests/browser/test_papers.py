"""The interactive pages of the papers' figures in a real browser."""

from __future__ import annotations

import pytest
from papers import core, eureka  # noqa: F401  (its figures register themselves)

pytestmark = pytest.mark.browser


def test_a_figure_is_drawn_by_its_page(chromium, tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    (results / "vega.js").touch()  # one that an earlier run left empty
    path = core.run(
        "eureka/fig6b", runs=1, shrink=0.001, workers=1, results=results, cache=tmp_path / "cache"
    )
    page, troubles = chromium.new_page(), []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(path.with_suffix(".html").as_uri())
    page.locator("#chart canvas, #chart svg").first.wait_for(timeout=10_000)
    assert page.locator("#chart").bounding_box()["height"] > 100
    assert troubles == []
    page.close()
