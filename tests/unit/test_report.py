"""The report as text: complete in itself, harmless, and faithful to the results."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.helpers import laplace_mechanism

import dpassay as dp
from dpassay import report
from dpassay.errors import InvalidInput, MissingExtra
from dpassay.outputs.events import Event, Intervals
from dpassay.outputs.keys import Layout, Part
from dpassay.privacy.provenance import About, Origin
from dpassay.report import embed
from dpassay.report.page import OF_VALUES, _sorted, overview
from dpassay.results.verdict_text import second_bound

HOSTILE = "</script><script>alert(1)</script>\u2028&<!--\"'"
P, Q = np.array([0.5, 0.25, 0.15, 0.1]), np.array([0.2, 0.45, 0.0, 0.35])
ORIGIN = Origin(
    file=HOSTILE,
    bytes=51_455,
    sha256="0123456789abcdef" * 4,
    rows=2_000,
    columns=("a", HOSTILE),
    missing=676,
    modified="2024-02-29T12:00:00+00:00",
)
ABOUT = About(method="by hand", guarantee="heuristic", n=(1000, 1000), seed=7)


def discrete_profile(labels=("yes", "no", HOSTILE, "none")):
    curve = dp.Masses(P, Q).tradeoff_curve()
    with np.errstate(divide="ignore"):
        ell = np.log(P) - np.log(Q)
    return dp.Profile(
        epsilon=np.inf,
        mu=np.inf,
        spectrum=curve.spectrum(np.linspace(0, 3, 31)),
        renyi_curve=dp.RenyiCurve([1.5, 2, 4], [np.inf] * 3),
        tradeoff_curve=curve.symmetrise(),
        loss=dp.LossCurve(np.arange(4), ell, P, Q, labels=labels),
        pair=dp.Pair([HOSTILE], []),
        about=ABOUT,
    )


def continuous_profile():
    x = np.linspace(-4, 5, 901)
    p, q = 0.5 * np.exp(-np.abs(x)), 0.5 * np.exp(-np.abs(x - 1))
    laplace, pair = dp.zoo.Laplace(), (0.0, 1.0)
    eps = np.linspace(0, 2, 41)
    delta = np.array([laplace.delta(e, pair) for e in eps])
    alpha = np.linspace(0, 1, 201)
    orders = np.array([1.5, 2.0, 4.0, 8.0])
    values = np.array([laplace.renyi(order, pair) for order in orders])
    return dp.Profile(
        epsilon=1.0,
        mu=1.2,
        spectrum=dp.Spectrum(eps, delta, lower=0.9 * delta, confidence=0.95),
        renyi_curve=dp.RenyiCurve(orders, values, lower=0.9 * values, confidence=0.95),
        tradeoff_curve=dp.TradeoffCurve(alpha, laplace.tradeoff(alpha, pair)),
        loss=dp.LossCurve(x, np.log(p / q), p, q),
        about=ABOUT,
    )


def discrete_verdict():
    labels = ("yes", "no", HOSTILE, "none")
    layout = Layout(tuple(Part(("enum", label)) for label in labels), np.arange(4), np.zeros(4))
    verdict = dp.audit_counts(650, 1000, 200, 1000, dp.PureDP(0.5))
    event = Event(words=f"the output is yes or {HOSTILE}", layout=layout, whole=(0, 2))
    return replace(
        verdict,
        profile=discrete_profile(labels),
        pairs=((HOSTILE, 0.7), ("other", 0.2)),
        budget=((HOSTILE, 0.05),),
        witness=replace(verdict.witness, event=event, pair=dp.Pair([HOSTILE], [])),
        about=replace(verdict.about, files=(ORIGIN, ORIGIN)),
    )


def continuous_verdict(claim=None):
    verdict = dp.audit_counts(450, 1000, 184, 1000, claim or dp.ApproximateDP(0.5, 1e-3))
    event = Event(words="below 0.5", partial=((0, Intervals([-np.inf], [0.5])),))
    return replace(
        verdict,
        profile=continuous_profile(),
        witness=replace(verdict.witness, event=event),
    )


def blind_verdict(reason=""):
    verdict = dp.audit_counts(0, 1000, 0, 1000, dp.PureDP(0.5))
    return replace(verdict, blind=reason) if reason else verdict


class Page(HTMLParser):
    """The parts of a page a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._open = dict(attrs)
            self.scripts.append((self._open, ""))

    def handle_endtag(self, tag):
        if tag == "script":
            self._open = None

    def handle_data(self, data):
        if self._open is not None:
            attrs, code = self.scripts[-1]
            self.scripts[-1] = (attrs, code + data)
        else:
            self.text += data

    def data(self, name):
        return json.loads(next(code for attrs, code in self.scripts if attrs.get("id") == name))


