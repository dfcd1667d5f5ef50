"""Released libraries under a hunt that is told the space and the claim, and nothing else.

Each needs its library, in an environment of its own: `python -m benchmarks.hunt_libraries NAME`, and
without a name what there is.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import dpassay as dp
from dpassay.blackbox.inputs import Integer, Reals, Strings


@dataclass(frozen=True)
class Release:
    """A release of a library: what makes it, what inputs look like, what is claimed."""

    make: Callable[[], tuple[Any, str]]  # the mechanism, and its claim
    space: Any
    relation: str
    options: dict[str, Any] = field(default_factory=dict)


def opendp_threshold() -> tuple[Any, str]:
    """Counts by keys that nobody listed; the library says what it costs to add or remove a row."""
    odp = importlib.import_module("opendp.prelude")
    odp.enable_features("contrib")
    rows = odp.vector_domain(odp.atom_domain(T=str)), odp.symmetric_distance()
    release = rows >> odp.t.then_count_by() >> odp.m.then_laplace_threshold(scale=1.0, threshold=5)
    epsilon, delta = release.map(1)
    return dp.from_function(lambda data: release(data)), f"eps={epsilon!r}, delta={delta!r}"


def diffprivlib_nanmean() -> tuple[Any, str]:
    """The mean of numbers from 0 to 1 that leaves out what is missing."""
    tools = importlib.import_module("diffprivlib.tools")
    return dp.from_function(lambda data: tools.nanmean(data, epsilon=1.0, bounds=(0, 1))), "eps=1"


def diffprivlib_geometric() -> tuple[Any, str]:
    """Geometric noise on an integer."""
    mechanisms = importlib.import_module("diffprivlib.mechanisms")
    return dp.from_function(mechanisms.Geometric(epsilon=1.0, sensitivity=1).randomise), "eps=1"


RELEASES = {
    "opendp-threshold": Release(
        opendp_threshold, Strings(longest=10, length=(0, 10)), "add_remove"
    ),
    "diffprivlib-nanmean": Release(
        diffprivlib_nanmean, Reals(0, 1, 10), "replace", {"outside": True, "loss": "values"}
    ),
    "diffprivlib-geometric": Release(diffprivlib_geometric, Integer(0, 2**60), "query"),
}


def main() -> None:
    """Hunt, or list what there is."""
    for name in sys.argv[1:]:
        asked = RELEASES[name]
        mechanism, claim = asked.make()
        start = time.process_time()
        found = dp.hunt(
            mechanism, asked.space, claim, relation=asked.relation, rng=0, **asked.options
        )
        print(f"{name}, {claim}, {time.process_time() - start:.0f} s\n{found}")
    if not sys.argv[1:]:
        print("\n".join(RELEASES))


if __name__ == "__main__":
    main()
