"""The page of a hunt in a real browser."""

from __future__ import annotations

import numpy as np
import pytest

import dpassay as dp
from dpassay import report

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def release(data, size, rng):
    """A count in which one word weighs far too much."""
    total = sum(100 if row["word"] == HOSTILE else 1 for row in data)
    return np.round(total + rng.laplace(size=size))


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    words = dp.inputs.Category(["plain", HOSTILE, "x" * 200])
    space = dp.inputs.Table({"word": words, "value": dp.inputs.Real(0, 1)}, rows=(0, 30))
    found = dp.hunt(release, space, "eps=1", relation="add_remove", budget=20_000, rng=0)
    path = tmp_path_factory.mktemp("hunt") / "hunt.html"
    report.write(path, [found], command=f"dpassay hunt {HOSTILE}")
    return found, path


@pytest.fixture
def visit(chromium, made):
    """Opens the page; at the end nothing may have gone wrong."""
    pages, troubles = [], []

    def opened(**options):
        page = chromium.new_page(**options)
        pages.append(page)
        page.on("console", lambda m: troubles.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.goto(made[1].as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_both_inputs_fit_and_what_differs_can_be_read(visit, scheme, width):
    page = visit(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for cell in page.locator(".inputs td").all():
        assert cell.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    marked = page.locator(".only-first, .only-second")
    assert marked.count() == 1
    assert marked.evaluate(CONTRAST) >= 4.5


#: The contrast of text and what is behind it, as WCAG 2 defines it.
CONTRAST = """element => {
  const parse = c => c.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const light = c => {
    const [r, g, b] = parse(c).map(v => {
      v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ink = light(getComputedStyle(element).color);
  const paper = light(getComputedStyle(element).backgroundColor);
  const [hi, lo] = [Math.max(ink, paper), Math.min(ink, paper)];
  return (hi + 0.05) / (lo + 0.05); }"""


def test_the_page_shows_the_pair_the_log_and_that_text_is_text(visit, made):
    found, _ = made
    page = visit()
    marked = page.locator(".only-first, .only-second").inner_text()
    assert marked.startswith(("−", "+"))
    assert HOSTILE in marked
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    log = page.get_by_role("region", name="Pairs of inputs").locator("tbody tr")
    assert log.count() == found.tried
    assert "tested" in log.first.inner_text()
    assert f"{found.draws:,} draws" in page.locator("main").inner_text()


def test_a_hunt_can_be_saved(visit, made):
    page = visit()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Save hunt.json").click()
    with open(caught.value.path(), encoding="utf-8") as saved:
        assert saved.read() == made[0].to_json()
