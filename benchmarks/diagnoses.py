"""Whether a diagnosis names the known cause of a fault, and what it costs.

`python -m benchmarks.diagnoses LIBRARY` judges the violations of a library of the gallery, in the
environment where it is installed, and prints a line of JSON for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import dpassay as dp
from benchmarks.faults import GALLERY_CAUSES, PLANTED_CAUSES, Faulty, faults, sgd_faults
from benchmarks.planted import bugs
from benchmarks.tables import markdown, table
from dpassay.diagnosis import diagnoses

QUIET = dp.Sampling(progress=False)
CONFIDENCE = 0.999
#: A row: where it is from, its name, the known cause, and the kinds that were given, the first first.
Row = tuple[str, str, str, list[str]]
_HEADINGS = ("", "fault", "known cause", "first explanation", "second", "right")


def judged(rows: Sequence[Row]) -> str:
    """A table of the rows, and how many are right."""
    lines, first, second = [], 0, 0
    for where, name, cause, kinds in rows:
        place = kinds[:2].index(cause) + 1 if cause in kinds[:2] else 0
        first, second = first + (place == 1), second + (place > 0)
        given = [*kinds[:2], "", ""][:2]
        lines.append([where, name, cause, *given, {1: "yes", 2: "second", 0: "**no**"}[place]])
    total = len(rows)
    said = (
        f"\n\nFirst explanation right: {first} of {total} ({first / total:.0%}); one of the first two: "
        f"{second} of {total} ({second / total:.0%})."
    )
    return markdown(_HEADINGS, lines) + said


def audited(fault: Faulty, seed: int, *, broken: bool = True) -> dp.Verdict:
    """An audit of a fault, or of its correct twin."""
    return dp.audit(
        fault.broken if broken else fault.fixed,
        fault.pair,
        fault.claim,
        relation=fault.relation,
        n=20_000,
        confidence=CONFIDENCE,
        rng=seed,
        sampling=QUIET,
    )


def _kinds(verdict: dp.Verdict) -> list[str]:
    return [str(one.kind) for one in verdict.diagnosis] if verdict.violated else ["not refuted"]


@table("diagnosis-faults")
def of_faults() -> str:
    """Twenty-three faults and five of DP-SGD: what their diagnosis says, and that twins have none."""
    groups = (("release", faults()), ("DP-SGD", sgd_faults()))
    rows = [
        (where, one.name.removeprefix("DP-SGD: "), one.cause, _kinds(audited(one, 1)))
        for where, listed in groups
        for one in listed
    ]
    twins = [audited(one, 2, broken=False).violated for _, listed in groups for one in listed]
    said = f"Correct twins that were refuted, and so diagnosed: {sum(twins)} of {len(twins)}."
    return f"{judged(rows)} {said}"


@table("diagnosis-planted")
def of_planted() -> str:
    """The bugs planted for the hunt, on the pair that a hunt finds."""
    rows = []
    for planted, cause in zip(bugs(), PLANTED_CAUSES, strict=True):
        found = dp.hunt(
            planted.broken,
            planted.space,
            planted.claim,
            relation=planted.relation,
            rng=1,
            sampling=QUIET,
            **planted.options,
        )
        rows.append(("hunt", planted.name, cause, _kinds(found.verdict)))
        print(rows[-1], file=sys.stderr)
    return judged(rows)


def of_library(library: str) -> Iterable[Row]:
    """The violations of a library, audited again in this environment."""
    from libraries import runner
    from libraries.cases import RESULTS, Audited

    _, cases, _ = runner.load(library)
    path = RESULTS / f"{library}.json"
    before = Audited.from_json(path.read_text(encoding="utf-8"))
    known = {one.name: one for one in before.results if one.verdict == "violation"}
    for case in cases:
        if case.name not in known:
            continue
        call = runner.Vectorised(case.call) if case.vectorised else dp.from_function(case.call)
        verdict = dp.audit(
            call,
            case.pair,
            case.claim,
            n=case.n,
            confidence=CONFIDENCE,
            loss=case.look,
            relation=case.relation,
            rng=known[case.name].seed,
            sampling=QUIET,
        )
        default = "representation" if case.name.endswith(", bits") else "?"
        cause = GALLERY_CAUSES.get((library, case.name), default)
        yield library, case.name, cause, _kinds(verdict)


@table("diagnosis-gallery")
def of_gallery() -> str:
    """Every violation of the gallery, in the environments of `python -m libraries.environments`."""
    from libraries.environments import ROOT, make, names

    rows: list[Row] = []
    for name in names():
        command = [str(make(name)), "-m", "benchmarks.diagnoses", name]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        rows += [tuple(json.loads(line)) for line in done.stdout.splitlines() if line[:1] == "["]
    return judged(rows)


@table("diagnosis-cost")
def cost() -> str:
    """The processor time of a diagnosis as a share of its audit."""
    rows = []
    spent = [0.0]
    inner = diagnoses.diagnose

    def timed(*given: Any) -> Any:
        start = time.process_time()
        try:
            return inner(*given)
        finally:
            spent[0] += time.process_time() - start

    from dpassay.auditing import audits

    vars(audits)["diagnose"] = timed
    try:
        for one in [*faults(), *sgd_faults()]:
            run = partial(audited, one)
            run(1)  # imports
            spent[0], start = 0.0, time.process_time()
            for seed in range(2, 7):
                run(seed)
            whole = time.process_time() - start
            rows.append((one.name, whole / 5, spent[0] / 5, spent[0] / (whole - spent[0])))
    finally:
        vars(audits)["diagnose"] = inner
    rows.sort(key=lambda row: -row[3])
    lines = [[name, f"{a:.3f}", f"{b:.3f}", f"{c:.1%}"] for name, a, b, c in rows]
    total = sum(row[2] for row in rows) / sum(row[1] - row[2] for row in rows)
    headings = ("fault", "audit, s", "diagnosis, s", "of the audit")
    return markdown(headings, lines) + f"\n\nOver all of them: {total:.1%}."


if __name__ == "__main__":
    for row in of_library(sys.argv[1]):
        print(json.dumps(row), flush=True)
