"""`python -m libraries.page`: the gallery of the documentation, made from the results.

The table is complete without scripts; a few lines of JavaScript hide rows by library and verdict.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from libraries import finding_pages
from libraries.cases import KINDS, Audited, Result, load
from libraries.chart import ratio, strips
from libraries.finding_pages import plain, short

PAGE = Path(__file__).parents[1] / "docs" / "libraries.md"
FINDINGS = PAGE.with_suffix("")

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
.matrix td, .matrix th { padding: .2em .4em; font-size: .8em; text-align: center; vertical-align: top }
.matrix tbody th { text-align: left; white-space: nowrap }
.matrix .bad { color: #b3261e }
.wide { overflow-x: auto }
</style>"""

_SCRIPT = """<script>
(() => {
  const form = document.querySelector(".libraries-filter");
  form.style.display = "block";
  const rows = [...document.querySelectorAll("table.libraries tbody tr")];
  const show = () => {
    const { library, group, verdict, text } = Object.fromEntries(new FormData(form));
    let count = 0;
    for (const row of rows) {
      const hit = (!library || row.dataset.library === library)
        && (!group || row.dataset.group === group)
        && (!text || row.cells[1].textContent.toLowerCase().includes(text.toLowerCase()))
        && (!verdict || [row.dataset.verdict, row.dataset.kind].includes(verdict));
      row.hidden = !hit;
      count += hit;
    }
    form.querySelector("output").value = count + " audits";
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const link of document.querySelectorAll("table.matrix a")) {
    link.addEventListener("click", () => {
      const row = document.getElementById(link.hash.slice(1));
      form.reset();
      form.elements.library.value = row.dataset.library;
      form.elements.group.value = row.dataset.group;
      show();
    });
  }
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
            "## Libraries and mechanisms",
            _matrix(audited),
            "## Certified over claimed",
            strips(audited),
            "## What was found",
            _found(audited),
            "## Every audit",
            _table(audited),
            "## How it is done",
            _method(audited),
            "",
        ]
    )


def write() -> None:
    """The page, and a page for every finding."""
    audited = load()
    PAGE.write_text(page(audited), encoding="utf-8")
    FINDINGS.mkdir(exist_ok=True)
    for path in FINDINGS.glob("*.md"):
        path.unlink()
    for name, text in finding_pages.pages(audited).items():
        (FINDINGS / name).write_text(text, encoding="utf-8")


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
        f"included: {len(alarms)} of them were refuted. Run again, most with other seeds, {wrong} of "
        f"{more} were, and {held} of these held on fresh draws; {(len(sound) + more) / 1000:.1f} false "
        f"alarms at most are to be expected of {len(sound) + more} audits at 10⁻³.\n\n"
        + _hunts(audited)
        + "That list was revised: eight cases were first thought sound, were refuted, and left it "
        "once the cause was understood (Gaussian noise of PyDP and of Tumult Core in its bits, the "
        "mean of integers of PyDP, bfloat16 noise, large integers in diffprivlib's Geometric, and three "
        "of its tools under another relation). So the first "
        "count says that nothing is left unexplained; the false-alarm rate is what the other "
        "seeds show. Pairs, claims and numbers of draws were also tuned while the cases were "
        "written.\n\n"
        "A refuted claim is not always a bug, and the page says what it is:\n\n" + told + "\n\n"
        "*Not yet reported* means that no record of it was found upstream. The results are JSON "
        "(`libraries/results`), and [a schema](formats.md) describes them.\n\n"
        "`make libraries WHAT=opendp` repeats a library's audits in an environment of its own; "
        "[](audit-your-library.md) does the same for yours."
    )


def _hunts(audited: Sequence[Audited]) -> str:
    """How many findings the hunts found by themselves."""
    hunts = [(one, result) for one in audited for result in one.results if result.tried]
    made = {
        (one.library, finding.title): False
        for one, result in hunts
        for finding in one.findings
        if finding.explains(result.name)
    }
    for one, result in hunts:
        finding = one.finding_of(result)
        if finding is not None:
            made[one.library, finding.title] = True
    first = "; ".join(
        f"{plain(one.library)}, [{plain(finding.title)}](libraries/{finding_pages.slug(one, finding)}.md)"
        for one, finding in finding_pages.ordered(audited)
        if finding.by_hunt
    )
    return (
        f"{len(hunts)} of the audits are hunts, which get the space of the inputs and the claim, and "
        f"no pair. They were made for {len(made)} of the findings below, and found {sum(made.values())} "
        "of these by themselves."
        + (
            f" Hunts led to these before anybody here had a pair that shows them: {first}."
            if first
            else ""
        )
        + "\n\n"
    )


def _matrix(audited: Sequence[Audited]) -> str:
    """How many audits of each kind of mechanism, how many violations, and a link to them."""
    groups = sorted({result.group for one in audited for result in one.results})
    heads = "".join(f"<th>{html.escape(group)}</th>" for group in groups)
    rows = []
    for one in audited:
        cells = "".join(_cell(one, group) for group in groups)
        name = f"{html.escape(one.library)} {html.escape(one.version)}"
        rows.append(f"<tr><th>{name}</th>{cells}</tr>")
    return (
        "Audits, and in red those with a violation of any kind; below, the largest certified value of "
        "those without one, as a part of the claimed. A link shows the audits.\n\n```{raw} html\n"
        + _STYLE
        + f'\n<div class="wide"><table class="matrix"><thead><tr><th></th>{heads}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>\n```"
    )


def _cell(audited: Audited, group: str) -> str:
    results = [one for one in audited.results if one.group == group]
    if not results:
        return "<td></td>"
    refuted = sum(one.verdict == "violation" for one in results)
    held = [ratio(one) for one in results if one.verdict != "violation"]
    mark = f' <b class="bad">{refuted}</b>' if refuted else ""
    part = f"<br><small>{max(held):.2f}</small>" if held else ""
    name = html.escape(f"{audited.library} {group}", quote=True)
    link = f'<a href="#{_anchor(audited, group)}" title="{name}">{len(results)}</a>'
    return f"<td>{link}{mark}{part}</td>"


def _anchor(audited: Audited, group: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in f"{audited.library} {group}")


def _found(audited: Sequence[Audited]) -> str:
    """A row a finding, with a link to its page."""
    rows = []
    for one, finding in finding_pages.ordered(audited):
        top = finding_pages.worst(one, finding)
        link = f"libraries/{finding_pages.slug(one, finding)}.md"
        count = len(finding_pages.shown_by(one, finding))
        rows.append(
            f"| {plain(one.library)} | [{plain(finding.title)}]({link}) | {finding.kind} | "
            f"{top.symbol} ≥ {top.lower_bound:.3g} of {top.claimed:.3g} | {count} | "
            f"{finding_pages.status(finding)} |"
        )
    head = "| library | finding | what it is | at worst | audits | upstream |\n|---|---|---|---|---|---|"
    pages = "```{toctree}\n:hidden:\n:glob:\n\nlibraries/*\n```"
    return "\n".join([head, *rows]) + "\n\n" + pages


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
    kinds = sorted({result.group for one in audited for result in one.results})
    groups = "".join(f"<option>{html.escape(kind)}</option>" for kind in kinds)
    rows = []
    for one in audited:
        seen: set[str] = set()
        for result in one.results:
            first = result.group not in seen
            rows.append(_row(one, result, _anchor(one, result.group) if first else ""))
            seen.add(result.group)
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
        + '<form class="libraries-filter"><label>library <select name="library"><option value="">all'
        + f'</option>{libraries}</select></label> <label>mechanism <select name="group">'
        + f'<option value="">all</option>{groups}</select></label> <label>verdict <select name="verdict">'
        + f'<option value="">all</option>{verdicts}</select></label> <label>name <input name="text" '
        + 'size="12"></label> <output></output></form>\n'
        + f'<div class="wide"><table class="libraries"><thead><tr>{heads}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>\n"
        + _SCRIPT
        + "\n```"
    )


def _row(audited: Audited, result: Result, anchor: str = "") -> str:
    finding = audited.finding_of(result)
    kind = finding.kind if finding else ("violation" if result.verdict == "violation" else "")
    verdict = html.escape(kind if result.verdict == "violation" else _WORDS[result.verdict])
    if finding is not None:
        verdict = f'<a href="libraries/{finding_pages.slug(audited, finding)}.html">{verdict}</a>'
    mark = f' id="{anchor}"' if anchor else ""
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
        f'<span title="{html.escape(short(hint, 220), quote=True)}">{html.escape(result.name)}</span>',
        html.escape(result.claim),
    ]
    numbers = [
        f"{result.symbol} ≥ {result.lower_bound:.3g}",
        "" if least is None else f"{least:.3g}",
        f"{result.p_value:.1g}",
        f"{result.n:,}" if not result.tried else f"{result.tried:,} pairs",
        f"{result.seconds:.0f} ({result.own:.0%})",
    ]
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    body += "".join(f'<td class="number">{cell}</td>' for cell in numbers)
    return (
        f'<tr{mark} data-library="{html.escape(audited.library)}" data-verdict="{result.verdict}" '
        f'data-group="{html.escape(result.group)}" data-kind="{html.escape(kind)}">{body}'
        f"<td>{verdict}</td></tr>"
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
        "One command makes the environment of a library from its pins and audits it there; the last "
        "columns count sound cases and those of them that were refuted, by seed. The whole run took "
        f"{seconds / 60:.0f} minutes on a busy machine, {own / max(seconds, 1e-9):.0%} of it the "
        "libraries' own. To make an environment from nothing takes 20 seconds to two minutes "
        "more.\n\n" + _runs(audited)
    )


def _runs(audited: Sequence[Audited]) -> str:
    """A row a library: its command, its time, and the false alarms of every seed."""
    rows = []
    for one in audited:
        sound = [result for result in one.results if result.sound]
        alarms = sum(result.verdict == "violation" for result in sound)
        seeds = {0: (alarms, len(sound))}
        for run in one.again:
            wrong, audits = seeds.get(run["seed"], (0, 0))
            seeds[run["seed"]] = wrong + len(run["alarms"]), audits + run["audits"]
        hunts = sum(bool(result.tried) for result in one.results)
        minutes = sum(result.seconds for result in one.results) / 60
        counted = " | ".join(
            "{} of {}".format(*seeds[seed]) if sound and seed in seeds else "" for seed in (0, 1, 2)
        )
        rows.append(
            f"| `make libraries WHAT={one.library}` | {len(one.results)} | {hunts} | {minutes:.1f} | "
            f"{counted} |"
        )
    head = "| command | audits | hunts | minutes | seed 0 | seed 1 | seed 2 |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    write()
    print(f"written to {PAGE.name}")
