"""From results to the page."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpassay._version import __version__
from dpassay.checks import shown
from dpassay.errors import InvalidInput
from dpassay.privacy.pairs import Pair
from dpassay.report import embed, figures, words
from dpassay.report.figures import Figure
from dpassay.report.losses import losses
from dpassay.results import About, Profile, Verdict, number

#: Above this many verdicts each is folded away under its own sentence.
_OPEN = 2


@dataclass(frozen=True)
class Section:
    """All there is to say about one verdict, or about one profile."""

    key: str
    #: "violation", "clear", "blind" or "estimate"; the template gives each a sign and a colour
    kind: str
    headline: str
    sentence: str
    facts: list[tuple[str, str, str]]
    witness: str
    pair: str
    relation: str
    figures: list[Figure]
    pairs: list[tuple[str, str]]
    budget: list[tuple[str, str]]
    method: list[tuple[str, str]]
    notes: tuple[str, ...]
    origins: list[tuple[str, ...]]
    guarantee: str
    meaning: tuple[str, ...]
    file: str
    json: str


def render(
    verdicts: Sequence[Verdict],
    *,
    profile: Profile | None = None,
    title: str = "",
    command: str = "",
    table: Sequence[Mapping[str, str]] | None = None,
) -> str:
    """The page as text.

    `profile` stands for that of a single verdict which has none, and otherwise has a section of its
    own; with no verdicts the page is an estimate. `table` is shown at the top, its columns in the
    order of its first row; one with a row for each of several verdicts names them by its first
    column. `command` is what reproduces the page.
    """
    embed.need_extras()
    import jinja2

    audited = list(verdicts)
    if not audited and profile is None:
        raise InvalidInput("a report needs at least one verdict, or a profile")
    if len(audited) == 1 and profile is not None and audited[0].profile is None:
        sections = [_of_verdict("v1", audited[0], profile)]
    else:
        sections = [_of_verdict(f"v{k}", v, v.profile) for k, v in enumerate(audited, 1)]
        if profile is not None and all(v.profile is not profile for v in audited):
            sections.append(_of_profile("estimate", profile))
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    scripts = embed.bundle(), embed.resource("page.js")
    columns = list(table[0]) if table else []
    rows = [[str(row.get(column, "")) for column in columns] for row in table or ()]
    drawn = [figure for section in sections for figure in section.figures]
    return environment.from_string(embed.resource("page.html.j2")).render(
        title=title or _title(audited),
        lead=_lead(sections, audited),
        sections=sections,
        fold=len(sections) > _OPEN,
        columns=columns,
        table=rows,
        linked=1 < len(audited) == len(rows),
        command=command,
        versions=_versions(),
        policy=embed.policy(*scripts),
        scripts=[_markup(code) for code in scripts],
        specs=_markup(embed.safe_json({f.key: f.spec for f in drawn if f.spec is not None})),
        records=_markup(
            embed.safe_json({s.key: {"file": s.file, "text": s.json} for s in sections})
        ),
        svg=_markup,
    )


def _markup(text: str) -> Any:
    """Text that is HTML already: scripts, escaped JSON and drawings, never a user's string."""
    import markupsafe

    return markupsafe.Markup(text)


def _title(verdicts: Sequence[Verdict]) -> str:
    match len(verdicts):
        case 0:
            return "Privacy estimate"
        case 1:
            return f"Audit of a claim of {verdicts[0].claim}"
        case n:
            return f"Audit of {n} claims"


def _lead(sections: Sequence[Section], verdicts: list[Verdict]) -> dict[str, str]:
    """The sentence at the top of the page."""
    if len(verdicts) <= 1:
        first = sections[0]
        return {"kind": first.kind, "headline": first.headline, "sentence": first.sentence}
    headline, sentence = words.overview(verdicts)
    tones = {v.tone for v in verdicts}
    kind = next(tone for tone in ("violation", "blind", "clear") if tone in tones)
    return {"kind": kind, "headline": headline, "sentence": sentence}


