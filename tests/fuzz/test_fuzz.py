"""Whatever it is given, dpassay ends in a documented result or in an error of its own, and in time.

The ordinary suite runs a few cases of every family, `make test-slow` 30,000. DPASSAY_FUZZ_SEED is the
first seed (default 0), DPASSAY_FUZZ_CASES the number of cases of the long run. With DPASSAY_FUZZ_TABLE
the counts of outcomes are appended to that file, a line a family.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from tests.fuzz import arguments, claims, commands, files, results, returns
from tests.fuzz.running import ended

START = int(os.environ.get("DPASSAY_FUZZ_SEED", "0"))
CASES = int(os.environ.get("DPASSAY_FUZZ_CASES", "30000"))
#: The share of the cases that each family has.
FAMILIES = {
    "claims": (claims, 0.2),
    "results": (results, 0.25),
    "files": (files, 0.15),
    "arguments": (arguments, 0.2),
    "returns": (returns, 0.17),
    "commands": (commands, 0.03),
}
#: The long run is cut so that processes can share it.
PARTS = 4


def _defects(family: str, seeds: range) -> list[str]:
    make, _ = FAMILIES[family]
    found, outcomes = [], Counter()
    for seed in seeds:
        case = make.case(seed)
        outcome = ended(case)
        outcomes[outcome.split(":")[0]] += 1
        if outcome.startswith("defect"):
            found.append(f"{family} {seed}: {outcome}\n    {case.label[:300]}")
    if place := os.environ.get("DPASSAY_FUZZ_TABLE"):
        with Path(place).open("a") as table:
            table.write(
                f"{family} {seeds.start}–{seeds.stop - 1}: {dict(outcomes.most_common())}\n"
            )
    return found


def _reported(defects: list[str]) -> str:
    return f"{len(defects)} defects, such as\n" + "\n".join(defects[:10])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_few_hostile_cases_end_in_a_result_or_an_error_of_the_package(family):
    many = round(1500 * FAMILIES[family][1])
    defects = _defects(family, range(START, START + many))
    assert not defects, _reported(defects)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_cases_end_in_a_result_or_an_error_of_the_package(family, part):
    many = round(CASES * FAMILIES[family][1] / PARTS)
    first = START + 10_000_000 * (part + 1)
    defects = _defects(family, range(first, first + many))
    assert not defects, _reported(defects)
