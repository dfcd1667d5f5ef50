"""Events as Python expressions of `output`, for people who check a count without this package."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dpassay._typing import FloatArray
from dpassay.outputs.events import Event, Intervals
from dpassay.outputs.keys import Layout, Part
from dpassay.outputs.named_features import NamedFeatures
from dpassay.outputs.score_models import FAR, Features, Polynomial, ScoreFunction, Steps
from dpassay.outputs.templates import INNER, NUMBER, Template, leaves_of, paths

#: Longer expressions are not written.
_LONG = 2000
_EVERYWHERE = [(-math.inf, math.inf)]

Ends = list[tuple[float, float]]


def expression(event: Event, columns: Sequence[str] = ()) -> str:
    """The event as Python reads it; empty where it cannot be written exactly.

    `columns` are the names of the cells where outputs are rows of a table.

    >>> import dpassay as dp
    >>> verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=10_000, rng=0)
    >>> expression(verdict.witness.event).startswith("output ")
    True
    """
    if event.score_function is not None:
        text = _of_feature(event, event.score_function, columns)
    elif event.layout is None or event.live:
        text = None
    else:
        text = _of_keys(event, event.layout)
    return text if text is not None and len(text) <= _LONG else ""


def knows_failures(event: Event) -> bool:
    """Whether exceptions and time-outs were outputs when an event was found."""
    parts = event.layout.parts if event.layout is not None else ()
    if event.score_function is not None and isinstance(event.score_function.features, Features):
        parts = event.score_function.features.parts
    return any(leaf[0] == "outcome" for part in parts for leaf in leaves_of(part.template))


def exceptions(event: Event) -> tuple[str, ...]:
    """The types of the exceptions that an event consists of; empty if it holds anything else."""
    if event.layout is None or event.partial or event.otherwise:
        return ()
    kinds = [event.layout.part(key).template for key in event.whole]
    raised = all(kind[:2] == ("outcome", "raised") for kind in kinds)
    return tuple(kind[2] for kind in kinds) if raised else ()


def _of_feature(event: Event, score_function: ScoreFunction, columns: Sequence[str]) -> str | None:
    """A step function of an item of a list or a cell of a row, or a polynomial of a single number."""
    match score_function.features, score_function.model:
        case Features(
            plain=True, width=1, parts=[Part(template=("number",))]
        ) as number, Polynomial() as model:
            return _line("output", _of_polynomial(event, score_function, number, model), [], [])
        case Features(plain=True) as several, Polynomial() as model:
            return _of_several(event, score_function, several, model)
    if score_function.feature is None or not isinstance(score_function.model, Steps):
        return None
    name, code = score_function.feature, ""
    if isinstance(score_function.features, NamedFeatures):
        place = re.fullmatch(r"x([0-9]+)", name)
        if name in columns:
            code = f"output[{name!r}]"
        elif place and score_function.features.features[0].family == "by_place" and not columns:
            code = f"output[{int(place[1]) - 1}]"
    if not code:
        return None
    start = score_function.model.start
    inside = np.concatenate([[False], event.holds_feature(start), [False]])
    edges = np.array([-math.inf, *start[1:], math.inf])[np.flatnonzero(np.diff(inside))]
    return _line(code, list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)), [], [])


def _of_polynomial(
    event: Event, score_function: ScoreFunction, number: Features, model: Polynomial
) -> Ends:
    """Where a polynomial of the standardised number is on the event's side of the threshold."""
    a, b = score_function.line
    terms = [
        b * float(model.weights.sum()),
        b * float(model.linear[0]),
        a + b * model.offset - event.threshold,
    ]
    roots = np.sort([root.real for root in np.roots(terms) if not root.imag])
    edges = [-math.inf, *(number.centre[0] + number.scale[0] * roots).tolist(), math.inf]
    middle = (
        [0.0] if not roots.size else [roots[0] - 1, *(roots[1:] + roots[:-1]) / 2, roots[-1] + 1]
    )
    inside = [(np.polyval(terms, z) >= 0) == event.above for z in middle]
    return [ends for ends, there in zip(itertools.pairwise(edges), inside, strict=True) if there]


