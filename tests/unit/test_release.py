"""What a release is refused for."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tools import release, sbom

import dpassay

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    """A copy of the files that a release is checked for."""
    held = ["CHANGELOG.md", "README.md", "src/dpassay/_version.py", *release.NAMING]
    for name in held:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "fixtures" / ".".join(dpassay.__version__.split(".")[:2])).mkdir(
        parents=True
    )
    return tmp_path


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert re.search(old, text)
    path.write_text(re.sub(old, new, text), encoding="utf-8")


def test_the_files_agree_on_the_version():
    assert release.version_of(ROOT) == dpassay.__version__
    release.check_metadata(ROOT)


@pytest.mark.parametrize("name", ["CITATION.cff", ".zenodo.json"])
def test_another_version_is_refused(project, name):
    change(project / name, re.escape(dpassay.__version__), "9.9.9")
    with pytest.raises(release.Refused, match="different versions"):
        release.version_of(project)


@pytest.mark.parametrize(
    "pin", ["numpy<3", "numpy>=1.26,<3", "numpy==1.26", "numpy", "numpy~=1.26"]
)
def test_dependencies_have_lower_bounds_alone(project, pin):
    change(project / "pyproject.toml", r"numpy>=1\.26", pin)
    with pytest.raises(release.Refused, match="lower bound"):
        release.check_metadata(project)


def test_placeholders_are_not_published(project):
    version = dpassay.__version__
    left = list(release.obstacles(project, version))
    assert [name for name in release.NAMING if any(one.startswith(name) for one in left)] == [
        name for name in release.NAMING if release.PLACEHOLDER in release.read(project / name)
    ]
    for name in release.NAMING:
        text = release.read(project / name).replace(release.PLACEHOLDER, "dpassay.dev")
        (project / name).write_text(text, encoding="utf-8")
    (project / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## {version} — 2026-12-01\n\n- All.\n", "utf-8"
    )
    assert list(release.obstacles(project, version)) == []
    (project / "SECURITY.md").write_text("security@example.org", encoding="utf-8")
    with pytest.raises(release.Refused, match="not to be published"):
        release.check(project, project / "dist", publish=True, quick=True)


def test_no_other_file_of_the_project_names_the_placeholder():
    files = [*ROOT.glob("*.*"), *(ROOT / ".github").rglob("*.yml"), *(ROOT / "docs").rglob("*.md")]
    naming = [
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.is_file()
        and release.PLACEHOLDER in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert set(naming) <= set(release.NAMING)


def test_a_changelog_is_read_by_version():
    text = (
        "# C\n\n## Unreleased\n\n- new\n\n## 1.1.0 — 2026-01-02\n\n- a\n\n## 1.0.0 — 2025-01-02\n"
    )
    assert release.changes(text, "1.1.0") == ("— 2026-01-02\n\n- a", "- new")
    assert release.changes(text, "9.9.9") == ("", "- new")


def test_the_examples_of_the_readme_are_one_program():
    program = release.examples(release.read(ROOT / "README.md"))
    compile(program, "README.md", "exec")
    assert "dp.audit_counts(" in program
    assert "assert_private(" in program


@pytest.mark.parametrize(
    ("terms", "fine"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND 0BSD AND MIT", True),
        ("ISC License (ISCL)", True),
        ("", False),
        ("GNU General Public License v3", False),
        ("MIT AND GPL-3.0-only", False),
        ("SUBMIT", False),
    ],
)
def test_licences(terms, fine):
    known = bool(release.PERMISSIVE.search(terms)) and not release.RECIPROCAL.search(terms)
    assert known is fine


def test_the_bill_of_materials_lists_what_is_installed():
    found = sbom.bill("dpassay")
    assert found["metadata"]["component"]["name"] == "dpassay"
    named = {one["name"]: one for one in found["components"]}
    assert {"numpy", "scipy", "scikit-learn"} <= set(named)
    assert "dpassay" not in named
    assert named["numpy"]["licenses"][0]["license"]["name"].startswith("BSD")
    assert len({one["bom-ref"] for one in found["components"]}) == len(named)
    json.dumps(found)
