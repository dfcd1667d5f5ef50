"""HTML pages: the views of results, with their figures and their JSON, laid out by a template."""

from __future__ import annotations

import datetime
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpassay._version import __version__
from dpassay.errors import InvalidInput
from dpassay.hunting.result import Hunt, beside
from dpassay.privacy.curves import Spectrum
from dpassay.privacy.provenance import About, Guarantee
from dpassay.privacy.relations import Pair
from dpassay.records import Record
from dpassay.report import embed, figures, output_figures
from dpassay.report.figures import Figure
from dpassay.results.estimates import LowerBound, Profile
from dpassay.results.verdict import Verdict
from dpassay.results.verdict_text import SHARED, TITLES
from dpassay.results.verification import Verification
from dpassay.results.view import (
    NOT_A_BOUND,
    PairTable,
    ResultView,
    guarantee_text,
    percent,
    related,
)
from dpassay.rounding import number, rounded_down, rounded_up
from dpassay.tables import Status
from dpassay.validation import shown

#: Above this many results each is folded away under its own sentence.
_OPEN = 2
#: Beside curves, where the witness is about bits.
OF_VALUES = (
    "The violation is in the floating-point representation of the numbers. The curves are estimated from "
    "the values alone and do not show it."
)

Result = Verdict | Verification | Hunt | LowerBound
#: Status, title and sentence at the top of a page.
Lead = tuple[str, str, str]


@dataclass(frozen=True)
class Section:
    """One result on a page."""

    key: str
    view: ResultView
    json: str
    figures: Sequence[Figure] = ()
    #: Names and values about the method, beside those of `view.about`.
    method: Sequence[tuple[str, str]] = ()
    #: What the pair is called, and the rows of its inputs next to each other: whether they differ, and
    #: either.
    name: str = ""
    inputs: Sequence[tuple[bool, str | None, str | None]] = ()
    #: All outputs of the witness event, where its words do not list them.
    event: tuple[str, list[str], list[list[str]]] | None = None

    @property
    def pair(self) -> str:
        """The inputs, and what makes them neighbours."""
        pair = self.view.pair
        text = self.name or (str(pair) if isinstance(pair, Pair) else shown(pair, 120))
        return self.name if pair is None else related(pair, text)

    @property
    def origins(self) -> tuple[list[str], list[list[str]]]:
        """The files the draws came from, a column each; nothing if there are none."""
        files = self.view.about.files
        if not files:
            return [], []
        rows = [
            ["rows", *(f"{one.rows:,}" for one in files)],
            ["columns", *(", ".join(one.columns) for one in files)],
            ["columns left out", *(", ".join(one.left_out) or "none" for one in files)],
            ["cells without a value", *(f"{one.missing:,}" for one in files)],
            ["bytes", *(f"{one.bytes:,}" for one in files)],
            ["modified", *(one.modified for one in files)],
            ["SHA-256", *(one.sha256 for one in files)],
        ]
        return ["", *(one.file for one in files)], rows

    @property
    def how(self) -> list[tuple[str, str]]:
        """How it was done: method, sample sizes, seed."""
        about = self.view.about
        rows = [("Method", about.method), *self.method]
        if about.n is not None:
            first, second = about.n
            draws = f"{first:,} a side" if first == second else f"{first:,} and {second:,}"
            name = about.units.capitalize()
            rows.append((name, f"{first:,}") if name else ("Draws", draws))
        return [*rows, ("Seed", "none recorded" if about.seed is None else str(about.seed))]


