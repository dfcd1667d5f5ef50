"""Files of results, mutated: read, printed, written again and replayed."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
from tests.fuzz.running import Case
from tests.fuzz.values import JSON, pick

import dpassay as dp
from dpassay.records import Record

QUIET = dp.Sampling(progress=False)


def _words(x: float, size: int, rng: np.random.Generator) -> list[str]:
    return ["abcd"[int(k)] * 3 + str(k) for k in rng.integers(3 + x, size=size)]


def _mixed(x: float, size: int, rng: np.random.Generator) -> list[Any]:
    drawn = np.round(x + rng.laplace(size=size), 2)
    return [None if d > 2 else {"a": (d, "w")} if d > 0 else float(d) for d in drawn]


def _plane(x: float, size: int, rng: np.random.Generator) -> Any:
    return rng.normal(size=(size, 2)) + 2 * x


def _letters(x: float, size: int, rng: np.random.Generator) -> list[str]:
    return [
        "".join(map(chr, 97 + rng.integers(5 + 20 * x, size=12).astype(int))) for _ in range(size)
    ]


MECHANISMS = {
    "numbers": dp.zoo.Laplace(0.5),
    "words": _words,
    "mixed": _mixed,
    "plane": _plane,
    "letters": _letters,
    "classes": dp.zoo.KaryRandomizedResponse(4, 2.0),
}
PAIR = (0.0, 1.0)


@cache
def written() -> tuple[tuple[str, str, str], ...]:
    """(what it is, the mechanism's name, JSON) of results of every kind."""
    found: list[tuple[str, str, str]] = []
    for name, mechanism in MECHANISMS.items():
        pair = mechanism.pair if hasattr(mechanism, "pair") else PAIR
        given = {"n": 400, "rng": 0, "sampling": QUIET}
        for claim in ("eps=0.5, delta=1e-3", "mu=0.5"):
            verdict = dp.audit(mechanism, pair, claim, details=name == "numbers", **given)
            found.append(("verdict", name, verdict.to_json()))
        found.append(("bound", name, dp.bound(mechanism, pair, "eps", **given).to_json()))
        found.append(("witness", name, verdict.witness.to_json()))
        watch = dp.Monitor("eps=0.5")
        rng = np.random.default_rng(0)
        watch.update(*(mechanism(x, 60, rng) for x in pair))
        found.append(("monitor", name, watch.to_json()))
    numbers = MECHANISMS["numbers"]
    for loss in ("boosting", "logistic"):
        verdict = dp.audit(_plane, PAIR, "eps=0.5", loss=loss, **given)
        found.append(("verdict", "plane", verdict.to_json()))
    others = [
        ("estimate", dp.pure.estimate(numbers, PAIR, n=400, rng=0)),
        ("profile", dp.estimate(numbers, PAIR, n=400, rng=0)),
        (
            "verification",
            dp.verify(MECHANISMS["classes"], (0, 1), "eps=3, delta=0.1", n=400, rng=0),
        ),
        ("spectrum", dp.spectrum.estimate(numbers, PAIR, n=400, rng=0)),
        ("plan", dp.plan("eps=1")),
        (
            "space",
            dp.inputs.Table({"a": dp.inputs.Real(0, 1), "b": dp.inputs.Category(["x", "y"])}),
        ),
        ("space", dp.inputs.Reals(0, 1, length=(0, 4))),
        ("claim", dp.TradeoffDP([(0, 1), (0.25, 0.25), (1, 0)])),
        ("claim", dp.RenyiCurveDP((2, 4), (0.1, 0.3))),
    ]
    found += [(what, "numbers", record.to_json()) for what, record in others]
    hunted = dp.hunt(
        lambda data, size, rng: np.sum(data) + rng.laplace(size=size),
        dp.inputs.Reals(0, 1, length=3),
        "eps=0.1",
        budget=5000,
        rng=0,
        sampling=QUIET,
    )
    found.append(("hunt", "numbers", hunted.to_json()))
    return tuple(found)


def mutated(text: str, rng: np.random.Generator) -> str:
    """The text with something changed in it."""
    if rng.random() < 0.1:
        return _scratched(text, rng)
    data = json.loads(text)
    for _ in range(int(rng.integers(1, 3))):
        _change(data, rng)
    return json.dumps(data, ensure_ascii=bool(rng.random() < 0.9))


def _scratched(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(text)))
    match int(rng.integers(5)):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + chr(int(rng.integers(32, 127))) + text[at + 1 :]
        case 2:
            return text[:at] + "[" * 5000 + text[at:]
        case 3:
            return '{"type": "Pair", "first": ' + "[" * 400 + "]" * 400 + ', "second": 1}'
        case _:
            return text.replace("0", "9" * 400, 1)


