"""Events: sets of outputs, in words and in a form that somebody else can evaluate.

An `Event` takes some keys of a layout whole, tests the free numbers of others, and says what becomes
of outputs in no key; or it compares a score with a threshold. All of it is data: it serialises, and
nothing is evaluated but comparisons, sums and products. Only an event of a classifier that cannot be
written down needs the process that fitted it.

A `Partition` has a few cells, made of nested events of one score. The cell of an output is the
number of events that hold for it, hence a function of the output alone, also where the events are not
quite nested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dpassay import validation as checks
from dpassay._typing import BoolArray, FloatArray, IntArray
from dpassay.errors import InvalidInput
from dpassay.outputs import device_arrays
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.device_arrays import AnyOutputs, DeviceOutputs
from dpassay.outputs.keys import Layout
from dpassay.outputs.score_models import ScoreFunction
from dpassay.outputs.templates import NUMBER, all_digits, exact, told_apart, written_in
from dpassay.records import Record

#: Up to so many intervals are compared with one by one, where outputs are not NumPy's.
_FEW = 3
#: Up to so many atoms are compared with one by one, where outputs are not NumPy's.
_COMPARED = 64


class Scorer(Protocol):
    """Anything that ranks outputs."""

    @property
    def name(self) -> str: ...

    def score(self, outputs: Outputs) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Intervals(Record):
    """The free number of a key lies in one of the half-open intervals [low, high)."""

    lows: FloatArray
    highs: FloatArray

    def _validate(self) -> None:
        ends = np.stack([self.lows, self.highs], axis=1).ravel()  # fails unless equally long
        listed = self.lows.ndim == 1 and self.lows.size
        rising = listed and np.all(self.lows < self.highs) and np.all(np.diff(ends) >= 0)
        checks.require(rising, "lows and highs must be the ends of increasing intervals")

    def holds(self, numbers: FloatArray) -> BoolArray:
        x = numbers[:, 0]
        if self.lows.size == 1:
            return np.asarray((self.lows[0] <= x) & (x < self.highs[0]))
        place = np.searchsorted(self.lows, x, side="right") - 1
        return np.asarray((place >= 0) & (x < self.highs[np.maximum(place, 0)]))

    def count(self, x: Any) -> int:
        """How many finite numbers are inside, wherever they are: the intervals do not overlap."""
        if self.lows.size > _FEW:  # inside where an odd number of ends is not above
            ends = np.stack([self.lows, self.highs], axis=1).ravel()
            odd = int(np.isfinite(ends[0]))
            return device_arrays.count(device_arrays.places(ends[np.isfinite(ends)], x) % 2 == odd)
        # a pass over the draws for every end that is not open
        found = sum(_below(x, high) for high in self.highs.tolist())
        return found - sum(_below(x, low) for low in self.lows.tolist())


def _below(x: Any, end: float) -> int:
    """How many finite numbers are below an end, wherever they are."""
    if math.isinf(end):
        return x.shape[0] if end > 0 else 0
    return device_arrays.count(x < end)


@dataclass(frozen=True, eq=False, kw_only=True)
class Event(Record):
    """A set of outputs: keys and intervals, or where a score is on one side of a threshold."""

    words: str
    layout: Layout | None = field(default=None, repr=False)
    whole: tuple[int, ...] = field(default=(), repr=False)
    partial: tuple[tuple[int, Intervals], ...] = field(default=(), repr=False)
    #: Whether outputs in no key belong to the event.
    otherwise: bool = False
    score_function: ScoreFunction | None = field(default=None, repr=False)
    threshold: float = 0.0
    above: bool = True
    #: Only the process that made it can evaluate it; it cannot be replayed from a file.
    live: bool = False
    scorer: Scorer | None = field(default=None, repr=False, metadata={"live": True})

    def _validate(self) -> None:
        keys = [*self.whole, *(key for key, _ in self.partial)]
        checks.require(not math.isnan(self.threshold), "threshold must be a number, got nan")
        if self.layout is not None:
            known = all(0 <= key < len(self.layout) for key in keys)
            checks.require(known, "whole and partial must name keys of the layout")
            free = all(self.layout.free(key) for key, _ in self.partial)
            checks.require(free, "partial must name keys that have a free number")

    @property
    def replayable(self) -> bool:
        """Whether it can be evaluated here."""
        return self.layout is not None or self.score_function is not None or self.scorer is not None

    @property
    def of_representation(self) -> bool:
        """Whether it is about the bits of numbers instead of their values."""
        return self.score_function is not None and self.score_function.of_representation

    def holds(self, outputs: Outputs) -> BoolArray:
        """Which outputs belong to the event."""
        ranked = self.scorer or self.score_function
        if ranked is not None:
            return self._holds_score(ranked.score(outputs))
        if self.layout is None:
            raise InvalidInput(
                f'the event "{self}" needs the classifier it was found with and cannot be evaluated '
                "from its description; audit again with the seed of the verdict"
            )
        found = self.layout.sort(outputs)
        keys = found.all_keys()
        inside = np.zeros(len(self.layout) + 1, dtype=bool)
        inside[list(self.whole)] = True
        inside[-1] = self.otherwise
        result = inside[keys]
        for key, test in self.partial:
            result[keys == key] = test.holds(found.numbers(key))
        return result

    def holds_feature(self, values: FloatArray) -> BoolArray | None:
        """Which values of the single feature belong to the event; None for events of another kind."""
        if self.score_function is None or self.score_function.feature is None:
            return None
        return self._holds_score(self.score_function.score_rows(np.asarray(values)[:, None]))

    def _holds_score(self, scores: FloatArray) -> BoolArray:
        return np.asarray(scores >= self.threshold if self.above else scores <= self.threshold)

    def count(self, outputs: AnyOutputs) -> int:
        """How many outputs belong to the event."""
        if isinstance(outputs, DeviceOutputs):
            found = self._count_on_device(outputs)
            if found is not None:
                return found
            outputs = outputs.host_copy
        return int(np.count_nonzero(self.holds(outputs)))

    def _count_on_device(self, outputs: DeviceOutputs) -> int | None:
        """How many belong to it, counted where they are; None where they must be copied.

        Numbers of one column are counted there: those in some intervals, or equal to some atoms.
        """
        layout = self.layout
        if self.score_function is not None or self.scorer is not None or layout is None:
            return None
        if [part.template for part in layout.parts] != list(outputs.structures):
            return None
        (part,) = layout.parts
        if part.columns != (0,):
            return None
        x = outputs.numbers[:, 0]
        if part.origins[0]:
            x = x - part.origins[0]
        if layout.trivial(outputs):
            return len(outputs) if self.whole else sum(test.count(x) for _, test in self.partial)
        atoms = [part.values(int(code))[0] for code in layout.codes]
        if self.partial or len(atoms) > _COMPARED or None in atoms:
            return None
        hits = [device_arrays.count(x == atom) for atom in atoms]
        known = sum(hits[key] for key in self.whole)
        return known + (len(outputs) - sum(hits) if self.otherwise else 0)

    def __str__(self) -> str:
        return self.words


def of_scores(scorer: Scorer, threshold: float, above: bool) -> Event:
    """{score ≥ threshold} or {score ≤ threshold}, written down if the scorer can be."""
    score_function = getattr(scorer, "score_function", None)
    words = None if score_function is None else score_function.words(threshold, above)
    return Event(
        words=words or f"the {scorer.name} score is {'≥' if above else '≤'} {threshold:.4g}",
        score_function=score_function,
        threshold=threshold,
        above=above,
        live=score_function is None,
        scorer=scorer,
    )


#: More intervals, keys or numbers than these are counted instead of listed.
_LISTED, _NUMBERS = 4, 12


#: What is no number but may come in place of one, and how it is called.
_FAILURES = {"nan": "NaN", "inf": "∞", "-inf": "−∞", "outcome": "a failure"}


def of_keys(
    layout: Layout,
    whole: Sequence[int] = (),
    partial: Sequence[tuple[int, Intervals]] = (),
    otherwise: bool = False,
    repeated: Sequence[int] = (),
) -> Event:
    """The event of some keys, and intervals of others.

    Its words are such as a person can check: "output ≥ 3.21 or output is None". Keys of `repeated` values
    belong to it, too, in the words of the intervals that hold them.
    """
    parts = []
    for key, test in partial:
        name, part, unit = layout.words(key), layout.part(key), ""
        match part.template, part.values(int(layout.codes[key])):
            case ("date" | "duration" as kind, _), (None, 0):
                name, unit = "•", kind
        numbers = "output" if name == "•" else "•"
        text = _intervals_in_words(test, numbers, part.origins[layout.free(key)[0]], unit)
        text = text if numbers == "output" else f"output is {name} with {text}"
        but = [
            k
            for k in range(len(layout))
            if k not in (*whole, *repeated) and _repeats(layout, k, key)
        ]
        column = part.values(int(layout.codes[key])).index(None)
        values = (part.values(int(layout.codes[k]))[column] for k in but)
        inside = [k for k, x in zip(but, values, strict=True) if test.holds(np.array([[x]]))[0]]
        parts.append(f"{text} ({_excepted(layout, inside)})" if inside else text)
    if len(parts) > _LISTED:
        rest = len(parts) - _LISTED + 1
        parts[_LISTED - 1 :] = [f"one of {rest} more such kinds of output"]
    left_out = [key for key in range(len(layout)) if key not in whole]
    free = ""
    if otherwise and not partial and left_out:  # a complement can be checked, a rare kind cannot
        names, free = _listed(layout, left_out)
        words = f"output is anything but {_or(names)}"
    else:
        if whole:
            names, free = _listed(layout, whole)
            raised = all(layout.part(key).template[0] == "outcome" for key in whole)
            parts.append(f"{'the mechanism' if raised else 'output is'} {_or(names)}")
        if otherwise:
            rare = "of a kind that was rare or not seen in training"
            parts.append(f"output is {'no finite number' if _all_numbers(layout) else rare}")
        words = (_or(parts) or "no output at all") + _but_failures(layout, left_out) * bool(partial)
    return Event(
        words=words + free,
        layout=layout,
        whole=(*whole, *repeated),
        partial=tuple(partial),
        otherwise=otherwise,
    )


def _but_failures(layout: Layout, left_out: Sequence[int]) -> str:
    """That an event of numbers holds neither NaN, nor ±∞, nor failures, where such were seen."""
    kinds = {layout.part(key).template[0] for key in left_out}
    named = [name for kind, name in _FAILURES.items() if kind in kinds]
    return f" (and not {_or(named)})" if named else ""


def _all_numbers(layout: Layout) -> bool:
    """Whether the keys are those of single numbers, and every finite number has one."""
    if [part.template for part in layout.parts] != [NUMBER]:
        return False
    return all(layout.parts[0].open) and len(layout) == layout.parts[0].space


def abridged_keys(event: Event) -> list[int]:
    """The keys of the event, or those outside it, where its words count some instead of listing them."""
    layout = event.layout
    if layout is None or event.partial:
        return []
    inside = [key for key in range(len(layout)) if (key in event.whole) != event.otherwise]
    keys = _merged(layout, inside)
    runs = _runs(layout, keys)
    return [] if len(keys) <= _NUMBERS or (runs and len(runs) <= _NUMBERS) else keys


def _repeats(layout: Layout, key: int, free: int) -> bool:
    """Whether a key is one with values that repeat in place of the free numbers of another."""
    if key == free or layout.part(key) is not layout.part(free):
        return False
    values = (layout.part(k).values(int(layout.codes[k])) for k in (key, free))
    return all(b is None or a == b for a, b in zip(*values, strict=True))


def _merged(layout: Layout, keys: Sequence[int]) -> list[int]:
    """Keys without repeated values where all keys of their part are there: any number is meant."""
    parts = layout.parts_of[list(keys)]
    full = {
        k for k in set(parts.tolist()) if layout.exhausted(k, np.flatnonzero(parts == k).tolist())
    }
    return [k for k in keys if layout.codes[k] == 0 or int(layout.parts_of[k]) not in full]


def _listed(layout: Layout, inside: Sequence[int]) -> tuple[list[str], str]:
    """Some keys in words, and what • stands for in them.

    Values that repeat are keys of their own: those that are not among the keys are excepted.
    """
    keys = _merged(layout, inside)
    runs = _runs(layout, keys)
    if runs is not None and len(runs) <= _NUMBERS:
        return runs, ""
    shown = list(keys)[: _NUMBERS if len(keys) <= _NUMBERS else _LISTED - 1]
    names = [layout.words(key) for key in shown]
    if len(set(names)) < len(names):  # six digits do not tell them apart
        names = [layout.words(key, all_digits=True) for key in shown]
    free: list[int] = []
    for k, key in enumerate(shown):
        if names[k] == "•":  # repeated numbers are keys of their own
            other = layout.part(key).atoms[0].size > 0 and len(keys) == len(inside)
            names[k] = "a number that is not repeated" if other else "a number"
        if "•" in names[k] and layout.free(key):
            free.append(key)
    if len(keys) > _NUMBERS:
        names = [", ".join(names), f"one of {len(keys) - _LISTED + 1} others"]
    if not free:
        return names, ""
    others = (k for k in range(len(layout)) if k not in inside)
    but = [k for k in others if any(_repeats(layout, k, key) for key in free)]
    return names, f" (• is any number{f', {_excepted(layout, but)}' if but else ''})"


def _excepted(layout: Layout, keys: Sequence[int]) -> str:
    """Values that repeat, which are keys of their own and not in an event."""
    but = [layout.words(k) for k in keys]
    if len(but) > _LISTED:
        but = [", ".join(but[: _LISTED - 1]), f"{len(but) - _LISTED + 1} other repeated values"]
    return f"but not {_or(but)}"


def _runs(layout: Layout, keys: Sequence[int]) -> list[str] | None:
    """Numbers in order, whole ones that follow each other as a range; None for other outputs."""
    values = []
    for key in keys:
        part = layout.part(key)
        (value, *more) = part.values(int(layout.codes[key])) or (None,)
        if more or value is None or part.origins[0] or part.template[0] != "number":
            return None
        values.append(value)
    if not values:
        return []
    if not all(value.is_integer() and abs(value) < 2**53 for value in values):
        return told_apart(sorted(values))
    ordered = np.sort(np.array(values, dtype=np.int64))
    found: list[str] = []
    for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1):
        ends = f"a whole number from {run[0]} to {run[-1]}"
        found += [ends] if run.size > 2 else map(str, run.tolist())
    return found


def _or(parts: Sequence[str]) -> str:
    return " or ".join([", ".join(parts[:-1]), *parts[-1:]] if len(parts) > 1 else parts)


def _intervals_in_words(test: Intervals, name: str, origin: float, unit: str) -> str:
    """Intervals of a number, or of the whole seconds of a date or a duration."""
    shown = min(len(test.lows), _LISTED)
    edges = [*test.lows[:shown].tolist(), *test.highs[:shown].tolist()]
    before: list[
        float | None
    ] = []  # the number just below, if that is the one to name: < 5e-324 is ≤ 0
    for edge in edges:
        last = float(np.nextafter(edge, -np.inf))
        shorter = np.isfinite(edge) and len(repr(last)) + 3 <= len(repr(edge))
        before.append(last if origin == 0 and shorter and not unit else None)
    finite = [
        exact(edge if last is None else last, origin=origin)
        for edge, last in zip(edges, before, strict=True)
        if np.isfinite(edge)
    ]
    words = iter([written_in(unit, math.ceil(n)) for n in finite] if unit else all_digits(finite))
    written = ["" if np.isinf(edge) else next(words) for edge in edges]
    found = []
    for k in range(shown):
        low, high = written[k], written[shown + k]
        below = f"{name} {'<' if before[shown + k] is None else '≤'} {high}"
        if low and high:
            found.append(f"{low} {'≤' if before[k] is None else '<'} {below}")
        elif low:
            found.append(f"{name} {'≥' if before[k] is None else '>'} {low}")
        else:
            found.append(below if high else f"{name} is a number")
    if len(test.lows) > _LISTED:
        rest = len(test.lows) - _LISTED + 1
        return _or([*found[: _LISTED - 1], f"{name} in one of {rest} more intervals"])
    return _or(found)


@dataclass(frozen=True, eq=False)
class Partition(Record):
    """Cells 0 to K of K nested events, which share one layout or one score, written down once."""

    name: str
    bare: tuple[Event, ...] = field(repr=False)
    layout: Layout | None = field(default=None, repr=False)
    score_function: ScoreFunction | None = field(default=None, repr=False)
    scorer: Scorer | None = field(default=None, repr=False, metadata={"live": True})

    def _validate(self) -> None:
        checks.require(self.bare, "a partition needs an event")
        there = self.layout is not None or self.score_function is not None
        checks.require(there or self.live, "a partition needs a layout or a score")
        if self.layout is not None:
            for k in range(len(self.bare)):
                self.event(k)._validate()

    @classmethod
    def of(cls, name: str, events: Sequence[Event]) -> Partition:
        """Events of one score, the largest first."""
        bare = tuple(
            replace(event, layout=None, score_function=None, scorer=None) for event in events
        )
        first = events[0]
        return cls(name, bare, first.layout, first.score_function, first.scorer)

    def __len__(self) -> int:
        return len(self.bare) + 1

    @property
    def live(self) -> bool:
        """Whether only the process that made it can evaluate it."""
        return any(event.live for event in self.bare)

    def event(self, index: int) -> Event:
        """The event that holds cells above `index`."""
        there = self.bare[index]
        return replace(
            there, layout=self.layout, score_function=self.score_function, scorer=self.scorer
        )

    def cells(self, outputs: Outputs) -> IntArray:
        scorer = self.scorer or self.score_function
        if scorer is not None:
            scores = scorer.score(outputs)
            scores = np.where(np.isnan(scores), -np.inf, scores)  # without a score no event holds
            thresholds = np.sort([event.threshold for event in self.bare])
            return np.searchsorted(thresholds, scores, side="right")
        assert self.layout is not None
        found = self.layout.sort(outputs)
        keys = found.all_keys()
        result = self._whole[keys]
        for key, (edges, levels) in self._partial.items():
            inside = slice(None) if found.keys is None else keys == key
            result[inside] += levels[np.searchsorted(edges, found.numbers(key)[:, 0], side="right")]
        return result

    def counts(self, outputs: Outputs) -> IntArray:
        return np.bincount(self.cells(outputs), minlength=len(self))

    @cached_property
    def _whole(self) -> IntArray:
        """By key, the number of events that hold it whole; outputs in no key come last."""
        assert self.layout is not None
        found = np.zeros(len(self.layout) + 1, dtype=np.int64)
        for event in self.bare:
            found[list(event.whole)] += 1
            found[-1] += event.otherwise
        return found

    @cached_property
    def _partial(self) -> dict[int, tuple[FloatArray, IntArray]]:
        """By key, edges, and how many events hold for a number with k of them at or below it."""
        tests: dict[int, list[FloatArray]] = {}
        for event in self.bare:
            for key, test in event.partial:
                tests.setdefault(key, []).append(np.array([test.lows, test.highs]))
        found = {}
        for key, bounds in tests.items():
            lows, highs = np.concatenate(bounds, axis=1)
            edges = np.unique(np.concatenate([lows, highs]))
            steps = np.zeros(edges.size + 1, dtype=np.int64)
            np.add.at(steps, np.searchsorted(edges, lows) + 1, 1)
            np.add.at(steps, np.searchsorted(edges, highs) + 1, -1)
            inner = np.isfinite(edges)  # as all numbers are
            levels = np.cumsum(steps)[int(edges[0] == -np.inf) :][: np.count_nonzero(inner) + 1]
            found[key] = edges[inner], levels
        return found