def _of_several(
    event: Event, score_function: ScoreFunction, rows: Features, model: Polynomial
) -> str | None:
    """A polynomial of several numbers, computed as `Polynomial.score` does, to the last bit."""
    part = rows.parts[0]
    found = [code for code, leaf in paths(part.template) if leaf == NUMBER]
    if any(part.origins) or len(found) != rows.width or not _plain(part.template):
        return None
    numbers = ", ".join(
        f"({code} - {c!r}) / {s!r}"
        for code, c, s in zip(found, rows.centre.tolist(), rows.scale.tolist(), strict=True)
    )
    terms = [f"{w!r} * z[{k}]" for k, w in enumerate(model.linear.tolist()) if w]
    products = zip(model.weights.tolist(), model.pairs.tolist(), strict=True)
    terms += [f"{w!r} * (z[{i}] * z[{j}])" for w, (i, j) in products if w]
    total = " + ".join([repr(model.offset), *terms])
    a, b = score_function.line
    return (
        f"(z := np.clip([{numbers}], {-FAR}, {FAR})) is not None and "
        f"{a!r} + {b!r} * ({total}) {'>=' if event.above else '<='} {event.threshold!r}"
    )


def _of_keys(event: Event, layout: Layout) -> str | None:
    """Keys and intervals; where outputs in no key belong to the event, what is not outside it."""
    inside: dict[int, Ends] = dict.fromkeys(event.whole, _EVERYWHERE)
    inside |= {key: _ends(test) for key, test in event.partial}
    if event.otherwise:
        flipped = {key: _outside(inside.get(key, [])) for key in range(len(layout))}
        inside = {key: ends for key, ends in flipped.items() if ends}
    alone, found = len(layout.parts) == 1, list[str | None]()
    for index, part in enumerate(layout.parts):
        keys = [k for k in inside if int(layout.parts_of[k]) == index]
        if not keys:
            continue
        leaves, shape = list(paths(part.template)), "" if alone else _shape(layout, index)
        if (
            any(part.origins)
            or not _plain(part.template)
            or (not (alone or shape) and len(leaves) > 1)
        ):
            return None
        if part.template == NUMBER:
            told = _of_line(layout, index, {k: inside[k] for k in keys})
            kind = "isinstance(output, (int, float, np.number))"
            found.append(told if alone else f"{kind} and ({told})")
            continue
        whole = layout.exhausted(index, [k for k in keys if inside[k] == _EVERYWHERE])
        if shape and whole:
            found.append(shape)
            continue
        for key in keys:
            if inside[key] != _EVERYWHERE and len(layout.free(key)) != 1:
                return None
            numbers = zip(part.values(int(layout.codes[key])), part.atoms, strict=True)
            tests = [_of_leaf(code, leaf, numbers, inside[key]) for code, leaf in leaves]
            found.append(None if None in tests else " and ".join(filter(None, [shape, *tests])))
    if None in found:
        return None
    text = _any(filter(None, found)) or "False"
    return f"not ({text})" if event.otherwise else text


def _shape(layout: Layout, index: int) -> str:
    """The keys, or the length, that only outputs of this structure have; empty if others have them."""
    templates = [part.template for part in layout.parts]
    kinds = {template[0] for template in templates}
    if kinds not in ({"dict"}, {"seq"}):
        return ""
    keyed = kinds == {"dict"}
    shapes = [{key for key, _ in one[1]} if keyed else len(one[1]) for one in templates]
    if shapes.count(shapes[index]) > 1:
        return ""
    if not keyed:
        return f"len(output) == {shapes[index]}"
    keys = ", ".join(repr(key) for key, _ in templates[index][1])
    return f"set(output) == {{{keys}}}" if keys else "set(output) == set()"