def pages():
    return {
        "discrete": report.render([discrete_verdict()], title=HOSTILE, command=f"run {HOSTILE}"),
        "continuous": report.render([continuous_verdict()]),
        "counts": report.render([dp.audit_counts(250, 1000, 184, 1000, dp.PureDP(0.5))]),
        "blind": report.render([blind_verdict(f"a part of the search failed: {HOSTILE}")]),
        "estimate": report.render([], profile=discrete_profile()),
        "several": report.render(
            [discrete_verdict(), blind_verdict(), continuous_verdict(dp.GaussianDP(1.0))],
            profile=continuous_profile(),
            table=[{"mechanism": HOSTILE, "claim": "0.5-DP"}, {"mechanism": "b"}, {"claim": "c"}],
        ),
    }


@pytest.fixture(scope="module")
def rendered():
    return {name: (text, Page(text)) for name, text in pages().items()}


@pytest.fixture(params=["discrete", "continuous", "counts", "blind", "estimate", "several"])
def page(request, rendered):
    return rendered[request.param]


def test_nothing_is_loaded_from_outside(page):
    text, parsed = page
    for tag, attrs in parsed.elements:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base"}
        for name in ("src", "href", "xlink:href", "action"):
            assert (attrs.get(name) or "#").startswith("#")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style


def test_only_the_scripts_the_policy_names_are_there(page):
    text, parsed = page
    running = [code for attrs, code in parsed.scripts if attrs.get("type") is None]
    assert len(running) == 2
    policy = next(a["content"] for _, a in parsed.elements if "http-equiv" in a)
    assert policy == embed.policy(*running)
    assert "unsafe-eval" not in policy
    assert text.count("window.vegaEmbed=") + text.count("window.vegaEmbed =") <= 2
    assert not any(name.startswith("on") for _, attrs in parsed.elements for name in attrs)


def test_drawings_are_well_formed_and_share_no_ids(page):
    text, parsed = page
    drawings = re.findall(r'<div class="still">(<svg.*?</svg>)', text, re.DOTALL)
    assert len(drawings) == len(parsed.data("specs"))
    for svg in drawings:
        tags = {element.tag.split("}")[1] for element in ElementTree.fromstring(svg).iter()}
        assert "script" not in tags
        assert "NaN" not in svg
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_every_chart_has_a_name_and_its_numbers(page):
    _, parsed = page
    drawings = [a for tag, a in parsed.elements if tag == "svg"]
    assert all(a["role"] == "img" and a["aria-label"] for a in drawings)
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("figure") >= len(drawings)
    assert ("html", {"lang": "en"}) in parsed.elements


def test_results_come_back_from_the_page(rendered):
    verdict = discrete_verdict()
    record = rendered["discrete"][1].data("records")["v1"]
    assert record["text"] == verdict.to_json()
    assert dp.Verdict.from_json(record["text"]) == verdict
    assert dp.Verdict.from_json(record["text"]).about.files == (ORIGIN, ORIGIN)
    blind = dp.Verdict.from_json(rendered["several"][1].data("records")["v2"]["text"])
    assert (blind.tone, blind) == ("blind", blind_verdict())
    profile = rendered["estimate"][1].data("records")["estimate"]
    assert dp.Profile.from_json(profile["text"]) == discrete_profile()
    assert list(rendered["several"][1].data("records")) == ["v1", "v2", "v3", "estimate"]


def test_hostile_strings_are_shown_as_they_are(rendered):
    text, parsed = rendered["discrete"]
    assert "</script><script>alert(1)</script>" not in text
    assert "</script><script>alert(1)</script>" in parsed.text
    assert json.loads(embed.safe_json({HOSTILE: HOSTILE})) == {HOSTILE: HOSTILE}
    assert not set("<>&\u2028\u2029") & set(embed.safe_json([HOSTILE]))


def test_no_page_calls_a_mechanism_private(rendered):
    clear = rendered["counts"][1].text
    assert "No violation detected" in clear
    assert "does not mean private" in clear
    assert "would be detected with probability 0.9" in clear
    for _, parsed in rendered.values():
        assert not re.search(r"\bis private\b", parsed.text)


def banner(parsed):
    """The kind of the banner at the top of a page."""
    (found,) = [
        a["class"] for _, a in parsed.elements if (a.get("class") or "").startswith("banner")
    ]
    return found.removeprefix("banner ")


