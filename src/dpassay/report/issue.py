"""A draft of a bug report in Markdown: the numbers, how to repeat them without dpassay, the likely cause.

Whatever comes from a mechanism or its inputs stands in fenced blocks, where Markdown reads nothing.
"""

from __future__ import annotations

import ast
import math
import platform
import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from dpassay._version import __version__
from dpassay.errors import InvalidInput
from dpassay.outputs.event_code import exceptions, expression
from dpassay.outputs.keys import Layout
from dpassay.outputs.templates import paths
from dpassay.privacy.provenance import COUNTS, Origin
from dpassay.privacy.relations import Pair
from dpassay.records import Opaque
from dpassay.results.explanations import ALONE, SHARES, Explanation, Fault
from dpassay.results.verdict import Verdict
from dpassay.results.view import related
from dpassay.rounding import rounded_down

#: Longer conditions, such as polynomials of several numbers, are replaced by the event of a cause.
_READABLE = 160
#: A script draws so often that it expects at least so many hits on an input.
_EXPECTED = 20
#: Longer inputs are not written out, nor are those of other types.
_LONG, _PLAIN = 2000, (int, float, str, list, tuple, dict, set)
#: What of pandas reads a format.
_READERS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "pd.read_csv({})"),
    **dict.fromkeys((".jsonl", ".ndjson"), "pd.read_json({}, lines=True)"),
    ".parquet": "pd.read_parquet({})",
    ".feather": "pd.read_feather({})",
    ".npy": "pd.DataFrame(np.load({}))",
}
_HAPPENS = """

def happens(output):
    return {condition}

"""
_RAISES = """

def happens(data):
    try:
        release(data)
    except Exception as error:
        return type(error).__name__ in {condition}
    return False

"""
_CALLING = """import numpy as np

# release(data) is the function under test: one output for each call
{inputs}
{happens}
n = {n:_}
for data in (first, second):
    print(sum(bool(happens({of})) for _ in range(n)), "of", n)

# expected: about {p} of {n:,} on the first input and {q} of {n:,} on the second
"""
_READING = f"""import numpy as np
import pandas as pd


def outputs(file):
    table = {{table}}
    return {{rows}}
{_HAPPENS}
for file in ({{files}}):
    found = [bool(happens(output)) for output in outputs(file)]
    print(sum(found), "of", len(found))

# expected: {{p}} on the first input and {{q}} on the second
"""


def issue(verdict: Verdict) -> str:
    """The report of a violation as Markdown.

    >>> import dpassay as dp
    >>> verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=10_000, rng=0)
    >>> issue(verdict).startswith("# Not 1-DP: ε is at least 1.")
    True
    """
    if not verdict.violated:
        raise InvalidInput("a bug report is about a violation, and this verdict refutes nothing")
    claim, causes = verdict.claim, [one for one in verdict.diagnosis if one.kind is not Fault.NONE]
    pair = verdict.witness.pair
    bound = f"{claim.symbol} is at least {rounded_down(verdict.lower_bound)}"
    shown = "On the two neighbouring inputs below the outputs contradict"
    if verdict.of_canaries:
        shown = "A fair coin included each canary or left it out. Guesses of the coins contradict"
    why = ["Nothing was recorded about the cause."]
    if causes:
        text = "\n".join(f"{k}. {one}\n   look at {one.hint}" for k, one in enumerate(causes, 1))
        evidence = (
            "What the outputs support, the strongest first; it is evidence, not proof of a cause."
        )
        why = [evidence, "", fenced(text)]
    lines = [
        f"# Not {claim}: {bound}",
        "",
        f"{shown} {claim}: {bound}, with confidence "
        f"{verdict.confidence:.6g} ({verdict.guarantee}; {verdict.chance}).",
        "",
        "## Inputs",
        "",
        fenced(related(pair, str(pair)) if pair is not None else "not recorded"),
        "",
        "## What was counted",
        "",
        fenced("\n".join(filter(None, [verdict.witness_text, verdict.witness.all_rows]))),
        "",
        *([fenced(f"{verdict.belief}"), ""] if verdict.belief is not None else []),
        "## Likely cause",
        "",
        *why,
        "",
        "## To reproduce",
        "",
        *_reproduction(causes, verdict, pair),
        "",
        "## Versions",
        "",
        f"- the library under test: (please fill in)\n- Python {platform.python_version()}, "
        f"NumPy {np.__version__}\n- "
        + ", ".join(
            [
                f"found with dpassay {__version__}",
                *([] if verdict.about.seed is None else [f"seed {verdict.about.seed}"]),
                verdict.about.draws or "draws not recorded",
            ]
        ),
    ]
    return "\n".join(lines) + "\n"


