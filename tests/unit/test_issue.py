"""Drafts of bug reports: what they hold, and that nobody's text becomes Markdown or code."""

import re

import numpy as np
import pytest

import dpassay as dp
from dpassay.cli import run
from dpassay.report.issue import fenced, issue

HOSTILE = "`````\n# owned\n<script>@everyone"


def hostile(data, size, rng):
    return [{HOSTILE: 1.0} if data and rng.random() < 0.9 else {} for _ in range(size)]


def test_a_report_has_versions_numbers_cause_and_a_script(seed):
    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=5000, loss="values", rng=seed)
    text = issue(verdict)
    for part in ("# Not 1-DP", "## Inputs", "## Likely cause", "scale: consistent with", "NumPy"):
        assert part in text
    assert f"dpassay {dp.__version__}" in text
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    release = lambda data: data + np.random.default_rng().laplace(scale=0.5)  # noqa: E731
    names: dict = {"release": release}
    exec(compile(script.replace("10_000", "50"), "script", "exec"), names)
    assert names["first"] == 0.0
    assert names["second"] == 1.0


def test_text_of_outputs_stays_inside_its_fences(seed):
    verdict = dp.audit(hostile, (0, 1), "eps=1", n=600, rng=seed)
    text = issue(verdict)
    outside, fence = [], ""
    for line in text.splitlines():
        ticks = re.match("`*", line)[0]
        if fence:
            fence = "" if line == fence else fence
        elif len(ticks) >= 3:
            fence = ticks
        else:
            outside.append(line)
    assert not fence
    assert "owned" not in "\n".join(outside)
    assert "@everyone" not in "\n".join(outside)


@pytest.mark.parametrize("text", ["", "`", "```", "a````b`", "\n"])
def test_a_fence_is_longer_than_what_it_holds(text):
    first, *inner, last = fenced(text).split("\n")
    assert first == f"{last}text"
    assert not any(last in line for line in inner)
    assert "\n".join(inner) == text


def test_nothing_is_drafted_where_nothing_is_refuted():
    verdict = dp.audit_counts(10, 100, 10, 100, "eps=1")
    with pytest.raises(dp.errors.InvalidInput, match="refutes nothing"):
        issue(verdict)


def test_the_command_writes_issues_and_pages(tmp_path, capsys, seed):
    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=5000, rng=seed)
    file = tmp_path / "verdict.json"
    file.write_text(verdict.to_json(), encoding="utf-8")
    assert run(["report", "--issue", str(file)]) == 0
    assert capsys.readouterr().out == issue(verdict)
    assert run(["report", str(file)]) == 0
    page = (tmp_path / "verdict.html").read_text(encoding="utf-8")
    assert "What the draws say about the cause" in page
    assert "What it means for a person" in page
    assert "v1-cause" in page
    clear = tmp_path / "clear.json"
    clear.write_text(dp.audit_counts(10, 100, 10, 100, "eps=1").to_json(), encoding="utf-8")
    assert run(["report", "--issue", str(clear)]) == 2
