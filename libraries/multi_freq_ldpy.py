"""Multi-Freq-LDPy: what a client sends for a value, or for a tuple of values; any two are neighbours.

Of a report with the seed of a hash function it is audited which values have that hash, which is what the
aggregator reads off it. Tuples differ in all attributes unless the name of the case says otherwise.
The library needs xxhash before version 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import xxhash

from dpassay.blackbox.inputs import Category, Table
from libraries.cases import Case, both, hunted
from libraries.multi_freq_ldpy_findings import FINDINGS as FINDINGS

DISTRIBUTION = "multi-freq-ldpy"
_SAID = ":param epsilon: privacy guarantee (docstring of the function)"
_SAID_ONCE = ":param eps_1: lower bound of privacy guarantee (a single report) (docstring)"
_SAID_EVER = ":param eps_perm: upper bound of privacy guarantee (infinity reports) (docstring)"
_EXACT = "finitely many reports, whose probabilities keep the claim by the formula of the protocol"
_SIZES = [3, 3, 3]  # of the domains of a tuple

Call = Callable[[Any], Any]


def _client(place: str) -> Any:
    """A function by its module and the beginning of its name, such as `long_freq_est.L_GRR`."""
    folder, name = place.split(".")
    module = {"SPL": "SPL_solution", "SMP": "SMP_solution", "RSpFD": "RSpFD_solution"}.get(
        name.split("_")[0], name
    )
    if folder == "long_mdim_freq_est":
        module = f"L_{name.split('_')[0]}_Solution"
    return getattr(import_module(f"multi_freq_ldpy.{folder}.{module}"), f"{name}_Client")


def _given(client: Any, *options: Any) -> Call:
    return lambda value: client(value, *options)


def _support(report: Any, size: int, hashes: int) -> list[bool]:
    sent, seed = report
    found = (xxhash.xxh32(str(one), seed=seed).intdigest() for one in range(size))
    return [one % hashes == sent for one in found]


def _hashes(eps: float, optimal: bool) -> int:
    return round(math.exp(eps)) + 1 if optimal else 2


def _case(name: str, place: str, call: Call, pair: Any, eps: float, **more: Any) -> Case:
    more = {"said": _SAID, "relation": "replace", "n": 8_000, "sound": _EXACT, **more}
    more = {"group": "local: one value", "claim": f"eps={eps!r}", **more}
    return Case(name, f"multi_freq_ldpy.{place}_Client", call, pair, **more)


def cases() -> Iterator[Case]:
    """All cases."""
    for eps, k in ((0.5, 4), (1.0, 8), (3.0, 32)):
        yield from _single(eps, k)
    for eps in (1.0, 2.0):
        yield from _tuples(eps)
        yield from _fake(eps)
    for perm, once in ((2.0, 1.0), (4.0, 2.0)):
        yield from _longitudinal(perm, once)


def _single(eps: float, k: int) -> Iterator[Case]:
    """Frequency oracles for one value."""
    folder = "pure_frequency_oracles"

    def call(name: str, *options: Any) -> Call:
        return _given(_client(f"{folder}.{name}"), k, eps, *options)

    def hashed(optimal: bool) -> Call:
        sent = call("LH", optimal)
        return lambda value: _support(sent(value), k, _hashes(eps, optimal))

    subset = call("SS")
    table: tuple[tuple[str, str, Call, str], ...] = (
        ("GRR", "GRR", call("GRR"), _EXACT),
        ("SUE", "UE", call("UE", False), _EXACT),
        ("OUE", "UE", call("UE", True), _EXACT),
        ("ADP", "ADP", call("ADP"), _EXACT),
        ("BLH", "LH", hashed(False), _EXACT),
        ("OLH", "LH", hashed(True), _EXACT),
        ("SS as it is sent", "SS", lambda value: subset(value).tolist(), ""),
        ("SS, sorted", "SS", lambda value: sorted(subset(value).tolist()), _EXACT),
    )
    where = f"ε = {eps:g}, k = {k}"
    for name, place, made, sound in table:
        case = _case(f"{name}, {where}", f"{folder}.{place}", made, (0, 1), eps, sound=sound)
        yield case
        if k == 8:
            yield hunted(case, Category(range(k)))
    for case in both(_case(f"HE, {where}", f"{folder}.HE", call("HE"), (0, 1), eps), ""):
        yield case
        if k == 8:
            yield hunted(case, Category(range(k)))


def _row(rows: Any) -> tuple[int, ...]:
    return tuple(rows[0].values())


def _space(sizes: list[int]) -> Table:
    """One user's tuple, for a hunt."""
    columns = {f"attribute {j}": Category(range(size)) for j, size in enumerate(sizes)}
    return Table(columns, rows=1, convert=_row)


def _tuples(eps: float) -> Iterator[Case]:
    """The budget split over the attributes, and one attribute sampled."""
    table: tuple[tuple[str, str, tuple[bool, ...]], ...] = (
        ("GRR", "GRR", ()),
        ("SUE", "UE", (False,)),
        ("OUE", "UE", (True,)),
        ("ADP", "ADP", ()),
        ("OLH", "LH", (True,)),
        ("SS", "SS", ()),
    )
    for way, (label, name, options) in itertools.product(("SPL", "SMP"), table):
        case = _case(
            f"{way} of {label}, ε = {eps:g}",
            f"mdim_freq_est.{way}_{name}",
            _reported(way, name, options, eps),
            ((0, 0, 0), (2, 2, 2)),
            eps,
            group="local: tuple",
        )
        yield case
        if eps == 1.0:
            yield hunted(case, _space(_SIZES))


