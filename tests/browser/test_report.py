"""The report in a real browser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpassay as dp
from dpassay import report
from dpassay.outputs.events import Event, Intervals
from dpassay.privacy.provenance import About, Origin

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
X = np.linspace(-4, 5, 901)


def profile(loss):
    laplace, pair = dp.zoo.Laplace(), (0.0, 1.0)
    eps, alpha, orders = np.linspace(0, 2, 41), np.linspace(0, 1, 201), np.linspace(1.5, 8, 14)
    return dp.Profile(
        epsilon=1.0,
        mu=1.2,
        spectrum=dp.Spectrum(eps, [laplace.delta(e, pair) for e in eps]),
        renyi_curve=dp.RenyiCurve(orders, [laplace.renyi(order, pair) for order in orders]),
        tradeoff_curve=dp.TradeoffCurve(alpha, laplace.tradeoff(alpha, pair)),
        loss=loss,
        about=About(method=HOSTILE, guarantee="heuristic"),
    )


def continuous():
    p, q = 0.5 * np.exp(-np.abs(X)), 0.5 * np.exp(-np.abs(X - 1))
    verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    event = Event(words="below 0.5", partial=((0, Intervals([-np.inf], [0.5])),))
    return replace(
        verdict,
        profile=profile(dp.LossCurve(X, np.log(p / q), p, q)),
        witness=replace(verdict.witness, event=event),
    )


def discrete():
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.3, 0.4])
    loss = dp.LossCurve(range(3), np.log(p / q), p, q, labels=(HOSTILE, "b" * 300, "{{7*7}}"))
    verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    event = Event(words=HOSTILE, live=True)
    witness = replace(verdict.witness, event=event, pair=dp.Pair(HOSTILE, "x"))
    origin = Origin(HOSTILE, 12, "0123456789abcdef" * 4, 3, ("a", HOSTILE), 0, "2024-02-29")
    return replace(
        verdict,
        profile=profile(loss),
        witness=witness,
        pairs=((HOSTILE, 1.0),),
        about=replace(verdict.about, files=(origin, origin)),
    )


VERDICTS = {"continuous": continuous, "discrete": discrete}


@pytest.fixture(scope="session", params=VERDICTS)
def made(request, tmp_path_factory):
    verdict = VERDICTS[request.param]()
    path = tmp_path_factory.mktemp("report") / f"{request.param}.html"
    table = [{"mechanism": HOSTILE, "claim": "a long claim " * 4, "verdict": "violation"}]
    report.write(path, [verdict], title=HOSTILE, command=f"dpassay {HOSTILE}", table=table)
    return verdict, path


@pytest.fixture
def visit(chromium, made):
    """Opens the page and collects what it does; at the end nothing may have gone wrong."""
    contexts, troubles = [], []

    def opened(**options):
        context = chromium.new_context(accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: troubles.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda d: (troubles.append(f"dialog: {d.message}"), d.dismiss()))
        page.on(
            "request",
            lambda r: (
                troubles.append(f"request: {r.url}")
                if not r.url.startswith(("file:", "data:", "blob:"))
                else None
            ),
        )
        page.goto(made[1].as_uri())
        if options.get("java_script_enabled", True):
            for chart in page.locator("[data-chart]").all():
                chart.evaluate("e => e.scrollIntoView()")
                chart.locator(".live svg").wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def test_charts_are_drawn(visit):
    page = visit()
    charts = page.locator("[data-chart]")
    assert charts.count() == 5
    assert page.locator(".chart.ready").count() == 5
    for chart in charts.all():
        assert chart.locator(".live svg").get_attribute("aria-label")
        assert chart.locator(".live svg .role-mark path").count() > 0
        assert not chart.locator(".still").is_visible()


def test_a_pointer_gets_numbers(visit):
    page = visit()
    for chart in page.locator("[data-chart]").all():
        chart.scroll_into_view_if_needed()
        area = chart.locator(".live svg").bounding_box()
        tip = page.locator("#tooltip")
        for share in (0.3, 0.45, 0.6, 0.75):
            page.mouse.move(area["x"] + 0.35 * area["width"], area["y"] + share * area["height"])
            page.wait_for_timeout(60)
            if tip.is_visible():
                break
        assert any(character.isdigit() for character in tip.inner_text())
        assert "undefined" not in tip.inner_text()
        assert page.locator("#tooltip img, #tooltip script").count() == 0
        page.mouse.move(1, 1)


def test_a_tooltip_names_the_curve(visit):
    page = visit()
    page.locator("[data-chart=v1-tradeoff]").scroll_into_view_if_needed()
    area = page.locator("[data-chart=v1-tradeoff] .live svg").bounding_box()
    page.mouse.move(area["x"] + 0.5 * area["width"], area["y"] + 0.5 * area["height"])
    tip = page.locator("#tooltip")
    tip.wait_for()
    assert {"curve", "α", "β"} <= set(tip.locator("span").all_inner_texts())
    assert tip.locator("b").first.inner_text() in {"estimate", "claimed"}


def test_the_download_is_the_verdict(visit, made):
    verdict, _ = made
    page = visit()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Save verdict.json").click()
    assert caught.value.suggested_filename == "verdict.json"
    with open(caught.value.path(), encoding="utf-8") as file:
        assert file.read() == verdict.to_json()


def test_hostile_strings_do_not_run(visit):
    page = visit()
    page.wait_for_timeout(200)
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.title().startswith(HOSTILE)


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_no_sideways_scrolling(visit, width):
    page = visit(viewport={"width": width, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.locator(".live svg").all():
        area = box.bounding_box()
        assert area["x"] + area["width"] <= width


def test_charts_follow_the_width_of_the_window(visit):
    page = visit(viewport={"width": 900, "height": 800})
    chart = page.locator(".live svg").first
    wide = chart.bounding_box()["width"]
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(300)
    assert chart.bounding_box()["width"] < 390 < wide


def test_dark_pages_are_dark(visit):
    looks = {scheme: visit(color_scheme=scheme) for scheme in ("light", "dark")}
    paper = "getComputedStyle(document.body).backgroundColor"
    assert looks["light"].evaluate(paper) == "rgb(255, 255, 255)"
    assert looks["dark"].evaluate(paper) == "rgb(20, 23, 28)"
    ink = "getComputedStyle(document.querySelector('.live svg .role-axis-label text')).fill"
    assert looks["light"].evaluate(ink) == "rgb(27, 32, 39)"
    assert looks["dark"].evaluate(ink) == "rgb(231, 234, 238)"


def test_every_tone_has_a_colour_of_its_own(chromium, tmp_path):
    hits = {"violation": (450, 184), "clear": (250, 184), "blind": (0, 0)}
    for scheme in ("light", "dark"):
        colours = {}
        for tone, (p, q) in hits.items():
            path = tmp_path / f"{tone}.html"
            report.write(path, [dp.audit_counts(p, 1000, q, 1000, dp.PureDP(0.5))])
            page = chromium.new_page(color_scheme=scheme)
            page.goto(path.as_uri())
            strong = page.locator(f".banner.{tone} strong")
            assert strong.is_visible()
            colours[tone] = strong.evaluate("e => getComputedStyle(e).color")
            page.close()
        assert len(set(colours.values())) == 3


def test_without_scripts_the_drawings_stand(visit):
    page = visit(java_script_enabled=False)
    for still in page.locator(".still svg").all():
        assert still.is_visible()
    assert not page.get_by_role("button").is_visible()


def test_on_paper_the_drawings_stand(visit):
    page = visit()
    page.emulate_media(media="print")
    assert page.locator(".still svg").first.is_visible()
    assert not page.locator(".live svg").first.is_visible()


def test_folded_verdicts_open_from_the_table(chromium, tmp_path):
    verdicts = [continuous(), discrete(), continuous()]
    table = [{"mechanism": name} for name in "abc"]
    path = tmp_path / "several.html"
    report.write(path, verdicts, table=table)
    page = chromium.new_page()
    page.goto(path.as_uri())
    assert not page.locator("#v2").is_visible()
    page.get_by_role("link", name="b", exact=True).click()
    page.locator("#v2 .chart.ready").first.wait_for()
    assert page.locator("#v2").is_visible()
    assert not page.locator("#v3").is_visible()
    page.close()


CLIPPED = """() => [...document.querySelectorAll('.live svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const at = text.getBoundingClientRect();
    return at.width > 0 && (at.left < box.left - 1 || at.right > box.right + 1
      || at.top < box.top - 1 || at.bottom > box.bottom + 1);
  }).map(text => text.textContent); })"""


@pytest.mark.parametrize("width", [320, 400, 1280])
def test_no_label_of_a_chart_is_clipped(visit, width):
    page = visit(viewport={"width": width, "height": 900})
    assert page.locator(".live svg text").count() > 20
    assert page.evaluate(CLIPPED) == []
