"""`python -m libraries.page`: the gallery of the documentation, made from the results.

The table is complete without scripts; a few lines of JavaScript hide rows by library and verdict.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path

from libraries.cases import KINDS, REPRODUCTIONS, Audited, Counts, Finding, Result, load

PAGE = Path(__file__).parents[1] / "docs" / "libraries.md"

_WORDS = {
    "violation": "violation",
    "clear": "none detected",
    "blind": "could not see",
    "error": "raised",
}

_STYLE = """<style>
.libraries td, .libraries th { padding: .2em .5em; font-size: .85em; vertical-align: top }
.libraries tr[data-kind="violation"] td:last-child { color: #b3261e; font-weight: 600 }
.libraries td.number { white-space: nowrap; text-align: right }
.libraries-filter { margin: 1em 0; display: none }
</style>"""

_SCRIPT = """<script>
(() => {
  const form = document.querySelector(".libraries-filter");
  form.style.display = "block";
  const rows = [...document.querySelectorAll("table.libraries tbody tr")];
  const show = () => {
    const { library, verdict } = Object.fromEntries(new FormData(form));
    let count = 0;
    for (const row of rows) {
      const hit = (!library || row.dataset.library === library)
        && (!verdict || [row.dataset.verdict, row.dataset.kind].includes(verdict));
      row.hidden = !hit;
      count += hit;
    }
    form.querySelector("output").value = count + " audits";
  };
  form.addEventListener("change", show);
  show();
})();
</script>"""


def page(audited: Sequence[Audited]) -> str:
    """The whole page."""
    return "\n\n".join(
        [
            "<!-- made by `python -m libraries.page` from libraries/results; do not edit -->",
            "# Released libraries under audit",
            _opening(audited),
            "## What was found",
            *(_card(one, finding) for one, finding in _ordered(audited)),
            "## Every audit",
            _table(audited),
            "## How it is done",
            _method(audited),
            "",
        ]
    )


def _ordered(audited: Sequence[Audited]) -> list[tuple[Audited, Finding]]:
    """What was seen in this run: the bugs first, and those that nobody knows before the others."""
    seen = [(one, finding) for one in audited for finding in one.findings if _of(one, finding)]
    kinds = list(KINDS)
    return sorted(seen, key=lambda found: (kinds.index(found[1].kind), bool(found[1].known)))


def _of(audited: Audited, finding: Finding) -> list[Result]:
    """The violations that a finding explains."""
    return [one for one in audited.results if audited.finding_of(one) == finding]


def _opening(audited: Sequence[Audited]) -> str:
    results = [one for library in audited for one in library.results]
    refuted = [one for one in results if one.verdict == "violation"]
    replayed = [one for one in refuted if one.replay is not None]
    again = [one for one in replayed if one.replay is not None and one.replay.p_value <= 1e-3]
    sound = [one for one in results if one.sound]
    alarms = [one for one in sound if one.verdict == "violation"]
    runs = [run for library in audited for run in library.again]
    more = sum(run["audits"] for run in runs)
    wrong = sum(len(run["alarms"]) for run in runs)
    held = sum(len(run["held"]) for run in runs)
    kinds = dict.fromkeys(KINDS, 0)
    for library in audited:
        for one in library.results:
            finding = library.finding_of(one)
            if finding is not None:
                kinds[finding.kind] += 1
    counted = ", ".join(f"{number} {kind}" for kind, number in kinds.items() if number)
    listed = ", ".join(f"{library.library} {library.version}" for library in audited)
    told = "\n".join(f"- **{kind}**: {words}" for kind, words in KINDS.items())
    return (
        f"{len(results)} audits of {len(audited)} libraries that nobody here wrote, from their outputs "
        f"alone, by public functions, with the claim that the library itself makes: {listed}. Each "
        f"audit may be wrong with probability 10⁻³ at most. {len(refuted)} claims were refuted "
        f"({counted}); {len(again)} of these {len(refuted)} events held again on as many fresh draws.\n\n"
        f"{len(sound)} cases are correct by construction if the code does what it says, the arithmetic "
        f"included: {len(alarms)} of them were refuted. Run again with other seeds, {wrong} of {more} "
        f"were, and {held} of these held on fresh draws; {(len(sound) + more) / 1000:.1f} false alarms "
        f"at most are to be expected of {len(sound) + more} audits at 10⁻³.\n\n"
        "That list was revised: six cases were first thought sound, were refuted, and left it "
        "once the cause was understood (Gaussian noise of PyDP and of Tumult Core in its bits, "
        "bfloat16 noise, and three tools of diffprivlib under another relation). So the first "
        "count says that nothing is left unexplained; the false-alarm rate is what the other "
        "seeds show. Pairs, claims and numbers of draws were also tuned while the cases were "
        "written.\n\n"
        "A refuted claim is not always a bug, and the page says what it is:\n\n" + told + "\n\n"
        "*Not yet reported* means that no record of it was found upstream.\n\n"
        "`make libraries WHAT=opendp` repeats a library's audits in an environment of its own; "
        "[](audit-your-library.md) does the same for yours."
    )


def _card(audited: Audited, finding: Finding) -> str:
    results = _of(audited, finding)
    worst = max(results, key=lambda one: one.lower_bound - one.claimed)
    known = f"[on record upstream]({finding.known})" if finding.known else "**not yet reported**"
    parts = [
        f"### {audited.library} {audited.version}: {_plain(finding.title)}",
        f"*{finding.kind}*, {known}. {_plain(finding.cause)}",
        _chart(worst),
        f"{_plain(worst.api)}, claimed {worst.claim}, on {_code(worst.pair)}: **{worst.symbol} ≥ "
        f"{worst.lower_bound:.3g}**. {_counted(worst)}",
    ]
    others = [one for one in results if one is not worst]
    if others:
        named = "; ".join(
            f"{_plain(one.name)} ({one.symbol} ≥ {one.lower_bound:.3g} of {one.claimed:.3g})"
            for one in others
        )
        parts.append(f"Also: {named}.")
    if finding.script:
        text = (REPRODUCTIONS / finding.script).read_text(encoding="utf-8").strip()
        parts.append(_folded(f"libraries/reproductions/{finding.script}", text))
    if finding.report and not finding.known:
        report = _filled(finding.report, audited)
        parts.append(_folded("A report, ready to send", report, code=False))
    return "\n\n".join(parts)


def _filled(report: str, audited: Audited) -> str:
    """The text with the bound of a case in place of its name in braces."""
    bounds = {one.name: f"{one.symbol} ≥ {one.lower_bound:.2g}" for one in audited.results}
    return re.sub(r"\{(.+?)\}", lambda name: bounds[name[1]], report)


def _folded(title: str, text: str, *, code: bool = True) -> str:
    body = f"<pre>{html.escape(text)}</pre>" if code else f"<p>{html.escape(text)}</p>"
    return f"```{{raw}} html\n<details><summary>{html.escape(title)}</summary>{body}</details>\n```"


def _counted(result: Result) -> str:
    if result.counts is None:
        return ""
    said = (
        f"The event, {_code(_short(result.event, 120))}, happened in {_hits(result.counts)} draws"
    )
    if result.replay is not None:
        said += f"; on fresh draws in {_hits(result.replay)} (p ≤ {result.replay.p_value:.2g})"
    return said + "."


def _hits(counts: Counts) -> str:
    return f"{counts.hits_p:,} of {counts.n_p:,} against {counts.hits_q:,} of {counts.n_q:,}"


def _chart(result: Result) -> str:
    """How often the event happened on either input, and how often the claim allows it."""
    counts = result.counts
    if counts is None:
        return ""
    shares = sorted((counts.hits_p / counts.n_p, counts.hits_q / counts.n_q), reverse=True)
    bars = []
    for row, (share, name) in enumerate(zip(shares, ("one input", "the other"), strict=True)):
        y = 4 + 20 * row
        bars.append(
            f'<text x="0" y="{y + 11}">{name}</text>'
            f'<rect x="80" y="{y}" width="{max(300 * share, 1):.1f}" height="14" '
            f'fill="{"#b3261e" if row == 0 else "#1d5fa8"}"/>'
            f'<text x="{90 + 300 * share:.1f}" y="{y + 11}">{share:.3g}</text>'
        )
    if result.allowed is not None:
        x = 80 + 300 * min(result.allowed, 1.0)
        bars.append(
            f'<path d="M{x:.1f} 0V22" stroke="#7a5200" stroke-width="2"/>'
            f'<text x="80" y="56">the line: {result.allowed:.3g} is what the claim allows beside '
            f"{shares[1]:.3g}</text>"
        )
    return (
        '```{raw} html\n<svg role="img" aria-label="how often the event happened on either input" '
        f'width="470" height="62" font-size="11" fill="currentColor">{"".join(bars)}</svg>\n```'
    )


def _table(audited: Sequence[Audited]) -> str:
    libraries = "".join(f"<option>{html.escape(one.library)}</option>" for one in audited)
    verdicts = "".join(
        f'<option value="{html.escape(value)}">{html.escape(words)}</option>'
        for value, words in (
            ("violation", "violation: a bug"),
            *((kind, kind) for kind in KINDS if kind != "violation"),
            ("clear", "none detected"),
            ("blind", "could not see"),
        )
    )
    rows = [_row(one, result) for one in audited for result in one.results]
    heads = "".join(
        f"<th>{name}</th>"
        for name in (
            "library",
            "case",
            "claimed",
            "certified",
            "would have seen",
            "p",
            "draws a side",
            "s (library's own)",
            "verdict",
        )
    )
    return (
        "```{raw} html\n"
        + _STYLE
        + '\n<form class="libraries-filter"><label>library <select name="library"><option value="">all'
        + f'</option>{libraries}</select></label> <label>verdict <select name="verdict">'
        + f'<option value="">all</option>{verdicts}</select></label> <output></output></form>\n'
        + f'<table class="libraries"><thead><tr>{heads}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>\n"
        + _SCRIPT
        + "\n```"
    )


def _row(audited: Audited, result: Result) -> str:
    finding = audited.finding_of(result)
    kind = finding.kind if finding else ("violation" if result.verdict == "violation" else "")
    verdict = kind if result.verdict == "violation" else _WORDS[result.verdict]
    hint = " · ".join(
        part
        for part in (
            result.api,
            result.relation,
            result.trap,
            result.pair,
            result.said,
            result.words,
        )
        if part
    )
    least = result.smallest_detectable
    cells = [
        html.escape(audited.library),
        f'<span title="{html.escape(_short(hint, 220), quote=True)}">{html.escape(result.name)}</span>',
        html.escape(result.claim),
    ]
    numbers = [
        f"{result.symbol} ≥ {result.lower_bound:.3g}",
        "" if least is None else f"{least:.3g}",
        f"{result.p_value:.1g}",
        f"{result.n:,}",
        f"{result.seconds:.0f} ({result.own:.0%})",
    ]
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    body += "".join(f'<td class="number">{cell}</td>' for cell in numbers)
    return (
        f'<tr data-library="{html.escape(audited.library)}" data-verdict="{result.verdict}" '
        f'data-kind="{html.escape(kind)}">{body}<td>{html.escape(verdict)}</td></tr>'
    )


def _method(audited: Sequence[Audited]) -> str:
    seconds = sum(one.seconds for library in audited for one in library.results)
    own = sum(one.seconds * one.own for library in audited for one in library.results)
    return (
        "A case is a name, a function of the library, the claim in its own words (computed from it if "
        "it computes one: a privacy map, an accountant), the relation of the inputs, the inputs, and "
        "how many draws to make; `libraries/NAME.py` holds those of a library, `libraries/results` what "
        "came of them. Mechanisms on floating-point numbers are audited twice: for their values, and for "
        "the bits with which these are written ([](methods/bits.md)), since one leak would hide the "
        "other. *Certified* is a lower bound that holds with confidence 0.999; *would have seen* is the "
        "smallest value that would have been caught nine times in ten on an event like the one tested "
        "([](verdicts.md)). In an event • stands for any number. Hover over a case for its function, its "
        "inputs and the library's words.\n\n"
        f"They took {seconds / 60:.0f} minutes on a busy machine, {own / max(seconds, 1e-9):.0%} of "
        "it the libraries' own."
    )


def _short(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\*_\[\]<>|$])", r"\\\1", text)


def _code(text: str) -> str:
    return "`" + text.replace("`", "'") + "`"


if __name__ == "__main__":
    PAGE.write_text(page(load()), encoding="utf-8")
    print(f"written to {PAGE.name}")
