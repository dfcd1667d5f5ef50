"""The page of a verification: what was shown, on which pairs, and nothing more."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import dpassay as dp
from dpassay import report
from dpassay.privacy.provenance import About
from dpassay.report.page import overview
from dpassay.results.verdict import Verdicts
from dpassay.results.verification import PairUpper
from dpassay.rounding import rounded_down, rounded_up

PAIRS = [(0, 1), (1, 0), ([HOSTILE := "</script><b>", 2], [3])]


def verification(upper, claim="eps=1.2, delta=0.01", *, pairs=1, unseen=0.001, reason=""):
    claim = dp.claim(claim)
    target = claim.shown_by()
    found = tuple(
        PairUpper(pair=dp.Pair(*PAIRS[k]), upper=upper / (k + 1), cells=12, unseen=unseen)
        for k in range(pairs)
    )
    single = target is not None and target[0].size == 1
    return dp.Verification(
        claim=claim,
        confirmed=single and upper <= target[1][0],
        upper=upper,
        epsilon=float(target[0][0]) if single else None,
        confidence=0.95,
        guarantee=dp.Guarantee.EXACT,
        reason=reason,
        pairs=found,
        budget=(("the worst pair", 0.05),),
        about=About(method="m", guarantee=dp.Guarantee.EXACT, n=(100, 100), pair=found[0].pair),
    )


def text_of(page):
    bare = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bare).split())


CASES = {
    "confirmed": verification(0.004),
    "several": verification(0.004, pairs=3),
    "unshown": verification(0.03, reason="more draws show more"),
    "pure": verification(0.03, "eps=1.2", reason="no number of draws shows δ = 0"),
    "curve": verification(0.02, "mu=1", reason="lower it"),
    "nothing": verification(1.0, unseen=1.0, reason="round in the release itself"),
    "renyi": verification(1.0, "renyi(2)=1", reason="draws cannot show it"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_page_says_on_these_pairs_and_never_private(name):
    found = CASES[name]
    page = report.render([found])
    said = text_of(page)
    assert not re.search(r"\bprivate\b", said, re.IGNORECASE)
    assert f"on {found.where}" in said
    assert "It says nothing about other inputs." in said
    assert f'<div class="banner {found.tone}">' in page
    assert str(found.claim) in said
    assert (f"Why not more {found.reason}" in said) == bool(found.reason)
    assert "the worst pair 0.05" in said
    assert found.to_json() in {r["text"] for r in data(page, "records").values()}


def data(page, name):
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', page, re.DOTALL)[1])


def test_the_bound_of_every_pair_is_in_the_table_the_worst_first():
    page = report.render([CASES["several"]])
    rows = re.findall(r"<tr><td>(.*?)</td><td>([\d.]+)</td><td>12</td>", page)
    assert [bound for _, bound in rows] == ["0.004", "0.002", "0.001334"]
    assert HOSTILE not in page
    assert "δ(1.2) ≤ 0.004" in text_of(page)


def test_a_page_without_charts_carries_no_chart_library():
    assert len(report.render([CASES["confirmed"]])) < 60_000


def test_what_is_confirmed_and_what_is_not_have_words_of_their_own():
    heads = {name: found.view().title for name, found in CASES.items()}
    assert heads["confirmed"] == "Verified on this pair"
    assert heads["several"] == "Verified on these 3 pairs"
    assert heads["unshown"] == "Not verified on this pair"
    assert "(1.2, 0.03)-DP holds on this pair" in CASES["pure"].view().sentence
    assert "verify nothing about" in CASES["renyi"].view().sentence


def test_several_results_are_counted_apart():
    broken = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    clear = dp.audit_counts(250, 1000, 184, 1000, dp.PureDP(0.5))
    held, open_ = CASES["confirmed"], CASES["unshown"]
    assert overview([held, open_]) == (
        "unshown",
        "1 of 2 claims verified on the given pairs",
        "1 of 2 claims was verified on the given pairs.",
    )
    _, head, said = overview([broken, clear, held])
    assert head == "1 violation"
    assert said.endswith("1 of 1 claims was verified on the given pairs.")
    _, head, said = overview([clear, held, open_])
    assert head == "No violation detected"
    assert said.startswith("The draws do not refute 0.5-DP")
    page = report.render([clear, held, open_])
    assert '<div class="banner unshown">' in page


def test_a_spectrum_is_drawn_with_its_band():
    eps = np.linspace(0, 2, 21)
    delta = 0.4 * np.exp(-eps)
    found = dp.Spectrum(eps, delta, lower=0.9 * delta, upper=1.1 * delta, confidence=0.95)
    page = report.render([found])
    said = text_of(page)
    assert "certified at least 0.36 and at most 0.4401, with 95% confidence" in said
    assert "certified from above" in said
    (spec,) = data(page, "specs").values()
    area = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "area")
    (band,) = json.loads(spec["datasets"][area["data"]["name"]])
    assert (band["x"][0], band["y"][0], band["high"][0]) == (0, 0.36, 0.44)


def test_bounds_are_rounded_to_the_safe_side():
    for value in (1.00001e-5, 0.123456, 0.5, 9.9999e-3, 1 / 3, 123.456):
        assert value * 0.9989 <= float(rounded_down(value)) <= value
    for value in (1.00001e-5, 0.0504, 0.5, 0.999, 1 / 3):
        assert value <= float(rounded_up(value)) <= value * 1.0011
        assert value <= float(rounded_up(value, places=2)) <= value * 1.11
    assert rounded_up(0.0) == rounded_down(0.0) == "0"


def test_printed_bounds_are_never_larger_than_certified():
    one = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000, rng=0)
    high = replace(one, lower_bound=1.02999, p_value=0.0504)
    texts = [str(high), str(Verdicts([high])), high.view().sentence, " ".join(high.view().summary)]
    texts += [" ".join(fact[1] for fact in high.view().facts)]
    for text in texts:
        assert "1.029" in text, text
        assert "1.03" not in text, text
        assert "p ≤ 0.05 " not in text, text
