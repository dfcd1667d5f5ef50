"""Drafts of bug reports: what they hold, and that nobody's text becomes Markdown or code."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dpassay as dp
from dpassay.cli import run
from dpassay.outputs.event_code import expression
from dpassay.report.issue import _other_event, fenced, issue
from dpassay.results.explanations import Explanation, Fault

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


def _script(text):
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return script


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda x, size, rng: np.round(x + rng.laplace(scale=0.9, size=size), 6),
        lambda x, size, rng: x + rng.geometric(0.6, size) - rng.geometric(0.6, size),
        lambda x, size, rng: [
            None if rng.random() < 0.5 + 0.4 * x else round(rng.normal(), 3) for _ in range(size)
        ],
        lambda x, size, rng: np.where(rng.random(size) < 0.05 + 0.4 * x, "yes", "no"),
        lambda x, size, rng: np.clip(np.round(x + rng.laplace(scale=0.5, size=size), 2), 0, 1),
        lambda x, size, rng: np.round((1 + x) * rng.normal(size=size), 2),
    ],
)
def test_the_script_counts_the_witness(mechanism, seed):
    verdict = dp.audit(mechanism, (0, 1), "eps=0.5", n=12_000, loss="values", rng=seed)
    condition = expression(verdict.witness.event)
    assert f"    return {condition}\n" in _script(issue(verdict))
    for x, share in zip((0, 1), (verdict.witness.p, verdict.witness.q), strict=True):
        outputs = list(mechanism(x, 4000, np.random.default_rng(seed)))
        found = np.mean([bool(eval(condition, {"output": one, "np": np})) for one in outputs])
        assert abs(found - share) < 5 * math.sqrt(0.25 / 4000 + 0.25 / 9000)


def test_a_polynomial_of_columns_selects_the_rows_that_were_counted(seed):
    """Columns that are nearly multiples of each other, far from 0: rounded factors select other rows."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)

    def table(shift):
        income = 5000 + rng.normal(0, 3, 3000)
        tax = 2 * income + rng.normal(0, 0.02, 3000) + 0.03 * shift
        return pd.DataFrame({"income": income, "tax": tax, "note": rng.normal(0, 1, 3000) - income})

    files = table(0), table(1)
    witness = dp.audit(dp.from_samples(*files), claim="eps=0.3", loss="linear", rng=seed).witness
    words = str(witness.event).replace("·", "*").replace("−", "-").replace("≥", ">=")
    script = expression(witness.event, ["income", "tax", "note"])
    for code in (words, script):
        i, j = (
            sum(
                bool(eval(code, {"np": np, "output": row, **row}))
                for row in rows.to_dict("records")
            )
            for rows in files
        )
        assert (i, 3000, j, 3000) == witness.in_all_rows


def test_another_event_is_counted_only_if_it_exceeds_the_claim(seed):
    mechanism = lambda x, size, rng: x + rng.normal(size=(size, 3))  # noqa: E731
    verdict = dp.audit(mechanism, (0.0, 1.0), "mu=1.6", n=12_000, loss="boosting", rng=seed)
    assert verdict.violated
    assert expression(verdict.witness.event) == ""
    assert "```python" not in issue(verdict)


@pytest.mark.parametrize(
    ("name", "text", "options", "written"),
    [
        ("csv", {"sep": ";", "decimal": ","}, {"decimal": ","}, "sep=';', decimal=','"),
        ("csv", {"header": False}, {"columns": ["2"]}, "header=None"),
        ("parquet", None, {}, "pd.read_parquet"),
        ("jsonl", None, {}, "lines=True"),
    ],
)
def test_files_are_read_and_counted(name, text, options, written, tmp_path, monkeypatch, capsys):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rng, files = np.random.default_rng(1), [f"p.{name}", f"q.{name}"]
    for x, file in enumerate(files):
        table = pd.DataFrame(
            {"row": rng.integers(9, size=4000), "v": np.round(rng.laplace(x, 0.5, 4000), 2)}
        )
        table.loc[rng.random(4000) < 0.01, "v"] = np.nan
        if text is not None:
            table.to_csv(file, index=False, **text)
        elif name == "parquet":
            table.to_parquet(file)
        else:
            table.to_json(file, orient="records", lines=True)
    given = {"columns": ["v"], **options}
    verdict = dp.audit(dp.from_samples(*files, **given), claim="eps=1", rng=0)
    script = _script(issue(verdict))
    assert written in script
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas beside an old pyarrow
        exec(compile(script, "script", "exec"), {})
    i, n, j, m = verdict.witness.in_all_rows
    assert capsys.readouterr().out.split("\n")[:2] == [f"{i} of {n}", f"{j} of {m}"]
    assert (n, m) == (4000, 4000)


def test_numbers_among_words_are_left_to_the_reader(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for file, share in (("p.csv", 0.2), ("q.csv", 0.8)):
        rows = np.where(rng.random(2000) < share, "007", "x12")
        (tmp_path / file).write_text("\n".join(["code", *rows]) + "\n", encoding="utf-8")
    verdict = dp.audit(dp.from_samples("p.csv", "q.csv"), claim="eps=0.5", rng=0)
    i, n, j, m = verdict.witness.in_all_rows
    assert f"expected: {i:,} of {n:,} and {j:,} of {m:,}" in issue(verdict)
    assert "read_csv" not in issue(verdict)


def test_a_relation_that_nobody_named_is_not_written(seed):
    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=5000, rng=seed)
    assert "unspecified" not in issue(verdict)


