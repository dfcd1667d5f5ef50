"""pure-LDP: what a client sends for a value; every two values are neighbours.

The randomised value and all that goes with it is audited: the seed of a hash function, the number of a
hash function, the group of a user. Of a report with a seed of 63 bits it is audited which values of the
domain have that hash, which is what the server reads off it. The library needs statsmodels, which it does
not declare, and xxhash before version 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import xxhash
from pure_ldp import frequency_oracles as fo
from pure_ldp.core import generate_hash_funcs
from pure_ldp.heavy_hitters.apple_sfp.sfp_client import SFPClient
from pure_ldp.heavy_hitters.prefix_extending.pem_client import PEMClient
from pure_ldp.heavy_hitters.treehistogram.treehist_client import TreeHistClient

from dpassay.blackbox.inputs import Category
from libraries.cases import Case, Finding, both, hunted

DISTRIBUTION = "pure-ldp"
_SAID = (
    "epsilon (float): Privacy budget (core/_freq_oracle_client.py, FreqOracleClient); perturb it with "
    "probabilities that satisfy epsilon local differential privacy (LHClient._perturb)"
)
_SAID_STRINGS = "epsilon (float): Privacy Budget (heavy_hitters/_hh_client.py, HeavyHitterClient)"
_EXACT = "finitely many reports, whose probabilities keep the claim by the formula of the protocol"
_PROVEN = "the ideal mechanism keeps the claim; only its values are looked at"
#: Hash functions of the sketches, and their range; of RAPPOR the size of the filter and the cohorts.
_HASHES, _RANGE, _BITS, _COHORTS = 2, 8, 16, 2
#: Two values whose hashes differ under each of the hash functions.
_PAIR = 2, 3

Call = Callable[[Any], Any]


def _supported(client: Any, domain: int) -> Call:
    """Which indices have the hash that was sent, with the seed that was sent."""

    def report(value: Any) -> list[bool]:
        sent, seed = client.privatise(value)
        hashes = (xxhash.xxh32(str(one), seed=seed).intdigest() for one in range(domain))
        return [one % client.g == sent for one in hashes]

    return report


def _as_list(client: Any) -> Call:
    return lambda value: [list(one) for one in client.privatise(value)]


def _with_type(client: Any) -> Call:
    def report(value: Any) -> Any:
        sent = client.privatise(value)
        return type(sent).__name__, [list(one) for one in sent]

    return report


def _oracles(eps: float, d: int) -> Mapping[str, Call]:
    """A report of each frequency oracle for a value from 1 to d."""
    hashes, signs = generate_hash_funcs(_HASHES, _RANGE), generate_hash_funcs(_HASHES, 2)
    signed = list(zip(hashes, signs, strict=True))
    permutation = None if eps <= 1 else fo.HadamardResponseServer(eps, d).get_hash_funcs()
    clients = {
        "DE": fo.DEClient(eps, d),
        "SUE": fo.UEClient(eps, d),
        "OUE": fo.UEClient(eps, d, use_oue=True),
        "FLH": fo.FastLHClient(eps, d, k=5, use_olh=True),
        "CMS": fo.CMSClient(eps, hashes, _RANGE),
        "HCMS": fo.CMSClient(eps, hashes, _RANGE, is_hadamard=True),
        "HR": fo.HadamardResponseClient(eps, d, permutation),
        "PCS": fo.PCSClient(eps, _HASHES, _RANGE, signed),
        "sketch of FLH": fo.SketchResponseClient(eps, _RANGE, hashes, lh_k=5),
        "count sketch of FLH": fo.SketchResponseClient(
            eps, _RANGE, signed, lh_k=5, count_sketch=True
        ),
        "sketch of DE": fo.SketchResponseClient(
            eps, _RANGE, hashes, fo_client=fo.DEClient(eps, _RANGE)
        ),
        "sketch of OUE": fo.SketchResponseClient(
            eps, _RANGE, hashes, fo_client=fo.UEClient(eps, _RANGE, use_oue=True)
        ),
    }
    return {
        **{name: client.privatise for name, client in clients.items()},
        "BLH": _supported(fo.LHClient(eps, d), d),
        "OLH": _supported(fo.LHClient(eps, d, use_olh=True), d),
        "HM, t = 1": _as_list(fo.HadamardMechClient(eps, d, 1)),
        "HM, t = 2": _as_list(fo.HadamardMechClient(eps, d, 2)),
    }


def _case(name: str, api: str, call: Call, pair: Any, eps: float, **more: Any) -> Case:
    more = {"said": _SAID, "relation": "replace", "n": 8_000, "sound": _EXACT, **more}
    more = {"group": "local: one value", "claim": f"eps={eps!r}", **more}
    return Case(name, f"pure_ldp.{api}", call, pair, **more)


def cases() -> Iterator[Case]:
    """All cases."""
    for eps, d in ((0.5, 4), (1.0, 8), (3.0, 32)):
        where = f"ε = {eps:g}, d = {d}"
        for name, call in _oracles(eps, d).items():
            case = _case(f"{name}, {where}", f"frequency_oracles, {name}", call, _PAIR, eps)
            yield case
            if d == 8:
                yield hunted(case, Category(range(1, d + 1)))
        call = fo.HEClient(eps, d).privatise
        noise = _case(f"HE, {where}", "frequency_oracles.HEClient", call, _PAIR, eps)
        for case in both(noise, ""):
            yield case
            if d == 8:
                yield hunted(case, Category(range(1, d + 1)))
        raw = _with_type(fo.HadamardMechClient(eps, d, 2))
        api = "frequency_oracles.HadamardMechClient"
        case = _case(f"HM as it is sent, {where}", api, raw, _PAIR, eps, sound="")
        yield case
        if d == 8:
            yield hunted(case, Category(range(1, d + 1)))
    yield from _rappor()
    yield from _strings()


def _rappor() -> Iterator[Case]:
    for f, k in ((0.5, 1), (0.64, 2), (0.75, 1)):
        server = fo.RAPPORServer(f, _BITS, k, 8, num_of_cohorts=_COHORTS)
        client = fo.RAPPORClient(f, _BITS, server.hash_family, num_of_cohorts=_COHORTS)
        eps = float(client.convert_f_to_eps(f, k))
        said = f"RAPPORClient.convert_f_to_eps({f}, {k}) = {eps:.4g}"
        case = _case(
            f"RAPPOR, f = {f:g}, k = {k}",
            "frequency_oracles.RAPPORClient",
            client.privatise,
            _PAIR,
            eps,
            said=said,
            sound="",
        )
        yield case
        yield hunted(case, Category(range(1, 9)))


def _strings() -> Iterator[Case]:
    """Texts of six bits, in fragments of two."""
    every = [format(number, "06b") for number in range(64)]
    more: dict[str, Any] = {"said": _SAID_STRINGS, "group": "local: text"}
    for eps in (1.0, 3.0):
        hashes = generate_hash_funcs(_HASHES, _RANGE)
        oracles = {
            "DE": partial(fo.DEClient, eps, 4),
            "OUE": partial(fo.UEClient, eps, 4, use_oue=True),
            "FLH": partial(fo.FastLHClient, eps, 4, k=5, use_olh=True),
            "CMS": partial(fo.CMSClient, eps, hashes, _RANGE),
            "HCMS": partial(fo.CMSClient, eps, hashes, _RANGE, is_hadamard=True),
        }
        for name, make in oracles.items():
            clients = {"PEM": PEMClient(eps, 0, 6, 2, fo_client=make())}
            clients["TreeHist"] = TreeHistClient(eps, 2, 6, fo_client=make())
            if "CMS" in name:
                clients["SFP"] = SFPClient(eps, 2, 6, fo_client=make())
            for method, client in clients.items():
                case = _case(
                    f"{method} of {name}, ε = {eps:g}",
                    f"heavy_hitters.{type(client).__name__}",
                    client.privatise,
                    (every[0], every[-1]),
                    eps,
                    **more,
                )
                yield case
                if eps == 1.0 and (name == "DE" or method == "SFP"):
                    yield hunted(case, Category(every))
    case = _case(
        "PEM of DE with ε = 3, ε = 1",
        "heavy_hitters.PEMClient",
        PEMClient(1.0, 0, 6, 2, fo_client=fo.DEClient(3.0, 4)).privatise,
        (every[0], every[-1]),
        1.0,
        **{**more, "sound": "", "trap": "an oracle that was made with another ε"},
    )
    yield case
    yield hunted(case, Category(every))


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="RAPPOR never clears a bit of the value",
        kind="violation",
        cases=("RAPPOR, *",),
        cause=(
            "RAPPORClient._perturb changes the filter in place and assigns 1 alone: a bit of the "
            "value, which is 1 before, is 1 in every report, where it should be 0 with probability "
            "f/2. A report with a 0 in such a place excludes the value: no ε is kept. Beside: "
            "convert_eps_to_f takes no number of hash functions, so that with two of them "
            "convert_f_to_eps gives 2ε back, and it rounds to two digits, so that f = 0 from ε = 12 "
            "on."
        ),
        script="pure_ldp_rappor.py",
        report=(
            "RAPPORClient._perturb loops over the filter and sets data[i] = 1 with probability 1 − f/2 "
            "(bit 1) or f/2 (bit 0), but never sets data[i] = 0, and data holds the bits of the value "
            "already. So these bits are 1 in every report, and every 0 is true. With f = 0.5 and one "
            "hash function (convert_f_to_eps: 2.2) an audit certifies {RAPPOR, f = 0.5, k = 1} (10⁻³ "
            "error probability); no ε holds. A remedy is to fill a new list: [int(u < 1 − f/2) if bit "
            "else int(u < f/2)]."
        ),
    ),
    Finding(
        title="The type of a report of the Hadamard mechanism says whether it is true",
        kind="violation",
        cases=("HM as it is sent, *",),
        cause=(
            "HadamardMechClient.privatise returns a list if the signs are true, and a zip object if "
            "they were replaced. Whoever gets the object, or a serialisation that keeps its type, "
            "knows which. As lists the reports keep the claim."
        ),
        script="pure_ldp_type.py",
        report=(
            "privatise ends with `output = zip(indexes, new_hash)` if the signs are replaced, and "
            "returns the list of true signs otherwise. A server in the same process tells the two "
            "apart by type, and a list is true with certainty: an audit of the type and the content "
            "certifies {HM as it is sent, ε = 1, d = 8} at ε = 1 (10⁻³ error probability). A remedy is "
            "list(zip(indexes, new_hash))."
        ),
    ),
    Finding(
        title="The prefix extending method ignores its ε if it is given an oracle",
        kind="violation",
        cases=("PEM of DE with ε = 3, *",),
        cause=(
            "PEMClient takes epsilon and fo_client, and calls fo_client.update_params with an "
            "index_mapper and a domain, never with epsilon; TreeHistClient and SFPClient set epsilon / "
            "2. The budget is then the one that the oracle was made with."
        ),
        script="pure_ldp_prefix.py",
        report=(
            "PEMClient(epsilon=1, …, fo_client=DEClient(epsilon=3, d=4)) keeps ε = 3: its constructor "
            "does not pass epsilon on to the oracle, as TreeHistClient and SFPClient do. An audit "
            "certifies {PEM of DE with ε = 3, ε = 1} at epsilon=1 (10⁻³ error probability). A remedy "
            "is self.client.update_params(epsilon=epsilon, index_mapper=self.index_mapper), or an "
            "error if the two differ."
        ),
    ),
    Finding(
        title="Laplace noise of histogram encoding shows the value in its lowest bits",
        kind="floating point",
        cases=("HE, *, bits",),
        cause="np.random.laplace is added in doubles: which numbers can come out depends on 0 or 1.",
        known="https://doi.org/10.1145/2382196.2382264",
        script="pure_ldp_bits.py",
    ),
)
