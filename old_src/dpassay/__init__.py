"""dpassay: how private is this mechanism really? Measured from its outputs alone.

    import dpassay as dp

    def mechanism(x, size, rng):
        return x + rng.laplace(scale=1.0, size=size)

    print(dp.audit(mechanism, (0.0, 1.0), dp.PureDP(0.5), n=10_000, rng=0))

Everything is imported on first use, so that `import dpassay` costs next to nothing. The names are
those of `__init__.pyi`.
"""

from __future__ import annotations

import ast
import importlib
import warnings
from pathlib import Path
from typing import Any

from dpassay._version import __version__ as __version__

#: Where each public name lives, as the stub beside this file says.
_HOMES = {
    name.asname or name.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for name in node.names
}

__all__ = sorted(_HOMES)

#: Names that were here, with their homes: they give a warning until the minor version after next.
_MOVED = {"About": "privacy.provenance"}


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        home = f"dpassay.{_MOVED[name]}"
        said = f"dpassay.{name} is deprecated: from {home} import {name}"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), name)
    if name not in _HOMES:
        raise AttributeError(f"module 'dpassay' has no attribute {name!r}")
    home = ".".join(filter(None, ("dpassay", _HOMES[name])))
    try:
        value = importlib.import_module(f"{home}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{home}.{name}":
            raise
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
