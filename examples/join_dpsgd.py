"""Put the parts of one run, trained in several calls, into one file: numpy alone.

python -m examples.join_dpsgd authors.npz authors-00960.npz --out cifar.npz
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from examples.audit_dpsgd import Scores, load, save

#: What may differ between the parts.
_OWN = ("models", "first", "wanted", "seconds")


def joined(parts: Sequence[Scores]) -> Scores:
    """All models of parts that follow each other and were made alike; seconds are added up."""
    parts = sorted(parts, key=lambda part: int(part.about["first"]))
    shared = [{k: v for k, v in part.about.items() if k not in _OWN} for part in parts]
    for about in shared:
        other = sorted(
            k for k in about.keys() | shared[0].keys() if about.get(k) != shared[0].get(k)
        )
        if other:
            raise ValueError(f"parts differ in {', '.join(other)}: join parts of one run alone")
    ends = [part.about["first"] + part.models for part in parts]
    starts = [part.about["first"] for part in parts]
    if starts[1:] != ends[:-1]:
        raise ValueError(
            f"parts begin at {starts} and end at {ends}: each must begin where one ends"
        )
    about = parts[0].about | {
        "models": sum(part.models for part in parts),
        "seconds": round(sum(part.about["seconds"] for part in parts), 2),
    }
    columns = {
        name: tuple(np.concatenate([part.columns[name][side] for part in parts]) for side in (0, 1))
        for name in parts[0].columns
    }
    return Scores(about, columns)  # type: ignore[arg-type]


def main() -> None:
    """Read, join and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    whole = joined([load(path) for path in given.parts])
    save(given.out, whole)
    print(f"{given.out}: {whole.models} models a side")


if __name__ == "__main__":
    main()
