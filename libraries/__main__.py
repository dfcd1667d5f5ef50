"""`python -m libraries NAME`: audit a library, in the environment where it is installed."""

from __future__ import annotations

import argparse
import platform
import re
import sys
from dataclasses import replace
from pathlib import Path

from libraries import runner
from libraries.cases import RESULTS, Audited


def main(words: list[str]) -> int:
    """Audit, say each result, and write them down; 1 if a violation has no finding behind it."""
    parser = argparse.ArgumentParser(prog="python -m libraries", description=__doc__)
    parser.add_argument("library", help="a module of libraries/, such as opendp")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="another seed than 0: other draws, and the published results stay as they are",
    )
    parser.add_argument(
        "--only",
        default="",
        help="the cases whose name matches a regular expression; other results are kept",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="do not replace the results: add what this seed found about all sound cases to them",
    )
    given = parser.parse_args(words)
    if given.again and given.only:
        parser.error("--again counts all sound cases of a seed: leave --only out")
    distribution, cases, findings = runner.load(given.library)
    every = list(cases)
    chosen = [
        case
        for case in every
        if re.search(given.only, case.name) and (case.sound or not given.again)
    ]
    versions = runner.installed(distribution, "numpy", "scipy", "scikit-learn", "dpassay")
    path = RESULTS / f"{given.library}.json"
    before = Audited.from_json(path.read_text(encoding="utf-8")) if path.is_file() else None

    def keep(so_far: Audited) -> None:
        if given.seed == 0 and not given.again:
            whole = joined(before, so_far, [case.name for case in every])
            path.write_text(whole.to_json(), encoding="utf-8")

    found = runner.run(
        given.library,
        chosen,
        findings,
        version=versions[distribution],
        versions={"python": platform.python_version(), **versions},
        seed=given.seed,
        say=lambda text: print(text, flush=True),
        keep=keep,
    )
    if given.again and before is not None:
        return _counted(found, before, path, given.seed)
    if given.seed:
        print(f"seed {given.seed}: {path.name} is as it was; seed 0 makes it anew")
    unexplained = [
        one.name
        for one in found.results
        if one.verdict == "error" or (one.verdict == "violation" and not found.finding_of(one))
    ]
    for name in unexplained:
        print(f"not explained: {name}", file=sys.stderr)
    return 1 if unexplained else 0


def _counted(found: Audited, before: Audited, path: Path, seed: int) -> int:
    """Add the false alarms of another seed to the results; 1 if one held on fresh draws too."""
    alarms = [one for one in found.results if one.verdict == "violation"]
    held = [one.name for one in alarms if one.replay and one.replay.p_value <= runner.GAMMA]
    named = [one.name for one in alarms]
    new = {"seed": seed, "audits": len(found.results), "alarms": named, "held": held}
    kept = [run for run in before.again if run["seed"] != seed]
    now = replace(before, findings=found.findings, again=(*kept, new))
    path.write_text(now.to_json(), encoding="utf-8")
    print(
        f"{new['audits']} sound cases with seed {seed}: {len(named)} alarms, {len(held)} held again"
    )
    return 1 if held else 0


def joined(before: Audited | None, new: Audited, names: list[str]) -> Audited:
    """The new results, and the earlier ones of other cases that there are, in the order of the cases."""
    if before is None or before.version != new.version:
        before = replace(new, results=(), again=())
    found = {one.name: one for one in before.results}
    found |= {one.name: one for one in new.results}
    results = tuple(found[name] for name in names if name in found)
    return replace(new, results=results, again=before.again)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
