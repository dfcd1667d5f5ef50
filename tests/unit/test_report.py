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

import dpassay as dp
from dpassay import report
from dpassay.errors import InvalidInput, MissingExtra
from dpassay.events import Event, Intervals, Layout, Part
from dpassay.report import embed, figures, words

HOSTILE = "</script><script>alert(1)</script>\u2028&<!--\"'"
P, Q = np.array([0.5, 0.25, 0.15, 0.1]), np.array([0.2, 0.45, 0.0, 0.35])
ABOUT = dp.About(method="by hand", guarantee="heuristic", n=(1000, 1000), seed=7)


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
    layout = Layout(
        tuple(Part((label,), (), (), ()) for label in labels), np.arange(4), np.zeros(4)
    )
    verdict = dp.audit_counts(650, 1000, 200, 1000, dp.PureDP(0.5))
    event = Event(words=f"the output is yes or {HOSTILE}", layout=layout, whole=(0, 2))
    return replace(
        verdict,
        profile=discrete_profile(labels),
        pairs=((HOSTILE, 0.7), ("other", 0.2)),
        budget=((HOSTILE, 0.05),),
        witness=replace(verdict.witness, event=event, pair=dp.Pair([HOSTILE], [])),
    )


def continuous_verdict(claim=None):
    verdict = dp.audit_counts(450, 1000, 184, 1000, claim or dp.ApproximateDP(0.5, 1e-3))
    event = Event(words="below 0.5", partial=((0, Intervals([-np.inf], [0.5])),))
    return replace(
        verdict,
        profile=continuous_profile(),
        witness=replace(verdict.witness, event=event),
    )


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
        "estimate": report.render([], profile=discrete_profile()),
        "several": report.render(
            [discrete_verdict(), continuous_verdict(), continuous_verdict(dp.GaussianDP(1.0))],
            profile=continuous_profile(),
            table=[{"mechanism": HOSTILE, "claim": "0.5-DP"}, {"mechanism": "b"}, {"claim": "c"}],
        ),
    }


@pytest.fixture(scope="module")
def rendered():
    return {name: (text, Page(text)) for name, text in pages().items()}


@pytest.fixture(params=["discrete", "continuous", "counts", "estimate", "several"])
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
    assert "never means private" in clear
    assert "would be caught 9 times in 10" in clear
    for _, parsed in rendered.values():
        assert not re.search(r"\bis private\b", parsed.text)


def test_infinite_values_are_said_and_not_drawn(rendered):
    _, parsed = rendered["estimate"]
    assert "infinite at every order" in parsed.text
    assert "estimate-renyi" not in parsed.data("specs")
    assert "∞" in parsed.text


def test_the_witness_event_is_shaded(rendered):
    _, parsed = rendered["continuous"]
    datasets = parsed.data("specs")["v1-densities"]["datasets"].values()
    shaded = [row for rows in datasets for row in rows if "from" in row]
    outputs = [row["x"] for rows in datasets for row in rows if "x" in row]
    assert shaded == [{"from": pytest.approx(min(outputs)), "to": 0.5}]
    masses = json.dumps(rendered["discrete"][1].data("specs")["v1-masses"])
    assert masses.count('"event": "yes"') == 4  # two outputs, two sides
    assert masses.count('"event": "no"') == 4


def test_a_witness_is_placed_below_the_diagonal():
    verdict = dp.audit_counts(184, 1000, 450, 1000, dp.PureDP(0.5))
    (alpha, beta), counts = figures._placed(verdict)
    assert (alpha, beta) == pytest.approx((0.55, 0.184))
    assert (counts.i, counts.j) == (816, 550)


@pytest.mark.parametrize(
    "claim", [dp.PureDP(0.8), dp.ApproximateDP(0.8, 0.01), dp.GaussianDP(0.9)], ids=str
)
def test_allowed_delta_is_the_conjugate_of_the_claimed_curve(claim):
    epsilon = np.linspace(0, 2, 9)
    alpha = np.linspace(0, 1, 20_001)
    by_search = np.max(
        1 - claim.tradeoff(alpha) - np.exp(epsilon)[:, None] * alpha, axis=1, initial=0.0
    )
    assert figures.allowed_delta(claim, epsilon) == pytest.approx(by_search, abs=1e-4)


@pytest.mark.parametrize(
    "claim",
    [
        dp.RenyiDP(2, 0.05),
        dp.ZeroConcentratedDP(0.01),
        dp.TradeoffDP([(0, 1), (0.4, 0.4), (1, 0)]),
    ],
    ids=str,
)
def test_every_kind_of_claim_has_a_page(claim):
    verdict = dp.audit_counts(184, 1000, 450, 1000, claim)
    page = Page(report.render([verdict], profile=continuous_profile()))
    assert words.sentence(verdict) in page.text
    assert "v1-spectrum" in page.data("specs")  # the profile given serves the one verdict


def test_a_verdict_with_its_point_and_curve_draws_both(seed):
    verdict = dp.tradeoff.audit(
        dp.zoo.Gaussian(1.0), (0.0, 1.0), dp.GaussianDP(0.5), n_locate=2000, n_test=2000, rng=seed
    )
    spec = json.dumps(Page(report.render([verdict])).data("specs")["v1-tradeoff"])
    assert '"measured"' in spec
    assert '"claimed"' in spec


def test_write_writes_what_render_renders(tmp_path):
    verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    report.write(tmp_path / "page.html", [verdict], command="dpassay counts 450 1000 184 1000")
    text = (tmp_path / "page.html").read_bytes().decode("utf-8")
    assert text == report.render([verdict], command="dpassay counts 450 1000 184 1000")
    assert "dpassay counts 450 1000 184 1000" in text
    assert "\r" not in text


def test_small_probabilities_are_written_out():
    assert [words.small(p) for p in (0.0, 1.0, 0.034, 5e-5, 1.25e-12)] == [
        "0",
        "1",
        "0.034",
        "5 × 10⁻⁵",
        "1.2 × 10⁻¹²",
    ]


def test_an_empty_report_is_refused():
    with pytest.raises(InvalidInput, match="at least one verdict"):
        report.render([])


@pytest.mark.parametrize("module", ["altair", "vl_convert", "jinja2"])
def test_a_missing_extra_is_named(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"a report needs.*dpassay\[report\]"):
        report.render([dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))])
