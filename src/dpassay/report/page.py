"""From results to the page."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpassay._version import __version__
from dpassay.errors import InvalidInput
from dpassay.hunting.result import Hunt, Tried, beside
from dpassay.privacy.curves import Spectrum
from dpassay.privacy.pairs import Pair
from dpassay.privacy.provenance import About, Guarantee
from dpassay.records import Record
from dpassay.report import embed, figures, overview, verification_words, words
from dpassay.report.figures import Figure
from dpassay.report.losses import losses
from dpassay.results.profile import Profile
from dpassay.results.rounding import number, rounded_up
from dpassay.results.verdict import Verdict
from dpassay.results.verification import PairUpper, Verification
from dpassay.validation import shown

#: Above this many results each is folded away under its own sentence.
_OPEN = 2


@dataclass(frozen=True)
class Section:
    """All there is to say about one verdict, one hunt, one verification or one profile."""

    key: str
    #: The tone of a result, or "estimate"; the template gives each a sign and a colour
    kind: str
    headline: str
    sentence: str
    facts: list[tuple[str, str, str]]
    witness: str
    pair: str
    relation: str
    figures: list[Figure]
    pairs: Pairs | None
    budget: list[tuple[str, str]]
    method: list[tuple[str, str]]
    notes: tuple[str, ...]
    origins: list[tuple[str, ...]]
    guarantee: str
    meaning: tuple[str, ...]
    file: str
    json: str
    advice: str = ""
    #: How somebody else checks it: what to do, and a command.
    checks: tuple[tuple[str, str], ...] = ()
    #: The rows of two inputs, next to each other: whether they differ, and either.
    inputs: tuple[tuple[bool, str | None, str | None], ...] = ()


@dataclass(frozen=True)
class Pairs:
    """The pairs that were looked at, as a table."""

    said: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def render(
    results: Any,
    *,
    profile: Profile | None = None,
    title: str = "",
    command: str = "",
    table: Sequence[Mapping[str, str]] | None = None,
    more: Sequence[Mapping[str, str]] = (),
    lead: tuple[str, str, str] | None = None,
) -> str:
    """The page as text.

    `results` is a verdict, a verification, a spectrum, a hunt or a profile, or a list of them. `profile`
    stands for that of a single verdict which has none, and otherwise has a section of its own; with
    no results the page is an estimate. `table` is shown at the top, its columns in the order of its
    first row; one with a row for each of several results names them by its first column; rows in
    `more` stand below and belong to no result. `command` is what reproduces the page; `lead`, a
    tone, a headline and a sentence, stands in place of what the results say together.
    """
    embed.need_extras()
    import jinja2

    listed, profile = _sorted(results, profile)
    shown = [one for one in listed if not isinstance(one, Spectrum)]
    curves = [one for one in listed if isinstance(one, Spectrum)]
    given = [one.verdict if isinstance(one, Hunt) else one for one in shown]
    audited = [one for one in shown if isinstance(one, Verdict)]
    if not given and not curves and profile is None and not (more and lead):
        raise InvalidInput("a report needs at least one result, or a profile")
    if len(given) == len(audited) == 1 and profile is not None and audited[0].profile is None:
        sections = [_of_verdict("v1", audited[0], profile)]
    else:
        sections = [_of(f"v{k}", one) for k, one in enumerate(shown, 1)]
        if profile is not None and all(v.profile is not profile for v in audited):
            sections.append(_of_profile("estimate", profile))
    sections += [_of_spectrum(f"s{k}", one) for k, one in enumerate(curves, 1)]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    cells = [*(table or ()), *more]
    columns = list(cells[0]) if cells else []
    rows = [[str(row.get(column, "")) for column in columns] for row in cells]
    drawn = [figure for section in sections for figure in section.figures]
    live = any(figure.spec is not None for figure in drawn)
    scripts = [*([embed.bundle()] if live else []), embed.resource("page.js")]
    return environment.from_string(embed.resource("page.html.j2")).render(
        title=title or _title(shown),
        lead=_lead(sections, given) if lead is None else _said(*lead),
        sections=sections,
        fold=len(sections) > _OPEN,
        columns=columns,
        table=rows,
        linked=len(given) if 1 < len(given) == len(rows) - len(more) else 0,
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


def _sorted(
    results: Any, profile: Profile | None
) -> tuple[list[Verdict | Verification | Spectrum | Hunt], Profile | None]:
    """What a page can show, the profile apart; or why it cannot."""
    alone = isinstance(results, Record) or not isinstance(results, Iterable)
    listed = [results] if alone else list(results)
    profiles = [one for one in [*listed, profile] if isinstance(one, Profile)]
    shown = [one for one in listed if not isinstance(one, Profile)]
    known = (Verdict, Verification, Spectrum, Hunt)
    odd = next((one for one in shown if not isinstance(one, known)), None)
    if odd is not None:
        raise InvalidInput(
            "a report shows verdicts, verifications, spectra, hunts and a profile, got a "
            f"{type(odd).__name__}; print() shows other results"
        )
    if len(profiles) > 1:
        raise InvalidInput(
            f"a report shows one profile, got {len(profiles)}; write one page for each, or draw them "
            "together with dp.charts.compare"
        )
    return shown, profiles[0] if profiles else None


def _markup(text: str) -> Any:
    """Text that is HTML already: scripts, escaped JSON and drawings, never a user's string."""
    import markupsafe

    return markupsafe.Markup(text)