def test_an_event_of_a_learned_score_is_counted_by_a_replay(seed):
    def release(data, size, rng):
        return rng.laplace(size=(size, 2)) + data

    verdict = dp.audit(release, (0.0, 1.0), "eps=1.2", n=5000, loss="boosting", rng=seed)
    assert "the boosting score" in verdict.witness.event.words
    causes = tuple(replace(one, condition="") for one in verdict.diagnosis)
    text = issue(replace(verdict, diagnosis=causes))
    assert "Only dpassay can count it" in text
    assert "dpassay replay VERDICT.json FILE.py:FUNCTION  # and --per-call where" in text


def test_inputs_that_are_no_finite_numbers_are_written(seed):
    pair = [1.0, float("nan"), -math.inf], np.array([0.0, math.nan, math.inf])

    def release(data, size, rng):
        return isinstance(data, list) + rng.laplace(scale=0.2, size=size)

    script = _script(issue(dp.audit(release, pair, "eps=1", n=1000, rng=seed)))
    names = {"release": lambda data: 0.0}
    exec(compile(script.replace("10_000", "5"), "script", "exec"), names)
    for name, data in zip(("first", "second"), pair, strict=True):
        assert type(names[name]) is type(data)
        assert np.array_equal(names[name], data, equal_nan=True)


def test_inputs_that_a_script_cannot_make_are_left_to_the_reader(seed):
    pair = ["nan", math.sqrt], ["x", math.sqrt]
    mechanism = lambda data, size, rng: (data[0] == "x") + rng.laplace(scale=0.2, size=size)  # noqa: E731
    script = _script(issue(dp.audit(mechanism, pair, "eps=1", n=1000, rng=seed)))
    assert "first = ...  # the first input above" in script


def _keys(data, rng):
    """A noisy histogram; a key comes where its noisy count is large, 'b' hardly ever."""
    noisy = {k: data.count(k) + rng.laplace() for k in sorted(set(data))}
    return {key: x for key, x in noisy.items() if x >= 4}


def test_the_script_of_a_key_that_is_there_counts_it(seed):
    pair = ["a"] * 20, ["a"] * 20 + ["b"]
    claim = dp.ApproximateDP(1.0, 0.001, headline="delta")
    verdict = dp.audit(dp.from_function(_keys), pair, claim, n=8000, loss="kde", rng=seed)
    condition = expression(verdict.witness.event)
    assert condition == "set(output) == {'a', 'b'}"
    rng = np.random.default_rng(seed)
    drawn = [_keys(pair[1], rng) for _ in range(2000)]
    held = [eval(condition, {"output": one}) for one in drawn]
    assert held == ["b" in one for one in drawn]
    assert condition in issue(verdict)


def _by_size(data, rng):
    """Noisy counts of groups, in the order of the true ones."""
    groups = sorted(set(data), key=lambda group: -data.count(group))
    return [{"group": group, "n": data.count(group) + rng.laplace()} for group in groups]


def test_a_feature_that_python_cannot_say_briefly_is_counted_by_a_replay(seed):
    pair = ["x", "x", "y"], ["x", "y", "y"]
    verdict = dp.audit(dp.from_function(_by_size), pair, "eps=1", n=1000, loss="feature", rng=seed)
    text = issue(verdict)
    assert not expression(verdict.witness.event)
    assert "The event above has no short form in Python." in text
    assert "dpassay replay VERDICT.json" in text
    assert "Count how often the event above happens" not in text


def count_and_sum(data, size, rng):
    noise = rng.laplace(scale=1.0, size=size)
    return np.round(np.stack([len(data) + noise, sum(data) + noise], axis=1), 4)


def threshold(data, rng):
    counts = {key: data.count(key) + rng.laplace() for key in sorted(set(data))}
    return {key: round(x, 4) for key, x in counts.items() if x > 3}


@pytest.mark.parametrize(
    ("mechanism", "pair", "claim", "loss", "event"),
    [
        (count_and_sum, ([1.0], [1.0, 3.0]), "eps=1", "linear", "output[0] - output[1] >= "),
        (dp.from_function(threshold), (["a"], ["a", "b"]), "eps=1, delta=1e-3", None, "'b' in"),
    ],
)
def test_an_event_without_a_short_form_is_replaced_by_that_of_a_cause(
    mechanism, pair, claim, loss, event, seed
):
    given = {} if loss is None else {"loss": loss}
    verdict = dp.audit(mechanism, pair, claim, n=4000, rng=seed, **given)
    text = issue(verdict)
    assert f"    return {event}" in _script(text)
    assert "the event of a cause named above" in text
    assert "another event" not in text


def test_counts_are_reported_with_the_command_that_tests_them():
    text = issue(dp.audit_counts(450, 1000, 184, 1000, "eps=0.5, delta=1e-5"))
    assert "dpassay counts 450 1000 184 1000 --claim '(0.5, 1e-05)-DP'" in text
    assert dp.claim("(0.5, 1e-05)-DP") == dp.ApproximateDP(0.5, 1e-5)
    assert "seed" not in text


def test_the_event_of_a_cause_is_negated_where_its_complement_shows_more():
    """Shares .987 and .916 have a ratio of 1.08, those of the complement one of 6.7."""
    shares = (("share, first input", 0.9874), ("share, second input", 0.9161))
    cause = Explanation(
        kind=Fault.UNPROTECTED,
        sentence="x",
        condition="output[1] >= 0.177",
        numbers=(("certified by this event", 1.5), *shares),
    )
    verdict = dp.audit_counts(450, 1000, 184, 1000, "eps=0.5")
    condition, p, q = _other_event([cause], verdict)
    assert condition == "not (output[1] >= 0.177)"
    assert (p, q) == pytest.approx((0.0126, 0.0839))
