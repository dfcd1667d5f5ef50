"""Audit cases one after the other, and replay what is refuted."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

import dpassay as dp
from dpassay.validation import shown
from libraries.cases import Audited, Case, Counts, Finding, Result

#: The error probability of each audit, and of each replay.
GAMMA = 1e-3


@dataclass
class Timed:
    """A mechanism that keeps the time spent in it."""

    inner: Any
    seconds: float = 0.0
    block: int = field(init=False)
    pool: str = "threads"
    replayable: bool = False  # the libraries bring randomness of their own

    def __post_init__(self) -> None:
        self.block = getattr(self.inner, "block", 1 << 16)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Draw, by the clock."""
        start = time.perf_counter()
        try:
            return self.inner(data, size, rng)
        finally:
            self.seconds += time.perf_counter() - start


@dataclass(frozen=True)
class Vectorised:
    """`call(data, size)` as a mechanism."""

    call: Callable[[Any, int], Any]

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Draw with the library's own randomness."""
        return self.call(data, size)


def audited(case: Case, seed: int) -> Result:
    """Audit a case at error probability 10⁻³; replay what is refuted on as many fresh draws."""
    timed = Timed(Vectorised(case.call) if case.vectorised else dp.from_function(case.call))
    sampling = dp.Sampling(progress=False)
    claim = dp.claim(case.claim)
    options: dict[str, Any] = {
        "confidence": 1 - GAMMA,
        "loss": case.look,
        "relation": case.relation,
        "rng": seed,
        "sampling": sampling,
    }
    hunt: dict[str, Any] = {}
    start = time.perf_counter()
    try:
        if case.space is None:
            verdict = dp.audit(timed, case.pair, claim, n=case.n, **options)
        else:
            found = dp.hunt(
                timed,
                case.space,
                claim,
                budget=2 * case.n,
                outside=case.outside,
                user=case.user,
                norm=case.norm,
                **options,
            )
            verdict = found.verdict
            hunt = {"tried": found.tried, "pair": _shown(tuple(found.pair))}
    except dp.errors.MechanismError as error:
        return _result(case, seed, claim, verdict="error", words=str(error).splitlines()[0])
    seconds = time.perf_counter() - start
    own = timed.seconds
    seen, again = verdict.witness, None
    if verdict.violated and seen.event.replayable:
        if case.space is not None:  # to a hunt an exception is an output
            sampling = dp.Sampling(progress=False, on_error="outcome")
        repeated = dp.replay(
            verdict, timed, n=case.n, confidence=1 - GAMMA, rng=seed, sampling=sampling
        )
        again = _counts(repeated)
    return _result(
        case,
        seed,
        claim,
        seconds=round(seconds, 2),
        own=round(own / seconds, 3),
        verdict=verdict.tone,
        words=verdict.blind,
        lower_bound=_rounded(verdict.lower_bound),
        smallest_detectable=_finite(verdict.smallest_detectable),
        p_value=_rounded(verdict.p_value),
        event=seen.event.words,
        counts=_counts(verdict),
        allowed=_allowed(verdict),
        replay=again,
        **hunt,
    )


def _shown(pair: Any) -> str:
    return " and ".join(shown(one, 60) for one in pair)


def _result(case: Case, seed: int, claim: dp.Claim, **found: Any) -> Result:
    kept = ("name", "api", "group", "look", "said", "trap", "sound", "n")
    given = {
        "claim": str(claim),
        "relation": str(dp.Pair(0, 1).related(case.relation).relation),
        "pair": case.shown or (_shown(case.pair) if case.pair is not None else ""),
        "seed": seed,
        "symbol": claim.symbol,
        "claimed": float(claim.value),
    }
    return Result(**{name: getattr(case, name) for name in kept}, **{**given, **found})


def _counts(verdict: dp.Verdict) -> Counts:
    seen = verdict.witness
    return Counts(
        seen.hits_p,
        seen.n_p,
        seen.hits_q,
        seen.n_q,
        _rounded(verdict.p_value),
        _rounded(verdict.lower_bound),
    )


def _allowed(verdict: dp.Verdict) -> float:
    """How likely the claim lets the event be on the one input, given how often it was on the other."""
    low = min(verdict.witness.p, verdict.witness.q)
    return _rounded(float(np.asarray(verdict.claim.region(np.array([low])))[0]))


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else _rounded(value)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if math.isfinite(value) else math.copysign(1e308, value)


def run(
    library: str,
    cases: Iterable[Case],
    findings: Sequence[Finding],
    *,
    version: str,
    versions: dict[str, str],
    seed: int = 0,
    say: Callable[[str], None] = print,
    keep: Callable[[Audited], None] = lambda audited: None,
) -> Audited:
    """Audit all cases; each gets a stream of its own, found from the seed and its name.

    What there is so far is handed to `keep` after each case, so that a run that ends early is not lost.
    """
    results: list[Result] = []

    def made() -> Audited:
        return Audited(library, version, versions, tuple(results), tuple(findings))

    for case in cases:
        found = audited(case, seed_of(seed, case.name))
        say(line(found))
        results.append(found)
        keep(made())
    names = [one.name for one in results]
    if len(set(names)) != len(names):
        raise ValueError(f"two cases of {library} have one name")
    return made()


def seed_of(seed: int, name: str) -> int:
    """A seed for a case, the same wherever it stands in the list."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1)[0])


def line(found: Result) -> str:
    """A result in a line."""
    own = f"{found.seconds:6.1f} s, {found.own:4.0%} the library's"
    bound = f"{found.symbol} ≥ {found.lower_bound:.4g} of {found.claimed:.4g}"
    mark = {"violation": "VIOLATION", "error": "ERROR"}.get(found.verdict, found.verdict)
    again = ""
    if found.replay is not None:
        again = f", again p ≤ {found.replay.p_value:.2g}"
    why = f" ({found.words})" if found.words else ""
    return f"{found.name:<44} {mark:<9} {bound}, p ≤ {found.p_value:.2g}{again}; {own}{why}"


def load(name: str) -> tuple[str, Iterable[Case], Sequence[Finding]]:
    """The module of a library: its distribution, its cases and its findings."""
    module = importlib.import_module(f"libraries.{name.replace('-', '_')}")
    return module.DISTRIBUTION, module.cases(), module.FINDINGS


def installed(*names: str) -> dict[str, str]:
    """The versions of some distributions."""
    return {name: metadata.version(name) for name in names}