def _plain(template: Template) -> bool:
    """Whether the expressions of its leaves compute them: not those of sets, dates or odd keys."""
    match template:
        case ("dict", entries):
            return all(name[:1] != "`" and _plain(child) for name, child in entries)
        case ("seq", items):
            return all(map(_plain, items))
    return template[0] not in INNER


def _of_leaf(
    code: str, leaf: Template, numbers: Iterator[tuple[float | None, FloatArray]], ends: Ends
) -> str | None:
    """That a part of the output is what a key says; None where it cannot be written."""
    match leaf:
        case ("number",):
            atom, atoms = next(numbers)
            if atom is not None:
                return f"{code} == {_number(atom)}"
            return _line(code, ends, atoms.tolist(), [])
        case ("str", text):
            return f"{code} == {text!r}"
        case ("none",):
            return f"{code} is None"
        case ("nan",):
            return f"{code} != {code}"
    return None


def _of_line(layout: Layout, index: int, inside: dict[int, Ends]) -> str:
    """Outputs that are one number: intervals, without some repeated values and with others."""
    part, ends, atoms = layout.parts[index], Ends(), []
    for key, own in inside.items():
        (value,) = part.values(int(layout.codes[key]))
        if value is None:
            ends = own
        else:
            atoms.append(value)
    return _line("output", ends, sorted(set(part.atoms[0].tolist()) - set(atoms)), sorted(atoms))


def _line(code: str, ends: Ends, without: Sequence[float], also: Sequence[float]) -> str:
    """A number in some intervals, but for some values; or one of some others."""

    def lies(x: float) -> bool:
        return any(low <= x < high for low, high in ends)

    text = _any(_interval(code, low, high) for low, high in ends)
    if out := [x for x in without if lies(x)]:
        text = f"({text}) and {code} not in {_listed(out)}"
    more = [x for x in also if not lies(x)]
    if len(more) == 1:
        listed = f"{code} == {_number(more[0])}"
    else:
        listed = f"{code} in {_listed(more)}" if more else ""
    return _any(filter(None, [text, listed]))


def _interval(code: str, low: float, high: float) -> str:
    """low ≤ x < high; x ≤ 0 where the number below an end is the plainer one."""
    signs = []
    for end in (low, high):
        before = math.nextafter(end, -math.inf)
        plain = math.isfinite(end) and len(repr(before)) + 3 <= len(repr(end))
        signs.append((_number(before), plain) if plain else (_number(end), plain))
    (left, after), (right, up_to) = signs
    above, below = "<" if after else "<=", "<=" if up_to else "<"
    if math.isinf(low):
        return f"{code} == {code}" if math.isinf(high) else f"{code} {below} {right}"
    if math.isinf(high):
        return f"{code} {'>' if after else '>='} {left}"
    return f"{left} {above} {code} {below} {right}"


def _listed(values: Sequence[float]) -> str:
    """Numbers as a tuple, or as a range of whole ones."""
    low, high = values[0], values[-1]
    if len(values) > 3 and high - low == len(values) - 1 and all(x.is_integer() for x in values):
        return f"range({int(low)}, {int(high) + 1})"
    return f"({', '.join(map(_number, values))}{',' * (len(values) == 1)})"


def _number(x: float) -> str:
    return str(int(x)) if x.is_integer() and abs(x) < 2**53 else repr(x)


def _any(tests: Iterable[str]) -> str:
    several = list(tests)
    return " or ".join(
        f"({one})" if " and " in one and len(several) > 1 else one for one in several
    )


def _ends(test: Intervals) -> Ends:
    return list(zip(test.lows.tolist(), test.highs.tolist(), strict=True))


def _outside(ends: Ends) -> Ends:
    """The intervals between some."""
    edges = [-math.inf, *itertools.chain(*ends), math.inf]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