def render(
    results: Any,
    *,
    profile: Profile | None = None,
    title: str = "",
    command: str = "",
    table: Sequence[Mapping[str, str]] | None = None,
    more: Sequence[Mapping[str, str]] = (),
    lead: Lead | None = None,
) -> str:
    """The page as text; the arguments are those of `dpassay.report.write`."""
    embed.need_extras()
    import jinja2
    import scipy
    from markupsafe import Markup  # for scripts, escaped JSON and drawings, never for a user's text

    listed, profile = _sorted(results, profile)
    sections = _sections(listed, profile)
    if not sections and not (more and lead):
        raise InvalidInput("a report needs at least one result, or a profile")
    claims = [one for one in listed if not isinstance(one, Spectrum)]
    bounds = [one for one in claims if isinstance(one, LowerBound)]
    if bounds and len(claims) > 1:
        raise InvalidInput(
            f"a report shows one bound, or verdicts, got {len(claims)} results; write a page each"
        )
    cells = [*(table or ()), *more]
    columns = list(cells[0]) if cells else []
    drawn = [figure for section in sections for figure in section.figures]
    specs = {figure.key: figure.spec for figure in drawn if figure.spec is not None}
    scripts = [*([embed.bundle()] if specs else []), embed.resource("page.js")]
    records = {s.key: {"file": s.view.file, "text": s.json} for s in sections}
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(embed.resource("page.html.j2")).render(
        title=title or _title(claims),
        lead=lead or _lead(claims, sections),
        sections=sections,
        fold=len(sections) > _OPEN,
        columns=columns,
        table=[[str(row.get(column, "")) for column in columns] for row in cells],
        linked=len(claims) if 1 < len(claims) == len(table or ()) else 0,
        command=command,
        made=f"{datetime.date.today():%d %B %Y}".lstrip("0"),
        versions=[
            *(("dpassay", __version__), ("numpy", np.__version__), ("scipy", scipy.__version__)),
            ("python", platform.python_version()),
        ],
        policy=embed.policy(*scripts),
        scripts=[Markup(code) for code in scripts],
        specs=Markup(embed.safe_json(specs)),
        records=Markup(embed.safe_json(records)),
        svg=Markup,
    )


def _sorted(
    results: Any, profile: Profile | None
) -> tuple[list[Result | Spectrum], Profile | None]:
    """What a page can show, the profile apart; or why it cannot."""
    alone = isinstance(results, Record) or not isinstance(results, Iterable)
    listed = [results] if alone else list(results)
    profiles = [one for one in [*listed, profile] if isinstance(one, Profile)]
    rest = [one for one in listed if not isinstance(one, Profile)]
    odd = next((one for one in rest if not isinstance(one, Result | Spectrum)), None)
    if odd is not None:
        raise InvalidInput(
            "a report shows verdicts, verifications, bounds, spectra, hunts and a profile, got a "
            f"{type(odd).__name__}; print() shows other results, and chart() draws curves"
        )
    if len(profiles) > 1:
        raise InvalidInput(
            f"a report shows one profile, got {len(profiles)}; write one page for each, or draw them "
            "together with dp.charts.compare"
        )
    return rest, profiles[0] if profiles else None


def _title(results: Sequence[Result]) -> str:
    match results:
        case []:
            return "Privacy estimate"
        case [Verdict() as one]:
            return f"Audit of a claim of {one.claim.short}"
        case [Hunt() as one]:
            return f"Search for inputs that violate a claim of {one.verdict.claim.short}"
        case [Verification() as one]:
            return f"Verification of a claim of {one.claim.short}"
        case [LowerBound() as one]:
            return f"A lower bound on {one.notion}"
        case _ if all(isinstance(one, Verdict) for one in results):
            return f"Audit of {len(results)} claims"
    return f"{len(results)} claims"


def _lead(results: Sequence[Result], sections: Sequence[Section]) -> Lead:
    if len(results) <= 1:
        first = sections[0].view
        return first.status, first.title, first.sentence
    listed = [one.verdict if isinstance(one, Hunt) else one for one in results]
    return overview([one for one in listed if not isinstance(one, LowerBound)])


