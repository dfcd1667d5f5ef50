"""A page for every finding: what it is, the event that shows it, a script and a report."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from libraries.cases import KINDS, REPRODUCTIONS, Audited, Counts, Finding, Result


def pages(audited: Sequence[Audited]) -> dict[str, str]:
    """Names of files, and their text."""
    return {f"{slug(one, finding)}.md": page(one, finding) for one, finding in ordered(audited)}


def slug(audited: Audited, finding: Finding) -> str:
    """The name of a finding's page."""
    words = re.findall(r"[a-z0-9]+", f"{audited.library} {finding.title}".lower())
    return "-".join(words[:9])


def ordered(audited: Sequence[Audited]) -> list[tuple[Audited, Finding]]:
    """What was seen in this run: the bugs first, and those that nobody knows before the others."""
    seen = [(one, finding) for one in audited for finding in one.findings if shown_by(one, finding)]
    kinds = list(KINDS)
    return sorted(seen, key=lambda found: (kinds.index(found[1].kind), bool(found[1].known)))


def shown_by(audited: Audited, finding: Finding) -> list[Result]:
    """The violations that a finding explains."""
    return [one for one in audited.results if audited.finding_of(one) == finding]


def worst(audited: Audited, finding: Finding) -> Result:
    """The violation that is farthest above its claim."""
    return max(shown_by(audited, finding), key=lambda one: one.lower_bound - one.claimed)


def status(finding: Finding) -> str:
    """Whether it is on record."""
    return f"[on record]({finding.known})" if finding.known else "not yet reported"


def page(audited: Audited, finding: Finding) -> str:
    """A finding."""
    results, top = shown_by(audited, finding), worst(audited, finding)
    parts = [
        "<!-- made by `python -m libraries.page` from libraries/results; do not edit -->",
        f"# {audited.library} {audited.version}: {plain(finding.title)}",
        f"*{finding.kind}* ({KINDS[finding.kind]}), **{status(finding)}**. {plain(finding.cause)}",
        _chart(top),
        f"{plain(top.api)}, claimed {top.claim}, on {_code(top.pair)}: **{top.symbol} ≥ "
        f"{top.lower_bound:.3g}**. {_counted(top)}",
        f"The claim: {plain(top.said)}. The relation: {plain(top.relation)}.",
        "## Audits that show it",
        _audits(results),
    ]
    if finding.script:
        text = (REPRODUCTIONS / finding.script).read_text(encoding="utf-8").strip()
        parts += [
            "## Without dpassay",
            f"`libraries/reproductions/{finding.script}`, in the environment of the library:",
            f"```python\n{text}\n```",
        ]
    if finding.report and not finding.known:
        report = html.escape(_filled(finding.report, audited))
        parts += ["## A report, ready to send", f"```{{raw}} html\n<p>{report}</p>\n```"]
    return "\n\n".join([*parts, "[All libraries](../libraries.md)", ""])


def _audits(results: Sequence[Result]) -> str:
    rows = []
    for one in results:
        inputs = _code(short(one.pair, 90)).replace("|", "/")
        how = f"{one.tried} pairs tried" if one.tried else "by hand"
        bound = f"{one.symbol} ≥ {one.lower_bound:.3g}"
        rows.append(f"| {plain(one.name)} | {inputs} | {one.claim} | {bound} | {how} |")
    head = "| case | inputs | claimed | certified | pair |\n|---|---|---|---|---|"
    return "\n".join([head, *rows])


def _filled(report: str, audited: Audited) -> str:
    """The text with the bound of a case in place of its name in braces."""
    bounds = {one.name: f"{one.symbol} ≥ {one.lower_bound:.2g}" for one in audited.results}
    return re.sub(r"\{(.+?)\}", lambda name: bounds[name[1]], report)


def _counted(result: Result) -> str:
    if result.counts is None:
        return ""
    said = f"The event, {_code(short(result.event, 120))}, happened in {_hits(result.counts)} draws"
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


def short(text: str, limit: int) -> str:
    """Text on one line, cut at a limit."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\*_\[\]<>|$])", r"\\\1", text)


def _code(text: str) -> str:
    return "`" + text.replace("`", "'") + "`"