def test_an_audit_that_could_not_see_says_so_at_the_top(rendered):
    text, parsed = rendered["blind"]
    assert banner(parsed) == "blind"
    top = text[text.index('<div class="banner blind">') :]
    assert "Too weak: a large violation could have been missed" in top[:300]
    assert "Too weak: a large violation could have been missed</title>" in text
    assert blind_verdict().view().sentence == (
        "This audit could have missed a large violation of 0.5-DP: the event that was tested happened "
        "in none of the draws on both inputs. It certifies only that ε is at least 0, with 95% "
        "confidence."
    )
    assert "</script><script>alert(1)</script>" in parsed.text  # the reason, as text
    assert "neither for the claim nor against it" in parsed.text
    assert "More draws" in parsed.text
    assert "No violation detected" not in parsed.text
    assert '<span class="sign" aria-hidden="true">?</span>' in text


def test_every_tone_has_a_sign_a_colour_and_words_of_its_own(rendered):
    tones = {name: banner(parsed) for name, (_, parsed) in rendered.items()}
    assert tones == {
        "discrete": "violation",
        "continuous": "violation",
        "counts": "clear",
        "blind": "blind",
        "estimate": "estimate",
        "several": "violation",
    }
    style = re.search(r"<style>(.*?)</style>", rendered["blind"][0], re.DOTALL).group(1)
    for kind in set(tones.values()):
        assert f".{kind} {{ --tone: var(--{kind}); }}" in style
    for scheme in re.findall(r":root \{(.*?)\}", style, re.DOTALL):  # light, dark, paper
        colours = re.findall(r"--(?:violation|clear|blind): (#\w+);", scheme)
        assert len(colours) == len(set(colours)) == 3
        page, card = (re.search(rf"--{name}: (#\w+)", scheme).group(1) for name in ("page", "card"))
        for colour in colours:
            assert min(contrast(colour, page), contrast(colour, card)) >= 4.5  # WCAG AA