def overview(results: Sequence[Verdict | Verification]) -> Lead:
    """Several results together: the most urgent status, a title and a sentence."""
    often = Counter(one.tone for one in results)
    held, of = often[Status.CONFIRMED], often[Status.CONFIRMED] + often[Status.UNSHOWN]
    sentences = []
    if of:
        was = "was" if held == 1 else "were"
        title = f"{held} of {of} claims verified on the given pairs"
        sentences = [f"{held} of {of} claims {was} verified on the given pairs."]
    verdicts = [one for one in results if isinstance(one, Verdict)]
    if len(verdicts) == 1 and of:
        view = verdicts[0].view()
        title, sentences = view.title, [view.sentence, *sentences]
    elif verdicts:
        shared = f"{len(verdicts)} {SHARED}"
        together = all(shared in one.about.notes for one in verdicts)
        sure = percent(verdicts[0].confidence)
        how = f"together at {sure} confidence" if together else "each at its own confidence"
        title, said = _of_verdicts(often, len(verdicts), how)
        sentences = [*said, *sentences]
    return min(often, key=list(Status).index), title, " ".join(sentences)


def _of_verdicts(often: Counter[Status], total: int, how: str) -> tuple[str, list[str]]:
    """Several verdicts in a title and sentences."""
    broken, clear, blind = (often[s] for s in (Status.VIOLATION, Status.CLEAR, Status.BLIND))
    if clear == total:
        return TITLES[Status.CLEAR], [f"None of the {total} claims was refuted by the draws."]
    title = f"{blind} audit{'s' * (blind > 1)} too weak to see a large violation"
    sentences = []
    if broken:
        title = f"{broken} violation{'s' * (broken > 1)}"
        refuted = f"{broken} of {total} claims {'is' if broken == 1 else 'are'} refuted"
        sentences.append(f"{refuted}, {how}.")
    if clear:
        sentences.append(f"For {clear} of {total} no violation was detected.")
    if blind:
        sentences.append(f"{blind} of {total} audits could have missed a large violation.")
    return title, sentences


# --- sections


def _sections(results: Sequence[Result | Spectrum], profile: Profile | None) -> list[Section]:
    """A section for every result; spectra come last."""
    claims = [one for one in results if not isinstance(one, Spectrum)]
    spectra = [one for one in results if isinstance(one, Spectrum)]
    sections = []
    for k, one in enumerate(claims, 1):
        key = f"v{k}"
        match one:
            case Verdict():
                if one.profile is None and len(claims) == 1:
                    sections.append(_verdict(key, one, profile))
                    profile = None
                else:
                    sections.append(_verdict(key, one, one.profile))
                    profile = None if one.profile is profile else profile
            case Hunt():
                sections.append(_hunt(key, one))
            case LowerBound():
                drawn = figures.canaries(key, one)
                sections.append(Section(key, one.view(_file("bound", key)), one.to_json(), drawn))
            case Verification():
                view = one.view(_file("verification", key))
                sections.append(Section(key, view, one.to_json()))
    if profile is not None:
        curve = figures.tradeoff("estimate-tradeoff", None, profile.tradeoff_curve)
        drawn = [curve, *_notions("estimate", profile, None)]
        sections.append(Section("estimate", profile.view(), profile.to_json(), drawn))
    return sections + [_spectrum(f"s{k}", one) for k, one in enumerate(spectra, 1)]


def _file(name: str, key: str) -> str:
    """The name of a file for the JSON of a section."""
    return f"{name}.json" if key[1:] == "1" else f"{name}-{key[1:]}.json"


def _verdict(key: str, verdict: Verdict, profile: Profile | None) -> Section:
    curve = verdict.curve
    if curve is None and profile is not None:
        curve = profile.tradeoff_curve
    # of canaries, which are not independent, counts have no confidence region
    of_values = figures.canaries(key, verdict) or [
        figures.tradeoff(f"{key}-tradeoff", verdict, curve)
    ]
    method = []
    if profile is not None:
        of_values += _notions(key, profile, verdict)
        method = [("Estimates", profile.about.method)]
    if verdict.witness.event.of_representation and curve is not None:
        of_values = [replace(one, caption=f"{one.caption} {OF_VALUES}") for one in of_values]
    shown, event = list[Figure](), verdict.witness.event
    if verdict.violated:
        shown = output_figures.cause(f"{key}-cause", verdict.diagnosis, event)
    drawn = [*shown, *figures.evidence(f"{key}-evidence", verdict), *of_values]
    view = verdict.view(_file("verdict", key))
    listed = output_figures.event_table(verdict.witness.event)
    return Section(key, view, verdict.to_json(), drawn, method, event=listed)


