"""Pages that are told what to say: sessions with errors, leaks in the bits."""

from __future__ import annotations

import pytest
from tests.helpers import laplace_mechanism

import dpassay as dp
from dpassay import report
from dpassay.report.page import OF_VALUES

pytestmark = pytest.mark.browser

LONG = "no result: MechanismRaised: </td><script>alert(1)</script>" + "a long message " * 12


@pytest.fixture
def visit(chromium, tmp_path):
    """Writes a page and opens it; at the end nothing may have gone wrong."""
    opened, troubles = [], []

    def of(results, **options):
        path = tmp_path / "page.html"
        report.write(path, results, **options)
        page = chromium.new_page(viewport={"width": 390, "height": 844})
        opened.append(page)
        page.on("console", lambda m: troubles.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda d: (troubles.append(d.message), d.dismiss()))
        page.goto(path.as_uri())
        return page

    yield of
    for page in opened:
        page.close()
    assert troubles == []


def row(test, verdict):
    return {"test": test, "claim": "1-DP", "verdict": verdict}


@pytest.mark.parametrize("many", [0, 2])
def test_tests_without_a_result_stand_in_the_table(visit, many):
    verdicts = [dp.audit_counts(450, 1000, 184 + k, 1000, dp.PureDP(0.5)) for k in range(many)]
    page = visit(
        verdicts,
        table=[row(f"test_{k}", "violation") for k in range(many)],
        more=[row("test_raises", LONG)],
        lead=("violation", "1 test failed", "Of 3 privacy tests, 1 failed."),
    )
    cells = page.locator(".overview td[data-column=verdict]")
    assert cells.count() == many + 1
    assert cells.last.inner_text().endswith(LONG.strip())
    assert page.locator(".overview a").count() == many
    assert page.locator(".overview tr", has_text="test_raises").locator("a").count() == 0
    assert page.locator(".banner strong").inner_text().endswith("1 test failed")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if many:
        page.get_by_role("link", name="test_1", exact=True).click()
        assert page.locator("#v2 h2").inner_text().startswith("test_1")


def test_curves_beside_a_leak_in_the_bits_say_so(visit):
    verdict = dp.audit(
        laplace_mechanism, (0.0, 1.0), "eps=2", n=4000, loss="bits", details=True, rng=0
    )
    assert verdict.violated
    page = visit(verdict)
    captions = page.locator("figcaption")
    assert captions.count() >= 4
    cause, *curves = captions.all()
    assert "the witness event" in cause.inner_text()  # it is about the bits
    for caption in curves:
        assert caption.is_visible()
        assert OF_VALUES in caption.inner_text()
