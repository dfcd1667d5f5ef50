"""Mechanisms and pairs from what is typed on the command line. Nothing typed is evaluated."""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay.blackbox import neighbours, zoo
from dpassay.blackbox.mechanism import check_mechanism, from_command, from_function
from dpassay.errors import InvalidInput, Terminated, UnreadableFile
from dpassay.privacy.relations import Pair, as_pair
from dpassay.sampling.files import read_table


def mechanism(target: str, *, per_call: bool = False) -> Any:
    """The mechanism a target names."""
    if target.startswith("zoo:"):
        return _from_zoo(target.removeprefix("zoo:"))
    place, _, name = target.rpartition(":")
    if not place or not name:
        bare = target.partition("(")[0]
        hint = f'; did you mean "zoo:{target}"?' if bare in zoo.__all__ else ""
        raise InvalidInput(
            'a target must be module:name, file.py:name or "zoo:Laplace(scale=0.5)", got '
            f"{target!r}{hint}"
        )
    found = _named(place, name)
    if per_call:
        return from_function(found)
    try:
        return check_mechanism(found)
    except InvalidInput as error:
        hint = " (on the command line: --per-call)" if callable(found) else ""
        raise InvalidInput(f"{target}: {error}{hint}") from None


def from_option(option: str, target: str) -> Any:
    """What `--feature` or `--family` names."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise InvalidInput(f"{option} must be module:name or file.py:name, got {target!r}")
    return _named(place, name)


def _named(place: str, name: str) -> Any:
    """The object of that name in a module or a file."""
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = {n: v for n, v in vars(module).items() if n[0] != "_" and callable(v)}
            imported = {
                n: getattr(v, "__module__", "") != module.__name__ for n, v in public.items()
            }
            names = sorted(public, key=imported.__getitem__)  # those of its own first
            listed = f"; it has {', '.join(names[:8])}{', …' * (len(names) > 8)}" if names else ""
            raise InvalidInput(f"{place} has no {name!r}{listed}")
        found = getattr(found, part)
    return found


def program(command: str) -> Any:
    """A program with its arguments, split as a shell would and never run by one.

    On Windows a backslash is part of a path.
    """
    unix = os.name != "nt"
    try:
        parts = shlex.split(command, posix=unix)
    except ValueError as error:
        raise InvalidInput(f"--command cannot be split into words: {error}") from None
    return from_command(parts if unix else [part.strip('"') for part in parts])


@contextlib.contextmanager
def _explained(failed: str, advice: str = "") -> Iterator[None]:
    """Whatever code raises while it is imported, sys.exit included, is bad input."""
    try:
        yield
    except (KeyboardInterrupt, Terminated):
        raise
    except BaseException as error:
        raise InvalidInput(f"{failed} ({type(error).__name__}: {error}){advice}") from error


def _from_module(name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    advice = "; is it installed, or in the current directory?"
    try:
        with _explained(f"the module {name!r} cannot be imported", advice):
            return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def _from_file(path: Path) -> Any:
    import cloudpickle

    if not path.is_file():
        raise InvalidInput(f"there is no file {str(path)!r}")
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    cloudpickle.register_pickle_by_value(module)  # other processes need not find the file
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # at the end: files beside it replace no other module
    try:
        with _explained(f"{path} cannot be run"):
            spec.loader.exec_module(module)
    except InvalidInput:
        del sys.modules[name]
        raise
    return module


def _module_name(path: Path) -> str:
    """The name of the file, or one of its own if another module has that: `typing.py`, `rich.py`."""
    name = path.stem.replace(".", "_")
    try:
        found = importlib.util.find_spec(name)
    except ValueError:  # a module without a specification, such as __main__
        return f"_file_{name}"
    free = found is None or (found.origin and Path(found.origin).resolve() == path.resolve())
    return name if free else f"_file_{name}"


def _from_zoo(text: str) -> Any:
    """`Laplace(scale=0.5)`: a call of a zoo class with literal arguments, read and not evaluated."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise InvalidInput(f"zoo:{text} is not of the form zoo:Laplace(scale=0.5)") from None
    return _call(tree, text)


def _call(node: ast.expr, text: str) -> Any:
    name = node.func if isinstance(node, ast.Call) else node
    names = sorted(n for n in zoo.__all__ if n not in ("ZooMechanism", "members"))
    if not isinstance(name, ast.Name) or name.id not in names:
        lower = {one.lower(): one for one in names}
        meant = difflib.get_close_matches(text.partition("(")[0].strip().lower(), lower, 1)
        hint = f"did you mean zoo:{lower[meant[0]]}? There are" if meant else "there are"
        raise InvalidInput(f"zoo:{text} names no mechanism of the zoo; {hint} {', '.join(names)}")
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    arguments = [_argument(a, text) for a in call.args]
    options = {str(k.arg): _argument(k.value, text) for k in call.keywords}
    try:
        return getattr(zoo, name.id)(*arguments, **options)
    except TypeError as error:
        raise InvalidInput(f"zoo:{text}: {error}") from None


def _argument(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Call):
        return _call(node, text)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise InvalidInput(f"the arguments in zoo:{text} must be plain values") from None


# --- pairs


def _as_input(found: Any) -> Any:
    """An input that was JSON; lists of numbers become arrays."""
    if isinstance(found, list):
        with contextlib.suppress(ValueError):  # lists of different lengths
            array = np.array(found)
            if array.dtype.kind in "ifb" and array.size:
                return array
    return found


def pairs(pair: tuple[str, str] | None, file: Path | None, kind: str | None, black_box: Any) -> Any:
    """The pairs asked for: two values, a file of them, or neighbours of a kind."""
    if sum(given is not None for given in (pair, file, kind)) > 1:
        raise InvalidInput("give one of --pair, --pairs and --neighbours")
    if pair is not None:
        return Pair(*map(_value, pair))
    if file is not None:
        content = json_file(file)
        two = isinstance(content, list) and all(
            isinstance(c, list) and len(c) == 2 for c in content
        )
        if not content or not two:
            raise UnreadableFile(f"{file} must hold a list of pairs such as [[0, 1], [0, 2]]")
        return [as_pair((_as_input(a), _as_input(b))) for a, b in content]
    if kind is not None:
        return _neighbours(kind)
    own = getattr(black_box, "pair", None)
    if own is None:
        raise InvalidInput(
            "a mechanism needs neighbouring inputs: --pair 0 1, --pairs file.json, or "
            "--neighbours patterns:6 | remove-one:data.csv"
        )
    return own


def _value(text: str) -> Any:
    try:
        return _as_input(checks.read_json(text))
    except ValueError:
        raise InvalidInput(
            f"an input must be JSON, such as 0, [1, 0, 0] or '\"text\"', got {text!r}"
        ) from None


def json_file(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return checks.read_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read: {error}") from None
    except ValueError as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from None


def _neighbours(kind: str) -> list[Pair]:
    name, _, argument = kind.partition(":")
    if name == "patterns":
        try:
            return list(neighbours.patterns(int(argument)))
        except ValueError:
            raise InvalidInput(f"patterns:LENGTH needs a whole number, got {argument!r}") from None
    if name != "remove-one":
        raise InvalidInput(f"--neighbours must be patterns:6 or remove-one:data.csv, got {kind!r}")
    columns = read_table(argument).columns  # one record a row
    if any(column.dtype.kind not in "if" for column in columns):
        raise UnreadableFile(f"{argument} must hold rows of numbers, one record each")
    rows = np.column_stack(columns).astype(float)
    return neighbours.remove_one(rows[:, 0] if len(columns) == 1 else rows)