def contrast(one, other):
    """The contrast of two colours as WCAG 2 defines it."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = np.array([int(digits[k : k + 2], 16) for k in (0, 2, 4)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_an_overview_counts_all_three_kinds():
    broken, clear, blind = (
        dp.audit_counts(*hits, dp.PureDP(0.5))
        for hits in ((450, 1000, 184, 1000), (250, 1000, 184, 1000), (0, 1000, 0, 1000))
    )
    assert overview([clear, clear]) == (
        "clear",
        "No violation detected",
        "None of the 2 claims was refuted by the draws.",
    )
    assert overview([broken, broken, clear, blind]) == (
        "violation",
        "2 violations",
        "2 of 4 claims are refuted, each at its own confidence. For 1 of 4 no violation was detected. "
        "1 of 4 audits could have missed a large violation.",
    )
    assert overview([clear, blind, blind]) == (
        "blind",
        "2 audits too weak to see a large violation",
        "For 1 of 3 no violation was detected. 2 of 3 audits could have missed a large violation.",
    )
    assert overview([blind, blind])[2] == "2 of 2 audits could have missed a large violation."
    assert banner(Page(report.render([clear, blind]))) == "blind"
    assert banner(Page(report.render([blind, broken]))) == "violation"
    assert banner(Page(report.render([clear, clear]))) == "clear"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("eps=0.5, delta=0.01", "δ ≥ 0.07283 at ε = 0.5, claimed 0.01"),
        ("eps=0.5, delta=0.01 in delta", "ε ≥ 0.6638 at δ = 0.01, claimed 0.5"),
    ],
)
def test_both_bounds_of_an_approximate_claim_are_shown(claim, said):
    verdict = dp.audit_counts(450, 1000, 184, 1000, claim)
    assert second_bound(verdict) == said
    assert f" and, at the same time, {said}, with 95% confidence." in verdict.view().sentence
    page = Page(report.render([verdict]))
    assert said in page.text
    assert "both bounds hold at once" in page.text
    assert second_bound(dp.audit_counts(450, 1000, 184, 1000, "eps=0.5")) == ""


def test_the_files_the_draws_came_from_are_listed(rendered):
    text, parsed = rendered["discrete"]
    assert "The files" in parsed.text
    table = re.search(r'<table class="origins">.*?</table>', text, re.DOTALL).group()
    heads = re.findall(r'<th scope="col">(.*?)</th>', table)
    assert heads[0] == ""
    assert len(heads) == 3  # a column for each file
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    named = {name: first for name, first, _ in rows}
    assert named["rows"] == "2,000"
    assert named["cells without a value"] == "676"
    assert named["bytes"] == "51,455"
    assert named["SHA-256"] == ORIGIN.sha256
    assert named["modified"] == "2024-02-29T12:00:00+00:00"
    for name in ("continuous", "blind", "estimate"):
        assert "The files" not in rendered[name][1].text


def test_the_relation_of_the_inputs_is_named():
    pair = dp.Pair(1, 2, relation=dp.Relation.REPLACE_ONE)
    verdict = blind_verdict()
    verdict = replace(verdict, witness=replace(verdict.witness, pair=pair))
    assert "1 and 2 (replace one record)" in Page(report.render([verdict])).text


def test_infinite_values_are_said_and_not_drawn(rendered):
    _, parsed = rendered["estimate"]
    assert "infinite at every order" in parsed.text
    assert "estimate-renyi" not in parsed.data("specs")
    assert "∞" in parsed.text


def test_the_witness_event_is_shaded(rendered):
    _, parsed = rendered["continuous"]
    datasets = parsed.data("specs")["v1-densities"]["datasets"].values()
    shaded = [row for rows in datasets if isinstance(rows, list) for row in rows if "from" in row]
    curves = [row for rows in datasets if isinstance(rows, str) for row in json.loads(rows)]
    outputs = [x for row in curves for x in row["x"]]
    assert shaded == [{"from": pytest.approx(min(outputs)), "to": 0.5}]
    masses = json.dumps(rendered["discrete"][1].data("specs")["v1-masses"])
    assert masses.count('"event": "yes"') == 4  # two outputs, two sides
    assert masses.count('"event": "no"') == 4


@pytest.mark.parametrize(
    "claim",
    [
        dp.RenyiDP(2, 0.05),
        dp.RenyiCurveDP([2, 4, 64], [0.05, 0.1, 3.0]),
        dp.ZeroConcentratedDP(0.01),
        dp.ZeroConcentratedDP(0.01, 1e-6),
        dp.ApproximateDP(0.5, 0.01, headline="delta"),
        dp.TradeoffDP([(0, 1), (0.4, 0.4), (1, 0)]),
    ],
    ids=str,
)
def test_every_kind_of_claim_has_a_page(claim):
    verdict = dp.audit_counts(184, 1000, 450, 1000, claim)
    page = Page(report.render([verdict], profile=continuous_profile()))
    assert verdict.view().sentence in page.text
    assert "v1-spectrum" in page.data("specs")  # the profile given serves the one verdict


def test_a_verdict_with_its_point_and_curve_draws_both(seed):
    verdict = dp.tradeoff.audit(
        dp.zoo.Gaussian(1.0), (0.0, 1.0), dp.GaussianDP(0.5), n_locate=2000, n_test=2000, rng=seed
    )
    spec = json.dumps(Page(report.render([verdict])).data("specs")["v1-tradeoff"])
    assert '"estimate"' in spec
    assert '"claimed"' in spec


def test_write_writes_what_render_renders(tmp_path):
    verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    report.write(tmp_path / "page.html", [verdict], command="dpassay counts 450 1000 184 1000")
    text = (tmp_path / "page.html").read_bytes().decode("utf-8")
    assert text == report.render([verdict], command="dpassay counts 450 1000 184 1000")
    assert "dpassay counts 450 1000 184 1000" in text
    assert "\r" not in text


def test_a_result_alone_and_a_profile_among_results_are_pages():
    verdict, profile = discrete_verdict(), continuous_profile()
    assert _sorted(verdict, None) == _sorted([verdict], None) == ([verdict], None)
    assert _sorted(profile, None) == _sorted([], profile) == ([], profile)
    assert _sorted([verdict, profile], None) == ([verdict], profile)
    assert "ε is about 1" in Page(report.render(profile)).text


@pytest.mark.parametrize(
    ("path", "results", "said"),
    [
        ([discrete_verdict()], "x.html", r'the name of a file.*write report\.write\("audit\.html"'),
        ("x.html", "verdict.json", "got a str"),
        ("x.html", [dp.LossCurve([0, 1], [0, 1], [1, 1], [1, 1])], "got a LossCurve"),
        ("x.html", 3, "got a int"),
        ("x.html", [continuous_profile()] * 2, "one profile, got 2"),
        ("x.pdf", [discrete_verdict()], "an HTML page, and 'x.pdf' names another.*write x.html"),
    ],
)
def test_what_a_page_cannot_show_is_refused(path, results, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=said):
        report.write(path, results)
    assert list(tmp_path.iterdir()) == []


def test_curves_beside_a_leak_in_the_bits_say_what_they_are_of(seed):
    verdict = dp.audit(
        laplace_mechanism, (0.0, 1.0), "eps=2", n=4000, loss="bits", rng=seed, details=True
    )
    assert verdict.violated
    assert verdict.witness.event.of_representation
    page = Page(report.render(verdict))
    curves = [key for key in page.data("specs") if not key.endswith("-cause")]
    assert page.text.count(OF_VALUES) == len(curves) >= 4
    plain = Page(report.render(continuous_verdict()))
    assert OF_VALUES not in plain.text


def test_an_empty_report_is_refused():
    with pytest.raises(InvalidInput, match="at least one result"):
        report.render([])


@pytest.mark.parametrize("module", ["altair", "vl_convert", "jinja2"])
def test_a_missing_extra_is_named(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"a report needs.*dpassay\[report\]"):
        report.render([dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))])