def _reproduction(causes: list[Explanation], verdict: Verdict, pair: Pair | None) -> list[str]:
    """A script that counts the witness, or the event of a cause where the witness has no short form."""
    if verdict.of_canaries:
        return [
            "Draw fresh coins, train once more, score every canary in the same way and guess the coins "
            "again, as many as above: the share of right guesses is expected again."
        ]
    w, files = verdict.witness, verdict.about.files
    if verdict.about.method == COUNTS:
        counts = f"{w.hits_p} {w.n_p} {w.hits_q} {w.n_q}"
        claimed = shlex.quote(str(verdict.claim))
        return [
            "Count the event again in fresh runs. These counts are tested by",
            "",
            fenced(f"dpassay counts {counts} --claim {claimed}", "sh"),
        ]
    condition = expression(w.event, [name for one in files[:1] for name in one.columns])
    if raised := exceptions(w.event):
        condition = repr(set(raised))
    p, q, said = w.p, w.q, []
    if not 0 < len(condition) <= _READABLE:
        found = _other_event(causes, verdict)
        if found is not None:
            condition, p, q = found
            said = [
                "This counts the event of a cause named above, which exceeds the claim too.",
                "",
            ]
        elif not condition:
            if w.event.layout is None and w.event.score_function is None and not w.event.live:
                return ["Count how often the event above happens on each of the two inputs."]
            said = ["The event above has no short form in Python."]
            if " score " in w.event.words:
                said = ["The event above compares a score that was learned from draws."]
            if w.event.live:
                return [*said, "Only the audit itself can count it: run it again with this seed."]
            given = "FILE.py:FUNCTION  # and --per-call where it returns one output for each call"
            given = "--samples FRESH-FIRST FRESH-SECOND" if files else given
            said += ["Only dpassay can count it, on fresh outputs and with the saved verdict:", ""]
            return [*said, fenced(f"dpassay replay VERDICT.json {given}", "sh")]
    if files or w.in_all_rows is not None:
        counted = [f"a share of about {share:.3g}" for share in (p, q)]
        if w.in_all_rows is not None and (p, q) == (w.p, w.q):
            i, n, j, m = w.in_all_rows
            counted = [f"{i:,} of {n:,}", f"{j:,} of {m:,}"]
        reading = _reading(files, w.event.layout)
        if reading is None:
            both = "the two sets of outputs"
            expected = f"expected: {counted[0]} and {counted[1]}"
            count = f"Count how often this holds in each of {both}; {expected}."
            return [*said, count, "", fenced(condition, "python")]
        filled = dict(zip("pq", counted, strict=True))
        code = _READING.format(condition=condition, **reading, **filled)
    else:
        inputs = [_literal(one) for one in pair or (None, None)]
        given = "\n".join(
            f"{name} = {text}" if text else f"{name} = ...  # the {name} input above"
            for name, text in zip(("first", "second"), inputs, strict=True)
        )
        n = 10 ** max(4, math.ceil(math.log10(_EXPECTED / max(p, q))))
        often = {"n": n, "p": f"{n * p:,.0f}", "q": f"{n * q:,.0f}"}
        happens, of = (_RAISES, "data") if raised else (_HAPPENS, "release(data)")
        happens = happens.format(condition=condition)
        code = _CALLING.format(inputs=given, happens=happens, of=of, **often)
    return [*said, fenced(code.rstrip(), "python")]


