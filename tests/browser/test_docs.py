"""The documentation in a real browser: the landing page, and the gallery of released libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The documentation, built."""
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(ROOT / "docs"), str(out)]
    subprocess.run(build, check=True, cwd=ROOT)
    return out


@pytest.fixture
def opened(chromium, site):
    """Open a page of it; errors of scripts fail the test."""
    pages, errors = [], []

    def open_page(name, width):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.on("pageerror", lambda error: errors.append(error))
        page.goto((site / name).as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not errors


def audits():
    results = ROOT / "libraries" / "results"
    return {
        file.stem: json.loads(file.read_text(encoding="utf-8"))["results"]
        for file in results.glob("*.json")
    }


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize(
    "name", ["index.html", "libraries.html", "api/index.html", "api/audit.html", "theory.html"]
)
def test_no_page_is_wider_than_the_window(opened, name, width):
    page = opened(name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_gallery_lists_every_audit(opened):
    page = opened("libraries.html", 1280)
    assert page.locator("table.libraries tbody tr").count() == sum(map(len, audits().values()))


def test_the_gallery_is_filtered_by_library_and_verdict(opened):
    page = opened("libraries.html", 1280)
    visible = page.locator("table.libraries tbody tr:visible")
    form = page.locator("form.libraries-filter")
    form.locator("select[name=library]").select_option("opendp")
    assert visible.count() == len(audits()["opendp"])
    assert form.locator("output").inner_text() == f"{visible.count()} audits"
    form.locator("select[name=verdict]").select_option("violation")
    assert 0 < visible.count() < len(audits()["opendp"])
    assert {visible.nth(k).get_attribute("data-verdict") for k in range(visible.count())} == {
        "violation"
    }


def test_a_cell_of_the_matrix_shows_its_audits(opened):
    page = opened("libraries.html", 1280)
    cell = page.locator("table.matrix a").first
    cell.click()
    assert page.locator("table.libraries tbody tr:visible").count() == int(cell.inner_text())


def test_a_finding_has_a_page_with_its_reproduction(opened):
    page = opened("libraries.html", 1280)
    page.locator("article td a[href^='libraries/']").first.click()
    page.get_by_text(
        "libraries/reproductions/"
    ).wait_for()  # a click does not wait for the next page
    assert page.locator("div.highlight pre").first.is_visible()


def test_formulas_need_no_network(opened, site):
    assert 'src="http' not in (site / "theory.html").read_text(encoding="utf-8")
    formula = opened("theory.html", 1280).locator(".formula math").first
    assert formula.bounding_box()["height"] > 10