def _notions(key: str, profile: Profile, verdict: Verdict | None) -> list[Figure]:
    """δ(ε), the output distributions, the privacy loss and the Rényi curve of a profile."""
    claim = None if verdict is None else verdict.claim
    event = None if verdict is None else verdict.witness.event
    draws, loss = sum(profile.about.n or ()), profile.loss
    return [
        figures.spectrum(f"{key}-spectrum", profile.spectrum, claim),
        *([] if loss is None else output_figures.losses(key, loss, event, draws)),
        figures.renyi(f"{key}-renyi", profile.renyi_curve, claim, profile.renyi_reach),
    ]


def _hunt(key: str, found: Hunt) -> Section:
    """The verdict on the pair that was found, and how it was found."""
    section = _verdict(key, found.verdict, found.verdict.profile)
    log = PairTable(
        "The pairs that were tried, with the draws spent on each and the bound that its last draws "
        "predicted; none after a quick screening. These draws chose the pair to test. The verdict rests "
        "on fresh draws alone.",
        ("pair", "inputs", "draws", "predicted bound", "outcome"),
        [
            (t.name, t.pair, f"{t.draws:,}", "" if t.bound is None else number(t.bound), t.outcome)
            for t in found.log
        ],
    )
    view = found.verdict.view(_file("hunt", key))
    about = replace(view.about, notes=(*found.suspicions, *found.notes, *view.about.notes))
    hunted = f"{found.tried:,} pairs of inputs, {found.draws:,} draws on all of them"
    drawn = figures.search(f"{key}-search", *found.path(), float(found.verdict.claim.value))
    return replace(
        section,
        figures=[*drawn, *section.figures],
        view=replace(view, pairs=log, about=about),
        json=found.to_json(),
        method=[("Search", hunted), *section.method],
        name=found.pair.name,
        inputs=beside(found.pair),
    )


def _spectrum(key: str, found: Spectrum) -> Section:
    about = found.about or About(method="not recorded", guarantee=Guarantee.HEURISTIC)
    first, last = (f"δ({number(found.x[k])})" for k in (0, -1))
    estimated = f", estimated from {about.draws}" if about.n else ""
    sentence = (
        f"{first} is about {number(found.y[0])}, {last} about {number(found.y[-1])}{estimated}."
    )
    if found.lower is None and found.upper is None:
        sentence = f"An estimate: nothing is guaranteed. {sentence}"
    certified = (
        "The estimate is computed from a sample and may lie above or below the true value. The certified "
        "curves are bounds, for these inputs alone."
    )
    facts = []
    for k in dict.fromkeys((0, found.x.size // 2, found.x.size - 1)):
        sides = [] if found.lower is None else [f"at least {rounded_down(found.lower[k])}"]
        sides += [] if found.upper is None else [f"at most {rounded_up(found.upper[k])}"]
        note = f"certified {' and '.join(sides)}" if sides else "an estimate"
        if sides and found.confidence is not None:
            note += f", with {percent(found.confidence)} confidence"
        facts.append((f"δ at ε = {number(found.x[k])}", f"δ ≈ {number(found.y[k])}", note))
    view = ResultView(
        status=Status.ESTIMATE,
        headline="Estimate of δ(ε)",
        summary=[sentence],
        about=about,
        title="Estimate of δ(ε)",
        sentence=sentence,
        facts=facts,
        pair=about.pair,
        guarantee=guarantee_text(about.guarantee, about),
        meaning=(NOT_A_BOUND if found.lower is None else certified,),
        file=_file("spectrum", key),
    )
    return Section(key, view, found.to_json(), [figures.spectrum(f"{key}-spectrum", found, None)])