def _title(results: Sequence[Verdict | Verification | Hunt]) -> str:
    match results:
        case []:
            return "Privacy estimate"
        case [Verdict() as one]:
            return f"Audit of a claim of {one.claim}"
        case [Hunt() as one]:
            return f"Hunt for inputs that break a claim of {one.verdict.claim}"
        case [Verification() as one]:
            return f"Verification of a claim of {one.claim}"
        case _ if all(isinstance(one, Verdict) for one in results):
            return f"Audit of {len(results)} claims"
        case _:
            return f"{len(results)} claims"


def _lead(sections: Sequence[Section], results: Sequence[Verdict | Verification]) -> dict[str, str]:
    """The sentence at the top of the page."""
    if len(results) <= 1:
        first = sections[0]
        return _said(first.kind, first.headline, first.sentence)
    headline, sentence = overview.overview(results)
    tones = {one.tone for one in results}
    order = ("violation", "blind", "unshown", "clear", "confirmed")
    kind = next(tone for tone in order if tone in tones)
    return _said(kind, headline, sentence)


def _said(kind: str, headline: str, sentence: str) -> dict[str, str]:
    return {"kind": kind, "headline": headline, "sentence": sentence}


def _of(key: str, result: Verdict | Verification | Hunt) -> Section:
    match result:
        case Verdict():
            return _of_verdict(key, result, result.profile)
        case Hunt():
            return _of_hunt(key, result)
    return _of_verification(key, result)


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
    if event.of_representation and curve is not None:
        first, *rest = drawn  # the evidence is no curve of values
        drawn = [first, *(_of_values(figure) for figure in rest)]
    pair = verdict.witness.pair or verdict.about.pair
    file = "verdict.json" if key == "v1" else f"verdict-{key[1:]}.json"
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
        pairs=None if not verdict.pairs else _predicted(verdict),
        budget=words.budget(verdict.budget),
        method=_method(verdict.about, profile),
        notes=verdict.about.notes,
        origins=_origins(verdict.about),
        guarantee=words.guarantee(verdict.guarantee, verdict.about),
        meaning=words.meaning(verdict),
        file=file,
        json=verdict.to_json(),
        checks=tuple(words.checks(verdict, file)),
    )


def _of_hunt(key: str, found: Hunt) -> Section:
    """The verdict on the pair that was found, and how it was found."""
    verdict = found.verdict
    file = "hunt.json" if key == "v1" else f"hunt-{key[1:]}.json"
    own = _of_verdict(key, verdict, verdict.profile)
    hunted = f"{found.tried:,} pairs of inputs, {found.draws:,} draws on all of them"
    return replace(
        own,
        pair=found.pair.name,
        inputs=tuple(beside(found.pair)),
        pairs=Pairs(said=words.HUNTED, columns=_LOGGED, rows=list(map(_logged, found.log))),
        method=[("Hunted", hunted), *own.method],
        notes=(*found.notes, *own.notes),
        file=file,
        json=found.to_json(),
        checks=tuple(words.checks(verdict, file)),
    )


_LOGGED = ("pair", "inputs", "draws", "predicted bound", "what became of it")


