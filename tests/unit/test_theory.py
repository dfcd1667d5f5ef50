"""The theory, the page of trust and the report name code, tests and tables that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["docs/theory.md", "docs/trust.md", "docs/paper/report.typ"]
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py"))


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_modules_and_test_files_exist(page):
    named = set(re.findall(r"[`\"]([a-z_]+/[a-z0-9_/]+\.py)[`\"]", read(page)))
    assert named
    for path in named:
        found = ROOT / path if path.startswith("tests/") else ROOT / "src/dpassay" / path
        assert found.is_file(), f"{page} names {path}"


@pytest.mark.parametrize("page", PAGES)
def test_tests_that_are_named_exist(page):
    named = set(re.findall(r"[`\"](test_[a-z0-9_]+)[`\"]", read(page)))
    assert named
    for name in named:
        assert f"def {name}(" in TESTS, f"{page} names {name}"


def test_tables_and_figures_of_the_report_exist():
    text = read("docs/paper/report.typ")
    tables = re.findall(r"#results\(\"/([^\"]+)\", \"([^\"]+)\"", text)
    assert len(tables) > 10
    for page, name in tables:
        assert read(page).count(f"<!-- table: {name} -->") == 1, (page, name)
    for path in re.findall(r"(?:image|plot|json|read)\(\"/([^\"]+\.\w+)\"", text):
        assert (ROOT / path).is_file(), path
    (listed,) = re.findall(r"#let files = \(([^)]*)\)", text)
    kept = {path.stem for path in ROOT.glob("libraries/results/*.json")}
    assert set(re.findall(r"\"([^\"]+)\"", listed)) == kept


def test_citations_of_the_report_are_in_its_bibliography():
    text = read("docs/paper/report.typ")
    known = set(re.findall(r"@\w+\{(\w+),", read("docs/paper/refs.bib")))
    labels = set(re.findall(r"<(\w+)>", text))
    cited = set(re.findall(r"@(\w+)", text))
    assert cited <= known | labels
    assert known <= cited, "nobody cites these"