def _change(data: Any, rng: np.random.Generator) -> None:
    """Change one place, drawn level by level so that shallow places come as often as deep ones."""
    node = data
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if rng.random() < 0.9:
            keys = [key for key in keys if key not in ("schema", "type")]
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        inner = node[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.85:
            node = inner
            continue
        break
    if rng.random() < 0.6:
        node[key] = _alike(inner, rng)
        return
    match int(rng.integers(4)):
        case 0:
            del node[key]
        case 1 if isinstance(node, list):
            node.insert(int(rng.integers(len(node) + 1)), inner)
        case 1:
            node[f"{key}x"] = inner
        case 2:
            other = keys[int(rng.integers(len(keys)))]
            node[key], node[other] = node[other], node[key]
        case _:
            node[key] = pick(rng, JSON)


def _alike(value: Any, rng: np.random.Generator) -> Any:
    """Another value of the same type: what only a check of ranges can refuse."""
    kinds: list[Any] = [value]
    if isinstance(value, bool):
        kinds = [not value]
    elif isinstance(value, int):
        kinds = [-1, 0, 1, value + 1, -value, 3 * value, 999, 10**6, 2**40, 2**62, 10**30]
    elif isinstance(value, float):
        kinds = [-value, 0.0, value + 1, 3 * value, 1e-300, 1e300, -1e300]
        kinds += [{"$float": text} for text in ("nan", "inf", "-inf")]
    elif isinstance(value, str):
        kinds = ["", "seq", "number", "str", "bytes", "dict", "date", "delta", "exact", "x" * 99]
    elif isinstance(value, list):
        kinds = [value[::-1], value[:-1], value[1:], value + value, value[:1], []]
    return kinds[int(rng.integers(len(kinds)))]


def case(seed: int) -> Case:
    """One result, mutated."""
    rng = np.random.default_rng([seed, 2])
    bases = written()
    what, name, text = bases[int(rng.integers(len(bases)))]
    text = mutated(text, rng)
    reader: Any = dp.Monitor if what == "monitor" else Record
    draw = bool(rng.random() < 0.02)

    def run() -> Any:
        record = reader.from_json(text)
        _use(record, MECHANISMS[name], draw)
        return record

    return Case(f"{what} of {name}: {text[:20_000]}", run, (Record, dp.Monitor))


def _use(record: Any, mechanism: Any, draw: bool) -> None:
    again = type(record).from_json(record.to_json())
    str(record), repr(record)
    if isinstance(record, dp.Monitor):
        again.update([0.5, 1.0], [2.0, 3.0])
        return
    assert again == record
    hash(record)
    if hasattr(record, "_repr_html_"):
        record._repr_html_()
    if hasattr(record, "to_csv"):
        record.to_csv()
    if draw and hasattr(record, "chart"):
        record.chart()
    if isinstance(record, (dp.Verdict, dp.Witness, dp.LowerBound)):
        verdict = dp.replay(record, mechanism, n=50, rng=1, claim="eps=1", sampling=QUIET)
        assert isinstance(verdict, dp.Verdict)
    if isinstance(record, dp.Claim):
        record.region(0.3), record.delta_at(0.5), str(record)
    if isinstance(record, dp.Spectrum):
        record(float(record.x[0])), record.epsilon(0.5)
    if isinstance(record, dp.Profile):
        record.delta(0.1), record.renyi(2.0), record.tradeoff(0.1)