def _logged(one: Tried) -> tuple[str, ...]:
    bound = "" if one.bound is None else number(one.bound)
    return one.name, one.pair, f"{one.draws:,}", bound, one.outcome


def _predicted(verdict: Verdict) -> Pairs:
    return Pairs(
        said="The pairs that were looked at, with the bound that training draws predicted for each. The "
        "pair with the largest was tested on fresh draws.",
        columns=("pair", "predicted bound"),
        rows=[(name, number(bound)) for name, bound in verdict.pairs],
    )


def _of_verification(key: str, found: Verification) -> Section:
    def row(one: PairUpper) -> tuple[str, ...]:
        return str(one.pair), rounded_up(one.upper), f"{one.cells:,}", rounded_up(one.unseen)

    many = len(found.pairs) > 1
    return Section(
        key=key,
        kind=found.tone,
        headline=verification_words.headline(found),
        sentence=verification_words.sentence(found),
        facts=verification_words.facts(found),
        witness="",
        pair="" if many else _inputs(found.worst.pair),
        relation=_relation(found.worst.pair),
        figures=[],
        pairs=Pairs(
            said=verification_words.PAIRS if many else "The pair that was looked at.",
            columns=("pair", found.symbol, "outputs counted one by one", "share of other outputs"),
            rows=[row(one) for one in sorted(found.pairs, key=lambda one: -one.upper)],
        ),
        budget=[(what, f"{share:.3g}") for what, share in found.budget],
        method=_method(found.about, None),
        notes=found.about.notes,
        origins=_origins(found.about),
        guarantee=words.GUARANTEES[found.guarantee],
        meaning=verification_words.meaning(found),
        file="verification.json" if key == "v1" else f"verification-{key[1:]}.json",
        json=found.to_json(),
        advice=found.reason,
    )


def _of_profile(key: str, profile: Profile) -> Section:
    curve = figures.tradeoff(f"{key}-tradeoff", None, profile.tradeoff_curve)
    return _estimated(
        key,
        profile,
        profile.about,
        headline="Estimate",
        sentence=words.estimate(profile),
        facts=words.estimates(profile),
        drawn=[curve, *_of_notions(key, profile, None)],
        meaning=words.NOT_A_BOUND,
        file="profile.json",
    )


def _of_spectrum(key: str, found: Spectrum) -> Section:
    return _estimated(
        key,
        found,
        found.about or About(method="not recorded", guarantee=Guarantee.HEURISTIC),
        headline="Estimate of δ(ε)",
        sentence=words.spectrum(found),
        facts=words.of_spectrum(found),
        drawn=[figures.spectrum(f"{key}-spectrum", found, None)],
        meaning=words.NOT_A_BOUND if found.lower is None else words.CERTIFIED,
        file="spectrum.json" if key == "s1" else f"spectrum-{key[1:]}.json",
    )


def _estimated(
    key: str,
    found: Profile | Spectrum,
    about: About,
    *,
    headline: str,
    sentence: str,
    facts: list[tuple[str, str, str]],
    drawn: Sequence[Figure | None],
    meaning: str,
    file: str,
) -> Section:
    """What was estimated, without a claim."""
    return Section(
        key=key,
        kind="estimate",
        headline=headline,
        sentence=sentence,
        facts=facts,
        witness="",
        pair=_inputs(about.pair),
        relation=_relation(about.pair),
        figures=[figure for figure in drawn if figure is not None],
        pairs=None,
        budget=[],
        method=_method(about, None),
        notes=about.notes,
        origins=_origins(about),
        guarantee=words.GUARANTEES[about.guarantee],
        meaning=(meaning,),
        file=file,
        json=found.to_json(),
    )


def _of_notions(key: str, profile: Profile, verdict: Verdict | None) -> list[Figure | None]:
    claim = None if verdict is None else verdict.claim
    event = None if verdict is None else verdict.witness.event
    drawn: list[Figure | None] = [figures.spectrum(f"{key}-spectrum", profile.spectrum, claim)]
    if profile.loss is not None:
        drawn += losses(key, profile.loss, event)
    return [*drawn, figures.renyi(f"{key}-renyi", profile.renyi_curve, claim)]


def _of_values(figure: Figure | None) -> Figure | None:
    return figure and replace(figure, caption=f"{figure.caption} {words.OF_VALUES}")


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
        out.append((about.units.capitalize(), f"{first:,}") if about.units else ("Draws", draws))
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
