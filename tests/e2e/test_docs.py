"""Every example in the README and the documentation runs, and transcripts are what is printed."""

import re
import shlex
from pathlib import Path

import pytest

from dpassay.cli import run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]  # {run} runs in make docs
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    """Blocks of a page share their names. Under `$` a transcript follows, or nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")
    names = {"__name__": "example"}
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(text, page.name, "exec"), names)
            continue
        for command, transcript in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            capsys.readouterr()
            status = run(shlex.split(command)[1:])
            printed = capsys.readouterr()
            assert status in (0, 1), printed.err
            if transcript.strip():
                assert printed.out.split() == transcript.split()