def _of_verdict(key: str, verdict: Verdict, profile: Profile | None) -> Section:
    event = verdict.witness.event
    curve = verdict.curve
    if curve is None and profile is not None:
        curve = profile.tradeoff_curve
    drawn = [
        figures.evidence(f"{key}-evidence", verdict),
        figures.tradeoff(f"{key}-tradeoff", verdict, curve),
    ]
    if profile is not None:
        drawn += _of_notions(key, profile, verdict)
    pair = verdict.witness.pair or verdict.about.pair
    return Section(
        key=key,
        kind=verdict.tone,
        headline=words.headline(verdict),
        sentence=words.sentence(verdict),
        facts=words.facts(verdict),
        witness=str(event),
        pair=_inputs(pair),
        relation=_relation(pair),
        figures=[figure for figure in drawn if figure is not None],
        pairs=[(name, number(bound)) for name, bound in verdict.pairs],
        budget=[(what, f"{share:.3g}") for what, share in verdict.budget],
        method=_method(verdict.about, profile),
        notes=verdict.about.notes,
        origins=_origins(verdict.about),
        guarantee=words.GUARANTEES[verdict.guarantee],
        meaning=words.meaning(verdict),
        file="verdict.json" if key == "v1" else f"verdict-{key[1:]}.json",
        json=verdict.to_json(),
    )


def _of_profile(key: str, profile: Profile) -> Section:
    drawn = [figures.tradeoff(f"{key}-tradeoff", None, profile.tradeoff_curve)]
    drawn += _of_notions(key, profile, None)
    return Section(
        key=key,
        kind="estimate",
        headline="Estimate",
        sentence=words.estimate(profile),
        facts=words.estimates(profile),
        witness="",
        pair=_inputs(profile.pair),
        relation=_relation(profile.pair),
        figures=[figure for figure in drawn if figure is not None],
        pairs=[],
        budget=[],
        method=_method(profile.about, None),
        notes=profile.about.notes,
        origins=_origins(profile.about),
        guarantee=words.GUARANTEES[profile.about.guarantee],
        meaning=(words.NOT_A_BOUND,),
        file="profile.json",
        json=profile.to_json(),
    )


def _of_notions(key: str, profile: Profile, verdict: Verdict | None) -> list[Figure | None]:
    claim = None if verdict is None else verdict.claim
    event = None if verdict is None else verdict.witness.event
    drawn: list[Figure | None] = [figures.spectrum(f"{key}-spectrum", profile.spectrum, claim)]
    if profile.loss is not None:
        drawn += losses(key, profile.loss, event)
    return [*drawn, figures.renyi(f"{key}-renyi", profile.renyi_curve, claim)]


def _inputs(pair: Any) -> str:
    if pair is None:
        return ""
    return str(pair) if isinstance(pair, Pair) else shown(pair, 120)


def _relation(pair: Any) -> str:
    relation = str(getattr(pair, "relation", ""))
    return "" if relation == "unspecified" else relation


def _method(about: About, profile: Profile | None) -> list[tuple[str, str]]:
    """How it was done, as pairs of a name and a value."""
    out = [("Method", about.method)]
    if profile is not None:
        out.append(("Estimates", profile.about.method))
    if about.n is not None:
        first, second = about.n
        draws = f"{first:,} a side" if first == second else f"{first:,} and {second:,}"
        out.append(("Draws", draws))
    out.append(("Seed", "none recorded" if about.seed is None else str(about.seed)))
    return out


def _origins(about: About) -> list[tuple[str, ...]]:
    """The files the draws came from, a row each."""
    return [
        (
            origin.file,
            f"{origin.rows:,}",
            ", ".join(origin.columns),
            f"{origin.missing:,}",
            f"{origin.bytes:,}",
            origin.sha256,
            origin.modified,
        )
        for origin in about.files
    ]


def _versions() -> list[tuple[str, str]]:
    import numpy
    import scipy

    return [
        ("dpassay", __version__),
        ("numpy", numpy.__version__),
        ("scipy", scipy.__version__),
        ("python", platform.python_version()),
    ]
