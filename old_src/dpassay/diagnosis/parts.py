"""Draws for a diagnosis, and parts of outputs: a coordinate, a key, the size, a named feature.

A bounded number of the draws that test is kept while they are counted. A part is a number for each output
and depends on that output alone, so that comparing it with a threshold is an event. Each comes with its
name and, where there is one, a Python expression that computes it.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs, concatenate
from dpassay.outputs.device_arrays import AnyOutputs, DeviceOutputs
from dpassay.outputs.events import Event
from dpassay.outputs.features import OF_ORDER
from dpassay.outputs.named_features import Feature, NamedFeatures
from dpassay.outputs.templates import (
    INNER,
    Template,
    children,
    duration_words,
    leaves_of,
    paths,
    show,
    shown_key,
    written_in,
)
from dpassay.rounding import number, rounded_down
from dpassay.sampling.samples import Batch, Sizes

#: The name of the part that says whether the witness event happens.
WITNESS = "the witness event"
#: How the name of a share of missing values begins.
_MISSING = "the share of missing values of "
#: Leaves that stand for a failure.
_FAILURES = {"nan", "inf", "-inf", "outcome"}
#: Leaves of a structure that are read one by one, at most.
_LEAVES = 256
#: Kinds of leaves that are read as a number.
_READ = {"number", "date", "duration"}
#: Characters of a part's name, at most.
_LONG = 200
#: Draws a side that are looked at, training or testing, at most; and numbers in them.
_DRAWS, _NUMBERS = 20_000, 1 << 20
#: With more structures than these fewer draws are looked at: each of them is read by itself.
_KINDS, _FEW = 500, 1500

Kept: TypeAlias = tuple[tuple[Outputs, Outputs], ...]


def short(text: str) -> str:
    """A text that may hold anything an output holds, cut where it is long."""
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


@dataclass(frozen=True)
class Part:
    """One number of each output; NaN where an output has none."""

    name: str
    code: str  # an expression of `output`; empty where there is none
    read: Callable[[Outputs], FloatArray]
    unit: str = ""  # "date" (seconds since 1970) or "duration" (seconds)

    def at(self, value: float) -> str:
        """A value of it, in words."""
        return written_in(self.unit, value)

    def by(self, distance: float, form: Callable[[float], str] = number) -> str:
        """A distance of two values, in words."""
        return duration_words(distance, form) if self.unit else form(distance)


@dataclass(frozen=True)
class Condition:
    """low ≤ part < high; a single value where both are the same."""

    part: Part
    low: float = -np.inf
    high: float = np.inf
    #: The expression and the words, where they are not a comparison of the part.
    code: str = ""
    said: str = ""

    def of(self, x: FloatArray) -> BoolArray:
        """Which values fulfil it."""
        if self.low == self.high:
            return np.asarray(x == self.low)
        return np.asarray((x >= self.low) & (x < self.high))

    def holds(self, outputs: Outputs) -> BoolArray:
        """Which outputs fulfil it."""
        return self.of(self.part.read(outputs))

    def _compared(self, name: str, form: Callable[[float], str], signs: Sequence[str]) -> str:
        equal, at_most, at_least = signs
        if self.low == self.high:
            return f"{name} {equal} {form(self.low)}"
        if np.isneginf(self.low):
            return f"{name} < {form(self.high)}"
        if np.isposinf(self.high):
            return f"{name} {at_least} {form(self.low)}"
        return f"{form(self.low)} {at_most} {name} < {form(self.high)}"

    @property
    def words(self) -> str:
        """As a person reads it."""
        return short(self.said or self._compared(self.part.name, self.part.at, "=≤≥"))

    @property
    def expression(self) -> str:
        """As Python reads it; empty where it cannot be written."""
        if self.code or not self.part.code:
            return self.code
        return self._compared(self.part.code, repr, ("==", "<=", ">="))


def by_structure(value: Callable[[Template], float]) -> Callable[[Outputs], FloatArray]:
    """A number that the structure of an output decides."""

    def read(outputs: Outputs) -> FloatArray:
        table = np.array([value(one) for one in outputs.structures], dtype=float)
        return np.full(len(outputs), table[0]) if outputs.codes is None else table[outputs.codes]

    return read


@lru_cache(maxsize=1 << 14)
def fails(template: Template) -> bool:
    """Whether it holds NaN, ±∞, or stands for an exception or a time-out."""
    return any(leaf[0] in _FAILURES for leaf in leaves_of(template))


@lru_cache(maxsize=1 << 14)
def size(template: Template) -> int:
    """How many values it has."""
    return sum(map(size, children(template))) if template[0] in INNER else 1


@lru_cache(maxsize=1 << 14)
def labels(template: Template) -> frozenset[tuple[str, str]]:
    """Its keys, and its values that are no numbers: each in words, and as an expression."""
    return frozenset(_labels(template, "output") if size(template) <= _LEAVES else ())


def _labels(template: Template, code: str) -> Iterator[tuple[str, str]]:
    name = "the output" if code == "output" else code
    match template[0]:
        case "number":
            return
        case "dict":
            for key, child in template[1]:
                shown = shown_key(key)
                yield f"{name} has the key {shown}", f"{shown} in {code}"
                yield from _labels(child, f"{code}[{shown}]")
        case "seq" | "set" | "object":
            held = code if code == "output" else f"list({code})"  # which may be a column of pandas
            for child in set(children(template)):
                if child[0] in ("str", "none"):
                    yield f"{name} has the value {show(child)}", f"{show(child)} in {held}"
        case kind:
            yield _is(name, template), f"{code} == {show(template)}" * (kind != "outcome")


def _is(name: str, template: Template) -> str:
    """That a part of an output is this one, as a person reads it."""
    if template[0] == "outcome":
        return f"the mechanism {show(template)}"
    return f"{name} is {'the empty text' if template == ('str', '') else show(template)}"


@lru_cache(maxsize=1 << 14)
def cells(template: Template) -> dict[str, tuple[int, int, int, int]]:
    """How many values are under each key of a table or a dictionary; missing, texts, and numbers of them.

    Missing are None, and NaN in a table.
    """
    table = template[0] == "seq"
    rows = template[1] if table else (template,)
    if not all(row[0] == "dict" for row in rows):
        return {}
    found: dict[str, list[str]] = {}
    for key, child in (entry for row in rows for entry in row[1]):
        column = child[0] == "seq"
        values = [cell[0] for cell in (child[1] if column else (child,))]
        lost = [kind == "none" or (kind == "nan" and (table or column)) for kind in values]
        named = ["none" if gone else kind for kind, gone in zip(values, lost, strict=True)]
        found.setdefault(shown_key(key), []).extend(named)
    return {
        k: (len(v), v.count("none"), v.count("str"), v.count("number")) for k, v in found.items()
    }


def missing(key: str, texts: bool) -> Part:
    """The share of values that are missing under a key; `texts`: a text such as * is missing too."""

    def share(one: Template) -> float:
        many, lost, words, _ = cells(one).get(key, (0, 0, 0, 0))
        return (lost + texts * words) / max(many, 1) if key in cells(one) else math.nan

    return Part(f"{_MISSING}{key}", "", by_structure(share))


def in_words(one: Condition) -> Condition:
    """A threshold of such a share, as a person reads it."""
    of = one.part.name.removeprefix(_MISSING)
    some = f"at least {rounded_down(100 * one.low)}% of the values of {of} are missing"
    return replace(one, said=some if one.low < 1 else f"every value of {of} is missing")


SIZE = Part("the number of values in the output", "", by_structure(size))
_FAILING = Part("failures", "", by_structure(fails))


def failing(example: Template) -> Condition:
    """That an output holds NaN or ±∞, or that there is none; named by an example."""
    leaf = next(one for one in leaves_of(example) if fails(one))
    if leaf[0] == "outcome":
        return Condition(_FAILING, 1, 1, "", _is("", leaf))
    code = "not np.all(np.isfinite(output))"
    return Condition(_FAILING, 1, 1, code, f"the output holds {show(leaf)}")


def equal(template: Template) -> Condition:
    """That an output has this structure; for outputs without numbers, that it is this one."""
    part = Part("the output", "", by_structure(lambda one: float(one == template)))
    text = show(template)
    words = template[0] in ("seq", "str") and all(leaf[0] == "str" for leaf in leaves_of(template))
    return Condition(part, 1, 1, f"output == {text}" * words, _is("the output", template))


def structure_codes(outputs: Outputs) -> AnyArray:
    """The structure of each output, as an index into `outputs.structures`."""
    return np.zeros(len(outputs), dtype=int) if outputs.codes is None else outputs.codes


def structures(p: Outputs, q: Outputs) -> tuple[list[Template], IntArray]:
    """The structures that occur, and how often on each side."""
    sides = (structure_codes(side) for side in (p, q))
    counts = np.array([np.bincount(codes, minlength=len(p.structures)) for codes in sides])
    seen = np.flatnonzero(counts.sum(axis=0))
    return [p.structures[k] for k in seen], counts[:, seen]


def sorted_difference(kinds: Sequence[Template], difference: FloatArray) -> float:
    """How far two distributions over lists are apart once the lists are sorted; ∞ for no lists."""
    if any(one[0] != "seq" for one in kinds):
        return np.inf
    total: Counter[Template] = Counter()
    for one, by in zip(kinds, difference, strict=True):
        total[tuple(sorted(leaves_of(one)))] += by
    return float(np.abs(list(total.values())).sum())


def labelled(label: tuple[str, str]) -> Condition:
    """That an output has a key or a value that is no number."""
    words, code = label
    part = Part(words, code, by_structure(lambda one: float(label in labels(one))))
    return Condition(part, 1, 1, code, words)


def witnessed(event: Event) -> Condition:
    """That the event of the witness happens."""
    part = Part(WITNESS, "", lambda outputs: event.holds(outputs).astype(float))
    return Condition(part, 1, 1, "", "the witness event happens")


def coincide(events: Sequence[Condition], p: Outputs, q: Outputs) -> bool:
    """Whether several events happen in the same outputs."""
    held = np.array([np.concatenate([one.holds(p), one.holds(q)]) for one in events])
    return len(held) > 1 and bool(held.all(axis=0).sum() > 0.9 * held.sum(axis=1).min())


def in_bits(event: Event) -> Condition:
    """That an event of the floating-point representation happens, which is not the witness."""
    part = Part("the bits", "", lambda outputs: event.holds(outputs).astype(float))
    return Condition(part, 1, 1, "", "their score is positive")


def featured(feature: Feature) -> Part:
    """The value of a named feature."""
    chosen = NamedFeatures.of((feature,))
    return Part(feature.name, "", lambda outputs: chosen.values(outputs)[:, 0], feature.unit)


def of_order(features: Sequence[Feature], event: Event | None) -> set[str]:
    """The names of features that the order of values decides, and the witness if it is of one."""
    named = {one.name for one in features if one.family in OF_ORDER}
    score = None if event is None else event.score_function
    if score is not None and isinstance(score.features, NamedFeatures):
        own = {one.family for one in score.features.features}
        named |= {WITNESS} if own <= {*OF_ORDER} else set()
    return named


def coordinates(template: Template, near: Outputs) -> list[Part]:
    """The numbers and dates of a structure, in their order, in all outputs that have one at that place.

    Numbers that no double holds are read as distances from one that is near.
    """

    def part(column: int, path: str, kind: str) -> Part:
        unit = "" if kind == "number" else kind
        origin = 0.0 if near.rest is None or unit else float(near.numbers[0, column])

        known: weakref.WeakKeyDictionary[Outputs, FloatArray] = weakref.WeakKeyDictionary()

        def read(outputs: Outputs) -> FloatArray:
            if outputs in known:
                return known[outputs]
            places = np.array([_place(one, path, kind) for one in outputs.structures])
            at, found = places[outputs.all_codes], np.full(len(outputs), np.nan)
            for place in set(places.tolist()) - {-1}:
                own = at == place
                found[own] = outputs.value_of(place, origin)[own]
                if unit:
                    found[own] += outputs.value_of(place + 1)[own] / 1e9
            known[outputs] = found
            return found

        name, code = "the output" if path == "output" else path, "" if unit else path
        if origin:
            name, code = f"{name} − {int(origin)}", f"{path} - {int(origin)}"
        return Part(name, code, read, unit)

    named = enumerate(paths(template))
    return [part(column, path, leaf[0]) for column, (path, leaf) in named if leaf[0] in _READ]


@lru_cache(maxsize=1 << 14)
def _place(template: Template, path: str, kind: str) -> int:
    """Where an output of this structure holds the number or the date of a path; −1 for nowhere."""
    found = (k for k, (code, leaf) in enumerate(paths(template)) if (code, leaf[0]) == (path, kind))
    return next(found, -1)


def combined(a: Part, b: Part, positive: bool) -> Part:
    """a − b, or a + b."""

    def read(outputs: Outputs) -> FloatArray:
        return a.read(outputs) - b.read(outputs) if positive else a.read(outputs) + b.read(outputs)

    sign, word = ("-", "−") if positive else ("+", "+")
    code = f"{a.code} {sign} {b.code}" if a.code and b.code else ""
    return Part(f"{a.name} {word} {b.name}", code, read, "duration" if a.unit and positive else "")


# --- draws


@dataclass(frozen=True)
class Keeping:
    """What is made of a block of draws, and a share of the block itself."""

    use: Callable[[Any, Any], Any]
    share: float

    @classmethod
    def of(cls, use: Callable[[Any, Any], Any], sizes: Sizes) -> Keeping:
        """Keep as many of `sizes` draws as a diagnosis looks at."""
        return cls(use, min(1.0, _DRAWS / max(sizes)))

    @property
    def on_device(self) -> bool:
        """Whether draws may stay where they are."""
        return bool(getattr(self.use, "on_device", False))

    def __call__(self, p: AnyOutputs, q: AnyOutputs) -> tuple[Any, Kept]:
        first = []
        for side in (p, q):
            most = max(_NUMBERS // max(side.numbers.shape[1], 1), 1)
            k = min(math.ceil(self.share * len(side)), most)
            first.append(side.first(k) if isinstance(side, DeviceOutputs) else side[:k].copy())
        return self.use(p, q), ((first[0], first[1]),)


def joined(kept: Kept) -> Batch:
    """All draws that were kept, as far as they are looked at."""
    return some(*(concatenate([block[side] for block in kept]) for side in (0, 1)))


def some(p: Outputs, q: Outputs) -> Batch:
    """As many draws as are looked at, over one table of the structures that occur in them."""
    most = min(_DRAWS, max(_NUMBERS // max(p.numbers.shape[1], 1), 200))
    if len(p.structures) + len(q.structures) > _KINDS:
        most = min(most, _FEW)
    first = (side if len(side) <= most else side[:most] for side in (p, q))
    return Batch.of(*map(_used, first))


def _used(side: Outputs) -> Outputs:
    """Without structures that do not occur."""
    if side.codes is None:
        return side
    seen, codes = np.unique(side.codes, return_inverse=True)
    kinds = tuple(side.structures[k] for k in seen)
    return Outputs(side.numbers, kinds, codes.astype(np.int32), side.rest, side.containers)