def _reported(way: str, name: str, options: tuple[bool, ...], eps: float) -> Call:
    """The values that are sent, and the attribute that was sampled; subsets are sorted."""
    client, d = _client(f"mdim_freq_est.{way}_{name}"), len(_SIZES)
    split = way == "SPL"

    def sent(row: Any) -> Any:
        report = client(row, _SIZES, d, eps, *options)
        parts = report if split else [report[1]]
        if name == "LH":
            hashes = _hashes(eps / d if split else eps, True)
            parts = [_support(part, _SIZES[0], hashes) for part in parts]
        if name == "SS":
            parts = [np.sort(part).tolist() for part in parts]
        return [*parts, -1 if split else int(report[0])]

    return sent


def _fake(eps: float) -> Iterator[Case]:
    """One attribute sampled, and random values in place of the others."""
    table: tuple[tuple[str, str, tuple[bool, ...], bool], ...] = (
        ("GRR", "GRR", (), True),
        ("SUE-z", "UE_zero", (False,), True),
        ("OUE-z", "UE_zero", (True,), True),
        ("SUE-r", "UE_rnd", (False,), False),
        ("OUE-r", "UE_rnd", (True,), False),
        ("ADP", "ADP", (), True),
    )
    one = "equal domains: one attribute changes a probability by a factor of e^ε at most"
    for label, name, options, amplified in table:
        client = _client(f"mdim_freq_est.RSpFD_{name}")

        sent = _faked(client, options, eps, _SIZES)

        place = f"mdim_freq_est.RSpFD_{name}"
        full, single = ((0, 0, 0), (2, 2, 2)), ((0, 0, 0), (2, 0, 0))
        more: dict[str, Any] = {
            "group": "local: tuple",
            "sound": "",
            "n": 40_000 if eps > 1 else 20_000,
        }
        case = _case(f"RS+FD of {label}, ε = {eps:g}", place, sent, full, eps, **more)
        yield case
        if eps == 1.0 and label in ("GRR", "SUE-z", "SUE-r", "ADP"):
            yield hunted(case, _space(_SIZES), n=30_000)
        more["sound"] = one if amplified else ""
        name_of = f"RS+FD of {label}, one attribute changed, ε = {eps:g}"
        yield _case(name_of, place, sent, single, eps, **more)
        if label == "GRR":
            yield _case(
                f"RS+FD of GRR, one of unequal attributes changed, ε = {eps:g}",
                place,
                _faked(client, options, eps, [20, 2, 2]),
                single,
                eps,
                trap="domains of 20, 2 and 2 values",
                **{**more, "sound": ""},
            )


def _faked(client: Any, options: tuple[bool, ...], eps: float, sizes: list[int]) -> Call:
    return lambda row: client(row, sizes, len(sizes), eps, *options)


def _often(call: Call, size: int, reports: int) -> Call:
    """How often each value was reported, or each bit was 1."""

    def counts(value: int) -> Any:
        drawn = np.array([call(value) for _ in range(reports)])
        return np.bincount(drawn, minlength=size) if drawn.ndim == 1 else drawn.sum(axis=0)

    return counts


def _longitudinal(perm: float, once: float) -> Iterator[Case]:
    """A permanent answer and a report of it; then eight reports; then tuples of two."""
    k, reports = 4, 8
    more: dict[str, Any] = {"said": _SAID_ONCE, "group": "local: longitudinal"}
    where = f"ε∞ = {perm:g}, ε₁ = {once:g}"
    names = ("L_GRR", "L_SUE", "L_OUE", "L_OSUE", "L_SOUE", "L_ADP")
    for name in names:
        client, label = _client(f"long_freq_est.{name}"), name.replace("_", "-")

        sent = _given(client, k, perm, once)
        place = f"long_freq_est.{name}"
        single = _case(f"{label}, {where}", place, sent, (0, 1), once, **more)
        yield single
        if perm == 2.0:
            yield hunted(single, Category(range(k)))
        ever = _case(
            f"{label}, {reports} reports, {where}",
            place,
            _often(sent, k, reports),
            (0, 1),
            perm,
            **{**more, "said": _SAID_EVER, "sound": ""},
        )
        yield ever
        if perm == 2.0:
            yield hunted(ever, Category(range(k)))
        for way in ("SPL", "SMP"):
            several = _client(f"long_mdim_freq_est.{way}_{name}")
            case = _case(
                f"{way} of {label}, {where}",
                f"long_mdim_freq_est.{way}_{name}",
                _given(several, [3, 3], 2, perm, once),
                ((0, 0), (2, 2)),
                once,
                **more,
            )
            yield case
            if perm == 2.0:
                yield hunted(case, _space([3, 3]))
    hashed = _client("long_freq_est.L_LH")
    case = _case(
        f"L-BLH, {where}",
        "long_freq_est.L_LH",
        lambda value: _support(hashed(value, k, perm, once, False), k, 2),
        (0, 1),
        once,
        **more,
    )
    yield case
    if perm == 2.0:
        yield hunted(case, Category(range(k)))
    flip = _client("long_freq_est.dBitFlipPM")
    for bits in (1, 4):
        case = _case(
            f"dBitFlipPM, {bits} bits, ε∞ = {perm:g}",
            "long_freq_est.dBitFlipPM",
            _given(flip, 8, 4, bits, perm),
            (0, 7),
            perm,
            **{**more, "said": ":param eps_perm: upper bound of privacy guarantee (docstring)"},
        )
        yield case
        if perm == 2.0:
            yield hunted(case, Category(range(8)))
