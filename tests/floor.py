"""The lowest versions that pyproject.toml declares, as pins for `make test-floor`."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
named = [
    *project["dependencies"],
    *(one for name in ("report", "arrow", "dask") for one in extras[name]),
]
for requirement in named:
    print(re.sub(r">=", "==", requirement))
print("click<8.2")  # what the lowest typer was made for; with later ones it warns
