"""A draft of a bug report in Markdown: the numbers, how to repeat them without dpassay, the likely cause.

Whatever comes from a mechanism or its inputs stands in fenced blocks, where Markdown reads nothing.
"""

from __future__ import annotations

import platform
import re
from typing import Any

import numpy as np

from dpassay._version import __version__
from dpassay.errors import InvalidInput
from dpassay.privacy.pairs import Pair
from dpassay.records import Opaque
from dpassay.results.explanations import SHARES, Explanation, Fault
from dpassay.results.verdict import Verdict
from dpassay.rounding import rounded_down

#: Longer inputs are not written out, nor are those of other types.
_LONG, _PLAIN = 2000, (int, float, str, list, tuple, dict, set)
_COUNTING = """import numpy as np

# release(data) is the function under test: one output for each call
{inputs}


def happens(output):
    return {condition}


n = 10_000
for data in (first, second):
    print(sum(bool(happens(release(data))) for _ in range(n)), "of", n)

# expected: about {p} of 10,000 on the first input and {q} of 10,000 on the second
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
        f"On the two neighbouring inputs below the outputs contradict {claim}: {bound}, with confidence "
        f"{verdict.confidence:.6g} ({verdict.guarantee}; {verdict.chance}).",
        "",
        "## Inputs",
        "",
        fenced(f"{pair.relation}: {pair}" if pair is not None else "not recorded"),
        "",
        "## What was counted",
        "",
        fenced(str(verdict.witness)),
        "",
        *([fenced(f"{verdict.belief}"), ""] if verdict.belief is not None else []),
        "## Likely cause",
        "",
        *why,
        "",
        "## To reproduce, without dpassay",
        "",
        *_reproduction(causes, verdict, pair),
        "",
        "## Versions",
        "",
        f"- the library under test: (please fill in)\n- Python {platform.python_version()}, "
        f"NumPy {np.__version__}\n- found with dpassay {__version__}, seed {verdict.about.seed}, "
        f"{verdict.about.draws or 'draws not recorded'}",
    ]
    return "\n".join(lines) + "\n"


def _reproduction(causes: list[Explanation], verdict: Verdict, pair: Pair | None) -> list[str]:
    """A script that counts a readable event."""
    able = [one for one in causes if one.condition and set(SHARES) <= dict(one.numbers).keys()]
    if not able:
        return ["Count how often the event above happens on each of the two inputs."]
    inputs = [_literal(one) for one in pair or (None, None)]
    given = [
        f"{name} = {text}" if text else f"{name} = ...  # the {name} input above"
        for name, text in zip(("first", "second"), inputs, strict=True)
    ]
    p, q = (f"{10_000 * dict(able[0].numbers)[name]:,.0f}" for name in SHARES)
    code = _COUNTING.format(inputs="\n".join(given), condition=able[0].condition, p=p, q=q)
    return [fenced(code.rstrip(), "python")]


def _literal(data: Any) -> str:
    """An input as Python reads it; empty where that is not known, or too long."""
    if isinstance(data, np.ndarray):
        text = f"np.array({data.tolist()!r})"
    elif isinstance(data, Opaque) or not isinstance(data, _PLAIN):
        return ""
    else:
        text = repr(data)
    odd = any(word in text for word in ("nan", "inf", "array(", "<"))
    return "" if len(text) > _LONG or (odd and not isinstance(data, (str, np.ndarray))) else text


def fenced(text: str, language: str = "text") -> str:
    """A block of code, with a fence longer than any that the text holds."""
    fence = "`" * (1 + max(2, *map(len, re.findall("`+", text)), 2))
    return f"{fence}{language}\n{text}\n{fence}"
