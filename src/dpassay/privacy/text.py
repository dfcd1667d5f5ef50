"""Claims from text, for the command line and configuration files."""

from __future__ import annotations

import re

from dpassay import checks
from dpassay.errors import InvalidInput
from dpassay.privacy.claims import (
    ApproximateDP,
    Claim,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

_FORMS = '"eps=1", "eps=1, delta=1e-5", "renyi(order=5)=0.2", "rho=0.5" or "mu=1"'
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RENYI = re.compile(
    rf"(?:renyi|rényi|rdp)\s*\(\s*(?:(?:order|alpha|lambda|λ|α)\s*=\s*)?({_NUMBER})\s*\)"
    rf"\s*(?:=|<=|≤)\s*({_NUMBER})",
    re.IGNORECASE,
)
_TERM = re.compile(rf"\s*(\w+)\s*(?:=|<=|≤)\s*({_NUMBER})\s*")
_NAMES = {
    "eps": "epsilon",
    "epsilon": "epsilon",
    "ε": "epsilon",
    "delta": "delta",
    "δ": "delta",
    "rho": "rho",
    "ρ": "rho",
    "zcdp": "rho",
    "mu": "mu",
    "μ": "mu",
    "gdp": "mu",
}


def as_claim(given: object) -> Claim:
    """A claim as it is, or its text."""
    if isinstance(given, str):
        return claim(given)
    if not isinstance(given, Claim):
        raise InvalidInput(
            f"claim must be a claim such as dp.PureDP(1.0) or its text, got {checks.shown(given)}"
        )
    return given


def claim(text: str) -> Claim:
    """Read a privacy claim from text.

    >>> claim("eps=1, delta=1e-5")
    ApproximateDP(epsilon=1.0, delta=1e-05)
    >>> claim("renyi(order=5)=0.2")
    RenyiDP(order=5.0, epsilon=0.2)
    >>> claim("rho=0.5"), claim("mu=1"), claim("eps=0.1")
    (ZeroConcentratedDP(rho=0.5), GaussianDP(mu=1.0), PureDP(epsilon=0.1))
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"a claim must be text such as {_FORMS}, got {text!r}")
    if found := _RENYI.fullmatch(text.strip()):
        return RenyiDP(float(found[1]), float(found[2]))
    values: dict[str, float] = {}
    for part in re.split(r"[,;]", text):
        found = _TERM.fullmatch(part)
        name = _NAMES.get(found[1].lower()) if found else None
        if found is None or name is None:
            raise InvalidInput(
                f"cannot read {part.strip()!r} in the claim {text!r}; a claim is {_FORMS}"
            )
        if name in values:
            raise InvalidInput(f"{name} is given twice in the claim {text!r}")
        values[name] = float(found[2])
    match sorted(values):
        case ["epsilon"]:
            return PureDP(values["epsilon"])
        case ["delta", "epsilon"]:
            return ApproximateDP(values["epsilon"], values["delta"])
        case ["rho"]:
            return ZeroConcentratedDP(values["rho"])
        case ["mu"]:
            return GaussianDP(values["mu"])
        case ["delta"]:
            raise InvalidInput(f"the claim {text!r} has a delta but no eps; write eps=0, {text}")
        case names:
            raise InvalidInput(
                f"{' and '.join(names)} do not go together in the claim {text!r}; "
                f"a claim is {_FORMS}"
            )
