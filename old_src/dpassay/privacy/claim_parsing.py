"""Claims from text, for the command line and configuration files; and from privacy accountants.

An accountant claims the whole curve it holds, not one point of it. No accounting library is imported: an
accountant is recognised by its attributes.

    orders and rdp, and arrays of them    dp-accounting's RdpAccountant           Rényi DP at those orders
    get_delta, get_delta_for_epsilon      its PLDAccountant, its distributions    δ(ε) at many ε
    get_epsilon                           Opacus's accountants, and others        ε(δ) at many δ

Every point is a valid claim by itself, so fewer points make a weaker claim, never a stronger one.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from dpassay import validation as checks
from dpassay.errors import DpassayError, InvalidInput
from dpassay.privacy.claims import (
    ApproximateDP,
    Claim,
    GaussianDP,
    PureDP,
    RenyiCurveDP,
    RenyiDP,
    TradeoffDP,
    ZeroConcentratedDP,
)
from dpassay.privacy.curves import curve_of_pairs
from dpassay.privacy.own_claims import check_own

_FORMS = (
    '"eps=1", "eps=1, delta=1e-5", "mu=1", "rho=0.5", "rho=0.5, delta=1e-6", "renyi(order=5)=0.2" or '
    '"renyi(2)=0.1, renyi(4)=0.3"'
)
#: The longest text of a claim, and of a number in it: a double has 17 digits.
_LONGEST, _LONGEST_NUMBER = 10_000, 100
_LONG_NUMBER = re.compile(rf"[\d.]{{{_LONGEST_NUMBER + 1},}}")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_ORDER = rf"(?:r[ée]nyi|rdp)\s*\(\s*(?:(?:order|alpha|lambda|λ|α)\s*=\s*)?({_NUMBER})\s*\)"
_RENYI = re.compile(rf"{_ORDER}\s*(?:=|<=|≤)\s*({_NUMBER})", re.IGNORECASE)
#: What a claim is printed as: "1-DP", "(1, 1e-05)-DP", "(2, 0.1)-Rényi DP"; and the names of the numbers.
_PRINTED_NAMES = {"dp": ("epsilon", "delta"), "zcdp": ("rho", "delta"), "gdp": ("mu",)}
_PRINTED = re.compile(
    rf"(?:({_NUMBER})|\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\))"
    r"(?:\s*-\s*(DP|GDP|zCDP|R[ée]nyi\s+DP))?",
    re.IGNORECASE,
)
_HEADLINE = re.compile(r"(.*\S)\s+in\s+(δ|delta|ε|eps|epsilon)", re.IGNORECASE)
_TERM = re.compile(rf"(\w+)(?:\s*(?:=|<=|≤|:)\s*|\s+)({_NUMBER})")
#: Between terms: a comma, "and", or the space before the next name.
_COMMA = r"\s*[,;]\s*"
_BETWEEN = re.compile(rf"{_COMMA}|\s+and\s+|\s+(?=[^\W\d]\w*\s*[=<≤:\s])")
#: Powers of ten as people write them: 10^-5, 2×10^(-5), 10⁻⁵.
_POWER = re.compile(
    r"(?:(\d+(?:\.\d*)?|\.\d+)\s*[×x*·]\s*)?(?<![\d.])10\s*"
    r"(?:(?:\^|\*\*)\s*(?:\(([-+−]?\d+)\)|([-+−]?\d+))|([⁻⁺]?[⁰¹²³⁴-⁹]+))"
)
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹−", "-+0123456789-")
_SPELLINGS = {
    "epsilon": ("eps", "epsilon", "ε"),
    "delta": ("delta", "δ"),
    "rho": ("rho", "ρ", "zcdp"),
    "mu": ("mu", "μ", "gdp"),
}
_NAMES = {spelled: name for name, spellings in _SPELLINGS.items() for spelled in spellings}


#: Called when an accountant is asked: the number of points, and about how many there are in all.
Asked: TypeAlias = Callable[[int, int], None]


def _no_progress(points: int, total: int) -> None:
    pass


def claim(given: Any) -> Claim:
    """A privacy claim from text, also as claims are printed, a tuple (ε, δ), or a privacy accountant.

    The JSON file of an accountant is named by its path; a dictionary of what it holds is a claim too.

    >>> claim("eps=1, delta=1e-5")
    ApproximateDP(epsilon=1.0, delta=1e-05)
    >>> claim("renyi(order=5)=0.2")
    RenyiDP(order=5.0, epsilon=0.2)
    >>> claim("rho=0.5"), claim("mu=1"), claim("eps=0.1")
    (ZeroConcentratedDP(rho=0.5), GaussianDP(mu=1.0), PureDP(epsilon=0.1))
    >>> claim("(0.5, 1e-06)-zCDP")
    ZeroConcentratedDP(rho=0.5, delta=1e-06)

    " in delta" after an (ε, δ) claim asks for lower bounds on δ, with ε held fixed.

    >>> claim("eps=1, delta=1e-5 in delta")
    ApproximateDP(epsilon=1.0, delta=1e-05, headline='delta')

    An accountant claims the whole curve it holds, which says more than its ε at one δ: f-DP for what
    gives δ at an ε or ε at a δ (dp-accounting's PLDAccountant and privacy loss distributions, Opacus's
    accountants), Rényi DP at all its orders for what holds those (dp-accounting's RdpAccountant).

    >>> class Accountant:
    ...     def get_epsilon(self, delta):  # of 1-DP
    ...         return 1.0
    >>> round(claim(Accountant()).delta_at(0.5), 3)
    0.288
    """
    return read_claim(given, _no_progress)


def read_claim(given: Any, asked: Asked) -> Claim:
    """The same; an accountant's answers are counted."""
    if isinstance(given, Claim):
        if not type(given).__module__.startswith("dpassay."):
            check_own(given)
        return given
    if isinstance(given, type):
        raise InvalidInput(
            f"{given.__name__} is a class; a claim is one of its objects, such as dp.PureDP(1.0), or an "
            "accountant that has taken its steps"
        )
    if isinstance(given, tuple) and not several(given):
        if all(isinstance(one, Real) for one in given) and given[1] >= 1 > given[0]:
            raise InvalidInput(
                f"delta must be a number below 1, got {given[1]}; a tuple is (ε, δ), in this order"
            )
        return ApproximateDP(*given)
    if isinstance(given, Mapping):
        return _of_entries("the claim", given)
    if isinstance(given, Path) or (isinstance(given, str) and given.lower().endswith(".json")):
        return claim_of_file(given)
    if not isinstance(given, str):
        if (stated := from_accountant(given, asked)) is not None:
            return stated
        if isinstance(given, (int, float, np.number)) and not isinstance(given, bool):
            epsilon = checks.shown(given)
            raise InvalidInput(
                f'a number alone is no claim: write "eps={epsilon}", or "eps={epsilon}, delta=1e-5" for '
                "(ε, δ)-DP"
            )
        if isinstance(given, FunctionType):
            raise InvalidInput(
                "a claim cannot be a function; write dp.TradeoffDP(f) for a trade-off function, or "
                "dp.TradeoffDP.from_delta(f) for δ as a function of ε"
            )
        raise InvalidInput(
            f"a claim must be dp.PureDP(1.0) or the like, text such as {_FORMS}, a tuple (ε, δ), a "
            f"privacy accountant, or a JSON file with one point or a list of points, got "
            f"{checks.shown(given)}"
        )
    if not given.strip():
        raise InvalidInput(f"a claim must be text such as {_FORMS}, got {checks.shown(given)}")
    text = _one_line("a claim", given)
    if found := _HEADLINE.fullmatch(text):
        plain = _read(found[1])
        if not isinstance(plain, ApproximateDP):
            raise InvalidInput(
                f"only a claim with eps and delta can be bounded in one of them, got {text!r}; "
                f"write {found[1].strip()!r}"
            )
        return replace(plain, headline=_NAMES[found[2].lower()])
    return _read(text)


def several(given: Any) -> bool:
    """Whether these are several claims: a list, or a tuple that is not (ε, δ)."""
    point = isinstance(given, tuple) and len(given) == 2
    point = point and all(isinstance(one, Real) for one in given)
    return isinstance(given, (list, tuple)) and not point


#: The same for callers that have a variable named claim.
as_claim = claim

_PARAMETERS = (
    '"eps", "eps, delta=1e-5", "delta, eps=1", "mu", "rho", "rho, delta=1e-6" or "renyi(order=2)"'
)


def parameter(text: str) -> Claim:
    """The parameter that a lower bound is asked for, as the claim that it is 0.

    >>> parameter("eps, delta=1e-5")
    ApproximateDP(epsilon=0.0, delta=1e-05)
    >>> parameter("delta, eps=1").symbol, parameter("renyi(2)").meaning
    ('δ', 'Rényi ε(2)')
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"of must be text such as {_PARAMETERS}, got {checks.shown(text)}")
    text = _one_line("of", text)
    if found := re.fullmatch(_ORDER, text, re.IGNORECASE):
        return RenyiDP(_number(found[1]), 0.0)
    first, *held = re.split(_COMMA, text)
    asked, terms = _NAMES.get(first.lower()), [_TERM.fullmatch(part) for part in held]
    values = {_NAMES.get(term[1].lower(), ""): _number(term[2]) for term in terms if term}
    if len(held) == len(values):
        match asked, sorted(values):
            case ("epsilon" | "rho", [] | ["delta"]) | ("mu", []):
                return _claim_with(text, {str(asked): 0.0, **values})
            case "delta", ["epsilon"]:
                return ApproximateDP(values["epsilon"], 0.0, headline="delta")
    raise InvalidInput(f"cannot tell what to bound from {text!r}; give {_PARAMETERS}")


def _one_line(name: str, text: str) -> str:
    """Text of a sensible length, with single spaces."""
    text = " ".join(text.split())
    if len(text) > _LONGEST:
        raise InvalidInput(
            f"{name} must be text of at most {_LONGEST:,} characters, got {len(text):,}: "
            f"{checks.shown(text)}"
        )
    if found := _LONG_NUMBER.search(text):
        raise InvalidInput(
            f"a number must have at most {_LONGEST_NUMBER} digits, got {len(found[0])}: "
            f"{checks.shown(text)}; write powers of ten as 1e300"
        )
    return text


def _number(text: str) -> float:
    """The number; one that a double cannot hold is refused, not rounded to 0."""
    value = float(text)
    if math.isinf(value) or (value == 0 and float(re.split("[eE]", text)[0]) != 0):
        raise InvalidInput(
            f"{text} is too {'small' if value == 0 else 'large'} for a number of 64 bits; those go from "
            "5e-324 to 1.8e308"
        )
    return value


def _read(text: str) -> Claim:
    if re.match(r"f\s*-\s*DP\b", text, re.IGNORECASE):
        raise InvalidInput(
            f"a trade-off curve has no text, got {text!r}; make the claim with "
            "dp.TradeoffDP(points), dp.TradeoffDP(function of alpha) or "
            "dp.TradeoffDP.from_delta(function of epsilon)"
        )
    if re.search(r"R[ée]nyi\s+DP\s+at\b", text, re.IGNORECASE):
        raise InvalidInput(
            f"the values are missing in {text!r}; write renyi(2)=0.1, renyi(4)=0.3 or make the "
            "claim with dp.RenyiCurveDP(orders, epsilons)"
        )
    text = _POWER.sub(lambda m: f"{m[1] or 1}e{(m[2] or m[3] or m[4]).translate(_RAISED)}", text)
    found = _PRINTED.fullmatch(text)
    if found and (found[2] or found[4]):  # else a bare number
        kind, numbers = found[4] or "DP", [_number(found[k]) for k in (1, 2, 3) if found[k]]
        names = _PRINTED_NAMES.get(kind.lower(), ("order", "epsilon"))
        if len(numbers) > len(names) or (names[0] == "order" and len(numbers) == 1):
            needs = "one parameter" if names == ("mu",) else "an order and an epsilon"
            raise InvalidInput(f"{kind} has {needs}, got {text!r}")
        return _claim_with(text, dict(zip(names, numbers, strict=False)))
    if found := re.fullmatch(r"\(\s*([^()]*=[^()]*?)\s*\)", text):
        text = found[1]
    parts = re.split(_COMMA, text) if "(" in text else _BETWEEN.split(text)
    renyi = [_RENYI.fullmatch(part) for part in parts]
    if any(renyi):
        pairs = [(_number(one[1]), _number(one[2])) for one in renyi if one]
        if len(pairs) < len(parts):
            raise InvalidInput(
                f"{parts[renyi.index(None)]!r} does not go with a Rényi claim in {text!r}; "
                f"{_comma_hint(text)}a claim is {_FORMS}"
            )
        orders, epsilons = zip(*pairs, strict=True)
        return RenyiDP(*pairs[0]) if len(pairs) == 1 else RenyiCurveDP(orders, epsilons)
    values: dict[str, float] = {}
    for part in parts:
        term = _TERM.fullmatch(part)
        if term is None or (name := _NAMES.get(term[1].lower())) is None:
            bare = re.fullmatch(_NUMBER, part) and len(parts) == 1
            hint = f"write eps={part}; " if bare else _comma_hint(text)
            raise InvalidInput(
                f"cannot read {part!r} in the claim {text!r}; {hint}a claim is {_FORMS}"
            )
        if name in values:
            raise InvalidInput(f"{name} is given twice in the claim {text!r}")
        values[name] = _number(term[2])
    return _claim_with(text, values)


_KINDS: dict[tuple[str, ...], Callable[..., Claim]] = {
    ("epsilon",): PureDP,
    ("delta", "epsilon"): ApproximateDP,
    ("epsilon", "order"): RenyiDP,
    ("rho",): ZeroConcentratedDP,
    ("delta", "rho"): ZeroConcentratedDP,
    ("mu",): GaussianDP,
}


def _claim_with(text: str, values: dict[str, float]) -> Claim:
    """The claim with these parameters."""
    names = tuple(sorted(values))
    if names == ("delta",):
        raise InvalidInput(f"the claim {text!r} has a delta but no eps; write eps=0, {text}")
    if names not in _KINDS:
        raise InvalidInput(
            f"{' and '.join(names)} do not go together in the claim {text!r}; a claim is {_FORMS}"
        )
    return _KINDS[names](**values)


def _comma_hint(text: str) -> str:
    """A hint where a number seems to have a decimal comma."""
    found = re.search(r"\d+,\d+(?:[eE][-+]?\d+)?", text)
    meant = found and found[0].replace(",", ".")
    return f"if {found[0]} is one number, the decimal mark is a point: {meant}; " if found else ""


# --- privacy accountants

#: The δ at which an accountant that only gives ε is evaluated: the large ones constrain the events that
#: draws can show, the small ones are those that are published.
_DELTAS = np.concatenate([np.linspace(0.95, 0.05, 37), np.geomspace(0.04, 1e-9, 37)])


#: Claims of the last accountants that were asked, by their state: an answer can take half a second.
_TABULATED: dict[bytes, Claim] = {}
_KEPT = 8


def from_accountant(accountant: Any, asked: Asked = _no_progress) -> Claim | None:
    """The claim of an accountant; None if the object is not recognised as one."""
    try:
        state = hashlib.sha256(pickle.dumps(accountant)).digest()  # its steps among it
    except Exception:  # objects raise what they like
        state = b""
    if state in _TABULATED:
        return _TABULATED[state]
    try:
        stated = _claim_of(accountant, asked)
    except DpassayError:
        raise
    except Exception as error:  # objects raise what they like
        raise InvalidInput(
            f"a {type(accountant).__name__} cannot be read as a privacy accountant "
            f"({type(error).__name__}: {error})"
        ) from error
    if stated is not None and state:
        _TABULATED[state] = stated
        if len(_TABULATED) > _KEPT:
            _TABULATED.pop(next(iter(_TABULATED)))
    return stated


def _claim_of(accountant: Any, asked: Asked) -> Claim | None:
    def held(*names: str) -> Any:
        found = (getattr(accountant, name, None) for name in names)
        return next((one for one in found if one is not None and not callable(one)), None)

    orders, rdp = held("orders", "_orders"), held("rdp", "_rdp")
    if orders is not None and rdp is not None:
        # accountants also keep orders without a finite ε
        pairs = [(float(a), float(e)) for a, e in zip(np.ravel(orders), np.ravel(rdp), strict=True)]
        kept = [(order, epsilon) for order, epsilon in pairs if 1 < order < np.inf and epsilon >= 0]
        if not kept:
            raise InvalidInput(
                f"the accountant holds no order above 1, got {checks.shown(list(np.ravel(orders)))}"
            )
        above_one, epsilons = zip(*kept, strict=True)
        _refuse_no_step(accountant, max(epsilons))
        return RenyiCurveDP(above_one, epsilons)
    for name in ("get_delta_for_epsilon", "get_delta"):
        if callable(ask := getattr(accountant, name, None)):

            def profile(epsilon: Any, ask: Callable[[Any], Any] = ask) -> Any:
                asked(np.size(epsilon), 600)
                return ask(epsilon)

            _refuse_no_step(accountant, float(np.max(ask(0.0))))
            return replace(TradeoffDP.from_delta(profile), name=type(accountant).__name__)
    if callable(ask := getattr(accountant, "get_epsilon", None)):
        return _by_epsilon(accountant, ask, asked)
    return None


def _by_epsilon(accountant: Any, ask: Callable[..., Any], asked: Asked) -> TradeoffDP:
    """(ε(δ), δ) at many δ; those at which the accountant fails are left out."""
    found: list[tuple[float, float]] = []
    failed: Exception | None = None
    infinite = False
    for delta in _DELTAS:
        asked(1, len(_DELTAS))
        try:
            epsilon = float(ask(float(delta)))
        except Exception as error:  # each accountant has its own range, and its own way to say so
            failed = error
            continue
        if 0 <= epsilon < np.inf:
            found.append((epsilon, float(delta)))
        infinite |= epsilon == np.inf
    if not found and (infinite or isinstance(failed, OverflowError)):
        raise InvalidInput(
            f"{type(accountant).__name__} says ε = ∞: is its noise multiplier 0? Such a claim cannot be "
            'refuted; state what was to hold, such as "eps=4, delta=1e-5", or leave the claim out'
        )
    if not found:
        hint = f" ({type(failed).__name__}: {failed})" if failed else ""
        raise InvalidInput(
            f"{type(accountant).__name__}.get_epsilon(delta) gave no finite epsilon at any delta from "
            f"{_DELTAS[-1]:g} to {_DELTAS[0]:g}{hint}; has it taken a step?"
        )
    _refuse_no_step(accountant, max(found)[0])
    return replace(_of_points(found), name=type(accountant).__name__)


def _refuse_no_step(accountant: Any, most: float) -> None:
    """Refuse an accountant whose largest answer is 0: audits would test 0-DP."""
    if most == 0:
        raise InvalidInput(
            f"{type(accountant).__name__} says ε = 0, as accountants do that have recorded no step; give "
            'it after training, or state what is claimed, such as "eps=4, delta=1e-5"'
        )


def _of_points(points: list[tuple[float, float]]) -> TradeoffDP:
    """That (ε, δ)-DP holds at each of these points."""
    epsilons, deltas = (np.array(column) for column in zip(*points, strict=True))
    order = np.argsort(epsilons, kind="stable")
    return TradeoffDP(curve_of_pairs(epsilons[order], deltas[order]))


# --- files

#: Pairs of a file of which no ε is larger, nor than its δ, are taken for exchanged.
_TINY = 0.01
_FILE = (
    'an accountant\'s file is {"epsilon": 4.0, "delta": 1e-5}, a list of such points, or of pairs '
    "[delta, epsilon]"
)


def claim_of_file(path: str | Path) -> Claim:
    """The claim in a JSON file: a point (ε, δ), several points of a curve, or a claim of dpassay."""
    try:
        given = checks.read_json(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput(f"{str(path)!r} is no JSON ({error}); {_FILE}") from None
    return _of_entries(repr(str(path)), given)


def _of_entries(name: str, given: Any) -> Claim:
    """The claim in what a JSON file holds."""
    if isinstance(given, Mapping) and "type" in given:
        return Claim.from_dict(dict(given))
    points = [_point(name, one) for one in (given if isinstance(given, list) else [given])]
    if not points:
        raise InvalidInput(f"{name} holds no point; {_FILE}")
    for (least, low), (most, high) in itertools.pairwise(
        sorted(points, key=lambda p: (p[1], -p[0]))
    ):
        if least * (1 + 1e-6) < most and low < high:
            raise InvalidInput(
                f"{name} has ε = {least:g} at δ = {low:g} and the larger ε = {most:g} at the larger δ = "
                f"{high:g}, but ε cannot rise with δ; are the two exchanged? {_FILE}"
            )
    pairs = isinstance(given, list) and all(isinstance(one, list) for one in given)
    if pairs and all(epsilon < min(delta, _TINY) for epsilon, delta in points):
        raise InvalidInput(f"{name} has no ε above {_TINY:g}: are δ and ε exchanged? {_FILE}")
    return ApproximateDP(*points[0]) if len(points) == 1 else _of_points(points)


def _point(name: str, given: Any) -> tuple[float, float]:
    """(ε, δ) of one entry of a file."""
    match given:
        case (
            {"epsilon": epsilon, "delta": delta}
            | {"eps": epsilon, "delta": delta}
            | [delta, epsilon]
        ):
            epsilon = checks.real("epsilon", epsilon, at_least=0.0, remedy=_FILE)
            return epsilon, checks.real("delta", delta, at_least=0.0, below=1.0, remedy=_FILE)
    raise InvalidInput(f"{name} has {checks.shown(given)}; {_FILE}")
