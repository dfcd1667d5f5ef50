"""`python -m libraries.environments NAME…`: make the environment of a library, and audit it there.

Needs nothing but Python: each library gets `.libraries/NAME` with the versions that
`libraries/pins/NAME.txt` gives, and dpassay from this checkout.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from libraries import page

ROOT = Path(__file__).parents[1]
PINS = ROOT / "libraries" / "pins"


def names() -> list[str]:
    """The libraries there are pins for."""
    return sorted(path.stem for path in PINS.glob("*.txt"))


def python_of(name: str) -> Path:
    """The interpreter of a library's environment."""
    return ROOT / ".libraries" / name / "bin" / "python"


def make(name: str) -> Path:
    """The environment of a library, made anew if its pins have changed; its interpreter."""
    pins, python = PINS / f"{name}.txt", python_of(name)
    digest = hashlib.sha256(pins.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamp = python.parents[1] / ".ready"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        return python
    venv.create(python.parents[1], with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--requirement", str(pins), "--editable", str(ROOT)], check=True)
    stamp.write_text(digest, encoding="utf-8")
    return python


def main(words: Sequence[str]) -> int:
    """Audit the libraries named, or `all`, one after the other, and make the page anew.

    Options after the names go on to the audit; with `--make` the environments are made and no more.
    """
    options = next((k for k, word in enumerate(words) if word.startswith("-")), len(words))
    chosen, rest = list(words[:options]), list(words[options:])
    chosen = names() if chosen == ["all"] else chosen
    unknown = [name for name in chosen if name not in names()]
    if unknown or not chosen:
        there = ", ".join(names())
        print(f"name a library, or all: there are {there}; got {unknown}", file=sys.stderr)
        return 2
    status = 0
    if "--make" in rest:
        for name in chosen:
            make(name)
        return 0
    for name in chosen:
        python = make(name)
        print(f"== {name}", flush=True)
        done = subprocess.run(
            [str(python), "-m", "libraries", name, *rest],
            cwd=ROOT,
            env=dict(os.environ),
            check=False,
        )
        status = max(status, done.returncode)
    page.write()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
