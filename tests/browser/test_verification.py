"""The page of a verification, and of a spectrum with its band, in a real browser."""

from __future__ import annotations

import pytest

import dpassay as dp
from dpassay import report

pytestmark = pytest.mark.browser

LAPLACE = dp.zoo.DiscreteLaplace(1.0)


def shown(claim, pairs=((0, 1),)):
    return dp.verify(LAPLACE, list(pairs), claim, n=20_000, rng=0)


CASES = {
    "confirmed": lambda: shown("eps=1.2, delta=0.01", [(0, 1), (1, 0), (2, 3)]),
    "unshown": lambda: shown("eps=1"),
    "nothing": lambda: dp.verify(
        dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1, delta=0.1", n=2000, rng=0
    ),
    "spectrum": lambda: dp.spectrum.estimate(LAPLACE, (0, 1), n=20_000, rng=0),
}


@pytest.fixture(scope="session", params=CASES)
def made(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("verification") / f"{request.param}.html"
    result = CASES[request.param]()
    report.write(path, [result], command="dpassay verify")
    return request.param, result, path


@pytest.fixture
def visit(chromium, made):
    """Opens the page; at the end nothing may have gone wrong."""
    pages, troubles = [], []

    def opened(**options):
        page = chromium.new_page(**options)
        pages.append(page)
        page.on("console", lambda m: troubles.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(made[2].as_uri())
        for chart in page.locator("[data-chart]").all():
            chart.evaluate("e => e.scrollIntoView()")
            chart.locator(".live svg").wait_for()
        return page

    yield opened
    for page in pages:
        page.close()
    assert troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_banner_is_readable_and_nothing_is_cut(visit, made, scheme, width):
    name, result, _ = made
    page = visit(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    tone = "estimate" if name == "spectrum" else result.tone
    assert contrast(page, f".banner.{tone} strong") >= 4.5
    for cell in page.locator(".facts b, .facts small").all():
        assert cell.evaluate("e => e.scrollWidth <= e.clientWidth + 1")


def contrast(page, selector):
    """The contrast of text and what is behind it, as WCAG 2 defines it."""
    return page.evaluate(
        """selector => {
          const element = document.querySelector(selector);
          const parse = c => c.match(/[0-9.]+/g).slice(0, 3).map(Number);
          const light = c => {
            const [r, g, b] = parse(c).map(v => {
              v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ink = light(getComputedStyle(element).color);
          const paper = light(getComputedStyle(element.closest('.banner')).backgroundColor);
          const [hi, lo] = [Math.max(ink, paper), Math.min(ink, paper)];
          return (hi + 0.05) / (lo + 0.05); }""",
        selector,
    )


def test_the_page_says_what_was_shown_and_where(visit, made):
    name, result, _ = made
    text = visit().locator("main").inner_text()
    assert "private" not in text.lower().replace("privacy", "")
    if name == "spectrum":
        assert "certified at least" in text
        assert "and at most" in text
        return
    assert f"on {result.where}" in text
    assert "It says nothing about other inputs" in text
    for one in result.pairs:
        assert str(one.pair) in text
    if name == "nothing":
        assert "round in the release itself" in text


def test_the_band_is_drawn(visit, made):
    if made[0] != "spectrum":
        return
    page = visit()
    assert page.locator(".live svg .mark-area path").count() == 1
    assert page.locator(".live svg .mark-line path").count() >= 3


def test_what_was_verified_can_be_saved(visit, made):
    name, result, _ = made
    page = visit()
    file = "spectrum.json" if name == "spectrum" else "verification.json"
    with page.expect_download() as caught:
        page.get_by_role("button", name=f"Save {file}").click()
    with open(caught.value.path(), encoding="utf-8") as saved:
        assert saved.read() == result.to_json()
