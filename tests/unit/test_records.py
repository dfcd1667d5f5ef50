import json
import math
from pathlib import Path

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.privacy.provenance import About
from dpassay.records import Opaque, Record, decode, encode

ABOUT = About(method="m", guarantee="exact", n=(10, 20), seed=3, notes=("a",))
PAIR = dp.Pair(np.array([1, 2], dtype=np.int8), (0.5, None), "replace one record", "x")


def everything() -> list[Record]:
    curve = dp.TradeoffCurve([0, 0.2, 1], [1, 0.3, 0], about=ABOUT)
    spectrum = dp.Spectrum([0, 1], [0.5, 0.1], lower=[0.4, 0.0], confidence=0.95)
    renyi = dp.RenyiCurve([2, 3], [0.5, math.inf])
    loss = dp.LossCurve([0, 1], [0.1, -math.inf], [0.5, 0], [0.4, 0.6], labels=("a", "b"))
    witness = dp.Witness(
        event=dp.Event(words="output ≥ 3"), pair=PAIR, hits_p=5, n_p=10, hits_q=1, n_q=10
    )
    return [
        dp.PureDP(1.0),
        dp.ApproximateDP(1.0, 1e-5),
        dp.RenyiDP(order=5, epsilon=0.2),
        dp.ZeroConcentratedDP(rho=0.5),
        dp.GaussianDP(mu=1.0),
        dp.TradeoffDP([(0, 1), (0.25, 0.25), (1, 0)], gap=0.1),
        ABOUT,
        PAIR,
        curve,
        spectrum,
        renyi,
        loss,
        witness,
        dp.Estimate(value=math.inf, notion="ε", location="3", pair=PAIR, loss=loss, about=ABOUT),
        dp.LowerBound(
            value=0.5,
            confidence=0.95,
            notion="ε",
            guarantee="asymptotic",
            estimates=(0.5, 0.6),
            about=ABOUT,
        ),
        dp.Verdict(
            claim=dp.PureDP(1.0),
            violated=True,
            p_value=0.01,
            lower_bound=1.2,
            confidence=0.95,
            guarantee="exact",
            witness=witness,
            smallest_detectable=1.4,
            budget=(("event test", 0.05),),
            about=ABOUT,
        ),
        dp.Profile(
            epsilon=1.0,
            mu=0.5,
            spectrum=spectrum,
            renyi_curve=renyi,
            tradeoff_curve=curve,
            loss=loss,
            pair=PAIR,
            about=ABOUT,
        ),
    ]


@pytest.mark.parametrize("record", everything(), ids=lambda r: type(r).__name__)
def test_json_round_trip(record):
    again = type(record).from_json(record.to_json())
    assert again == record
    assert hash(again) == hash(record)
    assert type(again) is type(record)


@pytest.mark.parametrize("record", everything(), ids=lambda r: type(r).__name__)
def test_prints_and_shows(record):
    assert str(record)
    if hasattr(record, "_repr_html_"):
        assert record._repr_html_().startswith("<div")


def test_html_is_escaped():
    estimate = dp.Estimate(value=1.0, notion="<script>", about=ABOUT)
    assert "<script>" not in estimate._repr_html_()


def test_json_is_strict_and_carries_a_schema_version():
    text = dp.Estimate(value=math.nan, notion="ε", about=ABOUT).to_json()
    data = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert data["schema"] == 3
    assert data["type"] == "Estimate"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        -math.inf,
        "text",
        (1, (2.0, "a")),
        [1, [2]],
        {"a": 1},
        {"$float": 1, "type": 2},
        {1: "a", (2, 3): "b"},
    ],
)
def test_inputs_of_mechanisms_come_back_as_they_were(value):
    again = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert again == value
    assert type(again) is type(value)


def test_arrays_keep_their_dtype():
    again = decode(encode(np.array([[1, 2]], dtype=np.int8)))
    assert again.dtype == np.int8
    assert again.shape == (1, 2)


def test_what_cannot_be_rebuilt_becomes_opaque():
    assert isinstance(decode(encode(object())), Opaque)