def _other_event(causes: list[Explanation], verdict: Verdict) -> tuple[str, float, float] | None:
    """The event of an explanation that exceeds the claim by its certified bound, and its shares."""
    for one in causes:
        found = dict(one.numbers)
        if one.condition and set(SHARES) <= found.keys():
            p, q = (found[name] for name in SHARES)
            if found.get(ALONE, 0.0) > verdict.claim.value:
                high, low = max(p, q), min(p, q)
                if high * (1 - high) < low * (1 - low):  # the complement has the larger ratio
                    return f"not ({one.condition})", 1 - p, 1 - q
                return one.condition, p, q
    return None


def _reading(files: Sequence[Origin], layout: Layout | None) -> dict[str, str] | None:
    """How pandas reads the outputs from the files; None where that is not known."""
    if len({(one.delimiter, PurePath(one.file).suffix) for one in files}) != 1:
        return None
    one, names = files[0], list(files[0].columns)
    suffix = next((s for s in PurePath(one.file).suffixes[::-1] if s in _READERS), "")
    marks, alike = shlex.split(one.reading), layout is None or _alike(layout)
    if not suffix or not one.sha256 or not alike:  # of data frames there are no files
        return None
    options = {}
    if one.delimiter:
        named = zip(marks[::2], marks[1::2], strict=True)
        options = {"sep": one.delimiter} | {name.removeprefix("--"): mark for name, mark in named}
    text = "".join(f", {name}={value!r}" for name, value in options.items())
    unnamed = all(name.isdigit() for name in names) and (one.delimiter or suffix == ".npy")
    called: list[Any] = [int(name) - 1 if unnamed else name for name in names]
    text += ", header=None" if one.delimiter and unnamed else ""
    table = f"{_READERS[suffix].format(f'file{text}')}[{called!r}].astype(object)"
    rows = f"table[{called[0]!r}]"
    if len(called) > 1:
        rows = "table.itertuples(index=False)" if unnamed else 'table.to_dict("records")'
    table += "\n    table = table.where(table.notna(), None)  # a cell without a value"
    return {"table": table, "rows": rows, "files": ", ".join(repr(one.file) for one in files)}


def _alike(layout: Layout) -> bool:
    """Whether pandas reads every column as the audit did: numbers or words, and not both in one."""
    kinds: dict[str, set[str]] = {}
    for part in layout.parts:
        for code, leaf in paths(part.template):
            kinds.setdefault(code, set()).add(leaf[0])
    return all(kind - {"none"} in ({"number"}, {"str"}, set()) for kind in kinds.values())


class _Spelled(ast.NodeTransformer):
    """NaN and ±∞ as Python reads them."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A number by its name; other names must be those that a script has."""
        if node.id in ("nan", "inf"):
            return ast.parse(f"float({node.id!r})", mode="eval").body
        if node.id not in ("np", "set"):
            raise ValueError
        return node


def _literal(data: Any) -> str:
    """An input as Python reads it; empty where that is not known, or too long."""
    if isinstance(data, np.ndarray):
        text = f"np.array({data.tolist()!r})"
    elif isinstance(data, Opaque) or not isinstance(data, _PLAIN):
        return ""
    else:
        text = repr(data)
    if len(text) > _LONG:
        return ""
    try:
        return ast.unparse(_Spelled().visit(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError):
        return ""


def fenced(text: str, language: str = "text") -> str:
    """A block of code, with a fence longer than any that the text holds."""
    fence = "`" * (1 + max(2, *map(len, re.findall("`+", text)), 2))
    return f"{fence}{language}\n{text}\n{fence}"