def test_equality_compares_contents():
    assert dp.Spectrum([0, 1], [0.5, 0.1]) == dp.Spectrum([0, 1], [0.5, 0.1])
    assert dp.Spectrum([0, 1], [0.5, 0.1]) != dp.Spectrum([0, 1], [0.5, 0.2])
    assert dp.TradeoffDP([(0.2, 0.3)]) != dp.TradeoffDP([(0.2, 0.4)])
    assert dp.PureDP(1.0) != dp.GaussianDP(1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("v.json", r"not a path: give Path\('v.json'\).read_text\(\)"),
        (Path("v.json"), r"not a path: give Path\('v.json'\).read_text\(\)"),
        ("[]", "not a dpassay record"),
        ('{"type": "Path"}', "unknown record type"),
        ('{"type": "PureDP", "schema": 99, "epsilon": 1}', "newer"),
        ('{"type": "PureDP", "schema": 1, "epsilon": 1}', "older"),
        ('{"type": "PureDP", "epsilon": 1, "extra": 1}', "no field 'extra'"),
        ('{"type": "PureDP"}', "incomplete"),
        ('{"type": "PureDP", "epsilon": -1}', "at least 0"),
        ('{"type": "Pair", "first": {"$array": [1], "dtype": "O"}, "second": 1}', "not allowed"),
        ('{"type": "GaussianDP", "mu": 1}', "expected a PureDP"),
    ],
)
def test_bad_files_are_refused_in_words(text, words):
    with pytest.raises(InvalidInput, match=words):
        dp.PureDP.from_json(text)


def _written(change):
    """A verdict on an event of a layout, as JSON with something changed in it."""
    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=0.5", n=400, rng=0)
    data = json.loads(verdict.to_json())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: v.update(violated="yes"), "violated must be true or false, got 'yes'"),
        (lambda v: v.update(p_value=None), "p_value must be a number, got None"),
        (lambda v: v.update(p_value=7), "p_value must be a number at least 0 and at most 1"),
        (lambda v: v.update(lower_bound=10**400), "lower_bound must be a number"),
        (lambda v: v.update(confidence={"$float": "nan"}), "confidence must be a number above 0"),
        (lambda v: v.update(blind="\ud800"), "blind must be text"),
        (lambda v: v.update(guarantee="certain"), "guarantee must be one of 'exact'"),
        (lambda v: v.update(claim={"type": "Claim"}), "claim: .*such as PureDP"),
        (lambda v: v.update(claim={"type": "Shown"}), "claim: unknown record type 'Shown'"),
        (lambda v: v.update(budget=[["a"]]), r"budget\[0\] must be a list of 2"),
        (lambda v: v.update(evidence=[[1, 2], [3]]), "evidence must be a list of numbers"),
        (lambda v: v.update(evidence=[1, 2, 3]), "no valid Verdict"),
        (lambda v: v.pop("about"), "incomplete Verdict: about is missing"),
        (lambda v: v["witness"].update(hits_p=10**9), "witness: .*hits_p must be a whole number"),
        (lambda v: v["witness"].update(n_q=0), "witness: .*n_q must be a whole number"),
        (lambda v: v["witness"].update(n_p=1.5), "witness.n_p must be a whole number"),
        (lambda v: v["witness"]["pair"].update(first={"$float": "x"}), "witness.pair.first: "),
        (lambda v: v["witness"]["pair"].update(first={"$array": 1}), "witness.pair.first: "),
        (
            lambda v: v["witness"]["event"].update(whole=[10**6]),
            "witness.event: .*keys of the layout",
        ),
        (lambda v: v["witness"]["event"].update(words=3), "witness.event.words must be text"),
        (
            lambda v: v["witness"]["event"]["layout"].update(codes=[2**40]),
            "witness.event.layout: ",
        ),
        (
            lambda v: v["witness"]["event"]["layout"]["parts"][0].update(template=["seq", 3]),
            r"witness.event.layout.parts\[0\]: .*template",
        ),
    ],
)
def test_a_changed_verdict_is_refused_with_the_name_of_the_field(change, words):
    with pytest.raises(InvalidInput, match=words):
        dp.Verdict.from_json(_written(change))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_json_that_is_nested_too_deeply_is_refused(text):
    with pytest.raises(InvalidInput, match="nested too deeply"):
        dp.Verdict.from_json(text)


def test_a_record_that_is_nested_too_deeply_is_refused():
    inner = "[" * 900 + "]" * 900
    with pytest.raises(InvalidInput, match="nested too deeply"):
        dp.Pair.from_json(f'{{"type": "Pair", "first": {inner}, "second": 1}}')


def test_trees_whose_nodes_go_in_circles_are_refused():
    def plane(x, size, rng):
        return rng.normal(size=(size, 2)) + x

    verdict = dp.audit(plane, (0.0, 1.0), "eps=0.5", n=400, rng=0, loss="boosting")
    data = json.loads(verdict.to_json())
    data["witness"]["event"]["score_function"]["model"]["left"][0] = 0
    with pytest.raises(InvalidInput, match="witness.event.score_function: .*no function of the"):
        dp.Verdict.from_json(json.dumps(data))
